"""scipy.integrate with gradients: the rules of sampled functions, and odeint by the adjoint equation."""

from __future__ import annotations

from typing import Any

from scipy import integrate

from .. import numpy as np
from ..core.dispatch import defines
from ..numpy.arguments import as_array


def _along(x: Any, axis: int, part: slice) -> Any:
    return x[(*[slice(None)] * (axis % x.ndim), part)]


def _steps(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The distances of samples, in a shape that broadcasts against their differences along the axis."""
    if x is None:
        return as_array(dx)
    d = np.diff(as_array(x))
    return d.reshape((-1,) + (1,) * (y.ndim - 1 - axis % y.ndim)) if d.ndim == 1 else np.diff(as_array(x), axis=axis)


defines(integrate.trapezoid)(lambda y, x=None, dx=1.0, axis=-1: TRAPEZOID(as_array(y), x, dx, axis))
TRAPEZOID = getattr(np, "trapezoid", None) or np.trapz


@defines(integrate.cumulative_trapezoid)
def _cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    y = as_array(y)
    means = (_along(y, axis, slice(1, None)) + _along(y, axis, slice(-1))) / 2.0
    total = np.cumsum(_steps(y, x, dx, axis) * means, axis)
    return (
        total if initial is None else np.concatenate([np.zeros_like(_along(y, axis, slice(1))) + initial, total], axis)
    )


@defines(integrate.simpson)
def _simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The composite rule for unequal steps; an even number of samples has Cartwright's last interval, as in SciPy."""
    y = as_array(y)
    n, h = y.shape[axis], _steps(y, x, dx, axis)
    if n < 3:
        return np.sum(h * (_along(y, axis, slice(1, None)) + _along(y, axis, slice(-1))) / 2.0, axis)
    h = h + np.zeros_like(_along(y, axis, slice(1, None)))
    part, odd = (lambda v, a, b, k: _along(v, axis, slice(a, b, k))), n - (n % 2 == 0)
    h0, h1 = part(h, 0, odd - 1, 2), part(h, 1, odd - 1, 2)
    y0, y1, y2 = part(y, 0, odd - 2, 2), part(y, 1, odd - 1, 2), part(y, 2, odd, 2)
    both = h0 + h1
    total = np.sum(both / 6 * (y0 * (2 - h1 / h0) + y1 * both * both / (h0 * h1) + y2 * (2 - h0 / h1)), axis)
    if n % 2:
        return total
    h0, h1, (y0, y1, y2) = part(h, -2, -1, 1), part(h, -1, None, 1), (part(y, n - k, n - k + 1, 1) for k in (3, 2, 1))
    last = (
        y2 * (2 * h1**2 + 3 * h0 * h1) / (6 * (h0 + h1))
        + y1 * (h1**2 + 3 * h0 * h1) / (6 * h0)
        - y0 * h1**3 / (6 * h0 * (h0 + h1))
    )
    return total + np.sum(last, axis)
