"""Graphs as MXNet symbols and symbols as graphs: both compute what the original does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest
from test_mxnet_import_graph import evaluate

import minnp.numpy as np
from minnp import Function, backends, errors, fx, grad, jit, nn, npx

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

import mxnet as mx

from minnp.backends.mxnet.importing import to_graph
from minnp.backends.mxnet.symbols import to_symbol

R = onp.random.default_rng(0)
S = mx.sym
X, Y = S.Variable("x"), S.Variable("y")


def draw(*shape: int, low: float = 0.1, high: float = 0.9) -> onp.ndarray:
    return R.uniform(low, high, shape).astype("f4")


SYMBOLS: dict[str, tuple[Callable, tuple]] = {
    **{
        name: (lambda n=name: getattr(S, n)(X), ((3, 4),))
        for name in (
            *(
                "exp",
                "log",
                "log2",
                "log10",
                "log1p",
                "expm1",
                "sqrt",
                "rsqrt",
                "cbrt",
                "rcbrt",
                "square",
                "abs",
                "sign",
            ),
            *(
                "rint",
                "ceil",
                "floor",
                "trunc",
                "fix",
                "sin",
                "cos",
                "tan",
                "arcsin",
                "arccos",
                "arctan",
                "sinh",
                "cosh",
            ),
            *("tanh", "arcsinh", "arctanh", "degrees", "radians", "negative", "reciprocal", "relu", "sigmoid", "erf"),
            *("erfinv", "softsign", "hard_sigmoid", "zeros_like", "ones_like", "softmax", "log_softmax", "flatten"),
            *("sum", "mean", "prod", "max", "min", "nansum", "norm", "BlockGrad", "make_loss", "transpose"),
        )
    },
    **{
        name: (lambda n=name: getattr(S, n)(X, Y), ((3, 4), (3, 1)))
        for name in (
            *("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_mod", "broadcast_power"),
            *("broadcast_maximum", "broadcast_minimum", "broadcast_hypot", "broadcast_equal", "broadcast_greater"),
            *("broadcast_lesser", "broadcast_lesser_equal", "broadcast_greater_equal", "broadcast_not_equal"),
        )
    },
    "operators": (lambda: (1 - X) * 2 / (X + 3) - X**2 + 2**X + 3 / X - (X > 0.5), ((3, 4),)),
    "elementwise": (lambda: X * Y + X / Y - S.maximum(X, Y) + (X <= Y), ((3, 4), (3, 4))),
    "fully_connected": (lambda: S.FullyConnected(X, num_hidden=5, name="fc"), ((3, 4),)),
    "fully_connected_rows": (lambda: S.FullyConnected(X, num_hidden=5, flatten=False, no_bias=True), ((2, 3, 4),)),
    "convolution": (
        lambda: S.Convolution(X, num_filter=4, kernel=(3, 3), stride=(2, 1), pad=(1, 0), num_group=2, dilate=(1, 2)),
        ((2, 6, 8, 9),),
    ),
    "convolution_1d": (lambda: S.Convolution(X, num_filter=4, kernel=(3,)), ((2, 6, 8),)),
    "deconvolution": (
        lambda: S.Deconvolution(X, num_filter=4, kernel=(3, 3), stride=(2, 2), adj=(1, 1)),
        ((2, 3, 4, 4),),
    ),
    "max_pool": (lambda: S.Pooling(X, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max"), ((2, 3, 7, 7),)),
    "avg_pool_full": (
        lambda: S.Pooling(
            X,
            kernel=(3, 3),
            stride=(2, 2),
            pool_type="avg",
            pooling_convention="full",
            count_include_pad=False,
            pad=(1, 1),
        ),
        ((2, 3, 8, 8),),
    ),
    "global_pool": (lambda: S.Pooling(X, kernel=(1, 1), global_pool=True, pool_type="max"), ((2, 3, 7, 7),)),
    "batch_norm": (lambda: S.BatchNorm(X, name="bn"), ((2, 3, 4),)),
    "batch_norm_gamma": (lambda: S.BatchNorm(X, fix_gamma=False, eps=1e-5), ((2, 3, 4),)),
    "layer_norm": (lambda: S.LayerNorm(X), ((2, 3, 4),)),
    "group_norm": (lambda: S.GroupNorm(X, num_groups=2), ((2, 4, 5),)),
    "instance_norm": (lambda: S.InstanceNorm(X), ((2, 4, 5),)),
    "l2_normalization": (lambda: S.L2Normalization(X, mode="channel"), ((2, 4, 5),)),
    "leaky": (lambda: S.LeakyReLU(X - 0.5, act_type="leaky", slope=0.1), ((3, 4),)),
    "elu": (lambda: S.LeakyReLU(X - 0.5, act_type="elu", slope=0.3), ((3, 4),)),
    "selu": (lambda: S.LeakyReLU(X - 0.5, act_type="selu"), ((3, 4),)),
    "gelu": (lambda: S.LeakyReLU(X - 0.5, act_type="gelu"), ((3, 4),)),
    "prelu": (lambda: S.LeakyReLU(X - 0.5, act_type="prelu", name="p"), ((3, 4),)),
    "activations": (
        lambda: sum((S.Activation(X - 0.5, act_type=a) for a in ("tanh", "softrelu", "softsign")), X),
        ((3, 4),),
    ),
    "softmax_output": (lambda: S.SoftmaxOutput(X, name="softmax"), ((3, 4),)),
    "softmax_channels": (lambda: S.SoftmaxOutput(X, multi_output=True, name="softmax"), ((3, 4, 2),)),
    "softmax_activation": (lambda: S.SoftmaxActivation(X), ((3, 4),)),
    "softmax_axis": (lambda: S.softmax(X, axis=0, temperature=2.0), ((3, 4),)),
    "logistic": (lambda: S.LogisticRegressionOutput(X), ((3, 4),)),
    "regression": (lambda: S.LinearRegressionOutput(X), ((3, 4),)),
    "dropout": (lambda: S.Dropout(X, p=0.5), ((3, 4),)),
    "reshape": (lambda: S.reshape(X, shape=(0, -4, 2, 2, 0)), ((3, 4, 5),)),
    "transposed": (lambda: S.transpose(X, axes=(1, 0, 2)), ((3, 4, 5),)),
    "swapped": (lambda: S.SwapAxis(X, dim1=0, dim2=2), ((3, 4, 5),)),
    "expanded": (lambda: S.squeeze(S.expand_dims(X, axis=1), axis=1), ((3, 4),)),
    "concat": (lambda: S.Concat(X, Y, dim=1), ((3, 4), (3, 2))),
    "stacked": (lambda: S.stack(X, Y, axis=1), ((3, 4), (3, 4))),
    "split": (lambda: S.SliceChannel(X, num_outputs=2, axis=1)[1], ((3, 4),)),
    "sliced": (lambda: S.slice(X, begin=(0, 3), end=(2, None), step=(1, -1)), ((3, 4),)),
    "slice_axis": (lambda: S.slice_axis(X, axis=-1, begin=1, end=3), ((3, 4),)),
    "slice_like": (lambda: S.slice_like(X, Y, axes=(1,)), ((3, 4), (2, 2))),
    "tiled": (lambda: S.repeat(S.tile(X, reps=(2, 1)), repeats=2, axis=1), ((3, 4),)),
    "flipped": (lambda: S.flip(X, axis=1), ((3, 4),)),
    "padded": (
        lambda: S.Pad(X, mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 1, 0), constant_value=3.0),
        ((1, 2, 3, 4),),
    ),
    "padded_edge": (lambda: S.Pad(X, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 1, 0)), ((1, 2, 3, 4),)),
    "broadcast": (lambda: S.broadcast_to(X, shape=(0, 5)), ((3, 1),)),
    "broadcast_like": (lambda: S.broadcast_like(X, Y), ((3, 1), (3, 4))),
    "broadcast_axis": (lambda: S.broadcast_axis(X, axis=1, size=5), ((3, 1),)),
    "upsampling": (lambda: S.UpSampling(X, scale=2, sample_type="nearest"), ((1, 2, 3, 4),)),
    "summed": (
        lambda: S.broadcast_add(S.sum(X, axis=(0, 2), keepdims=True), S.mean(X, axis=1, keepdims=True)),
        ((3, 4, 5),),
    ),
    "norm_axis": (lambda: S.norm(X, ord=1, axis=1) + S.norm(X, axis=1), ((3, 4),)),
    "argmax": (lambda: S.argmax(X, axis=1), ((3, 4),)),
    "clipped": (lambda: S.clip(X, a_min=0.3, a_max=0.6), ((3, 4),)),
    "where": (lambda: S.where(X > 0.5, X, Y), ((3, 4), (3, 4))),
    "dot": (lambda: S.dot(X, Y, transpose_b=True), ((3, 4), (2, 4))),
    "batch_dot": (lambda: S.batch_dot(X, Y, transpose_a=True), ((2, 3, 4), (2, 3, 5))),
    "taken": (lambda: S.take(X, Y * 3), ((3, 4), (5,))),
    "embedded": (lambda: S.Embedding(S.floor(X * 3), input_dim=3, output_dim=4), ((5,),)),
    "picked": (lambda: S.pick(X, S.floor(Y * 4), axis=1), ((3, 4), (3,))),
    "one_hot": (lambda: S.one_hot(S.floor(X * 4), depth=4), ((3,),)),
    "cast": (lambda: S.Cast(S.Cast(X * 5, dtype="int32"), dtype="float32"), ((3, 4),)),
    "summands": (lambda: S.add_n(X, Y, X), ((3, 4), (3, 4))),
    "constants": (lambda: X + S.ones((3, 4)) + S.zeros((3, 4)), ((3, 4),)),
    "smooth": (lambda: S.smooth_l1(X, scalar=2.0), ((3, 4),)),
    "lstm": (
        lambda: S.RNN(
            X,
            S.Variable("p"),
            S.Variable("h"),
            S.Variable("c"),
            state_size=4,
            num_layers=2,
            mode="lstm",
            bidirectional=True,
            name="rnn",
        ),
        ((5, 2, 3),),
    ),
    "gru": (
        lambda: S.RNN(
            X, S.Variable("p"), S.Variable("h"), state_size=4, num_layers=1, mode="gru", state_outputs=True, name="rnn"
        )[1],
        ((5, 2, 3),),
    ),
    "sequence": (
        lambda: S.SequenceReverse(S.SequenceMask(X, S.floor(Y * 4) + 1, use_sequence_length=True)),
        ((5, 2, 3), (2,)),
    ),
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_symbol_and_its_graph_agree(name: str) -> None:
    make, given = SYMBOLS[name]
    symbol = make()
    sizes = dict(zip(("x", "y"), given, strict=False))
    names = symbol.list_arguments()
    shapes = dict(zip(names, symbol.infer_shape(**sizes)[0], strict=True))
    states = dict(zip(symbol.list_auxiliary_states(), symbol.infer_shape(**sizes)[2], strict=True))
    arrays = {n: draw(*s) for n, s in {**shapes, **states}.items()}
    f = Function(symbol, input_shapes=sizes)
    for n, state in f.get_aux_states().items():
        state[...] = arrays[n]
    want = f(**{n: arrays[n] for n in names}, is_train=False)
    graph = to_graph(symbol)
    graph.lint()
    got = evaluate(graph, **{n: np.array(a) for n, a in arrays.items()})
    assert np.shape(got) == want.shape
    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), rtol=2e-5, atol=2e-6)


# ------------------------------------------------------------------ graphs as symbols
def network() -> Callable:
    layers = [nn.Conv2D(3, 8, 3, pad="same", bias=False), nn.BatchNorm(8), nn.ReLU(), nn.MaxPool2D(), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(8 * 4, 4)).init(0)
    return lambda x: npx.softmax(model(x, mode="test") * 2.5)[:, 1:]


def transformer(x: Any, w: Any) -> Any:
    y = npx.layer_norm(x, w[0, :4] + 1, w[1, :4])
    q, k = y @ w, y @ np.tanh(w)
    attention = npx.softmax(q @ k.T / 2.0)
    z = np.concatenate([attention @ y, npx.silu(y), np.clip(y, -0.5, 0.5)], axis=-1)
    return np.where(z > 0, z, 0.1 * z)[::-1, None, 1::2].sum(axis=1) - np.max(z) * 2.0


PROGRAMS = {
    "network": (network(), ((2, 3, 4, 4),)),
    "transformer": (transformer, ((5, 4), (4, 4))),
    "gradient": (grad(lambda w, x: np.mean(np.tanh(x @ w) ** 2)), ((4, 5), (3, 4))),
    "conv_gradient": (
        grad(lambda x: np.sum(npx.convolution(x, np.ones((2, 3, 3, 3), np.float32)) ** 2)),
        ((2, 3, 6, 6),),
    ),
    "statistics": (lambda x: (x - np.mean(x, axis=0)) / np.std(x, axis=0) + np.arctan2(x, 2.0 - x), ((5, 4),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_captured_program_is_a_symbol_and_comes_back(name: str) -> None:
    f, shapes = PROGRAMS[name]
    args = [draw(*s, low=-1) for s in shapes]
    graph = jit(f).lower(*args).graph
    symbol, arguments = to_symbol(graph)
    inputs = {n.name: a for n, a in zip(graph.find_nodes(op="placeholder"), args, strict=True)}
    given = {n: v for n, v in {**inputs, **arguments}.items() if n in symbol.list_arguments()}
    want = onp.asarray(f(*map(np.array, args)))
    got = Function(symbol)(**given)
    onp.testing.assert_allclose(onp.asarray(got).reshape(want.shape), want, rtol=1e-4, atol=1e-5)
    back = evaluate(to_graph(symbol.tojson()), **{n: np.array(v) for n, v in given.items()})
    onp.testing.assert_allclose(onp.asarray(back).reshape(want.shape), want, rtol=1e-4, atol=1e-5)


def test_a_row_without_an_operator_is_named_with_its_line() -> None:
    graph = jit(lambda x: np.sort(x)).lower(draw(3)).graph
    with pytest.raises(errors.SymbolError, match=r"sort \(.*test_mxnet_graphs.py:\d+\) has no MXNet operator"):
        to_symbol(graph)


def test_what_has_a_graph_is_lowered_and_one_without_shapes_says_what_to_do() -> None:
    f = lambda x: np.tanh(x) * 2
    x = np.ones((2, 3))
    for source in (fx.capture(f, x), fx.capture(f, x).graph, jit(f).lower(x)):
        assert fx.to_mxnet(source).symbol.list_arguments() == ["x"]
    with pytest.raises(errors.SymbolError, match=r"the shape of x is not known: .* minnp\.fx\.capture"):
        fx.to_mxnet(fx.symbolic_trace(f))
