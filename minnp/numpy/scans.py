"""Rows along an axis, element after element: cumsum, cumprod, diff; and prod, whose gradient is made of cumprods."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.rows.dispatch import Out, defines
from ..core.rows.primitive import TABLE, Meta, per_input, primitive
from .arguments import NOT_GIVEN, as_array, spelled
from .facts import axis_of, kept_shape, same, sampled, spread
from .reductions import keep, reducing, reduction, total
from .shaping import broadcast_to, concatenate, expand_dims, flip, reshape, transpose
from .slopes import times
from .ufuncs import multiply


def _along(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _flat_or_axis(x: Any, axis: int | None) -> tuple[Any, int]:
    """What a scan runs along: the array and the axis, or the flattened array where axis is None."""
    if axis is None or not x.ndim:
        return reshape(x, shape=(-1,)), 0
    return x, axis_of(axis, x.ndim)


def _scanned(metas: Sequence[Meta], params: dict) -> Meta:
    x = metas[0]
    dtype = params["dtype"] if params.get("dtype") is not None else onp.cumsum(onp.ones(1, x.dtype)).dtype
    return Meta((x.size,) if params.get("axis") is None else x.shape, onp.dtype(dtype))


def _cumsum(g: Any, y: Any, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    a = 0 if axis is None else axis
    return reshape(flip(cumsum(flip(g, axis=a), axis=a), axis=a), shape=x.shape)


def _shifted_product(y: Any, axis: int) -> Any:
    """Products of all elements before each: the cumulative product y, one step later."""
    first = onp.ones((*y.shape[:axis], 1, *y.shape[axis + 1 :]), y.dtype)
    return concatenate(first, _along(y, axis, 0, -1), axis=axis)


def _cumprod(g: Any, y: Any, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """P * R with P the product of the elements before, and R[i] = g[i] + x[i + 1] R[i + 1].

    No division, so zeros do no harm.
    """
    shape, (x, a) = x.shape, _flat_or_axis(x, axis)
    r = _recurrence(_along(x, a, 1, None), g, a)
    return reshape(times(r, _shifted_product(y, a)) if x.shape[a] else g, shape=shape)


def _recurrence(factor: Any, g: Any, a: int) -> Any:
    """R along axis a, with R[i] = g[i] + factor[i] R[i + 1]: by doubling, log2(n) steps on whole arrays."""
    n, step, r = g.shape[a], 1, g
    while step < n:  # r[i] += factor[i] * r[i + step], for i < n - step
        r = concatenate(
            _along(r, a, 0, n - step) + times(_along(r, a, step, None), factor), _along(r, a, n - step, None), axis=a
        )
        factor = _along(factor, a, 0, n - 2 * step if n > 2 * step else 0) * _along(factor, a, step, None)
        step *= 2
    return r


def _prod(g: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """g times the product of all other elements: those before times those after, so zeros do no harm."""
    g = keep(g, x, axis, keepdims)
    if not x.size:
        return broadcast_to(g, shape=x.shape)
    shape, kept = x.shape, kept_shape(x.shape, axis)
    over = [i for i, (n, k) in enumerate(zip(shape, kept)) if n != k or k == 1]
    order = [i for i in range(x.ndim) if i not in over] + over
    rows = reshape(transpose(x, axes=order), shape=(*(shape[i] for i in order[: x.ndim - len(over)]), -1))
    last = rows.ndim - 1
    before = _shifted_product(cumprod(rows, axis=last), last)
    after = flip(_shifted_product(cumprod(flip(rows, axis=last), axis=last), last), axis=last)
    others = reshape(before * after, shape=tuple(shape[i] for i in order))
    return times(g, transpose(others, axes=[order.index(i) for i in range(x.ndim)]))


SCANS = [{}, {"axis": 0}, {"axis": -1}]
cumsum = primitive(
    "cumsum",
    numpy=onp.cumsum,
    vjp=[_cumsum],
    jvp="linear",
    saves="",
    shape=_scanned,
    flops=per_input(1),
    batch="reduction",
    takes=("reduction", "axis"),
    samples=sampled(*(((spread(3, 4),), case) for case in SCANS)),
)
cumprod = primitive(
    "cumprod",
    numpy=onp.cumprod,
    vjp=[_cumprod],
    shape=_scanned,
    flops=per_input(1),
    batch="reduction",
    takes=("reduction", "axis"),
    samples=sampled(
        *(((spread(3, 4),), case) for case in SCANS),
        ((onp.array([2.0, 0.0, -1.0, 0.0, 3.0, 0.5, 1.5]),), {}),
        ((onp.array([1.0, 0.0, -1.0]),), {}),
    ),
)
prod = reduction(
    "prod",
    _prod,
    reducing(onp.multiply),
    saves="in",
    samples=sampled(
        ((spread(2, 3),), {}),
        ((spread(2, 3, 2),), {"axis": 1}),
        ((spread(2, 3, 2),), {"axis": (0, 2), "keepdims": True}),
        ((onp.array([2.0, 0.0, -1.0]),), {}),
        ((onp.array([2.0, 0.0, 0.0]),), {}),
    ),
)


def _diff(g: Any, y: Any, x: Any, n: int = 1, axis: int = -1) -> Any:
    axis = axis_of(axis, x.ndim)
    zeros = onp.zeros((*g.shape[:axis], n, *g.shape[axis + 1 :]), g.dtype)
    back = diff(concatenate(zeros, g, zeros, axis=axis), n=n, axis=axis)
    return -back if n % 2 else back


diff = primitive(
    "diff",
    numpy=onp.diff,
    vjp=[_diff],
    jvp="linear",
    saves="",
    flops=per_input(1),
    takes=("one", "n", "axis"),
    samples=sampled(((spread(3, 4),), {}), ((spread(5, 2),), {"n": 2, "axis": 0})),
)


# ------------------------------------------------------------------ methods of ufuncs
# Of which NumPy's own loops over an axis are one call after the other (those of power and arctan2 are not, everywhere).
SCANNED = ("maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2")


def _ufunc_accumulate(g: Any, y: Any, x: Any, ufunc: str, axis: int) -> Any:
    """To each element its part in what arrives at its running result: its cotangent, and a part of the next one's."""
    if x.shape[axis] < 2:
        return g
    row, new = TABLE[ufunc], _along(x, axis, 1, None)
    before, after = _along(y, axis, 0, -1), _along(y, axis, 1, None)
    stays = row.rule(0)(onp.ones(after.shape, x.dtype), after, before, new)
    r = _recurrence(stays, g, axis)
    return concatenate(_along(r, axis, 0, 1), row.rule(1)(_along(r, axis, 1, None), after, before, new), axis=axis)


ufunc_accumulate = primitive(
    "ufunc_accumulate",
    numpy=lambda x, ufunc, axis: getattr(onp, ufunc).accumulate(x, axis),
    vjp=[_ufunc_accumulate],
    shape=same,
    flops=per_input(1),
    batch="reduction",
    samples=sampled(*(((spread(3, 4),), {"ufunc": name, "axis": k % 2}) for k, name in enumerate(SCANNED))),
)


def _shares(g: Any, y: Any, x: Any, ufunc: str, axis: int) -> Any:
    """Each element's part in the sum whose logarithm was taken."""
    y, g = (expand_dims(v, axis=axis) for v in (y, g))
    return TABLE[ufunc].rule(0)(g, y, x, x)


ufunc_reduce = primitive(
    "ufunc_reduce",
    numpy=lambda x, ufunc, axis: getattr(onp, ufunc).reduce(x, axis),
    vjp=[_shares],
    flops=per_input(1),
    batch="reduction",
    samples=sampled(*(((spread(3, 4),), {"ufunc": name, "axis": k}) for k, name in enumerate(SCANNED[-2:]))),
)

# ------------------------------------------------------------------ definitions
defines(onp.prod, out=Out(sums="all"))(total(prod, multiply, 1))
_SCAN = Out(sums="all", scans=True)
defines(onp.cumsum, out=_SCAN)(spelled(cumsum, "a | axis dtype"))
defines(onp.cumprod, out=_SCAN)(spelled(cumprod, "a | axis dtype"))


@defines(onp.diff)
def _diff_of(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Any:
    if n == 0:
        return a
    a = as_array(a)
    if not a.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    n, axis = operator.index(n), axis_of(axis, a.ndim)
    ends = []
    for end in (prepend, append):
        end = None if end is NOT_GIVEN else as_array(end)
        if end is not None and not end.ndim:
            end = broadcast_to(end, shape=(*a.shape[:axis], 1, *a.shape[axis + 1 :]))
        ends.append(end)
    parts = [p for p in (ends[0], a, ends[1]) if p is not None]
    return diff(a if len(parts) == 1 else concatenate(*parts, axis=axis), n=n, axis=axis)
