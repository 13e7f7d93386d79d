"""numpy.lib.stride_tricks on our arrays."""

import numpy as _onp

from ...core.api.namespace import lazy as _lazy

__getattr__, __dir__, __all__ = _lazy(__name__, _onp.lib.stride_tricks, "lib.stride_tricks", {})
