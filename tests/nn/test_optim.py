"""Optimisers against torch's, schedules and clipping against formulas, initial values against their statistics."""

import math

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.nn import init, optim
from minnp.testing import check_grads

torch = pytest.importorskip("torch", reason="torch's results are what ours are compared with")
RNG = onp.random.default_rng(0)
CASES = [
    ("sgd", {}, torch.optim.SGD, {}),
    ("sgd", {"weight_decay": 0.1}, torch.optim.SGD, {"weight_decay": 0.1}),
    ("sgd_momentum", {}, torch.optim.SGD, {"momentum": 0.9}),
    ("nesterov", {"momentum": 0.8}, torch.optim.SGD, {"momentum": 0.8, "nesterov": True}),
    ("adagrad", {"epsilon": 1e-10}, torch.optim.Adagrad, {}),
    ("rmsprop", {}, torch.optim.RMSprop, {}),
    ("adam", {}, torch.optim.Adam, {}),
    ("adam", {"beta1": 0.8, "beta2": 0.9, "weight_decay": 0.1}, torch.optim.Adam,
     {"betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("adamw", {}, torch.optim.AdamW, {}),
    ("adamw", {"weight_decay": 0.2}, torch.optim.AdamW, {"weight_decay": 0.2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "theirs", "settings"), CASES, ids=[f"{c[0]}-{len(c[1])}" for c in CASES])
def test_twenty_steps_are_torchs(name, config, theirs, settings):
    start, gradients = RNG.standard_normal(7), RNG.standard_normal((20, 7))
    tensor = torch.tensor(start, requires_grad=True)
    reference = theirs([tensor], lr=0.03, **settings)
    w, config = np.array(start), {"learning_rate": 0.03, **config}
    alias = w
    for g in gradients:
        tensor.grad = torch.tensor(g)
        reference.step()
        w, config = optim.RULES[name](w, np.array(g), config)
        onp.testing.assert_allclose(onp.asarray(w), tensor.detach().numpy(), rtol=1e-9)
    assert w is alias, "the update is in place"


def test_lion():
    w, m, config = onp.array([1.0, -2.0]), onp.zeros(2), {"learning_rate": 0.1, "weight_decay": 0.01}
    ours = np.array(w)
    for g in RNG.standard_normal((10, 2)):
        w = w - 0.1 * (onp.sign(0.9 * m + 0.1 * g) + 0.01 * w)
        m = 0.99 * m + 0.01 * g
        ours, config = optim.lion(ours, np.array(g), config)
    onp.testing.assert_allclose(onp.asarray(ours), w)


@pytest.mark.parametrize("name", optim.RULES)
def test_every_rule_goes_down_a_bowl_and_keeps_the_dtype(name):
    scale = np.array([1.0, 10.0], np.float32)
    w, config = np.array([3.0, -2.0], np.float32), {"learning_rate": 0.02}
    before = float(np.sum(scale * w * w))
    for _ in range(200):
        w, config = optim.RULES[name](w, 2 * scale * w, config)
    assert float(np.sum(scale * w * w)) < 0.6 * before
    assert w.dtype == onp.float32
    assert all(value.dtype == onp.float32 for value in config.values() if hasattr(value, "dtype"))


@pytest.mark.parametrize("name", optim.RULES)
def test_a_gradient_goes_through_a_step_without_a_warning(name):
    def after(w):
        stepped, _ = optim.RULES[name](w * 1.0, 3 * w**2, {"learning_rate": 0.1})
        return np.sum(stepped**3)

    check_grads(after, (np.array([1.0, 2.0]),))


def test_names():
    assert optim.rule_named("adam") is optim.adam
    assert optim.rule_named(max) is max
    with pytest.raises(ValueError, match="unknown update_rule 'adamm'; known: sgd, "):
        optim.rule_named("adamm")


def test_clipping():
    grads = {"a": np.array([3.0, 0.0]), "b": np.array([[4.0]])}
    clipped, norm = optim.clip_norm(grads, 1.0)
    assert norm == 5.0
    assert onp.allclose(onp.asarray(clipped["a"]), [0.6, 0]) and onp.allclose(onp.asarray(clipped["b"]), 0.8)
    assert optim.clip_norm(grads, 10.0)[0] is grads
    assert onp.asarray(optim.clip_value(grads, 3.5)["b"]).tolist() == [[3.5]]
    half, norm = optim.clip_norm({"a": np.full(4, 300, np.float16)}, 1.0)  # whose squares are above float16's largest
    assert norm == 600.0 and half["a"].dtype == np.float16 and onp.asarray(half["a"]).tolist() == [0.5] * 4


def test_schedules():
    half = optim.cosine(10, floor=0.2)
    assert [half(0), half(5), half(10), half(99)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    assert [optim.step_decay(3, 0.5)(i) for i in (0, 2, 3, 6)] == [1.0, 1.0, 0.5, 0.25]
    assert optim.exponential(0.1)(10) == pytest.approx(math.exp(-1))
    assert [optim.linear(4)(i) for i in (0, 1, 4, 9)] == [1.0, 0.75, 0.0, 0.0]
    warm = optim.warmup(4, optim.linear(4))
    assert [warm(i) for i in (0, 3, 4, 6)] == [0.25, 1.0, 1.0, 0.5]
    assert optim.warmup(2)(5) == 1.0


# ------------------------------------------------------------------ initial values
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("shape", "fan_in", "fan_out"), [((300, 200), 300, 200), ((64, 32, 3, 3), 288, 576)])
def test_variances(shape, fan_in, fan_out):
    x = onp.asarray(init.xavier(shape, {"rng": rng()}))
    assert abs(x).max() <= math.sqrt(6 / (fan_in + fan_out)) and x.dtype == onp.float32
    assert x.var() == pytest.approx(2 / (fan_in + fan_out), rel=0.05)
    assert onp.asarray(init.he(shape, {"rng": rng()})).var() == pytest.approx(2 / fan_in, rel=0.05)
    assert init.msra is init.he


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 2, 3)])
def test_orthogonal(shape):
    q = onp.asarray(init.orthogonal(shape, {"rng": rng(), "gain": 2.0, "dtype": np.float64})).reshape(shape[0], -1)
    product = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    onp.testing.assert_allclose(product, 4 * onp.eye(len(product)), atol=1e-12)


def test_constant_gaussian_custom():
    assert onp.asarray(init.constant((2,), {"value": 3})).tolist() == [3, 3]
    assert onp.asarray(init.constant((2,))).tolist() == [0, 0]
    x = onp.asarray(init.gaussian((100, 100), {"mu": 2.0, "stdvar": 0.5, "rng": rng()}))
    assert x.mean() == pytest.approx(2, abs=0.02) and x.std() == pytest.approx(0.5, abs=0.02)
    assert onp.asarray(init.custom((2, 3), {"function": onp.ones})).tolist() == [[1, 1, 1]] * 2
    with pytest.raises(ValueError, match=r"returned \(3,\) for a parameter of \(2, 3\)"):
        init.custom((2, 3), {"function": lambda shape: onp.ones(3)})
    with pytest.raises(ValueError, match="unknown init_rule 'xavior'; known: xavier"):
        init.rule_named("xavior")


def test_without_a_generator_the_global_stream_is_used():
    np.random.seed(4)
    one = onp.asarray(init.xavier((3, 3)))
    np.random.seed(4)
    assert onp.array_equal(one, onp.asarray(init.xavier((3, 3), {})))
