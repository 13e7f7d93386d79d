"""What definitions do with a user's arguments before they reach a row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.arrays.array import (
    ARRAY_TYPES,
    ARRAYS,
    array_of,
    concretize,
    ends_capture,
    host_of,
    ndarray,
    numpys_own,
    read,
    stack_nested,
    unwrap,
)
from ..core.arrays.writing import may_be_refused, refuse
from ..core.rows.primitive import TABLE, Primitive
from ..core.rows.pytree import CONTAINERS, inside, tree_leaves
from ..core.rows.state import capture
from ..core.rows.value import OBJECTS, Buffer, Host, Tracer, concrete, is_scalar
from ..core.transforms.trace import plain as plain

NOT_GIVEN = onp._NoValue


def option(value: Any, default: Any) -> Any:
    """An argument, or its default where NumPy's own code passed on its mark for "not given"."""
    return default if value is NOT_GIVEN else value


def as_array(x: Any, dtype: Any = None) -> ndarray:
    """Any array-like as an array of ours, of the dtype asked for: nested lists of traced numbers are stacked, host data
    becomes an array."""
    if dtype is not None and isinstance(dtype, ARRAYS):  # which has a dtype, that NumPy might take
        raise TypeError("Cannot construct a dtype from an array")
    if type(x) in ARRAY_TYPES:
        return x if dtype is None or x.dtype == dtype else TABLE["astype"](x, dtype=onp.dtype(dtype))
    if isinstance(x, (Tracer, Buffer)):  # of rows that were given numbers alone
        return as_array(array_of(x), dtype)
    if isinstance(x, (list, tuple)) and holds_arrays(x):
        if dtype is not None and onp.dtype(dtype).names:
            return _records(x, onp.dtype(dtype))
        if dtype is not None and _refused(x, onp.dtype(dtype)):
            return array_of(host_of(unwrap(x, []), dtype))
        made = stack_nested(list(x), dtype)
        if made.dtype.char != "O" or (watching := capture.get()) is None or watching.symbolic:
            return made
        watching.ends(OBJECTS)
        x = unwrap(x, sources := [])  # whose elements stay what they are, NumPy's numbers
        if any(isinstance(read(s), (Tracer, Buffer)) for s in sources):
            return made
    return array_of(host_of(numpys_own(x), dtype))


def _records(x: Any, dtype: onp.dtype) -> ndarray:
    """The array of records that nested lists and tuples with traced numbers make, field by field: to NumPy a tuple is a
    record there, and a number is one that has it in all fields."""
    shape = onp.shape(_each(x, lambda e: onp.zeros(() if isinstance(e, tuple) else onp.shape(e), bool)))
    made = TABLE["copy"](array_of(onp.zeros(shape, dtype)))
    for i, name in enumerate(dtype.names):
        base, each = dtype[name].base, dtype[name].shape
        field = functools.partial(_of_field, i=i, dtype=dtype)
        values = _each(x, field)
        if _refused(values, base):
            return array_of(host_of(unwrap(x, []), dtype))
        if each:  # of which a number gives all elements
            whole = lambda e, f=field, to=base, shape=each: TABLE["broadcast_to"](as_array(f(e), to), shape=shape)
            values = _each(x, whole)
        made[name] = as_array(values, base)
    return made


def _refused(values: Any, dtype: onp.dtype) -> bool:
    """Whether a capture ended because NumPy refuses some of the numbers that a traced one may be, as it refuses NaN
    for an integer. Raises its exception where no capture is the reason."""
    for number in [read(e) for e in tree_leaves(values) if type(e) in ARRAY_TYPES]:
        if type(number) is Tracer and may_be_refused(number, dtype):
            if ends_capture(f"a number of {number.dtype} becomes one of {dtype}, which refuses some"):
                return True
            refuse(concrete(number), dtype)
    return False


def _each(x: Any, leaf: Callable) -> Any:
    """leaf(e) of all elements of nested lists that are none."""
    return [_each(e, leaf) for e in x] if isinstance(x, list) else leaf(x)


def _of_field(x: Any, i: int, dtype: onp.dtype) -> Any:
    """The i-th field of what becomes a record. Raises ValueError for a tuple of another length."""
    if isinstance(x, tuple):
        if len(x) != len(dtype):
            raise ValueError(f"could not assign tuple of length {len(x)} to structure with {len(dtype)} fields.")
        return x[i]
    names = x.dtype.names if isinstance(x, ARRAYS) else None
    return x if names is None else x[names[i]]


def operand(x: Any) -> Any:
    """An operand of an elementwise row: Python numbers stay what they are, so that they do not decide the dtype."""
    return x if isinstance(x, (ARRAYS, int, float, complex)) else as_array(x)


def on_host(*arrays: ndarray) -> bool:
    """Whether NumPy's own function may run where a row has no kernel for it: nothing is traced, nothing on a device."""
    return capture.get() is None and all(type(read(a)) is Host for a in arrays)


def holds_arrays(x: Any) -> bool:
    return any(type(e) in ARRAY_TYPES for e in inside(x if type(x) in CONTAINERS else list(x)))


def number(x: Any) -> Any:
    """An argument of which a row wants NumPy's numbers, though it has a derivative: raises if one is being taken."""
    return concretize(read(x), Host) if type(x) in ARRAY_TYPES else x


def number_of(x: Any) -> Any:
    """A result without axes as NumPy's functions return it: a number, or a traced or device array that acts as one."""
    value = read(x) if type(x) in ARRAY_TYPES else x
    if type(value) is Host and not value.ndim:
        return value[()]
    return x if type(x) not in ARRAY_TYPES or x.ndim or is_scalar(value) else TABLE["getitem"](x, index=())


def spelled(row: Primitive, signature: str) -> Callable:
    """The definition of a function that is a row, spelled as NumPy does.

    "a indices | axis mode" names the row's arrays, then its parameters.
    """
    arrays, _, params = (part.split() for part in signature.partition("|"))
    names = arrays + params

    def definition(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{row.name}() takes at most {len(names)} positional arguments but {len(args)} were given")
        given = {**dict(zip(names, args)), **kwargs}
        if len(given) < len(args) + len(kwargs) or not given.keys() >= set(arrays):
            raise TypeError(f"{row.name}() got multiple values for an argument, or none for one of {arrays}")
        values = [as_array(given.pop(name)) for name in arrays]
        return row(*values, **{k: v for k, v in given.items() if v is not NOT_GIVEN})

    definition.__name__ = row.name
    return definition
