"""scipy.special on our arrays: every function, with gradients for those in minnp.scipy.rows and .functions.

Those of SciPy's own functions that are ufuncs find these rows too: scipy.special.expit(x).
"""

from scipy import special as _scipy

from ..core.namespace import lazy as _lazy
from . import functions as _functions  # noqa: F401  (definitions)

__getattr__, __dir__, __all__ = _lazy(__name__, _scipy, "scipy.special", {})
