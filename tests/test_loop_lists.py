"""Lists that grow in compiled loops."""

from __future__ import annotations

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def running(x):
    out, places = [], []
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out.append(s)
        if x[i] > 0.5:
            places.append((i, x[i], True, x[i] > 0.7))
    return out, places, s


def of_two_kinds(x):
    out = []
    s = 0
    for i in range(len(x)):
        s = s + x[i] if i > 3 else i
        out.append(s)
    return out, np.array(out)


def that_fails(x):
    out = [1]
    try:
        for i in range(200):
            out.append(x[i])
            x[i] = 5.0
    except IndexError:
        out.append(-1)
    return out, x


def of_two_names(x):
    a = b = []
    for i in range(len(x)):
        a.append(x[i])
        b.append(i)
    return a


def that_is_read(x):
    a = []
    held = [a, 3]
    s = 0
    for i in range(len(x)):
        a.append(i)
        s += len(held[0])
    return a, s


def of_rows(x):
    rows = []
    for i in range(20):
        row = []
        for j in range(i):
            row.append([x[j], j])
        rows.append(row)
    return rows


def kinds(x):
    if isinstance(x, (list, tuple)):
        return [type(x), *map(kinds, x)]
    return (x.dtype, x.tolist()) if isinstance(x, onp.ndarray) else (type(x), x)


@pytest.mark.parametrize("f", [running, of_two_kinds, that_fails, of_two_names, that_is_read, of_rows])
def test_lists_grow(f):
    g = jit(f)
    for seed in range(3):
        x = onp.random.default_rng(seed).random(150 + seed)
        assert kinds(g(x.copy())) == kinds(f(x.copy()))


def test_loops_that_append_are_compiled():
    def f(into, x):
        for v in x:
            into.append(v * 2)

    minnp.report(reset=True)
    into, g = ["a"], jit(f)
    for _ in range(2):
        g(into, onp.arange(100))
    assert into == ["a", *range(0, 200, 2), *range(0, 200, 2)]
    assert type(into[-1]) is onp.int64
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_gradients_of_loops_that_append():
    def f(x):
        out = []
        for i in range(len(x)):
            out.append(x[i] ** 2)
        return sum(out)

    x = np.arange(20.0)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        onp.testing.assert_allclose(g(x), 2 * x)
