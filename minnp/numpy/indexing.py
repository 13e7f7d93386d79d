"""Rows that read and scatter by index: `x[index]`, its transpose `index_add`, take and put along an axis, diagonals.

An index is NumPy's: slices, integers, None, Ellipsis, integer and boolean arrays, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.primitive import Meta, per_input, primitive
from .facts import sampled, spread


def is_basic(index: Any) -> bool:
    """Whether NumPy answers x[index] with a view: no array among the indices, so no element is taken twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        p is None
        or p is Ellipsis
        or isinstance(p, slice)
        or (isinstance(p, (int, onp.integer)) and p is not True and p is not False)
        for p in parts
    )


def _repeats(index: Any) -> bool:
    """Whether x[index] may take an element twice; a lone boolean mask does not."""
    return not is_basic(index) and not (isinstance(index, onp.ndarray) and index.dtype == bool)


def _index_add(g: Any, shape: Sequence[int], index: Any) -> onp.ndarray:
    """Zeros of `shape` with g added at `index`; elements named twice receive both."""
    g = onp.asarray(g)
    out = onp.zeros(shape, g.dtype)
    if _repeats(index):
        onp.add.at(out, index, g)
    else:
        out[index] = g
    return out


getitem = primitive(
    "getitem",
    numpy=lambda x, index: x[index],
    vjp=[lambda g, y, x, index: index_add(g, shape=x.shape, index=index)],
    jvp="linear",
    saves="",
    view=True,
    samples=sampled(
        ((spread(4, 3),), {"index": 1}),
        ((spread(4, 3),), {"index": (slice(None, None, -2), None, ..., 0)}),
        ((spread(4, 3),), {"index": onp.array([0, 2, 0, -1])}),
        ((spread(4, 3),), {"index": (onp.array([[0], [2]]), onp.array([1, 1]))}),
        ((spread(4, 3),), {"index": (slice(1, 3), [0, 0, 2])}),
        ((spread(4, 3),), {"index": spread(4, 3) > 0}),
        ((spread(4, 3),), {"index": (onp.array([True, False, True, True]), 1)}),
    ),
)
index_add = primitive(
    "index_add",
    numpy=_index_add,
    vjp=[lambda g, y, x, shape, index: g[index]],
    jvp="linear",
    saves="",
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    flops=per_input(1),
    samples=sampled(
        ((spread(2, 3),), {"shape": (4, 3), "index": slice(1, 3)}),
        ((spread(4),), {"shape": (3,), "index": onp.array([0, 2, 0, -1])}),
        ((spread(6),), {"shape": (4, 3), "index": onp.arange(12).reshape(4, 3) % 2 == 0}),
    ),
)
