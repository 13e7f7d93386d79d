"""Rows of the Bessel functions and their kin. They have no derivative of closed form with respect to their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
from scipy import special

from ..core.rows.dispatch import defines
from ..core.rows.primitive import Primitive
from ..numpy.arguments import operand
from ..numpy.ufuncs import equal, exp, maximum, power, sign, square, trunc, where
from .rows import ORDER, POSITIVE, ROOT_PI, gamma, row, several, single


def _by_orders(name: str, below: float, above: float, itself: complex = 0.0) -> Primitive:
    """A row of a function of order v, whose derivative is below * f(v - 1) + above * f(v + 1) + itself * f(v)."""

    def rule(g: Any, y: Any, v: Any, x: Any) -> Any:
        slope = made(v - 1, x) * below + made(v + 1, x) * above
        return g * (slope + itself * y if itself else slope)

    made = row(name, None, rule, domain=[ORDER, POSITIVE])
    return made


jv, yv, hankel1, hankel2 = (_by_orders(name, 0.5, -0.5) for name in ("jv", "yv", "hankel1", "hankel2"))
hankel1e, hankel2e = _by_orders("hankel1e", 0.5, -0.5, -1j), _by_orders("hankel2e", 0.5, -0.5, 1j)
iv, kv, kve = _by_orders("iv", 0.5, 0.5), _by_orders("kv", -0.5, -0.5), _by_orders("kve", -0.5, -0.5, 1.0)
ive = row(
    "ive",
    None,
    lambda g, y, v, x: g * ((ive(v - 1, x) + ive(v + 1, x)) * 0.5 - sign(x) * y),
    domain=[ORDER, POSITIVE],
)


def _by_integers(name: str, of: Primitive, below: float, above: float) -> None:
    """A row of `of` for integer orders: SciPy takes the integer part of others."""

    def rule(g: Any, y: Any, n: Any, x: Any) -> Any:
        n = trunc(n)
        return g * (of(n - 1, x) * below + of(n + 1, x) * above)

    row(name, None, rule, domain=[ORDER, POSITIVE])


_by_integers("yn", yv, 0.5, -0.5)
_by_integers("kn", kv, -0.5, -0.5)

j0 = row("j0", lambda g, y, x: -g * j1(x), domain=[POSITIVE], saves="in")
j1 = row("j1", lambda g, y, x: g * ((j0(x) - jv(2, x)) * 0.5), domain=[POSITIVE], saves="in")
y0 = row("y0", lambda g, y, x: -g * y1(x), domain=[POSITIVE], saves="in")
y1 = row("y1", lambda g, y, x: g * ((y0(x) - yv(2, x)) * 0.5), domain=[POSITIVE], saves="in")
i0 = row("i0", lambda g, y, x: g * i1(x), domain=[POSITIVE], saves="in")
i1 = row("i1", lambda g, y, x: g * ((i0(x) + iv(2, x)) * 0.5), domain=[POSITIVE], saves="in")
k0 = row("k0", lambda g, y, x: -g * k1(x), domain=[POSITIVE], saves="in")
k1 = row("k1", lambda g, y, x: g * ((k0(x) + kv(2, x)) * -0.5), domain=[POSITIVE], saves="in")
i0e = row("i0e", lambda g, y, x: g * (i1e(x) - sign(x) * y))
i1e = row("i1e", lambda g, y, x: g * ((i0e(x) + ive(2, x)) * 0.5 - sign(x) * y))
k0e = row("k0e", lambda g, y, x: g * (y - k1e(x)), domain=[POSITIVE])
k1e = row("k1e", lambda g, y, x: g * (y - (k0e(x) + kve(2, x)) * 0.5), domain=[POSITIVE])


# ------------------------------------------------------------------ spherical ones
def _spherical(name: str, below: int, above: int) -> Primitive:
    """A row of a spherical Bessel function: (2n + 1) f(n)' = below * n f(n - 1) + above * (n + 1) f(n + 1)."""

    def slope(n: Any, z: Any) -> Any:
        n = trunc(n)  # as SciPy does
        return (made(maximum(n - 1, 0), z) * (below * n) + made(n + 1, z) * (above * (n + 1))) / (2 * n + 1)

    def definition(n: Any, z: Any, derivative: bool = False) -> Any:
        n, z = operand(n), operand(z)
        return slope(n, z) if derivative else made(n, z)

    made = row(name, None, lambda g, y, n, z: single(g * slope(n, z), y.dtype), domain=[ORDER, POSITIVE])
    defines(getattr(special, name))(definition)
    return made


spherical_jn, spherical_yn = _spherical("spherical_jn", 1, -1), _spherical("spherical_yn", 1, -1)
spherical_in, spherical_kn = _spherical("spherical_in", 1, 1), _spherical("spherical_kn", -1, -1)


# ------------------------------------------------------------------ Airy, Kelvin and Struve functions, integrals
def _over(y: Any, x: Any, near: Callable) -> Any:
    """y / x; at 0 by the beginning of its series, which has its derivatives there as well."""
    zero = equal(x, 0)
    return where(zero, near(x), y / where(zero, 1.0, x))


airy = several("airy", lambda y, x: (y[1], x * y[0], y[3], x * y[2]))
itj0y0 = several("itj0y0", lambda y, x: (j0(x), y0(x)), domain=[POSITIVE])
iti0k0 = several("iti0k0", lambda y, x: (i0(x), k0(x)), domain=[POSITIVE])
ber = row("ber", lambda g, y, x: g * berp(x), domain=[POSITIVE], saves="in")
bei = row("bei", lambda g, y, x: g * beip(x), domain=[POSITIVE], saves="in")
ker = row("ker", lambda g, y, x: g * kerp(x), domain=[POSITIVE], saves="in")
kei = row("kei", lambda g, y, x: g * keip(x), domain=[POSITIVE], saves="in")
berp = row("berp", lambda g, y, x: -g * (bei(x) + _over(y, x, lambda x: square(x) / -16)), domain=[POSITIVE])
beip = row("beip", lambda g, y, x: g * (ber(x) - _over(y, x, lambda x: 0.5 - x**4 / 384)), domain=[POSITIVE])
kerp = row("kerp", lambda g, y, x: -g * (kei(x) + y / x), domain=[POSITIVE])
keip = row("keip", lambda g, y, x: g * (ker(x) - y / x), domain=[POSITIVE])


def _struve(name: str, sign: float) -> Primitive:
    def rule(g: Any, y: Any, v: Any, x: Any) -> Any:
        zero = equal(v, 0)  # there order -1 has a slope that is a difference of two infinite ones at 0
        u, first = where(zero, 1, v), power(x * 0.5, v) / (gamma(v + 1.5) * ROOT_PI)
        return g * where(zero, first + made(u, x) * sign, (made(u - 1, x) + made(u + 1, x) * sign + first) * 0.5)

    made = row(name, None, rule, domain=[ORDER, POSITIVE])
    return made


struve, modstruve = _struve("struve", -1.0), _struve("modstruve", 1.0)
wright_bessel = row(
    "wright_bessel",
    *[None] * 2,
    lambda g, y, a, b, x: g * wright_bessel(a, a + b, x),
    domain=[POSITIVE] * 3,
    saves="in",
)
if hasattr(special, "log_wright_bessel"):  # SciPy 1.14
    log_wright_bessel = row(
        "log_wright_bessel",
        *[None] * 2,
        lambda g, y, a, b, x: g * exp(log_wright_bessel(a, a + b, x) - y),
        domain=[POSITIVE] * 3,
    )


# ------------------------------------------------------------------ derivatives as functions
def _derivative(name: str, function: Callable, below: float, above: float) -> None:
    """Define scipy.special's `name`(v, z, n), the n-th derivative, by the recurrence applied n times."""

    def nth(v: Any, z: Any, n: int = 1) -> Any:
        if not (isinstance(n, (int, onp.integer)) and n >= 0):
            raise ValueError(f"{name}(v, z, n) takes a non-negative integer n, got {n!r}")
        if not n:
            return function(operand(v), operand(z))
        return nth(operand(v) - 1, z, n - 1) * below + nth(operand(v) + 1, z, n - 1) * above

    defines(getattr(special, name))(nth)


for _name, _function, _above in [("jvp", jv, -0.5), ("yvp", yv, -0.5), ("ivp", iv, 0.5), ("h1vp", hankel1, -0.5),
                                 ("h2vp", hankel2, -0.5)]:  # fmt: skip
    _derivative(_name, _function, 0.5, _above)
_derivative("kvp", kv, -0.5, -0.5)
