"""Convolution, its transpose and its weight gradient: three rows that are each other's derivatives, to any order.

All three are a gather of windows into columns (or the scatter back) and one BLAS product, over chunks of the batch
small enough that the columns stay in cache. At stride 1 the gather copies whole padded images shifted by the kernel
offset: long contiguous runs, and a few columns too many, which are dropped. Data is [N, C, *S], weights
[O, C/groups, *K], with one, two or three spatial axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as onp

from ..core.primitive import Meta, primitive
from ..numpy.facts import from_cost

Sizes = tuple[int, ...]
CHUNK_BYTES = 1 << 20  # columns of one chunk: what a level-2 cache holds


def output_size(size: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes) -> Sizes:
    """Spatial size of a convolution's result."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, pad, dilate, strict=True)
    )


# ------------------------------------------------------------------ columns
class Columns:
    """The windows of `n` images [n, C, *S] as a matrix [groups, C/groups * K, n * grid], and back.

    `grid` is the output size, or at stride 1 the padded image's (see the module's docstring).
    """

    def __init__(self, n: int, channels: int, size: Sizes, dtype: Any, kernel: Sizes, stride: Sizes, pad: Sizes,
                 dilate: Sizes, groups: int) -> None:  # fmt: skip
        self.out = output_size(size, kernel, stride, pad, dilate)
        self.n, self.groups, self.kernel = n, groups, kernel
        padded = tuple(s + 2 * p for s, p in zip(size, pad, strict=True))
        self.shifted = set(stride) == {1} and 2 * prod(padded) <= 3 * prod(self.out)
        self.grid = padded if self.shifted else self.out
        steps = [prod(padded[i + 1 :]) for i in range(len(padded))]  # elements from one index to the next, per axis
        reach = sum((k - 1) * d * s for k, d, s in zip(kernel, dilate, steps, strict=True))
        self.flat = onp.zeros((channels, n * prod(padded) + reach), dtype)
        self.images = self.flat[:, : n * prod(padded)].reshape(channels, n, *padded)
        self.inner = self.images[(..., *(slice(p, p + s) for p, s in zip(pad, size, strict=True)))]
        across, item = self.flat.strides
        offsets = [d * s * item for d, s in zip(dilate, steps, strict=True)]
        if self.shifted:
            shape, strides = (n * prod(padded),), (item,)
        else:
            shape = (n, *self.out)
            strides = (prod(padded) * item, *(s * step * item for s, step in zip(stride, steps, strict=True)))
        self.windows = onp.lib.stride_tricks.as_strided(
            self.flat, (channels, *kernel, *shape), (across, *offsets, *strides)
        )
        self.matrix_shape = (groups, channels // groups * prod(kernel), n * prod(self.grid))
        self.columns: onp.ndarray | None = None

    def gather(self, x: onp.ndarray) -> onp.ndarray:
        """The columns of x [n, C, *S]."""
        self.inner[...] = x.swapaxes(0, 1)
        if self.shifted and prod(self.kernel) == 1:
            return self.flat.reshape(self.matrix_shape)
        if self.columns is None:
            self.columns = onp.empty(self.windows.shape, self.flat.dtype)
        onp.copyto(self.columns, self.windows)
        return self.columns.reshape(self.matrix_shape)

    def scatter(self, matrix: onp.ndarray) -> onp.ndarray:
        """The sum of columns back into their places: a view [n, C, *S], valid until the next call."""
        self.flat.fill(0)
        columns = matrix.reshape(self.windows.shape)
        for offset in product(*map(range, self.kernel)):
            target = self.windows[(slice(None), *offset)]
            target += columns[(slice(None), *offset)]
        return self.inner.swapaxes(0, 1)

    def crop(self, matrix: onp.ndarray) -> onp.ndarray:
        """[groups, O/groups, n * grid] as [n, O, *out]."""
        result = matrix.reshape(-1, self.n, *self.grid)
        return result[(..., *map(slice, self.out))].swapaxes(0, 1)

    def spread(self, g: onp.ndarray) -> onp.ndarray:
        """The inverse of crop, with zeros in the dropped columns."""
        matrix = (onp.zeros if self.shifted else onp.empty)((g.shape[1], self.n, *self.grid), self.flat.dtype)
        matrix[(..., *map(slice, self.out))] = g.swapaxes(0, 1)
        return matrix.reshape(self.groups, g.shape[1] // self.groups, -1)


def _chunks(batch: int, channels: int, size: Sizes, dtype: Any, kernel: Sizes, stride: Sizes, pad: Sizes,
            dilate: Sizes, groups: int) -> Iterator[tuple[slice, Columns]]:  # fmt: skip
    pixels = prod(output_size(size, kernel, stride, pad, dilate))
    step = max(1, min(batch, CHUNK_BYTES // max(1, channels * prod(kernel) * pixels * dtype.itemsize)))
    columns = None
    for start in range(0, batch, step):
        n = min(step, batch - start)
        if columns is None or columns.n != n:
            columns = Columns(n, channels, size, dtype, kernel, stride, pad, dilate, groups)
        yield slice(start, start + n), columns


# ------------------------------------------------------------------ kernels
def _working(*arrays: Any) -> tuple[onp.dtype, onp.dtype]:
    """(result dtype, dtype to compute in): BLAS has no float16."""
    dtype = onp.result_type(*arrays)
    return dtype, onp.dtype(onp.float32) if dtype == onp.float16 else dtype


def _conv(x: Any, w: Any, *, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int = 1) -> onp.ndarray:
    x, w = onp.asarray(x), onp.asarray(w)
    if x.ndim != w.ndim or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(
            f"convolution of data {x.shape} with weight {w.shape} in {groups} group(s): data is [N, C, *S], weight "
            "[O, C/groups, *K], and groups divides both C and O"
        )
    dtype, work = _working(x, w)
    size, kernel = x.shape[2:], w.shape[2:]
    out = output_size(size, kernel, stride, pad, dilate)
    if min(out) < 1:
        raise ValueError(
            f"convolution of data {x.shape} with kernel {kernel}, pad {pad}: the kernel is larger than the data"
        )
    y = onp.empty((x.shape[0], w.shape[0], *out), dtype)
    weight = w.reshape(groups, w.shape[0] // groups, -1).astype(work, copy=False)
    result = None
    for batch, columns in _chunks(x.shape[0], x.shape[1], size, work, kernel, stride, pad, dilate, groups):
        matrix = columns.gather(x[batch])
        if result is None or result.shape[-1] != matrix.shape[-1]:
            result = onp.empty((*weight.shape[:2], matrix.shape[-1]), work)
        y[batch] = columns.crop(onp.matmul(weight, matrix, out=result))
    return y


def _conv_transpose(x: Any, w: Any, *, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int = 1,
                    size: Sizes) -> onp.ndarray:  # fmt: skip
    x, w = onp.asarray(x), onp.asarray(w)
    kernel = w.shape[2:]
    if x.ndim != w.ndim or x.shape[1] != w.shape[0] or x.shape[1] % groups:
        raise ValueError(
            f"transposed convolution of data {x.shape} with weight {w.shape} in {groups} group(s): data is [N, C, *S], "
            "weight [C, O/groups, *K], and groups divides C"
        )
    if output_size(size, kernel, stride, pad, dilate) != x.shape[2:]:
        raise ValueError(
            f"transposed convolution to size {tuple(size)}: kernel {kernel}, stride {stride}, pad {pad} and dilate "
            f"{dilate} take it to {output_size(size, kernel, stride, pad, dilate)}, and the data has {x.shape[2:]}"
        )
    dtype, work = _working(x, w)
    channels = w.shape[1] * groups
    back = tuple(d * (k - 1) - p for d, k, p in zip(dilate, kernel, pad, strict=True))
    if set(stride) == {1} and min(back) >= 0 and w.shape[0] <= 2 * channels:
        # The same thing as a convolution with the kernel turned round: a gather, which is cheaper than a scatter.
        turned = onp.flip(w, tuple(range(2, w.ndim))).reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
        turned = turned.reshape(channels, -1, *kernel)
        return _conv(x, turned, stride=stride, pad=back, dilate=dilate, groups=groups)
    y = onp.empty((x.shape[0], channels, *size), dtype)
    weight = w.reshape(groups, w.shape[0] // groups, -1).astype(work, copy=False).swapaxes(1, 2)
    for batch, columns in _chunks(x.shape[0], channels, size, work, kernel, stride, pad, dilate, groups):
        y[batch] = columns.scatter(weight @ columns.spread(x[batch]))
    return y


def _conv_weight_grad(x: Any, g: Any, *, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes,
                      groups: int = 1) -> onp.ndarray:  # fmt: skip
    x, g = onp.asarray(x), onp.asarray(g)
    dtype, work = _working(x, g)
    total = onp.zeros((groups, g.shape[1] // groups, x.shape[1] // groups * prod(kernel)), work)
    for batch, columns in _chunks(x.shape[0], x.shape[1], x.shape[2:], work, kernel, stride, pad, dilate, groups):
        total += columns.spread(g[batch]) @ columns.gather(x[batch]).swapaxes(1, 2)
    return total.reshape(g.shape[1], x.shape[1] // groups, *kernel).astype(dtype, copy=False)


# ------------------------------------------------------------------ facts
def _conv_shape(metas: list[Meta], params: dict) -> Meta:
    x, w = metas
    out = output_size(x.shape[2:], w.shape[2:], params["stride"], params["pad"], params["dilate"])
    return Meta((x.shape[0], w.shape[0], *out), onp.result_type(x.dtype, w.dtype))


def _transpose_shape(metas: list[Meta], params: dict) -> Meta:
    x, w = metas
    channels = w.shape[1] * params.get("groups", 1)
    return Meta((x.shape[0], channels, *params["size"]), onp.result_type(x.dtype, w.dtype))


def _weight_shape(metas: list[Meta], params: dict) -> Meta:
    x, g = metas
    channels = x.shape[1] // params.get("groups", 1)
    return Meta((g.shape[1], channels, *params["kernel"]), onp.result_type(x.dtype, g.dtype))


def _samples() -> list:
    r = onp.random.default_rng(0)
    one = {"stride": (1,), "pad": (1,), "dilate": (1,), "groups": 1}
    two = {"stride": (2, 1), "pad": (1, 0), "dilate": (1, 2), "groups": 2}
    three = {"stride": (1, 2, 1), "pad": (0, 1, 0), "dilate": (1, 1, 1), "groups": 1}
    return [
        ([r.normal(size=(2, 3, 6)), r.normal(size=(4, 3, 3))], one),
        ([r.normal(size=(2, 4, 6, 7)), r.normal(size=(6, 2, 3, 2))], two),
        ([r.normal(size=(1, 2, 3, 4, 3)), r.normal(size=(2, 2, 2, 2, 2))], three),
    ]


def _transpose_samples() -> list:
    return [
        ([onp.cos(_conv(*arrays, **params)), arrays[1]], {**params, "size": arrays[0].shape[2:]})
        for arrays, params in _samples()
    ]


def _weight_samples() -> list:
    return [
        ([arrays[0], onp.cos(_conv(*arrays, **params))], {**params, "kernel": arrays[1].shape[2:]})
        for arrays, params in _samples()
    ]


def _cost(arrays: Sequence, params: dict) -> float:
    """About how many multiplications, from what is at hand before every call."""
    x, w = arrays
    fits = len(x.shape) == len(w.shape) > 2 and x.shape[1]
    return x.size // x.shape[1] * w.size / prod(params["stride"]) if fits else 0


def _transpose_cost(arrays: Sequence, params: dict) -> float:
    return _cost(arrays, {"stride": ()})


def _weight_cost(arrays: Sequence, params: dict) -> float:
    x, g = arrays
    return g.size * (x.size // max(x.shape[0] * prod(x.shape[2:]), 1)) * prod(params["kernel"])


# ------------------------------------------------------------------ rows
conv = primitive(
    "npx.conv",
    numpy=_conv,
    vjp=[
        lambda g, y, x, w, **p: conv_transpose(g, w, size=tuple(x.shape[2:]), **p),
        lambda g, y, x, w, **p: conv_weight_grad(x, g, kernel=tuple(w.shape[2:]), **p),
    ],
    jvp="multilinear",
    saves="in",
    shape=_conv_shape,
    flops=lambda metas, params, out: 2 * out.size * prod(metas[1].shape[1:]),
    worth=from_cost(_cost, mxnet=2e6),
    samples=_samples,
)

conv_transpose = primitive(
    "npx.conv_transpose",
    numpy=_conv_transpose,
    vjp=[
        lambda g, y, x, w, size, **p: conv(g, w, **p),
        lambda g, y, x, w, size, **p: conv_weight_grad(g, x, kernel=tuple(w.shape[2:]), **p),
    ],
    jvp="multilinear",
    saves="in",
    shape=_transpose_shape,
    flops=lambda metas, params, out: 2 * metas[0].size * prod(metas[1].shape[1:]),
    worth=from_cost(_transpose_cost, mxnet=2e6),
    samples=_transpose_samples,
)

conv_weight_grad = primitive(
    "npx.conv_weight_grad",
    numpy=_conv_weight_grad,
    vjp=[
        lambda g, y, x, h, kernel, **p: conv_transpose(h, g, size=tuple(x.shape[2:]), **p),
        lambda g, y, x, h, kernel, **p: conv(x, g, **p),
    ],
    jvp="multilinear",
    saves="in",
    shape=_weight_shape,
    flops=lambda metas, params, out: 2 * metas[1].size * prod(out.shape[1:]),
    worth=from_cost(_weight_cost, mxnet=2e7),
    samples=_weight_samples,
)
