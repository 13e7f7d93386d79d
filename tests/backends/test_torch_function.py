"""Function on torch modules and functions of tensors: embedded in NumPy programs, differentiated by our tape."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import Function, errors, fx, grad, hessian, hvp, jit, jvp, vjp, vmap
from tests.backends.devices import EMULATED, THERE, on_there

pytestmark = on_there
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
    x = np.array(X) if where == "host" else np.array(X).to_device(THERE)
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
    there = THERE
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


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.2, batch_first=True, activation="gelu"), 2)


def conv_net() -> nn.Module:
    layers = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
    return nn.Sequential(*layers)


def several(a: torch.Tensor, b: torch.Tensor) -> tuple:
    return torch.sin(a) * b, a.argmax(), None, torch.cumsum(a * b, 0), b > 0


PARTS = {  # name -> (torch's part, shape of its input)
    "normed": (lambda: nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Softplus()), (4, 3)),
    "lstm": (lambda: nn.LSTM(3, 4, batch_first=True), (2, 3, 3)),
    "encoder": (encoder, (2, 3, 4)),
    "encoder in eval": (lambda: encoder().eval(), (2, 3, 4)),
    "convolutions": (conv_net, (2, 1, 4, 4)),
}
HERE = {"host": np.array, "place": lambda a: np.array(a).to_device(THERE)}


def at_seed(f: Callable, *args: Any) -> onp.ndarray:
    """The value of f, torch's draws begun anew: the masks of dropout."""
    torch.manual_seed(0)
    return onp.asarray(f(*args))


def squares(out: Any) -> Any:
    return sum(np.sum(y**2) for y in out) if isinstance(out, tuple) else np.sum(out**2)


@pytest.mark.parametrize("where", HERE)
@pytest.mark.parametrize("part", PARTS)
def test_a_module_has_second_derivatives_and_forward_mode(part, where):
    if EMULATED and (part, where) == ("lstm", "place"):
        pytest.skip("torch asks each accelerator for an LSTM cell of its own")
    module, shape = PARTS[part][0]().double(), PARTS[part][1]
    f, name, put, rng = (
        Function(module),
        "src" if "encoder" in part else "input",
        HERE[where],
        onp.random.default_rng(0),
    )
    x, v = rng.normal(size=(2, *shape))
    loss = lambda x: squares(f(**{name: np.tanh(x)}))
    slope = at_seed(grad(loss), put(x))
    ends = [at_seed(grad(loss), put(x + s * 1e-5 * v)) for s in (1, -1)]
    want = (ends[0] - ends[1]) / 2e-5
    scale = 1e-5 * max(1, abs(want).max())
    for product in (hvp(loss), lambda x, v: grad(lambda x: np.sum(grad(loss)(x) * v))(x)):
        assert abs(at_seed(product, put(x), put(v)) - want).max() < scale
        assert abs(at_seed(jit(product), put(x), put(v)) - want).max() < scale
    assert abs(at_seed(lambda x, v: jvp(loss, (x,), (v,))[1], put(x), put(v)) - (slope * v).sum()) < 1e-9


@pytest.mark.parametrize("where", HERE)
def test_results_without_gradients_and_none_among_several_to_any_order(where):
    f, put = Function(several, library="torch"), HERE[where]
    x = put([0.5, -1.0, 2.0])
    ours = lambda a: np.sum(np.sin(a) * a) + np.sum(np.cumsum(a * a) ** 2)
    _, at, _, mask = f(a=x, b=x)
    assert int(at) == 2 and onp.asarray(mask).tolist() == [True, False, True]

    def theirs(a):
        first, _, total, _ = f(a=a, b=a)
        return np.sum(first) + np.sum(total**2)

    third = lambda f: grad(lambda x: np.sum(hessian(f)(x) ** 2))
    assert onp.allclose(onp.asarray(third(theirs)(x)), onp.asarray(third(ours)(x)))
    assert onp.allclose(onp.asarray(hvp(theirs)(x, x)), onp.asarray(hvp(ours)(x, x)))


def test_vmap_goes_example_by_example():
    f, xs = Function(net()), np.array(onp.stack([X, 2 * X]))
    loss = lambda x: np.sum(f(input=x) ** 2)
    want = onp.stack([grad(loss)(x) for x in xs])
    assert onp.allclose(vmap(grad(loss))(xs), want) and onp.allclose(grad(lambda xs: np.sum(vmap(loss)(xs)))(xs), want)
    assert onp.allclose(vmap(lambda x: f(input=x))(xs), onp.stack([f(input=x) for x in xs]))


def test_gradients_of_complex_numbers_are_ours():
    f, z = Function(lambda z: (z**3).real + z.abs() ** 2, library="torch"), np.array([1 + 2j, 0.5 - 1j])
    ours = lambda z: np.real(z**3) + np.abs(z) ** 2
    for again in (lambda f: f, lambda f: lambda z: np.abs(grad(f)(z)) ** 2):
        got, want = (grad(again(g))(z) for g in (lambda z: np.sum(f(z=z)), lambda z: np.sum(ours(z))))
        assert onp.allclose(got, want)


def test_what_is_written_after_a_call_does_not_change_its_gradients():
    f, x, c = Function(lambda x, c: c * x**3, library="torch"), np.array([1.0, 2.0]), np.ones(2)
    _, pullback = vjp(lambda x: f(x=x, c=c), x)
    x[:], c[:] = 9, 9
    assert onp.allclose(pullback(np.ones(2))[0], [3, 12])


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_torchs_in_a_program_is_trained_as_torch_trains_it(part):
    torch.manual_seed(1)
    module, shape = PARTS[part][0](), PARTS[part][1]
    f = Function(copy.deepcopy(module))
    x = onp.random.default_rng(1).normal(size=shape).astype("f4")
    params, name = f.get_values(), "src" if "encoder" in part else "input"
    theirs, ours = torch.optim.SGD(module.parameters(), 0.01), dict.fromkeys(params)

    def loss(params: dict) -> Any:
        out = f(**{name: np.tanh(x)}, **params)
        return sum(np.mean(y**2) for y in (out if isinstance(out, tuple) else (out,)))

    for step in range(3):
        torch.manual_seed(step)
        out = module(torch.tanh(torch.tensor(x)))
        out = (out[0], *out[1]) if isinstance(out, tuple) else (out,)
        theirs.zero_grad()
        sum((y**2).mean() for y in out).backward()
        torch.manual_seed(step)
        grads = grad(loss)(params)
        for key, p in module.named_parameters():
            assert abs(onp.asarray(grads[key.replace(".", "_")]) - p.grad.numpy()).max() < 1e-6
        theirs.step()
        for key in params:
            _, ours[key] = minnp.nn.optim.sgd(params[key], grads[key], ours[key])
    for key, b in module.named_buffers():
        assert onp.allclose(f.get_aux_states()[key.replace(".", "_")], b, atol=1e-6)


def test_parts_of_a_module_stay_in_the_mode_they_were_put_into():
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    module[1].eval()
    f = Function(module)
    grad(lambda x: np.sum(f(input=x)))(np.array(X))
    assert not onp.asarray(f.get_aux_states()["1_running_mean"]).any()


def test_what_torch_cannot_differentiate_so_often_raises():
    f, x = Function(lambda x: torch.cdist(x, x + 1), library="torch"), np.array(X)
    twice = lambda f: grad(lambda x: np.sum(grad(f)(x) ** 2))
    grad(lambda x: np.sum(f(x=x)))(x)
    with pytest.raises(errors.NotDifferentiableError, match="twice: the derivative for '_cdist_backward' is not impl"):
        twice(lambda x: np.sum(f(x=x) ** 2))(x)
    normed = Function(nn.LayerNorm(3))
    with pytest.raises(
        errors.NotDifferentiableError, match=r"LayerNorm 3 times: .* takes the statistics for constants"
    ):
        twice(grad(lambda x: np.sum(normed(input=x) ** 3)))(x)


def test_graphs_of_torchs_modules_name_the_way():
    module, f = net(), Function(net())
    for graph in (lambda: fx.symbolic_trace(module), lambda: fx.capture(module, X)):
        with pytest.raises(TypeError, match=r"F = minnp.Function\(module\)"):
            graph()
    onp.testing.assert_array_equal(fx.capture(lambda x: f(x), np.array(X))(np.array(X)), f(X))
