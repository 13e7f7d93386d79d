"""Convolutions of float32 images that threads share in C (core/cpu/convolutions.py) are those of NumPy in doubles."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import npx
from minnp.core import compiled
from minnp.core.cpu import convolutions as shared
from minnp.core.cpu import products
from minnp.npx.convolutions import conv, conv_grads, conv_transpose, conv_weight_grad

pytestmark = [
    pytest.mark.either("about the C part"),
    pytest.mark.skipif(
        compiled.team is None or products.best() is None, reason="minnp was installed without a C compiler"
    ),
]
# data, weight, stride, pad, dilate
CASES = [
    ((6, 3, 9, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((9, 1, 8, 8), (32, 1, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((7, 4, 11, 10), (6, 4, 3, 2), (2, 1), (1, 2), (1, 2)),
    ((5, 5, 12, 12), (7, 5, 5, 3), (2, 3), (0, 1), (2, 1)),
    ((3, 8, 16, 16), (9, 8, 1, 1), (1, 1), (0, 0), (1, 1)),
]


def drawn(*shapes: tuple) -> list:
    rng = onp.random.default_rng(0)
    return [rng.standard_normal(s).astype("f4") for s in shapes]


def results(x: Any, w: Any, g: Any, params: dict) -> list:
    """What the four rows make of these arrays."""
    sizes, kernel = {"size": x.shape[2:]}, {"kernel": w.shape[2:]}
    grads = conv_grads.numpy(g, x, w, **params)
    others = conv_transpose.numpy(g, w, **params, **sizes), conv_weight_grad.numpy(x, g, **params, **kernel)
    return [conv.numpy(x, w, **params), *grads, *others]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_row_is_numpys_on_any_number_of_threads(case: tuple, library: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(shared, "LEAST", 0)
    monkeypatch.setattr(shared, "SHARED", 0)
    params = {"stride": case[2], "pad": case[3], "dilate": case[4], "groups": 1}
    x, w = drawn(*case[:2])
    exact = [a.astype("f8") for a in (x, w)]
    (g,) = drawn(conv.numpy(*exact, **params).shape)
    assert shared.takes(w.shape, 1, x, g)
    wanted, before, found = results(*exact, g.astype("f8"), params), minnp.set_num_threads(1), []
    try:
        for threads in (1, 2, 5):
            minnp.set_num_threads(threads)
            found.append(results(x, w, g, params))
        monkeypatch.setattr(shared, "CACHED", 1)  # one image at a time
        found.append(results(x, w, g, params))
    finally:
        minnp.set_num_threads(before)
    assert all(a.tobytes() == b.tobytes() for other in found[1:3] for a, b in zip(found[0], other, strict=True))
    for some in (found[0], found[-1]):
        for a, b in zip(some, wanted, strict=True):
            assert a.dtype == onp.float32
            onp.testing.assert_allclose(a, b, rtol=1e-4, atol=3e-6 * float(abs(b).max()))


def test_gradients_of_a_layer_are_its_differences() -> None:
    x, w, b, g = drawn((8, 3, 8, 8), (5, 3, 3, 3), (5,), (8, 5, 8, 8))
    f = lambda x, w, b: np.sum(g * npx.convolution(x, w, b, pad=1))
    f64 = lambda *a: float(f(*[v.astype("f8") for v in a]))
    for i, grad in enumerate(minnp.grad(f, (0, 1, 2))(x, w, b)):
        arrays, (way,) = [x, w, b], drawn((x, w, b)[i].shape)
        ends = [f64(*[a + h * way.astype("f8") if j == i else a for j, a in enumerate(arrays)]) for h in (1e-3, -1e-3)]
        onp.testing.assert_allclose(float(np.sum(grad * way)), (ends[0] - ends[1]) / 2e-3, rtol=1e-4)


def test_an_overflow_is_numpys_to_tell() -> None:
    x, w = drawn((8, 3, 8, 8), (5, 3, 3, 3))
    with pytest.warns(RuntimeWarning, match="overflow|invalid"):
        y = conv.numpy(x * onp.float32(1e38), w * 100, stride=(1, 1), pad=(1, 1), dilate=(1, 1))
    assert not onp.isfinite(y).all()


def test_other_dtypes_groups_and_layouts_are_left_alone() -> None:
    x, w = drawn((8, 4, 8, 8), (6, 4, 3, 3))
    assert shared.takes(w.shape, 1, x)
    assert not shared.takes(w.shape, 2, x)
    assert not shared.takes(w.shape, 1, x.astype("f8"))
    assert not shared.takes(w.shape, 1, x[:, ::2])
    assert not shared.takes(w.shape[:3], 1, x[..., 0].copy())
    params = {"stride": (1, 1), "pad": (1, 1), "dilate": (1, 1)}
    assert conv.numpy(x, w.astype("f8"), **params).dtype == onp.float64
