"""numpy.polynomial.legendre on our arrays: NumPy's own code, on our functions."""

from numpy.polynomial import legendre as _source

from ...core.api.namespace import lazy as _lazy
from ..rebound import rebound_class as _rebound_class
from ..rebound import rebound_module as _rebound_module

_rebound_module(_source)
Legendre = _rebound_class(_source.Legendre, __name__)
__getattr__, __dir__, __all__ = _lazy(__name__, _source, "polynomial.legendre", {"Legendre": Legendre})
