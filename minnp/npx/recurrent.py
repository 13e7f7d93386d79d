"""Recurrent layers over whole sequences: the rows lstm, gru and simple_rnn, one kernel each way through time; and
lstm_cell, one step.

x is [T, N, I], states [N, H], weights [gates * H, I] and [gates * H, H]. Gates are in MXNet's order (and cuDNN's, and
torch's): input, forget, cell, output for the LSTM; reset, update, new for the GRU, whose reset acts on h W_h^T + b_h.
The products with x and all weight gradients are one matrix product for all steps; only h W_h^T is done step by step,
and every step works in place on its slices of a few large buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.host.memory import empty
from ..core.primitive import Meta
from ..numpy.facts import spread
from ..numpy.shaping import concatenate, stack, swapaxes
from ..numpy.ufuncs import tanh
from .activations import relu, sigmoid
from .fused import fused


def _blocks(a: onp.ndarray, n: int) -> list[onp.ndarray]:
    """The n equal parts of the last axis, as views."""
    size = a.shape[-1] // n
    return [a[..., k * size : (k + 1) * size] for k in range(n)]


def _product(a: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """The matrix product, in recycled memory."""
    return onp.matmul(a, b, out=empty((*a.shape[:-1], b.shape[-1]), onp.result_type(a, b)))


def _project(x: onp.ndarray, w: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """x W^T + b for all steps at once."""
    out = _product(x.reshape(-1, x.shape[-1]), w.T)
    out += b
    return out.reshape(*x.shape[:-1], len(w))


def _sigmoid(a: onp.ndarray) -> None:
    """In place; as a tanh, which has no overflow and a fast kernel."""
    a *= 0.5
    onp.tanh(a, out=a)
    a *= 0.5
    a += 0.5


def _slope_of_sigmoid(a: onp.ndarray, out: onp.ndarray) -> None:
    onp.subtract(1, a, out=out)
    out *= a


def _slope_of_tanh(a: onp.ndarray, out: onp.ndarray) -> None:
    onp.multiply(a, a, out=out)
    onp.subtract(1, out, out=out)


def _before(h0: onp.ndarray, hs: onp.ndarray) -> onp.ndarray:
    """The state each step started from."""
    out = empty(hs.shape, hs.dtype)
    out[0], out[1:] = h0, hs[:-1]
    return out


def _input_grads(wanted: Sequence[bool], d: onp.ndarray, x: onp.ndarray, w_x: onp.ndarray) -> tuple:
    """Cotangents of x and of its weights, from those of x W^T at every step."""
    flat = d.reshape(d.shape[0] * d.shape[1], d.shape[2])
    gx = _product(flat, w_x).reshape(x.shape) if wanted[0] else None
    return gx, flat.T @ x.reshape(len(flat), x.shape[-1])


# ------------------------------------------------------------------ LSTM
INNER = [0, 1, 3, 2]  # gates inside the kernels: input, forget, output, cell, so that the three sigmoids are one block


def _lstm(x: Any, h0: Any, c0: Any, w_x: Any, w_h: Any, b: Any) -> tuple:
    (steps, n, inputs), hidden = x.shape, h0.shape[-1]
    dtype = onp.result_type(x, h0, w_x)
    # [4, I + H, H]: BLAS takes four square products faster than the transpose of a wide matrix, x and h in one.
    # sigmoid(a) = (1 + tanh(a/2)) / 2: with the halves in the weights, all four gates are one tanh
    half = onp.array([0.5, 0.5, 0.5, 1], dtype)[:, None, None]
    weight = onp.empty((4, inputs + hidden, hidden), dtype)
    for part, w in ((weight[:, :inputs], w_x), (weight[:, inputs:], w_h)):
        onp.multiply(w.reshape(4, hidden, -1)[INNER].swapaxes(1, 2), half, out=part)
    bias = b.reshape(4, 1, hidden)[INNER] * half
    gates = empty((4, steps, n, hidden), dtype)
    hs, cs, tanh_cs = (empty((steps, n, hidden), dtype) for _ in range(3))
    a, product, given = (onp.empty(s, dtype) for s in ((4, n, hidden), (n, hidden), (n, inputs + hidden)))
    given[:, inputs:], c = h0, c0
    for t in range(steps):
        z, c_next, tanh_c = gates[:, t], cs[t], tanh_cs[t]
        given[:, :inputs] = x[t]
        onp.matmul(given, weight, out=a)
        a += bias
        onp.tanh(a, out=a)
        onp.multiply(a[:3], 0.5, out=z[:3])
        z[:3] += 0.5
        z[3] = a[3]
        i, f, o, g = z
        onp.multiply(f, c, out=c_next)
        c_next += onp.multiply(i, g, out=product)
        onp.tanh(c_next, out=tanh_c)
        given[:, inputs:] = onp.multiply(o, tanh_c, out=hs[t])
        c = c_next
    return hs, cs, gates, tanh_cs


def _lstm_back(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, h0: Any, c0: Any, w_x: Any, w_h: Any, b: Any
) -> tuple:
    ghs, gcs = g
    hs, cs, gates, tanh_cs = y
    steps, n, hidden = hs.shape
    d = empty((steps, n, 4, hidden), gates.dtype)  # of the gates' sums, in the weights' order
    a = onp.empty((4, n, hidden), gates.dtype)
    dh, dc = onp.zeros_like(hs[0]), onp.zeros_like(hs[0])
    product = onp.empty_like(dh)
    for t in range(steps - 1, -1, -1):
        z, tanh_c = gates[:, t], tanh_cs[t]
        i, f, o, cell = z
        di, df, do, dcell = a
        if ghs is not None:
            dh += ghs[t]
        if gcs is not None:
            dc += gcs[t]
        _slope_of_sigmoid(z[:3], a[:3])
        _slope_of_tanh(cell, dcell)
        _slope_of_tanh(tanh_c, product)
        product *= o
        product *= dh
        dc += product
        di *= onp.multiply(dc, cell, out=product)
        df *= onp.multiply(dc, cs[t - 1] if t else c0, out=product)
        do *= onp.multiply(dh, tanh_c, out=product)
        dcell *= onp.multiply(dc, i, out=product)
        dc *= f
        for k, part in zip(INNER, a, strict=True):
            d[t, :, k] = part
        onp.matmul(d[t].reshape(n, 4 * hidden), w_h, out=dh)
    d = d.reshape(steps, n, 4 * hidden)
    gx, gw_x = _input_grads(wanted, d, x, w_x)
    flat = d.reshape(steps * n, 4 * hidden)
    return gx, dh, dc, gw_x, flat.T @ _before(h0, hs).reshape(steps * n, hidden), flat.sum(axis=0)


def _lstm_definition(x: Any, h: Any, c: Any, w_x: Any, w_h: Any, b: Any) -> tuple:
    hidden, steps = h.shape[-1], []
    for t in range(x.shape[0]):
        z = x[t] @ swapaxes(w_x, axis1=0, axis2=1) + h @ swapaxes(w_h, axis1=0, axis2=1) + b
        i, f, g, o = (z[:, k * hidden : (k + 1) * hidden] for k in range(4))
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        c = f * c + i * g
        tanh_c = tanh(c)
        h = o * tanh_c
        steps.append((h, c, stack(i, f, o, g, axis=0), tanh_c))
    hs, cs, gates, tanh_cs = zip(*steps, strict=True)
    return stack(*hs, axis=0), stack(*cs, axis=0), stack(*gates, axis=1), stack(*tanh_cs, axis=0)


# ------------------------------------------------------------------ one step of an LSTM, on a chain or on a tree
def _cell(a: Any, *cells: Any) -> tuple:
    n, size = cells[0].shape
    edge = a.shape[1] - size  # where the sigmoids end
    gates = empty(a.shape, onp.result_type(a, *cells))
    sigmoids, g = gates[:, :edge], gates[:, edge:]
    onp.multiply(a[:, :edge], 0.5, out=sigmoids)  # a sigmoid as a tanh, which has no overflow and a fast kernel
    g[...] = a[:, edge:]
    onp.tanh(gates, out=gates)
    sigmoids += 1
    sigmoids *= 0.5
    i, *forget, o = _blocks(sigmoids, len(cells) + 2)
    c, product = i * g, onp.empty((n, size), gates.dtype)
    for f, cell in zip(forget, cells, strict=True):
        c += onp.multiply(f, cell, out=product)
    tanh_c = onp.tanh(c)
    return o * tanh_c, c, gates, tanh_c


def _cell_back(wanted: Sequence[bool], g: tuple, y: tuple, a: Any, *cells: Any) -> tuple:
    (gh, gc), (_, _, gates, tanh_c) = g, y
    size = tanh_c.shape[1]
    edge = gates.shape[1] - size
    i, *forget, o, cell_gate = _blocks(gates, len(cells) + 3)
    d = empty(gates.shape, gates.dtype)
    _slope_of_sigmoid(gates[:, :edge], d[:, :edge])
    di, *dforget, do, dcell = _blocks(d, len(cells) + 3)
    _slope_of_tanh(cell_gate, dcell)
    dc = onp.zeros_like(tanh_c)
    if gh is None:
        do[...] = 0
    else:
        _slope_of_tanh(tanh_c, dc)
        dc *= o
        dc *= gh
        do *= gh
        do *= tanh_c
    if gc is not None:
        dc += gc
    product = onp.empty_like(dc)
    di *= onp.multiply(dc, cell_gate, out=product)
    dcell *= onp.multiply(dc, i, out=product)
    for df, cell in zip(dforget, cells, strict=True):
        df *= onp.multiply(dc, cell, out=product)
    return d, *(dc * f if w else None for f, w in zip(forget, wanted[1:], strict=True))


def _cell_definition(a: Any, *cells: Any) -> tuple:
    size = cells[0].shape[-1]
    parts = [a[:, k * size : (k + 1) * size] for k in range(len(cells) + 3)]
    i, *forget, o = map(sigmoid, parts[:-1])
    g = tanh(parts[-1])
    c = i * g
    for f, cell in zip(forget, cells, strict=True):
        c = c + f * cell
    tanh_c = tanh(c)
    return o * tanh_c, c, concatenate(i, *forget, o, g, axis=1), tanh_c


def _cell_facts() -> dict:
    def shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, ...]:
        a, c = metas[:2]
        dtype = onp.result_type(*(m.dtype for m in metas))
        return tuple(Meta(s, dtype) for s in (c.shape, c.shape, a.shape, c.shape))

    def samples() -> list:
        shapes = [[(2, 12), (2, 3)], [(3, 10), (3, 2), (3, 2)]]
        return [(tuple(spread(*s, low=-1, high=1, seed=i) for i, s in enumerate(case)), {}) for case in shapes]

    return {"shape": shape, "flops": lambda metas, params, out: 4 * metas[0].size, "samples": samples}


# ------------------------------------------------------------------ GRU
def _gru(x: Any, h0: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any) -> tuple:
    gates = _project(x, w_x, b_x)
    steps, n, hidden = *x.shape[:2], h0.shape[-1]
    hs, inner = (empty((steps, n, hidden), gates.dtype) for _ in range(2))
    recurrent = onp.empty((n, 3 * hidden), gates.dtype)
    two, h = 2 * hidden, h0
    for a, h_next, kept in zip(gates, hs, inner, strict=True):
        onp.matmul(h, w_h.T, out=recurrent)
        recurrent += b_h
        kept[...] = recurrent[:, two:]
        a[:, :two] += recurrent[:, :two]
        _sigmoid(a[:, :two])
        r, z, new = _blocks(a, 3)
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
    dh, product = onp.zeros_like(hs[0]), onp.empty_like(hs[0])
    two = 2 * hs.shape[-1]
    for t in range(len(hs) - 1, -1, -1):
        r, z, new = _blocks(gates[t], 3)
        dr, dz, dnew = _blocks(d[t], 3)
        dh += ghs[t]
        _slope_of_sigmoid(gates[t][:, :two], d[t][:, :two])
        _slope_of_tanh(new, dnew)
        dnew *= dh
        dnew *= onp.subtract(1, z, out=product)
        dr *= dnew
        dr *= inner[t]
        dz *= dh
        dz *= onp.subtract(hs[t - 1] if t else h0, new, out=product)
        e[t][:, :two] = d[t][:, :two]
        onp.multiply(dnew, r, out=e[t][:, two:])
        dh *= z
        dh += onp.matmul(e[t], w_h, out=product)
    gx, gw_x = _input_grads(wanted, d, x, w_x)
    flat = e.reshape(-1, e.shape[-1])
    gw_h = flat.T @ _before(h0, hs).reshape(len(flat), h0.shape[-1])
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
    hs = _project(x, w_x, b)
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
            _slope_of_tanh(hs[t], d[t])
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
def _facts(gates: int, returns: Callable, states: int, biases: int, *cases: dict) -> dict:
    """Shape, cost and samples of a layer with so many gates; `returns` (T, N, H) gives the shapes of all it returns."""

    def shape(metas: Sequence[Meta], params: dict) -> tuple[Meta, ...]:
        (steps, n, _), hidden = metas[0].shape, metas[1].shape[-1]
        dtype = onp.result_type(*(m.dtype for m in metas))
        return tuple(Meta(shape, dtype) for shape in returns(steps, n, hidden))

    def flops(metas: Sequence[Meta], params: dict, out: Meta) -> int:
        (steps, n, inputs), hidden = metas[0].shape, metas[1].shape[-1]
        return 2 * steps * n * gates * hidden * (inputs + hidden)

    def samples() -> list:
        steps, n, inputs, hidden = 3, 2, 4, 3
        shapes = [(steps, n, inputs), *[(n, hidden)] * states, (gates * hidden, inputs), (gates * hidden, hidden)]
        shapes += [(gates * hidden,)] * biases
        return [(tuple(spread(*s, low=-1, high=1, seed=i) for i, s in enumerate(shapes)), case) for case in cases]

    return {"shape": shape, "flops": flops, "samples": samples}


lstm = fused(
    "npx.lstm", _lstm, _lstm_back, _lstm_definition, main=2, **_facts(4, lambda *s: (s, s, (4, *s), s), 2, 1, {})
)
lstm_cell = fused("npx.lstm_cell", _cell, _cell_back, _cell_definition, main=2, **_cell_facts())
gru = fused(
    "npx.gru",
    _gru,
    _gru_back,
    _gru_definition,
    main=1,
    **_facts(3, lambda t, n, h: ((t, n, h), (t, n, 3 * h), (t, n, h)), 1, 2, {}),
)
simple_rnn = fused(
    "npx.simple_rnn",
    _simple,
    _simple_back,
    _simple_definition,
    main=1,
    **_facts(1, lambda *s: (s,), 1, 1, {"activation": "tanh"}, {"activation": "relu"}),
)
