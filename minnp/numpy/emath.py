"""numpy.emath on our arrays."""

import numpy as _onp

from ..core.api.namespace import lazy as _lazy
from .rebound import rebound_module as _rebound_module

_rebound_module(_onp.emath)

__getattr__, __dir__, __all__ = _lazy(__name__, _onp.emath, "emath", {})
