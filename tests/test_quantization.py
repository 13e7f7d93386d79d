"""Networks in 8-bit integers: what is converted, and how far the results are from float32."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, fx, nn, npx
from minnp.core.cpu import kernels
from minnp.core.graph.node import target_name
from minnp.core.passes import quantization
from minnp.npx import quantized as integers

R = onp.random.default_rng(0)
BATCHES = [R.normal(size=(32, 20)).astype("f4") for _ in range(4)]
IMAGES = [R.normal(size=(4, 3, 8, 8)).astype("f4") for _ in range(4)]


def selu(x: Any) -> Any:
    return npx.leaky_relu(x, act_type="selu")


def dense() -> Any:
    layers = [nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 48), selu, nn.Linear(48, 10, bias=False)]
    return nn.Sequential(*layers).init(0)


def convnet() -> Any:
    layers = [nn.Conv2D(3, 16, 3, pad="same"), nn.BatchNorm(16), nn.ReLU(), nn.Conv2D(16, 8, 3, groups=2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8 * 36, 10)).init(0)


def captured(model: Any, x: Any, fold: bool = False) -> fx.GraphModule:
    gm = fx.capture(lambda x: model(x, mode="test"), x)
    return fx.GraphModule(gm, fx.fold_convolutions(gm.graph.copy())) if fold else gm


def quantized(gm: fx.GraphModule, batches: Any, **options: Any) -> fx.GraphModule:
    return fx.GraphModule(gm, fx.quantize(gm.graph.copy(), batches, **options))


def calls(gm: fx.GraphModule) -> list[str]:
    return [target_name(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def error(got: Any, want: Any) -> float:
    """The root mean square of the difference, of that of what is wanted."""
    got, want = onp.asarray(got), onp.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    return float(onp.sqrt(onp.mean((got - want) ** 2) / onp.mean(want**2)))


@pytest.mark.parametrize("policy", ["auto", "only_numpy"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_dense_network_in_integers(per_channel: bool, policy: str) -> None:
    model = dense()
    gm = captured(model, BATCHES[0])
    small = quantized(gm, BATCHES, per_channel=per_channel)
    assert calls(small) == ["npx.quantize", *["npx.quantized_linear"] * 3]  # the first two give integers
    assert [n.kwargs["activation"] for n in small.graph.nodes if "activation" in n.kwargs] == ["relu", "selu", ""]
    with minnp.policy(policy):
        assert 1e-4 < error(small(BATCHES[0]), model(BATCHES[0], mode="test")) < 0.02
    weights = [n.meta["constant"].dtype for n in small.graph.find_nodes(op="get_attr")]
    assert weights.count("int8") == 3


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_convolutional_network_in_integers(per_channel: bool, fold: bool) -> None:
    model = convnet()
    gm = captured(model, IMAGES[0], fold)
    small = quantized(gm, IMAGES, per_channel=per_channel)
    assert calls(small).count("npx.quantized_conv") == 2 and calls(small).count("npx.quantized_linear") == 1
    assert ("multiply" in calls(small)) == (not fold)
    assert 1e-4 < error(small(IMAGES[1]), model(IMAGES[1], mode="test")) < 0.03


def test_a_scale_for_each_channel_is_worth_it_where_channels_differ() -> None:
    w = R.normal(size=(20, 8)).astype("f4") * onp.logspace(-2, 1, 8, dtype="f4")
    matrix = np.array(w)
    model = lambda x: x @ matrix
    gm = fx.capture(model, BATCHES[0])
    channels = lambda y: onp.asarray(y) / onp.logspace(-2, 1, 8)
    errors = [
        error(channels(quantized(gm, BATCHES, per_channel=each)(BATCHES[0])), channels(model(np.array(BATCHES[0]))))
        for each in (True, False)
    ]
    assert errors[0] < 0.01 < 0.1 < errors[1]


def test_one_value_is_quantised_once_for_all_that_read_it() -> None:
    u, v = (np.array(R.normal(size=(20, 8)).astype("f4")) for _ in range(2))
    small = quantized(fx.capture(lambda x: np.tanh(x @ u) * (x @ v + 1.0), BATCHES[0]), BATCHES)
    assert calls(small).count("npx.quantize") == 1 and calls(small).count("npx.quantized_linear") == 2


def test_residual_sums_stay_in_floating_point() -> None:
    w = np.array(R.normal(size=(3, 3, 3, 3)).astype("f4"))
    f = lambda x: npx.relu(npx.convolution(x, w, pad=1) + x)
    gm = fx.capture(f, IMAGES[0])
    folded = fx.GraphModule(gm, fx.fold_convolutions(gm.graph.copy()))
    assert calls(folded) == ["npx.conv_act"]
    small = quantized(folded, IMAGES)
    assert calls(small) == ["npx.quantize", "npx.quantized_conv", "add", "npx.relu"]
    assert error(small(IMAGES[0]), f(np.array(IMAGES[0]))) < 0.02


def test_the_three_steps_and_observers_by_calling_the_module() -> None:
    gm = captured(dense(), BATCHES[0])
    observed = fx.GraphModule(gm, fx.observe(gm.graph.copy(), partial(fx.Observer, percentile=99.9)))
    with pytest.raises(ValueError, match="nothing has been observed before matmul: run calibrate"):
        fx.convert(observed.graph.copy())
    for batch in BATCHES:
        observed(batch)
    seen = [n.args[1] for n in observed.graph.nodes if target_name(n.target) == "record"]
    assert [o.seen for o in seen] == [4, 4, 4] and seen[0].high < max(b.max() for b in BATCHES)
    assert "observer of 4 arrays" in repr(seen[0])
    small = fx.GraphModule(gm, fx.convert(observed.graph.copy()))
    assert error(small(BATCHES[0]), gm(BATCHES[0])) < 0.05


def test_only_some_layers() -> None:
    gm = captured(dense(), BATCHES[0])
    small = quantized(gm, BATCHES, only=lambda n: n.meta["value"].shape[-1] == 64)
    assert calls(small).count("npx.quantized_linear") == 1 and calls(small).count("matmul") == 2


def test_the_range_covers_zero_and_its_ends() -> None:
    observer = fx.Observer()
    observer.show(onp.array([2.0, 6.0]))
    assert observer.affine() == (6 / 255, 0)
    observer.show(onp.array([-2.0, 1.0]))
    scale, zero = observer.affine()
    assert (scale, zero) == (8 / 255, 64)
    assert fx.Observer().affine() == (1.0, 0)
    with pytest.raises(ValueError, match="percentile=40"):
        fx.Observer(40)


def test_layers_that_follow_one_another_stay_in_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(
        nn.Conv2D(3, 16, 3, pad="same"), nn.ReLU(), nn.Conv2D(16, 16, 3), nn.ReLU(), nn.Conv2D(16, 8, 3), nn.Flatten(),
        nn.Linear(8 * 16, 10),
    ).init(0)  # fmt: skip
    gm = captured(model, IMAGES[0])
    small = quantized(gm, IMAGES)
    layers = [*["npx.quantized_conv"] * 3, "reshape", "npx.quantized_linear"]
    assert calls(small) == ["npx.quantize", *layers]
    kinds = [n.meta["value"].dtype for n in small.graph.nodes if n.op == "call_function"]
    assert kinds == ["uint8"] * 5 + ["float32"]
    with monkeypatch.context() as m:
        m.setattr(quantization, "stay", lambda graph, node: None)
        apart = quantized(gm, IMAGES)
    assert calls(apart).count("npx.quantize") == 4
    with minnp.policy("only_numpy"):
        want = onp.asarray(apart(IMAGES[1]))
        assert (onp.asarray(small(IMAGES[1])) == want).all()
    assert error(small(IMAGES[1]), model(IMAGES[1], mode="test")) < 0.03
    if "torch" in backends.installed():
        for policy in ("auto", "prefer_torch"):
            with minnp.policy(policy):
                assert error(small(IMAGES[1]), want) < 5e-3  # what lies between two integers may go to either
                assert error(minnp.jit(small)(np.array(IMAGES[1])), want) < 5e-3
        x = np.array(IMAGES[1]).to_device(minnp.Context("cpu", 0, "torch"))
        assert error(small(x), want) < 5e-3


@pytest.mark.skipif("torch" not in backends.installed(), reason="needs torch")
@pytest.mark.parametrize("engines", ["torch's", "none"])
def test_numpys_integers_and_torchs_give_the_same(engines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from minnp.backends.torch import packed

    gm = captured(convnet(), IMAGES[0], fold=True)
    small = quantized(gm, IMAGES)
    with minnp.policy("only_numpy"):
        want = onp.asarray(small(IMAGES[0]))
    if engines == "none":  # as torch is built without oneDNN: the names are there and raise
        monkeypatch.setattr(packed, "sums_exactly", packed.sums_exactly.__wrapped__)
        monkeypatch.setattr(torch._C, "_supported_qengines", list)
        monkeypatch.setattr(torch.ops.onednn, "qlinear_prepack", None)
        monkeypatch.setattr(torch.ops.onednn, "qconv_prepack", None)
    x = np.array(IMAGES[0])
    with minnp.policy("prefer_torch"):
        for _ in range(2):
            assert error(small(x), want) < 2e-3  # a value between two integers may go to either
    assert error(small(x.to_device(minnp.Context("cpu", 0, "torch"))), want) < 2e-3


def test_kernels_of_the_c_part_quantize_as_numpy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = onp.random.default_rng(0)
    x = (rng.standard_normal(4096) * rng.choice([1e-6, 0.1, 5, 60], 4096)).astype("f4")
    x[:6] = [onp.nan, onp.inf, -onp.inf, 1e30, -1e30, 0.5]
    cases = [(dtype, scale, zero) for dtype in ("uint8", "int8") for scale, zero in ((0.03, 3), (0.1, 100), (1.0, -5))]
    found = [integers._quantize(x, scale, zero, dtype) for dtype, scale, zero in cases], integers.selu(x)
    monkeypatch.setattr(kernels, "takes", lambda *arrays: False)
    for q, (dtype, scale, zero) in zip(found[0], cases, strict=True):
        want = integers._quantize(x, scale, zero, dtype)
        assert q.dtype == want.dtype
        onp.testing.assert_array_equal(q, want)
    onp.testing.assert_allclose(found[1], integers.selu(x), rtol=4e-7)


@pytest.mark.parametrize("run", [lambda m: fx.quantize(m, BATCHES), fx.observe, fx.fold_convolutions])
def test_a_graph_of_calls_as_they_were_written_is_refused(run: Any) -> None:
    weight = np.array(R.normal(size=(20, 5)).astype("f4"))
    with pytest.raises(ValueError, match=r"reads rows, and matmul and the others.*minnp\.fx\.capture"):
        run(fx.symbolic_trace(lambda x: np.maximum(x @ weight, 0)))
