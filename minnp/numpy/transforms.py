"""Discrete Fourier transforms: the rows of numpy.fft.

Each transform is linear, so its rule is its transpose (not its conjugate transpose: autograd's complex convention). The
matrix of a complex transform is symmetric: the transpose is the transform itself, between cropping and padding.
Half-spectrum transforms keep one of every two conjugate entries, so their transposes weigh the entries that stand for
two by a half, or by two. A transform that repeats an axis is NumPy's own code, which calls the one of one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.rows.dispatch import defines
from ..core.rows.primitive import TABLE, Meta, Primitive, primitive
from .arguments import NOT_GIVEN, as_array, spelled
from .facts import NUMPY_2, axis_of, spread
from .indexing import getitem
from .rebound import rebound
from .shaping import concatenate
from .ufuncs import conjugate

SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


# ------------------------------------------------------------------ sizes
def resize(x: Any, axis: int, n: int) -> Any:
    """x cropped, or padded with zeros, at the end of one axis."""
    size = x.shape[axis]
    if n == size:
        return x
    axis %= len(x.shape)
    if n < size:
        return getitem(x, index=(slice(None),) * axis + (slice(n),))
    return concatenate(x, onp.zeros((*x.shape[:axis], n - size, *x.shape[axis + 1 :]), x.dtype), axis=axis)


def resized(x: Any, shape: Sequence[int]) -> Any:
    for axis, n in enumerate(shape):
        x = resize(x, axis, n)
    return x


def _axes(x: Any, s: Any, axes: Any) -> tuple[int, ...]:
    """The axes transformed, by NumPy's defaults."""
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(x.ndim)
    return tuple(a % x.ndim for a in axes)


def _grid(x: Any, s: Any, axes: tuple[int, ...]) -> list[int]:
    """The length of each transformed axis (NumPy 2 reads -1 as the axis's own)."""
    if s is None:
        return [x.shape[a] for a in axes]
    return [x.shape[a] if n is None or n == -1 else n for n, a in zip(s, axes, strict=True)]


# ------------------------------------------------------------------ transposes
def _transform(g: Any, y: Any, x: Any, back: Callable, s: Any, axes: Any, norm: Any) -> Any:
    return resized(back(g, s=None, axes=_axes(x, s, axes), norm=norm), x.shape)


def _halves(length: int, axis: int, ndim: int, weight: float, dtype: Any) -> onp.ndarray:
    """1 for the entries of a half spectrum that are their own conjugates, `weight` for the others."""
    weights = onp.full(length // 2 + 1, weight, onp.empty(0, dtype).real.dtype)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    return weights.reshape((-1,) + (1,) * (ndim - 1 - axis))


def _to_half(g: Any, y: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    axes = _axes(x, s, axes)
    grid = _grid(x, s, axes)
    weighted = conjugate(g) * _halves(grid[-1], axes[-1], x.ndim, 0.5, g.dtype)
    return resized(irfftn(weighted, s=tuple(grid), axes=axes, norm=SWAPPED[norm]), x.shape)


def _from_half(g: Any, y: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    axes = _axes(x, s, axes)
    spectrum = conjugate(rfftn(g, s=None, axes=axes, norm=SWAPPED[norm]))
    return resized(spectrum * _halves(y.shape[axes[-1]], axes[-1], x.ndim, 2, g.dtype), x.shape)


# ------------------------------------------------------------------ shapes
def _single(dtype: Any) -> bool:
    """Whether NumPy computes in single precision."""
    return NUMPY_2 and dtype in (onp.float32, onp.complex64, onp.float16)


def _shape(kind: str) -> Callable:
    def shape(metas: Sequence[Meta], params: dict) -> Meta:
        x = metas[0]
        if "axes" in params or "s" in params or kind.endswith(("n", "2")):
            s = params.get("s")
            axes = _axes(x, s, params.get("axes", (-2, -1) if kind.endswith("2") else None))
        else:
            n = params.get("n")
            s, axes = None if n is None else (n,), (params.get("axis", -1) % x.ndim,)
        sizes = dict(zip(axes, _grid(x, s, axes), strict=True))
        if kind.startswith(("irfft", "hfft")) and (s is None or s[-1] in (None, -1)):
            sizes[axes[-1]] = 2 * (x.shape[axes[-1]] - 1)
        if kind.startswith(("rfft", "ihfft")):
            sizes[axes[-1]] = sizes[axes[-1]] // 2 + 1
        real = kind.startswith(("irfft", "hfft"))
        code = {(True, True): "f", (True, False): "F", (False, True): "d", (False, False): "D"}
        return Meta([sizes.get(i, n) for i, n in enumerate(x.shape)], onp.dtype(code[_single(x.dtype), real]))

    return shape


def _flops(metas: Sequence[Meta], params: dict, out: Meta) -> int:
    """5 n log2(n), the count that transforms are compared by."""
    n = max(metas[0].size, out.size)
    return int(5 * n * onp.log2(max(n, 2)))


# ------------------------------------------------------------------ rows
def _row(name: str, rule: Callable, signature: str, cases: Sequence[tuple]) -> Primitive:
    """One row; `signature` says which of NumPy's arguments it has: one axis, two axes or any."""

    def one(g: Any, y: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return rule(g, y, x, None if n is None else (n,), (axis,), norm)

    def two(g: Any, y: Any, x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return rule(g, y, x, s, axes, norm)

    def many(g: Any, y: Any, x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return rule(g, y, x, s, axes, norm)

    return primitive(
        f"fft.{name}",
        numpy=getattr(onp.fft, name),
        vjp=[{"one": one, "two": two, "many": many}[signature]],
        jvp="linear",
        saves="",
        shape=_shape(name),
        flops=_flops,
        takes=("arrays", 1) if signature == "one" else (),
        samples=lambda: list(cases),
    )


_real, _complex = spread(3, 4, 5), spread(3, 4, 5, seed=1, dtype=complex)
ONE = [((_complex,), {}), ((_real,), {"n": 7, "axis": 1, "norm": "ortho"}), ((_complex,), {"n": 3, "norm": "forward"})]
TWO = [((_complex,), {}), ((_real,), {"s": (6, 3), "axes": (0, 2), "norm": "ortho"})]
MANY = [((_complex,), {}), ((_real,), {"s": (6, 3), "axes": (2, 0), "norm": "forward"})]


def _of_kind(cases: Sequence[tuple], x: onp.ndarray) -> list[tuple]:
    return [((x,), params) for _, params in cases]


def _itself(row: Callable[[], Primitive]) -> Callable:
    """The rule of a complex transform: `row` is its n-dimensional form (looked up when it runs)."""
    return lambda g, y, x, s, axes, norm: _transform(g, y, x, row(), s, axes, norm)


_forward, _inverse = _itself(lambda: fftn), _itself(lambda: ifftn)
fft = _row("fft", _forward, "one", ONE)
ifft = _row("ifft", _inverse, "one", ONE)
fft2 = _row("fft2", _forward, "two", TWO)
ifft2 = _row("ifft2", _inverse, "two", TWO)
fftn = _row("fftn", _forward, "many", MANY)
ifftn = _row("ifftn", _inverse, "many", MANY)

rfft = _row("rfft", _to_half, "one", _of_kind(ONE, _real))
irfft = _row("irfft", _from_half, "one", ONE)
rfft2 = _row("rfft2", _to_half, "two", _of_kind(TWO, _real))
irfft2 = _row("irfft2", _from_half, "two", TWO)
rfftn = _row("rfftn", _to_half, "many", _of_kind(MANY, _real))
irfftn = _row("irfftn", _from_half, "many", MANY)

# hfft(x) = irfft(conj(x)) and ihfft(x) = conj(rfft(x)), each with the other norm
hfft = _row("hfft", lambda g, y, x, s, axes, norm: conjugate(_from_half(g, y, x, s, axes, SWAPPED[norm])), "one", ONE)
ihfft = _row(
    "ihfft",
    lambda g, y, x, s, axes, norm: _to_half(conjugate(g), y, x, s, axes, SWAPPED[norm]),
    "one",
    _of_kind(ONE, _real),
)

fftshift = primitive(
    "fft.fftshift",
    numpy=onp.fft.fftshift,
    vjp=[lambda g, y, x, axes=None: ifftshift(g, axes=axes)],
    jvp="linear",
    saves="",
    shape=lambda metas, params: metas[0],
    samples=lambda: [((_real,), {}), ((_complex,), {"axes": (0, 2)})],
)
ifftshift = primitive(
    "fft.ifftshift",
    numpy=onp.fft.ifftshift,
    vjp=[lambda g, y, x, axes=None: fftshift(g, axes=axes)],
    jvp="linear",
    saves="",
    shape=lambda metas, params: metas[0],
    samples=lambda: [((_real,), {}), ((_complex,), {"axes": (0, 2)})],
)

# ------------------------------------------------------------------ definitions
for _names, _signature in {
    "fft ifft rfft irfft hfft ihfft": "a | n axis norm",
    "fftshift ifftshift": "x | axes",
}.items():
    for _name in _names.split():
        defines(getattr(onp.fft, _name))(spelled(TABLE[f"fft.{_name}"], _signature))


def _several(name: str) -> Callable:
    function = getattr(onp.fft, name)
    at_once, in_turn = spelled(TABLE[f"fft.{name}"], "a | s axes norm"), rebound(function)

    def definition(a: Any, s: Any = None, axes: Any = NOT_GIVEN, norm: Any = None) -> Any:
        given = {} if axes is NOT_GIVEN else {"axes": axes}
        a = as_array(a)
        repeats = given and axes is not None and len({axis_of(i, a.ndim) for i in axes}) < len(axes)
        return (in_turn if repeats else at_once)(a, s=s, **given, norm=norm)

    return definition


for _name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"):
    defines(getattr(onp.fft, _name))(_several(_name))
