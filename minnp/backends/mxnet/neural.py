"""Lowerings of the rows in minnp.npx: convolution, pooling, softmax, fully connected and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lowering import Argument, Lowered, Lowering, Meta, only, refuse, text

TABLE: dict[str, Lowering] = {}


# ------------------------------------------------------------------ convolution
def _convolution(kernel: Sequence[int], filters: int, params: dict[str, Any]) -> dict[str, str]:
    stride, pad, dilate, groups, _, _ = only(
        params, stride=None, pad=None, dilate=None, groups=1, size=None, kernel=None
    )
    axes = len(kernel)
    return {
        "kernel": text(tuple(kernel)),
        "stride": text(tuple(stride or (1,) * axes)),
        "pad": text(tuple(pad or (0,) * axes)),
        "dilate": text(tuple(dilate or (1,) * axes)),
        "num_group": text(groups),
        "num_filter": text(filters),
        "no_bias": "True",
    }


def _same_rank(x: Meta, w: Meta, channels: int) -> None:
    if len(x.shape) != len(w.shape) or not 3 <= len(x.shape) <= 5 or x.shape[1] != channels:
        raise refuse(f"convolution of {x.shape} with {w.shape}")


def _conv(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    x, w = metas
    _same_rank(x, w, w.shape[1] * params.get("groups", 1))
    attributes = _convolution(w.shape[2:], w.shape[0], params)
    arguments = (Argument(0, x.shape, x.dtype), Argument(1, w.shape, w.dtype))
    return Lowered("Convolution", attributes, arguments, training=True, blocked=True)


def _conv_transpose(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    x, w = metas
    _same_rank(x, w, w.shape[0])
    attributes = _convolution(w.shape[2:], w.shape[1] * params.get("groups", 1), params)
    back = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, k, s, p, d in zip(
            x.shape[2:], w.shape[2:], params["stride"], params["pad"], params["dilate"], strict=True
        )
    ]
    attributes["adj"] = text(tuple(size - least for size, least in zip(params["size"], back, strict=True)))
    arguments = (Argument(0, x.shape, x.dtype), Argument(1, w.shape, w.dtype))
    return Lowered("Deconvolution", attributes, arguments, training=True, blocked=True)


def _conv_weight_grad(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    x, g = metas
    groups, kernel = params.get("groups", 1), tuple(params["kernel"])
    weight = (g.shape[1], x.shape[1] // groups, *kernel)
    _same_rank(x, g, x.shape[1])
    attributes = _convolution(kernel, g.shape[1], params)
    arguments = (Argument(0, x.shape, x.dtype), Argument(None, weight, x.dtype), Argument(1, g.shape, g.dtype))
    results = ((weight, x.dtype),)
    return Lowered("Convolution", attributes, arguments, None, True, True, results, derivative=True)


TABLE.update({"npx.conv": _conv, "npx.conv_transpose": _conv_transpose, "npx.conv_weight_grad": _conv_weight_grad})
