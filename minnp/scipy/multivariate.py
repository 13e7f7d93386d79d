"""The distributions of scipy.stats of several variables that have gradients: vectors, matrices, counts.

All entries of a covariance count as variables of their own: for a symmetric one the gradient is symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi
from typing import Any

import numpy as onp
from scipy import stats

from ..core.rows.dispatch import defines
from ..numpy import ufuncs as uf
from ..numpy.arguments import as_array, number, plain
from ..numpy.reductions import sum_
from ..numpy.shaping import concatenate, squeeze
from ..numpy.systems import T, column, slogdet, solve
from ..numpy.ufuncs import exp, square, where
from .bessel import ive
from .functions import multigammaln
from .rows import gammaln, psi, xlogy


def density(name: str, log_density: Callable, kind: str = "pdf", squeezes: bool = True) -> None:
    """Define a distribution's logpdf and pdf (or logpmf and pmf); a SciPy without it is passed over. Of most
    distributions SciPy leaves out the axes of length 1 of a result."""
    distribution = getattr(stats, name, None)
    log = (lambda *args, **kwargs: squeeze(log_density(*args, **kwargs))) if squeezes else log_density
    if distribution is not None:
        defines(getattr(distribution, f"log{kind}"))(log)
        defines(getattr(distribution, kind))(lambda *args, **kwargs: exp(log(*args, **kwargs)))


def _gaussian(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any, int]:
    """(x, mean, covariance matrix, dimension), read as SciPy reads them."""
    x, cov = as_array(x), as_array(cov)
    mean = as_array(0.0 if mean is None else mean)
    n = max(mean.size if mean.ndim else 1, cov.shape[-1] if cov.ndim else 1)
    if cov.ndim < 2:
        cov = onp.eye(n) * cov
    return x if n > 1 and x.ndim else column(x) if n == 1 else x.reshape((1,)), mean, cov, n


def _distance(x: Any, mean: Any, cov: Any) -> Any:
    """The square of Mahalanobis' distance."""
    away = column(x - mean)
    return sum_(away * solve(cov, away), axis=(-2, -1))


def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    x, mean, cov, n = _gaussian(x, mean, cov)
    if allow_singular and onp.linalg.matrix_rank(plain(as_array(cov)), hermitian=True) < n:
        return _singular_logpdf(x - mean, number(as_array(cov)))
    return (_distance(x, mean, cov) + slogdet(cov)[1] + n * log(2 * pi)) * -0.5


def _singular_logpdf(away: Any, cov: onp.ndarray) -> Any:
    """On the range of cov, which no gradient reaches: its rank is not continuous. Elsewhere the density is 0."""
    values, vectors = onp.linalg.eigh(cov)
    kept = values > onp.max(onp.abs(values)) * len(values) * onp.finfo(values.dtype).eps
    distance = sum_(square(away @ (vectors[:, kept] / onp.sqrt(values[kept]))), axis=-1)
    outside = onp.linalg.norm(plain(as_array(away)) @ vectors[:, ~kept], axis=-1) > 1e3 * onp.finfo(values.dtype).eps
    norm = float(onp.sum(onp.log(values[kept])) + onp.sum(kept) * log(2 * pi))
    return where(outside, -inf, (distance + norm) * -0.5)


density("multivariate_normal", _normal_logpdf)


@defines(stats.multivariate_normal.entropy)
def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    _, mean, cov, n = _gaussian(0.0 if mean is None else mean, mean, cov)
    return (slogdet(as_array(cov))[1] + n * (1 + log(2 * pi))) * 0.5 + 0 * sum_(as_array(mean))


def _t_logpdf(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    x, loc, shape, n = _gaussian(x, loc, shape)
    df = as_array(df)
    norm = gammaln((df + n) * 0.5) - gammaln(df * 0.5) - 0.5 * (n * uf.log(df * pi) + slogdet(shape)[1])
    return norm - (df + n) * 0.5 * uf.log1p(_distance(x, loc, shape) / df)


density("multivariate_t", _t_logpdf)


def _matrix_logpdf(X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    x = as_array(X)
    m, n = x.shape[-2:]
    rows, columns = (
        as_array(c) if onp.ndim(c) == 2 else onp.eye(k) * as_array(c) for c, k in ((rowcov, m), (colcov, n))
    )
    away = x if mean is None else x - as_array(mean)
    distance = sum_(away * T(solve(columns, T(solve(rows, away)))), axis=(-2, -1))
    return (distance + n * slogdet(rows)[1] + m * slogdet(columns)[1] + m * n * log(2 * pi)) * -0.5


density("matrix_normal", _matrix_logpdf)


def _wishart(inverse: bool) -> Callable:
    def logpdf(x: Any, df: Any, scale: Any) -> Any:
        x, df, scale = as_array(x), as_array(df), as_array(scale)
        scale = scale if scale.ndim == 2 else onp.eye(max(scale.size, 1)) * scale
        p = scale.shape[-1]
        # SciPy has several matrices along the last axis
        x = x.reshape((-1, 1, 1)) if p == 1 and x.ndim < 3 else onp.moveaxis(x, -1, 0) if x.ndim > 2 else x
        trace = sum_(solve(x, scale) * onp.eye(p) if inverse else solve(scale, x) * onp.eye(p), axis=(-2, -1))
        sides = (1, -df - p - 1) if inverse else (-1, df - p - 1)
        norm = 0.5 * df * (sides[0] * slogdet(scale)[1] - p * log(2)) - multigammaln(df * 0.5, p)
        return norm + 0.5 * (sides[1] * slogdet(x)[1] - trace)

    return logpdf


density("wishart", _wishart(inverse=False))
density("invwishart", _wishart(inverse=True))


# ------------------------------------------------------------------ on the simplex and the sphere
def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = as_array(x), as_array(alpha)
    if x.ndim > 1:
        alpha = alpha.reshape((-1,) + (1,) * (x.ndim - 1))
    if x.shape[0] < alpha.shape[0]:  # the last one is what is left
        x = concatenate(x, 1 - sum_(x, axis=0, keepdims=True), axis=0)
    norm = gammaln(sum_(alpha)) - sum_(gammaln(alpha))
    return norm + sum_(xlogy(alpha - 1, x), axis=0)


density("dirichlet", _dirichlet_logpdf)


@defines(stats.dirichlet.mean)
def _dirichlet_mean(alpha: Any) -> Any:
    alpha = as_array(alpha)
    return alpha / sum_(alpha)


@defines(stats.dirichlet.var)
def _dirichlet_var(alpha: Any) -> Any:
    alpha = as_array(alpha)
    total = sum_(alpha)
    return alpha * (total - alpha) / (square(total) * (total + 1))


@defines(stats.dirichlet.entropy)
def _dirichlet_entropy(alpha: Any) -> Any:
    alpha = as_array(alpha)
    total, n = sum_(alpha), alpha.shape[0]
    return sum_(gammaln(alpha)) - gammaln(total) + (total - n) * psi(total) - sum_((alpha - 1) * psi(alpha))


def _sphere_logpdf(x: Any, mu: Any = None, kappa: Any = 1) -> Any:
    mu, kappa = as_array(mu), as_array(kappa)
    half = mu.shape[-1] / 2
    norm = (half - 1) * uf.log(kappa) - half * log(2 * pi) - uf.log(ive(half - 1, kappa)) - kappa
    return norm + kappa * sum_(as_array(x) * mu, axis=-1)


density("vonmises_fisher", _sphere_logpdf, squeezes=False)


# ------------------------------------------------------------------ counts of several kinds
def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """As in SciPy the last probability is what the others leave, if they do not add up to 1."""
    k, n, p = onp.asarray(plain(x), float), as_array(n), as_array(p)
    off = abs(1 - onp.sum(plain(p), axis=-1, keepdims=True)) > p.shape[-1] * onp.finfo(p.dtype).eps
    last = onp.arange(p.shape[-1]) == p.shape[-1] - 1
    p = where(off & last, 1 - sum_(where(last, 0.0, p), axis=-1, keepdims=True), p)
    return _counted(k, n, gammaln(n + 1.0) + sum_(xlogy(k, p) - gammaln(k + 1), axis=-1))


def _counted(k: onp.ndarray, n: Any, of: Any) -> Any:
    inside = (k.sum(axis=-1) == plain(n)) & ((k >= 0) & (k == onp.floor(k))).all(axis=-1)
    return where(inside, of, -inf)


def _dirichlet_logpmf(x: Any, alpha: Any, n: Any) -> Any:
    k, alpha, n = onp.asarray(plain(x), float), as_array(alpha), as_array(n)
    total = sum_(alpha, axis=-1)
    each = gammaln(k + alpha) - gammaln(alpha) - gammaln(k + 1)
    return _counted(k, n, gammaln(total) + gammaln(n + 1.0) - gammaln(n + total) + sum_(each, axis=-1))


density("multinomial", _multinomial_logpmf, "pmf", squeezes=False)
density("dirichlet_multinomial", _dirichlet_logpmf, "pmf", squeezes=False)
