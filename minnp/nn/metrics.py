"""Metrics: `metric(outputs, labels) -> number`, the mean over a batch; looked up by name in RULES."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import minnp.numpy as np

from . import checks
from .checks import one_of

__all__ = ["accuracy", "mae", "mse"]


@checks.named()
def accuracy(predict: Any, y: Any) -> float:
    """The fraction that is right.

    predict [..., C] scores with y [...] classes or y [..., C] one-hot: by the largest score. predict of one score per
    example: positive means the class 1.

    >>> nn.metrics.accuracy(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    0.5
    """
    predict, y = np.asarray(predict), np.asarray(y)
    if predict.shape[-1] == 1 and y.ndim == predict.ndim - 1:
        predict = predict[..., 0]
    if predict.ndim == y.ndim + 1:
        return float(np.mean(np.argmax(predict, axis=-1) == y))
    if y.ndim > 1 and y.shape[-1] > 1:
        return float(np.mean(np.argmax(predict, axis=-1) == np.argmax(y, axis=-1)))
    return float(np.mean((predict > 0) == (y > 0.5)))


@checks.named()
def mse(predict: Any, y: Any) -> float:
    """Mean of (predict - y)^2 over all elements.

    >>> nn.metrics.mse(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
    2.0
    """
    return float(np.mean((np.asarray(predict) - np.asarray(y).reshape(predict.shape)) ** 2))


@checks.named()
def mae(predict: Any, y: Any) -> float:
    """Mean of |predict - y| over all elements.

    >>> nn.metrics.mae(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
    1.0
    """
    return float(np.mean(np.abs(np.asarray(predict) - np.asarray(y).reshape(predict.shape))))


RULES: dict[str, Callable] = {"accuracy": accuracy, "mse": mse, "mae": mae}


def named(metrics: Any) -> dict[str, Callable]:
    """{name: function} from names and functions, or one of them."""
    metrics = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    if not isinstance(metrics, Iterable):
        raise TypeError(f"metrics are names or functions, or a list of them; got {metrics!r}")
    return {m if isinstance(m, str) else m.__name__: one_of("metric", m, RULES, "(outputs, labels)") for m in metrics}
