"""Losses: scores [N, C] and targets in, one number out, averaged over the N examples.

Labels are integers [N] in [0, C) (a column [N, 1] of them will do), or one-hot (or soft) rows [N, C].

weight, where a loss has it, is a number for each class, [C] or {class: number} (1 for those not named): the average is
then weighted, sum_n weight[y[n]] loss_n / sum_n weight[y[n]], so that a class seldom seen can count as much as another.
Soft rows are weighted class by class, -1/N sum_n sum_c weight[c] y[n, c] log p[n, c]. Both are torch's.
"""

from __future__ import annotations

from typing import Any

import numpy

import minnp.numpy as np
from minnp import npx
from minnp.distributed import share

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

    dtype   of the result

    A label outside [0, classes) gives a row of zeros.

    >>> layers.one_hot(np.array([1, 0]), 3)
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    return (np.expand_dims(labels, -1) == np.arange(classes)).astype(dtype)


def picked(x: Any, labels: Any) -> Any:
    """x[n, labels[n]] for x [N, C], labels [N] or [N, 1] -> [N]; IndexError for a label that is none of 0 .. C - 1."""
    try:
        return x[np.arange(x.shape[0]), classes_of(x, labels)]
    except IndexError as error:
        n = x.shape[1]
        said = f"a label is a class, 0 to {n - 1}, and one that is negative or no whole number counts as {n}"
        raise IndexError(f"{error}: {said}") from None


def classes_of(x: Any, labels: Any) -> Any:
    """The labels as an index [N] of columns of x [N, C]: what is no class becomes one past the last."""
    labels = np.asarray(labels)
    if labels.shape == (x.shape[0], 1):
        labels = labels[:, 0]
    if labels.shape != x.shape[:1]:
        raise ValueError(f"scores {list(x.shape)} have labels [{x.shape[0]}]; got {labels.dtype}{list(labels.shape)}")
    if labels.dtype.kind not in "biuf":
        way_out = "np.unique(y, return_inverse=True)[1] numbers them"
        raise TypeError(f"labels are the numbers of classes, 0 to {x.shape[1] - 1}; got {labels.dtype}: {way_out}")
    # MXNet's iterators and many CSV files hold labels as floats.
    index = labels if labels.dtype.kind in "iu" else labels.astype(np.int64)
    wrong = index < 0 if labels.dtype.kind in "iu" else (index < 0) | (index != labels)
    # Not a branch, which vmap could not take: what NumPy would count from the end becomes an index past it.
    return np.where(wrong, x.shape[1], index)


def weights(weight: Any, classes: int, dtype: Any) -> Any:
    """weight as an array [C]."""
    if isinstance(weight, dict):
        unknown = [c for c in weight if c not in range(classes)]
        if unknown:
            raise ValueError(f"weight has a number for class {unknown[0]!r}; the classes are 0 to {classes - 1}")
        weight = [weight.get(c, 1.0) for c in range(classes)]
    weight = np.asarray(weight)
    if weight.shape != (classes,):
        got = f"an array {list(weight.shape)}" if weight.ndim else repr(weight.item())
        raise ValueError(f"weight is a number for each of {classes} classes; got {got}")
    return weight.astype(dtype)


def averaged(each: Any, x: Any, labels: Any, weight: Any) -> Any:
    """The average of the losses each [N] of scores x [N, C], weighted by the labels' classes."""
    if weight is None:
        return np.mean(each)
    by_class = weights(weight, x.shape[1], x.dtype)[classes_of(x, labels)]
    return np.sum(by_class * each) / divisor(np.sum(by_class))


def divisor(total: Any) -> Any:
    """What a loss is divided by where that is not its number of examples: of a share of a batch, its weight in it."""
    if (part := share()) is not None:
        part.weight = np.stop_gradient(total)
    return total


def of_rows(logp: Any, y: Any, weight: Any) -> Any:
    """-1/N sum_n sum_c weight[c] y[n, c] logp[n, c]."""
    y = y if weight is None else y * weights(weight, logp.shape[1], logp.dtype)
    return -np.sum(logp * y) / logp.shape[0]


def are_rows(x: Any, y: Any) -> bool:
    """Are the labels y rows of weights [N, C], like the scores or probabilities x?"""
    if x.ndim < 2:
        raise ValueError(f"scores are [N, C], a row for each example; got {list(x.shape)}")
    if x.shape[1] == 1:
        raise ValueError("the softmax of one score is always 1: give each class a score, or use binary_cross_entropy")
    return y.shape == x.shape


@explained()
def softmax_loss(x: Any, y: Any, weight: Any = None) -> Any:
    """loss = -1/N sum_n log softmax(x[n])[y[n]]; scores x [N, C], labels y [N] or one-hot [N, C].

    Scores [N, T, C] with labels [N, T] count as N T examples. weight: a number for each class (see above).

    >>> float(layers.softmax_loss(np.zeros((2, 4)), np.array([1, 3])).round(4))
    1.3863
    """
    logp, y = npx.log_softmax(x, axis=-1), np.asarray(y)
    if logp.ndim > 2 and y.shape == logp.shape[:-1]:
        logp, y = logp.reshape(-1, logp.shape[-1]), y.reshape(-1)
    return of_rows(logp, y, weight) if are_rows(logp, y) else averaged(-picked(logp, y), logp, y, weight)


@explained()
def softmax_cross_entropy(prob: Any, label: Any, weight: Any = None) -> Any:
    """loss = -1/N sum_n log prob[n, label[n]]; prob [N, C] are probabilities already (see softmax_loss for scores).

    weight: a number for each class (see above).

    >>> float(layers.softmax_cross_entropy(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])).round(4))
    0.6931
    """
    label = np.asarray(label)
    if are_rows(prob, label):
        return of_rows(np.log(prob), label, weight)
    return averaged(-np.log(picked(prob, label)), prob, label, weight)


@explained()
def svm_loss(x: Any, y: Any, weight: Any = None) -> Any:
    """loss = 1/N sum_n sum_{c != y[n]} max(0, x[n, c] - x[n, y[n]] + 1): the multi-class hinge; x [N, C], y [N].

    weight: a number for each class (see above).

    >>> float(layers.svm_loss(np.array([[2.0, 0.5, 3.0]]), np.array([0])))
    2.0
    """
    margins = npx.relu(x - np.expand_dims(picked(x, y), 1) + 1.0)
    # The right class adds max(0, 1) = 1 to every row.
    if weight is None:
        return np.sum(margins) / x.shape[0] - 1.0
    return averaged(np.sum(margins, axis=1), x, y, weight) - 1.0


@explained()
def l2_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|^2; x [N, ...], label alike, [N] numbers, or [N] integer classes.

    >>> float(layers.l2_loss(np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]])))
    5.0
    """
    return np.sum((x - targets(x, label)) ** 2) / x.shape[0]


@explained()
def l1_loss(x: Any, label: Any) -> Any:
    """loss = 1/N sum_n |x[n] - label[n]|_1; shapes as in l2_loss.

    >>> float(layers.l1_loss(np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]])))
    2.0
    """
    return np.sum(np.abs(x - targets(x, label))) / x.shape[0]


@explained()
def huber_loss(x: Any, label: Any, delta: float = 1.0) -> Any:
    """loss = 1/N sum of r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) elsewhere, r = x - label (Huber 1964).

    >>> float(layers.huber_loss(np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]])))
    1.5
    """
    r = np.abs(x - targets(x, label))
    return np.sum(np.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))) / x.shape[0]


@explained()
def binary_cross_entropy(x: Any, y: Any, weight: Any = None) -> Any:
    """loss = mean of log(1 + exp(x)) - x y: scores x (logits) and targets y in [0, 1], alike (or [N] for [N, 1]).

    weight: two numbers, of the classes 0 and 1; a target between them has its share of both. Raises ValueError for
    targets of a host array that are not in [0, 1].

    >>> float(layers.binary_cross_entropy(np.zeros((2, 1)), np.array([[0.0], [1.0]])).round(4))
    0.6931
    """
    y = targets(x, y)
    # traced ones and those on a device are not looked at; `not`, because a NaN is none of these, either
    if isinstance(y, numpy.ndarray) and y.size and not (y.min() >= 0 and y.max() <= 1):
        raise ValueError(f"targets of binary_cross_entropy are from 0 to 1, got {y.min()} to {y.max()}")
    if weight is None:
        return np.mean(np.logaddexp(0.0, x) - x * y)
    no, yes = weights(weight, 2, x.dtype)
    # of -log (1 - p) and -log p, p = sigmoid(x), each with the weight of its class
    each = no * (1 - y) * np.logaddexp(0.0, x) + yes * y * np.logaddexp(0.0, -x)
    return np.sum(each) / divisor(np.sum(no * (1 - y) + yes * y))


@explained()
def temporal_softmax_loss(x: Any, y: Any, mask: Any) -> Any:
    """loss = -1/N sum_{n, t} mask[n, t] log softmax(x[n, t])[y[n, t]]; scores x [N, T, V], labels y and mask [N, T].

    >>> float(layers.temporal_softmax_loss(np.zeros((1, 2, 4)), np.array([[1, 3]]), np.array([[1, 0]])).round(4))
    1.3863
    """
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
