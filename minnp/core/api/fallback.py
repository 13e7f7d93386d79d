"""Calls without a definition: NumPy's callable as a row without rules."""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType
from typing import Any

import numpy as onp

from ... import errors
from ..arrays.array import ends_capture, of_subclass, unwrap
from ..rows.dispatch import bind
from ..rows.primitive import Primitive
from ..rows.pytree import CONTAINERS, replaced
from ..rows.state import watched
from ..rows.value import Buffer, Host, Tracer, concrete


class Leaf:
    """The place of the i-th array argument in a fallback call's frozen arguments."""

    __slots__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i

    def __repr__(self) -> str:
        return f"Leaf({self.i})"


WRITING = {"ndarray.tofile", "ndarray.dump"}  # files, of which no graph tells


def writes_traced(e: Any, values: list, options: dict) -> bool:
    """Whether a call without a definition writes to a traced array."""
    out = options.get("out")
    return any(type(v) is Tracer for v in (*(values if e.writes else ()), *(out if type(out) is tuple else (out,))))


def fallback(e: Any, values: list, options: dict) -> Any:
    """Run NumPy's callable as a row without rules: its array arguments are the row's, the rest is frozen."""
    if writes_traced(e, values, options):
        raise errors.TracedValueError(
            f"{e.name} writes to or from a traced array in a way that has no gradient; assign with x[...] = v, "
            "or make a new array"
        )
    row = e.row
    if row is None:
        host = e.host

        def kernel(*leaves: Any, arguments: Any) -> Any:
            args, kwargs = fill(arguments, leaves)
            return host(*args, **kwargs)

        kernel.host = host
        row = e.row = Primitive(e.name, kernel, view=True)
    if watched() and any(map(_calls, (*values, *options.values()))):
        ends_capture(f"{e.name} calls a function, which may use what is traced")
    files = any(hasattr(v, "readline") for v in (*values, *options.values()))
    if watched() and e.name in WRITING:
        ends_capture(f"{e.name} writes to a file")
    if watched() and not (files and ends_capture("the function reads an open file")):
        # an iterator could be read by the first call alone
        values = [unwrap(list(v), []) if isinstance(v, Iterator) else v for v in values]
    leaves: list = []
    arguments = freeze((tuple(values), options), leaves)
    y = bind(row, leaves, {"arguments": arguments})
    made = concrete(y)
    if of_subclass(made):
        while type(y) is Tracer:
            y.trace.leave(e.name, made)
            y = y.value
    return y


def _calls(x: Any) -> bool:
    """Whether an argument is a function of Python's, or a container of such."""
    if type(x) in CONTAINERS:
        return any(map(_calls, x.values() if type(x) is dict else x))
    return callable(x) and not isinstance(x, (type, onp.ufunc, BuiltinFunctionType))


def freeze(x: Any, leaves: list) -> Any:
    if isinstance(x, (Host, Tracer, Buffer)):
        leaves.append(x)
        return Leaf(len(leaves) - 1)
    return replaced(x, lambda e: freeze(e, leaves), copies=True) if type(x) in CONTAINERS else x


def fill(x: Any, leaves: Any) -> Any:
    if type(x) is Leaf:
        return leaves[x.i]
    return replaced(x, lambda e: fill(e, leaves)) if type(x) in CONTAINERS else x
