"""Results in the memory of dying operands: in `a * x + b`, the sum goes where the product was.

NumPy does this for large arrays, and gains up to half the time: an operand that nobody but the interpreter's stack
refers to is about to be dropped. Our operators see a handle, and ask three things before its memory is written:

1. nobody else holds the handle, its array or the array's memory: their reference counts are those of a temporary;
2. the operator was called by the interpreter itself, not by compiled code that keeps the operand (a loop over an
   array of objects, a C extension), for such code may own the one reference that is counted. So the return addresses
   on the C stack must be those of an expression;
3. the result has the operand's shape and dtype.

Counts and addresses are not known beforehand: they are learnt from expressions whose operands are known, when the
first large operand is met. Where nothing can be learnt (no `backtrace` in the C library), and in interpreters in which
a count says nothing (CPython 3.14 borrows an operand's reference from the name that holds it: two names, one
reference), every result has memory of its own.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

import numpy as onp

from minnp.core.cpu import memory
from minnp.core.cpu.elementwise import KERNELS, elementwise, operation
from minnp.core.cpu.elementwise import LEAST as THREADED

DEPTH = 32  # return addresses looked at while learning; about 12 lead from here to the interpreter's expression
LEAST = 1 << 18  # bytes of an operand from which it pays to look
INTEGERS = 1 << 20  # the same for integers, which take less time than looking does
ENOUGH = 1 << 16  # elements that learning takes: float32 operands of LEAST bytes
PROVEN = {(3, 11), (3, 12), (3, 13)}  # CPython in which every operand on the stack counts as a reference
ATTEMPTS = 8  # to learn, where other threads or a debugger came between
INTO = {operator.add, operator.sub, operator.mul, operator.truediv, operator.and_, operator.or_, operator.xor}


def find_backtrace() -> Callable | None:
    """The C library's backtrace(addresses, n) -> n; None on systems without it."""
    try:
        walk = ctypes.PyDLL(None).backtrace
    except (AttributeError, OSError, TypeError):
        return None
    walk.argtypes, walk.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
    return walk


TEMPORARY = {
    "left": ("(t * u) + u", "(t * u) - u", "(t + u) * u", "(t * u) / u"),
    "left of a number": ("(t * u) + 2.0", "(t * u) - 2.0", "(t + u) * 2.0", "(t * u) / 2.0"),
    "right": ("u + (t * u)", "u - (t * u)", "u * (t + u)", "u / (t * u)"),
    "reflected": ("2.0 + (t * u)", "2.0 - (t * u)", "2.0 * (t + u)", "2.0 / (t * u)"),
}
KEPT = {
    "left": "[k := t * u, k + u]",
    "left of a number": "[k := t * u, k + 2.0]",
    "right": "[k := t * u, u + k]",
    "reflected": "[k := t * u, 2.0 + k]",
}
COMPILED = ("add(t * u, u)", "add(u, t * u)", "add(2.0, t * u)", "boxes + boxes", "2.0 * boxes")
OWNER = "sum((u, u), t * u)"  # which drops what it has added up, and reads it no more


class Mark:
    """What a temporary looks like from inside an operator: see `learn`. c/operators.h, if there, notes and reads it."""

    __slots__ = ("attempts", "callers", "counts", "depth", "known", "learner", "notes", "walk")

    def __init__(self) -> None:
        self.known = False  # whether learning was tried
        self.counts = dict.fromkeys(TEMPORARY, (-1, -1))  # references to the handle and to its array
        self.callers: frozenset[bytes] = frozenset()  # return addresses up to the interpreter's expression
        self.depth = DEPTH
        self.walk: Callable | None = None
        self.notes: list[tuple] | None = None  # while learning
        self.learner = 0  # the thread that learns, whose operators alone are noted
        self.attempts = 0

    def caller(self) -> bytes:
        """The return addresses from this call outwards."""
        stack = (ctypes.c_void_p * self.depth)()
        return bytes(stack) if self.walk is not None and self.walk(stack, len(stack)) else b""


mark = Mark()
_LEARNING = allocate_lock()


def binary(kernel: Callable, handle: type, reflected: bool) -> Callable:
    """A function (x, y, a, b) -> kernel(a, b) of large host arrays, or numbers, that x and y of class `handle` hold."""
    large = operation(kernel)
    uf = KERNELS.get(kernel)
    if kernel not in INTO or uf is None:

        def plain(x: Any, y: Any, a: Any, b: Any) -> Any:
            out = large(a, b)
            return kernel(a, b) if out is NotImplemented else out

        return plain
    kept = "fdFD" if kernel is operator.truediv else "fdFD?bBhHiIlLqQ"

    def call(x: Any, y: Any, a: Any, b: Any) -> Any:
        # Every name here is a reference: the counts are learnt from this very function.
        into = None
        left = mark.counts["left" if type(y) is handle else "left of a number"]
        right = mark.counts["reflected" if reflected else "right"]
        if mark.notes is not None:
            notes, counts = mark.notes, ((getrefcount(x), getrefcount(a)), (getrefcount(y), getrefcount(b)))
            if notes is not None and get_ident() == mark.learner:
                notes.append((*counts, mark.caller()))
        elif getrefcount(x) == left[0] and not reflected:
            if getrefcount(a) == left[1] and fits(x, a, b, kept) and mark.caller() in mark.callers:
                into = a
        elif getrefcount(y) == right[0]:
            if getrefcount(b) == right[1] and fits(y, b, a, kept) and mark.caller() in mark.callers:
                into = b
        elif not mark.known:
            learn(handle)
        if into is None:
            out = large(a, b)
            return kernel(a, b) if out is NotImplemented else out
        return written(uf, a, b, into)

    return call


def written(uf: onp.ufunc, a: Any, b: Any, into: onp.ndarray) -> onp.ndarray:
    """`into`, with uf(a, b) written there."""
    least = THREADED[uf]
    if into.nbytes < least or elementwise(uf, (a, b), into, least, uf.__name__) is NotImplemented:
        uf(a, b, out=into)
    return into


def fits(x: Any, a: onp.ndarray, other: Any, kept: str) -> bool:
    """Whether the result of `a` and `other` has a's shape and dtype, and a's memory is its own.

    kept   the dtypes (characters) of which two arrays have a result of their own dtype"""
    if type(a) is not onp.ndarray or a.nbytes < LEAST:
        return False
    kind, dtype = type(other), a.dtype
    if kind is onp.ndarray:
        if other.dtype != dtype or (other.shape != a.shape and onp.broadcast(a, other).shape != a.shape):
            return False
    elif not (kind is float or kind is int) or dtype.kind not in "fc" or not -1e9 < other < 1e9:
        return False  # NumPy 1.26 takes a wider dtype for numbers that do not fit
    if dtype.kind in "biu" and a.nbytes < INTEGERS:
        return False
    if dtype.char not in kept or not a.flags.writeable or not memory.pool.enabled or getweakrefcount(x):
        return False
    base = a.base  # None also where the memory is another library's
    return a.flags.owndata or (type(base) is memory.Lease and getrefcount(base) == 3)  # a's, `base`, the argument


# ------------------------------------------------------------------ learning
def learn(handle: type) -> None:
    """Find out what a temporary looks like; `handle` is the class of our arrays.

    Each expression runs often enough for the interpreter to specialize it, and from two kinds of callers, a function
    and a module: what the addresses have in common ends at the expression. Nothing is believed that also holds of an
    operand kept in a name, or of an operator that compiled code called."""
    if not _LEARNING.acquire(False):  # one thread at a time takes notes; its own operands are no occasion to learn
        return
    try:
        if mark.known or watched():  # a debugger that reads local names refers to the operands
            return
        mark.walk, mark.attempts = find_backtrace() if proven() else None, mark.attempts + 1
        if mark.walk is None:
            mark.known = True
            return
        mark.learner = get_ident()
        learnt = None if (found := _learn(handle)) is None or watched() else found
        if learnt is not None:
            mark.depth, mark.counts, mark.callers = learnt
        mark.known = learnt is not None or mark.attempts >= ATTEMPTS
    finally:
        _LEARNING.release()


def proven() -> bool:
    """Whether in this interpreter an operand that is held by a name has a reference more than a temporary."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()  # else counts are kept in two, or deferred
    return sys.implementation.name == "cpython" and sys.version_info[:2] in PROVEN and locked


def watched() -> bool:
    """Whether a debugger, a profiler or the like is called while this thread runs."""
    monitoring = getattr(sys, "monitoring", None)
    tools = monitoring is not None and any(monitoring.get_tool(i) is not None for i in range(6))
    return tools or sys.gettrace() is not None or sys.getprofile() is not None


class Disturbed(Exception):
    """An expression that was to be learnt from did not reach our operator: another thread has a policy or a trace."""


def _learn(handle: type) -> tuple[int, dict, frozenset] | None:
    """The depth, counts and callers of a temporary, which are none where nothing tells it from other operands; None
    where learning was disturbed."""
    nothing = DEPTH, dict.fromkeys(TEMPORARY, (-1, -1)), frozenset()
    try:
        return _from_expressions(handle) or nothing
    except Disturbed:
        return None


def _from_expressions(handle: type) -> tuple[int, dict, frozenset] | None:
    names = {"t": handle((ENOUGH,), "f4"), "u": handle((ENOUGH,), "f4"), "add": operator.add}
    names["t"][...] = names["u"][...] = 1
    names["boxes"] = onp.empty(1, object)
    names["boxes"][0] = names["t"] * 1
    callers, counts = set(), {}
    for side, texts in TEMPORARY.items():
        seen, at = set(), side in ("right", "reflected")
        for text in texts:
            function, module = eval(f"lambda t, u: {text}"), compile(text, "learn", "eval")
            for _ in range(40):
                first = note(lambda: function(names["t"], names["u"]))  # noqa: B023
                second = note(lambda: eval(module, names))  # noqa: B023
                seen |= {first[at], second[at]}
                callers.add(shared(first[2], second[2]))
        kept = note(lambda: eval(KEPT[side], names))[at]  # noqa: B023
        if len(seen) > 1 or kept in seen:
            return None
        (counts[side],) = seen
    compiled = [note(lambda: eval(text, names))[2] for text in COMPILED]  # noqa: B023
    length = len(min(callers, key=len))
    owner = {note(lambda: eval(OWNER, names)) for _ in range(3)}
    callers |= {caller[:length] for left, _, caller in owner if left == counts["left"]}
    if length == 0 or any(len(c) != length for c in callers) or any(c[:length] in callers for c in compiled):
        return None
    return length // ctypes.sizeof(ctypes.c_void_p), counts, frozenset(callers)


def note(f: Callable) -> tuple:
    """What the last operator in f() saw."""
    notes = mark.notes = []
    try:
        f()
    finally:
        mark.notes = None
    if not notes:
        raise Disturbed
    return notes[-1]


def shared(a: bytes, b: bytes) -> bytes:
    """The addresses with which both begin."""
    size, n = ctypes.sizeof(ctypes.c_void_p), 0
    while n < len(a) and a[n : n + size] == b[n : n + size]:
        n += size
    return a[:n]
