"""Names in loops that stand for arrays of other lengths from turn to turn, and their derivatives."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, jvp, vmap
from minnp.core.llvm import engine
from tests.derivatives import central

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def python_loops():
    return [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def tree(K, n):
    v = np.maximum(np.linspace(50, 150, 2 * n + 1) - K, 0)
    while len(v) > 1:
        v = 0.99 * (0.3 * v[2:] + 0.4 * v[1:-1] + 0.3 * v[:-2])
    return v[0]


def shrinks(v):
    s = 0.0
    while len(v) > 1:
        v = 0.5 * (v[2:] * v[:-2] + v[1:-1] ** 2)
        s += v[0] * len(v)
    return s


def stays(v):
    while len(v) > 3:
        v = v[1:] * v[:-1] + 0.1
    return (v**2).sum()


def two(v):
    w = v * 2
    for _k in range(6):
        w = 0.5 * w[1:] + 0.3 * v[:-1] ** 2
        v = v[:-1] * w + 0.2
    return (v * w).sum() + len(w)


def matrix(A):
    while A.shape[0] > 1:
        A = A[1:, 1:] * A[:-1, :-1] - A[1:, :-1] * A[:-1, 1:]
    return A[0, 0]


def grows(v):
    s = 0.0
    w = v[:1]
    for k in range(len(v) - 1):
        w = np.concatenate((w * 0.9, v[k : k + 1]))
        s += (w * w).sum()
    return s


def halves(v):
    while len(v) > 1:
        v = (v[::2] + v[1::2]) * v[::2]
    return v[0]


def written(v):
    s = 0.0
    while len(v) > 2:
        v = v[1:] * v[:-1]
        v[0] += 0.3 * v[1]
        s += v[-1]
    return s + v.sum()


def one_way_or_another(v):
    """How often it runs depends on the numbers."""
    while v.sum() > 1:
        v = v[1:] * v[:-1] * 0.9
    return (v**2).sum() * len(v)


def line(n):
    return numpy.linspace(0.2, 1.1, n)


CASES = {
    shrinks: lambda: line(25),
    stays: lambda: line(25),
    two: lambda: line(12),
    matrix: lambda: numpy.random.default_rng(0).random((4, 4)) + numpy.eye(4),
    grows: lambda: line(9),
    halves: lambda: line(32),
    written: lambda: line(21),
    one_way_or_another: lambda: line(12),
}


@pytest.mark.long
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_derivatives(f):
    minnp.report(reset=True)
    x = CASES[f]()
    t = numpy.cos(numpy.arange(float(x.size))).reshape(x.shape)
    turned = lambda x: (grad(f)(x) * t).sum()
    first, second = central(f, x), central(lambda x: float(turned(np.array(x))), x)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        for _ in range(3):
            numpy.testing.assert_allclose(g(np.array(x)), first, rtol=1e-5, atol=1e-7)
    numpy.testing.assert_allclose(jit(grad(turned))(np.array(x)), second, rtol=1e-4, atol=1e-6)
    numpy.testing.assert_allclose(jvp(jit(f), (np.array(x),), (np.array(t),))[1], (first * t).sum(), rtol=1e-5)
    batch = numpy.stack([x, x * 0.5, x - 0.1])
    numpy.testing.assert_allclose(vmap(jit(f))(np.array(batch)), [f(b) for b in batch], rtol=1e-12)
    if engine.available():
        assert python_loops() == [] or f is grows


def test_another_length_at_the_end_in_each_call():
    given = lambda v: grad(lambda x: (last(x)[0] ** 2).sum())(v)

    def last(v):
        w = v
        while w.sum() > 1:
            w = w[1:] * w[:-1] * 0.9
        return w, len(w)

    compiled = [(jit(grad(one_way_or_another)), grad(one_way_or_another)), (jit(given), given)]
    for scale in (1, 0.5, 1.2, 0.8, 0.3, 1, 0.5, 1.2, 0.2, 0.9):
        for g, f in compiled:
            x = line(12) * scale
            numpy.testing.assert_allclose(g(np.array(x)), f(np.array(x)), rtol=1e-9)


def test_a_price_in_a_tree():
    want = grad(tree)(100.0, 20)
    minnp.report(reset=True)
    g = jit(grad(tree))
    for _ in range(3):
        numpy.testing.assert_allclose(g(100.0, 20), want, rtol=1e-12)
    if engine.available():
        assert python_loops() == []
