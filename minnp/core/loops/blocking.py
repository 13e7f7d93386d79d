"""Loops in blocks: what inner loops read and write stays in registers, and a row is read once for several turns.

Two transformations of a nest whose turns are seen to be independent (Allen and Kennedy, Optimizing Compilers for Modern
Architectures, 2001, chapters 8 and 11); both keep the order in which the numbers of one element are added.

outer loops in vectors   `for j: s = 0; for k: s += A[i, k] * B[k, j]; C[i, j] = s`: a block of j is done together, with
                         a vector for s, and B is read along its rows
unroll and jam           `for k: for j: T[j] += a[k] * B[k, j]`: some k are done together, for which T is read and
                         written once

A matrix that is only read, and across its rows, is copied transposed once more of its numbers were read so than it has.

The turns that are fewer than a block are done as a block that overlaps the one before. The loop as it was does one turn
where variables are read behind it, few turns, and all of it where an index may lie outside.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator

from .ir import (
    BOOL,
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
    Store,
    View,
    While,
    const,
    expressions,
    mapped,
    parts,
    statements,
    variables,
    walk,
)
from .products import by_blas
from .simplified import adds, exposed

I8 = Kind("i8")
TURNS = 4  # of a loop that are jammed
MOST = 80  # statements of a nest
LARGEST = 1 << 24  # numbers of a matrix that is copied transposed
INDICES = {"add", "sub", "mul", "neg", "copy", "min", "max", "abs", "select", "const", "var", "dim", "cast"}
INDICES |= {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}
FOLDS = {n: getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge")} | {"not": operator.not_}
OPERATIONS = INDICES | {"load", "div", "sqrt", "floor", "ceil", "trunc", "rint", "xor", "invert", "isnan"}


class Apart(Exception):
    """A nest that is left as it is."""


class Blocking:
    """Takes the loops of a program in blocks. `lanes`: float64 in a vector; `local`: the arrays in registers."""

    def __init__(self, program: Program, body: list, contiguous: list[bool], lanes: int) -> None:
        self.program, self.lanes = program, lanes
        self.counts = itertools.count()
        inputs = [i.name for i in program.inputs if i.ndim is not None]
        self.scattered = {name for name, dense in zip(inputs, contiguous) if not dense}
        self.views: dict[str, View | Permute | None] = {}
        self.taken: set[str] = set()  # arrays of the nests that run in blocks
        self.local: dict[str, int] = {}
        matrices = {i.name for i in program.inputs if i.ndim == 2 and i.kind.letter in "fiu"}
        for s in statements(body):
            if type(s) in (View, Permute):
                self.views[s.name] = None if s.name in self.views else s
            elif type(s) is Store:
                matrices.discard(program.arrays[s.array].root)
        self.read_only = set() if program.moving else matrices
        self.after = read_behind(program, body)
        self.transposed: dict[str, tuple[str, E, E]] = {}  # matrix -> (copy, numbers read across rows, whether it is)

    def fresh(self, kind: Kind) -> str:
        name = f"block.{next(self.counts)}!"
        self.program.kinds[name] = kind
        return name

    def transpose(self, name: str) -> tuple[str, E, E]:
        """What stands for a matrix that is read across its rows."""
        if name not in self.transposed:
            kind = self.program.arrays[name].kind
            copy = f"block.{next(self.counts)}!"
            self.program.arrays[copy] = Array(copy, kind, 2, copy)
            reads, done = (E("var", (self.fresh(k),), k) for k in (INT, BOOL))
            self.transposed[name] = copy, reads, done
        return self.transposed[name]

    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            if type(s) is For:
                out += self.loop(s)
            elif type(s) is If:
                out.append(If(s.condition, self.body(s.then), self.body(s.orelse)))
            elif type(s) is While:
                out.append(While(s.test, s.condition, self.body(s.body)))
            elif type(s) is Block:
                out.append(Block(s.label, self.body(s.body)))
            else:
                out.append(s)
        return out

    def loop(self, s: For) -> list:
        found = by_blas(self.program, s, self.after[id(s)], self.fresh) if id(s) in self.after else None
        if found is not None:
            ask, left = found
            return [*ask, If(left, self.in_loops(s), [])]
        return self.in_loops(s)

    def in_loops(self, s: For) -> list:
        nested = any(type(x) is For for x in statements(s.body))
        if sum(1 for _ in statements(s.body)) <= (MOST if nested else 4 * MOST):
            for way in (Vectors, Jam) if nested else (Inside,):
                try:
                    nest = way(self, s)
                    made = nest.made()
                except Apart:
                    continue
                if nested:
                    self.taken |= {name for name, *_ in nest.accesses(nest.loop.body)}
                return made
        return [s._replace(body=self.body(s.body))]


def read_behind(program: Program, body: list) -> dict[int, set[str]]:
    """Of every loop, by its id: the variables that are read behind it as it left them. Nothing of programs that call
    functions."""
    found: dict[int, set[str]] = {}
    leaving: dict[str, set[str]] = {}

    def live(body: list, after: set[str]) -> set[str]:
        """The variables that are read as they were before statements, `after` as they are behind them."""
        for s in reversed(body):
            read = {n for e in expressions(s) for n in variables(e)}
            if type(s) is For:
                found[id(s)] = after
                after = after | read | (live(s.body, after | exposed(s.body)) - {s.var})
            elif type(s) is While:
                again = after | read | exposed(s.test) | exposed(s.body)
                after = live(s.test, after | read | live(s.body, again))
            elif type(s) is If:
                after = read | live(s.then, after) | live(s.orelse, after)
            elif type(s) is Block:
                leaving[s.label] = after
                after = live(s.body, after)
            elif type(s) is Leave:
                after = leaving[s.label]
            elif type(s) is Assign:
                after = (after - {s.name}) | read
            else:
                after = after | read
        return after

    if not any(type(s) in (Call, Define) for s in statements(body)):
        live(body, {n for o in program.outputs for n in (o[0], *o[2:])})
    return found


class Nest:
    """A loop with loops in it, in a form in which its accesses are told: no views, blocks, checks, and no variables
    that stand for places."""

    def __init__(self, blocking: Blocking, s: For) -> None:
        self.blocking, self.program, self.s = blocking, blocking.program, s
        self.before: list = []  # what is computed in advance
        self.conditions: dict[str, E] = {}  # which have to hold
        self.checks: list[E] = []
        self.ends: dict[str, tuple[E, E]] = {}  # of every loop: its first and its last number
        self.assigned: dict[str, int] = {}
        for x in statements([s]):
            if type(x) is Assign:
                self.assigned[x.name] = self.assigned.get(x.name, 0) + 1
            elif type(x) is For:
                self.assigned[x.var] = self.assigned.get(x.var, 0) + 2
        self.places: dict[str, E] = {}  # variables that stand for places
        self.perhaps: set[str] = set()  # variables that some turns do not assign
        self.meant: dict[str, E] = {}  # what was computed in advance
        self.known: dict[str, E] = {}  # variables that are numbers in the source here
        self.wraps = False  # whether an index is taken modulo a length
        self.sums: set[str] = set()  # arrays to whose elements all turns add
        (self.loop,) = self.plain([s], set())
        self.lived()
        for c in self.checks:
            self.require(c)

    # -------------------------------------------------------------- in plain form
    def plain(self, body: list, bound: set[str]) -> list:
        """Assignments, stores, branches and loops. `bound`: the variables that have been assigned in this turn."""
        out: list = []
        for s in body:
            kind = type(s)
            if kind is Assign:
                value = self.expression(s.value, bound)
                bound.add(s.name)
                self.known.pop(s.name, None)
                plain = value.args[0] if value.op == "copy" else value
                if plain.op == "const" and plain.kind == value.kind == INT:
                    self.known[s.name] = plain
                whole = self.program.kinds[s.name].letter in "ibf" and self.assigned[s.name] == 1
                fixed = whole and value.kind.code == "f8" and not variables(value) & self.assigned.keys()
                if (fixed or value.kind.code in ("i8", "b1")) and whole and all(x.op in INDICES for x in walk(value)):
                    self.places[s.name] = self.early(value)
                else:
                    out.append(Assign(s.name, value))
            elif kind is Store:
                name, index = self.place(s.array, [self.expression(i, bound) for i in s.index], bound)
                out.append(Store(name, index, self.expression(s.value, bound)))
            elif kind is Check:
                self.checks.append(self.expression(s.condition, bound))
            elif kind is If:
                condition = folded(self.expression(s.condition, bound))
                if condition.op == "const":
                    out += self.plain(s.then if condition.args[0] else s.orelse, bound)
                    continue
                first, second, known = set(bound), set(bound), dict(self.known)
                then = self.plain(s.then, first)
                self.known = dict(known)
                orelse = self.plain(s.orelse, second)
                self.known = known
                self.forget([s])
                self.perhaps |= {x.name for x in statements([s]) if type(x) is Assign} - bound - (first & second)
                out += self.chosen(condition, then, orelse, bound)
                bound |= first & second
            elif kind is Block:
                if any(type(x) is Leave for x in statements(s.body)):
                    raise Apart
                out += self.plain(s.body, bound)
            elif kind is For:
                if isinstance(s.step, E) or s.step not in (1, -1):
                    raise Apart
                if any(x.op in ("wrap", "mod") for e in (s.start, s.stop) for x in walk(e)):  # no place inside
                    raise Apart
                start, stop = (self.invariant(self.expression(e, bound)) for e in (s.start, s.stop))
                self.forget([s])
                last = self.early(E("sub", (stop, const(s.step)), INT))
                self.ends[s.var] = (start, last)[:: s.step]
                inside = self.plain(s.body, bound | {s.var})
                self.forget([s])
                out.append(For(s.var, start, stop, s.step, inside, s.exact))
            elif kind not in (View, Permute):
                raise Apart
        return out

    def chosen(self, condition: E, then: list, orelse: list, bound: set[str]) -> list:
        """A branch as assignments of what it chooses, with stores behind it: what is read lies inside either way."""
        if condition.op == "const":
            return then if condition.args[0] else orelse
        if any(map(parts, (*then, *orelse))):
            raise Apart
        test = self.blocking.fresh(BOOL)
        self.assigned[test] = 1
        pick, there = E("var", (test,), BOOL, 0, 1), set(bound)
        out: list = [Assign(test, condition)]
        stores: list[list] = [[], []]
        for way, body in enumerate((then, orelse)):
            for s in body:
                if type(s) is Store:
                    stores[way].append(s)
                    continue
                if stores[way]:  # which may read what was stored
                    raise Apart
                value = s.value
                if s.name in there:
                    old = E("var", (s.name,), value.kind)
                    value = E("select", (pick, old, value) if way else (pick, value, old), value.kind)
                there.add(s.name)
                out.append(Assign(s.name, value))
        first, second = stores
        if len(first) == len(second) == 1 and repr(first[0][:2]) == repr(second[0][:2]):
            value = E("select", (pick, first[0].value, second[0].value), first[0].value.kind)
            return [*out, first[0]._replace(value=value)]
        return [*out, If(pick, first, second)] if first or second else out

    def expression(self, e: E, bound: set[str]) -> E:
        if e.op == "var":
            name = e.args[0]
            if name in self.assigned and name not in bound:  # what an earlier turn left
                raise Apart
            if name in self.known:
                return self.known[name]
            if name in self.places:
                found = self.places[name]
                return E("copy", (found,), e.kind, e.low, e.high) if found.kind.code == e.kind.code else self.none()
            return e
        if e.op == "load":
            name, index = self.place(e.args[0], [self.expression(i, bound) for i in e.args[1:]], bound)
            return E("load", (name, *index), e.kind)
        if e.op == "dim":
            return self.length(*e.args, bound)
        if e.op == "wrap" or (e.op == "mod" and e.kind.code == "i8"):  # with places inside neither does anything
            index, length = (self.expression(a, bound) for a in e.args)
            self.wraps = True
            self.checks.append(E("inside", (index, length), BOOL))
            return E("copy", (index,), e.kind, e.low, e.high)
        if e.op not in OPERATIONS and e.op != "inside":
            raise Apart
        return e.over(lambda a: self.expression(a, bound))

    def forget(self, body: list) -> None:
        """Variables that these statements may assign are not known any more."""
        for s in statements(body):
            if type(s) is Assign:
                self.known.pop(s.name, None)

    def none(self) -> E:
        raise Apart

    def view(self, name: str) -> View | Permute | None:
        """What a view is of; None for a root."""
        found = self.blocking.views.get(name)
        if name in self.blocking.views and found is None:
            raise Apart
        if found is None and (name in self.program.moving or self.program.arrays[name].root in self.program.moving):
            raise Apart
        return found

    def place(self, name: str, index: list[E], bound: set[str]) -> tuple[str, tuple]:
        """The same element of the root."""
        v = self.view(name)
        if v is None:
            if self.program.arrays[name].root != name:
                raise Apart
            return name, tuple(index)
        if type(v) is Permute:
            return self.place(v.base, [index[v.axes.index(k)] for k in range(len(v.axes))], bound)
        given, out = list(index), []
        for part in v.spec:
            if part[0] == "new":
                given.pop(0)
            elif part[0] == "index":
                out.append(self.expression(part[1], bound))
            else:
                start, step, i = self.expression(part[1], bound), self.expression(part[3], bound), given.pop(0)
                i = i if step.op == "const" and step.args[0] == 1 else E("mul", (i, step), INT)
                out.append(i if start.op == "const" and start.args[0] == 0 else E("add", (start, i), INT, 0, 2**40))
        return self.place(v.base, out, bound)

    def length(self, name: str, axis: int, bound: set[str]) -> E:
        v = self.view(name)
        if v is None:
            return E("dim", (name, axis), INT, 0, 2**40)
        if type(v) is Permute:
            return self.length(v.base, v.axes[axis], bound)
        p = [p for p in v.spec if p[0] != "index"][axis]
        return const(1) if p[0] == "new" else self.expression(p[2], bound)

    # -------------------------------------------------------------- in advance
    def early(self, e: E) -> E:
        """A place; where nothing in it changes in the nest, a variable that holds it."""
        while e.op == "copy" and e.args[0].kind.code == e.kind.code:
            e = e.args[0]
        if e.op in ("const", "var", "dim") or variables(e) & self.assigned.keys():
            return e
        name = self.blocking.fresh(e.kind)
        self.before.append(Assign(name, wrapping(e)))
        self.meant[name] = e
        return E("var", (name,), e.kind, e.low, e.high)

    def invariant(self, e: E) -> E:
        if variables(e) & self.assigned.keys() or not all(x.op in INDICES for x in walk(e)):
            raise Apart
        return self.early(e)

    def require(self, c: E) -> None:
        """What a check asks holds in all turns."""
        if c.op != "inside":
            if variables(c) & self.assigned.keys() or not all(x.op in INDICES for x in walk(c)):
                raise Apart
            self.conditions[repr(c)] = wrapping(c)
            return
        index, length = c.args
        if variables(length) & self.assigned.keys() or not all(x.op in INDICES for a in c.args for x in walk(a)):
            raise Apart
        moving = sorted(variables(index) & self.assigned.keys())
        if not all(v in self.ends and linear(index, v) for v in moving):
            raise Apart
        for corner in itertools.product(*(self.ends[v] for v in moving)):
            at = wrapping(put(index, dict(zip(moving, corner))))
            for op, end in (("ge", const(0, I8)), ("lt", wrapping(length))):
                one = E(op, (at, end), BOOL, 0, 1)
                self.conditions[repr(one)] = one

    def lived(self) -> None:
        """Which variables are read behind the nest. Raises Apart where a turn that is not the last may leave one."""
        self.left = self.assigned.keys() & self.blocking.after.get(id(self.s), self.assigned.keys())
        if self.left & self.perhaps:
            raise Apart

    # -------------------------------------------------------------- which elements
    def accesses(self, body: list) -> Iterator[tuple[str, tuple, bool]]:
        """(array, index, whether it is written)"""
        for s in statements(body):
            if type(s) is Store:
                yield s.array, s.index, True
            for e in expressions(s):
                for x in walk(e):
                    if x.op == "load":
                        yield x.args[0], x.args[1:], False

    def independent(self, body: list, var: str) -> None:
        """Raises Apart unless no two turns of the loop of `var` touch an element that one of them writes, but for
        `sums`."""
        for name in {a for a, _, writes in self.accesses(body) if writes} - self.sums:
            found = [(index, writes) for a, index, writes in self.accesses(body) if a == name]
            stored = [index for index, writes in found if writes]
            far = lambda index, stored=stored: all(self.elsewhere(index, other) for other in stored)
            found = [index for index, writes in found if writes or not far(index)]
            same = [axis for axis, i in enumerate(found[0]) if all(repr(f[axis]) == repr(i) for f in found)]
            if not any(shifted(found[0][axis], var, self.assigned) for axis in same):
                raise Apart

    def turned(self, body: list, var: str, used: dict[str, E]) -> list:
        """The same with matrices that the loop of `var` reads across their rows transposed. `used`: of each the numbers
        that the nest reads so."""

        def one(e: E) -> E:
            if not any(isinstance(a, E) for a in e.args):
                return e
            args = tuple([one(a) if isinstance(a, E) else a for a in e.args])
            e = E(e.op, args, e.kind, e.low, e.high)
            if e.op != "load" or e.args[0] not in self.blocking.read_only or var in variables(e.args[2]):
                return e
            if not shifted(e.args[1], var, self.assigned) or any(x.op == "load" for a in e.args[1:] for x in walk(a)):
                return e
            reads: E = const(1)
            for v in sorted((variables(e.args[1]) | variables(e.args[2])) & self.ends.keys()):
                start, last = self.ends[v]
                turns = E("add", (E("sub", (last, start), INT), const(1)), INT)
                reads = E("mul", (reads, E("max", (turns, const(0)), INT)), INT)
            used[e.args[0]] = reads
            return E("load", (self.blocking.transpose(e.args[0])[0], e.args[2], e.args[1]), e.kind)

        return mapped(body, one)

    def copies(self, used: dict[str, E]) -> list:
        """Copies what has been read across rows often enough, and requires that."""
        out: list = []
        for name, more in used.items():
            copy, reads, done = self.blocking.transpose(name)
            rows, columns = (E("dim", (name, k), INT, 0, 2**40) for k in range(2))
            i, j = (E("var", (self.blocking.fresh(INT),), INT, 0, 2**40) for _ in range(2))
            element = Store(copy, (i, j), E("load", (name, j, i), self.program.arrays[name].kind))
            fill = For(i.args[0], const(0), columns, 1, [For(j.args[0], const(0), rows, 1, [element])])
            copied = [fill, Assign(done.args[0], const(True))]
            make = [Alloc(copy, (columns, rows), False, False), If(E("held", (copy,), BOOL, 0, 1), copied, [])]
            often = E("gt", (reads, E("mul", (rows, columns), INT)), BOOL, 0, 1)
            small = E("lt", (reads, const(LARGEST)), BOOL, 0, 1)
            count = Assign(reads.args[0], E("add", (reads, more), INT))
            both = E("and", (often, small), BOOL, 0, 1)
            out.append(If(E("not", (done,), BOOL, 0, 1), [count, If(both, make, [])], []))
            self.conditions[repr(done)] = done
        return out

    def elsewhere(self, index: tuple, other: tuple) -> bool:
        """Whether two indices are of elements that are never the same: so far apart on an axis."""
        for a, b in zip(map(self.offset, index), map(self.offset, other)):
            if a[0] == b[0] and a[1] != b[1] and not a[2] & self.assigned.keys():
                return True
        return False

    def offset(self, e: E) -> tuple[str, int, set[str]]:
        """A place as (what changes, a number more, the variables in it)."""
        if e.op == "copy":
            return self.offset(e.args[0])
        if e.op == "var" and e.args[0] in self.meant:
            return self.offset(self.meant[e.args[0]])
        if e.op in ("add", "sub") and e.args[1].op == "const":
            base, more, names = self.offset(e.args[0])
            return base, more + (1 if e.op == "add" else -1) * e.args[1].args[0], names
        return ("", e.args[0], set()) if e.op == "const" else (repr(e), 0, variables(e))

    def renamed(self, body: list, names: dict[str, E]) -> list:
        """A copy whose variables are others."""
        out: list = []
        for s in body:
            if type(s) is Assign:
                value = put(s.value, names)
                kind = self.program.kinds[s.name]
                name = self.blocking.fresh(kind)
                names[s.name] = E("var", (name,), kind)
                out.append(Assign(name, value))
            elif type(s) is Store:
                out.append(Store(s.array, tuple([put(i, names) for i in s.index]), put(s.value, names)))
            elif type(s) is If:
                raise Apart
            else:
                raise TypeError(s)
        return out

    def in_blocks(self, size: int, first: str, body: Callable[[E], list]) -> list:
        """Blocks of turns from `first` on, and `first` behind them. One turn is left for what is read afterwards."""
        s = self.loop
        here, at = E("var", (first,), INT), self.blocking.fresh(INT)
        on, back = ("add", "sub")[:: s.step]
        end = E(back, (s.stop, const(1)), INT) if self.left else s.stop
        span = E("sub", (end, here)[:: s.step], INT)
        count = E("floordiv", (span, const(size)), INT)
        last = E(back, (end, const(size - 1)), INT)
        loop = For(at, here, last, size * s.step, body(E("var", (at,), INT)))
        after = Assign(first, E(on, (here, E("mul", (count, const(size)), INT)), INT))
        return [If(E("ge", (span, const(size)), BOOL, 0, 1), [loop, after], [])]

    def guarded(self, first: str, blocks: list, used: dict[str, E]) -> list:
        copies = self.copies(used)
        fine: E = const(True)
        for c in self.conditions.values():
            fine = c if fine.op == "const" else E("and", (fine, c), BOOL, 0, 1)
        here = E("var", (first,), INT)
        rest = self.s._replace(start=here, body=self.blocking.body(self.s.body))
        span = E("sub", (self.loop.stop, here)[:: self.loop.step], INT)
        some = E("ge", (span, const(self.blocking.lanes)), BOOL, 0, 1)
        return [*self.before, *copies, Assign(first, self.loop.start), If(some, [If(fine, blocks, [])], []), rest]


class Vectors(Nest):
    """A block of turns of an outer loop together, in vectors."""

    def made(self) -> list:
        s = self.loop
        self.sums = self.summed(s.body)
        self.independent(s.body, s.var)
        used: dict[str, E] = {}
        s = self.loop = s._replace(body=self.turned(s.body, s.var, used))
        for name, index, _ in self.accesses(s.body):
            own = [axis for axis, i in enumerate(index) if s.var in variables(i)]
            last = own == [len(index) - 1] and shifted(index[-1], s.var, {s.var: 1})
            if own and (not last or name in self.blocking.scattered):
                raise Apart
            touched = self.program.arrays[name].kind.letter
            if touched not in "fiub" or any(x.op == "load" for i in index for x in walk(i)):
                raise Apart
        body = self.elements(s.body)
        self.segments: dict[str, set[int]] = {}
        self.number = itertools.count()
        self.find_segments(body)
        self.apart = {name for name, found in self.segments.items() if len(found) > 1}
        if any(self.program.kinds[name].letter not in "fiub" for name in self.segments):
            raise Apart
        lanes = self.blocking.lanes
        wide = lanes * (4 if len(self.apart) <= 4 else 2 if len(self.apart) <= 8 else 1)
        first = self.blocking.fresh(INT)
        blocks: list = []
        for size in dict.fromkeys((wide, lanes)):
            blocks += self.in_blocks(size, first, lambda at, size=size: self.block(body, self.least(at, size), size))
            if size == wide and (self.program.mark != "~" or not any(map(self.traps, statements(body)))):
                blocks += self.last_block(body, first, size)
        return self.guarded(first, blocks, used)

    def traps(self, s: object) -> bool:
        """Whether a statement done again, with what it left, may meet what NumPy would warn of."""
        return any(x.op in ("div", "sqrt") and x.kind.letter == "f" for e in expressions(s) for x in walk(e))

    def last_block(self, body: list, first: str, size: int) -> list:
        """The turns that are fewer than a block, as one with some before them whose elements stay as they are."""
        s = self.loop
        here, count = E("var", (first,), INT), E("var", (self.blocking.fresh(INT),), INT, 0, size)
        on, back = ("add", "sub")[:: s.step]
        end = E(back, (s.stop, const(1)), INT) if self.left else s.stop
        low = E("sub", (end, const(size)), INT) if s.step == 1 else E("add", (end, const(1)), INT)
        done = E("sub", (const(size), count), INT)
        inside = lambda k: E("ge", (k, done), BOOL, 0, 1) if s.step == 1 else E("lt", (k, count), BOOL, 0, 1)
        some = E("gt", (count, const(0)), BOOL, 0, 1)
        room = E("ge", (E("sub", (end, s.start)[:: s.step], INT), const(size)), BOOL, 0, 1)
        rest = Assign(count.args[0], E("sub", (end, here)[:: s.step], INT))
        run = [*self.block(body, low, size, inside), Assign(first, E(on, (here, count), INT))]
        return [rest, If(E("and", (some, room), BOOL, 0, 1), run, [])]

    def summed(self, body: list) -> set[str]:
        """The arrays to whose elements all turns of the loop add, and that are not read otherwise, on a derivative's
        way back, whose sums may be rounded in any order."""
        if self.program.mark == "~" or self.s.exact:
            return set()
        found: set[str] = set()
        same = self.ends.keys() - {self.loop.var}
        for name in {a for a, _, writes in self.accesses(body) if writes}:
            stores = [x for x in statements(body) if type(x) is Store and x.array == name]
            reads = sum(a == name and not writes for a, _, writes in self.accesses(body))
            inside = {v for x in stores for i in x.index for v in variables(i)} & self.assigned.keys()
            plain = not any(e.op == "load" for x in stores for i in x.index for e in walk(i))
            if reads == len(stores) and plain and inside <= same and all(map(adds, stores)):
                found.add(name)
        return found

    def least(self, at: E, size: int) -> E:
        """The lowest of a block of turns, of which `at` is the first."""
        return at if self.loop.step == 1 else E("sub", (at, const(size - 1)), INT)

    def elements(self, body: list) -> list:
        """The body with an element that is written in an inner loop as a variable, which is stored behind it."""
        found: dict[str, list] = {}
        for name, index, writes in self.accesses(body):
            found.setdefault(name, []).append((index, writes))
        before: list = []
        after: list = []
        for name, all_ in found.items():
            index = all_[0][0]
            deep = name not in self.sums and any(
                w for s in body if parts(s) for a, _, w in self.accesses([s]) if a == name
            )
            if not deep or any(repr(i) != repr(index) for i, _ in all_):
                continue
            if any(variables(i) & (self.assigned.keys() - {self.loop.var}) for i in index):
                continue
            kind = self.program.arrays[name].kind
            kept = self.blocking.fresh(kind)
            self.assigned[kept] = 1
            e = E("var", (kept,), kind)
            before.append(Assign(kept, E("load", (name, *index), kind)))
            body = in_place(body, name, kept, e)
            after.append(Store(name, index, e))
        return [*before, *body, *after]

    def find_segments(self, body: list) -> None:
        """In which parts between loops variables are met."""
        here = next(self.number)
        for s in body:
            if type(s) is For:
                self.find_segments(s.body)
                here = next(self.number)
                continue
            for x in statements([s]):
                names = {n for e in expressions(x) for n in variables(e)} & self.assigned.keys()
                names |= {x.name} if type(x) is Assign else set()
                for name in names - self.ends.keys():
                    self.segments.setdefault(name, set()).add(here)

    def block(self, body: list, at: E, size: int, inside: Callable[[E], E] | None = None) -> list:
        """`size` turns from `at` on, or those of these lanes that are `inside`."""
        names: dict[str, E] = {}
        arrays: dict[str, str] = {}
        for name in self.segments:
            kind = self.program.kinds[name]
            fresh = self.blocking.fresh(kind)
            if name in self.apart:
                self.program.arrays[fresh] = Array(fresh, kind, 1, fresh)
                self.blocking.local[fresh] = size
                arrays[name] = fresh
            else:
                names[name] = E("var", (fresh,), kind)
        return self.together(body, at, size, inside, names, arrays)

    def together(
        self, body: list, at: E, size: int, inside: Callable[[E], E] | None, names: dict, arrays: dict
    ) -> list:
        out: list = []
        for loop, found in itertools.groupby(body, lambda s: type(s) is For):
            if loop:
                for s in found:
                    var = self.blocking.fresh(INT)
                    inner = names | {s.var: E("var", (var,), INT)}
                    turns = self.together(s.body, at, size, inside, inner, arrays)
                    out.append(For(var, s.start, s.stop, s.step, turns, s.exact))
                continue
            lane = self.blocking.fresh(INT)
            k = E("var", (lane,), INT, 0, size)
            here = names | {self.loop.var: E("add", (at, k), INT)}
            here |= {n: E("load", (a, k), self.program.kinds[n]) for n, a in arrays.items()}
            turn: list = []
            after: list = []
            mask = inside and inside(k)
            for s in found:
                if type(s) is Store and s.array in self.sums:  # of the block, and then once
                    old, more = s.value.args
                    if mask is not None:
                        more = E("select", (mask, more, const(0.0, more.kind)), more.kind)
                    name = self.blocking.fresh(more.kind)
                    here[name] = total = E("var", (name,), more.kind)
                    out.append(Assign(name, const(0.0, more.kind)))
                    turn.append(Assign(name, E("add", (total, more), more.kind)))
                    after.append(Store(s.array, s.index, E(s.value.op, (old, total), old.kind)))
                else:
                    turn.append(s)
            made = list(lanes_of(turn, here, arrays, k))
            made = made if mask is None else self.masked(made, mask)
            out.append(For(lane, const(0), const(size), 1, made, not after, size))
            out += lanes_of(after, names, {}, k)
        return out

    def masked(self, body: list, mask: E) -> list:
        """Statements of a lane that leave elements as they are unless the mask holds."""
        out: list = []
        for s in body:
            if type(s) is If:
                s = s._replace(then=self.masked(s.then, mask), orelse=self.masked(s.orelse, mask))
            elif type(s) is Store and s.array not in self.blocking.local:
                kind = s.value.kind
                s = s._replace(value=E("select", (mask, s.value, E("load", (s.array, *s.index), kind)), kind))
            out.append(s)
        return out


def lanes_of(body: list, names: dict[str, E], arrays: dict[str, str], k: E) -> Iterator:
    for s in body:
        if type(s) is Assign:
            value = put(s.value, names)
            array = arrays.get(s.name)
            yield Assign(names[s.name].args[0], value) if array is None else Store(array, (k,), value)
        elif type(s) is Store:
            yield Store(s.array, tuple([put(i, names) for i in s.index]), put(s.value, names))
        else:
            then, orelse = (list(lanes_of(b, names, arrays, k)) for b in (s.then, s.orelse))
            yield If(put(s.condition, names), then, orelse)


class Jam(Nest):
    """Some turns of a loop together, in the loop that it holds."""

    def made(self) -> list:
        s = self.loop
        *head, inner = s.body
        if type(inner) is not For or any(map(parts, (*head, *inner.body))) or any(type(x) is Store for x in head):
            raise Apart
        stored = {x.array for x in inner.body if type(x) is Store}
        if not stored or len(stored) > 2:
            raise Apart
        self.independent(inner.body, inner.var)
        inner = upwards(inner)
        for name in stored:
            found = [index for a, index, _ in self.accesses(s.body) if a == name]
            if any(repr(i) != repr(found[0]) for i in found):
                raise Apart
            if any(variables(i) & (self.assigned.keys() - {inner.var}) for i in found[0]):
                raise Apart
            if any(x.op == "load" for i in found[0] for x in walk(i)):
                raise Apart
        if any(x.op == "load" and x.args[0] in stored for t in head for e in expressions(t) for x in walk(e)):
            raise Apart
        used: dict[str, E] = {}
        if all(shifted(x.index[-1], inner.var, self.assigned) for x in inner.body if type(x) is Store):
            inner = inner._replace(body=self.turned(inner.body, inner.var, used))
        first = self.blocking.fresh(INT)
        columns = E("sub", (inner.stop, inner.start), INT)  # of a few nothing is gained
        self.conditions["columns"] = E("ge", (columns, const(self.blocking.lanes)), BOOL, 0, 1)
        blocks = self.in_blocks(TURNS, first, lambda at: self.turns(head, inner, at, stored))
        return self.guarded(first, blocks, used)

    def turns(self, head: list, inner: For, at: E, stored: set[str]) -> list:
        var = self.blocking.fresh(INT)
        before: list = []
        body: list = []
        for k in range(TURNS):
            turn = E("add" if self.loop.step == 1 else "sub", (at, const(k)), INT)
            names = {self.loop.var: turn, inner.var: E("var", (var,), INT)}
            before += self.renamed(head, names)
            body += self.renamed(inner.body, names)
        for name in sorted(stored):
            (index, *_) = [x.index for x in body if type(x) is Store and x.array == name]
            kind = self.program.arrays[name].kind
            kept = self.blocking.fresh(kind)
            e = E("var", (kept,), kind)
            body = [
                Assign(kept, E("load", (name, *index), kind)),
                *in_place(body, name, kept, e),
                Store(name, index, e),
            ]
        return [*before, For(var, inner.start, inner.stop, 1, body, inner.exact, -1)]


class Inside(Nest):
    """An innermost loop whose indices wrap: the turns in the middle, where they do not."""

    def __init__(self, blocking: Blocking, s: For) -> None:
        self.low: dict[str, E] = {}
        self.high: dict[str, E] = {}
        super().__init__(blocking, s)

    def require(self, c: E) -> None:
        var = self.s.var
        if c.op != "inside" or var not in variables(c.args[0]):
            return super().require(c)
        index, length = c.args
        if not shifted(index, var, self.assigned) or variables(length) & self.assigned.keys():
            raise Apart
        if not all(x.op in INDICES for a in c.args for x in walk(a)):
            raise Apart
        first = wrapping(put(index, {var: const(0)}))
        low, high = E("sub", (const(0, I8), first), I8), E("sub", (wrapping(length), first), I8)
        self.low[repr(low)], self.high[repr(high)] = low, high

    def made(self) -> list:
        s = self.loop
        if not self.wraps or not self.low or s.step != 1:
            raise Apart
        fresh = lambda: E("var", (self.blocking.fresh(INT),), INT)
        begin, end, low, high = (fresh() for _ in range(4))
        phase, at = fresh(), self.blocking.fresh(INT)
        least: E = s.start
        most: E = E("sub", (s.stop, const(1)), INT)
        for e in self.low.values():
            least = E("max", (least, e), INT)
        for e in self.high.values():
            most = E("min", (most, e), INT)
        fine: E = E("lt", (low, high), BOOL, 0, 1)
        for c in self.conditions.values():
            fine = E("and", (fine, c), BOOL, 0, 1)
        names = {s.var: E("var", (at,), INT)}
        for x in statements(s.body):
            if type(x) is Assign and x.name not in names:
                kind = self.program.kinds[x.name]
                names[x.name] = E("var", (self.blocking.fresh(kind),), kind)
        try:
            self.independent(s.body, s.var)
            lanes = -1
        except Apart:
            lanes = 0
        middle = For(at, low, high, 1, list(lanes_of(s.body, names, {}, low)), s.exact, lanes)
        to = lambda v, e: Assign(v.args[0], e)
        between = If(
            E("lt", (end, s.stop), BOOL, 0, 1), [middle, to(begin, high), to(end, s.stop)], [to(begin, s.stop)]
        )
        second = If(E("eq", (phase, const(1)), BOOL, 0, 1), [between], [])
        around = [second, self.s._replace(start=begin, stop=end)]
        return [
            *self.before,
            to(low, least),
            to(high, most),
            to(begin, s.start),
            to(end, E("select", (fine, low, s.stop), INT)),
            For(phase.args[0], const(0), const(2), 1, around),
        ]


# ------------------------------------------------------------------ expressions
def folded(e: E) -> E:
    """A truth value, where it is one of numbers in the source."""
    if e.op not in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "copy"):
        return e
    args = [folded(a) for a in e.args]
    if e.op in ("and", "or") and e.kind == BOOL:
        for a, other in (args, args[::-1]):
            if a.op == "const":
                return other if bool(a.args[0]) == (e.op == "and") else a
    if any(a.op != "const" or a.kind not in (INT, BOOL) for a in args) or e.kind != BOOL:
        return e
    return args[0] if e.op == "copy" else const(bool(FOLDS[e.op](*(a.args[0] for a in args))))


def upwards(s: For) -> For:
    """A loop whose turns do not depend on each other, from its lowest number on."""
    if s.step == 1:
        return s
    return s._replace(start=E("add", (s.stop, const(1)), INT), stop=E("add", (s.start, const(1)), INT), step=1)


def put(e: E, names: dict[str, E]) -> E:
    """An expression with others in the place of variables."""
    if e.op == "var":
        found = names.get(e.args[0])
        if found is None:
            return e
        return found if found.kind == e.kind else E("copy", (found,), e.kind, e.low, e.high)
    if not any(isinstance(a, E) for a in e.args):
        return e
    return e.over(lambda a: put(a, names))


def in_place(body: list, array: str, name: str, e: E) -> list:
    """The same with an array's one element as a variable."""

    def one(x: E) -> E:
        if x.op == "load" and x.args[0] == array:
            return e
        if not any(isinstance(a, E) for a in x.args):
            return x
        return x.over(one)

    return mapped(body, one, lambda s: Assign(name, s.value) if type(s) is Store and s.array == array else s)


def wrapping(e: E) -> E:
    """The same of integers that wrap, which may be computed where no check has let it through."""
    if e.op == "dim":
        return E("dim", e.args, I8)
    args = tuple([wrapping(a) if isinstance(a, E) else a for a in e.args])
    return E(e.op, args, I8 if e.kind == INT else e.kind, e.low, e.high)


def linear(e: E, var: str) -> bool:
    if var not in variables(e) or e.op == "var":
        return True
    if e.op in ("add", "sub", "neg", "copy"):
        return all(linear(a, var) for a in e.args)
    if e.op == "mul":
        return sum(var in variables(a) for a in e.args) == 1 and all(linear(a, var) for a in e.args)
    return False


def shifted(e: E, var: str, assigned: dict) -> bool:
    """Whether a place is the number of the turn, or that and something that does not change."""
    if e.op == "copy":
        return shifted(e.args[0], var, assigned)
    if e.op == "var":
        return e.args[0] == var
    if e.op in ("add", "sub"):
        a, b = e.args
        if not variables(b) & assigned.keys():
            return shifted(a, var, assigned)
        return e.op == "add" and not variables(a) & assigned.keys() and shifted(b, var, assigned)
    return False
