"""Activations, softmax and dropout as functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAYS, ndarray
from ..core.arrays.devices import beside
from ..core.rows.dispatch import knows
from ..numpy.arguments import as_array, number
from ..numpy.facts import axes_of, axis_of
from ..numpy.shaping import astype, expand_dims
from ..numpy.ufuncs import absolute, less, tanh, where
from . import activations as rows
from .arguments import per_channel, truth


# ------------------------------------------------------------------ activations
def relu(data: Any) -> ndarray:
    """max(data, 0); the gradient at 0 is 0.

    >>> npx.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return rows.relu(as_array(data))


def sigmoid(data: Any) -> ndarray:
    """1 / (1 + exp(-data)).

    >>> npx.sigmoid(np.array([0.0, np.inf]))
    array([0.5, 1. ])
    """
    return rows.sigmoid(as_array(data))


def softplus(data: Any) -> ndarray:
    """log(1 + exp(data)), MXNet's softrelu.

    >>> npx.softplus(np.array([-np.inf, 0.0])).round(4)
    array([0.    , 0.6931])
    """
    return rows.softplus(as_array(data))


def silu(data: Any) -> ndarray:
    """data * sigmoid(data), also called swish.

    >>> npx.silu(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.7311])
    """
    return rows.silu(as_array(data))


def gelu(data: Any, approximate: bool = False) -> ndarray:
    """data times the normal distribution function of data (Hendrycks and Gimpel 2016), with the exact erf.

    approximate   data/2 (1 + tanh(sqrt(2/pi) (data + 0.044715 data^3))) instead, their equation 2

    >>> npx.gelu(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8413])
    """
    return (rows.gelu_tanh if approximate else rows.gelu)(as_array(data))


def erf(data: Any) -> ndarray:
    """The error function of data.

    >>> npx.erf(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8427])
    """
    return rows.erf(as_array(data))


def erfinv(data: Any) -> ndarray:
    """The inverse of erf at data in [-1, 1]; NaN outside.

    >>> npx.erfinv(np.array([0.0, 0.5, 1.0])).round(4)
    array([0.    , 0.4769,    inf])
    """
    return rows.erfinv(as_array(data))


def smooth_l1(data: Any, scalar: float = 1.0) -> ndarray:
    """(scalar data)^2 / 2 where |data| < 1 / scalar^2, else |data| - 1 / (2 scalar^2): Huber's loss.

    >>> npx.smooth_l1(np.array([0.5, -3.0]))
    array([0.125, 2.5  ])
    """
    return rows.smooth_l1(as_array(data), scalar=float(scalar))


def _softsign(x: Any) -> Any:
    return x / (1 + absolute(x))


ACTIVATIONS: dict[str, Callable] = {
    "relu": rows.relu,
    "sigmoid": rows.sigmoid,
    "tanh": tanh,
    "softrelu": rows.softplus,
    "softsign": _softsign,
    "log_sigmoid": lambda x: -rows.softplus(-x),
    "mish": lambda x: x * tanh(rows.softplus(x)),
    "silu": rows.silu,
    "gelu": rows.gelu,
}


def activation(data: Any, act_type: str) -> ndarray:
    """The activation called `act_type`: relu, sigmoid, tanh, softrelu, softsign, log_sigmoid, mish, silu or gelu.

    data   an array, or what np.asarray takes

    Raises ValueError for another.

    >>> npx.activation(np.array([-1.0, 2.0]), "relu")
    array([0., 2.])
    """
    if act_type not in ACTIVATIONS:
        raise ValueError(f"act_type={act_type!r}: choose from {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[act_type](as_array(data))


SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al. 2017


def leaky_relu(
    data: Any,
    gamma: Any = None,
    act_type: str = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
) -> ndarray:
    """data where positive; below 0, by act_type:

    leaky   slope * data
    prelu   gamma * data, gamma one number or one per channel
    rrelu   data times the middle of lower_bound and upper_bound (what MXNet does outside training)
    elu     slope * (exp(data) - 1)
    selu    elu with the constants of Klambauer et al. 2017, for the positive part too
    gelu    the gelu

    Raises ValueError for another act_type, and for prelu without gamma.

    >>> npx.leaky_relu(np.array([-2.0, 2.0]), slope=0.1)
    array([-0.2,  2. ])
    """
    x = as_array(data)
    if act_type == "prelu":
        if gamma is None:
            raise ValueError("act_type='prelu' multiplies what is below 0 by gamma: pass gamma=, a number or an array")
        gamma = as_array(gamma)
        return where(x > 0, x, x * (gamma if gamma.ndim == 0 else per_channel(gamma, x.ndim, min(1, x.ndim - 1))))
    if act_type == "selu":
        return rows.elu(x, alpha=SELU_ALPHA) * SELU_SCALE
    if act_type in ("leaky", "rrelu"):
        return rows.leaky_relu(x, slope=float(slope if act_type == "leaky" else (lower_bound + upper_bound) / 2))
    if act_type == "elu":
        return rows.elu(x, alpha=float(slope))
    if act_type == "gelu":
        return rows.gelu(x)
    raise ValueError(f"act_type={act_type!r}: choose from leaky, prelu, rrelu, elu, selu, gelu")


# ------------------------------------------------------------------ softmax
def _scaled(data: Any, temperature: float | None, dtype: Any) -> ndarray:
    x = as_array(data)
    if dtype is not None:
        x = astype(x, dtype=onp.dtype(dtype))
    plain_one = not isinstance(temperature, ARRAYS) and temperature in (None, 1.0)
    return x if plain_one else x / temperature


def _within(x: Any, length: Any, axis: int) -> ndarray:
    """A mask of the first `length` places along an axis; length has x's shape without that axis."""
    axis = axis_of(axis, x.ndim)
    order = onp.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return less(order, expand_dims(as_array(length), axis=axis))


def softmax(data: Any, length: Any = None, axis: int = -1, temperature: float | None = None,
            use_length: bool | None = None, dtype: Any = None) -> ndarray:  # fmt: skip
    """exp(data / temperature), scaled to sum to 1 along an axis; with `length`, over its first places and 0 beyond.

    dtype   of the result; by default data's

    use_length says whether there is a length: False ignores one, True without one is a ValueError.

    >>> npx.softmax(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    if length is temperature is dtype is use_length is None:
        return rows.softmax(as_array(data), axis=axis)
    x, length = _scaled(data, temperature, dtype), _used(length, use_length)
    if length is None:
        return rows.softmax(x, axis=axis)
    return masked_softmax(x, _within(x, length, axis), axis)


def log_softmax(data: Any, axis: int = -1, temperature: float | None = None, use_length: bool | None = None,
                length: Any = None, dtype: Any = None) -> ndarray:  # fmt: skip
    """log(softmax(data)), without overflow; arguments as in softmax.

    length, temperature, use_length, dtype   as in softmax

    >>> npx.log_softmax(np.zeros((1, 2))).round(4)
    array([[-0.6931, -0.6931]])
    """
    x, length = _scaled(data, temperature, dtype), _used(length, use_length)
    if length is None:
        return rows.log_softmax(x, axis=axis)
    return masked_log_softmax(x, _within(x, length, axis), axis)


def _used(length: Any, use_length: bool | None) -> Any:
    if use_length and length is None:
        raise ValueError("use_length=True needs length: how many places of each row count")
    return None if use_length is False else length


def masked_softmax(data: Any, mask: Any, axis: int = -1, temperature: float | None = None) -> ndarray:
    """The softmax of data over the places where mask is true, and 0 elsewhere.

    axis          along which it sums to 1; where the mask is false everywhere, it is 0 everywhere
    temperature   what data is divided by first (1)

    >>> npx.masked_softmax(np.zeros((1, 3)), np.array([[True, True, False]]))
    array([[0.5, 0.5, 0. ]])
    """
    x, mask = _scaled(data, temperature, None), truth(mask)
    lowest = onp.finfo(x.dtype).min  # not -inf: a row without places must not become NaN
    return where(mask, rows.softmax(where(mask, x, lowest), axis=axis), 0.0)


def masked_log_softmax(data: Any, mask: Any, axis: int = -1, temperature: float | None = None) -> ndarray:
    """log(masked_softmax(data, mask)): -inf where mask is false.

    axis, temperature   as in masked_softmax

    >>> npx.masked_log_softmax(np.zeros((1, 3)), np.array([[True, True, False]])).round(4)
    array([[-0.6931, -0.6931,    -inf]])
    """
    x, mask = _scaled(data, temperature, None), truth(mask)
    lowest = onp.finfo(x.dtype).min
    return where(mask, rows.log_softmax(where(mask, x, lowest), axis=axis), -onp.inf)


# ------------------------------------------------------------------ dropout
def dropout(
    data: Any, p: float = 0.5, axes: Sequence[int] = (), *, rng: Any = None, mask: Any = None, training: bool = True
) -> ndarray:
    """data with a fraction p of its elements set to 0 and the others divided by 1 - p; data itself outside training.

    axes   along these an element is kept or dropped as a whole
    rng    a np.random.Generator or RandomState; None: np.random's own stream, which np.random.seed seeds
    mask   which elements to keep, instead of drawing

    Raises ValueError for p outside [0, 1).

    >>> npx.dropout(np.ones(4), p=0.5, mask=np.array([1, 0, 1, 0]))
    array([2., 0., 2., 0.])
    >>> npx.dropout(np.ones(4), training=False)
    array([1., 1., 1., 1.])
    """
    x = as_array(data)
    if not training or (p == 0 and mask is None):
        return x
    if not 0 <= p < 1:
        raise ValueError(f"dropout drops a fraction p in [0, 1); got {p}")
    if mask is None:
        if rng is None:
            from ..numpy import random as rng
        shape = tuple(1 if i in axes_of(axes, x.ndim) else n for i, n in enumerate(x.shape)) if axes else x.shape
        with beside((x,)) or contextlib.nullcontext():  # new numbers are drawn where x lives
            mask = rng.random(shape) >= p
    mask = as_array(mask)
    return x * (astype(mask if mask.dtype == bool else number(mask), dtype=x.dtype) / (1 - p))


knows(dropout, pure=False)
