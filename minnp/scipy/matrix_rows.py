"""Rows of scipy.linalg, around SciPy's kernels: triangular and banded systems, functions of matrices, LU.

Rules follow autograd's complex convention, as those of numpy.linalg (minnp/numpy/systems.py).
"""

from __future__ import annotations

from typing import Any

import numpy as onp
from scipy import linalg

from ..core.rows.primitive import CONSTANT, Joint, primitive
from ..numpy.facts import spread
from ..numpy.indexing import tril, triu
from ..numpy.reductions import sum_
from ..numpy.shaping import concatenate, stack
from ..numpy.systems import T, column, definite, row_of, square


# ------------------------------------------------------------------ triangular systems
def _triangle(x: Any, lower: bool, unit_diagonal: bool) -> Any:
    k = -1 if unit_diagonal else 0
    return tril(x, k=k) if lower else triu(x, k=-k)


def _triangular_left(g: Any, y: Any, a: Any, b: Any, lower: bool = False, unit_diagonal: bool = False) -> Any:
    back = triangular(T(a), g, lower=not lower, unit_diagonal=unit_diagonal)
    outer = back @ T(y) if b.ndim > 1 else column(back) * row_of(y)
    return -_triangle(outer, lower, unit_diagonal)


triangular = primitive(
    "scipy.linalg.solve_triangular",
    numpy=lambda a, b, lower=False, unit_diagonal=False: linalg.solve_triangular(
        a, b, lower=lower, unit_diagonal=unit_diagonal
    ),
    vjp=[
        _triangular_left,
        lambda g, y, a, b, lower=False, unit_diagonal=False: triangular(
            T(a), g, lower=not lower, unit_diagonal=unit_diagonal
        ),
    ],
    flops=lambda metas, params, out: out.size * metas[0].shape[-1],
    samples=lambda: [
        ((square(), spread(3)), {"lower": True}),
        ((square(), spread(3, 2)), {"lower": False, "unit_diagonal": True}),
        ((square(dtype=complex), spread(3, 2, dtype=complex)), {"lower": True}),
    ],
)


# ------------------------------------------------------------------ functions of matrices
def _of_matrix(name: str, kernel: Any, *cases: tuple) -> Any:
    """A row of an analytic function f of square matrices (and numbers that are constants).

    Its derivative along E stands in a corner of a larger matrix: f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]
    (Higham, "Functions of Matrices", 2008, theorem 3.6); the gradient is the same of A's transpose.
    """

    def slope(a: Any, e: Any, params: dict) -> Any:
        n, zero = a.shape[-1], onp.zeros(a.shape, a.dtype)
        rows = [concatenate(a, e, axis=-1), concatenate(zero, a, axis=-1)]
        return row(concatenate(*rows, axis=-2), **params)[..., :n, n:]

    row = primitive(
        name,
        numpy=kernel,
        vjp=[lambda g, y, a, **params: slope(T(a), g, params)],
        jvp=[lambda t, y, a, **params: slope(a, t, params)],
        flops=lambda metas, params, out: 30 * out.size * out.shape[-1],
        samples=lambda: [((a() if callable(a) else a,), params) for a, params in cases],
    )
    return row


def _logm(a: onp.ndarray) -> onp.ndarray:
    """SciPy's result is of double precision, and it warns where the argument was not."""
    return linalg.logm(a.astype(onp.result_type(a.dtype, float)))


_small = lambda: 0.3 * square()
FUNCTIONS = {
    name: _of_matrix(f"scipy.linalg.{name}", getattr(linalg, name), (_small, {}))
    for name in ("expm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")
}
FUNCTIONS["logm"] = _of_matrix("scipy.linalg.logm", _logm, (definite, {}))
FUNCTIONS["sqrtm"] = _of_matrix("scipy.linalg.sqrtm", linalg.sqrtm, (definite, {}))
power = _of_matrix(
    "scipy.linalg.fractional_matrix_power",
    lambda a, exponent: linalg.fractional_matrix_power(a, exponent),
    (definite, {"exponent": 0.3}),
)

# ------------------------------------------------------------------ a x + x b = q
sylvester = primitive(
    "scipy.linalg.solve_sylvester",
    numpy=linalg.solve_sylvester,
    vjp=[
        lambda g, x, a, b, q: -(sylvester(T(a), T(b), g) @ T(x)),
        lambda g, x, a, b, q: -(T(x) @ sylvester(T(a), T(b), g)),
        lambda g, x, a, b, q: sylvester(T(a), T(b), g),
    ],
    flops=lambda metas, params, out: 30 * out.size * out.shape[-1],
    samples=lambda: [
        ((definite(n=3), definite(n=2, seed=1), spread(3, 2)), {}),
        ((definite(n=2, dtype=complex), definite(n=2, seed=1, dtype=complex), spread(2, 2, dtype=complex)), {}),
    ],
)


# ------------------------------------------------------------------ banded systems
def _transposed_bands(ab: Any, lower: int, upper: int) -> Any:
    """The diagonals of the transposed matrix, in SciPy's order: each moved along by its distance from the main one."""
    n, rows = ab.shape[1], []
    for r in reversed(range(lower + upper + 1)):
        k = upper - r
        zero = onp.zeros(min(abs(k), n), ab.dtype)
        rows.append(concatenate(ab[r, k:], zero) if k >= 0 else concatenate(zero, ab[r, : n + k]))
    return stack(*rows)


def _banded_right(g: Any, x: Any, ab: Any, b: Any, lower: int, upper: int) -> Any:
    return banded(_transposed_bands(ab, lower, upper), g, lower=upper, upper=lower)


def _banded_left(g: Any, x: Any, ab: Any, b: Any, lower: int, upper: int) -> Any:
    back = _banded_right(g, x, ab, b, lower, upper)
    if x.ndim == 1:
        x, back = column(x), column(back)
    n, rows = ab.shape[1], []
    for r in range(lower + upper + 1):
        k = upper - r
        inner = back[: n - k] * x[k:] if k >= 0 else back[-k:] * x[: n + k]
        inner, zero = sum_(inner, axis=-1), onp.zeros(min(abs(k), n), ab.dtype)
        rows.append(concatenate(zero, inner) if k >= 0 else concatenate(inner, zero))
    return -stack(*rows)


banded = primitive(
    "scipy.linalg.solve_banded",
    numpy=lambda ab, b, lower, upper: linalg.solve_banded((lower, upper), ab, b),
    vjp=[_banded_left, _banded_right],
    flops=lambda metas, params, out: 2 * metas[0].size * metas[0].shape[0],
    samples=lambda: [
        ((spread(3, 5) + onp.array([[0], [4], [0]]), spread(5)), {"lower": 1, "upper": 1}),
        ((spread(4, 5) + onp.array([[0], [0], [4], [0]]), spread(5, 2)), {"lower": 1, "upper": 2}),
    ],
)


# ------------------------------------------------------------------ LU
def _lu_back(wanted: list, g: tuple, y: tuple, a: Any) -> list:
    # l, u of a = l u: dl = l tril(l^-1 da u^-1, -1) and du = triu(l^-1 da u^-1) u
    (lower, upper), (gl, gu) = y, g
    inner = 0.0
    if gl is not None:
        inner = inner + tril(T(lower) @ gl, k=-1)
    if gu is not None:
        inner = inner + triu(gu @ T(upper))
    inner = triangular(T(lower), inner, lower=False, unit_diagonal=True)
    return [T(triangular(upper, T(inner), lower=False))]


def _lu_without_exchange(a: onp.ndarray) -> tuple:
    lower, upper = onp.eye(len(a), dtype=a.dtype), a.copy()
    for k in range(len(a) - 1):
        if upper[k, k] == 0:  # and so is the column below it: LAPACK goes on to the next
            continue
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :] -= onp.outer(lower[k + 1 :, k], upper[k])
        upper[k + 1 :, k] = 0
    return lower, upper


factors = primitive(
    "scipy.linalg.lu",
    numpy=_lu_without_exchange,  # of a matrix whose rows are in the order of their pivots
    vjp=Joint(_lu_back),
    flops=lambda metas, params, out: metas[0].size * metas[0].shape[-1],
    samples=lambda: [((definite(),), {}), ((definite(dtype=complex),), {})],
)


# ------------------------------------------------------------------ eigenvectors
eigenvectors = primitive(
    "scipy.linalg.eigenvectors",  # eigenvectors of a real matrix, in real numbers if all its eigenvalues are
    numpy=lambda v, w: (v if (w.imag != 0).any() else v.real).copy(),
    vjp=[lambda g, y, v, w: g, CONSTANT],
    saves="",
    dynamic="dtype",
    samples=lambda: [((square(dtype=complex), spread(3, dtype=complex)), {}), ((square(dtype=complex), spread(3)), {})],
)
