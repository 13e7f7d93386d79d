"""Where a rank's own arrays are not left to NumPy's kernels, with the same values up to rounding.

NumPy takes some ten nanoseconds for each row of a sum along an axis, however short the row; to BLAS it is a product
with ones. Torch's transforms (MKL) and its QR take a quarter of NumPy's time.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as onp

from ... import backends
from ...core import cpu
from ...core.rows.primitive import TABLE
from ...numpy.facts import NUMPY_2
from .chains import Chain

LARGE = 1 << 14  # elements from which it is worth while
NARROW = {"f": 512, "d": 256, "F": 128, "D": 64}  # elements of a row up to which BLAS sums faster, by dtype
CAST = 1 << 18  # elements that are converted at a time, and stay in the cache


# ------------------------------------------------------------------ sums
def summed(x: Any, axes: tuple[int, ...]) -> onp.ndarray | None:
    """The sum of a part's elements along axes, which become ones; None: it is NumPy's.

    The sum of a product that still waits (chains.py) with numbers that belong to the axes is taken without it.
    """
    shape, dtype = x.held.shape, x.dtype
    if dtype.char not in NARROW or math.prod(shape) < LARGE or onp.geterr()["under"] != "ignore":
        return None
    found = factors(x.held, axes) if type(x.held) is Chain else None
    a, weights = (x.local, None) if found is None else found
    y = weighted(a, axes, weights, dtype)
    return None if y is None or not onp.isfinite(y).all() else y  # NumPy sums once more, and warns


def factors(held: Chain, axes: tuple[int, ...]) -> tuple[onp.ndarray, onp.ndarray] | None:
    """(a, b) of a product a * b that waits, where b has a number for each place along these axes and a all of them."""
    if held.ufunc is not onp.multiply:
        return None
    kept = tuple(1 if i not in axes else n for i, n in enumerate(held.shape))
    along = tuple(n if i in axes else 1 for i, n in enumerate(held.shape))
    parts = [o if type(o) is not Chain else o.part and o.part() for o in held.operands]
    for a, b in (parts, parts[::-1]):
        shapes = [getattr(getattr(o, "held", o), "shape", ()) for o in (a, b)]
        if shapes == [held.shape, along] and kept != held.shape:
            return getattr(a, "local", a), getattr(b, "local", b)
    return None


def weighted(a: onp.ndarray, axes: tuple[int, ...], weights: onp.ndarray | None, dtype: Any) -> onp.ndarray | None:
    """The sum of a * weights (None: of a) along the leading or the trailing axes, by BLAS; None where that is not
    faster, or its order of adding up is less exact than NumPy's."""
    k = len(axes)
    leading = sorted(axes) == list(range(k))
    if not 0 < k < a.ndim or not (leading or sorted(axes) == list(range(a.ndim - k, a.ndim))):
        return None
    shape = [1 if i in axes else n for i, n in enumerate(a.shape)]
    if a.ndim > 2:
        if not a.flags.c_contiguous:
            return None
        a = a.reshape(math.prod(a.shape[: k if leading else a.ndim - k]), -1)
    rows, down = (a, leading) if a.strides[0] >= a.strides[1] else (a.T, not leading)
    n, m = rows.shape
    if rows.strides[1] != a.itemsize or m > NARROW[dtype.char]:
        return None
    given = onp.ones(n if down else m, dtype) if weights is None else weights.reshape(-1).astype(dtype)
    y = onp.zeros(m if down else n, dtype)
    step = n if rows.dtype == dtype else max(CAST // m, 1)
    with onp.errstate(all="ignore"):
        for i in range(0, n, step):
            block = rows[i : i + step].astype(dtype, copy=False)
            if down:
                y += given[i : i + step] @ block
            else:
                onp.matmul(block, given, out=y[i : i + step])
    return y.reshape(shape)


# ------------------------------------------------------------------ products
def product(a: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """a @ b. Of a long matrix and a small one of another dtype, NumPy would convert the whole at once."""
    dtype = onp.result_type(a, b)
    if a.dtype == b.dtype or a.size < LARGE or a.ndim != 2 or b.size > CAST or dtype.char not in "fdFD":
        return onp.asarray(TABLE["matmul"].fast(a, b))
    y, b, step = cpu.empty((len(a), *b.shape[1:]), dtype), b.astype(dtype), max(CAST // a.shape[1], 1)
    for i in range(0, len(a), step):
        onp.matmul(a[i : i + step].astype(dtype), b, out=y[i : i + step])
    return y


# ------------------------------------------------------------------ torch's kernels
def torch_for(x: onp.ndarray) -> Any:
    """torch, for an array that is large enough for its kernels; None where there is none. (It is loaded where there are
    several ranks. One alone loads it when the first such array comes.)"""
    return importlib.import_module("torch") if x.size >= LARGE and "torch" in backends.installed() else None


def tensor(x: onp.ndarray) -> Any:
    return importlib.import_module("torch").from_numpy(onp.require(x, requirements="CW"))


def transform(name: str, x: onp.ndarray, n: Any, axis: int, norm: Any) -> onp.ndarray:
    """The discrete Fourier transform of this name in np.fft."""
    torch = torch_for(x) if x.dtype.char in "dD" or (NUMPY_2 and x.dtype.char in "fF") else None
    if torch is None or (x.shape[axis] == 1 if n is None else n < 1):  # NumPy's error, if it is one
        return getattr(onp.fft, name)(x, n=n, axis=axis, norm=norm)
    return getattr(torch.fft, name)(tensor(x), n=n, dim=axis, norm=norm).numpy()


def qr(x: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray]:
    """q and r of a matrix with at least as many rows as columns, reduced, with LAPACK's signs."""
    torch = torch_for(x) if x.shape[0] > x.shape[1] else None  # of squares MKL turns the last column
    return onp.linalg.qr(x) if torch is None else tuple(y.numpy() for y in torch.linalg.qr(tensor(x)))
