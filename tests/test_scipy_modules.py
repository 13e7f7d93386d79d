"""minnp.scipy's other modules: SciPy's values, derivatives against differences, and results that are no constants."""

from importlib import import_module
from typing import NamedTuple

import numpy as onp
import pytest

pytest.importorskip("scipy")

import scipy.integrate
import scipy.linalg
import scipy.spatial.distance

import minnp.numpy as np
from minnp import grad, jit, jvp, value_and_grad, vjp, vmap
from minnp.core.rows.pytree import tree_leaves
from minnp.errors import NotDifferentiableError, TracedValueError
from minnp.scipy import optimize
from minnp.testing import check_grads

rng = onp.random.default_rng(0)
V, W, M, N = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
P, Q = M @ M.T + 4 * onp.eye(4), N @ N.T + 3 * onp.eye(4)
BANDS = onp.stack([V, V + 5, W])
L, S = rng.normal(size=(13, 2)), rng.normal(size=14)


class Case(NamedTuple):
    ours: object
    theirs: object
    args: tuple
    order: int


def case(name, f, *args):
    """The same expression f(module, *args) of our module and of SciPy's; what is composed of rows is checked once."""
    path, order = name.split(".")[0], 2 if name in ROWS or name.startswith("linalg") else 1
    return pytest.param(Case(lambda *a: f(OURS[path], *a), lambda *a: f(THEIRS[path], *a), args, order), id=name)


MODULES = {"linalg": "linalg", "fft": "fft", "signal": "signal", "ndimage": "ndimage", "integrate": "integrate",
           "distance": "spatial.distance"}  # fmt: skip
OURS = {short: import_module(f"minnp.scipy.{name}") for short, name in MODULES.items()}
THEIRS = {short: import_module(f"scipy.{name}") for short, name in MODULES.items()}
la = OURS["linalg"]
ROWS = {
    "signal.convolve full",
    "signal.lfilter",
    *(f"fft.dct type {t} None" for t in (1, 2, 3, 4)),
    "distance.euclidean",
}
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
    *(
        case(f"fft.{name} {options}", lambda m, x, n=name, o=options: abs(getattr(m, n)(x, **o)), M)
        for name in ("ifft", "rfft", "hfft", "fft2", "irfftn")
        for options in ({"norm": "ortho"},)
    ),
    case("fft.fft n axis", lambda m, x: m.fft(x, 6, 0).real, M),
    case("fft.fftn s axes", lambda m, x: m.fftn(x, s=(3, 5), axes=(1, 0)).imag, M),
    case("fft.fftshift", lambda m, x: m.fftshift(x, axes=1), M),
    *(
        case(f"fft.{name} type {t} {norm}", lambda m, x, n=name, t=t, o=norm: getattr(m, n)(x, type=t, norm=o), V)
        for name, norms in (
            ("dct", (None, "ortho")),
            ("idct", (None,)),
            ("dst", (None, "ortho")),
            ("idst", ("forward",)),
        )
        for t in (1, 2, 3, 4)
        for norm in norms
    ),
    case("fft.dct n axis", lambda m, x: m.dct(x, n=5, axis=0), M),
    case("fft.dctn", lambda m, x: m.dctn(x, norm="ortho"), M),
    case("fft.idstn", lambda m, x: m.idstn(x, axes=[0]), M),
    *(
        case(f"signal.{name} {mode}", lambda m, x, y, n=name, o=mode: getattr(m, n)(x, y, mode=o), *arrays)
        for name, *arrays in (
            ("convolve", V, W[:3]),
            ("convolve", W[:2], V),
            ("convolve", M, N[:2, :3]),
            ("correlate", V, W[:3]),
            ("correlate", W[:2], V),
            ("fftconvolve", M, N[:3, :3]),
            ("convolve2d", M, N[:2, :3]),
            ("correlate2d", M, N[:3, :2]),
        )
        for mode in ("full", "same", "valid")
    ),
    case("signal.convolve2d wrap", lambda m, x, y: m.convolve2d(x, y, "same", boundary="wrap"), M, N[:2, :3]),
    case("signal.convolve2d symm", lambda m, x, y: m.convolve2d(x, y, boundary="symm"), M, N[:3, :3]),
    case("signal.convolve2d fill", lambda m, x, y: m.convolve2d(x, y, "same", fillvalue=2), M, N[:3, :3]),
    case("signal.correlate2d wrap", lambda m, x, y: m.correlate2d(x, y, "same", boundary="wrap"), M, N[:2, :2]),
    case("signal.lfilter", lambda m, b, a, x: m.lfilter(b, a, x), W, V / 9 + [1, 0, 0, 0], M),
    case("signal.lfilter axis", lambda m, x: m.lfilter([1.0, 0.5], [2.0, -0.3, 0.1], x, axis=0), M),
    case(
        "signal.sosfilt",
        lambda m, s, x: m.sosfilt(onp.concatenate([s[:, :3], onp.ones((2, 1)), s[:, 3:]], 1), x),
        onp.array([[1, 0.2, 0.3, -0.4, 0.1]] * 2),
        M,
    ),
    *(
        case(f"signal.filtfilt {kind}", lambda m, x, k=kind: m.filtfilt([1.0, 0.5], [2.0, -0.3, 0.1], x, 0, k), L)
        for kind in ("odd", "even", "constant", None)
    ),
    case("signal.detrend", lambda m, x: m.detrend(x), M),
    case("signal.detrend parts", lambda m, x: m.detrend(x, axis=0, bp=[5]), L),
    case("signal.detrend constant", lambda m, x: m.detrend(x, axis=0, type="constant"), M),
    case("signal.welch", lambda m, x: m.welch(x, nperseg=5, noverlap=2, axis=0)[1], L),
    case(
        "signal.welch spectrum", lambda m, x: m.welch(x, 2.0, "boxcar", 4, scaling="spectrum", detrend="linear")[1], S
    ),
    case("signal.csd", lambda m, x, y: abs(m.csd(x, y, nperseg=6, nfft=7)[1]), S, S[::-1] ** 2),
    case("signal.coherence", lambda m, x, y: m.coherence(x, y, nperseg=4)[1], S, S[::-1] ** 2),
    case("signal.periodogram", lambda m, x: m.periodogram(x, return_onesided=False)[1], S),
    case("signal.stft", lambda m, x: abs(m.stft(x, nperseg=4, axis=0)[2]), L),
    case("signal.stft edges", lambda m, x: m.stft(x, 2.0, "boxcar", 5, 1, boundary="even", scaling="psd")[2].imag, S),
    case("signal.istft", lambda m, x: m.istft(m.stft(x, nperseg=6)[2], nperseg=6)[1], S),
    case("signal.hilbert", lambda m, x: abs(m.hilbert(x)), M[:, :3]),
    *(
        case(f"ndimage.{name} {mode}", lambda m, x, w, n=name, o=mode: getattr(m, n)(x, w, mode=o, cval=2.0), M, w)
        for name, w in (("correlate", N[:2, :3]), ("convolve", N[:2, :3]), ("correlate1d", W), ("convolve1d", W))
        for mode in ("reflect", "constant", "nearest", "mirror", "wrap")
    ),
    case("ndimage.convolve origin", lambda m, x, w: m.convolve(x, w, origin=(0, 1)), M, N[:2, :3]),
    case("ndimage.correlate1d origin", lambda m, x, w: m.correlate1d(x, w, 0, origin=-1), M, W),
    case("ndimage.convolve1d origin", lambda m, x, w: m.convolve1d(x, w, origin=-1), M, W[:3]),
    case("ndimage.gaussian_filter", lambda m, x: m.gaussian_filter(x, 0.4), M),
    case("ndimage.gaussian_filter order", lambda m, x: m.gaussian_filter(x, [0.4, 0.3], order=[1, 0]), M),
    case("ndimage.gaussian_filter1d", lambda m, x: m.gaussian_filter1d(x, 0.5, 0, order=2, mode="wrap"), M),
    case("ndimage.uniform_filter", lambda m, x: m.uniform_filter(x, [2, 3]), M),
    case("ndimage.sobel", lambda m, x: m.sobel(x), M),
    case("ndimage.prewitt", lambda m, x: m.prewitt(x, 0, mode="constant"), M),
    case("ndimage.laplace", lambda m, x: m.laplace(x), M),
    *(
        case(
            f"ndimage.map_coordinates {mode}",
            lambda m, x, at, o=mode: m.map_coordinates(x, at, order=1, mode=o, cval=1.5),
            M,
            onp.array([[0.3, 1.2, 2.6, 3.2, -0.4], [1.7, 2.2, 0.4, 1.1, -1.3]]),
        )
        for mode in ("constant", "grid-constant", "nearest")
    ),
    case("ndimage.map_coordinates 0", lambda m, x: m.map_coordinates(x, [[0.3, 1.6], [1.2, 2.9]], order=0), M),
    case("integrate.trapezoid", lambda m, y, x: m.trapezoid(y, x), M, onp.sort(V)),
    case("integrate.cumulative_trapezoid", lambda m, y: m.cumulative_trapezoid(y, dx=0.3, axis=0, initial=0), M),
    case("integrate.cumulative_trapezoid x", lambda m, y, x: m.cumulative_trapezoid(y, x), M, onp.sort(V)),
    *(
        case(f"integrate.simpson {n}", lambda m, y, x: m.simpson(y, x=x, axis=0), L[:n], onp.arange(n) ** 1.3)
        for n in (2, 3, 4, 5, 8)
    ),
    case("integrate.simpson dx", lambda m, y: m.simpson(y, dx=0.3), M),
    *(
        case(f"distance.{name}", lambda m, x, y, n=name: getattr(m, n)(x, y), V, W)
        for name in (
            "euclidean",
            "sqeuclidean",
            "cityblock",
            "chebyshev",
            "cosine",
            "correlation",
            "canberra",
            "braycurtis",
        )
    ),
    case("distance.minkowski w", lambda m, x, y, w: m.minkowski(x, y, 3, w), V, W, abs(V)),
    case("distance.cosine w", lambda m, x, y, w: m.cosine(x, y, w), V, W, abs(V)),
    case("distance.mahalanobis", lambda m, x, y, i: m.mahalanobis(x, y, i), V, W, P),
    case("distance.seuclidean", lambda m, x, y, i: m.seuclidean(x, y, i), V, W, abs(V)),
    case("distance.jensenshannon", lambda m, x, y: m.jensenshannon(x, y, 2.0), abs(V), abs(W)),
    *(
        case(f"distance.cdist {name}", lambda m, x, y, n=name: m.cdist(x, y, n), M, N[:3])
        for name in ("euclidean", "sqeuclidean", "cityblock", "cosine")
    ),
    case("distance.cdist minkowski", lambda m, x, y: m.cdist(x, y, "minkowski", p=3), M, N),
    case("distance.cdist of a function", lambda m, x, y: m.cdist(x, y, m.euclidean), M, N),
    case("distance.pdist", lambda m, x: m.squareform(m.pdist(x)), M),
]


@pytest.mark.dealt
@pytest.mark.parametrize("it", CASES)
def test_values_are_scipys_and_derivatives_those_of_differences(it):
    parts = lambda y: y if isinstance(y, tuple) else (y,)
    wanted = parts(it.theirs(*it.args))
    for mine in (it.ours(*map(np.array, it.args)), vjp(it.ours, *it.args)[0]):
        for a, b in zip(parts(mine), wanted, strict=True):
            assert onp.result_type(a) == onp.result_type(b)
            onp.testing.assert_allclose(onp.asarray(a), b, rtol=1e-9, atol=1e-12)
    check_grads(it.ours, it.args, order=it.order)


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


def spring(y, t, stiffness, push):
    return np.stack([y[1] * stiffness, push["up"] * t - y[0]])


ARGUMENTS = (onp.array([1.0, 0.5]), onp.array([0.0, 0.3, 1.0]), 1.2, {"up": 0.7})
EXACT = {"rtol": 1e-8, "atol": 1e-8}
COARSE = {"rtol": 1e-4, "atol": 1e-6, "step": 1e-3, "modes": ("rev",)}  # differences of what is that exact


def test_odeint_by_the_adjoint_equation():
    run = lambda y0, t, *args: OURS["integrate"].odeint(spring, y0, t, args, **EXACT)
    wanted = scipy.integrate.odeint(lambda *a: onp.asarray(spring(*a)), *ARGUMENTS[:2], ARGUMENTS[2:], **EXACT)
    onp.testing.assert_array_equal(vjp(run, *ARGUMENTS)[0], wanted)
    check_grads(run, ARGUMENTS, order=1, **COARSE)
    y0, t, stiffness, push = ARGUMENTS
    check_grads(lambda k: run(y0, t[::2], k, push)[1, 0], (stiffness,), order=2, **COARSE)


def test_solve_ivp_and_quad_have_gradients():
    turned = lambda t, y, *args: spring(y, t, *args)
    run = lambda y0, k: OURS["integrate"].solve_ivp(turned, (0, 1), y0, args=(k, {"up": 0.7}), **EXACT)
    assert run(*ARGUMENTS[::2]).success
    check_grads(lambda *a: run(*a).y[:, -1], ARGUMENTS[::2], order=1, **COARSE)
    wave = lambda x, c: np.sin(c[0] * x) * c[1]
    check_grads(lambda a, b, c: OURS["integrate"].quad(wave, a, b, (c,))[0], (0.1, 0.7, V[:2]), order=1, modes=("rev",))
    with pytest.raises(TracedValueError):  # what comes from elsewhere would be a constant
        grad(lambda c: OURS["integrate"].quad(lambda x: wave(x, c), 0, 1)[0])(V[:2])


def _decays(of, npx, begin, end, times=None):
    slope = lambda t, y: -y * npx.cos(t)
    return of["integrate"].solve_ivp(slope, (begin, end), [1.0, 2.0], t_eval=times, rtol=1e-10, atol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize(
    "f",
    [
        lambda of, npx, a: _decays(of, npx, 0, a).y[0, -1],
        lambda of, npx, a: _decays(of, npx, a, 3.0).y[1, -1],
        lambda of, npx, a: npx.sum(_decays(of, npx, a * 0.5, a * 2).y[:, -1]),
        lambda of, npx, a: npx.sum(_decays(of, npx, 0.0, 5.0, npx.stack([a * 0.5, a, a * 2])).y ** 2),
        lambda of, npx, a: npx.sum(_decays(of, npx, a * 0.5, 5.0, npx.stack([a * 0.5, a, a * 2])).y ** 2),
        lambda of, npx, a: _decays(of, npx, 0.0, a).t[-1] ** 2,
    ],
)
def test_the_times_of_solve_ivp_have_gradients(f):
    h = 1e-5
    expected = (f(THEIRS, onp, 2 + h) - f(THEIRS, onp, 2 - h)) / (2 * h)
    assert f(OURS, np, 2.0) == f(THEIRS, onp, 2.0)
    assert value_and_grad(lambda a: f(OURS, np, a))(2.0)[0] == f(THEIRS, onp, 2.0)
    for slope in (grad(lambda a: f(OURS, np, a)), jit(grad(lambda a: f(OURS, np, a)))):
        onp.testing.assert_allclose([slope(2.0), slope(2.0)], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: optimize.newton(lambda t: t**2 - a, 1.0),
        lambda a: optimize.fixed_point(lambda t: 0.5 * (t + a / t), 1.0),
        lambda a: OURS["integrate"].fixed_quad(lambda t: np.exp(-a * t), 0, 1)[0],
    ],
)
def test_gradients_of_functions_that_scipys_python_calls_are_compiled_as_they_are(f):
    h = 1e-5
    expected = (f(2 + h) - f(2 - h)) / (2 * h)
    compiled, both = jit(grad(f)), jit(value_and_grad(f))
    for _ in range(4):
        onp.testing.assert_allclose([compiled(2.0), both(2.0)[1], jit(grad(f))(2.0)], expected, rtol=1e-7)
    assert compiled(3.0) == grad(f)(3.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda of, npx, a: of["integrate"].quad(npx.cos, 0, a)[0],
        lambda of, npx, a: of["integrate"].quad(lambda t, a: npx.exp(-a * t), 0, 1, args=(a,))[0],
        lambda of, npx, a: of["integrate"].quad(lambda t, k, a: k * npx.exp(-a * t), 0, onp.inf, args=(3, a))[0],
    ],
)
def test_integers_among_the_arguments_of_quad_take_nobodys_gradient(f):
    h = 1e-5
    expected = (f(THEIRS, onp, 2 + h) - f(THEIRS, onp, 2 - h)) / (2 * h)
    onp.testing.assert_allclose(grad(lambda a: f(OURS, np, a))(2.0), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: OURS["ndimage"].gaussian_filter(V, a)[0],
        lambda a: OURS["ndimage"].gaussian_filter(M, (1.0, a))[0, 0],
        lambda a: OURS["ndimage"].gaussian_filter1d(V, a)[0],
        lambda a: OURS["signal"].filtfilt(np.stack([a, 0.1]), [1.0], S)[3],
        lambda a: OURS["signal"].filtfilt([1.0], np.stack([1.0, a / 10]), S)[3],
        lambda a: OURS["signal"].welch(S, window=np.ones(8) * a)[1][0],
        lambda a: OURS["linalg"].fractional_matrix_power(P, a)[0, 0],
    ],
)
def test_an_option_without_a_gradient_says_so(f):
    for slope in (grad(f), jit(grad(f)), lambda a: jvp(f, (a,), (1.0,))):
        with pytest.raises(TracedValueError):
            slope(2.0)
    f(2.0)


def test_modules_in_scipys_modules_are_ours():
    from minnp.scipy import signal, spatial, special, stats

    for module in (spatial.distance, signal.windows, stats.qmc, special.orthogonal):
        assert module.__name__.startswith("minnp.")
    for p in (2.0, 3.0):
        far = lambda at, order, distance=spatial.distance: distance.minkowski(at, W, order)
        plain = lambda order: scipy.spatial.distance.minkowski(V, W, order)
        expected = (plain(p + 1e-5) - plain(p - 1e-5)) / 2e-5
        onp.testing.assert_allclose(grad(far, 1)(V, p), expected, rtol=1e-6)


ONES, TALL = onp.ones((3, 3)), rng.normal(size=(5, 3))
TURNING = onp.array([[0.3, 2.0, 0], [-1.0, 0.5, 0.2], [0.1, 0, 3]])  # two of its eigenvalues are no real numbers


@pytest.mark.parametrize(
    ("name", "args", "more"),
    [
        ("linalg.lu", (ONES,), {}),
        ("linalg.lu_factor", (ONES,), {}),
        ("linalg.lu", (onp.stack([P, Q]),), {}),
        ("linalg.lu_factor", (onp.stack([P, Q]),), {}),
        ("linalg.toeplitz", (onp.ones((3, 4)),), {}),
        ("linalg.eigvals", (P,), {}),
        ("linalg.eig", (P,), {}),
        ("linalg.eig", (onp.stack([P, P]),), {}),
        ("linalg.eig", (TURNING,), {}),
        ("linalg.lstsq", (TALL, rng.normal(size=5), None, False), {}),
        ("linalg.lstsq", (TALL, rng.normal(size=(5, 2))), {}),
        ("linalg.solve", (2.0, V), {}),
        ("linalg.solve", (onp.array(2.0), V), {"assume_a": "pos"}),
        ("fft.fft2", (rng.normal(size=(2, 3, 4)),), {"axes": None}),
        ("special.softmax", (M,), {}),
        ("special.softmax", (M, 0), {}),
        ("special.log_softmax", (M,), {}),
        ("special.log_softmax", (M,), {"axis": 1}),
        ("special.logsumexp", (True, None, abs(V)), {}),
        ("stats.norm.entropy", (), {}),
        ("stats.expon.entropy", (), {}),
    ],
)
@pytest.mark.filterwarnings("ignore:Diagonal number")
def test_recorded_calls_are_scipys(name, args, more):
    module, *rest = name.split(".")
    ours, theirs = (import_module(f"{package}scipy.{module}") for package in ("minnp.", ""))
    for part in rest:
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    f = jit(lambda x, *args: (x, ours(*args, **more)))
    given = [np.array(a) if isinstance(a, onp.ndarray) else a for a in args]
    expected = theirs(*args, **more)
    for _ in range(3):
        found = f(np.ones(2), *given)[1]
        for a, b in zip(*((x,) if not isinstance(x, (tuple, list)) else x for x in (found, expected)), strict=True):
            assert onp.shape(a) == onp.shape(b) and onp.asarray(a).dtype.kind == onp.asarray(b).dtype.kind
            onp.testing.assert_allclose(abs(onp.asarray(a)), abs(onp.asarray(b)), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("matrix", [P, TURNING])
def test_eigenvectors_have_gradients_and_batches(matrix):
    check_grads(lambda x: [f(part) for part in la.eig(x) for f in (np.real, np.imag)], (matrix,))
    found = vmap(la.eig)(np.stack([matrix, matrix * 2]))[1]
    assert found.dtype == scipy.linalg.eig(matrix)[1].dtype


@pytest.mark.parametrize(
    "read",
    [
        lambda stats, x: stats.ttest_1samp(x, 2.0).pvalue,
        lambda stats, x: stats.ttest_1samp(x, 2.0).confidence_interval().low,
        lambda stats, x: stats.ttest_ind(x, x[:3] * 2).df,
        lambda stats, x: stats.ks_2samp(x, x * 2).statistic_location,
    ],
)
def test_what_a_result_remembers_is_of_each_call(read):
    x = onp.array([1.0, 2.5, 3.0, 4.2])
    f = jit(lambda x: x[0] * read(import_module("minnp.scipy.stats"), x))
    for k in (1.0, 2.0, 3.0, 1.0):
        onp.testing.assert_allclose(f(np.array(x * k)), x[0] * k * read(import_module("scipy.stats"), x * k))


def test_defaults_of_recorded_calls_are_scipys():
    """Of each definition that names the arguments as SciPy does, but for those whose default, an object, only says that
    they are not given: SciPy no longer wants them."""
    import inspect

    from minnp.core.rows.dispatch import DEFINITIONS

    different = []
    for host, definition in DEFINITIONS.items():
        if str(getattr(host, "__module__", "")).startswith("scipy"):
            theirs, ours = (inspect.signature(f).parameters for f in (host, definition))
            for name in theirs.keys() & ours.keys():
                a, b = theirs[name].default, ours[name].default
                if a != b and b is not inspect.Parameter.empty and type(a) is not object:
                    different.append((host.__name__, name, a, b))
    assert [d for d in different if d[3] != "hann"] == []  # which is hann_periodic, of what SciPy's windows make


@pytest.mark.parametrize(
    ("read", "call"),
    [
        (lambda r: (r.statistic, r.pvalue), lambda stats, x: stats.shapiro(x)),
        (lambda r: (r.mean, r.minmax), lambda stats, x: stats.describe(x)),
        (lambda r: (r.pvalue, r.df, r.confidence_interval()), lambda stats, x: stats.ttest_1samp(x, 2.0)),
        (lambda r: (r.statistic_location, r.statistic_sign), lambda stats, x: stats.ks_2samp(x, x[::-1] * 2)),
        (lambda r: (r.slope, r.intercept_stderr), lambda stats, x: stats.linregress(x, x[::-1] * x[0])),
        (lambda r: (r.statistic, r.confidence_interval()), lambda stats, x: stats.pearsonr(x, x[::-1] * x[0])),
        (lambda r: [tuple(e) for e in r], lambda stats, x: stats.bayes_mvs(x)),
    ],
)
def test_results_of_tests_keep_their_names_under_vmap(read, call):
    mine, theirs = (import_module(name) for name in ("minnp.scipy.stats", "scipy.stats"))
    x = np.random.default_rng(0).random((3, 8))
    got = vmap(lambda x: call(mine, x))(x)
    want = [call(theirs, onp.asarray(e)) for e in x]
    assert type(got) is type(want[0])
    parts = [tree_leaves(read(w)) for w in want]
    for have, column in zip(tree_leaves(read(got)), zip(*parts, strict=True), strict=True):
        onp.testing.assert_allclose(have, column)
    for have, want in zip(tree_leaves(vmap(lambda x: read(call(mine, x)))(x)), zip(*parts, strict=True), strict=True):
        onp.testing.assert_allclose(have, want)


FORMS = {  # name: (SciPy's module, (np, module, x) -> a number of values, x)
    "fftn, s a number": ("fft", lambda np, m, x: m.fftn(x, 3), V),
    "fftn, axes a number": ("fft", lambda np, m, x: m.fftn(x, axes=0), M),
    "dctn, s a number": ("fft", lambda np, m, x: m.dctn(x, 2, 3), V),
    "trapezoid, x a number": ("integrate", lambda np, m, x: m.trapezoid(x, 2.0), V),
    "zeta, out by position": ("special", lambda np, m, x: m.zeta(x + 9, 1.5, np.zeros(len(x))), V),
    "chdtr, dtype": ("special", lambda np, m, x: m.chdtr(3.0, x * x, dtype="f4"), V),
    "gdtrc, float32 numbers": ("special", lambda np, m, x: m.gdtrc(np.float32(2), np.float32(3), np.float32(x[0])), V),
    "fdtr, casting": ("special", lambda np, m, x: m.fdtr(3.0, 2.0, x * x, casting="same_kind"), V),
    "voigt_profile, out": ("special", lambda np, m, x: m.voigt_profile(x, 1.0, 2.0, out=np.zeros(len(x), "f4")), V),
    "skew of a number": ("stats", lambda np, m, x: m.skew(x[0]), V),
    "gmean of a number": ("stats", lambda np, m, x: m.gmean(x[0] ** 2), V),
    "jensenshannon, no axis": ("spatial.distance", lambda np, m, x: m.jensenshannon(x**2, x[::-1] ** 2, axis=None), V),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FORMS)
def test_forms_of_a_call_are_scipys_under_jit(name):
    module, call, x = FORMS[name]
    mine, theirs = (import_module(f"{name}.{module}") for name in ("minnp.scipy", "scipy"))
    want = call(onp, theirs, onp.asarray(x))
    got = jit(lambda x: call(np, mine, x))(np.array(x))
    assert onp.asarray(got).dtype == onp.asarray(want).dtype
    onp.testing.assert_allclose(got, want, rtol=1e-6)


def test_axes_of_a_transform_are_distinct():
    from minnp.scipy import fft

    for name in ("fft2", "dctn"):
        with pytest.raises(ValueError, match="axes must be unique"):
            jit(lambda x, name=name: getattr(fft, name)(x, axes=(0, 0)))(np.ones((3, 3)))
