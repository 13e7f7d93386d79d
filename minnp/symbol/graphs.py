"""Symbols as graphs of minnp, and MXNet's own symbols as ours and back."""

from __future__ import annotations

from typing import Any

from ..core.graph.effects import assign, pick
from ..core.graph.graph import Graph
from ..errors import SymbolError
from .inference import made_shape
from .saving import load_json
from .symbol import Symbol


def to_graph(symbol: Symbol, training: bool = False) -> Graph:
    """See Symbol.to_graph."""
    graph, results = Graph(), {}
    nodes = symbol.nodes
    for node in nodes:
        if node.operator is None:
            results[id(node), 0] = graph.create_node("placeholder", node.name, name=node.name)
    for node in nodes:
        row = node.operator
        if row is None:
            continue
        if 0 in (made_shape(node) or ()):
            raise SymbolError(
                f"{row.name} {node.name!r} makes an array {made_shape(node)}, where 0 is a size that follows from the "
                "inputs' shapes, which a symbol's graph lacks: capture a call of minnp.Function(symbol) instead"
            )
        options = row.keywords(node.parameters) | ({"training": training} if row.training else {})
        inputs = [results[id(child), i] for child, i in node.inputs]
        whole = graph.create_node("call_function", row.definition, (*inputs, *node.subgraphs), options, node.name)
        if row.drawn is True or (row.drawn and training):
            whole.meta["effect"] = True
        whole.meta["where"] = f"node {node.name!r} of the symbol"
        owners = [results[id(child), i] for child, i in node.states] if training or row.always else []
        single = len(node.outputs) == 1 and not owners
        for i in range(len(node.outputs)):
            part = whole if single else graph.create_node("call_function", pick, (whole, i), {}, node.result(i))
            results[id(node), i] = part
        for k, state in enumerate(owners):
            value = graph.create_node("call_function", pick, (whole, len(node.outputs) + k), {})
            graph.create_node("call_function", assign, (state, value), {}).meta["effect"] = True
    heads = [results[id(n), i] for n, i in symbol._heads]
    graph.output(heads[0] if len(heads) == 1 else tuple(heads))
    graph.eliminate_dead_code()
    return graph


def from_mxnet(symbol: Any) -> Symbol:
    """An `mx.sym` as a symbol of ours. Raises SymbolError for operators that are not here.

    >>> net = sym.from_mxnet(mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3))  # doctest: +SKIP
    """
    return load_json(symbol.tojson())


def to_mxnet(symbol: Symbol) -> Any:
    """A symbol of ours as an `mx.sym`; MXNet must be installed.

    >>> net = sym.to_mxnet(sym.FullyConnected(sym.Variable("x"), num_hidden=3))  # doctest: +SKIP
    """
    import mxnet

    return mxnet.sym.load_json(symbol.tojson())
