"""Floating point operations of a program: how often its loops run, times what is in them.

Of a branch the longer way counts. Loops whose number of turns the data decide (`while`, `break`, a bound that is an
element of an array) are not counted: then nothing is known of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rows.primitive import TABLE, Meta
from .ir import (
    Alloc,
    Array,
    Assign,
    Block,
    Check,
    E,
    For,
    If,
    Leave,
    Permute,
    Program,
    Store,
    View,
    expressions,
    statements,
    walk,
)
from .operations import OPERATORS

ROWS = {"sub": "subtract", "mul": "multiply", "div": "divide", "floordiv": "floor_divide", "mod": "remainder"}
ROWS |= {"pow": "power", "neg": "negative", "atan2": "arctan2", "add": "add"}
WHOLE = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "copy", "cast")
MOST = 20_000  # statements that are looked at, again and again where a bound moves


class Unknown(Exception):
    """The number of a loop's turns is not known."""


def operations(program: Program, given: Sequence[Any]) -> int | None:
    """Floating point operations of one run on inputs of these shapes (a number's own value, where it is known); None if
    that is not known."""
    known: dict[Any, int] = {}
    for i, x in zip(program.given, given):
        if i.ndim is None:
            if type(x) is int:
                known[i.name] = x
        else:
            known |= {(i.name, axis): n for axis, n in enumerate(x.shape)}
    try:
        return Count(program).body(program.body, known, set())
    except Unknown:
        return None


class Count:
    def __init__(self, program: Program) -> None:
        self.arrays, self.left = program.arrays, MOST

    def body(self, body: list, known: dict[Any, int], labels: set[str]) -> int:
        """The operations of statements. `known` gets what is known of integers and lengths behind them; `labels` are
        those whose end is near enough to be left."""
        total = 0
        for s in body:
            self.left -= 1
            if self.left < 0:
                raise Unknown
            if type(s) is Check and s.condition.op == "const" and not s.condition.args[0]:
                break  # Python runs the loop
            if type(s) in (Assign, Store, Check):
                total += sum(costs(e) for e in expressions(s)) if type(s) is not Check else 0
                if type(s) is Assign:
                    self.learn(known, s.name, self.value(s.value, known))
            elif type(s) is View:
                lengths = [1 if p[0] == "new" else self.value(p[2], known) for p in s.spec if p[0] != "index"]
                self.shape(known, s.name, lengths)
            elif type(s) is Permute:
                self.shape(known, s.name, [known.get((s.base, axis)) for axis in s.axes])
            elif type(s) is Alloc:
                self.shape(known, s.name, [self.value(d, known) for d in s.dims])
            elif type(s) is If:
                ways = [dict(known), dict(known)]
                total += max(self.body(b, k, labels) for b, k in zip((s.then, s.orelse), ways))
                both = {n: x for n, x in ways[0].items() if ways[1].get(n) == x}
                known.clear()
                known.update(both)
            elif type(s) is Block:
                total += self.body(s.body, known, labels | {s.label})
            elif type(s) is For:
                total += self.loop(s, known)
            elif type(s) is Leave:
                if s.label not in labels:
                    raise Unknown
                break
            else:
                raise Unknown
        return total

    def loop(self, s: For, known: dict[Any, int]) -> int:
        ends = [x if type(x) is int else self.value(x, known) for x in (s.start, s.stop, s.step)]
        if None in ends:
            raise Unknown
        turns = range(*ends)
        for name in {x.name for x in statements(s.body) if type(x) in (Assign, View, Permute, Alloc)}:
            self.forget(known, name)
        try:
            inside = dict(known)
            inside.pop(s.var, None)
            return len(turns) * self.body(s.body, inside, set()) if turns else 0
        except Unknown:
            return sum(self.body(s.body, {**known, s.var: k}, set()) for k in turns)

    def learn(self, known: dict[Any, int], name: str, value: int | None) -> None:
        if value is None:
            known.pop(name, None)
        else:
            known[name] = value

    def shape(self, known: dict[Any, int], name: str, lengths: list) -> None:
        self.forget(known, name)
        for axis, n in enumerate(lengths):
            self.learn(known, (name, axis), n)

    def forget(self, known: dict[Any, int], name: str) -> None:
        known.pop(name, None)
        array = self.arrays.get(name)
        for axis in range(array.ndim if isinstance(array, Array) else 0):
            known.pop((name, axis), None)

    def value(self, e: E, known: dict[Any, int]) -> int | None:
        """An integer, where it is known."""
        if e.op == "const":
            return int(e.args[0]) if e.kind.letter in "iub" else None
        if e.op == "var":
            return known.get(e.args[0])
        if e.op == "dim":
            return known.get((e.args[0], e.args[1]))
        if e.kind.letter not in "iu" or e.op not in WHOLE:
            return None
        args = [self.value(a, known) for a in e.args if isinstance(a, E)]
        if None in args or (e.op in ("floordiv", "mod") and not args[1]):
            return None
        if e.op in ("copy", "cast"):
            return args[0]
        return {"min": min, "max": max}.get(e.op, OPERATORS.get(e.op))(*args)


def costs(e: E) -> int:
    """The floating point operations of an expression, as the rows count them."""
    return sum(cost(x) for x in walk(e) if x.kind.letter in "fc")


def cost(e: E) -> int:
    row = TABLE.get(ROWS.get(e.op, e.op))
    if row is None or row.flops is None or e.op in ("copy", "cast", "load", "var", "const"):
        return 0
    one = Meta((), e.kind.dtype)
    return int(row.flops([one for a in e.args if isinstance(a, E)], {}, one))
