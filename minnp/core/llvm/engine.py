"""LLVM behind an optional library: IR text to machine code, machine code to a function Python can call.

llvmlite (the extra "compiler") translates. The result is an ordinary built-in function of CPython that finds the data
of the arrays it is given without a line of Python in between. Where llvmlite is
missing, or Python or NumPy are laid out otherwise than this file knows, `available()` is False and nothing is compiled.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import sysconfig
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as onp

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from ..compiled import team
from ..cpu import threads

# Offsets in bytes inside PyArrayObject (numpy/ndarraytypes.h), and of a dtype's letters inside PyArray_Descr; checked
# against live arrays before they are used.
DATA, AXES, SHAPE, STRIDES, DTYPE, FLAGS = 16, 24, 32, 40, 56, 64
LETTERS = 24  # kind, char and byteorder, of one byte each
ORDERED = 0x0001 | 0x0100  # C order, aligned
BUILT_IN = "ptr @kernel(ptr %self, ptr %args, i64 %count)"
RANGES = "void @kernel(ptr %args, i64 %begin, i64 %end, i64 %part)"
METHOD = "@PPiP"  # PyMethodDef: name, address, flags, documentation
FASTCALL = 0x0080  # METH_FASTCALL: (self, array of arguments, their number)


class Machine:
    """The processor: its vector width, and a compiler for it."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        if llvm.llvm_version_info < (18,):
            raise ImportError("llvmlite older than 0.45")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        # llvmlite has a lock that each call of LLVM holds. In the child of a process that forks meanwhile nobody would
        # ever release it.
        lock = getattr(getattr(llvm.ffi, "lib", None), "_lock", None)
        if hasattr(os, "register_at_fork") and hasattr(lock, "__enter__") and hasattr(lock, "__exit__"):
            os.register_at_fork(before=lock.__enter__, after_in_parent=lock.__exit__, after_in_child=lock.__exit__)
        features = llvm.get_host_cpu_features()
        self.target = llvm.Target.from_default_triple()
        self.cpu, self.features = llvm.get_host_cpu_name(), features.flatten()
        self.vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16

    def assemble(self, text: str, optimise: int = 0, hurried: bool = False) -> Any:
        """The machine code of a module: it has the addresses, and lives as long as this object. `optimise`: the IR is
        plain scalar code, of which LLVM makes registers (1) and vectors (2). `hurried`: it only makes registers."""
        llvm = self.llvm
        module = llvm.parse_assembly(text)
        try:
            module.verify()
        except RuntimeError as error:
            raise Refused(str(error)) from None
        if optimise:
            target = self.target.create_target_machine(cpu=self.cpu, features=self.features, opt=optimise)
            options = llvm.create_pipeline_tuning_options(speed_level=optimise)  # 3: 1.7 times as long, for little
            options.loop_vectorization = options.slp_vectorization = optimise > 1
            options.loop_unrolling = False  # a fourth of the time to compile, for nothing in benchmarks/loops.py
            builder = llvm.create_pass_builder(target, options)
            passes = llvm.create_new_module_pass_manager() if hurried else builder.getModulePassManager()
            if hurried:
                # Two fifths of the time to compile a Kalman filter's gradient, which then takes 1.25 times as long.
                passes.add_sroa_pass()
                passes.add_instruction_combine_pass()
                passes.add_simplify_cfg_pass()
            passes.run(module, builder)
            engine = llvm.create_mcjit_compiler(module, target)
            engine.finalize_object()
            return engine
        # The IR is the vector code that is wanted: higher levels take 2.3 times as long for 7 % (chain14, loss13).
        target = self.target.create_target_machine(cpu=self.cpu, features=self.features, opt=0)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options())
        passes.run(module, builder)
        engine = llvm.create_mcjit_compiler(module, target)
        engine.finalize_object()
        return engine


@cache
def machine() -> Machine | None:
    """The compiler, or None where there is none."""
    if os.environ.get("MINNP_COMPILER", "") == "none" or not _layout_is_known():
        return None
    try:
        return Machine()
    except ImportError:
        return None


def available() -> bool:
    """Whether jit can compile to machine code here."""
    return machine() is not None


def _layout_is_known() -> bool:
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or sys.byteorder != "little":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "getobjects"):
        return False
    a = onp.zeros((3, 4))
    for view, ordered in ((a, True), (a.T, False), (a[1:, 2:], False)):
        data = ctypes.c_size_t.from_address(id(view) + DATA).value
        flags = ctypes.c_int.from_address(id(view) + FLAGS).value
        shape, strides = (
            (ctypes.c_ssize_t * 2).from_address(ctypes.c_size_t.from_address(id(view) + at).value)
            for at in (SHAPE, STRIDES)
        )
        dtype = ctypes.c_size_t.from_address(id(view) + DTYPE).value
        if ctypes.c_int.from_address(id(view) + AXES).value != 2 or (*shape, *strides) != (*view.shape, *view.strides):
            return False
        if data != view.ctypes.data or (flags & ORDERED == ORDERED) != ordered or dtype != id(view.dtype):
            return False
    return all(ctypes.string_at(id(d) + LETTERS, 3) == letters(d) for d in map(onp.dtype, ("f8", "i4", "u1", "?")))


def letters(dtype: onp.dtype) -> bytes:
    """What a dtype of numbers has at LETTERS."""
    return (dtype.kind + dtype.char + dtype.byteorder).encode()


def symbol(name: str) -> int:
    """The address of a function of the Python API."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


class Text(NamedTuple):
    """One function as IR: its body after `entry:`, and what it declares and defines besides, by name.

    ranges   whether it computes a range at a time, and needs no interpreter: Ranges, else a built-in function
    room     bytes of memory that it calls @kernel.room
    """

    body: str
    others: dict[str, str]
    ranges: bool = False
    room: int = 0


class Ranges:
    """Machine code (arrays, begin, end, part), run for every range of `step` of `length` on so many threads."""

    def __init__(self, code: Any, name: str) -> None:
        self.code, self.address = code, code.get_function_address(name)
        self.run = partial(team.run, self.address) if team is not None else self.in_python

    def in_python(self, step: int, length: int, count: int, *arrays: Any) -> None:
        """The same where the C part is missing; ctypes, too, lets go of the interpreter."""
        number = ctypes.c_int64
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, number, number, number)(self.address)
        given = (ctypes.py_object * len(arrays))(*arrays)
        work = lambda i: call(ctypes.addressof(given), i * step, min(i * step + step, length), i)
        if count == 1:
            for i in range(-(-length // step)):
                work(i)
        else:
            threads.collect(work, -(-length // step))


_BUILT: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # by their text, as long as they are used


def build(texts: Sequence[Text]) -> list[Callable]:
    """Functions (ptr self, ptr arguments, i64 count) -> ptr, as built-in functions of Python, and Ranges; equal ones
    are one."""
    known = {t.body: _BUILT.get(t.body) for t in texts}
    missing = {t.body: t for t in texts if known[t.body] is None}
    if missing:
        known.update(zip(missing, assemble(list(missing.values()))))
        _BUILT.update({body: known[body] for body in missing})
    return [known[t.body] for t in texts]


BUG = "minnp's compiler failed, please report it"


class Refused(RuntimeError):
    """LLVM finds a function broken that we wrote: compiling it would end the process."""


class NoRoom(MemoryError):
    """LLVM would need more memory than there is; where it gets none, it ends the process."""


EACH, BESIDES = 64, 48 << 20  # bytes that LLVM takes for a character of IR (17 to 55 were seen), and in any case


def room() -> float:
    """Bytes that this process may still take, as far as the system tells."""
    found = [float("inf")]
    try:
        with open("/proc/meminfo") as lines:
            found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
        with open("/proc/self/statm") as line:
            size = int(line.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [limit - size] if limit != resource.RLIM_INFINITY else []
        with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as now:
            found.append(float(most.read().replace("max", "inf")) - float(now.read()))
    except (OSError, AttributeError, ValueError):  # another system, or no such group
        pass
    return min(found)


def assemble(texts: Sequence[Text]) -> list[Callable]:
    """The functions, compiled together. Raises NoRoom."""
    found = machine()
    assert found is not None
    length = sum(len(t.body) + sum(map(len, t.others.values())) for t in texts)
    if (needed := EACH * length + BESIDES) > (here := room()):
        raise NoRoom(f"machine code of {length} characters of IR takes up to {needed} bytes, and there are {here:.0f}")
    others: dict[str, str] = {}
    for text in texts:
        others |= text.others
    functions = [
        f"@kernel.room = internal global [{text.room} x i8] zeroinitializer, align 64\n"
        f"define {RANGES if text.ranges else BUILT_IN} {{\nentry:\n{text.body}}}\n".replace("@kernel", f"@kernel{i}")
        for i, text in enumerate(texts)
    ]
    code = found.assemble("\n".join([*others.values(), *functions]))
    built: list[Any] = []
    for i, text in enumerate(texts):
        if text.ranges:
            built.append(Ranges(code, f"kernel{i}"))
            continue
        built.append(built_in(b"kernel", code.get_function_address(f"kernel{i}"), code))
    return built


def built_in(name: bytes, address: int, code: Any) -> Callable:
    """The function of Python's at an address of this machine code.

    Its PyMethodDef lies in an array of NumPy's, which the garbage collector leaves alone: it would empty a structure of
    ctypes before the function goes, which asks there for its flags.
    """
    called = ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p).value
    method = onp.frombuffer(struct.pack(METHOD, called, address, FASTCALL, 0), onp.uint8).copy()
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return new(method.ctypes.data, (code, name, method), None)
