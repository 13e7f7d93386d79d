"""minnp.scipy: SciPy's values, gradients against differences, and SciPy's own ufuncs on our arrays."""

from functools import partial

import numpy as onp
import pytest

pytest.importorskip("scipy")
import scipy.optimize
import scipy.special
import scipy.stats

import minnp.numpy as np
from minnp import grad, hessian, hvp, jacobian, value_and_grad, vjp
from minnp.errors import NotDifferentiableError
from minnp.scipy import special, stats
from minnp.testing import check_grads
from tests.agreement import assert_same

A, B = onp.array([0.7, 1.4, 2.6]), onp.array([1.3, 0.6, 2.1])
CONTINUOUS = {
    "norm": (), "halfnorm": (), "lognorm": (A,), "uniform": (), "expon": (), "laplace": (), "logistic": (),
    "cauchy": (), "gumbel_r": (), "t": (A + 1,), "gamma": (A,), "invgamma": (A,), "chi2": (A * 2,), "beta": (A, B),
    "weibull_min": (B,), "pareto": (A,),
}  # fmt: skip
LOC, SCALE = onp.array([0.3, -0.2, 0.1]), onp.array([1.1, 0.8, 1.7])
DISCRETE = {"poisson": (A,), "bernoulli": (onp.array([0.2, 0.5, 0.9]),), "geom": (onp.array([0.2, 0.5, 0.9]),),
            "binom": (onp.array([5.0, 3.0, 4.0]), onp.array([0.2, 0.5, 0.9])), "nbinom": (A, B / 3)}  # fmt: skip
SHAPES_WITHOUT_RULE = {"t", "gamma", "invgamma", "chi2", "beta"}  # in their distribution functions


def traced(f, *args):
    """f's value as computed under a trace: by our definitions, not by SciPy."""
    return onp.asarray(vjp(f, *args)[0])


def with_shapes(f, shapes, x):
    return f(x, *shapes)


@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution(name, method):
    shapes = CONTINUOUS[name]
    f = getattr(getattr(stats, name), method)
    z = onp.array([1.2, 1.7, 1.4]) if name == "pareto" else onp.array([0.2, 0.7, 0.4])
    x = LOC + SCALE * z
    expected = getattr(getattr(scipy.stats, name), method)(x, *shapes, LOC, SCALE)
    assert_same(f(np.array(x), *shapes, LOC, SCALE), expected, ulps=32, scale=float("log" in method))
    if name in SHAPES_WITHOUT_RULE and "pdf" not in method:
        run = lambda x, loc, scale: f(x, *shapes, loc, scale)
        arguments = (x, LOC, SCALE)
        with pytest.raises(NotDifferentiableError, match="no gradient for argument"):
            grad(lambda a: np.sum(f(x, a, *shapes[1:])))(np.array(shapes[0]))
    else:
        run, arguments = f, (x, *shapes, LOC, SCALE)
    check_grads(run, arguments)
    onp.testing.assert_allclose(traced(run, *arguments), expected, rtol=1e-10)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution_outside_its_support(name):
    shapes, x = CONTINUOUS[name], onp.array([-3.0, -0.5, 40.0])
    for method in ["logpdf", "pdf", "cdf", "sf", "logcdf"]:
        run, theirs = (partial(with_shapes, getattr(getattr(m, name), method), shapes) for m in (stats, scipy.stats))
        onp.testing.assert_allclose(traced(run, x), theirs(x), rtol=1e-9, atol=1e-14)
        assert not onp.isnan(onp.asarray(vjp(run, x)[1](onp.ones(3))[0])).any()


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name):
    *fixed, p = DISCRETE[name]
    k, odd = onp.array([1, 0, 1]) + (name == "geom"), onp.array([-1, 0, 1.5])
    for method in ["logpmf", "pmf"]:
        ours, theirs = (getattr(getattr(m, name), method) for m in (stats, scipy.stats))
        assert_same(ours(np.array(k), *fixed, p), theirs(k, *fixed, p), ulps=32)
        check_grads(partial(ours, k, *fixed), (p,))
        for at in (k, odd):
            expected = theirs(at, *fixed, p)
            onp.testing.assert_allclose(traced(partial(ours, at, *fixed), p), expected, rtol=1e-9, atol=1e-14)


def test_frozen_distribution_is_differentiable_in_its_parameters():
    x = onp.array([0.3, 1.2])
    f = lambda mu, s: np.sum(stats.norm(mu, scale=s).logpdf(x))
    assert float(f(0.5, 2.0)) == scipy.stats.norm(0.5, scale=2.0).logpdf(x).sum()
    check_grads(f, (onp.array(0.5), onp.array(2.0)))
    onp.random.seed(1)
    expected = scipy.stats.norm(1.0, 2.0).rvs(3)
    onp.random.seed(1)
    onp.testing.assert_array_equal(onp.asarray(stats.norm(1.0, 2.0).rvs(3)), expected)


def test_multivariate_normal_and_dirichlet():
    draw = onp.random.RandomState(0).standard_normal
    root = draw((3, 3))
    x, mean, cov = draw((4, 3)), draw(3), root @ root.T + onp.eye(3)
    f, theirs = stats.multivariate_normal, scipy.stats.multivariate_normal
    assert_same(f.logpdf(np.array(x), mean, cov), theirs.logpdf(x, mean, cov), ulps=32)
    check_grads(lambda x, mean, root: f.logpdf(x, mean, root @ np.transpose(root) + onp.eye(3)), (x, mean, root))
    check_grads(lambda x, mean: f.pdf(x, mean, cov), (x[0], mean))
    check_grads(lambda x, s: f.logpdf(x, 0.5, s), (x[:, 0], onp.array(1.3)))
    check_grads(lambda x, s: f.logpdf(x, mean, s), (x, onp.array([1.3, 0.4, 0.9])))
    diagonal = [1.3, 0.4, 0.9]
    for at, *rest in [
        (x, mean, cov),
        (x[0], mean, cov),
        (x[:, 0], 0.5, 1.3),
        (x, mean, diagonal),
        (x, mean),
        (x[0, 0],),
    ]:
        value = traced(partial(with_shapes, f.logpdf, rest), at)
        onp.testing.assert_allclose(value, theirs.logpdf(at, *rest), rtol=1e-12)
    p, alpha = onp.array([0.2, 0.3, 0.5]), onp.array([1.3, 2.0, 0.7])
    onp.testing.assert_allclose(
        onp.asarray(stats.dirichlet.logpdf(np.array(p), alpha)), scipy.stats.dirichlet.logpdf(p, alpha)
    )
    check_grads(lambda a: stats.dirichlet.logpdf(p, a), (alpha,))
    check_grads(lambda a: stats.dirichlet.pdf(onp.stack([p, p[::-1]], 1), a), (alpha,))


def test_logsumexp_in_all_its_forms():
    a, b = onp.random.RandomState(0).standard_normal((3, 4)), onp.random.RandomState(1).uniform(0.2, 1, (3, 4))
    b[0, 0] = -0.1
    for options in [{}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}]:
        f = partial(special.logsumexp, **options)
        check_grads(f, (a,))
        check_grads(lambda a, b, f=f: f(a, b=b), (a, b))
        check_grads(lambda a, f=f: f(a, b=b, return_sign=True)[0], (a,))
        value = traced(partial(f, b=b), a)
        onp.testing.assert_allclose(value, scipy.special.logsumexp(a, b=b, **options), rtol=1e-12)
    check_grads(lambda a: special.softmax(a, axis=0), (a,))
    check_grads(lambda a: special.log_softmax(a, axis=-1), (a,))
    check_grads(lambda a: special.multigammaln(a, 3), (onp.array([1.7, 2.9]),))


def test_scipys_own_ufuncs_find_our_rules():
    x = onp.array([0.4, 1.3])
    check_grads(lambda x: scipy.special.expit(x) * scipy.special.gammaln(x) + scipy.special.jv(2, x), (x,))
    with pytest.raises(NotDifferentiableError, match="kolmogorov"):
        grad(lambda x: np.sum(scipy.special.kolmogorov(x)))(np.array([0.3]))
    with pytest.raises(NotDifferentiableError, match=r"jv has no gradient for argument 0"):
        grad(lambda v: np.sum(special.jv(v, 1.0)))(np.array([0.3]))


P, Q, K = onp.array([0.3, 1.2, 2.6]), onp.array([0.2, 0.5, 0.7]), onp.array([2.0, 1.0, 3.0])
N = onp.array([4, 3, 5])
SAID = {  # what is no row of its own: the arguments that move, and a function of them
    "voigt_profile": (P, A, B), "radian": (P, A, B), "factorial": (P,), "comb": (A + 3, P), "perm": (A + 3, P),
    "chdtr": (K, P), "chdtrc": (K, P), "chdtri": (K, Q), "gdtr": (P, K, A), "gdtrc": (P, K, A), "pdtr": (K, P),
    "pdtrc": (K, P), "bdtr": (K, N, Q), "bdtrc": (K, N, Q), "nbdtr": (K, N, Q), "nbdtrc": (K, N, Q),
    "fdtr": (K, K + 1, P), "fdtrc": (K, K + 1, P),
}  # fmt: skip
MOVES = {"voigt_profile": (0, 1, 2), "radian": (0, 1, 2), "factorial": (0,), "gdtr": (0, 2), "gdtrc": (0, 2)}
MOVES |= {"comb": (0, 1), "perm": (0, 1)}


@pytest.mark.parametrize("name", SAID)
def test_a_special_function_said_in_others(name):
    args, f = SAID[name], getattr(special, name)
    moves = MOVES.get(name, (len(args) - 1,))
    run = lambda *xs: f(*[xs[moves.index(i)] if i in moves else a for i, a in enumerate(args)])
    onp.testing.assert_allclose(traced(run, *[args[i] for i in moves]), getattr(scipy.special, name)(*args), rtol=1e-12)
    check_grads(run, [args[i] for i in moves])


REGULAR = {  # points where a formula of the textbooks is 0 / 0
    "spence": (1.0,), "ellipk": (0.0,), "ellipe": (0.0,), "exprel": (0.0,), "boxcox": (2.0, 0.0), "lambertw": (0.0,),
    "boxcox1p": (2.0, 0.0), "inv_boxcox": (2.0, 0.0), "inv_boxcox1p": (2.0, 0.0), "eval_legendre": (3, 0.999999999),
}  # fmt: skip


@pytest.mark.parametrize("name", REGULAR)
def test_gradients_where_formulas_are_singular(name):
    first = [a for a in REGULAR[name] if isinstance(a, int)]
    args = [onp.array(a) for a in REGULAR[name] if isinstance(a, float)]
    check_grads(lambda *xs: np.real(getattr(special, name)(*first, *xs)), args, step=1e-5)


def test_derivatives_of_bessel_functions():
    z = onp.array([0.4, 1.3])
    for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"):
        f = getattr(special, name)
        onp.testing.assert_allclose(traced(lambda z, f=f: f(1, z, 2), z), getattr(scipy.special, name)(1, z, 2))
        check_grads(lambda z, f=f: np.real(f(1.5, z)), (z,), order=1)
    for name in ("spherical_jn", "spherical_kn"):
        f = getattr(special, name)
        value = traced(lambda z, f=f: f(2, z, derivative=True), z)
        onp.testing.assert_allclose(value, getattr(scipy.special, name)(2, z, derivative=True))
    check_grads(lambda z: special.spherical_jn(0, z), (onp.array([0.0, 0.7]),))
    check_grads(lambda z: special.expn(onp.array([0, 1, 2, 3]), z), (onp.array(0.7),))


def test_every_public_name_of_scipy_special_is_here():
    for name in scipy.special.__all__:
        assert hasattr(special, name), name
    onp.testing.assert_array_equal(onp.asarray(special.zeta(np.array([2.0, 3.0]))), scipy.special.zeta([2.0, 3.0]))


# ------------------------------------------------------------------ scipy.optimize with our gradients
def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


SECOND = {"Newton-CG": {"hessp": lambda x, p: hvp(rosenbrock)(x, p)}, "trust-ncg": {"hess": hessian(rosenbrock)}}


@pytest.mark.parametrize("start", [onp.array, np.array])
@pytest.mark.parametrize("method", ["BFGS", "CG", "Newton-CG", "L-BFGS-B", "SLSQP", "trust-ncg", "trust-constr"])
def test_minimize_takes_our_gradients(method, start):
    more = SECOND.get(method, {})
    got = scipy.optimize.minimize(rosenbrock, start([1.3, 0.7, 0.8]), jac=grad(rosenbrock), method=method, **more)
    theirs = {"hessp": scipy.optimize.rosen_hess_prod} if "hessp" in more else {}
    theirs |= {"hess": scipy.optimize.rosen_hess} if "hess" in more else {}
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, onp.array([1.3, 0.7, 0.8]), jac=scipy.optimize.rosen_der, method=method, **theirs
    )
    assert type(got.x) is onp.ndarray
    onp.testing.assert_allclose(got.x, expected.x, rtol=1e-4)
    onp.testing.assert_allclose(got.x, 1, rtol=2e-3)
    unwrapped = scipy.optimize.minimize(
        value_and_grad(rosenbrock), start([1.3, 0.7, 0.8]), jac=True, method=method, **more
    )
    onp.testing.assert_allclose(onp.asarray(unwrapped.x), got.x, rtol=1e-12)


def test_optimize_converts_the_results_of_functions_wherever_they_stand():
    disc = {"type": "ineq", "fun": lambda x: 1 - np.sum(x**2), "jac": grad(lambda x: 1 - np.sum(x**2))}
    both = scipy.optimize.minimize(
        value_and_grad(rosenbrock), np.array([0.1, 0.2]), jac=True, method="SLSQP", constraints=[disc]
    )
    onp.testing.assert_allclose(both.x, [0.7864, 0.6177], atol=1e-3)
    away = lambda x: np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    onp.testing.assert_allclose(scipy.optimize.least_squares(away, np.array([-1.2, 1.0])).x, 1, rtol=1e-6)
    onp.testing.assert_allclose(scipy.optimize.root(grad(rosenbrock), np.array([0.9, 0.8])).x, 1, rtol=1e-6)


def test_scipys_submodules_are_imported_as_autograds_are():
    import minnp.scipy.stats.norm as norm
    from minnp.scipy import linalg
    from minnp.scipy.stats.multivariate_normal import logpdf

    assert norm is stats.norm and float(grad(norm.logpdf)(0.5)) == -0.5
    assert logpdf(np.zeros(2), np.zeros(2), np.eye(2)) == pytest.approx(-onp.log(2 * onp.pi))
    assert type(linalg.expm(np.eye(2))) is np.ndarray
    with pytest.raises(NotDifferentiableError, match=r"linalg\.signm"):
        grad(lambda x: np.sum(linalg.signm(x)))(np.eye(2))
    with pytest.raises(ImportError):
        import minnp.scipy.stats.nonsense  # noqa: F401


def test_scipy_takes_ours_where_it_asks_for_dense_matrices():
    from scipy import optimize
    from scipy.sparse import linalg

    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    assert onp.allclose(linalg.cg(a, np.ones(2))[0], onp.linalg.solve(a, onp.ones(2)))
    residuals = lambda p: p**3 - np.array([1.0, 8.0])
    fit = optimize.least_squares(residuals, np.array([2.0, 3.0]), jac=jacobian(residuals), method="lm")
    assert onp.allclose(fit.x, [1, 2])
