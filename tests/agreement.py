"""How tests compare floating-point results with a reference: to the bit on NumPy's own kernels, to a few units in the
last place where another backend computes (MINNP_BACKEND=torch).

Types, shapes, integers, NaNs and infinities agree exactly on every backend.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

import minnp

ULPS = 4  # of one kernel, as the differential tests of the backends allow


def exact() -> bool:
    """Whether NumPy's kernels compute, so that results are NumPy's to the bit."""
    return minnp.get_global_policy().plain


def tolerance(dtype: Any, ulps: float = ULPS) -> float:
    """The relative error allowed in results of this dtype: 0 on the host."""
    dtype = onp.dtype(dtype)
    return 0.0 if exact() or dtype.kind not in "fc" else ulps * float(onp.finfo(dtype).eps)


def same(got: Any, want: Any, ulps: float = ULPS, scale: float = 0.0) -> bool:
    """Whether got is want in shape, dtype and values.

    ulps    how many units in the last place another backend may be off: more than one kernel's for a chain of them
    scale   the size of the numbers that were added up, where they cancel: the error is relative to the largest of these
    """
    got, want = onp.asarray(got), onp.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if want.dtype.kind not in "fc":
        return bool(onp.array_equal(got, want))
    limit = tolerance(want.dtype, ulps) * onp.maximum(onp.abs(want), scale)
    with onp.errstate(invalid="ignore"):  # infinities, which are equal or not
        close = onp.abs(got - want) <= limit
    return bool(onp.all(close | (got == want) | (onp.isnan(got) & onp.isnan(want))))


def assert_same(got: Any, want: Any, ulps: float = ULPS, scale: float = 0.0) -> None:
    got, want = onp.asarray(got), onp.asarray(want)
    assert same(got, want, ulps, scale), f"{got.dtype}{got!r} is not {want.dtype}{want!r} within {ulps} ulps"
