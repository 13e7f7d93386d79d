"""Arrays on which kernels are compared with NumPy: random values, the values at which libraries differ, and layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as onp

Case = tuple[tuple, dict[str, Any]]
DTYPES = ("float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool")
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -7.25, 1e-30, 1e30, onp.inf, -onp.inf, onp.nan)


def spread(dtype: str, *shape: int, seed: int = 0) -> onp.ndarray:
    """Values between -3 and 3 (integers between -9 and 9), none of them 0."""
    draw = onp.random.default_rng([seed, *shape])
    kind = onp.dtype(dtype).kind
    if kind == "f":
        x = draw.uniform(0.1, 3, shape) * draw.choice((-1, 1), shape)
    elif kind == "b":
        x = draw.integers(0, 2, shape)
    else:
        x = draw.integers(1, 10, shape) * (draw.choice((-1, 1), shape) if kind == "i" else 1)
    return onp.asarray(x).astype(dtype)


def edges(dtype: str) -> onp.ndarray:
    """The values at which implementations differ."""
    kind = onp.dtype(dtype).kind
    if kind == "f":
        info = onp.finfo(dtype)
        with onp.errstate(over="ignore"):
            return onp.array([*EDGES, info.max, info.min, info.tiny, info.eps]).astype(dtype)
    if kind == "b":
        return onp.array([True, False])
    info = onp.iinfo(dtype)
    return onp.array(
        [0, 1, 2, 3, 5, 7, info.max, info.min, info.max - 1, *((-1, -2, -5) if kind == "i" else ())], dtype
    )


def layouts(x: onp.ndarray) -> Iterator[onp.ndarray]:
    """The same kind of array in other memory: transposed, reversed, strided, read-only, unaligned."""
    yield x.T
    yield x[::-1]
    yield onp.repeat(x, 2, axis=-1)[..., ::2]
    locked = x.copy()
    locked.flags.writeable = False
    yield locked
    raw = onp.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype).reshape(x.shape)
    raw[...] = x
    yield raw
