"""Layers as plain functions: arrays in, arrays out, parameters passed by hand.

Each docstring is the layer's formula with shapes: N examples, D inputs, M outputs, C channels, H x W pixels, T time
steps. Names and argument orders are MinPy's (which took them from CS231n). `mode` is "train" or "test".
Losses live in minnp.nn.losses and can be used from here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import minnp.numpy as np
from minnp import npx

from .checks import count, explained
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
    "conv2d",
    "dropout",
    "flatten",
    "gelu",
    "gru_step",
    "gru_temporal",
    "huber_loss",
    "l1_loss",
    "l2_loss",
    "layernorm",
    "leaky_relu",
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
def flatten(x: Any) -> Any:
    """x [N, d1, ..., dk] as [N, d1 * ... * dk]."""
    x = x if hasattr(x, "ndim") else np.asarray(x)
    return x if x.ndim == 2 else x.reshape(x.shape[0], math.prod(x.shape[1:]))


@explained
def affine(x: Any, w: Any, b: Any) -> Any:
    """y = x w + b, with x [N, ...] flattened to [N, D], w [D, M], b [M] -> y [N, M]."""
    return np.dot(flatten(x), w) + b


def linear(x: Any, w: Any, b: Any = None) -> Any:
    """y = x w + b over the last axis; x [..., D], w [D, M], b [M] -> y [..., M]."""
    # One matrix product for all leading axes; np.dot of a 3-D array is many small ones.
    y = np.dot(x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), w)
    y = y if b is None else y + b
    return y if x.ndim == 2 else y.reshape((*x.shape[:-1], w.shape[1]))


def relu(x: Any) -> Any:
    """y = max(x, 0), any shape; the gradient at 0 is 0."""
    return npx.relu(x)


def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """y = x where x > 0, slope * x elsewhere."""
    x = np.asarray(x)
    return np.where(x > 0, x, slope * x)


def sigmoid(x: Any) -> Any:
    """y = 1 / (1 + exp(-x)), without overflow at either end."""
    return npx.sigmoid(x)


def tanh(x: Any) -> Any:
    """y = (exp(x) - exp(-x)) / (exp(x) + exp(-x))."""
    return np.tanh(x)


def gelu(x: Any) -> Any:
    """y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Hendrycks and Gimpel 2016, equation 2 (npx.gelu is exact)."""
    return npx.gelu(x, approximate=True)


def softmax(x: Any, axis: int = -1) -> Any:
    """y_i = exp(x_i) / sum_j exp(x_j) along `axis`."""
    return npx.softmax(x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """y_i = x_i - log sum_j exp(x_j) along `axis`, without overflow."""
    return npx.log_softmax(x, axis=axis)


# ------------------------------------------------------------------ images, always [N, C, H, W]
@explained
def conv2d(x: Any, w: Any, b: Any = None, stride: Any = 1, pad: Any = 0, dilate: Any = 1, groups: int = 1) -> Any:
    """y[n, f, i, j] = b[f] + sum_{c, u, v} w[f, c, u, v] x[n, c, i s + u d - p, j s + v d - p], zero outside x.

    x [N, C, H, W], w [F, C / groups, K, K], b [F] or None -> y [N, F, H', W'], H' = (H + 2 p - d (K - 1) - 1) // s + 1.
    stride, pad and dilate are one int for both directions or a pair.
    """
    if x.ndim != 4:
        raise ValueError(f"conv2d takes images [N, C, H, W]; got {list(x.shape)}")
    options = {
        "kernel": w.shape[2:],
        "stride": pair("stride", stride, 1),
        "pad": pair("pad", pad, 0),
        "dilate": pair("dilate", dilate, 1),
    }
    return npx.convolution(x, w, b, num_filter=w.shape[0], num_group=groups, no_bias=b is None, **options)


@explained
def max_pool(x: Any, size: Any = 2, stride: Any = None, pad: Any = 0) -> Any:
    """y[n, c, i, j] = max of x[n, c] over the size x size window at (i s - p, j s - p); stride is `size` by default."""
    return pool(x, size, stride, pad, "max")


@explained
def avg_pool(x: Any, size: Any = 2, stride: Any = None, pad: Any = 0) -> Any:
    """y[n, c, i, j] = mean of x[n, c] over the window at (i s - p, j s - p), zeros of the padding counted."""
    return pool(x, size, stride, pad, "avg")


def pool(x: Any, size: Any, stride: Any, pad: Any, kind: str) -> Any:
    if x.ndim != 4:
        raise ValueError(f"pooling takes images [N, C, H, W]; got {list(x.shape)}")
    size = pair("size", size, 1)
    stride = size if stride is None else pair("stride", stride, 1)
    return npx.pooling(x, kernel=size, stride=stride, pad=pair("pad", pad, 0), pool_type=kind)


def pair(name: str, value: Any, least: int) -> tuple[int, int]:
    """One number for both directions, or one for each."""
    vertical, horizontal = value if isinstance(value, list | tuple) else (value, value)
    return count(name, vertical, least), count(name, horizontal, least)


# ------------------------------------------------------------------ normalisation and noise
@explained
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

    x [N, C] or [N, C, H, W]; gamma, beta, running_* [C]. In "train", mean and var (biased, as in Ioffe and Szegedy
    2015) are the batch's over all axes but C, and running = momentum * running + (1 - momentum) * batch; in "test" they
    are the running ones.
    """
    zeros = np.zeros(x.shape[1], x.dtype)
    running_mean = zeros if running_mean is None else running_mean
    running_var = zeros if running_var is None else running_var
    training = check_mode(mode, "batchnorm") == "train"
    # npx writes to the averages it is given, which a function of its arguments does not: hence the copies.
    kept = np.array(running_mean), np.array(running_var)
    y = npx.batch_norm(x, gamma, beta, *kept, eps=eps, momentum=momentum, fix_gamma=False, training=training)
    return y, *kept


@explained
def layernorm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    """y = gamma (x - mean) / sqrt(var + eps) + beta, mean and var over the last axis; x [..., D], gamma, beta [D]."""
    return npx.layer_norm(x, gamma, beta, eps=eps)


@explained
def dropout(x: Any, prob: float, mode: str = "train", seed: int | None = None) -> Any:
    """y = x m / (1 - prob), m = 1 with probability 1 - prob, else 0 ("train"); y = x ("test").

    Scaling in training keeps the mean of y equal to x, so testing changes nothing. The mask comes from np.random;
    `seed` seeds it first, for a gradient check.
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
@explained
def temporal_affine(x: Any, w: Any, b: Any) -> Any:
    """y[n, t] = x[n, t] w + b; x [N, T, D], w [D, M], b [M] -> y [N, T, M]."""
    n, t, d = x.shape
    return np.dot(x.reshape(n * t, d), w).reshape(n, t, w.shape[1]) + b


@explained
def word_embedding(x: Any, w: Any) -> Any:
    """y[n, t] = w[x[n, t]]; x [N, T] integers in [0, V), w [V, D] -> y [N, T, D]."""
    return w[x]


@explained
def rnn_step(x: Any, prev_h: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    """h' = tanh(x Wx + h Wh + b); x [N, D], h [N, H], Wx [D, H], Wh [H, H], b [H] -> h' [N, H]."""
    return np.tanh(np.dot(x, Wx) + np.dot(prev_h, Wh) + b)


def over_time(run: Callable, x: Any, h0: Any) -> Any:
    """run(x with time first [T, N, D]) -> [T, N, H], as [N, T, H]; no steps give no states."""
    if x.shape[1] == 0:
        return np.zeros((x.shape[0], 0, h0.shape[1]), h0.dtype)
    return np.swapaxes(run(np.swapaxes(x, 0, 1)), 0, 1)


@explained
def rnn_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    """h[:, t] = rnn_step(x[:, t], h[:, t - 1]) from h0; x [N, T, D] -> h [N, T, H]."""
    return over_time(lambda x: npx.simple_rnn(x, h0, Wx.T, Wh.T, b)[0], x, h0)


@explained
def lstm_step(x: Any, prev_h: Any, prev_c: Any, Wx: Any, Wh: Any, b: Any) -> tuple[Any, Any]:
    """a = x Wx + h Wh + b, split in four [N, H] gates: i, f, o = sigmoid(a1, a2, a3), g = tanh(a4);
    c' = f c + i g, h' = o tanh(c'); x [N, D], h, c [N, H], Wx [D, 4H], Wh [H, 4H], b [4H] -> (h', c').

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers 2000; the order of gates is CS231n's.
    """
    return npx.lstm_cell(np.dot(x, Wx) + np.dot(prev_h, Wh) + b, prev_c)


@explained
def lstm_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    """h[:, t], c = lstm_step(x[:, t], h[:, t - 1], c) from h0 and c = 0; x [N, T, D] -> h [N, T, H]."""
    n = h0.shape[1]
    # The kernel wants weights transposed, and the gates in the order i, f, g, o.
    order = slice(0, 2 * n), slice(3 * n, 4 * n), slice(2 * n, 3 * n)
    wx, wh, bias = (np.concatenate([a[..., part] for part in order], axis=-1) for a in (Wx, Wh, b))
    return over_time(lambda x: npx.lstm(x, h0, np.zeros(h0.shape, h0.dtype), wx.T, wh.T, bias)[0], x, h0)


@explained
def gru_step(x: Any, prev_h: Any, Wx: Any, Wh: Any, b: Any, Wxh: Any, Whh: Any, bh: Any) -> Any:
    """r, z = sigmoid(x Wx + h Wh + b) split in two; m = tanh(x Wxh + (r h) Whh + bh); h' = z h + (1 - z) m.

    x [N, D], h [N, H], Wx [D, 2H], Wh [H, 2H], b [2H], Wxh [D, H], Whh [H, H], bh [H] -> h' [N, H].
    Cho et al. 2014, as written in Jozefowicz, Zaremba and Sutskever 2015.
    """
    return gru_gates(np.dot(x, Wx) + b, np.dot(x, Wxh) + bh, prev_h, Wh, Whh)


def gru_gates(gates: Any, candidate: Any, h: Any, Wh: Any, Whh: Any) -> Any:
    """h' from the inputs' share of the gates [N, 2H] and of the candidate [N, H]."""
    size = h.shape[1]
    rz = npx.sigmoid(gates + np.dot(h, Wh))
    r, z = rz[:, :size], rz[:, size:]
    m = np.tanh(candidate + np.dot(r * h, Whh))
    return m + z * (h - m)


@explained
def gru_temporal(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any, Wxh: Any, Whh: Any, bh: Any) -> Any:
    """h[:, t] = gru_step(x[:, t], h[:, t - 1]) from h0; x [N, T, D] -> h [N, T, H]."""

    def run(x: Any) -> Any:
        h, hs = h0, []
        for gates, candidate in zip(temporal_affine(x, Wx, b), temporal_affine(x, Wxh, bh)):
            h = gru_gates(gates, candidate, h, Wh, Whh)
            hs.append(h)
        return np.stack(hs)

    return over_time(run, x, h0)


@explained
def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """y = softmax(q k^T / sqrt(D)) v; q [..., T, D], k [..., S, D], v [..., S, E] -> y [..., T, E].

    mask, broadcast to [..., T, S]: True where attention is allowed; y = 0 where it never is (Vaswani 2017, eq. 1).
    """
    return npx.attention(q, k, v, mask)
