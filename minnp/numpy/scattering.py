"""Adding at an index: what the gradient of reading at it does."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

CHUNK = 1 << 18  # elements added at a time: their indices take 2 MB


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


def add_at(buffer: onp.ndarray, g: onp.ndarray, index: Any) -> None:
    """buffer[index] += g; elements named twice receive both."""
    if not _repeats(index):
        buffer[index] += g
    elif not _add_rows(buffer, g, index):
        onp.add.at(buffer, index, g)


def _add_rows(buffer: onp.ndarray, g: onp.ndarray, index: Any) -> bool:
    """add_at for integers that choose whole rows, element by element; False for other indices.

    NumPy's add.at is fast where everything is one-dimensional, and slow for rows.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(p, (int, onp.integer, onp.ndarray, list)) for p in parts):
        return False
    arrays = [onp.asarray(p) for p in parts]
    lead, rest = buffer.shape[: len(arrays)], buffer.shape[len(arrays) :]
    simple = rest and buffer.size and g.size and buffer.flags.c_contiguous
    if not simple or any(a.dtype.kind not in "iu" for a in arrays):
        return False
    rows = onp.ravel_multi_index(onp.broadcast_arrays(*arrays), lead, mode="wrap").ravel()
    added, cells = g.reshape(rows.size, -1), buffer.reshape(math.prod(lead), -1)
    if rows.size < 2 or (onp.diff(onp.sort(rows)) != 0).all():
        cells[rows] += added
        return True
    flat, width = buffer.reshape(-1), cells.shape[1]
    some = max(1, CHUNK // width)
    for start in range(0, rows.size, some):
        index = rows[start : start + some, None] * width + onp.arange(width)
        onp.add.at(flat, index.ravel(), added[start : start + some].ravel())
    return True
