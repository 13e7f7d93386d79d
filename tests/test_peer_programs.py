"""Programs as users of HIPS autograd and of JAX write them: the gradients are those libraries'."""

from __future__ import annotations

import importlib.util
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.core.rows.pytree import tree_leaves

pytest.importorskip("scipy")
from scipy.optimize import minimize

import minnp.scipy.special as special
import minnp.scipy.stats as stats

R = onp.random.RandomState(0)


def close(ours: Any, theirs: Any, tol: float = 1e-8) -> None:
    ours, theirs = ([onp.asarray(x) for x in tree_leaves(t)] for t in (ours, theirs))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        onp.testing.assert_allclose(a, b, rtol=tol, atol=tol)


# ------------------------------------------------------------------ autograd's examples, from their ideas
@cache
def libraries() -> tuple[SimpleNamespace, SimpleNamespace]:
    """(ours, autograd's): NumPy, what SciPy has, and the transformations."""
    autograd = pytest.importorskip("autograd")
    import autograd.numpy as anp
    import autograd.scipy.special as aspecial
    import autograd.scipy.stats as astats

    ours = SimpleNamespace(np=np, logsumexp=special.logsumexp, norm=stats.norm, mvn=stats.multivariate_normal)
    theirs = SimpleNamespace(np=anp, logsumexp=aspecial.logsumexp, norm=astats.norm, mvn=astats.multivariate_normal)
    for name in ("grad", "jacobian", "hessian", "elementwise_grad", "value_and_grad", "make_ggnvp"):
        setattr(ours, name, getattr(minnp, name))
        setattr(theirs, name, getattr(autograd, name))
    return ours, theirs


X, LABELS = R.randn(20, 3), R.rand(20) < 0.5
FIELD, TARGET = R.rand(10, 10), R.rand(10, 10)
LAYERS = [(R.randn(3, 5), R.randn(5)), (R.randn(5, 3), R.randn(3))]
POINTS, EPS, OBSERVED = R.randn(30, 2), R.randn(40, 2), R.randn(12, 3)
WORDS = R.randn(6, 2, 3)


def fifth_derivative(lib: Any, x: Any) -> Any:
    f = lambda x: (1.0 - lib.np.exp(-2 * x)) / (1.0 + lib.np.exp(-2 * x))
    for _ in range(4):
        f = lib.elementwise_grad(f)
    return lib.np.sum(f(x))


def logistic_regression(lib: Any, w: Any) -> Any:
    p = 0.5 * (lib.np.tanh(lib.np.dot(X, w)) + 1)
    return -lib.np.sum(lib.np.log(p * LABELS + (1 - p) * (1 - LABELS)))


def fluid(lib: Any, v: Any) -> Any:
    np = lib.np

    def project(vx: Any, vy: Any) -> Any:
        p, h = np.zeros(vx.shape), 1.0 / vx.shape[0]
        div = np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1)
        for _ in range(6):
            around = np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0) + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)
            p = (-0.5 * h * div + around) / 4.0
        vx = vx - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) / h
        return vx, vy - 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)) / h

    def advect(f: Any, vx: Any, vy: Any) -> Any:
        rows, cols = f.shape
        ys, xs = np.meshgrid(np.arange(rows), np.arange(cols))
        x, y = (xs - vx).ravel(), (ys - vy).ravel()
        left, top = np.floor(x).astype(int), np.floor(y).astype(int)
        rw, bw = x - left, y - top
        left, right, top, bottom = left % rows, (left + 1) % rows, top % cols, (top + 1) % cols
        flat = (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom])
        flat = flat + rw * ((1 - bw) * f[right, top] + bw * f[right, bottom])
        return np.reshape(flat, (rows, cols))

    vx, vy, smoke = np.reshape(v[:100], (10, 10)), np.reshape(v[100:], (10, 10)), FIELD
    for _ in range(4):
        vx, vy = project(advect(vx, vx, vy), advect(vy, vx, vy))
        smoke = advect(smoke, vx, vy)
    return np.mean((TARGET - smoke) ** 2)


def ode_net(lib: Any, layers: Any) -> Any:
    np = lib.np

    def slope(y: Any) -> Any:
        for w, b in layers:
            out = np.dot(y, w) + b
            y = np.maximum(0, out)
        return out

    y, h = onp.array([2.0, 0.0, 1.0]), 0.1
    ys = [y]
    for _ in range(6):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3))
        ys.append(y)
    return np.mean(np.abs(np.array(ys) - 1.0))


def gaussian_mixture(lib: Any, params: Any) -> Any:
    np, clusters = lib.np, []
    for weight, mean, root in zip(params["w"] - lib.logsumexp(params["w"]), params["mean"], params["root"]):
        clusters.append(weight + lib.mvn.logpdf(POINTS, mean, np.dot(root.T, root) + 0.1 * np.eye(2)))
    return np.sum(lib.logsumexp(np.vstack(clusters), axis=0))


def black_box_variational(lib: Any, params: Any) -> Any:
    np = lib.np
    samples = EPS * np.exp(params[2:]) + params[:2]
    mu, log_sigma = samples[:, 0], samples[:, 1]
    density = lib.norm.logpdf(log_sigma, 0, 1.35) + lib.norm.logpdf(mu, 0, np.exp(log_sigma))
    return -np.mean(density) - (1 + np.log(2 * np.pi)) - np.sum(params[2:])


def gaussian_process_latents(lib: Any, params: Any) -> Any:
    np = lib.np
    z, scales = np.reshape(params[:24], (12, 2)), np.exp(params[24:26])
    d = np.expand_dims(z / scales, 1) - np.expand_dims(z / scales, 0)
    k = np.exp(params[27] - 0.5 * np.sum(d**2, axis=2)) + (np.exp(params[26]) + 0.01) * np.eye(12)
    return sum(0.5 * (np.dot(y, np.linalg.solve(k, y)) + np.linalg.slogdet(k)[1]) for y in OBSERVED.T)


def lstm(lib: Any, params: Any) -> Any:
    np, total = lib.np, 0.0
    sigmoid = lambda x: 0.5 * (np.tanh(x) + 1.0)
    with_one = lambda *parts: np.hstack((*parts, np.ones((parts[0].shape[0], 1))))
    h, c = np.repeat(params["h"], 2, axis=0), np.repeat(params["c"], 2, axis=0)
    for x in WORDS:
        given = with_one(x, h)
        change, forget, take, out = (np.dot(given, params[k]) for k in ("change", "forget", "in", "out"))
        c = sigmoid(forget) * c + sigmoid(take) * np.tanh(change)
        h = sigmoid(out) * np.tanh(c)
        scores = np.dot(with_one(h), params["predict"])
        total = total + np.sum((scores - lib.logsumexp(scores, axis=1, keepdims=True)) * x)
    return total


def neural_net(lib: Any, layers: Any) -> Any:
    np, x, target = lib.np, X, onp.eye(3)[onp.arange(20) % 3]
    for w, b in layers:
        out = np.dot(x, w) + b
        x = np.tanh(out)
    likelihood = np.sum(target * (out - np.log(np.sum(np.exp(out), axis=1, keepdims=True))))
    return -likelihood + 0.1 * sum(np.sum(w**2) + np.sum(b**2) for w, b in layers)


EXAMPLES = {
    fifth_derivative: onp.linspace(-3, 3, 20),
    logistic_regression: onp.array([0.1, -0.2, 0.3]),
    fluid: R.randn(200),
    ode_net: LAYERS,
    gaussian_mixture: {"w": R.randn(3), "mean": R.randn(3, 2), "root": R.randn(3, 2, 2)},
    black_box_variational: R.randn(4),
    gaussian_process_latents: R.randn(28) * 0.5,
    lstm: {
        **{k: R.randn(8, 4) * 0.5 for k in ("change", "forget", "in", "out")},
        "predict": R.randn(5, 3), "h": R.randn(1, 4), "c": R.randn(1, 4),
    },
    neural_net: LAYERS,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda f: f.__name__)
def test_autograds_examples_have_its_gradients(example: Callable) -> None:
    at, (ours, theirs) = EXAMPLES[example], libraries()
    (value, g), (wanted, slopes) = (
        lib.value_and_grad(lambda p, lib=lib: example(lib, p))(at) for lib in (ours, theirs)
    )
    assert float(value) == pytest.approx(float(wanted), rel=1e-10)
    close(g, slopes, 1e-7)
    assert type(g) is (type(at) if type(at) is not onp.ndarray else np.ndarray)
    compiled = minnp.jit(minnp.grad(lambda p: example(ours, p)))
    for _ in range(2):
        close(compiled(at), slopes, 1e-7)
    if type(at) is onp.ndarray and at.size < 30 and example is not fifth_derivative:
        close(ours.hessian(lambda p: example(ours, p))(at), theirs.hessian(lambda p: example(theirs, p))(at), 1e-6)


def test_scipy_minimises_our_functions() -> None:
    f = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    for how in (
        {"jac": minnp.grad(f), "hess": minnp.hessian(f), "method": "Newton-CG", "tol": 1e-10},
        {"jac": minnp.grad(f), "hessp": minnp.hvp(f), "method": "trust-ncg"},
        {"jac": minnp.grad(f), "method": "BFGS", "tol": 1e-9},
    ):
        close(minimize(f, onp.zeros(2), **how).x, onp.ones(2), 1e-3)
    close(minimize(minnp.value_and_grad(f), onp.zeros(2), jac=True, method="CG").x, onp.ones(2), 1e-3)


# ------------------------------------------------------------------ JAX
B, W, V = R.randn(5, 3), R.randn(3, 4), R.randn(3)
K = R.randn(5, 3, 3) + 4 * onp.eye(3)
AT = onp.array([0, 1, 2, 0, 1])
Pair = namedtuple("Pair", "w b")


def loss(np: Any, w: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w) ** 2)


def scattered(np: Any, x: Any) -> Any:
    if hasattr(np.zeros(1), "at"):  # JAX's arrays are not written to
        return np.zeros(4).at[1].set(x[0]).at[2:].add(x[1:])
    y = np.zeros(4)
    y[1] = x[0]
    y[2:] += x[1:]
    return y


def grown(x: Any) -> Any:
    while x.sum() < 10:
        x = x * x + 1
    return x.sum()


def adapted(lib: Any, w: Any) -> Any:
    """A step of gradient descent inside the loss (MAML)."""
    inner = lambda w, x: lib.np.sum((x @ w) ** 2)
    return inner(w - 0.1 * lib.grad(inner)(w, B[:2]), B[2:])


def unrolled(lib: Any, rate: Any) -> Any:
    w = lib.np.asarray(V)
    for _ in range(5):
        w = w - rate * lib.grad(lambda w: lib.np.sum((B @ w - 1) ** 2))(w)
    return lib.np.sum((B @ w - 1) ** 2)


# lib has np, grad, vmap, jvp, vjp, hessian, jacfwd, jacrev, value_and_grad, stop_gradient
PROGRAMS: dict[str, Callable] = {
    "gradient of each example": lambda l: l.vmap(l.grad(lambda w, x: loss(l.np, w, x)), (None, 0))(W, B),
    "vmap of a Hessian": lambda l: l.vmap(l.hessian(lambda x: loss(l.np, W, x)))(B),
    "Hessian of a vmap": lambda l: l.hessian(lambda w: l.np.sum(l.vmap(lambda x: loss(l.np, w, x))(B) ** 2))(W),
    "vmap of vmap": lambda l: l.vmap(l.vmap(lambda a, b: l.np.dot(a, b) * a[0], (None, 0)), (0, None))(B, B),
    "vmap of linalg": lambda l: l.vmap(
        lambda k, x: l.np.linalg.solve(k, x) @ l.np.linalg.inv(k) + l.np.linalg.slogdet(k)[1]
    )(K, B),
    "through a vmap of linalg": lambda l: l.grad(
        lambda k: l.np.sum(l.vmap(lambda k: l.np.linalg.cholesky(k @ k.T)[2, 0])(k))
    )(K),
    "out_axes": lambda l: l.vmap(lambda x: (x, x * 2), out_axes=1)(B),
    "out_axes as a tree": lambda l: l.vmap(lambda x: (x, {"a": x * 2}), out_axes=(0, {"a": 1}))(B),
    "in_axes of a dict": lambda l: l.vmap(lambda d, y: d["a"] * y + d["b"], ({"a": 0, "b": None}, None))(
        {"a": B, "b": V}, V
    ),
    "in_axes nested": lambda l: l.vmap(lambda p, y: p[0] * p[1] + y, ((0, None), 0))((B, V), B),
    "last axes": lambda l: l.vmap(lambda x: x.sum() * x, -1, -1)(B),
    "an index of each example": lambda l: l.vmap(l.grad(lambda x, i: x[i] ** 2))(B, l.np.asarray(AT)),
    "sort and where": lambda l: l.vmap(
        l.grad(lambda x: l.np.sum(l.np.sort(x) * l.np.arange(3.0) + l.np.where(x > 0, x**2, 0)))
    )(B),
    "vmap of jvp": lambda l: l.vmap(lambda x: l.jvp(l.np.tanh, (x,), (x,))[1])(B),
    "jvp of vmap": lambda l: l.jvp(l.vmap(lambda x: l.np.sin(x).sum() * x), (B,), (B,)),
    "vjp in vmap": lambda l: l.vmap(lambda e: l.vjp(lambda x: l.np.sin(x) * x[0], V)[1](e)[0])(l.np.eye(3)),
    "jacfwd of jacrev": lambda l: l.jacfwd(l.jacrev(lambda x: l.np.sin(x) * x[0]))(V),
    "several trees": lambda l: l.grad(lambda p, x, s: l.np.sum(p.w @ x + p.b) * s, argnums=(0, 2))(
        Pair(W.T, onp.ones(4)), V, 2.0
    ),
    "a None in a tree": lambda l: l.grad(lambda p: l.np.sum(p["a"] ** 2))({"a": V, "b": None, "c": ()}),
    "has_aux": lambda l: l.value_and_grad(lambda x: (l.np.sum(x**2), {"y": x * 2}), has_aux=True)(V),
    "stop_gradient": lambda l: l.grad(lambda x: l.np.sum(x * l.stop_gradient(x)))(V),
    "while": lambda l: l.grad(grown)(l.np.asarray(abs(V))),
    "Newton's step": lambda l: l.np.linalg.solve(
        l.hessian(lambda x: loss(l.np, W, x) + x @ x)(V), l.grad(lambda x: loss(l.np, W, x) + x @ x)(V)
    ),
    "a gradient step inside": lambda l: l.grad(lambda w: adapted(l, w))(W),
    "unrolled descent": lambda l: (
        l.grad(lambda r: unrolled(l, r))(0.01),
        l.grad(l.grad(lambda r: unrolled(l, r)))(0.01),
    ),
    "complex argument": lambda l: l.grad(lambda z: l.np.abs(l.np.sum(z**2)))(B[0] + 1j * B[1]),
    "holomorphic, forward": lambda l: l.jvp(l.np.exp, (B[0] + 1j * B[1],), (1j * B[2],))[1],
    "a guarded root": lambda l: l.grad(
        lambda x: l.np.where(x.sum() > 0, l.np.sqrt(l.np.where(x.sum() > 0, x.sum(), 1.0)), 0.0)
    )(onp.zeros(3)),
    "ties": lambda l: l.grad(lambda x: l.np.max(x))(onp.array([1.0, 1.0, 0.0])),
    "spectrum and sums": lambda l: l.vmap(
        lambda x: l.np.abs(l.np.fft.fft(x)) + l.np.cumsum(x) + l.np.einsum("i,ij->j", x, K[0])
    )(B),
    "lists of arrays": lambda l: l.vmap(lambda x: l.np.concatenate([x, l.np.stack([x[0], x[1]])]))(B),
    "numbers": lambda l: l.vmap(lambda s: l.np.ones(3) * s + l.np.array([s, 2.0, s]))(V),
    "writes": lambda l: l.vmap(lambda x: scattered(l.np, x))(B),
    "through writes": lambda l: l.grad(lambda b: l.np.sum(l.vmap(lambda x: scattered(l.np, x))(b) ** 3))(B),
}


@cache
def jax_and_ours() -> tuple[SimpleNamespace, SimpleNamespace]:
    jax = pytest.importorskip("jax")
    names = ("grad", "vmap", "jvp", "vjp", "hessian", "value_and_grad")
    theirs = SimpleNamespace(
        np=jax.numpy, jacfwd=jax.jacfwd, jacrev=jax.jacrev, stop_gradient=jax.lax.stop_gradient,
        **{n: getattr(jax, n) for n in names},
    )  # fmt: skip
    ours = SimpleNamespace(
        np=np, jacfwd=lambda f: minnp.jacobian(f, mode="forward"), jacrev=minnp.jacobian,
        stop_gradient=minnp.stop_gradient, **{n: getattr(minnp, n) for n in names},
    )  # fmt: skip
    return theirs, ours


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.long
@pytest.mark.dealt("newest", "torch")
@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxs_programs_have_its_results(name: str) -> None:
    import jax

    theirs, ours = jax_and_ours()
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        wanted = [onp.asarray(x) for x in jax.tree_util.tree_leaves(PROGRAMS[name](theirs))]
    finally:
        jax.config.update("jax_enable_x64", before)
    close(PROGRAMS[name](ours), wanted, 1e-9)


def test_arrays_without_axes_are_written_to_under_vmap() -> None:
    def through_a_view(s: Any) -> Any:
        y = np.zeros(())
        view = y[...]
        view[...] = s
        y += 1
        return y * view

    def of_a_copy(s: Any) -> Any:
        y = np.array(s)
        before = s
        y += 1.0
        before += 5.0  # a number: this makes another one
        return y * s

    for f, wanted, slope in ((through_a_view, (V + 1) ** 2, 2 * (V + 1)), (of_a_copy, (V + 1) * V, 2 * V + 1)):
        close(minnp.vmap(f)(V), wanted)
        close(minnp.vmap(minnp.grad(f))(V), slope)
        close(minnp.grad(lambda v: minnp.vmap(f)(v).sum())(V), slope)  # noqa: B023


@pytest.mark.parametrize(
    ("options", "match"),
    [({"in_axes": ((0, 0, 0),)}, "in_axes do not fit"), ({"out_axes": (0, 0)}, "out_axes do not fit")],
)
def test_axes_that_do_not_fit_are_named(options: dict, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        minnp.vmap(lambda p: p[0] + p[1], **options)((B, B))
