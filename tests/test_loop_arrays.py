"""Arrays made, chosen and shown otherwise in loops: values, types, errors and what is written, as NumPy has them."""

import linecache
import math
import warnings

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")

# One line each, run 40 times with k = 0, 1, ...; s adds up what it says.
READS = """
s += a[m].sum()
s += a[a > 0.5][0]
s += (a[m] * a[m]).sum() + len(a[m])
s += np.mean(a[m]) + a[m].max() + (a[m] * b[m] + k).sum()
s += A[m2].sum()
s += A[m2].mean() + np.sum(A[m2] * 2 - A[m2])
s += A[m5].sum()
s += A[m5].shape[0] * 10 + A[m5].shape[1]
s += A[A[:, 0] > 0.3][:, 1].sum()
s += a[i].sum()
s += a[i[k % 3 :]][0]
s += A[r, i5].sum()
s += A[r, 1].sum()
s += A[k % 5, i5].sum()
s += A[r].sum() + A[r].shape[1]
s += A[r, 1:3].sum()
s += A[:, i5].sum()
s += A[1:3, i5].sum()
s += B[:, r, i5].sum()
s += A[r[:, None], i5[None, :]].sum()
s += a[-i].sum()
s += a[m & (a > 0.2)].sum()
s += np.nonzero(a > 0.5)[0].sum()
s += np.count_nonzero(m)
s += np.array([a[0], s, 1.0]).sum() * 0.5
s += np.array([1, k, 3])[k % 3]
s += np.array([[a[0], a[1]], [a[2], a[3]]])[k % 2, 1]
s += np.array([a, b])[k % 2].sum()
s += np.concatenate((a, b[k % 7 :])).sum()
s += np.concatenate((A, A[: k % 5]), axis=0).shape[0]
s += np.concatenate((A, A * 2), axis=1)[k % 5].sum()
s += np.hstack((a, b))[k % 7] + np.vstack((a, b))[1, k % 7]
s += np.stack((a, b))[0].sum() + np.stack((a, b), axis=1)[0].sum()
s += np.hstack((A, A))[k % 5].sum()
s += np.arange(k).sum() + np.arange(2, k).sum() + np.arange(1, k, 3).sum()
s += np.arange(6).reshape(2, 3)[k % 2, 1]
s += np.eye(3)[k % 3, k % 2] + np.identity(4)[1, k % 4]
s += np.outer(a, b)[k % 7].sum()
s += np.inner(a, b * k) + np.vdot(a[k % 3 :], b[k % 3 :]) + np.vdot(A, A * 2 + k)
s += np.vdot(c, c * 1j * k).imag + np.vdot(c, c[::-1]).real + np.vdot(a[:3], c).imag + np.vdot(c, a[:3]).imag
s += np.add.outer(a, b)[:, k % 7].sum()
s += np.minimum(A, np.add.outer(A[:, k % 4], A[k % 5])).sum()
s += a.reshape(7, 1)[k % 7, 0] + A.reshape(-1)[k] if k < 20 else 1.0
s += A.reshape((4, 5))[k % 4].sum()
s += A.ravel()[k % 20] + A.flatten()[k % 20]
s += np.ravel(A)[k % 20] + np.reshape(A, (2, -1))[1].sum()
s += np.flip(a)[k % 7] + np.flip(A)[k % 5, 0] + np.flip(A, axis=1)[k % 5, 0]
s += np.roll(a, k)[0] + np.roll(a, -k)[0] + np.roll(A, k, axis=0)[0, 0] + np.roll(A, 2, axis=1)[k % 5, 0]
s += np.transpose(B, (2, 0, 1))[k % 4].sum() + B.transpose(1, 2, 0)[k % 5, 0].sum()
s += np.cumsum(a)[k % 7] + a.cumsum()[0]
s += np.linalg.norm(a * k) + np.linalg.norm(A)
s += np.tril(A)[k % 5].sum() + np.triu(A, 1)[k % 5].sum() + np.triu(A, k % 3 - 1).sum()
s += a.astype(np.float32)[k % 7] + i.astype(float)[0]
s += np.sum(A, axis=0)[k % 4] + np.sum(A, axis=1)[k % 5] + A.sum(axis=-1)[0]
s += np.sum(B, axis=(0, 2))[k % 5] + np.max(B, axis=(1, 2))[k % 3] + B.sum(axis=(0, 1))[k % 4]
s += np.mean(B, axis=0)[k % 5, 0] + np.mean(A, axis=(0, 1)) + np.mean(A)
s += np.sum(A, axis=1, keepdims=True)[k % 5, 0] + np.max(A, axis=0, keepdims=True)[0, k % 4]
s += (A / np.sum(A, axis=1, keepdims=True))[k % 5].sum()
s += np.var(a) + np.std(A) + np.var(A, axis=0)[k % 4] + np.std(A, axis=1)[k % 5]
s += np.argmax(A) + np.argmin(A[k % 5]) + np.argmax(A, axis=0)[k % 4] + A.argmax()
s += np.prod(A, axis=0)[k % 4] + np.prod(a)
s += (A @ A.T)[k % 5].sum() + np.dot(A.T, A)[k % 4, 0]
s += np.matmul(A * k, A.T + 1)[k % 5, 1]
s += np.any(A > 0.9, axis=0)[k % 4] + np.all(A > 0.1, axis=1)[k % 5]
s += np.exp(c)[k % 3].real + abs(c[k % 3] ** 2) + (c**2)[k % 3].imag
s += A[:, 0:1].shape[1] + (A[:, 0:1] * A).sum() + (A[k % 5 : k % 5 + 1] + A).sum()
s += (one + a).sum() + (A * column).sum() + (one + column).sum()
s += a[slice(k % 3, 5)].sum() + a[slice(None, None, 2)].sum() + a[slice(k % 7)].sum()
s += a[:: k % 3 + 1].sum() + a[k % 4 : 7 : k % 2 + 1].sum()
s += (A if k % 2 else A.T)[k % 4].sum()
""".strip().splitlines()

WRITES = """
a[m] = k
a[a > 0.5] = a[a > 0.5] ** 2
a[a > 0.5] *= 0.5
a[m] = b[m] + a[m]
a[m] += b[m]
near = a > 0.3; a[near] += np.sqrt(a[near]) * k; s += a[near].sum()
near = m[1:]; a[1:][near] = a[:-1][near] * 2
near = A > 0.3; A[near] = A[near] ** 2 - A[near] * A.T.sum()
near = abs(c) < 0.9; c[near] = c[near] ** 2 + c[near]; s += abs(c).sum()
a[i] = k
a[i] = b[: len(i)]
a[i] += 1
a[i] -= b[: len(i)]
A[m2] = k
A[m2] += A[m2]
A[m5] = a[:4]
A[r, i5] = k
A[r, i5] += a[: len(r)]
A[r] = a[:4]
A[r, 1:3] = 0.5
A[:, i5] = a[:5, None]
a[-i] = s
a[::2][m[::2]] = k
A.T[i5] = 1.5
A.reshape(-1)[k % 20] = k
A[k % 5][m[:4]] = k
b[:: k % 3 + 1] = k
b[slice(k % 3, 5)] = a[slice(k % 3, 5)]
h[k % 7] = np.array([a[0], 2.0, s])[k % 3]
a[:] = np.roll(a, 1) + b
a[:] = a[::-1]
b += np.flip(b)
A[:] = np.minimum(A, A[:, k % 4 : k % 4 + 1] + A[k % 5, :])
A[k % 5] = np.concatenate((a[:2], b[:2]))
a[:] = (a - np.mean(a)) / (np.std(a) + 1)
A *= 0.5; A -= A.max(axis=1, keepdims=True) * 0.1
A *= 0.5; A /= A.sum(axis=-1, keepdims=True) + 1
A *= 0.5; v = A[1:]; v -= np.where(v > v.mean(axis=1, keepdims=True), 0.1, v)
a *= 0.5; a -= np.add.outer(a, b) @ a * 0.01
a *= 0.5; M = np.outer(b, b); a -= M @ a
a *= 0.5; w = np.arange(len(a))[::-1] // 2; a -= a[w] * 0.2
""".strip().splitlines()

ERRORS = """
a[i + k] = 1.0
s += a[i + k].sum()
A[r, i5 + k // 2] += 1
a[m] = b[: k % 5]
s += a[m[:5]].sum()
s += np.concatenate((A, a)).sum()
s += a.reshape(3, k).sum()
s += (A @ a[: k % 6]).sum()
""".strip().splitlines()


def program(line):
    names = "a, b, A, B, c, m, m2, m5, i, i5, r, h, one, column, n"
    source = f"def f(np, {names}):\n    s = 0.0\n    for k in range(n):\n        {line}\n    return s\n"
    found = {"math": math}
    exec(compile(source, name := f"<line {line}>", "exec"), found)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    return found["f"]


def values():
    rng = numpy.random.default_rng(3)
    a, b, A, B = rng.random(7), rng.random(7), rng.random((5, 4)), rng.random((3, 5, 4))
    c = rng.random(3) + 1j * rng.random(3)
    i, i5, r = numpy.array([3, 1, 3, 6]), numpy.array([0, 3, 1]), numpy.array([4, 0, 2])
    m5 = numpy.array([True, False, True, True, False])
    return [a, b, A, B, c, a > 0.4, A > 0.5, m5, i, i5, r, numpy.zeros(7, "f4"), rng.random((1, 7)), rng.random((5, 1))]


def outcome(f, np, n):
    given = [np.array(x) for x in values()]
    try:
        out = f(np, *given, n)
        said = (type(out).__name__ if not isinstance(out, numpy.ndarray) else "float64", float(out))
    except (IndexError, ValueError) as error:
        said = type(error).__name__, str(error)
    return said, [numpy.asarray(x) for x in given]


def compared(line, n):
    f = program(line)
    want, wanted = outcome(f, numpy, n)
    compiled = jit(f, static="np")
    for _ in range(2):
        got, given = outcome(compiled, np, n)
        assert want[0] == got[0], (line, want, got)
        if isinstance(want[1], float):
            numpy.testing.assert_allclose(got[1], want[1], rtol=1e-12)
        else:
            assert got[1] == want[1]
        for x, y in zip(given, wanted):
            numpy.testing.assert_allclose(x, y, rtol=1e-12)
    return [r["why"] for r in minnp.report(reset=True) if r["backend"] == "python"]


@pytest.mark.long
@pytest.mark.parametrize("line", [*READS, *WRITES])
def test_lines(line):
    minnp.report(reset=True)
    said = compared(line, 12)
    assert not said or not engine.available()


@pytest.mark.parametrize("line", ["s += np.inner(A, A)[k % 5, 0]", "s += np.inner(a[:4], A)[k % 5]"])
def test_inner_products_with_matrices(line):
    compared(line, 12)


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line):
    with numpy.errstate(all="ignore"):
        compared(line, 12)


SMOOTH = [line for line in (*READS, *WRITES) if any(f"{x}[" in line or f"({x}" in line for x in ("a", "A"))][::4]


@pytest.mark.long
@pytest.mark.parametrize("line", SMOOTH)
def test_gradients(line):
    f = program(line)

    def loss(f, a, A):
        rest = [np.array(x) for x in values()]
        rest[0], rest[2] = a * 1.0, A * 1.0
        return f(np, *rest, 4) + np.sum(rest[0] ** 2) + np.sum(np.sin(rest[2]))

    a, _, A, *_ = map(np.array, values())
    compiled = jit(f, static="np")
    direct = minnp.grad(lambda a, A: loss(f, a, A), argnum=(0, 1))
    want, got = direct(a, A), minnp.grad(lambda a, A: loss(compiled, a, A), argnum=(0, 1))(a, A)
    for x, y in zip(want, got):
        numpy.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-12)
    for x, y in zip(want, jit(direct)(a, A)):
        numpy.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-12)


def halves(x, y):
    for i in range(3):
        x[x > 0] = x[x > 0] ** -1.5 + 0.25
        y[y != 0] = 1.0 / y[y != 0]
        y[x > 0.3] += x[x > 0.3]
        x[x < 0.1] = y[x < 0.1] if i else x[x < 0.1] - 1.0
        y[(y > 2) & (x > 0)] = (y - x)[(y > 2) & (x > 0)]
    return x, y


def moved(x, y):
    for _ in range(3):
        x[x > 0] = (x := x[::-1])[x > 0]
        y[x > 0] = x[x > 0] + (x[x > 0][::-1])
    return x, y


@pytest.mark.parametrize("f", [halves, moved])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_masks_on_both_sides(f, dtype):
    r = numpy.random.default_rng(0)
    x, y = r.integers(-3, 4, (2, 37)).astype(dtype)
    if dtype == "int64" and f is halves:
        y = y * 0.5
        x = x * 1.5
    expected = f(x.copy(), y.copy())
    g = jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            for got, want in zip(g(x.copy(), y.copy()), expected):
                assert got.dtype == want.dtype
                numpy.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_products_with_one_column():
    def f(a, b, out):
        for i in range(4):
            out += a[i] @ b + (a[i] * 2.0) @ b
        return out

    r = numpy.random.default_rng(0)
    a, b = r.random((4, 5, 6)), r.random((6, 1))
    numpy.testing.assert_allclose(jit(f)(a, b, numpy.zeros((5, 1))), f(a, b, numpy.zeros((5, 1))), rtol=1e-14)


def test_second_derivatives_of_loops_take_arrays_without_axes():
    def loss(x, k):
        u = x.copy()
        for _ in range(3):
            n = u.copy()
            n[1:-1] += 0.1 * k * (u[2:] - 2 * u[1:-1] + u[:-2])
            n[0] = n[1]
            u = n
        return np.sum(u**2)

    def along(x, k):
        of_x, of_k = grad(loss, (0, 1))(x, k)
        return np.sum(of_x * np.cos(x)) + of_k * -0.3

    x, k = np.array([0.3, -1.2, 0.7, 2.0, 0.1]), np.array(-0.4)
    second = grad(along, (0, 1))
    for compiled in (jit(second), second):  # a cotangent of k is one of NumPy's scalars, which are no arrays
        for _ in range(2):
            of_x, of_k = compiled(x, k)
            slope = (along(x, k + 1e-5) - along(x, k - 1e-5)) / 2e-5
            np.testing.assert_allclose(of_k, slope, rtol=1e-6)
            assert of_x.shape == x.shape


NUMBERS = [
    "np.fabs(a)",
    "np.fabs(a > 2)",
    "np.square(a > 2)",
    "np.conj(a, out)",
    "np.ceil(a + 0.5, out)",
    "np.quantile(x, 1)",
    "np.percentile(x, 50)",
]


@pytest.mark.parametrize("line", NUMBERS)
def test_functions_of_numbers_have_numpys_types(line):
    source = f"def f(np, x, out):\n    for i in range(len(x)):\n        a = x[i]\n        r = {line}\n    return r\n"
    found = {}
    exec(compile(source, name := f"<number {line}>", "exec"), found)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    x, out = numpy.arange(-5, 8), numpy.zeros(3)
    want = found["f"](numpy, x, out)
    compiled = jit(found["f"], static="np")
    for _ in range(2):
        got = compiled(np, np.array(x), given := np.zeros(3))
        assert type(got) is type(want) or isinstance(want, numpy.ndarray)
        numpy.testing.assert_array_equal(got, want, strict=True)
        numpy.testing.assert_array_equal(given, out)


def last(np, a):
    t = 0.0
    for i in range(len(a)):
        t = 2 * min(a[i], 3)
    return t


def of_complex(np, a):
    s = 0
    for i in range(len(a)):
        s += a[i] * 1j
    return s


def no_more_complex(np, a):
    t = 1j
    for i in range(len(a)):
        t = a[i]
    return t


@pytest.mark.parametrize("f", [last, of_complex, no_more_complex])
@pytest.mark.parametrize("numbers", [[2**60 + 1, -(2**60) - 1], [3, 4], [], [-(2**61) - 1]])
def test_a_variable_of_several_types_keeps_its_integers(f, numbers):
    want = f(numpy, numpy.array(numbers, "i8"))
    compiled = jit(lambda a: f(np, a))
    for _ in range(2):
        got = compiled(np.array(numbers, "i8"))
        assert numpy.asarray(got).dtype == numpy.asarray(want).dtype
        assert numpy.asarray(got).item() == numpy.asarray(want).item()


def ends_in_sevens(np, a):
    s = 0
    for x in a:
        s = x if x < 0 else s * 10 + 7
    return s


def a_remainder(np, a):
    s = 1
    for j in range(36):
        s = s * 3 + 1 if a[j % len(a)] < 5 else a[0]
    return s % 1000


def cancels(np, a):
    s = 3
    for x in a:
        s = (s * 2**60 + 1) - s * 2**60 if x == 0 else x
    return s


@pytest.mark.parametrize("f", [ends_in_sevens, a_remainder, cancels])
@pytest.mark.parametrize("numbers", [[0.0] * 17, [0.0] * 25, [0.0, -1, 1e300], [0.0, 1e20] * 8, [9.0, 2.5]])
def test_integers_that_floats_take_the_place_of_are_exact(f, numbers):
    want = f(numpy, numpy.array(numbers))
    compiled = jit(lambda a: f(np, a))
    for _ in range(2):
        got = compiled(np.array(numbers))
        assert numpy.asarray(got).dtype == numpy.asarray(want).dtype
        assert got == want


def quantiles(x, q):
    out = np.zeros((len(x), 3))
    for i in range(len(x)):
        out[i, 0] = np.percentile(x[i], q)
        out[i, 1] = np.quantile(x[i], q / 100) + np.quantile(x[i, i:], 0.3)
        out[i, 2] = np.percentile(x, i * 10)
    return out


@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_quantiles(dtype):
    g, rng = jit(quantiles), numpy.random.default_rng(3)
    for size in (6, 7, 31):
        x = (rng.normal(size=(6, size)) * 100).astype(dtype)
        for q in (0, 100, 50, 37.5, 99.9, 33, 1e-9):
            minnp.report(reset=True)
            numpy.testing.assert_array_equal(g(np.array(x), q), quantiles(x, q))
            assert not engine.available() or not [row for row in minnp.report() if row["backend"] == "python"]
    if dtype == "f8":
        x[2, 3], x[3, 1] = numpy.nan, numpy.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numpy.testing.assert_array_equal(g(np.array(x), 40), quantiles(x, 40))
    with pytest.raises(ValueError, match="Percentiles must be in the range"):
        g(np.array(x), 101)


def test_gradients_where_minima_and_bounds_are_equal_to_what_they_are_of():
    def shortest(x, y):
        for k in range(len(x)):
            x[:] = np.minimum(x, x[:, k : k + 1] + x[k, :])
        return np.sum(x * y)

    def bounds(x, y):
        s = 0.0
        for k in range(13):
            s += np.sum(np.maximum(x, y) + np.fmin(x, y * y) + np.clip(x, y, 9.0) + np.clip(x, 0.0, y))
            s += np.sum(np.maximum(x, 1.0) - np.clip(x, 1.0, 2.0) + np.where(x < y, x, y * 2)) * k
            s += max(x[0, 1], y[0, 1]) + np.maximum(x[0, 2], y[0, 2])
        return s

    x, y = np.arange(169.0).reshape(13, 13) % 5, np.arange(169.0).reshape(13, 13) % 3
    for f in shortest, bounds:
        for z in y, x:
            expected = grad(lambda x, y, f=f: f(x * 1.0, y), (0, 1))(x, z)
            found = jit(grad(lambda x, y, f=f: f(x * 1.0, y), (0, 1)))(x, z)
            numpy.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 512, *(pytest.param(n, marks=pytest.mark.long) for n in (511, 513, 1300))])
def test_what_one_element_settles_of_all(n):
    def f(x, y, least):
        s = 0.0
        for k in range(20):
            mask = (x > least + k) & (x < least + k + 1)
            if mask.any():
                s += np.sum(x[mask] * y[mask])
            if not np.all(y[mask] < 1.5):
                s += k
            t = np.reshape(y > 1 + k / 20, (1, -1))
            s += 2.0 * t.any() + 4.0 * np.all(t) + 8.0 * np.all(x * x + k >= k)
        return s

    rng = numpy.random.default_rng(n)
    x, y = np.array(rng.random(n) * 20), np.array(1 + rng.random(n))
    compiled = jit(f)
    for least in (0.0, 0.5, 100.0, -20.0):
        numpy.testing.assert_allclose(compiled(x, y, least), f(x, y, least), rtol=1e-12)
        if n:
            numpy.testing.assert_allclose(jit(grad(f))(x, y, least), grad(f)(x, y, least), rtol=1e-12)
    if n:
        x[-1] = numpy.nan  # the last of all is looked at, and what NumPy says of it is said
        y[-1] = numpy.inf
        for g in (f, compiled):
            assert g(x[-1:], y[-1:], 0.0) == f(x[-1:], y[-1:], 0.0)

        def warned(x):
            s = 0
            for _ in range(20):
                s += np.any(1 / x > 0)
            return s

        z = np.array(rng.random(n) + 1)
        z[-1] = 0
        for g in (warned, jit(warned)):
            with pytest.warns(RuntimeWarning, match="divide by zero"):
                assert g(z) == 20
