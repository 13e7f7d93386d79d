"""scipy.linalg with gradients: its functions expressed in its own rows (matrix_rows.py) and numpy.linalg's.

A definition that returns NotImplemented leaves the call to SciPy: values, and no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as onp
from scipy import linalg

from .. import numpy as np
from ..core.rows.dispatch import defines
from ..numpy.arguments import as_array, number, plain
from ..numpy.indexing import tril, triu
from ..numpy.systems import H, T, eye_like
from .matrix_rows import FUNCTIONS, banded, eigenvectors, factors, power, sylvester, triangular

la = np.linalg
COMPLEX = onp.linalg.eigvals(onp.eye(1)).dtype.kind == "c"  # NumPy 2.5 gives complex eigenvectors for all matrices


# ------------------------------------------------------------------ functions and equations
@defines(linalg.solve_triangular)
def _solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    a, b = as_array(a), as_array(b)
    if trans not in (0, "N"):
        a, lower = (T if trans in (1, "T") else H)(a), not lower
    return triangular(a, b, lower=lower, unit_diagonal=unit_diagonal)


for _name, _row in FUNCTIONS.items():
    # logm and sqrtm once had arguments about printing and blocks
    defines(getattr(linalg, _name))(lambda A, *ignored, _row=_row, **options: _row(as_array(A)))
defines(linalg.fractional_matrix_power)(lambda A, t: power(as_array(A), exponent=number(t)))


@defines(linalg.expm_frechet)
def _expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    A, E = as_array(A), as_array(E)
    n = A.shape[-1]
    both = FUNCTIONS["expm"](np.block([[A, E], [np.zeros_like(A), A]]))
    return (both[:n, :n], both[:n, n:]) if compute_expm else both[:n, n:]


defines(linalg.solve_sylvester)(lambda a, b, q: sylvester(as_array(a), as_array(b), as_array(q)))


@defines(linalg.solve_continuous_lyapunov, linalg.solve_lyapunov)
def _continuous_lyapunov(a: Any, q: Any) -> Any:
    a = as_array(a)
    return sylvester(a, H(a), as_array(q))


@defines(linalg.solve_discrete_lyapunov)
def _discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """By the bilinear transformation, as SciPy for matrices that are not small."""
    a, q = as_array(a), as_array(q)
    one = onp.eye(a.shape[0])
    inverse = la.inv(H(a) + one)
    b = (H(a) - one) @ inverse
    return _continuous_lyapunov(H(b), -2 * (la.inv(a + one) @ q @ inverse))


@defines(linalg.solve_banded)
def _solve_banded(
    l_and_u: tuple, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    lower, upper = plain(l_and_u)
    return banded(as_array(ab), as_array(b), lower=lower, upper=upper)


# ------------------------------------------------------------------ systems, least squares
def _symmetric(a: Any, lower: bool, transposed: Any) -> Any:
    """The matrix of which SciPy reads one triangle."""
    half = tril(a, k=-1) if lower else triu(a, k=1)
    return half + transposed(half) + a * eye_like(a)


SYMMETRIC = {"sym": T, "symmetric": T, "her": H, "hermitian": H, "pos": H, "positive definite": H}


@defines(linalg.solve)
def _solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    a, b = as_array(a), as_array(b)
    if a.ndim < 2:  # a number
        return _solve(a.reshape(1, 1), b.reshape(1, -1)).reshape(b.shape)
    if assume_a in SYMMETRIC:
        a = _symmetric(a, lower, SYMMETRIC[assume_a])
    elif assume_a in ("lower triangular", "upper triangular"):
        return _solve_triangular(a, b, int(transposed), assume_a[0] == "l")
    return la.solve(T(a) if transposed else a, b)


@defines(linalg.lstsq)
def _lstsq(a: Any, b: Any, cond: Any = None, *options: Any, **more: Any) -> Any:
    a, b = as_array(a), as_array(b)
    x, residues, *rest = la.lstsq(a, b, rcond=onp.finfo(a.dtype).eps if cond is None else cond)
    return x, residues[0] if b.ndim == 1 and residues.size else residues, *rest


@defines(linalg.inv)
def _inv(a: Any, *options: Any, **more: Any) -> Any:
    return la.inv(as_array(a))


@defines(linalg.det)
def _det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return la.det(as_array(a))


@defines(linalg.norm)
def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    return la.norm(as_array(a), ord, axis, keepdims)


@defines(linalg.pinv)
def _pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    if atol is not None:
        return NotImplemented
    a = as_array(a)
    cutoff = {"rcond": max(a.shape[-2:]) * onp.finfo(a.dtype).eps if rtol is None else rtol}
    inverse = la.pinv(a, **cutoff)
    s = la.svd(a, compute_uv=False) if return_rank else None
    return inverse if s is None else (inverse, np.sum(s > cutoff["rcond"] * s[..., :1], axis=-1))


# ------------------------------------------------------------------ factors
@defines(linalg.cholesky)
def _cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    a = as_array(a)
    if a.ndim < 2:
        return NotImplemented
    return la.cholesky(a) if lower else H(la.cholesky(H(a)))  # each reads the triangle that SciPy reads


@defines(linalg.cho_factor)
def _cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(factor, lower); the other triangle holds what was there."""
    a = as_array(a)
    if a.ndim < 2:
        return NotImplemented
    if a.ndim > 2:  # since SciPy 1.17 there is a second result for each
        lower = linalg.cho_factor(onp.broadcast_to(onp.eye(a.shape[-1]), a.shape), lower)[1]
    factor = _cholesky(a, bool(onp.all(lower)))
    return factor + (triu(a, k=1) if onp.all(lower) else tril(a, k=-1)), lower


@defines(linalg.cho_solve)
def _cho_solve(c_and_lower: tuple, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return _solve_triangular(c, _solve_triangular(c, b, first, lower), second, lower)


@defines(linalg.lu)
def _lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> Any:
    """Of a square matrix; the exchange of rows is locally constant."""
    a = as_array(a)
    if a.ndim != 2:
        return NotImplemented
    order = linalg.lu(plain(np.stop_gradient(a)), p_indices=True)[0]
    lower, upper = factors(a[onp.argsort(order)])
    if permute_l:
        return lower[order], upper
    return order if p_indices else onp.eye(len(order))[order], lower, upper


@defines(linalg.lu_factor)
def _lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    a = as_array(a)
    if a.ndim != 2:
        return NotImplemented
    pivots = linalg.lu_factor(plain(np.stop_gradient(a)))[1]
    lower, upper = factors(a[_order(pivots)])
    return tril(lower, k=-1) + upper, pivots


def _order(pivots: onp.ndarray) -> onp.ndarray:
    """Where each row comes from after LAPACK's exchanges."""
    order = onp.arange(len(pivots))
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return order


@defines(linalg.lu_solve)
def _lu_solve(lu_and_piv: tuple, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    lu, order, b = lu_and_piv[0], _order(onp.asarray(plain(lu_and_piv[1]))), as_array(b)
    if trans == 0:
        return _solve_triangular(lu, _solve_triangular(lu, b[order], 0, True, True), 0, False)
    x = _solve_triangular(lu, _solve_triangular(lu, b, trans, False), trans, True, True)
    return x[onp.argsort(order)]


@defines(linalg.qr)
def _qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    a, order = as_array(a), None
    if pivoting:
        order = linalg.qr(plain(np.stop_gradient(a)), mode="r", pivoting=True)[1]
        a = a[:, order]
    q, r = la.qr(a, "reduced" if mode == "economic" else "complete")
    out = (r,) if mode == "r" else (q, r)
    return out if order is None else (*out, order)


@defines(linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, *options: Any, **more: Any) -> Any:
    return tuple(la.svd(as_array(a), full_matrices)) if compute_uv else la.svd(as_array(a), compute_uv=False)


@defines(linalg.svdvals)
def _svdvals(a: Any, *options: Any, **more: Any) -> Any:
    return la.svd(as_array(a), compute_uv=False)


@defines(linalg.polar)
def _polar(a: Any, side: str = "right") -> Any:
    w, s, vh = la.svd(as_array(a), full_matrices=False)
    u, inner = w @ vh, vh if side == "right" else H(w)
    return u, (H(inner) * s[..., None, :]) @ inner


# ------------------------------------------------------------------ eigenvalues
def _chosen(options: dict) -> slice | None:
    """The part of the eigenvalues that is asked for; None where it is chosen by their size."""
    if options.get("subset_by_value") is not None:
        return None
    low, high = options.get("subset_by_index") or (0, None)
    return slice(low, None if high is None else high + 1)


@defines(linalg.eigh)
def _eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, type: int = 1, **options: Any
) -> Any:
    """a v = w v, or a v = w b v by b's Cholesky factor."""
    part = _chosen(options)
    if part is None or type != 1:
        return NotImplemented
    a, factor = as_array(a), None
    if b is not None:
        factor = la.cholesky(as_array(b) if lower else H(as_array(b)))
        a = _symmetric(a, lower, H)
        a = _solve_triangular(factor, H(_solve_triangular(factor, a, 0, True)), 0, True)
    if eigvals_only:
        return la.eigvalsh(a, "L" if lower else "U")[..., part]
    w, v = la.eigh(a, "L" if lower else "U")
    if factor is not None:
        v = _solve_triangular(factor, v, 2, True)
    return w[..., part], v[..., part]


@defines(linalg.eigvalsh)
def _eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **options: Any) -> Any:
    return _eigh(a, b, lower=lower, eigvals_only=True, **options)


@defines(linalg.eigh_tridiagonal)
def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: str = "a", **options: Any) -> Any:
    if select != "a":
        return NotImplemented
    return _eigh(np.diag(as_array(d)) + np.diag(as_array(e), -1), eigvals_only=eigvals_only)


@defines(linalg.eig)
def _eig(a: Any, b: Any = None, left: bool = False, right: bool = True, *options: Any, **more: Any) -> Any:
    if b is not None or left:
        return NotImplemented
    a = as_array(a)
    values, *vectors = la.eig(a) if right else (la.eigvals(a),)
    if vectors and COMPLEX and a.dtype.kind != "c":
        vectors = [eigenvectors(vectors[0], values)]
    values = values if values.dtype.kind == "c" else values.astype(onp.result_type(values.dtype, "F"))
    return (values, *vectors) if right else values


@defines(linalg.eigvals)
def _eigvals(a: Any, b: Any = None, *options: Any, **more: Any) -> Any:
    return _eig(a, b, right=False)


# ------------------------------------------------------------------ matrices of a structure
@defines(linalg.block_diag)
def _block_diag(*arrs: Any) -> Any:
    blocks = [np.atleast_2d(as_array(a)) for a in arrs]
    if any(b.ndim > 2 for b in blocks):
        return NotImplemented
    width, at, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        rows.append(np.pad(b, ((0, 0), (at, width - at - b.shape[1]))))
        at += b.shape[1]
    return np.concatenate(rows)


@defines(linalg.toeplitz)
def _toeplitz(c: Any, r: Any = None) -> Any:
    c, r = as_array(c), None if r is None else as_array(r)
    if max(c.ndim, 0 if r is None else r.ndim) > 1:  # since SciPy 1.17 several of them
        return NotImplemented
    c = c.reshape(-1)
    r = np.conj(c) if r is None else r.reshape(-1)
    lines = np.concatenate([c[::-1], r[1:]])
    return lines[onp.arange(len(c))[::-1, None] + onp.arange(len(r))]


@defines(linalg.hankel)
def _hankel(c: Any, r: Any = None) -> Any:
    c = as_array(c).reshape(-1)
    r = np.zeros_like(c) if r is None else as_array(r).reshape(-1)
    return np.concatenate([c, r[1:]])[onp.arange(len(c))[:, None] + onp.arange(len(r))]


@defines(linalg.circulant)
def _circulant(c: Any) -> Any:
    c = as_array(c)
    if not c.ndim:
        return NotImplemented
    n = c.shape[-1]
    return c[..., (onp.arange(n)[:, None] - onp.arange(n)) % n]


@defines(linalg.khatri_rao)
def _khatri_rao(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    return (a[..., :, None, :] * b[..., None, :, :]).reshape((*a.shape[:-2], -1, a.shape[-1]))


def _both(c_or_cr: Any) -> Any:
    return _toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else _toeplitz(c_or_cr)


@defines(linalg.solve_toeplitz)
def _solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    matrix = _both(c_or_cr)
    return matrix if matrix is NotImplemented else la.solve(matrix, as_array(b))


@defines(linalg.matmul_toeplitz)
def _matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    matrix = _both(c_or_cr)
    return matrix if matrix is NotImplemented else matrix @ as_array(x)
