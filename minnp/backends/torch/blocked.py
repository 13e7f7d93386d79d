"""Kernels on oneDNN's own layouts: what lies between the convolutions of a training step.

oneDNN computes convolutions and their gradients fastest on tensors whose channels lie in blocks (nChw16c). torch has
them as opaque tensors (`Tensor.to_mkldnn`), without strides or storage. In a graph that `suits`, results of
convolutions stay opaque, and so do those of the rows in KERNELS; any other row gets its operands in NumPy's order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as onp
import torch

from ...core.compiled import team
from ...core.cpu import kernels
from ...core.graph.effects import pause, pick
from ...core.graph.graph import Graph
from ...core.graph.node import Node
from ...core.rows import references
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


def elements(t: Tensor) -> onp.ndarray:
    """The elements of an opaque tensor and its padding, zeros, in the order of its memory; while the tensor lives."""
    bytes_ = (ctypes.c_byte * torch.ops.mkldnn._nbytes(t)).from_address(torch.ops.mkldnn.data_ptr(t))
    return onp.frombuffer(bytes_, onp.float32)


def memory(t: Tensor) -> Tensor:
    """The same as a tensor."""
    return torch.from_numpy(elements(t))


BLOCK = 16  # channels of a block of which the C part knows
_IN_BLOCKS: dict[tuple, bool] = {}


def in_blocks(t: Tensor) -> bool:
    """Whether an opaque image lies as [N, C / 16, H, W, 16]. oneDNN describes a layout in bytes that it does not
    document, so one is known by where it has numbers that say where they are, once."""
    key = tuple(t.shape), bytes(torch.ops.mkldnn._get_mkldnn_serialized_md(t).numpy())
    if key not in _IN_BLOCKS:
        n, c, h, w = t.shape
        _IN_BLOCKS[key] = fits = c % BLOCK == 0 and torch.ops.mkldnn._nbytes(t) == 4 * t.numel()
        if fits:
            places = torch.arange(t.numel()).remainder(8388593).float()  # a prime that floats hold
            marked = t.clone()
            memory(marked).copy_(places)
            blocks = places.reshape(n, c // BLOCK, h, w, BLOCK).permute(0, 1, 4, 2, 3).reshape(t.shape)
            _IN_BLOCKS[key] = torch.equal(marked.to_dense(), blocks)
    return _IN_BLOCKS[key]


class Recycled:
    """Opaque tensors that an executor has made, for the same again once nothing else refers to them: torch makes none
    without writing to all of it."""

    def __init__(self) -> None:
        self.made: dict[tuple, list[Tensor]] = {}

    def like(self, t: Tensor) -> Tensor:
        """A tensor as t, with whatever elements; t lies in_blocks."""
        if not references.COUNTED:
            return t.clone()
        made = self.made.setdefault(tuple(t.shape), [])
        for i in range(len(made)):
            if references.references(list.__getitem__, made, i) == 1:
                return made[i]
        made.append(t.clone())
        return made[-1]


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
def normalize(
    x: Tensor, gamma: Tensor, beta: Tensor, axes: Sizes, eps: float, relu: bool = False, recycled: Any = None
) -> tuple:
    """y, mean, variance (biased) and 1 / sqrt(variance + eps); with `relu`, that of y."""
    if not is_opaque(x) or not _per_channel(x, gamma, axes) or x.numel() == x.shape[1]:
        refuse("a normalisation by other than channels")
    if team is not None and in_blocks(x):
        y = (recycled or Recycled()).like(x)
        small = onp.empty((3, x.shape[1]), onp.float32)
        _call("block_norm", x, (elements(x), *_vectors(gamma, beta), elements(y), *small), eps, relu)
        return (y, *[t.reshape(gamma.shape) for t in torch.from_numpy(small)])
    y, *small = aten.native_batch_norm.default(x, gamma.reshape(-1), beta.reshape(-1), None, None, True, 0.0, eps)
    mean, variance = (t.to_dense().reshape(gamma.shape) for t in small)
    return relu_in_place(y) if relu else y, mean, variance, torch.rsqrt(variance + eps)


def _vectors(*tensors: Tensor) -> list[onp.ndarray]:
    return [t.reshape(-1).to(torch.float32).numpy() for t in tensors]


def _call(name: str, x: Tensor, arrays: Sequence[onp.ndarray], *numbers: float) -> None:
    rows = x.shape[1] // BLOCK
    sizes = BLOCK, BLOCK * x.shape[2:].numel()
    if kernels.call(name, rows, x.numel() // rows, arrays, (*sizes, *map(float, numbers))) is None:
        refuse("a normalisation in the memory of another array")


@kernel("npx.normalize_back")
def normalize_back(
    *values: Any,
    layout: tuple,
    axes: Sizes,
    eps: float,
    relu: bool = False,
    recycled: Any = None,
    in_place: bool = False,
) -> tuple:
    """The cotangents of x, gamma and beta, given that of the result or, with `relu`, of the relu of it; that of x is
    written over it with `in_place`."""
    flows, _, wanted = layout
    if flows != (True, False, False):
        refuse("gradients of the mean and the variance")
    gy, _, mean, variance, inverse, x, gamma, beta = values
    if not is_opaque(x) or not _per_channel(x, gamma, axes):
        refuse("a normalisation by other than channels")
    if team is not None and in_blocks(x):
        known = elements(x), *_vectors(gamma, beta, mean, inverse)
        small = onp.empty((2, x.shape[1]), onp.float32)
        if not is_opaque(gy) or not lie_alike(gy, x):
            gy, in_place = relaid(opaque(gy), x), True
        if in_place:
            gx = gy
            _call("block_norm_back_in_place", x, (*known, elements(gx), *small), relu)
        else:
            gx = (recycled or Recycled()).like(x)
            _call("block_norm_back", x, (*known, elements(gy), elements(gx), *small), relu)
        gw, gb = torch.from_numpy(small)
    else:
        if relu:
            refuse("the gradient of a relu with that of a normalisation in such a layout")
        mean, variance = (t.reshape(-1).to_mkldnn() for t in (mean, variance))
        given = opaque(gy), x, gamma.reshape(-1), None, None, mean, variance
        gx, gw, gb = aten.native_batch_norm_backward.default(*given, True, eps, [True, True, True])
    return gx if wanted[0] else None, gw.reshape(gamma.shape), gb.reshape(beta.shape)


# a relu that alone reads a normalisation, and its gradient, are computed with it
def passed(x: Tensor, *_: Any) -> Tensor:
    """x: another kernel does the rest."""
    return x


def of_normalize(node: Any, relu: str = "npx.relu") -> Node | None:
    """The normalisation whose relu a node is."""
    y = node.args[0] if isinstance(node, Node) and name_of(node) == relu else None
    found = isinstance(y, Node) and y.target is pick and y.args[1] == 0 and name_of(y.args[0]) == "npx.normalize"
    return y.args[0] if found else None


def with_relu(node: Node) -> bool:
    """Whether relus, and nothing else, read the result of a normalisation."""
    readers = [u for y in node.users if y.target is pick and y.args[1] == 0 for u in y.users]
    return bool(readers) and all(name_of(u) == "npx.relu" for u in readers)


def back_of_relu(node: Node) -> Node | None:
    """The normalisation of whose relu the node is the gradient, where its own gradient alone reads that."""
    (back, *others), normal = node.users or (None,), of_normalize(node.args[1])
    if others or normal is None or name_of(back) != "npx.normalize_back" or len(back.args) != 8:
        return None
    mean, inverse = back.args[2], back.args[4]
    same = all(isinstance(m, Node) and m.target is pick and m.args == (normal, i) for m, i in ((mean, 1), (inverse, 3)))
    same = same and back.kwargs["layout"][0] == (True, False, False) and back.args[0] is node
    return normal if same and tuple(back.args[5:]) == tuple(normal.args[:3]) else None


def fused(node: Node, operands: Sequence[Any], chosen: dict, recycled: Recycled) -> Callable | None:
    """The kernel of a node in a graph, given those chosen before; None where KERNELS has it."""
    name = name_of(node)
    with_its_relu = lambda n: n in chosen and getattr(chosen[n][0], "keywords", {}).get("relu", False)
    if team is None:
        return None
    if name == "npx.normalize":
        return partial(normalize, relu=with_relu(node), recycled=recycled)
    if name == "npx.relu" and with_its_relu(of_normalize(node)):
        return passed
    if name == "npx.relu_grad" and is_opaque(operands[0]) and with_its_relu(back_of_relu(node)):
        x = chosen[back_of_relu(node)][1][0]
        return passed if in_blocks(x) else None
    if name == "npx.normalize_back":
        relu = node.args[0] in chosen and chosen[node.args[0]][0] is passed
        return partial(normalize_back, relu=relu, recycled=recycled)
    return None


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
