"""minnp.scipy: SciPy's values, gradients against differences, and SciPy's own ufuncs on our arrays."""

import inspect
from functools import partial

import numpy as onp
import pytest

pytest.importorskip("scipy")
import scipy.optimize
import scipy.special
import scipy.stats

import minnp.numpy as np
from minnp import grad, hessian, hvp, jacobian, jit, value_and_grad, vjp
from minnp.core.rows.dispatch import DEFINITIONS
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
BY_INTEGRALS = {"t", "gamma", "invgamma", "chi2", "beta"}  # the shapes' derivatives, in distribution functions


def traced(f, *args):
    """f's value as computed under a trace: by our definitions, not by SciPy."""
    return onp.asarray(vjp(f, *args)[0])


def with_shapes(f, shapes, x):
    return f(x, *shapes)


@pytest.mark.dealt
@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution(name, method):
    shapes = CONTINUOUS[name]
    f = getattr(getattr(stats, name), method)
    z = onp.array([1.2, 1.7, 1.4]) if name == "pareto" else onp.array([0.2, 0.7, 0.4])
    x = LOC + SCALE * z
    expected = getattr(getattr(scipy.stats, name), method)(x, *shapes, LOC, SCALE)
    assert_same(f(np.array(x), *shapes, LOC, SCALE), expected, ulps=32, scale=float("log" in method))
    if name in BY_INTEGRALS and "pdf" not in method:
        check_grads(lambda x, loc, scale: f(x, *shapes, loc, scale), (x, LOC, SCALE))
        check_together(f, (x, *shapes, LOC, SCALE), order=1)
    else:
        check_grads(f, (x, *shapes, LOC, SCALE))
    onp.testing.assert_allclose(traced(f, x, *shapes, LOC, SCALE), expected, rtol=1e-10)


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


U, SIGNED = onp.array([0.2, 0.6, 0.4]), onp.array([0.2, -0.3, 0.4])
MORE = {
    "skewnorm": (A,), "exponnorm": (B,), "foldnorm": (A,), "johnsonsu": (A, B), "johnsonsb": (A, B),
    "truncnorm": (-A, B), "genlogistic": (A,), "hypsecant": (), "gumbel_l": (), "gennorm": (A,), "dweibull": (A + 1,),
    "dgamma": (A,),
    "moyal": (), "loggamma": (A,), "vonmises": (A,), "vonmises_line": (A,), "genextreme": (SIGNED,), "erlang": (A,),
    "chi": (A,), "maxwell": (), "rayleigh": (), "rice": (A,), "nakagami": (A,), "f": (A * 2 + 1, B + 4),
    "betaprime": (A, B + 2), "weibull_max": (A,), "invweibull": (A,), "exponweib": (A, B), "gompertz": (A,),
    "invgauss": (A,), "halfcauchy": (), "halflogistic": (), "levy": (), "levy_l": (), "genpareto": (SIGNED,),
    "lomax": (A + 2,), "fisk": (A + 1,), "burr12": (A, B), "burr": (A, B), "loglaplace": (A,), "powerlaw": (A,),
    "arcsine": (), "semicircular": (), "triang": (U,), "wrapcauchy": (U,), "truncexpon": (A,),
    "loguniform": (A / 10, B), "reciprocal": (A / 10, B),
}  # fmt: skip
WHERE = {"weibull_max": -U, "levy_l": -U, "triang": onp.array([0.1, 0.7, 0.6])}
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")


def said(name, method):
    """Whether we say this method of SciPy's distribution in rows."""
    return getattr(getattr(scipy.stats, name), method) in DEFINITIONS


def check_together(f, args, **options):
    """check_grads along one direction of all arguments: of a composition, whose rows are checked one by one."""
    check_grads(lambda p: f(*p), (onp.stack(onp.broadcast_arrays(*args)),), **options)


@pytest.mark.filterwarnings("ignore:The shape parameter of the erlang")
@pytest.mark.dealt
@pytest.mark.parametrize("name", MORE)
def test_more_continuous_distributions(name):
    shapes, ours, theirs = MORE[name], getattr(stats, name), getattr(scipy.stats, name)
    x, at = LOC + SCALE * WHERE.get(name, onp.array([0.2, 0.5, 0.3])), onp.array([0.3, 0.7, 0.55])
    for method in (*METHODS, "ppf", "isf"):
        if not said(name, method):
            continue
        f, place = getattr(ours, method), x if method in METHODS else at
        value = traced(lambda x, f=f: f(x, *shapes, LOC, SCALE), place)
        onp.testing.assert_allclose(value, getattr(theirs, method)(place, *shapes, LOC, SCALE), rtol=1e-10)
        if method == "logpdf":
            check_together(f, (place, *shapes, LOC, SCALE))
        elif method in ("cdf", "ppf", "isf"):  # the others are said in the same words
            check_together(f, (place, *shapes, LOC, SCALE), order=1, modes=("fwd",) if method == "cdf" else ("rev",))
    # outside of the support
    if shapes:
        far = onp.array([-9.0, 0.1, 40.0])
        for method in filter(partial(said, name), ("logpdf", "cdf", "sf")):
            value, pull = vjp(getattr(ours, method), far, *shapes)
            onp.testing.assert_allclose(value, getattr(theirs, method)(far, *shapes), rtol=1e-9, atol=1e-14)
            assert not any(onp.isnan(onp.asarray(g)).any() for g in pull(onp.ones(3)))


MOMENTS = {**CONTINUOUS, **MORE, **DISCRETE, "t": (A + 3,), "invgamma": (A + 2,), "pareto": (A + 2,), "fisk": (A + 2,)}


@pytest.mark.filterwarnings("ignore:The shape parameter of the erlang")
@pytest.mark.parametrize("name", MOMENTS)
def test_moments_and_entropies(name):
    shapes = MOMENTS[name]
    fixed, moving = shapes[: -1 if name in DISCRETE else 0], shapes[-1:] if name in DISCRETE else (*shapes, LOC, SCALE)
    for method in filter(partial(said, name), ("mean", "var", "std", "entropy")):
        f = partial(getattr(getattr(stats, name), method), *fixed)
        value = getattr(getattr(scipy.stats, name), method)(*fixed, *moving)
        onp.testing.assert_allclose(onp.broadcast_to(traced(f, *moving), value.shape), value, rtol=1e-9)
        if method != "std":
            check_together(f, moving, order=1)


def test_medians_and_intervals():
    args = (A, LOC, SCALE)
    check_together(stats.weibull_min.median, args)
    check_together(lambda *args: np.stack(stats.weibull_min.interval(0.9, *args)), args)
    onp.testing.assert_allclose(traced(stats.weibull_min.median, *args), scipy.stats.weibull_min.median(*args))
    for got, want in zip(
        vjp(partial(stats.norm.interval, 0.9), LOC, SCALE)[0], scipy.stats.norm.interval(0.9, LOC, SCALE)
    ):
        onp.testing.assert_allclose(onp.asarray(got), want)
    check_grads(stats.norm(0.2, 1.3).ppf, (onp.array([0.2, 0.9]),), order=3)
    check_grads(lambda c: stats.gompertz(c, scale=2.0).isf(0.2), (onp.array(0.7),), order=3)


COUNTS = {
    "betabinom": (5, A, B), "betanbinom": (5, A, B + 2), "logser": (U,), "planck": (A,), "boltzmann": (A, 9),
    "dlaplace": (A,), "yulesimon": (A,), "zipf": (A + 1,), "skellam": (A, B),
}  # fmt: skip


@pytest.mark.parametrize("name", [*DISCRETE, *(n for n in COUNTS if hasattr(scipy.stats, n))])
def test_counts(name):
    params = {**DISCRETE, **COUNTS}[name]
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    free = [
        i for i, p in enumerate(params) if isinstance(p, onp.ndarray) and (name, i) not in {("binom", 0), ("nbinom", 0)}
    ]
    moving = [params[i] for i in free]

    def run(method, at, *xs):
        return getattr(ours, method)(*at, *[xs[free.index(i)] if i in free else p for i, p in enumerate(params)])

    for method in filter(partial(said, name), ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf", "mean", "var", "std")):
        for k in (onp.array([1, 2, 3]), onp.array([-1, 0, 12]), onp.array([1.5, 2.2, 0.0])):
            at = () if method in ("mean", "var", "std") else (k,)
            f, value = partial(run, method, at), getattr(theirs, method)(*at, *params)
            onp.testing.assert_allclose(traced(f, *moving), value, rtol=1e-9, atol=1e-14)
            if k[0] == 1 and onp.isfinite(value).all():
                check_together(f, moving, order=1 if method in ("pmf", "std") else 2)


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


@pytest.mark.parametrize("shape", [(1,), (3,), (3, 1), (1, 1), (3, 1, 1)])
@pytest.mark.parametrize("name", ["multivariate_normal", "multivariate_t"])
def test_axes_of_length_1_are_left_out_where_scipy_does(name, shape):
    """A judge's density of points on a line was a column, which broadcast beside weights."""
    x, theirs = onp.random.RandomState(0).standard_normal(shape), getattr(scipy.stats, name)
    for density in (lambda of, x: of.logpdf(x, [0.1], [[2.0]]), lambda of, x: of.pdf(x)):
        value, wanted = jit(partial(density, getattr(stats, name)))(np.array(x)), density(theirs, x)
        assert onp.shape(value) == onp.shape(wanted)
        onp.testing.assert_allclose(value, wanted, rtol=1e-12)
    flat = onp.random.RandomState(0).standard_normal((1, 3))
    assert jit(lambda x: getattr(stats, name).logpdf(x, onp.zeros(3), onp.eye(3)))(np.array(flat)).shape == ()


DRAW = onp.random.RandomState(3).standard_normal
ROOT, OTHER, DATA = DRAW((3, 3)), DRAW((2, 2)), DRAW((5, 4))
SPREAD, MATRIX = ROOT @ ROOT.T + onp.eye(3), DRAW((2, 3))
SHARES, COUNTED = onp.array([0.2, 0.3, 0.5]), onp.array([[1, 0, 2], [2, 1, 0]])
symmetric = lambda root: root @ np.transpose(root) + np.eye(len(root))
VECTORS = {  # a method, the arguments that move, and how they become the method's
    "multivariate_normal.entropy": ((ROOT,), lambda root: (None, symmetric(root))),
    "multivariate_t.logpdf": ((DATA[:, :3], ROOT, 3.4), lambda x, root, df: (x, [0.2, 0.1, 0.3], symmetric(root), df)),
    "multivariate_t.pdf": ((DATA[:, 0],), lambda x: (x, 0.3, 2.0, 2.1)),
    "matrix_normal.logpdf": ((MATRIX, OTHER, ROOT), lambda x, r, c: (x, None, symmetric(r), symmetric(c))),
    "wishart.logpdf": ((ROOT, ROOT.T, 4.2), lambda x, root, df: (symmetric(x), df[()], symmetric(root))),
    "invwishart.logpdf": ((ROOT, ROOT.T, 4.2), lambda x, root, df: (symmetric(x), df[()], symmetric(root))),
    "wishart.pdf": ((ROOT,), lambda x: (np.stack([symmetric(x), 2 * symmetric(x)], axis=-1), 5, 1.3 * onp.eye(3))),
    "dirichlet.mean": ((A,), lambda a: (a,)),
    "dirichlet.var": ((A,), lambda a: (a,)),
    "dirichlet.entropy": ((A,), lambda a: (a,)),
    "dirichlet.logpdf": ((SHARES[:2], A), lambda x, a: (x, a)),
    "multinomial.logpmf": ((SHARES,), lambda p: (COUNTED, 3, p / np.sum(p))),
    "multinomial.pmf": ((SHARES,), lambda p: (COUNTED, [3, 4], p / np.sum(p))),
    "dirichlet_multinomial.logpmf": ((A,), lambda a: (COUNTED, a, 3)),
    "vonmises_fisher.logpdf": ((DATA[0, :3], 1.7), lambda mu, k: (onp.eye(3), mu / np.linalg.norm(mu), k[()])),
}


def concrete(a):
    return onp.asarray(a) if isinstance(a, (np.ndarray, onp.ndarray)) else a


@pytest.mark.parametrize("name", [n for n in VECTORS if hasattr(scipy.stats, n.partition(".")[0])])
def test_distributions_of_several_variables(name):
    moving, given = VECTORS[name]
    (distribution, method), moving = name.split("."), [onp.asarray(m) for m in moving]
    ours, theirs = (getattr(getattr(m, distribution), method) for m in (stats, scipy.stats))
    plain = [a.tolist() if isinstance(a, onp.ndarray) and not a.ndim else a for a in map(concrete, given(*moving))]
    f = lambda *xs: ours(*given(*xs))
    onp.testing.assert_allclose(traced(f, *moving), theirs(*plain), rtol=1e-9)
    check_grads(f, moving, order=2 if name.startswith("m") else 1)


def test_a_singular_normal_distribution():
    cov = onp.diag([1.3, 0.7, 0.0])
    x = onp.array([[0.3, 0.2, 0.0], [0.3, 0.2, 0.1]])
    f = partial(stats.multivariate_normal.logpdf, mean=None, cov=cov, allow_singular=True)
    wanted = scipy.stats.multivariate_normal.logpdf(x, None, cov, allow_singular=True)
    onp.testing.assert_allclose(traced(f, x), wanted)
    flat = lambda ab: f(np.concatenate([ab, onp.zeros(1)]))
    check_grads(flat, (x[0, :2],))
    with pytest.raises(TypeError):
        grad(lambda c: stats.multivariate_normal.logpdf(x[0], None, c, allow_singular=True))(np.array(cov))


SAMPLES = {
    "zscore": [{}, {"axis": None, "ddof": 1}], "gzscore": [{"axis": 1}], "skew": [{}, {"axis": None, "bias": False}],
    "kurtosis": [{}, {"axis": 1, "bias": False, "fisher": False}], "sem": [{}, {"axis": None}],
    "variation": [{"ddof": 1}],
    "moment": [{"order": 3}, {"order": 1}, {"order": [2, 3], "axis": 1}, {"order": 2, "center": 0.3}],
    "gmean": [{}, {"axis": 1, "weights": [0.2, 0.5, 0.3, 1.0]}],
    "hmean": [{"axis": None}, {"weights": [[0.2, 0.5, 0.3, 1]] * 5}],
    "entropy": [{}, {"axis": 1, "base": 2.0, "qk": onp.array([0.2, 0.5, 0.3, 1.0])}],
    "trim_mean": [{"proportiontocut": 0.2}],
    "pmean": [{"p": 2.5}, {"p": 0, "axis": 1}],
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_summaries_of_samples(name):
    x = onp.abs(DATA) + 0.1
    for options in SAMPLES[name]:
        if name == "moment" and "order" not in inspect.signature(scipy.stats.moment).parameters:  # SciPy 1.11
            options = {"moment" if k == "order" else k: v for k, v in options.items()}
        f = partial(getattr(stats, name), **options)
        onp.testing.assert_allclose(traced(f, x), getattr(scipy.stats, name)(x, **options), rtol=1e-10, atol=1e-14)
        check_grads(f, (x,))
    with pytest.raises(NotDifferentiableError, match="omit"):
        grad(lambda x: np.sum(stats.zscore(x, nan_policy="omit")))(np.array([1.0, onp.nan, 2.0]))


def test_correlation_and_regression():
    x, y = DATA[:, 0], DATA[:, 1]
    for f, theirs in [(stats.pearsonr, scipy.stats.pearsonr), (stats.linregress, scipy.stats.linregress)]:
        for options in [{}, {"alternative": "less"}, {"alternative": "greater"}]:
            whole = lambda x, y, f=f, options=options: np.stack(list(f(x, y, **options)))
            onp.testing.assert_allclose(traced(whole, x, y), list(theirs(x, y, **options)), rtol=1e-9)
        check_grads(whole, (x, y))
    seen = []
    r = grad(lambda x: seen.append(stats.pearsonr(x, y)) or seen[-1].statistic)(np.array(x))
    onp.testing.assert_allclose(r, grad(lambda x: np.corrcoef(x, y)[0, 1])(np.array(x)), atol=1e-14)
    interval = seen[0].confidence_interval(0.9)
    onp.testing.assert_allclose(list(interval), list(scipy.stats.pearsonr(x, y).confidence_interval(0.9)))
    check_grads(lambda x: stats.linregress(x, y).intercept_stderr, (x,), order=1)
    assert stats.pearsonr(np.array(x), y).statistic == pytest.approx(scipy.stats.pearsonr(x, y).statistic, rel=1e-14)


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
MOVES = dict.fromkeys(("bdtr", "bdtrc", "nbdtr", "nbdtrc"), (2,)) | {"pdtr": (1,), "pdtrc": (1,)}


@pytest.mark.parametrize("name", SAID)
def test_a_special_function_said_in_others(name):
    args, f = SAID[name], getattr(special, name)
    moves = MOVES.get(name, range(len(args)))
    run = lambda *xs: f(*[xs[moves.index(i)] if i in moves else a for i, a in enumerate(args)])
    onp.testing.assert_allclose(traced(run, *[args[i] for i in moves]), getattr(scipy.special, name)(*args), rtol=1e-12)
    check_grads(run, [args[i] for i in moves])


REGULAR = {  # points where a formula of the textbooks is 0 / 0
    "spence": (1.0,), "ellipk": (0.0,), "ellipe": (0.0,), "exprel": (0.0,), "boxcox": (2.0, 0.0), "lambertw": (0.0,),
    "boxcox1p": (2.0, 0.0), "inv_boxcox": (2.0, 0.0), "inv_boxcox1p": (2.0, 0.0), "eval_legendre": (3, 0.999999999),
    "zeta": (2.5,), "rgamma": (-2.0,), "beta": (0.5, -0.5), "beip": (0.0,), "berp": (0.0,), "lpmv": (0, 3, 1.0),
    "elliprd": (1.0, 1.0, 1.0), "struve": (0, 0.0), "modstruve": (0, 0.0),
}  # fmt: skip


@pytest.mark.skipif(not hasattr(special, "sph_harm_y"), reason="SciPy before 1.15 has no sph_harm_y")
def test_harmonics_that_are_zero_have_no_slope():
    n, m = onp.arange(3)[:, None], onp.arange(-4, 5)
    total = lambda t: np.sum(special.sph_harm_y(n, m, t, 0.4).real)
    slope = (total(0.3 + 1e-6) - total(0.3 - 1e-6)) / 2e-6
    onp.testing.assert_allclose(grad(total)(0.3), slope, rtol=1e-7)


@pytest.mark.parametrize("name", REGULAR)
def test_gradients_where_formulas_are_singular(name):
    first = [a for a in REGULAR[name] if isinstance(a, int)]
    args = [onp.array(a) for a in REGULAR[name] if isinstance(a, float)]
    check_grads(lambda *xs: np.real(getattr(special, name)(*first, *xs)), args, step=1e-5)


ENDS = {  # a name, arguments, and a derivative in one of them that is 0 times infinity, or of a function known near it
    ("binom", (1.0, 3.0), 0): -1 / 6, ("binom", (1.0, 3.0), 1): 1 / 6, ("binom", (3.0, -1.0), 1): 0.25,
    ("poch", (0.0, 3.0), 0): 2.0, ("poch", (-1.0, 3.0), 0): -1.0,
    ("poch", (-2.0, 1.0), 0): 1.0, ("poch", (0.0, 0.5), 0): onp.pi**0.5, ("beta", (1.0, -2.0), 1): -0.25,
    ("betaln", (1.0, -2.0), 1): 0.5, ("boxcox", (0.0, 2.0), 1): 0.25, ("boxcox1p", (-1.0, 2.0), 1): 0.25,
    ("powm1", (0.0, 2.0), 1): 0.0, ("gammaincinv", (2.0, 0.0), 0): 0.0, ("betaincinv", (2.0, 3.0, 1.0), 1): 0.0,
    ("chdtri", (3.0, 1.0), 0): 0.0, ("betainc", (2.0, 0.0, 0.5), 0): 0.0, ("eval_chebyt", (0.0, -2.0), 1): 0.0,
    ("eval_legendre", (0.0, -1.0), 1): 0.0, ("elliprd", (0.0, 1.0, 1.0), 2): -27 * onp.pi / 32,
    ("lpmv", (0.0, 3.0, -1.0), 2): 6.0, ("voigt_profile", (1.0, 0.0, 0.5), 0): -16 / (25 * onp.pi),
    ("voigt_profile", (1.0, 0.0, 0.5), 1): 0.0, ("pseudo_huber", (0.0, 0.0), 0): 0.0,
    ("pseudo_huber", (0.0, 0.0), 1): 0.0, ("poch", (0.0, 0.0), 1): 0.0, ("poch", (-2.0, 1.0), 1): 0.0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "at", "place"), ENDS)
def test_derivatives_at_the_ends_of_formulas(name, at, place):
    f = lambda x: getattr(special, name)(*at[:place], x, *at[place + 1 :])
    for derivative in (grad(f), jit(grad(f))):
        onp.testing.assert_allclose(derivative(np.array(at[place])), ENDS[name, at, place], rtol=1e-10, atol=1e-14)


@pytest.mark.filterwarnings("ignore")  # SciPy says that it takes the integer part
@pytest.mark.parametrize("name", ["pdtr", "pdtrc", "bdtr", "bdtrc", "nbdtr", "nbdtrc"])
def test_a_count_below_zero_has_scipys_value(name):
    k, others = onp.array([-1.0, -0.5, 0.0, 2.0]), () if name.startswith("p") else (4,)
    f = lambda x: getattr(special, name)(k, *others, x)
    onp.testing.assert_allclose(traced(f, onp.array(0.4)), getattr(scipy.special, name)(k, *others, 0.4), rtol=1e-12)


def test_second_derivatives_of_powers_of_zero():
    assert float(grad(grad(lambda y: special.powm1(0.0, y)))(1.0)) == 0
    assert float(grad(grad(lambda x: special.powm1(x, 2.0)))(0.0)) == 2


@pytest.mark.filterwarnings("ignore")  # SciPy says that it takes the integer part
@pytest.mark.parametrize("name", ["kn", "yn", "expn", "spherical_jn", "bdtr", "bdtrc", "nbdtr", "nbdtrc"])
def test_derivatives_are_those_of_the_integer_part_that_scipy_takes_of_an_order(name):
    orders, x = (1.5, 3.7) if "bdtr" in name else (2.5,), onp.array([0.3, 0.6])
    f = lambda x: getattr(special, name)(*orders, x)
    onp.testing.assert_allclose(traced(f, x), getattr(scipy.special, name)(*orders, x), rtol=1e-12)
    check_grads(f, (x,))


def test_gradients_of_the_parameters_of_incomplete_functions():
    """Values of mpmath, to 30 digits: far from the mode on either side, and parameters near 0."""
    for (a, x), wanted in {
        (1e-5, 0.1): -1.822905296857436,
        (0.01, 1.0): -0.22385772637353367,
        (2.5, 9.0): -0.0047416795481938814,
        (3000.0, 2950.0): -0.0048196320143341252,
    }.items():
        got = grad(lambda a, x=x: special.gammainc(a, x))(a)
        assert float(got) == pytest.approx(wanted, rel=1e-11)
        assert float(grad(lambda a, x=x: special.gammaincc(a, x))(a)) == -float(got)
    for (a, b, x), wanted in {
        (0.3, 60.0, 0.01): -0.56993027668633241,
        (30.0, 4.5, 0.5): -8.8851013919345649e-7,
    }.items():
        assert float(grad(lambda a, b=b, x=x: special.betainc(a, b, x))(a)) == pytest.approx(wanted, rel=1e-11)
        assert float(grad(lambda a, b=b, x=x: special.betainc(b, a, 1 - x))(a)) == pytest.approx(-wanted, rel=1e-11)
    at_ends = [
        special.gammainc(np.array(2.0), onp.array([0.0, onp.inf])),
        special.stdtr(np.array(2.0), onp.array([0.0])),
    ]
    assert [onp.isfinite(onp.asarray(v)).all() for v in at_ends]
    ends = grad(lambda a: np.sum(special.gammainc(a, onp.array([0.0, onp.inf]))) + special.stdtr(a, 0.0))(2.0)
    assert float(ends) == 0
    check_grads(lambda a: special.betainc(a, 1.3, 0.4), (onp.array(0.7),), order=3, modes=("rev",))


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
    check_grads(lambda z: special.spherical_jn(0, z), (onp.array([0.2, 0.7]),))
    assert float(grad(lambda z: special.spherical_jn(0, z))(0.0)) == 0
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
    assert isinstance(got.x, onp.ndarray)
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
