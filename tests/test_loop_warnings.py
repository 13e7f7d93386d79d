"""Compiled loops warn of the numbers that NumPy warns of, at the user's lines."""

from __future__ import annotations

import sys
import warnings

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine
from minnp.core.loops import compiled

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]
ARGUMENTS = ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], [-1.0, 0.0, 4.0], [1e300, 2.0, float("nan")])


def quotients(x, out):
    for i in range(len(x)):
        out[i] = 1 / x[i]
    return out


def functions(x, out):
    for i in range(len(x)):
        out[i] = np.log(x[i]) + np.exp(x[i] * 1000)
    return out


def guarded(x, out):
    for i in range(len(x)):
        if x[i] != 0 and 1 / x[i] > 0:
            out[i] = 1 / x[i]
        else:
            out[i] = 0
    return out


def powers(x, out):
    for i in range(len(x)):
        out[i] = x[i] ** -2 + x[i] ** 0.5
    return out


def arrays(x, out):
    for i in range(len(x)):
        out[i] = (x * x[i]).sum()
        out[:2] += np.sqrt(x[1:]) / x[:2]
    return out


def beyond(x, out):
    for i in range(len(x) + 1):
        out[i] = 1 / x[i]
    return out


def narrow(x, out):
    o = np.zeros(3, "f4")
    for i in range(len(x)):
        o[i] = x[i] * 1e30
    return o


def by_zero(v):
    return v / 0.0


def called(x, out):
    s = 0.0
    for i in range(len(x)):
        s = s + by_zero(x[i])
    return s


def complex_numbers(x, out):
    z = 0j
    for i in range(len(x)):
        z = z * z + x[i] * 1e200
    return z


def outcome(f, x, out, action):
    """(the result, or the error, what was written, the warnings), with filters of this action."""
    names = vars(sys.modules[__name__])
    names.pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        try:
            result = f(x, out)
        except (IndexError, RuntimeWarning) as error:
            result = repr(error)
    return repr(result), repr(out), [(str(w.message), w.filename, w.lineno) for w in found]


FUNCTIONS = [quotients, functions, guarded, powers, arrays, beyond, narrow, called, complex_numbers]


@pytest.mark.long
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_warnings_are_those_of_numpy(f):
    for function in (jit(f), jit(f)):
        for action in ("default", "always", "error", "ignore", "default"):
            for x in ARGUMENTS:
                want = outcome(f, onp.array(x), onp.zeros(3), action)
                got = outcome(function, onp.array(x), onp.zeros(3), action)
                assert [w[0] for w in got[2]] == [w[0] for w in want[2]]
                if action != "always":  # where Python gives them one by one, those of the first call have minnp's lines
                    assert got == want


def whole_numbers(x, out):
    for i in range(len(x)):
        if out[i] != 5:
            out[i] = x[i] // out[i] + (x % out)[i]
        out[i] %= np.remainder(x[i], out[0])
    return out


@pytest.mark.parametrize("dtype", ["i8", "i1", "u4"])
def test_integers_divided_by_zero_are_warned_of(dtype):
    function = jit(whole_numbers)
    for action in ("default", "always", "error", "default"):
        for x, out in (([7, 2, 9], [2, 5, 4]), ([7, 2, 9], [2, 5, 0]), ([0, 2, 9], [0, 1, 3])):
            want = outcome(whole_numbers, onp.array(x, dtype), onp.array(out, dtype), action)
            got = outcome(function, onp.array(x, dtype), onp.array(out, dtype), action)
            assert got == want if action != "always" else [w[0] for w in got[2]] == [w[0] for w in want[2]]


def test_what_is_ignored_costs_nothing_and_what_is_raised_is_pythons():
    g = jit(quotients)
    x, out = onp.array([2.0, 0.0, 4.0]), onp.zeros(3)
    with onp.errstate(divide="ignore"):
        onp.testing.assert_array_equal(g(x, out), [0.5, onp.inf, 0.25])
    out[:] = 0
    with onp.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        g(x, out)
    onp.testing.assert_array_equal(out, [0.5, 0, 0])


def test_filters_that_ignore_all_warnings_cost_nothing(monkeypatch):
    asked, noting = [], compiled.Code.noting
    monkeypatch.setattr(compiled.Code, "noting", lambda self, *args: asked.append(1) or noting(self, *args))
    x = onp.array([2.0, 0.0, 4.0] * 20)
    filters = [
        ([("ignore", {})], False),
        ([("ignore", {}), ("ignore", {"message": "divide"})], False),
        ([("ignore", {"category": RuntimeWarning}), ("error", {"category": UserWarning})], False),
        ([("ignore", {"message": "divide by zero"})], True),
        ([("always", {}), ("ignore", {"message": "divide by zero"})], True),
        ([("ignore", {"category": UserWarning}), ("ignore", {"module": "test_loop_warnings"})], True),
    ]
    for given, noted in filters:
        g = jit(quotients)
        asked.clear()
        with warnings.catch_warnings():
            warnings.resetwarnings()
            for action, facts in given:
                warnings.filterwarnings(action, **facts)
            for _ in range(2):
                onp.testing.assert_array_equal(g(x, onp.zeros(60)), [0.5, onp.inf, 0.25] * 20)
        assert bool(asked) is noted


def test_loops_that_warn_stay_compiled():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += 1 / x[i]
        return s

    x, g = np.array([1.0, 0.0, 2.0]), jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in scalar divide"):
            assert g(x) == onp.inf
        minnp.report(reset=True)
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in scalar divide"):
            assert g(x) == onp.inf
    assert not any(r["why"] for r in minnp.report(reset=True))


def test_gradients_of_loops_that_warn():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += 1 / x[i] * i
        return s

    x = np.array([0.0, 1.0, 2.0])
    for g in (jit(grad(f)), grad(jit(f))):
        with pytest.warns(RuntimeWarning):
            onp.testing.assert_allclose(g(x)[1:], [-1, -0.5])


def means_of(x, changes):
    total, first = 0.0, 0.0
    for k in range(3):
        mask = x > k
        if mask.any():
            if changes == k:
                mask[:] = False
            elif changes == k + 10:
                mask = x > 9.0
            first += x[mask].mean()
        else:
            total += 1.0
    return total + first


@pytest.mark.parametrize("changes", [-1, 0, 1, 11, 12])
def test_a_mean_of_none_warns_where_a_mask_is_changed_after_it_was_asked(changes):
    x, compiled = onp.array([0.5, 1.5, 2.5]), jit(means_of)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            want = means_of(x, changes)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            got = compiled(np.array(x), changes)
        onp.testing.assert_array_equal(got, want)
        assert sorted(str(w.message) for w in found) == sorted(str(w.message) for w in seen)


def means_in_loops(x):
    total = 0.0
    for k in range(2):
        mask = x > k
        if mask.any():
            while mask[2]:
                total += x[mask].mean()
                mask[0] = False
                mask[1] = k > 5
                mask[2] = total < 9.0
            total += x[mask].mean() if mask.any() else 7.0
    return total


def test_a_mask_that_a_loop_changes_is_counted_anew():
    x, compiled = onp.array([0.5, 1.5, 2.5]), jit(means_in_loops)
    for _ in range(3):
        assert compiled(np.array(x)) == means_in_loops(x)


def of_elements(x):
    s = 0.0
    for v in x:
        s += np.sqrt(v - 2)
    return s


def appended(x):
    out = []
    for i in range(len(x)):
        out.append(np.sqrt(x[i] - 2))
    return np.array(out)


def at_indices(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sqrt(x[i] - 2)
    return s


@pytest.mark.parametrize("f", [of_elements, appended, at_indices])
@pytest.mark.parametrize("n", [10, 11])
def test_unrolled_loops_warn_while_they_are_captured(f, n):
    """docs/sharp_edges.md says which loops those are."""
    for compiler in ("auto", "numpy"):
        g, counts = jit(f, compiler=compiler), []
        for _ in range(3):
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("default")
                g(np.zeros(n))
            counts.append(len(given) > 0)
        unrolled = n == 10 and f is not at_indices and compiler == "auto"
        assert counts == [True, not unrolled, not unrolled]
