"""Facts that many rows share: the shapes of results, sample arguments for the generic tests, small readers of params.

Shape facts look at metas only, so they serve capture, flop counting and the tests without running a kernel.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as onp

from ..core.rows.primitive import Meta

NUMPY_2 = int(onp.__version__.split(".")[0]) >= 2
TOLD_WEAK = not NUMPY_2 and onp._get_promotion_state() == "weak"  # by NPY_PROMOTION_STATE
WEAK = (int, float, complex)  # Python's numbers, which decide no dtype
AxisError = onp.exceptions.AxisError


# ------------------------------------------------------------------ params
def axis_of(axis: int, ndim: int) -> int:
    """`axis` counted from the front; AxisError when an array of `ndim` dimensions has no such axis."""
    axis = int(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim)
    return axis % ndim if ndim else 0


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, Iterable):
        axes = tuple(axis_of(a, ndim) for a in axis)
        if len(set(axes)) != len(axes):
            raise ValueError("duplicate value in 'axis'")
        return axes
    return (axis_of(axis, ndim),)


def _reduced(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that a ufunc's reduction takes: NumPy's also take axis 0 or -1 of an array that has none."""
    return () if not ndim and axis in (0, -1) else axes_of(axis, ndim)


def kept_shape(shape: Sequence[int], axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """The shape a reduction over `axis` has with keepdims=True."""
    axes = _reduced(axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def reduced_shape(shape: Sequence[int], axis: int | Sequence[int] | None, keepdims: bool = False) -> tuple[int, ...]:
    axes = _reduced(axis, len(shape))
    if keepdims:
        return kept_shape(shape, axis)
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def count_of(shape: Sequence[int], axis: int | Sequence[int] | None) -> int:
    """How many elements a reduction over `axis` takes together."""
    n = 1
    for a in _reduced(axis, len(shape)):
        n *= shape[a]
    return n


# ------------------------------------------------------------------ shape facts
def elementwise(ufunc: onp.ufunc) -> Callable:
    """Broadcast shapes; the dtype NumPy's promotion gives this ufunc."""

    def shape(metas: Sequence[Meta], params: dict) -> Meta | tuple[Meta, ...]:
        out = onp.broadcast_shapes(*(m.shape for m in metas))
        dtypes = ufunc.resolve_dtypes((*(m.dtype for m in metas), *(None,) * ufunc.nout))[ufunc.nin :]
        results = tuple(Meta(out, d) for d in dtypes)
        return results[0] if ufunc.nout == 1 else results

    return shape


def same(metas: Sequence[Meta], params: dict) -> Meta:
    """The first argument's shape and dtype."""
    return metas[0]


# ------------------------------------------------------------------ samples
@functools.cache
def _hashes(n: int, seed: int) -> onp.ndarray:
    """n values in [0, 1) that look random: one of the few hashes that need no generator, whose seeding would be felt at
    import, where rows are made."""
    unit = onp.sin(onp.arange(1, n + 1) * 12.9898 + 78.233 * (seed + 1)) * 43758.5453 % 1
    unit.flags.writeable = False
    return unit


def spread(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0, dtype: Any = float) -> onp.ndarray:
    """Sample values in (low, high), all different; complex ones with parts in that range."""
    n = 1
    for d in shape:
        n *= d
    unit = _hashes(2 * n, seed)
    x = low + (high - low) * unit
    values = x[:n] + 1j * x[n:] if onp.dtype(dtype).kind == "c" else x[:n]
    return values.astype(dtype).reshape(shape)


def sampled(*cases: tuple) -> Callable:
    """samples fact from ready (arrays, params) pairs."""
    return lambda: list(cases)


# ------------------------------------------------------------------ choice of kernel
def from_cost(cost: Callable, **least: float) -> Callable:
    """worth fact: leave NumPy for a backend where cost(arrays, params) is at least `least` for it."""
    return lambda backend, arrays, params: backend in least and cost(arrays, params) >= least[backend]


def once_imported(worth: Callable) -> Callable:
    """worth fact: `worth`, for libraries that the program has imported; to import one for it would take seconds."""
    return lambda backend, arrays, params: backend in sys.modules and worth(backend, arrays, params)


def either(*facts: Callable) -> Callable:
    """worth fact: leave NumPy where one of these says so."""
    return lambda backend, arrays, params: any(worth(backend, arrays, params) for worth in facts)
