"""Rows that read and scatter by index: `x[index]`, its transpose `index_add`, take and put along an axis, diagonals.

An index is NumPy's: slices, integers, None, Ellipsis, integer and boolean arrays, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as onp

from ..core.arrays.devices import at_index
from ..core.rows.dispatch import defines
from ..core.rows.primitive import CONSTANT, Meta, per_input, primitive
from ..core.transforms.cotangents import restore
from .arguments import as_array, plain, spelled
from .facts import axis_of, count_of, sampled, spread
from .scattering import add_at
from .shaping import astype, broadcast_to, reshape, stack


def _index_add(
    g: Any, shape: Sequence[int], index: Any, freely: bool = False, out: onp.ndarray | None = None
) -> onp.ndarray:
    """Zeros of `shape` with g added at `index`; freely: sums in any order."""
    g = onp.asarray(g)
    if out is None:
        out = onp.zeros(shape, g.dtype)
    else:
        out.fill(0)
    add_at(out, g, index, freely)
    return out


_added: Any = partial(_index_add, freely=True)
_added.takes_out = True  # compiled code says where it lies


def _rows(x: Any, index: Any) -> Any:
    """x[index]; rows that an array of numbers chooses come by `take`, in a third of the time."""
    chosen = type(index) is onp.ndarray is type(x) and index.ndim and index.dtype == onp.intp and x.ndim
    return x.take(index, 0) if chosen and x.flags.c_contiguous else x[index]


def _is_basic(index: Any) -> bool:
    """Whether an index is of numbers, slices, None and ..., so that it gives a view."""
    parts = index if type(index) is tuple else (index,)
    return all(p is None or p is Ellipsis or isinstance(p, (slice, int, onp.integer)) for p in parts)


def _getitem_vjp(g: Any, shape: Sequence[int], index: Any) -> Any:
    return index_add(at_index(g, index), shape=shape, index=index)


getitem = primitive(
    "getitem",
    numpy=lambda x, index: x[index],
    fast=_rows,
    vjp=[lambda g, y, x, index: _getitem_vjp(restore(g, x.dtype, getitem, 0), x.shape, index)],
    jvp="linear",
    accumulate=lambda buffer, g, x, index: add_at(buffer, g, index, freely=True),
    saves="",
    view=True,
    selects=True,
    copies=lambda meta, contiguous, params: not _is_basic(params["index"]),
    dynamic="shape",
    batch="getitem",
    samples=sampled(
        ((spread(4, 3),), {"index": 1}),
        ((spread(4, 3),), {"index": (slice(None, None, -2), None, ..., 0)}),
        ((spread(4, 3),), {"index": onp.array([0, 2, 0, -1])}),
        ((spread(4, 3),), {"index": (onp.array([[0], [2]]), onp.array([1, 1]))}),
        ((spread(4, 3),), {"index": (slice(1, 3), [0, 0, 2])}),
        ((spread(4, 3),), {"index": spread(4, 3) > 0}),
        ((spread(4, 3),), {"index": (onp.array([True, False, True, True]), 1)}),
    ),
)
index_add = primitive(
    "index_add",
    numpy=_index_add,
    fast=_added,
    vjp=[lambda g, y, x, shape, index: getitem(g, index=index)],
    jvp="linear",
    saves="",
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    flops=per_input(1),
    samples=sampled(
        ((spread(2, 3),), {"shape": (4, 3), "index": slice(1, 3)}),
        ((spread(4),), {"shape": (3,), "index": onp.array([0, 2, 0, -1])}),
        ((spread(6),), {"shape": (4, 3), "index": onp.arange(12).reshape(4, 3) % 2 == 0}),
    ),
)


# ------------------------------------------------------------------ indices as arrays
def _valid(indices: Any, n: int, mode: str) -> Any:
    """`take`'s indices as plain ones, after its mode has been applied."""
    if mode == "raise":
        return indices
    return onp.clip(indices, 0, n - 1) if mode == "clip" else onp.remainder(indices, n)


def _take_index(indices: Any, shape: Sequence[int], axis: int, mode: str) -> tuple:
    return (slice(None),) * axis_of(axis, len(shape)) + (onp.asarray(_valid(indices, shape[axis], mode)),)


def _take_add(g: Any, indices: Any, shape: Sequence[int], axis: int | None = None, mode: str = "raise") -> onp.ndarray:
    """Zeros of `shape` with g added where `take` would read."""
    axis = axis if shape else None  # NumPy takes axis 0 of an array that has none
    flat = shape if axis is not None else (count_of(shape, None),)
    return _index_add(g, flat, _take_index(indices, flat, axis or 0, mode)).reshape(shape)


def _take_accumulate(
    buffer: onp.ndarray, g: Any, x: Any, indices: Any, axis: int | None = None, mode: str = "raise"
) -> None:
    if axis is None or not buffer.ndim:  # of any layout: a view of all of it may not exist
        flat = onp.remainder(_valid(onp.asarray(indices), buffer.size, mode), buffer.size)
        if buffer.ndim == 0:  # of which unravel_index of NumPy 1 knows nothing
            buffer += onp.sum(g)
            return
        where = onp.unravel_index(flat, buffer.shape)
    else:
        where = _take_index(indices, buffer.shape, axis, mode)
    onp.add.at(buffer, where, g)


def _taken(metas: Sequence[Meta], params: dict) -> Meta:
    (x, indices), axis = metas, params.get("axis")
    if axis is None or not x.ndim:
        return Meta(indices.shape, x.dtype)
    axis = axis_of(axis, x.ndim)
    return Meta((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


take = primitive(
    "take",
    numpy=onp.take,
    vjp=[
        lambda g, y, x, indices, axis=None, mode="raise": take_add(g, indices, shape=x.shape, axis=axis, mode=mode),
        CONSTANT,
    ],
    jvp="multilinear",
    accumulate=_take_accumulate,
    saves="in",
    shape=_taken,
    takes=("arrays", 2),
    samples=sampled(
        ((spread(4, 3), onp.array([0, 5, 5, -1])), {}),
        ((spread(4, 3), onp.array([[0, 2], [2, 2]])), {"axis": 1}),
        ((spread(4, 3), onp.array([-7, 9])), {"axis": 0, "mode": "wrap"}),
        ((spread(4, 3), onp.array([-7, 9])), {"axis": 0, "mode": "clip"}),
    ),
)
take_add = primitive(
    "take_add",
    numpy=_take_add,
    vjp=[lambda g, y, x, indices, shape, axis=None, mode="raise": take(g, indices, axis=axis, mode=mode), CONSTANT],
    jvp="multilinear",
    saves="in",
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    flops=per_input(1),
    samples=sampled(((spread(3, 4), onp.array([0, 2, 2, 1])), {"shape": (3, 5), "axis": 1})),
)


def _along_axis(shape: Sequence[int], indices: Any, axis: int) -> tuple:
    """The index tuple that reads `indices` along one axis and every position of the others."""
    axis = axis_of(axis, len(shape))
    return tuple(
        indices if d == axis else onp.arange(n).reshape((1,) * d + (-1,) + (1,) * (len(shape) - d - 1))
        for d, n in enumerate(shape)
    )


take_along_axis = primitive(
    "take_along_axis",
    numpy=onp.take_along_axis,
    vjp=[lambda g, y, x, indices, axis: add_along_axis(g, indices, axis=axis, shape=x.shape), CONSTANT],
    jvp="multilinear",
    saves="in",
    samples=sampled(
        ((spread(3, 4), onp.array([[0, 0], [1, 3], [2, -1]])), {"axis": 1}),
        ((spread(3, 4), onp.array([[0, 0, 1, 2]])), {"axis": 0}),
    ),
)
add_along_axis = primitive(
    "add_along_axis",
    numpy=lambda g, indices, axis, shape: _index_add(g, shape, _along_axis(shape, indices, axis)),
    vjp=[lambda g, y, x, indices, axis, shape: take_along_axis(g, indices, axis=axis), CONSTANT],
    jvp="multilinear",
    saves="in",
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    flops=per_input(1),
    samples=sampled(((spread(3, 2), onp.array([[0, 0], [1, 3], [2, -1]])), {"axis": 1, "shape": (3, 4)})),
)


# ------------------------------------------------------------------ diagonals and triangles
def _diagonal_set(g: Any, shape: Sequence[int], offset: int = 0, axis1: int = 0, axis2: int = 1) -> onp.ndarray:
    """Zeros of `shape` with g on a diagonal."""
    out = onp.zeros(shape, g.dtype)
    steps = onp.arange(g.shape[-1])
    onp.moveaxis(out, (axis1, axis2), (-2, -1))[..., steps + max(-offset, 0), steps + max(offset, 0)] = g
    return out


diagonal = primitive(
    "diagonal",
    numpy=onp.diagonal,
    vjp=[
        lambda g, y, x, offset=0, axis1=0, axis2=1: diagonal_set(
            g, shape=x.shape, offset=offset, axis1=axis1, axis2=axis2
        )
    ],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    writes=False,
    samples=sampled(((spread(3, 4),), {}), ((spread(2, 3, 4),), {"offset": -1, "axis1": 2, "axis2": 0})),
)
diagonal_set = primitive(
    "diagonal_set",
    numpy=_diagonal_set,
    vjp=[lambda g, y, x, shape, offset=0, axis1=0, axis2=1: diagonal(g, offset=offset, axis1=axis1, axis2=axis2)],
    jvp="linear",
    saves="",
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    samples=sampled(
        ((spread(3),), {"shape": (3, 4)}), ((spread(3, 1),), {"shape": (2, 3, 4), "offset": -1, "axis1": 0, "axis2": 2})
    ),
)
tril = primitive(
    "tril",
    numpy=onp.tril,
    vjp=[lambda g, y, x, k=0: tril(g, k=k)],
    jvp="linear",
    saves="",
    takes=("one", "k"),
    samples=sampled(((spread(3, 4),), {}), ((spread(2, 3, 3),), {"k": -1})),
)
triu = primitive(
    "triu",
    numpy=onp.triu,
    vjp=[lambda g, y, x, k=0: triu(g, k=k)],
    jvp="linear",
    saves="",
    takes=("one", "k"),
    samples=sampled(((spread(3, 4),), {}), ((spread(2, 3, 3),), {"k": 1})),
)


# ------------------------------------------------------------------ repetition
def _repeat(g: Any, y: Any, x: Any, repeats: Any, axis: int | None = None) -> Any:
    axis = axis if x.ndim else None  # NumPy takes axis 0 of an array that has none
    shape = x.shape if axis is not None else (x.size,)
    a = 0 if axis is None else axis_of(axis, x.ndim)
    if onp.ndim(repeats) == 0:
        parts = reshape(g, shape=(*shape[: a + 1], int(repeats), *shape[a + 1 :]))
        return reshape(parts.sum(axis=a + 1), shape=x.shape)
    source = onp.repeat(onp.arange(shape[a]), repeats)
    return reshape(take_add(g, source, shape=shape, axis=a), shape=x.shape)


repeat = primitive(
    "repeat",
    numpy=onp.repeat,
    vjp=[_repeat],
    jvp="linear",
    saves="",
    dynamic="shape",
    takes=("one", "repeats", "axis"),
    samples=sampled(
        ((spread(2, 3),), {"repeats": 2}),
        ((spread(2, 3),), {"repeats": 3, "axis": 1}),
        ((spread(2, 3),), {"repeats": onp.array([0, 2]), "axis": 0}),
    ),
)


# ------------------------------------------------------------------ definitions
_take = spelled(take, "a indices | axis mode")


@defines(onp.take)
def _take_of(a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(indices, (list, tuple, int, float, complex, onp.generic)):  # of which NumPy makes integers here
        indices = as_array(indices, onp.intp)
    return _take(a, indices, *args, **kwargs)


defines(onp.diagonal)(spelled(diagonal, "a | offset axis1 axis2"))
defines(onp.tril)(spelled(tril, "m | k"))
defines(onp.triu)(spelled(triu, "m | k"))


@defines(onp.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    arr = as_array(arr)
    if axis is None:
        arr, axis = reshape(arr, shape=(arr.size,)), 0
    return take_along_axis(arr, as_array(indices), axis=axis)


@defines(onp.repeat)
def _repeat_of(a: Any, repeats: Any, axis: int | None = None) -> Any:
    return repeat(as_array(a), repeats=plain(repeats), axis=axis)


@defines(onp.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    dtype = None if dtype is None else onp.dtype(dtype).newbyteorder("=")
    return diagonal(as_array(a), offset=offset, axis1=axis1, axis2=axis2).sum(axis=-1, dtype=dtype)


@defines(onp.diag, view="perhaps")
def _diag(v: Any, k: int = 0) -> Any:
    v = as_array(v)
    if v.ndim == 1:
        n = v.size + abs(k)
        return diagonal_set(v, shape=(n, n), offset=k)
    if v.ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return diagonal(v, offset=k)


@defines(onp.diagflat)
def _diagflat(v: Any, k: int = 0) -> Any:
    v = as_array(v)
    return _diag(reshape(v, shape=(v.size,)), k)


@defines(onp.compress)
def _compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    a, condition = as_array(a), plain(condition)
    if onp.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, onp.flatnonzero(condition), axis=axis)


defines(onp.ndarray.compress)(lambda a, condition, axis=None: _compress(condition, a, axis))


def common(choices: Any) -> list:
    """Choices in one dtype, which Python's numbers among them do not decide."""
    arrays = [as_array(c) for c in choices]
    dtype = onp.result_type(*[plain(c) if c.__class__ in NUMBERS else x.dtype for c, x in zip(choices, arrays)])
    return [x if x.dtype == dtype else astype(x, dtype=dtype) for x in arrays]


NUMBERS = (bool, int, float, complex)


@defines(onp.choose)
def _choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    choices = common(choices)
    picks = onp.choose(plain(a), onp.arange(len(choices)), mode=mode)
    shape = onp.broadcast_shapes(picks.shape, *(c.shape for c in choices))
    every = stack(*(broadcast_to(c, shape=shape) for c in choices))
    return take_along_axis(every, onp.broadcast_to(picks, shape)[None], axis=0)[0]
