"""Functions that look whether there are NaNs, said so that a device need not be asked.

NumPy's own code warns of slices without a number, for which it must know whether there is one: on the host it is what
runs. An array on a device takes the same formula without the question: nobody waits, and nothing is warned of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, read
from ..core.rows.dispatch import defines
from ..core.rows.value import Buffer, concrete
from .arguments import NOT_GIVEN, number_of
from .facts import axes_of, reduced_shape
from .rebound import rebound
from .reductions import max_, min_, sum_
from .selection import sort
from .shaping import reshape, transpose
from .ufuncs import isnan, sqrt, where


def on_device(function: Callable, signature: tuple = ()) -> Callable:
    """Define `function` by the decorated formula, f(a, axis, keepdims, **those of `signature`), for real floats on a
    device; by NumPy's own code for anything else, and for arguments the formula has not."""

    def enter(formula: Callable) -> Callable:
        general = rebound(function)

        def definition(a: Any, axis: Any = None, *args: Any, keepdims: Any = False, **kwargs: Any) -> Any:
            on_device = type(a) in ARRAY_TYPES and type(concrete(read(a))) is Buffer and a.dtype.kind == "f" and a.size
            kept = keepdims is not NOT_GIVEN and bool(keepdims)
            kwargs |= {"keepdims": keepdims} if kept else {}
            # of an array without axes, NumPy's median with keepdims= is an array, where the others are numbers
            result = (lambda x: x) if kept and function is onp.median else number_of
            if on_device and not args and kwargs.keys() <= {"keepdims", *signature}:
                return result(formula(a, axis, bool(kwargs.pop("keepdims", False)), **kwargs))
            return result(general(a, axis, *args, **kwargs))

        defines(function)(definition)
        return definition

    return enter


def _total(a: Any, axis: Any, keepdims: bool) -> Any:
    return sum_(a, axis=axis, keepdims=keepdims)


def _number(a: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements are numbers."""
    return sum_(~isnan(a), axis=axis, keepdims=keepdims).astype(a.dtype)


def _or_zero(a: Any, x: Any) -> Any:
    """x, 0 where a is NaN: before anything is computed of it, for a gradient of 0 times NaN is NaN."""
    return where(isnan(a), a.dtype.type(0), x)


@on_device(onp.nanmean)
def nanmean(a: Any, axis: Any, keepdims: bool) -> Any:
    return _total(_or_zero(a, a), axis, keepdims) / _number(a, axis, keepdims)


@on_device(onp.nanvar, ("ddof",))
def nanvar(a: Any, axis: Any, keepdims: bool, ddof: float = 0) -> Any:
    off = _or_zero(a, a - nanmean(a, axis, keepdims=True))
    free = _number(a, axis, keepdims) - a.dtype.type(ddof)
    return where(free > 0, _total(off * off, axis, keepdims) / free, a.dtype.type(onp.nan))


@on_device(onp.nanstd, ("ddof",))
def nanstd(a: Any, axis: Any, keepdims: bool, ddof: float = 0) -> Any:
    return sqrt(nanvar(a, axis, keepdims=keepdims, ddof=ddof))


def _limit(row: Callable, neutral: float) -> Callable:
    def formula(a: Any, axis: Any, keepdims: bool) -> Any:
        none = isnan(a)
        found = row(where(none, a.dtype.type(neutral), a), axis=axis, keepdims=keepdims)
        kind = a.dtype.type
        return where(_number(a, axis, keepdims) > 0, found, kind(onp.nan))

    return formula


on_device(onp.nanmax)(_limit(max_, -onp.inf))
on_device(onp.nanmin)(_limit(min_, onp.inf))


@on_device(onp.median)
def median(a: Any, axis: Any, keepdims: bool) -> Any:
    """The middle of the sorted elements; NaN, which is sorted last, where there is one."""
    over = axes_of(axis, a.ndim)
    rest = [i for i in range(a.ndim) if i not in over]
    rows = sort(reshape(transpose(a, axes=(*rest, *over)), shape=(*(a.shape[i] for i in rest), -1)), axis=-1)
    n, last = rows.shape[-1], rows[..., -1]
    middle = rows[..., n // 2]
    if n % 2 == 0:
        wide = onp.float32 if a.dtype.char == "e" else a.dtype.type  # in which the sum of two is finite
        middle = ((rows[..., n // 2 - 1].astype(wide) + middle.astype(wide)) / wide(2)).astype(a.dtype)
    return reshape(where(isnan(last), last, middle), shape=reduced_shape(a.shape, axis, keepdims))
