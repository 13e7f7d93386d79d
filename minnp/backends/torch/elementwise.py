"""Kernels of NumPy's ufuncs, and of the rows that act like one.

Where torch's function differs from NumPy's at an edge (the sign of a zero, a NaN, a zero divisor, a shift too far), the
kernel says NumPy's answer; where that would cost more than NumPy itself, the differential test keeps it off the list.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from .dtypes import SIGNED, WIDER, cast, known, refuse, scalar, words
from .registry import ufunc_kernel

Tensor = torch.Tensor
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # uint8 is native in torch
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, *UNSIGNED)


class Op:
    """A torch function, with the exceptions that some dtypes need.

    boolean, integer, complexes    what runs instead for those dtypes
    unsigned    how uint16, 32 and 64, for which torch has few kernels, are computed: "bits" (as signed integers of the
                same width: the bits of the result are the same), "wide" (in a wider signed type), "order" (as signed
                integers in the same order), "same" (the result is the argument)
    """

    def __init__(
        self,
        base: Callable,
        unsigned: str = "",
        boolean: Callable | None = None,
        integer: Callable | None = None,
        complexes: Callable | None = None,
    ) -> None:
        self.base, self.unsigned, self.boolean, self.integer, self.complexes = (
            base,
            unsigned,
            boolean,
            integer,
            complexes,
        )

    def for_dtype(self, dtype: torch.dtype) -> Callable:
        if dtype is torch.bool:
            return self.boolean or self.base
        if dtype.is_complex:
            return self.complexes or self.base
        if dtype not in INTEGERS:
            return self.base
        base = self.integer or self.base
        if dtype not in UNSIGNED or not self.unsigned:
            return base
        signed = SIGNED[dtype]
        if self.unsigned == "same":
            return same
        if self.unsigned == "bits":
            return lambda *xs: _as_type(base(*[x.view(signed) for x in xs]), signed, dtype)
        if self.unsigned == "order":
            top = torch.iinfo(signed).min  # flipping the top bit maps unsigned order to signed order
            back = lambda y: (y ^ top).view(dtype) if y.dtype is signed else y
            return lambda *xs: back(base(*[x.view(signed) ^ top for x in xs]))
        if dtype is torch.uint64:
            return lambda *xs: refuse("torch does not compute this in uint64")
        return lambda *xs: base(*[x.to(WIDER[dtype]) for x in xs])


def _as_type(y: Tensor, signed: torch.dtype, dtype: torch.dtype) -> Tensor:
    return y.view(dtype) if y.dtype is signed else y


def same(x: Tensor) -> Tensor:
    """A value is immutable: the result may be the argument itself."""
    return x


def _by_parts(op: Callable) -> Callable:
    """A complex sum by real and imaginary parts: torch's own multiplies by 1 + 0j, which makes NaN of infinities."""
    return lambda *xs: torch.view_as_complex(op(*[torch.view_as_real(x) for x in xs]))


def _complex_reciprocal(x: Tensor) -> Tensor:
    """Smith's quotient, as NumPy's: what it makes of infinities and zeros is its own."""
    a, b = x.real, x.imag
    wide = torch.abs(b) <= torch.abs(a)
    r = torch.where(wide, b / a, a / b)
    d = torch.where(wide, a + b * r, a * r + b)
    return torch.complex(torch.where(wide, 1 / d, r / d), torch.where(wide, -r / d, -1 / d))


def _complex_log1p(x: Tensor) -> Tensor:
    a, b = x.real + 1, x.imag
    return torch.complex(torch.log(_hypot(a, b)), torch.atan2(b, a))


# ------------------------------------------------------------------ integer division: 0 where the divisor is 0
def _int_floor_divide(x: Tensor, y: Tensor) -> Tensor:
    zero = y == 0
    # -1 is left out too: the most negative integer over -1 traps in the CPU's division; its negation wraps as NumPy's
    minus = y == -1 if y.dtype.is_signed else zero
    safe = torch.where(zero | minus, 1, y)
    q = torch.div(x, safe, rounding_mode="floor")
    if y.dtype.is_signed:
        q = torch.where(minus, -x, q)
    return torch.where(zero, 0, q)


def _int_remainder(x: Tensor, y: Tensor) -> Tensor:
    zero = (y == 0) | (y == -1) if y.dtype.is_signed else y == 0
    return torch.where(zero, 0, torch.remainder(x, torch.where(zero, 1, y)))


_int_floor_divide.by_number = lambda x, y: torch.div(x, y, rounding_mode="floor")
_int_remainder.by_number = torch.remainder


def _int_fmod(x: Tensor, y: Tensor) -> Tensor:
    zero = (y == 0) | (y == -1) if y.dtype.is_signed else y == 0
    return torch.where(zero, 0, torch.fmod(x, torch.where(zero, 1, y)))


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    """The exact remainder. torch's is NaN where x / y overflows, so first take x modulo large multiples of y."""
    if x.dtype is torch.float16:
        return torch.fmod(x.float(), y.float()).half()
    for doublings in (2, 1) if x.dtype is torch.float64 else (3, 2, 1):
        multiple = y
        for _ in range(doublings):
            multiple = multiple * (2.0**700 if x.dtype is torch.float64 else 2.0**80)
        x = torch.fmod(x, multiple)
    return torch.fmod(x, y)


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    """x - floor(x / y) * y with the sign of y, zeros included."""
    m = _fmod(x, y)
    m = torch.where((m != 0) & ((m < 0) != (y < 0)), m + y, m)
    return torch.where(m == 0, torch.copysign(m, y), m)


# by a number from 1 on, where x / y does not overflow
_fmod.by_number = torch.fmod
_remainder.by_number = lambda x, y: torch.remainder(x, y).abs_()  # no zero is negative


def _floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """CPython's and NumPy's algorithm: exact where x / y would round up to an integer."""
    if x.dtype is torch.float16:
        return _floor_divide(x.float(), y.float()).half()
    m = _fmod(x, y)
    q = (x - m) / y
    q = torch.where((m != 0) & ((y < 0) != (m < 0)), q - 1, q)
    down = torch.floor(q)
    down = torch.where(q - down > 0.5, down + 1, down)
    down = torch.where(q == 0, torch.copysign(torch.zeros_like(q), x / y), down)
    return torch.where(y == 0, x / y, down)


def _floor_divide_by(x: Tensor, y: float) -> Tensor:
    """torch's algorithm is the one above, but for a GPU's, which multiplies by 1 / y."""
    return torch.floor_divide(x, y) if x.is_cpu else _floor_divide(x, scalar(y, x.dtype, x.device))


_floor_divide.by_number = _floor_divide_by


def _int_power(x: Tensor, y: Tensor) -> Tensor:
    if y.dtype.is_signed and known((y < 0).any()):
        refuse("integers to negative integer powers")  # NumPy raises ValueError
    return torch.pow(x, y)


_int_power.by_number = torch.pow


def _complex_power(x: Tensor, y: Tensor) -> Tensor:
    return refuse("complex numbers to powers other than 2 and 3")


def _complex_power_by(x: Tensor, n: float) -> Tensor:
    """NumPy's products; of zeros of any signs it makes one of its own."""
    y = x * x if n == 2 else x * (x * x) if n == 3 else _complex_power(x, n)
    return y.masked_fill_(x == 0, 0)


_complex_power.by_number = _complex_power_by


def _gcd(x: Tensor, y: Tensor) -> Tensor:
    return torch.abs(torch.gcd(x, y))


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    g = _gcd(x, y)
    return torch.abs(torch.div(x, torch.where(g == 0, 1, g), rounding_mode="trunc")) * torch.abs(y)


# ------------------------------------------------------------------ floats
def _sign(x: Tensor) -> Tensor:
    return torch.where(torch.isnan(x), x, torch.sign(x))


def _cbrt(x: Tensor) -> Tensor:
    """A first guess by power, and one Newton step in twice the precision where there is one."""
    w = x.double() if x.dtype is not torch.float64 else x
    a = torch.abs(w)
    small = a < 1e-290  # the cube below would lose digits: scaled up by 2**300, whose root is 2**100
    scaled = torch.where(small, a * 2.0**300, a)
    r = torch.pow(scaled, 1 / 3)
    r = r - (r * r * r - scaled) / (3 * r * r)
    r = torch.where(torch.isfinite(a) & (a != 0), torch.where(small, r * 2.0**-100, r), a)
    return torch.copysign(r, w).to(x.dtype)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
    whole = torch.trunc(x)
    part = torch.where(torch.isinf(x), torch.zeros_like(x), x - whole)
    return torch.copysign(part, x), whole


def _ldexp(x: Tensor, n: Tensor) -> Tensor:
    """x * 2**n in steps that neither overflow nor round twice."""
    n = torch.clamp(n, -2200, 2200).to(torch.int32)
    w = x.double()
    for _ in range(3):
        step = torch.clamp(n, -1000, 1000)
        w = w * torch.pow(2.0, step.double())
        n = n - step
    return w.to(x.dtype)


def _divmod(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _floor_divide(x, y), _remainder(x, y)


_divmod.by_number = lambda x, y: (_floor_divide_by(x, y), _remainder.by_number(x, y))


def _int_divmod(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return _int_floor_divide(x, y), _int_remainder(x, y)


_int_divmod.by_number = lambda x, y: (_int_floor_divide.by_number(x, y), torch.remainder(x, y))


def _spacing(x: Tensor) -> Tensor:
    a = torch.abs(x)
    gap = torch.nextafter(a, torch.full_like(a, math.inf)) - a
    gap = torch.where(torch.isinf(a), math.nan, gap)
    return torch.where(x < 0, -gap, gap)


def _logaddexp(log: Callable, exp: Callable, log_of_2: float) -> Callable:
    def op(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype is torch.float16:
            return op(x.float(), y.float()).half()
        top, low = torch.maximum(x, y), torch.minimum(x, y)
        far = log(exp(low - top))
        return torch.where(x == y, x + log_of_2, top + far)

    return op


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    either = torch.isinf(x) | torch.isinf(y)
    return torch.where(either, math.inf, torch.hypot(x, y))


def _times(constant: float) -> Callable:
    """x * constant, the constant rounded to x's dtype first, as in a C loop."""
    return lambda x: x * cast(constant, x.dtype, x.device)


def _shift(op: Callable, beyond: Callable) -> Callable:
    def run(x: Tensor, n: Tensor) -> Tensor:
        bits = torch.iinfo(x.dtype).bits
        out = (n < 0) | (n >= bits) if n.dtype.is_signed else n >= bits
        return torch.where(out, beyond(x), op(x, torch.where(out, 0, n)))

    return run


_left_shift = _shift(torch.bitwise_left_shift, torch.zeros_like)
_right_shift = _shift(torch.bitwise_right_shift, lambda x: -(x < 0).to(x.dtype) if x.dtype.is_signed else x * 0)


def _bitwise_count(x: Tensor) -> Tensor:
    """Population count of |x|, by adding neighbouring fields of bits."""
    w = torch.abs(x.to(torch.int64)) if x.dtype.is_signed else x.to(torch.int64)
    w = w - ((w >> 1) & 0x5555555555555555)
    w = (w & 0x3333333333333333) + ((w >> 2) & 0x3333333333333333)
    w = (w + (w >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((w * 0x0101010101010101) >> 56).to(torch.uint8)


def _true(x: Tensor) -> Tensor:
    return torch.ones_like(x, dtype=torch.bool)


def _false(x: Tensor) -> Tensor:
    return torch.zeros_like(x, dtype=torch.bool)


BOTH = {"unsigned": "bits"}
OPS: dict[str, Callable] = {
    # arithmetic
    "add": Op(torch.add, complexes=_by_parts(torch.add), **BOTH),
    "subtract": Op(torch.sub, complexes=_by_parts(torch.sub), **BOTH),
    "multiply": Op(torch.mul, **BOTH),
    "divide": torch.div,
    "true_divide": torch.div,
    "negative": Op(torch.neg, complexes=_by_parts(torch.neg), **BOTH),
    "positive": same,
    "absolute": Op(torch.abs, boolean=same, unsigned="same"),
    "fabs": torch.abs,
    "sign": Op(_sign, integer=torch.sign, complexes=torch.sgn, unsigned="wide"),
    "square": Op(lambda x: x * x, **BOTH),
    "reciprocal": Op(torch.reciprocal, complexes=_complex_reciprocal),
    "power": Op(torch.pow, integer=_int_power, complexes=_complex_power, unsigned="wide"),
    "float_power": torch.pow,
    "floor_divide": Op(_floor_divide, integer=_int_floor_divide, unsigned="wide"),
    "remainder": Op(_remainder, integer=_int_remainder, unsigned="wide"),
    "mod": Op(_remainder, integer=_int_remainder, unsigned="wide"),
    "fmod": Op(_fmod, integer=_int_fmod, unsigned="wide"),
    "divmod": Op(_divmod, integer=_int_divmod, unsigned="wide"),
    "gcd": Op(_gcd, unsigned="wide"),
    "lcm": Op(_lcm, unsigned="wide"),
    # exponentials, logarithms, trigonometry
    **{n: getattr(torch, n) for n in words("exp exp2 expm1 log log2 log10 sqrt sin cos tan sinh cosh tanh")},
    **{n: getattr(torch, n) for n in words("arcsin arccos arctan arcsinh arccosh arctanh arctan2 copysign")},
    "log1p": Op(torch.log1p, complexes=_complex_log1p),
    "hypot": _hypot,
    "cbrt": _cbrt,
    "logaddexp": _logaddexp(torch.log1p, torch.exp, math.log(2)),
    "logaddexp2": _logaddexp(lambda x: torch.log1p(x) / math.log(2), torch.exp2, 1.0),
    "degrees": _times(180 / math.pi),
    "rad2deg": _times(180 / math.pi),
    "radians": _times(math.pi / 180),
    "deg2rad": _times(math.pi / 180),
    # comparison and logic
    "equal": Op(torch.eq, **BOTH),
    "not_equal": Op(torch.ne, **BOTH),
    "less": Op(torch.lt, unsigned="order"),
    "less_equal": Op(torch.le, unsigned="order"),
    "greater": Op(torch.gt, unsigned="order"),
    "greater_equal": Op(torch.ge, unsigned="order"),
    **{f"logical_{n}": Op(getattr(torch, f"logical_{n}"), **BOTH) for n in ("and", "or", "xor", "not")},
    "maximum": Op(torch.maximum, unsigned="order"),
    "minimum": Op(torch.minimum, unsigned="order"),
    "fmax": Op(torch.fmax, unsigned="order"),
    "fmin": Op(torch.fmin, unsigned="order"),
    "isfinite": Op(torch.isfinite, integer=_true, boolean=_true),
    "isinf": Op(torch.isinf, integer=_false, boolean=_false),
    "isnan": Op(torch.isnan, integer=_false, boolean=_false),
    "signbit": torch.signbit,
    "heaviside": lambda x, h: torch.where(torch.isnan(x), x, torch.heaviside(x, h)),
    "nextafter": torch.nextafter,
    "spacing": _spacing,
    # bits
    "bitwise_and": Op(torch.bitwise_and, **BOTH),
    "bitwise_or": Op(torch.bitwise_or, **BOTH),
    "bitwise_xor": Op(torch.bitwise_xor, **BOTH),
    "invert": Op(torch.bitwise_not, **BOTH),
    "left_shift": Op(_left_shift, unsigned="bits"),
    "right_shift": Op(_right_shift, unsigned="wide"),
    "bitwise_count": Op(_bitwise_count),
    # rounding and parts
    "floor": Op(torch.floor, integer=same, boolean=same),
    "ceil": Op(torch.ceil, integer=same, boolean=same),
    "trunc": Op(torch.trunc, integer=same, boolean=same),
    "rint": torch.round,
    "modf": _modf,
    "frexp": lambda x: tuple(torch.frexp(x)),
    "ldexp": _ldexp,
    "conjugate": Op(same, complexes=torch.conj_physical),
}
for _name, _op in OPS.items():
    ufunc_kernel(_name, _op)
