"""Picking, one-hot, embeddings, and MXNet's other small array operators."""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

import numpy as onp

from ..core.api.namespace import wrapped
from ..core.arrays.array import ndarray
from ..core.arrays.devices import beside
from ..numpy.arguments import as_array, plain
from ..numpy.devices import known, on_device
from ..numpy.facts import axis_of
from ..numpy.indexing import index_add as add_at
from ..numpy.indexing import take, take_along_axis
from ..numpy.products import matmul
from ..numpy.selection import argsort
from ..numpy.shaping import astype, broadcast_to, reshape, squeeze, swapaxes
from ..numpy.ufuncs import where


def integers(x: Any) -> onp.ndarray:
    """Indices as integers: MXNet keeps them in floats."""
    return onp.asarray(plain(as_array(x))).astype(onp.intp)


def positions(x: Any, data: Any) -> Any:
    """The same of indices into data, on the device where both are on one: no step waits for it."""
    x = as_array(x)
    if not (known(x) and on_device(data)):
        return integers(x)
    return x if x.dtype == onp.intp else astype(x, dtype=onp.dtype(onp.intp))


def one_hot(data: Any, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32") -> ndarray:
    """[..., depth] with on_value at the place data [...] names, off_value elsewhere; indices out of range name none.

    A float names the place that it is without its fraction, as in MXNet.

    dtype   of the result

    >>> npx.one_hot(np.array([1, 0]), 3)
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    place = positions(data, data)
    if type(place) is onp.ndarray:
        return as_array(onp.where(place[..., None] == onp.arange(depth), on_value, off_value).astype(dtype))
    with beside((place,)) or contextlib.nullcontext():
        every = wrapped("", "arange", onp.arange)(depth)
    return where(place[..., None] == every, float(on_value), float(off_value)).astype(dtype)


def pick(data: Any, index: Any, axis: int = -1, keepdims: bool = False, mode: str = "clip") -> ndarray:
    """One element of data for each place along the other axes: data[i, index[i]], for axis=-1 of a matrix.

    keepdims   keep the axis, with length 1
    mode       "clip" or "wrap": what an index out of range means

    Raises ValueError for another mode.

    >>> npx.pick(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0]))
    array([2., 3.])
    """
    x = as_array(data)
    place, axis = positions(index, x), axis_of(axis, x.ndim)
    if place.ndim < x.ndim:
        place = place.reshape(*place.shape[:axis], 1, *place.shape[axis:])
    n = x.shape[axis]
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r}: choose from clip, wrap")
    place = place.clip(0, n - 1) if mode == "clip" else place % n
    y = take_along_axis(x, place, axis=axis)
    return y if keepdims else squeeze(y, axis=axis)


def topk(
    data: Any, axis: int | None = -1, k: int = 1, ret_typ: str = "indices", is_ascend: bool = False,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """The k largest (is_ascend: smallest) elements along an axis (None: of all), in order.

    ret_typ   "value"; "indices", in `dtype` (float32, as in MXNet); "both", as (value, indices); or "mask", of data's
              shape, with 1 at the chosen places

    Raises IndexError where k is more than there is, ValueError for another ret_typ.

    >>> npx.topk(np.array([3.0, 1.0, 2.0]), k=2)
    array([0., 2.], dtype=float32)
    """
    x = as_array(data)
    if axis is None:
        if ret_typ == "mask":
            return reshape(topk(x.reshape(-1), 0, k, ret_typ, is_ascend), shape=x.shape)
        x, axis = reshape(x, shape=(x.size,)), 0
    axis = axis_of(axis, x.ndim)
    key = x if is_ascend else -x
    if k > x.shape[axis]:
        raise IndexError(f"topk: k={k}, and axis {axis} has {x.shape[axis]} elements")
    order = argsort(key, axis=axis, kind="stable")[(*[slice(None)] * axis, slice(k))]
    if ret_typ == "mask":
        mask = onp.zeros(x.shape, x.dtype)
        onp.put_along_axis(mask, onp.asarray(plain(order)), 1, axis=axis)
        return as_array(mask)
    indices = as_array(order).astype(dtype)
    if ret_typ == "indices":
        return indices
    value = take_along_axis(x, order, axis=axis)
    if ret_typ not in ("value", "both"):
        raise ValueError(f"ret_typ={ret_typ!r}: choose from value, indices, mask, both")
    return value if ret_typ == "value" else (value, indices)


def embedding(
    data: Any, weight: Any, input_dim: int | None = None, output_dim: int | None = None, dtype: Any = None,
    sparse_grad: bool = False,
) -> ndarray:  # fmt: skip
    """weight[data]: indices [...] and weight [V, D] give [..., D]. IndexError for an index out of range.

    input_dim V, output_dim D and dtype, where given, are those of weight, or it is a ValueError. sparse_grad says how
    MXNet stores the gradient, and is no matter here.

    >>> npx.embedding(np.array([2, 0]), np.arange(6.0).reshape(3, 2))
    array([[4., 5.],
           [0., 1.]])
    """
    weight = as_array(weight)
    for name, said, has in (("input_dim", input_dim, weight.shape[0]), ("output_dim", output_dim, weight.shape[-1])):
        if said not in (None, has):
            raise ValueError(f"{name}={said}, and the weight is {list(weight.shape)}")
    if dtype is not None and onp.dtype(dtype) != weight.dtype:
        raise ValueError(f"dtype={onp.dtype(dtype)}, and the weight is {weight.dtype}")
    return take(weight, positions(data, weight), axis=0)


def gather_nd(data: Any, indices: Any) -> ndarray:
    """data[indices[0], indices[1], ...]: indices [M, *S] give [*S, *the axes after the first M].

    >>> npx.gather_nd(np.arange(6).reshape(2, 3), np.array([[0, 1], [2, 0]]))
    array([2, 3])
    """
    return as_array(data)[tuple(integers(indices))]


def index_add(data: Any, ind: Any, val: Any) -> ndarray:
    """A copy of data with val added at data[ind[0], ind[1], ...]; places named twice receive both. ind is [M, *S].

    >>> npx.index_add(np.zeros(4), np.array([[1, 1]]), np.array([1.0, 2.0]))
    array([0., 3., 0., 0.])
    """
    x, index = as_array(data), tuple(integers(ind))
    val = broadcast_to(as_array(val), shape=onp.empty(x.shape, bool)[index].shape)
    return x + add_at(val, shape=x.shape, index=index)


def index_update(data: Any, ind: Any, val: Any) -> ndarray:
    """A copy of data with val written at data[ind[0], ind[1], ...]; ind is [M, *S].

    >>> npx.index_update(np.zeros(4), np.array([[1, 3]]), np.array([1.0, 2.0]))
    array([0., 1., 0., 2.])
    """
    y = as_array(data).copy()
    y[tuple(integers(ind))] = val
    return y


def batch_dot(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> ndarray:
    """The matrix product of every pair of matrices in two stacks.

    a, b                       [N, I, J] and [N, J, K] give [N, I, K]
    transpose_a, transpose_b   whether the matrices of a, or b, are transposed first

    >>> npx.batch_dot(np.ones((5, 2, 3)), np.ones((5, 4, 3)), transpose_b=True).shape
    (5, 2, 4)
    """
    a, b = as_array(a), as_array(b)
    a = swapaxes(a, axis1=-2, axis2=-1) if transpose_a else a
    return matmul(a, swapaxes(b, axis1=-2, axis2=-1) if transpose_b else b)


def batch_flatten(data: Any) -> ndarray:
    """data [N, ...] as [N, D].

    >>> npx.batch_flatten(np.zeros((2, 3, 4))).shape
    (2, 12)
    """
    x = as_array(data)
    return reshape(x, shape=(x.shape[0], prod(x.shape[1:])))


def reshape_like(lhs: Any, rhs: Any) -> ndarray:
    """lhs in the shape of rhs.

    >>> npx.reshape_like(np.arange(4), np.zeros((2, 2)))
    array([[0, 1],
           [2, 3]])
    """
    return reshape(as_array(lhs), shape=tuple(as_array(rhs).shape))


def broadcast_like(lhs: Any, rhs: Any) -> ndarray:
    """lhs broadcast to the shape of rhs.

    >>> npx.broadcast_like(np.ones((1, 3)), np.zeros((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    return broadcast_to(as_array(lhs), shape=tuple(as_array(rhs).shape))


def arange_like(data: Any, start: float = 0.0, step: float = 1.0, axis: int | None = None) -> ndarray:
    """start, start + step, ... in data's dtype: as many as data has along `axis`, or one for each element of data.

    >>> npx.arange_like(np.zeros((2, 3)), axis=1)
    array([0., 1., 2.])
    """
    x = as_array(data)
    shape = x.shape if axis is None else (x.shape[axis],)
    return as_array((start + step * onp.arange(prod(shape))).reshape(shape).astype(x.dtype))


def shape_array(data: Any) -> ndarray:
    """data.shape as an array of int64.

    >>> npx.shape_array(np.zeros((2, 3)))
    array([2, 3])
    """
    return as_array(onp.array(as_array(data).shape, onp.int64))


def nonzero(data: Any) -> ndarray:
    """The indices of data's nonzero elements, one row for each: [count, ndim] of int64.

    >>> npx.nonzero(np.array([[0, 5], [7, 0]]))
    array([[0, 1],
           [1, 0]])
    """
    return as_array(onp.argwhere(onp.asarray(plain(as_array(data)))).astype(onp.int64))
