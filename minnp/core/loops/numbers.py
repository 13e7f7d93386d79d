"""Arithmetic of scalars as typed expressions, with the checks that Python's meaning needs."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as onp

from .errors import RAISED
from .ir import (
    BOOL,
    F8,
    FLOAT,
    INT,
    KINDS,
    LEAST,
    MOST,
    NONE,
    WORD,
    Assign,
    Check,
    E,
    If,
    Kind,
    Leave,
    Program,
    While,
    const,
    constant,
    kind_of,
    limits,
    variables,
)
from .operations import OPERATORS, NotUnderstood, Unknown, join, place, result_kind

EXACT = 2**53  # up to here a float64 holds every integer
COMPARE = {"lt", "le", "gt", "ge", "eq", "ne"}
COUNTED = 2**16  # what is added to a counter, at most: 2**46 turns of a loop, which nobody waits for
ROUNDS = 4  # after so many passes, bounds that still move are given up


class Known:
    """What the passes so far know of a variable: its kinds and, of an integer, bounds."""

    def __init__(self) -> None:
        self.kinds: frozenset[Kind] = frozenset()
        self.low, self.high = MOST, LEAST


class Builder:
    """Emits statements of one program. A program is translated again and again until what is known of its variables
    stays."""

    def __init__(self, program: Program, known: dict[str, Known], rounds: int) -> None:
        self.program, self.known, self.rounds = program, known, rounds
        self.out: list = program.body
        self.moved = False
        self.bound: set[str] = set()  # variables that are bound here on every way
        self.versions: dict[str, int] = {}  # of variables bound to arrays anew: how often, in the order of the text
        self.counts = itertools.count()
        self.writes = 0  # to arrays, so far in the text
        # what any(a) was computed as, last, and of which a; such an a of which some elements hold, in these statements
        self.any_of: tuple[str, tuple] = "", ()
        self.some: tuple[tuple, list] = (), []
        self.line = 0
        self.news: dict[int, int] = {}  # arrays made so far, by line
        self.instead: dict[str, Any] = {}  # arrays that are read in the place of others, by name
        self.handlers: list[
            tuple[str, tuple[type, ...]]
        ] = []  # of try statements: (where an exception leads, "" to Python; which)

    # -------------------------------------------------------------- emitting
    def emit(self, statement: Any) -> None:
        self.out.append(statement)

    @contextlib.contextmanager
    def into(self, body: list) -> Iterator[list]:
        """What is emitted goes to `body`."""
        before, self.out = self.out, body
        try:
            yield body
        finally:
            self.out = before

    def fresh(self, what: str = "t") -> str:
        return f"{what}.{next(self.counts)}"

    def fail(self, why: str) -> NotUnderstood:
        return NotUnderstood(why, self.line)

    def check(self, condition: E, error: str = "again", operands: tuple = (), bounds: Any = None) -> None:
        if condition.op == "const":
            if condition.args[0]:
                return
            if error == "again":
                raise self.fail("Python has to run it")
        raised = RAISED.get(error.partition(" ")[0])
        for label, classes in reversed(self.handlers):
            if raised is not None and not label:
                return self.emit(Check(condition, "again", (), bounds))
            if raised is not None and issubclass(raised, classes):
                return self.emit(If(condition, [], [Leave(label)]))
        self.emit(Check(condition, error, operands, bounds))

    def temporary(self, e: E) -> E:
        """A variable that has this value; the expression itself where it is one, or a number."""
        if e.op in ("const", "var"):
            return e
        name = self.fresh()
        self.program.kinds[name] = e.kind
        self.emit(Assign(name, e))
        tag = e.tag
        if tag is not None:
            tag = self.frozen(tag)
        return E("var", (name,), e.kind, e.low, e.high, e.kinds, tag)

    # -------------------------------------------------------------- variables
    def info(self, name: str) -> Known:
        return self.known.setdefault(name, Known())

    def assign(self, name: str, e: E) -> None:
        info = self.info(name)
        if WORD in e.kinds | info.kinds and e.kinds | info.kinds <= {INT, WORD}:
            if INT in info.kinds:
                info.kinds, info.low, info.high, self.moved = frozenset((WORD,)), MOST, LEAST, True
            e = self.as_word(e)
        elif WORD in e.kinds:
            e = self.narrow(e)
        if not e.kinds <= info.kinds:
            info.kinds |= e.kinds
            self.moved = True
        kind = join(info.kinds)
        low, high = (e.low, e.high) if e.kind.letter in "iub" else (LEAST, MOST)
        if (low < info.low or high > info.high) and self.rounds > ROUNDS:
            low, high = self.widened(name, e, info)
        if low < info.low or high > info.high:
            self.moved = True
            info.low, info.high = min(info.low, low), max(info.high, high)
        self.program.kinds[name] = kind
        tag = self.tag(e) if len(info.kinds) > 1 else None
        if tag is not None and kind.letter in "fc" and e.kind.letter == "i":
            self.exact(e)  # it is an integer again when it is read
        none = e.kinds == {NONE} != info.kinds
        self.emit(Assign(name, const(kind.dtype.type(0).item(), kind) if none else self.cast(e, kind)))
        if tag is not None:
            self.program.kinds[f"{name}#"] = INT
            self.emit(Assign(f"{name}#", tag))
        self.bound.add(name)

    def widened(self, name: str, e: E, info: Known) -> tuple[int, int]:
        """Bounds that hold whatever follows: of a counter, to which little is added at a time, those it can reach."""
        least, most = limits(e.kind)
        reach = 2**62
        if e.op in ("add", "sub") and e.args[0].op == "var" and e.args[0].args[0] == name:
            by = e.args[1]
            if max(abs(by.low), abs(by.high)) <= COUNTED and e.kind.code == "i8":
                down = by.low < 0 if e.op == "add" else by.high > 0
                up = by.high > 0 if e.op == "add" else by.low < 0
                return -reach if down else info.low, reach if up else info.high
        return least if e.low < info.low else info.low, most if e.high > info.high else info.high

    def variable(self, name: str) -> E:
        """The value of a scalar variable that is bound."""
        info = self.info(name)
        if not info.kinds:
            raise self.fail(f"{name.partition('.')[0]} is read before it is bound")
        kind = join(info.kinds)
        ranged = kind.letter in "iub"
        tag = E("var", (f"{name}#",), INT) if len(info.kinds) > 1 else None
        low, high = (info.low, info.high) if ranged else (None, None)
        if e_loose(info.kinds) and ranged:
            low, high = max(low, limits(kind)[0]), min(high, limits(kind)[1])
        return E("var", (name,), kind, low, high, info.kinds, tag)

    def frozen(self, e: E) -> E:
        """The value now, whatever becomes of the variables."""
        if not variables(e):
            return e
        return self.temporary(E("copy", (e,), e.kind, e.low, e.high, e.kinds, e.tag))

    def tag(self, e: E) -> E:
        return e.tag if e.tag is not None else const(place(next(iter(e.kinds))))

    # -------------------------------------------------------------- conversions
    def cast(self, e: E, kind: Kind) -> E:
        """The same number in another kind, as NumPy's casts do it."""
        if e.kind == WORD and kind != WORD:
            e = self.narrow(e)
        if kind == WORD:
            return self.as_word(e)
        if e.kind.code == kind.code:
            return e if e.kind == kind else E("copy", (e,), kind, e.low, e.high)
        if e.op == "const":
            value = e.args[0]
            if isinstance(value, (int, float, bool)) and kind.letter == "f":
                return const(float(value), kind)
        if e.kind.letter in "iu" and kind.letter in "fc" and e.kind.python:
            self.exact(e)
        low, high = e.low, e.high
        if kind.letter not in "iub" or e.kind.letter not in "iub":
            low = high = None
        else:
            least, most = limits(kind)
            if low < least or high > most:
                low, high = least, most
        return E("cast", (e,), kind, low, high)

    def as_word(self, e: E) -> E:
        """A Python integer as one of 64 bits without a sign."""
        if e.kind == WORD:
            return e
        if e.low < 0:
            e = self.temporary(e)
            self.check(E("ge", (e, const(0)), BOOL, 0, 1))
        return E("cast", (e,), WORD, max(e.low, 0), max(e.high, 0))

    def narrow(self, e: E) -> E:
        """An integer of 64 bits without a sign as any other of Python's."""
        if e.kind != WORD:
            return e
        if e.op == "const":
            raise self.fail("an integer beyond 64 bits")
        e = self.temporary(e)
        if e.high > MOST:
            self.check(E("le", (e, const(MOST, WORD)), BOOL, 0, 1))
        return E("cast", (e,), INT, e.low, min(e.high, MOST))

    def words(self, op: str, a: E, b: E) -> E | None:
        """An operation of such integers; None of those that are others first."""
        if not all(x.kinds <= {INT, WORD} and x.high >= 0 for x in (a, b)):
            return None
        if op in COMPARE:
            return E(op, (self.as_word(a), self.as_word(b)), BOOL, 0, 1)
        a, b = self.temporary(a), self.temporary(b)
        if op in ("and", "or", "xor"):
            a, b = self.as_word(a), self.as_word(b)
            low, high = 0, min(a.high, b.high) if op == "and" else 2 ** max(a.high, b.high).bit_length() - 1
        elif op == "shr" and a.low >= 0 and b.op == "const" and b.args[0] < 64:
            low, high = a.low >> b.args[0], a.high >> b.args[0]
        elif op == "mod" and a.low >= 0 and b.low > 0:
            low, high = 0, min(a.high, b.high - 1)
        elif op == "floordiv" and a.low >= 0 and b.low > 0:
            low, high = a.low // b.high, a.high // b.low
        else:
            return None
        e = E(op, (self.as_word(a), self.as_word(b)), WORD, low, high)
        return e if high > MOST else E("cast", (e,), INT, low, high)

    def exact(self, e: E) -> None:
        """Python's integers are compared, divided and added to floats as they are: so far as a float64 holds them."""
        if e.low < -EXACT or e.high > EXACT:
            e = self.temporary(e)
            self.check(E("within", (e, const(-EXACT), const(EXACT)), BOOL))

    def exact_where_whole(self, e: E) -> E:
        """A number in a float, of which its tag says whether it is an integer: then it is one that a float64 holds."""
        others = [k for k in e.kinds if k.letter not in "iu"]
        if len(others) == len(e.kinds):
            return e
        if e.kind.letter == "c":
            raise self.fail("arithmetic of a number that is an integer or complex")
        e = self.temporary(e)
        self.check(self.unless(E("within", (e, const(float(-EXACT)), const(float(EXACT))), BOOL), e, others))
        return e

    def unless(self, fine: E, x: E, kinds: Iterable[Kind]) -> E:
        """Whether a condition holds, or x is of one of these kinds."""
        for k in kinds:
            fine = E("or", (fine, E("eq", (self.tag(x), const(place(k))), BOOL, 0, 1)), BOOL, 0, 1)
        return fine

    def truth(self, e: E) -> E:
        if e.kind.letter == "b":
            return e if e.kind == BOOL else E("copy", (e,), BOOL, e.low, e.high)
        if e.op == "const":
            return const(bool(e.args[0]))
        if e.kind.letter in "iu" and (e.low > 0 or e.high < 0):
            return const(True)
        return E("ne", (e, const(0 if e.kind.letter in "iu" else 0.0, e.kind)), BOOL, 0, 1)

    # -------------------------------------------------------------- operators
    def unary(self, op: str, a: E) -> E:
        a = self.narrow(a)
        kind, kinds, tag = self.results(op, [a])
        if op in ("pos",):
            return a
        if a.op == "const" and a.kind.python and type(a.args[0]) in (int, float, bool):
            return const(OPERATORS[op](a.args[0]))
        a = self.cast(a, kind) if not (op == "abs" and a.kind.letter == "c") else a
        if op == "neg" and kind.letter in "iu":
            low, high = -a.high, -a.low
            return self.fitting(op, (a,), kind, low, high, kinds, tag)
        if op == "abs" and kind.letter in "iu":
            a = self.temporary(a)
            low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
            return self.fitting(op, (a,), kind, low, max(abs(a.low), abs(a.high)), kinds, tag)
        if op == "invert" and kind.letter == "b":
            return E("not", (a,), kind, 0, 1)
        if op == "invert":
            return E(op, (a,), kind, ~a.high, ~a.low, kinds, tag)
        return E(op, (a,), kind, None, None, kinds, tag)

    def results(self, op: str, given: list[E]) -> tuple[Kind, frozenset, E | None]:
        """(the kind to compute in, the kinds that the result may have, the tag that says which)."""
        combinations = itertools.product(*[sorted(a.kinds, key=place) for a in given])
        found = {ks: result_kind(OPERATORS[op], ks) for ks in combinations}
        kinds = frozenset(found.values())
        if len(kinds) == 1:
            return next(iter(kinds)), kinds, None
        codes = {k.code for k in kinds}
        if op in ("shl", "shr", "invert") or (op in ("and", "or", "xor") and codes != {"i8"}):
            raise self.fail(f"{op} of a number that is of several types")
        if len(codes) > 1 and not codes <= {"i8", "f8", "c16"}:  # one of them rounds, wraps around, or is an "or"
            raise self.fail(f"{op} of a number that is of several types or precisions")
        tag: E | None = None
        for ks, r in found.items():
            here = const(True)
            for a, k in zip(given, ks):
                if len(a.kinds) > 1:
                    same = E("eq", (self.tag(a), const(place(k))), BOOL, 0, 1)
                    here = same if here.op == "const" else E("and", (here, same), BOOL, 0, 1)
            number = const(place(r))
            tag = number if tag is None else E("select", (here, number, tag), INT, 0, len(KINDS))
        return join(kinds), kinds, tag

    def fitting(self, op: str, args: tuple, kind: Kind, low: int, high: int, kinds: Any = None, tag: Any = None) -> E:
        """An operation of integers: Python's must not leave 64 bits, NumPy's wrap."""
        least, most = limits(kind)
        if low >= least and high <= most:
            return E(op, args, kind, low, high, kinds, tag)
        if not kind.python and not any(k.python for k in kinds or ()):
            return E(op, args, kind, least, most, kinds, tag)
        args = tuple(map(self.temporary, args))
        self.check(E(f"fits_{op}", args, BOOL))
        return E(op, args, kind, max(low, least), min(high, most), kinds, tag)

    def binary(self, op: str, a: E, b: E) -> E:
        if WORD in (a.kind, b.kind):
            found = self.words(op, a, b)
            if found is not None:
                return found
            a, b = self.narrow(a), self.narrow(b)
        if op in COMPARE:
            return self.compare(op, a, b)
        if a.op == b.op == "const" and a.kind.python and b.kind.python and op != "div" and op != "pow":
            with contextlib.suppress(ArithmeticError, ValueError, TypeError):
                value = OPERATORS[op](a.args[0], b.args[0])
                if type(value) is not int or LEAST <= value <= MOST:
                    return const(value)
        if op == "pow":
            return self.power(a, b)
        kind, kinds, tag = self.results(op, [a, b])
        python = [all(k.python for k in x.kinds) for x in (a, b)]
        maybe = all(any(k.python for k in x.kinds) for x in (a, b))
        if kind.letter == "b" and op in ("add", "mul"):
            op = {"add": "or", "mul": "and"}[op]
        if kind.letter == "b" and op in ("sub", "div", "floordiv", "mod"):
            raise self.fail(f"{op} of truth values")
        for x in (a, b):
            self.in_range(x, kind)
        if op in ("div", "floordiv", "mod") and maybe:
            b = self.temporary(b)
            if b.kind.letter not in "iu" or b.low <= 0 <= b.high:
                fine = E("ne", (b, const(0 if b.kind.letter in "iu" else 0.0, b.kind)), BOOL, 0, 1)
                if not all(python):
                    for x in (a, b):
                        if len(x.kinds) > 1:
                            fine = self.unless(fine, x, [k for k in x.kinds if not k.python])
                known = all(python) and all(len(x.kinds) == 1 for x in (a, b))
                self.check(fine, f"{op} {a.kind.letter}{b.kind.letter}" if known else "again")
        if op == "div" and kind.letter == "f":
            a, b = self.cast(a, kind), self.cast(b, kind)
            return E(op, (a, b), kind, None, None, kinds, tag)
        if op in ("shl", "shr"):
            return self.shift(op, self.cast(a, kind), self.cast(b, kind), kind)
        a, b = self.cast(a, kind), self.cast(b, kind)
        if kind.letter not in "iu":
            if op in ("floordiv", "mod") and kind.letter == "c":
                raise self.fail(f"{op} of complex numbers")
            if op in ("floordiv", "mod"):
                a, b = self.temporary(a), self.temporary(b)
            out = E(op, (a, b), kind, None, None, kinds, tag)
            return self.exact_where_whole(out) if kind.letter in "fc" and op in ("add", "sub", "mul") else out
        if op in ("add", "sub", "mul"):
            a, b = (self.temporary(a), self.temporary(b)) if op == "mul" else (a, b)
            ends = [OPERATORS[op](x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
            return self.fitting(op, (a, b), kind, min(ends), max(ends), kinds, tag)
        a, b = self.temporary(a), self.temporary(b)
        if op == "mod":
            low, high = (0, b.high - 1) if b.low > 0 else (b.low + 1, 0) if b.high < 0 else (None, None)
            if low == 0 and a.low >= 0:
                high = min(high, a.high)
            return E(op, (a, b), kind, low, high, kinds, tag)
        if op == "floordiv":
            if b.low > 0:
                ends = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
                return E(op, (a, b), kind, min(ends), max(ends), kinds, tag)
            return self.fitting(
                op, (a, b), kind, -max(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high)), kinds, tag
            )
        if op == "and" and (a.low >= 0 or b.low >= 0):
            return E(op, (a, b), kind, 0, min(x.high for x in (a, b) if x.low >= 0), kinds, tag)
        if op in ("or", "xor") and a.low >= 0 and b.low >= 0:
            return E(op, (a, b), kind, 0, 2 ** max(a.high, b.high).bit_length() - 1, kinds, tag)
        return E(op, (a, b), kind, None, None, kinds, tag)

    def shift(self, op: str, a: E, b: E, kind: Kind) -> E:
        a, b = self.temporary(a), self.temporary(b)
        if kind.python:
            if b.high < 0:
                raise self.fail("a shift by a negative number")
            if b.low < 0 or b.high > 62:
                self.check(E("within", (b, const(0), const(62)), BOOL))
            low, high = max(b.low, 0), min(b.high, 62)
            ends = [OPERATORS[op](x, y) for x in (a.low, a.high) for y in (low, high)]
            return self.fitting(op, (a, b), kind, min(ends), max(ends))
        return E(op, (a, b), kind)

    def in_range(self, x: E, kind: Kind) -> None:
        """NumPy 2: a number of Python's has to fit into an integer's dtype."""
        if kind.python or kind.letter not in "iu" or not any(k.python for k in x.kinds):
            return
        least, most = limits(kind)
        if x.low < least or x.high > most:
            x = self.temporary(x)
            fine = E("within", (x, const(least), const(most)), BOOL)
            self.check(self.unless(fine, x, [k for k in x.kinds if not k.python]))

    def compare(self, op: str, a: E, b: E) -> E:
        if WORD in (a.kind, b.kind):
            found = self.words(op, a, b)
            return self.compare(op, self.narrow(a), self.narrow(b)) if found is None else found
        python = all(k.python for x in (a, b) for k in x.kinds)
        if python and a.op == b.op == "const":
            return const(bool(OPERATORS[op](a.args[0], b.args[0])))
        kind, kinds, tag = BOOL if python else Kind("b1"), None, None
        if not python and any(k.python for x in (a, b) for k in x.kinds if len(x.kinds) > 1):
            kind, kinds, tag = self.results(op, [a, b])  # a truth value of Python's or of NumPy's
        letters = {a.kind.letter, b.kind.letter}
        if letters <= {"i", "u", "b"}:
            if "u8" in (a.kind.code, b.kind.code) and a.kind.code != b.kind.code:
                raise self.fail("uint64 compared with another type")
            common = a.kind if a.kind.code == b.kind.code else INT
        elif "c" in letters:
            if op not in ("eq", "ne"):
                raise self.fail("an order of complex numbers")
            if tag is None:  # Python's complex compares itself with a float64, which is a float
                each = itertools.product(a.kinds, b.kinds)
                found = {result_kind(OPERATORS[op], kinds) for kinds in each}
                if len(found) > 1:
                    raise self.fail("a comparison of complex numbers of several types")
                (kind,) = found
            common = Kind("c16")
        else:
            common = self.together_as(op, operator.add, a, b)
        if common.letter in "iu" and op not in ("eq", "ne"):
            low, high = self.decided(op, a, b)
            if low == high and tag is None:
                return const(low) if kind == BOOL else E("const", (low,), kind, int(low), int(low))
        return E(op, (self.cast(a, common), self.cast(b, common)), kind, 0, 1, kinds, tag)

    def together_as(self, name: str, function: Callable, a: E, b: E) -> Kind:
        """The kind of function(a, b), in which NumPy takes both."""
        found = {result_kind(function, kinds) for kinds in itertools.product(a.kinds, b.kinds)}
        codes = {k.code for k in found}
        if len(codes) > 1 and not codes <= {"i8", "f8", "c16"}:
            raise self.fail(f"{name} of a number that is of several types or precisions")
        return join(frozenset(found))

    def decided(self, op: str, a: E, b: E) -> tuple[bool, bool]:
        """(whether it holds for some, whether it holds for all) of integers between these bounds."""
        if op in ("gt", "ge"):
            a, b, op = b, a, {"gt": "lt", "ge": "le"}[op]
        compare = OPERATORS[op]
        return compare(a.high, b.low), compare(a.low, b.high)

    def power(self, a: E, b: E) -> E:
        if b.op == "const" and b.args[0] == 2 and type(b.args[0]) is int and a.kinds == {FLOAT, F8}:
            a = self.temporary(a)
            out = self.temporary(self.binary("mul", a, a))
            self.check(E("finite", (out,), BOOL))  # Python's raises where NumPy's is infinite
            return out
        if len(a.kinds) > 1 or len(b.kinds) > 1:
            return self.power_of_several(a, b)
        whole = b.args[0] if b.op == "const" and type(b.args[0]) is int else None
        if a.kind.letter in "iub" and b.kind.letter in "iub":
            kind = result_kind(operator.pow, (a.kind, b.kind))
            if kind == INT and (whole is None or whole > 8):
                return self.whole_power(self.cast(a, INT), self.cast(b, INT))
            if whole is None or not 0 <= whole <= 8 or kind.letter == "b":
                raise self.fail("a power of integers")
            a = self.temporary(self.cast(a, kind))
            out = const(1, kind) if whole == 0 else a
            for _ in range(whole - 1):
                out = self.temporary(self.binary("mul", out, a))
            return out
        kind = result_kind(operator.pow, (a.kind, b.kind))
        if kind.letter != "f":
            if b.op == "cast" and b.args[0].op == "const":
                b = b.args[0]
            power = b.args[0] if b.op == "const" else None
            if kind.letter == "c" and power == 2 and not kind.python:
                a = self.temporary(self.cast(a, kind))
                return self.binary("mul", a, a)
            if kind.code == "c16" and isinstance(power, (int, float)) and abs(power) < 100 and power == int(power):
                return self.complex_power(self.temporary(self.cast(a, kind)), int(power), kind)
            raise self.fail("a power of complex numbers")
        python = kind.python
        x = self.temporary(self.cast(a, kind))
        if whole == 2:
            out = self.temporary(E("mul", (x, x), kind))
        elif whole == 1:
            out = x
        else:
            y = self.cast(b, kind)
            y = self.temporary(y) if constant(y) is None else y
            if python and (whole is None or whole < 0):
                # a negative number has a complex power, zero none that is negative
                self.check(E("gt", (x, const(0.0)), BOOL, 0, 1))
            out = self.temporary(E("pow", (x, y), kind))
        if python:  # where the result is too large Python raises
            self.check(E("finite", (out,), BOOL))
        return out

    def power_of_several(self, a: E, b: E) -> E:
        kind, kinds, tag = self.results("pow", [a, b])
        if {k.code for k in kinds} != {"f8"}:
            raise self.fail("a power of a number that is of several types")
        x, y = self.temporary(self.cast(a, kind)), self.temporary(self.cast(b, kind))
        out = self.temporary(E("pow", (x, y), kind, None, None, kinds, tag))
        if any(k.python for k in kinds):  # one of Python's raises, or is complex
            self.check(E("finite", (out,), BOOL))
        return out

    def whole_power(self, a: E, b: E) -> E:
        """a ** b of Python's integers, of which b is not negative; else it would be a float, which Python makes."""
        a, b = self.temporary(a), self.temporary(b)
        if b.low < 0:
            self.check(E("ge", (b, const(0)), BOOL, 0, 1))
        if a.op == "const" and a.args[0] == 2:
            return self.shift("shl", const(1), b, INT)
        if a.op == "const" and a.args[0] == -1:
            return self.binary("sub", const(1), self.binary("mul", const(2), self.binary("and", b, const(1))))
        names = [self.fresh("power") for _ in range(3)]
        out, square, left = (E("var", (name,), INT) for name in names)
        for name, x in zip(names, (const(1), a, b)):
            self.program.kinds[name] = INT
            self.emit(Assign(name, x))
        with self.into([]) as turn:
            with self.into([]) as odd:
                self.emit(Assign(names[0], self.binary("mul", out, square)))
            self.emit(If(E("ne", (E("and", (left, const(1)), INT, 0, 1), const(0)), BOOL, 0, 1), odd, []))
            self.emit(Assign(names[2], E("shr", (left, const(1)), INT, 0, MOST)))
            with self.into([]) as more:
                self.emit(Assign(names[1], self.binary("mul", square, square)))
            self.emit(If(E("gt", (left, const(0)), BOOL, 0, 1), more, []))
        self.program.elements = True
        self.emit(While([], E("gt", (left, const(0)), BOOL, 0, 1), turn))
        return self.frozen(out)

    def complex_power(self, a: E, n: int, kind: Kind) -> E:
        """a ** n, by the products of squares by which CPython (c_powi) and NumPy (npy_cpow) compute it."""
        if n < 3 and not kind.python:
            raise self.fail("a power of complex numbers")
        product = lambda x, y: self.temporary(E("mul", (x, y), kind))
        out, square, left = const(1 + 0j, kind), a, abs(n)
        if n == 3 and not kind.python:
            out, left = product(a, product(a, a)), 0
        while left:
            out = product(out, square) if left & 1 else out
            left >>= 1
            square = product(square, square) if left else square
        zero = E("eq", (a, const(0j, kind)), BOOL, 0, 1)
        if not kind.python:
            return self.temporary(E("select", (zero, const(0j, kind), out), kind))
        if n < 0:
            self.check(E("not", (zero,), BOOL, 0, 1))
        if n < 1:
            out = self.temporary(E("div", (const(1 + 0j, kind), out), kind))
        self.check(E("finite", (out,), BOOL))  # where the result is too large Python raises
        return out

    # -------------------------------------------------------------- branches in expressions
    def choose(self, condition: E, then: Callable[[], E], orelse: Callable[[], E]) -> E:
        """then() where the condition holds, else orelse(), of which only the one runs."""
        if condition.op == "const":
            return then() if condition.args[0] else orelse()
        with self.into([]) as first:
            a = self.attempt(then)
        with self.into([]) as second:
            b = self.attempt(orelse) if a is not None else orelse()
        if a is None or b is None:
            return b if a is None else a
        simple = a.kinds == b.kinds and len(a.kinds) == 1
        if not first and not second and simple and all(x.op in ("const", "var") for x in (a, b)):
            return E("select", (condition, a, b), a.kind, min(a.low, b.low), max(a.high, b.high))
        name = self.fresh("choice")
        before = set(self.bound)
        with self.into(first):
            self.assign(name, a)
        with self.into(second):
            self.assign(name, b)
        self.bound = before | {name}
        self.emit(If(condition, first, second))
        return self.variable(name)

    def attempt(self, value: Callable[[], Any]) -> Any:
        """value(); None where only the next pass knows it."""
        try:
            return value()
        except Unknown:
            return None

    def both(self, op: str, a: E, b: Callable[[], E]) -> E:
        """a and b(), a or b(): of two truth values."""
        if a.op == "const":
            return b() if a.args[0] == (op == "and") else a
        with self.into([]) as body:
            second = b()
        if not body:
            return E(op, (a, second), BOOL, 0, 1)
        name = self.fresh("both")
        self.program.kinds[name] = BOOL
        self.emit(Assign(name, a))
        body.append(Assign(name, second))
        test = E("var", (name,), BOOL, 0, 1)
        self.emit(If(test if op == "and" else E("not", (test,), BOOL, 0, 1), body, []))
        return test

    # -------------------------------------------------------------- for the other files
    def clip(self, e: E, least: E, most: E) -> E:
        """min(max(e, least), most) of integers."""
        return self.least(self.greatest(e, least), most)

    def least(self, a: E, b: E) -> E:
        if a.high <= b.low:
            return a
        if b.high <= a.low:
            return b
        return self.temporary(E("min", (a, b), INT, min(a.low, b.low), min(a.high, b.high)))

    def greatest(self, a: E, b: E) -> E:
        if a.low >= b.high:
            return a
        if b.low >= a.high:
            return b
        return self.temporary(E("max", (a, b), INT, max(a.low, b.low), max(a.high, b.high)))


def e_loose(kinds: frozenset) -> bool:
    return len(kinds) > 1


def number(x: Any) -> E | None:
    """A number outside as a constant."""
    numpys = issubclass(type(x), onp.generic)  # a traced number is an instance, too
    if not numpys and type(x) not in (int, float, bool, complex):
        return None
    kind = kind_of(x) if type(x) is not int or LEAST <= x <= MOST else WORD if 0 < x < 2**64 else None
    return None if kind is None else const(x.item() if numpys else x, kind)
