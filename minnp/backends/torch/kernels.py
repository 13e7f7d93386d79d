"""Every kernel, by row name."""

from . import (  # noqa: F401  (they register)
    choices,
    creation,
    elementwise,
    fft,
    indexing,
    linalg,
    neural,
    packed,
    products,
    recurrent,
    reductions,
    selection,
    shape,
)
from .registry import KERNELS

__all__ = ["KERNELS"]
