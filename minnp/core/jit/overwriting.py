"""Writing in place: the last value of an argument that a graph overwrites is computed where the argument lies, and
loops write into arrays of the graph that nobody reads after them. Reading in place: a copy of an argument that nobody
writes to is the argument itself."""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

from ..cpu import products
from ..graph.aliasing import donated, is_write, last_read, made_here, shares
from ..graph.effects import guard, inside, is_loop, pick
from ..graph.graph import Graph, Node, map_nodes
from ..llvm.kernels import Large, Small
from ..passes.fusion import Fused
from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.value import COMPARISON, PYTHON
from .unrolled import add_parts

# of those functions of graphs that are no rows
NEVER_RAISE = {pick, inside, operator.add, operator.sub, operator.mul, operator.neg, operator.abs, onp.asarray}
NEVER_RAISE |= {PYTHON[op] for op in COMPARISON} | {onp.float64, onp.int64, onp.ascontiguousarray}
NEVER_RAISE |= {products.update, add_parts}
MAKERS = {"empty", "zeros", "ones", "full", "eye", "arange", "linspace"}  # of arrays out of no others
INDEXED = {"getitem", "write_view", "add_part", "take", "take_add", "index_add", "take_along_axis", "add_along_axis"}
INDEXED |= {"repeat", "bincount", "power"}  # by integers that are asked whether they are in range
LARGE = 1 << 16  # elements of an array over which a pass is saved


def write_arguments(graph: Graph, written: list[int]) -> list[int]:
    """Which arguments the graph now overwrites itself: `written` are those that its last outputs are to overwrite.

    Such an argument must be in C order and share no memory with another. It is written where nobody reads it, or a view
    of it, any more, and nothing can send the call elsewhere: no guard, and nothing that raises, for then the function
    runs anew and has to find its arguments as they were.
    """
    if not written:
        return []
    nodes, fresh = graph.nodes, donated(graph)
    at = {n: i for i, n in enumerate(nodes)}
    inputs, outputs = graph.find_nodes(op="placeholder"), graph.output_node().args[0]
    guards = [n for n in nodes if n.target is guard or is_loop(n) or may_raise(n)]
    done = []
    for i, final in zip(written, outputs[len(outputs) - len(written) :], strict=True):
        target = inputs[i]
        if not isinstance(final, Node) or len(final.users) != 1 or sum(o is final for o in outputs) != 1:
            continue
        if final.meta.get("value") != target.meta.get("value"):
            continue
        writer = final.args[0] if final.target is pick else final
        while writer in fresh and writer.args[0] is not target:  # the first of several writes
            writer = writer.args[0]
        last = all(at[n] < at[writer] or n is writer for n in guards)
        if last and last_read(target, at) <= at[writer] and redirect(writer, final, target, at):
            done.append(i)
    return done


def may_raise(node: Node) -> bool:
    """Whether what a node is given, not its shapes and dtypes alone, decides whether it raises: Python's division, a
    singular matrix, an index, a power of integers, any function that is no row."""
    target = node.target
    if node.op != "call_function" or isinstance(target, (Large, Small, Fused)):
        return bool(getattr(target, "solved", ()))
    if not isinstance(target, Primitive):
        return target not in NEVER_RAISE and getattr(target, "__name__", "") not in MAKERS
    if "handling" in node.meta or target.name.startswith("linalg."):
        return True
    if target.name not in INDEXED:
        return False
    holds: list = []
    map_nodes((node.kwargs, () if is_write(node) else node.args[1:]), holds.append)
    return any(getattr(getattr(n.meta.get("value"), "dtype", None), "kind", "") in "iub" for n in holds)


def redirect(writer: Node, final: Node, target: Node, at: dict[Node, int]) -> bool:
    """Let a node write its result, which `final` is, into an argument; False if it cannot."""
    if is_write(writer) and writer.args[0] is target:
        if writer.kwargs.get("layout") is not None:
            return False
        writer.kwargs = {**writer.kwargs, "donate": True}
        return True
    if any(shares(u) and last_read(u, at) >= at[writer] for u in target.users):
        return False  # the writer itself reads a view of it
    if is_loop(writer) and final.target is pick:
        return donate(writer, final.args[1], target, True)
    if isinstance(writer.target, Large) and final.target is pick:
        result = final.args[1]
        if not all(writer.target.may_write(k, result) for k, n in enumerate(writer.args) if n is target):
            return False
        out: list[Any] = list(writer.kwargs.get("out", [None] * len(writer.target.results)))
        out[result] = target
        writer.kwargs = {"out": tuple(out)}
        return True
    if writer.target is products.update and writer.args[0] is target and target not in writer.args[1:]:
        writer.kwargs = {**writer.kwargs, "out": target}
        return True
    return False


# ------------------------------------------------------------------ copies
def read_arguments(graph: Graph) -> None:
    """Let what is only read of a copy of an argument be read where the argument lies, if it lies in C order."""
    for copy in graph.find_nodes(op="call_function", target=TABLE["copy"]):
        source, value = copy.args[0], copy.meta.get("value")
        if not isinstance(source, Node) or source.op != "placeholder":
            continue
        if copy.kwargs != {"order": "C"} or type(value) is not Meta or not value.shape:
            continue
        if not leaves(copy):
            copy.target, copy.kwargs = onp.ascontiguousarray, {}


def leaves(node: Node) -> bool:
    """Whether a node's array, or a view of it, may be returned, or written to if it is nobody else's."""
    for user in node.users:
        if user.op == "output" or (is_write(user) and user.args[0] is node):
            return True
        if is_loop(user):
            code = user.target.code
            if code.program.results or any(user.args[place] is node for place in code.places):
                return True
        elif shares(user) and leaves(user):
            return True
    return False


# ------------------------------------------------------------------ loops
def begin_loops(graph: Graph) -> None:
    """Let a loop that adds to zeros, which are added to a large array then, add to that array, or a copy of it: a
    cotangent that comes from elsewhere, too."""
    for node in graph.find_nodes(op="call_function", target=TABLE["add"]):
        meta = node.meta.get("value")
        if type(meta) is not Meta or meta.size < LARGE or len(node.args) != 2 or node.kwargs or "handling" in node.meta:
            continue
        for x, more in (node.args, node.args[::-1]):
            alike = all(isinstance(n, Node) and n.meta.get("value") == meta for n in (x, more))
            loop = more.args[0] if alike and more.target is pick and len(more.users) == 1 else None
            if loop is None or not is_loop(loop) or x in loop.args or any(u.target is not pick for u in loop.users):
                continue
            at = {n: i for i, n in enumerate(graph.nodes)}
            late = all(at[u] >= at[node] for part in loop.users for u in part.users)  # x is then not of the loop
            found = loop.target.begun(more.args[1]) if late else None
            if found is not None:
                for n in (loop, *loop.users):
                    node.prepend(n)
                loop.target, place = found
                loop.args = (*loop.args[:place], x, *loop.args[place:])
                node.replace_all_uses_with(more)
                graph.erase_node(node)
                break


def donate_to_loops(graph: Graph) -> None:
    """Let loops write into the arrays that the graph made, where nobody reads these, or views of them, afterwards."""
    at = {n: i for i, n in enumerate(graph.nodes)}
    for node in filter(is_loop, at):
        for result, place in enumerate(node.target.code.places):
            source = node.args[place]
            if made_here(source) and last_read(source, at) == at[node]:
                donate(node, result, source, False)


def donate(loop: Node, result: int, source: Node, lent: bool) -> bool:
    """Let a loop's result lie where one of its arguments does; False if it cannot. `lent`: if the loop fails, the
    array must be as it was."""
    places = loop.target.code.places
    if result >= len(places) or loop.args[places[result]] is not source or loop.args.count(source) != 1:
        return False
    loop.kwargs = {"donate": {**loop.kwargs.get("donate", {}), result: (places[result], lent)}}
    return True
