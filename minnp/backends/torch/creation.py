"""Kernels of arrays like another, of table look-up, and new arrays made on the device itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import CLASSES, TO_NUMPY, cast, device_of, promote, refuse, scalar, to_torch
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
    if type(x) is not Tensor or x.dtype.is_floating_point or x.dtype.is_complex:
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
    return interpolated(x, xp, fp, left, right)


def interpolated(x: Tensor, xp: Tensor, fp: Tensor, left: Any, right: Any) -> Tensor:
    """interp of float64 tensors."""
    n, device = xp.shape[0], xp.device
    i = torch.searchsorted(xp[1:-1].contiguous(), x.contiguous(), right=True)  # the segment, of NaN the last one
    slope = torch.diff(fp) / torch.diff(xp)
    y = torch.take(slope, i) * (x - torch.take(xp, i)) + torch.take(fp, i)
    first, last, end = xp[0], xp[n - 1], fp[n - 1]
    y = torch.where(x < first, fp[0] if left is None else scalar(float(left), y.dtype, device), y)
    if right is None:
        return torch.where(x >= last, end, y)
    return torch.where(x > last, scalar(float(right), y.dtype, device), torch.where(x == last, end, y))


# ------------------------------------------------------------------ new arrays
def shape_of(shape: Any) -> tuple[int, ...]:
    if type(shape) is int and shape >= 0:
        return (shape,)
    found = tuple(map(operator.index, shape if isinstance(shape, (tuple, list)) else (shape,)))
    return found if min(found, default=0) >= 0 else refuse("a negative length")  # NumPy raises ValueError


_known: dict[Any, torch.dtype] = {}  # by what programs call a dtype


def _said(dtype: Any) -> torch.dtype:
    found = _known.get(dtype)
    return found or _known.setdefault(dtype, to_torch(float if dtype is None else dtype))


def creators(device: torch.device) -> dict[str, Callable]:
    """By NumPy's name, what makes its array on a device; what it refuses, or torch does, NumPy makes or refuses."""

    def filled(fill: Callable) -> Callable:
        def make(shape: Any, dtype: Any = None, order: str = "C") -> Tensor:
            if order != "C":
                refuse("another memory order")
            return fill(shape, dtype=_known.get(dtype) or _said(dtype), device=device)

        return make

    def full(shape: Any, value: Any, dtype: Any = None) -> Tensor:
        kind = type(value)
        if kind not in (bool, int, float, complex):
            refuse("full of an array")
        found = CLASSES[kind] if dtype is None else _said(dtype)
        if kind is complex and not found.is_complex:
            refuse("complex numbers among real ones")
        if not (kind is float and found.is_floating_point):
            value = onp.array(value, TO_NUMPY[found]).item()  # or its exception, or NumPy 1's warning
        return torch.full((shape,) if type(shape) is int else shape, value, dtype=found, device=device)

    def eye(n: int, m: Any = None, k: int = 0, dtype: Any = None) -> Tensor:
        if k == 0:
            return torch.eye(n, n if m is None else m, dtype=_said(dtype), device=device)
        out = torch.zeros((n, n if m is None else m), dtype=_said(dtype), device=device)
        torch.diagonal(out, k).fill_(1)
        return out

    def arange(*bounds: Any, dtype: Any = None) -> Tensor:
        if dtype is not None and _said(dtype) is not torch.int64:
            refuse("arange in another dtype")
        for b in bounds:
            if type(b) is not int or not -(2**63) < b < 2**63:
                refuse("arange of floats")  # NumPy's rounding of each element is its own
        return torch.arange(*bounds, device=device) if 0 not in bounds[2:] and range(*bounds) else refuse("no elements")

    def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Tensor:
        """NumPy's arithmetic, in its order: numpy.linspace."""
        steps = num - bool(endpoint) if type(num) is int else 0
        if type(start) not in (int, float) or type(stop) not in (int, float) or steps < 1:
            refuse("linspace of arrays, or of a single number")
        start, stop = float(start), float(stop)
        step = (stop - start) / steps
        y = torch.arange(num, dtype=torch.float64, device=device)
        y = y.div_(steps).mul_(stop - start) if step == 0 else y.mul_(step)
        y = y.add_(start) if start or step < 0 else y
        if endpoint and (step == 0 or steps * step + start != stop):
            y[-1] = stop
        return y

    def array(x: Any, dtype: Any = None) -> Tensor:
        a = onp.array(x, dtype) if is_plain(x) else refuse("an array of arrays")
        found = to_torch(a.dtype)
        return torch.from_numpy(a.view(TO_NUMPY[found]) if a.dtype.char in "qQ" else a).to(device)

    return {
        "zeros": filled(torch.zeros),
        "empty": filled(torch.zeros),  # what lies in a device's memory is nobody's to look at
        "ones": filled(torch.ones),
        "full": full,
        "eye": eye,
        "identity": lambda n, dtype=None: eye(n, dtype=dtype),
        "arange": arange,
        "linspace": linspace,
        "array": array,
        "asarray": array,
    }


def is_plain(x: Any) -> bool:
    """Whether x is a number, or lists of numbers alone."""
    if type(x) is list or type(x) is tuple:
        return NUMBERS.issuperset(map(type, x)) or all(type(e) in (list, tuple) and is_plain(e) for e in x)
    return type(x) in NUMBERS


NUMBERS = {bool, int, float, complex}
