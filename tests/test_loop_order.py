"""The order in which Python reads the parts of an expression of which one changes what another one reads."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def wr(a, z):
    a[0] = a[0] * 0.5 + z
    return a[0]


def elements(a, x):
    a, s = a.copy(), 0.0
    for v in x:
        s += a[0] + wr(a, v)
        s += max(a[0], wr(a, v)) * 3
        s += a[0] * wr(a, v) - a[0]
        t = (a[0], wr(a, v), a[0])
        s += t[0] - t[1] * 2 + t[2] * 3
        s += a.sum() * wr(a, v)
        s += (a * wr(a, v)).sum()
        s += 1.0 if a[0] < wr(a, v) else 7.0
        a[0] += wr(a, v)
    return s


def walrus(a, x):
    m = 1.0
    s = 0.0
    for v in x:
        s += m + (m := m * 0.5 + v)
        s += m * (m := m * 0.5 + v)
        s += 1.0 if m < (m := m * 0.5 + v) else 3.0
        m += (m := v * m)
        t = m, (m := v * m), m
        s += t[0] * t[1] - t[2]
        u = max(m, (m := m * 0.3 + v))
        s += u
        s += a[0] + (a[0] if v > 0 else (m := 2.0)) + m
    return s


def walrus_of_integers(a, x):
    m = 1
    s = 0
    for k in range(len(x)):
        s += m + (m := m * 3 % 7 + k)
        s += 1 if m < (m := m * 5 % 11) < m else 3
        s += (-m) * (m := m * 3 % 11)
        s += float(m) + (m := m * 3 % 11)
    return s


def wra(a, z):
    a[0] = a[0] * 0.5 + z
    return a


def expressions_of_arrays(a, x):
    a, s = a.copy(), 0.0
    for v in x:
        s += (a * 2 + wr(a, v)).sum()
        s += (a * 2 * wra(a, v)).sum()
        s += np.dot(a * 2, wra(a, v))
        s += np.where(a * 2 > 1, wr(a, v), a).sum()
        s += ((a * 2 < wra(a, v)) + a).sum()
    return s


class Number:
    def bump(o, z):
        o.m = o.m * 0.5 + z
        return o.m


def attributes(o, x):
    s = 0.0
    for v in x:
        s += o.m + o.bump(v)
        s += o.m * o.bump(v) - o.m
        s += max(o.m, o.bump(v))
    return s


def augmented(o, x):
    for v in x:
        o.m += o.bump(v)
    return o.m


class Vector:
    def step(o, z):
        o.a = o.a * 0.5 + z
        return o.a

    def write(o, z):
        o.a[0] = o.a[0] * 0.5 + z
        return o.a


def array_attributes(o, x):
    s = 0.0
    for v in x:
        s += (o.a + o.step(v)).sum()
        s += (o.a * o.step(v) - o.a).sum()
        s += (o.a * o.write(v) - o.a).sum()
        s += o.a @ o.step(v)
        s += (o.a + o.step(v).sum()).sum()
    return s


def walrus_of_arrays(o, x):
    a = np.ones(3)
    s = 0.0
    for v in x:
        s += (a + (a := a * 0.5 + v)).sum()
        s += (a * (a := a * 0.5 + v) - a).sum()
        s += a @ (a := a * 0.5 + v)
    return s


def closures(o, x):
    def cl(z):
        nonlocal a
        a = a * 0.5 + z
        return a

    a = np.ones(3)
    s = 0.0
    for v in x:
        s += (a + cl(v)).sum()
        s += (a * cl(v) - a).sum()
    return s


def number():
    o = Number()
    o.m = 1.0
    return o


def vector():
    o = Vector()
    o.a = np.array([1.0, 2.0])
    return o


PROGRAMS = [(f, lambda: np.array([1.0, 2.0])) for f in (elements, walrus, walrus_of_integers, expressions_of_arrays)]
PROGRAMS += [(attributes, number), (augmented, number)]
PROGRAMS += [(f, vector) for f in (array_attributes, walrus_of_arrays, closures)]


@pytest.mark.parametrize("f, make", PROGRAMS, ids=lambda f: getattr(f, "__name__", ""))
def test_values_and_gradients(f, make):
    minnp.report(reset=True)
    x, g = np.linspace(-1, 1, 30), jit(f)
    want = f(make(), x)
    for _ in range(3):
        numpy.testing.assert_allclose(g(make(), x), want, rtol=1e-12)
    if engine.available():
        assert not any(r["function"].startswith("loop in") for r in minnp.report(reset=True))
    if f is not walrus_of_integers:
        want = grad(f, 1)(make(), x)
        for g in (jit(grad(f, 1)), grad(jit(f), 1)):
            for _ in range(2):
                numpy.testing.assert_allclose(g(make(), x), want, rtol=1e-9, atol=1e-9)
