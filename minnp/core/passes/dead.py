"""Dead code: what nobody reads goes, except inputs, guards and random draws."""

from __future__ import annotations

import numpy as onp

from ..graph.effects import is_loop, pick
from ..graph.graph import Graph, Node
from ..rows.primitive import TABLE, Meta
from .modules import on_modules


@on_modules
def dead_code(graph: Graph) -> Graph:
    """The graph without nodes whose value is never used.

    >>> graph = fx.symbolic_trace(lambda x: (np.exp(x), x + 1)[1]).graph
    >>> len(fx.dead_code(graph))
    3
    """
    for node in graph.nodes:
        without_value(graph, node)
    graph.eliminate_dead_code()
    loops = [node for node in graph.nodes if is_loop(node)]
    for node in reversed(loops):
        if without_unread(graph, node):
            without_unseen(graph, node)
        graph.eliminate_dead_code()
    return graph


def without_unread(graph: Graph, node: Node) -> bool:
    """Leaves of a loop what may fail in it and what somebody reads. Whether anything is left."""
    if any(user.target is not pick for user in node.users):
        return True
    row, places, results = node.target.slice(sorted({user.args[1] for user in node.users}))
    if row is None:
        graph.erase_node(node)
    elif row is not node.target:
        node.target, node.args = row, tuple([node.args[k] for k in places])
        node.meta["value"] = tuple([node.meta["value"][k] for k in results])
        for user in list(node.users):
            user.args = node, results.index(user.args[1])
    return row is not None


def without_value(graph: Graph, node: Node) -> None:
    """A cotangent or tangent of zero is made of the shape alone."""
    meta = node.meta.get("value")
    if node.target is TABLE["zeros_like"] and not node.kwargs and isinstance(meta, Meta):  # a program says a dtype
        node.target, node.args, node.kwargs = onp.zeros, (meta.shape,), {"dtype": meta.dtype}


def without_unseen(graph: Graph, node: Node) -> None:
    """Arrays of which a loop only asks the lengths are not computed for it."""
    for k in node.target.lengths():
        a = node.args[k]
        meta = a.meta.get("value") if isinstance(a, Node) else None
        if meta is not None and a.op == "call_function" and a.target is not onp.empty and isinstance(meta, Meta):
            with graph.inserting_before(node):
                made = graph.call_function(onp.empty, (meta.shape,), {"dtype": meta.dtype})
            made.meta["value"] = meta
            node.args = (*node.args[:k], made, *node.args[k + 1 :])
