"""numpy.polynomial.laguerre on our arrays: NumPy's own code, on our functions."""

from numpy.polynomial import laguerre as _source

from ...core.api.namespace import lazy as _lazy
from ..rebound import rebound_class as _rebound_class
from ..rebound import rebound_module as _rebound_module

_rebound_module(_source)
Laguerre = _rebound_class(_source.Laguerre, __name__)
__getattr__, __dir__, __all__ = _lazy(__name__, _source, "polynomial.laguerre", {"Laguerre": Laguerre})
