"""gelu and its slope in single precision, and by tanh in any, block by block.

Phi(x), the normal distribution function, is 1 / (1 + exp(-x R(x^2))), with R a ratio of two polynomials, fitted to
log(Phi(x) / Phi(-x)) / x for |x| < 6 within 1.2e-7 of its size. Nothing is taken from 1, so small results keep digits:
gelu is within 3 units in the last place for x > 0, 5 down to -1 and 2e-5 of its size down to -6, where
1 + erf(x / sqrt(2)) has lost all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as onp

from ..core.cpu import threads
from ..core.cpu.memory import empty

MINUS_ABOVE = [-1.59576894, -2.29286896e-1, -1.95319915e-2, -6.38432504e-4, -2.63141782e-6]
BELOW = [1.0, 9.81431451e-2, 7.81870864e-3, 1.12748885e-4, 8.63235122e-8]
FAR = 36.0  # x^2 from which R stays as it is
LINEAR = 1.5957691216057308  # sqrt(8 / pi): 2 u = LINEAR x + CUBIC x^3
CUBIC = 0.044715 * LINEAR
NORMAL = 0.3989422804014327  # 1 / sqrt(2 pi)
BLOCK, SHARED = 1 << 13, 1 << 16  # elements that stay in the cache, and from which threads share the blocks


def _series(coefficients: list[float], s: onp.ndarray, out: onp.ndarray) -> onp.ndarray:
    onp.multiply(s, coefficients[-1], out=out)
    for c in coefficients[-2:0:-1]:
        out += c
        out *= s
    out += coefficients[0]
    return out


def _odds(x: onp.ndarray, s: onp.ndarray, a: onp.ndarray, b: onp.ndarray) -> onp.ndarray:
    """a = 1 / Phi(x), for s = x^2, which is overwritten."""
    onp.minimum(s, FAR, out=s)
    _series(MINUS_ABOVE, s, a)
    a /= _series(BELOW, s, b)
    a *= x
    onp.exp(a, out=a)
    a += 1
    return a


def _gelu(x: onp.ndarray, y: onp.ndarray, a: onp.ndarray, b: onp.ndarray) -> None:
    onp.multiply(x, x, out=y)
    onp.divide(x, _odds(x, y, a, b), out=y)


def _slope(x: onp.ndarray, y: onp.ndarray, a: onp.ndarray, b: onp.ndarray) -> None:
    onp.multiply(x, x, out=y)
    _odds(x, y, a, b)
    onp.multiply(x, x, out=y)
    y *= -0.5
    onp.exp(y, out=y)
    y *= x
    y *= NORMAL
    y += onp.reciprocal(a, out=a)


def _by_blocks(kernel: Callable) -> Callable[[onp.ndarray], onp.ndarray]:
    """The kernel (x, y, scratch, scratch) as a function of an array of floats."""

    def run(x: onp.ndarray) -> onp.ndarray:
        y = empty(x.shape, x.dtype)
        given, out = onp.ascontiguousarray(x).reshape(-1), y.reshape(-1)
        count = -(-x.size // BLOCK)
        step = max(1, count // 16)  # blocks a thread takes at a time

        def work(i: int) -> None:
            a, b = onp.empty((2, BLOCK), x.dtype)
            for start in range(i * step * BLOCK, min((i + 1) * step * BLOCK, x.size), BLOCK):
                part, target = given[start : start + BLOCK], out[start : start + BLOCK]
                kernel(part, target, a[: part.size], b[: part.size])

        with onp.errstate(over="ignore", under="ignore"):  # exp(-x) is infinite where x / inf = 0 is right
            if x.size < SHARED:
                for i in range(-(-count // step)):
                    work(i)
            else:
                threads.run(work, -(-count // step), "npx.gelu")
        return y

    return run


def _by_tanh(x: onp.ndarray, y: onp.ndarray, a: onp.ndarray, b: onp.ndarray) -> None:
    onp.divide(x, _odds_by_tanh(x, y, a), out=y)


def _slope_by_tanh(x: onp.ndarray, y: onp.ndarray, a: onp.ndarray, b: onp.ndarray) -> None:
    onp.reciprocal(_odds_by_tanh(x, a, y), out=y)
    # s + x s (1 - s) (2 u)', for s = (1 + tanh(u)) / 2; a is x^2
    onp.subtract(1, y, out=b)
    b *= y
    b *= x
    a *= 3 * CUBIC
    a += LINEAR
    b *= a
    y += b


def _odds_by_tanh(x: onp.ndarray, s: onp.ndarray, a: onp.ndarray) -> onp.ndarray:
    """a = 2 / (1 + tanh(u)) = 1 + exp(-2 u), and s = x^2."""
    onp.multiply(x, x, out=s)
    onp.multiply(s, -CUBIC, out=a)
    a -= LINEAR
    a *= x
    onp.exp(a, out=a)
    a += 1
    return a


gelu, gelu_slope = _by_blocks(_gelu), _by_blocks(_slope)
gelu_by_tanh, slope_by_tanh = _by_blocks(_by_tanh), _by_blocks(_slope_by_tanh)
