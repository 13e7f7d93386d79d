"""Symbols as JSON text and from it; json_format.py knows the format."""

from __future__ import annotations

import os

from ..errors import SymbolError
from . import json_format
from .json_format import SymbolFile, parse_json, to_json
from .operator import lookup
from .operators.numpys import UNDER_NP
from .symbol import Node, Symbol


def tojson(symbol: Symbol) -> str:
    """See Symbol.tojson."""
    file, counts = _file(symbol)
    if symbol.of_numpy:
        file.attrs["is_np_shape"] = 1
    return to_json(file, lambda node: counts.get(id(node), 1))


def _file(symbol: Symbol) -> tuple[SymbolFile, dict[int, int]]:
    """(the symbol as the format has it, how many results each of its calls has, by id)."""
    nodes = symbol.nodes
    number = {id(n): i for i, n in enumerate(nodes)}
    entries = lambda given: [(number[id(n)], i) for n, i in given]
    written, counts = [], {}
    for n in nodes:
        inner = [_file(s) for s in n.subgraphs]
        counts |= {key: count for _, more in inner for key, count in more.items()}
        op = n.operator.name if n.operator else "null"
        written.append(json_format.Node(op, n.name, n.attributes, entries(n.inputs), [file for file, _ in inner]))
        counts[id(written[-1])] = len(n.outputs)
    return SymbolFile(written, entries(symbol._heads)), counts


def load_json(json_str: str) -> Symbol:
    """The symbol that the text json_str describes, whichever version of MXNet since 0.8 wrote it.

    Raises SymbolError where the text is no JSON or no graph, or names an operator that is not here.

    >>> h = sym.exp(sym.Variable("x"), name="e")
    >>> sym.load_json(h.tojson()).list_outputs()
    ['e_output']
    """
    return _symbol(parse_json(json_str))


def load(fname: str) -> Symbol:
    """The symbol in the file fname, written by `save` or by MXNet.

    Raises SymbolError where it holds none, OSError where it is not there.

    >>> sym.exp(sym.Variable("x"), name="e").save("net-symbol.json")
    >>> sym.load("net-symbol.json").list_arguments()
    ['x']
    """
    with open(fname, "rb") as file:
        content = file.read()
    try:
        return load_json(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SymbolError(f"{os.fspath(fname)!r} is no symbol's JSON, which is text in UTF-8: {error}") from error


def _symbol(file: SymbolFile, under_np: bool | None = None) -> Symbol:
    nodes: list[Node] = []
    if under_np is None:
        under_np = bool(file.attrs.get("is_np_shape"))

    def entry(at: int, i: int) -> tuple[Node, int]:
        if i >= len(nodes[at].outputs):
            raise SymbolError(
                f"node {nodes[at].name!r} has {len(nodes[at].outputs)} results; the symbol reads number {i}"
            )
        return nodes[at], i

    for n in file.nodes:
        if n.op in FUSED:
            nodes.append(_parts(n, [entry(*e) for e in n.inputs], under_np))
            continue
        row = None if n.op == "null" else lookup(UNDER_NP.get(n.op, n.op) if under_np else n.op)
        inputs = [entry(*e) for e in n.inputs]
        nodes.append(Node(row, n.name, dict(n.attrs), inputs, [_symbol(s, under_np) for s in n.subgraphs]))
        if row is not None and not row.variadic and len(inputs) != len(nodes[-1].arguments):
            names = ", ".join(nodes[-1].arguments)
            raise SymbolError(f"node {n.name!r} ({n.op}) has {len(inputs)} inputs; it takes {names}")
    return Symbol([entry(*e) for e in file.heads])


def _parts(n: json_format.Node, inputs: list[tuple[Node, int]], under_np: bool) -> Node:
    """A layer that oneDNN fused, as the operators that it was made of: the last of them, with the name of the layer.

    Raises SymbolError for layers of 8-bit integers.
    """
    if n.attrs.get("quantized", "false").lower() in ("true", "1"):
        raise SymbolError(
            f"node {n.name!r} ({n.op}) is a layer of 8-bit integers, fused for MXNet's oneDNN, which cannot be read: "
            "load the model that was quantised, and quantise it with minnp.fx"
        )
    if n.op in ATTENTION:
        heads = {k: v for k, v in n.attrs.items() if k == "heads"}
        return Node(lookup(ATTENTION[n.op]), n.name, heads, inputs)
    if len(n.subgraphs) != 1 or n.subgraphs[0].heads[1:] or len(inputs) != len(n.subgraphs[0].arg_nodes):
        raise SymbolError(f"node {n.name!r} ({n.op}) has {len(inputs)} inputs, which its subgraph does not take")
    body, given, made = n.subgraphs[0], iter(inputs), []
    for part in body.nodes:
        made.append(next(given) if part.op == "null" else (_called(part, made, under_np), 0))
    node, i = made[body.heads[0][0]]
    if i or body.heads[0][1] or node.operator is None:
        raise SymbolError(f"node {n.name!r} ({n.op}) has a subgraph whose result is not its last operator's first")
    node.name = n.name
    return node


def _called(part: json_format.Node, made: list[tuple[Node, int]], under_np: bool) -> Node:
    row = lookup(UNDER_NP.get(part.op, part.op) if under_np else part.op)
    return Node(row, part.name, dict(part.attrs), [(made[at][0], made[at][1] or i) for at, i in part.inputs])


ATTENTION = {
    "_sg_mkldnn_selfatt_qk": "_contrib_interleaved_matmul_selfatt_qk",
    "_sg_mkldnn_selfatt_valatt": "_contrib_interleaved_matmul_selfatt_valatt",
}
FUSED = {"_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", *ATTENTION}
fromjson = load_json
