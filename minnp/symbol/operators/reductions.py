"""Reductions, ordering, and products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import Shape, operator

AXES = "axis:shape=None keepdims:bool=0 exclude:bool=0"


def axes_of(axis: Shape | None, ndim: int, exclude: bool = False) -> Shape:
    """The axes a reduction is over: all for None and (); with exclude, the others."""
    chosen = tuple(a % ndim for a in axis) if axis else ()
    if exclude:
        return tuple(a for a in range(ndim) if a not in chosen)
    return chosen or tuple(range(ndim))


def _kept(y: Any, axes: Shape, x: Any, keepdims: bool) -> Any:
    """MXNet has no arrays without axes: a sum over all of them is [1]."""
    return np.reshape(y, (1,)) if len(axes) == x.ndim and not keepdims else y


def reduction(function: Callable) -> Callable:
    @functools.wraps(function)
    def reduced(data: Any, axis: Shape | None = None, keepdims: bool = False, exclude: bool = False) -> Any:
        axes = axes_of(axis, data.ndim, exclude)
        return _kept(function(data, axis=axes, keepdims=keepdims), axes, data, keepdims)

    return reduced


def _reduced(p: dict, data: Shape) -> list[Shape]:
    axes = axes_of(p["axis"], len(data), p.get("exclude", False))
    if p["keepdims"]:
        return [tuple(1 if i in axes else n for i, n in enumerate(data))]
    return [tuple(n for i, n in enumerate(data) if i not in axes) or (1,)]


for _name, _function in {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
                         "nansum": np.nansum, "nanprod": np.nanprod}.items():  # fmt: skip
    _also = (f"{_name}_axis",) if _name in ("sum", "max", "min") else ()
    operator(_name, reduction(_function), ("data",), AXES, aliases=_also, result=_reduced)


def norm(data: Any, ord: int = 2, axis: Shape | None = None, out_dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum of magnitudes (ord=1) or the root of the sum of squares (ord=2)."""
    axes = axes_of(axis, data.ndim)
    if ord not in (1, 2):
        raise ValueError(f"norm of order {ord}: MXNet has 1 and 2")
    if ord == 1:
        y = np.sum(np.abs(data), axis=axes, keepdims=keepdims)
    else:
        y = np.sqrt(np.sum(np.square(data), axis=axes, keepdims=keepdims))
    y = _kept(y, axes, data, keepdims)
    return y if out_dtype is None else y.astype(out_dtype)


operator("norm", norm, ("data",), "ord:int=2 axis:shape=None out_dtype:dtype=None keepdims:bool=0", result=_reduced,
         dtypes=lambda p, ins: (ins, [p["out_dtype"] or ins[0]]))  # fmt: skip


def moments(data: Any, axes: Shape | None = None, keepdims: bool = False) -> tuple:
    """(mean, variance)."""
    over = axes_of(axes, data.ndim)
    mean, var = (f(data, axis=over, keepdims=keepdims) for f in (np.mean, np.var))
    return _kept(mean, over, data, keepdims), _kept(var, over, data, keepdims)


operator("moments", moments, ("data",), "axes:shape=None keepdims:bool=0", outputs=("output0", "output1"),
         result=lambda p, data: _reduced(p | {"axis": p["axes"]}, data) * 2)  # fmt: skip


# ------------------------------------------------------------------ places
def _place(function: Callable) -> Callable:
    @functools.wraps(function)
    def place(data: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        y = function(data, axis=axis, keepdims=keepdims).astype(data.dtype)
        return np.reshape(y, (1,)) if y.ndim == 0 else y

    return place


def _placed(p: dict, data: Shape) -> list[Shape]:
    return _reduced({"axis": None if p["axis"] is None else (p["axis"],), "keepdims": p["keepdims"]}, data)


for _name in ("argmax", "argmin"):
    operator(_name, _place(getattr(np, _name)), ("data",), "axis:int=None keepdims:bool=0", result=_placed)


def argmax_channel(data: Any) -> Any:
    """The places of the maxima along axis 1."""
    return np.argmax(data, axis=1).astype(data.dtype)


operator("argmax_channel", argmax_channel, ("data",), result=lambda p, data: [(data[0], *data[2:])])


def _ordered(data: Any, axis: int | None, is_ascend: bool) -> tuple[Any, Any, int]:
    """(data, the order of its elements, the axis); of equal ones the first comes first."""
    if axis is None:
        data, axis = np.reshape(data, (-1,)), 0
    order = np.argsort(data if is_ascend else -data, axis=axis, kind="stable")
    return data, order, axis


def sort(data: Any, axis: int | None = -1, is_ascend: bool = True) -> tuple:
    """(data in order along an axis, or all of it; where it was)."""
    data, order, axis = _ordered(data, axis, is_ascend)
    return np.take_along_axis(data, order, axis), order.astype(data.dtype)


def argsort(data: Any, axis: int | None = -1, is_ascend: bool = True, dtype: Any = "float32") -> Any:
    """Where the elements in order are."""
    return _ordered(data, axis, is_ascend)[1].astype(dtype)


def _sorted_shape(p: dict, data: Shape) -> list[Shape]:
    return [(int(onp.prod(data)),) if p["axis"] is None else data] * (1 if "dtype" in p else 2)


def _to_dtype(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p["dtype"]]


operator("sort", sort, ("data",), "axis:int=-1 is_ascend:bool=1", outputs=("output0", "output1"), visible=1,
         result=_sorted_shape)  # fmt: skip
operator("argsort", argsort, ("data",), "axis:int=-1 is_ascend:bool=1 dtype:dtype=float32", result=_sorted_shape,
         dtypes=_to_dtype)  # fmt: skip


def topk(data: Any, axis: int | None = -1, k: int = 1, ret_typ: str = "indices", is_ascend: bool = False,
         dtype: Any = "float32") -> Any:  # fmt: skip
    """npx.topk; k < 1 is all; "value" gives both, of which the second is not shown."""
    length = data.size if axis is None else data.shape[axis]
    return npx.topk(data, axis, k if k >= 1 else length, "both" if ret_typ == "value" else ret_typ, is_ascend, dtype)


def _topk_types(p: dict, ins: list) -> tuple[list, list]:
    places, values = p["dtype"], ins[0]
    return ins, {"indices": [places], "mask": [values]}.get(p["ret_typ"], [values, places])


operator("topk", topk, ("data",),
         "axis:int=-1 k:int=1 ret_typ:both|indices|mask|value=indices is_ascend:bool=0 dtype:dtype=float32",
         outputs=lambda p: ("output0", "output1") if p["ret_typ"] in ("both", "value") else ("output",),
         visible=lambda p: 2 if p["ret_typ"] == "both" else 1,
         dtypes=_topk_types)  # fmt: skip


# ------------------------------------------------------------------ products
TRANSPOSED = "transpose_a:bool=0 transpose_b:bool=0 forward_stype:~None|csr|default|row_sparse=None"


def dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """The sum over lhs's last and rhs's first axis; transposed, over its first, or rhs's last."""
    y = np.tensordot(lhs, rhs, axes=([0 if transpose_a else -1], [-1 if transpose_b else 0]))
    return np.reshape(y, (1,)) if y.ndim == 0 else y


def _dot_shape(p: dict, a: Shape, b: Shape) -> list[Shape]:
    inner, outer = (a[0], a[1:]) if p["transpose_a"] else (a[-1], a[:-1])
    other, rest = (b[-1], b[:-1]) if p["transpose_b"] else (b[0], b[1:])
    if inner != other:
        raise ValueError(f"the product of {a} and {b} is over axes of {inner} and {other}")
    return [(*outer, *rest) or (1,)]


def batch_dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """The matrix products of [..., I, J] and [..., J, K]; transposed, of [..., J, I] or [..., K, J]."""
    turn = lambda x, turned: np.swapaxes(x, -1, -2) if turned else x
    return np.matmul(turn(lhs, transpose_a), turn(rhs, transpose_b))


def _batch_shape(p: dict, a: Shape, b: Shape) -> list[Shape]:
    rows, inner = a[-2:][::-1] if p["transpose_a"] else a[-2:]
    other, columns = b[-2:][::-1] if p["transpose_b"] else b[-2:]
    if inner != other or a[:-2] != b[:-2]:
        raise ValueError(f"no matrix products of {a} and {b}")
    return [(*a[:-2], rows, columns)]


operator("dot", dot, ("lhs", "rhs"), TRANSPOSED, result=_dot_shape)
operator("batch_dot", batch_dot, ("lhs", "rhs"), TRANSPOSED, result=_batch_shape)


def khatri_rao(*args: Any) -> Any:
    """The Kronecker products of matrices' columns: [I_1, K], [I_2, K], ... give [I_1 I_2 ..., K]."""
    y = args[0]
    for x in args[1:]:
        y = np.reshape(y[:, None, :] * x[None, :, :], (-1, x.shape[-1]))
    return y


operator("khatri_rao", khatri_rao, None, "num_args:~int", count="num_args")


def histogram(data: Any, bins: Any = None, bin_cnt: int | None = None, range: tuple | None = None) -> tuple:
    """(counts, edges): how many numbers lie between edges, those given or bin_cnt + 1 of equal distance in a range."""
    if bin_cnt is None:
        counts, edges = np.histogram(stop_gradient(data), stop_gradient(bins))
    else:
        counts, edges = np.histogram(stop_gradient(data), bin_cnt, range)
    return counts.astype(onp.int64), edges.astype(data.dtype)


def _bins(p: dict, data: Shape, *edges: Shape) -> list[Shape]:
    count = edges[0][0] - 1 if p["bin_cnt"] is None else p["bin_cnt"]
    return [(count,), (count + 1,)]


operator("_histogram", histogram, lambda p: ["data", *(["bins"] if p["bin_cnt"] in (None,) else [])],
         "bin_cnt:int=None range:floats=None", outputs=("output0", "output1"), result=_bins,
         dtypes=lambda p, ins: (ins, [onp.dtype("int64"), ins[0]]))  # fmt: skip
