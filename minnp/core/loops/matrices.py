"""Functions as loops, which are read like those of the user's: Gauss's elimination, what needs it, and searches.

They write to their arguments, which are copies. A matrix that is singular, or nearly, raises: Python then runs the
loop, and LAPACK decides. Names that they read are this module's: no user can give them another meaning.
"""

from __future__ import annotations

import builtins
from typing import Any

from numpy import sqrt

abs, len, max, range = builtins.abs, builtins.len, builtins.max, builtins.range

MOST = 64  # rows: of more, the loop's own overhead is nothing beside LAPACK's time


def eliminated(a: Any, b: Any, least: float) -> Any:
    """The triangle U in the place of a of shape (n, n), and L^-1 P b in that of b; the sign of P. Pivots are the
    greatest of their column (Golub and Van Loan, Matrix Computations, 3.4)."""
    n = len(a)
    greatest = abs(a[0, 0])
    for i in range(n):
        for j in range(n):
            greatest = max(greatest, abs(a[i, j]))
    sign = 1.0
    for k in range(n):
        row, best = k, abs(a[k, k])
        for i in range(k + 1, n):
            size = abs(a[i, k])
            if size > best:
                row, best = i, size
        if not best > least * n * greatest:
            raise ArithmeticError
        if row != k:
            sign = -sign
            for j in range(k, n):
                a[k, j], a[row, j] = a[row, j], a[k, j]
            for j in range(b.shape[1]):
                b[k, j], b[row, j] = b[row, j], b[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            for j in range(b.shape[1]):
                b[i, j] -= factor * b[k, j]
    return sign


def solve(a: Any, b: Any, least: float) -> None:
    """a^-1 b in the place of b of shape (n, m)."""
    eliminated(a, b, least)
    for k in range(len(a) - 1, -1, -1):
        for i in range(k + 1, len(a)):
            for j in range(b.shape[1]):
                b[k, j] -= a[k, i] * b[i, j]
        for j in range(b.shape[1]):
            b[k, j] /= a[k, k]


def det(a: Any, b: Any, least: float) -> Any:
    """The determinant; b has shape (n, 0)."""
    sign = eliminated(a, b, least)
    product = a[0, 0] * sign
    for k in range(1, len(a)):
        product = product * a[k, k]
    return product


def cholesky(a: Any, out: Any, least: float) -> None:
    """The lower triangle L with a = L L^T in out, which is zero; what lies above the diagonal of a is not read."""
    for i in range(len(a)):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            if i == j:
                if not total > least * a[i, i]:
                    raise ArithmeticError
                out[i, i] = sqrt(total)
            else:
                out[i, j] = total / out[j, j]


def below(x: Any, y: Any) -> Any:
    """Whether x comes before y, NaN last."""
    return x < y or (y != y and x == x)


def left(a: Any, v: Any) -> Any:
    """Where v belongs in the sorted a of shape (n,), before what is equal."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if below(a[middle], v):
            low = middle + 1
        else:
            high = middle
    return low


def right(a: Any, v: Any) -> Any:
    """Where v belongs in the sorted a of shape (n,), behind what is equal."""
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if below(v, a[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def interp(v: Any, xp: Any, fp: Any) -> Any:
    """The value at v of the lines that join the points (xp, fp), xp increasing; beyond them that of the last one."""
    behind, last = right(xp, v), len(xp) - 1
    if behind == 0 or last == 0:  # of one point NaN has the value, too
        return fp[0]
    if v != v:
        return v
    if v > xp[last]:
        return fp[last]
    if behind > last:  # at the last point, with the slope that is before it
        y = (fp[last] - fp[last - 1]) / (xp[last] - xp[last - 1]) * (v - xp[last]) + fp[last]
        return y if y == y else fp[last]
    slope = (fp[behind] - fp[behind - 1]) / (xp[behind] - xp[behind - 1])
    y = slope * (v - xp[behind - 1]) + fp[behind - 1]
    if y != y:
        y = slope * (v - xp[behind]) + fp[behind]
        if v == xp[behind - 1] or (y != y and fp[behind] == fp[behind - 1]):
            y = fp[behind - 1]
    return y


def polyval(p: Any, x: Any) -> Any:
    """The polynomial with the coefficients p, the highest first, at x (Horner)."""
    y = 0.0
    for k in range(len(p)):
        y = y * x + p[k]
    return y
