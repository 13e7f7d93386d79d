"""The host executor: large NumPy operations on recycled memory and several threads, with bitwise equal results.

Works on plain NumPy arrays. `call(function, args, kwargs)` returns NotImplemented for calls that NumPy does as fast;
the caller then calls NumPy. `function` is NumPy's own callable or one of Python's operators (`operator.add`,
`operator.getitem`, ...). Below LARGE elements nothing here helps: `run` tests the size first.
May import: compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as onp

from minnp.core.cpu import elementwise, kernels, memory, products, reductions, selection, threads
from minnp.core.cpu.elementwise import ufunc
from minnp.core.cpu.memory import empty, memory_reuse, owned, release
from minnp.core.cpu.selection import getitem, setitem
from minnp.core.cpu.threads import num_threads, prange, set_num_threads

LARGE = 1 << 15

INDEX = selection.LEAST

FUNCTIONS = {**elementwise.FUNCTIONS, **reductions.FUNCTIONS, **selection.FUNCTIONS, **products.FUNCTIONS}


def call(function: Any, args: Sequence, kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs) on host arrays, or NotImplemented where NumPy does as well.

    `operator.setitem` returns None when it has written."""
    ours = FUNCTIONS.get(function)
    if ours is not None:
        return ours(*args, **kwargs)
    return ufunc(function, args, kwargs)


def bound(function: Any) -> int:
    """From where `call(function, ...)` may do better than NumPy: bytes of an array, or, negative, elements."""
    if isinstance(function, onp.ufunc) and function not in products.FUNCTIONS:
        return elementwise.bound(function)
    return next((n for table, n in BOUNDS if function in table), sys.maxsize)


BOUNDS = (
    (reductions.FUNCTIONS, reductions.LEAST),
    ({onp.sort, onp.ndarray.sort}, -selection.SORT),
    (selection.FUNCTIONS, -selection.LEAST),
    (elementwise.FUNCTIONS, elementwise.CHEAP),
    (products.FUNCTIONS, 1 << 19),
)


def run(function: Any, args: Sequence, kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs), done here if an argument is large enough for that."""
    for a in args:
        if type(a) is onp.ndarray and a.size >= LARGE:
            out = call(function, args, kwargs)
            return function(*args, **kwargs) if out is NotImplemented else out
    return function(*args, **kwargs)


def combine(uf: onp.ufunc, *args: Any) -> Any:
    """uf(*args), an elementwise operation of a trace, with NumPy's bits."""
    out = kernels.beside(uf, *args) if len(args) == 2 else NotImplemented
    out = elementwise.short_rows(uf, *args) if out is NotImplemented and len(args) == 2 else out
    return run(uf, args, {}) if out is NotImplemented else out


def statistics() -> dict[str, int]:
    """What the memory pool did and holds (see memory.statistics), and the number of threads."""
    return {"threads": num_threads(), **memory.statistics()}
