"""Kernels in C over the rows of float32 arrays (core/compiled/kernels.h): one pass where NumPy takes several, on all
threads, which need no interpreter.

They are for functions of traced code and of layers. Who calls one has the same in NumPy, for what it does not take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..compiled import team
from . import threads
from .memory import empty

F4 = onp.dtype("f4")
LEAST = 1 << 10  # elements from which a call pays


def takes(*arrays: Any, least: int = LEAST) -> bool:
    """Whether the C part is there, and these are float32 arrays in C order, the first of at least so many elements."""
    if team is None or type(arrays[0]) is not onp.ndarray or arrays[0].size < least:
        return False
    for a in arrays:  # noqa: SIM110  # asked so often that a generator shows
        if type(a) is not onp.ndarray or a.dtype is not F4 or not a.flags.c_contiguous:
            return False
    return True


def call(name: str, rows: int, n: int, arrays: Sequence[onp.ndarray], numbers: tuple[float, ...] = ()) -> bool | None:
    """Run the kernel of this name on arrays [rows, n], numbers of rows and numbers of columns, as its table says;
    whether there were floating point errors. None, and nothing done, where what it writes is another array's memory."""
    return team.kernel(name, rows, n, numbers, threads.team.size, *arrays)


def each(name: str, *arrays: onp.ndarray) -> onp.ndarray:
    """What a kernel makes of every element of these arrays, which have one shape."""
    out = empty(arrays[0].shape, F4)
    call(name, out.size, 1, (*arrays, out))
    return out


def along(name: str, *arrays: onp.ndarray) -> onp.ndarray:
    """What a kernel makes of the last axis of these arrays, which have one shape."""
    out, n = empty(arrays[0].shape, F4), arrays[0].shape[-1]
    call(name, out.size // n, n, (*arrays, out))
    return out


def quantized(x: onp.ndarray, scale: float, zero_point: int, dtype: onp.dtype) -> onp.ndarray | None:
    """x / scale + zero_point as 8-bit integers; NaN is the lowest. None for what the kernel does not take."""
    if not takes(x) or x.size % 4 or dtype.itemsize != 1:
        return None
    info, out = onp.iinfo(dtype), empty(x.shape, dtype)
    numbers = (1, float(onp.float32(1.0 / scale)), zero_point, info.min, info.max)
    call("quantize", x.size // 4, 4, (x, out.reshape(-1).view(F4)), numbers)
    return out


def sums(x: onp.ndarray, inner: int, outer: int = 1) -> onp.ndarray | None:
    """The sums [outer, inner] of x, which is [outer, any, inner]; None where NumPy has to warn."""
    out = onp.empty((outer, inner), F4)
    return None if call("sums", outer, x.size // outer, (x, out), (inner,)) else out


SHORTEST = 8  # elements of a channel of one example from which the kernels for channels are fast


def channel_sums(x: onp.ndarray) -> onp.ndarray | None:
    """The sums [C] of x [N, C, ...], which is taken; None where they are too short, or NumPy has to warn."""
    channels, n = x.shape[1], x.size // (x.shape[0] * x.shape[1])
    if n < SHORTEST:
        return None
    out = onp.empty(channels, F4)
    return None if call("channel_sums", channels, x.size // channels, (x, out), (n,)) else out


def by_channel(x: Any, v: Any) -> bool:
    """Whether v has one number for each channel of x [N, C, ...], of the given shapes and dtypes."""
    n = len(x.shape) - 2
    if n < 1 or x.size < LEAST or v.size != x.shape[1] or x.size < SHORTEST * x.shape[0] * v.size:
        return False
    return len(v.shape) <= n + 2 and v.shape[-n - 1 :] == (v.size, *(1,) * n)


BESIDE = {onp.add: ("add", "add"), onp.subtract: ("subtract", "less"), onp.multiply: ("multiply", "multiply")}


def beside(uf: onp.ufunc, a: Any, b: Any, out: onp.ndarray | None = None) -> Any:
    """uf of rows [..., m, n] and one row for all m of them ([n] or [..., 1, n]), or the sum of [N, C, ...] and a number
    for each channel; NotImplemented for anything else."""
    names = BESIDE.get(uf)
    if names is None or not takes(a, b, least=1) or a.ndim == 0 or b.ndim == 0:
        return NotImplemented
    if a.shape[-1] != b.shape[-1]:
        large, numbers = (a, b) if a.size >= b.size else (b, a)
        fits = uf is onp.add and by_channel(large, numbers)
        return channel_add(large, numbers, out) if fits else NotImplemented
    name, x, row = (names[0], a, b) if a.size >= b.size else (names[1], b, a)
    n, m = x.shape[-1], x.shape[-2] if x.ndim > 1 else 1
    if m == 1 or (row.ndim > 1 and row.shape[-2] > 1):
        return NotImplemented
    lead, groups = x.shape[:-2], row.size // n
    if groups > 1:
        lead = row.shape[:-2]
        if x.size != m * n and x.shape[:-2] != lead:
            return NotImplemented
    if max(x.ndim, row.ndim) != len(lead) + 2:
        return NotImplemented
    if out is None:
        out = empty((*lead, m, n), F4)
    elif out.shape != (*lead, m, n):
        return NotImplemented
    rows = out.size // n
    if call(name, rows, n, (x, row, out), (rows // groups, x.size // n)) is not False:  # else NumPy warns
        return NotImplemented
    return out


def channel_add(x: onp.ndarray, v: onp.ndarray, out: onp.ndarray | None) -> Any:
    if out is None:
        out = empty(x.shape, F4)
    elif out.shape != x.shape:
        return NotImplemented
    sizes = x.size // x.shape[0] // v.size
    errors = call("channel_add", v.size, x.size // v.size, (x, v, out), (sizes,))
    return out if errors is False else NotImplemented  # else NumPy warns


class Beside:
    """uf(a, b, out=None) of compiled code, for arrays of which one is a row for all rows of the other, or channels'."""

    takes_out = True

    def __init__(self, uf: onp.ufunc) -> None:
        self.uf = uf

    def __call__(self, a: Any, b: Any, out: onp.ndarray | None = None) -> Any:
        done = beside(self.uf, a, b, out)
        return self.uf(a, b, out=out) if done is NotImplemented else done


def is_beside(uf: Any, a: Any, b: Any) -> bool:
    """Whether `beside` does uf better than NumPy on arrays of these shapes and dtypes, which lie in the cache."""
    if team is None or uf not in BESIDE or not all(getattr(x, "dtype", None) is F4 and x.shape for x in (a, b)):
        return False
    large, row = (a, b) if a.size >= b.size else (b, a)
    if not LEAST <= large.size <= 1 << 18:
        return False
    rows = row.shape == large.shape[-1:] and large.size > row.size > 1
    return rows or (uf is onp.add and large.shape[-1] != row.shape[-1] and by_channel(large, row))


def unless_taken(worth: Any) -> Any:
    """worth fact: `worth`, for arrays that no kernel here takes."""
    return lambda backend, arrays, params: not takes(*arrays) and worth(backend, arrays, params)


def add_at(to: onp.ndarray, index: onp.ndarray, rows: onp.ndarray) -> bool:
    """to[index[i]] += rows[i] in this order, as np.add.at adds, of floats to [cells, width], int64 index [n] and rows
    [n, width] in C order. False, and nothing done, without the C part or where an index is out of bounds."""
    if team is None or to.dtype.char not in "fd" or rows.dtype is not to.dtype or index.dtype.char not in "lq":
        return False
    if not (to.flags.carray and all(x.flags.c_contiguous and x.flags.aligned for x in (index, rows))):
        return False
    errors = team.add_at(to, index, rows, threads.team.size)
    for bit, x in ((1, onp.finfo(to.dtype).max), (2, to.dtype.type("inf"))) if errors else ():
        if errors & bit:  # NumPy's warning, or its exception
            onp.add.at(onp.array([x]), [0], x if bit == 1 else -x)
    return errors is not None
