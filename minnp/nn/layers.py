"""Layers as plain functions: arrays in, arrays out, parameters passed by hand.

Each docstring is the layer's formula with shapes: N examples, D inputs, M outputs, C channels, H x W pixels, T time
steps. Names and argument orders are MinPy's (which took them from CS231n), those of windows over images torch's. `mode`
is "train" or "test". Losses live in minnp.nn.losses and can be used from here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import minnp.numpy as np
from minnp import npx

from .checks import F, choice, count, explained, named, rows
from .losses import (
    binary_cross_entropy,
    huber_loss,
    l1_loss,
    l2_loss,
    one_hot,
    softmax_cross_entropy,
    softmax_loss,
    svm_loss,
    temporal_softmax_loss,
)

__all__ = [
    "affine",
    "attention",
    "avg_pool",
    "batchnorm",
    "binary_cross_entropy",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "flatten",
    "gelu",
    "groupnorm",
    "gru_step",
    "gru_temporal",
    "huber_loss",
    "instancenorm",
    "l1_loss",
    "l2_loss",
    "layernorm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "lstm_step",
    "lstm_temporal",
    "max_pool",
    "one_hot",
    "relu",
    "rnn_step",
    "rnn_temporal",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy",
    "softmax_loss",
    "svm_loss",
    "tanh",
    "temporal_affine",
    "temporal_softmax_loss",
    "word_embedding",
]


# ------------------------------------------------------------------ affine and activations
@named()
def flatten(x: Any) -> Any:
    """x [N, d1, ..., dk] as [N, d1 * ... * dk].

    >>> layers.flatten(np.zeros((2, 3, 4))).shape
    (2, 12)
    """
    x = x if hasattr(x, "ndim") else np.asarray(x)
    return x if x.ndim == 2 else x.reshape(x.shape[0], math.prod(x.shape[1:]))


@explained()
def affine(x: Any, w: Any, b: Any) -> Any:
    """y = x w + b, with x [N, ...] flattened to [N, D], w [D, M], b [M] -> y [N, M]. Raises ValueError for a matrix b.

    >>> layers.affine(np.ones((2, 3)), np.ones((3, 1)), np.zeros(1))
    array([[3.],
           [3.]])
    """
    if getattr(b, "ndim", 1) > 1 and len(b) > 1:
        raise ValueError(f"a bias is one number for each output, [{w.shape[-1]}]; got {list(b.shape)}")
    return np.dot(flatten(x), w) + b


@named()
def linear(x: Any, w: Any, b: Any = None) -> Any:
    """y = x w + b over the last axis; x [..., D], w [D, M], b [M] -> y [..., M].

    >>> layers.linear(np.ones((2, 3)), np.ones((3, 1)))
    array([[3.],
           [3.]])
    """
    # One matrix product for all leading axes; np.dot of a 3-D array is many small ones.
    y = np.dot(x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), w)
    y = y if b is None else y + b
    return y if x.ndim == 2 else y.reshape((*x.shape[:-1], w.shape[1]))


@named()
def relu(x: Any) -> Any:
    """y = max(x, 0), any shape; the gradient at 0 is 0.

    >>> layers.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return npx.relu(x)


@named()
def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """y = x where x > 0, slope * x elsewhere.

    >>> layers.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    x = np.asarray(x)
    return np.where(x > 0, x, slope * x)


@named()
def sigmoid(x: Any) -> Any:
    """y = 1 / (1 + exp(-x)), without overflow at either end.

    >>> layers.sigmoid(np.array([0.0]))
    array([0.5])
    """
    return npx.sigmoid(x)


@named()
def tanh(x: Any) -> Any:
    """y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    >>> layers.tanh(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.7616])
    """
    return np.tanh(x)


@named()
def gelu(x: Any) -> Any:
    """y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Hendrycks and Gimpel 2016, equation 2 (npx.gelu is exact).

    >>> layers.gelu(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8412])
    """
    return npx.gelu(x, approximate=True)


@named()
def softmax(x: Any, axis: int = -1) -> Any:
    """y_i = exp(x_i) / sum_j exp(x_j) along `axis` of x.

    >>> layers.softmax(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return npx.softmax(x, axis=axis)


@named()
def log_softmax(x: Any, axis: int = -1) -> Any:
    """y_i = x_i - log sum_j exp(x_j) along `axis` of x, without overflow.

    >>> layers.log_softmax(np.zeros((1, 2))).round(4)
    array([[-0.6931, -0.6931]])
    """
    return npx.log_softmax(x, axis=axis)


# ------------------------------------------------------------------ images [N, C, H, W]; signals [N, C, T]; volumes
DATA = {1: "signals [N, C, T]", 2: "images [N, C, H, W]", 3: "volumes [N, C, D, H, W]"}
PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # np.pad's names


def _convolution(name: str, axes: int, formula: str):  # editors find what it returns, and its arguments
    """The convolution of x [N, C, *S] with w [F, C / groups, *K], with S and K of that many axes."""

    def convolve(
        x: Any,
        w: Any,
        b: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
    ) -> Any:
        check_data(name, x, axes)
        size, dilate = w.shape[2:], sizes("dilation", dilation, 1, axes)
        steps = sizes("stride", stride, 1, axes)
        if padding_mode == "zeros" and not isinstance(padding, str):
            pad = sizes("padding", padding, 0, axes)
        else:
            around = paddings(padding, size, dilate, steps)
            if choice("padding_mode", padding_mode, PADDING_MODES) == "zeros" and all(b == a for b, a in around):
                pad = tuple(before for before, _ in around)
            else:
                pad = (0,) * axes
                x = np.pad(x, ((0, 0), (0, 0), *around), mode=PADDING_MODES[padding_mode])
        options = {"kernel": size, "stride": steps, "pad": pad, "dilate": dilate}
        return npx.convolution(x, w, b, num_filter=w.shape[0], num_group=groups, no_bias=b is None, **options)

    return explained(pad="padding", dilate="dilation")(_called(convolve, name, formula))


def _called(function: F, name: str, doc: str) -> F:
    """The function, as if it had been written under this name, with this docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


conv1d = _convolution(
    "conv1d",
    1,
    """y[n, f, i] = b[f] + sum_{c, u} w[f, c, u] x[n, c, i s + u d - p], zero outside x.

    x [N, C, T], w [F, C / groups, K] -> y [N, F, T']: as conv2d, with one axis.

    >>> layers.conv1d(np.ones((1, 2, 8)), np.ones((5, 2, 3)), padding=1).shape
    (1, 5, 8)
    """,
)
conv2d = _convolution(
    "conv2d",
    2,
    """y[n, f, i, j] = b[f] + sum_{c, u, v} w[f, c, u, v] x[n, c, i s + u d - p, j s + v d - p], zero outside x.

    x [N, C, H, W], w [F, C / groups, K, K], b [F] or None -> y [N, F, H', W'], H' = (H + 2 p - d (K - 1) - 1) // s + 1.
    stride s (1), padding p (0) and dilation d (1) are one int for both directions or a pair; padding="same" keeps H and
    W (stride 1; of an odd number of rows one more is added behind), "valid" is 0. padding_mode says what is outside x:
    "zeros", "reflect", "replicate" (the nearest pixel) or "circular".

    >>> layers.conv2d(np.ones((1, 3, 8, 8)), np.ones((5, 3, 3, 3)), stride=2, padding=1).shape
    (1, 5, 4, 4)
    """,
)
conv3d = _convolution(
    "conv3d",
    3,
    """y[n, f, i, j, k] = b[f] + sum_{c, u, v, t} w[f, c, u, v, t] x[n, c, i s + u d - p, j s + v d - p, k s + t d - p].

    x [N, C, D, H, W], w [F, C / groups, K, K, K] -> y [N, F, D', H', W']: as conv2d, with three axes.

    >>> layers.conv3d(np.ones((1, 1, 4, 4, 4)), np.ones((2, 1, 3, 3, 3))).shape
    (1, 2, 2, 2, 2)
    """,
)


def paddings(padding: Any, kernel: Sequence[int], dilation: Sequence[int], stride: Any) -> list[tuple[int, int]]:
    """(before, after) for each axis."""
    if padding == "valid":
        padding = 0
    if not isinstance(padding, str):
        return [(p, p) for p in sizes("padding", padding, 0, len(kernel))]
    if padding != "same":
        raise ValueError(f"padding is a number, one for each axis, 'same' or 'valid'; got {padding!r}")
    if any(s != 1 for s in sizes("stride", stride, 1, len(kernel))):
        raise ValueError(f"padding='same' keeps the size, which needs stride 1; got stride={stride!r}")
    spare = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return [(s // 2, s - s // 2) for s in spare]


def _transposed(name: str, axes: int, formula: str):  # as above
    """The transpose of a convolution of data with that many axes."""

    def convolve_back(
        x: Any,
        w: Any,
        b: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        check_data(name, x, axes)
        options = {
            "stride": sizes("stride", stride, 1, axes),
            "pad": sizes("padding", padding, 0, axes),
            "adj": sizes("output_padding", output_padding, 0, axes),
            "dilate": sizes("dilation", dilation, 1, axes),
        }
        return npx.deconvolution(x, w, b, kernel=w.shape[2:], num_group=groups, no_bias=b is None, **options)

    return explained(pad="padding", adj="output_padding", dilate="dilation")(_called(convolve_back, name, formula))


conv_transpose1d = _transposed(
    "conv_transpose1d",
    1,
    """y[n, f, i s + u d - p] += w[c, f, u] x[n, c, i]; x [N, C, T], w [C, F / groups, K] -> y [N, F, T'].

    b, stride, padding, output_padding, dilation   as in conv_transpose2d, for one axis

    >>> layers.conv_transpose1d(np.ones((1, 2, 5)), np.ones((2, 3, 4)), stride=2, padding=1).shape
    (1, 3, 10)
    """,
)
conv_transpose2d = _transposed(
    "conv_transpose2d",
    2,
    """y[n, f, i s + u d - p, j s + v d - p] += w[c, f, u, v] x[n, c, i, j], then + b[f]: the transpose of conv2d.

    x [N, C, H, W], w [C, F / groups, K, K], b [F] or None -> y [N, F, H', W'],
    H' = (H - 1) s - 2 p + d (K - 1) + 1 + output_padding: what conv2d with the same options takes back to H x W, if
    output_padding < s.

    >>> layers.conv_transpose2d(np.ones((1, 2, 5, 5)), np.ones((2, 3, 4, 4)), stride=2, padding=1).shape
    (1, 3, 10, 10)
    """,
)
conv_transpose3d = _transposed(
    "conv_transpose3d",
    3,
    """y[n, f, i s + u d - p, ...] += w[c, f, u, ...] x[n, c, i, ...]; x [N, C, D, H, W], w [C, F / groups, K, K, K].

    b, stride, padding, output_padding, dilation   as in conv_transpose2d, for three axes -> y [N, F, D', H', W']

    >>> layers.conv_transpose3d(np.ones((1, 1, 2, 2, 2)), np.ones((1, 1, 2, 2, 2)), stride=2).shape
    (1, 1, 4, 4, 4)
    """,
)


@explained(size="kernel_size", pad="padding")
def max_pool(x: Any, kernel_size: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
    """y[n, c, i, j] = max of x[n, c] over the K x K window at (i s - p, j s - p); x [N, C, H, W] -> [N, C, H', W'].

    kernel_size K (2), stride s (K) and padding p (0) are one int for both directions or a pair.

    >>> layers.max_pool(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[3.]]]])
    """
    return pool("pooling", 2, x, kernel_size, stride, padding, "max")


@explained(size="kernel_size", pad="padding")
def avg_pool(x: Any, kernel_size: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
    """y[n, c, i, j] = mean of x[n, c] over the window at (i s - p, j s - p), zeros of the padding counted.

    Shapes and arguments as in max_pool.

    >>> layers.avg_pool(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """
    return pool("pooling", 2, x, kernel_size, stride, padding, "avg")


def pool(who: str, axes: int, x: Any, size: Any, stride: Any, padding: Any, kind: str) -> Any:
    check_data(who, x, axes)
    size = sizes("kernel_size", size, 1, axes)
    stride = size if stride is None else sizes("stride", stride, 1, axes)
    return npx.pooling(x, kernel=size, stride=stride, pad=sizes("padding", padding, 0, axes), pool_type=kind)


def check_data(who: str, x: Any, axes: int) -> None:
    if x.ndim != axes + 2:
        raise ValueError(f"{who} takes {DATA[axes]}; got {list(x.shape)}")


def sizes(name: str, value: Any, least: int, axes: int) -> tuple[int, ...]:
    """One number for all axes, or one for each."""
    if type(value) is int and value >= least:
        return (value,) * axes
    if type(value) is tuple and len(value) == axes:  # what layers give at each call, looked at when they were built
        for size in value:
            if type(size) is not int or size < least:
                break
        else:
            return value
    values = tuple(value) if isinstance(value, list | tuple) else (value,) * axes
    if len(values) != axes:
        raise ValueError(f"{name} is one number or {axes}, one for each axis; got {value!r}")
    return tuple(count(name, v, least) for v in values)


# ------------------------------------------------------------------ normalisation and noise
@explained()
def batchnorm(
    x: Any,
    gamma: Any,
    beta: Any,
    mode: str = "train",
    eps: float = 1e-5,
    momentum: float = 0.9,
    running_mean: Any = None,
    running_var: Any = None,
) -> tuple[Any, Any, Any]:
    """y = gamma (x - mean) / sqrt(var + eps) + beta; returns (y, running_mean, running_var).

    mode   "train" or "test"

    x [N, C] or [N, C, H, W]; gamma, beta, running_* [C]. In "train", mean and var (biased, as in Ioffe and Szegedy
    2015) are the batch's over all axes but C, and running = momentum * running + (1 - momentum) * batch; in "test" they
    are the running ones.

    >>> y, mean, var = layers.batchnorm(np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), eps=0.0)
    >>> y, mean, var
    (array([[-1.],
           [ 1.]]), array([0.2]), array([0.1]))
    """
    zeros = np.zeros(x.shape[1], x.dtype)
    running_mean = zeros if running_mean is None else running_mean
    running_var = zeros if running_var is None else running_var
    training = check_mode(mode, "batchnorm") == "train"
    # npx writes to the averages it is given, which a function of its arguments does not: hence the copies.
    kept = np.array(running_mean), np.array(running_var)
    y = npx.batch_norm(x, gamma, beta, *kept, eps=eps, momentum=momentum, fix_gamma=False, training=training)
    return y, *kept


@explained()
def layernorm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    """y = gamma (x - mean) / sqrt(var + eps) + beta, mean and var over the last axis; x [..., D], gamma, beta [D].

    gamma and beta of several axes: mean and var over as many. eps is 1e-5.

    >>> layers.layernorm(np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), eps=0.0)
    array([[-1.,  1.]])
    """
    return npx.layer_norm(x, gamma, beta, axis=tuple(range(-np.ndim(gamma), 0)), eps=eps)


@explained()
def groupnorm(x: Any, gamma: Any, beta: Any, num_groups: int, eps: float = 1e-5) -> Any:
    """y = gamma (x - mean) / sqrt(var + eps) + beta, mean and var over each group of C / num_groups channels of x[n].

    x [N, C, ...], gamma, beta [C] -> y [N, C, ...] (Wu and He 2018, equation 7). One group is layer normalisation over
    all but N.

    >>> layers.groupnorm(np.ones((2, 4, 5)), np.ones(4), np.zeros(4), 2).shape
    (2, 4, 5)
    """
    return npx.group_norm(x, gamma, beta, num_groups=num_groups, eps=eps)


@explained()
def instancenorm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    """y = gamma (x - mean) / sqrt(var + eps) + beta, mean and var over the pixels of each x[n, c]; x [N, C, ...].

    gamma, beta [C] -> y [N, C, ...] (Ulyanov et al. 2016, equation 4).

    >>> layers.instancenorm(np.array([[[1.0, 3.0]]]), np.ones(1), np.zeros(1), eps=0.0)
    array([[[-1.,  1.]]])
    """
    return npx.instance_norm(x, gamma, beta, eps=eps)


@explained(p="prob")
def dropout(x: Any, prob: float, mode: str = "train", seed: int | None = None) -> Any:
    """y = x m / (1 - prob), m = 1 with probability 1 - prob, else 0 ("train"); y = x ("test").

    mode   "train" or "test"

    Scaling in training keeps the mean of y equal to x, so testing changes nothing. The mask comes from np.random;
    `seed` seeds it first, for a gradient check.

    >>> layers.dropout(np.ones(3), 0.5, mode="test")
    array([1., 1., 1.])
    """
    check_prob(prob)
    if check_mode(mode, "dropout") == "test" or prob == 0.0:
        return x
    if seed is not None:
        np.random.seed(seed)
    x, keep = np.asarray(x), 1.0 - prob
    mask = (np.random.random(x.shape) < keep) / keep
    # Of integers the scaled mask would be cut to integers too.
    return x * (mask.astype(x.dtype) if x.dtype.kind in "fc" else mask)


def check_prob(prob: float) -> float:
    if not 0.0 <= prob < 1.0:
        raise ValueError(f"dropout drops each element with probability prob in [0, 1), got prob={prob}")
    return prob


def check_mode(mode: str | None, who: str) -> str:
    if mode not in ("train", "test"):
        raise ValueError(f"{who} differs between training and testing: mode must be 'train' or 'test', got {mode!r}")
    return mode


# ------------------------------------------------------------------ sequences, always [N, T, D]
@explained()
def temporal_affine(x: Any, w: Any, b: Any) -> Any:
    """y[n, t] = x[n, t] w + b; x [N, T, D], w [D, M], b [M] -> y [N, T, M].

    >>> layers.temporal_affine(np.ones((2, 5, 3)), np.ones((3, 4)), np.zeros(4)).shape
    (2, 5, 4)
    """
    n, t, d = x.shape
    return np.dot(x.reshape(n * t, d), w).reshape(n, t, w.shape[1]) + b


@explained()
def word_embedding(x: Any, w: Any) -> Any:
    """y[n, t] = w[x[n, t]]; x [N, T] integers in [0, V), w [V, D] -> y [N, T, D].

    IndexError for an integer outside; inside jit and on a device a negative one counts from the end, as in NumPy.

    >>> layers.word_embedding(np.array([[0, 2]]), np.arange(6.0).reshape(3, 2))
    array([[[0., 1.],
            [4., 5.]]])
    """
    rows(x, w)
    return w[x]


@explained()
def rnn_step(x: Any, prev_h: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    """h' = tanh(x Wx + h Wh + b); x [N, D], h [N, H], Wx [D, H], Wh [H, H], b [H] -> h' [N, H].

    prev_h   h, of the step before

    >>> layers.rnn_step(np.ones((2, 3)), np.zeros((2, 4)), np.ones((3, 4)), np.ones((4, 4)), np.zeros(4)).shape
    (2, 4)
    """
    return np.tanh(np.dot(x, Wx) + np.dot(prev_h, Wh) + b)


def lstm_over_time(x: Any, h0: Any, c0: Any, Wx: Any, Wh: Any, b: Any) -> tuple[Any, Any, Any]:
    """(h [N, T, H] at every step, the last h, the last c) of an LSTM as in lstm_step."""
    n = h0.shape[1]
    if x.shape[1] == 0:
        return np.zeros((x.shape[0], 0, n), h0.dtype), h0, c0
    # The kernel wants weights transposed, and the gates in the order i, f, g, o.
    order = slice(0, 2 * n), slice(3 * n, 4 * n), slice(2 * n, 3 * n)
    wx, wh, bias = (np.concatenate([a[..., part] for part in order], axis=-1) for a in (Wx, Wh, b))
    hs, h, c = npx.lstm(np.swapaxes(x, 0, 1), h0, c0, wx.T, wh.T, bias)
    return np.swapaxes(hs, 0, 1), h, c


def over_time(run: Callable, x: Any, h0: Any) -> Any:
    """run(x with time first [T, N, D]) -> [T, N, H], as [N, T, H]; no steps give no states."""
    if x.shape[1] == 0:
        return np.zeros((x.shape[0], 0, h0.shape[1]), h0.dtype)
    return np.swapaxes(run(np.swapaxes(x, 0, 1)), 0, 1)


@explained()
def rnn_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    """h[:, t] = rnn_step(x[:, t], h[:, t - 1]) from h0; x [N, T, D] -> h [N, T, H].

    Wx, Wh, b   as in rnn_step

    >>> x, h0 = np.ones((2, 5, 3)), np.zeros((2, 4))
    >>> layers.rnn_temporal(x, h0, np.ones((3, 4)), np.ones((4, 4)), np.zeros(4)).shape
    (2, 5, 4)
    """
    return over_time(lambda x: npx.simple_rnn(x, h0, Wx.T, Wh.T, b)[0], x, h0)


@explained()
def lstm_step(x: Any, prev_h: Any, prev_c: Any, Wx: Any, Wh: Any, b: Any) -> tuple[Any, Any]:
    """a = x Wx + h Wh + b;  i, f, o = sigmoid(a1, a2, a3), g = tanh(a4);  c' = f c + i g, h' = o tanh(c').

    x           [N, D]; prev_h, prev_c: h and c of the step before [N, H]
    Wx, Wh, b   [D, 4H], [H, 4H] and [4H]; a is split in four gates [N, H]. Returns (h', c')

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers 2000; the order of gates is CS231n's.

    >>> h = c = np.zeros((2, 4))
    >>> h, c = layers.lstm_step(np.ones((2, 3)), h, c, np.ones((3, 16)), np.ones((4, 16)), np.zeros(16))
    >>> h.shape
    (2, 4)
    """
    return npx.lstm_cell(np.dot(x, Wx) + np.dot(prev_h, Wh) + b, prev_c)


@explained()
def lstm_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any, c0: Any = None) -> Any:
    """h[:, t], c = lstm_step(x[:, t], h[:, t - 1], c) from h0 and c0 (0); x [N, T, D] -> h [N, T, H].

    Wx, Wh, b   as in lstm_step

    >>> x, h0 = np.ones((2, 5, 3)), np.zeros((2, 4))
    >>> layers.lstm_temporal(x, h0, np.ones((3, 16)), np.ones((4, 16)), np.zeros(16)).shape
    (2, 5, 4)
    """
    c0 = np.zeros(h0.shape, h0.dtype) if c0 is None else c0
    return lstm_over_time(x, h0, c0, Wx, Wh, b)[0]


@explained()
def gru_step(x: Any, prev_h: Any, Wx: Any, Wh: Any, b: Any, Wxh: Any, Whh: Any, bh: Any) -> Any:
    """r, z = sigmoid(x Wx + h Wh + b) split in two; m = tanh(x Wxh + (r h) Whh + bh); h' = z h + (1 - z) m.

    prev_h   h [N, H], of the step before

    x [N, D], h [N, H], Wx [D, 2H], Wh [H, 2H], b [2H], Wxh [D, H], Whh [H, H], bh [H] -> h' [N, H].
    Cho et al. 2014, as written in Jozefowicz, Zaremba and Sutskever 2015.

    >>> gates = np.ones((3, 8)), np.ones((4, 8)), np.zeros(8)
    >>> candidate = np.ones((3, 4)), np.ones((4, 4)), np.zeros(4)
    >>> layers.gru_step(np.ones((2, 3)), np.zeros((2, 4)), *gates, *candidate).shape
    (2, 4)
    """
    return gru_gates(np.dot(x, Wx) + b, np.dot(x, Wxh) + bh, prev_h, Wh, Whh)


def gru_gates(gates: Any, candidate: Any, h: Any, Wh: Any, Whh: Any) -> Any:
    """h' from the inputs' share of the gates [N, 2H] and of the candidate [N, H]."""
    size = h.shape[1]
    rz = npx.sigmoid(gates + np.dot(h, Wh))
    r, z = rz[:, :size], rz[:, size:]
    m = np.tanh(candidate + np.dot(r * h, Whh))
    return m + z * (h - m)


@explained()
def gru_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any, Wxh: Any, Whh: Any, bh: Any) -> Any:
    """h[:, t] = gru_step(x[:, t], h[:, t - 1]) from h0; x [N, T, D] -> h [N, T, H].

    Wx, Wh, b, Wxh, Whh, bh   as in gru_step

    >>> gates = np.ones((3, 8)), np.ones((4, 8)), np.zeros(8)
    >>> candidate = np.ones((3, 4)), np.ones((4, 4)), np.zeros(4)
    >>> layers.gru_temporal(np.ones((2, 5, 3)), np.zeros((2, 4)), *gates, *candidate).shape
    (2, 5, 4)
    """

    def run(x: Any) -> Any:
        h, hs = h0, []
        for gates, candidate in zip(temporal_affine(x, Wx, b), temporal_affine(x, Wxh, bh)):
            h = gru_gates(gates, candidate, h, Wh, Whh)
            hs.append(h)
        return np.stack(hs)

    return over_time(run, x, h0)


@explained()
def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """y = softmax(q k^T / sqrt(D)) v; q [..., T, D], k [..., S, D], v [..., S, E] -> y [..., T, E].

    mask, broadcast to [..., T, S]: True where attention is allowed; y = 0 where it never is (Vaswani 2017, eq. 1).

    >>> q = np.ones((1, 2, 4))
    >>> layers.attention(q, q, q).shape
    (1, 2, 4)
    """
    return npx.attention(q, k, v, mask)
