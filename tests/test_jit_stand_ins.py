"""Under jit, what is written in C, and classes with NumPy's hooks, get what they would get without jit."""

from __future__ import annotations

import decimal
import hashlib
import operator
import pickle
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.compiled import fastpath
from minnp.core.jit import compilation
from minnp.core.jit.jit import BRIEF, FEW, LONG_CALL, PLAIN, TIMED, Plain, Trial
from minnp.core.llvm import engine
from minnp.core.rows.state import raises


class Scaled:
    """An array that says what ufuncs mean for it, as a program written for minnp does."""

    def __init__(self, v: Any) -> None:
        self.v = v

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inputs = [i.v if isinstance(i, Scaled) else i for i in inputs]
        if ufunc is np.multiply and method == "__call__":
            return Scaled(inputs[0] * inputs[1] + 1)
        if ufunc is np.add and method == "reduce":
            return Scaled(inputs[0].sum() + 0.5)
        return NotImplemented


class Unwrapped:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[i.v if isinstance(i, Unwrapped) else i for i in inputs], **kwargs)


class Named:
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> str:
        return f"called {function.__name__}"


class Wrapper:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.v


STAND_INS = {
    "repeated list": lambda x, k: [0, 1] * k[0],
    "repeats a tuple": lambda x, k: k[1] * (1, 2),
    "repeated text": lambda x, k: "ab" * k[0] + str(b"c" * k[1]),
    "ufunc of a class": lambda x, k: np.multiply(Scaled(x), 2.0).v,
    "operators of a class": lambda x, k: (
        *((x * Unwrapped(x)).sum(), (x - Unwrapped(x)).sum(), (x < Unwrapped(x)).sum()),
        (y := x.copy(), operator.iadd(y, Unwrapped(x)))[1].sum(),
    ),
    "reduction of a class": lambda x, k: np.add.reduce(Scaled(x)).v,
    "functions of a class": lambda x, k: (
        *(np.where(x > 0, Named(), x), np.sum(Named()), np.mean(Named())),
        np.concatenate([Named(), x]),
    ),
    "array of a class": lambda x, k: np.sum(Wrapper(x)) + np.asarray(Wrapper(x)),
    "timedelta": lambda x, k: (np.array(["2020-01-01"], "M8[D]") + np.timedelta64(int(k[0]), "D")).astype(int),
    "mean": lambda x, k: statistics.mean(x),
    "resized": lambda x, k: (y := x.copy(), y.resize(5, refcheck=False))[0],
    "decimal": lambda x, k: decimal.Decimal(x[0]),
    "bytes": lambda x, k: bytes(x),
    "memory": lambda x, k: memoryview(x)[1],
    "hash": lambda x, k: hashlib.md5(x).hexdigest(),
    "pickled": lambda x, k: pickle.loads(pickle.dumps((x[0], k[0]))),
}


def shown(x: Any) -> Any:
    return tuple(map(shown, x)) if isinstance(x, tuple) else (type(x).__name__, repr(x))


@pytest.mark.parametrize("name", STAND_INS)
def test_what_wants_an_array_or_a_number_itself_gets_it(name: str) -> None:
    f = STAND_INS[name]
    g = jit(f)
    for i in range(1, 6):
        x, k = np.array([1.5, 2.0]) * (i % 3 + 1), np.array([i % 3 + 1, 2])
        assert shown(g(x, k)) == shown(f(x, k))


def test_numbers_of_python_that_numpys_scalars_are_made_of() -> None:
    g = jit(lambda d, k: d + np.timedelta64(k, "D"))
    for k in (1, 2, 3, 4, 5):
        assert g(onp.array(["2020-01-01"], "M8[D]"), k)[0] == onp.datetime64("2020-01-01") + onp.timedelta64(k, "D")


def test_a_list_is_repeated_in_place() -> None:
    def f(k: Any) -> Any:
        a = b = [0]
        a *= k[0]
        return len(b), a is b

    assert [jit(f)(np.array([n])) for n in (3, 2)] == [(3, True), (2, True)]


def test_what_a_function_did_before_it_is_run_again_is_undone() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(1)
        x[0] += 1
        return decimal.Decimal(x[0])

    g, x = jit(f), np.zeros(2)
    assert [g(x) for _ in range(4)] == [1, 2, 3, 4] and len(seen) == 4 and x[0] == 4


# ------------------------------------------------------------------ running as it is
def divides(x: Any) -> Any:
    s = 0.0
    for v in x:
        s += 1 / v
    return s


@pytest.mark.parametrize("f", [divides, lambda x: np.exp(x - 2000) * 1e-300, lambda x: np.log(x - 1)])
def test_floating_point_errors_are_raised_where_the_call_asks_for_them(f: Callable) -> None:
    g, x = jit(f), np.array([0.0, 2.0])
    for _ in range(4):
        with np.errstate(all="ignore"):
            g(x)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        g(x)
    with np.errstate(all="ignore"):
        before = np.seterr(all="raise")
        with pytest.raises(FloatingPointError):
            g(x)
        np.seterr(**before)
        g(x)
    assert not raises.get()


def branches(x: Any) -> Any:
    return [k for k in range(6) if x[k] > 0]


def test_branches_in_many_ways_are_told_apart_rightly_by_paths_and_without() -> None:
    g, stream = jit(branches, limit=100), onp.random.default_rng(0)
    for _ in range(200):
        x = stream.normal(size=6)
        assert g(x) == branches(x)


@pytest.mark.host("about graphs on NumPy's kernels")
def test_three_paths_are_given_up_where_the_function_itself_takes_less(monkeypatch: Any) -> None:
    """To find the path of a power of a matrix, by the bits of its exponent, took four times as long as the function."""
    monkeypatch.setattr(Trial, "ends", lambda trial, calls: len(trial.plain) == PLAIN)
    monkeypatch.setattr("minnp.core.jit.jit.WORTH", 0.0)
    f = jit(lambda x: x * 2 if x[0] > 1 else x * 3 if x[0] > 0 else x * 4)
    for k in range(2 * (TIMED + PLAIN)):
        x = np.full(3, k % 3 - 0.5)
        onp.testing.assert_array_equal(f(x), x * (4, 3, 2)[k % 3])
    assert f.cache_info()["paths"] == 0


def sorted_in_place(a: Any, low: int, high: int) -> Any:
    if low < high:
        i = low
        for j in range(low, high):
            if a[j] < a[high]:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        sorted_in_place(a, low, i - 1)
        sorted_in_place(a, i + 1, high)
    return a


def test_many_paths_are_given_up_where_the_function_itself_takes_less() -> None:
    for seconds, ends in ((1e-5, True), (5e-4, False)):
        trial = Trial(0, 6)
        trial.by_paths += [1e-4] * TIMED
        assert trial.runs_plain(TIMED) and not trial.runs_plain(100 * TIMED)  # the last path served most of 1,200 calls
        trial.plain += [seconds] * PLAIN
        assert trial.ends(TIMED) == ends and not trial.runs_plain(TIMED)


def test_a_function_whose_loops_take_longer_compiled_runs_as_it_is() -> None:
    for seconds, rests in ((1e-5, True), (5e-5, False)):
        plain = Plain(lambda args, kwargs: None)
        for _ in range(TIMED):
            assert not plain.tries()
            plain.took(2e-5, True, True)
        for _ in range(PLAIN):
            assert plain.tries() and not plain.rest
            plain.took(seconds, False, False)
        assert bool(plain.rest) == rests and not plain.tries()
    for took in (2e-5, 5e-4):  # longer calls, and those of which one took long, are not tried again
        plain = Plain(lambda args, kwargs: None)
        for _ in range(TIMED):
            plain.took(took, True, True)
        assert plain.tries() == (took < 1e-4)
        plain.took(1.0, False, False)
        assert not plain.tries() and not plain.rest


def test_a_function_that_calls_itself_is_right_however_it_runs() -> None:
    f = jit(sorted_in_place)
    for k in range(3 * (TIMED + PLAIN)):
        a = onp.random.default_rng(k).random(9)
        x = np.array(a)
        assert f(x, 0, 8) is x
        onp.testing.assert_array_equal(x, onp.sort(a))


@pytest.mark.host("about graphs on NumPy's kernels")
def test_unrolled_loops_are_given_up_where_the_function_itself_takes_less() -> None:
    for seconds, ends in ((1e-5, True), (5e-4, False)):
        trial = Trial(0, 1, "its 500 steps, loops unrolled,")
        trial.by_paths += [9.0, *[1e-4] * (FEW - 1)]  # the first call may have more to do
        assert trial.open() and trial.runs_plain(FEW)
        trial.plain += [seconds] * PLAIN
        assert trial.ends(FEW) == ends and not trial.runs_plain(FEW) and not trial.open()
    for seconds, ends in ((4e-7, True), (6e-7, False)):  # of calls that take hardly any, it has to be clear
        quick = Trial(0, 1, "its 500 steps, loops unrolled,")
        quick.by_paths += [1e-6] * FEW
        quick.plain += [seconds] * PLAIN
        assert quick.ends(FEW) == ends
    loops, long = Trial(0, 1, "its loops", True), Trial(0, 1, "its 500 steps, loops unrolled,")
    loops.by_paths += [2 * BRIEF] * FEW
    assert not loops.open()
    long.by_paths += [LONG_CALL] * FEW
    long.plain += [100 * LONG_CALL]
    assert not long.open() and not long.ends(FEW)


@pytest.mark.host("about graphs on NumPy's kernels")
@pytest.mark.parametrize("wrap", [lambda f: f, grad], ids=["value", "gradient"])
def test_a_function_of_unrolled_loops_runs_as_it_is_where_that_takes_less(wrap: Any, monkeypatch: Any) -> None:
    loss = wrap(lambda v, n: np.sum(soft_steps(v, n)))
    monkeypatch.setattr(Trial, "ends", lambda trial, calls: len(trial.plain) == PLAIN)
    monkeypatch.setattr("minnp.core.jit.jit.WORTH", 0.0)
    g, v = jit(loss), np.linspace(0.1, 0.9, 8)
    minnp.reset_report()
    for k in range(2 * (FEW + PLAIN)):
        onp.testing.assert_allclose(g(v + k, 6), loss(v + k, 6), rtol=1e-12)
    assert "loops unrolled" in str(minnp.report()) and g.cache_info()["paths"] == 0
    onp.testing.assert_allclose(g(v, 7), loss(v, 7), rtol=1e-12)
    assert g.cache_info()["paths"] == 1  # of other loops nothing is known


def soft_steps(v: Any, n: int) -> Any:
    seen, out = {}, np.zeros(n)
    for i, x in enumerate(v):
        for c in range(n - 1, 1, -1):
            out[c] = 0.5 * out[c] + np.tanh(out[c - 2] + x)
            seen[f"{i}"] = c  # a text: the loop stays Python
    return out


@pytest.mark.host("about graphs on NumPy's kernels")
@pytest.mark.skipif(not engine.available(), reason="without llvmlite NumPy runs every graph")
def test_unrolled_loops_whose_machine_code_would_come_too_late_are_numpys(monkeypatch: Any) -> None:
    monkeypatch.setattr(compilation, "FAST", 1)
    loss = lambda v, n: np.sum(soft_steps(v, n))
    v = np.linspace(0.1, 0.9, 8)
    for f in (loss, grad(loss)):
        minnp.reset_report()
        g = jit(f)
        for k in range(3):
            onp.testing.assert_allclose(g(v + k, 6), f(v + k, 6), rtol=1e-12)
        assert "would take too long to make" in str(minnp.report()) and g.cache_info()["paths"] == 1
    minnp.reset_report()
    straight = jit(lambda x: np.sum(np.exp(x) * x))  # has no loops, and what it computes is not known to be short
    onp.testing.assert_allclose(straight(v), (onp.exp(v) * v).sum())
    assert "would take" not in str(minnp.report())


@pytest.mark.host("about compiled code on NumPy's memory")
@pytest.mark.skipif(fastpath is None or not engine.available(), reason="without them there is Python in between")
def test_a_function_whose_loops_are_pythons_is_called_without_python_in_between() -> None:
    def squares(n: int) -> tuple:
        found = []
        for i in range(n):
            found.append(str(eval(f"{i} * {i}")))
        return found, sys._getframe(1).f_code

    f, callers = jit(squares), []
    for n in [3] * 40 + [5000] + [3] * 3:
        found, caller = f(n)
        callers.append(caller)
        assert found == [str(i * i) for i in range(n)]
    assert sys._getframe().f_code in callers


@pytest.mark.host("about compiled code on NumPy's memory")
@pytest.mark.skipif(fastpath is None or not engine.available(), reason="without them there is Python in between")
def test_a_function_of_a_stream_of_its_own_for_each_call_is_called_without_python_in_between() -> None:
    def walk(n: int, rng: Any) -> tuple:
        places = [0]
        for _ in range(n):
            places.append(str(eval("0") + rng.integers(9)))
        return places, sys._getframe(1).f_code

    f, callers = jit(walk), []
    for k in range(40):
        places, caller = f(4, onp.random.default_rng(k))
        callers.append(caller)
        assert places == walk(4, onp.random.default_rng(k))[0]
    assert sys._getframe().f_code in callers


@pytest.mark.host("about graphs on NumPy's kernels")
@pytest.mark.skipif(fastpath is None or not engine.available(), reason="without them there is Python in between")
def test_while_captures_wait_the_function_is_called_without_python_in_between() -> None:
    def f(x: Any) -> Any:
        s = float(np.sum(x))
        return x * s, sys._getframe(1).f_code is here

    here, g = sys._getframe().f_code, jit(f)
    given = [np.linspace(0.1, k, 5) for k in range(200)]
    of_ours = []
    for x in given:
        y, called = g(x)
        of_ours.append(called)
        onp.testing.assert_array_equal(y, x * float(np.sum(x)))
    assert any(of_ours) and 4 <= g.cache_info()["captures"] <= 8  # each wait is twice as long as the one before it
