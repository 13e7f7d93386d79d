"""Loop nests: elementwise code over an iteration space, with stores and reductions, on strided memory.

The last axis runs in vectors, its remainder under a mask. An operand is memory seen with one stride for each axis of
the space; broadcasting is a stride of 0, and so is the axis along which a reduction accumulates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as onp

from .code import BOOL, Code, Lane, scalar_type
from .rows import COMBINE, start_of


@dataclass
class MemRef:
    """Memory: a pointer in the generated code, and how an array lies there."""

    base: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    dtype: onp.dtype

    def spread(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Its strides in an iteration space that it broadcasts to."""
        lead = len(shape) - len(self.shape)
        own = [0 if n == 1 else s for n, s in zip(self.shape, self.strides)]
        return (0,) * lead + tuple(own)

    def kept(self, axes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
        """Its strides in the space `shape`, of which it is the reduction over `axes` (which it lacks)."""
        own = iter(self.strides)
        return tuple(0 if i in axes else next(own) for i in range(len(shape)))


def dense(base: str, shape: Sequence[int], dtype: onp.dtype) -> MemRef:
    """A memref in C order."""
    strides, step = [], dtype.itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return MemRef(base, tuple(shape), tuple(reversed(strides)), dtype)


@dataclass
class Operand:
    """What a nest reads, stores, or accumulates into: a memref, with its strides in the nest's space."""

    memref: MemRef
    strides: tuple[int, ...]
    frame: tuple[int, ...] | None = None  # where it begins on each axis of the nest's space, which is zero around it


@dataclass
class Reduction:
    """`name` (a key of COMBINE) of the nest's value number `value`, kept in the dtype of the operand's memref."""

    name: str
    value: int
    operand: Operand


def collapse(
    shape: Sequence[int], strides: Sequence[Sequence[int]], framed: bool = False
) -> tuple[list[int], list[list[int]]]:
    """The same space with axes of length 1 dropped and axes merged that lie one behind the other for every operand; as
    it is if one of them is `framed`."""
    axes = [i for i, n in enumerate(shape) if n != 1 or framed]
    dims = [shape[i] for i in axes]
    lies = [[s[i] for i in axes] for s in strides]
    k = -1 if framed else len(dims) - 2
    while k >= 0:
        if all(s[k] == s[k + 1] * dims[k + 1] for s in lies):
            dims[k : k + 2] = [dims[k] * dims[k + 1]]
            for s in lies:
                s[k : k + 2] = [s[k + 1]]
        k -= 1
    return dims, lies


class Nest:
    """One loop nest being written into a Code.

    body      (code, loaded Lanes) -> Lanes: the values of one step
    loads     operands read; stores: (number of a value, operand) written; reductions
    bounds    names of (begin, end) on the first axis after collapsing, or None: all of it
    """

    def __init__(
        self,
        code: Code,
        shape: Sequence[int],
        body: Callable,
        loads: Sequence[Operand],
        stores: Sequence[tuple[int, Operand]],
        reductions: Sequence[Reduction] = (),
        bounds: tuple[str, str] | None = None,
    ) -> None:
        self.code, self.body = code, body
        self.loads, self.stores, self.reductions = loads, stores, reductions
        operands = [*loads, *(o for _, o in stores), *(r.operand for r in reductions)]
        self.framed = [o for o in loads if o.frame is not None]
        self.dims, lies = collapse(shape, [o.strides for o in operands], bool(self.framed))
        self.lies = dict(zip(map(id, operands), lies))
        self.operands, self.bounds = operands, bounds
        self.widths: dict[int, str] = {}  # of framed operands: how many elements the row has

    def first_dim(self) -> int:
        """The length of the first axis, which can be cut into ranges."""
        return self.dims[0] if self.dims else 1

    # -------------------------------------------------------------- loops
    def write(self, lanes: int) -> None:
        """Write the loops, with vectors of at most `lanes` elements."""
        code = self.code
        if not self.dims:
            code.lanes = 0
            self.rows([], self.row_pointers([]))
            return
        code.lanes = lanes
        self.loop(0, [])

    def loop(self, axis: int, indices: list[str]) -> None:
        code = self.code
        low, high = self.bounds if self.bounds and axis == 0 else ("0", str(self.dims[axis]))
        if axis == len(self.dims) - 1:
            self.rows([low, high], self.row_pointers(indices))
            return
        counter = code.room("i64")
        code.do(f"store i64 {low}, ptr {counter}")
        head, inside, done = code.label("head"), code.label("inside"), code.label("done")
        code.do(f"br label %{head}")
        code.begin(head)
        i = code.emit(f"load i64, ptr {counter}")
        more = code.emit(f"icmp slt i64 {i}, {high}")
        code.do(f"br i1 {more}, label %{inside}, label %{done}")
        code.begin(inside)
        self.loop(axis + 1, [*indices, i])
        following = code.emit(f"add i64 {i}, 1")
        code.do(f"store i64 {following}, ptr {counter}")
        code.do(f"br label %{head}")
        code.begin(done)

    def row_pointers(self, indices: list[str]) -> dict[int, str]:
        """For every operand a pointer to its first element of this row."""
        code, pointers = self.code, {}
        known: dict[tuple, str] = {}
        for o in self.operands:
            p, lies = o.memref.base, self.lies[id(o)]
            if o.frame is not None:  # which of its rows has no more elements here than lie in it
                before = sum(start * step for start, step in zip(o.frame, lies))
                p = code.emit(f"getelementptr i8, ptr {p}, i64 {-before}")
                self.widths[id(o)] = self.width(o, indices)
            for axis, i in enumerate(indices):
                if lies[axis]:
                    key = (i, lies[axis])
                    offset = known.get(key)
                    if offset is None:
                        offset = known[key] = code.emit(f"mul i64 {i}, {lies[axis]}")
                    p = code.emit(f"getelementptr i8, ptr {p}, i64 {offset}")
            pointers[id(o)] = p
        return pointers

    def width(self, o: Operand, indices: list[str]) -> str:
        """How many elements a framed operand has in this row."""
        code, width, shape = self.code, str(o.memref.shape[-1]), o.memref.shape
        assert o.frame is not None
        for i, start, n, whole in zip(indices, o.frame, shape, self.dims):
            if n < whole:
                place = code.emit(f"sub i64 {i}, {start}")
                inside = code.emit(f"icmp ult i64 {place}, {n}")
                width = code.emit(f"select i1 {inside}, i64 {width}, i64 0")
        return width

    def rows(self, span: list[str], pointers: dict[int, str]) -> None:
        """The innermost loop: whole vectors, then the rest under a mask."""
        code = self.code
        still = {id(o): self.load(o, pointers, None, None) for o in self.loads if not span or not self.inner(o)}
        kept = self.accumulators(bool(span))
        if not span:
            self.step(None, None, pointers, still, kept)
            return
        low, high = span
        static = low == "0" and high.isdigit()
        if static and int(high) <= code.lanes:  # the row is one vector
            self.step(None, None if int(high) == code.lanes else self.first_lanes(int(high)), pointers, still, kept)
            self.flush(pointers, kept)
            return
        counter = code.room("i64")
        code.do(f"store i64 {low}, ptr {counter}")
        if not static or int(high) >= code.lanes:
            head, inside, done = code.label("vectors"), code.label("vector"), code.label("rest")
            code.do(f"br label %{head}")
            code.begin(head)
            j = code.emit(f"load i64, ptr {counter}")
            after = code.emit(f"add i64 {j}, {code.lanes}")
            more = code.emit(f"icmp sle i64 {after}, {high}")
            code.do(f"br i1 {more}, label %{inside}, label %{done}")
            code.begin(inside)
            if self.framed:
                edge, middle, both = code.label("edge"), code.label("middle"), code.label("both")
                code.do(f"br i1 {self.within(j)}, label %{middle}, label %{edge}")
                code.begin(edge)
                self.step(j, None, pointers, still, kept, True)
                code.do(f"br label %{both}")
                code.begin(middle)
                self.step(j, None, pointers, still, kept)
                code.do(f"br label %{both}")
                code.begin(both)
            else:
                self.step(j, None, pointers, still, kept)
            code.do(f"store i64 {after}, ptr {counter}")
            code.do(f"br label %{head}")
            code.begin(done)
        if static and int(high) % code.lanes:  # of a mask that it knows, LLVM makes no branches, which take long
            j, left = str(int(high) // code.lanes * code.lanes), int(high) % code.lanes
            self.step(j, self.first_lanes(left), pointers, still, kept, True)
        elif not static:
            tail, done = code.label("tail"), code.label("row")
            j = code.emit(f"load i64, ptr {counter}")
            left = code.emit(f"sub i64 {high}, {j}")
            more = code.emit(f"icmp sgt i64 {left}, 0")
            code.do(f"br i1 {more}, label %{tail}, label %{done}")
            code.begin(tail)
            n = code.emit(f"trunc i64 {left} to i32")
            wide, all_of = f"<{code.lanes} x i32>", self.all_of("i32", n)
            count = ", ".join(f"i32 {k}" for k in range(code.lanes))
            mask = code.emit(f"icmp ult {wide} <{count}>, {all_of}")
            self.step(j, mask, pointers, still, kept, True)
            code.do(f"br label %{done}")
            code.begin(done)
        self.flush(pointers, kept)

    def first_lanes(self, count: int) -> str:
        """The mask of so many lanes."""
        return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(self.code.lanes))}>"

    # -------------------------------------------------------------- one step
    def inner(self, o: Operand) -> int:
        """The operand's stride along the innermost axis."""
        lies = self.lies[id(o)]
        return lies[-1] if lies else 0

    def all_of(self, type_: str, value: str) -> str:
        """A vector of an integer."""
        code, wide = self.code, f"<{self.code.lanes} x {type_}>"
        one = code.emit(f"insertelement {wide} poison, {type_} {value}, i32 0")
        return code.emit(f"shufflevector {wide} {one}, {wide} poison, <{code.lanes} x i32> zeroinitializer")

    def within(self, j: str) -> str:
        """Whether a vector lies inside of all framed operands."""
        code, all_ = self.code, "true"
        for o in self.framed:
            assert o.frame is not None
            place = code.emit(f"sub i64 {j}, {o.frame[-1]}")
            last = code.emit(f"sub i64 {self.widths[id(o)]}, {code.lanes}")
            inside = code.emit(f"icmp sle i64 {place}, {last}")
            begun = code.emit(f"icmp sge i64 {place}, 0")
            all_ = code.emit(f"and i1 {all_}, {code.emit(f'and i1 {inside}, {begun}')}")
        return all_

    def present(self, o: Operand, j: str, mask: str | None) -> str:
        """Which lanes of a vector lie inside of a framed operand, of those in a mask."""
        code = self.code
        assert o.frame is not None
        wide, begin = f"<{code.lanes} x i64>", self.all_of("i64", code.emit(f"sub i64 {j}, {o.frame[-1]}"))
        place = code.emit(f"add {wide} <{', '.join(f'i64 {k}' for k in range(code.lanes))}>, {begin}")
        inside = code.emit(f"icmp ult {wide} {place}, {self.all_of('i64', self.widths[id(o)])}")
        return inside if mask is None else code.emit(f"and <{code.lanes} x i1> {inside}, {mask}")

    def step(
        self, j: str | None, mask: str | None, pointers: dict, still: dict, kept: dict, edge: bool = False
    ) -> None:
        """One vector; `edge`: of framed operands some lanes may lie outside."""
        code = self.code
        loaded = []
        for o in self.loads:
            own = self.present(o, j, mask) if edge and o.frame is not None and j is not None else mask
            loaded.append(still.get(id(o)) or self.load(o, pointers, j, own))
        values = self.body(code, loaded)
        for number, o in self.stores:
            self.store(code.cast(values[number], o.memref.dtype), o, pointers, j, mask)
        for r in self.reductions:
            dtype = r.operand.memref.dtype
            value = code.cast(values[r.value], dtype)
            combine = COMBINE[r.name][0]
            if id(r) in kept:
                t, at = kept[id(r)]
                if mask is not None:
                    value = code.select(Lane(code, mask, BOOL), value, code.number(start_of(r.name, dtype), dtype))
                old = Lane(code, code.emit(f"load {t}, ptr {at}"), dtype)
                code.do(f"store {t} {combine(old, value).name}, ptr {at}")
            else:
                old = self.load(r.operand, pointers, j, mask)
                self.store(combine(old, value), r.operand, pointers, j, mask)

    def at(self, o: Operand, pointers: dict, j: str | None) -> str:
        code, stride = self.code, self.inner(o)
        if j is None or not stride:
            return pointers[id(o)]
        offset = code.emit(f"mul i64 {j}, {stride}")
        return code.emit(f"getelementptr i8, ptr {pointers[id(o)]}, i64 {offset}")

    def spread_pointers(self, p: str, stride: int) -> str:
        """A vector of pointers to the elements of a strided row from p on."""
        code = self.code
        offsets = ", ".join(f"i64 {k * stride}" for k in range(code.lanes))
        return code.emit(f"getelementptr i8, ptr {p}, <{code.lanes} x i64> <{offsets}>")

    def load(self, o: Operand, pointers: dict, j: str | None, mask: str | None) -> Lane:
        code, dtype, stride = self.code, o.memref.dtype, self.inner(o)
        size, held = dtype.itemsize, onp.dtype("u1") if dtype.kind == "b" else dtype
        one, p = scalar_type(held), self.at(o, pointers, j)
        if not code.lanes or not stride:
            name = code.emit(f"load {one}, ptr {p}, align {size}")
            if code.lanes:
                t = code.type(held)
                first = code.emit(f"insertelement {t} poison, {one} {name}, i32 0")
                name = code.emit(f"shufflevector {t} {first}, {t} poison, <{code.lanes} x i32> zeroinitializer")
        elif stride == size and mask is None:
            name = code.emit(f"load {code.type(held)}, ptr {p}, align {size}")
        else:
            t, bits = code.type(held), code.type(BOOL)
            if stride == size:
                full = f"@llvm.masked.load.{code.suffix(held)}.p0"
                code.declared[full] = f"declare {t} {full}(ptr, i32, {bits}, {t})"
                name = code.emit(f"call {t} {full}(ptr {p}, i32 {size}, {bits} {mask}, {t} zeroinitializer)")
            else:
                where = f"<{code.lanes} x ptr>"
                full = f"@llvm.masked.gather.{code.suffix(held)}.v{code.lanes}p0"
                code.declared[full] = f"declare {t} {full}({where}, i32, {bits}, {t})"
                pointed = self.spread_pointers(p, stride)
                chosen = mask or "splat (i1 true)"
                name = code.emit(
                    f"call {t} {full}({where} {pointed}, i32 {size}, {bits} {chosen}, {t} zeroinitializer)"
                )
        loaded = Lane(code, name, held)
        return code.cast(loaded, BOOL) if dtype.kind == "b" else loaded

    def store(self, value: Lane, o: Operand, pointers: dict, j: str | None, mask: str | None) -> None:
        code, size, stride = self.code, o.memref.dtype.itemsize, self.inner(o)
        if value.dtype.kind == "b":
            value = code.cast(value, onp.dtype("u1"))
        t, p = code.type(value.dtype), self.at(o, pointers, j)
        if not code.lanes or (stride == size and mask is None):
            code.do(f"store {t} {value.name}, ptr {p}, align {size}")
            return
        bits = code.type(BOOL)
        if stride == size:
            full = f"@llvm.masked.store.{code.suffix(value.dtype)}.p0"
            code.declared[full] = f"declare void {full}({t}, ptr, i32, {bits})"
            code.do(f"call void {full}({t} {value.name}, ptr {p}, i32 {size}, {bits} {mask})")
        else:
            where = f"<{code.lanes} x ptr>"
            full = f"@llvm.masked.scatter.{code.suffix(value.dtype)}.v{code.lanes}p0"
            code.declared[full] = f"declare void {full}({t}, {where}, i32, {bits})"
            pointed, chosen = self.spread_pointers(p, stride), mask or "splat (i1 true)"
            code.do(f"call void {full}({t} {value.name}, {where} {pointed}, i32 {size}, {bits} {chosen})")

    # -------------------------------------------------------------- reductions along the innermost axis
    def accumulators(self, vector: bool) -> dict[int, tuple[str, str]]:
        """Room for the reductions along the innermost axis, set to their start: id -> (type, pointer)."""
        code, kept = self.code, {}
        for r in self.reductions:
            if vector and not self.inner(r.operand):
                dtype = r.operand.memref.dtype
                t, at = code.type(dtype), code.room(code.type(dtype))
                code.do(f"store {t} {code.number(start_of(r.name, dtype), dtype).name}, ptr {at}")
                kept[id(r)] = (t, at)
        return kept

    def flush(self, pointers: dict, kept: dict) -> None:
        """Combine each accumulator's lanes, and the result with what its memref holds."""
        code = self.code
        for r in self.reductions:
            if id(r) not in kept:
                continue
            t, at = kept[id(r)]
            dtype, combine = r.operand.memref.dtype, COMBINE[r.name][0]
            value, lanes = Lane(code, code.emit(f"load {t}, ptr {at}"), dtype), code.lanes
            while lanes > 1:
                half = lanes // 2
                parts = []
                for start in (0, half):
                    picked = ", ".join(f"i32 {k}" for k in range(start, start + half))
                    parts.append(
                        code.emit(
                            f"shufflevector {code.type(dtype)} {value.name}, {code.type(dtype)} poison, "
                            f"<{half} x i32> <{picked}>"
                        )
                    )
                code.lanes = lanes = half
                value = combine(*[Lane(code, p, dtype) for p in parts])
            number = code.emit(f"extractelement {code.type(dtype)} {value.name}, i32 0")
            full, code.lanes = int(t[1:].split()[0]), 0
            p = pointers[id(r.operand)]
            held = onp.dtype("u1") if dtype.kind == "b" else dtype
            old = Lane(code, code.emit(f"load {scalar_type(held)}, ptr {p}"), held)
            total = combine(code.cast(old, dtype), Lane(code, number, dtype))
            self.store(total, r.operand, pointers, None, None)
            code.lanes = full


def fill(code: Code, memref: MemRef, value: Any, lanes: int) -> None:
    """Write a number into every element of a device."""
    o = Operand(memref, memref.strides)
    Nest(code, memref.shape, lambda c, _: [c.number(value, memref.dtype)], [], [(0, o)]).write(lanes)
