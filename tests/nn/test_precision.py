"""Mixed precision and quantisation-aware training: what they learn, what overflows, and the integers that come out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import fx, grad, nn, npx

R = onp.random.RandomState(0)
X = R.randn(256, 20).astype("f4")
Y = X[:, :4].argmax(1)
IMAGES = R.randn(64, 3, 6, 6).astype("f4")
KINDS = R.randint(0, 4, 64)


def dense(norm: bool = False) -> Any:
    norms = [nn.BatchNorm(32)] if norm else []
    return nn.Sequential(nn.Linear(20, 32), *norms, nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))


def convnet() -> Any:
    inner = nn.Residual(nn.Conv2D(8, 8, 3, padding=1))
    layers = [nn.Conv2D(3, 8, 3, padding=1), nn.ReLU(), inner, nn.Flatten(), nn.Linear(8 * 36, 4)]
    return nn.Sequential(*layers)


def trained(model: Any, x: Any = X, y: Any = Y, **options: Any) -> list[float]:
    return model.fit(x, y, epochs=8, learning_rate=0.01, verbose=False, seed=1, **options)["loss"]


# ------------------------------------------------------------------ mixed precision
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("norm", [False, True])
def test_the_loss_falls_in_float16_as_in_float32(norm: bool, jit: bool) -> None:
    full, mixed = dense(norm), dense(norm)
    want, got = trained(full), trained(mixed, precision="float16", jit=jit)
    onp.testing.assert_allclose(got, want, rtol=0.1, atol=0.02)
    assert got[-1] < want[0] / 5
    assert all(w.dtype == onp.float32 for w in (*mixed.tree().values(), *mixed.aux_tree().values()))


def test_forward_and_backward_are_in_float16_and_weights_and_loss_in_float32() -> None:
    seen = []

    class Watched(nn.Sequential):
        def forward(self, x: Any, mode: str | None = None) -> Any:
            y = super().forward(x, mode)
            seen.append((x.dtype, self.steps[0].params["w"].dtype, y.dtype))
            return y

        def loss(self, predict: Any, y: Any) -> Any:
            seen.append(predict.dtype)
            return super().loss(predict, y)

    Watched(nn.Linear(20, 4)).fit(X[:32], Y[:32], epochs=1, precision="float16", verbose=False, train_acc_num_samples=0)
    assert seen == [(onp.float16,) * 3, onp.float32]


def test_an_overflow_halves_the_scale_and_leaves_the_step_out() -> None:
    model = dense().init(0)
    before = copy.deepcopy(model.tree())
    data = nn.io.NDArrayIter(X[:64], Y[:64], 32)
    scale = nn.LossScale(2.0**40)
    solver = nn.Solver(model, data, precision="float16", loss_scale=scale, num_epochs=1, verbose=False)
    solver.train()
    assert solver.step == 2 and scale.value == 2.0**38
    assert all(onp.array_equal(before[k], v) for k, v in model.tree().items())
    assert len(solver.loss_history) == 2 and onp.isfinite(solver.loss_history).all()
    scale.value = 2.0**10
    solver.num_epochs = 2
    solver.train()
    assert scale.value == 2.0**10 and scale.good == 2
    assert all((onp.asarray(before[k]) != onp.asarray(v)).any() for k, v in model.tree().items())


def test_the_scale_grows_after_steps_that_do_not_overflow() -> None:
    scale = nn.LossScale(8.0, interval=3)
    fine, bad = {"w": np.ones(2)}, {"w": np.array([1.0, float("nan")])}
    assert [scale.update(g) for g in (fine, fine, bad, fine, fine, fine)] == [True, True, False, True, True, True]
    assert scale.value == 8.0 and scale.good == 0
    assert not scale.update([np.array([float("inf")])]) and scale.value == 4.0
    scale = nn.LossScale(16.0, growth=4.0, backoff=0.25, interval=1)
    assert scale.update(fine) and scale.value == 64.0 and not scale.update(bad) and scale.value == 16.0


def test_gradients_that_no_scale_helps_raise() -> None:
    scale = nn.LossScale(1.0)
    with pytest.raises(FloatingPointError, match="infinite or NaN in float16 with a loss scale of 1"):
        scale.update(np.array([float("nan")]))
    with pytest.raises(FloatingPointError, match="the loss is nan"):
        trained(dense(), onp.where(X > 2, onp.float32("nan"), X), precision="float16")
    with pytest.raises(FloatingPointError, match=r"the loss is (nan|inf)"):
        trained(dense(), X * onp.float32(1e6), precision="float16")


def test_the_functional_form_gives_gradients_in_float32_that_float16_alone_loses() -> None:
    def loss(tree: dict, x: Any) -> Any:
        return np.mean((x @ tree["w"]).astype(np.float32) ** 2) * np.float32(1e-6)

    tree = {"w": np.array(R.randn(20, 4).astype("f4")), "n": 3}
    want = grad(lambda w: loss({"w": w}, np.array(X)))(tree["w"])
    scale = nn.LossScale(2.0**15)
    compute = nn.precision.value_and_grad(lambda w, x: loss({"w": w}, x), scale)
    value, got = compute(tree["w"], np.array(X))
    assert got.dtype == onp.float32 and value.dtype == onp.float32 and scale.update(got)
    onp.testing.assert_allclose(got, want, rtol=0.05, atol=1e-9)
    _, lost = nn.precision.value_and_grad(lambda w, x: loss({"w": w}, x), nn.LossScale(1.0))(tree["w"], np.array(X))
    assert abs(onp.asarray(lost) - onp.asarray(want)).max() > 10 * abs(onp.asarray(got) - onp.asarray(want)).max()


def test_a_training_in_float16_resumes_with_its_scale(tmp_path: Any) -> None:
    path = str(tmp_path / "c")
    scale = nn.LossScale(2.0**30)
    options = {"precision": "float16", "checkpoint": path, "verbose": False, "seed": 0, "learning_rate": 0.01}
    dense().fit(X, Y, epochs=2, loss_scale=scale, **options)
    assert scale.value < 2.0**30
    again = nn.LossScale(2.0**5)
    dense().fit(X, Y, epochs=2, loss_scale=again, resume=True, **options)
    assert (again.value, again.good) == (scale.value, scale.good)


def test_what_is_no_precision_raises() -> None:
    with pytest.raises(ValueError, match="NumPy has no bfloat16"):
        trained(dense(), precision="bfloat16")
    with pytest.raises(ValueError, match="precision"):
        trained(dense(), precision="float8")
    with pytest.raises(ValueError, match=r"loss_scale=8\.0 is for precision='float16'"):
        trained(dense(), loss_scale=8.0)
    with pytest.raises(ValueError, match="backoff less than 1"):
        nn.LossScale(backoff=2.0)


# ------------------------------------------------------------------ quantisation-aware training
def test_rounding_passes_gradients_straight_through_in_its_range() -> None:
    x = np.array([-1.0, 0.0, 0.26, 0.74, 2.55, 3.0], dtype=np.float32)
    y = npx.fake_quantize(x, 0.01)
    onp.testing.assert_allclose(y, [0, 0, 0.26, 0.74, 2.55, 2.55], rtol=1e-6)
    assert y.dtype == onp.float32
    got = grad(lambda x: np.sum(npx.fake_quantize(x, 0.01) * np.arange(6)))(x)
    assert got.tolist() == [0, 1, 2, 3, 4, 0]
    q = onp.rint(onp.asarray(x) / onp.float32(0.01))
    assert onp.array_equal(onp.rint(onp.asarray(y) / onp.float32(0.01)), onp.clip(q, 0, 255))
    each = npx.fake_quantize(np.ones((2, 3)), np.array([[1.0], [0.4]]), 0, -127, 127)
    onp.testing.assert_allclose(each, [[1] * 3, [0.8] * 3], rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("make", [dense, convnet])
def test_a_quantisation_aware_net_learns_as_in_float32(make: Any, jit: bool) -> None:
    x, y = (X, Y) if make is dense else (IMAGES, KINDS)
    want, got = trained(make(), x, y), trained(nn.quantization_aware(make()), x, y, jit=jit)
    assert got[-1] < got[0] / 4 and got[-1] < want[-1] + 0.15


@pytest.mark.parametrize("make", [dense, convnet])
def test_the_converted_net_gives_what_the_rounded_one_gave(make: Any) -> None:
    x, y = (X, Y) if make is dense else (IMAGES, KINDS)
    net = nn.quantization_aware(make())
    trained(net, x, y)
    gm = fx.capture(lambda x: net(x, mode="test"), x)
    small = fx.convert(copy.deepcopy(gm))
    rows = [getattr(n.target, "name", "") for n in small.graph.nodes]
    assert "npx.fake_quantize" not in rows and "matmul" not in rows and "npx.conv" not in rows
    assert rows.count("npx.quantized_linear") + rows.count("npx.quantized_conv") == 3
    onp.testing.assert_allclose(small(x), net(np.array(x), mode="test"), rtol=1e-4, atol=1e-4)
    assert onp.array_equal(net.predict(x).argmax(1), onp.asarray(small(x)).argmax(1))


@pytest.mark.parametrize("make", [dense, convnet])
def test_a_trained_net_keeps_its_parameters_and_is_rounded_once_a_range_was_observed(make: Any) -> None:
    x, y = (X, Y) if make is dense else (IMAGES, KINDS)
    model = make()
    trained(model, x, y)
    kept, want = {name: value.copy() for name, value in model.tree().items()}, model.predict(x)
    net = nn.quantization_aware(model)
    assert all(onp.array_equal(model.tree()[name], value) for name, value in kept.items())
    onp.testing.assert_allclose(net.predict(x), want, atol=0.05 * float(np.max(np.abs(want))))  # weights alone
    net(np.array(x), mode="train")
    onp.testing.assert_allclose(net.predict(x), want, atol=0.1 * float(np.max(np.abs(want))))


def test_a_quantisation_aware_net_shares_its_parameters_and_follows_the_mode() -> None:
    model = dense(norm=True).init(0)
    net = nn.quantization_aware(model)
    assert net.steps[0].layer is model.steps[0] and net.steps[1] is model.steps[1] and len(model.steps) == 6
    before = [float(v) for v in net.aux_tree().values() if not onp.ndim(v)]
    net(np.array(X), mode="test")
    assert [float(v) for v in net.aux_tree().values() if not onp.ndim(v)] == before
    net(np.array(X), mode="train")
    assert float(net.aux_tree()["0.low"]) == X.min() and float(net.aux_tree()["0.high"]) == X.max()
    net(np.array(X) * 3, mode="train")
    onp.testing.assert_allclose(float(net.aux_tree()["0.high"]), 0.9 * X.max() + 0.1 * 3 * X.max(), rtol=1e-5)
    quick = nn.quantization_aware(model, momentum=0.5)
    assert quick.steps[0].momentum == 0.5 == nn.QuantizationAware(model.steps[0], momentum=0.5).momentum
    with pytest.raises(ValueError, match="no Linear and no convolution"):
        nn.quantization_aware(nn.Sequential(nn.ReLU()))
    with pytest.raises(TypeError, match="a ReLU has none"):
        nn.QuantizationAware(nn.ReLU())
