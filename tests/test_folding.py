"""Folded networks: the same values, with one node where a convolution and what follows it were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import backends, jit, nn, npx
from minnp.core.graph.graph import Graph
from minnp.core.graph.node import target_name
from minnp.core.jit.executor import compile_host
from minnp.core.passes import fold_convolutions

R = onp.random.default_rng(0)
X = R.normal(size=(2, 3, 6, 6)).astype("f4")


def run(graph: Graph, *args: Any) -> Any:
    compiled = compile_host(graph, {n.target: n.meta["constant"] for n in graph.find_nodes(op="get_attr")})
    return compiled(*args)[0]


def folded(f: Callable, *args: Any) -> tuple[Graph, list[str]]:
    """The folded graph of f, its values compared with f's, and the names of what it calls."""
    want = onp.asarray(f(*map(np.array, args)))
    graph = fold_convolutions(jit(f).lower(*args).graph)
    graph.lint()
    got = run(graph, *args)
    assert got.dtype == want.dtype
    onp.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return graph, [target_name(n.target) for n in graph.nodes if n.op == "call_function"]


def trained(model: Any) -> Any:
    """A model whose batch norms have seen something."""
    for layer in model.steps:
        if isinstance(layer, nn.BatchNorm):
            for kept in (layer.params, layer.aux_params):
                for name, value in kept.items():
                    kept[name] = np.array(R.uniform(0.5, 2, value.shape).astype("f4"))
    return model


def test_batch_norm_and_relu_go_into_the_convolution() -> None:
    layers = [nn.Conv2D(3, 8, 3, pad="same", bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv2D(8, 4, 3, stride=2)]
    model = trained(nn.Sequential(*layers, nn.BatchNorm(4)).init(0))
    graph, calls = folded(lambda x: model(x, mode="test"), X)
    assert calls == ["npx.conv_act", "npx.conv_act"]
    assert [n.kwargs["activation"] for n in graph.nodes if n.op == "call_function"] == ["relu", ""]
    assert all(not n.meta["constant"].flags.writeable for n in graph.find_nodes(op="get_attr"))


W = R.normal(size=(4, 3, 3, 3)).astype("f4")
V = R.uniform(0.5, 2, (1, 4, 1, 1)).astype("f4")
CASES = {
    "scaled both ways": (lambda y: -(2.0 - V * (y - V) / V) * 3.0, 1),
    "relu by maximum": (lambda y: np.maximum(y + V, 0), 1),
    "a sum": (lambda y: npx.relu(y + 0.5 + np.ones((2, 4, 4, 4), np.float32)), 2),  # the ones are made in the graph
    "read twice": (lambda y: y * V + y, 3),
    "of rows": (lambda y: y * V.reshape(4, 1), 2),
    "divided by": (lambda y: 1.0 / (y + 100.0), 2),
    "a relu before": (lambda y: npx.relu(y) * V, 2),
    "twice the same": (lambda y: (y + V) * (y + V), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_taken_in_and_what_is_left(name: str) -> None:
    after, count = CASES[name]
    weight = np.array(W)
    _, calls = folded(lambda x: after(npx.convolution(x, weight, kernel=(3, 3))), X)
    assert len(calls) == count and calls.count("npx.conv_act") == 1, calls


def test_residual_blocks_sum_inside_the_second_convolution() -> None:
    body = trained(nn.Sequential(nn.Conv2D(3, 3, 3, pad="same"), nn.BatchNorm(3)).init(0))
    side = trained(nn.Sequential(nn.Conv2D(3, 3, 1), nn.BatchNorm(3)).init(1))
    block = lambda x: npx.relu(body(x, mode="test") + side(x, mode="test"))
    _, calls = folded(lambda x: np.mean(block(block(x)), axis=(2, 3)), X)
    assert calls == ["npx.conv_act"] * 4 + ["mean"]


def test_a_weight_that_is_an_input_is_left_alone() -> None:
    graph = fold_convolutions(jit(lambda x, w: npx.convolution(x, w, kernel=(3, 3)) * 2.0).lower(X, W).graph)
    assert [n.target.name for n in graph.nodes if n.op == "call_function"] == ["npx.conv", "multiply"]


@pytest.mark.skipif("torch" not in backends.installed(), reason="needs torch")
def test_a_folded_graph_runs_on_torch_from_any_layout() -> None:
    model = trained(nn.Sequential(nn.Conv2D(3, 8, 3, pad="same", bias=False), nn.BatchNorm(8), nn.ReLU()).init(0))
    f = lambda x: model(x, mode="test")
    graph = fold_convolutions(jit(f).lower(X).graph)
    node = graph.find_nodes(op="call_function")[0]
    weight, bias = (n.meta["constant"] for n in node.args[1:])
    kernel = backends.get("torch").kernel(node.target)
    want = onp.asarray(f(np.array(X)))
    for x in (X, onp.asfortranarray(X), X[:, :, ::-1][:, :, ::-1]):
        for _ in range(2):
            onp.testing.assert_allclose(kernel(x, weight, bias, **node.kwargs), want, rtol=1e-4, atol=1e-5)
