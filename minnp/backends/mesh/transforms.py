"""Fourier transforms of split arrays.

Along one axis they run in parts of another. An only axis of n = n1 n2 elements is seen as a matrix, whose columns are
transformed, turned by exp(-2 pi i j k / n), and whose rows then are: three moves between ranks (Bailey, "FFTs in
external or hierarchical memory", 1990). A prime number of elements is a convolution, by transforms of a power of 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE
from .indices import getitem
from .kernels import axes_of, concatenate, kernel, refuse, reshaped, transpose
from .own import transform as own_transform
from .parts import Part, bounds, moved
from .sorting import along_another

SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@kernel(*[f"fft.{name}" for name in ONE])
def transform(
    place: Any, x: Part, n: Any = None, axis: int = -1, norm: Any = None, _row: Any = None, **params: Any
) -> Part:
    if params or not x.ndim or x.dtype.kind not in "biufc":
        refuse(f"{_row} of these arguments")
    (axis,) = axes_of(axis, x.ndim)
    whole = along_another(x, axis)
    if whole is not None:
        y = own_transform(_row.removeprefix("fft."), whole.local, n, axis, norm)
        return Part(x.mesh, [y.shape[i] if i == axis else k for i, k in enumerate(x.shape)], whole.on, y)
    shape = list(x.shape)
    y = line_of(place, reshaped(x, (x.size,)), n, norm, _row.removeprefix("fft."))
    shape[axis] = y.size
    return reshaped(y, tuple(shape))


def line_of(place: Any, x: Part, n: Any, norm: Any, name: str) -> Part:
    """The transform of an array of one axis, which is split."""
    if name in ("hfft", "ihfft"):
        x, norm = x.like(x.local.conj()), SWAPPED[norm]
        y = line_of(place, x, n, norm, "irfft" if name == "hfft" else "rfft")
        return y if name == "hfft" else y.like(y.local.conj())
    n = (2 * (x.size - 1) if name == "irfft" else x.size) if n is None else n
    if not isinstance(n, (int, onp.integer)) or n < 2:
        refuse("a transform of this length")
    if name == "irfft":
        x = resized(place, x, n // 2 + 1)
        rest = getitem(place, x, slice((n - 1) // 2, 0, -1))
        x = concatenate(place, x, rest.like(rest.local.conj()), axis=0)
        y = matrix(place, x, norm, "ifft")
        return y.like(y.local.real.copy())
    y = matrix(place, resized(place, x, n), norm, name.removeprefix("r"))
    return getitem(place, y, slice(0, n // 2 + 1)) if name == "rfft" else y


def resized(place: Any, x: Part, n: int) -> Part:
    """The first n elements, with zeros where there are none."""
    if n <= x.size:
        return getitem(place, x, slice(0, n))
    return concatenate(place, x, onp.zeros(n - x.size, x.dtype), axis=0)


def matrix(place: Any, x: Part, norm: Any, name: str) -> Part:
    n = x.size
    first = next((k for k in range(math.isqrt(n), 1, -1) if n % k == 0), None)
    if first is None:
        return prime(place, x, norm, name)
    m, rest = x.on[0], n // first
    columns = moved(reshaped(x, (first, rest)), (None, m))
    y = own_transform(name, columns.local, None, 0, norm)
    j = onp.arange(*bounds(rest, x.mesh.axis(m)))
    turn = onp.arange(first)[:, None] * j % n
    y = y * onp.exp((2j if name == "ifft" else -2j) * onp.pi / n * turn).astype(y.dtype)
    rows = moved(Part(x.mesh, (first, rest), (None, m), y), (m, None))
    y = rows.like(own_transform(name, rows.local, None, 1, norm))
    return reshaped(transpose(place, y), (n,))


def prime(place: Any, x: Part, norm: Any, name: str) -> Part:
    """The transform of a prime number of elements, as a convolution by transforms of 2**k (Bluestein, 1970)."""
    if name == "ifft":
        y = prime(place, x.like(x.local.conj()), SWAPPED[norm], "fft")
        return y.like(y.local.conj())
    n, line = x.size, x.mesh.axis(x.on[0])
    wide = 1 << (2 * n - 2).bit_length()
    chirp = lambda j: onp.exp(-1j * onp.pi / n * (j * j % (2 * n)))
    turn = chirp(onp.arange(*bounds(n, line)))
    a = resized(place, x.like(x.local * turn), wide)
    j = onp.arange(*bounds(wide, line))
    j = onp.minimum(j, wide - j)
    a, b = (matrix(place, y, None, "fft") for y in (a, a.like(onp.where(j < n, chirp(j).conj(), 0))))
    y = resized(place, matrix(place, a.like(a.local * b.local), None, "ifft"), n)
    scale = {"ortho": n**-0.5, "forward": 1 / n}.get(norm, 1.0)
    return y.like((y.local * turn * scale).astype(onp.fft.fft(onp.zeros(1, x.dtype)).dtype))


# ------------------------------------------------------------------ several axes: one after the other
@kernel(*[f"fft.{name}{kind}" for name in ("fft", "ifft", "rfft", "irfft") for kind in ("2", "n")])
def several(place: Any, x: Part, s: Any = None, axes: Any = None, norm: Any = None, _row: Any = None) -> Part:
    name = _row.removeprefix("fft.")
    kind, one = name[-1], name[:-1]
    if axes is None:
        axes = (-2, -1) if kind == "2" else range(-len(s), 0) if s is not None else range(x.ndim)
    axes = [a % x.ndim for a in axes if -x.ndim <= a < x.ndim]
    lengths = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(lengths) != len(axes) or not axes or len(set(axes)) < len(axes):
        refuse("a transform along these axes")
    steps = list(zip(axes, lengths))
    run = lambda x, name, step: transform(place, x, step[1], step[0], norm, _row=f"fft.{name}")
    if one == "rfft":
        x = run(x, "rfft", steps.pop())
    last = steps.pop() if one == "irfft" else None
    for step in reversed(steps):
        x = run(x, one.removeprefix("r") if one == "rfft" else one.replace("irfft", "ifft"), step)
    return x if last is None else run(x, "irfft", last)


@kernel("fft.fftshift", "fft.ifftshift")
def shifted(place: Any, x: Part, axes: Any = None, _row: Any = None) -> Part:
    roll = TABLE["roll"]
    for axis in range(x.ndim) if axes is None else axes_of(axes, x.ndim):
        n = x.shape[axis] // 2
        x = place.kernel(roll)(x, shift=n if _row == "fft.fftshift" else -n, axis=axis)
    return x
