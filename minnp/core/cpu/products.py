"""Matrix products of large arrays: the best BLAS of this process, on one thread for each piece that our threads share.

A BLAS that runs threads of its own waits for all of them: on a machine with other work a product of a millisecond then
takes a hundred; and MKL's add in another order than one thread does. Our threads (threads.py) take pieces as they come,
and nobody waits for one that has not started. How a product is cut depends on its size alone, so its bits do not depend
on the number of threads.

The BLAS is the OpenBLAS that NumPy brings or, on Intel's processors, MKL once PyTorch is loaded and brings it. There
MKL takes two thirds of OpenBLAS's time for the matrices of small networks; on AMD's with AVX-512 it takes twice as
much, and products of moderate depth C makes itself (compiled/panels.h): in four fifths of OpenBLAS's time to as much,
half where OpenBLAS keeps to AVX2, and then deep ones too. Only traced and compiled code multiplies here; `a @ b` of
plain arrays is NumPy's, to the last bit.
"""

from __future__ import annotations

import ctypes
import glob
import operator
import os
import platform
import sys
from _thread import allocate_lock
from bisect import bisect
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from math import prod
from typing import Any

import numpy as onp

from ..compiled import team
from . import memory, threads

LEAST = 1 << 18  # multiplications up to which a product is simply NumPy's: above, OpenBLAS has threads
# from which it is cut in 2, 4, 8 and 16
PIECES = (1 << 22 if team is None else 1 << 21, 1 << 27, 1 << 30, 1 << 32)
BRIEF = 1 << 24  # multiplications that one thread does in a few milliseconds
NARROW = 192  # columns of a transposed b below which MKL takes thrice the time
# <fenv.h>: FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW
SERIOUS = {"x86_64": 0b1101, "aarch64": 0b0111}.get(platform.machine(), 0) if sys.platform == "linux" else 0

crowded = False  # whether another library's threads compute on NumPy's memory: its backend says so


class Library(ctypes.Structure):
    """What compiled loops multiply with, as team.c reads it: a routine, how it is held to one thread, the size of its
    numbers, and where the number of our threads is."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("gemm", "local", "get", "set")),
        ("size", ctypes.c_int64),
        ("threads", ctypes.c_void_p),
    ]


class Blas:
    """A library with Fortran's gemm.

    sgemm, dgemm   the routines
    gesv           the address of LAPACK's dgesv, which solves equations; None where it is not with them
    integer        the ctypes type of its integers
    alone          () -> a context in which a call from this thread uses one thread
    local          what the C part calls to the same end, an address; 0: `alone` holds for its threads too
    kernels        the processor that it has chosen its kernels for, if it says so
    """

    kernels = ""

    def __init__(self, library: Any, name: str, integer: Any, alone: Callable, local: Any = None) -> None:
        self.routines = {char: getattr(library, name % code) for char, code in (("f", "s"), ("d", "d"))}
        for f in self.routines.values():
            f.argtypes, f.restype = [ctypes.c_void_p] * 13, None
        self.places = {char: ctypes.cast(f, ctypes.c_void_p).value for char, f in self.routines.items()}
        gesv = getattr(library, name.replace("gemm", "gesv") % "d", None)
        self.gesv = ctypes.cast(gesv, ctypes.c_void_p).value
        self.integer, self.alone = integer, alone
        place = lambda f: ctypes.cast(f, ctypes.c_void_p).value
        self.local = 0 if local is None else place(local)
        switch = (0, 0) if local else (place(alone().get), place(alone().set))
        count = ctypes.addressof(threads.count)
        self.libraries = {
            char: Library(f, self.local, *switch, 4 if char == "f" else 8, count) for char, f in self.places.items()
        }

    def around(self) -> Any:
        """The context of a call of the C part."""
        return nullcontext() if self.local else self.alone()

    def gemm(self, a: Any, b: Any, c: Any, scale: float, keep: float, pieces: int = 1) -> bool:
        """c = scale * (a @ b) + keep * c, cut into so many pieces (along its longer axis, or its rows where MKL does
        better so), which threads share; whether there were floating point errors.

        The rows of c [m, n] are dense; a [m, k] and b [k, n] are copied unless their rows or columns are."""
        if team is not None:
            numbers = scale, keep, pieces, threads.team.size
            if self.local:
                errors = team.gemm(self.places[c.dtype.char], self.local, a, b, c, *numbers)
            else:
                with self.alone():
                    errors = team.gemm(self.places[c.dtype.char], 0, a, b, c, *numbers)
            return self.gemm(operand(a), operand(b), c, scale, keep, pieces) if errors is None else errors
        (m, n), failed, a, b = c.shape, [], operand(a), operand(b)
        slow = self.local and b.strides[1] != b.itemsize and n < NARROW * pieces and m >= 8 * pieces
        by_rows = m >= n or slow
        length = m if by_rows else n

        def work(i: int) -> None:
            cut = slice(i * length // pieces, (i + 1) * length // pieces)
            parts = (a[cut], b, c[cut]) if by_rows else (a, b[:, cut], c[:, cut])
            with self.alone():
                if self.one(*parts, scale, keep):
                    failed.append(i)

        with self.alone():
            threads.collect(work, pieces)
        return bool(failed)

    def one(self, a: Any, b: Any, c: Any, scale: float, keep: float) -> bool:
        """gemm in one piece on this thread."""
        char = c.dtype.char
        integer, number, ref = self.integer, ctypes.c_float if char == "f" else ctypes.c_double, ctypes.byref
        (flag_a, lead_a), (flag_b, lead_b), (_, lead_c) = layout(a), layout(b), layout(c)
        (m, n), k = c.shape, a.shape[1]
        lead_a, lead_b, lead_c, m, n, k = (ref(integer(i)) for i in (lead_a, lead_b, lead_c, m, n, k))
        at_a, at_b, at_c = address(a), address(b), address(c)
        feclearexcept(SERIOUS)
        # Fortran's matrices are ours transposed: c^T = b^T a^T
        self.routines[char](
            flag_b, flag_a, n, m, k, ref(number(scale)), at_b, lead_b, at_a, lead_a, ref(number(keep)), at_c, lead_c
        )
        return bool(fetestexcept(SERIOUS))


if SERIOUS:
    _math = ctypes.PyDLL("libm.so.6")  # PyDLL: the interpreter is not handed to another thread for so short a call
    feclearexcept, fetestexcept = _math.feclearexcept, _math.fetestexcept


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


def single_thread() -> _Single | None:
    """The switch of the OpenBLAS that NumPy brings; None if it is another library."""
    blas = openblas()
    return None if blas is None else blas.alone()


@cache
def openblas() -> Blas | None:
    """The OpenBLAS that NumPy brings; None if it is another library."""
    folder = os.path.join(os.path.dirname(os.path.dirname(onp.__file__)), "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")) if SERIOUS else ():
        library = ctypes.CDLL(path)
        for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
            get, set_ = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
            name = f"{prefix}%sgemm_{suffix}"
            if hasattr(library, get) and all(hasattr(library, name % char) for char in "sd"):
                with_gil = ctypes.PyDLL(path)
                single = _Single(getattr(with_gil, get), getattr(with_gil, set_))
                blas = Blas(library, name, ctypes.c_int64 if suffix else ctypes.c_int, lambda one=single: one)
                core = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
                if core is not None:
                    core.restype = ctypes.c_char_p
                    blas.kernels = core().decode()
                if team is not None:
                    team.keep_to_avx2(half_used(blas))
                return blas
    return None


def mkl() -> Blas | None:
    """The MKL inside PyTorch, if the program has imported it."""
    torch = sys.modules.get("torch")
    return None if torch is None else _mkl_of(getattr(torch, "__file__", None))


@cache
def _mkl_of(torch: str | None) -> Blas | None:
    if torch is None:
        return None
    path = os.path.join(os.path.dirname(torch), "lib", "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW) if SERIOUS else None
    except OSError:
        return None
    if not all(hasattr(library, name) for name in ("sgemm_", "dgemm_", "MKL_Set_Num_Threads_Local")):
        return None
    local = ctypes.PyDLL(path).MKL_Set_Num_Threads_Local
    return Blas(library, "%sgemm_", ctypes.c_int, lambda: _Local(local), local)


class _Local:
    """`with`: MKL on one thread, when this thread calls it."""

    def __init__(self, set_: Callable) -> None:
        self.set = set_

    def __enter__(self) -> None:
        self.before = self.set(1)

    def __exit__(self, *exc: Any) -> None:
        self.set(self.before)


def best() -> Blas | None:
    """The fastest BLAS in this process."""
    return openblas() or mkl() if of_amd() else mkl() or openblas()


def library(char: str) -> int:
    """Where the Library for numbers of this type is; 0 if there is none."""
    blas = None if team is None else best()
    return 0 if blas is None else ctypes.addressof(blas.libraries[char])


def processor(line: str, word: str) -> bool:
    """Whether a line of what Linux says of the processors has a word."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return any(text.startswith(line) and word in text for text in lines)
    except OSError:
        return False


@cache
def of_amd() -> bool:
    """Whether the processor is AMD's, of which MKL uses the older half of the instructions."""
    return processor("vendor_id", "AMD")


def half_used(blas: Blas | None) -> bool:
    """Whether OpenBLAS has taken a processor with AVX-512, which it does not know, for one without."""
    return blas is not None and blas.kernels in ("Haswell", "Zen") and processor("flags", " avx512f ")


# ------------------------------------------------------------------ products
def matmul(a: Any, b: Any) -> Any:
    """a @ b [..., m, n] of a [..., m, k] and b [k, n], of one float dtype and large; anything else is onp.matmul's, of
    which threads share large stacks.

    An infinity or NaN that arises is NumPy's business too: it multiplies once more, and warns."""
    if not (type(a) is onp.ndarray is type(b)) or a.size * b.size <= LEAST:
        return onp.matmul(a, b)
    if a.dtype is not b.dtype or a.dtype.char not in "fd":
        return numpys(a, b)
    if b.ndim < 2 or a.ndim < 2:
        return numpys(operand(a), operand(b))
    if b.ndim > 2:
        return stacked(a, b)
    (*lead, inner), (k, n), blas = a.shape, b.shape, best()
    m = a.size // inner
    if inner != k or m * n * k <= LEAST or m < 8 or n < 8 or k < 8 or blas is None or same(a, b):
        return numpys(a, b)
    out = memory.empty((*lead, n), a.dtype)
    x, c = (a, out) if len(lead) == 1 else (a.reshape(m, k), out.reshape(m, n))
    return onp.matmul(a, b) if shared(blas, c, x, b, 1.0, 0.0) else out


def beside(function: Callable) -> Callable:
    """function, one of NumPy's products, on one thread where it is brief and another library's threads need the cores;
    NotImplemented where NumPy does as well.

    OpenBLAS's threads look for work for some 30 ms after each product. Torch's convolutions, which wait for their own
    threads, take twice the time meanwhile."""

    def call(*args: Any, **options: Any) -> Any:
        single = single_thread() if crowded and len(args) == 2 and not options else None
        if single is None or not all(type(a) is onp.ndarray and a.size for a in args):
            return NotImplemented
        a, b = args
        depth = a.shape[-1] if a.ndim else 1
        if a.size * b.size > BRIEF * depth:
            return NotImplemented
        with single:
            return function(a, b)

    return call


FUNCTIONS = {function: beside(function) for function in (onp.dot, onp.matmul, operator.matmul)}


def numpys(a: Any, b: Any) -> Any:
    """onp.matmul, on one thread where that is better for others."""
    out = FUNCTIONS[onp.matmul](a, b)
    return onp.matmul(a, b) if out is NotImplemented else out


def is_numpys(a: Any, b: Any) -> bool:
    """Whether `matmul` is onp.matmul for a and b of these shapes, which compiled code then calls itself."""
    left, right = (getattr(x, "shape", ()) for x in (a, b))
    return 1 <= len(left) <= 2 and 1 <= len(right) <= 2 and prod(left) * prod(right[1:]) <= LEAST


def stacked(a: Any, b: Any) -> Any:
    """a @ b of stacks [..., m, k] and [..., k, n] of one dtype, on all threads where they are many; else NumPy's."""
    pieces = min(1 << bisect(PIECES, a.size * b.shape[-1]), len(a))
    if pieces < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return onp.matmul(a, b)
    out = memory.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    blas = None if team is None else best()
    if blas is not None and out.size:
        with blas.around():
            place = blas.places[a.dtype.char]
            if team.stack(place, blas.local, a, b, out, min(4 * pieces, len(a)), threads.team.size) is False:
                return out

    def work(i: int) -> None:
        cut = slice(i * len(a) // pieces, (i + 1) * len(a) // pieces)
        onp.matmul(a[cut], b[cut], out=out[cut])

    with single_thread() or nullcontext():
        threads.run(work, pieces, "matmul")
    return out


def same(a: Any, b: Any) -> bool:
    """Whether a is b or b.T, of whose product NumPy computes half."""
    bases = a if a.base is None else a.base, b if b.base is None else b.base
    return bases[0] is bases[1] and address(a) == address(b)


def address(a: Any) -> int:
    return a.__array_interface__["data"][0]


def repeated(a: Any, n: int) -> Any:
    """a [..., 1] n times along its last axis: a product with ones, which writes short rows faster than NumPy does."""
    blas = best()
    if blas is None or a.dtype.char not in "fd":
        return onp.repeat(a, n, axis=-1)
    out = memory.empty((*a.shape[:-1], n), a.dtype)
    shared(blas, out.reshape(-1, n), a.reshape(-1, 1), onp.ones((1, n), a.dtype), 1.0, 0.0)
    return out


def can_update() -> bool:
    """Whether there is a BLAS that adds a product to an array."""
    return best() is not None


def update(c: Any, *pairs: Any, scale: Any = 1.0, sign: float = 1.0, out: Any = None) -> Any:
    """c + sign * scale * (a @ b + ...) [m, n] for the matrices a, b, ... of `pairs`, all of one float dtype: a pass of
    BLAS for each over c, or over a copy of it.

    c      None: zero
    out    an array in C order that takes the result: it may be c itself"""
    if out is None:
        out = memory.empty((len(pairs[0]), pairs[1].shape[1]), pairs[0].dtype)
    if out is not c and c is not None:
        onp.copyto(out, c)
    blas, keep = best(), 0.0 if c is None else 1.0
    assert blas is not None
    for a, b in zip(pairs[::2], pairs[1::2]):
        shared(blas, out, a, b, sign * float(scale), keep)
        keep = 1.0
    return out


def shared(blas: Blas, c: Any, a: Any, b: Any, scale: float, keep: float) -> bool:
    """c [m, n], in C order, becomes scale * (a @ b) + keep * c; whether there were floating point errors."""
    m, n = c.shape
    return blas.gemm(a, b, c, scale, keep, count(m, n, m * n * a.shape[1]))


def count(m: int, n: int, work: int) -> int:
    """Of how many pieces a result [m, n] is made, along its longer axis: more for more multiplications."""
    pieces, most = 1 << bisect(PIECES, work), (m if m >= n else n) // 8
    return pieces if pieces < most else most or 1


def layout(a: Any) -> tuple[bytes, int] | None:
    """(flag, leading dimension) of a matrix with dense rows ("N") or dense columns ("T"), as BLAS takes them."""
    size = a.itemsize
    if not a.flags.aligned:
        return None
    if a.strides[1] == size and a.strides[0] >= a.shape[1] * size and not a.strides[0] % size:
        return b"N", a.strides[0] // size
    if a.strides[0] == size and a.strides[1] >= a.shape[0] * size and not a.strides[1] % size:
        return b"T", a.strides[1] // size
    return None


def operand(a: Any) -> Any:
    """A vector or a matrix as BLAS takes it: a copy where a vector's numbers do not lie one behind the other (as a
    gradient's ones, which are one number), unless a matrix's rows or columns are dense."""
    if a.ndim == 1:
        good = a.strides[0] > 0 and a.flags.aligned
    else:
        good = a.ndim > 2 or bool(layout(a))
    return a if good else onp.require(a, requirements=("C", "A"))


# their results are no memory of their arguments
matmul.makes_new = update.makes_new = True  # type: ignore[attr-defined]
