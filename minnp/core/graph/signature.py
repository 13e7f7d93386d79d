"""What of a call's arguments decides which compiled code may run."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as onp

from ..compiled import Dispatch
from ..rows.pytree import Itself, attributes
from ..rows.value import Buffer, Host
from .scalars import NUMBERS


def changes(v: Any) -> bool:
    """Whether a leaf is a number that may be another one at the next call of the same code."""
    return type(v) in NUMBERS or isinstance(v, onp.floating)


def exactly(key: Any, fixed: set[int], values: Sequence[Any]) -> tuple:
    """The key of the paths of a call: what decides which code runs, and the values of the numbers Python read."""
    return (key, *[(i, identity(values[i])) for i in sorted(fixed)])


def kind(v: Any) -> Any:
    """What of a leaf decides which code runs."""
    if isinstance(v, Host):
        return v.shape, v.dtype
    if type(v) is Buffer:
        return v.shape, v.dtype, v.backend
    return type(v) if changes(v) else identity(v)


EXACT = {int, bool, str, bytes, type(None)}  # whose values are the same where they are equal
# Of equal values of these the text may differ: Decimal("1.0") and Decimal("1.00"), one time in two zones
WRITTEN = (numbers.Number, datetime.datetime, datetime.time)
BUILT_IN = {t.__hash__ for t in (int, float, complex, str, bytes, tuple, frozenset)}
LIES, SHAPED, TYPED, EQUAL, ON_DEVICE = range(5)  # dispatch.hpp


def guard_of(v: Any, fixed: bool) -> tuple | None:
    """What `kind`, and `exactly` where v is fixed, ask of an argument, for the C part; None where it cannot."""
    if type(v) is Host:
        return LIES if fixed else SHAPED, v.dtype, v.shape, v.strides, v.flags.writeable
    if type(v) is Buffer and not fixed:
        return ON_DEVICE, (v.backend, v.shape, v.dtype), (), (), False
    if changes(v) and not fixed:
        return TYPED, type(v), (), (), False
    return (EQUAL, v, (), (), False) if type(v) in (int, float, bool, str, type(None)) else None


def identity(v: Any) -> Any:
    """A hashable that is the same for leaves that the same code may run for: of arrays, how they lie in memory and
    whether they may be written."""
    if type(v) is Host:
        return v.strides, v.flags.writeable
    if type(v) is Buffer:
        return v.backend.strides(v.data)
    if type(v) is Static:
        return identity(v.value), *held(v.value)
    if type(v) in EXACT:
        return type(v), v
    if type(v) is float:
        return float, v.hex()  # 0.0 is not -0.0, and nan is nan
    if type(v) is complex:
        return complex, v.real.hex(), v.imag.hex()
    if isinstance(v, onp.generic) and not v.dtype.hasobject:
        return v.dtype, v.tobytes()
    if type(v) in (tuple, list):  # (1,) is not (True,), which it equals
        return type(v), *map(identity, v)
    if type(v) is dict:
        return dict, *[(identity(k), identity(x)) for k, x in v.items()]
    if type(v) in (set, frozenset):
        return type(v), frozenset(map(identity, v))
    if type(v) is range:
        return range, v.start, v.stop, v.step
    if isinstance(v, bytearray):
        return type(v), bytes(v)
    if isinstance(type(v).__eq__, Dispatch) or isinstance(type(v).__hash__, Dispatch):
        return Itself(v)  # by which jit would look for what it compiled of them
    try:
        hash(v)
    except (TypeError, ValueError):  # the latter of a memoryview
        return Itself(v)
    if type(v).__eq__ is object.__eq__:
        return type(v), v
    # equal by what its class compares, of which it may leave out some
    more = attributes(v) or {}
    if not all(type(x) in EXACT or type(x) is float for x in more.values()) and type(v).__hash__ in BUILT_IN:
        return Itself(v)  # a number, a text or a tuple that holds others besides
    parts = [(k, identity(x)) for k, x in more.items() if type(x) in EXACT or type(x) is float]
    return type(v), v, *([repr(v)] if isinstance(v, WRITTEN) else ()), *parts


def held(v: Any, depth: int = 3) -> tuple:
    """What an object holds in its attributes, and those of objects in these: it may be changed in place."""
    found = () if isinstance(v, (type, FunctionType, ModuleType)) else (attributes(v) or {}).items()
    return tuple([(k, identity(x), *held(x, depth - 1)) for k, x in found] if depth else ())


class Static:
    """A leaf of the arguments that another value of compiles again."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
