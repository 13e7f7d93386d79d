"""Tiling: large kernels of which each alone reads the one before, in views, run together, row by row."""

from __future__ import annotations

from typing import Any

from ..graph.effects import pick
from ..graph.graph import Graph, Node
from ..llvm.kernels import Large
from ..llvm.steps import Framed
from ..llvm.tiles import Chain, Stage, depth
from ..rows.primitive import Primitive


def tile(graph: Graph) -> Graph:
    """The graph with chains of stencils as calls of native.tiles.Chain; results are the same to the bit."""
    used: set[Node] = set()
    for node in graph.nodes:
        if node in used or not is_stage(node):
            continue
        chain = [node]
        while (following := next_stage(chain[-1])) is not None:
            chain.append(following)
        used.update(chain)
        while len(chain) > 1:
            given: dict[Node, int] = {}
            stages = [stage(n, chain[i - 1] if i else None, given) for i, n in enumerate(chain)]
            roots = {n.args[0] if is_view(n) else n for n in given}
            count = depth(stages, 2 + max(len(roots) - 1, 1))
            if count < 2:
                break
            join(graph, chain[:count])
            chain = chain[count:]
    return graph


def is_stage(node: Node) -> bool:
    """Whether a node is a kernel with one result, in a frame, whose ranges are rows."""
    kernel = node.target
    return (
        isinstance(kernel, Large)
        and len(kernel.results) == 1
        and 0 in kernel.frames
        and kernel.first.length == kernel.space[0]
        and kernel.frames[0].fill in (0, None)
        and len(node.users) == 1
        and not any(isinstance(v, Framed) for v in kernel.inputs)
    )


def result(node: Node) -> Node:
    """The `pick` of a stage."""
    (found,) = node.users
    return found


def is_view(node: Node) -> bool:
    return isinstance(node.target, Primitive) and node.target.name == "getitem" and len(node.args) == 1


def slices(node: Node, axes: int) -> tuple[slice, ...] | None:
    """The index of a view, if it is slices alone, and has every row from the first to the last."""
    index = node.kwargs.get("index")
    parts = index if type(index) is tuple else (index,)
    if not is_view(node) or not all(type(p) is slice for p in parts) or len(parts) > axes:
        return None
    return parts if parts[0].step in (None, 1) else None


def next_stage(node: Node) -> Node | None:
    """The stage that alone reads a stage's result, as it is or in views."""
    found: set[Node] = set()
    shape = node.target.frames[0].shape
    for user in result(node).users:
        if is_view(user):
            if slices(user, len(shape)) is None:
                return None
            found |= set(user.users)
        else:
            found.add(user)
    (following,) = found if len(found) == 1 else (None,)
    if following is None or not is_stage(following):
        return None
    kernel, before = following.target, result(node)
    if kernel.results[0].dtype != node.target.results[0].dtype:
        return None
    # as it is, the result is only what surrounds the next one
    whole = [i for i, n in enumerate(following.args) if n is before]
    fits = whole in ([], [len(kernel.inputs)]) and kernel.frames[0].shape == shape
    return following if fits and not any(n is before for n in following.kwargs.values()) else None


def stage(node: Node, before: Node | None, given: dict[Node, int]) -> Stage:
    """A node as a stage; what it reads besides the stage before gets a number in `given`."""
    kernel, shape = node.target, node.target.frames[0].shape
    last = None if before is None else result(before)
    sources: list[Any] = []
    for n in node.args:
        if n is last:
            sources.append(-1)
        elif is_view(n) and n.args[0] is last:
            parts = slices(n, len(shape)) or ()
            sources.append(tuple(slice(*p.indices(k)) for p, k in zip(parts, shape)))
        else:
            sources.append(given.setdefault(n, len(given)))
    old = sources.pop() if len(node.args) > len(kernel.inputs) else None
    return Stage(kernel, sources, old)


def join(graph: Graph, chain: list[Node]) -> None:
    """Put one call in the place of the stages."""
    given: dict[Node, int] = {}
    stages = [stage(n, chain[i - 1] if i else None, given) for i, n in enumerate(chain)]
    final = result(chain[-1])
    with graph.inserting_before(chain[-1]):
        call = graph.create_node("call_function", Chain(stages), tuple(given), name="compiled")
    call.meta["value"] = chain[-1].meta["value"]
    final.args = (call, 0)
    assert final.target is pick
    for n in reversed(chain):
        for old in [u for p in n.users for u in p.users] + list(n.users) if n is not chain[-1] else []:
            graph.erase_node(old)
        graph.erase_node(n)
