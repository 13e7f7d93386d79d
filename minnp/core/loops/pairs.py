"""A program of complex numbers as one of real numbers, which has a derivative: each complex variable, array and input
is two, its real and its imaginary part.

What is computed is what complex machine code computes, operation for operation, so that both take the same branches and
the same side of every branch cut.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from typing import Any

from .derivative import cast, temporary
from .ir import (
    BOOL,
    FLOAT,
    ROOM,
    Alloc,
    Array,
    Assign,
    Check,
    E,
    Kind,
    Permute,
    Program,
    Reshape,
    Store,
    View,
    While,
    const,
    constant,
    expressions,
    parts,
    statements,
    walk,
)
from .operations import NotUnderstood

HALVES = {"c16": "f8", "c8": "f4"}
MARKS = ("re:", "im:")  # before the names of parts, which no variable of a program begins with


def has_complex(program: Program) -> bool:
    """Whether there are complex numbers in a program."""
    kinds = [*program.kinds.values(), *(a.kind for a in program.arrays.values()), *(i.kind for i in program.inputs)]
    if any(k.letter == "c" for k in kinds):
        return True
    return any(x.kind.letter == "c" for s in statements(program.body) for e in expressions(s) for x in walk(e))


def paired(program: Program) -> Program:
    """The same program with two real numbers for each complex one, without its checks: it runs where they held. Raises
    NotUnderstood."""
    return _Pairs(program).made()


def half(kind: Kind) -> Kind:
    """The kind of a part: NumPy's, for Python's complex numbers may be made of what is differentiated (1j * x)."""
    return Kind(HALVES[kind.code])


class _Pairs:
    def __init__(self, program: Program) -> None:
        if program.moving:
            raise NotUnderstood("the derivative of names that stand for several arrays", program.line)
        self.source = program
        self.out = out = copy.copy(program)
        self.counts = itertools.count()
        self.assigned = Counter(s.name for s in statements(program.body) if type(s) is Assign)
        self.zeros: set[str] = set()  # variables that are zero times something: a slope of zero
        out.kinds, out.arrays, out.inputs, out.outputs = {}, {}, [], []
        for name, kind in program.kinds.items():
            for n in self.names(name, kind):
                out.kinds[n] = half(kind) if kind.letter == "c" else kind
        for a in program.arrays.values():
            for k, n in enumerate(self.names(a.name, a.kind)):
                root = a.root if n == a.name else MARKS[k] + a.root
                out.arrays[n] = made = Array(n, half(a.kind) if a.kind.letter == "c" else a.kind, a.ndim, root)
                made.dims = [self.real(d, []) for d in a.dims]
        for i in program.inputs:
            kind = Kind(HALVES[i.kind.code], i.kind.python) if i.kind.letter == "c" else i.kind
            like = program.arrays.get(i.like)
            for k, n in enumerate(self.names(i.name, i.kind)):
                of = MARKS[k] + i.like if like is not None and like.kind.letter == "c" else i.like
                if n in out.kinds:
                    out.kinds[n] = kind
                out.inputs.append(i._replace(name=n, kind=kind, like=of))
        for name, kinds, tag, flag in program.outputs:
            kind = program.kinds[name]
            if kind.letter == "c":
                out.outputs += [(n, [half(kind)], "", "") for n in self.names(name, kind)]
            else:
                out.outputs.append((name, kinds, tag, flag))
        out.scratch = {n for name in program.scratch for n in self.names(name, program.arrays[name].kind)}

    def made(self) -> Program:
        self.out.body = self.body(self.source.body)
        return self.out

    @staticmethod
    def names(name: str, kind: Kind) -> tuple[str, ...]:
        """The names of what stands for a variable or an array."""
        return tuple([mark + name for mark in MARKS]) if kind.letter == "c" else (name,)

    def arrays(self, name: str) -> tuple[str, ...]:
        return self.names(name, self.source.arrays[name].kind)

    # -------------------------------------------------------------- statements
    def body(self, body: list) -> list:
        out: list = []
        for s in body:
            self.statement(s, out)
        return out

    def statement(self, s: Any, out: list) -> None:
        one = lambda e: self.real(e, out) if isinstance(e, E) else e
        if type(s) is Assign and s.value.kind.letter == "c":
            self.both(s.value, out, lambda k, e: Assign(MARKS[k] + s.name, e))
            if temporary(s.name) and self.assigned[s.name] == 1:
                self.zeros |= {x.name for x in out[-2:] if self.vanishes(x.value)}
        elif type(s) is Store and s.value.kind.letter == "c":
            index = tuple(map(one, s.index))
            self.both(s.value, out, lambda k, e: Store(MARKS[k] + s.array, index, e))
        elif type(s) is Check and s.error not in ROOM:
            pass
        elif type(s) is While:
            test = self.body(s.test)
            out.append(While(test, self.real(s.condition, test), self.body(s.body)))
        elif type(s) in (View, Permute, Reshape, Alloc):
            if type(s) is View:
                s = s._replace(spec=tuple([(p[0], *map(one, p[1:])) for p in s.spec]))
            elif type(s) is not Permute:
                s = s._replace(dims=tuple(map(one, s.dims)))
            names = self.arrays(s.name)
            bases = [()] * len(names) if type(s) is Alloc else [(base,) for base in self.arrays(s.base)]
            out += [type(s)(n, *base, *s[1 + len(base) :]) for n, base in zip(names, bases)]
        else:
            changed = {f: tuple(map(one, v)) if type(v) is tuple else one(v) for f, v in zip(s._fields, s)}
            changed |= {f: self.body(v) for f, v in changed.items() if type(v) is list} if parts(s) else {}
            out.append(s._replace(**changed))

    def both(self, e: E, out: list, made: Any) -> None:
        """Emits made(0, the real part) and made(1, the imaginary part), which does not see what that one writes."""
        a, b = self.pair(e, out)
        if any(x.op in ("var", "load") and str(x.args[0]).startswith(MARKS[0]) for x in walk(b)):
            b = self.kept(b, out)
        out += [made(0, a), made(1, b)]

    def kept(self, e: E, out: list) -> E:
        """An expression that is read more than once: as a variable."""
        if e.op in ("const", "var"):
            return e
        name = f"part.{next(self.counts)}"
        while name in self.out.kinds:
            name = f"part.{next(self.counts)}"
        self.out.kinds[name] = e.kind
        out.append(Assign(name, e))
        if self.vanishes(e):
            self.zeros.add(name)
        return E("var", (name,), e.kind)

    # -------------------------------------------------------------- expressions
    def vanishes(self, e: E) -> bool:
        """Whether a number is zero, or zero times something."""
        if e.op == "var":
            return e.args[0] in self.zeros
        if e.op == "mul":
            return any(map(self.vanishes, e.args))
        if e.op in ("add", "sub", "copy", "cast", "neg"):
            return all(map(self.vanishes, e.args))
        return constant(e) == 0

    def real(self, e: E, out: list) -> E:
        """An expression that is not complex; what it is made of is computed in `out`."""
        op, args = e.op, e.args
        if op == "load":
            return E(op, (args[0], *[self.real(i, out) for i in args[1:]]), e.kind, e.low, e.high)
        if op in ("dim", "apart", "held", "dense"):
            known = self.source.arrays
            return E(op, tuple([self.arrays(a)[0] if a in known else a for a in args]), e.kind, e.low, e.high)
        if not any(isinstance(a, E) and a.kind.letter == "c" for a in args):
            again = tuple([self.real(a, out) if isinstance(a, E) else a for a in args])
            return E(op, again, e.kind, e.low, e.high) if args and isinstance(args[0], E) else e
        a, b = self.pair(args[0], out)
        if op in ("real", "imag"):
            return b if op == "imag" else a
        if op == "abs":
            return E("modulus", (a, b), a.kind)
        if op == "finite":
            return E("and", tuple([E(op, (x,), BOOL, 0, 1) for x in (a, b)]), e.kind, 0, 1)
        if op in ("eq", "ne"):
            each = tuple([E(op, both, BOOL, 0, 1) for both in zip((a, b), self.pair(args[1], out))])
            return E("and" if op == "eq" else "or", each, e.kind, 0, 1)
        raise NotUnderstood(f"the derivative of {op} of complex numbers", self.source.line)

    def pair(self, e: E, out: list) -> tuple[E, E]:
        """The real and the imaginary part of a complex expression."""
        op, kind = e.op, half(e.kind)
        f = lambda op, *args: E(op, args, kind)
        if op == "const":
            x = complex(e.args[0])
            return const(x.real, kind), const(x.imag, kind)
        if op == "var":
            a, b = (f("var", mark + e.args[0]) for mark in MARKS)
            return a, b
        if op == "load":
            index = [self.real(i, out) for i in e.args[1:]]
            a, b = (f("load", mark + e.args[0], *index) for mark in MARKS)
            return a, b
        if op == "complex":
            a, b = (E("copy", (cast(self.real(x, out), kind),), FLOAT) for x in e.args)
            return a, b
        if op == "select":
            test = self.kept(self.real(e.args[0], out), out)
            (a, b), (c, d) = (self.pair(x, out) for x in e.args[1:])
            return f("select", test, a, c), f("select", test, b, d)
        if e.args[0].kind.letter != "c":
            if op not in ("cast", "copy"):
                raise NotUnderstood(f"the derivative of {op}, a complex number", self.source.line)
            return cast(self.real(e.args[0], out), kind), const(0.0, kind)
        a, b = self.pair(e.args[0], out)
        if op in ("cast", "copy"):
            if e.kind.python and not e.args[0].kind.python:  # which is no longer differentiated
                kind = FLOAT
            return cast(a, kind), cast(b, kind)
        if op in ("neg", "conj"):
            return (f("neg", a) if op == "neg" else a), f("neg", b)
        if op == "exp":
            b = self.kept(b, out)
            size = None if self.vanishes(a) else self.kept(f("exp", a), out)
            c, d = f("cos", b), f("sin", b)
            return (c, d) if size is None else (f("mul", size, c), f("mul", size, d))
        if op in ("add", "sub", "mul", "div"):
            c, d = self.pair(e.args[1], out)
            if op in ("add", "sub"):
                return f(op, a, c), f(op, b, d)
            a, b, c, d = (self.kept(x, out) for x in (a, b, c, d))
            if op == "mul":
                return (
                    f("sub", self.times(a, c), self.times(b, d)),
                    f("add", self.times(a, d), self.times(b, c)),
                )
            if constant(d) == 0:
                return f("div", a, c), f("div", b, c)
            return f("real_of_ratio", a, b, c, d), f("imag_of_ratio", a, b, c, d)
        raise NotUnderstood(f"the derivative of {op} of complex numbers", self.source.line)

    @staticmethod
    def times(a: E, b: E) -> E:
        x, y = constant(a), constant(b)
        if x is not None and y is not None:
            return const(x * y, a.kind)
        return b if x == 1 else a if y == 1 else E("mul", (a, b), a.kind)
