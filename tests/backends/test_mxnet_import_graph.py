"""A symbol's JSON as a graph, where no mxnet is needed: what is computed, its gradient, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import errors, fx, grad, npx
from minnp.backends.mxnet.importing import to_graph

R = onp.random.default_rng(0)


def evaluate(graph: fx.Graph, **inputs: Any) -> Any:
    return fx.GraphModule({}, graph)(*[inputs[n.target] for n in graph.find_nodes(op="placeholder")])


def symbol(*nodes: tuple, heads: Any = None) -> dict:
    """JSON as MXNet writes it, from (operator, name, attributes, inputs)."""
    numbered = [{"op": o, "name": n, "attrs": a, "inputs": [[*i, 0][:3] for i in ins]} for o, n, a, ins in nodes]
    return {"nodes": numbered, "arg_nodes": [], "heads": heads or [[len(nodes) - 1, 0, 0]], "attrs": {}}


NET = symbol(
    ("null", "data", {}, []),
    ("null", "conv.weight", {}, []),
    (
        "Convolution",
        "conv",
        {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)", "no_bias": "True"},
        [(0, 0), (1, 0)],
    ),
    ("null", "bn_gamma", {}, []),
    ("null", "bn_beta", {}, []),
    ("null", "bn_mean", {}, []),
    ("null", "bn_var", {}, []),
    ("BatchNorm", "bn", {"eps": "0.001", "fix_gamma": "False"}, [(2, 0), (3, 0), (4, 0), (5, 0), (6, 0)]),
    ("Activation", "act", {"act_type": "relu"}, [(7, 0)]),
    ("Pooling", "pool", {"global_pool": "True", "pool_type": "avg", "kernel": "(1, 1)"}, [(8, 0)]),
    ("Flatten", "flat", {}, [(9, 0)]),
    ("Dropout", "drop", {"p": "0.5"}, [(10, 0)]),
    ("null", "fc_weight", {}, []),
    ("null", "fc_bias", {}, []),
    ("FullyConnected", "fc", {"num_hidden": "3"}, [(11, 0), (12, 0), (13, 0)]),
    ("null", "label", {}, []),
    ("SoftmaxOutput", "softmax", {}, [(14, 0), (15, 0)]),
)
ARRAYS = {
    "data": R.normal(size=(2, 3, 5, 5)),
    "conv.weight": R.normal(size=(4, 3, 3, 3)),
    "bn_gamma": R.uniform(0.5, 1, 4),
    "bn_beta": R.normal(size=4),
    "bn_mean": R.normal(size=4),
    "bn_var": R.uniform(0.5, 1, 4),
    "fc_weight": R.normal(size=(3, 4)),
    "fc_bias": R.normal(size=3),
    "label": onp.zeros(2),
}


def by_hand(data: Any, **p: Any) -> Any:
    y = npx.convolution(data, p["conv.weight"], kernel=(3, 3), pad=(1, 1))
    shape = (1, 4, 1, 1)
    scale = (p["bn_gamma"] / np.sqrt(p["bn_var"] + 1e-3)).reshape(shape)
    y = np.maximum((y - p["bn_mean"].reshape(shape)) * scale + p["bn_beta"].reshape(shape), 0)
    return npx.softmax(np.mean(y, axis=(2, 3)) @ p["fc_weight"].T + p["fc_bias"])


def test_a_network_in_json_is_a_graph_of_numpy_calls() -> None:
    graph = to_graph(json.dumps(NET))
    graph.lint()
    assert [n.target for n in graph.find_nodes(op="placeholder")] == list(ARRAYS)
    assert not any("drop" in n.name for n in graph.nodes)
    arrays = {k: np.array(v) for k, v in ARRAYS.items()}
    onp.testing.assert_allclose(onp.asarray(evaluate(graph, **arrays)), onp.asarray(by_hand(**arrays)), rtol=1e-12)


def test_a_graph_has_the_second_derivatives_a_symbol_lacks() -> None:
    graph = to_graph(NET)
    arrays = {k: np.array(v) for k, v in ARRAYS.items()}
    rest = {k: v for k, v in arrays.items() if k != "fc_weight"}

    def second(f: Any) -> Any:
        inner = grad(lambda w: np.sum(f(fc_weight=w, **rest)[:, 0]))
        return grad(lambda w: np.sum(inner(w) ** 2))(arrays["fc_weight"])

    got = second(lambda **a: evaluate(graph, **a))
    assert onp.abs(onp.asarray(got)).max() > 1e-3
    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(second(by_hand)), rtol=1e-9, atol=1e-12)


def test_training_drops_and_writes_the_moving_averages() -> None:
    graph = to_graph(NET, training=True)
    arrays = {k: np.array(v) for k, v in ARRAYS.items()}
    evaluate(graph, **arrays)
    assert any("dropout" in n.name for n in graph.nodes)
    assert not onp.allclose(onp.asarray(arrays["bn_mean"]), ARRAYS["bn_mean"])


@pytest.mark.parametrize(
    ("codes", "reverse", "shape"),
    [((0, -1), False, (2, 60)), ((-2,), False, (2, 3, 4, 5)), ((0, -3, 5), False, (2, 12, 5)),
     ((-4, 1, -1, -2), False, (1, 2, 3, 4, 5)), ((-1, 0, 0), True, (6, 4, 5)), ((4, -1), False, (4, 30))],
)  # fmt: skip
def test_the_codes_of_mxnets_reshape(codes: tuple, reverse: bool, shape: tuple) -> None:
    x = R.normal(size=(2, 3, 4, 5))
    attributes = {"shape": str(codes), "reverse": str(reverse)}
    graph = to_graph(symbol(("null", "x", {}, []), ("Reshape", "r", attributes, [(0, 0)])))
    onp.testing.assert_array_equal(onp.asarray(evaluate(graph, x=np.array(x))), x.reshape(shape))


def test_several_results_are_a_tuple() -> None:
    nodes = [("null", "x", {}, []), ("SliceChannel", "s", {"num_outputs": "2", "axis": "1"}, [(0, 0)])]
    graph = to_graph(symbol(*nodes, heads=[[1, 1, 0], [1, 0, 0]]))
    x = R.normal(size=(2, 4))
    right, left = evaluate(graph, x=np.array(x))
    onp.testing.assert_array_equal(onp.asarray(right), x[:, 2:])
    onp.testing.assert_array_equal(onp.asarray(left), x[:, :2])


def test_what_has_no_translation_is_named() -> None:
    with pytest.raises(errors.SymbolError, match=r"node 'roi'.*ROIPooling has no translation"):
        to_graph(symbol(("null", "x", {}, []), ("ROIPooling", "roi", {}, [(0, 0)])))
    with pytest.raises(errors.SymbolError, match=r"node 'c' \(Convolution\): layout NHWC has no translation"):
        to_graph(symbol(("null", "x", {}, []), ("null", "w", {}, []),
                        ("Convolution", "c", {"kernel": "(1, 1)", "layout": "NHWC"}, [(0, 0), (1, 0)])))  # fmt: skip
