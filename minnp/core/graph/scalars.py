"""Python numbers that change from call to call: a learning rate, a count of steps.

While a function is captured, a `Live` stands for an int or a float among its arguments. Arithmetic with other numbers
gives another Live, arithmetic with arrays a node, and both are computed anew at every call. Comparisons and truth are
guards, as those of data are. Whoever wants the number itself (an index, a shape, math.sqrt) reads it, and the graph
then holds for that number alone; an index that was seen to change is an input, too.
"""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import numpy as onp

from ..api.functions import STATIC
from ..arrays.array import Array, wrap
from ..rows import state
from ..rows.primitive import TABLE, Meta
from ..rows.value import BINARY, COMPARISON, PYTHON, STAND_INS, UNARY, Host, Tracer, Value
from .node import Node

NUMBERS = (int, float)
DRAWN = -1
MANY = 64  # numbers among the arguments that Python reads: a graph that holds for these alone is of no use
NUMBER_TYPES = {"int", "float", "bool", "float64", "float32", "float16", "longdouble"}
LENGTHS = {"Iterable", "Sized", "Container", "Collection", "__len__", "__iter__", "__contains__"}
REFUSING = (TypeError, ValueError, AttributeError, LookupError)
VALUES_DECIDE = int(onp.__version__.split(".")[0]) < 2  # NumPy 1: whether a number fits decides the dtype of a result


class Live:
    """A number as a capture sees it.

    sources   the inputs (by place) that it was computed from, DRAWN for a draw
    """

    __slots__ = ("node", "sources", "trace", "value")
    __array_ufunc__ = None  # NumPy's operators give way to the reflected ones here
    __class__ = property(lambda self: type(self.value))  # type: ignore[assignment]  # isinstance(rate, float) holds

    def __init__(self, trace: Any, value: Any, node: Node, sources: frozenset[int]) -> None:
        self.trace, self.value, self.node, self.sources = trace, value, node, sources
        node.meta.update(value=Meta((), onp.dtype(type(value))), weak=True, kind="object")

    real = property(lambda self: +self)
    imag = property(lambda self: self.value.imag)  # 0, of its type

    def fixed(self) -> Any:
        """The number; the graph being captured holds for it alone."""
        if self.trace.alive:
            self.trace.fixed |= self.sources - {DRAWN}
            if len(self.trace.fixed) > MANY and self.trace.fast and self.trace.may_leave:
                self.trace.ends(f"the function reads more than {MANY} of the numbers among its arguments")
            if DRAWN in self.sources:
                self.trace.check(self.node, self.value)
        return self.value

    def scalar(self, kind: type = onp.float64) -> Any:
        """The number as NumPy's: what a transformation takes as an argument, traced."""
        value = kind(self.value)
        if not self.trace.alive:
            return value
        node = self.trace.record(kind, (self.node,))
        node.meta["value"] = Meta((), value.dtype)
        return Tracer(self.trace, value, node)

    def array(self) -> Any:
        """The number as an array without axes, traced: an index that may change."""
        value = onp.asarray(self.value)
        node = self.trace.record(onp.asarray, (self.node,))
        node.meta["value"] = Meta((), value.dtype)
        return Tracer(self.trace, value, node)

    def index(self) -> Any:
        """What indexes an array for the number: NumPy's integer, traced, if it changes from call to call."""
        varies = type(self.value) is int and self.sources - {DRAWN} <= self.trace.varied and self.sources != {DRAWN}
        return self.scalar(onp.int64) if varies and self.trace.alive else self

    def __array__(self, dtype: Any = None, copy: Any = None) -> onp.ndarray:
        return onp.asarray(self.fixed(), dtype)

    def __round__(self, digits: Any = None) -> Any:
        return round(self.fixed(), digits)

    def __format__(self, how: str) -> str:
        return format(self.fixed(), how)

    def __copy__(self) -> Live:
        return self

    def __deepcopy__(self, memo: dict) -> Live:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.fixed().__reduce_ex__(protocol)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a protocol that numbers do not have
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.fixed(), name)


Live.__name__ = "number of minnp.jit"  # as others name its type when they refuse it
STATIC.add(Live)
STAND_INS.add(Live)


# What an error says that a number's stand-in was refused with: its type's name, or what NumPy makes of any object
NAMED = (
    Live.__name__,
    Live.__module__,
    f"{Live.__qualname__}.__init__()",
    "Could not convert object to NumPy",
    "Cannot interpret",
)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def says(error: BaseException, words: Iterable[str]) -> bool:
    """Whether an exception of those that refuse arguments has one of these words."""
    return isinstance(error, REFUSING) and any(word in str(error) for word in words)


def refused(error: BaseException | None) -> bool:
    """Whether an exception, or one it came from, says that something wants a number itself, and no stand-in: it names
    the stand-in's type, or it is a TypeError of a function that has one."""
    for e in causes(error):
        at = e.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        of_its_caller = isinstance(e, TypeError) and at is not None
        if says(e, NAMED) or (of_its_caller and Live in map(type, at.tb_frame.f_locals.values())):
            return True
    return False


def types_asked(f: Any) -> set[str]:
    """The arguments of a function of which it asks type(x): nothing that stands for a number can answer."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    return set() if code is None else typed_variables(code)


def typed_variables(code: CodeType) -> set[str]:
    """The variables x of which code asks type(x); with a dot, where it asks that of what they hold, or of anything."""
    if "type" not in code.co_names:
        return set()
    if not state.CODE_IS_KNOWN:
        found = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
        return found | {f"{x}.{name}" for x in found for name in code.co_names}
    steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL")]
    found, of_numbers = set(), not NUMBER_TYPES.isdisjoint(code.co_names)
    for a, b, c in zip(steps, steps[1:], steps[2:]):
        if a.opname != "LOAD_GLOBAL" or a.argval != "type":
            continue
        called = c.opname.startswith("CALL")
        if not b.opname.startswith(("LOAD_FAST", "LOAD_D")) or (called and c.arg != 1):  # map(type, t)
            found |= {"type."} if of_numbers else set()
        elif c.opname in ("LOAD_ATTR", "LOAD_METHOD"):  # type(self.rate) is int
            found |= {f"{b.argval}.{c.argval}"} if of_numbers else set()
        else:  # type(x), type(x[0])
            found.add(b.argval if called else f"{b.argval}.")
    return found


def kinds_asked(code: CodeType) -> bool:
    """Whether code asks of a number whether it has a length: a tracer of NumPy's float64 is of a class that has one."""
    return not (LENGTHS.isdisjoint(code.co_names) and LENGTHS.isdisjoint(c for c in code.co_consts if type(c) is str))


for _name in ("float", "int", "complex", "trunc", "floor", "ceil", "hash", "str", "repr"):
    _convert = {"float": float, "int": int, "complex": complex, "hash": hash, "str": str, "repr": repr}.get(_name)
    _convert = _convert or operator.methodcaller(f"__{_name}__")
    setattr(Live, f"__{_name}__", lambda self, convert=_convert: convert(self.fixed()))
Live.__index__ = lambda self: operator.index(self.fixed())  # type: ignore[attr-defined]
Live.__bool__ = lambda self: bool(self != 0)  # type: ignore[attr-defined]


def _plain(x: Any) -> bool:
    return type(x) is Live or type(x) in (int, float, bool, complex)


def _said(x: Any) -> Any:
    return x.node if type(x) is Live else x


def _operation(function: Any, name: str, reflected: bool) -> Any:
    def call(self: Live, other: Any) -> Any:
        if type(other) is Live and other.trace is not self.trace:  # of a capture that is over, or around another one
            a, b = (self, other.fixed()) if self.trace.alive else (self.value, other)
            return function(*((b, a) if reflected else (a, b)))
        a, b = (other, self) if reflected else (self, other)
        values = [x.value if type(x) is Live else x for x in (a, b)]
        if not self.trace.alive or other is None:  # of which Python says the numbers' types
            return function(*values)
        if isinstance(other, (Value, Host, Array, onp.generic)) and not _plain(other):
            out = TABLE[name](a, b)
            return out if isinstance(other, Value) else wrap(out)  # as the program's own code meets it
        if not _plain(other):
            return NotImplemented
        if name in ("power", "divmod", "matmul") and not (name == "power" and type(values[0]) is float):
            return function(*[x.fixed() if type(x) is Live else x for x in (a, b)])  # the result's type may change
        try:
            value = function(*values)
        except ArithmeticError:  # the program may catch it: what follows holds for these numbers alone
            return function(*[x.fixed() if type(x) is Live else x for x in (a, b)])
        return _result(self, function, [a, b], value)

    return call


def _result(self: Live, function: Any, args: list, value: Any) -> Any:
    """What Python computed of Live numbers: a Live number again, or the answer of a comparison, which is guarded."""
    if type(value) not in (bool, *NUMBERS):
        return function(*[x.fixed() if type(x) is Live else x for x in args])
    node = self.trace.record(function, tuple(map(_said, args)))
    if type(value) is bool:
        self.trace.decides(0.125)
        self.trace.check(node, value)
        return value
    return Live(self.trace, value, node, frozenset().union(*[x.sources for x in args if type(x) is Live]))


for _op, _name in {**BINARY, **COMPARISON}.items():
    setattr(Live, f"__{_op}__", _operation(PYTHON[_op], _name, False))
    if _op in BINARY:
        setattr(Live, f"__r{_op}__", _operation(PYTHON[_op], _name, True))
for _op in UNARY:
    setattr(
        Live,
        f"__{_op}__",
        lambda self, function=PYTHON[_op]: (
            _result(self, function, [self], function(self.value)) if self.trace.alive else function(self.value)
        ),
    )
