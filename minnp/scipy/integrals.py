"""Rows of integrals, elliptic functions, orthogonal polynomials, spherical harmonics and Lambert's W."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
from scipy import special

from ..core.rows.dispatch import defines
from ..core.rows.primitive import Primitive, per_element, primitive
from ..core.transforms.grad import stop_gradient
from ..numpy.arguments import as_array, plain
from ..numpy.facts import sampled, spread
from ..numpy.reductions import sum_
from ..numpy.shaping import expand_dims
from ..numpy.ufuncs import (
    absolute,
    cos,
    cosh,
    equal,
    exp,
    less,
    maximum,
    power,
    rint,
    sin,
    sinc,
    sqrt,
    square,
    trunc,
    where,
)
from .rows import ORDER, PI, POSITIVE, UNIT, exprel, gauss, row, several, single

# ------------------------------------------------------------------ integrals
expi = row("expi", lambda g, y, x: g * (exp(x) / x), domain=[POSITIVE], saves="in")
exp1 = row("exp1", lambda g, y, x: -g * (exp(-x) / x), domain=[POSITIVE], saves="in")


def _expn_below(n: Any, x: Any) -> Any:
    """E(n - 1, x), with the closed forms that E(0, x) and E(-1, x) have."""
    many = less(1, n)
    few = where(many, 1, x)
    return where(many, expn(maximum(n - 1, 1), x), exp(-few) / few * where(equal(n, 1), 1, 1 + 1 / few))


expn = row("expn", None, lambda g, y, n, x: -g * _expn_below(trunc(n), x), domain=[ORDER, POSITIVE], saves="in")
sici = several("sici", lambda y, x: (sinc(x / PI), cos(x) / x), domain=[POSITIVE])
shichi = several("shichi", lambda y, x: (exprel(2 * x) * exp(-x), cosh(x) / x), domain=[POSITIVE])
fresnel = several("fresnel", lambda y, x: (sin(square(x) * (PI / 2)), cos(square(x) * (PI / 2))))
spence = row("spence", lambda g, y, z: -g * gauss(1.0, 1.0, 2.0, 1 - z), domain=[POSITIVE], saves="in")

# ------------------------------------------------------------------ elliptic integrals and functions
ellipk = row(
    "ellipk", lambda g, y, m: g * (gauss(0.5, 0.5, 2.0, m) * (PI / 8) / (1 - m)), domain=[(-0.8, 0.8)], saves="in"
)
ellipkm1 = row("ellipkm1", lambda g, y, p: -g * (gauss(0.5, 0.5, 2.0, 1 - p) * (PI / 8) / p), domain=[UNIT], saves="in")
ellipe = row("ellipe", lambda g, y, m: -g * (gauss(0.5, 1.5, 2.0, m) * (PI / 8)), domain=[(-0.8, 0.8)], saves="in")
elliprf = row(
    "elliprf",
    lambda g, r, x, y, z: g * (elliprd(y, z, x) / -6),
    lambda g, r, x, y, z: g * (elliprd(z, x, y) / -6),
    lambda g, r, x, y, z: g * (elliprd(x, y, z) / -6),
    domain=[POSITIVE] * 3,
    saves="in",
)


# The double exponential formula for a half line (Takahasi and Mori, 1974)
_STEPS = onp.arange(-4.4, 3.0, 0.08)
_PLACES = onp.exp(PI / 2 * onp.sinh(_STEPS))
_WEIGHTS = 0.08 * PI / 2 * onp.cosh(_STEPS) * _PLACES


def _rd_slope(r: Any, x: Any, y: Any, z: Any) -> Any:
    """The derivative of r = elliprd(x, y, z) in x; by its integral where x is near z, and a quotient is 0 / 0."""
    near = less(absolute(x - z), 0.01 * z)
    a, b, c, size = (expand_dims(where(near, v, 1.0), axis=-1) for v in (x, y, z, z))
    size = stop_gradient(size)
    t = _PLACES * size
    of = power(t + a, -1.5) * power(t + b, -0.5) * power(t + c, -1.5)
    gap = where(near, 1.0, x - z)
    integral = single(sum_(of * (_WEIGHTS * size), axis=-1) * -0.75, r.dtype)
    return where(near, integral, (elliprd(y, z, x) - r) / (2 * gap))


def _scaled_rd_slope(r: Any, x: Any, y: Any, z: Any) -> Any:
    """x times that; it grows like the root of 1 / x."""
    zero = equal(x, 0)
    return where(zero, 0.0, x * _rd_slope(r, where(zero, 1.0, x), y, z))


elliprd = row(
    "elliprd",
    lambda g, r, x, y, z: g * _rd_slope(r, x, y, z),
    lambda g, r, x, y, z: g * _rd_slope(r, y, x, z),
    lambda g, r, x, y, z: (  # homogeneity
        g * ((1.5 * r + _scaled_rd_slope(r, x, y, z) + _scaled_rd_slope(r, y, x, z)) / -z)
    ),
    domain=[(0.3, 1), (1.1, 1.5), (1.6, 3)],
)


def _incomplete_slopes(phi: Any, m: Any) -> tuple[Any, Any]:
    """The derivatives in m of the incomplete integrals of the first and the second kind; Carlson's forms."""
    half_turns = rint(phi / PI)
    s, c = square(sin(phi)), square(cos(phi))
    cube, bend = s * sin(phi - half_turns * PI) / 6, 1 - m * s
    quarter_k, quarter_e = gauss(0.5, 0.5, 2.0, m) * (PI / 8) / (1 - m), gauss(0.5, 1.5, 2.0, m) * (PI / -8)
    first = cube * elliprd(c, 1.0, bend) + 2 * half_turns * quarter_k
    return first, 2 * half_turns * quarter_e - cube * elliprd(c, bend, 1.0)


ellipkinc = row(
    "ellipkinc",
    lambda g, y, phi, m: g / sqrt(1 - m * square(sin(phi))),
    lambda g, y, phi, m: g * _incomplete_slopes(phi, m)[0],
    domain=[(0.3, 4), UNIT],
    saves="in",
)
ellipeinc = row(
    "ellipeinc",
    lambda g, y, phi, m: g * sqrt(1 - m * square(sin(phi))),
    lambda g, y, phi, m: g * _incomplete_slopes(phi, m)[1],
    domain=[(0.3, 4), UNIT],
    saves="in",
)


def _jacobi_slopes(y: Any, u: Any, m: Any) -> tuple:
    sn, cn, dn, phi = y
    turn = -dn * _incomplete_slopes(phi, m)[0]
    return cn * turn, -sn * turn, (square(sn) + 2 * m * sn * cn * turn) / (-2 * dn), turn


ellipj = several(
    "ellipj",
    lambda y, u, m: (y[1] * y[2], -y[0] * y[2], -m * y[0] * y[1], y[2]),
    _jacobi_slopes,
    domain=[(0.3, 1.2), UNIT],
)


# ------------------------------------------------------------------ orthogonal polynomials, in x
def _polynomial(name: str, slope: Callable, *domain: tuple, low: float = -0.8) -> Primitive:
    """A row of eval_`name`(n, ..., x), whose derivative is slope(n, ..., x); parameters have none of closed form."""

    def rule(g: Any, y: Any, n: Any, *given: Any) -> Any:
        constant = equal(n, 0)  # others have a degree below 0, which some of SciPy's do not know
        return g * where(constant, 0.0, slope(where(constant, 1, n), *given))

    return row(f"eval_{name}", *[None] * (1 + len(domain)), rule, domain=[ORDER, *domain, (low, 0.9)], saves="in")


jacobi = _polynomial(
    "jacobi", lambda n, a, b, x: jacobi(n - 1, a + 1, b + 1, x) * ((n + a + b + 1) * 0.5), POSITIVE, POSITIVE
)
gegenbauer = _polynomial("gegenbauer", lambda n, a, x: gegenbauer(n - 1, a + 1, x) * (2 * a), POSITIVE)
genlaguerre = _polynomial("genlaguerre", lambda n, a, x: -genlaguerre(n - 1, a + 1, x), POSITIVE)
chebyu = _polynomial("chebyu", lambda n, x: 2 * gegenbauer(n - 1, 2.0, x))
_polynomial("laguerre", lambda n, x: -genlaguerre(n - 1, 1.0, x))
_polynomial("legendre", lambda n, x: jacobi(n - 1, 1.0, 1.0, x) * ((n + 1) * 0.5))
_polynomial("sh_legendre", lambda n, x: jacobi(n - 1, 1.0, 1.0, 2 * x - 1) * (n + 1), low=0.1)
_polynomial("chebyt", lambda n, x: n * chebyu(n - 1, x))
_polynomial("sh_chebyt", lambda n, x: 2 * n * chebyu(n - 1, 2 * x - 1), low=0.1)
_polynomial("sh_chebyu", lambda n, x: 4 * gegenbauer(n - 1, 2.0, 2 * x - 1), low=0.1)
_polynomial("chebyc", lambda n, x: n * chebyu(n - 1, x * 0.5))
_polynomial("chebys", lambda n, x: gegenbauer(n - 1, 2.0, x * 0.5))
hermite = _polynomial("hermite", lambda n, x: 2 * n * hermite(maximum(n - 1, 0), x))
hermitenorm = _polynomial("hermitenorm", lambda n, x: n * hermitenorm(maximum(n - 1, 0), x))


def _lpmv_slope(y: Any, m: Any, v: Any, x: Any) -> Any:
    """In x; of order 0, where it is regular at 1 and -1, as a polynomial of Jacobi's."""
    plain, constant = equal(m, 0), equal(v, 0)
    z = where(plain, 0.5, x)
    legendre = where(constant, 0.0, jacobi(where(constant, 1, v) - 1, 1.0, 1.0, where(plain, x, 0.5)) * ((v + 1) * 0.5))
    return where(plain, legendre, ((v + m) * lpmv(m, v - 1, z) - v * z * y) / (1 - square(z)))


lpmv = row(
    "lpmv",
    None,
    None,
    lambda g, y, m, v, x: g * _lpmv_slope(y, m, v, x),
    domain=[(0, 1, 1), ORDER, (-0.8, 0.9)],
)

# ------------------------------------------------------------------ spherical harmonics
if hasattr(special, "sph_harm_y"):  # SciPy 1.15

    def _tilt(g: Any, y: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
        """In theta, by the ladder operators; beyond their ends all harmonics are zero."""
        up = sqrt(maximum((n - m) * (n + m + 1), 0)) * exp(-1j * phi) * sph_harm_y(n, m + 1, theta, phi)
        down = sqrt(maximum((n + m) * (n - m + 1), 0)) * exp(1j * phi) * sph_harm_y(n, m - 1, theta, phi)
        return g * (up - down) * 0.5

    sph_harm_y = row(
        "sph_harm_y",
        None,
        None,
        _tilt,
        lambda g, y, n, m, theta, phi: g * (1j * m * y),
        domain=[ORDER, (0, 1, -2), POSITIVE, POSITIVE],
    )

# ------------------------------------------------------------------ Lambert's W
wrightomega = row("wrightomega", lambda g, y, x: g * (y / (1 + y)), saves="out")
lambertw = primitive(
    "scipy.special.lambertw",
    numpy=lambda z, *, k, tol: special.lambertw(z, k, tol),
    vjp=[lambda g, y, z, **branch: g * (exp(-y) / (1 + y))],
    jvp="elementwise",
    saves="out",
    flops=per_element(50),
    samples=sampled(
        ((spread(2, 3, low=0.3, high=3),), {"k": 0, "tol": 1e-8}),
        ((spread(2, 3, dtype=complex),), {"k": 1, "tol": 1e-8}),
    ),
)
defines(special.lambertw)(lambda z, k=0, tol=1e-8: lambertw(as_array(z), k=plain(k), tol=tol))
