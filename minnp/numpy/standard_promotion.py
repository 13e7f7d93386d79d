"""NumPy 1.26 told to promote as the Array API standard does, by its switch NPY_PROMOTION_STATE=weak.

The switch turns ufuncs and result_type. Here is what it leaves with a dtype or type from before NumPy 2; the package
imports this file only where the switch is set.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as onp

from ..core.arrays.array import Array
from .facts import WEAK
from .standard import STANDARD, also, ours
from .standard_modules import FFT

_instead = functools.partial(also, present=False, least=99)


def _whole(name: str) -> Callable:
    def call(x, /, out=None, **options):
        x = ours("asarray")(x)
        kernel = ours(name) if x.dtype.kind not in "iu" else ours("positive")  # an integer is its own
        return kernel(x, out=out, **options)

    call.__name__ = call.__qualname__ = name
    return call


def _precise(name: str) -> Callable:
    """A Fourier transform in its argument's precision; NumPy 1.26 computes all of them in double."""
    base = ours(name, onp.fft, "fft")

    def call(a, *args, **options):
        a = ours("asarray")(a)
        result = base(a, *args, **options)
        single = a.dtype in (onp.dtype("f2"), onp.dtype("f4"), onp.dtype("c8"))
        return result.astype("f4" if result.dtype.kind == "f" else "c8") if single else result

    call.__name__ = call.__qualname__ = name
    call.__signature__ = inspect.signature(base)
    return call


for _name in ("ceil", "floor", "trunc"):
    _instead(STANDARD, getattr(onp, _name))(_whole(_name))
for _name in onp.fft._pocketfft.__all__:
    _instead(FFT, getattr(onp.fft, _name))(_precise(_name))


@_instead(STANDARD, onp.sign)
def sign(x, /, out=None, **options):
    x = ours("asarray")(x)
    if x.dtype.kind != "c":
        return ours("sign")(x, out=out, **options)
    size = ours("absolute")(x)
    return ours("divide")(x, ours("where")(size == 0, size.dtype.type(1), size), out=out, **options)


@_instead(STANDARD, onp.where)
def where(condition, x=onp._NoValue, y=onp._NoValue, /):
    choices = [c for c in (x, y) if c is not onp._NoValue]
    if len(choices) == 2 and any(type(c) in (bool, *WEAK) for c in choices):
        dtype = onp.result_type(*(c.dtype if isinstance(c, (Array, onp.ndarray)) else c for c in choices))
        choices = [ours("asarray")(c, dtype=dtype) for c in choices]
    return ours("where")(condition, *choices)


@_instead(STANDARD, onp.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    found = ours("count_nonzero")(a, axis, keepdims=keepdims)
    return onp.intp(found) if isinstance(found, int) else found


@_instead(STANDARD, onp.nonzero)
def nonzero(a):
    if ours("ndim")(a) == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return ours("nonzero")(a)
