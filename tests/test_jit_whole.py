"""Functions of short calls as one program: captured so once they were called often, and kept where that is faster."""

import threading
import traceback
import warnings

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.jit import jit as jit_module
from minnp.core.llvm import engine

pytestmark = [
    pytest.mark.skipif(not engine.available(), reason="needs llvmlite"),
    pytest.mark.host("graphs on NumPy's memory"),
]
CALLS = 12


@pytest.fixture(params=[True, False], ids=["one program", "steps"])
def faster(request, monkeypatch):
    """Which of the two is found to be faster, after a few calls."""
    monkeypatch.setattr(jit_module, "OFTEN", 3)
    monkeypatch.setattr(jit_module, "TURNS", 2)
    monkeypatch.setattr(jit_module, "SHORT", 1e9)
    monkeypatch.setattr(jit_module.Contest, "faster", lambda self: request.param)
    return request.param


def contests(f):
    return [*f.contests.values()]


def path(costs, moves):
    """The cheapest way through a table: two loops, and what lies between them."""
    n, m = costs.shape
    best, came = costs[0].copy(), np.zeros((n, m), dtype=int)
    for t in range(1, n):
        before = best.copy()
        for j in range(m):
            found = before + moves[:, j]
            came[t, j] = np.argmin(found)
            best[j] = found[came[t, j]] + costs[t, j]
    out = np.empty(n, dtype=int)
    out[-1] = np.argmin(best)
    for t in range(n - 1, 0, -1):
        out[t - 1] = came[t, out[t]]
    return out, best.min(), "done"


def test_results_are_the_same(faster):
    rng = onp.random.default_rng(0)
    f = jit(path)
    for _ in range(CALLS):
        costs, moves = rng.random((7, 4)), rng.random((4, 4))
        way, least, said = f(np.array(costs), np.array(moves))
        expected, lowest, _ = path(onp.array(costs), onp.array(moves))
        assert way.dtype == expected.dtype and way.tolist() == expected.tolist() and type(way) is np.ndarray
        assert type(least) is type(lowest) and abs(least - lowest) < 1e-14 and said == "done"
    (contest,) = contests(f)
    assert contest.over and len(contest.whole) == 1
    assert f.cache_info()["paths"] == 1 + faster and f.cache_info()["calls"] == CALLS
    assert f(np.ones((2, 3)), np.ones((3, 3)))[0].tolist() == [0, 0]


def solved(a, b, shift):
    """Writes to its second argument, returns numbers of Python's as well."""
    x = b * 2
    for i in range(len(b)):
        x[i] = (x[i] - a[i, :i] @ x[:i]) / a[i, i]
    b += shift
    steps = 0
    for i in range(len(b)):
        if b[i] > 1:
            steps += i
    return x, steps, steps > 2, None


def test_arguments_are_written_and_numbers_are_pythons(faster):
    f = jit(solved)
    for k in range(CALLS):
        a, b = onp.tril(onp.full((5, 5), 0.5)) + onp.eye(5), onp.linspace(0, 2, 5) + k
        ours = np.array(b)
        x, steps, many, nothing = f(np.array(a), ours, 0.25)
        expected = solved(a, b, 0.25)
        onp.testing.assert_allclose(x, expected[0], rtol=1e-14)
        onp.testing.assert_array_equal(ours, b)
        assert (steps, many, nothing) == expected[1:] and type(steps) is int and type(many) is bool
    assert contests(f)[0].over and len(contests(f)[0].whole) == 1


def picked(x, places):
    y = x * 2
    for i in range(len(places)):
        y[i] = y[i] + x[places[i]]
    total = np.zeros(3)
    for i in range(3):
        total[i] = y[i] - x.sum()
    return total


def test_what_is_raised_comes_from_the_functions_line_and_is_written_before(faster):
    def f(x, places, out):
        out[0] = 7
        for i in range(len(places)):
            out[i + 1] = x[places[i]]
        return picked(x, places)

    compiled = jit(f)
    for _ in range(CALLS):
        compiled(np.arange(5.0), np.array([0, 1, 2]), np.zeros(5))
    assert contests(compiled)[0].over
    out = np.zeros(5)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5") as raised:
        compiled(np.arange(5.0), np.array([3, 9, 2]), out)
    assert out.tolist() == [7, 3, 0, 0, 0]
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert "f" in [frame.name for frame in frames if frame.filename == __file__]
    assert compiled(np.arange(5.0), np.array([0, 1, 2]), np.zeros(5)).tolist() == [-10, -7, -4]


FACTOR = 2.0


def scaled(x):
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i] * FACTOR
    y = y[::-1].copy()
    for i in range(1, 4):
        y[i] += y[i - 1]
    return y


def test_what_the_function_reads_outside_is_read_anew(faster, monkeypatch):
    f = jit(scaled)
    for _ in range(CALLS):
        assert f(np.arange(4.0)).tolist() == [6, 10, 12, 12]
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert f(np.arange(4.0)).tolist() == [9, 15, 18, 18]


def test_gradients_of_it_are_the_steps(faster):
    f = jit(scaled)
    for _ in range(CALLS):
        f(np.arange(4.0))
    assert grad(lambda x: f(x).sum())(np.arange(4.0)).tolist() == [2, 4, 6, 8]
    assert jit(grad(lambda x: f(x).sum()))(np.arange(4.0)).tolist() == [2, 4, 6, 8]


def test_threads_time_it_together(faster):
    f, failed = jit(path), []
    expected = path(onp.ones((4, 3)).cumsum(1), onp.eye(3))

    def work():
        for _ in range(CALLS):
            way, least, _ = f(np.ones((4, 3)).cumsum(1), np.eye(3))
            if way.tolist() != expected[0].tolist() or least != expected[1]:
                failed.append(way)

    f(np.ones((4, 3)), np.eye(3))  # else each of them captures a path
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    work()  # the others may have been through while one captured
    assert not failed and contests(f)[0].over


def test_methods_are_one_program_too(faster):
    class Filter:
        def __init__(self, weight):
            self.weight = weight

        @jit
        def __call__(self, x):
            y = np.empty(len(x))
            for i in range(len(x)):
                y[i] = x[i] * self.weight
            z = y + 1
            for i in range(1, len(x)):
                z[i] += z[i - 1]
            return z

    f = Filter(2.0)
    for _ in range(CALLS):
        assert f(np.arange(3.0)).tolist() == [1, 4, 9]
    f.weight = 3.0
    assert f(np.arange(3.0)).tolist() == [1, 5, 12]
    assert Filter(1.0)(np.arange(3.0)).tolist() == [1, 3, 6]


def test_what_is_no_program_stays_as_it_was(faster):
    def f(x):
        y = np.zeros(3)
        for i in range(3):
            y[i] = x[i] * 2
        y = np.linalg.eigvalsh(np.outer(y, y))  # which no program has
        for i in range(1, 3):
            y[i] += y[i - 1]
        return y

    compiled, x = jit(f), np.arange(3.0)
    for _ in range(CALLS):
        onp.testing.assert_allclose(compiled(x), f(x), atol=1e-12)
    (contest,) = contests(compiled)
    assert contest.over and not contest.whole and compiled.cache_info()["paths"] == 1
    assert not [row for row in minnp.report() if "eigvalsh" in row["why"]]


def test_warnings_are_given(faster):
    def f(x):
        y = np.zeros(3)
        for i in range(3):
            y[i] = 1 / x[i]
        z = np.ones(3)
        for i in range(3):
            z[i] += y[i]
        return z

    compiled = jit(f)
    for _ in range(CALLS):
        compiled(np.ones(3))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert compiled(np.array([1.0, 0.0, 2.0])).tolist() == [2, onp.inf, 1.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(np.ones(3)).tolist() == [2, 2, 2]
