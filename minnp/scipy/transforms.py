"""scipy.fft with gradients: NumPy's transforms in SciPy's precision, and rows of the cosine transforms."""

from __future__ import annotations

from typing import Any

import numpy as onp
from scipy import fft

from .. import numpy as np
from ..core.rows.dispatch import defines
from ..core.rows.primitive import primitive
from ..numpy.arguments import as_array, plain
from ..numpy.facts import axes_of, spread
from ..numpy.shaping import astype
from ..numpy.transforms import resize

SINGLE = {onp.dtype(onp.float16), onp.dtype(onp.float32), onp.dtype(onp.complex64)}


def _several(n: Any, axes: Any, ndim: int) -> tuple:
    """The lengths and axes of a transform along several; a number stands for one of them."""
    n, axes = (v if v is None or onp.ndim(v) else (v,) for v in (n, axes))
    if axes is None and n is not None:
        axes = tuple(range(-len(n), 0))
    if axes is not None and len({a % ndim for a in axes}) < len(axes):
        raise ValueError("all axes must be unique")
    return n, axes


def _transform(name: str) -> None:
    """Define scipy.fft's function of that name by numpy.fft's, which NumPy 1 computes in double precision alone."""
    ours, several, real = getattr(np.fft, name), name[-1] in "n2", name in ("irfft", "irfft2", "irfftn", "hfft")

    def definition(
        x: Any,
        n: Any = None,
        axis: Any = (-2, -1) if name[-1] == "2" else None if several else -1,
        norm: Any = None,
        *ignored: Any,
        **options: Any,
    ) -> Any:
        x, n, axis = as_array(x), plain(options.get("s", n)), plain(options.get("axes", axis))
        if several:
            n, axis = _several(n, axis, x.ndim)
        y = ours(x, n, axis, norm)
        return astype(y, dtype="f4" if real else "c8") if x.dtype in SINGLE else y

    defines(getattr(fft, name))(definition)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn",
              "rfftn", "irfftn"):  # fmt: skip
    _transform(_name)
defines(fft.fftshift)(lambda x, axes=None: np.fft.fftshift(as_array(x), axes))
defines(fft.ifftshift)(lambda x, axes=None: np.fft.ifftshift(as_array(x), axes))


# ------------------------------------------------------------------ cosine and sine transforms
def _ends(n: int, axis: int, ndim: int, first: float, last: float, dtype: Any) -> onp.ndarray:
    """Weights along an axis: ones, but at the ends."""
    w = onp.ones(n)
    w[0] *= first
    w[-1] *= last
    return w.astype(dtype).reshape((n,) + (1,) * (ndim - 1 - axis % ndim))


def _cosine_back(g: Any, y: Any, x: Any, type: int, axis: int) -> Any:
    # the transposed matrix: of type 2 it is that of type 3, but for the weight of the first element
    at = lambda first, last=1.0: _ends(x.shape[axis], axis, x.ndim, first, last, x.dtype)
    if type == 1:
        return at(1, 1) * (cosine(g * at(2, 2), type=1, axis=axis) * at(0.5, 0.5))
    if type == 2:
        return cosine(g * at(2), type=3, axis=axis)
    return cosine(g, type=2, axis=axis) * at(0.5) if type == 3 else cosine(g, type=4, axis=axis)


cosine = primitive(
    "scipy.fft.dct",
    numpy=lambda x, type, axis: fft.dct(x, type, axis=axis),
    vjp=[_cosine_back],
    jvp="linear",
    saves="",
    flops=lambda metas, params, out: 5 * out.size * max(1, out.shape[params["axis"]].bit_length()),
    samples=lambda: [
        ((spread(2, 5),), {"type": t, "axis": a}) for t in (1, 2, 3, 4) for a in (0, -1) if (t, a) != (1, 0)
    ],
)


def _sine(x: Any, type: int, axis: int) -> Any:
    """The sine transforms as cosine transforms of the sequence turned round, or with every other sign changed."""
    n = x.shape[axis]
    signs = onp.where(onp.arange(n) % 2, -1.0, 1.0).astype(x.dtype).reshape((n,) + (1,) * (x.ndim - 1 - axis % x.ndim))
    if type == 1:  # of the odd continuation
        zero = np.zeros_like(np.take(x, [0], axis))
        odd = np.concatenate([zero, x, zero, -np.flip(x, axis)], axis)
        return -np.imag(np.take(np.fft.rfft(odd, axis=axis), onp.arange(1, n + 1), axis)).astype(x.dtype)
    if type == 2:
        return np.flip(cosine(x * signs, type=2, axis=axis), axis)
    return signs * cosine(np.flip(x, axis), type=type, axis=axis)


def _trigonometric(name: str) -> None:
    sine, inverse, several = name.endswith(("dst", "dstn")), name[0] == "i", name[-1] == "n"

    def one(x: Any, type: int, n: Any, axis: int, norm: Any) -> Any:
        x = x if n is None else resize(x, axis, n)
        if inverse:
            type, norm = {2: 3, 3: 2}.get(type, type), {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")
        n = x.shape[axis]
        length = 2 * (n + 1 if sine else n - 1) if type == 1 else 2 * n
        at = lambda w: _ends(n, axis, x.ndim, *((1.0, w) if sine else (w, w if type == 1 else 1.0)), x.dtype)
        weighted = norm == "ortho" and not (sine and type == 1) and type != 4
        if weighted and type != 2:
            x = x * at(2**0.5)
        y = _sine(x, type, axis) if sine else cosine(x, type=type, axis=axis)
        if weighted and type != 3:
            y = y * at(0.5**0.5)
        scale = {"ortho": length**-0.5, "forward": 1 / length}.get(norm)
        return y if scale is None else y * scale

    def definition(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: Any = None if several else -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
        s: Any = None,
        axes: Any = None,
    ) -> Any:
        x, n, axes = as_array(x), plain(n if s is None else s), plain(axis if axes is None else axes)
        if orthogonalize is not None or x.dtype.kind != "f" or x.dtype.itemsize < 4:
            return NotImplemented
        if not several:
            return one(x, type, n, axes, norm)
        n, axes = _several(n, axes, x.ndim)
        axes = axes_of(axes, x.ndim)
        for size, a in zip(n or (None,) * len(axes), axes, strict=True):
            x = one(x, type, size, a, norm)
        return x

    defines(getattr(fft, name))(definition)


for _name in ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"):
    _trigonometric(_name)
