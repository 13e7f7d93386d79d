"""Functions that NumPy writes in Python: differentiable as they stand, once their code runs on our functions.

Everything here is `rebound` unless rows say it better. A function that is a row, or that another file of this package
defines, is not in these lists.
"""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import Any

import numpy as onp

from ..core.api.namespace import wrapped
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, read
from ..core.rows.dispatch import DEFINITIONS, defines, knows
from ..core.rows.value import Tracer, is_scalar
from .arguments import as_array, number_of, option, plain
from .facts import NUMPY_2, axes_of, reduced_shape
from .indexing import take, take_along_axis
from .products import convolve
from .rebound import instead, rebound
from .reductions import sum_
from .selection import sort
from .shaping import concatenate, reshape, transpose
from .ufuncs import equal, isnan, maximum, square, where

REBOUND = """
    alltrue angle append apply_along_axis apply_over_axes array_equiv asfarray atleast_1d atleast_2d
    atleast_3d average block column_stack corrcoef cov cross cumproduct cumulative_prod cumulative_sum delete
    diag_indices_from dsplit dstack ediff1d extract fliplr flipud fromfunction geomspace histogram histogram2d
    histogram_bin_edges histogramdd hsplit hstack in1d insert intersect1d iscomplex isneginf isposinf
    isreal ix_ kron linspace logspace matrix_transpose meshgrid moveaxis msort nanargmax nanargmin nancumprod
    nancumsum nanpercentile nanprod nanquantile nansum outer percentile poly polyadd polyder polydiv
    polyfit polyint polysub polyval product quantile real_if_close require resize rollaxis roots rot90 round_
    row_stack select setdiff1d setxor1d sometrue sort_complex split tile trapezoid trapz tril_indices_from
    trim_zeros triu_indices_from union1d unique_all unique_counts unique_inverse unique_values unstack unwrap
    vander vsplit vstack
"""

for _name in REBOUND.split():  # names of both NumPy 1 and 2
    if hasattr(onp, _name) and getattr(onp, _name) not in DEFINITIONS:
        defines(getattr(onp, _name))(rebound(getattr(onp, _name)))


DYNAMIC = """
    compress extract intersect1d setdiff1d setxor1d trim_zeros union1d unique unique_all unique_counts unique_inverse
    unique_values where
"""  # `where` of a condition alone
VIEWS = """
    atleast_1d atleast_2d atleast_3d dsplit fliplr flipud hsplit moveaxis rollaxis rot90 split unstack vsplit
"""
PERHAPS_VIEWS = "asfarray asmatrix ix_ mat real_if_close require round_ trim_zeros"
for _names, _facts in (
    *((DYNAMIC, {"dynamic": "shape"}), (VIEWS, {"view": "always"})),
    (PERHAPS_VIEWS, {"view": "perhaps"}),
):
    knows(*(vars(onp)[name] for name in _names.split() if name in vars(onp)), **_facts)


# ------------------------------------------------------------------ where NumPy's code leaves NumPy's functions
@defines(onp.nanmedian)
def _nanmedian(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The middle of the sorted elements, NaNs being last (NumPy's code goes through masked arrays)."""
    a, keepdims = as_array(a), bool(option(keepdims, False))
    over = axes_of(axis, a.ndim)
    if a.dtype.kind not in "fc":  # no NaN, and no half a step between two integers
        return DEFINITIONS[onp.median](a, axis, keepdims=keepdims)
    if not a.size:
        return DEFINITIONS[onp.nanmean](a, axis, keepdims=keepdims)
    rest = [i for i in range(a.ndim) if i not in over]
    rows = reshape(transpose(a, axes=(*rest, *over)), shape=(*(a.shape[i] for i in rest), -1))
    rows = sort(rows, axis=-1)
    n = sum_(~isnan(rows), axis=-1, keepdims=True)
    low, high = maximum(n - 1, 0) // 2, n // 2 % rows.shape[-1]
    wide = rows.astype("f4") if a.dtype.char == "e" else rows  # in which the sum of two is finite
    middle = take_along_axis(wide, low, axis=-1) + take_along_axis(wide, high, axis=-1)
    middle = where(equal(low, high), take_along_axis(rows, low, axis=-1), (middle / 2).astype(a.dtype))
    out = reshape(middle, shape=reduced_shape(a.shape, axis, keepdims))
    return out if keepdims else number_of(out)


_gradient_by_numpy = rebound(onp.gradient)


@defines(onp.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """NumPy takes one step where coordinates are evenly spaced, and the derivative would be that of one step alone: of
    traced coordinates the formula is that of any."""
    given = [as_array(x) for x in varargs]
    f, moves = as_array(f), lambda x: isinstance(read(x), Tracer) and x.ndim == 1 and x.dtype.kind != "b"
    if f.dtype.kind == "b" or not any(map(moves, given)):
        return _gradient_by_numpy(f, *varargs, axis=axis, edge_order=edge_order)
    axes = axes_of(axis, f.ndim)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    out = [
        _along_coordinates(f, x, d, edge_order)
        if x.ndim == 1
        else _gradient_by_numpy(f, x, axis=d, edge_order=edge_order)
        for x, d in zip(given, axes)
    ]
    return out[0] if len(out) == 1 else tuple(out) if NUMPY_2 else out


def _along_coordinates(f: Any, x: Any, axis: int, edge_order: int) -> Any:
    """The derivative of the parabola through three neighbours, at the ends of the line through two for order 1."""
    n = f.shape[axis]
    if x.shape != (n,):
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if n <= edge_order:
        raise ValueError(
            f"Shape of array too small to calculate a numerical gradient, at least {edge_order + 1} elements"
        )
    f, x = (a if a.dtype.kind in "fc" else a.astype(float) for a in (f, x))
    at = lambda start, stop: (*(slice(None),) * axis, slice(start, stop))
    h = reshape(x[1:] - x[:-1], shape=(-1, *(1,) * (f.ndim - 1 - axis)))
    slopes = (f[at(1, None)] - f[at(None, -1)]) / h
    near, far = h[:-1], h[1:]
    inner = (slopes[at(None, -1)] * far + slopes[at(1, None)] * near) / (near + far)
    first, last = slopes[at(None, 1)], slopes[at(-1, None)]
    if edge_order == 2:
        first = first + (first - slopes[at(1, 2)]) * h[:1] / (h[:1] + h[1:2])
        last = last + (last - slopes[at(-2, -1)]) * h[-1:] / (h[-1:] + h[-2:-1])
    return concatenate(first, inner, last, axis=axis).astype(f.dtype)


_divided = rebound(onp.split)


_of_conditions = rebound(onp.piecewise)


@defines(onp.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> Any:
    """NumPy's code, to which one condition is one whose elements are no arrays; rebound code takes traced numbers for
    arrays."""
    listed = isinstance(condlist, (list, tuple)) or (type(condlist) in ARRAY_TYPES and condlist.ndim)
    first = condlist[0] if listed and len(condlist) else None
    if type(first) in ARRAY_TYPES and is_scalar(read(first)) and as_array(x).ndim:
        condlist = [condlist]
    return _of_conditions(x, condlist, funclist, *args, **kwargs)


@defines(onp.split, takes=("parts", "getitem"))
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts of one length are views, one after the other; anything else is NumPy's code."""
    n = indices_or_sections
    if type(n) is int and n > 0 and type(axis) is int and -1 <= axis < (ndim := getattr(ary, "ndim", 0)):
        length = ary.shape[axis]
        if length and length % n == 0:
            before, step = (slice(None),) * (axis % ndim), length // n
            return [ary[(*before, slice(i, i + step))] for i in range(0, length, step)]
    return _divided(ary, indices_or_sections, axis)


_padded = rebound(onp.pad)
_as_pairs = inspect.unwrap(onp.pad).__globals__["_as_pairs"]
_pairs_of_values = rebound(_as_pairs)


def _pairs(x: Any, ndim: int, as_index: bool = False) -> Any:
    """Widths are numbers of the host's: as arrays on a device each of them would be waited for, many times."""
    return _as_pairs(plain(x), ndim, True) if as_index else _pairs_of_values(x, ndim)


instead(_as_pairs, _pairs)


@defines(onp.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Zeros all around are one write into an array of them, elements of the array itself are taken along each axis;
    anything else is NumPy's code, which goes side by side."""
    fill, array = kwargs.get("constant_values", 0), as_array(array)
    widths = _widths(pad_width, array.ndim)
    taken = mode in ("edge", "reflect", "symmetric", "wrap") and not kwargs
    if taken and widths and array.size and not array.flags.fnc:
        for d, (n, around) in enumerate(zip(array.shape, widths)):
            array = take(array, onp.pad(onp.arange(n), around, mode), axis=d)
        return array
    zeros = type(fill) in (int, float) and str(fill) in ("0", "0.0")  # which -0.0 is not
    plainly = mode == "constant" and {*kwargs} <= {"constant_values"} and zeros
    if widths is None or not plainly:
        return _padded(array, pad_width, mode, **kwargs)
    shape = tuple(a + n + b for n, (a, b) in zip(array.shape, widths))
    with devices.beside((array,)) or nullcontext():
        out = wrapped("", "zeros", onp.zeros)(shape, array.dtype, "F" if array.flags.fnc else "C")
    out[tuple(slice(a, a + n) for n, (a, b) in zip(array.shape, widths))] = array
    return out


def _widths(given: Any, ndim: int) -> list | None:
    """(before, after) for every axis, of whole numbers that say so plainly; None for anything else."""
    parts = given if isinstance(given, (tuple, list)) else [given]
    flat = [n for p in parts for n in (p if isinstance(p, (tuple, list)) else [p])]
    if not ndim or not all(type(n) is int and n >= 0 for n in flat):
        return None
    try:
        return onp.broadcast_to(onp.array(given), (ndim, 2)).tolist()
    except ValueError:
        return None


def _coefficients(p: Any) -> Any:
    """A polynomial without its leading zeros, as poly1d has it."""
    p = as_array(p.coeffs if isinstance(p, onp.poly1d) else p)
    if p.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    p = reshape(p, shape=(-1,))
    first = onp.flatnonzero(plain(p))
    return p[first[0] :] if first.size else p[:1] if p.size else onp.zeros(1, p.dtype)


@defines(onp.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    return convolve(_coefficients(a1), _coefficients(a2))


_numpys_i0 = rebound(onp.i0)


@defines(onp.i0)
def _i0(x: Any) -> Any:
    """NumPy's code, which goes by |x|: at 0 the beginning of its series has the derivatives, up to the fifth."""
    x = as_array(x)
    zero = equal(x, 0)
    t = square(where(zero, x, 0.0))
    return as_array(_numpys_i0(x) + (t / 4 + square(t) / 64))[...]


@defines(onp.kaiser)
def _kaiser(M: Any, beta: Any) -> Any:
    """The window moves with beta; its length is a constant (NumPy's code puts both into one array)."""
    n, i0 = int(plain(M)), DEFINITIONS[onp.i0]
    if n <= 1:
        return onp.kaiser(n, plain(beta))
    middle, beta = (n - 1) / 2.0, as_array(beta)
    beta = beta.astype(onp.result_type(beta.dtype, float))
    return i0(beta * onp.sqrt(1 - ((onp.arange(n) - middle) / middle) ** 2.0)) / i0(beta)
