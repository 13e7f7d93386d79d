"""numpy.testing on our arrays: the comparing asserts look at their numbers; the rest is NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numpy import testing as _testing
from numpy.testing import *  # noqa: F403
from numpy.testing import __all__ as __all__

from ..core.api.methods import shown
from ..core.arrays.array import ARRAY_TYPES
from ..core.rows.pytree import replaced

_COMPARING = (
    "assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal assert_array_almost_equal_nulp "
    "assert_array_equal assert_array_less assert_array_max_ulp assert_equal build_err_msg print_assert_equal"
)


def _visible(x: Any) -> Any:
    return replaced(x, lambda e: shown(e) if type(e) in ARRAY_TYPES else e)


def _looking(compare: Callable) -> Callable:
    @wraps(compare)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        args, kwargs = tuple(map(_visible, args)), {k: _visible(v) for k, v in kwargs.items()}
        return compare(*args, **kwargs)

    return call


(
    assert_allclose,
    assert_almost_equal,
    assert_approx_equal,
    assert_array_almost_equal,
    assert_array_almost_equal_nulp,
    assert_array_equal,
    assert_array_less,
    assert_array_max_ulp,
    assert_equal,
    build_err_msg,
    print_assert_equal,
) = (_looking(getattr(_testing, name)) for name in _COMPARING.split())


def __getattr__(name: str) -> Any:
    return getattr(_testing, name)  # `test`, `extbuild`
