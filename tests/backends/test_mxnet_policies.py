"""Policies end to end: which kernels run, what falls back and why, and that no value depends on it."""

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, errors, grad, npx
from minnp.core.cpu import kernels

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def fresh_report():
    minnp.reset_report()


def ran(name):
    """[(backend, reason)] of the calls of a function."""
    return [(r["backend"], r["why"]) for r in minnp.report() if r["function"] == name]


# ------------------------------------------------------------------ prefer, only, auto
def test_prefer_mxnet_runs_verified_kernels_and_says_what_fell_back():
    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    with minnp.policy("prefer_mxnet"):
        y = np.sum(np.exp(x) @ x, axis=0)
        z = np.logaddexp(x, x)
        i = np.exp(np.arange(3))
    assert onp.allclose(onp.asarray(y), (onp.exp(onp.asarray(x)) @ onp.asarray(x)).sum(axis=0))
    assert onp.array_equal(onp.asarray(z), onp.logaddexp(onp.asarray(x), onp.asarray(x)))
    assert i.dtype == float
    assert ran("matmul") == [("mxnet", "")] and ran("sum") == [("mxnet", "")]
    assert ("mxnet", "") in ran("exp")
    assert ("numpy", "exp is not verified for int64") in ran("exp")
    ((backend, why),) = ran("logaddexp")
    assert backend == "numpy" and "mxnet" in why


def test_only_mxnet_raises_where_there_is_no_kernel_and_says_which_policy_falls_back():
    x = np.array([1.0, 2.0])
    with minnp.policy("only_mxnet"):
        assert np.exp(x).dtype == float
        with pytest.raises(errors.FallbackError, match=r"np.logaddexp\(float64\[2\].*prefer_mxnet"):
            np.logaddexp(x, x)
        with pytest.raises(errors.FallbackError, match="not verified for int64"):
            np.exp(np.arange(3))
        with pytest.raises(errors.FallbackError, match="no empty arrays"):
            np.exp(np.zeros((0, 2)))


def test_views_and_new_arrays_are_no_fallback():
    with minnp.policy("only_mxnet"):
        x = np.arange(6.0).reshape(2, 3)
        v = x.T[1:]
        v[:] = 0
        assert x.tolist() == [[0, 0, 0], [3, 0, 0]]
        assert np.shares_memory(x, v)


def test_only_numpy_asks_no_backend():
    with minnp.policy("only_numpy"):
        npx.convolution(np.ones((64, 3, 32, 32), "f4"), np.ones((32, 3, 3, 3), "f4"))
    assert ran("npx.conv") == [("numpy", "")]


def test_auto_takes_mxnet_for_large_convolutions_alone():
    w = np.ones((32, 3, 3, 3), "f4")
    npx.convolution(np.ones((128, 3, 32, 32), "f4"), w)
    assert ("mxnet", "") in ran("npx.conv")
    minnp.reset_report()
    npx.convolution(np.ones((1, 3, 8, 8), "f4"), w)
    np.exp(np.ones(1000))
    assert {backend for backend, _ in ran("npx.conv") + ran("exp")} == {"numpy"}


def test_what_mxnet_refuses_under_auto_runs_on_numpy_with_the_reason():
    y = npx.convolution(np.ones((64, 3, 32, 32), "f2"), np.ones((32, 3, 3, 3), "f2"))
    assert y.dtype == np.float16
    ((backend, why),) = ran("npx.conv")
    assert backend == "numpy" and "not verified for float16" in why


@pytest.mark.parametrize("form", ["with", "decorator", "global", "object"])
def test_the_forms_of_a_policy(form):
    x = np.ones(3)
    if form == "with":
        with minnp.policy("prefer_mxnet"):
            np.exp(x)
    elif form == "decorator":
        minnp.wrap_policy("prefer_mxnet")(lambda: np.exp(x))()
    elif form == "object":
        with minnp.PreferMXNetPolicy():
            np.exp(x)
    else:
        before = minnp.get_global_policy()
        minnp.set_global_policy("prefer_mxnet")
        try:
            np.exp(x)
        finally:
            minnp.set_global_policy(before)
    assert ran("exp") == [("mxnet", "")]


# ------------------------------------------------------------------ values and gradients do not depend on the policy
def net(x, w, v, labels):
    h = npx.relu(npx.convolution(x, w, pad=(1, 1)))
    h = npx.pooling(h, kernel=(3, 3), stride=(2, 2), pad=(1, 1))
    scores = npx.log_softmax(h.reshape(len(x), -1) @ v)
    return -np.mean(scores[np.arange(len(x)), labels])


@pytest.mark.parametrize("policy", ["auto", "prefer_mxnet"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_net_has_the_same_loss_and_gradients(policy, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "team", None)  # the C part would take the convolutions
    r = onp.random.default_rng(0)
    x, w, v = (r.normal(size=s).astype(dtype) for s in ((16, 3, 32, 32), (16, 3, 3, 3), (16 * 256, 10)))
    labels = r.integers(0, 10, 16)
    step = minnp.value_and_grad(net, argnums=(0, 1, 2))
    with minnp.policy("only_numpy"):
        loss, grads = step(x, w, v, labels)
    minnp.reset_report()
    with minnp.policy(policy):
        mx_loss, mx_grads = step(x, w, v, labels)
    assert ("mxnet", "") in ran("npx.conv")
    tolerance = 1e-4 if dtype == "f4" else 1e-10
    assert onp.allclose(float(loss), float(mx_loss), rtol=tolerance)
    for a, b in zip(grads, mx_grads):
        assert a.dtype == b.dtype == dtype
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=tolerance, atol=tolerance)


def test_second_derivatives_run_on_the_kernels_too():
    r = onp.random.default_rng(0)
    x, w = r.normal(size=(2, 3, 6, 6)), r.normal(size=(4, 3, 3, 3))
    f = lambda w: np.sum(np.tanh(npx.convolution(x, w)))
    double = grad(lambda w: np.sum(grad(f)(w) ** 2))
    expected = double(w)
    with minnp.policy("prefer_mxnet"):
        found = double(w)
    onp.testing.assert_allclose(onp.asarray(found), onp.asarray(expected), rtol=1e-8)
    assert ("mxnet", "") in ran("npx.conv_weight_grad")


def test_threads_run_the_same_kernel_side_by_side():
    import threading

    wrong = []

    def work(seed):
        x = onp.random.default_rng(seed).normal(size=1000)
        with minnp.policy("prefer_mxnet"):
            for _ in range(100):
                if not onp.allclose(onp.asarray(np.exp(x)), onp.exp(x)):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
