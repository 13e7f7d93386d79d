"""Linear algebra rows. Every rule takes stacks of matrices, real or complex.

Rules follow autograd's complex convention: a small change dx of an argument changes the loss by Re(sum(g * dx)). The
formulas are Giles, "An extended collection of matrix derivative results" (2008), extended here to complex, wide, tall,
full and repeated cases. `cholesky`, `eigh` and `eigvalsh` read one triangle of their argument, so that triangle alone
has a gradient. Factors that a matrix leaves free (the phase of a singular vector, a basis of a null space or of the space
of a repeated eigenvalue) are held still: gradients are those of any function that does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.primitive import CONSTANT, Meta, primitive
from .facts import NUMPY_2, kept_shape, reduced_shape, spread
from .indexing import tril
from .reductions import argmax
from .shape import concatenate, expand_dims, swapaxes
from .ufuncs import absolute, conjugate, equal, imag, real, where

la = onp.linalg


# ------------------------------------------------------------------ small pieces
def T(x: Any) -> Any:
    return swapaxes(x, axis1=-2, axis2=-1)


def H(x: Any) -> Any:
    return conjugate(T(x))


def row_of(x: Any) -> Any:
    """A vector as a row: x[..., None, :]."""
    return expand_dims(x, axis=-2)


def column(x: Any) -> Any:
    return expand_dims(x, axis=-1)


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def eye_like(x: Any) -> onp.ndarray:
    """The identity with x's last dimension and real dtype."""
    return onp.eye(x.shape[-1], dtype=_real(x.dtype))


def safe_divide(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0, with finite derivatives there."""
    zero = equal(b, 0)
    return where(zero, 0, a / where(zero, 1, b))


def gaps(w: Any) -> Any:
    """1 / (w_j - w_i), and 0 where the two are equal: the diagonal, and spaces of repeated values."""
    difference = row_of(w) - column(w)
    return safe_divide(onp.ones((), _real(w.dtype)), difference)


def _real(dtype: Any) -> onp.dtype:
    return onp.empty(0, dtype).real.dtype


def _inexact(dtype: Any) -> onp.dtype:
    """The dtype NumPy computes in."""
    return dtype if dtype.kind in "fc" else onp.dtype(float)


def _square(*batch: int, n: int = 3, seed: int = 0, dtype: Any = float) -> onp.ndarray:
    """A well-conditioned sample matrix, without symmetry."""
    return spread(*batch, n, n, low=-1, high=1, seed=seed, dtype=dtype) + onp.diag(onp.arange(2.0, 2.0 + n))


def _definite(*batch: int, n: int = 3, seed: int = 0, dtype: Any = float) -> onp.ndarray:
    a = _square(*batch, n=n, seed=seed, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2)


# ------------------------------------------------------------------ inverse, determinant, solution
inv = primitive(
    "linalg.inv",
    numpy=la.inv,
    vjp=[lambda g, y, x: -(T(y) @ g @ T(y))],
    jvp=[lambda t, y, x: -(y @ t @ y)],
    saves="out",
    shape=lambda metas, params: Meta(metas[0].shape, _inexact(metas[0].dtype)),
    flops=lambda metas, params, out: 2 * out.size * out.shape[-1],
    samples=lambda: [((_square(),), {}), ((_square(2, dtype=complex),), {})],
)


def _cofactor(x: Any) -> onp.ndarray:
    """The gradient of det. For a singular matrix from its singular values, whose products leave one out."""
    u, s, vh = la.svd(x)
    rest = onp.stack([onp.delete(s, i, -1).prod(-1) for i in range(s.shape[-1])], -1)
    phase = la.det(u) * la.det(vh)
    return (u.conj() * (phase[..., None] * rest)[..., None, :]) @ vh.conj()


def _cofactor_back(g: Any, y: Any, x: Any) -> Any:
    # y = det(x) inv(x).T
    back = T(inv(x))
    return det(x)[..., None, None] * ((g * back).sum(axis=(-2, -1), keepdims=True) * back - back @ T(g) @ back)


cofactor = primitive(
    "linalg.cofactor",
    numpy=_cofactor,
    vjp=[_cofactor_back],
    saves="in",
    shape=lambda metas, params: Meta(metas[0].shape, _inexact(metas[0].dtype)),
    samples=lambda: [((_square(),), {}), ((_square(2, dtype=complex),), {})],
)

det = primitive(
    "linalg.det",
    numpy=la.det,
    vjp=[lambda g, y, x: column(column(g)) * cofactor(x)],
    jvp=[lambda t, y, x: (t * cofactor(x)).sum((-2, -1))],
    saves="in",
    shape=lambda metas, params: Meta(metas[0].shape[:-2], _inexact(metas[0].dtype)),
    flops=lambda metas, params, out: out.size * metas[0].shape[-1] ** 3 * 2 // 3,
    samples=lambda: [((_square(),), {}), ((_square(2, dtype=complex),), {})],
)


def _slogdet(g: Any, y: Any, x: Any) -> Any:
    sign, _ = y
    g_sign, g_log = g
    if is_complex(x):  # the sign turns with the imaginary part of tr(inv(x) dx)
        g_log = g_log + 1j * imag(g_sign * sign)
    return column(column(g_log)) * T(inv(x))


slogdet = primitive(
    "linalg.slogdet",
    numpy=lambda x: tuple(la.slogdet(x)),
    vjp=[_slogdet],
    shape=lambda metas, params: (
        Meta(metas[0].shape[:-2], _inexact(metas[0].dtype)),
        Meta(metas[0].shape[:-2], _real(_inexact(metas[0].dtype))),
    ),
    flops=lambda metas, params, out: out[0].size * metas[0].shape[-1] ** 3 * 2 // 3,
    samples=lambda: [((_square(),), {}), ((_square(2, dtype=complex),), {})],
)


def _is_vector(a: Any, b: Any) -> bool:
    """Whether solve takes b as a vector (NumPy 1 looked at a's dimensions too)."""
    return b.ndim == 1 if NUMPY_2 else b.ndim == a.ndim - 1


def _solve_right(g: Any, y: Any, a: Any, b: Any) -> Any:
    if _is_vector(a, b):
        return solve(T(a), column(g))[..., 0]
    return solve(T(a), g)


def _solve_left(g: Any, y: Any, a: Any, b: Any) -> Any:
    if _is_vector(a, b):
        g, y = column(g), column(y)
    return -(solve(T(a), g) @ T(y))


def _solve_tangent(t: Any, y: Any, a: Any, b: Any) -> Any:
    return -solve(a, t @ column(y))[..., 0] if _is_vector(a, b) else -solve(a, t @ y)


solve = primitive(
    "linalg.solve",
    numpy=la.solve,
    vjp=[_solve_left, _solve_right],
    jvp=[_solve_tangent, lambda t, y, a, b: solve(a, t)],
    samples=lambda: [
        ((_square(), spread(3)), {}),
        ((_square(2), spread(2, 3, 2)), {}),
        ((_square(dtype=complex), spread(2, 3, 2, dtype=complex)), {}),
    ],
    flops=lambda metas, params, out: metas[0].size * metas[0].shape[-1] * 2 // 3 + 2 * out.size * metas[0].shape[-1],
)


def _pinv(x: Any, rcond: Any = None, hermitian: bool = False) -> onp.ndarray:
    return la.pinv(x, hermitian=hermitian) if rcond is None else la.pinv(x, rcond, hermitian=hermitian)


def _pinv_back(g: Any, y: Any, x: Any, rcond: Any = None, hermitian: bool = False) -> Any:
    # Golub and Pereyra 1973, equation 4.12; the rank is taken as constant
    left = T(g) - x @ (y @ T(g))
    right = T(g) - (T(g) @ y) @ x
    gx = -(T(y) @ g @ T(y)) + conjugate(left @ (y @ H(y))) + conjugate((H(y) @ y) @ right)
    return fold(gx, "L") if hermitian else gx


pinv = primitive(
    "linalg.pinv",
    numpy=_pinv,
    vjp=[_pinv_back],
    shape=lambda metas, params: Meta((*metas[0].shape[:-2], *metas[0].shape[:-3:-1]), _inexact(metas[0].dtype)),
    samples=lambda: [
        ((spread(4, 3),), {}),
        ((spread(2, 2, 3, dtype=complex),), {}),
        ((_definite(),), {"hermitian": True}),
    ],
)


# ------------------------------------------------------------------ eigenvalues
def fold(g: Any, uplo: str) -> Any:
    """The cotangent of a Hermitian matrix as that of the one triangle it was built from."""
    strict = tril(onp.ones(g.shape[-2:], _real(g.dtype)), k=-1)
    if uplo == "U":
        strict = T(strict)
    return (g + H(g)) * strict + real(g) * eye_like(g)


def _eigh_back(g: Any, y: Any, x: Any, UPLO: str = "L") -> Any:
    w, v = y
    gw, gv = g
    middle = gaps(w) * (T(v) @ gv) + row_of(gw) * eye_like(v)
    return fold(conjugate(v) @ middle @ T(v), UPLO.upper())


def _eigvalsh_back(g: Any, y: Any, x: Any, UPLO: str = "L") -> Any:
    _, v = eigh(x, UPLO=UPLO)
    return fold((conjugate(v) * row_of(g)) @ T(v), UPLO.upper())


def _values_and_vectors(metas: Sequence[Meta], params: dict) -> tuple[Meta, Meta]:
    dtype = _inexact(metas[0].dtype)
    return Meta(metas[0].shape[:-1], _real(dtype)), Meta(metas[0].shape, dtype)


eigh = primitive(
    "linalg.eigh",
    numpy=lambda x, UPLO="L": tuple(la.eigh(x, UPLO)),
    vjp=[_eigh_back],
    saves="out",
    shape=_values_and_vectors,
    flops=lambda metas, params, out: 9 * metas[0].size * metas[0].shape[-1],
    samples=lambda: [((_definite(),), {}), ((_definite(2),), {"UPLO": "U"})],
)
eigvalsh = primitive(
    "linalg.eigvalsh",
    numpy=lambda x, UPLO="L": la.eigvalsh(x, UPLO),
    vjp=[_eigvalsh_back],
    saves="in",
    shape=lambda metas, params: _values_and_vectors(metas, params)[0],
    flops=lambda metas, params, out: 4 * metas[0].size * metas[0].shape[-1] // 3,
    samples=lambda: [((_definite(),), {}), ((_definite(2, dtype=complex),), {"UPLO": "U"})],
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
    middle = gaps(w) * (T(v) @ gs) + row_of(gw) * eye_like(v)
    gx = solve(T(v), middle @ T(v))
    return gx if is_complex(x) else real(gx)


def _eigvals_back(g: Any, y: Any, x: Any) -> Any:
    _, v = eig(x)
    gx = solve(T(v), column(g) * T(v))
    return gx if is_complex(x) else real(gx)


eig = primitive(
    "linalg.eig",
    numpy=lambda x: tuple(la.eig(x)),
    vjp=[_eig_back],
    flops=lambda metas, params, out: 25 * metas[0].size * metas[0].shape[-1],
    samples=lambda: [
        ((_square(),), {}),
        ((_square(2, seed=3, dtype=complex),), {}),
        ((onp.array([[1.0, -2.0, 0.3], [1.5, 0.8, 0.1], [0.2, 0.4, 3.0]]),), {}),
    ],
)
eigvals = primitive(
    "linalg.eigvals",
    numpy=la.eigvals,
    vjp=[_eigvals_back],
    saves="in",
    flops=lambda metas, params, out: 10 * metas[0].size * metas[0].shape[-1],
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
    f = gaps(s * s)
    a, b = T(u1) @ gu1, T(v1) @ gv1
    middle = (f * (a - H(a))) * row_of(s) + column(s) * (f * (b - H(b))) + row_of(gs) * eye_like(f)
    if is_complex(u):
        middle = middle + 1j * imag(a) * scale * eye_like(f)
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


def _svdvals_back(g: Any, y: Any, x: Any) -> Any:
    u, _, vh = svd(x, full_matrices=False)
    return (conjugate(u) * row_of(g)) @ conjugate(vh)


def _svd_shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, Meta, Meta]:
    *batch, m, n = metas[0].shape
    dtype, k = _inexact(metas[0].dtype), min(m, n)
    full = params.get("full_matrices", True)
    u, vh = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return Meta((*batch, *u), dtype), Meta((*batch, k), _real(dtype)), Meta((*batch, *vh), dtype)


svd = primitive(
    "linalg.svd",
    numpy=lambda x, full_matrices=True: tuple(la.svd(x, full_matrices)),
    vjp=[_svd_back],
    saves="out",
    shape=_svd_shape,
    flops=lambda metas, params, out: 20 * metas[0].size * min(metas[0].shape[-2:]),
    samples=lambda: [
        ((_square(),), {}),
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
    shape=lambda metas, params: Meta(metas[0].shape, _inexact(metas[0].dtype)),
    flops=lambda metas, params, out: out.size * out.shape[-1] // 3,
    samples=lambda: [
        ((_definite(),), {}),
        ((_definite(2, dtype=complex),), {}),
        *([((_definite(2, dtype=complex),), {"upper": True})] if NUMPY_2 else []),
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
        ((_square(),), {}),
        ((spread(2, 4, 3, dtype=complex),), {}),
        ((spread(2, 3, 5, dtype=complex),), {}),
        ((spread(4, 3),), {"mode": "r"}),
    ],
)


# ------------------------------------------------------------------ least squares, norm, rank
def _lstsq_rcond(a: Any) -> float:
    return float(onp.finfo(_inexact(a.dtype)).eps * max(a.shape))


def _lstsq_left(g: Any, y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    gx, gr, _, gs = g
    x, squares = y[0], y[1]
    if b.ndim == 1:
        gx, x, b = column(gx), column(x), column(b)
    inverse = pinv(a, rcond=_lstsq_rcond(a))
    ga = _pinv_back(gx @ T(b), inverse, a) + _svdvals_back(gs, None, a)
    if squares.size:
        ga = ga - (2 * conjugate(b - a @ x) * gr) @ T(x)
    return ga


def _lstsq_right(g: Any, y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    gx, gr = g[0], g[1]
    x, squares = y[0], y[1]
    vector = b.ndim == 1
    if vector:
        gx, x, b = column(gx), column(x), column(b)
    gb = T(pinv(a, rcond=_lstsq_rcond(a))) @ gx
    if squares.size:
        gb = gb + 2 * conjugate(b - a @ x) * gr
    return gb[..., 0] if vector else gb


lstsq = primitive(
    "linalg.lstsq",
    numpy=lambda a, b, rcond=None: tuple(la.lstsq(a, b, rcond=rcond)),
    vjp=[_lstsq_left, _lstsq_right],
    flops=lambda metas, params, out: 2 * metas[0].size * min(metas[0].shape),
    samples=lambda: [
        ((spread(4, 3), spread(4)), {}),
        ((spread(4, 3, dtype=complex), spread(4, 2, dtype=complex)), {}),
        ((spread(2, 3), spread(2, 2)), {}),
    ],
)


def _norm_back(g: Any, y: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if not keepdims and axis is not None:
        shape = kept_shape(x.shape, axis)
        g, y = g.reshape(shape), y.reshape(shape)
    return safe_divide(g, y) * conjugate(x)


norm = primitive(
    "linalg.norm",
    numpy=lambda x, axis=None, keepdims=False: la.norm(x, axis=axis, keepdims=keepdims),
    vjp=[_norm_back],
    shape=lambda metas, params: Meta(
        reduced_shape(metas[0].shape, params.get("axis"), params.get("keepdims", False)),
        _real(_inexact(metas[0].dtype)),
    ),
    flops=lambda metas, params, out: 2 * metas[0].size,
    samples=lambda: [
        ((spread(3, 4),), {}),
        ((spread(2, 3, 4, dtype=complex),), {"axis": 1}),
        ((spread(2, 3, 4),), {"axis": (0, 2), "keepdims": True}),
    ],
)

matrix_rank = primitive(
    "linalg.matrix_rank",
    numpy=la.matrix_rank,
    vjp=CONSTANT,
    saves="",
    samples=lambda: [((_square(),), {})],
)
