"""The architectures of MXNet's model zoo, with random weights: the same outputs, gradients and states as MXNet's."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.symbol as sym
from minnp import backends

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

import mxnet as mx

pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]


def exported(name: str, batch: int, size: int) -> tuple[Any, dict, dict, Any]:
    """(MXNet's symbol, arguments, states, its prediction)."""
    vision = pytest.importorskip("mxnet.gluon.model_zoo.vision")
    mx.random.seed(0)
    net = vision.get_model(name)
    net.initialize(mx.init.Xavier())
    x = onp.random.default_rng(0).normal(size=(batch, 3, size, size)).astype(onp.float32)
    prediction = net(mx.nd.array(x)).asnumpy()
    symbol = net(mx.sym.Variable("data"))
    values = {n: p.data().asnumpy() for n, p in net.collect_params().items()}
    arguments = {n: values[n] for n in symbol.list_arguments() if n != "data"} | {"data": x}
    return symbol, arguments, {n: values[n] for n in symbol.list_auxiliary_states()}, prediction


@pytest.mark.parametrize(
    ("name", "size"),
    [("resnet18_v1", 32), ("resnet34_v2", 32), ("resnet50_v1", 32), ("resnet50_v2", 32), ("vgg11_bn", 32),
     ("alexnet", 224), ("densenet121", 224), ("squeezenet1.0", 224), ("squeezenet1.1", 224), ("mobilenet0.25", 32),
     ("mobilenetv2_0.25", 32), ("inceptionv3", 299)],
)  # fmt: skip
def test_a_model_predicts_the_same(name: str, size: int) -> None:
    symbol, arguments, states, expected = exported(name, 1, size)
    ours = sym.load_json(symbol.tojson())
    shapes = ours.infer_shape(data=arguments["data"].shape)
    assert shapes == symbol.infer_shape(data=arguments["data"].shape)
    (y,) = ours.bind(None, arguments, grad_req="null", aux_states=states).forward()
    onp.testing.assert_allclose(onp.asarray(y), expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("name", ["resnet18_v1", "resnet18_v2"])
def test_a_model_trains_the_same(name: str) -> None:
    symbol, arguments, states, prediction = exported(name, 4, 64)
    head = onp.random.default_rng(1).normal(size=prediction.shape).astype(onp.float32)
    array = lambda arrays: {n: mx.nd.array(a) for n, a in arrays.items()}
    empty = {n: onp.zeros_like(a) for n, a in arguments.items()}
    theirs = symbol.bind(mx.cpu(), array(arguments), array(empty), aux_states=array(states))
    expected = theirs.forward(is_train=True)[0].asnumpy()
    theirs.backward(mx.nd.array(head))
    # in double precision, so that what differs is MXNet's rounding alone
    double = lambda arrays: {n: a.astype(onp.float64) for n, a in arrays.items()}
    ours = sym.load_json(symbol.tojson()).bind(None, double(arguments), double(empty), aux_states=double(states))
    (y,) = ours.forward(is_train=True)
    ours.backward(head)
    onp.testing.assert_allclose(onp.asarray(y), expected, rtol=1e-3, atol=1e-4)
    for n, g in theirs.grad_dict.items():
        g = g.asnumpy()
        assert onp.linalg.norm(g - onp.asarray(ours.grad_dict[n])) <= 2e-2 * (onp.linalg.norm(g) + 1), n
    for n, state in theirs.aux_dict.items():
        onp.testing.assert_allclose(onp.asarray(ours.aux_dict[n]), state.asnumpy(), rtol=1e-3, atol=1e-4, err_msg=n)
