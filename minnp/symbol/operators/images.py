"""What is done to images before a network: to [H, W, C], or batches of them, and what to_tensor makes of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np

from ..operator import Shape, operator
from .regions import interpolation

FLOAT = onp.dtype("float32")


def to_tensor(data: Any) -> Any:
    """[H, W, C] from 0 to 255 as [C, H, W] from 0 to 1."""
    return np.moveaxis(data.astype(FLOAT) / FLOAT.type(255), -1, -3)


def normalize(data: Any, mean: Sequence[float] = (0.0,), std: Sequence[float] = (1.0,)) -> Any:
    """(data - mean) / std of [C, H, W], by channel."""
    mean, std = (onp.array(x, data.dtype)[: data.shape[-3], None, None] for x in (mean, std))
    return (data - mean) / std


def flip_left_right(data: Any) -> Any:
    """The mirror image."""
    return np.flip(data, -2)


def flip_top_bottom(data: Any) -> Any:
    """The image upside down."""
    return np.flip(data, -3)


def crop(data: Any, x: int, y: int, width: int, height: int) -> Any:
    """The part of an image at (x, y)."""
    if x < 0 or y < 0 or x + width > data.shape[-2] or y + height > data.shape[-3]:
        raise ValueError(f"a crop of {height, width} at {y, x} does not fit into {data.shape}")
    return data[..., y : y + height, x : x + width, :]


def _size(p: dict, data: Shape) -> tuple[int, int]:
    """Height and width of a resized image; of one number with keep_ratio, that of the shorter side."""
    height, width = data[-3:-1]
    if len(p["size"]) == 2:
        return p["size"][1], p["size"][0]
    (size,) = p["size"]
    if not p["keep_ratio"]:
        return size, size
    return (size, int(width * size / height)) if height < width else (int(height * size / width), size)


def resize(data: Any, size: Shape = (), keep_ratio: bool = False, interp: int = 1) -> Any:
    """Images in another size (width, height): interpolated linearly (interp=1), or the nearest pixels (0)."""
    height, width = _size({"size": size, "keep_ratio": keep_ratio}, data.shape)
    if interp == 0:
        rows, columns = (onp.arange(n) * m // n for n, m in zip((height, width), data.shape[-3:-1], strict=True))
        return np.take(np.take(data, rows, axis=-3), columns, axis=-2)
    if interp != 1:
        raise ValueError(f"resize with interp={interp}: expected 0 (nearest) or 1 (linear)")
    rows, columns = (
        interpolation(n, m, False).astype(FLOAT) for n, m in zip((height, width), data.shape[-3:-1], strict=True)
    )
    y = np.moveaxis(np.matmul(np.matmul(rows, np.moveaxis(data.astype(FLOAT), -1, -3)), columns.T), -3, -1)
    return np.clip(np.floor(y + 0.5), 0, 255).astype(data.dtype) if data.dtype.kind == "u" else y.astype(data.dtype)


COMPONENTS = onp.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def adjust_lighting(data: Any, alpha: Sequence[float]) -> Any:
    """data [H, W, 3] with each principal component of colours alpha times stronger (Krizhevsky et al. 2012)."""
    values = onp.array([55.46, 4.794, 1.148])
    y = data + (COMPONENTS @ (onp.array(alpha) * values)).astype(FLOAT)
    return np.clip(y, 0, 255).astype(data.dtype) if data.dtype.kind == "u" else y.astype(data.dtype)


def random_flip_left_right(data: Any) -> Any:
    """The mirror image, every other time."""
    return np.where(np.random.random() < 0.5, flip_left_right(data), data)


def random_flip_top_bottom(data: Any) -> Any:
    """The image upside down, every other time."""
    return np.where(np.random.random() < 0.5, flip_top_bottom(data), data)


# ------------------------------------------------------------------ random changes of colours
GRAY = onp.array([0.299, 0.587, 0.114], FLOAT)


def saturated(y: Any, like: Any) -> Any:
    """y in the dtype of an image: between 0 and 255, rounded down, where that has integers."""
    return np.clip(y, 0, 255).astype(like.dtype) if like.dtype.kind == "u" else y.astype(like.dtype)


def gray(data: Any) -> Any:
    """Images [..., H, W, C] without colours [..., H, W, 1]."""
    return np.sum(data * GRAY, axis=-1, keepdims=True) if data.shape[-1] == 3 else data.astype(FLOAT)


def brightness(data: Any, factor: Any) -> Any:
    """data * factor."""
    return saturated(data * factor, data)


def contrast(data: Any, factor: Any) -> Any:
    """data at `factor` times its distance from the mean of its gray."""
    return saturated(data * factor + np.mean(gray(data), axis=(-3, -2), keepdims=True) * (1 - factor), data)


def saturation(data: Any, factor: Any) -> Any:
    """data at `factor` times its distance from its gray."""
    return saturated(data * factor + gray(data) * (1 - factor), data) if data.shape[-1] == 3 else data


def hue(data: Any, factor: Any) -> Any:
    """data, its hue turned by `factor` of the circle: of saturation and lightness, as MXNet computes them."""
    if data.shape[-1] != 3:
        return data
    x = data.astype(FLOAT) / FLOAT.type(255)
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    high, low = np.max(x, axis=-1), np.min(x, axis=-1)
    total, extent = high + low, high - low
    colour = extent > onp.finfo(FLOAT).eps
    part = 1 / np.where(colour, extent, 1)
    turn = np.where(high == r, (g - b) * part, np.where(high == g, (b - r) * part + 2, (r - g) * part + 4))
    light = total / 2
    strong = np.where(colour, extent / np.where(colour, np.where(light < 0.5, total, 2 - total), 1), 0)
    turn = np.mod(np.where(colour, turn, 0) + 6 * factor, 6)
    above = np.where(light <= 0.5, light * (1 + strong), light + strong - light * strong)
    below = 2 * light - above
    # a channel goes up in one sixth of the circle, is `above` in two, goes down in one, and is `below` in two
    channels = []
    for start in (2, 0, 4):
        at = np.mod(turn + start, 6)
        share = np.clip(np.minimum(at, 4 - at), 0, 1)
        channels.append(below + (above - below) * share)
    return saturated(np.stack(channels, axis=-1).astype(FLOAT) * 255, data)


def _drawn(change: Callable) -> Callable:
    """A change by a factor that is drawn between two."""

    def random(data: Any, min_factor: float, max_factor: float) -> Any:
        return change(data, np.random.uniform(min_factor, max_factor))

    random.__doc__ = change.__doc__
    return random


def random_lighting(data: Any, alpha_std: float = 0.05) -> Any:
    """adjust_lighting by three normal numbers."""
    values = onp.array([55.46, 4.794, 1.148], FLOAT) * alpha_std
    return saturated(data + np.matmul(COMPONENTS.astype(FLOAT), np.random.normal(0, 1, 3).astype(FLOAT) * values), data)


def random_color_jitter(data: Any, brightness: float, contrast: float, saturation: float, hue: float) -> Any:
    """All four, in a random order, by factors up to these away from 1 (for the hue from 0)."""
    bounds = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
    changes = [(CHANGES[n], bound, 0 if n == "hue" else 1) for n, bound in bounds.items() if bound]
    first = np.argsort(np.random.random(len(changes)))
    for i in range(len(changes)):
        found = [change(data, np.random.uniform(middle - bound, middle + bound)) for change, bound, middle in changes]
        data = np.take(np.stack(found), first[i], axis=0)
    return data


CHANGES = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}


def _tensor(p: dict, data: Shape) -> list[Shape]:
    return [(*data[:-3], data[-1], *data[-3:-1])]


def _floats(p: dict, ins: list) -> tuple[list, list]:
    return ins, [FLOAT]


operator("_image_to_tensor", to_tensor, ("data",), result=_tensor, dtypes=_floats)
operator("_image_normalize", normalize, ("data",), "mean:floats=(0,0,0,0) std:floats=(1,1,1,1)", same=True)
operator("_image_crop", crop, ("data",), "x:int y:int width:int height:int",
         result=lambda p, s: [(*s[:-3], p["height"], p["width"], s[-1])])  # fmt: skip
operator("_image_resize", resize, ("data",), "size:shape=() keep_ratio:bool=0 interp:int=1",
         result=lambda p, s: [(*s[:-3], *_size(p, s), s[-1])])  # fmt: skip
operator("_image_adjust_lighting", adjust_lighting, ("data",), "alpha:floats", same=True)
operator("_image_flip_left_right", flip_left_right, ("data",), same=True)
operator("_image_flip_top_bottom", flip_top_bottom, ("data",), same=True)
operator("_image_random_flip_left_right", random_flip_left_right, ("data",), same=True, drawn=True)
operator("_image_random_flip_top_bottom", random_flip_top_bottom, ("data",), same=True, drawn=True)
for _name, _change in CHANGES.items():
    operator(f"_image_random_{_name}", _drawn(_change), ("data",), "min_factor:float max_factor:float", same=True,
             drawn=True)  # fmt: skip
operator("_image_random_lighting", random_lighting, ("data",), "alpha_std:float=0.05", same=True, drawn=True)
operator("_image_random_color_jitter", random_color_jitter, ("data",),
         "brightness:float contrast:float saturation:float hue:float", same=True, drawn=True)  # fmt: skip
