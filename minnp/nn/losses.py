"""Losses: scores [N, C] and targets in, one number out, averaged over the N examples.

Labels are integers [N] in [0, C) (a column [N, 1] of them will do), or one-hot (or soft) rows [N, C].
"""

from __future__ import annotations

from typing import Any

import minnp.numpy as np
from minnp import npx

from .checks import explained

NAMES = (
    "softmax_loss",
    "softmax_cross_entropy",
    "svm_loss",
    "l2_loss",
    "l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "temporal_softmax_loss",
)
__all__ = [*NAMES, "one_hot"]


@explained()
def one_hot(labels: Any, classes: int, dtype: Any = np.float32) -> Any:
    """y[n, c] = 1 where labels[n] == c, else 0; labels [...] integers -> [..., classes].

    A label outside [0, classes) gives a row of zeros.
    """
    return (np.expand_dims(labels, -1) == np.arange(classes)).astype(dtype)


def picked(x: Any, labels: Any) -> Any:
    """x[n, labels[n]] for x [N, C], labels [N] or [N, 1] -> [N]; IndexError for a label that is none of 0 .. C - 1."""
    labels = np.asarray(labels)
    if labels.shape == (x.shape[0], 1):
        labels = labels[:, 0]
    if labels.shape != x.shape[:1]:
        raise ValueError(f"scores {list(x.shape)} have labels [{x.shape[0]}]; got {labels.dtype}{list(labels.shape)}")
    # MXNet's iterators and many CSV files hold labels as floats.
    index = labels if labels.dtype.kind in "iu" else labels.astype(np.int64)
    wrong = index < 0 if labels.dtype.kind in "iu" else (index < 0) | (index != labels)
    # Not a branch, which vmap could not take: what NumPy would count from the end becomes an index past it.
    return x[np.arange(x.shape[0]), np.where(wrong, x.shape[1], index)]


def are_rows(x: Any, y: Any) -> bool:
    """Are the labels y rows of weights [N, C], like the scores or probabilities x?"""
    if x.shape[1] == 1:
        raise ValueError("the softmax of one score is always 1: give each class a score, or use binary_cross_entropy")
    return y.shape == x.shape


@explained()
def softmax_loss(x: Any, y: Any) -> Any:
    """loss = -1/N sum_n log softmax(x[n])[y[n]]; scores x [N, C], labels y [N] or one-hot [N, C].

    Scores [N, T, C] with labels [N, T] count as N T examples.
    """
    logp, y = npx.log_softmax(x, axis=-1), np.asarray(y)
    if logp.ndim > 2 and y.shape == logp.shape[:-1]:
        logp, y = logp.reshape(-1, logp.shape[-1]), y.reshape(-1)
    return -np.sum(logp * y) / logp.shape[0] if are_rows(logp, y) else -np.mean(picked(logp, y))


@explained()
def softmax_cross_entropy(prob: Any, label: Any) -> Any:
    """loss = -1/N sum_n log prob[n, label[n]]; prob [N, C] are probabilities already (see softmax_loss for scores)."""
    label = np.asarray(label)
    if are_rows(prob, label):
        return -np.sum(np.log(prob) * label) / prob.shape[0]
    return -np.mean(np.log(picked(prob, label)))


@explained()
def svm_loss(x: Any, y: Any) -> Any:
    """loss = 1/N sum_n sum_{c != y[n]} max(0, x[n, c] - x[n, y[n]] + 1): the multi-class hinge; x [N, C], y [N]."""
    margins = npx.relu(x - np.expand_dims(picked(x, y), 1) + 1.0)
    # The right class adds max(0, 1) = 1 to every row.
    return np.sum(margins) / x.shape[0] - 1.0


@explained()
def l2_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|^2; x [N, ...], label alike, [N] numbers, or [N] integer classes."""
    return np.sum((x - targets(x, label)) ** 2) / x.shape[0]


@explained()
def l1_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|_1; shapes as in l2_loss."""
    return np.sum(np.abs(x - targets(x, label))) / x.shape[0]


@explained()
def huber_loss(x: Any, label: Any, delta: float = 1.0) -> Any:
    """loss = 1/N sum of r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) elsewhere, r = x - label (Huber 1964)."""
    r = np.abs(x - targets(x, label))
    return np.sum(np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))) / x.shape[0]


@explained()
def binary_cross_entropy(x: Any, y: Any) -> Any:
    """loss = mean of log(1 + exp(x)) - x y: scores x (logits) and targets y in [0, 1], alike (or [N] for [N, 1])."""
    return np.mean(np.logaddexp(0.0, x) - x * targets(x, y))


@explained()
def temporal_softmax_loss(x: Any, y: Any, mask: Any) -> Any:
    """loss = -1/N sum_{n, t} mask[n, t] log softmax(x[n, t])[y[n, t]]; scores x [N, T, V], labels y and mask [N, T]."""
    n, t, v = x.shape
    logp = picked(npx.log_softmax(x.reshape(n * t, v), axis=-1), y.reshape(n * t))
    return -np.sum(logp * mask.reshape(n * t)) / n


def targets(x: Any, label: Any) -> Any:
    """label in the shape of x: one-hot rows for integer classes, a column for [N] numbers."""
    label = np.asarray(label)
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
