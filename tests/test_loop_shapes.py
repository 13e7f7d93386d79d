"""Derivatives of loops over arrays that are shown with other axes (reshape, ravel)."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine
from tests.derivatives import check_derivatives

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def shaped(y, n):
    s = 0.0
    for (i, j), v in np.ndenumerate(y.reshape(-1, 4)):
        s += v * v * (i - j)
    return s


def ravelled(y, n):
    A = y.reshape(3, 8) * 1.0
    s = 0.0
    for k, v in enumerate(A.T.copy().ravel()):
        s += v**3 * k
    return s


def inside(y, n):
    s = 0.0
    for k in range(3):
        B = (y * y[k]).reshape(2, 3, 4)
        for i in range(2):
            s += (B[i, :, k] ** 2).sum() * B[1, k - 1, 0]
        for v in B.ravel():
            s += v * y[k]
        C = B.reshape(6, 4)[::2]
        s += C[1, 2] * C[0, k]
    return s


def writes(y, n):
    A = y.copy()
    for k in range(4):
        A.reshape(4, 6)[k, :3] *= A[k]
        A.reshape(2, 12)[1, k] += A[0] ** 2
    return (A**2).sum()


def to_vector(y, n):
    A = y.reshape(4, 6)
    s = 0.0
    for k in range(24):
        s += A.ravel()[k] * A.reshape(-1)[23 - k] * k
    return s


def views(y, n):
    A = y.reshape(3, 8)
    s = 0.0
    for k in range(8):
        B = A[1:].reshape(-1)
        C = A[2].reshape(2, 4)
        s += B[k] * B[2 * k] * C[1, k % 4]
        D = A[:, None].reshape(2, 12)
        s += D[1, k] ** 2
    return s


def rebound(y, n):
    A = y * 1.0
    s = 0.0
    for k in range(3):
        A = (A.reshape(2, 12) * A.reshape(2, 12)[::-1]).ravel()
        s += A[k]
    return s + A.sum()


def lengths(y, n):
    s = 0.0
    for k in range(1, 5):
        B = y[: k * 4].reshape(k, 4)
        s += (B**2).sum(axis=0)[k - 1] * k
    return s


PROGRAMS = [shaped, ravelled, inside, writes, to_vector, views, lengths]


@pytest.mark.long
@pytest.mark.parametrize("f", [*PROGRAMS, rebound], ids=lambda f: f.__name__)
def test_derivatives(f):
    minnp.report(reset=True)
    check_derivatives(f, numpy.linspace(0.5, 1.2, 24))
    if engine.available() and f in PROGRAMS:
        assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


@pytest.mark.parametrize("f", [views, writes])
def test_other_strides(f):
    x, g = numpy.linspace(0.5, 1.2, 24), jit(grad(f))
    apart = numpy.zeros(48)
    apart[::2] = x
    for given in (np.array(x), np.array(apart)[::2], np.array(x), np.array(apart)[::2]):
        numpy.testing.assert_allclose(g(given, 0), grad(f)(np.array(x), 0), rtol=1e-9)
