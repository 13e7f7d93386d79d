"""Every transformation around every other one: the answers are those of the derivatives written out."""

from __future__ import annotations

import enum
import importlib.util
import itertools
from collections import namedtuple
from collections.abc import Callable, Iterator
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
    grad,
    hessian,
    hvp,
    jacobian,
    jit,
    jvp,
    make_ggnvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from minnp.primitive import customop
from tests import accelerator

X = onp.array([0.3, 0.7, 1.1])
INSTALLED = [name for name in ("mxnet", "torch") if importlib.util.find_spec(name)]


# The subject: x -> x**3 element by element, in ways a transformation may stumble over. Its derivatives are known.
def power(x: Any) -> Any:
    return x * x * x


def written(x: Any) -> Any:
    """The cube by writes into a buffer, through a view."""
    y = np.array(0 * x)
    view = y[...]
    view[...] = x
    y *= x
    view *= x
    return y


def branched(x: Any) -> Any:
    """The cube behind a branch on data and a mask."""
    return x**3 if x.sum() > -100 else x * 0


def masked(x: Any) -> Any:
    return np.where(x > -100, x, 1.0) ** 3


@custom_vjp
def by_rule(x: Any) -> Any:
    return x**3


by_rule.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))


@custom_jvp
def by_tangent(x: Any) -> Any:
    return x**3


by_tangent.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))


def fallen_back(x: Any) -> Any:
    """The cube with a factor from NumPy alone, through which no gradient needs to flow."""
    return x**3 * np.unwrap(np.stop_gradient(x) * 0 + 1)


SUBJECTS = [power, written, branched, masked, by_rule, by_tangent, fallen_back]


# A transformation here takes a function that acts element by element (result like its argument) to another such one,
# and says what that does to x -> a(x): (derivatives taken, factor). So any chain of them has a known answer.
def seeded(f: Callable) -> Callable:
    return lambda x: vjp(f, x)[1](np.ones(x.shape, x.dtype))[0]


def tangent(f: Callable) -> Callable:
    return lambda x: jvp(f, (x,), (np.ones(x.shape, x.dtype),))[1]


def diagonal(f: Callable, mode: str) -> Callable:
    return lambda x: jacobian(f, mode=mode)(x).sum(axis=-1)


TRANSFORMS: dict[str, tuple[Callable, int]] = {
    "grad": (lambda f: grad(lambda x: f(x).sum()), 1),
    "value_and_grad": (lambda f: lambda x: value_and_grad(lambda x: f(x).sum())(x)[1], 1),
    "elementwise_grad": (elementwise_grad, 1),
    "vjp": (seeded, 1),
    "jvp": (tangent, 1),
    "jacobian reverse": (lambda f: diagonal(f, "reverse"), 1),
    "jacobian forward": (lambda f: diagonal(f, "forward"), 1),
    "hessian": (lambda f: lambda x: hessian(lambda x: f(x).sum())(x).sum(axis=-1), 2),
    "hvp": (lambda f: lambda x: hvp(lambda x: f(x).sum())(x, np.ones(x.shape, x.dtype)), 2),
    "vmap": (lambda f: lambda x: vmap(f)(np.stack([x, x]))[0], 0),
    "vmap of elements": (vmap, 0),
    "jit": (jit, 0),
    "checkpoint": (checkpoint, 0),
    "stop_gradient": (lambda f: lambda x: f(x) + stop_gradient(f(x)) - stop_gradient(f(x)), 0),
}


def derivative(n: int, x: onp.ndarray) -> onp.ndarray:
    return [x**3, 3 * x**2, 6 * x, 6 * onp.ones_like(x), 0 * x, 0 * x, 0 * x][n]


def close(got: Any, want: Any) -> None:
    got = onp.asarray(got)
    assert got.shape == want.shape
    onp.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.dealt
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(TRANSFORMS, repeat=2)))
def test_every_pair(outer: str, inner: str, subject: Callable) -> None:
    (f, n), (g, m) = TRANSFORMS[outer], TRANSFORMS[inner]
    if "vmap of elements" in (outer, inner) and (outer == inner or subject in (written, fallen_back)):
        return  # an element has no elements; being a number, it has no views to write through, and is not unwrapped
    composed = f(g(subject))
    for _ in range(2):  # jit runs what it captured
        close(composed(np.array(X)), derivative(n + m, X))


TRIPLES = ["grad", "jvp", "vmap", "jit", "checkpoint", "jacobian forward"]


@pytest.mark.parametrize("names", list(itertools.permutations(TRIPLES, 3)), ids="-".join)
def test_triples(names: tuple) -> None:
    f, order = written, 0
    for name in reversed(names):
        transform, n = TRANSFORMS[name]
        f, order = transform(f), order + n
    for _ in range(2):
        close(f(np.array(X)), derivative(order, X))


def ways() -> list[str]:
    device = pytest.param("gpu:torch", marks=pytest.mark.gpu) if accelerator.loaded() else "cpu:torch"
    return ["only_numpy", *(f"prefer_{name}" for name in INSTALLED), *([device] if "torch" in INSTALLED else [])]


@pytest.fixture(params=ways())
def way(request: Any) -> Iterator[str]:
    kind, _, backend = request.param.partition(":")
    with minnp.Context(kind, backend=backend) if backend else minnp.policy(kind):
        yield request.param


@pytest.mark.parametrize("subject", [power, written, branched, fallen_back], ids=lambda f: f.__name__)
@pytest.mark.parametrize("outer", list(TRANSFORMS))
def test_on_every_backend(way: str, outer: str, subject: Callable) -> None:
    if outer == "vmap of elements" and subject in (written, fallen_back):
        return
    for inner in ("grad", "jvp", "vmap", "checkpoint"):
        (f, n), (g, m) = TRANSFORMS[outer], TRANSFORMS[inner]
        if outer == "vmap of elements" and inner == "vmap":
            continue
        close(f(g(subject))(np.array(X)), derivative(n + m, X))


# ------------------------------------------------------------------ what else a transformation must carry
Pair = namedtuple("Pair", "a b")


@dataclass
class Model:
    pair: Pair
    parts: dict


def energy(model: Model, scale: Any = 1.0, *, shift: Any = 0.0) -> Any:
    total = (model.pair.a**3).sum() + (model.pair.b * model.parts["k"][0]).sum()
    return scale * (total + shift**2)


MODEL = Model(Pair(X, 2 * X), {"k": [3 * X, 4.0]})


@pytest.mark.parametrize("around", ["", "jit", "checkpoint", "vmap", "grad again"])
def test_trees_and_names_under_every_transformation(around: str) -> None:
    f: Callable = energy
    if around == "jit":
        f = jit(energy)
    elif around == "checkpoint":
        f = checkpoint(energy)
    elif around == "grad again":
        f = lambda model, scale=1.0, *, shift=0.0: (
            grad(lambda s: energy(model, s, shift=shift) * s)(1.0) * scale / 2  # d(s * s * E)/ds / 2 is E
        )
    elif around == "vmap":
        f = lambda model, scale=1.0, *, shift=0.0: vmap(lambda m: energy(m, scale, shift=shift))(
            Model(Pair(model.pair.a[None], model.pair.b[None]), {"k": [model.parts["k"][0][None], np.zeros(1)]})
        )[0]
    g = grad(f)(MODEL, 2.0, shift=1.0)
    assert type(g) is Model and type(g.pair) is Pair and type(g.parts["k"]) is list
    close(g.pair.a, 6 * X**2)
    close(g.pair.b, 6 * X)
    close(g.parts["k"][0], 4 * X)
    assert float(g.parts["k"][1]) == 0
    close(grad(f, argnums="shift")(MODEL, 2.0, shift=1.5), onp.array(6.0))
    by_number, by_name = (
        value_and_grad(f, 1)(MODEL, 2.0)[1],
        grad(f, ("scale", "shift"))(MODEL, scale=2.0, shift=1.5),
    )
    close(by_number, onp.asarray((X**3).sum() + 6 * (X * X).sum()))
    close(by_name[1], onp.array(6.0))


def test_has_aux_under_every_transformation() -> None:
    f = lambda x: ((x**3).sum(), {"twice": 2 * x})
    g = grad(f, has_aux=True)
    for result in (g(X), jit(g)(np.array(X)), checkpoint(g)(X), grad(checkpoint(f), has_aux=True)(X)):
        close(result[0], 3 * X**2)
        close(result[1]["twice"], 2 * X)
    slopes, aux = vmap(g)(X[None])
    close(slopes[0], 3 * X**2)
    close(aux["twice"][0], 2 * X)
    close(grad(lambda x: g(x)[0].sum() + g(x)[1]["twice"].sum())(X), 6 * X + 2)


def test_ggnvp_composes() -> None:
    for f in (power, written, checkpoint(power), by_rule):
        j = onp.diag(3 * X**2)
        want = j.T @ (j @ X)
        close(make_ggnvp(f)(X)(X), want)
        close(jit(lambda v: make_ggnvp(f)(X)(v))(np.array(X)), want)  # noqa: B023
        close(vmap(make_ggnvp(f)(X))(onp.stack([X, 2 * X])), onp.stack([want, 2 * want]))
        close(grad(lambda v: (make_ggnvp(f)(X)(v) * v).sum())(X), 2 * want)  # noqa: B023


def test_a_traced_array_from_outside_a_checkpoint_gets_its_gradient() -> None:
    def layered(w: Any, x: Any) -> Any:
        return checkpoint(lambda h: h * w)(x).sum()

    for way in (grad(layered, (0, 1)), jit(grad(layered, (0, 1)))):
        for got, want in zip(way(np.array(X), np.array(3 * X)), (3 * X, X), strict=True):
            close(got, want)
    close(jit(layered)(X, X), (X * X).sum())
    close(vmap(layered)(X, X), X * X)


def test_a_traced_array_from_outside_is_no_silent_zero() -> None:
    def layered(w: Any, x: Any) -> Any:
        layer = by_rule.__class__(lambda h: h * w)
        layer.defvjp(lambda h: (h * w, None), lambda saved, g: (g * w,))
        return layer(x).sum()

    close(grad(layered)(X, X), X)  # w alone is traced: the call is not a row of its own
    for take in (lambda: grad(layered, (0, 1))(X, X), lambda: jit(layered)(X, X), lambda: vmap(layered)(X, X)):
        with pytest.raises(minnp.errors.TracedValueError, match="pass it in"):
            take()


def test_a_customop_composes() -> None:
    op = customop("numpy")(lambda x: onp.sinh(x))
    op.def_grad(lambda y, x: lambda g: g * onp.cosh(x))
    first = onp.cosh(X)
    close(grad(lambda x: op(x).sum())(X), first)
    close(jit(grad(lambda x: op(x).sum()))(np.array(X)), first)
    close(vmap(grad(lambda x: op(x).sum()))(X[None]), first[None])
    close(jvp(op, (X,), (onp.ones(3),))[1], first)
    close(grad(lambda x: checkpoint(op)(x).sum())(X), first)
    close(jacobian(op)(X), onp.diag(first))
    with pytest.raises(minnp.errors.NotDifferentiableError):
        hessian(lambda x: op(x).sum())(X)


@pytest.mark.parametrize("join", [np.vstack, np.hstack, np.dstack, lambda rows: np.atleast_2d(*rows)[-1]])
def test_functions_of_more_arrays_than_others_have_arguments(join: Callable) -> None:
    joined = lambda x: np.sum(join([x * k for k in range(100)])[-1] ** 2)
    want = grad(lambda x: np.sum(join([x * k for k in range(3)])[-1] ** 2))(X).size
    for make in (grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))):
        found = make(joined)(X)
        assert found.size == want and onp.isfinite(found).all() and found.any()


def test_members_of_enumerations_are_numbers() -> None:
    class Level(enum.IntEnum):
        HIGH = 2

    weighted = lambda x: x[0] * Level.HIGH + x.sum() * Level.HIGH
    close(weighted(np.array(X)), 2 * X[0] + 2 * X.sum())
    close(jit(weighted)(np.array(X)), 2 * X[0] + 2 * X.sum())
    close(grad(weighted)(X), onp.array([4.0, 2.0, 2.0]))
    close(vmap(weighted)(X[None]), onp.array([2 * X[0] + 2 * X.sum()]))


def test_parameters_may_be_arrays_on_numpys_memory() -> None:
    one, half = np.asarray(onp.array(1)), np.asarray(onp.array(0.5))
    m = np.array(onp.arange(9.0).reshape(3, 3))
    for f in (
        lambda m: np.linalg.matrix_rank(m, half),
        lambda m: m[:one],
        lambda m: np.isclose(m, m, half),
        lambda m: np.std(m, ddof=half),
        lambda m: np.triu(m, one).round(one),
        lambda m: np.isclose(np.ones(3), 0.0, half),
    ):
        for _ in range(2):
            onp.testing.assert_array_equal(jit(f)(m), f(m))


@pytest.mark.parametrize("make", [jit, lambda f: lambda x: vmap(f)(x[None])[0], lambda f: lambda x: vjp(f, x)[0]])
def test_every_output_has_the_shape_of_one_that_is_given(make: Callable) -> None:
    given = lambda k: tuple(np.zeros((2, 3)) if j == k else None for j in range(2))
    for f in (
        lambda x: np.modf(x, out=given(1)),
        lambda x: np.frexp(x, out=given(0)),
        lambda x: np.divmod(x, 2.0, out=given(0)),
    ):
        for k in range(2):
            onp.testing.assert_array_equal(make(lambda x: f(x)[k] * 1.0)(X), f(X)[k])  # noqa: B023


@pytest.mark.skipif(not hasattr(onp, "matvec"), reason="NumPy has no matvec")
def test_products_with_too_few_axes_are_refused() -> None:
    for f in (lambda x: np.matvec(x, x), lambda x: np.vecmat(x, x), lambda x: np.vecdot(x, x[0])):
        with pytest.raises(ValueError, match="does not have enough dimensions") as plain:
            f(onp.array(X))
        for make in (jit, grad):
            with pytest.raises(ValueError, match="does not have enough dimensions") as traced:
                make(f)(np.array(X))
            assert str(traced.value) == str(plain.value)


def test_comparisons_with_texts_and_dates() -> None:
    for other in (onp.array(["a", "b", "c"]), onp.array(["2020-01-01"], "M8[D]"), np.array(["a"])):
        close(grad(lambda x: np.sum(x * (x == other)))(X), onp.zeros(3))  # noqa: B023
        close(grad(lambda x: np.sum(x * (x != other)))(X), onp.ones(3))  # noqa: B023
        close(jvp(lambda x: x * (x != other), (X,), (X,))[1], X)  # noqa: B023
