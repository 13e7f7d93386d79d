"""Rows of reductions and scans along axes: sum, mean, var, prod, max, min, cumsum, cumprod, diff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as onp

from ..core.api.fallback import fallback
from ..core.api.functions import entry
from ..core.arrays.array import ARRAY_TYPES, ARRAYS, read, unwrap, wrap
from ..core.cpu import kernels
from ..core.cpu.memory import empty
from ..core.cpu.products import single_thread
from ..core.rows.dispatch import Out, defines
from ..core.rows.primitive import CONSTANT, Meta, Primitive, per_input, primitive
from ..core.rows.value import Host
from .arguments import NOT_GIVEN, as_array, number_of, option, plain, spelled
from .facts import count_of, kept_shape, reduced_shape, sampled, spread
from .shaping import astype, broadcast_to, reshape, spread_number
from .slopes import over, times
from .ufuncs import (
    add,
    conjugate,
    equal,
    exp,
    greater,
    is_complex,
    less,
    maximum,
    minimum,
    real,
    sqrt,
    where,
)


# ------------------------------------------------------------------ shared by reductions
def reduced(kernel: Callable) -> Callable:
    """Shape fact of a reduction; the dtype is what the kernel makes of two elements."""

    def shape(metas: Sequence[Meta], params: dict) -> Meta:
        x, axis, keepdims = metas[0], params.get("axis"), params.get("keepdims", False)
        dtype = params["dtype"] if params.get("dtype") is not None else kernel(onp.ones(2, x.dtype)).dtype
        return Meta(reduced_shape(x.shape, axis, keepdims), onp.dtype(dtype))

    return shape


def reducing(ufunc: onp.ufunc) -> Callable:
    """The kernel that NumPy's own function comes to, without its way there."""
    reduce = ufunc.reduce
    return lambda x, axis=None, dtype=None, keepdims=False: reduce(x, axis, dtype, None, keepdims)


NARROW, LARGE_SUM, BLOCK = 12, 1 << 16, 1 << 11  # columns, elements, rows that stay in cache
SHORT = 24  # columns


def _sums(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """np.add.reduce; of many short rows column by column, in NumPy's order and 2 to 8 times faster."""
    narrow = axis is not None and dtype is None and not keepdims and type(x) is Host and x.size >= LARGE_SUM
    if not (narrow and axis in (-1, x.ndim - 1) and 1 < x.shape[-1] <= NARROW and x.dtype.char in "fd"):
        return onp.add.reduce(x, axis, dtype, None, keepdims)
    if not x.flags.c_contiguous:
        return onp.add.reduce(x, axis, dtype, None, keepdims)
    rows, out = x.reshape(-1, x.shape[-1]), onp.empty(x.shape[:-1], x.dtype)
    flat = out.reshape(-1)
    for start in range(0, len(rows), BLOCK):
        a, total = rows[start : start + BLOCK].T, flat[start : start + BLOCK]
        onp.add(a[0], a[1], out=total)
        rest = a[2:]
        if len(a) >= 8:  # eight terms as a tree
            total += a[2] + a[3]
            total += (a[4] + a[5]) + (a[6] + a[7])
            rest = a[8:]
        for column in rest:
            total += column
        total += 0.0  # NumPy starts from 0: the sum of -0.0 and -0.0 is 0.0
    return out


def _traced_sums(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """np.add.reduce; of many short rows as a product with ones, in any order."""
    narrow = axis is not None and dtype is None and type(x) is Host and x.size >= LARGE_SUM
    if not (narrow and axis in (-1, x.ndim - 1) and 1 < x.shape[-1] <= SHORT and x.dtype.char in "fd"):
        return _sums(x, axis, dtype, keepdims)
    if kernels.takes(x):
        out = empty((*x.shape[:-1], 1) if keepdims else x.shape[:-1], x.dtype)
        if not kernels.call("totals", out.size, x.shape[-1], (x, out)):  # else NumPy warns
            return out
    with single_thread() or nullcontext():
        out = x.reshape(-1, x.shape[-1]) @ onp.ones(x.shape[-1], x.dtype)
    return out.reshape((*x.shape[:-1], 1) if keepdims else x.shape[:-1])


def reduction(name: str, rule: Callable | str, kernel: Callable | None = None, **facts: Any) -> Primitive:
    """A row of a reduction over `axis` (None, one or several) with `keepdims`."""
    kernel = kernel or getattr(onp, name)
    cases = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}]
    facts = {"samples": sampled(*(((spread(2, 3, 4),), case) for case in cases)), "batch": "reduction", **facts}
    facts["takes"] = "reduction", "axis", "keepdims"
    vjp = CONSTANT if rule is CONSTANT else [rule]
    return primitive(name, numpy=kernel, vjp=vjp, shape=reduced(kernel), flops=per_input(1), **facts)


def keep(r: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """A result of reducing x, with the reduced axes back as ones: it broadcasts against x."""
    return r if keepdims or axis is None or not x.ndim else reshape(r, shape=kept_shape(x.shape, axis))


# ------------------------------------------------------------------ sums
def _sum(g: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if isinstance(g, onp.generic):
        return spread_number(g, x.shape)
    return broadcast_to(keep(g, x, axis, keepdims), shape=x.shape)


def _mean(g: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    n = count_of(x.shape, axis)
    if g.dtype.char == "e" and n > 65504:  # no float16: the quotient is one of single precision, and rounded at the end
        g = astype(g, dtype=onp.dtype("f4"))
    return broadcast_to(keep(g / n, x, axis, keepdims), shape=x.shape)


def _deviation(x: Any, axis: Any) -> Any:
    d = x - mean(x, axis=axis, keepdims=True)
    return conjugate(d) if is_complex(x) else d


def _freedom(x: Any, axis: Any, ddof: float) -> float:
    return max(count_of(x.shape, axis) - ddof, 0)


def _var(g: Any, y: Any, x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return times(keep(g * 2 / _freedom(x, axis, ddof), x, axis, keepdims), _deviation(x, axis))


def _std(g: Any, y: Any, x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    # where all elements are equal the numerator is 0: the subgradient 0, not 0 / 0
    slope = over(g, _freedom(x, axis, ddof) * where(equal(y, 0), 1, y))
    return times(keep(slope, x, axis, keepdims), _deviation(x, axis))


def _var_forward(t: Any, y: Any, x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    slope = sum_(times(t, _deviation(x, axis)), axis=axis, keepdims=keepdims) * 2 / _freedom(x, axis, ddof)
    return real(slope) if is_complex(x) else slope


def _std_forward(t: Any, y: Any, x: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return over(_var_forward(t, y, x, axis, ddof, keepdims), 2 * where(equal(y, 0), 1, y))


sum_ = reduction("sum", _sum, _sums, fast=_traced_sums, jvp="linear", saves="")
mean = reduction("mean", _mean, jvp="linear", saves="")
var = reduction("var", _var, jvp=[_var_forward], saves="in")
std = reduction("std", _std, jvp=[_std_forward], saves="both")


# ------------------------------------------------------------------ extremes
def _extreme(beaten: Callable) -> Callable:
    """Elements equal to the result share g equally. A NaN result beats no element: all of them share it."""

    def chosen(y: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        return ~beaten(x, keep(y, x, axis, keepdims))

    def back(g: Any, y: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        mask = chosen(y, x, axis, keepdims)
        share = g / sum_(mask, axis=axis, dtype=g.dtype, keepdims=keepdims)
        return where(mask, keep(share, x, axis, keepdims), 0)

    def forward(t: Any, y: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        mask = chosen(y, x, axis, keepdims)
        return sum_(where(mask, t, 0), axis=axis, keepdims=keepdims) / sum_(
            mask, axis=axis, dtype=t.dtype, keepdims=keepdims
        )

    return back, forward


_max, _min = _extreme(less), _extreme(greater)
max_ = reduction("max", _max[0], reducing(onp.maximum), jvp=[_max[1]])
min_ = reduction("min", _min[0], reducing(onp.minimum), jvp=[_min[1]])

# ------------------------------------------------------------------ constants
any_ = reduction("any", CONSTANT, saves="")
all_ = reduction("all", CONSTANT, saves="")
count_nonzero = primitive(
    "count_nonzero",
    numpy=onp.count_nonzero,
    vjp=CONSTANT,
    saves="",
    samples=sampled(((spread(2, 3) > 0,), {}), ((spread(2, 3) > 0,), {"axis": 1, "keepdims": True})),
)
argmax, argmin = (
    primitive(
        name,
        numpy=getattr(onp, name),
        vjp=CONSTANT,
        saves="",
        batch="reduction",
        takes=("reduction", "axis", "keepdims"),
        samples=sampled(
            ((spread(2, 3),), {}), ((spread(2, 3),), {"axis": 1}), ((spread(2, 3),), {"axis": 0, "keepdims": True})
        ),
    )
    for name in ("argmax", "argmin")
)


logsumexp = primitive(
    "logsumexp",
    numpy=lambda x, axis=None, keepdims=False: _logsumexp(x, axis, keepdims),
    vjp=[
        lambda g, y, x, axis=None, keepdims=False: times(
            keep(g, x, axis, keepdims), exp(x - keep(y, x, axis, keepdims))
        ),
    ],
    shape=lambda metas, params: Meta(
        reduced_shape(metas[0].shape, params.get("axis"), params.get("keepdims", False)), metas[0].dtype
    ),
    flops=per_input(3),
    batch="reduction",
    samples=sampled(
        ((spread(2, 3),), {}),
        ((spread(2, 3, 4),), {"axis": (0, 2), "keepdims": True}),
        ((spread(2, 3) * 1e3,), {"axis": 1}),
    ),
)


def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    """log(sum(exp(x))), shifted by the largest element so that exp never overflows."""
    top = onp.max(x, axis=axis, keepdims=True)
    top = onp.where(onp.isfinite(top), top, onp.zeros_like(top))
    with onp.errstate(divide="ignore"):  # log(0) is the answer where every element is -inf
        out = onp.log(onp.sum(onp.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else out.reshape(reduced_shape(onp.shape(x), axis))


# ------------------------------------------------------------------ definitions
def _among(a: Any, where_: Any, other: Any) -> Any:
    """The array to reduce, with `other` at the elements that `where=` leaves out."""
    a, where_ = as_array(a), option(where_, True)
    if where_ is True:
        return a
    if (wide := onp.broadcast_shapes(a.shape, onp.shape(where_))) != a.shape:
        raise ValueError(f"non-broadcastable operand with shape {a.shape} doesn't match the broadcast shape {wide}")
    return where(as_array(where_), a, other)


def _start(initial: Any, dtype: onp.dtype) -> Any:
    """`initial=` as NumPy takes it: assigned to an element of the result. None where there is none."""
    if initial is NOT_GIVEN or initial is None:
        return None
    if isinstance(initial, ARRAYS):
        return astype(initial, dtype=dtype)
    start = onp.empty((), dtype)
    start[()] = plain(initial)
    return start[()]


def total(row: Primitive, join: Callable, neutral: Any) -> Callable:
    """The definition of a sum or product: `where=` by the neutral element, `initial=` joined at the end."""

    def definition(
        a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True
    ) -> Any:
        if where is True and initial is NOT_GIVEN and type(a) in ARRAY_TYPES:  # the usual call
            return row(a, axis=axis, dtype=dtype, keepdims=keepdims is not NOT_GIVEN and bool(keepdims))
        out = row(_among(a, where, neutral), axis=axis, dtype=dtype, keepdims=bool(option(keepdims, False)))
        start = _start(initial, out.dtype)
        return out if start is None else join(out, start)

    return definition


def _limit(row: Primitive, join: Callable) -> Callable:
    """The definition of max or min: both `where=` and an empty array take `initial=`."""

    def definition(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True) -> Any:
        a, keepdims, where = as_array(a), bool(option(keepdims, False)), option(where, True)
        start = _start(initial, a.dtype)
        if start is None:
            if where is not True:
                raise ValueError(
                    f"reduction operation '{row.name}' does not have an identity, so `where` needs `initial`"
                )
            return row(a, axis=axis, keepdims=keepdims)
        a = _among(a, where, start)
        if not a.size and not count_of(a.shape, axis):
            return number_of(broadcast_to(as_array(start), shape=reduced_shape(a.shape, axis, keepdims)))
        return join(row(a, axis=axis, keepdims=keepdims), start)

    return definition


def _question(row: Primitive, neutral: bool) -> Callable:
    """The definition of any or all."""

    def definition(a: Any, axis: Any = None, keepdims: Any = False, where: Any = True) -> Any:
        return row(_among(a, where, neutral), axis=axis, keepdims=bool(option(keepdims, False)))

    return definition


defines(onp.sum, out=Out(sums="all"))(total(sum_, add, 0))
defines(onp.max, onp.amax)(_limit(max_, maximum))
defines(onp.min, onp.amin)(_limit(min_, minimum))
defines(onp.all)(_question(all_, True))
defines(onp.any)(_question(any_, False))


defines(onp.argmax)(spelled(argmax, "a | axis keepdims"))
defines(onp.argmin)(spelled(argmin, "a | axis keepdims"))


# Before NumPy 2.3; such a number of traced data is a guard of a graph.
COUNTS_ARE_INT = type(onp.count_nonzero(())) is int


@defines(onp.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    n = count_nonzero(as_array(a), axis=axis, keepdims=keepdims)
    return int(n) if COUNTS_ARE_INT and axis is None and not keepdims else n


def _counted(a: Any, axis: Any, where_: Any) -> Any:
    """How many elements of each group `where=` keeps."""
    dtype = a.dtype if a.dtype.kind in "fc" else onp.dtype(float)
    return sum_(broadcast_to(as_array(where_), shape=a.shape), axis=axis, dtype=dtype, keepdims=True)


def _shaped(r: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    return r if keepdims else number_of(reshape(r, shape=reduced_shape(a.shape, axis)))


@defines(onp.mean, out=Out(sums="floats"))
def _mean_of(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Any:
    a, keepdims, where = as_array(a), bool(option(keepdims, False)), option(where, True)
    if where is True:
        return mean(a, axis=axis, dtype=dtype, keepdims=keepdims)
    if dtype is None and a.dtype.kind not in "fc":
        dtype = onp.dtype(float)
    total = sum_(_among(a, where, 0), axis=axis, dtype=dtype, keepdims=True)
    return _shaped(total / _counted(a, axis, where), a, axis, keepdims)


def _spread_of(row: Primitive) -> Callable:
    def definition(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: Any = False,
        where: Any = True,
        mean: Any = NOT_GIVEN,
        correction: Any = NOT_GIVEN,
    ) -> Any:
        a, keepdims, where = as_array(a), bool(option(keepdims, False)), option(where, True)
        if correction is not NOT_GIVEN and ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = option(correction, ddof)
        if dtype is not None and a.dtype.kind == "c" and (dtype := onp.dtype(dtype)).kind == "c":
            a = a if a.dtype == dtype else astype(a, dtype=dtype)  # NumPy adds the squares up as complex numbers
            return astype(definition(a, axis, None, ddof, keepdims, where, mean), dtype=dtype)
        if dtype is not None and (dtype := onp.dtype(dtype)) != a.dtype:
            if dtype.kind not in "fc" or (dtype.kind == "c") != (a.dtype.kind == "c"):  # sums in steps NumPy rounds
                kernel, rest = getattr(onp, row.name), {} if where is True else {"where": unwrap(where, [])}
                return wrap(fallback(entry(row.name, kernel), [read(a), axis, dtype, None, ddof, keepdims], rest))
            a = astype(a, dtype=dtype)
        if where is True and mean is NOT_GIVEN:
            return row(a, axis=axis, ddof=ddof, keepdims=keepdims)
        centre = _mean_of(a, axis, keepdims=True, where=where) if mean is NOT_GIVEN else mean
        d = a - centre
        squares = real(d * conjugate(d)) if is_complex(d) else d * d  # of absolute values would have no curvature at 0
        total = sum_(_among(squares, where, 0), axis=axis, keepdims=True)
        out = _shaped(total / maximum(_counted(squares, axis, where) - ddof, 0), a, axis, keepdims)
        if row is var:
            return out
        same = equal(out, 0)  # where all elements are equal the root's slope is infinite: the subgradient 0, as above
        return sqrt(out + same) - same

    return definition


defines(onp.var, out=Out(sums="floats"))(_spread_of(var))
defines(onp.std, out=Out(sums="floats"))(_spread_of(std))


@defines(onp.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    a, keepdims = as_array(a), bool(option(keepdims, False))
    return max_(a, axis=axis, keepdims=keepdims) - min_(a, axis=axis, keepdims=keepdims)
