"""Traced models as parts of models: functions and graphs as steps of Sequential, modes of traced nets, figures."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import Function, fx, jit, nn, npx

X = onp.random.RandomState(0).randn(32, 3).astype("f4")
Y = (X.sum(axis=1) > 0).astype(int)


def assert_close(got: Any, want: Any) -> None:
    """Compiled code and other kernels round differently."""
    assert onp.asarray(got).dtype == onp.asarray(want).dtype
    onp.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def twice_tanh(x: Any) -> Any:
    return np.tanh(x) * 2


def by_mode(x: Any, mode: str | None = None) -> Any:
    return x if mode == "test" else x * 0


def net() -> Any:
    return nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm(8), nn.ReLU(), nn.Residual(nn.Linear(8, 8), nn.Dropout(0.5)), nn.Linear(8, 2)
    ).init(0)


STEPS = {
    "a traced function": lambda: fx.symbolic_trace(twice_tanh),
    "a captured function": lambda: fx.capture(twice_tanh, X),
    "a function": lambda: twice_tanh,
    "a jitted function": lambda: jit(twice_tanh),
    "a partial": lambda: functools.partial(np.multiply, np.tanh(np.array(X[0] * 0)) + 2),
    "NumPy's": lambda: onp.tanh,
    "ours": lambda: np.tanh,
    "of npx": lambda: npx.relu,
    "a traced layer": lambda: fx.symbolic_trace(nn.Linear(3, 3).init(1)),
}


@pytest.mark.parametrize("mode", [None, "train", "test"])
@pytest.mark.parametrize("what", STEPS)
def test_any_callable_is_a_step_of_sequential(what: str, mode: str | None) -> None:
    step = STEPS[what]()
    first = nn.Linear(3, 3).init(0)
    for model in (nn.Sequential(first, step), nn.Sequential(first, nn.Sequential(step))):
        assert_close(model(np.array(X), mode=mode), step(first(np.array(X))))
        traced = fx.symbolic_trace(model)
        assert_close(traced(np.array(X), mode=mode), step(first(np.array(X))))
    assert_close(nn.Residual(step)(np.array(X), mode=mode), step(np.array(X)) + X)


@pytest.mark.long
def test_a_torch_module_as_function_is_a_step_of_sequential() -> None:
    torch = pytest.importorskip("torch")
    model = nn.Sequential(nn.Linear(3, 4), Function(torch.nn.Linear(4, 2)), loss="softmax_loss")
    history = model.fit(X, Y, epochs=3, learning_rate=0.1)
    assert history["loss"][-1] < history["loss"][0] and list(model.tree()) == ["0.w", "0.b"]


def test_a_symbol_as_function_is_a_step_of_sequential_with_its_parameters() -> None:
    mx = pytest.importorskip("mxnet")
    symbol = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=2)
    model = nn.Sequential(nn.Linear(3, 4), Function(symbol, input_shapes={"x": (32, 4)}))
    history = model.fit(X, Y, epochs=3, learning_rate=0.1)
    assert history["loss"][-1] < history["loss"][0]
    assert sorted(model.tree()) == ["0.b", "0.w", "1.fc_bias", "1.fc_weight"]


def test_a_jitted_layer_as_a_step_keeps_its_parameters_and_its_mode() -> None:
    for step in (jit(net()), net().forward, functools.partial(net())):
        model = nn.Sequential(step).init(0)
        assert len(model.tree()) == 8 and "0.function.1.gamma" in model.tree()
        history = model.fit(X, Y, epochs=8, learning_rate=0.05)
        assert history["loss"][-1] < history["loss"][0]
        assert onp.asarray(model.aux_tree()["0.function.1.running_mean"]).any()


def test_a_function_is_given_the_mode_if_it_asks_for_it_and_has_not_one_already() -> None:
    for step, zero in [(by_mode, True), (functools.partial(by_mode, mode="test"), False), (jit(by_mode), True)]:
        model = nn.Sequential(step)
        assert onp.array_equal(model(np.array(X), mode="train"), X * (not zero))
        assert onp.array_equal(model(np.array(X), mode="test"), X)


def test_a_traced_net_trains_and_tests_as_the_net_does() -> None:
    model = net()
    traced = fx.symbolic_trace(net())
    for module in (model, traced):
        np.random.seed(1)
        module.history = module.fit(X, Y, epochs=6, learning_rate=0.05, seed=3)
    assert model.history == traced.history
    for name, value in model.aux_tree().items():
        assert onp.array_equal(value, traced.aux_tree()[name]) and onp.ptp(onp.asarray(value))
    assert onp.array_equal(model.predict(X), traced.predict(X))
    assert onp.array_equal(traced(np.array(X), "test"), traced(np.array(X), mode="test"))


def traced_and_changed() -> list[Any]:
    gm = fx.symbolic_trace(net())
    gm.eval()
    replaced = fx.symbolic_trace(net()).eval()
    assert fx.replace_pattern(replaced, lambda x, y: x + y, lambda x, y: y + x)
    return [
        gm,
        fx.Transformer(gm).transform(),
        copy.deepcopy(gm),
        pickle.loads(pickle.dumps(gm)),
        fx.split_module(gm, lambda n: n.name < "_2"),
        fx.split_module(gm, None, lambda n: 0 if n.target in ("0", "1") else 1),
        fx.GraphModule(gm, gm.graph.copy()),
        fx.symbolic_trace(gm),
        replaced,
    ]


@pytest.mark.parametrize("which", range(9))
def test_train_and_eval_choose_the_mode_of_a_traced_net_after_passes_too(which: int) -> None:
    gm = traced_and_changed()[which]
    want = onp.asarray(net()(np.array(X), mode="test"))
    assert_close(gm(np.array(X)), want)  # eval() went with it
    before = {k: onp.array(v) for k, v in gm.aux_tree().items()}
    assert gm.train() is gm
    np.random.seed(0)
    first, second = onp.asarray(gm(np.array(X))), onp.asarray(gm(np.array(X)))
    assert (first != second).any() and (first != want).any()  # dropout draws
    assert len(before) == 2 and all((before[k] != onp.asarray(v)).any() for k, v in gm.aux_tree().items())
    assert onp.array_equal(gm(np.array(X), mode="test"), gm.eval()(np.array(X)))


def test_the_mode_of_a_net_traced_for_one_is_not_changed_silently() -> None:
    gm = fx.symbolic_trace(net(), {"mode": "test"})
    assert gm.eval() is gm
    with pytest.raises(ValueError, match="traced for mode='test'"):
        gm.train()
    with pytest.raises(ValueError, match="traced for mode='test', not 'train'"):
        gm(np.array(X), mode="train")
    plain = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).init(0))
    assert onp.array_equal(plain(np.array(X), mode="train"), plain.train()(np.array(X), "test"))


def test_a_traced_net_is_a_step_that_follows_the_mode() -> None:
    model = nn.Sequential(fx.symbolic_trace(net()), nn.Linear(2, 2)).init(0)
    history = model.fit(X, Y, epochs=8, learning_rate=0.05)
    assert history["loss"][-1] < history["loss"][0]
    assert any(onp.asarray(v).any() for k, v in model.aux_tree().items() if k.endswith("running_mean"))
    inner = model.steps[0].eval()
    assert onp.array_equal(model(np.array(X)), model(np.array(X), mode="test")) and inner.takes_mode


def test_figures_of_a_graph_without_shapes_take_example_inputs_or_say_what_to_call() -> None:
    for figure in (fx.flops, fx.bytes_moved, fx.memory):
        gm = fx.symbolic_trace(twice_tanh)
        for graph in (gm, gm.graph):
            with pytest.raises(
                ValueError, match=r"shape of \w+ is not known: call fx.propagate_shapes\(graph, \*inputs"
            ):
                figure(graph)
        want = figure(fx.capture(twice_tanh, X).graph)
        assert figure(gm, X) == figure(gm) or figure is fx.memory
        assert figure is fx.memory or figure(gm) == want
        gm = fx.symbolic_trace(twice_tanh)
        assert figure(gm, fx.Meta(X.shape, X.dtype)) == figure(fx.propagate_shapes(gm, X))
    with pytest.raises(ValueError, match="is not known"):
        fx.cost(next(iter(fx.symbolic_trace(twice_tanh).graph.find_nodes(op="call_function"))))


def test_figures_leave_a_training_net_as_it_was() -> None:
    gm = fx.symbolic_trace(net()).train()
    before = {k: onp.array(v) for k, v in gm.aux_tree().items()}
    assert fx.flops(gm, X) > 0 and fx.bytes_moved(gm) > 0
    assert all(onp.array_equal(before[k], v) for k, v in gm.aux_tree().items())


# ------------------------------------------------------------------ choice of kernels
def ran_on(f: Any, row: str) -> set[str]:
    minnp.report(reset=True)
    f()
    return {r["backend"] for r in minnp.report(reset=True) if r["function"] == row}


@pytest.mark.host("what the default policy chooses")
def test_auto_runs_large_convolutions_and_folded_ones_on_torch_where_it_is_faster() -> None:
    pytest.importorskip("torch")
    r = onp.random.RandomState(0)
    x, wide = np.array(r.randn(1, 64, 28, 28).astype("f4")), nn.Conv2D(64, 512, 1).init(0)
    assert ran_on(lambda: wide(x), "npx.conv") == {"torch"}
    small = nn.Conv2D(64, 8, 1).init(0)
    assert ran_on(lambda: small(x), "npx.conv") == {"numpy"}
    folded = fx.fold_convolutions(fx.capture(small, x))
    assert ran_on(lambda: folded(x), "npx.conv_act") == {"torch"}
    onp.testing.assert_allclose(folded(x), small(x), rtol=1e-5, atol=1e-5)
    pool = nn.MaxPool2D(3, 2, 1)
    last = np.array(r.randn(1, 56, 56, 64).astype("f4")).transpose(0, 3, 1, 2)
    plain = np.array(onp.ascontiguousarray(last))
    has = "mxnet" in minnp.backends.installed()  # whose pooling is faster than NumPy's, and asked first
    assert ran_on(lambda: pool(last), "npx.max_pool") == {"mxnet" if has else "torch"}
    assert ran_on(lambda: pool(plain), "npx.max_pool") == {"mxnet" if has else "numpy"}
    assert onp.array_equal(pool(plain), pool(last))


def test_a_graph_forgets_what_it_will_not_read_again() -> None:
    class Kept:  # counts the arrays alive when each is made
        alive = most = 0

        def __init__(self) -> None:
            Kept.alive += 1
            Kept.most = max(Kept.most, Kept.alive)

        def __del__(self) -> None:
            Kept.alive -= 1

    @fx.wrap
    def step(x: Any) -> Any:
        return Kept()

    def program(x: Any) -> Any:
        for _ in range(6):
            x = step(x)
        return x

    gm = fx.symbolic_trace(program)
    assert "None" not in gm.code
    gm(np.zeros(2))
    assert Kept.most == 2
