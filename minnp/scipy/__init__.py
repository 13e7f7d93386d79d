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
