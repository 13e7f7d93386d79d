"""From a typed program to LLVM's instructions, as text; LLVM's own passes do the rest (registers, vectors).

A loop without loops in it is written twice: where the indices in it are seen to stay inside before it starts, it runs
without their checks.
"""

from __future__ import annotations

import copy
import itertools
import math
import os
import platform
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ..compiled import team
from ..cpu import products
from ..graph.printed import compiling
from ..llvm import functions
from ..llvm.code import Code, Lane
from ..llvm.engine import DATA, SHAPE, STRIDES, machine, symbol
from .axes import along_last
from .blocking import Blocking
from .derivative import flattened
from .interchanged import flat, interchanged
from .ir import (
    DEPTH,
    F8,
    INT,
    Alloc,
    Array,
    Assign,
    Bind,
    Block,
    Call,
    Check,
    Define,
    E,
    For,
    If,
    Kind,
    Leave,
    Multiply,
    Permute,
    Program,
    Reshape,
    Store,
    View,
    While,
    constant,
    expressions,
    mapped,
    parts,
    statements,
    variables,
    walk,
)
from .jammed import jammed
from .products import all_numbers, bounds, unguarded
from .simplified import distributed
from .tiled import tiled

# slots: how the run ended, three operands of an error, what the processor met, then inputs and outputs
STATUS, OPERANDS, MET, FIRST = 0, 1, 4, 5
SIGNALLED = -1  # the status where a handler of a signal raised, as Python's of Ctrl-C does
TURNS, LONG_TURNS = 1 << 12, 1 << 4  # of a loop, and of one with loops in it, between two looks for signals
# of floats, as fenv.h numbers invalid operations, divisions by zero and overflows
CONDITIONS = {"x86_64": 13, "aarch64": 7, "arm64": 7}.get(platform.machine(), 0) if os.name == "posix" else 0
TYPES = {"f4": "float", "f8": "double", "c8": "{float, float}", "c16": "{double, double}", "b1": "i1"}
LARGEST = 2.0**42  # bytes of an array made in a loop
INTRINSICS = {
    **{
        n: n
        for n in (
            "sqrt",
            "exp",
            "log",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sinh",
            "cosh",
            "log2",
            "log10",
            "exp2",
            "floor",
            "ceil",
            "trunc",
            "rint",
        )
    },
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "atan2": "atan2",
    "pow": "pow",
    "copysign": "copysign",
}
# what an index that is seen before its loop consists of: nothing that traps unless a check in the loop lets it through
SAFE = {"add", "sub", "mul", "neg", "copy", "cast", "min", "max", "abs", "select", "and", "or", "xor", "not", "invert"}
SAFE |= {"lt", "le", "gt", "ge", "eq", "ne", "wrap", "inside"}
INSTRUCTIONS = {"sqrt", "floor", "ceil", "trunc", "rint", "copysign"}
ELEMENTARY = {f.__name__: f for f in (functions.exp, functions.expm1, functions.exp2, functions.tanh)}
ELEMENTARY |= {f.__name__: f for f in (functions.log, functions.log2, functions.log10, functions.log1p)}
LOGARITHMS = {"log", "log2", "log10", "log1p"}
LIBM = {name: name for name in ("log1p", "expm1", "cbrt", "hypot", "fmod", "nextafter")}
LIBM |= {"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}
LIBM |= {"erf": "erf", "erfc": "erfc", "lgamma": "lgamma"}


BRIEF = 1 << 23  # steps: operations, reads and writes, of which a run takes less time than to compile it well
HEADER = 16  # bytes before an array that variables may stand for: how many do
COUNTING = {
    "retain": """define internal void @retain(ptr %p) alwaysinline {
  %none = icmp eq ptr %p, null
  br i1 %none, label %done, label %count
count:
  %n = load i64, ptr %p
  %more = add i64 %n, 1
  store i64 %more, ptr %p
  br label %done
done:
  ret void
}""",
    "release": """define internal void @release(ptr %p) alwaysinline {
  %none = icmp eq ptr %p, null
  br i1 %none, label %done, label %count
count:
  %n = load i64, ptr %p
  %less = sub i64 %n, 1
  store i64 %less, ptr %p
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  call void @free(ptr %p)
  br label %done
done:
  ret void
}""",
    "alone": """define internal i1 @alone(ptr %p) alwaysinline {
  %none = icmp eq ptr %p, null
  br i1 %none, label %no, label %count
count:
  %n = load i64, ptr %p
  %one = icmp eq i64 %n, 1
  ret i1 %one
no:
  ret i1 false
}""",
    "free": "declare void @free(ptr)",
}


def room_for(counted: bool) -> str:
    """The function that makes room for an array at a site, or takes what is there; null where there is none. `counted`:
    others may show what is there."""
    taken, free = ("call i1 @alone(ptr %old)", "release") if counted else ("icmp ne ptr %old, null", "free")
    return f"""define internal {"" if counted else "noalias "}ptr @room(ptr %site, ptr %held, i64 %size, double %weight)
    nounwind noinline {{
  %fits = fcmp olt double %weight, {_bits(LARGEST)}
  br i1 %fits, label %look, label %none
look:
  %old = load ptr, ptr %site
  %mine = {taken}
  %most = load i64, ptr %held
  %enough = icmp sle i64 %size, %most
  %fine = and i1 %mine, %enough
  br i1 %fine, label %done, label %more
more:
  call void @{free}(ptr %old)
  store ptr null, ptr %site
  %bytes = add i64 %size, {HEADER + 8}
  %new = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %none, label %made
made:
  {"store i64 1, ptr %new" if counted else ""}
  store ptr %new, ptr %site
  store i64 %size, ptr %held
  ret ptr %new
done:
  ret ptr %old
none:
  ret ptr null
}}"""


def _bits(x: float) -> str:
    return f"{struct.unpack('>Q', struct.pack('>d', x))[0]:#018x}"


GAMMA = {  # math.gamma: Python has a table of the factorials that doubles have, and tgamma rounds some of them
    "tgamma": "declare double @tgamma(double)",
    "gamma": f"""define internal double @gamma(double %x) {{
entry:
  %low = fcmp oge double %x, {_bits(1.0)}
  %high = fcmp ole double %x, {_bits(23.0)}
  %down = call double @llvm.floor.f64(double %x)
  %whole = fcmp oeq double %x, %down
  %between = and i1 %low, %high
  %factorial = and i1 %between, %whole
  br i1 %factorial, label %next, label %other
next:
  %n = phi double [{_bits(1.0)}, %entry], [%more, %turn]
  %product = phi double [{_bits(1.0)}, %entry], [%times, %turn]
  %go = fcmp olt double %n, %x
  br i1 %go, label %turn, label %done
turn:
  %times = fmul double %product, %n
  %more = fadd double %n, {_bits(1.0)}
  br label %next
done:
  ret double %product
other:
  %y = call double @tgamma(double %x)
  ret double %y
}}""",
    "llvm.floor.f64": "declare double @llvm.floor.f64(double)",
}
MODULUS = {  # within an ulp of hypot; powers of two bring squares into the range of doubles, without a branch
    "modulus": f"""define internal double @modulus(double %x, double %y) alwaysinline {{
  %a = call double @llvm.fabs.f64(double %x)
  %b = call double @llvm.fabs.f64(double %y)
  %wider = fcmp ogt double %a, %b
  %m = select i1 %wider, double %a, double %b
  %large = fcmp ogt double %m, {_bits(2.0**500)}
  %small = fcmp olt double %m, {_bits(2.0**-400)}
  %up = select i1 %small, double {_bits(2.0**600)}, double {_bits(1.0)}
  %by = select i1 %large, double {_bits(2.0**-600)}, double %up
  %down = select i1 %small, double {_bits(2.0**-600)}, double {_bits(1.0)}
  %back = select i1 %large, double {_bits(2.0**600)}, double %down
  %p = fmul double %a, %by
  %q = fmul double %b, %by
  %pp = fmul double %p, %p
  %qq = fmul double %q, %q
  %s = fadd double %pp, %qq
  %r = call double @llvm.sqrt.f64(double %s)
  %scaled = fmul double %r, %back
  %first = fcmp oeq double %a, {_bits(float("inf"))}
  %second = fcmp oeq double %b, {_bits(float("inf"))}
  %infinite = or i1 %first, %second
  %out = select i1 %infinite, double {_bits(float("inf"))}, double %scaled
  ret double %out
}}""",
    "llvm.sqrt.f64": "declare double @llvm.sqrt.f64(double)",
    "llvm.fabs.f64": "declare double @llvm.fabs.f64(double)",
}


LOGARITHMS_OF_SUMS = {"logaddexp": ("exp", math.log(2), 1.0), "logaddexp2": ("exp2", 1.0, 1 / math.log(2))}


class NotLowered(Exception):
    """Something that has no instructions here."""


def api(name: str) -> str:
    """A function of Python's."""
    return f"inttoptr (i64 {symbol(name)} to ptr)"


def type_of(kind: Kind) -> str:
    return TYPES.get(kind.code) or f"i{kind.dtype.itemsize * 8}"


def real(value: float, code: str) -> str:
    if code == "f4":
        value = struct.unpack("f", struct.pack("f", value))[0]
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


class Layout:
    """How a program's numbers lie in the slots: 8 bytes each, two for a complex one."""

    def __init__(self, program: Program) -> None:
        at = FIRST
        self.given: dict[str, int] = {}
        self.format = ""
        for i in program.inputs:
            if i.ndim is None:
                self.given[i.name] = at
                self.format += _format(i.kind)
                at += 2 if i.kind.letter == "c" else 1
        self.results: list[tuple[int, int, int]] = []
        self.back = ""
        self.first_result = at
        for name, *_ in program.outputs:
            kind = program.kinds[name]
            here = at
            at += 2 if kind.letter == "c" else 1
            self.results.append((here, at, at + 1))
            self.back += _format(kind) + "qq"
            at += 2
        self.arrays: list[
            int
        ] = []  # where an array that comes out is told of: which input, data, owner, lengths, steps
        for _, variable in program.results:
            self.arrays.append(at)
            at += 3 + 2 * program.arrays[variable].ndim
        self.size = at


def _format(kind: Kind) -> str:
    return {"f": "d", "c": "dd", "u": "Q"}.get(kind.letter, "q")


class Lowering:
    """Writes one program. `contiguous`: for each input that is an array, whether it lies in C order; `ranges`: the
    function is of the form of engine.RANGES, with a row of slots for each part; `baseline`: the loops stay as they are,
    and it ends with "long" after BRIEF steps of all its runs; `speculative`: products with what is not
    finite are not zero where the other factor is, and it ends with "nan" where a result shows that."""

    @compiling()
    def __init__(
        self,
        program: Program,
        contiguous: list[bool],
        ranges: bool = False,
        baseline: bool = False,
        speculative: bool = False,
    ) -> None:
        self.baseline, self.ranges, self.speculative = baseline, ranges, speculative and not baseline
        self.program, self.layout = program, Layout(program)
        self.lines: list[str] = []
        self.slots: list[str] = []  # allocas
        self.declared: dict[str, str] = {}
        self.counts = itertools.count()
        self.labels: dict[str, str] = {}
        self.dims: dict[str, list[Any]] = {}
        self.strides: dict[str, list[Any]] = {}
        self.bases: dict[str, str] = {}
        self.sites: list[str] = []
        self.proved: set[tuple] = set()  # (index, length) of the checks that hold
        self.free_order = False
        self.calls = 0  # of functions of libm
        self.plain = False  # in a loop without loops and branches
        self.early = False  # before a loop, where no check has said that integers do not overflow
        self.errors: list[tuple[str, tuple]] = [("", ())]
        self.refusals: dict[str, str] = {}  # errors without operands -> where a function fails with them
        self.functions: list[str] = []
        self.defined: dict[str, Define] = {}
        self.everybodys: list[str] = []  # parameters of every function
        self.depth = "0"  # of calls
        self.values: dict[str, str] = {}  # of variables without memory: what they are
        self.contiguous = contiguous
        self.body, self.local = program.body, {}
        if not baseline and not program.draws:
            self.arrange()
        self.parallel = ""  # the group of the accesses of a loop whose turns are independent
        self.single = definitions(self.body)
        self.outermost = {id(s) for s in outermost(self.body) if repeats(s.body)}
        self.owners: dict[
            str, str
        ] = {}  # of what shows memory that may be let go of meanwhile: where its owner is kept
        self.heads: dict[str, str] = {}  # of inputs: what stands for the owner
        self.dense = dense(program, contiguous)

    def arrange(self) -> None:
        """Takes the loops in an order, and in blocks, in which they are fast."""
        program, found = self.program, machine()
        lanes = max(found.vector_bytes // 8, 2) if found else 2
        numbers = itertools.count()
        fresh = lambda what: f"{what}.{next(numbers)}!"
        body, again = program.body, program.mark != "~" and not self.ranges
        if not self.ranges and flat(program):
            shown = {n for o in program.outputs for n in (o[0], *o[2:])}
            body = interchanged(program, flattened(program), shown) or body
        body = tiled(program, body, fresh) if again else body
        body = mapped(body, unguarded) if self.speculative else body
        before: list = []  # copies, whose numbers are read once: in blocks they would be longer, and no faster
        after: list = []
        while True:
            self.body = distributed(program, body, fresh) if program.mark != "~" else body
            blocking = Blocking(program, self.body, self.contiguous, lanes)
            self.body = blocking.body(self.body)
            turned = along_last(program, body, blocking.taken, fresh) if again else None
            if turned is None:
                break
            (before, body, after), again = turned, False
        if program.mark != "~":
            self.body = [*before, *jammed(program, self.body, fresh), *after]
        if self.speculative:
            self.body = [*self.body, *all_numbers(program, fresh)]
        self.local = blocking.local

    # -------------------------------------------------------------- pieces
    def fresh(self, what: str = "x") -> str:
        return f"%{what}{next(self.counts)}"

    def put(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def do(self, line: str) -> str:
        name = self.fresh()
        self.put(f"{name} = {line}")
        return name

    def label(self, what: str = "b") -> str:
        return f"{what}{next(self.counts)}"

    def at(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def alloca(self, name: str, type_: str) -> str:
        slot = f'%"{name}"'
        self.slots.append(f"  {slot} = alloca {type_}, align 8")
        return slot

    # -------------------------------------------------------------- the function
    @compiling()
    def text(self) -> tuple[str, str]:
        """(the body of the built-in function, what it calls, with declarations)."""
        program = self.program
        arrays = [i for i in program.inputs if i.ndim is not None]
        params = []
        for i, dense in zip(arrays, self.contiguous):
            n, assert_ = i.ndim, i.ndim is not None
            assert assert_ and n is not None
            params += [f'ptr noalias %"{i.name}.data"', *[f'i64 %"{i.name}.d{k}"' for k in range(n)]]
            params += [] if dense else [f'i64 %"{i.name}.s{k}"' for k in range(n)]
            self.bases[i.name] = f'%"{i.name}.data"'
            known = program.arrays[i.name].dims
            self.dims[i.name] = [1 if repr(known[k]) == "1" else f'%"{i.name}.d{k}"' for k in range(n)]
            if not dense:
                self.strides[i.name] = [f'%"{i.name}.s{k}"' for k in range(n)]
        params.append("ptr noalias %slots")
        if self.baseline:
            self.declared["left"] = f"@left = global i64 {BRIEF}"
        outputs = {n for o in program.outputs for n in (o[0], *o[2:])}
        self.values = dict.fromkeys(values(self.body) - outputs, "")
        used = (named(self.body)[0] | outputs) - self.values.keys()
        self.frame(arrays, [n for n in program.kinds if n in used], program.moving)
        for i in arrays if program.moving else ():
            self.heads[i.name] = self.alloca(f"{i.name}.head", "i64")
            self.put(f"store i64 1, ptr {self.heads[i.name]}")
        self.everybodys = [p.replace("noalias ", "") for p in params]
        self.everybodys += [f'ptr %"{name}.head"' for name in self.heads]
        for name, size in self.local.items():
            kind = program.arrays[name].kind
            self.bases[name] = f'%"{name}.data"'
            self.dims[name], self.strides[name] = [size], [kind.dtype.itemsize]
            stored = "i8" if kind.letter == "b" else type_of(kind)
            self.slots.append(f"  {self.bases[name]} = alloca [{size} x {stored}], align 64")
        self.block(self.body)
        for (_, variable), at in zip(program.results, self.layout.arrays):
            self.array_out(variable, at)
        for (name, _, tag, flag), (value, tagged, flagged) in zip(program.outputs, self.layout.results):
            self.write_slot(value, self.read(name), program.kinds[name])
            if tag:
                self.write_slot(tagged, self.read(tag), INT)
            if flag:
                self.write_slot(flagged, self.read(flag), program.kinds[flag])
        self.finish()
        self.put("ret void")
        if program.moving:
            self.declared |= COUNTING
        if self.sites:
            self.declared["free"] = "declare void @free(ptr)"
        body = "\n".join(["entry:", *self.slots, *self.lines])
        # (LLVM would inline it anyhow, but only after it optimised it, and then optimises all of it again; not inlined,
        # it shows less of what does not overlap)
        function = f"define internal void @body({', '.join(params)}) nounwind alwaysinline {{\n{body}\n}}\n"
        entry = self.entry(arrays)
        return entry, "\n".join([*self.declared.values(), *self.functions, function])

    def frame(self, arrays: list, kinds: dict[str, Kind] | set[str], moving: Any) -> None:
        """Begins a function: its variables, the lengths of what it is given, what variables stand for."""
        program = self.program
        if CONDITIONS:
            self.slots += ["  %met = alloca i64, align 8", "  store i64 0, ptr %met"]
        for name in kinds:
            type_ = type_of(program.kinds[name])
            self.alloca(f"v.{name}", type_)
            self.put(f'store {type_} zeroinitializer, ptr %"v.{name}"')
        for i, dense in zip(arrays, self.contiguous):
            if dense:
                size: Any = i.kind.dtype.itemsize
                strides = []
                for k in reversed(range(i.ndim or 0)):
                    strides.append(size)
                    if k:
                        size = self.do(f"mul nuw nsw i64 {size}, {self.dims[i.name][k]}")
                self.strides[i.name] = strides[::-1]
        for i in program.inputs:
            if i.ndim is None and i.name in kinds:
                self.put(
                    f'store {type_of(i.kind)} {self.read_slot(self.layout.given[i.name], i.kind)}, ptr %"v.{i.name}"'
                )
        for name in moving:
            self.moving(name)

    def finish(self) -> None:
        """Ends a function, before what it returns."""
        self.put("br label %finish")
        for error, label in self.refusals.items():
            self.at(label)
            self.fail(error)
        self.at("finish")
        for site in [*self.sites, *self.owners.values()]:
            free = "release" if self.program.moving else "free"
            self.put(f"call void @{free}(ptr {self.do(f'load ptr, ptr {site}')})")
        if CONDITIONS:
            met = self.do(f"or i64 {self.do('load i64, ptr %met')}, {self.do(f'load i64, ptr {self.slot(MET)}')}")
            self.put(f"store i64 {met}, ptr {self.slot(MET)}")

    # -------------------------------------------------------------- functions that call themselves
    def do_Define(self, s: Define) -> None:
        """A function of its own: what a call gives, then what everybody is given; it returns whether all is well."""
        program = self.program
        arrays = [i for i in program.inputs if i.ndim is not None]
        self.defined[s.name] = s
        inner = copy.copy(self)
        inner.lines, inner.slots, inner.labels, inner.sites, inner.owners = [], [], {}, [], {}
        inner.refusals = {}
        inner.dims, inner.strides, inner.bases, inner.proved = {}, {}, {}, set()
        inner.heads = {name: f'%"{name}.head"' for name in self.heads}
        inner.depth = "%depth"
        for i in arrays:
            inner.bases[i.name], inner.dims[i.name] = self.bases[i.name], self.dims[i.name]
            inner.strides[i.name] = self.strides[i.name]
        names, moving = named([s])
        inner.frame(arrays, [n for n in program.kinds if n in names], [n for n in program.moving if n in moving])
        shallow = inner.do(f"icmp slt i64 %depth, {min(DEPTH, sys.getrecursionlimit() - 100)}")
        inner.refuse(shallow, "again")
        inner.turn(s)
        params = ["i64 %depth"]
        for name in s.given:
            if name not in program.moving:
                params.append(f'{type_of(program.kinds[name])} %"p.{name}"')
                inner.put(f'store {params[-1]}, ptr %"v.{name}"')
                continue
            params += [f'ptr %"p.{name}.base"', f'ptr %"p.{name}.owner"']
            inner.keep_base(name, f'%"p.{name}.base"')
            inner.own(inner.owners[name], f'%"p.{name}.owner"')
            for slot in inner.places(name):
                params.append(f'i64 %"p.{slot[2:-1]}"')
                inner.put(f"store {params[-1]}, ptr {slot}")
        inner.block(s.body)
        moves = [name for name in s.returned if name in program.moving]
        for name in moves:  # for the caller
            inner.put(f"call void @retain(ptr {inner.owner(name)})")
        inner.finish()
        fine = inner.do(f"icmp eq i64 {inner.do(f'load i64, ptr {inner.slot(STATUS)}')}, 0")
        out = inner.do(f"insertvalue {self.returned(s)} undef, i1 {fine}, 0")
        values = [f"{type_of(program.kinds[name])} {inner.read(name)}" for name in s.returned if name not in moves]
        for name in moves:
            values += [f"ptr {inner.base(name)}", f"ptr {inner.owner(name)}"]
            values += [f"i64 {inner.do(f'load i64, ptr {slot}')}" for slot in inner.places(name)]
        for k, value in enumerate(values, 1):
            out = inner.do(f"insertvalue {self.returned(s)} {out}, {value}, {k}")
        inner.put(f"ret {self.returned(s)} {out}")
        body = "\n".join(["entry:", *inner.slots, *inner.lines])
        params += self.everybodys
        text = f'define internal {self.returned(s)} @"{s.name}"({", ".join(params)}) nounwind {{\n{body}\n}}\n'
        self.functions.append(text)

    def returned(self, s: Define) -> str:
        types = ["i1", *[type_of(self.program.kinds[n]) for n in s.returned if n not in self.program.moving]]
        for name in s.returned:
            if name in self.program.moving:
                ndim = self.program.arrays[name].ndim
                types += ["ptr", "ptr", *["i64"] * (2 * ndim - (name in self.dense and ndim > 0))]
        return f"{{{', '.join(types)}}}"

    def places(self, name: str) -> list[str]:
        """Where the lengths and strides of what a variable stands for are kept."""
        return [x[0] for x in (*self.dims[name], *self.strides[name]) if type(x) is tuple]

    def do_Call(self, s: Call) -> None:
        what = self.defined[s.function]
        args = [f"i64 {self.do(f'add i64 {self.depth}, 1')}"]
        for name in what.given:
            if name not in self.program.moving:
                args.append(f"{type_of(self.program.kinds[name])} {self.read(name)}")
                continue
            args += [f"ptr {self.base(name)}", f"ptr {self.owner(name)}"]
            args += [f"i64 {self.do(f'load i64, ptr {slot}')}" for slot in self.places(name)]
        out = self.do(f'call {self.returned(what)} @"{what.name}"({", ".join([*args, *self.everybodys])})')
        fine = self.label("fine")
        ok = self.do(f"extractvalue {self.returned(what)} {out}, 0")
        self.put(f"br i1 {ok}, label %{fine}, label %finish")
        self.at(fine)
        places = itertools.count(1)
        part = lambda: self.do(f"extractvalue {self.returned(what)} {out}, {next(places)}")
        for name in what.returned:
            if name not in self.program.moving:
                self.put(f'store {type_of(self.program.kinds[name])} {part()}, ptr %"v.{name}"')
                continue
            self.keep_base(name, part())
            old, slot = self.owner(name), self.owners[name]
            self.put(f"store ptr {part()}, ptr {slot}")
            self.put(f"call void @release(ptr {old})")
            for slot in self.places(name):
                self.put(f"store i64 {part()}, ptr {slot}")

    def entry(self, arrays: list) -> str:
        out, given = [], []
        load = lambda name, type_, pointer: out.append(f'  %"{name}" = load {type_}, ptr {pointer}')
        step = lambda name, base, by: out.append(f'  %"{name}" = getelementptr i8, ptr {base}, i64 {by}')
        for k, (i, dense) in enumerate(zip(arrays, self.contiguous), 1):
            step(f"p{k}", "%args", 8 * k)
            load(f"a{k}", "ptr", f"%p{k}")
            step(f"pd{k}", f"%a{k}", DATA)
            load(f"data{k}", "ptr", f"%pd{k}")
            given.append(f"ptr %data{k}")
            for what, offset in (("SHAPE", SHAPE), ("STRIDES", STRIDES))[: 1 if dense else 2]:
                step(f"{what}p{k}", f"%a{k}", offset)
                load(f"{what}{k}", "ptr", f"%{what}p{k}")
                for axis in range(i.ndim):
                    step(f"{what}p{k}.{axis}", f"%{what}{k}", 8 * axis)
                    load(f"{what}{k}.{axis}", "i64", f'%"{what}p{k}.{axis}"')
                    given.append(f'i64 %"{what}{k}.{axis}"')
        load("slotsarray", "ptr", "%args")
        step("slotsp", "%slotsarray", DATA)
        load("slots", "ptr", "%slotsp")
        if self.ranges:
            out.append(f"  %row = mul i64 %part, {8 * self.layout.size}")
            out[-2] = out[-2].replace('%"slots"', '%"slotsall"')
            out.append('  %slots = getelementptr i8, ptr %"slotsall", i64 %row')
        given.append("ptr %slots")
        if CONDITIONS:
            for name in ("feclearexcept", "fetestexcept"):
                self.declared[name] = f"declare i32 @{name}(i32)"
            out.append(f"  call i32 @feclearexcept(i32 {CONDITIONS})")
        out.append(f"  call void @body({', '.join(given)})")
        if CONDITIONS:
            out.append(f"  %met = call i32 @fetestexcept(i32 {CONDITIONS})")
            step("metp", "%slots", 8 * MET)
            load("metbefore", "i64", '%"metp"')
            out.append("  %metwide = zext i32 %met to i64")
            out.append('  %metall = or i64 %metwide, %"metbefore"')
            out.append('  store i64 %metall, ptr %"metp"')
        if self.ranges:
            return "\n".join([*out, "  ret void"]) + "\n"
        load("status", "i64", "%slots")
        out.append(f'  %stopped = icmp eq i64 %"status", {SIGNALLED}')
        out.append("  br i1 %stopped, label %raised, label %returned\nraised:\n  ret ptr null\nreturned:")
        out.append(f"  call void {api('Py_IncRef')}(ptr inttoptr (i64 {id(None)} to ptr))")
        out.append(f"  ret ptr inttoptr (i64 {id(None)} to ptr)")
        return "\n".join(out) + "\n"

    def slot(self, at: int) -> str:
        return self.do(f"getelementptr i8, ptr %slots, i64 {8 * at}")

    def read_slot(self, at: int, kind: Kind) -> str:
        if kind.letter == "c":
            half = Kind("f8" if kind.code == "c16" else "f4")
            return self.pair(self.read_slot(at, half), self.read_slot(at + 1, half), kind)
        if kind.letter == "f":
            x = self.do(f"load double, ptr {self.slot(at)}")
            return x if kind.code == "f8" else self.do(f"fptrunc double {x} to float")
        x = self.do(f"load i64, ptr {self.slot(at)}")
        return x if type_of(kind) == "i64" else self.do(f"trunc i64 {x} to {type_of(kind)}")

    def write_slot(self, at: int, x: str, kind: Kind) -> None:
        if kind.letter == "c":
            half = Kind("f8" if kind.code == "c16" else "f4")
            for k in range(2):
                self.write_slot(at + k, self.do(f"extractvalue {type_of(kind)} {x}, {k}"), half)
            return
        if kind.letter == "f":
            x = x if kind.code == "f8" else self.do(f"fpext float {x} to double")
            self.put(f"store double {x}, ptr {self.slot(at)}")
            return
        if type_of(kind) != "i64":
            x = self.do(f"{'sext' if kind.letter == 'i' else 'zext'} {type_of(kind)} {x} to i64")
        self.put(f"store i64 {x}, ptr {self.slot(at)}")

    def read(self, name: str) -> str:
        return self.values.get(name) or self.do(f'load {type_of(self.program.kinds[name])}, ptr %"v.{name}"')

    # -------------------------------------------------------------- statements
    def block(self, body: list) -> None:
        for s in body:
            getattr(self, f"do_{type(s).__name__}")(s)

    def do_Assign(self, s: Assign) -> None:
        kind = self.program.kinds[s.name]
        assert kind.code == s.value.kind.code, (s, kind)
        value = self.value(s.value)
        if s.name in self.values:
            self.values[s.name] = value
        else:
            self.put(f'store {type_of(kind)} {value}, ptr %"v.{s.name}"')

    def do_Store(self, s: Store) -> None:
        kind = self.program.arrays[s.array].kind
        x = self.value(s.value)
        pointer = self.pointer(s.array, s.index)
        if kind.letter == "b":
            self.put(f"store i8 {self.do(f'zext i1 {x} to i8')}, ptr {pointer}{self.parallel}")
        elif kind.letter == "c":
            half, size = ("double", 8) if kind.code == "c16" else ("float", 4)
            for k in range(2):
                part = self.do(f"extractvalue {type_of(kind)} {x}, {k}")
                where = self.do(f"getelementptr inbounds i8, ptr {pointer}, i64 {k * size}")
                self.put(f"store {half} {part}, ptr {where}, align {size}")
        else:
            self.put(f"store {type_of(kind)} {x}, ptr {pointer}{self.parallel}")

    def pointer(self, array: str, index: tuple) -> str:
        base = self.base(array)
        for i, stride in zip(index, self.strides[array]):
            if i.op == "const" and i.args[0] == 0:
                continue
            by = self.number(stride)
            base = self.do(
                f"getelementptr inbounds i8, ptr {base}, i64 {self.do(f'mul nsw i64 {self.value(i)}, {by}')}"
            )
        return base

    def base(self, array: str) -> str:
        found = self.bases[array]
        return found if found.endswith('.data"') else self.do(f"load ptr, ptr {found}")

    def number(self, x: Any) -> str:
        """A length or a stride: a number, a value, or where one is kept."""
        if isinstance(x, tuple):
            return self.do(f"load i64, ptr {x[0]}")
        return str(x)

    def kept(self, name: str, values: list[Any], what: str) -> list[Any]:
        """Lengths or strides of a view: numbers as they are, others where they are kept."""
        out = []
        for k, v in enumerate(values):
            if isinstance(v, int):
                out.append(v)
                continue
            slot = f'%"{name}.{what}{k}"'
            line = f"  {slot} = alloca i64, align 8"
            if line not in self.slots:
                self.slots.append(line)
            self.put(f"store i64 {v}, ptr {slot}")
            out.append((slot,))
        return out

    def keep_base(self, name: str, pointer: str) -> None:
        slot = f'%"{name}.base"'
        line = f"  {slot} = alloca ptr, align 8"
        if line not in self.slots:
            self.slots.append(line)
        self.put(f"store ptr {pointer}, ptr {slot}")
        self.bases[name] = slot

    def do_View(self, s: View) -> None:
        pointer = self.base(s.base)
        dims: list[Any] = []
        strides: list[Any] = []
        axis = 0
        for part in s.spec:
            if part[0] == "new":
                dims.append(1)
                strides.append(0)
                continue
            stride = self.strides[s.base][axis]
            start = part[1]
            if not (start.op == "const" and start.args[0] == 0):
                by = self.do(f"mul nsw i64 {self.value(start)}, {self.number(stride)}")
                pointer = self.do(f"getelementptr inbounds i8, ptr {pointer}, i64 {by}")
            if part[0] == "slice":
                length, step = part[2], part[3]
                step = step.args[0] if step.op == "const" else self.value(step)
                dims.append(length.args[0] if length.op == "const" else self.value(length))
                if step == 1:
                    strides.append(stride if isinstance(stride, int) else self.number(stride))
                elif isinstance(stride, int) and isinstance(step, int):
                    strides.append(stride * step)
                else:
                    strides.append(self.do(f"mul nsw i64 {self.number(stride)}, {step}"))
            axis += 1
        self.keep_base(s.name, pointer)
        self.dims[s.name] = self.kept(s.name, dims, "d")
        self.strides[s.name] = self.kept(s.name, strides, "s")
        self.keep_owner(s.name, s.base)

    def do_Permute(self, s: Permute) -> None:
        one = lambda x: x if isinstance(x, int) else self.number(x)
        self.keep_base(s.name, self.base(s.base))
        self.dims[s.name] = self.kept(s.name, [one(self.dims[s.base][a]) for a in s.axes], "d")
        self.strides[s.name] = self.kept(s.name, [one(self.strides[s.base][a]) for a in s.axes], "s")
        self.keep_owner(s.name, s.base)

    def do_Reshape(self, s: Reshape) -> None:
        size: Any = self.program.arrays[s.name].kind.dtype.itemsize
        dims = [d.args[0] if d.op == "const" else self.value(d) for d in s.dims]
        strides: list[Any] = []
        for d in reversed(dims):
            strides.insert(0, size)
            size = size * d if isinstance(size, int) and isinstance(d, int) else self.do(f"mul i64 {size}, {d}")
        self.keep_base(s.name, self.base(s.base))
        self.dims[s.name] = self.kept(s.name, dims, "d")
        self.strides[s.name] = self.kept(s.name, strides, "s")
        self.keep_owner(s.name, s.base)

    def lies_in_order(self, name: str) -> str:
        """Whether an array lies in C order."""
        size, fine = str(self.program.arrays[name].kind.dtype.itemsize), "true"
        for dim, stride in zip(reversed(self.dims[name]), reversed(self.strides[name])):
            dim = self.number(dim)
            same = self.do(f"icmp eq i64 {self.number(stride)}, {size}")
            same = self.do(f"or i1 {same}, {self.do(f'icmp eq i64 {dim}, 1')}")
            fine = self.do(f"and i1 {fine}, {same}")
            size = self.do(f"mul i64 {size}, {dim}")
        return fine

    # -------------------------------------------------------------- variables that stand for several arrays
    def moving(self, name: str) -> None:
        """Where is kept what a variable stands for: nothing, as yet."""
        array = self.program.arrays[name]
        self.keep_base(name, "null")
        self.owner_slot(name)
        slots = []
        for what in ("d", "s"):
            slots.append([(self.alloca(f"{name}.{what}{k}", "i64"),) for k in range(array.ndim)])
            for (slot,) in slots[-1]:
                self.put(f"store i64 0, ptr {slot}")
        self.dims[name], self.strides[name] = slots
        if name in self.dense and array.ndim:
            self.strides[name][-1] = array.kind.dtype.itemsize

    def owner_slot(self, name: str) -> str:
        if name not in self.owners:
            self.owners[name] = slot = f'%"{name}.owner"'
            self.slots += [f"  {slot} = alloca ptr, align 8", f"  store ptr null, ptr {slot}"]
        return self.owners[name]

    def owner(self, name: str) -> str:
        """What counts who shows the memory that an array lies in."""
        if name in self.owners:
            return self.do(f"load ptr, ptr {self.owners[name]}")
        root = self.program.arrays[name].root
        return self.heads.get(root) or self.do(f'load ptr, ptr %"{root}.site"')

    def keep_owner(self, name: str, base: str) -> None:
        """A view of what a variable stands for keeps that memory."""
        if base in self.owners:
            self.own(self.owner_slot(name), self.owner(base))

    def own(self, slot: str, owner: str) -> None:
        self.put(f"call void @retain(ptr {owner})")
        old = self.do(f"load ptr, ptr {slot}")
        self.put(f"store ptr {owner}, ptr {slot}")
        self.put(f"call void @release(ptr {old})")

    def do_Bind(self, s: Bind) -> None:
        base, owner = self.base(s.source), self.owner(s.source)
        pairs = [
            (slot, self.number(x))
            for mine, theirs in ((self.dims, self.dims), (self.strides, self.strides))
            for slot, x in zip(mine[s.name], theirs[s.source])
            if type(slot) is tuple
        ]
        self.keep_base(s.name, base)
        for (slot,), x in pairs:
            self.put(f"store i64 {x}, ptr {slot}")
        self.own(self.owners[s.name], owner)

    def array_out(self, variable: str, at: int) -> None:
        """Tells of an array that comes out: which input it lies in (-1: none), or that there is none (-2)."""
        owner = self.owner(variable)
        self.put(f"call void @retain(ptr {owner})")
        which = "-1"
        for k, head in enumerate(self.heads.values()):
            which = self.do(f"select i1 {self.do(f'icmp eq ptr {owner}, {head}')}, i64 {k}, i64 {which}")
        which = self.do(f"select i1 {self.do(f'icmp eq ptr {owner}, null')}, i64 -2, i64 {which}")
        told = [which, *(self.do(f"ptrtoint ptr {p} to i64") for p in (self.base(variable), owner))]
        told += [self.number(x) for x in (*self.dims[variable], *self.strides[variable])]
        for k, x in enumerate(told):
            self.put(f"store i64 {x}, ptr {self.slot(at + k)}")

    def do_Alloc(self, s: Alloc) -> None:
        kind = self.program.arrays[s.name].kind
        site = f'%"{s.name}.site"'
        room = f'%"{s.name}.room"'
        for slot, type_ in ((site, "ptr"), (room, "i64")):
            line = f"  {slot} = alloca {type_}, align 8"
            if line not in self.slots:
                self.slots += [line, f"  store {type_} {'null' if type_ == 'ptr' else 0}, ptr {slot}"]
        if site not in self.sites:
            self.sites.append(site)
        self.declared |= {
            "malloc": "declare noalias ptr @malloc(i64)",
            "free": "declare void @free(ptr)",
            "memset": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        }
        size: Any = kind.dtype.itemsize
        weight = real(float(size), "f8")
        dims: list[Any] = []
        strides: list[Any] = []
        for d in reversed(s.dims):
            strides.append(size)
            x = d.args[0] if d.op == "const" else self.value(d)
            dims.append(x)
            size = size * x if isinstance(size, int) and isinstance(x, int) else self.do(f"mul i64 {size}, {x}")
            weight = self.do(f"fmul double {weight}, {self.do(f'sitofp i64 {x} to double')}")
        counted = bool(self.program.moving)
        self.declared["room"] = room_for(counted)
        memory = self.do(f"call ptr @room(ptr {site}, ptr {room}, i64 {size}, double {weight})")
        if s.needed:
            self.refuse(self.do(f"icmp ne ptr {memory}, null"), "again")
        if counted:
            memory = self.do(f"getelementptr inbounds i8, ptr {memory}, i64 {HEADER}")
        if s.zero:
            self.put(f"call void @llvm.memset.p0.i64(ptr {memory}, i8 0, i64 {size}, i1 false)")
        self.keep_base(s.name, memory)
        self.dims[s.name] = self.kept(s.name, dims[::-1], "d")
        self.strides[s.name] = self.kept(s.name, strides[::-1], "s")

    def do_Multiply(self, s: Multiply) -> None:
        """Calls add_product of team.c, if there is a BLAS."""
        library = products.library(self.program.arrays[s.product.to.args[0]].kind.dtype.char)
        if not library:
            return
        slots, lows, counts = [], [], []
        for loop in s.product.loops:
            low, count = map(self.value, bounds(loop))
            slots.append(f'%"v.{loop.var}"')
            lows.append(low)
            counts.append(f"i64 {count}")
        rows, inner, columns = range(3)
        args = [f"ptr inttoptr (i64 {library} to ptr)", counts[rows], counts[columns], counts[inner]]
        for e, axes in zip(s.product[1:3] + s.product[:1], ((rows, inner), (inner, columns), (rows, columns))):
            for slot, low in zip(slots, lows):
                self.put(f"store i64 {low}, ptr {slot}")
            first = self.offset(e)
            args.append(f"ptr {self.do(f'getelementptr i8, ptr {self.base(e.args[0])}, i64 {first}')}")
            for axis in axes:  # how far apart two elements are
                self.put(f"store i64 {self.do(f'add i64 {lows[axis]}, 1')}, ptr {slots[axis]}")
                args.append(f"i64 {self.do(f'sub i64 {self.offset(e)}, {first}')}")
                self.put(f"store i64 {lows[axis]}, ptr {slots[axis]}")
        taken = self.do(f"call i64 inttoptr (i64 {team.add_product} to ptr)({', '.join(args)})")
        self.put(f'store i1 {self.do(f"trunc i64 {taken} to i1")}, ptr %"v.{s.name}"')

    def offset(self, e: E) -> str:
        """By how many bytes an element lies behind the first one of its array."""
        total = "0"
        for i, stride in zip(e.args[1:], self.strides[e.args[0]]):
            total = self.do(f"add i64 {total}, {self.do(f'mul i64 {self.value(i)}, {self.number(stride)}')}")
        return total

    def do_If(self, s: If) -> None:
        then, orelse, done = self.label("then"), self.label("else"), self.label("endif")
        self.put(f"br i1 {self.value(s.condition)}, label %{then}, label %{orelse if s.orelse else done}")
        self.at(then)
        self.block(s.then)
        self.put(f"br label %{done}")
        if s.orelse:
            self.at(orelse)
            self.block(s.orelse)
            self.put(f"br label %{done}")
        self.at(done)

    def do_Block(self, s: Block) -> None:
        done = self.label("end")
        self.labels[s.label] = done
        self.block(s.body)
        self.put(f"br label %{done}")
        self.at(done)

    def do_Leave(self, s: Leave) -> None:
        self.put(f"br label %{self.labels[s.label]}")
        self.at(self.label("dead"))

    def do_Check(self, s: Check) -> None:
        if s.bounds is not None and check_of(*s.bounds) in self.proved:
            return
        self.refuse(self.value(s.condition), s.error, s.operands)

    def refuse(self, condition: str, error: str, operands: tuple = ()) -> None:
        fine = self.label("fine")
        wrong = self.label("wrong") if operands else self.refusals.setdefault(error, self.label("wrong"))
        self.put(f"br i1 {condition}, label %{fine}, label %{wrong}")
        if operands:
            self.at(wrong)
            self.fail(error, operands)
        self.at(fine)

    def fail(self, error: str, operands: tuple = ()) -> None:
        """Ends the run by an error."""
        number = next((k for k, e in enumerate(self.errors) if k and e == (error, operands)), len(self.errors))
        if number == len(self.errors):
            self.errors.append((error, operands))
        for k, e in enumerate(operands):
            self.write_slot(OPERANDS + k, self.value(e), e.kind)
        self.write_slot(STATUS, str(number), INT)
        self.put("br label %finish")

    def heed_signals(self, turns: int) -> None:
        """In one of so many turns of a loop handlers of signals may run, and end it by an exception."""
        left = self.alloca(f"turns.{next(self.counts)}", "i64")
        self.slots.append(f"  store i64 {turns}, ptr {left}")
        now = self.do(f"sub i64 {self.do(f'load i64, ptr {left}')}, 1")
        self.put(f"store i64 {now}, ptr {left}")
        ask, stop, go = self.label("ask"), self.label("stop"), self.label("go")
        self.put(f"br i1 {self.do(f'icmp eq i64 {now}, 0')}, label %{ask}, label %{go}")
        self.at(ask)
        self.put(f"store i64 {turns}, ptr {left}")
        raised = self.do(f"call i32 {api('PyErr_CheckSignals')}()")
        self.put(f"br i1 {self.do(f'icmp eq i32 {raised}, 0')}, label %{go}, label %{stop}")
        self.at(stop)
        self.write_slot(STATUS, str(SIGNALLED), INT)
        self.put("br label %finish")
        self.at(go)

    def do_While(self, s: While) -> None:
        head, body, done = self.label("while"), self.label("turn"), self.label("done")
        calls = self.calls
        self.put(f"br label %{head}")
        self.at(head)
        self.block(s.test)
        self.put(f"br i1 {self.value(s.condition)}, label %{body}, label %{done}")
        self.at(body)
        self.turn(s)
        self.block(s.body)
        self.put(f"br label %{head}{self.scalar(calls)}")
        self.at(done)

    def do_For(self, s: For) -> None:
        start, stop = self.value(s.start), self.value(s.stop)
        step = self.value(s.step) if isinstance(s.step, E) else str(s.step)
        down = s.step.high < 0 if isinstance(s.step, E) else s.step < 0
        some = self.do(f"icmp {'sgt' if down else 'slt'} i64 {start}, {stop}")
        go, done = self.label("loop"), self.label("done")
        self.put(f"br i1 {some}, label %{go}, label %{done}")
        self.at(go)
        before, order = self.proved, self.free_order
        self.free_order = order or not s.exact
        found = hoisted(s, self.single)
        if found:
            last = self.do(f"sub nsw i64 {stop}, {start}")
            if not (isinstance(s.step, int) and s.step == 1):
                last = self.do(f"{'add' if down else 'sub'} nsw i64 {last}, 1")
                last = self.do(f"sdiv i64 {last}, {step}")
                last = self.do(f"mul nsw i64 {last}, {step}")
                last = self.do(f"add nsw i64 {start}, {last}")
            else:
                last = self.do(f"sub nsw i64 {stop}, 1")
            fine, self.early = "true", True
            for index, dim, moves in found:
                length = self.value(dim)
                for end in (start, last) if moves else (start,):
                    self.put(f'store i64 {end}, ptr %"v.{s.var}"')
                    inside = self.do(f"icmp ult i64 {self.value(index)}, {length}")
                    fine = self.do(f"and i1 {fine}, {inside}")
            self.early = False
            fast, slow = self.label("fast"), self.label("slow")
            self.put(f"br i1 {fine}, label %{fast}, label %{slow}")
            self.at(fast)
            self.proved = before | {key for *_, key in ids(s, self.single)}
            self.turns(s, start, stop, step, down, done)
            self.proved = before
            self.at(slow)
        self.turns(s, start, stop, step, down, done)
        self.free_order = order
        self.at(done)

    def turns(self, s: For, start: str, stop: str, step: str, down: bool, done: str) -> None:
        """The loop itself, which runs at least once."""
        counter = self.alloca(f"c.{s.var}.{next(self.counts)}", "i64")
        head = self.label("turn")
        self.put(f"store i64 {start}, ptr {counter}")
        self.put(f"br label %{head}")
        self.at(head)
        here = self.do(f"load i64, ptr {counter}")
        self.put(f'store i64 {here}, ptr %"v.{s.var}"')
        self.turn(s)
        calls, plain, self.plain = self.calls, self.plain, not any(map(parts, s.body))
        hint = self.vectors(s.lanes) if s.lanes else ""
        self.block(s.body)
        self.plain, self.parallel = plain, ""
        following = self.do(f"add nsw i64 {self.do(f'load i64, ptr {counter}')}, {step}")
        self.put(f"store i64 {following}, ptr {counter}")
        more = self.do(f"icmp {'sgt' if down else 'slt'} i64 {following}, {stop}")
        self.put(f"br i1 {more}, label %{head}, label %{done}{self.scalar(calls) or hint}")

    def turn(self, s: For | While | Define) -> None:
        """What begins a turn of a loop, or a call: baseline code counts its steps, other code heeds signals, unless
        threads run it that are none of the interpreter's."""
        if self.baseline:
            count = sum(1 + sum(len(walk(e)) for e in expressions(x)) for x in s.body)
            left = self.do(f"sub i64 {self.do('load i64, ptr @left')}, {count}")
            self.put(f"store i64 {left}, ptr @left")
            self.refuse(self.do(f"icmp sgt i64 {left}, 0"), "long")
        elif not self.ranges and (type(s) is While or id(s) in self.outermost):
            self.heed_signals(LONG_TURNS if repeats(s.body) else TURNS)

    def vectors(self, lanes: int) -> str:
        """What tells LLVM that a loop's turns are independent, and how many are one vector."""
        numbers = [f"!{next(self.counts) + 1}" for _ in range(6)]
        group, loop, accesses, width, together, enable = numbers
        found = machine()
        assert found is not None
        self.parallel = f", !llvm.access.group {group}"
        self.declared[group] = f"{group} = distinct !{{}}"
        self.declared[accesses] = f'{accesses} = !{{!"llvm.loop.parallel_accesses", {group}}}'
        hints = [accesses]
        if lanes > 0:
            one = min(lanes, found.vector_bytes // 8)
            for number, what, value in (
                (width, "vectorize.width", f"i32 {one}"),
                (together, "interleave.count", f"i32 {lanes // one}"),
                (enable, "vectorize.enable", "i1 true"),
            ):
                self.declared[number] = f'{number} = !{{!"llvm.loop.{what}", {value}}}'
                hints.append(number)
        self.declared[loop] = f"{loop} = distinct !{{{', '.join([loop, *hints])}}}"
        return f", !llvm.loop {loop}"

    def scalar(self, calls: int) -> str:
        """What keeps LLVM from making vectors of a loop, if functions of libm were called since there were `calls`.

        They have no vector form, so that little is lost; and where they are called LLVM's two estimates of what vectors
        gain may differ, which ends the process in builds with assertions (llvmlite 0.50; LLVM issue 149651).
        """
        if calls == self.calls:
            return ""
        self.declared["!0"] = '!0 = !{!"llvm.loop.vectorize.enable", i1 false}'
        number = f"!{next(self.counts) + 1}"
        self.declared[number] = f"{number} = distinct !{{{number}, !0}}"
        return f", !llvm.loop {number}"

    # -------------------------------------------------------------- expressions
    def value(self, e: E) -> str:
        kind = e.kind
        t = type_of(kind)
        if e.op == "const":
            return self.constant(e.args[0], kind)
        if e.op == "var":
            return self.read(e.args[0])
        if e.op == "load":
            return self.element(e)
        if e.op == "dim":
            name, axis = e.args
            return self.number(self.dims[name][axis])
        if e.op == "apart":
            return self.do(f"icmp ne ptr {self.owner(e.args[0])}, {self.owner(e.args[1])}")
        if e.op == "dense":
            return self.lies_in_order(e.args[0])
        if e.op == "held":
            return self.do(f"icmp ne ptr {self.owner(e.args[0])}, null")
        if e.op in ("copy", "still"):
            return self.value(e.args[0])
        if e.op == "valued":
            return self.value(e.args[1])
        if e.op == "cast":
            return self.cast(self.value(e.args[0]), e.args[0].kind, kind)
        if e.op == "wrap":
            i = self.value(e.args[0])
            if check_of(*e.args) in self.proved:
                return i
            behind = self.do(f"add i64 {i}, {self.value(e.args[1])}")
            return self.do(f"select i1 {self.do(f'icmp slt i64 {i}, 0')}, i64 {behind}, i64 {i}")
        if e.op == "inside":
            i, n = self.value(e.args[0]), self.value(e.args[1])
            if e.args[0].low < 0:
                behind = self.do(f"add i64 {i}, {n}")
                i = self.do(f"select i1 {self.do(f'icmp slt i64 {i}, 0')}, i64 {behind}, i64 {i}")
            return self.do(f"icmp ult i64 {i}, {n}")
        if e.op == "select":
            g = strong_zero(e) if self.program.mark != "~" else None
            if g is not None:  # one test is enough
                c, a = self.do(f"fcmp une {t} {self.value(g)}, {real(0.0, kind.code)}"), self.value(e.args[2])
                return self.do(f"select i1 {c}, {t} {a}, {t} {real(0.0, kind.code)}")
            c, a, b = map(self.value, e.args)
            if kind.letter == "c":  # in halves, of which vectors are made
                half, pick = type_of(Kind("f8" if kind.code == "c16" else "f4")), []
                for k in range(2):
                    x, y = (self.do(f"extractvalue {t} {v}, {k}") for v in (a, b))
                    pick.append(self.do(f"select i1 {c}, {half} {x}, {half} {y}"))
                return self.pair(*pick, kind)
            return self.do(f"select i1 {c}, {t} {a}, {t} {b}")
        power = constant(e.args[1]) if e.op == "pow" else None
        if power == 2 and kind.letter == "f":  # as NumPy has it; a call would keep LLVM from making vectors of a loop
            x = self.value(e.args[0])
            return self.do(f"fmul {t} {x}, {x}")
        if kind == F8 and power in (1.5, -1.5, 2.5, -2.5):
            return self.half_power(self.value(e.args[0]), float(power))
        if e.op == "filled":  # by a method that is given where the array lies, and how many numbers it has
            method, array, *given = e.args
            address = self.do(f"ptrtoint ptr {self.base(array)} to i64")
            found = self.called(self.value(method), [address, *map(self.value, given)], [INT, *[a.kind for a in given]])
            self.put(f"call void {api('Py_DecRef')}(ptr {found})")
            return "0"
        args = [self.value(a) for a in e.args]
        if e.op in ("double", "word"):  # by a function of the bit generator, of its state
            function, state = (self.do(f"inttoptr i64 {a} to ptr") for a in args)
            if e.op == "double":
                return self.do(f"call double {function}(ptr {state})")
            return self.do(f"zext i32 {self.do(f'call i32 {function}(ptr {state})')} to i64")
        if e.op == "drawn":
            return self.drawn(e, args)
        given = e.args[0].kind
        if given.letter == "c":
            return self.complex(e.op, args, given, kind)
        if given.letter == "f":
            return self.floating(e.op, args, given, kind)
        return self.integer(e.op, args, given, kind, e)

    def drawn(self, e: E, args: list[str]) -> str:
        """What a method of Python's returns, a number."""
        found = self.called(args[0], args[1:], [a.kind for a in e.args[1:]])
        convert = "PyFloat_AsDouble" if e.kind.letter == "f" else "PyLong_AsLongLong"
        x = self.do(f"call {type_of(e.kind)} {api(convert)}(ptr {found})")
        self.put(f"call void {api('Py_DecRef')}(ptr {found})")
        return x

    def called(self, method: str, args: list[str], kinds: list[Kind]) -> str:
        """The object that a method of Python's returns; where it raises, Python has to run the loop."""
        method = self.do(f"inttoptr i64 {method} to ptr")
        if not args:
            found = self.do(f"call ptr {api('PyObject_CallNoArgs')}(ptr {method})")
        else:
            letters = "".join("d" if k.letter == "f" else "L" for k in kinds)
            name, n = f"@given.{letters}", len(letters) + 1
            self.declared[name] = f'{name} = private constant [{n} x i8] c"{letters}\\00"'
            given = ", ".join(f"{type_of(k)} {x}" for k, x in zip(kinds, args))
            called = f"call ptr (ptr, ptr, ...) {api('PyObject_CallFunction')}(ptr {method}, ptr {name}, {given})"
            found = self.do(called)
        fine, raised = self.do(f"icmp ne ptr {found}, null"), self.label("raised")
        ready = self.label("ready")
        self.put(f"br i1 {fine}, label %{ready}, label %{raised}")
        self.at(raised)
        self.put(f"call void {api('PyErr_Clear')}()")
        self.put(f"br label %{ready}")
        self.at(ready)
        self.refuse(fine, "draw")
        return found

    def constant(self, x: Any, kind: Kind) -> str:
        if kind.letter == "c":
            half = "f8" if kind.code == "c16" else "f4"
            t = TYPES[half]
            return f"{{ {t} {real(complex(x).real, half)}, {t} {real(complex(x).imag, half)} }}"
        if kind.letter == "f":
            return real(float(x), kind.code)
        return str(int(x))

    def element(self, e: E) -> str:
        kind, pointer = e.kind, self.pointer(e.args[0], e.args[1:])
        if kind.letter == "b":
            return self.do(f"icmp ne i8 {self.do(f'load i8, ptr {pointer}{self.parallel}')}, 0")
        if kind.letter == "c":
            half, size = ("double", 8) if kind.code == "c16" else ("float", 4)
            second = self.do(f"getelementptr inbounds i8, ptr {pointer}, i64 {size}")
            return self.pair(
                self.do(f"load {half}, ptr {pointer}, align {size}"),
                self.do(f"load {half}, ptr {second}, align {size}"),
                kind,
            )
        return self.do(f"load {type_of(kind)}, ptr {pointer}{self.parallel}")

    def pair(self, a: str, b: str, kind: Kind) -> str:
        t, half = type_of(kind), "double" if kind.code == "c16" else "float"
        return self.do(f"insertvalue {t} {self.do(f'insertvalue {t} undef, {half} {a}, 0')}, {half} {b}, 1")

    def cast(self, x: str, a: Kind, b: Kind) -> str:
        ta, tb = type_of(a), type_of(b)
        if a.code == b.code:
            return x
        if b.letter == "c":
            half = Kind("f8" if b.code == "c16" else "f4")
            if a.letter == "c":
                old = Kind("f8" if a.code == "c16" else "f4")
                both = [self.cast(self.do(f"extractvalue {ta} {x}, {k}"), old, half) for k in range(2)]
                return self.pair(*both, b)
            return self.pair(self.cast(x, a, half), real(0.0, half.code), b)
        if b.letter == "b":
            return self.do(f"fcmp une {ta} {x}, {real(0.0, a.code)}" if a.letter == "f" else f"icmp ne {ta} {x}, 0")
        if a.letter == "f":
            if b.letter == "f":
                return self.do(f"{'fpext' if a.code == 'f4' else 'fptrunc'} {ta} {x} to {tb}")
            return self.do(f"{'fptoui' if b.letter == 'u' else 'fptosi'} {ta} {x} to {tb}")
        if b.letter == "f":
            return self.do(f"{'sitofp' if a.letter == 'i' else 'uitofp'} {ta} {x} to {tb}")
        if a.letter != "b" and a.dtype.itemsize == b.dtype.itemsize:
            return x
        if a.letter != "b" and a.dtype.itemsize > b.dtype.itemsize:
            return self.do(f"trunc {ta} {x} to {tb}")
        return self.do(f"{'sext' if a.letter == 'i' else 'zext'} {ta} {x} to {tb}")

    def integer(self, op: str, args: list[str], given: Kind, kind: Kind, e: E) -> str:
        t = type_of(given)
        signed = given.letter == "i"
        if op in ("lt", "le", "gt", "ge", "eq", "ne"):
            sign = "" if op in ("eq", "ne") else "s" if signed else "u"
            return self.do(f"icmp {sign}{op} {t} {args[0]}, {args[1]}")
        if op in ("add", "sub", "mul"):
            flags = "nsw " if kind.python and not self.early else ""
            return self.do(f"{op} {flags}{t} {args[0]}, {args[1]}")
        if op.startswith("fits_"):
            op = op[5:]
            if op in ("add", "sub", "mul"):
                name = f"llvm.s{op}.with.overflow.{t}"
                self.declared[name] = f"declare {{{t}, i1}} @{name}({t}, {t})"
                both = self.do(f"call {{{t}, i1}} @{name}({t} {args[0]}, {t} {args[1]})")
                return self.do(f"xor i1 {self.do(f'extractvalue {{{t}, i1}} {both}, 1')}, true")
            if op in ("neg", "abs"):
                return self.do(f"icmp ne {t} {args[0]}, {-(2**63)}")
            if op == "floordiv":
                return self.do(f"icmp ne {t} {args[0]}, {-(2**63)}")
            if op == "shl":
                there = self.do(f"shl {t} {args[0]}, {args[1]}")
                back = self.do(f"ashr {t} {there}, {args[1]}")
                return self.do(f"icmp eq {t} {back}, {args[0]}")
            raise NotLowered(op)
        if op == "within":
            low = self.do(f"icmp sge {t} {args[0]}, {args[1]}")
            return self.do(f"and i1 {low}, {self.do(f'icmp sle {t} {args[0]}, {args[2]}')}")
        if op in ("and", "or", "xor"):
            return self.do(f"{op} {t} {args[0]}, {args[1]}")
        if op == "not":
            return self.do(f"xor i1 {args[0]}, true")
        if op == "invert":
            return self.do(f"xor {t} {args[0]}, -1")
        if op == "neg":
            return self.do(f"sub {t} 0, {args[0]}")
        if op == "abs":
            if not signed:
                return args[0]
            test, other = self.do(f"icmp slt {t} {args[0]}, 0"), self.do(f"sub {t} 0, {args[0]}")
            return self.do(f"select i1 {test}, {t} {other}, {t} {args[0]}")
        if op in ("min", "max"):
            test = self.do(f"icmp {'slt' if op == 'min' else 'sgt'} {t} {args[0]}, {args[1]}")
            return self.do(f"select i1 {test}, {t} {args[0]}, {t} {args[1]}")
        if op in ("floordiv", "mod"):
            return self.divided(op, args, t, signed, e)
        if op in ("shl", "shr"):
            bits = given.dtype.itemsize * 8
            name = "shl" if op == "shl" else "ashr" if signed else "lshr"
            out = self.do(f"{name} {t} {args[0]}, {args[1]}")
            if given.python or (e.args[1].low >= 0 and e.args[1].high < bits):
                return out
            within = self.do(f"icmp ult {t} {args[1]}, {bits}")
            far = self.do(f"ashr {t} {args[0]}, {bits - 1}") if op == "shr" and signed else "0"
            return self.do(f"select i1 {within}, {t} {out}, {t} {far}")
        raise NotLowered(f"{op} of {given}")

    def divided(self, op: str, args: list[str], t: str, signed: bool, e: E, near: bool = True) -> str:
        a, b = args
        if near and op == "mod" and signed and e.kind.python and e.args[1].op != "const" and not self.early:
            return self.nearby(a, b, t, lambda: self.divided(op, args, t, signed, e, near=False))
        whole = e.args[1].low <= 0 <= e.args[1].high and not e.args[1].kind.python
        if whole:  # NumPy's x // 0 and x % 0 are 0
            zero = self.do(f"icmp eq {t} {b}, 0")
            b = self.do(f"select i1 {zero}, {t} 1, {t} {b}")
            self.meet(zero)
        if signed and not e.kind.python and e.args[1].low <= -1 <= e.args[1].high:
            minus = self.do(f"icmp eq {t} {b}, -1")  # the least number // -1 wraps
            safe = self.do(f"select i1 {minus}, {t} 1, {t} {b}")
        else:
            minus, safe = "", b
        sign = "s" if signed else "u"
        quotient, rest = self.do(f"{sign}div {t} {a}, {safe}"), self.do(f"{sign}rem {t} {a}, {safe}")
        if signed and not (e.args[0].low >= 0 and e.args[1].low > 0):
            other = self.do(f"icmp slt {t} {self.do(f'xor {t} {rest}, {safe}')}, 0")
            down = self.do(f"and i1 {other}, {self.do(f'icmp ne {t} {rest}, 0')}")
            quotient = self.do(f"select i1 {down}, {t} {self.do(f'sub {t} {quotient}, 1')}, {t} {quotient}")
            rest = self.do(f"select i1 {down}, {t} {self.do(f'add {t} {rest}, {safe}')}, {t} {rest}")
        out = quotient if op == "floordiv" else rest
        if minus:
            negative = self.do(f"sub {t} 0, {a}") if op == "floordiv" else "0"
            out = self.do(f"select i1 {minus}, {t} {negative}, {t} {out}")
        return self.do(f"select i1 {zero}, {t} 0, {t} {out}") if whole else out

    def meet(self, condition: str) -> None:
        """Notes that NumPy may warn, where the processor meets nothing."""
        if CONDITIONS:
            met = self.do(f"or i64 {self.do('load i64, ptr %met')}, {self.do(f'zext i1 {condition} to i64')}")
            self.put(f"store i64 {met}, ptr %met")

    def nearby(self, a: str, b: str, t: str, far: Callable[[], str]) -> str:
        """Python's a % b: a, or b more or less, where that lies in [0, b), as with indices that wrap: a division, which
        `far` makes, takes ten times as long."""
        slot = self.alloca(f"mod.{next(self.counts)}", t)
        slow, done = self.label("far"), self.label("near")
        more, less = self.do(f"add {t} {a}, {b}"), self.do(f"sub {t} {a}, {b}")
        down = self.do(f"select i1 {self.do(f'icmp sge {t} {a}, {b}')}, {t} {less}, {t} {a}")
        near = self.do(f"select i1 {self.do(f'icmp slt {t} {a}, 0')}, {t} {more}, {t} {down}")
        inside = self.do(f"icmp ult {t} {near}, {b}")
        fine = self.do(f"and i1 {inside}, {self.do(f'icmp sgt {t} {b}, 0')}")
        self.put(f"store {t} {near}, ptr {slot}")
        self.put(f"br i1 {fine}, label %{done}, label %{slow}")
        self.at(slow)
        self.put(f"store {t} {far()}, ptr {slot}")
        self.put(f"br label %{done}")
        self.at(done)
        return self.do(f"load {t}, ptr {slot}")

    def call(self, name: str, args: list[str], t: str) -> str:
        """An intrinsic, or a function of libm."""
        suffix = "f" if t == "float" else ""
        self.calls += name not in INSTRUCTIONS
        if name in INTRINSICS:
            full = f"llvm.{INTRINSICS[name]}.{'f32' if t == 'float' else 'f64'}"
        elif name in LIBM:
            full = f"{LIBM[name]}{suffix}"
        else:
            raise NotLowered(name)
        self.declared[full] = f"declare {t} @{full}({', '.join([t] * len(args))})"
        return self.do(f"call {t} @{full}({', '.join(f'{t} {a}' for a in args)})")

    def half_power(self, x: str, power: float) -> str:
        """x to +-1.5 or +-2.5 by square roots, within 2 ulp; at -inf and -0.0 as pow has it."""
        one, infinity = real(1.0, "f8"), float("inf")
        x = self.do(f"fadd double {x}, {real(0.0, 'f8')}")  # -0.0 is 0.0
        whole = x if abs(power) == 1.5 else self.do(f"fmul double {x}, {x}")
        root = self.call("sqrt", [x], "double")
        if power > 0:
            y = self.do(f"fmul double {whole}, {root}")
        else:  # in this order nothing is too large or too small before the result is
            y = self.do(f"fdiv double {self.do(f'fdiv double {one}, {whole}')}, {root}")
        least = self.do(f"fcmp oeq double {x}, {real(-infinity, 'f8')}")
        return self.do(f"select i1 {least}, double {real(infinity if power > 0 else 0.0, 'f8')}, double {y}")

    def floating(self, op: str, args: list[str], given: Kind, kind: Kind) -> str:
        t = type_of(given)
        zero = real(0.0, given.code)
        if op in ("lt", "le", "gt", "ge", "eq"):
            return self.do(f"fcmp o{op} {t} {args[0]}, {args[1]}")
        if op == "ne":
            return self.do(f"fcmp une {t} {args[0]}, {args[1]}")
        if op in ("add", "sub", "mul", "div"):
            flags = "reassoc nsz contract " if self.free_order and op != "div" else ""
            return self.do(f"f{op} {flags}{t} {args[0]}, {args[1]}")
        if op == "neg":
            return self.do(f"fneg {t} {args[0]}")
        if op == "conj":
            return args[0]
        if op in ("abs",):
            name = f"llvm.fabs.{'f32' if t == 'float' else 'f64'}"
            self.declared[name] = f"declare {t} @{name}({t})"
            return self.do(f"call {t} @{name}({t} {args[0]})")
        if op == "within":
            low = self.do(f"fcmp oge {t} {args[0]}, {args[1]}")
            return self.do(f"and i1 {low}, {self.do(f'fcmp ole {t} {args[0]}, {args[2]}')}")
        if op == "finite":
            return self.do(f"fcmp ord {t} {self.do(f'fsub {t} {args[0]}, {args[0]}')}, {zero}")
        if op == "isnan":
            return self.do(f"fcmp uno {t} {args[0]}, {args[0]}")
        if op == "isinf":
            absolute = self.floating("abs", args, given, given)
            return self.do(f"fcmp oeq {t} {absolute}, {real(float('inf'), given.code)}")
        if op in ("floordiv", "mod"):
            return self.floored(op, args, given)
        if op == "complex":
            return self.pair(*args, kind)
        if op in ("real_of_ratio", "imag_of_ratio", "modulus"):  # of complex numbers whose parts these are (pairs.py)
            whole = Kind("c16" if given.code == "f8" else "c8")
            both = [self.pair(*args[k : k + 2], whole) for k in range(0, len(args), 2)]
            if op == "modulus":
                return self.complex("abs", both, whole, given)
            return self.complex(op[:4], [self.complex("div", both, whole, whole)], whole, given)
        if op == "pow" and t == "double":
            return self.call("pow", args, t)
        if op == "gamma":
            self.declared |= GAMMA
            return self.do(f"call double @gamma(double {args[0]})")
        if op in LOGARITHMS_OF_SUMS:
            return self.log_of_sum(op, args, given)
        if self.plain and op in ELEMENTARY and not kind.python:
            return self.elementary(op, args[0], given)
        return self.call(op, args, t)

    def log_of_sum(self, op: str, args: list[str], given: Kind) -> str:
        """np.logaddexp and np.logaddexp2 as NumPy computes them; where both are equal, infinities among them, there is
        no difference to be taken."""
        t, (x, y), (power, same, unit) = type_of(given), args, LOGARITHMS_OF_SUMS[op]
        zero = real(0.0, given.code)
        equal = self.do(f"fcmp oeq {t} {x}, {y}")
        apart = self.do(f"select i1 {equal}, {t} {zero}, {t} {y}")
        apart = self.do(f"fsub {t} {self.do(f'select i1 {equal}, {t} {zero}, {t} {x}')}, {apart}")
        first = self.do(f"fcmp ogt {t} {apart}, {zero}")
        larger = self.do(f"select i1 {first}, {t} {x}, {t} {y}")
        down = self.do(f"select i1 {first}, {t} {self.do(f'fneg {t} {apart}')}, {t} {apart}")
        more = self.call("log1p", [self.call(power, [down], t)], t)
        if unit != 1.0:
            more = self.do(f"fmul {t} {real(unit, given.code)}, {more}")
        more = self.do(f"select i1 {equal}, {t} {real(same, given.code)}, {t} {more}")
        self.meet(self.do(f"fcmp uno {t} {x}, {y}"))  # of which NumPy warns
        return self.do(f"fadd {t} {larger}, {more}")

    def elementary(self, op: str, x: str, kind: Kind) -> str:
        """A function of NumPy's in a loop without loops and branches, whose instructions become vectors with it."""
        t, name = type_of(kind), f"elementary.{op}.{kind.code}"
        if name not in self.declared:
            code = Code(0)
            y = ELEMENTARY[op](Lane(code, "%x", kind.dtype))
            for full, text in code.declared.items():
                self.declared.setdefault(full.removeprefix("@"), text)
            body = "\n".join([*code.entry, *code.lines])
            text = f"define internal {t} @{name}({t} %x) alwaysinline {{\nentry:\n{body}\n  ret {t} {y.name}\n}}"
            self.declared |= {**code.helpers, name: text}
        if op in LOGARITHMS:  # whose instructions meet no condition outside their domain
            self.meet(self.do(f"fcmp ole {t} {x}, {real(-1.0 if op == 'log1p' else 0.0, kind.code)}"))
        return self.do(f"call {t} @{name}({t} {x})")

    def floored(self, op: str, args: list[str], given: Kind) -> str:
        """Python's and NumPy's a // b and a % b, from fmod (NumPy's npy_divmod)."""
        t, (a, b) = type_of(given), args
        zero, one = real(0.0, given.code), real(1.0, given.code)
        rest = self.call("fmod", [a, b], t)
        some = self.do(f"fcmp une {t} {rest}, {zero}")
        other = self.do(f"xor i1 {self.do(f'fcmp olt {t} {b}, {zero}')}, {self.do(f'fcmp olt {t} {rest}, {zero}')}")
        moved = self.do(f"and i1 {some}, {other}")
        rest_moved = self.do(f"select i1 {moved}, {t} {self.do(f'fadd {t} {rest}, {b}')}, {t} {rest}")
        if op == "mod":
            return self.do(f"select i1 {some}, {t} {rest_moved}, {t} {self.call('copysign', [zero, b], t)}")
        quotient = self.do(f"fdiv {t} {self.do(f'fsub {t} {a}, {rest}')}, {b}")
        quotient = self.do(f"select i1 {moved}, {t} {self.do(f'fsub {t} {quotient}, {one}')}, {t} {quotient}")
        floor = self.call("floor", [quotient], t)
        over = self.do(f"fcmp ogt {t} {self.do(f'fsub {t} {quotient}, {floor}')}, {real(0.5, given.code)}")
        floor = self.do(f"select i1 {over}, {t} {self.do(f'fadd {t} {floor}, {one}')}, {t} {floor}")
        plain = self.do(f"fdiv {t} {a}, {b}")
        none = self.do(f"fcmp oeq {t} {quotient}, {zero}")
        floor = self.do(f"select i1 {none}, {t} {self.call('copysign', [zero, plain], t)}, {t} {floor}")
        by_zero = self.do(f"fcmp oeq {t} {b}, {zero}")
        return self.do(f"select i1 {by_zero}, {t} {plain}, {t} {floor}")

    def complex(self, op: str, args: list[str], given: Kind, kind: Kind) -> str:
        t = type_of(given)
        half = Kind("f8" if given.code == "c16" else "f4")
        h = type_of(half)
        part = lambda x, k: self.do(f"extractvalue {t} {x}, {k}")
        do = lambda name, x, y: self.do(f"f{name} {h} {x}, {y}")
        a = [part(args[0], 0), part(args[0], 1)]
        if op == "real" or op == "imag":
            return a[op == "imag"]
        if op == "conj":
            return self.pair(a[0], self.do(f"fneg {h} {a[1]}"), kind)
        if op == "neg":
            return self.pair(self.do(f"fneg {h} {a[0]}"), self.do(f"fneg {h} {a[1]}"), kind)
        if op == "abs":
            if h == "float":
                return self.call("hypot", a, h)
            self.declared |= MODULUS
            return self.do(f"call double @modulus(double {a[0]}, double {a[1]})")
        if op == "exp":
            size = self.call("exp", [a[0]], h)
            return self.pair(
                do("mul", size, self.call("cos", [a[1]], h)), do("mul", size, self.call("sin", [a[1]], h)), kind
            )
        if op == "finite":
            both = [self.floating("finite", [x], half, half) for x in a]
            return self.do(f"and i1 {both[0]}, {both[1]}")
        b = [part(args[1], 0), part(args[1], 1)] if len(args) > 1 else []
        if op in ("eq", "ne"):
            same = self.do(
                f"and i1 {self.do(f'fcmp oeq {h} {a[0]}, {b[0]}')}, {self.do(f'fcmp oeq {h} {a[1]}, {b[1]}')}"
            )
            return same if op == "eq" else self.do(f"xor i1 {same}, true")
        if op in ("add", "sub"):
            return self.pair(do(op, a[0], b[0]), do(op, a[1], b[1]), kind)
        if op == "mul":
            first = do("sub", do("mul", a[0], b[0]), do("mul", a[1], b[1]))
            return self.pair(first, do("add", do("mul", a[0], b[1]), do("mul", a[1], b[0])), kind)
        if (
            op == "div"
        ):  # by the larger part (Smith, CACM 1962), as Python and NumPy do; by zero, NumPy divides each part
            size = [self.floating("abs", [x], half, half) for x in b]
            wide = self.do(f"fcmp oge {h} {size[0]}, {size[1]}")
            pick = lambda x, y: self.do(f"select i1 {wide}, {h} {x}, {h} {y}")
            large, small = pick(b[0], b[1]), pick(b[1], b[0])
            ratio = do("div", small, large)
            below = do("add", large, do("mul", small, ratio))
            first = pick(do("add", a[0], do("mul", a[1], ratio)), do("add", do("mul", a[0], ratio), a[1]))
            second = pick(do("sub", a[1], do("mul", a[0], ratio)), do("sub", do("mul", a[1], ratio), a[0]))
            zero = self.do(f"fcmp oeq {h} {do('add', *size)}, {real(0.0, half.code)}")
            parts = (first, a[0]), (second, a[1]), (below, real(0.0, half.code))
            first, second, below = (self.do(f"select i1 {zero}, {h} {y}, {h} {x}") for x, y in parts)
            return self.pair(do("div", first, below), do("div", second, below), kind)
        raise NotLowered(f"{op} of {given}")


def strong_zero(e: E) -> E | None:
    """The cotangent whose product with a slope this is, if it is one (derivative.strong): zero where the cotangent is,
    whatever the slope."""
    test, zero, product = e.args
    if test.op != "and" or zero.op != "const" or zero.args[0] != 0 or e.kind.letter != "f":
        return None
    a, b = test.args
    if (a.op, b.op) != ("eq", "ne") or a.args[0].kind != e.kind or a.args[1].op != "const" or a.args[1].args[0] != 0:
        return None
    g = repr(a.args[0])

    def divides(e: E) -> bool:
        first = e.op in ("neg", "div") and divides(e.args[0])
        return first or (e.op == "mul" and any(map(divides, e.args))) or repr(e) == g

    return a.args[0] if repr(b.args[0]) == repr(b.args[1]) == repr(product) and divides(product) else None


def values(body: list) -> set[str]:
    """The variables that are assigned at one place, and read behind it alone, until the statements that it is among
    end."""
    every = statements(body)
    if any(type(s) is Define for s in every):
        return set()
    times = Counter(s.name for s in every if type(s) is Assign)
    known: set[str] = set()
    others = {s.name for s in every if type(s) is Multiply}

    def look(body: list) -> None:
        mine = []
        for s in body:
            for e in (*expressions(s), *(s.bounds or () if type(s) is Check else ())):
                others.update(variables(e) - known)
            for inner in parts(s):
                look(inner)
            if type(s) is Assign:
                mine.append(s.name)
                known.add(s.name)
        known.difference_update(mine)

    look(body)
    return {name for name, n in times.items() if n == 1} - others


def named(body: list) -> tuple[set[str], set[str]]:
    """The variables, and those that stand for arrays, that statements read or bind."""
    names: set[str] = set()
    moving: set[str] = set()
    for s in statements(body):
        names |= {s.name} if type(s) in (Assign, Multiply) else {s.var} if type(s) is For else set()
        moving |= {x for x in s if isinstance(x, str)} if type(s) in (Store, View, Permute, Reshape, Bind) else set()
        if type(s) is Define:
            moving.update(s.given, s.returned)
            names.update(s.given, s.returned)
        for e in expressions(s):
            for x in walk(e):
                if x.op == "var":
                    names.add(x.args[0])
                elif x.op in ("load", "dim", "apart", "dense", "held"):
                    moving.update(a for a in x.args if isinstance(a, str))
    return names, moving


# ------------------------------------------------------------------ how arrays lie that variables stand for
def dense(program: Program, contiguous: list[bool]) -> set[str]:
    """The arrays of a program that lie in C order, whatever variables stand for."""
    if not program.moving:
        return set()
    inputs = [i.name for i in program.inputs if i.ndim is not None]
    found = {*program.arrays} - {n for n, c in zip(inputs, contiguous) if not c}
    size = -1
    while size != len(found):
        size = len(found)
        for s in statements(program.body):
            lies = type(s) is not Permute
            if type(s) is View:
                lies = s.base in found and _rows(s.spec, program.arrays[s.base])
            elif type(s) is Bind:
                lies = s.source in found
            if not lies:
                found.discard(s.name)
    return found


def _rows(spec: tuple, base: Array) -> bool:
    """Whether a view of an array in C order is its rows, or some of them, one after the other."""
    rest = list(itertools.dropwhile(lambda p: p[1][0] == "index", enumerate(spec)))
    if any(part[0] != "slice" or repr(part[3]) != "1" for _, part in rest):
        return False
    return all(repr(part[1]) == "0" and repr(part[2]) == repr(base.dims[axis]) for axis, part in rest[1:])


# ------------------------------------------------------------------ indices that are seen to stay inside
def definitions(body: list) -> dict[str, E]:
    """What variables are that are assigned at one place alone, from integers without loads."""
    count: dict[str, int] = {}
    found: dict[str, E] = {}
    for s in statements(body):
        if type(s) is Assign:
            count[s.name] = count.get(s.name, 0) + 1
            found[s.name] = s.value
        elif type(s) is For:
            count[s.var] = 2
    reads = ("load", "double", "word", "drawn", "filled")
    return {n: e for n, e in found.items() if count[n] == 1 and not any(x.op in reads for x in walk(e))}


def check_of(index: E, dim: E) -> tuple:
    """What tells one check of an index from others."""
    return id(index), repr(dim)


def repeats(body: list) -> bool:
    """Whether statements hold a loop, or a call of a function, which may."""
    return any(type(x) in (For, While, Call) for x in statements(body))


def outermost(body: list) -> Iterator[For]:
    """Loops that are in no other one."""
    for s in body:
        if type(s) is For:
            yield s
        elif type(s) is not While:
            for inner in parts(s):
                yield from outermost(inner)


def hoisted(s: For, single: dict[str, E]) -> list[tuple[E, E, bool]]:
    """(index, length, whether it moves with the loop) of the checks in a loop that its ends decide."""
    found: dict[str, tuple[E, E, bool]] = {}
    for index, dim, moves, _ in ids(s, single):
        found[repr((index, dim))] = (index, dim, moves)
    return list(found.values())


def ids(s: For, single: dict[str, E]) -> Iterator[tuple[E, E, bool, tuple]]:
    """(index, length, whether it moves, which check it is) of those checks."""
    if repeats(s.body):
        return
    inside = {x.name for x in statements(s.body) if type(x) is Assign}
    made = {x.name for x in statements(s.body) if type(x) in (View, Alloc, Permute, Reshape, Bind)}
    for c, before in ordered(s.body, set()):
        index, dim = c.bounds
        known = {n: e for n, e in single.items() if n in before or temporary(n)}
        try:
            expanded = expand(index, s.var, inside, known, made)
            length = expand(dim, s.var, inside, known, made)
        except NotLowered:
            continue
        if s.var in variables(length) or not linear(expanded, s.var):
            continue
        yield expanded, length, s.var in variables(expanded), check_of(index, dim)


def ordered(body: list, before: set[str]) -> Iterator[tuple[Check, set[str]]]:
    """The checks of indices in a body, each with the variables that are assigned on every way to it in this turn."""
    for s in body:
        if type(s) is Assign:
            before.add(s.name)
        elif type(s) is Check and s.bounds is not None:
            yield s, before
        elif type(s) is Block:
            yield from ordered(s.body, before if s is body[-1] else set(before))
        elif type(s) is If:
            yield from ordered(s.then, set(before))
            yield from ordered(s.orelse, set(before))


def temporary(name: str) -> bool:
    """Whether a variable is the translator's own, read on no way but behind its assignment."""
    return name.count(".") == 1 and name.rpartition(".")[2].isdigit()


def expand(e: E, var: str, inside: set[str], single: dict[str, E], made: set[str]) -> E:
    """An expression in what does not change in the loop, and its number of turn. Raises NotLowered."""
    if e.op == "var":
        name = e.args[0]
        if name == var or name not in inside:
            return e
        if name in single:
            return expand(single[name], var, inside, single, made)
        raise NotLowered(name)
    if e.op == "load" or (e.op == "dim" and e.args[0] in made):
        raise NotLowered(e.op)
    if e.op in ("const", "dim"):
        return e
    divided = e.op in ("floordiv", "mod") and e.args[1].op == "const" and e.args[1].args[0] > 0
    if not (divided or e.op in SAFE) or any(a.kind.letter not in "iub" for a in e.args):
        raise NotLowered(e.op)
    return E(e.op, tuple(expand(a, var, inside, single, made) for a in e.args), e.kind, e.low, e.high)


def linear(e: E, var: str) -> bool:
    if var not in variables(e) or e.op == "var":
        return True
    if e.op in ("add", "sub", "neg", "copy"):
        return all(linear(a, var) for a in e.args)
    if e.op == "mul":
        return sum(var in variables(a) for a in e.args) == 1 and all(linear(a, var) for a in e.args)
    return False
