"""numpy.strings (NumPy 2) on our arrays."""

from numpy import strings as _strings

from ..core.api.namespace import lazy as _lazy

__getattr__, __dir__, __all__ = _lazy(__name__, _strings, "strings", {})
