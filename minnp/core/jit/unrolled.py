"""What unrolled loops leave behind: sums over steps of matrix products and of parts, and one matrix for all steps.

The gradient of a recurrent network adds up a product for every step, where BLAS adds while it multiplies; and for every
gate an array that is zero but for a slice, which together are the slices one after the other. Sums come in another
order than they were written, and -0.0 + 0.0 is -0.0: for machine code, where that is so anyway. Without it, only the
sums whose bits stay (`gather_parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..cpu import products
from ..cpu.memory import empty
from ..graph.graph import Graph, Node
from ..rows.primitive import TABLE, Meta, Primitive

FEW = 3  # products that are not worth a sum of their own
ROWS = 128  # up to so many rows, a product with a transposed matrix takes BLAS up to four times as long
STEPS = 4  # such products that are worth a copy of the matrix


def gather_steps(graph: Graph) -> None:
    """Rewrite the sums and products of unrolled loops; dead nodes are left."""
    inner: set[Node] = set()
    for root in reversed(graph.nodes):
        if row_name(root) == "add" and root not in inner:
            terms = sum_terms(root, inner)
            if len(terms) > 1:
                join_parts(graph, root, terms) or add_up(graph, root, terms)
    for node in graph.nodes:
        if row_name(node) == "transpose":
            straighten(graph, node)


def gather_parts(graph: Graph, least: int = 0, but: Callable[[Node], Any] = lambda node: None) -> None:
    """Sums of arrays of `least` elements or more that are zero but for a part each, one after the other: one array, to
    whose parts they are added in that order, which leaves the bits. The gradient of a loop over x[t] is such a sum.

    but   of which parts something else is known to be better: what it returns for others is None
    """
    inner: set[Node] = set()
    for root in reversed(graph.nodes):
        if row_name(root) != "add" or root in inner or type(root.meta.get("value")) is not Meta:
            continue
        parts: list[Node] = []
        sum_: Any = root
        while row_name(sum_) == "add" and (sum_ is root or len(sum_.users) == 1) and "handling" not in sum_.meta:
            last = next((a for a in reversed(sum_.args) if _is_part(a, root) and but(a) is None), None)
            if last is None:
                break
            inner.add(sum_)
            parts.append(last)
            sum_ = sum_.args[sum_.args[0] is last]
        if _is_part(sum_, root) and but(sum_) is None:
            parts.append(sum_)
            sum_ = None
        alike = sum_ is None or (isinstance(sum_, Node) and sum_.meta.get("value") == root.meta["value"])
        if alike and len(parts) > 1 and root.meta["value"].size >= least:
            where = {"shape": root.meta["value"].shape, "indices": [n.kwargs["index"] for n in reversed(parts)]}
            with graph.inserting_before(root):
                put(graph, root, add_parts, [sum_, *[n.args[0] for n in reversed(parts)]], where)


def _is_part(node: Any, whole: Node) -> bool:
    if row_name(node) != "index_add" or len(node.users) != 1 or len(node.args) != 1 or "handling" in node.meta:
        return False
    return node.meta.get("value") == whole.meta["value"]


def add_parts(first: Any, *parts: Any, shape: tuple, indices: Sequence[Any]) -> Any:
    """first (None: zeros) [shape] with parts[0] added at indices[0], and so on."""
    out = empty(shape, parts[0].dtype)
    out[...] = 0
    if first is not None:
        out += first
    for part, index in zip(parts, indices):
        TABLE["getitem"].accumulate(out, part, None, index)
    return out


def row_name(node: Any) -> str:
    """The name of the row that a node calls, or nothing."""
    return node.target.name if isinstance(node, Node) and isinstance(node.target, Primitive) else ""


def sum_terms(root: Node, inner: set[Node]) -> list[Node]:
    """What a tree of additions of arrays that are alike adds up, in order; its nodes but the root go into `inner`."""
    terms: list[Node] = []
    pending = [root]
    while pending:
        node = pending.pop()
        once = node is root or (len(node.users) == 1 and node not in inner)  # or y + y would double its terms
        sums = row_name(node) == "add" and once and "handling" not in node.meta
        if sums and all(isinstance(a, Node) and a.meta.get("value") == root.meta["value"] for a in node.args):
            inner.add(node)
            pending += reversed(node.args)
        else:
            terms.append(node)
    return terms


def join_parts(graph: Graph, root: Node, terms: list[Node]) -> bool:
    """Arrays that are zero but for slices which are next to each other and make the whole: the slices, joined."""
    if any(row_name(n) != "index_add" or len(n.users) != 1 or len(n.args) != 1 for n in terms):
        return False
    shape, begins, axes = root.meta["value"].shape, {}, set()
    for n in terms:
        index = n.kwargs["index"]
        parts = index if type(index) is tuple else (index,)
        if len(parts) > len(shape) or not all(type(p) is slice for p in parts):
            return False
        cut = [(i, p.indices(shape[i])) for i, p in enumerate(parts) if p.indices(shape[i]) != (0, shape[i], 1)]
        if len(cut) != 1 or cut[0][1][2] != 1 or n.args[0].meta["value"].dtype != root.meta["value"].dtype:
            return False
        ((axis, (begin, end, _)),) = cut
        if begin in begins or end <= begin:
            return False
        axes.add(axis)
        begins[begin] = n.args[0], end
    place, ordered = 0, []
    while place in begins:
        part, place = begins.pop(place)
        ordered.append(part)
    if len(axes) != 1 or begins or place != shape[axis]:
        return False
    with graph.inserting_before(root):
        put(graph, root, TABLE["concatenate"], ordered, {"axis": axis})
    return True


def add_up(graph: Graph, root: Node, terms: list[Node]) -> bool:
    """Many products of large matrices: one array, to which BLAS adds them."""
    found = [n for n in terms if row_name(n) == "matmul" and len(n.users) == 1 and large_product(n)]
    if len(found) <= FEW or not products.can_update():
        return False
    with graph.inserting_before(root):
        put(graph, root, products.update, [None, *[a for n in found for a in n.args]], {})
        total = root.prev
        for n in terms:
            if n not in found:
                with graph.inserting_after(total):
                    total = put(graph, total, TABLE["add"], [n, total], {})
    return True


def large_product(node: Node) -> bool:
    """Whether a node is a product of two large matrices of one float dtype."""
    metas = [n.meta.get("value") if isinstance(n, Node) else None for n in (node, *node.args)]
    if node.kwargs or "handling" in node.meta:
        return False
    if not all(type(m) is Meta and len(m.shape) == 2 and m.dtype == metas[0].dtype for m in metas):
        return False
    return metas[0].dtype.char in "fd" and metas[0].size * metas[1].shape[1] >= products.LEAST


def straighten(graph: Graph, node: Node) -> None:
    """A transposed matrix by which few rows are multiplied, again and again, is copied: its rows are dense then."""
    source = node.args[0]
    if not isinstance(source, Node) or type(source.meta.get("value")) is not Meta or len(node.meta["value"].shape) != 2:
        return
    k, n = node.meta["value"].shape
    users = [
        u
        for u in node.users
        if row_name(u) == "matmul" and u.args[1] is node and large_product(u) and u.meta["value"].shape[0] <= ROWS
    ]
    if len(users) < STEPS or n > k:
        return
    with graph.inserting_after(node):
        dense = graph.create_node("call_function", onp.ascontiguousarray, (node,), name="dense")
    dense.meta["value"] = node.meta["value"]
    for u in users:
        u.replace_input_with(node, dense)


def put(graph: Graph, old: Node, target: Any, args: list, kwargs: dict) -> Node:
    """A node in the place of another one."""
    new = graph.create_node("call_function", target, args, kwargs)
    new.meta.update(old.meta)
    old.replace_all_uses_with(new)
    return new
