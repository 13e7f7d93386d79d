"""Products of cotangents with slopes: those that a device computes in one kernel, where the formula is several and each
costs a launch, and those with slopes that may be infinite or NaN, which are 0 where the cotangent is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.compiled import fastpath
from ..core.rows.primitive import per_element, primitive
from ..core.rows.value import Buffer, Host, Value
from ..core.transforms.cotangents import twice_product
from .facts import elementwise, sampled, spread

FEW = 64  # elements up to which Python looks at them faster than NumPy

tanh_grad = primitive(
    "npx.tanh_grad",
    numpy=lambda g, y: times(g, 1 - y * y),
    vjp=[lambda h, z, g, y: of_tanh(h, y), lambda h, z, g, y: -2 * times(times(h, g), y)],
    jvp="elementwise",
    saves="in",
    shape=lambda metas, params: metas[0],
    flops=per_element(3),
    samples=sampled(((spread(2, 3), spread(2, 3, seed=1)), {})),
)


def of_tanh(g: Any, y: Any, x: Any = None) -> Any:
    """g times the slope of tanh where it is y."""
    if type(g) is Buffer is type(y) and g.backend.kernel(tanh_grad) is not None:
        return tanh_grad(g, y)
    g_y = times(g, y)
    return g - times(g_y, y)  # not g * (1 - y*y): an array with a number costs NumPy three times what two arrays do


# ------------------------------------------------------------------ strong zeros
def _nonzero(d: onp.ndarray) -> bool:
    """Whether no element is 0 or NaN. (False is not wrong, only slower.)"""
    if d.size <= FEW:
        product = math.prod(d.ravel().tolist())
        return product != 0 and product == product
    if d.dtype.kind == "c":
        return bool(d.all()) and not onp.isnan(d).any()
    least = d.min()
    return bool(least > 0 or d.max() < 0 or (least == least and d.all()))


def _finite(s: onp.ndarray) -> bool:
    """Whether every element is finite. (False is not wrong, only slower.)"""
    if s.size <= FEW:
        total = sum(s.ravel().tolist())
        return total - total == 0
    return bool(onp.isfinite(s).all() if s.dtype.kind == "c" else onp.isfinite(s.max()) and onp.isfinite(s.min()))


def _beside(g: Any, slope: onp.ndarray) -> onp.ndarray:
    """The slope, with 1 in place of what stands beside a cotangent of 0."""
    zero = onp.equal(g, 0)
    slope = onp.array(onp.broadcast_to(slope, onp.broadcast_shapes(zero.shape, slope.shape)))
    slope[onp.broadcast_to(zero, slope.shape)] = 1
    return slope


def _strong_divide(g: Any, d: Any, out: onp.ndarray | None = None) -> Any:
    if type(d) in (int, float):
        return onp.divide(g, d if d < 0 or d > 0 else _beside(g, onp.asarray(d)), out=out)
    d = onp.asarray(d)
    return onp.divide(g, d if _nonzero(d) else _beside(g, d), out=out)


def _strong_multiply(g: Any, s: Any, out: onp.ndarray | None = None) -> Any:
    if type(s) is complex:
        g = onp.asarray(g)
        if s.real == 0 and g.dtype.kind != "c" and not _finite(g):  # infinity times that 0 is NaN
            y = onp.zeros(g.shape, onp.result_type(g.dtype, onp.complex64))
            y.imag = g * s.imag
            return y[()]
        return onp.multiply(g, s, out=out)
    if type(s) in (int, float):
        return onp.multiply(g, s if s - s == 0 else _beside(g, onp.asarray(s)), out=out)
    s = onp.asarray(s)
    return onp.multiply(g, s if _finite(s) else _beside(g, s), out=out)


def _strong_product(a: Any, b: Any, out: onp.ndarray | None = None) -> Any:
    a, b = onp.asarray(a), onp.asarray(b)
    if not _finite(a):
        a = _beside(b, a)
    return onp.multiply(a, b if _finite(b) else _beside(a, b), out=out)


strong_divide = primitive(
    "npx.strong_divide",
    numpy=_strong_divide,
    vjp=[lambda h, y, g, d: over(h, d), lambda h, y, g, d: -over(over(strong_product(h, g), d), d)],
    jvp="elementwise",
    saves="in",
    shape=elementwise(onp.divide),
    flops=per_element(1),
    samples=sampled(((spread(2, 3), spread(2, 3, low=0.5, high=2, seed=1)), {})),
)
strong_multiply = primitive(
    "npx.strong_multiply",
    numpy=_strong_multiply,
    vjp=[lambda h, y, g, s: times(h, s), lambda h, y, g, s: strong_product(h, g)],
    jvp="elementwise",
    saves="in",
    shape=elementwise(onp.multiply),
    flops=per_element(1),
    samples=sampled(((spread(2, 3), spread(2, 3, seed=1)), {})),
)
# what two cotangents make, where the slope of a slope is asked for: 0 where either is
strong_product = primitive(
    "npx.strong_product",
    numpy=_strong_product,
    vjp=[lambda h, y, a, b: strong_product(h, b), lambda h, y, a, b: strong_product(h, a)],
    jvp="elementwise",
    saves="in",
    shape=elementwise(onp.multiply),
    flops=per_element(1),
    samples=sampled(((spread(2, 3), spread(2, 3, seed=1)), {})),
)


def of_square(g: Any, y: Any, x: Any) -> Any:
    """2 g x."""
    if type(g) is Host is type(x) and x.size > FEW and _finite(x):
        return twice_product(g, x)
    return times(g, x + x)


def _of_numpy(x: Any) -> bool:
    """Whether NumPy computes with it: not what follows arrays, nor a number under jit, whose __class__ says float."""
    return issubclass(type(x), (onp.ndarray, onp.generic, int, float, complex)) and not isinstance(x, Value)


def _over(g: Any, d: Any) -> Any:
    if type(d) in (int, float) and (d < 0 or d > 0):
        return g / d
    return _strong_divide(g, d) if _of_numpy(g) and _of_numpy(d) else strong_divide(g, d)


def _times(g: Any, s: Any) -> Any:
    if type(s) in (int, float) and s - s == 0:
        return g * s
    return _strong_multiply(g, s) if _of_numpy(g) and _of_numpy(s) else strong_multiply(g, s)


# over(g, d): g / d, and 0 where g is 0, whatever d is: the cotangent where d is 0 or NaN and nothing flows.
# times(g, s): g * s, and 0 where g is 0, whatever s is: the cotangent where the slope is infinite or NaN.
over: Callable = _over if fastpath is None else fastpath.strong(True, _over)
times: Callable = _times if fastpath is None else fastpath.strong(False, _times)


def by_slope(rule: Callable) -> Callable:
    """A rule, linear in g element by element, as the strong product of g with its slope."""
    return lambda g, y, *arrays, **params: times(g, rule(1.0, y, *arrays, **params))
