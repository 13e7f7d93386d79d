"""jit of functions that draw random numbers, and of others that hardly ever go one way twice."""

import copy
import math
import pickle
import uuid

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.rows.state import state

ComplexWarning = (numpy.exceptions if hasattr(numpy, "exceptions") else numpy).ComplexWarning
pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


@pytest.fixture(autouse=True)
def stream():
    """NumPy's own stream, from a beginning, and as it was for whoever comes after."""
    before = numpy.random.get_state()
    numpy.random.seed(0)
    yield
    numpy.random.set_state(before)


def signs(n):
    found = []
    k = 0
    while k < n:
        found.append("+" if np.random.rand() < 0.5 else "-")
        k += 1
    return "".join(found)


def test_a_function_whose_way_is_drawn_is_not_compiled_way_by_way():
    f = jit(signs)
    expected = [signs(20) for _ in range(5)]
    numpy.random.seed(0)
    assert [f(20) for _ in range(5)] == expected
    assert f.cache_info()["paths"] == 0


def test_a_few_branches_on_draws_are_paths():
    f = jit(lambda x: x + 1 if np.random.rand() < 0.5 else x - 1)
    for _ in range(20):
        f(np.zeros(3))
    assert f.cache_info()["paths"] == 2


def begun_anew(n):
    np.random.seed(3)
    return signs(n)


def of_a_generator(n):
    rng = np.random.default_rng(3)
    return "".join("+" if rng.random() < 0.5 else "-" for _ in range(n))


@pytest.mark.parametrize("function", [begun_anew, of_a_generator])
def test_streams_that_the_function_begins_lead_one_way(function):
    f = jit(function)
    assert [f(8) for _ in range(3)] == [function(8)] * 3
    assert f.cache_info()["captures"] == 1


def bits(x):
    s = 0.0
    k = 0
    while k < len(x):
        s, k = (s + x[k] if x[k] > 0.5 else s * 0.5), k + 1
    return [s]


def test_ways_that_no_two_calls_share_are_compiled_seldom():
    f, r = jit(bits, compiler="numpy"), numpy.random.default_rng(0)
    for _ in range(40):
        x = r.random(30)
        numpy.testing.assert_allclose(f(np.array(x))[0], bits(x)[0])
    assert f.cache_info()["captures"] <= 6


def test_ways_that_calls_share_are_compiled(monkeypatch):
    monkeypatch.setattr("minnp.core.jit.jit.MANY_PATHS", 6)  # of which a machine that is busy finds none worth it
    f, given = jit(bits, compiler="numpy"), [numpy.random.default_rng(k).random(30) for k in range(5)]
    for _ in range(20):
        for x in given:
            f(np.array(x))
    assert f.cache_info()["captures"] == f.cache_info()["paths"] == 5


def decays(x, s):
    return x * math.exp(-s) + np.zeros(len(x))


def test_numbers_that_python_reads_and_no_two_calls_share_are_compiled_seldom():
    f, x = jit(decays), np.arange(3.0)
    for k in range(40):
        numpy.testing.assert_allclose(f(x, 0.1 * k), decays(x, 0.1 * k), rtol=1e-15)
    assert f.cache_info()["captures"] <= 6


def test_numbers_that_python_reads_and_calls_share_are_compiled():
    f, x = jit(decays), np.arange(3.0)
    for _ in range(20):
        for k in range(5):
            numpy.testing.assert_allclose(f(x, 0.1 * k), decays(x, 0.1 * k), rtol=1e-15)
    assert f.cache_info()["captures"] == f.cache_info()["paths"] == 5


def test_what_runs_after_the_end_of_a_capture_takes_the_fast_paths():
    seen = []

    def f(x):
        seen.append(state.busy)
        k = 0
        while k < 100 and x[k % 3] < 2:
            k = k + 1 if k % 2 == 0 else int(str(k + 1))
        seen.append(state.busy)
        return k

    before = state.busy
    assert jit(f)(np.ones(3)) == 100
    assert seen[0] > before
    assert seen[-1] == before == state.busy
    assert any("what its arrays hold" in r["why"] for r in minnp.report())


def test_a_capture_that_ended_is_not_made_again_for_another_stream():
    def f(rng, x):
        k = 0
        while k < 30:
            x[rng.integers(3)] += 1.0 if rng.random() < 0.5 else -1.0
            x, k = x[::-1], k + 1
        return list(x)

    g = jit(f)
    for seed in range(4):
        rng, other = np.random.default_rng(seed), np.random.default_rng(seed)
        assert g(rng, np.zeros(3)) == f(other, np.zeros(3))
    assert len(g.ended) == 1


def the_same_again(np, g):
    was = g.bit_generator.state
    first = g.random()
    g.bit_generator.state = was
    return first - 2 * g.random()


def the_same_again_of_numpys_own(np, g):
    was = np.random.get_state()
    np.random.seed(5)
    first = np.random.rand()
    np.random.set_state(was)
    return first - 2 * np.random.rand()


def seeded(np, g):
    old = OLD[np]
    old.seed(7)
    return old.rand()


OLD = {m: m.random.RandomState(4) for m in (np, numpy)}


@pytest.mark.parametrize(
    "draw",
    [
        the_same_again,
        the_same_again_of_numpys_own,
        seeded,
        lambda np, g: np.random.rand() + g.bit_generator.state["state"]["state"] % 100,
        lambda np, g: copy.deepcopy(g).random() - g.random(),
        lambda np, g: pickle.loads(pickle.dumps(OLD[np])).rand() + OLD[np].rand(),
        lambda np, g: np.random.rand() + np.frombuffer(np.random.bytes(2), np.uint8)[0],
        lambda np, g: np.random.mtrand._rand.rand() + np.random.rand(),
        lambda np, g: g.bit_generator.random_raw() % 7,
        lambda np, g: g.spawn(1)[0].random(),
        lambda np, g: np.random.Generator(g.bit_generator.jumped()).random(),
        lambda np, g: np.random.Generator(g.bit_generator.advance(3)).random(),
        lambda np, g: g.uniform(-1.0, [1.0, 2.0]),
        lambda np, g: np.random.uniform([0.0, 5.0], (1.0, 6.0)),
    ],
)
def test_every_source_of_random_numbers_goes_on(draw):
    ours, theirs = np.random.default_rng(3), numpy.random.default_rng(3)
    expected = [numpy.ones(2) * draw(numpy, theirs) for _ in range(5)] + [theirs.random(), numpy.random.rand()]
    numpy.random.seed(0)
    f = jit(lambda x: x * draw(np, ours))
    found = [f(np.ones(2)) for _ in range(5)] + [ours.random(), np.random.rand()]
    for a, b in zip(found, expected):
        numpy.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "draw",
    [
        lambda stats, g: stats.norm.rvs(random_state=g),
        lambda stats, g: stats.gamma.rvs(2.0, size=2, random_state=g),
        lambda stats, g: stats.norm(1.0, 2.0).rvs(),
        lambda stats, g: stats.multivariate_normal.rvs([0.0, 1.0]),
        lambda stats, g: stats.gaussian_kde([1.0, 2.0, 3.0, 5.0]).resample(2, seed=g)[0],
    ],
)
def test_draws_of_distributions_go_on(draw):
    theirs, ours = pytest.importorskip("scipy.stats"), pytest.importorskip("minnp.scipy.stats")
    streams = numpy.random.default_rng(3), np.random.default_rng(3)
    expected = [numpy.ones(2) * draw(theirs, streams[0]) for _ in range(5)]
    numpy.random.seed(0)
    f = jit(lambda x: x * draw(ours, streams[1]))
    for a in expected:
        numpy.testing.assert_array_equal(f(np.ones(2)), a)


def test_draws_of_other_libraries_go_on():
    torch = pytest.importorskip("torch")
    f, g = jit(lambda x: x + torch.rand(2).numpy()), jit(lambda x: (x, uuid.uuid4().hex))
    assert len({float(f(np.zeros(2))[0]) for _ in range(4)}) == len({g(np.zeros(2))[1] for _ in range(4)}) == 4


def test_old_streams_choose_of_one_axis():
    f = jit(lambda x: np.random.choice(x))
    with pytest.raises(ValueError, match="1-dimensional"):
        f(np.ones((2, 2)))


@pytest.mark.parametrize("name", ["normal", "laplace", "exponential", "uniform"])
def test_parameters_that_are_complex_are_refused_as_by_numpy(name):
    def draw(mean, seed):
        return getattr(np.random.default_rng(seed), name)(mean)

    for mean in (1 + 1j, numpy.array([1 + 1j, 2.0])):
        with pytest.raises(TypeError) as ours:
            jit(draw)(mean, 1)
        with pytest.raises(TypeError) as theirs:
            getattr(numpy.random.default_rng(1), name)(mean)
        assert str(ours.value) == str(theirs.value)
    with pytest.warns(ComplexWarning):
        found = jit(draw)(numpy.complex128(1 + 1j), 1)
    with pytest.warns(ComplexWarning):
        assert found == getattr(numpy.random.default_rng(1), name)(numpy.complex128(1 + 1j))
