"""Transformations against each other and against finite differences, in every order of composition."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    elementwise_grad,
    fx,
    grad,
    grad_and_loss,
    hessian,
    hvp,
    jacobian,
    jit,
    jvp,
    make_ggnvp,
    nn,
    value_and_grad,
    vjp,
    vmap,
)
from minnp.core.rows.primitive import Primitive
from minnp.errors import NotDifferentiableError
from minnp.testing import check_grads

RNG = onp.random.default_rng(0)
X, V, A = RNG.uniform(0.3, 1, 3), RNG.standard_normal(3), RNG.standard_normal((4, 3))
BATCH = RNG.uniform(0.3, 1, (5, 3))


def vector(x: Any) -> Any:
    return np.tanh(A @ x) * x.sum()


def scalar(x: Any) -> Any:
    b = np.zeros(4)
    view = b[1:]
    b[0] = x[0] ** 2
    view[...] = vector(x)[1:]
    b *= np.exp(-b)
    return np.linalg.norm(b) + np.max(x) + np.sort(x)[1] * x.mean()


def close(a: Any, b: Any, tol: float = 1e-9) -> None:
    onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda x: jvp(np.sum, (x,), (x,)),
        lambda x: jacobian(np.square)(x),
        lambda x: jacobian(np.square, mode="forward")(x),
        lambda x: hessian(np.sum)(x),
        lambda x: hvp(np.sum)(x, x),
    ],
    ids=["jvp", "jacobian", "forward", "hessian", "hvp"],
)
def test_arrays_of_integers_have_no_derivatives(derivative: Any) -> None:
    for x in (onp.arange(3), onp.array([True, False])):
        with pytest.raises(TypeError, match="only floats and complex numbers have derivatives"):
            derivative(np.array(x))
    assert float(jvp(lambda x: x * 0.5, (3,), (1,))[1]) == 0.5  # Python's integers count as floats


def picked(t: Any) -> Any:
    y = np.zeros(3)
    y[t["i"]] = t["x"][t["i"]] ** 2 + t["x"][[t["i"][0], 0]]
    return np.sum(y)


def read_under_vmap(t: Any) -> Any:
    return np.sum(vmap(lambda i: t["x"][i] ** 2)(t["i"]))


@pytest.mark.parametrize("transform", [grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))], ids=["", "of", "in"])
def test_integers_among_the_differentiated_arguments_index(transform: Any) -> None:
    """A tree of parameters may hold the places that it is read at: no gradient goes through them."""
    tree = {"x": np.array([1.0, 2.0, 3.0]), "i": np.array([1, 2])}
    for f, wanted in ((picked, [1, 5, 6]), (read_under_vmap, [0, 4, 6])):
        slopes = transform(f)(tree)
        assert slopes["x"].tolist() == wanted
        assert slopes["i"].tolist() == [0, 0]
    assert transform(lambda t: np.sum(t["x"][t["m"]]))({**tree, "m": tree["x"] > 1})["x"].tolist() == [0, 1, 1]
    with pytest.raises(IndexError, match="must be of integer"):
        transform(lambda x: np.sum(x[x]))(tree["x"])
    with pytest.raises(NotDifferentiableError, match="int64"):
        transform(lambda t: np.sum(t["x"][1:] * t["i"]))(tree)


def test_the_value_of_a_function_without_slope_is_an_array_as_any_other() -> None:
    pair = value_and_grad(lambda x: np.sum(np.round(x)))
    for value, slope in (pair(np.ones(2)), jit(pair)(np.ones(2)), value_and_grad(np.sum)(np.ones(2))):
        assert isinstance(value, np.ndarray) and value.shape == () and value == 2
        assert slope.shape == (2,)


def test_what_depends_on_shapes_alone_moves_in_neither_mode() -> None:
    def product(x: Any) -> Any:
        path, text = np.einsum_path("ij,jk,kl->il", x, x, x, optimize="greedy")
        assert type(path) is list and type(text) is str
        return np.sum(np.einsum("ij,jk,kl->il", x, x, x, optimize=path))

    x = np.eye(2)
    onp.testing.assert_array_equal(jvp(product, (x,), (x + 1,))[1], np.sum(grad(product)(x) * (x + 1)))
    along = lambda x: jvp(product, (x,), (x + 1,))[1]
    onp.testing.assert_allclose(grad(along)(x), hvp(product)(x, x + 1) + grad(product)(x), rtol=1e-12)


def test_jacobians_of_both_modes_agree() -> None:
    both = jacobian(vector)(X), jacobian(vector, mode="forward")(X)
    assert both[0].shape == (4, 3)
    close(*both)
    check_grads(vector, (X,), order=3)
    check_grads(scalar, (X,), order=2)


def test_second_derivatives_agree_in_every_composition() -> None:
    h = hessian(scalar)(X)
    close(h, jacobian(grad(scalar))(X))
    close(h, jacobian(jacobian(scalar, mode="forward"))(X))
    close(h @ V, hvp(scalar)(X, V))
    close(h @ V, grad(lambda x: (grad(scalar)(x) * V).sum())(X))
    close(h @ V, grad(lambda x: jvp(scalar, (x,), (V,))[1])(X))
    close(V @ onp.asarray(h) @ V, jvp(lambda x: jvp(scalar, (x,), (V,))[1], (X,), (V,))[1])


def test_vmap_is_a_loop() -> None:
    for f in (vector, scalar, grad(scalar), hessian(scalar), lambda x: x if x.sum() > 2 else 2 * x, jacobian(vector)):
        close(vmap(f)(BATCH), onp.array([onp.asarray(f(x)) for x in BATCH]))
    close(vmap(lambda x, y: x * y, in_axes=(0, None), out_axes=1)(BATCH, V), (BATCH * V).T)
    close(vmap(lambda x: x.sum(), in_axes=1)(BATCH), BATCH.sum(0))
    with pytest.raises(ValueError, match=r"axis 0 of an argument of shape \(\)"):
        vmap(lambda x: x)(1.0)
    close(grad(lambda b: vmap(scalar)(b).sum())(BATCH), vmap(grad(scalar))(BATCH))
    with pytest.raises(ValueError, match="batch size"):
        vmap(lambda x, y: x + y)(BATCH, V)


def test_checkpoint_changes_memory_only() -> None:
    runs = []

    def layer(x: Any) -> Any:
        runs.append(1)
        return {"a": np.exp(x) * np.sin(x)}

    def wrapped(x: Any) -> Any:
        return np.sum(checkpoint(layer)(x)["a"] ** 2)

    def plain(x: Any) -> Any:
        return np.sum((np.exp(x) * np.sin(x)) ** 2)

    close(grad(wrapped)(X), grad(plain)(X))
    assert len(runs) == 1
    close(hessian(wrapped)(X), hessian(plain)(X))
    close(jvp(wrapped, (X,), (V,))[1], jvp(plain, (X,), (V,))[1])


@pytest.mark.parametrize("wrong", [(3, 2), (2, 4), (6,), (0, 3)])
def test_a_rule_whose_cotangent_does_not_fit_is_refused(wrong: tuple[int, ...]) -> None:
    double = custom_vjp(lambda x: x * 2)
    double.defvjp(lambda x: (x * 2, None), lambda saved, g: np.ones(wrong))
    rows = [Primitive("doubled", lambda x: x * 2, vjp=[lambda g, y, x: onp.ones(wrong)])]
    rows += [Primitive("doubled", lambda x: x * 2, vjp=lambda i, g, y, x: onp.ones(wrong))]
    for f in [double, *rows]:
        with pytest.raises(ValueError, match="broadcast"):
            grad(lambda x, f=f: f(x + 0).sum())(np.ones((2, 3)))


def test_custom_rules() -> None:
    @custom_vjp
    def product(x: Any, y: Any) -> Any:
        return x * y

    with pytest.raises(TypeError, match="no rule yet"):
        product(X, X)
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, g: (10 * g * saved[1], g * saved[0]))
    close(product(X, V), X * V)
    close(grad(lambda x: product(x, x).sum())(X), 11 * X)
    close(jacobian(grad(lambda x: product(x, x).sum()))(X), 11 * onp.eye(3))

    @custom_jvp
    def sine(x: Any) -> Any:
        return np.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(*primals), 5 * np.cos(primals[0]) * tangents[0]))
    close(grad(lambda x: sine(x).sum())(X), 5 * onp.cos(X))
    close(jvp(sine, (X,), (V,))[1], 5 * onp.cos(X) * V)


@pytest.mark.parametrize("argnums", [(0, 0), (0, 1, -2), (1, "y"), ["x", 0]])
def test_an_argument_that_is_asked_for_twice_is_refused(argnums: Any) -> None:
    for of in (grad, value_and_grad, lambda f, k: jit(grad(f, k))):
        with pytest.raises(ValueError, match="twice"):
            of(lambda x, y: np.sum(x * y), argnums)(X, V)
    x, y = grad(lambda x, y: np.sum(x * y), (-2, "y"))(X, V)
    onp.testing.assert_array_equal(onp.stack([x, y]), onp.stack([V, X]))


def test_trees_names_and_aux() -> None:
    Pair = namedtuple("Pair", "w b")

    @dataclass
    class Model:
        w: Any
        parts: Any

    def loss(p: Any, scale: Any = 1.0) -> Any:
        return (p.w @ X).sum() * scale + (p.b**2).sum()

    g = grad(loss)(Pair(A, onp.array([2.0])))
    assert type(g) is Pair
    close(g.w, onp.broadcast_to(X, (4, 3)))
    close(g.b, [4.0])
    gm = grad(lambda m: (m.w * 2).sum() + m.parts["k"][0] * 3)(Model(X, {"k": [1.0, 5.0]}))
    close(gm.w, onp.full(3, 2.0))
    assert float(gm.parts["k"][0]) == 3 and float(gm.parts["k"][1]) == 0
    by_name = grad(loss, argnums="scale")(Pair(A, onp.array([2.0])), scale=2.0)
    close(by_name, (A @ X).sum())
    (value, aux), g = value_and_grad(lambda x: (x.sum(), {"n": x * 2}), has_aux=True)(X)
    close(value, X.sum())
    close(aux["n"], 2 * X)
    grads = grad(lambda x, y: (x * y).sum(), [0, 1])(X, V)
    assert type(grads) is list
    close(grads[0], V)


def test_gradients_have_their_arguments_shape_and_dtype() -> None:
    for dtype in (onp.float16, onp.float32, onp.float64, onp.complex64, onp.complex128):
        x = onp.ones((2, 1), dtype)
        g = grad(lambda x: np.real(x * onp.ones((3, 2, 4))).sum())(x)
        assert g.shape == x.shape and g.dtype == dtype
    unused = grad(lambda x, n: x.sum(), 1)(X, onp.arange(3))
    assert unused.dtype == onp.arange(3).dtype and not onp.asarray(unused).any()


@pytest.mark.parametrize("mean", [np.mean, lambda x: x.mean(), lambda x: np.mean(x.reshape(2, -1), 1).sum()])
def test_the_mean_of_more_elements_than_float16_can_count_has_a_gradient(mean: Any) -> None:
    n = 200_000
    g = grad(mean)(onp.ones(n, onp.float16))
    assert g.dtype == onp.float16
    exact = onp.full(n, (2 if mean(onp.ones((4, 1))) == 2 else 1) / n)
    onp.testing.assert_allclose(onp.asarray(g, float), exact, rtol=0.01)
    t = jvp(mean, (onp.ones(n, onp.float16),), (onp.ones(n, onp.float16),))[1]
    assert t.dtype == onp.float16 and float(t) == (2 if mean(onp.ones((4, 1))) == 2 else 1)


def test_no_silent_zero() -> None:
    with pytest.raises(NotDifferentiableError, match="float"):
        grad(lambda n: (n * 1.5).sum())(onp.arange(3))
    with pytest.raises(TypeError, match="float or complex"):
        grad(lambda n: (n**2).sum())(onp.arange(3))
    with pytest.raises(NotDifferentiableError, match="no gradient"):
        grad(lambda x: np.random.gamma(np.abs(x) + 1).sum())(X)


def test_ggnvp_and_elementwise() -> None:
    j = onp.asarray(jacobian(vector)(X))
    close(make_ggnvp(vector)(X)(V), j.T @ (j @ V))
    g = lambda y: np.sum(np.exp(y))
    close(make_ggnvp(vector, g)(X)(V), j.T @ (onp.exp(onp.asarray(vector(X))) * (j @ V)))
    close(elementwise_grad(np.tanh)(X), 1 - onp.tanh(X) ** 2)


def test_a_tape_does_not_survive_an_exception() -> None:
    from minnp.core.rows.state import state

    before = len(state.tapes), state.busy

    def fails(x: Any) -> Any:
        b = np.zeros(3)
        b[0] = x[0]
        raise KeyError("stop")

    for transform in (grad, lambda f: lambda x: vjp(f, x), lambda f: lambda x: jvp(f, (x,), (V,)), vmap):
        with pytest.raises(KeyError):
            transform(fails)(BATCH if transform is vmap else X)
    assert (len(state.tapes), state.busy) == before
    x = np.array(X)
    x[0] = 3.0
    assert float(x[0]) == 3.0


def test_check_grads_finds_planted_errors() -> None:
    from minnp.core.rows.primitive import TABLE

    for name in ("exp", "tanh", "multiply", "matmul", "sum", "linalg.inv"):
        row = TABLE[name]
        rules = list(row.vjp)
        f = {"multiply": lambda x: np.multiply(x, A[0]), "matmul": lambda x: x @ A.T, "linalg.inv": np.linalg.inv}.get(
            name, getattr(np, name.rpartition(".")[2], None)
        )
        x = X if name != "linalg.inv" else RNG.uniform(0, 1, (3, 3)) + 2 * onp.eye(3)
        check_grads(f, (x,), order=1, modes=("rev",))
        row.vjp = [lambda *a, rule=rules[0], **k: rule(*a, **k) * (1 + 1e-4), *rules[1:]]
        try:
            with pytest.raises(AssertionError, match="gradient"):
                check_grads(f, (x,), order=1, modes=("rev",))
        finally:
            row.vjp = rules


def test_threads_do_not_see_each_others_tapes() -> None:
    from concurrent.futures import ThreadPoolExecutor

    shared = np.array(X)

    def work(k: int) -> float:
        g = grad(lambda x: scalar(x) * k + (shared * 1.0).sum())(X)
        return float(onp.abs(onp.asarray(g) / k - onp.asarray(grad(scalar)(X))).max())

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(1, 41))) < 1e-9


def test_threads_may_share_parameters_that_grad_and_loss_lends() -> None:
    from concurrent.futures import ThreadPoolExecutor

    params = {"w": np.array(X)}
    step = minnp.grad_and_loss(lambda w, k: (params["w"] ** 2).sum() * k)

    def work(k: int) -> float:
        g, loss = step(params["w"], float(k))
        return max(abs(float(loss) - k * (X**2).sum()), float(onp.abs(onp.asarray(g) - 2 * k * X).max()))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(1, 200))) < 1e-9


@pytest.mark.parametrize("mode", ["edge", "constant", "reflect", "symmetric", "wrap", "linear_ramp", "mean", "maximum"])
def test_padding_by_nothing_has_a_gradient(mode: str) -> None:
    for width in (0, ((0, 1), (2, 0)), ((0, 0), (1, 1))):
        check_grads(lambda x: np.pad(x, width, mode=mode), (RNG.random((3, 4)),), order=2)  # noqa: B023


def test_stop_gradient_cuts() -> None:
    close(grad(lambda x: (x * np.stop_gradient(x)).sum())(X), X)
    assert minnp.stop_gradient is np.stop_gradient


def test_vmap_does_not_batch_arrays_from_outside() -> None:
    outside, fixed = np.zeros(3), np.ones(3)

    def writes(x: Any) -> Any:
        outside[0] = x.sum()
        return outside * 2

    def writes_argument(x: Any, y: Any) -> Any:
        y[1:][0] = x.sum()
        return y.sum()

    for call in (
        lambda: vmap(writes)(BATCH),
        lambda: vmap(grad(lambda x: writes(x).sum()))(BATCH),
        lambda: grad(lambda b: vmap(writes)(b).sum())(BATCH),
        lambda: vmap(writes_argument, in_axes=(0, None))(BATCH, fixed),
    ):
        with pytest.raises(minnp.errors.TracedValueError, match="made outside it"):
            call()
        close(outside, onp.zeros(3))
        close(fixed, onp.ones(3))

    def inside(x: Any) -> Any:
        y = np.zeros(3)
        view = y[1:]
        view[0] = x.sum()
        loop = [y]
        loop.append(loop)  # a cycle keeps y until the collector comes
        return view, y

    view, y = vmap(inside)(BATCH)
    close(view[:, 0], BATCH.sum(1))
    close(y[:, 1], BATCH.sum(1))


def test_a_loop_that_fills_a_buffer_costs_its_slices() -> None:
    """T writes of n elements take memory and work of order T n: forward, backward, and what the tape keeps."""
    import tracemalloc

    from minnp.core.rows.primitive import TABLE

    n = 4096

    def fill(x: Any, steps: int) -> Any:
        buffer = np.zeros((steps, n))
        for t in range(steps):
            buffer[t] = x * (t + 1.0)
        return np.sum(buffer)

    def peak(steps: int) -> int:
        x = np.ones(n)
        grad(lambda x: fill(x, 2))(x)
        tracemalloc.start()
        try:
            g = grad(lambda x: fill(x, steps))(x)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        close(g, onp.full(n, steps * (steps + 1) / 2))
        return most

    copied = []
    kernel = TABLE["write_view"].numpy

    def watched(old: Any, new: Any, *args: Any, donate: bool = False, **params: Any) -> Any:
        copied.append(0 if donate else old.size)
        return kernel(old, new, *args, donate=donate, **params)

    minnp.memory_reuse(False)
    TABLE["write_view"].numpy = watched
    try:
        few, many = peak(50), peak(400)
    finally:
        TABLE["write_view"].numpy = kernel
        minnp.memory_reuse(True)
    # eight times the steps, eight times the memory; one copy of the buffer for each step would be 64 times
    assert many < 10 * few
    assert many < 6 * 400 * n * 8
    # no step copies the buffer: at most the cotangent does, once
    assert sum(copied) <= 450 * n + 2 * 2 * n, copied[:10]


def test_an_argument_that_does_not_matter_locally_has_no_tangent() -> None:
    check_grads(lambda x: np.heaviside(x - 0.7, 0.5) * x, (X,))
    close(jvp(lambda x: np.heaviside(x, 0.5), (X,), (V,))[1], onp.zeros(3))
    close(jvp(lambda h: np.heaviside(onp.array([0.0, 1.0]), h), (0.5,), (2.0,))[1], [2.0, 0.0])


def test_a_result_that_is_no_number_has_no_gradient() -> None:
    for f, what in (
        (lambda x: None, r"None \(is a return missing\?\)"),
        (lambda x: x > 2, "bool"),
        (np.argmax, "int64"),
    ):
        with pytest.raises(TypeError, match=f"returned {what}.*: only a float or complex result"):
            grad(f)(np.array([1.0, 2.0]))
    gradient = grad(lambda x: (np.sum(x**2), np.argmax(x)))(np.array([1.0, 2.0]))  # what else is there does not matter
    onp.testing.assert_array_equal(gradient, [2.0, 4.0])
    onp.testing.assert_array_equal(grad(lambda x: np.sum(x[onp.int64(x)]))(np.array([1.0, 1.0])), [0.0, 2.0])


def test_check_grads_takes_trees() -> None:
    check_grads(lambda p, xs: p["w"] * xs[0] + p["b"] * xs[1], ({"w": 0.5, "b": X}, [X, 1.5]))
    check_grads(np.concatenate)([X, X + 1])
    with pytest.raises(AssertionError, match="argument 1"):
        check_grads(lambda p: p["w"] * np.stop_gradient(p["b"]), ({"w": 0.5, "b": X},))


def test_tangents_of_several_results_have_their_shapes():
    x, y = np.full((2, 3), 7.0), np.array([2.0, 3.0, 4.0])
    (quotient, rest), (_, slope) = jvp(lambda y: np.divmod(x, y), (y,), (np.ones(3),))
    assert quotient.shape == rest.shape == slope.shape == (2, 3)
    assert np.array_equal(slope, -quotient)


@pytest.mark.parametrize("argument", [onp.array([1.0, 2.0]), onp.array([1.0, 2.0], "f4"), 3.0])
def test_a_complex_result_of_real_arguments_has_no_gradient(argument: Any) -> None:
    f = lambda x: np.sum(x * 1j)
    x = np.array(argument)
    ways = [grad(f), value_and_grad(f), jit(grad(f)), grad(jit(f)), hessian(f), elementwise_grad(lambda x: x * 1j)]
    ways += [lambda x: vmap(grad(f))(x[None]), jit(hessian(f)), grad(lambda x: (f(x), x.sum())), lambda x: hvp(f)(x, x)]
    for way in ways:
        for _ in range(2):
            with pytest.raises(TypeError, match=r"would lose the imaginary part.*np.real"):
                way(x)
    both = lambda z, x: np.sum(z * x)
    with pytest.raises(TypeError, match="would lose the imaginary part"):
        grad(both, (0, 1))(x + 1j, x)
    close(grad(both)(x + 1j, x), onp.asarray(x) + 0j * onp.asarray(x))
    close(grad(lambda x: np.imag(f(x)))(x), onp.ones_like(onp.asarray(x)))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_the_jacobian_of_a_complex_result_of_a_real_argument_is_complex(mode: str) -> None:
    x = np.array([1.0, 2.0])
    f = lambda x: {"z": x**2 * 1j + x, "r": 3 * x}
    for jac in (jacobian(f, mode=mode), jit(jacobian(f, mode=mode))):
        out = jac(x)
        close(out["z"], onp.diag([1 + 2j, 1 + 4j]))
        close(out["r"], 3 * onp.eye(2))
        assert out["r"].dtype == float


SCANNED = ["maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2"]


@pytest.mark.parametrize("name", SCANNED)
def test_gradients_of_accumulate_and_reduce_are_those_of_the_calls_in_turn(name: str) -> None:
    f = getattr(np, name)
    x = onp.array([1.0, 3.0, 3.0, 2.0, 3.0, 5.0, 5.0, -1.0])

    def in_turn(x: Any) -> Any:
        total, out = x[0] * 1, x[0] * 1
        for k in range(1, 8):
            total = f(total, x[k])
            out = out + total * (k + 1)
        return out

    at_once = lambda x: (f.accumulate(x) * np.arange(1, 9)).sum()
    last = lambda x: functools.reduce(f, [x[k] for k in range(8)])
    for ours, theirs in ((at_once, in_turn), (f.reduce, last)):
        want = grad(theirs)(x)
        close(ours(x), theirs(x))
        close(grad(ours)(x), want)
        close(jit(grad(ours))(np.array(x)), want)
        close(hessian(ours)(x), hessian(theirs)(x))
        close(jvp(ours, (x,), (onp.cos(x),))[1], (want * onp.cos(x)).sum())
        close(vmap(grad(ours))(np.array([x, 2 * x])), onp.array([want, grad(theirs)(2 * x)]))
    m, kernel = x.reshape(2, 4), getattr(onp, name)
    for axis, keepdims in ((0, True), (1, False), ((0, 1), False)):
        columns = functools.partial(f.reduce, axis=axis, keepdims=keepdims)
        close(vjp(columns, m)[0], kernel.reduce(m, axis=axis, keepdims=keepdims))
        # in each column the shares come to one
        got = grad(lambda x, c=columns: (c(x) ** 2).sum())(m).sum(axis=axis, keepdims=keepdims)
        close(got, 2 * kernel.reduce(m, axis=axis, keepdims=keepdims))
    close(f.reduce(m, initial=4.0), getattr(onp, name).reduce(m, initial=4.0))


@pytest.mark.parametrize("name", SCANNED)
def test_gradients_of_long_scans_take_no_loop(name: str) -> None:
    x = np.array(onp.random.default_rng(0).normal(size=40_000))
    for method in (getattr(np, name).accumulate, getattr(np, name).reduce):
        assert len(vjp(method, x)[1].trace.nodes) <= 3


def _caught(x: Any) -> Any:
    try:
        x *= 2
    except ValueError:
        return (x * x).sum()
    return x.sum()


def _read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


WAYS = {
    "grad": grad,
    "grad of jit": lambda f: grad(jit(f)),
    "jit of grad": lambda f: jit(grad(f)),
    "grad of grad": lambda f: grad(lambda x: grad(f)(x).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (np.ones(2),)),
    "vmap": lambda f: lambda x: vmap(f)(x[None]),
    "vmap of grad": lambda f: lambda x: vmap(grad(f))(x[None]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("made", ["of ours", "of NumPy", "broadcast"])
def test_read_only_arguments_are_read_only_in_a_transformation(way: Any, made: str) -> None:
    x = np.array([1.0, 2.0])
    x = {"of ours": x, "of NumPy": onp.array(x), "broadcast": np.broadcast_to(x[:1], 2)}[made]
    if made != "broadcast":
        _read_only(x)
    before = onp.array(x)
    for write in (lambda x: x.__setitem__(0, 7.0), lambda x: x.__imul__(2), lambda x: x[1:].fill(3.0)):

        def f(x: Any, write: Any = write) -> Any:
            write(x)
            return x.sum()

        with pytest.raises(ValueError, match="read-only"):
            way(f)(x)
    as_arrays = lambda found: [onp.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]
    for got, want in zip(as_arrays(way(_caught)(x)), as_arrays(way(lambda x: (x * x).sum())(x)), strict=True):
        assert (got == want).all()
    assert (onp.asarray(x) == before).all()


def test_an_argument_is_named_however_it_is_given() -> None:
    f = lambda a, b=3.0, *more, c=1.0: a**2 * b * c
    assert minnp.grad(f, "a")(2.0, 3.0) == minnp.grad(f, "a")(a=2.0) == 12
    assert minnp.grad(f, ["a", "c", "b"])(2.0, b=3.0, c=2.0) == [24, 12, 8]
    assert minnp.value_and_grad(f, "b", has_aux=False)(2.0, 3.0) == (12, 4)
    assert minnp.grad(lambda a, b: (a * b, a), "b", has_aux=True)(2.0, 3.0) == (2, 2)
    assert minnp.jit(minnp.grad(f, "b"))(2.0, 3.0) == minnp.grad(minnp.grad(f, "a"), "b")(1.0, 3.0) * 2 == 4
    x = np.array([1.0, 2.0])
    assert minnp.jacobian(f, "a")(x).tolist() == [[6, 0], [0, 12]]
    assert minnp.hessian(lambda a, b: (a * b**2).sum(), "b")(x, x).tolist() == [[2, 0], [0, 4]]
    for absent in ("c", "d", "more"):
        with pytest.raises(TypeError, match=f"asks for argument '{absent}'"):
            minnp.grad(f, absent)(2.0, 3.0, 4.0)


@pytest.mark.parametrize("of_n", [0.0, None, np.zeros(())])
def test_a_rule_may_say_something_of_an_integer_that_goes_nowhere(of_n):
    @custom_vjp
    def power(n, x):
        return x**n

    power.defvjp(lambda n, x: (power(n, x), (n, x)), lambda saved, g: (of_n, g * saved[0] * saved[1] ** (saved[0] - 1)))
    assert grad(lambda x: power(3, x))(2.0) == grad(lambda x: power(3.0, x))(2.0) == 12


def test_a_rule_that_says_too_little_of_a_container_is_refused():
    total = custom_vjp(lambda pair: pair[0] + pair[1])
    total.defvjp(lambda pair: (total(pair), None), lambda saved, g: ((g,),))
    with pytest.raises(TypeError, match="returned 1 cotangents for an argument that holds 2"):
        grad(lambda x: total((x, x)))(1.0)


@pytest.mark.parametrize("p", [2.0, 0.5, 3.0, -1.0, 1.0, 1.7])
def test_a_power_is_one_of_its_exponent_whatever_that_is_now(p):
    x = np.array([1.0, 2.0, 3.0])
    for f in (
        lambda p: np.sum(np.where(np.sum(x) == 0, 1.0, np.sum(x)) ** p),
        lambda p: np.sum((x * p / p) ** p),
        lambda p: np.sum(np.array([1.0, 2, 3]).astype(int) ** p),
        lambda p: np.linalg.norm(x, p),
    ):
        expected = (float(f(p + 1e-6)) - float(f(p - 1e-6))) / 2e-6
        for slope in (grad(f), jit(grad(f)), grad(jit(f)), lambda p, f=f: jvp(f, (p,), (1.0,))[1]):
            assert abs(float(slope(p)) - expected) < 1e-4


def test_custom_jvp_takes_arguments_by_name() -> None:
    @custom_jvp
    def f(a, b=3.0):
        return a * b

    f.defjvp(lambda p, t: (f(*p), p[1] * t[0] + p[0] * t[1]))
    assert f(2.0, b=4.0) == 8.0
    assert grad(lambda a: f(a, b=2.0))(3.0) == 2.0
    assert grad(lambda a: f(b=a, a=5.0))(3.0) == 5.0
    assert grad(lambda a: f(a=a))(2.0) == 3.0


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobians_of_trees(mode):
    p = {"a": np.array([1.0, 3.0]), "b": 2.0}
    f = lambda p: (p["a"] * p["b"], {"s": p["a"].sum()})
    for run in (jacobian(f, mode=mode), jit(jacobian(f, mode=mode))):
        product, total = run(p)
        assert product["a"].tolist() == [[2, 0], [0, 2]] and product["b"].tolist() == [1, 3]
        assert total["s"]["a"].tolist() == [1, 1] and total["s"]["b"] == 0
    one = jacobian(lambda x: (x, x[0] * 1j), mode=mode)(np.ones(2))
    assert one[0].tolist() == [[1, 0], [0, 1]] and one[1].tolist() == [1j, 0]


def test_hessians_of_trees():
    h = hessian(lambda p: np.sum(p["a"] ** 2) * p["b"])({"a": np.array([1.0, 3.0]), "b": 2.0})
    assert h["a"]["a"].tolist() == [[4, 0], [0, 4]] and h["b"]["b"] == 0
    assert h["a"]["b"].tolist() == h["b"]["a"].tolist() == [2, 6]


def test_jacobians_of_several_arguments_say_how():
    with pytest.raises(TypeError, match=r"write lambda p: f\(\*p\)"):
        jacobian(lambda a, b: a * b, (0, 1))(np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="got str"):
        jacobian(lambda p: p["a"])({"a": np.ones(2), "b": "text"})


@custom_vjp
def clip(x: Any) -> Any:
    return x


clip.defvjp(forward=lambda x: (x, None), backward=lambda saved, g: (np.clip(g, -1, 1),))


@custom_jvp
def doubled(x: Any) -> Any:
    return x * 2


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 3 * tangents[0]))


def cube(x: Any, y: float = 1.0) -> Any:
    """A cube."""
    return np.sum(x**3) * y


@grad
def slope_of_cube(x: Any) -> Any:
    return np.sum(x**3)


class Cube:
    def __init__(self) -> None:
        self.factor = 2.0

    def volume(self, x: Any) -> Any:
        return self.factor * x**3

    @checkpoint
    def kept(self, x: Any) -> Any:
        return self.factor * x**3


OF_FUNCTIONS = [grad, value_and_grad, grad_and_loss, jacobian, hessian, hvp, vmap, checkpoint, jit]


@pytest.mark.parametrize("transform", OF_FUNCTIONS, ids=lambda t: t.__name__)
def test_what_transformations_return_is_pickled_where_the_function_is(transform: Any) -> None:
    made = transform(cube)
    again = pickle.loads(pickle.dumps(made))
    assert repr(made) == repr(again) == f"<{transform.__name__} of cube>"
    arguments = (np.array([1.0, 2.0]),) * (2 if transform is hvp else 1)
    assert repr(made(*arguments)) == repr(again(*arguments))
    if transform is not hvp:
        assert (made.__name__, made.__doc__) == ("cube", "A cube.")
        assert list(inspect.signature(made).parameters) == ["x", "y"]


def test_options_of_transformations_are_pickled_and_decorated_functions_are_found_by_name() -> None:
    made = pickle.loads(pickle.dumps(vmap(grad(cube, argnums=(0, 1)), in_axes=(0, None))))
    assert repr(made) == "<vmap of grad of cube>"
    assert [g.tolist() for g in made(np.ones((2, 1)), 2.0)] == [[[6.0], [6.0]], [1.0, 1.0]]
    assert pickle.loads(pickle.dumps(slope_of_cube)) is slope_of_cube
    assert pickle.loads(pickle.dumps(grad(Cube().volume)))(1.0) == 6
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(grad(lambda x: x))


def test_what_transformations_return_is_a_method_in_a_class() -> None:
    assert Cube().kept(1.0) == 2 and grad(Cube().kept)(1.0) == 6
    assert Cube.kept(Cube(), 1.0) == 2


@pytest.mark.parametrize(("f", "y", "slope"), [(clip, 1.0, 1.0), (doubled, 2.0, 15.0)])
def test_functions_with_rules_are_copied_pickled_and_traced_as_functions(f: Any, y: float, slope: float) -> None:
    assert copy.deepcopy(f) is copy.copy(f) is pickle.loads(pickle.dumps(f)) is f
    x, plus_one = np.ones(2), lambda x: f(x) + 1
    for gm in (fx.capture(plus_one, x), fx.symbolic_trace(plus_one)):  # clip is not np.clip in it
        assert gm(x).tolist() == [y + 1, y + 1]
        assert grad(lambda x, gm=gm: 5 * gm(x).sum())(x).tolist() == [slope, slope]
    net = nn.Sequential(nn.Linear(2, 2), nn.Lambda(f)).init(0)
    onp.testing.assert_array_equal(copy.deepcopy(net)(np.ones((1, 2))), net(np.ones((1, 2))))


def test_vjp_gives_what_a_function_returns_beside_its_result() -> None:
    f = lambda x: (np.sum(x**2), {"doubled": 2 * x})
    for run in (lambda x: vjp(f, x, has_aux=True), jit(lambda x: vjp(f, x, has_aux=True)[::2])):
        y, *_, aux = run(np.array([1.0, 2.0]))
        assert float(y) == 5 and aux["doubled"].tolist() == [2, 4]
    y, pull, _ = vjp(f, np.array([1.0, 2.0]), has_aux=True)
    assert pull(1.0)[0].tolist() == [2, 4]
    with pytest.raises(TypeError, match=r"returns \(result, aux\)"):
        vjp(np.sum, np.ones(2), has_aux=True)
