"""Pooling rows: windows of [N, C, *S] reduced to their maximum or their sum, one axis after the other.

A sum over windows is linear, and its transpose is a row: each is the other's rule. A maximum is the element it chose,
so its gradient is `window_put` at the chosen places, whose own is `window_take`. Of equal elements the first in C order
is chosen, as MXNet and torch do: after a relu most windows hold equal zeros, and sharing would spread it thin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as onp

from ..core.cpu import kernels
from ..core.cpu.memory import empty
from ..core.rows.primitive import CONSTANT, Meta, per_input, primitive
from ..numpy.facts import either, from_cost, once_imported

Sizes = tuple[int, ...]


# ------------------------------------------------------------------ windows
def pooled_size(size: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool = False) -> Sizes:
    """Spatial size of a pooling's result; `ceil` keeps a last window over the edge, unless it holds only padding."""
    out = []
    for n, k, s, p in zip(size, kernel, stride, pad, strict=True):
        room = n + 2 * p - k
        if room < 0:
            raise ValueError(f"pooling windows of {kernel} with pad {pad} do not fit into data of size {size}")
        count = room // s + 1
        out.append(count + 1 if ceil and room % s and count * s < n + p else count)
    return tuple(out)


class Windows:
    """Where the windows over spatial sizes `size` lie in the padded array."""

    def __init__(self, size: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool = False) -> None:
        self.size, self.kernel, self.stride, self.pad = tuple(size), kernel, stride, pad
        self.out = pooled_size(self.size, kernel, stride, pad, ceil)
        self.padded = tuple(
            max(p + n, (o - 1) * s + k) for n, o, k, s, p in zip(size, self.out, kernel, stride, pad, strict=True)
        )
        self.inner = (..., *(slice(p, p + n) for n, p in zip(size, pad, strict=True)))

    def embed(self, x: onp.ndarray, fill: Any) -> onp.ndarray:
        """x inside its padding; x itself where there is none."""
        if self.padded == self.size:
            return x
        padded = onp.full((*x.shape[:2], *self.padded), fill, x.dtype)
        padded[self.inner] = x
        return padded

    def along(self, axis: int) -> Iterator[tuple]:
        """The kernel offsets of one spatial axis, as indices of an array padded along it."""
        before = (slice(None),) * (2 + axis)
        n, s = self.out[axis], self.stride[axis]
        for k in range(self.kernel[axis]):
            yield (*before, slice(k, k + (n - 1) * s + 1, s))

    def offsets(self) -> Iterator[tuple[int, tuple]]:
        """(number, index into the padded array) of every kernel offset, in C order."""
        for k, offset in enumerate(product(*map(range, self.kernel))):
            yield k, (..., *(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offset, self.out, self.stride)))

    def places(self, index: onp.ndarray) -> onp.ndarray:
        """The flat places in the padded array [N, C, *S] of the elements with these numbers in their windows."""
        corners, offsets = onp.zeros(1, onp.intp), onp.zeros(1, onp.intp)
        for axis, (n, k, s) in enumerate(zip(self.out, self.kernel, self.stride, strict=True)):
            step = prod(self.padded[axis + 1 :])
            corners = onp.add.outer(corners, onp.arange(n) * (s * step)).reshape(-1)
            offsets = onp.add.outer(offsets, onp.arange(k) * step).reshape(-1)
        places = onp.add.outer(onp.arange(prod(index.shape[:2])) * prod(self.padded), corners).reshape(index.shape)
        places += offsets.take(index, mode="clip")
        return places

    def reduce(self, x: onp.ndarray, ufunc: onp.ufunc) -> onp.ndarray:
        for axis in range(len(self.kernel)):
            first, *rest = (x[index] for index in self.along(axis))
            x = first if not rest else ufunc(first, rest[0])
            for part in rest[1:]:
                ufunc(x, part, out=x)
        return x


def _lowest(dtype: onp.dtype) -> Any:
    return -onp.inf if dtype.kind == "f" else onp.iinfo(dtype).min if dtype.kind in "iu" else False


# ------------------------------------------------------------------ kernels
def _images(x: Any, y: Any, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool = False) -> tuple:
    """How the C part is told of y's windows of x [N, C, H, W]: numbers of images and elements, sizes."""
    (n, channels, height, width), (*_, rows, columns) = x.shape, y.shape
    return n * channels, height * width, (rows * columns, columns, width, *kernel, *stride, *pad)


def _max_pool(x: Any, **params: Any) -> onp.ndarray:
    if len(x.shape) == 4 and kernels.takes(x):
        y = empty((*x.shape[:2], *pooled_size(x.shape[2:], **params)), x.dtype)
        images, n, sizes = _images(x, y, **params)
        kernels.call("pool", images, n, (x, y), sizes)
        return y
    windows = Windows(x.shape[2:], **params)
    y = windows.reduce(windows.embed(x, _lowest(x.dtype)), onp.maximum)
    return onp.array(y) if onp.may_share_memory(x, y) else y


def _mask(condition: onp.ndarray, dtype: Any) -> onp.ndarray:
    """All bits of an integer type set where the condition holds."""
    return onp.negative(condition.view(onp.int8)).astype(dtype)


def _only(x: onp.ndarray, condition: onp.ndarray) -> onp.ndarray:
    """x where the condition holds, 0 elsewhere: as bits, which is 5 times as fast as a masked copy."""
    if x.itemsize > 8:
        return onp.where(condition, x, x.dtype.type(0))
    bits = x.view(f"i{x.itemsize}")
    return (bits & _mask(condition, bits.dtype)).view(x.dtype)


def _max_pool_index(x: Any, y: Any, **params: Any) -> onp.ndarray:
    windows = Windows(x.shape[2:], **params)
    padded = windows.embed(x, _lowest(x.dtype))
    index = onp.zeros(y.shape, onp.min_scalar_type(-prod(windows.kernel)))  # signed: torch has few unsigned types
    for k, at in reversed(list(windows.offsets())):
        below = _mask(padded[at] < y, index.dtype)  # not `!=`: a window with a NaN keeps its first place
        index &= below
        index |= onp.bitwise_and(onp.invert(below, out=below), k)
    return index


def _window_take(x: Any, index: Any, **params: Any) -> onp.ndarray:
    windows = Windows(x.shape[2:], **params)
    padded, y = windows.embed(x, 0), onp.zeros(index.shape, x.dtype)
    for k, at in windows.offsets():
        y += _only(padded[at], index == k)
    return y


def _window_put(g: Any, index: Any, size: Sizes, **params: Any) -> onp.ndarray:
    windows = Windows(size, **params)
    padded = onp.zeros((*g.shape[:2], *windows.padded), g.dtype)
    if all(s >= k for s, k in zip(windows.stride, windows.kernel, strict=True)):  # no element is in two windows
        padded.reshape(-1)[windows.places(index)] = g
        return padded[windows.inner]
    for k, at in windows.offsets():
        target = padded[at]
        target += _only(g, index == k)
    return padded[windows.inner]


def _max_pool_grad(g: Any, x: Any, y: Any, **params: Any) -> onp.ndarray:
    if len(x.shape) == 4 and g.shape == y.shape and g.size and kernels.takes(x, g, y):
        out = empty(x.shape, x.dtype)
        images, n, sizes = _images(x, y, **params)
        kernels.call("unpool", images, n, (g, x, y, out), sizes)
        return out
    return _window_put(g, _max_pool_index(x, y, **params), x.shape[2:], **params)


def _sum_pool(x: Any, **params: Any) -> onp.ndarray:
    windows = Windows(x.shape[2:], **params)
    y = windows.reduce(windows.embed(x, 0), onp.add)
    return onp.array(y) if onp.may_share_memory(x, y) else y


def _sum_unpool(g: Any, size: Sizes, **params: Any) -> onp.ndarray:
    windows = Windows(size, **params)
    for axis in reversed(range(len(windows.kernel))):
        shape = list(g.shape)
        shape[2 + axis] = windows.padded[axis]
        spread = onp.zeros(shape, g.dtype)
        for index in windows.along(axis):
            spread[index] += g
        g = spread
    return g[windows.inner]


def window_counts(size: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool, include_pad: bool) -> onp.ndarray:
    """How many elements the mean of each window divides by; what hangs over the padding never counts."""
    counts = onp.ones(())
    for n, o, k, s, p in zip(size, pooled_size(size, kernel, stride, pad, ceil), kernel, stride, pad, strict=True):
        start = onp.arange(o) * s - p
        low, high = (-p, n + p) if include_pad else (0, n)
        counts = onp.multiply.outer(counts, onp.minimum(start + k, high) - onp.maximum(start, low))
    return counts


# ------------------------------------------------------------------ facts
def _pooled(metas: Sequence[Meta], params: dict) -> Meta:
    x = metas[0]
    return Meta((*x.shape[:2], *pooled_size(x.shape[2:], **params)), x.dtype)


def _unpooled(metas: Sequence[Meta], params: dict) -> Meta:
    return Meta((*metas[0].shape[:2], *params["size"]), metas[0].dtype)


def _samples(kind: str) -> Callable:
    def samples() -> list:
        draw = onp.random.RandomState(0).normal
        cases = []
        for size, params in [
            ((6, 5), {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 0), "ceil": True}),
            ((6, 7), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1), "ceil": False}),
            ((7,), {"kernel": (3,), "stride": (3,), "pad": (1,), "ceil": False}),
            ((3, 4, 4), {"kernel": (2, 3, 1), "stride": (1, 2, 2), "pad": (0, 1, 0), "ceil": True}),
        ]:
            x = draw(size=(2, 3, *size))
            y = _max_pool(x, **params)
            index, g = _max_pool_index(x, y, **params), draw(size=y.shape)
            values = {"x": x, "g": g, "y": y, "index": index}
            cases.append(
                (
                    tuple(values[name] for name in kind.split()),
                    {**params, "size": size} if kind in ("g", "g index") else params,
                )
            )
        return cases

    return samples


def _window_flops(metas: Sequence[Meta], params: dict, out: Meta) -> int:
    return out.size * prod(params["kernel"])


def _overlapping(arrays: Sequence, params: dict) -> int:
    return arrays[0].size if prod(params["kernel"]) > 4 else 0


def _channels_last(arrays: Sequence, params: dict) -> int:
    x = arrays[0]
    return x.size if isinstance(x, onp.ndarray) and x.ndim > 2 and x.shape[1] > 1 and x.strides[1] == x.itemsize else 0


# ------------------------------------------------------------------ rows
max_pool = primitive(
    "npx.max_pool",
    numpy=_max_pool,
    vjp=[lambda g, y, x, **p: max_pool_grad(g, x, y, **p)],
    jvp=[lambda t, y, x, **p: window_take(t, max_pool_index(x, y, **p), **p)],
    shape=_pooled,
    flops=_window_flops,
    # windows that do not overlap are as fast here; torch's are slower, but for images whose channels lie last, as its
    # convolutions leave them
    worth=either(from_cost(_overlapping, mxnet=1e5), once_imported(from_cost(_channels_last, torch=1e5))),
    samples=_samples("x"),
)
max_pool_grad = primitive(
    "npx.max_pool_grad",
    numpy=_max_pool_grad,
    vjp=[lambda g, y, h, x, z, **p: window_take(g, max_pool_index(x, z, **p), **p), CONSTANT, CONSTANT],
    jvp=[lambda t, y, g, x, z, **p: max_pool_grad(t, x, z, **p), CONSTANT, CONSTANT],
    saves="in",
    shape=lambda metas, params: Meta(metas[1].shape, metas[0].dtype),
    flops=_window_flops,
    samples=_samples("g x y"),
)
max_pool_index = primitive(
    "npx.max_pool_index", numpy=_max_pool_index, vjp=CONSTANT, saves="", flops=_window_flops, samples=_samples("x y")
)
window_take = primitive(
    "npx.window_take",
    numpy=_window_take,
    vjp=[lambda g, y, x, index, **p: window_put(g, index, size=tuple(x.shape[2:]), **p), CONSTANT],
    jvp="multilinear",
    saves="in",
    shape=lambda metas, params: Meta(metas[1].shape, metas[0].dtype),
    samples=_samples("x index"),
)
window_put = primitive(
    "npx.window_put",
    numpy=_window_put,
    vjp=[lambda g, y, h, index, size, **p: window_take(g, index, **p), CONSTANT],
    jvp="multilinear",
    saves="in",
    shape=_unpooled,
    samples=_samples("g index"),
)
sum_pool = primitive(
    "npx.sum_pool",
    numpy=_sum_pool,
    vjp=[lambda g, y, x, **p: sum_unpool(g, size=tuple(x.shape[2:]), **p)],
    jvp="linear",
    saves="",
    shape=_pooled,
    flops=_window_flops,
    samples=_samples("x"),
)
sum_unpool = primitive(
    "npx.sum_unpool",
    numpy=_sum_unpool,
    vjp=[lambda g, y, h, size, **p: sum_pool(g, **p)],
    jvp="linear",
    saves="",
    shape=_unpooled,
    flops=per_input(1),
    samples=_samples("g"),
)
