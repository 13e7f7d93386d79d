"""Rows of arrays that share nothing are computed some at a time: unroll and jam of an outer loop around inner ones.

`for r: for k: y[r, k] += b * y[r, k + 1]` waits in every turn for the number before it; four rows wait together as long
as one (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapter 8). Each element gets what it
got, in the order in which it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .blocking import put, read_behind
from .ir import (
    INT,
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
    places,
    statements,
    variables,
    walk,
)
from .simplified import bound, exposed, independent, moves

ROWS = 4
MOST = 50  # statements of a loop


class Apart(Exception):
    """A loop that is left as it is."""


def jammed(program: Program, body: list, fresh: Callable[[str], str]) -> list:
    """A derivative's body with such loops in blocks of rows. `fresh` makes names of variables."""
    return Jamming(program, body, fresh).body(body)


class Jamming:
    def __init__(self, program: Program, body: list, fresh: Callable[[str], str]) -> None:
        self.program, self.new = program, fresh
        self.after = read_behind(program, body)
        self.tapes = {i.name for i in program.inputs if i.like and i.name.rstrip(".") == i.like}

    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            names = ("then", "orelse") if type(s) is If else ("body",) if type(s) in (For, While) else ()
            inner = {name: self.body(getattr(s, name)) for name in names}
            same = all(inner[name] == getattr(s, name) for name in names)
            try:  # of loops around one another the innermost one: its rows lie next to each other
                out += Rows(self, s).made() if same and type(s) is For else [s._replace(**inner)]
            except Apart:
                out.append(s)
        return out


class Rows:
    """A loop over rows. Raises Apart unless its turns share nothing, do the same and wait for numbers of their own."""

    def __init__(self, around: Jamming, s: For) -> None:
        self.around, self.program, self.loop = around, around.program, s
        inside = list(statements(s.body))
        if s.step not in (1, -1) or s.asked or s.lanes or len(inside) > MOST:
            raise Apart
        if any(type(x) not in (Assign, Store, For, If) or (type(x) is For and x.lanes) for x in inside):
            raise Apart
        own = bound(s.body)
        if s.var in own or exposed(s.body) & own or around.after.get(id(s), own) & (own | {s.var}):
            raise Apart
        self.written = {x.array for x in inside if type(x) is Store}
        read = {x.args[0] for t in inside for e in expressions(t) for x in walk(e) if x.op == "load"}
        kept = around.tapes - read  # what a turn keeps, it keeps at a place of its own
        for name in self.written - kept:
            met = [index for x in inside for a, index in places(x) if a == name]
            axes = [axis for axis, i in enumerate(met[0]) if all(repr(m[axis]) == repr(i) for m in met)]
            if not any(moves((met[0][axis],), s.var, own) for axis in axes):
                raise Apart
        self.differs = {s.var}  # variables that are others in every row
        while self.spread(s.body, False):
            pass
        self.same_turns(s.body)
        keeps = lambda x: type(x) is Store and x.array in kept
        if all(independent(t._replace(body=[x for x in t.body if not keeps(x)])) for t in innermost(s.body)):
            raise Apart

    def changes(self, e: E) -> bool:
        """Whether an expression is another one in every row."""
        return any(x.op == "load" and x.args[0] in self.written for x in walk(e)) or bool(variables(e) & self.differs)

    def spread(self, body: list, branch: bool) -> bool:
        """Adds to the variables that differ. `branch`: whether only some rows come here."""
        some = False
        for s in body:
            if type(s) is Assign and s.name not in self.differs and (branch or self.changes(s.value)):
                self.differs.add(s.name)
                some = True
            inner = branch or (type(s) is If and self.changes(s.condition))
            for p in parts(s):
                some |= self.spread(p, inner)
        return some

    def same_turns(self, body: list) -> None:
        for s in body:
            if type(s) is For and (self.changes(s.start) or self.changes(s.stop) or isinstance(s.step, E)):
                raise Apart
            differ = type(s) is If and self.changes(s.condition)
            if differ and any(type(x) is For for x in statements([s])):
                raise Apart
            for p in parts(s):
                self.same_turns(p)

    # -------------------------------------------------------------- some rows together
    def made(self) -> list:
        s = self.loop
        first, here = self.fresh(INT, s), self.fresh(INT, s)
        on = "add" if s.step == 1 else "sub"
        rows: list[dict[str, E]] = [{s.var: E(on, (here, const(k)), INT, here.low, here.high)} for k in range(ROWS)]
        for name in sorted(bound(s.body)):
            kind = self.program.kinds[name]
            shared = self.fresh(kind)
            for k, names in enumerate(rows):
                names[name] = self.fresh(kind) if k and name in self.differs else shared
        span = E("max", (E("sub", (s.stop, s.start)[:: s.step], INT), const(0)), INT, 0, 2**40)
        whole = E("mul", (E("floordiv", (span, const(ROWS)), INT), const(ROWS)), INT, 0, 2**40)
        block = s._replace(var=here.args[0], stop=first, step=ROWS * s.step, body=self.together(s.body, rows))
        return [Assign(first.args[0], E(on, (s.start, whole), INT)), block, s._replace(start=first)]

    def fresh(self, kind: Kind, like: For | None = None) -> E:
        """A new variable, whose numbers are those of a loop's."""
        name = self.around.new("row")
        self.program.kinds[name] = kind
        ends = (like.start, like.stop) if like else ()
        limits = (min(e.low for e in ends), max(e.high for e in ends)) if ends else ()
        return E("var", (name,), kind, *limits)

    def together(self, body: list, rows: list[dict[str, E]]) -> list:
        """Statements for several rows. `rows`: what stands in each for the variables."""
        out: list = []
        for s in body:
            one = rows[0]
            if type(s) is Assign:
                own = rows if s.name in self.differs else rows[:1]
                out += [Assign(names[s.name].args[0], put(s.value, names)) for names in own]
            elif type(s) is Store:
                out += [Store(s.array, tuple([put(i, n) for i in s.index]), put(s.value, n)) for n in rows]
            elif type(s) is For:
                ends = {"start": put(s.start, one), "stop": put(s.stop, one)}
                out.append(s._replace(var=one[s.var].args[0], **ends, body=self.together(s.body, rows)))
            elif self.changes(s.condition):
                branch = lambda b, names: self.together(b, [names])
                out += [If(put(s.condition, n), branch(s.then, n), branch(s.orelse, n)) for n in rows]
            else:
                out.append(If(put(s.condition, one), self.together(s.then, rows), self.together(s.orelse, rows)))
        return out


def innermost(body: list) -> Iterator[For]:
    """The loops that hold no others."""
    for s in statements(body):
        if type(s) is For and not any(type(x) is For for x in statements(s.body)):
            yield s
