"""The continuous distributions of scipy.stats that have gradients, each in its standard form."""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

import numpy as onp

from ..npx.activations import softplus
from ..numpy.ufuncs import (
    absolute,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    clip,
    cos,
    exp,
    expm1,
    less,
    log1p,
    logaddexp,
    sign,
    sin,
    sqrt,
    square,
    tanh,
    where,
)  # fmt: skip
from ..numpy.ufuncs import log as ln
from . import bessel
from . import rows as sp
from .distributions import above, continuous
from .incomplete import betainc, gammainc, gammaincc, stdtr
from .integrals import exp1
from .rows import betaln, gamma, gammaln, psi, xlog1py, xlogy

LOG_ROOT_2PI, EULER = 0.5 * log(2 * pi), 0.5772156649015329
POSITIVE, UNIT, NEGATIVE = (0.0, inf), (0.0, 1.0), (-inf, 0.0)


def constant(value: float) -> Any:
    """A moment that does not depend on the shapes."""
    return lambda *shapes: value


def normal(z: Any) -> Any:
    return square(z) * -0.5 - LOG_ROOT_2PI


# ------------------------------------------------------------------ the normal one and its kin
continuous(
    "norm", "", normal, sp.ndtr, lambda z: sp.ndtr(-z), sp.log_ndtr, lambda z: sp.log_ndtr(-z),
    mean=constant(0.0), var=constant(1.0), entropy=constant(LOG_ROOT_2PI + 0.5),
)  # fmt: skip
continuous(
    "halfnorm", "", lambda z: normal(z) + log(2), lambda z: sp.erf(z * 0.5**0.5), lambda z: sp.erfc(z * 0.5**0.5),
    support=POSITIVE, mean=constant((2 / pi) ** 0.5), var=constant(1 - 2 / pi),
    entropy=constant(0.5 * log(pi / 2) + 0.5),
)  # fmt: skip
continuous(
    "lognorm", "s", lambda z, s: square(ln(z) / s) * -0.5 - ln(s * z) - LOG_ROOT_2PI, lambda z, s: sp.ndtr(ln(z) / s),
    lambda z, s: sp.ndtr(-ln(z) / s), support=POSITIVE, mean=lambda s: exp(square(s) * 0.5),
    var=lambda s: exp(square(s)) * expm1(square(s)), entropy=lambda s: ln(s) + (LOG_ROOT_2PI + 0.5),
)  # fmt: skip
continuous(
    "skewnorm", "a", lambda z, a: normal(z) + sp.log_ndtr(a * z) + log(2),
    lambda z, a: sp.ndtr(z) - 2 * sp.owens_t(z, a),
    lambda z, a: sp.ndtr(-z) + 2 * sp.owens_t(z, a), mean=lambda a: a * (2 / pi) ** 0.5 / sqrt(1 + square(a)),
    var=lambda a: 1 - square(a) * (2 / pi) / (1 + square(a)),
)  # fmt: skip
continuous(
    "exponnorm", "K", lambda z, k: 0.5 / square(k) - z / k + sp.log_ndtr(z - 1 / k) - ln(k),
    lambda z, k: sp.ndtr(z) - exp(0.5 / square(k) - z / k + sp.log_ndtr(z - 1 / k)),
    lambda z, k: sp.ndtr(-z) + exp(0.5 / square(k) - z / k + sp.log_ndtr(z - 1 / k)),
    mean=lambda k: k, var=lambda k: 1 + square(k),
)  # fmt: skip
continuous(
    "foldnorm", "c", lambda z, c: normal(z - c) + log1p(exp(-2 * c * z)),
    lambda z, c: sp.ndtr(z - c) - sp.ndtr(-c - z), lambda z, c: sp.ndtr(c - z) + sp.ndtr(-c - z), support=POSITIVE,
)  # fmt: skip
continuous(
    "johnsonsu", "a b", lambda z, a, b: ln(b) - 0.5 * log1p(square(z)) + normal(a + b * arcsinh(z)),
    lambda z, a, b: sp.ndtr(a + b * arcsinh(z)), lambda z, a, b: sp.ndtr(-a - b * arcsinh(z)),
)  # fmt: skip
continuous(
    "johnsonsb", "a b", lambda z, a, b: ln(b) - ln(z * (1 - z)) + normal(a + b * sp.logit(z)),
    lambda z, a, b: sp.ndtr(a + b * sp.logit(z)), lambda z, a, b: sp.ndtr(-a - b * sp.logit(z)), support=UNIT,
)  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal distribution's mass between a and b, which may be infinite."""
    a, b = clip(a, -1e8, 1e8), clip(b, -1e8, 1e8)
    right = less(0, a)
    most, rest = sp.log_ndtr(where(right, -a, b)), sp.log_ndtr(where(right, -b, a))
    return most + log1p(-exp(rest - most))


def _truncated_mean(a: Any, b: Any) -> Any:
    a, b = clip(a, -1e8, 1e8), clip(b, -1e8, 1e8)
    return exp(normal(a) - _log_mass(a, b)) - exp(normal(b) - _log_mass(a, b))


def _truncated_var(a: Any, b: Any) -> Any:
    a, b = clip(a, -1e8, 1e8), clip(b, -1e8, 1e8)
    second = a * exp(normal(a) - _log_mass(a, b)) - b * exp(normal(b) - _log_mass(a, b))
    return 1 + second - square(_truncated_mean(a, b))


continuous(
    "truncnorm", "a b", lambda z, a, b: normal(z) - _log_mass(a, b),
    lambda z, a, b: exp(_log_mass(a, z) - _log_mass(a, b)),
    lambda z, a, b: exp(_log_mass(z, b) - _log_mass(a, b)), support=lambda a, b: (a, b),
    mean=_truncated_mean, var=_truncated_var,
)  # fmt: skip

# ------------------------------------------------------------------ on the whole line
continuous(
    "laplace", "", lambda z: -absolute(z) - log(2), lambda z: 0.5 + sign(z) * (-0.5 * expm1(-absolute(z))),
    mean=constant(0.0), var=constant(2.0), entropy=constant(1 + log(2)),
)  # fmt: skip
continuous(
    "logistic", "", lambda z: -z - 2 * softplus(-z), sp.expit, lambda z: sp.expit(-z), sp.log_expit,
    lambda z: sp.log_expit(-z), mean=constant(0.0), var=constant(pi**2 / 3), entropy=constant(2.0),
)  # fmt: skip
continuous(
    "genlogistic", "c", lambda z, c: ln(c) - z + (c + 1) * sp.log_expit(z), lambda z, c: exp(c * sp.log_expit(z)),
    lambda z, c: -expm1(c * sp.log_expit(z)), lambda z, c: c * sp.log_expit(z),
    mean=lambda c: psi(c) + EULER, var=lambda c: sp.polygamma(1, c) + pi**2 / 6,
)  # fmt: skip
continuous(
    "hypsecant", "", lambda z: log(2 / pi) - logaddexp(z, -z), lambda z: (2 / pi) * arctan(exp(z)),
    lambda z: (2 / pi) * arctan(exp(-z)), mean=constant(0.0), var=constant(pi**2 / 4), entropy=constant(log(2 * pi)),
)  # fmt: skip
continuous("cauchy", "", lambda z: -log1p(square(z)) - log(pi), lambda z: 0.5 + arctan(z) / pi,
           lambda z: 0.5 - arctan(z) / pi, entropy=constant(log(4 * pi)))  # fmt: skip
continuous(
    "t", "df", lambda z, df: gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * ln(df * pi)
    - (df + 1) / 2 * log1p(square(z) / df), lambda z, df: stdtr(df, z), lambda z, df: stdtr(df, -z),
    mean=lambda df: above(1, df, lambda df: df * 0),
    var=lambda df: above(1, df, lambda df: above(2, df, lambda df: df / (df - 2)), nan),
    entropy=lambda df: (df + 1) / 2 * (psi((df + 1) / 2) - psi(df / 2)) + 0.5 * ln(df) + betaln(df / 2, 0.5),
)  # fmt: skip
continuous(
    "gumbel_r", "", lambda z: -z - exp(-z), lambda z: exp(-exp(-z)), lambda z: -expm1(-exp(-z)), lambda z: -exp(-z),
    mean=constant(EULER), var=constant(pi**2 / 6), entropy=constant(EULER + 1),
)  # fmt: skip
continuous(
    "gumbel_l", "", lambda z: z - exp(z), lambda z: -expm1(-exp(z)), lambda z: exp(-exp(z)), logsf=lambda z: -exp(z),
    mean=constant(-EULER), var=constant(pi**2 / 6), entropy=constant(EULER + 1),
)  # fmt: skip
continuous(
    "gennorm", "beta", lambda z, b: ln(b * 0.5) - gammaln(1 / b) - absolute(z) ** b,
    lambda z, b: 0.5 + 0.5 * sign(z) * gammainc(1 / b, absolute(z) ** b), mean=constant(0.0),
    var=lambda b: exp(gammaln(3 / b) - gammaln(1 / b)), entropy=lambda b: 1 / b - ln(b * 0.5) + gammaln(1 / b),
)  # fmt: skip
continuous(
    "dweibull", "c", lambda z, c: ln(c * 0.5) + (c - 1) * ln(absolute(z)) - absolute(z) ** c,
    lambda z, c: 0.5 - 0.5 * sign(z) * expm1(-(absolute(z) ** c)),
    mean=constant(0.0), var=lambda c: gamma(1 + 2 / c),
)  # fmt: skip
continuous(
    "dgamma", "a", lambda z, a: (a - 1) * ln(absolute(z)) - absolute(z) - gammaln(a) - log(2),
    lambda z, a: 0.5 + 0.5 * sign(z) * gammainc(a, absolute(z)), mean=constant(0.0), var=lambda a: a * (a + 1),
)  # fmt: skip
continuous(
    "moyal", "", lambda z: normal(0.0) - 0.5 * (z + exp(-z)), lambda z: sp.erfc(exp(z * -0.5) * 0.5**0.5),
    lambda z: sp.erf(exp(z * -0.5) * 0.5**0.5), mean=constant(EULER + log(2)), var=constant(pi**2 / 2),
)  # fmt: skip
continuous(
    "loggamma", "c", lambda z, c: c * z - exp(z) - gammaln(c), lambda z, c: gammainc(c, exp(z)),
    lambda z, c: gammaincc(c, exp(z)), mean=lambda c: psi(c), var=lambda c: sp.polygamma(1, c),
)  # fmt: skip
for _name, _support in [("vonmises", (-inf, inf)), ("vonmises_line", (-pi, pi))]:
    continuous(
        _name, "kappa", lambda z, kappa: kappa * sp.cosm1(z) - ln(bessel.i0e(kappa)) - log(2 * pi), support=_support,
        entropy=lambda k: k - k * bessel.i1e(k) / bessel.i0e(k) + ln(bessel.i0e(k)) + log(2 * pi),
    )  # fmt: skip


def _extreme(z: Any, c: Any) -> Any:
    """-log1p(-c z) / c, which is z at c = 0."""
    return z * sp.gauss(1.0, 1.0, 2.0, c * z)


def _bound(c: Any, sign: float, low: float, high: float) -> tuple[Any, Any]:
    """The support of extremes: sign / c ends it above where that is positive, else below."""
    with onp.errstate(divide="ignore"):
        end = onp.where(c == 0, inf, sign / c)
    return onp.where(end < 0, end, low), onp.where(end > 0, end, high)


continuous(
    "genextreme", "c", lambda z, c: (c - 1) * _extreme(z, c) - exp(-_extreme(z, c)),
    lambda z, c: exp(-exp(-_extreme(z, c))), lambda z, c: -expm1(-exp(-_extreme(z, c))),
    lambda z, c: -exp(-_extreme(z, c)),
    support=lambda c: _bound(c, 1.0, -inf, inf), entropy=lambda c: EULER * (1 - c) + 1,
)  # fmt: skip

# ------------------------------------------------------------------ from 0 on
continuous(
    "expon", "", lambda z: -z, lambda z: -expm1(-z), lambda z: exp(-z), logsf=lambda z: -z, support=POSITIVE,
    mean=constant(1.0), var=constant(1.0), entropy=constant(1.0),
)  # fmt: skip
for _name in ("gamma", "erlang"):
    continuous(
        _name, "a", lambda z, a: xlogy(a - 1, z) - z - gammaln(a), lambda z, a: gammainc(a, z),
        lambda z, a: gammaincc(a, z),
        support=POSITIVE, mean=lambda a: a, var=lambda a: a, entropy=lambda a: psi(a) * (1 - a) + a + gammaln(a),
    )  # fmt: skip
continuous(
    "invgamma", "a", lambda z, a: -(a + 1) * ln(z) - 1 / z - gammaln(a), lambda z, a: gammaincc(a, 1 / z),
    lambda z, a: gammainc(a, 1 / z), support=POSITIVE, mean=lambda a: above(1, a, lambda a: 1 / (a - 1)),
    var=lambda a: above(2, a, lambda a: 1 / (square(a - 1) * (a - 2))),
    entropy=lambda a: a - (a + 1) * psi(a) + gammaln(a),
)  # fmt: skip
continuous(
    "chi2", "df", lambda z, df: xlogy(df / 2 - 1, z) - z / 2 - gammaln(df / 2) - df / 2 * log(2),
    lambda z, df: gammainc(df / 2, z / 2), lambda z, df: gammaincc(df / 2, z / 2), support=POSITIVE, mean=lambda df: df,
    var=lambda df: 2 * df, entropy=lambda df: df / 2 + log(2) + gammaln(df / 2) + (1 - df / 2) * psi(df / 2),
)  # fmt: skip
continuous(
    "chi", "df", lambda z, df: xlogy(df - 1, z) - square(z) / 2 - gammaln(df / 2) - (df / 2 - 1) * log(2),
    lambda z, df: gammainc(df / 2, square(z) / 2), lambda z, df: gammaincc(df / 2, square(z) / 2), support=POSITIVE,
    mean=lambda df: 2**0.5 * sp.poch(df / 2, 0.5), var=lambda df: df - 2 * square(sp.poch(df / 2, 0.5)),
    entropy=lambda df: gammaln(df / 2) + 0.5 * (df - log(2) - (df - 1) * psi(df / 2)),
)  # fmt: skip
continuous(
    "maxwell", "", lambda z: 2 * ln(z) - square(z) / 2 + 0.5 * log(2 / pi), lambda z: gammainc(1.5, square(z) / 2),
    lambda z: gammaincc(1.5, square(z) / 2), support=POSITIVE, mean=constant(2 * (2 / pi) ** 0.5),
    var=constant(3 - 8 / pi), entropy=constant(EULER + 0.5 * log(2 * pi) - 0.5),
)  # fmt: skip
continuous(
    "rayleigh", "", lambda z: ln(z) - square(z) / 2, lambda z: -expm1(square(z) * -0.5),
    lambda z: exp(square(z) * -0.5),
    logsf=lambda z: square(z) * -0.5, support=POSITIVE, mean=constant((pi / 2) ** 0.5), var=constant(2 - pi / 2),
    entropy=constant(EULER / 2 + 1 - 0.5 * log(2)),
)  # fmt: skip
continuous("rice", "b", lambda z, b: ln(z) - square(z - b) * 0.5 + ln(bessel.i0e(z * b)), support=POSITIVE)
continuous(
    "nakagami", "nu", lambda z, nu: log(2) + xlogy(nu, nu) - gammaln(nu) + xlogy(2 * nu - 1, z) - nu * square(z),
    lambda z, nu: gammainc(nu, nu * square(z)), lambda z, nu: gammaincc(nu, nu * square(z)), support=POSITIVE,
    mean=lambda nu: sp.poch(nu, 0.5) / sqrt(nu), var=lambda nu: 1 - square(sp.poch(nu, 0.5)) / nu,
)  # fmt: skip
continuous(
    "f", "dfn dfd", lambda z, n, d: 0.5 * n * ln(n / d) + xlogy(n / 2 - 1, z) - (n + d) / 2 * log1p(n / d * z)
    - betaln(n / 2, d / 2), lambda z, n, d: betainc(n / 2, d / 2, n * z / (n * z + d)),
    lambda z, n, d: betainc(d / 2, n / 2, d / (n * z + d)), support=POSITIVE,
    mean=lambda n, d: above(2, d + 0 * n, lambda d: d / (d - 2)),
    var=lambda n, d: above(4, d + 0 * n, lambda d: 2 * square(d) * (n + d - 2) / (n * square(d - 2) * (d - 4))),
)  # fmt: skip
continuous(
    "betaprime", "a b", lambda z, a, b: xlogy(a - 1, z) - (a + b) * log1p(z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z / (1 + z)), lambda z, a, b: betainc(b, a, 1 / (1 + z)), support=POSITIVE,
    mean=lambda a, b: above(1, b + 0 * a, lambda b: a / (b - 1)),
    var=lambda a, b: above(2, b + 0 * a, lambda b: a * (a + b - 1) / ((b - 2) * square(b - 1))),
)  # fmt: skip
continuous(
    "weibull_min", "c", lambda z, c: ln(c) + xlogy(c - 1, z) - z**c, lambda z, c: -expm1(-(z**c)),
    lambda z, c: exp(-(z**c)),
    logsf=lambda z, c: -(z**c), support=POSITIVE, mean=lambda c: gamma(1 + 1 / c),
    var=lambda c: gamma(1 + 2 / c) - square(gamma(1 + 1 / c)), entropy=lambda c: EULER * (1 - 1 / c) - ln(c) + 1,
)  # fmt: skip
continuous(
    "weibull_max", "c", lambda z, c: ln(c) + xlogy(c - 1, -z) - (-z) ** c, lambda z, c: exp(-((-z) ** c)),
    lambda z, c: -expm1(-((-z) ** c)), lambda z, c: -((-z) ** c), support=NEGATIVE, mean=lambda c: -gamma(1 + 1 / c),
    var=lambda c: gamma(1 + 2 / c) - square(gamma(1 + 1 / c)), entropy=lambda c: EULER * (1 - 1 / c) - ln(c) + 1,
)  # fmt: skip
continuous(
    "invweibull", "c", lambda z, c: ln(c) - (c + 1) * ln(z) - z**-c, lambda z, c: exp(-(z**-c)),
    lambda z, c: -expm1(-(z**-c)), lambda z, c: -(z**-c), support=POSITIVE,
    entropy=lambda c: 1 + EULER + EULER / c - ln(c),
)  # fmt: skip
continuous(
    "exponweib", "a c", lambda z, a, c: ln(a * c) + (a - 1) * ln(-expm1(-(z**c))) - z**c + (c - 1) * ln(z),
    lambda z, a, c: (-expm1(-(z**c))) ** a, support=POSITIVE,
)  # fmt: skip
continuous(
    "gompertz", "c", lambda z, c: ln(c) + z - c * expm1(z), lambda z, c: -expm1(-c * expm1(z)),
    lambda z, c: exp(-c * expm1(z)),
    logsf=lambda z, c: -c * expm1(z), support=POSITIVE, entropy=lambda c: 1 - ln(c) - exp(c) * exp1(c),
)  # fmt: skip
continuous(
    "invgauss", "mu", lambda z, mu: -1.5 * ln(z) - square(z / mu - 1) / (2 * z) - LOG_ROOT_2PI,
    lambda z, mu: sp.ndtr((z / mu - 1) / sqrt(z)) + exp(2 / mu + sp.log_ndtr(-(z / mu + 1) / sqrt(z))),
    lambda z, mu: sp.ndtr((1 - z / mu) / sqrt(z)) - exp(2 / mu + sp.log_ndtr(-(z / mu + 1) / sqrt(z))),
    support=POSITIVE, mean=lambda mu: mu, var=lambda mu: mu**3,
)  # fmt: skip
continuous(
    "halfcauchy", "", lambda z: log(2 / pi) - log1p(square(z)), lambda z: arctan(z) * (2 / pi),
    lambda z: arctan2(1.0, z) * (2 / pi), support=POSITIVE, entropy=constant(log(2 * pi)),
)  # fmt: skip
continuous(
    "halflogistic", "", lambda z: log(2) - z - 2 * log1p(exp(-z)), lambda z: tanh(z * 0.5), lambda z: 2 * sp.expit(-z),
    support=POSITIVE, mean=constant(log(4)), var=constant(pi**2 / 3 - log(4) ** 2), entropy=constant(2 - log(2)),
)  # fmt: skip
continuous(
    "levy", "", lambda z: -LOG_ROOT_2PI - 1.5 * ln(z) - 0.5 / z, lambda z: sp.erfc(sqrt(0.5 / z)),
    lambda z: sp.erf(sqrt(0.5 / z)), support=POSITIVE, entropy=constant((1 + 3 * EULER + log(16 * pi)) / 2),
)  # fmt: skip
continuous(
    "levy_l", "", lambda z: -LOG_ROOT_2PI - 1.5 * ln(-z) + 0.5 / z, lambda z: sp.erf(sqrt(-0.5 / z)),
    lambda z: sp.erfc(sqrt(-0.5 / z)), support=NEGATIVE, entropy=constant((1 + 3 * EULER + log(16 * pi)) / 2),
)  # fmt: skip
continuous(
    "genpareto", "c", lambda z, c: -(1 + c) * _extreme(z, -c), lambda z, c: -expm1(-_extreme(z, -c)),
    lambda z, c: exp(-_extreme(z, -c)), logsf=lambda z, c: -_extreme(z, -c),
    support=lambda c: (0.0, _bound(c, -1.0, 0.0, inf)[1]), entropy=lambda c: 1 + c,
)  # fmt: skip
continuous(
    "pareto", "b", lambda z, b: ln(b) - (b + 1) * ln(z), lambda z, b: 1 - z**-b, lambda z, b: z**-b,
    logsf=lambda z, b: -b * ln(z), support=(1, inf), mean=lambda b: above(1, b, lambda b: b / (b - 1)),
    var=lambda b: above(2, b, lambda b: b / ((b - 2) * square(b - 1))), entropy=lambda b: 1 + 1 / b - ln(b),
)  # fmt: skip
continuous(
    "lomax", "c", lambda z, c: ln(c) - (c + 1) * log1p(z), lambda z, c: -expm1(-c * log1p(z)),
    lambda z, c: exp(-c * log1p(z)),
    logsf=lambda z, c: -c * log1p(z), support=POSITIVE, mean=lambda c: above(1, c, lambda c: 1 / (c - 1)),
    var=lambda c: above(2, c, lambda c: c / ((c - 2) * square(c - 1))), entropy=lambda c: 1 + 1 / c - ln(c),
)  # fmt: skip
continuous(
    "fisk", "c", lambda z, c: ln(c) + (c - 1) * ln(z) - 2 * log1p(z**c), lambda z, c: sp.expit(c * ln(z)),
    lambda z, c: sp.expit(-c * ln(z)), support=POSITIVE, entropy=lambda c: 2 - ln(c),
    mean=lambda c: above(1, c, lambda c: pi / c / sin(pi / c)),
)  # fmt: skip
continuous(
    "burr12", "c d", lambda z, c, d: ln(c * d) + (c - 1) * ln(z) - (d + 1) * log1p(z**c),
    lambda z, c, d: -expm1(-d * log1p(z**c)), lambda z, c, d: exp(-d * log1p(z**c)),
    logsf=lambda z, c, d: -d * log1p(z**c),
    support=POSITIVE,
)  # fmt: skip
continuous(
    "burr", "c d", lambda z, c, d: ln(c * d) - (c + 1) * ln(z) - (d + 1) * log1p(z**-c),
    lambda z, c, d: exp(-d * log1p(z**-c)), lambda z, c, d: -expm1(-d * log1p(z**-c)),
    lambda z, c, d: -d * log1p(z**-c), support=POSITIVE,
)  # fmt: skip
continuous(
    "loglaplace", "c", lambda z, c: ln(c * 0.5) - ln(z) - c * absolute(ln(z)),
    lambda z, c: 0.5 - 0.5 * sign(ln(z)) * expm1(-c * absolute(ln(z))), support=POSITIVE,
    entropy=lambda c: log(2) + 1 - ln(c),
)  # fmt: skip

# ------------------------------------------------------------------ on an interval
continuous("uniform", "", lambda z: z * 0, lambda z: z, lambda z: 1 - z, support=UNIT, mean=constant(0.5),
           var=constant(1 / 12), entropy=constant(0.0))  # fmt: skip
continuous(
    "beta", "a b", lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z),
    lambda z, a, b: betainc(b, a, 1 - z), support=UNIT, mean=lambda a, b: a / (a + b),
    var=lambda a, b: a * b / (square(a + b) * (a + b + 1)),
    entropy=lambda a, b: betaln(a, b) - (a - 1) * psi(a) - (b - 1) * psi(b) + (a + b - 2) * psi(a + b),
)  # fmt: skip
continuous(
    "powerlaw", "a", lambda z, a: ln(a) + xlogy(a - 1, z), lambda z, a: z**a, lambda z, a: -expm1(a * ln(z)),
    lambda z, a: a * ln(z), support=UNIT, mean=lambda a: a / (a + 1), var=lambda a: a / ((a + 2) * square(a + 1)),
    entropy=lambda a: 1 - 1 / a - ln(a),
)  # fmt: skip
continuous(
    "arcsine", "", lambda z: -log(pi) - 0.5 * ln(z * (1 - z)), lambda z: arcsin(sqrt(z)) * (2 / pi),
    lambda z: arcsin(sqrt(1 - z)) * (2 / pi), support=UNIT, mean=constant(0.5), var=constant(1 / 8),
    entropy=constant(log(pi / 4)),
)  # fmt: skip
continuous(
    "semicircular", "", lambda z: log(2 / pi) + 0.5 * log1p(-square(z)),
    lambda z: 0.5 + (z * sqrt(1 - square(z)) + arcsin(z)) / pi, support=(-1, 1), mean=constant(0.0), var=constant(0.25),
)  # fmt: skip
continuous(
    "triang", "c", lambda z, c: log(2) + ln(where(less(z, c), z / c, (1 - z) / (1 - c))),
    lambda z, c: where(less(z, c), square(z) / c, 1 - square(1 - z) / (1 - c)), support=UNIT,
    mean=lambda c: (c + 1) / 3, var=lambda c: (1 - c + square(c)) / 18, entropy=lambda c: 0 * c + (0.5 - log(2)),
)  # fmt: skip
continuous("wrapcauchy", "c", lambda z, c: ln((1 - square(c)) / (1 + square(c) - 2 * c * cos(z))) - log(2 * pi),
           support=(0, 2 * pi), entropy=lambda c: log(2 * pi) + ln(1 - square(c)))  # fmt: skip
continuous(
    "truncexpon", "b", lambda z, b: -z - ln(-expm1(-b)), lambda z, b: expm1(-z) / expm1(-b),
    lambda z, b: (exp(-z) - exp(-b)) / -expm1(-b), support=lambda b: (0.0 * b, b),
)  # fmt: skip
for _name in ("loguniform", "reciprocal"):
    continuous(
        _name, "a b", lambda z, a, b: -ln(z) - ln(ln(b / a)), lambda z, a, b: ln(z / a) / ln(b / a),
        lambda z, a, b: ln(b / z) / ln(b / a), support=lambda a, b: (a, b), mean=lambda a, b: (b - a) / ln(b / a),
        var=lambda a, b: (square(b) - square(a)) / (2 * ln(b / a)) - square((b - a) / ln(b / a)),
        entropy=lambda a, b: 0.5 * ln(a * b) + ln(ln(b / a)),
    )  # fmt: skip
