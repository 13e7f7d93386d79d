"""NumPy's functions, and Python's, in compiled loops: their values and slopes, at singular points as well."""

from __future__ import annotations

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import fx, grad, jit, jvp, vmap
from minnp.core.llvm import engine

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
POINTS = [0.0, 1.0, -1.0, onp.nan, onp.inf, -onp.inf, 0.5, -0.5, 1.4, 2.5]


def signs(x, y):
    for k in range(len(x)):
        y[k] = y[k - 1] * 0 + np.sign(x[k])
    return y


def roots(x, y):
    for k in range(2):
        y[k:] = x[k:] ** 0.5
    return y


def inverses(x, y):
    for k in range(len(x)):
        y[k] = np.reciprocal(x[k])
        y[k:] += x[k:] ** -1
    return y


def hyperbolic(x, y):
    for k in range(len(x)):
        y[k] = np.arcsinh(x[k]) + np.arccosh(x[k]) + np.arctanh(0.5 * x[k])
    return y


def rounded(x, y):
    for k in range(len(x)):
        y[k] = np.rint(x[k]) + np.round(x[k] * 1.37, 1) + np.around(123 * x[k], -1)
    y[1:] += np.round(x[1:])
    return y


def angles(x, y):
    for k in range(len(x)):
        y[k] = np.degrees(x[k]) + np.deg2rad(y[k - 1])
    return y


def shares(x, y):
    for k in range(len(x)):
        y[k] = np.logaddexp(x[k], 0.1) - np.logaddexp2(0.2, x[k])
    return y


def chosen(x, y):
    total = 0.0
    for k in range(len(x)):
        z = np.where(x[k] > 0, x[k], -1)
        y[k] = z
        total += np.where(z > 1, 0.5, z) * z
        if np.where(z > 2, True, False):
            y[k] += np.where(total > 0, 3, 4)
    y[0] += total
    return y


@pytest.mark.parametrize("f", [signs, roots, inverses, hyperbolic, rounded, angles, shares, chosen])
def test_functions_of_numbers(f):
    loss = lambda x: np.sum(f(x, np.zeros(len(x))))
    directional = lambda x: jvp(lambda x: f(x, np.zeros(len(x))), (x,), (np.ones(len(x)),))[1]
    compiled, slope, tangent = jit(f), jit(grad(loss)), jit(directional)
    minnp.report(reset=True)
    for point in POINTS:
        x = np.array([point, 0.3, 1.7])
        onp.testing.assert_allclose(compiled(x, np.zeros(3)), f(x, np.zeros(3)), rtol=1e-13)
        onp.testing.assert_allclose(slope(x), grad(loss)(x), rtol=1e-12)
        onp.testing.assert_allclose(tangent(x), directional(x), rtol=1e-12)
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]


def test_the_norm_of_zeros_has_the_slope_zero():
    def f(x):
        total = 0.0
        for k in range(3):
            total += np.linalg.norm(x[k:]) * (k + 1)
        return total

    for x in (np.zeros(5), np.array([0.0, 0, 3, 4, 0])):
        for g in (jit(grad(f)), grad(jit(f))):
            onp.testing.assert_allclose(g(x), grad(f)(x), rtol=1e-14)


def test_an_array_without_axes_stays_one():
    def f(x):
        for k in range(len(x)):
            y = np.where(x[k] > 0, x[k], 0.0)
        return y

    for g in (f, jit(f)):
        assert type(g(np.ones(3))) is np.ndarray and g(np.ones(3)).shape == ()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?"])
def test_pythons_sums_of_arrays(dtype):
    """Which have another order, and other dtypes, than NumPy's."""

    def f(x):
        for k in range(2):
            total = sum(x[k:])
        return total

    def g(x):
        for k in range(2):
            least, most = min(x[k:]), max(x)
        return least, most

    x = np.array([3.3, -0.0, 250.7, 0.1, 0.2]).astype(dtype)
    for h in (f, g):
        compiled = jit(h)
        for y in (x, x[:2], x[2:]):
            found, wanted = compiled(y), h(y)
            assert onp.array_equal(found, wanted)
            assert onp.asarray(found).dtype == onp.asarray(wanted).dtype
    total = jit(f)
    assert total(x) == f(x)
    assert type(total(x[:1])) is int  # of none: Python's 0
    with pytest.raises(ValueError, match="empty"):
        jit(g)(x[:1])


def test_slopes_at_the_ends_of_arcsin_and_arccos():
    for point in (1.0, -1.0):
        assert grad(np.arcsin)(point) == onp.inf
        assert grad(np.arccos)(point) == -onp.inf


def volatility(x, n):
    variance, out = 0.0, np.zeros(len(x))
    for k in range(len(x)):
        variance = 0.9 * variance + 0.1 * x[k] ** 2 if k != n else variance
        out[k] = variance**0.5
        deviation = (variance - n) ** 1.5
    return out, deviation, variance


def neighbours(x, n):
    cells = x > 0
    new, counts = np.zeros_like(cells), np.zeros(len(x), np.int8)
    for i in range(len(x)):
        s = 0
        for j in range(-1, 2):
            if j:
                s += cells[(i + j) % len(x)]
        new[i] = s == n or (cells[i] and s == 1)
        counts[i] = s if i else 2
    return new, counts


def items(x, n):
    found = []
    for k in range(len(x)):
        z = x[k] * 1j if k % 2 else x[k]
        found.append(z if k != n else 0)
        found.append(x[k] and z)
        found.append(np.power(x[k], 0.5 + (k == n)))
    return found


def parts(x, n):
    z = x * 1j
    return [complex(x[k], z[k]) for k in range(len(x))], complex(n, z[0])


def quotients(x, n):
    z = x * (1 + 2j)
    for k in range(len(x)):
        z[k:] /= x[k] * (k != n)
        z[k] /= k != n
    return z


@pytest.mark.filterwarnings("ignore:complex\\(\\) argument 'imag' must be a real number")  # since Python 3.14
@pytest.mark.parametrize("f", [volatility, neighbours, items, parts, quotients])
def test_numbers_of_several_types(f):
    compiled = jit(f)
    for x in (onp.linspace(-1, 2, 7), onp.array([-0.0, 0.25]), onp.array([onp.inf, -1, onp.nan]), onp.ones(1)):
        for n in (0, 1, 2):
            with onp.errstate(all="ignore"):
                found, wanted = compiled(np.array(x), n), f(np.array(x), n)
            assert repr(found) == repr(wanted)


def first_quiet(x, n):
    quiet, locked = 0, None
    for k in range(len(x)):
        if abs(x[k]) < 1:
            quiet += 1
            if quiet > n and locked is None:
                locked = k
        else:
            quiet = 0
    return quiet, locked


def least(x, n):
    best = at = None
    for k in range(len(x)):
        if best is None or x[k] < best:
            best, at = x[k], k
    return best, at


def hit(x, n):
    found = None
    for k in range(len(x)):
        if x[k] > n:
            found = k
            return found, x[k]
    return found, 0.0


def first_of_each(x, n):
    out = np.zeros(3)
    for k in range(3):
        first = None
        for i in range(len(x)):
            if x[i] > k * n:
                first = i
                break
        if first is not None:
            out[k] = x[first]
    return out, first


def steps(x, n):
    before, total = None, 0.0
    for v in x:
        last = before
        before = v
        if last is not None:
            total += abs(v - last)
    return total, before, last


def read_too_early(x, n):
    b = None
    for v in x:
        if v > 0:
            b = v
        y = b + n
    return y


NONES = [first_quiet, least, hit, first_of_each, steps]


@pytest.mark.parametrize("f", NONES)
def test_variables_that_are_none_until_something_happens(f):
    compiled = jit(f)
    minnp.report(reset=True)
    for x in (onp.linspace(2, -1, 7), -onp.ones(3), onp.array([onp.nan, 1, 2]), onp.ones(1), onp.linspace(0, 3, 5)):
        for n in (0, 1, 2):
            assert repr(compiled(np.array(x), n)) == repr(f(np.array(x), n))
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]


def test_what_none_is_no_number_for():
    compiled, x = jit(read_too_early), np.linspace(1, 2, 4)
    for _ in range(2):
        assert compiled(x, 1) == 3
        with pytest.raises(TypeError, match="NoneType"):
            compiled(-x, 1)
    with pytest.raises(UnboundLocalError):
        jit(steps)(x[:0], 1)


def test_slopes_and_batches_of_variables_that_are_none():
    loss = lambda x: least(x * x, 0)[0] * 3 + steps(x, 0)[0]
    x = np.array([[1.0, -0.5, 2.0, 0.75], [0.25, 3.0, -1.0, 0.5]])
    for row in x:
        for g in (jit(grad(loss)), grad(jit(loss))):
            onp.testing.assert_allclose(g(row), grad(loss)(row), rtol=1e-14)
    for g in (vmap(jit(loss)), jit(vmap(loss))):
        onp.testing.assert_allclose(g(x), [loss(row) for row in x], rtol=1e-14)


def test_printed_variables_that_are_none():
    module = fx.capture(lambda x: first_quiet(x, 1), np.linspace(-2, 2, 9))
    for x in (np.linspace(-2, 2, 9), np.linspace(-2.4, 2, 9), np.linspace(2, -2, 9)):
        names = {"np": np}
        exec(module.code, names)
        assert names["forward"](module, x) == module(x) == first_quiet(x, 1)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
def test_searches(dtype):
    def f(x, v):
        places, behind = np.zeros(len(v), int), np.zeros(len(v), int)
        for k in range(len(v)):
            places[k] = np.searchsorted(x, v[k])
            behind[k] = x[::2].searchsorted(v[k], "right") + np.searchsorted(x, 2, side="left")
        return places, behind, np.searchsorted(x, v[0])

    compiled = jit(f)
    minnp.report(reset=True)
    for x in ([0.0, 1, 1, 2, 5, onp.nan, onp.nan], [], [3.0, 1, 2, 5, 0]):  # sorted, empty, and not sorted
        x = onp.array([k for k in x if k == k or dtype[0] == "f"]).astype(dtype)
        for v in ([0.0, 1, 1.5, 2, 9, onp.nan, onp.inf], [0, 1, 2, 7], [True, False]):
            found, wanted = compiled(np.array(x), np.array(v)), f(x, onp.array(v))
            assert repr(found) == repr(wanted)
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]


class Cell:
    def __init__(self, w):
        self.w, self.calls = w, 3

    def __call__(self, x, h=0.5):
        return np.tanh(self.w @ x + h) * self.calls


def test_objects_that_are_called():
    cell = Cell(np.array([[0.5, -1.0], [0.25, 2.0]]))

    def f(x):
        h = np.zeros(2)
        for k in range(len(x)):
            h = cell(x[k], h) + cell(x[k])
        return h

    compiled, x = jit(f), np.linspace(-1, 1, 8).reshape(4, 2)
    minnp.report(reset=True)
    for calls in (3, 2, 1):
        cell.calls = calls
        onp.testing.assert_allclose(compiled(x), f(x), rtol=1e-14)
        slope = grad(lambda x: np.sum(compiled(x)))
        onp.testing.assert_allclose(slope(x), grad(lambda x: np.sum(f(x)))(x), rtol=1e-13)
    cell.w = cell.w * 2
    onp.testing.assert_allclose(compiled(x), f(x), rtol=1e-14)
    assert not [r for r in minnp.report() if r["function"].startswith("loop in")]
