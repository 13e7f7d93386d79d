"""Mixed precision: float16 inside, float32 weights, and a loss scale that moves (Micikevicius et al. 2018).

    scale = nn.LossScale()
    compute = nn.precision.value_and_grad(loss, scale)       # loss(tree, x, y), in float16
    value, grads = compute(tree, x, y)                       # in float32
    if scale.update(grads):                                  # else they overflowed: the scale is half of what it was
        ...                                                  # the optimiser's step

`model.fit(..., precision="float16")` does this. float16 holds 6e-8 to 65,504: the loss is multiplied by the scale so
that small gradients do not vanish, and gradients are divided by it. NumPy computes float16 more slowly than float32, a
GPU faster.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import minnp
import minnp.numpy as np

from . import checks

__all__ = ["LossScale", "cast", "half", "value_and_grad"]

DTYPES = {"float16": np.float16}
LARGEST = 2.0**24


class LossScale:
    """What the loss is multiplied by before it is differentiated, so that small gradients do not vanish in float16.

    value     at first (32,768); at least 1
    growth    how much more it becomes (2), up to 2^24
    backoff   what is left of it after an overflow (1/2)
    interval  steps without overflow after which it grows (2000)
    good      steps since the last change

    It is multiplied by `backoff` where gradients overflow, and by `growth` where they have not for `interval` steps.
    Raises ValueError for a growth below 1 or a backoff of 1 and more.

    >>> scale = nn.precision.LossScale(value=8.0)
    >>> scale.value
    8.0
    """

    @checks.named(init_scale="value", growth_factor="growth", backoff_factor="backoff", growth_interval="interval")
    def __init__(self, value: float = 2.0**15, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000) -> None:
        self.value = checks.number("value", value, above=0)
        self.growth, self.backoff = checks.number("growth", growth), checks.number("backoff", backoff, above=0)
        if self.growth < 1 or self.backoff >= 1:
            raise ValueError(f"growth is at least 1 and backoff less than 1; got {growth} and {backoff}")
        self.interval, self.good = checks.count("interval", interval, 1), 0

    def __repr__(self) -> str:
        return f"LossScale({self.value:g}, good={self.good})"

    def update(self, grads: Any) -> bool:
        """Whether all gradients are finite, so that the step may be taken; moves the scale.

        Raises FloatingPointError where they are not with a scale of 1: no scale would help.
        """
        if finite(grads):
            self.good += 1
            if self.good >= self.interval:
                self.value, self.good = max(min(self.value * self.growth, LARGEST), self.value), 0
            return True
        if self.value <= 1:
            raise FloatingPointError(
                "gradients are infinite or NaN in float16 with a loss scale of 1: lower the learning rate, clip the "
                "gradients with clip_norm, or train in float32"
            )
        self.value, self.good = max(self.value * self.backoff, 1.0), 0
        return False


def mapped(f: Callable, x: Any) -> Any:
    """x with f of every array in its lists, tuples and dicts."""
    if isinstance(x, dict):
        return type(x)((key, mapped(f, value)) for key, value in x.items())
    if isinstance(x, list | tuple):
        parts = [mapped(f, value) for value in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return f(x) if hasattr(x, "dtype") else x


def cast(x: Any, dtype: Any) -> Any:
    """x with every array of real floating numbers in it as that dtype; gradients come back in their own.

    >>> nn.precision.cast({"w": np.ones(2), "i": np.arange(2)}, "float16")["w"].dtype
    dtype('float16')
    """
    return mapped(lambda a: a.astype(dtype) if a.dtype.kind == "f" and a.dtype != dtype else a, x)


def half(name: Any) -> Any:
    """The dtype of a precision's name. Raises ValueError for what no array has.

    >>> nn.precision.half("float16")
    <class 'numpy.float16'>
    """
    if name in ("bfloat16", "bf16"):
        raise ValueError("arrays have NumPy's dtypes, and NumPy has no bfloat16: choose precision='float16'")
    return DTYPES[checks.choice("precision", name, DTYPES)]


def finite(grads: Any) -> bool:
    """Whether every number of every array in it is."""
    found: list = []
    mapped(lambda a: found.append(np.isfinite(a).all()), grads)
    return all(bool(f) for f in found)


def overflowing() -> Any:
    """A context for what computes in float16: its overflows are seen in the gradients."""
    return np.errstate(over="ignore", invalid="ignore")


def value_and_grad(
    f: Callable, scale: LossScale, argnum: int | tuple = 0, dtype: Any = "float16", has_aux: bool = False
) -> Callable:
    """f's value and gradients in float32, with f computed in float16: its floating arrays are cast to it on the way in.

    argnum    which arguments, by place
    f         (...) -> one number, or (number, anything) with has_aux; best with its last steps in float32
    scale     what f's value is multiplied by meanwhile; call scale.update(grads) with what comes out

    >>> scale = nn.precision.LossScale(value=8.0)
    >>> value, gradient = nn.precision.value_and_grad(lambda w: (w * w).sum(), scale)(np.ones(2, np.float32))
    >>> float(value), gradient.dtype
    (2.0, dtype('float32'))
    """
    narrow = half(dtype)

    def scaled(factor: Any, *args: Any, **kwargs: Any) -> tuple:
        out = f(*cast(args, narrow), **cast(kwargs, narrow))
        value, aux = out if has_aux else (out, None)
        value = value.astype(np.float32)
        return value * factor, (value, aux)

    places = tuple(i + 1 for i in argnum) if isinstance(argnum, tuple) else argnum + 1
    compute = minnp.value_and_grad(scaled, places, has_aux=True)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> tuple:
        with overflowing():
            (_, (value, aux)), grads = compute(np.float32(scale.value), *args, **kwargs)
            return (value, aux) if has_aux else value, divided(grads, scale)

    return call


def divided(grads: Any, scale: LossScale) -> Any:
    """Gradients of the scaled loss as those of the loss, in float32."""
    return mapped(lambda g: g.astype(np.float32) / np.float32(scale.value), grads)
