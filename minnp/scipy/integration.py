"""scipy.integrate with gradients: the rules of sampled functions, integrals of functions, differential equations.

What a function takes from elsewhere than its arguments counts as a constant: pass it in `args`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as onp
from scipy import integrate

from .. import numpy as np
from ..core.arrays.array import array_of
from ..core.rows.dispatch import defines
from ..core.rows.pytree import tree_flatten
from ..core.transforms.derivatives import custom_vjp
from ..core.transforms.grad import vjp
from ..numpy.arguments import as_array, plain


def _along(x: Any, axis: int, part: slice) -> Any:
    return x[(*[slice(None)] * (axis % x.ndim), part)]


def _steps(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The distances of samples, in a shape that broadcasts against their differences along the axis."""
    if x is None:
        return as_array(dx)
    d = np.diff(as_array(x))
    return d.reshape((-1,) + (1,) * (y.ndim - 1 - axis % y.ndim)) if d.ndim == 1 else np.diff(as_array(x), axis=axis)


@defines(integrate.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y, x = as_array(y), None if x is None else as_array(x)
    return TRAPEZOID(y, x if x is None or x.ndim else np.broadcast_to(x, y.shape), dx, axis)


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


# ------------------------------------------------------------------ differential equations
def _flow(func: Callable, solver: Callable, known: Any = None) -> Callable:
    """(y0, t, *args) -> y at the times t, with its gradient by the adjoint equation: by solver(func, y0, t, args),
    unless it is known.

    a' = -(df/dy)^T a backwards in time, from what arrives at each of the times; the arguments gather -(df/dargs)^T a
    (Pontryagin; Chen et al., "Neural ordinary differential equations", 2018).
    """

    @custom_vjp
    def flow(y0: Any, t: Any, *args: Any) -> Any:
        if known is not None:
            return array_of(known.copy())
        numbers = lambda y, s, *more: onp.asarray(func(array_of(onp.asarray(y)), s, *more), float)
        return array_of(solver(numbers, plain(as_array(y0)), plain(as_array(t)), args))

    def forward(y0: Any, t: Any, *args: Any) -> tuple:
        y = flow(y0, t, *args)
        return y, (y, t, args)

    def backward(saved: Any, g: Any) -> tuple:
        y, t, args = saved
        leaves, rebuild = tree_flatten(args)
        n, shapes = y.shape[1], [as_array(x).shape for x in leaves]
        ends = onp.cumsum([0, *(onp.prod(shape, dtype=int) for shape in shapes)])

        def around(z: Any, s: Any, *args: Any) -> Any:
            """What moves backwards, at s = -t: y, its cotangent, and those of the arguments."""
            slope, pullback = vjp(lambda y, *args: as_array(func(y, -s, *args)), z[:n], *args)
            parts, _ = tree_flatten(tuple(pullback(z[n : 2 * n])))
            return np.concatenate([-slope, *(as_array(p).reshape(-1) for p in parts)])

        back, slopes = _flow(around, solver), lambda i: as_array(func(y[i], t[i], *args))
        a, gathered, of_times = g[-1], np.zeros(ends[-1]), [np.sum(g[-1] * slopes(-1))]
        for i in range(len(y) - 1, 0, -1):
            z = back(np.concatenate([y[i], a, gathered]), np.stack([-t[i], -t[i - 1]]), *args)[-1]
            a, gathered = z[n : 2 * n], z[2 * n :]
            of_times.append(np.sum((g[i - 1] if i > 1 else -a) * slopes(i - 1)))
            a = a + g[i - 1]
        parts = [
            gathered[start:stop].reshape(shape) for (start, stop), shape in zip(pairwise(ends), shapes, strict=True)
        ]
        return a, np.stack(of_times[::-1]), *rebuild(parts)

    return flow.defvjp(forward, backward)


@defines(integrate.odeint)
def _odeint(func: Callable, y0: Any, t: Any, args: Any = (), Dfun: Any = None, *more: Any, **options: Any) -> Any:
    tfirst = options.pop("tfirst", False)
    if more or Dfun is not None or options.get("full_output"):
        return NotImplemented
    args = args if isinstance(args, tuple) else (args,)
    solver = lambda f, y0, t, args: integrate.odeint(f, y0, t, args, **options)
    return _flow(_turned(func) if tfirst else func, solver)(np.atleast_1d(as_array(y0)), as_array(t), *args)


def _turned(func: Callable) -> Callable:
    return lambda y, t, *args: func(t, y, *args)


@defines(integrate.solve_ivp)
def _solve_ivp(
    fun: Callable,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """SciPy's result, with a `y` that has gradients with respect to y0, args and the times, those of steps that the
    solver chose between the ends of t_span being constants."""
    if dense_output or events is not None or vectorized or "jac" in options:
        return NotImplemented
    args, y0 = args or (), as_array(y0)
    ends, asked = np.stack([as_array(t) * 1.0 for t in t_span]), t_eval if t_eval is None else as_array(t_eval) * 1.0
    constant = lambda x: x if x is None else plain(np.stop_gradient(x))
    span = tuple(constant(ends).tolist())

    def solve(f: Callable, y0: Any, span: Any, t: Any, args: Any) -> Any:
        return integrate.solve_ivp(lambda s, y, *args: f(y, s, *args), span, y0, method, t, args=args, **options)

    numbers = lambda y, s, *more: onp.asarray(constant(as_array(fun(s, array_of(y), *more))))
    found = solve(numbers, constant(y0), span, constant(asked), args)
    solver = lambda f, y0, t, args: solve(f, y0, (t[0], t[-1]), t, args).y.T
    start = found.t[0] == span[0]
    if asked is not None:
        later = asked[int(start) : len(found.t)]
    else:
        reached = found.status == 0 and len(found.t) > 1
        later = np.concatenate([found.t[1:-1], ends[1:]]) if reached else as_array(found.t[1:])
    times = np.concatenate([ends[:1], later])
    shown = slice(0 if start else 1, None)
    known = found.y.T if start else onp.stack([constant(y0), *found.y.T])
    found.t, found.y = times[shown], _flow(_turned(fun), solver, known)(y0, times, *args).T[:, shown]
    return found


@defines(integrate.quad)
def _quad(func: Callable, a: Any, b: Any, args: Any = (), full_output: int = 0, **options: Any) -> Any:
    """(integral, error bound): the limits have gradients, and args by the integrals of func's derivatives."""
    if full_output or options.get("weight") is not None or options.get("complex_func"):
        return NotImplemented
    args = args if isinstance(args, tuple) else (args,)
    error = []

    @custom_vjp
    def integral(a: Any, b: Any, *args: Any) -> Any:
        numbers = lambda x: float(func(x, *args))
        value, bound = integrate.quad(numbers, plain(as_array(a)), plain(as_array(b)), **options)
        error.append(bound)
        return array_of(onp.float64(value))

    def backward(saved: tuple, g: Any) -> tuple:
        a, b, args = saved
        leaves, rebuild = tree_flatten(args)

        def slope(k: int, i: int) -> Callable:
            """The derivative of func's values in element i of leaf k."""
            along = lambda x, *xs: vjp(lambda v: func(x, *rebuild([*xs[:k], v, *xs[k + 1 :]])), xs[k])[1](1.0)[0]
            return lambda x, *xs: as_array(along(x, *xs)).reshape(-1)[i]

        parts = []
        for k, leaf in enumerate(map(as_array, leaves)):
            each = [_quad(slope(k, i), a, b, tuple(leaves), **options)[0] for i in range(leaf.size)]
            parts.append(g * np.stack(each).reshape(leaf.shape))
        return -g * func(a, *args), g * func(b, *args), *rebuild(parts)

    value = integral.defvjp(lambda a, b, *args: (integral(a, b, *args), (a, b, args)), backward)(a, b, *args)
    return value, error[0]
