"""numpy.polynomial on our arrays: its classes are NumPy's own."""

import numpy as _onp

from ...core.namespace import lazy as _lazy

__getattr__, __dir__, __all__ = _lazy(__name__, _onp.polynomial, "polynomial", {})
