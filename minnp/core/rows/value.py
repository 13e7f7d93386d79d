"""Values other than NumPy arrays: tracers and backend buffers. Immutable; their operators bind rows."""

from __future__ import annotations

import datetime
import numbers
import operator
from typing import Any

import numpy as onp

from . import report
from .primitive import TABLE, Shaped

Host = onp.ndarray
NUMBERS = {int, float, complex, bool}
NUMBERS |= {t for t in vars(onp).values() if isinstance(t, type) and issubclass(t, onp.number)}
STREAMS = (onp.random.Generator, onp.random.RandomState, onp.random.BitGenerator)


STAND_INS: set[type] = set()  # what stands for a number while a function is captured (scalars.py)


class Value(Shaped):
    """Operators on values, so that one gradient rule serves NumPy arrays, tracers and device buffers alike."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy operators give way: array * tracer is tracer.__rmul__

    @property
    def T(self) -> Any:
        return TABLE["transpose"](self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return TABLE["getitem"](self, index=index)

    def reshape(self, *shape: Any) -> Any:
        return TABLE["reshape"](self, shape=shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: Any) -> Any:
        return TABLE["astype"](self, dtype=onp.dtype(dtype))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        return TABLE["sum"](self, axis=axis, keepdims=keepdims)


BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISON = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
# Python's functions for the operators, and their symbols
PYTHON = {
    op: {"divmod": divmod, "abs": abs}.get(op) or getattr(operator, f"{op}_" if op in ("and", "or") else op)
    for op in (*BINARY, *COMPARISON, *UNARY)
}
SYMBOLS = {
    **dict(zip(BINARY, ["+", "-", "*", "/", "//", "%", "divmod", "**", "@", "&", "|", "^", "<<", ">>"], strict=True)),
    **dict(zip(COMPARISON, ["<", "<=", ">", ">=", "==", "!="], strict=True)),
}


def _operator(name: str, arity: int, reflected: bool = False) -> Any:
    if arity == 1:
        return lambda x: TABLE[name](x)
    if reflected:
        return lambda x, other: TABLE[name](other, x)
    return lambda x, other: TABLE[name](x, other)


for _op, _name in BINARY.items():
    setattr(Value, f"__{_op}__", _operator(_name, 2))
    setattr(Value, f"__r{_op}__", _operator(_name, 2, reflected=True))
for _op, _name in COMPARISON.items():
    setattr(Value, f"__{_op}__", _operator(_name, 2))
for _op, _name in UNARY.items():
    setattr(Value, f"__{_op}__", _operator(_name, 1))
Value.__hash__ = object.__hash__


class Tracer(Value):
    """One value as one trace sees it.

    trace   the transformation that is watching
    value   what it wraps: a NumPy array or scalar, a Buffer, a tracer of an outer trace, or (symbolic capture) a Meta
    node    the trace's own record of it (vmap: how an example lies in memory)
    view    (source tracer, row, params) if this is a view of another traced value's memory, else None
    """

    __slots__ = ("node", "trace", "value", "view")

    def __init__(self, trace: Any, value: Any, node: Any, view: Any = None) -> None:
        self.trace, self.value, self.node, self.view = trace, value, node, view

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.value.shape
        return shape[1:] if self.trace.batched else shape

    @property
    def dtype(self) -> onp.dtype:
        return concrete(self).dtype

    def __repr__(self) -> str:
        return f"Tracer({self.trace!r}, {self.dtype}{list(self.shape)})"


class Buffer(Value):
    """An array that lives in a backend's own memory.

    data      the backend's object
    view      (source buffer, row, params) if NumPy's result would be a view of another buffer's memory, else None
    computed  whether it is a row's result: then it is a number where it has no axes, as NumPy's would be
    shape, dtype, nbytes    asked of the backend when first read
    """

    __slots__ = ("_host", "backend", "computed", "data", "dtype", "shape", "view")

    def __init__(self, data: Any, backend: Any, view: Any = None, computed: bool = False) -> None:
        self.data, self.backend, self.view, self.computed = data, backend, view, computed

    def __getattr__(self, name: str) -> Any:
        if name == "shape" or name == "dtype":
            self.shape, self.dtype = self.backend.meta(self.data)
            return self.shape if name == "shape" else self.dtype
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def host(self) -> onp.ndarray:
        """Read-only NumPy copy of the data, made once: a value is immutable, so the two cannot disagree."""
        try:
            return self._host
        except AttributeError:
            array = onp.asarray(self.backend.to_host(self.data)).view()
            array.flags.writeable = False
            report.copied("copy to host", self.backend.name, array.nbytes)
            if not self.backend.lent(self.data):
                self._host = array
            return array

    def __repr__(self) -> str:
        return f"Buffer({self.backend.name}, {self.dtype}{list(self.shape)})"


def lower(value: Any) -> Any:
    """The value, without the tracers of finished traces."""
    while type(value) is Tracer and not value.trace.alive:
        value = value.value
    return value


def concrete(value: Any) -> Any:
    """What lies under every tracer: a NumPy array or scalar, a Buffer or a Meta."""
    while type(value) is Tracer:
        value = value.value
    return value


def example(value: Any) -> Any:
    """What lies under every tracer, as the function that is running sees it in memory: under vmap, an array that lies
    as one example does, of which the elements mean nothing. Whether a result is a view, a copy or a number, and in what
    order an array lies, is asked of this."""
    while type(value) is Tracer:
        if value.trace.batched:
            return value.trace.example(value)
        value = value.value
    return value


base_of = onp.ndarray.base.__get__  # also of an array of ours, which has one of its own


def owner(array: onp.ndarray) -> Any:
    """The object whose memory the array shows."""
    base = own = base_of(array) if isinstance(array, Host) else array.base  # a record's
    while base is not None:
        if not isinstance(base, Host):  # memory exporters in between: our arrays, as_strided's, memoryviews
            inner = getattr(base, "_host", None) if hasattr(base, "_host") else getattr(base, "base", None)
            base = inner if isinstance(inner, Host) else getattr(base, "obj", None)
            if not isinstance(base, Host):
                return own
        array, own = base, base_of(base)
        base = own
    return array


FIXED = (numbers.Number, str, bytes, type(None), onp.generic, datetime.date, datetime.time, datetime.timedelta)
OBJECTS = "the function reads or writes an array of Python objects, which may change unseen"


def holds_objects(value: Any) -> bool:
    """Whether this is an array of Python objects that are more than numbers and texts: lists, arrays, dicts, ..."""
    if not isinstance(value, Host) or value.dtype.char != "O":
        return False
    return not all(issubclass(t, FIXED) for t in set(map(type, value.ravel().tolist())))


def is_scalar(value: Any) -> bool:
    """Whether NumPy would have a scalar here, which cannot be written to, and not an array without axes."""
    value = example(value)
    if type(value) is Buffer:
        return value.computed and value.view is None and not value.shape
    return isinstance(value, onp.generic)


def overlapping(a: Any, b: Any) -> bool:
    """Whether two values show the same owner's memory (of each example, under vmap), or buffer a was made as a view of
    buffer b.

    A record of NumPy's shows the array it was taken from."""
    a, b = example(a), example(b)
    if type(a) is Buffer:
        return a.view is not None and a.view[0] is b
    return isinstance(a, (Host, onp.void)) and isinstance(b, (Host, onp.void)) and owner(a) is owner(b)
