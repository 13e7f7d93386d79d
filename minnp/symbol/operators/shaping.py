"""Operators that move, select, repeat and make elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import Shape, operator

FLOAT = onp.dtype("float32")


# ------------------------------------------------------------------ shapes
def reshaped(sizes: Shape, codes: Sequence[int], reverse: bool = False) -> Shape:
    """The shape that MXNet's codes say: 0 keep this axis, -1 what remains, -2 all axes that remain, -3 this axis times
    the next, -4 split this axis into the next two numbers; reverse: counted from the right."""
    left, codes = list(sizes), list(codes)
    if reverse:
        left, codes = left[::-1], codes[::-1]
    out: list[int] = []
    at = i = 0
    while i < len(codes):
        code = codes[i]
        if code > 0 or code == -1:
            out.append(code)
            at += 1
        elif code == 0:
            out.append(left[at])
            at += 1
        elif code == -2:
            out += left[at:]
            at = len(left)
        elif code == -3:
            out.append(left[at] * left[at + 1])
            at += 2
        elif code == -4:
            first, second = codes[i + 1 : i + 3]
            out += [left[at] // second if first == -1 else first, left[at] // first if second == -1 else second]
            at, i = at + 1, i + 2
        else:
            raise ValueError(f"a shape of {code} in {tuple(codes)}")
        i += 1
    if out.count(-1) == 1:
        rest = prod(n for n in out if n != -1)
        out[out.index(-1)] = prod(sizes) // rest if rest else 0
    if prod(out) != prod(sizes):
        raise ValueError(f"{tuple(sizes)} has {prod(sizes)} elements, and {tuple(out)} has {prod(out)}")
    return tuple(out[::-1] if reverse else out)


def _target(sizes: Shape, shape: Shape, reverse: bool, target_shape: Shape, keep_highest: bool) -> Shape:
    if shape or not target_shape:
        return reshaped(sizes, shape, reverse)
    out = list(target_shape)  # as it was before MXNet 0.9: a 0 is what remains
    if keep_highest:
        out[0] = sizes[0]
    if 0 in out:
        at = out.index(0)
        out[at] = prod(sizes) // prod(n for i, n in enumerate(out) if i != at)
    return tuple(out)


def reshape(data: Any, shape: Shape = (), reverse: bool = False, target_shape: Shape = (),
            keep_highest: bool = False) -> Any:  # fmt: skip
    """data in another shape; see `reshaped` for the codes in it."""
    return np.reshape(data, _target(data.shape, shape, reverse, target_shape, keep_highest))


operator("Reshape", reshape, ("data",), "shape:shape=() reverse:bool=0 target_shape:shape=() keep_highest:bool=0",
         aliases=("reshape",), result=lambda p, data: [_target(data, **p)])  # fmt: skip
operator("Flatten", npx.batch_flatten, ("data",), aliases=("flatten",),
         result=lambda p, data: [(data[0], prod(data[1:]))])  # fmt: skip


def reshape_like(lhs: Any, rhs: Any, lhs_begin: int | None = None, lhs_end: int | None = None,
                 rhs_begin: int | None = None, rhs_end: int | None = None) -> Any:  # fmt: skip
    """lhs, whose axes lhs_begin to lhs_end get the sizes of rhs's from rhs_begin to rhs_end; by default, of all."""
    begin, end = slice(lhs_begin, lhs_end).indices(lhs.ndim)[:2]
    return np.reshape(lhs, (*lhs.shape[:begin], *rhs.shape[rhs_begin:rhs_end], *lhs.shape[end:]))


operator("reshape_like", reshape_like, ("lhs", "rhs"),
         "lhs_begin:int=None lhs_end:int=None rhs_begin:int=None rhs_end:int=None")  # fmt: skip


def transpose(data: Any, axes: Shape = ()) -> Any:
    """data with its axes in another order; by default turned round."""
    return np.transpose(data, axes or None)


def swapaxes(data: Any, dim1: int = 0, dim2: int = 0) -> Any:
    """data with two axes exchanged."""
    return np.swapaxes(data, dim1, dim2)


def squeeze(data: Any, axis: Shape | None = None) -> Any:
    """data without axes of size 1."""
    y = np.squeeze(data, axis)
    return np.reshape(y, (1,)) if y.ndim == 0 else y


operator("transpose", transpose, ("data",), "axes:shape=()")
operator("SwapAxis", swapaxes, ("data",), "dim1:int=0 dim2:int=0", aliases=("swapaxes",))
operator("expand_dims", np.expand_dims, ("data",), "axis:int")
operator("squeeze", squeeze, ("data",), "axis:shape=None")


# ------------------------------------------------------------------ parts
def slice_(data: Any, begin: Shape, end: Shape, step: Shape = ()) -> Any:
    """data[begin:end:step] along its first axes."""
    return data[_index(begin, end, step)]


def _index(begin: Shape, end: Shape, step: Shape) -> tuple:
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, step or (None,) * len(begin), strict=True))


def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> Any:
    """data[begin:end] along one axis."""
    return data[(*[slice(None)] * (axis % data.ndim), slice(begin, end))]


def slice_like(data: Any, shape_like: Any, axes: Shape = ()) -> Any:
    """The first elements of data, as many as shape_like has along `axes`, or all axes."""
    chosen = [axis % data.ndim for axis in axes] or range(shape_like.ndim)
    return data[tuple(slice(shape_like.shape[i]) if i in chosen else slice(None) for i in range(data.ndim))]


PART = "begin:shape end:shape step:shape=()"
operator("slice", slice_, ("data",), PART, aliases=("crop",))
operator("slice_axis", slice_axis, ("data",), "axis:int begin:int end:int")
operator("slice_like", slice_like, ("data", "shape_like"), "axes:shape=()")


def slice_assign(lhs: Any, rhs: Any, begin: Shape, end: Shape, step: Shape = ()) -> Any:
    """lhs with rhs in the place of lhs[begin:end:step]."""
    out = np.array(lhs)
    out[_index(begin, end, step)] = rhs
    return out


def slice_assign_scalar(data: Any, begin: Shape, end: Shape, step: Shape = (), scalar: float = 0.0) -> Any:
    """data with a number at data[begin:end:step]."""
    return slice_assign(data, scalar, begin, end, step)


operator("_slice_assign", slice_assign, ("lhs", "rhs"), PART, aliases=("_crop_assign",),
         result=lambda p, lhs, rhs: [lhs])  # fmt: skip
operator("_slice_assign_scalar", slice_assign_scalar, ("data",), f"scalar:float=0 {PART}",
         aliases=("_crop_assign_scalar",), same=True)  # fmt: skip


def split(data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """data in equal parts along an axis; with squeeze_axis, without that axis."""
    parts = np.split(data, num_outputs, axis)
    return _parts(parts, axis, squeeze_axis)


def _parts(parts: list, axis: int, squeeze_axis: bool) -> Any:
    parts = [np.squeeze(part, axis) for part in parts] if squeeze_axis else parts
    return tuple(parts) if len(parts) > 1 else parts[0]


def _split_shape(p: dict, data: Shape) -> list[Shape]:
    axis, n = p["axis"] % len(data), p["num_outputs"]
    if data[axis] % n:
        raise ValueError(f"axis {axis} of {data} is not {n} equal parts")
    part = () if p["squeeze_axis"] else (data[axis] // n,)
    return [(*data[:axis], *part, *data[axis + 1 :])] * n


def _numbered(count: int) -> list[str]:
    return [f"output{i}" for i in range(count)]


operator("SliceChannel", split, ("data",), "num_outputs:int axis:int=1 squeeze_axis:bool=0", aliases=("split",),
         outputs=lambda p: _numbered(p["num_outputs"]), result=_split_shape)  # fmt: skip


def split_at(data: Any, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: int = 0) -> Any:
    """data in `sections` parts along an axis, the first ones longer by one where they are not equal, or cut before
    each of the indices, of which the first is 0."""
    parts = np.array_split(data, sections or list(indices[1:]), axis)
    return _parts(parts, axis, squeeze_axis)


operator("_split_v2", split_at, ("data",), "indices:shape axis:int=1 squeeze_axis:bool=0 sections:int=0",
         outputs=lambda p: _numbered(p["sections"] or len(p["indices"])))  # fmt: skip


# ------------------------------------------------------------------ joining and repeating
def concat(*data: Any, dim: int = 1) -> Any:
    """Arrays one after the other along an axis."""
    return np.concatenate(data, axis=dim)


def _concat_shape(p: dict, *shapes: Shape) -> list[Shape]:
    axis = p["dim"] % len(shapes[0])
    rest = {s[:axis] + s[axis + 1 :] for s in shapes}
    if len(rest) > 1:
        raise ValueError(f"they differ along other axes than {axis}")
    return [(*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])]


def stack(*data: Any, axis: int = 0) -> Any:
    """Arrays side by side along a new axis."""
    return np.stack(data, axis=axis)


operator("Concat", concat, None, "num_args:~int dim:int=1", aliases=("concat",), count="num_args",
         result=_concat_shape)  # fmt: skip
operator("_rnn_param_concat", concat, None, "num_args:~int dim:int=1", count="num_args", result=_concat_shape)
operator("stack", stack, None, "axis:int=0 num_args:~int", count="num_args")


def repeat(data: Any, repeats: int, axis: int | None = None) -> Any:
    """Each element `repeats` times, along an axis or of all of data."""
    return np.repeat(data, repeats, axis)


def tile(data: Any, reps: Shape) -> Any:
    """data side by side, reps times along its axes."""
    return np.tile(data, reps)


def reverse(data: Any, axis: Shape) -> Any:
    """data with the elements along some axes in reverse order."""
    return np.flip(data, axis)


def broadcast_to(data: Any, shape: Shape = ()) -> Any:
    """data broadcast to a shape in which 0 means: as it is."""
    return np.broadcast_to(data, tuple(n or m for n, m in zip(shape, data.shape, strict=True)))


def broadcast_axis(data: Any, axis: Shape = (), size: Shape = ()) -> Any:
    """data with some axes of size 1 repeated."""
    sizes = list(data.shape)
    for a, n in zip(axis, size, strict=True):
        sizes[a] = n
    return np.broadcast_to(data, tuple(sizes))


def broadcast_like(lhs: Any, rhs: Any, lhs_axes: Shape | None = None, rhs_axes: Shape | None = None) -> Any:
    """lhs broadcast to rhs's shape, or the sizes of some axes."""
    if lhs_axes is None:
        return np.broadcast_to(lhs, rhs.shape)
    sizes = list(lhs.shape)
    for a, b in zip(lhs_axes, rhs_axes, strict=True):
        sizes[a] = rhs.shape[b]
    return np.broadcast_to(lhs, tuple(sizes))


def _repeated(p: dict, data: Shape) -> list[Shape]:
    if p["axis"] is None:
        return [(prod(data) * p["repeats"],)]
    axis = range(len(data))[p["axis"]]
    return [(*data[:axis], data[axis] * p["repeats"], *data[axis + 1 :])]


def _tiled(p: dict, data: Shape) -> list[Shape]:
    n = max(len(data), len(p["reps"]))
    ones = (1,) * n
    return [tuple(a * b for a, b in zip((*ones, *data)[-n:], (*ones, *p["reps"])[-n:]))]


operator("repeat", repeat, ("data",), "repeats:int axis:int=None", result=_repeated)
operator("tile", tile, ("data",), "reps:shape", result=_tiled)
operator("reverse", reverse, ("data",), "axis:shape", aliases=("flip",), same=True)
operator("broadcast_to", broadcast_to, ("data",), "shape:shape=()")
operator("broadcast_axis", broadcast_axis, ("data",), "axis:shape=() size:shape=()", aliases=("broadcast_axes",))
operator("broadcast_like", broadcast_like, ("lhs", "rhs"), "lhs_axes:shape=None rhs_axes:shape=None")


def pad(data: Any, mode: str, pad_width: Shape, constant_value: float = 0.0) -> Any:
    """data with elements around it; pad_width has two numbers for each axis."""
    widths = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    if mode == "constant":
        return np.pad(data, widths, constant_values=constant_value)
    return np.pad(data, widths, mode=mode)


operator("Pad", pad, ("data",), "mode:constant|edge|reflect pad_width:shape constant_value:float=0", aliases=("pad",))


def depth_to_space(data: Any, block_size: int) -> Any:
    """Blocks of channels as blocks of pixels: [N, C b b, H, W] give [N, C, H b, W b]."""
    n, c, h, w = data.shape
    b = block_size
    y = np.transpose(np.reshape(data, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    return np.reshape(y, (n, c // (b * b), h * b, w * b))


def space_to_depth(data: Any, block_size: int) -> Any:
    """Blocks of pixels as blocks of channels: [N, C, H b, W b] give [N, C b b, H, W]."""
    n, c, h, w = data.shape
    b = block_size
    y = np.transpose(np.reshape(data, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return np.reshape(y, (n, c * b * b, h // b, w // b))


operator("depth_to_space", depth_to_space, ("data",), "block_size:int")
operator("space_to_depth", space_to_depth, ("data",), "block_size:int")


def diag(data: Any, k: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of data, or the matrix with a vector on it."""
    return np.diag(data, k) if data.ndim == 1 else np.diagonal(data, k, axis1, axis2)


def _diagonal(p: dict, data: Shape) -> list[Shape]:
    if len(data) == 1:
        return [(data[0] + abs(p["k"]),) * 2]
    first, second = (range(len(data))[p[n]] for n in ("axis1", "axis2"))
    rows, columns = data[first] + min(p["k"], 0), data[second] - max(p["k"], 0)
    return [(*(n for i, n in enumerate(data) if i not in (first, second)), min(rows, columns))]


operator("diag", diag, ("data",), "k:int=0 axis1:int=0 axis2:int=1", result=_diagonal)


def cumsum(data: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The sums of all elements up to each, along an axis or of all of data."""
    y = np.cumsum(data, axis)
    return y if dtype is None else y.astype(dtype)


operator("_np_cumsum", cumsum, ("a",), "axis:int=None dtype:dtype=None", aliases=("cumsum",),
         dtypes=lambda p, ins: (ins, [p["dtype"] or ins[0]]))  # fmt: skip


# ------------------------------------------------------------------ by index
def _whole(indices: Any) -> Any:
    return indices.astype(onp.int64)


def take(a: Any, indices: Any, axis: int = 0, mode: str = "clip") -> Any:
    """Elements of a along an axis; an index out of range is the nearest (clip), counted round (wrap), or an error."""
    return np.take(a, _whole(indices), axis=axis, mode=mode)


def _take_shape(p: dict, a: Shape, indices: Shape) -> list[Shape]:
    axis = p["axis"] % len(a)
    return [(*a[:axis], *indices, *a[axis + 1 :])]


def _first_type(p: dict, ins: list) -> tuple[list, list]:
    return ins, [ins[0]]


operator("take", take, ("a", "indices"), "axis:int=0 mode:clip|raise|wrap=clip", result=_take_shape, dtypes=_first_type)


def batch_take(a: Any, indices: Any) -> Any:
    """a[i, indices[i]] for each row."""
    return npx.pick(a, indices, axis=1)


operator("batch_take", batch_take, ("a", "indices"), fill=lambda p, s: [s[0], s[1] or (s[0] and s[0][:1])],
         result=lambda p, a, indices: [indices],
         dtypes=lambda p, ins: ([ins[0], ins[1] or onp.dtype("int32")], [ins[0]]))  # fmt: skip


def pick(data: Any, index: Any, axis: int | None = -1, keepdims: bool = False, mode: str = "clip") -> Any:
    """npx.pick; of axis None, from all of data."""
    if axis is None:
        data, axis, index = np.reshape(data, (1, -1)), 1, np.reshape(index, (-1,))
    return npx.pick(data, index, axis, keepdims, mode)


def _pick_fill(p: dict, shapes: list) -> list:
    if shapes[0] is not None and shapes[1] is None and p["axis"] is not None:
        axis = p["axis"] % len(shapes[0])
        shapes[1] = shapes[0][:axis] + shapes[0][axis + 1 :]  # with keepdims, too, which is about the result
    return shapes


operator("pick", pick, ("data", "index"), "axis:int=-1 keepdims:bool=0 mode:clip|wrap=clip",
         aliases=("choose_element_0index",), fill=_pick_fill, dtypes=_first_type)  # fmt: skip


def one_hot(indices: Any, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32") -> Any:
    """npx.one_hot."""
    return npx.one_hot(indices, depth, on_value, off_value, dtype)


operator("one_hot", one_hot, ("indices",), "depth:int on_value:float=1 off_value:float=0 dtype:dtype=float32",
         result=lambda p, indices: [(*indices, p["depth"])], dtypes=lambda p, ins: (ins, [p["dtype"]]))  # fmt: skip


def _gather_shape(p: dict, data: Shape, indices: Shape) -> list[Shape]:
    return [(*indices[1:], *data[indices[0] :])]


operator("gather_nd", npx.gather_nd, ("data", "indices"), result=_gather_shape, dtypes=_first_type)


def scatter_nd(data: Any, indices: Any, shape: Shape) -> Any:
    """Zeros of a shape with data at the places indices[0], indices[1], ...; of places named twice, the last counts."""
    index = tuple(_whole(indices[i]) for i in range(indices.shape[0]))
    out = np.zeros_like(data, shape=shape)
    out[index] = data
    return out


operator("scatter_nd", scatter_nd, ("data", "indices"), "shape:shape", result=lambda p, data, indices: [p["shape"]],
         dtypes=_first_type)  # fmt: skip


def ravel_multi_index(data: Any, shape: Shape) -> Any:
    """The flat places of indices [M, *S] in an array of a shape."""
    data, steps = stop_gradient(data), [prod(shape[i + 1 :]) for i in range(len(shape))]
    return sum((data[i] * steps[i] for i in range(1, len(shape))), data[0] * steps[0])


def unravel_index(data: Any, shape: Shape) -> Any:
    """The indices [M, *S] of flat places."""
    out, rest = [], stop_gradient(data)
    for n in shape[:0:-1]:
        out.append(rest % n)
        rest = np.floor_divide(rest, n)
    return np.stack([rest, *out[::-1]], axis=0)


operator("_ravel_multi_index", ravel_multi_index, ("data",), "shape:shape=None", aliases=("ravel_multi_index",),
         result=lambda p, data: [data[1:]])  # fmt: skip
operator("_unravel_index", unravel_index, ("data",), "shape:shape=None", aliases=("unravel_index",),
         result=lambda p, data: [(len(p["shape"]), *data)])  # fmt: skip


# ------------------------------------------------------------------ facts, and arrays out of nothing
def shape_array(data: Any) -> Any:
    """data's shape as an array."""
    return np.array(data.shape, dtype=onp.int64)


def size_array(data: Any) -> Any:
    """The number of data's elements, [1]."""
    return np.array([data.size], dtype=onp.int64)


def _counts(p: dict, ins: list) -> tuple[list, list]:
    return ins, [onp.dtype("int64")]


operator("shape_array", shape_array, ("data",), result=lambda p, data: [(len(data),)], dtypes=_counts)
operator("size_array", size_array, ("data",), result=lambda p, data: [(1,)], dtypes=_counts)


def _of_dtype(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p["dtype"] or FLOAT]


def zeros(shape: Shape, dtype: Any = "float32") -> Any:
    """Zeros."""
    return np.zeros(shape, dtype)


def ones(shape: Shape, dtype: Any = "float32") -> Any:
    """Ones."""
    return np.ones(shape, dtype)


def full(shape: Shape, value: float, dtype: Any = "float32") -> Any:
    """An array of one number."""
    return np.full(shape, value, dtype)


MADE = "shape:shape=() ctx:~str= dtype:dtype=float32"
_made = {"dtypes": _of_dtype, "result": lambda p: [p["shape"]]}
operator("_zeros", zeros, (), MADE, **_made)
operator("_ones", ones, (), MADE, **_made)
operator("_full", full, (), f"{MADE} value:float", **_made)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           dtype: Any = "float32") -> Any:  # fmt: skip
    """Numbers from start to stop, each `repeat` times; without a stop, from 0 to start."""
    if stop is None:
        start, stop = 0.0, start
    y = np.arange(start, stop, step, dtype)
    return y if repeat == 1 else np.repeat(y, repeat)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, dtype: Any = "float32") -> Any:
    """`num` numbers from start to stop."""
    return np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = "float32") -> Any:
    """A matrix with ones on a diagonal."""
    return np.eye(N, M or N, k, dtype=dtype)


def _range(p: dict) -> list[Shape]:
    start, stop = (0.0, p["start"]) if p["stop"] is None else (p["start"], p["stop"])
    return [(max(ceil((stop - start) / p["step"]), 0) * p["repeat"],)]


operator("_arange", arange, (),
         "start:float stop:float=None step:float=1 repeat:int=1 infer_range:bool=0 ctx:~str= dtype:dtype=float32",
         result=_range, dtypes=_of_dtype)  # fmt: skip
operator("_linspace", linspace, (), "start:float stop:float num:int endpoint:bool=1 ctx:~str= dtype:dtype=float32",
         result=lambda p: [(p["num"],)], dtypes=_of_dtype)  # fmt: skip
operator("_eye", eye, (), "N:int M:int=0 k:int=0 ctx:~str= dtype:dtype=float32", dtypes=_of_dtype,
         result=lambda p: [(p["N"], p["M"] or p["N"])])  # fmt: skip
