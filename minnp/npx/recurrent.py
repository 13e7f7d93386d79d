"""The other recurrent layers over whole sequences: the rows gru and simple_rnn, one kernel each way through time.

x is [T, N, I], states [N, H], weights [gates * H, I] and [gates * H, H]. The GRU's gates are in MXNet's order (and
cuDNN's, and torch's): reset, update, new; its reset acts on h W_h^T + b_h.
The products with x and all weight gradients are one matrix product for all steps; only h W_h^T is done step by step,
and every step works in place on its slices of a few large buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.cpu.memory import empty
from ..numpy.shaping import concatenate, stack, swapaxes
from ..numpy.ufuncs import tanh
from .activations import relu, sigmoid
from .fused import fused
from .steps import Repeated, check, layer_facts, product, project, slope_of_sigmoid, slope_of_tanh, split


def _sigmoid(a: onp.ndarray) -> None:
    """In place; as a tanh, which has no overflow and a fast kernel."""
    a *= 0.5
    onp.tanh(a, out=a)
    a *= 0.5
    a += 0.5


def _before(h0: onp.ndarray, hs: onp.ndarray) -> onp.ndarray:
    """The state each step started from."""
    out = empty(hs.shape, hs.dtype)
    out[0], out[1:] = h0, hs[:-1]
    return out


def _input_grads(wanted: Sequence[bool], d: onp.ndarray, x: onp.ndarray, w_x: onp.ndarray) -> tuple:
    """Cotangents of x and of its weights, from those of x W^T at every step."""
    flat = d.reshape(d.shape[0] * d.shape[1], d.shape[2])
    gx = product(flat, w_x).reshape(x.shape) if wanted[0] else None
    return gx, product(flat.T, x.reshape(len(flat), x.shape[-1]))


# ------------------------------------------------------------------ GRU
def _gru(x: Any, h0: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any) -> tuple:
    check("gru", 3, x, (h0,), w_x, w_h, b_x, b_h)
    gates = project(x, w_x, b_x)
    steps, n, hidden = *x.shape[:2], h0.shape[-1]
    hs, inner = (empty((steps, n, hidden), gates.dtype) for _ in range(2))
    recurrent = onp.empty((n, 3 * hidden), gates.dtype)
    two, h, weight = 2 * hidden, onp.ascontiguousarray(h0, hs.dtype), Repeated(w_h.T.astype(hs.dtype, copy=False), n)
    for a, h_next, kept in zip(gates, hs, inner, strict=True):
        weight.into(recurrent[None], h)
        recurrent += b_h
        kept[...] = recurrent[:, two:]
        a[:, :two] += recurrent[:, :two]
        _sigmoid(a[:, :two])
        r, z, new = split(a, 3)
        new += onp.multiply(r, kept, out=h_next)
        onp.tanh(new, out=new)
        onp.subtract(h, new, out=h_next)
        h_next *= z
        h_next += new
        h = h_next
    return hs, gates, inner


def _gru_back(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, h0: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any
) -> tuple:
    (ghs,), (hs, gates, inner) = g, y
    d = empty(gates.shape, gates.dtype)  # of x W_x^T + b_x
    e = empty(gates.shape, gates.dtype)  # of h W_h^T + b_h: the same, but for the new gate, which r multiplies
    dh, term = onp.zeros_like(hs[0]), onp.empty_like(hs[0])
    two, weight = 2 * hs.shape[-1], Repeated(w_h.astype(hs.dtype, copy=False), len(dh))
    for t in range(len(hs) - 1, -1, -1):
        r, z, new = split(gates[t], 3)
        dr, dz, dnew = split(d[t], 3)
        dh += ghs[t]
        slope_of_sigmoid(gates[t][:, :two], d[t][:, :two])
        slope_of_tanh(new, dnew)
        dnew *= dh
        dnew *= onp.subtract(1, z, out=term)
        dr *= dnew
        dr *= inner[t]
        dz *= dh
        dz *= onp.subtract(hs[t - 1] if t else h0, new, out=term)
        e[t][:, :two] = d[t][:, :two]
        onp.multiply(dnew, r, out=e[t][:, two:])
        dh *= z
        weight.into(term[None], e[t])
        dh += term
    gx, gw_x = _input_grads(wanted, d, x, w_x)
    flat = e.reshape(-1, e.shape[-1])
    gw_h = product(flat.T, _before(h0, hs).reshape(len(flat), h0.shape[-1]))
    return gx, dh, gw_x, gw_h, d.sum(axis=(0, 1)), flat.sum(axis=0)


def _gru_definition(x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any) -> tuple:
    hidden, steps = h.shape[-1], []
    for t in range(x.shape[0]):
        a = x[t] @ swapaxes(w_x, axis1=0, axis2=1) + b_x
        e = h @ swapaxes(w_h, axis1=0, axis2=1) + b_h
        r, z, new = (slice(k * hidden, (k + 1) * hidden) for k in range(3))
        r, z, inner = sigmoid(a[:, r] + e[:, r]), sigmoid(a[:, z] + e[:, z]), e[:, new]
        candidate = tanh(a[:, new] + r * inner)
        h = candidate + z * (h - candidate)
        steps.append((h, concatenate(r, z, candidate, axis=-1), inner))
    return tuple(stack(*parts, axis=0) for parts in zip(*steps, strict=True))


# ------------------------------------------------------------------ the plain recurrence
def _simple(x: Any, h0: Any, w_x: Any, w_h: Any, b: Any, activation: str = "tanh") -> tuple:
    check("simple_rnn", 1, x, (h0,), w_x, w_h, b)
    hs = project(x, w_x, b)
    recurrent, h = onp.empty(hs.shape[1:], hs.dtype), h0
    for a in hs:
        a += onp.matmul(h, w_h.T, out=recurrent)
        onp.tanh(a, out=a) if activation == "tanh" else onp.maximum(a, 0, out=a)
        h = a
    return (hs,)


def _simple_back(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, h0: Any, w_x: Any, w_h: Any, b: Any, activation: str = "tanh"
) -> tuple:
    (ghs,), (hs,) = g, y
    d, dh = onp.empty_like(hs), onp.zeros_like(hs[0])
    for t in range(len(hs) - 1, -1, -1):
        dh += ghs[t]
        if activation == "tanh":
            slope_of_tanh(hs[t], d[t])
        else:
            onp.greater(hs[t], 0, out=d[t])
        d[t] *= dh
        onp.matmul(d[t], w_h, out=dh)
    gx, gw_x = _input_grads(wanted, d, x, w_x)
    flat = d.reshape(d.shape[0] * d.shape[1], d.shape[2])
    return gx, dh, gw_x, flat.T @ _before(h0, hs).reshape(len(flat), h0.shape[-1]), flat.sum(axis=0)


def _simple_definition(x: Any, h: Any, w_x: Any, w_h: Any, b: Any, activation: str = "tanh") -> tuple:
    hs = []
    for t in range(x.shape[0]):
        a = x[t] @ swapaxes(w_x, axis1=0, axis2=1) + h @ swapaxes(w_h, axis1=0, axis2=1) + b
        h = tanh(a) if activation == "tanh" else relu(a)
        hs.append(h)
    return (stack(*hs, axis=0),)


# ------------------------------------------------------------------ rows
gru = fused(
    "npx.gru",
    _gru,
    _gru_back,
    _gru_definition,
    main=1,
    **layer_facts(3, lambda t, n, h: ((t, n, h), (t, n, 3 * h), (t, n, h)), 1, 2, {}),
)
simple_rnn = fused(
    "npx.simple_rnn",
    _simple,
    _simple_back,
    _simple_definition,
    main=1,
    **layer_facts(1, lambda *s: (s,), 1, 1, {"activation": "tanh"}, {"activation": "relu"}),
)
