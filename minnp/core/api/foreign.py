"""Foreign classes among our arguments: their array protocols, answered with arrays of ours."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..arrays.array import ndarray
from ..rows.pytree import CONTAINERS, inside, replaced

# what NumPy says of a class of the user's, whose __array__ gives an array of ours
REFUSAL = ("object __array__ method not producing an array",)


_DECLINED = "no implementation found for"  # how NumPy begins where every class that has a say declined (NEP 18)


class _Adapter:
    """An object whose __array__ gives an array of ours, as NumPy wants it: giving NumPy's."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, *args: Any, **kwargs: Any) -> onp.ndarray:
        return onp.asarray(self.x.__array__(*args, **kwargs))


def overrides(x: Any) -> bool:
    """Whether NumPy asks the argument's class what a function means (NEP 13): a Series, a Quantity, a Proxy."""
    if type(x) in CONTAINERS:
        return any(map(overrides, inside(x)))
    return type(x) is not onp.ndarray and getattr(type(x), "__array_ufunc__", None) is not None


def adapted(x: Any) -> Any:
    """An argument of a NumPy function, every such object in it adapted."""
    if type(x) in CONTAINERS:
        return replaced(x, adapted)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(adapted, x))
    if isinstance(x, (ndarray, onp.generic, type)) or not hasattr(type(x), "__array__"):
        return x
    return _Adapter(x)


def refused(error: TypeError) -> bool:
    """Whether NumPy's functions found no class among the arguments that knows them."""
    return bool(error.args) and str(error.args[0]).startswith(_DECLINED)


def offered(function: Any, host: Any, args: tuple, kwargs: dict) -> Any:
    """What a class among the arguments makes of our function, where it does not know NumPy's: a class of a program
    written for us has ours in its table. NotImplemented where none does, and for ufuncs: that a class which declines
    one is asked once is in NumPy's own tests."""
    if isinstance(host, onp.ufunc):
        return NotImplemented
    inside = [e for a in (*args, *kwargs.values()) if isinstance(a, (list, tuple)) for e in a]
    asked = [x for x in (*args, *kwargs.values(), *inside) if not isinstance(x, (ndarray, onp.ndarray))]
    asked = [x for x in asked if getattr(type(x), "__array_function__", None) is not None]
    for x in asked if function is not None else ():
        out = x.__array_function__(function, tuple({type(x) for x in asked}), args, kwargs)
        if out is not NotImplemented:
            return out
    return NotImplemented
