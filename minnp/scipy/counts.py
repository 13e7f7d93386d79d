"""The discrete distributions of scipy.stats that have gradients, by the probabilities of their counts."""

from __future__ import annotations

from math import inf

from ..numpy.ufuncs import absolute, exp, expm1, log1p, sqrt, square, tanh
from ..numpy.ufuncs import log as ln
from .bessel import ive
from .distributions import discrete
from .incomplete import betainc, gammainc, gammaincc
from .rows import betaln, entr, gammaln, xlog1py, xlogy, zeta

discrete(
    "poisson", "mu", lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu, 0, cdf=lambda k, mu: gammaincc(k + 1, mu),
    sf=lambda k, mu: gammainc(k + 1, mu), mean=lambda mu: mu, var=lambda mu: mu,
)  # fmt: skip
discrete(
    "bernoulli", "p", lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), 0, lambda p: 1, cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k, mean=lambda p: p, var=lambda p: p * (1 - p), entropy=lambda p: entr(p) + entr(1 - p),
)  # fmt: skip
discrete(
    "geom", "p", lambda k, p: xlog1py(k - 1, -p) + ln(p), 1, cdf=lambda k, p: -expm1(k * log1p(-p)),
    sf=lambda k, p: exp(k * log1p(-p)), mean=lambda p: 1 / p, var=lambda p: (1 - p) / square(p),
    entropy=lambda p: (entr(p) + entr(1 - p)) / p,
)  # fmt: skip
discrete(
    "binom", "n p", lambda k, n, p: gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p)
    + xlog1py(n - k, -p), 0, lambda n, p: n, cdf=lambda k, n, p: betainc(n - k, k + 1, 1 - p),
    sf=lambda k, n, p: betainc(k + 1, n - k, p), mean=lambda n, p: n * p, var=lambda n, p: n * p * (1 - p),
)  # fmt: skip
discrete(
    "nbinom", "n p", lambda k, n, p: gammaln(k + n) - gammaln(n * 1.0) - gammaln(k + 1) + n * ln(p) + xlog1py(k, -p), 0,
    cdf=lambda k, n, p: betainc(n * 1.0, k + 1, p), sf=lambda k, n, p: betainc(k + 1, n * 1.0, 1 - p),
    mean=lambda n, p: n * (1 - p) / p, var=lambda n, p: n * (1 - p) / square(p),
)  # fmt: skip
discrete(
    "betabinom", "n a b",
    lambda k, n, a, b: betaln(k + a, n - k + b) - betaln(a, b) - ln(n + 1.0) - betaln(n - k + 1, k + 1),
    0, lambda n, a, b: n, mean=lambda n, a, b: n * a / (a + b),
    var=lambda n, a, b: n * a * b * (a + b + n) / (square(a + b) * (a + b + 1)),
)  # fmt: skip
discrete(
    "betanbinom",
    "n a b",
    lambda k, n, a, b: betaln(a + n, b + k) - betaln(a, b) - ln(n + k) - betaln(n * 1.0, k + 1),
    0,
)
discrete(
    "logser", "p", lambda k, p: k * ln(p) - ln(k) - ln(-log1p(-p)), 1, mean=lambda p: p / ((p - 1) * log1p(-p)),
)  # fmt: skip
discrete(
    "planck", "lambda_", lambda k, rate: ln(-expm1(-rate)) - rate * k, 0, cdf=lambda k, rate: -expm1(-rate * (k + 1)),
    sf=lambda k, rate: exp(-rate * (k + 1)), mean=lambda rate: 1 / expm1(rate),
    var=lambda rate: exp(-rate) / square(expm1(-rate)),
)  # fmt: skip
discrete(
    "boltzmann", "lambda_ N", lambda k, rate, n: ln(-expm1(-rate)) - rate * k - ln(-expm1(-rate * n)), 0,
    lambda rate, n: n - 1, cdf=lambda k, rate, n: expm1(-rate * (k + 1)) / expm1(-rate * n),
)  # fmt: skip
discrete("dlaplace", "a", lambda k, a: ln(tanh(a * 0.5)) - a * absolute(k), -inf)
discrete("yulesimon", "alpha", lambda k, alpha: ln(alpha) + betaln(k, alpha + 1), 1)
discrete(
    "skellam", "mu1 mu2", lambda k, a, b: ln(ive(absolute(k), 2 * sqrt(a * b))) - square(sqrt(a) - sqrt(b))
    + 0.5 * k * ln(a / b), -inf, mean=lambda a, b: a - b, var=lambda a, b: a + b,
)  # fmt: skip
discrete("zipf", "a", lambda k, a: -a * ln(k) - ln(zeta(a, 1.0)), 1)
