"""numpy.polynomial on our arrays: NumPy's own code, on our functions."""

import numpy as _onp

from ...core.api.namespace import lazy as _lazy
from .chebyshev import Chebyshev
from .hermite import Hermite
from .hermite_e import HermiteE
from .laguerre import Laguerre
from .legendre import Legendre
from .polynomial import Polynomial

_CLASSES = {c.__name__: c for c in (Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial)}
__getattr__, __dir__, __all__ = _lazy(__name__, _onp.polynomial, "polynomial", _CLASSES)
