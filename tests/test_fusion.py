"""Elementwise fusion: jitted functions on large arrays run in blocks, with the bits of the eager ones."""

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import fx, grad, jit
from minnp.core.passes import fuse_elementwise
from minnp.core.passes.fusion import Fused, in_order

SHAPE = (300, 400)


def arrays(dtype: str = "d") -> list:
    rng = onp.random.default_rng(0)
    return [np.asarray((rng.random(SHAPE) + 0.5).astype(dtype)) for _ in range(3)]


def fused(f: Any, *args: Any) -> list[Fused]:
    graph = fuse_elementwise(jit(f, compiler="numpy").lower(*args).graph.copy())
    graph.lint()
    return [n.target for n in graph.nodes if isinstance(n.target, Fused)]


FUNCTIONS = {
    "chain": lambda x, p, q: np.exp(-x * x) * np.tanh(x) + np.log(p) * np.sqrt(p),
    "two results": lambda x, p, q: (np.sin(x) * p, np.sin(x) * p + q),
    "ends in a mean": lambda x, p, q: np.mean((np.tanh(x * p) - q) ** 2),
    "ends in rows": lambda x, p, q: np.sum(np.exp(x - p) / q, axis=-1, keepdims=True),
    "ends in a maximum": lambda x, p, q: np.max(np.abs(x - p) * q),
    "softmax": lambda x, p, q: np.exp(x - np.max(x, axis=1, keepdims=True)) / np.sum(np.exp(x), axis=1, keepdims=True),
    "where": lambda x, p, q: np.where(x > p, x * q, 0.0) + (p > q).astype(x.dtype),
    "a row and a column": lambda x, p, q: (x + p[0]) * q[:, :1] - 2.5,
    "a number from between": lambda x, p, q: np.exp(x) * np.sum(np.exp(x) * p) + q,
    "a product between": lambda x, p, q: np.tanh(np.tanh(x @ p.T) @ q * 0.01) * x + 1,
    "a write between": lambda x, p, q: written(np.exp(x) + p) * q + 1,
}


def written(a: Any) -> Any:
    a[3:5] = 0
    return a * 2


@pytest.mark.host("the fused code is NumPy's: its results are the eager ones to the bit where those are NumPy's too")
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_the_eager_ones(name: str, dtype: str) -> None:
    f, args = FUNCTIONS[name], arrays(dtype)
    assert fused(f, *args)
    eager, compiled = f(*args), jit(f, compiler="numpy")
    for _ in range(2):
        ours = compiled(*args)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (ours, eager)), strict=True):
            a, b = onp.asarray(a), onp.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_through_fused_code(name: str) -> None:
    def loss(x: Any, p: Any, q: Any) -> Any:
        out = FUNCTIONS[name](x, p, q)
        return sum(np.sum(o) for o in out) if isinstance(out, tuple) else np.sum(out)

    args = arrays()
    eager, compiled = grad(loss, argnum=(0, 1, 2))(*args), jit(grad(loss, argnum=(0, 1, 2)))(*args)
    for a, b in zip(compiled, eager, strict=True):
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=1e-13, atol=1e-13)


def test_one_chain_is_one_call() -> None:
    (call,) = fused(FUNCTIONS["chain"], *arrays())
    assert len(call.names) == 9
    (call,) = fused(FUNCTIONS["ends in a mean"], *arrays())
    assert call.names[-1] == "mean"
    assert "fused" in repr(call)


def test_small_arrays_are_left_alone() -> None:
    assert fused(FUNCTIONS["chain"], *[a[:3] for a in arrays()]) == []


def test_a_graph_whose_nodes_need_each_other_is_refused():
    graph = fx.symbolic_trace(lambda x: np.exp(np.sin(x))).graph
    sine, exponential = graph.find_nodes(op="call_function")
    sine.args = (exponential,)
    with pytest.raises(ValueError, match="in a circle: exp and sin"):
        in_order(graph)
