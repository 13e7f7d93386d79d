"""What the backward walk does to cotangents: accumulate, un-broadcast, restore dtypes, and say what has no rule."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as onp

from ... import errors
from ..arrays.array import replay
from ..arrays.saved import FIXED
from ..arrays.writing import WRITE_VIEW, copy_in_layout, layout_of, shown
from ..cpu import kernels
from ..cpu.memory import empty
from ..cpu.products import repeated
from ..rows.dispatch import bind, describe
from ..rows.primitive import TABLE, Meta, Primitive, primitive
from ..rows.state import watched
from ..rows.value import Buffer, Host, Tracer, concrete, owner

new = object.__new__
INEXACT = "fc"
OBJECTS = (
    "an array of Python objects, through which no gradient flows; np.vectorize(f)(x) has the numbers, and gradients, "
    "that np.frompyfunc(f, 1, 1)(x) has as objects"
)


def accumulate(grads: list, p: int, g: Any, owned: set) -> None:
    """grads[p] += g, in place where the buffer is ours."""
    old = grads[p]
    if p in owned and not isinstance(g, (Tracer, Buffer)):
        onp.add(old, g, out=old)
        return
    grads[p] = total = old + g
    if type(total) is Host:
        owned.add(p)
    else:
        owned.discard(p)


def buffer_of_parts(nodes: list, grads: list, owned: set, p: int) -> onp.ndarray:
    """The buffer that parts of node p's cotangent are added to: its own or, of a view, that view of the buffer of what
    it shows, so that parts read through views cost what the parts cost."""
    if shows_another(nodes, grads, p) and not isinstance(grads[nodes[p][2][0]], (Tracer, Buffer)):
        row, params, (q, *_), *_ = nodes[p]
        base = buffer_of_parts(nodes, grads, owned, q)
        view = row.numpy(base, **params)
        if type(view) is Host and owner(view) is owner(base):
            view.flags.writeable = True
            return view
    if p not in owned:
        *_, shape, dtype = nodes[p]
        grads[p] = onp.zeros(shape, dtype) if grads[p] is None else onp.array(grads[p])
        owned.add(p)
    return grads[p]


def shows_another(nodes: list, grads: list, p: int) -> bool:
    """Whether node p, which has no cotangent yet, selects elements of another one."""
    row, params, parents, *_, dtype = nodes[p]
    if grads[p] is not None or row is None or not row.selects or parents[0] < 0:
        return False
    return nodes[parents[0]][6] == dtype and not _placed([params.get("index")])


def part_added(nodes: list, grads: list, owned: set, made: set, p: int, g: Any, row: Primitive, params: dict) -> bool:
    """Add a part to node p's cotangent, as `buffer_of_parts` has it added, where outer tapes follow the part. Whether
    that was done."""
    if type(g) is not Tracer or watched() or _placed([params.get("index")]):
        return False
    steps: list = []
    while shows_another(nodes, grads, p):
        steps.insert(0, nodes[p][:2])
        p = nodes[p][2][0]
    old, (*_, shape, dtype) = grads[p], nodes[p]
    if not _on_tapes(g) or not _on_tapes(old):
        return False
    start = onp.zeros(shape, dtype) if old is None else old
    if steps and owner(shown(concrete(start), steps)) is not owner(concrete(start)):
        return False
    donate = old is None or p in owned or p in made
    grads[p] = bind(ADD_PART, (start, g), {"steps": tuple(steps), "row": row, "params": params, "donate": donate})
    owned.discard(p)
    made.add(p)
    return True


def _on_tapes(x: Any) -> bool:
    """Whether tapes alone follow what are NumPy's numbers."""
    while type(x) is Tracer:
        if not hasattr(x.trace, "nodes"):
            return False
        x = x.value
    return x is None or isinstance(x, (Host, onp.generic))


def _add_part(old: Any, g: Any, steps: tuple, row: Primitive, params: dict, donate: bool = False) -> onp.ndarray:
    buffer = old if donate else onp.array(old)
    view = shown(buffer, steps)
    if steps:
        view.flags.writeable = True
    row.accumulate(view, g, view, **params)
    return buffer


def _part_back(
    i: int, h: Any, y: Any, old: Any, g: Any, steps: tuple, row: Primitive, params: dict, donate: bool = False
) -> Any:
    return h if i == 0 else bind(row, (replay(h, steps),), params)


# A cotangent, and a part of it that was read as `row` reads it, added where it was read.
ADD_PART = primitive(
    "add_part",
    _add_part,
    vjp=_part_back,
    saves="",
    shape=lambda metas, params: metas[0],
    samples=lambda: [
        (
            (onp.zeros((2, 3)), onp.ones(3)),
            {"steps": (), "row": TABLE["getitem"], "params": {"index": 1}, "donate": False},
        )
    ],
)


def whole(nodes: list, n: int) -> tuple[Any, Any]:
    """(arrays, y) as a node's rules receive them: a Meta for what was not saved."""
    row, _, parents, arrays, y, shape, _ = nodes[n]
    if y is None and shape is not None:
        y = meta_of(nodes[n])
    if arrays is None:
        arrays = [meta_of(nodes[p]) for p in parents]
    elif row.saves == "" or row.saves == "out":
        arrays = [meta_of(nodes[p]) if a is None and p >= 0 else a for a, p in zip(arrays, parents, strict=True)]
    return arrays, y


def meta_of(node: tuple) -> Meta:
    meta = new(Meta)
    meta.shape, meta.dtype = node[5], node[6]
    return meta


def numbers_only(arrays: Any, params: dict) -> bool:
    """Whether a rule may work on NumPy arrays in place: nothing is traced by an outer trace, no capture is watching."""
    if watched():
        return False
    where = [params.get("index"), params.get("steps")]
    return not any(isinstance(a, (Tracer, Buffer)) for a in arrays) and not _placed(where)


def _placed(index: Any) -> bool:
    if type(index) is dict:
        index = list(index.values())
    return isinstance(index, (Tracer, Buffer)) or (type(index) in (tuple, list) and any(map(_placed, index)))


def split_write(
    g: onp.ndarray, ours: bool, steps: tuple = (), index: Any = ..., layout: Any = None
) -> tuple[Any, onp.ndarray]:
    """(cotangent of what a write wrote, cotangent of the array before it); the latter is g itself if g is ours."""
    if steps and layout_of(g) != layout:
        g, ours = copy_in_layout(g, layout), True
    part = WRITE_VIEW.vjp(1, g, None, None, None, steps=steps, index=index, layout=layout)
    if ours:
        part = onp.array(part)
    return part, WRITE_VIEW.numpy(g, 0, steps, index, layout, donate=ours)


def zeros_of(like: Any) -> Any:
    return onp.zeros(like.shape, like.dtype) if hasattr(like, "dtype") else None


def unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
    """g summed down to `shape`, or spread out to it where a rule gave a smaller one. Raises where neither fits."""
    extra = len(g.shape) - len(shape)
    if extra < 0 or any(a != b and b != 1 for a, b in zip(g.shape[extra:], shape, strict=True)):
        return bind(TABLE["broadcast_to"], (g,), {"shape": shape})
    return bind(TABLE["sum_to"], (g,), {"shape": shape})


def restore(g: Any, dtype: Any, row: Primitive, i: int) -> Any:
    """g in the dtype of the argument it belongs to: a real argument receives the real part."""
    if dtype.kind == "O":
        raise errors.NotDifferentiableError(f"a gradient flowed into np.{row.name} of {OBJECTS}")
    if dtype.kind not in INEXACT:
        raise errors.NotDifferentiableError(
            f"a gradient flowed into argument {i} of np.{row.name}, an array of {dtype}; "
            "differentiate with respect to floats: pass x.astype(float)"
        )
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = bind(TABLE["real"], (g,), {})
    return g if g.dtype == dtype else bind(TABLE["astype"], (g,), {"dtype": dtype})


def no_rule(row: Primitive, i: int, shape: tuple, dtype: Any) -> errors.NotDifferentiableError:
    host = getattr(row.numpy, "host", None)
    ufunc = getattr(host, "__self__", host)
    if isinstance(ufunc, onp.ufunc) and {*"".join(ufunc.types)} <= {*"O->"}:
        return errors.NotDifferentiableError(f"np.{row.name} gives {OBJECTS}")
    module = "minnp" if row.name.startswith("scipy.") else "np"
    return errors.NotDifferentiableError(
        f"{module}.{row.name} has no gradient for argument {i} ({describe(Meta(shape, dtype))}); give it one with "
        "minnp.custom_vjp, or stop the gradient with np.stop_gradient"
    )


def followed(row: Primitive, y: Any) -> Any:
    """A result without a dtype as a derivative follows it: a Python number as NumPy's.

    Raises for numbers in any other kind of result (a dict, a named tuple, an object): they would pass for constants.
    """
    if type(y) is float or type(y) is complex:
        return onp.asarray(y)[()]
    if carries(y):
        raise errors.NotDifferentiableError(
            f"np.{row.name} returns its numbers in {type(y).__name__}, through which no gradient flows; "
            "give it one with minnp.custom_vjp, or stop the gradient with np.stop_gradient"
        )
    return y


def all_followed(row: Any, ys: Any, wanted: list[bool]) -> tuple[Any, list[bool]]:
    """(the results of a row with several as a derivative along the arguments that are `wanted` follows them, which of
    them it follows)."""
    if row.name == "loop":
        ys, depends = row.followed(ys, wanted)
    else:
        ys, depends = type(ys)([y if hasattr(y, "dtype") else followed(row, y) for y in ys]), [True] * len(ys)
    return ys, [d and hasattr(y, "dtype") and y.dtype.kind in INEXACT for y, d in zip(ys, depends, strict=True)]


def carries(y: Any, depth: int = 3) -> bool:
    """Whether there are float or complex numbers in a result, or may be: in an object that does not show what it
    holds."""
    if isinstance(y, (float, complex)):
        return True
    if hasattr(y, "dtype"):
        return getattr(y.dtype, "kind", "O") in INEXACT
    if depth == 0 or type(y) in FIXED:
        return False
    if isinstance(y, (tuple, list)):
        return any(carries(v, depth - 1) for v in y)
    held = y if isinstance(y, dict) else getattr(y, "__dict__", None)
    return any(carries(v, depth - 1) for v in held.values()) if isinstance(held, dict) else _opaque(y)


def _opaque(y: Any) -> bool:
    """Whether an object of another library's C code (a geometry) may hold numbers: one of NumPy's, or of Python's own
    classes but for its numbers, does not."""
    module = type(y).__module__.partition(".")[0]
    return isinstance(y, numbers.Number) or module not in ("numpy", "builtins", "datetime")


def private(value: Any, memory: Any, copies: dict) -> Any:
    """The saved value, or the values in a tuple or list, with memory of its own if it showed `memory`."""
    if type(value) in (tuple, list):
        return type(value)([private(v, memory, copies) for v in value])
    base = concrete(value)
    if not isinstance(base, Host) or owner(base) is not memory:
        return value
    if id(value) not in copies:  # the original is kept beside its copy, so that its id stays its own
        if type(value) is Tracer:
            copy = Tracer(value.trace, private(value.value, memory, copies), value.node)
        else:
            copy = value.copy(order="K")
        copies[id(value)] = (value, copy)
    return copies[id(value)][1]


# ------------------------------------------------------------------ what the rules of common operators share
def negated(g: Any, b: Any) -> Any:
    """-g for the argument b, summed first where b was broadcast: that leaves less to negate."""
    return -unbroadcast(g, b.shape) if hasattr(b, "shape") and b.shape != g.shape else -g


def twice_product(g: Any, x: Any) -> Any:
    """2 g x; of large arrays in one pass where g was broadcast, as a sum's is, else in two and without a temporary."""
    if type(g) is not Host or type(x) is not Host or g.size < 1 << 14 or g.shape != x.shape:
        return g * (x + x)
    if 0 in g.strides:
        g = g[tuple(slice(1) if stride == 0 else slice(None) for stride in g.strides)]
        g = g + g
        inner = x.shape[-1]
        if g.shape == (*x.shape[:-1], 1) and kernels.takes(x, g):
            out = empty(x.shape, x.dtype)
            if not kernels.call("scaled", g.size, inner, (x, g, out)):  # else NumPy warns
                return out
        if g.shape[-1] == 1 and 1 < inner <= 64:  # NumPy's loop over so few elements costs more than writing them out
            g = repeated(g, inner)
            return onp.multiply(g, x, out=g if g.shape == x.shape and g.dtype is x.dtype else None)
        return g * x
    product = g * x
    product += product
    return product
