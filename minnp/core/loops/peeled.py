"""Turns of a loop that take another way than the others are done before it or behind it, as statements of their own.

`for k in range(n): if k > 0: a = x[k - 1] ...; if k < n - 1: b = x[k + 1] ...` becomes the first turn, a loop without
tests, and the last turn (loop peeling: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapter
5), where there are as many turns; else the loop is as it was. A derivative keeps less of turns that take one way: what
is computed again is bound at one place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

from .blocking import read_behind
from .interchanged import temporary
from .ir import (
    BOOL,
    INT,
    Alloc,
    Assign,
    E,
    For,
    If,
    Kind,
    Program,
    Store,
    While,
    const,
    expressions,
    parts,
    statements,
    variables,
    walk,
)
from .simplified import bound, exposed, replaced

MOST, TURNS = 60, 3  # statements of a loop, turns that are peeled
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class Peeled(NamedTuple):
    """Statements that stand for a loop where a condition holds."""

    condition: E
    body: list


class Apart(Exception):
    """A loop that is left as it is."""


def peeled(program: Program, body: list, kinds: dict[str, Kind], fresh: Callable[[str, Kind], str]) -> list:
    """A body without views, checks and jumps, with such loops in parts.

    kinds, fresh    those of its variables, and what makes new ones
    """
    return Peeling(program, body, kinds, fresh).body(body)


class Peeling:
    def __init__(self, program: Program, body: list, kinds: dict[str, Kind], fresh: Callable[[str, Kind], str]) -> None:
        self.kinds, self.fresh = kinds, fresh
        self.behind = read_behind(program, body)
        self.definitions: dict[str, E] = {}  # of what is bound once, from what does not change while it is read
        values: dict[str, list[E]] = {}
        made = {s.name for s in statements(body) if type(s) is Alloc}
        for s in statements(body):
            if type(s) is Assign:
                values.setdefault(s.name, []).append(s.value)
        for name, found in values.items():  # what it is made of comes first
            moves = any(x.op == "load" or (x.op == "dim" and x.args[0] in made) for e in found for x in walk(e))
            known = variables(found[0]) & values.keys() <= self.definitions.keys()
            if len(found) == 1 and temporary(name) and known and not moves:
                self.definitions[name] = replaced(found[0], self.definitions, True)

    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            found = self.loop(s) if type(s) is For else None
            if found is not None:
                test = self.fresh("test", BOOL)
                out += [Assign(test, found.condition), If(E("var", (test,), BOOL), found.body, [s])]
                continue
            names = ("then", "orelse") if type(s) is If else ("test", "body") if type(s) is While else ("body",)
            out.append(s._replace(**{name: self.body(getattr(s, name)) for name in names}) if parts(s) else s)
        return out

    def loop(self, s: For) -> Peeled | None:
        """What stands for a loop, or for loops around one, where a condition that is known before them holds."""
        try:
            if not any(type(x) is For for x in s.body):
                return Parts(self, s).made()
            found = [self.loop(x) if type(x) is For else None for x in s.body]
            conditions = [x.condition for x in found if x is not None]
            if not conditions or any(variables(c) & bound([s]) for c in conditions):
                return None
            inner = [y for x, f in zip(s.body, found) for y in (f.body if f is not None else [x])]
            (whole,) = self.copies([s._replace(body=inner)], self.private(s), {})
            condition = conditions[0]
            for c in conditions[1:]:
                condition = E("and", (condition, c), BOOL, 0, 1)
            return Peeled(condition, [whole])
        except Apart:
            return None

    def private(self, s: For) -> set[str]:
        """The variables of a loop that mean nothing before it, in another turn, and behind it."""
        if id(s) not in self.behind or s.var in self.behind[id(s)]:
            raise Apart
        return bound([s]) - self.behind[id(s)] - exposed([s])

    def copies(self, body: list, private: set[str], known: dict[str, E]) -> list:
        """Statements with other names of these variables, and others with what is known of them."""
        known = dict(known)
        for name in sorted(private - known.keys()):
            kind = self.kinds[name]
            known[name] = E("var", (self.fresh("part", kind),), kind)
        return self.renamed(body, known)

    def renamed(self, body: list, known: dict[str, E]) -> list:
        out: list = []
        one = lambda e: replaced(e, known, True)
        name = lambda n: known[n].args[0] if n in known else n
        for s in body:
            if type(s) is Assign:
                out.append(Assign(name(s.name), one(s.value)))
            elif type(s) is Store:
                out.append(Store(s.array, tuple(map(one, s.index)), one(s.value)))
            elif type(s) is If:
                out.append(If(one(s.condition), self.renamed(s.then, known), self.renamed(s.orelse, known)))
            elif type(s) is For and not isinstance(s.step, E):
                inner = self.renamed(s.body, known)
                out.append(s._replace(var=name(s.var), start=one(s.start), stop=one(s.stop), body=inner))
            else:
                raise Apart
        return out

    def linear(self, e: E) -> dict[str, int]:
        """An integer as a sum: how often it has each variable, and ("") 1."""
        if e.op == "copy":
            return self.linear(e.args[0])
        if e.op == "const" and type(e.args[0]) is int:
            return {"": e.args[0]}
        if e.op == "var" and e.args[0] in self.definitions:
            return self.linear(self.definitions[e.args[0]])
        if e.op in ("add", "sub") and e.kind.code == INT.code:
            x, y = map(self.linear, e.args)
            return self.minus(x, y if e.op == "sub" else {n: -k for n, k in y.items()})
        if e.op in ("var", "dim") and e.kind.code == INT.code:
            return {repr(e): 1}
        raise Apart

    def minus(self, x: dict[str, int], y: dict[str, int]) -> dict[str, int]:
        sums = {n: x.get(n, 0) - y.get(n, 0) for n in x.keys() | y.keys()}
        return {n: k for n, k in sums.items() if k}


class Parts:
    """A loop without loops, whose first turns and last turns are told from others. Raises Apart for any other."""

    def __init__(self, around: Peeling, s: For) -> None:
        self.around, self.loop = around, s
        self.own = bound([s])
        if s.step not in (1, -1) or s.asked or s.lanes or (variables(s.start) | variables(s.stop)) & self.own:
            raise Apart
        if any(type(x) not in (Assign, Store, If) for x in statements(s.body)):
            raise Apart
        self.private = around.private(s) - {s.var}
        self.body = read(s.body, self.own - self.private)
        inside = statements(self.body)
        if len(inside) > MOST:
            raise Apart
        self.ends = around.linear(s.start), around.linear(s.stop)
        self.peel = [0, 0]  # how many turns, first ones and last ones
        for x in inside:
            if type(x) is If:
                self.resolved(x.condition, None)
        self.first, self.last = self.peel
        if not 0 < self.first + self.last <= TURNS:
            raise Apart

    def made(self) -> Peeled:
        s = self.loop
        at = lambda e, k: const(e.args[0] + k * s.step) if e.op == "const" else E("add", (e, const(k * s.step)), INT)
        before = [x for k in range(self.first) for x in self.turn(at(s.start, k), k)]
        behind = [x for k in range(-self.last, 0) for x in self.turn(at(s.stop, k), k)]
        var = E("var", (self.around.fresh("part", INT),), INT)
        others = s._replace(
            var=var.args[0],
            start=at(s.start, self.first),
            stop=at(s.stop, -self.last),
            body=self.turn(var, None),
        )
        ends = [replaced(e, self.around.definitions, True) for e in (s.start, s.stop)]
        span = E("sub", tuple(ends[:: -s.step]), INT)
        return Peeled(E("ge", (span, const(self.first + self.last)), BOOL, 0, 1), [*before, others, *behind])

    def turn(self, var: E, which: int | None) -> list:
        """What a turn does: one of the first (0, 1, ...), of the last (..., -1), or of those between."""
        body = self.chosen(self.body, which)
        last = lambda k, s: (
            type(s) is not Assign or s.name not in self.private or not overwritten(body[k + 1 :], s.name)
        )
        return self.around.copies([s for k, s in enumerate(body) if last(k, s)], self.private, {self.loop.var: var})

    def chosen(self, body: list, which: int | None) -> list:
        out: list = []
        for s in body:
            if type(s) is If:
                test = self.resolved(s.condition, which)
                then, orelse = (self.chosen(part, which) for part in parts(s))
                if test.op == "const":
                    out += then if test.args[0] else orelse
                    continue
                s = If(test, then, orelse)
            out.append(s)
        return out

    def resolved(self, e: E, which: int | None) -> E:
        """A condition in a turn. Finds how many turns are to be peeled for that."""
        if e.op == "copy":
            return self.resolved(e.args[0], which)
        if e.op == "var" and e.args[0] in self.around.definitions:
            x = self.resolved(self.around.definitions[e.args[0]], which)
            return x if x.op == "const" else e
        if e.op == "not":
            x = self.resolved(e.args[0], which)
            return const(not x.args[0]) if x.op == "const" else E("not", (x,), BOOL, 0, 1)
        if e.op in ("and", "or"):
            args = [self.resolved(a, which) for a in e.args]
            decided = [x for x in args if x.op == "const" and bool(x.args[0]) == (e.op == "or")]
            args = decided[:1] or [x for x in args if x.op != "const"] or args[:1]
            return args[0] if len(args) == 1 else E(e.op, tuple(args), BOOL, 0, 1)
        if e.op not in MIRRORED:
            return e
        try:
            op, place = self.compared(e)
        except Apart:
            return e
        for last, end in enumerate(self.ends):
            far = self.around.minus(place, end)
            k = far.get("", 0) * self.loop.step  # the turn from that end on that is compared with
            peeled = max(-k - (op in ("le", "gt")) if last else k + (op not in ("lt", "ge")), 0)
            if far.keys() <= {""} and peeled <= TURNS:
                self.peel[last] = max(self.peel[last], peeled)
                own = which is not None and (which < 0) == bool(last)
                turn = which if own else -math.inf if last else math.inf
                return const(getattr(operator, op)(turn, k))
        return e

    def compared(self, e: E) -> tuple[str, dict[str, int]]:
        """(op, x) where a comparison is `var op x`, in the order in which the loop goes; x does not change in it."""
        sums = self.around.minus(*map(self.around.linear, e.args))
        sign = sums.pop(self.loop.var, 0)
        if sign not in (1, -1) or sums.keys() & self.own:
            raise Apart
        op = e.op if sign == self.loop.step else MIRRORED[e.op]
        return op, {n: -sign * k for n, k in sums.items()}


def read(body: list, names: set[str]) -> list:
    """Statements without loops, but for what binds variables that nobody reads. `names`: those that are read behind
    them, to which are added those that they read."""
    out: list = []
    for s in reversed(body):
        if type(s) is Assign and s.name not in names:
            continue
        if type(s) is If:
            then, orelse = read(s.then, names), read(s.orelse, names)
            if not then and not orelse:
                continue
            s = If(s.condition, then, orelse)
        names.update(*map(variables, expressions(s)))
        out.append(s)
    return out[::-1]


def overwritten(body: list, name: str) -> bool:
    """Whether statements bind a variable before they read it."""
    for s in body:
        if any(name in variables(e) for x in statements([s]) for e in expressions(x)):
            return False
        if type(s) is Assign and s.name == name:
            return True
    return False
