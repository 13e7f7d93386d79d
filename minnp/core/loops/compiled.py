"""Machine code for typed programs, and how it is called."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..graph.effects import Diverged
from ..llvm import engine
from ..llvm.engine import BUILT_IN, FASTCALL, _Method
from .ir import KINDS, Alloc, Check, Program, statements
from .lowering import FIRST, Layout, Lowering


class Again(Diverged):
    """Python has to run this loop: compiled code cannot go on (an integer beyond 64 bits, lengths that differ)."""


class Code:
    """A program, compiled for arrays that lie in memory as they are met."""

    def __init__(self, program: Program, failed: Callable) -> None:
        self.program, self.layout, self.failed = program, Layout(program), failed
        self.pack, self.back = struct.Struct(self.layout.format), struct.Struct(self.layout.back)
        self.built: dict[tuple, tuple] = {}
        self.arrays = [k for k, i in enumerate(program.inputs) if i.ndim is not None]
        self.numbers = [k for k, i in enumerate(program.inputs) if i.ndim is None]
        self.written = program.written
        self.complex = [program.inputs[k].kind.letter == "c" for k in self.numbers]
        checks = [s for s in statements(program.body) if type(s) is Check]
        self.again = any(c.error == "again" for c in checks) or any(type(s) is Alloc for s in statements(program.body))
        self.makers = [
            [
                (k.dtype.type if not k.python else {"i": int, "f": float, "b": bool, "c": complex}[k.letter])
                for k in kinds
            ]
            for _, kinds, _, _ in program.outputs
        ]

    def run(self, values: Sequence[Any], donate: Sequence[bool] = ()) -> tuple:
        """(the arrays that are written, the numbers that come out), as `program.written` and `program.outputs` have
        them; a number that is not bound is None. Raises Again, and what the loop raises, with `partial` the arrays."""
        arrays = [values[k] for k in self.arrays]
        results = []
        for at, k in enumerate(self.arrays):
            if k in self.written:
                a = arrays[at]
                if not (donate and donate[self.written.index(k)] and not self.again):
                    a = arrays[at] = onp.array(a, order="K")
                results.append(a)
        key = tuple([a.flags.c_contiguous for a in arrays])
        found = self.built.get(key)
        if found is None:
            found = self.built[key] = self.build(key)
        function, errors = found
        slots = onp.empty(self.layout.size, onp.int64)
        slots[0] = 0
        numbers = [values[k] for k in self.numbers]
        if any(self.complex):
            numbers = [p for x, c in zip(numbers, self.complex) for p in ((x.real, x.imag) if c else (x,))]
        self.pack.pack_into(slots, 8 * FIRST, *numbers)
        function(slots, *arrays)
        status = int(slots[0])
        if status:
            error, operands = errors[status]
            if error == "again":
                raise Again
            failure = self.failed(
                error,
                [
                    slots[1 + k : 2 + k].view("f8" if e.kind.letter == "f" else "i8")[0].item()
                    for k, e in enumerate(operands)
                ],
            )
            if failure is None:
                raise Again
            failure.partial = results
            raise failure
        return (*results, *self.numbers_of(slots))

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
            make = makers[kinds.index(KINDS[kind])] if tag and (bound or not flag) else makers[0]
            out.append(make(x))
            flags += [bool(bound)] if flag else []
            tags += [str(make)] if tag else []
        return [*out, *flags, *tags]

    def build(self, contiguous: tuple) -> tuple:
        """(the built-in function, its errors)."""
        lowering = Lowering(self.program, list(contiguous))
        entry, others = lowering.text()
        text = f"{others}\ndefine {BUILT_IN} {{\n{entry}}}\n"
        machine = engine.machine()
        assert machine is not None
        code = machine.assemble(text, optimise=True)
        method = _Method(b"loop", code.get_function_address("kernel"), FASTCALL, None)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.argtypes, new.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
        return new(ctypes.addressof(method), (code, method), None), lowering.errors
