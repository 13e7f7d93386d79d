"""numpy.f(minnp array): NEP 13 and NEP 18 as look-ups of our public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .public import PUBLIC, foreign_entry, invoke
from .ufunc import make_ufunc


def array_function(func: Callable, args: tuple, kwargs: dict) -> Any:
    """numpy.f(minnp array): our f, or NumPy's own on host arrays."""
    known = PUBLIC.get(func)
    if known is not None:
        return known(*args, **kwargs)
    return invoke(foreign_entry(f"{func.__module__}.{func.__name__}".removeprefix("numpy."), func), args, kwargs)


def array_ufunc(host: onp.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    out = kwargs.get("out")
    if type(out) is tuple and len(out) == 1:
        kwargs = {**kwargs, "out": out[0]}
    known = PUBLIC.get(host)
    if known is None and getattr(onp, host.__name__, None) is host:  # nobody has asked for its name yet
        known = make_ufunc(host.__name__, host)
    if method == "__call__":
        return (
            known(*inputs, **kwargs)
            if known is not None
            else invoke(foreign_entry(host.__name__, host), inputs, kwargs)
        )
    if known is not None:
        return getattr(known, method)(*inputs, **kwargs)
    return invoke(foreign_entry(f"{host.__name__}.{method}", getattr(host, method)), inputs, kwargs)
