"""Kernels that follow one another on ever the same rows (the steps of a stencil), together.

Each step alone would pass over the whole memory. Here a thread takes a chunk of the last step's rows, and with it what
all the steps need for it: each step follows the one before at a few rows' distance, while its rows are in the cache
(time skewing: Wonnacott 2000; c/stencil.h does it). Rows around a chunk are computed twice, with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as onp

from ..compiled import team
from ..cpu import memory, threads
from .kernels import Frame, Large

CACHE = 768 << 10  # bytes that a thread may work on: most of a core's second level
BLOCK = 1 << 15  # bytes of a result that a stage computes at a time, about
CHUNKS = 2  # for each thread: the last one is waited for
RATIO = 8  # rows of a chunk for each that is computed twice
MOST = 63  # stages, and arrays of one of them, that c/stencil.h takes


class Stage:
    """One kernel of a chain, whose result lies in a frame.

    sources   for each input the number of an argument of the chain, or the index at which it shows the result of the
              stage before
    old       what surrounds the result: None for zeros, else the number of an argument; -1 for the result of the stage
              before
    """

    def __init__(self, kernel: Large, sources: Sequence[Any], old: int | None) -> None:
        self.kernel, self.sources, self.old = kernel, sources, old
        self.frame: Frame = kernel.frames[0]
        self.dtype = kernel.results[0].dtype
        self.strides = onp.empty(self.frame.shape, self.dtype).strides
        self.top, self.rows = self.frame.index[0].start, kernel.space[0]

    def by_rows(self, i: int) -> bool:
        """Whether input i has a row for each of the result's."""
        shape = self.kernel.inputs[i].shape
        return len(shape) == len(self.kernel.space) and shape[0] == self.rows

    def needs(self, low: int, high: int) -> tuple[int, int]:
        """The rows of the frame before that are read for this one's from low to high."""
        a, b = (min(max(n - self.top, 0), self.rows) for n in (low, high))
        reads = [s[0].start for s in self.sources if isinstance(s, tuple)]
        first, last = min(reads, default=low - a) + a, max(reads, default=high - b) + b
        return (min(first, low), max(last, high)) if self.old == -1 else (first, last)

    def reach(self) -> int:
        """How many rows more than its own it reads of the stage before, above or below."""
        reads = [s[0].start - self.top for s in self.sources if isinstance(s, tuple)]
        return max((abs(n) for n in reads), default=0)

    def start(self, index: Sequence[slice]) -> int:
        """Bytes from the beginning of a frame to its part at an index."""
        return sum(part.start * n for part, n in zip(index, self.strides))

    def described(self, before: Stage | None) -> list[int]:
        """The stage as c/stencil.h reads it."""
        kernel, index = self.kernel, self.frame.index
        inputs: list[int] = []
        for i, s in enumerate(self.sources):
            if type(s) is int:
                inputs += [s, 0, kernel.usual[i][0] if self.by_rows(i) else 0]
            else:
                assert before is not None
                inputs += [-1, before.start(s), before.strides[0]]
        row = onp.ones(self.frame.shape[1:], bool)
        row[index[1:]] = False
        edges = onp.flatnonzero(onp.diff(row.ravel(), prepend=False, append=False)).tolist()
        parts = [n * self.dtype.itemsize for a, b in zip(edges[::2], edges[1::2]) for n in (a, b - a)]
        inner, old = self.start((slice(0, 0), *index[1:])), -2 if self.old is None else self.old
        lies = [kernel.first.function.address, self.top, self.rows, inner, self.strides[0], old]
        return [*lies, len(self.sources), len(parts) // 2, *inputs, *parts]


class Chain:
    """The last result of stages that each read the one before."""

    makes_new = True

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages, self.names = list(stages), [name for s in stages for name in s.kernel.names]
        last = self.stages[-1]
        self.shape, self.dtype = last.frame.shape, last.dtype
        self.lag = max(stage.reach() for stage in stages)
        self.block = max(BLOCK // last.strides[0], 1)
        plan = [n for s, before in zip(self.stages, [None, *self.stages]) for n in s.described(before)]
        self.plan = onp.array(plan, onp.int64)
        self.usual = {
            (s, stage.kernel.usual[i]) for stage in stages for i, s in enumerate(stage.sources) if type(s) is int
        } | {(stage.old, stage.strides) for stage in stages if stage.old not in (None, -1)}
        self.chunks = cache(self.chunks)

    def __repr__(self) -> str:
        return f"<compiled together {', '.join(self.names)}>"

    def __call__(self, *given: Any) -> tuple:
        if not all(given[i].strides == strides for i, strides in self.usual):
            return self.one_by_one(given)
        out, count = memory.empty(self.shape, self.dtype), threads.num_threads()
        rows, half, spare = self.chunks(count)
        try:
            room = spare.pop()
        except IndexError:
            room = memory.empty((len(rows), 2, half), onp.dtype("u1"))
        team.stencil(self.plan, rows, self.lag, self.block, count, out, room, *map(onp.asarray, given))
        if room.nbytes < memory.LEAST and not spare:  # larger ones lie on recycled blocks anyway
            spare.append(room)
        return (out,)

    def one_by_one(self, given: Sequence[Any]) -> tuple:
        before = None
        for stage in self.stages:
            args = [given[s] if type(s) is int else before[s] for s in stage.sources]
            if stage.old is not None:
                args.append(before if stage.old == -1 else given[stage.old])
            (before,) = stage.kernel.run(*args)
        return (before,)

    def chunks(self, count: int) -> tuple[onp.ndarray, int, list]:
        """For so many threads: [chunks, stages, (first row, end)] of what each chunk needs; bytes for so many rows of
        a result; memory for two of these a chunk, which a call left."""
        total, overlap = self.shape[0], 2 * self.lag * len(self.stages)
        many = min(max(total // max(RATIO * overlap, 1), count), CHUNKS * count) if count > 1 else 1
        rows = onp.empty((many, len(self.stages), 2), onp.int64)
        for i in range(many):
            low, high = i * total // many, (i + 1) * total // many
            for k in reversed(range(len(self.stages))):
                rows[i, k] = low, high
                low, high = self.stages[k].needs(low, high)
        size = max(stage.strides[0] for stage in self.stages)
        return rows, int((rows[..., 1].max(1) - rows[..., 0].min(1)).max()) * size, []


def depth(stages: Sequence[Stage], arrays: int) -> int:
    """How many of the stages to run together; `arrays` are read or written by each."""
    given = {s for stage in stages for s in stage.sources if type(s) is int}
    if team is None or max(len(given), *[len(s.sources) for s in stages]) > MOST:
        return 1
    row, reach = max(s.strides[0] for s in stages), max(max(s.reach() for s in stages), 1)
    most = min((CACHE // arrays - BLOCK) // (row * reach), MOST)
    return -(-len(stages) // -(-len(stages) // most)) if most > 1 else 1
