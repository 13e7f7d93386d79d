"""Public functions and ufuncs, made of NumPy's callables."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays.array import unwrap, wrap
from ..compiled import FUNCTION
from ..rows.dispatch import fact
from . import install
from .fallback import fallback
from .functions import ENTRIES, PUBLIC, Entry, entry, invoke


def function(name: str, host: Callable) -> Callable:
    """The public function for a NumPy callable."""
    return finish(general(entry(name, host)), name, host)


def general(e: Entry) -> Callable:
    """An entry as a function, which takes its receiver first."""

    def call(receiver: Any, /, *args: Any, **kwargs: Any) -> Any:
        return invoke(e, args, kwargs)

    return call


class Namespace:
    """What a public function is bound to, as `help` says. A bound method, unlike a function, is not bound again by a
    class whose attribute it becomes: `class Layer: activation = np.tanh` works, as with NumPy's builtins and ufuncs."""

    __slots__ = ("address", "host")
    __module__ = "minnp"

    def __init__(self, call: Callable, host: Any) -> None:
        self.address, self.host = (call.__module__, call.__qualname__), host

    def __repr__(self) -> str:
        return repr(self.host)

    def __getattr__(self, name: str) -> Any:
        if name != self.address[1]:
            raise AttributeError(name)
        return getattr(importlib.import_module(self.address[0]), name)

    def __reduce__(self) -> tuple:
        return _namespace, (*self.address, self.host)


def _namespace(module: str, name: str, host: Any) -> Namespace:
    made = getattr(importlib.import_module(module), name)
    return PUBLIC.get(host, made).__self__  # NumPy's random functions are methods, and a copy of one is another object


def finish(call: Callable, name: str, host: Any, receiver: Any = None) -> Callable:
    """The public function made of `call`, which takes its receiver first, with NumPy's name, text and signature."""
    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = call.__name__
    module = name.rpartition(".")[0]
    call.__module__ = f"minnp.{module}" if module.startswith("scipy.") else f"minnp.numpy.{module}".removesuffix(".")
    call.__doc__ = getattr(host, "__doc__", None)
    call.__wrapped__ = host
    with contextlib.suppress(ValueError):  # a builtin may have none
        signature = inspect.signature(host) if not isinstance(host, onp.ufunc) else signature_of(host)
        parameters = [_RECEIVER, *signature.parameters.values()]
        if fact(host, "device") and "device" not in signature.parameters:  # NumPy 1.26
            parameters.append(inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None))
        call.__signature__ = signature.replace(parameters=parameters)
    public = FUNCTION(install.function(call, ENTRIES.get(host)), receiver or Namespace(call, host))
    PUBLIC[host] = public
    return public


def without_receiver(signature: inspect.Signature) -> inspect.Signature:
    """The signature of what `finish` makes, as its callers see it."""
    return signature.replace(parameters=list(signature.parameters.values())[1:])


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


_RECEIVER = inspect.Parameter("receiver", inspect.Parameter.POSITIONAL_ONLY)


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
    call = function(name, host)
    facts = call.__func__
    for attribute in UFUNC_FACTS:
        setattr(facts, attribute, getattr(host, attribute))
    for method in UFUNC_METHODS:
        bound = getattr(host, method, None)
        if bound is None:
            continue
        if method.startswith(("resolve", "_resolve")):
            setattr(facts, method, bound)
            continue
        e = entry(f"{name}.{method}", bound, writes=(0,) if method == "at" else ())
        e.definition = _ufunc_method(call, method, e)
        setattr(facts, method, finish(general(e), f"{name}.{method}", bound, call))
    return call


# ufunc methods written with other public functions: (ufunc name, method) -> definition
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
