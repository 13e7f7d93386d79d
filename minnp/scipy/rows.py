"""Rows of scipy.special's functions, around SciPy's kernels. What is not here has values, and no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp
from scipy import special

from ..core.dispatch import defines
from ..core.primitive import CONSTANT, Primitive, per_element, primitive
from ..numpy.arguments import operand
from ..numpy.calls import called
from ..numpy.facts import elementwise, spread
from ..numpy.ufuncs import absolute, equal, exp, less, log, power, sign, sin, square, where
from .borrowed import borrowed, single

PI, ROOT_PI, ROOT_2PI = 3.141592653589793, 1.7724538509055159, 2.5066282746310002
LN2, LN10 = 0.6931471805599453, 2.302585092994046
POSITIVE, UNIT, ORDER = (0.3, 3.0), (0.1, 0.9), (1, 2, 3)


def _row(name: str, *rules: Any, domain: Sequence[tuple] = (), saves: str = "both", **facts: Any) -> Primitive:
    """A row of a scipy.special function of real numbers. A domain is (low, high), or the integers an order may be."""
    kernel = getattr(special, name)
    domain = domain or [(-2.0, 2.0)]

    def samples() -> list:
        draw = lambda i, d: onp.array(d) if len(d) == 3 else spread(2, 3, low=d[0], high=d[1], seed=i)
        return [(tuple(draw(i, d) for i, d in enumerate(domain)), {})]

    smooth = all(callable(rule) for rule in rules)
    row = primitive(
        f"scipy.special.{name}",
        numpy=kernel,
        vjp=CONSTANT if rules == (CONSTANT,) else list(rules),
        jvp="elementwise" if smooth else None,
        saves=saves,
        shape=elementwise(kernel) if isinstance(kernel, onp.ufunc) else None,
        flops=per_element(20),
        samples=samples,
        **facts,
    )
    defines(kernel)(called(row, kernel) if isinstance(kernel, onp.ufunc) else lambda *args: row(*map(operand, args)))
    return row


# ------------------------------------------------------------------ exponentials, logarithms, entropies
expit = _row("expit", lambda g, y, x: g * (y * (1 - y)), saves="out")
log_expit = _row("log_expit", lambda g, y, x: g * expit(-x), saves="in")
logit = _row("logit", lambda g, y, x: g / (x * (1 - x)), domain=[UNIT], saves="in")
expm1 = _row("expm1", lambda g, y, x: g * (y + 1), saves="out")
log1p = _row("log1p", lambda g, y, x: g / (x + 1), domain=[(-0.7, 3)], saves="in")
exp2 = _row("exp2", lambda g, y, x: g * (y * LN2), saves="out")
exp10 = _row("exp10", lambda g, y, x: g * (y * LN10), saves="out")
cbrt = _row("cbrt", lambda g, y, x: g / (3 * (y * y)), domain=[POSITIVE], saves="out")
cosm1 = _row("cosm1", lambda g, y, x: -g * sin(x), saves="in")


def _ratio(x: Any, y: Any) -> Any:
    """x / y, and 0 where x is 0."""
    zero = equal(x, 0)
    return where(zero, 0, x / where(zero, 1, y))


xlogy = _row("xlogy", lambda g, r, x, y: g * log(y), lambda g, r, x, y: g * _ratio(x, y), domain=[POSITIVE] * 2)
xlog1py = _row(
    "xlog1py", lambda g, r, x, y: g * log1p(y), lambda g, r, x, y: g * _ratio(x, 1 + y), domain=[POSITIVE] * 2
)
entr = _row("entr", lambda g, y, x: -g * (log(x) + 1), domain=[POSITIVE])
rel_entr = _row(
    "rel_entr", lambda g, r, x, y: g * (log(x / y) + 1), lambda g, r, x, y: -g * (x / y), domain=[POSITIVE] * 2
)
kl_div = _row("kl_div", lambda g, r, x, y: g * log(x / y), lambda g, r, x, y: g * (1 - x / y), domain=[POSITIVE] * 2)
huber = _row(
    "huber",
    lambda g, y, delta, r: g * where(less(absolute(r), delta), 0, absolute(r) - delta),
    lambda g, y, delta, r: g * where(less(absolute(r), delta), r, sign(r) * delta),
    domain=[(0.5, 0.9), (-2, 2)],
)

# ------------------------------------------------------------------ error functions and the normal distribution
erf = _row("erf", lambda g, y, x: g * (exp(-square(x)) * (2 / ROOT_PI)), saves="in")
erfc = _row("erfc", lambda g, y, x: g * (exp(-square(x)) * (-2 / ROOT_PI)), saves="in")
erfi = _row("erfi", lambda g, y, x: g * (exp(square(x)) * (2 / ROOT_PI)), saves="in")
erfcx = _row("erfcx", lambda g, y, x: g * (2 * (x * y) - 2 / ROOT_PI))
dawsn = _row("dawsn", lambda g, y, x: g * (1 - 2 * (x * y)))
erfinv = _row("erfinv", lambda g, y, x: g * (exp(square(y)) * (ROOT_PI / 2)), domain=[(-0.9, 0.9)], saves="out")
erfcinv = _row("erfcinv", lambda g, y, x: g * (exp(square(y)) * (-ROOT_PI / 2)), domain=[(0.1, 1.9)], saves="out")
ndtr = _row("ndtr", lambda g, y, x: g * (exp(square(x) * -0.5) / ROOT_2PI), saves="in")
ndtri = _row("ndtri", lambda g, y, p: g * (exp(square(y) * 0.5) * ROOT_2PI), domain=[UNIT], saves="out")
log_ndtr = _row("log_ndtr", lambda g, y, x: g * (exp(square(x) * -0.5 - y) / ROOT_2PI))

# ------------------------------------------------------------------ gamma and beta functions
gamma = _row("gamma", lambda g, y, x: g * (y * psi(x)), domain=[POSITIVE])
gammaln = _row("gammaln", lambda g, y, x: g * psi(x), domain=[POSITIVE], saves="in")
loggamma = _row("loggamma", lambda g, y, x: g * psi(x), domain=[POSITIVE], saves="in")
rgamma = _row("rgamma", lambda g, y, x: -g * (y * psi(x)), domain=[POSITIVE])
gammasgn = _row("gammasgn", CONSTANT, domain=[POSITIVE])
psi = _row("psi", lambda g, y, x: g * single(polygamma(1, x), x.dtype), domain=[POSITIVE], saves="in")
polygamma = _row(
    "polygamma", CONSTANT, lambda g, y, n, x: g * polygamma(n + 1, x), domain=[ORDER, POSITIVE], saves="in"
)
beta = _row(
    "beta",
    lambda g, y, a, b: g * (y * (psi(a) - psi(a + b))),
    lambda g, y, a, b: g * (y * (psi(b) - psi(a + b))),
    domain=[POSITIVE] * 2,
)
betaln = _row(
    "betaln",
    lambda g, y, a, b: g * (psi(a) - psi(a + b)),
    lambda g, y, a, b: g * (psi(b) - psi(a + b)),
    domain=[POSITIVE] * 2,
    saves="in",
)


def _gamma_density(a: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) - x - gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


# None: no closed form with respect to the parameters
gammainc = _row("gammainc", None, lambda g, y, a, x: g * _gamma_density(a, x), domain=[POSITIVE] * 2)
gammaincc = _row("gammaincc", None, lambda g, y, a, x: -g * _gamma_density(a, x), domain=[POSITIVE] * 2)
betainc = _row("betainc", None, None, lambda g, y, a, b, x: g * _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT])
if hasattr(special, "betaincc"):  # SciPy 1.11
    betaincc = _row(
        "betaincc", None, None, lambda g, y, a, b, x: -g * _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT]
    )


def _t_density(df: Any, t: Any) -> Any:
    scale = exp(gammaln(df * 0.5 + 0.5) - gammaln(df * 0.5)) / (df * PI) ** 0.5
    return power(1 + square(t) / df, (df + 1) * -0.5) * scale


stdtr = _row(
    "stdtr",
    None,
    lambda g, y, df, t: g * _t_density(df, t),
    domain=[POSITIVE, (-2, 2)],
)


# ------------------------------------------------------------------ integrals and Bessel functions
expi = _row("expi", lambda g, y, x: g * (exp(x) / x), domain=[POSITIVE], saves="in")
exp1 = _row("exp1", lambda g, y, x: -g * (exp(-x) / x), domain=[POSITIVE], saves="in")


def _bessel(name: str, *leading: Any) -> Primitive:
    """A row with autograd's rule; its last argument is the one that has a gradient."""
    rule = borrowed("autograd.scipy.special", name, len(leading))
    return _row(name, *leading, rule, domain=[*[ORDER] * len(leading), POSITIVE])


j0, j1, y0, y1, i0, i1 = map(_bessel, ("j0", "j1", "y0", "y1", "i0", "i1"))
jn, yn, iv, ive = (_bessel(name, CONSTANT) for name in ("jn", "yn", "iv", "ive"))
kv = _row("kv", CONSTANT, lambda g, y, v, x: g * ((kv(v - 1, x) + kv(v + 1, x)) * -0.5), domain=[ORDER, POSITIVE])
k0 = _row("k0", lambda g, y, x: -g * k1(x), domain=[POSITIVE], saves="in")
k1 = _row("k1", lambda g, y, x: g * ((k0(x) + kv(2, x)) * -0.5), domain=[POSITIVE], saves="in")
i0e = _row("i0e", lambda g, y, x: g * (i1e(x) - sign(x) * y))
i1e = _row("i1e", lambda g, y, x: g * ((i0e(x) + ive(2, x)) * 0.5 - sign(x) * y))
