"""The Array API standard, 2024.12: what NumPy's linalg and fft lack of it.

https://data-apis.org/array-api/2024.12/extensions
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from .facts import NUMPY_2
from .standard import Names, also, lacking, matrix_transpose, ours, transposed, vecdot

LINALG, FFT = Names("minnp.numpy.linalg"), Names("minnp.numpy.fft")


# ------------------------------------------------------------------ fft
def _frequencies(name: str, n: Any, d: Any, device: Any, dtype: Any) -> Any:
    found = ours(name, onp.fft, "fft")(n, d)
    if dtype is not None:
        if onp.dtype(dtype).kind != "f":
            raise ValueError(f"{name}: dtype must be real floating, got {onp.dtype(dtype)}")
        found = found.astype(dtype)
    return found if device in (None, "cpu") else found.to_device(device)


@also(FFT, onp.fft.fftfreq, present=False)
def fftfreq(n, d=1.0, device=None, *, dtype=None):
    return _frequencies("fftfreq", n, d, device, dtype)


@also(FFT, onp.fft.rfftfreq, present=False)
def rfftfreq(n, d=1.0, device=None, *, dtype=None):
    return _frequencies("rfftfreq", n, d, device, dtype)


# ------------------------------------------------------------------ NumPy 1.26: linalg
@lacking(LINALG)
def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of 3 elements."""
    x1, x2 = ours("asarray")(x1), ours("asarray")(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, not {x1.shape}, {x2.shape}")
    return ours("cross")(x1, x2, axis=axis)


@lacking(LINALG)
def diagonal(x, /, *, offset=0):
    """The diagonals of the matrices in the last two axes."""
    return ours("diagonal")(x, offset, axis1=-2, axis2=-1)


@lacking(LINALG)
def trace(x, /, *, offset=0, dtype=None):
    """The traces of the matrices in the last two axes."""
    return ours("trace")(x, offset, axis1=-2, axis2=-1, dtype=dtype)


@lacking(LINALG)
def outer(x1, x2, /):
    """The outer product of two vectors."""
    x1, x2 = ours("asarray")(x1), ours("asarray")(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} and x2.ndim={x2.ndim}.")
    return ours("outer")(x1, x2)


@lacking(LINALG)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of the matrices in the last two axes."""
    return ours("norm", onp.linalg, "linalg")(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


@lacking(LINALG)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norms of the vectors along `axis`: one axis, several taken together, or all."""
    norm, x = ours("norm", onp.linalg, "linalg"), ours("asarray")(x)
    if axis is None:
        result = norm(x.reshape(-1), ord=ord)
        return ours("reshape")(result, (1,) * x.ndim) if keepdims else result
    if isinstance(axis, tuple):
        axes = tuple(a % x.ndim for a in axis)
        flat = ours("moveaxis")(x, axes, range(len(axes)))
        result = norm(flat.reshape((-1, *flat.shape[len(axes) :])), ord=ord, axis=0)
        return ours("expand_dims")(result, sorted(axes)) if keepdims else result
    return norm(x, ord=ord, axis=axis, keepdims=keepdims)


@lacking(LINALG)
def svdvals(x, /):
    """The singular values, largest first."""
    return ours("svd", onp.linalg, "linalg")(x, compute_uv=False)


@also(LINALG, onp.linalg.cholesky)
def cholesky(a, /, *, upper=False):
    lower = ours("cholesky", onp.linalg, "linalg")(transposed(a).conj() if upper else a)
    return transposed(lower).conj() if upper else lower


@also(LINALG, onp.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    if rtol is not None:
        rcond = rtol
    elif rcond is None:
        rcond = 1e-15
    return ours("pinv", onp.linalg, "linalg")(a, rcond, hermitian)


@also(LINALG, onp.linalg.solve, least=99)  # NumPy's short way would refuse what is added
def solve(a, b):
    over, axes = (x.ndim if hasattr(x, "ndim") else ours("ndim")(x) for x in (a, b))
    if axes == 1 and over > 2:  # one vector for all matrices, which NumPy 1 refuses
        return _solve(a, ours("asarray")(b).reshape((1,) * (over - 2) + (-1, 1)))[..., 0]
    return _solve(a, b)


_solve = ours("solve", onp.linalg, "linalg")


@also(LINALG, onp.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    if rtol is None:
        return ours("matrix_rank", onp.linalg, "linalg")(A, tol, hermitian)
    values = svdvals(A)
    return ours("count_nonzero")(
        values > ours("asarray")(rtol)[..., None] * values.max(axis=-1, keepdims=True), axis=-1
    )


if not NUMPY_2:
    LINALG |= {"matmul": ours("matmul"), "tensordot": ours("tensordot")}
    LINALG |= {"matrix_transpose": matrix_transpose, "vecdot": vecdot}
