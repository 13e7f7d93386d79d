"""Dead code: what nobody reads goes, except inputs, guards and random draws."""

from __future__ import annotations

from ..graph.effects import is_loop
from ..graph.graph import Graph
from .modules import on_modules


@on_modules
def dead_code(graph: Graph) -> Graph:
    """The graph without nodes whose value is never used.

    >>> graph = fx.symbolic_trace(lambda x: (np.exp(x), x + 1)[1]).graph
    >>> len(fx.dead_code(graph))
    3
    """
    graph.eliminate_dead_code()
    for node in reversed(graph.nodes):
        if is_loop(node) and not node.users:  # only what may fail in it is left
            row, places = node.target.checking()
            if row is None:
                graph.erase_node(node)
            elif row is not node.target:
                node.target, node.args = row, tuple([node.args[k] for k in places])
                node.meta["value"] = ()
    graph.eliminate_dead_code()
    return graph
