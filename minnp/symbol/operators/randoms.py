"""Random numbers, from np.random's stream: of one distribution, or of one for each element of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import stop_gradient

from ..operator import Shape, operator

FLOAT = onp.dtype("float32")


# ------------------------------------------------------------------ distributions, by MXNet's parameters
def uniform(size: Shape, low: Any = 0.0, high: Any = 1.0) -> Any:
    """Between low and high."""
    return np.random.random(size) * (high - low) + low


def normal(size: Shape, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Of mean loc and standard deviation scale."""
    return np.random.standard_normal(size) * scale + loc


def gamma(size: Shape, alpha: Any = 1.0, beta: Any = 1.0) -> Any:
    """Of shape alpha and scale beta."""
    return np.random.gamma(alpha, 1.0, size) * beta


def exponential(size: Shape, lam: Any = 1.0) -> Any:
    """Of rate lam."""
    return np.random.exponential(1.0, size) / lam


def poisson(size: Shape, lam: Any = 1.0) -> Any:
    """Counts of mean lam."""
    return np.random.poisson(lam, size)


def negative_binomial(size: Shape, k: Any = 1, p: Any = 1.0) -> Any:
    """Failures before k successes of probability p."""
    return np.random.poisson(np.random.gamma(k, 1.0, size) * ((1 - p) / p))


def generalized_negative_binomial(size: Shape, mu: Any = 1.0, alpha: Any = 1.0) -> Any:
    """Counts of mean mu and variance mu + alpha mu^2."""
    return np.random.poisson(np.random.gamma(1 / alpha, 1.0, size) * (alpha * mu))


# name -> (function, parameters of the operator on numbers, names of the arrays of the operator on arrays)
DISTRIBUTIONS: dict[str, tuple[Callable, str, tuple[str, ...]]] = {
    "uniform": (uniform, "low:float=0 high:float=1", ("low", "high")),
    "normal": (normal, "loc:float=0 scale:float=1", ("mu", "sigma")),
    "gamma": (gamma, "alpha:float=1 beta:float=1", ("alpha", "beta")),
    "exponential": (exponential, "lam:float=1", ("lam",)),
    "poisson": (poisson, "lam:float=1", ("lam",)),
    "negative_binomial": (negative_binomial, "k:int=1 p:float=1", ("k", "p")),
    "generalized_negative_binomial": (generalized_negative_binomial, "mu:float=1 alpha:float=1", ("mu", "alpha")),
}


def _of_numbers(draw: Callable) -> Callable:
    @functools.wraps(draw)
    def drawn(shape: Shape | None = None, dtype: Any = None, **parameters: Any) -> Any:
        return np.asarray(draw(shape or (1,), **parameters)).astype(dtype or FLOAT)

    return drawn


def _like(draw: Callable) -> Callable:
    @functools.wraps(draw)
    def drawn(data: Any, **parameters: Any) -> Any:
        return np.asarray(draw(data.shape, **parameters)).astype(data.dtype)

    return drawn


def _of_arrays(draw: Callable) -> Callable:
    """For each element of the parameters an array of `shape`."""

    @functools.wraps(draw)
    def drawn(*parameters: Any, shape: Shape = (), dtype: Any = None) -> Any:
        wide = [np.reshape(a, (*a.shape, *[1] * len(shape))) for a in parameters]
        return np.asarray(draw((*parameters[0].shape, *shape), *wide)).astype(dtype or FLOAT)

    return drawn


def _made(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p.get("dtype") or FLOAT]


for _name, (_draw, _parameters, _arrays) in DISTRIBUTIONS.items():
    _also = (_name, f"random_{_name}") if _name in ("uniform", "normal") else (f"random_{_name}",)
    operator(f"_random_{_name}", _of_numbers(_draw), (), f"{_parameters} shape:shape=None ctx:~str= dtype:dtype=None",
             aliases=_also, drawn=True, result=lambda p: [p["shape"] or (1,)], dtypes=_made)  # fmt: skip
    operator(f"_random_{_name}_like", _like(_draw), ("data",), _parameters, drawn=True, same=True)
    operator(f"_sample_{_name}", _of_arrays(_draw), _arrays, "shape:shape=() dtype:dtype=None",
             aliases=(f"sample_{_name}",), drawn=True, result=lambda p, first, *rest: [(*first, *p["shape"])],
             dtypes=_made)  # fmt: skip


def randint(low: int, high: int, shape: Shape | None = None, dtype: Any = None) -> Any:
    """Whole numbers from low to high - 1."""
    return np.random.randint(low, high, shape or (1,)).astype(dtype or "int32")


operator("_random_randint", randint, (), "low:int high:int shape:shape=None ctx:~str= dtype:dtype=None",
         aliases=("random_randint",), drawn=True, result=lambda p: [p["shape"] or (1,)],
         dtypes=lambda p, ins: (ins, [p["dtype"] or onp.dtype("int32")]))  # fmt: skip


def multinomial(data: Any, shape: Shape = (), get_prob: bool = False, dtype: Any = "int32") -> Any:
    """Classes drawn with the probabilities data [..., C]: [..., *shape]; with get_prob, their logarithms too."""
    count = prod(shape) if shape else 1
    edges = np.cumsum(data, axis=-1)
    points = np.random.random((*data.shape[:-1], count)) * edges[..., -1:]
    chosen = np.sum(np.greater_equal(points[..., None], edges[..., None, :]), axis=-1)
    chosen = np.clip(chosen, 0, data.shape[-1] - 1)
    out = (*data.shape[:-1], *shape) or (1,)
    classes = np.reshape(chosen, out).astype(dtype)
    if not get_prob:
        return classes
    return classes, np.reshape(np.log(np.take_along_axis(data, chosen, axis=-1)), out)


operator("_sample_multinomial", multinomial, ("data",), "shape:shape=() get_prob:bool=0 dtype:dtype=int32",
         aliases=("sample_multinomial",), drawn=True,
         outputs=lambda p: ("output0", "output1") if p["get_prob"] else ("output",),
         dtypes=lambda p, ins: (ins, [p["dtype"], *([ins[0]] if p["get_prob"] else [])]))  # fmt: skip


def shuffle(data: Any) -> Any:
    """data with the places along its first axis in a random order."""
    return data[np.random.permutation(data.shape[0])]


operator("_shuffle", shuffle, ("data",), aliases=("shuffle",), drawn=True, same=True)


# ------------------------------------------------------------------ densities
def _gammaln(x: Any) -> Any:
    from minnp.scipy import special  # SciPy is imported where it is needed

    return special.gammaln(x)


def _log_binomial(x: Any, k: Any, p: Any) -> Any:
    """The logarithm of the probability of x failures before k successes of probability p. No gradient flows into x."""
    x = stop_gradient(x)
    return _gammaln(x + k) - _gammaln(x + 1) - _gammaln(k) + k * np.log(p) + x * np.log(1 - p)


# name -> logarithm of the density at x. beta of gamma is a rate here, and above a scale: both are MXNet's.
LOG_DENSITIES: dict[str, Callable] = {
    "uniform": lambda x, low, high: -np.log(high - low) + 0 * x,
    "normal": lambda x, mu, sigma: -0.5 * np.square((x - mu) / sigma) - np.log(sigma * (2 * onp.pi) ** 0.5),
    "gamma": lambda x, alpha, beta: alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - _gammaln(alpha),
    "exponential": lambda x, lam: np.log(lam) - lam * x,
    "poisson": lambda x, lam: stop_gradient(x) * np.log(lam) - _gammaln(stop_gradient(x) + 1) - lam,
    "negative_binomial": _log_binomial,
    "generalized_negative_binomial": lambda x, mu, alpha: _log_binomial(x, 1 / alpha, 1 / (mu * alpha + 1)),
}


def _density(log_density: Callable) -> Callable:
    """The density at sample [*S, *D], of parameters [*S]; with is_log, its logarithm."""

    @functools.wraps(log_density)
    def density(sample: Any, *parameters: Any, is_log: bool = False) -> Any:
        y = log_density(sample, *[np.reshape(a, a.shape + (1,) * (sample.ndim - a.ndim)) for a in parameters])
        return y if is_log else np.exp(y)

    return density


def dirichlet_density(sample: Any, alpha: Any, is_log: bool = False) -> Any:
    """The density at sample [*S, *D, K], of concentrations alpha [*S, K]."""
    a = np.reshape(alpha, alpha.shape[:-1] + (1,) * (sample.ndim - alpha.ndim) + alpha.shape[-1:])
    y = np.sum((a - 1) * np.log(sample) - _gammaln(a), axis=-1) + _gammaln(np.sum(a, axis=-1))
    return y if is_log else np.exp(y)


for _name, _log_density in LOG_DENSITIES.items():
    operator(f"_random_pdf_{_name}", _density(_log_density), ("sample", *DISTRIBUTIONS[_name][2]), "is_log:bool=0",
             aliases=(f"random_pdf_{_name}",), result=lambda p, sample, *rest: [sample])  # fmt: skip
operator("_random_pdf_dirichlet", dirichlet_density, ("sample", "alpha"), "is_log:bool=0",
         aliases=("random_pdf_dirichlet",), result=lambda p, sample, alpha: [sample[:-1]])  # fmt: skip
