"""Rows of reductions and scans along axes: sum, mean, var, prod, max, min, cumsum, cumprod, logsumexp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.primitive import Meta, per_input, primitive
from .facts import kept_shape, reduced_shape, sampled, spread
from .shape import broadcast_to, reshape

CASES = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}]


def _cases(**more: Any) -> Callable:
    return sampled(*(((spread(2, 3, 4),), {**case, **more}) for case in CASES))


def reduced(ufunc: onp.ufunc | None = None) -> Callable:
    """Shape fact of a reduction; the dtype is that of the NumPy function on one element."""

    def shape(metas: Sequence[Meta], params: dict) -> Meta:
        x = metas[0]
        dtype = params.get("dtype")
        if dtype is None:
            dtype = x.dtype if ufunc is None else ufunc.reduce(onp.ones(1, x.dtype)).dtype
        return Meta(reduced_shape(x.shape, params.get("axis"), params.get("keepdims", False)), onp.dtype(dtype))

    return shape


def spread_back(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """g with the reduced axes back as 1s: it broadcasts against x."""
    return g if keepdims or axis is None or not x.ndim else reshape(g, shape=kept_shape(x.shape, axis))


# ------------------------------------------------------------------ sums
def _sum_back(g: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return broadcast_to(spread_back(g, x, axis, keepdims), shape=x.shape)


sum_ = primitive(
    "sum",
    numpy=onp.sum,
    vjp=[_sum_back],
    jvp="linear",
    saves="",
    shape=reduced(onp.add),
    flops=per_input(1),
    samples=_cases(),
)
