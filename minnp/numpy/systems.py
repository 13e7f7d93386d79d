"""Rows of linear systems: inverse, determinant, solve, pseudoinverse, least squares, norm; stacks, real or complex.

Rules follow autograd's complex convention: a small change dx of an argument changes the loss by Re(sum(g * dx)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.rows.primitive import CONSTANT, Meta, primitive
from .facts import NUMPY_2, kept_shape, reduced_shape, spread
from .shaping import expand_dims, swapaxes
from .ufuncs import conjugate, equal, imag, where

la, F64 = onp.linalg, onp.dtype(float)


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
    return onp.eye(x.shape[-1], dtype=real_dtype(x.dtype))


def safe_divide(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0, with finite derivatives there."""
    zero = equal(b, 0)
    return where(zero, 0, a / where(zero, 1, b))


def real_dtype(dtype: Any) -> onp.dtype:
    return onp.empty(0, dtype).real.dtype


def inexact(dtype: Any) -> onp.dtype:
    """The dtype NumPy computes in."""
    return dtype if dtype.kind in "fc" else onp.dtype(float)


def square(*batch: int, n: int = 3, seed: int = 0, dtype: Any = float) -> onp.ndarray:
    """A well-conditioned sample matrix, without symmetry."""
    return spread(*batch, n, n, low=-1, high=1, seed=seed, dtype=dtype) + onp.diag(onp.arange(2.0, 2.0 + n))


def definite(*batch: int, n: int = 3, seed: int = 0, dtype: Any = float) -> onp.ndarray:
    a = square(*batch, n=n, seed=seed, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2)


# ------------------------------------------------------------------ inverse, determinant, solution
inv = primitive(
    "linalg.inv",
    numpy=la.inv,
    vjp=[lambda g, y, x: -(T(y) @ g @ T(y))],
    jvp=[lambda t, y, x: -(y @ t @ y)],
    saves="out",
    shape=lambda metas, params: Meta(metas[0].shape, inexact(metas[0].dtype)),
    flops=lambda metas, params, out: 2 * out.size * out.shape[-1],
    takes=("arrays", 1),
    samples=lambda: [((square(),), {}), ((square(2, dtype=complex),), {})],
)


def _svd(x: Any) -> tuple:
    """NumPy's, which raises of NaN and never ends of some matrices with inf: both have NaN."""
    finite = onp.isfinite(x).all((-2, -1), keepdims=True)
    if finite.all():
        return la.svd(x)
    u, s, vh = la.svd(onp.where(finite, x, 0))
    return onp.where(finite, u, onp.nan), onp.where(finite[..., 0], s, onp.nan), onp.where(finite, vh, onp.nan)


def _cofactor(x: Any) -> onp.ndarray:
    """The gradient of det. For a singular matrix from its singular values, whose products leave one out."""
    u, s, vh = _svd(x)
    rest = onp.ones_like(s)
    for i in range(s.shape[-1]):
        rest[..., i] = onp.delete(s, i, -1).prod(-1)
    phase = la.det(u) * la.det(vh)
    return (u.conj() * (phase[..., None] * rest)[..., None, :]) @ vh.conj()


def _cofactor_change(e: Any, x: Any) -> onp.ndarray:
    """The derivative of the cofactors of x along e, singular or not. Of a diagonal matrix, det's along e and f is the
    sum over i and j of (e_ii f_jj - e_ij f_ji) times the product of the other elements of the diagonal."""
    u, s, vh = _svd(x)
    own = onp.eye(s.shape[-1], dtype=bool)
    rest = onp.where(own, 1, s[..., None, :])  # without one; from the left and from the right without another
    left, right = onp.ones_like(rest), onp.ones_like(rest)
    left[..., 1:] = rest[..., :-1].cumprod(-1)
    right[..., :-1] = rest[..., :0:-1].cumprod(-1)[..., ::-1]
    others = onp.where(own, 0, left * right)
    inner = u.conj().swapaxes(-1, -2) @ e @ vh.conj().swapaxes(-1, -2)
    of_diagonal = (others @ onp.diagonal(inner, axis1=-2, axis2=-1)[..., None])[..., 0]
    change = onp.where(own, of_diagonal[..., None], -others * inner.swapaxes(-1, -2))
    return u.conj() @ ((la.det(u) * la.det(vh))[..., None, None] * change) @ vh.conj()


def _cofactor_change_of_x(g: Any, y: Any, e: Any, x: Any) -> Any:
    """The third derivative of det along e and g, which is det(x) times traces of products with inv(x)."""
    a = inv(x)
    ae, ag = a @ e, a @ g
    trace = lambda m: (m * eye_like(m)).sum(axis=(-2, -1), keepdims=True)
    mixed = ae @ ag @ a + ag @ ae @ a - trace(ag) * (ae @ a) - trace(ae) * (ag @ a)
    return det(x)[..., None, None] * T(mixed + (trace(ae) * trace(ag) - trace(ae @ ag)) * a)


def _square_meta(metas: Sequence[Meta], params: dict) -> Meta:
    return Meta(metas[-1].shape, inexact(metas[-1].dtype))


cofactor_change = primitive(
    "linalg.cofactor_change",
    numpy=_cofactor_change,
    # the second derivative of det does not mind which direction comes first
    vjp=[lambda g, y, e, x: cofactor_change(g, x), _cofactor_change_of_x],
    saves="in",
    shape=_square_meta,
    samples=lambda: [
        ((square(seed=1), square()), {}),
        ((square(2, dtype=complex, seed=1), square(2, dtype=complex)), {}),
    ],
)
cofactor = primitive(
    "linalg.cofactor",
    numpy=_cofactor,
    vjp=[lambda g, y, x: cofactor_change(g, x)],
    jvp=[lambda t, y, x: cofactor_change(t, x)],
    saves="in",
    shape=_square_meta,
    samples=lambda: [((square(),), {}), ((square(2, dtype=complex),), {})],
)

det = primitive(
    "linalg.det",
    numpy=la.det,
    vjp=[lambda g, y, x: column(column(g)) * cofactor(x)],
    jvp=[lambda t, y, x: (t * cofactor(x)).sum((-2, -1))],
    saves="in",
    shape=lambda metas, params: Meta(metas[0].shape[:-2], inexact(metas[0].dtype)),
    flops=lambda metas, params, out: out.size * metas[0].shape[-1] ** 3 * 2 // 3,
    takes=("arrays", 1),
    samples=lambda: [((square(),), {}), ((square(2, dtype=complex),), {})],
)


def _slogdet(g: Any, y: Any, x: Any) -> Any:
    sign, _ = y
    g_sign, g_log = g
    if is_complex(x):  # the sign turns with the imaginary part of tr(inv(x) dx)
        g_log = g_log + 1j * imag(g_sign * sign)
    return column(column(g_log)) * T(inv(x))


def _slogdet_of_one(x: Any) -> tuple:
    """slogdet without NumPy's wrapper, which takes most of the time of a small matrix."""
    one = type(x) is onp.ndarray and x.dtype is F64 and x.ndim == 2 and x.shape[0] == x.shape[1]
    return la._umath_linalg.slogdet(x) if one else tuple(la.slogdet(x))


slogdet = primitive(
    "linalg.slogdet",
    numpy=lambda x: tuple(la.slogdet(x)),
    fast=_slogdet_of_one,
    vjp=[_slogdet],
    shape=lambda metas, params: (
        Meta(metas[0].shape[:-2], inexact(metas[0].dtype)),
        Meta(metas[0].shape[:-2], real_dtype(inexact(metas[0].dtype))),
    ),
    flops=lambda metas, params, out: metas[0].size * metas[0].shape[-1] ** 2 * 2 // 3,
    samples=lambda: [((square(),), {}), ((square(2, dtype=complex),), {})],
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
    takes=("arrays", 2),
    samples=lambda: [
        ((square(), spread(3)), {}),
        ((square(2), spread(2, 3, 2)), {}),
        ((square(dtype=complex), spread(2, 3, 2, dtype=complex)), {}),
    ],
    flops=lambda metas, params, out: metas[0].size * metas[0].shape[-1] * 2 // 3 + 2 * out.size * metas[0].shape[-1],
)


# ------------------------------------------------------------------ norm, rank
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
        real_dtype(inexact(metas[0].dtype)),
    ),
    flops=lambda metas, params, out: 2 * metas[0].size,
    takes=("arrays", 1),
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
    samples=lambda: [((square(),), {})],
)
