"""Rows of products: matmul and einsum; dot, inner, outer, tensordot, kron and their relatives are said in these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.primitive import Meta, primitive
from .facts import sampled, spread
from .shape import expand_dims, reshape, swapaxes


# ------------------------------------------------------------------ matmul
def _matmul_left(g: Any, y: Any, a: Any, b: Any) -> Any:
    if b.ndim == 1:
        return g * b if a.ndim == 1 else expand_dims(g, axis=-1) * b
    if a.ndim == 1:
        return reshape(b @ expand_dims(g, axis=-1), shape=b.shape[:-1])
    return g @ swapaxes(b, axis1=-1, axis2=-2)


def _matmul_right(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 1:
        return g * a if b.ndim == 1 else expand_dims(a, axis=-1) * expand_dims(g, axis=-2)
    if b.ndim == 1:
        return reshape(swapaxes(a, axis1=-1, axis2=-2) @ expand_dims(g, axis=-1), shape=(*a.shape[:-2], a.shape[-1]))
    if b.ndim == 2 and a.ndim > 2:  # one product over all batches, not one per batch and a sum
        a, g = reshape(a, shape=(-1, a.shape[-1])), reshape(g, shape=(-1, g.shape[-1]))
    return swapaxes(a, axis1=-1, axis2=-2) @ g


def _matmul_meta(metas: Sequence[Meta], params: dict) -> Meta:
    a, b = metas
    batch = onp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *(a.shape[-2:-1]), *(b.shape[-1:] if b.ndim > 1 else ()))
    return Meta(shape, onp.result_type(a.dtype, b.dtype))


matmul = primitive(
    "matmul",
    numpy=onp.matmul,
    vjp=[_matmul_left, _matmul_right],
    jvp="multilinear",
    saves="in",
    shape=_matmul_meta,
    flops=lambda metas, params, out: 2 * out.size * metas[0].shape[-1],
    samples=sampled(
        *(
            ((spread(*a), spread(*b, seed=1)), {})
            for a, b in [
                ((2, 3), (3, 4)),
                ((3,), (3,)),
                ((2, 3), (3,)),
                ((3,), (3, 2)),
                ((3,), (4, 3, 2)),
                ((4, 2, 3), (3,)),
                ((4, 2, 3), (3, 2)),
                ((2, 3), (4, 3, 2)),
                ((5, 1, 2, 3), (4, 3, 2)),
            ]
        )
    ),
)
