"""Compiled loops on several threads: what prange asks for, and the examples of a batch."""

from __future__ import annotations

import threading
import warnings

import numpy as onp
import pytest
import test_batched_loops as batches

import minnp
import minnp.numpy as np
from minnp import grad, jit, prange, vmap
from minnp.core.llvm import engine
from minnp.core.loops import runtime, threaded

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]
rng = onp.random.default_rng(5)
A, x, k = rng.normal(size=(37, 11)), rng.normal(size=37), rng.integers(-9, 9, 37)


def rows(a, y):
    for i in prange(len(a)):
        s = 0.0
        for j in range(a.shape[1]):
            if a[i, j] > 0:
                s += np.exp(a[i, j])
        y[i] = s
    return y, i


def columns(a, y):
    for j in prange(a.shape[1] - 1, -1, -1):
        t = a[:, j].sum()
        for i in range(len(a)):
            a[i, j] -= t
    return a, j, t


def permuted(k, y):
    order = np.argsort(k)
    for i in prange(0, len(k), 2):
        y[order[i]] = k[i] * 2
        if k[i] > 5:
            continue
        y[order[i]] += 0.5
    return y


def steps(a, y):
    for _ in range(3):
        for i in prange(1, len(y) - 1):
            y[i] = a[i, 0] + y[i]
    return y


def made_inside(a, y):
    for i in prange(len(a)):
        row = a[i] * 2
        row[0] = i
        y[i] = row.max()
    return y


def looked_up(a, y):
    weights = [0.5, 1.0, 2.0]
    for i in prange(len(a)):
        y[i] = a[i, 0] * weights[i % 3]
    return y


def read_inside(a, y):
    s = 0.0
    for i in prange(len(a)):
        s += a[i, 0]
        y[i] = s
    return s, y


def two_ways(a, y):
    m, at = -np.inf, -1
    for i in prange(len(a)):
        if a[i, 0] > m:
            m = a[i, 0]
            at = i
        if a[i, 1] > m:
            m = a[i, 1]
    return m, at


def at_times(a, y):
    m, at = -np.inf, -1
    for i in prange(len(a)):
        if a[i, 0] > m:
            m = a[i, 0]
            if a[i, 1] > 0:
                at = i
    return m, at


def how_often(a, y):
    m, c = -np.inf, 0
    for i in prange(len(a)):
        if a[i, 0] > m:
            m = a[i, 0]
            c += 1
    return m, c


def those_below(a, y):
    m, s = -np.inf, 0.0
    for i in prange(len(a)):
        if a[i, 0] > m:
            m = a[i, 0]
            continue
        s += a[i, 0]
    return m, s


def written_where_taken(a, y):
    m = -np.inf
    for i in prange(len(a)):
        if a[i, 0] > m:
            m = a[i, 0]
            y[i] = m
    return m, y


def first(a, y):
    for i in prange(len(a)):
        y[i] = 1
        if a[i, 1] > 1:
            return i, y
    return -1, y


def from_the_turn_before(a, y):
    for i in prange(1, len(y)):
        y[i] = y[i - 1] + a[i, 0]
    return y


def for_the_turn_behind(a, y):
    for i in prange(len(a) - 2, -1, -1):
        for j in range(a.shape[1]):
            a[i, j] += a[i + 1, j]
    return y


def pairs(a, y):
    for i in prange(0, len(y) - 1, 2):  # which share nothing
        y[i] = y[i + 1] + a[i, 0]
    return y


def other_columns(a, y):
    for i in prange(1, len(a)):
        a[i, 0] = a[i - 1, 1] + a[i, 0]
    return y


CUT = [(rows, A), (pairs, A), (other_columns, A), (columns, A), (permuted, k), (made_inside, A), (looked_up, A)]
WHOLE = [
    (steps, A, "prange in another loop"),
    (read_inside, A, "s, which prange carries from turn to turn"),
    (two_ways, A, "at, which prange carries from turn to turn"),
    (how_often, A, "c, which prange carries from turn to turn"),
    (those_below, A, "m, which prange carries from turn to turn"),
    (written_where_taken, A, "m, which prange carries from turn to turn"),
    (at_times, A, "at, which prange carries from turn to turn"),
    (from_the_turn_before, A, "y, of which a turn of prange uses an element that another one writes"),
    (for_the_turn_behind, A, "a, of which a turn of prange uses an element that another one writes"),
    (first, A, "a break or a return out of prange"),
]


@pytest.fixture
def cut(monkeypatch):
    """How many loops were run in pieces."""
    found = []
    built = threaded.Pieces.built_ranges
    monkeypatch.setattr(threaded.Pieces, "built_ranges", lambda self, key: found.append(self) or built(self, key))
    return found


def same(f, a, g=None):
    for n in (1, 2):
        before = minnp.set_num_threads(n)
        try:
            mine, theirs = [np.array(a), np.zeros(37)], [a.copy(), onp.zeros(37)]
            found, expected = (g or f)(*mine), f(*theirs)
        finally:
            minnp.set_num_threads(before)
        found, expected = (v if type(v) is tuple else (v,) for v in (found, expected))
        for u, v in zip((*found, *mine), (*expected, *theirs), strict=True):
            assert onp.asarray(u).dtype == onp.asarray(v).dtype
            onp.testing.assert_allclose(u, v, rtol=1e-14, atol=1e-14)


def test_prange_is_range_in_python():
    assert prange(3) == range(3)
    assert minnp.prange(5, 1, -2) == range(5, 1, -2)


@pytest.mark.parametrize(("f", "a"), CUT, ids=lambda v: getattr(v, "__name__", ""))
def test_turns_run_in_pieces(f, a, cut):
    g = jit(f)
    for _ in range(2):
        same(f, a, g)
    assert cut


@pytest.mark.parametrize(("f", "a", "why"), WHOLE, ids=lambda v: getattr(v, "__name__", ""))
def test_what_is_carried_from_turn_to_turn_runs_on_one_thread(f, a, why, cut):
    minnp.report(reset=True)
    same(f, a, jit(f))
    assert not cut
    assert any(why in row["why"] for row in minnp.report() if row["backend"] == "one thread")


def test_the_bits_are_those_of_one_thread():
    def f(a, y):
        for i in prange(len(a)):
            y[i] = np.sum(a[i] * a[i]) + np.tanh(a[i, 0])
        return y

    g, a = jit(f), np.array(rng.normal(size=(301, 67)))
    found = []
    for n in (1, 2, 3):
        before = minnp.set_num_threads(n)
        found.append(onp.asarray(g(a, np.zeros(301))))
        minnp.set_num_threads(before)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def sums(a, k, x):
    s, t, u, p, c = 0, x, 0.5 + 0j, 1.0, 7
    for i in prange(len(a)):
        s += a[i] * 2
        for j in range(2):
            t -= a[i] * j
        u += a[i] * 1j
        if a[i] > 0:
            c += 1
            p *= a[i]
        c = c - k[i]
    return s, t, u, p, c


def logical(a, k, x):
    some, every, bits, odd, mask = False, True, 0, k[0], -1
    for i in prange(len(a)):
        some |= a[i] > 1
        every &= bool(a[i] < 2)
        bits |= 1 << (k[i] & 31)
        odd = odd ^ k[i]
        mask = mask & (k[i] | 64)
    return some, every, bits, odd, mask


def extremes(a, k, x):
    low = high = a[0]
    most, least, top, z, q = -1e9, np.inf, k[0], x, k[0]
    for i in prange(len(a)):
        high = max(high, a[i])
        low = min(low, a[i])
        most = np.maximum(most, a[i])
        if a[i] <= least:
            least = a[i]
        if top < k[i]:
            top = k[i]
        z = np.minimum(a[i], z)
        q = max(k[i], q)
    return low, high, most, least, top, z, q


def argmax(a, k, x):
    best, at, row, nearest, where = -np.inf, -1, 0.0, 1e300, 0
    for i in prange(len(a)):
        v = a[i] * a[i] - k[i]
        if v > best:
            best, at = v, i
            row = a[i] + 1
        d = abs(a[i] - x)
        if d < nearest:
            nearest = d
            where = i
    return best, at, row, nearest, where


def none_is_taken(a, k, x):
    best, at, c, s = 1e9, -5, 0, 0
    for i in prange(len(a)):
        if a[i] > best:
            best, at = a[i], i
        if a[i] > 1e9:
            c += 1
            s += a[i]
    return best, at, c, s


REDUCTIONS = [sums, logical, extremes, argmax, none_is_taken]


@pytest.mark.long
@pytest.mark.parametrize("f", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_reductions(f, dtype, cut):
    g = jit(f)
    for size in (1, 5, 301):
        for special in (0.0, onp.nan, -onp.inf):
            a, n = rng.normal(size=size).astype(dtype), rng.integers(-9, 9, size)
            a[size // 2] = special
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected, found = f(a, n, 0.25), []
                for threads in (1, 2, 3):
                    before = minnp.set_num_threads(threads)
                    found.append(g(np.array(a), np.array(n), 0.25))
                    minnp.set_num_threads(before)
            assert repr(found[0]) == repr(found[1]) == repr(found[2])
            for u, v in zip(found[0], expected, strict=True):
                assert type(u) is type(v)
                onp.testing.assert_allclose(u, v, rtol=1e-4 if dtype == "f4" else 1e-12)
    assert cut or (dtype == "f4" and f.__name__ in ("extremes", "argmax", "none_is_taken"))  # of two precisions


def test_sums_of_integers_are_exact():
    def f(k, s):
        for i in prange(len(k)):
            s += int(k[i]) * 2**20
        return s

    g = jit(f)
    for k in rng.integers(-9, 9, 40), onp.full(40, 2**38), onp.full(40, 2**42):
        for s in 5, 2**39:
            assert g(np.array(k), s) == f(k, s)


def test_what_numpy_warns_of_is_warned_of():
    def f(v):
        s = 0.0
        for i in prange(len(v)):
            s += v[i]
        return s

    v = onp.full(34, 1e307)
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        assert jit(f)(np.array(v)) == onp.inf
    v[1], v[30] = onp.inf, -onp.inf
    with pytest.warns(RuntimeWarning, match="invalid value encountered"):
        assert onp.isnan(jit(f)(np.array(v)))


def test_gradients_of_reductions():
    def f(v):
        s = 0.0
        for i in prange(len(v)):
            s += np.sin(v[i]) * v[i]
        return s

    slope = onp.cos(x) * x + onp.sin(x)
    for g in (grad(jit(f)), jit(grad(f))):
        onp.testing.assert_allclose(g(np.array(x)), slope, rtol=1e-13)


@pytest.mark.parametrize("turns", [0, 1, 2, 16, 17, 33])
def test_few_turns(turns):
    def f(v, y):
        i = -1
        for i in prange(0, len(v), 1):
            y[i] = v[i] * 2
        return y, i

    assert f(A[:turns, 0], onp.zeros(37))[1] == turns - 1
    for found, expected in zip(jit(f)(np.array(A[:turns, 0]), np.zeros(37)), f(A[:turns, 0], onp.zeros(37))):
        onp.testing.assert_array_equal(found, expected)


def test_an_index_out_of_bounds_leaves_what_python_leaves(cut):
    def f(places, y):
        for i in prange(len(places)):
            y[places[i]] = i + 1

    g, places = jit(f), onp.arange(37)
    y = np.zeros(37)
    g(np.array(places), y)
    assert cut
    places[20] = 99
    for run, arrays in (f, onp), (g, np):
        y = arrays.zeros(37)
        with pytest.raises(IndexError, match="index 99 is out of bounds for axis 0 with size 37"):
            run(arrays.array(places), y)
        onp.testing.assert_array_equal(y, [*range(1, 21), *[0] * 17])


def test_warnings_are_numpys():
    def f(v, y):
        for i in prange(len(v)):
            y[i] = np.log(v[i])
        return y

    g = jit(f)
    g(np.ones(37), np.zeros(37))
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        y = g(np.array(x), np.zeros(37))
    assert {str(w.message) for w in met} == {"invalid value encountered in log"}
    with onp.errstate(invalid="ignore"):
        onp.testing.assert_allclose(y, onp.log(x), rtol=1e-14)


def test_under_transformations():
    def f(v):
        y = np.zeros(len(v))
        for i in prange(len(v)):
            y[i] = np.sin(v[i]) * v[i]
        return y.sum()

    slope = onp.cos(x) * x + onp.sin(x)
    for g in (grad(jit(f)), jit(grad(f))):
        onp.testing.assert_allclose(g(np.array(x)), slope, rtol=1e-13)
    onp.testing.assert_allclose(vmap(jit(f))(np.array([x, -x])), [f(x), f(-x)], rtol=1e-13)
    onp.testing.assert_allclose(jit(vmap(grad(f)))(np.array([x])), [slope], rtol=1e-13)


@pytest.mark.parametrize(("f", "axes", "args"), batches.EVEN, ids=lambda v: getattr(v, "__name__", ""))
def test_the_examples_of_a_batch(f, axes, args, monkeypatch, cut):
    one_way = f.__name__ in ("another_name", "returns")  # of which all examples have to be told
    monkeypatch.setattr(runtime, "LEAST", 0)
    fresh = type(f)(f.__code__.replace(co_name=f"{f.__name__}_{axes}"), f.__globals__)
    batches.same(fresh, axes, args)
    assert one_way != bool(cut)


@pytest.mark.long
def test_threads_compile_one_loop_at_once():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * y[i] if x[i] > 0.5 else y[i]
        return s

    rows = onp.random.default_rng(0).random((4, 3))
    expected = [float(f(rows[i], rows[i - 1])) for i in range(4)]
    given = [np.array(row) for row in rows]
    for turn in range(8):
        copy = type(f)(f.__code__.replace(co_name=f"f{turn}"), f.__globals__)
        found = [None] * 8

        def work(k, copy=copy, found=found):
            g = jit(copy)
            found[k] = [float(g(given[i % 4], given[i % 4 - 1])) for i in range(20)]

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in found:
            onp.testing.assert_allclose(one, expected * 5, rtol=1e-12)
