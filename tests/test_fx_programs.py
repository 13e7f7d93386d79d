"""Programs as users of torch.fx write them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import pickle
from typing import Any

import pytest

import minnp.numpy as np
from minnp import errors, fx, nn, npx

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.ReLU(), nn.Linear(5, 2)).init(0)


def test_layers_are_found_by_name() -> None:
    model = mlp()
    gm = fx.symbolic_trace(model, concrete_args={"mode": "test"})
    layers = dict(gm.named_modules())
    assert layers[""] is gm and {type(m) for m in layers.values()} >= {nn.Linear, nn.Dropout, nn.ReLU}
    assert [n for n, _ in gm.named_children()] == ["0", "1", "2", "3"]
    assert {k for k, _ in gm.named_parameters()} == {"0.w", "0.b", "3.w", "3.b"}
    assert fx.Interpreter(gm).submodules == layers
    for node in gm.graph.nodes:
        if node.op == "call_module" and isinstance(layers[node.target], nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    gm.delete_all_unused_submodules()
    assert "1" not in dict(gm.named_modules())
    assert np.array_equal(gm(X), model(X, mode="test"))


def test_functions_are_decomposed_with_proxies() -> None:
    graph, new, env = fx.Tracer().trace(lambda x: npx.relu(x) + 1), fx.Graph(), {}
    tracer = fx.GraphAppendingTracer(new)
    for node in graph.nodes:
        if node.target is npx.relu:
            (x,) = (fx.Proxy(env[a.name], tracer) for a in node.args)
            env[node.name] = ((x > 0) * x).node
        else:
            env[node.name] = new.node_copy(node, lambda n: env[n.name])
    gm = fx.GraphModule({}, new)
    assert "relu" not in gm.code and np.array_equal(gm(X), np.maximum(X, 0) + 1)


def test_a_pass_may_put_facts_on_the_nodes_and_map_their_arguments() -> None:
    gm, env = fx.symbolic_trace(lambda x, y: np.stack([x, y * 2], axis=1)), {}
    for node, value in zip(gm.graph.nodes, (X, X), strict=False):
        env[node] = value
    for node in gm.graph.find_nodes(op="call_function"):
        env[node] = node.target(*fx.map_arg(node.args, env.__getitem__), **fx.map_arg(node.kwargs, env.__getitem__))
        node.shape = env[node].shape
    assert node.shape == (3, 2, 4)
    assert copy.deepcopy(gm.graph).nodes[0].name == "x"
    chunks = fx.split_module(gm, gm, lambda n: n.name)
    assert np.array_equal(chunks(X, X), gm(X, X))
    into = fx.Graph()
    into.output(into.graph_copy(gm.graph, val_map={}))
    into.lint()


def test_a_tracer_decides_branches_and_loops() -> None:
    class Taken(fx.Tracer):
        def to_bool(self, proxy: Any) -> bool:
            return True

        def iter(self, proxy: Any) -> Any:
            return iter([proxy[0], proxy[1]])

    gm = fx.GraphModule({}, Taken().trace(lambda x: sum(row for row in x) if x.sum() > 9 else x))
    assert np.array_equal(gm(X), X[0] + X[1])
    with pytest.raises(errors.CaptureError, match="a formatted string"):
        fx.symbolic_trace(lambda x: f"{x:.2f}")


def test_layers_without_leaves_are_traced_into() -> None:
    class Inside(fx.Tracer):
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return False

    model = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 2, bias=False)).init(0)
    gm = fx.GraphModule(model, Inside().trace(model))
    assert not gm.graph.find_nodes(op="call_module") and np.array_equal(gm(X), model(X))
    assert np.array_equal(gm(X[None]), model(X[None]))


def test_specialised_arguments_may_be_given_again() -> None:
    def f(x: Any, flag: bool, k: int = 1, *, name: Any = "a") -> Any:
        return (x * 2 if flag else x) + k + len(name)

    gm = fx.symbolic_trace(f, concrete_args={"flag": True, "name": "a"})
    for module in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        for given in [((X,), {}), ((X, True, 1), {}), ((X,), {"flag": True}), ((X,), {"name": "a", "k": 1})]:
            assert np.array_equal(module(*given[0], **given[1]), X * 2 + 2)
        with pytest.raises(ValueError, match="traced for flag=True, not False"):
            module(X, False, 1)


def test_results_are_objects_or_an_error() -> None:
    pair = fx.symbolic_trace(lambda x: Pair(x + 1, {"y": x * 2}))(X)
    assert type(pair) is Pair and np.array_equal(pair.second["y"], X * 2)
    named = fx.symbolic_trace(lambda x: collections.OrderedDict(a=x, b=[x + 1]))(X)
    assert type(named) is collections.OrderedDict and np.array_equal(named["b"][0], X + 1)

    class Other:
        def __init__(self, held: Any) -> None:
            self.held = held

    for kind in (Other, lambda x: {x}, lambda x: collections.defaultdict(int, a=x)):
        with pytest.raises(errors.CaptureError, match="holds traced values"):
            fx.symbolic_trace(lambda x, kind=kind: kind(x + 1), concrete_args={"kind": kind})


def test_passes_take_modules() -> None:
    gm = fx.symbolic_trace(lambda x: np.exp((x.T.T - 0) * 1) / 4)
    assert fx.propagate_shapes(gm, fx.Meta((3, 4), np.dtype("f8"))) is gm and fx.flops(gm) > 0
    assert fx.simplify(gm) is gm and "transpose" not in gm.code and ".T" not in gm.code
    assert np.array_equal(gm(X), np.exp(X) / 4)
    assert fx.memory(gm).peak > 0 and b"digraph" in fx.draw(gm, format="dot")
    assert gm.print_readable(print_output=False).startswith("class GraphModule:\n    def forward")


def test_passes_that_read_rows_say_so_of_layers() -> None:
    model = nn.Sequential(nn.Conv2D(1, 2, 3), nn.BatchNorm(2), nn.ReLU()).init(0)
    images = np.ones((2, 1, 5, 5), np.float32)
    gm = fx.symbolic_trace(model, concrete_args={"mode": "test"})
    for run in (fx.fold_convolutions, lambda m: fx.quantize(m, [images])):
        with pytest.raises(ValueError, match=r"call of the layer '0': .*fx.capture"):
            run(gm)
    folded = fx.fold_convolutions(fx.capture(gm, images))
    assert len(folded.graph.find_nodes(op="call_function")) == 1 and np.allclose(folded(images), gm(images), atol=1e-5)


def total(*args: Any, **kwargs: Any) -> Any:
    return sum(args) * kwargs.get("scale", 1)


def first_two(*args: Any, scale: Any = 1, **kwargs: Any) -> Any:
    a, b = args
    args[0][0] = 7.0
    return (a * b + kwargs["shift"]) * scale


def masked(x: Any, mask: Any = None, n: int = 2) -> Any:
    return x * n if mask is None else np.where(mask, x, 0.0)


def zeros_or_all(x: Any, whole: bool) -> Any:
    return x if whole else x * 0.0


def asked_in_a_call(x: Any, mask: Any = None) -> Any:
    return zeros_or_all(x, mask is None)


class Held:
    def __init__(self) -> None:
        self.w = np.ones(4)

    def __call__(self, *args: Any) -> Any:
        return self.w * args[0]


PH, TWO = fx.PH, {"concrete_args": {"args": (fx.PH, fx.PH)}}
CALLS: list[tuple[Any, dict, tuple, dict]] = [
    (first_two, {}, (X, X + 1), {"shift": X}),
    (first_two, {}, (X, X + 1), {"shift": X, "scale": 3}),
    (total, TWO, (X, X + 1), {}),
    (total, {"concrete_args": {"args": (PH,), "kwargs": {"scale": PH}}}, (X,), {"scale": 2}),
    (
        lambda p, k: p[0]["w"] * k + p[0]["n"] - p[1],
        {"concrete_args": {"p": ({"w": PH, "n": 3}, PH)}},
        (({"w": X, "n": 3}, X), 2),
        {},
    ),
    (lambda *args: np.stack(args), {}, (X, X), {}),
    (lambda x, *args, k=3, **kwargs: total(x, *args, **kwargs) * k, {}, (X,), {}),
    (lambda x, k=2, *, shift: x * k + shift, {}, (X,), {"shift": X}),
    (Held(), {}, (X,), {}),
    (masked, {}, (X, X > 0), {}),
    (masked, {"concrete_args": {"mask": None}}, (X,), {"n": 4}),
    (functools.partial(masked, mask=None), {}, (X,), {"n": 4}),
    (functools.partial(np.sum, axis=0), {}, (X,), {}),
    (functools.partial(mlp(), mode="test"), {}, (X,), {}),
    (fx.symbolic_trace(lambda *args: args[0] * 2), {}, (X,), {}),
    (np.exp, {}, (X,), {}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: getattr(call[0], "__name__", type(call[0]).__name__))
def test_arguments_of_every_kind_are_inputs(call: tuple) -> None:
    f, options, args, kwargs = call
    gm = fx.symbolic_trace(f, **options)
    gm.graph.lint()
    (eager, *_), given, again = want = [copy.deepcopy(args) for _ in range(3)]
    result = f(*want[0], **kwargs)
    for module, at in ((gm, given), (fx.Interpreter(gm).run, again)):
        assert np.array_equal(module(*at, **kwargs), result)
        assert f is not first_two or np.array_equal(at[0], eager)  # what was written


def test_arguments_that_no_graph_has_are_refused() -> None:
    for f in (total, lambda *args: args[0] * len(args)):
        with pytest.raises(errors.CaptureError, match=r"args.*fx\.PH"):
            fx.symbolic_trace(f)
    with pytest.raises(AssertionError, match=r"a mask that is given; for none: .*{'mask': None}"):
        fx.symbolic_trace(masked)(X)
    with pytest.raises(AssertionError, match="a mask that is given"):
        fx.symbolic_trace(asked_in_a_call)(X)
    with pytest.raises(TypeError):
        fx.symbolic_trace(total, **TWO)(X, X, X)
