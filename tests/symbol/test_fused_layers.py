"""Layers that oneDNN fused, in symbols that MXNet saved: they are read as the operators they were made of."""

from __future__ import annotations

import json

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp import errors


def fused(op: str, attributes: dict, inner: sym.Symbol) -> str:
    """The JSON of a symbol that is one such layer, of variables a0, a1, ..."""
    body = json.loads(inner.tojson())
    count = len(inner.list_inputs())
    variables = [{"op": "null", "name": f"a{i}", "inputs": []} for i in range(count)]
    layer = {"op": op, "name": "layer", "attrs": attributes, "inputs": [[i, 0, 0] for i in range(count)]}
    for unused in ("attrs",):
        body.pop(unused, None)
    nodes = [*variables, layer | {"subgraphs": [body]}]
    return json.dumps({"nodes": nodes, "arg_nodes": list(range(count)), "heads": [[count, 0, 0]],
                       "attrs": {"mxnet_version": ["int", 10901]}})  # fmt: skip


def block() -> sym.Symbol:
    x = sym.Convolution(sym.Variable("x"), kernel=(3, 3), pad=(1, 1), num_filter=2, no_bias=True, name="c")
    return sym.Activation(sym.BatchNorm(x, fix_gamma=False, name="b"), act_type="relu", name="r")


def test_a_fused_layer_is_read_as_its_operators() -> None:
    net = sym.load_json(fused("_sg_mkldnn_conv", {"with_bn": "true", "with_act": "true"}, block()))
    assert net.list_outputs() == ["layer_output"] and net.list_arguments() == ["a0", "a1", "a2", "a3"]
    assert net.list_auxiliary_states() == ["a4", "a5"]
    draw = onp.random.default_rng(0)
    shapes = dict(zip(block().list_inputs(), [(1, 3, 4, 4), (2, 3, 3, 3), *[(2,)] * 4]))
    arrays = [np.array(draw.uniform(0.5, 1, s)) for s in shapes.values()]
    run = lambda net: net.bind(None, arrays[:4], aux_states=arrays[4:]).forward()[0]
    onp.testing.assert_array_equal(run(net), run(block()))
    assert sym.load_json(net.tojson()).list_outputs() == ["layer_output"]


def test_attention_and_what_cannot_be_read() -> None:
    text = sym.contrib.interleaved_matmul_selfatt_qk(sym.Variable("x"), heads=2, name="qk").tojson()
    net = sym.load_json(text.replace("_contrib_interleaved_matmul", "_sg_mkldnn"))
    assert net.infer_shape(x=(5, 2, 24))[1] == [(4, 5, 5)]
    with pytest.raises(errors.SymbolError, match=r"'layer' \(_sg_mkldnn_conv\) is a layer of 8-bit integers"):
        sym.load_json(fused("_sg_mkldnn_conv", {"quantized": "true"}, block()))
    broken = json.loads(fused("_sg_mkldnn_conv", {}, block()))
    broken["nodes"][-1]["inputs"].pop()
    with pytest.raises(errors.SymbolError, match="has 5 inputs, which its subgraph does not take"):
        sym.load_json(json.dumps(broken))
    broken["nodes"][-1]["subgraphs"] = []
    with pytest.raises(errors.SymbolError, match="has 5 inputs, which its subgraph does not take"):
        sym.load_json(json.dumps(broken))


@pytest.mark.skipif("mxnet" not in minnp.backends.installed(), reason="MXNet fuses these layers")
@pytest.mark.host("MXNet computes on the host")
@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
def test_what_mxnet_fused_gives_the_same() -> None:
    import mxnet as mx

    x = mx.sym.Convolution(mx.sym.Variable("x"), kernel=(3, 3), pad=(1, 1), num_filter=4, name="c1")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="b1"), act_type="relu")
    y = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name="c2")
    x = mx.sym.Activation(mx.sym.elemwise_add(x, y), act_type="relu")
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=3, name="fc"), act_type="sigmoid")
    theirs = x.optimize_for("MKLDNN")
    ours = sym.load_json(theirs.tojson())
    assert "_sg_mkldnn_conv" in theirs.tojson() and "_sg_" not in ours.tojson()
    assert (ours.list_arguments(), ours.list_auxiliary_states()) == (
        theirs.list_arguments(),
        theirs.list_auxiliary_states(),
    )
    assert ours.list_outputs() == theirs.list_outputs()
    shapes = ours.infer_shape(x=(2, 3, 6, 6))
    draw = onp.random.default_rng(0)
    values = {n: draw.uniform(0.2, 1, s).astype("f4") for n, s in zip(ours.list_arguments(), shapes[0])}
    states = {n: draw.uniform(0.5, 1, s).astype("f4") for n, s in zip(ours.list_auxiliary_states(), shapes[2])}
    nd = lambda arrays: {n: mx.nd.array(a) for n, a in arrays.items()}
    expected = x.bind(mx.cpu(), nd(values), aux_states=nd(states)).forward()[0].asnumpy()
    found = ours.bind(None, values, aux_states=states).forward()[0]
    onp.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
