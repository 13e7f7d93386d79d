"""Rows of the activations: relu and its relatives, sigmoid, softplus, erf, gelu, softmax, smooth_l1."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.cpu import kernels
from ..core.cpu.elementwise import rectified
from ..core.cpu.memory import empty
from ..core.cpu.products import single_thread
from ..core.rows.primitive import CONSTANT, Meta, Primitive, per_element, primitive
from ..core.rows.value import Buffer, Host
from ..numpy.facts import either, from_cost, once_imported, spread
from ..numpy.slopes import strong_product, times
from ..numpy.ufuncs import absolute, exp, greater, less, sign, square, tanh, where
from . import normal
from .chebyshev import ROOT_PI, erf_kernel, erfinv_kernel, in_half
from .normal import NORMAL

HALF_ROOT = 0.7071067811865476  # 1 / sqrt(2)


def _floating(metas: Sequence[Meta], params: dict) -> Meta:
    dtype = metas[0].dtype
    return Meta(metas[0].shape, dtype if dtype.kind == "f" else onp.dtype(float))


def _inexact(x: Any) -> onp.ndarray:
    x = onp.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(float)


def _keeping(kernel: Callable) -> Callable:
    """The kernel for NumPy 1, where a scalar and a Python number are a float64."""

    def run(x: Any, **params: Any) -> Any:
        y = kernel(x, **params)
        return y if y.ndim or getattr(x, "dtype", y.dtype).kind != "f" else y.astype(x.dtype)

    return run


def _activation(name: str, kernel: Callable, rule: Callable, cost: int = 4, **facts: Any) -> Primitive:
    """A row that acts on each element."""
    params = facts.pop("params", {})
    cases = [((x,), params) for x in (spread(2, 3), onp.array([-30.0, -1e-3, 1e-3, 30.0]))]
    return primitive(
        f"npx.{name}",
        numpy=_keeping(kernel) if onp.__version__.startswith("1.") else kernel,
        vjp=[rule],
        jvp=[rule] if params else "elementwise",  # a trace's short path takes no parameters
        shape=facts.pop("shape", _floating),
        flops=per_element(cost),
        samples=lambda: cases,
        **facts,
    )


# ------------------------------------------------------------------ piecewise linear
# g where y is positive: a product of floats and truths, which a device computes in one kernel. Eager gradients ask for
# it there; in a graph torch's executor finds the product.
relu_grad = primitive(
    "npx.relu_grad",
    numpy=lambda g, y: onp.multiply(g, onp.greater(y, 0)),
    vjp=[lambda h, z, g, y: relu_grad(h, y), CONSTANT],
    jvp=[lambda t, z, g, y: relu_grad(t, y), CONSTANT],
    saves="in",
    shape=lambda metas, params: metas[0],
    flops=per_element(1),
    samples=lambda: [((spread(2, 3), spread(2, 3, seed=1)), {})],
)


def _relu_back(g: Any, y: Any, x: Any) -> Any:
    if kernels.takes(g, y) and g.shape == y.shape:
        return kernels.each("relu_back", g, y)
    if type(g) is Buffer is type(y) and g.shape == y.shape and g.backend.kernel(relu_grad) is not None:
        return relu_grad(g, y)
    return g * greater(y, 0)


relu = _activation(
    "relu",
    lambda x: kernels.each("relu", x) if kernels.takes(x) else rectified(x),
    _relu_back,
    cost=1,
    saves="out",
    idempotent=True,
    shape=lambda metas, params: metas[0],
)
leaky_relu = _activation(
    "leaky_relu",
    lambda x, slope=0.25: onp.where(onp.greater(x, 0), x, _inexact(x) * slope),
    lambda g, y, x, slope=0.25: where(greater(x, 0), g, g * slope),
    cost=2,
    saves="in",
    params={"slope": 0.1},
)


def _elu(x: Any, alpha: float = 1.0) -> onp.ndarray:
    # a sum of two parts, of which one is 0: choosing by a mask takes three times as long
    x = _inexact(x)
    y = onp.expm1(onp.minimum(x, 0))
    y *= alpha
    y += onp.maximum(x, 0)
    return y


elu = _activation(
    "elu",
    _elu,
    lambda g, y, x, alpha=1.0: times(g, where(greater(x, 0), 1, y + alpha)),
    params={"alpha": 0.7},
)


# ------------------------------------------------------------------ sigmoid, softplus
def _sigmoid(x: Any) -> onp.ndarray:
    # exp(-x) overflows to inf exactly where 1 / (1 + inf) = 0 is right
    with onp.errstate(over="ignore"):
        y = onp.exp(onp.negative(_inexact(x)))
    y += 1
    return onp.reciprocal(y, out=y if isinstance(y, onp.ndarray) else None)


def _softplus(x: Any) -> onp.ndarray:
    x = _inexact(x)
    return onp.maximum(x, 0) + onp.log1p(onp.exp(-onp.abs(x)))


sigmoid = _activation("sigmoid", _sigmoid, lambda g, y, x: times(g, y * (1 - y)), saves="out")
softplus = _activation("softplus", _softplus, lambda g, y, x: times(g, sigmoid(x)), saves="in")


def _silu_slope(x: Any) -> Any:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


silu = _activation("silu", lambda x: x * _sigmoid(x), lambda g, y, x: times(g, _silu_slope(x)), saves="in")

# ------------------------------------------------------------------ error function
erf = _activation("erf", erf_kernel, lambda g, y, x: times(g, exp(-square(x)) * (2 / ROOT_PI)), saves="in")
erfinv = primitive(
    "npx.erfinv",
    numpy=erfinv_kernel,
    vjp=[lambda g, y, x: times(g, exp(strong_product(y, y)) * (ROOT_PI / 2))],
    jvp="elementwise",
    saves="out",
    shape=_floating,
    flops=per_element(8),
    samples=lambda: [((spread(2, 3, low=-0.9, high=0.9),), {})],
)


def _gelu(x: Any) -> onp.ndarray:
    x = _inexact(x)
    if x.dtype.char == "e":
        return in_half(_gelu, x)
    if x.dtype.char == "f" and x.size > 64:
        return normal.gelu(x)
    y = erf_kernel(x * x.dtype.type(HALF_ROOT))
    y += 1
    y *= x
    y *= 0.5
    return y


def _gelu_slope(x: Any) -> Any:
    if type(x) is Host and x.dtype.char == "f" and x.size > 64:
        return normal.gelu_slope(x)
    return 0.5 * (1 + erf(x * HALF_ROOT)) + x * (exp(square(x) * -0.5) * NORMAL)


gelu = _activation("gelu", _gelu, lambda g, y, x: times(g, _gelu_slope(x)), cost=8, saves="in")


def _curvature(x: Any) -> Any:
    """The second derivative of x/2 (1 + tanh(u))."""
    t, slope = tanh(x * (square(x) * (normal.CUBIC / 2) + normal.LINEAR / 2)), square(x) * (1.5 * normal.CUBIC)
    slope = slope + normal.LINEAR / 2
    return (1 - square(t)) * (slope + x * (x * (1.5 * normal.CUBIC) - t * square(slope)))


def _gelu_tanh(x: Any) -> onp.ndarray:
    return kernels.each("gelu", x) if kernels.takes(x) else normal.gelu_by_tanh(_inexact(x))


def _gelu_tanh_grad(g: Any, x: Any) -> onp.ndarray:
    if kernels.takes(g, x) and g.shape == x.shape:
        return kernels.each("gelu_back", g, x)
    return times(g, normal.slope_by_tanh(_inexact(x)))


_large = kernels.unless_taken(once_imported(from_cost(lambda arrays, params: arrays[-1].size, torch=3e4)))

# x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), and g times its slope
gelu_tanh = _activation(
    "gelu_tanh",
    _gelu_tanh,
    lambda g, y, x: gelu_tanh_grad(g, x),
    cost=10,
    saves="in",
    worth=_large,
)
gelu_tanh_grad = primitive(
    "npx.gelu_tanh_grad",
    numpy=_gelu_tanh_grad,
    vjp=[lambda h, y, g, x: gelu_tanh_grad(h, x), lambda h, y, g, x: times(times(h, g), _curvature(x))],
    jvp="elementwise",
    saves="in",
    shape=lambda metas, params: metas[0],
    flops=per_element(15),
    worth=_large,
    samples=lambda: [((spread(2, 3), spread(2, 3, seed=1)), {})],
)


# ------------------------------------------------------------------ softmax
BLOCK = 1 << 15  # elements that stay in cache over the passes of a softmax
SMALL = 32  # elements from which a call of the C part pays


def _by_rows(kernel: Callable) -> Callable:
    """The kernel (x, y, axis), which writes its result into y, run over blocks of rows where x is large."""
    name = kernel.__name__.lstrip("_")

    def run(x: Any, axis: Any = -1) -> onp.ndarray:
        if kernels.takes(x, least=SMALL) and axis in (-1, x.ndim - 1):
            return kernels.along(name, x)
        x = _inexact(x)
        y = empty(x.shape, x.dtype)
        if x.size > 2 * BLOCK and axis in (-1, x.ndim - 1) and 0 < x.shape[-1] <= BLOCK and x.flags.c_contiguous:
            rows, out = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
            step = BLOCK // x.shape[-1]
            for start in range(0, len(rows), step):
                kernel(rows[start : start + step], out[start : start + step], -1)
        else:
            kernel(x, y, axis)
        return y

    return run


def _centered(x: onp.ndarray, y: onp.ndarray, axis: Any) -> None:
    """y = x less its maximum; of a row of -inf nothing is taken, so that it does not become NaN here."""
    if axis == -1 and x.shape[-1] <= 32:  # NumPy reduces short rows one by one, but whole columns at once
        top = onp.maximum.reduce(onp.ascontiguousarray(onp.moveaxis(x, -1, 0)), axis=0)[..., None]
    else:
        top = x.max(axis=axis, keepdims=True)
    if onp.isneginf(top.min(initial=0)):
        top = onp.where(onp.isneginf(top), x.dtype.type(0), top)
    onp.subtract(x, top, out=y)


def _total(x: onp.ndarray, axis: Any) -> onp.ndarray:
    """The sum along an axis, kept; along the last as a product with ones, which BLAS does 4 times as fast."""
    if axis == -1 and x.dtype.char in "fd":
        with single_thread() or contextlib.nullcontext():
            return (x @ onp.ones(x.shape[-1], x.dtype))[..., None]
    return x.sum(axis=axis, keepdims=True)


@_by_rows
def _softmax(x: onp.ndarray, y: onp.ndarray, axis: Any) -> None:
    _centered(x, y, axis)
    onp.exp(y, out=y)
    with onp.errstate(invalid="ignore"):  # a row of -inf has no softmax: NaN
        y /= _total(y, axis)


@_by_rows
def _log_softmax(x: onp.ndarray, y: onp.ndarray, axis: Any) -> None:
    _centered(x, y, axis)
    with onp.errstate(divide="ignore", invalid="ignore"):
        y -= onp.log(_total(onp.exp(y), axis))


def _softmax_back(g: Any, y: Any, x: Any, axis: Any = -1) -> Any:
    if kernels.takes(g, y, least=SMALL) and axis in (-1, y.ndim - 1):
        return kernels.along("softmax_back", g, y)
    gy = g * y
    return gy - y * gy.sum(axis=axis, keepdims=True)


def _log_softmax_back(g: Any, y: Any, x: Any, axis: Any = -1) -> Any:
    if kernels.takes(g, y, least=SMALL) and axis in (-1, y.ndim - 1):
        return kernels.along("log_softmax_back", g, y)
    return g - exp(y) * g.sum(axis=axis, keepdims=True)


def _in_rows(arrays: Sequence[Any], params: dict) -> int:
    """Elements, where the softmax is along rows that are no shorter than torch's vectors."""
    x = arrays[0]
    along = params.get("axis", -1) in (-1, len(x.shape) - 1)
    return x.size if x.dtype.char in "fd" and along and x.shape[-1] >= 16 else 0


def _soft(name: str, kernel: Callable, rule: Callable, tangent: Callable) -> Primitive:
    return primitive(
        f"npx.{name}",
        numpy=kernel,
        vjp=[rule],
        jvp=[tangent],
        saves="out",
        shape=_floating,
        flops=per_element(5),
        worth=kernels.unless_taken(
            either(
                from_cost(lambda arrays, params: arrays[0].size, mxnet=2e5),
                once_imported(from_cost(_in_rows, torch=2e4)),
            )
        ),
        samples=lambda: [((spread(3, 4),), {}), ((spread(2, 3, 4),), {"axis": (0, 2)}), ((spread(2, 3),), {"axis": 0})],
    )


softmax = _soft("softmax", _softmax, _softmax_back, _softmax_back)
log_softmax = _soft(
    "log_softmax",
    _log_softmax,
    _log_softmax_back,
    lambda t, y, x, axis=-1: t - (exp(y) * t).sum(axis=axis, keepdims=True),
)


# ------------------------------------------------------------------ smooth_l1
def _smooth_l1(x: Any, scalar: float = 1.0) -> onp.ndarray:
    x, bend = _inexact(x), 1 / scalar**2
    size = onp.abs(x)
    return onp.where(size < bend, x * x * (0.5 * scalar**2), size - 0.5 * bend)


def _smooth_l1_slope(x: Any, scalar: float) -> Any:
    bend = 1 / scalar**2
    return where(less(absolute(x), bend), x * scalar**2, sign(x))


smooth_l1 = _activation(
    "smooth_l1",
    _smooth_l1,
    lambda g, y, x, scalar=1.0: g * _smooth_l1_slope(x, scalar),
    saves="in",
    params={"scalar": 0.8},
)
