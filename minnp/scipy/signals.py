"""scipy.signal with gradients: convolutions and correlations of any dimension, and linear filters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as onp
from scipy import signal

from .. import numpy as np
from ..core.rows.dispatch import defines
from ..core.rows.primitive import primitive
from ..numpy.arguments import as_array, number, plain
from ..numpy.facts import axis_of, spread
from ..numpy.shaping import flip


# ------------------------------------------------------------------ convolution
def _other(g: Any, y: Any, x: Any, h: Any) -> Any:
    """The cotangent of x: g correlated with h, where all of h meets it."""
    part = tuple(slice(m - 1, m - 1 + n) for n, m in zip(x.shape, h.shape, strict=True))
    return convolution(g, flip(h))[part]


convolution = primitive(
    "scipy.signal.convolve",
    numpy=lambda x, h: signal.convolve(x, h, mode="full"),
    vjp=[lambda g, y, x, h: _other(g, y, x, h), lambda g, y, x, h: _other(g, y, h, x)],
    jvp="multilinear",
    saves="in",
    flops=lambda metas, params, out: 2 * out.size * min(m.size for m in metas),
    samples=lambda: [
        ((spread(5), spread(3, seed=1)), {}),
        ((spread(2, 4), spread(3, 2, seed=1)), {}),
        ((spread(4, dtype=complex), spread(2, seed=1, dtype=complex)), {}),
    ],
)


def _cropped(full: Any, n: tuple, m: tuple, mode: str, later: int = 0) -> Any:
    """The part of a full convolution of arrays of these shapes that a mode asks for: its middle, the first or later."""
    if mode == "full":
        return full
    sizes = n if mode == "same" else [abs(a - b) + 1 for a, b in zip(n, m, strict=True)]
    starts = [(k - size + later) // 2 for k, size in zip(full.shape, sizes, strict=True)]
    return full[tuple(slice(a, a + size) for a, size in zip(starts, sizes, strict=True))]


def _pair(in1: Any, in2: Any, mode: str) -> tuple | None:
    """The two arrays where SciPy would convolve them; None where it has an exception or a case of its own."""
    x, h = as_array(in1), as_array(in2)
    if x.ndim != h.ndim or x.ndim == 0 or not x.size or not h.size or mode not in ("full", "same", "valid"):
        return None
    larger = [a >= b for a, b in zip(x.shape, h.shape, strict=True)]
    if mode == "valid" and not (all(larger) or all(b >= a for a, b in zip(x.shape, h.shape, strict=True))):
        return None
    return x, h


@defines(signal.convolve)
def _convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    pair = _pair(in1, in2, mode)
    if pair is None:
        return NotImplemented
    return _cropped(convolution(*pair), *(a.shape for a in pair), mode)


@defines(signal.correlate)
def _correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    pair = _pair(in1, in2, mode)
    return NotImplemented if pair is None else _convolve(pair[0], np.conj(np.flip(pair[1])), mode)


@defines(signal.fftconvolve, signal.oaconvolve)
def _fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    return _convolve(in1, in2, mode) if axes is None else NotImplemented


PADS = {"wrap": "wrap", "symm": "symmetric"}


def _of_images(in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, correlates: int) -> Any:
    pair = _pair(in1, in2, mode)
    if pair is None or boundary not in ("fill", *PADS):
        return NotImplemented
    if correlates and mode == "valid":
        return _correlate(in1, in2, mode)
    x, h = pair
    if correlates:
        h = np.conj(np.flip(h))
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return _cropped(convolution(x, h), x.shape, h.shape, mode, correlates)
    around = [(m - 1, m - 1) for m in h.shape]
    more = {"constant_values": fillvalue} if boundary == "fill" else {}
    full = convolution(np.pad(x, around, PADS.get(boundary, "constant"), **more), h)
    full = full[tuple(slice(m - 1, n + 2 * (m - 1)) for n, m in zip(x.shape, h.shape, strict=True))]
    return _cropped(full, x.shape, h.shape, mode, correlates)


@defines(signal.convolve2d)
def _convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    return _of_images(in1, in2, mode, boundary, fillvalue, 0)


@defines(signal.correlate2d)
def _correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    return _of_images(in1, in2, mode, boundary, fillvalue, 1)


# ------------------------------------------------------------------ recursive filters
def _reversed(x: Any) -> Any:
    return flip(x, axis=-1)


ONE = onp.ones(1)


def _filter_x(g: Any, y: Any, b: Any, a: Any, x: Any) -> Any:
    # the transposed filter runs backwards
    return _reversed(recursion(b, a, _reversed(g)))


recursion = primitive(
    "scipy.signal.lfilter",
    numpy=lambda b, a, x: signal.lfilter(b, a, x),
    # a * y = b * x (convolutions), so a * dy = db * x - da * y + b * dx
    vjp=[
        lambda g, y, b, a, x: lags(g, recursion(ONE.astype(x.dtype), a, x), n=b.shape[0]),
        lambda g, y, b, a, x: -lags(g, recursion(ONE.astype(x.dtype), a, y), n=a.shape[0]),
        _filter_x,
    ],
    flops=lambda metas, params, out: 2 * out.size * (metas[0].size + metas[1].size),
    samples=lambda: [((spread(3), spread(2, seed=1, low=0.1, high=0.3) + onp.array([1, 0]), spread(2, 5)), {})],
)
lags = primitive(
    "scipy.signal.lags",
    numpy=lambda g, w, n: onp.stack([(g[..., i:] * w[..., : max(g.shape[-1] - i, 0)]).sum() for i in range(n)]),
    vjp=[
        lambda c, y, g, w, n: recursion(c, ONE.astype(c.dtype), w),
        lambda c, y, g, w, n: _reversed(recursion(c, ONE.astype(c.dtype), _reversed(g))),
    ],
    jvp="multilinear",
    samples=lambda: [((spread(2, 5), spread(2, 5, seed=1)), {"n": 3})],
)


@defines(signal.lfilter)
def _lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    b, a, x = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a)), as_array(x)
    if zi is not None:
        return NotImplemented
    dtype = onp.result_type(b.dtype, a.dtype, x.dtype, onp.float32)
    b, a, x = b.astype(dtype), a.astype(dtype), x.astype(dtype)
    return np.moveaxis(recursion(b, a, np.moveaxis(x, axis, -1)), -1, axis)


@defines(signal.sosfilt)
def _sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    if zi is not None:
        return NotImplemented
    for section in as_array(sos):
        x = _lfilter(section[:3], section[3:], x, axis)
    return x


@defines(signal.filtfilt)
def _filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """Forwards and backwards, each from the filter's steady state; b and a are constants."""
    b, a = (onp.atleast_1d(number(as_array(v))) for v in (b, a))
    x = np.moveaxis(as_array(x), axis, -1)
    n = 0 if padtype is None else 3 * max(len(a), len(b)) if padlen is None else padlen
    if method != "pad" or padtype not in ("odd", "even", "constant", None) or x.shape[-1] <= n or a[0] == 0:
        return NotImplemented
    if n:
        first, last, before, after = x[..., :1], x[..., -1:], x[..., n:0:-1], x[..., -2 : -n - 2 : -1]
        if padtype == "odd":
            before, after = 2 * first - before, 2 * last - after
        elif padtype == "constant":
            before, after = first + 0 * before, last + 0 * after
        x = np.concatenate([before, x, after], -1)
    steady, length = signal.lfilter_zi(b, a), x.shape[-1]
    b, a = onp.pad(b, (0, max(len(a) - len(b), 0))) / a[0], a / a[0]
    # a filter's state is what it adds to the outputs to come: the answer of 1/a to it
    kick = onp.pad(steady, (0, max(length - len(steady), 0)))[:length]
    answer = signal.lfilter(ONE, a, kick)
    for _ in range(2):
        x = np.flip(_lfilter(b, a, x) + x[..., :1] * answer, -1)
    return np.moveaxis(x[..., n : length - n], -1, axis)


# ------------------------------------------------------------------ others that are linear
@defines(signal.detrend)
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    x = as_array(data)
    if type in ("constant", "c"):
        return x - np.mean(x, axis, keepdims=True)
    n, ends = x.shape[axis], onp.unique(onp.append([0, x.shape[axis]], plain(bp)))
    x, parts = np.moveaxis(x, axis, -1), []
    for start, stop in pairwise(ends):
        line = onp.stack([onp.arange(1, stop - start + 1) / (stop - start), onp.ones(stop - start)])
        part = x[..., start:stop]
        parts.append(part - (part @ onp.linalg.pinv(line)) @ line)
    return np.moveaxis(np.concatenate(parts, -1), -1, axis_of(axis, x.ndim)) if n else NotImplemented


@defines(signal.hilbert)
def _hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    x = as_array(x)
    n = x.shape[axis] if N is None else N
    h = onp.zeros(n)
    h[0] = h[n // 2] = 1
    h[1 : (n + 1) // 2] = 2
    weights = h.reshape((n,) + (1,) * (x.ndim - 1 - axis % x.ndim))
    return np.fft.ifft(np.fft.fft(x, n, axis) * weights, axis=axis)
