"""Gradients of programs that read and write parts in loops: right, and a part costs what it costs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad
from minnp.core.rows.primitive import TABLE
from tests.derivatives import slope

N = 5


def diagonal(a: Any, xp: Any) -> Any:
    total = 0.0
    for i in range(N):
        total += xp.tanh(a[i, i])
    return (a * total).sum() + total


def rows_and_numbers(a: Any, xp: Any) -> Any:
    total = 0.0
    for row in a:
        total = total + row[0] * row[1] + xp.sin(row).sum() + row[-1]
    return total


def taken(a: Any, xp: Any) -> Any:
    total = 0.0
    for i in range(-3, N):
        total += xp.take(a.T, i) ** 2 * xp.take(a, [i, i], axis=0).sum() + xp.take(a, i + 30, mode="wrap")
    return total


def solved(a: Any, xp: Any) -> Any:
    x = xp.zeros(N)
    for i in range(N):
        x[i] = (1.0 - a[i, :i] @ x[:i]) / (a[i, i] + 2)
    return (x * x).sum()


def recurrence(a: Any, xp: Any) -> Any:
    x, b = xp.zeros(4 * N), a.reshape(-1)
    for t in range(1, 4 * N):
        x[t] = xp.tanh(0.5 * x[t - 1] + b[t])
    return (x[::2] * x[1::2]).sum()


def added_up(a: Any, xp: Any) -> Any:
    acc = xp.zeros(3)
    for i in range(N):
        acc += a[i, :3] * a[i, i]
    return (acc * acc).sum()


def seen_through_views(a: Any, xp: Any) -> Any:
    total = 0.0
    for i in range(N):
        total += xp.tanh(a.T[i, 0]) * a.ravel()[i] * a[:, None][i][0, 1] * xp.diagonal(a)[i]
    return total


def views_of_views(a: Any, xp: Any) -> Any:
    total, r = 0.0, xp.flip(a, 0)
    for i in range(N - 1):
        total += xp.swapaxes(a, 0, 1)[1:][i][::2].sum() ** 2 * r[:, 1:][i, 0] + xp.squeeze(a[None])[i].T[::-1][0]
        total += a.reshape(-1)[2:][i] * r[i, i] + xp.take(a.T[1:], i) * a[[0, 2, 0]].T[i, 1]
    return total


def written_through_views(a: Any, xp: Any) -> Any:
    x, total = xp.zeros((N, N)), 0.0
    for i in range(1, N):
        x.T[i] = a[i] * x[i - 1] + a.T[i]
        x[i, 1:][::2] = x.ravel()[i] * 0.5
        x[i, 0] = 2.0
        total += x.T[i, i] * x[0, i]
    return total + (x * x).sum()


def written_and_read_again(a: Any, xp: Any) -> Any:
    x, y = xp.zeros(N), a[0] * 2
    for i in range(1, N):
        x[i] = a[i, i] + x[i - 1] ** 2
        y[i], x[0] = x[i] * y[i - 1], y[i]
        x[i] *= 0.5
        y[:i] += x[i]
        y[-i - 1 : None : 1] = y[i]
    return (x * y).sum()


def complex_parts(a: Any, xp: Any) -> Any:
    z, total = a * (1 + 2j), 0.0
    for i in range(N):
        total += (z[i, 0] * z[0, i]).imag
    return total


PROGRAMS = [diagonal, rows_and_numbers, taken, solved, recurrence, added_up, seen_through_views, complex_parts]
PROGRAMS += [views_of_views, written_through_views, written_and_read_again]
A = onp.random.default_rng(0).uniform(-1, 1, (N, N))


def differences(f: Callable, x: onp.ndarray) -> onp.ndarray:
    """The gradient of f, a function to numbers, by central differences."""
    units = onp.eye(x.size).reshape(x.size, *x.shape)
    return onp.reshape([slope(f, [x], [unit])[0] for unit in units], x.shape)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_are_central_differences_to_order_two(program: Callable) -> None:
    f = lambda a: program(a, np)
    assert onp.allclose(f(np.array(A)), program(A.copy(), onp))
    first = onp.asarray(grad(f)(np.array(A)))
    onp.testing.assert_allclose(first, differences(lambda a: program(a, onp), A), rtol=1e-6, atol=1e-8)
    weights = onp.cos(onp.arange(A.size)).reshape(A.shape)
    along = lambda a: (grad(f)(a) * weights).sum()
    second = onp.asarray(grad(along)(np.array(A)))
    onp.testing.assert_allclose(second, differences(lambda a: float(along(np.array(a))), A), rtol=1e-5, atol=1e-7)


@pytest.mark.host("counts what NumPy runs")
@pytest.mark.parametrize(
    "program",
    [diagonal, rows_and_numbers, solved, recurrence, added_up, seen_through_views, written_and_read_again],
    ids=lambda p: p.__name__,
)
def test_the_walk_backwards_makes_no_whole_array_for_a_part(program: Callable) -> None:
    rows = [TABLE[name] for name in ("index_add", "take_add")]
    before = [row.calls for row in rows]
    grad(lambda a: program(a, np))(np.array(A))
    assert [row.calls for row in rows] == before


@pytest.mark.host("counts what NumPy runs")
@pytest.mark.parametrize("program", [diagonal, recurrence, seen_through_views], ids=lambda p: p.__name__)
def test_second_derivatives_make_no_whole_array_for_a_part(program: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [TABLE[name] for name in ("index_add", "take_add")]

    def calls(n: int) -> int:
        monkeypatch.setitem(globals(), "N", n)
        before = [row.calls for row in rows]
        f = lambda a: program(a, np)
        grad(lambda a: (grad(f)(a) ** 2).sum())(np.array(onp.resize(A, (10, 10))))
        return sum(row.calls for row in rows) - sum(before)

    assert calls(9) == calls(5)


@pytest.mark.parametrize("f", [np.cross, np.outer])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_vectors_are_numpys_under_a_gradient(f, dtype):
    a, b = onp.random.default_rng(0).uniform(-1, 1, (2, 3)).astype(dtype)
    seen = []

    def value(a, b):
        y = f(a, b)
        seen.append(np.stop_gradient(y))
        return (y * y).sum() + y.ravel()[1]

    gradient = grad(value)(np.array(a), np.array(b))
    onp.testing.assert_array_equal(onp.asarray(seen[0]), getattr(onp, f.__name__)(a, b), strict=True)
    whole = grad(lambda a: value(a[None], np.array(b)[None]))(np.array(a))  # NumPy's own code, for rows
    onp.testing.assert_allclose(gradient, whole, rtol=1e-6 if dtype == "f8" else 1e-4)
