"""What scipy.stats computes of samples, with gradients: moments, means, scores, correlations."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as onp
from scipy import stats

from ..core.rows.dispatch import DEFINITIONS, defines
from ..errors import NotDifferentiableError
from ..numpy.arguments import as_array, number, operand, plain
from ..numpy.facts import axis_of, count_of
from ..numpy.reductions import mean, std, sum_
from ..numpy.selection import sort
from ..numpy.shaping import astype, broadcast_to, reshape
from ..numpy.ufuncs import absolute, exp, sqrt, square, where
from ..numpy.ufuncs import log as ln
from .incomplete import betainc, stdtr
from .rows import entr, rel_entr


def summary(definition: Callable) -> Callable:
    """Define scipy.stats' function of this name, if this SciPy has it."""
    host = getattr(stats, definition.__name__, None)
    return definition if host is None else defines(host)(definition)


def _sample(a: Any, nan_policy: str = "propagate", dtype: Any = None) -> Any:
    """The data in floating point; a policy for NaN is asked for only where there is one."""
    a = as_array(a)
    a = a if a.ndim else reshape(a, shape=(1,))
    if nan_policy != "propagate" and onp.isnan(plain(a)).any():
        if nan_policy == "raise":
            raise ValueError("The input contains nan values")
        raise NotDifferentiableError(
            "nan_policy='omit' has no gradient where there is a NaN: take the numbers out first"
        )
    dtype = dtype or (a.dtype if a.dtype.kind in "fc" else float)
    return a if a.dtype == dtype else astype(a, dtype=onp.dtype(dtype))


def _moment(a: Any, order: int, axis: Any, keepdims: bool, center: Any = None) -> Any:
    if order < 2 and center is None:
        return mean(a * 0 + (1 - order), axis=axis, keepdims=keepdims)
    away = a - (mean(a, axis=axis, keepdims=True) if center is None else operand(center))
    return mean(away**order, axis=axis, keepdims=keepdims)


def _ratio(a: Any, order: int, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """A moment over the variance's power, and where the variance is that of rounding: there SciPy answers NaN."""
    second, eps = _moment(a, 2, axis, keepdims), onp.finfo(a.dtype).eps
    none = plain(second) <= (eps * plain(mean(a, axis=axis, keepdims=keepdims))) ** 2
    return _moment(a, order, axis, keepdims) / where(none, 1, second) ** (order / 2), none


@summary
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    a = _sample(a, nan_policy)
    out, none = _ratio(a, 3, axis, keepdims)
    n = count_of(a.shape, axis)
    return where(none, onp.nan, out if bias or n < 3 else out * (((n - 1.0) * n) ** 0.5 / (n - 2.0)))


@summary
def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    a = _sample(a, nan_policy)
    out, none = _ratio(a, 4, axis, keepdims)
    n = count_of(a.shape, axis)
    if not bias and n > 3:
        out = ((n**2 - 1.0) * out - 3 * (n - 1) ** 2.0) / ((n - 2) * (n - 3)) + 3
    return where(none, onp.nan, out - 3 if fisher else out)


@summary
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False,
    moment: Any = None,
) -> Any:  # fmt: skip
    """`moment` is SciPy 1.11's name for the order."""
    a, order = _sample(a, nan_policy), number(order if moment is None else moment)
    if onp.ndim(order):
        return DEFINITIONS[onp.stack]([_moment(a, int(k), axis, keepdims, center) for k in order])
    return _moment(a, int(order), axis, keepdims, center)


@summary
def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    a = _sample(a, nan_policy)
    return std(a, axis=axis, ddof=ddof, keepdims=keepdims) / count_of(a.shape, axis) ** 0.5


@summary
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    a = _sample(a, nan_policy)
    return std(a, axis=axis, ddof=ddof, keepdims=keepdims) / mean(a, axis=axis, keepdims=keepdims)


# ------------------------------------------------------------------ means
def _power_mean(a: Any, p: float, axis: Any, dtype: Any, weights: Any, nan_policy: str, keepdims: bool) -> Any:
    a = _sample(a, nan_policy, dtype)
    averaged = lambda x: DEFINITIONS[onp.average](x, axis=axis, weights=weights, keepdims=keepdims)
    return averaged(a**p) ** (1 / p) if p else exp(averaged(ln(a)))


@summary
def gmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    return _power_mean(a, 0, axis, dtype, weights, nan_policy, keepdims)


@summary
def hmean(
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    return _power_mean(a, -1, axis, dtype, weights, nan_policy, keepdims)


@summary
def pmean(
    a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    return _power_mean(a, number(p), axis, dtype, weights, nan_policy, keepdims)


@summary
def trim_mean(
    a: Any, proportiontocut: float, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    a, ndim = _sample(a, nan_policy), as_array(a).ndim
    if axis is None:
        a, axis = reshape(a, shape=(-1,)), 0
    axis = axis_of(axis, a.ndim)
    n = a.shape[axis]
    cut = int(proportiontocut * n)
    if 2 * cut > n:
        raise ValueError("Proportion too big.")
    out = mean(sort(a, axis=axis)[(slice(None),) * axis + (slice(cut, n - cut),)], axis=axis, keepdims=keepdims)
    return reshape(out, shape=(1,) * ndim) if keepdims and out.ndim < ndim else out


@summary
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    samples = [_sample(p, nan_policy) for p in (pk, qk) if p is not None]
    shape = onp.broadcast_shapes(*(p.shape for p in samples))
    shares = [p / sum_(p, axis=axis, keepdims=True) for p in (broadcast_to(p, shape=shape) for p in samples)]
    each = entr(*shares) if qk is None else rel_entr(*shares)
    out = sum_(each, axis=axis, keepdims=keepdims)
    return out if base is None else out / log(number(base))


# ------------------------------------------------------------------ scores
@summary
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    compare = _sample(compare, nan_policy)
    away = _sample(scores) - mean(compare, axis=axis, keepdims=True)
    return away / std(compare, axis=axis, ddof=ddof, keepdims=True)


@summary
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    return zmap(a, a, axis, ddof, nan_policy)


@summary
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    return zscore(ln(_sample(a)), axis, ddof, nan_policy)


# ------------------------------------------------------------------ correlation
def _products(x: Any, y: Any, axis: int) -> tuple[Any, Any, Any]:
    """The variances of x and y and their covariance, times their number."""
    x, y = (v - mean(v, axis=axis, keepdims=True) for v in (x, y))
    return tuple(sum_(a * b, axis=axis) for a, b in ((x, x), (y, y), (x, y)))  # type: ignore[return-value]


@summary
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: int = 0) -> Any:
    x, y = _sample(x), _sample(y)
    there = {} if axis == 0 else {"axis": axis}
    theirs = stats.pearsonr(plain(x), plain(y), alternative=alternative, method=method, **there)
    xx, yy, xy = _products(x, y, axis)
    r = xy / sqrt(xx * yy)
    half, p = (x.shape[axis] or 0) / 2 - 1, theirs.pvalue
    if method is None and half > 0:  # the distribution of r, were there no correlation, is a beta distribution
        side = {"two-sided": -absolute(r), "greater": -r, "less": r}[alternative]
        p = betainc(half, half, (1 + side) * 0.5) * (2 if alternative == "two-sided" else 1)
    # what the result remembers for its methods has an underscore before its name
    memory = {k[1:]: v for k, v in vars(theirs).items() if k.startswith("_")}
    return type(theirs)(r, p, **memory | {k: v for k, v in (("x", x), ("y", y)) if k in memory})


@summary
def linregress(x: Any, y: Any, alternative: str = "two-sided", **options: Any) -> Any:
    x, y = _sample(x), _sample(y)
    theirs = stats.linregress(plain(x), plain(y), alternative=alternative, **options)
    if x.ndim != 1 or any(options.get(k) for k in ("axis", "keepdims")):
        raise NotDifferentiableError("scipy.stats.linregress has a gradient for two vectors")
    xx, yy, xy = _products(x, y, 0)
    slope, r, freedom = xy / xx, xy / sqrt(xx * yy), x.shape[0] - 2
    middle = mean(x)
    t = r * sqrt(freedom / (1 - square(r) + 2e-20))
    side = {"two-sided": -absolute(t), "greater": -t, "less": t}[alternative]
    p = stdtr(float(freedom), side) * (2 if alternative == "two-sided" else 1)
    error = sqrt((1 - square(r)) * yy / xx / freedom)
    rest = {"intercept_stderr": error * sqrt(xx / x.shape[0] + square(middle))}
    return type(theirs)(slope, mean(y) - slope * middle, r, p, error, **rest)
