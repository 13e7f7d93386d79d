"""Initial values: each rule is `rule(shape, config) -> array`, MinPy's signature; names are looked up by `rule_named`.

Settings come in the dict `config` or by name, `gaussian((3, 4), stdvar=0.1)`; those that a rule does not have raise
TypeError. Every rule has dtype (float32) and rng (a NumPy Generator; np.random's global stream without it).
Fans: a matrix [D, M] has D inputs and M outputs; a convolution [F, C, K, K] has C K K inputs and F K K outputs.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import minnp.numpy as np

from .checks import named, one_of, shows_settings, with_defaults

__all__ = ["constant", "custom", "gaussian", "he", "msra", "orthogonal", "rule_named", "xavier"]

MEANING = {
    "shape": "of the parameter",
    "config": "its settings; they may be given by name instead",
    "gain": "what all elements are multiplied by",
    "value": "of every element",
    "mu": "the mean",
    "stdvar": "the standard deviation",
    "function": "of the shape, which returns the array",
    "dtype": "of the result",
    "rng": "a NumPy Generator; None: np.random's own stream",
}
Config = dict[str, Any]


def initialiser(**own: Any) -> Callable[[Callable], Callable]:
    """A decorator: rule(shape, config), whose settings besides dtype and rng, and their defaults, are `own`."""
    defaults = {**own, "dtype": np.float32, "rng": None}
    known = frozenset(defaults)

    def decorate(draw: Callable[[Sequence[int], Config], Any]) -> Callable[..., Any]:
        @functools.wraps(draw)
        def rule(shape: Sequence[int], config: Config | None = None, **settings: Any) -> Any:
            full = with_defaults(draw.__name__, dict(config or {}), settings, defaults, known)
            return np.asarray(draw(shape, full)).astype(full["dtype"])

        shows_settings(rule, defaults, MEANING)
        return rule

    return decorate


@initialiser()
def xavier(shape: Sequence[int], config: Config) -> Any:
    """Uniform in +-sqrt(6 / (fan_in + fan_out)): keeps the variance of tanh layers (Glorot and Bengio 2010, eq. 16).

    >>> init.xavier((3, 4)).shape
    (3, 4)
    """
    fan_in, fan_out = fans(shape)
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return (2.0 * uniform(shape, config) - 1.0) * limit


@initialiser()
def he(shape: Sequence[int], config: Config) -> Any:
    """Normal with standard deviation sqrt(2 / fan_in): keeps the variance of ReLU layers (He et al. 2015, eq. 10).

    >>> init.he((3, 4)).dtype
    dtype('float32')
    """
    return normal(shape, config) * math.sqrt(2.0 / fans(shape)[0])


msra = he


@initialiser(gain=1.0)
def orthogonal(shape: Sequence[int], config: Config) -> Any:
    """Rows or columns orthonormal, times gain (1): Saxe et al. 2014. Axes after the first are flattened.

    >>> w = init.orthogonal((3, 3), dtype="float64")
    >>> np.allclose(w @ w.T, np.eye(3))
    True
    """
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = np.linalg.qr(normal((max(rows, columns), min(rows, columns)), config))
    q = q * np.sign(np.diagonal(r))  # QR leaves the signs to LAPACK; this makes q uniform over orthogonal matrices
    q = q if rows >= columns else q.T
    return q.reshape(shape) * config["gain"]


@initialiser(value=0.0)
def constant(shape: Sequence[int], config: Config) -> Any:
    """Every element `value` (0).

    >>> init.constant((2,), value=1.5)
    array([1.5, 1.5], dtype=float32)
    """
    return np.full(shape, float(config["value"]))


@initialiser(mu=0.0, stdvar=0.001)
def gaussian(shape: Sequence[int], config: Config) -> Any:
    """Normal with mean mu (0) and standard deviation stdvar (0.001).

    >>> init.gaussian((3, 4), stdvar=0.1).shape
    (3, 4)
    """
    return normal(shape, config) * config["stdvar"] + config["mu"]


@initialiser(function=np.zeros)
def custom(shape: Sequence[int], config: Config) -> Any:
    """function(shape), checked to have that shape; zeros by default.

    Raises ValueError where it has another shape.

    >>> init.custom((2, 2), function=lambda shape: np.eye(*shape))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    value = np.asarray(config["function"](shape))
    if value.shape != tuple(shape):
        raise ValueError(
            f"the custom initialiser {config['function']!r} returned {value.shape} for a parameter of {tuple(shape)}"
        )
    return value


RULES: dict[str, Callable] = {
    "xavier": xavier,
    "he": he,
    "msra": msra,
    "orthogonal": orthogonal,
    "constant": constant,
    "gaussian": gaussian,
    "custom": custom,
}


@named()
def rule_named(rule: str | Callable) -> Callable:
    """The initialiser called `rule`, or `rule` itself when it is a function.

    >>> init.rule_named("he") is init.he
    True
    """
    return one_of("init_rule", rule, RULES, "(shape, config) -> array")


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """(fan_in, fan_out) of a parameter of this shape."""
    if len(shape) < 2:
        return (max(shape[0], 1), max(shape[0], 1)) if shape else (1, 1)
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def normal(shape: Sequence[int], config: Config) -> Any:
    rng = config["rng"]
    return np.random.standard_normal(shape) if rng is None else rng.standard_normal(shape)


def uniform(shape: Sequence[int], config: Config) -> Any:
    rng = config["rng"]
    return np.random.random(shape) if rng is None else rng.random(shape)


def __getattr__(name: str) -> Any:
    """AttributeError that says which rule is meant: xavier_uniform_, as torch writes it."""
    theirs = {"glorot": "xavier", "kaiming": "he", "normal": "gaussian", "zeros": "constant", "ones": "constant"}
    known = {**{rule: rule for rule in __all__}, **theirs}
    own = next((known[word] for word in name.lower().split("_") if word in known), None)
    meant = f"; do you mean {own!r}, as in nn.Linear(3, 2, init_rule={own!r})?" if own else ""
    raise AttributeError(
        f"module 'minnp.nn.init' has no attribute {name!r}{meant}", name=name, obj=sys.modules[__name__]
    )
