"""Memory: how many bytes live at once while a graph runs, and where in one block each result could lie.

Several nodes may show one piece of memory: a view is its argument's, `pick` one result of several, a write that may go
into the old array itself that array's. So liveness is that of storages, from the node that makes one to the last that
reads any of its names. Inputs and constants are the caller's: they live throughout, and are counted apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as onp

from ..graph.aliasing import donated
from ..graph.effects import pick
from ..graph.graph import Graph
from ..graph.node import Node
from ..rows.primitive import Meta, Primitive
from .modules import on_modules
from .shapes import shape_of, with_shapes

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register


class Storage:
    """One piece of memory a run allocates: `names` are the nodes that show it, the first made it.

    first, last   places in the graph's order between which it lives
    """

    __slots__ = ("first", "last", "names", "nbytes")

    def __init__(self, node: Node, nbytes: int, at: int) -> None:
        self.names, self.nbytes, self.first, self.last = [node], nbytes, at, at

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes of {', '.join(n.name for n in self.names)}>"

    def lives_with(self, other: Storage) -> bool:
        """Whether there is a moment at which both are in use."""
        return self.first <= other.last and other.first <= self.last


class Memory(NamedTuple):
    """Bytes of one run: `peak` is the most that lives at once besides inputs and constants, while node `at` runs.

    total     the sum of all results: what is allocated without reuse
    timeline  (node name, bytes alive while it runs), in order
    """

    peak: int
    at: str
    total: int
    inputs: int
    constants: int
    outputs: int
    timeline: list[tuple[str, int]]

    def __str__(self) -> str:
        figures = ("peak", "total", "inputs", "constants", "outputs")
        return ", ".join(f"{f} {getattr(self, f):,}" for f in figures) + f" bytes (peak at {self.at})"


@on_modules
def memory(graph: Graph, *inputs: Any) -> Memory:
    """The bytes that live at once in one run, from the shapes and dtypes in the graph's meta.

    What kernels use inside themselves is not counted. inputs, and ValueError where a shape is not known, as in flops.

    >>> fx.memory(fx.symbolic_trace(lambda x: np.exp(np.sin(x))).graph, np.ones(1000)).peak
    16000
    """
    with_shapes(graph, inputs)
    nodes = graph.nodes
    live = [0] * len(nodes)
    total = outputs = 0
    for storage in storages(graph):
        total += storage.nbytes
        outputs += storage.nbytes if storage.last == len(nodes) - 1 else 0
        for i in range(storage.first, storage.last + 1):
            live[i] += storage.nbytes
    timeline = [(n.name, b) for n, b in zip(nodes, live, strict=True) if n.op not in ("placeholder", "get_attr")]
    at, peak = max(timeline, key=lambda entry: entry[1])
    sizes = {op: sum(nbytes(n) for n in graph.find_nodes(op=op)) for op in ("placeholder", "get_attr")}
    return Memory(peak, at, total, sizes["placeholder"], sizes["get_attr"], outputs, timeline)


# ------------------------------------------------------------------ storages
def storages(graph: Graph) -> list[Storage]:
    """Every piece of memory one run allocates, in the order it does; views and donated writes allocate none."""
    nodes, writes = graph.nodes, donated(graph)
    shown: dict[Node, Storage | None] = {}  # None: the caller's memory, or none at all
    results: dict[tuple[Node, int], Storage] = {}
    found: list[Storage] = []
    for at, node in enumerate(nodes):
        for n in node.all_input_nodes:
            for storage in [shown.get(n), *(results.get((n, i)) for i in range(_count(n)))]:
                if storage is not None:
                    storage.last = at
        if node.op not in ("call_function", "call_method", "call_module"):
            continue
        source = shows(node, writes)
        value = node.meta.get("value")
        if node.target is pick:
            shown[node] = results.get((node.args[0], node.args[1]))
        elif source is not None:
            shown[node] = shown.get(source)
        elif isinstance(value, tuple):
            given = node.kwargs.get("donate", {})
            for i, part in enumerate(value):
                if i in given:  # a loop's result, in the memory of an argument
                    if (storage := shown.get(node.args[given[i][0]])) is not None:
                        results[node, i] = storage
                    continue
                if _size(part, node):  # else a number of a loop's
                    results[node, i] = Storage(node, _size(part, node), at)
                    found.append(results[node, i])
            continue
        elif node.users and _size(value, node):
            shown[node] = Storage(node, _size(value, node), at)
            found.append(shown[node])
            continue
        if shown.get(node) is not None:
            shown[node].names.append(node)
    return found


def shows(node: Node, writes: set[Node] = frozenset()) -> Node | None:
    """The argument whose memory a node's result is (a view, a write in place), or None: it makes its own."""
    if not isinstance(node.target, Primitive) or not node.args or not isinstance(node.args[0], Node):
        return None
    row, source = node.target, node.args[0]
    if node in writes:
        return source
    if not row.view:
        return None
    return None if row.copies is not None and _copies(node, source) else source


def _copies(node: Node, source: Node) -> bool:
    """Whether the kernel of a view row may make a new array for these arguments."""
    meta = source.meta.get("value")
    if not isinstance(meta, Meta) or any(isinstance(v, Node) for v in node.all_input_nodes[1:]):
        return True
    return node.target.copies(meta, not transposed(source), node.kwargs)


def transposed(node: Node) -> bool:
    """Whether a value may not be contiguous: a view that moved axes or skipped elements."""
    while isinstance(node, Node) and isinstance(node.target, Primitive) and node.target.view:
        if node.target.name not in ("reshape", "expand_dims", "squeeze", "real"):
            return True
        node = node.args[0]
    return False


def nbytes(node: Node) -> int:
    """Bytes of a node's result, by its meta."""
    return _size(node.meta.get("value"), node)


def _size(value: object, node: Node) -> int:
    if isinstance(value, Meta):
        return value.size * onp.dtype(value.dtype).itemsize
    if isinstance(value, tuple):
        return sum(_size(v, node) for v in value)
    if node.users:
        shape_of(node)  # raises if there is none
    return 0


def _count(node: Node) -> int:
    value = node.meta.get("value")
    return len(value) if isinstance(value, tuple) else 0


# ------------------------------------------------------------------ planning
class Slot(NamedTuple):
    """Where a result lies in the block: bytes offset .. offset + nbytes."""

    offset: int
    nbytes: int


@on_modules
def plan_buffers(graph: Graph) -> Graph:
    """The graph with a place for every array it makes, in one block shared by those that never live at once.

    node.meta["buffer"] is its Slot (a view has its source's, of several results each `pick` its own); the bytes needed
    are graph.output_node().meta["block"]. What the graph returns is the caller's and gets no place. Largest first, each
    at the lowest offset where nothing that lives with it lies: Pisarchyk and Lee, "Efficient memory management for deep
    neural net inference", 2020, "greedy by size for offset calculation".

    >>> graph = fx.symbolic_trace(lambda x: np.exp(np.sin(x))).graph
    >>> graph = fx.plan_buffers(fx.propagate_shapes(graph, np.ones(1000)))
    >>> graph.output_node().meta["block"]
    8000
    """
    for node in graph.nodes:
        node.meta.pop("buffer", None)
    end = len(graph) - 1
    placed, block = place([s for s in storages(graph) if s.last != end])
    for slot, storage in placed:
        for node in storage.names:
            if not isinstance(node.meta["value"], tuple):
                node.meta["buffer"] = slot
    graph.output_node().meta["block"] = block
    return graph


def place(wanted: list[Storage]) -> tuple[list[tuple[Slot, Storage]], int]:
    """(where each storage lies, the bytes of the block)"""
    block, placed = 0, []
    for storage in sorted(wanted, key=lambda s: (-s.nbytes, s.first)):
        offset = 0
        for slot, other in sorted(placed, key=lambda p: p[0].offset):
            if storage.lives_with(other):
                if slot.offset - offset >= _aligned(storage.nbytes):
                    break
                offset = max(offset, _aligned(slot.offset + slot.nbytes))
        slot = Slot(offset, storage.nbytes)
        placed.append((slot, storage))
        block = max(block, _aligned(offset + storage.nbytes))
    return placed, block


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT
