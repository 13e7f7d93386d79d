"""More than one process: meshes of processes, collectives with gradients, and training on shares of a batch.

    torchrun --nproc-per-node 4 program.py

    mesh = minnp.distributed.init()          # a mesh of one without torchrun
    total = mesh.all_reduce(part.sum())

Everything travels by torch.distributed, which is imported where there is more than one process.
"""

from .batches import Share, share, sharing
from .collectives import all_gather, all_reduce, all_to_all, barrier, broadcast, reduce, reduce_scatter
from .mesh import Mesh, MeshError, init, leave
from .training import Step, average, value_and_grad

__all__ = [
    "Mesh",
    "MeshError",
    "Share",
    "Step",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average",
    "barrier",
    "broadcast",
    "init",
    "leave",
    "reduce",
    "reduce_scatter",
    "share",
    "sharing",
    "value_and_grad",
]
