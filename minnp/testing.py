"""check_grads: derivatives against central differences, to any order, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .core.array import handle, ndarray, read
from .core.forward import jvp
from .core.gradients import LEAVES, vjp
from .core.tree import tree_flatten, tree_leaves
from .core.value import Buffer, concrete

# Central differences of step e err by about e**2 |f'''| / 6 and by u |f| / e: at 6e-6 the latter is 4e-11 |f|.
# So a part of 5e-6 of the derivative, and 1e-8 of the function's own size, leave room for functions less simple.
STEP, RTOL, ATOL = 6e-6, 5e-6, 1e-8


def check_grads(
    f: Callable,
    args: Sequence[Any] | None = None,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    rtol: float = RTOL,
    atol: float = ATOL,
    step: float = STEP,
    seed: int = 0,
) -> Any:
    """Raise AssertionError unless f's derivatives agree with central differences along random directions.

    check_grads(f, args, ...) checks now; check_grads(f, order=..., modes=...) returns a function of f's arguments that
    does.
    order   each order checks the derivative of the one before
    modes   "rev": pullbacks; "fwd": tangents
    rtol    of the derivative: an error of 1e-4 in any one rule is found
    atol    of the function's own size, which is what rounding disturbs in a difference
    Each argument is moved by itself, so that no small derivative hides behind a large one of another argument.
    Arguments and results are float64 (or complex128) arrays or numbers, or trees of them: with less precision
    differences mean nothing. Each leaf counts as an argument.
    """
    if args is None:
        return lambda *a: check_grads(f, a, order, modes, rtol, atol, step, seed)
    rng = onp.random.default_rng(seed)
    leaves, rebuild = tree_flatten(tuple(args))
    points = [onp.asarray(a) for a in leaves]
    for p in points:
        if p.dtype not in (onp.float64, onp.complex128):
            raise TypeError(f"check_grads wants float64 or complex128 arguments, got {p.dtype}")
    unknown = set(modes) - {"rev", "fwd"}
    if unknown:
        raise ValueError(f"unknown modes {sorted(unknown)}; known: 'rev', 'fwd'")
    name = getattr(f, "__name__", type(f).__name__)
    _check(lambda *xs: f(*rebuild(list(xs))), points, order, tuple(modes), rtol, atol, step, rng, name)


def _check(
    f: Callable, points: list, order: int, modes: tuple, rtol: float, atol: float, step: float, rng: Any, name: str
) -> None:
    if order < 1:
        return
    along = [_direction(rng, p.shape, p.dtype) for p in points]
    top = f"order {order} from the top"
    pullback = weights = None
    for i, d in enumerate(along):
        moved = lambda e: [p + e * d if k == i else p for k, p in enumerate(points)]  # noqa: B023
        up, down = (_numbers(f(*map(handle, moved(e)))) for e in (step, -step))
        want = [(u - v) / (2 * step) for u, v in zip(up, down, strict=True)]
        noise = atol * max([1.0, *(float(onp.max(onp.abs(u), initial=0.0)) for u in up)])
        if "fwd" in modes:
            tangents = [d if k == i else onp.zeros_like(t) for k, t in enumerate(along)]
            _, slopes = jvp(f, tuple(map(handle, points)), tuple(tangents))
            for got, w in zip(_numbers(slopes), want, strict=True):
                limit = noise + rtol * (onp.abs(w) + 0.1 * onp.max(onp.abs(w), initial=0.0))
                _compare(got, w, limit, f"forward derivative of {name} for argument {i}, {top}")
        if "rev" in modes:
            if pullback is None:
                _, pullback = vjp(f, *map(handle, points))
                weights = [_direction(rng, w.shape, w.dtype) for w in want]
            # Once along random weights, and once along those with which nothing cancels.
            for ws in (weights, [onp.abs(c) * _phase(w) for c, w in zip(weights, want, strict=True)]):
                got = _dot(_numbers(pullback(ws)[i])[0], d)
                expected = sum(_dot(c, w) for c, w in zip(ws, want, strict=True))
                limit = sum(float(onp.sum(onp.abs(c) * (noise + rtol * onp.abs(w)))) for c, w in zip(ws, want))
                _compare(got, expected, limit, f"gradient of {name} for argument {i}, {top}")
    if order == 1:
        return
    if "fwd" in modes:

        def slope(*xs: Any) -> Any:
            return jvp(f, xs, tuple(along))[1]

        _check(slope, points, order - 1, modes, 10 * rtol, 10 * atol, step, rng, f"jvp({name})")
    if "rev" in modes:

        def pulled(*xs: Any) -> Any:
            _, pullback = vjp(f, *xs)
            return pullback(weights)

        _check(pulled, points, order - 1, modes, 10 * rtol, 10 * atol, step, rng, f"grad({name})")


def _direction(rng: Any, shape: tuple, dtype: Any) -> onp.ndarray:
    d = rng.standard_normal(shape)
    return onp.asarray(d + 1j * rng.standard_normal(shape) if dtype.kind == "c" else d)


def _dot(a: onp.ndarray, b: onp.ndarray) -> float:
    """Re(sum(a * b)): cotangents pair with tangents without a conjugate (autograd's convention)."""
    return float(onp.real(onp.sum(a * b)))


def _numbers(tree: Any) -> list[onp.ndarray]:
    values = [concrete(read(x)) if type(x) is ndarray else x for x in tree_leaves(tree) if isinstance(x, LEAVES)]
    return [onp.asarray(v.host() if type(v) is Buffer else v) for v in values]


def _phase(w: onp.ndarray) -> onp.ndarray:
    """What turns w into its absolute value."""
    size = onp.abs(w)
    return onp.where(size > 0, onp.conj(w), 1) / onp.where(size > 0, size, 1)


def _compare(got: Any, want: Any, limit: Any, what: str) -> None:
    if not onp.all(onp.abs(got - want) <= limit):  # NaN fails too
        raise AssertionError(f"{what}: {onp.asarray(got)!r} differs from central differences {onp.asarray(want)!r}")
