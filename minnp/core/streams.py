"""Random streams that compiled code draws from: set back when a guard fails after a draw, for the draw is repeated."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .effects import guard
from .graph import Graph


def streams(graph: Graph) -> list[Any]:
    """The bit generators of what a graph draws before its last guard; NumPy's own where none is named."""
    nodes = graph.nodes
    last = max((i for i, n in enumerate(nodes) if n.target is guard), default=-1)
    found: dict[int, Any] = {}
    for node in nodes[:last]:
        if not node.meta.get("effect") or node.target is guard:
            continue
        named = [a.bit_generator for a in node.args if isinstance(a, onp.random.Generator)]
        named += [a._bit_generator for a in node.args if isinstance(a, onp.random.RandomState)]
        for stream in named or [onp.random.mtrand._rand._bit_generator]:
            found[id(stream)] = stream
    return list(found.values())
