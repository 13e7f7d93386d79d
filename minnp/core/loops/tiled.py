"""Loops that go over a whole matrix in every turn do so for several turns at a time, row by row.

`for i: g = f(i); for k: for j: W[k, j] += x[i, k] * g[j]` reads and writes all of W in every turn, as the gradient of
a matrix that rows are multiplied with. Where nothing else in the loop touches W, and the turns of `k` keep to places of
their own, it becomes

    for tile: for i in tile: g = f(i); kept[i] = g
              for k: for i in tile: for j: W[k, j] += x[i, k] * kept[i, j]

in which a row stays in the cache (strip-mining, distribution and interchange: Allen and Kennedy, Optimizing Compilers
for Modern Architectures, 2001, chapters 5 and 9). Each element gets what it got, in the order in which it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .ir import (
    INT,
    Alloc,
    Array,
    Assign,
    Check,
    E,
    For,
    If,
    Program,
    Store,
    While,
    const,
    expressions,
    places,
    statements,
    variables,
    walk,
)
from .simplified import bound, exposed, moves, replaced

TURNS = 64  # of a loop in a tile
KNOWN = (Assign, Store, Alloc, If, For, While, Check)


class Apart(Exception):
    """A loop that is left as it is."""


class Kept(NamedTuple):
    """What is kept of every turn: a variable, or an array of one axis, of such a length."""

    name: str
    copy: str
    length: E | None


def tiled(program: Program, body: list, fresh: Callable[[str], str]) -> list:
    """A derivative's body with such loops in tiles. `fresh` makes names of variables and arrays."""
    if any(type(s) not in KNOWN for s in statements(body)):
        return body
    return Tiling(program, fresh, body).body(body)


class Tiling:
    def __init__(self, program: Program, fresh: Callable[[str], str], body: list) -> None:
        self.program, self.new = program, fresh
        self.reads: dict[str, int] = {}  # of every variable, in all statements
        for s in statements(body):
            for name in read(s):
                self.reads[name] = self.reads.get(name, 0) + 1
        self.reads |= dict.fromkeys((n for o in program.outputs for n in (o[0], *o[2:])), 1 << 30)

    def fresh(self, what: str) -> E:
        name = self.new(what)
        self.program.kinds[name] = INT
        return E("var", (name,), INT, 0, 2**40)

    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            if type(s) is For:
                out += self.loop(s)
            elif type(s) is If:
                out.append(If(s.condition, self.body(s.then), self.body(s.orelse)))
            elif type(s) is While:
                out.append(While(s.test, s.condition, self.body(s.body)))
            else:
                out.append(s)
        return out

    def loop(self, s: For) -> list:
        nests = [x for x in s.body if type(x) is For and self.apart(s, x)]
        try:
            if nests and s.step in (1, -1):
                return self.in_tiles(s, nests)
        except Apart:
            pass
        return [s._replace(body=self.body(s.body))]

    def apart(self, s: For, nest: For) -> bool:
        """Whether a nest in a loop may run later, for all turns one after the other: it shares what it writes with no
        other statement of the loop, its own turns share nothing, and it leaves nothing."""
        if not any(type(x) is For for x in statements(nest.body)) or nest.step not in (1, -1) or nest.asked or s.asked:
            return False
        if any(type(x) not in (Assign, Store, For, If) for x in statements(nest.body)):
            return False
        changed, own = bound([s]), bound([nest])
        if exposed([nest]) & own or variables(nest.start) & changed or variables(nest.stop) & changed:
            return False
        if any(self.reads.get(n, 0) != sum(n in read(x) for x in statements([nest])) for n in own):
            return False
        written = {x.array for x in statements([nest]) if type(x) is Store}
        others = [x for x in s.body if x is not nest]
        if written & {a for a, _ in touched(others)} or max(self.program.arrays[a].ndim for a in written) < 2:
            return False
        lengths = {x.args[0] for e in (nest.start, nest.stop) for x in walk(e) if x.op in ("dim", "load")}
        if lengths & {a for a, _ in touched(s.body, True)}:
            return False
        for name in written:
            places = [index for a, index in touched([nest]) if a == name]
            if not any(
                all(repr(p[axis]) == repr(places[0][axis]) for p in places)
                and moves((places[0][axis],), nest.var, changed - {nest.var})
                for axis in range(len(places[0]))
            ):
                return False
        return True

    def in_tiles(self, s: For, nests: list[For]) -> list:
        tile, first, last = self.new("tile"), self.fresh("first"), self.fresh("last")
        self.program.kinds[tile] = INT
        on, nearer = ("add", "min") if s.step == 1 else ("sub", "max")
        here, turn = E("var", (tile,), INT, *sorted((s.start.low, s.stop.high))), E("var", (s.var,), INT)
        row = E("sub", (turn, first)[:: s.step], INT, 0, TURNS)
        before: list = [Assign(first.args[0], here)]
        end = E(nearer, (E(on, (here, const(TURNS)), INT), s.stop), INT)
        before.append(Assign(last.args[0], end))
        inner: list = []
        after: list = []
        for x in s.body:
            if not any(x is n for n in nests):
                inner.append(x)
                continue
            kept = self.kept(s, x)
            for k in kept:
                inner += self.keeping(k, row)
                before += self.room(s, k, first, last)
            each = For(s.var, first, last, s.step, self.taken(x.body, {k.name: k for k in kept}, row), s.exact)
            after.append(x._replace(body=[each]))
        run = s._replace(start=first, stop=last, body=inner)
        return [For(tile, s.start, s.stop, TURNS * s.step, [*before, run, *after], s.exact)]

    def kept(self, s: For, nest: For) -> list[Kept]:
        """What a nest reads that the loop's other statements change."""
        names = (exposed([nest]) & bound(s.body)) - {s.var}
        out = [Kept(name, self.new("kept"), None) for name in sorted(names)]
        changed = {a for a, _ in touched([x for x in s.body if x is not nest], True)}
        for name in sorted({a for a, _ in touched([nest])} & changed):
            made = [x for x in s.body if type(x) is Alloc and x.name == name]
            length = made[0].dims[0] if len(made) == 1 else E("dim", (name, 0), INT, 0, 2**40)
            inside = any(type(x) is Alloc and x.name == name for x in statements(s.body))
            if self.program.arrays[name].ndim != 1 or (inside and not made):
                raise Apart
            if variables(length) & (bound(s.body) - {s.var}) or any(x.op == "load" for x in walk(length)):
                raise Apart
            if any(x.op == "dim" and x.args[0] in changed for x in walk(length)) and made:
                raise Apart
            out.append(Kept(name, self.new("kept"), length))
        for k in out:
            kind = self.program.kinds[k.name] if k.length is None else self.program.arrays[k.name].kind
            self.program.arrays[k.copy] = Array(k.copy, kind, 1 if k.length is None else 2, k.copy)
        return out

    def room(self, s: For, k: Kept, first: E, last: E) -> list:
        """Makes room for what is kept of a tile's turns."""
        if k.length is None:
            return [Alloc(k.copy, (const(TURNS),), False)]
        if s.var not in variables(k.length):
            return [Alloc(k.copy, (const(TURNS), k.length), False)]
        most, turn = self.fresh("most"), self.fresh("turn")
        longest = E("max", (most, replaced(k.length, {s.var: turn})), INT, 0, 2**40)
        return [
            Assign(most.args[0], const(0)),
            For(turn.args[0], first, last, s.step, [Assign(most.args[0], longest)]),
            Alloc(k.copy, (const(TURNS), most), False),
        ]

    def keeping(self, k: Kept, row: E) -> list:
        kind = self.program.arrays[k.copy].kind
        if k.length is None:
            return [Store(k.copy, (row,), E("var", (k.name,), kind))]
        at = self.fresh("at")
        return [
            For(at.args[0], const(0), k.length, 1, [Store(k.copy, (row, at), E("load", (k.name, at), kind))], False)
        ]

    def taken(self, body: list, kept: dict[str, Kept], row: E) -> list:
        """Statements of a nest, with what was kept of the turn."""

        def one(e: E) -> E:
            if e.op == "var" and e.args[0] in kept:
                return E("load", (kept[e.args[0]].copy, row), e.kind, e.low, e.high)
            args = tuple([one(a) if isinstance(a, E) else a for a in e.args])
            if e.op == "load" and e.args[0] in kept:
                args = (kept[e.args[0]].copy, row, *args[1:])
            elif e.op == "dim" and e.args[0] in kept:
                return kept[e.args[0]].length or e
            return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)

        def each(s: Any) -> Any:
            changed: dict[str, Any] = {}
            for field, value in zip(s._fields, s):
                if type(value) is list:
                    changed[field] = [each(x) for x in value]
                elif isinstance(value, E):
                    changed[field] = one(value)
                elif field == "index":
                    changed[field] = tuple(map(one, value))
            return s._replace(**changed)

        return [each(s) for s in body]


def read(s: Any) -> set[str]:
    """The variables that a statement itself reads."""
    return {n for e in expressions(s) for n in variables(e)}


def touched(body: list, written: bool = False) -> Iterator[tuple[str, tuple]]:
    """(array, index) of the elements that statements read or write, or of those that they write or make."""
    for s in statements(body):
        if type(s) is Alloc:
            yield s.name, ()
        yield from places(s, written)
