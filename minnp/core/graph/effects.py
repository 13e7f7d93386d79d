"""What graphs call besides rows and public functions: results by number, guards, and writes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..rows.error_state import errstate

# In-place operators, and how they are written.
IN_PLACE = {
    operator.iadd: "+=",
    operator.isub: "-=",
    operator.imul: "*=",
    operator.itruediv: "/=",
    operator.ifloordiv: "//=",
    operator.imod: "%=",
    operator.ipow: "**=",
    operator.imatmul: "@=",
    operator.iand: "&=",
    operator.ior: "|=",
    operator.ixor: "^=",
    operator.ilshift: "<<=",
    operator.irshift: ">>=",
}


def pick(results: Any, i: int) -> Any:
    """One of a row's several results."""
    return results[i]


def pause(*values: Any) -> None:
    """Where a graph stops for its caller to see these values, before it goes on to its outputs."""


def inside(x: int, least: int, most: int) -> bool:
    """Whether a number of Python's lies between these."""
    return least <= x <= most


def is_loop(node: Any) -> bool:
    """Whether a node is a compiled loop, which may raise, or find that Python has to run it."""
    return getattr(node.target, "name", "") == "loop"


class Diverged(Exception):
    """A guard did not hold: these arguments take another path."""


def guard(value: Any, kind: str, expected: Any) -> None:
    """Raise Diverged unless things are as they were at capture.

    kind    "value": value equals expected; "shape": its shape does; "dtype": its dtype does; "array": it is an array,
            not a number; "axes": one of the values has axes; "given": it is not None
    """
    if kind == "shape":
        if onp.shape(value) != expected:
            raise Diverged
    elif kind == "dtype":
        if value.dtype != expected:
            raise Diverged
    elif kind == "array":
        if not hasattr(value, "__setitem__"):
            raise Diverged
    elif kind == "given":
        if value is None:
            raise Diverged
    elif kind == "axes":
        if not any(map(onp.ndim, value)):
            raise Diverged
    elif isinstance(expected, (onp.ndarray, onp.generic)):
        number = getattr(value, "shape", None) == expected.shape == ()  # of most branches, and array_equal takes 4 us
        if not (number and value == expected) and not onp.array_equal(
            value, expected, equal_nan=expected.dtype.kind in "fc"
        ):
            raise Diverged
        if expected.dtype.kind in "fc" and not expected.all() and _signs(value) != _signs(expected):
            raise Diverged
    elif value != expected or (
        not expected and type(expected) in (float, complex) and _signs(value) != _signs(expected)
    ):
        raise Diverged


def _signs(x: Any) -> bytes:
    """Which numbers are -0.0, in their real and imaginary parts: what Python reads of a number may tell."""
    x = onp.atleast_1d(x)
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return b"".join([((p == 0) & onp.signbit(p)).tobytes() for p in parts])


def fails(row: Callable, error: type, args: tuple, kwargs: dict) -> None:
    """Raise Diverged unless row(*args, **kwargs) raises such an error: one that the captured program caught."""
    try:
        row(*args, **kwargs)
    except error:
        return
    raise Diverged


class Under:
    """A row run under the floating point error handling that the program set around it."""

    makes_new = False

    def __init__(self, row: Any, handling: dict[str, str]) -> None:
        self.row, self.handling, self.__name__ = row, handling, row.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with errstate(**self.handling):
            return self.row(*args, **kwargs)


def in_place(function: Callable | str, target: Any, *args: Any, **kwargs: Any) -> Any:
    """What `target` is after function(target, *args, **kwargs) wrote to it: computed on a copy, target stays as it is.

    function    an in-place operator (operator.iadd), a method's name ("sort"), or a function that writes to its first
                argument (np.copyto)
    """
    copy = target.copy() if hasattr(target, "copy") else target
    if isinstance(function, str):
        getattr(copy, function)(*args, **kwargs)
        return copy
    result = function(copy, *args, **kwargs)
    return result if function in IN_PLACE else copy


def assign(target: Any, value: Any) -> None:
    """target[...] = value: the one real write of a graph, to an array its caller passed in."""
    target[...] = value


def into(out: Any, function: Callable, *args: Any, **kwargs: Any) -> None:
    """function(*args, out=out)"""
    function(*args, out=out, **kwargs)
