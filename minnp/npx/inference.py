"""Rows that trained networks are compiled to: convolution with all that follows it in one kernel.

`npx.conv_act` is what folding leaves of a convolution, its batch norm, a residual sum and a relu (fx.fold_batch_norm).
A backend may prepare a weight that cannot change, a read-only array that owns its memory, once for all calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from ..core.rows.primitive import Joint, Meta, primitive
from ..numpy.facts import from_cost
from ..numpy.reductions import sum_
from ..numpy.ufuncs import greater, multiply
from .convolutions import _conv, _conv_rule, _conv_shape, multiplications
from .convolutions import _samples as conv_samples

ACTIVATIONS = ("", "relu")


def check_activation(activation: str, known: Sequence[str] = ACTIVATIONS) -> None:
    if activation not in known:
        raise ValueError(f"activation={activation!r}: choose from {', '.join(map(repr, known))}")


def along_channels(b: Any, ndim: int) -> Any:
    """A vector [C] as [C, 1, ...], to add to [N, C, *S]."""
    return b.reshape((-1,) + (1,) * (ndim - 2))


def _conv_act(x: Any, w: Any, b: Any, *other: Any, activation: str = "", **params: Any) -> onp.ndarray:
    check_activation(activation)
    y = _conv(x, w, **params)
    for term in (along_channels(onp.asarray(b), y.ndim), *other):
        y = onp.add(y, term, out=y if onp.result_type(y, term) == y.dtype else None)
    return onp.maximum(y, 0, out=y) if activation else y


def _rule(
    wanted: Sequence[bool], g: Any, y: Any, x: Any, w: Any, b: Any, *other: Any, activation: str = "", **params: Any
) -> list:
    if activation:
        g = multiply(g, greater(y, 0))
    grads = list(_conv_rule(wanted[:2], g, y, x, w, **params)) if any(wanted[:2]) else [None, None]
    of_bias = sum_(g, axis=(0, *range(2, x.ndim))) if wanted[2] else None
    return [*grads, of_bias, *[g] * len(other)]


def _shape(metas: Sequence[Meta], params: dict) -> Meta:
    y = _conv_shape(list(metas[:2]), params)
    return Meta(y.shape, onp.result_type(*[m.dtype for m in metas]))


def _samples() -> list:
    r = onp.random.default_rng(1)
    cases = []
    for i, ((x, w), params) in enumerate(conv_samples()):
        y = _conv(x, w, **params)
        other = [r.normal(size=y.shape)] if i % 2 else []
        cases.append(([x, w, r.normal(size=w.shape[0]), *other], {**params, "activation": ACTIVATIONS[i % 2]}))
    return cases


# (x [N, C, *S], w [O, C/groups, *K], b [O], other [N, O, *T] or nothing) -> activation(conv(x, w) + b + other)
conv_act = primitive(
    "npx.conv_act",
    numpy=_conv_act,
    vjp=Joint(_rule),
    saves="both",
    shape=_shape,
    flops=lambda metas, params, out: out.size * (2 * prod(metas[1].shape[1:]) + len(metas) - 1),
    worth=from_cost(lambda arrays, params: multiplications(arrays[:2], params), torch=1e5),
    samples=_samples,
)
