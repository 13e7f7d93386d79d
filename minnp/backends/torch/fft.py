"""Kernels of numpy.fft. NumPy 2 keeps single precision; NumPy 1 computes every transform in double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from .dtypes import refuse
from .reductions import dims
from .registry import kernel

Tensor = torch.Tensor
SINGLE = int(onp.__version__.split(".")[0]) >= 2
NORMS = (None, "backward", "ortho", "forward")


def working(x: Tensor, real: bool) -> Tensor:
    """x in the dtype NumPy transforms it in."""
    if x.dtype is torch.float16:
        refuse("a transform of float16")
    single = SINGLE and x.dtype in (torch.float32, torch.complex64)
    if x.dtype.is_complex:
        if real:
            refuse("a complex argument of a real transform")  # NumPy raises TypeError
        return x if single else x.to(torch.complex128)
    return x if single else x.to(torch.float64)


def _one(run: Callable, real: bool) -> Callable:
    def call(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
        if norm not in NORMS or not x.numel() or n == 0:
            refuse("a transform of nothing, or an unknown norm")
        return run(working(x, real), n, dims(axis, x.ndim)[0], norm).resolve_conj()

    return call


def _many(run: Callable, real: bool, default: Any) -> Callable:
    def call(x: Tensor, s: Any = None, axes: Any = default, norm: str | None = None) -> Tensor:
        if norm not in NORMS or not x.numel() or not x.ndim:
            refuse("a transform of nothing, or an unknown norm")
        if s is not None:
            if axes is None:
                axes = tuple(range(-len(s), 0))
            s = [x.shape[a] if n is None or n == -1 else n for n, a in zip(s, axes, strict=True)]
        axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
        return run(working(x, real), s, dims(axes, x.ndim), norm).resolve_conj()

    return call


def _whole(run: Callable, call: Callable) -> dict:
    """`run` along the last axis of floats: see `direct` in registry.kernel."""
    direct = lambda x: run(x) if x.ndim and x.numel() else call(x)
    return {torch.float64: direct, torch.float32: direct if SINGLE else lambda x: direct(x.double())}


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _call = _one(getattr(torch.fft, _name), _name in ("rfft", "ihfft"))
    _lazy = _name in ("ifft", "hfft", "ihfft")  # conjugates may be left to whoever reads the result
    kernel(f"fft.{_name}", direct={} if _lazy else _whole(getattr(torch.fft, _name), _call))(_call)
for _name in ("fft", "ifft", "rfft", "irfft"):
    _run, _real = getattr(torch.fft, f"{_name}n"), _name == "rfft"
    kernel(f"fft.{_name}2")(_many(_run, _real, (-2, -1)))
    kernel(f"fft.{_name}n")(_many(_run, _real, None))


def _shift(sign: int) -> Callable:
    def call(x: Tensor, axes: Any = None) -> Tensor:
        over = dims(axes, x.ndim)
        return torch.roll(x, [sign * (x.shape[d] // 2) if sign > 0 else -(x.shape[d] // 2) for d in over], over)

    return call


kernel("fft.fftshift", bits=True)(_shift(1))
kernel("fft.ifftshift", bits=True)(_shift(-1))
