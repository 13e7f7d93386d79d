"""The architectures of MXNet's model zoo, with random weights: the same outputs, gradients and states as MXNet's."""

from __future__ import annotations

import json
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
    pytest.mark.either("convolutions of this size take the same way"),
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


# One of each family; `--exhaustive` has the others, which differ in how often they repeat a block.
PREDICTED = {
    False: [("resnet18_v1", 32), ("resnet50_v2", 32), ("vgg11_bn", 32), ("densenet121", 224), ("squeezenet1.0", 224),
            ("mobilenet0.25", 32), ("mobilenetv2_0.25", 32), ("inceptionv3", 299)],
    True: [("resnet34_v2", 32), ("resnet50_v1", 32), ("resnet101_v2", 32), ("resnet152_v1", 32), ("resnet152_v2", 32),
           ("vgg16", 32), ("vgg19_bn", 32), ("alexnet", 224), ("densenet201", 224), ("squeezenet1.1", 224),
           ("mobilenet1.0", 32), ("mobilenetv2_1.0", 32)],
}  # fmt: skip
# Pictures of 64 where those of 32 have one place left in deep layers: a norm over two numbers takes rounding for data.
TRAINED = {
    False: [("resnet18_v2", 32), ("squeezenet1.0", 224), ("mobilenet0.25", 32), ("mobilenetv2_0.25", 32)],
    True: [("resnet18_v1", 32), ("resnet50_v1", 32), ("resnet50_v2", 32), ("vgg11_bn", 32), ("alexnet", 224),
           ("densenet121", 224), ("inceptionv3", 299), ("resnet34_v2", 32), ("resnet101_v2", 32), ("resnet152_v1", 64),
           ("resnet152_v2", 64), ("vgg16", 32), ("vgg19_bn", 32), ("densenet201", 224), ("squeezenet1.1", 224),
           ("mobilenet1.0", 32), ("mobilenetv2_1.0", 64)],
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    of = {test_a_model_predicts_the_same: PREDICTED, test_a_model_trains_the_same: TRAINED}[metafunc.function]
    metafunc.parametrize(("name", "size"), of[False] + of[True] * metafunc.config.getoption("exhaustive"))


def test_a_model_predicts_the_same(name: str, size: int) -> None:
    symbol, arguments, states, expected = exported(name, 1, size)
    ours = sym.load_json(symbol.tojson())
    shapes = ours.infer_shape(data=arguments["data"].shape)
    assert shapes == symbol.infer_shape(data=arguments["data"].shape)
    (y,) = ours.bind(None, arguments, grad_req="null", aux_states=states).forward()
    onp.testing.assert_allclose(onp.asarray(y), expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


def without_dropout(symbol: Any) -> Any:
    """The symbol with dropout that drops nothing: what MXNet draws is its own."""
    described = json.loads(symbol.tojson())
    for node in described["nodes"]:
        if node["op"] == "Dropout":
            node["attrs"]["p"] = "0"
    return mx.sym.load_json(json.dumps(described))


def test_a_model_trains_the_same(name: str, size: int) -> None:
    symbol, arguments, states, prediction = exported(name, 2, size)
    symbol = without_dropout(symbol)
    head = onp.random.default_rng(1).normal(size=prediction.shape)
    double = lambda arrays: {n: a.astype(onp.float64) for n, a in arrays.items()}  # rounding is no matter there
    array = lambda arrays: {n: mx.nd.array(a, dtype=a.dtype) for n, a in double(arrays).items()}
    empty = {n: onp.zeros_like(a) for n, a in arguments.items()}
    theirs = symbol.bind(mx.cpu(), array(arguments), array(empty), aux_states=array(states))
    expected = theirs.forward(is_train=True)[0].asnumpy()
    theirs.backward(mx.nd.array(head, dtype=head.dtype))
    ours = sym.load_json(symbol.tojson()).bind(None, double(arguments), double(empty), aux_states=double(states))
    (y,) = ours.forward(is_train=True)
    ours.backward(head)
    onp.testing.assert_allclose(onp.asarray(y), expected, rtol=1e-5, atol=1e-5 * abs(expected).max())
    norms = {n: onp.linalg.norm(g.asnumpy()) for n, g in theirs.grad_dict.items()}
    for n, g in theirs.grad_dict.items():
        off = onp.linalg.norm(g.asnumpy() - onp.asarray(ours.grad_dict[n]))
        assert off <= 1e-5 * norms[n] + 1e-8 * max(norms.values()), f"{n}: {off} of {norms[n]}"
    for n, state in theirs.aux_dict.items():
        onp.testing.assert_allclose(onp.asarray(ours.aux_dict[n]), state.asnumpy(), rtol=1e-6, atol=1e-7, err_msg=n)
