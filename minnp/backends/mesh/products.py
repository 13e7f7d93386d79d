"""Products of split arrays: matmul, einsum and convolve."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ...core.cpu.contraction import explicit
from ...core.rows.primitive import TABLE
from ...distributed import collectives
from .kernels import kernel, refuse
from .own import product
from .parts import Part, exchange, gathered, moved, ranges, whole_of

SMALL = 1 << 16  # elements of a product of split sums that every rank gets


@kernel("matmul")
def matmul(place: Any, a: Any, b: Any) -> Part:
    mesh = (a if type(a) is Part else b).mesh
    a, b = (x if type(x) is Part else Part(mesh, x.shape, (None,) * x.ndim, x) for x in (a, b))
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        refuse("matmul of these shapes")
    if b.ndim > 2:
        left, right = "jk"[a.ndim == 1 :], "kl"
        return einsum(place, a, b, subscripts=f"...{left},...{right}->...{left[:-1]}l")
    k = 0 if b.ndim == 1 else -2
    columns = b.on[-1] if b.ndim == 2 else None
    rows = a.on[:-1]
    if columns is not None and columns in rows:  # both over one mesh axis: the smaller is made whole
        if a.size < b.size:
            a = gathered(a, rows.index(columns))
        else:
            b = gathered(b, b.ndim - 1)
    rows, columns = a.on[:-1], b.on[-1] if b.ndim == 2 else None
    taken = {m for m in (*rows, columns) if m is not None}
    ka, kb = a.on[-1], b.on[k]
    over = ka if ka is not None else kb
    if over in taken:
        over = None
    a = moved(a, (*rows, over))
    b = moved(b, (over,) if b.ndim == 1 else (over, columns))
    y = product(a.local, b.local)
    shape, on = (*a.shape[:-1], *b.shape[1:]), (*rows, *((columns,) if b.ndim == 2 else ()))
    return summed(mesh, shape, on, y, over)


def summed(mesh: Any, shape: tuple, on: tuple, y: onp.ndarray, over: int | None) -> Part:
    """The sum of the ranks' y over a mesh axis (None: none): whole on each of them where it is small."""
    if over is None:
        return Part(mesh, shape, on, y)
    line = mesh.axis(over)
    if y.size <= SMALL or not on or on[0] is not None:
        return Part(mesh, shape, on, collectives.added(y, line))
    return Part(mesh, shape, (over, *on[1:]), collectives._reduce_scatter(y, mesh=line, axis=0, size=None))


@kernel("einsum")
def einsum(place: Any, *operands: Any, subscripts: str, **params: Any) -> Part:
    """Over each mesh axis one letter is split: that of the largest array that is. What has not the letter is whole."""
    mesh = next(x for x in operands if type(x) is Part).mesh
    xs = [x if type(x) is Part else Part(mesh, onp.shape(x), (None,) * onp.ndim(x), x) for x in operands]
    inputs = subscripts.replace(" ", "").split("->")[0].split(",")
    if len(inputs) != len(xs) or any(len(t.replace("...", "")) > x.ndim for t, x in zip(inputs, xs)):
        refuse("einsum of these subscripts")
    terms, output = explicit(subscripts, tuple(x.ndim for x in xs))
    sizes: dict[str, int] = {}
    for t, x in zip(terms, xs):
        for c, n in zip(t, x.shape):
            sizes[c] = max(n, sizes.get(c, 1))
    if any(n not in (1, sizes[c]) for t, x in zip(terms, xs) for c, n in zip(t, x.shape)) or "," in output:
        refuse("einsum of these shapes")
    taken: dict[str, int] = {}
    for x, t in sorted(zip(xs, terms), key=lambda pair: -pair[0].size):
        for i in x.split:
            if x.on[i] not in taken.values() and t[i] not in taken and sizes[t[i]] == x.shape[i] > 1:
                taken[t[i]] = x.on[i]
    for c in [c for c in taken if any(t.count(c) > 1 for t in (*terms, output))]:
        del taken[c]  # a diagonal
    local = [
        moved(x, [taken.get(c) if n == sizes[c] > 1 else None for c, n in zip(t, x.shape)]).local
        for t, x in zip(terms, xs)
    ]
    y = TABLE["einsum"].fast(*local, subscripts=f"{','.join(terms)}->{output}", **params)
    out = Part(mesh, [sizes[c] for c in output], [taken.get(c) for c in output], onp.asarray(y))
    for c, m in taken.items():
        if c not in output:
            out = summed(mesh, out.shape, out.on, out.local, m)
    return out


@kernel("convolve")
def convolve(place: Any, a: Any, v: Any, mode: str = "full") -> Part:
    """The longer one stays split, and each rank takes from its neighbours what its part of the result reads."""
    known = mode in ("full", "same", "valid")
    if onp.ndim(a) != 1 or onp.ndim(v) != 1 or not (onp.size(a) and onp.size(v) and known):
        refuse("convolve of these arrays")
    a, v = (a, v) if a.size >= v.size else (v, a)
    short = whole_of(v) if type(v) is Part else v
    if type(a) is not Part or a.on[0] is None:
        y = onp.convolve(whole_of(a) if type(a) is Part else a, short, mode)
        return Part(v.mesh if type(a) is not Part else a.mesh, y.shape, (None,), y)
    n, m, line = a.size, short.size, a.mesh.axis(a.on[0])
    start, length = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    mine = [(start + c, start + d) for c, d in ranges(length, line)]
    want = [(max(c - m + 1, 0), min(d, n)) if d > c else (0, 0) for c, d in mine]
    read = exchange(line, a.local, 0, ranges(n, line), want)
    (c, d), (lo, _) = mine[line.rank], want[line.rank]
    y = onp.convolve(read, short)[c - lo : d - lo] if d > c else onp.empty(0, onp.result_type(read, short))
    return Part(a.mesh, (length,), a.on, y)
