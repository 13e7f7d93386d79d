"""Convolutions of float32 images and their gradients in C (core/compiled/conv.h): windows as rows of a matrix, and a
product for some images at a time, on all threads. Who calls them has the same in NumPy, for what is not taken.

Libraries with threads of their own do not share two cores with ours: each looks for work for a while after its last, on
the core that the other needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from ..compiled import team
from . import kernels, products, threads
from .memory import empty

Sizes = Sequence[int]
LEAST, MOST = 1 << 16, 6e7  # multiplications from which a call pays, and from which oneDNN is faster
SHARED = 1 << 19  # multiplications from which threads share them
CACHED, ROOM = 1 << 17, 1 << 22  # elements of the windows that are multiplied at a time; at most, of one image
F4 = kernels.F4


def takes(weight: Sizes, groups: int, *images: Any) -> bool:
    """Whether a convolution with a weight [O, C, down, across] of these images [N, C, H, W], or a gradient from these
    images and its results', is done here: float32 arrays in C order."""
    if groups != 1 or len(weight) != 4 or not kernels.takes(*images, least=1) or products.best() is None:
        return False
    n, _, *size = images[0].shape
    return len(size) == 2 and n * prod(size) * prod(weight) >= LEAST and prod(size) * prod(weight[1:]) <= ROOM


def left(cost: float, weight: Sizes, groups: int, *images: Any) -> float:
    """The cost as a backend is asked whether it is worth it: 0 where this is as fast as MXNet and torch, or faster."""
    return 0 if cost < MOST and takes(weight, groups, *images) else cost


def run(shape: Sizes, weight: Sizes, out: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes, x: Any = None, w: Any = None,
        g: Any = None, y: Any = None, gx: Any = None, gw: bool = False) -> Any:  # fmt: skip
    """Fill y [N, O, *out] from x and w, or gx and the sum of gw [O, C, down, across] from g; that sum, or y, or gx.

    None, and nothing of use done, where there were floating point errors: NumPy has to warn."""
    (n, channels, height, width), (filters, _, down, across) = shape, weight
    length, pixels = down * across * channels, out[0] * out[1]
    whole = (height + 2 * pad[0]) * (width + 2 * pad[1]) * channels
    pieces = min(n, 4) if n * pixels * length * filters >= SHARED else 1
    block = max(min(CACHED // (pixels * length), -(-n // pieces)), 1)
    room = block * (whole + pixels * (length + filters))
    if w is not None:
        w = onp.ascontiguousarray(w.transpose(0, 2, 3, 1), F4)
    sums = empty((pieces, filters, down, across, channels), F4) if gw else None
    blas = products.best()
    assert blas is not None
    numbers = (n, channels, height, width, filters, down, across, *out, *stride, *pad, *dilate)
    sizes = (blas.places["f"], blas.local, threads.team.size, pieces, room, block, *numbers)
    with blas.around():
        if team.conv(sizes, x, w, g, y, gx, sums, empty((pieces, room), F4)):
            return None
    if sums is None:
        return gx if y is None else y
    return onp.ascontiguousarray(sums.sum(0).transpose(0, 3, 1, 2))
