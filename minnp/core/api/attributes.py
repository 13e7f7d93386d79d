"""What Python and NumPy ask of an ndarray: conversions, protocols, attributes."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as onp

from ... import errors
from ..arrays import devices, flags, writing
from ..arrays.array import (
    ARRAY_TYPES,
    ARRAYS,
    OBJECT,
    TAKEN,
    Array,
    VirtualArray,
    array_of,
    asked,
    concretize,
    ndarray,
    read,
    root_of,
    show_again,
    stack_nested,
    steps_of,
    unwrap,
    wrap,
)
from ..arrays.writing import holds_value, traced, write
from ..cpu import owned
from ..rows.dispatch import bind
from ..rows.on_device import laid_out
from ..rows.primitive import TABLE
from ..rows.state import capture, state, watched
from ..rows.strides import alike
from ..rows.value import Buffer, Host, Tracer, concrete, example, is_scalar, overlapping
from ..transforms.trace import Constant
from . import functions


# ------------------------------------------------------------------ Python's own conversions
def shown(self: ndarray) -> onp.ndarray:
    """The numbers an array shows when it is printed."""
    value = concrete(read(self))
    return value.host() if type(value) is Buffer else value


def _looked(self: ndarray, what: str) -> Any:
    """The concrete value of an array; its traces are notified that Python read this attribute."""
    value = read(self)
    while type(value) is Tracer:
        value.trace.looked(what)
        value = value.value
    return value


def _printed(self: ndarray) -> onp.ndarray:
    _looked(self, "text")
    return shown(self)


def _conversion(name: str, kind: type, convert: Callable) -> Callable:
    def call(self: ndarray) -> Any:
        a = self._host
        if a is None or state.busy:  # a view of what was written under a trace is read anew
            a = asked(self, kind)
            if kind is float and isinstance(a, onp.complexfloating) and capture.get() is not None:
                raise TypeError("complex(x, y) takes both parts of y where it is a 'numpy.complex128' object")
        return convert(a if isinstance(a, onp.generic) else onp.asarray(a))

    call.__name__ = name
    return call


for _name, _kind in {"bool": bool, "int": int, "float": float, "complex": complex, "index": int}.items():
    _convert = operator.index if _name == "index" else _kind
    setattr(Array, f"__{_name}__", _conversion(f"__{_name}__", _kind, _convert))


def _hash(self: VirtualArray) -> int:
    value = read(self)
    if not is_scalar(value) and (self.shape or type(value) is not Host):  # a trace that ended had a scalar
        raise TypeError("unhashable type: 'numpy.ndarray'")
    return hash(onp.asarray(concretize(value, hash))[()])  # what is in a set, or a key of a dict


VirtualArray.__hash__ = _hash  # type: ignore[assignment]


# what other libraries' traced arrays have, and what does its work
_ELSEWHERE = {
    "as_in_context": "x.to_device(device)",
    "at": "x[i] = v, which keeps the gradient",
    "attach_grad": "minnp.grad(f)(x): nothing has to be marked",
    "backward": "minnp.grad(f)(x)",
    "block_until_ready": "x.wait_to_read()",
    "cuda": "x.to_device('gpu:0')",
    "detach": "np.stop_gradient(x)",
    "get": "x itself: minnp.numpy's functions take it",
    "grad": "minnp.grad(f)(x), which returns the gradient",
    "numpy": "np.stop_gradient(x), if no gradient is meant to flow",
    "permute": "x.transpose(axes)",
    "requires_grad": "minnp.grad(f, argnum), which says what is differentiated",
    "requires_grad_": "minnp.grad(f, argnum), which says what is differentiated",
    "to": "x.astype(dtype), and x.to_device(device)",
    "unsqueeze": "np.expand_dims(x, axis)",
}


def _of_scalars(self: VirtualArray, name: str) -> Any:
    """What NumPy's scalars have and its arrays have not, as Python's numbers: `is_integer`, `as_integer_ratio`."""
    if isinstance(found := getattr(type(self), name, None), property):  # which raised: it says why itself
        return found.__get__(self)
    value = read(self) if not name.startswith("_") else None
    if value is None or not is_scalar(value) or not hasattr(value.dtype.type, name):
        meant = f"; here it is {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self)
    of_number = lambda: getattr(onp.asarray(concretize(value, float))[()], name)
    # of a method, hasattr wants to know no number
    return (lambda *args: of_number()(*args)) if callable(getattr(value.dtype.type, name)) else of_number()


VirtualArray.__getattr__ = _of_scalars  # type: ignore[attr-defined]


class _Absent:
    """What other libraries' arrays have and a host array has not: NumPy's error, with a note of what does its work. A
    `__getattr__` of the class, which knows what to say as well, would be asked for every attribute that is there."""

    def __init__(self, name: str, instead: str) -> None:
        self.name, self.instead = name, instead

    def __get__(self, x: Any, owner: type) -> Any:
        shown = "numpy.ndarray" if owner is ndarray else owner.__name__
        what = f"type object {shown!r}" if x is None else f"{shown!r} object"
        error = AttributeError(f"{what} has no attribute {self.name!r}", name=self.name, obj=owner if x is None else x)
        error.add_note(f"here it is {self.instead}")
        raise error


_ON_THE_HOST = {
    **_ELSEWHERE,
    "get": "x.asnumpy(), a NumPy array of its own",
    "numpy": "x.asnumpy(), a NumPy array of its own; numpy.asarray(x) shares memory",
}
for _name, _instead in _ON_THE_HOST.items():
    setattr(ndarray, _name, _Absent(_name, _instead))
# completion offers what is there
ndarray.__dir__ = lambda x: [n for n in onp.ndarray.__dir__(x) if n not in _ON_THE_HOST or hasattr(x, n)]  # type: ignore
type(ndarray).__dir__ = lambda c: [n for n in type.__dir__(c) if n not in _ON_THE_HOST or hasattr(c, n)]  # type: ignore


def _trunc(x: Any) -> int:
    """math.trunc of a traced number, which of NumPy's only float64 has."""
    if not hasattr(x.dtype.type, "__trunc__"):
        raise TypeError(f"type numpy.{x.dtype.type.__name__} doesn't define __trunc__ method")
    return int(x)


VirtualArray.__trunc__ = _trunc  # type: ignore[attr-defined]


def _round(self: ndarray, ndigits: Any = None) -> Any:
    if not is_scalar(read(self)) or self.dtype.kind not in "iuf":
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    rounded = TABLE["round"](self, decimals=0 if ndigits is None else ndigits)
    return int(rounded) if ndigits is None else rounded


Array.__round__ = _round


def _len(self: ndarray) -> int:
    if self._host is not None:
        return len(self._host)
    shape = self.shape
    if not shape:
        if is_scalar(read(self)) and (names := self.dtype.names):
            return len(names)
        raise TypeError("len() of unsized object")
    return shape[0]


def _contains(self: ndarray, x: Any) -> bool:
    return bool((self == x).any())


def _format(self: ndarray, spec: str) -> str:
    said = _printed(self)
    return format(said if self.ndim else said[()], spec)


def _array(self: ndarray, dtype: Any = None, copy: bool | None = None) -> onp.ndarray:
    value = read(self)
    if type(value) is Tracer:
        whole = dtype is not None and onp.dtype(dtype).kind in "biu"  # np.int64(x): no gradient is lost
        value = concretize(value, Constant if whole else onp.ndarray)
    a = value.host() if type(value) is Buffer else onp.asarray(value)  # a trace may hold NumPy's scalar
    if copy is False and (type(value) is Buffer or (dtype is not None and a.dtype != dtype)):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


def _array_wrap(self: ndarray, array: Any, context: Any = None, return_scalar: bool = False) -> ndarray:
    out = array if type(array) in ARRAY_TYPES else array_of(array)
    return out[()] if return_scalar and not out.ndim else out


def _reduce_ex(self: ndarray, protocol: Any) -> tuple:
    if is_scalar(read(self)):
        return _array(self)[()].__reduce__()
    return _rebuild_here if type(concrete(read(self))) is Buffer else _rebuild, (_array(self),)


def _rebuild(a: onp.ndarray) -> ndarray:
    return array_of(a)


def _rebuild_here(a: onp.ndarray) -> ndarray:
    """What was an array on a device, where new arrays live: its device may not be there any more."""
    device = devices.default_device()
    return array_of(a) if device is None else devices.move_result(array_of(a), device)


def _deepcopy(self: ndarray, memo: dict) -> ndarray:
    a = read(self)
    return array_of(a.__deepcopy__(memo)) if type(a) is Host else self.copy()


VERSIONED = onp.lib.NumpyVersion(onp.__version__) >= "2.1.0"  # its __dlpack__ takes what the standard says


def _exported(self: ndarray) -> Any:
    value = read(self)
    return value.backend.exported(value.data) if type(value) is Buffer else _array(self)


def _dlpack(
    self: ndarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
) -> Any:
    a = _exported(self)
    if type(a) is not Host:
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        return a.__dlpack__(**{k: v for k, v in asked.items() if v is not None})
    if VERSIONED:
        return a.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device not in (None, (1, 0)):
        raise BufferError(f"an array of this NumPy is on DLPack's device (1, 0), the CPU, not on {dl_device}")
    return (a.copy() if copy else a).__dlpack__(stream=stream)


def _dlpack_device(self: ndarray) -> tuple[int, int]:
    value = read(self)
    data = value.data if type(value) is Buffer and hasattr(value.data, "__dlpack_device__") else _exported(self)
    return data.__dlpack_device__()  # nothing is copied to tell


for _name, _special in {
    "len": _len,
    "contains": _contains,
    "hash": None,
    "format": _format,
    "repr": lambda self: repr(_printed(self)),
    "str": lambda self: str(_printed(self)),
    "array": _array,
    "array_wrap": _array_wrap,
    "array_prepare": _array_wrap,
    "reduce": lambda self: _reduce_ex(self, 2),
    "reduce_ex": _reduce_ex,
    "deepcopy": _deepcopy,
    "getstate": lambda self: None,  # as of an object without attributes
    "copy": lambda self: self.copy(order="K"),
    "dlpack": _dlpack,
    "dlpack_device": _dlpack_device,
}.items():
    if callable(_special) and hasattr(onp.ndarray, f"__{_name}__"):
        _special.__wrapped__ = getattr(onp.ndarray, f"__{_name}__")  # whose signature is shown
    setattr(Array, f"__{_name}__", _special)


# ------------------------------------------------------------------ attributes
def _fact(name: str) -> property:
    def get(self: ndarray) -> Any:
        a = self._host
        return getattr(a if a is not None else read(self), name)

    return property(get, doc=getattr(onp.ndarray, name).__doc__)


LAYOUT = {"strides", "flags", "nbytes", "itemsize"}
OF_MEMORY = {"strides", "flags"}  # what nobody asks for who does not read memory, or has it read
_OWN = ("minnp", "numpy")  # NumPy's Python code, which is also ours with other globals, hands memory to nobody


def _keep(self: ndarray, name: str) -> None:
    """Raise where a library asks how the memory lies of a host array that a trace follows: x.dtype says numbers, and
    the fields beside it are a guard's (guard.py)."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == f"{__package__}.protocols":  # asks for subclasses
        frame = frame.f_back
    asks = ("" if frame is None else frame.f_globals.get("__name__")) or ""
    if type(self) is ndarray and asks.partition(".")[0] not in _OWN and type(read(self)) is Tracer:
        raise errors.TracedValueError(
            f"x.{name} was asked of a {self.dtype}{list(self.shape)} array that was written with traced values: as "
            "long as a trace follows it, its memory is nobody else's. Use minnp.numpy functions on it, or "
            f"np.stop_gradient(x), whose {name} are the same"
        )


def _host_fact(name: str) -> property:
    """An attribute about memory: of the NumPy array that it shows; settable where NumPy's is."""

    def get(self: ndarray) -> Any:
        if name in OF_MEMORY and (self._host is None or state.busy):
            _keep(self, name)
        if name in LAYOUT and self._host is None:
            _looked(self, name)
            seen = example(read(self))
            if type(seen) is Buffer:  # nothing is copied to tell
                return flags.Flags(self, seen) if name == "flags" else getattr(laid_out(seen), name)
            return flags.HostFlags(self, seen.flags) if name == "flags" else getattr(seen, name)
        found = getattr(shown(self), name)
        return flags.HostFlags(self, found) if name == "flags" and type(self) is ndarray else found

    def set_(self: ndarray, value: Any) -> None:
        a = read(self)
        if type(a) is Host:
            setattr(a, name, value)
            show_again(self)
        elif name == "shape":
            _set_shape(self, a, value if type(value) is int else tuple(map(operator.index, value)))
        else:
            raise AttributeError(f"the {name} of a traced or device array cannot be set; use x.astype or x.view")

    return property(get, set_, doc=getattr(onp.ndarray, name).__doc__)


def _set_shape(self: ndarray, value: Any, shape: Any) -> None:
    """Give a traced array another shape: a view is read through one more step, a root holds the reshaped value, and its
    views are read through the shape that it had."""
    if type(value) is Buffer:
        return flags.set_shape(self, value, shape)
    step = (TABLE["reshape"], {"shape": shape})
    reshaped = bind(step[0], (value,), step[1])
    if not overlapping(reshaped, value):
        raise AttributeError(flags.NO_VIEW)
    if self._root is not None:
        self._steps = (*self._steps, step)
    else:
        if type(self) is ndarray:  # its host views are windows of the memory that it showed before
            seen = self._seen.view()
            seen.shape = shape
            self._seen = seen
        before = (TABLE["reshape"], {"shape": value.shape})
        for view in gc.get_referrers(self):
            if type(view) is VirtualArray and view._root is self:
                view._steps = (before, *view._steps)
    self._value = reshaped


for _name in ("ndim", "size"):
    setattr(Array, _name, _fact(_name))
for _name in ("shape", "dtype", "strides", "flags", "nbytes", "itemsize", "data", "ctypes"):
    setattr(Array, _name, _host_fact(_name) if _name not in ("shape", "dtype") else _fact(_name))


def _set_host(name: str) -> property:
    fact = getattr(ndarray, name)
    return property(fact.fget, _host_fact(name).fset, doc=fact.__doc__)


def _private_setter(name: str) -> Callable:
    """NumPy 2.5's setter without the warning that it is deprecated: ndarray._set_shape, ndarray._set_dtype."""

    def set_(self: ndarray, value: Any) -> None:
        if type(a := read(self)) is not Host:
            return setattr(self, name, value)
        getattr(a, f"_set_{name}")(value)
        show_again(self)

    return set_


for _name in ("shape", "dtype"):
    setattr(Array, _name, _set_host(_name))
    if hasattr(onp.ndarray, f"_set_{_name}"):
        setattr(Array, f"_set_{_name}", _private_setter(_name))


def _base(self: ndarray) -> Any:
    if self._root is not None:
        return self._root
    if type(example(read(self))) is Buffer:
        return None  # it owns its memory there
    a = shown(self)
    base = None if owned(a) else a.base
    return array_of(base) if type(base) is Host else base


def _part(name: str) -> property:
    def get(self: ndarray) -> Any:
        a = read(self)
        if type(a) is Host:
            return wrap(getattr(a, name), (self,))
        if name == "real" and not _complex(a):
            return self
        part = TABLE[name](self)
        if name == "imag" and type(a) is Buffer and not _complex(a):
            flags.set_writeable(part, False, alone=True)  # zeros that are no part of the array
        return part

    def set_(self: ndarray, value: Any) -> None:
        a, given = read(self), unwrap(value, [])
        if type(a) is Host and not isinstance(given, (Tracer, Buffer)):
            functions.release(a)
            setattr(a, name, given)
        elif is_scalar(a):
            setattr(onp.zeros((), a.dtype)[()], name, 0)  # NumPy's exception
        elif _complex(a):
            value = value if type(value) in ARRAY_TYPES else onp.asarray(given)
            write(get(self), ..., value.real)  # NumPy drops the imaginary parts of what is given
        elif name == "real":
            write(self, ..., value)
        else:
            raise TypeError("array does not have imaginary part to set")

    return property(get, set_, doc=getattr(onp.ndarray, name).__doc__)


def _complex(value: Any) -> bool:
    return value.dtype.kind == "c"


def _set_flat(self: ndarray, value: Any) -> None:
    a, v = read(self), unwrap(value, [])
    if type(a) is Host and not isinstance(v, (Tracer, Buffer)) and not state.busy:
        functions.release(a)
        a.flat = v
        return
    if is_scalar(a):
        onp.zeros((), a.dtype)[()].flat = 0  # NumPy's exception
    onp.zeros(1, self.dtype).flat = v if not isinstance(value, ARRAYS) else onp.zeros(1, v.dtype)  # or its exception
    v = onp.ravel(v) if not isinstance(value, ARRAYS) else value.reshape(-1)
    if not (self.size and self.ndim and len(v)):
        return write(self, ..., v[0]) if self.size and len(v) else None
    if not _write_overlapping(self, None, value):
        FlatIterator(self)[:] = v[onp.arange(self.size) % len(v)]


class _FlatType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return super().__instancecheck__(x) or isinstance(x, onp.flatiter)


class FlatIterator(metaclass=_FlatType):
    """x.flat: indexing and iteration in C order; traced, of the flattened array."""

    __slots__ = ("_flat", "base")
    __hash__ = None

    def __init__(self, base: ndarray) -> None:
        a = read(base)
        self.base, self._flat = base, (a if type(a) is Host else onp.broadcast_to(0, a.shape)).flat  # where it is

    def _host(self) -> Any:
        return self._flat if self._flat.base is read(self.base) else None

    def __getitem__(self, index: Any) -> Any:
        flat, i = self._host(), unwrap(index, [])
        if flat is not None and not watched():
            return wrap(flat[i])
        part = self.base.reshape(-1)[index]
        return part.copy() if part.ndim else part

    def __setitem__(self, index: Any, value: Any) -> None:
        flat, i, v = self._host(), unwrap(index, []), unwrap(value, [])
        if flat is not None and not isinstance(v, (Tracer, Buffer)) and not watched():
            functions.release(read(self.base))
            flat[i] = v
            return
        if _write_overlapping(self.base, i, value):
            return
        base = self.base if self.base.ndim else self.base.reshape(-1)  # of no axes, as of one
        shape = base.shape
        at = array_of(onp.arange(self.base.size))[index]
        if n := getattr(at, "ndim", 0) and at.size:  # NumPy repeats the values, and leaves those over
            value = stack_nested(value) if type(value) in (list, tuple) and holds_value(v) else value
            value = value.reshape(-1) if type(value) in ARRAY_TYPES else onp.ravel(v)
            if not value.size:
                return
            value = value[onp.arange(n) % value.size].reshape(at.shape)
        steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        write(base, tuple([at // step % n for step, n in zip(steps, shape)]), value)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator:
        flat = self._host()
        if flat is None or watched():
            return iter(self.base.reshape(-1))
        return map(wrap, flat) if flat.base.dtype is OBJECT else flat

    def __next__(self) -> Any:
        i, element = self._flat.index, next(self._flat)
        return element if self._host() is not None and not watched() else self[i]

    index = property(lambda self: self._flat.index, doc=onp.flatiter.index.__doc__)
    coords = property(lambda self: self._flat.coords, doc=onp.flatiter.coords.__doc__)

    def copy(self) -> ndarray:
        return self.base.flatten()

    def __array__(self, *args: Any, **kwargs: Any) -> onp.ndarray:
        return onp.asarray(self.base.reshape(-1)).__array__(*args, **kwargs)


FlatIterator.__name__ = FlatIterator.__qualname__ = "flatiter"
FlatIterator.copy.__wrapped__, FlatIterator.__array__.__wrapped__ = onp.flatiter.copy, onp.flatiter.__array__
FlatIterator.__module__ = "minnp.numpy"


def _elements(flat: FlatIterator) -> Any:
    """The elements of a traced array; those of others NumPy asks for itself."""
    return flat.copy() if type(read(flat.base)) is Tracer else flat


TAKEN[FlatIterator] = _elements


def _write_overlapping(base: ndarray, index: Any, value: Any) -> bool:
    """base.flat[index] = value, or base.flat = value, if both show the same memory: NumPy reads while it writes. Which
    element goes where it says itself, of an array of places. False where that is not known."""
    if not isinstance(value, Array) or root_of(value) is not root_of(base) or traced(index):
        return False
    steps, others = steps_of(base), steps_of(value)
    if any(row.name in ("view", "real", "imag") for row, _ in (*steps, *others)):
        return False
    root = example(read(root_of(base)))
    places = alike(laid_out(root) if type(root) is Buffer else root, onp.intp)
    places[...] = onp.arange(places.size).reshape(places.shape)
    out, new = writing.shown(places, steps), writing.shown(places, others)
    if index is None:
        out.flat = new
    else:
        out.flat[index] = new
    write(base, ..., root_of(value).reshape(-1)[array_of(out)])
    return True


def _flat(self: ndarray) -> Any:
    value = read(self)
    return value.flat if isinstance(value, onp.generic) else FlatIterator(self)


def _flat_comparison(compare: Callable) -> Callable:
    return lambda self, other: compare(self.copy(), other)


for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(FlatIterator, f"__{_name}__", _flat_comparison(getattr(operator, _name)))


def _transposed(self: ndarray) -> ndarray:
    a = self._host
    return wrap(a.T, (self,)) if a is not None and not state.busy else self.transpose()


Array.base = property(_base)
Array.real = _part("real")
Array.imag = _part("imag")
Array.flat = property(_flat, _set_flat, doc=onp.ndarray.flat.__doc__)
Array.T = property(_transposed, doc=onp.ndarray.T.__doc__)
Array.mT = property(
    lambda self: self.swapaxes(-1, -2) if self.ndim > 1 else _mt_error(), doc="View of the matrix transposed array."
)


def _mt_error() -> Any:
    raise ValueError("matrix transpose with ndim < 2 is undefined")
