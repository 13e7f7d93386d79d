"""scipy.signal's spectra with gradients: segments of a signal, windowed, transformed, squared and averaged.

Frequencies and times are SciPy's, as its own function gives them for the values.
"""

from __future__ import annotations

from typing import Any

import numpy as onp
from scipy import signal

from .. import numpy as np
from ..core.arrays.array import ARRAY_TYPES
from ..core.rows.dispatch import defines
from ..numpy.arguments import as_array, number, plain
from .signals import detrend as detrended

BOUNDARIES = {"zeros": "constant", "constant": "edge", "even": "reflect", None: None}


def _constant(x: Any) -> Any:
    return plain(np.stop_gradient(x) if type(x) in ARRAY_TYPES else x)


class Cut:
    """How a signal is cut: the arguments that these functions share, with SciPy's defaults for what is None."""

    def __init__(self, n: int, window: Any, nperseg: Any, noverlap: Any, nfft: Any) -> None:
        """n: the length of the signal."""
        if isinstance(window, (str, tuple)):
            self.length = min(256 if nperseg is None else int(nperseg), n)
            self.window = signal.get_window(window, self.length)
        else:
            self.window = onp.asarray(number(as_array(window)))
            self.length = len(self.window)
        self.step = self.length - (self.length // 2 if noverlap is None else int(noverlap))
        self.size = self.length if nfft is None else int(nfft)

    def scale(self, scaling: str, fs: float) -> float:
        return 1 / (fs * (self.window**2).sum()) if scaling in ("density", "psd") else 1 / self.window.sum() ** 2

    def transforms(self, x: Any, detrend: Any, onesided: bool) -> Any:
        """[..., time, frequency] of x [..., time]."""
        starts = onp.arange(0, x.shape[-1] - self.length + 1, self.step)
        parts = x[..., starts[:, None] + onp.arange(self.length)]
        if detrend:
            parts = detrend(parts) if callable(detrend) else detrended(parts, -1, detrend)
        return (np.fft.rfft if onesided else np.fft.fft)(parts * self.window, self.size)


def _is_real(*arrays: Any) -> bool:
    return all(a.dtype.kind == "f" and a.dtype.itemsize == 8 for a in arrays)


@defines(signal.csd)
def _csd(
    x: Any,
    y: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> Any:
    same, x = x is y, as_array(x)
    y = x if same else as_array(y)
    if average != "mean" or not _is_real(x, y) or x.shape[axis] != y.shape[axis]:
        return NotImplemented
    options = (fs, _constant(window), nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    frequencies = signal.csd(_constant(x), _constant(y), *options)[0]
    cut = Cut(x.shape[axis], window, nperseg, noverlap, nfft)
    of = lambda a: cut.transforms(np.moveaxis(a, axis, -1), detrend, return_onesided)
    first = of(x)
    power = np.conj(first) * (first if same else of(y)) * cut.scale(scaling, fs)
    if same:
        power = np.real(power)
    if return_onesided:  # each frequency but the first, and half the rate, stands for two
        twice = onp.full(power.shape[-1], 2.0)
        twice[0] = 1
        if cut.size % 2 == 0:
            twice[-1] = 1
        power = power * twice
    return frequencies, np.moveaxis(np.mean(power, -2), -1, axis)


@defines(signal.welch)
def _welch(x: Any, *args: Any, **options: Any) -> Any:
    return _csd(x, x, *args, **options)


@defines(signal.periodogram)
def _periodogram(
    x: Any,
    fs: float = 1.0,
    window: Any = "boxcar",
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> Any:
    n = as_array(x).shape[axis]
    if nfft is not None and nfft < n:
        return NotImplemented
    return _csd(x, x, fs, "boxcar" if window is None else window, n, 0, nfft, detrend, return_onesided, scaling, axis)


@defines(signal.coherence)
def _coherence(x: Any, y: Any, *args: Any, **options: Any) -> Any:
    found = [_csd(a, b, *args, **options) for a, b in ((x, x), (y, y), (x, y))]
    if NotImplemented in found:
        return NotImplemented
    (frequencies, xx), (_, yy), (_, xy) = found
    return frequencies, np.abs(xy) ** 2 / xx / yy


@defines(signal.stft)
def _stft(
    x: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: Any = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> Any:
    x = as_array(x)
    if not _is_real(x) or boundary not in BOUNDARIES or scaling not in ("spectrum", "psd"):
        return NotImplemented
    options = (
        fs,
        _constant(window),
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        boundary,
        padded,
        axis,
        scaling,
    )
    frequencies, times, _ = signal.stft(_constant(x), *options)
    cut, around, x = (
        Cut(x.shape[axis], window, nperseg, noverlap, nfft),
        [(0, 0)] * (x.ndim - 1),
        np.moveaxis(x, axis, -1),
    )
    if boundary is not None:
        x = np.pad(x, [*around, (cut.length // 2,) * 2], BOUNDARIES[boundary])
    if padded:
        x = np.pad(x, [*around, (0, -(x.shape[-1] - cut.length) % cut.step % cut.length)])
    y = cut.transforms(x, detrend, return_onesided) * cut.scale(scaling, fs) ** 0.5
    return frequencies, times, np.moveaxis(np.swapaxes(y, -1, -2), -2, axis % x.ndim)


@defines(signal.istft)
def _istft(
    Zxx: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> Any:
    z = as_array(Zxx)
    if z.dtype.itemsize < 16 or not input_onesided or nfft is not None or scaling not in ("spectrum", "psd"):
        return NotImplemented
    options = (fs, _constant(window), nperseg, noverlap, nfft, True, boundary, time_axis, freq_axis, scaling)
    times, _ = signal.istft(_constant(z), *options)
    n = 2 * (z.shape[freq_axis] - 1) if nperseg is None else nperseg
    cut, z = Cut(n, window, n, noverlap, None), np.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    parts = np.fft.irfft(z, n)[..., :n] * (cut.window / cut.scale(scaling, fs) ** 0.5)
    total = np.zeros((*z.shape[:-2], (z.shape[-2] - 1) * cut.step + n))
    weights = onp.zeros(total.shape[-1])
    for k in range(z.shape[-2]):
        here = slice(k * cut.step, k * cut.step + n)
        total[..., here] += parts[..., k, :]
        weights[here] += cut.window**2
    if boundary:
        inner = slice(n // 2, -(n // 2))
        total, weights = total[..., inner], weights[inner]
    return times, total / onp.where(weights > 1e-10, weights, 1)
