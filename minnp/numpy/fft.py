"""numpy.fft on our arrays."""

import numpy as _onp

from ..core.api.namespace import lazy as _lazy
from .standard_modules import FFT as _FFT

__getattr__, __dir__, __all__ = _lazy(__name__, _onp.fft, "fft", dict(_FFT))
__path__: list[str] = []  # it has submodules: core/api/submodules.py
