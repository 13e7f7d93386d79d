"""Densities and distribution functions of scipy.stats, said in rows: gradients for the variable and all parameters.

(The exceptions are the distribution functions of t, gamma, chi2 and beta, with respect to their shapes.)
Arrays have values from SciPy itself; what follows is used when a gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi
from typing import Any

import numpy as onp
from scipy import stats

from ..core.dispatch import defines
from ..npx.activations import softplus
from ..numpy import ufuncs as uf
from ..numpy.arguments import as_array, operand, plain
from ..numpy.reductions import sum_
from ..numpy.systems import column, slogdet, solve
from ..numpy.ufuncs import arctan, exp, square, where
from . import rows as sp
from .incomplete import betainc, gammainc, gammaincc, stdtr
from .rows import betaln, gammaln, xlog1py, xlogy

LOG_ROOT_2PI = 0.5 * log(2 * pi)


def _parameters(names: list[str], x: Any, args: tuple, kwargs: dict) -> list:
    """x, then the parameters by name, loc 0 and scale 1 if not given."""
    given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args)), **kwargs}
    return [operand(x), *(operand(given[name]) for name in names)]


def _inside(z: Any, low: float, high: float) -> onp.ndarray:
    z = onp.asarray(plain(as_array(z)))
    return (z >= low) & (z <= high)


def continuous(
    name: str,
    shapes: str,
    logpdf: Callable,
    cdf: Callable | None = None,
    sf: Callable | None = None,
    logcdf: Callable | None = None,
    logsf: Callable | None = None,
    support: tuple[float, float] = (-inf, inf),
) -> None:
    """Define scipy.stats' `name` by its standard form: functions of z = (x - loc) / scale and of the shapes."""
    distribution, names, (low, high) = getattr(stats, name), [*shapes.split(), "loc", "scale"], support
    within = low + 0.5 if high == inf else 0.5 * (low + high)  # a place to stand where z is outside
    within = 0.5 if low == -inf else within

    def standard(of: Callable, below: float, above: float, density: bool = False) -> Callable:
        def definition(x: Any, *args: Any, **kwargs: Any) -> Any:
            x, *rest, loc, scale = _parameters(names, x, args, kwargs)
            z = (x - loc) / scale
            if support == (-inf, inf):
                out = of(z, *rest)
            else:
                inside = _inside(z, low, high)
                out = of(where(inside, z, within), *rest)
                # below and above are constants, which the density's scale must not shift
                out = where(inside, out - uf.log(scale) if density else out, where(z < low, below, above))
                return as_array(out)
            return as_array(out - uf.log(scale) if density else out)

        return definition

    log_density = standard(logpdf, -inf, -inf, density=True)
    defines(distribution.logpdf)(log_density)
    defines(distribution.pdf)(lambda x, *args, **kwargs: exp(log_density(x, *args, **kwargs)))
    if cdf is None:
        return
    sf = sf or (lambda z, *rest: 1 - cdf(z, *rest))
    defines(distribution.cdf)(standard(cdf, 0.0, 1.0))
    defines(distribution.sf)(standard(sf, 1.0, 0.0))
    defines(distribution.logcdf)(standard(logcdf or (lambda z, *rest: uf.log(cdf(z, *rest))), -inf, 0.0))
    defines(distribution.logsf)(standard(logsf or (lambda z, *rest: uf.log(sf(z, *rest))), 0.0, -inf))


def discrete(name: str, shapes: str, logpmf: Callable, low: float, high: Callable = lambda *shapes: inf) -> None:
    """Define scipy.stats' `name` by the logarithm of its probabilities at the integers k - loc."""
    distribution, names = getattr(stats, name), [*shapes.split(), "loc"]

    def log_mass(k: Any, *args: Any, **kwargs: Any) -> Any:
        k, *rest, loc = _parameters(names, k, args, kwargs)
        at = onp.asarray(plain(as_array(k - loc)), float)
        top = high(*(onp.asarray(plain(as_array(r))) for r in rest))
        inside = (at >= low) & (at <= top) & (at == onp.floor(at))
        return where(inside, logpmf(onp.where(inside, at, low), *rest), -inf)

    defines(distribution.logpmf)(log_mass)
    defines(distribution.pmf)(lambda k, *args, **kwargs: exp(log_mass(k, *args, **kwargs)))


# ------------------------------------------------------------------ one variable
continuous(
    "norm",
    "",
    lambda z: square(z) * -0.5 - LOG_ROOT_2PI,
    sp.ndtr,
    lambda z: sp.ndtr(-z),
    sp.log_ndtr,
    lambda z: sp.log_ndtr(-z),
)
continuous("halfnorm", "", lambda z: square(z) * -0.5 - LOG_ROOT_2PI + log(2), lambda z: sp.erf(z * 0.5**0.5),
           lambda z: sp.erfc(z * 0.5**0.5), support=(0, inf))  # fmt: skip
continuous("lognorm", "s", lambda z, s: square(uf.log(z) / s) * -0.5 - uf.log(s * z) - LOG_ROOT_2PI,
           lambda z, s: sp.ndtr(uf.log(z) / s), lambda z, s: sp.ndtr(-uf.log(z) / s), support=(0, inf))  # fmt: skip
continuous("uniform", "", lambda z: z * 0, lambda z: z, lambda z: 1 - z, support=(0, 1))
continuous("expon", "", lambda z: -z, lambda z: -uf.expm1(-z), lambda z: exp(-z), logsf=lambda z: -z, support=(0, inf))
continuous("laplace", "", lambda z: -uf.absolute(z) - log(2),
           lambda z: 0.5 + uf.sign(z) * (-0.5 * uf.expm1(-uf.absolute(z))))  # fmt: skip
continuous(
    "logistic",
    "",
    lambda z: -z - 2 * softplus(-z),
    sp.expit,
    lambda z: sp.expit(-z),
    sp.log_expit,
    lambda z: sp.log_expit(-z),
)
continuous("cauchy", "", lambda z: -uf.log1p(square(z)) - log(pi), lambda z: 0.5 + arctan(z) / pi,
           lambda z: 0.5 - arctan(z) / pi)  # fmt: skip
continuous("gumbel_r", "", lambda z: -z - exp(-z), lambda z: exp(-exp(-z)), lambda z: -uf.expm1(-exp(-z)),
           lambda z: -exp(-z))  # fmt: skip
continuous(
    "t",
    "df",
    lambda z, df: gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * uf.log(df * pi)
    - (df + 1) / 2 * uf.log1p(square(z) / df),
    lambda z, df: stdtr(df, z),
    lambda z, df: stdtr(df, -z),
)  # fmt: skip
continuous("gamma", "a", lambda z, a: xlogy(a - 1, z) - z - gammaln(a), lambda z, a: gammainc(a, z),
           lambda z, a: gammaincc(a, z), support=(0, inf))  # fmt: skip
continuous("invgamma", "a", lambda z, a: -(a + 1) * uf.log(z) - 1 / z - gammaln(a),
           lambda z, a: gammaincc(a, 1 / z), lambda z, a: gammainc(a, 1 / z), support=(0, inf))  # fmt: skip
continuous("chi2", "df", lambda z, df: xlogy(df / 2 - 1, z) - z / 2 - gammaln(df / 2) - df / 2 * log(2),
           lambda z, df: gammainc(df / 2, z / 2), lambda z, df: gammaincc(df / 2, z / 2),
           support=(0, inf))  # fmt: skip
continuous("beta", "a b", lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
           lambda z, a, b: betainc(a, b, z), lambda z, a, b: betainc(b, a, 1 - z), support=(0, 1))  # fmt: skip
continuous("weibull_min", "c", lambda z, c: uf.log(c) + xlogy(c - 1, z) - z**c, lambda z, c: -uf.expm1(-(z**c)),
           lambda z, c: exp(-(z**c)), logsf=lambda z, c: -(z**c), support=(0, inf))  # fmt: skip
continuous("pareto", "b", lambda z, b: uf.log(b) - (b + 1) * uf.log(z), lambda z, b: 1 - z**-b, lambda z, b: z**-b,
           logsf=lambda z, b: -b * uf.log(z), support=(1, inf))  # fmt: skip

discrete("poisson", "mu", lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu, 0)
discrete("bernoulli", "p", lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), 0, lambda p: 1)
discrete("geom", "p", lambda k, p: xlog1py(k - 1, -p) + uf.log(p), 1)
discrete(
    "binom",
    "n p",
    lambda k, n, p: gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p),
    0,
    lambda n, p: n,
)
discrete(
    "nbinom",
    "n p",
    lambda k, n, p: gammaln(k + n) - gammaln(n * 1.0) - gammaln(k + 1) + n * uf.log(p) + xlog1py(k, -p),
    0,
)


# ------------------------------------------------------------------ several variables
@defines(stats.multivariate_normal.logpdf)
def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """All entries of cov count as variables of their own: for a symmetric cov the gradient is symmetric."""
    x, cov = as_array(x), as_array(cov)
    mean = as_array(0.0 if mean is None else mean)
    n = max(mean.size if mean.ndim else 1, cov.shape[-1] if cov.ndim else 1)
    if cov.ndim < 2:
        cov = onp.eye(n) * cov
    if n == 1:
        x = column(x)
    elif x.ndim == 0:
        x = x.reshape((1,))
    away = column(x - mean)
    distance = sum_(away * solve(cov, away), axis=(-2, -1))
    return (distance + slogdet(cov)[1] + n * log(2 * pi)) * -0.5


defines(stats.multivariate_normal.pdf)(lambda *args, **kwargs: exp(_normal_logpdf(*args, **kwargs)))


@defines(stats.dirichlet.logpdf)
def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = as_array(x), as_array(alpha)
    if x.ndim > 1:
        alpha = alpha.reshape((-1,) + (1,) * (x.ndim - 1))
    norm = gammaln(sum_(alpha)) - sum_(gammaln(alpha))
    return norm + sum_(xlogy(alpha - 1, x), axis=0)


defines(stats.dirichlet.pdf)(lambda *args, **kwargs: exp(_dirichlet_logpdf(*args, **kwargs)))
