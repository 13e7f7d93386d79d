"""Convolution, its transpose and its weight gradient: three rows that are each other's derivatives, to any order.

All three are a gather of windows into columns (or the scatter back) and one BLAS product, over chunks of the batch
small enough that both stay in cache. The gather is done in two steps: shifted copies of the images for each place in
the kernel's last axis; then all windows along the other axes, which are long contiguous runs of those copies. Data is
[N, C, *S], weights [O, C/groups, *K], with one, two or three spatial axes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as onp

from ..core.cpu import convolutions as shared
from ..core.cpu.memory import empty
from ..core.rows.primitive import Joint, Meta, primitive
from ..numpy.facts import either, from_cost, once_imported

Sizes = tuple[int, ...]
CHUNK_BYTES = 1 << 20  # columns and results of one chunk: what a level-2 cache holds,
WIDTH = 1024  # but at least so many columns, for BLAS to make up for reading the weights


def output_size(size: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes) -> Sizes:
    """Spatial size of a convolution's result."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, pad, dilate, strict=True)
    )


# ------------------------------------------------------------------ columns
class Columns:
    """The windows of n images [n, C, *S] as a matrix [groups, C/groups * K, n * out], and back.

    shifted   [C, K[-1], n, *padded, out[-1]]: for each place in the kernel's last axis, what the windows see there
    windows   a view of it, [C, *K, n, *out]
    """

    def __init__(self, n: int, channels: int, size: Sizes, dtype: Any, kernel: Sizes, stride: Sizes, pad: Sizes,
                 dilate: Sizes, groups: int) -> None:  # fmt: skip
        self.n, self.kernel = n, kernel
        self.out = output_size(size, kernel, stride, pad, dilate)
        padded = tuple(s + 2 * p for s, p in zip(size[:-1], pad, strict=False))
        self.shifted = onp.zeros((channels, kernel[-1], n, *padded, self.out[-1]), dtype)
        inside = tuple(slice(p, p + s) for p, s in zip(pad, size[:-1], strict=False))
        self.copies = []  # (index into shifted, index into images), for each place in the last axis that is not all pad
        for k in range(kernel[-1]):
            start = k * dilate[-1] - pad[-1]  # where the first window sees the image
            first = max(0, -(start // stride[-1]))
            count = min(self.out[-1], (size[-1] - 1 - start) // stride[-1] + 1) - first
            if count > 0:
                start += first * stride[-1]
                seen = slice(start, start + (count - 1) * stride[-1] + 1, stride[-1])
                self.copies.append(((slice(None), k, slice(None), *inside, slice(first, first + count)), (..., seen)))
        across, along, image, *rows, item = self.shifted.strides
        offsets = [d * r for d, r in zip(dilate, rows, strict=False)]
        steps = [s * r for s, r in zip(stride, rows, strict=False)]
        self.windows = onp.lib.stride_tricks.as_strided(
            self.shifted,
            (channels, *kernel, n, *self.out),
            (across, *offsets, along, image, *steps, item),
        )
        self.matrix_shape = (groups, channels // groups * prod(kernel), n * prod(self.out))
        self.columns: onp.ndarray | None = None
        self.product: onp.ndarray | None = None

    def gather(self, x: onp.ndarray) -> onp.ndarray:
        """The columns of x [n, C, *S]."""
        images = x.swapaxes(0, 1)
        for place, seen in self.copies:
            self.shifted[place] = images[seen]
        if self.windows.flags.c_contiguous:
            return self.windows.reshape(self.matrix_shape)
        if self.columns is None:
            self.columns = onp.empty(self.windows.shape, self.shifted.dtype)
        onp.copyto(self.columns, self.windows)
        return self.columns.reshape(self.matrix_shape)

    def scatter(self, matrix: onp.ndarray, out: onp.ndarray) -> None:
        """The sum of columns back into their places in out [n, C, *S]."""
        self.shifted.fill(0)
        columns = matrix.reshape(self.windows.shape)
        for offset in product(*map(range, self.kernel[:-1])):
            target = self.windows[(slice(None), *offset)]
            target += columns[(slice(None), *offset)]
        out[...] = 0
        images = out.swapaxes(0, 1)
        for place, seen in self.copies:
            target = images[seen]
            target += self.shifted[place]
        self.shifted.fill(0)  # gather counts on zeros outside the images

    def convolve(self, x: onp.ndarray, weight: onp.ndarray) -> onp.ndarray:
        """x convolved with weight [groups, O/groups, C/groups * K]: [n, O, *out], valid until the next call."""
        matrix = self.gather(x)
        shape = (*weight.shape[:2], matrix.shape[-1])
        if self.product is None or self.product.shape != shape:
            self.product = onp.empty(shape, matrix.dtype)
        onp.matmul(weight, matrix, out=self.product)
        return self.product.reshape(-1, self.n, *self.out).swapaxes(0, 1)

    def products(self, g: onp.ndarray) -> onp.ndarray:
        """g [n, O, *out] as [groups, O/groups, n * out]."""
        matrix = onp.ascontiguousarray(g.swapaxes(0, 1), self.shifted.dtype)
        return matrix.reshape(self.matrix_shape[0], -1, self.matrix_shape[2])


def _chunks(batch: int, channels: int, filters: int, size: Sizes, dtype: Any, kernel: Sizes, stride: Sizes, pad: Sizes,
            dilate: Sizes, groups: int) -> Iterator[tuple[slice, Columns]]:  # fmt: skip
    pixels = prod(output_size(size, kernel, stride, pad, dilate))
    in_cache = CHUNK_BYTES // max(1, (channels * prod(kernel) + filters) * pixels * dtype.itemsize)
    step = max(1, min(batch, max(in_cache, WIDTH // max(1, pixels))))
    for start in range(0, batch, step):
        n = min(step, batch - start)
        yield slice(start, start + n), _columns(n, channels, size, dtype, kernel, stride, pad, dilate, groups)


class _Recent(threading.local):
    """The columns this thread used last: a program's convolutions come again, and fresh memory costs page faults."""

    def __init__(self) -> None:
        self.kept: dict[tuple, Columns] = {}


RECENT, KEPT = _Recent(), 8


def _columns(*key: Any) -> Columns:
    found = RECENT.kept.pop(key, None) or Columns(*key)
    RECENT.kept[key] = found
    if len(RECENT.kept) > KEPT:
        del RECENT.kept[next(iter(RECENT.kept))]
    return found


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
    y = empty((x.shape[0], w.shape[0], *out), dtype)
    if dtype == shared.F4 and shared.takes(w.shape, groups, x):
        done = shared.run(x.shape, w.shape, out, stride, pad, dilate, x=x, w=w, y=y)
        if done is not None:
            return done
    weight = w.reshape(groups, w.shape[0] // groups, -1).astype(work, copy=False)
    for batch, columns in _chunks(x.shape[0], x.shape[1], w.shape[0], size, work, kernel, stride, pad, dilate, groups):
        y[batch] = columns.convolve(x[batch], weight)
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
    if dtype == shared.F4 and shared.takes(w.shape, groups, x):
        y = empty((x.shape[0], channels, *size), dtype)
        if shared.run(y.shape, w.shape, x.shape[2:], stride, pad, dilate, w=w, g=x, gx=y) is not None:
            return y
    back = tuple(d * (k - 1) - p for d, k, p in zip(dilate, kernel, pad, strict=True))
    if set(stride) == {1} and min(back) >= 0 and w.shape[0] <= 2 * channels:
        # The same thing as a convolution with the kernel turned round: a gather, which is cheaper than a scatter.
        turned = onp.flip(w, tuple(range(2, w.ndim))).reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
        turned = turned.reshape(channels, -1, *kernel)
        return _conv(x, turned, stride=stride, pad=back, dilate=dilate, groups=groups)
    y = empty((x.shape[0], channels, *size), dtype)
    weight = w.reshape(groups, w.shape[0] // groups, -1).astype(work, copy=False).swapaxes(1, 2)
    for batch, columns in _chunks(x.shape[0], channels, w.shape[0], size, work, kernel, stride, pad, dilate, groups):
        columns.scatter(weight @ columns.products(x[batch]), y[batch])
    return y


def _conv_weight_grad(x: Any, g: Any, *, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes,
                      groups: int = 1) -> onp.ndarray:  # fmt: skip
    x, g = onp.asarray(x), onp.asarray(g)
    dtype, work = _working(x, g)
    weight = (g.shape[1], x.shape[1] // groups, *kernel)
    if shared.takes(weight, groups, x, g):
        total = shared.run(x.shape, weight, g.shape[2:], stride, pad, dilate, x=x, g=g, gw=True)
        if total is not None:
            return total
    total = onp.zeros((groups, g.shape[1] // groups, x.shape[1] // groups * prod(kernel)), work)
    for batch, columns in _chunks(
        x.shape[0], x.shape[1], g.shape[1], x.shape[2:], work, kernel, stride, pad, dilate, groups
    ):
        total += columns.products(g[batch]) @ columns.gather(x[batch]).swapaxes(1, 2)
    return total.reshape(weight).astype(dtype, copy=False)


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


def _grads_samples() -> list:
    return [([onp.cos(_conv(*arrays, **params)), *arrays], params) for arrays, params in _samples()]


def multiplications(arrays: Sequence, params: dict) -> float:
    """About how many, from what is at hand before every call; 0 for shapes that do not fit."""
    x, w = arrays
    fits = len(x.shape) == len(w.shape) > 2 and x.shape[1]
    return x.size // x.shape[1] * w.size / prod(params["stride"]) if fits else 0


def _cost(arrays: Sequence, params: dict) -> float:
    """The multiplications, but 0 for what is one matrix product, and what is done here as fast."""
    x, w = arrays
    cost = multiplications(arrays, params) if prod(w.shape[2:]) > 1 else 0
    return shared.left(cost, w.shape, params.get("groups", 1), x)


def _pointwise(arrays: Sequence, params: dict) -> float:
    """The multiplications of a convolution with a 1 x 1 kernel, which is one matrix product of every image."""
    w = arrays[1]
    return multiplications(arrays, params) if w.size and prod(w.shape[2:]) == 1 else 0


def _transpose_cost(arrays: Sequence, params: dict) -> float:
    return _cost(arrays, {**params, "stride": ()})


def _grads_cost(arrays: Sequence, params: dict) -> float:
    return _transpose_cost((arrays[0], arrays[2]), params)


def _weight_cost(arrays: Sequence, params: dict) -> float:
    x, g = arrays
    places, groups = prod(params["kernel"]), params.get("groups", 1)
    cost = x.size * g.shape[1] * places / groups / prod(params["stride"]) if places > 1 else 0
    return shared.left(cost, (g.shape[1], x.shape[1], *params["kernel"]), groups, x, g)


def _single(cost: Callable) -> Callable:
    """`cost` in single precision, where torch has oneDNN's kernels; in double it makes columns, as is done here."""
    return lambda arrays, params: cost(arrays, params) if all(a.dtype.char == "f" for a in arrays) else 0


def _many(cost: Callable, channels: int) -> Callable:
    """`cost` where torch's way back to the data is faster: not to few channels in single precision, not in half."""

    def of(arrays: Sequence, params: dict) -> float:
        w = arrays[-1]
        enough = w.dtype.char == "d" or (w.dtype.char == "f" and w.shape[1] * params.get("groups", 1) >= channels)
        return cost(arrays, params) if enough else 0

    return of


# ------------------------------------------------------------------ rules
def _conv_rule(wanted: Sequence[bool], g: Any, y: Any, x: Any, w: Any, **p: Any) -> Sequence[Any]:
    if all(wanted):
        return conv_grads(g, x, w, **p)
    return [
        conv_transpose(g, w, size=tuple(x.shape[2:]), **p) if wanted[0] else None,
        conv_weight_grad(x, g, kernel=tuple(w.shape[2:]), **p) if wanted[1] else None,
    ]


def _conv_grads(g: Any, x: Any, w: Any, **p: Any) -> tuple:
    """The cotangents of x and w."""
    if w.dtype == shared.F4 and shared.takes(w.shape, p.get("groups", 1), x, g):
        gx = empty(x.shape, x.dtype)
        sizes = (g.shape[2:], p["stride"], p["pad"], p["dilate"])
        gw = shared.run(x.shape, w.shape, *sizes, x=x, w=w, g=g, gx=gx, gw=True)
        if gw is not None:
            return gx, gw
    return (
        _conv_transpose(g, w, size=tuple(x.shape[2:]), **p),
        _conv_weight_grad(x, g, kernel=tuple(w.shape[2:]), **p),
    )


def _conv_grads_rule(wanted: Sequence[bool], h: Sequence[Any], y: Any, g: Any, x: Any, w: Any, **p: Any) -> list:
    """The cotangents of g, x and w, from those of x's and w's (None where nothing flows)."""
    hx, hw = h
    of_g = [conv(hx, w, **p)] if hx is not None else []
    of_g += [conv(x, hw, **p)] if hw is not None else []
    return [
        sum(of_g[1:], of_g[0]) if wanted[0] else None,
        conv_transpose(g, hw, size=tuple(x.shape[2:]), **p) if hw is not None else None,
        conv_weight_grad(hx, g, kernel=tuple(w.shape[2:]), **p) if hx is not None else None,
    ]


# ------------------------------------------------------------------ rows
conv = primitive(
    "npx.conv",
    numpy=_conv,
    vjp=Joint(_conv_rule),
    jvp="multilinear",
    saves="in",
    shape=_conv_shape,
    flops=lambda metas, params, out: 2 * out.size * prod(metas[1].shape[1:]),
    # 1 x 1 kernels: oneDNN takes 0.4 to 0.8 of our time for ResNet-50's, of 5e7 multiplications (benchmarks/folding.py)
    worth=either(
        from_cost(_cost, mxnet=4e6),
        from_cost(_single(_cost), torch=4e6),
        once_imported(from_cost(_single(_pointwise), torch=2e7)),
    ),
    samples=_samples,
)

conv_grads = primitive(  # both gradients at once: a backend's kernel shares the work
    "npx.conv_grads",
    numpy=_conv_grads,
    vjp=Joint(_conv_grads_rule),
    saves="in",
    shape=lambda metas, params: (metas[1], metas[2]),
    flops=lambda metas, params, out: 4 * metas[0].size * prod(metas[2].shape[1:]),
    worth=either(from_cost(_grads_cost, mxnet=1e7), from_cost(_many(_grads_cost, 3), torch=4e6)),
    samples=_grads_samples,
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
    worth=either(from_cost(_transpose_cost, mxnet=1e7), from_cost(_many(_transpose_cost, 4), torch=4e6)),
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
    # not MXNet's, which runs a forward for it and is no faster at any size measured
    worth=from_cost(_single(_weight_cost), torch=4e6),
    samples=_weight_samples,
)
