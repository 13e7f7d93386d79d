"""Passes take a graph, or a module that has one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from ..graph.graph import Graph, graph_of
from ..rows.primitive import Primitive

P = ParamSpec("P")
R = TypeVar("R")


class HasGraph(Protocol):
    """A GraphModule, as far as a pass knows it."""

    @property
    def graph(self) -> Graph: ...


G = TypeVar("G", bound=Graph | HasGraph)


class Rewriting(Protocol[P]):
    """A pass that gives back what it was given, changed."""

    def __call__(self, graph: G, /, *args: P.args, **kwargs: P.kwargs) -> G: ...


@overload
def on_modules(run: Callable[Concatenate[Graph, P], Graph]) -> Rewriting[P]: ...
@overload
def on_modules(run: Callable[Concatenate[Graph, P], R]) -> Callable[Concatenate[Graph | HasGraph, P], R]: ...
def on_modules(run: Callable) -> Any:
    """The pass, which also takes a GraphModule: it works on the module's graph, and gives the module, recompiled, where
    it gives a graph its graph."""

    @functools.wraps(run)
    def of_either(graph: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(graph, Graph):
            return run(graph, *args, **kwargs)
        result = run(own := graph_of(graph), *args, **kwargs)
        if result is not own:
            return result
        if hasattr(graph, "recompile"):
            graph.recompile()
        return graph

    return of_either


def check_rows(graph: Graph, who: str) -> None:
    """Raise ValueError, with the way out, for a pass that would overlook what a graph computes: calls of layers, or
    functions as they were written, as fx.symbolic_trace leaves them."""
    for node in graph.find_nodes(op="call_module"):
        raise ValueError(
            f"{who} reads rows, and {node.name} is a call of the layer {node.target!r}: give it what "
            "minnp.fx.capture(module, *inputs) makes of the module"
        )
    calls = [n for n in graph.nodes if n.op in ("call_function", "call_method")]
    if calls and not any(isinstance(n.target, Primitive) for n in calls):
        raise ValueError(
            f"{who} reads rows, and {calls[0].name} and the others are calls as the program has them: give it what "
            "minnp.fx.capture(function, *inputs) makes of the function"
        )
