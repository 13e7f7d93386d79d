"""A row as one MXNet operator.

A lowering sees shapes, dtypes and parameters, never data, and answers with a Lowered; where the operator cannot do what
NumPy does, it raises BackendUnsupportedError with the reason. Axes that an operator treats alike are merged first, so
neither MXNet's limit on the number of axes nor its dislike of shape () is visible outside. The lowerings themselves are
in elementwise.py, shapes.py, algebra.py and neural.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as onp

from ...errors import BackendUnsupportedError

Shape = tuple[int, ...]
MOST_AXES = 5  # of a broadcasting operator, after merging


class Argument(NamedTuple):
    """One argument of the operator: which value, as which shape and dtype.

    value   None: zeros, where the result does not depend on it
    """

    value: int | None
    shape: Shape
    dtype: str


class Lowered(NamedTuple):
    """One MXNet operator that computes a row.

    operator    MXNet's name
    attributes  its parameters, as texts
    arguments   where its inputs come from
    shape       NumPy's shape of the result, or a tuple of shapes, or None: the operator's own
    training    it must run in training mode
    blocked     its results may come in a blocked layout
    results     (shape, dtype) of every result, for operators that cannot infer them
    guard       (values) -> nothing; refuses data that the operator treats differently
    before      (values) -> the arrays for the arguments, where they are not the values themselves
    after       (values, results) -> the row's results, where they are not the operator's
    scalar      a result of shape () is a NumPy scalar, as from a ufunc, and not an array
    checked     a result with a NaN is thrown away: NumPy has another one, maybe
    derivative  not the operator f(x, w) but its gradient for w; the arguments are x, w and the cotangent
    """

    operator: str
    attributes: dict[str, str]
    arguments: tuple[Argument, ...]
    shape: Any = None
    training: bool = False
    blocked: bool = False
    results: tuple | None = None
    derivative: bool = False
    scalar: bool = True
    guard: Callable | None = None
    before: Callable | None = None
    after: Callable | None = None
    checked: bool = False


class Meta(NamedTuple):
    shape: Shape
    dtype: str


Lowering = Callable[[Sequence[Meta], dict[str, Any]], Lowered]


def finite(values: Sequence[Any]) -> None:
    """A guard: what MXNet makes of infinities and NaN is its own."""
    flat = onp.ravel(values[0])
    if not onp.isfinite(onp.dot(flat, flat)):  # one pass; refusing what overflows here is no mistake
        raise refuse("infinities or NaN, or values so large that their squares are")


def numbers(result: Any) -> None:
    """Refuses a result with a NaN."""
    if onp.isnan(onp.sum(result)):
        raise refuse("infinities or NaN among what is added up")


def refuse(reason: str) -> BackendUnsupportedError:
    return BackendUnsupportedError(reason)


def only(params: dict[str, Any], **known: Any) -> tuple:
    """The values of the known parameters, with their defaults; refuses any other that is not None."""
    for name, value in params.items():
        if name not in known and value is not None:
            raise refuse(f"MXNet's operator has no {name}=")
    return tuple(params.get(name, default) for name, default in known.items())


def text(value: Any) -> str:
    """A parameter as MXNet reads it."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    return str(value.item() if isinstance(value, onp.generic) else value)


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """axis as sorted non-negative integers; None is every axis."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    try:
        axes = tuple(sorted(range(ndim)[a] for a in axes))
    except (IndexError, TypeError):
        raise refuse(f"axis {axis} is not one of {ndim} axes") from None  # NumPy raises its own error
    if len({*axes}) < len(axes):
        raise refuse(f"axis {axis} repeats")
    return axes


# ------------------------------------------------------------------ shapes
def merged(shapes: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """NumPy's broadcast shape, and the shapes with neighbouring axes that broadcast alike merged into one."""
    try:
        result = onp.broadcast_shapes(*shapes)
    except ValueError:
        raise refuse(f"shapes {', '.join(map(str, shapes))} do not broadcast") from None
    padded = [(1,) * (len(result) - len(shape)) + shape for shape in shapes]
    out: list[list[int]] = [[] for _ in shapes]
    previous = None
    for axis, size in enumerate(result):
        if size == 1:
            continue
        here = tuple(shape[axis] == 1 for shape in padded)
        for sizes, single in zip(out, here, strict=True):
            if here == previous:
                sizes[-1] *= 1 if single else size
            else:
                sizes.append(1 if single else size)
        previous = here
    if len(out[0]) > MOST_AXES:
        raise refuse(f"broadcasting over more than {MOST_AXES} axes")
    return result, [tuple(sizes) or (1,) for sizes in out]


def folded(shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """shape with neighbouring axes merged where all of them, or none, are in `axes`; and the merged axes."""
    sizes: list[int] = []
    kept: list[bool] = []
    for axis, size in enumerate(shape):
        if kept and kept[-1] == (axis not in axes):
            sizes[-1] *= size
        else:
            sizes.append(size)
            kept.append(axis not in axes)
    if not sizes:
        return (1,), (0,)
    return tuple(sizes), tuple(i for i, keep in enumerate(kept) if not keep)


def reduced(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)
