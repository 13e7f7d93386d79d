"""Foreign classes among our arguments: their array protocols, answered with arrays of ours."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as onp

from ..arrays.array import ndarray
from ..arrays.hooks import for_us
from ..rows.pytree import CONTAINERS, inside

# How NumPy begins where every class that has a say declined (NEP 18 and NEP 13)
_DECLINED = ("no implementation found for", "operand type(s) all returned NotImplemented from __array_ufunc__")


def overrides(x: Any) -> bool:
    """Whether NumPy asks the argument's class what a function means (NEP 13): a Series, a Quantity, a Proxy."""
    if type(x) in CONTAINERS:
        return any(map(overrides, inside(x)))
    return type(x) is not onp.ndarray and getattr(type(x), "__array_ufunc__", None) is not None


def refused(error: TypeError) -> bool:
    """Whether NumPy's functions found no class among the arguments that knows them."""
    return bool(error.args) and str(error.args[0]).startswith(_DECLINED)


def offered(function: Any, host: Any, args: tuple, kwargs: dict) -> Any:
    """What a class among the arguments makes of our function, where it does not know NumPy's: a class of a program
    written for us has ours in its table. NotImplemented where none does. Of a ufunc only classes whose module imports
    us are asked twice."""
    if isinstance(host, onp.ufunc):
        for x in args:
            hook = getattr(type(x), "__array_ufunc__", None)
            if isinstance(hook, FunctionType) and for_us(hook):
                out = hook(x, function, "__call__", *args, **kwargs)
                if out is not NotImplemented:
                    return out
        return NotImplemented
    inside = [e for a in (*args, *kwargs.values()) if isinstance(a, (list, tuple)) for e in a]
    asked = [x for x in (*args, *kwargs.values(), *inside) if not isinstance(x, (ndarray, onp.ndarray))]
    asked = [x for x in asked if getattr(type(x), "__array_function__", None) is not None]
    for x in asked if function is not None else ():
        out = x.__array_function__(function, tuple({type(x) for x in asked}), args, kwargs)
        if out is not NotImplemented:
            return out
    return NotImplemented
