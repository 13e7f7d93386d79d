"""scipy.spatial.distance with gradients: each distance of two vectors along the last axis, and of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
from scipy.spatial import distance

from .. import numpy as np
from ..core.rows.dispatch import defines
from ..numpy.arguments import as_array
from ..numpy.systems import safe_divide


def _weighted(x: Any, w: Any) -> Any:
    return x if w is None else x * as_array(w)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    away = u - v
    if w is not None and p != onp.inf:
        away = away * as_array(w) ** (1 / p)
    elif w is not None:
        away = np.where(as_array(w) > 0, away, 0)
    return np.linalg.norm(away, p, axis=-1)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    mean = lambda x: np.mean(x, -1, keepdims=True) if w is None else np.sum(x * w, -1, keepdims=True) / np.sum(w)
    w = w if w is None else as_array(w)
    if centered:
        u, v = u - mean(u), v - mean(v)
    dot = lambda a, b: np.sum(_weighted(a * b, w), -1)
    return 1 - dot(u, v) / np.sqrt(dot(u, u) * dot(v, v))


def jensenshannon(p: Any, q: Any, base: Any = None) -> Any:
    p, q = p / np.sum(p, -1, keepdims=True), q / np.sum(q, -1, keepdims=True)
    m = (p + q) / 2.0
    out = np.sum(p * np.log(p / m) + q * np.log(q / m), -1) / 2.0
    return np.sqrt(out if base is None else out / np.log(base))


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    away = u - v
    return np.sqrt(np.sum((away @ as_array(VI)) * away, -1))


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    return np.linalg.norm((u - v) / np.sqrt(as_array(V)), axis=-1)


METRICS: dict[str, Callable] = {
    "euclidean": lambda u, v, w=None: minkowski(u, v, 2, w),
    "sqeuclidean": lambda u, v, w=None: np.sum(_weighted((u - v) ** 2, w), -1),
    "cityblock": lambda u, v, w=None: np.sum(_weighted(np.abs(u - v), w), -1),
    "chebyshev": lambda u, v, w=None: minkowski(u, v, onp.inf, w),
    "minkowski": minkowski,
    "cosine": lambda u, v, w=None: correlation(u, v, w, centered=False),
    "correlation": correlation,
    "canberra": lambda u, v, w=None: np.sum(_weighted(safe_divide(np.abs(u - v), np.abs(u) + np.abs(v)), w), -1),
    "braycurtis": lambda u, v, w=None: (
        np.sum(_weighted(np.abs(u - v), w), -1) / np.sum(_weighted(np.abs(u + v), w), -1)
    ),
    "seuclidean": seuclidean,
    "mahalanobis": mahalanobis,
    "jensenshannon": jensenshannon,
}


def _floats(x: Any) -> Any:
    x = as_array(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _of_vectors(metric: Callable) -> Callable:
    return lambda u, v, *args, **kwargs: metric(_floats(u), _floats(v), *args, **kwargs)


@defines(distance.jensenshannon)
def _jensenshannon(p: Any, q: Any, base: Any = None, *, axis: Any = 0, keepdims: bool = False) -> Any:
    if axis is None or not np.ndim(p) or not np.ndim(q):
        return NotImplemented
    out = jensenshannon(np.moveaxis(_floats(p), axis, -1), np.moveaxis(_floats(q), axis, -1), base)
    return np.expand_dims(out, axis) if keepdims else out


for _name, _metric in METRICS.items():
    if _name != "jensenshannon":
        defines(getattr(distance, _name))(_of_vectors(_metric))
NEEDED = {"seuclidean": "V", "mahalanobis": "VI"}  # what SciPy computes from all vectors where it is not given


def _metric_of(metric: Any, options: dict) -> Callable | None:
    """The function of a name, a function of ours, or a function of two vectors; None if SciPy has to know."""
    if metric in METRICS:
        return METRICS[metric] if NEEDED.get(metric) in (None, *options) else None
    named = getattr(getattr(metric, "__wrapped__", None), "__name__", None)
    return METRICS.get(named) if named else None


@defines(distance.cdist)
def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    known = _metric_of(metric, options)
    if known is None:
        return NotImplemented
    return known(_floats(XA)[:, None], _floats(XB)[None], **options)


@defines(distance.pdist)
def _pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    known, X = _metric_of(metric, options), _floats(X)
    if known is None:
        return NotImplemented
    i, j = onp.triu_indices(len(X), 1)
    return known(X[i], X[j], **options)


@defines(distance.squareform)
def _squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    X = as_array(X)
    if X.ndim == 2:
        return X[onp.triu_indices(len(X), 1)]
    n = round((1 + (1 + 8 * X.size) ** 0.5) / 2)
    i, j = onp.triu_indices(n, 1)
    out = np.zeros((n, n), X.dtype)
    out[i, j] = X
    out[j, i] = X
    return out
