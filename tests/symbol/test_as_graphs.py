"""A symbol is a graph of the project: Function, derivatives of any order, jit, passes, code, and conversions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp import Function, errors, fx, grad, hessian, jit, nn, vmap

R = onp.random.default_rng(0)


def normal(*shape: int) -> Any:
    return np.array(R.normal(size=shape))


def close(ours: Any, expected: Any, tolerance: float = 1e-6) -> None:
    onp.testing.assert_allclose(onp.asarray(ours), onp.asarray(expected), rtol=tolerance, atol=tolerance)


def network() -> sym.Symbol:
    net = sym.Convolution(sym.Variable("data"), name="conv", kernel=(3, 3), num_filter=4, pad=(1, 1))
    net = sym.BatchNorm(net, name="bn", fix_gamma=False)
    net = sym.Pooling(sym.Activation(net, act_type="tanh"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    parts = sym.split(net, num_outputs=2, axis=1, name="halves")
    return sym.FullyConnected(parts[0] * parts[1], name="fc", num_hidden=3)


def test_a_function_takes_a_symbol_as_it_takes_mxnets() -> None:
    fc = Function(sym.FullyConnected(sym.Variable("x"), name="fc", num_hidden=3), input_shapes={"x": (4, 2)})
    assert sorted(fc.get_params()) == ["fc_bias", "fc_weight"] and fc.get_params()["fc_weight"] == {"shape": (3, 2)}
    assert fc.get_one_output_shape() == (4, 3) and fc.inputs == ["x"]
    p = {"fc_weight": np.ones((3, 2)), "fc_bias": np.zeros(3)}
    x = normal(4, 2)
    close(fc(x=x, **p), x @ np.ones((2, 3)))
    assert grad(lambda x: np.sum(fc(x=x, **p)))(np.zeros((4, 2)))[0].tolist() == [3.0, 3.0]
    assert pickle.loads(pickle.dumps(fc))(x=x, **p).shape == (4, 3)
    with pytest.raises(errors.SymbolError, match="lacks 'fc_bias'"):
        fc(x=x, fc_weight=p["fc_weight"])
    with pytest.raises(errors.SymbolError, match="cannot run on"):
        fc(x=normal(4, 5), **p)


def test_a_function_moves_its_states_in_training_alone() -> None:
    f = Function(network(), input_shapes={"data": (5, 2, 6, 6)})
    p = {n: normal(*v["shape"]) for n, v in f.get_params().items()}
    x = normal(5, 2, 6, 6)
    f(data=x, **p)
    assert not f.get_aux_states()["bn_moving_mean"].any()
    loss = lambda p: np.sum(f(data=x, **p) ** 2)
    gradients = grad(loss)(p)
    assert f.get_aux_states()["bn_moving_mean"].any()
    w = p["fc_weight"]
    step = 1e-6 * onp.sign(onp.asarray(gradients["fc_weight"]))
    up = loss({**p, "fc_weight": w + step})  # outside training: the moving averages are used
    assert up.shape == ()
    close(f(data=x, is_train=True, **p).mean(), f(data=x, is_train=True, **p).mean())


def test_derivatives_of_any_order() -> None:
    cube = Function(sym.Variable("x") ** 3)
    assert grad(grad(lambda x: np.sum(cube(x=x))))(2.0) == 12
    assert grad(grad(grad(lambda x: np.sum(cube(x=x)))))(2.0) == 6
    close(hessian(lambda x: np.sum(cube(x=x)))(np.array([1.0, 2.0])), onp.diag([6.0, 12.0]))
    close(vmap(lambda x: cube(x=x))(np.arange(3.0)), [0, 1, 8])


def test_a_function_keeps_to_the_dtype_of_what_it_is_given() -> None:
    f = Function(network(), input_shapes={"data": (5, 2, 6, 6)})
    p = {n: normal(*v["shape"]).astype("float32") for n, v in f.get_params().items()}
    x = normal(5, 2, 6, 6).astype("float32")
    assert f(data=x, **p).dtype == f(data=x, is_train=True, **p).dtype == onp.float32


def test_compiled_training_moves_the_states_it_is_given() -> None:
    f = Function(network(), input_shapes={"data": (5, 2, 6, 6)})
    p = {n: normal(*v["shape"]) for n, v in f.get_params().items()}
    x = normal(5, 2, 6, 6)
    states = [{n: a.copy() for n, a in f.get_aux_states().items()} for _ in range(2)]
    step = lambda p, states: grad(lambda p: np.sum(f(data=x, **p, **states) ** 2))(p)
    compiled = jit(step)
    for _ in range(3):
        ours, theirs = compiled(p, states[0]), step(p, states[1])
        for n, g in theirs.items():
            close(ours[n], g)
        for n, state in states[1].items():
            close(states[0][n], state)
    assert states[0]["bn_moving_mean"].any() and not f.get_aux_states()["bn_moving_mean"].any()
    with pytest.raises(errors.SymbolError, match=r"'bn_moving_var' is an array \(4,\) of minnp.numpy"):
        f(data=x, **p, bn_moving_var=[1.0])


def test_a_graph_moves_a_state_beside_one_result() -> None:
    net = sym.IdentityAttachKLSparseReg(sym.Variable("x"), name="s")
    module = fx.GraphModule({}, net.to_graph(training=True))
    x, average = np.full((4, 3), 0.3), np.full(3, 0.5)
    close(module(x, average), x)
    close(average, onp.full(3, 0.48))


def test_jit_of_a_function_and_of_its_gradient() -> None:
    f = Function(sym.Activation(sym.FullyConnected(sym.Variable("x"), name="fc", num_hidden=3), act_type="tanh"))
    x, w, b = normal(4, 2), normal(3, 2), normal(3)
    plain = lambda x, w, b: np.sum(f(x=x, fc_weight=w, fc_bias=b) ** 2)
    for _ in range(3):
        close(jit(plain)(x, w, b), np.sum(np.tanh(x @ w.T + b) ** 2))
        close(jit(grad(plain, 1))(x, w, b), grad(plain, 1)(x, w, b))


def test_the_graph_of_a_symbol_computes_what_the_symbol_does() -> None:
    net = network()
    f = Function(net, input_shapes={"data": (5, 2, 6, 6)})
    p = {n: normal(*v["shape"]) for n, v in f.get_params().items()}
    states = {"bn_moving_mean": normal(4), "bn_moving_var": np.abs(normal(4)) + 0.5}
    x = normal(5, 2, 6, 6)
    for n, value in states.items():
        f.get_aux_states()[n][...] = value
    for training in (False, True):
        graph = net.to_graph(training)
        graph.lint()
        module = fx.GraphModule({}, graph)
        assert [n.target for n in graph.find_nodes(op="placeholder")] == net.list_inputs()
        kept = {n: v.copy() for n, v in states.items()}
        given = [(p | kept | {"data": x})[n] for n in net.list_inputs()]
        close(module(*given), f(data=x, is_train=training, **p))
        moved = not np.allclose(kept["bn_moving_mean"], states["bn_moving_mean"])
        assert moved is training
    assert "conv" in fx.GraphModule({}, net.to_graph()).code


def test_passes_see_the_operators_of_a_symbol() -> None:
    graph = network().to_graph()
    targets = [getattr(n.target, "__name__", "") for n in graph.nodes if n.op == "call_function"]
    assert targets[:4] == ["convolution", "batch_norm", "pick", "activation"]
    assert all("of the symbol" in n.meta["where"] for n in graph.nodes if n.name in ("conv", "bn", "fc"))


def test_a_symbol_is_a_layer_among_numpy_code() -> None:
    model = nn.Sequential(
        nn.Symbolic(sym.FullyConnected(sym.Variable("x"), name="fc", num_hidden=3), {"x": (4, 2)}), nn.Tanh()
    ).init(0)
    assert model(np.zeros((4, 2), onp.float32)).shape == (4, 3)


def test_a_loss_layer_has_its_own_gradient() -> None:
    f = Function(sym.SoftmaxOutput(sym.Variable("x"), name="s"), input_shapes={"x": (4, 3)})
    x, label = normal(4, 3), np.array([0, 1, 2, 0])
    p = onp.exp(onp.asarray(x)) / onp.exp(onp.asarray(x)).sum(axis=1, keepdims=True)
    close(grad(lambda x: 5 * np.sum(f(x=x, s_label=label)))(x), p - onp.eye(3)[[0, 1, 2, 0]])


def test_mxnets_own_symbols_convert_and_back() -> None:
    mx = pytest.importorskip("mxnet")
    theirs = mx.sym.FullyConnected(mx.sym.Variable("x", lr_mult=2.0), name="fc", num_hidden=3)
    ours = sym.from_mxnet(theirs)
    assert ours.list_arguments() == theirs.list_arguments() and ours.attr_dict() == theirs.attr_dict()
    assert sym.to_mxnet(ours).tojson() == theirs.tojson()
    p = {"x": onp.ones((2, 4)), "fc_weight": onp.ones((3, 4)), "fc_bias": onp.zeros(3)}
    close(Function(ours)(**p), Function(theirs)(**p))


def normalised(inputs: int = 3) -> Any:
    s = sym.BatchNorm(sym.Variable("x"), name="bn", fix_gamma=False)
    return nn.Sequential(nn.Symbolic(s, {"x": (10, inputs)}), nn.Linear(inputs, 2))


def test_auxiliary_states_of_a_symbol_are_those_of_its_layer(tmp_path: Any) -> None:
    rng = onp.random.default_rng(0)
    x, y = rng.normal(5, 2, (40, 3)).astype("f"), onp.arange(40) % 2
    options: dict = {"batch_size": 10, "verbose": False}
    net = normalised()
    net.fit(x, y, epochs=4, **options)
    states = net.aux_tree()
    assert sorted(states) == ["0.bn_moving_mean", "0.bn_moving_var"]
    assert all(2 < abs(v).max() < 6 for v in states.values())  # of a mean of 5, a variance of 4
    net.save(tmp_path / "net")
    other = normalised().init(1).load(tmp_path / "net")
    onp.testing.assert_array_equal(other(x, mode="test"), net(x, mode="test"))
    halved = normalised()
    halved.fit(x, y, epochs=2, checkpoint=tmp_path / "half", **options)
    again = normalised()
    again.fit(x, y, epochs=4, checkpoint=tmp_path / "half", resume=True, **options)
    onp.testing.assert_array_equal(again(x, mode="test"), net(x, mode="test"))
    net.init(0)
    assert net.aux_tree()["0.bn_moving_mean"].tolist() == [0, 0, 0]
    assert other.aux_tree()["0.bn_moving_mean"].tolist() == states["0.bn_moving_mean"].tolist()


def test_models_are_copied_and_pickled_and_refuse_unknown_parameters() -> None:
    fc = sym.FullyConnected(sym.Variable("data"), name="fc", num_hidden=2)
    model = sym.Model(fc, {"fc_weight": np.ones((2, 3)), "fc_bias": np.zeros(2)})
    x = np.ones((1, 3))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.params["fc_bias"][...] = 1
        assert other(x).tolist() == [[4, 4]] and model(x).tolist() == [[3, 3]]
    run = copy.deepcopy(fc.simple_bind(data=(1, 3)))
    run.arg_dict["fc_weight"][...] = 1
    assert run.forward(data=x)[0].tolist() == [[3, 3]]
    with pytest.raises(errors.SymbolError, match=r"no parameters fc_wieght; it has fc_weight, fc_bias"):
        model(x, params={"fc_wieght": np.zeros((2, 3))})
