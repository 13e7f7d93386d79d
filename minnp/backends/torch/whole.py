"""Functions that minnp says in several rows and a device does in one call: by NumPy's name, f(*tensors and numbers).

Short ways only: whatever is not plainly of the usual form raises, and goes the way of the rows. Results share no memory
with arguments, and several are a new tuple or list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .creation import interpolated
from .dtypes import LEGACY, refuse, scalar
from .indexing import wrapped
from .linalg import gelsd
from .shape import transpose

Tensor = torch.Tensor
DTYPES = (torch.float32, torch.float64)
NUMBERS = (int, float)
WHOLE: dict[str, Callable] = {}


def whole(*names: str) -> Callable:
    def enter(f: Callable) -> Callable:
        f.exact = True  # they look at the dtypes themselves: see minnp.backends.Backend.kernel
        WHOLE.update(dict.fromkeys(names, f))
        return f

    return enter


def alike(first: Any, *rest: Any) -> None:
    """Refuse what are not tensors of one dtype of floats."""
    if type(first) is not Tensor or first.dtype not in DTYPES:
        refuse("operands of other dtypes")
    for x in rest:
        if type(x) is not Tensor or x.dtype is not first.dtype:
            refuse("operands of other dtypes")


def moved(first: Any, *rest: Any) -> None:
    """Refuse what are not tensors of one dtype, whichever, with axes and elements."""
    if type(first) is not Tensor or not first.ndim or not first.numel():
        refuse("no array, or one without axes or elements")
    for x in rest:
        if type(x) is not Tensor or x.dtype is not first.dtype or not x.ndim or not x.numel():
            refuse("operands of other dtypes, or without axes or elements")


def filled(first: Any, *rest: Any) -> None:
    """Refuse what are not tensors of one dtype of floats, with axes and elements."""
    if type(first) is not Tensor or first.dtype not in DTYPES:
        refuse("operands of other dtypes")
    moved(first, *rest)


def number(v: Any) -> Any:
    if type(v) is float or (type(v) is int and -(2**53) <= v <= 2**53):  # greater ones torch rounds twice
        return v
    return refuse("an array in the place of a number, or one that is too large")


def element(v: Any, x: Tensor) -> Any:
    """A number that is written among x's elements, whatever their dtype; refused where NumPy would change it."""
    if x.dtype in DTYPES:
        return number(v)
    top = 1 if x.dtype is torch.bool else 127
    return v if type(v) is int and 0 <= v <= top else refuse("a number of another dtype")


# ------------------------------------------------------------------ products
@whole("outer", "linalg.outer")
def outer(a: Tensor, b: Tensor) -> Tensor:
    moved(a, b)
    return torch.outer(a, b)  # of vectors, or it raises


@whole("vdot")
def vdot(a: Tensor, b: Tensor) -> Tensor:
    alike(a, b)
    return torch.dot(a, b)  # of vectors, or it raises


@whole("trace", "ndarray.trace", "linalg.trace")
def trace(a: Tensor) -> Tensor:
    filled(a)
    return torch.trace(a) if a.ndim == 2 else refuse("several matrices")


@whole("inner")
def inner(a: Tensor, b: Tensor) -> Tensor:
    filled(a, b)
    return torch.inner(a, b)


@whole("tensordot", "linalg.tensordot")
def tensordot(a: Tensor, b: Tensor, axes: Any = 2) -> Tensor:
    alike(a, b)
    if type(axes) is int:
        return torch.tensordot(a, b, axes) if axes > 0 else refuse("these axes")
    pair = [[s] if type(s) is int else list(s) for s in axes]
    return torch.tensordot(a, b, pair) if len(pair) == 2 and pair[0] else refuse("these axes")


tensordot.scalar = False  # NumPy's result is an array, also without axes


@whole("einsum")
def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    alike(*operands)
    if type(subscripts) is not str or len(operands) < 2:  # of one it may be a view
        refuse("these operands")
    return torch.einsum(subscripts, *operands)


@whole("kron")
def kron(a: Tensor, b: Tensor) -> Tensor:
    filled(a, b)
    return torch.kron(a, b)


@whole("cross", "linalg.cross")
def cross(a: Tensor, b: Tensor) -> Tensor:
    """Each component from the two after it; torch's own rounds once less, and a x a is not quite 0."""
    filled(a, b)
    if not a.shape[-1] == b.shape[-1] == 3:
        refuse("vectors of other lengths")
    return a.roll(-1, -1) * b.roll(-2, -1) - a.roll(-2, -1) * b.roll(-1, -1)


@whole("vander")
def vander(x: Tensor, N: Any = None, increasing: bool = False) -> Tensor:
    filled(x)
    return torch.vander(x.double(), N, increasing) if x.ndim == 1 and N != 0 else refuse("powers of a matrix, or none")


# ------------------------------------------------------------------ moving
@whole("ndarray.copy")
def copy(x: Tensor) -> Tensor:
    if not x.ndim:
        refuse("a number, perhaps")
    return x.clone() if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)  # the keyword: 0.5 us


@whole("diag")
def diag(v: Tensor, k: int = 0) -> Tensor:
    moved(v)
    return torch.diag(v, k) if v.ndim == 1 else refuse("a matrix, whose diagonal is a view")


@whole("tile")
def tile(x: Tensor, reps: Any) -> Tensor:
    moved(x)
    reps = reps if type(reps) is tuple else (reps,)
    if not all(type(n) is int and n >= 0 for n in reps) or not any(n != 1 for n in reps):
        refuse("these repetitions, or a copy in another memory order")
    return torch.tile(x, reps)


@whole("full_like")
def full_like(a: Tensor, fill_value: Any) -> Tensor:
    moved(a)
    return torch.full_like(a, element(fill_value, a)) if a.is_contiguous() else refuse("another memory order")


@whole("meshgrid")
def meshgrid(*xs: Tensor, indexing: str = "xy") -> Any:
    moved(*xs)
    for x in xs:
        if x.ndim > 1:
            refuse("a matrix")  # torch would print it
    grids = [g.clone() if g.is_contiguous() else g.contiguous() for g in torch.meshgrid(*xs, indexing=indexing)]
    return grids if LEGACY else tuple(grids)


@whole("append")
def append(arr: Tensor, values: Tensor, axis: Any = None) -> Tensor:
    moved(arr, values)
    if axis is None:
        return torch.cat([x if x.ndim == 1 else x.reshape(-1) for x in (arr, values)])
    if type(axis) is not int or not (arr.is_contiguous() and values.is_contiguous()):
        refuse("this axis, or another memory order")
    return torch.cat([arr, values], axis)


@whole("column_stack")
def column_stack(tup: Any) -> Tensor:
    """Vectors side by side."""
    if type(tup) not in (tuple, list):
        refuse("an array in the place of a list")
    moved(*tup)
    return torch.stack(tup, 1) if all(x.ndim == 1 for x in tup) else refuse("matrices")


@whole("dstack")
def dstack(tup: Any) -> Tensor:
    if type(tup) not in (tuple, list):
        refuse("an array in the place of a list")
    moved(*tup)
    return torch.dstack(tup) if all(x.ndim < 3 for x in tup) else refuse("more axes, in another memory order perhaps")


def _widths(given: Any, ndim: int) -> list[int]:
    """How many elements come before and after each axis, the last one first, as torch takes them."""
    if type(given) is int:
        given = (given,)
    try:
        if type(given[0]) is int and len(given) < 3:  # before and after, or one number for both
            flat = [given[0], given[-1]] * ndim
        else:
            flat = [n for before, after in reversed(given) for n in (before, after)]
    except (TypeError, ValueError):
        refuse("these widths")
    for n in flat:
        if type(n) is not int or n < 0:
            refuse("widths that are no integers, or negative")
    return flat if len(flat) == 2 * ndim else refuse("widths of another number of axes")


FLIPS = {  # how many elements from the end the padding starts, and whether they turn
    "edge": (0, False),
    "reflect": (1, True),
    "symmetric": (0, True),
    "wrap": (0, False),
}


@whole("pad")
def pad(x: Tensor, pad_width: Any, mode: str = "constant", *, constant_values: Any = ...) -> Tensor:
    moved(x)
    flat = _widths(pad_width, x.ndim)
    if mode == "constant":
        value = 0 if constant_values is ... else element(constant_values, x)
    elif mode in FLIPS and constant_values is ...:
        value = None
    else:
        refuse("this mode, or an argument of another one")
    if x.is_contiguous():
        return _padded(x, flat, mode, value)
    if not (turned := transpose(x)).is_contiguous():
        return _padded(x.contiguous(), flat, mode, value)
    flat = [n for i in range(0, len(flat), 2) for n in flat[-i - 2 : len(flat) - i]]
    return transpose(_padded(turned, flat, mode, value))  # in Fortran order, as NumPy's


def _padded(x: Tensor, flat: list[int], mode: str, value: Any) -> Tensor:
    if value is not None:
        return torch.constant_pad_nd(x, flat, value)
    out, small = x, x.numel() + sum(flat) < 2**15
    for d in range(x.ndim):
        before, after = flat[-2 * d - 2], flat[-2 * d - 1]
        if not before and not after:
            continue
        if small:
            out = torch.index_select(out, d, _shown(mode, x.shape[d], before, after, x.device))
        else:
            out = torch.cat(_pieces(out, d, before, after, mode), d)
    return out if out is not x else x.clone()


@functools.lru_cache(256)
def _shown(mode: str, n: int, before: int, after: int, device: torch.device) -> Tensor:
    """Which of an axis's n elements each of the padded axis shows: what NumPy makes of their positions."""
    return torch.from_numpy(onp.pad(onp.arange(n), (before, after), mode)).to(device)


def _pieces(x: Tensor, d: int, before: int, after: int, mode: str) -> list[Tensor]:
    """What the padded axis of a large array is joined of, each moved in one go."""
    n, (off, turned) = x.shape[d], FLIPS[mode]
    if mode == "edge":
        return [x.narrow(d, 0, 1)] * before + [x] + [x.narrow(d, n - 1, 1)] * after
    if before > n - off or after > n - off:
        refuse("a padding longer than the array")
    if turned:
        return [x.narrow(d, off, before).flip(d), x, x.narrow(d, n - off - after, after).flip(d)]
    return [x.narrow(d, n - before, before), x, x.narrow(d, 0, after)]


# ------------------------------------------------------------------ rows whose questions the host's own memory answers
def _ascending(a: Tensor, v: Tensor) -> None:
    """Refuse what torch's search does not take as NumPy's does: NaNs, of which the last element tells."""
    if a.ndim != 1 or not a.is_cpu or not a.is_contiguous() or not v.is_contiguous():
        refuse("a search in other memory")
    last = a[-1].item()
    if last != last:
        refuse("a search among NaNs")


@whole("searchsorted", "ndarray.searchsorted")
def searchsorted(a: Tensor, v: Any, side: str = "left") -> Tensor:
    if type(v) in NUMBERS:
        a, v = a.double(), scalar(v, torch.float64, a.device)
    if not (type(a) is type(v) is Tensor and a.dtype is v.dtype is torch.int64):
        alike(a, v)
    _ascending(a, v)
    return torch.searchsorted(a, v, right=side == "right") if side in ("left", "right") else refuse("another side")


@whole("digitize")
def digitize(x: Tensor, bins: Tensor, right: bool = False) -> Tensor:
    alike(x, bins)
    _ascending(bins, x)
    if not (bins[1:] >= bins[:-1]).all().item():
        refuse("bins that do not ascend")
    return torch.searchsorted(bins, x, right=not right)


@whole("take_along_axis")
def take_along_axis(x: Tensor, indices: Tensor, axis: int = -1) -> Tensor:
    return torch.gather(x, axis, _along(x, indices, axis))


def _along(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Indices that are not broadcast. Of those that count from the end the CPU raises, and a device may not."""
    if type(x) is not Tensor or type(axis) is not int or not x.ndim or not x.numel():
        refuse("an array without axes or elements")
    if indices.dtype is not torch.int64:
        refuse("indices of another form")
    shape, of = x.shape, indices.shape
    if of != shape and (len(of) != len(shape) or not 0 < of.numel() * shape[axis] == shape.numel() * of[axis]):
        refuse("indices of another shape")
    return indices if x.is_cpu else wrapped(indices, x.shape[axis])


@whole("interp")
def interp(x: Any, xp: Tensor, fp: Tensor, left: Any = None, right: Any = None) -> Tensor:
    filled(xp, fp)
    if type(x) in NUMBERS:
        x = scalar(float(x), torch.float64, xp.device)
    alike(x)
    if xp.ndim > 1 or xp.shape != fp.shape or len(xp) < 2:
        refuse("another table")
    return interpolated(x.double(), xp.double(), fp.double(), left, right)


@whole("linalg.lstsq")
def lstsq(a: Tensor, b: Tensor, rcond: Any = None) -> tuple:
    if type(a) is not Tensor or type(b) is not Tensor or not a.is_cpu or a.ndim != 2 or b.ndim > 2:
        refuse("these systems")
    if not a.numel() or not b.numel() or (rcond is not None and type(rcond) is not float):
        refuse("an empty system, or this cutoff")
    return gelsd(a, b, rcond)  # or it raises


# ------------------------------------------------------------------ what is written to the first argument
def _moved(sign: int) -> Callable:
    def at(a: Tensor, indices: Any, b: Any) -> Tensor:
        """a with b added at `indices`; elements named twice receive both."""
        filled(a)
        if type(indices) not in (Tensor, list):
            refuse("an index for each axis")
        chosen = indices if type(indices) is Tensor else torch.tensor(indices, device=a.device)
        if chosen.dtype is not torch.int64:
            refuse("these indices")
        if type(b) is Tensor:
            alike(a, b)
        else:
            b = scalar(number(b), a.dtype, a.device)
        return torch.index_put(a, (chosen,), b if sign > 0 else -b, accumulate=True)

    return at


whole("add.at")(_moved(1))
whole("subtract.at")(_moved(-1))


@whole("put", "ndarray.put")
def put(a: Tensor, ind: Any, v: Any) -> Tensor:
    moved(a)
    if not a.is_contiguous():
        refuse("another memory order, which the array keeps")
    chosen = ind if type(ind) is Tensor else torch.tensor(ind)
    if chosen.device != a.device:
        if chosen.numel() and not -a.numel() <= chosen.min() <= chosen.max() < a.numel():
            refuse("an index out of range")  # of which a device tells later
        chosen = chosen.to(a.device)
    if chosen.dtype is not torch.int64:
        refuse("these indices")
    return torch.index_put(a.reshape(-1), (chosen,), scalar(element(v, a), a.dtype, a.device)).reshape(a.shape)


@whole("putmask", "place")
def putmask(a: Tensor, mask: Tensor, values: Any) -> Tensor:
    moved(a)
    if mask.dtype is not torch.bool or mask.shape != a.shape or not a.is_contiguous():
        refuse("this mask, or another memory order, which the array keeps")
    if type(values) is list and len(values) == 1:
        (values,) = values
    return torch.masked_fill(a, mask, element(values, a))


@whole("put_along_axis")
def put_along_axis(arr: Tensor, indices: Tensor, values: Any, axis: int) -> Tensor:
    indices = _along(arr, indices, axis)
    if not arr.is_contiguous():
        refuse("another memory order, which the array keeps")
    if type(values) is not Tensor:
        return torch.scatter(arr, axis, indices, element(values, arr))
    # torch raises where dtypes differ, or an axis of the values is shorter
    return torch.scatter(arr, axis, indices, values) if values.numel() == indices.numel() else refuse("other shapes")


@whole("fill_diagonal")
def fill_diagonal(a: Tensor, val: Any) -> Tensor:
    moved(a)
    return a.clone().fill_diagonal_(element(val, a)) if a.ndim == 2 else refuse("a diagonal of more than two axes")
