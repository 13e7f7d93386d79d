"""A gradient check in one random direction: two extra evaluations, whatever the number of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import numpy as np
from .. import vjp


def quick_grad_check(
    fun: Callable,
    arg: Any,
    verbose: bool = True,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    rs: onp.random.RandomState | None = None,
) -> bool:
    """Whether the gradient of fun at arg agrees with a central difference of fun along one random direction.

    fun       a function of one array; of a result that is not a scalar, a sum with random weights is checked, of such
              signs that nothing cancels
    arg       array or number: where to check, in float64
    eps       distance between the two points of the difference; by default 1e-5 times the length of a random direction
    rtol      of the derivative (default 1e-5: an error of 1e-4 in any one rule is found)
    atol      of the function's own size (default 1e-8)
    rs        source of the direction and weights, a numpy RandomState; fresh by default

    Where fun computes in float32, as layers may, a difference cannot be that exact: eps is then 1e-2 times the length,
    and the tolerances 1e-2.
    """
    rs = onp.random.RandomState() if rs is None else rs
    at = onp.asarray(arg, dtype=onp.result_type(arg, onp.float64))
    direction = rs.standard_normal(at.shape)
    if at.dtype.kind == "c":
        direction = direction + 1j * rs.standard_normal(at.shape)
    length = float(onp.linalg.norm(direction))
    direction = onp.asarray(direction / length)
    out, pullback = vjp(fun, np.array(at))
    out = onp.asarray(out)
    exact = onp.finfo(out.dtype).eps < 1e-10
    eps = (1e-5 if exact else 1e-2) * length if eps is None else eps
    rtol = (1e-5 if exact else 1e-2) if rtol is None else rtol
    atol = (1e-8 if exact else 1e-2) if atol is None else atol

    def along(step: float) -> onp.ndarray:
        return onp.asarray(fun(np.array(at + step * direction)))

    slope = (along(eps / 2) - along(-eps / 2)) / eps
    weights = onp.asarray(1.0)
    if out.ndim:
        weights = onp.asarray(rs.uniform(0.5, 1.5, out.shape) * onp.where(slope.real < 0, -1, 1))
    numeric = float(onp.sum(weights * slope.real))
    analytic = float(onp.sum(onp.real(onp.asarray(pullback(weights.astype(out.dtype))[0]) * direction)))
    size = max(1.0, float(onp.max(onp.abs(out), initial=0.0)))
    limit = float(onp.sum(onp.abs(weights) * (rtol * onp.abs(slope) + atol * size / max(length, 1.0))))
    passed = abs(analytic - numeric) <= limit
    if verbose:
        print(f"gradient {'agrees' if passed else 'DISAGREES'}: difference {numeric:.6g}, derivative {analytic:.6g}")
    return passed
