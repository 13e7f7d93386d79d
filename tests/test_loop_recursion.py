"""Functions that call themselves: programs of their own, with Python's meaning."""

from __future__ import annotations

import sys
import warnings

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine
from tests.derivatives import check_derivatives

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def sort(a, low, high):
    i, j, pivot = low, high, a[(low + high) // 2]
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    if low < j:
        sort(a, low, j)
    if i < high:
        sort(a, i, high)


def halves(a):
    """Views: of the array, and of views of it."""
    if len(a) < 2:
        return 0
    m = len(a) // 2
    low, high = a[:m], a[m:]
    count = 0
    for i in range(m):
        if low[i] > high[i]:
            low[i], high[i] = high[i], low[i]
            count += 1
    return count + halves(low) + halves(high)


def moves(n, start, end, log):
    if n == 0:
        return None
    moves(n - 1, start, 6 - start - end, log)
    log[0] += 1
    log[log[0]] = 10 * start + end
    moves(n - 1, 6 - start - end, end, log)


def extended(a, b):
    """A tuple of numbers."""
    if b == 0:
        return a, 1, 0
    g, x, y = extended(b, a % b)
    return g, y, x - a // b * y


def simpson(f, a, b, whole, eps):
    """A function, and a number of Python's."""
    m = (a + b) / 2
    left = (m - a) / 6 * (f(a) + 4 * f((a + m) / 2) + f(m))
    right = (b - m) / 6 * (f(m) + 4 * f((m + b) / 2) + f(b))
    if abs(left + right - whole) < 15 * eps:
        return left + right
    return simpson(f, a, m, left, eps / 2) + simpson(f, m, b, right, eps / 2)


def integral(b):
    return simpson(lambda x: x * np.exp(-x), 0.0, b, 0.0, 1e-9)


def power(x, n):
    """A float at times, an integer at others."""
    if n == 0:
        return 1
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def factorial(n):
    """Beyond 64 bits."""
    return n * factorial(n - 1) if n else 1


def queens(n):
    def solve(row, columns, left, right):
        if row == n:
            return 1
        count, free = 0, ((1 << n) - 1) & ~(columns | left | right)
        while free:
            bit = free & -free
            free ^= bit
            count += solve(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
        return count

    return solve(0, 0, 0, 0)


def knapsack(weight, value, i=0, left=20):
    """Arguments with defaults, arrays of others."""
    if i == len(weight):
        return 0
    best = knapsack(weight, value, i + 1, left)
    if weight[i] <= left:
        best = max(best, value[i] + knapsack(weight, value, i + 1, left - weight[i]))
    return best


def region(grid, i, j):
    if not (0 <= i < grid.shape[0] and 0 <= j < grid.shape[1]) or grid[i, j] != 1:
        return 0
    grid[i, j] = 2
    return 1 + region(grid, i + 1, j) + region(grid, i - 1, j) + region(grid, i, j + 1) + region(grid, i, j - 1)


def regions(grid):
    sizes = np.zeros(grid.size, dtype=np.int64)
    count = 0
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            size = region(grid, i, j)
            if size:
                sizes[count] = size
                count += 1
    return sizes[:count]


def scratch(a):
    """An array of every call's own."""
    n = len(a)
    if n < 2:
        return 0
    m = n // 2
    count = scratch(a[:m]) + scratch(a[m:])
    b = np.empty(n)
    i, j = 0, m
    for k in range(n):
        if j == n or (i < m and a[i] <= a[j]):
            b[k] = a[i]
            i += 1
        else:
            b[k] = a[j]
            count += m - i
            j += 1
    a[:] = b
    return count


def merged(a):
    """A new array of every call's, or the one that it is given."""
    n = len(a)
    if n < 2:
        return a
    m = n // 2
    left, right = merged(a[:m]), merged(a[m:])
    out = np.zeros(n)
    i = j = 0
    for k in range(n):
        if j >= n - m or (i < m and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


def v_cycle(u, f, h):
    """A multigrid method: the array that it is given, written."""
    n = len(u)
    for i in range(1, n - 1):
        u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * f[i])
    if n <= 3:
        return u
    coarse = np.zeros((n + 1) // 2)
    for i in range(1, len(coarse) - 1):
        coarse[i] = f[2 * i] - (2 * u[2 * i] - u[2 * i - 1] - u[2 * i + 1]) / (h * h)
    error = v_cycle(np.zeros(len(coarse)), coarse, 2 * h)
    for i in range(len(coarse) - 1):
        u[2 * i] += error[i]
        u[2 * i + 1] += 0.5 * (error[i] + error[i + 1])
    return u


def tree(a, n):
    """Expressions of what two calls return."""
    if n == 0:
        return a * 1.0
    b = tree(a, n - 1)
    c = tree(a + 1, n - 1)
    return b - 2 * c


def ends(a):
    """Numbers and an array."""
    if len(a) == 1:
        return a[0], a[0], a
    low, high, first = ends(a[: len(a) // 2])
    other, last, second = ends(a[len(a) // 2 :])
    return min(low, other), max(high, last), first + second


def calls_in_a_loop(a, n):
    s = np.zeros(3)
    for k in range(n):
        s = s * 0.5 + tree(a, k % 4)
    return s


def too_far(a, n):
    if n == 0:
        return a[:0] * 1.0
    out = np.zeros(n)
    out[: n - 1] = too_far(a, n - 1)
    out[n - 1] = a[n]
    return out


def sequence(seed, n):
    return onp.random.default_rng(seed).standard_normal(n)


CASES = {
    "fibonacci": (fibonacci, lambda: [(n,) for n in (0, 1, 2, 15)] + [(onp.int64(9),), (7.0,)]),
    "sort": (sort, lambda: [(sequence(n, n), 0, n - 1) for n in (1, 2, 40)] + [(onp.arange(9)[::-1] % 4, 2, 7)]),
    "halves": (halves, lambda: [(sequence(n, n),) for n in (0, 1, 5, 64)] + [(sequence(3, 40)[::-2],)]),
    "moves": (moves, lambda: [(n, 1, 3, onp.zeros(40, int)) for n in (0, 1, 5)]),
    "extended": (extended, lambda: [(240, 46), (7, 0), (onp.int64(99), 78), (12.0, 5.0)]),
    "integral": (integral, lambda: [(2.0,), (onp.float64(0.5),)]),
    "power": (power, lambda: [(3, 11), (1.5, 8), (onp.float32(1.5), 5), (2, 0)]),
    "factorial": (factorial, lambda: [(5,), (20,), (21,), (30,)]),
    "queens": (queens, lambda: [(4,), (6,), (1,)]),
    "knapsack": (knapsack, lambda: [(onp.arange(1, 9), onp.arange(8, 0, -1)), (onp.array([5]), onp.array([2.5]))]),
    "regions": (regions, lambda: [(onp.random.default_rng(0).integers(0, 2, (7, 8)),)]),
    "merged": (merged, lambda: [(sequence(n, n),) for n in (0, 1, 2, 33)] + [(sequence(3, 40)[::-2],)]),
    "v_cycle": (v_cycle, lambda: [(onp.zeros(n), sequence(n, n), 1 / (n - 1)) for n in (3, 9, 33)]),
    "tree": (tree, lambda: [(sequence(3, 3), n) for n in (0, 1, 5)]),
    "ends": (ends, lambda: [(sequence(n, n),) for n in (1, 2, 8)]),
    "calls_in_a_loop": (calls_in_a_loop, lambda: [(sequence(3, 3), n) for n in (0, 1, 9)]),
    "too_far": (too_far, lambda: [(sequence(9, 9), n) for n in (0, 8)]),
    "scratch": (scratch, lambda: [(sequence(n, n),) for n in (1, 2, 33)]),
}


def kinds(x):
    if isinstance(x, (list, tuple)):
        return [type(x), *map(kinds, x)]
    return (x.dtype, x.tolist()) if isinstance(x, onp.ndarray) else (type(x), x)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_functions_that_call_themselves(name):
    f, make = CASES[name]
    g = jit(f)
    for args, same in zip(make() + make(), make() + make()):
        assert kinds(g(*args)) == kinds(f(*same))
        assert kinds(args) == kinds(same)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("factorial", "power")])
def test_they_are_compiled(name):
    f, make = CASES[name]
    minnp.report(reset=True)
    g = jit(f)
    for args in make()[:1]:
        g(*args)
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_what_is_returned_is_what_python_returns():
    x = np.arange(5.0)
    assert jit(merged)(x[:1]).base is not None and jit(v_cycle)(x, x * 1, 0.5) is x
    jit(merged)(x[:1])[0] = 7.0
    assert x[0] == 7.0
    for _ in range(2):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            jit(too_far)(x, 5)


def test_arrays_of_complex_numbers():
    def fft(x):
        n = len(x)
        if n == 1:
            return x.astype(complex)
        even, odd = fft(x[::2]), fft(x[1::2])
        turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate((even + turned, even - turned))

    x, g = sequence(5, 32), jit(fft)
    for _ in range(3):
        onp.testing.assert_allclose(g(np.array(x)), onp.fft.fft(x), atol=1e-12)


def fill(a, i, what):
    if i < len(a):
        a[i] = what(i) if callable(what) else what
        fill(a, i + 1, what)


def test_what_calls_them_is_captured_until_python_has_to_run_one():
    def sorted_copy(a):
        a = a.copy()
        sort(a, 0, len(a) - 1)
        return a

    g, rng = jit(sorted_copy), onp.random.default_rng(0)
    for n in (20, 20, 20, 30, 40):
        a = rng.random(n)
        assert onp.array_equal(g(np.array(a)), onp.sort(a))
    assert 0 < g.captures < 4

    def filled(a, what):
        fill(a, 0, what)
        return a * 2

    h = jit(filled)
    for what in (1.5, 1.5, float, 2.5, 3, float, 1.5):
        a, same = np.zeros(5), onp.zeros(5)
        assert kinds(h(a, what)) == kinds(filled(same, what))
        assert kinds(a) == kinds(same)
    assert "fill calls itself" in "".join(r["why"] for r in minnp.report())


def divides(a, i):
    a[i] = 10 / a[i]
    divides(a, i + 1)


def never(a, i):
    a[0] += 1
    return never(a, i + 1)


@pytest.mark.parametrize("a", [onp.array([2.0, 5.0, 4.0]), onp.array([1, 2, 5, 3])])
def test_errors_and_the_writes_before_them(a):
    b = a.copy()
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises(IndexError) as ours:
            jit(divides)(a, 0)
        with pytest.raises(IndexError) as theirs:
            divides(b, 0)
    assert str(ours.value) == str(theirs.value)
    onp.testing.assert_array_equal(a, b)


def test_calls_without_an_end_are_pythons_error():
    a = onp.zeros(1)
    with pytest.raises(RecursionError):
        jit(never)(a, 0)
    assert 0 < a[0] <= sys.getrecursionlimit()


def test_a_limit_of_the_users():
    def depth(n):
        return 0 if n == 0 else depth(n - 1) + 1

    before = sys.getrecursionlimit()
    assert jit(depth)(before - 300) == before - 300
    with pytest.raises(RecursionError):
        jit(depth)(before + 100)
    sys.setrecursionlimit(8000)
    try:
        assert jit(depth)(3000) == 3000
    finally:
        sys.setrecursionlimit(before)


def test_what_a_function_reads_is_read_anew():
    scale = 1

    def total(n):
        return 0 if n == 0 else scale * n + total(n - 1)

    g = jit(total)
    assert g(5) == g(5) == 15
    scale = 3
    assert g(5) == 45
    scale = 0.5
    assert g(5) == 7.5


def test_a_function_replaced_by_another():
    def make():
        def f(n):
            return 0 if n == 0 else 1 + f(n - 1)

        def replace(g):
            nonlocal f
            f = g

        return f, replace

    f, replace = make()
    g = jit(lambda n: f(n))
    assert g(6) == 6
    replace(lambda n: 100)
    assert g(6) == 101


def test_gradients():
    def horner(c, x, i):
        return 0.0 if i == len(c) else c[i] + x * horner(c, x, i + 1)

    c = np.array([1.0, 2.0, 3.0])
    for g in (grad(horner, 1), grad(jit(horner), 1), jit(grad(horner, 1))):
        assert float(g(c, 2.0, 0)) == 14.0

    def scaled(a, i):
        if i < len(a):
            a[i] *= a[i]
            scaled(a, i + 1)

    def loss(x):
        a = x.copy()
        scaled(a, 0)
        return np.sum(a)

    for g in (grad(loss), grad(jit(loss)), jit(grad(loss))):
        onp.testing.assert_allclose(g(np.arange(5.0)), 2 * onp.arange(5.0))


def test_a_branch_that_is_pythons():
    def digits(n):
        return 0 if n == 0 else digits(n // 10) + len(str(n))

    def f(a, b):
        for i in range(len(a)):
            if a[i] > 90:
                a[i] = digits(int(a[i])) + fibonacci(2)
            else:
                a[i] = fibonacci(i)
                b += 1
            if i == 15 and a[i] > 5:
                a[i] = digits(i)
        return a, b

    for most in (50, 100):
        x = onp.arange(24) * most // 24
        assert kinds(jit(f)(x.copy(), 0)) == kinds(f(x.copy(), 0))


def test_batches():
    def horner(c, x, i):
        return x * 0 if i == len(c) else c[i] + x * horner(c, x, i + 1)

    c = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    for g in (minnp.vmap(lambda c: jit(horner)(c, c[0] + 2, 0)), jit(minnp.vmap(lambda c: horner(c, c[0] + 2, 0)))):
        onp.testing.assert_array_equal(g(c), [34.0, 2.0])


def test_warnings_are_numpys():
    def logs(a, i):
        if i < len(a):
            a[i] = np.log(a[i])
            logs(a, i + 1)

    for _ in range(2):
        a = np.array([1.0, -1.0])
        with pytest.warns(RuntimeWarning, match="invalid value"):
            jit(logs)(a, 0)
        onp.testing.assert_array_equal(a, [0.0, onp.nan])


def test_two_names_of_one_array():
    def add(a, b, i):
        if i < len(b):
            a[i] += b[i - 1]
            add(a, b, i + 1)

    for first, second in ((slice(0, 5), slice(0, 5)), (slice(0, 5), slice(1, 6))):
        x, y = np.arange(6.0), onp.arange(6.0)
        jit(add)(x[first], x[second], 0)
        add(y[first], y[second], 0)
        onp.testing.assert_array_equal(x, y)


# ------------------------------------------------------------------ derivatives
def halved(y, n):
    def r(lo, hi):
        if hi - lo == 1:
            return y[lo] ** 2
        m = (lo + hi) // 2
        return r(lo, m) + 0.9 * r(m, hi) * y[lo]

    return r(0, len(y))


def polynomial(c, x, i=0):
    return 0.0 if i == len(c) else c[i] + x * polynomial(c, x, i + 1)


def by_horner(y, n):
    return polynomial(y, y[0] * 0.3)


def wave(x, n):
    if n < 2:
        return x[n] * x[0]
    a = wave(x, n - 1)
    b = wave(x, n - 2)
    return np.sin(a) + 0.5 * b * x[n % len(x)]


def waves(y, n):
    return wave(y, 8)


def weighed(y, k):
    s = y[k]
    for j in range(k):
        if j % 3 == 2:
            continue
        t = weighed(y, j)
        s += 0.1 * t * y[j] + t * t * 0.01
        if s > 1e9:
            break
    return s


def in_for_loops(y, n):
    return weighed(y, 6)


def products(y, lo, hi):
    if hi - lo == 1:
        return y[lo], 1
    m = (lo + hi) // 2
    a, k = products(y, lo, m)
    b, l = products(y, m, hi)
    return a * b + a / k, k + l


def of_tuples(y, n):
    a, k = products(y, 0, len(y))
    return a * k


def squared(a, i):
    if i < len(a):
        a[i] *= a[i] * a[i - 1]
        squared(a, i + 1)
        a[i] += 0.1 * a[0]


def written(y, n):
    a = y.copy()
    squared(a, 1)
    return (a**2).sum()


def even(y, k):
    return y[0] if k == 0 else y[k] * odd(y, k - 1) + 0.1


def odd(y, k):
    return y[1] ** 2 if k == 0 else y[k - 1] + even(y, k - 1) * y[k]


def mutual(y, n):
    return even(y, 7)


def stepped(y, k):
    s = y[k]
    j = k
    while j > 0:
        j -= 2 if j > 1 else 1
        s = s * 0.7 + stepped(y, j) * y[j]
    return s


def in_while_loops(y, n):
    return stepped(y, 7)


def called_in_a_loop(y, n):
    s = 0.0
    for k in range(1, 12):
        s += polynomial(y, 0.1 * k * y[0]) * wave(y, k % 5)
    return s


DERIVATIVES = [halved, by_horner, waves, in_for_loops, of_tuples, written, mutual, in_while_loops, called_in_a_loop]


@pytest.mark.long
@pytest.mark.parametrize("f", DERIVATIVES, ids=lambda f: f.__name__)
def test_derivatives(f):
    minnp.report(reset=True)
    check_derivatives(f, onp.linspace(0.5, 1.2, 12))
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_derivatives_of_deep_calls():
    """As deep as Python allows: what calls keep has room for that."""

    def chain(x, k):
        return x[0] if k == 0 else chain(x, k - 1) * x[1] + x[k % 3]

    depth, x = sys.getrecursionlimit() - 300, np.array([0.5, 0.9, -0.3])
    small = 1e-6 * onp.eye(3)
    want = [(chain(onp.array(x) + e, depth) - chain(onp.array(x) - e, depth)) / 2e-6 for e in small]
    for g in (jit(grad(chain)), grad(jit(chain))):
        onp.testing.assert_allclose(g(x, depth), want, rtol=1e-5)


def test_the_derivative_of_arrays_that_calls_return_is_pythons():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    want = grad(lambda x: np.sum(tree(x, 3) ** 2))(x)
    onp.testing.assert_allclose(jit(grad(lambda x: np.sum(tree(x, 3) ** 2)))(x), want)


def test_the_derivative_of_cycles_is_pythons():
    def loss(f):
        u = np.zeros(len(f))
        for _ in range(3):
            u = v_cycle(u, f, 1 / (len(f) - 1))
        return np.sum(u**2)

    x = np.sin(np.arange(17.0))
    want = grad(loss)(x)
    minnp.report(reset=True)
    for g in (jit(grad(loss)), grad(jit(loss))):
        onp.testing.assert_allclose(g(x), want)
        why = "calls itself and takes, or returns, arrays"
        assert any(why in r["why"] for r in minnp.report(reset=True))
