"""grad, vmap and their like inside a symbolic trace: a node with a graph of its own, that runs, prints and pickles."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import fx, grad, grad_and_loss, hvp, jacobian, jit, jvp, value_and_grad, vmap
from minnp.errors import CaptureError

X = onp.array([0.5, -1.0, 2.0])
WEIGHTS = np.array([1.0, 2.0, 3.0])


def loss(p: Any, x: Any) -> Any:
    return np.sum(np.tanh(p["w"] * x + p["b"]) ** 2)


def with_tree(x: Any) -> Any:
    g = grad(loss)({"w": x * 2, "b": x - 1.0}, x)
    return g["w"] * 3 + g["b"]


def with_several(x: Any) -> Any:
    a, b = grad(lambda p, k, q: np.sum(p**k * q), [0, 2])(x, 2, x + 1.0)
    return a * b


def with_values(x: Any) -> Any:
    value, g = value_and_grad(lambda y: np.sum(y * y * x))(x)
    other, again = grad_and_loss(lambda y: np.sum(np.exp(y)))(g)
    return value + again + other


def in_place(x: Any) -> Any:
    g = grad(lambda y: np.sum(y**3))(x)
    g *= 2.0
    g[0] = x[1]
    return g


def deep(x: Any) -> Any:
    inner = lambda y: np.sum(np.sin(y) * x)
    return grad(lambda z: np.sum(grad(inner)(z) ** 2))(x)


def pair(x: Any) -> Any:
    a, b = vmap(lambda y: (y * 2, {"k": y + x.sum()}))(x)
    return a + b["k"]


def auxiliary(x: Any) -> Any:
    g, aux = grad(lambda y: (np.sum(y * x), {"twice": y * 2, "n": 3}), has_aux=True)(x)
    (value, again), h = value_and_grad(lambda y: (np.sum(y**2), y + g), has_aux=True)(aux["twice"])
    return g + aux["twice"] * aux["n"] + value + again * h


def writes_outside(x: Any) -> Any:
    total, seen = x * 0.0, np.zeros(3)

    def loss(y: Any) -> Any:
        total[0] = y[0] * x[1]
        seen[1:] += y[1:]
        return np.sum(y * total), y.sum()

    g, aux = grad(loss, has_aux=True)(x)
    value, h = value_and_grad(lambda y: loss(y)[0] + seen[2])(x * 2)
    return g + total * aux + seen[::-1] * h + value


def writes_far_outside(x: Any) -> Any:
    seen = x + 0.0

    def inner(z: Any) -> Any:
        seen[0] += z[0]
        return np.sum(z**3 * seen)

    return grad(lambda y: np.sum(grad(inner)(y) ** 2))(x) * seen


PROGRAMS: dict[str, Callable] = {
    "auxiliary": auxiliary,
    "writes outside": writes_outside,
    "writes far outside": writes_far_outside,
    "grad": lambda x: grad(lambda y: np.sum(y**2))(x) * 2,
    "closure": lambda x: grad(lambda y: np.sum(y * np.cos(x)))(x * 1.0) + 1,
    "of arrays outside": lambda x: grad(lambda y: np.sum(y * WEIGHTS))(x) + WEIGHTS,
    "of a literal": lambda x: grad(lambda y: y**2 * x[0])(3.0) * x,
    "of arrays alone": lambda x: grad(lambda y: np.sum(y**2 * x))(WEIGHTS),
    "keyword": lambda x: grad(lambda y, k: np.sum(y**k), "y")(y=x, k=3),
    "tree": with_tree,
    "several": with_several,
    "values": with_values,
    "written": in_place,
    "deep": deep,
    "vmap": pair,
    "axes": lambda x: vmap(lambda a, b: a * b, in_axes=(0, None))(x, x),
    "jacobian": lambda x: jacobian(lambda y: np.tanh(y) * x)(x).sum(axis=0),
    "jvp": lambda x: sum(jvp(lambda y, z: np.tanh(y) * z, (x, x + 1), (x, x * 2))),
    "hvp": lambda x: hvp(lambda y: np.sum(y**3))(x, x),
    "checkpoint": lambda x: minnp.checkpoint(lambda y: np.tanh(y) * 2)(x),
    "jit": lambda x: jit(lambda y: np.tanh(y) * 2)(x) + jit(grad(lambda y: np.sum(y**2)))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_transformation_inside_a_trace(name: str) -> None:
    f = PROGRAMS[name]
    want, slope = f(np.array(X)), grad(lambda x: np.sum(f(x)))(np.array(X))
    gm = fx.symbolic_trace(f)
    gm.graph.lint()
    names: dict[str, Any] = {}
    exec("import minnp.numpy as np\n" + gm.graph.code, names)
    ways = {"run": gm, "printed": names["forward"], "interpreted": fx.Interpreter(gm).run, "jitted": jit(gm)}
    ways["pickled"] = pickle.loads(pickle.dumps(gm))
    for how, way in ways.items():
        for _ in range(2):
            onp.testing.assert_allclose(way(np.array(X)), want, rtol=1e-10, atol=1e-12, err_msg=how)
    onp.testing.assert_allclose(grad(lambda x: np.sum(gm(x)))(np.array(X)), slope, rtol=1e-10, atol=1e-12)


def test_what_cannot_be_recorded_says_so() -> None:
    def writes(x: Any) -> Any:
        total = x * 0.0

        def inner(y: Any) -> Any:
            total[0] = y
            return y

        return vmap(inner)(x) + total

    with pytest.raises(CaptureError, match="writes to an array made outside it"):
        fx.symbolic_trace(writes)
    with pytest.raises(CaptureError, match="a branch on it"):
        fx.symbolic_trace(lambda x: grad(lambda y: y.sum() if y[0] > 0 else -y.sum())(x))


def test_random_draws_inside_are_fresh() -> None:
    gm = fx.symbolic_trace(lambda x: grad(lambda y: np.sum(y * np.random.rand(3)))(x))
    np.random.seed(0)
    first, second = onp.asarray(gm(np.array(X))), onp.asarray(gm(np.array(X)))
    np.random.seed(0)
    onp.testing.assert_array_equal(first, onp.asarray(gm(np.array(X))))
    assert (first != second).any()
