"""The short ways in C (_quick.c) where minnp was installed with a compiler; elsewhere the Python ones do as well.

A small call then costs little more than NumPy's own. MINNP_COMPILED=0 keeps to Python.
"""

from __future__ import annotations

import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as onp

from . import array, placed, public
from .host import INDEX, bound, memory, temporaries
from .host.elementwise import IN_PLACE, KERNELS, LEAST
from .primitive import NO_PARAMS, TABLE, Primitive
from .state import state
from .value import BINARY, NUMBERS, UNARY, Tracer

_quick: types.ModuleType | None = None
if os.environ.get("MINNP_COMPILED", "1").lower() not in ("0", "off", "false", "no"):
    try:
        from . import _quick
    except ImportError:  # not built, or for another interpreter
        _quick = None


def _wrapped(out: Any, args: tuple) -> Any:
    """The user's form of a result that is more than a new array or a number."""
    sources: list = []
    array.unwrap(args, sources)
    return array.wrap(out, sources)


METHOD, FOREIGN, FUNCTION, RETURNED = range(4)  # what the first argument of a call is: see _quick.c


def function(call: Callable, e: public.Entry | None) -> Callable:
    """A public function, which takes its home first, with the short way before it."""
    if _quick is None or e is None:
        return call
    host, nin = public.kernel(e.host), -1 if e.nin is None else e.nin
    kind = RETURNED if e.host in public.OF_ARRAYS else FUNCTION
    return _quick.short(call, host, e, _row(e), kind, nin, bound(e.host))


def method(call: Callable, e: public.Entry) -> Callable:
    """A method of ndarray, with the short way before it; `resize` counts who refers to the array, so it has none."""
    if _quick is None or e.name == "ndarray.resize":
        return call
    return _quick.short(call, e.host, e, _row(e), METHOD, -1, bound(e.host))


def drawn(call: Callable, e: public.Entry) -> Callable:
    """A method of a class of generators, with the short way before it unless it writes to its argument."""
    return call if _quick is None or e.writes else _quick.short(call, e.host, e, None, FOREIGN, -1, bound(e.host))


def _row(e: public.Entry) -> Primitive | None:
    """What a call of a ufunc on its operands, or of a reduction on an array alone, is on a tape."""
    if isinstance(e.host, onp.ufunc):
        return TABLE.get(e.host.__name__) if e.host.nout == 1 else None
    name = e.name.removeprefix("ndarray.")
    return TABLE.get(name) if name in placed.REDUCTIONS else None


FACTS = ("shape", "dtype", "size", "ndim", "T", "nbytes", "itemsize")


def install() -> None:
    """Give ndarray's operators, indexing, conversions and attributes their short ways; its class must be complete."""
    if _quick is None:
        return
    for name in FACTS:
        setattr(array.ndarray, name, _quick.fact(vars(array.ndarray)[name], name))
    from .tape import SMALL, GradTrace  # which imports this module's importers

    rows = {f"__{op}__": TABLE[name] for op, name in (BINARY | UNARY).items()}
    kernels = {f"__{op}__": getattr(operator, op, None) or getattr(operator, f"{op}_", abs) for op in BINARY | UNARY}
    limits = {name: bound(KERNELS.get(kernel, kernel)) for name, kernel in kernels.items()}
    limits["__pow__"] = bound(onp.power)
    for op in BINARY:
        limits[f"__i{op}__"] = LEAST.get(IN_PLACE.get(getattr(operator, f"i{op}", None)), sys.maxsize)
    _quick.install(public.report.HOST_CALLS, rows, limits, Tracer, GradTrace, Primitive, NO_PARAMS, SMALL)


if _quick is not None:
    _quick.setup(
        *(array.ndarray, onp.ndarray, state, public.Entry, NUMBERS, public.PLAIN, _wrapped, onp.dtype(object)),
        *(public.ENTRIES, INDEX, memory.pool, memory.Lease, temporaries.mark, temporaries.learn, temporaries.written),
    )
