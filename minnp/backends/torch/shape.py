"""Kernels that move elements without changing them, and joining."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as onp
import torch

from .dtypes import SIGNED, cast, device_of, promote, refuse
from .elementwise import UNSIGNED
from .reductions import dims, on_floats, one_dim
from .registry import KERNELS, kernel

Tensor = torch.Tensor


@kernel("broadcast_to", bits=True)
def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    return x.expand(shape)


@kernel("reshape")
def reshape(x: Tensor, shape: Any, order: str = "C") -> Tensor:
    if type(shape) is onp.ndarray:
        shape = tuple(shape.tolist())
    if order == "C":
        return x.reshape(shape)
    if order != "F":
        refuse("order 'A' follows the layout in memory")
    shape = (shape,) if not isinstance(shape, Sequence) else tuple(shape)
    turned = _reversed(x)
    y = turned.reshape(shape[::-1])
    shown = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return _reversed(y) if shown else _reversed(y).clone()  # which is no view to torch either


def _reversed(x: Tensor) -> Tensor:
    return x.permute(tuple(range(x.ndim))[::-1])


@kernel("transpose", bits=True)
def transpose(x: Tensor, axes: Any = None) -> Tensor:
    if axes is not None:
        return x.permute(tuple(axes))
    return x.T if x.ndim == 2 else _reversed(x)  # the attribute takes half the time of x.t()


@kernel("swapaxes", bits=True)
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    return x.transpose(one_dim(axis1, x.ndim), one_dim(axis2, x.ndim))


@kernel("expand_dims", bits=True)
def expand_dims(x: Tensor, axis: Any) -> Tensor:
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    for d in sorted(dims(axis, x.ndim + count)):
        x = x.unsqueeze(d)
    return x


@kernel("squeeze", bits=True)
def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    if axis is None:
        return x.squeeze()
    over = dims(axis, x.ndim)
    if any(x.shape[d] != 1 for d in over):
        refuse("squeeze of an axis that is not 1 long")
    return x.squeeze(over)


def _squeeze_one(x: Tensor, axis: int) -> Tensor:
    return x.squeeze(axis) if x.shape[axis] == 1 else refuse("squeeze of an axis that is not 1 long")


for _name, _basic in {
    "reshape": Tensor.reshape,
    "transpose": Tensor.permute,
    "swapaxes": torch.transpose,
    "expand_dims": torch.unsqueeze,
    "squeeze": _squeeze_one,
    "broadcast_to": Tensor.expand,
}.items():
    KERNELS[_name].basic, KERNELS[_name].shows = _basic, True
KERNELS["reshape"].shows = Tensor._is_view


@kernel("flip", bits=True)
def flip(x: Tensor, axis: Any = None) -> Tensor:
    if axis is None and x.ndim == 1:
        return torch.flip(x, (0,))
    return torch.flip(x, dims(axis, x.ndim))


def _roll(x: Tensor, shift: Any) -> Tensor:
    return torch.roll(x, shift) if type(shift) is int else roll(x, shift)


@kernel("roll", bits=True, direct=on_floats(_roll))
def roll(x: Tensor, shift: Any, axis: Any = None) -> Tensor:
    if type(shift) is type(axis) is int and x.ndim:
        return torch.roll(x, shift, axis)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if not all(isinstance(s, (int, onp.integer)) for s in shifts):
        refuse("shifts that are no integers")
    if axis is None:
        return torch.roll(x, int(shifts[0])) if len(shifts) == 1 else refuse("several shifts, no axis")
    axes = tuple([one_dim(a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    n = max(len(axes), len(shifts))
    if {len(axes), len(shifts)} - {1, n}:
        refuse("shifts and axes of different lengths")
    return torch.roll(x, [int(s) for s in shifts * (n // len(shifts))], list(axes * (n // len(axes))))


@kernel("copy", bits=True)
def copy(x: Tensor, order: str = "K") -> Tensor:
    """x itself where its memory is in that order, for values are immutable: a write to either copies."""
    if x.is_contiguous() or order == "C":
        return x.contiguous() if order != "F" else _reversed(_reversed(x).contiguous())
    return x.clone() if order != "F" else _reversed(_reversed(x).contiguous())


def _repeat(x: Tensor, repeats: Any) -> Tensor:
    return torch.repeat_interleave(x, repeats) if type(repeats) is int else repeat(x, repeats)


@kernel("repeat", bits=True, direct=on_floats(_repeat))
def repeat(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_dim(axis, x.ndim)
    if hasattr(repeats, "__len__") and getattr(repeats, "ndim", 1):
        repeats = [operator.index(r) for r in repeats]
        if len(repeats) != 1:
            return torch.repeat_interleave(x, torch.tensor(repeats, device=x.device), axis)
        (repeats,) = repeats
    return torch.repeat_interleave(x, operator.index(repeats), axis)


@kernel("tile", bits=True)
def tile(x: Tensor, reps: Any) -> Tensor:
    return torch.tile(x, (reps,) if not hasattr(reps, "__len__") else tuple(reps))


# ------------------------------------------------------------------ joining
def _joined(join: Any) -> Any:
    def run(*arrays: Any, axis: int | None = 0) -> Tensor:
        if _alike(arrays) and arrays[0].dtype not in UNSIGNED:
            return join(*arrays, axis=axis)
        arrays = [a if type(a) is Tensor else onp.asarray(a) for a in arrays]
        dtype, device = promote(*arrays), device_of(arrays)
        arrays = [cast(a, dtype, device) for a in arrays]
        if dtype in UNSIGNED:
            return join(*[a.view(SIGNED[dtype]) for a in arrays], axis=axis).view(dtype)
        return join(*arrays, axis=axis)

    return run


def _alike(arrays: Sequence[Any]) -> bool:
    """Whether all are tensors of one dtype."""
    dtype = arrays[0].dtype if arrays and type(arrays[0]) is Tensor else None
    for a in arrays:
        if type(a) is not Tensor or a.dtype is not dtype:
            return False
    return dtype is not None


def _common(*arrays: Any) -> tuple:
    if _alike(arrays):
        return (arrays[0].dtype,)
    if not arrays:
        refuse("no arrays to join")
    return (promote(*[a if type(a) is Tensor else onp.asarray(a) for a in arrays]),)  # numbers count as arrays here


def _concatenate(*arrays: Tensor, axis: int | None = 0) -> Tensor:
    if axis is None:
        return torch.cat([a.reshape(-1) for a in arrays])
    ndim = arrays[0].ndim
    for a in arrays:
        if a.ndim != ndim or not ndim:  # torch skips empty arrays of another number of dimensions
            refuse("arrays of different numbers of dimensions")
    return torch.cat(arrays, axis if type(axis) is int and 0 <= axis < ndim else one_dim(axis, ndim))


def _stack(*arrays: Tensor, axis: int = 0) -> Tensor:
    return torch.stack(arrays, one_dim(axis, arrays[0].ndim + 1))


for _name, _join, _listed in (("concatenate", _concatenate, torch.cat), ("stack", _stack, torch.stack)):
    kernel(_name, dtypes_of=_common, alike=lambda *arrays, join=_join: join, listed=_listed)(_joined(_join))


# ------------------------------------------------------------------ diagonals and triangles
@kernel("diagonal", bits=True)
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return torch.diagonal(x, offset, axis1, axis2)


@kernel("diagonal_set", bits=True)
def diagonal_set(g: Tensor, shape: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    out = torch.zeros(shape, dtype=g.dtype, device=g.device)
    torch.diagonal(out, offset, axis1, axis2).copy_(g)
    return out


def _triangle(cut: Any) -> Any:
    return lambda x, k=0: cut(x, k) if x.ndim >= 2 else refuse("a triangle of fewer than two dimensions")


kernel("tril", bits=True)(_triangle(torch.tril))
kernel("triu", bits=True)(_triangle(torch.triu))
