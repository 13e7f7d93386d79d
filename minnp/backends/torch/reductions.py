"""Kernels of reductions and scans. Accumulators are NumPy's: the platform's integer for smaller ones and bool."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import SIGNED, TO_NUMPY, TO_TORCH, refuse, to_torch
from .elementwise import UNSIGNED
from .registry import kernel

Tensor = torch.Tensor
# what sums and products of a dtype accumulate in
ACCUMULATOR = {t: TO_TORCH[onp.sum(onp.empty(0, n)).dtype] for t, n in TO_NUMPY.items()}
INTEGRAL = tuple(t for t, n in TO_NUMPY.items() if n.kind in "biu")
FLOATS = (torch.float16, torch.float32, torch.float64)


def on_floats(run: Callable) -> dict:
    return dict.fromkeys(FLOATS, run)


def dims(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; refuses what NumPy raises AxisError or ValueError for."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if type(axis) is not tuple:
        axis = tuple(axis) if isinstance(axis, list) else (axis,)
    found = []
    for a in axis:
        a = operator.index(a)
        if not -ndim <= a < ndim:
            refuse(f"axis {a} of {ndim} dimensions")
        found.append(a % ndim)
    if len(set(found)) != len(found):
        refuse("duplicate axes")
    return tuple(found)


def one_dim(axis: Any, ndim: int) -> int:
    return dims(operator.index(axis), ndim)[0]


def widened(x: Tensor, dtype: Any) -> tuple[Tensor, torch.dtype]:
    """(x in a dtype torch accumulates in, the result's dtype). uint64 accumulates as int64: the bits are the same."""
    target = ACCUMULATOR[x.dtype] if dtype is None else to_torch(dtype)
    if target is torch.bool or (x.dtype.is_complex and not target.is_complex):
        refuse("a sum of this dtype in that dtype")
    if target in UNSIGNED:
        return (x.view(torch.int64) if x.dtype is torch.uint64 else x.to(SIGNED[target])), target
    return (x if x.dtype is target else x.to(target)), target


def back(y: Tensor, target: torch.dtype) -> Tensor:
    return y if y.dtype is target else y.view(target)


@kernel("sum", direct=on_floats(torch.sum))  # torch adds floats up in the same dtype
def sum_(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    if dtype is None and x.dtype.is_floating_point:
        if axis is None and not keepdims:
            return torch.sum(x)
        if type(axis) is int:
            return torch.sum(x, axis, keepdims)
    x, target = widened(x, dtype)
    over = dims(axis, x.ndim)
    return back(torch.sum(x, over, keepdims, dtype=x.dtype) if over else x, target)


@kernel("prod", direct=on_floats(torch.prod))
def prod(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    x, target = widened(x, dtype)
    for d in sorted(dims(axis, x.ndim), reverse=True):
        x = torch.prod(x, d, keepdims, dtype=x.dtype)
    return back(x, target)


def _float(x: Tensor, dtype: Any = None) -> Tensor:
    """x as mean and var take it: integers in float64."""
    target = to_torch(dtype) if dtype is not None else torch.float64 if x.dtype in INTEGRAL else x.dtype
    if not (target.is_floating_point or target.is_complex) or (x.dtype.is_complex and not target.is_complex):
        refuse("a mean of this dtype in that dtype")
    return x.to(target)


@kernel("mean", direct=on_floats(torch.mean))
def mean(x: Tensor, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    x = _float(x, dtype)
    over = dims(axis, x.ndim)
    return torch.mean(x, over, keepdims) if over else x


def _spread(reduce: Callable) -> tuple[Callable, dict]:
    def run(x: Tensor, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
        x = _float(x)
        over = dims(axis, x.ndim)
        count = 1
        for d in over:
            count *= x.shape[d]
        if not over or count <= ddof or not x.numel():
            refuse("no degrees of freedom left")
        ddof = ddof.item() if isinstance(ddof, onp.ndarray) else ddof
        return reduce(x, over, correction=ddof, keepdim=keepdims)

    def direct(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        if not x.numel():
            refuse("no degrees of freedom left")
        return reduce(x, axis, correction=0, keepdim=keepdims)

    return run, on_floats(direct)


for _name, _reduce in (("var", torch.var), ("std", torch.std)):
    _run, _direct = _spread(_reduce)
    kernel(_name, direct=_direct)(_run)


def _extreme(reduce: Callable) -> Callable:
    def run(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        over = dims(axis, x.ndim)
        if not over:
            return x
        if x.dtype not in UNSIGNED:
            return reduce(x, over, keepdims)
        top = torch.iinfo(SIGNED[x.dtype]).min  # flipping the top bit maps unsigned order to signed order
        return (reduce(x.view(SIGNED[x.dtype]) ^ top, over, keepdims) ^ top).view(x.dtype)

    return run


kernel("max", "amax", direct=on_floats(torch.amax))(_extreme(torch.amax))
kernel("min", "amin", direct=on_floats(torch.amin))(_extreme(torch.amin))


@kernel("ptp")
def ptp(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    over = dims(axis, x.ndim)
    return torch.amax(x, over, keepdims) - torch.amin(x, over, keepdims)


def _position(find: Callable) -> Callable:
    def run(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        if x.dtype is torch.bool:
            x = x.view(torch.uint8)
        elif x.dtype in UNSIGNED:
            signed = SIGNED[x.dtype]
            x = x.view(signed) ^ torch.iinfo(signed).min
        return find(x, None if axis is None else one_dim(axis, x.ndim), keepdims)

    return run


kernel("argmax", direct=on_floats(torch.argmax))(_position(torch.argmax))
kernel("argmin", direct=on_floats(torch.argmin))(_position(torch.argmin))


def nonzero_mask(x: Tensor) -> Tensor:
    if x.dtype is torch.bool:
        return x
    return (x.view(SIGNED[x.dtype]) if x.dtype in UNSIGNED else x) != 0


@kernel("all", direct={torch.bool: torch.all})
def all_(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    over = dims(axis, x.ndim)
    return torch.all(nonzero_mask(x), over, keepdims) if over else nonzero_mask(x)


@kernel("any", direct={torch.bool: torch.any})
def any_(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    over = dims(axis, x.ndim)
    return torch.any(nonzero_mask(x), over, keepdims) if over else nonzero_mask(x)


@kernel("count_nonzero")
def count_nonzero(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    over = dims(axis, x.ndim)
    return torch.sum(nonzero_mask(x), over, keepdims) if over else nonzero_mask(x).long()


@kernel("sum_to")
def sum_to(x: Tensor, shape: Any) -> Tensor:
    """x summed down to `shape`, which broadcasts to x's shape; the dtype stays."""
    extra = x.ndim - len(shape)
    over = [*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1]]
    if not over:
        return x
    if x.dtype in UNSIGNED:
        signed = SIGNED[x.dtype]
        return torch.sum(x.view(signed), over, dtype=signed).reshape(shape).view(x.dtype)
    return torch.sum(x, over, dtype=x.dtype).reshape(shape)


# ------------------------------------------------------------------ scans
def _scan(run: Callable) -> tuple[Callable, dict]:
    def scan(x: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
        x, target = widened(x, dtype)
        if axis is None:
            x, axis = x.reshape(-1), 0
        return back(run(x, one_dim(axis, x.ndim), dtype=x.dtype), target)

    def direct(x: Tensor, axis: Any = None) -> Tensor:
        return run(x.reshape(-1), 0) if axis is None else run(x, axis)

    return scan, on_floats(direct)


for _name, _run in (("cumsum", torch.cumsum), ("cumprod", torch.cumprod)):
    _run, _direct = _scan(_run)
    kernel(_name, direct=_direct)(_run)


def _diff(x: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    return torch.diff(x, n, axis) if x.ndim and n > 0 and type(axis) is int else diff(x, n, axis)


@kernel("diff", bits=True, direct=on_floats(_diff))
def diff(x: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    if not x.ndim or n < 0:
        refuse("diff of a 0-d array, or of negative order")
    return torch.diff(x, n, one_dim(axis, x.ndim)) if n else x


@kernel("logsumexp")
def logsumexp(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    over = dims(axis, x.ndim)
    return torch.logsumexp(x, over, keepdims) if over else x
