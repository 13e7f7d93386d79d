"""Figures about a graph: bytes alive, places in one block, operations and bytes moved."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest
from test_fuzz_writes import make, run

import minnp
import minnp.numpy as np
from minnp import fx, grad, jit
from minnp.core.graph.effects import guard, pick
from minnp.core.graph.graph import Graph, Node
from minnp.core.graph.node import map_nodes
from minnp.core.jit.executor import compile_host
from minnp.core.passes import bytes_moved, cost, flops, memory, plan_buffers
from minnp.core.passes.memory import storages
from minnp.core.rows.primitive import Primitive

N = 4096
X = onp.random.default_rng(0).uniform(0.2, 1, N)


def graph_of(f: Callable, *args: Any) -> Graph:
    return jit(f).lower(*args).graph


def chain(x: Any) -> Any:
    y = np.exp(x) * x  # exp dies here
    y = y[::2].reshape(-1, 4)  # a view of y
    return np.sum(np.sqrt(y)[:, 0]) + y[0, 0]


def two_results(x: Any) -> Any:
    q, r = np.divmod(x, 0.25)
    return q + np.tanh(r)


def writes(x: Any) -> Any:
    y = np.zeros(x.shape)
    for i in range(4):
        y[i::4] = x[i::4] * i
    return y * 2


def mlp(w: Any, v: Any, x: Any) -> Any:
    return np.mean((np.tanh(x @ w) @ v) ** 2)


R = onp.random.default_rng(1)
PROGRAMS = [
    (chain, (X,)),
    (two_results, (X,)),
    (writes, (X,)),
    (grad(mlp), (R.normal(size=(40, 50)), R.normal(size=(50, 30)), R.normal(size=(60, 40)))),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_the_estimate_is_what_a_run_allocates(f: Callable, args: tuple) -> None:
    graph = graph_of(f, *args)
    compiled = compile_host(graph, {n.target: n.meta["constant"] for n in graph.find_nodes(op="get_attr")})
    before = minnp.memory_reuse(False)
    try:
        compiled(*args)
        tracemalloc.start()
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        out = compiled(*args)
        peak = tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()
        minnp.memory_reuse(True if before is None else before)
    assert out
    figures = memory(graph)
    assert figures.peak <= figures.total
    assert abs(peak - figures.peak) < 0.1 * figures.peak + 4096, (peak, figures)


def test_the_figures_of_a_small_graph() -> None:
    outside = np.ones(8)
    graph = graph_of(lambda x: np.exp(x) * x + outside, onp.ones(8))
    figures = memory(graph)
    assert (figures.inputs, figures.outputs, figures.peak) == (64, 64, 128)
    assert figures.total == 3 * 64 and figures.constants == 64
    assert figures.at in dict(figures.timeline) and dict(figures.timeline)[figures.at] == 128
    assert str(figures).startswith("peak 128, total 192, inputs 64")


def test_views_allocate_nothing_and_keep_their_source_alive() -> None:
    graph = graph_of(lambda x: np.sum(np.exp(x).reshape(2, -1)[0].T), onp.ones(8))
    made = storages(graph)
    names = [[n.name for n in s.names] for s in made]
    assert names[0][0] == "exp" and any(n.startswith("reshape") for n in names[0])
    assert memory(graph).total == 64 + 8


def test_an_unknown_shape_is_named() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(np.rows["exp"], (x,))
    graph.output(graph.call_function(np.rows["tanh"], (y,)))
    with pytest.raises(ValueError, match="the shape of exp is not known"):
        memory(graph)


# ------------------------------------------------------------------ buffer plans
def run_in_block(graph: Graph, args: tuple) -> Any:
    """Run a planned graph with every result stored at its place in one block full of rubbish."""
    block = onp.full(graph.output_node().meta["block"], 0xAB, onp.uint8)
    values: dict[Node, Any] = {}
    inputs = iter(args)
    shared = {n for s in storages(graph) for n in s.names[1:]}
    for node in graph.nodes:
        given, named = map_nodes((node.args, node.kwargs), values.__getitem__)
        if node.op == "placeholder":
            values[node] = next(inputs)
        elif node.op == "get_attr":
            values[node] = node.meta["constant"]
        elif node.op == "output":
            return given[0]
        elif node.target is guard:
            continue
        else:
            target = node.target
            kernel = target.numpy if isinstance(target, Primitive) else getattr(target, "__wrapped__", target)
            y = kernel(*given, **named) if node.target is not pick else given[0][given[1]]
            slot = node.meta.get("buffer")
            if slot is not None and (node not in shared or node.target is pick):
                y = onp.asarray(y)
                place = block[slot.offset : slot.offset + slot.nbytes].view(y.dtype).reshape(y.shape)
                place[...] = y
                y = place
            elif slot is not None and node.target.name == "write_view":
                given[0][...] = y
                y = given[0]
            values[node] = y
    return None


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_a_plan_reuses_memory_and_never_what_is_still_read(f: Callable, args: tuple) -> None:
    graph = plan_buffers(graph_of(f, *args))
    want = jit(f)(*map(np.array, args))
    got = run_in_block(graph, args)
    parts = want if isinstance(want, (tuple, list)) else [want]
    for a, b in zip(got, parts, strict=True):
        onp.testing.assert_allclose(a, onp.asarray(b), rtol=1e-12, atol=1e-15)  # a backend's kernels round differently
    figures = memory(graph)
    assert graph.output_node().meta["block"] <= figures.peak + 64 * len(graph)


@pytest.mark.dealt
@pytest.mark.parametrize("seed", range(60))
def test_plans_of_random_programs_hold(seed: int) -> None:
    program, x = make(seed, 12), onp.random.default_rng(seed).uniform(-1, 1, (3, 3))
    with onp.errstate(all="ignore"):
        graph = plan_buffers(graph_of(lambda x: run(program, x, np), x))
        got = run_in_block(graph, (x.copy(),))[0]
        want = onp.asarray(run(program, np.array(x), np))  # sums of another layout round differently
        onp.testing.assert_allclose(onp.asarray(got), want, rtol=1e-12)


# ------------------------------------------------------------------ costs
def test_costs_are_the_rows_own_and_views_are_free() -> None:
    graph = graph_of(lambda x, w: (x @ w).T + 1.0, onp.ones((4, 5)), onp.ones((5, 6)))
    by_name = {n.name: cost(n) for n in graph.nodes}
    assert by_name["matmul"] == (2 * 4 * 5 * 6, 8 * (20 + 30 + 24))
    assert by_name["transpose"] == (0, 0)
    assert by_name["add"] == (24, 8 * 48)
    assert flops(graph) == 264 and bytes_moved(graph) == 8 * (74 + 48)


def test_calls_of_public_functions_cost_what_their_rows_do() -> None:
    def f(x: Any, mode: Any = None) -> Any:
        a, b = np.split(np.tanh(x @ x), 2)
        return (np.dot(a, x) * 2).sum() + b.max()

    x = onp.ones((4, 4))
    traced = fx.propagate_shapes(fx.symbolic_trace(f).graph, x)
    assert flops(traced) == flops(graph_of(f, x)) > 0
    assert memory(traced).inputs == x.nbytes
