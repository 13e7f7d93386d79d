"""A symbol of MXNet, or its JSON, as a graph of ours: what it computes, in minnp.numpy and npx. Needs no mxnet.

A symbol's JSON is a list of nodes: operator, name, attributes (texts), inputs (node, which result).
"""

from __future__ import annotations

import json
from typing import Any

from ...core.graph.graph import Graph, Node
from ...errors import SymbolError
from . import moving as moving  # enters its operators
from .translations import OPERATORS, Attributes, Reader


def to_graph(symbol: Any, training: bool = False) -> Graph:
    """The graph of a symbol: an `mx.sym.Symbol`, or its JSON (text, or what json.loads made of it).

    Inputs, parameters and auxiliary states are placeholders, in the JSON's order (their MXNet name is the target); the
    result is the symbol's, a tuple where it has several. Loss layers give their output, and their label is not read:
    gradients are those of what is computed, to any order.
    training    dropout drops, batch norm takes its batch's statistics, and writes the moving ones where it is given
                arrays to write to
    Raises SymbolError for an operator, or an attribute of one, that has no translation, naming the node.
    """
    if hasattr(symbol, "tojson"):
        symbol = symbol.tojson()
    described = json.loads(symbol) if isinstance(symbol, (str, bytes)) else symbol
    nodes = described["nodes"]
    call = Reader(training)
    results: dict[int, list[Node]] = {}
    for i, node in enumerate(nodes):
        if node["op"] == "null":
            placed = call.graph.create_node("placeholder", node["name"], name=node["name"])
            results[i] = [placed]
    for i, node in enumerate(nodes):
        if node["op"] == "null":
            continue
        attributes = Attributes(node.get("attrs") or node.get("attr") or node.get("param") or {})
        build = OPERATORS.get(node["op"])
        if build is None:
            raise SymbolError(f"node {node['name']!r}: MXNet's operator {node['op']} has no translation to minnp")
        inputs = [results[j][k] for j, k, *_ in node["inputs"]]
        before = len(call.graph)
        try:
            made = build(call, attributes, *inputs)
        except SymbolError as error:
            raise SymbolError(f"node {node['name']!r} ({node['op']}): {error}") from None
        for new in call.graph.nodes[before:]:
            new.meta["where"] = f"node {node['name']!r} of the symbol"
        results[i] = made if isinstance(made, list) else [made]
    heads = [results[i][k] for i, k, *_ in described["heads"]]
    call.graph.output(heads[0] if len(heads) == 1 else tuple(heads))
    call.graph.eliminate_dead_code()
    return call.graph
