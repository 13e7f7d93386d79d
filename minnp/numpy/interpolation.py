"""Rows of table look-up: interp, and bincount with weights."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, ARRAYS, read
from ..core.rows.dispatch import defines
from ..core.rows.primitive import CONSTANT, primitive
from ..core.rows.value import is_scalar
from .arguments import as_array, number_of, plain
from .facts import sampled, spread
from .indexing import take, take_add
from .selection import argsort, searchsorted
from .shaping import astype, concatenate, reshape
from .ufuncs import remainder, where


# ------------------------------------------------------------------ interp
def _segment(x: Any, xp: Any, fp: Any) -> tuple[Any, Any, Any, Any]:
    """For each x: its segment of the table, its place there (0 to 1), the slope, whether x is in the table."""
    n = xp.shape[0]
    i = searchsorted(xp[1 : n - 1], x, side="right")  # the end segments reach outwards
    inside = (x >= xp[0]) & (x <= xp[n - 1])
    if n == 1:  # a table of one value has no slope
        return i, x * 0, x * 0, inside
    x0, x1, f0, f1 = take(xp, i), take(xp, i + 1), take(fp, i), take(fp, i + 1)
    return i, (x - x0) / (x1 - x0), (f1 - f0) / (x1 - x0), inside


def _scattered(g0: Any, g1: Any, i: Any, n: int) -> Any:
    """What the two ends of each segment receive, summed up over the table."""
    return take_add(reshape(g0, shape=(-1,)), reshape(i, shape=(-1,)), shape=(n,)) + take_add(
        reshape(g1, shape=(-1,)), reshape(i, shape=(-1,)) + (n > 1), shape=(n,)
    )


def _interp_x(g: Any, y: Any, x: Any, xp: Any, fp: Any, **ends: Any) -> Any:
    _, _, slope, inside = _segment(x, xp, fp)
    return where(inside, g * slope, 0)


def _interp_xp(g: Any, y: Any, x: Any, xp: Any, fp: Any, **ends: Any) -> Any:
    i, place, slope, inside = _segment(x, xp, fp)
    g = where(inside, -g * slope, 0)
    return _scattered(g * (1 - place), g * place, i, xp.shape[0])


def _interp_fp(g: Any, y: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    i, place, _, _ = _segment(x, xp, fp)
    n = xp.shape[0]
    below, above = x < xp[0], x > xp[n - 1]
    # outside the table the result is its end, or the constant given for that side
    place = where(below, 0, where(above, n > 1, place))
    g = g if left is None else where(below, 0, g)
    g = g if right is None else where(above, 0, g)
    return _scattered(g * (1 - place), g * place, i, n)


interp = primitive(
    "interp",
    numpy=onp.interp,
    vjp=[_interp_x, _interp_xp, _interp_fp],
    saves="in",
    samples=sampled(
        ((spread(4, low=0.2, high=4.5), onp.array([0.0, 1.0, 2.5, 5.0]), spread(4, seed=2)), {}),
        ((onp.array([-1.0, 0.5, 9.0]), onp.array([0.5]), onp.array([2.0])), {}),
        ((onp.array([[-1.0, 0.5], [2.2, 9.0]]), onp.array([0.0, 1.0, 2.5]), spread(3, seed=2)), {}),
        ((onp.array([-1.0, 0.5, 9.0]), onp.array([0.0, 1.0, 2.5]), spread(3, seed=2)), {"left": 1.0, "right": 2.0}),
    ),
)


@defines(onp.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    number = is_scalar(read(x) if type(x) in ARRAY_TYPES else x)
    x, xp, fp = as_array(x), as_array(xp), as_array(fp)
    if number and x.dtype.kind == "c":  # of which NumPy warns, where it refuses arrays
        x = astype(x, dtype=onp.dtype(float))
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        x, xp = (remainder(astype(v, dtype=onp.dtype(float)), period) for v in (x, xp))
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concatenate(xp[-1:] - period, xp, xp[:1] + period)
        fp = concatenate(fp[-1:], fp, fp[:1])
    ends = [None if isinstance(end, ARRAYS) else end for end in (left, right)]
    out = interp(x, xp, fp, left=ends[0], right=ends[1])
    for outside, end in ((x < xp[0], left), (x > xp[-1], right)):
        out = where(outside, astype(end, dtype=out.dtype), out) if isinstance(end, ARRAYS) else out
    return number_of(out)


# ------------------------------------------------------------------ bincount
bincount = primitive(
    "bincount",
    numpy=lambda x, weights, minlength=0: onp.bincount(x, weights, minlength),
    vjp=[CONSTANT, lambda g, y, x, weights, minlength=0: take(g, x)],
    jvp=[CONSTANT, lambda t, y, x, weights, minlength=0: bincount(x, t, minlength=minlength)],
    saves="in",
    dynamic="shape",
    samples=sampled(((onp.array([0, 2, 2, 1]), spread(4)), {"minlength": 5})),
)


@defines(onp.bincount)
def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = as_array(x)
    return (
        onp.bincount(plain(x), None, minlength)
        if weights is None
        else bincount(x, as_array(weights), minlength=minlength)
    )
