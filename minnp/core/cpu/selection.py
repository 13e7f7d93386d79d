"""Large selections on all cores: where, boolean masks, fancy indexing, sort.

NumPy branches on every element of a mask, which costs 4-5 ns where the mask is irregular. Here `where` then selects by
arithmetic on the bits, (x ^ y) * mask ^ y, and masks go through nonzero. Where a mask comes in long runs NumPy's way is
the faster and is taken. Both give the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp

from minnp.core.cpu import kernels, memory, threads
from minnp.core.cpu.elementwise import SCALARS, flat
from minnp.core.cpu.reductions import shares

LEAST = 1 << 18  # elements of a mask
SORT = 1 << 17  # elements to sort
SHARED = 1 << 19  # elements from which threads share the work
LONG = 1 << 21  # the same, where NumPy is fast already
BLOCK = 1 << 15  # elements that pass through the cache at a time
BITS = {1: "i1", 2: "i2", 4: "i4", 8: "i8"}


def irregular(mask: onp.ndarray) -> bool:
    """Whether mask [n] changes its value often, judged by a sample at its middle."""
    middle = mask.size >> 1
    sample = mask[middle - 1024 : middle + 1024]
    return onp.count_nonzero(sample[1:] != sample[:-1]) > 128


def share(work: Callable[[slice], None], n: int, name: str) -> None:
    """Call work(slice) for slices of n elements, on all threads if n is large."""
    if n < SHARED:
        work(slice(0, n))
    else:
        pieces = list(shares(n, n, BLOCK))
        threads.run(lambda i: work(pieces[i]), len(pieces), name)


# ------------------------------------------------------------------ where
def where(condition: Any, *choices: Any) -> Any:
    """onp.where(condition, x, y) of a boolean array, with x and y of its shape or scalars."""
    if len(choices) != 2 or type(condition) is not onp.ndarray:
        return NotImplemented
    if condition.dtype != bool or condition.size < LEAST or not condition.flags.c_contiguous:
        return NotImplemented
    for a in choices:
        if type(a) is not onp.ndarray:
            if not isinstance(a, SCALARS):
                return NotImplemented
        elif a.ndim and (a.shape != condition.shape or not a.flags.c_contiguous):
            return NotImplemented
    mask = condition.reshape(-1)
    arithmetic = irregular(mask)
    if not arithmetic and mask.size < LONG:
        return NotImplemented
    dtype = onp.where(condition[:0], *[a[:0] if isinstance(a, onp.ndarray) and a.ndim else a for a in choices]).dtype
    if dtype.kind not in "biuf" or dtype.itemsize not in BITS:
        return NotImplemented
    out = memory.empty(condition.shape, dtype)
    result = out.reshape(-1)
    x, y = (a.reshape(-1) if isinstance(a, onp.ndarray) and a.ndim else onp.asarray(a).astype(dtype) for a in choices)

    def work(piece: slice) -> None:
        for start in range(piece.start, piece.stop, BLOCK):
            s = slice(start, min(start + BLOCK, piece.stop))
            chosen, ours, theirs = mask[s], x[s] if x.ndim else x, y[s] if y.ndim else y
            if arithmetic:
                choose(chosen, ours, theirs, result[s])
            else:
                result[s] = onp.where(chosen, ours, theirs)

    share(work, mask.size, "where")
    return out


def choose(mask: onp.ndarray, x: onp.ndarray, y: onp.ndarray, out: onp.ndarray) -> None:
    """out[...] = where(mask, x, y), by arithmetic on the bits; `out` may be x or y itself."""
    bits = BITS[out.itemsize]
    x, y = (a.astype(out.dtype, copy=False).view(bits) for a in (x, y))
    out = out.view(bits)
    differs = onp.not_equal  # from 0: a mask made by view may hold other bytes than 0 and 1
    if onp.may_share_memory(y, out):
        if onp.may_share_memory(x, out):  # all three are one
            return
        y, differs = x, onp.equal
        onp.bitwise_xor(out, x, out=out)
    else:
        onp.bitwise_xor(x, y, out=out)
    onp.multiply(out, differs(mask.view("i1"), 0), out=out)
    onp.bitwise_xor(out, y, out=out)


# ------------------------------------------------------------------ masks
def getitem(a: onp.ndarray, key: Any) -> Any:
    """a[key] for one boolean mask over the leading axes, or one array of integers; NotImplemented otherwise."""
    if type(key) is not onp.ndarray or key.size < LEAST or a.dtype.hasobject:
        return NotImplemented
    if key.dtype == bool:
        return select(a, key)
    return gather(a, key)


def masked_rows(a: onp.ndarray, mask: onp.ndarray) -> tuple[onp.ndarray, onp.ndarray] | None:
    """`a` as rows, and the flat mask with one element per row, both views; None if this is not that case."""
    if a.shape[: mask.ndim] != mask.shape or not (a.flags.c_contiguous and mask.flags.c_contiguous):
        return None
    return a.reshape(mask.size, *a.shape[mask.ndim :]), mask.reshape(-1)


def select(a: onp.ndarray, mask: onp.ndarray) -> Any:
    flattened = masked_rows(a, mask)
    if flattened is None:
        return NotImplemented
    rows, mask = flattened
    by_index = irregular(mask)
    if not by_index and mask.size < LONG:
        return NotImplemented
    begins = offsets(mask)
    out = memory.empty((begins[mask.size], *rows.shape[1:]), a.dtype)

    def work(piece: slice) -> None:
        part, chosen, target = rows[piece], mask[piece], out[begins[piece.start] : begins[piece.stop]]
        if by_index:
            part.take(chosen.nonzero()[0], axis=0, out=target, mode="wrap")
        else:
            target[...] = part[chosen]

    share(work, mask.size, "getitem")
    return out


def offsets(mask: onp.ndarray) -> dict[int, int]:
    """The number of True before position p of mask [n], for every p at which `share` cuts."""
    n = mask.size
    pieces = shares(n, n, BLOCK) if n >= SHARED else [slice(0, n)]
    begins, total = {0: 0}, 0
    for s in pieces:
        total += int(onp.count_nonzero(mask[s]))
        begins[s.stop] = total
    return begins


def setitem(a: onp.ndarray, key: Any, value: Any) -> Any:
    """a[key] = value for one boolean mask over the leading axes; None, or NotImplemented if nothing was written."""
    if type(key) is not onp.ndarray or key.dtype != bool or key.size < LEAST or a.dtype.hasobject:
        return NotImplemented
    flattened = masked_rows(a, key)
    if flattened is None or not a.flags.writeable or onp.may_share_memory(a, key):
        return NotImplemented
    rows, mask = flattened
    by_index = irregular(mask)
    if not by_index and mask.size < LONG:
        return NotImplemented
    begins = None
    if type(value) is onp.ndarray and value.ndim:
        if rows.ndim != 1 or value.ndim != 1 or value.dtype.hasobject or onp.may_share_memory(a, value):
            return NotImplemented
        begins = offsets(mask)
        if value.size != begins[mask.size]:
            return NotImplemented
    elif not isinstance(value, SCALARS):
        return NotImplemented

    def work(piece: slice) -> None:
        chosen = mask[piece]
        if by_index:
            chosen = chosen.nonzero()[0]
        rows[piece][chosen] = value if begins is None else value[begins[piece.start] : begins[piece.stop]]

    share(work, mask.size, "cast")
    return None


# ------------------------------------------------------------------ integer indices
def take(a: Any, indices: Any, axis: Any = None, *other: Any, **others: Any) -> Any:
    """onp.take(a, indices, axis) along the first axis."""
    if other or others or type(a) is not onp.ndarray or type(indices) is not onp.ndarray or a.dtype.hasobject:
        return NotImplemented
    if axis is None and a.flags.c_contiguous:
        a, axis = a.reshape(-1), 0
    return gather(a, indices) if axis == 0 else NotImplemented


def gather(a: onp.ndarray, indices: onp.ndarray) -> Any:
    """a[indices]. An index out of bounds raises NumPy's error, as the first one does there."""
    if indices.size < 2 * SHARED or indices.dtype.kind != "i" or not a.ndim:
        return NotImplemented
    out = memory.empty((*indices.shape, *a.shape[1:]), a.dtype)
    index, rows = indices.reshape(-1), out.reshape(indices.size, *a.shape[1:])

    def work(piece: slice) -> None:
        rows[piece] = a[index[piece]]

    share(work, index.size, "getitem")
    return out


# ------------------------------------------------------------------ sort
def sort(a: Any, axis: Any = -1, *other: Any, **others: Any) -> Any:
    """onp.sort(a, axis) of numbers along the last axis."""
    if other or others or type(a) is not onp.ndarray or a.dtype.kind not in "iuf" or not a.flags.c_contiguous:
        return NotImplemented
    if axis is None:
        a = a.reshape(-1)
    elif axis not in (-1, a.ndim - 1):
        return NotImplemented
    if a.size < SORT or threads.team.size == 1:
        return NotImplemented
    if a.ndim == 1:
        return sort_runs(a)
    rows = flat(a, "C").reshape(-1, a.shape[-1])
    pieces = list(shares(len(rows), rows.size, 1))
    out = memory.empty(rows.shape, a.dtype)

    def work(i: int) -> None:
        out[pieces[i]] = rows[pieces[i]]
        out[pieces[i]].sort(axis=-1)

    threads.run(work, len(pieces), "sort")
    return out.reshape(a.shape) if a.ndim != 2 else out


def sort_runs(a: onp.ndarray) -> onp.ndarray:
    """a [n] sorted: runs are sorted side by side, then merged side by side, each thread the values of one range."""
    scratch, out = memory.empty(a.shape, a.dtype), memory.empty(a.shape, a.dtype)
    count = threads.team.size
    runs = [scratch[s] for s in shares(a.size, a.size, -(-a.size // count))]
    begins = [i * a.size // len(runs) for i in range(len(runs))]

    def sort_run(i: int) -> None:
        runs[i][...] = a[begins[i] : begins[i] + runs[i].size]
        runs[i].sort()

    threads.run(sort_run, len(runs), "sort")
    # values that divide the numbers about evenly; equal ones stay together
    sample = onp.sort(onp.concatenate([run[:: max(run.size // 64, 1)] for run in runs]))
    cuts = sample[[k * sample.size // count for k in range(1, count)]]
    bounds = [[0, *run.searchsorted(cuts).tolist(), run.size] for run in runs]
    starts = [sum(bound[k] for bound in bounds) for k in range(count + 1)]

    def merge(k: int) -> None:
        target = out[starts[k] : starts[k + 1]]
        onp.concatenate([run[bound[k] : bound[k + 1]] for run, bound in zip(runs, bounds)], out=target)
        target.sort(kind="stable")  # which finds the runs and merges them

    threads.run(merge, count, "sort")
    return onp.sort(a) if a.dtype.kind == "f" and ambiguous(out) else out


def ambiguous(x: onp.ndarray) -> bool:
    """Whether sorted x [n] holds equal numbers of different bits: zeros of both signs, or several NaNs."""
    zeros = onp.signbit(x[x.searchsorted(0.0) : x.searchsorted(0.0, side="right")])
    nans = x.size - x.searchsorted(onp.nan)
    return nans > 1 or (zeros.size > 0 and bool(zeros.any() != zeros.all()))


def sort_in_place(a: onp.ndarray, *other: Any, **others: Any) -> Any:
    """a.sort() along the last axis."""
    ordered = sort(a, *other, **others) if a.flags.writeable else NotImplemented
    if ordered is NotImplemented:
        return NotImplemented
    a[...] = ordered
    return None


def add_at(a: Any, index: Any, *added: Any) -> Any:
    """onp.add.at(a, index, b) of rows: NumPy takes 15 ns for a number where a has more axes than one."""
    if len(added) != 1 or not (type(a) is type(index) is type(added[0]) is onp.ndarray) or a.ndim < 2:
        return NotImplemented
    b, wide = added[0], a.size // max(1, len(a))
    if b.shape != index.shape + a.shape[1:] or not (a.flags.carray and b.flags.c_contiguous) or not b.size:
        return NotImplemented
    done = kernels.add_at(a.reshape(len(a), wide), index.reshape(-1), b.reshape(index.size, wide))
    return None if done else NotImplemented


FUNCTIONS = {
    onp.add.at: add_at,
    onp.where: where,
    onp.take: take,
    onp.ndarray.take: take,
    onp.sort: sort,
    onp.ndarray.sort: sort_in_place,
    operator.getitem: getitem,
    operator.setitem: setitem,
}
