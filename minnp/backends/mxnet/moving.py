"""Translations of MXNet's operators that move elements or reduce them: the rest of the table in translations.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minnp.numpy as np
from minnp import npx

from ...core.graph.effects import pick
from ...core.graph.graph import Node
from ...symbol.operators.shaping import reshaped
from .translations import OPERATORS, Attributes, Reader, operator, refuse


# ------------------------------------------------------------------ shapes
def legacy_reshape(x: Any, shape: Sequence[int], reverse: bool = False) -> Any:
    """x in a shape said with the codes of MXNet's Reshape: 0 keep this axis, -1 what remains, -2 all axes that remain,
    -3 this axis times the next, -4 split this axis into the next two numbers; reverse: counted from the right."""
    return np.reshape(x, reshaped(x.shape, shape, reverse))


@operator("Reshape", "reshape")
def _reshape(call: Reader, a: Attributes, x: Node) -> Node:
    shape = a.value("shape", ())
    if all(n > 0 or n == -1 for n in shape):
        return call(np.reshape, x, tuple(shape))
    return call(legacy_reshape, x, tuple(shape), **a.chosen("reverse"))


@operator("transpose")
def _transpose(call: Reader, a: Attributes, x: Node) -> Node:
    return call(np.transpose, x, a.value("axes") or None)


@operator("slice", "crop")
def _slice(call: Reader, a: Attributes, x: Node) -> Node:
    begin, end = a.value("begin"), a.value("end")
    step = a.value("step") or (None,) * len(begin)
    index = tuple(slice(b, e, s) for b, e, s in zip(begin, end, step, strict=True))
    return call.row("getitem", x, index=index)


@operator("slice_axis")
def _slice_axis(call: Reader, a: Attributes, x: Node) -> Node:
    axis, cut = a.value("axis"), slice(a.value("begin"), a.value("end"))
    index = (slice(None),) * axis + (cut,) if axis >= 0 else (..., cut) + (slice(None),) * (-axis - 1)
    return call.row("getitem", x, index=index)


def slice_like(x: Any, like: Any, axes: Sequence[int] = ()) -> Any:
    """The first elements of x, as many as `like` has along `axes` (all, if none are named)."""
    chosen = [axis % x.ndim for axis in axes] or range(x.ndim)
    return x[tuple(slice(like.shape[i]) if i in chosen else slice(None) for i in range(x.ndim))]


@operator("SliceChannel", "split")
def _split(call: Reader, a: Attributes, x: Node) -> list[Node]:
    n, axis = a.value("num_outputs"), a.value("axis", 1)
    whole = call(np.split, x, n, axis)
    parts = [call(pick, whole, i) for i in range(n)]
    return [call(np.squeeze, part, axis) for part in parts] if a.value("squeeze_axis", False) else parts


@operator("Pad", "pad")
def _pad(call: Reader, a: Attributes, x: Node) -> Node:
    widths = a.value("pad_width")
    mode, value = a.value("mode"), a.value("constant_value", 0.0)
    options = {"mode": mode, **({"constant_values": value} if mode == "constant" else {})}
    return call(np.pad, x, tuple(zip(widths[::2], widths[1::2], strict=True)), **options)


@operator("broadcast_axis", "broadcast_axes")
def _broadcast_axis(call: Reader, a: Attributes, x: Node) -> Node:
    axes, sizes = (v if isinstance(v, tuple) else (v,) for v in (a.value("axis"), a.value("size")))
    for axis, size in zip(axes, sizes, strict=True):
        x = call(np.repeat, x, size, axis)
    return x


def legacy_broadcast(x: Any, shape: Sequence[int]) -> Any:
    """x broadcast to a shape in which 0 means: as it is."""
    return np.broadcast_to(x, tuple(n or m for n, m in zip(shape, x.shape, strict=True)))


@operator("UpSampling")
def _upsampling(call: Reader, a: Attributes, x: Node, *rest: Node) -> Node:
    if a.value("sample_type") != "nearest" or rest:
        refuse("UpSampling that is not of one image to the nearest")
    return call(np.repeat, call(np.repeat, x, a.value("scale"), 2), a.value("scale"), 3)


@operator("Cast", "cast", "amp_cast")
def _cast(call: Reader, a: Attributes, x: Node) -> Node:
    return call.row("astype", x, dtype=np.dtype(a.value("dtype")))


def one(function: Any, *names: str, **defaults: Any) -> Any:
    """function(x, ...), with these attributes as keyword arguments of the same names."""
    return lambda call, a, *x: call(function, *x, **{**defaults, **a.chosen(*names)})


OPERATORS |= {
    "Flatten": one(npx.batch_flatten),
    "flatten": one(npx.batch_flatten),
    "SwapAxis": lambda call, a, x: call(np.swapaxes, x, a.value("dim1", 0), a.value("dim2", 0)),
    "expand_dims": one(np.expand_dims, "axis"),
    "squeeze": one(np.squeeze, "axis"),
    "slice_like": one(slice_like, "axes"),
    "Concat": lambda call, a, *x: call(np.concatenate, x, axis=a.value("dim", 1)),
    "stack": lambda call, a, *x: call(np.stack, x, axis=a.value("axis", 0)),
    "tile": one(np.tile, "reps"),
    "repeat": one(np.repeat, "repeats", "axis"),
    "reverse": one(np.flip, "axis"),
    "_copyto": lambda call, a, x: x,
    "broadcast_to": lambda call, a, x: call(legacy_broadcast, x, a.value("shape")),
    "broadcast_like": one(npx.broadcast_like),
    "reshape_like": one(npx.reshape_like),
    "zeros_like": one(np.zeros_like),
    "ones_like": one(np.ones_like),
    "_np_roll": one(np.roll, "shift", "axis"),
    "_npi_tril": one(np.tril, "k"),
    "_npi_diff": one(np.diff, "n", "axis"),
    "_zeros": lambda call, a: call(np.zeros, a.value("shape"), a.value("dtype", "float32")),
    "_ones": lambda call, a: call(np.ones, a.value("shape"), a.value("dtype", "float32")),
    "_full": lambda call, a: call(np.full, a.value("shape"), a.value("value"), a.value("dtype", "float32")),
}
OPERATORS["flip"], OPERATORS["concat"] = OPERATORS["reverse"], OPERATORS["Concat"]
OPERATORS["swapaxes"] = OPERATORS["SwapAxis"]


# ------------------------------------------------------------------ reductions
def reduction(function: Any) -> Any:
    """MXNet's reductions: of no axes they are of all, and a result without axes has the shape (1,)."""

    def build(call: Reader, a: Attributes, x: Node) -> Node:
        if a.value("exclude", False):
            refuse("a reduction with exclude")
        axis = a.value("axis")
        axis = None if axis in (None, ()) else axis
        y = call(function, x, axis=axis, keepdims=bool(a.value("keepdims", False)))
        return call(np.atleast_1d, y) if axis is None and not a.value("keepdims", False) else y

    return build


for _name, _function in {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
                         "nansum": np.nansum, "nanprod": np.nanprod, "var": np.var, "std": np.std,
                         "any": np.any, "all": np.all}.items():  # fmt: skip
    OPERATORS |= {name: reduction(_function) for name in (_name, f"{_name}_axis", f"_np_{_name}", f"_npi_{_name}")}


@operator("norm")
def _norm(call: Reader, a: Attributes, x: Node) -> Node:
    axis, keepdims = a.value("axis"), bool(a.value("keepdims", False))
    if a.value("ord", 2) == 1:
        y = call(np.sum, call(np.absolute, x), axis=axis, keepdims=keepdims)
    else:
        y = call(np.sqrt, call(np.sum, call(np.square, x), axis=axis, keepdims=keepdims))
    return call(np.atleast_1d, y) if axis is None and not keepdims else y


@operator("L2Normalization")
def _l2_normalization(call: Reader, a: Attributes, x: Node) -> Node:
    if a.value("mode", "instance") != "channel":
        refuse(f"L2Normalization of mode {a.value('mode', 'instance')}")
    squares = call(np.sum, call(np.square, x), axis=1, keepdims=True)
    return call(np.divide, x, call(np.sqrt, call(np.add, squares, a.value("eps", 1e-10))))


def chosen_device(name: str) -> Any:
    """argmax, argmin: MXNet gives the places as floats."""

    def build(call: Reader, a: Attributes, x: Node) -> Node:
        y = call(getattr(np, name), x, axis=a.value("axis"), keepdims=bool(a.value("keepdims", False)))
        return call.row("astype", y, dtype=np.dtype("float32"))

    return build


OPERATORS |= {name: chosen_device(name) for name in ("argmax", "argmin")}


# ------------------------------------------------------------------ products, picking, sequences
@operator("dot")
def _dot(call: Reader, a: Attributes, x: Node, y: Node) -> Node:
    if a.value("transpose_a", False):
        x = call(np.transpose, x)
    if a.value("transpose_b", False):
        y = call(np.transpose, y)
    return call(np.tensordot, x, y, axes=1)


@operator("batch_dot", "linalg_gemm2", "_linalg_gemm2")
def _batch_dot(call: Reader, a: Attributes, x: Node, y: Node) -> Node:
    z = call(npx.batch_dot, x, y, **a.chosen("transpose_a", "transpose_b"))
    return z if a.value("alpha", 1.0) == 1.0 else call(np.multiply, z, a.value("alpha"))


@operator("take")
def _take(call: Reader, a: Attributes, x: Node, index: Node) -> Node:
    whole = call.row("astype", index, dtype=np.dtype("int64"))
    return call(np.take, x, whole, axis=a.value("axis", 0), mode=a.value("mode", "clip"))


@operator("RNN")
def _rnn(call: Reader, a: Attributes, x: Node, parameters: Node, *states: Node) -> Any:
    names = ("mode", "state_size", "num_layers", "bidirectional", "state_outputs")
    y = call(npx.rnn, x, parameters, *states, **a.chosen(*names))
    if not a.value("state_outputs", False):
        return y
    return [call(pick, y, i) for i in range(3 if a.value("mode") == "lstm" else 2)]


OPERATORS |= {
    "_npi_matmul": one(np.matmul),
    "_npi_einsum": lambda call, a, *x: call(np.einsum, a.value("subscripts"), *x),
    "one_hot": one(npx.one_hot, "depth", "on_value", "off_value"),
    "pick": one(npx.pick, "axis", "keepdims", "mode"),
    "gather_nd": one(npx.gather_nd),
    "SequenceMask": one(npx.sequence_mask, "use_sequence_length", "value", "axis"),
    "SequenceLast": one(npx.sequence_last, "use_sequence_length", "axis"),
    "SequenceReverse": one(npx.sequence_reverse, "use_sequence_length", "axis"),
    "shape_array": one(npx.shape_array),
}
