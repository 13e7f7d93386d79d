"""Rows of the incomplete gamma and beta functions and of what they make: distribution functions, and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as onp
from scipy import special

from ..core.rows.dispatch import defines
from ..core.rows.primitive import TABLE, Primitive
from ..core.transforms.grad import stop_gradient
from ..numpy.calls import called, kind_of
from ..numpy.reductions import sum_
from ..numpy.shaping import expand_dims
from ..numpy.slopes import over
from ..numpy.ufuncs import absolute, exp, floor, less, log, logical_and, power, sign, sqrt, square, trunc, where
from .rows import PI, POSITIVE, UNIT, betaln, gammaln, log_expit, psi, row, single, xlog1py, xlogy


def _gamma_density(a: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) - x - gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


def _t_density(df: Any, t: Any) -> Any:
    scale = exp(gammaln(df * 0.5 + 0.5) - gammaln(df * 0.5)) / (df * PI) ** 0.5
    return power(1 + square(t) / df, (df + 1) * -0.5) * scale


# ------------------------------------------------------------------ derivatives with respect to the parameters
# There is no closed form. What is integrated is the density's derivative, from x away from the mode, where it falls
# monotonically; the double exponential formula for a half line (Takahasi and Mori, 1974) finds 12 digits with 100
# nodes. All is expressed in rows, with the nodes as a last axis, so there are derivatives of any order.
_STEPS = onp.arange(-3.7, 4.24, 0.08)
_DISTANCES = onp.exp(_STEPS - onp.exp(-_STEPS))
_WEIGHTS = 0.08 * _DISTANCES * (1 + onp.exp(-_STEPS))


def _integral(of: Callable, scale: Any, *arrays: Any) -> Any:
    """The integral of of(s, *arrays) over all s > 0, where it falls within a few times `scale`."""
    scale, *arrays = (expand_dims(v, axis=-1) for v in (stop_gradient(scale), *arrays))
    return sum_(of(_DISTANCES * scale, *arrays) * (_WEIGHTS * scale), axis=-1)


def _gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of gammainc(a, x) in a: by gammainc(a + 1, x), which behaves well at 0."""
    inside = logical_and(less(0, x), less(x, inf))
    x, b = where(inside, x, 1.0), a + 1
    side = where(less(x, b), -1.0, 1.0)

    def tail(s: Any, side: Any, b: Any, x: Any) -> Any:
        at = log(x) + side * s
        return exp(b * at - exp(at) - gammaln(b)) * (at - psi(b))

    first = exp(a * log(x) - x - gammaln(b)) * (log(x) - psi(b))
    return where(inside, first - side * _integral(tail, 1 / (absolute(b - x) + sqrt(b)), side, b, x), 0.0)


def _beta_slope(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative of betainc(a, b, x) in a, by betainc(a + 1, b + 1, x); y is 1 - x."""
    inside = logical_and(less(0, x * b), less(0, y))
    x, y, b = where(inside, x, 0.5), where(inside, y, 0.5), where(inside, b, 1.0)
    p, q = a + 1, b + 1
    gap = p * y - q * x
    side = where(less(0, gap), -1.0, 1.0)

    def tail(s: Any, side: Any, p: Any, q: Any, x: Any, y: Any) -> Any:
        at = log(x / y) + side * s
        return exp(p * log_expit(at) + q * log_expit(-at) - betaln(p, q)) * (log_expit(at) - psi(p) + psi(p + q))

    first = (y / a - x / b) * (log(x) - psi(p) + psi(a + b)) - x / (a * b)
    first = first * exp(a * log(x) + b * log(y) - betaln(a, b))
    scale = 1 / (absolute(gap) + sqrt((p + q) * x * y))
    return where(inside, first - side * _integral(tail, scale, side, p, q, x, y), 0.0)


def _t_slope(df: Any, t: Any) -> Any:
    """The derivative of stdtr(df, t) in df, by the incomplete beta function that it is."""
    rest = df + square(t)
    tails = _beta_slope(df * 0.5, 0.5, df / rest, square(t) / rest)
    return sign(t) * tails * -0.25 - t * _t_density(df, t) / (2 * df)


# ------------------------------------------------------------------ the functions and their inverses
def _parametric(
    name: str, slopes: list[Callable], density: Callable, inverse: str, upper: bool, *domain: tuple
) -> Primitive:
    """A row of a distribution function of (*parameters, x), or of 1 less it, and one of the inverse.

    slopes    the derivatives of the distribution function in its parameters
    """
    turn = -1.0 if upper else 1.0
    rules = [lambda g, y, *given, of=of: single(g * of(*given) * turn, y.dtype) for of in slopes]
    made = row(name, *rules, lambda g, y, *given: g * density(*given) * turn, domain=domain)

    def moved(of: Callable) -> Callable:
        return lambda g, x, *given: single(-over(g * of(*given[:-1], x), density(*given[:-1], x)), x.dtype)

    along = lambda g, x, *given: g * turn / density(*given[:-1], x)
    row(inverse, *map(moved, slopes), along, domain=[*domain[:-1], UNIT])
    return made


_BETA = [lambda a, b, x: _beta_slope(a, b, x, 1 - x), lambda a, b, x: -_beta_slope(b, a, 1 - x, x)]
_TO_GAMMA, _TO_BETA = (POSITIVE, POSITIVE), (POSITIVE, POSITIVE, UNIT)
gammainc = _parametric("gammainc", [_gamma_slope], _gamma_density, "gammaincinv", False, *_TO_GAMMA)
gammaincc = _parametric("gammaincc", [_gamma_slope], _gamma_density, "gammainccinv", True, *_TO_GAMMA)
betainc = _parametric("betainc", _BETA, _beta_density, "betaincinv", False, *_TO_BETA)
if hasattr(special, "betaincc"):  # SciPy 1.11
    _parametric("betaincc", _BETA, _beta_density, "betainccinv", True, *_TO_BETA)
stdtr = _parametric("stdtr", [_t_slope], _t_density, "stdtrit", False, POSITIVE, (-2, 2))


# ------------------------------------------------------------------ distribution functions under their own names
def _said(name: str, definition: Any) -> None:
    kernel = getattr(special, name)

    def compute(*operands: Any) -> Any:
        # NumPy 1.26 makes float64 of a float32 number times one of Python's
        dtypes = kernel.resolve_dtypes((*map(kind_of, operands), None))
        return single(definition(*operands), dtypes[-1])

    defines(kernel)(called(None, kernel, compute))


def _counted(k: Any, of: Callable) -> Any:
    """of(k), and NaN where k counts less than nothing."""
    below = less(k, 0)
    return where(below, onp.nan, of(where(below, 0, k)))


_said("chdtr", lambda df, x: gammainc(df * 0.5, x * 0.5))
_said("chdtrc", lambda df, x: gammaincc(df * 0.5, x * 0.5))
_said("chdtri", lambda df, p: 2 * TABLE["scipy.special.gammainccinv"](df * 0.5, p))
_said("gdtr", lambda rate, a, x: gammainc(a, rate * x))
_said("gdtrc", lambda rate, a, x: gammaincc(a, rate * x))
_said("pdtr", lambda k, mu: _counted(floor(k), lambda k: gammaincc(k + 1, mu)))
_said("pdtrc", lambda k, mu: _counted(floor(k), lambda k: gammainc(k + 1, mu)))
_said("bdtr", lambda k, n, p: _counted(floor(k), lambda k: betainc(trunc(n) - k, k + 1, 1 - p)))
_said("bdtrc", lambda k, n, p: betainc(floor(k) + 1, trunc(n) - floor(k), p))
_said("nbdtr", lambda k, n, p: _counted(trunc(k), lambda k: betainc(trunc(n), k + 1, p)))
_said("nbdtrc", lambda k, n, p: _counted(trunc(k), lambda k: betainc(k + 1, trunc(n), 1 - p)))
_said("fdtr", lambda a, b, x: betainc(a * 0.5, b * 0.5, a * x / (a * x + b)))
_said("fdtrc", lambda a, b, x: betainc(b * 0.5, a * 0.5, b / (a * x + b)))
