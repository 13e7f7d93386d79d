"""Numbers among the arguments of a compiled function may change: the same code, NumPy's promotion, nothing stale."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, vmap
from minnp.core.compiled import fastpath

X = onp.arange(1.0, 7.0, dtype="f4")
WHOLE, BROKEN = (1, 2, 3, 2, 5), (0.5, 1.5, 2.5, -1.5, 3.5)

# what a function does with a number, and how often it is captured for four different whole ones: where each is another
# program, three times, and the fourth waits (of numbers that come again it would be captured later)
USES: dict[str, tuple[Any, int]] = {
    "product": (lambda x, n: x * n - n / 2, 1),
    "power": (lambda x, n: x**n, 1),
    "comparison": (lambda x, n: x < n, 1),
    "floor division": (lambda x, n: x // n, 1),
    "integers": (lambda x, n: x.astype(int) * n, 1),
    "small integers": (lambda x, n: x.astype("i1") + n, 1),
    "where": (lambda x, n: np.where(x > n, x, n), 1),
    "maximum": (lambda x, n: np.maximum(n, x), 1),
    "clip": (lambda x, n: np.clip(x, 0, n), 1),
    "number of NumPy's": (lambda x, n: np.float32(2) * n * x, 1),
    "function of it": (lambda x, n: x * np.exp(n), 1),
    "functions of numbers": (lambda x, n: (np.add(n, 1), np.multiply(2, n), np.subtract(n, n), np.divide(n, 4)), 1),
    "given back": (lambda x, n: (n, -n, n // 2, n % 2, n / 2, abs(-n)), 1),
    "written": (lambda x, n: _written(x, n), 1),
    "gradient": (lambda x, n: grad(lambda y: (y**2 * n).sum())(x), 1),
    "gradient of it": (lambda x, n: grad(lambda y: y**2 * x.sum())(n), 1),
    "gradients of both": (lambda x, n: grad(lambda y, z: (y**2 * z).sum(), [0, 1])(x, n)[1], 1),
    "exactly a number": (lambda x, n: x * _exactly(n), 3),
    "branch": (lambda x, n: x * n if n > 2 else x - n, 2),
    "slice": (lambda x, n: x[:n] * n, 3),
    "index": (lambda x, n: x[n] + 0, 2),
    "shape": (lambda x, n: np.zeros(n) + n, 3),
    "count": (lambda x, n: [i * x for i in range(n)][-1], 3),
    "math": (lambda x, n: math.sqrt(abs(n)) * x, 3),
    "text": (lambda x, n: x * len(f"{n}"), 3),
    "key": (lambda x, n: {1: x}.get(n, 2 * x), 3),
    "array of it": (lambda x, n: np.array([n, n]) * x[:2], 3),
    "dtype": (lambda x, n: np.add(x, n, dtype="f8"), 3),
    "rounded": (lambda x, n: round(n) + x, 3),
    "roll": (lambda x, n: np.roll(x, n), 3),
    "batched": (lambda x, n: vmap(lambda y: y * n)(x), 3),
}


def _exactly(n: Any) -> Any:
    if type(n) not in (int, float):
        raise TypeError("that is no number")
    return n


def _written(x: Any, n: Any) -> Any:
    y = x * 2
    y += n
    y[1] = n
    y[2:4] -= n
    return y


def outcome(f: Any, x: Any, n: Any) -> Any:
    try:
        out = f(x, n)
    except (TypeError, IndexError) as error:
        return type(error)
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.skipif(fastpath is None, reason="without the C part every call is looked at")
def test_known_paths_are_not_asked_while_captures_wait():
    g = jit(lambda x: x * int(x[0]))
    for k in range(13):  # in which paths and the function are timed
        g(np.array(X + k))
    missed = g.cache_info()["guard_failures"]
    for k in range(13, 20):
        onp.testing.assert_array_equal(g(np.array(X + k)), (X + k) * int(X[0] + k))
    assert g.cache_info()["guard_failures"] == missed
    assert g.captures == 4


@pytest.mark.dealt
@pytest.mark.parametrize("compiler", ["auto", "numpy"])
@pytest.mark.parametrize("use", USES)
def test_a_number_may_change(use: str, compiler: str) -> None:
    f, captures = USES[use]
    for numbers in (WHOLE, BROKEN):
        compiled = jit(f, compiler=compiler)
        for n in numbers:
            want, got = outcome(f, np.array(X), n), outcome(compiled, np.array(X), n)
            if isinstance(want, type):
                assert got is want
                continue
            for a, b in zip(want, got, strict=True):
                assert onp.asarray(a).dtype == onp.asarray(b).dtype and isinstance(a, int) == isinstance(b, int)
                onp.testing.assert_allclose(b, a, rtol=1e-6)
        if numbers is WHOLE:
            assert compiled.cache_info()["captures"] == captures


def _one_hot(x: Any, places: list) -> Any:
    y = np.zeros((len(places), 6))
    for row, n in zip(y, places):
        row[n] = x[n - 1]
    return y


INDICES = {
    "element": lambda x, k: x[k[0]] * 2,
    "computed": lambda x, k: x[k[0] - k[1]] + k[0],
    "beside others": lambda x, k: x.reshape(2, 3)[k[0] - k[0], [0, 2]] + x[None, k[1]],
    "view that is written": lambda x, k: x.reshape(6, 1)[k[0]].__iadd__(1.0),
    "item that is written": lambda x, k: x.__setitem__(k[1], x[k[0]]),
    "take": lambda x, k: np.take(x, k[0]),
    "rows": _one_hot,
    "gradient": lambda x, k: grad(lambda x: x[k[0]] ** 2 * x[k[1]])(x),
    "batch": lambda x, k: vmap(lambda row: row[k[0] % 3])(x.reshape(2, 3)),
    "shape as well": lambda x, k: x[k[0]] * np.ones(1 + k[0] % 2),
    "item of a list": lambda x, k: x * [0.5, 1.5, 2.5, 3.5, 4.5, 5.5][k[1]],
}


@pytest.mark.parametrize("use", INDICES)
def test_an_index_that_changes_is_an_input(use: str) -> None:
    """From the second one on: an index that stays is part of the compiled code."""
    f = INDICES[use]
    compiled = jit(f)
    for places in ([1, 2], [3, 2], [5, 4], [0, 1], [2, 3], [-1, -2], [4, 7], [4, 5]):
        ours, theirs = np.array(X).astype("f8"), np.array(X).astype("f8")
        got, want = outcome(compiled, ours, places), outcome(f, theirs, places)
        if isinstance(want, type):
            assert got is want
            continue
        for a, b in zip(want, got, strict=True):
            onp.testing.assert_array_equal(onp.asarray(b), onp.asarray(a))
        onp.testing.assert_array_equal(ours, theirs)
    if use not in ("shape as well", "item of a list"):
        assert compiled.captures <= 4  # NumPy 1 looks at signs


def test_an_optimiser_is_captured_once() -> None:
    def adam(w: Any, g: Any, m: Any, v: Any, t: int, rate: float = 0.1) -> int:
        m[...] = 0.9 * m + 0.1 * g
        v[...] = 0.99 * v + 0.01 * g * g
        w -= rate / (1 - 0.9**t) * m / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        return t + 1

    step = jit(adam)
    ours, theirs = (
        [np.array(X), np.zeros(6, "f4"), np.zeros(6, "f4")],
        [X.copy(), onp.zeros(6, "f4"), onp.zeros(6, "f4")],
    )
    for t in range(1, 8):
        for (w, m, v), make in ((ours, np.array), (theirs, onp.array)):
            assert (step if make is np.array else adam)(w, make(X), m, v, t, rate=0.1 / t) == t + 1
        onp.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
        assert ours[0].dtype == onp.float32
    assert step.cache_info()["captures"] == 1


def test_large_updates_take_the_rate_of_each_call() -> None:
    def step(w: Any, a: Any, b: Any, rate: float) -> None:
        w -= rate * (a.T @ b)

    rng = onp.random.default_rng(0)
    w, a, b = (rng.standard_normal(s).astype("f") for s in ((120, 110), (64, 120), (64, 110)))
    compiled, ours = jit(step), np.array(w)
    for rate in (0.1, 0.01, onp.float32(0.5)):
        compiled(ours, np.array(a), np.array(b), rate)
        step(w, a, b, rate)
        onp.testing.assert_allclose(ours, w, rtol=1e-4, atol=1e-5)
    assert compiled.cache_info()["captures"] == 2  # a Python number, and one of NumPy's


def test_what_is_declared_static_compiles_again() -> None:
    for static in ("k", 1, ("k",), [1]):
        f = jit(lambda x, k=2.0: x * k, static=static)
        for k in (1.0, 2.0, 1.0, -0.0, 0.0):
            onp.testing.assert_array_equal(f(np.array(X), k), X * k)
            onp.testing.assert_array_equal(f(np.array(X), k=k), X * k)
        assert f.cache_info()["captures"] == 8  # given by place, and by name
    with pytest.raises(ValueError, match="arguments are x, k"):
        jit(lambda x, k: x, static="n")


def test_a_key_of_a_dict_is_the_number() -> None:
    f = jit(lambda x, n: {n + 1: x})
    for n in (3, 3, 4, 3):
        (key,) = f(np.array(X), n)
        assert type(key) is int and key == n + 1


def test_a_number_outlives_its_capture_as_a_number() -> None:
    kept: list = []

    @jit
    def f(x: Any, rate: float) -> Any:
        kept.append(rate * 2)
        return x * rate

    f(np.array(X), 0.25)
    assert kept[0] + 1 == 1.5 and -kept[0] == -0.5 and kept[0] > 0 and isinstance(kept[0], float)
    onp.testing.assert_array_equal(np.array(X) * kept[0], X * 0.5)


def test_errors_name_the_types_of_numbers():
    def f(x, n):
        return x + n, n + None

    with pytest.raises(TypeError, match=r"for \+: 'int' and 'NoneType'"):
        jit(f)(np.ones(3), 2)
    assert jit(lambda x, n: (x, n == None))(np.ones(3), 2)[1] is False  # noqa: E711
