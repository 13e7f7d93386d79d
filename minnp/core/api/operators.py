"""Operators and indexing of ndarray, from tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from ..arrays import devices
from ..arrays.array import ATOMS, HANDLES, Array, handle, ndarray, on_host, path_of, read, root_of, unwrap, wrap
from ..arrays.hooks import knows_us, unread
from ..arrays.writing import indexed, release, write
from ..cpu import FUNCTIONS as LARGE_FUNCTIONS
from ..cpu import LARGE, MEDIUM
from ..cpu import call as call_large
from ..cpu import operation as large_operation
from ..cpu import run as run_host
from ..rows import on_device
from ..rows.primitive import TABLE
from ..rows.state import state, watched
from ..rows.value import BINARY, COMPARISON, NUMBERS, PYTHON, UNARY, Buffer, Host, Tracer, concrete, is_scalar
from . import functions
from .functions import PLAIN, Entry, invoke, operand
from .short import on_value, on_values, on_view


def _row(name: str) -> Callable:
    """A definition that is the row itself, looked up when first used (rows are defined after this module)."""
    special = {"power": _power, "equal": _equality("equal"), "not_equal": _equality("not_equal")}.get(name)
    return special or (lambda *args: TABLE[name](*map(operand, args)))


def _equality(name: str) -> Callable:
    """`==` or `!=`, which unlike NumPy's ufuncs take records, and compare numbers with texts and dates."""
    whole = lambda x: type(x) is str or (hasattr(x, "dtype") and x.dtype.kind in "VSUTMm")
    row = lambda a, b: TABLE[f"{name}_records" if whole(a) or whole(b) else name](a, b)
    return lambda a, b: row(operand(a), operand(b))


SHORT = {2: "square", 0.5: "sqrt", -1: "reciprocal", 1: "positive"}
CUBES = 1 << 12  # elements from which traced code multiplies: NumPy's power takes 70 ns for a negative float32
LEGACY = onp.result_type(onp.zeros(1, onp.float32), onp.float64(1)) == onp.float32  # promotion by value: NumPy 1


def shortened(a: Any, b: Any) -> Any:
    """The row of one operand that NumPy takes for a ** b, b a number, or None. It decides dtypes and values: the square
    of a boolean is an int8, its power an int64; the root of -inf is NaN, its power inf; in NumPy 1 the root of one
    number stays a float32, and a float32's square has other bits than its power."""
    name = SHORT.get(b) if type(b) in (int, float) and isinstance(a, ndarray) else None
    if name is not None:
        kind = a.dtype.kind
        if kind in ("f", "c") or (kind == "b" and b == 2 and (LEGACY or type(b) is int)):
            return TABLE[name]
    return None


def _power(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    # NumPy 2's power does it itself, but for booleans; a device's may not
    own = LEGACY or (isinstance(a, ndarray) and (a.dtype.kind == "b" or type(concrete(read(a))) is Buffer))
    row = shortened(a, b) if own else None
    return TABLE["power"](a, b) if row is None else row(a)


def _binary(op: str, name: str, reflected: bool) -> Callable:
    kernel = PYTHON[op]
    method, large = f"__{'r' if reflected else ''}{op}__", large_operation(kernel)
    numpys = getattr(Host, method)  # of a text's own `%` NumPy's method knows nothing
    host = (lambda a, b: numpys(a, b) if isinstance(a, Host) else kernel(b, a)) if reflected else kernel
    e = Entry(name, host, (lambda a, b: TABLE[name](operand(b), operand(a))) if reflected else _row(name))
    if reflected:
        LARGE_FUNCTIONS[host] = lambda a, b: call_large(kernel, (b, a), {})
        host.reflects = kernel
    functions.report.HOST_CALLS[method] = e
    special = name in ("equal", "not_equal")  # of a device's numbers and the host's texts

    def short(self: ndarray, other: Any) -> Any:
        # The commonest cases, two small host arrays and two handles under a tape, before anything else is asked.
        if type(other) in HANDLES and not state.busy:
            a = self._host
            b = other._host
            if a is None or b is None:
                if special and a is not b:
                    return slow(self, other)
                t = self._value if a is None else other._value
                if type(t) is Tracer:
                    return t.trace.binary(TABLE[name], self, other)
                return on_values(TABLE[name], self, other)
            if a.size < MEDIUM:
                e.calls += 1
                out = kernel(a, b)
                if type(out) is Host:
                    return on_host(out)
                return wrap(out) if type(out) is tuple else out
        return call(self, other)

    def call(self: ndarray, other: Any) -> Any:
        if type(other) in HANDLES:
            a, b = self._host, other._host
        elif type(other) in NUMBERS:
            a, b = self._host, other
        else:
            return slow(self, other)
        if state.busy:
            return slow(self, other)
        if a is None or b is None:
            return there(self, other)
        e.calls += 1
        if a.size < MEDIUM:
            out = kernel(b, a) if reflected else kernel(a, b)
        else:
            x, y = (b, a) if reflected else (a, b)
            if (out := large(x, y)) is NotImplemented:
                out = kernel(x, y)
        if type(out) is Host:
            return on_host(out)
        return wrap(out) if type(out) is tuple else out

    def there(self: ndarray, other: Any) -> Any:
        if reflected:
            return on_values(TABLE[name], other, self)
        value, row = self._value if self._host is None else None, None
        traced = type(value) is Tracer
        # a capture keeps what the user wrote
        if name == "power" and not (traced and not value.trace.differentiable):
            if traced and type(other) is int and other == 3 and self.size >= CUBES and self.dtype.kind == "f":
                return on_value(TABLE["square"], self) * self
            row = shortened(self, other)
        return on_values(TABLE[name], self, other) if row is None else on_value(row, self)

    def slow(self: ndarray, other: Any) -> Any:
        if not reflected and _gives_way(other):
            return NotImplemented
        mixed = special and type(other) in HANDLES and (self._host is None) is not (other._host is None)
        if state.busy and not mixed and (device := device_of(self, other)) is not None and on_device.free(device):
            return there(self, other)
        return invoke(e, (self, other), {})

    method_ = call if reflected else short
    method_.__name__ = method
    return method_


def device_of(a: ndarray, b: Any) -> Any:
    """The place of two operands of which one is a handle there, and the other one too, or a host array or number."""
    device = None
    for x in (a, b):
        if type(x) in HANDLES:
            if x._host is None:
                if type(x._value) is not Buffer:
                    return None
                device = x._value.backend
        elif type(x) not in NUMBERS:
            return None
    return device


def _gives_way(other: Any, inplace: bool = False) -> bool:
    """Whether NumPy's operators leave this operand to the other one's reflected method. A reflected one never does."""
    t = type(other)
    if t in HANDLES or t in PLAIN or t in (list, tuple) or unread(t):
        return False
    ufunc = getattr(t, "__array_ufunc__", False)
    if ufunc is not False:
        return ufunc is None and not inplace
    if isinstance(other, onp.generic) or not (priority := getattr(other, "__array_priority__", 0.0)) > 0.0:  # NumPy's
        return False
    return priority > ndarray.__array_priority__ or knows_us(t)  # others, as SciPy's matrices, want NumPy's class


def _unary(op: str, name: str) -> Callable:
    kernel = PYTHON[op]
    e, large = Entry(name, kernel, _row(name)), large_operation(kernel)
    functions.report.HOST_CALLS[f"__{op}__"] = e

    def call(self: ndarray) -> Any:
        a = self._host
        if state.busy and not (a is None and type(self._value) is Buffer and on_device.free(self._value.backend)):
            return invoke(e, (self,), {})
        if a is None:
            return on_value(TABLE[name], self)
        e.calls += 1
        if a.size < MEDIUM or (out := large(a)) is NotImplemented:
            out = kernel(a)
        if type(out) is Host:
            return on_host(out)
        return out

    call.__name__ = f"__{op}__"
    return call


def _inplace(op: str, name: str) -> Callable:
    kernel = getattr(operator, f"i{op}")

    def call(self: ndarray, other: Any) -> Any:
        a = self._host
        b = other._host if type(other) in HANDLES else other if type(other) in NUMBERS or type(other) is Host else None
        if a is not None and b is not None and not state.busy and not state.tapes and a.size < LARGE:
            kernel(a, b)
            return self
        return _inplace_slow(self, other, kernel, name)

    call.__name__ = f"__i{op}__"
    return call


def _inplace_slow(self: ndarray, other: Any, kernel: Callable, name: str) -> Any:
    if _gives_way(other, inplace=True):
        return NotImplemented
    a, b = read(self), unwrap(other, [])
    traced = isinstance(a, (Tracer, Buffer)) or isinstance(b, (Tracer, Buffer)) or watched()
    if not traced:
        if state.tapes:
            release(a)
        run_host(kernel, (a, b), {})
        return self
    if is_scalar(a):
        return NotImplemented  # a number, as x.sum() and x[0] are in NumPy: `s += 1` makes another one
    del a  # a write on a device goes into the buffer, if nothing else holds it
    row = shortened(self, other) if name == "power" else None
    if row is not None:
        result = row(self)
    else:
        other = other if isinstance(other, ndarray) else operand(other) if isinstance(b, (list, tuple)) else b
        try:
            result = TABLE[name](self, other)
        except ValueError:
            functions.check_call(getattr(onp, name), [self, other], self, {})  # NumPy looks at dtypes before shapes
            raise
        if name == "matmul" and (not self.ndim or other.ndim < 2):
            kernel(onp.zeros(self.shape, self.dtype), onp.zeros(other.shape, other.dtype))  # NumPy's exception
    functions.write_out(name, self, result if isinstance(result, ndarray) else handle(result), fresh=True)
    return self


def _of_three(power: Callable) -> Callable:
    """`**` with pow's third argument, of which NumPy's arrays know nothing."""

    def call(self: ndarray, other: Any, modulo: Any = None) -> Any:
        return power(self, other) if modulo is None else NotImplemented

    call.__name__ = power.__name__
    return call


for _op, _name in BINARY.items():
    _three = _of_three if _op == "pow" else lambda method: method
    setattr(Array, f"__{_op}__", _three(_binary(_op, _name, reflected=False)))
    setattr(Array, f"__r{_op}__", _three(_binary(_op, _name, reflected=True)))
    if _op != "divmod" and not (_op == "matmul" and not hasattr(onp.ndarray, "__imatmul__")):
        setattr(Array, f"__i{_op}__", _inplace(_op, _name))
for _op, _name in COMPARISON.items():
    setattr(Array, f"__{_op}__", _binary(_op, _name, reflected=False))
for _op, _name in UNARY.items():
    setattr(Array, f"__{_op}__", _unary(_op, _name))


# ------------------------------------------------------------------ indexing
def _getitem(self: ndarray, index: Any) -> Any:
    a = self._host
    if a is not None and not state.busy:
        t = type(index)
        if t is int or t is slice:
            out = a[index]
        else:
            if t is tuple:
                i = _on_host(index)
            else:
                i = index._host if t in HANDLES else index if _read_alone(index) else None
            if i is None or (type(i) is Host and i.size >= LARGE):
                return invoke(_GETITEM, (self, index), {})
            out = a[i]
        if type(out) is not Host:
            return out
        base = out.base
        # A view of a has a as its base, or what a is a view of; a fancy index may give a view of its own copy.
        is_view = base is a or (base is not None and base is a.base)
        return on_host(out, root_of(self) if is_view else None)
    if a is None and _static(index) and (out := on_view("getitem", self, {"index": index})) is not None:
        return out
    return invoke(_GETITEM, (self, index), {})


def _on_host(index: tuple) -> tuple | None:
    """An index with NumPy's arrays in the place of handles; None if one of them is not on the host, or of a class that
    NumPy may not know."""
    if PLAIN.issuperset(map(type, index)):
        return index
    hosts = []
    for x in index:
        if type(x) in HANDLES:
            x = x._host
            if x is None:
                return None
        elif not _read_alone(x):
            return None
        hosts.append(x)
    return tuple(hosts)


def _read_alone(x: Any) -> bool:
    """Whether NumPy reads part of an index by itself, as it is."""
    return type(x) in PLAIN or (type(x) is list and ATOMS.issuperset(map(type, x)))


_STATIC = {int, slice, type(None), type(...)}


def _static(index: Any) -> bool:
    """Whether no array can hide in an index."""
    return type(index) in _STATIC or (type(index) is tuple and all(type(i) in _STATIC for i in index))


def _getitem_definition(a: Any, index: Any) -> Any:
    a, index = devices.together(a, indexed(unwrap(index, [])))
    return TABLE["getitem"](a, index=index)


_GETITEM = Entry("getitem", operator.getitem, _getitem_definition)


def _setitem(self: ndarray, index: Any, value: Any) -> None:
    a = self._host
    if a is not None and not state.busy and not state.tapes:
        i = index._host if type(index) in HANDLES else _on_host(index) if type(index) is tuple else index
        if type(value) in HANDLES:
            v = value._host if a.dtype is not _OBJECT or _several(a, i) else None
        else:
            v = value if type(value) in PLAIN else None
        if i is not None and v is not None and type(i) in _SIMPLE and (type(i) is not Host or i.size < LARGE):
            a[i] = v
            return
    if a is None and type(value) in HANDLES and value._root is not None and _static(index) and _is(value, self, index):
        return  # the second half of `x[index] += y`: the view was written in place
    write(self, index, value)


def _several(a: Host, index: Any) -> bool:
    """Whether a[index] has axes, as its form alone tells: then the elements of a value are written, never the value."""
    t = type(index)
    return t is slice or (t is int and a.ndim > 1) or (t is tuple and any(type(i) is slice for i in index))


def _is(view: ndarray, self: ndarray, index: Any) -> bool:
    """Whether a traced or placed view is self[index] itself."""
    root = root_of(self)
    if view._host is not None or view._root is not root:
        return False
    path = (*path_of(self), (TABLE["getitem"], {"index": index}))
    return len(path) == len(view._path) and all(map(_same_step, path, view._path))


def _same_step(a: tuple, b: tuple) -> bool:
    (row, params), (other, others) = a, b
    # an index that a vmap batches is itself alone
    return row is other and (params is others or (_plain(params) and _plain(others) and params == others))


def _plain(params: dict) -> bool:
    return "index" not in params or _static(params["index"])


_OBJECT = onp.dtype(object)  # an element of an array of objects is the handle it is given
_SIMPLE = {int, slice, tuple, Host, type(...), type(None), bool} | {t for t in NUMBERS if issubclass(t, onp.integer)}


def _iter(self: ndarray) -> Iterator:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return map(self.__getitem__, range(len(self)))


Array.__getitem__ = _getitem
Array.__setitem__ = _setitem
Array.__iter__ = _iter
