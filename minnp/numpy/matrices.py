"""How the functions of numpy.linalg are expressed in rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, read
from ..core.rows.dispatch import DEFINITIONS, defines
from ..core.rows.primitive import Primitive
from ..core.rows.value import Tracer
from . import factors, systems
from .arguments import as_array, number_of, spelled
from .facts import NUMPY_2, axes_of
from .indexing import take_along_axis
from .rebound import instead, rebound
from .reductions import max_, min_, sum_
from .selection import argsort
from .shaping import astype, expand_dims, transpose
from .ufuncs import absolute, isnan, not_equal, real, sign, where

la = onp.linalg


# ------------------------------------------------------------------ rows
@cache
def _result_type(function: Callable) -> type:
    """The named tuple that NumPy's function returns."""
    return type(function(onp.eye(1)))


def _named(function: Callable, definition: Callable) -> None:
    """Define a NumPy function that answers with a named tuple."""

    def named(*args: Any, **kwargs: Any) -> Any:
        out = definition(*args, **kwargs)
        return _result_type(function)(*out) if type(out) is tuple else out

    defines(function)(named)


def _spell(function: Callable | None, row: Primitive, signature: str) -> None:
    if function is not None:  # not in this NumPy
        defines(function)(spelled(row, signature))


_spell(la.inv, systems.inv, "a |")
_spell(la.det, systems.det, "a |")
_spell(la.solve, systems.solve, "a b |")
_spell(la.pinv, factors.pinv, "a | rcond hermitian rtol")
_spell(la.lstsq, factors.lstsq, "a b | rcond")
_spell(la.matrix_rank, systems.matrix_rank, "A | tol hermitian rtol")
_spell(la.eigvals, factors.eigvals, "a |")
_spell(la.eigvalsh, factors.eigvalsh, "a | UPLO")
_spell(la.cholesky, factors.cholesky, "a | upper")
_spell(getattr(la, "svdvals", None), factors.svdvals, "x |")
_named(la.slogdet, spelled(systems.slogdet, "a |"))
_named(la.eig, spelled(factors.eig, "a |"))
_named(la.eigh, spelled(factors.eigh, "a | UPLO"))


@defines(la.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    out = factors.qr(as_array(a), mode=mode)
    return _result_type(la.qr)(*out) if type(out) is tuple and mode != "raw" else out


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = as_array(a)
    if not hermitian:
        return factors.svd(a, full_matrices=full_matrices) if compute_uv else factors.svdvals(a)
    w, v = factors.eigh(a) if compute_uv else (factors.eigvalsh(a), None)
    order = argsort(-absolute(w), axis=-1)
    w = take_along_axis(w, order, axis=-1)
    if not compute_uv:
        return absolute(w)
    u = take_along_axis(v, expand_dims(order, axis=-2), axis=-1)
    return u, absolute(w), systems.H(u * systems.row_of(sign(w)))


_named(la.svd, _svd)


# ------------------------------------------------------------------ norms
@defines(la.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors and matrices; all have gradient 0 where x is 0."""
    x = as_array(x)
    if not x.size and ord is not None and isinstance(ord, (int, float, str)):
        out = la.norm(onp.zeros(x.shape, x.dtype), ord, axis, keepdims)  # NumPy knows which
        return number_of(out + astype(real(sum_(x, axis=axis, keepdims=keepdims)) * 0, dtype=out.dtype))
    if x.dtype.kind not in "fc":
        x = astype(x, dtype=onp.dtype(float))
    if axis is None:
        if ord is None or (x.ndim == 1 and _is(ord, 2)) or (ord in ("f", "fro") and x.ndim == 2):
            return systems.norm(x, axis=None, keepdims=keepdims)
        axis = tuple(range(x.ndim))
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return number_of(_vector_norm(x, ord, axes[0], keepdims))
    if len(axes) == 2:
        return number_of(_matrix_norm(x, ord, axes, keepdims))
    raise ValueError("Improper number of dimensions to norm.")


def _is(ord: Any, order: int) -> bool:
    """Whether the order of a norm is this one, which has a simpler formula: a traced order may have a gradient."""
    return not (type(ord) in ARRAY_TYPES and type(read(ord)) is Tracer) and ord == order


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if ord is None or _is(ord, 2):
        return systems.norm(x, axis=axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    size = absolute(x)
    if ord == 0:
        return sum_(astype(not_equal(size, 0), dtype=size.dtype), axis=axis, keepdims=keepdims)
    if abs(ord) == onp.inf:
        return (max_ if ord > 0 else min_)(size, axis=axis, keepdims=keepdims)
    if _is(ord, 1):
        return sum_(size, axis=axis, keepdims=keepdims)
    # powers of 0 have no derivative: put 1 in their place, and the result's 0 back
    zero = size == 0
    powers = where(zero, 0.0 if ord > 0 else onp.inf, where(zero, 1.0, size) ** ord)
    total = sum_(powers, axis=axis, keepdims=keepdims)
    zero = total == 0
    root = where(zero, 0.0, where(zero, 1.0, total) ** (1.0 / ord))
    return root if root.dtype == size.dtype else astype(root, dtype=size.dtype)  # NumPy 1 widens numbers


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in (None, "fro", "f"):
        return systems.norm(x, axis=axes, keepdims=keepdims)
    rows, columns = axes
    if ord in (1, -1, onp.inf, -onp.inf):
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = sum_(absolute(x), axis=inner, keepdims=True)
        out = (max_ if ord > 0 else min_)(sums, axis=outer, keepdims=True)
    elif ord in (2, -2, "nuc"):
        rest = [i for i in range(x.ndim) if i not in axes]
        values = factors.svdvals(transpose(x, axes=(*rest, *axes)))
        reduce = sum_ if ord == "nuc" else max_ if ord == 2 else min_
        out = reduce(values, axis=-1, keepdims=False)
        return out.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else out
    else:
        raise ValueError(
            "Invalid norm order for matrices." if not isinstance(ord, str) else f"Invalid norm order '{ord}'"
        )
    return out if keepdims else out.reshape([n for i, n in enumerate(x.shape) if i not in axes])


@defines(la.cond)
def _cond(x: Any, p: Any = None) -> Any:
    x = as_array(x)
    if not x.size or x.ndim < 2:
        return NotImplemented
    singular = p in (None, 2, -2)
    try:
        found = factors.svdvals(x) if singular else systems.inv(x)
    except la.LinAlgError:
        return NotImplemented  # of what has none; NumPy knows which condition that is
    if singular:
        over, under = found[..., 0], found[..., -1]
        if p == -2:
            over, under = under, over
        one, inf = map(under.dtype.type, (1, onp.inf))
        out = where(under == 0, inf, over / where(under == 0, one, under))
    else:
        out = _norm(x, p, (-2, -1)) * _norm(found, p, (-2, -1))
        if not NUMPY_2 and x.dtype.kind == "c":
            out = astype(out, dtype=x.dtype)  # NumPy 1 answers in x's dtype
    return where(isnan(out) & ~isnan(x).any(axis=(-2, -1)), out.dtype.type(onp.inf), out)[()]


# ------------------------------------------------------------------ NumPy's own Python
REBOUND = "cross diagonal matmul matrix_norm matrix_power matrix_transpose multi_dot outer tensordot tensorinv "
REBOUND += "tensorsolve trace vecdot vector_norm"

_chain_order = inspect.unwrap(la.multi_dot).__globals__["_multi_dot_matrix_chain_order"]


def _order(arrays: Any, return_costs: bool = False) -> Any:
    """Of their shapes alone: its tables are the host's, wherever the arrays are."""
    return _chain_order([onp.broadcast_to(0.0, a.shape) for a in arrays], return_costs)


instead(_chain_order, _order)

for _name in REBOUND.split():  # names of both NumPy 1 and 2
    if hasattr(la, _name) and getattr(la, _name) not in DEFINITIONS:
        defines(getattr(la, _name))(rebound(getattr(la, _name)))
