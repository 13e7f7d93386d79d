"""Which warnings NumPy gives for a loop: a second program of it, run where the processor met what may be warned of."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as onp

from .ir import BOOL, INT, Assign, Check, E, If, Store, While, const, expressions, walk
from .lowering import LOGARITHMS
from .numbers import Builder
from .operations import place

OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "floordiv": "floor_divide"}
OPERATORS |= {"mod": "remainder", "pow": "power"}
FUNCTIONS = {"sqrt", "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arcsin", "arccos", "expm1", "exp2", "hypot"}
SUMS = {"logaddexp", "logaddexp2"}  # NumPy says that it met an invalid value where it was given a NaN
FUNCTIONS |= LOGARITHMS | SUMS | {"fmod", "nextafter", "arccosh", "arctanh"}
CLASSES = {"divide": "divide by zero", "over": "overflow", "invalid": "invalid value"}
ONCE = {"default", "module", "once"}  # what filters say of warnings that are shown once for a line


class Warned(NamedTuple):
    """A place where NumPy may warn: of what ("divide", "over", "invalid"; "" for any), in which function ("" where only
    NumPy can tell), at which line."""

    what: str
    name: str
    file: str
    module: str
    line: int


class Noting(Builder):
    """Emits what tells which warnings there are, in a program that is for this."""

    notes: dict[Warned, E] | None = None  # -> the variable that says which of all it was; None in other programs
    spoken: str | None = "scalar "  # before the name of a function; None where only NumPy can tell
    named: str | None = None  # what NumPy calls what is computed here
    where: tuple[str, str, int] | None = None  # of an array that is computed later than it is written

    def location(self) -> tuple[str, str, int]:
        """(file, module, line) of what is translated."""
        raise NotImplementedError

    @contextlib.contextmanager
    def saying(self, spoken: str | None, named: str | None = None, where: Any = None) -> Iterator[None]:
        before = self.spoken, self.named, self.where
        self.spoken, self.named, self.where = spoken, named, where or self.where
        try:
            yield
        finally:
            self.spoken, self.named, self.where = before

    def here(self) -> tuple[str, str, int] | None:
        """Where what is computed here is told to be, which may be computed later."""
        return None if self.notes is None else self.where or self.location()

    def binary(self, op: str, a: E, b: E) -> E:
        return self.settled_now(super().binary(op, a, b))

    def power(self, a: E, b: E) -> E:
        if self.notes is None:
            return super().power(a, b)
        quick = self.spoken == "" and (b.op == "cast" or (b.op == "const" and b.args[0] in (-1, 0.5, 1, 2)))
        with self.saying(None if quick else self.spoken, "power"):
            return super().power(a, b)

    def emit(self, statement: Any) -> None:
        if self.notes is not None:
            if type(statement) in (Assign, Store):
                statement = statement._replace(value=self.flat(statement.value))
            elif type(statement) in (If, Check):
                statement = statement._replace(condition=self.flat(statement.condition))
            elif type(statement) is While and any(risky(e) for x in expressions(statement) for e in walk(x)):
                raise self.fail("warnings of a condition")
        super().emit(statement)

    def settled_now(self, e: E) -> E:
        """The same number, computed here: what follows may not be reached."""
        return self.flat(e) if self.notes is not None else e

    def flat(self, e: E) -> E:
        """An expression in which no part may be warned of: such are variables, and it is noted what becomes of them."""
        if e.op in ("const", "var", "dim"):
            return e
        args = tuple([self.flat(a) if isinstance(a, E) else a for a in e.args])
        if any(a is not b for a, b in zip(args, e.args)):
            e = E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)
        if not risky(e):
            return e
        e = E(e.op, tuple(map(self.as_variable, args)), e.kind, e.low, e.high, e.kinds, e.tag)
        out = self.as_variable(e)
        self.note(e, out)
        return out

    def as_variable(self, e: E) -> E:
        if e.op == "const":
            return e
        name = self.fresh()
        self.program.kinds[name] = e.kind
        super().emit(Assign(name, e))
        return E("var", (name,), e.kind, e.low, e.high, e.kinds, e.tag)

    def note(self, e: E, out: E) -> None:
        test = lambda op, *args: self.as_variable(E(op, args, BOOL, 0, 1))
        every = lambda op, parts: test(op, parts[0], every(op, parts[1:])) if len(parts) > 1 else parts[0]
        zero = lambda x: test("eq", x, const(0 if x.kind.letter in "iu" else 0.0, x.kind))
        if out.kind.letter in "iu":
            name = f"{self.spoken}{self.named or OPERATORS[e.op]}" if self.spoken is not None else ""
            self.happened("divide" if name else "", name, zero(e.args[1]), e)
            return
        if out.kind.letter == "c" or self.spoken is None:
            given = [test("finite", a) for a in e.args if a.kind.letter in "fc"]
            event = test("not", test("finite", out))
            self.happened("", "", every("and", [event, *given]), e)
            return
        name = self.named or {"cast": "cast", "atan2": "arctan2"}.get(e.op) or OPERATORS.get(e.op) or e.op
        name = f"{self.spoken}{name}" if e.op in OPERATORS else name
        floats = [a for a in e.args[: 1 if e.op == "nextafter" else None] if a.kind.letter == "f"]
        infinite = every("and", [test("isinf", out), *[test("finite", a) for a in floats]])
        divisor = {"div": 1, "floordiv": 1, "pow": 0}.get(e.op)
        if divisor is not None:
            by_zero = zero(e.args[divisor])
            self.happened("divide", name, test("and", infinite, by_zero), e)
            self.happened("over", name, test("and", infinite, test("not", by_zero)), e)
        else:
            self.happened("divide" if e.op in LOGARITHMS or e.op == "arctanh" else "over", name, infinite, e)
        fine = [test("not", test("isnan", a)) for a in floats if e.op not in SUMS]
        self.happened("invalid", name, every("and", [test("isnan", out), *fine]), e)

    def happened(self, what: str, name: str, event: E, e: E) -> None:
        """Notes that, and when, an event happened first."""
        assert self.notes is not None
        for kind in e.kinds:
            if kind.python and len(e.kinds) > 1:  # Python's numbers raise, or say nothing
                other = E("ne", (self.tag(e), const(place(kind))), BOOL, 0, 1)
                event = self.as_variable(E("and", (event, other), BOOL, 0, 1))
        site = Warned(what, name, *(self.where or self.location()))
        count, when = E("var", ("warnings.all",), INT), E("var", (f"warnings.{len(self.notes)}",), INT)
        when = self.notes.setdefault(site, when)
        for variable in (count, when):
            self.program.kinds[variable.args[0]] = INT
        first = E("eq", (when, const(0)), BOOL, 0, 1)
        then = [
            Assign(count.args[0], E("add", (count, const(1)), INT)),
            Assign(when.args[0], E("copy", (count,), INT)),
        ]
        super().emit(If(event, [If(first, then, [])], []))


def risky(e: E) -> bool:
    """Whether NumPy may warn of what an operation gives."""
    if all(k.python for k in e.kinds):
        return False
    if e.kind.letter in "iu":
        return e.op in ("floordiv", "mod") and e.args[1].low <= 0 <= e.args[1].high
    if e.kind.letter not in "fc":
        return False
    if e.op == "cast":
        return e.args[0].kind.letter in "fc" and e.args[0].kind.dtype.itemsize > e.kind.dtype.itemsize
    return e.op in OPERATORS or e.op in FUNCTIONS or (e.op == "abs" and e.args[0].kind.letter == "c")


def give(found: list[tuple[int, Warned]]) -> bool:
    """Gives the warnings that a loop has met, in their order; False where Python has to give them, one by one."""
    handling = onp.geterr()
    said = [
        w
        for count, w in sorted(found)
        if count and (handling[w.what] == "warn" if w.what else "warn" in [handling[k] for k in CLASSES])
    ]
    texts = [f"{CLASSES[w.what]} encountered in {w.name}" if w.what else "" for w in said]
    if not all(text and action(text, w) in {"ignore", *ONCE} for text, w in zip(texts, said)):
        return False
    for text, w in zip(texts, said):
        names = vars(sys.modules[w.module]) if w.module in sys.modules else {}
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, RuntimeWarning, w.file, w.line, w.module, registry)
    return True


def matches(pattern: Any, text: str) -> bool:
    """Whether a filter's part, a regular expression or a text, holds."""
    return pattern is None or (pattern == text if isinstance(pattern, str) else pattern.match(text) is not None)


def action(text: str, w: Warned) -> str:
    """What the filters say of a warning."""
    for what, message, category, module, line in warnings.filters:
        here = line in (0, w.line) and matches(module, w.module)
        if here and matches(message, text) and issubclass(RuntimeWarning, category):
            return what
    return "default"


def asked() -> str:
    """What becomes of NumPy's warnings now: "warn"; "" where all are ignored; "python" of all else (errors, calls)."""
    handling = onp.geterr()
    ways = {handling[k] for k in CLASSES}
    if handling["under"] != "ignore" or not ways <= {"warn", "ignore"}:
        return "python"
    return "warn" if "warn" in ways and not ignored() else ""


def ignored() -> bool:
    """Whether the filters ignore every warning of NumPy's."""
    for what, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if what != "ignore":
                return False
            if message is module is None and line == 0:
                return True
    return False
