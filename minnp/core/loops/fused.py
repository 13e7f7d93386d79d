"""Nests of loops that follow one another and go over the same turns are one nest.

`t = new(n); for k: t[k] = f(x[k]); for k: y[k] = t[k] * x[k]` becomes `for k: t = f(x[k]); y[k] = t * x[k]`, where no
turn meets what another one writes: what an expression of whole arrays makes on its way stays in registers (loop fusion
and array contraction: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapters 6 and 8). Each
element is computed as before, from the same numbers.

A mask that several nests read, as `m = x < a` is read by `m.any()` and `x[m]`, is no array either: comparisons of what
does not change are made again where it is read, so that a way back needs no tape of it.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, NamedTuple

from .blocking import INDICES
from .interchanged import Apart, equate, met_times, root, temporary, zero
from .ir import (
    BOOL,
    INT,
    Alloc,
    Assign,
    Block,
    Check,
    E,
    For,
    If,
    Leave,
    Program,
    Store,
    While,
    expressions,
    mapped,
    places,
    read_times,
    statements,
    variables,
    walk,
)
from .simplified import bound, exposed, loads, replaced

MOST = 60  # statements of a nest
CHEAP = 8  # operations of an element of a mask


class Nest(NamedTuple):
    """Loops around one another, of which each has the next one alone: their variables, lengths, and what they do."""

    vars: list[str]
    counts: list[str]
    body: list


def fused(program: Program, body: list, shown: set[str]) -> list:
    """A body without views, whose checks are known to hold, with such loops as one.

    shown     the variables whose values are asked for behind it
    """
    return Fusion(program, body, shown).body(body, {})


class Fusion:
    def __init__(self, program: Program, body: list, shown: set[str]) -> None:
        self.program, self.shown = program, shown
        self.met, self.reads = met_times(body), read_times(body)
        self.bound_times: dict[str, int] = {}
        self.definitions: dict[str, E] = {}
        self.made: dict[str, int] = {}
        self.stored: set[str] = set()
        for s in statements(body):
            if type(s) in (Assign, For):
                name = s.name if type(s) is Assign else s.var
                self.bound_times[name] = self.bound_times.get(name, 0) + 1
            if type(s) is Assign:
                self.definitions[s.name] = s.value
            elif type(s) is Alloc:
                self.made[s.name] = self.made.get(s.name, 0) + 1
            elif type(s) is Store:
                self.stored.add(s.array)

    def body(self, body: list, same: dict[str, str]) -> list:
        """`same`: lengths that are equal by checks: each, and one of those it is equal to."""
        out: list = []
        last = -1  # where the loop is that the next one may join
        leaves = lambda s: any(type(x) is Leave for x in statements([s]))
        for k, s in enumerate(body):
            if not k or leaves(body[k - 1]):  # all that follows until one may leave is met
                for later in itertools.takewhile(lambda s: not leaves(s), body[k:]):
                    equate(same, later, self.invariant)
            if type(s) is For and self.idle(s):
                self.met.subtract(met_times([s]))
                continue
            if type(s) is For:
                s = s._replace(body=self.body(s.body, dict(same)))
                if last >= 0:
                    try:
                        s = self.together(out[last], s, out[last + 1 :], same)
                        del out[last]
                    except Apart:
                        pass
                last = len(out)
            elif type(s) in (If, While, Block):
                names = {If: ("then", "orelse"), While: ("test", "body"), Block: ("body",)}[type(s)]
                s = s._replace(**{name: self.body(getattr(s, name), dict(same)) for name in names})
                last = -1
            elif type(s) not in (Assign, Alloc, Check):
                last = -1
            out.append(s)
        return self.contracted(out)

    def idle(self, s: For) -> bool:
        """Whether a loop does nothing but to bind variables that nobody reads, as the number of elements chosen."""
        if any(type(x) not in (Assign, For) for x in statements(s.body)):
            return False
        inside = read_times([s])
        return all(self.reads.get(n, 0) == inside.get(n, 0) and n not in self.shown for n in bound([s]))

    def invariant(self, e: E) -> E:
        """A length, made of what does not change from one statement to the next."""
        if e.op not in INDICES | {"wrap"}:
            raise Apart
        if e.op == "copy":
            return self.invariant(e.args[0])
        if e.op == "var":
            name = e.args[0]
            if name not in self.definitions:
                return E("var", e.args, e.kind)
            if self.bound_times[name] > 1 or not temporary(name):
                raise Apart
            return self.invariant(self.definitions[name])
        if e.op == "dim":
            if e.args[0] in self.made:
                raise Apart
            return e
        return E(e.op, tuple([self.invariant(a) if isinstance(a, E) else a for a in e.args]), e.kind)

    # -------------------------------------------------------------- two nests
    def nest(self, s: For, same: dict[str, str]) -> Nest:
        found = Nest([], [], [])
        while True:
            if s.step != 1 or s.asked or s.lanes or s.start.op != "const" or s.start.args[0] != 0:
                raise Apart
            found.vars.append(s.var)
            found.counts.append(root(same, repr(self.invariant(s.stop))))
            if len(s.body) != 1 or type(s.body[0]) is not For:
                break
            (s,) = s.body
        if any(type(x) not in (Assign, Store) for x in s.body) or exposed(s.body) & bound(s.body):
            raise Apart
        return found._replace(body=s.body)

    def together(self, first: For, second: For, between: list, same: dict[str, str]) -> For:
        """One nest that stands for two, where the second is. Raises Apart."""
        a, b = self.nest(first, same), self.nest(second, same)
        if a.counts != b.counts or first.exact != second.exact or len(a.body) + len(b.body) > MOST:
            raise Apart
        own = bound([first]), bound([second])
        inside = met_times([first]), met_times([second])
        if own[0] & own[1] or own[0] & inside[1].keys() or own[1] & inside[0].keys():
            raise Apart
        if any(self.met[n] != inside[1][n] or n in self.shown for n in b.vars):
            raise Apart
        stored = [{x.array for x in nest.body if type(x) is Store} for nest in (a, b)]
        for s in between:  # which come before both now
            if type(s) in (Assign, Alloc) and s.name in own[0] | inside[0].keys():
                raise Apart
            if any(x.args[0] in own[0] | stored[0] for e in expressions(s) for x in walk(e) if x.op in ("var", "load")):
                raise Apart
        names = {v: E("var", (w,), self.program.kinds[w]) for v, w in zip(b.vars, a.vars)}
        later = [renamed(s, names) for s in b.body]
        for array in stored[0] | stored[1]:
            if not self.apart([*a.body, *later], array, a.vars):
                raise Apart
        return self.around(first, [*a.body, *later], second.stop)

    def apart(self, body: list, array: str, vars: list[str]) -> bool:
        """Whether no two turns meet an element of an array: each variable moves along one axis in all places."""
        indices = [index for s in body for name, index in places(s) if name == array]
        moving = set(vars) | bound(body)
        for var in vars:
            axes = [
                axis
                for axis in range(len(indices[0]))
                if self.place(indices[0][axis], var, moving) is not None
                and len({self.place(index[axis], var, moving) for index in indices}) == 1
            ]
            if not axes:
                return False
        return True

    def place(self, e: E, var: str, moving: set[str]) -> str | None:
        """How far a place is from a loop's variable; None where it is none, plus what does not change."""
        if e.op == "copy":
            return self.place(e.args[0], var, moving)
        if e.op == "var":
            return "" if e.args[0] == var else None
        if e.op not in ("add", "sub"):
            return None
        for x, y in (e.args, e.args[::-1])[: 1 if e.op == "sub" else 2]:
            near = self.place(x, var, moving)
            if near is not None and not variables(y) & moving:
                try:
                    return f"{near} {e.op} {self.invariant(y)!r}"
                except Apart:
                    return None
        return None

    def around(self, s: For, body: list, stop: E) -> For:
        """Loops with another body, the outer one to this length."""
        inner = s.body
        if len(inner) == 1 and type(inner[0]) is For:
            body = [self.around(inner[0], body, inner[0].stop)]
        return s._replace(body=body, stop=stop)

    # -------------------------------------------------------------- arrays that one turn needs
    def contracted(self, body: list) -> list:
        """The same with arrays that are made and met in one nest alone, at one place in each turn, as variables."""
        for name in [s.name for s in body if type(s) is Alloc]:
            s = next(t for t in body if type(t) is Alloc and t.name == name)  # as the ones before left it
            if self.made[name] == 1 and self.program.arrays[name].root == name:
                nests = [t for t in body if type(t) is For and met_times([t])[name]]
                if len(nests) == 1 and met_times(nests)[name] == self.met[name]:
                    body = self.without(body, s, nests[0])
                elif self.program.arrays[name].kind.code == BOOL.code:
                    with contextlib.suppress(Apart):
                        body = self.unmasked(body, s)
        return body

    def unmasked(self, body: list, made: Alloc) -> list:
        """The same with the elements of a mask as what they are. Raises Apart unless one nest fills it, of what nothing
        behind that nest changes."""
        at = next(k for k, s in enumerate(body) if s is made)
        nest = next((k for k, s in enumerate(body) if k > at and met_times([s])[made.name]), at)
        before, filled, behind = body[:nest], body[nest], body[nest + 1 :]
        vars, value = self.element(made, filled)
        own = bound([filled])
        if any(met_times([filled])[n] != self.met[n] or n in self.shown for n in own):
            raise Apart
        if variables(value) & (bound(behind) | own - {*vars}):
            raise Apart
        if met_times([filled, *behind])[made.name] != self.met[made.name]:
            raise Apart

        def one(e: E) -> E:
            args = tuple([one(a) if isinstance(a, E) else a for a in e.args])
            if loads(e, made.name):
                return replaced(value, dict(zip(vars, map(place, args[1:]))), True)
            return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)

        return [*(s for s in before if s is not made), *mapped(behind, one)]

    def element(self, made: Alloc, s: Any) -> tuple[list[str], E]:
        """(the variables of the loops that fill a mask, what its element is). Raises Apart for what is no mask."""
        vars: list[str] = []
        for length in made.dims:
            start = type(s) is For and s.step == 1 and not s.asked and not s.lanes and s.start.op == "const" and s.start
            if not start or start.args[0] != 0 or repr(self.invariant(s.stop)) != repr(self.invariant(length)):
                raise Apart
            vars.append(s.var)
            *binding, s = s.body
            if binding and len(vars) < len(made.dims):
                raise Apart
        known: dict[str, E] = {}
        for t in binding:
            if type(t) is not Assign or t.name in known:
                raise Apart
            known[t.name] = replaced(t.value, known, True)
        if type(s) is not Store or [repr(i) for i in s.index] != vars:
            raise Apart
        value = replaced(s.value, known, True)
        computed = [x.op for x in walk(value) if x.op not in ("var", "const", "load", "copy")]
        read = {x.args[0] for x in walk(value) if x.op in ("load", "dim")}
        if len(computed) > CHEAP or not INDICES.issuperset(computed) or read & (self.stored | self.made.keys()):
            raise Apart
        return vars, value

    def without(self, body: list, made: Alloc, nest: For) -> list:
        name, inner, vars = made.name, nest, [nest.var]
        while len(inner.body) == 1 and type(inner.body[0]) is For:
            (inner,) = inner.body
            vars.append(inner.var)
        found = [index for s in inner.body for array, index in places(s) if array == name]
        first = next((s for s in inner.body if any(array == name for array, _ in places(s))), None)
        if any(type(s) not in (Assign, Store) for s in inner.body) or len({*map(repr, found)}) != 1:
            return body
        own = type(first) is Store and not any(loads(x, name) for e in expressions(first) for x in walk(e))
        if not (own or made.zero) or not self.apart(inner.body, name, vars):
            return body
        kind, stores = self.program.arrays[name].kind, 0
        row = E("var", (f"{name}.one",), kind)
        self.program.kinds[row.args[0]] = kind
        out = [Assign(row.args[0], zero(kind))] if made.zero else []
        for s in inner.body:
            s = in_place(s, name, row)
            if type(s) is Store and s.array == name:
                stores += 1
                if stores > 1 or made.zero:  # another variable, so that a way back has each as it was
                    row = E("var", (f"{name}.one.{stores}",), kind)
                    self.program.kinds[row.args[0]] = kind
                s = Assign(row.args[0], s.value)
            out.append(s)
        whole = self.around(nest, out, nest.stop) if inner is not nest else nest._replace(body=out)
        return [whole if s is nest else s for s in body if s is not made]


def place(e: E) -> E:
    """An index that may stand for the variable of a loop."""
    if e.kind.code != INT.code:
        raise Apart
    return e


def renamed(s: Assign | Store, names: dict[str, E]) -> Assign | Store:
    if type(s) is Assign:
        return Assign(s.name, replaced(s.value, names, True))
    return Store(s.array, tuple([replaced(i, names, True) for i in s.index]), replaced(s.value, names, True))


def in_place(s: Assign | Store, array: str, e: E) -> Assign | Store:
    """A statement with an array's one element as a variable."""

    def one(x: E) -> E:
        if loads(x, array):
            return e
        return x.over(one)

    return Assign(s.name, one(s.value)) if type(s) is Assign else Store(s.array, s.index, one(s.value))
