"""NumPy's own Python code, running on our functions.

Much of NumPy is Python over a core of C: `gradient`, `median`, `nanvar`, `pad`, `cov`, ... work on any array type, if only
the names they use mean that type's functions. `rebound(f)` is f's code with just that: the same code object, its globals
replaced, every public NumPy function by ours. It has NumPy's exact semantics, in whichever NumPy is installed, and
gradients, because our arrays take in-place writes under a trace.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as onp

from ..core.array import ndarray
from ..core.public import PUBLIC

_GLOBALS: dict[str, dict[str, Any]] = {}
_FUNCTIONS: dict[FunctionType, FunctionType] = {}


def rebound(function: Callable) -> Callable:
    """A definition of a NumPy function written in Python: its own code on our arrays. Made when first called."""

    def definition(*args: Any, **kwargs: Any) -> Any:
        return _rebind(inspect.unwrap(function))(*args, **kwargs)

    definition.__name__ = function.__name__
    definition.__doc__ = f"NumPy's own `{function.__name__}`, on our functions."
    return definition


def _rebind(function: FunctionType) -> FunctionType:
    found = _FUNCTIONS.get(function)
    if found is None:
        found = _FUNCTIONS[function] = FunctionType(
            function.__code__,
            _globals_of(function.__module__),
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        found.__kwdefaults__ = function.__kwdefaults__
    return found


def _globals_of(name: str) -> dict[str, Any]:
    """The globals of a NumPy module, with ours in the place of NumPy's."""
    names = _GLOBALS.get(name)
    if names is None:
        names = _GLOBALS[name] = {}  # known before it is filled: functions of a module name each other
        names.update({key: _ours(value) for key, value in vars(sys.modules[name]).items()})
    return names


class _Namespace:
    """A NumPy module as rebound code sees it."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        value = _ours(getattr(self.module, name))
        setattr(self, name, value)
        return value


def _ours(value: Any) -> Any:
    """What stands for a NumPy object in rebound code."""
    if value is onp.ndarray:
        return ndarray
    if isinstance(value, ModuleType):
        return _Namespace(value) if value.__name__.partition(".")[0] == "numpy" else value
    if isinstance(value, dict):
        return {k: _ours(v) for k, v in value.items()} if any(map(callable, value.values())) else value
    if not callable(value) or isinstance(value, type):
        return value
    public = PUBLIC.get(value)
    if public is not None:
        return public
    inner = inspect.unwrap(value)
    if isinstance(inner, FunctionType) and inner.__module__.partition(".")[0] == "numpy":
        return _rebind(inner)
    return value
