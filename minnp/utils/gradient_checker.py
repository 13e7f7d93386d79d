"""A gradient check in one random direction: two extra evaluations, whatever the number of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import grad
from .. import numpy as np


def quick_grad_check(
    fun: Callable,
    arg: Any,
    verbose: bool = True,
    eps: float = 1e-2,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    rs: onp.random.RandomState | None = None,
) -> bool:
    """Whether the gradient of fun at arg agrees with a central difference of fun along one random direction.

    fun       a function of one array; if its result is not a scalar, its sum is checked
    arg       array or number: where to check
    eps       distance between the two points of the difference
    rs        source of the direction, a numpy RandomState; fresh by default
    """
    rs = onp.random.RandomState() if rs is None else rs
    at = onp.asarray(arg, dtype=onp.result_type(arg, onp.float64))
    direction = rs.standard_normal(at.shape)
    direction /= onp.linalg.norm(direction)

    def along(step: float) -> Any:
        return onp.sum(onp.asarray(fun(np.array(at + step * direction))))

    numeric = (along(eps / 2) - along(-eps / 2)) / eps
    analytic = onp.sum(onp.asarray(grad(fun)(at)) * direction)
    passed = bool(onp.allclose(analytic, numeric, rtol=rtol, atol=atol))
    if verbose:
        print(f"gradient {'agrees' if passed else 'DISAGREES'}: difference {numeric:.6g}, derivative {analytic:.6g}")
    return passed
