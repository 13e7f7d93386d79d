"""Traced arrays lie in memory as NumPy's do: what NumPy makes of them, a view or a copy, is so under every trace."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp


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
