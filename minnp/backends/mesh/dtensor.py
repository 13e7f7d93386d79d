"""Split arrays as torch's DTensor, and back: https://docs.pytorch.org/docs/stable/distributed.tensor.html

torch gives each rank a chunk of ceil(n / ranks) elements, the last ones what is left or nothing; here they differ by
one at most. So where the length does not divide, elements move between neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ...core.arrays.array import ARRAY_TYPES, array_of, read
from ...core.rows.value import Buffer
from . import Layout
from .parts import Part, exchange, ranges


def chunks(n: int, ranks: int) -> list[tuple[int, int]]:
    """(start, stop) of what torch gives each rank of n elements."""
    each = -(-n // ranks)
    return [(min(r * each, n), min((r + 1) * each, n)) for r in range(ranks)]


def device_mesh(mesh: Any) -> Any:
    """torch's mesh of the same processes on the CPU; its default process group is made where there is none."""
    if mesh.device_mesh is None:
        from torch import distributed, tensor
        from torch.distributed.device_mesh import DeviceMesh

        transport = mesh.transport
        if transport is None:
            raise ValueError("a DTensor needs torch's process group, which one process without torchrun has none of")
        if not distributed.is_initialized():
            with transport.on_interface():
                store = distributed.PrefixStore("dtensor", transport.base)
                distributed.init_process_group("gloo", store=store, rank=transport.rank, world_size=transport.size)
        mesh.device_mesh = DeviceMesh("cpu", tensor(mesh.ranks).reshape(mesh.shape))
    return mesh.device_mesh


def to_dtensor(x: Any) -> Any:
    """An array that is split over a mesh as a torch DTensor on the CPU, with Shard and Replicate as x is split.

    Every rank calls it. The DTensor has memory of its own and no gradient. Raises TypeError for other arrays, and for
    dtypes that torch has not.

        with mesh.split(0):
            x = np.arange(8.0)
        tensor = distributed.to_dtensor(x)
    """
    import torch
    from torch.distributed.tensor import DTensor, Replicate, Shard

    value = read(x) if type(x) in ARRAY_TYPES else x
    part = value.data if type(value) is Buffer else None
    if type(part) is not Part:
        raise TypeError(f"to_dtensor takes an array that lives on a mesh, got {type(x).__name__}")
    local = part.local
    for axis in part.split:
        line, n = part.mesh.axis(part.on[axis]), part.shape[axis]
        local = exchange(line, local, axis, ranges(n, line), chunks(n, line.size))
    placements = [Shard(part.on.index(m)) if m in part.on else Replicate() for m in range(len(part.mesh.shape))]
    tensor = torch.from_numpy(onp.array(local, order="C"))
    whole = torch.empty(part.shape, device="meta")
    there = device_mesh(part.mesh)
    return DTensor.from_local(tensor, there, placements, run_check=False, shape=whole.shape, stride=whole.stride())


def from_dtensor(tensor: Any, mesh: Any) -> Any:
    """A torch DTensor over the same processes as an array that is split over `mesh`, as the DTensor's placements say.

    tensor   the DTensor; every rank gives its part

    Partial placements are summed. Every rank calls it. The array has memory of its own and no gradient. Raises
    ValueError for a DTensor over other processes, or sharded twice along one axis.

        x = distributed.from_dtensor(tensor, mesh)
    """
    from torch.distributed.tensor import Replicate

    theirs = tensor.device_mesh
    if theirs.mesh.flatten().tolist() != list(mesh.ranks) or tuple(theirs.shape) != mesh.shape:
        raise ValueError(f"a DTensor over {theirs}, and {mesh}: these are not the same processes in the same order")
    placements = [Replicate() if p.is_partial() else p for p in tensor.placements]
    if placements != list(tensor.placements):
        tensor = tensor.redistribute(theirs, placements)
    shape, on = tuple(tensor.shape), [None] * tensor.ndim
    for k, p in enumerate(placements):
        if p.is_shard():
            if on[p.dim] is not None:
                raise ValueError(f"axis {p.dim} is sharded over two axes of the mesh: {tensor.placements}")
            on[p.dim] = k
    local = onp.array(tensor.to_local().detach().cpu().numpy())
    for axis, m in enumerate(on):
        if m is not None:
            line, n = mesh.axis(m), shape[axis]
            local = exchange(line, local, axis, chunks(n, line.size), ranges(n, line))
    return array_of(Buffer(Part(mesh, shape, on, local), Layout(mesh, on).device))
