"""Programs made of loops: linear algebra, stencils, tables and sequences, particles and series.

linear.py, stencils.py, discrete.py and numeric.py hold them as NumPy users write them: functions of arrays and numbers
that return what they compute, and may write to their arguments. cases.py has the inputs of each, and its results got
another way; in_jax.py has them in JAX's words. `functions(np)` gives them with another module as `np`: one text for
NumPy, minnp and Numba.
"""

from __future__ import annotations

import importlib.util
import pathlib
import types
from collections.abc import Callable
from typing import Any

import numpy

FILES = ("linear", "stencils", "discrete", "numeric")


def functions(np: Any = numpy, decorate: Callable | None = None) -> dict[str, Callable]:
    """Every function of the four files by name, helpers too, from a fresh copy of each in which `np` is the one given.

    decorate   each function is replaced by decorate(function), those that others call too (numba.njit, say)
    """
    found: dict[str, Callable] = {}
    for name in FILES:
        spec = importlib.util.spec_from_file_location(
            f"{__name__}.{name}", pathlib.Path(__file__).parent / f"{name}.py"
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.np = np
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType):
                found[key] = decorate(value) if decorate else value
                setattr(module, key, found[key])
    return found
