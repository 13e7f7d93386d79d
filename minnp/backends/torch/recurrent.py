"""Kernels of the recurrent rows over whole sequences: what minnp.npx.recurrent does with NumPy, on tensors.

x is [T, N, I], states [N, H]. The products with x and all weight gradients are one matrix product for all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...npx.steps import check
from .neural import common, together
from .registry import kernel

Tensor = torch.Tensor


def _project(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x W^T + b for all steps at once."""
    return torch.addmm(b, x.reshape(-1, x.shape[-1]), w.mT).reshape(*x.shape[:-1], -1)


def _before(h0: Tensor, hs: Tensor) -> Tensor:
    """The state each step started from."""
    return torch.cat([h0.unsqueeze(0), hs[:-1]])


def _weight_grads(wanted: Sequence[bool], d: Tensor, e: Tensor, x: Tensor, w_x: Tensor, before: Tensor) -> tuple:
    """Cotangents of x, w_x and w_h from those of x W_x^T (d) and of h W_h^T (e) at every step."""
    d, e = d.reshape(-1, d.shape[-1]), e.reshape(-1, e.shape[-1])
    gx = (d @ w_x).reshape(x.shape) if wanted[0] else None
    return gx, d.mT @ x.reshape(len(d), -1), e.mT @ before.reshape(len(e), -1)


def _split(values: Sequence[Any], layout: tuple) -> tuple[list, Sequence, Sequence]:
    """(cotangents of the main results or None, results, arrays) among the arguments of a backward kernel."""
    flows, results, _ = layout
    values, start = together(*values), sum(flows)
    given = iter(values[:start])
    return [next(given) if f else None for f in flows], values[start : start + results], values[start + results :]


# ------------------------------------------------------------------ LSTM
@kernel("npx.lstm", dtypes_of=common)
def lstm(*arrays: Any) -> tuple:
    x, h, c, w_x, w_h, b = together(*arrays)
    check("lstm", 4, x, (h, c), w_x, w_h, b)
    n, hidden = h.shape
    # gates inside the kernels: input, forget, output, cell, so that the three sigmoids are one block
    w_x, w_h, b = (torch.cat([v[: 2 * hidden], v[3 * hidden :], v[2 * hidden : 3 * hidden]]) for v in (w_x, w_h, b))
    weight, steps = w_h.mT, []
    for a in _project(x, w_x, b).unbind(0):
        z = torch.addmm(a, h, weight)
        i_f_o, g = torch.sigmoid(z[:, : 3 * hidden]), torch.tanh(z[:, 3 * hidden :])
        i, f, o = i_f_o.chunk(3, 1)
        c = torch.addcmul(f * c, i, g)
        tanh_c = torch.tanh(c)
        h = o * tanh_c
        steps.append((h, c, torch.cat([i_f_o, g], 1), tanh_c))
    hs, cs, gates, tanh_cs = (torch.stack(parts) for parts in zip(*steps, strict=True))
    return hs, cs, gates.reshape(-1, n, 4, hidden).permute(2, 0, 1, 3), tanh_cs


@kernel("npx.lstm_back", dtypes_of=common)
def lstm_back(*values: Any, layout: tuple) -> tuple:
    (ghs, gcs), (hs, cs, gates, tanh_cs), (x, h0, c0, w_x, w_h, _) = _split(values, layout)
    steps, ds = hs.shape[0], []
    dh, dc = torch.zeros_like(h0), torch.zeros_like(c0)
    for t in range(steps - 1, -1, -1):
        i, f, o, g = gates[:, t].unbind(0)
        tanh_c = tanh_cs[t]
        dh = dh if ghs is None else dh + ghs[t]
        dc = dc if gcs is None else dc + gcs[t]
        dc = torch.addcmul(dc, dh * o, 1 - tanh_c * tanh_c)
        before = cs[t - 1] if t else c0
        slopes = (
            dc * g * (i * (1 - i)),
            dc * before * (f * (1 - f)),
            dc * i * (1 - g * g),
            dh * tanh_c * (o * (1 - o)),
        )
        d = torch.cat(slopes, 1)
        ds.append(d)
        dc = dc * f
        dh = d @ w_h
    d = torch.stack(ds[::-1])
    gx, gw_x, gw_h = _weight_grads(layout[2], d, d, x, w_x, _before(h0, hs))
    return gx, dh, dc, gw_x, gw_h, d.sum((0, 1))


@kernel("npx.lstm_cell", dtypes_of=common)
def lstm_cell(*arrays: Any) -> tuple:
    a, *cells = together(*arrays)
    size = cells[0].shape[1]
    edge = a.shape[1] - size  # where the sigmoids end
    gates = torch.cat([torch.sigmoid(a[:, :edge]), torch.tanh(a[:, edge:])], 1)
    i, *forget, o, g = gates.split(size, 1)
    c = i * g
    for f, cell in zip(forget, cells, strict=True):
        c = torch.addcmul(c, f, cell)
    tanh_c = torch.tanh(c)
    return o * tanh_c, c, gates, tanh_c


@kernel("npx.lstm_cell_back", dtypes_of=common)
def lstm_cell_back(*values: Any, layout: tuple) -> tuple:
    (gh, gc), (_, _, gates, tanh_c), (_, *cells) = _split(values, layout)
    i, *forget, o, g = gates.split(tanh_c.shape[1], 1)
    do = dc = torch.zeros_like(tanh_c)
    if gh is not None:
        do, dc = gh * tanh_c * (o * (1 - o)), gh * o * (1 - tanh_c * tanh_c)
    if gc is not None:
        dc = dc + gc
    df = [dc * cell * (f * (1 - f)) for f, cell in zip(forget, cells, strict=True)]
    d = torch.cat([dc * g * (i * (1 - i)), *df, do, dc * i * (1 - g * g)], 1)
    return d, *[dc * f for f in forget]


# ------------------------------------------------------------------ GRU
@kernel("npx.gru", dtypes_of=common)
def gru(*arrays: Any) -> tuple:
    x, h, w_x, w_h, b_x, b_h = together(*arrays)
    check("gru", 3, x, (h,), w_x, w_h, b_x, b_h)
    two = 2 * h.shape[-1]
    weight, steps = w_h.mT, []
    for a in _project(x, w_x, b_x).unbind(0):
        e = torch.addmm(b_h, h, weight)
        r_z, inner = torch.sigmoid(a[:, :two] + e[:, :two]), e[:, two:]
        r, z = r_z.chunk(2, 1)
        new = torch.tanh(torch.addcmul(a[:, two:], r, inner))
        h = torch.addcmul(new, z, h - new)
        steps.append((h, torch.cat([r_z, new], 1), inner))
    return tuple(torch.stack(parts) for parts in zip(*steps, strict=True))


@kernel("npx.gru_back", dtypes_of=common)
def gru_back(*values: Any, layout: tuple) -> tuple:
    (ghs,), (hs, gates, inner), (x, h0, w_x, w_h, _, _) = _split(values, layout)
    ds, es, dh = [], [], torch.zeros_like(h0)
    for t in range(hs.shape[0] - 1, -1, -1):
        r, z, new = gates[t].chunk(3, 1)
        dh = dh + ghs[t]
        dnew = dh * (1 - z) * (1 - new * new)
        dr = dnew * inner[t] * (r * (1 - r))
        dz = dh * ((hs[t - 1] if t else h0) - new) * (z * (1 - z))
        ds.append(torch.cat([dr, dz, dnew], 1))
        e = torch.cat([dr, dz, dnew * r], 1)
        es.append(e)
        dh = torch.addmm(dh * z, e, w_h)
    d, e = torch.stack(ds[::-1]), torch.stack(es[::-1])
    gx, gw_x, gw_h = _weight_grads(layout[2], d, e, x, w_x, _before(h0, hs))
    return gx, dh, gw_x, gw_h, d.sum((0, 1)), e.sum((0, 1))


# ------------------------------------------------------------------ the plain recurrence
@kernel("npx.simple_rnn", dtypes_of=common)
def simple_rnn(*arrays: Any, activation: str = "tanh") -> tuple:
    x, h, w_x, w_h, b = together(*arrays)
    check("simple_rnn", 1, x, (h,), w_x, w_h, b)
    act = torch.tanh if activation == "tanh" else torch.relu
    weight, hs = w_h.mT, []
    for a in _project(x, w_x, b).unbind(0):
        h = act(torch.addmm(a, h, weight))
        hs.append(h)
    return (torch.stack(hs),)


@kernel("npx.simple_rnn_back", dtypes_of=common)
def simple_rnn_back(*values: Any, layout: tuple, activation: str = "tanh") -> tuple:
    (ghs,), (hs,), (x, h0, w_x, w_h, _) = _split(values, layout)
    ds, dh = [], torch.zeros_like(h0)
    for t in range(hs.shape[0] - 1, -1, -1):
        h, dh = hs[t], dh + ghs[t]
        d = dh * (1 - h * h) if activation == "tanh" else torch.where(h > 0, dh, 0)
        ds.append(d)
        dh = d @ w_h
    d = torch.stack(ds[::-1])
    gx, gw_x, gw_h = _weight_grads(layout[2], d, d, x, w_x, _before(h0, hs))
    return gx, dh, gw_x, gw_h, d.sum((0, 1))
