"""Elementwise fusion: operations on large arrays of one shape become one call that runs them block by block.

A cluster is a set of elementwise nodes of one shape that nothing outside has to run between. It is found greedily, in
order; the reduction that ends a chain goes into it. core.cpu.fused runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..cpu.fused import Reduction, cast, fuse, is_constant, select
from ..cpu.kernels import is_beside
from ..graph.effects import pick
from ..graph.graph import Graph, Node
from ..rows.primitive import Meta, Primitive
from .modules import on_modules

LEAST = 1 << 15  # elements from which a block at a time is faster than an operation at a time
REDUCTIONS = {"sum": onp.add, "mean": onp.add, "max": onp.maximum, "min": onp.minimum}


class Fused:
    """The target of a fused node: (*arrays) -> list of arrays. `names` are the nodes it stands for."""

    makes_new = True

    def __init__(self, run: Any, names: list[str]) -> None:
        self.run, self.names = run, names

    def __call__(self, *arrays: Any, out: Any = ()) -> list:
        return self.run(*arrays, out=out)

    def takes_out(self, i: int) -> bool:
        """Whether `out` may hold an array for result i."""
        return self.run.__self__.reduction is None

    def __repr__(self) -> str:
        return f"<fused {', '.join(self.names)}>"


class Cluster:
    """Nodes to run as one, in order; `first` and `last` are their places in the graph.

    reductions   those of which the value is complete only when the cluster has run
    """

    __slots__ = ("first", "last", "nodes", "reductions", "shape")

    def __init__(self, shape: Any, at: int) -> None:
        self.shape, self.first, self.last = shape, at, at
        self.nodes: list[Node] = []
        self.reductions: set[Node] = set()


@on_modules
def fuse_elementwise(graph: Graph) -> Graph:
    """The graph with its clusters of elementwise nodes each replaced by one call; results are the same to the bit.

    >>> graph = fx.capture(lambda x: np.exp(np.sin(x) + 1), np.ones((1000, 1000))).graph
    >>> len(graph), len(fx.fuse_elementwise(graph))
    (5, 4)
    """
    merged = False
    for cluster in clusters(graph):
        merged |= replace(graph, cluster)
    return in_order(graph) if merged else graph


# ------------------------------------------------------------------ finding clusters
def clusters(graph: Graph) -> list[Cluster]:
    """Clusters of at least two elementwise nodes."""
    found = gather(graph, lambda n: None if kernel_of(n) is None else (n.meta["value"].shape, False))
    return [c for c in found if len(c.nodes) > 1]


def gather(graph: Graph, space_of: Callable[[Node], tuple[Any, bool] | None]) -> list[Cluster]:
    """Clusters, found greedily: a node joins the one of an input, or the latest of its space, if nothing outside has to
    run between.

    space_of   node -> (the space of the clusters it may join, whether it reduces: then no member may read it), or None
    """
    nodes = graph.nodes
    at = {n: i for i, n in enumerate(nodes)}
    needs = dependencies(nodes)
    member: dict[Node, Cluster] = {}
    latest: dict[Any, Cluster] = {}
    for i, node in enumerate(nodes):
        found = space_of(node)
        if found is None:
            continue
        space, reduces = found
        inputs = node.all_input_nodes if space is None else [unbroadcast(a) for a in node.args if isinstance(a, Node)]
        candidates = [member[n] for n in inputs if n in member] + [latest.get(space)]
        for cluster in dict.fromkeys(candidates):
            if cluster is None or cluster.shape != space or any(n in cluster.reductions for n in inputs):
                continue
            if joins(node, cluster, member, needs, at):
                break
        else:
            cluster = latest[space] = Cluster(space, i)
        cluster.nodes.append(node)
        if reduces:
            cluster.reductions.add(node)
        cluster.last = i
        member[node] = cluster
    return list(dict.fromkeys(member.values()))


def dependencies(nodes: list[Node]) -> dict[Node, list[Node]]:
    """What every node must follow: its inputs, and for a node with an effect the one before it."""
    needs, effect = {}, None
    for n in nodes:
        needs[n] = n.all_input_nodes
        if n.meta.get("effect"):
            if effect is not None:
                needs[n] = [*needs[n], effect]
            effect = n
    return needs


def kernel_of(node: Node) -> Any:
    """The elementwise kernel of a node that may be fused, or None."""
    target, meta = node.target, node.meta.get("value")
    if node.op != "call_function" or not isinstance(target, Primitive) or type(meta) is not Meta or meta.size < LEAST:
        return None
    if "handling" in node.meta:
        return None
    for a in node.args:
        if not (is_constant(a) or (isinstance(a, Node) and type(a.meta.get("value")) is Meta)):
            return None
        if isinstance(a, Node) and a.meta.get("weak"):  # a Python number, that decides no dtype
            return None
    kernel = target.numpy
    if len(node.args) == 2 and is_beside(kernel, *(a.meta["value"] if isinstance(a, Node) else a for a in node.args)):
        return None
    if isinstance(kernel, onp.ufunc):
        fits = kernel.nout == 1 and kernel.signature is None and not node.kwargs
        return kernel if fits and target.fast is kernel else None
    if target.name == "where" and len(node.args) == 3:
        return select
    if target.name in ("npx.strong_divide", "npx.strong_multiply", "npx.strong_product"):
        return kernel
    if target.name == "astype" and list(node.kwargs) == ["dtype"]:
        return cast(node.kwargs["dtype"])
    return None


def joins(node: Node, cluster: Cluster, member: dict, needs: dict, at: dict[Node, int]) -> bool:
    """Whether nothing outside the cluster has to run after one of its nodes and before this one."""
    pending = [n for n in needs[node] if member.get(n) is not cluster]
    seen: set[Any] = set()
    while pending:
        n = pending.pop()
        group = member.get(n, n)
        if group is cluster:
            return False
        last = group.last if isinstance(group, Cluster) else at[n]
        if group in seen or last < cluster.first:
            continue
        seen.add(group)
        for m in group.nodes if isinstance(group, Cluster) else [n]:
            pending += needs[m]
    return True


# ------------------------------------------------------------------ replacing them
def replace(graph: Graph, cluster: Cluster) -> bool:
    """Put one fused call in the place of the cluster's last node; False if its form is not one that runs in blocks."""
    inside = set(cluster.nodes)
    results = [n for n in cluster.nodes if any(u not in inside for u in n.users)]
    end = reduction_of(results, cluster) if len(results) == 1 else None
    sources: list[Any] = []
    for n in cluster.nodes:
        for a in map(unbroadcast, n.args):
            if a not in inside and not any(a is s for s in sources):
                sources.append(a)
    slots = {id(s): i for i, s in enumerate(sources)}
    slots |= {id(n): len(sources) + i for i, n in enumerate(cluster.nodes)}
    steps = [(kernel_of(n), [slots[id(unbroadcast(a))] for a in n.args], slots[id(n)]) for n in cluster.nodes]
    inputs = [s.meta["value"] if isinstance(s, Node) else s for s in sources]
    run = fuse(steps, inputs, [slots[id(n)] for n in results], end[1] if end else None)
    if run is None:
        return False
    if end:
        results = [end[0]]
    names = [n.name for n in (*cluster.nodes, *(results if end else ()))]
    with graph.inserting_before(max((*cluster.nodes, *results), key=graph.nodes.index)):
        target = Fused(run, names)
        call = graph.create_node("call_function", target, [s for s in sources if isinstance(s, Node)], name="fused")
        call.meta["value"] = tuple(n.meta["value"] for n in results)
        for i, n in enumerate(results):
            item = graph.create_node("call_function", pick, (call, i), name=n.name)
            item.meta.update(n.meta)
            n.replace_all_uses_with(item)
    for n in reversed([*cluster.nodes, *(results if end else ())]):
        graph.erase_node(n)
    return True


def unbroadcast(a: Any) -> Any:
    """What an argument shows: a chain broadcasts its inputs itself."""
    if isinstance(a, Node) and isinstance(a.target, Primitive) and a.target.name == "broadcast_to":
        source = a.args[0]
        if isinstance(source, Node) and type(source.meta.get("value")) is Meta and source.meta["value"].shape:
            return source
    return a


def reduction_of(results: list[Node], cluster: Cluster) -> tuple[Node, Reduction] | None:
    """The node that reduces the cluster's one result, if that is all that reads it, and how it does."""
    users = list(results[0].users)
    if len(users) != 1 or not isinstance(users[0].target, Primitive):
        return None
    node, facts = users[0], dict(users[0].kwargs)
    uf = REDUCTIONS.get(node.target.name)
    axis, keepdims, ndim = facts.pop("axis", None), facts.pop("keepdims", False), len(cluster.shape)
    if uf is None or len(node.args) != 1 or any(v is not None for v in facts.values()):
        return None
    if axis in (-1, ndim - 1, (-1,), (ndim - 1,)):
        axis = -1
    elif axis is not None and tuple(axis if isinstance(axis, tuple) else (axis,)) != tuple(range(ndim)):
        return None
    else:
        axis = None
    mean = node.target.name == "mean"
    if mean and results[0].meta["value"].dtype.char not in "fdFD":
        return None
    return node, Reduction(uf, axis, keepdims, mean)


def in_order(graph: Graph) -> Graph:
    """Sort the nodes so that each follows what it needs, and otherwise as they were. Raises ValueError for a cycle."""
    nodes = graph.nodes
    needs = dependencies(nodes)
    done: set[Node] = set()
    waiting: set[Node] = set()
    order: list[Node] = []
    for node in nodes:
        stack = [(node, iter(needs[node]))]
        while stack:
            n, rest = stack[-1]
            if n in done:
                stack.pop()
                continue
            following = next((m for m in rest if m not in done), None)
            if following is None:
                done.add(n)
                order.append(n)
                stack.pop()
            elif following in waiting:
                raise ValueError(f"the nodes of this graph need each other in a circle: {n} and {following}")
            else:
                waiting.add(n)
                stack.append((following, iter(needs[following])))
    graph.reorder(order)
    return graph
