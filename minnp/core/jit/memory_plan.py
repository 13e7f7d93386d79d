"""Where intermediate results of compiled code lie: planned once, in memory that later calls find again.

A path has one block (passes/memory.py says who lies where in it), as arrays made in advance. A call takes the block, or
makes another if one is already taken, and puts it back; a call that raises does not. What the graph returns never lies
in it, nor what somebody may hold a view of.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..cpu.memory import LEAST as RECYCLED  # from here on, results lie on recycled blocks anyway
from ..graph.aliasing import shares
from ..graph.effects import pick
from ..graph.graph import Graph, Node
from ..passes.memory import ALIGNMENT, place, shows, storages
from ..rows.primitive import Meta
from ..rows.value import Host

LEAST = 1 << 14  # bytes: smaller ones cost less to allocate than to look up
MOST = 64 << 20  # bytes of one block; results that do not fit are allocated by each call
LIMIT = 512 << 20  # bytes of all blocks
reserved = [0]


class Block:
    """The memory of one path's intermediates: `take` and `give` an array for each of `metas`."""

    def __init__(self, metas: Sequence[Meta], offsets: Sequence[int], nbytes: int) -> None:
        self.metas, self.offsets, self.nbytes = metas, offsets, nbytes
        self.spare: list[tuple] = []
        self.nothing = (None,) * len(metas)
        reserved[0] += nbytes
        weakref.finalize(self, _let_go, nbytes)

    def take(self, *inputs: Any) -> tuple:
        """The arrays; None for each where an input is not in C order, and so NumPy's results would not be."""
        for a in inputs:
            if type(a) is Host and not a.flags.c_contiguous:
                return self.nothing
        try:
            return self.spare.pop()
        except IndexError:
            memory = onp.empty(self.nbytes + ALIGNMENT, onp.uint8)
            start = -memory.ctypes.data % ALIGNMENT
            return tuple([onp.ndarray(m.shape, m.dtype, memory, start + o) for m, o in zip(self.metas, self.offsets)])

    def give(self, arrays: tuple) -> None:
        if not self.spare and arrays is not self.nothing:
            self.spare.append(arrays)


def _let_go(nbytes: int) -> None:
    reserved[0] -= nbytes


def plan(graph: Graph, takes_out: Callable[[Node, int], bool]) -> tuple[Block | None, dict[Node, dict[int, int]]]:
    """(the block, node -> {number of a result: its array in the block}).

    takes_out(node, i)    whether a node can compute its result i (0 for the only one) in an array it is given
    """
    try:
        found = storages(graph)
    except ValueError:  # a shape is not known
        return None, {}
    end, wanted = len(graph) - 1, {}
    for storage in found:
        node, number = storage.names[0], 0
        if isinstance(node.meta["value"], tuple):
            number = next((n.args[1] for n in storage.names[1:] if n.target is pick), -1)
        hidden = any(shares(u) and shows(u) is None for n in storage.names[1:] or [node] for u in n.users)
        inside = LEAST <= storage.nbytes < RECYCLED and storage.last != end and number >= 0
        if inside and not hidden and takes_out(node, number):
            wanted[storage] = node, number
    placed, nbytes = place(list(wanted))
    if not placed or nbytes > MOST or reserved[0] + nbytes > LIMIT:
        return None, {}
    metas, numbers = [], {}
    for i, (_, storage) in enumerate(placed):
        node, number = wanted[storage]
        value = node.meta["value"]
        metas.append(value[number] if isinstance(value, tuple) else value)
        numbers.setdefault(node, {})[number] = i
    return Block(metas, [slot.offset for slot, _ in placed], nbytes), numbers
