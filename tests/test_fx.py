"""minnp.fx: programs traced without values are graphs that print, run, change and compose."""

from __future__ import annotations

import copy
import json
import operator
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.scipy.special
from minnp import fx, grad, jit, nn, npx, vmap
from minnp.core.rows.primitive import TABLE
from minnp.errors import CaptureError

X = onp.random.default_rng(5).normal(size=(3, 3))


def same(f: Any, *args: Any) -> fx.GraphModule:
    """f and its graph give the same numbers, called, interpreted, or its printed code executed; so do writes."""
    gm = fx.symbolic_trace(f)
    gm.graph.lint()
    names: dict[str, Any] = {}
    exec("import minnp.numpy as np\n" + gm.graph.code, names)
    want_args = [np.array(a) for a in args]
    want = f(*want_args)
    for run in (gm, fx.Interpreter(gm).run, names["forward"], pickle.loads(pickle.dumps(gm)), jit(gm), jit(gm)):
        given = [np.array(a) for a in args]
        got = run(*given)
        for a, b in zip(nn_leaves(got), nn_leaves(want), strict=True):
            onp.testing.assert_array_equal(onp.asarray(a), onp.asarray(b))
            assert onp.asarray(a).dtype == onp.asarray(b).dtype
        for a, b in zip(given, want_args, strict=True):
            onp.testing.assert_array_equal(onp.asarray(a), onp.asarray(b))
    return gm


def nn_leaves(tree: Any) -> list:
    from minnp.core.rows.pytree import tree_leaves

    return tree_leaves(tree)


# ------------------------------------------------------------------ tracing functions
def test_opcodes_names_and_code_read_well() -> None:
    def f(x: Any, w: Any) -> Any:
        return np.tanh(x @ w).sum(axis=0) * 2

    gm = same(f, X, X)
    assert [(n.op, n.name) for n in gm.graph.nodes] == [
        ("placeholder", "x"),
        ("placeholder", "w"),
        ("call_function", "matmul"),
        ("call_function", "tanh"),
        ("call_method", "sum_"),
        ("call_function", "mul"),
        ("output", "output"),
    ]
    assert gm.graph.find_nodes(op="call_function", target=np.tanh)[0].args[0].target is operator.matmul
    assert "tanh = np.tanh(matmul)" in gm.code and "matmul = x @ w" in gm.graph.code
    assert gm.graph.nodes[3].meta["where"].startswith(__file__)


def test_writes_and_views_are_write_view_nodes() -> None:
    def f(x: Any) -> Any:
        b = np.zeros((2, 3))
        row = b[1]
        b[0] = x[0] * 2
        b[1, 1:] += np.exp(-x)[1, 1:]
        b.T[2] = 7.0
        row[:] = row + b[0]
        row *= 2
        x[x > 0.5] = 0.25
        x[0, 0] -= 1
        x += 1
        return b, row, x, x[::-1].sum()

    gm = same(f, X)
    targets = [fx_name(n) for n in gm.graph.nodes]
    assert targets.count("write_view") >= 6 and targets[-2] == "assign"


def fx_name(node: Any) -> str:
    return getattr(node.target, "name", None) or getattr(node.target, "__name__", node.target)


def test_numbers_are_not_arrays() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        first = total
        total += 1  # another number: `first` stays
        n, d = x.shape
        n += 1
        count = 0 * n
        count += d
        x[0][0] += 2
        means = np.nanmean(x), np.average(x), np.linalg.norm(x), np.count_nonzero(x)
        for mean in means:
            total += mean
            mean /= 2
        return total, first, n, x.reshape(n - 1, -1).mean() / d, count, x.ndim, means

    same(f, X)


def test_functions_that_write_and_out() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        np.add(x, 1, out=y)
        np.multiply(y, x, out=y[:2], where=True) if False else None
        np.copyto(y[1:], x[:-1])
        y.sort(axis=0)
        np.add.at(y, [0, 0], 1.0)
        np.fill_diagonal(y, 3.0)
        np.put(y, [1], 9.0)
        z = np.empty_like(y)
        z.fill(2.0)
        np.sum(y, axis=0, out=z[1])
        return y, z

    same(f, X)


def test_integer_arrays_keep_their_dtype_and_their_errors() -> None:
    gm = fx.symbolic_trace(lambda n: operator.iadd(n[:1], 0.5))
    with pytest.raises(TypeError, match="Cannot cast"):
        gm(np.arange(3))


def test_views_in_lists_and_of_parts() -> None:
    def f(x: Any) -> Any:
        h = x * 1
        a, b = np.split(h, 2)
        rest, (row, whole), some = np.vsplit(h, 2)[1], np.atleast_2d(h[0], h), h.flat[2:5]
        h[0], h[1:, 0] = 7, -7
        return a, b, rest, row, whole, some, h

    x = np.arange(8.0).reshape(4, 2)
    for got, want in zip(fx.symbolic_trace(f)(x), f(x)):
        onp.testing.assert_array_equal(onp.asarray(got), onp.asarray(want))
    for g in (lambda h: np.split(h, 2)[0], np.diag, lambda h: h.conj()):

        def reads_after_a_write(x: Any, g: Any) -> Any:
            h = x * 1
            part = g(h)
            part[0] = 3
            return part, h

        with pytest.raises(CaptureError, match="a view"):
            fx.symbolic_trace(reads_after_a_write, concrete_args={"g": g})


def test_a_view_that_may_be_a_copy_is_not_guessed() -> None:
    def writes(x: Any) -> Any:
        x.reshape(-1)[0] = 1
        return x

    def reads(x: Any) -> Any:
        flat = x.ravel()
        x[0] = 1
        return flat

    for f in (writes, reads):
        with pytest.raises(CaptureError, match=r"test_fx.py:\d+: .*may or may not be a view"):
            fx.symbolic_trace(f)

    def dense(x: Any) -> Any:
        b = x.copy()
        flat = b.reshape(-1)
        b[0] = x[0]
        flat[3:6] = x[1]
        return b, flat

    same(dense, X)


def test_indices_and_masks_that_are_computed() -> None:
    def f(x: Any) -> Any:
        order = np.argsort(x[:, 0])
        y = x[order]
        y[np.argmax(x[0])] = 0.0
        y[:, x[0] > 0] = 5.0
        k = x.shape[0] - 1
        y[k] = x[:k].sum(axis=0)
        return y, np.where(x > 0, x, -x), [y.T, {"a": x[..., None]}]

    same(f, X)


def test_literals_may_be_branched_on_and_random_draws_are_fresh() -> None:
    def f(x: Any) -> Any:
        steps = np.arange(3)
        for i in steps:
            x = x + int(i)
        if steps.sum() > 2:
            x = x * len(steps)
        return x + np.random.rand(3)

    gm = fx.symbolic_trace(f)
    np.random.seed(0)
    want = [onp.asarray(f(np.array(X))) for _ in range(2)]
    np.random.seed(0)
    got = [onp.asarray(gm(np.array(X))) for _ in range(2)]
    onp.testing.assert_array_equal(got, want)
    assert not onp.array_equal(got[0], got[1])


def test_arrays_made_outside_are_read_anew() -> None:
    w = np.ones(3)
    gm = fx.symbolic_trace(lambda x: 2 * w * x)
    w *= 4
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(X))), 8 * X)
    for part in (lambda: w, lambda: w[1:], lambda: np.asarray(w)[::-1], lambda: w.T):
        with pytest.raises(CaptureError, match="made outside"):
            fx.symbolic_trace(lambda x: operator.setitem(part(), 0, x[0, 0]))  # noqa: B023
    same(lambda x: operator.iadd(w[1:].copy(), 1) + x[0, 1:], X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: [v for v in x],  # noqa: C416
        lambda x: float(x.sum()),
        lambda x: range(int(x[0])),
        lambda x: np.zeros(x.__len__()),
        lambda x: 1.0 in x,
        lambda x: onp.asarray(x),
    ],
)
def test_what_has_no_graph_says_where_and_the_way_out(f: Any) -> None:
    with pytest.raises(CaptureError, match=r"at .*test_fx.py:\d+: .*minnp.jit.*wrap.*concrete_args"):
        fx.symbolic_trace(f)


@fx.wrap
def branches(x: Any, least: float) -> Any:
    return x if x.sum() > least else -x


fx.wrap("len")


def test_wrap_keeps_functions_whole() -> None:
    gm = same(lambda x: branches(x, 0.5) * len(x) + npx.sigmoid(x) + nn.layers.affine(x, x, x[0]), X)
    called = [fx_name(n) for n in gm.graph.nodes if n.op == "call_function"]
    assert {"branches", "len", "sigmoid", "affine"} <= set(called)
    assert branches(np.array(X), 100.0)[0, 0] == -X[0, 0]


def test_a_trace_ends_even_if_it_fails() -> None:
    from minnp.core.rows.state import capture, state

    before, called = state.busy, nn.model.Layer.__call__
    with pytest.raises(KeyError):
        fx.symbolic_trace(lambda x: {}[npx.relu])
    assert state.busy == before and capture.get() is None and nn.model.Layer.__call__ is called
    assert not hasattr(npx.relu, "__wrapped_whole__")


# ------------------------------------------------------------------ models
class Net(nn.ModelBase):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = [nn.Linear(3, 4), nn.Linear(4, 4)]
        self.head = nn.Sequential(nn.ReLU(), nn.Residual(nn.Linear(4, 4)), nn.Linear(4, 2))
        self.add_param("scale", (2,), init_rule="constant", init_config={"value": 2.0})

    def forward(self, x: Any, mode: str | None = None) -> Any:
        for layer in self.hidden:
            x = np.tanh(layer(x))
        return (
            self.head(nn.layers.dropout(x, 0.5, mode), mode=mode) * self.params["scale"]
            + self.hidden[0].params["b"][:2]
        )

    def loss(self, predict: Any, y: Any) -> Any:
        return nn.layers.softmax_loss(predict, y)


def test_models_become_layers_with_the_same_parameters() -> None:
    net = Net().init()
    gm = fx.symbolic_trace(net, {"mode": "test"})
    gm.graph.lint()
    want = onp.asarray(net(np.array(X), "test"))
    for module in (gm, pickle.loads(pickle.dumps(gm)), copy.deepcopy(gm)):
        onp.testing.assert_array_equal(onp.asarray(module(np.array(X))), want)
    assert gm.tree().keys() == net.tree().keys() and len(gm.parameters()) == 9
    assert [n.target for n in gm.graph.find_nodes(op="call_module")] == [
        "hidden.0", "hidden.1", "head.0", "head.1.inner", "head.2",
    ]  # fmt: skip
    with gm.holding({"scale": np.zeros(2)}):
        onp.testing.assert_array_equal(onp.asarray(gm(np.array(X)))[0], onp.asarray(net.hidden[0].params["b"][:2]))

    def loss(tree: dict, module: Any) -> Any:
        with module.holding(tree):
            return (module(np.array(X), **({} if module is gm else {"mode": "test"})) ** 2).sum()

    a, b = grad(loss)(net.tree(), net), grad(loss)(gm.tree(), gm)
    for name, g in a.items():
        onp.testing.assert_allclose(onp.asarray(g), onp.asarray(b[name]))


def test_a_graph_module_trains() -> None:
    rng = onp.random.default_rng(0)
    x = rng.normal(size=(64, 3))
    y = (x[:, 0] > 0).astype(int)
    history = fx.symbolic_trace(Net().init(), {"mode": "test"}).fit(
        x, y, epochs=10, batch_size=16, learning_rate=0.1, verbose=False
    )
    assert history["loss"][-1] < history["loss"][0]


def test_what_is_a_leaf_can_be_said() -> None:
    class Coarse(fx.Tracer):
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return name == "head" or super().is_leaf_module(module, name)

    class Fine(fx.Tracer):
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return False

    net = Net().init()
    coarse = fx.GraphModule(net, Coarse().trace(net, {"mode": "test"}))
    assert "head" in [n.target for n in coarse.graph.find_nodes(op="call_module")]
    onp.testing.assert_array_equal(onp.asarray(coarse(np.array(X))), onp.asarray(net(np.array(X), "test")))
    fine = fx.GraphModule(net, Fine().trace(net, {"mode": "test"}))
    assert not fine.graph.find_nodes(op="call_module")
    onp.testing.assert_array_equal(onp.asarray(fine(np.array(X))), onp.asarray(net(np.array(X), "test")))


def test_state_that_layers_keep_is_refused() -> None:
    class Traced(fx.Tracer):
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return False

    class Average(nn.model.Layer):
        def forward(self, x: Any) -> Any:
            self.aux_params["mean"] = x.mean()
            return x

    with pytest.raises(CaptureError, match="keeps mean between calls"):
        Traced().trace(Average())


# ------------------------------------------------------------------ running
def test_errors_show_the_users_own_line() -> None:
    def f(x: Any) -> Any:
        y = x[:2]
        return y @ np.ones((7, 2))  # the line to be shown

    gm = fx.symbolic_trace(f)
    for run in (gm, fx.Interpreter(gm).run):
        with pytest.raises(ValueError, match="matmul") as caught:
            run(np.array(X))
        assert "test_fx.py" in caught.value.__notes__[0] and "the line to be shown" in caught.value.__notes__[0]
    compiled = jit(lambda x: np.linalg.inv(x) + 1)  # this line
    compiled(np.eye(3))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        compiled(np.zeros((3, 3)))
    assert "# this line" in caught.value.__notes__[0] and "linalg.inv" in caught.value.__notes__[0]


def test_what_a_wrapped_function_does_is_done_though_nobody_reads_its_result() -> None:
    seen: list = []
    note = fx.wrap(lambda x: seen.append(onp.asarray(x)))

    def f(x: Any) -> Any:
        np.exp(x)
        note(x + 1)
        return x * 2

    gm = fx.symbolic_trace(f)
    gm(np.array(X))
    onp.testing.assert_array_equal(seen[0], X + 1)
    assert [n.name for n in gm.graph.nodes] == ["x", "add", "lambda_", "mul", "output"]


def test_graph_modules_compose_with_transformations() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[0] *= x[1]
        return (np.sin(y) * y).sum()

    gm = fx.symbolic_trace(f)
    x = np.array(X)
    for g in (grad(gm), jit(grad(gm)), grad(jit(gm)), fx.capture(grad(gm), x), fx.capture(grad(f), x)):
        onp.testing.assert_allclose(onp.asarray(g(x)), onp.asarray(grad(f)(x)), rtol=1e-12)
    batch = np.stack([x, x + 1])
    onp.testing.assert_allclose(onp.asarray(vmap(gm)(batch)), [float(f(x)), float(f(x + 1))])
    again = fx.symbolic_trace(gm)
    onp.testing.assert_array_equal(onp.asarray(again(x)), onp.asarray(f(x)))


def test_a_captured_graph_whose_places_are_computed_is_captured_again() -> None:
    def slope(x: Any, places: Any) -> Any:
        def f(x: Any) -> Any:
            y = np.zeros((4, 3))
            y[places[1]] = x[places[0]]
            return np.sum(y**3)

        return grad(f)(x)

    draw = onp.random.default_rng(0)
    x, places = np.array(draw.normal(size=(4, 3))), np.array([[2, 0, 1], [3, 1, 2]])
    module = fx.capture(slope, x, places)
    compiled = jit(module)
    for given in (places, np.array([[3, 1, 2], [0, 2, 1]]), places):
        onp.testing.assert_allclose(onp.asarray(compiled(x, given)), onp.asarray(slope(x, given)))


def test_numbers_of_a_graph_are_numpys() -> None:
    """Python's operators on two Python numbers would give Python's, which have no `copy`."""
    x = np.arange(12.0).reshape(3, 4) ** 1.3
    for f in (lambda x: np.percentile(x, 30, axis=1), lambda x: np.nanpercentile(x, 30)):
        onp.testing.assert_array_equal(fx.capture(f, x)(x), f(x))


def test_capture_is_on_values_and_guards_what_was_asked() -> None:
    def f(x: Any) -> Any:
        while x.max() > 1:
            x = x / 2
        x[0] += 1
        return {"x": x, "n": (x.sum(), 3)}

    gm = fx.capture(f, np.array(abs(X)))
    gm.graph.lint()
    out, want = gm(np.array(abs(X))), f(np.array(abs(X)))
    onp.testing.assert_array_equal(onp.asarray(out["x"]), onp.asarray(want["x"]))
    assert out["n"][1] == 3 and all(n.meta["value"] is not None for n in gm.graph.nodes if n.op == "placeholder")
    with pytest.raises(AssertionError, match="another path"):
        gm(np.array(abs(X) / 10))
    with pytest.raises(CaptureError, match="another path"):
        fx.Interpreter(gm).run(np.array(abs(X) / 10))
    net = Net().init()
    gm = fx.capture(net.forward, np.array(X), mode="test")
    assert gm.tree().keys() == net.tree().keys()
    onp.testing.assert_allclose(onp.asarray(gm(np.array(X))), onp.asarray(net(np.array(X), "test")))


# ------------------------------------------------------------------ changing graphs
def test_nodes_are_inserted_replaced_and_erased() -> None:
    gm = fx.symbolic_trace(lambda x: np.tanh(x) + x)
    graph = gm.graph
    (tanh,) = graph.find_nodes(op="call_function", target=np.tanh)
    with graph.inserting_after(tanh):
        scaled = graph.call_function(np.multiply, (tanh, 3.0))
    tanh.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)
    with pytest.raises(RuntimeError, match="multiply still read"):
        graph.erase_node(tanh)
    scaled.update_arg(1, 2.0)
    with graph.inserting_before(graph.output_node()):
        end = fx.Proxy(graph.output_node().args[0])
        result = (np.exp(end) - end / 2).node
    graph.output_node().args = (result,)
    graph.lint()
    gm.recompile()
    y = onp.tanh(X) * 2 + X
    onp.testing.assert_allclose(onp.asarray(gm(np.array(X))), onp.exp(y) - y / 2, rtol=1e-12)
    scaled.target, scaled.args = np.subtract, (tanh, tanh)
    gm.recompile()
    onp.testing.assert_allclose(onp.asarray(gm(np.array(X))), onp.exp(X) - X / 2, rtol=1e-12)


def test_order_and_lint() -> None:
    gm = fx.symbolic_trace(lambda x: np.sin(x) * np.cos(x))
    x, sin, cos, mul, out = gm.graph.nodes
    assert sin.next is cos and cos.prev is sin and mul.all_input_nodes == [sin, cos] and list(x.users) == [sin, cos]
    sin.prepend(cos)
    assert gm.graph.nodes == [x, cos, sin, mul, out]
    gm.graph.lint()
    mul.append(sin)
    with pytest.raises(ValueError, match="mul reads sin before it is computed"):
        gm.graph.lint()
    with pytest.raises(ValueError, match="no 'weights'"):
        bad = fx.Graph()
        bad.output(bad.get_attr("weights"))
        bad.owning_module = gm
        bad.lint()
    with pytest.raises(ValueError, match="one output"):
        fx.Graph().lint()


def test_the_table_of_nodes(capsys: Any) -> None:
    fx.symbolic_trace(lambda x: x.sum(axis=0)).graph.print_tabular()
    assert capsys.readouterr().out.splitlines() == [
        "opcode       name    target  args     kwargs",
        "placeholder  x       x       ()       {}",
        "call_method  sum_    sum     (x,)     {'axis': 0}",
        "output       output  output  (sum_,)  {}",
    ]


def test_graphs_built_by_hand_with_every_opcode() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    k = graph.placeholder("k", 2.0)
    w = graph.get_attr("block.w")
    y = graph.call_module("block.fc", (x,))
    y = graph.call_method("sum", (y,), {"axis": 0})
    y = graph.call_function(np.multiply, (y, w))
    graph.output({"y": graph.call_function(operator.add, (y, k))})
    fc = nn.Linear(3, 2).init()
    gm = fx.GraphModule({"block.w": np.array([1.0, 2.0]), "block.fc": fc}, graph)
    gm.graph.lint()
    want = onp.asarray(fc(np.array(X))).sum(axis=0) * [1, 2]
    for run in (gm, fx.Interpreter(gm).run):
        onp.testing.assert_allclose(onp.asarray(run(np.array(X))["y"]), want + 2)
        onp.testing.assert_allclose(onp.asarray(run(np.array(X), 5.0)["y"]), want + 5)
    gm.add_submodule("block.unused", nn.ReLU())
    gm.delete_all_unused_submodules()
    assert not hasattr(gm.block, "unused") and gm.get_submodule("block.fc") is fc


def test_patterns_are_replaced() -> None:
    def f(x: Any, y: Any) -> Any:
        a = np.add(x, y) * 0.5
        b = (a + x) * 0.5
        c = (x + y) * 0.25
        return a, b, c

    gm = fx.symbolic_trace(f)
    found = fx.replace_pattern(gm, lambda p, q: (p + q) * 0.5, lambda p, q: np.divide(p + q, 2))
    gm.graph.lint()
    assert len(found) == 2 and gm.code.count("np.divide") == 2 and gm.code.count("*") == 1
    for a, b in zip(gm(np.array(X), np.array(X + 1)), f(X, X + 1), strict=True):
        onp.testing.assert_array_equal(onp.asarray(a), b)
    # what is read from outside the pattern stays
    gm = fx.symbolic_trace(lambda x: (lambda s: np.exp(s) * s)(np.sin(x)))
    assert fx.replace_pattern(gm, lambda x: np.exp(np.sin(x)), lambda x: x) == []
    # several results
    gm = fx.symbolic_trace(lambda x: (np.sin(x), np.cos(x) + 1))
    (match,) = fx.replace_pattern(gm, lambda x: (np.sin(x), np.cos(x)), lambda x: (np.cos(x), np.sin(x)))
    assert isinstance(match, fx.Match)
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(X))[1]), onp.sin(X) + 1)


def test_a_transformer_rewrites() -> None:
    class Wide(fx.Transformer):
        def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
            if target is npx.sigmoid:
                return 0.5 + 0.5 * np.tanh(0.5 * args[0])
            return super().call_function(target, args, kwargs)

        def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
            return super().call_method("mean" if target == "sum" else target, args, kwargs)

    def f(x: Any) -> Any:
        y = npx.sigmoid(x)
        y[0] = 0
        return y.sum(axis=0)

    gm = Wide(fx.symbolic_trace(f)).transform()
    gm.graph.lint()
    want = 1 / (1 + onp.exp(-X))
    want[0] = 0
    onp.testing.assert_allclose(onp.asarray(gm(np.array(X))), want.mean(axis=0))
    assert all(n.meta["where"].startswith(__file__) for n in gm.graph.nodes if n.op.startswith("call"))
    net = Net().init()
    gm = fx.Transformer(fx.symbolic_trace(net, {"mode": "test"})).transform()
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(X))), onp.asarray(net(np.array(X), "test")))


def test_a_transformer_keeps_guards_on_arrays() -> None:
    gm = fx.Transformer(fx.capture(lambda x: np.rot90(x), np.array(X))).transform()
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(X))), onp.rot90(X))


@pytest.mark.parametrize("graph_of", [fx.symbolic_trace, lambda f: fx.capture(f, np.ones(3))])
def test_arrays_from_outside_have_attributes_of_their_own(graph_of: Any) -> None:
    first, second = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])

    class Scaled(fx.Transformer):
        def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
            return super().call_function(target, args, kwargs) * second

    gm = Scaled(graph_of(lambda x: x + first)).transform()
    for module in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm)), fx.Transformer(gm).transform()):
        onp.testing.assert_array_equal(onp.asarray(module(np.array(X[0]))), (X[0] + first) * second)
    copied = copy.deepcopy(gm)
    copied.recompile()
    copied.constant_0[...] = 0
    assert first[0] == 1 and float(copied(np.array(X[0]))[0]) == X[0][0] * 10

    gm = graph_of(lambda x: np.exp(x + first))
    fx.replace_pattern(gm, lambda x: np.exp(x), lambda x: x * second)
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(X[0]))), (X[0] + first) * second)

    class Model(nn.model.Layer):
        def __init__(self) -> None:
            self.constant_0 = nn.ReLU()
            self.add_param("constant_1", (3,), init_rule="constant", init_config={"value": 5.0})

        def forward(self, x: Any) -> Any:
            return self.constant_0(x) * first + second * self.params["constant_1"]

    gm = graph_of(Model().init())
    onp.testing.assert_array_equal(onp.asarray(gm(np.array(abs(X[0])))), abs(X[0]) * first + second * 5)


@pytest.mark.skipif(type(onp.count_nonzero(())) is int, reason="Python's number, which a graph of that NumPy guards")
def test_a_count_is_a_node() -> None:
    gm = fx.capture(lambda x: x * np.count_nonzero(x > 0), np.array([1.0, -1.0]))
    onp.testing.assert_array_equal(onp.asarray(gm(np.array([1.0, 2.0]))), [2, 4])
    onp.testing.assert_array_equal(onp.asarray(vmap(gm)(np.array([[1.0, 2.0], [1.0, -1.0]]))), [[2, 4], [1, -1]])


def test_an_interpreter_sees_every_value() -> None:
    class Shapes(fx.Interpreter):
        def run_node(self, node: fx.Node) -> Any:
            value = super().run_node(node)
            seen.append((node.name, onp.shape(value)))
            return value

    seen: list = []
    gm = fx.symbolic_trace(lambda x: np.exp(x).sum(axis=0))
    Shapes(gm).run(np.array(X))
    assert seen == [("x", (3, 3)), ("exp", (3, 3)), ("sum_", (3,)), ("output", (3,))]
    exp = gm.graph.nodes[1]
    out = fx.Interpreter(gm).run(np.array(X), initial_env={exp: np.ones((2, 2))})
    onp.testing.assert_array_equal(onp.asarray(out), [2, 2])


def test_long_graphs_are_pickled_and_copied() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = x + 1.0
        return x

    alone = pickle.loads(pickle.dumps(fx.symbolic_trace(f).graph))
    assert len(alone) == 3002 and alone.owning_module is None
    gm = pickle.loads(pickle.dumps(fx.symbolic_trace(f)))
    assert gm.graph.owning_module is gm
    assert len(gm.graph) == 3002 and float(gm(np.zeros(1))[0]) == 3000


def test_the_folder_holds_code_that_runs(tmp_path: Any) -> None:
    gm = fx.symbolic_trace(Net().init(), {"mode": "test"})
    names: dict[str, Any] = {}
    with open(gm.to_folder(tmp_path / "net")) as f:
        exec(f.read(), names)
    with open(tmp_path / "net" / "module.pickle", "rb") as f:
        loaded = pickle.load(f)
    onp.testing.assert_array_equal(onp.asarray(names["forward"](loaded, np.array(X))), onp.asarray(gm(np.array(X))))


def test_draws_of_generators_are_made_when_the_graph_runs() -> None:
    rng = np.random.default_rng(3)

    def f(x: Any) -> Any:
        np.random.shuffle(x)
        return x + rng.normal(size=3)

    gm = fx.symbolic_trace(f)
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state
    other = np.random.default_rng(3)
    for seed in (0, 1):
        a, b = np.array(X), np.array(X)
        np.random.seed(seed)
        got = gm(a)
        np.random.seed(seed)
        np.random.shuffle(b)
        onp.testing.assert_array_equal(onp.asarray(got), onp.asarray(b + other.normal(size=3)))
        onp.testing.assert_array_equal(onp.asarray(a), onp.asarray(b))
    with pytest.raises(CaptureError, match="writes to its argument"):
        fx.symbolic_trace(lambda x: rng.shuffle(x))


def test_streams_made_inside_are_made_by_every_run_and_printed() -> None:
    def f(x: Any) -> Any:
        rng = np.random.default_rng(3)
        return x + rng.normal(size=3) + np.random.RandomState(4).rand(3) + rng.integers(9)

    for gm in (fx.symbolic_trace(f), fx.capture(f, np.array(X))):
        names: dict[str, Any] = {}
        exec("import minnp.numpy as np\n" + gm.graph.code, names)
        for way in (gm, gm, names["forward"]):
            onp.testing.assert_array_equal(onp.asarray(way(np.array(X))), onp.asarray(f(np.array(X))))


def test_a_tracer_traces_again_and_in_other_threads_nothing_is_recorded() -> None:
    import threading

    tracer, seen = fx.Tracer(), []

    def f(x: Any) -> Any:
        worker = threading.Thread(target=lambda: seen.append(npx.relu(np.array([-1.0, 1.0])) + nn.ReLU()(np.ones(2))))
        worker.start()
        worker.join()
        return npx.relu(x)

    for _ in range(2):
        assert [n.name for n in tracer.trace(f).nodes] == ["x", "relu", "output"]
        onp.testing.assert_array_equal(onp.asarray(seen.pop()), [1, 2])


def test_layers_are_deleted_by_name() -> None:
    gm = fx.GraphModule({"a.b": nn.ReLU(), "c": nn.ReLU()}, fx.Graph())
    for name in ("a.b", "c"):
        gm.add_submodule(name, nn.ReLU())
    assert gm.delete_submodule("a.b") and not gm.delete_submodule("a.b") and not gm.delete_submodule("x.y")
    assert gm.delete_submodule("c") and "c" not in vars(gm)


# ------------------------------------------------------------------ printed graphs, wherever they are pasted
def test_every_row_prints_as_code_that_gives_its_results() -> None:
    for name, row in TABLE.items():
        for arrays, params in row.samples() if row.samples else ():
            given = [np.array(a) for a in arrays]
            gm = fx.capture(lambda *a: row(*a, **params), *given)  # noqa: B023
            names: dict[str, Any] = {}
            exec("import minnp.numpy as np\n" + gm.graph.code, names)
            got = names["forward"](*([gm] if "(self" in gm.graph.code else []), *given)
            for a, b in zip(nn_leaves(got), nn_leaves(gm(*given)), strict=True):
                a, b = onp.asarray(a), onp.asarray(b)
                assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{name} {params}"
                tolerance = 1e-5 if a.dtype in ("f4", "c8") else 1e-12 if a.dtype.kind in "fc" else 0
                if name == "empty_like":
                    continue
                numbers = (a, b) if a.dtype.kind in "biufc" else (a == b, True)
                onp.testing.assert_allclose(*numbers, rtol=tolerance, atol=tolerance, err_msg=f"{name} {params}")


def test_a_printed_graph_runs_in_a_process_that_has_imported_nothing_else() -> None:
    def f(x: Any) -> Any:
        total = np.array(x.sum())
        total[...] += 1
        return npx.softmax(x) * total, np.einsum("ij->ji", x), np.sort(x, axis=None), minnp.scipy.special.erf(x)

    code = jit(f).lower(X).code
    program = f"import minnp.numpy as np\n{code}\nfor y in forward(np.array({X.tolist()!r})): print(y.tolist())"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    for line, want in zip(printed.splitlines(), f(np.array(X)), strict=True):
        onp.testing.assert_allclose(onp.array(json.loads(line)), onp.asarray(want), rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: x * 2, "return multiply"),
        (lambda x: (x * 2,), "return (multiply,)"),
        (lambda x: {"a": x + 1, "b": [x, 2, None]}, "return {'a': add, 'b': [x, 2, None]}"),
        (lambda x: None, "return None"),
        (lambda x: x.__setitem__(0, 5.0) or x * 2, "return (multiply, write_view)"),
    ],
)
def test_printed_code_returns_what_the_function_does(f: Any, want: str) -> None:
    assert jit(f).lower(X).code.splitlines()[-1].strip() == want


def test_layers_are_traced_through_where_a_tracer_says_so() -> None:
    class Through(fx.Tracer):
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return False

    model = nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm(4), nn.LayerNorm(4), nn.GELU(), nn.Residual(nn.Linear(4, 4))
    ).init(0)
    graph = Through().trace(model, concrete_args={"mode": "test"})
    assert not graph.find_nodes(op="call_module")
    x = X.astype("f4")
    onp.testing.assert_array_equal(
        onp.asarray(fx.GraphModule(model, graph)(x)), onp.asarray(model(np.array(x), mode="test"))
    )


def test_what_jit_made_is_traced_as_the_function_it_compiles() -> None:
    class Scaled:
        def __init__(self) -> None:
            self.scale = np.array(X[0])

        @jit
        def run(self, x: Any, *more: Any, power: float = 2) -> Any:
            return x * self.scale**power + sum(more)

    same(jit(lambda x, y, k=2.0: x * k + y), X, X)
    same(Scaled().run, X)
    assert fx.symbolic_trace(lambda x: jit(np.sin)(x) + 1).code.count("np.sin") == 1


def test_a_function_can_take_the_place_of_a_layer() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)).init()
    gm = fx.symbolic_trace(net)
    relu = gm.graph.find_nodes(op="call_module")[1]
    with gm.graph.inserting_before(relu):
        relu.replace_all_uses_with(gm.graph.call_function(np.tanh, relu.args, relu.kwargs))  # as torch.fx's users do
    gm.graph.erase_node(relu)
    gm.recompile()
    x = np.array(X)
    want = net.steps[2](np.tanh(net.steps[0](x)))
    onp.testing.assert_array_equal(gm(x), want)
    parts = fx.split_module(gm, net, lambda n: ["_0", "tanh", "_2"].index(n.name) // 2)
    assert [name for name, _ in parts.named_children()] == ["submod_0", "submod_1"]
    onp.testing.assert_array_equal(parts(x), want)


@pytest.mark.parametrize(
    ("constant", "written"),
    [
        (onp.arange(40), "np.arange(0, 40, dtype='<i8')"),
        (onp.arange(9, -9, -3, dtype="i2"), "np.arange(9, -7, -3, dtype='<i2')"),
        (onp.arange(200, 250, dtype="u1"), "np.arange(200, 250, dtype='|u1')"),
        (onp.full((4, 3), -0.5, "f4"), "np.full((4, 3), -0.5, dtype='<f4')"),
        (onp.full(7, onp.nan), "np.full((7,), float('nan'), dtype='<f8')"),
        (onp.full(7, -0.0), "np.full((7,), -0.0, dtype='<f8')"),
        (onp.array([0.0, -0.0] * 4), "np.array([0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0], dtype='<f8')"),
        (onp.array([0, 1, 2, 3, 5]), "np.array([0, 1, 2, 3, 5], dtype='<i8')"),
        (onp.array([1, 1]), "np.array([1, 1], dtype='<i8')"),
        (onp.array(["a"] * 5), "np.full((5,), 'a', dtype='<U1')"),
        (onp.zeros((0, 3)), "np.empty((0, 3), dtype='<f8')"),
    ],
    ids=str,
)
def test_a_small_constant_is_written_by_the_shortest_function(constant: Any, written: str) -> None:
    graph = fx.Graph()
    graph.output(graph.call_function(np.asarray, (constant,)))
    assert written in graph.code
    names: dict[str, Any] = {}
    exec("import minnp.numpy as np\n" + graph.code, names)
    made = onp.asarray(names["forward"]())
    assert (made.tobytes(), made.dtype, made.shape) == (constant.tobytes(), constant.dtype, constant.shape)


def test_byteswap_in_place_is_a_write():
    def f(x):
        y = x * 1
        part = y[1:]
        z = part.byteswap(inplace=True)
        return y, z

    x = onp.array([1, 2, 256], "i2")
    y, z = minnp.fx.symbolic_trace(f)(x)
    assert y.tolist() == [1, 512, 1] and z.tolist() == [512, 1]
    assert minnp.fx.symbolic_trace(lambda x: x.byteswap() + x)(x).tolist() == [257, 514, 257]


SIZED: list[Any] = [  # (a function, its arguments, arguments of other sizes)
    (lambda x: x.sum() / len(x), [np.ones(2)], [np.ones(5)]),
    (lambda x: x.reshape(len(x), -1), [np.ones((2, 3))], [np.ones((4, 3))]),
    (lambda x: np.zeros(x.shape) + x.sum(), [np.ones(2)], [np.ones(5)]),
    (lambda x, y: x[np.arange(len(x)), y], [np.ones((2, 3)), np.array([0, 1])], [np.ones((4, 3)), np.arange(4) % 3]),
]


@pytest.mark.parametrize(("f", "given", "others"), SIZED)
def test_a_captured_graph_in_which_sizes_are_numbers_refuses_other_sizes(f: Any, given: list, others: list) -> None:
    gm = fx.capture(f, *given)
    onp.testing.assert_array_equal(gm(*given), f(*given))
    ways = [gm, jit(gm), copy.deepcopy(gm), fx.Transformer(gm).transform()]
    if len(given) == 1:
        (name,) = [n.target for n in gm.graph.find_nodes(op="placeholder")]
        ways += [lambda x: gm(**{name: x})]
        ways += [lambda x: grad(lambda x: np.sum(gm(x)))(x), lambda x: vmap(gm)(np.stack([x, x]))]
    for run in ways:
        with pytest.raises(
            ValueError, match=rf"of shapes {re.escape(str(given[0].shape))}.*capture the function again"
        ):
            run(*others)
    onp.testing.assert_array_equal(gm(*given), f(*given))


def test_a_captured_graph_takes_sizes_for_which_it_is_the_same() -> None:
    counted = []

    def f(x: Any) -> Any:
        counted.append(len(counted))
        return np.exp(x - np.mean(x)) @ np.ones(3)

    gm = fx.capture(f, np.ones((2, 3)))
    for _ in range(3):
        for n in (2, 5, 7):
            x = np.arange(3.0 * n).reshape(n, 3)
            onp.testing.assert_allclose(gm(x), f(x))
            onp.testing.assert_allclose(grad(lambda x: gm(x).sum())(x), grad(lambda x: f(x).sum())(x), atol=1e-12)
    assert len(counted) == 1 + 9 * 2 + 2  # captured once more for each of two other sizes
    again = pickle.loads(pickle.dumps(fx.capture(np.exp, np.ones(2))))
    assert again(np.zeros(3)).tolist() == [1, 1, 1]


def test_a_captured_net_trains_on_batches_of_other_sizes() -> None:
    make = lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).init(0)
    x, y = onp.random.default_rng(0).normal(size=(44, 4)).astype("f"), onp.arange(44) % 3
    gm, options = fx.capture(make(), x[:2]), {"epochs": 2, "batch_size": 16, "verbose": False}
    onp.testing.assert_allclose(gm.fit(x, y, **options)["loss"], make().fit(x, y, **options)["loss"], rtol=1e-5)


def test_guards_hold_where_python_leaves_assertions_out() -> None:
    program = (
        "import minnp.numpy as np\n"
        "from minnp import fx\n"
        "g = fx.capture(lambda x: x * 2 if x.sum() > 0 else -x, np.ones(2))\n"
        "try:\n    print(g(-np.ones(2)))\n"
        "except AssertionError as error:\n    print(error)"
    )
    printed = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("another path than the one captured")
