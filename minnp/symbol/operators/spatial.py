"""Images sampled at places that are computed: grids, bilinear sampling, the spatial transformer."""

from __future__ import annotations

from typing import Any

import numpy as onp

import minnp.numpy as np

from ..operator import Shape, operator


def grid_generator(data: Any, transform_type: str, target_shape: Shape = (0, 0)) -> Any:
    """Places [N, 2, H, W], x and y from -1 to 1: an affine map [N, 6] of a regular grid, or one moved by flows in
    pixels [N, 2, H, W] ("warp")."""
    if transform_type == "warp":
        height, width = data.shape[2:]
        y, x = onp.mgrid[:height, :width].astype(data.dtype)
        scale = onp.array([max(width - 1, 1), max(height - 1, 1)], data.dtype)[:, None, None] / 2
        return (data + onp.stack([x, y])) / scale - 1
    height, width = target_shape
    y, x = onp.meshgrid(onp.linspace(-1, 1, height), onp.linspace(-1, 1, width), indexing="ij")
    regular = onp.stack([x, y, onp.ones_like(x)]).reshape(3, -1).astype(data.dtype)
    return np.reshape(np.matmul(np.reshape(data, (-1, 2, 3)), regular), (-1, 2, height, width))


def bilinear_sampler(data: Any, grid: Any) -> Any:
    """data [N, C, H, W] at the places grid [N, 2, h, w] (see grid_generator): [N, C, h, w]; 0 outside the images."""
    n, _, height, width = data.shape
    x, y = (grid[:, 0] + 1) * ((width - 1) / 2), (grid[:, 1] + 1) * ((height - 1) / 2)
    left, top = np.floor(x), np.floor(y)
    images = np.transpose(data, (0, 2, 3, 1))
    batch = onp.arange(n)[:, None, None]
    total = 0.0
    for i in (0, 1):
        for j in (0, 1):
            row, column = top + i, left + j
            inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
            at = [np.clip(p, 0, size - 1).astype(onp.int64) for p, size in ((row, height), (column, width))]
            weight = (1 - np.abs(y - row)) * (1 - np.abs(x - column)) * inside.astype(data.dtype)
            total = total + images[batch, at[0], at[1]] * weight[..., None]
    return np.transpose(total, (0, 3, 1, 2))


def spatial_transformer(
    data: Any, loc: Any, target_shape: Shape = (0, 0), transform_type: str = "affine", sampler_type: str = "bilinear"
) -> Any:
    """data sampled on an affine map loc [N, 6] of a regular grid (Jaderberg et al. 2015)."""
    return bilinear_sampler(data, grid_generator(loc, transform_type, target_shape))


def _grid_shape(p: dict, data: Shape) -> list[Shape]:
    return [data if p["transform_type"] == "warp" else (data[0], 2, *p["target_shape"])]


operator("GridGenerator", grid_generator, ("data",), "transform_type:affine|warp target_shape:shape=(0,0)",
         result=_grid_shape)  # fmt: skip
operator("BilinearSampler", bilinear_sampler, ("data", "grid"), "cudnn_off:~bool=None",
         result=lambda p, data, grid: [(*data[:2], *grid[2:])])  # fmt: skip
operator("SpatialTransformer", spatial_transformer, ("data", "loc"),
         "target_shape:shape=(0,0) transform_type:affine sampler_type:bilinear cudnn_off:~bool=None",
         fill=lambda p, s: [s[0], s[1] or (s[0] and (s[0][0], 6))],
         result=lambda p, data, loc: [(*data[:2], *p["target_shape"])])  # fmt: skip
