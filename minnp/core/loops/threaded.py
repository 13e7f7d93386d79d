"""Loops whose turns run on several threads: asked for with `prange`, or those of a batch, whose examples are apart.

The outermost loop of a program is cut into pieces, each the same program with fewer turns. How many turns a piece has
depends on their number alone, so the results are the same bits on any number of threads. A variable that a turn reads
before it assigns it is carried from turn to turn: such a loop is cut if all that it does with the variable is a
reduction, of which each piece has a part. Where a piece fails, or NumPy might warn, the arrays are as they were, and
the loop runs once more, from its first turn to its last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as onp

from ..cpu import products, threads
from ..llvm import engine
from ..llvm.engine import RANGES, Ranges
from .batched import read_first
from .compiled import Code
from .ir import (
    BOOL,
    INT,
    Alloc,
    Assign,
    Block,
    Call,
    Check,
    E,
    For,
    If,
    Input,
    Kind,
    Leave,
    Permute,
    Program,
    Reshape,
    Store,
    View,
    const,
    expressions,
    limits,
    places,
    statements,
    variables,
    walk,
)
from .lowering import FIRST, MET, Lowering
from .operations import OPERATORS, place
from .printing import Inlining, temporaries
from .warned import asked

PIECES, LEAST = 16, 1 << 15  # pieces of a loop; numbers in the arrays of a batch that several threads take
BEGIN, END = "piece.begin", "piece.end"  # the turns of a piece


NEUTRAL: dict[str, Any] = {"add": 0, "sub": 0, "mul": 1, "or": 0, "xor": 0, "and": -1}
ORDERS = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}  # and what they are with the other operand first


class Reduction(NamedTuple):
    """What a loop does with a variable, and nothing else: variable = variable op x.

    op         of NEUTRAL; or an order, by which the variable and x are compared
    form       of an order: "new" (x if x op variable else variable), "old" (variable if variable op x else x);
               "nan" and "nan old" are the same, but take the first of the two where it is NaN
    start      what the pieces behind the first begin with
    kind       in which the variable is kept
    kinds      that it may have
    followers  variables that are assigned whenever x is taken, and nowhere else
    depend     all that is assigned only where x is taken
    """

    op: str
    form: str
    start: Any
    kind: Kind
    kinds: tuple
    followers: frozenset[str]
    depend: frozenset[str]

    def joined(self, a: Any, b: Any) -> tuple[Any, bool]:
        """(the variable, whether it is b) where it was a and the next piece has b. Raises FloatingPointError."""
        operator = OPERATORS[self.op]
        if not self.form:
            return operator(a, b), False
        if len(self.kinds) > 1 and b == self.start:
            raise FloatingPointError("whether it was taken, and so its type, is not known")
        old = self.form.endswith("old")
        first, second = (a, b) if old else (b, a)
        which = operator(first, second) or (self.form.startswith("nan") and first != first)
        return (first if which else second), bool(which) != old


def reduction(name: str, program: Program, body: list) -> Reduction | None:
    """The reduction that statements make of a variable."""
    kind, given = program.kinds[name], f"{name}.in"
    kinds = next((tuple(kinds) for output, kinds, *_ in program.outputs if output == name), (kind,))
    if not any(i.name == given for i in program.inputs):
        return None  # the bounds of what it begins with would not hold for the start of a piece
    own = lambda e: e.op == "var" and e.args[0] == name
    reads = sum(own(x) for s in statements(body) for e in expressions(s) for x in walk(e))
    found: set[tuple[str, str]] = set()
    taken: list[list] = []
    inner: set[int] = set()  # assignments in branches that take x
    for s in statements(body):
        test = bare(s.condition) if type(s) is If else None
        if test is not None and not s.orelse and test.op in ORDERS and any(map(own, test.args)):
            a, x = test.args
            op = test.op if own(x) else ORDERS[test.op]
            x = a if own(x) else x
            ways = [t for t in s.then if type(t) is Assign and t.name == name]
            if len(ways) != 1 or repr(bare(ways[0].value)) != repr(bare(x)) or x.kind.code != kind.code:
                return None
            named = variables(x)
            if any(type(t) in (Store, Leave) or (type(t) is Assign and t.name in named) for t in statements(s.then)):
                return None  # x may be another one by then, or what follows depends on whether it is taken
            found.add((op, "new"))
            taken.append(s.then)
            inner.add(id(ways[0]))
            reads -= 1
    for s in statements(body):
        if type(s) is Check and s.error == "again" and s.condition.op in ("fits_add", "fits_sub", "fits_mul"):
            reads -= any(map(own, s.condition.args))
        if type(s) is not Assign or s.name != name or id(s) in inner:
            continue
        e = bare(s.value)
        if e.op in NEUTRAL and (own(bare(e.args[0])) or (e.op != "sub" and own(bare(e.args[1])))):
            found.add(("add" if e.op == "sub" else e.op, ""))
            reads -= 1
        elif e.op == "select" and sum(map(own, e.args[1:])) == 1 and e.kind.code == kind.code:
            test, (first, second) = bare(e.args[0]), e.args[1:]
            form = "old" if own(first) else "new"
            nan = E("ne", (first, first), BOOL)
            if test.op == "or" and repr(test.args[1]) == repr(nan):
                form, test = f"nan {form}".removesuffix(" new"), bare(test.args[0])
                reads -= 2 * own(first)
            if test.op not in ORDERS or [repr(x) for x in test.args] != [repr(first), repr(second)]:
                return None
            found.add((test.op, form))
            reads -= 2
        else:
            return None
    if len(found) != 1 or reads:
        return None
    op, form = next(iter(found))
    if not form:
        start: Any = NEUTRAL[op]
        if kind.letter == "b":
            start = bool(start)
        elif kind.letter == "c" and op == "mul":  # one times infinity is NaN
            return None
        elif kind.letter in "fc":  # zero of this sign is neutral
            start = {"f": -0.0, "c": complex(-0.0, -0.0)}[kind.letter] if op == "add" else 1.0
        if kind.letter == "u" and op == "and":
            start = limits(kind)[1]
    elif kind.letter == "c" or (form == "old" and kind.letter == "f"):  # which takes what follows NaN
        return None
    else:
        least, most = limits(kind) if kind.letter != "f" else (-onp.inf, onp.inf)
        start = least if op in ("gt", "ge") else most
        if any(k.code not in (kind.code, "i8") for k in kinds):
            return None
    assigned = [t.name for t in statements(body) if type(t) is Assign]
    depend = {t.name for then in taken for t in statements(then) if type(t) is Assign} - {name, f"{name}#"}
    always = {t.name for then in taken for t in then if type(t) is Assign and assigned.count(name) == 1}
    followers = {n for n in depend & always if assigned.count(n) == 1}
    return Reduction(op, form, start, kind, kinds, frozenset(followers), frozenset(depend))


def bare(e: E) -> E:
    """An expression without what keeps its number as it is."""
    while e.op == "copy" or (e.op == "cast" and e.kind.letter == e.args[0].kind.letter in "fc"):
        e = e.args[0]
    return e


def outermost(program: Program) -> tuple[list, For | None]:
    """(what runs before, the outermost loop of a program); None where there is none, or something runs behind it."""
    before: list = []
    body = program.body
    while body:
        *first, last = body
        before += first
        if type(last) is For:
            return before, last
        body = last.body if type(last) is Block else []
    return before, None


def cut(program: Program) -> tuple[Program | None, str]:
    """(the program of a piece, "") or (None, why the loop that was asked for is not cut)."""
    before, loop = outermost(program)
    if program.draws:
        return None, "random numbers, which come one after the other, in prange" if loop and loop.asked else ""
    if loop is None or not loop.asked:
        inner = any(type(s) is For and s.asked for s in statements(program.body))
        return None, "prange in another loop, or with an else" if inner else ""
    if any(type(s) is Call for s in statements(program.body)):
        return None, "a function that calls itself in prange"
    changed = {s.array for s in statements(loop.body) if type(s) is Store}
    changed |= {s.base for s in statements(loop.body) if type(s) in (View, Permute, Reshape)}
    tables = {s.name for s in before if type(s) is Alloc} - changed  # which each piece makes for itself
    own = lambda s: (type(s) is Alloc and s.name in tables) or (type(s) is Store and s.array in tables)
    if not all(type(s) in (Assign, Check, View, Permute) or own(s) for s in before):
        return None, "prange of what is made for it"
    labels = {s.label for s in statements(loop.body) if type(s) is Block}
    if any(type(s) is Leave and s.label not in labels for s in statements(loop.body)):
        return None, "a break or a return out of prange"
    if program.moving or any(i.like for i in program.inputs):
        return None, "a name that stands for several arrays in prange"
    if isinstance(loop.step, E):
        return None, "prange with a step that is not in the source"
    bound = {i.name for i in program.inputs if i.ndim is None}
    bound |= {s.name for s in before if type(s) is Assign}
    assigned = {s.name for s in statements(loop.body) if type(s) is Assign}
    carried: set[str] = set()
    always = {loop.var}
    read_first(loop.body, always, carried)
    carried &= assigned
    outputs = {v for name, _, tag, flag in program.outputs for v in (name, tag, flag) if v}
    reductions: dict[str, Reduction] = {}
    free, plain = temporaries(program), loop.body
    for copies in (True, False):
        plain = Inlining(program, free, plain, copies).list(plain)
    if array := shared(plain, loop):
        return None, f"{array}, of which a turn of prange uses an element that another one writes"
    for name in sorted({v.rstrip("#") for v in carried | ((outputs & assigned) - always)}):
        found = reduction(name, program, plain) if name in assigned else None
        if found is not None:
            reductions[name] = found
    followers = {v for found in reductions.values() for v in found.followers}
    depend = {v for found in reductions.values() for v in found.depend}
    known = {v for name in reductions for v in (name, f"{name}#")}
    left = (carried - known) | (outputs & assigned - always - known - followers) | (depend & (carried | known))
    if left:
        return None, f"{min(left).rstrip('?#')}, which prange carries from turn to turn"
    piece = Program(f"{program.name}_piece")
    piece.__dict__.update({k: v for k, v in program.__dict__.items() if k != "name"})
    piece.kinds = {**program.kinds, BEGIN: INT, END: INT}
    piece.inputs = [*program.inputs, Input(BEGIN, INT, None, False), Input(END, INT, None, False)]
    at = lambda end: E("add", (loop.start, E("mul", (E("var", (end,), INT), const(loop.step)), INT)), INT)
    stop = E("min" if loop.step > 0 else "max", (loop.stop, at(END)), INT)
    starts: list = []
    for name, found in reductions.items():
        starts.append(Assign(name, const(found.start, found.kind)))
        if found.form and len(found.kinds) > 1:
            known_as = next(k for k in found.kinds if k.code == found.kind.code)
            starts.append(Assign(f"{name}#", const(place(known_as))))
    behind = E("ne", (E("var", (BEGIN,), INT), const(0)), BOOL, 0, 1)
    begin = [If(behind, starts, [])] if starts else []
    piece.body = _put(program.body, loop, [*begin, loop._replace(start=at(BEGIN), stop=stop)])
    piece.reductions = reductions
    return piece, ""


def shared(body: list, loop: For) -> str:
    """An array of which a turn uses an element that another turn writes, where the indices say so, as in `y[i] =
    y[i - 1]`; "" where they do not: what `h[k[i]] += 1` does, the numbers decide."""
    inside = list(statements(body))
    values = [(s.name, s.value) for s in inside if type(s) is Assign]
    times = Counter(name for name, _ in values)
    once = {name: value for name, value in values if times[name] == 1}
    used: dict[str, list] = {}
    for s in inside:
        for name, index in places(s):
            used.setdefault(name, []).append(([behind(i, loop.var, once) for i in index], index))
    for name, index in {repr(p): p for s in inside for p in places(s, True)}.values():
        written = [behind(i, loop.var, once) for i in index]
        for at, other in used[name]:
            known = [a - b for a, b in zip(written, at) if a is not None and b is not None]
            others = [repr(i) == repr(j) for a, b, i, j in zip(written, at, index, other) if a is None or b is None]
            if len({*known}) == 1 and known[0] and known[0] % loop.step == 0 and all(others):
                return name
    return ""


def behind(e: E, var: str, once: dict[str, E]) -> int | None:
    """How far behind a variable an index is; None where that is not seen. `once`: what other variables are."""
    e = bare(e)
    if e.op == "var":
        name = e.args[0]
        others = {k: e for k, e in once.items() if k != name}
        return 0 if name == var else behind(once[name], var, others) if name in once else None
    if e.op in ("add", "sub") and bare(e.args[1]).op == "const":
        at, number = behind(e.args[0], var, once), bare(e.args[1]).args[0]
        return None if at is None else at + number if e.op == "add" else at - number
    return None


def _put(body: list, old: For, new: list) -> list:
    swap = lambda s: new if s is old else [Block(s.label, _put(s.body, old, new)) if type(s) is Block else s]
    return [made for s in body for made in swap(s)]


class Pieces(Code):
    """The code of a piece of a loop, and how all of them are called. `whole`: the code of the loop."""

    def __init__(self, piece: Program, whole: Code, turns: Callable, least: int) -> None:
        self.whole, self.turns, self.least = whole, turns, least
        super().__init__(piece, whole.failed)
        self.reductions: dict[str, Reduction] = piece.reductions
        self.restores = self.warns or bool(self.reductions) or any(type(s) is Check for s in statements(piece.body))
        self.ranges: dict[tuple, Ranges] = {}
        self.alone, whole.call = whole.call, self.shared

    def shared(self, *values: Any, donate: dict[int, tuple[int, bool]] | None = None) -> tuple:
        """What the code of the loop returns."""
        donate = donate or {}
        if self.least > sum([a.size for a in values if isinstance(a, onp.ndarray)]):
            return self.alone(*values, donate=donate)
        given = self.whole.program.given
        turns = self.turns(self.whole.program, {i.name.removesuffix(".in"): v for i, v in zip(given, values)})
        warns = self.warns and asked()
        if turns < 2 or turns == float("inf"):
            return self.alone(*values, donate=donate)
        places = {place for place, _ in donate.values()}
        restored = [(values[p], values[p].copy("K")) for p in places if self.restores or warns]
        arrays, results = [], []
        numbers: list = []
        for k, (i, a) in enumerate(zip(given, values)):
            if i.ndim is None:
                numbers += (a.real, a.imag) if i.kind.letter == "c" else (bool(a),) if i.kind.letter == "b" else (a,)
                continue
            if i.written and k not in places:
                a = onp.array(a, order="K")
            arrays.append(a)
            if k in self.written:
                results.append(a)
        step = -(-turns // PIECES)
        count = -(-turns // step)
        slots = onp.zeros((count, self.layout.size), onp.int64)
        self.pack.pack_into(slots, 8 * FIRST, *numbers, 0, 0)
        slots[1:] = slots[0]
        slots[:, self.layout.given[BEGIN]] = onp.arange(count) * step
        slots[:, self.layout.given[END]] = onp.arange(1, count + 1) * step
        key = tuple([a.flags.c_contiguous for a in arrays])
        found = self.ranges.get(key)
        if found is None:
            found = self.ranges.setdefault(key, self.built_ranges(key))
        blas = products.best()
        with nullcontext() if blas is None else blas.around():
            found.run(1, count, 1 if threads.alone() else threads.num_threads(), slots, *arrays)
        try:
            if slots[:, 0].any() or (warns and slots[:, MET].any()):
                raise FloatingPointError
            return (*results, *self.joined(slots))
        except FloatingPointError:
            for a, was in restored:
                a[...] = was
            return self.alone(*values, donate=donate)

    def joined(self, slots: onp.ndarray) -> list:
        """The numbers that come out of all pieces, those of reductions from one to the next. Raises FloatingPointError
        where NumPy would warn."""
        if not self.reductions:
            return self.numbers_of(slots[-1])
        outputs, joined = self.program.outputs, list[Any]()
        names = [name for name, *_ in outputs] + [flag for *_, flag in outputs if flag]
        for row in slots:
            found = dict(zip(names, self.numbers_of(row)))
            last = joined[-1] if joined else found
            took: set[str] = set()
            for name, r in self.reductions.items():
                if name in found and joined:
                    with onp.errstate(all="raise"):
                        found[name], new = r.joined(last[name], found[name])
                    took |= set() if new else r.followers
            joined.append({name: last[name] if name in took else x for name, x in found.items()})
        end = joined[-1]
        return [*[end[name] for name in names], *[str(type(end[name])) for name, _, tag, _ in outputs if tag]]

    def built_ranges(self, contiguous: tuple) -> Ranges:
        """The machine code of a piece."""
        lowering = Lowering(self.program, list(contiguous), ranges=True)
        machine = engine.machine()
        assert machine is not None
        entry, others = lowering.text()
        code = machine.assemble(f"{others}\ndefine {RANGES} {{\n{entry}}}\n", optimise=2)
        return Ranges(code, "kernel")
