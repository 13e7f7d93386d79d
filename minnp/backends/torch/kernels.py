"""Every kernel, by row name."""

from . import choices, elementwise, fft, indexing, linalg, products, reductions, selection, shape  # noqa: F401  (they register)
from .registry import KERNELS

__all__ = ["KERNELS"]
