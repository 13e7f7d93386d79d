"""First runs of compiled loops: machine code that is made in little time, and gives way where it runs long."""

from __future__ import annotations

import gc
import sys
from weakref import WeakKeyDictionary

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit
from minnp.core.graph import printed
from minnp.core.llvm import engine
from minnp.core.loops import compiled, lowering, runtime, source
from minnp.core.loops.ir import F8, Assign, Check, Define, E, If, const

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def written(x):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + x[i]
    return x


def until(x):
    total, i = 0.0, 0
    while total < 3.0:
        total += x[i % len(x)] ** 2
        i += 1
    return x * total


def nested(x):
    y = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i):
            y[i, j] = x[i] * x[j] + y[i - 1, j]
    return y


def made(x):
    y = x
    for i in range(12):
        y = np.sin(y) + i
    return y


def appended(x):
    found = []
    for i in range(12):
        found.append(x[i % len(x)] * i)
    return np.array(sorted(found))  # which no program does: the function is none as a whole


def paths(n):
    return n if n < 2 else paths(n - 1) + paths(n - 2)


PROGRAMS = [written, until, nested, made]
FEW = 20  # steps


@pytest.fixture(params=["short", "tried once", "long"])
def builds(request, monkeypatch):
    """Whether each piece of machine code that was made is the baseline's."""
    if request.param == "long":
        monkeypatch.setattr(lowering, "BRIEF", FEW)
        monkeypatch.setattr(compiled, "LONG", 0)
    monkeypatch.setattr(compiled, "TRIED", 1 << 17 if request.param == "short" else 0)
    monkeypatch.setattr(compiled, "RUNS", 0)
    build, found = compiled.Code.build, []

    def noted(code, contiguous, baseline):
        found.append(baseline)
        return build(code, contiguous, baseline)

    monkeypatch.setattr(compiled.Code, "build", noted)
    monkeypatch.setattr(source, "_REWRITTEN", WeakKeyDictionary())  # what other tests compiled
    monkeypatch.setattr(runtime, "_CALLS", WeakKeyDictionary())
    return found


@pytest.mark.parametrize("f", [*PROGRAMS, appended])  # no graph has a loop that appends
def test_all_runs_give_the_same(f, builds):
    x = onp.linspace(0.1, 1.0, 6)
    compiled_f, expected = jit(f), f(np.array(x))
    for _ in range(3):
        onp.testing.assert_allclose(compiled_f(np.array(x)), expected, rtol=1e-14)
    assert builds == ([True, False] if compiled.TRIED == 0 else [True])


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_gradients_are_the_same(f, builds):
    x = onp.linspace(0.1, 1.0, 6)
    loss = lambda x: np.sum(f(x.copy()) ** 2)
    compiled_gradient, expected = jit(grad(loss)), grad(loss)(np.array(x))
    for _ in range(3):
        onp.testing.assert_allclose(compiled_gradient(np.array(x)), expected, rtol=1e-12)
    assert True in builds


def test_what_the_graph_does_not_run_is_not_compiled_twice(builds):
    gradient = jit(grad(lambda x: written(x.copy())[-1] ** 2))
    gradient(np.linspace(0.1, 1.0, 6))
    assert builds[:2] == [True, True]  # forwards, and the derivative
    assert (False in builds) == (lowering.BRIEF == FEW)


def test_calls_of_functions_in_themselves_are_counted(builds):
    f = jit(lambda x, n: x * paths(n))
    assert [f(np.array(2.0), 12) for _ in range(3)] == [288.0] * 3
    assert builds == ([True, False] if compiled.TRIED == 0 else [True])


def summed(x):
    x = x * 2  # which the graph lends
    for i in range(1, len(x)):
        x[i] = x[i - 1] + x[i]
    return x


def test_a_later_run_that_ends_early_leaves_what_it_writes_in_place(builds, monkeypatch):
    monkeypatch.setattr(lowering, "BRIEF", 2000)
    monkeypatch.setattr(compiled, "LONG", 0)
    f, x = jit(summed), np.arange(50)
    for _ in range(20):
        onp.testing.assert_array_equal(f(x), summed(x))
    assert builds == [True, False]


def test_an_error_leaves_what_was_written_before_it(builds):
    def f(x, at):
        for i in range(len(x)):
            x[i] = x[at + i] * 2.0

    g = jit(f)
    for _ in range(2):
        x, y = np.arange(5.0), onp.arange(5.0)
        with pytest.raises(IndexError):
            g(x, 3)
        with pytest.raises(IndexError):
            f(y, 3)
        onp.testing.assert_array_equal(x, y)


def weighted(x, w):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        y[i] = y[i - 1] * w[i] + x[i]
    return y


def test_the_part_of_a_derivative_that_a_graph_has_is_compiled_as_the_whole_was(builds):
    gradient = jit(grad(lambda x: np.sum(weighted(x, np.ones(6)))))
    for _ in range(4):
        gradient(np.linspace(0.1, 1.0, 6))
    # the loop, its derivative, and the latter without w's cotangent
    assert builds[:3] == [True, True, compiled.TRIED > 0] or lowering.BRIEF == FEW


def test_nobody_watches_what_is_compiled(monkeypatch):
    seen, affordable = [], runtime.affordable

    def noted(program):
        seen.append((sys.getprofile(), gc.get_threshold()[0]))
        return affordable(program)

    monkeypatch.setattr(runtime, "affordable", noted)

    def loss(x):
        if x[0] > 9:
            print(x)
        return np.sum(written(x.copy()))

    before = gc.get_threshold()
    jit(grad(loss))(np.ones(3))
    assert seen and set(seen) == {(None, printed.RESTING)}
    assert sys.getprofile() is None and gc.get_threshold() == before


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(700, 10)
    yield lambda: gc.get_threshold()[0]
    gc.set_threshold(*before)


def test_the_collector_rests_until_the_last_compiler_is_through(threshold):
    enabled = gc.isenabled()
    other = printed.collector_at_rest()
    with pytest.raises(KeyError), printed.collector_at_rest():
        other.__enter__()
        assert threshold() == printed.RESTING and gc.isenabled() == enabled
        with printed.collector_at_rest():
            pass
        assert threshold() == printed.RESTING
        raise KeyError
    assert threshold() == printed.RESTING
    other.__exit__(None, None, None)
    assert threshold() == 700


def test_what_a_program_asks_of_the_collector_meanwhile_stays(threshold):
    with printed.collector_at_rest():
        gc.set_threshold(0)
        with printed.collector_at_rest():
            pass
    assert threshold() == 0


def test_a_child_of_a_process_that_compiles_collects(threshold):
    compiler = printed.collector_at_rest()
    compiler.__enter__()
    printed._forked()
    assert threshold() == 700
    compiler.__exit__(None, None, None)
    assert threshold() == 700


def test_variables_without_memory():
    read, at = lambda name: E("var", (name,), F8), lambda name, e: Assign(name, e)
    one, yes = const(1.0), const(True)
    inner = [at("b", read("a")), at("c", read("b")), at("late", one), at("before", read("before"))]
    body = [at("a", one), If(yes, inner, []), at("twice", one), at("twice", read("late")), Check(yes, "", (read("a"),))]
    assert lowering.values(body) == {"a", "b", "c"}
    assert lowering.values([Define("f", (), (), []), at("a", one)]) == set()
