"""Methods of ndarray, from a table, and the definitions of those that have no function of the same name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays import devices
from ..arrays.array import ARRAY_TYPES, ARRAYS, Array, VirtualArray, asked, concretize, ndarray, read, unwrap, wrap
from ..arrays.writing import write
from ..rows.dispatch import DEFINITIONS, defines
from ..rows.primitive import TABLE
from ..rows.pytree import CONTAINERS, replaced
from ..rows.state import capture, state
from ..rows.value import Buffer, concrete, is_scalar
from ..transforms import trace
from . import install
from .attributes import FlatIterator, shown
from .fallback import fallback
from .functions import entry, invoke, operand


# ------------------------------------------------------------------ memory orders
def memory_order(a: Any, order: str | None) -> str:
    """What `order=` comes to for a result as of array a: "C", "F" or, as a lies, "K"."""
    onp.array(0, order=order)  # or NumPy's exception
    order = (order or "K").upper()
    return order if order != "A" else "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"


def lies_in(a: Any, order: str | None) -> bool:
    """Whether an array lies in memory as `order=` asks."""
    if order in ("K", None):
        return True
    order = memory_order(a, order)
    return order == "K" or (a.flags.c_contiguous if order == "C" else a.flags.f_contiguous)


def in_order(out: Any, order: str | None, like: Any) -> Any:
    """A result in the memory order that `order=` asks for, "A" being that of `like`; a copy where it lies otherwise."""
    if order in ("K", None):
        return out
    order = memory_order(like, order)
    return out if lies_in(out, order) else TABLE["copy"](out, order=order)


# ------------------------------------------------------------------ methods
def _method(name: str, writes: tuple = ()) -> Callable:
    """A method of NumPy's arrays: NumPy's own on the host; else its definition, or the function of the same name."""
    host = getattr(onp.ndarray, name)
    e = entry(f"ndarray.{name}", host, writes)

    def first(*args: Any, **kwargs: Any) -> Any:
        e.definition = _method_definition(name, host)  # by now all are known
        return e.definition(*args, **kwargs)

    e.definition = first

    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        if type(self) not in ARRAY_TYPES and isinstance(self, onp.ma.MaskedArray):  # a class that derives from both
            return getattr(super(Array, self), name)(*args, **kwargs)
        if type(self) is VirtualArray and isinstance(value := read(self), onp.generic):
            return wrap(getattr(value, name)(*args, **kwargs))
        return invoke(e, (self, *args), kwargs)

    call.__name__ = name
    call.__qualname__ = f"ndarray.{name}"
    call.__doc__ = host.__doc__
    call.__wrapped__ = host  # whose signature is shown
    return install.method(call, e)


def _method_definition(name: str, host: Any) -> Callable:
    found = DEFINITIONS.get(host)
    if found is None:
        found = DEFINITIONS.get(getattr(onp, name, None))
    if found is None:

        def found(*args: Any, **kwargs: Any) -> Any:
            return wrap(fallback(entry(f"ndarray.{name}", host), [unwrap(a, []) for a in args], kwargs))

    return found


_ALL = [n for n in dir(onp.ndarray) if not n.startswith("_") and callable(getattr(onp.ndarray, n))]
METHODS = [n for n in _ALL if n not in vars(Array)]  # attributes and protocols have the rest
WRITING = ("fill", "itemset", "partition", "put", "setfield", "sort", "byteswap")
for _name in METHODS:
    setattr(Array, _name, _method(_name, (0,) if _name in WRITING else ()))
Array.to_device = devices.to_device
Array.device = property(devices.device, devices.device_is_fixed)


@defines(onp.ndarray.astype, view="perhaps")
def _astype(
    a: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    dtype = onp.dtype(dtype)
    if casting != "unsafe" and not onp.can_cast(a.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {a.dtype!r} to {dtype!r} according to the rule {casting!r}")
    if not copy and a.dtype == dtype and lies_in(a, order):
        return a
    return in_order(TABLE["astype"](a, dtype=dtype), order, a)


@defines(onp.ndarray.reshape)
def _reshape(a: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    return DEFINITIONS[onp.reshape](a, shape[0] if len(shape) == 1 else shape, order, copy=copy)


@defines(onp.ndarray.transpose)
def _transpose(a: Any, *axes: Any) -> Any:
    return DEFINITIONS[onp.transpose](a, axes[0] if len(axes) == 1 else axes or None)


@defines(onp.ndarray.copy)
def _copy(a: Any, order: str = "C") -> Any:
    if not is_scalar(read(a)):
        return TABLE["copy"](a, order=order)
    # nobody writes to a scalar, unless it is a record
    return a if a.dtype.names is None else TABLE["getitem"](TABLE["copy"](a), index=())


@defines(onp.ndarray.flatten, takes=("ravel", "reshape", "copy"))
def _flatten(a: Any, order: str = "C") -> Any:
    return TABLE["copy"](DEFINITIONS[onp.ravel](a, order))


@defines(onp.ndarray.conj, onp.ndarray.conjugate)
def _conj(a: Any) -> Any:
    return TABLE["conjugate"](a) if a.dtype.kind == "c" else a  # where the function makes a copy


def _bytes_of(name: str) -> Callable:
    def call(a: Any, *args: Any, **kwargs: Any) -> bytes:
        value = onp.asarray(asked(a, onp.ndarray))  # which compiled code lays out as it likes
        return getattr(onp.asfortranarray(value) if a.flags.fnc else value, name)(*args, **kwargs)

    return call


for _name in ("tobytes", "tostring", "dumps"):
    if hasattr(onp.ndarray, _name):
        defines(getattr(onp.ndarray, _name))(_bytes_of(_name))


@defines(onp.ndarray.fill)
def _fill(a: Any, value: Any) -> None:
    onp.zeros(1, a.dtype).fill(plain_like(value))  # or NumPy's exception
    write(a, ..., value)


@defines(onp.ndarray.setflags)
def _setflags(a: Any, write: Any = None, align: Any = None, uic: Any = None) -> None:
    for name, value in {"writeable": write, "aligned": align, "writebackifcopy": uic}.items():
        if value is not None:
            setattr(a.flags, name, value)


if hasattr(onp.ndarray, "itemset"):  # NumPy 1

    @defines(onp.ndarray.itemset)
    def _itemset(a: Any, *args: Any) -> None:
        *index, value = args
        if len(index) == 1 and type(index[0]) is not tuple:
            a.flat[index[0]] = value
        else:
            write(a, index[0] if len(index) == 1 else tuple(index) or ..., value)


@defines(onp.ndarray.sort)
def _sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None, **options: Any) -> None:
    write(a, ..., DEFINITIONS[onp.sort](a, operator.index(axis), kind, order, **options))


@defines(onp.ndarray.partition)
def _partition(a: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    write(a, ..., DEFINITIONS[onp.partition](a, kth, operator.index(axis), kind, order))


@defines(onp.ndarray.put, onp.put, writes=(0,))
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    v = stacked(v)
    if not a.size:
        onp.zeros(a.shape, a.dtype).put(plain_like(ind), plain_like(v), mode)  # NumPy's exception, or nothing
        return
    onp.zeros(1, a.dtype).put(0, plain_like(v))
    places = onp.asarray(trace.plain(ind))
    if places.dtype.kind != "b" and (places.size or hasattr(ind, "dtype")):  # NumPy's exception, but for []
        places = places.astype(onp.intp, casting="safe")
    positions = onp.arange(a.size).take(places.astype(onp.intp), mode=mode).reshape(-1)
    v = DEFINITIONS[onp.ravel](v) if isinstance(v, ARRAYS) else onp.ravel(v)
    if positions.size and v.size:  # values are repeated, and those left over are not used
        v = v[onp.arange(positions.size) % v.size]
        write(a, *((onp.unravel_index(positions, a.shape), v) if a.ndim else (..., v[-1])))


def stacked(v: Any) -> Any:
    """A list that holds traced numbers as an array; all else as it is."""
    made = operand(v)
    return made if type(made) in ARRAY_TYPES else v


def plain_like(v: Any) -> Any:
    """What a number, a list or an array is cast like: itself, or zeros of its dtype."""
    return onp.zeros((1,) * min(v.ndim, 1) if v.size else 0, v.dtype) if isinstance(v, ARRAYS) else v


@defines(onp.ndarray.item, takes=("number", "getitem"))
def _item(a: Any, *args: Any) -> Any:
    return asked(a, complex if a.dtype.kind == "c" else float).item(*args)


@defines(onp.ndarray.tolist)
def _tolist(a: Any) -> Any:
    return onp.asarray(asked(a, list)).tolist()


def _numbers(x: Any) -> Any:
    """An argument with NumPy's arrays of what it holds. Raises TracedValueError where that has derivatives."""
    if type(x) in CONTAINERS:
        return replaced(x, _numbers)
    return onp.asarray(concretize(read(x), onp.ndarray)) if type(x) in ARRAY_TYPES else x


def _leaves(why: str) -> None:
    """What is captured has to run as it is."""
    watching = capture.get() if state.busy else None
    if watching is not None and not watching.symbolic:
        watching.left = watching.left or why


def _file_written(host: Callable) -> Callable:
    def write_file(*args: Any, **kwargs: Any) -> None:
        _leaves("the function writes a file")
        host(*map(_numbers, args), **{k: _numbers(v) for k, v in kwargs.items()})

    return write_file


for _save in (onp.save, onp.savez, onp.savez_compressed, onp.savetxt):
    defines(_save)(_file_written(_save))


@defines(onp.copyto, writes=(0,))
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(dst) not in ARRAY_TYPES:  # NumPy's own, which no trace follows
        _leaves("the function copies to an array of NumPy's")
        return onp.copyto(dst, _numbers(src), casting, where=_numbers(where))
    src = stacked(src)
    like = onp.zeros((1,) * min(src.ndim, 1), src.dtype) if isinstance(src, ARRAYS) else src
    onp.copyto(onp.zeros(onp.shape(like), dst.dtype), like, casting)  # NumPy's exception, if the dtypes do not fit
    if where is not True:
        if getattr(src, "dtype", None) != dst.dtype and dst.dtype.char != "O":  # what `dst` has passes no other dtype
            host = not isinstance(src, ARRAYS)
            src = (onp.asarray(src) if host else src).astype(dst.dtype)
        src = DEFINITIONS[onp.where](where, src, dst)
    write(dst, ..., src)


def _masked_at_once(a: Any, mask: Any, values: Any, which: Callable) -> bool:
    """a[mask] = values where the mask lives on a device: how many elements it is true for need not be known."""
    if type(mask) not in ARRAY_TYPES or mask.dtype != bool or mask.shape != getattr(a, "shape", None):
        return False
    if not values.size:
        return False
    if not a.ndim or onp.result_type(values.dtype, a.dtype) != a.dtype:
        return False
    if values.size == 1:
        write(a, mask, values.reshape(()))
    elif type(read(mask)) is not Buffer:
        return False
    else:
        flat = DEFINITIONS[onp.ravel](values) if isinstance(values, ARRAYS) else onp.ravel(values)
        chosen = DEFINITIONS[onp.take](flat, which(mask), mode="wrap")
        write(a, ..., DEFINITIONS[onp.where](mask, chosen.reshape(a.shape), a))
    return True


def _write_masked(function: Callable, a: Any, mask: Any, values: Any, which: Callable) -> None:
    """np.place or np.putmask. which: mask, true where a is written -> for each element of a, the number of its value;
    values are repeated."""
    values = stacked(values)
    like = plain_like(values)
    function(onp.zeros(1, a.dtype), onp.zeros(1, bool), like)  # or NumPy's exception
    values = values if isinstance(values, ARRAYS) else onp.asarray(values)
    if _masked_at_once(a, mask, values, which):
        return
    mask = onp.asarray(trace.plain(mask), bool)
    if mask.size != a.size:
        raise ValueError(f"{function.__name__}: mask and data must be the same size")
    mask = mask.reshape(a.shape)
    function(onp.zeros(1, a.dtype), mask.any(keepdims=True).reshape(1), like)
    values = DEFINITIONS[onp.ravel](values) if isinstance(values, ARRAYS) else onp.ravel(values)
    if len(values):
        write(a, mask, values[which(mask)[mask.reshape(-1)] % len(values)])


@defines(onp.place, writes=(0,))
def _place(arr: Any, mask: Any, vals: Any) -> None:
    _write_masked(onp.place, arr, mask, vals, lambda mask: mask.cumsum() - 1)


@defines(onp.putmask, writes=(0,))
def _putmask(a: Any, mask: Any, values: Any) -> None:
    _write_masked(onp.putmask, a, mask, values, lambda mask: onp.arange(mask.size))


@defines(onp.fill_diagonal, writes=(0,))
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    val = stacked(val)
    where = onp.zeros(a.shape, bool)
    onp.fill_diagonal(where, True, wrap)
    onp.fill_diagonal(onp.zeros((1, 1), a.dtype), plain_like(val))  # or NumPy's exception
    n = int(where.sum())
    val = DEFINITIONS[onp.ravel](val) if isinstance(val, ARRAYS) else onp.ravel(val)
    write(a, where, val[onp.arange(n) % len(val)])


@defines(onp.put_along_axis, writes=(0,))
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    indices = onp.asarray(trace.plain(indices))
    axis = axis if axis is None else operator.index(axis)
    if axis is None and indices.ndim != 1:
        raise ValueError("when axis=None, `indices` must have a single dimension.")
    if axis is not None and not -arr.ndim <= axis < arr.ndim:
        raise onp.exceptions.AxisError(axis, arr.ndim)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        FlatIterator(arr)[indices] = values
        return
    if indices.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = axis % arr.ndim
    where = [onp.arange(n).reshape((1,) * i + (-1,) + (1,) * (arr.ndim - i - 1)) for i, n in enumerate(arr.shape)]
    where[axis] = indices
    write(arr, tuple(where), values)


# ------------------------------------------------------------------ MinPy's additions
def asnumpy(self: ndarray) -> onp.ndarray:
    """A NumPy array of the elements (a copy; for a traced array, of its present value)."""
    return onp.array(shown(self))


def wait_to_read(self: ndarray) -> None:
    """Wait until the elements are computed."""
    value = concrete(read(self))
    if type(value) is Buffer:
        value.backend.synchronize()


Array.asnumpy = asnumpy
Array.wait_to_read = wait_to_read
