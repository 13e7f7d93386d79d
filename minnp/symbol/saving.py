"""Symbols as JSON, as MXNet writes and reads it: a list of nodes, each with the numbers of its inputs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from ..errors import SymbolError
from . import naming
from .operator import lookup
from .symbol import Node, Symbol

VERSION = 10901


# ------------------------------------------------------------------ writing
def described(symbol: Symbol) -> dict[str, Any]:
    """A symbol as what its JSON says."""
    nodes = symbol.nodes
    number = {id(n): i for i, n in enumerate(nodes)}
    written = []
    for n in nodes:
        entry: dict[str, Any] = {"op": n.operator.name if n.operator else "null", "name": n.name}
        if n.attributes:
            entry["attrs"] = dict(sorted(n.attributes.items()))
        entry["inputs"] = [[number[id(child)], i, 0] for child, i in n.inputs]
        if n.subgraphs:
            entry["subgraphs"] = [described(s) for s in n.subgraphs]
        written.append(entry)
    return {
        "nodes": written,
        "arg_nodes": [i for i, n in enumerate(nodes) if n.operator is None],
        "node_row_ptr": list(itertools.accumulate((len(n.outputs) for n in nodes), initial=0)),
        "heads": [[number[id(n)], i, 0] for n, i in symbol._heads],
        "attrs": {"mxnet_version": ["int", VERSION]},
    }


def tojson(symbol: Symbol) -> str:
    """See Symbol.tojson."""
    return json.dumps(described(symbol), indent=2)


# ------------------------------------------------------------------ reading
def load_json(json_str: str) -> Symbol:
    """The symbol that a JSON text describes.

    Raises SymbolError where the text is no JSON, lacks what a symbol has, or names an operator that is not here.
    """
    try:
        given = json.loads(json_str)
    except (ValueError, RecursionError) as error:
        raise SymbolError(f"this is no JSON: {error}") from None
    return from_description(given)


def load(fname: str) -> Symbol:
    """The symbol that a file written by `save`, or by MXNet, holds."""
    with open(fname, encoding="utf-8") as file:
        return load_json(file.read())


def from_description(given: Any) -> Symbol:
    """The symbol of what json.loads gave."""
    if not isinstance(given, dict) or not isinstance(given.get("nodes"), list) or not given.get("heads"):
        raise SymbolError("a symbol's JSON has the lists 'nodes' and 'heads'")
    nodes: list[Node] = []
    for i, entry in enumerate(given["nodes"]):
        try:
            op, name = entry["op"], entry["name"]
            inputs = [_entry(e, nodes) for e in entry["inputs"]]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise SymbolError(f"node {i} of the symbol cannot be read ({error!r}): {str(entry)[:80]}") from None
        attributes = entry.get("attrs") or entry.get("attr") or entry.get("param") or {}
        if not isinstance(attributes, dict):
            raise SymbolError(f"node {name!r} of the symbol has attributes {attributes!r:.60}, which are no dict")
        texts = {naming.hidden(str(k)): str(v) for k, v in attributes.items()}
        subgraphs = [from_description(s) for s in entry.get("subgraphs", ())]
        nodes.append(Node(None if op == "null" else lookup(op), name, texts, inputs, subgraphs))
    try:
        return Symbol([_entry(e, nodes) for e in given["heads"]])
    except (TypeError, IndexError, ValueError) as error:
        raise SymbolError(f"the heads of the symbol cannot be read ({error!r})") from None


def _entry(entry: Sequence[int], nodes: list[Node]) -> tuple[Node, int]:
    at, result = int(entry[0]), int(entry[1])
    if at < 0 or result < 0 or result >= len(nodes[at].outputs):
        raise IndexError(f"there is no result {result} of node {at} before it")
    return nodes[at], result


fromjson = load_json
