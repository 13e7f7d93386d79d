"""The C part's calls of compiled loops, beside the Python they replace."""

import signal
import tracemalloc

import loop_fuzzer
import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.compiled import fastpath
from minnp.core.llvm import engine
from minnp.core.loops import compiled, source

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(fastpath is None, reason="minnp was installed without a C compiler, or MINNP_COMPILED=0"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def shown(results):
    """What can be compared of results: arrays by their bytes, numbers by their types."""
    return [(x.dtype, x.shape, x.tobytes()) if isinstance(x, numpy.ndarray) else (type(x), repr(x)) for x in results]


@pytest.fixture
def calls(monkeypatch):
    """How calls ended, each made by both; the arrays that one wrote are as the other one left them."""
    made, ended = compiled.Code.compiled_call, []

    def both(code):
        fast = made(code)

        def call(*values, donate=compiled.NOTHING):
            copies = [x.copy("K") if isinstance(x, numpy.ndarray) else x for x in values]
            found = []
            for run, given in ((code.run, copies), (lambda v, d: fast(*v, donate=d), values)):
                try:
                    found.append(run(given, donate))
                except Exception as error:
                    found.append(error)
            python, c = found
            if isinstance(python, Exception):
                assert (type(c), str(c)) == (type(python), str(python))
                assert shown(getattr(c, "partial", ())) == shown(getattr(python, "partial", ()))
            else:
                assert shown(c) == shown(python)
            assert shown(x for x in values if isinstance(x, numpy.ndarray)) == shown(
                x for x in copies if isinstance(x, numpy.ndarray)
            )
            ended.append(type(c).__name__)
            if isinstance(c, Exception):
                raise c
            return c

        return call

    monkeypatch.setattr(compiled.Code, "compiled_call", both)
    return ended


def every_kind(x, n, z, flag):
    whole, real, pair, truth = 0, 0.0, 0j, False
    small, single, natural = np.int8(1), np.float32(0.5), np.uint64(2**63)
    either = 1
    for i in range(n):
        whole += i
        real += x[i]
        pair = pair * z + i
        truth = truth ^ flag
        small = small + np.int8(1)
        single = single * np.float32(1.5)
        natural = natural + np.uint64(1)
        if x[i] > 0.5:
            either = x[i]
            last = i
    return whole, real, pair, truth, small, single, natural, either, last


def makes_arrays(x, n):
    y, longest = x, np.zeros(0)
    for i in range(n):
        y = y * 0.5 + i
        longest = y * 2 if i % 4 else longest
    return y, longest


def fails_late(x, at):
    for i in range(len(x)):
        x[i] = x[at + i] * 2.0
    return x


def grows(x, n):
    for _ in range(n):
        x = x * 3
    return x


def test_numbers_of_every_kind(calls):
    f = jit(every_kind)
    x = np.linspace(0, 1, 8)
    for n, flag in ((8, True), (6, False), (5, True)):
        assert repr(f(x, n, 0.5 - 1j, flag)) == repr(every_kind(x, n, 0.5 - 1j, flag))
    assert calls


def test_arrays_that_a_loop_makes_or_writes(calls):
    f = jit(makes_arrays)
    for x in (np.arange(6.0), np.arange(12.0)[::2], np.arange(12.0)[::-2]):
        for a, b in zip(f(x, 13), makes_arrays(x, 13)):
            numpy.testing.assert_array_equal(a, b)
    f = jit(fails_late)
    for _ in range(2):
        for n in (9, 2):
            got, want = np.arange(6.0), numpy.arange(6.0)
            with pytest.raises(IndexError) as mine:
                f(got, n)
            with pytest.raises(IndexError) as numpys:
                fails_late(want, n)
            assert str(mine.value) == str(numpys.value)
            numpy.testing.assert_array_equal(got, want)
    assert {"IndexError", "tuple"} <= set(calls)


def test_integers_beyond_64_bits(calls):
    f = jit(grows)
    assert [f(7, n) for n in (5, 20, 60, 5)] == [7 * 3**n for n in (5, 20, 60, 5)]
    assert "Again" in calls


def test_the_tape_of_a_gradient_grows(calls, monkeypatch):
    rooms, init = [], compiled.Code.__init__
    monkeypatch.setattr(compiled.Code, "__init__", lambda self, *a, **k: (init(self, *a, **k), rooms.append(self))[0])

    def f(x, n):
        s = x[0]
        for i in range(n):
            s = np.sin(s) * x[i % 3]
        return s

    g, x = minnp.grad(jit(f)), np.array([0.5, 0.7, 0.9])
    for code in (*rooms, *(g(x, 40), rooms)[1]):
        code.room = 2
    numpy.testing.assert_allclose(g(x, 40), minnp.grad(f)(x, 40), rtol=1e-12)
    assert max(code.room for code in rooms) > 2


def grown(x, y, n):
    """Carries a number, writes to arrays, goes downwards, and takes other ways."""
    a, b = x.copy(), np.zeros(len(x))
    s, count = 0.5, 0
    for i in range(n, 2, -1):
        s = np.sin(s) * y + a[i % 5] * 0.1
        b[i % len(b)] = s * a[0]
        while count < i % 3:
            count += 1
            s *= 0.9 + b[count] * 0.1
        count = 0 if i % 4 == 0 else count
        for k in range(1, len(x)):
            a[k] = np.tanh(a[k] + a[k - 1] * s + b[k])
        if i % 7 == 1:
            a[0] *= s
    return np.sum(a * b) + s


@pytest.mark.parametrize("parts", [jit(grown), grown], ids=["jit", "eager"])
def test_a_loop_runs_forwards_again_in_parts_where_its_gradient_would_keep_too_much(parts):
    x, y = np.linspace(0.1, 1, 8), np.float64(0.7)
    gradient = lambda: jit(minnp.grad(lambda x, y: parts(x, y, 900), (0, 1)))
    expected = gradient()(x, y)
    before = minnp.set_gradient_budget(30_000)  # it keeps some 200,000
    try:
        spared = gradient()
        for _ in range(2):
            for found, g in zip(spared(x, y), expected, strict=True):
                numpy.testing.assert_allclose(found, g, rtol=1e-12)
    finally:
        minnp.set_gradient_budget(before)
    step = 1e-6
    at = lambda h: float(jit(grown)(x + h * x, y + h, 900))
    slope = numpy.sum(numpy.asarray(expected[0] * x)) + expected[1]
    numpy.testing.assert_allclose(slope, (at(step) - at(-step)) / (2 * step), rtol=1e-5, atol=1e-9)


def test_a_gradient_keeps_no_more_than_it_may():
    @jit
    def part(x, s, first, last):
        for i in range(first, last):
            s = np.sin(s) * x + i
        return s

    def whole(x, n):
        return part(x, x, 0, n)

    def in_parts(x, n):
        s = x
        for first in range(0, n, 1000):
            s = minnp.checkpoint(part)(x, s, first, first + 1000)
        return s

    def run(f):
        tracemalloc.start()
        try:
            return minnp.grad(f)(np.float64(0.5), 40_000), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    run(in_parts)
    expected, most = run(whole)
    before = minnp.set_gradient_budget(100_000)
    try:
        run(whole)  # which compiles
        found, peak = run(in_parts)
        again, least = run(whole)
        minnp.set_gradient_budget(1000)
        with pytest.raises(MemoryError, match=r"the loop at .*test_compiled_loops.py:\d+ keeps more than 1,000 bytes"):
            run(whole)
        assert minnp.set_gradient_budget(10**9) == 1000
        numpy.testing.assert_allclose(run(whole)[0], expected, rtol=1e-12)
    finally:
        minnp.set_gradient_budget(before)
    numpy.testing.assert_allclose(found, expected, rtol=1e-12)
    assert again == expected
    assert max(peak, least) < 400_000 < 600_000 < most
    with pytest.raises(ValueError, match="at least 8 bytes, got 7"):
        minnp.set_gradient_budget(7)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(31, 2000, 600))
def test_random_programs(calls, seed):
    assert not loop_fuzzer.differs(seed)
    assert not loop_fuzzer.differs_in_gradient(seed)


def swept(x, y):
    """Writes to an array, reads what it wrote, and carries a number."""
    x, s = x.copy(), 0.0
    for i in range(1, len(x)):
        x[i] = np.sin(x[i - 1]) * y + x[i] * x[i]
        if x[i] > 0.5:
            s += x[i] * y
    return x, s


def bound_anew(x, y):
    for _ in range(3):
        x = x * y + x[::-1]
    return x, y


def raising(x, y):
    for i in range(4):
        y = y * x[i]
    return x, y


def leaves(x):
    return x if isinstance(x, (tuple, list)) else (x,)


@pytest.mark.parametrize("f", [swept, bound_anew], ids=lambda f: f.__name__)
def test_loops_under_checkpoint(f, calls):
    x = np.array(numpy.linspace(0.1, 0.9, 7))

    def loss(run):
        def of(x, y):
            a, s = run(x, y)
            return np.sum(a * np.arange(7.0)) + s * y

        return of

    eager, ours = loss(f), loss(minnp.checkpoint(jit(f)))
    for transform in (
        lambda g: minnp.grad(g, (0, 1)),
        lambda g: minnp.grad(lambda x, y: np.sum(minnp.grad(g)(x, y) * np.cos(x))),
        lambda g: lambda x, y: minnp.jvp(minnp.grad(g), (x, y), (x, y))[1],
    ):
        expected = transform(eager)(x, 0.7)
        for ran in (transform(ours), jit(transform(ours))):
            for u, v in zip(leaves(ran(x, 0.7)), leaves(expected), strict=True):
                numpy.testing.assert_allclose(u, v, rtol=1e-11)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        minnp.grad(lambda x: minnp.checkpoint(jit(raising))(x, 1.0)[1])(np.ones(3))


def test_the_pace_of_a_loop_that_is_worth_it_at_once():
    pace = source.Pace()
    for _ in range(6):
        pace.took(1.0)
    pace.pythons()
    pace.machine = 1.0
    pace.took(1.0)  # of another number of turns, before Python's run ended
    pace.end()
    assert not pace.asked


class Stopped(BaseException):
    """Raised by the handler of a signal, as KeyboardInterrupt is."""


def counts_up(x):
    while x[0] > 0:
        x[0] += 1
    return x


def counts_up_in_loops(x):
    while True:
        for i in range(3):
            x[i] += 1
        if x[0] < 0:
            return x


def relaxes(x):
    for _ in range(int(x[0])):
        for i in range(len(x)):
            x[i] = x[i - 1] * 0.5 + 1
    return x


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("f", [counts_up, counts_up_in_loops, relaxes])
def test_a_handler_of_a_signal_ends_a_loop(f, calls):
    def stops(*_):
        raise Stopped

    compiled = jit(f)
    for _ in range(3):
        short = numpy.array([-3.0, 1, 1]) if f is not relaxes else numpy.array([99.0, 1, 1])
        numpy.testing.assert_array_equal(compiled(short.copy()), f(short.copy()))
    before = signal.signal(signal.SIGALRM, stops)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        x = numpy.array([1e15, 1, 1])
        with pytest.raises(Stopped):
            compiled(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    numpy.testing.assert_array_equal(compiled(short.copy()), f(short.copy()))
