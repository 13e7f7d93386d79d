"""replace_pattern: wherever a graph computes what one function says, let it compute what another one says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minnp.core.graph.graph import Graph
from minnp.core.graph.node import Node, map_nodes
from minnp.core.passes.rows import same_target

from .graph_module import GraphModule
from .tracer import Tracer


class Match(NamedTuple):
    """One place where the pattern was: its last node there, and the graph's node for every node of the pattern.

    anchor      the last node
    nodes_map   node of the pattern -> node of the graph

    >>> program = fx.symbolic_trace(lambda x: np.exp(x) + 1)
    >>> match, = fx.replace_pattern(program, lambda x: np.exp(x), lambda x: np.expm1(x))
    >>> type(match) is fx.Match
    True
    """

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(gm: GraphModule, pattern: Callable | Graph, replacement: Callable | Graph) -> list[Match]:
    """Replace every occurrence of `pattern` in the module's graph by `replacement`, and recompile it.

    gm   the module, which is changed

    Both are functions of the same arguments (or graphs). Arguments match any value, the same one everywhere; constants
    match equal constants; `x + y` and np.add(x, y) are one. What is replaced is read from outside by its results
    only, and occurrences do not overlap. Returns the matches; their nodes are gone from the graph.

    Raises ValueError where the two have different numbers of arguments, TypeError for a gm that is no module.

    >>> program = fx.symbolic_trace(lambda x: np.exp(x) - 1)
    >>> len(fx.replace_pattern(program, lambda x: np.exp(x) - 1, lambda x: np.expm1(x)))
    1
    >>> [node.name for node in program.graph.nodes]
    ['x', 'expm1', 'output']
    """
    if not isinstance(gm, GraphModule):
        raise TypeError(f"replace_pattern changes a GraphModule, got {gm!r:.60}: fx.symbolic_trace(f) makes one")
    search, new = _graph_of(pattern), _graph_of(replacement)
    inputs = [search.find_nodes(op="placeholder"), new.find_nodes(op="placeholder")]
    if len(inputs[0]) != len(inputs[1]):
        raise ValueError(f"the pattern has {len(inputs[0])} arguments and its replacement {len(inputs[1])}")
    graph, found = gm.graph, []
    for match in matches(graph, search):
        found.append(match)
        _replace(graph, match, search, new, inputs)
    gm.recompile()
    return found


def _graph_of(f: Any) -> Graph:
    return f if isinstance(f, Graph) else f.graph if isinstance(f, GraphModule) else Tracer().trace(f)


def matches(graph: Graph, pattern: Graph) -> Iterator[Match]:
    """The occurrences of a pattern that do not overlap, in the graph's order; the graph may be changed meanwhile."""
    results = _results(pattern)
    used: set[Node] = set()
    for node in graph.nodes:
        if node in used or node.graph is not graph or node.op in ("placeholder", "output"):
            continue
        found = _match_all(graph, results, node, used)
        if found is None:
            continue
        inside = [found[n] for n in pattern.nodes if n in found and n.op != "placeholder"]
        if any(n in used for n in inside) or not _closed(found, results, inside):
            continue
        used.update(inside)
        yield Match(max(inside, key=graph.nodes.index), found)


def _results(pattern: Graph) -> list[Node]:
    found: list[Node] = []
    map_nodes(pattern.output_node().args, found.append)
    if not found or any(n.op in ("placeholder", "get_attr") for n in found):
        raise ValueError("a pattern's results are calls; this one returns its argument or a constant")
    return found


def _match_all(graph: Graph, results: list[Node], node: Node, used: set[Node]) -> dict[Node, Node] | None:
    """The mapping with the last result at `node`, and the others anywhere."""
    found: dict[Any, Any] = {}
    if not _match(results[-1], node, found):
        return None
    for result in results[:-1]:
        if result in found:
            continue
        for other in graph.nodes:
            trial = dict(found)
            if other not in used and other not in found.values() and _match(result, other, trial):
                found = trial
                break
        else:
            return None
    return found


def _match(wanted: Any, given: Any, found: dict) -> bool:
    """Whether a value of the graph is what the pattern says, given what was found so far."""
    if isinstance(wanted, Node):
        if wanted in found:
            return found[wanted] is given or (not isinstance(given, Node) and found[wanted] == given)
        if wanted.op == "placeholder":
            found[wanted] = given
            return True
        if not isinstance(given, Node) or given.op != wanted.op:
            return False
        if wanted.op == "get_attr" and "constant" in wanted.meta:
            return False  # an array of the pattern's own: no node of the graph reads it
        if (
            not same_target(wanted, given)
            or len(wanted.args) != len(given.args)
            or wanted.kwargs.keys() != given.kwargs.keys()
        ):
            return False
        found[wanted] = given
        return _match(wanted.args, given.args, found) and all(
            _match(v, given.kwargs[k], found) for k, v in wanted.kwargs.items()
        )
    if isinstance(wanted, (tuple, list)):
        return type(wanted) is type(given) and len(wanted) == len(given) and all(
            _match(w, g, found) for w, g in zip(wanted, given, strict=True)
        )  # fmt: skip
    if isinstance(wanted, slice):
        return isinstance(given, slice) and _match(
            (wanted.start, wanted.stop, wanted.step), (given.start, given.stop, given.step), found
        )
    return type(wanted) is type(given) and bool(wanted == given)


def _closed(found: dict[Node, Node], results: list[Node], inside: list[Node]) -> bool:
    """Whether only results are read from outside."""
    ends = {found[r] for r in results}
    return all(n in ends or all(u in inside for u in n.users) for n in inside)


def _replace(graph: Graph, match: Match, search: Graph, new: Graph, inputs: list[list[Node]]) -> None:
    order = graph.nodes
    values: dict[Node, Any] = {b: match.nodes_map[a] for a, b in zip(*inputs, strict=True) if a in match.nodes_map}
    ends = [match.nodes_map[r] for r in _results(search)]
    before = set(order)
    with graph.inserting_before(match.anchor):
        made = graph.graph_copy(new, values)
    for n in graph.nodes:
        if n not in before:
            n.meta["where"] = match.anchor.meta.get("where", "")
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    if len(outputs) != len(ends):
        raise ValueError(f"the pattern has {len(ends)} results and its replacement {len(outputs)}")
    for old, result in zip(ends, outputs, strict=True):
        old.replace_all_uses_with(result)
        match.nodes_map.update({k: result for k, v in match.nodes_map.items() if v is old and k.op == "placeholder"})
    inside = {
        match.nodes_map[n] for n in search.nodes if n in match.nodes_map and n.op not in ("placeholder", "output")
    }
    for node in sorted(inside, key=order.index, reverse=True):
        graph.erase_node(node)
