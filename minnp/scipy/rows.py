"""Rows of scipy.special's functions, around SciPy's kernels: elementary ones, error functions, gamma, hypergeometric.

bessel.py, incomplete.py and integrals.py have the others, functions.py what SciPy writes in Python. What is in none of
them has values, and no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
from scipy import special

from ..core.rows.dispatch import defines
from ..core.rows.primitive import CONSTANT, Primitive, per_element, primitive
from ..numpy.arguments import operand
from ..numpy.calls import called
from ..numpy.facts import elementwise, spread
from ..numpy.reductions import sum_
from ..numpy.shaping import astype, expand_dims
from ..numpy.slopes import by_slope, over, times
from ..numpy.ufuncs import (
    absolute,
    cos,
    divide,
    equal,
    exp,
    hypot,
    less,
    log,
    logical_and,
    logical_not,
    logical_or,
    power,
    quietly,
    real,
    rint,
    sign,
    sin,
    square,
    where,
)

PI, ROOT_PI, ROOT_2PI = 3.141592653589793, 1.7724538509055159, 2.5066282746310002
LN2, LN10, DEGREE = 0.6931471805599453, 2.302585092994046, PI / 180
POSITIVE, UNIT, ORDER = (0.3, 3.0), (0.1, 0.9), (1, 2, 3)


def single(x: Any, dtype: Any) -> Any:
    """x in a dtype: SciPy's functions of an order and a float32 array answer in float64."""
    return x if x.dtype == dtype else astype(x, dtype=dtype)


def row(name: str, *rules: Any, domain: Sequence[tuple] = (), saves: str = "both", **facts: Any) -> Primitive:
    """A row of a scipy.special function of real numbers. A domain is (low, high), or the integers an order may be.

    A rule is None where the derivative with respect to that argument has no closed form.
    """
    kernel = getattr(special, name)
    domain = domain or [(-2.0, 2.0)]

    def samples() -> list:
        draw = lambda i, d: onp.array(d) if len(d) == 3 else spread(2, 3, low=d[0], high=d[1], seed=i)
        return [(tuple(draw(i, d) for i, d in enumerate(domain)), {})]

    facts = {"jvp": "elementwise", "samples": samples, **facts}
    if facts["jvp"] == "elementwise":
        rules = tuple([by_slope(rule) if callable(rule) else rule for rule in rules])
    made = primitive(
        f"scipy.special.{name}",
        numpy=kernel,
        vjp=CONSTANT if rules == (CONSTANT,) else list(rules),
        saves=saves,
        shape=elementwise(kernel) if isinstance(kernel, onp.ufunc) else None,
        flops=per_element(20),
        **facts,
    )
    defines(kernel)(called(made, kernel) if isinstance(kernel, onp.ufunc) else lambda *args: made(*map(operand, args)))
    return made


def several(name: str, *slopes: Callable, **facts: Any) -> Primitive:
    """A row of a function with several results; for each argument slopes(y, *arrays) gives the derivatives of all."""
    vjp = [lambda g, y, *xs, of=of: sum(u * d for u, d in zip(g, of(y, *xs))) for of in slopes]
    jvp = [lambda t, y, *xs, of=of: tuple([t * d for d in of(y, *xs)]) for of in slopes]
    return row(name, *vjp, jvp=jvp, **facts)


# ------------------------------------------------------------------ exponentials, logarithms, entropies
expit = row("expit", lambda g, y, x: g * (y * (1 - y)), saves="out")
log_expit = row("log_expit", lambda g, y, x: g * expit(-x), saves="in")
logit = row("logit", lambda g, y, x: over(over(g, x), 1 - x), domain=[UNIT], saves="in")
expm1 = row("expm1", lambda g, y, x: times(g, y + 1), saves="out")
log1p = row("log1p", lambda g, y, x: over(g, x + 1), domain=[(-0.7, 3)], saves="in")
exp2 = row("exp2", lambda g, y, x: times(g, y * LN2), saves="out")
exp10 = row("exp10", lambda g, y, x: times(g, y * LN10), saves="out")
cbrt = row("cbrt", lambda g, y, x: over(over(g, 3 * y), y), domain=[POSITIVE], saves="out")
cosm1 = row("cosm1", lambda g, y, x: -g * sin(x), saves="in")
exprel = row("exprel", lambda g, y, x: g * (0.5 * hyp1f1(2.0, 3.0, x)), saves="in")
sindg = row("sindg", lambda g, y, x: g * (cosdg(x) * DEGREE), domain=[(10, 80)], saves="in")
cosdg = row("cosdg", lambda g, y, x: -g * (sindg(x) * DEGREE), domain=[(10, 80)], saves="in")
tandg = row("tandg", lambda g, y, x: g * ((1 + square(y)) * DEGREE), domain=[(10, 80)], saves="out")
cotdg = row("cotdg", lambda g, y, x: -g * ((1 + square(y)) * DEGREE), domain=[(10, 80)], saves="out")
powm1 = row(
    "powm1",
    lambda g, r, x, y: g * (y * power(x, y - 1)),
    lambda g, r, x, y: g * _power_slope(r, x, y),
    domain=[POSITIVE] * 2,
)


def _power_slope(r: Any, x: Any, y: Any) -> Any:
    """The derivative of r = x**y - 1 in y: 0, with all others, for powers of 0."""
    end = logical_and(equal(x, 0), less(0, y))
    return where(end, 0.0, xlogy(r + 1, where(end, 1.0, x)))


defines(special.radian)(lambda d, m, s: (operand(d) + operand(m) / 60 + operand(s) / 3600) * DEGREE)


# In Box and Cox's transforms log1p(z) / z is 2F1(1, 1; 2; -z), and expm1(z) / z is 1F1(1; 2; z): regular at 0.
def gauss(a: float, b: float, c: float, z: Any) -> Any:
    """hyp2f1 in z's own dtype: SciPy's ufunc prefers double precision."""
    return single(hyp2f1(a, b, c, z), z.dtype)


def _boxcox_power(x: Any, logarithm: Callable, of: Any, power: Any) -> Any:
    """The derivative in the power; x is 0 where the logarithm of what is given is -inf."""
    end = logical_and(equal(x, 0), less(0, power))
    size, p = logarithm(where(end, 1.0, of)), where(end, power, 1.0)
    return where(end, 1 / square(p), square(size) * (0.5 * hyp1f1(2.0, 3.0, size * power)))


def _inverse_power(y: Any, power: Any) -> Any:
    return square(y) * (-0.5 * gauss(2.0, 2.0, 3.0, -y * power))


boxcox = row(
    "boxcox",
    lambda g, y, x, p: g * power(x, p - 1),
    lambda g, y, x, p: g * _boxcox_power(x, log, x, p),
    domain=[POSITIVE, (-2, 2)],
    saves="in",
)
boxcox1p = row(
    "boxcox1p",
    lambda g, y, x, p: g * power(1 + x, p - 1),
    lambda g, y, x, p: g * _boxcox_power(1 + x, log1p, x, p),
    domain=[POSITIVE, (-2, 2)],
    saves="in",
)
inv_boxcox = row(
    "inv_boxcox",
    lambda g, x, y, p: g * power(x, 1 - p),
    lambda g, x, y, p: g * (x * _inverse_power(y, p)),
    domain=[UNIT, UNIT],
)
inv_boxcox1p = row(
    "inv_boxcox1p",
    lambda g, x, y, p: g * power(x + 1, 1 - p),
    lambda g, x, y, p: g * ((x + 1) * _inverse_power(y, p)),
    domain=[UNIT, UNIT],
)


def _ratio(x: Any, y: Any) -> Any:
    """x / y, and 0 where x is 0."""
    zero = equal(x, 0)
    return where(zero, 0, x / where(zero, 1, y))


def _log_ratio(x: Any, y: Any) -> Any:
    return log(x / y)


xlogy = row(
    "xlogy",
    lambda g, r, x, y: times(g, quietly(log, y)),
    lambda g, r, x, y: times(g, _ratio(x, y)),
    domain=[POSITIVE] * 2,
)
xlog1py = row(
    "xlog1py",
    lambda g, r, x, y: times(g, quietly(log1p, y)),
    lambda g, r, x, y: times(g, _ratio(x, 1 + y)),
    domain=[POSITIVE] * 2,
)
entr = row("entr", lambda g, y, x: -times(g, quietly(log, x) + 1), domain=[POSITIVE])
rel_entr = row(
    "rel_entr",
    lambda g, r, x, y: times(g, quietly(_log_ratio, x, y) + 1),
    lambda g, r, x, y: -times(g, quietly(divide, x, y)),
    domain=[POSITIVE] * 2,
)
kl_div = row(
    "kl_div",
    lambda g, r, x, y: times(g, quietly(_log_ratio, x, y)),
    lambda g, r, x, y: times(g, 1 - quietly(divide, x, y)),
    domain=[POSITIVE] * 2,
)
huber = row(
    "huber",
    lambda g, y, delta, r: g * where(less(absolute(r), delta), 0, absolute(r) - delta),
    lambda g, y, delta, r: g * where(less(absolute(r), delta), r, sign(r) * delta),
    domain=[(0.5, 0.9), (-2, 2)],
)


def _radius(delta: Any, r: Any) -> Any:
    """The root of delta**2 + r**2; 1 where both are 0, and so are the slopes."""
    origin = logical_and(equal(delta, 0), equal(r, 0))
    return hypot(where(origin, 1.0, delta), r)


def _widening(delta: Any, r: Any) -> Any:
    """The derivative of pseudo_huber(delta, r) in delta."""
    h = _radius(delta, r)
    return square(r / (h + delta)) * r * (r / h)


pseudo_huber = row(
    "pseudo_huber",
    lambda g, y, delta, r: g * _widening(delta, r),
    lambda g, y, delta, r: g * (delta * (r / _radius(delta, r))),
    domain=[(0.5, 0.9), (-2, 2)],
    saves="in",
)

# ------------------------------------------------------------------ error functions and the normal distribution
erf = row("erf", lambda g, y, x: g * (exp(-square(x)) * (2 / ROOT_PI)), saves="in")
erfc = row("erfc", lambda g, y, x: g * (exp(-square(x)) * (-2 / ROOT_PI)), saves="in")
erfi = row("erfi", lambda g, y, x: g * (exp(square(x)) * (2 / ROOT_PI)), saves="in")
erfcx = row("erfcx", lambda g, y, x: g * (2 * (x * y) - 2 / ROOT_PI))
dawsn = row("dawsn", lambda g, y, x: g * (1 - 2 * (x * y)))
erfinv = row("erfinv", lambda g, y, x: g * (exp(square(y)) * (ROOT_PI / 2)), domain=[(-0.9, 0.9)], saves="out")
erfcinv = row("erfcinv", lambda g, y, x: g * (exp(square(y)) * (-ROOT_PI / 2)), domain=[(0.1, 1.9)], saves="out")
ndtr = row("ndtr", lambda g, y, x: g * (exp(square(x) * -0.5) / ROOT_2PI), saves="in")
ndtri = row("ndtri", lambda g, y, p: g * (exp(square(y) * 0.5) * ROOT_2PI), domain=[UNIT], saves="out")
ndtri_exp = row("ndtri_exp", lambda g, y, x: g * (exp(square(y) * 0.5 + x) * ROOT_2PI), domain=[(-3, -0.2)])
log_ndtr = row("log_ndtr", lambda g, y, x: g * (exp(square(x) * -0.5 - y) / ROOT_2PI))
owens_t = row(
    "owens_t",
    lambda g, y, h, a: g * (exp(square(h) * -0.5) * erf(a * h * 0.5**0.5) * (-0.5 / ROOT_2PI)),
    lambda g, y, h, a: g * (exp(square(h) * (1 + square(a)) * -0.5) / ((1 + square(a)) * (2 * PI))),
    domain=[(-2, 2)] * 2,
    saves="in",
)
wofz = row("wofz", lambda g, y, z: g * (2j / ROOT_PI - 2 * (z * y)))


def _voigt_profile(x: Any, sigma: Any, gamma: Any) -> Any:
    """By the Faddeeva function."""
    sharp = equal(sigma, 0)  # Cauchy's distribution, and how it begins to differ
    width, z = where(sharp, 1.0, sigma) * 2**0.5, x + 1j * gamma
    inverse = 1 / where(sharp, z, 1.0)
    cauchy = real(1j / PI * (inverse + square(sigma) * inverse**3 + 3 * square(square(sigma)) * inverse**5))
    return where(sharp, cauchy, real(wofz(z / width)) / (width * ROOT_PI))


defines(special.voigt_profile)(called(None, special.voigt_profile, _voigt_profile))


# ------------------------------------------------------------------ gamma and beta functions
gamma = row("gamma", lambda g, y, x: g * (y * psi(x)), domain=[POSITIVE])
gammaln = row("gammaln", lambda g, y, x: g * psi(x), domain=[POSITIVE], saves="in")
loggamma = row("loggamma", lambda g, y, x: g * psi(x), domain=[POSITIVE], saves="in")
rgamma = row("rgamma", lambda g, y, x: g * _rgamma_slope(y, x), domain=[POSITIVE])
gammasgn = row("gammasgn", CONSTANT, domain=[POSITIVE])
psi = row("psi", lambda g, y, x: g * single(polygamma(1, x), x.dtype), domain=[POSITIVE], saves="in")
polygamma = row("polygamma", CONSTANT, lambda g, y, n, x: g * polygamma(n + 1, x), domain=[ORDER, POSITIVE], saves="in")
beta = row(
    "beta",
    lambda g, y, a, b: g * _beta_slope(y, a, b),
    lambda g, y, a, b: g * _beta_slope(y, b, a),
    domain=[POSITIVE] * 2,
)
betaln = row(
    "betaln",
    lambda g, y, a, b: g * _psi_change(a, a + b),
    lambda g, y, a, b: g * _psi_change(b, a + b),
    domain=[POSITIVE] * 2,
    saves="in",
)
poch = row(
    "poch",
    lambda g, y, a, m: g * _poch_slope(y, a, m),
    # where gamma(a) has a pole, it is 0 but for single numbers m
    lambda g, y, a, m: g * where(_pole(a), 0.0, y * psi(where(_pole(a), 1.0, a + m))),
    domain=[POSITIVE] * 2,
)
binom = row(
    "binom",
    lambda g, y, n, k: g * _binom_above(y, n, k),
    lambda g, y, n, k: g * _binom_below(y, n, k),
    domain=[(3, 5), POSITIVE],
)


# Where gamma has a pole, a quotient by it is 0 and its logarithm's derivative infinite. There, by reflection,
# 1 / gamma(x) is gamma(1 - x) sin(pi x) / pi, which has derivatives of all orders. What is not chosen is made of 1/2.
def _pole(x: Any) -> Any:
    return logical_and(less(x, 0.5), equal(x, rint(x)))


def _reflected(x: Any, change: Any) -> Any:
    """The derivative of c / gamma(x), over c gamma(1 - x); change: that of log(c gamma(1 - x))."""
    return change * sin(PI * x) / PI + cos(PI * x)


def _rgamma_slope(y: Any, x: Any) -> Any:
    pole = _pole(x)
    z = where(pole, x, 0.5)
    return where(pole, gamma(1 - z) * _reflected(z, -psi(1 - z)), -(y * psi(where(pole, 0.5, x))))


def _psi_change(a: Any, c: Any, but: Any = False) -> Any:
    """psi(a) - psi(c), of 1 - a and 1 - c where that is the same and both are to the left of 1/2: a - c is an integer.
    Of 1/2 where `but`."""
    left = logical_and(logical_and(less(a, 0.5), less(c, 0.5)), equal(a - c, rint(a - c)))
    turn = lambda x: where(but, 0.5, where(left, 1 - x, x))
    return psi(turn(a)) - psi(turn(c))


def _beta_slope(y: Any, a: Any, b: Any) -> Any:
    """The derivative of y = beta(a, b) in a."""
    pole = logical_and(_pole(a + b), logical_not(logical_or(_pole(a), _pole(b))))
    p, q, c = (where(pole, x, 0.5) for x in (a, b, a + b))
    there = gamma(p) * gamma(q) * gamma(1 - c) * _reflected(c, psi(p) - psi(1 - c))
    return where(pole, there, y * _psi_change(a, a + b, pole))


def _poch_slope(y: Any, a: Any, m: Any) -> Any:
    pole = logical_and(_pole(a), logical_not(_pole(a + m)))
    b, c = (where(pole, x, 0.5) for x in (a, a + m))
    there = gamma(c) * gamma(1 - b) * _reflected(b, psi(c) - psi(1 - b))
    return where(pole, there, y * _psi_change(a + m, a, pole))


def _binom_above(y: Any, n: Any, k: Any) -> Any:
    """The derivative of y = binom(n, k) in n."""
    pole = logical_and(_pole(n - k + 1), logical_not(_pole(n + 1)))
    p, q, z = (where(pole, x, 0.5) for x in (n + 1, k - n, n - k + 1))
    return where(pole, beta(p, q) * _reflected(z, psi(p) - psi(q)), y * _psi_change(n + 1, n - k + 1, pole))


def _binom_below(y: Any, n: Any, k: Any) -> Any:
    """The derivative of y = binom(n, k) in k."""
    above, below = _pole(n - k + 1), _pole(k + 1)
    pole = logical_and(logical_or(above, below), logical_not(_pole(n + 1)))
    p = where(pole, n + 1, 0.5)
    # one that is 1 less the argument of gamma at its pole, and the other one's argument
    q, r = (where(pole, where(above, x, y), 0.5) for x, y in ((k - n, -k), (k + 1, n - k + 1)))
    there = beta(p, q) * _reflected(1 - q, psi(r) - psi(q))
    u, v = (where(pole, 0.5, x) for x in (n - k + 1, k + 1))
    return where(pole, where(above, -there, there), y * (psi(u) - psi(v)))


_BERNOULLI = special.bernoulli(16)[2::2] / special.factorial(onp.arange(2, 17, 2))  # B(2j) / (2j)!


def _zeta_slope(s: Any, q: Any = 1.0) -> Any:
    """The derivative of zeta(s, q) in s, for s above 1: Euler and Maclaurin's sum, term by term."""
    w = q + 10
    size, near = log(w), expand_dims(q, axis=-1) + onp.arange(10)
    out = 0.5 * size + w * (size / (s - 1) + 1 / square(s - 1))
    rising, slope = s / w, 1 / s  # the product of s + i over w, and its logarithm's derivative
    for j, b in enumerate(_BERNOULLI):
        out = out + b * rising * (size - slope)
        up = s + 2 * j + 1
        rising, slope = rising * up * (up + 1) / square(w), slope + 1 / up + 1 / (up + 1)
    head = sum_(power(near, -expand_dims(s, axis=-1)) * log(near), axis=-1)
    return where(less(1, s), -(head + out * power(w, -s)), onp.nan)


zeta = row(
    "zeta",
    lambda g, y, s, *q: single(g * _zeta_slope(s, *q), y.dtype),
    lambda g, y, s, q: -g * (s * zeta(s + 1, q)),
    domain=[(2, 4), POSITIVE],
    saves="both",
)
defines(special.zeta)(lambda x, q=None: zeta(operand(x)) if q is None else zeta(operand(x), operand(q)))

# ------------------------------------------------------------------ hypergeometric functions, in their last argument
hyp0f1 = row("hyp0f1", None, lambda g, y, b, z: g * (hyp0f1(b + 1, z) / b), domain=[POSITIVE, UNIT], saves="in")
hyp1f1 = row(
    "hyp1f1",
    *[None] * 2,
    lambda g, y, a, b, z: g * (a / b * hyp1f1(a + 1, b + 1, z)),
    domain=[POSITIVE, POSITIVE, UNIT],
    saves="in",
)
hyp2f1 = row(
    "hyp2f1",
    *[None] * 3,
    lambda g, y, a, b, c, z: g * (a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)),
    domain=[POSITIVE, POSITIVE, POSITIVE, (-0.8, 0.6)],
    saves="in",
)
hyperu = row(
    "hyperu",
    *[None] * 2,
    lambda g, y, a, b, z: -g * (a * hyperu(a + 1, b + 1, z)),
    domain=[POSITIVE, (2, 3), POSITIVE],
    saves="in",
)
