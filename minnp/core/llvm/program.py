"""Programs: a list of steps (steps.py) on arrays of known shapes, as one machine-code function.

The result is either *small*, one call that does everything on arrays in C order, or a single nest for large arrays that
is called for ranges of its first axis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as onp

from . import engine
from .code import Code, Lane, scalar_type
from .nest import MemRef, Nest, Operand, Reduction, dense, fill
from .rows import accumulator, start_of
from .steps import (
    Framed,
    Input,
    Loop,
    Map,
    Product,
    Reduce,
    Solve,
    Value,
    View,
    dying,
    in_memory,
    in_place,
    is_weak,
    schedule,
)

STACK = 1 << 16  # bytes of intermediate results that a small program keeps on the stack, about
SCRATCH = 1 << 23  # and in all: the rest lies in memory of its own, for the interpreter runs one call at a time


class Writer:
    """A program being written: where its values lie, and the code so far."""

    def __init__(
        self,
        values: Sequence[Value],
        results: Sequence[Value],
        small: bool,
        strides: dict[Value, tuple[int, ...]] | None = None,
    ) -> None:
        self.strides = strides or {}
        self.values, self.results, self.small = values, results, small
        self.inputs = [v for v in values if isinstance(v, Input)]
        self.solved = [v for v in values if isinstance(v, Solve)]
        self.steps = schedule(values)
        self.needed = in_memory(self.steps, results)
        self.becomes = in_place(self.steps, results) if small else {}
        self.code = Code(0, block="start")  # behind the room on the stack (`function`)
        self.memrefs: dict[Value, MemRef] = {}
        self.accumulators: list[tuple[Reduce, onp.dtype, bool]] = []
        self.scratch, self.room, self.effort = 0, 0, 0.0
        self.made: dict[str, int] = {}  # memory for intermediate results, and its size
        self.spare: dict[int, list[str]] = {}  # by its size, that of which nobody reads any more what lies there
        self.width = max([v.dtype.itemsize for v in values if v.dtype.kind != "b" and not is_weak(v)], default=4)

    def lanes(self, n: int) -> int:
        """Elements of a vector for rows of n: all of a short row, else two registers of the widest dtype."""
        found = engine.machine()
        assert found is not None
        most = found.vector_bytes // min(max(self.width, 4), 8) * 2
        return most if n >= most else 1 << max(n - 1, 1).bit_length()

    def make(self, v: Value) -> MemRef:
        """Memory for a value."""
        size = -(-max(prod(v.shape) * v.dtype.itemsize, 1) // 64) * 64
        spare = self.spare.get(size)
        if spare:
            name = spare.pop()
        elif self.scratch + size <= STACK or not self.small:
            name = self.code.room(f"[{size} x i8], align 64")
            self.scratch += size
        else:
            name = self.code.emit(f"getelementptr i8, ptr @kernel.room, i64 {self.room}")
            self.room += size
            self.scratch += size
        if self.small:
            self.made[name] = size
        memref = self.memrefs[v] = dense(name, v.shape, v.dtype)
        return memref

    def memref(self, v: Value) -> MemRef:
        v = self.becomes.get(v, v)
        found = self.memrefs.get(v)
        return found if found is not None else self.make(v)

    def free(self, memref: MemRef) -> None:
        """What a memref shows is read no more; arguments stay."""
        size = self.made.get(memref.base)
        if size is not None:
            self.spare.setdefault(size, []).append(memref.base)

    def part(self, memref: MemRef, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]) -> MemRef:
        """Part of a device: a view of it."""
        base = self.code.emit(f"getelementptr i8, ptr {memref.base}, i64 {offset}") if offset else memref.base
        return MemRef(base, shape, strides, memref.dtype)

    # -------------------------------------------------------------- one nest
    def body(self, loop: Loop, loads: list[Value]) -> Callable:
        def emit(code: Code, lanes: list[Lane]) -> list[Lane]:
            known: dict[Value, Lane] = dict(zip(loads, lanes))
            for m in loop.maps:
                y = m.emit(code, *[known[r] if isinstance(r, Value) else r for r in m.reads])
                known[m] = code.cast(y, m.dtype) if isinstance(y, Lane) else code.number(y, m.dtype)
            self.known = known
            return [known[v] for v in self.wanted]

        return emit

    def nest(self, loop: Loop, targets: dict[Reduce, Operand], bounds: tuple[str, str] | None = None) -> Nest:
        """The nest of a loop, whose reductions accumulate into `targets`."""
        own = set(loop.maps)
        reads = [r for m in loop.maps for r in m.reads if isinstance(r, Value)] + [r.reads[0] for r in loop.reductions]
        loads = list(dict.fromkeys(r for r in reads if r not in own))
        stored = [m for m in loop.maps if m in self.needed]
        reduced = [r.reads[0] for r in loop.reductions]
        self.wanted = [*stored, *reduced]
        frame = lambda v: v.starts if isinstance(v, Framed) else None
        operands = [Operand(self.memref(v), self.memref(v).spread(loop.shape), frame(v)) for v in loads]
        stores = [(i, Operand(self.memref(m), self.memref(m).spread(loop.shape))) for i, m in enumerate(stored)]
        reductions = [Reduction(r.name, len(stored) + i, targets[r]) for i, r in enumerate(loop.reductions)]
        return Nest(self.code, loop.shape, self.body(loop, loads), operands, stores, reductions, bounds)

    def small_loop(self, loop: Loop) -> None:
        targets, finish = {}, []
        for r in loop.reductions:
            shape = tuple(n for i, n in enumerate(loop.shape) if i not in r.axes)
            last = max((i for i, n in enumerate(loop.shape) if n != 1), default=-1)
            kind = accumulator(r.name, r.dtype, last in r.axes)
            out = self.memref(r)
            lacking = dense(out.base, shape, r.dtype)
            if kind == r.dtype and r.count == 1:
                kept = lacking
            else:
                kept = self.make(Value(shape, kind))
                finish.append((r, kept, lacking))
            fill(self.code, kept, start_of(r.name, kind), self.lanes(shape[-1] if shape else 1))
            targets[r] = Operand(kept, kept.kept(r.axes, loop.shape))
        nest = self.nest(loop, targets)
        nest.write(self.lanes(nest.dims[-1] if nest.dims else 1))
        for r, kept, out in finish:
            divided = lambda code, x, r=r: [code.cast(x[0] / r.count if r.count != 1 else x[0], r.dtype)]
            loads, stores = [Operand(kept, kept.strides)], [(0, Operand(out, out.strides))]
            Nest(self.code, out.shape, divided, loads, stores).write(self.lanes(out.shape[-1] if out.shape else 1))
            self.free(kept)

    def product(self, step: Product) -> None:
        """Call a BLAS, which takes everything by its address."""
        a, b, c = (self.memref(v).base for v in (*step.reads, step))
        integers = [self.code.constant(f"i{step.bits}", i) for i in step.sizes]
        one, zero = (self.code.constant(scalar_type(step.dtype), f"{x:.1f}") for x in (1, 0))
        flags = [self.code.constant("i8", ord(f)) for f in step.flags]
        args = [*flags, *integers[:3], one, b, integers[3], a, integers[4], zero, c, integers[5]]
        self.code.do(f"call void inttoptr (i64 {step.address} to ptr)({', '.join(f'ptr {x}' for x in args)})")

    def solve(self, step: Solve) -> None:
        """Call LAPACK, which leaves the solution where the right hand side was, and factors where the matrix was."""
        n, integer = step.shape[-1], f"i{step.bits}"
        factors, target = self.make(Value((n, n), step.dtype)), self.memref(step)
        self.copy(step.reads[0], factors)
        if len(step.reads) > 1:
            self.copy(step.reads[1], target)
        else:
            self.copy(0, target)
            self.copy(1, self.part(target, 0, ((n + 1) * step.dtype.itemsize,), (n,)))
        size, count = (self.code.constant(integer, i) for i in (n, prod(step.shape) // n))
        pivots, info = self.code.room(f"[{n} x {integer}]"), self.code.room(integer)
        args = [size, count, factors.base, size, pivots, target.base, size, info]
        self.code.do(f"call void inttoptr (i64 {step.address} to ptr)({', '.join(f'ptr {x}' for x in args)})")
        bad = self.code.emit(f"icmp ne {integer} {self.code.emit(f'load {integer}, ptr {info}')}, 0")
        fine = self.code.label("solved")
        self.code.do(f"br i1 {bad}, label %singular{self.solved.index(step)}, label %{fine}")
        self.code.begin(fine)
        self.free(factors)

    def copy(self, source: Any, target: MemRef) -> None:
        """Write a value, or a number, into a memref."""
        stores = [(0, Operand(target, target.strides))]
        loads = []
        if isinstance(source, Value):
            memref = self.memref(source)
            loads = [Operand(memref, memref.spread(target.shape))]
        body = lambda code, x: [code.cast(x[0] if x else code.number(source, target.dtype), target.dtype)]
        nest = Nest(self.code, target.shape, body, loads, stores)
        nest.write(self.lanes(nest.dims[-1] if nest.dims else 1))

    # -------------------------------------------------------------- whole functions
    def small_text(self) -> engine.Text | None:
        """A function (*inputs, *results) of arrays in C order, which refuses (NotImplemented) inputs that are none, or
        have another shape or dtype, and returns which of the matrices to solve by was singular, if one was."""
        self.arguments(0, self.inputs, checked=True)
        self.arguments(len(self.inputs), self.results)
        last = dying(self.steps, self.results, self.becomes)
        for i, step in enumerate(self.steps):
            if isinstance(step, Loop):
                self.small_loop(step)
            elif isinstance(step, Product):
                self.product(step)
            elif isinstance(step, Solve):
                self.solve(step)
            elif isinstance(step, View):
                self.memrefs[step] = self.part(self.memref(step.reads[0]), step.offset, step.strides, step.shape)
            else:
                target = self.memref(step)
                if step.reads[0] is not None and self.becomes.get(step.reads[0]) is not self.becomes.get(step, step):
                    self.copy(step.reads[0], target)
                for new, where in zip(step.reads[1:], step.parts):
                    self.copy(new, self.part(target, *where))
            for v in last.get(i, ()):
                self.free(self.memrefs[v])
        if self.scratch > SCRATCH:
            return None
        return self.function()

    def large_text(self) -> engine.Text | None:
        """A function of (inputs, results, accumulators), begin, end, part, that computes a range of the first axis."""
        code = self.code
        if len(self.steps) != 1 or not isinstance(self.steps[0], Loop):
            return None
        loop = self.steps[0]
        self.arguments(0, self.inputs)
        if any(isinstance(v, Framed) and 0 in self.memrefs[v].strides for v in self.inputs):
            return None
        stored = [v for v in self.results if isinstance(v, Map)]
        count = len(self.inputs)
        self.arguments(count, stored)
        count += len(stored)
        targets = {}
        for i, r in enumerate(loop.reductions):
            shape = tuple(d for k, d in enumerate(loop.shape) if k not in r.axes)
            last = max(k for k, d in enumerate(loop.shape) if d != 1)
            kind = accumulator(r.name, r.dtype, last in r.axes)
            kept = dense(self.data(count + i), shape, kind)
            targets[r] = Operand(kept, kept.kept(r.axes, loop.shape))
            self.accumulators.append((r, kind, False))
        nest = self.nest(loop, targets, ("%begin", "%end"))
        self.first_dim = nest.first_dim()
        for i, r in enumerate(loop.reductions):
            o = targets[r]
            if not nest.lies[id(o)] or not nest.lies[id(o)][0]:  # ranges meet in one memref: each part has its own
                size = prod(o.memref.shape) * o.memref.dtype.itemsize
                offset = code.emit(f"mul i64 %part, {size}")
                o.memref.base = code.emit(f"getelementptr i8, ptr {o.memref.base}, i64 {offset}")
                self.accumulators[i] = (r, o.memref.dtype, True)
        before, lanes = len(code.lines), self.lanes(nest.dims[-1])
        nest.write(lanes)
        self.effort = (len(code.lines) - before) / lanes  # instructions an element, about
        return self.function()

    def constant(self, name: str) -> str:
        return f"inttoptr (i64 {engine.symbol(name)} to ptr)"

    def give(self, name: str) -> str:
        """Code that returns a new reference to an object of the Python API."""
        return f"  call void {self.constant('Py_IncRef')}(ptr {self.constant(name)})\n  ret ptr {self.constant(name)}"

    def field(self, of: str, offset: int, type_: str) -> str:
        at = self.code.emit(f"getelementptr i8, ptr {of}, i64 {offset}")
        return self.code.emit(f"load {type_}, ptr {at}")

    def data(self, i: int, expected: Value | None = None) -> str:
        """The data pointer of argument i, which is refused unless it is an array in C order as expected, if that is
        given."""
        code = self.code
        array = self.field("%args", 8 * i, "ptr")
        if expected is not None:
            letters = int.from_bytes(engine.letters(expected.dtype), "little")
            facts = [
                (
                    "i32",
                    code.emit(f"and i32 {self.field(array, engine.FLAGS, 'i32')}, {engine.ORDERED}"),
                    engine.ORDERED,
                ),
                ("i32", self.field(array, engine.AXES, "i32"), len(expected.shape)),
            ]
            bad = self.differ(facts)  # else the shape below would be read beyond its end
            fine = code.label("array")
            code.do(f"br i1 {bad}, label %refuse, label %{fine}")
            code.begin(fine)
            kind = self.field(self.field(array, engine.DTYPE, "ptr"), engine.LETTERS, "i32")
            facts = [("i32", code.emit(f"and i32 {kind}, {0xFFFFFF}"), letters)]
            if expected.shape:
                shape = self.field(array, engine.SHAPE, "ptr")
                facts += [("i64", self.field(shape, 8 * axis, "i64"), n) for axis, n in enumerate(expected.shape)]
            bad = self.differ(facts)
            fine = code.label("expected")
            code.do(f"br i1 {bad}, label %refuse, label %{fine}")
            code.begin(fine)
        return self.field(array, engine.DATA, "ptr")

    def differ(self, facts: Sequence[tuple[str, str, int]]) -> str:
        """Whether one of several (type, value, expected number) is not as expected."""
        code = self.code
        bad = [code.emit(f"icmp ne {type_} {found}, {n}") for type_, found, n in facts]
        return functools.reduce(lambda a, b: code.emit(f"or i1 {a}, {b}"), bad)

    def arguments(self, first: int, values: Sequence[Value], checked: bool = False) -> None:
        for i, v in enumerate(values):
            base = self.data(first + i, v if checked else None)
            strides = self.strides[v] if v in self.strides else dense("", v.shape, v.dtype).strides
            self.memrefs[v] = MemRef(base, v.shape, strides, v.dtype)

    def function(self) -> engine.Text:
        code = self.code
        refusal = f"refuse:\n{self.give('_Py_NotImplementedStruct')}\n" if self.small and self.inputs else ""
        number = self.constant("PyLong_FromLong")
        for i, _ in enumerate(self.solved):
            refusal += f"singular{i}:\n  %s{i} = call ptr {number}(i64 {i})\n  ret ptr %s{i}\n"
        end = self.give("_Py_NoneStruct") if self.small else "  ret void"
        lines = [*code.entry, "  br label %start\nstart:", *code.lines, end]
        return engine.Text(
            "\n".join(lines) + "\n" + refusal, {**code.declared, **code.helpers}, not self.small, self.room
        )
