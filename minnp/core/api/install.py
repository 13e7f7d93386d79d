"""The fast path in C++ (compiled/fastpath.cpp), where minnp was installed with a compiler, before the general one.

A small call then costs little more than NumPy's own. MINNP_COMPILED=0 keeps to Python.
"""

from __future__ import annotations

import copyreg
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays import array
from ..compiled import fastpath
from ..cpu import bound
from ..cpu.elementwise import IN_PLACE, KERNELS, LEAST
from ..rows.dispatch import fact
from ..rows.primitive import TABLE
from ..rows.value import BINARY, COMPARISON, UNARY
from . import functions


def wrapped(out: Any, args: tuple) -> Any:
    """The user's form of a result that is more than a new array or a number."""
    sources: list = []
    array.unwrap(args, sources)
    return array.wrap(out, sources)


# What the C++ part asks of this module: the rows of operators, and bytes of an operand from which Python does better
OPERATORS = BINARY | UNARY | COMPARISON
_KERNELS = {op: getattr(operator, op, None) or getattr(operator, f"{op}_", abs) for op in BINARY | UNARY}
LIMITS = {op: bound(KERNELS.get(kernel, kernel)) for op, kernel in _KERNELS.items()} | {"pow": bound(onp.power)}
LIMITS |= {
    f"i{op}": LEAST.get(IN_PLACE.get(getattr(operator, f"i{op}", None)), sys.maxsize) for op in BINARY if op != "divmod"
}

_waiting: list | None = []  # functions made before there were rows


def _fast(call: Callable, host: Callable, e: functions.Entry, kind: int, nin: int = -1, least: int = 0) -> Callable:
    """A Python function with the fast path before it. kind: what the first argument is, and what is returned."""
    fast = fastpath.function(call, host, e, kind, nin, bound(e.host), least)
    if _waiting is not None:
        _waiting.append((fast, e))
    else:
        _set_row(fast, e)
    return fast


def _identity(e: functions.Entry) -> int:
    return fastpath.IDENTITY if e.host in (onp.asarray, onp.asanyarray) else 0


def function(call: Callable, e: functions.Entry | None) -> Callable:
    """A public function, which takes what it is bound to first, with the fast path before it."""
    if e is None or fastpath is None:
        return call
    kind = fastpath.BOUND | _identity(e) | (fastpath.MASKED if e.host is onp.where else 0)
    return _fast(call, functions.kernel(e.host), e, kind, -1 if e.nin is None else e.nin)


def wider(call: Callable, e: functions.Entry, least: int) -> Callable:
    """A function that takes more keywords than NumPy's, with NumPy's call before it from `least` arguments on."""
    if fastpath is None:
        return call
    return _fast(call, functions.kernel(e.host), e, _identity(e), least=least)


_CORE = onp._core if onp.lib.NumpyVersion(onp.__version__) >= "2.0.0" else onp.core
METHODS = _CORE._methods
FORWARDED = {f"ndarray.{name}": f"_{name}" for name in ("sum", "prod", "any", "all", "mean", "std", "var")}
FORWARDED |= {"ndarray.max": "_amax", "ndarray.min": "_amin"}  # what these methods of NumPy's hand their arguments to


def method(call: Callable, e: functions.Entry) -> Callable:
    """A method of ndarray, with the fast path before it; `resize` counts who refers to the array, so it has none."""
    if fastpath is None or e.name == "ndarray.resize":
        return call
    return _fast(call, getattr(METHODS, FORWARDED.get(e.name, ""), e.host), e, 0)


def drawn(call: Callable, e: functions.Entry) -> Callable:
    """A method of a class of generators, with the fast path before it unless it writes to its argument."""
    return call if fastpath is None or e.writes else _fast(call, e.host, e, fastpath.OF_OBJECT)


# How NumPy's functions hand their arguments to rows (`takes` in primitive.py and dispatch.py), in the terms of
# functions.hpp: (arrays, form). The others take the general path.
FORMS: dict[str, Callable] = {} if fastpath is None else {
    "traced": lambda n: (n, 0),
    "arrays": lambda n: (n, fastpath.UNTRACED),
    "reduction": lambda *words: (1, fastpath.SEVERAL if "keepdims" in words else 0),
    "view": lambda *words: (1, 0),
    "list": lambda *words: (1, fastpath.LIST),
    "spread": lambda *words: (1, fastpath.SPREAD),
    "one": lambda *words: (1, fastpath.UNTRACED),
    "some": lambda *words: (1, fastpath.UNTRACED | fastpath.SEVERAL),
    "cast": lambda *words: (1, fastpath.UNTRACED | fastpath.CASTS),
    "matrices": lambda: (2, fastpath.VECTORS),
    "ravel": lambda *rows: (1, fastpath.RAVELS),
    "hstack": lambda *rows: (1, fastpath.LIST | fastpath.SIDE_BY_SIDE),
    "vstack": lambda *rows: (1, fastpath.LIST | fastpath.BELOW),
    "parts": lambda: (1, fastpath.PARTS),
    "number": lambda: (1, fastpath.NUMBER),
}  # fmt: skip
OF_METHODS = ("reduction", "spread", "view", "traced", "ravel", "matrices", "cast", "number")


def row_of(e: functions.Entry) -> tuple | None:
    """(row or entry, arrays, words, form): what a call is where its arrays are traced or on a device, how many of its
    arguments are arrays, the row's parameters in the order of what follows them, and how it takes those; or None."""
    name = e.name.removeprefix("ndarray.")
    row, takes = TABLE.get(name), ("whole",)
    if (of_function := fact(e.host, "takes") or fact(getattr(onp, name, None), "takes")) is not None:
        form, *rows = of_function
        row = TABLE[rows[0]] if rows else None
        takes = row.takes if form == "one" else (form, *(TABLE[name] for name in rows[1:] and rows))
    elif row is not None and isinstance(e.host, onp.ufunc):
        takes = ("traced", e.nin) if not row.view else takes
    elif row is not None:
        takes = row.takes or takes
    form, *facts = takes
    if form == "whole" or (e.name != name and form not in OF_METHODS):
        return e, 1, (), fastpath.WHOLE
    if form not in FORMS:
        return None
    words = () if form in ("traced", "arrays") else tuple(facts)
    arrays, how = FORMS[form](*facts)
    return row, arrays, words, how


FACTS = ("shape", "dtype", "size", "ndim", "T", "nbytes", "itemsize", "strides", "real", "imag", "flat")
OF_VALUES = ("shape", "dtype", "size", "ndim")  # what tracers and buffers have too


def _set_row(fast: Callable, e: functions.Entry) -> None:
    if (found := row_of(e)) is not None:
        fastpath.set_row(fast, *found)


def install() -> None:
    """Give ndarray's operators, indexing, conversions and attributes the fast path; all of minnp must be there."""
    global _waiting
    if fastpath is None:
        return
    from ..transforms import tape  # which imports this module's importers

    waiting, _waiting = _waiting, None
    for fast, e in waiting:
        _set_row(fast, e)
    for name in FACTS:
        setattr(array.Array, name, fastpath.attribute(vars(array.Array)[name], name, name in OF_VALUES))
    tape.sweep, tape.index_kept = fastpath.sweep, fastpath.index_kept
    fastpath.bind_calls()


if fastpath is not None:
    copyreg.pickle(fastpath.FastFunction, operator.attrgetter("__qualname__"))  # by name, as any function
