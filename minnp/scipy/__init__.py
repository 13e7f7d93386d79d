"""SciPy's namespaces on our arrays (needs SciPy): values are SciPy's own, and what follows has gradients as well.

special        rows.py, functions.py
stats          distributions.py
linalg         matrices.py
"""

from ..core.submodules import Submodules as _Submodules

_Submodules(__name__, {"scipy.linalg": "matrices"})
