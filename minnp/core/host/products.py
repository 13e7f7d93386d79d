"""Matrix products of large arrays: BLAS on one thread, for each of the pieces that our threads share.

A BLAS that runs threads of its own waits for all of them: on a machine with other work a product of a millisecond then
takes a hundred. Our threads (threads.py) take pieces as they come, and nobody waits for one that has not started.
"""

from __future__ import annotations

import ctypes
import glob
import os
from _thread import allocate_lock
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as onp

from . import memory, threads

LEAST = 1 << 19  # multiplications from which a product is cut


class _Single:
    """`with`: NumPy's BLAS on one thread, for as long as anyone is inside."""

    def __init__(self, get: Callable, set_: Callable) -> None:
        self.get, self.set = get, set_
        self.lock, self.inside, self.before = allocate_lock(), 0, 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = self.get()
                self.set(1)
            self.inside += 1

    def __exit__(self, *exc: Any) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.set(self.before)


@cache
def single_thread() -> _Single | None:
    """The switch of the OpenBLAS that NumPy brings; None if it is another library."""
    folder = os.path.join(os.path.dirname(os.path.dirname(onp.__file__)), "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")):
        library = ctypes.CDLL(path)
        for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
            names = [f"{prefix}openblas_{what}_num_threads{suffix}" for what in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                return _Single(*[getattr(library, name) for name in names])
    return None


def matmul(a: Any, b: Any) -> Any:
    """a @ b [m, n] of a [m, k] and b [k, n], of one float dtype and large; anything else is onp.matmul's."""
    m, n = a.shape[0], b.shape[-1]
    single = single_thread()
    if single is None or threads.team.size == 1 or m * n * a.shape[-1] < LEAST or a.dtype != b.dtype:
        return onp.matmul(a, b)
    out = memory.empty((m, n), a.dtype)
    pieces = min(threads.team.size * (2 if max(m, n) >= 512 else 1), max(m, n))
    cuts = [slice(i * max(m, n) // pieces, (i + 1) * max(m, n) // pieces) for i in range(pieces)]

    def work(i: int) -> None:
        if m >= n:
            onp.matmul(a[cuts[i]], b, out=out[cuts[i]])
        else:
            onp.matmul(a, b[:, cuts[i]], out=out[:, cuts[i]])

    with single:
        threads.run(work, pieces, "matmul")
    return out
