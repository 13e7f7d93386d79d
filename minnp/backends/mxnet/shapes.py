"""Lowerings of the functions that move elements: reshape, transpose, joining, repeating. NumPy's views, on a device."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from .lowering import MOST_AXES, Argument, Lowered, Lowering, Meta, Shape, merged, normal_axes, only, refuse, text

TABLE: dict[str, Lowering] = {}


# ------------------------------------------------------------------ shapes
def _shaped(operator: str, attributes: dict[str, str], meta: Meta, result: Shape) -> Lowered:
    """An operator that moves elements: NumPy answers with an array, even of shape ()."""
    return Lowered(operator, attributes, (Argument(0, meta.shape or (1,), meta.dtype),), result, scalar=False)


def _copy(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params, order="K")
    return _shaped("_copy", {}, metas[0], metas[0].shape)


def _reshape(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    shape, order = only(params, shape=(), order="C")
    if order != "C":
        raise refuse(f"reshape in order {order!r}")
    size = prod(metas[0].shape)
    wanted = (shape,) if isinstance(shape, (int, onp.integer)) else tuple(shape)
    known = prod(n for n in wanted if n != -1)
    if wanted.count(-1) > 1 or not known or (size % known if -1 in wanted else size != known):
        raise refuse(f"shape {metas[0].shape} does not reshape to {wanted}")
    return _shaped("_copy", {}, metas[0], tuple(size // known if n == -1 else n for n in wanted))


def _transpose(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axes,) = only(params, axes=None)
    shape = metas[0].shape
    order = tuple(range(len(shape)))[::-1] if axes is None else tuple(axes)
    if len(shape) < 2:
        return _shaped("_copy", {}, metas[0], shape)
    if normal_axes(order, len(shape)) != tuple(range(len(shape))) or len(shape) > MOST_AXES:
        raise refuse(f"transpose of {len(shape)} axes to {order}")
    order = tuple(a % len(shape) for a in order)
    return _shaped("transpose", {"axes": text(order)}, metas[0], tuple(shape[a] for a in order))


def _swapaxes(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    first, second = only(params, axis1=0, axis2=1)
    order = list(range(len(metas[0].shape)))
    (first,), (second,) = normal_axes(first, len(order)), normal_axes(second, len(order))
    order[first], order[second] = order[second], order[first]
    return _transpose(metas, {"axes": tuple(order)})


def _expand_dims(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = normal_axes(tuple(axis) if isinstance(axis, list) else axis, len(shape) + count)
    sizes = iter(shape)
    result = tuple(1 if i in axes else next(sizes) for i in range(len(shape) + count))
    return _shaped("_copy", {}, metas[0], result)


def _squeeze(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    axes = normal_axes(axis, len(shape)) if axis is not None else tuple(i for i, n in enumerate(shape) if n == 1)
    if any(shape[a] != 1 for a in axes):
        raise refuse(f"squeeze of axis {axis} of {shape}")
    return _shaped("_copy", {}, metas[0], tuple(n for i, n in enumerate(shape) if i not in axes))


def _broadcast_to(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (shape,) = only(params, shape=())
    target = (shape,) if isinstance(shape, int) else tuple(shape)
    result, (sizes, full) = merged([metas[0].shape, target])
    if result != target or 0 in target:
        raise refuse(f"shape {metas[0].shape} does not broadcast to {target}")
    return Lowered("broadcast_to", {"shape": text(full)}, (Argument(0, sizes, metas[0].dtype),), target, scalar=False)


def _flip(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    axes = normal_axes(axis, len(shape))
    if not axes:
        return _shaped("_copy", {}, metas[0], shape)
    return _shaped("reverse", {"axis": text(axes)}, metas[0], shape)


def joining(operator: str, key: str, new_axis: bool) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        (axis,) = only(params, axis=0)
        ndim = len(metas[0].shape)
        if not ndim or axis is None:
            raise refuse("joining arrays of shape ()")
        (axis,) = normal_axes(int(axis), ndim + new_axis)
        beside = {meta.shape if new_axis else meta.shape[:axis] + (0,) + meta.shape[axis + 1 :] for meta in metas}
        if len(beside) > 1 or any(len(meta.shape) != ndim for meta in metas):
            raise refuse("the shapes differ beside the axis")
        arguments = tuple(Argument(i, meta.shape, meta.dtype) for i, meta in enumerate(metas))
        return Lowered(operator, {key: text(axis), "num_args": str(len(metas))}, arguments)

    return lower


def _repeat(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    repeats, axis = only(params, repeats=None, axis=None)
    shape = metas[0].shape
    if not isinstance(repeats, int) or repeats < 1:
        raise refuse("a different number of repeats for every element")
    if axis is None:
        arguments = (Argument(0, (prod(shape),), metas[0].dtype),)
        return Lowered("repeat", {"repeats": text(repeats), "axis": "0"}, arguments)
    (axis,) = normal_axes(int(axis), len(shape))
    return Lowered("repeat", {"repeats": text(repeats), "axis": text(axis)}, (Argument(0, shape, metas[0].dtype),))


def _roll(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    shift, axis = only(params, shift=0, axis=None)
    shape = metas[0].shape
    if not isinstance(shift, (int, tuple)) or not shape:
        raise refuse(f"roll by {shift} of an array with {len(shape)} axes")
    if axis is None:
        arguments = (Argument(0, (prod(shape),), metas[0].dtype),)
        if not isinstance(shift, int):
            raise refuse("several shifts without axes")
        return Lowered("_np_roll", {"shift": text((shift,)), "axis": "(0,)"}, arguments, shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes:
        raise refuse("roll over no axis")
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes) or len({*normal_axes(axes, len(shape))}) != len(axes):
        raise refuse(f"roll by {shift} over axes {axis}")
    return _shaped("_np_roll", {"shift": text(shifts), "axis": text(axes)}, metas[0], shape)


def _tril(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (k,) = only(params, k=0)
    if len(metas[0].shape) < 2:
        raise refuse("tril of fewer than two axes")
    return _shaped("_npi_tril", {"k": text(k)}, metas[0], metas[0].shape)


def _astype(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (dtype,) = only(params, dtype=None)
    target = onp.dtype(dtype)
    if metas[0].dtype.startswith("float") and target.kind != "f":
        raise refuse("casts of floats to integers: NumPy's own for what does not fit")
    if not target.isnative or target.name not in ("float32", "float64"):
        raise refuse(f"casts to {target.name}")
    return _shaped("Cast", {"dtype": target.name}, metas[0], metas[0].shape)


TABLE.update(
    {
        "copy": _copy,
        "reshape": _reshape,
        "transpose": _transpose,
        "swapaxes": _swapaxes,
        "expand_dims": _expand_dims,
        "squeeze": _squeeze,
        "broadcast_to": _broadcast_to,
        "flip": _flip,
        "concatenate": joining("Concat", "dim", new_axis=False),
        "stack": joining("stack", "axis", new_axis=True),
        "repeat": _repeat,
        "roll": _roll,
        "tril": _tril,
        "astype": _astype,
    }
)
