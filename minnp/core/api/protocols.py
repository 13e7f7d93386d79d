"""What other libraries and Python ask of an array by protocol: its memory, its namespace, its state."""

from __future__ import annotations

import functools
import importlib
import math
import operator
import sys
import weakref
from collections.abc import Callable, ValuesView
from types import FunctionType, GenericAlias
from typing import Any

import numpy as onp

from ..arrays import devices
from ..arrays.array import ARRAY_TYPES, Array, array_of, memory, ndarray, read, show_again, unwrap, wrap
from ..arrays.hooks import theirs
from ..rows.value import Buffer, Host, Tracer
from . import functions, methods
from .attributes import shown
from .functions import PUBLIC, foreign_entry, invoke, opened
from .public import make_ufunc


# ------------------------------------------------------------------ memory of ours, asked for by others
def _interface(name: str) -> property:
    """The memory, for those who ask by this name. Where there is none to give, or type strings do not say all of the
    dtype, the name does not exist: NumPy then asks __array__, which decides (and says) what may leave."""

    def get(self: ndarray) -> Any:
        value = read(self)
        if type(value) is Host:
            return getattr(value, name)
        if type(value) is Tracer or value.dtype.kind not in "?biufc" or value.dtype.metadata:
            raise AttributeError(f"{name}: a traced or non-numeric array ({value.dtype}) has no memory to hand out")
        return getattr(value.host() if type(value) is Buffer else value, name)

    return property(get, doc=getattr(onp.ndarray, name).__doc__)


def _handed_out(name: str) -> property:
    theirs = getattr(onp.ndarray, name).__get__

    def get(self: ndarray) -> Any:
        a = memory(self, f"x.{name}")
        if isinstance(a, onp.generic):
            return getattr(a, name)
        return theirs(self if type(self) is ndarray and name == "ctypes" else a)  # which keeps what it is asked of

    return property(get, getattr(ndarray, name).fset, doc=getattr(onp.ndarray, name).__doc__)


Array.data, Array.ctypes = _handed_out("data"), _handed_out("ctypes")
Array.__array_interface__ = _interface("__array_interface__")
Array.__array_struct__ = _interface("__array_struct__")
Array.__sizeof__ = lambda self: object.__sizeof__(self) + shown(self).__sizeof__()
Array.__class_getitem__ = classmethod(lambda cls, item: GenericAlias(cls, onp.ndarray.__class_getitem__(item).__args__))


def _array_namespace(self: ndarray, *, api_version: str | None = None) -> Any:
    """The module whose functions take this array, for the Array API standard."""
    if not isinstance(api_version, (str, type(None))):
        raise ValueError(f"Only None and strings are allowed as the Array API version, but received: {api_version}.")
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    return importlib.import_module(ndarray.__module__)


Array.__array_namespace__ = _array_namespace


def _setstate(self: ndarray, state: tuple) -> None:
    a = onp.ndarray.__new__(Host, 0)
    a.__setstate__(state)
    self._host = a


Array.__setstate__ = _setstate


def _delitem(self: ndarray, index: Any) -> None:
    raise ValueError("cannot delete array elements")


Array.__delitem__ = _delitem


def _resize(self: ndarray, *shape: Any, refcheck: Any = None) -> None:
    """x.resize(shape): in place, as NumPy's: only an array that owns its memory and of which there is no view."""
    # how often the call itself refers to the array: up to twice more where its arguments were unpacked, or named
    call = _ONE_NAME + (0 if len(shape) == 1 and refcheck is None else 2)
    refcheck = True if refcheck is None else bool(operator.index(refcheck))
    if not shape or (shape := shape[0] if len(shape) == 1 else shape) is None:
        return
    try:
        shape = (operator.index(shape),)
    except TypeError:
        shape = tuple(map(operator.index, shape))
    if min(shape, default=0) < 0:
        raise ValueError("negative dimensions not allowed")
    if math.prod(shape) == self.size:  # other axes of the same memory, which may be a view's
        if self._host is None:
            self.shape = shape
        else:
            self._host.resize(shape, refcheck=False)
        return
    memory(self, "resize")
    if self._root is not None or (self._host is not None and self._host.base is None and not self._host.flags.owndata):
        raise ValueError("cannot resize this array: it does not own its data")
    viewed = self._host is not None and sys.getrefcount(self._host) > _NO_VIEW
    if refcheck and (viewed or weakref.getweakrefcount(self) or sys.getrefcount(self) > call):
        raise ValueError(
            "cannot resize an array that references or is referenced\nby another array in this way.\n"
            "Use the np.resize function or refcheck=False"
        )
    a = memory(self, "resize")
    functions.release(a)
    if a.flags.owndata:
        a.resize(shape, refcheck=False)
        return
    order = "F" if a.flags.fnc else "C"
    out = onp.zeros(shape, a.dtype, order)  # memory borrowed from the pool of recycled buffers
    n = min(a.size, out.size)
    out.reshape(-1, order=order)[:n] = a.reshape(-1, order=order)[:n]
    if self._host is None:
        self._value = read(devices.move_result(array_of(out), self._value.backend))
    else:
        self._host = out


_resize.__name__, _resize.__qualname__ = "resize", "ndarray.resize"


def _changing(change: Callable) -> Callable:
    """A method that changes NumPy's array under a host array in place."""

    @functools.wraps(change)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            return change(self, *args, **kwargs)
        finally:
            show_again(self)

    return call


for _name, _change in {"resize": _resize, "setflags": Array.setflags}.items():
    setattr(Array, _name, _changing(_change))


# ------------------------------------------------------------------ NEP 13 and NEP 18: our public functions, looked up
def _array_function(self: ndarray, func: Callable, types: tuple, args: tuple, kwargs: dict) -> Any:
    """numpy.f(minnp array): our f, or NumPy's own on host arrays."""
    if not isinstance(args, tuple):
        raise TypeError("args must be a tuple.")
    if not isinstance(kwargs, dict):
        raise TypeError("kwargs must be a dict.")
    if not any(type(a) in ARRAY_TYPES for a in args):  # NumPy looked into a sequence
        args, kwargs = tuple(map(opened, args)), {k: opened(v) for k, v in kwargs.items()}
        if any(isinstance(a, ValuesView) for a in args):  # NumPy's answer: that this is no sequence
            return func._implementation(*args, **kwargs)
    known = PUBLIC.get(func)
    if known is not None:
        return known(*args, **kwargs)
    return invoke(foreign_entry(f"{func.__module__}.{func.__name__}".removeprefix("numpy."), func), args, kwargs)


def _array_ufunc(self: ndarray, host: onp.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """numpy.f(minnp array), f a ufunc or one of its methods."""
    out = kwargs.get("out")
    if type(out) is tuple and len(out) == 1:
        kwargs = {**kwargs, "out": out[0]}
    known = PUBLIC.get(host)
    if known is None and getattr(onp, host.__name__, None) is host:  # nobody has asked for its name yet
        known = make_ufunc(host.__name__, host)
    if method == "__call__":
        return (
            known(*inputs, **kwargs)
            if known is not None
            else invoke(foreign_entry(host.__name__, host), inputs, kwargs)
        )
    if known is not None:
        return getattr(known, method)(*inputs, **kwargs)
    return invoke(foreign_entry(f"{host.__name__}.{method}", getattr(host, method)), inputs, kwargs)


for _name, _hook in {"__array_function__": _array_function, "__array_ufunc__": _array_ufunc}.items():
    _hook.__wrapped__ = getattr(onp.ndarray, _name)  # whose signature is shown
    setattr(Array, _name, _hook)


# ------------------------------------------------------------------ instances of users' subclasses
def _shared(name: str, member: Any) -> Any:
    """A function or property of our arrays, which is NumPy's for an instance of a user's subclass."""
    numpys = getattr(onp.ndarray, name)
    if isinstance(member, property):
        get = lambda x: member.fget(x) if type(x) in ARRAY_TYPES else getattr(super(Array, x), name)

        def set_(x: Any, value: Any) -> None:
            if type(x) in ARRAY_TYPES and member.fset is None:
                raise AttributeError(f"attribute {name!r} of 'numpy.ndarray' objects is not writable")
            member.fset(x, value) if type(x) in ARRAY_TYPES else numpys.__set__(x, value)

        return property(get, set_, doc=member.__doc__)

    @functools.wraps(member)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) in ARRAY_TYPES:
            return member(x, *args, **kwargs)
        return getattr(super(Array, x), name)(*args, **kwargs)  # NumPy's, or a masked array's

    return call


def _shared_hook(name: str, member: Callable) -> Callable:
    """The same of __array_ufunc__ and __array_function__, for `super()` in a subclass that has one: NumPy's knows its
    own functions and arrays alone."""
    numpys = getattr(onp.ndarray, name)

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) in ARRAY_TYPES:
            return member(x, *args, **kwargs)
        sources: list = []
        function, *rest = unwrap(args, sources)
        return wrap(numpys(x, theirs(function), *rest, **unwrap(kwargs, sources)), sources)

    return functools.update_wrapper(call, member)


for _name, _member in list(vars(Array).items()):
    if _name in ("__array_ufunc__", "__array_function__"):
        setattr(Array, _name, _shared_hook(_name, _member))
    elif isinstance(_member, (property, FunctionType)) and hasattr(onp.ndarray, _name):
        if getattr(_member, "__module__", "") == methods.__name__:
            continue  # functions.invoke calls NumPy's own
        setattr(Array, _name, _shared(_name, _member))


def _references_of_one_name(of: Callable) -> int:
    """What sys.getrefcount(of(self)) is in _resize, called as a method, of an array that has one name and no view."""
    one, resize = array_of(onp.zeros(0)), Array.resize
    Array.resize = _shared("resize", _changing(of))
    try:
        return (
            one.resize()
        )  # as programs do it: from CPython 3.14 on a function that is called is given other references
    finally:
        Array.resize = resize


_ONE_NAME = _references_of_one_name(lambda self: sys.getrefcount(self))
_NO_VIEW = _references_of_one_name(lambda self: sys.getrefcount(self._host))
