"""Loops of a running function: which run compiled, on what values, and what becomes of their results."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import itertools
import sys
import sysconfig
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from time import perf_counter
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as onp

from ...errors import CaptureError
from ..arrays.array import ARRAY_TYPES, VirtualArray, array_of, read
from ..arrays.devices import default_device
from ..arrays.writing import release, write
from ..graph.capture import CaptureTrace
from ..graph.printed import compiling
from ..graph.scalars import Live
from ..graph.syntax import FUNCTION, tree_of
from ..llvm import engine
from ..rows import budget
from ..rows.dispatch import bind
from ..rows.primitive import TABLE, Joint, Primitive
from ..rows.report import PACKAGE
from ..rows.state import capture, state
from ..rows.value import Host, Tracer, concrete, is_scalar
from ..transforms import grad
from ..transforms.jvp import JvpTrace
from ..transforms.rematerialisation import Recording
from ..transforms.tape import GradTrace
from ..transforms.vmap import BatchTrace, Count, Ruled, Uneven
from .batched import Batched, batched, same
from .building import Static
from .compiled import Again, Code, Undrawn, Unnoted, affordable, made_by, maker
from .counted import operations
from .derivative import adjoint, tangent, varied
from .draws import REALS, WHOLES, Streams, recording, replaying
from .errors import failure
from .frontend import LIMIT, OTHER_LENGTHS, Columns, translate
from .ir import (
    I8,
    INT,
    KINDS,
    NONE,
    ROOM,
    VECTOR,
    WORD,
    Alloc,
    Check,
    Define,
    E,
    For,
    Program,
    While,
    constant,
    defined,
    kind_of,
    multiplies,
    rivalled,
    statements,
)
from .lowering import NotLowered
from .numbers import EXACT
from .operations import OPERATORS, NotUnderstood, join, place
from .outside import LISTED, Outside, sort_of
from .pairs import has_complex, paired
from .printing import as_python, text_of
from .products import deep
from .proved import proved
from .simplified import seen, sliced_to, summed
from .source import (
    Site,
    assigns_items,
    call_of,
    calls_itself,
    fills_lists,
    keeps_in_loops,
    recursive,
    rewritten,
    say,
)
from .threaded import LEAST, Pieces, cut
from .warned import asked

LIBRARIES = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}) + (PACKAGE,)
ABSENT = object()
NOTHING: dict[str, Any] = {"": None}  # that a loop binds
RAN = [0]  # compiled loops that were worth it
PYTHONS = (int, float, bool, complex)
NUMPYS: dict[type, type] = {float: onp.float64, complex: onp.complex128}
RANGES = {INT: (-LIMIT, LIMIT), WORD: (0, 2**64 - 1)}  # of Python's integers that a program is given
FOLLOWING = (CaptureTrace, GradTrace, Recording, JvpTrace, BatchTrace)  # which take a loop for a row
DERIVATIVES = {GradTrace: adjoint, Recording: adjoint, JvpTrace: tangent}
MOST = 32  # programs of one loop
LENGTHS = 6  # of them, after which tuples and lists of other lengths are Python's
PATIENCE, LONGEST = 4, 1 << 12  # how often a loop is looked at that Python has to run; how often it then is not
EXITS = 4  # how often a program goes back to Python, beside an eighth of its runs, before Python has the loop
LOOKED_THROUGH = 1024  # items of a list outside that are looked at in each call
FEW, MANY = 10, 64  # turns of a loop
STEPS = 640  # of a loop that appends arrays, which a graph has one by one: it makes the list, too
BRIEF = 1e-3  # seconds of machine code in which Python may append as much to lists
CELLS = "<cells>"  # among a function's variables: name -> cell, of those that functions made inside may write to
LISTS = "captured code has a list in a loop"  # why a function is tried as one program
CLOSURES = "captured code binds variables that functions share"  # or this is
LARGE, MATRIX = 1 << 20, 1 << 12  # elements of an array; of one that others are multiplied with


@compiling()
def staged(f: Any) -> Any:
    """A function of the user's whose loops run compiled where they can; any other callable itself."""
    inner = f.__func__ if type(f) is MethodType else f
    if type(inner) is not FunctionType or inner.__code__.co_filename.startswith(LIBRARIES) or not engine.available():
        return f
    made = rewritten(f, _asking)
    return Whole(inner, made) if f is inner and calls_itself(inner) and tree_of(inner) is not None else made


def followed(f: Any) -> Any:
    """A function of the user's as gradients, tangents and batches run it: one that fills lists, or writes to arrays of
    names that it binds anew, is one program where it can be one, which no list leaves, and whose arrays are its own."""
    return (keeps_in_loops(f) and whole(f)) or staged(f)


def whole(f: Any) -> Any:
    """A function of the user's as one program, where it can be one; None where that is no other way than `staged`."""
    if type(f) is MethodType:
        inner = whole(f.__func__)
        return inner and MethodType(inner, f.__self__)
    if not engine.available():
        return None
    made = staged(f)
    one = type(made) is not Whole and (made is not f or fills_lists(f)) and tree_of(f) is not None
    return Whole(f, made, optional=True) if one else None


class Whole:
    """A function that is a program where it can be one. `rewritten`: with its loops compiled; `optional`: which is as
    good where it is none."""

    def __init__(self, f: FunctionType, made: Any, optional: bool = False) -> None:
        functools.update_wrapper(self, made)
        self.function, self.rewritten = f, made
        known = _OPTIONAL if optional else _CALLS
        if f.__code__ not in known:
            known[f.__code__] = call_of(f)
        self.site = known[f.__code__]
        self.site.optional = self.site.caught = optional  # Python raises, from the function's lines
        self.names = sorted(self.site.reads - {FUNCTION}, key=len)

    def rests(self) -> bool:
        """Whether it is not to be tried now: Python's own calls then follow one another without ours between them."""
        if capture.get() is not None:
            return False
        self.site.rest -= self.site.rest > 0
        return self.site.rest > 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        f, missing = self.function, len(self.names) - len(args)
        defaults = f.__defaults__ or ()
        if not kwargs and 0 <= missing <= len(defaults):
            given = (*args, *defaults[len(defaults) - missing :])
            found = hand_over(self.site, f, {FUNCTION: f, **dict(zip(self.names, given))})
            if found is not None:
                RAN[0] += 1
                return found["<return>"]
        watching = None if self.site.optional else capture.get()
        if watching is not None and watching.may_leave and assigns_items(f) and not unrolled(f):  # it was a program
            watching.ends(f"{f.__name__} calls itself")
        return self.rewritten(*args, **kwargs)


def unrolled(f: Any) -> str:
    """The name of a function that calls itself and assigns items, which f calls or is, and which is no program, as far
    as is known; else ""."""
    ran = lambda g: (
        g.__code__ in _CALLS
        and any(found.row is not None for variants, _ in _CALLS[g.__code__].programs.values() for found in variants)
    )
    return next((g.__name__ for g in recursive(f) if not ran(g)), "")


_CALLS: weakref.WeakKeyDictionary[CodeType, Site] = weakref.WeakKeyDictionary()
_OPTIONAL: weakref.WeakKeyDictionary[CodeType, Site] = weakref.WeakKeyDictionary()


def _staged_inside(f: Any, watching: Any) -> Any:
    """What a transformation of a function runs that is captured for machine code, or run by jit as it is."""
    return followed(f) if watching is None or watching.loops else f


grad.staging = _staged_inside


def converted(to: type, *args: Any) -> Any:
    """np.float32(x), which keeps the gradient of a traced x, as it does in a compiled loop."""
    if len(args) == 1 and type(args[0]) is VirtualArray and args[0].dtype.kind in "biuf" and _rewritten(read(args[0])):
        return args[0].astype(to)[()]
    return to(*args)


def _asking(sites: list[Site], f: Any) -> tuple[Callable, Callable]:
    known: dict[tuple, Any] = {}  # a loop, and recursion, call one function again and again

    def made(g: FunctionType) -> Any:
        make = followed if state.tapes else staged
        key = g, g.__code__, make
        found = known.get(key)
        if found is None:
            found = make(g)
            if len(known) < MOST:
                known[key] = found
        return found

    def called(g: Any) -> Any:
        if type(g) is functools.partial:
            inner = called(g.func)
            return g if inner is g.func else functools.partial(inner, *g.args, **g.keywords)
        if isinstance(g, type) and issubclass(g, onp.floating):
            return functools.partial(converted, g)
        if type(g) is not FunctionType:
            own, of = (g.__func__, g.__self__) if type(g) is MethodType else (type(g).__call__, g)
            if type(own) is not FunctionType:
                return g
            inner = made(own)
            inner = inner.rewritten if type(inner) is Whole else inner
            return g if inner is own else MethodType(inner, of)
        found = made(g)
        if type(found) is not Whole:
            return found
        # its method, for calls of objects go through C, and Python 3.12 allows few of them one in another
        return found.rewritten if found.rests() else found.__call__

    def ask(number: int, own: Any = None) -> dict[str, Any] | bool | None:
        if number < 0:
            return sites[~number].pace.end()
        site = sites[number]
        if site.rest:
            site.rest -= 1
            return None
        pace = site.pace
        if pace.rest and not state.busy:
            return pace.pythons()  # to look at the variables takes longer than a few turns
        names = sys._getframe(1).f_locals
        if not state.busy and pace.asked and not any(type(names.get(n)) is VirtualArray for n in site.reads):
            return pace.pythons()
        pace.machine, began = 0.0, perf_counter()
        names = dict(names)
        if own is not None:  # a function of the variables that others may write to
            names[CELLS] = dict(zip(own.__code__.co_freevars, own.__closure__))
        found = hand_over(site, f, names)
        if found is None:
            return None
        RAN[0] += not pace.machine or pace.took(perf_counter() - began)  # of traced values there is nothing to measure
        return found or NOTHING

    called.forget = known.clear  # type: ignore[attr-defined]
    return ask, called


class Compiled:
    """What a site does for values of one type: a row, or the reason why Python runs it.

    runs   how often it ran compiled
    exits  how often it went back to Python: what raises, or numbers that compiled code does not have
    """

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.row: Any = None
        self.code: Any = None
        self.by_value: Any = None
        self.drawn: Any = None  # what runs it with the numbers that it draws given,
        self.recorder: Any = None  # which this code draws
        self.by_values = False  # whether it is that of another
        self.noting = False  # whether it was tried to compile what says of what NumPy warns
        self.why = ""
        self.runs = self.exits = 0


def sparing(program: Program, wanted: set[str], whole: Program) -> Code | None:
    """What computes the same cotangents, and keeps less for its way back; None where there is nothing such."""
    try:
        less = adjoint(program, wanted, sparing=True)
    except NotUnderstood:
        return None
    return Code(less, failure, agreed=True) if alike(less, whole) else None


def part_of(code: Code | None, kept: frozenset[str], whole: Program) -> Code | None:
    """What of this program computes these results."""
    less = code and sliced_to(code.program, kept)
    return Code(less, failure, agreed=True) if less and alike(less, whole) else None


def only_added(program: Program, name: str) -> bool:
    """Whether a program does nothing with an array that is made for it but add to its elements."""
    alone = all(a.root != name or a.name == name for a in program.arrays.values())
    return alone and not program.moving and summed(program.body, name)


def begun(program: Program, name: str) -> Program:
    """The program that is given an array which it makes."""
    out = copy.copy(program)
    out.inputs = [i._replace(like="") if i.name == name else i for i in program.inputs]
    return out


def begun_code(code: Code | None, name: str) -> Code | None:
    return Code(begun(code.program, name), failure, agreed=True) if code and only_added(code.program, name) else None


def alike(a: Program, b: Program) -> bool:
    """Whether two programs take the same arguments, and have the same results."""
    inputs = lambda p: [(i.name, i.kind, i.ndim) for i in p.given]
    results = lambda p: ([p.inputs[k].name for k in p.written], p.outputs)
    return inputs(a) == inputs(b) and results(a) == results(b)


class LoopRow(Primitive):
    """A compiled loop as an operator: its arguments are the program's inputs; its results the arrays that it writes,
    the numbers that come out, and what guards their being bound and their types."""

    __slots__ = ("code", "complex", "derivatives", "doubtful", "multiplies", "of", "program", "roomy", "slices")
    __slots__ += ("threaded", "together")

    def __init__(self, code: Code) -> None:
        rules = {"vjp": Joint(self.cotangents), "jvp": Joint(self.tangents), "batch": self.examples}
        piece, self.together = cut(code.program)
        self.threaded = piece is not None  # whether threads run pieces of it
        if not engine.available():  # of a graph that was pickled elsewhere
            f = as_python(code.program)
            code.call = lambda *values, donate=None: f(*values)
        elif piece is not None:
            Pieces(piece, code, turns, LEAST if type(code.program) is Batched else 0)
        count = lambda metas, params, out: operations(code.program, metas)
        super().__init__("loop", code.call, **rules, saves="in", flops=count)
        self.code, self.program, self.multiplies = code, code.program, multiplies(code.program)
        self.complex, self.doubtful = has_complex(code.program), rivalled(code.program)
        self.derivatives: dict[tuple, Any] = {}
        self.slices: dict[frozenset, tuple] = {}
        self.of: tuple[LoopRow, Sequence[bool]] | None = None  # whose cotangents it computes, and of which inputs
        self.dynamic = "shape" if self.program.results else ""
        columns = {variable for growing in self.program.lists.values() for variable, _ in growing.columns()}
        first = len(self.program.written)  # of lists no one asks how much room they have
        self.roomy = {first + k for k, (name, _) in enumerate(self.program.results) if name in columns}

    def run(self, values: list) -> tuple:
        """The results for values that traces follow."""
        with self.code.first_run():
            return bind(self, values, {})

    def followed(self, ys: tuple, wanted: list[bool]) -> tuple[tuple, list[bool]]:
        """(the results as a derivative along the arguments that are `wanted` follows them, which of them it follows:
        the arrays, and the numbers that depend on these arguments). Python's numbers do only where there are complex
        ones: 1j * x is Python's of a float64 x."""
        first = len(self.program.written) + len(self.program.results)
        varied = self.varied(wanted)
        depends = [True] * first + [name in varied for name, *_ in self.program.outputs]
        depends += [False] * (len(ys) - len(depends))
        out = []
        for y, follow in zip(ys, depends):
            kind = NUMPYS.get(type(y.value if type(y) is Live else y)) if follow and self.complex else None
            out.append(y if kind is None else y.scalar(kind) if type(y) is Live else kind(y))
        return tuple(out), depends

    def varied(self, wanted: Sequence[bool]) -> set[str]:
        """The numbers among the results that depend on the arguments that are `wanted`."""
        kinds, names = self.program.kinds, [name for name, *_ in self.program.outputs]
        if not any(kinds[name].letter in "fc" and (self.complex or not kinds[name].python) for name in names):
            return set()
        key = varied, *wanted
        if key not in self.derivatives:
            real = self.real().program
            moving = [of for i, of in zip(self.program.given, wanted) for _ in self.parts_of(i.kind)]
            try:
                depend = varied(real, {i.name for i, of in zip(real.given, moving) if of})
            except NotUnderstood:  # an outer derivative, which may be that of another program alone
                depend = {part for part, *_ in real.outputs}
            of = [name for name in names for _ in self.parts_of(kinds[name])]
            self.derivatives[key] = {name for name, (part, *_) in zip(of, real.outputs, strict=True) if part in depend}
        return self.derivatives[key]

    def parts(self) -> list[str]:
        """The variable, or array, that each result is of."""
        outputs = self.program.outputs
        names = [self.program.inputs[k].name for k in self.program.written] + [o[0] for o in outputs]
        return names + [o[0] for o in outputs if o[3]] + [o[0] for o in outputs if o[2]]

    def slice(self, used: Sequence[int]) -> tuple[LoopRow | None, list[int], list[int]]:
        """(the row of what remains of this one where nobody reads results but these, which of the arguments it takes,
        which of the results it has). It raises Again where this one would raise. None: nothing remains."""
        names = [i.name for i in self.program.given]
        every = list(range(len(names)))
        if self.of is not None and used:
            row, parts = self.fewer({self.parts()[k] for k in used}), self.parts()
            return row, [names.index(i.name) for i in row.program.given], [parts.index(name) for name in row.parts()]
        # pieces of a loop join their results in one order, whoever reads them
        if used and (self.program.results or self.program.mark != "~" or self.threaded):
            return self, every, list(used)
        parts = self.parts()
        kept = frozenset(parts[k] for k in used)
        if kept not in self.slices:
            program = sliced_to(self.program, kept) or self.program
            if not kept and program is not self.program:
                program.body = proved(program.body)
            row = None
            if kept or any(type(s) is Check and s.error not in ROOM for s in statements(program.body)):
                never = lambda error, operands: None
                row = self if program is self.program else LoopRow(Code(program, never, source=self.code))
                if row is not self:
                    row.code.sparing = functools.cache(lambda: part_of(self.code.sparing(), kept, program))
            self.slices[kept] = row, [names.index(i.name) for i in program.given]
        row, places = self.slices[kept]
        return row, places, [k for k, name in enumerate(parts) if name in kept or row is self]

    def fewer(self, kept: set[str]) -> LoopRow:
        """Of cotangents the row that computes no others than these, and what comes with them."""
        assert self.of is not None
        source, wanted = self.of
        less = [of and i.name + self.program.mark in kept for i, of in zip(source.program.given, wanted)]
        row = self if less == [*wanted] else source.derivative(less)
        return row if kept <= {*row.parts()} <= {*self.parts()} else self

    def begun(self, result: int) -> tuple[LoopRow, int] | None:
        """(the row that adds to an array which it is given, where this one adds to zeros, which of the arguments that
        is); None for a result of another kind."""
        written = self.program.written
        i = self.program.inputs[written[result]] if result < len(written) else None
        if i is None or i.like not in self.program.arrays or not only_added(self.program, i.name):
            return None
        key = begun, i.name
        if key not in self.derivatives:
            row = self.derivatives[key] = LoopRow(Code(begun(self.program, i.name), failure, True, self.code))
            row.code.speculative = self.code.speculative
            row.code.sparing = functools.cache(lambda: begun_code(self.code.sparing(), i.name))
        row = self.derivatives[key]
        return row, [given.name for given in row.program.given].index(i.name)

    def lengths(self) -> list[int]:
        """Of which arguments that are arrays only the lengths matter."""
        found = seen(self.program)
        return [k for k, i in enumerate(self.program.given) if i.name not in found]

    def derivative(self, wanted: Sequence[bool], make: Callable = adjoint) -> LoopRow:
        """The row of the cotangents of the inputs that are wanted, or of the tangents along them. Raises
        NotUnderstood."""
        real = self.real()
        if real is not self:
            each = zip(self.program.given, wanted)
            return real.derivative([of for i, of in each for _ in self.parts_of(i.kind)], make)

        def row(program: Program) -> LoopRow:
            if not affordable(program):
                what = "gradient" if make is adjoint else "tangent"
                raise NotUnderstood(f"its {what} takes more than {budget.seconds} s of compiling")
            found = LoopRow(Code(program, failure, True, self.code))
            if make is adjoint:
                found.code.speculative = int(self.program.mark[1:] or 0) == 0 and deep(program)
                found.code.sparing = functools.cache(lambda: sparing(self.program, names, program))
                found.of = self, wanted
            return found

        names = {i.name for i, of in zip(self.program.given, wanted) if of}
        return self._made(make, wanted, row)

    @compiling()
    def _made(self, make: Callable, chosen: Sequence[bool], row: Callable) -> LoopRow:
        """row(make(program, the inputs chosen)), made once. Raises NotUnderstood: the reason is kept, too, but not the
        traceback, which would keep alive what the function made."""
        key = make, *chosen
        found = self.derivatives.get(key)
        if found is None:
            try:
                found = row(make(self.program, {i.name for i, of in zip(self.program.given, chosen) if of}))
            except NotUnderstood as no:
                found = no.why, no.line
            self.derivatives[key] = found
        if type(found) is tuple:
            raise NotUnderstood(*found)
        return found

    def real(self) -> LoopRow:
        """The row of the same program with two real numbers for each complex one; itself, if there is none, whose
        derivatives those of this row are made of. Raises NotUnderstood."""
        if paired not in self.derivatives:
            program = self.program
            self.derivatives[paired] = LoopRow(Code(paired(program), failure, agreed=True)) if self.complex else self
        return self.derivatives[paired]

    @staticmethod
    def parts_of(kind: Any) -> range:
        return range(2 if kind.letter == "c" else 1)

    def cotangents(self, wanted: Any, g: Any, y: Any, *values: Any, **params: Any) -> list:
        """The cotangents of the inputs, for those of the results; None where none flows."""
        real = self.real()
        if real is not self:
            given, kinds = [i.kind for i in self.program.given], self.kinds_of_results()
            wanted = [w for k, w in zip(given, wanted) for _ in self.parts_of(k)]
            found = real.cotangents(wanted, in_parts(g, kinds, True), None, *in_parts(values, given))
            return together(found, given, True)
        row, given = self.derivative(wanted), list(values)
        names = [i.name for i in self.program.given]
        results = [self.program.inputs[k] for k in self.program.written]
        mark = row.program.mark
        active = {i.name.removesuffix(mark) for i in row.program.inputs if i.name.endswith(mark)}
        for i, gi in zip(results, g):
            if i.name in active:
                given.append(_zeros(values[names.index(i.like or i.name)]) if gi is None else gi)
        for (name, *_), gi in zip(self.program.outputs, g[len(results) :]):
            kind = self.program.kinds[name]
            if kind.letter == "f":
                given.append(kind.dtype.type(0) if gi is None else gi)
        if not row.program.written and not row.program.outputs:
            return [None] * len(values)
        out = row.run(given)
        found = [row.program.inputs[k].name for k in row.program.written] + [o[0] for o in row.program.outputs]
        by_name = dict(zip(found, out))
        return [by_name.get(name + mark) if want else None for name, want in zip(names, wanted)]

    def tangents(self, moving: Sequence[Any], y: Any, *values: Any, **params: Any) -> list:
        """The tangents of the results along `moving` (None: constant), as `y` has them; None of what is no float."""
        real = self.real()
        if real is not self:
            given, kinds = [i.kind for i in self.program.given], self.kinds_of_results()
            found = real.tangents(in_parts(moving, given), in_parts(y, kinds), *in_parts(values, given))
            moved = together(found, kinds)
            for k, (kind, o) in enumerate(zip(kinds, y)):  # as it was bound here
                if kind.letter == "c" and moved[k] is not None and getattr(o, "dtype", INT.dtype).kind != "c":
                    moved[k] = bind(TABLE["real"], (moved[k],), {})
            return moved
        row = self.derivative([t is not None for t in moving], tangent)
        mark, by_name = row.program.mark, dict(zip([i.name for i in self.program.given], moving))
        given = list(values)
        for i in row.program.given[len(values) :]:
            given.append(by_name[i.name.removesuffix(mark)])
        found = [row.program.inputs[k].name for k in row.program.written] + [o[0] for o in row.program.outputs]
        moved = dict(zip(found, row.run(given))) if found else {}
        names = [self.program.inputs[k].name for k in self.program.written] + [None] * len(self.program.results)
        names += [name for name, *_ in self.program.outputs]
        names += [None] * (len(y) - len(names))
        return [
            moved.get(name + mark, _zeros(o)) if name and getattr(o, "dtype", INT.dtype).kind == "f" else None
            for name, o in zip(names, y)
        ]

    def kinds_of_results(self) -> list:
        """The kind in which each result is kept that is a number or an array of some."""
        program = self.program
        kinds = [program.inputs[k].kind for k in program.written]
        kinds += [program.arrays[variable].kind for _, variable in program.results]
        return kinds + [program.kinds[name] for name, *_ in program.outputs]

    def batched(self, mine: Sequence[bool]) -> LoopRow:
        """The row of a batch of the arguments that are `mine`. Raises NotUnderstood."""
        return self._made(batched, mine, lambda program: LoopRow(Code(program, failure)))

    def examples(self, row: Any, raw: list, mine: list, params: dict) -> Ruled:
        """The results for a batch (vmap.RULES). Raises Uneven where Python has to run the examples: one raises, or they
        do not take one way."""
        try:
            whole = self.batched(mine)
        except NotUnderstood:
            raise Uneven from None
        program: Any = whole.program
        size = next(v.shape[0] for v, m in zip(raw, mine) if m)
        given: list = []
        for i, v, m in zip(self.program.given, raw, mine):
            if i.name in program.batches and not m:
                v = bind(TABLE["broadcast_to"], (v,), {"shape": (size, *v.shape)})
            given.append(v)
        for name in program.collected:
            given.append(onp.zeros(size, self.program.kinds[name].dtype))
        try:
            out = whole.run(given)
        except (Again, NotLowered):
            raise Uneven from None
        except Exception as error:
            if not hasattr(error, "partial"):
                raise
            raise Uneven from None
        arrays = len(self.program.written)
        columns = dict(zip(program.collected, out[arrays:]))
        shared = {name: out[len(program.written) + k] for name, k in program.shared.items()}
        numbers, kinds = [], []
        for name, known, tag, _ in self.program.outputs:
            kind = known[0]
            if tag:
                told = KINDS[int(shared[tag])]
                kind = told if told in known else kind
                kinds.append(str(maker(kind)))
            if same(name):
                numbers.append(shared[name])
                continue
            if kind == NONE:
                numbers.append(None)
                continue
            x = columns[name]
            if x.dtype != kind.dtype:
                x = bind(TABLE["astype"], (x,), {"dtype": kind.dtype})
            stored = kind.python and name in self.program.stored
            if not kind.python or (self.complex and kind.letter in "fc" and not stored):
                numbers.append(x)
                continue
            alike = type(x) is Host
            if alike:  # -0.0 is another number than 0.0
                bits = x.view(f"u{min(x.itemsize, 8)}").reshape(size, -1)
                alike = (bits == bits[0]).all()
            if stored and not alike:  # what lies outside is one number
                raise Uneven
            numbers.append(x[0].item() if alike else Count(x))
        flags = [bool(shared[flag]) for *_, flag in self.program.outputs if flag]
        places = [i.name for i in self.program.given]
        memory: list = []
        for k, a in zip(self.program.written, out):
            name = self.program.inputs[k].name
            memory.append(places.index(name) if name in places else onp.empty(a.shape[1:], a.dtype))
        made = [x.dtype.type() if isinstance(x, (Host, Tracer)) else None for x in numbers]
        return Ruled((*out[:arrays], *numbers, *flags, *kinds), (*memory, *made, *[None] * len(flags + kinds)))

    def __call__(self, *args: Any, **params: Any) -> Any:
        """What a graph calls that is run by itself. Raises TypeError for arguments of other types than the program's,
        CaptureError where compiled code cannot go on."""
        at = f"the loop at {self.program.file}:{self.program.line}"
        for i, a in zip(self.program.given, args, strict=True):
            x = a.value if type(a) is Live else a
            dtype, ndim = onp.dtype(type(x)) if type(x) in PYTHONS else getattr(x, "dtype", None), getattr(x, "ndim", 0)
            if type(x) is int and i.kind in RANGES:
                least, most = RANGES[i.kind]
                if not least <= x <= most:
                    raise CaptureError(
                        f"{at} meets {x}, a number that it was not compiled for; minnp.jit runs Python there"
                    )
                continue
            if dtype != i.kind.dtype or ndim != (i.ndim or 0):
                was, now = (f"{d}[{', '.join(':' * n)}]" for d, n in ((i.kind.dtype, i.ndim or 0), (dtype, ndim)))
                name = i.name.removesuffix(".in")
                raise TypeError(
                    f"{at} was captured for {name} of {was}, not {now}; capture the function for such arguments"
                )
        args = tuple([onp.require(x, requirements="A") if type(x) is Host else x for x in args])
        try:
            return super().__call__(*args, **params)
        except Again as no:
            what = str(no) or "a number or a length"
            raise CaptureError(f"{at} meets {what} that it was not compiled for; minnp.jit runs Python there") from None

    def statements(self, code: Any, node: Any) -> list[str]:
        """The loop as Python, in a function, and its call."""
        name = f"{node.name}_of"
        return [*text_of(self.program, name), f"{node.name} = {code.call(name, node.args, {})}"]

    def __reduce__(self) -> Any:
        return row_of, (self.program, self.code.agreed)


def row_of(program: Program, agreed: bool) -> LoopRow:
    """The row of a program."""
    return LoopRow(Code(program, failure, agreed))


def in_parts(values: Sequence, kinds: list, cotangents: bool = False) -> list:
    """Values, or cotangents, with two real ones for each of a complex kind: the cotangent of z = a + ib is that of a
    minus i times that of b."""
    out: list = []
    for k, v in enumerate(values):
        if k >= len(kinds) or kinds[k].letter != "c":
            out.append(v)
        elif v is None:
            out += [None, None]
        else:
            v = onp.asarray(v)[()] if type(v) in PYTHONS else v
            a, b = (bind(TABLE[part], (v,), {}) for part in ("real", "imag"))
            out += [a, bind(TABLE["negative"], (b,), {}) if cotangents else b]
    return out


def together(values: Sequence, kinds: list, cotangents: bool = False) -> list:
    """What `in_parts` took apart."""
    left, out = iter(values), []
    for kind in kinds:
        a = next(left)
        if kind.letter == "c":
            b, i = next(left), kind.dtype.type(-1j if cotangents else 1j)
            if b is not None:
                b = bind(TABLE["multiply"], (b, i), {})
            if a is not None and b is not None:
                a = bind(TABLE["add"], (a, b), {})
            elif a is not None:
                a = bind(TABLE["astype"], (a,), {"dtype": kind.dtype})
            else:
                a = b
        out.append(a)
    return [*out, *left]


def _zeros(x: Any) -> Any:
    if type(x) is Host or isinstance(x, onp.generic):
        return onp.zeros(x.shape, x.dtype)
    return bind(TABLE["zeros_like"], (x,), {})


def hand_over(site: Site, f: Any, names: dict[str, Any]) -> dict[str, Any] | None:
    """What the loop binds, run compiled; None where Python has to run it. Where it had to again and again, it is asked
    less and less often: to look at the variables takes longer than a short loop."""
    if site.rest:
        site.rest -= 1
        return None
    found = _handed_over(site, f, names)
    site.refused = site.refused + 1 if found is None else 0
    if site.refused > PATIENCE:
        site.rest = min(1 << (site.refused - PATIENCE), LONGEST)
    return found


def _handed_over(site: Site, f: Any, names: dict[str, Any]) -> dict[str, Any] | None:
    given: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in site.names:
        x = names.get(name, ABSENT)
        if x is ABSENT:
            continue
        if type(x) is list and name in site.appended:
            given[name] = ("appended",)
            continue
        if type(x) in (list, tuple) and (name in site.changed or len(x) > LISTED):
            described = _items(name, x, name not in site.changed, values)
            if described is not None:
                given[name] = described
                continue
        if type(x) in (dict, defaultdict) and name in site.keyed:
            described = _keyed(name, x, name not in site.set, values)
            if described is not None:
                given[name] = described
                continue
        described = _describe(name, x, values)
        if described is None:
            return None
        if described[0] == "number" and name in site.first:  # what it was matters to nobody
            del values[name]
            continue
        given[name] = described
    variants, varied = site.programs.setdefault(tuple(given.items()), ([], set()))
    resolve = _resolving(site, f, names)
    for found in variants:
        there = found.outside.now(resolve, names)
        if there is not None:
            break
    else:
        of_length = any(what[0] in ("tuple", "list") for what in given.values())
        if site.compiled >= (LENGTHS if of_length else MOST):
            return None
        site.compiled += 1
        try:
            found = _compiled(site, f, given, names, varied)
        except Columns:
            return _handed_over(site, f, names)
        if site.compiled == MOST:
            _say(site, f, f"it was compiled {MOST} times, for other objects each time: from now on it is Python's")
        variants.insert(0, found)
        there = found.outside.now(resolve, names)
        if there is None:
            return None
    if found.row is None or (found.code.warns and asked() == "python"):
        return None
    return _run(site, f, found, given, names, values, there)


def _describe(name: str, x: Any, values: dict[str, Any]) -> Any:
    """The type of what a variable holds, as `translate` takes it; its value goes into `values`. None: Python's."""
    if type(x) in ARRAY_TYPES:
        value = read(x)
        if type(value) is Tracer:
            at = value
            while type(at) is Tracer:
                if type(at.trace) not in FOLLOWING or (type(at.trace) is BatchTrace and not at.trace.size):
                    return None
                at = at.value
        elif not isinstance(value, (Host, onp.generic)):
            return None
        base = concrete(value)
        kind = kind_of(base)
        if kind is None or not isinstance(base, (Host, onp.generic)):
            return None
        values[name] = x
        if is_scalar(value):
            return ("number", kind)
        return ("array", kind, len(value.shape), ones(value)) if base.flags.aligned else None
    if type(x) is Host:
        kind = kind_of(x)
        if kind is None or not x.flags.aligned:
            return None
        values[name] = x
        return ("array", kind, x.ndim, ones(x))
    number = x.value if type(x) is Live else x
    one = isinstance(number, onp.generic) or type(number) in (int, float, bool, complex)
    kind = kind_of(number) if one else None
    if kind is not None:
        if kind == INT and not -LIMIT <= number <= LIMIT:
            if not 0 < number < 2**64:
                return None
            kind = WORD
        values[name] = x
        return ("number", kind)
    if type(x) in (tuple, list) and len(x) <= 16:
        inner = [_describe(f"{name}[{k}]", y, values) for k, y in enumerate(x)]
        if all(d is not None and d[0] != "held" for d in inner):
            return (type(x).__name__, tuple(inner))
    if type(x) is Count or (type(x) is tuple and any(type(y) in ARRAY_TYPES for y in x)):  # that no program has
        return None
    return "held", sort_of(x)


def _items(name: str, x: list | tuple, fixed: bool, values: dict[str, Any]) -> Any:
    """The type of a list of numbers, or of tuples of numbers, that is kept in columns, which go into `values`. None:
    another one."""
    if type(x) is tuple and not fixed:
        return None
    sort = "tuple" if x and type(x[0]) is tuple else ""
    columns: list = [x] if x else []
    if sort:
        if any(type(y) is not tuple or len(y) != len(x[0]) for y in x):
            return None
        columns = list(zip(*x))
    found, arrays = [], {}
    for k, column in enumerate(columns):
        kinds = {
            t: kind_of(t()) for t in set(map(type, column)) if t in PYTHONS or issubclass(t, (onp.number, onp.bool_))
        }
        known = {kind for kind in kinds.values() if kind is not None}
        if not known or len(known) < len(set(map(type, column))):
            return None
        if len(known) > 1 and not {kind.code for kind in known} <= {"i8", "f8"}:
            return None
        whole = any(kind.letter == "i" for kind in known)
        if len(known) > 1 and whole and any(abs(y) > EXACT for y in column):
            return None
        try:
            arrays[f"{name}<{k}>"] = onp.array(column, join(known).dtype)
        except OverflowError:
            return None
        if len(known) > 1:
            tags = {t: place(kind) for t, kind in kinds.items()}
            arrays[f"{name}<{k}>#"] = onp.array([tags[type(y)] for y in column], onp.int8)
        found.append(tuple(sorted(map(place, known))))
    values |= arrays
    return "items", sort, tuple(found), fixed


def _keyed(name: str, x: dict, fixed: bool, values: dict[str, Any]) -> Any:
    """The type of a dict of numbers by integers, kept in columns as a list of (key, value). None: another one."""
    default = None if type(x) is dict else x.default_factory  # type: ignore[attr-defined]
    if default not in (None, int, float):
        return None
    described = _items(name, [*x.items()], False, values)
    if described is None or (x and (len(described[2][0]) > 1 or KINDS[described[2][0][0]].letter != "i")):
        return None
    return "items", "dict", described[2], fixed and default is None, default


def _typed(x: Any) -> Any:
    """The type of an array, a number or a long list of numbers outside; None for anything else."""
    if type(x) in (list, tuple) and LISTED < len(x) <= LOOKED_THROUGH:
        return _items("", x, True, {})
    found = _describe("", x, {})
    return found if found is not None and found[0] in ("number", "array") else None


def ones(x: Any) -> tuple[int, ...]:
    """The axes of length one, along which an array is broadcast."""
    return tuple([k for k, n in enumerate(x.shape) if n == 1])


def _resolving(site: Site, f: Any, names: dict[str, Any]) -> Callable:
    """What finds a name outside a function; with the cells of its variables that others see, and its globals."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))

    def resolve(name: str) -> Any:
        if name in site.local and name not in cells:
            raise NameError(name)
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                raise NameError(name) from None
        if name in f.__globals__:
            return f.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(name)

    resolve.cells, resolve.globals = cells | names.get(CELLS, {}), f.__globals__  # type: ignore[attr-defined]
    return resolve


@compiling()
def _compiled(
    site: Site, f: Any, given: dict, names: dict, varied: set, by_value: bool = False, varying: frozenset = frozenset()
) -> Compiled:
    outside = Outside(_resolving(site, f, names), names, site.shared, _typed, varied)
    found = Compiled(outside)
    try:
        program = translate(site.tree, "loop", given, outside, site.wanted, by_value, varying=varying)
        program.file, program.line = f.__code__.co_filename, site.tree.lineno
        found.code = Code(program, failure)
        found.code.often = site.optional
        found.row = LoopRow(found.code)
        if found.row.together and not site.optional:
            say(f, site.tree.lineno, found.row.together, "one thread")
    except NotUnderstood as no:
        if type(no) is Columns and no.name not in site.changed and not by_value:
            site.changed.add(no.name)
            raise
        if varied:  # a number may have to be known
            return _compiled(site, f, given, names, set(), by_value, varying)
        found.why = no.why
        _say(site, f, no.why, no.line)
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as bug:  # ours: the loop is Python's
        found.why = f"{engine.BUG}: {type(bug).__name__}: {bug}"
        _say(site, f, found.why)
    outside.settle()
    return found


def _noted(site: Site, f: Any, found: Compiled, given: dict, names: dict) -> Code | None:
    """The program that says of which numbers NumPy warns; None where there is none."""
    outside = Outside(_resolving(site, f, names), names, site.shared, _typed, found.outside.varied)
    origin = f.__code__.co_filename, f.__module__
    try:
        program = translate(site.tree, "loop", given, outside, site.wanted, found.by_values, origin)
    except NotUnderstood:
        return None
    old = found.code.program
    count = len(old.outputs)
    same = [i.name for i in program.inputs] == [i.name for i in old.inputs] and program.written == old.written
    if not same or program.outputs[:count] != old.outputs or program.results != old.results:
        return None
    code = Code(program, failure, source=found.code)
    code.warns = False
    return code


def _say(site: Site, f: Any, why: str, line: int = 0) -> None:
    if not site.optional:
        say(f, line or site.tree.lineno, why)


def _run(
    site: Site, f: Any, found: Compiled, given: dict, names: dict, values: dict, there: dict
) -> dict[str, Any] | None:
    """What the loop binds; `there` is what lies at the sources of what it reads outside."""
    outside, held, program = found.outside, names, found.code.program
    for source, variable in outside.inputs.items():
        values[variable] = x = there[source]
        if type(x) in (list, tuple):
            _items(variable, x, True, values)
    streams = None
    if program.draws:
        if default_device() is not None:
            return None
        streams = Streams(program, there)
        if not streams.known:
            return None
        values |= streams.values
    inputs = [values[name] for name in found.code.names]
    raw = [read(x) if type(x) in ARRAY_TYPES else x for x in inputs]
    traced = any(type(v) in (Tracer, Live) for v in raw)
    followed = traced and any(map(_rewritten, raw))
    if program.moving and not found.by_values and followed:
        return _run_by_value(site, f, found, given, names, values)
    if not program.elements and (followed or not site.optional) and _few(found.row, values):
        return None
    arrays = [(i, x) for i, x in zip(program.inputs, inputs) if i.ndim is not None]
    if traced:  # numbers of a capture that ended
        raw = [v.value if type(v) is Live and not v.trace.alive else v for v in raw]
    bases = [concrete(v) for i, v in zip(program.inputs, raw) if i.ndim is not None]
    watching = capture.get() if state.busy else None
    if streams is not None:
        if watching is not None:
            if not program.nested and turns(program, values) <= FEW:
                return None
            return _after(watching, "captured code draws random numbers in a loop", site, f, names)
        if followed:
            return _run_drawn(site, f, found, given, names, values, there, streams)
        if any(type(v) in (Tracer, Live) for v in raw):
            return None
    lists = {name: held[name] for name, growing in program.lists.items() if not growing.own}
    if program.lists:
        if followed:
            return None
        if watching is not None and not site.optional:
            loops = any(type(s) is While for s in statements(program.body)) or program.nested
            counted = not loops and not site.branches
            counted = counted and all(growing.sort != "dict" for growing in program.lists.values())
            most = STEPS // site.steps if any(growing.axes for growing in program.lists.values()) else FEW
            if counted and turns(program, values) <= most:
                return None  # a graph of its steps is as fast, and goes on behind it
            return _after(watching, LISTS, site, f, names)
        if not apart(program) if watching is not None else any(type(v) is Tracer for v in raw):
            return None
        elsewhere = [*there.values(), *[held[n] for n in site.reads if n in held and n not in lists]]
        elsewhere = [x for x in elsewhere if type(x) in (tuple, list, dict)]
        if len({*map(id, lists.values())}) < len(lists) or any(holds(x, y) for x in elsewhere for y in lists.values()):
            return None  # what is appended may be read, or is appended by several names
    if outside.stored:
        holders = {id(there[s[1]]): s[1] for s in there if s[0] in ("attribute", "item")}
        if any(s[0] in ("attribute", "item") and holders[id(there[s[1]])] != s[1] for s in there):
            return None  # two ways lead to one object
        same = {name for how, _, name in outside.same if how == "outside"}
        mine = [held[n] for n in site.reads if n in held and n not in same and type(held[n]) in (tuple, list, dict)]
        assigned = [there[s[1]] for s in outside.stored if s[0] == "item"]
        if any(holds(x, y) for x in mine for y in assigned):
            return None  # what is read as it was before the loop
        if watching is not None:
            made = names.get(CELLS) and not any(s[0] == "attribute" for s in outside.stored)
            why = CLOSURES if made else "captured code binds attributes, items, or variables of functions"
            return _after(watching, why, site, f, names)
    for k, (i, x) in enumerate(arrays):
        if i.written:
            if i.name in program.rebound:  # a copy is written
                continue
            if not bases[k].flags.writeable:
                return None
            if watching is not None and type(raw[program.inputs.index(i)]) is Host:
                if type(x) not in ARRAY_TYPES:
                    return None
                why = f"captured code writes to an array made outside it ({bases[k].dtype}{list(bases[k].shape)})"
                return _after(watching, why, site, f, names)
            if any(
                j != k and (onp.may_share_memory(bases[k], b) or _one(x, arrays[j][1])) for j, b in enumerate(bases)
            ):
                return None
    if followed:
        row = found.row
        try:
            for trace in sorted({t for v in raw for t in _followed(v)}, key=lambda t: -t.level):
                wanted = [trace in _followed(v) for v in raw] if row is found.row else [True] * len(row.program.given)
                if type(trace) is BatchTrace:
                    row = row.batched(wanted)
                else:
                    row = row.derivative(wanted, DERIVATIVES[type(trace)])
        except NotUnderstood as no:
            _say(site, f, no.why)
            return None
    traced = watching is not None or (traced and any(type(v) in (Tracer, Live) for v in raw))
    for i, v in zip(program.inputs, raw if traced else ()):
        if type(v) is Live and i.kind in RANGES and v.trace.alive:  # of other numbers the program is another one
            v.trace.within(v, *RANGES[i.kind])
    written = [None if i.name in program.rebound else x for i, x in arrays if i.written]
    try:
        if traced:
            out = found.row.run(raw)
        elif streams is None and not (found.code.built or found.code.baseline):
            with found.code.first_run():
                out = found.code.call(*raw)
        else:
            for x in written:
                if state.tapes:
                    release(read(x) if type(x) in ARRAY_TYPES else x)
            began = perf_counter()
            if streams is None:
                out = found.code.call(*raw, donate=found.code.in_place)
            else:
                with nullcontext() if found.code.built or found.code.baseline else found.code.first_run():
                    out = found.code.run(raw, found.code.in_place, streams)
            seconds = perf_counter() - began if streams is None else streams.seconds
            site.pace.machine = seconds
            large = any(onp.size(v) >= VECTOR for v in inputs)
            site.pace.doubtful = found.row.multiplies or (found.row.doubtful and large)
            site.pace.doubtful |= bool(program.lists) and seconds < BRIEF
    except Unnoted:
        if not found.noting:
            found.noting = True
            found.code.noted = _noted(site, f, found, given, names)
            if found.code.noted is not None:
                return _run(site, f, found, given, names, values, there)
        if watching is not None and watching.may_leave:
            return _after(watching, "NumPy warns of numbers in a loop", site, f, names)
        site.refused = -1  # other numbers, and other filters, are compiled code's
        return None
    except Undrawn:
        return None
    except (Again, NotLowered) as no:
        found.exits += 1
        found.why = str(no) or "a number, or a length, that compiled code does not take"
        if found.why.startswith(OTHER_LENGTHS):  # another program has those
            return None
        if isinstance(no, NotLowered) or found.exits > EXITS + found.runs // 8:  # else the next ones may be others
            found.row = None
        _say(site, f, found.why)
        return None
    except Exception as error:
        partial = getattr(error, "partial", None)
        if partial is None:
            raise
        if site.caught or outside.stored or program.lists:
            if streams is not None:
                streams.restore()
            return None  # Python leaves variables and attributes as they are at the error
        if watching is not None:
            watching.left = watching.left or "a loop raised"
        for x, a in zip(written, partial):
            if x is not None:
                _write(x, a)
        del error.partial
        raise
    found.runs += 1
    del raw, bases  # a write asks who else holds the memory
    for x, a in zip(written, out):
        if x is not None:
            _write(x, a)
    results: dict[str, Any] = {}
    outputs = program.outputs
    at = len(written) + len(program.results)
    for k, ((name, _), v) in enumerate(zip(program.results, out[len(written) : at])):
        what = out[len(out) - len(program.results) + k]
        if what == "new":
            results[name] = array_of(v)
        elif what.startswith("="):
            results[name] = results[program.results[int(what[1:])][0]]
        elif what != "unbound":
            results[name] = arrays[int(what)][1]
    if program.shown:
        said = dict(zip([o[0] for o in outputs], out[at : at + len(outputs)]))
        names = [i.name for i, _ in arrays if i.written]
    for name, others in program.shown.items():
        which = next((other for flag, other in others.items() if said[flag]), None)
        if which == (name, True) and name in given and given[name][0] == "unbound":
            continue
        if which is None:
            results[name] = array_of(out[names.index(name)])
            if name in program.lengths:
                results[name] = results[name][tuple(slice(said[n]) for n in program.lengths[name])]
        else:
            results[name] = values[which[0]] if which[1] else results[which[0]]
    flags = iter(out[at + len(outputs) :])
    for (name, _, _, flag), v in zip(outputs, out[at : at + len(outputs)]):
        if flag and not next(flags):
            continue
        if not name.endswith("!"):
            results[name] = array_of(v) if type(v) is Tracer else v
    results |= _lists(program, lists, results, watching)
    for source in outside.stored:
        how, holder, name = source
        x = results.pop(outside.inputs[source])
        if how == "attribute":
            setattr(there[holder], name, x)
        elif how == "item":
            there[holder][name] = x
        elif how == "cell":
            of = there[holder]
            of.__closure__[of.__code__.co_freevars.index(name)].cell_contents = x
        else:
            there[holder].__globals__[name] = x
    for name, parts in program.tuples.items():
        items = [results.pop(f"{name}[{k}]") for k in range(parts.count) if f"{name}[{k}]" in results]
        if len(items) == parts.count:
            results[name] = range(*items) if parts.type is range else parts.type(items)
    which = results.pop("<returned>", 0)
    if type(site.tree) is ast.Return and len(program.returned) == 1:  # the only way out
        ((which, _),) = program.returned.values()
    back = next((what for number, what in program.returned.values() if number == which), None) if which else None
    results = {name: x for name, x in results.items() if not name.startswith("<return>")} if not which else results
    return {"<return>": _returned(back, results)} if which else results


def holds(x: Any, inner: Any) -> bool:
    """Whether something is a list, or a dict, or contains it."""
    if x is inner:
        return True
    parts = x.values() if type(x) is dict else x if type(x) in (tuple, list) else ()
    return any(holds(y, inner) for y in parts if type(y) in (tuple, list, dict))


def apart(program: Program) -> bool:
    """Whether a program makes all lists that come out of it, on one way, each with one name."""
    lists = [*program.lists.values()]
    mates = [name for growing in lists for name in growing.mates]
    return all(growing.own for growing in lists) and len({*mates}) == len(mates) and len(program.returned) == 1


def _lists(program: Program, lists: dict[str, Any], results: dict[str, Any], watching: Any) -> dict[str, Any]:
    """The lists and dicts that a loop makes, whose columns are taken from the results; those that are given hold what
    they are to hold.

    lists     those that are given, by name
    watching  the capture whose graph makes them, at each of its runs, or None
    """
    found: dict[str, Any] = {}
    places = dict(enumerate(lists))
    made: dict[int, Any] = {}  # lists that may have several names, by their numbers
    for name, growing in program.lists.items():
        count, number = results.pop(growing.count), results.pop(growing.number, None)
        columns = [(results.pop(f"{name}<{k}>"), results.pop(f"{name}<{k}>#", None)) for k in range(len(growing.kinds))]
        if watching is not None:
            make, parts = ListOf(growing), [count, *itertools.chain.from_iterable(columns)]
            of = lambda x: x.node if type(x) is Live and x.trace is watching else watching._reference(_raw(x))
            node = watching.record(make, tuple(map(of, parts)))
            value = make(*[x.value if type(x) is Live else concrete(_raw(x)) for x in parts])
            found[name] = Live(watching, value, node, frozenset())
            continue
        if growing.own and count < 0:
            continue
        given = name if number is None else places.get(number)
        held = lists.get(given)
        if growing.several and (number in made or (held is not None and not program.lists[given].changed)):
            found[name] = made.get(number, held)
            continue
        items = _grown(growing, count, columns)
        if held is None:
            found[name] = made[number] = items if growing.sort != "dict" else dict(items)
        elif growing.sort == "dict":
            held.clear()
            held.update(items)
        elif growing.given is None and not growing.own:
            held += items
        else:
            held[:] = items
            found[name] = made[number] = held
    return found


class ListOf:
    """What makes a list, or a dict, of its length and its columns, each with its tags or None."""

    def __init__(self, growing: Any) -> None:
        self.growing = growing

    def __call__(self, count: int, *columns: Any) -> Any:
        items = _grown(self.growing, count, [*zip(columns[::2], columns[1::2])])
        return items if self.growing.sort != "dict" else dict(items)

    def statements(self, code: Any, node: Any) -> list[str]:
        """It as Python, of lists without tags."""
        count, *columns = map(code.show, node.args)
        listed = "[*{}[:{}]]" if self.growing.axes else "{}[:{}].tolist()"
        parts = [listed.format(column, count) for column in columns[::2]]
        text = f"[*zip({', '.join(parts)})]" if self.growing.sort else parts[0] if parts else "[]"
        return [f"{node.name} = {f'dict({text})' if self.growing.sort == 'dict' else text}"]


def _grown(growing: Any, count: int, columns: list) -> list:
    """What a loop appended to a list, or what it holds: of each column the numbers, and which kinds they have."""
    if not count:
        return []
    items = []
    for (numbers, tags), kinds in zip(columns, growing.kinds):
        numbers, tags = _raw(numbers)[:count], () if tags is None else _raw(tags)[:count].tolist()
        present = {place(kind): kind for kind in kinds}
        if tags:
            present = {t: present[t] for t in set(tags)}
        if len(present) == 1:
            (kind,) = present.values()
            numbers = numbers.astype(kind.dtype, copy=False)
            if growing.axes:
                return [array_of(row.copy()) for row in numbers]
            items.append(numbers.tolist() if kind.python else list(numbers))
        else:
            makers = {t: maker(kind) for t, kind in present.items()}
            items.append([made_by(makers[t], x) for x, t in zip(numbers.tolist(), tags)])
    return items[0] if not growing.sort else [*(map(list, zip(*items)) if growing.sort == "list" else zip(*items))]


def _returned(what: Any, results: dict) -> Any:
    """What a `return` in a loop returns."""
    if type(what) in (tuple, list):
        return type(what)(_returned(x, results) for x in what)
    return what.value if isinstance(what, Static) else results[what]


def _raw(x: Any) -> Any:
    return read(x) if type(x) in ARRAY_TYPES else x


def _after(watching: CaptureTrace, why: str, site: Site, f: Any, names: dict) -> dict[str, Any] | None:
    """The loop after the end of a capture that cannot hold it."""
    if not watching.may_leave or site.optional:
        return None
    watching.ends(why)
    return hand_over(site, f, names)


def _run_by_value(site: Site, f: Any, found: Compiled, given: dict, names: dict, values: dict) -> dict | None:
    """The loop by another program, which has a derivative: every name has an array of its own."""
    program = found.code.program
    if any(type(s) is Define for s in program.body):
        _say(site, f, "the derivative of a function that calls itself and takes, or returns, arrays that it makes")
        return None
    known = _lengths(program)
    for name, variable in program.results:
        array = program.arrays[variable]
        try:
            shape = [_number(E("dim", (variable, axis), INT), known, values) for axis in range(array.ndim)]
        except (KeyError, TypeError, ValueError):
            continue
        if name in site.wanted and name not in given:
            fixed = tuple([axis for axis, d in enumerate(array.dims) if constant(d) == 1])
            given = given | {name: ("unbound", array.kind, array.ndim, fixed)}
            values[name] = onp.zeros(shape, array.kind.dtype)
    varying: frozenset[str] = frozenset()
    while True:
        if found.by_value is None:
            found.by_value = _compiled(site, f, given, names, found.outside.varied, True, varying)
            found.by_value.by_values = True
        other = found.by_value
        there = other.outside.now(_resolving(site, f, names), names)
        out = None if other.row is None or there is None else _run(site, f, other, given, names, values, there)
        if out is not None or not other.why.startswith(OTHER_LENGTHS) or len(varying) > MOST:
            return out
        varying |= {other.why.removeprefix(OTHER_LENGTHS)}
        found.by_value = None


def _lengths(program: Program) -> dict[Any, E]:
    """What variables and the lengths of arrays are made of: of names that stand for several, those of the first."""
    found = statements(program.body)
    known, roots = defined(found), [*(i.name for i in program.inputs), *(s.name for s in found if type(s) is Alloc)]
    for variable, several in program.moving.items():
        ndim = program.arrays[variable].ndim
        first = next((name for name in roots if name in several and program.arrays[name].ndim == ndim), "")
        for axis in range(ndim):  # of a name for an array that was reshaped they are not known
            known[variable, axis] = E("dim", (first, axis), INT)
    return known


def _run_drawn(
    site: Site, f: Any, found: Compiled, given: dict, names: dict, values: dict, there: dict, streams: Streams
) -> dict | None:
    """The loop by the program that is given the numbers that it draws; it runs once to draw them."""
    raw = [_raw(values[name]) for name in found.code.names]
    if any(type(t) is BatchTrace for v in raw for t in _followed(v)):
        _say(site, f, "it draws random numbers, and is batched")
        return None
    if found.drawn is None:
        found.drawn = Compiled(found.outside)
        found.drawn.by_values, found.drawn.noting = found.by_values, True
        try:
            found.drawn.code = Code(replaying(found.code.program), failure)
            found.drawn.row = LoopRow(found.drawn.code)
            found.recorder = Code(recording(found.code.program), failure, agreed=True)
        except NotUnderstood as no:
            found.drawn.why = no.why
    if found.drawn.row is None:
        _say(site, f, found.drawn.why)
        return None
    drawn = _recorded(found.recorder, [concrete(v) for v in raw], streams)
    out = None if drawn is None else _run(site, f, found.drawn, given, names, values | drawn, there)
    if drawn is not None and out is None:
        streams.restore()
    return out


def _recorded(code: Code, values: list, streams: Streams) -> dict[str, Any] | None:
    """What a loop draws; None, and the streams as they were, where Python has to run it."""
    room, first, given = 1 << 12, len(code.written) - 3, len(values)
    donate = {first + k: (given + k, False) for k in range(3)}
    while 16 * room <= budget.kept:
        arrays = onp.empty(room), onp.empty(room, I8.dtype), onp.zeros(2, I8.dtype)
        try:
            with nullcontext() if code.built or code.baseline else code.first_run():
                done = type(code.once([*values, *arrays], donate, streams)) is tuple
        except (Again, NotLowered):  # the streams are as they were
            return None
        except Exception as error:
            streams.restore()
            if not hasattr(error, "partial"):
                raise
            return None  # Python raises
        if done:
            return {name: a[:n].copy() for name, a, n in zip((REALS, WHOLES), arrays, arrays[2])}
        streams.restore()
        room *= 8
    return None


def _rewritten(v: Any) -> bool:
    """Whether a trace follows a value that runs another program for the loop's."""
    while type(v) is Tracer:
        if type(v.trace) is not CaptureTrace:
            return True
        v = v.value
    return False


def _followed(v: Any) -> list[Any]:
    """The traces that run other programs, of those that follow a value, the first to see an operation first."""
    found = []
    while type(v) is Tracer:
        if type(v.trace) is not CaptureTrace:
            found.append(v.trace)
        v = v.value
    return found


def _one(x: Any, y: Any) -> bool:
    """Whether two arrays of the user's show the memory of one."""
    root = lambda a: (a if a._root is None else a._root) if type(a) in ARRAY_TYPES else a
    return root(x) is root(y)


def _few(row: LoopRow, values: dict[str, Any]) -> bool:
    """Whether a loop is a few steps of large arrays, recorded one after the other: the graph has better ways with them
    (all cores, BLAS, steps of a stencil together)."""
    program = row.program
    if program.nested:
        return False
    if not program.loops:
        return not any(type(s) is While for s in statements(program.body))
    count = turns(program, values)
    if not FEW < count <= MANY or program.lists:
        return count <= FEW
    large = MATRIX if row.multiplies else LARGE
    return any(onp.size(x) >= large for x in values.values())


def _beginning(program: Program) -> tuple[For | None, dict]:
    """(the first loop of the source, what its ends are made of)."""
    found = statements(program.body)
    loops = [k for k, s in enumerate(found) if type(s) is For]
    first = next((k for k in loops if found[k].var in program.loops), loops[0] if loops else None)
    return (None, {}) if first is None else (found[first], defined(found[:first]))


def turns(program: Program, values: dict[str, Any]) -> float:
    """How often the loop runs, as far as it is told by what it is given."""
    if program.beginning is None:
        program.beginning = _beginning(program)
    loop, known = program.beginning
    if loop is None:
        return float("inf")
    try:
        start, stop, step = (x if isinstance(x, int) else _number(x, known, values) for x in loop[1:4])
        return len(range(start, stop, step))
    except (KeyError, TypeError, ValueError):
        return float("inf")


def _number(e: E, known: dict[Any, E], values: dict[str, Any]) -> int:
    """A number before the loop. Raises KeyError, TypeError or ValueError where it is not known."""
    if e.op == "const":
        return e.args[0]
    if e.op == "var":
        name = e.args[0]
        if name.endswith(".in"):
            x = values[name.removesuffix(".in")]
            if any(type(t) is BatchTrace for t in _followed(_raw(x))):
                raise ValueError(f"{name} is another number in each example")
            return int(x.value if type(x) is Live else read(x) if type(x) in ARRAY_TYPES else x)
        return _number(known[name], known, values)
    if e.op == "dim":
        return _number(known[e.args], known, values) if e.args in known else values[e.args[0]].shape[e.args[1]]
    if e.op == "load":
        raise ValueError("an element of an array")
    found = [_number(a, known, values) for a in e.args]
    if e.op in ("copy", "select"):
        return found[0] if e.op == "copy" else found[1] if found[0] else found[2]
    return {"min": min, "max": max, **OPERATORS}[e.op](*found)


def _write(x: Any, value: Any) -> None:
    if type(x) in ARRAY_TYPES:
        if read(x) is not value:
            write(x, ..., value, fresh=True)
    elif x is not value:
        if state.tapes:
            release(x)
        x[...] = value
