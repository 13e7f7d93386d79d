"""Rows, dispatch, arrays and transformations: what every array function is made of.

The names here are MinPy's: `from minnp.core import grad, grad_and_loss, Function`.
"""

import importlib
from typing import Any

from .arrays.convert import convert_args, minpy_to_numpy, numpy_to_minpy, return_numpy
from .transforms.grad import grad, grad_and_loss

__all__ = ["Function", "convert_args", "grad", "grad_and_loss", "minpy_to_numpy", "numpy_to_minpy", "return_numpy"]


def __getattr__(name: str) -> Any:
    if name != "Function":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(".graph.embedding", __name__).Function
