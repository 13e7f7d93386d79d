"""The training steps that benchmarks/jit.py times: each program once, in the names NumPy, JAX and torch share.

A step is the loss, its gradients and plain gradient descent, in float32. minnp and torch update parameters in place;
JAX, which cannot, returns new ones that the next step takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy

RATE = 1e-3
Step = Callable[[], Any]


# ------------------------------------------------------------------ the programs: loss(lib, parameters, *data)
def cross_entropy(lib: Any, scores: Any, labels: Any) -> Any:
    top = lib.amax(scores, 1)
    shifted = scores - top[:, None]
    norm = lib.log(lib.sum(lib.exp(shifted), 1))
    rows = lib.rows(len(labels))
    return lib.mean(norm - shifted[rows, labels])


def mlp_loss(lib: Any, params: list, x: Any, labels: Any) -> Any:
    h = x
    for i in range(0, len(params) - 2, 2):
        h = lib.relu(h @ params[i] + params[i + 1])
    return cross_entropy(lib, h @ params[-2] + params[-1], labels)


def lstm_loss(lib: Any, params: list, x: Any, target: Any) -> Any:
    wx, wh, b = params
    n = wh.shape[0]
    h = c = lib.zeros((x.shape[1], n))
    for t in range(x.shape[0]):
        a = x[t] @ wx + h @ wh + b
        i, f, o = (lib.sigmoid(a[:, k * n : (k + 1) * n]) for k in range(3))
        c = f * c + i * lib.tanh(a[:, 3 * n :])
        h = o * lib.tanh(c)
    return lib.mean((h - target) ** 2)


def convnet_loss(lib: Any, params: list, x: Any, labels: Any) -> Any:
    """CS231n's three-layer network: conv 7x7 - relu - 2x2 max pool - affine - relu - affine - softmax."""
    w1, b1, w2, b2, w3, b3 = params
    h = lib.pool(lib.relu(lib.conv(x, w1, b1)))
    h = lib.relu(h.reshape(len(x), -1) @ w2 + b2)
    return cross_entropy(lib, h @ w3 + b3, labels)


def greeks_value(lib: Any, params: list, strike: Any) -> Any:
    """Black-Scholes call prices, summed: the gradients are delta, vega, theta and rho of every option."""
    spot, sigma, t, rate = params
    root = sigma * lib.sqrt(t)
    d1 = (lib.log(spot / strike) + (rate + 0.5 * sigma * sigma) * t) / root
    d2 = d1 - root

    def cdf(d: Any) -> Any:
        k = 1.0 / (1.0 + 0.2316419 * lib.abs(d))
        poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = lib.exp(-0.5 * d * d) * 0.3989422804014327 * poly
        return lib.where(d > 0, 1.0 - tail, tail)

    return lib.sum(spot * cdf(d1) - strike * lib.exp(-rate * t) * cdf(d2))


# ------------------------------------------------------------------ their data
def uniform(rng: Any, *shape: int) -> numpy.ndarray:
    scale = 1.0 / math.sqrt(shape[0]) if len(shape) == 2 else 0.1
    return (scale * rng.standard_normal(shape)).astype("f")


def mlp_data(rows: int, *sizes: int) -> Callable:
    def make(rng: Any) -> tuple:
        params = [a for i, j in itertools.pairwise(sizes) for a in (uniform(rng, i, j), uniform(rng, j))]
        return params, [rng.standard_normal((rows, sizes[0])).astype("f"), rng.integers(0, 10, rows)]

    return make


def lstm_data(rng: Any) -> tuple:
    x = rng.standard_normal((30, 64, 128)).astype("f")
    return [uniform(rng, 128, 1024), uniform(rng, 256, 1024), uniform(rng, 1024)], [x, uniform(rng, 64, 256)]


def convnet_data(rng: Any) -> tuple:
    params = [uniform(rng, 32, 3, 7, 7), uniform(rng, 32), uniform(rng, 8192, 100), uniform(rng, 100)]
    params += [uniform(rng, 100, 10), uniform(rng, 10)]
    return params, [rng.standard_normal((50, 3, 32, 32)).astype("f"), rng.integers(0, 10, 50)]


def greeks_data(rng: Any) -> tuple:
    low, high = [80.0, 0.1, 0.2, 0.01], [120.0, 0.4, 2.0, 0.05]
    return [rng.uniform(a, b, 1 << 20).astype("f") for a, b in zip(low, high)], [
        rng.uniform(80, 120, 1 << 20).astype("f")
    ]


STEPS: dict[str, tuple[Callable, Callable]] = {
    "mlp 100x3072-100-10": (mlp_loss, mlp_data(100, 3072, 100, 10)),
    "mlp 128x784-512-512-10": (mlp_loss, mlp_data(128, 784, 512, 512, 10)),
    "mlp 256x784-1024x3-10": (mlp_loss, mlp_data(256, 784, 1024, 1024, 1024, 10)),
    "lstm 30x64x128-256": (lstm_loss, lstm_data),
    "convnet 50x3x32x32": (convnet_loss, convnet_data),
    "greeks 2**20": (greeks_value, greeks_data),
}


# ------------------------------------------------------------------ the libraries
class Names:
    """A library's functions under the names the programs use."""

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


def shared(np: Any) -> dict[str, Any]:
    return {name: getattr(np, name) for name in ("exp", "log", "sqrt", "tanh", "abs", "where", "mean", "sum", "amax")}


def minnp_step(loss: Callable, params: list, data: list) -> Step:
    import minnp
    import minnp.numpy as np
    from minnp import npx

    lib = Names(
        **shared(np),
        relu=lambda x: np.maximum(x, 0),
        sigmoid=npx.sigmoid,
        rows=np.arange,
        zeros=lambda shape: np.zeros(shape, "f"),
        conv=lambda x, w, b: npx.convolution(x, w, b, kernel=(7, 7), pad=(3, 3), num_filter=len(w)),
        pool=lambda x: npx.pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max"),
    )

    @minnp.jit
    def step(params: list, data: list) -> Any:
        value, grads = minnp.value_and_grad(lambda p: loss(lib, p, *data))(params)
        for p, g in zip(params, grads):
            p -= RATE * g
        return value

    params, data = [np.array(p) for p in params], [np.array(d) for d in data]
    return lambda: step(params, data)


def jax_step(loss: Callable, params: list, data: list) -> Step:
    import jax
    import jax.numpy as np

    def pool(x: Any) -> Any:
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def conv(x: Any, w: Any, b: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]

    lib = Names(
        **shared(np),
        relu=jax.nn.relu,
        sigmoid=jax.nn.sigmoid,
        rows=np.arange,
        zeros=lambda shape: np.zeros(shape, "float32"),
        conv=conv,
        pool=pool,
    )

    @jax.jit
    def step(params: list, data: list) -> Any:
        value, grads = jax.value_and_grad(lambda p: loss(lib, p, *data))(params)
        return value, [p - RATE * g for p, g in zip(params, grads)]

    state = [np.asarray(p) for p in params]
    data = [np.asarray(d) for d in data]

    def run() -> Any:
        nonlocal state
        value, state = step(state, data)
        return jax.block_until_ready((value, state))[0]

    return run


def torch_step(loss: Callable, params: list, data: list) -> Step:
    import torch
    import torch.nn.functional as F

    names = {name: getattr(torch, name) for name in ("exp", "log", "sqrt", "tanh", "abs", "where", "mean", "sum")}
    lib = Names(
        **names,
        amax=torch.amax,
        relu=torch.relu,
        sigmoid=torch.sigmoid,
        rows=torch.arange,
        zeros=torch.zeros,
        conv=lambda x, w, b: F.conv2d(x, w, b, padding=3),
        pool=lambda x: F.max_pool2d(x, 2),
    )
    params = [torch.tensor(p, requires_grad=True) for p in params]
    data = [torch.tensor(d) for d in data]
    torch._dynamo.reset()
    compiled = torch.compile(lambda params, data: loss(lib, params, *data))

    def step() -> float:
        value = compiled(params, data)
        grads = torch.autograd.grad(value, params)
        with torch.no_grad():
            torch._foreach_sub_(params, torch._foreach_mul(grads, RATE))
        return value.item()

    return step


MAKERS: dict[str, Callable] = {"minnp": minnp_step, "jax": jax_step, "torch": torch_step}
