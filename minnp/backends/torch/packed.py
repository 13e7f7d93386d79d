"""Kernels whose weights are prepared once: convolution with what follows it, and the layers of 8-bit integers.

oneDNN computes on a weight in a layout of its own; bringing it there costs as much as a small layer itself. A weight
that cannot change, a read-only array that owns its memory, is brought there at its first call and forgotten with the
array. HOST has the kernels over NumPy's memory; `kernel` enters those for tensors of a device, which prepare nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as onp
import torch

from ...core.cpu import kernels
from ...core.cpu.integers import frozen
from ...core.cpu.integers import prepared as kept
from .dtypes import Tensor, borrowed, refuse
from .neural import CONV, common, together
from .registry import kernel

HOST: dict[str, Callable] = {}


def prepared(array: onp.ndarray, key: Any, make: Callable[[Tensor], Any]) -> Any:
    """make(the array as a tensor), kept for the next call with this key if the array is frozen."""
    return kept(array, key, lambda a: make(borrowed(a)))


def over_host(name: str) -> Callable:
    """Enter the decorated function, (*NumPy arrays, **params) -> a tensor, as the kernel over NumPy's memory."""

    def enter(function: Callable) -> Callable:
        def call(*arrays: Any, **params: Any) -> onp.ndarray:
            return function(*arrays, **params).numpy()

        HOST[name] = call
        return function

    return enter


def tensor(array: Any) -> Tensor:
    """An argument as a tensor for the length of one call; small constants are kept."""
    return prepared(array, "tensor", lambda t: t)


def word(activation: str) -> str:
    """oneDNN's name for what follows a product."""
    if activation not in ("", "relu"):
        refuse(f"activation {activation!r}")
    return activation or "none"


# ------------------------------------------------------------------ convolution and what follows it
@kernel("npx.conv_act", dtypes_of=common)
def conv_act(
    x: Any, w: Any, b: Any, *other: Any, stride: Any, pad: Any, dilate: Any, groups: int = 1, activation: str = ""
) -> Tensor:
    word(activation)
    x, w, b, *other = together(x, w, b, *other)
    if x.ndim != w.ndim or not 3 <= x.ndim <= 5:
        refuse("a convolution of these shapes")
    y = CONV[x.ndim - 3](x, w, b, stride, pad, dilate, groups)
    for term in other:
        y = y.add_(term)
    return y.relu_() if activation else y


@over_host("npx.conv_act")
def conv_act_on_host(
    x: Any, w: Any, b: Any, *other: Any, stride: Any, pad: Any, dilate: Any, groups: int = 1, activation: str = ""
) -> Tensor:
    params = {"stride": stride, "pad": pad, "dilate": dilate, "groups": groups, "activation": activation}
    run = prepared_conv(x, w, b, other, **params) if all(a.dtype == onp.float32 for a in (x, *other)) else None
    x, *other = map(borrowed, (x, *other))
    return conv_act(x, borrowed(w), borrowed(b), *other, **params) if run is None else run(x, *other)


def prepared_conv(
    x: Any, w: Any, b: Any, other: Any, stride: Any, pad: Any, dilate: Any, groups: int = 1, activation: str = ""
) -> Callable | None:
    """npx.conv_act as a function of the data and what is added, float32 tensors of the shapes of x and other, with a
    frozen weight and a bias as NumPy arrays; None where oneDNN does not take them.

    With donate=True the sum is made in the memory of what is added, if it has channels last."""
    fits = x.ndim == w.ndim == 4 and len(other) < 2 and w.dtype == b.dtype == onp.float32
    if not (fits and frozen(w) and torch.backends.mkldnn.is_available()):
        return None
    where = (list(pad), list(stride), list(dilate), groups)

    def pack(t: Tensor) -> Tensor:
        return torch.ops.mkldnn._reorder_convolution_weight(t, *where, list(x.shape))

    weight, bias = prepared(w, (*map(tuple, where[:3]), groups, tuple(x.shape)), pack), tensor(b)
    relu = torch.relu_ if word(activation) == "relu" else lambda y: y  # oneDNN's makes 0 of NaN
    if not other:
        fused = torch.ops.mkldnn._convolution_pointwise.default
        return lambda x: relu(fused(channels_last(x), weight, bias, *where, "none", [], ""))
    new, into = torch.ops.mkldnn._convolution_pointwise.binary, torch.ops.mkldnn._convolution_pointwise_.binary
    rest = (weight, bias, *where, "add", 1.0, None, [], None)

    def summed(x: Tensor, y: Tensor, donate: bool = False) -> Tensor:
        x, y = channels_last(x), channels_last(y)
        return relu(into(y, x, *rest) if donate else new(x, y, *rest))

    return summed


def channels_last(x: Tensor) -> Tensor:
    """The layout in which oneDNN's results come, and convolutions follow one another without being re-laid."""
    return x.contiguous(memory_format=torch.channels_last)


# ------------------------------------------------------------------ 8-bit integers
def exactly(x: Tensor) -> Tensor:
    """Integers as floats that add up without rounding."""
    return x.double()


def finished(sums: Tensor, scales: Tensor, bias: Tensor | None, activation: str, requantize: Any) -> Tensor:
    y = sums.float() * scales
    y = activated(y if bias is None else y + bias, activation)
    return y if requantize is None else quantize(y, *requantize)


def activated(y: Tensor, activation: str) -> Tensor:
    """In place."""
    return torch.selu_(y) if activation == "selu" else y.relu_() if activation else y


@kernel("npx.quantize")
def quantize(x: Tensor, scale: float, zero_point: int, dtype: Any = "uint8") -> Tensor:
    info = onp.iinfo(dtype)
    inverse = float(onp.float32(1.0 / scale))
    q = (x.float() * inverse).round_().add_(zero_point).nan_to_num_(float(info.min))
    return q.clamp_(info.min, info.max).to(getattr(torch, onp.dtype(dtype).name))


def quantize_on_host(x: Any, scale: float, zero_point: int, dtype: Any = "uint8") -> onp.ndarray:
    q = kernels.quantized(x, scale, zero_point, onp.dtype(dtype))
    return quantize(borrowed(x), scale, zero_point, dtype).numpy() if q is None else q


HOST["npx.quantize"] = quantize_on_host


@kernel("npx.dequantize")
def dequantize(q: Tensor, scale: float, zero_point: int) -> Tensor:
    return (q.float() - zero_point) * float(onp.float32(scale))


def integers(q: Any, w: Any, *rest: Any) -> tuple:
    return (q.dtype,)


@kernel("npx.quantized_linear", dtypes_of=integers)
def quantized_linear(
    q: Tensor, w: Tensor, w_scale: Tensor, *bias: Tensor, scale: float, zero_point: int, activation: str = "",
    requantize: Any = None,
) -> Tensor:  # fmt: skip
    rows = q.reshape(-1, q.shape[-1])
    n, k = rows.shape
    if q.is_cuda and n > 16 and not k % 8 and not w.shape[0] % 8:  # what the integer tensor cores take
        sums = torch._int_mm((rows.int() - 128).to(torch.int8), w.t())
        sums = sums + (128 - zero_point) * w.sum(1, dtype=torch.int32)
    else:
        sums = (exactly(rows) - zero_point) @ exactly(w).t()
    y = finished(sums, w_scale * float(onp.float32(scale)), bias[0] if bias else None, activation, requantize)
    return y.reshape(*q.shape[:-1], w.shape[0])


@kernel("npx.quantized_conv", dtypes_of=integers)
def quantized_conv(
    q: Tensor, w: Tensor, w_scale: Tensor, *bias: Tensor, scale: float, zero_point: int, activation: str = "",
    stride: Any, pad: Any, dilate: Any, groups: int = 1, requantize: Any = None,
) -> Tensor:  # fmt: skip
    if q.device.type == "cpu" and activation != "selu" and adds_integers(q.dtype is torch.uint8 and q.ndim == 4, q):
        where = (list(stride), list(pad), list(dilate), groups)
        weight = conv_weight(w, w_scale, scale, zero_point, where, q.shape)
        b = bias[0] if bias else None
        return conv_of_integers(q, weight, w_scale, b, scale, zero_point, activation, where, requantize)
    sums = CONV[q.ndim - 3](exactly(q) - zero_point, exactly(w), None, stride, pad, dilate, groups)
    shape = (-1,) + (1,) * (q.ndim - 2)
    scales = (w_scale * float(onp.float32(scale))).reshape(shape)
    return finished(sums, scales, bias[0].reshape(shape) if bias else None, activation, requantize)


@cache
def sums_exactly() -> bool:
    """Whether this torch has oneDNN's integer layers, and they add products without saturating, which they do on
    processors without the instructions for them (AVX512-VNNI, AVX-VNNI, AMX; on ARM, the dot product)."""
    if "onednn" not in torch.backends.quantized.supported_engines:
        return False  # the operators have names there, and nothing behind them
    q, w = torch.full((2, 64), 255, dtype=torch.uint8), torch.full((2, 64), 127, dtype=torch.int8)
    weight = torch.ops.onednn.qlinear_prepack(w, [2, 64])
    one, none = torch.ones(2), torch.zeros(2, dtype=torch.int32)
    y = torch.ops.onednn.qlinear_pointwise(q, 1.0, 0, weight, one, none, None, 1.0, 0, torch.float32, "none", [], "")
    return bool((y == 64 * 255 * 127).all())


def output(requantize: Any) -> tuple:
    """oneDNN's scale, zero point and dtype of a result: of 8-bit integers, or the real numbers themselves."""
    return (1.0, 0, torch.float32) if requantize is None else (*requantize, torch.uint8)


def adds_integers(fits: bool, q: Any) -> bool:
    """Whether oneDNN's integer convolution takes these data, and is exact here."""
    return fits and q.shape.count(0) == 0 and sums_exactly() and hasattr(torch.ops.onednn, "qconv_pointwise")


def conv_weight(w: Tensor, w_scale: Tensor, scale: float, zero_point: int, where: tuple, shape: Any) -> Tensor:
    return torch.ops.onednn.qconv_prepack(w.contiguous(), w_scale, scale, zero_point, *where, list(shape))


def conv_of_integers(
    q: Tensor, weight: Tensor, w_scale: Tensor, bias: Tensor | None, scale: float, zero_point: int, activation: str,
    where: tuple, requantize: Any,
) -> Tensor:  # fmt: skip
    """oneDNN's convolution with a prepared weight, whose zero points are 0."""
    zeros = torch.zeros(len(w_scale), dtype=torch.int32)
    return torch.ops.onednn.qconv_pointwise(
        channels_last(q), scale, zero_point, weight, w_scale, zeros, bias, *where, *output(requantize),
        word(activation), [], None,
    )  # fmt: skip


def none_or(bias: tuple) -> Tensor | None:
    return tensor(bias[0]) if bias else None


def zeros(w: onp.ndarray) -> Tensor:
    return torch.zeros(w.shape[0], dtype=torch.int32)


@over_host("npx.quantized_linear")
def quantized_linear_on_host(
    q: Any,
    w: Any,
    w_scale: Any,
    *bias: Any,
    scale: float,
    zero_point: int,
    activation: str = "",
    requantize: Any = None,
) -> Tensor:
    if not sums_exactly() or q.ndim < 2 or q.dtype != onp.uint8 or not q.size:
        rest = map(borrowed, (q, w, w_scale, *bias))
        given = {"scale": scale, "zero_point": zero_point, "activation": activation}
        return quantized_linear(*rest, **given, requantize=requantize)
    rows = borrowed(q).reshape(-1, q.shape[-1])
    shape = list(rows.shape)
    weight = prepared(w, shape[0], lambda t: torch.ops.onednn.qlinear_prepack(t.contiguous(), shape))
    y = torch.ops.onednn.qlinear_pointwise(
        rows, scale, zero_point, weight, tensor(w_scale), zeros(w), none_or(bias),
        *output(None if activation == "selu" else requantize), "relu" if activation == "relu" else "none", [], "",
    )  # fmt: skip
    return (selu(y, requantize) if activation == "selu" else y).reshape(*q.shape[:-1], w.shape[0])


def selu(y: Tensor, requantize: Any) -> Tensor:
    """selu of a result that is read no more, as 8-bit integers if it is told how."""
    if not kernels.takes(y.numpy()):
        return finished(y, torch.ones(()), None, "selu", requantize)
    a = kernels.each("selu", y.numpy())
    q = None if requantize is None else kernels.quantized(a, *requantize, onp.dtype("uint8"))
    y = torch.from_numpy(a if q is None else q)
    return quantize(y, *requantize) if q is None and requantize is not None else y


@over_host("npx.quantized_conv")
def quantized_conv_on_host(
    q: Any, w: Any, w_scale: Any, *bias: Any, scale: float, zero_point: int, activation: str = "",
    stride: Any, pad: Any, dilate: Any, groups: int = 1, requantize: Any = None,
) -> Tensor:  # fmt: skip
    where = (list(stride), list(pad), list(dilate), groups)
    if activation == "selu" or not adds_integers(q.dtype == onp.uint8 and q.ndim == 4, q):
        params = dict(zip(("stride", "pad", "dilate", "groups"), where, strict=True))
        rest = map(borrowed, (q, w, w_scale, *bias))
        params |= {"scale": scale, "zero_point": zero_point, "activation": activation, "requantize": requantize}
        return quantized_conv(*rest, **params)
    scales = tensor(w_scale)
    key = (*map(tuple, where[:3]), groups, q.shape, scale, zero_point)
    weight = prepared(w, key, lambda t: conv_weight(t, scales, scale, zero_point, where, q.shape))
    return conv_of_integers(
        borrowed(q), weight, scales, none_or(bias), scale, zero_point, activation, where, requantize
    )
