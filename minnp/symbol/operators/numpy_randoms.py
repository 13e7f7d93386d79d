"""The random numbers of mx.np.random and mx.npx.random, from np.random's stream.

A parameter is a number or, where it is None, an array. Most are functions of noise, through which gradients flow to
the parameters, as in MXNet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import Shape, operator
from .randoms import normal, uniform

FLOAT, INT = onp.dtype("float32"), onp.dtype("int64")


def _exponential(size: Shape) -> Any:
    return np.random.exponential(1.0, size)


def gumbel(size: Shape, loc: Any, scale: Any) -> Any:
    """Of location loc and scale."""
    return loc - scale * np.log(_exponential(size))


def logistic(size: Shape, loc: Any, scale: Any) -> Any:
    """Of location loc and scale."""
    u = np.random.random(size)
    return loc + scale * (np.log(u) - np.log1p(-u))


# name -> (function of a shape and the parameters, the parameters, whether MXNet names the result output0)
DISTRIBUTIONS: dict[str, tuple[Callable, str, bool]] = {
    "normal": (normal, "loc:float scale:float", True),
    "uniform": (uniform, "low:float high:float", False),
    "gamma": (lambda n, shape, scale: np.random.gamma(stop_gradient(shape), 1.0, n) * scale,
              "shape:float scale:float", False),
    "exponential": (lambda n, scale: _exponential(n) * scale, "scale:float=1", True),
    "gumbel": (gumbel, "loc:float scale:float", True),
    "logistic": (logistic, "loc:float scale:float", True),
    "pareto": (lambda n, a: np.expm1(_exponential(n) / a), "a:float=None", True),
    "rayleigh": (lambda n, scale: np.sqrt(2 * _exponential(n)) * scale, "scale:float=1", True),
    "weibull": (lambda n, a: _exponential(n) ** (1 / a), "a:float=None", True),
    "powerd": (lambda n, a: np.random.random(n) ** (1 / a), "a:float=None", False),
}  # fmt: skip


def _names(parameters: str) -> list[str]:
    return [p.partition(":")[0] for p in parameters.split()]


def _arrays(names: list[str]) -> Callable:
    """The names of the inputs: of the parameters that are arrays."""
    return lambda p: [f"input{i + 1}" for i in range(sum(p[n] in (None,) for n in names))]


def _size(size: Shape | None, each: bool, *shapes: Shape) -> Shape:
    """The shape of the result: `size`, or with `each` that many for each element of the parameters."""
    wide = onp.broadcast_shapes(*shapes)
    return (*(size or ()), *wide) if each else wide if size is None else size


def _drawn(draw: Callable, names: list[str], each: bool) -> Callable:
    def drawn(*arrays: Any, size: Shape | None = None, dtype: Any = None, **parameters: Any) -> Any:
        given = iter(arrays)
        values = [next(given) if parameters[n] is None else parameters[n] for n in names]
        return np.asarray(draw(_size(size, each, *[a.shape for a in arrays]), *values)).astype(dtype or FLOAT)

    return drawn


def _dtypes(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p.get("dtype") or FLOAT]


def _entered(name: str, draw: Callable, parameters: str, each: bool, **facts: Any) -> None:
    names = _names(parameters)
    operator(name, _drawn(draw, names, each), _arrays(names),
             f"{parameters} size:shape=None ctx:~str= dtype:dtype=float32", drawn=True,
             result=lambda p, *shapes: [_size(p["size"], each, *shapes)], dtypes=_dtypes, **facts)  # fmt: skip


for _name, (_draw, _parameters, _noisy) in DISTRIBUTIONS.items():
    _called = ("output0",) if _noisy else ("output",)
    _entered(f"_npi_{_name}", _draw, _parameters, False, outputs=_called)
    if _name in ("normal", "uniform"):
        _entered(f"_npi_{_name}_n", _draw, _parameters, True, outputs=_called)


def bernoulli(*arrays: Any, prob: Any, logit: Any, size: Shape | None, is_logit: bool, dtype: Any) -> Any:
    """1 with the probability prob, or sigmoid(logit)."""
    given = logit if is_logit else prob
    p = np.asarray(arrays[0] if given is None else given)
    p = npx.sigmoid(p) if is_logit else p
    return np.less(np.random.random(_size(size, False, p.shape)), p).astype(dtype or FLOAT)


def choice(*arrays: Any, a: int | None, size: Shape | None, replace: bool, weighted: bool) -> Any:
    """Places in an array, or numbers below a; with `weighted` the last input has their probabilities."""
    p = stop_gradient(arrays[-1]).astype("float64") if weighted else None
    count = arrays[0].shape[0] if a is None else a
    return np.asarray(np.random.choice(count, size, replace, None if p is None else p / np.sum(p))).astype(INT)


def multinomial(*arrays: Any, n: int, pvals: Any, size: Shape | None) -> Any:
    """How often each of several outcomes comes in n trials, of the probabilities pvals."""
    p = stop_gradient(arrays[0]).astype("float64") if pvals is None else onp.asarray(pvals)
    return np.asarray(np.random.multinomial(n, p, size)).astype(INT)


operator("_npi_multinomial", multinomial, lambda p: ["a"] * (p["pvals"] in (None,)),
         "n:int pvals:floats=None size:shape=None", drawn=True, loss=True,
         result=lambda p, *a: [(*(p["size"] or ()), a[0][0] if a else len(p["pvals"]))],
         dtypes=lambda p, ins: (ins, [INT]))  # fmt: skip
operator("_npi_bernoulli", bernoulli,
         lambda p: ["input1"] if p["logit" if p["is_logit"] else "prob"] in (None,) else [],
         "prob:float logit:float size:shape=None ctx:~str= dtype:dtype=float32 is_logit:bool", drawn=True, loss=True,
         result=lambda p, *shapes: [_size(p["size"], False, *shapes)], dtypes=_dtypes)  # fmt: skip
operator("_npi_choice", choice, lambda p: ["input1", "input2"][: (p["a"] in (None,)) + bool(p["weighted"])],
         "a:int size:shape ctx:~str= replace:bool=1 weighted:bool=0", drawn=True, loss=True,
         result=lambda p, *shapes: [p["size"] or ()], dtypes=lambda p, ins: (ins, [INT]))  # fmt: skip
