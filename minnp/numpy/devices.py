"""Functions whose NumPy code asks the data questions or counts in small arrays, said so that a device need not wait.

Each formula serves arrays on a device, and only the arguments it names; it returns NotImplemented for what it leaves to
the general definition, which serves everything else. What is wrong with the arguments is found by asking NumPy the same
of arrays that hold nothing.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as onp

from ..core.api.fallback import fallback
from ..core.api.functions import entry
from ..core.api.namespace import wrapped
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, read, unwrap, wrap
from ..core.rows.dispatch import DEFINITIONS, defines, knows
from ..core.rows.state import capture, state
from ..core.rows.value import Buffer, Host, Tracer, concrete
from .arguments import NOT_GIVEN, as_array, holds_arrays, number_of
from .composites import _coefficients
from .creation import ones_like, zeros_like
from .facts import axes_of, reduced_shape
from .indexing import common, take, take_along_axis
from .interpolation import bincount
from .products import convolve
from .reductions import any_, max_, min_, sum_
from .scans import cumsum, diff
from .selection import argsort, nonzero, searchsorted, sort
from .shaping import astype, broadcast_to, concatenate, flip, reshape, roll, stack, swapaxes, transpose
from .ufuncs import floor, isnan, maximum, minimum, where


def on_device(x: Any) -> bool:
    """Whether an argument is an array on a device, traced or not, or a list with one."""
    if type(x) in (list, tuple):
        return any(map(on_device, x)) if holds_arrays(x) else False
    return type(x) in ARRAY_TYPES and type(concrete(read(x))) is Buffer


def known(x: Any) -> bool:
    """Whether an array is on a device and nobody watches: positions may be computed from its elements."""
    return type(x) in ARRAY_TYPES and type(read(x)) is Buffer and capture.get() is None


def vectors(*args: Any) -> bool:
    """Whether these are two vectors of one type of floats, one of which a derivative follows, and no capture does."""
    if len(args) != 2 or state.busy != state.written:
        return False
    a, b = (read(x) if type(x) in ARRAY_TYPES else x for x in args)
    if type(a) is not Tracer and type(b) is not Tracer:
        return False
    on_host = all(type(concrete(x)) is Host and x.ndim == 1 for x in (a, b))
    return on_host and a.dtype == b.dtype and a.dtype.kind == "f"


def on_devices(function: Callable, also: Callable | None = None) -> Callable:
    """Define `function` by the decorated formula where an argument is on a device, or all arguments are such as `also`
    says: then it is NumPy's to the bit, in fewer operations than NumPy's code."""

    def enter(formula: Callable) -> Callable:
        general = DEFINITIONS.get(function)
        names = inspect.signature(formula).parameters
        needed = sum(p.default is p.empty for p in names.values())
        name = function.__name__

        def definition(*args: Any, **kwargs: Any) -> Any:
            if any(map(on_device, args)) or (also is not None and not kwargs and also(*args)):
                given = {k: v for k, v in kwargs.items() if v is not NOT_GIVEN}
                fits = needed <= len(args) <= len(names) and given.keys() <= names.keys()  # it has not all of NumPy's
                out = formula(*args, **given) if fits else NotImplemented
                if out is not NotImplemented:
                    return out
            if general is not None:
                return general(*args, **kwargs)
            return wrap(fallback(entry(name, function), [unwrap(a, []) for a in args], kwargs))

        defines(function)(definition)
        return formula

    return enter


# ------------------------------------------------------------------ moving
@on_devices(onp.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    onp.rot90(onp.broadcast_to(0, m.shape), k, axes)
    first, second = axes
    turns = k % 4
    if turns == 2:
        return flip(m, axis=(first, second))
    if turns == 1:
        return swapaxes(flip(m, axis=second), axis1=first, axis2=second)
    return flip(swapaxes(m, axis1=first, axis2=second), axis=second) if turns else m[...]


@on_devices(onp.kron)
def kron(a: Any, b: Any) -> Any:
    """Every element of a times all of b: one product of a [n, 1, ...] and b [1, m, ...]."""
    a, b = as_array(a), as_array(b)
    ndim = max(a.ndim, b.ndim)
    outer, inner = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    spread = reshape(a, shape=[k for n in outer for k in (n, 1)]) * reshape(b, shape=[k for n in inner for k in (1, n)])
    return reshape(spread, shape=[n * m for n, m in zip(outer, inner)])


@on_devices(onp.outer, also=vectors)
def outer(a: Any, b: Any) -> Any:
    return reshape(as_array(a), shape=(-1, 1)) * reshape(as_array(b), shape=(1, -1))


@on_devices(onp.cross, also=vectors)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Of vectors in space along the last axis: each component from the two after it, as NumPy's."""
    a, b = as_array(a), as_array(b)
    if (axisa, axisb, axisc, axis) != (-1, -1, -1, None) or a.shape[-1:] != (3,) or b.shape[-1:] != (3,):
        return NotImplemented
    if vectors(a, b):
        turned = lambda x, n: x[[1, 2, 0] if n == 1 else [2, 0, 1]]
    else:
        turned = lambda x, n: roll(x, shift=-n, axis=-1)
    return turned(a, 1) * turned(b, 2) - turned(a, 2) * turned(b, 1)


@on_devices(onp.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Any:
    parts, dims = common(multi_index), tuple(onp.asarray(dims).reshape(-1).tolist())
    if mode != "raise" or order != "C" or len(parts) != len(dims) or not dims or not all(map(known, parts)):
        return NotImplemented
    beyond = [any_((p < 0) | (p >= n), axis=None) for p, n in zip(parts, dims)]
    if parts[0].dtype.kind != "i" or any_(stack(*beyond, axis=0), axis=None):
        return NotImplemented  # NumPy raises
    flat = parts[0].astype(onp.intp)
    for p, n in zip(parts[1:], dims[1:]):
        flat = flat * n + p
    return flat


@on_devices(onp.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    shape = (shape,) if type(shape) is int else shape
    flat, size = as_array(indices), math.prod(shape) if type(shape) is tuple else 0
    if order != "C" or not known(flat) or flat.dtype.kind != "i" or not shape:
        return NotImplemented
    if any_((flat < 0) | (flat >= size), axis=None):
        return NotImplemented  # NumPy raises
    found: list = []
    flat = flat.astype(onp.intp)
    for n in reversed(shape):
        found.insert(0, flat % n)
        flat = flat // n
    return tuple(found)


@on_devices(onp.empty_like)
def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True) -> Any:
    """Zeros: what lies in a device's memory is nobody's to look at."""
    return zeros_like(prototype, dtype=dtype, shape=None)


knows(onp.empty_like, takes=("one", "zeros_like"))


@on_devices(onp.choose)
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    picks, choices = as_array(a), common(choices)
    n = len(choices)
    if not onp.can_cast(picks.dtype, onp.intp) or mode not in ("raise", "wrap", "clip") or not n:
        return NotImplemented
    shape = onp.broadcast_shapes(picks.shape, *(c.shape for c in choices))
    if mode == "wrap":
        picks = picks % n
    elif mode == "clip":
        picks = DEFINITIONS[onp.clip](picks, 0, n - 1)
    else:
        picks = where(picks < 0, n, picks)  # which taking refuses, as what is too large
    every = stack(*(broadcast_to(c, shape=shape) for c in choices), axis=0)
    try:
        return take_along_axis(every, broadcast_to(picks, shape=shape)[None], axis=0)[0]
    except IndexError:
        raise ValueError("invalid entry in choice array") from None


@on_devices(onp.select)
def select(condlist: Sequence, choicelist: Sequence, default: Any = 0) -> Any:
    conditions = [as_array(c) for c in condlist]
    choices = [as_array(x) for x in choicelist]
    if not conditions or len(conditions) != len(choices) or type(default) not in (int, float, complex):
        return NotImplemented
    if any(c.dtype != bool for c in conditions) or not all(x.ndim for x in choices):
        return NotImplemented
    dtype = onp.result_type(*(onp.empty((0,) * x.ndim, x.dtype) for x in choices), default)
    out = astype(as_array(default), dtype=dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, astype(choice, dtype=dtype), out)
    return out


# ------------------------------------------------------------------ sorting
@on_devices(onp.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Stable sorts, one after the other: the last key decides first."""
    rows = [as_array(k) for k in keys]
    if not rows or not rows[0].ndim or any(r.shape != rows[0].shape for r in rows):
        return NotImplemented
    order = argsort(rows[0], axis=axis, kind="stable")
    for key in rows[1:]:
        later = argsort(take_along_axis(key, order, axis=axis), axis=axis, kind="stable")
        order = take_along_axis(order, later, axis=axis)
    return order


@on_devices(onp.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """What differs from its neighbour in sorted order. How many that are only the device knows: it makes the arrays.
    Along an axis, rows are sorted by each of their elements; those with a NaN differ from each other, as in NumPy."""
    if not known(ar) or ar.dtype.kind not in "fiu" or ar.size < 2:
        return NotImplemented
    if axis is None:
        flat = reshape(ar, shape=(ar.size,))
        order = argsort(flat, axis=0, kind="stable")
    else:
        (axis,) = axes_of(axis, ar.ndim)
        others = [i for i in range(ar.ndim) if i != axis]
        flat = reshape(transpose(ar, axes=(axis, *others)), shape=(ar.shape[axis], ar.size // ar.shape[axis]))
        if ar.ndim < 2 or len(flat) < 2 or not 0 < flat.shape[1] <= 64:
            return NotImplemented
        order = lexsort(flip(flat.T, axis=0), axis=-1)
    rows = take(flat, order, axis=0)
    new = rows[1:] != rows[:-1]
    if axis is not None:
        new = any_(new, axis=1)
    elif equal_nan and ar.dtype.kind == "f":
        new = new & ~(isnan(rows[1:]) & isnan(rows[:-1]))
    starts = concatenate(ones_like(new[:1], dtype=bool, shape=None), new, axis=0)
    found = rows[starts]
    if axis is not None:
        back = tuple(onp.argsort([axis, *others]).tolist())
        found = transpose(reshape(found, shape=(-1, *(ar.shape[i] for i in others))), axes=back)
    results = [found]
    if return_index:
        results.append(order[starts])
    if return_inverse:
        inverse = take(cumsum(starts, axis=0) - 1, argsort(order, axis=0), axis=0)
        shaped = onp.unique(onp.zeros(ar.shape), return_inverse=True, axis=axis)[1].shape  # which NumPy 2 gives it
        results.append(reshape(inverse, shape=shaped))
    if return_counts:
        ends = concatenate(starts, ones_like(starts[:1], dtype=bool, shape=None), axis=0)
        results.append(diff(nonzero(ends)[0]))
    return tuple(results) if len(results) > 1 else results[0]


# ------------------------------------------------------------------ counting
DISCRETE = {"inverted_cdf", "closest_observation", "lower", "higher", "nearest"}


def _quantiles(ask: Callable, a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    """Between which of n sorted elements each quantile lies, as NumPy says it of the numbers 0 to n - 1. Where `ask`
    skips NaNs, which are sorted last, each row has its own n; where none is left in the first row NumPy has a's dtype
    for all, which only a look at the elements would tell: here it is the dtype of other rows."""
    skips = ask in (onp.nanquantile, onp.nanpercentile)
    over = axes_of(axis, a.ndim)
    n = math.prod([a.shape[i] for i in over])
    plainly = type(q) in (int, float, Host) or (type(q) in (list, tuple) and not holds_arrays(q))
    if (
        not plainly
        or a.dtype.kind not in "fiu"
        or a.dtype.char == "e"
        or not n
        or n > (2**24 if method == "linear" else 2**20)
        or (skips and (method != "linear" or onp.ndim(q) > 1))  # NumPy 1 mixes up the axes of several of q's
    ):
        return NotImplemented
    dtype = onp.asarray(ask(onp.zeros((1,) * a.ndim, a.dtype), q, axis=axis, method=method)).dtype
    part = onp.asarray(q, dtype) / dtype.type(1 if ask in (onp.quantile, onp.nanquantile) else 100)
    rest = [i for i in range(a.ndim) if i not in over]
    rows = sort(reshape(transpose(a, axes=(*rest, *over)), shape=(*(a.shape[i] for i in rest), n)), axis=-1)
    if skips and a.dtype.kind == "f":
        last = maximum(sum_(~isnan(rows), axis=-1, keepdims=True) - 1, 0)  # of each row; NaNs are sorted behind it
        found = last.astype(dtype) * part.reshape(-1)
        below = floor(found).astype(onp.int64)
        y, top = (take_along_axis(rows, k, axis=-1) for k in (below, minimum(below + 1, last)))
        share = found - below.astype(dtype)
        y, top, share = (reshape(k, shape=(*k.shape[:-1], *part.shape)) for k in (y, top, share))
    else:
        if method == "linear":
            found = (n - 1) * part
        else:
            found = onp.asarray(ask(onp.arange(n, dtype=dtype), q, method=method))
        below = onp.floor(found).astype(onp.int64)
        y, top = take(rows, below, axis=-1), take(rows, onp.minimum(below + 1, n - 1), axis=-1)
        share = (found - below).astype(dtype)
    if method not in DISCRETE and dtype.kind == "f":  # else NumPy takes an element as it is
        gap = (top - y).astype(dtype)
        y, top = y.astype(dtype), top.astype(dtype)
        # from the nearer end, as NumPy's: at a share of 1 it is the upper one to the bit
        y = where(share >= 0.5, top - gap * (1 - share), y + gap * share)
    if a.dtype.kind == "f" and not skips:
        last = reshape(rows[..., -1], shape=(*rows.shape[:-1], *[1] * part.ndim))
        y = where(isnan(last), last, y)
    last = y.ndim - part.ndim
    y = transpose(y, axes=(*range(last, y.ndim), *range(last)))
    y = y if y.dtype == dtype else y.astype(dtype)  # numbers beside arrays without axes have a say in NumPy 1
    return reshape(y, shape=(*part.shape, *reduced_shape(a.shape, axis, keepdims)))


def _of_quantiles(ask: Callable) -> None:
    @on_devices(ask)
    def formula(
        a: Any,
        q: Any,
        axis: Any = None,
        *,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Any:
        out = _quantiles(ask, as_array(a), q, axis, method, bool(keepdims))
        return out if keepdims else number_of(out)


for _ask in (onp.quantile, onp.percentile, onp.nanquantile, onp.nanpercentile):
    _of_quantiles(_ask)


@on_devices(onp.bincount)
def counts(x: Any, weights: None = None, minlength: int = 0) -> Any:
    if weights is not None or x.ndim != 1 or x.dtype.kind not in "iu" or not onp.can_cast(x.dtype, onp.intp):
        return NotImplemented
    return bincount(x, ones_like(x, dtype=onp.dtype(float), shape=None), minlength=minlength).astype(onp.intp)


@on_devices(onp.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many sorted elements lie before each edge, and the differences. Without a range both ends are asked for."""
    if not known(a) or a.dtype.kind not in "fiu" or not a.size or type(bins) is str or on_device((bins, range)):
        return NotImplemented
    if weights is not None and (weights := as_array(weights)).dtype.kind != "f":
        return NotImplemented
    if range is None and type(bins) is int:
        ends = onp.asarray(stack(min_(a, axis=None), max_(a, axis=None), axis=0))
        edges = onp.histogram_bin_edges(ends, bins)
    else:
        edges = onp.histogram(onp.empty(0, a.dtype), bins, range)[1]
    flat = reshape(a, shape=(a.size,))
    order = argsort(flat, axis=0)
    rows = take(flat, order, axis=0)
    found = [searchsorted(rows, edges[:-1], side="left"), searchsorted(rows, edges[-1:], side="right")]
    before = concatenate(*found, axis=0)
    if weights is not None:
        heavy = take(reshape(weights, shape=(a.size,)), order, axis=0).astype(onp.float64)
        sums = concatenate(zeros_like(heavy[:1], dtype=None, shape=None), cumsum(heavy, axis=0), axis=0)
        before = take(sums, before, axis=0)
    n = diff(before)
    if weights is not None:
        n = n.astype(weights.dtype)
    if density:
        n = n / onp.diff(edges).astype(float) / n.sum()
    with devices.beside((a,)) or nullcontext():
        return n, wrapped("", "asarray", onp.asarray)(edges)


# ------------------------------------------------------------------ polynomials
@on_devices(onp.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    if not all(a.size and a.ndim < 2 for a in map(as_array, (a1, a2))):
        return NotImplemented
    return convolve(*(_from_first(a) if known(a) else _coefficients(a) for a in (a1, a2)))


def _from_first(p: Any) -> Any:
    """A polynomial from its first coefficient that is not zero, or the last one."""
    p = reshape(p, shape=(p.size,))
    last: Sequence = onp.arange(p.size) == p.size - 1
    return p[(cumsum(p != 0, axis=0) > 0) | last] if p.size else p
