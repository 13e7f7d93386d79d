"""Dead code: what nobody reads goes, except inputs, guards and random draws."""

from __future__ import annotations

from ..graph.graph import Graph
from .modules import on_modules


@on_modules
def dead_code(graph: Graph) -> Graph:
    """The graph without nodes whose value is never used."""
    graph.eliminate_dead_code()
    return graph
