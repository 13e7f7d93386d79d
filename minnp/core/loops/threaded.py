"""Loops whose turns run on several threads: asked for with `prange`, or those of a batch, whose examples are apart.

The outermost loop of a program is cut into pieces, each the same program with fewer turns. How many turns a piece has
depends on their number alone, so the results are the same bits on any number of threads. A variable that a turn reads
before it assigns it is carried from turn to turn: such a loop is not cut. Where a piece fails, or NumPy might warn, the
arrays are as they were, and the loop runs once more, from its first turn to its last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..cpu import threads
from ..llvm import engine
from ..llvm.engine import RANGES, Ranges
from .batched import read_first
from .compiled import Code
from .ir import INT, Assign, Block, Call, Check, E, For, Input, Leave, Permute, Program, View, const, statements
from .lowering import FIRST, MET, Lowering
from .warned import asked

PIECES, LEAST = 16, 1 << 15  # pieces of a loop; numbers in the arrays of a batch that several threads take
BEGIN, END = "piece.begin", "piece.end"  # the turns of a piece


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
    if loop is None or not loop.asked:
        inner = any(type(s) is For and s.asked for s in statements(program.body))
        return None, "prange in another loop, or with an else" if inner else ""
    if any(type(s) is Call for s in statements(program.body)):
        return None, "a function that calls itself in prange"
    if any(type(s) not in (Assign, Check, View, Permute) for s in before):
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
    if carried or outputs & assigned - always:
        name = min(carried or outputs & assigned - always)
        return None, f"{name.rstrip('?#')}, which prange carries from turn to turn"
    piece = Program(f"{program.name}_piece")
    piece.__dict__.update({k: v for k, v in program.__dict__.items() if k != "name"})
    piece.kinds = {**program.kinds, BEGIN: INT, END: INT}
    piece.inputs = [*program.inputs, Input(BEGIN, INT, None, False), Input(END, INT, None, False)]
    at = lambda end: E("add", (loop.start, E("mul", (E("var", (end,), INT), const(loop.step)), INT)), INT)
    stop = E("min" if loop.step > 0 else "max", (loop.stop, at(END)), INT)
    piece.body = _put(program.body, loop, loop._replace(start=at(BEGIN), stop=stop))
    return piece, ""


def _put(body: list, old: For, new: For) -> list:
    swap = lambda s: new if s is old else Block(s.label, _put(s.body, old, new)) if type(s) is Block else s
    return [swap(s) for s in body]


class Pieces(Code):
    """The code of a piece of a loop, and how all of them are called. `whole`: the code of the loop."""

    def __init__(self, piece: Program, whole: Code, turns: Callable, least: int) -> None:
        self.whole, self.turns, self.least = whole, turns, least
        super().__init__(piece, whole.failed)
        self.restores = self.warns or any(type(s) is Check for s in statements(piece.body))
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
            found = self.ranges[key] = self.built_ranges(key)
        found.run(1, count, 1 if threads.alone() else threads.num_threads(), slots, *arrays)
        if slots[:, 0].any() or (warns and slots[:, MET].any()):
            for a, was in restored:
                a[...] = was
            return self.alone(*values, donate=donate)
        return (*results, *self.numbers_of(slots[-1]))

    def built_ranges(self, contiguous: tuple) -> Ranges:
        """The machine code of a piece."""
        lowering = Lowering(self.program, list(contiguous), ranges=True)
        machine = engine.machine()
        assert machine is not None
        entry, others = lowering.text()
        code = machine.assemble(f"{others}\ndefine {RANGES} {{\n{entry}}}\n", optimise=2)
        return Ranges(code, "kernel")
