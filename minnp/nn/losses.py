"""Losses: scores [N, C] and targets in, one number out, averaged over the N examples.

Labels are integers [N] in [0, C), or one-hot (or soft) rows [N, C].
"""

from __future__ import annotations

from typing import Any

import minnp.numpy as np
from minnp import npx


def one_hot(labels: Any, classes: int, dtype: Any = np.float32) -> Any:
    """y[n, c] = 1 where labels[n] == c, else 0; labels [...] integers -> [..., classes]."""
    return (np.expand_dims(labels, -1) == np.arange(classes)).astype(dtype)


def picked(x: Any, labels: Any) -> Any:
    """x[n, labels[n]] for x [N, C], labels [N] -> [N]."""
    labels = np.asarray(labels)
    # MXNet's iterators and many CSV files hold labels as floats.
    return x[np.arange(x.shape[0]), labels if labels.dtype.kind in "iu" else labels.astype(np.int64)]


def softmax_loss(x: Any, y: Any) -> Any:
    """loss = -1/N sum_n log softmax(x[n])[y[n]]; scores x [N, C], labels y [N] or one-hot [N, C]."""
    logp = npx.log_softmax(x, axis=-1)
    return -np.mean(picked(logp, y)) if y.ndim == 1 else -np.sum(logp * y) / x.shape[0]


def softmax_cross_entropy(prob: Any, label: Any) -> Any:
    """loss = -1/N sum_n log prob[n, label[n]]; prob [N, C] are probabilities already (see softmax_loss for scores)."""
    if label.ndim == 1:
        return -np.mean(np.log(picked(prob, label)))
    return -np.sum(np.log(prob) * label) / prob.shape[0]


def svm_loss(x: Any, y: Any) -> Any:
    """loss = 1/N sum_n sum_{c != y[n]} max(0, x[n, c] - x[n, y[n]] + 1): the multi-class hinge; x [N, C], y [N]."""
    margins = npx.relu(x - np.expand_dims(picked(x, y), 1) + 1.0)
    # The right class adds max(0, 1) = 1 to every row.
    return np.sum(margins) / x.shape[0] - 1.0


def l2_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|^2; x [N, ...], label alike, [N] numbers, or [N] integer classes."""
    return np.sum((x - targets(x, label)) ** 2) / x.shape[0]


def l1_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|_1; shapes as in l2_loss."""
    return np.sum(np.abs(x - targets(x, label))) / x.shape[0]


def huber_loss(x: Any, label: Any, delta: float = 1.0) -> Any:
    """loss = 1/N sum of r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) elsewhere, r = x - label (Huber 1964)."""
    r = np.abs(x - targets(x, label))
    return np.sum(np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))) / x.shape[0]


def binary_cross_entropy(x: Any, y: Any) -> Any:
    """loss = mean of log(1 + exp(x)) - x y: scores x (logits) and targets y in [0, 1], same shape."""
    return np.mean(np.logaddexp(0.0, x) - x * y)


def temporal_softmax_loss(x: Any, y: Any, mask: Any) -> Any:
    """loss = -1/N sum_{n, t} mask[n, t] log softmax(x[n, t])[y[n, t]]; scores x [N, T, V], labels y and mask [N, T]."""
    n, t, v = x.shape
    logp = picked(npx.log_softmax(x.reshape(n * t, v), axis=-1), y.reshape(n * t))
    return -np.sum(logp * mask.reshape(n * t)) / n


def targets(x: Any, label: Any) -> Any:
    """label in the shape of x: one-hot rows for integer classes, a column for [N] numbers."""
    if label.shape == x.shape:
        return label
    if label.ndim == 1 and x.ndim == 2 and label.shape[0] == x.shape[0]:
        if x.shape[1] == 1:
            return label.reshape(-1, 1)
        if np.asarray(label).dtype.kind in "iu":
            return one_hot(label, x.shape[1], x.dtype)
    raise ValueError(
        f"a loss compares outputs {list(x.shape)} with targets of the same shape, [N] numbers for [N, 1], "
        f"or [N] integer classes; got {label.dtype}{list(label.shape)}"
    )
