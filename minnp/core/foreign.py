"""Foreign classes among our arguments: their array protocols, answered with arrays of ours."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .array import ndarray

# what NumPy says of a class of the user's, whose __array__ gives an array of ours
REFUSAL = ("object __array__ method not producing an array",)


# how NumPy begins where every class that has a say in a call (NEP 13, NEP 18) declined
_DECLINED = ("no implementation found for", "operand type(s) all returned NotImplemented")


class _Adapter:
    """An object whose __array__ gives an array of ours, as NumPy wants it: giving NumPy's."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, *args: Any, **kwargs: Any) -> onp.ndarray:
        return onp.asarray(self.x.__array__(*args, **kwargs))


def overrides(x: Any) -> bool:
    """Whether NumPy asks the argument's class what a function means (NEP 13): a Series, a Quantity, a Proxy."""
    return type(x) is not onp.ndarray and getattr(type(x), "__array_ufunc__", None) is not None


def adapted(x: Any) -> Any:
    """An argument of a NumPy function, every such object in it adapted."""
    if isinstance(x, (list, tuple)):
        return type(x)([adapted(e) for e in x]) if not hasattr(x, "_fields") else type(x)(*map(adapted, x))
    if isinstance(x, dict):
        return {k: adapted(v) for k, v in x.items()}
    if isinstance(x, (ndarray, onp.generic, type)) or not hasattr(type(x), "__array__"):
        return x
    return _Adapter(x)


def refused(error: TypeError) -> bool:
    """Whether NumPy's functions found no class among the arguments that knows them."""
    return bool(error.args) and str(error.args[0]).startswith(_DECLINED)


def offered(function: Any, host: Any, args: tuple, kwargs: dict) -> Any:
    """What a class among the arguments makes of our function, where it does not know NumPy's: a class of a program
    written for us has ours in its table. NotImplemented where none does."""
    calls = isinstance(host, onp.ufunc)
    protocol = "__array_ufunc__" if calls else "__array_function__"
    inside = [e for a in (*args, *kwargs.values()) if isinstance(a, (list, tuple)) for e in a] if not calls else []
    asked = [x for x in (*args, *kwargs.values(), *inside) if not isinstance(x, (ndarray, onp.ndarray))]
    asked = [x for x in asked if getattr(type(x), protocol, None) is not None]
    if calls and len({type(x) for x in asked}) > 1:
        return NotImplemented  # several classes that make way for each other are asked once, as NEP 13 has it
    for x in asked if function is not None else ():
        ask = getattr(x, protocol)
        out = (
            ask(function, "__call__", *args, **kwargs)
            if calls
            else ask(function, tuple({type(x) for x in asked}), args, kwargs)
        )
        if out is not NotImplemented:
            return out
    return NotImplemented
