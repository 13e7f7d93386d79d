"""Rows that move elements without changing them: reshape, transpose, broadcast and their relatives, and joining.

Each is linear, and the gradient of each is another of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, Array, array_of, ndarray, read
from ..core.cpu import kernels
from ..core.rows.dispatch import defines, knows
from ..core.rows.primitive import TABLE, Joint, Meta, per_input, primitive
from ..core.rows.value import Tracer, overlapping
from .arguments import as_array, plain, spelled
from .facts import NUMPY_2, WEAK, axes_of, axis_of, same, sampled, spread


# ------------------------------------------------------------------ broadcasting
def spread_number(x: onp.generic, shape: tuple[int, ...]) -> onp.ndarray:
    """A NumPy scalar seen as an array of this shape: what onp.broadcast_to gives, 6 times faster."""
    return onp.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))


def _broadcast_to(x: Any, shape: Sequence[int]) -> onp.ndarray:
    if isinstance(x, onp.generic) and type(shape) is tuple:
        out = spread_number(x, shape)
        out.flags.writeable = False
        return out
    return onp.broadcast_to(x, shape)


broadcast_to = primitive(
    "broadcast_to",
    numpy=_broadcast_to,
    vjp=[lambda g, y, x, shape: sum_to(g, shape=x.shape)],
    jvp="linear",
    saves="",
    view=True,
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    writes=False,
    batch="shaped",
    takes=("spread", "shape"),
    samples=sampled(((spread(3),), {"shape": (2, 3)}), ((spread(2, 1),), {"shape": (4, 2, 3)})),
)


NARROW, LARGE_SUM, MOST_SUM = 32, 1 << 14, 1 << 20  # elements


def _sum_to(x: Any, shape: Sequence[int]) -> Any:
    """x summed down to `shape`, which broadcasts to x's shape."""
    x = onp.asarray(x)
    extra = x.ndim - len(shape)
    if extra and x.size <= MOST_SUM and x.shape[extra:] == shape and kernels.takes(x):
        out = kernels.sums(x, math.prod(shape))
        if out is not None:
            return out.reshape(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1))
    if not axes:
        return x
    if len(axes) == x.ndim:
        return x.sum(dtype=x.dtype).reshape(shape)
    first, last = axes[0], axes[-1] + 1
    inner = math.prod(x.shape[last:])
    narrow = inner <= NARROW and x.size >= LARGE_SUM and last - first == len(axes)
    if (narrow or (first == 0 and last == len(axes) and x.size <= MOST_SUM)) and kernels.takes(x):
        out = kernels.sums(x, inner, math.prod(x.shape[:first]))
        if out is not None:
            return out.reshape(shape)
    if axes == (0, *range(2, x.ndim)) and x.ndim > 2 and kernels.takes(x):
        out = kernels.channel_sums(x)
        if out is not None:
            return out.reshape(shape)
    # NumPy adds a row of ten elements at a time: a product with ones does the same sums four times faster
    if narrow and x.dtype.char in "fdFD" and x.flags.c_contiguous:
        parts = x.reshape(math.prod(x.shape[:first]), -1, inner)
        return onp.matmul(onp.ones((1, parts.shape[1]), x.dtype), parts).reshape(shape)
    return x.sum(axis=axes, dtype=x.dtype).reshape(shape)


sum_to = primitive(
    "sum_to",
    numpy=_sum_to,
    vjp=[lambda g, y, x, shape: broadcast_to(g, shape=x.shape)],
    jvp="linear",
    saves="",
    view=True,
    copies=lambda meta, contiguous, params: tuple(params["shape"]) != meta.shape,
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    flops=per_input(1),
    batch="shaped",
    samples=sampled(((spread(2, 3),), {"shape": (3,)}), ((spread(4, 2, 3),), {"shape": (2, 1)})),
)


# ------------------------------------------------------------------ new shapes
def full_shape(shape: int | Sequence[int], size: int) -> tuple[int, ...]:
    """`shape` as a tuple, with -1 replaced by what makes it `size` elements."""
    shape = (shape,) if isinstance(shape, (int, onp.integer)) else tuple(shape)
    if -1 not in shape:
        return shape
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    return tuple(size // known if n == -1 and known else n for n in shape)


reshape = primitive(
    "reshape",
    numpy=lambda x, shape, order="C": x.reshape(shape, order=order),
    vjp=[lambda g, y, x, shape, order="C": reshape(g, shape=x.shape, order=order)],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    copies=lambda meta, contiguous, params: not contiguous,
    shape=lambda metas, params: Meta(full_shape(params["shape"], metas[0].size), metas[0].dtype),
    batch="reshape",
    takes=("spread", "shape"),
    samples=sampled(((spread(2, 3),), {"shape": (3, -1)}), ((spread(2, 6),), {"shape": (3, 4), "order": "F"})),
)


def axes_order(axes: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim))[::-1] if axes is None else tuple(axis_of(a, ndim) for a in axes)


def _transpose_back(g: Any, y: Any, x: Any, axes: Sequence[int] | None = None) -> Any:
    if axes is None:
        return transpose(g)
    order = axes_order(axes, len(axes))
    return transpose(g, axes=tuple(order.index(i) for i in range(len(order))))


transpose = primitive(
    "transpose",
    numpy=lambda x, axes=None: x.transpose(axes),
    vjp=[_transpose_back],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    shape=lambda metas, params: Meta(
        [metas[0].shape[a] for a in axes_order(params.get("axes"), metas[0].ndim)], metas[0].dtype
    ),
    batch="transpose",
    takes=("spread", "axes"),
    samples=sampled(((spread(2, 3),), {}), ((spread(2, 3, 4),), {"axes": (1, -1, 0)})),
)
swapaxes = primitive(
    "swapaxes",
    numpy=onp.swapaxes,
    vjp=[lambda g, y, x, axis1, axis2: swapaxes(g, axis1=axis1, axis2=axis2)],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    takes=("view", "axis1", "axis2"),
    samples=sampled(((spread(2, 3, 4),), {"axis1": 0, "axis2": -1})),
)


def _expanded(metas: Sequence[Meta], params: dict) -> Meta:
    axis = params["axis"]
    axes = axes_of(axis, metas[0].ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1))
    sizes = iter(metas[0].shape)
    return Meta([1 if i in axes else next(sizes) for i in range(metas[0].ndim + len(axes))], metas[0].dtype)


expand_dims = primitive(
    "expand_dims",
    numpy=onp.expand_dims,
    vjp=[lambda g, y, x, axis: reshape(g, shape=x.shape)],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    shape=_expanded,
    takes=("view", "axis"),
    samples=sampled(((spread(2, 3),), {"axis": 1}), ((spread(2, 3),), {"axis": (0, -1)})),
)
squeeze = primitive(
    "squeeze",
    numpy=onp.squeeze,
    vjp=[lambda g, y, x, axis=None: reshape(g, shape=x.shape)],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    takes=("view", "axis"),
    samples=sampled(((spread(1, 3, 1),), {}), ((spread(1, 3, 1),), {"axis": -1})),
)
flip = primitive(
    "flip",
    numpy=onp.flip,
    vjp=[lambda g, y, x, axis=None: flip(g, axis=axis)],
    jvp="linear",
    saves="",
    view=True,
    selects=True,
    shape=same,
    takes=("view", "axis"),
    samples=sampled(((spread(2, 3),), {}), ((spread(2, 3),), {"axis": 1}), ((spread(2, 3),), {"axis": (0, -1)})),
)


def _minus(shift: int | Sequence[int]) -> Any:
    return tuple(-s for s in shift) if isinstance(shift, (tuple, list)) else -shift


roll = primitive(
    "roll",
    numpy=onp.roll,
    vjp=[lambda g, y, x, shift, axis=None: roll(g, shift=_minus(shift), axis=axis)],
    jvp="linear",
    saves="",
    shape=same,
    takes=("some", "shift", "axis"),
    samples=sampled(
        ((spread(2, 3),), {"shift": 2}),
        ((spread(2, 3),), {"shift": (1, -1), "axis": (0, 1)}),
        ((spread(3),), {"shift": -1}),
    ),
)

# ------------------------------------------------------------------ copies
astype = primitive(
    "astype",
    numpy=lambda x, dtype: (x if isinstance(x, onp.generic) else onp.asarray(x)).astype(dtype),
    vjp=[lambda g, y, x, dtype: g],  # the tape restores the argument's dtype
    jvp="linear",
    saves="",
    shape=lambda metas, params: Meta(metas[0].shape, onp.dtype(params["dtype"])),
    scalar=None,
    layout="like",
    batch="alike",
    takes=("cast", "dtype"),
    samples=sampled(((spread(2, 3),), {"dtype": onp.dtype("c16")}), ((onp.arange(3),), {"dtype": onp.dtype("f4")})),
)


def _copied(x: Any, order: str = "K") -> onp.ndarray:
    """A copy; of a record as well, which NumPy's own function shows."""
    return onp.array(x.copy() if isinstance(x, onp.void) else x, order=order, copy=True)


copy_ = primitive(
    "copy",
    numpy=_copied,
    vjp=[lambda g, y, x, order="K": g],
    jvp="linear",
    saves="",
    shape=same,
    scalar=False,
    layout="like",
    batch="alike",
    samples=sampled(((spread(2, 3),), {})),
)


# ------------------------------------------------------------------ joining
def _concatenated(metas: Sequence[Meta], params: dict) -> Meta:
    axis = axis_of(params.get("axis", 0), metas[0].ndim)
    shape = list(metas[0].shape)
    shape[axis] = sum(m.shape[axis] for m in metas)
    return Meta(shape, onp.result_type(*(m.dtype for m in metas)))


def _concatenate_parts(wanted: Sequence[bool], g: Any, y: Any, *arrays: Any, axis: int = 0) -> list:
    axis = axis_of(axis, y.ndim)
    before, parts, start = (slice(None),) * axis, [], 0
    for a, is_wanted in zip(arrays, wanted):
        stop = start + a.shape[axis]
        parts.append(g[(*before, slice(start, stop))] if is_wanted else None)
        start = stop
    return parts


concatenate = primitive(
    "concatenate",
    numpy=lambda *arrays, axis=0: onp.concatenate(arrays, axis=axis),
    vjp=Joint(_concatenate_parts),
    jvp="linear",
    saves="",
    shape=_concatenated,
    takes=("list", "axis"),
    samples=sampled(
        ((spread(2, 3), spread(2, 1, seed=1), spread(2, 2, seed=2)), {"axis": -1}), ((spread(2), spread(3, seed=1)), {})
    ),
)


def _stacked(metas: Sequence[Meta], params: dict) -> Meta:
    axis = axis_of(params.get("axis", 0), metas[0].ndim + 1)
    shape = (*metas[0].shape[:axis], len(metas), *metas[0].shape[axis:])
    return Meta(shape, onp.result_type(*(m.dtype for m in metas)))


stack = primitive(
    "stack",
    numpy=lambda *arrays, axis=0: onp.stack(arrays, axis=axis),
    vjp=lambda i, g, y, *arrays, axis=0: g[(slice(None),) * axis_of(axis, g.ndim) + (i,)],
    jvp="linear",
    saves="",
    shape=_stacked,
    takes=("list", "axis"),
    samples=sampled(
        ((spread(2, 3), spread(2, 3, seed=1)), {"axis": -1}),
        ((1.5, spread(seed=1)), {}),
        ((spread(2), spread(2, seed=1)), {}),
    ),
)


# ------------------------------------------------------------------ definitions
defines(onp.swapaxes)(spelled(swapaxes, "a | axis1 axis2"))
defines(onp.expand_dims)(spelled(expand_dims, "a | axis"))
defines(onp.flip, view="always")(spelled(flip, "m | axis"))
defines(onp.ndarray.swapaxes)(spelled(swapaxes, "a | axis1 axis2"))


@defines(onp.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    a = as_array(a)
    if axis is not None:
        return squeeze(a, axis=axis)
    return a if 1 not in a.shape and type(read(a)) is Tracer else squeeze(a)  # itself, as in NumPy


def _axes(axes: tuple, kwargs: dict) -> tuple[str, dict]:
    axes = kwargs.get("axes", axes[0] if len(axes) == 1 else axes or None)
    return "transpose", {} if axes is None else {"axes": tuple(axes) if isinstance(axes, list) else axes}


knows(onp.ndarray.T, view=("transpose", {}))
knows(onp.ndarray.flat, view="always")
knows(
    *(getattr(onp.ndarray, "mT", Array.mT), *([onp.matrix_transpose] if NUMPY_2 else [])),
    view=("swapaxes", {"axis1": -1, "axis2": -2}),
)


@defines(onp.transpose, view=_axes)
def _transpose(a: Any, axes: Any = None) -> Any:
    if axes is None:
        return transpose(as_array(a))
    return transpose(as_array(a), axes=axes if onp.iterable(axes) else (axes,))


@defines(onp.broadcast_to)
def _broadcast(array: Any, shape: Any, subok: bool = False) -> Any:
    return broadcast_to(as_array(array), shape=(shape,) if onp.ndim(shape) == 0 else tuple(plain(shape)))


@defines(onp.broadcast_arrays, view="perhaps")
def _broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    arrays = tuple(map(as_array, arrays))
    shape = onp.broadcast_shapes(*(a.shape for a in arrays))
    return (tuple if NUMPY_2 else list)(a[...] if a.shape == shape else broadcast_to(a, shape=shape) for a in arrays)


def _memory_order(a: ndarray, order: str) -> str:
    """Order "A" as "C" or "F"."""
    return order if order != "A" else "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"


@defines(onp.reshape, view="perhaps")
def _reshape(a: Any, shape: Any = None, order: str = "C", newshape: Any = None, copy: bool | None = None) -> Any:
    if order == "C" and type(a) in ARRAY_TYPES and copy is None and type(shape) in (int, tuple):  # the usual call
        return reshape(a, shape=shape)
    a, shape = as_array(a), plain(newshape if shape is None else shape)
    out = reshape(a, shape=full_shape(shape, a.size), order=_memory_order(a, order))
    if copy is False and out is not a and not overlapping(read(out), read(a)):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return copy_(out) if copy else out


for _stack in (onp.hstack, onp.vstack):  # their code is NumPy's
    knows(_stack, takes=(_stack.__name__, "concatenate", "stack"))


@defines(onp.ravel, takes=("ravel", "reshape"), view="perhaps")
def _ravel(a: Any, order: str = "C") -> Any:
    a = as_array(a)
    if order == "K":
        lies = onp.lib.stride_tricks.as_strided(onp.empty(1, a.dtype), a.shape, a.strides)
        flags = ["refs_ok", "zerosize_ok", "multi_index"]
        steps = onp.nditer([lies, None], flags, [["readonly"], ["writeonly", "allocate"]]).operands[1].strides
        a = transpose(a, axes=tuple(sorted(range(a.ndim), key=lambda i: -abs(steps[i]))))  # broadcast axes stay
    order = "C" if order == "K" else _memory_order(a, order)
    y = reshape(a, shape=(a.size,), **({} if order == "C" else {"order": order}))
    # the last stride is an example's under vmap too
    return y if y.size < 2 or y.strides[-1:] == (y.itemsize,) else TABLE["copy"](y)


@defines(onp.array_split, view="always")
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    """Views; where to cut is a matter of Python's integers, on every device."""
    a = as_array(ary)
    axis = axis_of(axis, a.ndim)
    n, cuts = a.shape[axis], plain(indices_or_sections)
    if onp.ndim(cuts):
        cuts = [operator.index(c) for c in cuts]
    else:
        sections = int(cuts)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, longer = divmod(n, sections)
        cuts = [i * each + min(i, longer) for i in range(1, sections)]
    whole = (slice(None),) * axis
    return [a[(*whole, slice(i, j))] for i, j in zip([0, *cuts], [*cuts, n])]


@defines(onp.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return roll(as_array(a), shift=plain(shift), axis=axis)


if hasattr(onp, "astype"):  # NumPy 2

    @defines(onp.astype)
    def _astype(x: Any, dtype: Any, copy: bool = True, device: Any = None) -> Any:
        onp.astype(onp.zeros(0), float, device=device)  # or NumPy's exception
        return x if not copy and x.dtype == dtype else astype(x, dtype=onp.dtype(dtype))


@defines(onp.copy, creates="new")
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return copy_(as_array(a), order=order)


def _joined(arrays: Any, dtype: Any, casting: str, weak: bool = NUMPY_2) -> list[ndarray]:
    """The arrays to be joined, in the dtype asked for."""
    if not hasattr(arrays, "__getitem__"):  # a generator, say, which NumPy refuses
        raise TypeError('arrays to join must be passed as a "sequence" type such as list or tuple')
    numbers = [a.__class__ in WEAK for a in arrays]  # of Python's, which decide no dtype
    if dtype is None and weak and any(numbers):
        dtype = onp.result_type(*[plain(a) if n else as_array(a).dtype for a, n in zip(arrays, numbers)])
        arrays = [array_of(onp.asarray(plain(a)).astype(dtype)) if n else a for a, n in zip(arrays, numbers)]
    arrays = list(map(as_array, arrays))
    if dtype is None:
        if casting == "same_kind":
            return arrays
        dtype = onp.result_type(*(a.dtype for a in arrays))
    dtype = onp.dtype(dtype)
    for a in arrays:
        if not onp.can_cast(a.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {a.dtype!r} to {dtype!r} according to the rule {casting!r}")
    return [a if a.dtype == dtype else astype(a, dtype=dtype) for a in arrays]


@defines(onp.concatenate)
def _concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None, casting: str = "same_kind") -> Any:
    arrays = _joined(arrays, dtype, casting, NUMPY_2 or axis is None)
    if axis is None:
        arrays, axis = [reshape(a, shape=(a.size,)) for a in arrays], 0
    return concatenate(*arrays, axis=axis)


@defines(onp.stack)
def _stack(arrays: Any, axis: int = 0, dtype: Any = None, casting: str = "same_kind") -> Any:
    return stack(*_joined(arrays, dtype, casting, weak=False), axis=axis)
