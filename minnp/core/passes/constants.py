"""Constant folding: what depends on literals alone is computed once."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..array import handle, ndarray, read
from ..graph import Graph, Node
from ..interpreter import Interpreter
from ..node import map_nodes
from ..primitive import Meta
from ..value import Host
from .rows import escapes, is_pure

LARGEST = 1 << 20  # elements of a constant that is worth keeping


def fold_constants(graph: Graph, attributes: bool = False, largest: int = LARGEST) -> Graph:
    """The graph with every pure call that reads no input replaced by its value.

    attributes   fold what reads constants and parameters too: the graph no longer sees them change
    largest      results with more elements are computed at every run
    A constant that the caller would hold, and could write to, is computed at every run. So is a mere np.zeros(3).
    """
    run = Interpreter(graph if graph.owning_module is None else graph.owning_module, graph=graph)
    known: dict[Node, Any] = {}
    for node in graph.nodes:
        if node.op == "get_attr" and attributes:
            known[node] = run.get_attr(node.target, (), {})
        elif is_pure(node) and all(n in known for n in node.all_input_nodes):
            run.env = known
            value = run.run_node(node)
            if isinstance(value, ndarray):
                read(value)
            if getattr(value, "size", 1) <= largest:
                known[node] = value
    for node, value in known.items():
        used = [u for u in node.users if u not in known]
        if node.op == "get_attr" or not used or (not node.all_input_nodes and not isinstance(value, _NUMBERS)):
            continue
        if escapes(node) and isinstance(value, (ndarray, Host)):
            continue
        _replace(graph, node, value)
    graph.eliminate_dead_code()
    return graph


_NUMBERS = (int, float, complex, bool, onp.generic)


def _replace(graph: Graph, node: Node, value: Any) -> None:
    if isinstance(value, _NUMBERS):
        swap = lambda n: value if n is node else n
        for user in list(node.users):
            user.args, user.kwargs = map_nodes(user.args, swap), map_nodes(user.kwargs, swap)
        return
    if not isinstance(value, (ndarray, Host)):
        return
    taken = {n.target for n in graph.find_nodes(op="get_attr")}
    k = next(k for k in range(len(graph) + 1) if f"folded_{k}" not in taken)
    with graph.inserting_before(node):
        constant = graph.get_attr(f"folded_{k}")
    constant.meta.update(
        where=node.meta.get("where", ""),
        constant=handle(onp.array(value)),
        value=Meta(value.shape, value.dtype),
        kind="array",
    )
    node.replace_all_uses_with(constant)
