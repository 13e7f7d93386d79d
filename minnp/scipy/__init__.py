"""SciPy's namespaces on our arrays (needs SciPy): special and stats with gradients, all others with SciPy's values."""

from ..core.submodules import Submodules as _Submodules

_Submodules(__name__)
