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
        row = None if n.op == "null" else lookup(UNDER_NP.get(n.op, n.op) if under_np else n.op)
        inputs = [entry(*e) for e in n.inputs]
        nodes.append(Node(row, n.name, dict(n.attrs), inputs, [_symbol(s, under_np) for s in n.subgraphs]))
        if row is not None and not row.variadic and len(inputs) != len(nodes[-1].arguments):
            names = ", ".join(nodes[-1].arguments)
            raise SymbolError(f"node {n.name!r} ({n.op}) has {len(inputs)} inputs; it takes {names}")
    return Symbol([entry(*e) for e in file.heads])


fromjson = load_json
