"""What other libraries and Python ask of an array by protocol: its memory, its namespace, its state."""

from __future__ import annotations

import functools
import importlib
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as onp

from ... import errors
from ..arrays import devices
from ..arrays.array import HANDLES, Array, handle, ndarray, read, show_again
from ..rows.references import references
from ..rows.value import Buffer, Host, Tracer, concrete
from . import functions
from .attributes import shown


# ------------------------------------------------------------------ memory of ours, asked for by others
def _memory(self: ndarray, way: str) -> onp.ndarray:
    """The host array whose memory is handed out: nothing leaves while a gradient or a graph watches it."""
    value = read(self)
    if type(value) is Tracer:
        inner = concrete(value)
        raise errors.TracedValueError(
            f"a traced array ({inner.dtype}{list(inner.shape)}) was about to leave minnp by {way}, where the gradient "
            "would be lost. Use minnp.numpy functions on it, or np.stop_gradient(x) to cut the gradient on purpose"
        )
    return value.host() if type(value) is Buffer else value


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
    get = lambda self: getattr(_memory(self, f"x.{name}"), name)
    return property(get, getattr(ndarray, name).fset, doc=getattr(onp.ndarray, name).__doc__)


Array.data, Array.ctypes = _handed_out("data"), _handed_out("ctypes")
Array.__array_interface__ = _interface("__array_interface__")
Array.__array_struct__ = _interface("__array_struct__")
Array.__sizeof__ = lambda self: object.__sizeof__(self) + shown(self).__sizeof__()
Array.__class_getitem__ = classmethod(lambda cls, item: onp.ndarray.__class_getitem__(item))


def _array_namespace(self: ndarray, *, api_version: str | None = None) -> Any:
    """The module whose functions take this array, for the Array API standard."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    return importlib.import_module(ndarray.__module__)


Array.__array_namespace__ = _array_namespace


def _setstate(self: ndarray, state: tuple) -> None:
    a = onp.ndarray.__new__(Host, 0)
    a.__setstate__(state)
    self._host = a


Array.__setstate__ = _setstate


def _of_subclasses(name: str) -> Callable:
    """The method, as a user's subclass calls it by the class's name: np.ndarray.__reduce__(self)."""
    ours, numpys = getattr(ndarray, name), getattr(Host, name)

    @functools.wraps(ours)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (ours if type(self) in HANDLES else numpys)(self, *args, **kwargs)

    return call


for _name in ("__array_wrap__", "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__setstate__"):
    setattr(Array, _name, _of_subclasses(_name))


def _delitem(self: ndarray, index: Any) -> None:
    raise ValueError("cannot delete array elements")


Array.__delitem__ = _delitem


def _resize(self: ndarray, *shape: Any, refcheck: bool = True) -> None:
    """x.resize(shape): in place, as NumPy's: only an array that owns its memory and of which there is no view."""
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
    _memory(self, "resize")
    if self._root is not None or (self._host is not None and self._host.base is None and not self._host.flags.owndata):
        raise ValueError("cannot resize this array: it does not own its data")
    if refcheck and self._host is not None and references(getattr, self, "_host") > 2:
        raise ValueError(
            "cannot resize an array that references or is referenced\nby another array in this way.\n"
            "Use the np.resize function or refcheck=False"
        )
    a = _memory(self, "resize")
    functions.release(a)
    if a.flags.owndata:
        a.resize(shape, refcheck=False)
        return
    order = "F" if a.flags.fnc else "C"
    out = onp.zeros(shape, a.dtype, order)  # memory borrowed from the pool of recycled buffers
    n = min(a.size, out.size)
    out.reshape(-1, order=order)[:n] = a.reshape(-1, order=order)[:n]
    if self._host is None:
        self._value = read(devices.settle(handle(out), self._value.backend))
    else:
        self._host = out


_resize.__name__, _resize.__qualname__ = "resize", "ndarray.resize"


def _changing(change: Callable) -> Callable:
    """A method that changes NumPy's array under a host array in place."""

    @functools.wraps(change)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            change(self, *args, **kwargs)
        finally:
            show_again(self)

    return call


for _name, _change in {"resize": _resize, "setflags": Array.setflags}.items():
    setattr(Array, _name, _changing(_change))
