"""Costs: floating point operations and bytes, from the rows' own formulas and the shapes in the graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..effects import pick
from ..graph import Graph
from ..node import Node
from ..primitive import Primitive
from .memory import nbytes, shows


class Cost(NamedTuple):
    """What one node costs: floating point operations, and bytes read and written."""

    flops: int
    bytes: int


def cost(node: Node) -> Cost:
    """The cost of a node: the row's own count of operations (0 for rows that move data only); its inputs and its
    result, once each. Looking at memory another way moves nothing."""
    if node.op != "call_function" or node.target is pick or shows(node) is not None:
        return Cost(0, 0)
    count = 0
    if isinstance(node.target, Primitive) and node.target.flops is not None:
        count = int(node.target.flops([meta_of(a) for a in node.args], node.kwargs, node.meta["value"]))
    return Cost(count, sum(map(nbytes, (*node.all_input_nodes, node))))


def flops(graph: Graph) -> int:
    """Floating point operations of one run, by the rows' own counts."""
    return sum(cost(node).flops for node in graph.nodes)


def bytes_moved(graph: Graph) -> int:
    """Bytes that the nodes of one run read and write."""
    return sum(cost(node).bytes for node in graph.nodes)


def meta_of(x: Any) -> Any:
    return x.meta.get("value") if isinstance(x, Node) else x
