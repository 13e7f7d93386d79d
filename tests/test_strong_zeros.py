"""Where nothing flows, a slope that is infinite or NaN makes nothing of it: 0, to every order, in every transformation.
Where something flows, it stays what it is."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import minnp.npx  # noqa: F401  (fills the table)
import minnp.numpy as np
from minnp import grad, hessian, jit, jvp, vmap
from minnp.core.arrays.array import read, wrap
from minnp.core.rows.dispatch import bind
from minnp.core.rows.primitive import CONSTANT, TABLE
from tests.derivatives import slope

# of overflow, poles, ends of domains, of other functions' results there, and none
POINTS = [-onp.inf, -1000.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1000.0, onp.nan]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """NumPy warns of results that are then not chosen, as it does without gradients."""
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def moves(name: str) -> bool:
    """Whether a row is an elementwise function of floats with a gradient."""
    row = TABLE[name]
    arrays, params = row.samples()[0] if row.samples else ((), {})
    floats = all(getattr(a, "dtype", None) == onp.float64 for a in arrays) and len({onp.shape(a) for a in arrays}) == 1
    return floats and not params and row.vjp is not CONSTANT and row.vjp is not None and row.jvp == "elementwise"


ROWS = sorted(name for name in TABLE if not name.startswith("scipy") and moves(name))
SPECIAL = ("logit", "expm1", "log1p", "exp2", "exp10", "cbrt", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div")


@pytest.mark.parametrize("name", [*ROWS, *(f"scipy.special.{name}" for name in SPECIAL)])
def test_no_row_makes_nan_of_a_cotangent_of_zero(name: str) -> None:
    """Each row, at points that include the singular ones of all, where none of its results is chosen."""
    if name.startswith("scipy"):
        pytest.importorskip("scipy")
    row = TABLE[name]
    n = len(row.samples()[0][0])
    points = onp.array(list(itertools.product(POINTS, repeat=n))).T

    def f(*xs: Any) -> Any:
        out = wrap(bind(row, tuple(map(read, xs)), {}))
        return np.where(onp.zeros(points.shape[1], bool), out, 0).sum()

    first = lambda *xs: sum(g.sum() for g in grad(f, tuple(range(n)))(*xs))
    for g in (f, first):
        for found in grad(g, tuple(range(n)))(*map(np.array, points)):
            assert (onp.asarray(found) == 0).all()


X = onp.array([-2.0, -1.0, 0.0, 0.5, 4.0])
CHOSEN: dict[str, Callable] = {
    "sqrt": lambda x: np.where(x > 0, np.sqrt(x), 0),
    "power": lambda x: np.where(x > 0, x**0.3 + x**-1.5 + x**0.5, 0),
    "power of arrays": lambda x: np.where(x > 0, x ** np.array([0.5, 0.3, -1.0, 2.0, 1.5]), 0),
    "logarithms": lambda x: np.where(x > 0, np.log(x) + np.log2(x) - np.log10(x), 0),
    "log1p": lambda x: np.where(x > -1, np.log1p(x), 0),
    "inverse functions": lambda x: np.where(abs(x) < 1, np.arccos(x) + np.arcsin(x) - np.arctanh(x), 0),
    "division": lambda x: np.where(x > 0, 1 / x + x / (x * x) + np.reciprocal(x), 0),
    "overflow": lambda x: np.where(x < 1, np.sinh(x), 0) + np.where(x < 1, 0, np.exp(1000 * (4 - x))),
    "cbrt": lambda x: np.where(x > 0, np.cbrt(x), 0),
    "norms": lambda x: np.where(x > 0, np.linalg.norm(x[:, None] * np.arange(1.0, 4.0), axis=1), 0),
    "entropy": lambda x: np.where(x > 0, x * np.log(x), 0) - np.where(x == 0, 0, x * np.log(x * x)),
    "functions of what is infinite or NaN": lambda x: np.where(x > 0, np.sin(np.log(x)) + np.tanh(np.log(x)) ** 2, 0),
    "absolute values": lambda x: np.where(x > 0, abs(np.log(x)) * np.fabs(np.log(x)) * np.hypot(1 / x, x), 0),
    "squares": lambda x: np.where(x > 0, np.square(np.log(x)) + np.log(x) ** 3 + np.arctan(1 / x) * np.cos(1 / x), 0),
    "sums of exponentials": lambda x: np.where(x > 0, np.logaddexp(np.log(x), -np.inf) * np.logaddexp2(0, 1 / x), 0),
    "products": lambda x: np.where(x > 0, np.prod(np.log(x)[:, None] * np.arange(1.0, 4.0), axis=1), 0),
    "means of what is infinite": lambda x: np.where(x > 0, np.var(1 / x[:, None] * np.arange(1.0, 4.0), axis=1), 0),
    "written": lambda x: _written(x),
    "deviations": lambda x: np.where(x > 0, (x[:, None] * np.arange(1.0, 4.0)).std(1), 0),
}


def _written(x: Any) -> Any:
    y = x * np.log(x)
    y[x <= 0] = 0
    y[x > 0] = 1 / y[x > 0]
    return y


@pytest.mark.parametrize("f", CHOSEN.values(), ids=CHOSEN)
def test_what_is_not_chosen_has_no_gradient_in_any_transformation(f: Callable) -> None:
    total = lambda x: (f(x) * np.arange(1.0, 6.0)).sum()
    plain = onp.array(X)
    plain[X <= 0.0] -= 1e-3  # off the points themselves, where differences see both sides
    want = onp.array([slope(lambda x: onp.asarray(total(np.array(x))), [plain], [e])[0] for e in onp.eye(5)])
    first, at = grad(total), np.array(X)
    smooth = X > 0
    for got in (first(at), jit(first)(at), jit(first)(at), jvp_of(total, X)):
        got = onp.asarray(got)
        assert onp.isfinite(got).all()
        onp.testing.assert_allclose(got[smooth], want[smooth], rtol=1e-6)
    each = onp.asarray(vmap(grad(lambda x: (f(x)).sum()))(np.array(onp.stack([X, X]))))
    assert onp.isfinite(each).all() and (each[0] == each[1]).all()
    second, third = onp.asarray(hessian(total)(at)), grad(lambda x: grad(lambda x: first(x).sum())(x).sum())(at)
    assert onp.isfinite(second).all() and onp.isfinite(onp.asarray(third)).all()
    column = onp.array([slope(lambda x: onp.asarray(first(np.array(x))), [plain], [e])[0] for e in onp.eye(5)])
    onp.testing.assert_allclose(second[smooth][:, smooth], column[smooth][:, smooth], rtol=1e-5, atol=1e-6)


def jvp_of(f: Callable, x: onp.ndarray) -> onp.ndarray:
    return onp.array([onp.asarray(jvp(f, (np.array(x),), (e,))[1]) for e in onp.eye(x.size)])


def test_inverse_distances_beside_a_diagonal_of_zeros() -> None:
    """The n-body program: r is written where it is not 0."""

    def potential(x: Any) -> Any:
        r = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
        r[r > 0] = 1 / r[r > 0]
        return ((x[:, None] - x[None]) * r[..., None] ** 3 * np.arange(1.0, 5.0)[:, None, None]).sum()

    x = onp.random.default_rng(0).uniform(-1, 1, (4, 3))
    want = [slope(lambda x: onp.asarray(potential(np.array(x))), [x], [e])[0] for e in onp.eye(12).reshape(12, 4, 3)]
    for g in (grad(potential), jit(grad(potential))):
        onp.testing.assert_allclose(onp.asarray(g(np.array(x))).ravel(), want, rtol=1e-5, atol=1e-6)


def test_slopes_through_which_something_flows_stay_infinite_or_nan() -> None:
    zero = np.array([0.0])
    assert grad(lambda x: np.sqrt(x).sum())(zero)[0] == onp.inf
    assert grad(lambda x: np.log(x).sum())(zero)[0] == onp.inf
    assert grad(lambda x: (x**0.3).sum())(zero)[0] == onp.inf
    assert grad(lambda x: (1 / x).sum())(zero)[0] == -onp.inf
    assert onp.isnan(grad(lambda x: np.sqrt(x).sum())(np.array([-1.0]))[0])
    assert onp.isnan(grad(lambda x: np.sqrt(x * x).sum())(zero)[0])
    assert jit(grad(lambda x: np.sqrt(x).sum()))(zero)[0] == onp.inf


def test_a_cotangent_of_zero_by_chance_has_its_second_derivative() -> None:
    """f = (sqrt(x) - 1)^2 / 2 at 1: its gradient is 0, and the gradient of that 1 / 4."""
    f = lambda x: ((np.sqrt(x) - 1) ** 2 / 2).sum()
    for second in (grad(lambda x: grad(f)(x).sum()), jit(grad(lambda x: grad(f)(x).sum()))):
        assert second(np.array([1.0]))[0] == pytest.approx(0.25)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_dtypes_and_shapes_are_those_of_ordinary_gradients(dtype: str) -> None:
    for n in (3, 100):
        x = onp.linspace(0, 2, n).astype(dtype)
        g = grad(lambda x: np.where(x != 0, np.sqrt(x) / x + np.log(x), 0).real.sum())(np.array(x))
        assert g.dtype == x.dtype and g.shape == x.shape and onp.isfinite(onp.asarray(g)).all() and g[0] == 0


# ------------------------------------------------------------------ programs, as they are written
def _kl(p: Any) -> Any:
    q = np.full(p.shape, 1 / p.size)
    return np.sum(np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0))


def _masked_entropy(p: Any) -> Any:
    h = -p * np.log2(p)
    h[p == 0] = 0.0
    return h.sum()


def _attention(x: Any) -> Any:
    scores = np.outer(x, x)
    scores = np.where(np.tril(np.ones((x.size, x.size), bool), -1), scores, -np.inf)
    w = np.exp(scores - scores.max(axis=1, keepdims=True))
    w = w / w.sum(axis=1, keepdims=True)
    return (np.where(np.isnan(w), 0.0, w) @ x).sum()


def _gravity(x: Any) -> Any:
    d = x[:, None] - x[None, :]
    f = d / np.abs(d) ** 3
    f[np.arange(x.size), np.arange(x.size)] = 0.0
    return (f * f).sum()


def _lennard_jones(x: Any) -> Any:
    r2 = (x[:, None] - x[None, :]) ** 2
    inverse = np.where(r2 > 0, 1 / r2, 0)
    return (inverse**6 - inverse**3).sum()


def _pair_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            u = 1 / np.sqrt((x[i] - x[j]) ** 2)
            total = total + (u if i != j else 0.0)
    return total


def _cosines(x: Any) -> Any:
    a = np.stack([x, x * x, 0 * x])
    n = np.sqrt((a * a).sum(axis=1))
    c = a @ a.T / np.outer(n, n)
    return np.where(np.isfinite(c), np.arccos(np.clip(c, -1, 1)), 0.0)[0, 1:].sum()


def _safe_division(x: Any) -> Any:
    out = np.zeros_like(x)
    np.divide(np.sin(x), x, out=out, where=x != 0)
    return out.sum() + (x == 0).sum()


def _huber(x: Any) -> Any:
    return np.where(np.abs(x) < 1, 0.5 * x * x, np.abs(x) - 0.5).sum()


def _smooth_root(x: Any) -> Any:
    return np.where(np.abs(x) < 1e-9, 0.0, np.sign(x) * np.sqrt(np.abs(x))).sum()


def _planck(x: Any) -> Any:
    return np.where(x > 0, x**3 / np.expm1(1 / x), 0.0).sum()


def _weighted(x: Any) -> Any:
    w = np.where((x > 0.3) & (x < 1), 1.0, 0.0)
    return np.sum(np.where(w > 0, w * np.log(x / (1 - x)), 0)) / w.sum()


def _missing(x: Any) -> Any:
    data = np.array([1.0, np.nan, 2.0, np.inf, 0.5])
    r = (data - x) ** 2 * x
    return np.where(np.isfinite(data), r, 0).mean()


def _student(x: Any) -> Any:
    y = np.where(x == 0, 1.0, np.sin(np.pi * x) / (np.pi * x))
    return (y * y).sum()


def _gather(x: Any) -> Any:
    r = np.hypot(x, 0.0)
    inside = r > 0
    return (x[inside] / r[inside] * np.log(r[inside])).sum() + (r * 0.0).sum()


PROGRAMS: dict[str, Callable] = {
    "relative entropy": _kl,
    "entropy, masked in place": _masked_entropy,
    "attention with a row that sees nothing": _attention,
    "gravity": _gravity,
    "lennard-jones": _lennard_jones,
    "pairs in a loop": _pair_loop,
    "angles beside a vector of zeros": _cosines,
    "division with where=": _safe_division,
    "huber": _huber,
    "roots of both signs": _smooth_root,
    "planck": _planck,
    "log odds with weights": _weighted,
    "missing data": _missing,
    "sinc by hand": _student,
    "unit vectors by mask": _gather,
    "log of a clip": lambda x: np.log(np.clip(x, 1e-6, 1)).sum(),
    "clip of a log": lambda x: np.clip(np.log(x), -5, 5).sum(),
    "maximum of a log": lambda x: np.maximum(np.log(x), -3.0).sum(),
    "nan_to_num of a log": lambda x: np.nan_to_num(np.log(x), neginf=0.0, nan=0.0).sum(),
    "focal loss": lambda x: -np.where(x > 0, (1 - x) ** 2 * np.log(x), 0).sum(),
    "cross entropy": lambda x: -np.where(x > 0.4, np.log(x), np.where(x < 1, np.log(1 - x), 0)).sum(),
    "power law": lambda x: np.where(x > 0, x**-1.5 * np.exp(-1 / x), 0).sum(),
    "temperatures": lambda x: np.where(x > 0, np.exp(-1 / x) / (1 + np.exp(-1 / x)), 0).sum(),
    "geometric mean of what is not zero": lambda x: np.exp(np.where(x > 0, np.log(x), 0).sum() / (x > 0).sum()),
    "sum with where=": lambda x: np.sum(1 / x, where=x > 0),
    "log-sum-exp with -inf": lambda x: np.log(np.sum(np.exp(np.where(x > 0, np.log(x), -np.inf)))),
    "logaddexp over a mask": lambda x: np.logaddexp.reduce(np.where(x > 0, x, -np.inf)),
    "norms of rows": lambda x: np.where(x > 0, np.linalg.norm(np.stack([x, 2 * x], 1), axis=1), 0).sum(),
    "deviations of rows": lambda x: np.where(x > 0, np.stack([x, 2 * x], 1).std(axis=1), 0).sum(),
    "polar": lambda x: np.where(x > 0, np.arctan2(x, x * x) * np.hypot(x, x), 0).sum(),
    "arcsines": lambda x: np.where(x < 1, np.arcsin(x) * np.arccos(x), 0).sum(),
    "erfinv by select": lambda x: np.select([x <= 0, x >= 1], [0.0, 1.0], np.log(x) * np.log1p(-x)).sum(),
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_of_strangers_have_gradients_beside_what_is_not_chosen(f: Callable) -> None:
    x = onp.array([0.0, 0.25, 0.5, 1.0, 0.75])
    got = [onp.asarray(g(np.array(x))) for g in (grad(f), jit(grad(f)), grad(jit(f)))]
    got.append(onp.array([float(jvp(f, (np.array(x),), (e,))[1]) for e in onp.eye(5)]))
    for g in got:
        assert onp.isfinite(g).all()
        onp.testing.assert_allclose(g, got[0], rtol=1e-9, atol=1e-12)
    at = lambda e: float(f(np.array(x + e)))
    for k in (1, 2, 4):  # where differences see both sides
        e = onp.zeros(5)
        e[k] = 1e-6
        assert got[0][k] == pytest.approx((at(e) - at(-e)) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_infinite_slope_of_the_imaginary_part_leaves_the_real_one(dtype):
    def f(x):
        z = x + 0j
        return (z.real * 3 + np.sqrt(np.imag(z))).sum()

    for x in (np.array(2, dtype), np.array([1.0, 2.0], dtype)):
        for g in (grad(f), jit(grad(f))):
            slope = g(x)
            assert slope.dtype == dtype and (slope == 3).all()
        onp.testing.assert_array_equal(grad(lambda z: np.sum(2 * z.imag))(x + 1j), -2j * onp.ones(x.shape))
