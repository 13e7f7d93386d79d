"""Ufuncs as functions: a short path for one and two operands, and a ufunc's attributes and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays.array import HANDLES, ndarray, on_host, unwrap, wrap
from ..cpu import MEDIUM
from ..cpu import binary as large_binary
from ..cpu import unary as large_unary
from ..rows import on_device
from ..rows.primitive import TABLE
from ..rows.state import state
from ..rows.value import NUMBERS, Buffer, Host, Tracer
from .fallback import fallback
from .functions import MISSING, Entry, entry, invoke
from .quick import finish, function, quick
from .short import on_value, on_values


def _is_on_device(a: Any) -> bool:
    """Whether a call on this argument may go the short way, busy or not: it lives on a device and nothing watches."""
    return type(a) in HANDLES and a._host is None and type(a._value) is Buffer and on_device.free(a._value.backend)


def into(kwargs: dict) -> ndarray | None:
    """The small host array that a call with `out=` and no other keyword writes; None sends it the general way."""
    out = kwargs.get("out")
    return out if type(out) in HANDLES and len(kwargs) == 1 and not state.tapes and small(out) is not None else None


def small(a: Any) -> Any:
    """An operand as NumPy takes it: a small host array, or a number; None for everything else."""
    if type(a) in HANDLES:
        a = a._host
        return a if a is not None and a.size < MEDIUM else None
    return a if type(a) in NUMBERS else None


def unary(name: str, ufunc: onp.ufunc) -> Callable:
    """The public function of a one-argument, one-result ufunc."""
    e, large = entry(name, ufunc), large_unary(ufunc)
    row = TABLE.get(ufunc.__name__)

    def call(device: Any, a: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs or args or type(a) not in HANDLES or (state.busy and not _is_on_device(a)):
            if not (args or state.busy):
                if kwargs:
                    if (out := into(kwargs)) is not None and (x := small(a)) is not None:
                        e.calls += 1
                        ufunc(x, out._host)
                        return out
                elif type(a) in NUMBERS:
                    e.calls += 1
                    return ufunc(a)
            return invoke(e, args if a is MISSING else (a, *args), kwargs)
        x = a._host
        if x is None:
            if row is None:
                return invoke(e, (a,), kwargs)
            t = a._value
            return t.trace.unary(row, a) if type(t) is Tracer else on_value(row, a)
        e.calls += 1
        if x.size < MEDIUM or (out := large(x)) is NotImplemented:
            out = ufunc(x)
        if type(out) is Host:
            return on_host(out)
        return out

    return finish(call, name, ufunc)


def binary(name: str, ufunc: onp.ufunc) -> Callable:
    """The public function of a two-argument, one-result ufunc."""
    e, large = entry(name, ufunc), large_binary(ufunc)
    row = TABLE.get(ufunc.__name__)

    def call(device: Any, a: Any = MISSING, b: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if type(a) in HANDLES and type(b) in HANDLES and not (kwargs or args or state.busy):
            x = a._host
            y = b._host
            if x is None or y is None:
                return on_values(row, a, b) if row is not None else invoke(e, (a, b), kwargs)
            if x.size < MEDIUM:
                e.calls += 1
                out = ufunc(x, y)
                if type(out) is Host:
                    return on_host(out)
                return out
        if args or kwargs or (state.busy and not (_is_on_device(a) or _is_on_device(b))):
            if not (args or state.busy) and (out := into(kwargs)) is not None:
                x, y = small(a), small(b)
                if x is not None and y is not None:
                    e.calls += 1
                    ufunc(x, y, out=out._host)  # by keyword: NumPy 2.4 deprecates a third position in some
                    return out
            return invoke(e, tuple(x for x in (a, b, *args) if x is not MISSING), kwargs)
        if type(a) in HANDLES and type(b) in HANDLES:
            x, y = a._host, b._host
        elif type(a) in HANDLES and type(b) in NUMBERS:
            x, y = a._host, b
        elif type(a) in NUMBERS and type(b) in HANDLES:
            x, y = a, b._host
        elif type(a) in NUMBERS and type(b) in NUMBERS and not state.busy:
            e.calls += 1
            return ufunc(a, b)
        else:
            return invoke(e, tuple(x for x in (a, b) if x is not MISSING), kwargs)
        if x is None or y is None:
            return on_values(row, a, b) if row is not None else invoke(e, (a, b), kwargs)
        e.calls += 1
        if (y if x is a else x).size < MEDIUM or (out := large(x, y)) is NotImplemented:
            out = ufunc(x, y)
        if type(out) is Host:
            return on_host(out)
        return out

    return finish(call, name, ufunc)


# ------------------------------------------------------------------ ufuncs
class _UfuncType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, onp.ufunc) or isinstance(getattr(x, "__wrapped__", None), onp.ufunc)


class ufunc(metaclass=_UfuncType):
    """What isinstance(f, np.ufunc) asks: our ufuncs are functions with a ufunc's attributes and methods."""


ufunc.__module__ = "minnp.numpy"
for _name in vars(onp.ufunc):
    if not _name.startswith("__"):
        setattr(ufunc, _name, vars(onp.ufunc)[_name])
UFUNC_FACTS = ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature")
UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at", "resolve_dtypes", "_resolve_dtypes_and_context")


def make_ufunc(name: str, host: onp.ufunc) -> Callable:
    """The public form of a ufunc: a function, for speed, with a ufunc's attributes and methods."""
    kind = unary if (host.nin, host.nout) == (1, 1) else binary if (host.nin, host.nout) == (2, 1) else function
    call = kind(name, host)
    facts = call.__func__
    for fact in UFUNC_FACTS:
        setattr(facts, fact, getattr(host, fact))
    for method in UFUNC_METHODS:
        bound = getattr(host, method, None)
        if bound is None:
            continue
        if method.startswith(("resolve", "_resolve")):
            setattr(facts, method, bound)
            continue
        e = entry(f"{name}.{method}", bound, writes=(0,) if method == "at" else ())
        e.definition = _ufunc_method(call, method, e)
        setattr(facts, method, finish(quick(e), f"{name}.{method}", bound, call))
    return call


# ufunc methods said with other public functions: (ufunc name, method) -> definition
UFUNC_DEFINITIONS: dict[tuple[str, str], Callable] = {}


def _ufunc_method(call: Callable, method: str, e: Entry) -> Callable | None:
    key = (call.__name__, method)

    def definition(*args: Any, **kwargs: Any) -> Any:
        special = UFUNC_DEFINITIONS.get(key)
        if special is not None:
            return special(*args, **kwargs)
        general = UFUNC_DEFINITIONS.get(("*", method))
        if general is None:
            values = [unwrap(a, []) for a in args]
            return wrap(fallback(e, values, {k: unwrap(v, []) for k, v in kwargs.items()}))
        return general(call, *args, **kwargs)

    return definition
