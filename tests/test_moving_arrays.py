"""Loops in which a name stands for one array and then for another: values, types, identity and memory as Python's."""

import linecache
import random

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


@pytest.mark.long
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
    minnp.report(reset=True)
    for g in (minnp.grad(lambda x: loss(compiled, x)), jit(direct)):
        numpy.testing.assert_allclose(g(a), direct(a), rtol=1e-12)
        twice = [minnp.grad(lambda x, g=g: np.sum(g(x) ** 2))(a) for g in (g, direct)]
        numpy.testing.assert_allclose(*twice, rtol=1e-12)
    said = [r["why"] for r in minnp.report(reset=True) if r["backend"] == "python"]
    assert not said or not engine.available() or (f is ping_pong and all("written in place" in s for s in said))


def cell(np, x, h, c, W, U):
    states = np.zeros((len(x), len(h)))
    for t in range(len(x)):
        z = np.tanh(W @ x[t] + U @ h)
        c = 0.5 * c + z * h
        h = np.sin(c)
        states[t] = h
    return states, c


@pytest.mark.parametrize("argnum", range(1, 6))
def test_gradients_of_a_recurrent_cell(argnum):
    rng = numpy.random.default_rng(2)
    shapes = (9, 2), (3,), (3,), (3, 2), (3, 3)
    args = [np.array(rng.normal(size=s)) for s in shapes]
    loss = lambda f: lambda *args: np.sum(f(np, *args)[0] ** 2) + np.sum(f(np, *args)[1])
    direct = minnp.grad(loss(cell), argnum=argnum - 1)
    minnp.report(reset=True)
    for g in (minnp.grad(loss(jit(cell, static="np")), argnum=argnum - 1), jit(direct)):
        numpy.testing.assert_allclose(g(*args), direct(*args), rtol=1e-11, atol=1e-12)
    assert not engine.available() or not [r for r in minnp.report(reset=True) if r["backend"] == "python"]


def test_a_name_that_was_not_bound_anew_is_the_array_that_it_was():
    def doubled(x, n):
        y = x
        for _ in range(n):
            y = y * 2.0
        y[0] = 1.0
        return np.sum(y * x)

    f, x = jit(doubled), np.array([1.0, 2.0, 3.0])
    for n in (2, 0, 1):
        for g in (minnp.grad(lambda x, n=n: f(x * 1.0, n)), jit(minnp.grad(lambda x, n=n: doubled(x * 1.0, n)))):
            numpy.testing.assert_allclose(g(x), minnp.grad(lambda x, n=n: doubled(x * 1.0, n))(x))


# ------------------------------------------------------------------ random programs
class Random:
    """The source of a program of names that stand for several arrays of length 6, and views of these."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        body = ["if s != 0.0:", *(f"    {line}" for line in self.lines(1)), *self.lines(self.random.randint(2, 6))]
        lines = ["s = 0.0", "z = a * b", "v = a[1:]", "for k in range(n):", *(f"    {line}" for line in body)]
        lines += (self.random.choice(["return x, y, z, s", "return z, s", "return x, s", "return y, v, s"]),)
        self.source = "def f(np, x, y, n):\n    a, b = x, y\n" + "".join(f"    {line}\n" for line in lines)

    def name(self):
        return self.random.choice("xyz")

    def whole(self):
        return self.random.choice(
            [
                *(f"{self.name()} * 0.5 + {self.name()}", f"np.sin({self.name()})", f"{self.name()}[::-1] * 1.0"),
                *(f"{self.name()}[::-1]", self.name(), self.name(), f"np.roll({self.name()}, k)", "np.zeros(6)"),
                f"np.where({self.name()} > 0.3, {self.name()}, 0.1)",
            ]
        )

    def part(self, n=None):
        n = self.random.choice([3, 4, 5]) if n is None else n
        at = self.random.randint(0, 6 - n)
        return f"{self.name()}[{at}:{at + n}]", n

    def lines(self, count, depth=0):
        out = []
        for _ in range(count):
            r = self.random.random()
            if r < 0.2:
                p, q = self.random.sample("xyz", 2)
                out.append(f"{p}, {q} = {q}, {p}")
            elif r < 0.4:
                out.append(f"{self.name()} = {self.whole()}")
            elif r < 0.55:
                part, n = self.part()
                other, _ = self.part(n)
                out.append(f"{part} {self.random.choice(['=', '+=', '-='])} {other} * 0.5")
            elif r < 0.62:
                out.append(f"{self.name()}[k % 6] = s + k")
            elif r < 0.7:
                out.append(f"v = {self.part(5)[0]}")
            elif r < 0.78:
                out.append(
                    self.random.choice(["v[1:] = v[:-1] * 0.5", "v += 0.25", f"v[:] = {self.part(5)[0]}", "s += v[2]"])
                )
            elif r < 0.86:
                out.append(f"s += {self.name()}[{self.random.randint(-6, 5)}] * 0.5")
            elif depth < 2:
                head = self.random.choice(
                    ["if k % 2:", "if s > 1.0:", "for j in range(2):", f"for j in range({self.random.randint(0, 3)}):"]
                )
                out += [head, *(f"    {line}" for line in self.lines(self.random.randint(1, 3), depth + 1))]
            else:
                out.append(f"{self.name()} *= 0.75")
        return out


def made(seed):
    source, found, name = Random(seed).source, {}, f"<moving {seed}>"
    exec(compile(source, name, "exec"), found)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    return found["f"], source


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [k if k % 40 == 0 else pytest.param(k, marks=pytest.mark.exhaustive) for k in range(0, 200, 10)]
)
def test_random_programs(seed):
    f, source = made(seed)
    compiled, rng = jit(f, static="np"), numpy.random.default_rng(seed)
    for n in (3, 2, 0, 5):
        a, b = rng.random(6), rng.random(6)
        want, got = outcome(f, numpy, a, b, n), outcome(compiled, np, a, b, n)
        assert all(map(close, want, got)), (source, n, want, got)


def close(x, y):
    return numpy.allclose(x, y, rtol=1e-12, equal_nan=True) if isinstance(x, numpy.ndarray) else x == y


@pytest.mark.parametrize("seed", [4, 128, 223])
def test_gradients_of_random_programs(seed):
    f, source = made(seed)
    compiled, rng = jit(f, static="np"), numpy.random.default_rng(seed)

    def loss(f, a, b):
        out = f(np, a * 1.0, b * 1.0, 4)
        return sum(np.sum(np.sin(o * (k + 1))) for k, o in enumerate(out))

    a, b = np.array(rng.random(6)), np.array(rng.random(6))
    direct = minnp.grad(lambda a, b: loss(f, a, b), argnum=(0, 1))
    for g in (minnp.grad(lambda a, b: loss(compiled, a, b), argnum=(0, 1)), jit(direct)):
        assert all(map(numpy.allclose, g(a, b), direct(a, b))), source
