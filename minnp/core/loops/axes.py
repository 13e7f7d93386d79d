"""Derivatives whose loops walk arrays along another axis than the last work on copies with that axis last.

`for k: for j: for i: A[i, j] -= Q[i, k] * R[k, j]` meets each number of a column in another line of the cache, and no
vector instruction loads two. Where elements are met again and again (in more loops than the array has axes), a copy
pays: it is made before the loops, and written back behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .ir import (
    INT,
    ROOM,
    Alloc,
    Array,
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
    const,
    expressions,
    parts,
    statements,
    variables,
    walk,
)

LINE = 8  # numbers in a line of the cache
KNOWN = (Assign, Store, Alloc, If, For, While, Block, Leave, Check)


class Use:
    """How the elements of an array are met: the weight of the accesses along each axis by an innermost loop, and how
    deep the loops are that move along it."""

    def __init__(self, ndim: int) -> None:
        self.along, self.depth = [0.0] * ndim, [0.0] * ndim
        self.deepest = 0


def along_last(
    program: Program, body: list, taken: set[str], fresh: Callable[[str], str]
) -> tuple[list, list, list] | None:
    """(what makes copies of such arrays, a derivative's body with them, what copies them back); None if it has none.

    taken   the arrays of nests whose loops run in blocks (blocking.py) as they are
    fresh   makes names of arrays and variables
    """
    if any(type(s) not in KNOWN or (type(s) is Check and s.error not in ROOM) for s in statements(body)):
        return None
    if any(s.asked for s in statements(body) if type(s) is For):
        return None
    uses: dict[str, Use] = {}
    for e, loops in accesses(body, []):
        note(program, uses, e, loops)
    inputs = {i.name: i for i in program.inputs if i.ndim is not None}
    made: dict[str, int] = {}
    for s in statements(body):
        if type(s) is Alloc:
            made[s.name] = made.get(s.name, 0) + 1
    before: list = []
    after: list = []
    orders: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, use in uses.items():
        order = order_of(use)
        if order is None or name in taken or not (name in inputs or made.get(name) == 1):
            continue
        array = program.arrays[name]
        copy = fresh("turned")
        program.arrays[copy] = Array(copy, array.kind, array.ndim, copy)
        orders[name] = copy, order
        if name not in inputs:
            continue
        given = inputs[name]
        zero = bool(given.like)
        dims = [E("dim", (name, axis), INT, 0, 2**40) for axis in range(array.ndim)]
        before.append(Alloc(copy, tuple([dims[a] for a in order]), zero))
        if not zero:
            before += copied(program, fresh, name, copy, order, dims, False)
        stored = any(type(s) is Store and s.array == name for s in statements(body))
        if stored and given.written and name not in program.scratch:
            after += copied(program, fresh, name, copy, order, dims, True)
    return (before, moved(body, orders, made), after) if orders else None


def accesses(body: list, loops: list[str]) -> Iterator[tuple[E, list[str]]]:
    """Every element that statements read or write, as a load, and the loops around it."""
    for s in body:
        for e in expressions(s):
            for x in walk(e):
                if x.op == "load":
                    yield x, loops
        if type(s) is Store:
            yield E("load", (s.array, *s.index), s.value.kind), loops
        inner = [*loops, s.var] if type(s) is For else [*loops, ""] if type(s) is While else loops
        for p in parts(s):
            yield from accesses(p, inner)


def note(program: Program, uses: dict[str, Use], e: E, loops: list[str]) -> None:
    name, *index = e.args
    array = program.arrays[name]
    if array.root != name or array.ndim < 2 or array.kind.letter != "f":
        return
    use = uses.setdefault(name, Use(array.ndim))
    use.deepest = max(use.deepest, len(loops))
    weight = 10.0 ** len(loops)
    axes = [[a for a, i in enumerate(index) if var in variables(i)] for var in loops]
    for depth, found in enumerate(axes):
        for axis in found:
            use.depth[axis] += weight * (depth + 1)
    if axes and len(axes[-1]) == 1 and not any(x.op == "load" for x in walk(index[axes[-1][0]])):
        use.along[axes[-1][0]] += weight


def order_of(use: Use) -> tuple[int, ...] | None:
    """The order of an array's axes in which its loops walk along the last, if that is another one than it has."""
    last = len(use.along) - 1
    best = max(range(last + 1), key=use.along.__getitem__)
    if best == last or use.along[best] < 2 * use.along[last] or use.deepest <= last + 1:
        return None
    return *sorted(set(range(last + 1)) - {best}, key=use.depth.__getitem__), best


def copied(
    program: Program, fresh: Callable[[str], str], name: str, copy: str, order: tuple, dims: list[E], back: bool
) -> list:
    """Copies an array to the one whose axes lie in this order, or back: lines of the cache at a time."""
    names = [fresh("axis") for _ in dims]
    program.kinds |= dict.fromkeys(names, INT)
    at = [E("var", (n,), INT, 0, 2**40) for n in names]
    kind, turned = program.arrays[name].kind, tuple([at[a] for a in order])
    if back:
        one = Store(name, tuple(at), E("load", (copy, *turned), kind))
    else:
        one = Store(copy, turned, E("load", (name, *at), kind))
    line = fresh("line")
    program.kinds[line] = INT
    first, last, row = E("var", (line,), INT, 0, 2**40), len(dims) - 1, order[-1]
    end = E("min", (E("add", (first, const(LINE)), INT, 0, 2**40), dims[last]), INT, 0, 2**40)
    body: list = [For(names[last], first, end, 1, [one], False)]
    body = [For(names[row], const(0), dims[row], 1, body, False)]
    body = [For(line, const(0), dims[last], LINE, body, False)]
    for axis in reversed(order):
        if axis not in (last, row):
            body = [For(names[axis], const(0), dims[axis], 1, body, False)]
    return body


def moved(body: list, orders: dict[str, tuple[str, tuple[int, ...]]], made: dict[str, int]) -> list:
    """The same with the elements of the copies. `made`: the arrays that are made in the program."""

    def one(e: E) -> E:
        args = tuple([one(a) if isinstance(a, E) else a for a in e.args])
        found = orders.get(args[0]) if e.op in ("load", "dim") else None
        if found is not None and e.op == "load":
            args = (found[0], *[args[1 + a] for a in found[1]])
        elif found is not None and args[0] in made:
            args = (found[0], found[1].index(args[1]))
        return E(e.op, args, e.kind, e.low, e.high, e.kinds, e.tag)

    def each(s: Any) -> Any:
        if type(s) is Store:
            copy, order = orders.get(s.array, (s.array, range(len(s.index))))
            index = [one(i) for i in s.index]
            return Store(copy, tuple([index[a] for a in order]), one(s.value))
        if type(s) is Alloc:
            copy, order = orders.get(s.name, (s.name, range(len(s.dims))))
            return s._replace(name=copy, dims=tuple([one(s.dims[a]) for a in order]))
        changed = {
            field: moved(value, orders, made) if type(value) is list else one(value)
            for field, value in zip(s._fields, s)
            if type(value) is list or isinstance(value, E)
        }
        return s._replace(**changed)

    return [each(s) for s in body]
