"""scipy.special on our arrays: every function, with gradients for those in rows.py and the files it names.

Those of SciPy's own functions that are ufuncs find these rows too: scipy.special.expit(x).
"""

try:
    from scipy import special as _scipy
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        f"{__name__} needs scipy, which is not installed: pip install scipy", name="scipy"
    ) from _error

from ..core.api.namespace import lazy as _lazy
from ..core.api.public import function as _function
from . import bessel as _bessel  # noqa: F401  (definitions)
from . import functions as _functions  # noqa: F401
from . import incomplete as _incomplete  # noqa: F401
from . import integrals as _integrals  # noqa: F401

# ufuncs of several, which are neither functions nor ufuncs
_MULTIPLE = {n: _function(f"scipy.special.{n}", x) for n, x in vars(_scipy).items() if type(x).__name__ == "MultiUFunc"}
__getattr__, __dir__, __all__ = _lazy(__name__, _scipy, "scipy.special", _MULTIPLE)
__path__: list[str] = []  # SciPy has modules in it: core/api/submodules.py
