"""Products of 8-bit integers in C (core/compiled/integers.h), and what is made once of an array that cannot change.

oneDNN does the same where torch is installed. Who calls them has the same in NumPy, for processors without the
instructions for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as onp

from ..compiled import team
from . import threads
from .memory import empty

ACROSS = 64  # columns of a panel
DEEPEST = (2**31 - 1) // (255 * 128)  # products whose sum an int32 holds
LEAST = 1 << 14  # multiplications from which a call pays
F4 = onp.dtype("f4")
_kept: dict[int, tuple[Any, dict]] = {}  # id of a frozen array -> (a weak reference to it, what was made of it)


def frozen(array: Any) -> bool:
    """Whether an array's elements cannot change: it owns its memory, and is read-only."""
    return type(array) is onp.ndarray and not array.flags.writeable and array.base is None


def _forget(at: int, _: Any) -> None:
    _kept.pop(at, None)


def prepared(array: onp.ndarray, key: Any, make: Callable[[onp.ndarray], Any]) -> Any:
    """make(array), kept for the next call with this key if the array is frozen."""
    if not frozen(array):
        return make(array)
    entry = _kept.get(id(array))
    if entry is None:
        entry = _kept[id(array)] = (weakref.ref(array, partial(_forget, id(array))), {})
    made = entry[1].get(key)
    if made is None:
        made = entry[1][key] = make(array)
    return made


def _packed(w: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray]:
    """(w [O, I] as the C part reads it, the sum of each of its rows)"""
    columns, depth = w.shape
    panels = onp.zeros((-(-columns // ACROSS) * ACROSS, depth), onp.int8)
    panels[:columns] = w
    panels = panels.reshape(-1, ACROSS, depth // 4, 4).transpose(0, 2, 1, 3)
    return onp.ascontiguousarray(panels), w.sum(axis=1, dtype=onp.int32)


def linear(q: onp.ndarray, w: onp.ndarray, zero: int, scales: onp.ndarray, bias: Any, relu: bool) -> onp.ndarray | None:
    """((q [N, I] - zero) @ w [O, I].T) * scales [O] + bias [O] in float32, with sums that are exact; None where this is
    not done here."""
    (n, depth), columns = q.shape, w.shape[0]
    if team is None or not team.INTEGERS or not frozen(w) or depth % 4 or not 0 < depth <= DEEPEST:
        return None
    fits = q.dtype == onp.uint8 and w.dtype == onp.int8 and 0 <= zero < 256 and n * depth * columns >= LEAST
    if not fits or not all(a is None or (a.dtype == F4 and a.shape == (columns,)) for a in (scales, bias)):
        return None
    panels, sums = prepared(w, "panels", _packed)
    y = empty((n, columns), F4)
    vectors = [a if a is None else onp.ascontiguousarray(a) for a in (scales, bias)]
    team.integers(onp.ascontiguousarray(q), panels, sums * onp.int32(zero), *vectors, y, relu, threads.team.size)
    return y
