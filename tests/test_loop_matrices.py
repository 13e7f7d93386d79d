"""np.linalg in compiled loops: values and errors are NumPy's, derivatives those of differences."""

from __future__ import annotations

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.llvm import engine
from minnp.testing import check_grads

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def solved(A, b):
    out = np.zeros((len(A), *b.shape), dtype=b.dtype)
    for t in range(len(A)):
        out[t] = np.linalg.solve(A[t], b)
    return out


def inverses(A, b):
    x = b
    for t in range(len(A)):
        x = np.linalg.inv(A[t]) @ x / 2
    return x


def determinants(A, b):
    total = b[0] * 0
    for t in range(len(A)):
        total = total + np.linalg.det(A[t]) * b[0]
    return total


def triangles(A, b):
    x = b
    for t in range(len(A)):
        x = np.linalg.cholesky(A[t] @ A[t].T + 2 * np.eye(len(b))) @ x / 3
    return x


PROGRAMS = {f.__name__: f for f in (solved, inverses, determinants, triangles)}


def matrices(dtype, n=4, count=12, seed=0):
    rng = onp.random.default_rng(seed)
    A, b = rng.standard_normal((count, n, n)), rng.standard_normal(n)
    if onp.dtype(dtype).kind == "c":
        A, b = A + 1j * rng.standard_normal(A.shape), b + 1j * rng.standard_normal(n)
    return A.astype(dtype), b.astype(dtype)


# complex triangles are Python's, and with NumPy 1 small numbers
KINDS = [(name, dtype) for name in PROGRAMS for dtype in ("f8", "f4", "c16") if (name, dtype[0]) != ("triangles", "c")]
KINDS = [(name, dtype) for name, dtype in KINDS if dtype != "f4" or (name != "triangles" and onp.__version__ >= "2")]


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_values_are_numpys(name, dtype):
    f = PROGRAMS[name]
    minnp.report(reset=True)
    g = jit(f)
    for seed in range(3):
        A, b = matrices(dtype, seed=seed)
        got, want = g(np.array(A), np.array(b)), f(np.array(A), np.array(b))
        assert got.dtype == want.dtype and got.shape == want.shape
        onp.testing.assert_allclose(got, want, rtol=2e-4 if dtype == "f4" else 1e-10)
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]


def test_several_right_sides_and_rows_that_are_exchanged():
    A = np.array([[[0.0, 2.0], [1.0, 3.0]]] * 9 + [[[1e-20, 1.0], [1.0, 1.0]]])
    b = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    onp.testing.assert_allclose(jit(solved)(A, b), [onp.linalg.solve(a, b) for a in A.asnumpy()], rtol=1e-12)


SINGULAR = [
    onp.array([[1.0, 2.0], [2.0, 4.0]]),
    onp.arange(1.0, 10.0).reshape(3, 3),  # which LAPACK may call regular
    onp.zeros((2, 2)),
    onp.array([[1.0, 2.0], [3.0, onp.nan]]),
    onp.ones((2, 3)),
    onp.ones((0, 0)),
]


@pytest.mark.parametrize("last", SINGULAR, ids=lambda a: str(a.shape))
@pytest.mark.parametrize("what", ["inv", "det", "cholesky"])
def test_what_is_singular_is_numpys(last, what):
    function = getattr(np.linalg, what)

    def f(first, last):
        out = np.zeros(12)
        with np.errstate(invalid="ignore"):
            for t in range(12):
                out[t] = np.sum(function(first if t < 9 else last))
        return out

    first = np.eye(3) * 2
    try:
        want = f(first, np.array(last))
    except onp.linalg.LinAlgError as error:
        for g in [jit(f)] * 2:
            with pytest.raises(onp.linalg.LinAlgError) as raised:
                g(first, np.array(last))
            assert str(raised.value) == str(error)
        return
    onp.testing.assert_array_equal(jit(f)(first, np.array(last)), want)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_to_second_order(name):
    A, b = matrices("f8", n=3, count=4)
    minnp.report(reset=True)
    g = jit(PROGRAMS[name])
    check_grads(lambda A, b: np.sum(np.sin(g(A, b))), (np.array(A + 2 * onp.eye(3)), np.array(b)), order=2)
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]


def test_names_of_the_users_do_not_matter():
    def f(A, b):
        abs = len = range = None  # what elimination reads is not the caller's
        total = 0.0
        for a in A:
            total = total + np.linalg.det(a)
        return total, abs, len, range

    A, b = matrices("f8")
    onp.testing.assert_allclose(jit(f)(np.array(A), b)[0], onp.linalg.det(A).sum(), rtol=1e-10)


def test_interpolation_is_numpys():
    def looked_up(x, xp, fp):
        out = np.zeros(len(x))
        for k in range(len(x)):
            out[k] = np.interp(x[k], xp, fp)
        return out

    rng, compiled = onp.random.default_rng(0), jit(looked_up)
    minnp.report(reset=True)
    for n in (1, 2, 3, 9, 9, 9):
        xp, fp = np.sort(rng.standard_normal(n)), rng.standard_normal(n)
        x = onp.concatenate([xp, rng.uniform(-3, 3, 20), [onp.nan, onp.inf, -onp.inf]])
        for values in (fp, onp.where(onp.arange(n) == n // 2, onp.inf, fp)):
            with onp.errstate(invalid="ignore"):
                onp.testing.assert_array_equal(compiled(*map(np.array, (x, xp, values))), onp.interp(x, xp, values))
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_gradients_of_interpolation():
    def total(x, xp, fp):
        s = 0.0
        for k in range(len(x)):
            s += np.interp(x[k], xp, fp) * (k + 1)
        return s

    rng = onp.random.default_rng(1)
    for n in (1, 2, 7):
        xp, fp = onp.sort(rng.standard_normal(n)), rng.standard_normal(n)
        for x in (rng.uniform(-3, 3, 15), onp.concatenate([xp, rng.uniform(-3, 3, 15)])):  # and at the points
            for argnum in range(3):
                eager = minnp.grad(total, argnum)(*map(np.array, (x, xp, fp)))
                for make in (lambda f: jit(minnp.grad(f, argnum)), lambda f: minnp.grad(jit(f), argnum)):  # noqa: B023
                    onp.testing.assert_allclose(make(total)(*map(np.array, (x, xp, fp))), eager, rtol=1e-9, atol=1e-9)


def turned(x, p):
    total, axis = 0.0, np.array([0.3, -1.0, 0.5])
    for k in range(len(x)):
        axis = np.cross(x[k], axis) * 0.7 + np.cross(axis, x[0])
        total += np.polyval(p, axis[0]) + np.polyval(p, k)
    return total + axis


def test_cross_products_and_polynomials():
    rng = onp.random.default_rng(2)
    x, p = np.array(rng.standard_normal((20, 3)) * 0.5), np.array(rng.standard_normal(4))
    minnp.report(reset=True)
    compiled = jit(turned)
    for _ in range(3):
        onp.testing.assert_allclose(compiled(x, p), turned(x, p), rtol=1e-12)
    for argnum in range(2):
        loss = lambda x, p: turned(x, p).sum()
        onp.testing.assert_allclose(
            jit(minnp.grad(loss, argnum))(x, p), minnp.grad(loss, argnum)(x, p), rtol=1e-8, atol=1e-12
        )
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    old = onp.lib.NumpyVersion(onp.__version__) < "2.5.0"
    with pytest.raises(ValueError, match="dimension must be 2 or 3" if old else "3-dimensional vectors"):
        jit(turned)(np.ones((20, 4)), p)
