"""The short way of public functions: small arrays on the host go straight to NumPy.

What is traced, placed, large or nested takes the general path, `public.invoke`. Every name here that a small call meets
costs its ten elements a few per cent, so the shapes of calls are told apart once, when a function is made.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays import devices
from ..arrays.array import ATOMS, HANDLES, OBJECT, ndarray, on_host, root_of, wrap
from ..arrays.saved import outside
from ..compiled import FUNCTION
from ..cpu import LARGE
from ..rows import on_device
from ..rows.primitive import TABLE
from ..rows.pytree import inside, replaced
from ..rows.state import state
from ..rows.value import NUMBERS, Host
from . import install
from .functions import (
    ENTRIES,
    MISSING,
    OF_ARRAYS,
    OF_NUMBERS,
    OF_SHAPES,
    PLAIN,
    PUBLIC,
    REFUSALS,
    Entry,
    as_handles,
    before_out,
    entry,
    invoke,
    kernel,
    note_outside,
    numpys,
)
from .short import on_value, quickly


def held(x: list | tuple) -> Any:
    """A list or tuple with the host arrays its handles hold; None where a member needs the general path."""
    if ATOMS.issuperset(map(type, x)):
        return x
    try:
        return replaced(x, _held)
    except _General:
        return None


class _General(Exception):
    """A member of a container needs the general path."""


def _held(e: Any) -> Any:
    if type(e) in HANDLES:
        e = e._host
        if e is None or e.size >= LARGE:
            raise _General
    elif type(e) not in PLAIN:
        raise _General
    return e


KNOWN = {*HANDLES, list, tuple, *PLAIN}  # the classes that definitions know


def plain(options: dict) -> bool:
    """Whether keyword arguments hold no handle, and nothing that needs the general path."""
    for v in options.values():
        if type(v) not in PLAIN and not (type(v) is tuple and ATOMS.issuperset(map(type, v))):
            return False
    return "out" not in options and "device" not in options and options.get("dtype") is not object


def function(name: str, host: Callable) -> Callable:
    """The public function for a NumPy callable."""
    e = entry(name, host)
    kind = returned if host in OF_ARRAYS else made if host in OF_NUMBERS else quick
    return finish(kind(e), name, host)


def quick(e: Entry) -> Callable:
    """An entry as a function (home, *args, **kwargs): small host arrays go straight to NumPy, the rest to `invoke`."""
    host, name = kernel(e.host), e.name
    nin, simple, reduces = e.nin, not e.writes, name in on_device.REDUCTIONS
    row_on_device = quickly(name)

    def call(home: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not state.busy and (simple or not state.tapes) and (not kwargs or plain(kwargs)):
            values = []
            for a in args:
                t = type(a)
                if t in HANDLES:
                    a = a._host
                    if a is None:
                        if reduces and not kwargs and len(args) == 1:
                            return on_value(TABLE[name], args[0])
                        if row_on_device is not None and (out := row_on_device(args, kwargs)) is not None:
                            return out
                        if kwargs or not KNOWN.issuperset(map(type, args)):
                            break
                        if e.definition is not None and before_out(e, len(args)):
                            try:
                                out = e.definition(*args)
                            except REFUSALS as error:
                                raise numpys(e, args, kwargs, error) from None
                            if out is not NotImplemented:
                                return as_handles(out)
                        break
                    if a.size >= LARGE:
                        break
                elif t is list or t is tuple:
                    a = held(a)
                    if a is None:
                        if row_on_device is not None and (out := row_on_device(args, kwargs)) is not None:
                            return out
                        break
                elif t not in PLAIN:
                    break
                values.append(a)
            else:
                if (nin is None or len(values) == nin) and (not state.tapes or before_out(e, len(args))):
                    e.calls += 1
                    out = host(*values, **kwargs)
                    if type(out) is Host:
                        return seen(out, args)
                    return out if type(out) in NUMBERS else wrap(out, handles_in(args))
        if state.busy and row_on_device is not None and args and (out := row_on_device(args, kwargs)) is not None:
            return out
        return invoke(e, args, kwargs)

    return call


def made(e: Entry) -> Callable:
    """An entry that makes an array out of a number or a shape."""
    other, host, simple = quick(e), kernel(e.host), e.host in OF_SHAPES

    def call(home: Any, a: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if state.busy:
            if type(a) not in HANDLES and (h := devices.created(e.name, (a, *args), kwargs)) is not None:
                return h
        elif simple and (type(a) is int or type(a) is tuple) and not (args or kwargs):
            e.calls += 1
            return on_host(host(a))
        return other(home, *args, **kwargs) if a is MISSING else other(home, a, *args, **kwargs)

    return call


def seen(out: Host, args: tuple) -> ndarray:
    """The handle of a host array that a call made of these arguments: one of them, a view of one, or a new one."""
    base = out.base
    for s in args:
        if type(s) in HANDLES:
            a = s._host
            if out is a:
                return s
            if base is not None and (base is a or base is a.base):
                return on_host(out, root_of(s))
        elif out is s:  # NumPy's own
            outside(out)
    if base is not None:
        note_outside(args, out)
    if base is not None or out.dtype is OBJECT:
        return wrap(out, handles_in(args))
    return on_host(out)


def handles_in(args: list | tuple) -> list:
    """The handles among arguments, and in the lists and tuples among them."""
    return [a for a in inside(args) if type(a) in HANDLES]


def returned(e: Entry) -> Callable:
    """An entry that returns an array of ours as it is."""
    other = quick(e)

    def call(home: Any, a: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if type(a) in HANDLES and a._host is not None and not (args or kwargs or state.busy):
            e.calls += 1
            return a
        return other(home, *args, **kwargs) if a is MISSING else other(home, a, *args, **kwargs)

    return call


class Home:
    """What a public function is bound to. A bound method, unlike a function, is not bound again by a class whose
    attribute it becomes: `class Layer: activation = np.tanh` works, as it does with NumPy's builtins and ufuncs."""

    __slots__ = ("address", "host")

    def __init__(self, call: Callable, host: Any) -> None:
        self.address, self.host = (call.__module__, call.__qualname__), host

    def __repr__(self) -> str:
        return repr(self.host)

    def __getattr__(self, name: str) -> Any:
        if name != self.address[1]:
            raise AttributeError(name)
        return getattr(importlib.import_module(self.address[0]), name)

    def __reduce__(self) -> tuple:
        return _home, (*self.address, self.host)


def _home(module: str, name: str, host: Any) -> Home:
    made = getattr(importlib.import_module(module), name)
    return PUBLIC.get(host, made).__self__  # NumPy's random functions are methods, and a copy of one is another object


def finish(call: Callable, name: str, host: Any, home: Any = None) -> Callable:
    """The public function made of `call`, which takes its home first, with NumPy's name, text and signature."""
    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = call.__name__
    call.__module__ = "minnp.numpy" if "." not in name else "minnp.numpy." + name.rpartition(".")[0]
    call.__doc__ = getattr(host, "__doc__", None)
    call.__wrapped__ = host
    with contextlib.suppress(ValueError):  # a builtin may have none
        signature = inspect.signature(host) if not isinstance(host, onp.ufunc) else signature_of(host)
        parameters = [_HOME, *signature.parameters.values()]
        if host in devices.CREATION and "device" not in signature.parameters:  # NumPy 1.26
            parameters.append(inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None))
        call.__signature__ = signature.replace(parameters=parameters)
    short = install.function(call, ENTRIES.get(host))
    PUBLIC[host] = public = FUNCTION(short, Home(call, host) if home is None else home)
    return public


def signature_of(ufunc: onp.ufunc) -> inspect.Signature:
    """A ufunc's signature, also of a NumPy whose ufuncs show none."""
    with contextlib.suppress(ValueError):
        return inspect.signature(ufunc)
    operands = ["x"] if ufunc.nin == 1 else [f"x{i + 1}" for i in range(ufunc.nin)]
    out = None if ufunc.nout == 1 else (None,) * ufunc.nout
    keywords = {"casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    keywords = keywords if ufunc.signature is not None else {"where": True, **keywords}
    return inspect.Signature(
        [
            *(inspect.Parameter(x, inspect.Parameter.POSITIONAL_ONLY) for x in operands),
            inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=out),
            *(inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in keywords.items()),
        ]
    )


_HOME = inspect.Parameter("home", inspect.Parameter.POSITIONAL_ONLY)
