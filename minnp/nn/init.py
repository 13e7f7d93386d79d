"""Initial values: each rule is `rule(shape, config) -> array`, MinPy's signature; names are looked up by `rule_named`.

config may give dtype (float32) and rng (a NumPy Generator; np.random's global stream without it).
Fans: a matrix [D, M] has D inputs and M outputs; a convolution [F, C, K, K] has C K K inputs and F K K outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import minnp.numpy as np

from .checks import one_of

Config = dict[str, Any]


def xavier(shape: Sequence[int], config: Config | None = None) -> Any:
    """Uniform in +-sqrt(6 / (fan_in + fan_out)): keeps the variance of tanh layers (Glorot and Bengio 2010, eq. 16)."""
    fan_in, fan_out = fans(shape)
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return finish((2.0 * uniform(shape, config) - 1.0) * limit, config)


def he(shape: Sequence[int], config: Config | None = None) -> Any:
    """Normal with standard deviation sqrt(2 / fan_in): keeps the variance of ReLU layers (He et al. 2015, eq. 10)."""
    return finish(normal(shape, config) * math.sqrt(2.0 / fans(shape)[0]), config)


msra = he


def orthogonal(shape: Sequence[int], config: Config | None = None) -> Any:
    """Rows or columns orthonormal, times config["gain"] (1): Saxe et al. 2014. Axes after the first are flattened."""
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = np.linalg.qr(normal((max(rows, columns), min(rows, columns)), config))
    q = q * np.sign(np.diagonal(r))  # QR leaves the signs to LAPACK; this makes q uniform over orthogonal matrices
    q = q if rows >= columns else q.T
    return finish(q.reshape(shape) * (config or {}).get("gain", 1.0), config)


def constant(shape: Sequence[int], config: Config | None = None) -> Any:
    """Every element config["value"] (0)."""
    return finish(np.full(shape, float((config or {}).get("value", 0.0))), config)


def gaussian(shape: Sequence[int], config: Config | None = None) -> Any:
    """Normal with mean config["mu"] (0) and standard deviation config["stdvar"] (0.001)."""
    config = config or {}
    return finish(normal(shape, config) * config.get("stdvar", 0.001) + config.get("mu", 0.0), config)


def custom(shape: Sequence[int], config: Config | None = None) -> Any:
    """config["function"](shape), checked to have that shape."""
    function = (config or {}).get("function", np.zeros)
    value = np.asarray(function(shape))
    if value.shape != tuple(shape):
        raise ValueError(
            f"the custom initialiser {function!r} returned {value.shape} for a parameter of {tuple(shape)}"
        )
    return finish(value, config)


RULES: dict[str, Callable] = {
    "xavier": xavier,
    "he": he,
    "msra": msra,
    "orthogonal": orthogonal,
    "constant": constant,
    "gaussian": gaussian,
    "custom": custom,
}


def rule_named(rule: str | Callable) -> Callable:
    """The initialiser called `rule`, or `rule` itself when it is a function."""
    return one_of("init_rule", rule, RULES, "(shape, config) -> array")


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """(fan_in, fan_out) of a parameter of this shape."""
    if len(shape) < 2:
        return (max(shape[0], 1), max(shape[0], 1)) if shape else (1, 1)
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def normal(shape: Sequence[int], config: Config | None) -> Any:
    rng = (config or {}).get("rng")
    return np.random.standard_normal(shape) if rng is None else rng.standard_normal(shape)


def uniform(shape: Sequence[int], config: Config | None) -> Any:
    rng = (config or {}).get("rng")
    return np.random.random(shape) if rng is None else rng.random(shape)


def finish(value: Any, config: Config | None) -> Any:
    return np.asarray(value).astype((config or {}).get("dtype", np.float32))
