"""MXNet's quantised operators against its own, and a network quantised by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.symbol as sym
from minnp import backends
from minnp.symbol.operator import OPERATORS

sys.path.insert(0, str(Path(__file__).parent))
from cases import QUANTISED

pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.either("each operator once, whose C parts have tests of their own"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),
]
draw = onp.random.default_rng(0)
FLOATS = draw.normal(0, 1, (3, 5)).astype("float32")
SIGNED, PLAIN = (
    draw.integers(lo, hi, (2, 3, 6, 6)).astype(t) for lo, hi, t in ((-120, 120, "int8"), (0, 250, "uint8"))
)
WHOLE = draw.integers(-(2**30), 2**30, (4, 5)).astype("int32")
# On processors without instructions for 8-bit integers MXNet adds two products in 16 bits, where these fit.
WEIGHT, BIAS = draw.integers(-60, 60, (4, 108)).astype("int8"), draw.integers(-100, 100, 4).astype("int8")
KERNEL = draw.integers(-120, 120, (4, 3, 3, 3)).astype("int8")


def ranges(*values: float) -> list[onp.ndarray]:
    return [onp.array([v], "float32") for v in values]


VECTORS = [onp.array(v, "float32") for v in ([1, 2, 1], [0, 0.1, 0.2], [0.1, 0.2, 0.3], [1, 2, 3])]
DATA = ranges(-1, 2)
BOTH = ranges(-1, 2, -0.5, 0.4)
CASES = [
    ("quantize", [FLOATS, *DATA], {"out_type": "int8"}),
    ("quantize", [FLOATS, *DATA], {"out_type": "uint8"}),
    *[("quantize_v2", [FLOATS], {"out_type": t}) for t in ("int8", "uint8", "auto")],
    ("quantize_v2", [FLOATS], {"out_type": "auto", "min_calib_range": 0.0, "max_calib_range": 1.5}),
    ("quantize_v2", [FLOATS], {"out_type": "auto", "min_calib_range": -1.0, "max_calib_range": 1.5}),
    ("dequantize", [SIGNED, *DATA], {}),
    ("dequantize", [PLAIN, *DATA], {}),
    ("requantize", [WHOLE, *DATA], {}),
    ("requantize", [WHOLE, *DATA], {"min_calib_range": -0.2, "max_calib_range": 0.5}),
    ("requantize", [WHOLE, *DATA], {"min_calib_range": 0.0, "max_calib_range": 0.5, "out_type": "auto"}),
    ("quantized_conv", [PLAIN, KERNEL, *BOTH], {"kernel": (3, 3), "num_filter": 4, "no_bias": True, "pad": (1, 1)}),
    *[("quantized_fully_connected", [x, WEIGHT, BIAS, *BOTH, *ranges(-0.3, 0.3)], {"num_hidden": 4})
      for x in (SIGNED, PLAIN)],
    ("quantized_fully_connected", [SIGNED, WEIGHT, *BOTH], {"num_hidden": 4, "no_bias": True}),
    *[("quantized_pooling", [x, *DATA], {"kernel": (2, 2), "stride": (2, 2), "pool_type": kind})
      for x in (SIGNED, PLAIN) for kind in ("max", "avg")],
    ("quantized_pooling", [SIGNED, *DATA], {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)}),
    ("quantized_act", [SIGNED, *DATA], {"act_type": "relu"}),
    ("quantized_flatten", [SIGNED, *DATA], {}),
    *[("quantized_elemwise_add", [x, x[::-1].copy(), *BOTH], {}) for x in (SIGNED, PLAIN)],
    *[("quantized_elemwise_mul", [SIGNED, SIGNED[::-1].copy(), *BOTH], options) for options in (
        {}, {"min_calib_range": -0.5, "max_calib_range": 1.0}, {"enable_float_output": True})],
    ("quantized_concat", [SIGNED, SIGNED[::-1].copy(), *BOTH], {"dim": 1, "num_args": 2}),
    ("quantized_batch_norm", [SIGNED, *VECTORS, *DATA], {"min_calib_range": -1.0, "max_calib_range": 2.0}),
    ("quantized_embedding", [onp.array([1, 0, 3], "float32"), WEIGHT, *ranges(-1, 1)],
     {"input_dim": 4, "output_dim": 108}),
]  # fmt: skip


def test_every_quantised_operator_has_a_case() -> None:
    assert {f"_contrib_{name}" for name, *_ in CASES} == {n for n in OPERATORS if n.startswith(QUANTISED)}


@pytest.mark.skipif("mxnet" not in backends.installed(), reason="compares with mxnet 1.9.1")
@pytest.mark.parametrize("at", range(len(CASES)), ids=[c[0] for c in CASES])
def test_quantised_operators_equal_mxnets(at: int) -> None:
    import mxnet as mx

    name, arrays, options = CASES[at]
    made = {}
    for library in (sym, mx.sym):
        create = getattr(library.contrib, name)
        if "concat" in name:
            net = create(library.Variable("a"), library.Variable("b"), name="q", **options)
        else:
            net = create(name="q", **options)
        made[library] = net
    ours, theirs = made[sym], made[mx.sym]
    assert ours.list_arguments() == theirs.list_arguments() and ours.list_outputs() == theirs.list_outputs()
    assert sym.load_json(theirs.tojson()).list_inputs() == ours.list_inputs()
    names = ours.list_inputs()
    shapes = {n: a.shape for n, a in zip(names, arrays) if n in ours.list_arguments()}
    assert [tuple(s) for s in ours.infer_shape(**shapes)[1]] == [tuple(s) for s in theirs.infer_shape(**shapes)[1]]
    given = dict(zip(names, arrays))
    states = {n: given.pop(n) for n in ours.list_auxiliary_states()}
    got = ours.bind(None, dict(given), aux_states=dict(states), grad_req="null").forward()
    there = [{n: mx.nd.array(a, dtype=a.dtype) for n, a in some.items()} for some in (given, states)]
    want = theirs.bind(mx.cpu(), there[0], aux_states=there[1], grad_req="null").forward()
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        a, b = onp.asarray(a), b.asnumpy()
        if name == "quantized_conv" and i:
            b = b * (127 / 255)  # of uint8, too, MXNet says the range of int8
        assert a.dtype == b.dtype and a.shape == b.shape
        near = 1 if a.dtype in (onp.int8, onp.uint8) else 4e-6 * onp.abs(b).max()
        assert onp.abs(a.astype(float) - b).max() <= near, (a.ravel()[:5], b.ravel()[:5])


def test_a_quantised_network_is_near_the_one_it_was_made_of() -> None:
    x = draw.normal(0, 1, (2, 3, 8, 8)).astype("float32")
    w, b = draw.normal(0, 0.3, (4, 3, 3, 3)).astype("float32"), draw.normal(0, 0.3, 4).astype("float32")
    contrib = sym.contrib
    data = contrib.quantize_v2(sym.Variable("data"), out_type="int8")
    weight, bias = (contrib.quantize_v2(sym.Variable(n), out_type="int8") for n in ("weight", "bias"))
    parts: list[Any] = [data[0], weight[0], bias[0], *data[1:], *weight[1:], *bias[1:]]
    y = contrib.quantized_conv(*parts, kernel=(3, 3), num_filter=4, pad=(1, 1))
    y = contrib.requantize(*y)
    y = contrib.quantized_act(*y, act_type="relu")
    y = contrib.dequantize(*contrib.quantized_pooling(*y, kernel=(2, 2), stride=(2, 2), pool_type="max"))
    plain = sym.Convolution(sym.Variable("data"), sym.Variable("weight"), sym.Variable("bias"), kernel=(3, 3),
                            num_filter=4, pad=(1, 1))  # fmt: skip
    plain = sym.Pooling(sym.Activation(plain, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    results = [onp.asarray(net.eval(data=x, weight=w, bias=b)[0]) for net in (y, plain)]
    assert onp.abs(results[0] - results[1]).max() < 0.03 * onp.abs(results[1]).max()
    f = minnp.Function(sym.load_json(y.tojson()))
    assert onp.array_equal(onp.asarray(f(data=x, weight=w, bias=b)), results[0])


def test_parameters_by_position_are_those_of_mxnet() -> None:
    x, w, b = map(sym.Variable, "xwb")
    assert sym.FullyConnected(x, w, b, 3).list_arguments() == ["x", "w", "b"]
    assert sym.Convolution(x, w, b, (1, 1), num_filter=3).list_arguments() == ["x", "w", "b"]
    assert sym.Convolution(x, w, no_bias=True, kernel=(1, 1), num_filter=3).list_arguments() == ["x", "w"]


def test_what_is_not_quantised_is_an_error() -> None:
    dense = sym.contrib.quantized_fully_connected(sym.Variable("x"), num_hidden=2, no_bias=True, name="fc")
    floats = {n: onp.ones(s, "float32") for n, s in zip(dense.list_arguments(), ((1, 2), (2, 2), *[(1,)] * 4))}
    with pytest.raises(ValueError, match="an array of float32 is not quantised"):
        dense.eval(**floats)
    with pytest.raises(ValueError, match="only relu"):
        sym.contrib.quantized_act(sym.Variable("x"), act_type="tanh", name="a").eval(
            x=SIGNED, a_min_data=DATA[0], a_max_data=DATA[1])  # fmt: skip
