"""What each row is in LLVM instructions: one line a row.

An entry takes the arguments cast to the dtype the row computes in: the result's, or for comparisons the arguments' own
common dtype. `SLOW` rows call the C library for every element: worth it for small arrays only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from . import functions as f
from .code import BOOL, FLOAT64, Code, Lane, known

Emit = Callable[..., Lane]


# ------------------------------------------------------------------ those of more than one instruction
def extreme(larger: bool, nan_wins: bool) -> Emit:
    """The larger or smaller of two; of a NaN and a number, the NaN or the number."""

    def emit(a: Lane, b: Lane) -> Lane:
        keep = a >= b if larger else a <= b
        if a.dtype.kind == "f":
            asked = a if nan_wins else b
            keep = keep | a.code.compare("ne", asked, asked)
        return a.code.select(keep, a, b)

    return emit


maximum, minimum = extreme(True, True), extreme(False, True)
fmax, fmin = extreme(True, False), extreme(False, False)


def magnitude(x: Lane) -> Lane:
    if x.dtype.kind == "f":
        return f.absolute(x)
    return x.code.select(x < 0, -x, x) if x.dtype.kind == "i" else x


def sign(x: Lane) -> Lane:
    c = x.code
    zero = c.number(0, x.dtype)
    y = c.select(x > zero, c.number(1, x.dtype), c.select(x < zero, c.number(-1, x.dtype), zero))
    return c.select(c.compare("ne", x, x), x, y) if x.dtype.kind == "f" else y


def isinf(x: Lane) -> Lane:
    return x.code.compare("eq", f.absolute(x), x.code.number(onp.inf, x.dtype))


def isfinite(x: Lane) -> Lane:
    return x.code.compare("eq", x - x, x.code.number(0.0, x.dtype))


def signbit(x: Lane) -> Lane:
    return x.code.bits(x, f.format_of(x).bits) < 0


def power(a: Lane, b: Lane) -> Lane:
    return a.code.each("pow", a, b)


def comparison(how: str) -> Emit:
    return lambda a, b: a.code.compare(how, a, b)


def is_zero(x: Lane) -> Lane:
    return x.code.compare("eq", x, x.code.number(0, x.dtype))


def truth(x: Lane) -> Lane:
    return x.code.cast(x, BOOL)


def flip(x: Lane) -> Lane:
    return x ^ (True if x.dtype.kind == "b" else -1)


def rounded(name: str) -> Emit:
    return lambda x: x.code.intrinsic(name, x) if x.dtype.kind == "f" else x


def library(name: str) -> Emit:
    return lambda *args: args[0].code.each(name, *args)


# ------------------------------------------------------------------ the table
# in the dtype of the result
ARITHMETIC: dict[str, Emit] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "absolute": magnitude,
    "square": lambda x: x * x,
    "sign": sign,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": fmax,
    "fmin": fmin,
    "clip": lambda x, low, high: minimum(maximum(x, low), high),
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "invert": flip,
    "npx.relu": lambda x: maximum(x, x.code.number(0, x.dtype)),
}
# results are floating point
FLOATING: dict[str, Emit] = {
    "divide": lambda a, b: a / b,
    "npx.strong_divide": lambda g, d: g.code.select(is_zero(g), g.code.number(0, g.dtype), g / d),
    "npx.strong_multiply": lambda g, s: g.code.select(is_zero(g), g.code.number(0, g.dtype), g * s),
    "npx.strong_product": lambda a, b: a.code.select(is_zero(a), a, a.code.select(is_zero(b), b, a * b)),
    "reciprocal": lambda x: 1.0 / x,
    "sqrt": lambda x: x.code.intrinsic("sqrt", x),
    "fabs": f.absolute,
    "copysign": lambda a, b: a.code.intrinsic("copysign", a, b),
    "floor": rounded("floor"),
    "ceil": rounded("ceil"),
    "trunc": rounded("trunc"),
    "rint": rounded("rint"),
    "degrees": lambda x: x * (180.0 / onp.pi),
    "rad2deg": lambda x: x * (180.0 / onp.pi),
    "radians": lambda x: x * (onp.pi / 180.0),
    "deg2rad": lambda x: x * (onp.pi / 180.0),
    **{name: getattr(f, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
    **{name: getattr(f, name) for name in ("sin", "cos", "sinh", "cosh", "tanh")},
    "npx.sigmoid": f.sigmoid,
    "npx.silu": lambda x: x * f.sigmoid(x),
    "npx.softplus": lambda x: maximum(x, x.code.number(0.0, x.dtype)) + f.log1p(f.exp(-f.absolute(x))),
}
SLOW: dict[str, Emit] = {
    "power": power,
    "float_power": power,
    "tan": library("tan"),
    "arcsin": library("asin"),
    "arccos": library("acos"),
    "arctan": library("atan"),
    "arctan2": library("atan2"),
    "arcsinh": library("asinh"),
    "arccosh": library("acosh"),
    "arctanh": library("atanh"),
    "cbrt": library("cbrt"),
    "hypot": library("hypot"),
    "fmod": library("fmod"),
    "npx.erf": library("erf"),
}
# results are truth values
TRUTHS: dict[str, Emit] = {
    "equal": comparison("eq"),
    "not_equal": comparison("ne"),
    "less": comparison("lt"),
    "less_equal": comparison("le"),
    "greater": comparison("gt"),
    "greater_equal": comparison("ge"),
    "logical_and": lambda a, b: truth(a) & truth(b),
    "logical_or": lambda a, b: truth(a) | truth(b),
    "logical_xor": lambda a, b: truth(a) ^ truth(b),
    "logical_not": lambda x: flip(truth(x)),
}
CLASSES: dict[str, Emit] = {
    "isnan": lambda x: x.code.compare("ne", x, x),
    "isinf": isinf,
    "isfinite": isfinite,
    "signbit": signbit,
}


def is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, onp.bool_, onp.integer, onp.floating))


def beyond(x: Any, dtype: onp.dtype) -> bool:
    """Whether x is an integer that this integer dtype has not, which NumPy compares, and clips by, as it is."""
    if dtype.kind not in "iu" or not isinstance(x, (int, onp.integer)):
        return False
    return not onp.iinfo(dtype).min <= x <= onp.iinfo(dtype).max


def elementwise(name: str, args: Sequence[Any], params: dict, out: onp.dtype, small: bool) -> Callable | None:
    """How a row computes one element: (code, *arguments as Lanes or numbers) -> Lane; None if it is not known here.

    args   for each argument its dtype, or a number
    out    the result's dtype, as captured
    """
    kinds = [a for a in args if isinstance(a, onp.dtype)]
    if (
        not kinds
        or not all(map(known, (out, *kinds)))
        or not all(isinstance(a, onp.dtype) or is_number(a) for a in args)
        or any(beyond(a, kind) for a in args for kind in kinds)
    ):
        return None
    if name == "astype":
        from_float = kinds[0].kind == "f" and out.kind in "iu"  # out of range: undefined, and NumPy warns
        return None if from_float or set(params) != {"dtype"} else lambda code, x: code.cast(x, out)
    if params:
        return None
    if name in ("power", "float_power"):
        return whole_power(args, out, small, name == "power")
    if name == "where" and len(args) == 3:
        return lambda code, c, a, b: code.select(cast(code, c, BOOL), cast(code, a, out), cast(code, b, out))
    emit = ARITHMETIC.get(name)
    if emit is not None and (out.kind != "b" or "bitwise" in name or name == "invert"):
        return computing(emit, out)
    emit = FLOATING.get(name) or (SLOW.get(name) if small else None)
    if emit is not None and (out.kind == "f" or name in ("floor", "ceil", "trunc", "rint")):
        return computing(emit, out) if out.kind != "b" else None
    if out.kind != "b":
        return None
    if name in CLASSES:
        return computing(CLASSES[name], kinds[0]) if kinds[0].kind == "f" else None
    emit = TRUTHS.get(name)
    if emit is None:
        return None
    common = onp.result_type(*args)
    signs = {k.kind for k in (onp.dtype(type(a)) if is_number(a) else a for a in args)}
    if signs == {"i", "u"} or not known(common):
        return None  # NumPy compares a signed with an unsigned integer by value
    return computing(emit, common)


def cast(code: Code, x: Any, dtype: onp.dtype) -> Lane:
    return code.cast(x, dtype) if isinstance(x, Lane) else code.number(x, dtype)


def computing(emit: Emit, dtype: onp.dtype) -> Callable:
    return lambda code, *args: emit(*[cast(code, a, dtype) for a in args])


def whole_power(args: Sequence[Any], out: onp.dtype, small: bool, by_sqrt: bool) -> Callable | None:
    """Powers with a small whole or half exponent by multiplication; others by the C library. `by_sqrt`: that of 0.5
    is NumPy's sqrt, which differs for -0.0 and -inf."""
    exponent = args[1]
    if is_number(exponent) and exponent and -2 <= exponent <= 4 and 2 * exponent % 1 == 0:
        whole, half = divmod(abs(exponent), 1)
        if out.kind == "f" or (isinstance(exponent, int) and exponent > 0):

            def multiplied(code: Code, x: Any, _: Any) -> Lane:
                x = cast(code, x, out)
                if exponent == 0.5 and by_sqrt:
                    return code.intrinsic("sqrt", x)
                if half:  # whose powers of -0.0 and -inf are those of 0.0 and inf
                    x = code.select(
                        code.compare("eq", x, code.number(-onp.inf, out)), code.number(onp.inf, out), x + 0.0
                    )
                square = x * x if whole > 1 else x
                y = square if whole < 3 else square * (x if whole == 3 else square)
                if half:
                    root = code.intrinsic("sqrt", x)
                    y = y * root if whole else root
                return 1.0 / y if exponent < 0 else y

            return multiplied
    return computing(power, out) if small and out.kind == "f" else None


# ------------------------------------------------------------------ reductions
# name -> (how two elements combine, what they start from)
COMBINE: dict[str, tuple[Emit, Any]] = {
    "sum": (ARITHMETIC["add"], 0),
    "prod": (ARITHMETIC["multiply"], 1),
    "max": (maximum, "least"),
    "min": (minimum, "greatest"),
    "any": (lambda a, b: a | b, False),
    "all": (lambda a, b: a & b, True),
}


def start_of(name: str, dtype: onp.dtype) -> Any:
    start = COMBINE[name][1]
    if start not in ("least", "greatest"):
        return -0.0 if name == "sum" and dtype.kind == "f" else start
    if dtype.kind == "f":
        return -onp.inf if start == "least" else onp.inf
    if dtype.kind == "b":
        return start == "greatest"
    return getattr(onp.iinfo(dtype), "min" if start == "least" else "max")


def accumulator(name: str, dtype: onp.dtype, in_registers: bool) -> onp.dtype:
    """The dtype sums are kept in: float64 where that costs nothing."""
    return FLOAT64 if name == "sum" and dtype == onp.float32 and in_registers else dtype
