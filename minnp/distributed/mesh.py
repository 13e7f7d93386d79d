"""A mesh: the processes of a job, numbered along one or more axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import MeshError
from . import collectives
from .transport import Group, Transport, connected, world_size

_JOB: list[Transport | None] = []  # the transport of this process, once `init` was called


class Mesh:
    """Processes that run the same program, numbered 0 to size - 1, row by row along the axes of `shape`.

    transport, ranks   the connections, and which ranks of the job these are; `init` and `axis` make meshes
    rank               this process's number; size: how many there are
    shape              how many along each axis; names: what the axes are called
    axis(k)            the mesh of those processes that differ from this one along axis k alone

    A mesh of one needs no torch, and its collectives return what they are given.

    >>> mesh = distributed.init()
    >>> mesh.rank, mesh.size
    (0, 1)
    >>> distributed.leave()
    """

    def __init__(self, transport: Transport | None, ranks: Sequence[int], shape: Sequence[int], names: Sequence[str]):
        self.transport, self.ranks = transport, tuple(ranks)
        self.shape, self.names, self.size = tuple(shape), tuple(names), len(self.ranks)
        self.rank = 0 if transport is None else self.ranks.index(transport.rank)
        self._axes: dict[int, Mesh] = {}
        self.device_mesh: Any = None  # torch's, once a DTensor was asked for
        self.devices: dict[tuple, Any] = {}  # by layout, those of arrays that are split over it

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={n}" for name, n in zip(self.names, self.shape))
        return f"Mesh({axes}; rank {self.rank} of {self.size})"

    def __reduce__(self) -> Any:
        raise TypeError("a mesh is this process's connection to others: it cannot be copied or saved")

    @property
    def first(self) -> bool:
        """Whether this is rank 0: the one that prints, and writes files."""
        return self.rank == 0

    @property
    def coordinates(self) -> tuple[int, ...]:
        """This process's place along each axis."""
        out, rest = [], self.rank
        for n in reversed(self.shape):
            out.append(rest % n)
            rest //= n
        return tuple(reversed(out))

    def axis(self, axis: int | str) -> Mesh:
        """The mesh of the processes in line with this one along an axis, by number or name."""
        k = self.names.index(axis) if axis in self.names else axis
        if not isinstance(k, int) or not -len(self.shape) <= k < len(self.shape):
            raise ValueError(f"this mesh has the axes {', '.join(self.names)}; got {axis!r}")
        k %= len(self.shape)
        if len(self.shape) == 1:
            return self
        if k not in self._axes:
            step = math.prod(self.shape[k + 1 :])
            start = self.rank - self.coordinates[k] * step
            ranks = [self.ranks[start + i * step] for i in range(self.shape[k])]
            self._axes[k] = Mesh(self.transport, ranks, (len(ranks),), (self.names[k],))
        return self._axes[k]

    def group(self, purpose: str = "") -> Group | None:
        """What carries this mesh's collectives; None for a mesh of one."""
        return None if self.size == 1 or self.transport is None else self.transport.group(self.ranks, purpose)

    # -------------------------------------------------------------- arrays over all ranks
    def split(self, *axes: int | None) -> Any:
        """How arrays are split: along `axes[k]` over the k-th axis of the mesh (None: not over that one).

        np.zeros((n, m), device=mesh.split(0)); with mesh.split(0): ...; x.to_device(mesh.split(1)). Every rank holds as
        many elements along the axis as np.array_split would give it: sizes need not divide.
        """
        if not 0 < len(axes) <= len(self.shape):
            raise ValueError(f"split takes an axis of arrays for each of the mesh's {len(self.shape)}, got {axes}")
        said = [a for a in axes if a is not None]
        if any(not isinstance(a, int) or a < 0 for a in said) or len(set(said)) != len(said):
            raise ValueError(f"the axes that arrays are split along are different numbers from 0 on, got {axes}")
        on: list[int | None] = [None] * (max(said, default=-1) + 1)
        for k, a in enumerate(axes):
            if a is not None:
                on[a] = k
        return self._layout(on)

    def replicate(self) -> Any:
        """A layout in which every rank holds the whole array."""
        return self._layout(())

    def _layout(self, on: Any) -> Any:
        from ..backends.mesh import Layout

        return Layout(self, on)

    def layout(self, x: Any) -> list[tuple[slice, ...]]:
        """Which part of x each rank holds, in the order of ranks."""
        from ..backends.mesh import layout

        return layout(self, x)

    # -------------------------------------------------------------- collectives
    def all_reduce(self, x: Any, op: str = "sum") -> Any:
        """The sum (or "mean", "max", "min", "prod") of all ranks' x, on every rank; see `all_reduce`."""
        return collectives.all_reduce(x, self, op)

    def all_gather(self, x: Any, axis: int = 0) -> Any:
        """All ranks' x joined along an axis, on every rank; see `all_gather`."""
        return collectives.all_gather(x, self, axis)

    def reduce_scatter(self, x: Any, axis: int = 0, size: int | None = None) -> Any:
        """This rank's part of the sum of all ranks' x; see `reduce_scatter`."""
        return collectives.reduce_scatter(x, self, axis, size)

    def all_to_all(self, x: Any, split: int = 0, concat: int = 0) -> Any:
        """What each rank has for this one, joined; see `all_to_all`."""
        return collectives.all_to_all(x, self, split, concat)

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """The root's x, on every rank; see `broadcast`."""
        return collectives.broadcast(x, self, root)

    def reduce(self, x: Any, root: int = 0) -> Any:
        """The sum of all ranks' x at the root, zeros elsewhere; see `reduce`."""
        return collectives.reduce(x, self, root)

    def barrier(self) -> None:
        """Wait until every rank is here, and has computed its parts of split arrays."""
        collectives.barrier(self)

    def part(self, n: int) -> slice:
        """This rank's share of n things: as even as can be, the first ranks take what is left over.

        Raises ValueError for a negative number.
        """
        if n < 0:
            raise ValueError(f"part of {n} things: a number of things is at least 0")
        return collectives.part(n, self.size, self.rank)


def init(
    shape: int | Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    *,
    timeout: float = 300.0,
    patience: float = 15.0,
    interface: str | None = None,
) -> Mesh:
    """The mesh of this job's processes: of those that torchrun started, or a mesh of one without it.

    shape      how many processes along each axis; -1 in one place stands for what is left. One axis by default
    names      of the axes; "0", "1", ... by default
    timeout    seconds that a collective waits for a rank which is alive but does something else
    patience   seconds without a sign of life after which a rank counts as dead, or stopped
    interface  the network interface that gloo listens on ("eth0"). Where all processes are on one machine, the loopback
               interface; else what GLOO_SOCKET_IFNAME says, or the one of the host's name

    Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as torchrun sets them. Called again, it gives another mesh of the
    same connections, whose timeouts stay what they were. Raises MeshError where the job's processes cannot be reached,
    and ValueError for a shape that is not that of so many processes.

    >>> mesh = distributed.init()
    >>> float(mesh.all_reduce(np.sum(np.ones(3))))
    3.0
    >>> distributed.leave()
    """
    for name, seconds in (("timeout", timeout), ("patience", patience)):
        if not seconds > 0:
            raise ValueError(f"{name} is a number of seconds above 0, got {seconds!r}")
    size = _JOB[0].size if _JOB and _JOB[0] is not None else world_size()
    shape = shaped(shape, size)
    names = tuple(map(str, range(len(shape)))) if names is None else tuple(names)
    if len(names) != len(shape) or len(set(names)) != len(names):
        raise ValueError(f"a mesh of {len(shape)} axes has as many different names, got {names}")
    if not _JOB:
        _JOB.append(connected(timeout, patience, interface))
    mesh = Mesh(_JOB[0], range(size), shape, names)
    if (group := mesh.group()) is not None:
        group.agree({"op": "init", "axes": [shape, names]}, alike=["axes"])
    return mesh


def shaped(shape: Any, size: int) -> tuple[int, ...]:
    """The mesh's shape with its -1 replaced."""
    axes = (size,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(n, int) for n in axes):
        raise TypeError(f"a mesh's shape is a number of processes, or one for each axis; got {shape!r}")
    known = math.prod(n for n in axes if n != -1)
    if axes.count(-1) == 1 and known > 0 and size % known == 0:
        axes = tuple(size // known if n == -1 else n for n in axes)
    if not axes or any(n < 1 for n in axes) or math.prod(axes) != size:
        raise ValueError(f"a mesh of shape {axes} has not the {size} process{'es' if size > 1 else ''} of this job")
    return axes


def current() -> Mesh | None:
    """The mesh of all processes if `init` was called in this one."""
    if not _JOB:
        return None
    size = 1 if _JOB[0] is None else _JOB[0].size
    return Mesh(_JOB[0], range(size), (size,), ("0",))


def leave() -> None:
    """Say that this process ends, as its end does: for processes that end by os._exit.

    >>> mesh = distributed.init()
    >>> distributed.leave()
    >>> distributed.init() is mesh
    False
    >>> distributed.leave()
    """
    if _JOB and _JOB[0] is not None:
        _JOB[0].leave()


__all__ = ["Mesh", "MeshError", "init", "leave"]
