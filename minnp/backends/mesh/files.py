"""Split arrays in files: one .npy, of which each rank writes and reads its part alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as onp

from ...core.arrays.array import ARRAY_TYPES, array_of, read
from ...core.rows.value import Buffer
from ...errors import MeshError
from . import Layout
from .parts import Part, bounds, fitted


def save(path: str | os.PathLike, x: Any) -> None:
    """Write an array that is split over a mesh to one .npy file, every rank its part, on a disk that all ranks see.

    x   an array whose parts lie on the ranks; all of them call

    The file is the old one or the new one, whole: it is written as `<path>.tmp`, and renamed when all ranks are done.
    What goes wrong on one rank is raised there, and as MeshError on the others. On any other array, np.save.

    Raises TypeError for an array that is not on a mesh.

    >>> mesh = distributed.init()
    >>> with mesh.split(0):
    ...     x = np.arange(8.0)
    >>> distributed.save("x.npy", x)
    >>> distributed.load("x.npy", mesh.split(0)).shape
    (8,)
    >>> distributed.leave()
    """
    path = os.fspath(path)
    value = read(x) if type(x) in ARRAY_TYPES else x
    part = value.data if type(value) is Buffer else None
    if type(part) is not Part:
        raise TypeError(f"save takes an array that lives on a mesh, got {type(x).__name__}: np.save writes others")
    temporary = f"{path}.tmp"

    def create() -> None:
        if part.mesh.first:
            try:
                onp.lib.format.open_memmap(temporary, "w+", part.dtype, part.shape).flush()
                with open(temporary, "r+b") as file:  # a full disk says so now: what is written to a map dies of it
                    reserve(file.fileno(), os.fstat(file.fileno()).st_size)
            except OSError:
                if os.path.exists(temporary):
                    os.remove(temporary)
                raise

    def fill() -> None:
        if part.size:
            file = onp.lib.format.open_memmap(temporary, "r+")
            file[place(part.mesh, part.shape, part.on)] = part.local
            file.flush()

    def rename() -> None:
        if part.mesh.first:
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)

    for step in (create, fill, rename):
        together(part.mesh, f"save {path}", step)


def load(path: str | os.PathLike, layout: Layout) -> Any:
    """The array of a .npy file, split as `layout` says (mesh.split(0)): every rank reads its part alone.

    path   of a file that every rank sees

    The file may be of any number of ranks, or of np.save. Raises ValueError for a damaged file, an archive of several
    arrays (.npz), and objects, which would be a pickle.

    Raises TypeError where `layout` is none.

    >>> mesh = distributed.init()
    >>> np.save("whole.npy", numpy.arange(8.0))
    >>> distributed.load("whole.npy", mesh.split(0)).sum()
    array(28.)
    >>> distributed.leave()
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"load takes a layout of a mesh, such as mesh.split(0), got {layout!r:.60}")
    mesh, out = layout.mesh, []

    def get() -> None:
        file = opened(os.fspath(path))
        on = fitted(layout.on, file.ndim)
        out.append(Part(mesh, file.shape, on, onp.array(file[place(mesh, file.shape, on)])))

    together(mesh, f"load {os.fspath(path)}", get)
    return array_of(Buffer(out[0], layout.device))


def opened(path: str) -> onp.ndarray:
    """The array of a .npy file, whose elements are read where they are asked for."""
    try:
        found = onp.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        raise
    except Exception as error:  # of many kinds, as NumPy parses what the file says of its array with Python's parser
        raise ValueError(f"{path} is not a whole .npy file: {type(error).__name__}: {error}") from error
    if not isinstance(found, onp.ndarray):
        found.close()
        raise ValueError(f"{path} is an archive of several arrays, which np.load reads; load takes a .npy file")
    return found


def reserve(file: int, size: int) -> None:
    """Have the disk's room for so many bytes of a file."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)


def place(mesh: Any, shape: tuple, on: tuple) -> tuple:
    """The index of this rank's part."""
    return tuple(slice(None) if m is None else slice(*bounds(n, mesh.axis(m))) for n, m in zip(shape, on, strict=True))


def together(mesh: Any, what: str, step: Callable) -> None:
    """Do a step on every rank, and raise on all of them what went wrong on one."""
    error: Exception | None = None
    try:
        step()
    except (OSError, ValueError) as failed:
        error = failed
    group = mesh.group()
    facts = {"op": what[-200:], "error": "" if error is None else f"{type(error).__name__}: {error}"[:200]}
    said = [facts] if group is None else [facts for facts, _ in group.agree(facts)]
    if error is not None:
        raise error
    for rank, other in enumerate(said):
        if other["error"]:
            raise MeshError(f"{what}: rank {rank} raised {other['error']}")
