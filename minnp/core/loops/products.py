"""Products of matrices among loops, which BLAS computes where they are large.

`for i: for k: for j: C[i, j] += A[i, k] * B[k, j]` is one, in any order of the loops, if that of additions is free. A
place may be any that moves evenly with two of the loops, on whatever axes of whatever view. In derivatives what is not
finite counts for nothing where the cotangent is zero: BLAS is asked where all that it is multiplied with is finite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .ir import (
    BOOL,
    INT,
    Assign,
    Check,
    E,
    For,
    If,
    Multiply,
    Product,
    Program,
    Store,
    const,
    expressions,
    parts,
    statements,
    variables,
    walk,
)
from .simplified import adds

LIMITS = -(2**62), 2**62
# Multiplications from which BLAS is faster: the latter where loops have no rows to add to, or such of few columns
LARGE, NARROW, FEW = 1 << 14, 1 << 11, 4
MOST = 20  # statements of a nest
SHORT = 200  # statements of a program that may be compiled twice


def product(s: For) -> Product | None:
    """The product that a nest of loops adds, if it does nothing else but to bind variables."""
    found = strong_product(s)
    return None if found is None or found[1] else found[0]


def strong_product(s: For) -> tuple[Product, list[E]] | None:
    """The same, and which of its factors is a slope: of these what is not finite is left out where the other factor is
    zero."""
    few = len(list(itertools.islice(statements([s]), MOST + 1))) <= MOST
    reading = Reading(s) if few and not s.exact else None
    found = reading and reading.product()
    return (found, reading.slopes) if reading and found else None


def slope(e: E) -> E | None:
    """The second factor of a product that is zero where the first one is (zero_where_zero); None for all else."""
    if e.op != "select" or e.args[0].op != "and" or not is_zero(e.args[1]) or plain(e.args[2]).op != "mul":
        return None
    zero, none = e.args[0].args
    if zero.op != "eq" or none.op != "ne" or any(repr(a) != repr(e.args[2]) for a in none.args):
        return None
    first, second = plain(e.args[2]).args
    return second if is_zero(zero.args[1]) and repr(first) == repr(zero.args[0]) else None


class Reading:
    """What a nest of loops adds, without the variables that it binds.

    known   variables -> what they are
    sums    variables that the innermost loop adds to -> what it adds
    added   (the element that is added to, what is added)
    slopes  the factors that count for nothing where the other one is zero
    """

    def __init__(self, s: For) -> None:
        self.known: dict[str, E] = {}
        self.sums: dict[str, E | None] = {}
        self.added: list[tuple[E, E]] = []
        self.loops: list[For] = []
        self.slopes: list[E] = []
        self.fine = self.nest([s])

    def product(self) -> Product | None:
        if not self.fine or len(self.loops) != 3 or len(self.added) != 1:
            return None
        to, more = self.added[0]
        strong = slope(more)
        if strong is not None:
            self.slopes, more = [plain(strong)], plain(more.args[2])
        factors = [plain(a) for a in more.args] if more.op == "mul" else []
        if to.kind.code not in ("f4", "f8") or any(e.op != "load" or e.kind.code != to.kind.code for e in factors):
            return None
        own = self.known.keys() | self.sums.keys()  # one that is read before it is bound
        if not factors or to.args[0] in (e.args[0] for e in factors) or any(variables(e) & own for e in (to, *factors)):
            return None
        loops = {x.var: x for x in self.loops}
        moves = [{n for i in e.args[1:] for n in variables(i)} & loops.keys() for e in (to, *factors)]
        even = all(evenly(i, loops.keys()) for e in (to, *factors) for i in e.args[1:])
        if not even or any(len(m) != 2 for m in moves) or len(set(map(frozenset, moves))) != 3:
            return None
        row, inner, column = (loops[(moves[a] & moves[b]).pop()] for a, b in ((0, 1), (1, 2), (0, 2)))
        return Product(to, factors[0], factors[1], (row, inner, column))

    def nest(self, body: list) -> bool:
        """Whether statements are of such a nest."""
        depth = len(self.loops)
        for s in body:
            if type(s) is Assign:
                fine = self.assigned(s.name, self.inlined(s.value), depth)
            elif type(s) is Store:
                fine = self.stored(s, depth)
            else:
                fine = type(s) is For and len(self.loops) == depth < 3 and self.loop(s)
            if not fine:
                return False
        return True

    def loop(self, s: For) -> bool:
        start, stop = self.inlined(s.start), self.inlined(s.stop)
        own = {x.var for x in self.loops} | self.sums.keys()
        if s.exact or s.asked or s.lanes or s.step not in (1, -1) or (variables(start) | variables(stop)) & own:
            return False
        if any(x.op == "load" for e in (start, stop) for x in walk(e)):
            return False
        self.loops.append(s._replace(start=start, stop=stop, body=[]))
        return self.nest(s.body)

    def assigned(self, name: str, value: E, depth: int) -> bool:
        if name in self.sums:
            old = value.args[0] if value.op == "add" else value
            if depth < 3 or self.sums[name] is not None or old.op != "var" or old.args[0] != name:
                return False
            self.sums[name] = value.args[1]
        elif name in self.known:
            return False
        elif depth == 2 and len(self.loops) == 2 and value.op == "const" and value.args[0] == 0:
            self.sums[name] = None
        else:
            self.known[name] = value
        return True

    def stored(self, s: Store, depth: int) -> bool:
        s = Store(s.array, tuple(map(self.inlined, s.index)), self.inlined(s.value))
        if depth < 2 or s.value.op != "add" or not adds(s):
            return False
        more = s.value.args[1]
        if depth == 2:
            inside = {n for i in s.index for n in variables(i)} & {x.var for x in self.loops[2:]}
            more = self.sums.get(more.args[0]) if more.op == "var" and not inside else None
        self.added.append((E("load", (s.array, *s.index), s.value.kind), more))
        return more is not None

    def inlined(self, e: E) -> E:
        if e.op == "var" and e.args[0] in self.known:
            found = self.known[e.args[0]]
            return found if found.kind == e.kind else E("copy", (found,), e.kind, e.low, e.high)
        if not any(isinstance(a, E) for a in e.args):
            return e
        return e.over(self.inlined)


def is_zero(e: E) -> bool:
    return e.op == "const" and e.args[0] == 0


def plain(e: E) -> E:
    """An expression without copies of the same type."""
    while e.op in ("copy", "cast") and e.args[0].kind.code == e.kind.code:
        e = e.args[0]
    return e


def evenly(e: E, names: Any) -> bool:
    """Whether a place moves evenly with each of these variables, whatever the others are."""
    if e.op == "load":
        return False
    if not variables(e) & names or e.op == "var":
        return all(evenly(a, names) for a in e.args if isinstance(a, E))
    if e.op in ("add", "sub", "neg", "copy"):
        return all(evenly(a, names) for a in e.args)
    return e.op == "mul" and any(not variables(a) & names for a in e.args) and all(evenly(a, names) for a in e.args)


def bounds(s: For) -> tuple[E, E]:
    """(the lowest number of a loop, how many it has, or less than none)."""
    low, stop = (s.start, s.stop) if s.step == 1 else (behind(s.stop), behind(s.start))
    zero = low.op == "const" and low.args[0] == 0
    return low, stop if zero else E("sub", (stop, low), INT, *LIMITS)


def behind(e: E) -> E:
    """The number after an integer."""
    one_less = e.op == "sub" and e.args[1].op == "const" and e.args[1].args[0] == 1
    return e.args[0] if one_less else E("add", (e, const(1)), INT, *LIMITS)


def positive(e: E) -> E:
    """An integer, or zero in the place of negative ones."""
    return e if e.low >= 0 else E("max", (e, const(0)), INT, 0, LIMITS[1])


def nest(found: Product, variable: str, inmost: bool = False, slopes: Sequence[E] = ()) -> For:
    """The loops of a product, the `inmost` over what is summed or else over columns, with a variable for the sum or for
    an element on the left. `slopes` as strong_product has them."""
    to, left, right, (rows, inner, columns) = found
    x = E("var", (variable,), to.kind)
    more = lambda e, y: E("add", (e, y), to.kind)
    if inmost:
        last = inner._replace(body=[Assign(variable, more(x, times(left, right, slopes)))])
        body = [Assign(variable, const(0.0, to.kind)), last, Store(to.args[0], to.args[1:], more(to, x))]
        return rows._replace(body=[columns._replace(body=body)])
    slopes = [x if e is left else e for e in slopes]
    last = columns._replace(body=[Store(to.args[0], to.args[1:], more(to, times(x, right, slopes)))])
    return rows._replace(body=[inner._replace(body=[Assign(variable, left), last])])


def counting(found: Product, e: E, count: E) -> list:
    """What counts the elements of a factor that are not finite."""
    moving = {n for i in e.args[1:] for n in variables(i)}
    (across,) = [x for x in found.loops if x.var in variables(e.args[-1])][:1] or [found.loops[1]]
    (down,) = [x for x in found.loops if x.var in moving and x is not across]
    strange = E("ne", (E("sub", (e, e), e.kind), const(0.0, e.kind)), BOOL, 0, 1)
    more = E("add", (count, E("cast", (strange,), INT, 0, 1)), INT, 0, LIMITS[1])
    row = across._replace(body=[Assign(count.args[0], more)])
    return [Assign(count.args[0], const(0)), down._replace(body=[row])]


def times(x: E, y: E, slopes: Sequence[E]) -> E:
    """The product of two numbers; if one of them is a slope, zero where the other one is."""
    for g, other in ((x, y), (y, x)):
        if any(e is other for e in slopes):
            return zero_where_zero(g, E("mul", (g, other), x.kind))
    return E("mul", (x, y), x.kind)


def zero_where_zero(g: E, e: E) -> E:
    """g times a slope, zero where g is."""
    zero = E("and", (E("eq", (g, const(0.0, g.kind)), BOOL, 0, 1), E("ne", (e, e), BOOL, 0, 1)), BOOL, 0, 1)
    return E("select", (zero, const(0.0, e.kind), e), e.kind)


def is_strong(e: E) -> bool:
    """Whether an expression is one that zero_where_zero makes."""
    if e.op != "select" or e.args[0].op != "and" or not is_zero(e.args[1]) or e.args[0].kind != BOOL:
        return False
    zero, none = e.args[0].args
    return (
        zero.op == "eq"
        and is_zero(zero.args[1])
        and none.op == "ne"
        and all(repr(a) == repr(e.args[2]) for a in none.args)
    )


def unguarded(e: E) -> E:
    """An expression with products in the place of those that are zero where one factor is."""
    if is_strong(e):
        return unguarded(e.args[2])
    return e.over(unguarded) if any(x.op == "select" for x in walk(e)) else e


def deep(program: Program) -> bool:
    """Whether products that are zero where one factor is are in so many loops of a short program that to look for what
    is no number among all results takes nothing beside them."""
    most = max([program.arrays[program.inputs[k].name].ndim for k in program.written], default=0)

    def inside(body: list, depth: int) -> bool:
        for s in body:
            here = depth + (type(s) is For)
            if depth > most and any(is_strong(x) for e in expressions(s) for x in walk(e)):
                return True
            if any(inside(inner, here) for inner in parts(s)):
                return True
        return False

    return len(statements(program.body)) <= SHORT and inside(program.body, 0)


def all_numbers(program: Program, fresh: Callable) -> list:
    """Statements that end a program with "nan" where a result is no number."""
    out: list = []
    for name in [program.inputs[k].name for k in program.written]:
        array = program.arrays[name]
        if array.kind.letter != "f":
            continue
        count, *at = (E("var", (fresh("count"),), INT, 0, LIMITS[1]) for _ in range(1 + array.ndim))
        program.kinds |= {x.args[0]: INT for x in (count, *at)}
        x = E("load", (name, *at), array.kind)
        more = E("cast", (E("ne", (x, x), BOOL, 0, 1),), INT, 0, 1)
        body: list = [Assign(count.args[0], E("add", (count, more), INT, 0, LIMITS[1]))]
        for axis in reversed(range(array.ndim)):
            body = [For(at[axis].args[0], const(0), E("dim", (name, axis), INT, 0, 2**40), 1, body, False)]
        out += [Assign(count.args[0], const(0)), *body, Check(E("eq", (count, const(0)), BOOL, 0, 1), "nan")]
    for name, *_ in program.outputs:
        x = E("var", (name,), program.kinds[name])
        if x.kind.letter == "f":
            out.append(Check(E("eq", (x, x), BOOL, 0, 1), "nan"))
    return out


def by_blas(program: Program, s: For, read: set[str], fresh: Callable) -> tuple[list, E] | None:
    """(what has BLAS add the product that a nest of loops is, whether it did not); None for other loops.

    read   the variables that are read behind the nest"""
    strongly = strong_product(s)
    if strongly is None or {x[0] for x in statements([s]) if type(x) in (Assign, For)} & read:
        return None
    found, slopes = strongly
    roots = [program.arrays[e.args[0]].root for e in found[:3]]
    shown = [program.moving.get(root, frozenset((root,))) for root in roots]
    if roots[0] in roots[1:]:
        return None
    work: E = const(1)
    for x in found.loops:
        work = E("mul", (work, positive(bounds(x)[1])), INT)
    rows, _, columns = (bounds(x)[1] for x in found.loops)
    *_, last = (x.var for x in statements([s]) if type(x) is For)
    narrow = const(True) if last == found.loops[1].var else E("lt", (columns, const(FEW)), BOOL, 0, 1)
    least = E("select", (narrow, const(NARROW), const(LARGE)), INT, NARROW, LARGE)
    large = E("and", (E("ge", (rows, const(FEW)), BOOL, 0, 1), E("ge", (work, least), BOOL, 0, 1)), BOOL, 0, 1)
    for e, root in zip(found[1:3], shown[1:]):
        if root & shown[0]:
            large = E("and", (large, E("apart", (found.to.args[0], e.args[0]), BOOL, 0, 1)), BOOL, 0, 1)
    done = fresh(BOOL)
    multiply: list = [Multiply(done, found)]
    for e in slopes:
        strange = E("var", (fresh(INT),), INT, 0, LIMITS[1])
        multiply = [*counting(found, e, strange), If(E("eq", (strange, const(0)), BOOL, 0, 1), multiply, [])]
    ask = [Assign(done, const(False)), If(large, multiply, [])]
    return ask, E("not", (E("var", (done,), BOOL, 0, 1),), BOOL, 0, 1)
