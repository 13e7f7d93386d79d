"""What our layer adds to a small torch call: the same call on a device's arrays and on torch tensors, alternating.

    python benchmarks/torch_overhead.py [--device cpu] [--repeat 15] [--large] [--threads 1]

Printed are the medians in microseconds of processor time, their difference, and the quartiles of the difference over
the paired runs. torch's call does what NumPy's says: inv's result is in C order, a comparison of whole arrays is an
array on the device that nothing waits for, NumPy 1 transforms in double precision, and rows and parts are views, one
call each; what torch has no call for is the program that one would write of several. With --large the arguments are
large (convolution, batch norm, products), and printed are the least milliseconds of each and their ratio: processor
time with one thread on the CPU, else wall time.
"""

from __future__ import annotations

import argparse
import contextlib
import operator
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

import minnp
import minnp.numpy as np
from minnp import npx

TWO = slice(1, 3)
SINGLE = int(numpy.__version__.split(".")[0]) >= 2
F = torch.nn.functional
CASES: dict[str, tuple[Callable, Callable]] = {
    "x + y": (lambda d: d.x + d.y, lambda t: t.x + t.y),
    "x * 0.5": (lambda d: d.x * 0.5, lambda t: t.x * 0.5),
    "x / y": (lambda d: d.x / d.y, lambda t: t.x / t.y),
    "-x": (lambda d: -d.x, lambda t: -t.x),
    "exp(x)": (lambda d: np.exp(d.x), lambda t: torch.exp(t.x)),
    "maximum(x, y)": (lambda d: np.maximum(d.x, d.y), lambda t: torch.maximum(t.x, t.y)),
    "m @ m": (lambda d: d.m @ d.m, lambda t: t.m @ t.m),
    "x > y": (lambda d: d.x > d.y, lambda t: t.x > t.y),
    "sum(x)": (lambda d: np.sum(d.x), lambda t: torch.sum(t.x)),
    "m.sum(0)": (lambda d: d.m.sum(0), lambda t: t.m.sum(0)),
    "x[0]": (lambda d: d.x[0], lambda t: t.x[0]),
    "m[1:, 0]": (lambda d: d.m[1:, 0], lambda t: t.m[1:, 0]),
    "m.T": (lambda d: d.m.T, lambda t: t.m.T),
    "m.reshape(8, 2)": (lambda d: d.m.reshape(8, 2), lambda t: t.m.reshape(8, 2)),
    "where(k, x, y)": (lambda d: np.where(d.k, d.x, d.y), lambda t: torch.where(t.k, t.x, t.y)),
    "stack([x, y])": (lambda d: np.stack([d.x, d.y]), lambda t: torch.stack([t.x, t.y])),
    "mean(x)": (lambda d: np.mean(d.x), lambda t: torch.mean(t.x)),
    "m.std(0)": (lambda d: d.m.std(0), lambda t: torch.std(t.m, 0, correction=0)),
    "max(x)": (lambda d: np.max(d.x), lambda t: torch.amax(t.x)),
    "argmax(x)": (lambda d: np.argmax(d.x), lambda t: torch.argmax(t.x)),
    "expand_dims(x, 0)": (lambda d: np.expand_dims(d.x, 0), lambda t: torch.unsqueeze(t.x, 0)),
    "m.transpose(1, 0)": (lambda d: d.m.transpose(1, 0), lambda t: t.m.permute(1, 0)),
    "x += y": (lambda d: operator.iadd(d.x, d.y), lambda t: operator.iadd(t.x, t.y)),
    "concatenate([x, y])": (lambda d: np.concatenate([d.x, d.y]), lambda t: torch.cat([t.x, t.y])),
    "clip(x, -1, 1)": (lambda d: np.clip(d.x, -1.0, 1.0), lambda t: torch.clip(t.x, -1.0, 1.0)),
    "x[k]": (lambda d: d.x[d.k], lambda t: t.x[t.k]),
    "x[i]": (lambda d: d.x[d.i], lambda t: t.x[t.i]),
    "x[0] = 2.5": (lambda d: operator.setitem(d.w, 0, 2.5), lambda t: operator.setitem(t.w, 0, 2.5)),
    "x[1:3] = 2.5": (lambda d: operator.setitem(d.w, TWO, 2.5), lambda t: operator.setitem(t.w, TWO, 2.5)),
    "x[k] = 0.0": (lambda d: operator.setitem(d.w, d.k, 0.0), lambda t: operator.setitem(t.w, t.k, 0.0)),
    "x[i] = 0.0": (lambda d: operator.setitem(d.w, d.i, 0.0), lambda t: operator.setitem(t.w, t.i, 0.0)),
    "float(x[0])": (lambda d: float(d.x[0]), lambda t: float(t.x[0])),
    "exp(x, out=w)": (lambda d: np.exp(d.x, out=d.w), lambda t: torch.exp(t.x, out=t.w)),
    "take(x, i)": (lambda d: np.take(d.x, d.i), lambda t: torch.take(t.x, t.i)),
    "x.ravel()": (lambda d: d.m.ravel(), lambda t: t.m.ravel()),
    "cumsum(m, 1)": (lambda d: np.cumsum(d.m, 1), lambda t: torch.cumsum(t.m, 1)),
    "dot(x, y)": (lambda d: np.dot(d.x, d.y), lambda t: torch.dot(t.x, t.y)),
    "x.copy()": (lambda d: d.x.copy(), lambda t: t.x.clone()),
    "zeros_like(x)": (lambda d: np.zeros_like(d.x), lambda t: torch.zeros_like(t.x)),
    "x.astype(f8)": (lambda d: d.x.astype(np.float64), lambda t: t.x.to(torch.float64)),
    "outer(x, y)": (lambda d: np.outer(d.x, d.y), lambda t: torch.outer(t.x, t.y)),
    "sort(x)": (lambda d: np.sort(d.x), lambda t: torch.sort(t.x)[0]),
    "x - y": (lambda d: d.x - d.y, lambda t: t.x - t.y),
    "x @ y": (lambda d: d.x @ d.y, lambda t: t.x @ t.y),
    "1 - x": (lambda d: 1 - d.x, lambda t: 1 - t.x),
    "x ** 2": (lambda d: d.x**2, lambda t: t.x**2),
    "abs(x)": (lambda d: abs(d.x), lambda t: abs(t.x)),
    "x == y": (lambda d: d.x == d.y, lambda t: t.x == t.y),
    "~k": (lambda d: ~d.k, lambda t: ~t.k),
    "k & k": (lambda d: d.k & d.k, lambda t: t.k & t.k),
    "x *= 1.0": (lambda d: operator.imul(d.x, 1.0), lambda t: operator.imul(t.x, 1.0)),
    "x -= y": (lambda d: operator.isub(d.x, d.y), lambda t: operator.isub(t.x, t.y)),
    "tanh(x)": (lambda d: np.tanh(d.x), lambda t: torch.tanh(t.x)),
    "log(y, out=w)": (lambda d: np.log(d.p, out=d.w), lambda t: torch.log(t.p, out=t.w)),
    "sqrt(y, out=w)": (lambda d: np.sqrt(d.p, d.w), lambda t: torch.sqrt(t.p, out=t.w)),
    "add(x, y, out=w)": (lambda d: np.add(d.x, d.y, out=d.w), lambda t: torch.add(t.x, t.y, out=t.w)),
    "minimum(x, 0)": (lambda d: np.minimum(d.x, 0.0), lambda t: torch.clamp(t.x, max=0.0)),
    "isnan(x)": (lambda d: np.isnan(d.x), lambda t: torch.isnan(t.x)),
    "sum(m, axis=0)": (lambda d: np.sum(d.m, axis=0), lambda t: torch.sum(t.m, dim=0)),
    "m.sum(1, keepdims)": (
        lambda d: d.m.sum(axis=1, keepdims=True),
        lambda t: t.m.sum(dim=1, keepdim=True),
    ),
    "m.mean(axis=0)": (lambda d: d.m.mean(axis=0), lambda t: t.m.mean(dim=0)),
    "x.mean()": (lambda d: d.x.mean(), lambda t: t.x.mean()),
    "m.max(axis=1)": (lambda d: d.m.max(axis=1), lambda t: t.m.amax(dim=1)),
    "m.argmax(axis=1)": (lambda d: d.m.argmax(axis=1), lambda t: t.m.argmax(dim=1)),
    "k.any()": (lambda d: d.k.any(), lambda t: t.k.any()),
    "all(k)": (lambda d: np.all(d.k), lambda t: torch.all(t.k)),
    "argsort(x)": (lambda d: np.argsort(d.x), lambda t: torch.argsort(t.x, stable=True)),
    "norm(x)": (lambda d: np.linalg.norm(d.x), lambda t: torch.linalg.norm(t.x)),
    "x[-1]": (lambda d: d.x[-1], lambda t: t.x[-1]),
    "x[1:3]": (lambda d: d.x[1:3], lambda t: t.x[1:3]),
    "m[0]": (lambda d: d.m[0], lambda t: t.m[0]),
    "m[:, None]": (lambda d: d.m[:, None], lambda t: t.m[:, None]),
    "m[i, j]": (lambda d: d.m[d.r, d.r], lambda t: t.m[t.r, t.r]),
    "m[0] = y": (lambda d: operator.setitem(d.n, 0, d.v), lambda t: operator.setitem(t.n, 0, t.v)),
    "x[1:3] += 1": (lambda d: add_to(d.w), lambda t: add_to(t.w)),
    "x.shape": (lambda d: d.x.shape, lambda t: t.x.shape),
    "x.dtype": (lambda d: d.x.dtype, lambda t: t.x.dtype),
    "len(x)": (lambda d: len(d.x), lambda t: len(t.x)),
    "for row in m": (lambda d: list(d.m), lambda t: [t.m[0], t.m[1], t.m[2], t.m[3]]),
    "x.item()": (lambda d: d.s.item(), lambda t: t.s.item()),
    "float(sum(x))": (lambda d: float(d.s), lambda t: float(t.s)),
    "bool(k.any())": (lambda d: bool(d.a), lambda t: bool(t.a)),
    "zeros(10)": (lambda d: np.zeros(10, "f4"), lambda t: torch.zeros(10, dtype=torch.float32)),
    "ones((4, 4))": (lambda d: np.ones((4, 4)), lambda t: torch.ones((4, 4), dtype=torch.float64)),
    "empty(10)": (lambda d: np.empty(10), lambda t: torch.empty(10, dtype=torch.float64)),
    "full(10, 2.5)": (lambda d: np.full(10, 2.5), lambda t: torch.full((10,), 2.5, dtype=torch.float64)),
    "arange(10)": (lambda d: np.arange(10), lambda t: torch.arange(10)),
    "eye(4)": (lambda d: np.eye(4), lambda t: torch.eye(4, dtype=torch.float64)),
    "ones_like(x)": (lambda d: np.ones_like(d.x), lambda t: torch.ones_like(t.x)),
    "array([1.0, 2.0])": (lambda d: np.array([1.0, 2.0]), lambda t: torch.tensor([1.0, 2.0], dtype=torch.float64)),
    "squeeze(m)": (lambda d: np.squeeze(d.m), lambda t: torch.squeeze(t.m)),
    "m.flatten()": (lambda d: d.m.flatten(), lambda t: t.m.flatten().clone()),
    "broadcast_to(x, ...)": (
        lambda d: np.broadcast_to(d.x, (3, 10)),
        lambda t: torch.broadcast_to(t.x, (3, 10)),
    ),
    "repeat(x, 2)": (lambda d: np.repeat(d.x, 2), lambda t: torch.repeat_interleave(t.x, 2)),
    "tile(x, 2)": (lambda d: np.tile(d.x, 2), lambda t: torch.tile(t.x, (2,))),
    "roll(x, 1)": (lambda d: np.roll(d.x, 1), lambda t: torch.roll(t.x, 1)),
    "flip(x)": (lambda d: np.flip(d.x), lambda t: torch.flip(t.x, (0,))),
    "vstack([x, y])": (lambda d: np.vstack([d.x, d.y]), lambda t: torch.vstack([t.x, t.y])),
    "hstack([x, y])": (lambda d: np.hstack([d.x, d.y]), lambda t: torch.hstack([t.x, t.y])),
    "split(x, 2)": (lambda d: np.split(d.x, 2), lambda t: [t.x[0:5], t.x[5:10]]),
    "einsum(ij,jk)": (lambda d: np.einsum("ij,jk->ik", d.m, d.m), lambda t: torch.einsum("ij,jk->ik", t.m, t.m)),
    "tensordot(m, m, 1)": (lambda d: np.tensordot(d.m, d.m, 1), lambda t: torch.tensordot(t.m, t.m, 1)),
    "triu(m)": (lambda d: np.triu(d.m), lambda t: torch.triu(t.m)),
    "diag(x)": (lambda d: np.diag(d.x), lambda t: torch.diag(t.x)),
    "solve(m, v)": (lambda d: np.linalg.solve(d.m, d.v), lambda t: torch.linalg.solve(t.m, t.v)),
    "inv(m)": (lambda d: np.linalg.inv(d.m), lambda t: torch.linalg.inv(t.m).contiguous()),
    "fft(x)": (lambda d: np.fft.fft(d.x), lambda t: torch.fft.fft(t.x if SINGLE else t.x.double())),
    "round(x)": (lambda d: np.round(d.x), lambda t: torch.round(t.x)),
    "x.clip(0, 1)": (lambda d: d.x.clip(0.0, 1.0), lambda t: t.x.clip(0.0, 1.0)),
    "allclose(x, y)": (lambda d: np.allclose(d.x, d.y), lambda t: torch.isclose(t.x, t.y).all()),
    "array_equal(x, x)": (lambda d: np.array_equal(d.x, d.y), lambda t: (t.x == t.y).all()),
    "diff(x)": (lambda d: np.diff(d.x), lambda t: torch.diff(t.x)),
    "square(x)": (lambda d: np.square(d.x), lambda t: torch.square(t.x)),
    "nonzero(k)": (lambda d: np.nonzero(d.k), lambda t: torch.nonzero(t.k, as_tuple=True)),
    "relu(x)": (lambda d: npx.relu(d.x), lambda t: torch.relu(t.x)),
    "softmax(m)": (lambda d: npx.softmax(d.m), lambda t: torch.softmax(t.m, -1)),
    "sigmoid(x)": (lambda d: npx.sigmoid(d.x), lambda t: torch.sigmoid(t.x)),
    "x[::-1]": (lambda d: d.x[::-1], lambda t: t.x.flip(0)),
    "x[[1, 3]]": (lambda d: d.x[[1, 3]], lambda t: t.x[[1, 3]]),
    "m[:, [0, 2]]": (lambda d: d.m[:, [0, 2]], lambda t: t.m[:, [0, 2]]),
    "power(x, 2)": (lambda d: np.power(d.x, 2), lambda t: torch.pow(t.x, 2)),
    "c ** 3": (lambda d: d.c**3, lambda t: (t.c * (t.c * t.c)).masked_fill_(t.c == 0, 0)),
    "x % 2": (lambda d: d.x % 2, lambda t: torch.remainder(t.x, 2).abs_()),
    "x // 2": (lambda d: d.x // 2, lambda t: torch.floor_divide(t.x, 2)),
    "divmod(x, 2)": (
        lambda d: np.divmod(d.x, 2),
        lambda t: (torch.floor_divide(t.x, 2), torch.remainder(t.x, 2).abs_()),
    ),
    "roll(m, 1, axis=0)": (lambda d: np.roll(d.m, 1, axis=0), lambda t: torch.roll(t.m, 1, 0)),
    "diff(m, axis=0)": (lambda d: np.diff(d.m, axis=0), lambda t: torch.diff(t.m, dim=0)),
    "repeat(m, 2, axis=0)": (lambda d: np.repeat(d.m, 2, axis=0), lambda t: torch.repeat_interleave(t.m, 2, 0)),
    "trace(m)": (lambda d: np.trace(d.m), lambda t: torch.trace(t.m)),
    "append(x, y)": (lambda d: np.append(d.x, d.y), lambda t: torch.cat([t.x, t.y])),
    "column_stack([x, y])": (lambda d: np.column_stack([d.x, d.y]), lambda t: torch.stack([t.x, t.y], 1)),
    "average(x)": (lambda d: np.average(d.x), lambda t: torch.mean(t.x)),
    "count_nonzero(k)": (lambda d: np.count_nonzero(d.k), lambda t: torch.count_nonzero(t.k)),
    "unique(i)": (lambda d: np.unique(d.i), lambda t: torch.unique(t.i)),
    "bincount(i)": (lambda d: np.bincount(d.i), lambda t: torch.bincount(t.i)),
    "full_like(i, 2)": (lambda d: np.full_like(d.i, 2), lambda t: torch.full_like(t.i, 2)),
    "pad(x, 1)": (lambda d: np.pad(d.x, 1), lambda t: F.pad(t.x, (1, 1))),
    "pad(x, 1, edge)": (
        lambda d: np.pad(d.x, 1, mode="edge"),
        lambda t: torch.cat([t.x[:1], t.x, t.x[-1:]]),
    ),
    "pad(m, ((1, 2), ...))": (lambda d: np.pad(d.m, ((1, 2), (0, 3))), lambda t: F.pad(t.m, (0, 3, 1, 2))),
    "pad(i, 1)": (lambda d: np.pad(d.i, 1), lambda t: F.pad(t.i, (1, 1))),
    "pad(x, 2, wrap)": (
        lambda d: np.pad(d.x, 2, mode="wrap"),
        lambda t: torch.cat([t.x[-2:], t.x, t.x[:2]]),
    ),
    "pad(m, 1, reflect)": (lambda d: np.pad(d.m, 1, mode="reflect"), lambda t: reflected(reflected(t.m, 0), 1)),
    "histogram(x, 4)": (lambda d: np.histogram(d.x, 4, (-1.0, 1.0)), lambda t: counted(t.x, t.e)),
    "percentile(x, 30)": (lambda d: np.percentile(d.x, 30.0), lambda t: torch.quantile(t.x, 0.3)),
    "quantile(m, q, 0)": (lambda d: np.quantile(d.m, 0.3, axis=0), lambda t: torch.quantile(t.m, 0.3, 0)),
    "median(x)": (lambda d: np.median(d.x), lambda t: middle(t.x)),
    "interp(x, b, b)": (lambda d: np.interp(d.x, d.b, d.b), lambda t: interpolated(t.x, t.b, t.b)),
    "searchsorted(b, x)": (lambda d: np.searchsorted(d.b, d.x), lambda t: sought(t.b, t.x, False)),
    "searchsorted, right": (lambda d: np.searchsorted(d.b, d.x, side="right"), lambda t: sought(t.b, t.x, True)),
    "digitize(x, b)": (
        lambda d: np.digitize(d.x, d.b),
        lambda t: sought(t.b, t.x, True) if (t.b[1:] >= t.b[:-1]).all().item() else None,
    ),
    "take_along_axis": (lambda d: np.take_along_axis(d.m, d.j, 1), lambda t: torch.gather(t.m, 1, t.j)),
    "put_along_axis": (
        lambda d: np.put_along_axis(d.n, d.j, d.m, 1),
        lambda t: torch.scatter(t.n, 1, t.j, t.m),
    ),
    "add.at(w, i, 1)": (
        lambda d: np.add.at(d.w, d.i, 1.0),
        lambda t: torch.index_put(t.w, (t.i,), t.u, accumulate=True),
    ),
    "fill_diagonal(n, 1)": (lambda d: np.fill_diagonal(d.n, 1.0), lambda t: t.n.clone().fill_diagonal_(1.0)),
    "putmask(w, k, 1)": (lambda d: np.putmask(d.w, d.k, 1.0), lambda t: torch.masked_fill(t.w, t.k, 1.0)),
    "lstsq(m, m)": (
        lambda d: np.linalg.lstsq(d.m, d.m, rcond=None),
        lambda t: least_squares(t.m, t.m),
    ),
    "lstsq(m, v)": (
        lambda d: np.linalg.lstsq(d.m, d.v, rcond=None),
        lambda t: torch.linalg.lstsq(t.m, t.v, rcond=4.8e-7, driver="gelsd"),
    ),
    "inner(x, y)": (lambda d: np.inner(d.x, d.y), lambda t: torch.inner(t.x, t.y)),
    "tensordot, axes": (
        lambda d: np.tensordot(d.m, d.m, ([1], [1])),
        lambda t: torch.tensordot(t.m, t.m, ([1], [1])),
    ),
    "kron(m, m)": (lambda d: np.kron(d.m, d.m), lambda t: torch.kron(t.m, t.m)),
    "cov(m)": (lambda d: np.cov(d.m), lambda t: torch.cov(t.m.double())),
    "gradient(x)": (lambda d: np.gradient(d.x), lambda t: torch.gradient(t.x)),
    "meshgrid(x, y)": (
        lambda d: np.meshgrid(d.x, d.y),
        lambda t: [g.contiguous() for g in torch.meshgrid(t.x, t.y, indexing="xy")],
    ),
    "nansum(x)": (lambda d: np.nansum(d.x), lambda t: torch.nansum(t.x)),
    "nanmean(m, 0)": (lambda d: np.nanmean(d.m, axis=0), lambda t: torch.nanmean(t.m, 0)),
    "full_like(x, 2)": (lambda d: np.full_like(d.x, 2.0), lambda t: torch.full_like(t.x, 2.0)),
    "linspace(0, 1, 10)": (
        lambda d: np.linspace(0, 1, 10),
        lambda t: torch.arange(10, dtype=torch.float64).mul_(1 / 9),
    ),
    "random.rand(10)": (lambda d: np.random.rand(10), lambda t: torch.rand(10, dtype=torch.float64, generator=t.g)),
    "random.normal(0, 2)": (
        lambda d: np.random.normal(0.0, 2.0, 10),
        lambda t: torch.empty(10, dtype=torch.float64).normal_(0.0, 2.0, generator=t.g),
    ),
}


# of no arrays, so that they are made where the context says
MADE = {"zeros(10)", "ones((4, 4))", "empty(10)", "full(10, 2.5)", "arange(10)", "eye(4)", "array([1.0, 2.0])"}
MADE |= {"linspace(0, 1, 10)", "random.rand(10)", "random.normal(0, 2)"}


# what NumPy's functions are on tensors
def reflected(t: torch.Tensor, d: int) -> torch.Tensor:
    return torch.cat([t.narrow(d, 1, 1).flip(d), t, t.narrow(d, t.shape[d] - 2, 1).flip(d)], d)


def counted(t: torch.Tensor, edges: torch.Tensor) -> tuple:
    return torch.histogram(t, edges)[0].to(torch.int64), edges


def middle(t: torch.Tensor) -> torch.Tensor:
    """The mean of the middle two, or NaN."""
    rows, n = torch.sort(t)[0], len(t)
    return torch.where(torch.isnan(rows[-1]), rows[-1], (rows[n // 2 - 1] + rows[n // 2]) / 2)


def sought(a: torch.Tensor, v: torch.Tensor, right: bool) -> torch.Tensor:
    """torch's own search, but for NaNs in a."""
    last = a[-1].item()
    return torch.searchsorted(a, v, right=right) if last == last else None


def least_squares(a: torch.Tensor, b: torch.Tensor) -> tuple:
    x, residuals, rank, s = torch.linalg.lstsq(a, b, rcond=4.8e-7, driver="gelsd")
    return x.contiguous(), residuals, rank.to(torch.int32), s


def interpolated(x: torch.Tensor, xp: torch.Tensor, fp: torch.Tensor) -> torch.Tensor:
    """In float64, as NumPy, and the ends beyond the table."""
    x, xp, fp = x.double(), xp.double(), fp.double()
    i = torch.searchsorted(xp[1:-1], x, right=True)
    slope = torch.diff(fp) / torch.diff(xp)
    y = slope[i] * (x - xp[i]) + fp[i]
    return torch.where(x >= xp[-1], fp[-1], torch.where(x < xp[0], fp[0], y))


def add_to(w: Any) -> None:
    w[1:3] += 1.0


# name: (shapes of the arguments, ours, torch's)
LARGE: dict[str, tuple[list[tuple], Callable, Callable]] = {
    "m @ m, 1024": ([(1024, 1024)] * 2, lambda a, b: a @ b, lambda a, b: a @ b),
    "m @ m, 512 in 16": ([(16, 512, 512)] * 2, lambda a, b: a @ b, lambda a, b: a @ b),
    "conv2d 3x3, 32 of 64 channels": (
        [(32, 64, 32, 32), (64, 64, 3, 3)],
        lambda x, w: npx.convolution(x, w, pad=1),
        lambda x, w: F.conv2d(x, w, padding=1),
    ),
    "conv2d 1x1, 16 of 256 channels": (
        [(16, 256, 28, 28), (256, 256, 1, 1)],
        npx.convolution,
        F.conv2d,
    ),
    "batch norm, training": (
        [(64, 64, 32, 32), (64,), (64,), (64,), (64,)],
        lambda x, g, b, m, v: npx.batch_norm(x, g, b, m, v, 1e-5, fix_gamma=False, training=True),
        lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b, True, 0.1, 1e-5),
    ),
    "batch norm, inference": (
        [(64, 64, 32, 32), (64,), (64,), (64,), (64,)],
        lambda x, g, b, m, v: npx.batch_norm(x, g, b, m, v * v + 1, 1e-5, fix_gamma=False),
        lambda x, g, b, m, v: F.batch_norm(x, m, v * v + 1, g, b, False, 0.0, 1e-5),
    ),
}


class Data:
    """The arguments of the cases: 10 float32, a 4 x 4 matrix, a mask, an array to write to, an index."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        rng = numpy.random.default_rng(0)
        self.x, self.y = (make(rng.standard_normal(10).astype("f4")) for _ in range(2))
        self.m, self.k = make(rng.standard_normal((4, 4)).astype("f4")), make(numpy.arange(10) > 4)
        self.w, self.i = make(numpy.zeros(10, "f4")), make(numpy.array([1, 3, 5]))
        self.p, self.v, self.r = abs(self.x), make(rng.standard_normal(4).astype("f4")), make(numpy.array([0, 3]))
        self.n, self.s, self.a = make(numpy.zeros((4, 4), "f4")), self.x.sum(), self.k.any()
        self.b, self.e = make(numpy.linspace(-2, 2, 8).astype("f4")), make(numpy.linspace(-1, 1, 5).astype("f4"))
        self.j, self.u = make(numpy.argsort(rng.random((4, 4)), 1)), make(numpy.array(1, "f4"))
        self.c = make((rng.random(10) + 1j).astype("F"))
        self.g = torch.Generator()


def microseconds(f: Callable[[], Any], loops: int = 1000) -> float:
    """The caller's processor time a call: all of it is spent in this thread, and a busy machine does not count."""
    start = time.thread_time()
    for _ in range(loops):
        f()
    return (time.thread_time() - start) / loops * 1e6


def large(context: minnp.Context, options: argparse.Namespace) -> None:
    """Print each of the large cases: the least milliseconds of either, and the median of the paired ratios."""
    on_cpu = options.device == "cpu"
    clock = time.process_time if on_cpu and options.threads == 1 else time.perf_counter
    wait = (lambda: None) if on_cpu else torch.cuda.synchronize
    print(f"torch {torch.__version__}, device {options.device}, {options.threads} thread(s); milliseconds a call")
    print(f"{'':34}{'minnp':>8}{'torch':>8}{'ratio':>8}")
    for name, (shapes, our_call, their_call) in LARGE.items():
        if not re.search(options.only, name):
            continue
        rng = numpy.random.default_rng(0)
        arrays = [rng.standard_normal(shape).astype("f4") for shape in shapes]
        with context:
            ours = [np.array(a) for a in arrays]
        theirs = [torch.from_numpy(a.copy()).to(options.device) for a in arrays]
        for t, h in zip([their_call(*theirs).cpu().numpy()], [numpy.asarray(our_call(*ours))], strict=True):
            numpy.testing.assert_allclose(h, t, rtol=1e-3, atol=1e-3)

        def seconds(call: Callable, args: list) -> float:
            wait()
            start = clock()
            call(*args)
            wait()
            return clock() - start

        pairs = []
        for i in range(options.repeat * 2):
            first, second = seconds(our_call, ours), seconds(their_call, theirs)
            if i % 2:  # each goes first as often as the other
                second, first = seconds(their_call, theirs), seconds(our_call, ours)
            pairs.append((first, second))
        mine, its = (min(p[i] for p in pairs) * 1e3 for i in (0, 1))
        print(f"{name:34}{mine:8.2f}{its:8.2f}{statistics.median(a / b for a, b in pairs):8.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="a regular expression that a row's name must contain")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    context = minnp.Context("cpu" if options.device == "cpu" else "gpu", 0, "torch")
    if options.large:
        return large(context, options)
    with context:
        ours = Data(np.array)
    theirs = Data(lambda a: torch.from_numpy(a).to(options.device))
    print(f"torch {torch.__version__}, device {options.device}, one thread; microseconds a call")
    print(f"{'':22}{'minnp':>8}{'torch':>8}{'added':>8}   quartiles")
    for name, (our_call, their_call) in CASES.items():
        if not re.search(options.only, name):
            continue
        pairs = []
        for _ in range(options.repeat):
            with context if name in MADE else contextlib.nullcontext():
                mine = microseconds(lambda: our_call(ours))  # noqa: B023
            pairs.append((mine, microseconds(lambda: their_call(theirs))))  # noqa: B023
        mine, its = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        low, middle, high = statistics.quantiles([a - b for a, b in pairs], n=4)
        print(f"{name:22}{mine:8.2f}{its:8.2f}{middle:8.2f}   {low:.2f} .. {high:.2f}")


if __name__ == "__main__":
    main()
