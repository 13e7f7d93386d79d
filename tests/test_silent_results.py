"""What MinPy got wrong without a word, one test each, under every policy and on every place installed here."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad

INSTALLED = [name for name in ("mxnet", "torch") if importlib.util.find_spec(name)]
WAYS = [
    "auto",
    "only_numpy",
    *(f"prefer_{name}" for name in INSTALLED),
    *(f"place:{n}" for n in INSTALLED if n == "torch"),
]


@pytest.fixture(params=WAYS, autouse=True)
def way(request: Any) -> Iterator[str]:
    kind, _, name = request.param.partition(":")
    manager: Any = minnp.policy(kind) if not name else minnp.Context("cpu", backend=name)
    with manager if manager is not None else nullcontext():
        yield request.param


def same(ours: Any, theirs: Any) -> None:
    a, b = onp.asarray(ours), onp.asarray(theirs)
    assert a.shape == b.shape and a.dtype == b.dtype
    onp.testing.assert_allclose(a, b, rtol=1e-6)


def test_functions_take_python_numbers_and_lists() -> None:
    same(np.exp(1.0), onp.exp(1.0))
    same(np.sum([1, 2]), onp.sum([1, 2]))
    same(np.add([1, 2], 3.5), onp.add([1, 2], 3.5))
    same(np.concatenate([[1.0], np.ones(2), (3, 4)]), onp.concatenate([[1.0], onp.ones(2), (3, 4)]))


def test_the_truth_of_an_array_is_numpys() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        bool(np.array([1.0, -1.0]) > 0)
    assert not np.array([-1.0]) > 0
    assert np.array(2.0) > 1


def test_gradients_flow_through_joining_functions() -> None:
    x = np.array([1.0, 2.0])
    w = onp.array([[1.0, 2.0], [3.0, 4.0]])
    same(grad(lambda x: (np.stack([x, x * 2]) * w).sum())(x), w[0] + 2 * w[1])
    same(grad(lambda x: (np.concatenate([x, x**2]) * w.ravel()).sum())(x), w[0] + w[1] * 2 * onp.array([1.0, 2.0]))
    same(grad(lambda x: (np.vstack((x, x)) * w).sum() + (np.hstack((x, x)) * w.ravel()).sum())(x), 2 * w.sum(0))


def test_second_derivatives_are_not_zero() -> None:
    same(grad(grad(lambda x: x**3))(np.array(2.0)), onp.array(12.0))
    same(grad(lambda x: (grad(lambda x: (x**3).sum())(x) * x).sum())(np.array([1.0, 2.0])), [9.0, 36.0])


def test_writes_reach_the_tape() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[0] = x[1] * 5
        y[1] += x[0]
        return (y * np.array([2.0, 3.0])).sum()

    same(grad(f)(np.array([1.0, 2.0])), [3.0, 13.0])


def test_a_boolean_mask_selects_the_masked() -> None:
    x = onp.arange(12.0).reshape(3, 4) - 5
    a = np.array(x)
    same(a[a > 0], x[x > 0])
    a[a < 0] = 0
    x[x < 0] = 0
    same(a, x)
    same(grad(lambda a: (a[a > 2] ** 2).sum())(np.array(x)), onp.where(x > 2, 2 * x, 0))


def test_a_write_through_a_view_is_seen_everywhere() -> None:
    x = np.zeros((3, 3))
    x.sum()
    view = x[1:]
    deeper = view.T[0]
    deeper[...] = 7
    view[0, 1] += 2
    want = onp.zeros((3, 3))
    want[1:, 0] = 7
    want[1, 1] = 2
    same(x, want)
    same(x.sum(), want.sum())
    same(np.exp(x * 0) + view[0], onp.ones((3, 3)) + want[1])


def test_integers_and_dtypes_are_numpys() -> None:
    n = np.array([1, 2, 3])
    same(n + 0.5, onp.array([1, 2, 3]) + 0.5)
    same(n / 2, onp.array([1, 2, 3]) / 2)
    same(n * n, onp.array([1, 4, 9]))
    same(np.sum(np.array([True, True])), onp.sum(onp.array([True, True])))
    same(np.ones(2, "f4") + np.ones(2, "i8"), onp.ones(2, "f4") + onp.ones(2, "i8"))
    same(np.mean(np.arange(4)), onp.mean(onp.arange(4)))
    same(np.arange(3, dtype="u2") + np.arange(3, dtype="i2"), onp.arange(3, dtype="u2") + onp.arange(3, dtype="i2"))


def test_seeds_seed(way: str) -> None:
    np.random.seed(7)
    first = onp.asarray(np.random.randn(3))
    np.random.seed(7)
    second = onp.asarray(np.random.randn(3))
    assert onp.array_equal(first, second)
    if not way.startswith("place"):  # a place has its own generator; the host's streams are NumPy's, bit for bit
        onp.random.seed(7)
        assert onp.array_equal(first, onp.random.randn(3))
        assert onp.array_equal(
            onp.asarray(np.random.default_rng(5).normal(size=4)), onp.random.default_rng(5).normal(size=4)
        )


def test_reductions_have_shape_nothing_and_ties_share() -> None:
    assert np.sum(np.ones((2, 2))).shape == ()
    same(grad(lambda x: np.max(x))(np.array([3.0, 1.0, 3.0])), [0.5, 0.0, 0.5])


def test_an_unused_argument_has_zeros_of_its_own() -> None:
    g = grad(lambda x, y: x.sum(), argnum=1)(np.ones(3), np.ones((2, 4), "f4"))
    same(g, onp.zeros((2, 4), "f4"))


def test_updates_after_grad_are_in_place() -> None:
    w = np.ones(3)
    alias, view = w, w[1:]
    w -= 0.5 * grad(lambda w: (w**2).sum())(w)
    same(alias, onp.zeros(3))
    same(view, onp.zeros(2))
