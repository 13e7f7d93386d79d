"""jit on MXNet: the parts of a captured graph that MXNet's verified operators compute, each bound as one symbol.

A part is a set of nodes of one floating point dtype that nothing else has to run between; it is lowered to a symbol
and bound for its shapes, so that MXNet plans its memory and runs it without Python in between. Every other node goes
through the dispatcher, as it would row by row: to a single verified kernel, or to NumPy. It is an executor that is
bound and not a CachedOp: one of softmax on a convolution of 16 channels kills the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ...core.graph.effects import pick
from ...core.graph.graph import Graph
from ...core.graph.node import Node
from ...core.jit.executor import compile_host
from ...core.passes.fusion import Cluster, gather, in_order
from ...core.rows.primitive import TABLE, Meta, Primitive
from ...errors import BackendUnsupportedError, SymbolError
from . import lowering, symbols
from .executor import Program

LEAST = 2  # nodes that are worth a symbol of their own
DTYPES = ("float32", "float64")
# linalg: its errors are NumPy's to raise; npx.strong: MXNet's product of 0 and an infinity is NaN
NEVER = ("copy", "write_view", "stop_gradient", "einsum", "linalg.", "npx.strong")


class Bound:
    """The target of a node that runs a symbol: (*arrays) -> list of arrays.

    names     the nodes it stands for
    by_rows   the same, row by row: what runs from when MXNet first refuses, as it may for shapes it cannot do
    """

    makes_new = True

    def __init__(
        self, program: Program, by_rows: Callable, metas: Sequence[Meta], dtype: onp.dtype, names: list[str]
    ) -> None:
        self.program, self.by_rows, self.metas, self.dtype, self.names = program, by_rows, metas, dtype, names
        self.refused = ""

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        if self.refused:
            return self.by_rows(*arrays)
        given = [onp.asarray(a).reshape(onp.shape(a) or (1,)) for a in arrays]
        try:
            *results, _ = self.program.forward(given, self.dtype, (), False, [False] * len(given))
        except (SymbolError, BackendUnsupportedError) as refusal:
            self.refused = str(refusal)
            return self.by_rows(*arrays)
        return [r.reshape(m.shape) for r, m in zip(results, self.metas, strict=True)]

    def __repr__(self) -> str:
        return f"<mxnet symbol of {', '.join(self.names)}>"


def compile_graph(graph: Graph, constants: dict[str, Any], backend: Any) -> Callable:
    """The graph as a function of NumPy arrays, its symbols on `device`, the backend that shares NumPy's memory."""
    for part in gather(graph, lambda node: space_of(node, backend)):
        replace(graph, part, backend)
    return compile_host(dispatched(in_order(graph)), constants)


def dispatched(graph: Graph) -> Graph:
    """The graph, its rows run as the policy says."""
    for node in graph.nodes:
        if isinstance(node.target, Primitive) and not node.target.view:
            node.meta["dispatched"] = True
    return graph


def space_of(node: Node, backend: Any) -> tuple[str, bool] | None:
    """The dtype of the part a node may belong to: None where MXNet has no verified operator for these arguments."""
    row, meta = node.target, node.meta.get("value")
    if node.op != "call_function" or not isinstance(row, Primitive) or TABLE.get(row.name) is not row:
        return None
    if type(meta) is not Meta or not meta.size or meta.dtype.name not in backend.verified().get(row.name, ()):
        return None
    if row.view or row.name.startswith(NEVER) or row.name not in symbols.TABLE or meta.dtype.name not in DTYPES:
        return None
    values: list[Any] = []
    for a in node.args:
        if isinstance(a, Node):
            known = a.meta.get("value")
            if a.meta.get("weak"):  # a number that may change: an array of one element to a symbol
                known = Meta((), meta.dtype)
            if type(known) is not Meta or known.dtype != meta.dtype or not known.size:
                return None
            values.append(onp.empty(known.shape, known.dtype))
        elif type(a) in (int, float):
            values.append(a)
        else:
            return None
    if any(n not in node.args for n in node.all_input_nodes) or backend.supports(row, values, dict(node.kwargs)):
        return None
    try:
        params = {k: v for k, v in node.kwargs.items() if v is not None and v is not False}
        lowered = symbols.TABLE[row.name]([lowering.Meta(onp.shape(v), meta.dtype.name) for v in values], params)
        symbols.to_symbol(part_of([node], [node])[0])
    except (SymbolError, BackendUnsupportedError):
        return None
    return None if lowered.guard else (meta.dtype.name, False)  # a guard looks at the data of each call


def part_of(nodes: list[Node], wanted: Sequence[Node]) -> tuple[Graph, list[Node]]:
    """(the nodes as a graph whose results are those wanted, the nodes outside that it reads)"""
    inside, part = set(nodes), Graph()
    copies: dict[Node, Node] = {}
    for n in nodes:
        for i in n.all_input_nodes:
            if i not in inside and i not in copies:
                copies[i] = part.placeholder(i.name)
                known = i.meta["value"]
                copies[i].meta["value"] = Meta((), n.meta["value"].dtype) if i.meta.get("weak") else known
    sources = list(copies)
    for n in nodes:
        copies[n] = part.node_copy(n, copies.__getitem__)
    part.output(tuple(copies[n] for n in wanted))
    return part, sources


def replace(graph: Graph, part: Cluster, backend: Any) -> None:
    """Put one call of a symbol in the place of a part's nodes."""
    nodes, inside = part.nodes, set(part.nodes)
    if len(nodes) < LEAST:
        return
    results = [n for n in nodes if any(u not in inside for u in n.users)]
    own, sources = part_of(nodes, results)
    program = Program(symbols.to_symbol(own).symbol, backend.context)
    at = {n.name: i for i, n in enumerate(sources)}
    if set(program.arguments) != set(at):  # an input that the symbol does not need
        return
    inputs = [sources[at[name]] for name in program.arguments]
    names = own.find_nodes(op="placeholder")
    own.reorder([*(names[at[name]] for name in program.arguments), *(n for n in own.nodes if n.op != "placeholder")])
    by_rows = compile_host(dispatched(own), {})
    metas, dtype = [n.meta["value"] for n in results], nodes[0].meta["value"].dtype
    target = Bound(program, by_rows, metas, dtype, [n.name for n in nodes])
    with graph.inserting_before(max(nodes, key=graph.nodes.index)):
        call = graph.create_node("call_function", target, tuple(inputs), name="symbol")
        call.meta["value"] = tuple(metas)
        for i, n in enumerate(results):
            item = graph.create_node("call_function", pick, (call, i), name=n.name)
            item.meta.update(n.meta)
            n.replace_all_uses_with(item)
    for n in reversed(nodes):
        graph.erase_node(n)
