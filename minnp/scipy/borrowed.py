"""Gradient rules of the long tail, taken from the `autograd` package.

autograd's rules call NumPy and SciPy functions, which find our arrays by NEP 13 and 18: so they run on NumPy arrays as
they are, and on traced values through handles, to any order. autograd is imported when a rule is first needed. Only
rules that pass our second-order tests are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..core.array import handle, ndarray, read
from ..core.value import Buffer, Tracer
from ..numpy.shaping import astype


@cache
def _maker(module: str, name: str) -> Callable:
    """autograd's own (argnums, y, args, kwargs) -> rule for several arguments."""
    from autograd.core import primitive_vjps

    return primitive_vjps[getattr(import_module(module), name)]


def single(x: Any, dtype: Any) -> Any:
    """x in a dtype: SciPy's functions of an order and a float32 array answer in float64."""
    return x if x.dtype == dtype else astype(x, dtype=dtype)


def borrowed(module: str, name: str, argnum: int = 0) -> Callable:
    """The rule of argument `argnum` of autograd's `module.name`."""

    def rule(g: Any, y: Any, *arrays: Any, **params: Any) -> Any:
        values, dtype = (g, y, *arrays), arrays[argnum].dtype
        if any(isinstance(v, (Tracer, Buffer)) for v in values):
            g, y, *arrays = (handle(v) if hasattr(v, "dtype") else v for v in values)
        (out,) = _maker(module, name)((argnum,), y, tuple(arrays), params)(g)
        return single(read(out) if type(out) is ndarray else out, dtype)

    return rule
