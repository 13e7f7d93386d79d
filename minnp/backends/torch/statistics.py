"""Functions of whole.py that sort, count or average."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import LEGACY, TO_NUMPY, TO_TORCH, known, refuse, scalar
from .reductions import INTEGRAL, dims
from .whole import NUMBERS, WHOLE, filled, moved, number, whole

__all__ = ["WHOLE"]
Tensor = torch.Tensor


# ------------------------------------------------------------------ order
def _line(a: Tensor, axis: Any) -> tuple[Tensor, int]:
    """(a, the axis that is reduced), or (all of a as a vector, 0)."""
    if axis is None:
        return a.reshape(-1), 0
    return a, dims(axis, a.ndim)[0] if type(axis) is int else refuse("several axes")


def _kept(y: Tensor, a: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return y if not keepdims else y.reshape((1,) * a.ndim) if axis is None else y.unsqueeze(axis)


@whole("median")
def median(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle of the sorted elements; NaN, which is sorted last, where there is one."""
    filled(a)
    x, dim = _line(a, axis)
    rows, n = torch.sort(x, dim)[0], x.shape[dim]
    y, last = rows.select(dim, n // 2), rows.select(dim, n - 1)
    if n % 2 == 0:
        y = (rows.select(dim, n // 2 - 1) + y) / scalar(2.0, y.dtype, y.device)
    return _kept(torch.where(torch.isnan(last), last, y), a, axis, keepdims)


@functools.lru_cache(4096)
def _between(name: str, q: Any, n: int, dtype: torch.dtype) -> tuple:
    """(the dtype of NumPy's result, its leading axes, for each quantile of n sorted elements: the one below, the one
    above, how far it lies between them and from there on), as NumPy computes them; or NumPy's exception."""
    kind = onp.asarray(getattr(onp, name)(onp.zeros(1, TO_NUMPY[dtype]), q)).dtype
    part = onp.asarray(q, kind) / kind.type(1 if name == "quantile" else 100)
    found = (n - 1) * part
    below = onp.floor(found)
    share = (found - below).astype(kind)
    shares = zip(onp.ravel(share).tolist(), onp.ravel(1 - share).tolist(), strict=True)
    places = [(int(i), min(int(i) + 1, n - 1), *s) for i, s in zip(onp.ravel(below), shares, strict=True)]
    return TO_TORCH[kind], part.shape, places


def _quantile(name: str) -> Callable:
    def run(a: Tensor, q: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        filled(a)
        x, dim = _line(a, axis)
        n = x.shape[dim]
        several = type(q) in (list, tuple)
        if n > 2**24 or not all(type(v) in NUMBERS for v in (q if several else (q,))):
            refuse("quantiles of so many elements, or given as arrays")
        dtype, shape, places = _between(name, tuple(q) if several else q, n, x.dtype)
        rows, found = torch.sort(x, dim)[0], []
        last = rows.select(dim, n - 1)
        none = torch.isnan(last)
        for low, high, share, rest in places:
            bottom, top = rows.select(dim, low), rows.select(dim, high)
            gap = top - bottom
            if dtype is not x.dtype:
                bottom, top, gap, last = (v.to(dtype) for v in (bottom, top, gap, last))
            # from the nearer end, as NumPy's: at a share of 1 it is the upper one to the bit
            near = scalar(rest if share >= 0.5 else share, dtype, x.device)
            y = top - gap * near if share >= 0.5 else bottom + gap * near
            found.append(_kept(torch.where(none, last, y), a, axis, keepdims))
        return torch.stack(found) if shape else found[0]

    return run


for _name in ("quantile", "percentile"):
    whole(_name)(_quantile(_name))


@whole("partition")
def partition(a: Tensor, kth: int, axis: int = -1) -> Tensor:
    """Sorted as a whole, which is a partition too."""
    filled(a)
    if type(kth) is not int or type(axis) is not int or not -a.ndim <= axis < a.ndim:
        refuse("several places, or all axes")
    return torch.sort(a, axis)[0] if -a.shape[axis] <= kth < a.shape[axis] else refuse("a place beyond the elements")


@whole("unique")
def unique(ar: Tensor) -> Tensor:
    """The values in their order; of several NaNs, which are last, one."""
    if type(ar) is Tensor and ar.dtype in INTEGRAL:
        moved(ar)
        return torch.unique(ar)
    filled(ar)
    found = torch.unique(ar)
    if ar.is_cpu and (last := found[-1].item()) == last:
        return found
    nan = torch.isnan(found)
    return torch.cat([found[:1], found[1:][~(nan[1:] & nan[:-1])]])


@whole("union1d")
def union1d(ar1: Tensor, ar2: Tensor) -> Tensor:
    moved(ar1, ar2)
    return unique(torch.cat([ar1.reshape(-1), ar2.reshape(-1)]))


@whole("isin")
def isin(element: Tensor, test_elements: Tensor) -> Tensor:
    moved(element, test_elements)
    if element.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
        refuse("elements of another dtype")
    return torch.isin(element, test_elements)


@functools.lru_cache(256)
def _edges(low: Any, high: Any, bins: int, dtype: torch.dtype) -> Tensor:
    if not (bins > 0 and -1e30 < low < high < 1e30):
        refuse("these bins")
    return torch.from_numpy(onp.linspace(low, high, bins + 1, dtype=TO_NUMPY[dtype]))


@whole("histogram")
def histogram(a: Tensor, bins: Any = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    filled(a)
    if not a.is_cpu or a.numel() >= 2**24 or type(bins) is not int:  # it counts in a's dtype
        refuse("a histogram of this array")
    if range is None:
        low, high = map(TO_NUMPY[a.dtype].type, map(known, torch.aminmax(a)))
        edges = _edges.__wrapped__(low, high, bins, a.dtype)
    else:
        edges = _edges(*map(number, range), bins, a.dtype)
    return torch.histogram(a, edges)[0].to(torch.int64), edges


@whole("bincount")
def bincount(x: Tensor, weights: Any = None) -> Tensor:
    moved(x)
    if not x.is_cpu or x.dtype is not torch.int64:  # how long the result is, a device would have to be asked
        refuse("these integers")
    if weights is None:
        return torch.bincount(x)
    filled(weights)
    return torch.bincount(x, weights.double())  # of one shape, or it raises


# ------------------------------------------------------------------ statistics
def _over(axis: Any, ndim: int) -> Any:
    """The axes for functions of torch that take no axes for all of them."""
    return refuse("no axes") if axis == () else dims(axis, ndim)


@whole("average")
def average(a: Tensor, axis: Any = None) -> Tensor:
    filled(a)
    return torch.mean(a, _over(axis, a.ndim))


@whole("ptp")
def ptp(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    filled(a)
    over = _over(axis, a.ndim)
    return torch.amax(a, over, keepdims) - torch.amin(a, over, keepdims)


@whole("count_nonzero")
def count_nonzero(a: Tensor, axis: Any = None) -> Tensor:
    moved(a)
    return torch.count_nonzero(a, axis if axis is None else _over(axis, a.ndim))


@whole("cumulative_sum")
def cumulative_sum(x: Tensor) -> Tensor:
    filled(x)
    return torch.cumsum(x, 0) if x.ndim == 1 else refuse("which axis")


@whole("linalg.vector_norm")
def vector_norm(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    filled(x)
    return torch.linalg.vector_norm(x, dim=_over(axis, x.ndim), keepdim=keepdims)


@whole("nansum")
def nansum(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    filled(a)
    return torch.nansum(a, _over(axis, a.ndim), keepdims)


@whole("nanmean")
def nanmean(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    filled(a)
    return torch.nanmean(a, _over(axis, a.ndim), keepdims)


def _nan_limit(reduce: Callable, neutral: float) -> Callable:
    def run(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        filled(a)
        over, none = dims(axis, a.ndim), torch.isnan(a)
        found = reduce(torch.where(none, scalar(neutral, a.dtype, a.device), a), over, keepdims)
        return torch.where(torch.all(none, over, keepdims), scalar(onp.nan, a.dtype, a.device), found)

    return run


whole("nanmax")(_nan_limit(torch.amax, -onp.inf))
whole("nanmin")(_nan_limit(torch.amin, onp.inf))


def _nan_spread(root: bool) -> Callable:
    def run(a: Tensor, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
        filled(a)
        over = _over(axis, a.ndim)
        off = a - torch.nanmean(a, over, True)
        free = torch.sum(~torch.isnan(a), over, keepdims).to(a.dtype)
        free = free if not ddof else free - number(ddof)
        y = torch.nansum(off * off, over, keepdims) / free
        y = torch.where(free > 0, y, scalar(onp.nan, a.dtype, a.device))
        return torch.sqrt(y) if root else y

    return run


whole("nanvar")(_nan_spread(False))
whole("nanstd")(_nan_spread(True))


def _correlation(run: Callable) -> Callable:
    def call(m: Tensor) -> Tensor:
        filled(m)
        if m.ndim != 2 or min(m.shape) < 2:
            refuse("a single variable or observation")
        return run(m.double())

    return call


def _cov(m: Tensor) -> Tensor:
    """torch's own asks the device how many observations there are."""
    off = m - m.mean(1, True)
    return (off @ off.T).mul_(1 / (m.shape[1] - 1))


def _corrcoef(m: Tensor) -> Tensor:
    c = _cov(m)
    spread = torch.sqrt(torch.diagonal(c).clone())
    return c.div_(spread[:, None]).div_(spread).clamp_(-1, 1)


whole("cov")(_correlation(_cov))
whole("corrcoef")(_correlation(_corrcoef))


@whole("gradient")
def gradient(f: Tensor, *spacing: Any, axis: Any = None) -> Any:
    filled(f)
    step = number(spacing[0]) if spacing else 1
    if len(spacing) > 1 or not step:
        refuse("these steps")
    slopes = torch.gradient(f, spacing=step, dim=axis if axis is None else dims(axis, f.ndim))
    return slopes[0] if len(slopes) == 1 else list(slopes) if LEGACY else tuple(slopes)
