"""Training on a mesh: each rank computes on its share of every batch, and all take the same step.

All ranks iterate over the same batches, in the order that rank 0's iterator is in, and hold the same parameters: those
of rank 0 to begin with. What np.random draws (dropout) differs from rank to rank.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import minnp.numpy as np
from minnp import distributed

from . import checkpoint as files
from .io import DataBatch


class Ranks:
    """This process among those that train a model together; a mesh of one is a training like any other."""

    def __init__(self, mesh: Any) -> None:
        if not isinstance(mesh, distributed.Mesh):
            raise TypeError(f"mesh is what minnp.distributed.init() returns, got {mesh!r:.60}")
        self.mesh = mesh

    @property
    def first(self) -> bool:
        return self.mesh.first

    def value_and_grad(self, loss: Callable) -> Callable:
        """value_and_grad of a loss whose last argument says how many examples of the whole batch this rank has."""
        return distributed.value_and_grad(loss, self.mesh, has_aux=True, weight=lambda *args: args[-1])

    def share(self, batch: DataBatch) -> tuple[DataBatch, int]:
        """This rank's part of a batch, and how many examples that is; if none, one example that will not count."""
        n = batch.data[0].shape[0]
        part = self.mesh.part(n)
        count = part.stop - part.start
        if not count:
            part = slice(0, 1)
        cut = lambda arrays: [a[part] for a in arrays]
        index = None if batch.index is None else batch.index[part]
        return DataBatch(cut(batch.data), cut(batch.label), 0, index), count

    def total(self, totals: dict[str, float]) -> dict[str, float]:
        """The sums of numbers over all ranks."""
        return dict(zip(totals, self.mesh.all_reduce(np.array([*totals.values()], np.float64)).tolist()))

    def agreed(self, number: int) -> int:
        """Rank 0's number."""
        return int(self.mesh.broadcast(np.int64(number)))

    def any(self, flag: bool) -> bool:
        """Whether it holds on some rank."""
        return bool(self.mesh.all_reduce(int(flag), "max"))

    # -------------------------------------------------------------- beginning
    def begin(self, solver: Any) -> None:
        """Rank 0's parameters and place in the data on every rank, and a stream of random numbers on each."""
        model = solver.model
        for tree in (model.tree(), model.aux_tree()):
            for name in sorted(name for name, value in tree.items() if hasattr(value, "shape")):
                tree[name][...] = self.mesh.broadcast(tree[name])
        self.same_data(solver.train_dataiter)
        self.own_stream(solver.seed, 0)

    def own_stream(self, seed: int, step: int) -> None:
        """np.random as no other rank has it; rank 0's goes on as it is."""
        if not self.first:
            np.random.seed([seed, self.mesh.rank, step])

    def same_data(self, iterator: Any) -> None:
        """Bring an iterator to where rank 0's is."""
        if not hasattr(iterator, "state"):
            return
        text = np.frombuffer(json.dumps(iterator.state()).encode(), np.uint8)
        sent = np.zeros(self.agreed(len(text)), np.uint8)
        if self.first:
            sent[...] = text
        iterator.restore(json.loads(self.mesh.broadcast(sent).tobytes()))

    # -------------------------------------------------------------- checkpoints
    def streams(self, position: list, keys: Any) -> tuple[list, Any]:
        """The state of np.random on every rank: [ranks, ...] each."""
        kind, *numbers = position
        rows = self.mesh.all_gather(np.array([numbers], np.float64)).tolist()
        return [[kind, *row] for row in rows], self.mesh.all_gather(keys[None])

    def save(self, path: str | os.PathLike, arrays: dict, facts: Any) -> None:
        """Rank 0 writes the checkpoint, and all ranks know whether it did. Raises what went wrong on every rank."""
        error: Exception | None = None
        if self.first:
            try:
                files.save(path, arrays, facts)
            except Exception as failed:
                error = failed
        if self.any(error is not None):
            raise error or distributed.MeshError(f"rank 0 could not write the checkpoint {path}: see what it raised")
