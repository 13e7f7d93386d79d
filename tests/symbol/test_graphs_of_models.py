"""Graphs of models as their authors export them, saved by MXNet: the same outputs, gradients and states here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

import mxnet as mx

S, V = mx.sym, mx.sym.Variable
pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),  # mx.nd.array asks for it
]
GRAPHS: dict[str, Callable] = {}


def graph(f: Callable) -> Callable:
    """Enter a function that returns (symbol, inputs by name), those of whole numbers without a gradient."""
    GRAPHS[f.__name__] = f
    return f


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> onp.ndarray:
    return onp.random.default_rng(seed).normal(0, scale, shape).astype("f4")


def whole(high: int, *shape: int, seed: int = 0, low: int = 0) -> onp.ndarray:
    return onp.random.default_rng(seed).integers(low, high, shape)


def block(x: Any, name: str, filters: int, stride: int = 1, size: int = 3) -> Any:
    x = S.Convolution(x, kernel=(size, size), pad=(size // 2, size // 2), stride=(stride, stride), num_filter=filters,
                      no_bias=True, name=name)  # fmt: skip
    return S.Activation(S.BatchNorm(x, fix_gamma=False, name=f"{name}_bn"), act_type="relu", name=f"{name}_relu")


@graph
def transformer() -> tuple:
    heads, x = 2, V("data")  # [T, N, C]
    y = S.FullyConnected(x, num_hidden=24, flatten=False, name="qkv")
    scores = S.contrib.interleaved_matmul_selfatt_qk(y, heads=heads)
    length = S.broadcast_axis(S.expand_dims(V("length"), axis=1), axis=1, size=heads)
    length = S.broadcast_axis(S.expand_dims(S.reshape(length, shape=(-1,)), axis=1), axis=1, size=5)
    att = S.softmax(scores, length=S.cast(length, "int32"), use_length=True, axis=-1)
    y = S.contrib.interleaved_matmul_selfatt_valatt(y, S.Dropout(att, p=0.0), heads=heads)
    x = S.LayerNorm(x + S.FullyConnected(y, num_hidden=8, flatten=False, name="proj"), eps=1e-12, name="ln1")
    y = S.LeakyReLU(S.FullyConnected(x, num_hidden=16, flatten=False, name="ffn1"), act_type="gelu")
    x = S.LayerNorm(x + S.FullyConnected(y, num_hidden=8, flatten=False, name="ffn2"), name="ln2")
    return x, {"data": normal(5, 3, 8), "length": onp.array([5, 3, 1])}


@graph
def attention_between_two_sequences() -> tuple:
    q = S.FullyConnected(V("data"), num_hidden=8, flatten=False, name="q")
    kv = S.FullyConnected(V("memory"), num_hidden=16, flatten=False, name="kv")
    att = S.softmax(S.contrib.interleaved_matmul_encdec_qk(q, kv, heads=2), axis=-1)
    y = S.contrib.interleaved_matmul_encdec_valatt(kv, att, heads=2)
    place = S.expand_dims(S.expand_dims(S.contrib.arange_like(y, axis=0), axis=1), axis=2)
    return S.broadcast_add(S.contrib.div_sqrt_dim(y), place * 0.01), {
        "data": normal(4, 2, 8),
        "memory": normal(6, 2, 8, seed=1),
    }


@graph
def generator() -> tuple:
    x = S.Reshape(V("data"), shape=(-1, 6, 1, 1))
    for i, (filters, options) in enumerate((
        (8, {"kernel": (4, 4)}), (4, {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)}),
        (3, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "adj": (1, 1)}),
    )):  # fmt: skip
        x = S.Deconvolution(x, num_filter=filters, no_bias=i < 2, name=f"g{i}", **options)
        x = S.LeakyReLU(S.BatchNorm(x, fix_gamma=True, eps=2e-5, name=f"g{i}_bn"), slope=0.2) if i < 2 else x
    fake = S.Activation(x, act_type="tanh")
    y = S.LeakyReLU(S.Convolution(fake, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=4, name="d0"), slope=0.2)
    y = S.FullyConnected(S.Flatten(y), num_hidden=1, name="d1")
    return S.Group([S.LogisticRegressionOutput(y, V("label"), name="loss"), S.BlockGrad(fake)]), {
        "data": normal(3, 6), "label": onp.array([[0.0], [1], [1]], "f4"),
    }  # fmt: skip


@graph
def unet() -> tuple:
    x = block(V("data"), "c0", 4)
    down = block(S.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", pooling_convention="full"), "c1", 8)
    up = S.UpSampling(down, scale=2, sample_type="nearest", num_args=1)
    deconv = S.Deconvolution(down, kernel=(4, 4), stride=(2, 2), num_filter=4, num_group=4, no_bias=True, name="up")
    y = S.Concat(x, S.Crop(up, x, num_args=2), S.Crop(deconv, x, num_args=2, center_crop=True), dim=1)
    y = S.Convolution(y, kernel=(1, 1), num_filter=3, name="out")
    return S.SoftmaxOutput(y, V("label"), multi_output=True, use_ignore=True, ignore_label=2, normalization="valid",
                           name="softmax"), {"data": normal(2, 3, 9, 7), "label": whole(3, 2, 9, 7)}  # fmt: skip


@graph
def regions() -> tuple:
    x = block(block(V("data"), "c0", 6, 2), "c1", 6, 2)
    rpn = S.Activation(S.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=8, name="rpn"), act_type="relu")
    scores = S.Convolution(rpn, kernel=(1, 1), num_filter=6, name="rpn_score")
    moves = S.Convolution(rpn, kernel=(1, 1), num_filter=12, name="rpn_box")
    chances = S.SoftmaxActivation(S.Reshape(scores, shape=(0, 2, -1, 0)), mode="channel")
    chances = S.Reshape(chances, shape=(0, 6, -1, 0))
    rois = S.contrib.Proposal(S.BlockGrad(chances), S.BlockGrad(moves), V("im_info"), feature_stride=4, scales=(2,),
                              ratios=(0.5, 1, 2), rpn_pre_nms_top_n=20, rpn_post_nms_top_n=5, threshold=0.7,
                              rpn_min_size=4)  # fmt: skip
    pooled = S.ROIPooling(x, S.BlockGrad(rois), pooled_size=(2, 2), spatial_scale=0.25)
    aligned = S.contrib.ROIAlign(x, S.BlockGrad(rois), pooled_size=(2, 2), spatial_scale=0.25, sample_ratio=2)
    y = S.FullyConnected(S.Flatten(S.Concat(pooled, aligned, dim=1)), num_hidden=7, name="fc")
    off = S.smooth_l1(S.slice_axis(y, axis=1, begin=3, end=7), scalar=3.0)
    return S.Group([S.log_softmax(S.slice_axis(y, axis=1, begin=0, end=3)), S.MakeLoss(off, grad_scale=0.5)]), {
        "data": normal(1, 3, 32, 32), "im_info": onp.array([[32, 32, 1]], "f4"),
    }  # fmt: skip


@graph
def speech() -> tuple:
    x = S.transpose(S.squeeze(block(V("data"), "c0", 4, 1), axis=2), axes=(2, 0, 1))  # [T, N, C]
    x = S.RNN(x, state=V("h"), state_cell=V("c"), state_size=5, num_layers=1, mode="lstm", bidirectional=True,
              state_outputs=False, name="lstm")  # fmt: skip
    y = S.FullyConnected(x, num_hidden=5, flatten=False, name="fc")
    loss = S.CTCLoss(y, V("label"), V("lengths"), V("counts"), use_data_lengths=True, use_label_lengths=True,
                     blank_label="last")  # fmt: skip
    return S.MakeLoss(loss), {
        "data": normal(2, 2, 1, 8), "h": normal(2, 2, 5), "c": normal(2, 2, 5, seed=1),
        "label": onp.array([[1, 2, 2], [0, 3, -1]]), "lengths": onp.array([8, 6]), "counts": onp.array([3, 2]),
    }  # fmt: skip


@graph
def sentences() -> tuple:
    x = S.Embedding(V("data"), input_dim=20, output_dim=6, name="embed")
    image, found = S.expand_dims(x, axis=1), []
    for size in (2, 3):
        y = S.Activation(S.Convolution(image, kernel=(size, 6), num_filter=4, name=f"c{size}"), act_type="relu")
        found.append(S.Pooling(y, pool_type="max", kernel=(7 - size + 1, 1)))
    y = S.Reshape(S.Concat(*found, dim=1), shape=(-1, 8))
    gate = S.FullyConnected(y, num_hidden=8, name="gate")
    y = S.sigmoid(gate) * S.relu(S.FullyConnected(y, num_hidden=8, name="high")) + (1 - S.sigmoid(gate)) * y
    return S.SoftmaxOutput(S.FullyConnected(S.Dropout(y, p=0.0), num_hidden=3, name="fc"), V("label"), smooth_alpha=0.1,
                           name="softmax"), {"data": whole(20, 4, 7), "label": whole(3, 4)}  # fmt: skip


@graph
def translation() -> tuple:
    x = S.SwapAxis(S.Embedding(V("data"), input_dim=9, output_dim=4, name="embed"), dim1=0, dim2=1)
    length = V("length")
    back = S.SequenceReverse(x, sequence_length=length, use_sequence_length=True)
    cell, outputs = None, []
    for k, y in enumerate((x, back)):
        y = S.RNN(y, state=S.zeros((1, 0, 5)), state_size=5, num_layers=1, mode="gru", name=f"gru{k}")
        outputs.append(S.SequenceMask(y, sequence_length=length, use_sequence_length=True))
        last = S.SequenceLast(y, sequence_length=length, use_sequence_length=True)
        cell = last if cell is None else S.elemwise_add(cell, last)
    keys = S.transpose(S.Concat(*outputs, dim=2), axes=(1, 0, 2))
    query = S.FullyConnected(S.tanh(cell), num_hidden=10, name="query")
    score = S.batch_dot(keys, S.expand_dims(query, axis=2))
    mask = S.broadcast_lesser(S.expand_dims(S.arange(6), axis=0), S.expand_dims(length, axis=1))
    score = S.where(mask, S.Reshape(score, shape=(0, -1)), S.ones_like(mask) * -1e9)
    context = S.batch_dot(S.expand_dims(S.softmax(score), axis=1), keys)
    return S.FullyConnected(S.Flatten(context), num_hidden=3, name="fc"), {
        "data": whole(9, 3, 6), "length": onp.array([6.0, 2, 4]),
    }  # fmt: skip


@graph
def yolo() -> tuple:
    x = S.Convolution(block(V("data"), "c0", 8, 4), kernel=(1, 1), num_filter=14, name="out")
    y = S.transpose(S.reshape(x, shape=(0, 2, 7, -1)), axes=(0, 3, 1, 2))
    centers = S.slice_axis(y, axis=-1, begin=0, end=2)
    sizes = S.slice_axis(y, axis=-1, begin=2, end=4)
    grid = S.slice_like(S.reshape(S.arange(64), (1, 64, 1, 1)), y, axes=(1,))
    grid = S.concat(grid - 4 * S.floor(grid / 4), S.floor(grid / 4), dim=-1)
    centers = S.broadcast_add(S.sigmoid(centers), grid) * 4
    sizes = S.broadcast_mul(S.exp(sizes), S.reshape(V("anchors", shape=(2, 2)), (1, 1, 2, 2)))
    boxes = S.concat(centers - sizes / 2, centers + sizes / 2, dim=-1)
    chances = S.sigmoid(S.slice_axis(y, axis=-1, begin=4, end=7))
    chances = S.broadcast_mul(S.slice_axis(chances, axis=-1, begin=0, end=1),
                              S.slice_axis(chances, axis=-1, begin=1, end=3))  # fmt: skip
    best, kind = S.max(chances, axis=-1, keepdims=True), S.argmax(chances, axis=-1, keepdims=True)
    found = S.reshape(S.concat(kind, best, boxes, dim=-1), shape=(0, -3, -1))
    kept = S.contrib.box_nms(found, overlap_thresh=0.45, valid_thresh=0.3, topk=10, id_index=0, score_index=1,
                             coord_start=2)  # fmt: skip
    return S.Group([found, S.BlockGrad(S.slice_axis(kept, axis=1, begin=0, end=5))]), {
        "data": normal(2, 3, 16, 16), "anchors": onp.array([[4, 5], [6, 3]], "f4"),
    }  # fmt: skip


@graph
def transformed() -> tuple:
    x = V("data")
    small = S.Pooling(block(x, "c0", 4, 2), global_pool=True, pool_type="avg", kernel=(1, 1))
    place = S.FullyConnected(S.Flatten(small), num_hidden=6, name="place")
    y = S.SpatialTransformer(x, place * 0.3, target_shape=(6, 5), transform_type="affine", sampler_type="bilinear")
    grid = S.GridGenerator(place * 0.3, transform_type="affine", target_shape=(6, 5))
    y = S.Concat(y, S.BilinearSampler(x, grid), S.contrib.BilinearResize2D(x, height=6, width=5), dim=1)
    y = S.LRN(S.InstanceNorm(y, name="in"), nsize=3) + S.L2Normalization(y, mode="channel")
    y = S.reshape(S.transpose(S.reshape(y, shape=(0, -4, 1, 6, 0, 0)), axes=(0, 2, 1, 3, 4)), shape=(0, 6, -2))
    return S.flatten(y), {"data": normal(2, 2, 8, 9)}


@graph
def faces() -> tuple:
    x = S.L2Normalization(S.FullyConnected(block(V("data"), "c0", 4, 2), num_hidden=6, name="fc1"))
    w = S.L2Normalization(V("fc7_weight", shape=(5, 6), lr_mult=1.0))
    cosine = S.FullyConnected(x, w, num_hidden=5, no_bias=True, name="fc7")
    label = V("label")
    at = S.pick(cosine, label, axis=1)
    moved = S.cos(S.arccos(at) + 0.5)
    margin = S.broadcast_mul(S.one_hot(label, depth=5), S.expand_dims(moved - at, 1))
    out = S.SoftmaxOutput(8 * (cosine + margin), label, normalization="valid", name="softmax")
    return S.Group([out, S.BlockGrad(S.topk(cosine, k=2)), S.MakeLoss(S.mean(S.norm(x, axis=1)))]), {
        "data": normal(3, 3, 6, 6), "label": whole(5, 3),
    }  # fmt: skip


@graph
def recommender() -> tuple:
    user = S.Embedding(V("user"), input_dim=9, output_dim=4, name="user_embed")
    item = S.Embedding(V("item"), input_dim=7, output_dim=4, name="item_embed")
    v = V("v", shape=(6, 3))
    x = V("data")
    pairs = 0.5 * S.sum(S.square(S.dot(x, v)) - S.dot(S.square(x), S.square(v)), axis=1, keepdims=True)
    deep = S.FullyConnected(S.Concat(user, item, user * item, dim=1), num_hidden=8, no_bias=True, name="deep")
    deep = S.LeakyReLU(S.BatchNorm(deep, name="bn", axis=1), act_type="prelu", name="prelu")
    y = S.FullyConnected(deep, num_hidden=1, name="fc") + pairs
    y = y + S.broadcast_axis(V("bias", shape=(1, 1)), axis=0, size=5)
    return S.MAERegressionOutput(S.LinearRegressionOutput(y, V("label")) * 1.0, V("label2")), {
        "user": whole(9, 5), "item": whole(7, 5), "data": normal(5, 6), "label": normal(5, 1), "label2": normal(5, 1),
    }  # fmt: skip


@graph
def mixed_precision() -> tuple:
    x = S.broadcast_add(V("data"), V("shift", shape=(1, 4, 1, 1)))  # MXNet does not cast a convolution's result
    y = S.broadcast_mul(S.amp_cast(x, dtype="float16"), S.amp_cast(V("scale", shape=(1, 4, 1, 1)), dtype="float16"))
    y = S.amp_cast(S.mean(S.square(y), axis=(2, 3)), dtype="float32")
    return S.softmax(y + S.mean(x, axis=(2, 3))), {"data": normal(2, 4, 5, 5)}


@graph
def loop() -> tuple:
    def step(x: Any, states: list) -> tuple:
        h = S.tanh(S.FullyConnected(S.Concat(x, states[0], dim=1), V("w"), V("b"), num_hidden=4, name="cell"))
        return h * 2, [h]

    outs, (last,) = S.contrib.foreach(step, V("data"), [V("h")])
    return S.Group([S.sum(outs, axis=0), last]), {"data": normal(3, 2, 5), "h": normal(2, 4)}


@graph
def unrolled() -> tuple:
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(4, prefix="l0_"))
    stack.add(mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="l1_")))
    x = S.Embedding(V("data"), input_dim=9, output_dim=4, name="embed")
    y, _ = stack.unroll(3, inputs=x, begin_state=[S.zeros((2, 4)) for _ in stack.state_info], merge_outputs=True)
    y = S.FullyConnected(S.Reshape(y, shape=(-1, 4)), num_hidden=9, name="fc")
    return S.SoftmaxOutput(y, S.Reshape(V("label"), shape=(-1,)), name="softmax"), {
        "data": whole(9, 2, 3), "label": whole(9, 2, 3),
    }  # fmt: skip


@graph
def superresolution() -> tuple:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, padding=1, in_channels=1), mx.gluon.nn.PReLU(prefix="prelu0_"),
            mx.gluon.nn.Swish(), mx.gluon.nn.Conv2D(8, 3, padding=1, in_channels=4), mx.gluon.nn.GroupNorm(2),
            mx.gluon.contrib.nn.PixelShuffle2D(2), mx.gluon.nn.ReflectionPad2D(1),
            mx.gluon.nn.ELU(), mx.gluon.nn.GELU(), mx.gluon.nn.AvgPool2D(2, ceil_mode=True))  # fmt: skip
    return net(V("data")), {"data": normal(2, 1, 5, 6)}


@graph
def numpys() -> tuple:
    @mx.util.use_np
    class Net(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = mx.gluon.nn.Dense(12, flatten=False, in_units=4)
            self.norm = mx.gluon.nn.LayerNorm(in_channels=4)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            q, k, v = F.np.split(self.dense(x), 3, axis=-1)
            att = F.npx.softmax(F.npx.batch_dot(q, k, transpose_b=True) / 2, axis=-1)
            y = self.norm(x + F.npx.batch_dot(att, v))
            y = F.np.where(y > 0, y, 0.1 * y) + F.np.expand_dims(F.np.mean(y, axis=1), 1) ** 2
            return F.np.concatenate([y, F.np.sqrt(F.np.abs(x) + 1)], axis=-1).reshape((2, -1))

    with mx.util.np_shape(True), mx.util.np_array(True):
        return Net()(V("data").as_np_ndarray()), {"data": normal(2, 3, 4)}


# prelu's: MXNet writes the gradient of the data into that of the result before it reads the latter again
OVERWRITTEN = ("prelu_gamma", "prelu0_alpha")


def filled(symbol: Any, inputs: dict) -> tuple[dict, dict]:
    """Random numbers for the parameters and states of a symbol."""
    shapes, _, states = symbol.infer_shape(**{n: a.shape for n, a in inputs.items()})
    values = {}
    for i, (n, s) in enumerate(zip(symbol.list_arguments(), shapes)):
        if n in inputs:
            values[n] = inputs[n].astype("f4")
        else:
            values[n] = normal(*s, seed=i, scale=1.0 if n.endswith(("gamma", "anchors")) else 0.3)
    draw = onp.random.default_rng(0)
    return values, {n: draw.uniform(0.5, 1, s).astype("f4") for n, s in zip(symbol.list_auxiliary_states(), states)}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_computes_the_same(name: str, tmp_path: Path) -> None:
    symbol, inputs = GRAPHS[name]()
    values, states = filled(symbol, inputs)
    array = lambda arrays: {n: mx.nd.array(a, dtype=a.dtype) for n, a in arrays.items()}
    params = {n: a for n, a in values.items() if n not in inputs}
    mx.model.save_checkpoint(str(tmp_path / "net"), 1, symbol, array(params), array(states))
    wanted = {n: "write" if n not in inputs or inputs[n].dtype == onp.float32 else "null" for n in values}

    theirs = symbol.bind(mx.cpu(), array(values), array({n: a * 0 for n, a in values.items()}), wanted, array(states))
    expected = [y.asnumpy() for y in theirs.forward(is_train=False)]
    trained = [y.asnumpy() for y in theirs.forward(is_train=True)]
    heads = [onp.random.default_rng(i).normal(size=y.shape).astype(y.dtype) for i, y in enumerate(trained)]
    theirs.backward([mx.nd.array(h, dtype=h.dtype) for h in heads])

    model = minnp.load_mxnet(str(tmp_path / "net"), 1)
    near = {"rtol": 1e-3, "atol": 1e-4} if name != "mixed_precision" else {"rtol": 2e-2, "atol": 2e-2}
    found = model(**{n: np.array(values[n]) for n in inputs})
    for y, e in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        onp.testing.assert_allclose(onp.asarray(y), e, **near)
    given, kept = ({n: np.array(a) for n, a in arrays.items()} for arrays in (values, states))
    ours = model.symbol.bind(None, given, {n: np.zeros_like(a) for n, a in given.items()}, wanted, kept)
    for y, e in zip(ours.forward(is_train=True), trained, strict=True):
        onp.testing.assert_allclose(onp.asarray(y), e, **near)
    ours.backward(heads)
    for n, g in theirs.grad_dict.items():
        if wanted[n] == "write" and n not in OVERWRITTEN:
            scale = max(abs(g.asnumpy()).max(), 1e-3)
            onp.testing.assert_allclose(ours.grad_dict[n] / scale, g.asnumpy() / scale, **near, err_msg=n)
    for n, a in theirs.aux_dict.items():
        onp.testing.assert_allclose(ours.aux_dict[n], a.asnumpy(), **near, err_msg=n)
