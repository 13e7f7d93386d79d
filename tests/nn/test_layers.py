"""Layers and losses: values and gradients against torch's, and against finite differences."""

import math

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.nn import layers

torch = pytest.importorskip("torch", reason="torch's results are what ours are compared with")
F = torch.nn.functional
RNG = onp.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape)


def numbers(value):
    return onp.asarray(value.detach() if isinstance(value, torch.Tensor) else value)


def check(ours, theirs, *arrays, rtol=1e-9, atol=1e-11):
    """Same value, and same gradient of a random weighting of it, for every array; and that gradient is the slope."""
    y = ours(*arrays)
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = theirs(*tensors)
    onp.testing.assert_allclose(numbers(y), numbers(expected), rtol=rtol, atol=atol)
    weight = normal(*onp.shape(numbers(y)))
    (expected * torch.tensor(weight)).sum().backward()

    def scalar(*args):
        return np.sum(ours(*args) * weight)

    for i, (array, tensor) in enumerate(zip(arrays, tensors)):
        gradient = numbers(minnp.grad(scalar, i)(*arrays))
        onp.testing.assert_allclose(gradient, numbers(tensor.grad), rtol=rtol, atol=atol, err_msg=f"argument {i}")
        direction = normal(*array.shape) if array.ndim else onp.asarray(1.0)
        moved = [[a + s * 1e-6 * direction if j == i else a for j, a in enumerate(arrays)] for s in (1, -1)]
        slope = (float(scalar(*moved[0])) - float(scalar(*moved[1]))) / 2e-6
        assert math.isclose(slope, float((gradient * direction).sum()), rel_tol=1e-5, abs_tol=1e-6)


X, W, B = normal(5, 7), normal(7, 4), normal(4)


def test_affine():
    check(layers.affine, lambda x, w, b: x @ w + b, X, W, B)
    check(layers.affine, lambda x, w, b: x.reshape(5, -1) @ w + b, normal(5, 2, 2, 3), normal(12, 4), B)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (layers.relu, F.relu),
        (layers.leaky_relu, F.leaky_relu),
        (layers.sigmoid, torch.sigmoid),
        (layers.tanh, torch.tanh),
        (layers.gelu, lambda x: F.gelu(x, approximate="tanh")),
        (layers.softmax, lambda x: F.softmax(x, -1)),
        (layers.log_softmax, lambda x: F.log_softmax(x, -1)),
        (lambda x: layers.softmax(x, axis=0), lambda x: F.softmax(x, 0)),
        (layers.flatten, lambda x: x.flatten(1)),
    ],
)
def test_activation(ours, theirs):
    check(ours, theirs, normal(4, 6))
    check(ours, theirs, normal(3, 2, 5))


def test_extreme_scores_do_not_overflow():
    x = onp.array([[1000.0, -1000.0, 0.0]])
    assert onp.array_equal(numbers(layers.sigmoid(x)), [[1.0, 0.0, 0.5]])
    assert onp.array_equal(numbers(layers.softmax(x)), [[1.0, 0.0, 0.0]])
    assert float(layers.softmax_loss(x, onp.array([1]))) == 2000.0
    assert float(layers.binary_cross_entropy(x, onp.array([[0.0, 1.0, 1.0]]))) == pytest.approx(
        (2000 + math.log(2)) / 3
    )
    # the gradient of relu at exactly 0 is 0
    assert numbers(minnp.grad(lambda x: np.sum(layers.relu(x)))(onp.array([-1.0, 0.0, 2.0]))).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2}, {"pad": 1}, {"stride": (2, 1), "pad": (1, 2)}, {"dilate": 2}, {"groups": 2}]
)
@pytest.mark.parametrize("bias", [True, False])
def test_conv2d(options, bias):
    x, w, b = normal(2, 4, 6, 7), normal(6, 4 // options.get("groups", 1), 3, 3), normal(6)
    names = {"pad": "padding", "dilate": "dilation"}
    theirs = {names.get(key, key): value for key, value in options.items()}
    arrays = (x, w, b) if bias else (x, w)
    check(
        lambda x, w, b=None: layers.conv2d(x, w, b, **options),
        lambda x, w, b=None: F.conv2d(x, w, b, **theirs),
        *arrays,
        rtol=1e-7,
        atol=1e-9,
    )


@pytest.mark.parametrize(("size", "stride", "pad"), [(2, None, 0), (3, 2, 1), ((2, 3), (1, 2), 0), (3, 1, 1)])
def test_pooling(size, stride, pad):
    x = RNG.permutation(2 * 3 * 6 * 7).reshape(2, 3, 6, 7) / 100.0
    check(lambda x: layers.max_pool(x, size, stride, pad), lambda x: F.max_pool2d(x, size, stride, pad), x)
    check(lambda x: layers.avg_pool(x, size, stride, pad), lambda x: F.avg_pool2d(x, size, stride, pad), x)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5, 2)])
@pytest.mark.parametrize("mode", ["train", "test"])
def test_batchnorm(shape, mode):
    x, gamma, beta, mean, var = normal(*shape), normal(3), normal(3), normal(3), abs(normal(3)) + 0.5
    check(
        lambda x, g, b: layers.batchnorm(x, g, b, mode, running_mean=mean.copy(), running_var=var.copy())[0],
        lambda x, g, b: F.batch_norm(
            x, torch.tensor(mean), torch.tensor(var), g, b, training=mode == "train", momentum=0.1
        ),
        x,
        gamma,
        beta,
        rtol=1e-6,
        atol=1e-9,
    )
    _, new_mean, new_var = layers.batchnorm(x, gamma, beta, mode, running_mean=mean.copy(), running_var=var.copy())
    axes = (0, *range(2, x.ndim))
    if mode == "train":
        mean, var = 0.9 * mean + 0.1 * x.mean(axes), 0.9 * var + 0.1 * x.var(axes)
    onp.testing.assert_allclose(numbers(new_mean), mean)
    onp.testing.assert_allclose(numbers(new_var), var)


def test_layernorm():
    check(
        layers.layernorm, lambda x, g, b: F.layer_norm(x, (7,), g, b), normal(2, 5, 7), normal(7), normal(7), rtol=1e-6
    )


def test_dropout():
    x = onp.ones((200, 50))
    np.random.seed(0)
    y = numbers(layers.dropout(x, 0.25))
    assert set(onp.unique(y)) == {0.0, 1 / 0.75}
    assert abs(y.mean() - 1) < 0.02
    assert layers.dropout(x, 0.25, "test") is x
    assert layers.dropout(x, 0.0) is x
    assert onp.array_equal(numbers(layers.dropout(x, 0.5, seed=3)), numbers(layers.dropout(x, 0.5, seed=3)))
    assert layers.dropout(x.astype("f"), 0.5).dtype == onp.float32
    gradient = minnp.grad(lambda x: np.sum(layers.dropout(x, 0.5, seed=3)))(x)
    assert onp.array_equal(numbers(gradient), numbers(layers.dropout(x, 0.5, seed=3)))
    with pytest.raises(ValueError, match=r"prob in \[0, 1\), got prob=1.5"):
        layers.dropout(x, 1.5)
    with pytest.raises(ValueError, match=r"prob in \[0, 1\), got prob=1.5"):
        minnp.nn.Dropout(1.5)
    with pytest.raises(ValueError, match="mode must be 'train' or 'test', got 'eval'"):
        layers.dropout(x, 0.5, "eval")


# ------------------------------------------------------------------ sequences
N, T, D, H = 3, 4, 5, 6


def test_rnn():
    def theirs(x, h, wx, wh, b):
        hs = []
        for t in range(T):
            h = torch.tanh(x[:, t] @ wx + h @ wh + b)
            hs.append(h)
        return torch.stack(hs, 1)

    arrays = normal(N, T, D), normal(N, H), normal(D, H), normal(H, H), normal(H)
    check(layers.rnn_temporal, theirs, *arrays)
    step = layers.rnn_step(arrays[0][:, 0], *arrays[1:])
    onp.testing.assert_allclose(numbers(step), numbers(layers.rnn_temporal(*arrays))[:, 0])


def test_lstm():
    # CS231n's gates are i, f, o, g; torch's are i, f, g, o
    order = onp.concatenate([onp.arange(2 * H), onp.arange(3 * H, 4 * H), onp.arange(2 * H, 3 * H)])

    def theirs(x, h, wx, wh, b):
        params = [wx[:, order].T, wh[:, order].T, b[order]]
        zero = torch.zeros_like(b)
        out, _, _ = torch.lstm(
            x, (h[None], torch.zeros_like(h)[None]), [*params, zero], True, 1, 0.0, False, False, True
        )
        return out

    arrays = normal(N, T, D), normal(N, H), normal(D, 4 * H), normal(H, 4 * H), normal(4 * H)
    check(layers.lstm_temporal, theirs, *arrays, rtol=1e-7)
    h, c = layers.lstm_step(arrays[0][:, 0], arrays[1], onp.zeros((N, H)), *arrays[2:])
    onp.testing.assert_allclose(numbers(h), numbers(layers.lstm_temporal(*arrays))[:, 0])
    onp.testing.assert_allclose(numbers(layers.lstm_step(arrays[0][:, 1], h, c, *arrays[2:])[0]),
                                numbers(layers.lstm_temporal(*arrays))[:, 1])  # fmt: skip


def test_gru():
    def theirs(x, h, wx, wh, b, wxh, whh, bh):
        hs = []
        for t in range(T):
            r, z = torch.sigmoid(x[:, t] @ wx + h @ wh + b).chunk(2, 1)
            m = torch.tanh(x[:, t] @ wxh + (r * h) @ whh + bh)
            h = z * h + (1 - z) * m
            hs.append(h)
        return torch.stack(hs, 1)

    shapes = (N, T, D), (N, H), (D, 2 * H), (H, 2 * H), (2 * H,), (D, H), (H, H), (H,)
    arrays = [normal(*shape) for shape in shapes]
    check(layers.gru_temporal, theirs, *arrays)
    step = layers.gru_step(arrays[0][:, 0], *arrays[1:])
    onp.testing.assert_allclose(numbers(step), numbers(layers.gru_temporal(*arrays))[:, 0])


def test_temporal_affine_and_embedding():
    check(layers.temporal_affine, lambda x, w, b: x @ w + b, normal(N, T, D), normal(D, 2), normal(2))
    words = onp.array([[0, 2, 2], [1, 0, 2]])
    check(lambda w: layers.word_embedding(words, w), lambda w: F.embedding(torch.tensor(words), w), normal(4, 3))


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked):
    q, k, v = normal(2, 3, T, D), normal(2, 3, 6, D), normal(2, 3, 6, 2)
    mask = RNG.random((2, 1, T, 6)) < 0.7 if masked else None
    theirs = None if mask is None else torch.tensor(mask)
    check(
        lambda q, k, v: layers.attention(q, k, v, mask),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, theirs),
        q,
        k,
        v,
        rtol=1e-7,
    )


# ------------------------------------------------------------------ losses
LABELS = onp.array([0, 3, 1, 1, 2])


def test_softmax_loss():
    x = normal(5, 4)
    check(lambda x: layers.softmax_loss(x, LABELS), lambda x: F.cross_entropy(x, torch.tensor(LABELS)), x)
    soft = RNG.dirichlet(onp.ones(4), 5)
    check(lambda x: layers.softmax_loss(x, soft), lambda x: F.cross_entropy(x, torch.tensor(soft)), x)
    # labels as floats, from MXNet's iterators
    assert float(layers.softmax_loss(x, LABELS.astype("f"))) == float(layers.softmax_loss(x, LABELS))


def test_softmax_cross_entropy_takes_probabilities():
    p = RNG.dirichlet(onp.ones(4), 5)
    check(
        lambda p: layers.softmax_cross_entropy(p, LABELS), lambda p: F.nll_loss(torch.log(p), torch.tensor(LABELS)), p
    )
    rows = numbers(layers.one_hot(LABELS, 4))
    assert float(layers.softmax_cross_entropy(p, rows)) == pytest.approx(float(layers.softmax_cross_entropy(p, LABELS)))


def test_svm_loss():
    check(
        lambda x: layers.svm_loss(x, LABELS), lambda x: 4 * F.multi_margin_loss(x, torch.tensor(LABELS)), normal(5, 4)
    )


def test_regression_losses():
    x, y = normal(5, 4), normal(5, 4)
    target = torch.tensor(y)
    check(lambda x: layers.l2_loss(x, y), lambda x: F.mse_loss(x, target, reduction="sum") / 5, x)
    check(lambda x: layers.l1_loss(x, y), lambda x: F.l1_loss(x, target, reduction="sum") / 5, x)
    check(lambda x: layers.huber_loss(x, y, 0.7), lambda x: F.huber_loss(x, target, reduction="sum", delta=0.7) / 5, x)
    soft = RNG.random((5, 4))
    check(lambda x: layers.binary_cross_entropy(x, soft),
          lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(soft)), x)  # fmt: skip


def test_targets_of_l2_loss():
    x = normal(5, 4)
    assert float(layers.l2_loss(x, LABELS)) == pytest.approx(float(((x - onp.eye(4)[LABELS]) ** 2).sum() / 5))
    assert float(layers.l2_loss(x[:, :1], x[:, 1])) == pytest.approx(float(((x[:, 0] - x[:, 1]) ** 2).mean()))
    with pytest.raises(ValueError, match=r"outputs \[5, 4\] .* got float64\[5\]"):
        layers.l2_loss(x, x[:, 0])


def test_temporal_softmax_loss():
    x, y, mask = normal(N, T, D), RNG.integers(0, D, (N, T)), RNG.random((N, T)) < 0.6

    def theirs(x):
        each = F.cross_entropy(x.reshape(N * T, D), torch.tensor(y.ravel()), reduction="none")
        return (each * torch.tensor(mask.ravel())).sum() / N

    check(lambda x: layers.temporal_softmax_loss(x, y, mask), theirs, x)


def test_every_public_layer_says_its_formula():
    for name in layers.__all__:
        assert "=" in getattr(layers, name).__doc__ or "[N" in getattr(layers, name).__doc__, name


WEIGHT = onp.array([0.5, 2.0, 1.0, 3.0])


def test_class_weights_are_torchs():
    x, weight = normal(5, 4), torch.tensor(WEIGHT)
    check(
        lambda x: layers.softmax_loss(x, LABELS, weight=WEIGHT),
        lambda x: F.cross_entropy(x, torch.tensor(LABELS), weight),
        x,
    )
    soft = RNG.dirichlet(onp.ones(4), 5)
    check(lambda x: layers.softmax_loss(x, soft, WEIGHT), lambda x: F.cross_entropy(x, torch.tensor(soft), weight), x)
    check(
        lambda x: layers.softmax_cross_entropy(x, LABELS, WEIGHT),
        lambda x: F.nll_loss(torch.log(x), torch.tensor(LABELS), weight),
        soft,
    )
    own = weight[torch.tensor(LABELS)]
    check(
        lambda x: layers.svm_loss(x, LABELS, WEIGHT),
        lambda x: 4 * (own * F.multi_margin_loss(x, torch.tensor(LABELS), reduction="none")).sum() / own.sum(),
        x,
    )
    scores, y = normal(6), RNG.integers(0, 2, 6).astype(float)
    each = torch.tensor(onp.where(y == 1, 3.0, 0.5))
    check(
        lambda x: layers.binary_cross_entropy(x, y, weight=[0.5, 3.0]),
        lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(y), each, reduction="sum") / each.sum(),
        scores,
    )


def test_class_weights_by_class_and_of_equal_weights():
    x = normal(5, 4)
    named = layers.softmax_loss(x, LABELS, weight={0: 0.5, 1: 2.0, 3: 3.0})
    assert float(named) == pytest.approx(float(layers.softmax_loss(x, LABELS, weight=WEIGHT)))
    for loss in (layers.softmax_loss, layers.svm_loss):
        assert float(loss(x, LABELS, weight=onp.full(4, 7.0))) == pytest.approx(float(loss(x, LABELS)))
    scores = normal(6)
    assert float(layers.binary_cross_entropy(scores, scores > 0, weight=(2, 2))) == pytest.approx(
        float(layers.binary_cross_entropy(scores, scores > 0))
    )
    sequences, labels = normal(2, 3, 4), RNG.integers(0, 4, (2, 3))
    flat = layers.softmax_loss(sequences.reshape(6, 4), labels.reshape(6), WEIGHT)
    assert float(layers.softmax_loss(sequences, labels, WEIGHT)) == float(flat)
    with pytest.raises(ValueError, match=r"a number for each of 4 classes; got an array \[3\]"):
        layers.softmax_loss(x, LABELS, weight=[1, 2, 3])
    with pytest.raises(ValueError, match="a number for each of 4 classes; got 'balanced'"):
        layers.softmax_loss(x, LABELS, weight="balanced")
    with pytest.raises(ValueError, match="for class 4; the classes are 0 to 3"):
        layers.softmax_loss(x, LABELS, weight={4: 1.0})
