"""Symbols by themselves, where no mxnet is needed: composition, names, inference, executors, JSON, and errors."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp import Function, errors, grad, jit, npx
from minnp.errors import SymbolError

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, NAMES, arrays, make

R = onp.random.default_rng(0)


def normal(*shape: int) -> Any:
    return R.normal(size=shape).astype(onp.float32)


def close(ours: Any, expected: Any, tolerance: float = 1e-5) -> None:
    onp.testing.assert_allclose(onp.asarray(ours), onp.asarray(expected), rtol=tolerance, atol=tolerance)


def mlp() -> sym.Symbol:
    net = sym.FullyConnected(sym.Variable("data"), name="fc1", num_hidden=6)
    net = sym.Activation(net, name="act", act_type="tanh")
    net = sym.FullyConnected(net, name="fc2", num_hidden=3)
    return sym.SoftmaxOutput(net, name="softmax")


# ------------------------------------------------------------------ names and composition
def test_parameters_are_variables_named_after_the_layer() -> None:
    net = mlp()
    assert net.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias", "softmax_label"]
    assert net.list_outputs() == ["softmax_output"] and net.name == "softmax"
    normed = sym.BatchNorm(sym.Variable("x"), name="bn")
    assert normed.list_arguments() == ["x", "bn_gamma", "bn_beta"]
    assert normed.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert normed.list_inputs() == ["x", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    assert sym.FullyConnected(normed, num_hidden=2, no_bias=True, name="f").list_arguments()[-1] == "f_weight"


def test_names_that_are_not_given_count_up() -> None:
    with sym.NameManager():
        x = sym.Variable("x")
        made = [sym.Activation(x, act_type="relu"), sym.Activation(x, act_type="relu"), x + x, x * 2, 2 - x, x > 1]
    names = ["activation0", "activation1", "_plus0", "_mulscalar0", "_rminusscalar0", "_greater_scalar0"]
    assert [s.name for s in made] == names
    with sym.Prefix("net_"):
        assert sym.Flatten(x).name == "net_flatten0" and sym.Flatten(x, name="f").name == "net_f"


def test_attributes() -> None:
    with sym.AttrScope(ctx_group="dev1", __mark__="a"):
        x = sym.Variable("x", lr_mult=2.0, shape=(2, 3), dtype="float16", init="zero", __more__=4)
        y = sym.FullyConnected(x, num_hidden=3, name="fc", attr={"wd_mult": "3"})
    assert x.attr("lr_mult") == "2.0" and x.attr("__shape__") == "(2, 3)" and x.attr("ctx_group") == "dev1"
    assert x.list_attr()["__more__"] == "4" and x.attr("__dtype__") == "2" and x.attr("nothing") is None
    assert y.attr_dict()["fc"]["num_hidden"] == "3" and y.attr("__mark__") == "a"
    assert y.attr_dict()["fc_weight"]["wd_mult"] == "3"
    y._set_attr(mood="good")
    assert y.attr("mood") == "good"


def test_composition_replaces_variables_and_leaves_the_symbol_alone() -> None:
    net = mlp()
    front = sym.Activation(sym.Variable("image"), act_type="relu", name="front")
    whole = net(data=front, name="other")
    assert whole.list_arguments()[0] == "image" and whole.name == "other"
    assert net.list_arguments()[0] == "data" and net.name == "softmax"
    shared = sym.Group([net, net])
    assert shared.list_arguments() == net.list_arguments() and len(shared) == 2


def test_indexing_iteration_internals_and_children() -> None:
    net = mlp()
    inside = net.get_internals()
    assert inside.list_outputs()[:4] == ["data", "fc1_weight", "fc1_bias", "fc1_output"]
    assert inside["act_output"].name == "act" and inside[3].list_outputs() == ["fc1_output"]
    assert [s.name for s in inside][-1] == "softmax"
    assert net.get_children().list_outputs() == ["fc2_output", "softmax_label"]
    assert sym.Variable("x").get_children() is None
    parts = sym.split(sym.Variable("x"), num_outputs=3, name="s")
    assert parts.list_outputs() == ["s_output0", "s_output1", "s_output2"] and parts[1].list_outputs() == ["s_output1"]
    assert len(parts[0:2]) == 2 and "group" in repr(sym.Group([parts[0], net]))


def test_a_thousand_layers_are_no_matter() -> None:
    net = sym.Variable("x")
    for _ in range(2000):
        net = net + 1
    assert net.infer_shape(x=(2,)) == ([(2,)], [(2,)], [])
    assert len(sym.load_json(net.tojson()).nodes) == 2001
    close(net.eval(x=np.zeros(2))[0], [2000, 2000])


# ------------------------------------------------------------------ inference
def test_shapes_follow_in_both_directions() -> None:
    assert mlp().infer_shape(data=(5, 4)) == ([(5, 4), (6, 4), (6,), (3, 6), (3,), (5,)], [(5, 3)], [])
    assert mlp().infer_shape((5, 4))[1] == [(5, 3)]
    a, b = sym.Variable("a"), sym.Variable("b")
    assert (sym.relu(a) + b).infer_shape(b=(2, 3))[0] == [(2, 3), (2, 3)]
    assert sym.Variable("x", shape=(4, 2)).infer_shape()[1] == [(4, 2)]
    assert (a + b).infer_shape_partial() == ([(), ()], [()], [])
    assert (a + b).infer_shape(a=(0, 3), b=(2, 0))[1] == [(2, 3)]
    with pytest.warns(UserWarning, match="the shapes of a, b do not follow"):
        assert (a + b).infer_shape() == (None, None, None)


def test_types_follow() -> None:
    net = sym.Cast(sym.Variable("a") * 2, dtype="float64") + sym.Variable("b")
    assert net.infer_type(a="float16") == ([onp.float16, onp.float64], [onp.float64], [])
    assert mlp().infer_type_partial()[1] == [None]
    with pytest.warns(UserWarning, match="the types of data"):
        assert mlp().infer_type() == (None, None, None)
    bound = net.simple_bind(None, a=(2,), type_dict={"a": "float16"})
    assert bound.arg_dict["a"].dtype == onp.float16 and bound.arg_dict["b"].dtype == onp.float64


# ------------------------------------------------------------------ running
def test_a_network_is_what_numpy_says() -> None:
    net = mlp()
    bound = net.simple_bind(minnp.cpu(), data=(5, 4))
    given = {n: normal(*a.shape) for n, a in bound.arg_dict.items()} | {"softmax_label": onp.array([0, 1, 2, 0, 1])}
    bound.copy_params_from(given)
    (y,) = bound.forward(is_train=True)
    h = onp.tanh(given["data"] @ given["fc1_weight"].T + given["fc1_bias"])
    z = h @ given["fc2_weight"].T + given["fc2_bias"]
    p = onp.exp(z) / onp.exp(z).sum(axis=1, keepdims=True)
    close(y, p)
    bound.backward()
    g = p - onp.eye(3)[given["softmax_label"]]
    close(bound.grad_dict["fc2_weight"], g.T @ h)
    close(bound.grad_dict["fc2_bias"], g.sum(axis=0))
    inner = (g @ given["fc2_weight"]) * (1 - h**2)
    close(bound.grad_dict["data"], inner @ given["fc1_weight"])
    close(bound.grad_dict["softmax_label"], onp.zeros(5))
    assert bound.output_dict["softmax_output"] is bound.outputs[0]
    assert net.eval(**given)[0].shape == (5, 3)


def test_gradients_are_written_added_or_left_out() -> None:
    a, b, c = map(sym.Variable, "abc")
    x, y, z = (np.array(normal(3)) for _ in range(3))
    grads = {"a": np.zeros(3), "b": np.ones(3), "c": np.full(3, 7.0)}
    bound = (a * b * c).bind(None, [x, y, z], grads, {"a": "write", "b": "add", "c": "null"})
    for _ in range(2):
        bound.forward(is_train=True)
        bound.backward(np.ones(3))
    close(bound.grad_dict["a"], y * z)
    close(bound.grad_dict["b"], 1 + 2 * x * z)
    assert bound.grad_dict["c"].tolist() == [7, 7, 7]
    x[...] = 0
    close(bound.forward()[0], onp.zeros(3))
    close(bound.forward(a=onp.ones(3, onp.float32))[0], y * z)


def test_states_move_when_the_gradients_of_a_training_call_are_computed() -> None:
    net = sym.BatchNorm(sym.Variable("x"), name="bn", momentum=0.5, fix_gamma=False)
    bound = net.simple_bind(None, x=(8, 3))
    x = normal(8, 3) + 2
    bound.arg_dict["x"][...], bound.arg_dict["bn_gamma"][...] = x, 1
    bound.forward(is_train=False)
    assert bound.aux_dict["bn_moving_mean"].tolist() == [0, 0, 0]
    (y,) = bound.forward(is_train=True)
    bound.backward(np.ones((8, 3)))
    close(y, (x - x.mean(axis=0)) / onp.sqrt(x.var(axis=0) + 1e-3))
    close(bound.aux_dict["bn_moving_mean"], x.mean(axis=0) / 2)
    close(bound.aux_dict["bn_moving_var"], x.var(axis=0) / 2)


def test_an_executor_of_other_shapes_shares_what_stays() -> None:
    bound = mlp().simple_bind(None, data=(5, 4))
    other = bound.reshape(data=(2, 4), softmax_label=(2,))
    assert other.arg_dict["fc1_weight"] is bound.arg_dict["fc1_weight"]
    assert other.forward()[0].shape == (2, 3) and bound.forward()[0].shape == (5, 3)
    assert bound.outputs[0].shape == (5, 3)
    seen: list[str] = []
    bound.set_monitor_callback(lambda name, array: seen.append(name))
    bound.forward()
    assert seen == ["fc1_output", "act_output", "fc2_output", "softmax_output"]


def test_dropout_drops_in_training_alone() -> None:
    np.random.seed(0)
    x = np.ones((100, 100), onp.float32)
    bound = sym.Dropout(sym.Variable("x"), p=0.4).bind(None, [x], [np.zeros_like(x)])
    assert (bound.forward()[0] == 1).all()
    (y,) = bound.forward(is_train=True)
    assert abs(float(np.mean(y == 0)) - 0.4) < 0.02 and set(onp.unique(y).tolist()) <= {
        0.0,
        onp.float32(1 / 0.6).item(),
    }
    bound.backward(np.ones_like(x))
    close(bound.grad_arrays[0], y)


def test_an_unknown_batch_is_followed_behind_reshape_slice_split_and_layers() -> None:
    x = sym.Variable("x")
    heads = sym.reshape(sym.FullyConnected(x, num_hidden=12, flatten=False, name="fc"), shape=(0, 0, 3, -1))
    parts = sym.split(sym.transpose(heads, axes=(0, 2, 1, 3)), num_outputs=3, axis=1)
    y = sym.FullyConnected(sym.reshape(parts[1], shape=(-3, -2)), num_hidden=2, flatten=False, name="out")
    net = sym.Group([y, sym.slice_axis(y, axis=2, begin=0, end=1), sym.sum(x), sym.mean(x, axis=(1, 2))])
    arguments, results, _ = net.infer_shape_partial(x=(0, 5, 8))
    assert arguments == [(0, 5, 8), (12, 8), (12,), (2, 4), (2,)]
    assert results == [(0, 5, 2), (0, 5, 1), (1,), (0,)]
    up = sym.Deconvolution(sym.Pooling(x, kernel=(2, 2), stride=(2, 2)), kernel=(2, 2), stride=(2, 2), num_filter=4)
    assert sym.Concat(up, x).infer_shape_partial(x=(0, 3, 0, 0))[1] == [(0, 7, 0, 0)]
    with pytest.raises(SymbolError, match="cannot take"):
        (sym.reshape(x, shape=(-1, 5)) + sym.Variable("y")).infer_shape_partial(x=(2, 5), y=(3, 5))


# ------------------------------------------------------------------ every operator
@pytest.mark.dealt
@pytest.mark.parametrize("name", NAMES)
def test_an_operators_results_have_the_shapes_and_dtypes_that_were_inferred(name: str) -> None:
    assert CASES.get(name), f"tests/symbol/cases.py has no case of {name}"
    for inputs, parameters in CASES[name]:
        net = make(sym, name, parameters, len(inputs))
        given, states = arrays(net, inputs, name)
        shapes = {n: a.shape for n, a in given.items()}
        types = net.infer_type(**{n: a.dtype for n, a in given.items()})[1] if given else net.infer_type_partial()[1]
        results = net.bind(None, given, aux_states=states, grad_req="null").forward()
        assert [y.shape for y in results] == net.infer_shape(**shapes)[1], (name, parameters)
        assert [y.dtype.type for y in results] == types, (name, parameters)
        again = sym.load_json(net.tojson())
        assert again.tojson() == net.tojson() and again.infer_shape(**shapes) == net.infer_shape(**shapes)


DRAWN = {
    "_random_uniform": ([], {"low": 1, "high": 3, "shape": (400, 50)}, 2, 1 / 3),
    "_random_normal": ([], {"loc": 1, "scale": 2, "shape": (400, 50)}, 1, 4),
    "_random_gamma": ([], {"alpha": 3, "beta": 2, "shape": (400, 50)}, 6, 12),
    "_random_exponential": ([], {"lam": 4, "shape": (400, 50)}, 1 / 4, 1 / 16),
    "_random_poisson": ([], {"lam": 4, "shape": (400, 50)}, 4, 4),
    "_random_negative_binomial": ([], {"k": 3, "p": 0.4, "shape": (400, 50)}, 4.5, 11.25),
    "_random_generalized_negative_binomial": ([], {"mu": 2, "alpha": 0.3, "shape": (400, 50)}, 2, 3.2),
    "_random_randint": ([], {"low": 0, "high": 5, "shape": (400, 50)}, 2, 2),
    "_sample_multinomial": ([onp.array([[0, 1.0], [0.5, 0.5]])], {"shape": 10000}, 0.75, 0.1875),
    "_shuffle": ([onp.arange(1000.0)], {}, 499.5, 83333.25),
    "_npi_bernoulli": ([], {"prob": 0.3, "logit": None, "is_logit": False, "size": (400, 50)}, 0.3, 0.21),
    "_npi_choice": ([], {"a": 5, "size": (400, 50)}, 2, 2),
    "_npi_multinomial": ([], {"n": 10, "pvals": (0.5, 0.5), "size": (2000,)}, 5, 2.5),
    **{
        f"_image_random_flip_{n}": ([onp.arange(300.0).reshape(10, 10, 3)], {}, 149.5, 7499.9)
        for n in ("left_right", "top_bottom")
    },
    **{
        f"_image_random_{n}": ([onp.arange(300.0).reshape(10, 10, 3) / 300], numbers, 149.5 / 300 * f, f**2 / 12)
        for n, f, numbers in (
            *((n, 1, {"min_factor": k, "max_factor": k}) for n, k in (("contrast", 1), ("saturation", 1), ("hue", 0))),
            ("brightness", 0.5, {"min_factor": 0.5, "max_factor": 0.5}), ("lighting", 1, {"alpha_std": 0}),
            ("color_jitter", 1, {"brightness": 1e-3, "contrast": 1e-3, "saturation": 1e-3, "hue": 1e-3}),
        )
    },
}  # fmt: skip
FLAT = (20, 1000)
for _name, _parameters in {"uniform": {"low": 1.0, "high": 3.0}, "normal": {"mu": 1.0, "sigma": 2.0},
                           "gamma": {"alpha": 3.0, "beta": 2.0}, "exponential": {"lam": 4.0}, "poisson": {"lam": 4.0},
                           "negative_binomial": {"k": 3.0, "p": 0.4},
                           "generalized_negative_binomial": {"mu": 2.0, "alpha": 0.3}}.items():  # fmt: skip
    _expected = DRAWN[f"_random_{_name}"][2:]
    _arrays = [onp.full(20, v) for v in _parameters.values()]
    DRAWN[f"_sample_{_name}"] = (_arrays, {"shape": 1000}, *_expected)
    _numbers = {n: v for n, v in DRAWN[f"_random_{_name}"][1].items() if n != "shape"}
    DRAWN[f"_random_{_name}_like"] = ([onp.zeros(FLAT)], _numbers, *_expected)


for _name, _numbers, *_expected in (
    ("normal", {"loc": 1.0, "scale": 2.0}, 1, 4), ("uniform", {"low": 1.0, "high": 3.0}, 2, 1 / 3),
    ("gamma", {"shape": 3.0, "scale": 2.0}, 6, 12), ("exponential", {"scale": 2.0}, 2, 4),
    ("gumbel", {"loc": 1.0, "scale": 1.0}, 1.5772, 1.6449), ("logistic", {"loc": 1.0, "scale": 1.0}, 1, 3.2899),
    ("pareto", {"a": 5.0}, 0.25, 0.1042), ("rayleigh", {"scale": 2.0}, 2.5066, 1.7168),
    ("weibull", {"a": 2.0}, 0.8862, 0.2146), ("powerd", {"a": 2.0}, 0.6667, 0.0556),
):  # fmt: skip
    DRAWN[f"_npi_{_name}"] = ([], _numbers | {"size": (400, 50)}, *_expected)
    if _name in ("normal", "uniform"):
        _arrays = [onp.full((20, 5), v) for v in _numbers.values()]
        DRAWN[f"_npi_{_name}_n"] = (_arrays, dict.fromkeys(_numbers) | {"size": (400,)}, *_expected)


@pytest.mark.parametrize("name", sorted({row.name for row in sym.OPERATORS.values() if row.drawn is True}))
def test_random_numbers_have_their_mean_and_variance(name: str) -> None:
    inputs, parameters, mean, variance = DRAWN[name]
    np.random.seed(1)
    net = make(sym, name, parameters, len(inputs))
    given = {f"x{i}": np.array(a, onp.float32) for i, a in enumerate(inputs)}
    (y,) = net.eval(**given)
    assert y.shape == net.infer_shape(**{n: a.shape for n, a in given.items()})[1][0]
    assert abs(float(y.mean()) - mean) < 0.05 * (1 + mean) and abs(float(y.var()) - variance) < 0.1 * variance
    np.random.seed(1)
    assert (net.eval(**given)[0] == y).all()


# ------------------------------------------------------------------ what MXNet on the CPU cannot be asked
def test_pooling_of_the_same_size() -> None:
    x = normal(1, 1, 7, 5)
    options = {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "same"}
    (y,) = sym.Pooling(sym.Variable("x"), pool_type="max", **options).eval(x=x)
    expected = [[x[0, 0, i : i + 3, j : j + 3].max() for j in (0, 2, 4)] for i in (0, 2, 4, 6)]
    close(y[0, 0], expected)
    (y,) = sym.Pooling(sym.Variable("x"), pool_type="avg", **options).eval(x=onp.ones_like(x))
    assert y.shape == (1, 1, 4, 3)


def test_channels_last() -> None:
    x, w = normal(2, 6, 5, 3), normal(4, 3, 3, 3)
    net = sym.Convolution(sym.Variable("x"), name="c", kernel=(3, 3), num_filter=4, no_bias=True, layout="NHWC")
    assert net.infer_shape(x=x.shape)[:2] == ([x.shape, w.shape], [(2, 4, 3, 4)])
    expected = npx.convolution(onp.moveaxis(x, -1, 1), onp.moveaxis(w, -1, 1), kernel=(3, 3), num_filter=4)
    close(net.eval(x=x, c_weight=w)[0], onp.moveaxis(onp.asarray(expected), 1, -1), 1e-4)
    pooled = sym.Pooling(sym.Variable("x"), kernel=(2, 2), stride=(2, 2), layout="NHWC").eval(x=x)[0]
    close(pooled[0, 0, 0], x[0, :2, :2].max(axis=(0, 1)))


def test_a_deconvolution_to_a_size() -> None:
    net = sym.Deconvolution(
        sym.Variable("x"), kernel=(3, 3), num_filter=2, stride=(2, 2), target_shape=(8, 8), name="d"
    )
    assert net.infer_shape(x=(1, 3, 4, 4))[1] == [(1, 2, 8, 8)]
    assert net.eval(x=normal(1, 3, 4, 4), d_weight=normal(3, 2, 3, 3))[0].shape == (1, 2, 8, 8)


def test_random_slopes_in_training() -> None:
    np.random.seed(0)
    net = sym.LeakyReLU(sym.Variable("x"), act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    x = -np.ones(1000, onp.float32)
    bound = net.bind(None, [x], [np.zeros_like(x)])
    close(bound.forward()[0], -0.2 * onp.ones(1000))
    (y,) = bound.forward(is_train=True)
    assert -0.3 <= float(y.min()) < -0.29 and -0.11 < float(y.max()) <= -0.1
    bound.backward(np.ones_like(x))
    close(bound.grad_arrays[0], -y)


def test_sort_of_everything_and_its_gradient() -> None:
    x = normal(3, 2)
    bound = sym.sort(sym.Variable("x"), axis=None).bind(None, [x], [onp.zeros_like(x)])
    close(bound.forward(is_train=True)[0], onp.sort(x, axis=None))
    bound.backward(np.arange(6.0))
    close(bound.grad_arrays[0], onp.argsort(onp.argsort(x, axis=None)).reshape(3, 2))


def test_selu_has_its_true_slope() -> None:
    x = onp.array([-1.0, 2.0], onp.float32)
    bound = sym.LeakyReLU(sym.Variable("x"), act_type="selu").bind(None, [x], [onp.zeros_like(x)])
    bound.forward(is_train=True)
    bound.backward(np.ones(2))
    close(bound.grad_arrays[0], [1.0507010 * 1.6732632 * onp.exp(-1), 1.0507010])


# ------------------------------------------------------------------ JSON
def test_json_round_trip(tmp_path: Path) -> None:
    net = mlp()
    net.save(str(tmp_path / "net-symbol.json"))
    again = sym.load(str(tmp_path / "net-symbol.json"))
    assert again.tojson() == net.tojson() and again.list_arguments() == net.list_arguments()
    assert pickle.loads(pickle.dumps(net)).tojson() == net.tojson() == copy.deepcopy(net).tojson()
    said = json.loads(net.tojson())
    assert said["arg_nodes"] == [0, 1, 2, 5, 6, 8] and said["heads"] == [[9, 0, 0]]
    assert said["nodes"][3]["attrs"] == {"num_hidden": "6"} and said["node_row_ptr"] == list(range(11))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"nodes": [], "heads": []}', '{"nodes": [{}], "heads": [[0, 0]]}',
     '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[3, 0, 0]]}',
     '{"nodes": [{"op": "exp", "name": "x", "inputs": [[0, 0, 0]]}], "heads": [[0, 0, 0]]}',
     '{"nodes": [{"op": "nothing", "name": "x", "inputs": []}], "heads": [[0, 0, 0]]}',
     '{"nodes": [{"op": "clip", "name": "x", "attrs": {"a_min": "one", "a_max": "2"}, "inputs": []}],'
     '"heads": [[0, 0]]}'],
)  # fmt: skip
def test_a_malformed_file_is_a_symbol_error(text: str) -> None:
    with pytest.raises(errors.SymbolError):
        sym.load_json(text)


# ------------------------------------------------------------------ errors
X = sym.Variable("x")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sym.FullyConnected(X), errors.SymbolError, "lacks the parameter num_hidden"),
        (lambda: sym.FullyConnected(X, num_hidden="x"), errors.SymbolError, "num_hidden='x'; expected num_hidden"),
        (lambda: sym.FullyConnected(X, num_hiden=3), TypeError, "do you mean 'num_hidden'"),
        (lambda: sym.Activation(X, act_type="rely"), errors.SymbolError, "one of relu, sigmoid"),
        (lambda: sym.FullyConnected(X, gamma=X, num_hidden=3), TypeError, "has no input gamma"),
        (lambda: sym.exp(X, data=X), TypeError, "by position and by name"),
        (lambda: sym.exp(X, X), TypeError, "takes 1 arguments by position"),
        (lambda: sym.concat(X, 3), TypeError, "takes symbols by position"),
        (lambda: sym.exp(sym.Group([X, X])), errors.SymbolError, "a symbol of 2 results"),
        (lambda: sym.Variable(3), TypeError, "is text"),
        (lambda: sym.Variable("a", foo=1), ValueError, "__foo__"),
        (lambda: sym.Variable("a", attr={"b": 1}), ValueError, "attributes are texts"),
        (lambda: sym.Variable("a", dtype="complex64"), TypeError, "no dtype complex64"),
        (lambda: sym.Group([3]), TypeError, "list of symbols"),
        (lambda: sym.Group([]), ValueError, "at least one"),
        (lambda: bool(X == X), TypeError, "no truth value"),
        (lambda: X["y"], ValueError, "no result is named 'y'"),
        (lambda: X[1], IndexError, "result 1 of a symbol with 1"),
        (lambda: X[1.5], TypeError, "indexed by"),
        (lambda: X(X), TypeError, "composed by keyword"),
        (lambda: X(y=X), errors.SymbolError, "no variable is named so"),
        (lambda: X(x=3), TypeError, "expected a Symbol"),
        (lambda: X(x=sym.Group([X, X])), errors.SymbolError, "index one of them"),
        (lambda: X + "a", TypeError, "unsupported operand"),
        (lambda: sym.maximum(X, "a"), TypeError, "expected symbols and numbers"),
        (lambda: sym.nothing, AttributeError, "no attribute 'nothing'"),
        (lambda: sym.linalg.nothing, AttributeError, "no operator _linalg_nothing"),
        (lambda: (X + sym.Variable("y")).infer_shape(x=(2,), y=(3,)), errors.SymbolError, r"lhs \(2,\), rhs \(3,\)"),
        (lambda: X.infer_shape(z=(2,)), errors.SymbolError, "no argument is named z"),
        (lambda: X.infer_shape(x=3), TypeError, "is no tuple"),
        (lambda: mlp().infer_shape(data=(2, 3), fc1_weight=(6, 4)), errors.SymbolError, "fc1"),
        (lambda: mlp().simple_bind(None), errors.SymbolError, "the shapes of data"),
        (lambda: X.bind(None, {}), ValueError, "args lacks x"),
        (lambda: X.bind(None, [1, 2]), ValueError, "has 2 arrays; it needs 1"),
        (lambda: X.bind("cpu", [onp.ones(2)]), TypeError, "minnp.Context"),
        (lambda: X.bind(None, [onp.ones(2)], grad_req="maybe"), ValueError, "one of 'write', 'add', 'null'"),
        (lambda: X.bind(None, [onp.ones(2)]).forward(y=1), ValueError, "no argument is named 'y'"),
        (lambda: X.bind(None, [onp.ones(2)]).forward(x=onp.ones(3)), ValueError, r"shape \(3,\); it was bound"),
        (lambda: X.bind(None, [onp.ones(2)]).backward(), errors.SymbolError, "needs forward"),
        (lambda: X.bind(None, [onp.ones(2)]).copy_params_from({"y": 1}), ValueError, "no argument is named 'y'"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_gradient_is_wanted_for_what_is_no_loss() -> None:
    bound = sym.exp(X).bind(None, [onp.ones(2)], [onp.ones(2)])
    bound.forward(is_train=True)
    with pytest.raises(errors.SymbolError, match="is no loss"):
        bound.backward()
    with pytest.raises(errors.SymbolError, match="got 2 gradients, and there are 1"):
        bound.backward([onp.ones(2), onp.ones(2)])


def test_an_error_names_its_node() -> None:
    net = sym.Reshape(X, shape=(7,), name="here")
    with pytest.raises(errors.SymbolError, match="Reshape 'here' cannot take"):
        net.infer_shape(x=(2, 3))
    try:
        sym.elemwise_add(X, sym.Variable("y"), name="sum").eval(x=onp.ones(2), y=onp.ones(3))
    except ValueError as error:
        assert "sum" in str(error) + str(getattr(error, "__notes__", ""))
    else:
        pytest.fail("shapes that do not fit were added")


def test_every_name_that_the_module_says_it_has_is_there() -> None:
    assert {"Convolution", "Symbol", "Custom"} <= set(dir(sym))
    assert all(getattr(sym, name) is not None for name in dir(sym))


def test_a_state_whose_batch_is_unknown_gets_that_of_the_data() -> None:
    """gluon's LSTM exports _zeros of (2, 0, 4): MXNet's 0 is what is not known yet."""
    names = ("data", "parameters", "state", "state_cell")
    data, parameters, state, cell = map(sym.Variable, names)
    options = {"state_size": 4, "num_layers": 2, "mode": "lstm", "name": "lstm"}
    given = sym.RNN(data, parameters, state, cell, **options)
    made = sym.RNN(data, parameters, sym.zeros((2, 0, 4)), sym.zeros((2, 0, 4)), **options)
    draw = onp.random.default_rng(0)
    first, second = Function(given), Function(made)
    loss = lambda f, w, **inputs: np.sum(f(parameters=w, **inputs) ** 2)
    for batch in (3, 5):
        x = draw.normal(size=(6, batch, 3)).astype("f4")
        w = draw.normal(size=given.infer_shape(data=x.shape)[0][1]).astype("f4")
        zeros = onp.zeros((2, batch, 4), "f4")
        states = {"state": zeros, "state_cell": zeros}
        onp.testing.assert_array_equal(second(data=x, parameters=w), first(data=x, parameters=w, **states))
        assert made.infer_shape(data=x.shape)[1] == [(6, batch, 4)]
        slopes = grad(loss, 1)(first, w, data=x, **states), jit(grad(partial(loss, second)))(w, data=x)
        onp.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-5)
    with pytest.raises(SymbolError, match="should follow from other shapes, and does not"):
        sym.zeros((2, 0)).eval()
    with pytest.raises(SymbolError, match="capture a call of"):
        made.to_graph()


def test_an_unrolled_layer_begins_with_zeros_for_each_sequence() -> None:
    """mx.rnn's cells begin with _zeros of (0, H), whose batch follows from what their product is added to."""
    x, h = sym.Variable("x"), sym.zeros((0, 4))
    steps = sym.SliceChannel(x, num_outputs=3, axis=1, squeeze_axis=True)
    for i in range(3):
        a = sym.FullyConnected(steps[i], num_hidden=4, name=f"i{i}") + sym.FullyConnected(h, num_hidden=4, name=f"h{i}")
        h = sym.Activation(a, act_type="tanh")
    assert h.infer_shape(x=(2, 3, 5))[1] == [(2, 4)]
    partly = dict(zip(h.list_arguments(), h.infer_shape_partial(x=(0, 3, 5))[0], strict=True))
    assert partly["h0_weight"] == (4, 4) and partly["h0_bias"] == (4,)
    draw = onp.random.default_rng(0)
    given = {n: draw.normal(size=s) for n, s in zip(h.list_arguments(), h.infer_shape(x=(2, 3, 5))[0], strict=True)}
    y = onp.zeros((2, 4))
    for i in range(3):
        y = given["x"][:, i] @ given[f"i{i}_weight"].T + given[f"i{i}_bias"] + y @ given[f"h{i}_weight"].T
        y = onp.tanh(y + given[f"h{i}_bias"])
    onp.testing.assert_allclose(onp.asarray(Function(h)(**given)), y, rtol=1e-6)
    assert sym.Group([x, h]).list_attr() == {} and sym.Group([x, h]).attr("shape") is None
