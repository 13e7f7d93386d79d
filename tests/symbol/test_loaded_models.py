"""Models in MXNet's files: they predict, are differentiated, are trained further, and are saved as MXNet reads them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp import errors, fx, grad

R = onp.random.default_rng(0)


def network() -> sym.Symbol:
    net = sym.Convolution(sym.Variable("data"), name="conv", kernel=(3, 3), num_filter=4)
    net = sym.Activation(sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="relu")
    net = sym.FullyConnected(net, name="fc", num_hidden=3)
    return sym.SoftmaxOutput(net, name="softmax")


def saved(prefix: str) -> dict[str, Any]:
    net = network()
    arguments, _, states = net.infer_shape(data=(8, 2, 6, 6))
    values = {n: R.normal(size=s).astype(onp.float32) for n, s in zip(net.list_arguments(), arguments)}
    del values["data"], values["softmax_label"]
    kept = {n: onp.ones(s, onp.float32) for n, s in zip(net.list_auxiliary_states(), states)}
    sym.save_checkpoint(prefix, 3, net, values, kept)
    return values


def test_a_model_predicts_trains_and_is_saved(tmp_path: Path) -> None:
    values = saved(str(tmp_path / "net"))
    model = minnp.load_mxnet(str(tmp_path / "net"), 3)
    assert model.inputs == ["data", "softmax_label"] and model.params.keys() == values.keys()
    x = R.normal(size=(8, 2, 6, 6)).astype(onp.float32)
    y = model(x)
    assert y.shape == (8, 3) and np.allclose(y.sum(axis=1), 1)
    label = onp.arange(8) % 3
    loss = lambda: -float(np.log(model(x, is_train=True)[onp.arange(8), label]).mean())
    before = loss()
    for _ in range(30):
        of = lambda p: np.sum(model(x, softmax_label=label, params=p, is_train=True))
        for n, g in grad(of)(model.params).items():
            model.params[n][...] -= 0.01 * g
    assert loss() < 0.5 * before
    assert not np.allclose(model.states["bn_moving_mean"], 1)
    model.save(str(tmp_path / "tuned"), 4)
    again = minnp.load_mxnet(str(tmp_path / "tuned"), 4)
    assert np.array_equal(again(data=x), model(x)) and "softmax_output" in repr(again)


def test_a_frozen_model_predicts_as_the_model_did(tmp_path: Path) -> None:
    saved(str(tmp_path / "net"))
    model = minnp.load_mxnet(str(tmp_path / "net"), 3)
    x, other = R.normal(size=(2, 8, 2, 6, 6)).astype(onp.float32)
    frozen = model.freeze(x)
    expected = [onp.asarray(model(a)) for a in (x, other)]
    for array in (*model.params.values(), *model.states.values()):
        array[...] = 0  # it has its own
    for a, y in zip((x, other), expected):
        onp.testing.assert_allclose(onp.asarray(frozen(a)), y, rtol=1e-5, atol=1e-6)
    assert "conv_act" in frozen.code and "sqrt" not in frozen.code
    with pytest.raises(ValueError):
        frozen(x[:, :, :5])


def test_a_frozen_model_refuses_other_shapes() -> None:
    frozen = sym.Model(sym.SequenceReverse(sym.Variable("data")), {}).freeze(np.zeros((2, 3)))
    for module in (frozen, pickle.loads(pickle.dumps(frozen)), fx.Transformer(frozen).transform()):
        assert module(np.zeros((2, 3))).shape == (2, 3)
        with pytest.raises(ValueError, match=r"has shape \(5, 3\); the graph is that of arrays of shape \(2, 3\)"):
            module(np.zeros((5, 3)))


def test_errors(tmp_path: Path) -> None:
    saved(str(tmp_path / "net"))
    model = minnp.load_mxnet(str(tmp_path / "net"), 3)
    x = onp.ones((8, 2, 6, 6))
    with pytest.raises(errors.SymbolError, match="lacks data"):
        model()
    with pytest.raises(errors.SymbolError, match="no image; its inputs are data, softmax_label"):
        model(x, image=x)
    with pytest.raises(errors.SymbolError, match="no more inputs"):
        model(x, data=x)
    with pytest.raises(errors.SymbolError, match="lacks its auxiliary states bn_moving_mean"):
        sym.Model(model.symbol, model.params)
    with pytest.raises(FileNotFoundError):
        minnp.load_mxnet(str(tmp_path / "nothing"))


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
def test_what_mxnet_saved_is_a_model_and_back(tmp_path: Path) -> None:
    mx = pytest.importorskip("mxnet")
    vision = pytest.importorskip("mxnet.gluon.model_zoo.vision")
    net = vision.get_model("resnet18_v1")
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = R.normal(size=(1, 3, 32, 32)).astype(onp.float32)
    expected = net(mx.nd.array(x)).asnumpy()
    net.export(str(tmp_path / "resnet"), 7)
    model = minnp.load_mxnet(str(tmp_path / "resnet"), 7)
    onp.testing.assert_allclose(onp.asarray(model(x)), expected, rtol=1e-4, atol=1e-5)
    model.save(str(tmp_path / "again"), 0)
    symbol, arguments, states = mx.model.load_checkpoint(str(tmp_path / "again"), 0)
    bound = symbol.bind(mx.cpu(), arguments | {"data": mx.nd.array(x)}, aux_states=states)
    onp.testing.assert_allclose(bound.forward()[0].asnumpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Cannot decide type:UserWarning")  # gluon of its own import
@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_a_language_model_of_gluon_is_a_model_and_back(tmp_path: Path, layer: str) -> None:
    mx = pytest.importorskip("mxnet")
    gluon = pytest.importorskip("mxnet.gluon")
    net = gluon.nn.HybridSequential()
    recurrent = getattr(gluon.rnn, layer)(12, 2, bidirectional=layer == "GRU", input_size=8)
    net.add(gluon.nn.Embedding(20, 8), recurrent, gluon.nn.Dense(20, flatten=False))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    words = R.integers(0, 20, (7, 4)).astype(onp.float32)
    expected = net(mx.nd.array(words)).asnumpy()
    net.export(str(tmp_path / "net"))
    model = minnp.load_mxnet(str(tmp_path / "net"))
    onp.testing.assert_allclose(onp.asarray(model(words)), expected, rtol=1e-4, atol=1e-6)
    half = onp.asarray(model(words[:, :2]))
    onp.testing.assert_allclose(half, expected[:, :2], rtol=1e-4, atol=1e-6)
    model.save(str(tmp_path / "again"), 0)
    names = str(tmp_path / "again-symbol.json"), ["data"], str(tmp_path / "again-0000.params")
    back = gluon.SymbolBlock.imports(*names)
    onp.testing.assert_allclose(back(mx.nd.array(words)).asnumpy(), expected, rtol=1e-4, atol=1e-6)
