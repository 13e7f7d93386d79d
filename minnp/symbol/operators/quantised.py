"""Quantised operators: arrays of 8-bit integers with the range that they stand for, as MXNet's quantised models have.

An array comes with two of one element, the least and the greatest number of its range. The greater of their magnitudes
is R: int8 stands for q R / 127, uint8 for q R / 255, and the int32 of a product or a sum for q R / (2^31 - 1). There is
no gradient. MXNet's quantize_v2, dequantize, quantized_elemwise_add and _mul divide by 127.5 and 255.5, as here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx

from ..operator import Shape, lookup, operator
from .layers import convolution, inputs, pooling
from .normalisation import batch_norm

INT8, UINT8, INT32, FLOAT = map(onp.dtype, ("int8", "uint8", "int32", "float32"))
STEPS = {INT8: 127.0, UINT8: 255.0, INT32: 2.0**31 - 1}
WIDER = {INT8: 127.5, UINT8: 255.5}
RANGES = ("min_data", "max_data", "min_weight", "max_weight")
RESULTS = ("output", "min_output", "max_output")
CALIBRATED = "min_calib_range:float=None max_calib_range:float=None"


def magnitude(low: Any, high: Any) -> Any:
    """The largest number of a range, in double precision."""
    return np.maximum(np.abs(low), np.abs(high)).astype("float64")


def level(q: Any, low: Any, high: Any, steps: dict = STEPS) -> Any:
    """The number that 1 stands for. Raises ValueError for an array that is not quantised."""
    if q.dtype not in steps:
        raise ValueError(f"an array of {q.dtype} is not quantised: expected {', '.join(t.name for t in steps)}")
    return np.reshape(magnitude(low, high) / steps[q.dtype], ())


def rounded(x: Any, dtype: Any) -> Any:
    """The nearest integers that the dtype has."""
    info = onp.iinfo(dtype)
    return np.clip(np.rint(x), info.min, info.max).astype(dtype)


def one(value: Any) -> Any:
    return np.reshape(np.asarray(value), (1,)).astype(FLOAT)


def chosen(out_type: str, low: Any) -> onp.dtype:
    """The dtype of a result: what is said, or, for auto, uint8 where a calibrated range has nothing negative."""
    if out_type == "auto":
        return UINT8 if low is not None and low >= 0 else INT8
    return onp.dtype(out_type)


def in_range(x: Any, low: Any, high: Any, dtype: onp.dtype, steps: dict) -> tuple:
    """(x as integers, the range). That of int8 is symmetric."""
    size = magnitude(low, high)
    q = rounded(x.astype("float64") * (steps[dtype] / np.where(size > 0, size, 1.0)), dtype)
    return (q, one(-size), one(size)) if dtype == INT8 else (q, one(low), one(high))


# ------------------------------------------------------------------ to integers and back
def quantize(data: Any, min_range: Any, max_range: Any, out_type: str = "uint8") -> tuple:
    """Numbers in a range as integers."""
    dtype = onp.dtype(out_type)
    return in_range(data, min_range, max_range, dtype, STEPS if dtype == INT8 else WIDER)


def quantize_v2(data: Any, out_type: str = "int8", min_calib_range: Any = None, max_calib_range: Any = None) -> tuple:
    """Numbers in the calibrated range, or their own, as integers. What is quantised already stays."""
    if data.dtype in WIDER:
        return data, one(min_calib_range), one(max_calib_range)
    low, high = (np.min(data), np.max(data)) if min_calib_range is None else (min_calib_range, max_calib_range)
    return in_range(data, low, high, chosen(out_type, min_calib_range), WIDER)


def dequantize(data: Any, min_range: Any, max_range: Any, out_type: str = "float32") -> Any:
    """The numbers that integers stand for."""
    return (data * level(data, min_range, max_range, {**STEPS, **WIDER})).astype(FLOAT)


def requantize(data: Any, min_range: Any, max_range: Any, out_type: str = "int8", min_calib_range: Any = None,
               max_calib_range: Any = None) -> tuple:  # fmt: skip
    """int32 as 8-bit integers, in the calibrated range or that of the numbers that there are."""
    x = data * level(data, min_range, max_range)
    low, high = (np.min(x), np.max(x)) if min_calib_range is None else (min_calib_range, max_calib_range)
    return in_range(x, low, high, chosen(out_type, min_calib_range), STEPS)


def _types(dtype: Callable) -> Callable:
    """The dtypes of a quantised result and its range; the inputs' are what they are."""
    return lambda p, ins: (ins, [dtype(p, ins), FLOAT, FLOAT])


def _said(p: dict, ins: list) -> onp.dtype:
    return chosen(p["out_type"], p.get("min_calib_range"))


def _range(count: int) -> Callable:
    """Shapes of the inputs: those after the first `count` are ranges."""
    return lambda p, shapes: [*shapes[:count], *[(1,)] * (len(shapes) - count)]


def _like(p: dict, data: Shape, *rest: Shape) -> list[Shape]:
    return [data, (1,), (1,)]


THREE = ("output0", "output1", "output2")
operator("_contrib_quantize", quantize, ("data", "min_range", "max_range"), "out_type:int8|uint8=uint8", outputs=THREE,
         fill=_range(1), result=_like, dtypes=_types(_said), loss=True)  # fmt: skip
operator("_contrib_quantize_v2", quantize_v2, ("data",), f"out_type:auto|int8|uint8=int8 {CALIBRATED}", outputs=THREE,
         result=_like, dtypes=_types(_said), loss=True)  # fmt: skip
operator("_contrib_requantize", requantize, ("data", "min_range", "max_range"),
         f"out_type:auto|int8|uint8=int8 {CALIBRATED}", outputs=THREE, fill=_range(1), result=_like,
         dtypes=_types(_said), loss=True)  # fmt: skip
operator("_contrib_dequantize", dequantize, ("data", "min_range", "max_range"), "out_type:float32=float32",
         fill=_range(1), result=lambda p, data, *rest: [data], dtypes=lambda p, ins: (ins, [FLOAT]),
         loss=True)  # fmt: skip


# ------------------------------------------------------------------ layers with weights
def _summed(product: Callable) -> Callable:
    """A layer of integers with an integer bias, whose scale becomes that of the products: int32 and its range."""

    def layer(data: Any, weight: Any, *rest: Any, no_bias: bool = False, **options: Any) -> tuple:
        bias, ranges = (None, rest) if no_bias else (rest[0], rest[1:])
        unit = level(data, *ranges[:2]) * level(weight, *ranges[2:4])
        sums = product(data.astype("float64"), weight.astype("float64"), None, **options)
        if bias is not None:
            wider = level(data, *ranges[:2], WIDER) * level(weight, *ranges[2:4], WIDER)
            added = np.trunc(bias * (level(bias, *ranges[4:6], WIDER) / wider))
            sums = sums + (added if sums.ndim == 2 else np.reshape(added, (-1,) + (1,) * (sums.ndim - 2)))
        size = unit * STEPS[INT32]
        return sums.astype(INT32), one(-size), one(size)

    return layer


def _names(p: dict) -> list[str]:
    return [*inputs("data", "weight")(p), *RANGES, *([] if p["no_bias"] else ["min_bias", "max_bias"])]


def _as(name: str) -> tuple[Callable, Callable]:
    """How shapes follow in the operator of floats of that name: (fill, result), for the inputs before the ranges."""
    row = lookup(name)
    count = lambda p: len(row.arguments(p))

    def fill(p: dict, shapes: list) -> list:
        n = count(p)
        return [*(row.fill(p, shapes[:n]) if row.fill else shapes[:n]), *[(1,)] * (len(shapes) - n)]

    return fill, lambda p, *shapes: [*row.result(p, *shapes[: count(p)])[:1], (1,), (1,)]


_int32 = _types(lambda p, ins: INT32)
_same = _types(lambda p, ins: ins[0])
_dense, _convolved, _pooled = _as("FullyConnected"), _as("Convolution"), _as("Pooling")
operator("_contrib_quantized_fully_connected", _summed(npx.fully_connected), _names,
         "num_hidden:int no_bias:bool=0 flatten:bool=1", outputs=RESULTS, fill=_dense[0], result=_dense[1],
         dtypes=_int32, loss=True)  # fmt: skip
operator("_contrib_quantized_conv", _summed(convolution), _names,
         "kernel:shape stride:shape=() dilate:shape=() pad:shape=() num_filter:int num_group:int=1 workspace:~int=1024 "
         "no_bias:bool=0 cudnn_tune:~None|off|limited_workspace|fastest=None cudnn_off:~bool=0 "
         "layout:None|NCW|NCHW|NCDHW|NWC|NHWC|NDHWC=None", outputs=RESULTS, fill=_convolved[0], result=_convolved[1],
         dtypes=_int32, loss=True)  # fmt: skip


# ------------------------------------------------------------------ layers that keep the scale
def _kept(function: Callable) -> Callable:
    """A function of the numbers that integers stand for, which is the same of the integers."""

    def layer(data: Any, min_data: Any, max_data: Any, **options: Any) -> tuple:
        y = function(data.astype("float64"), **options)
        return rounded(y, data.dtype), one(min_data), one(max_data)

    return layer


DATA = ("data", "min_data", "max_data")
operator("_contrib_quantized_pooling", _kept(pooling), DATA,
         "kernel:shape=() pool_type:max|avg|sum|lp=max global_pool:bool=0 cudnn_off:~bool=0 "
         "pooling_convention:valid|full|same=valid stride:shape=() pad:shape=() p_value:int=None "
         "count_include_pad:bool=None layout:None|NCW|NCHW|NCDHW|NWC|NHWC|NDHWC=None", outputs=RESULTS, fill=_pooled[0],
         result=_pooled[1], dtypes=_same, loss=True)  # fmt: skip


def activation(data: Any, act_type: str) -> Any:
    """relu, the only one that keeps a scale. Raises ValueError for others."""
    if act_type != "relu":
        raise ValueError(f"act_type={act_type!r} of quantised data: only relu keeps their scale")
    return np.maximum(data, 0)


operator("_contrib_quantized_act", _kept(activation), DATA, "act_type:relu|sigmoid|softrelu|softsign|tanh",
         outputs=RESULTS, fill=_range(1), result=_like, dtypes=_same, loss=True)  # fmt: skip
operator("_contrib_quantized_flatten", _kept(npx.batch_flatten), DATA, outputs=RESULTS, fill=_range(1),
         result=lambda p, data, *rest: [(data[0], prod(data[1:])), (1,), (1,)], dtypes=_same, loss=True)  # fmt: skip


def concat(*data: Any, dim: int = 1, num_args: int = 0) -> tuple:
    """Arrays side by side, in the largest of their ranges."""
    arrays, ranges = data[:num_args], data[num_args:]
    low, high = np.min(np.concatenate(ranges[::2])), np.max(np.concatenate(ranges[1::2]))
    dtype = INT8 if any(a.dtype == INT8 for a in arrays) else UINT8
    unit = np.reshape(magnitude(low, high), ()) / STEPS[dtype]
    scaled = [rounded(a * (level(a, *ranges[2 * i : 2 * i + 2]) / unit), dtype) for i, a in enumerate(arrays)]
    return np.concatenate(scaled, dim), one(low), one(high)


def _concat_names(p: dict) -> list[str]:
    n = p["num_args"]
    return [*(f"arg{i}" for i in range(n)), *(f"arg{i}_{end}" for i in range(n) for end in ("min", "max"))]


def _concat_fill(p: dict, shapes: list) -> list:
    return _range(p["num_args"])(p, shapes)


def _side_by_side(p: dict, *shapes: Shape) -> list[Shape]:
    first, dim = shapes[0], p["dim"] % len(shapes[0])
    wide = sum(s[dim] for s in shapes[: p["num_args"]])
    return [(*first[:dim], wide, *first[dim + 1 :]), (1,), (1,)]


def _either(p: dict, ins: list) -> Any:
    found = ins[: p["num_args"]]
    return None if None in found else INT8 if INT8 in found else UINT8


operator("_contrib_quantized_concat", concat, _concat_names, "num_args:int dim:int=1", count="num_args",
         outputs=RESULTS, fill=_concat_fill, result=_side_by_side, dtypes=_types(_either), loss=True)  # fmt: skip


def add(lhs: Any, rhs: Any, *ranges: Any, min_calib_range: Any = None, max_calib_range: Any = None) -> tuple:
    """The sum as int32, in the calibrated range or that of every sum that there may be."""
    size = magnitude(*ranges[:2]) + magnitude(*ranges[2:])
    if min_calib_range is not None:
        size = magnitude(min_calib_range, max_calib_range)
    total = lhs * level(lhs, *ranges[:2], WIDER) + rhs * level(rhs, *ranges[2:], WIDER)
    return rounded(total * (STEPS[INT32] / size), INT32), one(-size), one(size)


operator("_contrib_quantized_elemwise_add", add, ("lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max"), CALIBRATED,
         outputs=RESULTS, fill=_range(2), result=_like, dtypes=_int32, loss=True)  # fmt: skip


def multiply(lhs: Any, rhs: Any, *ranges: Any, min_calib_range: Any = None, max_calib_range: Any = None,
             enable_float_output: bool = False) -> Any:  # fmt: skip
    """The product: as float32, as int8 in the calibrated range, or as int32."""
    products = lhs.astype("int32") * rhs
    if min_calib_range is None and not enable_float_output:
        size = level(lhs, *ranges[:2]) * level(rhs, *ranges[2:]) * STEPS[INT32]
        return products, one(-size), one(size)
    y = products * (level(lhs, *ranges[:2], WIDER) * level(rhs, *ranges[2:], WIDER))
    if enable_float_output:
        return y.astype(FLOAT)
    size = magnitude(min_calib_range, max_calib_range)
    return rounded(y * (WIDER[INT8] / size), INT8), one(min_calib_range), one(max_calib_range)


def _product_types(p: dict, ins: list) -> tuple[list, list]:
    kept = FLOAT if p["enable_float_output"] else INT32 if p["min_calib_range"] is None else INT8
    return ins, [kept, FLOAT, FLOAT][: len(_product_names(p))]


def _product_names(p: dict) -> Sequence[str]:
    return RESULTS[:1] if p["enable_float_output"] else RESULTS


operator("_contrib_quantized_elemwise_mul", multiply, ("lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max"),
         f"{CALIBRATED} enable_float_output:bool=0", outputs=_product_names, fill=_range(2),
         result=lambda p, *s: _like(p, *s)[: len(_product_names(p))], dtypes=_product_types, loss=True)  # fmt: skip


def norm(data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, min_data: Any, max_data: Any,
         min_calib_range: Any = None, max_calib_range: Any = None, **options: Any) -> tuple:  # fmt: skip
    """batch_norm by the moving statistics, as int8 in the calibrated range."""
    x = (data * level(data, min_data, max_data)).astype(FLOAT)
    options = {n: v for n, v in options.items() if n in ("eps", "axis")} | {"fix_gamma": False}
    y = batch_norm(x, gamma, beta, moving_mean, moving_var, **options)[0]
    low, high = (np.min(y), np.max(y)) if min_calib_range is None else (min_calib_range, max_calib_range)
    return in_range(y, low, high, INT8, STEPS)[0], one(low), one(high)


def _norm_shapes(p: dict, shapes: list) -> list:
    vector = None if shapes[0] is None else (shapes[0][p["axis"]],)
    return [shapes[0], *(s or vector for s in shapes[1:5]), (1,), (1,)]


operator("_contrib_quantized_batch_norm", norm,
         ("data", "gamma", "beta", "moving_mean", "moving_var", "min_data", "max_data"),
         "eps:float=0.001 momentum:~float=0.9 fix_gamma:~bool=1 use_global_stats:~bool=0 output_mean_var:~bool=0 "
         f"axis:int=1 cudnn_off:~bool=0 {CALIBRATED}", states=("moving_mean", "moving_var"), outputs=RESULTS,
         fill=_norm_shapes, result=_like, dtypes=_types(lambda p, ins: INT8), loss=True)  # fmt: skip


def embedding(data: Any, weight: Any, low: Any, high: Any, input_dim: int = 0, output_dim: int = 0) -> tuple:
    """Rows of an int8 weight."""
    return np.take(weight, np.clip(data, 0, input_dim - 1).astype("int32"), axis=0), one(low), one(high)


operator("_contrib_quantized_embedding", embedding, ("data", "weight", "min_weight", "max_weight"),
         "input_dim:int output_dim:int dtype:~str=float32 sparse_grad:~bool=0", outputs=RESULTS,
         fill=lambda p, s: [s[0], s[1] or (p["input_dim"], p["output_dim"]), (1,), (1,)],
         result=lambda p, data, *rest: [(*data, p["output_dim"]), (1,), (1,)],
         dtypes=_types(lambda p, ins: INT8), loss=True)  # fmt: skip
