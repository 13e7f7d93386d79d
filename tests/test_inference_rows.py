"""The rows trained networks are compiled to: exact integers, backends' kernels beside them, weights prepared once."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, npx
from minnp.core.compiled import team
from minnp.core.cpu import integers as host_integers
from minnp.core.rows.primitive import TABLE

R = onp.random.default_rng(0)
with_torch = pytest.mark.skipif("torch" not in backends.installed(), reason="needs torch")
CONV = {"stride": (2, 1), "pad": (1, 1), "dilate": (1, 1), "groups": 1}


def integers(low: int, high: int, *shape: int) -> onp.ndarray:
    return R.integers(low, high, shape, "u1" if low >= 0 else "i1")


def still(a: onp.ndarray) -> onp.ndarray:
    """The array, which cannot change any more."""
    a.setflags(write=False)
    return a


def exact_linear(q: Any, w: Any, w_scale: Any, scale: float, zero: int) -> onp.ndarray:
    return ((q.astype(object) - zero) @ w.T.astype(object)).astype(float) * w_scale * scale


@pytest.mark.parametrize("inputs", [1, 7, 514, 2000])
def test_integers_are_summed_exactly(inputs: int) -> None:
    q, w = onp.full((3, inputs), 255, "u1"), onp.full((2, inputs), -128, "i1")
    q[1], w[1] = R.integers(0, 256, inputs), R.integers(-127, 128, inputs)
    ones = onp.ones(2, "f4")
    row = TABLE["npx.quantized_linear"]
    got = row.numpy(q, w, ones, scale=1.0, zero_point=0)
    assert got.dtype == onp.float32
    onp.testing.assert_array_equal(got, exact_linear(q, w, 1.0, 1.0, 0).astype("f4"))


def test_quantize_rounds_to_even_and_clips() -> None:
    x = onp.array([-1e9, -0.5, 0.0, 0.05, 0.15, 0.25, 1e9, onp.nan, onp.inf])
    q = TABLE["npx.quantize"].numpy(x, scale=0.1, zero_point=10)
    assert q.tolist() == [0, 5, 10, 10, 12, 12, 255, 0, 255] and q.dtype == onp.uint8
    back = TABLE["npx.dequantize"].numpy(q[1:6], scale=0.1, zero_point=10)
    assert onp.abs(back - x[1:6]).max() <= 0.05 + 1e-6


def test_a_quantised_convolution_pads_with_real_zeros() -> None:
    q, w = integers(0, 256, 2, 3, 6, 5), integers(-127, 128, 4, 3, 3, 3)
    scales, bias = R.uniform(0.01, 0.1, 4).astype("f4"), R.normal(size=4).astype("f4")
    got = TABLE["npx.quantized_conv"].numpy(q, w, scales, bias, scale=0.02, zero_point=77, **CONV)
    x, real = 0.02 * (q.astype(float) - 77), w * scales.astype(float)[:, None, None, None]
    want = npx.convolution(np.array(x), np.array(real), np.array(bias), stride=(2, 1), pad=(1, 1))
    onp.testing.assert_allclose(got, onp.asarray(want), rtol=1e-4, atol=1e-4)


def test_conv_act_is_a_convolution_and_what_follows() -> None:
    x, w, b = (np.array(R.normal(size=s)) for s in ((2, 3, 6, 5), (4, 3, 3, 3), 4))
    y = npx.convolution(x, w, b, stride=(2, 1), pad=(1, 1))
    other = np.array(R.normal(size=y.shape))
    row = TABLE["npx.conv_act"]
    onp.testing.assert_allclose(onp.asarray(row(x, w, b, **CONV)), onp.asarray(y))
    got = row(x, w, b, other, activation="relu", **CONV)
    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(np.maximum(y + other, 0)))
    with pytest.raises(ValueError, match="activation='tanh': choose from '', 'relu'"):
        row(x, w, b, activation="tanh", **CONV)


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (300, 401)])
@pytest.mark.parametrize("zero", [0, 77, 255])
def test_quantize_of_any_shape(shape: tuple, zero: int) -> None:
    x = onp.asarray(R.normal(size=shape) * 3, "f4")
    for array in (x, x.T, x[::-1] if shape else x):
        got = TABLE["npx.quantize"].numpy(array, scale=0.0173, zero_point=zero)
        want = onp.clip(onp.rint(array * onp.float32(1 / 0.0173)) + zero, 0, 255).astype("u1")
        assert onp.shape(got) == array.shape
        onp.testing.assert_array_equal(got, want)


# ------------------------------------------------------------------ torch
def cases() -> list:
    out = []
    for name in ("npx.conv_act", "npx.quantized_conv", "npx.quantized_linear", "npx.quantize", "npx.dequantize"):
        out += [(name, i) for i in range(len(TABLE[name].samples()))]
    return out


@with_torch
@pytest.mark.parametrize(("name", "i"), cases())
@pytest.mark.parametrize("frozen", [False, True])
def test_torchs_kernels_agree_with_numpy(name: str, i: int, frozen: bool) -> None:
    arrays, params = TABLE[name].samples()[i]
    arrays = [onp.array(a, "f4") if a.dtype == float else onp.array(a) for a in arrays]
    if frozen:
        arrays[1:] = map(still, arrays[1:])
    want = TABLE[name].numpy(*arrays, **params)
    kernel = backends.get("torch").kernel(TABLE[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            got = kernel(*arrays, **params)
            assert got.dtype == want.dtype
            onp.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * abs(want).max())


@with_torch
def test_large_quantised_layers_through_torch() -> None:
    q, w = integers(0, 256, 33, 1030), still(integers(-127, 128, 65, 1030))
    scales = still(R.uniform(0.01, 0.1, 65).astype("f4"))
    x = integers(0, 256, 2, 16, 9, 9)
    k = still(integers(-127, 128, 8, 4, 3, 3))
    for name, arrays, more in (
        ("npx.quantized_linear", (q, w, scales), {}),
        ("npx.quantized_conv", (x, k, scales[:8], scales[8:16]), {**CONV, "groups": 4}),
    ):
        params = {"scale": 0.05, "zero_point": 3, "activation": "relu", **more}
        want = TABLE[name].numpy(*arrays, **params)
        got = backends.get("torch").kernel(TABLE[name])(*arrays, **params)
        onp.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * want.max())


@with_torch
def test_prepared_weights_are_forgotten_with_their_arrays() -> None:
    kernel = backends.get("torch").kernel(TABLE["npx.conv_act"])
    kept = host_integers._kept
    gc.collect()
    before = len(kept)
    x, w, b = onp.ones((1, 4, 6, 6), "f4"), still(onp.ones((8, 4, 3, 3), "f4")), still(onp.ones(8, "f4"))
    kernel(x, w, b, **CONV)
    assert len(kept) == before + 2
    del w, b
    gc.collect()
    assert len(kept) == before


@pytest.mark.parametrize("activation", ["", "relu", "selu"])
@pytest.mark.parametrize("shape", [(256, 512, 100), (7, 64, 64), (1, 17000, 33), (33, 1028, 65), (2, 5, 256, 70)])
def test_integer_layers_of_the_c_part_add_exactly(shape: tuple, activation: str) -> None:
    *lead, depth, columns = shape
    q, w = integers(0, 256, *lead, depth), integers(-128, 128, columns, depth)
    scales, bias = R.uniform(0.01, 0.1, columns).astype("f4"), R.normal(size=columns).astype("f4")
    frozen, row = still(w.copy()), TABLE["npx.quantized_linear"].numpy
    for b in ((), (bias,)):
        for requantize in (None, (100.0, 7)):
            params = {"scale": 0.02, "zero_point": 120, "activation": activation, "requantize": requantize}
            want = row(q, w, scales, *b, **params)  # a weight that may change is not packed
            got = row(q, frozen, scales, *b, **params)
            assert got.dtype == want.dtype and onp.array_equal(got, want)


@pytest.mark.either("about the C part")
@pytest.mark.skipif(not getattr(team, "INTEGERS", 0), reason="this processor, or build, has no instructions for it")
def test_the_c_part_takes_a_fixed_weight_and_packs_it_once() -> None:
    q, w, scales = integers(0, 256, 64, 64), still(integers(-127, 128, 64, 64)), onp.ones(64, "f4")
    assert host_integers.linear(q, w, 3, scales, None, False) is not None
    packed = host_integers._kept[id(w)][1]["panels"]
    assert host_integers.linear(q, w, 3, scales, None, True) is not None
    assert host_integers._kept[id(w)][1]["panels"] is packed
    assert host_integers.linear(q, w.copy(), 3, scales, None, False) is None
    assert host_integers.linear(q[:, :62], still(w[:, :62].copy()), 3, scales, None, False) is None
    with pytest.raises(ValueError, match="arrays that do not fit"):
        team.integers(q, packed[0], packed[1][:3], scales, None, onp.empty((64, 64), "f4"), 0, 1)


@with_torch
def test_a_weight_that_can_change_is_read_anew() -> None:
    q, w, scales = integers(0, 256, 4, 16), integers(-127, 128, 8, 16), onp.ones(8, "f4")
    row = TABLE["npx.quantized_linear"]
    kernel = backends.get("torch").kernel(row)
    kernel(q, w, scales, scale=1.0, zero_point=0)
    w[...] = 1
    got = kernel(q, w, scales, scale=1.0, zero_point=0)
    onp.testing.assert_array_equal(got, row.numpy(q, w, scales, scale=1.0, zero_point=0))


@with_torch
def test_they_run_on_torch_by_default_and_on_numpy_when_told() -> None:
    arrays = [np.array(a) for a in (integers(0, 256, 30, 100), integers(-127, 128, 50, 100), onp.ones(50, "f4"))]
    row, params = TABLE["npx.quantized_linear"], {"scale": 0.1, "zero_point": 3}
    minnp.reset_report()
    with minnp.policy("only_numpy"):
        want = row(*arrays, **params)
    onp.testing.assert_allclose(onp.asarray(row(*arrays, **params)), onp.asarray(want), rtol=1e-5)
    assert "torch" in str(minnp.report())
