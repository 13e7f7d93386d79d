"""Exceptions that a compiled loop catches, and those that it does not."""

from __future__ import annotations

import math

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.jit import jit as jit_module
from minnp.core.llvm import engine
from minnp.core.loops import runtime

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def quotients(a, b):
    total = 0.0
    for i in range(len(a)):
        try:
            x = int(a[i]) / int(b[i])
            total += x
        except ZeroDivisionError:
            a[i] = -1
            total -= 1
    return total, a, x


def neighbours(a, b):
    for i in range(len(a)):
        try:
            b[i] = i
            b[i] += a[i + 1]
        except IndexError:
            b[i] = 99
        else:
            b[i] += 1
    return b


def both(a, b):
    n = 0
    for i in range(len(a) + 3):
        try:
            try:
                n += 10 // int(b[i])
            except ZeroDivisionError:
                n += 1000
                a[i + 2] = 7
        except (IndexError, ValueError):
            n += 100000
            continue
        n += 1
    return n, a


def helper(a, i):
    return a[i] + 1


def through_a_call(a, b):
    for i in range(len(a) + 2):
        try:
            k = i
            b[0] += helper(a, i)
            k = -1
        except Exception:
            b[1] += k
            break
    return b, k


def with_lists(a, b):
    stack, misses = [1, 2, 3], 0
    for i in range(len(a)):
        try:
            a[i] = stack.pop() + stack[i]
        except IndexError:
            misses += 1
            stack.append(i)
    return a, stack, misses


def not_caught(a, b):
    for i in range(len(a) + 1):
        try:
            a[i] += 1
        except ZeroDivisionError:
            a[0] = 100
    return a


def bound_on_one_way(a, b):
    for i in range(len(a)):
        try:
            y = 1 // int(b[i])
            z = y
        except ZeroDivisionError:
            w = i
        a[i] = z + w
    return a


def names_of_arrays(a, b):
    y = a
    for i in range(len(a)):
        try:
            y = b
            y[i] += 1 // int(b[i])
            y = a
        except ZeroDivisionError:
            y[i] += 5
    return a, b, y


def cleaned_up(a, b):
    for i in range(len(a)):
        try:
            a[i] = 1 // int(b[i])
        except ZeroDivisionError as error:
            a[i] = len(str(error))
        finally:
            b[i] += 1
    return a, b


def put_back(a, b):
    for i in range(len(a)):
        b[i] += 1
        try:
            a[i] = 1 // int(b[i] - 1)
        except ZeroDivisionError:
            a[i] = 7
        finally:
            b[i] -= 1
    for i in range(len(a) - 1):
        try:
            a[i] += a[i + 1]
        finally:
            b[i] *= 2
    return a, b


def raised_after_all(a, b):
    total = 0
    for i in range(len(a)):
        try:
            try:
                a[i] = 1 // int(b[i])
            finally:
                b[i] += 10
        except ZeroDivisionError:
            total += i
        try:
            a[i] += a[i + 1]
        finally:
            b[i] += 100
    return a, b, total


def left_in_between(a, b):
    for i in range(len(a)):
        try:
            if b[i] > 1:
                continue
            a[i] = 5
        finally:
            b[i] += 1
    return a, b


def from_a_loop(a, b):
    found = -1
    for i in range(len(a)):
        try:
            for k in range(9):
                if a[i + k] > 3:
                    found = k
            a[i] = 1 % int(b[i])
        except IndexError:
            found += 100
        except ZeroDivisionError:
            found += 1
    return a, found


def in_a_branch_that_is_pythons(a, b):
    for i in range(len(a)):
        if a[i] > 4:
            try:
                a[i] = len(str(i)) // int(b[i])
            except ZeroDivisionError:
                a[i] = 50
        try:
            a[i + 1] += 1
        except IndexError:
            a[i] -= 100
    return a[1 // int(b[0] + 1) + 5 * int(b[0])]


COMPILED = [quotients, neighbours, both, through_a_call, with_lists, from_a_loop, put_back]


def kinds(x):
    if isinstance(x, (list, tuple)):
        return [type(x), *map(kinds, x)]
    return (x.dtype, x.tolist()) if isinstance(x, onp.ndarray) else (type(x), x)


def outcome(f, *args):
    try:
        return kinds(f(*args)), kinds(args)
    except Exception as error:
        return type(error), str(error), kinds(args)


@pytest.mark.parametrize(
    "f",
    [
        *COMPILED,
        *(in_a_branch_that_is_pythons, not_caught, bound_on_one_way, names_of_arrays, cleaned_up),
        *(raised_after_all, left_in_between),
    ],
)
def test_exceptions_in_loops(f):
    g = jit(f)
    minnp.report(reset=True)
    for b in ([1.0, 0, 3, 0, 2], [0.0, 0, 1, 1, 4], [2.0, 1, 1, 5, 2]):
        args = lambda: (onp.array([1.0, 5, 2, 4, 3]), onp.array(b))  # noqa: B023
        assert outcome(g, *args()) == outcome(f, *args())
    left = [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    assert not left or f not in COMPILED


def test_gradients_of_loops_that_catch():
    def f(x):
        total = 0.0
        for i in range(len(x) + 1):
            try:
                total += x[i + 1] * x[i]
            except IndexError:
                total += 1
        return total

    x = np.arange(1.0, 5)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        onp.testing.assert_allclose(g(x), [2.0, 4.0, 6.0, 3.0])


def test_a_call_that_raises_leaves_loops_compiled():
    """Of the same types, for calls of this function jitted anew, too."""

    def f(x, n):
        total = 0
        for s in range(n):
            part = np.ones((3, 4))
            for k in range(4):
                part[2, k] = k + s
            total += int(np.sum(x * part[2]))
        return total

    calls = [(onp.ones(4), ""), (onp.ones(3), "broadcast"), (onp.full(4, onp.nan), "NaN")]
    for x, error in calls:
        if error:
            with pytest.raises(ValueError, match=error):
                jit(f)(x, 5)
        minnp.report(reset=True)
        assert jit(f)(onp.ones(4), 5) == f(onp.ones(4), 5)
        assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def of_numbers(m, a, u):
    return 3 % u


def of_a_matrix(m, a, u):
    return np.linalg.inv(np.eye(2) * u)


@pytest.mark.parametrize("last", [of_numbers, of_a_matrix])
def test_what_loops_wrote_before_an_error_behind_them(last):
    """One of two arguments is written in its place by the loop itself, the other one at the end."""

    def f(m, a, u):
        for i in range(6):
            m[i] = a[i] > 1
        for i in range(6):
            a[i] *= 2
        return last(m, a, u)

    g = jit(f)
    for u in (2, 2, 0, 2, 0):
        found, wanted = ((onp.zeros(6, bool), onp.arange(6.0)) for _ in range(2))
        if u:
            onp.testing.assert_array_equal(g(*found, u), f(*wanted, u))
        else:
            for h, given in ((g, found), (f, wanted)):
                with pytest.raises((ZeroDivisionError, onp.linalg.LinAlgError)):
                    h(*given, u)
        onp.testing.assert_array_equal(found[0], wanted[0])
        onp.testing.assert_array_equal(found[1], wanted[1])


def doubled(x, n):
    y = np.zeros(5)
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i] * 2
    return np.sum(y)


def doubled_from_the_end(x, n):
    y = np.zeros(5)
    for i in range(n - 1, -1, -1):
        k = i + 1
        if x[i] > 0 and k < 7:
            y[k - 1] = x[i] * 2
    return np.sum(y)


def first_ones(x, n):
    y = np.zeros(5)
    for i in range(n):
        if x[i] > 3:
            break
        y[i] = x[i] * 2
    return np.sum(y)


def those_before(x, n):
    y, k = np.zeros(5), 0
    for i in range(n):
        y[k] = x[i] * 2
        k = i // 2
    return np.sum(y)


@pytest.mark.parametrize("f", [doubled, doubled_from_the_end, first_ones, those_before])
def test_gradients_of_loops_check_indices_that_ways_may_not_come_to(f):
    slope = jit(grad(f))
    for at, n in [(None, 5), (None, 0), (None, 8), (6, 8), (5, 8), (3, 5), (None, 5), (6, 8)]:
        x = np.where(np.arange(8) < 5, 1.0, -1.0)
        if at is not None:
            x[at] = 4.0
        try:
            want = grad(f)(x, n)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error).split(",")[0]):
                slope(x, n)
        else:
            onp.testing.assert_array_equal(slope(x, n), want)


def test_loops_that_raise_at_once_are_left_to_python(monkeypatch):
    def squares(x, n):
        s = 0.0
        for i in range(n):
            s += x[i] ** 2
        return s

    monkeypatch.setattr(jit_module, "BRIEF", 1.0)  # however long a call takes on a busy machine
    looked, hand_over = [], runtime.hand_over
    monkeypatch.setattr(runtime, "hand_over", lambda *a: looked.append(a) or hand_over(*a))
    g, x = jit(squares), np.ones(5)
    for _ in range(300):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            g(x, 9)
    assert len(looked) < 150
    looked.clear()
    assert g(np.ones(100_000), 100_000) == 1e5
    assert looked


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_trunc_of_numbers_that_have_none(dtype):
    def f(a):
        s = 0
        for v in a:
            s += math.trunc(v)
        return s

    assert jit(f)(np.linspace(-3.5, 9.0, 20)) == f(onp.linspace(-3.5, 9.0, 20))
    for _ in range(3):
        with pytest.raises(TypeError, match="define __trunc__"):
            jit(f)(np.arange(20).astype(dtype))
