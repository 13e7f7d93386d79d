"""How arrays lie in memory, NumPy's and those on devices: copies that lie as they do, and windows over them.

Strides are in bytes or in elements: `unit` says how many of them an element takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp


def alike(a: Any, dtype: Any) -> onp.ndarray:
    """An empty array of which NumPy finds what it finds of `a`, so that it reshapes both alike: which axes lie one in
    another without a gap, in which order and direction. Gaps are one element wide, whatever they were; no element is
    shown twice."""
    a, dtype = onp.asarray(a), onp.dtype(dtype)
    plain = onp.empty_like(a, dtype, order="K", subok=False)
    same = [s * dtype.itemsize for s in a.strides] == [s * a.itemsize for s in plain.strides]
    if same or dtype.hasobject or (steps := narrowed(a.shape, a.strides, a.itemsize)) is None:
        return plain
    return in_steps(a, dtype, steps)


def narrowed(shape: Sequence[int], strides: Sequence[int], unit: int = 1) -> list[int] | None:
    """Positive steps, in elements, for an array that lies as one with these strides does, its gaps one element wide;
    None where it is empty or shows an element twice."""
    if 0 in shape or any(n > 1 and not step for n, step in zip(shape, strides)):
        return None
    steps, dense, reach = [0] * len(shape), unit, 1
    for axis in sorted(range(len(shape)), key=lambda i: abs(strides[i])):
        step, n = abs(strides[axis]), shape[axis]
        if n > 1:
            if step < dense:  # axes that interleave, or elements that are shown twice
                break
            steps[axis] = reach if step == dense else reach + 1
            dense, reach = step * n, steps[axis] * n
    else:
        return steps
    steps = [abs(s) // unit for s in strides]
    places = sum(onp.ix_(*[onp.arange(n) * s for n, s in zip(shape, steps)]))
    return None if any(s % unit for s in strides) or len(onp.unique(places)) < places.size else steps


def in_steps(a: onp.ndarray, dtype: onp.dtype, steps: list[int]) -> onp.ndarray:
    """An empty array in the shape of a, the steps in its directions."""
    ends = [(n - 1) * s for n, s in zip(a.shape, steps)]
    memory = onp.empty(sum(ends) + 1, dtype)
    first = sum(end for end, step in zip(ends, a.strides) if step < 0)
    signed = [(-s if step < 0 else s) * dtype.itemsize for s, step in zip(steps, a.strides)]
    return onp.ndarray(a.shape, dtype, memory, first * dtype.itemsize, signed)


def within(
    shape: Sequence[int], strides: Sequence[int], offset: int, wanted: Sequence[int], steps: Sequence[int]
) -> tuple[list[int] | None, int]:
    """(the strides of a window of the shape `wanted` in the memory of an array, the distance to its first element); the
    window is given by an offset and by steps that count the array's elements in C order. None for the strides where a
    step would lead from one row to the next, so that it is not always as long."""
    if 0 in shape or 0 in wanted:
        return [0] * len(wanted), 0
    along = [_coordinates(s, shape) if n > 1 else onp.zeros(len(shape), int) for s, n in zip(steps, wanted)]
    reach, at = [step * (n - 1) for step, n in zip(along, wanted)], _coordinates(offset, shape)
    least, most = (at + sum(f(r, 0) for r in reach) for f in (onp.minimum, onp.maximum))
    if (least < 0).any() or (most >= shape).any():
        return None, 0
    return [int(step @ strides) for step in along], int(at @ strides)


def _coordinates(n: int, shape: Sequence[int]) -> onp.ndarray:
    return onp.sign(n) * onp.array(onp.unravel_index(abs(n), shape), int)
