"""SciPy on our arrays, where it looks at an array's class before it asks for the array.

Nearly everywhere SciPy takes what NumPy's asarray takes, and calls NumPy's functions, which are ours for our arrays.
Two places want NumPy's own class: the optimisers' compiled steps, of what a user's function returned, and the iterative
solvers, of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as onp

from ..core import array  # unfinished, where SciPy was imported before us
from .helping import telling


def _taking(function: Callable) -> Callable:
    """The function, which is given NumPy's arrays in the place of ours."""

    @wraps(function)
    def call(*args: Any) -> Any:
        return function(*[onp.asarray(a) if type(a) is array.ndarray else a for a in args])

    return call


# NumPy as these modules see it. With two of its functions the optimisers make arrays of what functions of the user's
# return; its `ndarray` is ours, of which NumPy's arrays are instances too.
_numpy = ModuleType("numpy")
vars(_numpy).update(vars(onp), atleast_1d=_taking(onp.atleast_1d), atleast_2d=_taking(onp.atleast_2d))
del _numpy.ndarray
vars(_numpy)["__getattr__"] = lambda name: getattr(array if name == "ndarray" else onp, name)


def _tell(module: ModuleType) -> None:
    if getattr(module, "np", None) is onp:
        module.np = _numpy  # type: ignore[attr-defined]


def _what(name: str) -> Callable | None:
    return _tell if name.startswith("scipy.optimize.") or name == "scipy.sparse.linalg._interface" else None


find_spec = telling(_what)
