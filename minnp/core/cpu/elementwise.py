"""Large elementwise operations: a recycled result, computed in pieces on all cores.

A piece is a range of the flattened arrays, or of one axis where they are not flat; NumPy's own loop computes it, so a
result is NumPy's to the last bit. NumPy also decides every dtype: the operation is first tried on empty slices, which
raises what NumPy raises. Whatever is not plainly of this form is declined with NotImplemented.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as onp

from minnp.core.cpu import memory, products, threads

PIECE = (
    1 << 13
)  # NumPy's buffer, and every vector loop, starts anew at its multiples: pieces end there, as in one long run
LARGEST = 1 << 19
SEVERAL = 1 << 12  # elements from which several NumPy calls in the place of a slow one pay
SCALARS = (bool, int, float, complex, onp.generic)
size_of = attrgetter("size")

# Bytes of the largest operand from which this beats one NumPy call. Cutting it up, waking a thread and waiting for it
# costs 50-150 us, so the bound falls with the time an element takes: limited by memory (0.1-0.3 ns), vectorized
# (0.5 ns), the others.
CHEAP, MATH, HEAVY = 16 << 20, 2 << 20, 1 << 20
FAULTED = 32 << 20  # from which the C library asks the system for memory anew at each call
CLASSES = {
    CHEAP: "add subtract multiply divide negative positive absolute fabs square sqrt reciprocal maximum minimum fmax "
    "fmin sign rint floor ceil trunc equal not_equal less less_equal greater greater_equal logical_and logical_or "
    "logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert left_shift right_shift isnan isinf isfinite "
    "signbit copysign conjugate",
    MATH: "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh floor_divide hypot deg2rad rad2deg degrees radians",
    HEAVY: "sinh cosh arcsin arccos arctan arcsinh arccosh arctanh arctan2 power float_power cbrt logaddexp "
    "logaddexp2 remainder fmod nextafter spacing ldexp heaviside gcd lcm",
}
LEAST = {getattr(onp, name): least for least, names in CLASSES.items() for name in names.split()}

# Functions with a vector loop for neighbouring elements alone, where the other loop gives other last bits. Which of the
# two NumPy takes for arrays with gaps and for broadcasts depends on what its iterator copies to a buffer, and that is
# another thing for a piece than for the whole.
BY_STRIDE = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh arcsin arccos arctan arcsinh arccosh arctanh "
    "arctan2 power float_power cbrt"
)
BY_STRIDE = {getattr(onp, name) for name in BY_STRIDE.split()}


def bound(uf: onp.ufunc) -> int:
    """Bytes of the largest operand from which `uf` is done here, if all else fits."""
    return LEAST.get(uf, sys.maxsize)


def ufunc(uf: onp.ufunc, args: Sequence, kwargs: dict[str, Any]) -> Any:
    """uf(*args, **kwargs), or NotImplemented where plain NumPy does as well. Of the keywords, only `out=` is known."""
    least = LEAST.get(uf)
    if least is None:
        return NotImplemented
    out = None
    if kwargs:
        out = kwargs.get("out")
        if len(kwargs) > 1 or out is None:
            return NotImplemented
        if type(out) is tuple:
            out = out[0]
    if len(args) != uf.nin:
        if len(args) != uf.nin + 1 or out is not None:
            return NotImplemented
        *args, out = args
    return elementwise(beside_rows(uf) if uf in EXTREMA else uf, args, out, least, uf.__name__)


def elementwise(function: Callable, args: Sequence, out: onp.ndarray | None, least: int, name: str) -> Any:
    """function(*args), computed in pieces into `out` or a recycled array.

    `function(*pieces, out=piece)` must broadcast and resolve dtypes as a ufunc does; `name` is who warns."""
    lead = max((a for a in args if type(a) is onp.ndarray), key=size_of, default=None)
    if lead is None or lead.nbytes < least or (lead.nbytes < FAULTED and threads.alone()):
        return NotImplemented
    cut = cutting(lead, args if out is None else (*args, out))
    if cut is None or (out is not None and not writable(out, lead, args)):
        return NotImplemented
    axis, order = cut
    if axis is not None and function in BY_STRIDE and buffered(function, args, out):
        return NotImplemented
    if out is None:
        probe = function(*[a[:0] if spans(a, lead, 0) else a for a in args])
        if type(probe) is not onp.ndarray or probe.dtype.kind not in "biufc":
            return NotImplemented
        out = memory.empty(lead.shape, probe.dtype, order)
    else:
        function(*[a[:0] if spans(a, lead, 0) else a for a in args], out=out[:0])
    if threads.alone():
        function(*args, out=out)
        return out
    pieces = list(ranges(lead.size if axis is None else lead.shape[axis], lead.size))
    if axis is None:
        sliced = [flat(a, order) if type(a) is onp.ndarray and a.ndim else None for a in args]
        target, after = flat(out, order), ()
    else:
        sliced = [a if spans(a, lead, axis) else None for a in args]
        target, after = out, (slice(None),) * (lead.ndim - axis - 1)

    def work(i: int) -> None:
        here = (..., pieces[i], *after)  # counted from the last axis, as operands with fewer axes are aligned
        function(*[a if s is None else s[here] for a, s in zip(args, sliced)], out=target[here])

    threads.run(work, len(pieces), name)
    return out


def cutting(lead: onp.ndarray, operands: Sequence) -> tuple[int | None, str] | None:
    """Along which axis to cut (None: flattened) and the memory order of the result; None: this form is not ours."""
    same = c_order = f_order = True
    for a in operands:
        if type(a) is onp.ndarray:
            if a.ndim == 0:
                continue
            if a.dtype.hasobject:
                return None
            flags = a.flags
            c_order &= flags.c_contiguous
            f_order &= flags.f_contiguous
            same &= a.shape == lead.shape
        elif not isinstance(a, SCALARS):
            return None
    f_order &= 1 not in lead.shape  # NumPy gives an axis of one element another stride then
    if same and (c_order or f_order):
        return None if lead.dtype.hasobject else (None, "C" if c_order else "F")
    for a in operands:
        if type(a) is onp.ndarray and a.ndim and not (rowwise(a) and broadcasts(a, lead)):
            return None
    # few long rows are cut across, many are dealt out
    axis = 0 if lead.shape[0] >= 16 or lead.ndim == 1 else 1
    return axis, "C"


def buffered(function: Callable, args: Sequence, out: onp.ndarray | None) -> bool:
    """Whether NumPy may copy operands to its buffer: to convert or align them, or because they are float16."""
    arrays = [a for a in (*args, out) if type(a) is onp.ndarray and a.ndim]
    kinds = {a.dtype for a in arrays}
    if len(kinds) > 1 or not all(a.flags.aligned for a in arrays):
        return True
    kind = kinds.pop()
    result = function(*[onp.empty(0, kind) if type(a) is onp.ndarray and a.ndim else a for a in args]).dtype
    return kind.char not in "fdFD" or result != kind


def rowwise(a: onp.ndarray) -> bool:
    """Whether the axes lie in memory in C order, with gaps perhaps: then NumPy gives the result C order."""
    if a.flags.c_contiguous:
        return True
    last = None
    for d, s in zip(a.shape, a.strides):
        if d != 1:
            if s <= 0 or (last is not None and s > last):
                return False
            last = s
    return True


def broadcasts(a: onp.ndarray, lead: onp.ndarray) -> bool:
    missing = lead.ndim - a.ndim
    return missing >= 0 and all(d in (1, n) for d, n in zip(a.shape, lead.shape[missing:]))


def spans(a: Any, lead: onp.ndarray, axis: int) -> bool:
    """Whether operand `a`, aligned by its last axis, has all of the lead's `axis`, and is cut with it; others are
    passed whole."""
    if type(a) is not onp.ndarray:
        return False
    own = axis - (lead.ndim - a.ndim)
    return own >= 0 and a.shape[own] == lead.shape[axis]


def writable(out: Any, lead: onp.ndarray, args: Sequence) -> bool:
    """Whether pieces of `out` may be written while others are read: it overlaps no operand but itself."""
    if type(out) is not onp.ndarray or out.shape != lead.shape or not out.flags.writeable:
        return False
    for a in args:
        if type(a) is onp.ndarray and a is not out and onp.may_share_memory(a, out) and not alias(a, out):
            return False
    return True


def alias(a: onp.ndarray, b: onp.ndarray) -> bool:
    """Whether the two are the same elements of the same memory."""
    return (
        a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
        and a.__array_interface__["data"] == b.__array_interface__["data"]
    )


def flat(a: onp.ndarray, order: str) -> onp.ndarray:
    """A view [size] of a contiguous array in memory order."""
    if a.ndim == 1:
        return a
    return a.reshape(-1) if order == "C" else a.T.reshape(-1)


def ranges(length: int, size: int) -> Iterator[slice]:
    """Slices that cut `length` positions, `size` elements in all, into pieces."""
    step = min(max(size // (4 * threads.team.size), PIECE), LARGEST)
    step = -(-step // PIECE) * PIECE
    if length != size:  # rows: as many as make a piece, unless a row is cut itself
        step = max(step * length // size, 1)
    return (slice(i, min(i + step, length)) for i in range(0, length, step))


# ------------------------------------------------------------------ by the number of operands
def unary(uf: onp.ufunc) -> Callable[[onp.ndarray], Any]:
    """A function (a) -> uf(a), or NotImplemented where NumPy does as well."""
    least = LEAST.get(uf)
    if least is None or uf.nin != 1:
        return lambda a: NotImplemented
    return lambda a: elementwise(uf, (a,), None, least, uf.__name__)


def binary(uf: onp.ufunc) -> Callable[[onp.ndarray, Any], Any]:
    """A function (a, b) -> uf(a, b), or NotImplemented where NumPy does as well."""
    least = LEAST.get(uf)
    if least is None or uf.nin != 2:
        return lambda a, b: NotImplemented
    kernel = beside_rows(uf) if uf in EXTREMA else uf
    return lambda a, b: elementwise(kernel, (a, b), None, least, uf.__name__)


SHORT, LONG = 32, 2048  # columns of rows that NumPy's loops are too short for, and of those they become
MANY = 1 << 15  # elements
SIDE_BY_SIDE = (onp.add, onp.subtract, onp.multiply, onp.divide, onp.maximum, onp.minimum)


def short_rows(uf: onp.ufunc, a: Any, b: Any) -> Any:
    """uf of rows [..., m, n], n small, and of one row for all m of them ([n] or [..., 1, n]), many rows side by side;
    NotImplemented for anything else."""
    if not (type(a) is type(b) is onp.ndarray) or a.size + b.size < MANY or uf not in SIDE_BY_SIDE:
        return NotImplemented
    if not (a.ndim and b.ndim) or a.dtype is not b.dtype or a.dtype.char not in "fd":
        return NotImplemented
    if a.shape[-1] != b.shape[-1] or not 1 < a.shape[-1] <= SHORT:
        return NotImplemented
    m = next((x.shape[-2] for x in (a, b) if x.ndim > 1 and x.shape[-2] > 1), 1)
    n = a.shape[-1]
    times = next((t for t in range(LONG // n, 1, -1) if m % t == 0), 1)
    parts = []
    for x in (a, b):
        if x.ndim == 1 or x.shape[-2] == 1:
            parts.append(onp.tile(x, times))
        elif x.shape[-2] == m and x.flags.c_contiguous:
            parts.append(x.reshape(*x.shape[:-2], m // times, times * n))
    if times == 1 or len(parts) < 2 or parts[0].shape[-2:] == parts[1].shape[-2:]:
        return NotImplemented
    shape = onp.broadcast_shapes(a.shape, b.shape)
    out = memory.empty(shape, a.dtype)
    uf(*parts, out=out.reshape(*shape[:-2], m // times, times * n))
    return out


EXTREMA, ROW = (onp.maximum, onp.minimum, onp.fmax, onp.fmin), 512


def beside_rows(uf: onp.ufunc) -> Callable:
    """An extremum as a function (a, b, out=None), which gives a number b the form of a row: NumPy's loop over an array
    and a number compares one element at a time, and takes 2 to 4 times as long."""

    def call(a: Any, b: Any, out: onp.ndarray | None = None) -> Any:
        plain = type(a) is onp.ndarray and a.size >= 4 * ROW and a.dtype.char in "fd" and a.flags.c_contiguous
        if not plain or type(b) not in (int, float) or not -1e9 < b < 1e9:
            return uf(a, b, out=out)
        if out is None:
            out = memory.empty(a.shape, a.dtype)
        elif out.dtype != a.dtype or not out.flags.c_contiguous:
            return uf(a, b, out=out)
        rows, flat, target = a.size // ROW * ROW, a.reshape(-1), out.reshape(-1)
        uf(flat[:rows].reshape(-1, ROW), onp.full(ROW, b, a.dtype), out=target[:rows].reshape(-1, ROW))
        if rows < a.size:
            uf(flat[rows:], b, out=target[rows:])
        return out

    return call


larger, larger_small = binary(onp.maximum), beside_rows(onp.maximum)


def rectified(a: Any) -> Any:
    """onp.maximum(a, 0)."""
    out = larger(a, 0) if type(a) is onp.ndarray else NotImplemented
    return larger_small(a, 0) if out is NotImplemented else out


# ------------------------------------------------------------------ functions that act element by element
def astype(a: Any, dtype: Any, *other: Any, **others: Any) -> Any:
    """a.astype(dtype)."""
    if other or others or type(a) is not onp.ndarray:
        return NotImplemented
    dtype = onp.dtype(dtype)
    if dtype.kind not in "biufc" or a.dtype.kind not in "biufc":
        return NotImplemented

    def convert(x: onp.ndarray, out: onp.ndarray | None = None) -> onp.ndarray:
        if out is None:
            return x.astype(dtype)
        onp.copyto(out, x, casting="unsafe")
        return out

    return elementwise(convert, (a,), None, CHEAP, "cast")


def copy(a: Any, *other: Any, **others: Any) -> Any:
    """onp.copy(a), in the memory order of `a`."""
    return NotImplemented if other or others or type(a) is not onp.ndarray else astype(a, a.dtype)


def copy_method(a: Any, *other: Any, **others: Any) -> Any:
    """a.copy(), which is in C order."""
    return copy(a, *other, **others) if a.flags.c_contiguous else NotImplemented


def clip(a: Any, least: Any = None, most: Any = None, *other: Any, **others: Any) -> Any:
    """onp.clip(a, least, most) of floating point numbers with both bounds."""
    if other or others or type(a) is not onp.ndarray or a.dtype.kind != "f" or least is None or most is None:
        return NotImplemented
    return elementwise(clip_kernel, (a, least, most), None, CHEAP, "clip")


clip_kernel = (onp._core if onp.lib.NumpyVersion(onp.__version__) >= "2.0.0" else onp.core).umath.clip


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal", "neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute",
}  # fmt: skip
KERNELS = {getattr(operator, op): getattr(onp, name) for op, name in OPERATORS.items()} | {abs: onp.absolute}
IN_PLACE = {getattr(operator, f"i{op.strip('_')}"): getattr(onp, name) for op, name in list(OPERATORS.items())[:11]}


def recycled(uf: onp.ufunc) -> Callable[[onp.ndarray], Any]:
    """unary(uf), whose result lies on a recycled block also where one NumPy call does as well. NumPy squares a dying
    difference in its memory; beside it, a second array at the end of the heap went back to the system each time."""
    large = unary(uf)

    def call(a: onp.ndarray) -> Any:
        out = large(a)
        if out is NotImplemented and a.nbytes >= memory.LEAST and a.dtype.char in "fd" and a.flags.c_contiguous:
            out = uf(a, out=memory.empty(a.shape, a.dtype))
        return out

    return call


SHORT_POWERS = {2: recycled(onp.square), 0.5: recycled(onp.sqrt), -1: unary(onp.reciprocal), 1: unary(onp.positive)}


def operation(kernel: Callable) -> Callable:
    """What `unary` and `binary` return, for one of Python's operators."""
    if kernel is operator.pow:
        return power
    uf = KERNELS.get(kernel)
    if uf is None:
        return products.FUNCTIONS.get(kernel, lambda *operands: NotImplemented)
    return unary(uf) if uf.nin == 1 else binary(uf)


def power(a: Any, b: Any) -> Any:
    """a ** b, with the operator's short cuts: a ** 2 is a square."""
    if type(b) in (int, float):
        if a.dtype.kind not in "fc":
            return NotImplemented
        short = SHORT_POWERS.get(b)
        if short is not None:
            return short(a)
    return full_power(a, b)


full_power = binary(onp.power)


def inplace(uf: onp.ufunc) -> Callable:
    return lambda a, b: ufunc(uf, (a, b), {"out": a})


FUNCTIONS = {
    **{kernel: operation(kernel) for kernel in (*KERNELS, operator.pow)},
    **{kernel: inplace(uf) for kernel, uf in IN_PLACE.items()},
    onp.ndarray.astype: astype,
    onp.copy: copy,
    onp.clip: clip,
    onp.ndarray.copy: copy_method,
    onp.ndarray.clip: clip,
}


# ------------------------------------------------------------------ for traced code, with other last bits
def logaddexp(a: Any, b: Any) -> Any:
    """np.logaddexp by NumPy's vectorised exp and log1p: max(a, b) + log1p(exp(-|a - b|)). Its own loop calls the C
    library's for every element, which takes ten times as long; the last bits differ."""
    large = max((x for x in (a, b) if type(x) is onp.ndarray), key=lambda x: x.size, default=onp.float64(0))
    if large.size < SEVERAL or onp.result_type(a, b).char not in "fd":
        return onp.logaddexp(a, b)
    with onp.errstate(all="ignore"):
        apart = onp.fmax(onp.abs(onp.subtract(a, b)), 0)  # inf - inf is NaN, where they are equal
        return onp.maximum(a, b) + onp.log1p(onp.exp(-apart))
