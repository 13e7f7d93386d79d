"""vmap of functions with compiled loops: one program for the batch, or example by example where the examples differ."""

from __future__ import annotations

import loop_fuzzer
import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, hessian, jacobian, jit, jvp, vmap
from minnp.core.llvm import engine
from minnp.core.transforms import vmap as vmapped

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]
rng = onp.random.default_rng(3)


def escapes(c):
    z, n = 0j * c, 0
    while n < 30 and abs(z) < 2:
        z = z * z + c
        n += 1
    return n


def root(x):
    t = x
    while abs(t * t - x) > 1e-12 * x:
        t = 0.5 * (t + x / t)
    return t


def sweeps(u, f):
    for _ in range(2):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])
    return u, u.sum()


def branches(x):
    s = np.float64(0)
    for i in range(len(x)):
        if x[i] > 0:
            s = s * 0.5 + x[i]
        else:
            s -= np.sin(x[i])
    return s


def integers(k):
    s = k[0]
    for i in range(1, len(k)):
        s += k[i] * i
        k[i] = s
    return s, k


def another_name(x):
    y = x
    for _ in range(3):
        for j in range(2):
            y = y * 0.5 + x[j]
    return y


def weighted(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(w)):
            out[i] += w[j] * x[i] ** j
    return out


def returns(x):
    for i in range(len(x)):
        if x[i] > 1:
            return x[i] * 2
    return 0.0


def fails(x, i):
    for k in range(3):
        try:
            x[k] = x[i + k]
        except IndexError:
            x[k] = -1
    return x


def beyond(k):
    s = 1
    for i in range(len(k)):
        s = s * int(k[i])
    return s % 1000003


def counted(x):
    n = 0
    while x > 1:
        x = x / 2
        n += 1
    return (x + 1) * n if isinstance(n, int) else -1


normal = rng.normal(size=(4, 6))
EVEN = [  # which run as one program
    (escapes, 0, (rng.normal(size=5) + 1j * rng.normal(size=5),)),
    (root, 0, (rng.uniform(1, 9, 5),)),
    (sweeps, 0, (normal, rng.normal(size=(4, 6)))),
    (sweeps, (0, None), (normal, rng.normal(size=6))),
    (branches, 0, (normal,)),
    (branches, 1, (normal.T,)),
    (integers, 0, (rng.integers(-2, 3, (3, 7)).astype("i1"),)),
    (another_name, 0, (normal,)),
    (weighted, (0, None), (normal, rng.normal(size=3))),
    (weighted, (None, 0), (normal[0], rng.normal(size=(5, 3)))),
    (returns, 0, (abs(normal) + 1.1,)),
]
UNEVEN = [
    (returns, 0, (normal,)),
    (fails, 0, (normal, onp.array([0, 2, 5, 9]))),
    (beyond, 0, (rng.integers(2**30, 2**40, (3, 6)),)),
    (counted, 0, (rng.uniform(1, 99, 4),)),
]


def examples(f, axes, args):
    """What f gives for each example, stacked."""
    axes = axes if isinstance(axes, tuple) else (axes,) * len(args)
    size = next(a.shape[x] for a, x in zip(args, axes) if x is not None)
    takes = lambda i: [a.copy() if x is None else a.take(i, x).copy() for a, x in zip(args, axes)]
    outs = [f(*takes(i)) for i in range(size)]
    return [onp.stack(c) for c in zip(*outs)] if type(outs[0]) is tuple else [onp.stack(outs)]


def same(f, axes, args):
    expected = examples(f, axes, args)
    for batched in vmap(jit(f), in_axes=axes), jit(vmap(f, in_axes=axes)):
        for _ in range(2):
            given = [np.array(a) for a in args]
            found = batched(*given)
            for a, b in zip(expected, found if type(found) is tuple else (found,), strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape
                onp.testing.assert_allclose(b, a, rtol=1e-13)
            for a, b in zip(args, given):  # the batch is the caller's
                onp.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("f", "axes", "args"), EVEN, ids=lambda x: getattr(x, "__name__", ""))
def test_a_batch_is_one_program(f, axes, args, monkeypatch):
    monkeypatch.setattr(vmapped, "_one_by_one", None)
    minnp.report(reset=True)
    same(f, axes, args)
    assert not [row for row in minnp.report() if row["backend"] == "python"]


@pytest.mark.parametrize(("f", "axes", "args"), UNEVEN, ids=lambda x: getattr(x, "__name__", ""))
def test_examples_that_go_several_ways_run_one_by_one(f, axes, args):
    same(f, axes, args)


def test_an_example_that_raises():
    def f(x, i):
        s = 0.0
        for k in range(3):
            s += x[i + k]
        return s

    x, i = np.ones((3, 5)), np.array([0, 1, 9])
    for g in vmap(jit(f)), jit(vmap(f)):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            g(x, i)
        onp.testing.assert_array_equal(g(x, np.array([0, 1, 2])), [3.0] * 3)


def test_nested_batches(monkeypatch):
    monkeypatch.setattr(vmapped, "_one_by_one", None)
    x = rng.normal(size=(2, 3, 5))
    expected = onp.array([[branches(row) for row in rows] for rows in x])
    for g in vmap(vmap(jit(branches))), jit(vmap(vmap(branches))), vmap(jit(vmap(branches))):
        onp.testing.assert_allclose(g(np.array(x)), expected, rtol=1e-14)
    c = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    expected = onp.array([[escapes(z) for z in row] for row in c])
    onp.testing.assert_array_equal(jit(vmap(vmap(escapes)))(np.array(c)), expected)


def squares(u, f):
    return (sweeps(u.copy(), f)[0] ** 2).sum()


@pytest.mark.long
@pytest.mark.parametrize(
    ("f", "args"),
    [(root, (rng.uniform(1, 9, 3),)), (branches, (normal,)), (squares, (normal, normal[::-1]))],
    ids=["while", "if", "writes"],
)
def test_derivatives_of_batches(f, args, monkeypatch):
    monkeypatch.setattr(vmapped, "_one_by_one", None)
    args = [np.array(a) for a in args]
    every = lambda d: onp.stack([d(f)(*[a[i] for a in args]) for i in range(len(args[0]))])
    slope = lambda f: lambda *a: jvp(f, a, a)[1]
    expected = every(grad)
    total = lambda f: lambda *a: np.sum(vmap(f)(*a))
    for g in (vmap(grad(jit(f))), vmap(jit(grad(f))), jit(vmap(grad(f))), grad(total(jit(f))), jit(grad(total(f)))):
        onp.testing.assert_allclose(g(*args), expected, rtol=1e-10, atol=1e-12)
    for d in (hessian, jacobian, slope):
        expected = every(d)
        for g in (vmap(d(jit(f))), jit(vmap(d(f)))):
            onp.testing.assert_allclose(g(*args), expected, rtol=1e-9, atol=1e-9)
    onp.testing.assert_allclose(jit(slope(vmap(f)))(*args), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [2, 5, 11, 17, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(100, 110))]
)
def test_random_programs(seed):
    assert not loop_fuzzer.differs_in_batch(seed)


def test_numbers_that_are_kept_outside():
    held, log = {}, []

    def counts(x):
        y = x * 1.0
        for j, v in enumerate(x):
            held["n"] += 1
            y[j] = v * 2
        return y.sum()

    def inside(x):
        y, k = x * 1.0, 0

        def step(v):
            nonlocal k
            k += 1
            return v * k

        for j, v in enumerate(x):
            y[j] = step(v)
        held["n"] += k
        return y.sum()

    def differs(x):
        y, k = x * 1.0, 0
        for j, v in enumerate(x):
            k += 2 if v > 0 else 1
            y[j] = v * k
        held["n"] = k
        return y.sum(), k

    def within(x):
        y = x * 1.0
        for j, v in enumerate(x):
            if v > 0:
                held["n"] += 1
            y[j] = v * held["n"]
        return y.sum()

    def asks(x):
        n = 0
        for i in range(2, len(x) + 2):
            n = n + i
            if n > 50:
                break
        log.append(i)
        return x.sum() * n + (n + 1)

    def appends(x):
        out, k = differs(x)
        log.append(k)
        return out

    x = np.array([[1.0, 2.0, 3.0], [-1.0, 2.0, 3.0]])
    for g in (lambda f: vmap(jit(f))), (lambda f: jit(vmap(f))), (lambda f: vmap(f)):
        for f, sums in (counts, [12.0, 8.0]), (inside, [14.0, 12.0]):
            held["n"], run = 0, g(f)
            for call in range(1, 5):
                onp.testing.assert_array_equal(run(x), sums)
                assert type(held["n"]) is int and held["n"] == 3 * call  # once for all examples
        held["n"], run = 0, g(differs)
        for _ in range(3):
            sums, k = run(x)
            onp.testing.assert_array_equal(k, [6, 5])
            onp.testing.assert_array_equal(sums, [28.0, 20.0])
            assert type(held["n"]) is int and held["n"] == 5
        held["n"], run = 0, g(within)
        onp.testing.assert_array_equal(run(x), [14.0, 20.0])
        assert type(held["n"]) is int and held["n"] == 5
        log.clear()
        g(appends)(x)
        assert [type(k) for k in log] == [int] * len(log) and log[-2:] == [6, 5]
        log.clear()
        onp.testing.assert_array_equal(g(asks)(x), [64.0, 46.0])  # what it keeps before that is a number, too
        assert [type(k) for k in log] == [int] * len(log) and log[-1] == 4

    def appends_pairs(x):
        out, k = differs(x)
        log.append((k, 0))
        return out

    def halves(z):  # in a program of complex numbers
        y = z * 1.0
        for j, v in enumerate(z):
            held["n"] += 0.5
            y[j] = v * 1j
        return y.sum()

    for g in vmap(jit(halves)), jit(vmap(halves)):
        held["n"] = 0.0
        for call in range(1, 4):
            onp.testing.assert_array_equal(g(x + 0j), [6j, 4j])
            assert type(held["n"]) is float and held["n"] == 1.5 * call

    log.clear()
    vmap(jit(appends_pairs))(x)
    assert log[-2:] == [(6, 0), (5, 0)]
    with pytest.raises(minnp.errors.TracedValueError, match="was kept outside the function that vmap ran"):
        log[0][0] + 1
