"""Kernels of sorting and searching. NaN sorts last, as in NumPy; sorts are stable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import FLOATS, SIGNED, cast, device_of, from_host, known, promote, refuse
from .elementwise import UNSIGNED
from .reductions import nonzero_mask, on_floats, one_dim
from .registry import kernel

Tensor = torch.Tensor


# ------------------------------------------------------------------ sorting
def _ordered(x: Tensor) -> tuple[Tensor, Callable]:
    """(x in a dtype torch sorts, in the same order; the way back)."""
    if x.dtype not in UNSIGNED:
        return x, lambda y: y
    signed, dtype = SIGNED[x.dtype], x.dtype
    top = torch.iinfo(signed).min  # flipping the top bit maps unsigned order to signed order
    return x.view(signed) ^ top, lambda y: (y ^ top).view(dtype)


def _sorted(part: int) -> Callable:
    """sort (part 0: values) and argsort (part 1: positions); a full sort is a valid partition too."""

    def run(x: Tensor, axis: int | None = -1, **how: Any) -> Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        if not x.ndim:
            refuse("a sort of a 0-d array")
        dim = one_dim(axis, x.ndim)
        kth = how.get("kth")
        if kth is not None:
            for k in kth if isinstance(kth, (tuple, list)) else (kth,):
                if type(k) is not int or not -x.shape[dim] <= k < x.shape[dim]:
                    refuse(f"kth {k} of {x.shape[dim]} elements")
        x, back = _ordered(x)
        found = torch.sort(x, dim=dim, stable=True)[part]
        return found if part else back(found)

    return run


def _sort(x: Tensor, axis: int = -1) -> Tensor:
    return torch.sort(x, axis)[0] if x.ndim else refuse("a sort of a 0-d array")


def _argsort(x: Tensor, axis: int = -1) -> Tensor:
    return torch.argsort(x, dim=axis, stable=True) if x.ndim else refuse("a sort of a 0-d array")


kernel("sort", "partition", direct=on_floats(_sort))(_sorted(0))
kernel("argsort", "argpartition", direct=on_floats(_argsort))(_sorted(1))


# ------------------------------------------------------------------ searching
def _operands(*values: Any) -> tuple:
    return (promote(*values),)


def _nan_last(x: Tensor) -> Tensor:
    """Floats as integers in NumPy's order, where NaN comes last and equals itself; torch's search does not know NaN."""
    integer = {torch.float16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}.get(x.dtype)
    if integer is None:
        return x
    info = torch.iinfo(integer)
    bits = (x + 0.0).view(integer)  # one zero
    return torch.where(torch.isnan(x), info.max, torch.where(bits < 0, bits ^ info.max, bits))


def _positions(a: Tensor, v: Tensor, right: bool, order: Tensor | None = None) -> Tensor:
    """Where v belongs among the ascending a. torch's search takes NaN for larger than any number in v alone, not in a:
    whether a has one, its last element tells, where it lies in the host's own memory."""
    last = a[-1] if a.dtype.is_floating_point and a.numel() and order is None and a.device.type == "cpu" else None
    if last is None or last.item() != last.item():
        a, v = _nan_last(a), _nan_last(v)
    return torch.searchsorted(a.contiguous(), v.contiguous(), right=right, sorter=order)


@kernel("searchsorted", dtypes_of=lambda a, v, *rest: (promote(a, v),))
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    dtype, device = promote(a, v), device_of((a, v))
    if dtype in UNSIGNED or getattr(a, "ndim", 1) != 1 or side not in ("left", "right"):
        refuse("searchsorted of these arguments")
    order = None if sorter is None else from_host(onp.asarray(sorter, onp.int64), device)
    return _positions(cast(a, dtype, device), cast(v, dtype, device), side == "right", order)


@kernel("digitize", dtypes_of=lambda x, bins, *rest: (promote(x, bins),))
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    dtype, device = promote(x, bins), device_of((x, bins))
    x, bins = cast(x, dtype, device), cast(bins, dtype, device)
    if dtype in UNSIGNED or bins.ndim != 1:
        refuse("digitize of these arguments")
    if known((bins[1:] >= bins[:-1]).all()):
        return _positions(bins, x, not right)
    x, bins = _nan_last(x), _nan_last(bins)
    if known((bins[1:] >= bins[:-1]).all()):
        return _positions(bins, x, not right)
    if not known((bins[1:] <= bins[:-1]).all()):
        refuse("bins that are not monotonic")  # NumPy raises ValueError
    return bins.shape[0] - _positions(bins.flip(0), x, not right)


@kernel("nonzero")
def nonzero(x: Tensor) -> tuple:
    # the columns of one array, in which NumPy's lie too
    return torch.nonzero(nonzero_mask(x)).contiguous().unbind(1) if x.ndim else refuse("nonzero of a 0-d array")


@kernel("flatnonzero")
def flatnonzero(x: Tensor) -> Tensor:
    return torch.nonzero(nonzero_mask(x).reshape(-1)).reshape(-1)


@kernel("argwhere")
def argwhere(x: Tensor) -> Tensor:
    return torch.nonzero(nonzero_mask(x))


# ------------------------------------------------------------------ comparing whole arrays
def _near(a: Tensor, b: Tensor) -> Tensor:
    return torch.isclose(a, b) if a.dtype in FLOATS and a.dtype is not torch.float16 else isclose(a, b)


def _equal(a: Tensor, b: Tensor) -> Tensor:
    return torch.eq(a, b).all() if a.shape == b.shape else array_equal(a, b)


@kernel("isclose", dtypes_of=_operands, alike=lambda a, b: _near)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    dtype, device = promote(a, b), device_of((a, b))
    if dtype in UNSIGNED or not isinstance(rtol, float) or not isinstance(atol, float):
        refuse("isclose of these arguments")
    if not (0 <= rtol < math.inf and 0 <= atol < math.inf):
        refuse("tolerances of which NumPy warns, or that are negative")
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.float64
    a, b = torch.broadcast_tensors(cast(a, dtype, device), cast(b, dtype, device))
    if a.dtype is torch.float16:
        refuse("tolerances in float16")
    near = torch.abs(a - b) <= atol + rtol * torch.abs(b)
    near = torch.where(torch.isfinite(b), near & torch.isfinite(a), a == b)
    return near | (torch.isnan(a) & torch.isnan(b)) if equal_nan else near


@kernel("allclose", dtypes_of=_operands, alike=lambda a, b: lambda a, b: _near(a, b).all())
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    return isclose(a, b, rtol, atol, equal_nan).all()


@kernel("array_equal", dtypes_of=_operands, alike=lambda a, b: _equal)
def array_equal(a: Any, b: Any, equal_nan: bool = False) -> Tensor:
    dtype, device = promote(a, b), device_of((a, b))
    a, b = cast(a, dtype, device), cast(b, dtype, device)
    if a.shape != b.shape:
        return torch.zeros((), dtype=torch.bool, device=device)
    if dtype in UNSIGNED:
        a, b = a.view(SIGNED[dtype]), b.view(SIGNED[dtype])
    same = a == b
    return (same | (torch.isnan(a) & torch.isnan(b)) if equal_nan else same).all()


@kernel("isin", dtypes_of=lambda e, t, *rest: (promote(e, t),))
def isin(element: Any, test: Any, assume_unique: bool = False, invert: bool = False, kind: Any = None) -> Tensor:
    dtype, device = promote(element, test), device_of((element, test))
    if dtype in UNSIGNED or dtype is torch.bool:
        refuse("isin in this dtype")
    return torch.isin(cast(element, dtype, device), cast(test, dtype, device), invert=invert)
