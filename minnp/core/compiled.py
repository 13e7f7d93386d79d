"""The short ways in C (_quick.c) where minnp was installed with a compiler; elsewhere the Python ones do as well.

A small call then costs little more than NumPy's own. MINNP_COMPILED=0 keeps to Python.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import numpy as onp

from . import array, public
from .host import LARGE
from .state import state
from .value import NUMBERS

_quick: types.ModuleType | None = None
if os.environ.get("MINNP_COMPILED", "1").lower() not in ("0", "off", "false", "no"):
    try:
        from . import _quick
    except ImportError:  # not built, or for another interpreter
        _quick = None


def _wrapped(out: Any, args: tuple) -> Any:
    """The user's form of a result that is more than a new array or a number."""
    sources: list = []
    array.unwrap(args, sources)
    return array.wrap(out, sources)


def function(call: Callable, e: public.Entry | None) -> Callable:
    """A public function, which takes its home first, with the short way before it."""
    if _quick is None or e is None:
        return call
    host = getattr(e.host, "_implementation", e.host)
    return _quick.short(call, host, e, 1, -1 if e.nin is None else e.nin)


def method(call: Callable, e: public.Entry) -> Callable:
    """A method of ndarray, with the short way before it; `resize` counts who refers to the array, so it has none."""
    return call if _quick is None or e.name == "ndarray.resize" else _quick.short(call, e.host, e, 0, -1)


FACTS = ("shape", "dtype", "size", "ndim", "T", "nbytes", "itemsize")


def install() -> None:
    """Give ndarray's operators, indexing, conversions and attributes their short ways; its class must be complete."""
    if _quick is None:
        return
    for name in FACTS:
        setattr(array.ndarray, name, _quick.fact(vars(array.ndarray)[name], name))
    _quick.install(public.report.HOST_CALLS)


if _quick is not None:
    _quick.setup(
        *(array.ndarray, onp.ndarray, state, public.Entry, NUMBERS, public.PLAIN, _wrapped, onp.dtype(object)),
        *(public.ENTRIES, LARGE),
    )
