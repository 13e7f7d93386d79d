"""Compilation: groups of nodes become calls of machine code.

Small arrays: all that can be compiled and run together is one call. Large ones: the elementwise nodes of one shape,
with the reductions that end them, are one pass over memory, shared by all cores. The rest of the graph stays as it is.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as onp

from ..cpu import products
from ..graph.aliasing import is_write
from ..graph.effects import is_loop, pick
from ..graph.graph import Graph, Node
from ..llvm.kernels import Frame, Kernel, Large, Small, assemble
from ..llvm.lowering import lower, placeholder
from ..llvm.steps import Framed, Input, Map, Solve, Value, View
from ..passes.constants import Known, add_constant
from ..passes.cost import operations
from ..passes.fusion import Cluster, gather, in_order, unbroadcast
from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.value import Host
from .tiling import tile
from .unrolled import gather_parts, gather_steps, large_product, row_name

LARGE = 1 << 14  # elements from which an array is worth a pass of its own, on all cores
MANY = 1 << 16  # elements of a constant from which it matters what memory it takes
LONG = 1e300  # a number by which zeros stay zeros
ROW = 64  # elements of a row of a sum of large parts, from which machine code adds them up
SHORT = 1 << 12  # elements of a row up to which it matters that NumPy begins anew for each
# Small arrays beside large products: to compile takes longer than it saves in a thousand runs where they are less than
CALL, ELEMENT = 2e-6, 1e-9  # this many seconds in NumPy, of a call and of each element,
FAST = 2_000_000  # characters of IR that become machine code in a second
SHARE, SPEED = 0.01, 1e11  # this part of what all operations take at so many a second.


class NoTime(Exception):
    """Machine code would come too late."""


def compile_native(graph: Graph, left: float | None = None) -> Graph:
    """The graph with what can be compiled in machine code; sums and elementary functions may differ by a few ulp.

    left    the seconds that are left for it. Raises NoTime where it would take more
    """
    shaped = lambda n: isinstance(n.target, Primitive) and isinstance(n.meta.get("value"), Meta)  # no Python object
    work = sum(operations(n) or 0 for n in graph.nodes if shaped(n) and not is_loop(n))
    overwrite(graph)
    repeat_products(graph)
    repeat_numbers(graph)
    gather_steps(graph)
    gather_parts(graph, LARGE, begins)
    widen(graph)
    add_products(graph)
    kernels = []
    for group in gather(graph, space_of):
        if group.shape is None and seconds(group.nodes) < SHARE * work / SPEED:
            continue
        kernel = replace(graph, group)
        if kernel is not None:
            kernels.append(kernel)
    if not kernels:
        return graph
    frame(graph)
    length = sum(len(k.text.body) for k in kernels if k.text is not None)
    if left is not None and length / FAST > left:
        raise NoTime
    assemble(kernels)
    tile(graph)
    graph.eliminate_dead_code()
    return in_order(graph)


def overwrite(graph: Graph) -> None:
    """A write of a whole array is the array written, where nobody else has it."""
    for node in graph.nodes:
        if getattr(node.target, "name", "") != "write_view" or node.kwargs.get("steps") or len(node.args) != 2:
            continue
        new = node.args[1]
        fresh = isinstance(new, Node) and isinstance(new.target, Primitive) and not new.target.view
        whole = fresh and node.kwargs.get("index", ...) is ... and len(new.users) == 1
        if whole and new.meta.get("value") == node.meta.get("value"):
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def repeat_products(graph: Graph) -> None:
    """A product with a large matrix of rows, or columns, that are all the same is that of one of them, repeated: the
    gradient of a sum or mean of a product."""
    known = Known(graph, attributes=False)
    found: dict[tuple[Node, int], Node] = {}  # (matrix, axis along which it repeats) -> its first row or column
    for node in graph.nodes:
        if row_name(node) != "matmul" or not large_product(node):
            continue
        for axis, x in enumerate(node.args):
            value = known(x) if x.op == "get_attr" and (x, axis) not in found else None
            if value is not None and (value == (first := value[:1] if axis == 0 else value[:, :1])).all():
                with graph.inserting_before(node):
                    found[x, axis] = add_constant(graph, first, "repeated")
            if (x, axis) in found:
                one, *repeated = repeat(graph, node, axis, found[x, axis])
                found.update({(n, axis): one for n in repeated})
                break
    graph.eliminate_dead_code()


def repeat(graph: Graph, node: Node, axis: int, part: Node) -> tuple[Node, Node, Node]:
    """The product with one row or column, that one repeated, as a view, and a copy of it: one of these stands for the
    node."""
    meta = node.meta["value"]
    one_of = tuple([1 if k == axis else n for k, n in enumerate(meta.shape)])
    with graph.inserting_before(node):
        args = tuple([part if k == axis else x for k, x in enumerate(node.args)])
        one = graph.create_node("call_function", TABLE["matmul"], args)
        wide = graph.create_node("call_function", TABLE["broadcast_to"], (one,), {"shape": meta.shape})
        dense = graph.create_node("call_function", TABLE["copy"], (wide,), {"order": "C"})
    one.meta["value"] = Meta(one_of, meta.dtype)
    wide.meta.update(node.meta)
    dense.meta.update(node.meta)
    for user in list(node.users):  # others may want the memory
        user.replace_input_with(node, wide if getattr(user.target, "elementwise", False) else dense)
    return one, wide, dense


def repeat_numbers(graph: Graph) -> None:
    """A large constant that is one number throughout is that number, repeated, where it is copied or its elements are
    combined with others: memory that is not read need not be in the cache."""
    known = Known(graph, attributes=False)
    for node in graph.find_nodes(op="get_attr"):
        users, value = [u for u in node.users if spreads(u, node)], known(node)
        if not users or not isinstance(value, Host) or value.size < MANY or not any(value.strides):
            continue
        if not is_number(value):
            continue
        with graph.inserting_before(node.next):
            one = add_constant(graph, value[(slice(1),) * value.ndim], "repeated")
            wide = graph.create_node("call_function", TABLE["broadcast_to"], (one,), {"shape": value.shape})
        wide.meta.update(node.meta)
        for user in users:
            user.replace_input_with(node, wide)
    graph.eliminate_dead_code()


def spreads(user: Node, constant: Node) -> bool:
    """Whether a node does as well with a constant whose memory has each of its numbers but once."""
    if is_loop(user):
        return all(k in user.target.code.places for k, x in enumerate(user.args) if x is constant)
    copies = user.target is TABLE["copy"] and user.kwargs == {"order": "C"}
    return copies or bool(getattr(user.target, "elementwise", False))


def is_number(value: onp.ndarray) -> bool:
    """Whether all elements are one number, zeros of one sign."""
    first = value.flat[0]
    if value.dtype.kind not in "biuf" or not (value == first).all():
        return False
    return bool(first) or value.dtype.kind != "f" or bool((onp.signbit(value) == onp.signbit(first)).all())


def add_products(graph: Graph) -> None:
    """An argument plus (or minus) a multiple of a product of large matrices is one call of BLAS, which adds."""
    for node in graph.nodes if products.can_update() else ():
        sign = {"add": 1.0, "subtract": -1.0}.get(row_name(node))
        if sign is None or len(node.args) != 2 or not isinstance(node.args[0], Node) or "value" not in node.meta:
            continue
        c, term = node.args
        scale: Any = 1.0
        product = term
        if row_name(term) == "multiply" and len(term.users) == 1:
            numbers = [x for x in term.args if type(x) in (int, float) or (isinstance(x, Node) and x.meta.get("weak"))]
            if len(numbers) == 1:
                scale, product = numbers[0], term.args[term.args[0] is numbers[0]]
        alike = [n for n in (c, product) if isinstance(n, Node) and n.meta.get("value") == node.meta["value"]]
        if c.op != "placeholder" or len(alike) < 2:
            continue
        summed = product.target is products.update and product.args[0] is None
        if len(product.users) == 1 and (summed or (row_name(product) == "matmul" and large_product(product))):
            node.target, node.args = products.update, (c, *product.args[summed:])
            node.kwargs = {"scale": scale, "sign": sign}
    graph.eliminate_dead_code()


def frame(graph: Graph) -> None:
    """A large result that is only written into new zeros, or into most of an array, is computed there."""
    for node in graph.nodes:
        if not is_write(node) or node.kwargs.get("steps") or node.kwargs.get("layout") is not None:
            continue
        old, new = node.args
        if not isinstance(old, Node) or not isinstance(new, Node) or len(new.users) != 1:
            continue
        zeros = old.op == "call_function" and getattr(old.target, "__name__", "") == "zeros" and len(old.users) == 1
        meta, index = node.meta["value"], node.kwargs.get("index")
        kernel = new.args[0].target if new.target is pick else None
        parts = index if type(index) is tuple else (index,)
        if not isinstance(kernel, Large) or len(parts) != len(meta.shape) or not all(type(p) is slice for p in parts):
            continue
        parts = tuple(slice(*p.indices(n)) for p, n in zip(parts, meta.shape))
        inner = tuple(p.stop - p.start if p.step == 1 else -1 for p in parts)
        call = new.args[0]
        if inner != new.meta["value"].shape or new.meta["value"].dtype != meta.dtype:
            continue
        if not zeros and (kernel.frames or len(kernel.results) > 1 or 2 * prod(inner) < meta.size or call.kwargs):
            continue
        kernel.frames[new.args[1]] = Frame(meta.shape, parts, 0 if zeros else None)
        assert kernel.planned()
        if not zeros:
            call.args = (*call.args, old)
        node.replace_all_uses_with(new)
        new.meta["value"] = meta
        graph.erase_node(node)
        if zeros:
            graph.erase_node(old)


def lying(node: Node) -> Any:
    """An array that lies in memory as a node's value will, as far as is known: dense, or a view of what is dense."""
    meta = node.meta["value"]
    if node.op == "get_attr" and type(node.meta.get("constant")) is Host:
        return node.meta["constant"]
    one = isinstance(node.target, Primitive) and node.target.view and node.target.name != "sum_to"
    if (
        one
        and len(node.args) == len(node.all_input_nodes) == 1
        and type(node.all_input_nodes[0].meta.get("value")) is Meta
    ):
        seen = node.target.numpy(lying(node.all_input_nodes[0]), **node.kwargs)
        if onp.shape(seen) == meta.shape:
            return onp.asarray(seen)
    return onp.empty(meta.shape, meta.dtype)


# ------------------------------------------------------------------ finding groups
def space_of(node: Node) -> tuple[Any, bool] | None:
    """(the shape of the large group a node belongs to, or None: the small one; whether it reduces), or None."""
    meta = node.meta.get("value")
    if type(meta) is not Meta or node.op not in ("call_function", "get_attr"):
        return None
    sizes = [n.meta["value"] for n in node.all_input_nodes if type(n.meta.get("value")) is Meta]
    if len(sizes) != len(node.all_input_nodes):
        return None
    small = all(m.size < LARGE for m in (meta, *sizes))
    found = lower(node, lambda a: placeholder(a) if isinstance(a, Node) else a, small)
    if found is None:
        return None
    if small:
        return None, False
    last = found[-1]
    if isinstance(last, Map):
        return (last.shape, False) if last.shape and last.reads else None
    return last.reads[0].shape, True


def seconds(nodes: list[Node]) -> float:
    """What NumPy takes for small arrays, about."""
    return sum(CALL + ELEMENT * n.meta["value"].size for n in nodes if n.op == "call_function")


# ------------------------------------------------------------------ replacing them
def replace(graph: Graph, group: Cluster) -> Kernel | None:
    """Put one call in the place of a group; None if it is better left alone."""
    small = group.shape is None
    nodes = group.nodes
    again = handed_on(nodes) if small else set()  # these stay in the graph too, for those outside who read them
    own = set(nodes) - again
    inside = set(own)
    for n in reversed(nodes):
        if any(u in inside for u in n.users):
            inside.add(n)
    nodes = [n for n in nodes if n in inside]
    worth = [n for n in nodes if n in own and n.op == "call_function"]
    if not worth or (len(worth) < 2 and not group.reductions and (small or not slow_alone(worth[0]))):
        return None
    results = [n for n in nodes if n in own and any(u not in own for u in n.users)]
    known: dict[Any, Value] = {}
    sources: list[Node] = []
    inputs: list[Value] = []

    def find(a: Any) -> Any:
        if not isinstance(a, Node):
            return a
        a = a if small else unbroadcast(a)
        if a not in known:
            starts = None if small else begins(a)
            source = a if starts is None else a.args[0]
            meta = source.meta["value"]
            known[a] = placeholder(a) if starts is None else Framed(meta.shape, meta.dtype, starts=starts)
            sources.append(source)
            inputs.append(known[a])
        return known[a]

    values: list[Value] = []
    solved: list[Node] = []
    for n in nodes:
        steps = lower(n, find, small)
        assert steps is not None
        known[n] = steps[-1]
        values += steps
        solved += [n for step in steps if isinstance(step, Solve)]
    wanted = [known[n] for n in results]
    if any(isinstance(w, (View, Input)) for w in wanted):
        return None
    kernel = (Small if small else Large)([*inputs, *values], inputs, wanted, [n.name for n in worth])
    if isinstance(kernel, Small):
        kernel.solved = solved
    if isinstance(kernel, Large):
        kernel.usual = tuple(lying(s).strides for s in sources)
    if not kernel.planned():
        return None
    with graph.inserting_before(nodes[-1]):  # they are in the graph's order
        call = graph.create_node("call_function", kernel, tuple(sources), name="compiled")
        call.meta["value"] = tuple(n.meta["value"] for n in results)
        for i, n in enumerate(results):
            item = graph.create_node("call_function", pick, (call, i), name=n.name)
            item.meta.update(n.meta)
            n.replace_all_uses_with(item)
    for n in reversed([n for n in nodes if n in own]):
        graph.erase_node(n)
    return kernel


def begins(node: Any) -> tuple[int, ...] | None:
    """Where the part of an array begins that is zero around it, if a kernel can read it so: most of a large array."""
    meta = node.meta.get("value") if isinstance(node, Node) else None
    if row_name(node) != "index_add" or "handling" in node.meta or type(meta) is not Meta:
        return None
    if len(node.args) != 1 or node.all_input_nodes != [*node.args]:  # a number alone, or a place that is computed
        return None
    index, part = node.kwargs["index"], node.args[0].meta.get("value")
    parts = index if type(index) is tuple else (index,)
    if type(part) is not Meta or part.dtype != meta.dtype or meta.dtype.char not in "fd" or 2 * part.size < meta.size:
        return None
    if meta.size < LARGE or 0 in lying(node.args[0]).strides:
        return None
    if not all(type(p) is slice and p.step in (None, 1) for p in parts) or meta.shape[-1] < ROW or 1 in meta.shape:
        return None
    parts = (*parts, *[slice(None)] * (len(meta.shape) - len(parts)))
    found = [p.indices(n) for p, n in zip(parts, meta.shape)]
    return tuple([f[0] for f in found]) if tuple([f[1] - f[0] for f in found]) == part.shape else None


def widen(graph: Graph) -> None:
    """A part of an array that a kernel reads from zeros is taken from there before its sign or its scale changes: then
    that is done where it is added, and several places have one part."""
    for node in graph.nodes:
        inner = node.args[0] if begins(node) is not None else None
        x = next((a for a in inner.args if isinstance(a, Node)), None) if isinstance(inner, Node) else None
        scales = [a for a in inner.args if not isinstance(a, Node)] if isinstance(inner, Node) else []
        linear = scales == [] if row_name(inner) == "negative" else row_name(inner) == "multiply" and len(scales) == 1
        if not linear or inner.kwargs or "handling" in inner.meta or not all(abs(a) < LONG for a in scales):
            continue
        if x is None or x.meta.get("value") != inner.meta["value"]:
            continue
        with graph.inserting_before(node):
            wide = graph.create_node("call_function", node.target, (x,), node.kwargs)
            args = tuple([wide if a is x else a for a in inner.args])
            new = graph.create_node("call_function", inner.target, args)
        for n in (wide, new):
            n.meta.update(node.meta)
        node.replace_all_uses_with(new)
    graph.eliminate_dead_code()


def slow_alone(node: Node) -> bool:
    """Whether NumPy takes long for an elementwise node: it asks in passes of their own whether zeros stay zeros, or
    repeats a row or a column of float64, for which its loop begins anew in each short row."""
    meta = node.meta["value"]
    if row_name(node).startswith("npx.strong_"):
        return True
    shapes = [unbroadcast(a).meta["value"].shape for a in node.all_input_nodes]
    return meta.dtype.char == "d" and meta.shape[-1] <= SHORT and any(s and s != meta.shape for s in shapes)


def handed_on(nodes: list[Node]) -> set[Node]:
    """Constants and views of a small group that somebody outside reads: they cost nothing there."""
    found: set[Node] = set()
    inside = set(nodes)
    for n in reversed(nodes):
        free = n.op == "get_attr" or (isinstance(n.target, Primitive) and n.target.view and n.target.name != "sum_to")
        if free and any(u not in inside or u in found for u in n.users):
            found.add(n)
    return found
