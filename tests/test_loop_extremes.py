"""Gradients of the greatest and the least elements in compiled loops: what is equal shares them, as eagerly."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, hessian, jit, jvp
from minnp.core.llvm import engine

pytestmark = pytest.mark.skipif(not engine.available(), reason="loops need llvmlite")

VALUES = {
    "two": [[1.0, 0.3], [2.0, 0.9], [0.5, 0.9], [0.2, 0.1]],
    "all": [[1.0, 1.0]] * 4,
    "three and zeros": [[-1.0, 0.0], [2.0, 0.9], [2.0, 0.9], [-0.0, 0.9]],
    "none": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
}


def of_a_column(b: Any) -> Any:
    s = 0.0
    for i in range(12):
        s += b[:, 1].max() * (i + 1)
    return s


def beside_writes(b: Any) -> Any:
    s = 0.0
    for i in range(12):
        m = b[:, 1].min()
        b[0, 0] = b[0, 0] * 1.5
        s += m * b[i % 3, 0]
    return s


def kept_in_an_array(b: Any) -> Any:
    a = np.zeros(4)
    for i in range(12):
        a[i % 4] = b[:, 1].max()
        a[-1] -= (b[:, 1] * a[0]).max() * 0.5
    return a.sum()


def of_rows(b: Any) -> Any:
    s = 0.0
    for i in range(12):
        s += np.sum(np.max(b * b[i % 2, 1], axis=1) ** 2)
    return s


def of_all_elements(b: Any) -> Any:
    s = 0.0
    for i in range(12):
        b[i % 4, i % 2] = np.abs(b).max() * 0.9
        s += b.max() ** 2 + np.amin(b[i % 4])
    return s


def on_a_branch(b: Any) -> Any:
    s = 0.0
    for i in range(12):
        if b.max() > 0.5:
            s += b[i % 4].max() * b.min()
            b *= 1.01
        else:
            break
    return s


def until_one_is_large(b: Any) -> Any:
    s, i = 0.0, 0
    while b[:, 1].max() < 3.0 and i < 20:
        b = b * 1.1
        s += np.maximum(b.max(), b[0].max())
        i += 1
    return s + b.max()


FUNCTIONS = [
    *(of_a_column, beside_writes, kept_in_an_array, of_rows, of_all_elements, on_a_branch, until_one_is_large),
]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_equal_elements_share_the_slope(f: Any, values: list) -> None:
    b, along = onp.array(values), onp.arange(8.0).reshape(4, 2) + 0.5
    wanted, moved = grad(f)(np.array(b)), jvp(f, (np.array(b),), (along,))[1]
    minnp.report(reset=True)
    for derivative in (grad(jit(f)), jit(grad(f))):
        for _ in range(3):
            onp.testing.assert_allclose(derivative(np.array(b)), wanted, rtol=1e-9, atol=1e-12)
    assert not [row for row in minnp.report() if row["backend"] == "python"]
    onp.testing.assert_allclose(jvp(jit(f), (np.array(b),), (along,))[1], moved, rtol=1e-9)
    onp.testing.assert_allclose(hessian(jit(f))(np.array(b)), hessian(f)(np.array(b)), rtol=1e-9, atol=1e-12)


def test_nan_is_the_greatest_and_has_the_slope() -> None:
    b = onp.array(VALUES["none"])
    b[2, 1] = onp.nan
    onp.testing.assert_array_equal(jit(grad(of_a_column))(np.array(b))[:, 1], [0, 0, 78, 0])


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_slopes_are_of_the_numbers_kind(kind: str) -> None:
    b = onp.array(VALUES["two"], kind)
    got = jit(grad(of_a_column))(np.array(b))
    assert got.dtype == kind
    onp.testing.assert_array_equal(got[:, 1], [0, 39, 39, 0])
