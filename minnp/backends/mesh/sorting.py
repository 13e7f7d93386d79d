"""Sorting, searching and counting split arrays.

What works along one axis runs in parts of another. Along the only axis there is, elements are sorted by samples (Shi
and Schaeffer, "Parallel sorting by regular sampling", 1992): each rank sorts its own, all agree on values that divide
them evenly, each sends what lies between two of these to one rank, and that one merges what came.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE
from ...distributed import collectives
from .kernels import aligned, axes_of, kernel, local_of, reduce, refuse, reshaped
from .parts import Part, bounds, exchange, gathered, moved, ranges, traded, whole_of

SAMPLES = 64  # of each rank


def along_another(x: Part, axis: int) -> Part | None:
    """The array with an axis whole on every rank, split over another one in its place if one is free; None where the
    array has no other."""
    if x.on[axis] is None:
        return x
    other = next((i for i, m in enumerate(x.on) if m is None and x.shape[i] > 1), None)
    if other is None:
        return gathered(x, axis) if any(n > 1 for i, n in enumerate(x.shape) if i != axis) else None
    on = list(x.on)
    on[axis], on[other] = None, on[axis]
    return moved(x, on)


@kernel("sort", "argsort", "partition", "argpartition")
def sorting(place: Any, x: Part, axis: Any = -1, _row: Any = None, **params: Any) -> Part:
    """Sorted elements are partitioned ones too."""
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    if not x.ndim or x.dtype.kind not in "biufcSUmM":
        refuse(f"{_row} of {x.dtype}")
    (axis,) = axes_of(axis, x.ndim)
    if "kth" in params:
        TABLE[_row].numpy(onp.zeros(x.shape[axis], "?"), **params)  # or NumPy's exception
    whole = along_another(x, axis)
    if whole is not None:
        return whole.like(TABLE[_row].numpy(whole.local, axis=axis, **params))
    flat = x.local.reshape(-1)
    y = by_samples(x.mesh.axis(x.on[axis]), flat, x.shape[axis], _row.startswith("arg"))
    return x.like(y.reshape(x.local.shape))


def by_samples(line: Any, x: onp.ndarray, n: int, positions: bool) -> onp.ndarray:
    """This rank's part of the sorted elements, or of where each came from; equal ones stay in order."""
    order = onp.argsort(x, kind="stable")
    x, start = x[order], bounds(n, line)[0]
    mine = x[onp.linspace(0, len(x) - 1, min(len(x), SAMPLES)).astype(int)] if len(x) else x
    samples = onp.sort(collectives._all_gather(mine, mesh=line, axis=0))
    dividers = samples[[len(samples) * (r + 1) // line.size for r in range(line.size - 1)]] if len(samples) else samples
    cuts = onp.searchsorted(x, dividers, side="right") if len(samples) else [0] * (line.size - 1)
    came, _ = traded(line, onp.split(x, cuts), "sorting a split array")
    again = onp.argsort(came, kind="stable")
    if positions:
        came, _ = traded(line, onp.split(order + start, cuts), "sorting a split array")
    came = came[again]
    ends = onp.cumsum(collectives._all_gather(onp.array([len(came)]), mesh=line, axis=0)).tolist()
    return exchange(line, came, 0, list(zip([0, *ends], ends)), ranges(n, line))


# ------------------------------------------------------------------ searching
@kernel("searchsorted")
def searchsorted(place: Any, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Part:
    """In an array that stays split, each rank counts how many of its elements lie before each value."""
    if sorter is not None or onp.ndim(a) != 1:
        refuse("searchsorted with a sorter")
    if type(a) is not Part or a.on[0] is None or (type(v) is Part and v.split and v.size >= a.size):
        return looked_up(place, v, a, run=lambda v, a: onp.searchsorted(a, v, side))
    v = whole_of(v) if type(v) is Part else v
    n = onp.asarray(onp.searchsorted(a.local, v, side), onp.int64)
    n = collectives._all_reduce(n, mesh=a.mesh.axis(a.on[0]), op="sum")
    return Part(a.mesh, onp.shape(n), (None,) * onp.ndim(n), n)


def known(place: Any, y: Any) -> Part:
    """A result that every rank has."""
    return Part(place.mesh, onp.shape(y), (None,) * onp.ndim(y), y)


@kernel("digitize", "isin", "interp")
def looked_up(place: Any, x: Any, *tables: Any, _row: Any = None, run: Any = None, **params: Any) -> Part:
    """In tables that are whole on every rank."""
    tables = tuple([whole_of(t) if type(t) is Part else t for t in tables])
    run = run or TABLE[_row].numpy
    return x.like(run(x.local, *tables, **params)) if type(x) is Part else known(place, run(x, *tables, **params))


# ------------------------------------------------------------------ counting, comparing
@kernel("bincount")
def bincount(place: Any, x: Any, weights: Any, minlength: int = 0) -> Part:
    x = x if type(x) is Part else known(place, x)
    if x.ndim != 1 or x.dtype.kind not in "iu" or onp.shape(weights) != x.shape or not x.size:
        refuse("bincount of these arrays")
    weights = moved(weights if type(weights) is Part else known(place, weights), x.on).local
    if x.on[0] is None:
        return known(place, onp.bincount(x.local, weights, minlength))
    line = x.mesh.axis(x.on[0])
    least, most = (reduce(place, x, _row=name).local[()] for name in ("min", "max"))
    if least < 0:
        refuse("bincount of numbers below 0")
    n = onp.bincount(x.local, weights, max(minlength, int(most) + 1)).astype("f8", copy=False)  # of nothing, integers
    return known(place, collectives._all_reduce(n, mesh=line, op="sum"))


@kernel("allclose", "array_equal")
def agreement(place: Any, a: Any, b: Any, _row: Any = None, **params: Any) -> Part:
    if _row == "array_equal" and onp.shape(a) != onp.shape(b):
        return known(place, onp.False_)
    mesh, _, on, operands = aligned(place, (a, b))
    same = onp.asarray(bool(TABLE[_row].numpy(*map(local_of, operands), **params)))
    for m in {m for m in on if m is not None}:
        same = collectives._all_reduce(same, mesh=mesh.axis(m), op="min")
    return known(place, onp.bool_(same))


@kernel("logsumexp")
def logsumexp(place: Any, x: Part, axis: Any = None, keepdims: bool = False) -> Part:
    """log(sum(exp(x))), shifted by the largest element."""
    axes = axes_of(axis, x.ndim)
    top = reduce(place, x, axes, True, _row="max").local
    top = onp.where(onp.isfinite(top), top, onp.zeros_like(top))
    y = reduce(place, x.like(onp.exp(x.local - top)), axes, keepdims, _row="sum")
    with onp.errstate(divide="ignore"):  # log(0) is the answer where every element is -inf
        return y.like(onp.log(y.local) + top.reshape(y.local.shape))


@kernel("npx.softmax", "npx.log_softmax")
def softmax(place: Any, x: Part, axis: Any = -1, _row: Any = None) -> Part:
    axes = axes_of(axis, x.ndim)
    if all(x.on[i] is None for i in axes):
        return x.like(TABLE[_row].numpy(x.local, axis=axis))
    if x.dtype.kind != "f":
        refuse(f"{_row} of {x.dtype}")
    y = x.local - logsumexp(place, x, axes, True).local
    return x.like(y if _row == "npx.log_softmax" else onp.exp(y))
