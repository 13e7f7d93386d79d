"""split_module: a graph as a graph of smaller ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from minnp.core.graph.effects import pick
from minnp.core.graph.graph import Graph
from minnp.core.graph.node import Node, map_nodes

from .graph_module import GraphModule


def split_module(gm: GraphModule, part: Any, split_callback: Callable[[Node], Hashable] | None = None) -> GraphModule:
    """A GraphModule that calls one GraphModule for every part of `gm`; numbers, parameters and writes are the same.

    part    node -> which part it belongs to, any hashable: the module is named after it, `part_encoder`. A predicate
            (True or False) cuts the program where its answer changes, into part_0, part_1, ...: those with even numbers
            are where it is False
    split_callback    the same as torch.fx has it: split_module(gm, root, split_callback) makes submod_0, submod_1, ...
    Raises ValueError if two parts need each other's results. Inputs, attributes and the output belong to no part.

    >>> program = fx.symbolic_trace(lambda x: np.exp(np.sin(x)))
    >>> parts = fx.split_module(program, lambda node: node.name)
    >>> [node.target for node in parts.graph.nodes if node.op == "call_module"]
    ['part_sin', 'part_exp']
    """
    graph, part, kind = gm.graph, split_callback or part, "submod" if split_callback else "part"
    calls = [n for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    of = {n: part(n) for n in calls}
    if all(type(v) is bool for v in of.values()):
        of = _levels(calls, of)
    parts: dict[Any, list[Node]] = {}
    for n in calls:
        parts.setdefault(of[n], []).append(n)
    top = Graph()
    values: dict[Node, Any] = {}
    for n in graph.find_nodes(op="placeholder"):
        values[n] = top.node_copy(n)
    root: dict[str, Any] = {}
    for key in _in_order(parts, of):
        inside = parts[key]
        wanted = [n for n in inside if any(of.get(u, _OUTSIDE) != key for u in n.users)]
        module, reads = _module_of(gm, inside, wanted)
        name = _unused(f"{kind}_{key}", root)
        root[name] = module
        call = top.call_module(name, [_read(top, n, values) for n in reads])
        call.meta["effect"] = any(n.meta.get("effect") for n in inside)
        call.meta["where"] = inside[0].meta.get("where", "")
        for i, n in enumerate(wanted):
            values[n] = call if len(wanted) == 1 else top.create_node("call_function", pick, (call, i), name=n.name)
            values[n].meta.update({k: v for k, v in n.meta.items() if k != "effect"})
    result = graph.output_node()
    top.output(map_nodes(result.args[0], lambda n: _read(top, n, values)))
    for n in top.find_nodes(op="get_attr"):
        if "constant" not in n.meta:
            root.setdefault(n.target, gm.get_submodule(n.target))
    whole = GraphModule(root, top, gm.class_name)
    whole.specialised = gm.specialised
    return whole


_OUTSIDE = object()


def _levels(calls: list[Node], of: dict[Node, Any]) -> dict[Node, int]:
    """Numbers that grow along the program and change where the predicate does, so that no two parts need each other."""
    levels: dict[Node, int] = {}
    least = 0  # what has an effect stays in the order of the program
    for n in calls:
        level = max((levels[i] for i in n.all_input_nodes if i in levels), default=0)
        level = max(level, least) if n.meta.get("effect") else level
        levels[n] = level + (level % 2 != int(of[n]))
        least = max(least, levels[n]) if n.meta.get("effect") else least
    return levels


def _in_order(parts: dict[Any, list[Node]], of: dict[Node, Any]) -> list:
    """The parts, each after those it reads. Raises ValueError if they read each other."""
    needs: dict[Any, set] = {k: set() for k in parts}
    effect: Any = _OUTSIDE
    for n, key in of.items():
        needs[key] |= {of[i] for i in n.all_input_nodes if i in of and of[i] != key}
        if n.meta.get("effect"):
            if effect is not _OUTSIDE and effect != key:
                needs[key].add(effect)
            effect = key
    order: list = []
    while len(order) < len(parts):
        ready = next((k for k in parts if k not in order and needs[k] <= set(order)), _OUTSIDE)
        if ready is _OUTSIDE:
            left = [k for k in parts if k not in order]
            raise ValueError(f"parts {', '.join(map(str, left))} need each other's results; choose other parts")
        order.append(ready)
    return order


def _module_of(gm: GraphModule, inside: list[Node], wanted: list[Node]) -> tuple[GraphModule, list[Node]]:
    """(the part as a module, the nodes outside that are its inputs)"""
    graph = Graph()
    within = set(inside)
    reads = [i for i in dict.fromkeys(i for n in inside for i in n.all_input_nodes) if i not in within]
    inputs = [i for i in reads if i.op != "get_attr"]
    values: dict[Node, Node] = {}
    for i in inputs:
        values[i] = graph.placeholder(i.name)
        values[i].meta.update({k: v for k, v in i.meta.items() if k != "effect"})
    for n in (*(i for i in reads if i.op == "get_attr"), *inside):
        values[n] = graph.node_copy(n, values.__getitem__)
    results = [values[n] for n in wanted]
    graph.output(results[0] if len(results) == 1 else tuple(results))
    return GraphModule(gm, graph), inputs


def _read(top: Graph, node: Node, values: dict[Node, Any]) -> Node:
    """The node of the top graph for a node of the old one; attributes are read where they are needed."""
    if node not in values:
        values[node] = top.node_copy(node)
    return values[node]


def _unused(name: str, taken: dict) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    while name in taken:
        name += "_"
    return name
