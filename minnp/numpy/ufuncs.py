"""Rows of the elementwise functions: NumPy's ufuncs, and the functions that act like one (clip, where, nan_to_num).

A gradient rule of an elementwise row multiplies `g` by the derivative, so the same rules serve forward mode. Constants
in rules are Python numbers: they take the dtype of the array beside them. Complex numbers follow autograd's convention:
a rule of a holomorphic function is `g * f'(x)`, without a conjugate, and the gradient of a real loss with respect to
x = a + ib is dL/da - i dL/db.

Where a slope may be infinite or NaN, the product with a cotangent of 0 is 0 (slopes.over and slopes.times).

At kinks the gradient is a subgradient: equal values in `maximum` share it, `absolute`, `hypot`, `arctan2` give 0 at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.cpu import elementwise as host_elementwise
from ..core.rows.primitive import CONSTANT, Meta, Primitive, per_element, primitive
from ..core.transforms.cotangents import negated
from . import slopes
from .facts import elementwise, same, sampled, spread
from .slopes import over, times

LN2, LN10, PI = 0.6931471805599453, 2.302585092994046, 3.141592653589793
RADIAN, DEGREE = PI / 180.0, 180.0 / PI


# ------------------------------------------------------------------ kinds of rows
def ufunc(name: str, *rules: Callable, saves: str = "in", domain: Sequence[tuple] = (), **facts: Any) -> Primitive:
    """A row of a differentiable ufunc. `domain` has (low, high) for each argument that may not be any real number."""
    kernel = getattr(onp, name)
    ranges = [*domain, *[(-2.0, 2.0)] * (kernel.nin - len(domain))]
    kinds = [types[: kernel.nin] for types in kernel.types]

    def samples() -> list:
        real = [spread(2, 3, low=lo, high=hi, seed=i) for i, (lo, hi) in enumerate(ranges)]
        cases = [(tuple(real), {})]
        if kernel.nin == 2:  # broadcasting, and a Python number
            cases += [((real[0], real[1][0]), {}), ((real[0][:, :1], float(real[1][0, 0])), {})]
        if "D" * kernel.nin in kinds:
            cases.append((tuple(x + 1j * spread(2, 3, seed=9 + i) for i, x in enumerate(real)), {}))
        return cases

    facts = {"jvp": "elementwise", "samples": samples, **facts}
    return primitive(
        name, numpy=kernel, vjp=list(rules), saves=saves, shape=elementwise(kernel), flops=per_element(1), **facts
    )


def constant(name: str, **facts: Any) -> Primitive:
    """A row of a ufunc whose result does not move when its arguments move a little: comparisons, rounding, integers."""
    kernel = getattr(onp, name)

    def samples() -> list:
        for kind in ("d", "q", "?", "M"):
            if kind * kernel.nin in [types[: kernel.nin] for types in kernel.types]:
                arrays = [spread(2, 3, low=1, high=9, seed=i).astype(kind if kind != "M" else "M8[D]") for i in (0, 1)]
                return [(tuple(arrays[: kernel.nin]), {})]
        raise TypeError(f"no sample for {name}: {kernel.types}")

    facts = {"shape": elementwise(kernel), "flops": per_element(1), "samples": samples, **facts}
    return primitive(name, kernel, vjp=CONSTANT, saves="", **facts)


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


# ------------------------------------------------------------------ constants
equal, not_equal, less, less_equal, greater, greater_equal = map(
    constant, ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
)
logical_and, logical_or, logical_xor, logical_not = map(
    constant, ("logical_and", "logical_or", "logical_xor", "logical_not")
)
bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift = map(
    constant, ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift")
)
isfinite, isinf, isnan, isnat, signbit, spacing = map(
    constant, ("isfinite", "isinf", "isnan", "isnat", "signbit", "spacing")
)
floor, ceil, trunc, rint = (constant(name, idempotent=True) for name in ("floor", "ceil", "trunc", "rint"))
floor_divide = constant("floor_divide")
gcd, lcm = map(constant, ("gcd", "lcm"))
if hasattr(onp, "bitwise_count"):  # NumPy 2
    bitwise_count = constant("bitwise_count")

BITS = {onp.dtype("f4"): onp.dtype("i4"), onp.dtype("f8"): onp.dtype("i8")}


def _where(c: Any, a: Any, b: Any) -> onp.ndarray:
    """np.where; where one side is 0, by a product of bits with the truth: 15 times faster."""
    if type(c) is onp.ndarray and c.size > 1000 and c.dtype == bool:
        if type(b) is int and b == 0:
            chosen, kept = a, c
        elif type(a) is int and a == 0:
            chosen, kept = b, ~c
        else:
            return onp.where(c, a, b)
        bits = BITS.get(chosen.dtype) if type(chosen) is onp.ndarray and chosen.shape == c.shape else None
        if bits is not None:
            return onp.multiply(chosen.view(bits), kept).view(chosen.dtype)
    return onp.where(c, a, b)


where = primitive(
    "where",
    numpy=_where,
    vjp=[CONSTANT, lambda g, y, c, a, b: where(c, g, 0), lambda g, y, c, a, b: where(c, 0, g)],
    jvp=[
        CONSTANT,
        lambda t, y, c, a, b: where(c, t, 0),
        lambda t, y, c, a, b: where(c, 0, t),
    ],
    saves="in",
    shape=lambda metas, params: Meta(
        onp.broadcast_shapes(*(m.shape for m in metas)),
        onp.add.resolve_dtypes((metas[1].dtype, metas[2].dtype, None))[2],
    ),
    scalar=False,
    layout="elementwise",
    batch="elementwise",
    takes=("traced", 3),
    samples=sampled(
        ((spread(2, 3) > 0, spread(2, 3, seed=1), spread(2, 3, seed=2)), {}),
        ((spread(3) > 0, spread(2, 3, seed=1), 1.5), {}),
        ((spread(40, 40) > 0, spread(40, 40, seed=1), 0), {}),
        ((spread(40, 40) > 0, 0, spread(40, 40, seed=1).T), {}),
    ),
)

# ------------------------------------------------------------------ arithmetic
add = ufunc("add", lambda g, y, a, b: g, lambda g, y, a, b: g, saves="")
subtract = ufunc("subtract", lambda g, y, a, b: g, lambda g, y, a, b: negated(g, b), saves="")
multiply = ufunc("multiply", lambda g, y, a, b: times(g, b), lambda g, y, a, b: times(g, a))
divide = ufunc(
    "divide",
    lambda g, y, a, b: over(g, b),
    lambda g, y, a, b: -over(times(g, a / b), b),
    domain=[(-2, 2), (0.5, 2)],
)
negative = ufunc("negative", lambda g, y, x: -g, saves="")
positive = ufunc("positive", lambda g, y, x: g, saves="")
square = ufunc("square", slopes.of_square)
reciprocal = ufunc("reciprocal", lambda g, y, x: -times(times(g, y), y), saves="out", domain=[(0.5, 2)])


def quietly(row: Callable, *args: Any) -> Any:
    """A row's result without NumPy's warnings: it is a slope, which may be infinite where nothing flows."""
    with onp.errstate(divide="ignore", invalid="ignore"):
        return row(*args)


def _power_base(row: Primitive) -> Callable:
    """d/dx x**p = p * x**(p - 1), without 0 * inf where p is 0; the common exponents cost no power at all."""

    def rule(g: Any, y: Any, x: Any, p: Any) -> Any:
        if isinstance(p, (int, float)):
            if p == 2:
                return times(g, 2 * x)
            if p == 1:
                return g
            if p == 0.5:
                return over(g * 0.5, sqrt(x))
            if p == 0:
                return g * 0
            return times(g, p * (square(x) if p == 3 else quietly(row, x, p - 1)))
        return times(times(g, quietly(row, x, where(equal(p, 0), 1, p - 1))), p)

    return rule


def _power_exponent(row: Primitive) -> Callable:
    """d/dp x**p = x**p log(x), taken as 0 where x is 0."""

    def rule(g: Any, y: Any, x: Any, p: Any) -> Any:
        return times(times(g, quietly(log, where(equal(x, 0), 1, x))), row(x, p))

    return rule


def _power(name: str) -> Primitive:
    # rules look the row up when they run: it is differentiated by itself
    row = lambda x, p: rows[0](x, p)
    rows = [ufunc(name, _power_base(row), _power_exponent(row), domain=[(0.3, 2), (-2, 3)])]
    return rows[0]


power = _power("power")
float_power = _power("float_power")

# ------------------------------------------------------------------ division with remainder
remainder = ufunc(
    "remainder", lambda g, y, a, b: g, lambda g, y, a, b: -times(g, floor_divide(a, b)), domain=[(3, 9), (1, 2)]
)
fmod = ufunc("fmod", lambda g, y, a, b: g, lambda g, y, a, b: -times(g, trunc(a / b)), domain=[(3, 9), (1, 2)])
divmod_ = ufunc(
    "divmod",
    lambda g, y, a, b: g[1],
    lambda g, y, a, b: -times(g[1], floor_divide(a, b)),
    jvp=[lambda t, y, a, b: (0 * t, t), lambda t, y, a, b: (0 * t, -times(t, floor_divide(a, b)))],
    domain=[(3, 9), (1, 2)],
)
modf = ufunc("modf", lambda g, y, x: g[0], jvp=[lambda t, y, x: (t, 0 * t)], saves="", domain=[(0.1, 0.9)])
frexp = ufunc(
    "frexp",
    lambda g, y, x: ldexp(g[0], -y[1]),
    jvp=[lambda t, y, x: (ldexp(t, -y[1]), onp.zeros(t.shape, "i4"))],
    saves="out",
    domain=[(1.1, 1.9)],
)
ldexp = primitive(
    "ldexp",
    numpy=onp.ldexp,
    vjp=[lambda g, y, x, n: ldexp(g, n), CONSTANT],
    jvp="elementwise",
    saves="in",
    shape=elementwise(onp.ldexp),
    flops=per_element(1),
    samples=sampled(((spread(2, 3), onp.array([-1, 2, 0])), {})),
)

# ------------------------------------------------------------------ exponentials and logarithms
exp = ufunc("exp", lambda g, y, x: times(g, y), saves="out")
exp2 = ufunc("exp2", lambda g, y, x: times(g, y * LN2), saves="out")
expm1 = ufunc("expm1", lambda g, y, x: times(g, y + 1), saves="out")
log = ufunc("log", lambda g, y, x: over(g, x), domain=[(0.3, 3)])
log2 = ufunc("log2", lambda g, y, x: over(g, x * LN2), domain=[(0.3, 3)])
log10 = ufunc("log10", lambda g, y, x: over(g, x * LN10), domain=[(0.3, 3)])
log1p = ufunc("log1p", lambda g, y, x: over(g, x + 1), domain=[(-0.7, 3)])
sqrt = ufunc("sqrt", lambda g, y, x: over(g, 2 * y), saves="out", domain=[(0.3, 3)])
cbrt = ufunc("cbrt", lambda g, y, x: over(over(g, 3 * y), y), saves="out", domain=[(0.3, 3)])


def _finite(y: Any) -> Any:
    """y with large numbers for inf and -inf: inf - inf would be NaN where 0 is meant, -inf - -inf where -inf is."""
    large = _large(y.dtype)
    return minimum(maximum(y, -large), large)


def _large(dtype: onp.dtype) -> float:
    """A number that is small enough for NumPy 1 to take it for one of this dtype."""
    return 0.9 * float(onp.finfo(dtype).max)


def _shares(exp: Primitive) -> tuple[Callable, Callable]:
    """What each of two summands has in the logarithm's slope."""
    share = lambda g, a, y: times(g, exp(minimum(a, _large(y.dtype)) - _finite(y)))
    return lambda g, y, a, b: share(g, a, y), lambda g, y, a, b: share(g, b, y)


logaddexp = ufunc("logaddexp", *_shares(exp), saves="both", fast=host_elementwise.logaddexp)
logaddexp2 = ufunc("logaddexp2", *_shares(exp2), saves="both")

# ------------------------------------------------------------------ trigonometric and hyperbolic functions
sin = ufunc("sin", lambda g, y, x: times(g, cos(x)))
cos = ufunc("cos", lambda g, y, x: -times(g, sin(x)))
tan = ufunc("tan", lambda g, y, x: times(g, 1 + y * y), saves="out", domain=[(-1, 1)])
arcsin = ufunc("arcsin", lambda g, y, x: over(g, _other_side(x)), domain=[(-0.9, 0.9)])
arccos = ufunc("arccos", lambda g, y, x: -over(g, _other_side(x)), domain=[(-0.9, 0.9)])
arctan = ufunc("arctan", lambda g, y, x: over(g, 1 + x * x))
sinh = ufunc("sinh", lambda g, y, x: times(g, cosh(x)))
cosh = ufunc("cosh", lambda g, y, x: times(g, sinh(x)))
tanh = ufunc("tanh", slopes.of_tanh, saves="out")
arcsinh = ufunc("arcsinh", lambda g, y, x: over(g, sqrt(1 + x * x)))
# two roots, not one of the product: the complex branch cuts are those of arccosh
arccosh = ufunc("arccosh", lambda g, y, x: over(over(g, sqrt(x - 1)), sqrt(x + 1)), domain=[(1.2, 3)])
arctanh = ufunc("arctanh", lambda g, y, x: over(g, (1 - x) * (1 + x)), domain=[(-0.9, 0.9)])
degrees = ufunc("degrees", lambda g, y, x: g * DEGREE, saves="")
rad2deg = ufunc("rad2deg", lambda g, y, x: g * DEGREE, saves="")
radians = ufunc("radians", lambda g, y, x: g * RADIAN, saves="")
deg2rad = ufunc("deg2rad", lambda g, y, x: g * RADIAN, saves="")


def _other_side(x: Any) -> Any:
    """sqrt(1 - x * x), 0.0 at 1. Of complex numbers 1 - x loses the sign of a zero: the side of the branch cut."""
    return sqrt(-((x - 1) * (x + 1)) if x.dtype.kind == "c" else (1 - x) * (1 + x))


def _nonzero(x: Any) -> Any:
    """x with 1 in place of 0: a safe denominator where the numerator is 0."""
    return where(equal(x, 0), 1, x)


_along = lambda g, a, y: times(g, a / _nonzero(y))
hypot = ufunc("hypot", lambda g, y, a, b: _along(g, a, y), lambda g, y, a, b: _along(g, b, y), saves="both")


def _arctan2(g: Any, y: Any, x: Any) -> Any:
    """g * y / (x**2 + y**2), by two divisions: squares overflow where the quotient does not."""
    r = _nonzero(hypot(y, x))
    return times(g, y / r / r)


arctan2 = ufunc("arctan2", lambda g, y, a, b: _arctan2(g, b, a), lambda g, y, a, b: -_arctan2(g, a, b))

# ------------------------------------------------------------------ sign, size, choice
conjugate = ufunc("conjugate", lambda g, y, x: conjugate(g), saves="")
sign = constant("sign", idempotent=True)
fabs = ufunc("fabs", lambda g, y, x: times(g, sign(x)))


def _absolute(g: Any, y: Any, x: Any) -> Any:
    return times(g, conjugate(x) / _nonzero(absolute(x)) if is_complex(x) else sign(x))


absolute = ufunc(
    "absolute",
    _absolute,
    jvp=[lambda t, y, x: real(_absolute(t, y, x)) if is_complex(x) else times(t, sign(x))],
    idempotent=True,
)


def _shared(lost: Any, a: Any, b: Any, g: Any) -> Any:
    """0 where the argument lost, half of g where a and b are equal, else g. A NaN never loses: the result is NaN."""
    return where(lost, 0, g) - where(equal(a, b), g * 0.5, 0)


maximum = ufunc(
    "maximum", lambda g, y, a, b: _shared(less(a, b), a, b, g), lambda g, y, a, b: _shared(less(b, a), a, b, g)
)
minimum = ufunc(
    "minimum", lambda g, y, a, b: _shared(greater(a, b), a, b, g), lambda g, y, a, b: _shared(greater(b, a), a, b, g)
)
fmax = ufunc(
    "fmax",
    lambda g, y, a, b: _shared(less(a, b) | isnan(a), a, b, g),
    lambda g, y, a, b: _shared(less(b, a) | isnan(b), a, b, g),
)
fmin = ufunc(
    "fmin",
    lambda g, y, a, b: _shared(greater(a, b) | isnan(a), a, b, g),
    lambda g, y, a, b: _shared(greater(b, a) | isnan(b), a, b, g),
)
copysign = ufunc("copysign", lambda g, y, a, b: where(equal(signbit(a), signbit(b)), g, -g), CONSTANT)
nextafter = ufunc("nextafter", lambda g, y, a, b: g, CONSTANT, saves="")
heaviside = ufunc(
    "heaviside",
    CONSTANT,
    lambda g, y, x, h: where(equal(x, 0), g, 0),
    samples=sampled(((onp.array([-1.0, 0.0, 2.0, 0.0]), spread(4)), {}), ((onp.array([[0.0], [1.0]]), 0.5), {})),
)

clip = primitive(
    "clip",
    numpy=onp.clip,
    # inside the bounds and on them the gradient is x's; outside, the bound's
    vjp=[
        lambda g, y, x, low, high: where(less(x, low) | greater(x, high), 0, g),
        lambda g, y, x, low, high: where(less(x, low) & ~greater(low, high), g, 0),
        lambda g, y, x, low, high: where(greater(x, high) | greater(low, high), g, 0),
    ],
    jvp="elementwise",
    saves="in",
    flops=per_element(2),
    layout="elementwise",
    batch="elementwise",
    takes=("traced", 3),
    samples=sampled(
        ((spread(2, 3), -0.5, 0.5), {}), ((spread(2, 3), spread(3, low=-1, high=0), spread(3, low=0, high=1)), {})
    ),
)
nan_to_num = primitive(
    "nan_to_num",
    numpy=onp.nan_to_num,
    vjp=[lambda g, y, x, **params: where(isfinite(x), g, 0)],
    jvp="elementwise",
    saves="in",
    shape=same,
    flops=per_element(1),
    takes=("arrays", 1),
    samples=sampled(((onp.array([0.5, onp.nan, -onp.inf, 2.0]),), {"nan": 3.0}), ((onp.array([0.5, onp.nan]),), {})),
)

# ------------------------------------------------------------------ complex numbers, rounding
real = primitive(
    "real",
    numpy=onp.real,
    vjp=[lambda g, y, x: g],
    jvp="linear",
    saves="",
    view=True,
    shape=lambda metas, params: Meta(metas[0].shape, _part(metas[0].dtype)),
    batch="alike",
    samples=sampled(((spread(2, 3, dtype=complex),), {}), ((spread(2, 3),), {})),
)
imag = primitive(
    "imag",
    numpy=onp.imag,
    vjp=[lambda g, y, x: times(g, -1j)],  # for real x the tape keeps the real part: 0
    jvp="linear",
    saves="",
    view=True,
    copies=lambda meta, contiguous, params: onp.dtype(meta.dtype).kind != "c",
    shape=lambda metas, params: Meta(metas[0].shape, _part(metas[0].dtype)),
    batch="alike",
    samples=sampled(((spread(2, 3, dtype=complex),), {})),
)
round_ = primitive(
    "round",
    numpy=onp.round,
    vjp=CONSTANT,
    saves="",
    shape=same,
    flops=per_element(1),
    takes=("one", "decimals"),
    samples=sampled(((spread(2, 3),), {"decimals": 1})),
)
fix = primitive("fix", onp.fix, vjp=CONSTANT, saves="", shape=same, samples=sampled(((spread(2, 3),), {})))


def _part(dtype: onp.dtype) -> onp.dtype:
    """The dtype of the real part."""
    return onp.empty(0, dtype).real.dtype


def _sinc_slope(x: Any) -> Any:
    """The derivative of sinc: (cos(u) - sin(u)/u) / x with u = pi x; near 0, where that cancels, its series."""
    u = x * PI
    u2 = u * u
    near = less(absolute(u), 0.5)
    far = where(near, 1, x)
    series = u * (-1 / 3 + u2 * (1 / 30 + u2 * (-1 / 840 + u2 * (1 / 45360 - u2 * (1 / 3991680)))))
    return where(near, series * PI, (cos(far * PI) - sinc(far)) / far)


sinc = primitive(
    "sinc",
    numpy=onp.sinc,
    vjp=[lambda g, y, x: times(g, _sinc_slope(x))],
    jvp="elementwise",
    saves="in",
    shape=same,
    flops=per_element(3),
    samples=sampled(((spread(2, 3),), {}), ((onp.array([0.0, 0.01, -0.1, 0.15, 0.17]),), {})),
)
