"""Machine code for typed programs, and how it is called."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import get_ident
from typing import Any

import numpy as onp

from ..compiled import fastpath
from ..cpu import memory
from ..graph.effects import Diverged
from ..llvm import engine
from ..llvm.engine import BUG, BUILT_IN
from ..rows import budget
from .draws import Streams
from .ir import (
    CAPACITY,
    F8,
    KINDS,
    NONE,
    ROOM,
    Alloc,
    Assign,
    Check,
    Define,
    For,
    Kind,
    Program,
    Store,
    While,
    expressions,
    parts,
    statements,
    walk,
)
from .lowering import FIRST, MET, Layout, Lowering, NotLowered
from .warned import asked, give, risky

# Steps of baseline code (some five take a nanosecond), for each character of LLVM's text, before it is compiled well
# for another run: a thousandth of the time that this takes; among its first runs, a fiftieth. Most gradients of
# benchmarks/loops.py have to run a thousand times until it pays, but what is timed beside other ways (jit.Contest) is
# to be compiled well by then.
TRIED, RUNS, FIRST_TRIED = 13, 8, 300
LONG = 1000  # such steps of one run after which it begins anew in code that is compiled well: a twentieth of that time
CALLED = 1000  # steps in the time of a call of it, which goes through Python
# Characters of LLVM's text that it compiles in a second, at its level 2 and hurried; how many an expression becomes.
FAST, FASTER, EACH = 340_000, 540_000, 56
NOTHING: dict = {}
SORTS = ("array", "zeros", "tape", "real", "complex", "truth", "integer", "natural", "capacity")  # loops.hpp
COMPLEX = (complex, onp.complexfloating)
NUMBERS = {"f": "real", "c": "complex", "b": "truth", "u": "natural"}
FREE = ctypes.CDLL(None).free if os.name == "posix" else ctypes.cdll.msvcrt.free
FREE.argtypes, FREE.restype = [ctypes.c_void_p], None
ADDRESS_OF_FREE = ctypes.cast(FREE, ctypes.c_void_p).value


class Again(Diverged):
    """Python has to run this loop: compiled code cannot go on (an integer beyond 64 bits, lengths that differ)."""


class Unnoted(Again):
    """NumPy warns of numbers of this loop, and Python has to say so."""


class Undrawn(Again):
    """A draw of random numbers raised, and Python has to say so."""


class Code:
    """A program, compiled for arrays that lie in memory as they are met. `call(*values, donate={})` is `run`, by the C
    part if there is one."""

    def __init__(self, program: Program, failed: Callable, agreed: bool = False, source: Code | None = None) -> None:
        self.program, self.layout, self.failed = program, Layout(program), failed
        self.source = source  # of a part or a derivative: what that is of
        self.agreed = agreed  # to compile it, however long it takes: nobody can do without
        self.pack, self.back = struct.Struct(self.layout.format), struct.Struct(self.layout.back)
        self.built: dict[tuple, tuple] = {}
        # what was compiled in a tenth of the time, for the first run, and for later ones while all were short
        self.baseline: dict[tuple, tuple] = {}
        self.runs: Counter[tuple] = Counter()  # of that, after the first
        self.often = False  # whether it is of a function that is called often
        self.speculative = False  # whether products may be no numbers where one factor is zero (Lowering)
        self.trying = 0  # the thread of the first run; it lends no arrays
        self.warns = not agreed and any(
            risky(e) for s in statements(program.body) for x in expressions(s) for e in walk(x)
        )
        self.noted: Code | None = None  # the program that says of what NumPy warns
        self.sparing: Callable[[], Code | None] = lambda: None  # the one that does the same and keeps less
        self.exceeded = 0  # a budget that was too small
        self.written = program.written
        self.room, self.capacity = 1 << 12, 1 << 8
        names = [i.name for i in program.given]
        self.names = [name.removesuffix(".in") for name in names]
        # of each result that is an array, which value it was; those that are made for the program are the last
        self.places = [names.index(i.name) for i in (program.inputs[k] for k in self.written) if not i.like]
        tape = any(i.like and i.like not in program.arrays for i in program.inputs)
        self.late, self.repeats = tape or bool(program.results) or fails_late(program.body), tape
        self.in_place = {result: (place, True) for result, place in enumerate(self.places)}
        self.makers = [[maker(k) for k in kinds] for _, kinds, _, _ in program.outputs]
        self.call = self.in_python if fastpath is None or program.draws else self.compiled_call()

    @contextmanager
    def first_run(self) -> Iterator[None]:
        """Where a run may be the first one, that of code compiled in little time: a graph often has another program
        instead, the derivative or a part of this one, and a program may run once."""
        if not self.built:
            self.trying = get_ident()
        try:
            yield
        finally:
            self.trying = 0

    @property
    def room(self) -> int:
        """How many numbers a tape has room for."""
        return 1 if budget.kept <= self.exceeded else min(self._room, budget.kept // 8)

    @room.setter
    def room(self, count: int) -> None:
        self._room = count

    def tape(self) -> onp.ndarray:
        return memory.empty((self.room,), F8.dtype)

    def in_python(self, *values: Any, donate: dict[int, tuple[int, bool]] = NOTHING) -> tuple:
        return self.run(values, donate)

    def compiled_call(self) -> Callable:
        """`call` of the C part (loops.hpp)."""
        program, layout, inputs, arrays = self.program, self.layout, [], {}
        for k, i in enumerate(program.inputs):
            sort = "array" if i.ndim is not None else NUMBERS.get(i.kind.letter, "integer")
            if i.like:
                sort = "zeros" if i.like in arrays else "capacity" if i.like == CAPACITY else "tape"
            inputs.append((SORTS.index(sort), i.written, k in self.written, arrays.get(i.like, -1), i.kind.dtype))
            if i.ndim is not None:
                arrays[i.name] = len(arrays)
        outputs = []
        for (name, kinds, tag, flag), makers in zip(program.outputs, self.makers):
            sort = NUMBERS.get(program.kinds[name].letter, "integer").replace("truth", "integer")
            known = [(KINDS.index(k), make, str(make)) for k, make in zip(kinds, makers)]
            outputs.append((SORTS.index(sort), bool(tag), bool(flag), known))
        sizes = len(program.given), FIRST, layout.first_result, layout.size
        made = [program.arrays[variable] for _, variable in program.results]
        results = [(at, a.ndim, a.kind.dtype) for at, a in zip(layout.arrays, made)]
        return fastpath.loop(
            self, inputs, outputs, (*sizes, self.late, self.repeats, self.warns), results, ADDRESS_OF_FREE
        )

    def run(self, values: Sequence[Any], donate: dict[int, tuple[int, bool]], streams: Streams | None = None) -> tuple:
        """(the arrays that are results, the numbers, what says of each whether it is bound, which kind it has), as
        `program.written` and `program.outputs` have them. Raises Again, and what the loop raises, with `partial` the
        arrays.

        donate   of a result that is an array: (which of the values may be written for it, whether that has to be as it
                 was if this raises)
        streams  what it draws from; where Python has to run the loop, they are as they were
        """
        while budget.kept > self.exceeded:
            out = self.once(values, donate, streams)
            if type(out) is tuple:
                return out
            if out == "crowded":
                self.capacity *= 4
            elif self.room >= budget.kept // 8:
                self.exceeded = budget.kept
            else:
                self.room *= 4
        spared = self.sparing()
        if spared is None:
            raise MemoryError(
                f"the gradient of the loop at {self.program.file}:{self.program.line} keeps more than {budget.kept:,} "
                "bytes; minnp.checkpoint of a function that runs a part of its iterations keeps less, and "
                "minnp.set_gradient_budget allows more"
            )
        return spared.run(values, donate)

    def once(
        self, values: Sequence[Any], donate: dict[int, tuple[int, bool]], streams: Streams | None = None
    ) -> tuple | str:
        """One run; one of ROOM if there was too little."""
        written = {place for place, _ in donate.values()}
        warns = self.warns and asked()
        arrays: dict[str, Any] = {}
        numbers: list = []
        results = []
        at = 0
        for k, i in enumerate(self.program.inputs):
            if i.like == CAPACITY:
                numbers.append(self.capacity)
                continue
            if i.like:
                like = arrays.get(i.like)
                a = self.tape() if like is None else onp.zeros(like.shape, i.kind.dtype)
            else:
                a = values[at]
                at += 1
                if i.ndim is None:
                    # (NumPy's bool is no integer to struct)
                    numbers += (
                        (a.real, a.imag) if i.kind.letter == "c" else (bool(a),) if i.kind.letter == "b" else (a,)
                    )
                    continue
                if i.written and at - 1 not in written:
                    a = onp.array(a, order="K")
                elif isinstance(a, onp.generic):  # a cotangent of an array without axes, say, which has no memory
                    a = onp.asarray(a)
            arrays[i.name] = a
            if k in self.written:
                results.append(a)
        key = tuple([a.flags.c_contiguous for a in arrays.values()])
        speculative = self.speculative
        function, errors, _, baseline, _ = self.machine_code(key)
        restored = [
            (values[place], values[place].copy("K"))
            for place, lent in donate.values()
            if warns or speculative or baseline is not None or (self.late and (lent or self.repeats))
        ]
        slots = onp.empty(self.layout.size, onp.int64)
        slots[0] = slots[MET] = 0
        self.pack.pack_into(slots, 8 * FIRST, *numbers)
        with streams or nullcontext():
            function(slots, *arrays.values())
        if warns and slots[MET]:
            if not slots[0] and self.program.results:
                self.arrays_of(slots, list(arrays.values()))  # lets go of them
            for a, was in restored:
                a[...] = was
            if streams is not None:
                streams.restore()
            return self.noting(values, donate, streams)
        status = int(slots[0])
        error, operands = errors[status]
        if not status:
            if not self.program.results:
                return (*results, *self.numbers_of(slots))
            made = self.arrays_of(slots, list(arrays.values()))
            if made is not None:
                return (*results, *[a for a, _ in made], *self.numbers_of(slots), *[what for _, what in made])
            error = "again"
        failure = None
        if error not in ("again", "long", "nan", *ROOM):
            number = lambda k, e: slots[1 + k : 2 + k].view("f8" if e.kind.letter == "f" else "i8")[0].item()
            failure = self.failed(error, [number(k, e) for k, e in enumerate(operands)])
        if failure is not None:
            failure.partial = [a.copy("K") if any(a is b for b, _ in restored) else a for a in results]
        for a, was in restored:
            a[...] = was
        if error in ("long", "nan"):
            self.trying, self.speculative = 0, self.speculative and error == "long"
            if streams is not None:
                streams.restore()
            return self.once(values, donate, streams)
        if error in ROOM:
            return error
        if failure is not None:
            raise failure
        if streams is not None:
            streams.restore()
        if error == "draw":
            raise Undrawn
        raise Again(error.removeprefix("exit ")) if error.startswith("exit ") else Again

    def noting(self, values: Sequence[Any], donate: dict[int, tuple[int, bool]], streams: Streams | None) -> tuple:
        """`run` by the program that says of what NumPy warns, and its warnings: the processor also met what is computed
        and not used. Raises Unnoted, with all arrays as they were."""
        if self.noted is None or asked() == "python":
            raise Unnoted
        kept = [(values[place], values[place].copy("K")) for place, _ in donate.values()]
        at = len(self.written) + len(self.program.results) + len(self.program.outputs)
        notes = self.noted.program.notes
        try:
            out = self.noted.run(values, donate, streams)
            counts = out[at : at + len(notes)]
            if give(list(zip(counts, notes))):
                return (*out[:at], *out[at + len(notes) :])
        except Diverged:
            raise
        except Exception as error:  # Python says what came before it
            if not hasattr(error, "partial"):
                raise
        for a, was in kept:
            a[...] = was
        if streams is not None:
            streams.restore()
        raise Unnoted

    def arrays_of(self, slots: onp.ndarray, given: list) -> list | None:
        """Of each array that comes out: (copy, "new") or (None, which other it is); None if one is part of another."""
        out: list = []
        seen: dict[int, tuple] = {}
        let_go = []
        for (_, variable), at in zip(self.program.results, self.layout.arrays):
            kind, ndim = self.program.arrays[variable].kind, self.program.arrays[variable].ndim
            which, data, owner, *rest = slots[at : at + 3 + 2 * ndim].tolist()
            shape, strides = tuple(rest[:ndim]), tuple(rest[ndim:])
            lies = (data, shape, strides if 0 not in shape else None)
            if which == -2:
                out.append((None, "unbound"))
            elif which >= 0:
                a = given[which]
                same = lies == (a.ctypes.data, a.shape, a.strides if 0 not in shape else None) and kind.dtype == a.dtype
                out.append((None, str(which)) if same else None)
            else:
                let_go.append(owner)
                if owner in seen:
                    out.append((None, f"={seen[owner][0]}") if seen[owner][1] == lies else None)
                    continue
                seen[owner] = len(out), lies
                out.append((copied(data, shape, strides, kind.dtype), "new"))
        for owner in let_go:
            count = ctypes.c_int64.from_address(owner)
            count.value -= 1
            if not count.value:
                FREE(owner)
        return None if None in out else out

    def numbers_of(self, slots: onp.ndarray) -> list:
        if not self.makers:
            return []
        found = iter(self.back.unpack_from(slots, 8 * self.layout.first_result))
        out, flags, tags = [], [], []
        for (name, kinds, tag, flag), makers in zip(self.program.outputs, self.makers):
            x = next(found)
            if self.program.kinds[name].letter == "c":
                x = complex(x, next(found))
            kind, bound = next(found), next(found)
            known = tag and KINDS[kind] in kinds  # not where it was not bound
            make = makers[kinds.index(KINDS[kind])] if known else makers[0]
            out.append(made_by(make, x))
            flags += [bool(bound)] if flag else []
            tags += [str(make)] if tag else []
        return [*out, *flags, *tags]

    def address(self, contiguous: tuple) -> tuple[int, bool]:
        """Where the machine code for arrays that lie so begins, and whether later calls run it, too."""
        speculative = self.speculative
        _, _, address, baseline, _ = self.machine_code(contiguous)
        return address, baseline is None and not speculative

    def short(self, contiguous: tuple) -> bool:
        """Whether all runs of baseline code, for arrays that lie so, were short."""
        *_, left, least = self.baseline[contiguous]
        return left.value > least[self.often or self.runs[contiguous] >= RUNS]

    def begins_baseline(self) -> bool:
        """Whether code is compiled in little time although it may run again and again: all runs were short; where there
        were none, those of its source."""
        if not self.built and not self.baseline:
            return self.source is not None and self.source.begins_baseline()
        return not self.built and all(map(self.short, [*self.baseline]))

    def machine_code(self, contiguous: tuple) -> tuple:
        """(the built-in function, its errors, where it begins; of baseline code how many steps it may still take, and
        how many it has left where it is compiled well for another run: one of its first ones, or a later one; else
        None) for arrays that lie so."""
        tried = self.baseline.get(contiguous)
        if tried is not None:
            tried[3].value -= CALLED
            self.runs[contiguous] += 1
        brief = self.trying == get_ident() or (self.begins_baseline() if tried is None else self.short(contiguous))
        speculative = self.speculative  # which becomes False in time, and never True
        first = brief and (contiguous, speculative) not in self.built
        built, key = (self.baseline, contiguous) if first else (self.built, (contiguous, speculative))
        # what another thread built meanwhile stays: machine code that it runs may not be let go of
        return built.get(key) or built.setdefault(key, self.build(contiguous, first))

    def build(self, contiguous: tuple, baseline: bool) -> tuple:
        """What `machine_code` returns."""
        lowering = Lowering(self.program, list(contiguous), baseline=baseline, speculative=self.speculative)
        machine = engine.machine()
        assert machine is not None
        try:
            entry, others = lowering.text()
            text = f"{others}\ndefine {BUILT_IN} {{\n{entry}}}\n"
            if len(text) > FASTER * budget.seconds and not self.agreed:
                raise NotLowered(f"{len(text)} characters of LLVM's text: more than {budget.seconds} s of compiling")
            level = 0 if baseline else 2 if len(text) < FAST * budget.seconds / 2 else 1
            code = machine.assemble(text, level, hurried=level == 1 and len(text) > FAST * budget.seconds)
        except (AssertionError, LookupError, RuntimeError, TypeError) as bug:  # ours: the loop is Python's
            raise NotLowered(f"{BUG}: {type(bug).__name__}: {bug}") from bug
        address = code.get_function_address("kernel")
        function = engine.built_in(b"loop", address, code)
        if not baseline:
            return function, lowering.errors, address, None, ()
        left = ctypes.c_int64.from_address(code.get_global_value_address("left"))
        left.value = max(left.value, LONG * len(text))
        least = [max(left.value - tried * len(text), 0) for tried in (FIRST_TRIED, TRIED)]
        return function, lowering.errors, address, left, least


class OfNone:
    """Makes None, as a type makes numbers."""

    def __call__(self, x: Any) -> None:
        return None

    def __str__(self) -> str:
        return str(type(None))


OF_NONE = OfNone()


def maker(kind: Kind) -> Any:
    """The type of the numbers of a kind."""
    if kind == NONE:
        return OF_NONE
    made = {"i": int, "u": int, "f": float, "b": bool, "c": complex}
    return kind.dtype.type if not kind.python else made[kind.letter]


def made_by(make: Any, x: Any) -> Any:
    """A number of this type, of one that may have been kept as a complex one."""
    if type(x) is complex and make is not OF_NONE and not issubclass(make, COMPLEX):
        x = x.real
    return make(x)


def affordable(program: Program) -> bool:
    """Whether compiling a program takes no longer than it may, as far as its length tells."""
    each = [1 + sum(1 for e in expressions(s) for _ in walk(e)) for s in statements(program.body)]
    return EACH * sum(each) <= FASTER * budget.seconds


def copied(data: int, shape: tuple, strides: tuple, dtype: onp.dtype) -> onp.ndarray:
    """A copy of the array that lies there."""
    if 0 in shape:
        return onp.empty(shape, dtype)
    ends = [(n - 1) * s for n, s in zip(shape, strides)]
    low = sum(min(e, 0) for e in ends)
    high = sum(max(e, 0) for e in ends) + dtype.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(data + low)
    return onp.array(onp.ndarray(shape, dtype, memory, -low, strides), order="K")


def fails_late(body: list, written: bool = False) -> bool:
    """Whether statements may fail after they wrote to an array, or if another did before."""
    for s in body:
        again = type(s) in (For, While, Define)
        written = written or any(type(x) is Store for x in statements([s] if again else []))
        may_fail = type(s) in (Alloc, Check) or (type(s) is Assign and s.value.op in ("drawn", "filled"))
        if (may_fail and written) or any(fails_late(inner, written) for inner in parts(s)):
            return True
        written = written or any(type(x) is Store for x in statements([s]))
    return False
