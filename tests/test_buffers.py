"""Intermediate results of compiled code lie in a block that is planned once and found again by later calls."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import jit
from minnp.core.llvm import engine

COMPILERS = ["numpy", *["llvm"] * engine.available()]
X, W = onp.linspace(-1, 1, 51200).reshape(512, 100), onp.linspace(-0.1, 0.2, 10000).reshape(100, 100)


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = np.tanh(x @ w) * 2.0
    return x.sum(axis=0)


def elementwise(x: Any, w: Any) -> Any:
    y = np.cumsum(np.exp(x) * 2 - x, axis=0)  # chains end at what is not elementwise
    return np.sort(y * y + x, axis=1).sum(axis=1)


def shows_some(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    y = np.exp(h @ w) * h
    return h[1:], y.T, (y @ w)[0]


def peak(f: Any, *args: Any) -> int:
    """Bytes that a call allocates at once, besides what it found there."""
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.host("graphs compiled for torch leave memory to torch")
def test_a_second_call_allocates_no_intermediates() -> None:
    x, w = np.array(X), np.array(W)
    compiled = jit(layers, compiler="numpy")
    compiled(x, w)
    assert peak(compiled, x, w) > X.nbytes  # the block is made
    for _ in range(3):
        assert peak(compiled, x, w) < X.nbytes // 4  # the result of 800 bytes, and what NumPy's loops buffer
    assert peak(layers, x, w) > X.nbytes


@pytest.mark.host("graphs compiled for torch leave memory to torch")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_results_are_nobody_elses_memory(compiler: str) -> None:
    for f in (layers, elementwise, shows_some):
        compiled, kept = jit(f, compiler=compiler), []
        for scale in (1.0, 2.0, -1.0, 0.5):
            args = np.array(X * scale), np.array(W)
            kept.append((f(*args), compiled(*args)))
        assert compiler != "numpy" or any(
            "block[" in path.run.source for paths in compiled.paths.values() for path in paths
        )
        flat = lambda v: [onp.asarray(a) for a in (v if isinstance(v, tuple) else (v,))]
        for want, got in kept:  # after all calls
            for a, b in zip(flat(want), flat(got), strict=True):
                onp.testing.assert_allclose(b, a, rtol=1e-12)
                assert compiler != "numpy" or a.strides == b.strides
        arrays = [a for _, got in kept for a in flat(got)[:1]]
        assert not any(onp.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@pytest.mark.host("strides and bits are NumPy's")
def test_other_layouts_keep_numpys() -> None:
    f = lambda x: np.cumsum(np.exp(x) + 1, axis=0) * np.tanh(np.sort(x, axis=0) - 1)
    compiled, x = jit(f, compiler="numpy"), np.array(X)
    for given in (x, x.T.copy().T, x[:, ::-1], x):
        want, got = onp.asarray(f(given)), onp.asarray(compiled(given))
        onp.testing.assert_array_equal(got, want)
        assert got.strides == want.strides


def test_threads_and_nested_calls_have_blocks_of_their_own() -> None:
    compiled, w = jit(elementwise, compiler="numpy"), np.array(W)
    inputs = [np.array(X * k) for k in range(1, 5)]
    want, wrong = [onp.asarray(compiled(x, w)).copy() for x in inputs], []

    def work(k: int) -> None:
        for _ in range(30):
            if not onp.array_equal(onp.asarray(compiled(inputs[k], w)), want[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.host("graphs compiled for torch leave memory to torch")
def test_what_is_added_at_an_index_lies_in_the_block() -> None:
    def f(g: Any, i: Any, j: Any) -> Any:
        a = np.zeros((300, 20))
        np.add.at(a, i, g)
        np.subtract.at(a, j, g * 2)
        return a

    r, g = onp.random.RandomState(0), jit(f)
    for _ in range(4):
        args = np.array(r.randn(40, 20)), np.array(r.randint(300, size=40)), np.array(r.randint(-300, 300, 40))
        onp.testing.assert_allclose(g(*args), f(*args), rtol=1e-13)
    lines = [line for paths in g.paths.values() for line in paths[0].run.source.splitlines()]
    assert [line for line in lines if "k_index_add" in line and "out=block[" in line]
