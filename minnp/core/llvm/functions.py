"""Elementary functions as LLVM instructions, the same for one element and for a vector of them.

Each is within 3 ulp of the true value for float32 and float64 (measured in tests/test_native.py), and gives NumPy's
results at infinities, NaN, zeros and where it overflows. Arguments are reduced in the usual way (Cody and Waite,
"Software Manual for the Elementary Functions", 1980); the polynomials interpolate at Chebyshev's points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as onp

from .code import FLOAT32, FLOAT64, INT32, INT64, Lane


@dataclass(frozen=True)
class Format:
    """A floating point format, and the constants the functions need in it."""

    bits: onp.dtype  # the integers of its size
    mantissa: int
    bias: int
    magic: float  # adding it rounds to an integer, which is then in the low bits
    ln2: tuple[float, ...]  # in parts: all but the last have trailing zeros, so that small multiples are exact
    half_pi: tuple[float, ...]
    exp_range: tuple[float, float]  # outside, exp is 0 or inf
    tanh_range: float  # beyond, tanh is 1
    trig_range: float  # beyond, sin and cos reduce their argument another way
    expm1: tuple[float, ...]  # (exp(r) - 1 - r) / r^2 on [-ln2/2, ln2/2], in powers of r
    log: tuple[float, ...]  # (atanh(s)/s - 1) / s^2, in powers of s^2
    sin: tuple[float, ...]  # (sin(r)/r - 1) / r^2 on [-pi/4, pi/4], in powers of r^2
    cos: tuple[float, ...]  # (cos(r) - 1 + r^2/2) / r^4


# fmt: off
SINGLE = Format(
    bits=INT32,
    mantissa=23,
    bias=127,
    magic=1.5 * 2.0**23,
    ln2=(0.693145751953125, 1.428606820309417e-06),
    half_pi=(1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.563344151594519e-12),
    exp_range=(-104.5, 89.0),
    tanh_range=9.2,
    trig_range=3000.0,
    expm1=(
        0.5000000014286223,
        0.16666666682534356,
        0.04166645680967788,
        0.008333310024225292,
        0.0013934541928270264,
        0.0001989198131397769,
    ),
    log=(0.3333333327494159, 0.20000062797277182, 0.14275198479809006, 0.11670971694357281),
    sin=(-0.1666666666362283, 0.008333331785217696, -0.00019840038872556747, 2.724378140946123e-06),
    cos=(0.04166666666412721, -0.001388888759732781, 2.4800560429914505e-05, -2.7295830827614617e-07),
)
DOUBLE = Format(
    bits=INT64,
    mantissa=52,
    bias=1023,
    magic=1.5 * 2.0**52,
    ln2=(0.6931471804855391, 7.440617110012397e-11),
    half_pi=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    exp_range=(-746.0, 710.0),
    tanh_range=19.2,
    trig_range=5e5,
    expm1=(
        0.5,
        0.1666666666666667,
        0.04166666666666667,
        0.008333333333325544,
        0.0013888888888883327,
        0.00019841269876864356,
        2.4801587327007187e-05,
        2.755725283351691e-06,
        2.75572718102198e-07,
        2.5106274733573296e-08,
        2.0915442297780116e-09,
    ),
    log=(
        0.3333333333333333,
        0.2000000000000047,
        0.14285714285382226,
        0.1111111120027388,
        0.090908973504489,
        0.07693145267329496,
        0.06633709298237442,
        0.06550360691751746,
    ),
    sin=(
        -0.16666666666666666,
        0.008333333333333331,
        -0.00019841269841264567,
        2.7557319218954762e-06,
        -2.505210610025599e-08,
        1.6058510875319195e-10,
        -7.585486485235938e-13,
    ),
    cos=(
        0.041666666666666664,
        -0.0013888888888888887,
        2.4801587301584367e-05,
        -2.75573192211891e-07,
        2.0876755717584403e-09,
        -1.1470449354466773e-11,
        4.745198807202876e-14,
    ),
)
# fmt: on
LOG2_E, TWO_OVER_PI = 1.4426950408889634, 0.6366197723675814
LN2, LN10 = 0.6931471805599453, 2.302585092994046


def format_of(x: Lane) -> Format:
    return SINGLE if x.dtype == FLOAT32 else DOUBLE


# ------------------------------------------------------------------ exp and its relatives
def absolute(x: Lane) -> Lane:
    return x.code.intrinsic("fabs", x)


def clamp(x: Lane, low: float, high: float) -> Lane:
    """x between two numbers; NaN stays."""
    c = x.code
    x = c.select(x > high, c.number(high, x.dtype), x)
    return c.select(x < low, c.number(low, x.dtype), x)


def nearest(x: Lane, scale: float) -> tuple[Lane, Lane]:
    """(n, n as an integer in the low bits) with n the integer nearest to x * scale; |n| must be small."""
    c, f = x.code, format_of(x)
    shifted = c.fma(x, c.number(scale, x.dtype), c.number(f.magic, x.dtype))
    return shifted - f.magic, c.bits(shifted, f.bits)


def power_of_2(n: Lane, f: Format, dtype: onp.dtype) -> Lane:
    """2**n for the integers n of normal numbers."""
    return n.code.bits((n + f.bias) << f.mantissa, dtype)


def reduced(x: Lane) -> tuple[Lane, Lane]:
    """(n, r) with x = n * ln2 + r, |r| <= ln2/2, n an integer in the low bits of its lanes."""
    c, f = x.code, format_of(x)
    n, bits = nearest(x, LOG2_E)
    r = x
    for part in f.ln2:
        r = c.fma(n, c.number(-part, x.dtype), r)
    return bits, r


def whole(bits: Lane, f: Format) -> Lane:
    """The integer that `nearest` left in the low bits, of which the highest comes from `magic`."""
    unused = 8 * f.bits.itemsize - f.mantissa + 1
    return (bits << unused) >> unused


def exp(x: Lane) -> Lane:
    c, f = x.code, format_of(x)
    bits, r = reduced(clamp(x, *f.exp_range))
    n = whole(bits, f)
    p = c.fma(r * r, c.polynomial(r, f.expm1), r) + 1.0
    half = n >> 1  # in two steps: 2**n itself may be out of range where the result is not
    return p * power_of_2(half, f, x.dtype) * power_of_2(n - half, f, x.dtype)


def expm1(x: Lane) -> Lane:
    c, f = x.code, format_of(x)
    bits, r = reduced(clamp(x, *f.exp_range))
    n = whole(bits, f)
    p = c.fma(r * r, c.polynomial(r, f.expm1), r)
    low = n < -60
    n = c.select(low, c.number(-60, n.dtype), n)  # 2**-60 is nothing beside 1
    half = power_of_2(n - 1, f, x.dtype)  # 2**n itself overflows just before the result does
    y = c.fma(half, p, half - 0.5)
    return c.select(x.code.compare("eq", x, c.number(0.0, x.dtype)), x, y + y)


def exp2(x: Lane) -> Lane:
    c, f = x.code, format_of(x)
    bound = (-151.0, 129.0) if f is SINGLE else (-1076.0, 1025.0)
    x = clamp(x, *bound)
    nearest_n, bits = nearest(x, 1.0)
    n, r = whole(bits, f), (x - nearest_n) * LN2
    p = c.fma(r * r, c.polynomial(r, f.expm1), r) + 1.0
    half = n >> 1
    return p * power_of_2(half, f, x.dtype) * power_of_2(n - half, f, x.dtype)


def tanh(x: Lane) -> Lane:
    """t / (t + 2) with t = expm1(2 |x|), and the sign of x."""
    c, f = x.code, format_of(x)
    a = absolute(x)
    a = c.select(a > f.tanh_range, c.number(f.tanh_range, x.dtype), a)
    bits, r = reduced(a + a)
    p = c.fma(r * r, c.polynomial(r, f.expm1), r)
    scale = power_of_2(whole(bits, f), f, x.dtype)
    t = c.fma(scale, p, scale - 1.0)
    return c.intrinsic("copysign", t / (t + 2.0), x)


def sinh(x: Lane) -> Lane:
    """(t + t / (t + 1)) / 2 with t = expm1(|x|); near overflow exp(|x| - ln2) itself."""
    c, f = x.code, format_of(x)
    a = absolute(x)
    t = expm1(a)
    y = c.select(a > f.exp_range[1] - 2.0, exp_of_half(a), (t + t / (t + 1.0)) * 0.5)
    return c.intrinsic("copysign", y, x)


def cosh(x: Lane) -> Lane:
    c, f = x.code, format_of(x)
    a = absolute(x)
    e = exp(a)
    return c.select(a > f.exp_range[1] - 2.0, exp_of_half(a), (e + 1.0 / e) * 0.5)


def exp_of_half(a: Lane) -> Lane:
    """exp(a) / 2 where exp(a) may overflow."""
    e = exp(a * 0.5)
    return e * 0.5 * e


def sigmoid(x: Lane) -> Lane:
    return 1.0 / (exp(-x) + 1.0)


# ------------------------------------------------------------------ logarithms
def split(x: Lane) -> tuple[Lane, Lane]:
    """(e, m) with x = 2**e * m and m in [sqrt(1/2), sqrt(2)), for positive finite x; e as a float."""
    c, f = x.code, format_of(x)
    tiny = x < float(onp.finfo(x.dtype).tiny)
    x = c.select(tiny, x * 2.0**f.mantissa, x)
    i = c.bits(x, f.bits)
    offset = 0x3F3504F3 if f is SINGLE else 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    n = (i - offset) >> f.mantissa
    m = c.bits(i - (n << f.mantissa), x.dtype)
    e = c.cast(n, x.dtype)
    return c.select(tiny, e - float(f.mantissa), e), m


def log_parts(m: Lane) -> tuple[Lane, Lane, Lane]:
    """(f, h, w) with log(m) = f - (h - w): f = m - 1, h = f^2/2, w small."""
    c, form = m.code, format_of(m)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    w = s * (h + z * c.polynomial(z, form.log) * 2.0)
    return f, h, w


def at_the_ends(x: Lane, y: Lane) -> Lane:
    """A logarithm's value where x is 0, negative, infinite or NaN."""
    c = x.code
    y = c.select(x > float(onp.finfo(x.dtype).max), x, y)
    y = c.select(c.compare("eq", x, c.number(0.0, x.dtype)), c.number(-onp.inf, x.dtype), y)
    ok = x >= 0.0
    return c.select(ok, y, c.number(onp.nan, x.dtype))


def log(x: Lane) -> Lane:
    c, form = x.code, format_of(x)
    e, m = split(x)
    f, h, w = log_parts(m)
    low = c.fma(e, c.number(form.ln2[1], x.dtype), w)
    y = c.fma(e, c.number(form.ln2[0], x.dtype), f - (h - low))
    return at_the_ends(x, y)


def log_in_base(x: Lane, scale: float, unit: float) -> Lane:
    """log(x) * scale, exact at the powers of 2 where unit (log of 2 in the base) is 1."""
    c = x.code
    e, m = split(x)
    f, h, w = log_parts(m)
    # scale in two parts, the first of few bits: the product with f's leading bits is exact
    top = float(onp.float32(scale)) if x.dtype == FLOAT64 else float(onp.float16(scale))
    mask = -(1 << (29 if x.dtype == FLOAT64 else 12))
    high = c.bits(c.bits(f - h, format_of(x).bits) & mask, x.dtype)
    low = (f - high - h) + w
    y = c.fma(high, c.number(scale - top, x.dtype), low * scale)
    first = float(onp.float32(unit)) if x.dtype == FLOAT64 else float(onp.float16(unit))
    y = c.fma(e, c.number(unit - first, x.dtype), y)
    return at_the_ends(x, c.fma(e, c.number(first, x.dtype), c.fma(high, c.number(top, x.dtype), y)))


def log2(x: Lane) -> Lane:
    return log_in_base(x, LOG2_E, 1.0)


def log10(x: Lane) -> Lane:
    return log_in_base(x, 1 / LN10, LN2 / LN10)


def log1p(x: Lane) -> Lane:
    """log(u) with u = 1 + x, plus what was lost in rounding u, over u."""
    c = x.code
    u = x + 1.0
    lost = c.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    y = log(u)
    finite = c.compare("eq", u - u, c.number(0.0, x.dtype)) & (u > 0.0)
    y = c.select(finite, y + lost / u, y)
    return c.select(c.compare("eq", x, c.number(0.0, x.dtype)), x, y)


# ------------------------------------------------------------------ sin, cos
def trigonometric(x: Lane, shift: int) -> Lane:
    """sin (shift 0) or cos (shift 1): x = n * pi/2 + r, and the quadrant n + shift chooses between two polynomials."""
    c, f = x.code, format_of(x)
    n, bits = nearest(x, TWO_OVER_PI)
    r = x
    for part in f.half_pi:
        r = c.fma(n, c.number(-part, x.dtype), r)
    z = r * r
    sine = c.fma(r * z, c.polynomial(z, f.sin), r)
    cosine = c.fma(z * z, c.polynomial(z, f.cos), c.fma(z, c.number(-0.5, x.dtype), c.number(1.0, x.dtype)))
    quadrant = bits + shift
    odd = c.compare("ne", quadrant & 1, c.number(0, f.bits))
    sign = (quadrant & 2) << (8 * f.bits.itemsize - 2)
    y = c.bits(c.bits(c.select(odd, cosine, sine), f.bits) ^ sign, x.dtype)
    if shift == 0:
        y = c.select(c.compare("eq", x, c.number(0.0, x.dtype)), x, y)  # the sign of zero
    return c.unless(absolute(x) <= f.trig_range, y, x, "cos" if shift else "sin")


def sin(x: Lane) -> Lane:
    return trigonometric(x, 0)


def cos(x: Lane) -> Lane:
    return trigonometric(x, 1)
