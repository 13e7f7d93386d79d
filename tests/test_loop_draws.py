"""Loops that draw random numbers: compiled, with NumPy's streams in NumPy's order."""

import math
import warnings
import weakref

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine
from minnp.core.loops import compiled, draws, lowering, runtime, source

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


@pytest.fixture(autouse=True)
def stream(monkeypatch):
    """NumPy's own stream, as it was for whoever comes after. No loop is Python's because that is faster."""
    monkeypatch.setattr("minnp.core.loops.source.Pace.SAMPLES", 1 << 30)
    before = numpy.random.get_state()
    yield
    numpy.random.set_state(before)


def state(x):
    """What a stream's next numbers depend on."""
    if x is None:
        return [str(part) for part in numpy.random.get_state()]
    return str(x.get_state(legacy=False) if hasattr(x, "get_state") else x.bit_generator.state)


def fresh(kind, seed):
    return {
        "numpy's own": lambda: numpy.random.seed(seed),
        "Generator": lambda: np.random.default_rng(seed),
        "numpy.Generator": lambda: numpy.random.default_rng(seed),
        "MT19937": lambda: np.random.Generator(np.random.MT19937(seed)),
        "SFC64": lambda: np.random.Generator(np.random.SFC64(seed)),
        "RandomState": lambda: np.random.RandomState(seed),
        "numpy.RandomState": lambda: numpy.random.RandomState(seed),
    }[kind]()


def outcome(f, args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


def alike(x, y):
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(alike, x, y))
    if isinstance(x, numpy.ndarray):
        return isinstance(y, numpy.ndarray) and x.dtype == y.dtype and numpy.array_equal(x, y, equal_nan=True)
    return type(x) is type(y) and (x == y or (x != x and y != y))


def check(f, kind="numpy's own", *args, compiled=True, g=None):
    """f(stream, *args), compiled, is what it is in Python, and so is the stream behind it; or g, which was compiled."""
    copied = lambda: [np.array(a) if isinstance(a, numpy.ndarray) else a for a in args]
    g, before = g or jit(f), runtime.RAN[0]
    for seed in range(4):
        stream, given = fresh(kind, seed), copied()
        expected, behind = outcome(f, (stream, *given)), state(stream)
        stream, mine = fresh(kind, seed), copied()
        found = outcome(g, (stream, *mine))
        assert alike(expected, found), (expected, found)
        assert state(stream) == behind
        assert all(map(alike, given, mine))
    assert runtime.RAN[0] > before or not compiled


NAMES = {
    "rand": (),
    "random": (),
    "random_sample": (),
    "randn": (),
    "standard_normal": (),
    "standard_exponential": (),
    "standard_cauchy": (),
    "uniform": (-1.5, 2),
    "normal": (0.5, 2.0),
    "laplace": (1,),
    "logistic": (),
    "gumbel": (0.5,),
    "exponential": (3,),
    "rayleigh": (),
    "weibull": (1.5,),
    "pareto": (2.0,),
    "power": (2.0,),
    "zipf": (2.5,),
    "chisquare": (3,),
    "standard_t": (4,),
    "geometric": (0.3,),
    "logseries": (0.4,),
    "binomial": (7, 0.4),
    "negative_binomial": (3, 0.5),
    "randint": (3, 17),
    "integers": (-4, 17),
    "lognormal": (),
    "gamma": (2.0, 3.0),
    "standard_gamma": (0.5,),
    "beta": (2.0, 0.5),
    "f": (3, 4),
    "triangular": (-1, 0.5, 2),
    "vonmises": (0.5, 1.0),
    "wald": (1.0, 2.0),
    "poisson": (2.5,),
}


CLASSES = {
    "numpy's own": numpy.random.RandomState,
    "RandomState": numpy.random.RandomState,
    "Generator": numpy.random.Generator,
    "MT19937": numpy.random.Generator,
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=[pytest.mark.long] * (kind in ("RandomState", "MT19937")))
        for kind, cls in CLASSES.items()
        for name in NAMES
        if hasattr(cls, name)
    ],
)
def test_every_kind_of_draw_is_numpys(kind, name):
    args, owner = NAMES[name], "np.random" if kind == "numpy's own" else "stream"
    source = f"""def f(stream, n):
    out, last = np.zeros(n), 0
    for i in range(n):
        last = {owner}.{name}({", ".join(map(str, args))})
        out[i] = last
    return out, last
"""
    check(defined(source), kind, 40)


def defined(source):
    """The function of a source that inspect finds."""
    import linecache

    file = f"<draws {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = {"np": np, "math": math}
    exec(compile(source, file, "exec"), names)
    return names["f"]


def test_streams_are_found_wherever_they_lie():
    class Walk:
        def __init__(self, rng):
            self.rng = rng

        def step(self):
            return self.rng.random() - 0.5

        def run(self, n):
            x = 0.0
            for _ in range(n):
                x += self.step() + self.rng.normal()
            return x

    def in_attribute(stream, n):
        walk = Walk(stream)
        return walk.run(n)

    def in_closure(stream, n):
        def one():
            return stream.random()

        x = 0.0
        for _ in range(n):
            x += one()
        return x

    for kind in ("Generator", "numpy.Generator", "RandomState", "numpy.RandomState"):
        check(in_attribute, kind, 30)
        check(in_closure, kind, 30)


def test_two_streams_on_the_same_bits():
    def f(stream, n):
        other, x = np.random.Generator(stream.bit_generator), 0.0
        for _ in range(n):
            x = 0.5 * x + stream.random() - other.random() + other.standard_normal()
        return x

    check(f, "Generator", 30)


def conditions(stream, n):
    s = 0.0
    for i in range(n):
        if np.random.rand() < 0.3 or np.random.rand() < 0.2:
            s += 1.0
        elif np.random.rand() < 0.5 and np.random.rand() < 0.5 < np.random.rand():
            s -= np.random.rand() if i % 3 else np.random.exponential()
    return s


def places(stream, n):
    h = np.zeros((4, 5), dtype=int)
    for _ in range(n):
        h[np.random.randint(4), np.random.randint(0, 5)] += np.random.randint(3)
        h[np.random.randint(4)] += (np.random.randint(100) + 3) & 7
    return h


def whiles(stream, n):
    k = m = 0
    while np.random.rand() < 0.999 and k < n:
        k += 1
        while np.random.rand() > 0.3:
            m += 1
            if np.random.rand() < 0.1:
                break
        else:
            m += 10
    return k, m


def generated(stream, n):
    s = 0.0
    for _ in range(n):
        s += sum(np.random.rand() for _ in range(3)) + min(np.random.rand(), np.random.rand())
        if any(np.random.rand() < 0.2 for _ in range(4)):
            s += max(np.random.rand(), 0.5)
    return s


def shuffled(stream, n):
    a = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = np.random.randint(0, i + 1)
        a[i], a[j] = a[j], a[i]
    return a


def found_early(stream, n):
    for i in range(n):
        if np.random.rand() < 0.02:
            return i, np.random.rand()
    return -1, 0.0


def listed(stream, n):
    kept = []
    for _ in range(n):
        x = np.random.normal()
        if x > 0:
            kept.append(x)
    return tuple(kept)


def whole_rows(stream, n):
    a = np.zeros((n, 4))
    for i in range(n):
        a[i] = np.random.rand() * np.arange(4) + np.random.randint(9)
    return a


def parameters(stream, n):
    x, k = 0.0, 3
    a = np.linspace(0.1, 0.9, n)
    for i in range(n):
        x = np.random.normal(scale=0.5 + a[i], loc=x)
        k = np.random.randint(1, high=k + 4) + np.random.binomial(k, a[i])
    return x, k


@pytest.mark.parametrize(
    "f", [conditions, places, whiles, generated, shuffled, found_early, listed, whole_rows, parameters]
)
def test_draws_come_once_and_in_order(f):
    check(f, "numpy's own", 60)


def index_error(stream, n):
    a = np.zeros(n)
    for _ in range(2 * n):
        a[np.random.randint(n + 1)] += np.random.standard_normal()
    return a


def caught(stream, n):
    a, s = np.zeros(n), 0.0
    try:
        for _ in range(2 * n):
            s += np.random.rand()
            a[np.random.randint(n + 1)] += np.random.standard_normal()
    except IndexError:
        s = -s
    return a, s


def divided(stream, n):
    s = 0.0
    for _ in range(n):
        s += np.random.standard_normal() / np.random.randint(9)
    return s


def refused(stream, n):
    a = np.zeros(n)
    for i in range(n):
        a[i] = np.random.normal(0.0, 20.0 - i)
    return a


def too_large(stream, n):
    x = 1
    for _ in range(n):
        x = x * (2 + np.random.randint(3))
    return x


@pytest.mark.parametrize("f", [index_error, caught, divided, refused, too_large])
def test_the_stream_is_where_python_leaves_it_if_the_loop_fails(f):
    check(f, "numpy's own", 80, compiled=False)


def test_numpys_warnings_come_once_and_draw_nothing():
    def f(stream, a):
        for i in range(len(a)):
            a[i] = np.log(a[i] - stream.random()) + stream.normal()
        return a

    g = jit(f)
    for seed in range(3):
        counts, streams, arrays = [], [], []
        for run in (f, g):
            rng, a = np.random.default_rng(seed), np.linspace(0.0, 1.0, 30)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                run(rng, a)
            counts.append({str(w.message) for w in seen})
            streams.append(state(rng))
            arrays.append(a)
        assert counts[0] == counts[1]
        assert streams[0] == streams[1]
        numpy.testing.assert_allclose(*arrays, rtol=1e-14)


def test_a_recursive_function_draws():
    def f(stream, n):
        return 0 if n == 0 else f(stream, n - 1) + (1 if stream.random() < 0.5 else stream.integers(5))

    g = jit(f)
    for seed in range(3):
        a, b = (np.random.default_rng(seed) for _ in range(2))
        assert f(a, 30) == g(b, 30)
        assert state(a) == state(b)


def test_draws_are_constants_of_a_gradient():
    def f(x, rng):
        s = 0.0
        for i in range(len(x)):
            s = s + x[i] ** 2 * rng.random() if rng.random() < 0.5 else s * 0.9 + x[i]
        return s

    x = np.linspace(0.5, 2.0, 12)
    expected = grad(f)(x, np.random.default_rng(5))
    for g in (jit(grad(f)), grad(jit(f))):
        for _ in range(3):
            rng = np.random.default_rng(5)
            numpy.testing.assert_allclose(g(x, rng), expected, rtol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("kind", CLASSES)
def test_arrays_of_draws_are_numpys(kind):
    """Every method, in one loop: one gives numbers to the next."""
    owner, cls = "np.random" if kind == "numpy's own" else "stream", CLASSES[kind]
    lines = []
    for name, args in NAMES.items():
        size = "n, 3" if name in ("rand", "randn") else ", ".join([*map(str, args), "size=(n, i % 3 + 1)"])
        if hasattr(cls, name):
            lines += [
                f"        {name} = {owner}.{name}({size})",
                f"        out[i % 3] += {name}[0, i % 3] + {name}[-1, 0]",
            ]
    calls = (
        "normal(0.5, out[0] * 0 + 2, n)",
        "normal(size=n)",
        "exponential(size=(n, 1, 2))",
        "uniform(0.5, size=n)",
    )
    for k, call in enumerate(calls):
        lines += [
            f"        x{k} = {owner}.{call}",
            f"        x{k}[:] = x{k} * 2",
            f"        out[i % 3] -= np.max(x{k})",
        ]
    source = "def f(stream, n):\n    out = np.zeros(3)\n    for i in range(20):\n"
    check(defined(source + "\n".join(lines) + "\n    return out, x2\n"), kind, 4)


SCALES = (0.0, -0.0, -1.0, math.nan, math.inf)
SCALED = [(call, s, 1) for call in ("normal(0.0, s, 2)", "exponential(s, 2)", "uniform(0.0, s, 2)") for s in SCALES]


@pytest.mark.parametrize("call, s, n", [*SCALED, *[("normal(0.0, 1.0, n)", 1.0, n) for n in (1, 0, -1)]])
def test_what_numpy_refuses_and_takes_of_scales(call, s, n):
    source = f"""def f(stream, a, s, n):
    for k in range(30):
        a[k % 2] = stream.{call}[0] + stream.{call.replace(", 2)", ")").replace(", n)", ")")}
    return a
"""
    for kind in ("Generator", "RandomState"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            check(defined(source), kind, np.zeros(2), s, n, compiled=False)


def walk(p, stream):
    """A path with a drift and a volatility, which may end early, or be struck."""
    x, hits = 1.0, 0
    for _ in range(60):
        x = x + p[0] * x * 0.01 + p[1] * x * stream.normal(0.0, 0.1)
        if stream.uniform(-1.0, p[2]) < -0.9:
            x *= 1 - 0.1 * stream.exponential(p[1])
            hits += stream.poisson(2.0)
        if hits > 6:
            break
    return x * hits


def scaled(p, stream):
    """What is drawn around a place, or as large as a scale, of which there are derivatives."""
    total = p[0] * 0
    for k in range(30):
        total = total + stream.normal(p[0] * k, p[1]) ** 2 + stream.exponential(p[2]) * stream.uniform(p[1], p[2])
    return total


def filled(p, stream):
    """What is drawn goes to an array, in place."""
    a = p * np.ones(3)
    for k in range(40):
        a[k % 3] = a[k % 3] * 0.9 + a[(k + 1) % 3] * stream.standard_normal()
    return a[0] * a[1] - a[2]


def arrays(p, stream):
    """Rows of numbers drawn at once, around a place and as large as a scale."""
    x, last = np.ones((4, 3)), np.zeros((4, 3))
    for k in range(20):
        x = x + p[0] * x * 0.01 + p[1] * x * stream.normal(0.0, 0.1, (4, 3)) + stream.normal(p[2], p[1], 3)
        last[k % 4] += x[k % 3] * stream.uniform(p[0], 1.0, 3) * stream.poisson(2.0, 3)
    return np.mean(x**2) + np.sum(last)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Generator", "RandomState", "SFC64"])
@pytest.mark.parametrize("f", [walk, scaled, filled, arrays], ids=lambda f: f.__name__)
def test_loops_that_draw_are_differentiated(f, kind):
    p, v = np.array([0.3, 0.8, 1.4]), np.array([1.0, -2.0, 0.5])
    along = lambda f: lambda p, stream: minnp.jvp(lambda p: f(p, stream), (p,), (v,))[1]
    for transform in (grad, along, lambda f: along(grad(f))):
        stream = fresh(kind, 3)
        expected, after = transform(f)(p, stream), state(stream)
        for g in (jit(transform(f)), transform(jit(f))):
            runtime.RAN[0] = 0
            for _ in range(3):
                stream = fresh(kind, 3)
                numpy.testing.assert_allclose(g(p, stream), expected, rtol=1e-11)
                assert state(stream) == after
            assert runtime.RAN[0] >= 3


def test_a_loop_that_draws_and_raises_leaves_its_stream_as_python_does():
    def f(x, stream, n):
        x = x.copy()
        for k in range(n):
            x[k] = x[k] * stream.normal()
        return np.sum(x)

    for n in (5, 9):
        outcomes, states = [], []
        for g in (grad(f), jit(grad(f)), grad(jit(f))):
            for _ in range(2):
                stream = np.random.default_rng(1)
                outcomes.append(outcome(g, (np.ones(7), stream, n)))
                states.append(state(stream))
        assert all(alike(x, outcomes[0]) for x in outcomes)
        assert len({*states}) == 1


def test_parameters_without_a_derivative_stay_pythons():
    def f(p, stream):
        total = p * 0
        for _ in range(20):
            total = total + p * stream.gamma(2.0) + stream.gamma(p)
        return total

    with pytest.raises(minnp.errors.NotDifferentiableError):
        grad(f)(1.5, np.random.default_rng(0))
    with pytest.raises(minnp.errors.NotDifferentiableError):
        jit(grad(f))(1.5, np.random.default_rng(0))


def test_more_numbers_than_there_was_room_for():
    def f(p, stream, n):
        total = 0.0
        for _ in range(n):
            total = total + p * stream.normal() * stream.integers(3)
        return total

    expected, got = (g(1.5, np.random.default_rng(0), 20_000) for g in (f, jit(grad(f))))
    numpy.testing.assert_allclose(1.5 * got, expected, rtol=1e-10)


def test_a_stream_that_the_function_makes_begins_anew_in_each_call():
    def f(n):
        rng = np.random.default_rng(7)
        np.random.seed(3)
        s = 0.0
        for _ in range(n):
            s += rng.random() * np.random.randn()
        return s

    g = jit(f)
    assert [g(50) for _ in range(4)] == [f(50)] * 4


def test_random_numbers_are_drawn_by_one_thread():
    def f(stream, n):
        a = np.zeros(n)
        for i in minnp.prange(n):
            a[i] = np.random.rand()
        return a

    check(f, "numpy's own", 100)


@pytest.mark.long
def test_uniform_numbers_are_numpys_to_the_bit_in_any_range():
    def f(stream, low, high, n):
        a = np.zeros(n)
        for i in range(n):
            a[i] = stream.uniform(low, high)
        return a

    for low, high in [(0.0, 1.0), (-3.3, 7.1), (1e-300, 1e300), (5.0, 2.0), (0.0, math.inf)]:
        for kind in ("Generator", "RandomState"):
            check(f, kind, low, high, 2000, compiled=low <= high < math.inf or (kind == "RandomState" and high == 2.0))


def test_the_state_of_a_mersenne_twister_is_kept_by_its_memory():
    assert draws.words_lie_first()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Generator", "RandomState", "SFC64", "numpy's own"])
def test_integers_are_numpys_in_any_range(kind):
    def f(stream, low, high, n):
        a = np.zeros(n, dtype=int)
        for i in range(n):
            a[i] = stream.integers(low, high)
        return a

    def g(stream, low, high, n):
        a = np.zeros(n, dtype=int)
        for i in range(n):
            a[i] = (np.random if stream is None else stream).randint(low, high)
        return a

    def h(stream, low, high, n):
        a = np.zeros(n, dtype=int)
        for i in range(n):
            a[i] = np.random.randint(low, high)
        return a

    run = {"numpy's own": h, "RandomState": g}.get(kind, f)
    known = None if kind == "Generator" else jit(run)  # compiled anew for each range, or once: seconds each
    for low, high in [
        (0, 10),
        (0, 1),
        (-5, 7),
        (3, 2**31 + 7),
        (1, 2**32 - 3),
        (-(2**35), 3 - 2**35),
        (5, 5),
        (0, 2**33),
    ]:
        check(run, kind, low, high, 300, compiled=False, g=known)


def test_a_method_that_somebody_replaced_is_called():
    def f(rng, n):
        s = 0.0
        for _ in range(n):
            s += rng.random()
        return s

    g = jit(f)
    for _ in range(3):
        g(np.random.default_rng(0), 20)
    rng = np.random.default_rng(0)
    rng.random = lambda: 0.25
    assert g(rng, 20) == 5.0


def test_an_order_of_numbers_that_is_not_known_is_numpys_to_make(monkeypatch):
    monkeypatch.setattr(draws, "integers_are_known", lambda: False)
    check(shuffled, "numpy's own", 50)


@pytest.mark.parametrize("f", [conditions, places, whiles, shuffled])
def test_without_a_lock_to_hold_every_draw_is_numpys_method(f, monkeypatch):
    monkeypatch.setattr(draws, "DIRECT", False)
    check(f, "numpy's own", 60)


def test_the_integers_of_this_numpy_are_known():
    assert draws.integers_are_known()


@pytest.mark.parametrize("brief", [20, 1 << 23])  # steps
@pytest.mark.parametrize("kind", CLASSES)
def test_first_runs_are_of_code_that_is_made_in_little_time_and_draw_again_if_it_ends_early(kind, brief, monkeypatch):
    monkeypatch.setattr(lowering, "BRIEF", brief)
    monkeypatch.setattr(compiled, "LONG", 0)
    monkeypatch.setattr(source, "_REWRITTEN", weakref.WeakKeyDictionary())  # what the other cases compiled
    build, builds = compiled.Code.build, []
    monkeypatch.setattr(compiled.Code, "build", lambda code, *given: builds.append(given[1]) or build(code, *given))

    def added(stream, x):
        for i in range(len(x)):
            x[i] += (np.random if stream is None else stream).normal()
        return x.sum()

    check(added, kind, numpy.arange(30.0))
    assert builds == [True, False]
