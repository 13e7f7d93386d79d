"""How distributions of one variable are expressed in rows; univariate.py and counts.py say which.

A distribution is given in its standard form: functions of z = (x - loc) / scale and of its shapes. All methods follow,
with gradients for the variable and all parameters. Arrays have values from SciPy itself; what is here is used when a
gradient is wanted. What this SciPy does not have is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as onp
from scipy import stats

from ..core.arrays.array import array_of, read
from ..core.rows.dispatch import defines
from ..core.rows.primitive import Joint, per_element, primitive
from ..core.transforms.grad import vjp
from ..numpy import ufuncs as uf
from ..numpy.arguments import as_array, operand, plain
from ..numpy.facts import spread
from ..numpy.ufuncs import exp, less, where

FORMS: dict[
    str, tuple[Callable, Callable]
] = {}  # of a distribution that has both: (log density, distribution function)


def parameters(names: list[str], args: tuple, kwargs: dict) -> list:
    """The parameters by name, loc 0 and scale 1 if not given."""
    given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args)), **kwargs}
    return [operand(given[name]) for name in names]


def numbers(x: Any) -> onp.ndarray:
    return onp.asarray(plain(x if isinstance(x, (int, float)) else as_array(x)), float)


def above(limit: float, x: Any, of: Callable, otherwise: float = inf) -> Any:
    """of(x) where x is above the limit; elsewhere a constant."""
    inside = numbers(x) > limit
    return where(inside, of(where(inside, x, limit + 1.0)), otherwise)


# ------------------------------------------------------------------ quantiles, by the derivative of an inverse function
def _quantile(q: Any, *shapes: Any, name: str, upper: bool) -> Any:
    distribution = getattr(stats, name)
    return (distribution.isf if upper else distribution.ppf)(q, *shapes)


def _of_an_inverse(wanted: list, g: Any, z: Any, q: Any, *shapes: Any, name: str, upper: bool) -> list:
    """cdf(z, shapes) = q moves with q and the shapes; all is expressed in z, which has derivatives of its own."""
    logpdf, cdf = FORMS[name]
    slope = g * exp(-logpdf(z, *shapes))
    moved: Any = [None] * len(shapes)
    if any(wanted[1:]):
        free = [i for i, w in enumerate(wanted[1:]) if w]

        def at_z(*given: Any) -> Any:
            new = dict(zip(free, given))
            return cdf(as_array(array_of(z)), *[new.get(i, s) for i, s in enumerate(shapes)])

        for i, part in zip(free, vjp(at_z, *[array_of(shapes[i]) for i in free])[1](array_of(-slope))):
            moved[i] = read(part)
    return [-slope if upper else slope, *moved]


def _quantile_samples() -> list:
    q, c = spread(2, 3, low=0.1, high=0.9), spread(2, 3, low=0.5, high=2, seed=1)
    return [((q, c), {"name": "weibull_min", "upper": False}), ((q, c), {"name": "gompertz", "upper": True})]


quantile = primitive(
    "scipy.stats.quantile",
    numpy=_quantile,
    vjp=Joint(_of_an_inverse),
    flops=per_element(100),
    samples=_quantile_samples,
)


# ------------------------------------------------------------------ continuous
def continuous(
    name: str,
    shapes: str,
    logpdf: Callable,
    cdf: Callable | None = None,
    sf: Callable | None = None,
    logcdf: Callable | None = None,
    logsf: Callable | None = None,
    support: tuple[float, float] | Callable = (-inf, inf),
    mean: Callable | None = None,
    var: Callable | None = None,
    entropy: Callable | None = None,
) -> None:
    """Define scipy.stats' `name`: logpdf, cdf, sf, logcdf and logsf of (z, *shapes), the moments of the shapes.

    support   between which numbers z may lie: two of them, or a function of the shapes that gives them
    """
    distribution, names = getattr(stats, name, None), [*shapes.split(), "loc", "scale"]
    if distribution is None:
        return

    def standard(of: Callable, below: float, above: float, density: bool = False) -> Callable:
        def definition(x: Any, *args: Any, **kwargs: Any) -> Any:
            *rest, loc, scale = parameters(names, args, kwargs)
            z = (operand(x) - loc) / scale
            if support == (-inf, inf):
                out = of(z, *rest)
            else:
                inside, within, small = _place(z, rest)
                out = of(where(inside, z, within), *rest)
                # below and above are constants, which the density's scale must not shift
                out = where(inside, out - uf.log(scale) if density else out, where(small, below, above))
                return as_array(out)
            return as_array(out - uf.log(scale) if density else out)

        return definition

    def _place(z: Any, rest: list) -> tuple[Any, Any, Any]:
        """Whether z is in the support, a place to stand where it is not, and whether it is below."""
        low, high = support(*map(numbers, rest)) if callable(support) else support
        finite = onp.isfinite(low), onp.isfinite(high)
        with onp.errstate(invalid="ignore"):
            middle = onp.where(finite[1], (onp.asarray(low) + high) * 0.5, low + 0.5)
        at = numbers(z)
        return (at >= low) & (at <= high), onp.where(finite[0], middle, high - 0.5), at < low

    log_density = standard(logpdf, -inf, -inf, density=True)
    defines(distribution.logpdf)(log_density)
    defines(distribution.pdf)(lambda x, *args, **kwargs: exp(log_density(x, *args, **kwargs)))
    if cdf is not None:
        FORMS[name] = logpdf, cdf
        sf = sf or (lambda z, *rest: 1 - cdf(z, *rest))
        defines(distribution.cdf)(standard(cdf, 0.0, 1.0))
        defines(distribution.sf)(standard(sf, 1.0, 0.0))
        defines(distribution.logcdf)(standard(logcdf or _logarithm(cdf, sf), -inf, 0.0))
        defines(distribution.logsf)(standard(logsf or _logarithm(sf, cdf), 0.0, -inf))
        _quantiles(name, names)
    moments(distribution, names, mean, var)
    if entropy is not None:

        @defines(distribution.entropy)
        def of_entropy(*args: Any, **kwargs: Any) -> Any:
            *rest, loc, scale = parameters(names, args, kwargs)
            return as_array(entropy(*rest) + uf.log(scale) + loc * 0)


def _logarithm(of: Callable, other: Callable) -> Callable:
    """The logarithm of a probability, by that of the other side where this one is near 1."""

    def log(z: Any, *rest: Any) -> Any:
        p, q = of(z, *rest), other(z, *rest)
        near = less(0.5, p)
        return where(near, uf.log1p(-where(near, q, 0.5)), uf.log(where(near, 0.5, p)))

    return log


def _quantiles(name: str, names: list[str]) -> None:
    distribution = getattr(stats, name)

    def inverse(upper: bool) -> Callable:
        def definition(q: Any, *args: Any, **kwargs: Any) -> Any:
            *rest, loc, scale = parameters(names, args, kwargs)
            return as_array(quantile(as_array(q), *rest, name=name, upper=upper) * scale + loc)

        return definition

    ppf = defines(distribution.ppf)(inverse(upper=False))
    defines(distribution.isf)(inverse(upper=True))
    defines(distribution.median)(lambda *args, **kwargs: ppf(0.5, *args, **kwargs))

    @defines(distribution.interval)
    def interval(confidence: Any, *args: Any, **kwargs: Any) -> tuple:
        tail = (1 - as_array(confidence)) * 0.5
        return ppf(tail, *args, **kwargs), ppf(1 - tail, *args, **kwargs)


def moments(distribution: Any, names: list[str], mean: Callable | None, var: Callable | None) -> None:
    """Define mean, var and std by those of the standard form; a distribution of counts has no scale."""
    shapes = len(names) - (2 if "scale" in names else 1)

    def moved(of: Callable, shift: bool, power: float) -> Callable:
        def definition(*args: Any, **kwargs: Any) -> Any:
            given = parameters(names, args, kwargs)
            out, loc, scale = of(*given[:shapes]), given[shapes], given[shapes + 1] if "scale" in names else 1
            return as_array(out * scale**power + (loc if shift else loc * 0))

        return definition

    if mean is not None:
        defines(distribution.mean)(moved(mean, shift=True, power=1))
    if var is not None:
        defines(distribution.var)(moved(var, shift=False, power=2))
        defines(distribution.std)(moved(lambda *rest: as_array(var(*rest)) ** 0.5, shift=False, power=1))


# ------------------------------------------------------------------ discrete
def discrete(
    name: str,
    shapes: str,
    logpmf: Callable,
    low: float,
    high: Callable = lambda *shapes: inf,
    cdf: Callable | None = None,
    sf: Callable | None = None,
    mean: Callable | None = None,
    var: Callable | None = None,
    entropy: Callable | None = None,
) -> None:
    """Define scipy.stats' `name` by the logarithm of its probabilities at the integers k - loc, from low to high."""
    distribution, names = getattr(stats, name, None), [*shapes.split(), "loc"]
    if distribution is None:
        return

    def given(k: Any, args: tuple, kwargs: dict) -> tuple[onp.ndarray, list, Any]:
        *rest, loc = parameters(names, args, kwargs)
        return numbers(operand(k) - loc), rest, high(*map(numbers, rest))

    @defines(distribution.logpmf)
    def log_mass(k: Any, *args: Any, **kwargs: Any) -> Any:
        at, rest, top = given(k, args, kwargs)
        inside = (at >= low) & (at <= top) & (at == onp.floor(at))
        return as_array(where(inside, logpmf(onp.where(inside, at, max(low, 0.0)), *rest), -inf))

    defines(distribution.pmf)(lambda k, *args, **kwargs: exp(log_mass(k, *args, **kwargs)))

    def summed(of: Callable, below: float, above: float, after: Callable = lambda x: x) -> Callable:
        def definition(k: Any, *args: Any, **kwargs: Any) -> Any:
            at, rest, top = given(k, args, kwargs)
            at = onp.floor(at)
            inside = (at >= low) & (at < top)
            out = of(onp.where(inside, at, max(low, 0.0)), *rest)
            return as_array(where(inside, after(out), where(at < low, after(below), after(above))))

        return definition

    if cdf is not None:
        sf = sf or (lambda k, *rest: 1 - cdf(k, *rest))
        log = lambda x: uf.log(x) if not isinstance(x, float) else 0.0 if x else -inf
        defines(distribution.cdf)(summed(cdf, 0.0, 1.0))
        defines(distribution.sf)(summed(sf, 1.0, 0.0))
        defines(distribution.logcdf)(summed(cdf, 0.0, 1.0, log))
        defines(distribution.logsf)(summed(sf, 1.0, 0.0, log))
    moments(distribution, names, mean, var)
    if entropy is not None:
        defines(distribution.entropy)(lambda *args, **kwargs: as_array(entropy(*parameters(names, args, kwargs)[:-1])))
