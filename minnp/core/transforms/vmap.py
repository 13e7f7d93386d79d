"""vmap: a function of one example becomes a function of a batch.

A tracer's value holds the batch along its first axis, which the tracer does not show. A row runs once on the whole
batch where it is elementwise or has a rule in BATCH; any other row runs example by example and is stacked: slower, and
always right. A function that asks a batched value for a bool, an int or a float has another path for each example: it
is run example by example, whole. So is one in which a batched value decides what NumPy or SciPy draw at random.

How the batch lies in memory says nothing of an example, of which NumPy would give a view, a copy or a number. So a
tracer's `node` is an array, or a number, that lies in memory as NumPy would have the example (None: a new array in C
order). NumPy makes it, from those of the arguments; its elements mean nothing. Whoever asks of memory asks it, by
value.example.
"""

from __future__ import annotations

import functools
import gc
import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import numpy as onp

from ... import errors
from ..arrays.array import ARRAY_TYPES, array_of, ndarray, numpys_own, read, wrap
from ..arrays.saved import kept_params
from ..arrays.writing import copy_alike, layout_of, traced
from ..cpu import owned
from ..rows.dispatch import bind
from ..rows.on_device import hosted, laid_out, numpy_views
from ..rows.primitive import NO_PARAMS, TABLE, Primitive
from ..rows.pytree import all_besides, besides, children, tree_flatten, tree_leaves, tree_map
from ..rows.state import recording, state
from ..rows.value import (
    BINARY,
    COMPARISON,
    STREAMS,
    UNARY,
    Buffer,
    Host,
    Tracer,
    concrete,
    example,
    is_scalar,
    overlapping,
    owner,
)
from .grad import Derived, function_of, staged, without
from .trace import Trace

P = ParamSpec("P")
R = TypeVar("R")


class PerExampleError(Exception):
    """The function branches on a value that `trace` batches: its vmap starts again, example by example."""

    def __init__(self, trace: BatchTrace) -> None:
        self.trace = trace
        trace.parted = True


class Uneven(Exception):
    """A row's rule found that the examples do not take one way: the vmap starts again, example by example."""


class Ruled(NamedTuple):
    """What a row's rule may return: the results, and of each an example that lies as NumPy would have it, or which of
    the arguments lies so."""

    results: tuple
    examples: tuple


class Count:
    """A number of Python's that a row made of every example (`value`, an array): a function may return it. Whoever
    looks at it asks for one number, or keeps it: then the function runs example by example."""

    __slots__ = ("__weakref__", "trace", "value")
    __class__ = property(lambda self: TYPES[self.value.dtype.kind])  # type: ignore[assignment]  # isinstance(n, int)

    def __init__(self, value: Any) -> None:
        self.value = value

    def asked(self, *args: Any, **kwargs: Any) -> Any:
        if not self.trace.alive:
            raise errors.TracedValueError(
                "a number that differs between the examples of a batch was kept outside the function that vmap ran, "
                "where it is none; return it"
            )
        raise PerExampleError(self.trace)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a protocol that numbers do not have
            raise AttributeError(name)
        return self.asked()


_ASKING = "array array_ufunc array_function float int complex index bool round trunc floor ceil hash str repr format"
for _name in (*_ASKING.split(), *COMPARISON, *UNARY, *BINARY, *(f"r{name}" for name in BINARY)):
    setattr(Count, f"__{_name}__", Count.asked)
NUMERIC = (onp.ndarray, onp.number, int, float, complex)
TYPES = {"b": bool, "i": int, "f": float, "c": complex}


class BatchTrace(Trace):
    """One vmap over `size` examples.

    parted    whether the function asked for a batched value: what it did since, if it caught the error, means nothing
    counts    references to its numbers of Python's
    indexed   whether an index is batched: rows that hold one come here although none of their arrays may be
    shown     references to views of host arrays that a batched index took
    written   (reference to an array, its _host and _value before a write batched it)
    """

    batched = True
    __slots__ = ("counts", "indexed", "parted", "shown", "size", "written")

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.parted, self.indexed = size, False, False
        self.counts: list = []
        self.shown: list = []
        self.written: list[tuple] = []

    def finish(self) -> None:
        """End the function; the arrays it wrote to that outlive it get back what they held."""
        super().finish()
        if self.indexed:
            self.indexed = False
            state.busy -= 1
            state.tapes.pop(id(self), None)
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

    def keeps(self) -> bool:
        """Whether the function kept a number that differs between examples, where each has to leave its own: in lists,
        to which the examples may append theirs, it becomes that of the first one."""
        if any(ref() is not None for ref in self.counts):
            gc.collect()  # numbers of the function itself may linger in cycles
        kept = tuple(x for ref in self.counts if (x := ref()) is not None)
        for x in kept:
            for held in gc.get_referrers(x):
                if type(held) is list:
                    held[:] = [concrete(x.value).flat[0].item() if y is x else y for y in held]
        return bool(kept)

    def _outliving(self) -> list[tuple]:
        return [(h, host, value) for ref, host, value in self.written if (h := ref()) is not None]

    def concretize(self, value: Tracer, kind: Any) -> Any:
        raise PerExampleError(self)

    def looked(self, name: str) -> None:
        if name == "text" and self.alive:  # of each example its own
            raise PerExampleError(self)

    # -------------------------------------------------------------- how an example lies in memory
    def example(self, t: Tracer) -> Any:
        """An array or a number that lies as an example of a tracer of this trace does."""
        if t.node is None:
            t.node = onp.empty(t.value.shape[1:], t.dtype)
        return t.node

    def _lies(self, row: Primitive, y: Any, raw: list, mine: list, values: Any, params: dict, first: Any) -> Any:
        """How an example of row(*values) lies. `first`: the result of the first one, if they ran one by one."""
        if row.name == "write_view":
            return lying(values[0])  # the same memory
        if hasattr(row.numpy, "host"):  # a call without a row, which is not run without need
            if overlapping(first, concrete(raw[0])):
                return row.numpy(*map(lying, values), **params)
        elif row.view and len(values) == 1 and (plain := untraced(params)) is not None:
            return viewed(row, values[0], plain)
        if first is None:
            ndim = len(y.shape) - 1
            if ndim == 0:
                scalar = is_scalar(values[0]) if row.scalar is None else row.scalar
                return number(y.dtype) if scalar else onp.empty((), y.dtype)
            if all(map(_in_c_order, values)) and params.get("order") != "F":
                return None
            if row.elementwise or row.layout == "elementwise":
                return allocated(values, y.dtype)
            if row.layout == "like" and params.get("shape") is None:
                return onp.empty_like(lying(values[0]), y.dtype, params.get("order", "K"))
            first = bind(row, examples(raw, mine, values, 0), params)
        made = lying(first)
        if not isinstance(made, (Host, onp.generic)):  # a Python object
            return number(y.dtype) if len(y.shape) == 1 else None
        return None if made.ndim and made.flags.c_contiguous else made

    def index(self) -> None:
        """An index that this trace batches was met: `bind` looks at the indices of rows, and writes tell this trace."""
        if not self.indexed and self.alive:
            self.indexed = True
            state.busy += 1
            state.tapes[id(self)] = self

    def release(self, memory: Any) -> None:
        """Memory that NumPy holds is about to be written: what batched indices show of it is read anew after that."""
        for ref in self.shown:
            if (view := ref()) is not None and (root := view._root._host) is not None and owner(root) is memory:
                view._seen = None

    # -------------------------------------------------------------- rows
    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        if "donate" in params:
            params = {k: v for k, v in params.items() if k != "donate"}
        mine = [type(v) is Tracer and v.trace is self for v in values]
        raw = [v.value if m else v for v, m in zip(values, mine, strict=True)]
        first, y = None, NotImplemented
        if not self.indexed or not self.indexes(params):
            rule = row.batch or ("elementwise" if row.elementwise or row.loops else None)
            if rule is not None:
                rule = RULES.get(rule, rule)
                try:
                    y = rule(row, raw, mine, params)
                except Uneven:
                    raise PerExampleError(self) from None
                if type(y) is Ruled:
                    y, first = y.results, [lying(values[e]) if type(e) is int else e for e in y.examples]
        if y is NotImplemented:
            y, first = self._loop(row, raw, mine, values, params)
        if type(y) in (tuple, list):
            firsts = first if first is not None else [None] * len(y)
            for o in y:
                if type(o) is Count:
                    o.trace = self
                    self.counts.append(weakref.ref(o))
            return type(y)(
                Tracer(self, o, self._lies(row, o, raw, mine, values, params, f))
                if type(o) is not Count and hasattr(o, "dtype")
                else o
                for o, f in zip(y, firsts, strict=True)
            )
        if not hasattr(y, "dtype"):
            return y
        out = Tracer(self, y, self._lies(row, y, raw, mine, values, params, first))
        if row.view and values and out.node is not None and _shows(row, out, values[0], params):
            out.view = (values[0], row, kept_params(params))
        return out

    def _loop(self, row: Primitive, raw: list, mine: list, values: Any, params: dict) -> tuple[Any, Any]:
        """(the results of all examples, the result of the first)."""
        if _draws(row, params):  # the stream may be the example's own, and one draw takes more of it than another
            raise PerExampleError(self)
        outs = []
        for i in range(self.size):
            own = self._example(params, i) if self.indexed else params
            try:
                outs.append(bind(row, examples(raw, mine, values, i), own))
            except errors.MinnpError:
                raise
            except (ArithmeticError, LookupError, TypeError, ValueError):  # the function may catch it, for this example
                raise PerExampleError(self) from None
        if type(outs[0]) in (tuple, list):
            if len({len(out) for out in outs}) > 1:
                raise PerExampleError(self)
            return type(outs[0])(self._stacked(part) for part in zip(*outs, strict=True)), outs[0]
        return self._stacked(outs), outs[0]

    def leave(self, name: str, made: Any) -> None:
        """A call made an array of a subclass of NumPy's: the function runs example by example, on the arrays."""
        raise PerExampleError(self)

    def _stacked(self, parts: Sequence[Any]) -> Any:
        """The results of all examples as one; the function itself runs example by example where no array holds them."""
        if all(part is None for part in parts):
            return None
        if any(children(part) is not None for part in parts):  # results of SciPy's tests, which have names
            raise PerExampleError(self)
        if len({getattr(part, "shape", ()) for part in parts}) > 1:
            raise PerExampleError(self)
        return bind(TABLE["stack"], list(parts), {"axis": 0})

    def indexes(self, params: Any) -> bool:
        """Whether parameters hold an index that this trace batches."""
        t = type(params)
        if t is Tracer:
            while type(params) is Tracer:
                if params.trace is self:
                    return True
                params = params.value
            return False
        if t is tuple or t is list:
            return any(map(self.indexes, params))
        return t is dict and any(map(self.indexes, params.values()))

    def _example(self, params: Any, i: int) -> Any:
        """The parameters of example i."""
        t = type(params)
        if t is Tracer:
            return part(params.value, i, example(params)) if params.trace is self else params
        if t is tuple or t is list:
            return t([self._example(p, i) for p in params])
        return {k: self._example(v, i) for k, v in params.items()} if t is dict else params


def _draws(row: Primitive, params: dict) -> bool:
    """Whether a row draws random numbers: from NumPy's own stream, or from one among its arguments."""
    if row.name.startswith("random.") or row.name.endswith((".rvs", ".resample")):
        return True
    args, kwargs = params.get("arguments") or ((), {})
    return any(isinstance(a, STREAMS) for a in (*args, *kwargs.values()))


def untraced(params: dict) -> dict | None:
    """Parameters, 0 in the place of numbers that are traced; None where they index with an array that is."""
    index = params.get("index")
    if not traced(index):
        return params
    parts = index if type(index) is tuple else (index,)
    numbers = all(type(p) is Tracer and not p.shape and p.dtype.kind != "b" for p in filter(traced, parts))  # no masks
    return {"index": _zeros(index)} if numbers else None


def _shows(row: Primitive, out: Tracer, x: Any, params: dict) -> bool:
    """Whether what a view row made of x shows its memory; of a buffer that is not batched, a batched index may."""
    buffer = example(x)
    if type(buffer) is not Buffer:
        return overlapping(out, x)
    return (plain := untraced(params)) is not None and numpy_views(row, buffer, plain)


def _zeros(index: Any) -> Any:
    """An index with 0 in the place of numbers that are traced."""
    if type(index) is tuple:
        return tuple(map(_zeros, index))
    return onp.zeros((), index.dtype)[()] if type(index) is Tracer else index


def viewed(row: Primitive, x: Any, params: dict) -> Any:
    """What NumPy makes of an array that lies as `x` does, or an example of it, by a row that may give a view."""
    if row.name == "sum_to":
        return lying(x) if x.shape == params["shape"] else None
    params = hosted(params)
    if row.name != "einsum":
        return row.numpy(lying(x), **params)
    with onp.errstate(all="ignore"), warnings.catch_warnings():  # numbers that mean nothing may be added up
        warnings.simplefilter("ignore")
        return row.numpy(lying(x), **params)


def _in_c_order(x: Any) -> bool:
    if type(x) is Tracer and x.trace.batched and x.node is None:
        return True
    x = example(x)
    return type(x) is not Host or x.flags.c_contiguous


def lying(x: Any) -> Any:
    x = example(x)
    if type(x) is not Buffer:
        return x
    return number(x.dtype) if is_scalar(x) else laid_out(x)


def number(dtype: onp.dtype) -> onp.generic:
    """Some number of this dtype."""
    return onp.float64(0) if dtype.kind == "O" else onp.zeros((), dtype)[()]


def allocated(operands: Sequence[Any], dtype: onp.dtype) -> Any:
    """An array of this dtype that lies as what NumPy computes elementwise of arrays that lie so."""
    arrays = [onp.asarray(lying(x)) for x in operands]
    readers = [["readonly"]] * len(arrays)
    flags = ["refs_ok", "zerosize_ok", "multi_index"]
    it = onp.nditer([*arrays, None], flags, [*readers, ["writeonly", "allocate"]], [*[None] * len(arrays), dtype])
    return it.operands[-1]


def examples(raw: list, mine: list, values: Any, i: int) -> list:
    """The i-th example of each batched value, a number or an array that lies in memory as NumPy would have it."""
    return [v if not m else part(v, i, example(t)) for v, m, t in zip(raw, mine, values, strict=True)]


def part(batch: Any, i: int, like: Any) -> Any:
    """Example i of a batch, as `like` lies."""
    x = bind(TABLE["getitem"], (batch,), {"index": (i, ...) if type(like) is Host else i})
    if len(batch.shape) > 1 and type(made := example(x)) is Host:
        order = layout_of(like)
        if order != layout_of(made):
            order = tuple(range(made.ndim)) if order is None else order
            x = bind(TABLE["copy"], (bind(TABLE["transpose"], (x,), {"axes": order}),), {"order": "C"})
            x = bind(TABLE["transpose"], (x,), {"axes": tuple(onp.argsort(order).tolist())})
    return x


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
    elif not all(-ndim <= a < ndim for a in (axis if isinstance(axis, tuple) else (axis,))):
        return NotImplemented  # an example's NumPy says so
    elif isinstance(axis, tuple):
        axes = tuple(a % ndim + 1 for a in axis)
    else:
        axes = axis % ndim + 1
    return bind(row, raw, {**params, "axis": axes})


def _matmul(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    (a, b), (ma, mb) = raw, mine
    if len(a.shape) - ma < 2 or len(b.shape) - mb < 2:
        return NotImplemented
    return elementwise(row, raw, mine, params)


def _reshape(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    if params.get("order", "C") != "C":
        return NotImplemented
    x = raw[0]
    return bind(row, raw, {**params, "shape": (x.shape[0], *_full(params["shape"], x.shape[1:]))})


def _full(shape: Any, before: Sequence[int]) -> tuple[int, ...]:
    """A shape asked of reshape, with the length that -1 stands for."""
    shape = (shape,) if isinstance(shape, (int, onp.integer)) else tuple(shape)
    if -1 not in shape:
        return shape
    known = math.prod(n for n in shape if n != -1)
    return tuple([math.prod(before) // max(known, 1) if n == -1 else n for n in shape])


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


def _index(index: Any) -> Any:
    """The index of a batch that takes of each example what `index` takes of it; NotImplemented for those of which the
    result's axes would come in another order."""
    parts = index if type(index) is tuple else (index,)
    arrays = [i for i, p in enumerate(parts) if type(p) is Host or type(p) is list]
    for i, p in enumerate(parts):
        if p is None or p is ...:
            if arrays:
                return NotImplemented
        elif type(p) is Host or type(p) is list:
            if traced(p) or not onp.ndim(p):
                return NotImplemented
        elif isinstance(p, (int, onp.integer)) and type(p) is not bool:
            if arrays:
                arrays.append(i)
        elif type(p) is not slice:
            return NotImplemented
    if arrays and max(arrays) - min(arrays) >= len(arrays):  # a slice between them
        return NotImplemented
    return (slice(None), *parts)


def _getitem(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    index = _index(params["index"])
    return index if index is NotImplemented else bind(row, raw, {"index": index})


def _write(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    """write_view: the steps and the index leave the batch axis alone."""
    (old, new), index, layout = raw, _index(params.get("index", ...)), params.get("layout")
    size, shape, steps = (old if mine[0] else new).shape[0], old.shape[mine[0] :], []
    for step, how in params.get("steps", ()):
        if step.name == "getitem" and (part := _index(how["index"])) is not NotImplemented:
            steps.append((step, {"index": part}))
            shape = onp.broadcast_to(0, shape)[how["index"]].shape
        elif step.name == "transpose":
            axes = how.get("axes")
            axes = range(len(shape))[::-1] if axes is None else [a % len(shape) for a in axes]
            steps.append((step, {"axes": (0, *(a + 1 for a in axes))}))
            shape = tuple([shape[a] for a in axes])
        elif step.name == "reshape" and how.get("order", "C") == "C":
            shape = _full(how["shape"], shape)
            steps.append((step, {"shape": (size, *shape)}))
        elif step.name in ("real", "imag"):
            steps.append((step, how))
        else:
            return NotImplemented
    if index is NotImplemented:
        return NotImplemented
    axes = onp.broadcast_to(0, shape)[params.get("index", ...)].ndim
    if onp.ndim(new) - mine[1] > axes:
        return NotImplemented
    if mine[1] and len(new.shape) - 1 < axes:
        new = bind(TABLE["reshape"], (new,), {"shape": (size, *(1,) * (axes + 1 - len(new.shape)), *new.shape[1:])})
    if not mine[0]:
        old = bind(TABLE["broadcast_to"], (old,), {"shape": (size, *old.shape)})
    layout = None if layout is None else (0, *(a + 1 for a in layout))
    return bind(row, (old, new), {"steps": tuple(steps), "index": index, "layout": layout})


def _alike(row: Primitive, raw: list, mine: list, params: dict) -> Any:
    if params.get("shape") is not None:  # zeros_like(x, shape=...)
        params = {**params, "shape": (raw[0].shape[0], *params["shape"])}
    return bind(row, raw, params)


RULES: dict[Any, Callable] = {
    "elementwise": elementwise,
    "reduction": _reduction,
    "shaped": _shaped,
    "alike": _alike,
    "matmul": _matmul,
    "reshape": _reshape,
    "transpose": _transpose,
    "getitem": _getitem,
    "write": _write,
}


# ------------------------------------------------------------------ public
@overload  # type checkers would take the first of a ufunc's own signatures alone
def vmap(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def vmap(f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]: ...
@without(
    axis_size="it is that of the batched arguments",
    axis="do you mean in_axes=?",
    in_dims="do you mean in_axes=?",
    out_dims="do you mean out_axes=?",
)
def vmap(f: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """f mapped over a batch axis of its arguments.

    in_axes    the batch axis of each positional argument: an int, None (not batched), or a tuple of them, one per
               argument; for an argument that is a tree, the axis of all leaves or a tree of axes
    out_axes   where the batch axis goes in the results: an int, or a tree of them
    Keyword arguments are not batched. Results of a batch of no examples are like those that f has for an example of
    ones. Raises ValueError where batch sizes differ or nothing is batched.

    >>> vmap(np.dot)(np.ones((2, 3)), np.ones((2, 3)))
    array([3., 3.])
    """

    function_of("vmap", f)

    @functools.wraps(f, updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed("vmap", f, {"in_axes": in_axes, "out_axes": out_axes}, args, kwargs)
        run = staged(f)
        spec = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(spec) != len(args):
            raise ValueError(f"vmap has in_axes for {len(spec)} arguments, and was called with {len(args)}")
        axes = spread(spec, args, "in_axes")
        leaves, rebuild_args = tree_flatten(args)
        leaves = list(map(numpys_own, leaves))
        shapes = [leaf.shape if type(leaf) in ARRAY_TYPES else onp.shape(leaf) for leaf in leaves]
        for shape, a in zip(shapes, axes, strict=True):
            if a is not None and not -len(shape) <= a < len(shape):
                raise ValueError(
                    f"vmap wants axis {a} of an argument of shape {shape}; in_axes=None does not batch one: "
                    "in_axes=(0, None) batches the first of two alone"
                )
        sizes = {shape[a] for shape, a in zip(shapes, axes, strict=True) if a is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap wants one batch size, got {sorted(sizes) or 'no batched argument'}")
        (size,) = sizes
        if size == 0:
            of_one = [x if a is None else _one_example(x, s, a) for x, s, a in zip(leaves, shapes, axes, strict=True)]
            with onp.errstate(all="ignore"):
                out = batched(*rebuild_args(of_one), **kwargs)
            parts, rebuild = tree_flatten(out)
            return rebuild([o.take([], a) for o, a in zip(parts, spread(out_axes, out, "out_axes"), strict=True)])
        first = [x if a is None else _first(x, a) for x, a in zip(leaves, axes, strict=True)]
        trace = BatchTrace(size)
        boxed = [x if a is None else _box(h, x, a, trace) for h, x, a in zip(leaves, first, axes, strict=True)]
        try:
            out = run(*rebuild_args(boxed), **kwargs)
            trace.parted |= any(type(x) in ARRAY_TYPES and type(read(x)) is Tracer for x in all_besides(out)[0])
            values = [_returned(o, trace) for o in tree_leaves(out)]
            _, rebuild = tree_flatten(tree_map(lambda leaf: 0, out))
            to = spread(out_axes, out, "out_axes")
            del out  # what the function made dies here
        except Exception as error:
            if not trace.parted or (type(error) is PerExampleError and error.trace is not trace):
                raise
        finally:
            trace.finish()
        if trace.keeps() or trace.parted:  # also where the function caught the error: it was none of its own
            return _one_by_one(lambda *leaves: run(*rebuild_args(leaves), **kwargs), first, axes, size, out_axes)
        trace.check()
        return rebuild(
            [
                _last(_own(v.value, trace), axis)
                if type(v) is Tracer and v.trace is trace
                else _last(_own(bind(TABLE["broadcast_to"], (v,), {"shape": (size, *v.shape)}), trace), axis)
                for v, axis in zip(values, to, strict=True)
            ]
        )

    return Derived(batched, vmap, f, in_axes=in_axes, out_axes=out_axes)


def _one_example(x: Any, shape: tuple, axis: int) -> ndarray:
    """A batch of one example, like those of a batch of none: positive, and a matrix positive definite."""
    shape = [n for i, n in enumerate(shape) if i != axis % len(shape)]
    dtype = x.dtype if type(x) in ARRAY_TYPES else onp.asarray(x).dtype
    one = onp.ones(shape, dtype)
    if len(shape) > 1 and dtype.kind in "fc":
        one = one + onp.eye(*shape[-2:], dtype=dtype)
    return wrap(onp.expand_dims(one, axis))


def _returned(x: Any, trace: BatchTrace) -> Any:
    """The value of a part of a function's result."""
    if type(x) is Count and x.trace is trace:
        return Tracer(trace, x.value, number(x.value.dtype))
    return read(x) if type(x) in ARRAY_TYPES else onp.asarray(x)


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
    h = x if type(x) in ARRAY_TYPES else array_of(onp.asarray(x))
    return h if axis == 0 else array_of(read(_move(h, axis, 0)))


def _move(h: ndarray, source: int, to: int) -> ndarray:
    order = [i for i in range(h.ndim) if i != source % h.ndim]
    order.insert(to % h.ndim, source % h.ndim)
    return TABLE["transpose"](h, axes=tuple(order))


def _box(given: Any, h: ndarray, axis: int, trace: BatchTrace) -> ndarray:
    """One example of an argument that was `given`, whose batch axis is h's first."""
    value = read(h)
    trace.lent.append(value)
    batch = lying(read(given) if type(given) in ARRAY_TYPES else onp.asarray(given))
    like = onp.moveaxis(batch, axis, 0)
    return array_of(Tracer(trace, value, like[0] if len(like) else None if like.ndim > 1 else number(like.dtype)))


def _own(value: Any, trace: BatchTrace) -> Any:
    """What the function returned, as memory of its own: examples that are stacked show no argument's."""
    base = concrete(value)
    shows = type(base) is Host and not (owned(base) and all(base is not concrete(v) for v in trace.lent))
    return bind(TABLE["copy"], (value,), NO_PARAMS) if shows else value


def _last(value: Any, axis: int) -> ndarray:
    h = array_of(value)
    if not -h.ndim <= axis < h.ndim:
        raise ValueError(f"vmap's out_axes puts the batch axis at {axis} of a result of shape {h.shape}")
    return h if axis == 0 else _move(h, 0, axis)


def _owned(x: ndarray) -> Any:
    """The value of x, lying in memory as it does, in whose parts a function may write: a copy of what NumPy holds; a
    write makes a new value of what is traced."""
    value = read(x)
    if type(value) is Tracer:
        value.trace.lent.append(value)
        return value
    return copy_alike(value) if type(value) is Host else bind(TABLE["copy"], (value,), NO_PARAMS)


def _one_by_one(f: Callable, leaves: list, axes: list, size: int, out_axes: Any) -> Any:
    values = [x if a is None else _owned(x) for x, a in zip(leaves, axes, strict=True)]
    part = lambda v, i: wrap(bind(TABLE["getitem"], (v,), {"index": i}))
    outs = [f(*[v if a is None else part(v, i) for v, a in zip(values, axes, strict=True)]) for i in range(size)]
    if any(isinstance(x, onp.ma.MaskedArray) for out in outs for x in tree_leaves(out)):
        raise TypeError("vmap: the function returns masked arrays, which cannot be stacked; return x.filled(v), or two")
    _, rebuild = tree_flatten(outs[0])
    as_array = lambda o: o if type(o) in ARRAY_TYPES else array_of(onp.asarray(o))
    parts = list(map(tree_leaves, outs))
    for i, leaves in enumerate(parts):
        if len(leaves) != len(parts[0]):
            raise ValueError(
                f"vmap: the function returns {len(parts[0])} arrays and numbers for example 0 and {len(leaves)} for "
                f"example {i}, which cannot be stacked; call it in a loop, or return as many for each example"
            )
    columns = zip(*parts)
    for column in zip(*parts):
        shapes = list(map(onp.shape, column))
        if odd := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0):
            raise ValueError(
                f"vmap: the function returns an array of shape {shapes[0]} for example 0 and one of {shapes[odd]} for "
                f"example {odd}, which cannot be stacked; call it in a loop, or return arrays of one shape"
            )
    stacked = lambda column, axis: _last(read(TABLE["stack"](*map(as_array, column), axis=0)), axis)
    axes = spread(out_axes, outs[0], "out_axes")
    made = rebuild([stacked(column, axis) for column, axis in zip(columns, axes, strict=True)])
    _remember(made, outs, lambda column: stacked(column, 0))
    return made


def _remember(made: Any, outs: Sequence[Any], stacked: Callable) -> None:
    """Give containers what those of the examples hold besides their children: attributes that are no fields.

    What a result keeps for its own methods, below an underscore, stays one where all examples agree: they ask of it
    which side a test has, or which axis.
    """
    for name, value in besides(outs[0]).items():
        column = [besides(out)[name] for out in outs]
        private = name.startswith("_") and not any(map(onp.ndim, column))
        if isinstance(value, NUMERIC) and not (private and all(v == value for v in column)):
            vars(made)[name] = stacked(column)
    for i, child in enumerate(children(made) or ()):
        _remember(child, [children(out)[i] for out in outs], stacked)  # type: ignore[index]
