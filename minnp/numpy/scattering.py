"""Adding at an index: what the gradient of reading at it does."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ..core.arrays.writing import holds_integers, repeats
from ..core.cpu import kernels
from ..core.cpu.products import matmul

CHUNK = 1 << 18  # elements added at a time: their indices take 2 MB
FEW, SEVERAL = 128, 1 << 12  # rows of a table, and elements, from which adding to it is a product with zeros and ones
ROUND = 3000  # elements that add.at adds in the time of one more NumPy call on rows


def add_at(buffer: onp.ndarray, g: onp.ndarray, index: Any, freely: bool = False) -> None:
    """buffer[index] += g; elements named twice receive both: in NumPy's order, or freely in any."""
    rows_alone = type(index) is onp.ndarray and index.ndim == 1 and buffer.ndim == 2
    if rows_alone and g.shape == (index.size, buffer.shape[1]) and kernels.add_at(buffer, index, g):
        return
    chosen = holds_integers(index)
    rows = _rows(buffer, g, index) if chosen else None
    if rows is not None and kernels.add_at(*rows):
        return
    if not chosen or not repeats(index):
        buffer[index] += g
    elif rows is not None:
        _add_rows(*rows, freely)
    else:
        onp.add.at(buffer, index, g)


def _rows(buffer: onp.ndarray, g: onp.ndarray, index: Any) -> tuple[onp.ndarray, onp.ndarray, onp.ndarray] | None:
    """(cells [N, width], rows [n], added [n, width]) where buffer[index] += g is cells[rows] += added: of integers that
    choose whole rows, element by element; None for other indices."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(p, (int, onp.integer, onp.ndarray, list)) for p in parts):
        return None
    arrays = [onp.asarray(p) for p in parts]
    lead, rest = buffer.shape[: len(arrays)], buffer.shape[len(arrays) :]
    simple = rest and buffer.size and g.size and buffer.flags.c_contiguous
    if not simple or any(a.dtype.kind not in "iu" for a in arrays):
        return None
    try:
        rows = onp.ravel_multi_index(arrays, lead).ravel()
    except ValueError:
        if not all(((a >= -n) & (a < n)).all() for a, n in zip(arrays, lead)):
            return None  # NumPy says which is out of bounds
        rows = onp.ravel_multi_index(arrays, lead, mode="wrap").ravel()
    return buffer.reshape(math.prod(lead), -1), rows, onp.ascontiguousarray(g.reshape(rows.size, -1))


def _add_rows(cells: onp.ndarray, rows: onp.ndarray, added: onp.ndarray, freely: bool) -> None:
    """cells[rows] += added, each cell in its order; NumPy's add.at is fast in one dimension, and slow for rows."""
    few = len(cells) <= FEW and added.size >= SEVERAL and added.dtype is cells.dtype and added.dtype.char in "fd"
    if freely and few and onp.isfinite(added).all():  # 0 times infinity would be NaN in every row
        which = onp.zeros((rows.size, len(cells)), added.dtype)
        which[onp.arange(rows.size), rows] = 1
        cells += matmul(which.T, added)
        return
    order = rows.argsort(kind="stable")
    ordered = rows[order]
    starts = onp.flatnonzero(onp.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = onp.diff(starts, append=rows.size)
    rounds = int(counts.max())
    if rounds <= max(1, added.size // ROUND):
        # The first of each row's summands, then the second, ...: in the order of add.at, many elements at once.
        which = onp.arange(rows.size) - onp.repeat(starts, counts)
        order = order[which.argsort(kind="stable")]
        stop = 0
        for some in onp.bincount(which).tolist():
            chosen = order[stop : stop + some]
            cells[rows[chosen]] += added[chosen]
            stop += some
        return
    flat, width = cells.reshape(-1), cells.shape[1]
    some = max(1, CHUNK // width)
    for start in range(0, rows.size, some):
        index = rows[start : start + some, None] * width + onp.arange(width)
        onp.add.at(flat, index.ravel(), added[start : start + some].ravel())
