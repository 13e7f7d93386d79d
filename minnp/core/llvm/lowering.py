"""Graph nodes as steps of a program: which nodes can be compiled, and what they become.

Elementwise rows are looked up in rows.py. Views are found by running the row on memory of the right layout and looking
at what it returned, so there is no list of them here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as onp

from ..cpu import products
from ..graph.graph import Node
from ..rows.primitive import TABLE, Meta, Primitive
from . import rows
from .code import FLOAT64, known
from .steps import Input, Map, Product, Reduce, Solve, Value, View, Write, is_weak

FEW = 1 << 9  # multiplications up to which a matrix product is written out
SOLVED = 64  # rows of a matrix up to which equations are solved in the program
PRODUCT = 1 << 14  # and where there is no BLAS that can be called from here
FILLED = {"zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1}
REDUCTIONS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "max", "min": "min", "any": "any", "all": "all"}

Find = Callable[[Any], Any]  # an argument of a node -> Value or number


def lower(node: Node, find: Find, small: bool) -> list[Value] | None:
    """The steps a node becomes, its own value last; None if it is not one that can be compiled."""
    meta = node.meta.get("value")
    if type(meta) is not Meta or not known(meta.dtype):
        return None
    if node.op == "get_attr":
        number = fixed_number(node)
        return None if number is None else [full(meta, number)]
    if node.op != "call_function" or not all(known(n.meta["value"].dtype) for n in node.all_input_nodes):
        return None
    name = getattr(node.target, "name", None) or getattr(node.target, "__name__", "")
    if not isinstance(node.target, Primitive):
        fixed = name in FILLED and not node.all_input_nodes  # of a shape that is computed, a guard has to see the array
        return [full(meta, FILLED[name])] if small and fixed else None
    if TABLE.get(name) is not node.target:
        return None
    special = SPECIAL.get(name)
    if special is not None:
        return special(node, meta, find, small)
    args = [find(a) for a in node.args]
    if any(not isinstance(a, Value) and not rows.is_number(a) for a in args):
        return None
    if any(map(is_weak, args)) and not suits_weak(name, args, meta):
        return None
    kinds = [onp.ones((), a.dtype).item() if is_weak(a) else a.dtype if isinstance(a, Value) else a for a in args]
    emit = rows.elementwise(name, kinds, node.kwargs, meta.dtype, small)
    if emit is not None:
        return [Map(meta.shape, meta.dtype, tuple(args), emit)]
    return view(node, meta, args) if small and node.target.view and len(args) == 1 else None


def suits_weak(name: str, args: Sequence[Any], meta: Meta) -> bool:
    """Whether a row of Python numbers that change computes in a floating point dtype that its arrays decide."""
    others = [a for a in args[name == "where" :] if isinstance(a, Value) and not is_weak(a)]
    return name != "power" and bool(others) and all(a.dtype.kind == "f" for a in others) and meta.dtype.kind in "fb"


def full(meta: Meta, number: Any) -> Map:
    return Map(meta.shape, meta.dtype, (), lambda code: number)


def fixed_number(node: Node) -> Any:
    """The number that a constant consists of, if it is a NumPy scalar seen as an array, which nobody can write to."""
    value = node.meta.get("constant")
    if type(value) is onp.ndarray and isinstance(value.base, onp.generic) and not any(value.strides):
        return value[(0,) * value.ndim] if value.size else None
    return None


# ------------------------------------------------------------------ views
def sample(v: Value) -> onp.ndarray:
    """An array that lies in memory as the value does."""
    offset, root = 0, v
    while isinstance(root, View):
        offset += root.offset
        root = root.reads[0]
    memory = onp.empty(root.shape, root.dtype)
    return onp.ndarray(v.shape, v.dtype, memory, offset, v.strides) if isinstance(v, View) else memory


def address(a: onp.ndarray) -> int:
    return a.__array_interface__["data"][0]


def where_in(part: Any, whole: onp.ndarray) -> tuple[int, tuple, tuple] | None:
    """(offset, strides, shape) of a view of `whole`; None if it is not one."""
    if type(part) is not onp.ndarray or part.dtype != whole.dtype or not part.size:
        return None
    if not onp.may_share_memory(part, whole):
        return None
    return address(part) - address(whole), part.strides, part.shape


def view(node: Node, meta: Meta, args: Sequence[Any]) -> list[Value] | None:
    source = args[0]
    if rows.is_number(source) and node.target.name == "broadcast_to":
        return [full(meta, source)]
    if not isinstance(source, Value) or source.dtype != meta.dtype or not meta.size or holds_nodes(node):
        return None
    steps: list[Value] = []
    found = seen(node, source)
    if found is None and isinstance(source, View):  # the reshape of a transposed array, say: a view of its copy
        source = Map(source.shape, source.dtype, (source,), lambda code, x: x)
        steps.append(source)
        found = seen(node, source)
    if found is None or found[2] != meta.shape:
        return None
    return [*steps, View(meta.shape, meta.dtype, (source,), found[0], found[1])]


def seen(node: Node, source: Value) -> tuple[int, tuple, tuple] | None:
    """What the row of a view shows of its argument."""
    whole, facts = sample(source), node.kwargs
    if node.target.name == "getitem":
        index = facts["index"] if type(facts["index"]) is tuple else (facts["index"],)
        facts = {"index": index if Ellipsis in index else (*index, ...)}  # an array, not a scalar
    return where_in(node.target.numpy(whole, **facts), whole)


def holds_nodes(node: Node) -> bool:
    """Whether its parameters depend on data."""
    return any(n not in node.args for n in node.all_input_nodes)


def getitem(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    parts = node.kwargs.get("index")
    simple = all(
        isinstance(p, (int, slice)) or p is None or p is Ellipsis for p in (parts if type(parts) is tuple else (parts,))
    )
    return (
        view(node, meta, [find(a) for a in node.args]) if small and simple and set(node.kwargs) == {"index"} else None
    )


def write_view(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    facts = dict(node.kwargs)
    old, new = (find(a) for a in node.args)
    if not small or facts.get("layout") is not None or holds_nodes(node) or not isinstance(old, Value):
        return None
    if not (isinstance(new, Value) or rows.is_number(new)):
        return None
    found = region(meta, facts.get("index", ...), facts.get("steps", ()))
    if found is None or (isinstance(new, Value) and (not fits(new, found[2]) or rounds(new, meta))):
        return None
    return [Write(meta.shape, meta.dtype, (old, new), (found,))]


def region(meta: Meta, index: Any, steps: Sequence[tuple] = ()) -> tuple[int, tuple, tuple] | None:
    """(offset, strides, shape) of what a basic index picks of a dense array, or of a view of it; else None."""
    parts = index if type(index) is tuple else (index,)
    if not all(isinstance(p, (int, slice)) or p is None or p is Ellipsis for p in parts):
        return None
    whole = onp.empty(meta.shape, meta.dtype)
    at = whole
    for row, params in steps:
        at = row.numpy(at, **params)
    return where_in(at[(*parts, ...)] if Ellipsis not in parts else at[parts], whole)


def index_add(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    g, found = find(node.args[0]), None
    if small and isinstance(g, Value) and g.dtype == meta.dtype and not holds_nodes(node):
        found = region(meta, node.kwargs["index"])
    return None if found is None or g.shape != found[2] else [Write(meta.shape, meta.dtype, (0, g), (found,))]


def rounds(new: Value, meta: Meta) -> bool:
    """Whether floats become integers: out of range it is undefined in LLVM, and NumPy warns."""
    return new.dtype.kind == "f" and meta.dtype.kind in "iu"


def fits(new: Value, shape: tuple) -> bool:
    if new.dtype.kind == "f" and len(new.shape) > len(shape):
        return False
    return len(new.shape) <= len(shape) and onp.broadcast_shapes(new.shape, shape) == shape


# ------------------------------------------------------------------ joining
def joined(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    values = [find(a) for a in node.args]
    if not small or not all(isinstance(v, Value) for v in values) or not set(node.kwargs) <= {"axis"} or not meta.size:
        return None
    axis, stack = node.kwargs.get("axis", 0), node.target.name == "stack"
    if type(axis) is not int:
        return None
    whole = onp.empty(meta.shape, meta.dtype)
    axis %= len(meta.shape)
    parts, start = [], 0
    for v in values:
        n = 1 if stack else v.shape[axis]
        at = whole[(slice(None),) * axis + (start if stack else slice(start, start + n), ...)]
        found = where_in(at, whole)
        if found is None:
            return None
        parts.append(found)
        start += n
    return [Write(meta.shape, meta.dtype, (None, *values), tuple(parts))]


def roll(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    """Its two parts, each written where the other one was, along one axis."""
    x, shift, axis = find(node.args[0]), node.kwargs["shift"], node.kwargs.get("axis")
    alone = isinstance(x, Value) and prod(x.shape) and type(shift) is int and (axis is not None or len(x.shape) == 1)
    if not (small and alone) or type(axis) not in (int, type(None)):
        return None
    lead, n = (slice(None),) * ((axis or 0) % len(x.shape)), x.shape[axis or 0]
    s = shift % n
    if s == 0:
        return same(node, meta, find, small)
    whole, target = sample(x), onp.empty(meta.shape, meta.dtype)
    views, parts = [], []
    for start, cut in ((0, slice(n - s, n)), (s, slice(0, n - s))):
        offset, strides, shape = where_in(whole[(*lead, cut)], whole)
        views.append(View(shape, x.dtype, (x,), offset, strides))
        parts.append(where_in(target[(*lead, slice(start, start + cut.stop - cut.start))], target))
    return [*views, Write(meta.shape, meta.dtype, (None, *views), tuple(parts))]


# ------------------------------------------------------------------ reductions and products
def reduced_axes(node: Node, source: Value) -> tuple[int, ...] | None:
    facts = {k: v for k, v in node.kwargs.items() if v is not None and v is not False}
    if node.target.name == "sum_to":
        shape = node.kwargs["shape"]
        extra = len(source.shape) - len(shape)
        ones = (i + extra for i, n in enumerate(shape) if n == 1 and source.shape[i + extra] != 1)
        return (*range(extra), *ones)
    if not set(facts) <= {"axis", "keepdims", "dtype"}:
        return None
    axis = facts.get("axis")
    if axis is None:
        axis = tuple(range(len(source.shape)))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % len(source.shape) for a in axes) if source.shape else None


def reduction(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    source = find(node.args[0])
    if len(node.args) != 1 or not isinstance(source, Value) or not known(source.dtype) or not prod(source.shape):
        return None
    axes = reduced_axes(node, source)
    if axes is None:
        return None
    name = node.target.name
    if not axes:
        return [Map(meta.shape, meta.dtype, (source,), lambda code, x: x)] if source.shape == meta.shape else None
    count = prod(source.shape[a] for a in axes) if name == "mean" else 1
    if (count > 1 and meta.dtype.kind != "f") or (name in ("any", "all") and source.dtype.kind != "b"):
        return None
    how = REDUCTIONS.get(name, "sum")
    if (meta.dtype.kind == "b" and how not in ("any", "all")) or rounds(source, meta):
        return None
    return [Reduce(meta.shape, meta.dtype, (source,), how, axes, count)]


def norm(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    x = find(node.args[0])
    if not small or not isinstance(x, Value) or x.dtype != meta.dtype or not prod(x.shape):
        return None
    axes = reduced_axes(node, x)
    if not axes:
        return None
    emit = [rows.elementwise(name, [x.dtype] * n, {}, x.dtype, small) for name, n in (("multiply", 2), ("sqrt", 1))]
    if None in emit:
        return None
    squares = Map(x.shape, x.dtype, (x, x), emit[0])
    total = Reduce(meta.shape, meta.dtype, (squares,), "sum", axes)
    return [squares, total, Map(meta.shape, meta.dtype, (total,), emit[1])]


def matmul(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    a, b = (find(x) for x in node.args)
    if not small or not (isinstance(a, Value) and isinstance(b, Value)) or meta.dtype.kind != "f":
        return None
    if len(a.shape) > 2 or len(b.shape) > 2 or not meta.size or not a.shape[-1]:
        return None
    if meta.size * a.shape[-1] > FEW and (called := called_product(meta, a, b)) is not None:
        return called
    if meta.size * a.shape[-1] > PRODUCT:
        return None
    # a[..., k, None] * b[k, ...], summed over k
    k, axis = a.shape[-1], len(a.shape) - 1
    space = (*a.shape[:-1], k, *b.shape[1:])
    lie_a, lie_b = sample(a).strides, sample(b).strides
    left = View(space, a.dtype, (a,), 0, (*lie_a, *((0,) * (len(b.shape) - 1))))
    right = View(space, b.dtype, (b,), 0, ((0,) * axis + lie_b))
    emit = rows.elementwise("multiply", [a.dtype, b.dtype], {}, meta.dtype, small)
    if emit is None:  # of float16, say
        return None
    product = Map(space, meta.dtype, (left, right), emit)
    return [left, right, product, Reduce(meta.shape, meta.dtype, (product,), "sum", (axis,))]


def called_product(meta: Meta, a: Value, b: Value) -> list[Value] | None:
    """A product that NumPy's BLAS computes on one thread, in the program; None if it cannot."""
    blas = products.openblas()
    if blas is None or not (a.dtype == b.dtype == meta.dtype) or meta.size * a.shape[-1] > products.LEAST:
        return None
    steps: list[Value] = []
    operands, lying = [], []
    for x, shape in ((a, (-1, a.shape[-1])), (b, (b.shape[0], -1))):
        matrix = sample(x)
        matrix = matrix if matrix.ndim == 2 else matrix.reshape(shape)
        if products.layout(matrix) is None:
            x = Map(x.shape, x.dtype, (x,), lambda code, x: x)
            matrix = onp.empty(matrix.shape, x.dtype)
            steps.append(x)
        operands.append(x)
        lying.append(products.layout(matrix))
    (flag_a, lead_a), (flag_b, lead_b) = lying
    (m, k), n = (meta.size // matrix.shape[1], a.shape[-1]), matrix.shape[1]
    bits = 8 * ctypes.sizeof(blas.integer)
    place, flags, sizes = blas.places[meta.dtype.char], (flag_b + flag_a).decode(), (n, m, k, lead_b, lead_a, n)
    return [*steps, Product(meta.shape, meta.dtype, tuple(operands), place, bits, flags, sizes)]


def solved(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    """Linear equations, or, with the identity on their right, an inverse."""
    blas, reads = products.openblas(), [find(x) for x in node.args]
    if not small or blas is None or not blas.gesv or not meta.size or not all(isinstance(x, Value) for x in reads):
        return None
    a, n, vector = reads[0], reads[0].shape[-1], len(meta.shape) == 1
    if len(a.shape) != 2 or len(meta.shape) > 2 or n > SOLVED or any(x.dtype != FLOAT64 for x in reads):
        return None
    turned = lambda x: View(x.shape[::-1], x.dtype, (x,), 0, sample(x).strides[::-1])
    sides = [x if vector and x is not a else turned(x) for x in reads]
    solution = Solve(meta.shape[::-1], meta.dtype, tuple(sides), blas.gesv, 8 * ctypes.sizeof(blas.integer))
    steps = [*[s for s, x in zip(sides, reads) if s is not x], solution]
    return steps if vector else [*steps, back := turned(solution), Map(meta.shape, meta.dtype, (back,), lambda _, x: x)]


def same(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    source = find(node.args[0])
    return [Map(meta.shape, meta.dtype, (source,), lambda code, x: x)] if isinstance(source, Value) else None


def filled(node: Node, meta: Meta, find: Find, small: bool) -> list[Value] | None:
    return [full(meta, FILLED[node.target.name])]


SPECIAL: dict[str, Callable] = {
    **dict.fromkeys([*REDUCTIONS, "sum_to"], reduction),
    **dict.fromkeys(["concatenate", "stack"], joined),
    **dict.fromkeys(["zeros_like", "ones_like"], filled),
    **dict.fromkeys(["copy", "stop_gradient"], same),
    "conjugate": same,  # no complex number can be compiled
    "index_add": index_add,
    "getitem": getitem,
    "write_view": write_view,
    "matmul": matmul,
    "linalg.norm": norm,
    **dict.fromkeys(["linalg.inv", "linalg.solve"], solved),
    "roll": roll,
}


def placeholder(node: Node) -> Input:
    meta, weak = node.meta["value"], node.meta.get("weak", False)
    # a number of Python's is a double beside arrays of floats (`suits_weak`), an integer of any size too
    return Input(tuple(meta.shape), onp.dtype(float) if weak else meta.dtype, (), weak)
