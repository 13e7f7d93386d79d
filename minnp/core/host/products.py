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
MANY = 1 << 27  # and from which into two pieces for each thread


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
def openblas() -> tuple[Any, str, str] | None:
    """The OpenBLAS that NumPy brings, with what stands before and behind its names; None if it is another library."""
    folder = os.path.join(os.path.dirname(os.path.dirname(onp.__file__)), "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")):
        library = ctypes.CDLL(path)
        for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
            names = ("openblas_get_num_threads", "openblas_set_num_threads", "cblas_sgemm", "cblas_dgemm")
            if all(hasattr(library, f"{prefix}{name}{suffix}") for name in names):
                return library, prefix, suffix
    return None


def routine(name: str) -> Any:
    """One of OpenBLAS's functions."""
    found = openblas()
    assert found is not None
    library, prefix, suffix = found
    return getattr(library, f"{prefix}{name}{suffix}")


@cache
def single_thread() -> _Single | None:
    """The switch of the OpenBLAS that NumPy brings; None if it is another library."""
    if openblas() is None:
        return None
    return _Single(routine("openblas_get_num_threads"), routine("openblas_set_num_threads"))


def matmul(a: Any, b: Any) -> Any:
    """a @ b [m, n] of a [m, k] and b [k, n], of one float dtype and large; anything else is onp.matmul's."""
    m, n = a.shape[0], b.shape[-1]
    single = single_thread()
    if single is None or threads.team.size == 1 or m * n * a.shape[-1] < LEAST or a.dtype != b.dtype:
        return onp.matmul(a, b)
    out = memory.empty((m, n), a.dtype)
    cuts = ranges(m, n, m * n * a.shape[-1])

    def work(i: int) -> None:
        if m >= n:
            onp.matmul(a[cuts[i]], b, out=out[cuts[i]])
        else:
            onp.matmul(a, b[:, cuts[i]], out=out[:, cuts[i]])

    with single:
        threads.run(work, len(cuts), "matmul")
    return out


def ranges(m: int, n: int, work: int) -> list[slice]:
    """The longer axis of a result [m, n] in pieces: one for each thread, two where they are large."""
    length = max(m, n)
    pieces = min(threads.team.size * (2 if work >= MANY else 1), length)
    return [slice(i * length // pieces, (i + 1) * length // pieces) for i in range(pieces)]


# ------------------------------------------------------------------ c + sign * scale * (a @ b)
ROWS, NO, YES = 101, 111, 112  # CblasRowMajor, CblasNoTrans, CblasTrans


def can_update() -> bool:
    """Whether BLAS can be asked to add a product to an array."""
    return openblas() is not None


@cache
def gemm(char: str) -> Any:
    """cblas_sgemm or cblas_dgemm, with the types of its arguments."""
    f = routine(f"cblas_{'s' if char == 'f' else 'd'}gemm")
    real = ctypes.c_float if char == "f" else ctypes.c_double
    found = openblas()
    n = ctypes.c_int64 if found is not None and found[2] else ctypes.c_int
    flag, p = ctypes.c_int, ctypes.c_void_p
    f.argtypes, f.restype = [flag, flag, flag, n, n, n, real, p, n, p, n, real, p, n], None
    return f


def update(c: Any, a: Any, b: Any, scale: Any = 1.0, sign: float = 1.0, out: Any = None) -> Any:
    """c + sign * scale * (a @ b) [m, n], of one float dtype: one pass of BLAS over c, or over a copy of it.

    out    an array in C order that takes the result: it may be c itself"""
    m, n = c.shape
    if out is None:
        out = memory.empty((m, n), c.dtype)
    if out is not c:
        onp.copyto(out, c)
    a, flag_a, lead_a = operand(a)
    b, flag_b, lead_b = operand(b)
    f, k, size = gemm(c.dtype.char), a.shape[1], c.dtype.itemsize
    at_a, at_b, at_c = (x.__array_interface__["data"][0] for x in (a, b, out))
    step_a, step_b = a.strides[0], b.strides[1]
    scale = sign * float(scale)

    def work(i: int) -> None:
        first, count = cuts[i].start, cuts[i].stop - cuts[i].start
        if m >= n:
            given = count, n, k, scale, at_a + first * step_a, lead_a, at_b, lead_b, 1.0, at_c + first * n * size, n
        else:
            given = m, count, k, scale, at_a, lead_a, at_b + first * step_b, lead_b, 1.0, at_c + first * size, n
        f(ROWS, flag_a, flag_b, *given)

    single = single_thread()
    if threads.team.size == 1 or single is None:
        cuts = [slice(0, max(m, n))]
        work(0)
        return out
    cuts = ranges(m, n, m * n * k)
    with single:
        threads.collect(work, len(cuts))
    return out


def operand(a: Any) -> tuple[Any, int, int]:
    """(a, its flag, its leading dimension) as BLAS takes a matrix: a copy, unless its rows or columns are dense."""
    size = a.itemsize
    if a.strides[1] == size and a.strides[0] >= a.shape[1] * size and not a.strides[0] % size and a.flags.aligned:
        return a, NO, a.strides[0] // size
    if a.strides[0] == size and a.strides[1] >= a.shape[0] * size and not a.strides[1] % size and a.flags.aligned:
        return a, YES, a.strides[1] // size
    a = onp.ascontiguousarray(a)
    return a, NO, a.shape[1]


# their results are no memory of their arguments
matmul.makes_new = update.makes_new = True  # type: ignore[attr-defined]
