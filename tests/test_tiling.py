"""Stencils under jit: steps that read one another run tile by tile, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import jit
from minnp.core.compiled import team
from minnp.core.llvm import tiles
from minnp.core.llvm.engine import available

pytestmark = [
    pytest.mark.skipif(not available(), reason="llvmlite, which compiles, is not installed"),
    pytest.mark.host("machine code works on the host's arrays"),
]


def padded(u: Any, p: Any) -> Any:
    for _ in range(7):
        u = np.pad(0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - p[1:-1, 1:-1]), 1)
    return u


def in_place(u: Any, p: Any) -> Any:
    for _ in range(6):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def wide(u: Any, p: Any) -> Any:
    for _ in range(4):
        u = np.pad(0.2 * (u[4:, 2:-2] + u[:-4, 2:-2] + u[2:-2, 4:] + u[2:-2, :-4]) * p[2:-2, 2:-2], 2)
    return u * 2


def one_axis(u: Any, p: Any) -> Any:
    u = u.ravel()
    for _ in range(9):
        u = np.pad(0.5 * (u[2:] + u[:-2]) - u[1:-1], 1)
    return u


def three_axes(u: Any, p: Any) -> Any:
    u = u.ravel()[:24048].reshape(167, 12, 12)
    for _ in range(5):
        u = np.pad(u[2:, 1:-1, 1:-1] - 0.5 * u[1:-1, :-2, 2:] + u[1:-1, 2:, :-2], 1)
    return u


def lopsided(u: Any, p: Any) -> Any:
    for _ in range(5):
        u[1:, 2:] = 0.5 * (u[:-1, :-2] + u[1:, 1:-1])
    return u


def edges_of_several_kinds(u: Any, p: Any) -> Any:
    for step in range(8):
        new = (0.5 * u[1:-4, 2:-1] - 0.3 * u[3:-2, :-3]) * p[2:-3, :-3]
        if step in (1, 2, 4):
            u = np.pad(new, ((2, 3), (0, 3)))
        else:
            u[2:-3, :-3] = new
    return u


def growing(u: Any, p: Any) -> Any:
    for dtype in ["f4"] * 4 + ["f8"] * 4:
        u = np.pad((0.5 * (u[2:, 1:-1] + u[:-2, 1:-1])).astype(dtype), 1)
    return u


def unequal_edges(u: Any, p: Any) -> Any:
    for _ in range(4):
        u = np.pad(0.5 * (u[3:, 1:-1] + u[:-3, 1:-1]), ((1, 2), (1, 1)))
    return u


def one_for_all(u: Any, p: Any) -> Any:
    for _ in range(4):
        u = np.pad((u[2:, 1:-1] - u[:-2, 1:-1]) * p[:1, 1:-1] + p[0, 3], 1)
    return u


def read_in_between(u: Any, p: Any) -> Any:
    kept = []
    for _ in range(5):
        u = np.pad(0.25 * (u[2:, 1:-1] + u[:-2, 1:-1]), 1)
        kept.append(u[3])
    return kept[2], u


PROGRAMS = [padded, in_place, wide, one_axis, three_axes, lopsided, unequal_edges, one_for_all, read_in_between]
PROGRAMS += [edges_of_several_kinds, growing]


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_steps_together_have_the_bits_of_whole_steps(f: Callable, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, n in (("CACHE", 1 << 15), ("BLOCK", 1 << 12), ("RATIO", 1)):  # several chains, of several chunks
        monkeypatch.setattr(tiles, name, n)
    made: list = []
    make = tiles.Chain.__init__
    monkeypatch.setattr(tiles.Chain, "__init__", lambda self, *a: (made.append(self), make(self, *a))[1])
    rng = onp.random.default_rng(0)
    u, p = np.array(rng.standard_normal((161, 150)).astype(dtype)), np.array(rng.random((161, 150)).astype(dtype))
    compiled = jit(f)
    for k in range(3):
        if k == 2:  # in another order than the code was made for
            u = np.asfortranarray(u)
        mine, ours = u.copy(order="K") + k, u.copy(order="K") + k
        want, got = f(mine, p), compiled(ours, p)
        for a, b in zip(want, got) if type(want) is tuple else [(want, got)]:
            onp.testing.assert_array_equal(onp.asarray(b), onp.asarray(a))
        onp.testing.assert_array_equal(onp.asarray(ours), onp.asarray(mine))
    assert sum(len(chain.chunks(2)[0]) for chain in made) > 2 or team is None
