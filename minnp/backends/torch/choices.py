"""Kernels of rows that act like a ufunc: where, clip, rounding to decimals, parts of complex numbers, conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import LEGACY, SIGNED, TO_TORCH, cast, device_of, promote, refuse, to_torch, weak_in_numpy_1
from .elementwise import INTEGERS, UNSIGNED
from .registry import KERNELS, kernel

Tensor = torch.Tensor


def _chosen(c: Any, a: Any, b: Any) -> tuple:
    return (a.dtype if type(a) is type(b) is Tensor and a.dtype is b.dtype else promote(a, b),)


def _alike(c: Tensor, a: Tensor, b: Tensor) -> Callable:
    return torch.where if c.dtype is torch.bool else where


def _takes(x: Tensor, v: float) -> bool:
    """Whether x, of floats, and a number make x's dtype, and torch rounds the number to it once."""
    return x.dtype in (torch.float32, torch.float64) and (not LEGACY or (x.ndim > 0 and weak_in_numpy_1(v)))


@kernel("where", dtypes_of=_chosen, alike=_alike)
def where(c: Any, a: Any, b: Any) -> Tensor:
    tensors = type(c) is type(a) is type(b) is Tensor and c.dtype is torch.bool
    if tensors and a.dtype is b.dtype and a.dtype not in UNSIGNED:
        return torch.where(c, a, b)
    if type(b) is float and type(c) is type(a) is Tensor and c.dtype is torch.bool and _takes(a, b):
        return torch.where(c, a, b)
    device, dtype = device_of((c, a, b)), promote(a, b)
    condition = cast(c, torch.bool, device) if type(c) is not Tensor or c.dtype is not torch.bool else c
    a, b = cast(a, dtype, device), cast(b, dtype, device)
    if dtype in UNSIGNED:
        signed = SIGNED[dtype]
        return torch.where(condition, a.view(signed), b.view(signed)).view(dtype)
    return torch.where(condition, a, b)


# of a zero of either sign between zeros, torch keeps the sign; old NumPys take the bound's
ZEROS_STAY = bool(onp.signbit(onp.clip(onp.array([-0.0]), 0.0, 1.0))[0])


@kernel("clip", dtypes_of=lambda x, low=None, high=None: (promote(*[v for v in (x, low, high) if v is not None]),))
def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    known = type(low) is type(high) is float and ((low and high) or ZEROS_STAY)
    if known and type(x) is Tensor and _takes(x, low) and _takes(x, high):
        return torch.clamp(x, low, high)
    device = device_of((x, low, high))
    dtype = promote(*[v for v in (x, low, high) if v is not None])
    y = cast(x, dtype, device)
    if low is not None:
        y = torch.maximum(y, cast(low, dtype, device))
    return y if high is None else torch.minimum(y, cast(high, dtype, device))


def _clamped(x: Tensor, low: float, high: float) -> Tensor:
    if (low == 0 and math.copysign(1, low) < 0) or (high == 0 and math.copysign(1, high) < 0):
        return clip(x, low, high)
    y = torch.clamp(x, low, high)
    if low and high:
        return y
    return y.abs_() if high > 0 else y.add_(0.0)  # of a zero of the other sign a positive one


def _plan(x: Any, *bounds: Any, plan: Callable = KERNELS["clip"].plan) -> Callable:
    run, simple = plan(x, *bounds), type(x) is Tensor and all(type(b) is float and _takes(x, b) for b in bounds)
    return run if not simple or len(bounds) < 2 else torch.clamp if ZEROS_STAY else _clamped


KERNELS["clip"].short = _plan


@kernel("nan_to_num")
def nan_to_num(x: Tensor, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, copy: bool = True) -> Tensor:
    if not x.dtype.is_floating_point:
        return x if not x.dtype.is_complex else refuse("nan_to_num of complex numbers")
    if not all(isinstance(v, (int, float, type(None))) for v in (nan, posinf, neginf)):
        refuse("nan_to_num with arrays as replacements")
    return torch.nan_to_num(x, nan, posinf, neginf)


@kernel("real")
def real(x: Tensor) -> Tensor:
    return x.real if x.dtype.is_complex else x


@kernel("imag")
def imag(x: Tensor) -> Tensor:
    return x.imag if x.dtype.is_complex else torch.zeros_like(x)


@kernel("angle")
def angle(x: Tensor, deg: bool = False) -> Tensor:
    if x.dtype.is_complex:
        y = torch.atan2(x.imag, x.real)
    else:
        x = x if x.dtype.is_floating_point else x.double()
        y = torch.atan2(torch.zeros_like(x), x)
    return y * (180 / math.pi) if deg else y


@kernel("round")
def round_(x: Tensor, decimals: int = 0) -> Tensor:
    if not x.dtype.is_floating_point:
        return x if decimals >= 0 and x.dtype in INTEGERS else refuse("round of this dtype to these decimals")
    if decimals == 0:
        return torch.round(x)
    # NumPy's own algorithm: multiply, round half to even, divide
    factor = cast(10.0 ** abs(decimals), x.dtype, x.device)
    return torch.round(x * factor) / factor if decimals > 0 else torch.round(x / factor) * factor


@kernel("fix")
def fix(x: Tensor) -> Tensor:
    return torch.trunc(x)


@kernel("sinc")
def sinc(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        refuse("sinc of complex numbers")
    if LEGACY and not x.ndim:
        refuse("sinc of a 0-d array")  # NumPy 1 promotes it to float64
    x = x if x.dtype.is_floating_point else x.double()
    y = math.pi * x
    return torch.where(x == 0, 1, torch.sin(y) / y)


@kernel("i0")
def i0(x: Tensor) -> Tensor:
    return torch.special.i0(x)


@kernel("astype")
def astype(x: Tensor, dtype: Any) -> Tensor:
    target = TO_TORCH.get(dtype) or to_torch(dtype)
    if x.dtype.is_complex and not target.is_complex:
        return refuse("a complex number to a real one: NumPy warns")
    return x.to(target)
