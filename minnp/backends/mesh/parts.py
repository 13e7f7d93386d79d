"""An array that is split over a mesh: which rank holds what, and how parts move between ranks.

Along an axis that is split the ranks hold, in their order, as many elements each as np.array_split would give them: no
other layout exists, so two arrays of one length lie alike, and a result that would lie otherwise is moved when it is
made. What moves is what is not where it belongs: of a slice x[1:] an element for each rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ...core import cpu
from ...distributed import collectives
from ...distributed.collectives import raw
from .chains import Chain, compute

KEPT = 1 << 20  # bytes of an array known on all ranks that is kept whole beside its part
MARGIN = 4  # rows of the neighbours that are fetched at least when some are: a stencil's next slice wants them too


class Part:
    """This rank's part of an array.

    shape   of the whole array; local: the part in NumPy's memory
    on      for each axis the mesh axis it is split over, or None
    held    `local`, or what waits to be computed (chains.py)
    whole   the whole array, where every rank has it anyway
    lent    whether the program holds `local`, and may write to it
    margin  None, or a Margin, of which `local` is a view
    steps   the strides, in elements, of NumPy's array in its place; None for C order (orders.py)
    """

    __slots__ = ("__weakref__", "dtype", "held", "lent", "margin", "mesh", "ndim", "on", "shape", "steps", "whole")

    def __init__(self, mesh: Any, shape: Sequence[int], on: Sequence[int | None], local: Any, whole: Any = None):
        self.mesh, self.shape, self.on, self.whole = mesh, tuple(shape), tuple(on), whole
        self.ndim = len(self.shape)
        self.held = local if type(local) in (onp.ndarray, Chain) else onp.asarray(local)
        self.dtype, self.lent, self.margin, self.steps = self.held.dtype, False, None, None

    @property
    def local(self) -> onp.ndarray:
        return compute(self.held) if type(self.held) is Chain else self.held

    def room(self, dtype: onp.dtype) -> onp.ndarray:
        """Memory for this rank's part, with room for a margin where the first axis is split."""
        shape = self.held.shape
        m = self.on[0]
        if m is None or (line := self.mesh.axis(m)).size == 1:
            return cpu.empty(shape, dtype)
        (start, stop), (a, b) = bounds(self.shape[0], line), widened(self.shape[0], line, MARGIN)[line.rank]
        array = cpu.empty((b - a, *shape[1:]), dtype)
        self.margin = Margin(0, MARGIN, array, False)
        return array[start - a : stop - a]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def everywhere(self) -> bool:
        """Whether every rank has all of it."""
        return self.on.count(None) == self.ndim

    def is_contiguous(self) -> bool:
        return self.steps is None

    @property
    def split(self) -> list[int]:
        """The axes that are split."""
        return [i for i, m in enumerate(self.on) if m is not None]

    def like(self, local: Any) -> Part:
        """Another part of the same layout."""
        return Part(self.mesh, self.shape, self.on, local)


class Margin:
    """A part with `width` elements of the neighbours on both sides along an axis.

    array    all of it; filled: whether the neighbours' elements have come, once a shifted slice wanted some
    """

    __slots__ = ("array", "axis", "filled", "width")

    def __init__(self, axis: int, width: int, array: onp.ndarray, filled: bool) -> None:
        self.axis, self.width, self.array, self.filled = axis, width, array, filled


def bounds(n: int, line: Any, rank: int | None = None) -> tuple[int, int]:
    """(start, stop) of what a rank holds of n elements split over a mesh of one axis; of this rank by default."""
    s = collectives.part(n, line.size, line.rank if rank is None else rank)
    return s.start, s.stop


def ranges(n: int, line: Any) -> list[tuple[int, int]]:
    """`bounds` of every rank."""
    return [bounds(n, line, r) for r in range(line.size)]


def widened(n: int, line: Any, width: int) -> list[tuple[int, int]]:
    """`ranges` with so many elements of the neighbours."""
    return [(max(a - width, 0), min(b + width, n)) if b > a else (a, b) for a, b in ranges(n, line)]


def cut(mesh: Any, whole: onp.ndarray, on: Sequence[int | None]) -> onp.ndarray:
    """This rank's part of an array that it has whole, a view."""
    index = [
        slice(None) if m is None else slice(*bounds(n, mesh.axis(m))) for n, m in zip(whole.shape, on, strict=True)
    ]
    return whole[tuple(index)] if index else whole


def of_host(mesh: Any, whole: Any, on: Sequence[int | None]) -> Part:
    """The part of an array that every rank has."""
    whole = onp.asarray(whole)
    local = onp.array(cut(mesh, whole, on), order="C")
    kept = whole if whole.nbytes <= KEPT and any(m is not None for m in on) else None
    return Part(mesh, whole.shape, on, local, onp.array(kept) if kept is not None else None)


def fitted(on: Sequence[int | None], ndim: int) -> tuple[int | None, ...]:
    """A layout for an array of so many axes."""
    return (*on[:ndim], *[None] * (ndim - len(on)))


# ------------------------------------------------------------------ moving
def exchange(
    line: Any, local: onp.ndarray, axis: int, have: list, want: list, into: onp.ndarray | None = None
) -> onp.ndarray:
    """The elements want[rank] of an axis, of which each rank has the elements have[rank], all in (start, stop).

    into   an array of them in which this rank's own lie already
    """
    me = line.rank
    if all(a >= b or (c <= a and b <= d) for (a, b), (c, d) in zip(want, have, strict=True)):
        start, stop = want[me]
        index = [slice(None)] * local.ndim
        index[axis] = slice(start - have[me][0], stop - have[me][0]) if stop > start else slice(0, 0)
        return local[tuple(index)]
    x = onp.moveaxis(local, axis, 0)
    rest, each = x.shape[1:], math.prod(x.shape[1:]) * x.dtype.itemsize
    common = lambda p, q: (max(p[0], q[0]), max(max(p[0], q[0]), min(p[1], q[1])))
    sent, coming, pieces = [], [], []
    for r in range(line.size):
        a, b = common(have[me], want[r])
        pieces.append(x[a - have[me][0] : b - have[me][0]])
        sent.append(0 if r == me else (b - a) * each)
        c, d = common(have[r], want[me])
        coming.append((c, d))
    what = "moving parts of a split array"
    group = line.group()
    group.agree({"op": what, "dtype": x.dtype.str, "shape": rest, "have": have, "want": want}, alike=("dtype", "want"))
    out = onp.concatenate([raw(onp.ascontiguousarray(p)) for r, p in enumerate(pieces) if r != me] or [raw(x[:0])])
    came = group.exchange(out, sent, [0 if r == me else (d - c) * each for r, (c, d) in enumerate(coming)], what)
    start, stop = want[me]
    result, at = cpu.empty((max(stop - start, 0), *rest), x.dtype) if into is None else onp.moveaxis(into, axis, 0), 0
    for r, (c, d) in enumerate(coming):
        if d <= c:
            continue
        if r == me:
            if into is None:
                result[c - start : d - start] = pieces[me]
            continue
        n = (d - c) * each
        result[c - start : d - start] = came[at : at + n].view(x.dtype).reshape(d - c, *rest)
        at += n
    return onp.moveaxis(result, 0, axis)


def shifted(x: Part, axis: int, start: int, length: int) -> onp.ndarray | None:
    """What this rank holds of the elements start, start + 1, ... of a split axis, where all of it lies on this rank or
    a few rows into its neighbours': those come once, and stay with the part. None where more has to move."""
    line, n = x.mesh.axis(x.on[axis]), x.shape[axis]
    have, want = ranges(n, line), [(start + a, start + b) for a, b in ranges(length, line)]
    reach = max([max(a - c, d - b) for (a, b), (c, d) in zip(have, want) if d > c], default=0)
    if reach <= 0:
        first = have[line.rank][0]
        return x.local[(slice(None),) * axis + (slice(want[line.rank][0] - first, want[line.rank][1] - first),)]
    if reach > max(MARGIN, n // (8 * line.size)) or x.lent:
        return None
    margin = x.margin
    if margin is None or margin.axis != axis or margin.width < reach:
        width = max(reach, MARGIN)
        wide = widened(n, line, width)
        margin = x.margin = Margin(axis, width, exchange(line, x.local, axis, have, wide), True)
        first = have[line.rank][0] - wide[line.rank][0]
        x.held = margin.array[(slice(None),) * axis + (slice(first, first + x.local.shape[axis]),)]
    elif not margin.filled:
        exchange(line, x.local, axis, have, widened(n, line, margin.width), margin.array)
        margin.filled = True
    first = max(have[line.rank][0] - margin.width, 0)
    return margin.array[(slice(None),) * axis + (slice(want[line.rank][0] - first, want[line.rank][1] - first),)]


def gathered(x: Part, axis: int) -> Part:
    """The array with an axis whole on every rank."""
    m = x.on[axis]
    if m is None:
        return x
    local = collectives._all_gather(x.local, mesh=x.mesh.axis(m), axis=axis)
    on = list(x.on)
    on[axis] = None
    return Part(x.mesh, x.shape, on, local)


def moved(x: Part, on: Sequence[int | None]) -> Part:
    """The array in another layout."""
    on = tuple(on)
    if x.on == on:
        return x
    if x.whole is not None:
        return Part(x.mesh, x.shape, on, cut(x.mesh, x.whole, on), x.whole)
    for m in {m for m in (*x.on, *on) if m is not None}:
        old = x.on.index(m) if m in x.on else None
        new = on.index(m) if m in on else None
        if old == new or old is None:
            continue
        if new is not None and x.on[new] is None:
            local = collectives._all_to_all(x.local, mesh=x.mesh.axis(m), split=new, concat=old, sizes=None)
            now = list(x.on)
            now[old], now[new] = None, m
            x = Part(x.mesh, x.shape, now, local)
        else:
            x = gathered(x, old)
    now = list(x.on)
    index: list = [slice(None)] * x.ndim
    for i, m in enumerate(on):
        if m is not None and now[i] is None:
            index[i], now[i] = slice(*bounds(x.shape[i], x.mesh.axis(m))), m
    return Part(x.mesh, x.shape, now, x.local[tuple(index)])


def whole_of(x: Part) -> onp.ndarray:
    """All elements, on every rank."""
    return x.whole if x.whole is not None else moved(x, [None] * x.ndim).local


# ------------------------------------------------------------------ elements, each to the rank that has or wants it
def traded(line: Any, pieces: Sequence[onp.ndarray], what: str) -> tuple[onp.ndarray, onp.ndarray]:
    """(what came, how many rows of it from each rank) for pieces[r] sent to rank r: arrays of one dtype, of rows of one
    shape."""
    group, rest, dtype = line.group(), pieces[0].shape[1:], pieces[0].dtype
    if group is None:
        return pieces[0], onp.array([len(pieces[0])])
    table = collectives._all_gather(onp.array([[len(p) for p in pieces]]), mesh=line, axis=0)
    many = table[:, line.rank]
    if not table.any():
        return onp.empty((0, *rest), dtype), many
    each = math.prod(rest) * dtype.itemsize
    sent = onp.concatenate([raw(onp.ascontiguousarray(p)) for p in pieces])
    came = group.exchange(sent, [len(p) * each for p in pieces], (many * each).tolist(), what)
    return came.view(dtype).reshape(int(many.sum()), *rest), many


def dealt(at: onp.ndarray, ends: list) -> tuple[onp.ndarray, onp.ndarray]:
    """(the order of positions by the rank that has them, where in it each further rank begins); ends: (start, stop)."""
    owners = onp.searchsorted(onp.array([b for _, b in ends]), at, side="right")
    order = onp.argsort(owners, kind="stable")
    return order, onp.searchsorted(owners[order], onp.arange(1, len(ends)))


def fetched(line: Any, rows: onp.ndarray, ends: list, at: onp.ndarray) -> onp.ndarray:
    """The rows at these positions, of which each rank asks for its own; ends: which positions each rank has."""
    start = ends[line.rank][0]
    if line.size == 1:
        return rows[at - start]
    order, cuts = dealt(at, ends)
    asked, many = traded(line, onp.split(at[order], cuts), "asking for elements of a split array")
    answers = onp.split(rows[asked - start], onp.cumsum(many)[:-1])
    came, _ = traded(line, answers, "elements of a split array")
    out = onp.empty((len(at), *rows.shape[1:]), rows.dtype)
    out[order] = came
    return out


def delivered(line: Any, ends: list, at: onp.ndarray, rows: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray]:
    """(positions, rows) for this rank's elements, in the order of the ranks that sent them, and as each had them."""
    if line.size == 1:
        return at, rows
    order, cuts = dealt(at, ends)
    places, _ = traded(line, onp.split(at[order], cuts), "places in a split array")
    values, _ = traded(line, onp.split(rows[order], cuts), "elements for a split array")
    return places, values
