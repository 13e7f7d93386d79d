"""check_grads: derivatives against central differences, to any order, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .core.array import handle, ndarray, read
from .core.forward import jvp
from .core.gradients import LEAVES, vjp
from .core.tree import tree_leaves

# Central differences of step e err by about e**2 |f'''| / 6 + u |f| / e: at 6e-6 both are near 1e-10 for f of size 1.
STEP, RTOL, ATOL = 6e-6, 5e-6, 5e-7


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
    Arguments and results are float64 (or complex128) arrays or numbers: with less precision differences mean nothing.
    """
    if args is None:
        return lambda *a: check_grads(f, a, order, modes, rtol, atol, step, seed)
    rng = onp.random.default_rng(seed)
    points = [onp.asarray(a) for a in args]
    for p in points:
        if p.dtype not in (onp.float64, onp.complex128):
            raise TypeError(f"check_grads wants float64 or complex128 arguments, got {p.dtype}")
    unknown = set(modes) - {"rev", "fwd"}
    if unknown:
        raise ValueError(f"unknown modes {sorted(unknown)}; known: 'rev', 'fwd'")
    _check(
        f,
        points,
        order,
        tuple(modes),
        rtol,
        atol,
        step,
        rng,
        type(f).__name__ if not hasattr(f, "__name__") else f.__name__,
    )


def _check(
    f: Callable, points: list, order: int, modes: tuple, rtol: float, atol: float, step: float, rng: Any, name: str
) -> None:
    if order < 1:
        return
    along = [_direction(rng, p.shape, p.dtype) for p in points]
    up = _numbers(f(*[handle(p + step * d) for p, d in zip(points, along, strict=True)]))
    down = _numbers(f(*[handle(p - step * d) for p, d in zip(points, along, strict=True)]))
    want = [(u - d) / (2 * step) for u, d in zip(up, down, strict=True)]
    weights = [_direction(rng, w.shape, w.dtype) for w in want]
    if "fwd" in modes:
        _, slopes = jvp(f, tuple(map(handle, points)), tuple(along))
        _compare(_numbers(slopes), want, rtol, atol, f"forward derivative of {name}, order {order} from the top")
    if "rev" in modes:
        out, pullback = vjp(f, *map(handle, points))
        seeds = iter(weights)
        leaves = tree_leaves(out)
        cotangents = [next(seeds) for _ in leaves]
        grads = _numbers(pullback(cotangents))
        got = sum(_dot(g, d) for g, d in zip(grads, along, strict=True))
        expected = sum(_dot(w, v) for w, v in zip(weights, want, strict=True))
        scale = sum(float(onp.sum(onp.abs(w) * onp.abs(v))) for w, v in zip(weights, want, strict=True))
        _compare([onp.asarray(got)], [onp.asarray(expected)], rtol, atol + rtol * scale, f"gradient of {name}")
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
    return [
        onp.asarray(x._host if type(x) is ndarray and x._host is not None else read(x) if type(x) is ndarray else x)
        for x in tree_leaves(tree)
        if isinstance(x, LEAVES)
    ]


def _compare(got: list, want: list, rtol: float, atol: float, what: str) -> None:
    for g, w in zip(got, want, strict=True):
        error = onp.abs(g - w)
        limit = atol * max(1.0, float(onp.max(onp.abs(w), initial=0.0))) + rtol * onp.abs(w)
        if not onp.all(error <= limit):  # NaN fails too
            raise AssertionError(f"{what}: {onp.asarray(g)!r} differs from central differences {onp.asarray(w)!r}")
