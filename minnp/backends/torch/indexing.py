"""Kernels that read, scatter and write by index.

torch's indexing is NumPy's but for three things, mended here: it has no negative steps; it applies integers before
index arrays, so `x[0, :, rows]` orders its axes differently; and it takes uint8 arrays for masks.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from typing import Any

import numpy as onp
import torch

from ...core.rows.strides import narrowed, within
from .dtypes import TO_NUMPY, from_host, refuse, scalar
from .reductions import on_floats, one_dim
from .registry import KERNELS, kernel

Tensor = torch.Tensor
BASIC = (int, type(None), type(Ellipsis))
WHOLE, BACK = slice(None), slice(None, None, -1)


# ------------------------------------------------------------------ reading an index
def positions(index: Any, device: torch.device) -> Tensor:
    """An index array as a tensor torch reads as NumPy does: int64, or bool for a mask."""
    index = getattr(index, "data", index) if type(getattr(index, "data", None)) is Tensor else index
    if type(index) is Tensor:
        array = index
    else:
        array = onp.asarray(index)
        if not array.size and not hasattr(index, "dtype"):
            array = array.astype(onp.int64)  # x[[]]
        if array.dtype.kind not in "biu":
            refuse(f"an index of dtype {array.dtype}")
        array = torch.from_numpy(onp.array(array, array.dtype if array.dtype == bool else onp.int64))
    if array.dtype is not torch.bool:
        if array.dtype.is_floating_point or array.dtype.is_complex:
            refuse(f"an index of dtype {array.dtype}")
        array = array.long()
    return array.to(device)


def is_plain(index: Any) -> bool:
    """Whether torch reads the index as it is."""
    if type(index) is tuple:
        plain = all(type(p) in BASIC or (type(p) is slice and is_plain(p)) for p in index)
        return plain and sum(p is Ellipsis for p in index) < 2  # torch takes several
    if type(index) is slice:
        step = index.step
        return (step is None or (type(step) is int and step > 0)) and _whole(index.start) and _whole(index.stop)
    return type(index) in BASIC


def _turned(part: Any) -> bool:
    return type(part) is slice and (part == BACK or is_plain(part))


def _whole(v: Any) -> bool:
    return v is None or type(v) is int or isinstance(v, onp.integer)


def normal(x: Tensor, index: Any) -> tuple[Tensor, tuple]:
    """(x, index) that torch indexes as NumPy would index the given ones. x is a view of x unless a step is negative."""
    parts = list(index) if isinstance(index, tuple) else [index]
    for i, p in enumerate(parts):
        if isinstance(p, slice) or p is None or p is Ellipsis:
            continue
        if isinstance(p, (bool, onp.bool_)) or (hasattr(p, "dtype") and p.dtype == bool and not p.ndim):
            refuse("True or False as an index")
        lies = type(getattr(p, "data", p)) is Tensor
        if isinstance(p, (int, onp.integer)) or (hasattr(p, "__index__") and not getattr(p, "ndim", 0)):
            # which one lies on a device is not asked: that would wait for it
            parts[i] = positions(p, x.device) if lies and not x.is_cpu else p.__index__()
        elif lies or x.is_cpu or (mask := onp.asarray(p)).dtype != bool:
            parts[i] = positions(p, x.device)
        else:
            parts[i] = mask
    taken = sum([p is not Ellipsis and _width(p) for p in parts])
    if taken > x.ndim:
        refuse("too many indices")
    where = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(where) > 1:
        refuse("more than one ellipsis")
    spot = where[0] if where else len(parts)
    parts[spot : spot + 1] = [slice(None)] * (x.ndim - taken)
    x = _forward(x, parts)
    if any(type(p) is onp.ndarray for p in parts):
        parts = _counted(x, parts)
    if any(type(p) is Tensor and p.ndim for p in parts):  # one without axes alone is an integer
        if not x.is_cpu:
            parts = [p.reshape(1) if type(p) is Tensor and not p.ndim else p for p in parts]
        chosen = [i for i, p in enumerate(parts) if type(p) in (Tensor, int)]
        if chosen[-1] - chosen[0] + 1 != len(chosen):
            # to NumPy an integer beside index arrays is an index array, and ones that are apart go to the front
            parts = [scalar(p, torch.int64, x.device) if type(p) is int else p for p in parts]
            parts = [p.reshape(1) if type(p) is Tensor and not p.ndim else p for p in parts]
    return x, tuple(parts)


def _width(p: Any) -> int:
    """How many axes a part of an index is of."""
    mask = type(p) in (Tensor, onp.ndarray) and p.dtype in (torch.bool, bool)
    return p.ndim if mask else int(p is not None)


def _counted(x: Tensor, parts: list) -> list:
    """Masks of the host's as the positions where they are true, which a device would have to be waited for to count."""
    axis, found = 0, []
    for p in parts:
        width = _width(p)
        if type(p) is not onp.ndarray:
            found.append(p)
        elif p.shape != x.shape[axis : axis + width]:
            refuse("a mask of another shape")
        else:
            found += [torch.from_numpy(i).to(x.device) for i in p.nonzero()]
        axis += width
    return found


def _forward(x: Tensor, parts: list) -> Tensor:
    """x with each slice of negative step already applied and flipped; those parts become whole slices."""
    axis = 0
    for i, p in enumerate(parts):
        if isinstance(p, slice):
            start, stop, step = p.indices(x.shape[axis])
            if step < 0:
                n = len(range(start, stop, step))
                first = start + (n - 1) * step
                x = x[(slice(None),) * axis + (slice(first, start + 1, -step) if n else slice(0, 0),)].flip(axis)
                parts[i] = slice(None)
            else:
                parts[i] = slice(start, max(start, stop), step)
        axis += _width(p)
    return x


@kernel("getitem", bits=True)
def getitem(x: Tensor, index: Any) -> Tensor:
    if (
        type(index) is tuple
        and len(index) == 2 <= x.ndim
        and _is_row(index[1])
        and type(index[0]) is slice
        and index[0] == WHOLE
        and x.numel()
    ):
        return x.T[index[1]].T if x.ndim == 2 else x.transpose(0, 1)[index[1]].transpose(0, 1)  # columns
    if is_plain(index):
        return x[index]
    if type(index) is slice and index == BACK and x.ndim:
        return x.flip(0)
    if type(index) is tuple and all(map(_turned, index)):
        return x[tuple([WHOLE if p == BACK else p for p in index])].flip([d for d, p in enumerate(index) if p == BACK])
    if not x.numel():
        refuse("an index array into an empty array")  # torch does not look at it
    return _gathered(*normal(x, index))


def _is_row(i: Any) -> bool:
    """Whether an index is a row of integers as torch itself takes it."""
    if type(i) is Tensor:
        return i.dtype is torch.int64 and i.ndim == 1
    return type(i) is list and len(i) > 0 and all(type(n) is int for n in i)


def _gathered(x: Tensor, parts: tuple) -> Tensor:
    """x[parts] in NumPy's memory order: first the index arrays' axes, in C order, wherever the result has them."""
    if _alone(parts):
        return torch.ops.aten.index(*_lone(x, parts))
    chosen = [i for i, p in enumerate(parts) if type(p) is Tensor or type(p) is int]
    if len(chosen) < len(parts) or len({p.stride() for p in parts if type(p) is Tensor}) > 1:  # else in theirs
        parts = tuple([p.contiguous() if type(p) is Tensor else p for p in parts])
    if not chosen or not chosen[0] or chosen[-1] - chosen[0] + 1 > len(chosen):  # they are in front
        return x[parts]
    widths = [p.ndim if type(p) is Tensor and p.dtype is torch.bool else 1 for p in parts]
    plain = [[WHOLE] * w if i in chosen else [p] for i, (p, w) in enumerate(zip(parts, widths, strict=True))]
    x, first, width = x[tuple(itertools.chain(*plain))], chosen[0], sum(widths[i] for i in chosen)
    y = x.movedim(list(range(first, first + width)), list(range(width)))[tuple([parts[i] for i in chosen])]
    axes = y.ndim - (x.ndim - width)
    return y.movedim(list(range(axes)), list(range(first, first + axes)))


def _alone(parts: tuple) -> bool:
    """Whether all index arrays are without axes, as `normal` leaves them on a device; x[parts] would ask which."""
    return any(type(p) is Tensor and not p.ndim for p in parts)


def _lone(x: Tensor, parts: tuple) -> tuple[Tensor, list]:
    """(x with the rest of the index applied, for each of its axes the index array or None)."""
    view = x[tuple([WHOLE if type(p) is Tensor else p for p in parts])]
    return view, [p if type(p) is Tensor else None for p in parts if type(p) is not int]


KERNELS["getitem"].basic = operator.getitem


# ------------------------------------------------------------------ scattering
def flat_positions(shape: Any, device: torch.device) -> Tensor:
    n = 1
    for d in shape:
        n *= d
    return torch.arange(n, device=device).reshape(shape)


def wrapped(index: Tensor, n: int) -> Tensor:
    """Index arrays counted from the front."""
    return torch.where(index < 0, index + n, index)


@kernel("index_add", bits=True)
def index_add(g: Tensor, shape: Any, index: Any) -> Tensor:
    """Zeros of `shape` with g added at `index`; elements named twice receive both."""
    out = torch.zeros(shape, dtype=g.dtype, device=g.device)
    if is_plain(index):
        out[index] = g
        return out
    if not isinstance(index, (tuple, slice)):
        rows = positions(index, g.device)
        if rows.dtype is not torch.bool:
            return out.index_add_(0, wrapped(rows.reshape(-1), out.shape[0]), g.reshape(rows.numel(), *out.shape[1:]))
    chosen = getitem(flat_positions(shape, g.device), index)
    out.view(-1).index_add_(0, chosen.reshape(-1), g.reshape(-1))
    return out


@kernel("write_view", bits=True)
def write_view(
    base: Tensor, new: Any, steps: Any = (), index: Any = ..., layout: Any = None, donate: bool = False
) -> Tensor:
    """base with `new` written at `index` of the view that `steps` leads to. `donate`: base itself may be written."""
    out = base if donate else _copied(base)
    if any(row.name not in KERNELS for row, _ in steps):
        refuse("a write through a view of another dtype")
    if type(new) is list or type(new) is tuple:
        new = onp.array(new, TO_NUMPY[base.dtype])
    if type(new) is onp.ndarray and new.ndim:
        new = from_host(new, base.device)
    view = out
    for row, params in steps:
        view = KERNELS[row.name](view, **params)
    kind = view.dtype
    new = new.to(kind) if type(new) is Tensor else scalar(_assigned(new, kind), kind, base.device)
    shown = view is out or view.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
    if shown and is_plain(index):
        view[index] = _fitting(new, view, index)
        return out
    if not base.numel():
        refuse("an index array into an empty array")  # torch does not look at it
    if not steps and not _steps_back(index):
        view, index = normal(out, index)
        new = _fitting(new, view, index)
        if _alone(index):
            torch.ops.aten.index_put_(*_lone(view, index), new)
        else:
            view[index] = new
        return out
    if base.dtype.is_complex and any(row.name in ("real", "imag") for row, _ in steps):
        refuse("a write to the parts of complex numbers where NumPy steps backwards")  # positions are whole numbers'
    chosen = flat_positions(base.shape, base.device)
    for row, params in steps:
        chosen = KERNELS[row.name](chosen, **params)
    chosen = getitem(chosen, index)
    out = out.reshape(-1)
    out[chosen] = new
    return out.reshape(base.shape)


def _copied(x: Tensor) -> Tensor:
    """A copy that lies as x does: of what has gaps torch's own has none, and views of it would be others than x's."""
    if x.is_contiguous() or (steps := narrowed(x.shape, x.stride())) is None:
        return x.clone()
    return torch.empty_strided(x.shape, steps, dtype=x.dtype, device=x.device).copy_(x)


def _assigned(v: Any, dtype: torch.dtype) -> Any:
    """A number as NumPy assigns it to an element, or its exception: of a NaN to an integer, say."""
    if type(v) in (int, bool) or (type(v) is float and dtype.is_floating_point):
        return v
    element = onp.empty((), TO_NUMPY[dtype])
    element[()] = v
    return element[()]


def _steps_back(index: Any) -> bool:
    parts = index if type(index) is tuple else (index,)
    return any(type(p) is slice and p.step is not None and p.step < 0 for p in parts)


def _fitting(new: Tensor, view: Tensor, index: Any) -> Tensor:
    """NumPy drops leading axes of length 1 that the target does not have."""
    parts = index if type(index) is tuple else (index,)
    across = [1 if p.dtype is torch.bool else p.ndim for p in parts if type(p) is Tensor]  # index arrays
    kept = sum([p is None or type(p) is slice for p in parts]) - sum([p is not Ellipsis and _width(p) for p in parts])
    ndim = view.ndim + kept + max(across, default=0)
    if new.ndim and not ndim:
        refuse("an array in the place of an element")
    while new.ndim > ndim and new.shape[0] == 1:
        new = new[0]
    return new


# ------------------------------------------------------------------ indices as arrays
def _valid(indices: Tensor, n: int, mode: str) -> Tensor:
    if mode == "raise":
        return indices
    return indices.clamp(0, n - 1) if mode == "clip" else torch.remainder(indices, n)


def _take_flat(x: Tensor, indices: Any) -> Tensor:
    plain = type(indices) is Tensor and indices.dtype is torch.int64 and indices.ndim
    return torch.take(x, indices) if plain else take(x, indices)


@kernel("take", bits=True, direct=on_floats(_take_flat))
def take(x: Tensor, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    if axis is None and mode == "raise" and type(indices) is Tensor and indices.dtype is torch.int64 and indices.ndim:
        return x.reshape(-1)[indices]
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_dim(axis, x.ndim)
    chosen = positions(indices, x.device)
    if chosen.dtype is torch.bool or (mode != "raise" and not x.shape[axis]):
        refuse("take by a mask, or from an empty axis")
    chosen = _valid(chosen, x.shape[axis], mode)
    if not chosen.ndim and not x.is_cpu:  # torch would ask which it is
        return torch.index_select(x, axis, wrapped(chosen, x.shape[axis]).reshape(1)).squeeze(axis)
    return x[(slice(None),) * axis + (chosen,)]


@kernel("take_add", bits=True)
def take_add(g: Tensor, indices: Any, shape: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    out = torch.zeros(shape, dtype=g.dtype, device=g.device)
    target = out.view(-1) if axis is None else out
    axis = 0 if axis is None else one_dim(axis, out.ndim)
    n = target.shape[axis]
    chosen = wrapped(_valid(positions(indices, g.device), n, mode), n)
    source = g.reshape(*target.shape[:axis], chosen.numel(), *target.shape[axis + 1 :])
    target.index_add_(axis, chosen.reshape(-1), source)
    return out


@kernel("take_along_axis", bits=True)
def take_along_axis(x: Tensor, indices: Any, axis: int | None = -1) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_dim(axis, x.ndim)
    chosen = positions(indices, x.device)
    if chosen.ndim != x.ndim or chosen.dtype is torch.bool:
        refuse("indices of another number of dimensions")
    if x.device.type == "cpu" and 0 < chosen.numel() * x.shape[axis] == x.numel() * chosen.shape[axis]:
        with contextlib.suppress(RuntimeError):  # of those that count from the end, or are broadcast
            return torch.gather(x, axis, chosen)
    chosen = wrapped(chosen, x.shape[axis])
    rest = torch.broadcast_shapes(*[(*t.shape[:axis], *t.shape[axis + 1 :]) for t in (x, chosen)])
    x, chosen = (t.expand(*rest[:axis], t.shape[axis], *rest[axis:]) for t in (x, chosen))
    return torch.gather(x, axis, chosen)  # take_along_dim takes an index that is too large modulo the length


@kernel("add_along_axis", bits=True)
def add_along_axis(g: Tensor, indices: Any, axis: int, shape: Any) -> Tensor:
    out = torch.zeros(shape, dtype=g.dtype, device=g.device)
    axis = one_dim(axis, out.ndim)
    full = [*out.shape]
    full[axis] = g.shape[axis]
    chosen = wrapped(positions(indices, g.device), out.shape[axis]).expand(full)
    return out.scatter_add_(axis, chosen, g.expand(full))


# ------------------------------------------------------------------ memory
def _window(offset: int, shape: Any, strides: Any, device: torch.device) -> Tensor:
    """The flat positions a strided window shows."""
    chosen = torch.full(tuple(shape), offset, device=device)
    for d, (n, step) in enumerate(zip(shape, strides, strict=True)):
        chosen = chosen + (torch.arange(n, device=device) * step).reshape((-1,) + (1,) * (len(shape) - d - 1))
    return chosen


@kernel("strided_view", bits=True)
def strided_view(x: Tensor, offset: int, shape: Any, strides: Any) -> Tensor:
    steps, start = tuple(strides), offset
    if not x.is_contiguous():
        steps, start = within(x.shape, x.stride(), offset, shape, strides)
    if steps is None or min(steps, default=0) < 0:
        return x.reshape(-1)[_window(offset, shape, strides, x.device)]
    return torch.as_strided(x, tuple(shape), steps, x.storage_offset() + start)


@kernel("strided_add", bits=True)
def strided_add(g: Tensor, size: Any, offset: int, shape: Any, strides: Any) -> Tensor:
    out = torch.zeros(tuple(size), dtype=g.dtype, device=g.device)
    out.view(-1).index_add_(0, _window(offset, shape, strides, g.device).reshape(-1), g.reshape(-1))
    return out
