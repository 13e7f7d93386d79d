"""npx through the public functions: derivatives to second order, in both modes, and what the functions promise."""

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, npx, vjp
from minnp.testing import check_grads


def draw(*shape, seed=0):
    return onp.random.RandomState(seed).standard_normal(shape)


FUNCTIONS = {
    "convolution": (
        lambda x, w, b: npx.convolution(x, w, b, kernel=(3, 2), stride=(2, 1), pad=1, dilate=(1, 2), num_group=2),
        [(2, 4, 5, 6), (4, 2, 3, 2), (4,)],
    ),
    "deconvolution": (
        lambda x, w, b: npx.deconvolution(x, w, b, stride=2, pad=1, adj=1, no_bias=False),
        [(2, 3, 4), (3, 2, 3), (2,)],
    ),
    "deconvolution to a size": (
        lambda x, w: npx.deconvolution(x, w, stride=2, target_shape=(7, 8)), [(1, 2, 3, 4), (2, 2, 3, 3)]
    ),
    "max pooling": (lambda x: npx.pooling(x, 3, stride=2, pad=1), [(2, 2, 7, 6)]),
    "avg pooling": (lambda x: npx.pooling(x, 3, "avg", stride=2, pooling_convention="full"), [(2, 2, 6, 6)]),
    "sum pooling": (lambda x: npx.pooling(x, (2,), "sum"), [(2, 2, 6)]),
    "fully_connected": (npx.fully_connected, [(2, 3, 4), (5, 12), (5,)]),
    "fully_connected to the last axis": (
        lambda x, w: npx.fully_connected(x, w, flatten=False), [(2, 3, 4), (5, 4)]
    ),
    "batch_norm": (
        lambda x, a, b: npx.batch_norm(x, a, b, onp.zeros(3), onp.ones(3), fix_gamma=False, training=True),
        [(4, 3, 2), (3,), (3,)],
    ),
    "batch_norm with its statistics": (
        lambda x, a, b: npx.batch_norm(
            x, a, b, onp.zeros(2), onp.ones(2), fix_gamma=False, training=True, output_mean_var=True, axis=-1
        ),
        [(4, 3, 2), (2,), (2,)],
    ),
    "batch_norm outside training": (
        lambda x, a, b, m, v: npx.batch_norm(x, a, b, m, v**2 + 1, fix_gamma=False), [(4, 3, 2), *[(3,)] * 4]
    ),
    "layer_norm": (npx.layer_norm, [(3, 4), (4,), (4,)]),
    "layer_norm over two axes": (
        lambda x, a, b: npx.layer_norm(x, a, b, axis=(0, 2), output_mean_var=True), [(3, 2, 4), (3, 1, 4), (3, 1, 4)]
    ),
    "layer_norm over all axes": (
        lambda x, a, b: npx.layer_norm(x, a, b, axis=(0, 1)), [(3, 4), (3, 4), (3, 4)]
    ),
    "group_norm": (lambda x, a, b: npx.group_norm(x, a, b, 2), [(2, 4, 3), (4,), (4,)]),
    "instance_norm": (npx.instance_norm, [(2, 3, 4), (3,), (3,)]),
    "softmax": (lambda x: npx.softmax(x, axis=1, temperature=2.0), [(2, 3, 2)]),
    "softmax with lengths": (lambda x: npx.softmax(x, [1, 3]), [(2, 3)]),
    "masked_softmax": (lambda x: npx.masked_softmax(x, [[True, False, True], [False] * 3]), [(2, 3)]),
    "masked_log_softmax": (lambda x: npx.masked_log_softmax(x, [True, False, True])[:, ::2], [(2, 3)]),
    "attention": (lambda q, k, v: npx.attention(q, k, v, causal=True), [(2, 3, 4), (2, 3, 4), (2, 3, 2)]),
    "embedding": (lambda w: npx.embedding([[0, 2], [2, 1]], w), [(3, 4)]),
    "pick": (lambda x: npx.pick(x, [0.0, 5.0], axis=1), [(2, 3, 2)][:1] and [(2, 3)]),
    "topk": (lambda x: npx.topk(x, k=2, ret_typ="value"), [(2, 4)]),
    "gather_nd": (lambda x: npx.gather_nd(x, [[0, 1, 0], [1, 0, 1]]), [(2, 3)]),
    "index_add": (lambda x, v: npx.index_add(x, [[0, 1, 0]], v), [(2, 3), (3, 3)]),
    "index_update": (lambda x, v: npx.index_update(x, [[0, 1]], v), [(2, 3), (2, 3)]),
    "batch_dot": (lambda a, b: npx.batch_dot(a, b, True, True), [(2, 3, 4), (2, 5, 3)]),
    "sequence_mask": (lambda x: npx.sequence_mask(x, [1, 3], True, axis=1), [(2, 3, 2)]),
    "sequence_last": (lambda x: npx.sequence_last(x, [1, 3], True), [(3, 2, 2)]),
    "sequence_reverse": (lambda x: npx.sequence_reverse(x, [1, 3], True), [(3, 2, 2)]),
    "prelu": (lambda x, a: npx.leaky_relu(x, a, "prelu"), [(2, 3), (3,)]),
    "lstm": (npx.lstm, [(3, 2, 4), (2, 3), (2, 3), (12, 4), (12, 3), (12,), (12,)]),
    "lstm's outputs alone": (lambda *a: npx.lstm(*a)[0], [(3, 2, 4), (2, 3), (2, 3), (12, 4), (12, 3), (12,)]),
    "gru": (npx.gru, [(3, 2, 4), (2, 3), (9, 4), (9, 3), (9,), (9,)]),
    "lstm_cell": (npx.lstm_cell, [(2, 12), (2, 3)]),
    "lstm_cell on a tree": (npx.lstm_cell, [(2, 15), (2, 3), (2, 3)]),
    "lstm_cell's h alone": (lambda *a: npx.lstm_cell(*a)[0], [(2, 12), (2, 3)]),
    "lstm_cell's c alone": (lambda *a: npx.lstm_cell(*a)[1], [(2, 12), (2, 3)]),
    "simple_rnn": (npx.simple_rnn, [(3, 2, 4), (2, 3), (3, 4), (3, 3), (3,), (3,)]),
    "rnn": (
        lambda x, p, h, c: npx.rnn(x, p, h, c, [2, 3], num_layers=2, bidirectional=True, state_outputs=True,
                                   use_sequence_length=True),
        [(3, 2, 2), (2 * (8 * 4 + 16) + 2 * (8 * 6 + 16),), (4, 2, 2), (4, 2, 2)],
    ),
}  # fmt: skip


@pytest.mark.dealt
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of(name):
    f, shapes = FUNCTIONS[name]
    check_grads(f, tuple(draw(*shape, seed=i) for i, shape in enumerate(shapes)))


@pytest.mark.parametrize(
    "name", ["convolution", "max pooling", "layer_norm", "lstm", "attention", "batch_norm outside training"]
)
def test_gradient_of_jit_and_jit_of_gradient_agree(name):
    f, shapes = FUNCTIONS[name]
    arrays = [np.array(draw(*shape, seed=i)) for i, shape in enumerate(shapes)]
    first = lambda *a: (lambda y: np.sum(np.sin(y[0] if isinstance(y, tuple) else y)))(f(*a))
    every = range(len(arrays))
    expected = grad(first, every)(*arrays)
    for g in (grad(jit(first), every), jit(grad(first, every))):
        for _ in range(2):  # the run that captures, and one of the graph
            for a, b in zip(g(*arrays), expected, strict=True):
                onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=1e-9, atol=1e-12)


def test_dropout_keeps_the_mean_and_draws_from_numpys_stream():
    x = np.ones((100, 100), "f4")
    onp.random.seed(3)
    expected = (onp.random.random((100, 100)) >= 0.25) / onp.float32(0.75)
    np.random.seed(3)
    y = npx.dropout(x, 0.25)
    assert y.dtype == onp.float32
    onp.testing.assert_array_equal(onp.asarray(y), expected.astype("f4"))
    rows = onp.asarray(npx.dropout(x, 0.5, axes=(1,), rng=onp.random.default_rng(0)))
    assert (rows == rows[:, :1]).all() and 0.3 < (rows[:, 0] == 0).mean() < 0.7
    mask = onp.arange(6).reshape(2, 3) % 2 == 0
    check_grads(lambda x: npx.dropout(x, 0.4, mask=mask), (draw(2, 3),))
    assert npx.dropout(x, 0.5, training=False) is x
    with pytest.raises(ValueError, match="fraction"):
        npx.dropout(x, 1.0)


def test_one_hot_topk_and_pick_answer_as_mxnet_does():
    onp.testing.assert_array_equal(onp.asarray(npx.one_hot([1, 0, 7], 3)), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert npx.one_hot([1], 2).dtype == onp.float32
    x = np.array([[0.3, 0.1, 0.9], [0.5, 0.8, 0.2]])
    onp.testing.assert_array_equal(onp.asarray(npx.topk(x, k=2)), [[2, 0], [1, 0]])
    assert npx.topk(x).dtype == onp.float32
    value, index = npx.topk(x, k=1, ret_typ="both", is_ascend=True, axis=0, dtype="int64")
    onp.testing.assert_array_equal(onp.asarray(value), [[0.3, 0.1, 0.2]])
    onp.testing.assert_array_equal(onp.asarray(index), [[0, 0, 1]])
    onp.testing.assert_array_equal(onp.asarray(npx.topk(x, None, 2, "mask")), [[0, 0, 1], [0, 1, 0]])
    onp.testing.assert_array_equal(onp.asarray(npx.pick(x, [4, -1])), [0.9, 0.5])
    onp.testing.assert_array_equal(onp.asarray(npx.pick(x, [4, -1], mode="wrap")), [0.1, 0.2])
    assert npx.pick(x, [0, 1], keepdims=True).shape == (2, 1)


def test_small_operators():
    x = np.arange(6.0).reshape(2, 3)
    assert npx.batch_flatten(np.zeros((2, 3, 4))).shape == (2, 12)
    assert npx.reshape_like(x, np.zeros((3, 2))).shape == (3, 2)
    assert npx.broadcast_like(x[:1], x).shape == (2, 3)
    onp.testing.assert_array_equal(onp.asarray(npx.arange_like(x, 1, 2)), [[1, 3, 5], [7, 9, 11]])
    onp.testing.assert_array_equal(onp.asarray(npx.arange_like(x, axis=1)), [0, 1, 2])
    onp.testing.assert_array_equal(onp.asarray(npx.shape_array(x)), [2, 3])
    onp.testing.assert_array_equal(onp.asarray(npx.nonzero(x)), onp.argwhere(onp.asarray(x)))


def test_batch_norm_writes_the_moving_statistics_only_in_training():
    x, ones = np.array(draw(5, 3)), np.ones(3)
    mean, var = np.zeros(3), np.ones(3)
    npx.batch_norm(x, ones, ones, mean, var)
    assert not onp.asarray(mean).any()
    grad(lambda x: np.sum(npx.batch_norm(x, ones, ones, mean, var, training=True, momentum=0.75)))(x)
    onp.testing.assert_allclose(onp.asarray(mean), 0.25 * onp.asarray(x).mean(0))
    onp.testing.assert_allclose(onp.asarray(var), 0.75 + 0.25 * onp.asarray(x).var(0))
    fixed = grad(lambda g: np.sum(npx.batch_norm(x, g, ones, mean, var) ** 2))(ones)
    assert not onp.asarray(fixed).any()


def test_a_softmax_of_nothing_is_zero_and_of_infinities_is_nan_or_one():
    x = np.array([[-onp.inf, 0.0], [1e4, -1e4]])
    onp.testing.assert_array_equal(onp.asarray(npx.softmax(x)), [[0, 1], [1, 0]])
    assert onp.isfinite(onp.asarray(grad(lambda x: np.sum(npx.softmax(x) ** 2))(x))).all()
    onp.testing.assert_array_equal(onp.asarray(npx.masked_softmax(x, np.zeros((2, 2)))), onp.zeros((2, 2)))
    y, _pullback = vjp(lambda x: npx.log_softmax(x), x)
    assert onp.isneginf(onp.asarray(y)[0, 0])


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda x: npx.convolution(x, np.ones((4, 3, 3, 3))), r"groups"),
        (lambda x: npx.convolution(x, np.ones((4, 2, 9, 9))), r"larger than the data"),
        (lambda x: npx.convolution(x, np.ones((4, 2, 3, 3)), kernel=(2, 2)), r"kernel"),
        (lambda x: npx.convolution(x, np.ones((4, 2, 3, 3)), num_filter=5), r"num_filter"),
        (lambda x: npx.convolution(x, np.ones((4, 2, 3, 3)), stride=(1, 1, 1)), r"expected 2 sizes"),
        (lambda x: npx.convolution(x, np.ones((4, 2, 3, 3)), layout="NHWC"), r"layout"),
        (lambda x: npx.deconvolution(x, np.ones((2, 2, 3, 3)), stride=2, adj=2), r"adj"),
        (lambda x: npx.pooling(x, 9), r"do not fit"),
        (lambda x: npx.pooling(x, 2, "median"), r"pool_type"),
        (lambda x: npx.pooling(x, 2, pooling_convention="same"), r"pooling_convention"),
        (lambda x: npx.activation(x, "step"), r"act_type"),
        (lambda x: npx.rnn(x, np.ones(3), np.ones((1, 1, 2)), mode="gru"), r"parameters"),
        (lambda x: npx.group_norm(x, np.ones(2), np.ones(2), 3), r"divide"),
    ],
)
def test_errors_name_the_facts(call, match):
    with pytest.raises(ValueError, match=match):
        call(np.ones((1, 2, 5, 5))) if "rnn" not in match else call(np.ones((1, 1, 2)))


def test_an_unknown_option_is_refused_and_a_hint_is_not():
    x, w = np.ones((1, 2, 5, 5)), np.ones((4, 2, 3, 3))
    assert npx.convolution(x, w, workspace=512, cudnn_off=True).shape == (1, 4, 3, 3)
    with pytest.raises(TypeError, match="strides"):
        npx.convolution(x, w, strides=2)


def test_half_precision_and_integers_are_computed():
    x, w = draw(1, 2, 5, 5).astype("f2"), draw(3, 2, 3, 3).astype("f2")
    y = npx.convolution(x, w)
    assert y.dtype == onp.float16
    onp.testing.assert_allclose(
        onp.asarray(y), onp.asarray(npx.convolution(x.astype("f4"), w.astype("f4"))), rtol=2e-2, atol=1e-2
    )
    whole = npx.convolution(onp.arange(50).reshape(1, 2, 5, 5), onp.ones((3, 2, 3, 3), int))
    assert whole.dtype.kind == "i"
    assert npx.pooling(onp.arange(50).reshape(1, 2, 5, 5), 2).dtype.kind == "i"
