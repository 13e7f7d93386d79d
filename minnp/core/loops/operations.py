"""What Python and NumPy make of numbers: the kind of every result, found by asking them, and the checks it needs."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as onp

from .ir import KINDS, NONE, Kind, kind_of

OPERATORS: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "neg": operator.neg,
    "abs": abs,
    "invert": operator.invert,
    "pos": operator.pos,
}
# NumPy's functions of one number that are one instruction or a call of libm, by name
UNARY = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arcsin", "arccos", "arctan", "log2")
UNARY += ("log10", "log1p", "expm1", "exp2", "floor", "ceil", "trunc", "rint", "cbrt", "arcsinh", "arccosh", "arctanh")
# functions of Python's math module: of a number (beside UNARY), and of two numbers
MATH = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
MATH |= {"fabs": "abs"} | {name: name for name in ("erf", "erfc", "gamma", "lgamma")}
MATH_OF_TWO = ("atan2", "hypot", "fmod", "copysign", "pow", "log")
BINARY = {"arctan2": "atan2", "hypot": "hypot", "fmod": "fmod", "copysign": "copysign", "nextafter": "nextafter"}
BINARY |= {"logaddexp": "logaddexp", "logaddexp2": "logaddexp2", "float_power": "pow"}
NUMPYS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "mod": "mod",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "abs": "abs",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "shl",
    "right_shift": "shr",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "invert": "invert",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "bitwise_not": "invert",
    "positive": "pos",
}
OLD = int(onp.__version__.split(".")[0]) < 2  # whose numbers promote by their value


class NotUnderstood(Exception):
    """A loop, or a part of it, that stays Python: `why`, at `line`."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.why, self.line = why, line


class Unknown(NotUnderstood):
    """What a function returns that calls itself: the next pass knows, by the calls that return without another one."""


def sample(kind: Kind, array: bool = False) -> Any:
    if array:
        return onp.ones(1, kind.dtype)
    value = kind.dtype.type(1)
    return value.item() if kind.python else value


@cache
def result_kind(function: Any, kinds: tuple[Kind, ...], arrays: tuple[bool, ...] = ()) -> Kind:
    """The kind of function(numbers or arrays of these kinds). Raises NotUnderstood."""
    if NONE in kinds:
        raise NotUnderstood("None where a number was expected")
    small = any(not k.python and k.code not in ("f8", "i8", "c16", "b1") for k in kinds)
    if OLD and small and len(set(kinds)) > 1:
        raise NotUnderstood("NumPy 1 promotes small numbers by their values")
    arrays = arrays or (False,) * len(kinds)
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = function(*map(sample, kinds, arrays))
        except (TypeError, ValueError) as error:
            raise NotUnderstood(f"{getattr(function, '__name__', function)}: {error}") from None
    kind = kind_of(found)
    if kind is None:
        raise NotUnderstood(f"{getattr(function, '__name__', function)} of {', '.join(map(str, kinds))}")
    return kind


def join(kinds: frozenset[Kind]) -> Kind:
    """The kind in which a variable that may have several is kept: every value of each has one there."""
    kinds = kinds - {NONE} or kinds
    if len(kinds) == 1:
        return next(iter(kinds))
    letters = {k.letter for k in kinds}
    if kinds <= {Kind("b1", True), Kind("i8", True)}:
        return Kind("i8", True)
    if letters == {"b"}:
        return Kind("b1")
    if any(k.code == "u8" for k in kinds):
        raise NotUnderstood("a variable that is uint64 on one way and of another type on another")
    if letters <= {"b", "i", "u"}:
        return Kind("i8")
    if letters <= {"b", "i", "u", "f"}:
        return Kind("f8")
    return Kind("c16")


def place(kind: Kind) -> int:
    return KINDS.index(kind)
