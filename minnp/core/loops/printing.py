"""A program as Python that runs with `import minnp.numpy as np`, or NumPy, and gives what the compiled loop gives.

Temporary variables are written where they are read. A check is an `assert` if Python would have to run the loop, and
raises what the loop raises; one that the next lines make themselves is left out.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any

from .errors import failure
from .ir import (
    BOOL,
    CAPACITY,
    INT,
    KINDS,
    NONE,
    PYTHONS,
    SIGNS,
    TAPE,
    WORD,
    Alloc,
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
    Permute,
    Program,
    Reshape,
    Store,
    View,
    While,
    expressions,
    parts,
    statements,
    walk,
)
from .lowering import temporary

UNFIT = "the loop was compiled for other numbers or lengths"
# functions that NumPy names otherwise
NAMES = {"atan2": "arctan2", "finite": "isfinite", "conj": "conj", "modulus": "hypot"}
CHOSEN = ("const", "var")  # expressions that cost nothing
NAMING = ("var", "load", "dim", "apart", "held", "dense")  # those whose arguments are names


def text_of(program: Program, name: str) -> list[str]:
    """The program as lines of Python: a function of what it is given, which returns its results as `Code.run` does."""
    return Printer(program).function(name)


def as_python(program: Program) -> Callable:
    """The function that `text_of` writes."""
    import numpy

    names: dict[str, Any] = {"np": numpy}
    exec("\n".join(text_of(program, "loop")), names)
    return names["loop"]


class Frame:
    """A loop of Python's that is being written.

    ends, turns   labels that `break` and `continue` leave
    crossed       labels of blocks around it that are left from inside it
    """

    def __init__(self, ends: Iterable[str], turns: Iterable[str]) -> None:
        self.ends, self.turns = set(ends), set(turns)
        self.crossed: dict[str, None] = {}


class Printer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.body = inlined(program)
        self.names: dict[str, str] = {}
        self.taken = {"np", "math", "loop", *dir(builtins)}
        # tapes -> the arrays of zeros that are as long
        self.tapes: dict[str, list[str]] = {
            i.name: [] for i in program.inputs if i.like == TAPE and i.name.rstrip(".") == TAPE
        }
        for i in program.inputs:
            if i.like in self.tapes and i.name not in self.tapes:
                self.tapes[i.like].append(i.name)
        self.allocated: list[str] = []  # arrays, in the order of the text
        self.mathematical = False  # whether it calls functions that only Python's math module has
        self.frames: list[Frame] = []
        self.returns: dict[str, str] = {}  # labels that are left by a return, and what that returns
        for i in program.inputs:
            self.name(i.name)

    # -------------------------------------------------------------- names
    def name(self, name: str) -> str:
        found = self.names.get(name)
        if found is None:
            base = re.sub(r"\W+", "_", name).strip("_") or "value"
            base = f"_{base}" if base[0].isdigit() else f"{base}_" if keyword.iskeyword(base) else base
            found, k = base, 0
            while found in self.taken:
                k += 1
                found = f"{base}_{k}"
            self.names[name] = found
            self.taken.add(found)
        return found

    # -------------------------------------------------------------- the function
    def function(self, name: str) -> list[str]:
        program, show = self.program, self.name
        given = [show(i.name) for i in program.given]
        out = [f"def {name}({', '.join(given)}):"]
        for i in program.inputs:
            this = show(i.name)
            if i.name in self.tapes:
                out.append(f"    {this} = np.empty(1024)")
            elif i.like == CAPACITY:
                out.append(f"    {this} = 64")
            elif i.like:
                out.append(f"    {this} = np.zeros_like({show(i.like)}, dtype={i.kind.dtype.name!r})")
            elif i.ndim is not None and i.written:
                out.append(f"    {this} = np.array({this})")
        returned = f"return {self.results()}"
        out += [f"    {show(variable)} = None" for variable in program.moving if variable not in self.names]
        out += self.unbound()
        body = self.body
        while body and type(body[-1]) is Block and body[-1].label.startswith("return"):
            self.returns[body[-1].label] = returned
            body = [*body[:-1], *body[-1].body]
        lines = self.lines(body, "    ")
        out += ["    import math", *lines] if self.mathematical else lines
        return [*out, f"    {returned}"]

    def unbound(self) -> list[str]:
        """Variables that are read, or come out, where they may not have been assigned have some value."""
        sure = {i.name for i in self.program.inputs}
        loose: dict[str, None] = {}
        after = defined(self.body, sure, loose)
        out = [x for o in self.program.outputs for x in (o[0], *o[2:]) if x]
        loose |= dict.fromkeys(x for x in out if x not in after)
        return [f"    {self.name(n)} = {self.zero(n)}" for n in loose]

    def zero(self, name: str) -> str:
        kind = self.program.kinds.get(name, INT)
        return {"f": "0.0", "c": "0j", "b": "False"}.get(kind.letter, "0")

    def results(self) -> str:
        program, show = self.program, self.name
        arrays = [show(program.inputs[k].name) for k in program.written]
        made = [show(variable) for _, variable in program.results]
        numbers, flags, tags, origins = [], [], [], []
        for name, kinds, tag, flag in program.outputs:
            kept = program.kinds[name]
            text = self.result(name, kinds[0], kept)
            for kind in kinds[1:] if tag else ():
                text = f"{self.result(name, kind, kept)} if {show(tag)} == {KINDS.index(kind)} else {text}"
            numbers.append(f"({text})" if " if " in text else text)
            flags += [f"bool({show(flag)})"] if flag else []
            tags += [f"str(type({numbers[-1]}))"] if tag else []
        given = [show(i.name) for i in program.inputs if i.ndim is not None]
        for k, y in enumerate(made):
            others = "".join(f"'={j}' if {y} is {x} else " for j, x in enumerate(made[:k]))
            same = "".join(f"'{j}' if {y} is {x} else " for j, x in enumerate(given))
            origins.append(f"'unbound' if {y} is None else {same}{others}'new'")
        every = [*arrays, *made, *numbers, *flags, *tags, *origins]
        return f"({', '.join(every)}{',' if len(every) == 1 else ''})"

    def result(self, name: str, kind: Kind, kept: Kind) -> str:
        """A number that comes out, of its kind whatever it was computed from (an array without axes, what NumPy
        compared)."""
        if kind == NONE:
            return "None"
        return self.converted(self.name(name), kind, kept if kind.python and kind != BOOL else INT)

    # -------------------------------------------------------------- statements
    def lines(self, body: list, indent: str) -> list[str]:
        out: list[str] = []
        for s in body:
            out += getattr(self, f"of_{type(s).__name__.lower()}")(s, indent)
        return out

    def suite(self, body: list, indent: str) -> list[str]:
        return self.lines(body, indent) or [f"{indent}pass"]

    def of_assign(self, s: Assign, indent: str) -> list[str]:
        kept = self.program.kinds.get(s.name, s.value.kind)
        text = self.whole(s.value)
        if kept.code != s.value.kind.code and kept.letter != s.value.kind.letter:
            text = self.converted(self.show(s.value), kept, s.value.kind)
        return [] if text == self.name(s.name) else [f"{indent}{self.name(s.name)} = {text}"]

    def of_store(self, s: Store, indent: str) -> list[str]:
        value = self.literal(s.value) if s.value.op == "const" else self.bare(s.value)
        return [f"{indent}{self.name(s.array)}[{self.index(s.index)}] = {value}"]

    def of_view(self, s: View, indent: str) -> list[str]:
        first, second = [], []
        for p in s.spec:
            if p[0] == "index":
                first.append(self.subscript(p[1]))
            elif p[0] == "new":
                first.append("None")
                second.append(":")
            else:
                start, length, step = p[1:]
                if str(step) == "1":
                    axis = sum(q[0] != "new" for q in s.spec[: s.spec.index(p)])
                    every = str(start) == "0" and length.op == "dim" and length.args == (s.base, axis)
                    low = "" if str(start) == "0" else self.bare(start)
                    high = self.bare(length) if not low else f"{self.show(start)} + {self.show(length)}"
                    first.append(":" if every else f"{low}:{high}")
                    second.append(":")
                else:
                    first.append(f"{self.bare(start)}::{self.bare(step)}")
                    second.append(f":{self.bare(length)}")
        if all(p[0] == "index" for p in s.spec):
            first.append("...")
        cut = f"[{', '.join(second)}]" if any(x != ":" for x in second) else ""
        return [f"{indent}{self.name(s.name)} = {self.name(s.base)}[{', '.join(first) or '...'}]{cut}"]

    def of_permute(self, s: Permute, indent: str) -> list[str]:
        return [f"{indent}{self.name(s.name)} = {self.name(s.base)}.transpose({tuple(s.axes)})"]

    def of_reshape(self, s: Reshape, indent: str) -> list[str]:
        return [f"{indent}{self.name(s.name)} = {self.name(s.base)}.reshape({self.tuple(s.dims)})"]

    def of_bind(self, s: Bind, indent: str) -> list[str]:
        return [f"{indent}{self.name(s.name)} = {self.name(s.source)}"]

    def of_alloc(self, s: Alloc, indent: str) -> list[str]:
        kind = self.program.arrays[s.name].kind
        self.allocated.append(s.name)
        dtype = "" if kind.code == "f8" else f", dtype={kind.dtype.name!r}"
        return [f"{indent}{self.name(s.name)} = np.{'zeros' if s.zero else 'empty'}({self.tuple(s.dims)}{dtype})"]

    def tuple(self, dims: tuple) -> str:
        return f"({', '.join(map(self.bare, dims))}{',' if len(dims) == 1 else ''})"

    def of_define(self, s: Define, indent: str) -> list[str]:
        frames, returns = self.frames, self.returns
        back = f"return ({''.join(f'{self.name(n)}, ' for n in s.returned)})"
        body = s.body
        self.frames, self.returns = [], {}
        if body and type(body[-1]) is Block:
            self.returns[body[-1].label] = back
            body = [*body[:-1], *body[-1].body]
        more = indent + "    "
        out = [f"{indent}def {self.name(s.name)}({', '.join(map(self.name, s.given))}):"]
        out += [f"{more}{self.name(n)} = {self.zero(n)}" for n in s.returned if n not in self.program.moving]
        out += [*self.lines(body, more), f"{more}{back}"]
        self.frames, self.returns = frames, returns
        return out

    def of_call(self, s: Call, indent: str) -> list[str]:
        (f,) = [d for d in statements(self.body) if type(d) is Define and d.name == s.function]
        made = f"{self.name(s.function)}({', '.join(map(self.name, f.given))})"
        return [f"{indent}{''.join(f'{self.name(n)}, ' for n in f.returned)}{'= ' * bool(f.returned)}{made}"]

    def of_check(self, s: Check, indent: str) -> list[str]:
        if s.error == "full":  # a longer tape
            (tape,) = named_in(s.condition) & set(self.tapes)
            longer = [f"{self.name(tape)} = np.append({self.name(tape)}, {self.name(tape)})"]
            longer += [
                f"{self.name(n)} = np.append({self.name(n)}, np.zeros_like({self.name(n)}))" for n in self.tapes[tape]
            ]
            return [f"{indent}while not {self.show(s.condition)}:", *[f"{indent}    {line}" for line in longer]]
        if s.error == "crowded":  # longer columns, and what lies beside them
            column = s.condition.args[1].args[0]
            beside = [n for n in self.allocated if n.split("~")[0] == column]
            longer = [f"{self.name(n)} = np.append({self.name(n)}, {self.name(n)}, axis=0)" for n in beside]
            return [f"{indent}if not {self.show(s.condition)}:", *[f"{indent}    {line}" for line in longer]]
        operator = s.error.partition(" ")[0]
        if s.error == "index":
            i, axis, size = (self.bare(e) for e in s.operands)
            what = f'IndexError(f"index {{{i}}} is out of bounds for axis {{{axis}}} with size {{{size}}}")'
        elif operator in ("item", "div", "floordiv", "mod") and (raised := failure(s.error, [])) is not None:
            what = f"{type(raised).__name__}({str(raised)!r})"
        else:
            return [f"{indent}assert {self.bare(s.condition)}, {UNFIT!r}"]
        return [f"{indent}if not {self.show(s.condition)}:", f"{indent}    raise {what}"]

    def of_if(self, s: If, indent: str) -> list[str]:
        more = indent + "    "
        then, orelse = self.lines(s.then, more), self.lines(s.orelse, more)
        if not then and orelse:
            return [f"{indent}if not {self.show(s.condition)}:", *orelse]
        out = [f"{indent}if {self.bare(s.condition)}:", *(then or [f"{more}pass"])]
        if len(s.orelse) == 1 and type(s.orelse[0]) is If and orelse and orelse[0].startswith(f"{more}if "):
            inner = self.lines(s.orelse, indent)
            return [*out, f"{indent}el{inner[0].strip()}", *inner[1:]]
        return [*out, *([f"{indent}else:", *orelse] if orelse else [])]

    # -------------------------------------------------------------- loops, and how they are left
    def of_block(self, s: Block, indent: str) -> list[str]:
        left = any(type(x) is Leave and x.label == s.label for x in statements(s.body))
        if not left:
            return self.lines(s.body, indent)
        at = next((k for k, x in enumerate(s.body) if type(x) in (For, While)), None)
        before = [] if at is None else s.body[:at]
        loop = None if at is None else s.body[at]
        rest = [] if at is None else s.body[at + 1 :]
        outside = any(type(x) is Leave and x.label == s.label for x in statements([*before, *rest]))
        if loop is None or outside or (type(loop) is While and loop.test):  # a loop of one turn
            frame = Frame((s.label,), ())
            lines, after = self.within(frame, s.body, indent)
            flags = [f"{indent}{self.flag(label)} = False" for label in frame.crossed]
            return [*flags, f"{indent}while True:", *lines, f"{indent}    break", *after]
        out = [*self.lines(before, indent)]
        written = self.loop(loop, indent, (s.label,), rest)
        return [*out, *written]

    def flag(self, label: str) -> str:
        return self.name(f"left.{label}")

    def within(self, frame: Frame, body: list, indent: str) -> tuple[list[str], list[str]]:
        """The body of a loop of Python's, and the lines after it that leave blocks around it."""
        self.frames.append(frame)
        lines = self.suite(body, indent + "    ")
        self.frames.pop()
        after: list[str] = []
        for label in frame.crossed:
            after += [f"{indent}if {self.flag(label)}:", *self.leaving(label, indent + "    ")]
        return lines, after

    def of_for(self, s: For, indent: str) -> list[str]:
        return self.loop(s, indent, (), [])

    def of_while(self, s: While, indent: str) -> list[str]:
        return self.loop(s, indent, (), [])

    def loop(self, s: For | While, indent: str, ends: tuple, rest: list) -> list[str]:
        """A loop, of which the blocks `ends` are left by break, with the rest of these as its else."""
        body, turns, var = s.body, [], ""
        if type(s) is For:
            var, body = s.var, s.body
            first = body[0] if body else None
            reads = sum(
                x.op == "var" and x.args[0] == var for t in statements(body) for e in expressions(t) for x in walk(e)
            )
            if type(first) is Assign and first.value.op in ("var", "copy") and reads == 1:
                source = first.value if first.value.op == "var" else first.value.args[0]
                if source.op == "var" and source.args[0] == var and first.value.kind == INT:
                    var, body = first.name, body[1:]
        if body and type(body[-1]) is Block:
            turns.append(body[-1].label)
            body = [*body[:-1], *body[-1].body]
        frame = Frame(ends, turns)
        more = indent + "    "
        if type(s) is For:
            start, stop = self.bare(s.start), self.bare(s.stop)
            step = s.step if isinstance(s.step, int) else self.bare(s.step)
            said = f"{start}, {stop}, {step}" if str(step) != "1" else f"{start}, {stop}" if start != "0" else stop
            head, tests = f"{indent}for {self.name(var)} in range({said}):", []
        elif s.test:
            head = f"{indent}while True:"
            tests = [*self.lines(s.test, more), f"{more}if not {self.show(s.condition)}:", f"{more}    break"]
        else:
            head, tests = f"{indent}while {self.bare(s.condition)}:", []
        lines, after = self.within(frame, body, indent)
        flags = [f"{indent}{self.flag(label)} = False" for label in frame.crossed]
        orelse = self.lines(rest, more) if ends and rest else []
        return [*flags, head, *tests, *lines, *([f"{indent}else:", *orelse] if orelse else []), *after]

    def of_leave(self, s: Leave, indent: str) -> list[str]:
        return self.leaving(s.label, indent)

    def leaving(self, label: str, indent: str) -> list[str]:
        if label in self.returns:
            return [f"{indent}{self.returns[label]}"]
        frame = self.frames[-1]
        if label in frame.ends or label in frame.turns:
            return [f"{indent}{'break' if label in frame.ends else 'continue'}"]
        frame.crossed[label] = None
        return [f"{indent}{self.flag(label)} = True", f"{indent}break"]

    # -------------------------------------------------------------- expressions
    def bare(self, e: E) -> str:
        """An expression that nothing follows."""
        text = self.show(e)
        if text[0] == "(" and text[-1] == ")" and _closes(text):
            return text[1:-1]
        return text

    def whole(self, e: E) -> str:
        """An expression that a variable holds, of the type of its kind."""
        inner = e
        while inner.op == "copy":
            inner = inner.args[0]
        if inner.op == "const" and not e.kind.python:
            return f"np.{e.kind.dtype.name}({self.literal(inner)})"
        if e.op == "copy" and inner.kind.python != e.kind.python:
            return self.converted(self.show(inner), e.kind, inner.kind)
        return self.bare(e)

    def literal(self, e: E) -> str:
        x = e.args[0]
        x = x if type(x) in (int, float, bool, complex) else x.item()
        if e.kind.letter == "f":
            x = float(x)
            return repr(x) if x == x and abs(x) != float("inf") else f"float({str(x)!r})"
        return repr(x) if e.kind.letter != "c" else f"complex({complex(x).real!r}, {complex(x).imag!r})"

    def index(self, index: tuple) -> str:
        return ", ".join(map(self.subscript, index)) or "()"

    def subscript(self, e: E) -> str:
        return self.bare(e.args[0] if e.op == "wrap" else e)  # Python's indices wrap themselves

    def show(self, e: E, among: bool = False) -> str:
        """An expression; `among` others, where a literal takes the type of what is beside it."""
        op, show = e.op, self.show
        if op == "const":
            text = self.literal(e)
            if e.kind.python or e.kind.letter == "b" or (among and e.kind.code == "f8"):
                return text
            return f"np.{e.kind.dtype.name}({text})"
        if op == "var":
            return self.name(e.args[0])
        if op == "load":
            text = f"{self.name(e.args[0])}[{self.index(e.args[1:])}]"
            return f"{text}.item()" if e.kind.python else text
        if op == "dim":
            return f"{self.name(e.args[0])}.shape[{e.args[1]}]"
        if op == "apart":
            return f"(not np.may_share_memory({', '.join(map(self.name, e.args))}))"
        if op == "held":
            return f"({self.name(e.args[0])} is not None)"
        if op == "dense":
            return f"{self.name(e.args[0])}.flags.c_contiguous"
        if op in ("copy", "still"):
            return show(e.args[0], among)
        if op == "valued":
            return show(e.args[1], among)
        if op == "cast":
            return self.converted(self.bare(e.args[0]), e.kind, e.args[0].kind)
        if op == "select":
            known = decided(e.args[0])
            if known is not None:
                return show(e.args[1] if known else e.args[2], among)
            return f"({show(e.args[1])} if {show(e.args[0])} else {show(e.args[2])})"
        if op in SIGNS and not (op in ("and", "or", "xor") and e.kind.letter == "b"):
            if op == "sub" and e.kind == INT and e.args[1].op == "const" and e.args[1].args[0] == 0:
                return show(e.args[0])
            beside = [a.op != "const" for a in e.args]
            shown = [show(a, any(beside)) for a in e.args]
            text = f"({shown[0]} {SIGNS[op]} {shown[1]})"
            if e.kind.letter == "f" and e.kind.code != e.args[0].kind.code:
                return self.converted(text, e.kind, e.args[0].kind)
            return text
        args = [show(a) for a in e.args]
        if op in ("and", "or"):
            return f"({args[0]} {op} {args[1]})"
        if op == "xor":
            return f"({args[0]} != {args[1]})"
        if op == "neg":
            return f"(-{args[0]})"
        if op == "not" or (op == "invert" and e.kind.letter == "b"):
            return f"(not {args[0]})"
        if op == "invert":
            return f"(~{args[0]})"
        if op == "wrap":
            return f"({args[0]} + {args[1]} if {args[0]} < 0 else {args[0]})"
        if op == "inside":
            return f"({f'-{args[1]} <= ' if e.args[0].low < 0 else ''}{args[0]} < {args[1]})"
        if op == "within":
            return f"({args[1]} <= {args[0]} <= {args[2]})"
        if op.startswith("fits_"):
            op = op.removeprefix("fits_")
            if op in SIGNS and op != "floordiv":
                return f"(-(2**63) <= {args[0]} {SIGNS[op]} {args[1]} < 2**63)"
            return f"({args[0]} != -(2**63))"
        if op in ("min", "max", "abs"):
            return f"{op}({', '.join(map(self.bare, e.args))})"
        if op in ("real", "imag"):
            return f"{args[0]}.{op}"
        if op in ("real_of_ratio", "imag_of_ratio"):
            made = f"np.{'complex128' if e.kind.code == 'f8' else 'complex64'}"
            z, w = (f"{made}(complex({', '.join(x)}))" for x in (args[:2], args[2:]))
            return self.converted(f"({z} / {w}).{op[:4]}", e.kind, Kind(e.kind.code))
        called = "complex" if op == "complex" else f"np.{NAMES.get(op, op)}"
        if op in ("erf", "erfc", "gamma", "lgamma"):
            called, self.mathematical = f"math.{op}", True
        text = f"{called}({', '.join(map(self.bare, e.args))})"
        return self.converted(text, e.kind, Kind(e.kind.code, op == "complex"))

    def converted(self, text: str, kind: Kind, before: Kind) -> str:
        """The text of a number as one of another kind."""
        if kind.python:
            return text if kind == before or {kind, before} == {INT, WORD} else f"{PYTHONS[kind.letter]}({text})"
        if kind == before:
            return text
        narrow = kind.letter in "iu" and before.letter in "iuf" and kind.code != "i8"
        if narrow:
            return f"np.asarray({text}).astype({kind.dtype.name!r})[()]"
        return f"np.{'bool_' if kind.letter == 'b' else kind.dtype.name}({text})"


# ------------------------------------------------------------------ what need not be written
def inlined(program: Program) -> list:
    """The statements, without checks that Python makes itself and with temporary variables where they are read."""
    free = temporaries(program)
    body = unchecked(Inlining(program, free, program.body, copies=True).list(program.body))
    return Inlining(program, free, body).list(body)


def temporaries(program: Program) -> set[str]:
    """The temporary variables that are assigned once and do not come out."""
    kept = {name for o in program.outputs for name in (o[0], *o[2:])} | {name for _, name in program.results}
    count: dict[str, int] = {}
    for s in statements(program.body):
        if type(s) is Define:
            kept.update(s.given, s.returned)
        for name in assigned(s):
            count[name] = count.get(name, 0) + 1
    return {n for n, times in count.items() if times == 1 and n not in kept and temporary(n)}


def defined(body: list, sure: set[str], loose: dict[str, None]) -> set[str]:
    """The variables that are assigned after statements, if `sure` are before; `loose` gets those read before that."""
    sure = set(sure)
    for s in body:
        for e in [] if type(s) is While else expressions(s):
            loose.update(dict.fromkeys(x.args[0] for x in walk(e) if x.op == "var" and x.args[0] not in sure))
        if type(s) is Assign:
            sure.add(s.name)
        elif type(s) is For:
            defined(s.body, sure | {s.var}, loose)
        elif type(s) is While:
            sure = defined(s.test, sure, loose)
            names = (x.args[0] for x in walk(s.condition) if x.op == "var")
            loose.update(dict.fromkeys(n for n in names if n not in sure))
            defined(s.body, sure, loose)
        elif type(s) is If:
            branches = [b for b in (s.then, s.orelse) if not (b and type(b[-1]) is Leave)]
            found = [defined(b, sure, loose) for b in (s.then, s.orelse)]
            found = [f for f, b in zip(found, (s.then, s.orelse)) if any(b is x for x in branches)]
            sure = set.intersection(*found) if found else sure
        elif type(s) is Block:
            inner = defined(s.body, sure, loose)
            if not any(type(x) is Leave and x.label == s.label for x in statements(s.body)):
                sure = inner
        elif type(s) is Define:
            defined(s.body, sure | {*s.given, *s.returned}, loose)
        elif type(s) is Call:
            (f,) = [d for d in statements(body) if type(d) is Define and d.name == s.function] or [None]
            sure |= set(f.returned) if f is not None else set()
    return sure


def unchecked(body: list) -> list:
    """The statements without checks of indices that lie just before the index is used."""
    out = []
    for k, s in enumerate(body):
        if type(s) is Check and s.error == "index" and foreseen(s, body[k + 1 :]):
            continue
        out.append(rebuilt(s, lambda e: e, unchecked))
    return out


def foreseen(check: Check, following: list) -> bool:
    """Whether the index of a check is used before anything else is done."""
    if check.condition.op != "inside" or check.condition.args[1].op != "dim":
        return False
    index, length = check.condition.args
    (array, axis), wanted = length.args, repr(index)
    same = lambda e: isinstance(e, E) and wanted == repr(e.args[0] if e.op == "wrap" else e)
    for s in following:
        if type(s) is View and s.base == array:
            used = [p for p in s.spec if p[0] != "new"]
            if axis < len(used) and used[axis][0] == "index" and same(used[axis][1]):
                return True
        if type(s) is Store and s.array == array and axis < len(s.index) and same(s.index[axis]):
            return True
        for e in expressions(s):
            if any(x.op == "load" and x.args[0] == array and same(x.args[1 + axis]) for x in strictly(e)):
                return True
        if type(s) not in (Assign, Check, View):
            return False
    return False


def strictly(e: E) -> Iterable[E]:
    """The parts of an expression that are computed whatever the others are."""
    yield e
    lazy = e.op == "select" or (e.op in ("and", "or") and e.kind.letter == "b")
    for a in e.args[:1] if lazy else e.args:
        if isinstance(a, E):
            yield from strictly(a)


def assigned(s: Any) -> list[str]:
    """The variables that a statement itself assigns."""
    return [s.name] if type(s) is Assign else [s.var] if type(s) is For else []


def bound(s: Any) -> set[str]:
    """The variables and arrays that a statement, or one in it, binds anew."""
    found: set[str] = set()
    for x in statements([s]):
        found.update(assigned(x))
        if type(x) in (View, Permute, Reshape, Bind, Alloc):
            found.add(x.name)
    return found


def named_in(e: E) -> set[str]:
    """The variables and arrays that an expression names."""
    return {a for x in walk(e) if x.op in NAMING for a in x.args if isinstance(a, str)}


def occurrences(body: list) -> dict[str, int]:
    """How often statements read each variable."""
    found: dict[str, int] = {}
    for s in statements(body):
        for e in expressions(s):
            for x in walk(e):
                if x.op == "var":
                    found[x.args[0]] = found.get(x.args[0], 0) + 1
    return found


def rebuilt(s: Any, change: Callable[[E], E], inner: Callable[[list], list]) -> Any:
    """A statement with change(expression) for its own expressions, and inner(body) for its bodies."""
    of = lambda x: change(x) if isinstance(x, E) else x
    if type(s) is Assign:
        return s._replace(value=change(s.value))
    if type(s) is Store:
        return s._replace(index=tuple(map(of, s.index)), value=change(s.value))
    if type(s) is View:
        return s._replace(spec=tuple((p[0], *map(of, p[1:])) for p in s.spec))
    if type(s) in (Alloc, Reshape):
        return s._replace(dims=tuple(map(of, s.dims)))
    if type(s) is For:
        return s._replace(start=of(s.start), stop=of(s.stop), step=of(s.step), body=inner(s.body))
    if type(s) is While:
        return s._replace(test=inner(s.test), condition=change(s.condition), body=inner(s.body))
    if type(s) is If:
        return If(change(s.condition), inner(s.then), inner(s.orelse))
    if type(s) is Check:
        return s._replace(condition=change(s.condition), operands=tuple(map(of, s.operands)))
    return s._replace(body=inner(s.body)) if type(s) in (Block, Define) else s


class Inlining:
    """Writes each variable of `free` where it is read, if what it holds is the same there and is read once."""

    def __init__(self, program: Program, free: set[str], body: list, copies: bool = False) -> None:
        self.program, self.free, self.copies = program, free, copies  # copies: those of variables and numbers alone
        self.reads = occurrences(body)

    def list(self, body: list, pending: dict[str, E] | None = None) -> list:
        """The statements; `pending` are variables that are read in them alone."""
        out: list = []
        pending = {} if pending is None else pending

        def flush(which: Callable[[str, E], bool]) -> None:
            """Assign those that wait no longer."""
            for name in [n for n, e in pending.items() if which(n, e)]:
                value = pending.pop(name)
                if self.reads.get(name, 0):
                    out.append(Assign(name, value))

        for s in body:
            if type(s) is Block:
                within = occurrences(s.body)
                own = {n: e for n, e in pending.items() if within.get(n) == self.reads.get(n)}
                pending = {n: e for n, e in pending.items() if n not in own}
                flush(lambda n, e: True)
                out.append(Block(s.label, self.list(s.body, own)))
                continue
            changed, stores = bound(s), any(type(x) in (Store, Call) for x in statements([s]))
            inside = occurrences([x for part in parts(s) for x in part])
            if type(s) is While:  # which is computed again and again
                inside |= dict.fromkeys(named_in(s.condition), 1)
            lazily = {n for e in expressions(s) for n in named_in(e)}
            lazily -= {x.args[0] for e in expressions(s) for x in strictly(e) if x.op == "var"}
            follow = {n: e for n, e in pending.items() if n in inside and e.op in CHOSEN and not named_in(e) & changed}
            flush(lambda n, e: (n in inside and n not in follow) or (n in lazily and loads(e)))  # noqa: B023
            new = self.rewritten(s, pending, follow)
            for name in [n for n in pending if not self.reads.get(n, 0)]:
                for read, times in occurrences([Assign(name, pending.pop(name))]).items():
                    self.reads[read] -= times
            flush(lambda n, e: bool(named_in(e) & changed) or (stores and loads(e)))  # noqa: B023
            if type(new) is Assign and self.may_wait(new):
                pending[new.name] = plain(new.value)
            else:
                out.append(new)
        flush(lambda n, e: True)
        return out

    def rewritten(self, s: Any, pending: dict[str, E], follow: dict[str, E]) -> Any:
        """A statement with what is `pending` in its own expressions, and what may `follow` in its bodies."""

        def put(body: list) -> list:
            return [rebuilt(x, lambda e: self.replaced(e, follow), put) for x in body] if follow else body

        if type(s) is While:
            *test, last = self.list([*put(s.test), If(self.replaced(s.condition, follow), [], [])])
            return While(test, last.condition, self.list(put(s.body)))
        return rebuilt(s, lambda e: self.replaced(e, pending), lambda body: self.list(put(body)))

    def may_wait(self, s: Assign) -> bool:
        kept = self.program.kinds.get(s.name, s.value.kind)
        if s.name not in self.free or kept != s.value.kind or not self.reads.get(s.name, 0):
            return False
        return plain(s.value).op in CHOSEN or (self.reads[s.name] == 1 and not self.copies)

    def replaced(self, e: E, pending: dict[str, E]) -> E:
        if e.op == "var":
            found = pending.get(e.args[0])
            if found is None:
                return e
            self.reads[e.args[0]] -= 1
            for x in walk(found):  # which are read here, too
                if x.op == "var":
                    self.reads[x.args[0]] = self.reads.get(x.args[0], 0) + 1
            return found if found.kind == e.kind else E("copy", (found,), e.kind, e.low, e.high)
        if not any(isinstance(a, E) for a in e.args):
            return e
        return e.over(lambda a: self.replaced(a, pending))


def plain(e: E) -> E:
    """What an expression is a copy of."""
    while e.op == "copy" and e.args[0].kind == e.kind:
        e = e.args[0]
    return e


def is_var(e: E, name: str) -> bool:
    return e.op == "var" and e.args[0] == name


def loads(e: E) -> bool:
    return any(x.op == "load" for x in walk(e))


def decided(e: E) -> bool | None:
    """What a comparison of numbers is."""
    if e.op not in ("lt", "ge") or any(a.op != "const" for a in e.args):
        return None
    return (e.args[0].args[0] < e.args[1].args[0]) == (e.op == "lt")


def _closes(text: str) -> bool:
    """Whether the bracket that a text begins with is closed at its end."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return k == len(text) - 1
    return False
