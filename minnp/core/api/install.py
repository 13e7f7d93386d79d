"""The short ways in C (compiled/quick.c) where minnp was installed with a compiler; elsewhere the Python ones do.

A small call then costs little more than NumPy's own. MINNP_COMPILED=0 keeps to Python.
"""

from __future__ import annotations

import copyreg
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays import array, saved
from ..compiled import quick as _quick
from ..cpu import INDEX, bound, memory
from ..cpu.elementwise import IN_PLACE, KERNELS, LEAST
from ..rows import on_device, policy
from ..rows.dispatch import TAKES
from ..rows.primitive import NO_PARAMS, TABLE, Meta, Primitive
from ..rows.state import capture, state
from ..rows.value import BINARY, COMPARISON, NUMBERS, UNARY, Buffer, Tracer, owner
from . import functions


def _wrapped(out: Any, args: tuple) -> Any:
    """The user's form of a result that is more than a new array or a number."""
    sources: list = []
    array.unwrap(args, sources)
    return array.wrap(out, sources)


FOREIGN, HOME, RETURNED, MASKED = 1, 2, 4, 8  # what the first argument is, and what is returned: see functions.h
# How a row on a device takes NumPy's arguments: `takes` of a row (primitive.py) and of a function (dispatch.TAKES) as
# numbers of functions.h, where the number of arrays stands for ("traced", n).
FORMS = {
    "reduction": 100, "list": 101, "spread": 102, "view": 103, "ravel": 104, "flatten": 105, "matrices": 106,
    "one": 107, "cast": 108, "hstack": 109, "vstack": 110, "make": 111, "whole": 112, "write": 113, "split": 114,
    "arrays": 200,
}  # fmt: skip
OF_METHODS = ("reduction", "spread", "view", "traced", "ravel", "flatten", "matrices", "cast")
_early: list | None = []  # short ways made before there were rows


def _short(call: Callable, host: Callable, e: functions.Entry, kind: int, nin: int = -1, least: int = 0) -> Callable:
    if _quick is None:
        return call
    short = _quick.short(call, host, e, None if kind == FOREIGN else _row(e), kind, nin, bound(e.host), least)
    return short if kind == FOREIGN else _placed(short, e)


def _returned(e: functions.Entry) -> int:
    return RETURNED if e.host in (onp.asarray, onp.asanyarray) else 0


def function(call: Callable, e: functions.Entry | None) -> Callable:
    """A public function, which takes its home first, with the short way before it."""
    if e is None:
        return call
    kind = HOME | _returned(e) | (MASKED if e.host is onp.where else 0)
    return _short(call, functions.kernel(e.host), e, kind, -1 if e.nin is None else e.nin)


def wider(call: Callable, e: functions.Entry, least: int) -> Callable:
    """A function that takes more keywords than NumPy's, with NumPy's short way before it from `least` arguments on."""
    return _short(call, functions.kernel(e.host), e, _returned(e), least=least)


_CORE = onp._core if onp.lib.NumpyVersion(onp.__version__) >= "2.0.0" else onp.core
METHODS = _CORE._methods
FORWARDED = {f"ndarray.{name}": f"_{name}" for name in ("sum", "prod", "any", "all", "mean", "std", "var")}
FORWARDED |= {"ndarray.max": "_amax", "ndarray.min": "_amin"}  # what these methods of NumPy's hand their arguments to


def method(call: Callable, e: functions.Entry) -> Callable:
    """A method of ndarray, with the short way before it; `resize` counts who refers to the array, so it has none."""
    if e.name == "ndarray.resize":
        return call
    return _short(call, getattr(METHODS, FORWARDED.get(e.name, ""), e.host), e, 0)


def drawn(call: Callable, e: functions.Entry) -> Callable:
    """A method of a class of generators, with the short way before it unless it writes to its argument."""
    return call if e.writes else _short(call, e.host, e, FOREIGN)


def _row(e: functions.Entry) -> Primitive | None:
    """What a call of a ufunc on its operands, or of a reduction on an array alone, is on a tape."""
    if isinstance(e.host, onp.ufunc):
        return TABLE.get(e.host.__name__) if e.host.nout == 1 else None
    row = TABLE.get(e.name.removeprefix("ndarray."))
    return row if row is not None and row.takes[:1] == ("reduction",) else None


def _placed(short: Callable, e: functions.Entry) -> Callable:
    """A short way that knows what a call is on a device."""
    if _early is not None:
        _early.append((short, e))
    else:
        _quick.at_places(short, *_there(e))
    return short


def _there(e: functions.Entry) -> tuple:
    """(the row that a call is on a device, or the entry, or the name of what makes it there; the keywords of that row;
    how it takes NumPy's arguments)."""
    name = e.name.removeprefix("ndarray.")
    of_function, row, words = TAKES.get(e.host) or TAKES.get(getattr(onp, name, None)), TABLE.get(name), ()
    if e.name.startswith("random."):
        of_function = ("make",)
    if of_function is not None:
        form, *rows = of_function
        rows = tuple([TABLE[word] for word in rows])
        row = rows[0] if rows else None
        words = rows if len(rows) > 1 else row.takes[1:] if form == "one" else ()
    elif row is not None and isinstance(e.host, onp.ufunc) and not row.view:
        form, words = "traced", (e.nin,)
    else:
        form, *words = (row and row.takes) or ("whole",)
    if form == "whole" or (e.name != name and form not in OF_METHODS):
        return e, (), FORMS["write" if e.writes else "whole"]
    if form == "make":
        return e.name, (), FORMS[form]
    if form in ("traced", "arrays"):
        return row, (), FORMS.get(form, 0) + words[0]
    return row, frozenset(words) if form in ("reduction", "list") else tuple(words), FORMS[form]


FACTS = ("shape", "dtype", "size", "ndim", "T", "nbytes", "itemsize", "strides", "real", "imag", "flat")
TOLD = ("shape", "dtype", "size", "ndim")  # what a buffer tells too


def install() -> None:
    """Give ndarray's operators, indexing, conversions and attributes their short ways; its class must be complete."""
    global _early
    if _quick is None:
        return
    early, _early = _early, None
    for short, e in early:
        _placed(short, e)
    for name in FACTS:
        setattr(array.Array, name, _quick.fact(vars(array.Array)[name], name, name in TOLD))
    from ..arrays import writing  # which import this module's importers
    from ..transforms import cotangents, tape
    from . import attributes, operators

    _quick.flat(attributes.FlatIterator)
    rows = {f"__{op}__": TABLE[name] for op, name in (BINARY | UNARY | COMPARISON).items()}
    rows |= {name: TABLE[name] for name in ("getitem", "transpose", "write_view", "copy", "reshape")}
    kernels = {f"__{op}__": getattr(operator, op, None) or getattr(operator, f"{op}_", abs) for op in BINARY | UNARY}
    limits = {name: bound(KERNELS.get(kernel, kernel)) for name, kernel in kernels.items()}
    limits["__pow__"] = bound(onp.power)
    for op in BINARY:
        limits[f"__i{op}__"] = LEAST.get(IN_PLACE.get(getattr(operator, f"i{op}", None)), sys.maxsize)
    tape.sweep, tape.index_kept = _quick.sweep, _quick.index_kept
    _quick.install(
        *(functions.report.HOST_CALLS, rows, limits, Tracer, tape.GradTrace, Primitive, NO_PARAMS, tape.SMALL, Buffer),
        *(on_device.free, capture, policy.chosen, Meta, cotangents.unbroadcast, cotangents.restore, onp.add.reduce),
        *(
            onp.zeros,
            onp.array,
            owner,
            writing.write_on_device,
            on_device.number,
            functions.Entry,
            functions.before_out,
        ),
        *(functions.as_handles, operators.shortened, on_device.slot_of, functions.numpys, functions.devices.in_force),
        *(onp.int64, onp.False_, onp.True_),
        *(saved.kept_params, saved.safe, saved.OUTSIDE, memory.Lease, onp.dtype, saved.outside),
        array.Array,
    )


if _quick is not None:
    copyreg.pickle(_quick.Short, operator.attrgetter("__qualname__"))  # by name, as any function
    _quick.setup(
        *(state, NUMBERS, functions.PLAIN, _wrapped, onp.dtype(object)),
        *(functions.ENTRIES, INDEX, memory.Lease, array._memory),
    )
