"""Kernels that follow one another on ever the same rows (the steps of a stencil), tile by tile.

Each step alone would pass over the whole memory. A tile is a band of rows of the last step's result, small enough that
what all the steps need for it stays in the cache: each step computes the band and as many rows around it as the steps
after it read (overlapped tiling, Krishnamoorthy et al. 2007). Rows on borders are computed twice, with the same bits.
All cores share each step of a tile: tiles in threads of their own would wait for the interpreter in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from ..host import memory, threads
from .kernels import Frame, Large

CACHE = 1536 << 10  # bytes that a tile may work on: most of the second levels of two cores
PIECES = 4  # in which threads share the rows of a stage
RATIO = 4  # rows of a tile for each row of overlap on one side


class Stage:
    """One kernel of a chain, whose result lies in a frame.

    sources   for each input the number of an argument of the chain, or the index at which it shows the result of the
              stage before
    old       what surrounds the result: None for the frame's number, else the number of an argument; -1 for the result
              of the stage before
    """

    def __init__(self, kernel: Large, sources: Sequence[Any], old: int | None) -> None:
        self.kernel, self.sources, self.old = kernel, sources, old
        self.frame: Frame = kernel.frames[0]
        self.dtype = kernel.results[0].dtype
        self.top, self.rows = self.frame.index[0].start, kernel.space[0]
        # what lies left and right of the result, in its rows
        self.beside = [
            (slice(None), *self.frame.index[1:axis], part)
            for axis in range(1, len(self.frame.shape))
            for part in (slice(0, self.frame.index[axis].start), slice(self.frame.index[axis].stop, None))
            if len(range(*part.indices(self.frame.shape[axis])))
        ]

    def by_rows(self, i: int) -> bool:
        """Whether input i has a row for each of the result's."""
        shape = self.kernel.inputs[i].shape
        return len(shape) == len(self.kernel.space) and shape[0] == self.rows

    def needs(self, low: int, high: int) -> tuple[int, int, int, int]:
        """For the frame's rows from low to high: the kernel's rows, and those of the frame before."""
        a, b = (min(max(n - self.top, 0), self.rows) for n in (low, high))
        reads = [s[0].start for s in self.sources if isinstance(s, tuple)]
        first, last = min(reads, default=low - a) + a, max(reads, default=high - b) + b
        if self.old == -1:
            first, last = min(first, low), max(last, high)
        return a, b, first, last

    def outside(self, low: int, high: int) -> list[tuple]:
        """The parts of the frame's rows from low to high that the kernel does not compute."""
        above, below = max(self.top - low, 0), max(high - self.top - self.rows, 0)
        found = [*self.beside, (slice(0, min(above, high - low)),), (slice(max(high - low - below, 0), high - low),)]
        return found[: len(self.beside)] + [part for part in found[-2:] if part[0].stop > part[0].start]

    def reach(self) -> int:
        """How many rows more than its own it reads of the stage before, above or below."""
        reads = [s[0].start - self.top for s in self.sources if isinstance(s, tuple)]
        return max((abs(n) for n in reads), default=0)


class Step:
    """What one stage does for one tile, with every index made in advance.

    rows      of the frame's; `result` if they are those of the chain's result itself
    around    (part of the rows that the kernel does not compute, the same of what surrounds it)
    inputs    for each (the number of an argument, or None for the stage before; its part, or None for all of it)
    inner     where in the rows the kernel writes, and how many rows it computes
    """

    __slots__ = ("around", "count", "fill", "inner", "inputs", "old", "rows", "run")

    def __init__(self, stage: Stage, low: int, high: int, before: int) -> None:
        a, b, *_ = stage.needs(low, high)
        shift = low if stage.old != -1 else low - before
        self.rows, self.count, self.fill, self.old = slice(low, high), b - a, stage.frame.fill, stage.old
        self.around = [(part, self.moved(part, shift, high - low)) for part in stage.outside(low, high)]
        self.inputs: list[tuple] = []
        for i, s in enumerate(stage.sources):
            if type(s) is int:
                self.inputs.append((s, slice(a, b) if stage.by_rows(i) else ...))
            else:
                first = s[0].start - before
                self.inputs.append((None, (slice(first + a, first + b), *s[1:])))
        self.inner = (slice(stage.top + a - low, stage.top + b - low), *stage.frame.index[1:])
        self.run = stage.kernel.first.function.run

    @staticmethod
    def moved(part: tuple, by: int, rows: int) -> tuple:
        start, stop, _ = part[0].indices(rows)
        return slice(start + by, stop + by), *part[1:]


class Chain:
    """The last result of stages that each read the one before."""

    makes_new = True

    def __init__(self, stages: Sequence[Stage], tile: int) -> None:
        self.stages, self.names = list(stages), [name for s in stages for name in s.kernel.names]
        last = self.stages[-1]
        self.shape, self.dtype = last.frame.shape, last.dtype
        self.tiles: list[list[Step]] = []
        for start in range(0, self.shape[0], tile):
            steps, (low, high) = [], (start, min(start + tile, self.shape[0]))
            for stage in reversed(self.stages):
                *_, first, end = stage.needs(low, high)
                steps.append(Step(stage, low, high, first))
                low, high = first, end
            self.tiles.append(steps[::-1])
        self.heights = [max(t[i].rows.stop - t[i].rows.start for t in self.tiles) for i in range(len(stages) - 1)]
        self.usual = {
            (s, stage.kernel.usual[i]) for stage in stages for i, s in enumerate(stage.sources) if type(s) is int
        }
        self.spare: list[list] = []

    def __repr__(self) -> str:
        return f"<compiled in tiles {', '.join(self.names)}>"

    def __call__(self, *given: Any) -> tuple:
        if not all(given[i].strides == strides for i, strides in self.usual):
            return self.one_by_one(given)
        out = memory.empty(self.shape, self.dtype)
        for steps in self.tiles:
            self.compute(steps, given, out)
        return (out,)

    def one_by_one(self, given: Sequence[Any]) -> tuple:
        before = None
        for stage in self.stages:
            args = [given[s] if type(s) is int else before[s] for s in stage.sources]
            if stage.old is not None:
                args.append(before if stage.old == -1 else given[stage.old])
            (before,) = stage.kernel.run(*args)
        return (before,)

    def compute(self, steps: Sequence[Step], given: Sequence[Any], out: Any) -> None:
        """One tile of the result."""
        try:
            bands = self.spare.pop()
        except IndexError:
            bands = self.room()
        before = None
        for step, band in zip(steps, [*bands, out]):
            rows = step.rows
            band = out[rows] if band is out else band[: rows.stop - rows.start]
            if step.old is None:
                for part, _ in step.around:
                    band[part] = step.fill
            else:
                old = before if step.old == -1 else given[step.old]
                for part, there in step.around:
                    band[part] = old[there]
            if step.count:
                inputs = [before[part] if i is None else given[i][part] for i, part in step.inputs]
                step.run(-(-step.count // PIECES), step.count, threads.num_threads(), *inputs, band[step.inner])
            before = band
        self.spare.append(bands)

    def room(self) -> list:
        """Memory for the results of all stages but the last, of which two exist at a time."""
        shapes = [((n, *s.frame.shape[1:]), s.dtype) for n, s in zip(self.heights, self.stages)]
        size = max(prod(shape) * dtype.itemsize for shape, dtype in shapes)
        halves = [onp.empty(size + 64, "u1") for _ in range(2)]
        starts = [-half.ctypes.data % 64 for half in halves]
        return [onp.ndarray(shape, dtype, halves[k % 2], starts[k % 2]) for k, (shape, dtype) in enumerate(shapes)]


def depth(stages: Sequence[Stage], arrays: int) -> tuple[int, int]:
    """(how many stages to put in one chain, the rows of its tiles); `arrays` are read or written by each stage."""
    widest = max(prod(s.frame.shape[1:]) * s.dtype.itemsize for s in stages)
    rows, reach = CACHE // (widest * arrays), max(max(s.reach() for s in stages), 1)
    most = rows // ((RATIO + 2) * reach)
    if most < 2:
        return 1, rows
    count = -(-len(stages) // -(-len(stages) // most))
    total, overlap = stages[-1].frame.shape[0], count * reach
    tiles = -(-total // (rows - 2 * overlap))
    tiles += tiles % 2 if total >= (tiles + 1) * RATIO * overlap else 0  # two threads should have as many each
    return count, -(-total // tiles)
