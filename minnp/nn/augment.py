"""Image augmentations: `transform(images, rng) -> images`, images [N, C, H, W], one draw per image.

Each keeps the shape and dtype and returns a new array. Compose them, and give the result to NDArrayIter(transform=...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import minnp.numpy as np

from .checks import named

__all__ = ["Compose", "Crop", "Cutout", "Flip", "Normalise", "Rotate", "Scale"]


class Compose:
    """last(... second(first(images))) of several steps.

    >>> change = nn.augment.Compose(nn.augment.Crop(2), nn.augment.Flip())
    >>> change(np.ones((4, 3, 8, 8)), numpy.random.default_rng(0)).shape
    (4, 3, 8, 8)
    """

    @named()
    def __init__(self, *steps: Callable) -> None:
        self.steps = steps

    def __call__(self, images: Any, rng: Any) -> Any:
        for step in self.steps:
            images = step(images, rng)
        return images


class Crop:
    """A window of the image's own size, at a random place in the image with `pad` zeros around it.

    >>> nn.augment.Crop(2)(np.ones((4, 3, 8, 8)), numpy.random.default_rng(0)).shape
    (4, 3, 8, 8)
    """

    @named()
    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, images: Any, rng: Any) -> Any:
        n, _, h, w = images.shape
        p = self.pad
        padded = np.pad(images, ((0, 0), (0, 0), (p, p), (p, p)))
        top, left = rng.integers(0, 2 * p + 1, n), rng.integers(0, 2 * p + 1, n)
        rows, columns = top[:, None] + np.arange(h), left[:, None] + np.arange(w)
        picked = padded[np.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return np.ascontiguousarray(np.moveaxis(picked, -1, 1))


class Flip:
    """Left and right exchanged with probability `prob`.

    >>> nn.augment.Flip(prob=1.0)(np.arange(3.0).reshape(1, 1, 1, 3), numpy.random.default_rng(0))
    array([[[[2., 1., 0.]]]])
    """

    @named()
    def __init__(self, prob: float = 0.5) -> None:
        self.prob = prob

    def __call__(self, images: Any, rng: Any) -> Any:
        flip = rng.random(images.shape[0]) < self.prob
        return np.where(flip[:, None, None, None], images[..., ::-1], images)


class Rotate:
    """Rotated about the centre by up to +-degrees, by the nearest pixel; zeros come in at the corners.

    >>> nn.augment.Rotate(15)(np.ones((4, 3, 8, 8)), numpy.random.default_rng(0)).shape
    (4, 3, 8, 8)
    """

    @named()
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __call__(self, images: Any, rng: Any) -> Any:
        n, _, h, w = images.shape
        angle = np.deg2rad(rng.uniform(-self.degrees, self.degrees, n))[:, None, None]
        y, x = (np.arange(h) - (h - 1) / 2)[:, None], (np.arange(w) - (w - 1) / 2)[None, :]
        rows = np.rint(np.cos(angle) * y + np.sin(angle) * x + (h - 1) / 2).astype(np.int64)
        columns = np.rint(np.cos(angle) * x - np.sin(angle) * y + (w - 1) / 2).astype(np.int64)
        inside = (rows >= 0) & (rows < h) & (columns >= 0) & (columns < w)
        rows, columns = np.clip(rows, 0, h - 1), np.clip(columns, 0, w - 1)
        picked = np.moveaxis(images[np.arange(n)[:, None, None], :, rows, columns], -1, 1)
        return np.where(inside[:, None], picked, np.zeros((), images.dtype))


class Cutout:
    """A size x size square of zeros, centred anywhere in the image (DeVries and Taylor 2017).

    >>> nn.augment.Cutout(3)(np.ones((4, 3, 8, 8)), numpy.random.default_rng(0)).shape
    (4, 3, 8, 8)
    """

    @named()
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, images: Any, rng: Any) -> Any:
        n, _, h, w = images.shape
        top = (rng.integers(0, h, n) - self.size // 2)[:, None]
        left = (rng.integers(0, w, n) - self.size // 2)[:, None]
        rows = (np.arange(h) >= top) & (np.arange(h) < top + self.size)
        columns = (np.arange(w) >= left) & (np.arange(w) < left + self.size)
        hole = rows[:, None, :, None] & columns[:, None, None, :]
        return np.where(hole, np.zeros((), images.dtype), images)


class Scale:
    """Contrast and brightness: images times 1 + u, plus v, with u in +-contrast and v in +-brightness.

    >>> nn.augment.Scale()(np.ones((4, 3, 8, 8)), numpy.random.default_rng(0)).shape
    (4, 3, 8, 8)
    """

    @named()
    def __init__(self, contrast: float = 0.1, brightness: float = 0.1) -> None:
        self.contrast, self.brightness = contrast, brightness

    def __call__(self, images: Any, rng: Any) -> Any:
        n = images.shape[0]
        u, v = rng.uniform(-self.contrast, self.contrast, n), rng.uniform(-self.brightness, self.brightness, n)
        u, v = (a.astype(images.dtype)[:, None, None, None] for a in (u, v))
        return images * (1 + u) + v


class Normalise:
    """(images - mean) / std, per channel: the one step that testing needs too.

    >>> nn.augment.Normalise(mean=[1.0], std=[2.0])(np.full((1, 1, 1, 2), 3.0))
    array([[[[1., 1.]]]])
    """

    @named()
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = mean, std

    def __call__(self, images: Any, rng: Any = None) -> Any:
        mean, std = (np.asarray(a, images.dtype)[:, None, None] for a in (self.mean, self.std))
        return (images - mean) / std
