"""The rows of the normalisations: batch, layer, group and instance norm are all `normalize` over some axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.host import kernels
from ..core.host.memory import empty
from ..core.primitive import Joint, Meta, per_element, primitive
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
