"""numpy.random's streams, bit for bit, as our arrays; gradients through what a draw does to its arguments."""

import pickle

import numpy
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp, vmap

DRAWS = {
    "normal": (1.0, 2.0, (2, 3)),
    "uniform": (1.0, 2.0, 4),
    "laplace": (1.0, 2.0, 4),
    "logistic": (1.0, 2.0, 4),
    "gumbel": (1.0, 2.0, 4),
    "exponential": (2.0, 4),
    "rayleigh": (2.0, 4),
    "permutation": (7,),
    "choice": (5, 3),
    "standard_normal": (4,),
    "multinomial": (10, [0.2, 0.8], 3),
    "dirichlet": ([1.0, 2.0], 3),
}
# (ours, NumPy's), from the same seed
SOURCES = {
    "functions": lambda seed: (np.random.seed(seed), np.random)[1],
    "RandomState": lambda seed: np.random.RandomState(seed),
    "Generator": lambda seed: np.random.default_rng(seed),
}
REAL = {
    "functions": lambda seed: numpy.random.RandomState(seed),
    "RandomState": lambda seed: numpy.random.RandomState(seed),
    "Generator": lambda seed: numpy.random.default_rng(seed),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", DRAWS)
def test_the_same_seed_gives_numpys_stream(source, name):
    ours = getattr(SOURCES[source](3), name)(*DRAWS[name])
    theirs = getattr(REAL[source](3), name)(*DRAWS[name])
    assert type(ours) is np.ndarray
    assert ours.dtype == theirs.dtype
    assert numpy.array_equal(ours, theirs)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["normal", "laplace", "logistic", "gumbel", "uniform"])
def test_draws_are_differentiable_in_their_parameters(source, name):
    a, b = np.array([1.0, 2.0, 3.0]), 5.0

    def draw(a, b, real=False):
        return getattr((REAL if real else SOURCES)[source](3), name)(a, b)

    seen = []
    da, db = grad(lambda a, b: np.sum(seen.append(draw(a, b)) or seen[-1]), argnum=[0, 1])(a, b)
    real = lambda da, db: draw(a.asnumpy() + da, b + db, real=True).sum()
    assert numpy.allclose(seen[-1], draw(a.asnumpy(), b, real=True))
    eps = 1e-6
    assert numpy.isclose(float(da.sum()), (real(eps, 0) - real(-eps, 0)) / (2 * eps))
    assert numpy.isclose(float(db), (real(0, eps) - real(0, -eps)) / (2 * eps))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["exponential", "rayleigh"])
def test_draws_are_differentiable_in_their_scale(source, name):
    gradient = grad(lambda s: np.sum(getattr(SOURCES[source](3), name)(s, 4)))(2.0)
    assert numpy.isclose(float(gradient), getattr(REAL[source](3), name)(1.0, 4).sum())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_gradients_follow_the_elements_a_draw_selects(source, shape):
    x = np.arange(float(numpy.prod(shape))).reshape(shape)
    weights = np.arange(1.0, 1 + x.size).reshape(shape)

    def shuffled(x):
        x = 1 * x
        SOURCES[source](3).shuffle(x)
        return x

    for select in (lambda x: SOURCES[source](3).permutation(x), shuffled):
        order = numpy.asarray(select(x)).reshape(5, -1)[:, 0].astype(int) // (x.size // 5)
        expected = numpy.zeros(shape)
        expected[order] = weights
        assert numpy.array_equal(grad(lambda x, select=select: np.sum(weights * select(x)))(x), expected)


def test_a_generator_set_up_anew_draws_anew():
    ours, theirs = np.random.default_rng(0), numpy.random.default_rng(0)
    for seed in (1, 2):
        ours.__init__(np.random.PCG64(seed))
        theirs.__init__(numpy.random.PCG64(seed))
        assert numpy.array_equal(ours.permutation(9), theirs.permutation(9)) and ours.choice(99) == theirs.choice(99)


def test_choice_of_a_traced_array_is_numpys_choice():
    x = np.arange(6.0)
    p = numpy.arange(1, 7) / 21
    picked = grad(lambda x: np.sum(np.random.default_rng(0).choice(x, 3, replace=False, p=p)))(x)
    assert numpy.array_equal(numpy.flatnonzero(picked), sorted(numpy.random.default_rng(0).choice(6, 3, False, p)))


def test_shuffle_writes_in_place_and_through_views():
    x = np.arange(10)
    np.random.RandomState(0).shuffle(x[::2])
    y = numpy.arange(10)
    numpy.random.RandomState(0).shuffle(y[::2])
    assert numpy.array_equal(x, y)


def test_generators_are_numpys_own_kind_and_survive_pickling():
    for ours, real in ((np.random.default_rng(1), numpy.random.default_rng(1)),) + (
        (np.random.RandomState(1), numpy.random.RandomState(1)),
    ):
        assert isinstance(ours, type(real))
        copy = pickle.loads(pickle.dumps(ours))
        assert type(copy) is type(ours)
        assert numpy.array_equal(copy.normal(size=3), real.normal(size=3))
    rng = np.random.default_rng(np.array([1, 2]))
    assert np.random.default_rng(rng) is rng
    state = np.random.get_state()
    first = np.random.rand()
    np.random.set_state(state)
    assert np.random.rand() == first


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence"])
def test_our_arrays_are_seeds(name):
    ours, theirs = getattr(np.random, name), getattr(numpy.random, name)
    a, b = ours(np.array([1, 2, 3])), theirs(numpy.array([1, 2, 3]))
    if name == "SeedSequence":
        assert (a.generate_state(4) == b.generate_state(4)).all()
        assert [(s.generate_state(2) == t.generate_state(2)).all() for s, t in zip(a.spawn(2), b.spawn(2))] == [
            True
        ] * 2
        c = ours(entropy=5, spawn_key=(1,))
        assert (c.generate_state(2) == theirs(5, spawn_key=(1,)).generate_state(2)).all()
    else:
        assert (np.random.Generator(a).random(3) == numpy.random.Generator(b).random(3)).all()
        assert repr(np.random.Generator(a)).startswith(f"Generator({name})")
        again = pickle.loads(pickle.dumps(a))
        assert again.random_raw() == b.random_raw()
        assert isinstance(again, ours)
        assert not isinstance(again, np.random.MT19937 if name != "MT19937" else np.random.PCG64)
    assert isinstance(b, ours) and isinstance(a, theirs) and issubclass(ours, theirs)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("args", [(3,), ([4, 5],), (["a", "b"],), (3, ()), (3, None, True, [0.1, 0.2, 0.7])])
def test_one_choice_has_numpys_type(source, args):
    ours, theirs = SOURCES[source](0).choice(*args), REAL[source](0).choice(*args)
    assert (repr(ours), type(ours).__name__) == (repr(theirs), type(theirs).__name__)


def test_a_function_of_numpy_random_is_pickled():
    assert pickle.loads(pickle.dumps(np.random.rand))(2).shape == (2,)


def test_what_numpy_made_is_an_instance_of_our_classes() -> None:
    """As scikit-learn's check_random_state asks, of NumPy's own stream too."""
    assert isinstance(np.random.mtrand._rand, np.random.RandomState)
    assert isinstance(numpy.random.default_rng(0), np.random.Generator)
    assert type(np.random.default_rng(numpy.random.default_rng(0))) is np.random.Generator

    class Mine(np.random.RandomState):
        pass

    assert isinstance(Mine(0), Mine) and isinstance(Mine(0), numpy.random.RandomState)
    assert not isinstance(numpy.random.RandomState(0), Mine) and not isinstance(0, np.random.Generator)


FAMILIES = {
    "normal": lambda r, s: r.normal(0.0, s),
    "exponential": lambda r, s: r.exponential(s),
    "uniform": lambda r, s: r.uniform(0.0, s),
    "gumbel": lambda r, s: r.gumbel(1.0, s[0]),
}


def differentiated(f):
    return lambda stream, s: grad(lambda s: f(stream, s).sum())(s)


def forward(f):
    return lambda stream, s: jvp(lambda s: f(stream, s), (s,), (s,))[1]


@pytest.mark.parametrize("make", [numpy.random.RandomState, numpy.random.default_rng])
@pytest.mark.parametrize("transform", [jit, differentiated, forward])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_width_that_numpy_refuses_is_refused_and_takes_nothing_from_the_stream(name, transform, make):
    f, outcomes = FAMILIES[name], []
    ours = np.random.default_rng if make is numpy.random.default_rng else np.random.RandomState
    for g, stream in ((f, make(0)), (transform(f), ours(0))):
        outcomes.append([])
        for s in ([0.2, 0.3], [0.5, -0.1], [0.1, 1.0], [0.1, numpy.inf], [-0.1, 1.0], [0.4, 0.4], [1.0, numpy.nan]):
            try:
                drawn = type(g(stream, np.array(s))).__name__
            except (ValueError, OverflowError) as error:
                drawn = str(error)
            at = stream.get_state(legacy=False) if make is numpy.random.RandomState else stream.bit_generator.state
            outcomes[-1].append((drawn if " " in drawn else "", repr(at)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("transform", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, x: rng.gamma(x + 1) + rng.normal(),
        lambda rng, x: rng.poisson(x + 1) * x,
        lambda rng, x: rng.binomial(5, x / 20),
        lambda rng, x: rng.beta(x + 1, 2.0),
        lambda rng, x: rng.dirichlet(x + 1),
        lambda rng, x: rng.multinomial(5, x / x.sum()),
        lambda rng, x: rng.multivariate_normal(x, np.eye(3)),
        lambda rng, x: rng.choice(3, 2, p=x / x.sum()),
        lambda rng, x: rng.normal(x, 2.0) + rng.exponential(x),
        lambda rng, x: rng.permuted(x) if hasattr(rng, "permuted") else rng.permutation(x),
    ],
)
def test_an_example_draws_from_a_stream_that_it_makes_as_if_alone(draw, make, transform):
    def f(x):
        return draw(make(2), x)

    x = np.arange(1.0, 13.0).reshape(4, 3)
    batched = transform(f)
    for _ in range(2):  # recorded, and as it was recorded
        assert numpy.array_equal(batched(x), numpy.stack([f(row) for row in x]))


def test_an_example_of_scipy_draws_from_a_stream_that_it_makes_as_if_alone():
    stats = pytest.importorskip("minnp.scipy.stats")
    for make in (numpy.random.default_rng, np.random.RandomState):
        f = lambda x, make=make: stats.norm.rvs(x, random_state=make(2))
        assert numpy.array_equal(vmap(f)(np.arange(3.0)), [f(0.0), f(1.0), f(2.0)])
