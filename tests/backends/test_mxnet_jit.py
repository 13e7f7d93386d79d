"""jit on MXNet gives what eager gives: symbols where MXNet has verified operators, node by node elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, jit, npx, value_and_grad
from minnp.core.graph.scalars import VALUES_DECIDE
from minnp.core.rows.primitive import TABLE

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

from minnp.backends.mxnet.cases import cases
from minnp.backends.mxnet.symbols import TABLE as LOWERINGS

R = onp.random.default_rng(0)
X, W = R.uniform(0.2, 0.9, (8, 6)).astype("f4"), R.uniform(-0.5, 0.5, (6, 5)).astype("f4")
HOME = backends.get("mxnet")


@pytest.fixture(autouse=True)
def preferred() -> Iterator[None]:
    with minnp.policy("prefer_mxnet"):
        yield


def source(f: Any) -> str:
    (path,) = next(iter(f.paths.values()))
    return path.run.source


def agree(f: Callable, *arrays: Any, symbols: int = 1, rtol: float = 2e-5) -> Any:
    """f jitted, three times over, is f under NumPy; so is what it leaves in its arguments."""
    compiled = jit(f)
    for _ in range(3):
        ours, theirs = [np.array(a) for a in arrays], [np.array(a) for a in arrays]
        got = compiled(*ours)
        with minnp.policy("only_numpy"):
            want = f(*theirs)
        got, want = (v if isinstance(v, tuple) else (v,) for v in (got, want))
        for a, b in zip((*got, *ours), (*want, *theirs), strict=True):
            a, b = onp.asarray(a), onp.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            onp.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(onp.abs(b).max(initial=0))))
    assert source(compiled).count("k_symbol") == symbols, source(compiled)
    return compiled


def test_a_program_of_verified_operators_is_one_symbol() -> None:
    agree(lambda x, w: np.tanh(np.maximum(x @ w, 0.1) * 2.0 + 0.5).sum(axis=1), X, W)
    agree(lambda x: np.exp(-x * x) * np.tanh(x) + np.log(x) * np.sqrt(x), X.astype("f8"), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_number_may_change_inside_a_symbol(dtype: str) -> None:
    f = lambda x, n: np.tanh(x * n) + np.exp(x) / n
    compiled, x = jit(f), np.array(X.astype(dtype))
    for n in (2.0, 3.0, 0.5, 7.5):
        got = compiled(x, n)
        with minnp.policy("only_numpy"):
            want = f(x, n)
        assert got.dtype == want.dtype
        onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), rtol=2e-5)
    assert compiled.cache_info()["captures"] == 1
    assert source(compiled).count("k_symbol") == 1 and source(compiled).count("k_") <= 2 + VALUES_DECIDE


def test_what_has_no_verified_operator_runs_between_symbols() -> None:
    def f(x: Any, w: Any) -> Any:
        y = np.tanh(x @ w) * 2.0
        order = np.argsort(y, axis=1, kind="stable")
        z = np.take_along_axis(y, order, axis=1)
        return np.exp(z) + 1.0, np.logaddexp(z, z)

    agree(f, X, W, symbols=2)


def test_writes_views_masks_and_integers_are_numpys() -> None:
    def f(x: Any, w: Any) -> Any:
        y = np.exp(x) * 0.5
        y[1:3] = np.sin(x[:2]) + 1.0
        y[y > 1.0] = 0.25
        x += 1.0
        return y, y[::-1].sum(axis=0), (y > 0.5).sum()

    agree(f, X, W)
    agree(lambda n: n * 2 + n // 3, onp.arange(6), symbols=0)


def test_branches_on_data_are_guards() -> None:
    f = jit(lambda x: np.exp(x) * 2.0 if x.sum() > 0 else np.tanh(x) - 1.0)
    for sign in (1, -1, 1, -1):
        got = f(np.array(sign * X))
        onp.testing.assert_allclose(got, onp.exp(X) * 2 if sign > 0 else onp.tanh(-X) - 1, rtol=1e-5)
    assert f.cache_info()["captures"] == 2


def test_training_steps_agree() -> None:
    labels = onp.arange(8) % 5

    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            scores = np.tanh(x @ w)
            shifted = scores - scores.max(axis=1, keepdims=True)
            return np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(8), labels])

        value, g = value_and_grad(loss)(w)
        w -= 0.5 * g
        return value

    compiled = jit(step)
    ours, theirs = np.array(W), np.array(W)
    losses = []
    for _ in range(5):
        value = compiled(ours, np.array(X))
        with minnp.policy("only_numpy"):
            onp.testing.assert_allclose(value, step(theirs, np.array(X)), rtol=1e-4)
        onp.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        losses.append(float(value))
    assert losses[-1] < losses[0] and "k_symbol" in source(compiled)


@pytest.mark.parametrize("channels", [3, 16])
def test_convolutions_and_their_gradients(channels: int) -> None:
    x, w = R.standard_normal((2, channels, 8, 8)).astype("f4"), R.standard_normal((16, channels, 3, 3)).astype("f4")

    def net(x: Any, w: Any) -> Any:
        y = npx.relu(npx.convolution(x, w, None, kernel=(3, 3), pad=(1, 1), num_filter=16, no_bias=True))
        return npx.softmax(npx.pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max"), axis=-1)

    compiled = jit(lambda x, w: value_and_grad(lambda w: (net(x, w) ** 2).sum())(w))
    for scale in (1.0, 0.5, 2.0):
        value, slope = compiled(np.array(x), np.array(scale * w))
        with minnp.policy("only_numpy"):
            other, g = value_and_grad(lambda w: (net(np.array(x), w) ** 2).sum())(np.array(scale * w))
        onp.testing.assert_allclose(value, other, rtol=1e-4)
        onp.testing.assert_allclose(slope, g, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(n for n in HOME.verified() if n in LOWERINGS))
def test_every_verified_row_agrees_inside_a_symbol(name: str, dtype: str) -> None:
    if dtype not in HOME.verified()[name]:
        pytest.skip(f"{name} is not verified for {dtype}")
    row = TABLE[name]
    for arrays, params in list(cases(name, dtype))[:12]:
        here = [a for a in arrays if isinstance(a, onp.ndarray)]
        if not here or any(a.dtype.name != dtype or not a.size for a in here):
            continue

        def f(*given: Any, arrays: Any = arrays, params: dict = params) -> Any:
            left = iter(given)
            y = row(*[next(left) if isinstance(a, onp.ndarray) else a for a in arrays], **params)
            ys = y if isinstance(y, tuple) else (y,)
            return tuple(v * 1.5 + 0.25 if v.dtype == dtype else v for v in ys)

        compiled = jit(f)
        with onp.errstate(all="ignore"):
            try:
                with minnp.policy("only_numpy"):
                    want = f(*map(np.array, here))
            except (ValueError, onp.linalg.LinAlgError) as error:
                with pytest.raises(type(error)):
                    compiled(*map(np.array, here))
                continue
            for _ in range(2):
                for a, b in zip(compiled(*map(np.array, here)), want, strict=True):
                    a, b = onp.asarray(a), onp.asarray(b)
                    assert a.dtype == b.dtype and a.shape == b.shape
                    close = 2e-4 if dtype == "float32" else 1e-9
                    onp.testing.assert_allclose(a, b, rtol=close, atol=close, err_msg=f"{name} {params}")
