"""More than one process: meshes of processes, collectives with gradients, and training on shares of a batch.

    torchrun --nproc-per-node 4 program.py

    mesh = minnp.distributed.init()          # a mesh of one without torchrun
    total = mesh.all_reduce(part.sum())

Everything travels by torch.distributed, which is imported where there is more than one process.
"""

import importlib
from typing import Any

from .batches import Share, share, sharing
from .collectives import all_gather, all_reduce, all_to_all, barrier, broadcast, reduce, reduce_scatter
from .mesh import Mesh, MeshError, init, leave
from .training import Step, average, value_and_grad

LATER = {"save": "files", "load": "files", "to_dtensor": "dtensor", "from_dtensor": "dtensor"}  # of split arrays


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(f"minnp.backends.mesh.{LATER[name]}"), name)
    raise AttributeError(f"module 'minnp.distributed' has no attribute {name!r}")


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
    "from_dtensor",
    "init",
    "leave",
    "load",
    "reduce",
    "reduce_scatter",
    "save",
    "share",
    "sharing",
    "to_dtensor",
    "value_and_grad",
]
