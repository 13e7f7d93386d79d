"""Split arrays at an index, read and written: x[index], take, nonzero, and what their gradients add up.

Slices and numbers move what lies on another rank. A mask over the leading axes chooses on each rank by itself. Arrays
of integers, and other masks, are positions: a rank asks those that have its share of them, or sends what is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE
from ...core.rows.value import Buffer
from ...distributed import collectives
from . import orders
from .kernels import axes_of, concatenate, elementwise, kernel, refuse, reshape, reshaped, transpose
from .parts import Part, bounds, cut, delivered, exchange, fetched, fitted, moved, ranges, shifted, whole_of


class Taken:
    """What a slice takes of an axis: `length` elements start, start + step, ..."""

    __slots__ = ("length", "start", "step")

    def __init__(self, r: range) -> None:
        self.start, self.step, self.length = r.start, r.step, len(r)

    def of(self, a: int, b: int) -> tuple[int, int]:
        """(first, last + 1) of the positions in the result whose elements lie in [a, b)."""
        if self.step > 0:
            lo, hi = -(-(a - self.start) // self.step), -(-(b - self.start) // self.step)
        else:
            lo, hi = (self.start - b) // -self.step + 1, (self.start - a) // -self.step + 1
        lo = min(max(lo, 0), self.length)
        return lo, max(min(max(hi, 0), self.length), lo)

    def local(self, a: int, lo: int, hi: int) -> slice:
        """Those elements in a part that begins at a."""
        if hi <= lo:
            return slice(0, 0)
        first = self.start + self.step * lo - a
        end = first + self.step * (hi - lo)
        return slice(first, end if end >= 0 else None, self.step)


def unwrapped(index: Any) -> Any:
    """An index with the parts of split arrays in the place of their buffers; numbers of those as numbers."""
    if type(index) is Buffer:
        part = index.data
        return part.local[()] if not part.ndim else part
    if type(index) is tuple:
        return tuple(map(unwrapped, index))
    if type(index) is list:
        return onp.asarray(index) if index else onp.empty(0, onp.intp)
    return index


def whole_index(index: Any) -> Any:
    """An index with the whole of the parts in it."""
    return tuple(map(whole_index, index)) if type(index) is tuple else whole_of(index) if type(index) is Part else index


def basic(index: Any, shape: tuple) -> list | None:
    """For each axis the number, or Taken of the slice, that an index says, and None for a new axis; None where the
    index is not made of those alone."""
    parts = list(index) if type(index) is tuple else [index]
    parts = [p[()] if isinstance(p, onp.ndarray) and not p.ndim else p for p in parts]
    kinds = (int, onp.integer, slice, type(None), type(Ellipsis))
    if any(not isinstance(p, kinds) or isinstance(p, bool) for p in parts) or parts.count(Ellipsis) > 1:
        return None
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(shape):
        return None
    fill = [slice(None)] * (len(shape) - used)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts = [*parts[:at], *fill, *parts[at + 1 :]]
    out, axis = [], 0
    for p in parts:
        if p is None:
            out.append(None)
            continue
        n = shape[axis]
        if isinstance(p, slice):
            out.append(Taken(range(n)[p]))
        else:
            if not -n <= p < n:
                return None
            out.append(int(p) % n)
        axis += 1
    return out


# ------------------------------------------------------------------ indices with arrays
class Mixed:
    """An index in which some axes are named by arrays of integers (numbers among them count as such).

    axes     for each axis of the array its Taken, or an integer array: whole (ndarray), or split (Part)
    common   the shape of the arrays, broadcast together
    order    the axes of the result in NumPy's order: "new", or the number of an axis that is sliced, and once "common"
    """

    __slots__ = ("axes", "common", "order")

    def __init__(self, axes: list, order: list) -> None:
        self.axes, self.order = axes, order
        self.common = onp.broadcast_shapes(*[axes[i].shape for i in self.named])

    @property
    def named(self) -> list[int]:
        return [i for i, a in enumerate(self.axes) if type(a) is not Taken]

    @property
    def sliced(self) -> list[int]:
        return [i for i in self.order if type(i) is int]


def mixed(place: Any, index: Any, lengths: Sequence[int]) -> Mixed:
    """An index of an array of these lengths, with its masks as positions; refuses what NumPy refuses."""
    given: list = []
    for p in index if type(index) is tuple else (index,):
        if isinstance(p, (onp.ndarray, Part)) and p.dtype == bool:
            if not p.ndim:
                refuse("a mask without axes")
            if p.shape != tuple(lengths[(used := used_by(given)) : used + p.ndim]) and Ellipsis not in map(type, given):
                refuse("a mask of another shape")
            given += nonzero(place, p) if type(p) is Part else onp.nonzero(p)
        elif isinstance(p, (slice, type(None), type(Ellipsis), int, onp.integer)) and not isinstance(p, bool):
            given.append(p)
        elif isinstance(p, (onp.ndarray, Part)) and p.dtype.kind in "iu":
            given.append(p if p.ndim or type(p) is not Part else p.local)
        else:
            refuse("this index")
    is_array = lambda p: isinstance(p, (onp.ndarray, Part, int, onp.integer))
    where = [k for k, p in enumerate(given) if is_array(p)]
    together = where[-1] - where[0] == len(where) - 1
    dots = [k for k, p in enumerate(given) if p is Ellipsis]
    missing = len(lengths) - used_by(given)
    if missing < 0 or len(dots) > 1:
        refuse("an index of so many axes")
    at = dots[0] if dots else len(given)
    given = [*given[:at], *[slice(None)] * missing, *given[at + len(dots) :]]
    axes: list = []
    order: list = [] if together else ["common"]
    for p in given:
        if p is None:
            order.append("new")
            continue
        axis, n = len(axes), lengths[len(axes)]
        if isinstance(p, slice):
            axes.append(Taken(range(n)[p]))
            order.append(axis)
            continue
        axes.append(positions(place, p if type(p) is Part else onp.asarray(p), n))
        if "common" not in order:
            order.append("common")
    return Mixed(axes, order)


def used_by(given: list) -> int:
    return sum(p is not None and p is not Ellipsis for p in given)


def positions(place: Any, at: Any, n: int) -> Any:
    """Indices with none below 0; refuses those out of bounds, on all ranks."""
    local = at.local if type(at) is Part else at
    wrong = bool(local.size and (local.min() < -n or local.max() >= n))
    if type(at) is Part and at.split and place.mesh.size > 1:
        wrong = bool(collectives._all_reduce(onp.array(wrong), mesh=place.mesh, op="max"))
    if wrong:
        refuse("an index out of bounds")
    local = onp.where(local < 0, local + onp.int64(n), local).astype(onp.int64)
    return at.like(local) if type(at) is Part else local


def share_of(arrays: list, common: tuple, m: int, line: Any) -> list[onp.ndarray]:
    """This rank's share of index arrays along the first of their common axes, as flat arrays."""
    a, b = bounds(common[0], line)
    out = []
    for x in arrays:
        full = len(x.shape) == len(common) and x.shape[0] == common[0]
        if type(x) is Part:
            x = moved(x, [m if full and i == 0 else None for i in range(x.ndim)]).local
        elif full:
            x = x[a:b]
        out.append(onp.broadcast_to(x, (b - a, *common[1:])).reshape(-1))
    return out


def picked(x: Part, arrays: list, common: tuple) -> Part:
    """x[arrays]: integer arrays name the leading axes; the result has their common axes in front."""
    k = len(arrays)
    split = [i for i in range(k) if x.on[i] is not None]
    rest_shape, rest_on = x.shape[k:], x.on[k:]
    if not split or not common:
        x = moved(x, (*[None] * k, *rest_on))
        y = x.local[tuple(map(whole_index, arrays))]
        return Part(x.mesh, (*common, *rest_shape), (*[None] * len(common), *rest_on), y)
    first = max(split, key=lambda i: x.shape[i])
    x = moved(x, [m if i == first or i >= k else None for i, m in enumerate(x.on)])
    order = [first, *[i for i in range(k) if i != first]]
    x, arrays = transpose(None, x, (*order, *range(k, x.ndim))), [arrays[i] for i in order]
    m = x.on[0]
    line, lead = x.mesh.axis(m), x.shape[:k]
    wide = math.prod(lead[1:])
    at = onp.ravel_multi_index(share_of(arrays, common, m, line), lead)
    rows = x.local.reshape(math.prod(x.local.shape[:k]), *x.local.shape[k:])
    y = fetched(line, rows, [(a * wide, b * wide) for a, b in ranges(lead[0], line)], at)
    a, b = bounds(common[0], line)
    y = y.reshape(b - a, *common[1:], *y.shape[1:])
    return Part(x.mesh, (*common, *rest_shape), (m, *[None] * (len(common) - 1), *rest_on), y)


# ------------------------------------------------------------------ reading
@kernel("getitem")
def getitem(place: Any, x: Part, index: Any) -> Part:
    index = unwrapped(index)
    parts = basic(index, x.shape)
    if parts is None:
        y = chosen(place, x, index)
        y.steps = orders.of_choice(x, index, y.shape)
        return y
    local, shape, on, axis, out = x.local, [], [], 0, 0
    near = next((i for i, p in enumerate(p for p in parts if p is not None)
                 if x.on[i] is not None and type(p) is Taken and p.step == 1), None)  # fmt: skip
    if near is not None:
        p = [p for p in parts if p is not None][near]
        found = shifted(x, near, p.start, p.length)
        local, near = (x.local, None) if found is None else (found, near)
    for p in parts:  # `out` is the axis of `local` that is next
        if p is None:
            local = onp.expand_dims(local, out)
            shape.append(1), on.append(None)
            out += 1
            continue
        n, m = x.shape[axis], x.on[axis]
        line = None if m is None else x.mesh.axis(m)
        here: list = [slice(None)] * local.ndim
        if type(p) is int:
            if line is None:
                here[out] = p
                local = local[tuple(here)]
            else:
                owner = next(r for r, (a, b) in enumerate(ranges(n, line)) if a <= p < b)
                if owner == line.rank:
                    here[out] = p - bounds(n, line)[0]
                    local = onp.array(local[tuple(here)], order="C")
                else:
                    local = onp.empty(local.shape[:out] + local.shape[out + 1 :], local.dtype)
                local = onp.asarray(collectives._broadcast(local, mesh=line, root=owner))
        else:
            if line is None:
                here[out] = p.local(0, 0, p.length)
                local = local[tuple(here)]
            elif axis != near and (p.start, p.step, p.length) != (0, 1, n):
                have = [p.of(a, b) for a, b in ranges(n, line)]
                here[out] = p.local(bounds(n, line)[0], *have[line.rank])
                local = exchange(line, local[tuple(here)], out, have, ranges(p.length, line))
            shape.append(p.length), on.append(m)
            out += 1
        axis += 1
    y = Part(x.mesh, shape, on, local)
    if local.ndim:
        y.steps = orders.of_view(x, parts)
    return y


@kernel("flip")
def flip(place: Any, x: Part, axis: Any = None) -> Part:
    axes = axes_of(axis, x.ndim)
    return getitem(place, x, index=tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim)))


@kernel("diff")
def diff(place: Any, x: Part, n: int = 1, axis: int = -1) -> Part:
    (axis,) = axes_of(axis, x.ndim)
    minus = TABLE["not_equal" if x.dtype == "?" else "subtract"]
    for _ in range(n):
        later, before = (getitem(place, x, index=(*[slice(None)] * axis, s)) for s in (slice(1, None), slice(None, -1)))
        x = elementwise(minus, place, later, before)
    return x


@kernel("roll")
def roll(place: Any, x: Part, shift: Any, axis: Any = None) -> Part:
    if onp.ndim(shift) > 1 or onp.ndim(axis) > 1 or onp.asarray(shift).dtype.kind not in "iu":
        refuse("roll by this shift")
    if axis is None:
        return reshaped(roll(place, reshaped(x, (x.size,)), int(onp.sum(shift)), 0), x.shape)
    if onp.ndim(shift) or onp.ndim(axis):
        for each, along in onp.broadcast(shift, axis):
            x = roll(place, x, int(each), int(along))
        return x
    (axis,) = axes_of(axis, x.ndim)
    at = -shift % max(x.shape[axis], 1)
    front, end = (getitem(place, x, index=(*[slice(None)] * axis, s)) for s in (slice(at, None), slice(None, at)))
    return concatenate(place, front, end, axis=axis)


def mask_of(index: Any, x: Part) -> Part | None:
    """A mask over the leading axes of x as a part that lies as x does; None for any other index."""
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if not isinstance(index, (onp.ndarray, Part)) or index.dtype != bool or not 0 < index.ndim <= x.ndim:
        return None
    if index.shape != x.shape[: index.ndim]:
        return None
    on = x.on[: index.ndim]
    return moved(index, on) if type(index) is Part else Part(x.mesh, index.shape, on, cut(x.mesh, index, on))


def in_front(x: Part) -> Part:
    """x, split along its first axis alone, so that each rank's part is a piece of its elements in their order."""
    m = next((m for m in x.on if m is not None), None)
    return moved(x, (m, *[None] * (x.ndim - 1)))


def spread(line: Any, m: int, mesh: Any, local: onp.ndarray) -> Part:
    """An array split along its first axis, of which each rank made the rows `local`, in the order of ranks."""
    ends = onp.cumsum(collectives._all_gather(onp.array([len(local)]), mesh=line, axis=0)).tolist()
    local = exchange(line, local, 0, list(zip([0, *ends], ends)), ranges(ends[-1], line))
    return Part(mesh, (ends[-1], *local.shape[1:]), (m, *[None] * (local.ndim - 1)), local)


def chosen(place: Any, x: Part, index: Any) -> Part:
    """x at an index with masks or arrays of integers."""
    mask = mask_of(index, x)
    if mask is not None and x.split:
        x = in_front(x)
        mask = moved(mask, x.on[: mask.ndim])
        return spread(x.mesh.axis(x.on[0]), x.on[0], x.mesh, x.local[mask.local])
    said = mixed(place, index, x.shape)
    x = getitem(place, x, tuple([as_slice(a) if type(a) is Taken else slice(None) for a in said.axes]))
    x = transpose(place, x, (*said.named, *said.sliced))
    y = picked(x, [said.axes[i] for i in said.named], said.common)
    k = len(said.common)  # now in NumPy's order, and with the new axes
    back = {"common": list(range(k))} | {i: [k + j] for j, i in enumerate(said.sliced)}
    y = transpose(place, y, [a for i in said.order if i != "new" for a in back[i]])
    shape = [n for i in said.order for n in (said.common if i == "common" else (1,) if i == "new" else (said.axes[i].length,))]  # noqa: E501  # fmt: skip
    return reshaped(y, tuple(shape))


def as_slice(p: Taken) -> slice:
    stop = p.start + p.step * p.length
    return slice(p.start, stop if stop >= 0 else None, p.step) if p.length else slice(0, 0)


@kernel("take")
def take(place: Any, x: Part, indices: Any, axis: Any = None, mode: str = "raise") -> Part:
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    (axis,) = axes_of(axis, x.ndim)
    at = taken_at(place, indices, x.shape[axis], mode)
    return getitem(place, x, (*[slice(None)] * axis, at))


def taken_at(place: Any, indices: Any, n: int, mode: str) -> Any:
    """The indices of `take` after its mode has been applied."""
    if onp.result_type(indices.dtype if type(indices) is Part else indices).kind not in "iu":
        refuse("indices of this dtype")
    local = indices.local if type(indices) is Part else onp.asarray(indices)
    if mode != "raise" and n:
        local = onp.clip(local, 0, n - 1) if mode == "clip" else onp.remainder(local, n)
    return indices.like(local) if type(indices) is Part and indices.ndim else local[()]


def flat_index(x: Part, indices: Any, axis: int) -> tuple:
    """The index tuple that reads `indices` along one axis and every position of the others."""
    along = lambda d, n: onp.arange(n).reshape((1,) * d + (-1,) + (1,) * (x.ndim - d - 1))
    return tuple(indices if d == axis else along(d, n) for d, n in enumerate(x.shape))


@kernel("take_along_axis")
def take_along_axis(place: Any, x: Part, indices: Any, axis: int) -> Part:
    (axis,) = axes_of(axis, x.ndim)
    lies = along_split(x, indices, axis)
    if lies is None:
        return getitem(place, x, flat_index(x, indices, axis))
    x, at = moved(x, lies), moved(indices, lies)
    shape = [at.shape[i] if i == axis else n for i, n in enumerate(x.shape)]
    return Part(x.mesh, shape, lies, onp.take_along_axis(x.local, at.local, axis))


def along_split(x: Any, at: Any, axis: int) -> tuple | None:
    """A layout in which an axis is whole for both, and the others alike; None where one must stay split."""
    if onp.ndim(at) != x.ndim:
        refuse("indices of other axes")
    rest = [i for i in range(x.ndim) if i != axis and x.shape[i] == at.shape[i] > 1]
    if any(x.shape[i] != at.shape[i] for i in range(x.ndim) if i != axis) or type(at) is not Part:
        refuse("indices of another shape")
    on = [m if i in rest else None for i, m in enumerate(x.on)]
    m = x.on[axis]
    if m is None:
        return tuple(on)
    other = next((i for i in rest if on[i] is None), None)
    if other is None:
        return None
    on[other] = m
    return tuple(on)


@kernel("add_along_axis")
def add_along_axis(place: Any, g: Part, indices: Any, axis: int, shape: Sequence[int]) -> Part:
    (axis,) = axes_of(axis, g.ndim)
    like = Part(g.mesh, shape, g.on, onp.empty(0))
    lies = along_split(like, indices, axis) if type(indices) is Part else refuse("indices on the host")
    if lies is None:
        return index_add(place, g, shape, flat_index(like, indices, axis))
    g, at = moved(g, lies), moved(indices, lies)
    out = zeros(g.mesh, shape, lies, g.dtype)
    where = flat_index(out.like(out.local) if not out.split else Part(g.mesh, out.local.shape, lies, out.local), at.local, axis)  # noqa: E501  # fmt: skip
    onp.add.at(out.local, where, g.local)
    return out


def zeros(mesh: Any, shape: Sequence[int], on: Sequence[int | None], dtype: Any, value: Any = 0) -> Part:
    local = [n if m is None else len(range(n)[mesh.axis(m).part(n)]) for n, m in zip(shape, on, strict=True)]
    return Part(mesh, shape, on, onp.full(local, value, dtype))


@kernel("nonzero")
def nonzero(place: Any, x: Part) -> tuple[Part, ...]:
    if not x.ndim:
        refuse("nonzero of a number")
    if not x.split:
        return tuple(Part(x.mesh, at.shape, (None,), at) for at in onp.nonzero(x.local))
    x = in_front(x)
    m = x.on[0]
    line = x.mesh.axis(m)
    first, *others = onp.nonzero(x.local)
    found = onp.stack([first + bounds(x.shape[0], line)[0], *others], 1)
    rows = spread(line, m, x.mesh, found)
    return tuple(Part(x.mesh, rows.shape[:1], (m,), at) for at in rows.local.T)


@kernel("flatnonzero")
def flatnonzero(place: Any, x: Part) -> Part:
    return nonzero(place, reshaped(x, (x.size,)))[0]


@kernel("argwhere")
def argwhere(place: Any, x: Part) -> Part:
    found = nonzero(place, x)
    y = onp.stack([p.local for p in found], 1)
    return Part(x.mesh, (found[0].shape[0], x.ndim), (found[0].on[0], None), y)


@kernel("repeat")
def repeat(place: Any, x: Part, repeats: Any, axis: Any = None) -> Part:
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    (axis,) = axes_of(axis, x.ndim)
    n = x.shape[axis]
    many = onp.broadcast_to(whole_index(unwrapped(repeats)), (n,))
    if many.dtype.kind not in "iub" or (many < 0).any():
        refuse("repeat so often")
    ends = [0, *onp.cumsum(many).tolist()]
    shape = [ends[-1] if i == axis else k for i, k in enumerate(x.shape)]
    if x.on[axis] is None:
        return Part(x.mesh, shape, x.on, onp.repeat(x.local, many, axis))
    line = x.mesh.axis(x.on[axis])
    a, b = bounds(n, line)
    have = [(ends[c], ends[d]) for c, d in ranges(n, line)]
    local = exchange(line, onp.repeat(x.local, many[a:b], axis), axis, have, ranges(ends[-1], line))
    return Part(x.mesh, shape, x.on, local)


# ------------------------------------------------------------------ diagonals
@kernel("diagonal")
def diagonal(place: Any, x: Part, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Part:
    i, j = axes_of((axis1, axis2), x.ndim)
    x = transpose(place, x, (*[a for a in range(x.ndim) if a not in (i, j)], i, j))
    if x.on[-1] is not None:  # rows alone are split
        x = moved(x, (*x.on[:-2], x.on[-1] if x.on[-2] is None else x.on[-2], None))
    n = len(onp.diagonal(onp.broadcast_to(0, x.shape[-2:]), offset))
    shape, on = (*x.shape[:-2], n), x.on[:-1]
    if on[-1] is None:
        return Part(x.mesh, shape, on, onp.diagonal(x.local, offset, -2, -1))
    line, above = x.mesh.axis(on[-1]), max(-offset, 0)
    have = [(min(max(a - above, 0), n), min(max(b - above, 0), n)) for a, b in ranges(x.shape[-2], line)]
    lo, hi = have[line.rank]
    at = onp.arange(lo, hi)
    mine = x.local[..., at + above - bounds(x.shape[-2], line)[0], at + max(offset, 0)]
    return Part(x.mesh, shape, on, exchange(line, mine, x.ndim - 2, have, ranges(n, line)))


@kernel("diagonal_set")
def diagonal_set(place: Any, g: Part, shape: Sequence[int], offset: int = 0, axis1: int = 0, axis2: int = 1) -> Part:
    i, j = axes_of((axis1, axis2), len(shape))
    others = [a for a in range(len(shape)) if a not in (i, j)]
    rows, columns, n = shape[i], shape[j], g.shape[-1]
    above = max(-offset, 0)
    on, local = g.on[:-1], g.local
    m = g.on[-1] if rows > 1 else None
    if m is None:
        g = moved(g, (*on, None))
        at, first, here = onp.arange(n) + above, 0, rows
        at_columns, local = onp.arange(n) + max(offset, 0), g.local
    else:
        line = g.mesh.axis(m)
        want = [(min(max(a - above, 0), n), min(max(b - above, 0), n)) for a, b in ranges(rows, line)]
        local = exchange(line, local, g.ndim - 1, ranges(n, line), want)
        first, stop = bounds(rows, line)
        at, here = onp.arange(*want[line.rank]) + above, stop - first
        at_columns = onp.arange(*want[line.rank]) + max(offset, 0)
    out = onp.zeros((*local.shape[:-1], here, columns), g.dtype)
    out[..., at - first, at_columns] = local
    y = Part(g.mesh, (*[shape[a] for a in others], rows, columns), (*on, m, None), out)
    return transpose(place, y, onp.argsort([*others, i, j]).tolist())


# ------------------------------------------------------------------ writing
@kernel("write_view")
def write_view(
    place: Any, old: Part, new: Any, steps: tuple = (), index: Any = (), layout: Any = None, donate: bool = False
) -> Part:
    index, new = unwrapped(index), onp.asarray(new) if type(new) in (list, tuple) else new
    k = next((k for k, (row, _) in enumerate(steps) if row.name in ("reshape", "real", "imag")), None)
    if k is not None:
        return through_copy(place, old, new, steps, k, index)
    mask = None if steps or not old.split else mask_of(index, old)
    if mask is not None and (onp.shape(new) == () or onp.shape(new) == old.shape[mask.ndim :] == ()):
        local = written(old, donate)
        local[mask.local] = new.local if type(new) is Part else new
        return old.like(local)
    if mask is not None and old.on == in_front(old).on and type(new) is Part and new.ndim == 1 + old.ndim - mask.ndim:
        local = written(old, donate)
        at_mask(old, mask, local, new)
        return old.like(local)
    return put(place, old, new, through(place, steps, index, old.shape), donate)


def through_copy(place: Any, old: Part, new: Any, steps: tuple, k: int, index: Any) -> Part:
    """A write through a view whose step k has its elements elsewhere: they are written there, and moved back."""
    before, (row, params) = steps[:k], steps[k]
    base = old
    for step, said in before:
        base = place.kernel(step)(base, **said)
    there = write_view(place, place.kernel(row)(base, **params), new, steps[k + 1 :], index)
    order = orders.counted(base, params.get("order"))
    back = moved(reshape(place, there, shape=base.shape, order=order), base.on)
    if row.name != "reshape" and base.dtype.kind == "c":
        back, part = base.like(onp.array(base.local)), back.local
        setattr(back.local, row.name, part)
    return write_view(place, old, back, before, ...) if before else old.like(onp.ascontiguousarray(back.local))


def at_mask(like: Part, mask: Part, local: onp.ndarray, new: Part) -> None:
    """local[mask] = new: of a part that is split along its first axis alone."""
    line = like.mesh.axis(like.on[0])
    count = int(mask.local.sum())
    ends = onp.cumsum(collectives._all_gather(onp.array([count]), mesh=line, axis=0)).tolist()
    if new.shape != (ends[-1], *like.shape[mask.ndim :]):
        refuse("a write of this shape to a mask")
    new = moved(new, (like.on[0], *[None] * (new.ndim - 1)))
    local[mask.local] = exchange(line, new.local, 0, ranges(ends[-1], line), list(zip([0, *ends], ends)))


def written(old: Part, donate: bool) -> onp.ndarray:
    """The memory that a write to `old` goes to: its own, if nobody else shows it, or a copy."""
    return old.local if donate and old.local.flags.writeable else onp.array(old.local)


def fit(new: Any, shape: tuple) -> Any:
    """A value without the leading ones that NumPy lets an assignment drop; raises as NumPy where it does not fit."""
    given = onp.shape(new)
    while len(onp.shape(new)) > len(shape) and new.shape[0] == 1:
        new = reshaped(new, new.shape[1:]) if type(new) is Part else new[0]
    now = onp.shape(new)
    if len(now) > len(shape) or any(n not in (1, s) for n, s in zip(now[::-1], shape[::-1])):
        raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")
    return new


class Step:
    """What an axis of a view shows: elements of an axis of the root (`axis` None: a new one, of length 1)."""

    __slots__ = ("axis", "elements")

    def __init__(self, axis: int | None, elements: range) -> None:
        self.axis, self.elements = axis, elements


def through(place: Any, steps: tuple, index: Any, shape: Sequence[int]) -> Mixed:
    """The index into the root of what an index into a view of it says: of views by slices, numbers, new axes and
    transposes."""
    fixed: dict[int, int] = {}
    view = [Step(i, range(n)) for i, n in enumerate(shape)]
    for row, params in steps:
        if row.name == "getitem":
            parts = basic(unwrapped(params["index"]), tuple(len(s.elements) for s in view))
            if parts is None:
                refuse("a write through this view")
            view = narrowed(view, parts, fixed)
        elif row.name in ("transpose", "swapaxes", "expand_dims", "squeeze"):
            view = arranged(row, params, view, fixed)
        else:
            refuse(f"a write through a view by {row.name}")
    lengths = tuple(len(s.elements) for s in view)
    axes: list = [fixed.get(i) for i in range(len(shape))]
    parts = basic(index, lengths)
    if parts is not None:
        view = narrowed(view, parts, fixed)
        order: list = ["new" if s.axis is None else s.axis for s in view]
        for i, n in fixed.items():
            axes[i] = n
        for s in view:
            if s.axis is not None:
                axes[s.axis] = Taken(s.elements)
        if any(not len(s.elements) for s in view if s.axis is None):
            refuse("a write to nothing")
        return numbers_first(axes, order)
    said = mixed(place, index, lengths)
    for s, a in zip(view, said.axes, strict=True):
        if s.axis is None:
            if type(a) is not Taken or a.length != 1:
                refuse("a write to this index of a new axis")
            continue
        if type(a) is Taken:
            axes[s.axis] = Taken(s.elements[as_slice(a)])
        else:
            at = lambda local, r=s.elements: r.start + r.step * local
            axes[s.axis] = a.like(at(a.local)) if type(a) is Part else at(a)
    order = ["new" if i != "common" and i != "new" and view[i].axis is None else
             view[i].axis if type(i) is int else i for i in said.order]  # fmt: skip
    axes = [onp.asarray(fixed[i]) if i in fixed else a for i, a in enumerate(axes)]
    return Mixed(axes, order)


def narrowed(view: list[Step], parts: list, fixed: dict[int, int]) -> list[Step]:
    out, steps = [], iter(view)
    for p in parts:
        if p is None:
            out.append(Step(None, range(1)))
            continue
        s = next(steps)
        if type(p) is not int:
            out.append(Step(s.axis, s.elements[as_slice(p)]))
        elif s.axis is not None:
            fixed[s.axis] = s.elements[p]
    return out


def arranged(row: Any, params: dict, view: list[Step], fixed: dict[int, int]) -> list[Step]:
    """The axes of a view after a transpose, or with axes of length 1 added or left out."""
    if row.name == "squeeze":
        axis = params.get("axis")
        drop = [k for k, s in enumerate(view) if len(s.elements) == 1] if axis is None else axes_of(axis, len(view))
        fixed.update({s.axis: s.elements[0] for k, s in enumerate(view) if k in drop and s.axis is not None})
        return [s for k, s in enumerate(view) if k not in drop]
    known = onp.broadcast_to(False, [k + 2 for k in range(len(view))])  # each axis by its length
    shape = row.numpy(known, **params).shape
    return [Step(None, range(1)) if n == 1 else view[n - 2] for n in shape]


def numbers_first(axes: list, order: list) -> Mixed:
    """A Mixed index of slices and numbers alone: its numbers as arrays without axes."""
    said = Mixed.__new__(Mixed)
    said.axes = [a if type(a) is Taken else onp.asarray(a) for a in axes]
    said.order, said.common = order, ()
    return said


def put(place: Any, old: Part, new: Any, said: Mixed, donate: bool = False, add: bool = False) -> Part:
    """`old` with a value written, or added, at an index."""
    named, sliced, k = said.named, said.sliced, len(said.common)
    lengths = {i: said.axes[i].length for i in sliced}
    shape = tuple(n for i in said.order for n in (said.common if i == "common" else (lengths.get(i, 1),)))
    new = ordered(fit(new, shape), said, shape)  # [*common, *sliced], each axis whole or of length 1
    here: list = []
    split = [i for i in named if old.on[i] is not None]
    lead = [i for i in split if said.common]
    if len(lead) > 1:
        refuse("a write to arrays of integers along two split axes")
    if type(new) is Part:  # it lies as what it replaces
        on = [old.on[i] if n == lengths[i] else None for i, n in zip(sliced, new.shape[k:])]
        common = [old.on[lead[0]] if lead and k and n == said.common[0] and j == 0 else None
                  for j, n in enumerate(new.shape[:k])]  # fmt: skip
        new = moved(new, (*common, *on))
    for j, i in enumerate(sliced, k):
        p, n, m = said.axes[i], old.shape[i], old.on[i]
        line = None if m is None else old.mesh.axis(m)
        have = [p.of(a, b) for a, b in ([(0, n)] if line is None else ranges(n, line))]
        mine = have[0 if line is None else line.rank]
        here.append(p.local(0 if line is None else bounds(n, line)[0], *mine))
        if line is None or not onp.ndim(new) or new.shape[j] != p.length:
            continue
        if type(new) is Part and new.on[j] is not None:
            new = Part(new.mesh, new.shape, new.on, exchange(line, new.local, j, ranges(p.length, line), have))
        else:
            cuts = (slice(None),) * j + (slice(*mine),)
            new = Part(new.mesh, new.shape, new.on, new.local[cuts]) if type(new) is Part else new[cuts]
    local = written(old, donate)
    target = local.transpose(*named, *sliced)[(*[slice(None)] * len(named), *here, ...)]
    value = new.local if type(new) is Part else new
    store = (lambda at, v: onp.add.at(target, at, v)) if add else (lambda at, v: target.__setitem__(at, v))
    if not lead:  # numbers along a split axis are one rank's to write
        at = []
        for i in named:
            a = bounds(old.shape[i], old.mesh.axis(old.on[i])) if old.on[i] is not None else (0, old.shape[i])
            if i in split and not a[0] <= said.axes[i] < a[1]:
                return old.like(local)
            at.append(whole_index(said.axes[i]) - a[0])
        store(tuple(at) if at else ..., value)
        return old.like(local)
    (i,) = lead
    line = old.mesh.axis(old.on[i])
    start, stop = bounds(old.shape[i], line)
    spread_out = any(type(said.axes[j]) is Part and said.axes[j].split for j in named)
    if not spread_out and not (type(new) is Part and new.on[0] is not None if k and type(new) is Part else False):
        arrays = [onp.broadcast_to(whole_index(said.axes[j]), said.common) for j in named]
        mine = (arrays[named.index(i)] >= start) & (arrays[named.index(i)] < stop)
        value = onp.broadcast_to(value, (*said.common, *target.shape[len(named) :]))[mine]
        store(tuple(a[mine] - (start if j == i else 0) for j, a in zip(named, arrays)), value)
        return old.like(local)
    order = [i, *[j for j in named if j != i]]
    lead_shape = [old.shape[j] for j in order]
    wide = math.prod(lead_shape[1:])
    a, b = bounds(said.common[0], line)
    at = onp.ravel_multi_index(share_of([said.axes[j] for j in order], said.common, old.on[i], line), lead_shape)
    if onp.ndim(value) and value.shape[0] == said.common[0] != 1 and not (type(new) is Part and new.on[0] is not None):
        value = value[a:b]
    value = onp.broadcast_to(value, (b - a, *said.common[1:], *target.shape[len(named) :]))
    value = value.reshape(len(at), *target.shape[len(named) :])
    ends = [(c * wide, d * wide) for c, d in ranges(old.shape[i], line)]
    at, value = delivered(line, ends, at, onp.ascontiguousarray(value, value.dtype if add else old.dtype))
    places = dict(zip(order, onp.unravel_index(at, lead_shape)))
    store(tuple(places[j] - (start if j == i else 0) for j in named), value)
    return old.like(local)


def ordered(new: Any, said: Mixed, shape: tuple) -> Any:
    """A value that is written to an index, in NumPy's order of axes, with the common ones in front and no new ones."""
    if not onp.ndim(new):
        return new.local[()] if type(new) is Part else new
    full = (*[1] * (len(shape) - onp.ndim(new)), *new.shape)
    groups, at = {}, 0
    new_axes = []
    for i in said.order:
        n = len(said.common) if i == "common" else 1
        (new_axes.extend if i == "new" else groups.setdefault(i, []).extend)(range(at, at + n))
        at += n
    axes = [*groups.get("common", []), *[a for i in said.sliced for a in groups[i]]]
    keep = [a for a in range(len(full)) if a not in new_axes]
    turn = tuple(keep.index(a) for a in axes)
    lies = tuple(full[a] for a in keep)
    return transpose(None, reshaped(new, lies), turn) if type(new) is Part else new.reshape(lies).transpose(turn)


@kernel("last_write")
def last_write(place: Any, x: Part, index: Any) -> Part:
    """x[index], zero where a later element of the index names the same place."""
    y = getitem(place, x, index)
    said = mixed(place, unwrapped(index), x.shape)
    if not said.common:
        return y
    order = onp.arange(y.size).reshape(y.shape)
    marks = zeros(x.mesh, x.shape, x.on, onp.int64, -1)
    marks = put(place, marks, Part(x.mesh, y.shape, y.on, cut(x.mesh, order, y.on)), said)
    won = moved(getitem(place, marks, index), y.on).local == cut(x.mesh, order, y.on)
    return y.like(onp.where(won, y.local, y.dtype.type(0)))


@kernel("index_add")
def index_add(place: Any, g: Part, shape: Sequence[int], index: Any) -> Part:
    """Zeros of a shape with g added at an index: what the gradient of x[index] is."""
    index, shape = unwrapped(index), tuple(shape)
    on = tuple(m if n > 1 else None for n, m in zip(shape, fitted(place.on, len(shape))))
    out = zeros(g.mesh, shape, on, g.dtype)
    mask = mask_of(index, out)
    if mask is not None and out.split:
        out = in_front(out)
        at_mask(out, moved(mask, out.on[: mask.ndim]), out.local, g)
        return moved(out, on)
    return put(place, out, g, through(place, (), index, shape), donate=True, add=basic(index, shape) is None)


@kernel("take_add")
def take_add(place: Any, g: Part, indices: Any, shape: Sequence[int], axis: Any = None, mode: str = "raise") -> Part:
    if axis is None:
        flat = take_add(place, g, indices, (math.prod(shape),), 0, mode)
        return reshaped(flat, tuple(shape))
    (axis,) = axes_of(axis, len(shape))
    at = taken_at(place, indices, shape[axis], mode)
    return index_add(place, g, shape, (*[slice(None)] * axis, at))
