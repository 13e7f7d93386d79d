"""SciPy's namespaces on our arrays (needs SciPy): values are SciPy's own, and what follows has gradients as well.

special            rows.py, bessel.py, incomplete.py, integrals.py, functions.py
stats              distributions.py, univariate.py, counts.py, multivariate.py, summaries.py
linalg             matrices.py, matrix_rows.py
fft                transforms.py
signal             signals.py, spectra.py
ndimage            images.py
integrate          integration.py
spatial.distance   distances.py
"""

import sys as _sys
from importlib import import_module as _import
from importlib.util import find_spec as _find
from types import ModuleType as _ModuleType

from ..core.api.submodules import Submodules as _Submodules

DEFINITIONS = {
    "scipy.linalg": "matrices",
    "scipy.fft": "transforms",
    "scipy.signal": "spectra",
    "scipy.ndimage": "images",
    "scipy.integrate": "integration",
    "scipy.spatial.distance": "distances",
}
_Submodules(__name__, DEFINITIONS)


def __getattr__(name: str) -> _ModuleType:
    """A submodule, imported when it is first asked for, as SciPy imports its own."""
    if not name.startswith("_") and _find("scipy") is None:
        raise AttributeError(f"minnp.scipy.{name} needs SciPy, which is not installed: pip install scipy")
    if name.startswith("_") or _find(f"scipy.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__])
    return _import(f"{__name__}.{name}")
