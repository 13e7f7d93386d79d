"""Kernels of arrays like another, of table look-up, and new arrays made on the device itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import cast, device_of, promote, refuse, to_torch
from .indexing import flat_positions, getitem
from .reductions import on_floats
from .registry import kernel

Tensor = torch.Tensor


def _like(make: Callable) -> Callable:
    def run(x: Tensor, dtype: Any = None, shape: Any = None) -> Tensor:
        shape = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        return make(shape, dtype=x.dtype if dtype is None else to_torch(dtype), device=x.device)

    return run


kernel("zeros_like", "empty_like", direct=on_floats(torch.zeros_like))(_like(torch.zeros))
kernel("ones_like", direct=on_floats(torch.ones_like))(_like(torch.ones))
kernel("stop_gradient")(lambda x: x)


@kernel("last_write", bits=True)
def last_write(x: Tensor, index: Any) -> Tensor:
    """x[index], zero where a later element of the index names the same place."""
    chosen = getitem(flat_positions(x.shape, x.device), index)
    if not chosen.ndim:
        return getitem(x, index)
    flat = chosen.reshape(-1)
    # amax, not a write: which of several writes to one place is the last one, a device does not promise
    order = torch.arange(flat.numel(), device=x.device)
    last = torch.full((x.numel(),), -1, device=x.device).scatter_reduce_(0, flat, order, "amax")
    x = getitem(x, index)
    return torch.where((last[flat] == order).reshape(chosen.shape), x, torch.zeros_like(x))


@kernel(
    "bincount", dtypes_of=lambda x, weights, *rest: (weights.dtype,) if type(weights) is Tensor else (promote(weights),)
)
def bincount(x: Any, weights: Any, minlength: int = 0) -> Tensor:
    device = device_of((x, weights))
    if type(x) is not Tensor or x.dtype.is_floating_point or x.dtype.is_complex or bool((x < 0).any()):
        refuse("bincount of these values")
    return torch.bincount(x.long(), cast(weights, torch.float64, device), operator.index(minlength))


@kernel("interp", dtypes_of=lambda x, xp, fp, *rest: (promote(x, xp, fp),))
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    device = device_of((x, xp, fp))
    if promote(x, xp, fp).is_complex:
        refuse("interp of complex numbers")
    x, xp, fp = (cast(v, torch.float64, device) for v in (x, xp, fp))
    n = xp.shape[0]
    if n < 2:
        refuse("interp in a table of one")
    i = torch.searchsorted(xp.contiguous(), x.contiguous(), right=True).clamp(1, n - 1) - 1
    slope = (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])
    y = slope * (x - xp[i]) + fp[i]
    y = torch.where(x == xp[n - 1], fp[n - 1], y)
    y = torch.where(x < xp[0], fp[0] if left is None else float(left), y)
    return torch.where(x > xp[n - 1], fp[n - 1] if right is None else float(right), y)


# ------------------------------------------------------------------ new arrays
def shape_of(shape: Any) -> tuple[int, ...]:
    if type(shape) is int and shape >= 0:
        return (shape,)
    found = tuple(map(operator.index, shape if isinstance(shape, (tuple, list)) else (shape,)))
    return found if min(found, default=0) >= 0 else refuse("a negative length")  # NumPy raises ValueError


def _filled(fill: Callable) -> Callable:
    def make(device: torch.device, shape: Any, dtype: Any = float, order: str = "C") -> Tensor:
        if order != "C":
            refuse("another memory order")
        return fill(shape_of(shape), dtype=to_torch(dtype or float), device=device)

    return make


def _full(device: torch.device, shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    if not isinstance(fill_value, (bool, int, float, complex)):
        refuse("full of an array")
    if dtype is None:
        dtype = type(fill_value) if type(fill_value) in (bool, float) else onp.asarray(fill_value).dtype
    return cast(fill_value, to_torch(dtype), device).expand(shape_of(shape)).clone()


def _eye(device: torch.device, n: int, m: Any = None, k: int = 0, dtype: Any = float) -> Tensor:
    out = torch.zeros((n, n if m is None else m), dtype=to_torch(dtype), device=device)
    torch.diagonal(out, k).fill_(1)
    return out


def _whole(dtype: Any) -> bool:
    """Whether this is int64, or not given. (To NumPy 1 a float64 dtype equals None.)"""
    return dtype is None or onp.dtype(dtype) == onp.int64


def _arange(device: torch.device, *bounds: Any, dtype: Any = None) -> Tensor:
    if not all(type(b) is int for b in bounds) or not 1 <= len(bounds) <= 3 or not _whole(dtype):
        refuse("arange of floats")  # NumPy's rounding of each element is its own
    if 0 in bounds[2:] or max(map(abs, bounds)) >= 2**63 or not range(*bounds):
        refuse("arange of nothing, or beyond int64")
    return torch.arange(*bounds, device=device)


def _linspace(device: torch.device, start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Tensor:
    """NumPy's arithmetic, in its order: numpy.linspace."""
    steps = num - bool(endpoint) if type(num) is int else 0
    if type(start) not in (int, float) or type(stop) not in (int, float) or steps < 1:
        refuse("linspace of arrays, or of a single number")
    start, stop = float(start), float(stop)
    step = (stop - start) / steps
    y = torch.arange(num, dtype=torch.float64, device=device)
    y = (y / steps * (stop - start) if step == 0 else y * step) + start
    if endpoint:
        y[-1] = stop
    return y


# by NumPy's name: (device, *NumPy's arguments) -> tensor
CREATORS: dict[str, Callable] = {
    "zeros": _filled(torch.zeros),
    "empty": _filled(torch.zeros),
    "ones": _filled(torch.ones),
    "full": _full,
    "eye": _eye,
    "identity": lambda device, n, dtype=float: _eye(device, n, dtype=dtype),
    "arange": _arange,
    "linspace": _linspace,
}
