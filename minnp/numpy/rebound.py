"""NumPy's own Python code, running on our functions.

Much of NumPy is Python over a core of C: `gradient`, `median`, `nanvar`, `pad`, `cov`, ... work on any array type, if
only the names they use mean that type's functions. `rebound(f)` is f's code with just that: the same code object, its
globals replaced, every public NumPy function by ours. It has NumPy's exact semantics, in whichever NumPy is installed,
and gradients, because our arrays take in-place writes under a trace.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from functools import cache
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as onp

from ..core.api.namespace import wrapped
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, ndarray
from ..core.rows.dispatch import DEFINITIONS, defines
from ..core.rows.value import STAND_INS
from .arguments import as_array, plain
from .facts import NUMPY_2, WEAK

_GLOBALS: dict[str, dict[str, Any]] = {}  # of NumPy's modules: the names that their rebound functions use, as ours
_FUNCTIONS: dict[FunctionType, FunctionType] = {}
_LOCK = RLock()
INSTEAD: dict[FunctionType, Callable] = {}  # what rebound code calls for a private function of NumPy's


def rebound(function: Callable) -> Callable:
    """A definition of a NumPy function written in Python: its own code on our arrays. Made when first called."""
    made: FunctionType | None = None

    def definition(*args: Any, **kwargs: Any) -> Any:
        nonlocal made
        if made is None:
            made = _rebind(inspect.unwrap(function))
        device = devices.beside(args)  # of what it makes to write results into
        if device is None:
            return made(*args, **kwargs)
        with device:
            return made(*args, **kwargs)

    definition.__name__ = function.__name__
    definition.__doc__ = function.__doc__
    return definition


def rebound_class(cls: type, module: str = "minnp.numpy") -> type:
    """A subclass of a NumPy class written in Python, whose methods are NumPy's own on our functions."""
    members: dict[str, Any] = {"__module__": module, "__doc__": cls.__doc__}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] == "numpy":
            members |= {
                k: _member(v)
                for k, v in vars(base).items()
                # settings stay NumPy's, and so does what NumPy itself calls for an array of its own
                if k not in ("__dict__", "__weakref__", "__module__", "__array__") and type(v) is not bool
            }
    return type(cls)(cls.__name__, (cls,), members)


def _member(x: Any) -> Any:
    if isinstance(x, (staticmethod, classmethod)):
        return type(x)(_member(x.__func__))
    if isinstance(x, property):
        return property(*(f and rebound(f) for f in (x.fget, x.fset, x.fdel)), x.__doc__)
    if isinstance(x, FunctionType):
        if "_getframe" in x.__code__.co_names:  # it looks at its caller: no function of ours may stand between
            return _rebind(x)
        return rebound(x) if not x.__globals__.keys().isdisjoint(_names_in(x.__code__)) else x
    return _ours(x)


def _names_in(code: CodeType) -> set[str]:
    """The names outside that this code, or code inside it, uses."""
    return {*code.co_names}.union(*(_names_in(c) for c in code.co_consts if isinstance(c, CodeType)))


def rebound_module(module: ModuleType) -> None:
    """Make NumPy's own code the definition of every function of this module that has none."""
    for name, function in vars(module).items():  # not `__all__`, which lacks some of them
        public = name in module.__all__ or (name[0] != "_" and getattr(function, "__module__", "") == module.__name__)
        if public and isinstance(inspect.unwrap(function), FunctionType) and function not in DEFINITIONS:
            defines(function)(rebound(function))


def _rebind(function: FunctionType) -> FunctionType:
    with _LOCK:
        found = _FUNCTIONS.get(function)
        if found is None:
            theirs = function.__globals__
            name = theirs["__name__"]  # not __module__: NumPy renames that
            seen = {"__import__": _import, "type": _Type, "isinstance": _is}
            own = {k: theirs[k] for k in ("__name__", "__package__", "__spec__") if k in theirs}  # imports ask for them
            names = _GLOBALS.setdefault(name, {**own, "__builtins__": {**vars(builtins), **seen}})
            found = FunctionType(
                function.__code__, names, function.__name__, function.__defaults__, function.__closure__
            )
            found.__kwdefaults__ = function.__kwdefaults__
            _FUNCTIONS[function] = found  # known before its names are: functions of a module name each other
            for used in _names_in(function.__code__) & theirs.keys() - names.keys():
                names[used] = _ours(theirs[used])
    return found


def _import(*args: Any) -> Any:
    """What an import inside a function gives rebound code."""
    return _ours(builtins.__import__(*args))


class _AsType(type):
    def __call__(cls, *args: Any) -> Any:
        return args[0].__class__ if len(args) == 1 and type(args[0]) in STAND_INS else type(*args)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, type)


class _Type(metaclass=_AsType):
    """`type` as rebound code sees it: of what stands for a number under jit, type(x) is the number's."""


def _is(x: Any, kinds: Any) -> bool:
    """`isinstance` as rebound code sees it: a traced number is an array, whose operators and `out=` it goes on with."""
    return isinstance(x, kinds) or (type(x) in ARRAY_TYPES and ndarray in (kinds if type(kinds) is tuple else (kinds,)))


class _Namespace:
    """A NumPy module as rebound code sees it."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        value = _ours(getattr(self.module, name))
        setattr(self, name, value)
        return value


@cache
def _names() -> dict[Any, tuple[str, str, Any]]:
    """(submodule, name, function) of NumPy's public functions, by the function and by what it dispatches to."""
    found = {}
    for prefix, module in {"linalg": onp.linalg, "fft": onp.fft, "": onp}.items():
        for name, x in vars(module).items():
            if callable(x) and not isinstance(x, type) and not name.startswith("_"):
                found[x] = found[getattr(x, "_implementation", x)] = (prefix, name, x)
    return found


class _ArrayConverter:
    """What NumPy 2's own code asks of its arguments: as arrays, and which dtype they have together."""

    def __init__(self, *args: Any) -> None:
        self.args = args
        self.arrays = tuple(map(as_array, args))
        self.scalar_input = tuple(isinstance(a, (*WEAK, onp.generic)) for a in args)

    def __len__(self) -> int:
        return len(self.args)

    def __getitem__(self, i: Any) -> Any:
        return self.arrays[i]

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert_if_no_array") -> tuple:
        weak = [a.__class__ in WEAK for a in self.args]
        if pyscalars == "convert" or (pyscalars == "convert_if_no_array" and all(weak)):
            return self.arrays
        return tuple(x if w else a for x, a, w in zip(self.args, self.arrays, weak))

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> onp.dtype:
        weak = (plain(a) if a.__class__ in WEAK else x.dtype for a, x in zip(self.args, self.arrays))
        dtypes = [*weak, *([] if extra_dtype is None else [extra_dtype])]
        dtype = onp.result_type(*dtypes)
        return onp.result_type(*dtypes, 1.0) if ensure_inexact and dtype.kind not in "fc" else dtype

    def wrap(self, array: Any, to_scalar: bool | None = None) -> Any:
        return array


def _broadcast(*args: Any) -> onp.broadcast:
    """np.broadcast, of which rebound code asks the shape."""
    return onp.broadcast(*(onp.broadcast_to(0, as_array(a).shape) for a in args))


SUBSTITUTES = {onp.ndarray: ndarray, onp.broadcast: _broadcast}
if NUMPY_2:
    SUBSTITUTES[onp._core.fromnumeric._array_converter] = _ArrayConverter


def substitute(theirs: type, ours: type) -> type:
    """Let rebound code, that of modules it met before included, say `ours` where it says `theirs`."""
    SUBSTITUTES[theirs] = ours
    for names in _GLOBALS.values():
        names.update({key: ours for key, value in names.items() if value is theirs})
    return ours


def instead(theirs: FunctionType, ours: Callable) -> None:
    """Let rebound code, that of modules it met before included, call `ours` for a private function of NumPy's."""
    INSTEAD[theirs] = ours
    for names in _GLOBALS.values():
        names.update({key: ours for key, value in names.items() if value is _FUNCTIONS.get(theirs, names)})


def _ours(value: Any) -> Any:
    """What stands for a NumPy object in rebound code."""
    if isinstance(value, ModuleType):
        return _Namespace(value) if value.__name__.partition(".")[0] == "numpy" else value
    if isinstance(value, dict):
        return {k: _ours(v) for k, v in value.items()} if any(map(callable, value.values())) else value
    if isinstance(value, type):
        return SUBSTITUTES.get(value, value)
    if not callable(value):
        return value
    if value in _names():
        return wrapped(*_names()[value])
    inner = inspect.unwrap(value)
    if isinstance(inner, FunctionType) and inner.__module__.partition(".")[0] == "numpy":
        return INSTEAD.get(inner) or _rebind(inner)
    return value
