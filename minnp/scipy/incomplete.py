"""Rows of the incomplete gamma and beta functions and of what they make: distribution functions, and their inverses."""

from __future__ import annotations

from typing import Any

from scipy import special

from ..core.dispatch import defines
from ..numpy.arguments import operand
from ..numpy.ufuncs import exp, floor, power, square
from .rows import PI, POSITIVE, UNIT, betaln, gammaln, row, xlog1py, xlogy


def _gamma_density(a: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) - x - gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


# None: no closed form with respect to the parameters
gammainc = row("gammainc", None, lambda g, y, a, x: g * _gamma_density(a, x), domain=[POSITIVE] * 2)
gammaincc = row("gammaincc", None, lambda g, y, a, x: -g * _gamma_density(a, x), domain=[POSITIVE] * 2)
betainc = row("betainc", None, None, lambda g, y, a, b, x: g * _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT])
if hasattr(special, "betaincc"):  # SciPy 1.11
    betaincc = row(
        "betaincc", None, None, lambda g, y, a, b, x: -g * _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT]
    )


def _t_density(df: Any, t: Any) -> Any:
    scale = exp(gammaln(df * 0.5 + 0.5) - gammaln(df * 0.5)) / (df * PI) ** 0.5
    return power(1 + square(t) / df, (df + 1) * -0.5) * scale


stdtr = row("stdtr", None, lambda g, y, df, t: g * _t_density(df, t), domain=[POSITIVE, (-2, 2)])

# ------------------------------------------------------------------ inverses
gammaincinv = row("gammaincinv", None, lambda g, x, a, p: g / _gamma_density(a, x), domain=[POSITIVE, UNIT])
gammainccinv = row("gammainccinv", None, lambda g, x, a, p: -g / _gamma_density(a, x), domain=[POSITIVE, UNIT])
betaincinv = row(
    "betaincinv", None, None, lambda g, x, a, b, p: g / _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT]
)
if hasattr(special, "betainccinv"):  # SciPy 1.11
    betainccinv = row(
        "betainccinv", None, None, lambda g, x, a, b, p: -g / _beta_density(a, b, x), domain=[POSITIVE] * 2 + [UNIT]
    )
stdtrit = row("stdtrit", None, lambda g, t, df, p: g / _t_density(df, t), domain=[POSITIVE, UNIT])


# ------------------------------------------------------------------ distribution functions under their own names
def _said(name: str, definition: Any) -> None:
    defines(getattr(special, name))(lambda *args: definition(*map(operand, args)))


_said("chdtr", lambda df, x: gammainc(df * 0.5, x * 0.5))
_said("chdtrc", lambda df, x: gammaincc(df * 0.5, x * 0.5))
_said("chdtri", lambda df, p: 2 * gammainccinv(df * 0.5, p))
_said("gdtr", lambda rate, a, x: gammainc(a, rate * x))
_said("gdtrc", lambda rate, a, x: gammaincc(a, rate * x))
_said("pdtr", lambda k, mu: gammaincc(floor(k) + 1, mu))
_said("pdtrc", lambda k, mu: gammainc(floor(k) + 1, mu))
_said("bdtr", lambda k, n, p: betainc(n - floor(k), floor(k) + 1, 1 - p))
_said("bdtrc", lambda k, n, p: betainc(floor(k) + 1, n - floor(k), p))
_said("nbdtr", lambda k, n, p: betainc(n, floor(k) + 1, p))
_said("nbdtrc", lambda k, n, p: betainc(floor(k) + 1, n, 1 - p))
_said("fdtr", lambda a, b, x: betainc(a * 0.5, b * 0.5, a * x / (a * x + b)))
_said("fdtrc", lambda a, b, x: betainc(b * 0.5, a * 0.5, b / (a * x + b)))
