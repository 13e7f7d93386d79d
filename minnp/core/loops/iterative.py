"""Functions that call themselves as loops: what derivatives and batches are made of.

The statements of a function are cut where it calls one into *parts* without calls. A loop runs one part after the
other; which one is next, and the variables that a later part of the same call reads, lie on a stack of arrays.
"""

from __future__ import annotations

import copy
import itertools

from .ir import (
    BOOL,
    DEPTH,
    INT,
    Alloc,
    Array,
    Assign,
    Block,
    Call,
    Check,
    Define,
    E,
    For,
    If,
    Kind,
    Leave,
    Permute,
    Program,
    Reshape,
    Store,
    View,
    While,
    const,
    expressions,
    left_from,
    statements,
    variables,
    walk,
)
from .operations import NotUnderstood
from .simplified import bound

NEXT, LEVEL, BACK = "<next>", "<level>", "<back>"  # the part that is next, how many calls are open, where they return


class Part:
    """Statements without calls: `body`, then `end`, which says what is next."""

    def __init__(self) -> None:
        self.body: list = []
        self.end: list = []
        self.first: frozenset[str] = frozenset()  # of the first one of a function: variables that the caller gives it


def iterative(program: Program) -> Program:
    """A program without functions of its own. Raises NotUnderstood."""
    functions = [s for s in program.body if type(s) is Define]
    if not functions:
        return program
    if program.moving:
        raise NotUnderstood(
            "the derivative of a function that calls itself and takes, or returns, arrays", program.line
        )
    return _Machine(program, functions).made()


class _Machine:
    def __init__(self, program: Program, functions: list[Define]) -> None:
        self.program = out = copy.copy(program)
        out.kinds, out.arrays = dict(program.kinds), dict(program.arrays)
        self.functions = {f.name: f for f in functions}
        self.parts: list[Part] = []
        self.entries: dict[str, int] = {}
        self.counts = itertools.count()
        self.stacks: dict[str, Array] = {}

    def made(self) -> Program:
        out = self.program
        out.kinds |= {NEXT: INT, LEVEL: INT}
        for name in self.functions:
            self.entries[name] = self.part()
        turn: list = []
        for f in self.functions.values():
            entry, before = self.entries[f.name], len(self.parts)
            self.parts[entry].first = frozenset(f.given)
            last = self.cut(f.body, entry, {})
            if last is not None:
                back = E("load", (self.stack(BACK, INT), self.level()), INT)
                self.parts[last].end = [Assign(NEXT, back), self.deeper(-1)]
            self.keep_variables([self.parts[entry], *self.parts[before:]], {*f.given, *f.returned})
        for k, part in reversed([*enumerate(self.parts)]):
            here = [*part.body, *part.end]
            turn = [If(E("eq", (E("var", (NEXT,), INT), const(k)), BOOL, 0, 1), here, turn)] if turn else here
        out.body = self.called([s for s in out.body if type(s) is not Define], turn)
        out.body[:0] = [Alloc(a.name, (const(DEPTH),), False) for a in self.stacks.values()]
        return out

    # -------------------------------------------------------------- parts
    def part(self) -> int:
        self.parts.append(Part())
        return len(self.parts) - 1

    def level(self) -> E:
        return E("var", (LEVEL,), INT, 0, DEPTH)

    def deeper(self, by: int) -> Assign:
        return Assign(LEVEL, E("add", (self.level(), const(by)), INT, -1, DEPTH))

    def go(self, at: int | None, to: int) -> None:
        if at is not None:
            self.parts[at].end = [Assign(NEXT, const(to))]

    def choose(self, at: int | None, condition: E, first: int, second: int) -> None:
        if at is not None:
            self.parts[at].end = [If(condition, [Assign(NEXT, const(first))], [Assign(NEXT, const(second))])]

    def cut(self, body: list, at: int | None, labels: dict[str, int]) -> int | None:
        """Puts statements into a part and those behind it; the last one, or None where they leave."""
        for s in body:
            if at is None:
                return None
            sort = type(s)
            if not any(type(x) is Call for x in statements([s])) and not left_from(s):
                self.parts[at].body.append(s)
            elif sort is Call:
                behind = self.part()
                self.parts[at].end = [
                    self.deeper(1),
                    Check(E("lt", (self.level(), const(DEPTH)), BOOL, 0, 1), "again"),
                    Store(self.stack(BACK, INT), (self.level(),), const(behind)),
                    Assign(NEXT, const(self.entries[s.function])),
                ]
                at = behind
            elif sort is Leave:
                if s.label in labels:  # else it is behind what Python has to run
                    self.go(at, labels[s.label])
                return None
            elif sort is If:
                first, second, behind = self.part(), self.part(), self.part()
                self.choose(at, s.condition, first, second)
                self.go(self.cut(s.then, first, labels), behind)
                self.go(self.cut(s.orelse, second, labels), behind)
                at = behind
            elif sort is Block:
                behind = self.part()
                self.go(self.cut(s.body, at, labels | {s.label: behind}), behind)
                at = behind
            elif sort is While:
                at = self.repeated(at, s.test, s.condition, s.body, labels)
            elif sort is For and isinstance(s.step, int):
                stop, turn = f"{s.var}.stop", E("var", (s.var,), INT)
                self.program.kinds[stop] = INT
                self.parts[at].body += [Assign(stop, s.stop), Assign(s.var, s.start)]
                goes_on = E("lt" if s.step > 0 else "gt", (turn, E("var", (stop,), INT)), BOOL, 0, 1)
                step = Assign(s.var, E("add", (turn, const(s.step)), INT))
                at = self.repeated(at, [], goes_on, [*s.body, step], labels)
            else:
                raise NotUnderstood("the derivative of a call of a function that calls itself", self.program.line)
        return at

    def repeated(self, at: int, test: list, condition: E, body: list, labels: dict[str, int]) -> int:
        head, turn, behind = self.part(), self.part(), self.part()
        self.go(at, head)
        self.choose(self.cut(test, head, labels), condition, turn, behind)
        self.go(self.cut(body, turn, labels), head)
        return behind

    # -------------------------------------------------------------- what a call keeps
    def stack(self, name: str, kind: Kind) -> str:
        if name not in self.stacks:
            stack = f"{name}<stack>"
            self.stacks[name] = self.program.arrays[stack] = Array(stack, kind, 1, stack)
            self.stacks[name].dims = [const(DEPTH)]
        return self.stacks[name].name

    def keep_variables(self, found: list[Part], shared: set[str]) -> None:
        """Each part reads the variables that an earlier one of the same call assigned, and keeps those that a later one
        reads. `shared`: variables by which calls give and return."""
        bodies = [[*p.body, *p.end] for p in found]
        own = {name for body in bodies for name in bound(body)} | shared
        arrays = [{s.name for s in statements(body) if type(s) in (Alloc, View, Permute, Reshape)} for body in bodies]
        for k, body in enumerate(bodies):
            used = {x for s in statements(body) for x in named(s)}
            if any(used & made for j, made in enumerate(arrays) if j != k):
                why = "the derivative of a function that calls itself while it has an array of its own"
                raise NotUnderstood(why, self.program.line)
        reads = [exposed(body) & own - {NEXT, LEVEL} for body in bodies]
        returned = lambda k: set() if not k else shared - found[0].first  # which the call before it left
        loaded = [(names - p.first - returned(k)) for k, (p, names) in enumerate(zip(found, reads))]
        kept = set().union(*loaded)
        assert not kept & shared  # which are copied as soon as they are there
        for p, body, names in zip(found, bodies, loaded):
            kind = self.program.kinds
            before = [
                Assign(n, E("load", (self.stack(n, kind[n]), self.level()), kind[n])) for n in sorted(names & kept)
            ]
            changed = sorted(kept & (bound(body) | p.first))
            after = [Store(self.stack(n, kind[n]), (self.level(),), E("var", (n,), kind[n])) for n in changed]
            p.body = [*before, *p.body, *after]

    # -------------------------------------------------------------- calls from outside
    def called(self, body: list, turn: list) -> list:
        """The body with a loop for every call."""
        out: list = []
        for s in body:
            if type(s) is Call:
                out += [Assign(LEVEL, const(0)), Assign(NEXT, const(self.entries[s.function]))]
                out.append(While([], E("ge", (self.level(), const(0)), BOOL, 0, 1), turn))
                continue
            fields = {name: self.called(x, turn) for name, x in zip(s._fields, s) if type(x) is list}
            out.append(s._replace(**fields) if fields else s)
        return out


def named(s: object) -> set[str]:
    """The arrays that a statement itself names."""
    found = {s.array} if type(s) is Store else {s.base} if type(s) in (View, Permute, Reshape) else set()
    return found | {
        a for e in expressions(s) for x in walk(e) if x.op not in ("var", "const") for a in x.args if isinstance(a, str)
    }


def exposed(body: list) -> set[str]:
    """The variables that statements may read as they were before them, or leave as they were."""
    found: set[str] = set()
    sure: set[str] = set()
    for s in body:
        read = {n for t in statements([s]) for e in expressions(t) for n in variables(e)}
        if type(s) is not Assign:
            read |= {t.name for t in statements([s]) if type(t) is Assign}
        found |= read - sure
        if type(s) is Assign:
            sure.add(s.name)
    return found
