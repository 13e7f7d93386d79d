"""minnp.scipy's other modules: SciPy's values, derivatives against differences, and results that are no constants."""

from typing import NamedTuple

import numpy as onp
import pytest

pytest.importorskip("scipy")

import scipy.linalg

import minnp.numpy as np
import minnp.scipy.linalg as la
from minnp import grad, jit, jvp, vjp
from minnp.errors import NotDifferentiableError
from minnp.scipy import optimize
from minnp.testing import check_grads

rng = onp.random.default_rng(0)
V, W, M, N = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
P, Q = M @ M.T + 4 * onp.eye(4), N @ N.T + 3 * onp.eye(4)
BANDS = onp.stack([V, V + 5, W])
sym = lambda x: x + np.swapaxes(x, 0, 1)


class Case(NamedTuple):
    ours: object
    theirs: object
    args: tuple


def case(name, f, *args):
    """The same expression f(module, *args) of our module and of SciPy's."""
    path = name.split(".")[0]
    return pytest.param(Case(lambda *a: f(OURS[path], *a), lambda *a: f(THEIRS[path], *a), args), id=name)


OURS, THEIRS = {"linalg": la}, {"linalg": scipy.linalg}
CASES = [
    case("linalg.inv", lambda m, x: m.inv(x), P),
    case("linalg.det", lambda m, x: m.det(x), P),
    case("linalg.norm", lambda m, x: m.norm(x), P),
    case("linalg.norm of rows", lambda m, x: m.norm(x, axis=1), M),
    case("linalg.pinv", lambda m, x: m.pinv(x), M[:, :3]),
    case("linalg.solve", lambda m, x, b: m.solve(x, b), P, V),
    case("linalg.solve transposed", lambda m, x, b: m.solve(x, b, transposed=True), P, M[:, :2]),
    case("linalg.solve pos", lambda m, x, b: m.solve(x, b, assume_a="pos"), P, V),
    case("linalg.solve sym lower", lambda m, x, b: m.solve(x, b, lower=True, assume_a="sym"), P, V),
    case("linalg.lstsq", lambda m, x, b: m.lstsq(x, b)[0], M[:, :3], V),
    case("linalg.solve_triangular", lambda m, x, b: m.solve_triangular(x, b), P, V),
    case("linalg.solve_triangular T", lambda m, x, b: m.solve_triangular(x, b, trans="T", lower=True), P, M),
    case("linalg.solve_triangular unit", lambda m, x, b: m.solve_triangular(x, b, unit_diagonal=True), P / 9, V),
    case("linalg.cholesky", lambda m, x: m.cholesky(x + x.T), Q / 2),
    case("linalg.cholesky lower", lambda m, x: m.cholesky(x + x.T, lower=True), Q / 2),
    case("linalg.cho_solve", lambda m, x, b: m.cho_solve(m.cho_factor(x + x.T), b), Q / 2, V),
    case("linalg.cho_solve lower", lambda m, x, b: m.cho_solve(m.cho_factor(x + x.T, lower=True), b), Q / 2, M),
    case("linalg.lu", lambda m, x: m.lu(x)[1:], M),
    case("linalg.lu permuted", lambda m, x: m.lu(x, permute_l=True), M),
    case("linalg.lu_solve", lambda m, x, b: m.lu_solve(m.lu_factor(x), b), M, V),
    case("linalg.lu_solve T", lambda m, x, b: m.lu_solve(m.lu_factor(x), b, trans=1), M, N[:, :2]),
    case("linalg.qr", lambda m, x: m.qr(x, mode="economic"), M[:, :3]),
    case("linalg.qr pivoting", lambda m, x: m.qr(x, pivoting=True)[:2], M),
    case("linalg.svd", lambda m, x: m.svd(x)[1], M),
    case("linalg.svdvals", lambda m, x: m.svdvals(x), M),
    case("linalg.polar", lambda m, x: m.polar(x), M),
    case("linalg.polar left", lambda m, x: m.polar(x, "left"), M),
    case("linalg.eigh", lambda m, x: m.eigh(x + x.T, eigvals_only=True), P),
    case("linalg.eigh subset", lambda m, x: m.eigh(x + x.T, eigvals_only=True, subset_by_index=[1, 2]), P),
    case("linalg.eigh of two", lambda m, x, y: m.eigh(x + x.T, y + y.T)[0], P, Q),
    case("linalg.eigvalsh", lambda m, x: m.eigvalsh(x + x.T, lower=False), P),
    case("linalg.eigh_tridiagonal", lambda m, d, e: m.eigh_tridiagonal(d, e, eigvals_only=True), V, W[:3]),
    case("linalg.eigvals", lambda m, x: abs(m.eigvals(x)).sum(), M),
    case("linalg.expm", lambda m, x: m.expm(x), M),
    case("linalg.expm of a stack", lambda m, x: m.expm(x), onp.stack([M, N])),
    case("linalg.expm_frechet", lambda m, x, y: m.expm_frechet(x, y), M, N),
    case("linalg.logm", lambda m, x: m.logm(x), P),
    case("linalg.sqrtm", lambda m, x: m.sqrtm(x), P),
    case("linalg.fractional_matrix_power", lambda m, x: m.fractional_matrix_power(x, 0.3), P),
    case("linalg.sinm", lambda m, x: m.sinm(x), M),
    case("linalg.tanhm", lambda m, x: m.tanhm(x), M / 4),
    case("linalg.solve_sylvester", lambda m, x, y, z: m.solve_sylvester(x, y, z), P, Q, M),
    case("linalg.solve_continuous_lyapunov", lambda m, x, y: m.solve_continuous_lyapunov(x, y), P, M),
    case("linalg.solve_discrete_lyapunov", lambda m, x, y: m.solve_discrete_lyapunov(x, y), M / 4, Q),
    case("linalg.solve_banded", lambda m, x, b: m.solve_banded((1, 1), x, b), BANDS, V),
    case("linalg.block_diag", lambda m, x, y: m.block_diag(x, y), M[:2], V),
    case("linalg.toeplitz", lambda m, x, y: m.toeplitz(x, y), V, W[:3]),
    case("linalg.hankel", lambda m, x: m.hankel(x), V),
    case("linalg.circulant", lambda m, x: m.circulant(x), V),
    case("linalg.khatri_rao", lambda m, x, y: m.khatri_rao(x, y), M, N),
    case("linalg.solve_toeplitz", lambda m, x, b: m.solve_toeplitz(x, b), V + [5, 0, 0, 0], W),
    case("linalg.matmul_toeplitz", lambda m, x, b: m.matmul_toeplitz((x, x), b), V, W),
]


@pytest.mark.parametrize("it", CASES)
def test_values_are_scipys_and_derivatives_those_of_differences(it):
    parts = lambda y: y if isinstance(y, tuple) else (y,)
    wanted = parts(it.theirs(*it.args))
    for mine in (it.ours(*map(np.array, it.args)), vjp(it.ours, *it.args)[0]):
        for a, b in zip(parts(mine), wanted, strict=True):
            assert onp.result_type(a) == onp.result_type(b)
            onp.testing.assert_allclose(onp.asarray(a), b, rtol=1e-9, atol=1e-12)
    check_grads(it.ours, it.args)


def test_numbers_in_a_result_of_another_kind_are_no_constants():
    x, at = np.array([0.5, 0.2, 0.1]), onp.array([1.0, 2.0, 4.0])
    with pytest.raises(NotDifferentiableError, match="minimize returns its numbers in OptimizeResult"):
        grad(lambda x: optimize.minimize(lambda z: ((z - 1) ** 2).sum(), x).fun)(x)
    with pytest.raises(NotDifferentiableError, match="no gradient for argument 0"):
        grad(lambda x: optimize.rosen(x) + la.bandwidth(np.outer(x, x))[0] + optimize.rosen_hess(x)[0, 0])(x)
    find = lambda x: optimize.brentq(lambda t: t - 0.2, x[2], x[0])  # a Python number
    assert grad(lambda x: np.stop_gradient(find(x)) * x[0])(x)[0] == pytest.approx(0.2)
    for derivative in (lambda: grad(find)(x), lambda: jvp(find, (x,), (at,))):
        with pytest.raises(NotDifferentiableError, match=r"brentq has no gradient for argument 0 \(float64\[\]\)"):
            derivative()


def test_what_a_definition_leaves_to_scipy_has_values_under_a_trace():
    assert onp.allclose(jit(lambda x: la.eig(x, left=True)[0])(np.array(P)), scipy.linalg.eig(P, left=True)[0])
    with pytest.raises(NotDifferentiableError, match=r"scipy\.linalg\.eig has no gradient"):
        grad(lambda x: abs(la.eig(x, left=True)[1]).sum())(np.array(P))
