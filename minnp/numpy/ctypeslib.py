"""numpy.ctypeslib on our arrays: a pointer type takes them as it takes NumPy's."""

import functools as _functools
from typing import Any as _Any

import numpy as _onp

from ..core.api.namespace import lazy as _lazy
from ..core.arrays.array import ndarray as _ndarray


@_functools.cache
def _pointer(base: type) -> type:
    def from_param(cls: type, x: _Any) -> _Any:
        return super(pointer, cls).from_param(_onp.asarray(x) if type(x) is _ndarray else x)  # type: ignore[misc]

    pointer = type(base.__name__, (base,), {"from_param": classmethod(from_param), "__module__": __name__})
    return pointer


@_functools.wraps(_onp.ctypeslib.ndpointer)
def ndpointer(*args: _Any, **kwargs: _Any) -> type:
    return _pointer(_onp.ctypeslib.ndpointer(*args, **kwargs))


__getattr__, __dir__, __all__ = _lazy(__name__, _onp.ctypeslib, "ctypeslib", {"ndpointer": ndpointer})
