"""NumPy's namespace on minnp arrays: `import minnp.numpy as np`.

Every public name of the installed NumPy is here, and means what it means there: https://numpy.org/doc/stable/reference
describes them. Beside them there is `stop_gradient`, and MinPy's names.

The modules beside this one are how it is made: rows and definitions, by family.
"""

from __future__ import annotations

from typing import Any

import numpy as _onp

from ..core.api import attributes, install, methods, operators, protocols
from ..core.api.namespace import Late as _Late
from ..core.api.namespace import lazy as _lazy
from ..core.api.public import ufunc
from ..core.api.submodules import Submodules as _Submodules
from ..core.arrays.array import ndarray
from ..core.rows.error_state import errstate as _errstate
from ..core.rows.error_state import seterr as _seterr
from ..core.rows.primitive import TABLE as rows  # by this name, Python that is written of a graph has them
from ..core.transforms.grad import stop_gradient
from . import (  # rows and definitions
    calls,
    composites,
    creation,
    devices,
    indexing,
    interpolation,
    matrices,
    memory,
    nans,
    products,
    reductions,
    scans,
    selection,
    shaping,
    transforms,
    ufuncs,
)
from .facts import TOLD_WEAK as _TOLD_WEAK
from .minpy import EXTRA as _MINPY
from .standard import STANDARD as _STANDARD

if _TOLD_WEAK:
    from . import standard_promotion
install.install()
_Submodules(__name__)
_CLASSES = [
    *("r_", "c_", "mgrid", "ogrid", "ndenumerate", "nditer", "nested_iters", "broadcast", "poly1d", "vectorize"),
    *("fromiter", "bmat"),
]
_EXTRA: dict[str, Any] = {
    "ndarray": ndarray,
    "ufunc": ufunc,
    "flatiter": attributes.FlatIterator,
    "errstate": _errstate,
    "seterr": _seterr,
    "stop_gradient": stop_gradient,
    **_MINPY,
    **dict.fromkeys(_CLASSES, _Late("minnp.numpy.classes")),
    **_STANDARD,
}
_PYTHON = (*_STANDARD, *_MINPY, "stop_gradient")  # written in Python with other names of this module
__getattr__, __dir__, __all__ = _lazy(__name__, _onp, "", _EXTRA)
