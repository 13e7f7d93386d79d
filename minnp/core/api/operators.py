"""Operators and indexing of ndarray, from tables."""

from __future__ import annotations

import functools
import numbers
import operator
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as onp

from ... import errors
from ..arrays import devices
from ..arrays.array import (
    ARRAY_TYPES,
    ARRAYS,
    OBJECT,
    Array,
    array_of,
    leave_to_subclasses,
    ndarray,
    read,
    root_of,
    steps_of,
    unwrap,
    wrap,
)
from ..arrays.hooks import knows_us, unread
from ..arrays.writing import indexed, release, shared_root, warn_of_sharing, write
from ..cpu import FUNCTIONS as LARGE_FUNCTIONS
from ..cpu import call as call_large
from ..cpu import run as run_host
from ..rows.primitive import TABLE
from ..rows.state import capture, state, watched
from ..rows.value import (
    BINARY,
    COMPARISON,
    PYTHON,
    STAND_INS,
    UNARY,
    Buffer,
    Host,
    Tracer,
    concrete,
    example,
    is_scalar,
)
from . import functions
from .functions import STATIC, Entry, invoke, operand


def _row(name: str) -> Callable:
    """A definition that is the row itself, looked up when first used (rows are defined after this module)."""
    special = {"power": _power, "multiply": _multiply}.get(name)
    if name in ("equal", "not_equal"):
        special = _equality(name)
    return special or (lambda *args: TABLE[name](*map(operand, args)))


def _equality(name: str) -> Callable:
    """`==` or `!=`, which unlike NumPy's ufuncs take records, and compare numbers with texts and dates."""
    whole = lambda x: type(x) in (str, bytes) or getattr(getattr(x, "dtype", None), "kind", "O") in "VSUTMm"
    row = lambda a, b: TABLE[f"{name}_records" if whole(a) or whole(b) else name](a, b)
    return lambda a, b: row(operand(a), operand(b))


SIMPLE_POWERS = {2: "square", 0.5: "sqrt", -1: "reciprocal", 1: "positive"}
CUBES = 1 << 12  # elements from which traced code multiplies: NumPy's power takes 70 ns for a negative float32
LEGACY = onp.result_type(onp.zeros(1, onp.float32), onp.float64(1)) == onp.float32  # promotion by value: NumPy 1


@functools.cache
def _of_complex() -> set[tuple[type, float]]:
    """The exponents, with their types, of which NumPy's `**` takes the simple power of complex arrays: asked of NumPy,
    whose versions differ."""
    z = onp.array([complex(-onp.inf, 0), complex(-0.0, 0), complex(1e200, 1e200), complex(2, 1)])
    with onp.errstate(all="ignore"):
        exponents = [t(b) for b in SIMPLE_POWERS for t in (int, float) if t(b) == b]
        same = lambda b: (z**b).tobytes() == getattr(onp, SIMPLE_POWERS[b])(z).tobytes()
        return {(type(b), b) for b in exponents if same(b)}


@functools.cache
def _power_is_simple(dtype: onp.dtype) -> bool:
    """Whether np.power takes the roots of arrays as NumPy's `**` does."""
    with onp.errstate(all="ignore"):
        return dtype.kind == "f" and bool(onp.isnan(onp.power(onp.full(2, -onp.inf, dtype), 0.5)).all())


def _by_pow(a: Any, b: Any) -> bool:
    """Whether a ** b, of a scalar in NumPy, may not be what it is of an array. A number that is known to be positive
    has one root."""
    value = read(a)
    if value.shape:
        return False
    if not watched() and type(value) is Tracer and type(value.value) is onp.float64 and value.value > 0:
        return False
    kind = value.dtype.kind
    root = kind == "f" and isinstance(b, (float, onp.floating)) and b == 0.5
    return (root or kind in ("b", "c") or (LEGACY and kind in "fiu")) and isinstance(example(value), onp.generic)


def simple_power(a: Any, b: Any) -> Any:
    """The row of one operand that NumPy takes for a ** b, b a number, or None; NotImplemented where `_power` has
    another one. It decides dtypes and values: the square of a boolean is an int8, its power an int64; the root of -inf
    is NaN, its power inf; in NumPy 1 the root of an array without axes stays a float32, and a float32's square has
    other bits than its power. NumPy's scalars have powers alone."""
    kind = a.dtype.kind if isinstance(a, ARRAYS) else ""
    if LEGACY and kind in ("b", "i", "u") and isinstance(b, (int, float, onp.integer, onp.floating)) and b == 2:
        whole = kind == "b" or isinstance(b, (int, onp.integer))
        return TABLE["square"] if whole else lambda a: TABLE["square"](TABLE["astype"](a, dtype=onp.float64))
    if kind == "b":
        return TABLE["square"] if b.__class__ is int and b == 2 else None
    number = type(b) in (int, float) or (LEGACY and isinstance(b, (onp.integer, onp.floating)))
    name = SIMPLE_POWERS.get(b) if kind in ("f", "c") and number else None
    if kind in ("f", "c") and number and _by_pow(a, b):
        return NotImplemented
    t = int if isinstance(b, (int, onp.integer)) else float
    return None if name is None or (kind == "c" and (t, b) not in _of_complex()) else TABLE[name]


def _moves(value: Any) -> bool:
    """Whether a derivative is being taken with respect to a value."""
    while type(value) is Tracer:
        if value.trace.differentiable and value.trace.alive:
            return True
        value = value.value
    return False


def _power(a: Any, b: Any) -> Any:
    a, b = operand(a), operand(b)
    if type(b) in ARRAY_TYPES and _moves(read(b)):  # whatever it is now
        return TABLE["power"](a, b)
    value = read(a) if isinstance(a, ARRAYS) else None
    if type(value) is Tracer:
        if _by_pow(a, b):
            return _power_of_number(a, b)
        if watched():  # a capture keeps what the user wrote
            own = not _power_is_simple(value.dtype)
        elif type(b) is int and b == 3 and a.size >= CUBES and a.dtype.kind == "f":
            return TABLE["square"](a) * a
        else:
            own = True
    else:  # a device's may not do it itself
        own = value is not None and (not _power_is_simple(value.dtype) or type(concrete(value)) is Buffer)
    row = simple_power(a, b) if own else None
    return TABLE["power"](a, b) if row is None or row is NotImplemented else row(a)


def _power_of_number(a: Any, b: Any) -> Any:
    """A power of what is a scalar in NumPy, whose type Python's number does not change, but in NumPy 1; its root is
    what C's pow gives, of which np.power knows nothing, but np.float_power."""
    if LEGACY:
        return TABLE["float_power" if type(b) in (int, float) and a.dtype.char in "efF" else "power"](a, b)
    if a.dtype.kind != "f" or not isinstance(b, (float, onp.floating)) or b != 0.5:
        return TABLE["power"](a, b)
    y, dtype = TABLE["float_power"](a, b), onp.result_type(a.dtype, b)
    return y if y.dtype == dtype else TABLE["astype"](y, dtype=dtype)


def _multiply(a: Any, b: Any) -> Any:
    if a is b and isinstance(a, ARRAYS) and a.dtype.kind == "f" and type(read(a)) is Tracer and not watched():
        return TABLE["square"](a)  # whose cotangent is one product, not two and a sum
    return TABLE["multiply"](operand(a), operand(b))


SEQUENCES = (list, tuple, str, bytes, bytearray, deque)  # that a number of NumPy's repeats, and an array multiplies


def _binary(op: str, name: str, reflected: bool) -> Callable:
    kernel, method = PYTHON[op], f"__{'r' if reflected else ''}{op}__"
    numpys = getattr(Host, method)  # of a text's own `%` NumPy's method knows nothing
    host = (lambda a, b: numpys(a, b) if isinstance(a, Host) else kernel(b, a)) if reflected else kernel
    e = Entry(name, host, (lambda a, b: TABLE[name](operand(b), operand(a))) if reflected else _row(name))
    if reflected:
        LARGE_FUNCTIONS[host] = lambda a, b: call_large(kernel, (b, a), {})
        host.reflects = kernel
    functions.report.HOST_CALLS[method] = e
    repeats = op == "mul"

    def call(self: ndarray, other: Any) -> Any:
        if repeats and isinstance(other, SEQUENCES) and is_scalar(read(self)):
            return NotImplemented  # Python repeats the sequence, so often as __index__ says
        if type(other) is Fraction and op in BINARY:
            if _is_traced_float(self, other):  # of Python's floats, a float
                self, other = TABLE["astype"](self, dtype=onp.dtype(float)), float(other)
            elif isinstance(x := read(self), onp.generic):
                return kernel(other, x) if reflected else kernel(x, other)
        if not reflected and _gives_way(self, other):
            if type(other).__module__ == "torch" and type(read(self)) is Tracer and not watched():
                raise errors.TracedValueError(
                    f"a traced array ({self.dtype}{list(self.shape)}) and a tensor of torch, whose operators know no "
                    "gradient of minnp: give the tensor as an array, np.asarray(t), and torch's own steps with "
                    "minnp.Function"
                )
            return NotImplemented
        if _wants_numpys(other):
            if (array := _on_host(self)) is not None:
                out = kernel(other, array) if reflected else kernel(array, other)
                return wrap(out) if type(out) is Host else out
            if hasattr(other, "toarray") and type(read(self)) is Tracer:
                kind, shape = type(other).__name__, list(self.shape)
                raise errors.TracedValueError(
                    f"a {kind} and a traced array ({self.dtype}{shape}): its operators know NumPy's arrays alone; give "
                    "it as an array, with .toarray()"
                )
        return invoke(e, (self, other), {})

    call.__name__ = method
    return call


def _wants_numpys(x: Any) -> bool:
    """Whether an object, as SciPy's matrices, computes with arrays of NumPy's class in its own way."""
    t = type(x)
    if t in STATIC or t in ARRAY_TYPES or t in (list, tuple) or unread(t) or isinstance(x, onp.generic):
        return False
    return not hasattr(t, "__array_ufunc__") and getattr(x, "__array_priority__", 0.0) > 0.0


def _on_host(x: ndarray) -> Host | None:
    """NumPy's array in an array, or the one that a tracer stands for, after the end of the capture; else None."""
    value, trace = read(x), capture.get()
    if type(value) is Tracer and value.trace is trace and trace.may_leave and type(value.value) is Host:
        trace.ends("an operator of an object that is no array")
        return value.value
    return value if type(value) is Host else None


def _gives_way(self: Any, other: Any, inplace: bool = False) -> bool:
    """Whether NumPy's operators leave this operand to the other one's reflected method. A reflected one never does."""
    t = type(other)
    if t in ARRAY_TYPES or t in STATIC or t in (list, tuple) or unread(t):
        return False
    ufunc = getattr(t, "__array_ufunc__", False)
    if ufunc is not False:
        return ufunc is None and not inplace
    if isinstance(other, onp.generic) or not (priority := getattr(other, "__array_priority__", 0.0)) > 0.0:  # NumPy's
        return is_scalar(read(self)) and _is_object(other)  # with which NumPy's numbers compute as Python's do
    return priority > ndarray.__array_priority__ or knows_us(t)  # others, as SciPy's matrices, want NumPy's class


def _is_object(x: Any) -> bool:
    """Whether NumPy finds no numbers in x, and makes an array of one Python object of it."""
    t = type(x)
    if isinstance(x, numbers.Number) or hasattr(t, "__array__"):
        return False
    return not functions.is_sequence(t) and onp.asarray(x).dtype is OBJECT


def _is_traced_float(a: Any, other: Any) -> bool:
    """Whether a is a traced floating point number, also after a capture that `other` ends."""
    leave_to_subclasses(other)
    return type(value := read(a)) is Tracer and value.dtype.kind == "f" and is_scalar(value)


def _unary(op: str, name: str) -> Callable:
    e = Entry(name, PYTHON[op], _row(name))
    functions.report.HOST_CALLS[f"__{op}__"] = e

    def call(self: ndarray) -> Any:
        return invoke(e, (self,), {})

    call.__name__ = f"__{op}__"
    return call


def _inplace(op: str, name: str) -> Callable:
    kernel = getattr(operator, f"i{op}")

    def call(self: ndarray, other: Any) -> Any:
        return _assigned(self, other, kernel, name)

    call.__name__ = f"__i{op}__"
    return call


def _assigned(self: ndarray, other: Any, kernel: Callable, name: str) -> Any:
    if _gives_way(self, other, inplace=True):
        return NotImplemented
    leave_to_subclasses(other)
    a, b = read(self), unwrap(other, [])
    traced = isinstance(a, (Tracer, Buffer)) or isinstance(b, (Tracer, Buffer)) or watched()
    if is_scalar(a):
        return NotImplemented  # a number, as x.sum() and x[0] are in NumPy: `s += 1` makes another one
    if traced and type(b) not in functions.KNOWN and functions.has_ufuncs(b):
        return invoke(functions.entry(name, getattr(onp, name)), (self, other), {"out": (self,)})
    if not traced:
        if type(b) in STAND_INS and not b.trace.alive:
            b = b.value
        if state.tapes:
            release(a)
        out = run_host(kernel, (a, b), {})
        return self if out is a else wrap(out, [self])  # what the other operand's __array_ufunc__ gives
    del a  # a write on a device goes into the buffer, if nothing else holds it
    shared = shared_root(self)
    row = simple_power(self, other) if name == "power" else None
    if row is not None and row is not NotImplemented:
        result = row(self)
    else:
        other = operand(other if isinstance(b, (list, tuple)) or isinstance(other, ARRAYS) else b)
        try:
            result = TABLE[name](self, other)
        except ValueError:
            functions.check_call(getattr(onp, name), [self, other], self, {})  # NumPy looks at dtypes before shapes
            raise
        if name == "matmul" and (not self.ndim or other.ndim < 2):
            kernel(onp.zeros(self.shape, self.dtype), onp.zeros(other.shape, other.dtype))  # NumPy's exception
    functions.write_out(name, self, result if isinstance(result, ARRAYS) else array_of(result), fresh=True)
    if shared is not None:
        warn_of_sharing(shared)
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
    return invoke(_GETITEM, (self, index), {})


_STATIC = {int, slice, type(None), type(...)}


def _static(index: Any) -> bool:
    """Whether no array can hide in an index."""
    return type(index) in _STATIC or (type(index) is tuple and all(type(i) in _STATIC for i in index))


def _getitem_definition(a: Any, index: Any) -> Any:
    a, index = devices.together(a, indexed(unwrap(index, [])))
    return TABLE["getitem"](a, index=index)


_GETITEM = Entry("getitem", operator.getitem, _getitem_definition)


def _setitem(self: ndarray, index: Any, value: Any) -> None:
    if type(value) in ARRAY_TYPES and value._root is not None and _static(index) and _is(value, self, index):
        return  # the second half of `x[index] += y`: the view was written in place
    current = read(self)
    if not current.shape and is_scalar(current) and current.dtype.kind != "V":  # a record's fields can be written
        raise TypeError(f"'numpy.{current.dtype.type.__name__}' object does not support item assignment")
    del current  # a write on a device goes into the buffer, if nothing else holds it
    shared = shared_root(self)
    try:
        write(self, index, value)
    except (errors.TracedValueError, ValueError) as error:
        if (again := functions.opened_after(error, value)) is None:
            raise
        write(self, index, again)
    if shared is not None:
        warn_of_sharing(shared)


def _is(view: ndarray, self: ndarray, index: Any) -> bool:
    """Whether a view, traced or on a device, is self[index] itself."""
    root = root_of(self)
    if view._host is not None or view._root is not root:
        return False
    steps = (*steps_of(self), (TABLE["getitem"], {"index": index}))
    return len(steps) == len(view._steps) and all(map(_same_step, steps, view._steps))


def _same_step(a: tuple, b: tuple) -> bool:
    (row, params), (other, others) = a, b
    # an index that a vmap batches is itself alone
    return row is other and (params is others or (_plain(params) and _plain(others) and params == others))


def _plain(params: dict) -> bool:
    return "index" not in params or _static(params["index"])


def _iter(self: ndarray) -> Iterator:
    if self.ndim == 0 and not (is_scalar(read(self)) and self.dtype.names):  # a record has its fields
        raise TypeError("iteration over a 0-d array")
    return map(self.__getitem__, range(len(self)))


Array.__getitem__ = _getitem
Array.__setitem__ = _setitem
Array.__iter__ = _iter
