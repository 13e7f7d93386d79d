"""Rows of sorting and searching. Values that are moved keep their gradient; positions and counts are constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, read
from ..core.rows.dispatch import defines
from ..core.rows.primitive import CONSTANT, Meta, Primitive, primitive
from ..core.rows.state import recording
from ..core.rows.value import Host
from .arguments import as_array, operand, plain, spelled
from .facts import same, sampled, spread
from .indexing import add_along_axis, take, take_along_axis
from .shaping import reshape

INT = onp.dtype(onp.intp)


def _moved(g: Any, x: Any, order: Any, axis: int | None) -> Any:
    """g put back to where the elements came from; `order` says from where each was taken."""
    if axis is None:
        return reshape(add_along_axis(g, order, axis=0, shape=(x.size,)), shape=x.shape)
    return add_along_axis(g, order, axis=axis, shape=x.shape)


def _taken(t: Any, order: Any, axis: int | None) -> Any:
    return take_along_axis(reshape(t, shape=(-1,)) if axis is None else t, order, axis=0 if axis is None else axis)


argsort = primitive(
    "argsort",
    numpy=onp.argsort,
    vjp=CONSTANT,
    saves="",
    takes=("one", "axis"),
    samples=sampled(
        ((spread(3, 4),), {}), ((spread(3, 4),), {"axis": 0, "kind": "stable"}), ((spread(3, 4),), {"axis": None})
    ),
)
argpartition = primitive(
    "argpartition", numpy=onp.argpartition, vjp=CONSTANT, saves="", samples=sampled(((spread(3, 4),), {"kth": 2}))
)
sort = primitive(
    "sort",
    numpy=onp.sort,
    vjp=[lambda g, y, x, axis=-1, kind=None: _moved(g, x, argsort(x, axis=axis, kind=kind), axis)],
    jvp=[lambda t, y, x, axis=-1, kind=None: _taken(t, argsort(x, axis=axis, kind=kind), axis)],
    saves="in",
    shape=lambda metas, params: (
        same(metas, params) if params.get("axis", -1) is not None else Meta((metas[0].size,), metas[0].dtype)
    ),
    takes=("one", "axis"),
    samples=sampled(((spread(3, 4),), {}), ((spread(3, 4),), {"axis": 0}), ((spread(3, 4),), {"axis": None})),
)
partition = primitive(
    "partition",
    numpy=onp.partition,
    vjp=[
        lambda g, y, x, kth, axis=-1, kind="introselect": _moved(
            g, x, argpartition(x, kth=kth, axis=axis, kind=kind), axis
        )
    ],
    jvp=[
        lambda t, y, x, kth, axis=-1, kind="introselect": _taken(
            t, argpartition(x, kth=kth, axis=axis, kind=kind), axis
        )
    ],
    saves="in",
    samples=sampled(((spread(3, 4),), {"kth": 2}), ((spread(3, 4),), {"kth": (0, 2), "axis": None})),
)


def constants(names: str, *arrays: Any, **facts: Any) -> tuple[Primitive, ...]:
    return tuple(
        primitive(name, numpy=getattr(onp, name), vjp=CONSTANT, saves="", samples=sampled((arrays, {})), **facts)
        for name in names.split()
    )


searchsorted, digitize = (
    primitive(name, numpy=getattr(onp, name), vjp=CONSTANT, saves="", samples=sampled((arrays, {})))
    for name, arrays in [
        ("searchsorted", (onp.arange(4.0), spread(3, low=0, high=4))),
        ("digitize", (spread(3, low=0, high=4), onp.arange(4.0))),
    ]
)
nonzero, flatnonzero, argwhere = constants(
    "nonzero flatnonzero argwhere", spread(2, 3) > 0, dynamic="shape", takes=("arrays", 1)
)
(isclose,) = constants("isclose", spread(2, 3), spread(2, 3), takes=("arrays", 2))
allclose, array_equal = constants("allclose array_equal", spread(2, 3), spread(2, 3))
(isin,) = constants("isin", onp.arange(4), onp.array([1, 2]), scalar=False)
# `==` and `!=` of what no ufunc compares: records, an array and a text.
RECORDS = onp.array([(1, 2.0), (3, 4.0)], "i4,f8"), onp.array([(1, 2.0), (3, 5.0)], "i4,f8")
for _name, _kernel in (("equal", operator.eq), ("not_equal", operator.ne)):
    primitive(f"{_name}_records", _kernel, vjp=CONSTANT, saves="", samples=sampled((RECORDS, {})))


# ------------------------------------------------------------------ definitions
defines(onp.digitize)(spelled(digitize, "x bins | right"))
defines(onp.nonzero)(spelled(nonzero, "a |"))
defines(onp.flatnonzero)(spelled(flatnonzero, "a |"))
defines(onp.argwhere)(spelled(argwhere, "a |"))
defines(onp.isin)(spelled(isin, "element test_elements | assume_unique invert kind"))


def _answer(spelling: Callable) -> Callable:
    """The definition of a row whose result is Python's bool, as NumPy's is, but in a graph that has no values."""

    def definition(*args: Any, **kwargs: Any) -> Any:
        y = spelling(*args, **kwargs)
        return y if recording() else bool(y)

    return definition


def _close(row: Primitive) -> Callable:
    """The definition of np.isclose or np.allclose: tolerances are parameters, unless they are traced or on a device."""

    def close(a: Any, b: Any, *more: Any, **options: Any) -> Any:
        return within(a, b, *more, **options) if more or options else row(operand(a), operand(b))

    def within(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
        if any(type(t) in ARRAY_TYPES and type(read(t)) is not Host for t in (rtol, atol)):
            return row(*map(operand, (a, b, rtol, atol)), equal_nan=equal_nan)
        rtol, atol = (read(t) if type(t) in ARRAY_TYPES else t for t in (rtol, atol))
        return row(operand(a), operand(b), rtol=rtol, atol=atol, equal_nan=equal_nan)

    return close


defines(onp.isclose)(_close(isclose))
defines(onp.allclose)(_answer(_close(allclose)))
defines(onp.array_equal)(_answer(spelled(array_equal, "a1 a2 | equal_nan")))


@defines(onp.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return searchsorted(as_array(a), as_array(v), side=side, sorter=plain(sorter))


def _kind(function: Callable, a: Any, kind: Any, order: Any, stable: bool | None) -> Any:
    """Which kind of sorting is asked for, or NumPy's exception."""
    if kind is not None or order is not None or stable is not None:
        function(onp.zeros(1, a.dtype), kind=kind, order=order, **({} if stable is None else {"stable": stable}))
    return "stable" if stable else kind


def _fields(order: Any) -> dict:
    """The fields that records are compared by; these have no gradients."""
    return {} if order is None else {"order": order}


@defines(onp.sort)
def _sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, stable: bool | None = None) -> Any:
    a = as_array(a)
    return sort(a, axis=axis, kind=_kind(onp.sort, a, kind, order, stable), **_fields(order))


@defines(onp.argsort)
def _argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, stable: bool | None = None) -> Any:
    a = as_array(a)
    return argsort(a, axis=axis, kind=_kind(onp.argsort, a, kind, order, stable), **_fields(order))


@defines(onp.partition)
def _partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    a = as_array(a)
    onp.partition(onp.zeros(1, a.dtype), 0, kind=kind, order=order)  # or NumPy's exception
    return partition(a, kth=plain(kth), axis=axis, kind=kind, **_fields(order))


@defines(onp.argpartition)
def _argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    a = as_array(a)
    onp.partition(onp.zeros(1, a.dtype), 0, kind=kind, order=order)  # or NumPy's exception
    return argpartition(a, kth=plain(kth), axis=axis, kind=kind, **_fields(order))


@defines(onp.unique)
def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    **options: Any,
) -> Any:
    """The values are taken from where NumPy found them first, so they keep their gradient."""
    a = as_array(ar)
    _, first, *rest = onp.unique(plain(a), True, return_inverse, return_counts, axis, **options)
    values = take(reshape(a, shape=(a.size,)) if axis is None else a, first, axis=axis or 0)
    results = (values, *([first] if return_index else []), *rest)
    return values if len(results) == 1 else results
