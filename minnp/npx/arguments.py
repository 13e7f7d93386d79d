"""What npx functions do with MXNet's arguments."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..numpy.arguments import as_array
from ..numpy.shaping import reshape
from ..numpy.ufuncs import not_equal

# Arguments of MXNet's operators that say how to compute, not what: accepted, and without effect.
HINTS = {"workspace", "cudnn_tune", "cudnn_off", "min_calib_range", "max_calib_range", "sparse_grad"}


def check_hints(function: Callable, hints: dict) -> None:
    """TypeError, with the nearest name, for an argument that is neither the function's own nor one of HINTS."""
    unknown = sorted(set(hints) - HINTS)
    if unknown:
        known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        near = difflib.get_close_matches(unknown[0], known, 1)
        meant = f"do you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise TypeError(f"npx.{function.__name__}() got an unexpected keyword argument {unknown[0]!r}; {meant}")


def sizes(value: Any, n: int, default: int, what: str) -> tuple[int, ...]:
    """A size per spatial axis, from None, a number or a sequence. Raises ValueError where the data has no such axis."""
    if n < 1:
        raise ValueError(f"data is [N, C, *spatial], of three axes or more; got {n + 2}: give the others size 1")
    if value is None:
        return (default,) * n
    sizes = (value,) * n if isinstance(value, (int, onp.integer)) else tuple(value)
    if len(sizes) not in (0, n):
        raise ValueError(f"{what}={value!r}: expected {n} sizes, one for each spatial axis")
    return tuple(map(int, sizes)) or (default,) * n


def check_layout(layout: str | None) -> None:
    if layout not in (None, "NCW", "NCHW", "NCDHW"):
        raise ValueError(f"layout={layout!r}: data is [N, C, *spatial]; move the channels with np.moveaxis")


def truth(mask: Any) -> Any:
    """Which elements, as truth values where they live: nobody waits for a device to tell."""
    mask = as_array(mask)
    return mask if mask.dtype == bool else not_equal(mask, 0)


def per_channel(x: Any, ndim: int, axis: int = 1) -> Any:
    """A vector as an array that broadcasts along `axis`."""
    return reshape(as_array(x), shape=tuple(-1 if i == axis else 1 for i in range(ndim)))
