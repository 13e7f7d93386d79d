"""Large reductions on all cores, with NumPy's own bits.

Floating point sums depend on their order, so they are cut only where NumPy's order allows: along an axis that is kept,
or as NumPy itself adds up a whole array. Inside a run of terms that is pairwise summation (loops_utils.h.src: two
halves, the first a multiple of 8 terms long, down to 128 terms). A run is the whole array in NumPy 2.x, and one buffer
(8192 elements) in 1.26, where the sums of the runs are then added one after the other. Which of the two is NumPy's is
tried out once; if neither gives its bits, sums are left to NumPy. Integer sums, maxima and minima have one value in
any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from operator import index
from typing import Any

import numpy as onp

from minnp.core.cpu import memory, threads

LEAST = 16 << 20  # bytes from which a reduction is shared
LEAF = 1 << 17  # terms of a pairwise sum that one thread adds up at a time
WIDTH = 512  # fewest neighbouring columns that one thread reduces


def reduce(uf: onp.ufunc, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """uf.reduce(a, axis, keepdims=keepdims) of a large array, or NotImplemented."""
    if type(a) is not onp.ndarray or a.nbytes < LEAST or threads.alone() or a.dtype.kind not in "biufc":
        return NotImplemented
    if axis is None and a.flags.f_contiguous:
        a = a.T  # the same elements in the order in which NumPy takes them: that of the memory
    axes = reduced_axes(a, axis)
    if axes is None or not a.flags.c_contiguous:
        return NotImplemented
    if len(axes) < a.ndim:
        return reduce_some(lambda x, out: uf.reduce(x, axes, keepdims=keepdims, out=out), uf, a, axes, keepdims)
    x = a.reshape(-1)
    if uf is onp.add and a.dtype.char in "fdFD":
        total = total_sum(x)
    elif uf is onp.maximum or uf is onp.minimum or (a.dtype.kind in "biu" and uf in (onp.add, onp.multiply)):
        total = reduce_pieces(uf, x)
    else:
        return NotImplemented
    return onp.full((1,) * a.ndim, total) if keepdims and total is not NotImplemented else total


def reduced_axes(a: onp.ndarray, axis: Any) -> tuple[int, ...] | None:
    """The axes as a tuple of positive numbers; None if there are none, or NumPy would refuse them."""
    if axis is None:
        return tuple(range(a.ndim))
    axes = tuple(index(k) for k in (axis if type(axis) is tuple else (axis,)))
    if not axes or not all(-a.ndim <= k < a.ndim for k in axes):
        return None
    axes = tuple(k % a.ndim for k in axes)
    return axes if len(set(axes)) == len(axes) else None


def reduce_some(
    piecewise: Callable[[onp.ndarray, onp.ndarray], Any], uf: onp.ufunc, a: onp.ndarray, axes: tuple, keepdims: bool
) -> Any:
    """Reduce `axes` with pieces of a kept axis; `piecewise(piece, out=...)` is the reduction."""
    kept = kept_axis(a, axes)
    if kept is None:
        return NotImplemented
    one = uf.reduce(a[(slice(0, 1),) * a.ndim], axes)
    shape = [1 if k in axes else d for k, d in enumerate(a.shape) if keepdims or k not in axes]
    out = memory.empty(shape, one.dtype)
    before = (slice(None),) * kept
    out_before = (slice(None),) * (kept if keepdims else sum(k not in axes for k in range(kept)))
    pieces = list(shares(a.shape[kept], a.size, WIDTH if kept == a.ndim - 1 else 2))

    def work(i: int) -> None:
        piecewise(a[(*before, pieces[i])], out[(*out_before, pieces[i])])

    threads.run(work, len(pieces), "reduce")
    return out


def kept_axis(a: onp.ndarray, axes: tuple) -> int | None:
    """The kept axis to cut: the first long one; the last only in broad pieces, for its elements are neighbours."""
    for k, d in enumerate(a.shape):
        if k not in axes and d >= (2 * WIDTH if k == a.ndim - 1 else 8):
            return k
    return None


def shares(length: int, size: int, least: int) -> Iterator[slice]:
    """Slices of `length` positions, none shorter than `least`, that share out `size` elements."""
    n = max(min(length // least, 4 * threads.team.size, size >> 15), 1)
    return (slice(i * length // n, (i + 1) * length // n) for i in range(n))


def reduce_pieces(uf: onp.ufunc, x: onp.ndarray) -> Any:
    """uf.reduce of x [n], whose value does not depend on the order."""
    pieces = list(shares(x.size, x.size, 1))
    parts: list[Any] = [None] * len(pieces)

    def work(i: int) -> None:
        parts[i] = uf.reduce(x[pieces[i]])

    threads.run(work, len(pieces), "reduce")
    total = uf.reduce(parts)
    if total == 0 and x.dtype.kind == "f" and signs_differ(x):
        return uf.reduce(x)  # 0.0 and -0.0 compare equal: which one NumPy returns depends on where it meets them
    return total


def signs_differ(x: onp.ndarray) -> bool:
    """Whether x [n] holds a -0.0; read as an integer, it is the smallest there is."""
    if x.dtype.itemsize not in (4, 8):
        return True
    bits = x.view(f"i{x.dtype.itemsize}")
    return reduce(onp.minimum, bits) == onp.iinfo(bits.dtype).min


# ------------------------------------------------------------------ sums of floating point numbers
Change = Callable[[onp.ndarray], onp.ndarray]


def total_sum(x: onp.ndarray, change: Change | None = None, flags: set[str] | None = None) -> Any:
    """The sum of change(x) for x [n], to NumPy's last bit; `change` is elementwise and sees a part at a time.

    Floating point errors are reported, or added to `flags`."""
    scheme = summation()
    if scheme is None:
        return NotImplemented
    total, raised = scheme(x, change or (lambda part: part))
    if flags is None:
        threads.report(raised, "reduce")
    else:
        flags |= raised
    return total


@cache
def summation() -> Callable | None:
    """How this NumPy adds up a whole array: tree_sum, buffered_sum, or None if in another way."""
    x = onp.sqrt(onp.arange(LEAF + 77777, dtype=onp.float32))
    expected = onp.add.reduce(x), onp.add.reduce(x[: 3 * LEAF // 4])
    for scheme in (tree_sum, buffered_sum):
        if (scheme(x, abs)[0], scheme(x[: 3 * LEAF // 4], abs)[0]) == expected:
            return scheme
    return None


def buffered_sum(x: onp.ndarray, change: Change) -> tuple[Any, set[str]]:
    run = onp.getbufsize()
    step = max(LEAF // run, 1) * run
    whole = x.size // run
    sums = onp.empty(-(-x.size // run), x.dtype)

    def work(i: int) -> None:
        part = change(x[i * step : (i + 1) * step])
        first, n = i * step // run, part.size // run
        onp.add.reduce(part[: n * run].reshape(n, run), axis=1, out=sums[first : first + n])
        if n * run < part.size:
            sums[whole] = onp.add.reduce(part[n * run :])

    raised = threads.collect(work, -(-x.size // step))
    with threads.noting(raised):
        return onp.add.accumulate(sums)[-1], raised


def tree_sum(x: onp.ndarray, change: Change) -> tuple[Any, set[str]]:
    unit = 2 if x.dtype.kind == "c" else 1  # NumPy counts real and imaginary parts as terms
    leaves: list[slice] = []
    grow(leaves, 0, x.size * unit, unit)
    parts: list[Any] = [None] * len(leaves)

    def work(i: int) -> None:
        parts[i] = onp.add.reduce(change(x[leaves[i]]))

    raised = threads.collect(work, len(leaves))
    with threads.noting(raised):
        return add_up(iter(parts), x.size * unit), raised


def halve(n: int) -> int:
    half = n // 2
    return half - half % 8


def grow(leaves: list[slice], start: int, n: int, unit: int) -> None:
    """Append the leaves of the subtree of n terms from term `start`, as slices of elements of `unit` terms."""
    if n <= LEAF:
        leaves.append(slice(start // unit, (start + n) // unit))
        return
    half = halve(n)
    grow(leaves, start, half, unit)
    grow(leaves, start + half, n - half, unit)


def add_up(parts: Iterator[Any], n: int) -> Any:
    if n <= LEAF:
        return next(parts)
    half = halve(n)
    return add_up(parts, half) + add_up(parts, n - half)


# ------------------------------------------------------------------ mean and variance, as numpy._core._methods has them
def mean(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    if type(a) is not onp.ndarray or a.dtype.char not in "fdFD":
        return NotImplemented
    total = reduce(onp.add, a, axis, keepdims)
    if total is NotImplemented:
        return NotImplemented
    return divide(total, count(a, axis))


def count(a: onp.ndarray, axis: Any) -> onp.intp:
    n = 1
    for k in reduced_axes(a, axis):
        n *= a.shape[k]
    return onp.intp(n)


def divide(total: Any, n: onp.intp) -> Any:
    if isinstance(total, onp.ndarray):
        return onp.true_divide(total, n, out=total, casting="unsafe", subok=False)
    return total.dtype.type(total / n)


def var(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    """The variance; the squared deviations live only in the cache."""
    if type(a) is not onp.ndarray or a.dtype.char not in "fd" or not a.flags.c_contiguous:
        return NotImplemented
    center = mean(a, axis, keepdims=True)
    if center is NotImplemented:
        return NotImplemented
    n, axes = count(a, axis), reduced_axes(a, axis)
    if len(axes) < a.ndim or ddof >= n:
        return NotImplemented
    center = center.reshape(-1)

    def square(x: onp.ndarray) -> onp.ndarray:
        x = x - center
        return onp.multiply(x, x, out=x)

    flags: set[str] = set()
    total = total_sum(a.reshape(-1), square, flags)
    if any(onp.geterr()[threads.KINDS[kind][0]] != "ignore" for kind in flags):
        return NotImplemented  # NumPy's own warnings name the step
    return divide(onp.full((1,) * a.ndim, total) if keepdims else total, onp.maximum(n - ddof, 0))


def std(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    total = var(a, axis, ddof, keepdims)
    if total is NotImplemented:
        return NotImplemented
    if isinstance(total, onp.ndarray):
        return onp.sqrt(total, out=total)
    return total.dtype.type(onp.sqrt(total))


# ------------------------------------------------------------------ under NumPy's signatures
def reducer(uf: onp.ufunc) -> Callable:
    def call(a: Any, axis: Any = None, *other: Any, keepdims: Any = False, **others: Any) -> Any:
        return NotImplemented if other or others else reduce(uf, a, axis, keepdims is True)

    return call


def statistic(function: Callable) -> Callable:
    def call(a: Any, axis: Any = None, *other: Any, keepdims: Any = False, ddof: Any = 0, **others: Any) -> Any:
        if other or others or type(a) is not onp.ndarray or a.nbytes < LEAST:
            return NotImplemented
        return function(a, axis, ddof, keepdims is True)

    return call


REDUCERS = {
    "sum": reducer(onp.add),
    "prod": reducer(onp.multiply),
    "max": reducer(onp.maximum),
    "min": reducer(onp.minimum),
    "mean": statistic(mean),
    "var": statistic(var),
    "std": statistic(std),
}
FUNCTIONS = {getattr(owner, name): ours for name, ours in REDUCERS.items() for owner in (onp, onp.ndarray)}
FUNCTIONS |= {onp.amax: REDUCERS["max"], onp.amin: REDUCERS["min"]}
