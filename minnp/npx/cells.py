"""The LSTM: a row for a whole sequence, one kernel each way through time; and lstm_cell, one step of a chain or a tree.

x is [T, N, I], states [N, H], weights [4 H, I] and [4 H, H]. Gates are in MXNet's order (and cuDNN's, and torch's):
input, forget, cell, output. Every step works in place on its slices of a few large buffers, and the gradients of all
weights are one matrix product for all steps. Of floats the C part runs all steps, without the interpreter between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.compiled import team
from ..core.cpu import kernels
from ..core.cpu.memory import empty
from ..core.cpu.products import update
from ..core.rows.primitive import Meta
from ..numpy.facts import spread
from ..numpy.shaping import concatenate, stack, swapaxes
from ..numpy.ufuncs import tanh
from .activations import sigmoid
from .fused import fused
from .steps import (
    Repeated,
    Summed,
    beside,
    call,
    check,
    compiled,
    dense,
    kept,
    layer_facts,
    over_batch,
    product,
    slope_of_sigmoid,
    slope_of_tanh,
    split,
)

INNER = [0, 1, 3, 2]  # gates inside the kernels: input, forget, output, cell, so that the three sigmoids are one block
BLOCK = 1 << 15  # elements of a state over the steps that are prepared together: they stay in the cache


def _inner(w: Any, dtype: Any) -> onp.ndarray:
    """The weights [4 H, ...] in the order of the kernels, or from it: the order is its own inverse."""
    return w.reshape(4, len(w) // 4, *w.shape[1:])[INNER].reshape(w.shape).astype(dtype, copy=False)


def _lstm(x: Any, h0: Any, c0: Any, w_x: Any, w_h: Any, b: Any) -> tuple:
    check("lstm", 4, x, (h0, c0), w_x, w_h, b)
    (steps, n, inputs), hidden = x.shape, h0.shape[-1]
    dtype = onp.result_type(x, h0, w_x)
    gates = kept((steps, 4, n, hidden), dtype)  # each in one piece, or NumPy loops over rows
    hs, cs, tanh_cs = (kept((steps, n, hidden), dtype) for _ in range(3))
    if compiled(x, h0, c0, w_x, w_h, b):
        given = (*map(dense, (x, h0, c0, b)), onp.empty((n, 4 * hidden), dtype))
        if not team.lstm(call(x, hs), dense(w_h).T, dense(w_x).T, *given, hs, cs, gates, tanh_cs):
            return hs, cs, gates.swapaxes(0, 1), tanh_cs
    # [4 H, I + H + 1]: x, h and a one, in one product
    weights = _inner(onp.concatenate([w_x, w_h, b[:, None]], axis=1), dtype)
    weights[: 3 * hidden] *= 0.5  # sigmoid(a) = (1 + tanh(a/2)) / 2: so all four gates are one tanh
    weight = Repeated(weights.T, n, 4)

    def work(part: slice) -> None:
        h, c = h0[part], c0[part]
        given, term = onp.ones((len(h), inputs + hidden + 1), dtype), onp.empty(h.shape, dtype)
        a = onp.empty((4, *h.shape), dtype)
        given_x, given_h = given[:, :inputs], given[:, inputs:-1]
        given_h[...] = h
        for t in range(steps):
            z, c_next, tanh_c, h = gates[t, :, part], cs[t, part], tanh_cs[t, part], hs[t, part]
            given_x[...] = x[t, part]
            weight.into(a, given)
            onp.tanh(a, out=z)
            sigmoids = z[:3]
            sigmoids *= 0.5
            sigmoids += 0.5
            i, f, o, g = z
            onp.multiply(f, c, out=c_next)
            c_next += onp.multiply(i, g, out=term)
            onp.tanh(c_next, out=tanh_c)
            given_h[...] = onp.multiply(o, tanh_c, out=h)
            c = c_next

    over_batch(work, h0.shape, weight, "npx.lstm")
    return hs, cs, gates.swapaxes(0, 1), tanh_cs


def _slopes(d: Any, turn: Any, gates: Any, hs: Any, tanh_cs: Any, before: Any, p: Any) -> None:
    """d [4, T, N, H]: what c's cotangent (for the output gate h's) is multiplied with to be that of the gates' sums.

    turn: what h's is multiplied with to be c's. Neither depends on a later step."""
    i, f, o, cell = gates
    di, df, do, dcell = d
    p = p[: len(di)]
    # s (1 - s) u as s u - s (s u), 1 - t^2 likewise: what is multiplied is at hand already
    onp.multiply(i, cell, out=p)
    onp.subtract(p, onp.multiply(p, i, out=di), out=di)
    onp.subtract(i, onp.multiply(p, cell, out=dcell), out=dcell)
    onp.multiply(before, f, out=p)
    onp.subtract(p, onp.multiply(p, f, out=df), out=df)
    onp.subtract(hs, onp.multiply(hs, o, out=do), out=do)
    onp.subtract(o, onp.multiply(hs, tanh_cs, out=turn), out=turn)


def _compiled_back(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, h0: Any, c0: Any, w_x: Any, w_h: Any
) -> tuple | None:
    """The way back in C; None if there were floating point errors, which NumPy then meets and reports."""
    hs, cs, gates, tanh_cs = y
    steps, n, hidden = hs.shape
    _, pieces, *_, lead = sizes = call(x, hs)
    d = kept((steps * n, lead), hs.dtype)  # of the gates' sums
    shapes = (n, hidden), (n, hidden), (pieces, 4 * hidden)
    dh, dc, gb = (onp.zeros(shape, hs.dtype) for shape in shapes)
    given = [None if a is None else dense(a) for a in (*g, c0, cs, gates.swapaxes(0, 1), tanh_cs)]
    gx = kept(x.shape, hs.dtype) if wanted[0] else None
    if team.lstm_back(sizes, dense(w_h), dense(w_x), *given, d, dh, dc, gb, gx):
        return None
    d, gw_h = d[:, : 4 * hidden], None
    gw_x = product(d.T, x.reshape(steps * n, -1)) if wanted[3] else None
    if wanted[4]:
        gw_h = product(d[n:].T, hs[:-1].reshape(-1, hidden))
        gw_h = update(gw_h, d[:n].T, h0, out=gw_h)
    return gx, dh, dc, gw_x, gw_h, gb.sum(axis=0)


def _lstm_back(
    wanted: Sequence[bool], g: tuple, y: tuple, x: Any, h0: Any, c0: Any, w_x: Any, w_h: Any, b: Any
) -> tuple:
    if compiled(*y, *(a for a in g if a is not None), x, h0, c0, w_x, w_h):
        grads = _compiled_back(wanted, g, y, x, h0, c0, w_x, w_h)
        if grads is not None:
            return grads
    ghs, gcs = g
    hs, cs, gates, tanh_cs = y
    (steps, n, hidden), inputs, dtype = hs.shape, x.shape[-1], hs.dtype
    weight = Summed(_inner(w_h, dtype).reshape(4, hidden, hidden), n)
    d = kept((4, steps, n, hidden), dtype)  # of the gates' sums
    dh0, dc0 = (onp.zeros((n, hidden), dtype) for _ in range(2))

    def work(part: slice) -> None:
        dh, dc = dh0[part], dc0[part]
        count = max(1, BLOCK // dh.size) if dh.size else 1
        p, turn = (onp.empty((count, *dh.shape), dtype) for _ in range(2))
        for end in range(steps, 0, -count):
            start = max(end - count, 0)
            at = slice(start, end), part
            before = cs[start - 1 : end - 1, part] if start else [c0[part], *cs[: end - 1, part]]
            _slopes(d[:, *at], turn[: end - start], gates[:, *at], hs[at], tanh_cs[at], before, p)
            for t in range(end - 1, start - 1, -1):
                if ghs is not None:
                    dh += ghs[t, part]
                if gcs is not None:
                    dc += gcs[t, part]
                dc += onp.multiply(dh, turn[t - start], out=p[0])
                given = d[:, t, part]
                given[:2] *= dc
                given[2] *= dh
                given[3] *= dc
                dc *= gates[1, t, part]
                weight.into(dh, given)

    over_batch(work, dh0.shape, weight, "npx.lstm_back")
    flat = d.reshape(4, steps * n, hidden)
    gx, given = None, beside(x, h0, hs).reshape(steps * n, inputs + hidden + 1)
    if wanted[0]:
        parts = _inner(w_x, dtype).reshape(4, hidden, inputs)
        gx = sum(map(product, flat[1:], parts[1:]), product(flat[0], parts[0])).reshape(x.shape)
    gw = onp.concatenate([product(flat[k].T, given) for k in INNER])
    return gx, dh0, dc0, gw[:, :inputs], gw[:, inputs:-1], gw[:, -1]


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
COMPILED = {1: ("cell", "cell_back"), 2: ("tree", "tree_back")}  # kernels in C, by how many cells there are


def _cell(a: Any, *cells: Any) -> tuple:
    n, size = cells[0].shape
    edge = a.shape[1] - size  # where the sigmoids end
    gates = empty(a.shape, onp.result_type(a, *cells))
    if len(cells) in COMPILED and kernels.takes(a, *cells):
        h, c, tanh_c = (onp.empty((n, size), gates.dtype) for _ in range(3))
        if not kernels.call(COMPILED[len(cells)][0], n, size, (a, *cells, h, c, gates, tanh_c), (a.shape[1],)):
            return h, c, gates, tanh_c
    sigmoids, g = gates[:, :edge], gates[:, edge:]
    onp.multiply(a[:, :edge], 0.5, out=sigmoids)  # a sigmoid as a tanh, which has no overflow and a fast kernel
    g[...] = a[:, edge:]
    onp.tanh(gates, out=gates)
    sigmoids += 1
    sigmoids *= 0.5
    i, *forget, o = split(sigmoids, len(cells) + 2)
    c, product = i * g, onp.empty((n, size), gates.dtype)
    for f, cell in zip(forget, cells, strict=True):
        c += onp.multiply(f, cell, out=product)
    tanh_c = onp.tanh(c)
    return o * tanh_c, c, gates, tanh_c


def _cell_back(wanted: Sequence[bool], g: tuple, y: tuple, a: Any, *cells: Any) -> tuple:
    (gh, gc), (_, _, gates, tanh_c) = g, y
    size = tanh_c.shape[1]
    edge = gates.shape[1] - size
    i, *forget, o, cell_gate = split(gates, len(cells) + 3)
    d = empty(gates.shape, gates.dtype)
    if len(cells) in COMPILED and kernels.takes(gates, tanh_c, *cells):
        given = [onp.zeros_like(tanh_c) if x is None else dense(x) for x in (gh, gc)]
        dcells = [onp.empty_like(cell) for cell in cells]
        name, sizes = COMPILED[len(cells)][1], (*tanh_c.shape, (*given, gates, tanh_c, *cells, d, *dcells))
        if kernels.takes(*given) and not kernels.call(name, *sizes, (gates.shape[1],)):
            return d, *(dcell if w else None for dcell, w in zip(dcells, wanted[1:], strict=True))
    slope_of_sigmoid(gates[:, :edge], d[:, :edge])
    di, *dforget, do, dcell = split(d, len(cells) + 3)
    slope_of_tanh(cell_gate, dcell)
    dc = onp.zeros_like(tanh_c)
    if gh is None:
        do[...] = 0
    else:
        slope_of_tanh(tanh_c, dc)
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


# ------------------------------------------------------------------ rows
lstm = fused(
    "npx.lstm", _lstm, _lstm_back, _lstm_definition, main=2, **layer_facts(4, lambda *s: (s, s, (4, *s), s), 2, 1, {})
)
lstm_cell = fused("npx.lstm_cell", _cell, _cell_back, _cell_definition, main=2, **_cell_facts())
