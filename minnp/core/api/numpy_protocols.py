"""numpy.f(minnp array): NEP 13 and NEP 18 as look-ups of our public functions."""

from __future__ import annotations

from collections.abc import Callable, ValuesView
from typing import Any

import numpy as onp

from ..arrays.array import HANDLES
from ..rows.pytree import inside
from .functions import PUBLIC, foreign_entry, invoke
from .public import make_ufunc


def array_function(func: Callable, args: tuple, kwargs: dict) -> Any:
    """numpy.f(minnp array): our f, or NumPy's own on host arrays."""
    if not any(type(a) in HANDLES for a in args):  # NumPy looked into a sequence
        args, kwargs = tuple(map(opened, args)), {k: opened(v) for k, v in kwargs.items()}
        if any(isinstance(a, ValuesView) for a in args):  # NumPy's answer: that this is no sequence
            return func._implementation(*args, **kwargs)
    known = PUBLIC.get(func)
    if known is not None:
        return known(*args, **kwargs)
    return invoke(foreign_entry(f"{func.__module__}.{func.__name__}".removeprefix("numpy."), func), args, kwargs)


def opened(x: Any) -> Any:
    """A sequence of another class with arrays of ours (a deque, a list's subclass) as a list, or a tuple: there we
    look for them."""
    t = type(x)
    if t in (list, tuple, dict, str, bytes) or not (hasattr(t, "__len__") and hasattr(t, "__getitem__")):
        return x
    if hasattr(t, "__array__") or hasattr(t, "__array_function__") or not any(map(holds, x)):
        return x
    return tuple(x) if isinstance(x, tuple) else list(x)


def holds(x: Any) -> bool:
    """Whether x is an array of ours, or a list or tuple with one."""
    return type(x) in HANDLES or any(type(e) in HANDLES for e in inside(x))


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
