"""Loops over the last axis of arrays, around loops over their other axes, run inside these.

`for k: for i: for j: t[i, j] = f(x[i, j, k]); for i: for j: y[i, j, k] = t[i, j] * y[i, j, k - 1]` meets in every turn
of k one number of each line of the cache, of all that the arrays have. Where the rows of what is written share nothing,
it becomes

    for i: for j: for k: t = f(x[i, j, k]); y[i, j, k] = t * y[i, j, k - 1]

which reads and writes memory in its order, and of the arrays that a turn makes for itself needs one element (loop
fusion, interchange and array contraction: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001,
chapters 5 and 6). Loops over the columns of matrices do so where a column is made from others of its own matrix. Each
element is computed as before, from the same numbers. A check that fails in it lets Python run the loop, which raises
what there is to raise behind the turns that come before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from .ir import (
    BOOL,
    INT,
    Alloc,
    Array,
    Assign,
    Block,
    Check,
    E,
    For,
    If,
    Kind,
    Permute,
    Program,
    Store,
    View,
    While,
    const,
    expressions,
    parts,
    places,
    statements,
    variables,
    walk,
)
from .simplified import bound, exposed

INSIDE = (Assign, Store, Alloc, If, For, Block, Check)
PROPERTIES = {"apart", "held", "dense"}  # of arrays, by their names
LENGTHS = {"const", "var", "dim", "copy", "add", "sub", "mul", "max", "min"}


class Apart(Exception):
    """A loop that is left as it is."""


def interchanged(program: Program, body: list, shown: set[str], checked: bool = True) -> list | None:
    """A body without views with such loops the other way round; None if it has none.

    shown     the variables whose values are asked for behind it
    checked   whether its checks may fail, which else are known to hold
    """
    found = Interchange(program, body, shown, checked)
    out = found.body(body)
    return out if found.some else None


def flat(program: Program) -> bool:
    """Whether a program is the same with the elements of its views as those of their roots, wherever they are met."""
    if program.moving or program.results:
        return False
    times: dict[str, int] = {}
    for s in statements(program.body):
        if type(s) in (Assign, For):
            name = s.name if type(s) is Assign else s.var
            times[name] = times.get(name, 0) + 1
    for s in statements(program.body):
        if type(s) not in (*INSIDE, View, Permute, While):
            return False
        if type(s) in (View, Permute) and not temporary(s.name):
            return False
        if any(x.op in PROPERTIES for e in expressions(s) for x in walk(e)):
            return False
        fixed = type(s) in (View, Alloc)
        if fixed and any(times.get(n, 0) > 1 for e in expressions(s) for n in variables(e)):
            return False
    return True


def temporary(name: str) -> bool:
    """Whether an array is the translator's own, met on no way but behind where it is made."""
    return name.count(".") == 1 and name.rpartition(".")[2].isdigit()


class Interchange:
    def __init__(self, program: Program, body: list, shown: set[str], checked: bool) -> None:
        self.program, self.shown, self.checked = program, shown, checked
        self.some = False
        self.definitions: dict[str, list] = {}
        self.reads = met_times(body)
        for s in statements(body):
            if type(s) in (Assign, Alloc):
                self.definitions.setdefault(s.name, []).append(s)

    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            if type(s) is For:
                try:
                    out += Nest(self, s).made()
                    self.some = True
                    continue
                except Apart:
                    pass
            names = ("then", "orelse") if type(s) is If else ("body",) if type(s) in (For, While, Block) else ()
            out.append(s._replace(**{name: self.body(getattr(s, name)) for name in names}) if names else s)
        return out


class Nest:
    """A loop around nests of loops. Raises Apart unless these may run row by row."""

    def __init__(self, around: Interchange, s: For) -> None:
        self.around, self.program, self.loop = around, around.program, s
        if s.step not in (1, -1) or s.asked or s.lanes or any(type(x) not in INSIDE for x in statements(s.body)):
            raise Apart
        if any(x.op in PROPERTIES for t in statements(s.body) for e in expressions(t) for x in walk(e)):
            raise Apart
        self.changed = bound([s]) | {x.name for x in statements(s.body) if type(x) is Alloc}
        self.stored = {x.array for x in statements(s.body) if type(x) is Store}
        self.stored |= {x.name for x in statements(s.body) if type(x) is Alloc}
        self.stale = exposed(s.body)
        if self.stale & bound(s.body) or s.var in bound(s.body) or any(self.moves(e) for e in (s.start, s.stop)):
            raise Apart
        self.made_here = {x.name: x for x in statements(s.body) if type(x) is Alloc}
        self.axes: dict[str, tuple] = {}  # of what is stored: that of the rows, and how far they are from the turns
        self.count: E | None = None  # of the rows
        self.gains = False
        self.columns: dict[str, set[str]] = {}  # of matrices: the places along the last axis that move with the turns
        self.look(s.body, {})
        if self.count is None or not self.gains:
            raise Apart
        # of other matrices copies are made that lie the other way round (axes.py)
        if self.columns and not any(len(self.columns.get(name, ())) > 1 for name in self.stored):
            raise Apart
        own = bound(s.body) | {s.var} | self.made_here.keys()
        inside = met_times(s.body)
        left = {n for n in own if n in around.shown or around.reads[n] != inside[n]}
        self.left = bool(left)
        self.elsewhere = {n: around.reads[n] - times for n, times in inside.items()}
        self.empty = self.made_here.keys() - {array for x in statements(s.body) for array, _ in places(x)}
        for name in self.made_here:
            if name in left or len(around.definitions[name]) > 1 or name not in self.axes.keys() | self.empty:
                raise Apart

    def moves(self, e: E) -> bool:
        """Whether an expression is not the same all through the loop."""
        changed = {"var": self.changed, "dim": self.changed, "load": self.stored}
        return any(x.args[0] in changed.get(x.op, ()) for x in walk(e))

    # -------------------------------------------------------------- what it does
    def look(self, body: list, same: dict[str, str]) -> None:
        """`same`: lengths that are equal by checks that hold here: each, and one of those it is equal to."""
        self.compare(body, same)
        for s in body:
            if type(s) is For:
                self.nest(s, same)
                continue
            if type(s) is Store or any(a in self.stored for a, _ in places(s)):
                raise Apart
            for inner in parts(s):
                self.look(inner, dict(same) if type(s) is If else same)

    def compare(self, body: list, same: dict[str, str]) -> None:
        for s in body:
            if type(s) is Block:
                self.compare(s.body, same)
            equate(same, s, self.invariant)

    def nest(self, s: For, same: dict[str, str]) -> None:
        """A loop over rows: of what the loop around writes it meets its own row."""
        if s.step != 1 or s.asked or s.start.op != "const" or s.start.args[0] != 0:
            raise Apart
        count = self.invariant(s.stop)
        self.count = self.count or count
        if root(same, repr(count)) != root(same, repr(self.count)):
            raise Apart
        names = bound([s])
        if any(type(x) is Alloc for x in statements([s])):
            raise Apart
        reads = met_times([s])
        elsewhere = any(self.around.reads[n] != reads[n] for n in names)
        if elsewhere or exposed([s]) & names or self.around.shown & names:
            raise Apart
        for x in statements([s]):
            for array, index in places(x):
                mine = [axis for axis, i in enumerate(index) if s.var in variables(i)]
                if array in self.stored:
                    (axis,) = mine if len(mine) == 1 else self.none()
                    place = axis, self.shift(index[axis], s.var)
                    if self.axes.setdefault(array, place) != place:
                        raise Apart
                axes = [axis for axis, i in enumerate(index) if self.turns(i)]
                if axes and axes != [len(index) - 1]:
                    raise Apart
                if axes and len(index) == 2:
                    self.columns.setdefault(array, set()).add(repr(index[1]))
                self.gains |= bool(axes) and bool(mine)

    def shift(self, e: E, var: str) -> str:
        """What is added to a loop's variable in a place."""
        if e.op == "copy":
            return self.shift(e.args[0], var)
        if e.op == "var" and e.args[0] == var:
            return ""
        if e.op not in ("add", "sub") or all(var in variables(a) for a in e.args):
            raise Apart
        a, b = e.args if e.op == "sub" or var in variables(e.args[0]) else e.args[::-1]
        return f"{self.shift(a, var)} {e.op} {self.invariant(b)!r}"

    def none(self) -> Any:
        raise Apart

    def turns(self, e: E) -> bool:
        """Whether a place depends on the turn of the loop around."""
        for name in variables(e):
            if name == self.loop.var:
                return True
            found = self.around.definitions.get(name, []) if name in self.changed else []
            if any(self.turns(d.value) for d in found if type(d) is Assign and name not in variables(d.value)):
                return True
        return False

    def invariant(self, e: E) -> E:
        """A length, made of what does not change in the loop."""
        if e.op not in LENGTHS:
            raise Apart
        if e.op == "copy":
            return self.invariant(e.args[0])
        if e.op == "var" and e.args[0] in self.changed:
            return self.invariant(self.definition(e.args[0], Assign).value)
        if e.op == "dim":
            name, axis = e.args
            if name in self.around.definitions:
                return self.invariant(self.definition(name, Alloc).dims[axis])
            return e
        return e.over(self.invariant)

    def definition(self, name: str, kind: type) -> Any:
        """The one statement that makes a variable or an array, in the loop."""
        found = self.around.definitions.get(name, [])
        if len(found) != 1 or type(found[0]) is not kind or name in self.stale or name not in self.changed:
            raise Apart
        return found[0]

    # -------------------------------------------------------------- the other way round
    def made(self) -> list:
        s, program = self.loop, self.program
        row = f"{s.var}.row"
        while row in program.kinds:
            row += "."
        program.kinds[row] = INT
        self.row = E("var", (row,), INT, 0, 2**40)
        self.rows = {name: self.without_axis(name) for name in self.made_here}
        assert self.count is not None
        inner: list = [s._replace(body=self.of_row(s.body, ""))]
        deeper = Interchange(program, inner, self.around.shown, self.around.checked)
        deeper.reads.update(self.elsewhere)
        run = For(row, const(0), self.count, 1, deeper.body(inner), s.exact)
        if not self.left:
            return [run]
        some = E("gt", (self.count, const(0)), BOOL, 0, 1)  # else the variables are what they are without rows
        return [If(some, [run], [s._replace(body=without_loops(s.body))])]

    def without_axis(self, name: str) -> str:
        """What is one row of an array, or one element: a variable."""
        old, new = self.program.arrays[name], f"{name}.row"
        if old.ndim > 1:
            self.program.arrays[new] = Array(new, old.kind, old.ndim - 1, new)
        else:
            self.program.kinds[new] = old.kind
        return new

    def of_row(self, body: list, var: str) -> list:
        """Statements for one row, which `var` counts in them."""

        def one(e: E) -> E:
            if e.op == "var" and e.args[0] == var:
                return E("var", self.row.args, e.kind, e.low, e.high)
            if e.op == "dim" and e.args[0] in self.rows:
                return one(self.made_here[e.args[0]].dims[e.args[1]])
            args = tuple([one(a) if isinstance(a, E) else a for a in e.args])
            if e.op == "load" and args[0] in self.rows:
                name, index = self.rows[args[0]], without(args[1:], self.axes[args[0]][0])
                return E("load", (name, *index), e.kind) if index else E("var", (name,), e.kind)
            return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)

        out: list = []
        for s in body:
            if type(s) is For and not var:
                count = self.invariant(s.stop)
                if self.around.checked and repr(count) != repr(self.count):
                    out.append(Check(E("eq", (count, self.count), BOOL, 0, 1), "again"))
                out += self.of_row(s.body, s.var)
            elif type(s) is Store:
                array, index, value = s.array, tuple(map(one, s.index)), one(s.value)
                if array in self.rows:
                    array, index = self.rows[array], without(index, self.axes[array][0])
                out.append(Store(array, index, value) if index else Assign(array, value))
            elif type(s) is Alloc and s.name in self.empty:
                continue  # its lengths are what they were made of
            elif type(s) is Alloc:
                dims = without(tuple(map(one, s.dims)), self.axes[s.name][0])
                if dims:
                    out.append(s._replace(name=self.rows[s.name], dims=dims))
                elif s.zero:
                    out.append(Assign(self.rows[s.name], zero(self.program.arrays[s.name].kind)))
            elif type(s) is Check:
                out.append(Check(one(s.condition), "again", (), s.bounds and tuple(map(one, s.bounds))))
            else:
                changed = {
                    field: self.of_row(value, var) if type(value) is list else one(value)
                    for field, value in zip(s._fields, s)
                    if type(value) is list or isinstance(value, E)
                }
                out.append(s._replace(**changed))
        return out


def without(index: tuple, axis: int) -> tuple:
    return index[:axis] + index[axis + 1 :]


def zero(kind: Kind) -> E:
    return const({"b": False, "f": 0.0, "c": 0j}.get(kind.letter, 0), kind)


def without_loops(body: list) -> list:
    out: list = []
    for s in body:
        if type(s) is If:
            s = If(s.condition, without_loops(s.then), without_loops(s.orelse))
        elif type(s) is Block:
            s = Block(s.label, without_loops(s.body))
        if type(s) is not For:
            out.append(s)
    return out


def read(s: Any) -> set[str]:
    """The variables that a statement itself reads, and the arrays it meets."""
    found = {x.args[0] for e in expressions(s) for x in walk(e) if x.op in ("var", "load", "dim")}
    return found | {s.array} if type(s) is Store else found


def met_times(body: list) -> Counter[str]:
    """How many statements read each variable, or meet each array."""
    return Counter(name for s in statements(body) for name in read(s))


def equate(same: dict[str, str], s: Any, invariant: Callable[[E], E]) -> None:
    """Note two lengths that are equal by a check, if a statement is one; `invariant` raises Apart for what is none."""
    if type(s) is not Check or s.condition.op != "eq":
        return
    try:
        a, b = (root(same, repr(invariant(x))) for x in s.condition.args)
    except Apart:
        return
    if a != b:
        same[a] = b


def root(same: dict[str, str], name: str) -> str:
    while name in same:
        name = same[name]
    return name
