"""vmap: a function of one example becomes a function of a batch.

A tracer's value holds the batch along its first axis, which the tracer does not show; its `node` is True for an array
without axes, which can be written to where a number cannot. A row runs once on the whole
batch where it is elementwise or has a rule in BATCH; any other row runs example by example and is stacked: slower, and
always right. A function that asks a batched value for a bool, an int or a float has another path for each example: it
is run example by example, whole.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .. import errors
from .array import handle, ndarray, read
from .dispatch import bind
from .primitive import CONSTANT, TABLE, Primitive
from .state import recording, state
from .trace import Trace
from .tree import children, tree_flatten, tree_leaves, tree_map
from .value import Host, Tracer, concrete, overlapping


class PerExampleError(Exception):
    """The function branches on a batched value: vmap starts again, example by example."""


class BatchTrace(Trace):
    """One vmap over `size` examples."""

    batched = True
    __slots__ = ("size", "written")

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.written: list[tuple] = []  # (reference to an array, its _host and _value before a write batched it)

    def finish(self) -> None:
        """End the function; the arrays it wrote to that outlive it get back what they held."""
        super().finish()
        for h, host, value in reversed(self._outliving()):
            h._host, h._value = host, value

    def check(self) -> None:
        """Raise TracedValueError if a batched value was written to an array that outlives the function."""
        if self._outliving():
            gc.collect()  # arrays of the function itself may linger in cycles
        for h, _, _ in self._outliving():
            raise errors.TracedValueError(
                f"a function under vmap wrote a batched value into an array made outside it "
                f"({h.dtype}{list(h.shape)}), where a batch has no place; make it inside the function and return it"
            )

    def _outliving(self) -> list[tuple]:
        return [(h, host, value) for ref, host, value in self.written if (h := ref()) is not None]

    def concretize(self, value: Tracer, kind: Any) -> Any:
        raise PerExampleError

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        params = {k: v for k, v in params.items() if k != "donate"}
        if "index" in params and _batched(params["index"]):
            raise PerExampleError
        mine = [type(v) is Tracer and v.trace is self for v in values]
        raw = [v.value if m else v for v, m in zip(values, mine, strict=True)]
        rule = BATCH.get(row.name)
        if rule is None and (row.elementwise or (row.vjp is CONSTANT and row.name in ELEMENTWISE)):
            rule = elementwise
        y = NotImplemented if rule is None else rule(row, raw, mine, params)
        first = y
        if y is NotImplemented:
            y, first = self._loop(row, raw, mine, values, params)
        if type(y) in (tuple, list):
            return type(y)(Tracer(self, o, None) for o in y)
        view = array = None
        if len(y.shape) == 1 and (row.view or row.name in MAKE_ARRAYS):
            if first is y:
                first = bind(row, examples(raw, mine, values, 0), params)
            array = not isinstance(concrete(first), onp.generic)
        if row.view and mine[0] and overlapping(concrete(first), concrete(raw[0])):
            # what is a view for an example is one for the batch, also where stacking made a copy; a number is none
            view = (values[0], row, params)
        return Tracer(self, y, array, view)

    def _loop(self, row: Primitive, raw: list, mine: list, values: Any, params: dict) -> tuple[Any, Any]:
        """(the results of all examples, the result of the first)."""
        outs = [bind(row, examples(raw, mine, values, i), params) for i in range(self.size)]
        if type(outs[0]) in (tuple, list):
            return type(outs[0])(stacked(part) for part in zip(*outs, strict=True)), outs[0]
        return stacked(outs), outs[0]


def _batched(index: Any) -> bool:
    """Whether an index differs between examples."""
    return type(index) is Tracer or (type(index) in (tuple, list) and any(map(_batched, index)))


def examples(raw: list, mine: list, values: Any, i: int) -> list:
    """The i-th example of each batched value: a number where it has no axes, unless its tracer says it is an array."""
    return [
        v if not m else bind(TABLE["getitem"], (v,), {"index": (i, ...) if t.node else i})
        for v, m, t in zip(raw, mine, values, strict=True)
    ]


# Rows that give an array, which can be written to, also where it has no axes; the others give numbers.
MAKE_ARRAYS = {"copy", "zeros_like", "ones_like", "empty_like", "where", "write_view"}


def stacked(parts: Sequence[Any]) -> Any:
    return bind(TABLE["stack"], list(parts), {"axis": 0})


# ------------------------------------------------------------------ rules: (row, raw, mine, params) -> batched result
def elementwise(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    """The examples' axes lined up from the right, the batch axis leftmost."""
    ndim = max(len(v.shape) - m for v, m in zip(raw, mine, strict=True) if hasattr(v, "shape"))
    lined = [
        bind(TABLE["reshape"], (v,), {"shape": (v.shape[0], *(1,) * (ndim + 1 - len(v.shape)), *v.shape[1:])})
        if m and len(v.shape) < ndim + 1
        else v
        for v, m in zip(raw, mine, strict=True)
    ]
    return bind(row, lined, params)


def _reduction(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    x, axis = raw[0], params.get("axis")
    ndim = len(x.shape) - 1
    if not ndim:
        return NotImplemented  # NumPy lets a number be reduced along its axis 0
    if axis is None:
        axes: Any = tuple(range(1, ndim + 1))
        if row.name in ("argmax", "argmin", "cumsum", "cumprod"):
            return NotImplemented
    elif isinstance(axis, tuple):
        axes = tuple(a % ndim + 1 for a in axis)
    else:
        axes = axis % ndim + 1 if ndim else axis
    return bind(row, raw, {**params, "axis": axes})


def _matmul(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    (a, b), (ma, mb) = raw, mine
    if len(a.shape) - ma < 2 or len(b.shape) - mb < 2:
        return NotImplemented
    return elementwise(row, raw, mine, params)


def _reshape(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    if params.get("order", "C") != "C":
        return NotImplemented
    x, shape = raw[0], params["shape"]
    shape = (shape,) if isinstance(shape, (int, onp.integer)) else tuple(shape)
    if -1 in shape:
        size = 1
        for n in x.shape[1:]:
            size *= n
        known = 1
        for n in shape:
            known *= n if n != -1 else 1
        shape = tuple(size // max(known, 1) if n == -1 else n for n in shape)
    return bind(row, raw, {**params, "shape": (x.shape[0], *shape)})


def _transpose(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    ndim = len(raw[0].shape) - 1
    axes = params.get("axes")
    axes = range(ndim)[::-1] if axes is None else [a % ndim for a in axes]
    return bind(row, raw, {**params, "axes": (0, *(a + 1 for a in axes))})


def _shaped(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    """broadcast_to and sum_to: the target shape gains the batch axis."""
    x, shape = raw[0], params["shape"]
    if len(x.shape) - 1 < len(shape):
        x = bind(TABLE["reshape"], (x,), {"shape": (x.shape[0], *(1,) * (len(shape) + 1 - len(x.shape)), *x.shape[1:])})
    elif len(x.shape) - 1 > len(shape):  # sum_to drops leading axes: sum them first
        extra = len(x.shape) - 1 - len(shape)
        x = bind(TABLE["sum"], (x,), {"axis": tuple(range(1, extra + 1))})
    return bind(row, (x,), {**params, "shape": (x.shape[0], *shape)})


def _getitem(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    index = params["index"]
    parts = index if type(index) is tuple else (index,)
    if len(raw) > 1 or not all(
        p is None or p is ... or isinstance(p, slice) or (isinstance(p, (int, onp.integer)) and type(p) is not bool)
        for p in parts
    ):
        return NotImplemented
    return bind(row, raw, {"index": (slice(None), *parts)})


def _alike(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    if params.get("shape") is not None:  # zeros_like(x, shape=...)
        params = {**params, "shape": (raw[0].shape[0], *params["shape"])}
    return bind(row, raw, params)


ELEMENTWISE = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "signbit"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert"),
    *("floor", "ceil", "trunc", "rint", "floor_divide", "sign"),
}
BATCH: dict[str, Callable] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "logsumexp"), _reduction),
    **dict.fromkeys(("broadcast_to", "sum_to"), _shaped),
    **dict.fromkeys(
        ("copy", "astype", "zeros_like", "ones_like", "empty_like", "stop_gradient", "real", "imag"), _alike
    ),
    "where": elementwise,
    "clip": elementwise,
    "matmul": _matmul,
    "reshape": _reshape,
    "transpose": _transpose,
    "getitem": _getitem,
}


# ------------------------------------------------------------------ public
def vmap(f: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """f mapped over a batch axis of its arguments.

    in_axes    the batch axis of each positional argument: an int, None (not batched), or a tuple of them, one per
               argument; for an argument that is a tree, the axis of all leaves or a tree of axes
    out_axes   where the batch axis goes in the results: an int, or a tree of them
    Keyword arguments are not batched. Raises ValueError where batch sizes differ or nothing is batched.
    """

    @functools.wraps(f, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed("vmap", f, {"in_axes": in_axes, "out_axes": out_axes}, args, kwargs)
        spec = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(spec) != len(args):
            raise ValueError(f"vmap has in_axes for {len(spec)} arguments, and was called with {len(args)}")
        axes = spread(spec, args, "in_axes")
        leaves, rebuild_args = tree_flatten(args)
        shapes = [leaf.shape if type(leaf) is ndarray else onp.shape(leaf) for leaf in leaves]
        for shape, a in zip(shapes, axes, strict=True):
            if a is not None and not -len(shape) <= a < len(shape):
                raise ValueError(
                    f"vmap wants axis {a} of an argument of shape {shape}; in_axes=None does not batch one"
                )
        sizes = {shape[a] for shape, a in zip(shapes, axes, strict=True) if a is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap wants one batch size, got {sorted(sizes) or 'no batched argument'}")
        (size,) = sizes
        first = [x if a is None else _first(x, a) for x, a in zip(leaves, axes, strict=True)]
        trace = BatchTrace(size)
        boxed = [x if a is None else _box(x, trace) for x, a in zip(first, axes, strict=True)]
        try:
            out = f(*rebuild_args(boxed), **kwargs)
            values = [read(o) if type(o) is ndarray else onp.asarray(o) for o in tree_leaves(out)]
            _, rebuild = tree_flatten(tree_map(lambda leaf: 0, out))
            to = spread(out_axes, out, "out_axes")
            del out  # what the function made dies here
        except PerExampleError:
            trace.finish()
            return _one_by_one(lambda *leaves: f(*rebuild_args(leaves), **kwargs), first, axes, size, out_axes)
        finally:
            trace.finish()
        trace.check()
        return rebuild(
            [
                _last(v.value, axis)
                if type(v) is Tracer and v.trace is trace
                else _last(bind(TABLE["broadcast_to"], (v,), {"shape": (size, *v.shape)}), axis)
                for v, axis in zip(values, to, strict=True)
            ]
        )

    return batched


def spread(spec: Any, tree: Any, what: str) -> list:
    """The axis of each leaf of a tree: an axis in `spec` is that of every leaf below its place."""
    if spec is None or isinstance(spec, int):
        return [spec] * len(tree_leaves(tree))
    parts, above = children(tree), list(spec.values()) if isinstance(spec, dict) else spec
    if isinstance(spec, dict) and isinstance(tree, dict):
        above = [spec[k] for k in tree if k in spec]
    if parts is None or not isinstance(spec, (tuple, list, dict)) or len(above) != len(parts):
        raise ValueError(f"vmap's {what} do not fit: {spec!r} for a {type(tree).__name__}")
    return [axis for a, part in zip(above, parts, strict=True) for axis in spread(a, part, what)]


def _first(x: Any, axis: int) -> ndarray:
    h = x if type(x) is ndarray else handle(onp.asarray(x))
    return h if axis == 0 else handle(read(_move(h, axis, 0)))


def _move(h: ndarray, source: int, to: int) -> ndarray:
    order = [i for i in range(h.ndim) if i != source % h.ndim]
    order.insert(to % h.ndim, source % h.ndim)
    return TABLE["transpose"](h, axes=tuple(order))


def _box(h: ndarray, trace: BatchTrace) -> ndarray:
    value = read(h)
    trace.lent.append(value)
    return handle(Tracer(trace, value, None))


def _last(value: Any, axis: int) -> ndarray:
    h = handle(onp.array(value) if type(value) is Host and value.base is not None else value)
    return h if axis == 0 else _move(h, 0, axis)


def _one_by_one(f: Callable, leaves: list, axes: list, size: int, out_axes: Any) -> Any:
    outs = [f(*[x if a is None else x[i] for x, a in zip(leaves, axes, strict=True)]) for i in range(size)]
    _, rebuild = tree_flatten(outs[0])
    as_handle = lambda o: o if type(o) is ndarray else handle(onp.asarray(o))
    columns = zip(*map(tree_leaves, outs), strict=True)
    return rebuild(
        [
            _last(read(TABLE["stack"](*map(as_handle, c), axis=0)), axis)
            for c, axis in zip(columns, spread(out_axes, outs[0], "out_axes"), strict=True)
        ]
    )
