"""Operators, methods and attributes of ndarray, from tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from .. import errors
from . import public
from .array import concretize, handle, ndarray, new, on_value, on_values, read, release, unwrap, wrap, write
from .dispatch import DEFINITIONS, defines
from .primitive import TABLE
from .public import NUMBERS, PLAIN, Entry, array_function, array_ufunc, entry, invoke
from .state import capture, state
from .value import BINARY, COMPARISON, UNARY, Buffer, Host, Tracer, concrete

_OPERATORS = {"and": operator.and_, "or": operator.or_, "divmod": divmod, "abs": abs}


def _row(name: str) -> Callable:
    """A definition that is the row itself, looked up when first used (rows are defined after this module)."""
    return lambda *args: TABLE[name](*args)


def _binary(op: str, name: str, reflected: bool) -> Callable:
    kernel = _OPERATORS.get(op) or getattr(operator, op)
    method = f"__{'r' if reflected else ''}{op}__"
    host = (lambda a, b: kernel(b, a)) if reflected else kernel
    e = Entry(name, host, (lambda a, b: TABLE[name](b, a)) if reflected else _row(name))
    public.report.HOST_CALLS[method] = e

    def call(self: ndarray, other: Any) -> Any:
        a = self._host
        if type(other) is ndarray:
            b = other._host
        elif type(other) in NUMBERS:
            b = other
        else:
            return slow(self, other)
        if state.busy:
            return slow(self, other)
        if a is not None and b is not None:
            if a.size >= public.LARGE:
                return slow(self, other)
            e.calls += 1
            out = kernel(b, a) if reflected else kernel(a, b)
            if type(out) is Host:
                h = new(ndarray)
                h._host, h._root = out, None
                return h
            return wrap(out) if type(out) is tuple else out
        return on_values(TABLE[name], other, self) if reflected else on_values(TABLE[name], self, other)

    def slow(self: ndarray, other: Any) -> Any:
        if _gives_way(other):
            return NotImplemented
        return invoke(e, (self, other), {})

    call.__name__ = method
    return call


def _gives_way(other: Any) -> bool:
    """Whether NumPy's operators leave this operand to the other one's reflected method."""
    t = type(other)
    if t is ndarray or t in PLAIN or t in (list, tuple):
        return False
    ufunc = getattr(t, "__array_ufunc__", False)
    if ufunc is not False:
        return ufunc is None
    return (
        not isinstance(other, onp.generic) and getattr(other, "__array_priority__", -1.0) > ndarray.__array_priority__
    )


def _unary(op: str, name: str) -> Callable:
    kernel = _OPERATORS.get(op) or getattr(operator, op)
    e = Entry(name, kernel, _row(name))
    public.report.HOST_CALLS[f"__{op}__"] = e

    def call(self: ndarray) -> Any:
        a = self._host
        if state.busy:
            return invoke(e, (self,), {})
        if a is None:
            return on_value(TABLE[name], self)
        if a.size >= public.LARGE:
            return invoke(e, (self,), {})
        e.calls += 1
        out = kernel(a)
        if type(out) is Host:
            h = new(ndarray)
            h._host, h._root = out, None
            return h
        return out

    call.__name__ = f"__{op}__"
    return call


def _inplace(op: str, name: str) -> Callable:
    kernel = getattr(operator, f"i{op}")

    def call(self: ndarray, other: Any) -> Any:
        a = self._host
        b = other._host if type(other) is ndarray else other if type(other) in NUMBERS or type(other) is Host else None
        if a is not None and b is not None and not state.busy and not state.tapes and a.size < public.LARGE:
            kernel(a, b)
            return self
        return _inplace_slow(self, other, kernel, name)

    call.__name__ = f"__i{op}__"
    return call


def _inplace_slow(self: ndarray, other: Any, kernel: Callable, name: str) -> Any:
    if _gives_way(other):
        return NotImplemented
    a, b = read(self), unwrap(other, [])
    traced = (
        isinstance(a, (Tracer, Buffer)) or isinstance(b, (Tracer, Buffer)) or (state.busy and capture.get() is not None)
    )
    if not traced:
        if state.tapes:
            release(a)
        kernel(a, b)
        return self
    result = TABLE[name](
        self, other if isinstance(other, ndarray) else onp.asarray(b) if isinstance(b, (list, tuple)) else b
    )
    public.write_out(name, self, result if isinstance(result, ndarray) else handle(result))
    return self


for _op, _name in BINARY.items():
    setattr(ndarray, f"__{_op}__", _binary(_op, _name, reflected=False))
    setattr(ndarray, f"__r{_op}__", _binary(_op, _name, reflected=True))
    if _op != "divmod" and not (_op == "matmul" and not hasattr(onp.ndarray, "__imatmul__")):
        setattr(ndarray, f"__i{_op}__", _inplace(_op, _name))
for _op, _name in COMPARISON.items():
    setattr(ndarray, f"__{_op}__", _binary(_op, _name, reflected=False))
for _op, _name in UNARY.items():
    setattr(ndarray, f"__{_op}__", _unary(_op, _name))


# ------------------------------------------------------------------ indexing
def _getitem(self: ndarray, index: Any) -> Any:
    a = self._host
    i = index._host if type(index) is ndarray else index
    if a is not None and i is not None and not state.busy and a.size < public.LARGE:
        out = a[i]
        if type(out) is not Host:
            return out
        h = new(ndarray)
        h._host = out
        h._root = None if out.base is None else self if self._root is None else self._root
        return h
    return invoke(_GETITEM, (self, index), {})


def _getitem_definition(a: Any, index: Any) -> Any:
    return TABLE["getitem"](a, index=unwrap(index, []))


_GETITEM = Entry("getitem", operator.getitem, _getitem_definition)


def _setitem(self: ndarray, index: Any, value: Any) -> None:
    a = self._host
    if a is not None and not state.busy and not state.tapes:
        i = index._host if type(index) is ndarray else index
        v = value._host if type(value) is ndarray else value if type(value) in PLAIN else None
        if i is not None and v is not None and type(i) in _SIMPLE:
            a[i] = v
            return
    write(self, index, value)


_SIMPLE = {int, slice, tuple, Host, type(...), type(None), bool} | {t for t in NUMBERS if issubclass(t, onp.integer)}


def _iter(self: ndarray) -> Iterator:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return map(self.__getitem__, range(len(self)))


ndarray.__getitem__ = _getitem
ndarray.__setitem__ = _setitem
ndarray.__iter__ = _iter


# ------------------------------------------------------------------ Python's own conversions
def shown(self: ndarray) -> onp.ndarray:
    """The numbers a handle shows when it is printed."""
    value = concrete(read(self))
    return value.host() if type(value) is Buffer else value


def _conversion(name: str, kind: type) -> Callable:
    def call(self: ndarray) -> Any:
        a = self._host
        if a is None:
            a = concretize(read(self), kind)
        return getattr(onp.asarray(a), name)()

    call.__name__ = name
    return call


for _name, _kind in {"bool": bool, "int": int, "float": float, "complex": complex, "index": int}.items():
    setattr(ndarray, f"__{_name}__", _conversion(f"__{_name}__", _kind))


def _len(self: ndarray) -> int:
    shape = self.shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def _contains(self: ndarray, x: Any) -> bool:
    return bool((self == x).any())


def _hash(self: ndarray) -> int:
    if self.ndim:
        raise TypeError("unhashable type: 'numpy.ndarray'")
    return hash(shown(self)[()])


def _format(self: ndarray, spec: str) -> str:
    return format(shown(self), spec) if self.ndim else format(shown(self)[()], spec)


def _array(self: ndarray, dtype: Any = None, copy: bool | None = None) -> onp.ndarray:
    value = read(self)
    if type(value) is Tracer:
        inner = concrete(value)
        if not value.trace.differentiable or inner.dtype.kind not in "fc":
            value = concretize(value, onp.ndarray)
        else:
            raise errors.TracedValueError(
                f"a traced array ({inner.dtype}{list(inner.shape)}) was about to leave minnp: something asked for its data as "
                "a numpy.ndarray, where the gradient would be lost. Use minnp.numpy functions on it, np.stop_gradient(x) to "
                "cut the gradient on purpose, or minnp.custom_vjp to give this step a rule"
            )
    a = value.host() if type(value) is Buffer else value
    if copy is False and (type(value) is Buffer or (dtype is not None and a.dtype != dtype)):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


def _reduce_ex(self: ndarray, protocol: Any) -> tuple:
    return _rebuild, (onp.asarray(self),)


def _rebuild(a: onp.ndarray) -> ndarray:
    return handle(a)


def _deepcopy(self: ndarray, memo: dict) -> ndarray:
    return self.copy()


def _dlpack(self: ndarray, **options: Any) -> Any:
    return onp.asarray(self).__dlpack__(**options)


def _dlpack_device(self: ndarray) -> tuple[int, int]:
    return onp.asarray(self).__dlpack_device__()


for _name, _special in {
    "len": _len,
    "contains": _contains,
    "hash": _hash,
    "format": _format,
    "repr": lambda self: repr(shown(self)),
    "str": lambda self: str(shown(self)),
    "array": _array,
    "reduce_ex": _reduce_ex,
    "deepcopy": _deepcopy,
    "copy": lambda self: self.copy(),
    "dlpack": _dlpack,
    "dlpack_device": _dlpack_device,
    "array_function": lambda self, func, types, args, kwargs: array_function(func, args, kwargs),
    "array_ufunc": lambda self, ufunc, method, *inputs, **kwargs: array_ufunc(ufunc, method, inputs, kwargs),
}.items():
    setattr(ndarray, f"__{_name}__", _special)


# ------------------------------------------------------------------ attributes
def _fact(name: str) -> property:
    def get(self: ndarray) -> Any:
        a = self._host
        return getattr(a if a is not None else concrete(read(self)), name)

    return property(get, doc=getattr(onp.ndarray, name).__doc__)


def _host_fact(name: str) -> property:
    """An attribute about memory: of the NumPy array the handle shows; settable where NumPy's is."""

    def get(self: ndarray) -> Any:
        return getattr(shown(self), name)

    def set_(self: ndarray, value: Any) -> None:
        a = read(self)
        if type(a) is not Host:
            raise AttributeError(f"the {name} of a traced or device array cannot be set; use x.reshape or x.astype")
        setattr(a, name, value)

    return property(get, set_, doc=getattr(onp.ndarray, name).__doc__)


for _name in ("ndim", "size"):
    setattr(ndarray, _name, _fact(_name))
for _name in ("shape", "dtype", "strides", "flags", "nbytes", "itemsize", "data", "ctypes"):
    setattr(ndarray, _name, _host_fact(_name) if _name not in ("shape", "dtype") else _fact(_name))


def _set_host(name: str) -> property:
    fact = getattr(ndarray, name)
    return property(fact.fget, _host_fact(name).fset, doc=fact.__doc__)


ndarray.shape = _set_host("shape")
ndarray.dtype = _set_host("dtype")


def _base(self: ndarray) -> Any:
    if self._root is not None:
        return self._root
    base = shown(self).base
    return handle(base) if type(base) is Host else base


def _part(name: str) -> property:
    def get(self: ndarray) -> Any:
        a = read(self)
        if type(a) is Host:
            return wrap(getattr(a, name), (self,))
        return TABLE[name](self)

    def set_(self: ndarray, value: Any) -> None:
        a = read(self)
        if type(a) is Host:
            public.release(a)
            setattr(a, name, unwrap(value, []))
        else:
            write(self, ..., value if name == "real" and not _complex(a) else self * 0 + value)

    return property(get, set_, doc=getattr(onp.ndarray, name).__doc__)


def _complex(value: Any) -> bool:
    return value.dtype.kind == "c"


def _flat(self: ndarray) -> Any:
    a = read(self)
    return FlatIterator(self) if type(a) is not Host or state.tapes else a.flat


def _set_flat(self: ndarray, value: Any) -> None:
    write(self.reshape(-1) if self.flags.c_contiguous else self, ..., value if self.flags.c_contiguous else value)


class FlatIterator:
    """x.flat of a traced array: indexing and iteration in C order."""

    def __init__(self, base: ndarray) -> None:
        self.base = base

    def __getitem__(self, index: Any) -> Any:
        return self.base.reshape(-1)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        positions = onp.arange(self.base.size)[index]
        write(self.base, onp.unravel_index(positions, self.base.shape), value)

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator:
        return iter(self.base.reshape(-1))


ndarray.base = property(_base)
ndarray.real = _part("real")
ndarray.imag = _part("imag")
ndarray.flat = property(_flat, _set_flat)
ndarray.T = property(lambda self: self.transpose(), doc=onp.ndarray.T.__doc__)
if hasattr(onp.ndarray, "mT"):
    ndarray.mT = property(
        lambda self: self.swapaxes(-1, -2) if self.ndim > 1 else _mt_error(), doc=onp.ndarray.mT.__doc__
    )


def _mt_error() -> Any:
    raise ValueError("matrix transpose with ndim < 2 is undefined")


# ------------------------------------------------------------------ methods
def _method(name: str, writes: tuple = ()) -> Callable:
    """A method of NumPy's arrays: NumPy's own on the host; elsewhere its definition, or the function of the same name."""
    host = getattr(onp.ndarray, name)
    e = entry(f"ndarray.{name}", host, writes)
    e.definition = lambda *args, **kwargs: _method_definition(name, host)(*args, **kwargs)
    fast = not writes

    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        a = self._host
        if a is not None and fast and not state.busy and not kwargs and a.size < public.LARGE:
            for x in args:
                if type(x) not in PLAIN:
                    break
            else:
                e.calls += 1
                out = host(a, *args)
                return wrap(out, (self,)) if type(out) is Host else out
        return invoke(e, (self, *args), kwargs)

    call.__name__ = name
    call.__qualname__ = f"ndarray.{name}"
    call.__doc__ = host.__doc__
    return call


def _method_definition(name: str, host: Any) -> Callable:
    found = DEFINITIONS.get(host)
    if found is None:
        found = DEFINITIONS.get(getattr(onp, name, None))
    if found is None:

        def found(*args: Any, **kwargs: Any) -> Any:
            return wrap(public.fallback(entry(f"ndarray.{name}", host), [unwrap(a, []) for a in args], kwargs))

    return found


METHODS = [n for n in dir(onp.ndarray) if not n.startswith("_") and callable(getattr(onp.ndarray, n))]
WRITING = ("fill", "itemset", "partition", "put", "resize", "setfield", "sort", "setflags", "byteswap")
for _name in METHODS:
    setattr(ndarray, _name, _method(_name, (0,) if _name in WRITING else ()))


@defines(onp.ndarray.astype)
def _astype(
    a: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    dtype = onp.dtype(dtype)
    if not onp.can_cast(a.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {a.dtype!r} to {dtype!r} according to the rule {casting!r}")
    return a if not copy and a.dtype == dtype else TABLE["astype"](a, dtype=dtype)


@defines(onp.ndarray.reshape)
def _reshape(a: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    return DEFINITIONS[onp.reshape](a, shape[0] if len(shape) == 1 else shape, order)


@defines(onp.ndarray.transpose)
def _transpose(a: Any, *axes: Any) -> Any:
    return DEFINITIONS[onp.transpose](a, axes[0] if len(axes) == 1 else axes or None)


@defines(onp.ndarray.copy)
def _copy(a: Any, order: str = "C") -> Any:
    return TABLE["copy"](a)


@defines(onp.ndarray.flatten)
def _flatten(a: Any, order: str = "C") -> Any:
    return TABLE["copy"](DEFINITIONS[onp.ravel](a, order))


@defines(onp.ndarray.fill)
def _fill(a: Any, value: Any) -> None:
    write(a, ..., value)


@defines(onp.ndarray.sort)
def _sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
    write(a, ..., DEFINITIONS[onp.sort](a, axis))


@defines(onp.ndarray.partition)
def _partition(a: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    write(a, ..., DEFINITIONS[onp.partition](a, kth, axis))


@defines(onp.ndarray.put, onp.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    FlatIterator(a)[onp.arange(a.size).take(onp.asarray(ind), mode=mode).reshape(-1)] = v


@defines(onp.ndarray.item)
def _item(a: Any, *args: Any) -> Any:
    return concretize(read(a), complex if _complex(read(a)) else float).item(*args)


@defines(onp.ndarray.tolist)
def _tolist(a: Any) -> Any:
    return onp.asarray(concretize(read(a), list)).tolist()


@defines(onp.ndarray.view)
def _view(a: Any, dtype: Any = None, type: Any = None) -> Any:
    if dtype is not None and onp.dtype(dtype) != a.dtype:
        raise errors.TracedValueError(
            f"x.view({dtype!r}) reinterprets the bytes of a traced {a.dtype} array; use x.astype"
        )
    return a[...]


@defines(onp.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    write(dst, ..., src if where is True else DEFINITIONS[onp.where](where, src, dst))


@defines(onp.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    mask = onp.asarray(mask, bool)
    n = int(mask.sum())
    vals = DEFINITIONS[onp.ravel](vals) if isinstance(vals, ndarray) else onp.ravel(vals)
    write(arr, mask, vals[onp.arange(n) % len(vals)])


@defines(onp.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    mask = onp.asarray(mask, bool)
    values = DEFINITIONS[onp.ravel](values) if isinstance(values, ndarray) else onp.ravel(values)
    write(a, mask, values[onp.arange(mask.size).reshape(mask.shape)[mask] % len(values)])


@defines(onp.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    where = onp.zeros(a.shape, bool)
    onp.fill_diagonal(where, True, wrap)
    n = int(where.sum())
    val = DEFINITIONS[onp.ravel](val) if isinstance(val, ndarray) else onp.ravel(val)
    write(a, where, val[onp.arange(n) % len(val)])


@defines(onp.put_along_axis)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    indices = onp.asarray(indices)
    if axis is None:
        FlatIterator(arr)[indices.reshape(-1)] = values
        return
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


ndarray.asnumpy = asnumpy
ndarray.wait_to_read = wait_to_read
