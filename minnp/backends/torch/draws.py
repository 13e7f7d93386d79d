"""Random arrays made on the device, by its own generator: NumPy's distributions, not NumPy's stream.

Under `with minnp.gpu(0):` the functions of np.random that are here draw there; `np.random.seed` seeds both streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .creation import shape_of
from .dtypes import refuse, to_torch

Tensor = torch.Tensor


def _number(v: Any) -> float:
    return v if type(v) in (int, float) else refuse("a distribution with arrays as parameters")


def _from_0_to_1(g: torch.Generator, size: Any = None) -> Tensor:
    return torch.rand(_sizes(size), generator=g, device=g.device, dtype=torch.float64)


def _standard(g: torch.Generator, size: Any = None) -> Tensor:
    return torch.randn(_sizes(size), generator=g, device=g.device, dtype=torch.float64)


def _uniform(g: torch.Generator, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    low, high = _number(low), _number(high)
    if not low < high:
        return _from_0_to_1(g, size) * (high - low) + low
    return torch.empty(_sizes(size), device=g.device, dtype=torch.float64).uniform_(low, high, generator=g)


def _normal(g: torch.Generator, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
    loc, scale = _number(loc), _number(scale)
    if scale < 0:
        refuse("scale < 0")  # NumPy raises ValueError
    return torch.empty(_sizes(size), device=g.device, dtype=torch.float64).normal_(loc, scale, generator=g)


def _exponential(g: torch.Generator, scale: Any = 1.0, size: Any = None) -> Tensor:
    scale = _number(scale)
    if scale < 0:
        refuse("scale < 0")
    return torch.empty(_sizes(size), device=g.device, dtype=torch.float64).exponential_(generator=g) * scale


def _randint(g: torch.Generator, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Tensor:
    low, high = (0, low) if high is None else (low, high)
    if type(low) is not int or type(high) is not int or not low < high:
        refuse("randint with these bounds")
    if (dtype := onp.dtype(dtype)).kind not in "iu" or low < onp.iinfo(dtype).min or high - 1 > onp.iinfo(dtype).max:
        refuse("randint beyond its dtype")
    return torch.randint(low, high, _sizes(size), generator=g, device=g.device).to(to_torch(dtype))


def _permutation(g: torch.Generator, x: Any) -> Tensor:
    return torch.randperm(x, generator=g, device=g.device) if type(x) is int else refuse("a permutation of an array")


def _sizes(size: Any) -> tuple[int, ...]:
    if type(size) is int:
        return (size,)
    if size is None:
        refuse("a single draw, which NumPy returns as a number")
    return size if type(size) is tuple else shape_of(size)


# by NumPy's name: (generator, *NumPy's arguments) -> tensor
DRAWS: dict[str, Callable] = {
    "random.random": _from_0_to_1,
    "random.random_sample": _from_0_to_1,
    "random.rand": lambda g, *sizes: _from_0_to_1(g, sizes or None),
    "random.randn": lambda g, *sizes: _standard(g, sizes or None),
    "random.uniform": _uniform,
    "random.normal": _normal,
    "random.standard_normal": _standard,
    "random.exponential": _exponential,
    "random.standard_exponential": lambda g, size=None: _exponential(g, size=size),
    "random.randint": _randint,
    "random.permutation": _permutation,
}
