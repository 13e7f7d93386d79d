"""foreach, while_loop and cond: what they compute, their gradients, shapes, JSON, and MXNet's own."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp import Function, compile, errors, grad

R = onp.random.default_rng(0)
LIBRARIES = ["ours", "mxnet's"]


def library(name: str) -> Any:
    return sym if name == "ours" else pytest.importorskip("mxnet").sym


def close(ours: Any, expected: Any) -> None:
    onp.testing.assert_allclose(onp.asarray(ours), onp.asarray(expected), rtol=1e-5, atol=1e-6)


def running(s: Any) -> Any:
    """The states and sums s_t = s_{t-1} w + x_t, with a layer inside that reads what is outside."""
    x, start, w = map(s.Variable, ("x", "start", "w"))
    scaled = s.broadcast_mul(w, w)

    def step(x: Any, state: Any) -> tuple[Any, Any]:
        now = s.broadcast_add(s.broadcast_mul(state, scaled), x)
        return now * 2, now

    results, last = s.contrib.foreach(step, x, start)
    return s.Group([results, last])


def expected(x: Any, start: Any, w: Any) -> tuple[Any, Any]:
    out, state = [], start
    for row in x:
        state = state * w * w + row
        out.append(2 * state)
    return np.stack(out), state


@pytest.mark.parametrize("name", LIBRARIES)
def test_foreach(name: str) -> None:
    net = running(library(name))
    net = net if name == "ours" else sym.load_json(net.tojson())
    x, start, w = (np.array(R.normal(size=s)) for s in ((4, 3), (3,), (1,)))
    f = Function(net)
    for got, want in zip(f(x=x, start=start, w=w), expected(x, start, w), strict=True):
        close(got, want)
    loss = lambda f: lambda x, start, w: sum(np.sum(y**2) for y in f(x=x, start=start, w=w))
    for got, want in zip(
        grad(loss(f), (0, 1, 2))(x, start, w), grad(loss(expected), (0, 1, 2))(x, start, w), strict=True
    ):
        close(got, want)
    assert net.infer_shape(x=(4, 3), start=(3,), w=(1,))[1] == [(4, 3), (3,)]
    assert sym.load_json(net.tojson()).tojson() == net.tojson()


def test_parameters_inside_a_body_are_arguments_whose_shapes_follow() -> None:
    x, h = sym.Variable("x"), sym.Variable("h")

    def step(x: Any, h: Any) -> tuple[Any, Any]:
        a = sym.FullyConnected(x, num_hidden=5, name="in") + sym.FullyConnected(h, num_hidden=5, name="re")
        h = sym.Activation(a, act_type="tanh")
        return h, h

    out, _ = sym.contrib.foreach(step, x, h)
    assert out.list_arguments() == ["x", "h", "in_weight", "in_bias", "re_weight", "re_bias"]
    shapes = out.infer_shape(x=(7, 2, 3), h=(2, 5))
    assert shapes == ([(7, 2, 3), (2, 5), (5, 3), (5,), (5, 5), (5,)], [(7, 2, 5)], [])
    assert out.simple_bind(None, x=(7, 2, 3), h=(2, 5)).forward()[0].shape == (7, 2, 5)


@pytest.mark.parametrize("name", LIBRARIES)
def test_while_loop(name: str) -> None:
    s = library(name)
    i, x, w = map(s.Variable, "ixw")
    step = lambda i, x: ([x + i], [i + 1, x * w])
    out, last = s.contrib.while_loop(lambda i, x: i < 3, step, [i, x], max_iterations=5)
    net = s.Group([*(out if isinstance(out, list) else [out]), *last])
    net = net if name == "ours" else sym.load_json(net.tojson())
    f = Function(net)
    given = {"i": np.array([0.0]), "x": np.array([2.0]), "w": np.array([3.0])}
    y, i, x = f(**given)
    assert y.tolist() == [[2], [7], [20], [0], [0]] and i.tolist() == [3] and x.tolist() == [54]
    assert grad(lambda w: np.sum(f(**{**given, "w": w})[2]))(np.array([3.0])).tolist() == [54]
    assert net.infer_shape(i=(1,), x=(1,), w=(1,))[1] == [(5, 1), (1,), (1,)]


@pytest.mark.parametrize("name", LIBRARIES)
def test_cond(name: str) -> None:
    s = library(name)
    x, w = s.Variable("x"), s.Variable("w")
    net = s.contrib.cond(s.sum(x) > 0, lambda: x * 2, lambda: w - x)
    assert net.list_outputs()[0].endswith("_output")  # not _output0
    net = net if name == "ours" else sym.load_json(net.tojson())
    f = Function(net)
    w = np.array([1.0, 1.0])
    assert f(x=np.array([1.0, 2.0]), w=w).tolist() == [2, 4] and f(x=np.array([-1.0, -2.0]), w=w).tolist() == [2, 3]
    assert grad(lambda x: np.sum(f(x=x, w=w)))(np.array([-1.0, -2.0])).tolist() == [-1, -1]
    assert net.infer_shape(x=(2,), w=(2,))[1] == [(2,)]


def test_what_was_saved_here_mxnet_runs() -> None:
    mx = pytest.importorskip("mxnet")
    net = mx.sym.load_json(running(sym).tojson())
    x, start, w = (R.normal(size=s).astype(onp.float32) for s in ((4, 3), (3,), (1,)))
    given = {"x": mx.nd.from_numpy(x), "start": mx.nd.from_numpy(start), "w": mx.nd.from_numpy(w)}
    for got, want in zip(net.bind(mx.cpu(), given).forward(), expected(x, start, w), strict=True):
        close(got.asnumpy(), want)


def test_compile_of_a_symbol_is_a_function_of_its_names() -> None:
    a, b = sym.Variable("a"), sym.Variable("b")
    f = compile(b * a + 1)
    assert f(a=2.0, b=3.0) == 7 and f(4.0, 5.0) == 21
    assert grad(lambda a: f(a=a, b=3.0))(2.0) == 3
    with pytest.raises(errors.SymbolError, match="lacks 'a'"):
        f(b=3.0)


def test_errors() -> None:
    x, y = sym.Variable("x"), sym.Variable("y")
    with pytest.raises(ValueError, match="does not read y"):
        sym.contrib.foreach(lambda x, s: (x, x), x, y)
    with pytest.raises(TypeError, match="are symbols"):
        sym.contrib.foreach(lambda x, s: (3, s), x, y)
    with pytest.raises(ValueError, match="needs max_iterations"):
        sym.contrib.while_loop(lambda x: x < 1, lambda x: (x, x), x)
    with pytest.raises(ValueError, match="gives 2 variables, and has 1"):
        sym.contrib.while_loop(lambda x: x < 1, lambda x: (x, [x, x]), x, 3)
    with pytest.raises(ValueError, match="gives 1 results, the other 2"):
        sym.contrib.cond(x, lambda: x, lambda: [x, y])
    with pytest.raises(AttributeError, match="no operator _contrib_nothing"):
        sym.contrib.nothing
