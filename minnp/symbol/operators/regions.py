"""Regions and windows of images: their pooling, other sizes, windows as columns, correlation, free windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import stop_gradient

from ..operator import Shape, operator
from .boxes import constant
from .layers import vector

ROOM = 1 << 24  # elements of the images that regions are cut from at a time


# ------------------------------------------------------------------ pooling of regions
def _by_regions(pool: Callable[[slice], Any], count: int, each: int) -> Any:
    """pool(regions) of all of them, of as many at a time as have room for `each` elements."""
    step = max(ROOM // each, 1)
    found = [pool(slice(start, start + step)) for start in range(0, max(count, 1), step)]
    return np.concatenate(found, axis=0) if len(found) > 1 else found[0]


def _rounded(x: onp.ndarray) -> onp.ndarray:
    """Whole numbers, halves away from 0."""
    return onp.sign(x) * onp.floor(onp.abs(x) + x.dtype.type(0.5))


def _highest(data: onp.ndarray, rois: onp.ndarray, pooled_size: Shape, spatial_scale: float) -> onp.ndarray:
    """The flat place in data of the largest element of each part of each region [R, C, *pooled_size]; -1 for none."""
    n, channels, height, width = data.shape
    tall, wide = pooled_size
    real = data.dtype.type  # what MXNet computes in: where parts end is rounded
    out = onp.full((len(rois), channels, tall, wide), -1)
    scaled = rois[:, 1:] * real(spatial_scale)
    edges = _rounded(scaled).astype(int)
    for r, (image, (left, top, right, bottom)) in enumerate(zip(rois[:, 0].astype(int), edges, strict=True)):
        if not 0 <= image < n:
            continue
        size = real(max(bottom - top + 1, 1) / tall), real(max(right - left + 1, 1) / wide)
        cuts = [
            [(int(onp.floor(real(i) * step)) + start, int(onp.ceil(real(i + 1) * step)) + start) for i in range(count)]
            for step, start, count in ((size[0], top, tall), (size[1], left, wide))
        ]
        for i, j in product(range(tall), range(wide)):
            (y0, y1), (x0, x1) = [
                (min(max(a, 0), most), min(max(b, 0), most))
                for (a, b), most in ((cuts[0][i], height), (cuts[1][j], width))
            ]
            if y1 > y0 and x1 > x0:
                at = data[image, :, y0:y1, x0:x1].reshape(channels, -1).argmax(1)
                row, column = onp.divmod(at, x1 - x0)
                out[r, :, i, j] = (onp.arange(channels) + image * channels) * height * width
                out[r, :, i, j] += (y0 + row) * width + x0 + column
    return out


_highest_of = constant(_highest)


def roi_pooling(data: Any, rois: Any, pooled_size: Shape, spatial_scale: float) -> tuple:
    """(The largest elements of the parts of regions [R, C, *pooled_size], where they are); 0 of empty parts.

    rois   [R, 5]: number of the image, left, top, right, bottom, times spatial_scale in data's pixels (Girshick 2015)
    """
    at = _highest_of(data, rois, pooled_size, spatial_scale)
    found = np.take(np.reshape(data, (-1,)), np.maximum(at, 0))
    places = np.where(at >= 0, at % (data.shape[2] * data.shape[3]), -1)
    return np.where(at >= 0, found, 0.0).astype(data.dtype), places.astype(data.dtype)


def _pooled(p: dict, data: Shape, rois: Shape) -> Shape:
    channels = data[1] // prod(p["pooled_size"]) if p.get("position_sensitive") else data[1]
    return (rois[0], channels, *p["pooled_size"])


operator("ROIPooling", roi_pooling, ("data", "rois"), "pooled_size:shape spatial_scale:float",
         outputs=("output", "maxidx"), visible=1, result=lambda p, *s: [_pooled(p, *s)] * 2)  # fmt: skip


def _sampling(
    low: onp.ndarray, length: onp.ndarray, parts: int, size: int, ratio: int, dtype: Any
) -> onp.ndarray:  # fmt: skip
    """Weights [R, parts, size] of the pixels of one axis: the average of linearly interpolated samples of each part."""
    out = onp.zeros((len(low), parts, size), dtype)
    for r, (start, extent) in enumerate(zip(low, length, strict=True)):
        count = ratio if ratio > 0 else ceil(extent / parts)
        step = extent / dtype.type(parts)
        inside = (onp.arange(count, dtype=dtype) + dtype.type(0.5)) * step / dtype.type(count)
        at = start + onp.arange(parts, dtype=dtype)[:, None] * step + inside
        weight = ((at >= -1) & (at <= size)) / dtype.type(count)
        at = at.clip(0, size - 1)
        below = onp.minimum(at.astype(int), size - 1)
        above = onp.minimum(below + 1, size - 1)
        rest = at - below
        part = onp.broadcast_to(onp.arange(parts)[:, None], at.shape)
        onp.add.at(out[r], (part, below), weight * (1 - rest))
        onp.add.at(out[r], (part, above), weight * rest)
    return out


def _align_weights(rois: onp.ndarray, size: Shape, pooled_size: Shape, spatial_scale: float, sample_ratio: int,
                   aligned: bool) -> tuple:  # fmt: skip
    """(numbers of the images, weights of rows [R, P, H], of columns [R, Q, W])."""
    number = rois[:, 0].astype(onp.int64) if rois.shape[1] == 5 else onp.zeros(len(rois), onp.int64)
    edges = rois[:, -4:] * rois.dtype.type(spatial_scale) - rois.dtype.type(0.5 * aligned)
    extent = edges[:, 2:] - edges[:, :2]
    extent = extent if aligned else onp.maximum(extent, 1)
    rows, columns = (
        _sampling(edges[:, 1 - a], extent[:, 1 - a], pooled_size[a], size[a], sample_ratio, rois.dtype) for a in (0, 1)
    )
    rows[number < 0] = 0
    return onp.maximum(number, 0), rows, columns


_align_weights_of = constant(_align_weights)


def roi_align(data: Any, rois: Any, pooled_size: Shape, spatial_scale: float, sample_ratio: int = -1,
              position_sensitive: bool = False, aligned: bool = False) -> Any:  # fmt: skip
    """Averages of samples of the parts of regions [R, C, *pooled_size] (He et al. 2017).

    rois                 as of ROIPooling, or [R, 4] of the first image
    sample_ratio         samples of each part along each axis; -1: one for each pixel
    position_sensitive   each part has channels of its own: C is data's channels / prod(pooled_size)
    aligned              pixels are half a pixel to the left, where they belong
    """
    _, channels, *size = data.shape
    number, rows, columns = _align_weights_of(rois, tuple(size), pooled_size, spatial_scale, sample_ratio, aligned)
    count = rois.shape[0]

    def pooled(some: slice) -> Any:  # of each region its image, so not of all of them at once
        narrow = np.matmul(data[number[some]], np.swapaxes(columns[some], 1, 2)[:, None])
        return np.matmul(rows[some][:, None], narrow)

    y = _by_regions(pooled, count, channels * prod(size))
    if not position_sensitive:
        return y
    parts = prod(pooled_size)
    y = np.reshape(y, (count, channels // parts, parts, parts))
    return np.reshape(np.diagonal(y, 0, 2, 3), (count, channels // parts, *pooled_size))


operator("_contrib_ROIAlign", roi_align, ("data", "rois"),
         "pooled_size:shape spatial_scale:float sample_ratio:int=-1 position_sensitive:bool=0 aligned:bool=0",
         result=lambda p, *s: [_pooled(p, *s)])  # fmt: skip


# ------------------------------------------------------------------ parts of regions with channels of their own
def _edges(rois: onp.ndarray, spatial_scale: float) -> tuple[onp.ndarray, onp.ndarray]:
    """(top and left of regions in pixels, height and width, of 0.1 at least), both [R, 2]."""
    real = rois.dtype.type  # what MXNet computes in: where parts end is rounded
    low, high = _rounded(rois[:, 2:0:-1]), _rounded(rois[:, 4:2:-1]) + 1
    low, high = low * real(spatial_scale), high * real(spatial_scale)
    return low, onp.maximum(high - low, real(0.1))


def _part_weights(rois: onp.ndarray, size: Shape, pooled_size: int, spatial_scale: float) -> tuple:
    """(numbers of the images, weights of rows [R, P, H], of columns [R, P, W]): averages of each part's pixels."""
    low, extent = _edges(rois, spatial_scale)
    parts = onp.arange(pooled_size, dtype=rois.dtype)
    found = []
    for axis, count in enumerate(size):
        start, step = low[:, axis, None], (extent[:, axis] / rois.dtype.type(pooled_size))[:, None]
        first = onp.floor(parts * step + start).clip(0, count)[..., None]
        last = onp.ceil((parts + 1) * step + start).clip(0, count)[..., None]
        at = onp.arange(count)
        inside = ((at >= first) & (at < last)).astype(rois.dtype)
        found.append(inside / onp.maximum(last - first, 1).astype(rois.dtype))
    return rois[:, 0].astype(onp.int64), *found


_part_weights_of = constant(_part_weights)


def _groups(pooled_size: int, group_size: int) -> onp.ndarray:
    """The row, or column, of groups of channels that each row of parts has."""
    return (onp.arange(pooled_size) * group_size // pooled_size).clip(0, group_size - 1)


def psroi_pooling(data: Any, rois: Any, spatial_scale: float, output_dim: int, pooled_size: int,
                  group_size: int = 0) -> Any:  # fmt: skip
    """Averages of the parts of regions [R, output_dim, P, P], each of channels of its own (Dai et al. 2016).

    data         [N, output_dim G G, H, W]; G is group_size, 0: P, which is pooled_size
    rois         as of ROIPooling
    """
    n, _, *size = data.shape
    number, rows, columns = _part_weights_of(rois, tuple(size), pooled_size, spatial_scale)
    group = group_size or pooled_size
    at = _groups(pooled_size, group)
    images = np.reshape(data, (n, output_dim, group, group, *size))[:, :, at[:, None], at]

    def pooled(some: slice) -> Any:
        narrow = np.einsum("rdpqhw,rqw->rdpqh", images[number[some]], columns[some])
        return np.einsum("rdpqh,rph->rdpq", narrow, rows[some])

    return _by_regions(pooled, rois.shape[0], output_dim * pooled_size**2 * prod(size))


def _between(images: Any, start: Any, size: Shape, y: Any, x: Any) -> Any:
    """Elements of flat images that start at `start`, linearly interpolated at y and x from 0 to size - 1."""
    top, left = stop_gradient(np.floor(y)), stop_gradient(np.floor(x))
    down, right = y - top, x - left
    total = 0.0
    for a, b in product((0, 1), (0, 1)):
        row, column = np.minimum(top + a, size[0] - 1), np.minimum(left + b, size[1] - 1)
        share = (down if a else 1 - down) * (right if b else 1 - right)
        total = total + np.take(images, start + (row * size[1] + column).astype(onp.int64)) * share
    return total


def _part_samples(rois: onp.ndarray, pooled_size: int, spatial_scale: float, count: int) -> tuple:
    """(numbers of the images, rows and columns of each part's samples [R, P, S], heights and widths of regions)."""
    low, extent = _edges(rois, spatial_scale)
    low = low - rois.dtype.type(0.5)
    parts, samples = (onp.arange(c, dtype=rois.dtype) for c in (pooled_size, count))
    step = (extent / rois.dtype.type(pooled_size))[..., None, None]
    at = parts[:, None] * step + low[..., None, None] + samples * (step / rois.dtype.type(count))
    return rois[:, 0].astype(onp.int64), at[:, 0], at[:, 1], extent[:, 0], extent[:, 1]


_part_samples_of = constant(_part_samples)


def deformable_psroi_pooling(
    data: Any, rois: Any, trans: Any = None, *, spatial_scale: float, output_dim: int, group_size: int,
    pooled_size: int, part_size: int = 0, sample_per_part: int = 1, trans_std: float = 0.0, no_trans: bool = False,
) -> Any:  # fmt: skip
    """Averages of samples of the parts of regions, each moved by itself [R, output_dim, P, P] (Dai et al. 2017).

    data    as of PSROIPooling
    trans   [R, 2 classes, part_size, part_size]: how far (x, y) the parts of each class's share of output_dim are
            moved, times trans_std and the region's size
    """
    channels, size = data.shape[1], data.shape[2:]
    number, y, x, tall, wide = _part_samples_of(rois, pooled_size, spatial_scale, sample_per_part)
    count, at = rois.shape[0], _groups(pooled_size, group_size)
    classes = 1 if no_trans else trans.shape[1] // 2
    y, x = y[:, None, None, :, None, :, None], x[:, None, None, None, :, None, :]  # [R, class, share, P, P, S, S]
    if not no_trans:
        part = _groups(pooled_size, part_size or pooled_size)
        moved = np.reshape(trans, (count, classes, 2, *trans.shape[2:]))[..., part[:, None], part] * trans_std
        x, y = (p + (moved[:, :, i] * extent[:, None, None, None])[:, :, None, :, :, None, None]
                for i, p, extent in ((0, x, wide), (1, y, tall)))  # fmt: skip
    seen = stop_gradient((y >= -0.5) & (y <= size[0] - 0.5) & (x >= -0.5) & (x <= size[1] - 0.5)).astype(data.dtype)
    y, x = np.clip(y, 0.0, size[0] - 1.0), np.clip(x, 0.0, size[1] - 1.0)
    channel = (onp.arange(output_dim)[:, None, None] * group_size + at[:, None]) * group_size + at
    channel = channel.reshape(classes, -1, pooled_size, pooled_size, 1, 1)
    images = np.reshape(data, (-1,))

    def pooled(some: slice) -> Any:
        start = (np.reshape(number[some], (-1, *[1] * 6)) * channels + channel) * prod(size)
        found = _between(images, start, size, y[some], x[some]) * seen[some]
        y_ = np.sum(found, axis=(5, 6)) / np.maximum(np.sum(seen[some], axis=(5, 6)), 1.0)
        return np.reshape(y_, (-1, output_dim, pooled_size, pooled_size)).astype(data.dtype)

    return _by_regions(pooled, count, output_dim * (pooled_size * sample_per_part) ** 2)


def _square_parts(p: dict, data: Shape, rois: Shape, *trans: Shape) -> list[Shape]:
    return [(rois[0], p["output_dim"], p["pooled_size"], p["pooled_size"])]


operator("_contrib_PSROIPooling", psroi_pooling, ("data", "rois"),
         "spatial_scale:float output_dim:int pooled_size:int group_size:int=0", result=_square_parts)  # fmt: skip
operator("_contrib_DeformablePSROIPooling", deformable_psroi_pooling,
         lambda p: ["data", "rois", *([] if p["no_trans"] else ["trans"])],
         "spatial_scale:float output_dim:int group_size:int pooled_size:int part_size:int=0 sample_per_part:int=1 "
         "trans_std:float=0 no_trans:bool=0", result=_square_parts)  # fmt: skip


# ------------------------------------------------------------------ turned regions
def _turned_samples(rois: onp.ndarray, size: Shape, pooled_size: Shape, spatial_scale: float, ratio: int) -> tuple:
    """(numbers of the images, rows, columns and weights of the samples of each part [R, P, Q, S])."""
    real = rois.dtype.type
    scaled = rois[:, 1:5] * real(spatial_scale)
    extent = onp.maximum(scaled[:, :1:-1], real(1))  # height and width
    angle = rois[:, 5] * real(onp.pi / 180)
    counts = [[ratio if ratio > 0 else ceil(e / p) for e, p in zip(sides, pooled_size)] for sides in extent]
    most = max((a * b for a, b in counts), default=1)
    found = onp.zeros((3, len(rois), *pooled_size, most), rois.dtype)
    for r, (n, sides, turn) in enumerate(zip(counts, extent, angle, strict=True)):
        down, across = (
            (onp.arange(p, dtype=rois.dtype)[:, None] + (onp.arange(c, dtype=rois.dtype) + real(0.5)) / real(c))
            * (s / real(p))
            - s / real(2)
            for p, c, s in zip(pooled_size, n, sides, strict=True)
        )
        down, across = down[:, None, :, None], across[None, :, None, :]
        y = down * onp.cos(turn) - across * onp.sin(turn) + scaled[r, 1]
        x = across * onp.cos(turn) + down * onp.sin(turn) + scaled[r, 0]
        seen = (y >= -1) & (y <= size[0]) & (x >= -1) & (x <= size[1])
        all_of = (y.clip(0, size[0] - 1), x.clip(0, size[1] - 1), seen / real(n[0] * n[1]))
        found[:, r, :, :, : n[0] * n[1]] = onp.stack(all_of).reshape(3, *pooled_size, -1)
    return rois[:, 0].astype(onp.int64), *found


_turned_samples_of = constant(_turned_samples)


def rroi_align(data: Any, rois: Any, pooled_size: Shape, spatial_scale: float, sampling_ratio: int = -1) -> Any:
    """Averages of samples of the parts of turned regions [R, C, *pooled_size] (Ma et al. 2018).

    rois             [R, 6]: number of the image, the middle's x and y, width, height, times spatial_scale in data's
                     pixels, and the angle in degrees
    sampling_ratio   samples of each part along each axis; -1: one for each pixel
    """
    _, channels, *size = data.shape
    number, y, x, weight = _turned_samples_of(rois, tuple(size), pooled_size, spatial_scale, sampling_ratio)
    images = np.reshape(data, (-1,))

    def pooled(some: slice) -> Any:
        start = (np.reshape(number[some], (-1, 1)) * channels + onp.arange(channels)) * prod(size)
        found = _between(images, start[..., None, None, None], size, y[some][:, None], x[some][:, None])
        return np.sum(found * weight[some][:, None], axis=4).astype(data.dtype)

    return _by_regions(pooled, rois.shape[0], channels * prod(y.shape[1:]))


operator("_contrib_RROIAlign", rroi_align, ("data", "rois"),
         "pooled_size:shape spatial_scale:float sampling_ratio:int=-1",
         result=lambda p, data, rois: [(rois[0], data[1], *p["pooled_size"])])  # fmt: skip


# ------------------------------------------------------------------ other sizes
def _separately(data: Any, rows: onp.ndarray, columns: onp.ndarray) -> Any:
    """data [..., H, W] with its rows and columns mixed by [h, H] and [w, W]."""
    return np.matmul(np.matmul(rows.astype(data.dtype), data), columns.T.astype(data.dtype))


def adaptive_average(data: Any, output_size: Shape = ()) -> Any:
    """Averages of the parts of images [N, C, H, W] that are left of cutting them into output_size (1: one number)."""

    def shares(count: int, size: int) -> onp.ndarray:
        i, at = onp.arange(count)[:, None], onp.arange(size)
        inside = (at >= i * size // count) & (at < -(-(i + 1) * size // count))
        return inside / inside.sum(axis=1, keepdims=True)

    size = _square(output_size)
    return _separately(data, shares(size[0], data.shape[2]), shares(size[1], data.shape[3]))


def _square(size: Shape) -> Shape:
    return (*size, *size)[:2] if size else (1, 1)


operator("_contrib_AdaptiveAvgPooling2D", adaptive_average, ("data",), "output_size:shape=()",
         result=lambda p, data: [(*data[:2], *_square(p["output_size"]))])  # fmt: skip


def _resized(p: dict, data: Shape, like: Shape = ()) -> Shape:
    """The height and width of what BilinearResize2D gives."""
    scales, mode = (p["scale_height"], p["scale_width"]), p["mode"]
    if mode == "like":
        return like[2:]
    if mode == "size":
        given = p["height"], p["width"]
        return tuple(n if s is None else int(s * m) for s, n, m in zip(scales, given, data[2:], strict=True))
    if mode == "odd_scale":
        if None in scales:
            raise ValueError("mode odd_scale wants scale_height and scale_width")
        return tuple(int(m * s) if m % 2 == 0 else int((m - 1) * s) + 1 for m, s in zip(data[2:], scales, strict=True))
    _, kind, way = mode.split("_")
    return tuple(m + (0 if m % 2 == (kind == "odd") else 1 if way == "up" else -1) for m in data[2:])


def interpolation(count: int, size: int, align_corners: bool) -> onp.ndarray:
    """Weights [count, size] that make `count` numbers of `size`, linearly."""
    i = onp.arange(count, dtype=onp.float32)
    if align_corners:
        at = i * onp.float32((size - 1) / (count - 1) if count > 1 else 0)
    else:
        at = onp.maximum((i + onp.float32(0.5)) * onp.float32(size / count) - onp.float32(0.5), 0)
    below = onp.minimum(at.astype(int), size - 1)
    rest = onp.where(below < size - 1, at - below, 0)
    out = onp.zeros((count, size), onp.float64)
    onp.add.at(out, (onp.arange(count), below), 1 - rest)
    onp.add.at(out, (onp.arange(count), onp.minimum(below + 1, size - 1)), rest)
    return out


def bilinear_resize(data: Any, like: Any = None, align_corners: bool = True, **options: Any) -> Any:
    """Images [N, C, H, W] in another size, linearly interpolated.

    mode            size: height and width, or, where they are given, scale_height and scale_width times the images'
                    own; like: that of the second input; odd_scale: (n - 1) scale + 1 of an odd n;
                    to_even_down, to_even_up, to_odd_down, to_odd_up: the next number of that kind
    align_corners   the corners' pixels stay what they are; else the pixels' areas are what is scaled
    """
    size = _resized(options, data.shape, () if like is None else like.shape)
    rows, columns = (interpolation(n, m, align_corners) for n, m in zip(size, data.shape[2:], strict=True))
    return _separately(data, rows, columns)


operator("_contrib_BilinearResize2D", bilinear_resize,
         lambda p: ["data", *(["like"] if p["mode"] == "like" else [])],
         "height:int=1 width:int=1 scale_height:float=None scale_width:float=None "
         "mode:like|odd_scale|size|to_even_down|to_even_up|to_odd_down|to_odd_up=size align_corners:bool=1",
         result=lambda p, data, *like: [(*data[:2], *_resized(p, data, *like))])  # fmt: skip


# ------------------------------------------------------------------ windows as columns
def _windows(size: Shape, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape) -> tuple[Shape, list[tuple]]:
    """(how many windows there are along each axis; by place in a window, what it sees of padded images)."""
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, d, p in zip(size, kernel, stride, dilate, pad))
    if min(out) < 1:
        raise ValueError(f"the kernel {kernel} is larger than the images {size}")
    seen = [
        tuple(slice(i * d, i * d + (o - 1) * s + 1, s) for i, o, s, d in zip(place, out, stride, dilate, strict=True))
        for place in product(*map(range, kernel))
    ]
    return out, seen


def _steps(p: dict) -> tuple[Shape, Shape, Shape]:
    ones = (1,) * len(p["kernel"])
    return p["stride"] or ones, p["dilate"] or ones, p["pad"] or (0,) * len(ones)


def im2col(data: Any, **options: Any) -> Any:
    """The windows of images [N, C, *S] as columns [N, C prod(kernel), windows]."""
    n, channels, *size = data.shape
    stride, dilate, pad = _steps(options)
    out, seen = _windows(tuple(size), options["kernel"], stride, dilate, pad)
    padded = np.pad(data, ((0, 0), (0, 0), *((p, p) for p in pad)))
    parts = [np.reshape(padded[(slice(None), slice(None), *s)], (n, channels, 1, prod(out))) for s in seen]
    return np.reshape(np.concatenate(parts, axis=2), (n, channels * len(seen), prod(out)))


def col2im(data: Any, output_size: Shape, **options: Any) -> Any:
    """The sums of columns [N, C prod(kernel), windows] where they came from in images [N, C, *output_size]."""
    stride, dilate, pad = _steps(options)
    out, seen = _windows(output_size, options["kernel"], stride, dilate, pad)
    n, channels = data.shape[0], data.shape[1] // len(seen)
    parts = np.reshape(data, (n, channels, len(seen), *out))
    padded = np.zeros_like(data, shape=(n, channels, *(m + 2 * p for m, p in zip(output_size, pad, strict=True))))
    for i, s in enumerate(seen):
        padded[(slice(None), slice(None), *s)] += parts[:, :, i]
    return padded[(slice(None), slice(None), *(slice(p, p + m) for m, p in zip(output_size, pad, strict=True)))]


_COLUMNS = "kernel:shape stride:shape=() dilate:shape=() pad:shape=()"
operator("im2col", im2col, ("data",), _COLUMNS)
operator("col2im", col2im, ("data",), f"output_size:shape {_COLUMNS}")


# ------------------------------------------------------------------ correlation (Fischer et al. 2015)
def _correlated(p: dict, data: Shape) -> tuple[int, int, int, int]:
    """(height and width of the result, how many displacements there are to each side, size of padded images)."""
    border = p["max_displacement"] + (p["kernel_size"] - 1) // 2
    tall, wide = (-(-(n + 2 * p["pad_size"] - 2 * border) // p["stride1"]) for n in data[2:])
    if tall < 1 or wide < 1:
        raise ValueError(f"the displacements and the kernel are larger than the images {data}")
    return tall, wide, p["max_displacement"] // p["stride2"], data[3] + 2 * p["pad_size"]


def correlation(data1: Any, data2: Any, is_multiply: bool = True, **options: Any) -> Any:
    """What windows of two images have in common [N, D^2, H', W'], for D displacements along each axis.

    The mean of the products (or absolute differences) of data1 [N, C, H, W] around each place and of data2 around the
    same place, moved by up to max_displacement in steps of stride2.
    """
    tall, wide, radius, _ = _correlated(options, data1.shape)
    kernel, stride, most = options["kernel_size"], options["stride1"], options["max_displacement"]
    pad = options["pad_size"]
    a, b = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (data1, data2))

    def part(x: Any, y: int, z: int) -> Any:
        return x[:, :, y : y + (tall - 1) * stride + 1 : stride, z : z + (wide - 1) * stride + 1 : stride]

    moves = range(-radius * options["stride2"], radius * options["stride2"] + 1, options["stride2"])
    found = []
    for down, across in product(moves, moves):
        total = 0.0
        for i, j in product(range(kernel), range(kernel)):
            one, other = part(a, most + i, most + j), part(b, most + down + i, most + across + j)
            total = total + np.sum(one * other if is_multiply else np.abs(one - other), axis=1)
        found.append(total / (kernel * kernel * data1.shape[1]))
    return np.stack(found, axis=1)


def _correlation_shape(p: dict, data1: Shape, data2: Shape) -> list[Shape]:
    tall, wide, radius, _ = _correlated(p, data1)
    return [(data1[0], (2 * radius + 1) ** 2, tall, wide)]


operator("Correlation", correlation, ("data1", "data2"),
         "kernel_size:int=1 max_displacement:int=1 stride1:int=1 stride2:int=1 pad_size:int=0 is_multiply:bool=1",
         fill=lambda p, s: [s[0] or s[1]] * 2, result=_correlation_shape)  # fmt: skip


# ------------------------------------------------------------------ deformable convolution (Dai et al. 2017)
def deformable(
    data: Any, offset: Any, mask: Any, weight: Any, bias: Any, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape,
    num_group: int, num_deformable_group: int, blended: bool,
) -> Any:  # fmt: skip
    """A convolution whose windows see each place moved by an offset (y, x), between the pixels.

    offset    [N, 2 G K, *out] for G groups of channels and K places of a window; mask [N, G K, *out] or None
    blended   images fade to 0 within the pixel around them; else they end at once, and go on to the last pixel's end
    """
    n, channels, height, width = data.shape
    groups, places = num_deformable_group, prod(kernel)
    out = offset.shape[2:]
    moved = np.reshape(offset, (n, groups, places, 2, *out))
    i, j = onp.unravel_index(onp.arange(places), kernel)
    dtype = data.dtype
    y = moved[:, :, :, 0] + (onp.arange(out[0])[:, None] * stride[0] - pad[0] + (i * dilate[0])[:, None, None])
    x = moved[:, :, :, 1] + (onp.arange(out[1])[None, :] * stride[1] - pad[1] + (j * dilate[1])[:, None, None])
    flat = np.reshape(data, (n, groups, channels // groups, height * width))
    seen = 0.0 if blended else _inside(y, height, 0) * _inside(x, width, 0)
    if not blended:
        y, x = np.minimum(y, height - 1.0), np.minimum(x, width - 1.0)
    top, left = stop_gradient(np.floor(y)), stop_gradient(np.floor(x))
    total = 0.0
    for a, b in product((0, 1), (0, 1)):
        row, column = top + a, left + b
        share = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        share = share * (_inside(row, height, 1) * _inside(column, width, 1) if blended else seen).astype(dtype)
        at = np.clip(row, 0, height - 1) * width + np.clip(column, 0, width - 1)
        at = np.reshape(at.astype(onp.int64), (n, groups, 1, -1))
        found = np.take_along_axis(flat, np.broadcast_to(at, (*flat.shape[:3], at.shape[3])), axis=3)
        total = total + found * np.reshape(share, (n, groups, 1, -1))
    if mask is not None:
        total = total * np.reshape(mask, (n, groups, 1, -1))
    columns = np.reshape(total, (n, num_group, channels // num_group * places, prod(out)))
    filters = weight.shape[0]
    y = np.matmul(np.reshape(weight, (num_group, filters // num_group, -1)), columns)
    y = np.reshape(y, (n, filters, *out)).astype(dtype)
    return y if bias is None else y + np.reshape(bias, (-1, 1, 1))


def _inside(at: Any, size: int, whole: int) -> Any:
    """Whether places are in an axis: of whole pixels the last is size - 1, of others all that is less than size."""
    return (at >= 0) & (at < size) if not whole else (at >= 0) & (at <= size - 1)


def _deformable(p: dict) -> dict:
    stride, dilate, pad = _steps(p)
    kept = {n: p[n] for n in ("kernel", "num_group", "num_deformable_group")}
    return kept | {"stride": stride, "dilate": dilate, "pad": pad}


def deformable_convolution(data: Any, offset: Any, weight: Any, bias: Any = None, **options: Any) -> Any:
    """See deformable."""
    return deformable(data, offset, None, weight, bias, **_deformable(options), blended=False)


def modulated_convolution(
    data: Any, offset: Any, mask: Any, weight: Any, bias: Any = None, **options: Any
) -> Any:  # fmt: skip
    """See deformable; each place of a window counts as much as the mask says (Zhu et al. 2018)."""
    return deformable(data, offset, mask, weight, bias, **_deformable(options), blended=True)


def _deformable_out(p: dict, data: Shape) -> Shape:
    return _windows(data[2:], p["kernel"], *_steps(p))[0]


def _deformable_fill(masked: bool) -> Any:
    def fill(p: dict, shapes: list) -> list:
        data = shapes[0]
        if data is None:
            return shapes
        out, each = _deformable_out(p, data), p["num_deformable_group"] * prod(p["kernel"])
        found = [data, (data[0], 2 * each, *out)]
        found += [(data[0], each, *out)] * masked
        found += [(p["num_filter"], data[1] // p["num_group"], *p["kernel"]), vector(p["num_filter"])]
        return found[: len(shapes)]

    return fill


def _deformable_names(*names: str) -> Any:
    return lambda p: [*names, "weight", *([] if p["no_bias"] else ["bias"])]


_DEFORMABLE = (
    f"{_COLUMNS} num_filter:int num_group:int=1 num_deformable_group:int=1 workspace:~int=1024 no_bias:bool=0 "
    "layout:~None|NCDHW|NCHW|NCW=None"
)


def _deformable_result(p: dict, data: Shape, *rest: Sequence) -> list[Shape]:
    return [(data[0], p["num_filter"], *_deformable_out(p, data))]


operator("_contrib_DeformableConvolution", deformable_convolution, _deformable_names("data", "offset"), _DEFORMABLE,
         fill=_deformable_fill(False), result=_deformable_result)  # fmt: skip
operator("_contrib_ModulatedDeformableConvolution", modulated_convolution, _deformable_names("data", "offset", "mask"),
         f"{_DEFORMABLE} im2col_step:~int=64", fill=_deformable_fill(True), result=_deformable_result)  # fmt: skip
