"""Kernels of products: matmul and its relatives, einsum, convolution of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...core.cpu.contraction import explicit
from .dtypes import cast, device_of, promote, refuse
from .elementwise import Op
from .registry import kernel, ufunc_kernel

Tensor = torch.Tensor


def _or_of_ands(product: Callable) -> Callable:
    """A product of booleans: whether any pair is true in both."""
    return lambda x, y: product(x.float(), y.float()) != 0


def _matvec(x: Tensor, y: Tensor) -> Tensor:
    return torch.matmul(x, y.unsqueeze(-1)).squeeze(-1)


def _vecmat(x: Tensor, y: Tensor) -> Tensor:
    return torch.matmul(x.conj().resolve_conj().unsqueeze(-2), y).squeeze(-2)


def _vecdot(x: Tensor, y: Tensor) -> Tensor:
    return torch.sum(x.conj().resolve_conj() * y, -1, dtype=x.dtype)


for _name, _product in {"matmul": torch.matmul, "matvec": _matvec, "vecmat": _vecmat, "vecdot": _vecdot}.items():
    ufunc_kernel(_name, Op(_product, boolean=_or_of_ands(_product)))


@kernel("einsum", dtypes_of=lambda *operands: (promote(*operands),))
def einsum(*operands: Any, subscripts: str, optimize: Any = False, **params: Any) -> Tensor:
    if params:
        refuse(f"einsum with {', '.join(params)}")
    dtype, device = promote(*operands), device_of(operands)
    if len(operands) == 1 and type(operands[0]) is Tensor:
        (term,), output = explicit(subscripts, (operands[0].ndim,))
        if {*term} == {*output}:  # a view: no number is computed
            return torch.einsum(subscripts, *operands)
    if dtype is torch.bool:
        refuse("einsum of booleans")
    work = dtype if dtype.is_floating_point or dtype.is_complex else torch.int64
    return torch.einsum(subscripts, *[cast(x, work, device) for x in operands]).resolve_conj().to(dtype)


@kernel("convolve", dtypes_of=lambda a, v: (promote(a, v),))
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    dtype, device = promote(a, v), device_of((a, v))
    a, v = cast(a, dtype, device), cast(v, dtype, device)
    if a.ndim != 1 or v.ndim != 1 or not a.numel() or not v.numel() or not dtype.is_floating_point:
        refuse("a convolution of these arguments")
    if len(v) > len(a):
        a, v = v, a
    n, m = len(a), len(v)
    full = torch.nn.functional.conv1d(a[None, None], v.flip(0)[None, None], padding=m - 1)[0, 0]
    if mode == "full":
        return full
    if mode == "same":
        return full[(m - 1) // 2 : (m - 1) // 2 + n]
    return full[m - 1 : n] if mode == "valid" else refuse(f"mode {mode!r}")
