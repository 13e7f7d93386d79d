"""Function on torch modules and functions of tensors: embedded in NumPy programs, differentiated by our tape."""

import pickle

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install 'minnp[torch]'")

import minnp
import minnp.numpy as np
from minnp import Context, Function, errors, grad

nn = torch.nn


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def reference(values: dict, x: onp.ndarray) -> onp.ndarray:
    h = onp.tanh(x @ values["0_weight"].T + values["0_bias"])
    return h @ values["2_weight"].T + values["2_bias"]


X = onp.random.default_rng(0).normal(size=(4, 3)).astype("f4")


def test_a_pretrained_module_is_a_function_of_its_inputs():
    f = Function(net(), input_shapes={"input": (4, 3)})
    y = f(input=X)
    values = {n: onp.asarray(v) for n, v in f.get_values().items()}
    assert type(y) is np.ndarray and y.dtype == onp.float32
    assert onp.allclose(y, reference(values, X), atol=1e-6)
    assert f.get_one_output_shape() == (4, 2)
    assert f.get_params()["0_weight"] == {"shape": (5, 3)}


def test_gradients_of_inputs_and_parameters_are_ours():
    f = Function(net())
    values = f.get_values()

    def loss(x, w):
        return np.sum(np.exp(f(input=np.tanh(x), **{"0_weight": w})) ** 2)

    def plain(x, w):
        h = np.tanh(np.tanh(x) @ w.T + values["0_bias"])
        return np.sum(np.exp(h @ values["2_weight"].T + values["2_bias"]) ** 2)

    x, w = np.array(X), values["0_weight"]
    for got, want in zip(grad(loss, [0, 1])(x, w), grad(plain, [0, 1])(x, w), strict=True):
        assert got.dtype == onp.float32 and onp.allclose(got, want, rtol=1e-4, atol=1e-5)
    assert not any(p.requires_grad and p.grad is not None for p in net().parameters())


def test_training_an_embedded_module_lowers_the_loss():
    f = Function(net())
    params = f.get_values()
    target = np.array(onp.stack([X.sum(1), X[:, 0] * X[:, 1]], 1))
    loss = lambda params: np.mean((f(input=X, **params) - target) ** 2)
    first = float(loss(params))
    for _ in range(60):
        g = grad(loss)(params)
        for name in params:
            params[name] -= 0.1 * g[name]
    assert float(loss(params)) < 0.2 * first


def test_buffers_are_states_updated_by_training():
    f = Function(nn.BatchNorm1d(3), input_shapes={"input": (4, 3)})
    before = onp.asarray(f.get_aux_states()["running_mean"]).copy()
    grad(lambda x: np.sum(f(input=x) ** 2))(np.array(X))
    after = onp.asarray(f.get_aux_states()["running_mean"])
    assert onp.allclose(before, 0) and onp.allclose(after, 0.1 * X.mean(0), atol=1e-6)
    y = f(input=X, is_train=False)
    assert onp.allclose(y, (X - after) / onp.sqrt(onp.asarray(f.get_aux_states()["running_var"]) + 1e-5), atol=1e-5)


@pytest.mark.parametrize("where", ["host", "place"])
def test_a_module_in_eval_keeps_its_statistics_under_gradients_and_pickled(where):
    module = nn.Sequential(net(), nn.BatchNorm1d(2), nn.Dropout(0.5)).eval()
    module[1].running_var.fill_(4.0)
    f = pickle.loads(pickle.dumps(Function(module)))
    x = np.array(X) if where == "host" else np.array(X).to_device(Context("cpu", 0, "torch"))
    got = grad(lambda x: np.sum(f(input=x) ** 2))(x)
    t = torch.tensor(X, requires_grad=True)
    (module(t) ** 2).sum().backward()
    assert onp.allclose(onp.asarray(got), t.grad, atol=1e-6)
    assert onp.allclose(onp.asarray(f.get_aux_states()["1_running_var"]), 4.0)
    grad(lambda x: np.sum(f(input=x, is_train=True)))(x)
    again = pickle.loads(pickle.dumps(f))
    assert onp.allclose(*(onp.asarray(g.get_aux_states()["1_running_var"]) for g in (f, again)))
    assert not onp.allclose(onp.asarray(again.get_aux_states()["1_running_var"]), 4.0)


def test_a_function_of_tensors_with_several_results():
    f = Function(lambda a, b: (torch.sin(a) * b, torch.cumsum(b, 0)), library="torch")
    a, b = np.array([0.5, 1.0]), np.array([2.0, 3.0])
    s, c = f(a=a, b=b)
    assert onp.allclose(s, onp.sin([0.5, 1.0]) * [2, 3]) and onp.allclose(c, [2, 5])
    ga, gb = grad(lambda a, b: np.sum(f(a=a, b=b)[0]) + 2 * np.sum(f(a=a, b=b)[1]), [0, 1])(a, b)
    assert onp.allclose(ga, onp.cos([0.5, 1.0]) * [2, 3]) and onp.allclose(gb, onp.sin([0.5, 1.0]) + [4, 2])


def test_integer_inputs_stay_integers():
    table = nn.Embedding(7, 3)
    f = Function(table, input_shapes={"input": (2,)})
    y = f(input=np.array([3, 3]))
    assert onp.allclose(y, table.weight.detach().numpy()[[3, 3]])
    g = grad(lambda w: np.sum(f(input=np.array([3, 3]), weight=w)))(f.get_values()["weight"])
    assert g[3, 0] == 2 and g.sum() == 6


def test_on_a_place_it_stays_there_and_copies_nothing():
    f = Function(nn.Sequential(*net(), nn.BatchNorm1d(2)))
    there = Context("cpu", 0, "torch")
    x = np.array(X).to_device(there)
    params = {n: v.to_device(there) for n, v in f.get_values().items()}
    minnp.reset_report()
    g = grad(lambda p: np.sum(f(input=x, **p) ** 2))(params)
    assert g["0_weight"].context == there
    f(input=x, **{"0_weight": params["0_weight"]})  # the others are its own, and lie there too
    mean = f.get_aux_states()["3_running_mean"]
    assert {r["function"] for r in minnp.report() if "copy" in r["function"]} <= {"copy to device"}  # of states, once
    copied = sum(r["calls"] for r in minnp.report() if r["function"] == "copy to device")
    grad(lambda p: np.sum(f(input=x, **p) ** 2))(params)
    assert sum(r["calls"] for r in minnp.report() if r["function"] == "copy to device") == copied
    assert mean.context == there and abs(onp.asarray(mean)).max() > 0
    on_host = {n: v.to_device("cpu") for n, v in params.items()}
    want = grad(lambda p: np.sum(f(input=X, **p) ** 2))(on_host)
    assert onp.allclose(onp.asarray(g["2_weight"]), want["2_weight"], rtol=1e-4)


def test_wrong_names_and_shapes_say_what_is_expected():
    f = Function(net(), input_shapes={"input": (4, 3)})
    with pytest.raises(errors.SymbolError, match=r"no argument 'x'.*expects input"):
        f(x=X)
    with pytest.raises(errors.SymbolError, match="expects"):
        f(input=onp.ones((4, 7), "f4"))
    with pytest.raises(errors.SymbolError, match=r"0_weight has shape \(5, 3\)"):
        f(input=X, **{"0_weight": onp.ones((2, 2), "f4")})
    with pytest.raises(errors.SymbolError, match="names"):
        Function(torch.sin, library="torch")


def test_a_second_derivative_raises():
    f = Function(lambda x: x**3, library="torch")
    with pytest.raises(errors.NotDifferentiableError, match="no second derivative"):
        grad(lambda x: np.sum(grad(lambda x: np.sum(f(x=x)))(x)))(np.array([1.0]))
