"""Common subexpressions: a call with the same target and inputs is made once."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..graph.aliasing import is_write
from ..graph.effects import guard
from ..graph.graph import Graph, Node
from .modules import on_modules
from .rows import escapes, is_pure, row_of


@on_modules
def common_subexpressions(graph: Graph) -> Graph:
    """The graph with every repeated pure call read from its first occurrence, and every guard once.

    What the caller may hold is not merged: two results of a program are two arrays.

    >>> graph = fx.symbolic_trace(lambda x: np.exp(x) + np.exp(x)).graph
    >>> len(graph), len(fx.common_subexpressions(graph))
    (5, 4)
    """
    seen: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.target is guard:
            if seen.setdefault(("guard", _key(node.args), _key(node.kwargs)), node) is not node:
                graph.erase_node(node)
            continue
        if not is_pure(node) or written_to(node):
            continue
        row = row_of(node)
        key = (node.op, node.target if row is None else row.name, _key(node.args), _key(node.kwargs))
        first = seen.setdefault(key, node)
        if first is not node and not escapes(node):
            node.replace_all_uses_with(first)
            graph.erase_node(node)
    return graph


def written_to(node: Node) -> bool:
    """Whether a node makes an array that is to be filled: merged with another, each of the two writes would copy it."""
    return not node.all_input_nodes and any(is_write(u) and u.args[0] is node for u in node.users)


def _key(x: Any) -> Any:
    """A hashable stand-in that is equal only for arguments that mean the same."""
    if isinstance(x, Node):
        return ("node", id(x))
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_key, x))
    if isinstance(x, dict):
        return ("dict", *((k, _key(v)) for k, v in sorted(x.items())))
    if isinstance(x, slice):
        return ("slice", _key(x.start), _key(x.stop), _key(x.step))
    if type(x) is float:  # not NumPy's, which makes other dtypes
        return ("float", x.hex())  # 0.0 and -0.0 differ
    if type(x) is complex:
        return ("complex", x.real.hex(), x.imag.hex())
    if isinstance(x, (onp.ndarray, onp.generic)):
        return ("array", id(x)) if x.dtype.hasobject else ("array", x.dtype.str, x.shape, x.tobytes())
    try:
        hash(x)
    except (TypeError, ValueError):  # ValueError: a memoryview that may be written to
        return ("id", id(x))
    return (type(x), x)
