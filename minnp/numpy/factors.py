"""Rows of the factorisations: eigenvalues and vectors, singular values, Cholesky, QR, and what follows from them.

Every rule takes stacks, real or complex.
Rules follow autograd's complex convention: a small change dx of an argument changes the loss by Re(sum(g * dx)). The
formulas are Giles, "An extended collection of matrix derivative results" (2008), extended here to complex, wide, tall,
full and repeated cases. `cholesky`, `eigh` and `eigvalsh` read one triangle of their argument, so that triangle alone
has a gradient. Factors that a matrix leaves free (the phase of a singular vector, a basis of a null space) are held
still: gradients are those of any function that does not depend on them.

Vectors of equal values turn into each other by the quotient of what they would do and the values' difference: 0 / 0.
Where a function depends on the values alone, or on the space of the vectors alone, as a projection does, its gradient
has no such term. Where it depends on both, as V f(w) V^T, the quotient has a limit that the factors' gradients do not
tell: NaN, in forward mode wherever the vectors turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.rows.primitive import Meta, primitive
from ..core.transforms.grad import stop_gradient
from .facts import NUMPY_2, spread
from .indexing import diagonal, tril
from .reductions import all_, any_, argmax
from .shaping import concatenate
from .slopes import times
from .systems import (
    H,
    T,
    column,
    definite,
    eye_like,
    inexact,
    is_complex,
    real_dtype,
    row_of,
    safe_divide,
    solve,
    square,
)
from .ufuncs import absolute, conjugate, equal, imag, isfinite, maximum, not_equal, real, where

la = onp.linalg


# ------------------------------------------------------------------ eigenvalues
def fold(g: Any, uplo: str) -> Any:
    """The cotangent of a Hermitian matrix as that of the one triangle it was built from."""
    strict = tril(onp.ones(g.shape[-2:], real_dtype(g.dtype)), k=-1)
    if uplo == "U":
        strict = T(strict)
    return (g + H(g)) * strict + real(g) * eye_like(g)


def _differences(w: Any) -> Any:
    """w_j - w_i."""
    return row_of(w) - column(w)


def _same(w: Any) -> Any:
    """Which pairs of eigenvalues are equal within their rounding errors."""
    error = float(onp.finfo(w.dtype).eps) * absolute(w).sum(axis=-1)
    return absolute(_differences(w)) <= column(column(error))


def _flows(gw: Any, *gvs: Any) -> Any:
    """For which pairs of values something flows both to one of the two and to a vector of theirs."""
    values, vectors = not_equal(gw, 0), any_(not_equal(concatenate(*gvs, axis=-2), 0), axis=-2)
    return (row_of(values) | column(values)) & (row_of(vectors) | column(vectors))


def _apart(c: Any, w: Any, same: Any, flows: Any) -> Any:
    """c_ij / (w_j - w_i), where the values are not the same; else 0, or NaN where something flows."""
    quotient = where(same, 0, c / where(same, 1, _differences(w)))
    return where(same & flows & (eye_like(c) == 0), onp.nan, quotient)


def _turned(d: Any, x: Any, none: Any) -> Any:
    """d / x, but where it has `none`: NaN there, or 0 where d is 0. And 0 on the diagonal."""
    return times(d, where(eye_like(d) > 0, 0, _inverse(x, none)))


def _inverse(x: Any, none: Any) -> Any:
    """1 / x, and NaN where it has `none`."""
    return where(none, onp.nan, 1 / where(none, 1, x))


def _eigh_back(g: Any, y: Any, x: Any, UPLO: str = "L") -> Any:
    w, v = y
    gw, gv = g
    middle = _apart(T(v) @ gv, w, _same(w), _flows(gw, gv)) + row_of(gw) * eye_like(v)
    return fold(conjugate(v) @ middle @ T(v), UPLO.upper())


def _eigh_along(t: Any, y: Any, x: Any, UPLO: str = "L") -> Any:
    w, v = y
    strict = tril(t, k=-1) if UPLO.upper() == "L" else T(tril(T(t), k=-1))
    d = H(v) @ (strict + H(strict) + real(t) * eye_like(t)) @ v
    return real(diagonal(d, axis1=-2, axis2=-1)), v @ _turned(d, _differences(w), _same(w))


def _eigvalsh_back(g: Any, y: Any, x: Any, UPLO: str = "L") -> Any:
    _, v = eigh(x, UPLO=UPLO)
    return fold((conjugate(v) * row_of(g)) @ T(v), UPLO.upper())


def _values_and_vectors(metas: Sequence[Meta], params: dict) -> tuple[Meta, Meta]:
    dtype = inexact(metas[0].dtype)
    return Meta(metas[0].shape[:-1], real_dtype(dtype)), Meta(metas[0].shape, dtype)


eigh = primitive(
    "linalg.eigh",
    numpy=lambda x, UPLO="L": tuple(la.eigh(x, UPLO)),
    vjp=[_eigh_back],
    jvp=[_eigh_along],
    saves="out",
    shape=_values_and_vectors,
    flops=lambda metas, params, out: 9 * metas[0].size * metas[0].shape[-1],
    samples=lambda: [((definite(),), {}), ((definite(2),), {"UPLO": "U"})],
)
eigvalsh = primitive(
    "linalg.eigvalsh",
    numpy=lambda x, UPLO="L": la.eigvalsh(x, UPLO),
    vjp=[_eigvalsh_back],
    saves="in",
    shape=lambda metas, params: _values_and_vectors(metas, params)[0],
    flops=lambda metas, params, out: 4 * metas[0].size * metas[0].shape[-1] // 3,
    samples=lambda: [((definite(),), {}), ((definite(2, dtype=complex),), {"UPLO": "U"})],
)


def _largest(v: Any) -> onp.ndarray:
    """A mask of the entry of each column that LAPACK's geev makes real: the largest."""
    order = onp.arange(v.shape[-2])[:, None]
    return equal(row_of(argmax(absolute(v), axis=-2)), order)


def _eig_back(g: Any, y: Any, x: Any) -> Any:
    # dv = v (F * k) + v c with k = inv(v) dx v; c keeps each column's norm 1 and its largest entry real
    w, v = y
    gw, gv = g
    along = (gv * v).sum(axis=-2, keepdims=True)
    gs = gv - conjugate(v) * real(along)
    if is_complex(v):
        largest = _largest(v)
        gs = gs - 1j * where(largest, imag(along) / where(largest, real(v), 1), 0)
    middle = _apart(T(v) @ gs, w, _same(w), _flows(gw, gv)) + row_of(gw) * eye_like(v)
    gx = solve(T(v), middle @ T(v))
    return gx if is_complex(x) else real(gx)


def _eig_along(t: Any, y: Any, x: Any) -> Any:
    w, v = y
    d = solve(v, t @ v)
    turned = v @ _turned(d, _differences(w), _same(w))
    along = -real((conjugate(v) * turned).sum(axis=-2, keepdims=True))
    if is_complex(v):
        largest = _largest(v)
        fixed = where(largest, imag(turned) / where(largest, real(v), 1), 0)
        along = along - 1j * fixed.sum(axis=-2, keepdims=True)
    return diagonal(d, axis1=-2, axis2=-1), turned + v * along


def _eigvals_back(g: Any, y: Any, x: Any) -> Any:
    _, v = eig(x)
    gx = solve(T(v), column(g) * T(v))
    return gx if is_complex(x) else real(gx)


eig = primitive(
    "linalg.eig",
    numpy=lambda x: tuple(la.eig(x)),
    vjp=[_eig_back],
    jvp=[_eig_along],
    flops=lambda metas, params, out: 25 * metas[0].size * metas[0].shape[-1],
    dynamic="dtype",
    samples=lambda: [
        ((square(),), {}),
        ((square(2, seed=3, dtype=complex),), {}),
        ((onp.array([[1.0, -2.0, 0.3], [1.5, 0.8, 0.1], [0.2, 0.4, 3.0]]),), {}),
    ],
)
eigvals = primitive(
    "linalg.eigvals",
    numpy=la.eigvals,
    vjp=[_eigvals_back],
    saves="in",
    flops=lambda metas, params, out: 10 * metas[0].size * metas[0].shape[-1],
    dynamic="dtype",
    samples=lambda: eig.samples(),
)


# ------------------------------------------------------------------ singular values
def _svd_back(g: Any, y: Any, x: Any, full_matrices: bool = True) -> Any:
    """With k = min(m, n), u = (u1, u2) and v = (v1, v2), where u2 and v2 span the null spaces.

    du1 and dv1 inside their own spaces come from p = u1^H dx v1, outside from dx itself; the null spaces turn so as to
    stay orthogonal. Of the two phases of a complex pair, v's is held still.
    """
    u, s, vh = y
    gu, gs, gvh = g
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v, gv = H(vh), H(gvh)
    u1, v1, gu1, gv1 = u[..., :k], v[..., :k], gu[..., :k], gv[..., :k]
    scale = row_of(safe_divide(onp.ones((), s.dtype), s))
    a, b = T(u1) @ gu1, T(v1) @ gv1
    turns, twists = (a - H(a) + b - H(b)) / 2, (a - H(a) - b + H(b)) / 2
    middle = _apart(turns, s, _same_singular(s), _flows(gs, gu1, gv1)) + row_of(gs) * eye_like(a)
    middle = middle + safe_divide(twists * (1 - eye_like(a)), row_of(s) + column(s))
    if is_complex(u):
        middle = middle + 1j * imag(a) * scale * eye_like(a)
    gx = conjugate(u1) @ middle @ T(v1)
    if m > k:
        gx = gx + ((gu1 - conjugate(u1) @ a) * scale) @ T(v1)
        if full_matrices:
            gx = gx - conjugate((u[..., k:] @ (T(gu[..., k:]) @ u1) * scale) @ H(v1))
    if n > k:
        gx = gx + conjugate((u1 * scale) @ T(gv1 - conjugate(v1) @ b))
        if full_matrices:
            gx = gx - conjugate(u1) @ ((T(v1) @ gv[..., k:]) * T(scale)) @ T(v[..., k:])
    return gx


def _same_singular(s: Any) -> Any:
    """Which pairs of singular values are equal within their rounding errors, which are small beside small ones in what
    odd functions of them are made of: no others are smooth at 0."""
    error = s.shape[-1] * float(onp.finfo(s.dtype).eps)
    return absolute(_differences(s)) <= error * maximum(row_of(s), column(s))


def _svd_along(t: Any, y: Any, x: Any, full_matrices: bool = True) -> Any:
    u, s, vh = y
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = H(vh)
    u1, v1 = u[..., :k], v[..., :k]
    d = H(u1) @ t @ v1
    half, twist = (d + H(d)) / 2, (d - H(d)) / 2
    total = row_of(s) + column(s)
    scale = _inverse(s, equal(s, 0))
    turned, twisted = _turned(half, _differences(s), _same_singular(s)), _turned(twist, total, equal(total, 0))
    du, dv = u1 @ (turned + twisted), v1 @ (turned - twisted)
    if is_complex(u):
        du = du + 1j * u1 * times(row_of(imag(diagonal(d, axis1=-2, axis2=-1))), row_of(scale))
    if m > k:
        du = du + times(t @ v1 - u1 @ d, row_of(scale))
    if n > k:
        dv = dv + times(H(t) @ u1 - v1 @ H(d), row_of(scale))
    if full_matrices and m > k:
        du = concatenate(du, -u1 @ times(H(v1) @ H(t) @ u[..., k:], column(scale)), axis=-1)
    if full_matrices and n > k:
        dv = concatenate(dv, -v1 @ times(H(u1) @ t @ v[..., k:], column(scale)), axis=-1)
    return du, real(diagonal(d, axis1=-2, axis2=-1)), H(dv)


def _svdvals_back(g: Any, y: Any, x: Any) -> Any:
    finite = all_(isfinite(x), axis=(-2, -1), keepdims=True)
    u, _, vh = svd(where(finite, x, 0), full_matrices=False)  # NumPy's never ends of some matrices with inf
    return where(finite, (conjugate(u) * row_of(g)) @ conjugate(vh), onp.nan)


def _svd_shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, Meta, Meta]:
    *batch, m, n = metas[0].shape
    dtype, k = inexact(metas[0].dtype), min(m, n)
    full = params.get("full_matrices", True)
    u, vh = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return Meta((*batch, *u), dtype), Meta((*batch, k), real_dtype(dtype)), Meta((*batch, *vh), dtype)


svd = primitive(
    "linalg.svd",
    numpy=lambda x, full_matrices=True: tuple(la.svd(x, full_matrices)),
    vjp=[_svd_back],
    jvp=[_svd_along],
    saves="out",
    shape=_svd_shape,
    flops=lambda metas, params, out: 20 * metas[0].size * min(metas[0].shape[-2:]),
    samples=lambda: [
        ((square(),), {}),
        ((spread(2, 4, 3),), {"full_matrices": False}),
        ((spread(2, 3, 5),), {"full_matrices": False}),
    ],
)
svdvals = primitive(
    "linalg.svdvals",
    numpy=lambda x: la.svd(x, compute_uv=False),
    vjp=[_svdvals_back],
    saves="in",
    shape=lambda metas, params: _svd_shape(metas, params)[1],
    flops=lambda metas, params, out: 4 * metas[0].size * min(metas[0].shape[-2:]),
    samples=lambda: [((spread(4, 3),), {}), ((spread(2, 3, 5, dtype=complex),), {})],
)


# ------------------------------------------------------------------ triangular factors
def _half(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    return tril(x) * (1 - 0.5 * eye_like(x))


def _cholesky_back(g: Any, y: Any, x: Any, upper: bool = False) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10
    if upper:
        y, g = H(y), H(g)
    g = conjugate(g)
    s = solve(H(y), H(solve(H(y), H(_half(H(y) @ g)))))
    gx = fold(conjugate(s), "L")
    return H(gx) if upper else gx


cholesky = primitive(
    "linalg.cholesky",
    numpy=lambda x, upper=False: la.cholesky(x, upper=True) if upper else la.cholesky(x),
    vjp=[_cholesky_back],
    saves="out",
    shape=lambda metas, params: Meta(metas[0].shape, inexact(metas[0].dtype)),
    flops=lambda metas, params, out: out.size * out.shape[-1] // 3,
    takes=("arrays", 1),
    samples=lambda: [
        ((definite(),), {}),
        ((definite(2, dtype=complex),), {}),
        *([((definite(2, dtype=complex),), {"upper": True})] if NUMPY_2 else []),
    ],
)


def _qr(x: Any, mode: str = "reduced") -> Any:
    y = la.qr(x, mode)
    return y if mode == "r" else tuple(y)


def _qr_back(g: Any, y: Any, x: Any, mode: str = "reduced") -> Any:
    """x = q r: the square part of r turns q, and what is right of it follows q^H x."""
    if mode == "raw":
        raise NotImplementedError("linalg.qr has no gradient in mode 'raw'; use mode 'reduced', 'complete' or 'r'")
    if mode == "r":
        y = qr(x)
        g = (y[0] * 0, g)
    (q, r), (gq, gr) = y, map(conjugate, g)
    m, n = x.shape[-2:]
    k = min(m, n)
    beyond = 0
    if q.shape[-1] > k:  # complete: the null space stays orthogonal
        q2, gq2 = q[..., k:], gq[..., k:]
        q, gq, r, gr = q[..., :k], gq[..., :k], r[..., :k, :], gr[..., :k, :]
        beyond = q2 @ (H(gq2) @ q)
    right = None
    if n > k:  # r2 = q^H x2
        x2, gr2 = x[..., k:], gr[..., k:]
        right = q @ gr2
        gq, r, gr = gq + x2 @ H(gr2), r[..., :k], gr[..., :k]
    p = r @ H(gr) - H(gq) @ q
    symmetric = tril(p, k=-1) + H(tril(p, k=-1)) + real(p) * eye_like(p)
    left = H(solve(r, H(gq + q @ symmetric - beyond)))
    return conjugate(left if right is None else concatenate(left, right, axis=-1))


qr = primitive(
    "linalg.qr",
    numpy=_qr,
    vjp=[_qr_back],
    flops=lambda metas, params, out: 2 * metas[0].size * min(metas[0].shape[-2:]),
    samples=lambda: [
        ((square(),), {}),
        ((spread(2, 4, 3, dtype=complex),), {}),
        ((spread(2, 3, 5, dtype=complex),), {}),
        ((spread(4, 3),), {"mode": "r"}),
    ],
)


# ------------------------------------------------------------------ pseudoinverse, least squares
def _left_out(g: Any, x: Any, cutoff: Any) -> Any:
    """What is missing in the rule of a pseudoinverse where a cutoff leaves singular values t out that are not 0: they
    turn with those that are kept, s, by 1 / (s**2 - t**2), and not by 1 / s**2."""
    values = svdvals(stop_gradient(x))
    kept = values > column(onp.asarray(cutoff)) * values[..., :1]
    # Where all are kept nothing is missing, and no derivative asks how equal values' vectors turn
    distinct = onp.eye(*x.shape[-2:], dtype=x.dtype) * onp.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    u, s, vh = svd(where(all_(kept, axis=-1)[..., None, None], distinct, x), full_matrices=False)
    pairs = column(kept) & ~row_of(kept)
    ratio = where(pairs, row_of(s) / where(pairs, column(s), 1), 0)
    turn = ratio * where(pairs, 1 / where(pairs, column(s * s) - row_of(s * s), 1), 0)
    k = H(u) @ g @ H(vh)
    return u @ (turn * (ratio * k + H(k)) + H(turn * (ratio * H(k) + k))) @ vh


def _pinv_back(g: Any, y: Any, x: Any, hermitian: bool = False, **cutoff: Any) -> Any:
    # Golub and Pereyra 1973, equation 4.12; the rank is taken as constant
    left = T(g) - x @ (y @ T(g))
    right = T(g) - (T(g) @ y) @ x
    gx = -(T(y) @ g @ T(y)) + conjugate(left @ (y @ H(y))) + conjugate((H(y) @ y) @ right)
    given = next((c for c in cutoff.values() if c is not None), 0)
    rounding = 100 * max(x.shape[-2:]) * onp.finfo(x.dtype).eps
    if onp.any(onp.asarray(given) > rounding):  # else what is left out is 0 but for that
        gx = gx + conjugate(_left_out(T(g), x, given))
    return fold(gx, "L") if hermitian else gx


pinv = primitive(
    "linalg.pinv",
    numpy=la.pinv,
    vjp=[_pinv_back],
    shape=lambda metas, params: Meta((*metas[0].shape[:-2], *metas[0].shape[:-3:-1]), inexact(metas[0].dtype)),
    samples=lambda: [
        ((spread(4, 3),), {}),
        ((spread(2, 2, 3, dtype=complex),), {}),
        ((definite(),), {"hermitian": True}),
        ((square(dtype=complex),), {"rcond": 0.5}),
    ],
)


def _cutoff(a: Any, rcond: Any) -> float:
    """The ratio below which lstsq takes a singular value for 0."""
    eps = float(onp.finfo(inexact(a.dtype)).eps)
    return eps * max(a.shape) if rcond is None else eps if rcond in ("warn", -1) else rcond


def _lstsq_left(g: Any, y: Any, a: Any, b: Any, rcond: Any = "warn" if not NUMPY_2 else None) -> Any:
    gx, gr, _, gs = g
    x, squares = y[0], y[1]
    if b.ndim == 1:
        gx, x, b = column(gx), column(x), column(b)
    inverse = pinv(a, rcond=_cutoff(a, rcond))
    given = {} if rcond in (None, "warn", -1) else {"rcond": rcond}
    ga = _pinv_back(gx @ T(b), inverse, a, **given) + _svdvals_back(gs, None, a)
    if squares.size:
        ga = ga - (2 * conjugate(b - a @ x) * gr) @ T(x)
    return ga


def _lstsq_right(g: Any, y: Any, a: Any, b: Any, rcond: Any = "warn" if not NUMPY_2 else None) -> Any:
    gx, gr = g[0], g[1]
    x, squares = y[0], y[1]
    vector = b.ndim == 1
    if vector:
        gx, x, b = column(gx), column(x), column(b)
    gb = T(pinv(a, rcond=_cutoff(a, rcond))) @ gx
    if squares.size:
        gb = gb + 2 * conjugate(b - a @ x) * gr
    return gb[..., 0] if vector else gb


lstsq = primitive(
    "linalg.lstsq",
    numpy=lambda a, b, **cutoff: tuple(la.lstsq(a, b, **cutoff)),
    vjp=[_lstsq_left, _lstsq_right],
    flops=lambda metas, params, out: 2 * metas[0].size * min(metas[0].shape),
    dynamic="shape",
    samples=lambda: [
        ((spread(4, 3), spread(4)), {"rcond": None}),
        ((spread(4, 3, dtype=complex), spread(4, 2, dtype=complex)), {"rcond": None}),
        ((spread(2, 3), spread(2, 2)), {"rcond": 1e-9}),
    ],
)
