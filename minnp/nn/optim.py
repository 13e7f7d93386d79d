"""Optimisers: `w, config = rule(w, dw, config)`, MinPy's signature; w is updated in place and returned.

config holds one parameter's settings, and the rule keeps its state in it (velocity, cache, m, v, t), so a checkpoint of
the configs is a checkpoint of the optimiser. Settings may also be given by name, `sgd(w, dw, learning_rate=0.1)`; those
that a rule does not have raise TypeError. Every rule reads "learning_rate" and "weight_decay" (0): L2, added to the
gradient; except adamw and lion, where it shrinks the weights themselves (Loshchilov and Hutter 2019).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import minnp
import minnp.numpy as np
from minnp import npx

from . import checks
from .checks import count, named, number, one_of

__all__ = [
    "adagrad",
    "adam",
    "adamw",
    "clip_norm",
    "clip_value",
    "cosine",
    "exponential",
    "linear",
    "lion",
    "nesterov",
    "rmsprop",
    "rule_named",
    "sgd",
    "sgd_momentum",
    "step_decay",
    "warmup",
]

MEANING = {
    "w": "a parameter, which is written to",
    "dw": "its gradient, of w's shape",
    "config": "its settings, in which its state is kept; settings may be given by name instead",
    "learning_rate": "lr, the size of a step",
    "weight_decay": "how much of w is added to dw (by adamw and lion: taken from w itself, times lr)",
    "momentum": "how much of the old velocity is in the new one",
    "decay_rate": "rho, how much of the old average is in the new one",
    "epsilon": "eps, which keeps the division finite",
    "beta1": "b1, how much of the old m counts",
    "beta2": "b2, how much of the old average (v; of lion m) is in the new one",
}
HOST = minnp.cpu()
Config = dict[str, Any]


def optimiser(*states: str, **defaults: float) -> Callable[[Callable], Callable]:
    """A decorator: rule(w, dw, config), its settings and their defaults, and the names of the state in its config."""
    known = frozenset((*states, *defaults))

    def decorate(step: Callable[[Any, Any, Config], tuple]) -> Callable[..., tuple[Any, Config]]:
        @functools.wraps(step)
        def rule(w: Any, dw: Any, config: Config | None = None, **settings: Any) -> tuple[Any, Config]:
            config = {} if config is None else config
            if getattr(dw, "shape", None) != getattr(w, "shape", ()) and np.shape(dw) != np.shape(w):
                raise ValueError(f"{step.__name__}: the gradient has shape {np.shape(dw)}, its parameter {np.shape(w)}")
            return step(w, dw, checks.with_defaults(step.__name__, config, settings, defaults, known))

        checks.shows_settings(rule, defaults, MEANING)
        return rule

    return decorate


@optimiser(learning_rate=1e-2, weight_decay=0.0)
def sgd(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """w -= lr dw.

    >>> w, config = optim.sgd(np.ones(2), np.ones(2), learning_rate=0.1)
    >>> w
    array([0.9, 0.9])
    """
    w -= config["learning_rate"] * decayed(w, dw, config)
    return w, config


@optimiser("velocity", learning_rate=1e-2, weight_decay=0.0, momentum=0.9)
def sgd_momentum(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """v = momentum v - lr dw;  w += v (Polyak 1964).

    >>> w, config = optim.sgd_momentum(np.ones(2), np.ones(2), learning_rate=0.1)
    >>> w, config["velocity"]
    (array([0.9, 0.9]), array([-0.1, -0.1]))
    """
    v = state(config, "velocity", w)
    v *= config["momentum"]
    v -= config["learning_rate"] * decayed(w, dw, config)
    w += v
    return w, config


@optimiser("velocity", learning_rate=1e-2, weight_decay=0.0, momentum=0.9)
def nesterov(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """v' = momentum v - lr dw;  w += momentum v' - lr dw (Sutskever et al. 2013, in the variables of Bengio 2012).

    >>> w, config = optim.nesterov(np.ones(2), np.ones(2), learning_rate=0.1)
    >>> w
    array([0.81, 0.81])
    """
    step = config["learning_rate"] * decayed(w, dw, config)
    v = state(config, "velocity", w)
    v *= config["momentum"]
    v -= step
    w += config["momentum"] * v
    w -= step
    return w, config


@optimiser("cache", learning_rate=1e-2, weight_decay=0.0, epsilon=1e-8)
def adagrad(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """s += dw^2;  w -= lr dw / (sqrt(s) + eps) (Duchi et al. 2011).

    >>> w, config = optim.adagrad(np.ones(2), np.ones(2), learning_rate=0.1)
    >>> w.round(4)
    array([0.9, 0.9])
    """
    dw = decayed(w, dw, config)
    s = state(config, "cache", w)
    s += dw * dw
    w -= config["learning_rate"] * dw / (np.sqrt(s) + config["epsilon"])
    return w, config


@optimiser("cache", learning_rate=1e-2, weight_decay=0.0, decay_rate=0.99, epsilon=1e-8)
def rmsprop(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """s = rho s + (1 - rho) dw^2;  w -= lr dw / (sqrt(s) + eps); rho is "decay_rate" (Tieleman and Hinton 2012).

    >>> w, config = optim.rmsprop(np.ones(2), np.ones(2), learning_rate=0.01)
    >>> w.round(4)
    array([0.9, 0.9])
    """
    dw = decayed(w, dw, config)
    s = state(config, "cache", w)
    average(s, dw * dw, config["decay_rate"])
    w -= config["learning_rate"] * dw / (np.sqrt(s) + config["epsilon"])
    return w, config


@optimiser("m", "v", "t", learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0)
def adam(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """m = b1 m + (1 - b1) dw;  v = b2 v + (1 - b2) dw^2;  w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).

    Kingma and Ba 2015, algorithm 1.

    >>> w, config = optim.adam(np.ones(2), np.ones(2))
    >>> w, config = optim.adam(w, np.ones(2), config)
    >>> w.round(4)
    array([0.998, 0.998])
    """
    return adam_step(w, decayed(w, dw, config), config), config


@optimiser("m", "v", "t", learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=1e-2)
def adamw(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """w -= lr weight_decay w, then Adam's step (Loshchilov and Hutter 2019); weight_decay is 0.01 by default.

    >>> w, config = optim.adamw(np.ones(2), np.ones(2), learning_rate=0.1)
    >>> w.round(4)
    array([0.899, 0.899])
    """
    w *= 1.0 - config["learning_rate"] * config["weight_decay"]
    return adam_step(w, dw, config), config


@optimiser("m", learning_rate=1e-4, weight_decay=0.0, beta1=0.9, beta2=0.99)
def lion(w: Any, dw: Any, config: Config) -> tuple[Any, Config]:
    """w -= lr (sign(b1 m + (1 - b1) dw) + weight_decay w);  m = b2 m + (1 - b2) dw (Chen et al. 2023).

    >>> w, config = optim.lion(np.ones(2), np.array([3.0, -3.0]), learning_rate=0.1)
    >>> w
    array([0.9, 1.1])
    """
    m, b1 = state(config, "m", w), config["beta1"]
    direction = np.sign(b1 * m + (1.0 - b1) * dw)
    if config["weight_decay"]:
        direction = direction + config["weight_decay"] * w
    w -= config["learning_rate"] * direction
    average(m, dw, config["beta2"])
    return w, config


def adam_step(w: Any, dw: Any, config: Config) -> Any:
    """Advance m, v, t and w; w."""
    m, v = state(config, "m", w), state(config, "v", w)
    config["t"] = t = config.get("t", 0) + 1
    # Both bias corrections as two numbers, which cost nothing per element (Kingma and Ba 2015, end of section 2).
    correction = math.sqrt(1.0 - config["beta2"] ** t)
    rate = config["learning_rate"] * correction / (1.0 - config["beta1"] ** t)
    return npx.adam_update(w, dw, m, v, rate, config["beta1"], config["beta2"], config["epsilon"] * correction)


def average(kept: Any, new: Any, rate: float) -> None:
    """kept = rate kept + (1 - rate) new, in place."""
    kept *= rate
    kept += (1.0 - rate) * new


def decayed(w: Any, dw: Any, config: Config) -> Any:
    """The gradient with weight_decay / 2 |w|^2 added to the loss."""
    return dw + config["weight_decay"] * w if config["weight_decay"] else dw


def state(config: Config, name: str, w: Any) -> Any:
    if name not in config:
        config[name] = np.zeros_like(w)
    return config[name]


RULES: dict[str, Callable] = {
    "sgd": sgd,
    "sgd_momentum": sgd_momentum,
    "nesterov": nesterov,
    "adagrad": adagrad,
    "rmsprop": rmsprop,
    "adam": adam,
    "adamw": adamw,
    "lion": lion,
}


@named()
def rule_named(rule: str | Callable) -> Callable:
    """The optimiser called `rule`, or `rule` itself when it is a function (w, dw, config) -> (w, config).

    >>> optim.rule_named("adam") is optim.adam
    True
    """
    return one_of("update_rule", rule, RULES, "(w, dw, config) -> (w, config)")


def with_defaults(rule: str | Callable, config: Config) -> Config:
    """config with the rule's defaults for what it does not set; raises where a number in it cannot be one.

    TypeError for a setting that the rule does not have."""
    for name in ("learning_rate", "weight_decay"):
        if name in config:
            number(name, config[name])
    _, full = rule_named(rule)(np.zeros(1, np.float32), np.zeros(1, np.float32), dict(config))
    return full


# ------------------------------------------------------------------ clipping
@named()
def clip_norm(grads: dict[str, Any], limit: float) -> tuple[dict[str, Any], Any]:
    """(grads scaled so that their joint 2-norm is at most limit, the norm before): Pascanu et al. 2013, algorithm 1.

    The norm is a float; of arrays on a device it is an array there, and nobody waits for it.

    >>> grads, norm = optim.clip_norm({"w": np.array([3.0, 4.0])}, 1.0)
    >>> grads["w"], float(norm)
    (array([0.6, 0.8]), 5.0)
    """
    wide = [g.astype(np.result_type(g.dtype, np.float32), copy=False) for g in grads.values()]  # float16 ends at 65504
    squares = [np.sum(g * g) for g in wide]
    if any(getattr(s, "context", HOST) != HOST for s in squares):
        norm = np.sqrt(sum(squares))
        scale = np.where(norm > limit, limit / norm, 1.0)
        return {name: g * scale.astype(g.dtype) for name, g in grads.items()}, norm
    norm = math.sqrt(sum(map(float, squares)))
    if not norm > limit:
        return grads, norm
    return {name: g * (limit / norm) for name, g in grads.items()}, norm


@named()
def clip_value(grads: dict[str, Any], limit: float) -> dict[str, Any]:
    """Every element of every gradient in grads limited to [-limit, limit].

    >>> optim.clip_value({"w": np.array([3.0, -0.5])}, 1.0)
    {'w': array([ 1. , -0.5])}
    """
    return {name: np.clip(g, -limit, limit) for name, g in grads.items()}


# ------------------------------------------------------------------ learning-rate schedules: step -> factor of the rate
@named()
def step_decay(every: int, factor: float = 0.1) -> Callable[[int], float]:
    """factor^(step // every).

    >>> rate = optim.step_decay(every=10)
    >>> rate(9), rate(10)
    (1.0, 0.1)
    """
    every = count("every", every, 1)
    return lambda step: factor ** (step // every)


@named()
def exponential(rate: float) -> Callable[[int], float]:
    """exp(-rate step).

    >>> optim.exponential(0.5)(2)
    0.36787944117144233
    """
    return lambda step: math.exp(-rate * step)


@named()
def cosine(steps: int, floor: float = 0.0) -> Callable[[int], float]:
    """From 1 down to floor along half a cosine over `steps`, floor after (Loshchilov and Hutter 2017, one cycle).

    >>> rate = optim.cosine(10)
    >>> rate(0), round(rate(5), 6)
    (1.0, 0.5)
    """
    steps = count("steps", steps, 1)
    return lambda step: floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * min(step / steps, 1.0)))


@named()
def linear(steps: int, floor: float = 0.0) -> Callable[[int], float]:
    """From 1 down to floor along a line over `steps`, floor after.

    >>> optim.linear(10)(5)
    0.5
    """
    steps = count("steps", steps, 1)
    return lambda step: 1.0 - (1.0 - floor) * min(step / steps, 1.0)


@named()
def warmup(steps: int, then: Callable[[int], float] | None = None) -> Callable[[int], float]:
    """(step + 1) / steps for the first `steps`, then the schedule `then`, counted from there (1 without one).

    >>> optim.warmup(10)(4)
    0.5
    """

    def factor(step: int) -> float:
        if step < steps:
            return (step + 1) / steps
        return 1.0 if then is None else then(step - steps)

    return factor


def __getattr__(name: str) -> Any:
    """AttributeError that says which optimiser is meant: Adam, as torch writes it."""
    own = next((known for known in RULES if known == name.lower()), None)
    meant = f"; do you mean {own!r}, as in net.fit(x, y, optimizer={own!r})?" if own else ""
    raise AttributeError(
        f"module 'minnp.nn.optim' has no attribute {name!r}{meant}", name=name, obj=sys.modules[__name__]
    )
