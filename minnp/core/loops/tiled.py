"""Loops that go over a whole matrix in every turn do so for several turns at a time, row by row.

`for i: g = f(i); for k: for j: W[k, j] += x[i, k] * g[j]` reads and writes all of W in every turn, as the gradient of
a matrix that rows are multiplied with. Where nothing else in the loop touches W, and the turns of `k` keep to places of
their own, it becomes

    for tile: for i in tile: g = f(i); kept[i] = g
              for k: for i in tile: for j: W[k, j] += x[i, k] * kept[i, j]

in which a row stays in the cache (strip-mining, distribution and interchange: Allen and Kennedy, Optimizing Compilers
for Modern Architectures, 2001, chapters 5 and 9). Each element gets what it got, in the order in which it did.

Where that adds a product of matrices, BLAS is asked for it (products.py), also where `j` has other ends in each turn,
as over a triangle: `kept` is zero outside of them, then. So are the gradients of rows that are multiplied with a
matrix one by one, where each turn has elements of W of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .ir import (
    BOOL,
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
from .products import bounds, plain, slope, strong_product
from .products import nest as in_loops
from .simplified import bound, exposed, moves, replaced, summed

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
        other statement of the loop, or is the last one to meet it in its turn, its own turns share nothing, and it
        leaves nothing."""
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
        if max(self.program.arrays[a].ndim for a in written) < 2 or not self.last(s, nest, self.shared(s, nest)):
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

    def shared(self, s: For, nest: For) -> set[str]:
        """The arrays that a nest in a loop writes, and the loop's other statements meet."""
        others = [x for x in s.body if x is not nest]
        return {x.array for x in statements([nest]) if type(x) is Store} & {a for a, _ in touched(others)}

    def last(self, s: For, nest: For, arrays: set[str]) -> bool:
        """Whether each turn of a loop has elements of its own of these arrays, and a nest in it is the last to meet
        them."""
        at = next(k for k, x in enumerate(s.body) if x is nest)
        for name in arrays:
            places = [index for a, index in touched(s.body) if a == name]
            own = lambda axis, places=places: all(len(p) > axis and repr(p[axis]) == s.var for p in places)
            if not any(map(own, range(self.program.arrays[name].ndim))) or s.var in bound(s.body):
                return False
            if any(a == name for a, _ in touched(s.body[at + 1 :])):
                return False
        return True

    def in_tiles(self, s: For, nests: list[For]) -> list:
        tile, first, last = self.new("tile"), self.fresh("first"), self.fresh("last")
        self.program.kinds[tile] = INT
        on, nearer = ("add", "min") if s.step == 1 else ("sub", "max")
        here, turn = E("var", (tile,), INT, *sorted((s.start.low, s.stop.high))), E("var", (s.var,), INT)
        lowest = first if s.step == 1 else E("add", (last, const(1)), INT, 0, 2**40)
        row = E("sub", (turn, lowest), INT, 0, TURNS)  # that of matrices which BLAS takes
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
            all_ = x._replace(body=[each])
            made = self.summed(s, all_, (first, last), lowest)
            if made == [all_] and self.shared(s, x):  # a turn's own elements are in the cache as it is
                raise Apart
            after += made
        run = s._replace(start=first, stop=last, body=inner)
        return [For(tile, s.start, s.stop, TURNS * s.step, [*before, run, *after], s.exact)]

    def summed(self, s: For, nest: For, ends: tuple[E, E], lowest: E) -> list:
        """A nest over a tile's turns; where it adds products of matrices, in the form in which BLAS is asked for it."""
        found = strong_product(nest)
        if found is not None:
            sum_ = self.new("sum")
            self.program.kinds[sum_] = found[0].to.kind
            return [in_loops(found[0], sum_, True, found[1])]
        try:
            return Ragged(self, s, nest, ends, lowest).made()
        except Apart:
            return [nest]

    def kept(self, s: For, nest: For) -> list[Kept]:
        """What a nest reads that the loop's other statements change."""
        names = (exposed([nest]) & bound(s.body)) - {s.var}
        out = [Kept(name, self.new("kept"), None) for name in sorted(names)]
        changed = {a for a, _ in touched([x for x in s.body if x is not nest], True)}
        own = {x.array for x in statements([nest]) if type(x) is Store}
        for name in sorted({a for a, _ in touched([nest])} & changed - own):
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


class Ragged:
    """A nest over a tile's turns whose inner loop has other ends in each turn, as in a triangle: products of a matrix
    with a row for each turn, which is zero outside of these ends. Of what is multiplied with these zeros nothing comes,
    whatever it is (products.zero_where_zero)."""

    def __init__(self, tiling: Tiling, s: For, nest: For, ends: tuple[E, E], lowest: E) -> None:
        self.tiling, self.s, self.nest, self.ends, self.lowest = tiling, s, nest, ends, lowest
        (self.each,) = nest.body
        if len(self.each.body) != 1 or type(self.each.body[0]) is not For:
            raise Apart
        (self.inner,) = self.each.body
        body = self.inner.body
        if self.inner.step not in (1, -1) or self.inner.exact or any(type(x) not in (Assign, Store) for x in body):
            raise Apart
        if exposed(body) & bound(body) or not all(summed(body, x.array) for x in body if type(x) is Store):
            raise Apart
        self.turns, self.fine = {s.var, nest.var, self.inner.var}, const(True)
        self.sums: list[Store] = []
        known: dict[str, E] = {}
        for x in body:
            if type(x) is Store:
                index = tuple([self.even(replaced(i, known, True)) for i in x.index])
                self.sums.append(Store(x.array, index, self.even(replaced(x.value, known, True))))
            elif x.name in known:
                raise Apart
            else:
                known[x.name] = replaced(x.value, known, True)

    def made(self) -> list:
        s, new = self.s, self.tiling.fresh
        number = lambda op, *args: E(op, args, INT, 0, 2**40)
        start, count = bounds(self.inner)
        places = [i for x in self.sums for e in expressions(x) for y in walk(e) if y.op == "load" for i in y.args[1:]]
        self.ahead = next(filter(None, map(self.shift, places)), const(0))
        low = number("add", self.ahead, start)
        factors = {repr(g): g for x in self.sums if (g := self.factor(x)) is not None}
        self.check(low, count, self.fine, *factors.values())
        if len(factors) != 1:
            raise Apart
        (self.row,) = factors.values()
        first, last, least, turn, at = (new(what) for what in ("first", "last", "least", "turn", "at"))
        self.table, self.first = self.tiling.new("table"), first
        kind = self.row.kind
        self.tiling.program.arrays[self.table] = Array(self.table, kind, 2, self.table)
        here = lambda e: replaced(e, {s.var: turn}, True)
        end = number("add", low, count)
        nearer = [("min", first, low), ("max", last, end), ("min", least, count)]
        begin = [Assign(x.args[0], replaced(e, {s.var: self.ends[0]}, True)) for _, x, e in nearer]
        move = [Assign(x.args[0], number(op, x, here(e))) for op, x, e in nearer]
        put = Store(self.table, self.place(turn, at), here(self.moved(self.row, at)))
        fill = For(turn.args[0], *self.ends, s.step, [For(at.args[0], here(low), here(end), 1, [put], False)], False)
        room = Alloc(self.table, (const(TURNS), number("sub", last, first)), True)
        products = [self.product(x, first, last) for x in self.sums]
        fine = E("and", (E("ge", (least, const(TURNS)), BOOL, 0, 1), self.fine), BOOL, 0, 1)
        return [
            *begin,
            For(turn.args[0], *self.ends, s.step, move, False),
            If(fine, [room, fill, *products], [self.nest]),
        ]

    def check(self, *fixed: E) -> None:
        """Raises Apart unless expressions are the same whenever a nest runs, but for the turn."""
        changed = (bound(self.s.body) | self.turns) - {self.s.var, self.inner.var}
        made = {x.name for x in statements(self.s.body) if type(x) is Alloc}
        stored = {x.array for x in self.sums}
        for x in (y for e in fixed for y in walk(e)):
            bad = {"var": changed, "load": made | stored, "dim": made}.get(x.op, ())
            if x.args and x.args[0] in bad:
                raise Apart

    def factor(self, x: Store) -> E | None:
        """What a slope is multiplied with, if it has no part in the outer loop."""
        if slope(x.value.args[1]) is None:
            raise Apart
        g = plain(plain(x.value.args[1].args[2]).args[0])
        return None if self.nest.var in variables(g) else g

    def place(self, turn: E, at: E) -> tuple[E, E]:
        """Where the table has what belongs to a turn."""
        return E("sub", (turn, self.lowest), INT, 0, TURNS), E("sub", (at, self.first), INT, 0, 2**40)

    def around(self, body: list) -> For:
        return self.nest._replace(body=[self.each._replace(body=body)])

    def product(self, x: Store, start: E, stop: E) -> For:
        """The nest of a sum over all that a turn has."""
        at = self.tiling.fresh("at")
        turn = E("var", (self.s.var,), INT)
        row = {repr(self.moved(self.row, at)): E("load", (self.table, *self.place(turn, at)), self.row.kind)}
        value = exchanged(self.moved(x.value, at), row)
        x = Store(x.array, tuple([self.moved(i, at) for i in x.index]), value)
        loop = For(at.args[0], start, stop, 1, [x], False)
        found = strong_product(self.around([loop]))
        if found is None:
            raise Apart
        if found[0].loops[1].var != at.args[0]:
            return self.around([loop])
        old, more = x.value.args
        sum_ = self.tiling.new("sum")
        self.tiling.program.kinds[sum_] = more.kind
        total = E("var", (sum_,), more.kind)
        loop = loop._replace(body=[Assign(sum_, E("add", (total, more), more.kind))])
        all_ = x._replace(value=E("add", (old, total), old.kind))
        return self.around([Assign(sum_, const(0.0, more.kind)), loop, all_])

    def even(self, e: E) -> E:
        """An expression in which the lesser of a turn's place and a length is that place, where that is `fine`."""
        args = tuple([self.even(a) if isinstance(a, E) else a for a in e.args])
        if e.op == "min" and len(args) == 2:
            for x, length in (args, args[::-1]):
                if variables(x) & self.turns == {self.s.var} and not variables(length) & self.turns:
                    for end in (self.ends[0], E("sub", (self.ends[1], const(self.s.step)), INT, 0, 2**40)):
                        less = E("le", (replaced(x, {self.s.var: end}, True), length), BOOL, 0, 1)
                        self.fine = E("and", (self.fine, less), BOOL, 0, 1)
                    return x
        return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)

    def shift(self, e: E) -> E | None:
        """By how much a place is ahead of the inner loop, if that changes from turn to turn."""
        if e.op != "add" or not any(x.op == "var" and x.args[0] == self.inner.var for x in e.args):
            return None
        (other,) = [x for x in e.args if x.op != "var" or x.args[0] != self.inner.var][:1] or [const(0)]
        return other if variables(other) & self.turns == {self.s.var} else None

    def moved(self, e: E, at: E) -> E:
        """An expression by the place that the inner loop is ahead of."""
        if e.op == "add" and e.kind.code == INT.code and {*map(repr, e.args)} == {self.inner.var, repr(self.ahead)}:
            return at
        if e.op == "var" and e.args[0] == self.inner.var:
            return at if self.ahead.op == "const" else E("sub", (at, self.ahead), INT, 0, 2**40)
        return e.over(lambda a: self.moved(a, at))


def exchanged(e: E, others: dict[str, E]) -> E:
    """An expression with others in the place of those that read like these."""
    found = others.get(repr(e))
    if found is not None:
        return found
    return e.over(lambda a: exchanged(a, others))


def read(s: Any) -> set[str]:
    """The variables that a statement itself reads."""
    return {n for e in expressions(s) for n in variables(e)}


def touched(body: list, written: bool = False) -> Iterator[tuple[str, tuple]]:
    """(array, index) of the elements that statements read or write, or of those that they write or make."""
    for s in statements(body):
        if type(s) is Alloc:
            yield s.name, ()
        yield from places(s, written)
