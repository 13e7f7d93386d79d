"""MXNet's linear algebra: products, factors and their inverses, of matrices or batches of them."""

from __future__ import annotations

from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import stop_gradient

from ..operator import Shape, operator


def turned(x: Any, transpose: bool = True) -> Any:
    """The matrices [..., I, J] transposed."""
    return np.swapaxes(x, -1, -2) if transpose else x


def _aside(x: Any, axis: int) -> Any:
    """The matrices' rows where the last but one axis is."""
    return x if axis in (-2, x.ndim - 2) else np.moveaxis(x, axis, -2)


# ------------------------------------------------------------------ products
def gemm(A: Any, B: Any, C: Any, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
         beta: float = 1.0, axis: int = -2) -> Any:  # fmt: skip
    """alpha A B + beta C; rows lie along `axis`."""
    y = gemm2(A, B, transpose_a, transpose_b, alpha, axis)
    return y + C * beta


def gemm2(A: Any, B: Any, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
          axis: int = -2) -> Any:  # fmt: skip
    """alpha A B; rows lie along `axis`."""
    a, b = turned(_aside(A, axis), transpose_a), turned(_aside(B, axis), transpose_b)
    y = np.matmul(a, b) * alpha
    return y if axis in (-2, y.ndim - 2) else np.moveaxis(y, -2, axis)


def syrk(A: Any, transpose: bool = False, alpha: float = 1.0) -> Any:
    """alpha A A^T, or A^T A."""
    return np.matmul(turned(A, transpose), turned(A, not transpose)) * alpha


def _half(A: Any, lower: bool) -> Any:
    return np.tril(A) if lower else np.triu(A)


def trmm(A: Any, B: Any, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0) -> Any:  # fmt: skip
    """alpha A B, or B A, with a triangular A."""
    a = turned(_half(A, lower), transpose)
    return (np.matmul(B, a) if rightside else np.matmul(a, B)) * alpha


def trsm(A: Any, B: Any, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0) -> Any:  # fmt: skip
    """X with A X = alpha B, or X A = alpha B, for a triangular A."""
    a = turned(_half(A, lower), transpose)
    if rightside:
        return turned(np.linalg.solve(turned(a), turned(B) * alpha))
    return np.linalg.solve(a, B * alpha)


_PRODUCT = "transpose_a:bool=0 transpose_b:bool=0 alpha:float=1"
_TRIANGULAR = "transpose:bool=0 rightside:bool=0 lower:bool=1 alpha:float=1"
operator("_linalg_gemm", gemm, ("A", "B", "C"), f"{_PRODUCT} beta:float=1 axis:int=-2", aliases=("linalg_gemm",))
operator("_linalg_gemm2", gemm2, ("A", "B"), f"{_PRODUCT} axis:int=-2", aliases=("linalg_gemm2",))
operator("_linalg_syrk", syrk, ("A",), "transpose:bool=0 alpha:float=1", aliases=("linalg_syrk",))
operator("_linalg_trmm", trmm, ("A", "B"), _TRIANGULAR, aliases=("linalg_trmm",), result=lambda p, a, b: [b])
operator("_linalg_trsm", trsm, ("A", "B"), _TRIANGULAR, aliases=("linalg_trsm",), result=lambda p, a, b: [b])


# ------------------------------------------------------------------ factors and inverses
def potrf(A: Any) -> Any:
    """The Cholesky factor; the gradient is symmetric, as A is."""
    return np.linalg.cholesky((A + turned(A)) / 2)


def potri(A: Any) -> Any:
    """The inverse of the matrix whose Cholesky factor A is."""
    inverse = np.linalg.inv(np.tril(A))
    return np.matmul(turned(inverse), inverse)


def gelqf(A: Any) -> tuple:
    """(Q, L) with A = L Q, orthonormal rows in Q, and L lower triangular."""
    q, r = np.linalg.qr(turned(A))
    return turned(q), turned(r)


def syevd(A: Any) -> tuple:
    """(U, eigenvalues) of a symmetric A = U^T diag(eigenvalues) U; of each row the largest element is positive."""
    values, vectors = np.linalg.eigh((A + turned(A)) / 2)
    rows = turned(vectors)
    largest = np.take_along_axis(rows, np.argmax(np.abs(rows), axis=-1)[..., None], axis=-1)
    return rows * np.sign(stop_gradient(largest)), values


def inverse(A: Any) -> Any:
    """The inverse."""
    return np.linalg.inv(A)


def det(A: Any) -> Any:
    """The determinants."""
    return _full(np.linalg.det(A))


def slogdet(A: Any) -> tuple:
    """(the sign of the determinants, the logarithm of their magnitude)."""
    sign, log = np.linalg.slogdet(A)
    return _full(sign), _full(log)


def _full(x: Any) -> Any:
    return np.reshape(x, (1,)) if x.ndim == 0 else x


def sumlogdiag(A: Any) -> Any:
    """The sums of the logarithms of the diagonals."""
    return _full(np.sum(np.log(np.diagonal(A, 0, -2, -1)), axis=-1))


def _as_data(p: dict, a: Shape) -> list[Shape]:
    return [a]


def _batch(p: dict, a: Shape) -> list[Shape]:
    return [a[:-2] or (1,)]


operator("_linalg_potrf", potrf, ("A",), aliases=("linalg_potrf",), result=_as_data)
operator("_linalg_potri", potri, ("A",), aliases=("linalg_potri",), result=_as_data)
operator("_linalg_gelqf", gelqf, ("A",), aliases=("linalg_gelqf",), outputs=("output0", "output1"),
         result=lambda p, a: [a, (*a[:-1], a[-2])])  # fmt: skip
operator("_linalg_syevd", syevd, ("A",), aliases=("linalg_syevd",), outputs=("output0", "output1"),
         result=lambda p, a: [a, a[:-1]])  # fmt: skip
operator("_linalg_inverse", inverse, ("A",), aliases=("linalg_inverse",), result=_as_data)
operator("_linalg_det", det, ("A",), aliases=("linalg_det",), outputs=("output0",), result=_batch)
operator("_linalg_slogdet", slogdet, ("A",), aliases=("linalg_slogdet",), outputs=("output0", "output1"),
         result=lambda p, a: _batch(p, a) * 2)  # fmt: skip
operator("_linalg_sumlogdiag", sumlogdiag, ("A",), aliases=("linalg_sumlogdiag",), result=_batch)


# ------------------------------------------------------------------ diagonals and triangles
def extractdiag(A: Any, offset: int = 0) -> Any:
    """The diagonals."""
    return np.diagonal(A, offset, -2, -1)


def makediag(A: Any, offset: int = 0) -> Any:
    """Matrices with A on a diagonal and zeros elsewhere."""
    n = A.shape[-1] + abs(offset)
    at = onp.arange(A.shape[-1])
    out = np.zeros_like(A, shape=(*A.shape[:-1], n, n))
    out[..., at + max(-offset, 0), at + max(offset, 0)] = A
    return out


def _triangle(n: int, offset: int, lower: bool) -> tuple:
    if offset:
        lower = offset < 0
    return onp.tril_indices(n, offset) if lower else onp.tril_indices(n, -offset)[::-1]


def extracttrian(A: Any, offset: int = 0, lower: bool = True) -> Any:
    """The elements of the triangles on one side of a diagonal: row by row, the upper ones column by column."""
    rows, columns = _triangle(A.shape[-1], offset, lower)
    return A[..., rows, columns]


def maketrian(A: Any, offset: int = 0, lower: bool = True) -> Any:
    """Matrices with A's elements in a triangle."""
    n = int((onp.sqrt(8 * A.shape[-1] + 1) - 1) / 2) + abs(offset)
    rows, columns = _triangle(n, offset, lower)
    out = np.zeros_like(A, shape=(*A.shape[:-1], n, n))
    out[..., rows, columns] = A
    return out


def _on_a_diagonal(p: dict, a: Shape) -> list[Shape]:
    return [(*a[:-1], *[a[-1] + abs(p["offset"])] * 2)]


def _in_a_triangle(p: dict, a: Shape) -> list[Shape]:
    return [(*a[:-1], *[int((onp.sqrt(8 * a[-1] + 1) - 1) / 2) + abs(p["offset"])] * 2)]


for _name, _function, _more, _result in (
    ("extractdiag", extractdiag, "", None), ("makediag", makediag, "", _on_a_diagonal),
    ("extracttrian", extracttrian, " lower:bool=1", None), ("maketrian", maketrian, " lower:bool=1", _in_a_triangle),
):  # fmt: skip
    operator(f"_linalg_{_name}", _function, ("A",), f"offset:int=0{_more}", aliases=(f"linalg_{_name}",),
             result=_result)  # fmt: skip
