"""Gradients of loops in which a name stands for one array and then for another, and what it stands for is written in
place: nobody else may see that write in another array, and who stands for the same array has to."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine

pytestmark = pytest.mark.skipif(not engine.available(), reason="llvmlite is not installed")


def doses(p, n):
    y, s = np.array([0.0, 0.0, 0.0]) + p[0], 0.0
    for t in range(n):
        if t % 5 == 0:
            y[0] += p[1]
        y = y + 0.1 * np.array([-y[0], y[0] - y[1], y[1] * 0.3])
        s += y[1] * y[2]
    return s


def written_then_bound(p, n):
    y = p.copy()
    for _ in range(n):
        y[0] = y[0] * 0.9
        y = y + 0.1 * y[::-1]
        y[1] -= 0.01 * y[0]
    return np.sum(y)


def rows_of_it(p, n):
    y = np.outer(p, p)
    for k in range(n):
        y[k % 2] *= p[1]
        y = y.T + 0.1
        y[:, 0] -= 0.5 * y[:, 1]
    return np.sum(y * y)


def chosen(p, n):
    a, kept, total = np.array([[0.9, 0.1], [0.2, 0.8]]), np.zeros((n + 1, 2)), 0.0
    for t in range(n):
        x = (p if t == 0 else kept[t - 1] @ a) * np.array([0.5, 0.6])
        kept[t] = x / x.sum()
        total += np.log(x.sum())
    return total


def by_branches(p, n):
    total = 0.0
    for t in range(n):
        if t % 3 == 0:
            x = p * t
        elif t % 3 == 1:
            x = np.sin(p)
        else:
            x = p[::-1] + t
        total += x[0] * x[1]
    return total


def another_name(p, n):
    y, s = p.copy(), 0.0
    for _ in range(n):
        z = y
        y[0] += 0.1
        s += z[0]
        y = y * 0.9
        z[1] = 5.0
    return np.sum(y) + s


def a_name_before(p, n):
    y, s = p * 1.0, 0.0
    for t in range(n):
        w = np.zeros(2) + p[1] * t
        y = w
        y[0] += p[0]
        s += w[0]
        y = y * 2
    return s + np.sum(y)


def in_a_tuple(p, n):
    y, s = p * 1.0, 0.0
    for _ in range(n):
        pair = (y, 1)
        y[0] += p[0]
        s += pair[0][0]
        y = y * 0.5
    return s + np.sum(y)


def the_argument_itself(p, n):
    y, s = p, 0.0
    for _ in range(n):
        y[0] += 0.1
        y = y * 0.5
        s += y[0]
    return s + np.sum(p)


def exchanged(p, n):
    a, b = p * 1.0, p * 2.0
    for _ in range(n):
        a[0] += 0.1 * b[1]
        a, b = b, a
        b[1] -= 0.05
    return np.sum(a * 3 + b)


def a_part_of_another(p, n):
    m = np.outer(p, p)
    y, s = m[0], 0.0
    for k in range(n):
        y[0] += p[1]
        s += m[k % 2, 0]
        y = m[k % 2]
    return s


def in_a_list(p, n):
    y, kept = p * 1.0, []
    for _ in range(n):
        kept.append(y)
        y[0] += 0.1
        y = y * p
    return np.sum(np.array(kept))


COMPILED = [doses, written_then_bound, rows_of_it, chosen, by_branches]
OTHERS = [another_name, a_name_before, in_a_tuple, the_argument_itself, exchanged, a_part_of_another, in_a_list]
P = np.array([0.5, 0.9])


@pytest.mark.parametrize("f", COMPILED + OTHERS)
def test_gradients_are_the_eager_ones(f):
    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        minnp.report(reset=True)
        compiled = make(f)
        for n in (30, 30, 41):
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10)
        left = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
        assert f in OTHERS or left == []
        for n in (2, 1, 0):
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10)
    assert P.tolist() == [0.5, 0.9] or f is the_argument_itself
    P[:] = [0.5, 0.9]


@pytest.mark.parametrize("f", COMPILED)
def test_second_gradients_are_the_differences_of_the_first(f):
    slope = lambda p: np.sum(grad(f)(p, 12) * np.array([1.0, -0.5]))
    found = jit(grad(lambda p: np.sum(grad(f)(p, 12) * np.array([1.0, -0.5]))))(P)
    step = 1e-6
    for k in range(2):
        e = step * numpy.eye(2)[k]
        assert found[k] == pytest.approx((slope(P + e) - slope(P - e)) / (2 * step), rel=1e-5, abs=1e-5)


class Cell:
    def __init__(self, w):
        self.w, self.h, self.c = w, np.zeros(2), np.zeros(2)

    def step(self, x):
        z = np.tanh(self.w * x + self.h[::-1])
        self.c = 0.5 * self.c + z
        self.h = np.tanh(self.c) * z
        return self.h


def steps_of_an_object(p, n):
    cell, total = Cell(p), 0.0
    for k in range(n):
        total += np.sum(cell.step(k * 0.1) ** 2)
    return total + np.sum(cell.c)


def an_attribute_kept_before(p, n):
    cell = Cell(p)
    kept = cell.h
    for k in range(n):
        cell.h = 0.9 * cell.h + np.tanh(cell.w * k + cell.c)
    return np.sum(cell.h) + np.sum(kept)


def attributes_exchanged(p, n):
    cell = Cell(p)
    cell.h = cell.h + p
    for _ in range(n):
        cell.h, cell.c = cell.c, cell.h * cell.w
    return np.sum(cell.h + 2 * cell.c)


@pytest.mark.parametrize("f", [steps_of_an_object, an_attribute_kept_before, attributes_exchanged])
def test_arrays_that_are_attributes(f):
    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        minnp.report(reset=True)
        compiled = make(f)
        for n in (30, 30, 41):
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10)
        left = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
        assert f is attributes_exchanged or left == []
        for n in (2, 1, 0):
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10)
