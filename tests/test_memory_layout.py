"""Traced arrays lie in memory as NumPy's do: what NumPy makes of them, a view or a copy, is so under every trace."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp, vmap


def spaced(a: onp.ndarray, order: str) -> Any:
    """The numbers of a, with gaps between them, in C or Fortran order."""
    lying = a if order == "C" else a.T
    room = np.zeros((*lying.shape, 2))
    room[..., 0] = lying
    return room[..., 0] if order == "C" else room[..., 0].T


def marked(a, view):
    part = view(a)
    part[1] = 7.0
    return a.sum() + (part * part).sum()


VIEWS = {
    "ravel K": lambda a: a.ravel(order="K"),
    "reshape F": lambda a: a.reshape(-1, order="F"),
    "reshape A": lambda a: a.reshape(-1, order="A"),
    "reshape": lambda a: a.reshape(2, 6),
    "transposed": lambda a: a.T.reshape(-1),
    "columns": lambda a: a[:, 1:].reshape(-1),
}


def doubled(a):
    a *= 2
    return a


def filled(a):
    a[...] = np.sin(a)
    return a


def swapped(a):
    a[0], a[1] = a[1].copy(), a[0].copy()
    return a


@pytest.mark.parametrize("before", [None, doubled, filled, swapped])
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("order", "CF")
def test_a_view_of_a_spaced_array_is_one_under_a_trace_and_a_copy_is_a_copy(order, name, before):
    def f(a):
        return marked(a if before is None else before(a), VIEWS[name])

    a = onp.linspace(-1, 1, 12).reshape(3, 4)
    want = float(f(spaced(a, order)))
    compiled = jit(f)
    for _ in range(2):
        assert float(compiled(spaced(a, order))) == pytest.approx(want, rel=1e-14)
    direction = onp.cos(onp.arange(12.0)).reshape(3, 4)
    at = lambda t: float(f(spaced(a + t * direction, order)))
    slope = (at(1e-6) - at(-1e-6)) / 2e-6
    g = onp.asarray(grad(f)(spaced(a, order)))
    assert (g * direction).sum() == pytest.approx(slope, rel=1e-7, abs=1e-7)
    value, tangent = jvp(f, (spaced(a, order),), (np.array(direction),))
    assert float(value) == pytest.approx(want, rel=1e-14)
    assert float(tangent) == pytest.approx(slope, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("order", "CF")
def test_windows_of_a_spaced_array_see_what_is_written_later(order):
    def f(a):
        windows = np.lib.stride_tricks.sliding_window_view(a, (2, 3))
        a[1, 1] = 5.0
        return (windows * windows).sum()

    a = onp.linspace(-1, 1, 12).reshape(3, 4)
    want = float(f(spaced(a, order)))
    compiled = jit(f)
    assert [float(compiled(spaced(a, order))) for _ in range(2)] == pytest.approx([want, want], rel=1e-14)
    g = onp.asarray(grad(f)(spaced(a, order)))
    times = onp.outer([1, 2, 1], [1, 2, 2, 1]) * 2 * a
    times[1, 1] = 0
    onp.testing.assert_allclose(g, times, rtol=1e-14)


@pytest.mark.parametrize("compiler", ["auto", "numpy"])
def test_compiled_gradients_write_through_views_of_fortran_order(compiler):
    def f(a, b):
        a = a * b
        flat = a.ravel(order="K")
        flat[0] = 5.0
        return (a * np.arange(1.0, 13.0).reshape(3, 4)).sum()

    derivative = jit(grad(f, argnums=(0, 1)), compiler=compiler)
    for seed in (1, 2, 1):
        draw = onp.random.default_rng(seed)
        a, b = (np.array(onp.asfortranarray(draw.normal(size=(3, 4))), order="K") for _ in range(2))
        for got, want in zip(derivative(a, b), grad(f, argnums=(0, 1))(a, b), strict=True):
            onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), rtol=1e-14)
            assert onp.asarray(got)[0, 0] == 0


NUMBERS = {
    "sum": lambda np, x: x.sum(),
    "element": lambda np, x: x[0],
    "median": lambda np, x: np.median(x),
    "percentile": lambda np, x: np.percentile(x, 30),
    "mean": lambda np, x: np.mean(x, where=x > 0.6),
    "nanmean": lambda np, x: np.nanmean(x),
    "nanvar": lambda np, x: np.nanvar(x),
    "nanmax": lambda np, x: np.nanmax(x),
    "nanmedian": lambda np, x: np.nanmedian(x),
    "norm": lambda np, x: np.linalg.norm(x, 3),
    "norm of a matrix": lambda np, x: np.linalg.norm(np.outer(x, x), 1),
    "inner": lambda np, x: np.inner(x, x),
    "copy": lambda np, x: x[1].copy(),
    "astype": lambda np, x: x[1].astype("f4"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_a_number_for_numpy_is_no_memory_that_two_names_share(name):
    def f(np, x):
        number = kept = NUMBERS[name](np, x)
        number += 1
        return number + 2 * kept

    x = onp.array([0.5, 1.25, 0.75])
    want = f(onp, x)
    seen = [f(np, np.array(x)), jit(lambda x: f(np, x))(np.array(x)), vmap(lambda x: f(np, x))(np.array(x)[None])[0]]
    value, tangent = jvp(lambda x: f(np, x), (np.array(x),), (np.ones(3),))
    assert [float(v) for v in [*seen, value]] == pytest.approx([float(want)] * 4, rel=1e-6)
    g = onp.asarray(grad(lambda x: f(np, x) * 1.0)(np.array(x)))
    want = onp.asarray(grad(lambda x: 3 * NUMBERS[name](np, x))(np.array(x)))
    onp.testing.assert_allclose(g, want, rtol=1e-6)
    assert float(tangent) == pytest.approx(want.sum(), rel=1e-6)


def test_examples_without_axes_are_numbers_also_where_they_run_one_by_one():
    def f(i, asks):
        if asks and i < 0:
            return np.zeros((3, 2))
        rows = np.zeros((3, 2))
        row = rows[i]  # of a number, a view; of an array, a copy
        rows[:, 0] = 9.0
        row += 1
        return rows

    for asks in (False, True):
        got = onp.asarray(vmap(lambda i, asks=asks: f(i, asks))(np.array([2, 0])))
        onp.testing.assert_array_equal(got, [[[9, 0], [9, 0], [10, 1]], [[10, 1], [9, 0], [9, 0]]])


def test_nditer_goes_through_memory_in_each_call():
    def taken(a):
        places = [it.multi_index for it in [np.nditer(a, flags=["multi_index"])] for _ in it]
        return np.array([v.copy() for v in np.nditer(a)]), places, np.nditer(a).shape

    f, a = jit(taken), onp.arange(24.0).reshape(4, 6)
    for x in (a[::-1, :3], a[:, :3], a[:, ::2], a.T[:4, :3], a[::-1, :3]):
        for got, want in zip(f(np.asarray(x)), taken(x), strict=True):
            onp.testing.assert_array_equal(got, want)
