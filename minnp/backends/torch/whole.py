"""Functions that minnp says in several rows and torch does in one call: by NumPy's name, f(*tensors and numbers).

Short ways only: whatever is not plainly of the usual form raises, and goes the way of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dtypes import refuse

Tensor = torch.Tensor
DTYPES = (torch.float32, torch.float64)


def _alike(*xs: Any) -> None:
    """Refuse what are not tensors of one dtype of floats."""
    first = xs[0]
    for x in xs:
        if type(x) is not Tensor or x.dtype is not first.dtype or x.dtype not in DTYPES:
            refuse("operands of other dtypes")


def outer(a: Tensor, b: Tensor) -> Tensor:
    _alike(a, b)
    return torch.outer(a, b)  # of vectors, or it raises


def tensordot(a: Tensor, b: Tensor, axes: int = 2) -> Tensor:
    _alike(a, b)
    return torch.tensordot(a, b, axes) if type(axes) is int and axes > 0 else refuse("these axes")


def einsum(subscripts: str, *operands: Tensor) -> Tensor:
    _alike(*operands)
    if type(subscripts) is not str or len(operands) < 2:  # of one it may be a view
        refuse("these operands")
    return torch.einsum(subscripts, *operands)


def diag(v: Tensor, k: int = 0) -> Tensor:
    _alike(v)
    return torch.diag(v, k) if v.ndim == 1 else refuse("a matrix, whose diagonal is a view")


def tile(x: Tensor, reps: int) -> Tensor:
    _alike(x)
    return torch.tile(x, (reps,)) if type(reps) is int else refuse("these repetitions")


WHOLE: dict[str, Callable] = {f.__name__: f for f in (outer, tensordot, einsum, diag, tile)}
for _f in WHOLE.values():
    _f.exact = True  # they look at the dtypes themselves: see minnp.backends.Backend.kernel
