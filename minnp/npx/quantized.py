"""Rows of integer arithmetic: quantise, dequantise, and the dense layer and the convolution of 8-bit integers.

An integer q stands for the real number scale * (q - zero_point) (Jacob et al. 2018, equation 1). Activations are
uint8 with one scale and zero point; weights are int8 with the zero point 0, and one scale for all output channels or
one for each. Products are summed exactly; scales and bias come in at the end, in float32. The NumPy kernels do that in
floating point that holds every partial sum exactly: whole numbers below 2**24 in float32, 2**53 in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as onp

from ..core.cpu import integers as host_integers
from ..core.cpu import kernels
from ..core.cpu.fused import LARGEST, cast, fuse
from ..core.rows.primitive import CONSTANT, Meta, per_element, primitive
from ..numpy.arguments import as_array
from ..numpy.facts import from_cost, spread
from .activations import elu
from .convolutions import Sizes, _conv, _conv_shape, multiplications
from .convolutions import _samples as conv_samples
from .functions import SELU_ALPHA, SELU_SCALE
from .inference import along_channels, check_activation

EXACT = 2**24 // (255 * 128)  # products of a uint8 and an int8 that float32 adds up without rounding
FLOAT = onp.dtype("float32")
ACTIVATIONS = ("", "relu", "selu")


# ------------------------------------------------------------------ kernels
def _quantize(x: Any, scale: float, zero_point: int, dtype: Any = "uint8") -> onp.ndarray:
    x, dtype = onp.asarray(x, FLOAT), onp.dtype(dtype)
    out = kernels.quantized(x, float(scale), int(zero_point), dtype)
    if out is not None:
        return out
    steps = _steps(float(scale), int(zero_point), dtype)
    if x.size >= LARGEST:
        return _in_blocks(x.shape, steps)(x)[0]
    for step in steps:
        x = step(x)
    return x


@lru_cache(256)
def _steps(scale: float, zero_point: int, dtype: onp.dtype) -> tuple[Callable, ...]:
    """Quantisation, as kernels of one array."""
    info = onp.iinfo(dtype)
    known = [(onp.multiply, 1.0 / scale), (onp.rint, None), (onp.add, zero_point)]
    clip = [(onp.fmax, info.min), (onp.minimum, info.max)]
    return (*[_with(ufunc, number) for ufunc, number in known + clip], cast(dtype))


def _with(ufunc: onp.ufunc, number: float | None) -> Callable:
    """The kernel x -> ufunc(x, number). Comparisons run at full speed only beside an array, not beside a number."""
    if number is None:
        return ufunc
    if ufunc in (onp.multiply, onp.add):
        return lambda x, out=None: ufunc(x, FLOAT.type(number), out)
    line = onp.full(LARGEST, number, FLOAT)

    def kernel(x: onp.ndarray, out: onp.ndarray | None = None) -> onp.ndarray:
        return ufunc(x, line[: x.size].reshape(x.shape), out=out)

    return kernel


@lru_cache(256)
def _in_blocks(shape: Sizes, steps: tuple[Callable, ...]) -> Callable:
    """The steps on an array of that shape, in one pass over the memory."""
    run = fuse([(step, [i], i + 1) for i, step in enumerate(steps)], [Meta(shape, FLOAT)], [len(steps)])
    assert run is not None, "a chain of this form runs in blocks"
    return run


def _dequantize(q: Any, scale: float, zero_point: int) -> onp.ndarray:
    y = onp.subtract(q, onp.float32(zero_point), dtype=FLOAT)
    y *= FLOAT.type(scale)
    return y


def _finish(sums: onp.ndarray, scales: onp.ndarray, bias: Any, activation: str, requantize: Any) -> onp.ndarray:
    """Exact sums as real numbers: times scales, plus the bias, through the activation; or those as 8-bit integers."""
    check_activation(activation, ACTIVATIONS)
    y = sums.astype(FLOAT)
    y *= scales
    if bias is not None:
        y += bias
    if activation == "selu":
        y = selu(y)
    elif activation:
        onp.maximum(y, 0, out=y)
    return y if requantize is None else _quantize(y, *requantize)


def selu(x: onp.ndarray) -> onp.ndarray:
    """elu with the constants of Klambauer et al. 2017, for the positive part too."""
    if kernels.takes(x):
        return kernels.each("selu", x)
    return onp.multiply(elu.numpy(x, alpha=SELU_ALPHA), FLOAT.type(SELU_SCALE))


def _linear(
    q: Any,
    w: Any,
    w_scale: Any,
    *bias: Any,
    scale: float,
    zero_point: int,
    activation: str = "",
    requantize: Any = None,
) -> onp.ndarray:
    if q.shape[-1] != w.shape[1]:
        raise ValueError(f"quantized_linear of data {q.shape} and weight {w.shape}: data is [..., I], weight [O, I]")
    rows = q.reshape(-1, q.shape[-1])
    check_activation(activation, ACTIVATIONS)
    scales = onp.multiply(w_scale, FLOAT.type(scale), dtype=FLOAT)
    y = host_integers.linear(rows, w, zero_point, scales, bias[0] if bias else None, activation == "relu")
    if y is not None:
        y = selu(y) if activation == "selu" else y
        y = y if requantize is None else _quantize(y, *requantize)
        return y.reshape(*q.shape[:-1], w.shape[0])
    sums = onp.zeros((rows.shape[0], w.shape[0]))
    for k in range(0, w.shape[1], EXACT):  # float32 matrix products, of exactly as many terms as they add exactly
        left = rows[:, k : k + EXACT].astype(FLOAT)
        left -= FLOAT.type(zero_point)
        sums += left @ w[:, k : k + EXACT].astype(FLOAT).T
    y = _finish(sums, scales, bias[0] if bias else None, activation, requantize)
    return y.reshape(*q.shape[:-1], w.shape[0])


def _quantized_conv(
    q: Any, w: Any, w_scale: Any, *bias: Any, scale: float, zero_point: int, activation: str = "",
    requantize: Any = None, **params: Any,
) -> onp.ndarray:  # fmt: skip
    # padding is real zeros: it is added after the zero point has gone
    sums = _conv(q.astype(float) - zero_point, w.astype(float), **params)
    scales = along_channels(onp.multiply(w_scale, FLOAT.type(scale), dtype=FLOAT), sums.ndim)
    return _finish(sums, scales, along_channels(bias[0], sums.ndim) if bias else None, activation, requantize)


def _fake_quantize(x: Any, scale: Any, zero_point: Any, low: int, high: int) -> onp.ndarray:
    x, scale, zero = onp.asarray(x), onp.asarray(scale), onp.asarray(zero_point)
    dtype = onp.dtype(float) if x.dtype.char == "d" else FLOAT
    inverse = (1.0 / scale.astype(float)).astype(FLOAT).astype(dtype)  # as `quantize` has it, so that both round alike
    q = onp.rint(onp.multiply(x, inverse, dtype=dtype)) + zero.astype(dtype)
    y = (onp.clip(q, dtype.type(low), dtype.type(high)) - zero.astype(dtype)) * scale.astype(dtype)
    return y.astype(x.dtype if x.dtype.kind == "f" else FLOAT, copy=False)


def _straight_through(g: Any, y: Any, x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    q = x / scale + zero_point
    return g * ((q >= low - 0.5) & (q <= high + 0.5))


# ------------------------------------------------------------------ facts
def _draw() -> tuple[Any, Any]:
    r = onp.random.default_rng(0)
    return r, r.integers(0, 256, (4, 700), onp.uint8)


def _weights(r: Any, shape: Sizes) -> list:
    """An int8 weight with a scale and a bias for each of its rows."""
    w = r.integers(-127, 128, shape, onp.int8)
    return [w, r.uniform(0.01, 0.1, shape[0]).astype(FLOAT), r.normal(size=shape[0]).astype(FLOAT)]


def _linear_samples() -> list:
    r, q = _draw()
    params = {"scale": 0.02, "zero_point": 120}
    return [
        ((q, *_weights(r, (5, 700))), {**params, "activation": "relu"}),
        ((q[:, :16], *_weights(r, (3, 16))[:2]), params),
        ((q[:, :9], *_weights(r, (2, 9))), {**params, "activation": "selu"}),
    ]


def _conv_cases() -> list:
    r, _ = _draw()
    params = {"scale": 0.02, "zero_point": 120}
    return [
        ((r.integers(0, 256, x.shape, onp.uint8), *_weights(r, w.shape)), {**params, **p, "activation": a})
        for ((x, w), p), a in zip(conv_samples(), ("", "relu", ""), strict=True)
    ]


def _kind(params: dict) -> onp.dtype:
    return FLOAT if params.get("requantize") is None else onp.dtype("uint8")


def _linear_shape(metas: Sequence[Meta], params: dict) -> Meta:
    return Meta((*metas[0].shape[:-1], metas[1].shape[0]), _kind(params))


def _quantized_conv_shape(metas: Sequence[Meta], params: dict) -> Meta:
    layout = {k: v for k, v in params.items() if k != "requantize"}
    return Meta(_conv_shape(list(metas[:2]), layout).shape, _kind(params))


# ------------------------------------------------------------------ rows
# x -> clip(rint(x / scale) + zero_point) in an integer dtype; NaN becomes the smallest integer
quantize = primitive(
    "npx.quantize",
    numpy=_quantize,
    shape=lambda metas, params: Meta(metas[0].shape, onp.dtype(params.get("dtype", "uint8"))),
    flops=per_element(3),
    samples=lambda: [
        ((onp.linspace(-3, 9, 50).astype(FLOAT).reshape(5, 10),), {"scale": 0.03, "zero_point": 57}),
        ((onp.linspace(-3, 3, 9),), {"scale": 0.02, "zero_point": 0, "dtype": "int8"}),
    ],
)
# q -> scale * (q - zero_point) in float32
dequantize = primitive(
    "npx.dequantize",
    numpy=_dequantize,
    shape=lambda metas, params: Meta(metas[0].shape, FLOAT),
    flops=per_element(2),
    samples=lambda: [((_draw()[1],), {"scale": 0.02, "zero_point": 120})],
)
# (x, scale, zero point) -> scale * (clip(rint(x / scale) + zero point, low, high) - zero point): what
# quantising does to numbers, in floats. Its gradient is that of x in the range ("straight through"), 0 elsewhere
fake_quantize_row = primitive(
    "npx.fake_quantize",
    numpy=_fake_quantize,
    vjp=[_straight_through, CONSTANT, CONSTANT],
    saves="in",
    shape=lambda metas, params: Meta(metas[0].shape, metas[0].dtype if metas[0].dtype.kind == "f" else FLOAT),
    flops=per_element(6),
    samples=lambda: [  # of steps too small for finite differences to see
        ((spread(3, 4), onp.array(2.0**-40), onp.array(3)), {"low": -(2**43), "high": 2**43}),
        ((spread(3, 4), onp.array(2.0**-40), onp.array(0)), {"low": 0, "high": 2**40}),
    ],
)


def fake_quantize(data: Any, scale: Any, zero_point: Any = 0, low: int = 0, high: int = 255) -> Any:
    """scale * (clip(rint(data / scale) + zero_point, low, high) - zero_point): data as integers hold it.

    scale and zero_point are numbers, or arrays that broadcast against data: one for each channel. The gradient is that
    of data where data is in the range, as if nothing were rounded, and 0 elsewhere (Bengio et al. 2013); none flows to
    scale and zero_point. In data's dtype; of integers float32.

    >>> npx.fake_quantize(np.array([0.1, 0.26, 9.0]), scale=0.1, high=15)
    array([0.1, 0.3, 1.5])
    """
    return fake_quantize_row(as_array(data), as_array(scale), as_array(zero_point), low=int(low), high=int(high))


# (q uint8 [..., I], w int8 [O, I], w_scale [O], bias [O] or nothing) -> float32 [..., O]
# with requantize=(scale, zero point) those as uint8, for the next layer of integers
quantized_linear = primitive(
    "npx.quantized_linear",
    numpy=_linear,
    shape=_linear_shape,
    flops=lambda metas, params, out: 2 * out.size * metas[1].shape[1],
    worth=from_cost(lambda arrays, params: arrays[0].size * arrays[1].shape[0], torch=1e5),
    samples=_linear_samples,
)
# (q uint8 [N, C, *S], w int8 [O, C/groups, *K], w_scale [O], bias [O] or nothing) -> float32 [N, O, *T]
# or uint8, as above
quantized_conv = primitive(
    "npx.quantized_conv",
    numpy=_quantized_conv,
    shape=_quantized_conv_shape,
    flops=lambda metas, params, out: 2 * out.size * prod(metas[1].shape[1:]),
    worth=from_cost(lambda arrays, params: multiplications(arrays[:2], params), torch=1e5),
    samples=_conv_cases,
)
