"""scipy.ndimage with gradients: filters that are correlations, of padded images, and interpolation of order 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
from scipy import ndimage

from .. import numpy as np
from ..core.rows.dispatch import defines
from ..numpy.arguments import as_array, number, plain
from ..numpy.facts import axes_of
from .signals import convolution

# SciPy's names of what continues an image, and np.pad's
MODES = {"reflect": "symmetric", "grid-mirror": "symmetric", "constant": "constant", "grid-constant": "constant",
         "nearest": "edge", "mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap"}  # fmt: skip


def _correlated(x: Any, weights: Any, mode: Any, cval: float, origin: Any, turned: bool = False) -> Any:
    """x correlated with weights of as many dimensions, in x's shape; turned: convolved."""
    modes = [mode] * x.ndim if isinstance(mode, str) else list(mode)
    origins = [origin] * x.ndim if isinstance(origin, int) else list(origin)
    if turned:
        weights = np.flip(weights)
        origins = [-o - (n % 2 == 0) for o, n in zip(origins, weights.shape, strict=True)]
    before = [n // 2 + o for o, n in zip(origins, weights.shape, strict=True)]
    for axis, (b, n) in enumerate(zip(before, weights.shape, strict=True)):
        if n > 1:
            around = [(0, 0)] * x.ndim
            around[axis] = (b, n - 1 - b)
            more = {"constant_values": cval} if MODES[modes[axis]] == "constant" else {}
            x = np.pad(x, around, MODES[modes[axis]], **more)
    full = convolution(x, np.flip(weights))
    return full[tuple(slice(n - 1, k - n + 1) for n, k in zip(weights.shape, full.shape, strict=True))]


def _image(input: Any, output: Any) -> Any:
    """The image where it is of real numbers and the result is of its dtype; else None."""
    x = as_array(input)
    return x if output is None and x.dtype.kind == "f" and x.ndim and x.size else None


def _of_weights(turned: bool) -> Callable:
    def definition(
        input: Any,
        weights: Any,
        output: Any = None,
        mode: Any = "reflect",
        cval: float = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        x, w = _image(input, output), as_array(weights)
        if x is None or axes is not None or w.ndim != x.ndim:
            return NotImplemented
        return _correlated(x, w, mode, cval, origin, turned).astype(x.dtype)

    return definition


def _line(x: Any, w: Any, axis: int, mode: str, cval: float, origin: int = 0, turned: bool = False) -> Any:
    shape = [1] * x.ndim
    shape[axis] = -1
    origins = [0] * x.ndim
    origins[axis] = origin
    return _correlated(x, w.reshape(shape), mode, cval, origins, turned).astype(x.dtype)


def _of_line(turned: bool) -> Callable:
    def definition(
        input: Any,
        weights: Any,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: int = 0,
    ) -> Any:
        x = _image(input, output)
        return NotImplemented if x is None else _line(x, as_array(weights), axis, mode, cval, origin, turned)

    return definition


defines(ndimage.correlate)(_of_weights(False))
defines(ndimage.convolve)(_of_weights(True))
defines(ndimage.correlate1d)(_of_line(False))
defines(ndimage.convolve1d)(_of_line(True))


# ------------------------------------------------------------------ filters with weights of their own
def _answer(filter: Callable, radius: int) -> onp.ndarray:
    """The weights of a filter of one dimension: what it makes of a single one."""
    one = onp.zeros(2 * radius + 1)
    one[radius] = 1
    return filter(one)[::-1]


@defines(ndimage.gaussian_filter1d)
def _gaussian_filter1d(
    input: Any,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    x, sigma = _image(input, output), number(sigma)
    if x is None:
        return NotImplemented
    size = int(truncate * float(sigma) + 0.5) if radius is None else radius
    weights = _answer(
        lambda one: ndimage.gaussian_filter1d(
            one, sigma, order=order, mode="constant", truncate=truncate, radius=radius
        ),
        size,
    )
    return _line(x, weights, axis, mode, cval)


def _each(value: Any, axes: tuple) -> list:
    return [value] * len(axes) if isinstance(value, (int, float, str, type(None))) else [number(v) for v in value]


@defines(ndimage.gaussian_filter)
def _gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    x = _image(input, output)
    if x is None:
        return NotImplemented
    axes = axes_of(axes, x.ndim)
    settings = (_each(v, axes) for v in (sigma, order, mode, radius))
    for axis, s, o, m, r in zip(axes, *settings, strict=True):
        if s > 1e-15:
            x = _gaussian_filter1d(x, s, axis, o, None, m, cval, truncate, radius=r)
    return x


@defines(ndimage.uniform_filter1d)
def _uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    x = _image(input, output)
    return NotImplemented if x is None else _line(x, onp.full(size, 1 / size), axis, mode, cval, origin)


@defines(ndimage.uniform_filter)
def _uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    x = _image(input, output)
    if x is None:
        return NotImplemented
    axes = axes_of(axes, x.ndim)
    for axis, n, m, o in zip(axes, *(_each(v, axes) for v in (size, mode, origin)), strict=True):
        x = _uniform_filter1d(x, n, axis, None, m, cval, o)
    return x


def _edges(middle: list) -> Callable:
    def definition(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0) -> Any:
        x = _image(input, output)
        if x is None:
            return NotImplemented
        modes = _each(mode, tuple(range(x.ndim)))
        for k in range(x.ndim):
            x = _line(x, onp.array([-1.0, 0.0, 1.0] if k == axis % x.ndim else middle), k, modes[k], cval)
        return x

    return definition


defines(ndimage.sobel)(_edges([1.0, 2.0, 1.0]))
defines(ndimage.prewitt)(_edges([1.0, 1.0, 1.0]))


@defines(ndimage.laplace)
def _laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None) -> Any:
    x = _image(input, output)
    if x is None:
        return NotImplemented
    axes = axes_of(axes, x.ndim)
    parts = [_line(x, onp.array([1.0, -2.0, 1.0]), a, m, cval) for a, m in zip(axes, _each(mode, axes), strict=True)]
    return sum(parts[1:], parts[0])


# ------------------------------------------------------------------ interpolation
@defines(ndimage.map_coordinates)
def _map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """Order 0 and 1, of an image continued by a constant or by its nearest elements; coordinates have gradients too."""
    x = _image(input, output)
    if x is None or order > 1 or mode not in ("constant", "grid-constant", "nearest"):
        return NotImplemented
    at = as_array(coordinates).astype(x.dtype)
    where = onp.asarray(plain(np.stop_gradient(at)), float)
    low = onp.floor(where + 0.5 if order == 0 else where).astype(int)
    size = onp.array(x.shape).reshape((-1,) + (1,) * (where.ndim - 1))
    outside = onp.any((where < 0) | (where > size - 1), axis=0) if mode == "constant" else None
    total: Any = 0.0
    for corner in onp.ndindex((2,) * x.ndim if order else (1,) * x.ndim):
        index, weight = [], 1.0
        for k, step in enumerate(corner):
            here = low[k] + step
            index.append(onp.clip(here, 0, x.shape[k] - 1))
            if order:
                weight = weight * (at[k] - low[k] if step else 1 - (at[k] - low[k]))
        value = x[tuple(index)]
        if mode == "grid-constant":
            inside = onp.all([(low[k] + s >= 0) & (low[k] + s < x.shape[k]) for k, s in enumerate(corner)], axis=0)
            value = np.where(inside, value, cval)
        total = total + value * weight
    return (total if outside is None else np.where(outside, cval, total)).astype(x.dtype)
