"""np.float32(x) of a traced number: jit keeps its gradient, in compiled loops and in Python; without jit it raises."""

import numpy
import pytest

import minnp.numpy as np
from minnp import grad, jit, value_and_grad
from minnp.core.llvm import engine
from minnp.errors import TracedValueError


def in_a_list(x, w):
    found = []
    for v in x:
        found.append(np.float32(v) * w)
    return np.array(found).sum()


def in_a_sum(x, w):
    s = 0.0
    for v in x:
        s += numpy.float32(v * w) ** 2
    return s


def without_a_loop(x, w):
    return np.float32(x[0]) * w + np.float64(w)


@pytest.mark.skipif(not engine.available(), reason="without llvmlite jit runs the function's own code")
@pytest.mark.parametrize("f", [in_a_list, in_a_sum, without_a_loop])
@pytest.mark.parametrize("n", [1, 5, 50])
def test_jit_keeps_the_gradient(f, n):
    x, w = numpy.linspace(0.1, 1, n), 0.7
    first = {in_a_list: numpy.full(n, w), in_a_sum: 2 * x * w**2, without_a_loop: numpy.eye(1, n)[0] * w}[f]
    second = {in_a_list: x.sum(), in_a_sum: (2 * x**2 * w).sum(), without_a_loop: x[0] + 1}[f]
    for g in (jit(grad(f, (0, 1))), grad(jit(f), (0, 1)), lambda x, w: value_and_grad(jit(f), (0, 1))(x, w)[1]):
        for _ in range(3):
            by_x, by_w = g(np.array(x), w)
            numpy.testing.assert_allclose(by_x, first, rtol=1e-6)
            numpy.testing.assert_allclose(by_w, second, rtol=1e-6)
    a, b = f(x, w), jit(f)(np.array(x), w)
    assert a == b and type(a) is type(b)


def test_without_jit_it_raises():
    with pytest.raises(TracedValueError, match=r"x.astype\(np.float32\) for np.float32\(x\)"):
        grad(without_a_loop)(np.array([1.0, 2.0]), 0.5)
