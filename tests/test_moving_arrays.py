"""Loops in which a name stands for one array and then for another: values, types, identity and memory as Python's."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.llvm import engine

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def ping_pong(np, a, b, n):
    for _ in range(n):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a, b


def ping_pong_scalars(np, a, b, n):
    for _ in range(n):
        for i in range(1, len(a) - 1):
            b[i] = a[i - 1] + a[i + 1] - a[i]
        a, b = b, a
    return a


def rotated(np, a, b, n):
    c = np.zeros(len(a))
    for i in range(n):
        c[i % len(c)] = i
        a, b, c = b, c, a
        a += 1
    return a, b, c


def replaced(np, a, b, n):
    for _ in range(n):
        a = a * 0.5 + b
    return a


def replaced_and_written(np, a, b, n):
    for i in range(n):
        a = a * 0.5 + b
        a[0] = i
        b[i % 3] += a[1]
    return a


def old_and_new(np, a, b, n):
    change = 1.0
    steps = 0
    while change > 1e-3 and steps < n:
        old = a
        a = np.sqrt(a + b)
        change = np.max(np.abs(a - old))
        steps += 1
    return a, old, change


def growing(np, a, b, n):
    part = a[:1]
    for i in range(n):
        part = a[: i % len(a)]
        b[0] += np.sum(part)
    return part


def shrinking(np, a, b, n):
    x = a + b
    for _ in range(n):
        if len(x) < 2:
            break
        x = x[1:] * 1.5
    return x


def rows(np, a, b, n):
    x = np.outer(a, b)
    for i in range(n):
        x = x.T + 1
        for row in x:
            row[0] = i
            x = x * 0.5
    return x


def views_kept(np, a, b, n):
    x = a * 1
    view = x[1:]
    for _ in range(n):
        view[0] += 1
        x = x + view[0]
        view[1] = x[0]
        view = x[1:]
        view[:-1] = view[1:] * 0.5
    return x, view


def overlapping(np, a, b, n):
    x = a
    for i in range(n):
        x[1:] = a[:-1] + b[1:]
        x = b if i % 2 else a
    return a, b


def same_name_twice(np, a, b, n):
    x = a
    y = b
    for i in range(n):
        x[1:] += y[:-1]
        y = x
        x = a * 1.0 if i == 2 else b
    return x, y


def two_names(np, a, b, n):
    x = y = a + 0
    for _ in range(n):
        x = y = x + b
    return x, y


def chosen(np, a, b, n):
    total = 0.0
    for i in range(n):
        if i % 3 == 0:
            x = a
        elif i % 3 == 1:
            x = b
        else:
            x = a + b
        total += x[i % len(a)]
    return total, x


def step(np, y, h):
    k = np.sin(y)
    return y + h * k


def in_functions(np, a, b, n):
    y, t = a, 0.0
    while t < n:
        y = step(np, y, 0.5)
        if y[0] > 2:
            y = step(np, y, -0.25)
        t += 1.0
    return y


def previous(np, a, b, n):
    before = np.zeros(len(a))
    for i in range(n):
        now = np.cos(a * i) + before
        before = now
    return before


def read_only_result(np, a, b, n):
    for _ in range(n):
        a, b = b, a
    return a


def errors(np, a, b, n):
    for i in range(n):
        a = a + 1
        b[i] = a[i]
        a, b = b, a
    return a


PROGRAMS = [
    *(ping_pong, ping_pong_scalars, rotated, replaced, replaced_and_written, old_and_new, growing, shrinking, rows),
    *(views_kept, overlapping, same_name_twice, two_names, chosen, in_functions, previous, read_only_result),
    errors,
]


def outcome(f, np, a, b, n):
    a, b = np.array(a), np.array(b)
    try:
        out = f(np, a, b, n)
    except (IndexError, UnboundLocalError, ValueError) as error:
        return type(error).__name__, str(error), a, b
    parts = out if type(out) is tuple else (out,)
    given = [a, b, *parts]
    who = [[i for i, x in enumerate(given) if x is y] for y in parts]
    shared = [[numpy.may_share_memory(x, y) for x in given] for y in parts if numpy.ndim(y)]
    kinds = [(x.dtype, x.shape) if hasattr(x, "dtype") else type(x) for x in parts]
    return who, shared, kinds, *[numpy.asarray(x) for x in (*parts, a, b)]


def same(x, y):
    return numpy.array_equal(x, y, equal_nan=True) if isinstance(x, numpy.ndarray) else x == y


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python(f):
    minnp.report(reset=True)
    rng = numpy.random.default_rng(0)
    compiled = jit(f, static="np")
    for n in (3, 3, 0, 1, 2, 4, 7):
        a, b = rng.random(6), rng.random(6)
        want, got = outcome(f, numpy, a, b, n), outcome(compiled, np, a, b, n)
        assert all(map(same, want, got)), (n, want, got)
    if engine.available():
        said = [r["why"] for r in minnp.report(reset=True) if r["backend"] == "python"]
        assert all("does not take" in s for s in said), said


@pytest.mark.parametrize("f", [ping_pong, replaced, previous, in_functions], ids=lambda f: f.__name__)
def test_gradients(f):
    rng = numpy.random.default_rng(1)
    a, b = np.array(rng.random(5)), np.array(rng.random(5))

    def loss(f, x):
        out = f(np, x * 1.0, b * 1.0, 4)
        return np.sum(np.sin(out[0] if type(out) is tuple else out))

    direct = minnp.grad(lambda x: loss(f, x))
    compiled = jit(f, static="np")
    for g in (minnp.grad(lambda x: loss(compiled, x)), jit(direct)):
        numpy.testing.assert_allclose(g(a), direct(a), rtol=1e-12)
        twice = [minnp.grad(lambda x, g=g: np.sum(g(x) ** 2))(a) for g in (g, direct)]
        numpy.testing.assert_allclose(*twice, rtol=1e-12)
