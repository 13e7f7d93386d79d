"""A NumPy module's namespace as ours: every public name, resolved on first use and remembered in the module.

Functions and ufuncs become public functions; classes, constants and dtypes are NumPy's own.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as onp

from . import functions
from .public import function, make_ufunc

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type(onp.concatenate), type(onp.sum))
# Not array functions: they take no array, or they look at their caller.
_AS_THEY_ARE = {
    "errstate", "seterr", "geterr", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "set_printoptions",
    "get_printoptions", "printoptions", "show_config", "show_runtime", "get_include", "info", "lookfor", "source",
    "test", "set_string_function", "iterable", "deprecate", "deprecate_with_doc", "issubsctype", "maximum_sctype",
    "obj2sctype", "sctype2char", "issctype", "find_common_type", "safe_eval", "who", "byte_bounds", "disp",
    "add_docstring", "add_newdoc", "add_newdoc_ufunc", "recfromcsv", "recfromtxt", "set_numeric_ops",
    "tracemalloc_domain", "get_array_wrap", "format_parser", "compat", "issubdtype", "isdtype", "typename", "scalar",
}  # fmt: skip


_THE_MODULES_OWN = {"__path__", "__file__", "__cached__", "__wrapped__", "__getattr__", "__dir__"}


def counterpart(module: str, name: str, theirs: types.ModuleType) -> types.ModuleType:
    """Our module for the library's submodule `name`: a file of this package, or made from theirs (`submodules.py`)."""
    here = "__path__" in importlib.import_module(module).__dict__ and importlib.util.find_spec(f"{module}.{name}")
    return importlib.import_module(f"{module}.{name}" if here else f"minnp.{theirs.__name__}")


_ELSEWHERE = {  # what other libraries call NumPy's functions
    "asnumpy": "x.asnumpy(), and numpy.asarray",
    "bmm": "a @ b",
    "cat": "np.concatenate",
    "mm": "a @ b",
    "randn": "np.random.randn",
    "tensor": "np.array",
    "unsqueeze": "np.expand_dims",
}


class Late:
    """A name of ours that lives in a module imported when the name is first used."""

    def __init__(self, module: str) -> None:
        self.module = module


def wrapped(prefix: str, name: str, x: Any) -> Any:
    """The public form of NumPy's `prefix.name`."""
    if isinstance(x, onp.ufunc):
        return functions.PUBLIC.get(x) or make_ufunc(x.__name__ if not prefix else f"{prefix}.{name}", x)
    # a function may be decorated with an object: scipy.fft's are
    is_function = isinstance(x, _FUNCTIONS) or type(x).__name__ == "cython_function_or_method"  # a class in each module
    inner = x if is_function else getattr(x, "__wrapped__", None)
    if (is_function or isinstance(inner, _FUNCTIONS)) and not isinstance(x, type) and name not in _AS_THEY_ARE:
        known = functions.PUBLIC.get(x)
        return known or function(f"{prefix}.{name}" if prefix else name, x)
    return x


def lazy(
    module: str, source: types.ModuleType, prefix: str, extra: dict[str, Any], stacklevel: int = 2
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `module`, whose names are those of NumPy's module `source` and of `extra`.

    stacklevel   how many calls above `__getattr__` NumPy's warnings about a name are shown, 2 for its caller"""
    names = getattr(source, "__all__", None) or [n for n in dir(source) if not n.startswith("_")]
    public_names = sorted({*names, *(n for n in dir(source) if not n.startswith("_")), *extra})

    def __getattr__(name: str) -> Any:
        namespace = importlib.import_module(module).__dict__
        if name in extra:
            value = extra[name]
            if type(value) is Late:
                value = getattr(importlib.import_module(value.module), name)
        elif name in _THE_MODULES_OWN:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        else:
            said: list = []
            try:
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    value = getattr(source, name)  # or NumPy's own words for names that it removed
            except AttributeError as error:
                error.name, error.obj = name, sys.modules[module]  # of which Python looks for a name that is near
                if module == "minnp.numpy" and name in _ELSEWHERE:
                    error.add_note(f"NumPy has {_ELSEWHERE[name]}")
                raise
            finally:
                for w in said:
                    warnings.warn(w.message, stacklevel=stacklevel)
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith(("numpy.", "scipy.")) and name[0] != "_":  # a private one is theirs
                    value = counterpart(module, name, value)
            else:
                own = str(getattr(value, "__name__", name))  # of an alias: np.permute_dims is np.transpose
                public = own == name or (not own.startswith("_") and getattr(source, own, None) is value)
                value = wrapped(prefix, own if public else name, value)
            if said:  # as it is at each use: the name is not remembered
                return value
        namespace[name] = value
        return value

    exported = sorted({*names, *extra})
    return __getattr__, lambda: public_names, exported
