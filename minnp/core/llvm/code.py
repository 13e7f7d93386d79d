"""LLVM IR as text: values of a fixed number of lanes, and the instructions on them.

A `Code` collects the instructions of one function; a `Lane` value is a name with a dtype (bool is i1 in registers, i8
in memory). Arithmetic is IEEE's, in the order written: nothing may be reassociated or contracted by the compiler.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as onp

BOOL, INT32, INT64, FLOAT32, FLOAT64 = map(onp.dtype, ("?", "i4", "i8", "f4", "f8"))
_NAMES = {"f4": "float", "f8": "double", "b1": "i1"}
KINDS = "biuf"  # dtype kinds that can be compiled, of at most 8 bytes


def known(dtype: onp.dtype) -> bool:
    """Whether arrays of this dtype can be compiled for."""
    return dtype.kind in KINDS and dtype.isnative and not (dtype.kind == "f" and dtype.itemsize not in (4, 8))


def scalar_type(dtype: onp.dtype) -> str:
    """The LLVM type of one element in a register."""
    return _NAMES.get(dtype.str[1:]) or f"i{8 * dtype.itemsize}"


def literal(value: Any, dtype: onp.dtype) -> str:
    """A number as LLVM writes it."""
    if dtype.kind == "f":
        with onp.errstate(over="ignore"):
            rounded = float(onp.asarray(value, dtype))
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    found = onp.asarray(value)
    if found.dtype.kind == "f":  # cast as NumPy casts: an infinity is some integer
        with onp.errstate(invalid="ignore"):
            value = found.astype(dtype)
    return str(int(value))


class Code:
    """Instructions of one function, for vectors of `lanes` elements (0: plain numbers)."""

    def __init__(self, lanes: int, start: int = 0, block: str = "entry") -> None:
        self.lanes, self.count, self.block = lanes, start, block
        self.entry: list[str] = []  # what the function does first: room on the stack
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}  # name -> declaration of an intrinsic or helper
        self.helpers: dict[str, str] = {}  # name -> definition

    # -------------------------------------------------------------- text
    def type(self, dtype: onp.dtype) -> str:
        one = scalar_type(dtype)
        return f"<{self.lanes} x {one}>" if self.lanes else one

    def suffix(self, dtype: onp.dtype) -> str:
        one = {"f4": "f32", "f8": "f64"}.get(dtype.str[1:]) or f"i{8 * dtype.itemsize}"
        return f"v{self.lanes}{one}" if self.lanes else one

    def emit(self, text: str) -> str:
        """Add an instruction with a result; the result's name."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self.block = label
        self.lines.append(f"{label}:")

    def room(self, what: str) -> str:
        """A pointer to stack memory of the function: `what` is a type, or "type, align n"."""
        self.count += 1
        name = f"%m{self.count}"
        self.entry.append(f"  {name} = alloca {what}")
        return name

    def constant(self, type_: str, value: Any) -> str:
        """A pointer to a number that does not change."""
        name = f"@number.{type_}.{value}"
        self.helpers[name] = f"{name} = internal constant {type_} {value}"
        return name

    # -------------------------------------------------------------- values
    def number(self, value: Any, dtype: onp.dtype) -> Lane:
        text = literal(value, dtype)
        return Lane(self, f"splat ({scalar_type(dtype)} {text})" if self.lanes else text, dtype)

    def op(self, name: str, dtype: onp.dtype, *args: Lane) -> Lane:
        return Lane(self, self.emit(f"{name} {self.type(args[0].dtype)} {', '.join(a.name for a in args)}"), dtype)

    def intrinsic(self, name: str, *args: Lane) -> Lane:
        """A call of llvm.NAME, whose result has the type of its arguments."""
        t = self.type(args[0].dtype)
        full = f"@llvm.{name}.{self.suffix(args[0].dtype)}"
        self.declared[full] = f"declare {t} {full}({', '.join([t] * len(args))})"
        return Lane(self, self.emit(f"call {t} {full}({', '.join(f'{t} {a.name}' for a in args)})"), args[0].dtype)

    def compare(self, how: str, a: Lane, b: Lane) -> Lane:
        """how: eq, ne, lt, le, gt, ge. Comparisons with NaN are false, but for ne."""
        if a.dtype.kind == "f":
            word = f"fcmp {'une' if how == 'ne' else 'o' + how}"
        else:
            word = f"icmp {how if how in ('eq', 'ne') else ('s' if a.dtype.kind == 'i' else 'u') + how}"
        return Lane(self, self.emit(f"{word} {self.type(a.dtype)} {a.name}, {b.name}"), BOOL)

    def select(self, c: Lane, a: Lane, b: Lane) -> Lane:
        t = self.type(a.dtype)
        return Lane(self, self.emit(f"select {self.type(BOOL)} {c.name}, {t} {a.name}, {t} {b.name}"), a.dtype)

    def bits(self, x: Lane, dtype: onp.dtype) -> Lane:
        """The same bits seen as another dtype of that size."""
        return Lane(self, self.emit(f"bitcast {self.type(x.dtype)} {x.name} to {self.type(dtype)}"), dtype)

    def cast(self, x: Lane, dtype: onp.dtype) -> Lane:
        """x converted as NumPy converts."""
        a = x.dtype
        if a == dtype:
            return x
        if dtype.kind == "b":
            return self.compare("ne", x, self.number(0, a))
        if a.kind == "f" and dtype.kind == "f":
            word = "fpext" if dtype.itemsize > a.itemsize else "fptrunc"
        elif a.kind == "f":
            word = "fptosi" if dtype.kind == "i" else "fptoui"
        elif dtype.kind == "f":
            word = "sitofp" if a.kind == "i" else "uitofp"
        elif a.kind == "b" or dtype.itemsize > a.itemsize:
            word = "sext" if a.kind == "i" else "zext"
        elif dtype.itemsize < a.itemsize:
            word = "trunc"
        else:
            return Lane(self, x.name, dtype)
        return Lane(self, self.emit(f"{word} {self.type(a)} {x.name} to {self.type(dtype)}"), dtype)

    def fma(self, a: Lane, b: Lane, c: Lane) -> Lane:
        """a * b + c, rounded once where the processor can."""
        return self.intrinsic("fmuladd", a, b, c)

    def each(self, name: str, *args: Lane) -> Lane:
        """The C library's function of this name (its double form), lane by lane."""
        dtype = args[0].dtype
        one, t = scalar_type(dtype), self.type(dtype)
        symbol = f"@{name}f" if dtype == FLOAT32 else f"@{name}"
        self.declared[symbol] = f"declare {one} {symbol}({', '.join([one] * len(args))})"
        if not self.lanes:
            return Lane(self, self.emit(f"call {one} {symbol}({', '.join(f'{one} {a.name}' for a in args)})"), dtype)
        helper = f"@each_{symbol[1:]}_{self.lanes}"
        if helper not in self.helpers:
            inputs = ", ".join(f"{t} %x{i}" for i in range(len(args)))
            elements = "".join(f"  %e{i} = extractelement {t} %x{i}, i32 %i\n" for i in range(len(args)))
            passed = ", ".join(f"{one} %e{i}" for i in range(len(args)))
            self.helpers[helper] = (
                f"define internal {t} {helper}({inputs}) noinline {{\nentry:\n  br label %loop\nloop:\n"
                f"  %i = phi i32 [ 0, %entry ], [ %next, %loop ]\n"
                f"  %y = phi {t} [ zeroinitializer, %entry ], [ %z, %loop ]\n{elements}"
                f"  %r = call {one} {symbol}({passed})\n  %z = insertelement {t} %y, {one} %r, i32 %i\n"
                f"  %next = add i32 %i, 1\n  %more = icmp ult i32 %next, {self.lanes}\n"
                f"  br i1 %more, label %loop, label %done\ndone:\n  ret {t} %z\n}}\n"
            )
        return Lane(self, self.emit(f"call {t} {helper}({', '.join(f'{t} {a.name}' for a in args)})"), dtype)

    def unless(self, fine: Lane, y: Lane, x: Lane, name: str) -> Lane:
        """y, but the C library's NAME(x) in the lanes where `fine` is false, which are rare."""
        ok = fine.name
        if self.lanes:
            full = f"@llvm.vector.reduce.and.v{self.lanes}i1"
            self.declared[full] = f"declare i1 {full}({self.type(BOOL)})"
            ok = self.emit(f"call i1 {full}({self.type(BOOL)} {fine.name})")
        rare, after, before = self.label("rare"), self.label("after"), self.block
        self.do(f"br i1 {ok}, label %{after}, label %{rare}")
        self.begin(rare)
        slow = self.select(fine, y, self.each(name, x))
        self.do(f"br label %{after}")
        self.begin(after)
        t = self.type(y.dtype)
        return Lane(self, self.emit(f"phi {t} [ {y.name}, %{before} ], [ {slow.name}, %{rare} ]"), y.dtype)

    def polynomial(self, x: Lane, coefficients: tuple) -> Lane:
        """The sum of coefficients[i] * x**i, by Horner's rule."""
        y = self.number(coefficients[-1], x.dtype)
        for c in reversed(coefficients[:-1]):
            y = self.fma(y, x, self.number(c, x.dtype))
        return y


class Lane:
    """A value in a register; Python numbers beside it take its dtype."""

    __slots__ = ("code", "dtype", "name")

    def __init__(self, code: Code, name: str, dtype: onp.dtype) -> None:
        self.code, self.name, self.dtype = code, name, dtype

    def _like(self, x: Any) -> Lane:
        return x if isinstance(x, Lane) else self.code.number(x, self.dtype)

    def _binary(self, other: Any, name: str, swap: bool = False) -> Lane:
        a, b = self, self._like(other)
        if swap:
            a, b = b, a
        return self.code.op(f"f{name}" if self.dtype.kind == "f" else name, self.dtype, a, b)

    def __add__(self, other: Any) -> Lane:
        return self._binary(other, "add")

    def __radd__(self, other: Any) -> Lane:
        return self._binary(other, "add", swap=True)

    def __sub__(self, other: Any) -> Lane:
        return self._binary(other, "sub")

    def __rsub__(self, other: Any) -> Lane:
        return self._binary(other, "sub", swap=True)

    def __mul__(self, other: Any) -> Lane:
        return self._binary(other, "mul")

    def __rmul__(self, other: Any) -> Lane:
        return self._binary(other, "mul", swap=True)

    def __truediv__(self, other: Any) -> Lane:
        return self._binary(other, "div")

    def __rtruediv__(self, other: Any) -> Lane:
        return self._binary(other, "div", swap=True)

    def __neg__(self) -> Lane:
        return self.code.op("fneg", self.dtype, self) if self.dtype.kind == "f" else 0 - self

    def __lt__(self, other: Any) -> Lane:
        return self.code.compare("lt", self, self._like(other))

    def __le__(self, other: Any) -> Lane:
        return self.code.compare("le", self, self._like(other))

    def __gt__(self, other: Any) -> Lane:
        return self.code.compare("gt", self, self._like(other))

    def __ge__(self, other: Any) -> Lane:
        return self.code.compare("ge", self, self._like(other))

    def __and__(self, other: Any) -> Lane:
        return self.code.op("and", self.dtype, self, self._like(other))

    def __or__(self, other: Any) -> Lane:
        return self.code.op("or", self.dtype, self, self._like(other))

    def __xor__(self, other: Any) -> Lane:
        return self.code.op("xor", self.dtype, self, self._like(other))

    def __lshift__(self, n: int) -> Lane:
        return self.code.op("shl", self.dtype, self, self._like(n))

    def __rshift__(self, n: int) -> Lane:
        return self.code.op("ashr" if self.dtype.kind == "i" else "lshr", self.dtype, self, self._like(n))
