"""The rows of the normalisations: batch, layer, group and instance norm are all `normalize` over some axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.cpu import kernels
from ..core.cpu.memory import empty
from ..core.rows.primitive import Joint, Meta, per_element, primitive
from ..numpy.facts import count_of, from_cost, kept_shape, once_imported, spread
from ..numpy.reductions import mean, var
from ..numpy.shaping import reshape
from ..numpy.ufuncs import sqrt
from .fused import fused, pulled

Axes = tuple[int, ...]


def _kind(x: Any, gamma: Any, axes: Axes) -> str:
    """rows: layer normalisation, over the last axes, all of which gamma has. channels: batch normalisation. Or ''."""
    n, axes = len(x.shape), tuple(axes)
    if axes == tuple(range(n - len(axes), n)) and gamma.size == count_of(x.shape, axes):
        return "rows"
    return "channels" if axes == (0, *range(2, n)) and gamma.size == x.shape[1] else ""


def _taken(x: Any, gamma: Any, axes: Axes, *others: Any) -> str:
    """The kind, where the C part has kernels for it that take these arrays; else ''."""
    if not kernels.takes(x, gamma, *others):
        return ""
    kind = _kind(x, gamma, axes)
    return kind if kind == "rows" or count_of(x.shape, axes[1:]) >= kernels.SHORTEST else ""


def _forward(x: Any, gamma: Any, beta: Any, axes: Axes, eps: float) -> tuple:
    kind = _taken(x, gamma, axes, beta) if gamma.shape == beta.shape else ""
    if kind:
        y, small = empty(x.shape, x.dtype), [empty(kept_shape(x.shape, axes), x.dtype) for _ in range(3)]
        rows, arrays = small[0].size, (x, gamma, beta, y, *small)
        if kind == "rows":
            kernels.call("norm", rows, gamma.size, arrays, (eps,))
        else:
            kernels.call("channel_norm", rows, x.size // rows, arrays, (count_of(x.shape, axes[1:]), eps))
        return y, *small
    dtype = onp.result_type(x, gamma, beta)
    center = _mean(x, axes)
    y = onp.subtract(x, center, out=empty(x.shape, dtype))
    spread_ = _mean(onp.multiply(y, y, out=empty(x.shape, dtype)), axes)
    inverse = 1 / onp.sqrt(spread_ + eps)
    y *= inverse
    y *= gamma
    y += beta
    return y, center, spread_, inverse


def _backward(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, gamma: Any, beta: Any, axes: Axes, eps: float
) -> tuple:
    gy, g_mean, g_var = g
    if gy is None:
        gy = onp.zeros_like(x)
    _, center, _, inverse = y
    kind = _taken(x, gamma, axes, gy, center, inverse) if g_mean is g_var is None else ""
    if kind:
        gx, sums, rows = empty(x.shape, x.dtype), [empty(gamma.shape, x.dtype) for _ in range(2)], center.size
        if kind == "channels":
            given, size = (gy, x, gamma, center, inverse, gx, *sums), (count_of(x.shape, axes[1:]),)
            kernels.call("channel_norm_back", rows, x.size // rows, given, size)
        else:
            kernels.call("norm_sums", rows, gamma.size, (gy, x, center, inverse, *sums))
            kernels.call("norm_back", rows, gamma.size, (gy, x, gamma, center, inverse, gx))
        return gx, *sums
    dtype = onp.result_type(x, gamma, gy)
    hat = onp.subtract(x, center, out=empty(x.shape, dtype))
    hat *= inverse
    product = onp.multiply(gy, hat, out=empty(x.shape, dtype))
    grads = [None, _sum_to(product, gamma.shape), _sum_to(gy, beta.shape)]
    if wanted[0]:
        # the mean and the variance move with x too: take out of g what they absorb
        product *= gamma
        along = _mean(product, axes)
        gx = onp.multiply(gy, gamma, out=product)
        level = _mean(gx, axes)
        count = count_of(x.shape, axes)
        if g_var is not None:
            along = along - g_var * (2 / count) / inverse / inverse
        if g_mean is not None:
            level = level - g_mean / count / inverse
        gx -= level
        gx -= onp.multiply(hat, along, out=hat)
        gx *= inverse
        grads[0] = gx
    return tuple(grads)


def _mean(x: onp.ndarray, axes: Axes) -> onp.ndarray:
    """x.mean(axis=axes, keepdims=True), without what NumPy asks in Python: 3 us less."""
    if x.dtype.char not in "fd":
        return x.mean(axis=axes, keepdims=True)
    total = onp.add.reduce(x, axis=axes, keepdims=True)
    total /= count_of(x.shape, axes)
    return total


def _sum_to(a: onp.ndarray, shape: tuple[int, ...]) -> onp.ndarray:
    axes = tuple(i for i, (n, m) in enumerate(zip(a.shape, shape, strict=True)) if n != m)
    return a.sum(axis=axes, keepdims=True) if axes else a.copy()


def _definition(x: Any, gamma: Any, beta: Any, axes: Axes, eps: float) -> tuple:
    center, spread_ = mean(x, axis=axes, keepdims=True), var(x, axis=axes, keepdims=True)
    inverse = 1 / sqrt(spread_ + eps)
    return (x - center) * inverse * gamma + beta, center, spread_, inverse


def _shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, ...]:
    x = metas[0]
    small = Meta(kept_shape(x.shape, params["axes"]), x.dtype)
    return x, small, small, small


def _cost(arrays: Sequence[Any], params: dict) -> int:
    """Elements, where this is batch or layer normalisation in one dtype, for which torch has kernels."""
    x, gamma, beta = arrays
    axes = tuple(params["axes"])
    if not (x.dtype == gamma.dtype == beta.dtype and x.dtype.char in "fd") or gamma.shape != beta.shape:
        return 0
    return x.size if _kind(x, gamma, axes) and not _taken(x, gamma, axes, beta) else 0


def _worth(least: float) -> Callable:
    return once_imported(from_cost(_cost, torch=least))


# (x - mean) / sqrt(var + eps) * gamma + beta, with mean and var over `axes`; gamma and beta have x's number of axes.
# Results: y, mean, var (biased), 1 / sqrt(var + eps).
normalize = fused(
    "npx.normalize",
    _forward,
    _backward,
    _definition,
    main=3,
    shape=_shape,
    flops=lambda metas, params, out: 8 * metas[0].size,
    worth=_worth(4e4),
    worth_back=_worth(2e4),
    samples=lambda: [
        ((spread(4, 3, 2), spread(1, 3, 1, seed=1), spread(1, 3, 1, seed=2)), {"axes": (0, 2), "eps": 1e-3}),
        ((spread(4, 5), spread(1, 5, seed=1), spread(1, 5, seed=2)), {"axes": (1,), "eps": 1e-5}),
    ],
)


# ------------------------------------------------------------------ batch normalisation in training, as one row
def _columns(x: Any, axis: int) -> tuple[tuple, tuple]:
    """(the shape in which a vector lies along `axis`, all other axes)."""
    return tuple(-1 if i == axis else 1 for i in range(x.ndim)), tuple(i for i in range(x.ndim) if i != axis)


def _moved(moving: Any, batch: Any, momentum: float) -> Any:
    return momentum * moving + (1 - momentum) * batch


def _train(
    x: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int, eps: float, momentum: float
) -> tuple:
    shape, axes = _columns(x, axis)
    y, *small = _forward(x, gamma.reshape(shape), beta.reshape(shape), axes, eps)
    center, spread_, inverse = (v.reshape(-1) for v in small)
    return y, center, spread_, _moved(moving_mean, center, momentum), _moved(moving_var, spread_, momentum), inverse


def _train_back(
    wanted: Sequence[bool],
    g: tuple,
    y: tuple,
    x: Any,
    gamma: Any,
    beta: Any,
    *moving: Any,
    axis: int,
    eps: float,
    momentum: float,
) -> tuple:
    shape, axes = _columns(x, axis)
    flat = lambda vectors: [v if v is None else v.reshape(shape) for v in vectors]
    kept = y[0], *flat((y[1], y[2], y[5]))
    gx, *grads = _backward(wanted, (g[0], *flat(g[1:])), kept, x, *flat((gamma, beta)), axes, eps)
    return gx, *(v.reshape(-1) for v in grads), *(onp.zeros_like(m) if w else None for m, w in zip(moving, wanted[3:]))


def _train_definition(
    x: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int, eps: float, momentum: float
) -> tuple:
    shape, axes = _columns(x, axis)
    y, *small = _definition(x, reshape(gamma, shape=shape), reshape(beta, shape=shape), axes, eps)
    center, spread_, inverse = (reshape(v, shape=(-1,)) for v in small)
    return y, center, spread_, _moved(moving_mean, center, momentum), _moved(moving_var, spread_, momentum), inverse


# Results: y, mean, var (biased), what the moving ones become, 1 / sqrt(var + eps); all but x and y are vectors along
# `axis`. For devices, on which each of its parts said as a row would be a call that waits for memory gone cold.
train = fused(
    "npx.batch_norm_train",
    _train,
    _train_back,
    _train_definition,
    main=3,
    flops=per_element(8),
    samples=lambda: [
        (_kept(4, 3, 2), {"axis": 1, "eps": 1e-3, "momentum": 0.9}),
        (_kept(5, 4, axis=1), {"axis": 1, "eps": 1e-5, "momentum": 0.5}),
        (_kept(2, 4, axis=0), {"axis": 0, "eps": 1e-5, "momentum": 0.0}),
    ],
)


def normalized(x: Any, gamma: Any, beta: Any, center: Any, spread_: Any, axis: int, eps: float) -> Any:
    """(x - center) / sqrt(spread_ + eps) * gamma + beta, all but x vectors along `axis`."""
    scale = gamma / sqrt(spread_ + eps)
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    return x * reshape(scale, shape=shape) + reshape(beta - center * scale, shape=shape)


# The same as one row, for devices that have a kernel for it.
normalize_by = primitive(
    "npx.normalize_by",
    normalized,
    vjp=Joint(lambda wanted, g, y, *arrays, **params: pulled(_alone(normalized, params), arrays, wanted, [g])),
    saves="in",
    flops=per_element(2),
    samples=lambda: [(_kept(4, 3, 2), {"axis": 1, "eps": 0.1}), (_kept(2, 4, axis=0), {"axis": 0, "eps": 1e-5})],
)


def _kept(*shape: int, axis: int = 1) -> tuple:
    return spread(*shape), *(spread(shape[axis], low=0.5, seed=i) for i in (1, 2, 3, 4))


def _alone(f: Callable, params: dict) -> Callable:
    """f as `pulled` takes it, with a tuple of results."""
    return lambda *arrays: (f(*arrays, **params),)
