"""The hooks of subclasses of our array, `__array_ufunc__` and its kin, are given the function that was called: ours.

NumPy calls them with its own functions, so `if ufunc is np.multiply` would never hold in a program written for us, nor
would a table of functions of ours know them. Where a class derives from one of ours, a hook of it whose module imports
us in the place of NumPy is given ours. Other classes stay as they are; what they decline is offered again (functions).
"""

from __future__ import annotations

import dis
import functools
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

Host = onp.ndarray
KNOWING: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of a class, whether its module imports us


@functools.cache
def ours(f: Any) -> Any:
    """Our function for NumPy's; anything else as it is."""
    module = "numpy" if isinstance(f, onp.ufunc) else getattr(f, "__module__", None) or ""
    if module.partition(".")[0] != "numpy":
        return f
    found = getattr(importlib.import_module(f"minnp.{module}"), f.__name__, None)
    return found if getattr(found, "__wrapped__", None) is f else f


def theirs(f: Any) -> Any:
    """NumPy's function for ours; anything else as it is."""
    of_ours = str(getattr(f, "__module__", "")).startswith("minnp.numpy")
    return getattr(f, "__wrapped__", f) if of_ours else f


def _ufunc(ufunc: Any, *rest: Any) -> tuple:
    return ours(ufunc), *rest


def _function(func: Any, kinds: Any, *rest: Any) -> tuple:
    return ours(func), tuple([sys.modules["minnp.numpy"].ndarray if t is Host else t for t in kinds]), *rest


def _wrap(out: Any, *rest: Any) -> tuple:
    return (out, *rest) if not rest or rest[0] is None else (out, (ours(rest[0][0]), *rest[0][1:]), *rest[1:])


HOOKS: dict[str, Callable] = {
    "__array_ufunc__": _ufunc,
    "__array_function__": _function,
    "__array_wrap__": _wrap,
    "__array_prepare__": _wrap,
}


def for_us(hook: types.FunctionType) -> bool:
    """Whether the hook's module has names of ours; where it has NumPy too, whether the hook does not ask for NumPy's
    functions alone."""
    names = hook.__globals__
    if not any(map(_of_ours, list(names.values()))):
        return False
    if not any(x is onp for x in list(names.values())):
        return True
    asked = list(_asked(hook.__code__, names))
    return any(map(_of_ours, asked)) or not any(map(_of_numpys, asked))


def knows_us(cls: type) -> bool:
    """Whether a class's module, or that of one it derives from, imports us."""
    if cls not in KNOWING:
        modules = [sys.modules.get(c.__module__) for c in cls.__mro__ if c is not object]
        KNOWING[cls] = any(_of_ours(x) for m in modules if m is not None for x in list(vars(m).values()))
    return KNOWING[cls]


def _of_ours(x: Any) -> bool:
    module = x.__name__ if isinstance(x, types.ModuleType) else getattr(x, "__module__", None)
    return str(module).startswith("minnp.numpy")


def _of_numpys(x: Any) -> bool:
    return not _of_ours(x) and ours(x) is not x


def _asked(code: types.CodeType, names: dict) -> Iterator:
    """The functions that a hook may compare with the one it is given: those it names and does not call, as
    `np.multiply`, and those in the tables and tuples among its globals."""
    module = None
    for step in dis.get_instructions(code):
        if module is not None and step.opname == "LOAD_ATTR" and "NULL|self" not in step.argrepr:  # no method's call
            yield getattr(module, step.argval, None)
        found = names.get(step.argval) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        module = found if isinstance(found, types.ModuleType) else None
        if isinstance(found, (dict, set, frozenset, list, tuple)):
            yield from list(found)
        elif found is not None and module is None:
            yield found
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _asked(inner, names)


def _translated(hook: Callable, translate: Callable) -> Callable:
    @functools.wraps(hook)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = hook(self, *translate(*args), **kwargs)
        # It may know NumPy's function. A variable of the closure would have jit look at all that the module holds.
        if out is NotImplemented and any(x is onp for x in list(hook.__globals__.values())):
            out = hook(self, *args, **kwargs)
        return out

    return call


def unread(cls: type) -> bool:
    """Whether NumPy cannot read a class's arrays, which have asnumpy() and no __array__: MXNet's, mx.nd and mx.np."""
    return hasattr(cls, "asnumpy") and not hasattr(cls, "__array__")


def translate_hooks(cls: type) -> None:
    """Give the hooks of a class that is being made, a subclass of one of ours, our functions."""
    for name, translate in HOOKS.items():
        hook = vars(cls).get(name)
        if isinstance(hook, types.FunctionType) and for_us(hook):
            setattr(cls, name, _translated(hook, translate))


class NDArrayOperatorsMixin(onp.lib.mixins.NDArrayOperatorsMixin):
    __doc__ = onp.lib.mixins.NDArrayOperatorsMixin.__doc__
    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        translate_hooks(cls)


CLASSES = {onp.lib.mixins.NDArrayOperatorsMixin: NDArrayOperatorsMixin}  # NumPy's that come here in a form of ours
