"""Derivatives of a typed program: other typed programs. That of forward mode computes tangents beside the numbers;
that of reverse mode runs the program forwards and then backwards.

Forwards, what the way back needs of a variable (places, factors, which branch, how many turns) goes to a tape of
numbers before the variable is bound anew, or before the loop that binds it, if nothing in the loop needs it; backwards
every statement runs in its adjoint form, the last first, and takes it from there. Elements of arrays that are not
written from there on are read again instead, and so are those of arrays that are read in deeper loops than they are
written in, or more often: the tape has what each store overwrote, and the way back undoes the stores. Other arrays are
not kept: what is written to one costs one number of tape if a factor was read from it, and nothing else. (Store-all
with restoring: Griewank and Walther, Evaluating Derivatives, 2nd ed., 2008, chapters 3 and 4; a loop in parts that run
again, each from what changes in it: chapter 12.) The result has a derivative by the same rules.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as onp

from .blocking import read_behind
from .extremes import shared
from .fused import fused
from .interchanged import interchanged
from .ir import (
    BOOL,
    INT,
    ROOM,
    TAPE,
    WORD,
    Alloc,
    Array,
    Assign,
    Block,
    Check,
    E,
    For,
    If,
    Input,
    Kind,
    Leave,
    Permute,
    Product,
    Program,
    Reshape,
    Store,
    View,
    While,
    const,
    constant,
    expressions,
    left_from,
    parts,
    places,
    read_times,
    statements,
    variables,
    walk,
)
from .iterative import iterative
from .operations import NotUnderstood
from .peeled import peeled
from .products import bounds, nest, positive, product, zero_where_zero
from .simplified import adds, bound, combined, exposed, forwarded, from_zero, loads, propagated, replaced, without_dead

F8 = Kind("f8")
FLAT = {"floor", "ceil", "trunc", "rint", "floordiv", "still"}  # whose derivative is zero
AT = f"{TAPE}.at"


def adjoint(program: Program, wanted: set[str], sparing: bool = False) -> Program:
    """The program of the cotangents of those of a program's inputs that are wanted, by their names.

    Its inputs are those of `program` and a cotangent for each result that has floating point numbers (arrays that are
    written, then numbers), besides what is made for it; its results are the cotangents of the arrays among the inputs
    on which a result depends, then of the numbers. Raises NotUnderstood for what has none.

    sparing   whether an outermost loop keeps what changes in it as it was before each of about as many parts as these
              have turns; the way back runs one part forwards again at a time
    """
    return _Adjoint(program, wanted, sparing).made()


def inexact(kind: Kind) -> bool:
    return kind.letter == "f"


def tangent(program: Program, wanted: set[str]) -> Program:
    """The program of the tangents of a program's results, along those of the inputs that are wanted, by their names.

    Its inputs are those of `program` and a tangent for each of `wanted` that has floating point numbers; its results
    are the tangents of the arrays that are written and depend on these, then those of such numbers. Raises
    NotUnderstood for what has none.
    """
    return _Tangent(program, wanted).made()


def varied(program: Program, wanted: set[str]) -> set[str]:
    """The variables and arrays of a program that depend on those of its inputs that are wanted, by their names. Raises
    NotUnderstood for what has no derivatives."""
    return _Derivative(program, wanted, "variation").varied


class _Derivative:
    """What both modes share: the program without views, and what in it depends on what is differentiated."""

    def __init__(self, program: Program, wanted: set[str], what: str) -> None:
        program = shared(iterative(program))
        both = {name for name in program.kinds.keys() & program.arrays.keys() if not name.endswith("!")}  # no rebound
        if both:
            raise NotUnderstood(f"the derivative of {min(both)}, an array first and a number later", program.line)
        if WORD in program.kinds.values():  # a tape has floats
            raise NotUnderstood("the derivative beside integers of 64 bits", program.line)
        if program.moving:
            raise NotUnderstood("the derivative of names that stand for several arrays", program.line)
        self.source, self.wanted = program, wanted
        self.unwritten: set[str] = set()  # what reads elements as they were given, of arrays that are not wanted
        self.old: dict[int, str] = {}  # a store that is undone -> the variable that has what was there
        self.counts = itertools.count()
        out = self.out = Program(f"{program.name}_{what}")
        out.file, out.line, out.elements = program.file, program.line, True
        out.mark = f"~{int(program.mark[1:] or 0) + 1}"
        out.kinds, out.arrays = dict(program.kinds), dict(program.arrays)
        self.body = self.prepared()
        self.products = self.find_products(self.body)
        self.find_active()
        user = int(program.mark[1:] or 0) == 0  # a derivative's own conversions are none of the program's
        if user and any(self.leaves(s.value) for s in statements(self.body) if type(s) in (Assign, Store)):
            raise NotUnderstood("a number of Python's made of what is differentiated", program.line)

    def prepared(self) -> list:
        return flattened(self.source)

    def find_products(self, body: list) -> dict[int, Product]:
        """The loops that are products of matrices and leave nothing else, by their ids."""
        behind = read_behind(self.source, body)
        nests = [s for s in statements(body) if type(s) is For and not s.exact]
        undone = lambda s: any(id(x) in self.old for x in statements([s]))
        free = lambda s: not bound([s]) & behind.get(id(s), bound([s])) and not undone(s)
        found = {id(s): p for s in nests if free(s) and (p := product(s))}
        self.nests = [s for s in nests if id(s) in found]  # the statements are kept, and with them their ids
        return found

    def fresh(self, what: str, kind: Kind) -> str:
        # names of this transformation must not be those of the one before
        name = f"{what}.{next(self.counts)}"
        while name in self.out.kinds:
            name = f"{what}.{next(self.counts)}"
        self.out.kinds[name] = kind
        return name

    def var(self, name: str) -> E:
        kind = self.out.kinds[name]
        return E("var", (name,), kind)

    # -------------------------------------------------------------- what has derivatives
    def find_active(self) -> None:
        program = self.source
        # what is made for a program (a tape, cotangents) depends on its inputs
        given = [i for i in program.inputs if i.name in self.wanted or i.like]
        self.given = frozenset(i.name for i in given if inexact(i.kind) and not i.kind.python)
        active = set(self.given)
        while True:
            before = len(active)
            for s in statements(self.body):
                if type(s) is Assign and inexact(self.out.kinds[s.name]) and self.depends(s.value, active):
                    active.add(s.name)
                elif type(s) is Store and inexact(self.array(s.array).kind) and self.depends(s.value, active):
                    active.add(self.array(s.array).root)
            if len(active) == before:
                break
        self.active = self.varied = active

    def array(self, name: str) -> Array:
        return self.out.arrays[name]

    def depends(self, e: E, active: set[str]) -> bool:
        if not inexact(e.kind) or e.op in FLAT:
            return False
        if e.op in ("var", "load"):
            return e.args[0] in active and not (self.unwritten and repr(e) in self.unwritten)
        if e.op == "mul" and any(constant(a) == 0 for a in e.args):
            return False
        return any(isinstance(a, E) and self.depends(a, active) for a in e.args)

    def leaves(self, e: E) -> bool:
        """Whether something that is followed becomes a number of Python's, as float(x) makes it: an error, eagerly."""
        if not self.depends(e, self.varied) or e.op in ("var", "load"):
            return False
        if e.op in ("copy", "cast") and e.kind.python and not e.args[0].kind.python:
            return True
        return any(isinstance(a, E) and self.leaves(a) for a in e.args)

    def shadow(self, name: str) -> str:
        """The derivative's array that lies beside one of the program's."""
        bar = name + self.out.mark
        if bar not in self.out.arrays:
            a = self.out.arrays[name]
            self.out.arrays[bar] = made = Array(bar, a.kind, a.ndim, bar)
            made.dims = [E("dim", (name, axis), INT, 0, 2**40) for axis in range(a.ndim)]
        return bar


class _Tangent(_Derivative):
    def __init__(self, program: Program, wanted: set[str]) -> None:
        self.dots: dict[str, None] = {}
        super().__init__(program, wanted, "tangent")

    def made(self) -> Program:
        source, out = self.source, self.out
        out.body = self.along(self.body)
        out.inputs = list(source.inputs)
        out.scratch = {i.name for i in source.inputs if i.written}
        moving: list = []
        for i in source.inputs:
            if i.name not in self.active:
                continue
            name = self.dot(i.name)
            given = i.name in self.wanted and not i.like
            like = "" if given else i.like or i.name
            if i.ndim is not None:
                like = self.dot(i.like) if i.like in self.active else like
                out.inputs.append(Input(name, i.kind, i.ndim, i.written, like))
                if i.name in source.scratch:
                    out.scratch.add(name)
            elif given:
                out.inputs.append(Input(name, i.kind, None, False))
                moving.append(name)
        names = [name for name, *_ in source.outputs if name in self.active]
        out.outputs = [(self.dot(name), [out.kinds[self.dot(name)]], "", "") for name in names]
        given = {i.name for i in out.inputs}
        fixed = [n for n in self.dots if n in out.kinds and n not in given]
        out.body = [*(Assign(n, const(0.0, out.kinds[n])) for n in fixed), *out.body]
        return out

    def dot(self, name: str) -> str:
        """The tangent of a variable or an array."""
        if name in self.out.arrays:
            return self.shadow(name)
        dot = name + self.out.mark
        self.out.kinds[dot] = self.out.kinds[name]
        self.dots[dot] = None
        return dot

    def along(self, body: list) -> list:
        out: list = []
        for s in body:
            if type(s) is Assign:
                if s.name in self.active:
                    kind = self.out.kinds[s.name]
                    out.append(Assign(self.dot(s.name), cast(self.moved(s.value, out), kind)))
            elif type(s) is Store:
                if self.array(s.array).root in self.active:
                    kind = self.array(s.array).kind
                    out.append(Store(self.dot(s.array), s.index, cast(self.moved(s.value, out), kind)))
            elif type(s) is Alloc:
                out.append(s)
                if self.array(s.name).root in self.active:
                    s = Alloc(self.dot(s.name), s.dims, True)
                else:
                    continue
            elif type(s) is Check and s.error not in ROOM:
                continue  # it held when the program ran
            elif type(s) is If:
                s = If(s.condition, self.along(s.then), self.along(s.orelse))
            elif type(s) is For and id(s) in self.products:
                out.append(s)
                s = self.products[id(s)]
                out += [nest(one, self.fresh("x", one.to.kind)) for one in self.products_along(s)]
                continue
            elif type(s) is For:
                s = For(s.var, s.start, s.stop, s.step, self.along(s.body), s.exact)
            elif type(s) is While:
                s = While(self.along(s.test), s.condition, self.along(s.body))
            elif type(s) is Block:
                s = Block(s.label, self.along(s.body))
            out.append(s)
        return out

    def products_along(self, s: Product) -> Iterator[Product]:
        """The products of one of the matrices with the tangent of the other."""
        moves = lambda e: self.depends(e, self.active)
        dot = lambda e: E("load", (self.dot(e.args[0]), *e.args[1:]), e.kind)
        if moves(s.to) and moves(s.left):
            yield s._replace(to=dot(s.to), left=dot(s.left))
        if moves(s.to) and moves(s.right):
            yield s._replace(to=dot(s.to), right=dot(s.right))

    def moved(self, e: E, out: list) -> E:
        """The tangent of an expression; what it is made of is computed in `out`."""
        if not self.depends(e, self.active):
            return const(0.0, e.kind)
        if e.op == "var":
            return E("var", (self.dot(e.args[0]),), e.kind)
        if e.op == "load":
            return E("load", (self.dot(e.args[0]), *e.args[1:]), e.kind)
        if e.op in ("cast", "copy"):
            return cast(self.moved(e.args[0], out), e.kind)
        total: E | None = None
        for k, x in enumerate(e.args):
            if not isinstance(x, E) or not self.depends(x, self.active):
                continue
            name = self.fresh("d", x.kind)
            out.append(Assign(name, self.moved(x, out)))
            part = list(partial(e.op, e.kind, e.args, cast(self.var(name), e.kind), None))[k]
            if part is None:
                raise NotUnderstood(f"the derivative of {e.op}", self.source.line)
            total = part if total is None else E("add", (total, part), e.kind)
        assert total is not None
        return total


class _Adjoint(_Derivative):
    def __init__(self, program: Program, wanted: set[str], sparing: bool) -> None:
        self.sparing = sparing
        self.segments: set[str] = set()  # where the parts of outermost loops begin, which run again on the way back
        self.labels: dict[str, str] = {}
        self.names: dict[Any, str] = {}
        self.reloaded: dict[str, E] = {}  # variables that are read again from an array that is as it was
        self.undone: set[str] = set()  # arrays whose stores are undone
        self.recomputed: set[str] = set()  # variables that are computed of what is kept of the same turn
        self.unstored: set[str] = set()  # arrays of which nothing is read behind a store, which need none
        super().__init__(program, wanted, "adjoint")
        self.find_definitions()
        self.needed: set[str] = set()  # variables that the way back reads
        self.read: set[str] = set()  # those that it reads here
        self.read_in: dict[int, set[str]] = {}  # a loop -> those that its own way back reads
        self.covered: set[str] = set()  # variables that a loop around this keeps

    def find_active(self) -> None:
        """What no result depends on, as numbers that are only compared, has no cotangent."""
        super().find_active()
        source = self.source
        asked = {source.inputs[k].name for k in source.written} | {name for name, *_ in source.outputs}
        made: list[tuple[str, set[str]]] = []
        for s in reversed(statements(self.body)):
            if type(s) in (Assign, Store):
                made.append((s.name if type(s) is Assign else self.array(s.array).root, sources(s.value)))
        while True:
            before = len(asked)
            for name, of in made:
                if name in asked:
                    asked |= of
            if len(asked) == before:
                break
        self.active = self.varied & asked

    def prepared(self) -> list:
        shown = {name for name, *_ in self.source.outputs if inexact(self.source.kinds[name])}
        body = super().prepared()
        body = fused(self.out, interchanged(self.out, body, shown, False) or body, shown)
        body = forwarded(body, {x.name for s in body for p in parts(s) for x in statements(p) if type(x) is Alloc})
        self.products = self.find_products(body)
        body = propagated(self.structured(body), kept=True)  # places are numbers of turns, then
        body = from_zero(propagated(peeled(self.source, body, self.out.kinds, self.fresh), kept=True))
        body = combined(body, read_times(body))
        return [t for s in body for t in self.in_parts(s)] if self.sparing else body

    # -------------------------------------------------------------- parts of loops, computed again
    def in_parts(self, s: Any) -> list:
        """An outermost loop in parts, whose number is about that of the turns of each."""
        if type(s) is not For or s.step not in (1, -1) or id(s) in self.products:
            return [s]
        turns, length, number, part = (self.fresh(x, INT) for x in ("turns", "length", "number", "part"))
        first, last = self.fresh("first", INT), self.fresh("last", INT)
        whole = lambda op, *args: E(op, args, INT, 0, 2**40)
        of = lambda name: E("var", (name,), INT, 0, 2**40)
        root = E("sqrt", (E("cast", (of(turns),), F8),), F8)
        done = whole("mul", of(part), of(length))
        left = whole("min", of(length), whole("sub", of(turns), done))
        along, ends = ("add" if s.step == 1 else "sub"), (E("var", (x,), INT, -(2**40), 2**40) for x in (first, last))
        start, stop = ends
        body = [
            Assign(first, E(along, (s.start, done), INT, -(2**40), 2**40)),
            Assign(last, E(along, (start, left), INT, -(2**40), 2**40)),
            s._replace(start=start, stop=stop),
        ]
        self.segments.add(first)
        return [
            Assign(turns, self.turns(s, s.start, s.stop)),
            Assign(length, whole("add", E("cast", (root,), INT, 0, 2**32), const(1))),
            Assign(number, whole("floordiv", whole("sub", whole("add", of(turns), of(length)), const(1)), of(length))),
            For(part, const(0), of(number), 1, body, s.exact),
        ]

    def is_part(self, s: Any) -> bool:
        return type(s) is For and s.start.op == "var" and s.start.args[0] in self.segments

    def changing(self, s: For) -> tuple[list[str], list[str]]:
        """The variables and arrays that a part of a loop may find otherwise when it runs again."""
        inside = statements(s.body)
        bound_here = {x.name for x in inside if type(x) is Assign}
        made = {x.name for x in inside if type(x) is Alloc}
        met = {array for x in inside for array, _ in places(x)} - made - self.unstored
        return sorted(bound_here - self.local - self.again.keys()), sorted(met & self.unsettled[id(s)])

    def part_forwards(self, s: For) -> list:
        """What keeps all that changes in a part of a loop, and the part, which keeps nothing."""
        names, arrays = self.changing(s)
        out = self.all_kept(names)
        for name in arrays:
            copy, size = self.whole_array(name, True)
            out += [*self.room_for(size), copy, self.moved(size)]
        return [*out, s._replace(body=self.without_unstored(s.body))]

    def part_again(self, s: For) -> list:
        """The way back through a part: all is as it was before it, and it runs again."""
        names, arrays = self.changing(s)
        out: list = []
        for name in reversed(arrays):
            copy, size = self.whole_array(name, False)
            out += [self.moved(size, "sub"), copy]
        out += self.all_taken(names)
        own = {x.name for x in statements(s.body) if type(x) is Assign}
        for name in sorted((exposed(s.body) | variables(s.start) | variables(s.stop)) - {s.var}):
            if name in self.again:
                if name not in own:
                    out.append(Assign(name, self.resolved(self.again[name])))
            elif name not in names:
                self.resolved(self.var(name))  # it is to be there
        return [*out, *self.loop_kept(s), *self.back_of_loop(s)]

    def whole_array(self, name: str, kept: bool) -> tuple[Any, E]:
        """(what copies an array to the tape, or from there; how many elements it has)."""
        a = self.array(name)
        if a.kind.letter not in "fb" or name.rstrip(".") == TAPE:  # a tape has floats, and is long
            raise NotUnderstood("an array of integers, or a tape, that is kept whole", self.source.line)
        many = [E("dim", (name, k), INT, 0, 2**40) for k in range(a.ndim)]
        index = tuple([self.var(self.fresh_once(("element", name, k), INT)) for k in range(a.ndim)])
        index = tuple([E("var", x.args, INT, 0, 2**40) for x in index])
        at, size = const(0), const(1)
        for i, n in zip(index, many):
            at = E("add", (E("mul", (at, n), INT, 0, 2**40), i), INT, 0, 2**40)
            size = E("mul", (size, n), INT, 0, 2**40)
        place = E("add", (self.here(), at), INT, 0, 2**40)
        s: Any = (
            Store(self.tape, (place,), cast(E("load", (name, *index), a.kind), F8))
            if kept
            else Store(name, index, cast(E("load", (self.tape, place), F8), a.kind))
        )
        for i, n in reversed(list(zip(index, many))):
            s = For(i.args[0], const(0), n, 1, [s], False)
        return s, size

    def without_unstored(self, body: list) -> list:
        """Statements but for the stores that the way forward leaves out."""
        out: list = []
        for s in body:
            if parts(s):
                names = ("then", "orelse") if type(s) is If else ("test", "body") if type(s) is While else ("body",)
                s = s._replace(**{name: self.without_unstored(getattr(s, name)) for name in names})
            if type(s) is not Store or s.array not in self.unstored:
                out.append(s)
        return out

    # -------------------------------------------------------------- no jumps
    def structured(self, body: list) -> list:
        """The same without Block and Leave: what they skip is behind a test."""
        out: list = []
        for k, s in enumerate(body):
            if type(s) is Leave:
                out.append(Assign(self.left(s.label), const(True)))
                return out
            if type(s) is Check and s.error not in ROOM:
                continue  # it held when the program ran
            jumps = left_from(s)
            if type(s) is Block:
                inside = any(type(x) is Leave and x.label == s.label for x in statements(s.body))
                if inside:
                    self.labels[s.label] = flag = self.fresh("left", BOOL)
                    out.append(Assign(flag, const(False)))
                out += self.structured(s.body)
            elif type(s) is If:
                test = self.fresh("test", BOOL)
                out.append(Assign(test, s.condition))
                out.append(If(self.var(test), self.structured(s.then), self.structured(s.orelse)))
            elif type(s) is For:
                if isinstance(s.step, E):
                    *before, s = self.counted(s)
                    out += before
                out += self.canonical(self.products[id(s)]) if id(s) in self.products else self.loop(s, jumps)
            elif type(s) is Alloc:  # the way back asks for its lengths first, when what they were made of is gone
                dims = []
                for d in s.dims:
                    if d.op != "const":
                        out.append(Assign(self.fresh("dim", INT), d))
                        d = E("var", (out[-1].name,), INT, d.low, d.high)
                    dims.append(d)
                out.append(Alloc(s.name, tuple(dims), s.zero))
            elif type(s) is While:
                inner = self.structured(s.body)
                test, condition = self.structured(s.test), s.condition
                for label in jumps:
                    condition = E("and", (condition, self.stays(label)), BOOL, 0, 1)
                if jumps:  # the test itself must not run once more
                    flag = self.fresh("again", BOOL)
                    first = [*test, Assign(flag, condition)]
                    stay: E = const(True)
                    for label in jumps:
                        stay = E("and", (stay, self.stays(label)), BOOL, 0, 1)
                    out.append(While([Assign(flag, const(False)), If(stay, first, [])], self.var(flag), inner))
                else:
                    out.append(While(test, condition, inner))
            else:
                out.append(s)
            rest = body[k + 1 :]
            if jumps and rest:
                stay = const(True)
                for label in jumps:
                    stay = E("and", (stay, self.stays(label)), BOOL, 0, 1)
                flag = self.fresh("test", BOOL)
                out += [Assign(flag, stay), If(self.var(flag), self.structured(rest), [])]
                return out
        return out

    def canonical(self, s: Product) -> list:
        """Its loops, whose ends are numbers, or variables that are bound before them."""
        out, loops, names = [], [], {}
        for loop in s.loops:
            var = E("var", (self.fresh("at", INT),), INT, 0, 2**40)
            ends = []
            for e in bounds(loop):
                if constant(e) is None:
                    out.append(Assign(self.fresh("end", INT), e))
                    e = E("var", (out[-1].name,), INT, e.low, e.high)
                ends.append(e)
            names[loop.var] = var if constant(ends[0]) == 0 else E("add", (ends[0], var), INT, 0, 2**40)
            loops.append(For(var.args[0], const(0), ends[1], 1, [], False))
        to, left, right = (replaced(e, names, True) for e in s[:3])
        return [*out, nest(Product(to, left, right, (loops[0], loops[1], loops[2])), self.fresh("x", to.kind))]

    def left(self, label: str) -> str:
        return self.labels[label]

    def stays(self, label: str) -> E:
        return E("not", (self.var(self.left(label)),), BOOL, 0, 1)

    def counted(self, s: For) -> list:
        """A loop whose step is a variable, as one over the numbers of its turns."""
        assert isinstance(s.step, E)
        out: list = []

        def kept(name: str, e: E) -> E:
            out.append(Assign(self.fresh(name, INT), e))
            return E("var", (out[-1].name,), INT, e.low, e.high)

        start, step, up = kept("start", s.start), kept("step", s.step), s.step.low > 0
        size = step if up else E("neg", (step,), INT, -step.high, -step.low)
        span = E("sub", (s.stop, start) if up else (start, s.stop), INT)
        turns = E("add", (span, E("sub", (size, const(1)), INT)), INT)
        turns = kept("turns", E("floordiv", (turns, size), INT, -(2**62), 2**62))
        turn = self.fresh("turn", INT)
        low, high = (start.low, s.stop.high) if up else (s.stop.low, start.high)
        at = E("add", (start, E("mul", (self.var(turn), step), INT)), INT, low, high)
        return [*out, For(turn, const(0), turns, 1, [Assign(s.var, at), *s.body], s.exact)]

    def loop(self, s: For, jumps: list[str]) -> list:
        out: list = []
        ends = []
        for e, what in ((s.start, "start"), (s.stop, "stop")):
            if e.op != "const":
                name = self.fresh(what, INT)
                out.append(Assign(name, e))
                e = E("var", (name,), INT, e.low, e.high)
            ends.append(e)
        inner = self.structured(s.body)
        if not jumps:
            return [*out, For(s.var, *ends, s.step, inner, s.exact)]
        # a loop that may end early: its number of turn is counted
        turn = self.fresh("turn", INT)
        here = E("var", (turn,), INT, min(ends[0].low, ends[1].low), max(ends[0].high, ends[1].high))
        more = E("lt" if s.step > 0 else "gt", (here, ends[1]), BOOL, 0, 1)
        for label in jumps:
            more = E("and", (more, self.stays(label)), BOOL, 0, 1)
        following = E("add", (here, const(s.step)), INT)
        body = [Assign(s.var, here), *inner, Assign(turn, following)]
        return [*out, Assign(turn, ends[0]), While([], more, body)]

    def find_definitions(self) -> None:
        """Variables whose value can be computed again wherever it is read: they are bound at one place, from numbers
        that do not change in between."""
        count: dict[str, int] = {}
        found: dict[str, E] = {}
        made = {s.name for s in statements(self.body) if type(s) is Alloc}
        self.find_settled()
        loops: set[str] = set()
        written: dict[str, set[str]] = {}  # arrays that are written where a variable is bound, or behind
        for s, behind in zip(self.body, self.written_from):
            for x in statements([s]):
                if type(x) is Assign:
                    count[x.name] = count.get(x.name, 0) + 1
                    found[x.name], written[x.name] = x.value, behind
                elif type(x) is For:
                    loops.add(x.var)
        fixed = self.fixed = {n for n in {i.name for i in self.source.inputs} | loops if n not in count}
        self.again: dict[str, E] = {}
        quick: dict[str, E] = {}  # those that only places and conditions compute again
        own = self.bound_in_loops()
        moved = True
        while moved:
            moved = False
            for name, e in found.items():
                if name in self.again or name in quick or count[name] > 1 or not (temporary(name) or name in own):
                    continue
                e = replaced(e, quick, True)
                plain = all(
                    (x.op != "var" or x.args[0] in fixed or x.args[0] in self.again)
                    and (x.op != "load" or x.args[0] not in written[name])
                    and (x.op != "dim" or x.args[0] not in made)
                    and x.op not in EXPENSIVE - QUICK
                    for x in walk(e)
                )
                ops = [x.op for x in walk(e)] if plain else []
                dear = not QUICK.isdisjoint(ops)
                if plain and (not dear or len(ops) <= MOST):
                    (quick if dear and inexact(self.out.kinds[name]) else self.again)[name] = e
                    moved = True
        self.count = count
        outputs = {name for o in self.source.outputs for name in (o[0], *o[2:])}
        begin = {id(s): s for s in self.lives(self.body, read_times(self.body)) if s.name not in outputs}
        self.local = {s.name for s in begin.values() if count[s.name] == 1}
        self.begin = begin  # (the statements are kept, and with them their ids)

    def find_settled(self) -> None:
        """Which arrays change in each outermost statement or behind it: the way back through it finds all others as
        they were, and reads them again."""
        made = self.depths(Alloc)
        changed = {name for name, depths in made.items() if depths != [0]}
        self.written_from: list[set[str]] = []
        for s in reversed(self.body):
            changed = changed | {x[0] for x in statements([s]) if type(x) in (Store, Alloc)}
            self.written_from.append(changed)
        self.written_from.reverse()
        self.unsettled = {id(x): w for s, w in zip(self.body, self.written_from) for x in statements([s])}
        self.placed: dict[int, dict[int, list[Assign]]] = {}  # what `reread` found

    def lives(self, body: list, reads: dict[str, int]) -> Iterator[Assign]:
        """The first assignments of variables that are bound and read from there on alone, until the statements that it
        is among end."""
        binding = lambda body: Counter(x.name for x in statements(body) if type(x) is Assign)
        reads_behind, bound_behind, before = Counter(read_times(body)), binding(body), set()
        for s in body:
            read, binds = read_times([s]), binding([s])
            reads_behind.subtract(read)
            bound_behind.subtract(binds)
            if type(s) is Assign and s.name not in before:
                same = reads_behind[s.name] == reads.get(s.name, 0)
                if same and bound_behind[s.name] + 1 == self.count[s.name]:
                    yield s
            before |= read.keys() | binds.keys()
            for inner in parts(s):
                yield from self.lives(inner, reads)

    def bound_in_loops(self) -> set[str]:
        """Variables that a loop binds first of all and that nobody reads outside it."""
        found: set[str] = set()
        reads = read_times(self.body)
        outputs = {o[0] for o in self.source.outputs}
        for s in statements(self.body):
            if type(s) is not For:
                continue
            inside = read_times(s.body)
            for x in s.body:
                if type(x) is not Assign:
                    break
                if inside.get(x.name, 0) == reads.get(x.name, 0) and x.name not in outputs:
                    found.add(x.name)
        return found

    def resolved(self, e: E, g: E | None = None) -> E:
        """An expression without the variables that are computed again; what it reads then, but g, has to be there."""
        if e is g:
            return e
        if e.op == "var":
            name = e.args[0]
            if name in self.again:
                r = self.resolved(self.again[name])
                return r if r.kind == e.kind else E("copy", (r,), e.kind, e.low, e.high)
            self.needed.add(name)
            self.read.add(name)
            return e
        if not any(isinstance(a, E) for a in e.args):
            return e
        return e.over(lambda a: self.resolved(a, g))

    # -------------------------------------------------------------- the program
    def made(self) -> Program:
        source, out = self.source, self.out
        self.find_needed()
        if self.undo_stores():
            self.find_needed()
        for body, _ in nested(self.body):
            self.find_recomputed(body)
        self.find_needed()
        out.inputs = list(source.inputs)  # what it writes to are copies of its own
        out.scratch = {i.name for i in source.inputs if i.written}
        seeds: list = []
        ends: list = []
        arrays = [i for i in source.inputs if i.ndim is not None and i.name in self.active]
        for i in arrays:
            given = i.written and i.name not in source.scratch
            out.inputs.append(Input(self.bar(i.name), i.kind, i.ndim, True, "" if given else i.name))
            if i.like:
                out.scratch.add(self.bar(i.name))
        for name, *_ in source.outputs:
            if inexact(source.kinds[name]):
                given = f"{name}{out.mark}.in"
                out.kinds[given] = source.kinds[name]
                out.inputs.append(Input(given, source.kinds[name], None, False))
                if name in self.active:
                    bar = self.bar(name)
                    seeds.append(Assign(bar, E("add", (self.var(bar), self.var(given)), source.kinds[name])))
        for i in source.inputs:
            if i.name in self.active and i.ndim is None:
                bar = self.bar(i.name)
                ends.append((bar, [out.kinds[bar]], "", ""))
        tape = TAPE
        while tape in out.arrays:
            tape += "."
        self.tape, self.at = tape, f"{tape}.at"
        out.kinds[self.at] = INT
        out.arrays[tape] = Array(tape, F8, 1, tape)
        out.inputs.append(Input(tape, F8, 1, True, TAPE))
        out.scratch.add(tape)
        bars = [Assign(name, const(0.0, kind)) for name, kind in self.made_bars.items() if name in out.kinds]
        forward = self.forwards(self.body)
        back = propagated([*bars, *seeds, *self.backwards(self.body)])
        out.body = [Assign(self.at, const(0)), *forward, *back]
        out.outputs = ends
        out.body = without_dead(out)
        stored = {s.array for s in statements(out.body) if type(s) is Store}
        kept = lambda i: i.name != tape or tape in stored
        copied = lambda i: i.written and (i.name in stored or i.name not in out.scratch)
        out.inputs = [i._replace(written=copied(i)) for i in out.inputs if kept(i)]
        return out

    def find_needed(self) -> None:
        """What the way back reads, which may itself have to be taken from the tape: no more than that, found from
        nothing on."""
        self.needed, self.read_in = set(), {}
        found: Any = None
        while found != (len(self.needed), self.read_in):
            found = len(self.needed), dict(self.read_in)
            self.made_bars: dict[str, Kind] = {}
            self.backwards(self.body)

    def find_recomputed(self, body: list) -> None:
        """Of what statements keep, what a few operations make of the rest, as a comparison: it need not be kept."""
        kept = set(self.kept(body))
        values = {s.name: s.value for s in body if type(s) is Assign and s.name in self.local}

        def means(name: str) -> set[str] | None:
            """The variables that are to be computed for this one, among them itself; None if it takes too much."""
            found, left = {name}, [name]
            while left:
                for x in walk(values[left.pop()]):
                    square = x.op == "pow" and constant(x.args[1]) == 2
                    if x.op in ("load", "dim") or (x.op in EXPENSIVE and not square):
                        return None
                    new = x.op == "var" and x.args[0] not in found | self.fixed | self.again.keys() | self.recomputed
                    if not new or x.args[0] in kept:
                        continue
                    if x.args[0] not in values or x.args[0] in self.reloaded:
                        return None
                    found.add(x.args[0])
                    left.append(x.args[0])
            return found if sum(len(walk(values[n])) for n in found) <= MOST else None

        for name in self.kept(body):
            kept.discard(name)
            found = means(name)
            if found is None:
                kept.add(name)
            else:
                self.recomputed |= found

    def undo_stores(self) -> bool:
        """Finds what is read again on the way back, not kept: from arrays that are not written behind it, and from
        those that are read in deeper loops than they are written in, or more often. The stores of these are undone on
        the way back, from what the tape keeps of each, so that it meets every array as the way forward did. Whether
        there are some."""
        stores, allocs = self.depths(Store), self.depths(Alloc)
        inputs = {i.name for i in self.source.inputs}
        reads: dict[str, list[int]] = {}  # of arrays whose stores would have to be undone
        settled: dict[str, E] = {}
        found: dict[str, E] = {}
        for body, depth in nested(self.body):
            for s in self.read_again(body):
                array = s.value.args[0]
                if array in self.unsettled[id(s)]:
                    found[s.name] = s.value
                    reads.setdefault(array, []).append(depth)
                else:
                    settled[s.name] = s.value
        deepest_first = lambda depths: sorted(depths, reverse=True)
        chosen = {a for a, depths in reads.items() if deepest_first(depths) > deepest_first(stores.get(a, []))}
        chosen = {a for a in chosen if inexact(self.array(a).kind) and (a in inputs or allocs.get(a) == [0])}
        self.reloaded = settled | {name: e for name, e in found.items() if e.args[0] in chosen}
        if not self.reloaded:
            return False
        self.unstored = {a for a in chosen & inputs if self.reads_first(a)}
        for array in self.unstored - self.given:
            own = {repr(x) for s in statements(self.body) if self.only_stored(s, array) for x in loaded(s, array)}
            self.unwritten |= {*map(repr, self.reads_of(array))} - own
        if self.unwritten:
            self.find_active()
        self.body = self.keeping_old(self.body, chosen - self.unstored)
        self.products, self.undone = self.find_products(self.body), chosen
        self.find_definitions()
        self.names = {}  # of statements that are no more
        return True

    def reads_first(self, array: str) -> bool:
        """Whether a program needs nothing of an array that it has written before: one loop writes to rows from the
        first on, and reads from later ones. Then nothing has to be written, nor undone."""
        met = [s for s in self.body if any(a == array for t in statements([s]) for a, _ in places(t))]
        if len(met) != 1 or type(met[0]) is not For or met[0].step != 1:
            return False
        (around,) = met
        lowest = {s.var: s.start for s in statements(around.body) if type(s) is For and s.step == 1}
        if around.var in lowest or around.var in bound(around.body):
            return False

        def ahead(e: E, axis: int) -> float:
            """By how much a place is behind the loop's own, at least, on an axis on which that lies inside."""
            if e.op == "var" and e.args[0] in self.again:
                return ahead(self.again[e.args[0]], axis)
            if e.op == "copy":
                return ahead(e.args[0], axis)
            if e.op == "min":
                return min(ahead(x, axis) for x in e.args)
            if e.op == "dim":
                return 1 if e.args == (array, axis) else -math.inf
            if e.op == "add":
                return max(ahead(x, axis) + least(y) for x, y in (e.args, e.args[::-1]))
            if e.op == "var" and e.args[0] in lowest:
                return ahead(lowest[e.args[0]], axis)
            return 0 if e.op == "var" and e.args[0] == around.var else -math.inf

        def least(e: E) -> float:
            if e.op == "var" and e.args[0] in lowest:
                return least(lowest[e.args[0]])
            return e.args[0] if e.op == "const" else -math.inf

        stores = [s for s in statements(around.body) if type(s) is Store and s.array == array]
        return any(
            all(s.index[axis].op == "var" and s.index[axis].args[0] == around.var for s in stores)
            and all(ahead(x.args[axis + 1], axis) >= 1 for x in self.reads_of(array))
            for axis in range(self.array(array).ndim)
        )

    def reads_of(self, array: str) -> Iterator[E]:
        """What reads elements of an array, but for what only goes into elements of it."""
        for s in statements(self.body):
            if not self.only_stored(s, array):
                yield from loaded(s, array)

    def only_stored(self, s: Any, array: str) -> bool:
        """Whether what a statement computes goes nowhere but into elements of this array."""
        if type(s) is Store:
            return s.array == array and len(loaded(s, array)) == adds(s)
        if type(s) is not Assign or s.name in self.needed:
            return False
        readers = (t for t in statements(self.body) if any(s.name in variables(e) for e in expressions(t)))
        return all(type(t) is Store and t.array == array for t in readers)

    def depths(self, kind: type) -> dict[str, list[int]]:
        """Of each array, in how many loops its statements of this type are."""
        found: dict[str, list[int]] = {}
        for body, depth in nested(self.body):
            for s in body:
                if type(s) is kind:
                    found.setdefault(s[0], []).append(depth)
        return found

    def read_again(self, body: list) -> Iterator[Assign]:
        """The statements that read an element of an array into a variable that is kept, if both the array and the place
        are as they were then until the way back is through with the last statement that reads the variable."""
        last = self.last_readers(body)
        for k, s in enumerate(body):
            if not self.reads(s) or not self.saved(s.name) or not all(self.remains(i) for i in s.value.args[1:]):
                continue
            end = last.get(s.name, k)
            between = body[k + 1 : end + 1]
            if type(body[end]) is Store and all(s.name not in self.behind(i) for i in body[end].index):
                between.pop()  # it is undone before
            if s.value.args[0] not in {x[0] for x in statements(between) if type(x) in (Store, Alloc)}:
                yield s

    def reads(self, s: Any) -> bool:
        """Whether a statement reads an element of an array into a variable of these statements alone."""
        return type(s) is Assign and s.value.op == "load" and s.name in self.local

    def last_readers(self, body: list) -> dict[str, int]:
        """Of each variable, where the last statement is whose way back may read it."""
        inside = ((k, e) for k, s in enumerate(body) for x in statements([s]) for e in expressions(x))
        last = {name: k for k, e in inside for name in self.behind(e)}
        for s in reversed(body):  # where that reads again what this read, it reads the place
            if self.reads(s):
                for name in {n for i in s.value.args[1:] for n in self.behind(i)}:
                    last[name] = max(last[name], last.get(s.name, 0))
        return last

    def reread(self, body: list) -> dict[int, list[Assign]]:
        """What is read again behind the way back through each of these statements, and before what it reads."""
        found = self.placed.get(id(body))
        if found is None:
            found = self.placed[id(body)] = {}
            last = self.last_readers(body) if self.reloaded else {}
            for s in body:
                if self.reads(s) and s.name in self.reloaded and s.name in last:
                    found.setdefault(last[s.name], []).append(s)
        return found

    def behind(self, e: E) -> set[str]:
        """The variables that an expression reads when those are resolved that are computed again."""
        found: set[str] = set()
        for name in variables(e):
            found |= self.behind(self.again[name]) if name in self.again else {name}
        return found

    def remains(self, e: E) -> bool:
        """Whether an expression of a place has only variables that do not change in the statements that read them."""
        if e.op == "var":
            name = e.args[0]
            return name in self.fixed or name in self.local or (name in self.again and self.remains(self.again[name]))
        if e.op == "dim":
            return any(i.name == e.args[0] for i in self.source.inputs)
        return e.op != "load" and all(self.remains(a) for a in e.args if isinstance(a, E))

    def keeping_old(self, body: list, arrays: set[str]) -> list:
        """Statements, with what is at the place of each store to these arrays in a variable before."""
        out: list = []
        for s in body:
            if type(s) is Store and s.array in arrays:
                kind = self.array(s.array).kind
                s = Store(*s)
                self.old[id(s)] = old = self.fresh("old", kind)
                out.append(Assign(old, E("load", (s.array, *s.index), kind)))
            elif parts(s):
                names = ("then", "orelse") if type(s) is If else ("test", "body") if type(s) is While else ("body",)
                s = s._replace(**{name: self.keeping_old(getattr(s, name), arrays) for name in names})
            out.append(s)
        return out

    def bar(self, name: str) -> str:
        """The cotangent of a variable or an array."""
        if name in self.out.arrays:
            return self.shadow(name)
        bar = name + self.out.mark
        kind = self.out.kinds[name]
        self.out.kinds[bar] = kind
        self.made_bars[bar] = kind
        return bar

    tape, at = TAPE, AT
    roomy = 0  # in how many loops around this, whose turns all put as much on the tape, it is

    # -------------------------------------------------------------- forwards
    def here(self) -> E:
        """The place on the tape."""
        return E("var", (self.at,), INT, 0, 2**40)

    def moved(self, by: E, op: str = "add") -> Assign:
        return Assign(self.at, E(op, (self.here(), by), INT, 0, 2**40))

    def room_for(self, count: E) -> list:
        """Asks for room, unless a loop around has asked for all that its turns put there."""
        if self.roomy:
            return []
        room = E("dim", (self.tape, 0), INT, 0, 2**40)
        return [Check(E("le", (E("add", (self.here(), count), INT), room), BOOL, 0, 1), "full")]

    def forwards(self, body: list, columns: bool = False) -> list:
        """The way forward through statements; `columns`: what they keep is put on the tape by the loop around them."""
        out: list = []
        checked = 0  # for how many more numbers there is room
        for k, s in enumerate(body):
            if parts(s):  # a loop or a branch, which puts its own numbers on the tape
                checked = 0
            if self.pushes(s):
                if not checked:
                    straight = itertools.takewhile(lambda s: not parts(s), body[k:])
                    checked = sum(map(self.pushes, straight))
                    out += self.room_for(const(checked))
                checked -= 1
                out += self.keeping([s.name], lambda k: self.here())
                out.append(self.moved(const(1)))
                out.append(s)
            elif type(s) is If:
                out.append(If(s.condition, self.forwards(s.then), self.forwards(s.orelse)))
            elif type(s) in (For, While):
                out += self.part_forwards(s) if self.is_part(s) else self.loop_kept(s)
            elif type(s) is not Store or s.array not in self.unstored:
                out.append(s)
        return [*out, *self.all_kept([] if columns else self.kept(body))]

    # -------------------------------------------------------------- products of matrices
    def factors(self, s: Any) -> tuple[list[tuple[E, For, For, E]], E]:
        """(the matrices of a product that its way back has from the tape, with the loops over their rows and columns
        and the place of an element; how many elements they are)."""
        found, size, out = self.products.get(id(s)), const(0), list[Any]()
        if found is None or not self.depends(found.to, self.active):
            return [], size
        _, left, right, (rows, inner, columns) = found
        changed = self.unsettled[id(s)] - self.undone
        for e, other, down, across in ((left, right, rows, inner), (right, left, inner, columns)):
            if e.args[0] in changed and self.depends(other, self.active):
                many = [positive(self.resolved(x.stop)) for x in (down, across)]
                i, j = (E("var", (x.var,), INT, 0, 2**40) for x in (down, across))
                at = self.here()
                for more in (size, E("mul", (i, many[1]), INT, 0, 2**40), j):
                    at = E("add", (at, more), INT, 0, 2**40)
                out.append((e, down, across, at))
                size = E("add", (size, E("mul", tuple(many), INT, 0, 2**40)), INT, 0, 2**40)
        return out, size

    def factors_kept(self, s: For) -> list:
        found, size = self.factors(s)
        if not found:
            return []
        put = [
            down._replace(body=[across._replace(body=[Store(self.tape, (at,), cast(e, F8))])])
            for e, down, across, at in found
        ]
        return [*self.room_for(size), *put, self.moved(size)]

    def back_of_product(self, s: For) -> list:
        """Each matrix's cotangent gets the product of that of the result with the other matrix."""
        found = self.products[id(s)]
        if not self.depends(found.to, self.active):
            return []
        kept, size = self.factors(s)
        to, left, right, loops = found
        rows, inner, columns = (x._replace(stop=self.resolved(x.stop)) for x in loops)
        out = [self.moved(size, "sub")] if kept else []
        reads = {id(e): self.resolved(e) for e in (left, right)}
        for e, down, across, at in kept:
            reads[id(e)] = self.matrix(e, down, across, at, out)
        bar = lambda e: E("load", (self.bar(e.args[0]), *[self.resolved(i) for i in e.args[1:]]), e.kind)
        x = self.fresh_once(("x", id(s)), to.kind)
        if self.depends(left, self.active):
            out.append(nest(Product(bar(left), bar(to), reads[id(right)], (rows, columns, inner)), x, inmost=True))
        if self.depends(right, self.active):
            out.append(nest(Product(bar(right), reads[id(left)], bar(to), (inner, rows, columns)), x))
        return out

    def matrix(self, e: E, down: For, across: For, at: E, out: list) -> E:
        """What reads an element of a matrix from the tape: from a copy, if it is of numbers of another size."""
        found = E("load", (self.tape, at), F8)
        if e.kind.code == F8.code:
            return cast(found, e.kind)
        name = self.fresh_once(("matrix", id(e)), e.kind) + "!"
        self.out.arrays[name] = Array(name, e.kind, 2, name)
        down, across = (x._replace(stop=self.resolved(x.stop)) for x in (down, across))
        index = tuple([E("var", (x.var,), INT, 0, 2**40) for x in (down, across)])
        copy = down._replace(body=[across._replace(body=[Store(name, index, cast(found, e.kind))])])
        out += [Alloc(name, (positive(down.stop), positive(across.stop)), False), copy]
        return E("load", (name, *index), e.kind)

    def loop_kept(self, s: For | While) -> list:
        """A loop, and what keeps what its way back needs."""
        names = self.cover(s)
        out = self.all_kept(names)
        out += self.loop_forwards(s) if type(s) is For else self.while_forwards(s)
        self.covered.difference_update(names)
        return [*out, *self.factors_kept(s)]

    def while_forwards(self, s: While) -> list:
        count = self.counter(s)
        inner = [*self.forwards(s.body), Assign(count, E("add", (self.var(count), const(1)), INT))]
        return [*self.forwards([Assign(count, const(0))]), While(self.forwards(s.test), s.condition, inner)]

    def cover(self, s: For | While) -> list[str]:
        """The variables that a loop binds whose values its own way back does not read, as that of a sum: what they were
        before the loop is kept, and nothing of its turns. They are covered from here on."""
        read = self.read_in.get(id(s), set())
        own = {x.name for x in statements([s]) if type(x) is Assign}
        names = sorted(n for n in own if self.pushed(n) and n not in read)
        self.covered.update(names)
        return names

    def all_kept(self, names: list[str]) -> list:
        """What puts these variables on the tape, and moves on."""
        if not names:
            return []
        put = self.keeping(names, lambda k: E("add", (self.here(), const(k)), INT, 0, 2**40))
        return [*self.room_for(const(len(names))), *put, self.moved(const(len(names)))]

    def all_taken(self, names: list[str]) -> list:
        """What takes them from there."""
        if not names:
            return []
        take = [self.taken(n, E("add", (self.here(), const(k)), INT, 0, 2**40)) for k, n in enumerate(names)]
        return [self.moved(const(len(names)), "sub"), *take]

    def keeping(self, names: list[str], place: Callable[[int], E]) -> list:
        """What puts variables on the tape, the k-th at place(k)."""
        return [Store(self.tape, (place(k),), cast(self.var(name), F8)) for k, name in enumerate(names)]

    def kept(self, body: list) -> list[str]:
        """The variables of a body that go to the tape at its end, all together."""
        mine = [s.name for s in body if type(s) is Assign and s.name in self.local and self.saved(s.name)]
        return [name for name in mine if name not in self.reloaded and name not in self.recomputed]

    def columns(self, s: For) -> list[str]:
        """Of a loop that puts nothing else on the tape what `kept` says: each variable's values lie one after the
        other, so that vector instructions load and store them."""
        return self.kept(s.body) if s.step in (1, -1) and self.keeps_none(s.body) else []

    def keeps_none(self, body: list) -> bool:
        """Whether statements put nothing on the tape but what `kept` says of them."""
        for s in body:
            if type(s) is While or self.is_part(s) or self.pushes(s):
                return False
            covered = self.cover(s) if type(s) is For else []
            none = not covered and not self.factors(s)[0] and not any(map(self.kept, parts(s)))
            none = none and all(map(self.keeps_none, parts(s)))
            self.covered.difference_update(covered)
            if not none:
                return False
        return True

    def column(self, s: For, start: E, turns: E, k: int) -> E:
        """Where a loop's turn finds the variable number k of `columns`."""
        var = E("var", (s.var,), INT)
        turn = E("sub", (var, start) if s.step == 1 else (start, var), INT, 0, 2**40)
        first = E("add", (self.here(), E("mul", (turns, const(k)), INT, 0, 2**40)), INT, 0, 2**40)
        return E("add", (first, turn), INT, 0, 2**40)

    def turns(self, s: For, start: E, stop: E) -> E:
        span = E("sub", (stop, start) if s.step == 1 else (start, stop), INT)
        return E("max", (span, const(0)), INT, 0, 2**40)

    def loop_forwards(self, s: For) -> list:
        names = self.columns(s)
        if not names:
            size = self.size_of_turn(s)
            if size is None or constant(size) == 0:
                return [For(s.var, s.start, s.stop, s.step, self.forwards(s.body), s.exact)]
            all_ = self.size_of_turns(s, size)
            room = self.room_for(all_)
            with self.turn_on_tape(s, size) as begin:
                body = [begin, *self.forwards(s.body)]
            return [*room, For(s.var, s.start, s.stop, s.step, body, s.exact), self.moved(all_)]
        turns = self.fresh_once(("turns", id(s)), INT)
        all_ = E("mul", (self.var(turns), const(len(names))), INT, 0, 2**40)
        keep = self.keeping(names, lambda k: self.column(s, s.start, self.var(turns), k))
        body = [*self.forwards(s.body, True), *keep]
        loop = For(s.var, s.start, s.stop, s.step, body, s.exact)
        return [Assign(turns, self.turns(s, s.start, s.stop)), *self.room_for(all_), loop, self.moved(all_)]

    # a loop whose turns put as much on the tape has a place for each of them, so that they do not wait for each other
    def size_of(self, body: list) -> E | None:
        """How many numbers statements put on the tape; None where that is not known before them."""
        total = const(len(self.kept(body)))
        plus = lambda x, y: y if constant(x) == 0 else x if constant(y) == 0 else E("add", (x, y), INT, 0, 2**40)
        for s in body:
            if type(s) is Assign:
                total = plus(total, const(int(self.pushes(s))))
            elif self.is_part(s):
                return None
            elif type(s) is For:
                covered = self.cover(s)
                names = self.columns(s)
                one = const(len(names)) if names else self.size_of_turn(s)
                self.covered.difference_update(covered)
                if one is None:
                    return None
                if constant(one) != 0:
                    total = plus(total, self.size_of_turns(s, one))
                total = plus(plus(total, const(len(covered))), self.factors(s)[1])
            elif type(s) is While or any(e is None or constant(e) != 0 for e in map(self.size_of, parts(s))):
                return None
        return total

    def size_of_turn(self, s: For) -> E | None:
        """How many numbers each turn of a loop puts on the tape; None where turns differ, or it is not known."""
        size = self.size_of(s.body) if s.step in (1, -1) else None
        if size is None or constant(size) is not None:
            return size
        changed = bound([s])
        made = {x.name for x in statements(self.body) if type(x) is Alloc}
        of = {"var": changed, "dim": made}
        return None if any(x.op == "load" or x.args[0] in of.get(x.op, ()) for x in walk(size) if x.args) else size

    def size_of_turns(self, s: For, one: E) -> E:
        """How many numbers all turns of a loop put on the tape."""
        return E("mul", (self.turns(s, self.resolved(s.start), self.resolved(s.stop)), one), INT, 0, 2**40)

    @contextmanager
    def turn_on_tape(self, s: For, size: E, behind: int = 0) -> Iterator[Assign]:
        """In it the place on the tape is a turn's own. Gives what begins a turn there, or `behind` it."""
        own, start = self.fresh_once(("at", id(s)), INT), self.resolved(s.start)
        var = E("var", (s.var,), INT)
        turn = E("sub", (var, start) if s.step == 1 else (start, var), INT, -1, 2**40)
        skipped = E("mul", (E("add", (turn, const(behind)), INT, 0, 2**40), size), INT, 0, 2**40)
        begin = Assign(own, E("add", (self.here(), skipped), INT, 0, 2**40))
        around, self.at, self.roomy = self.at, own, self.roomy + 1
        try:
            yield begin
        finally:
            self.at, self.roomy = around, self.roomy - 1

    def counter(self, s: While) -> str:
        """The variable that counts the turns of a loop; what it was is needed."""
        name = self.fresh_once(("turns", id(s)), INT)
        self.needed.add(name)
        return name

    def saved(self, name: str) -> bool:
        return name in self.needed and name not in self.again

    def pushed(self, name: str) -> bool:
        """Whether the way back needs what a variable was before each assignment."""
        return self.saved(name) and name not in self.local and name not in self.covered

    def pushes(self, s: Any) -> bool:
        """Whether a statement puts what its variable was on the tape: a count is counted back."""
        return type(s) is Assign and self.pushed(s.name) and not counts(s)

    # -------------------------------------------------------------- backwards
    def backwards(self, body: list, columns: bool = False) -> list:
        """The way back through statements; `columns`: what they kept is taken by the loop around them."""
        out = self.all_taken([] if columns else self.kept(body))
        for s in body:
            if type(s) is Assign and s.name in self.recomputed:
                out.append(Assign(s.name, self.resolved(s.value)))
            if id(s) in self.begin and s.name in self.active:
                out.append(Assign(self.bar(s.name), const(0.0, self.out.kinds[s.name])))
            if type(s) is Alloc and self.array(s.name).root in self.active:
                dims = tuple([self.resolved(d) for d in s.dims])
                out.append(Alloc(self.bar(s.name), dims, True))
        again = self.reread(body)
        for k, s in reversed(list(enumerate(body))):
            if id(s) in self.old:
                before = self.resolved(self.var(self.old[id(s)]))
                out.append(Store(s.array, tuple([self.resolved(i) for i in s.index]), before))
            for x in again.get(k, ()):
                if self.saved(x.name):
                    out.append(Assign(x.name, self.resolved(x.value)))
            if self.is_part(s):
                out += self.part_again(s)
            else:
                out += self.back_of_loop(s) if type(s) in (For, While) else self.back(s)
        return out

    def back_of_loop(self, s: For | While) -> list:
        names, around, self.read = self.cover(s), self.read, set()
        out = self.back(s)
        self.covered.difference_update(names)
        self.read_in[id(s)], self.read = self.read, around | self.read
        return [*out, *self.all_taken(names)]

    def restore(self, s: Assign) -> list:
        if not self.pushed(s.name):
            return []
        if counts(s):
            return [Assign(s.name, E("sub" if s.value.op == "add" else "add", s.value.args, s.value.kind))]
        return [self.moved(const(1), "sub"), self.taken(s.name, self.here())]

    def taken(self, name: str, at: E) -> Assign:
        return Assign(name, cast(E("load", (self.tape, at), F8), self.out.kinds[name]))

    def back(self, s: Any) -> list:
        if id(s) in self.products:
            return self.back_of_product(s)
        if type(s) is Assign:
            out = self.restore(s)
            if s.name in self.active:
                bar = self.bar(s.name)
                kind = self.out.kinds[s.name]
                g = self.fresh_once(("g", id(s)), kind)
                out.append(Assign(g, self.var(bar)))
                if accumulates(s):  # its own cotangent stays
                    _, g_of = partial(s.value.op, kind, s.value.args, self.var(g), None)
                    n = self.fresh_once(("d", id(s)), kind)
                    out.append(Assign(n, g_of))
                    self.flow(s.value.args[1], self.var(n), out, id(s))
                    return out
                if id(s) not in self.begin:
                    out.append(Assign(bar, const(0.0, kind)))
                y = self.var(s.name) if s.name in self.local and s.value.kind == kind else None
                self.flow(s.value, self.var(g), out, id(s), y)
            return out
        if type(s) is Store:
            kind, out = self.array(s.array).kind, []
            if self.array(s.array).root not in self.active:
                return out
            bar = self.bar(s.array)
            index = tuple([self.resolved(i) for i in s.index])
            g = self.fresh_once(("g", id(s)), kind)
            out.append(Assign(g, E("load", (bar, *index), kind)))
            if adds(s):  # the element's own cotangent stays
                _, g_of = partial(s.value.op, kind, s.value.args, self.var(g), None)
                n = self.fresh_once(("d", id(s)), kind)
                out.append(Assign(n, g_of))
                self.flow(s.value.args[1], self.var(n), out, id(s))
            else:
                out.append(Store(bar, index, const(0.0, kind)))
                self.flow(s.value, self.var(g), out, id(s))
            return out
        if type(s) is If:
            then, orelse = self.backwards(s.then), self.backwards(s.orelse)
            return [If(self.resolved(s.condition), then, orelse)] if then or orelse else []
        if type(s) is For:
            names = self.columns(s)
            size = None if names else self.size_of_turn(s)
            before: list = []
            if size is None or constant(size) == 0:
                inner = self.backwards(s.body, bool(names))
            else:
                before = [self.moved(self.size_of_turns(s, size), "sub")]
                with self.turn_on_tape(s, size, 1) as begin:
                    inner = self.backwards(s.body)
                inner = [begin, *inner] if inner else []
            if not inner and not names:
                return before
            start, stop = self.resolved(s.start), self.resolved(s.stop)
            if names:
                turns = self.fresh_once(("turns", id(s)), INT)
                all_ = E("mul", (self.var(turns), const(len(names))), INT, 0, 2**40)
                before = [Assign(turns, self.turns(s, start, stop)), self.moved(all_, "sub")]
                if not inner:  # it leaves the tape as the loop found it
                    return before
                taken = [self.taken(name, self.column(s, start, self.var(turns), k)) for k, name in enumerate(names)]
                inner = [*taken, *inner]
            if s.step in (1, -1):
                first = E("sub", (stop, const(s.step)), INT, -(2**62), 2**62)
            else:
                sign = 1 if s.step > 0 else -1
                span = E("sub", (E("sub", (stop, start), INT), const(sign)), INT)
                turns = E("floordiv", (span, const(s.step)), INT, LOW, HIGH)
                first = E("add", (start, E("mul", (turns, const(s.step)), INT)), INT, LOW, HIGH)
            last = E("sub", (start, const(s.step)), INT, LOW, HIGH)
            return [*before, For(s.var, first, last, -s.step, inner, s.exact and not straight(inner))]
        if type(s) is While:
            inner = self.backwards(s.body)
            restore = self.backwards_of_test(s)
            count = self.counter(s)
            start = Assign(count, const(0))
            turn = self.fresh_once(("back", id(s)), INT)
            if not inner and not restore:
                return self.restore(start)
            loop = For(turn, const(0), self.var(count), 1, [*inner, *restore], True)
            return [*restore, loop, *self.restore(start)]
        return []

    def backwards_of_test(self, s: While) -> list:
        """A loop's test runs once more than its body."""
        return self.backwards(s.test)

    def fresh_once(self, key: Any, kind: Kind) -> str:
        """The variable of this use, the same in every pass."""
        found = self.names.get(key)
        if found is None:
            found = self.names[key] = self.fresh(str(key[0]), kind)
        return found

    def flow(self, e: E, g: E, out: list, key: Any, y: E | None = None) -> None:
        """Emits what adds g times the derivative of e, which is y, to the cotangents of what it reads."""
        if not self.depends(e, self.active):
            return
        kind = e.kind
        if e.op == "var":
            bar = self.bar(e.args[0])
            out.append(Assign(bar, E("add", (self.var(bar), cast(g, self.out.kinds[bar])), self.out.kinds[bar])))
            return
        if e.op == "load":
            bar, of = self.bar(e.args[0]), self.array(e.args[0]).kind
            index = tuple([self.resolved(i) for i in e.args[1:]])
            out.append(Store(bar, index, E("add", (E("load", (bar, *index), of), cast(g, of)), of)))
            return
        if e.op == "cast" or e.op == "copy":
            self.flow(e.args[0], cast(g, e.args[0].kind), out, key)
            return
        flows = [isinstance(x, E) and self.depends(x, self.active) for x in e.args]
        for k, part in enumerate(partial(e.op, kind, e.args, g, y)):
            if flows[k]:
                if part is None:
                    raise NotUnderstood(f"the derivative of {e.op}", self.source.line)
                n = self.fresh_once(("d", key, id(e), k), kind)
                out.append(Assign(n, self.resolved(part, g)))
                self.flow(e.args[k], self.var(n), out, key)


LOW, HIGH = -(2**62), 2**62
EXPENSIVE = {"exp", "log", "sin", "cos", "tan", "tanh", "pow", "sinh", "cosh", "log1p", "expm1", "arctan2", "hypot"}
EXPENSIVE |= {"sqrt", "div", "arcsin", "arccos", "arctan", "cbrt", "log2", "log10", "exp2", "atan2"}
EXPENSIVE |= {"modulus", "real_of_ratio", "imag_of_ratio"}
EXPENSIVE |= {"logaddexp", "logaddexp2", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "gamma", "lgamma"}
QUICK = {"sqrt", "div"}  # in a place or a condition, which one by one would go to the tape
MOST = 50  # operations of these


def loaded(s: Any, array: str) -> list[E]:
    """What reads elements of an array in a statement itself."""
    return [x for e in expressions(s) for x in walk(e) if loads(x, array)]


def nested(body: list, depth: int = 0) -> Iterator[tuple[list, int]]:
    """Every list of statements, and in how many loops it is."""
    yield body, depth
    for s in body:
        for inner in parts(s):
            yield from nested(inner, depth + (type(s) in (For, While)))


def accumulates(s: Assign) -> bool:
    """Whether an assignment adds to a variable, or subtracts from it."""
    old = s.value.args[0] if s.value.op in ("add", "sub") else None
    if not (isinstance(old, E) and old.op == "var" and old.args[0] == s.name and old.kind == s.value.kind):
        return False
    return s.name not in variables(s.value.args[1])


def counts(s: Assign) -> bool:
    """Whether an assignment adds a constant to an integer, or subtracts it."""
    return s.value.kind.letter == "i" and accumulates(s) and s.value.args[1].op == "const"


def temporary(name: str) -> bool:
    """Whether a variable is the translator's own, read on no way but behind its assignment."""
    return name.count(".") == 1 and name.rpartition(".")[2].isdigit() and "~" not in name


def straight(body: list) -> bool:
    """Whether statements take no other way, and find no other element, where sums are rounded otherwise."""
    whole = lambda x: x.op == "cast" and x.kind.letter in "iub" and x.args[0].kind.letter == "f"
    found = lambda s: type(s) in (If, While) or any(whole(x) for e in expressions(s) for x in walk(e))
    return not any(map(found, statements(body)))


def sources(e: E) -> set[str]:
    """The variables and arrays of which an expression has a derivative."""
    if not inexact(e.kind) or e.op in FLAT:
        return set()
    if e.op in ("var", "load"):
        return {e.args[0]}
    return {name for a in e.args if isinstance(a, E) for name in sources(a)}


def cast(e: E, kind: Kind) -> E:
    if e.kind.code == kind.code:
        return e if e.kind == kind else E("copy", (e,), kind, e.low, e.high)
    return E("cast", (e,), kind, e.low if kind.letter in "iu" else None, e.high if kind.letter in "iu" else None)


def partial(op: str, kind: Kind, a: Sequence, g: E, result: E | None) -> Iterator[E | None]:
    """g times the derivative of an operation with respect to each argument; zero where g is.

    result   the variable that has what the operation gave, if it is kept
    """
    f = lambda op, *args: E(op, args, kind)
    c = lambda x: const(float(x), kind)
    mul, div, add, sub = (lambda x, y, op=op: f(op, x, y) for op in ("mul", "div", "add", "sub"))
    neg = lambda x: f("neg", x)
    nonzero = lambda x: f("select", E("eq", (x, c(0)), BOOL, 0, 1), c(1), x)  # at the corner the slopes are taken as 0
    x, y = [*a, None, None][:2]
    again = lambda: result or f(op, *a)
    if op == "add":
        return iter((g, g))
    if op == "sub":
        return iter((g, neg(g)))
    if op == "mul":
        return iter((strong(g, mul(g, y)), strong(g, mul(g, x))))
    if op == "neg":
        return iter((neg(g),))
    if op == "div":
        by = constant(y)
        if by and math.isfinite(by) and math.isfinite(1 / by):
            return iter((mul(g, c(1 / by)), None))  # nothing waits for a division
        return iter((strong(g, div(g, y)), strong(g, neg(div(mul(g, again()), y)))))
    if op == "select":
        first, second = f("select", x, g, c(0)), f("select", x, c(0), g)
        sort = extremum(x, a[1:])
        if sort:  # where both are equal, each has half the slope, or that which is clipped all of it
            equal = E("eq", tuple(a[1:]), BOOL, 0, 1)
            halves = (mul(g, c(0.5)),) * 2 if sort == "extremum" else (g, c(0))
            first, second = (f("select", equal, h, e) for h, e in zip(halves, (first, second)))
        return iter((None, first, second))
    if op == "abs":
        sign = f("select", E("gt", (x, c(0)), BOOL), c(1), f("select", E("lt", (x, c(0)), BOOL), c(-1), c(0)))
        return iter((mul(g, sign),))
    if op == "pow":
        known = constant(y)
        less = c(known - 1) if known else f("select", E("eq", (y, c(0)), BOOL, 0, 1), c(0), sub(y, c(1)))  # 0 ** 0: 0
        first = mul(y, x if known == 2 else f("pow", x, less))
        safe = f("select", E("gt", (x, c(0)), BOOL), f("log", x), c(0))
        return iter((strong(g, mul(g, first)), strong(g, mul(g, mul(again(), safe)))))
    if op == "mod":
        return iter((g, strong(g, neg(mul(g, f("floordiv", x, y))))))
    if op == "fmod":
        return iter((g, strong(g, neg(mul(g, f("trunc", div(x, y)))))))
    if op in ("arctan2", "atan2"):
        square = nonzero(add(mul(x, x), mul(y, y)))
        return iter((strong(g, div(mul(g, y), square)), strong(g, neg(div(mul(g, x), square)))))
    if op in ("hypot", "modulus"):
        size = nonzero(again())
        return iter((strong(g, div(mul(g, x), size)), strong(g, div(mul(g, y), size))))
    if op in ("logaddexp", "logaddexp2"):  # each has its share of the sum; of sums that are 0 or inf, none
        most = 0.5 * float(onp.finfo(kind.dtype).max)
        under = lambda x: f("select", E("gt", (x, c(most)), BOOL, 0, 1), c(most), x)
        down = f("select", E("lt", (again(), c(-most)), BOOL, 0, 1), c(-most), under(again()))
        share = lambda x: f("exp2" if op == "logaddexp2" else "exp", sub(under(x), down))
        return iter((strong(g, mul(g, share(x))), strong(g, mul(g, share(y)))))
    if op in ("real_of_ratio", "imag_of_ratio"):  # of z / w: by z it is 1 / w, by w it is -z / w^2
        of = lambda u, v: (f(op, u, v, *a[2:]) for op in ("real_of_ratio", "imag_of_ratio"))
        (p, q), (s, t) = of(c(1), c(0)), of(*of(*a[:2]))
        parts = (p, neg(q), neg(s), t) if op == "real_of_ratio" else (q, p, neg(t), neg(s))
        return iter([strong(g, mul(g, part)) for part in parts])
    if op in ("nextafter", "valued"):
        return iter((g, c(0)))
    if op == "copysign":
        return iter((mul(g, f("copysign", f("copysign", c(1), x), mul(f("copysign", c(1), x), y))), c(0)))
    if op in ("min", "max"):
        return iter((None, None))
    one = {
        "sqrt": lambda: div(c(0.5), again()),
        "exp": again,
        "log": lambda: div(c(1), x),
        "sin": lambda: f("cos", x),
        "cos": lambda: neg(f("sin", x)),
        "tan": lambda: add(c(1), mul(again(), again())),
        "tanh": lambda: sub(c(1), mul(again(), again())),
        "sinh": lambda: f("cosh", x),
        "cosh": lambda: f("sinh", x),
        "arcsin": lambda: div(c(1), f("sqrt", sub(c(1), mul(x, x)))),
        "arccos": lambda: neg(div(c(1), f("sqrt", sub(c(1), mul(x, x))))),
        "arctan": lambda: div(c(1), add(c(1), mul(x, x))),
        "arcsinh": lambda: div(c(1), f("sqrt", add(c(1), mul(x, x)))),
        "arccosh": lambda: div(div(c(1), f("sqrt", sub(x, c(1)))), f("sqrt", add(x, c(1)))),
        "arctanh": lambda: div(c(1), mul(sub(c(1), x), add(c(1), x))),
        "log2": lambda: div(c(1 / math.log(2)), x),
        "log10": lambda: div(c(1 / math.log(10)), x),
        "log1p": lambda: div(c(1), add(c(1), x)),
        "expm1": lambda: f("exp", x),
        "exp2": lambda: mul(again(), c(math.log(2))),
        "cbrt": lambda: div(c(1 / 3), mul(again(), again())),
        "conj": lambda: c(1),
    }.get(op)
    return iter((None if one is None else strong(g, mul(g, one())),))


def extremum(test: E, of: Sequence) -> str:
    """Whether a choice between two numbers is np.minimum or np.maximum, which ask for a nan last, or np.clip, which
    asks first; "" for any other."""
    if test.op != "or" or of[0].kind.letter != "f":
        return ""
    a, b = map(repr, of)
    order = [f"{x} {sign} {y}" for sign, x, y in ((e.op, *map(repr, e.args)) for e in test.args if len(e.args) == 2)]
    for nan in (f"{a} ne {a}", f"{b} ne {b}"):
        for sign in ("lt", "gt"):
            if order == [f"{a} {sign} {b}", nan]:
                return "extremum"
            if order == [nan, f"{a} {sign} {b}"]:
                return "clip"
    return ""


def strong(g: E, e: E) -> E:
    """g times a slope, zero where g is; with a finite slope the product, which has a derivative where g is zero by
    chance."""
    if e.op == "mul" and any(constant(x) is not None for x in e.args):
        return e
    return zero_where_zero(g, e)


# ------------------------------------------------------------------ views
def in_order(dims: list[E], lengths: list[E]) -> Callable[[tuple], tuple]:
    """What finds the index of an element of an array of `lengths` for that of the same one, in C order, where it is
    shown with other lengths."""
    whole = lambda op, x, y: E(op, (x, y), INT, 0, HIGH)

    def index_in_base(index: tuple) -> tuple:
        at: E = const(0)
        for i, d in zip(index, dims):
            at = i if constant(at) == 0 else whole("add", whole("mul", at, d), i)
        found: list[E] = []
        for n in reversed(lengths[1:]):
            found.insert(0, whole("mod", at, n))
            at = whole("floordiv", at, n)
        return (at, *found)[: len(lengths)]

    return index_in_base


def flattened(program: Program) -> list:
    """The body with every view's elements as those of the root."""
    where: dict[str, tuple[str, Any]] = {}  # view -> (root, index -> the root's index)
    dims: dict[str, list[E]] = {}

    def place(name: str, index: tuple) -> tuple[str, tuple]:
        while name in where:
            name, move = where[name]
            index = move(index)
        return name, index

    def e_(e: E) -> E:
        if e.op == "load":
            name, index = place(e.args[0], tuple([e_(i) for i in e.args[1:]]))
            return E("load", (name, *index), e.kind)
        if e.op == "dim":
            name, axis = e.args
            return dims[name][axis] if name in dims else e
        if not any(isinstance(x, E) for x in e.args):
            return e
        return E(e.op, tuple([e_(x) if isinstance(x, E) else x for x in e.args]), e.kind, e.low, e.high)

    def moved(spec: tuple) -> Any:
        def move(index: tuple) -> tuple:
            given, out = list(index), []
            for part in spec:
                if part[0] == "new":
                    given.pop(0)
                elif part[0] == "index":
                    out.append(part[1])
                else:
                    _, start, _, step = part
                    i = given.pop(0)
                    if step.op != "const" or step.args[0] != 1:
                        i = E("mul", (i, step), INT, LOW, HIGH)
                    if start.op != "const" or start.args[0] != 0:
                        i = E("add", (start, i), INT, 0, 2**40)
                    out.append(i)
            return tuple(out)

        return move

    def go(body: list) -> list:
        out: list = []
        for s in body:
            if type(s) is View:
                spec = tuple([(p[0], *[e_(x) for x in p[1:]]) for p in s.spec])
                where[s.name] = (s.base, moved(spec))
                dims[s.name] = [const(1) if p[0] == "new" else p[2] for p in spec if p[0] != "index"]
            elif type(s) is Permute:
                axes = s.axes
                where[s.name] = (
                    s.base,
                    lambda index, axes=axes: tuple([index[axes.index(k)] for k in range(len(axes))]),
                )
                own = [e_(E("dim", (s.base, k), INT, 0, 2**40)) for k in range(len(axes))]
                dims[s.name] = [own[a] for a in axes]
            elif type(s) is Reshape:
                dims[s.name] = [e_(d) for d in s.dims]
                ndim = program.arrays[s.base].ndim
                lengths = [e_(E("dim", (s.base, k), INT, 0, 2**40)) for k in range(ndim)]
                where[s.name] = (s.base, in_order(dims[s.name], lengths))
            elif type(s) is Assign:
                out.append(Assign(s.name, e_(s.value)))
            elif type(s) is Store:
                name, index = place(s.array, tuple([e_(i) for i in s.index]))
                out.append(Store(name, index, e_(s.value)))
            elif type(s) is Alloc:
                dims[s.name] = [e_(d) for d in s.dims]
                out.append(Alloc(s.name, tuple(dims[s.name]), s.zero))
            elif type(s) is For:
                step = e_(s.step) if isinstance(s.step, E) else s.step
                out.append(For(s.var, e_(s.start), e_(s.stop), step, go(s.body), s.exact))
            elif type(s) is While:
                test = go(s.test)
                out.append(While(test, e_(s.condition), go(s.body)))
            elif type(s) is If:
                out.append(If(e_(s.condition), go(s.then), go(s.orelse)))
            elif type(s) is Block:
                out.append(Block(s.label, go(s.body)))
            elif type(s) is Check:
                bounds = s.bounds and tuple(map(e_, s.bounds))
                out.append(Check(e_(s.condition), s.error, tuple(map(e_, s.operands)), bounds))
            else:
                out.append(s)
        return out

    return go(program.body)
