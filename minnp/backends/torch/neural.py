"""Kernels of minnp.npx: convolution, pooling, activations, softmax, normalisation, through oneDNN and cuDNN.

Data is [N, C, *S], with one, two or three spatial axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as onp
import torch
from torch.nn import functional

from .dtypes import TO_TORCH, cast, device_of, promote, refuse
from .reductions import dims
from .registry import kernel

Tensor = torch.Tensor
aten = torch.ops.aten
Sizes = tuple[int, ...]
CONV = (functional.conv1d, functional.conv2d, functional.conv3d)
MAX_POOL = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)


def common(*arrays: Any) -> tuple:
    """(the dtype all operands are computed in,): what their kernels are verified for."""
    return (promote(*arrays),)


def together(*arrays: Any) -> list[Tensor]:
    """The operands in their common dtype."""
    dtype, device = promote(*arrays), device_of(arrays)
    return [cast(a, dtype, device) for a in arrays]


def like(x: Tensor, shape: Any) -> Tensor:
    """Something of x's dtype and of that shape, whose elements nobody reads."""
    return x.new_empty(1).expand(shape)


def inexact(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else x.double()


# ------------------------------------------------------------------ convolution
@kernel("npx.conv", dtypes_of=common)
def conv(x: Any, w: Any, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int = 1) -> Tensor:
    x, w = together(x, w)
    if x.ndim != w.ndim or not 3 <= x.ndim <= 5:
        refuse("a convolution of these shapes")
    return CONV[x.ndim - 3](x, w, None, stride, pad, onednns(x, w, dilate), groups)


def onednns(x: Tensor, w: Tensor, dilate: Sizes) -> Sizes:
    """The dilations to call torch with: such that oneDNN takes convolutions by 1 x 1 kernels where it is the faster.

    With one thread torch multiplies by the BLAS unless a kernel is strided, dilated or larger than 3 x 3 (`use_mkldnn`
    in ATen/native/Convolution.cpp). From 2**24 multiplications on, oneDNN takes half of the BLAS's time, and a dilation
    of a kernel of one element means nothing.
    """
    one = x.ndim == 4 and w.shape[2:].numel() == 1 and x.dtype is torch.float32 and x.device.type == "cpu"
    return (2, 2) if one and torch.get_num_threads() == 1 and x.numel() * w.shape[0] >= 1 << 24 else dilate


def _gradients(g: Tensor, x: Tensor, w: Tensor, params: dict, of_x: bool, of_w: bool) -> tuple[Tensor, Tensor]:
    n, dilate = x.ndim - 2, onednns(x, w, params["dilate"])
    few = (
        g.shape[2:].numel() < 100
    )  # positions: oneDNN's gradient of the weight takes up to three times the BLAS's time
    if of_x and of_w and dilate is not params["dilate"] and few:
        return _gradients(g, x, w, params, True, False)[0], _gradients(g, x, w, params, False, True)[1]
    if of_w and few and w.ndim == 4 and w.shape[2:].numel() > 1 and not x.is_contiguous():
        if of_x:
            return _gradients(g, x, w, params, True, False)[0], _gradients(g, x, w, params, False, True)[1]
        g, x, w = (
            g.contiguous(),
            x.contiguous(),
            w.contiguous(),
        )  # with channels last it takes up to three times as long
    dilate = params["dilate"] if of_w and few else dilate
    order = (params["stride"], params["pad"], dilate, False, [0] * n, params.get("groups", 1))
    if not (g.is_contiguous() or (g.ndim == 4 and g.is_contiguous(memory_format=torch.channels_last))):
        g = g.contiguous()
    return aten.convolution_backward.default(g, x, w, None, *order, [of_x, of_w, False])[:2]


@kernel("npx.conv_grads", dtypes_of=common)
def conv_grads(g: Any, x: Any, w: Any, **params: Any) -> tuple[Tensor, Tensor]:
    return _gradients(*together(g, x, w), params, True, True)


@kernel("npx.conv_transpose", dtypes_of=common)
def conv_transpose(x: Any, w: Any, size: Sizes, **params: Any) -> Tensor:
    x, w = together(x, w)
    target = like(x, (x.shape[0], w.shape[1] * params.get("groups", 1), *size))
    return _gradients(x, target, w, params, True, False)[0]


@kernel("npx.conv_weight_grad", dtypes_of=common)
def conv_weight_grad(x: Any, g: Any, kernel: Sizes, **params: Any) -> Tensor:
    x, g = together(x, g)
    target = like(x, (g.shape[1], x.shape[1] // params.get("groups", 1), *kernel))
    return _gradients(g, x, target, params, False, True)[1]


# ------------------------------------------------------------------ pooling
@kernel("npx.max_pool")
def max_pool(x: Tensor, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool = False) -> Tensor:
    y, y.places = MAX_POOL[len(kernel) - 1](x, kernel, stride, pad, 1, ceil, return_indices=True)  # found anyway
    return y


class Places:
    """Where the elements of windows lie: flat spatial positions from offsets inside the windows, and back."""

    def __init__(self, size: Sizes, out: Sizes, params: dict, device: torch.device) -> None:
        self.size, self.kernel = tuple(size), params["kernel"]
        self.start = []  # the first position of each window, along each axis
        for axis, (o, s, p) in enumerate(zip(out, params["stride"], params["pad"], strict=True)):
            start = torch.arange(o, device=device) * s - p
            self.start.append(start.reshape((-1,) + (1,) * (len(out) - axis - 1)))

    def split(self, flat: Tensor, shape: Sizes) -> list[Tensor]:
        """Flat numbers in an array of `shape` as one coordinate for each axis."""
        parts = []
        for n in reversed(shape):
            parts.append(flat % n)
            flat = torch.div(flat, n, rounding_mode="floor")
        return parts[::-1]

    def offsets(self, flat: Tensor) -> Tensor:
        """The number, in its window, of each flat position."""
        out = torch.zeros_like(flat)
        for at, start, k in zip(self.split(flat, self.size), self.start, self.kernel, strict=True):
            out = out * k + (at - start)
        return out

    def positions(self, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """(flat position, whether it is inside the data) of each numbered element."""
        flat, inside = torch.zeros_like(offsets), torch.ones_like(offsets, dtype=torch.bool)
        for k, start, n in zip(self.split(offsets, self.kernel), self.start, self.size, strict=True):
            at = start + k
            inside &= (at >= 0) & (at < n)
            flat = flat * n + at.clamp(0, n - 1)
        return flat, inside


def highest(x: Tensor, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool = False) -> Tensor:
    """The flat position of each window's largest element."""
    return MAX_POOL[len(kernel) - 1](x, kernel, stride, pad, 1, ceil, return_indices=True)[1]


@kernel("npx.max_pool_grad")
def max_pool_grad(g: Tensor, x: Tensor, y: Tensor, **params: Any) -> Tensor:
    places = getattr(y, "places", None)  # of an array of NumPy's memory they are not kept
    flat = highest(x, **params) if places is None else places
    some = y > -torch.inf  # windows of NaN or -inf keep their first place
    if x.device.type != "cpu" or not some.all().item():  # whether there are any costs less than they do
        first = torch.zeros((1, 1, *y.shape[2:]), dtype=torch.int64, device=x.device)
        first, inside = Places(x.shape[2:], y.shape[2:], params, x.device).positions(first)
        flat = torch.where(some, flat, first)
        g = torch.where(some | inside, g, 0) if any(params["pad"]) else g
    out = torch.zeros((*x.shape[:2], prod(x.shape[2:])), dtype=g.dtype, device=g.device)
    return out.scatter_add_(2, flat.flatten(2), g.flatten(2)).reshape(x.shape)


@kernel("npx.max_pool_index")
def max_pool_index(x: Tensor, y: Tensor, **params: Any) -> Tensor:
    flat = highest(x, **params)
    index = Places(x.shape[2:], y.shape[2:], params, x.device).offsets(flat)
    index = torch.where(y > -torch.inf, index, 0)  # windows of NaN or -inf keep their first place
    return index.to(TO_TORCH[onp.min_scalar_type(-prod(params["kernel"]))])


@kernel("npx.window_take")
def window_take(x: Tensor, index: Tensor, **params: Any) -> Tensor:
    flat, inside = Places(x.shape[2:], index.shape[2:], params, x.device).positions(index.long())
    taken = x.flatten(2).gather(2, flat.flatten(2)).reshape(index.shape)
    return torch.where(inside, taken, 0)


@kernel("npx.window_put")
def window_put(g: Tensor, index: Tensor, size: Sizes, **params: Any) -> Tensor:
    flat, inside = Places(size, g.shape[2:], params, g.device).positions(index.long())
    out = torch.zeros((*g.shape[:2], prod(size)), dtype=g.dtype, device=g.device)
    out.scatter_add_(2, flat.flatten(2), torch.where(inside, g, 0).flatten(2))
    return out.reshape(*g.shape[:2], *size)


def _flat(x: Tensor, params: dict) -> tuple[Tensor, tuple]:
    """(x, the arguments of torch's average pooling) with one spatial axis made two: torch cannot sum over one."""
    one = len(params["kernel"]) == 1
    sizes = [((1, *v) if one and name != "pad" else (0, *v) if one else v) for name, v in _sizes(params)]
    return (x.unsqueeze(2) if one else x), (*sizes, params.get("ceil", False), True, 1)


def _sizes(params: dict) -> list:
    return [(name, tuple(params[name])) for name in ("kernel", "stride", "pad")]


@kernel("npx.sum_pool")
def sum_pool(x: Tensor, **params: Any) -> Tensor:
    x, arguments = _flat(x, params)
    y = (functional.avg_pool2d if x.ndim == 4 else functional.avg_pool3d)(x, *arguments)
    return y.squeeze(2) if len(params["kernel"]) == 1 else y


@kernel("npx.sum_unpool")
def sum_unpool(g: Tensor, size: Sizes, **params: Any) -> Tensor:
    g, arguments = _flat(g, params)
    target = like(g, (*g.shape[:2], *((1, *size) if len(size) == 1 else size)))
    back = aten.avg_pool2d_backward if g.ndim == 4 else aten.avg_pool3d_backward
    y = back(g.contiguous(), target, *arguments)
    return y.squeeze(2) if len(size) == 1 else y


# ------------------------------------------------------------------ activations
kernel("npx.relu")(torch.relu)


@kernel("npx.relu_grad", dtypes_of=common)
def relu_grad(g: Any, y: Any) -> Tensor:
    g, y = together(g, y)
    return masked(g, y) if g.dtype.is_floating_point else g * (y > 0)


def masked(g: Tensor, y: Tensor, into: Tensor | None = None) -> Tensor:
    """g * (y > 0) of floats in one pass: the gradient of leaky_relu with a slope of 0."""
    if into is None:
        return aten.leaky_relu_backward.default(g, y, 0.0, False)
    return aten.leaky_relu_backward.grad_input(g, y, 0.0, False, grad_input=into)


@kernel("npx.leaky_relu")
def leaky_relu(x: Tensor, slope: float = 0.25) -> Tensor:
    return functional.leaky_relu(inexact(x), slope)


@kernel("npx.elu")
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return functional.elu(inexact(x), alpha)


@kernel("npx.softplus")
def softplus(x: Tensor) -> Tensor:
    x = inexact(x)
    return torch.relu(x) + torch.log1p(torch.exp(-torch.abs(x)))  # torch's own is linear beyond 20


def _floating(run: Callable) -> Callable:
    return lambda x: run(x if x.dtype.is_floating_point else x.double())


for _name, _run in {
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "erf": torch.erf,
    "erfinv": torch.erfinv,
    "gelu": functional.gelu,
}.items():
    kernel(f"npx.{_name}")(_floating(_run))


kernel("npx.gelu_tanh")(_floating(partial(functional.gelu, approximate="tanh")))


@kernel("npx.gelu_tanh_grad", dtypes_of=common)
def gelu_tanh_grad(g: Any, x: Any) -> Tensor:
    g, x = torch.broadcast_tensors(*together(g, x))
    slopes = aten.gelu_backward(g.contiguous(), x.contiguous(), approximate="tanh")
    return torch.where(g == 0, g, slopes)  # at an infinity torch's is NaN


def _tanh_grad(g: Tensor, y: Tensor) -> Tensor:
    return g * (1 - y * y) if g.dtype.is_complex else aten.tanh_backward(g, y)


@kernel("npx.tanh_grad", dtypes_of=common, alike=lambda g, y: _tanh_grad if g.dtype.is_complex else aten.tanh_backward)
def tanh_grad(g: Any, y: Any) -> Tensor:
    return _tanh_grad(*together(g, y))


@kernel("npx.strong_divide", dtypes_of=common)
def strong_divide(g: Any, d: Any) -> Tensor:
    g, d = together(g, d)
    return torch.where(g == 0, g, g / d)


@kernel("npx.strong_multiply", dtypes_of=common)
def strong_multiply(g: Any, s: Any) -> Tensor:
    if type(s) is complex and s.real == 0 and torch.is_tensor(g) and g.dtype.is_floating_point:
        return torch.complex(torch.zeros_like(g), g * s.imag)  # infinity times that 0 is NaN
    g, s = together(g, s)
    return torch.where(g == 0, g, g * s)


@kernel("npx.strong_product", dtypes_of=common)
def strong_product(a: Any, b: Any) -> Tensor:
    a, b = together(a, b)
    return torch.where((a == 0) | (b == 0), 0, a * b)


@kernel("npx.smooth_l1")
def smooth_l1(x: Tensor, scalar: float = 1.0) -> Tensor:
    x, bend = inexact(x), 1 / scalar**2
    size = torch.abs(x)
    return torch.where(size < bend, x * x * (0.5 * scalar**2), size - 0.5 * bend)


def _over_axes(one: Callable, several: Callable) -> Callable:
    def run(x: Tensor, axis: Any = -1) -> Tensor:
        x, over = inexact(x), dims(axis, x.ndim)
        if len(over) == 1:
            return one(x, over[0])
        top = torch.amax(x, over, keepdim=True)
        return several(x - torch.where(torch.isneginf(top), 0, top), over)

    return run


def _softmax(x: Tensor, over: tuple) -> Tensor:
    y = torch.exp(x)
    return y / y.sum(over, keepdim=True)


kernel("npx.softmax")(_over_axes(torch.softmax, _softmax))
kernel("npx.log_softmax")(
    _over_axes(torch.log_softmax, lambda x, over: x - torch.log(torch.exp(x).sum(over, keepdim=True)))
)


# ------------------------------------------------------------------ normalisation
def _per_channel(x: Tensor, gamma: Tensor, axes: Sizes) -> bool:
    """Whether this is batch normalisation: one mean for each channel, the second axis."""
    return x.ndim > 1 and tuple(axes) == (0, *range(2, x.ndim)) and gamma.numel() == x.shape[1]


def _per_row(x: Tensor, gamma: Tensor, axes: Sizes) -> bool:
    """Whether this is layer normalisation: one mean for each place before the last axes, of which gamma has all."""
    first = x.ndim - len(axes)
    return tuple(axes) == tuple(range(first, x.ndim)) and tuple(gamma.shape) == (1,) * first + tuple(x.shape[first:])


def _over_batch(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> tuple:
    """y, and each channel's mean, variance and 1 / sqrt(variance + eps). torch tells the variance in a running one:
    into that of zero goes (n - 1) / n of the unbiased one of n elements."""
    unused, variance, count = torch.zeros_like(gamma), torch.zeros_like(gamma), x.numel() // x.shape[1]
    y, mean, inverse = torch.native_batch_norm(x, gamma, beta, unused, variance, True, 1 - 1 / count, eps)
    return y, mean, variance, inverse


@kernel("npx.normalize", dtypes_of=common)
def normalize(x: Any, gamma: Any, beta: Any, axes: Sizes, eps: float) -> tuple:
    """y, mean, variance (biased) and 1 / sqrt(variance + eps)."""
    x, gamma, beta = together(x, gamma, beta)
    if _per_channel(x, gamma, axes) and x.numel() > x.shape[1] and x.dtype in (torch.float32, torch.float64):
        y, *small = _over_batch(x, gamma.reshape(-1), beta.reshape(-1), eps)
        return y, *[v.reshape(gamma.shape) for v in small]
    if _per_row(x, gamma, axes) and gamma.shape == beta.shape and x.numel():
        size = x.shape[x.ndim - len(axes) :]
        y, mean, inverse = torch.native_layer_norm(x, size, gamma.reshape(size), beta.reshape(size), eps)
        variance = inverse.pow(-2).sub_(eps).clamp_(min=0)
        return y, mean, variance, inverse
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    inverse = torch.rsqrt(variance + eps)
    return torch.addcmul(beta, (x - mean) * inverse, gamma), mean, variance, inverse


def _are_vectors(x: Tensor, vectors: Sequence[Tensor], axis: int) -> bool:
    n = x.shape[axis]
    return x.dtype.is_floating_point and all(v.ndim == 1 and v.numel() == n for v in vectors)


def _train(x: Tensor, *vectors: Tensor, axis: int, eps: float, momentum: float) -> tuple:
    y = x if axis == 1 else x.movedim(axis, 1)
    if not _are_vectors(x, vectors, axis) or x.dtype is torch.float16 or y.numel() <= y.shape[1]:
        refuse("a batch normalisation of such numbers, by other than vectors, or of one element each")
    gamma, beta, center, spread = vectors
    y, mean, variance, inverse = _over_batch(y, gamma, beta, eps)
    now = torch.lerp(center, mean, 1 - momentum), torch.lerp(spread, variance, 1 - momentum)
    return y if axis == 1 else y.movedim(1, axis), mean, variance, *now, inverse


@kernel("npx.batch_norm_train", dtypes_of=common, alike=lambda *values: _train)
def batch_norm_train(*values: Any, **params: Any) -> tuple:
    return _train(*together(*values), **params)


@kernel("npx.batch_norm_train_back", dtypes_of=common)
def batch_norm_train_back(*values: Any, layout: tuple, axis: int, eps: float, momentum: float) -> tuple:
    flows, _, wanted = layout
    if flows != (True, False, False) or axis != 1 or not _one_dtype(values):
        refuse("gradients of the mean and the variance")
    gy, _, mean, _, _, _, inverse, x, gamma, _, *moving = values
    out = [bool(wanted[0]), True, True]
    gx, gw, gb = aten.native_batch_norm_backward.default(gy, x, gamma, None, None, mean, inverse, True, eps, out)
    still = [torch.zeros_like(m) if w else None for m, w in zip(moving, wanted[3:], strict=True)]
    return gx if wanted[0] else None, gw, gb, *still


def _normalize_by(x: Tensor, *vectors: Tensor, axis: int, eps: float) -> Tensor:
    if not _are_vectors(x, vectors, axis):
        refuse("a batch normalisation of integers, or by other than vectors")
    y = x if axis == 1 else x.movedim(axis, 1)
    y = torch.native_batch_norm(y, *vectors, False, 0.0, eps)[0]
    return y if axis == 1 else y.movedim(1, axis)


@kernel("npx.normalize_by", dtypes_of=common, alike=lambda *values: _normalize_by)
def normalize_by(*values: Any, **params: Any) -> Tensor:
    return _normalize_by(*together(*values), **params)


def _one_dtype(values: Sequence[Any]) -> bool:
    return all(type(v) is Tensor and v.dtype is values[0].dtype for v in values)


def _summed(x: Tensor, shape: Sizes) -> Tensor:
    over = [i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
    return x.sum(over, keepdim=True) if over else x


@kernel("npx.normalize_back", dtypes_of=common)
def normalize_back(*values: Any, layout: tuple, axes: Sizes, eps: float) -> tuple:
    flows, results, wanted = layout
    values = together(*values)
    given = iter(values[: sum(flows)])
    gy, g_mean, g_var = (next(given) if flow else None for flow in flows)
    _, mean, _, inverse = values[sum(flows) : sum(flows) + results]
    x, gamma, beta = values[sum(flows) + results :]
    if gy is not None and g_mean is None and g_var is None and _per_channel(x, gamma, axes):
        flat = gamma.reshape(-1), None, None, mean.reshape(-1), inverse.reshape(-1)
        gx, gw, gb = aten.native_batch_norm_backward.default(gy, x, *flat, True, eps, [bool(wanted[0]), True, True])
        return gx if wanted[0] else None, gw.reshape(gamma.shape), gb.reshape(beta.shape)
    if gy is not None and g_mean is None and g_var is None and _per_row(x, gamma, axes) and gamma.shape == beta.shape:
        size = x.shape[x.ndim - len(axes) :]
        kept = size, mean, inverse, gamma.reshape(size), beta.reshape(size)
        gx, gw, gb = aten.native_layer_norm_backward.default(gy, x, *kept, [bool(wanted[0]), True, True])
        return gx, gw.reshape(gamma.shape), gb.reshape(beta.shape)
    gy = torch.zeros_like(x) if gy is None else gy
    hat = (x - mean) * inverse
    product = gy * hat
    g_gamma, g_beta = _summed(product, gamma.shape), _summed(gy, beta.shape)
    if not wanted[0]:
        return None, g_gamma, g_beta
    # the mean and the variance move with x too: take out of g what they absorb
    along, gx = (product * gamma).mean(axes, keepdim=True), gy * gamma
    level, count = gx.mean(axes, keepdim=True), prod(x.shape[a] for a in axes)
    if g_var is not None:
        along = along - g_var * (2 / count) / inverse / inverse
    if g_mean is not None:
        level = level - g_mean / count / inverse
    return (gx - level - hat * along) * inverse, g_gamma, g_beta
