"""Rows, dispatch, handles and transformations: what every array function is made of.

The names here are MinPy's: `from minnp.core import grad, grad_and_loss, Function`.
"""

from .convert import convert_args, minpy_to_numpy, numpy_to_minpy, return_numpy
from .function import Function
from .gradients import grad, grad_and_loss

__all__ = ["Function", "convert_args", "grad", "grad_and_loss", "minpy_to_numpy", "numpy_to_minpy", "return_numpy"]
