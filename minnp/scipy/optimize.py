"""scipy.optimize for functions that return our arrays: `minimize(f, x0, jac=grad(f), method="L-BFGS-B")`.

SciPy's compiled solvers (L-BFGS-B and SLSQP among those of `minimize`) look at the very type of a gradient and take
numpy.ndarray alone. So the functions given here answer them with NumPy's arrays; everything else, the results included,
is SciPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from scipy import optimize as _scipy

from ..core.convert import minpy_to_numpy as _plain
from ..core.convert import return_numpy as _return_numpy
from ..core.tree import tree_map as _tree_map


def _answering(f: Callable) -> Callable:
    """SciPy's f, whose arguments are NumPy's arrays, and functions that return them; in lists and dicts too."""

    def settled(x: Any) -> Any:
        return _return_numpy(x) if callable(x) and not isinstance(x, type) else _plain(x)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*(_tree_map(settled, a) for a in args), **{k: _tree_map(settled, a) for k, a in kwargs.items()})

    return call


@functools.cache
def __getattr__(name: str) -> Any:
    x = getattr(_scipy, name)
    return _answering(x) if callable(x) and not isinstance(x, type) and not name.startswith("_") else x


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = list(_scipy.__all__)
