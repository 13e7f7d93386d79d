"""Kernels on oneDNN's own layouts: what lies between the convolutions of a training step.

oneDNN computes convolutions and their gradients fastest on tensors whose channels lie in blocks (nChw16c). torch has
them as opaque tensors (`Tensor.to_mkldnn`), without strides or storage. In a graph that `suits`, results of
convolutions stay opaque, and so do those of the rows in KERNELS; any other row gets its operands in NumPy's order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as onp
import torch

from ...core.graph.effects import pause, pick
from ...core.graph.graph import Graph
from ...core.graph.node import Node
from ...core.rows.primitive import Meta
from .dtypes import refuse
from .neural import Sizes, _per_channel, masked
from .neural import max_pool as pool
from .neural import max_pool_grad as pool_grad

Tensor = torch.Tensor
aten = torch.ops.aten
KERNELS: dict[str, Callable] = {}
BACK = ("npx.conv_grads", "npx.conv_weight_grad")


@cache
def available() -> bool:
    """Whether this torch has oneDNN, and says where its tensors lie."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in ("data_ptr", "_nbytes", "_get_mkldnn_serialized_md")
    )


def suits(graph: Graph) -> bool:
    """Whether a graph differentiates float32 convolutions of images, which rows of KERNELS follow: others would have
    what they read re-laid."""
    convolutions = [n for n in graph.nodes if name_of(n) == "npx.conv"]
    if not available() or not convolutions or not any(name_of(n) in BACK for n in graph.nodes):
        return False
    images = [n.meta.get("value") for n in convolutions]
    follows = [u for n in convolutions for u in n.users if u.target not in (pick, pause) and u.op != "output"]
    return all(type(m) is Meta and len(m.shape) == 4 and m.dtype == onp.float32 and m.size for m in images) and all(
        name_of(u) in KERNELS and (name_of(u) != "add" or one_shape(u)) for u in follows
    )


def name_of(node: Node) -> str:
    return getattr(node.target, "name", "")


def one_shape(node: Node) -> bool:
    return all(isinstance(a, Node) and a.meta.get("value") == node.meta["value"] for a in node.args)


def is_opaque(t: Any) -> bool:
    return type(t) is Tensor and t.is_mkldnn


def place(t: Tensor) -> int:
    """Where its memory begins."""
    return torch.ops.mkldnn.data_ptr(t) if t.is_mkldnn else t.untyped_storage().data_ptr()


def dense(value: Any) -> Any:
    return value.to_dense() if is_opaque(value) else value


def of_dense(kernel: Callable) -> Callable:
    """A kernel of tensors, of operands that may be opaque."""
    return lambda *values, **params: kernel(*map(dense, values), **params)


def opaque(t: Tensor) -> Tensor:
    return t if t.is_mkldnn else t.contiguous().to_mkldnn()


def memory(t: Tensor) -> Tensor:
    """The elements of an opaque tensor and its padding, zeros, in the order of its memory; while the tensor lives."""
    bytes_ = (ctypes.c_byte * torch.ops.mkldnn._nbytes(t)).from_address(torch.ops.mkldnn.data_ptr(t))
    return torch.frombuffer(bytes_, dtype=torch.float32)


def lie_alike(a: Tensor, b: Tensor) -> bool:
    return torch.equal(*map(torch.ops.mkldnn._get_mkldnn_serialized_md, (a, b)))


def relaid(t: Tensor, like: Tensor) -> Tensor:
    """A copy in the layout of another: oneDNN's sum takes a sixth of the time of a copy from channels last."""
    out = like.clone()
    memory(out).zero_()
    return out.add_(t)


def kernel(name: str) -> Callable:
    """Enter the decorated function as the kernel of a row where an operand is opaque."""
    return lambda function: KERNELS.setdefault(name, function)


def takes(name: str, operands: Sequence[Any]) -> bool:
    """Whether KERNELS has a row for such operands."""
    images = [t for t in operands if type(t) is Tensor and t.ndim == 4]
    if name not in KERNELS or not all(t.dtype is torch.float32 for t in images):
        return False
    return name in ("npx.conv", *BACK) or any(t.is_mkldnn for t in images)


# ------------------------------------------------------------------ convolution
@kernel("npx.conv")
def conv(x: Tensor, w: Tensor, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int = 1) -> Tensor:
    return aten.mkldnn_convolution.default(opaque(x), w, None, pad, stride, dilate, groups)


def _gradients(g: Tensor, x: Tensor, w: Tensor, params: dict, of_x: bool, of_w: bool) -> tuple:
    if of_x and x.shape[1] < 8 and 1 not in params["stride"] and plain(x, params):
        # oneDNN's gradient of few channels takes twice the time of a product and sums of its windows
        of_x, gw = False, _gradients(g, x, w, params, False, True)[1] if of_w else None
        where = w.shape[2:], params["stride"], params["pad"]
        return aten._slow_conv2d_backward.output_mask(dense(g), dense(x), w, *where, [True, False, False])[0], gw
    order = (params["stride"], params["pad"], params["dilate"], False, [0, 0], params.get("groups", 1))
    wanted = [of_x, of_w, False]
    return aten.convolution_backward.default(opaque(g), opaque(x), w, None, *order, wanted)[:2]


def plain(x: Tensor, params: dict) -> bool:
    """Whether a convolution has one group and no dilation, and its image more than a few positions."""
    return set(params["dilate"]) == {1} and params.get("groups", 1) == 1 and x.shape[2:].numel() >= 100


@kernel("npx.conv_grads")
def conv_grads(g: Tensor, x: Tensor, w: Tensor, **params: Any) -> tuple:
    return _gradients(g, x, w, params, True, True)


@kernel("npx.conv_weight_grad")
def conv_weight_grad(x: Tensor, g: Tensor, kernel: Sizes, **params: Any) -> Tensor:
    w = torch.empty((g.shape[1], x.shape[1] // params.get("groups", 1), *kernel))
    return _gradients(g, x, w, params, False, True)[1]


# ------------------------------------------------------------------ normalisation
@kernel("npx.normalize")
def normalize(x: Tensor, gamma: Tensor, beta: Tensor, axes: Sizes, eps: float) -> tuple:
    """y, mean, variance (biased) and 1 / sqrt(variance + eps)."""
    if not is_opaque(x) or not _per_channel(x, gamma, axes) or x.numel() == x.shape[1]:
        refuse("a normalisation by other than channels")
    y, *small = aten.native_batch_norm.default(x, gamma.reshape(-1), beta.reshape(-1), None, None, True, 0.0, eps)
    mean, variance = (t.to_dense().reshape(gamma.shape) for t in small)
    return y, mean, variance, torch.rsqrt(variance + eps)


@kernel("npx.normalize_back")
def normalize_back(*values: Any, layout: tuple, axes: Sizes, eps: float) -> tuple:
    flows, _, wanted = layout
    if flows != (True, False, False):
        refuse("gradients of the mean and the variance")
    gy, _, mean, variance, _, x, gamma, beta = values
    if not is_opaque(x) or not _per_channel(x, gamma, axes):
        refuse("a normalisation by other than channels")
    mean, variance = (t.reshape(-1).to_mkldnn() for t in (mean, variance))
    given = opaque(gy), x, gamma.reshape(-1), None, None, mean, variance
    gx, gw, gb = aten.native_batch_norm_backward.default(*given, True, eps, [True, True, True])
    return gx if wanted[0] else None, gw.reshape(gamma.shape), gb.reshape(beta.shape)


# ------------------------------------------------------------------ elementwise
# in the tensors' memory: oneDNN's relu makes 0 of NaN
@kernel("npx.relu")
def relu(x: Tensor) -> Tensor:
    return relu_in_place(x.clone())


def relu_in_place(x: Tensor) -> Tensor:
    torch.relu_(memory(x))
    return x


@kernel("npx.relu_grad")
def relu_grad(g: Any, y: Any) -> Tensor:
    if not is_opaque(g) or not is_opaque(y):
        return masked(dense(g), dense(y))
    return relu_grad_in_place(g.clone() if lie_alike(g, y) else relaid(g, y), y)


def relu_grad_in_place(g: Tensor, y: Tensor) -> Tensor:
    g = g if lie_alike(g, y) else relaid(g, y)
    into = memory(g)
    masked(into, memory(y), into=into)
    return g


@kernel("add")
def add(a: Any, b: Any) -> Tensor:
    if type(a) is not Tensor or type(b) is not Tensor or a.shape != b.shape or a.dtype is not b.dtype:
        refuse("a sum of such arrays")
    return aten.add.Tensor(opaque(a), opaque(b))


# ------------------------------------------------------------------ pooling
@kernel("npx.max_pool")
def max_pool(x: Tensor, **params: Any) -> Tensor:
    """oneDNN's own, which ignores NaN: where there may be some, with channels last, where torch is ten times as fast as
    in NumPy's order. The sum of what has NaN or an infinity is one of these."""
    if params["ceil"] or not memory(x).sum().isfinite():
        return pool(dense(x).contiguous(memory_format=torch.channels_last), **params)
    with torch.enable_grad():  # keeps the places, for max_pool_grad
        return aten.mkldnn_max_pool2d.default(x.detach().requires_grad_(), *_windows(params)).detach()


def _windows(params: dict) -> tuple:
    return params["kernel"], params["stride"], params["pad"], [1, 1], False


@kernel("npx.max_pool_grad")
def max_pool_grad(g: Tensor, x: Tensor, y: Tensor, **params: Any) -> Tensor:
    if not is_opaque(y) or not is_opaque(x):
        return pool_grad(dense(g), dense(x), dense(y), **params)
    return aten.mkldnn_max_pool2d_backward.default(opaque(g), y, x, *_windows(params))


IN_PLACE: dict[str, Callable] = {
    "npx.relu": relu_in_place,
    "npx.relu_grad": relu_grad_in_place,
    "add": lambda a, b: a.add_(opaque(b)),
}
