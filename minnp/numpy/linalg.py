"""numpy.linalg on our arrays."""

import numpy as _onp

from ..core.api.namespace import lazy as _lazy
from .standard_modules import LINALG as _LINALG

__getattr__, __dir__, __all__ = _lazy(__name__, _onp.linalg, "linalg", dict(_LINALG))
__path__: list[str] = []  # it has submodules: core/api/submodules.py
