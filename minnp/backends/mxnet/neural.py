"""Lowerings of the rows in minnp.npx: convolution, pooling, softmax, normalisation and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from .lowering import Argument, Lowered, Lowering, Meta, finite, folded, normal_axes, only, refuse, text

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
    if len(x.shape) > 4 and x.dtype != "float32":
        raise refuse(f"a transposed convolution of {len(x.shape) - 2} axes in {x.dtype}")
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


def _conv_grads(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    g, x, w = metas
    _same_rank(x, w, w.shape[1] * params.get("groups", 1))
    _same_rank(g, w, w.shape[0])
    attributes = _convolution(w.shape[2:], w.shape[0], params)
    arguments = tuple(Argument(i, meta.shape, meta.dtype) for i, meta in enumerate(metas))
    results = ((x.shape, x.dtype), (w.shape, w.dtype))
    return Lowered("_backward_Convolution", attributes, arguments, (x.shape, w.shape), True, True, results)


TABLE.update(
    {
        "npx.conv": _conv,
        "npx.conv_grads": _conv_grads,
        "npx.conv_transpose": _conv_transpose,
        "npx.conv_weight_grad": _conv_weight_grad,
    }
)


# ------------------------------------------------------------------ pooling, softmax
def pooling(kind: str) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        (x,) = metas
        kernel, stride, pad, ceil = only(params, kernel=None, stride=None, pad=None, ceil=False)
        if not 3 <= len(x.shape) <= 5:
            raise refuse(f"pooling of {len(x.shape)} axes")
        for n, k, s, p in zip(x.shape[2:], kernel, stride, pad, strict=True):
            room = n + 2 * p - k
            if room < 0 or p >= k:
                raise refuse("windows that hold only padding")
            if ceil and room % s and (room // s + 1) * s >= n + p:
                raise refuse("a last window that holds only padding")
        attributes = {
            "kernel": text(tuple(kernel)),
            "stride": text(tuple(stride)),
            "pad": text(tuple(pad)),
            "pool_type": kind,
            "pooling_convention": "full" if ceil else "valid",
        }
        arguments = (Argument(0, x.shape, x.dtype),)
        guard = finite if kind == "max" else None
        return Lowered("Pooling", attributes, arguments, training=True, blocked=True, guard=guard)

    return lower


def soft(operator: str) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        (x,) = metas
        (axis,) = only(params, axis=-1)
        sizes, across = folded(x.shape, normal_axes(axis, len(x.shape)))
        if len(across) != 1 or x.dtype == "float16":
            raise refuse(f"{operator} of {x.dtype} over axes {axis}")
        return Lowered(operator, {"axis": text(across[0])}, (Argument(0, sizes, x.dtype),), x.shape, guard=finite)

    return lower


TABLE.update(
    {
        "npx.max_pool": pooling("max"),
        "npx.sum_pool": pooling("sum"),
        "npx.softmax": soft("softmax"),
        "npx.log_softmax": soft("log_softmax"),
    }
)


# ------------------------------------------------------------------ recurrent layers
def recurrent(mode: str | None, states: int, biases: int, after: Any) -> Lowering:
    """MXNet's RNN gives the outputs of all steps; what else the row keeps for its gradient follows from them."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        (activation,) = only(params, activation=None)
        x, h, w_x, dtype = metas[0].shape, metas[1].shape, metas[1 + states].shape, metas[0].dtype
        weights = metas[1 + states :]
        if len(x) != 3 or any(len(meta.shape) != 2 for meta in (metas[1], *weights[:2])):
            raise refuse(f"a recurrent layer on {x}")
        (_, n, inputs), hidden, gates = x, h[-1], w_x[0]
        expected = [(n, hidden)] * states + [(gates, inputs), (gates, hidden)] + [(gates,)] * biases
        if [meta.shape for meta in metas[1:]] != expected:
            raise refuse("shapes of states and weights that do not fit")
        size = sum(prod(meta.shape) for meta in weights) + gates * (2 - biases)
        attributes = {
            "mode": mode or f"rnn_{activation or 'tanh'}",
            "state_size": text(hidden),
            "num_layers": "1",
            "state_outputs": "False",
        }
        shapes = [x, (size,), *[(1, n, hidden)] * states]
        arguments = tuple(Argument(i, shape, dtype) for i, shape in enumerate(shapes))

        def before(values: Sequence[Any]) -> list[Any]:
            flat = [onp.ravel(v) for v in values[1 + states :]]
            if biases == 1:  # MXNet has two, and adds them
                flat.append(onp.zeros_like(flat[-1]))
            return [values[0], onp.concatenate(flat), *values[1 : 1 + states]]

        return Lowered("RNN", attributes, arguments, before=before, after=after)

    return lower


def steps(x: onp.ndarray, w: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """x w^T + b for all steps at once."""
    out = x.reshape(-1, x.shape[-1]) @ w.T
    out += b
    return out.reshape(*x.shape[:-1], -1)


def earlier(h0: onp.ndarray, hs: onp.ndarray) -> onp.ndarray:
    """The state that each step started from."""
    return onp.concatenate([h0[None], hs[:-1]])


def sigmoid(a: onp.ndarray) -> None:
    """In place."""
    a *= 0.5
    onp.tanh(a, out=a)
    a += 1
    a *= 0.5


def _after_lstm(values: Sequence[Any], results: list[onp.ndarray]) -> tuple:
    """(outputs, cell states, gates [4, T, N, H] in the order i f o g, tanh of the cell states)."""
    x, h0, c0, w_x, w_h, b = values
    hs = results[0]
    sums = steps(x, w_x, b)
    sums += steps(earlier(h0, hs), w_h, onp.zeros((), hs.dtype))
    i, f, g, o = onp.split(sums, 4, axis=-1)
    gates = onp.stack([i, f, o, g])
    sigmoid(gates[:3])
    onp.tanh(gates[3], out=gates[3])
    i, f, _, g = gates
    cs = i * g
    c = c0
    for t in range(len(cs)):
        cs[t] += f[t] * c
        c = cs[t]
    return hs, cs, gates, onp.tanh(cs)


def _after_gru(values: Sequence[Any], results: list[onp.ndarray]) -> tuple:
    """(outputs, gates r z n, the state's part of n before r)."""
    x, h0, w_x, w_h, b_x, b_h = values
    hs = results[0]
    hidden = hs.shape[-1]
    gates, states = steps(x, w_x, b_x), steps(earlier(h0, hs), w_h, b_h)
    inner = onp.ascontiguousarray(states[..., 2 * hidden :])
    gates[..., : 2 * hidden] += states[..., : 2 * hidden]
    sigmoid(gates[..., : 2 * hidden])
    new = gates[..., 2 * hidden :]
    new += gates[..., :hidden] * inner
    onp.tanh(new, out=new)
    return hs, gates, inner


TABLE.update(
    {
        "npx.lstm": recurrent("lstm", 2, 1, _after_lstm),
        "npx.gru": recurrent("gru", 1, 2, _after_gru),
        "npx.simple_rnn": recurrent(None, 1, 1, lambda values, results: (results[0],)),
    }
)
