"""Checkpoints: arrays and JSON facts in one file that is either whole or not there.

    save(path, arrays, facts)      arrays: {name: array}, facts: anything JSON can hold
    arrays, facts = load(path)

File: 8 bytes magic, 8 bytes header length (little endian), a JSON header, the arrays' bytes (each at a multiple of 64),
and 32 bytes of SHA-256 over all that. Nothing in it is ever executed, unlike a pickle.

Crash safety: the file is written beside its place, flushed to the disk, and renamed over it; a rename is all or
nothing. The file it replaces stays as `<path>.previous`. So whenever the process dies, `load_latest` finds a whole
checkpoint, and a checksum tells a damaged one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any, BinaryIO

import minnp.numpy as np

from .checks import named

__all__ = ["CheckpointError", "load", "load_latest", "save"]

MAGIC = b"minnp.1\n"
ALIGN = 64
KINDS = "biufc"  # the dtypes whose bytes are their value: no objects, no strings


class CheckpointError(ValueError):
    """The file is not a whole checkpoint: missing, cut short, or changed. The message says which.

    >>> try:
    ...     nn.checkpoint.load("nothing.ckpt")
    ... except nn.checkpoint.CheckpointError as error:
    ...     print(error)
    there is no checkpoint at nothing.ckpt
    """


@named()
def save(path: str | os.PathLike, arrays: dict[str, Any], facts: Any = None, keep_previous: bool = True) -> None:
    """Replace the checkpoint at `path` with these arrays and facts, or, if anything stops it, leave it as it was.

    arrays, facts   what load gives back: arrays by name, and anything that JSON says
    keep_previous   keep the checkpoint that was there, as <path>.previous
    Raises FileNotFoundError where there is no such folder, TypeError for arrays without names, or of no numbers.

    >>> nn.checkpoint.save("a.ckpt", {"w": np.ones(2)}, {"epoch": 3})
    >>> nn.checkpoint.load("a.ckpt")
    ({'w': array([1., 1.])}, {'epoch': 3})
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"checkpoint.save(path, arrays) takes a dict of arrays by name, got a {type(arrays).__name__}: of a model "
            "that is net.tree(), and net.save(prefix) writes all of it"
        )
    path = os.fspath(path)
    temporary = f"{path}.tmp"  # always the same, so that what a killed process left is overwritten
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder for the checkpoint", os.path.dirname(path))
    try:
        with open(temporary, "wb") as file:
            write(file, arrays, facts)
            file.flush()
            os.fsync(file.fileno())
        if keep_previous and os.path.exists(path):
            os.replace(path, previous(path))
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    sync_folder(os.path.dirname(path) or ".")


@named()
def load(path: str | os.PathLike) -> tuple[dict[str, Any], Any]:
    """(arrays, facts) of the checkpoint at `path`; raises CheckpointError unless every byte is as it was written.

    >>> nn.checkpoint.save("a.ckpt", {"w": np.ones(2)}, {"epoch": 3})
    >>> arrays, facts = nn.checkpoint.load("a.ckpt")
    >>> facts
    {'epoch': 3}
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint at {path}") from error
    if len(content) < len(MAGIC) + 8 + 32 or not content.startswith(MAGIC):
        raise CheckpointError(f"{path} is not a checkpoint: {len(content)} bytes, starting with {content[:8]!r}")
    if hashlib.sha256(memoryview(content)[:-32]).digest() != content[-32:]:
        raise CheckpointError(f"{path} is damaged: its {len(content)} bytes do not match their checksum")
    start = len(MAGIC) + 8
    length = int.from_bytes(content[len(MAGIC) : start], "little")
    try:
        header = json.loads(content[start : start + length])
        arrays = dict(array_at(content, entry) for entry in header["arrays"])
        return arrays, header["facts"]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise CheckpointError(
            f"{path} has a header that says no arrays in its {len(content)} bytes: {error}"
        ) from error


def array_at(content: bytes, entry: dict[str, Any]) -> tuple[str, Any]:
    """(name, array) of what one entry of the header says."""
    name, at, size, shape = entry["name"], entry["at"], entry["size"], entry["shape"]
    if not re.fullmatch(r"[<>|=]?[a-z]\d*", entry["dtype"]):  # NumPy parses what else there is as Python
        raise ValueError(f"a dtype {entry['dtype']!r:.40}")
    dtype = np.dtype(entry["dtype"])
    numbers = (at, size, *shape)
    if type(name) is not str or dtype.kind not in KINDS or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"an array {name!r:.40} of {entry['dtype']!r:.40} {shape!r:.60} at {at!r:.40}")
    if at + size > len(content) - 32 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name!r:.40}, {dtype}{shape!r:.60}, in {size} bytes at {at}")
    flat = np.frombuffer(content[at : at + size], dtype=dtype)
    return name, np.array(flat.reshape(shape))  # a copy: writable, and aligned


@named()
def load_latest(path: str | os.PathLike) -> tuple[dict[str, Any], Any]:
    """(arrays, facts) of the newest whole checkpoint: the one at `path`, else the one before it.

    A damaged file at `path` is warned about. None at all is normal: the process died between the two renames of `save`.

    >>> nn.checkpoint.save("a.ckpt", {"w": np.ones(2)}, {"epoch": 3})
    >>> arrays, facts = nn.checkpoint.load_latest("a.ckpt")
    >>> facts
    {'epoch': 3}
    """
    try:
        return load(path)
    except CheckpointError as error:
        if not os.path.exists(previous(path)):
            raise
        if os.path.exists(path):
            warnings.warn(f"{error}; continuing from {previous(path)}", RuntimeWarning, stacklevel=2)
        return load(previous(path))


def exists(path: str | os.PathLike) -> bool:
    """Is there anything for load_latest to try?"""
    return os.path.exists(path) or os.path.exists(previous(path))


def previous(path: str | os.PathLike) -> str:
    return f"{os.fspath(path)}.previous"


def write(file: BinaryIO, arrays: dict[str, Any], facts: Any) -> None:
    buffers, entries = [], []
    for name, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind not in KINDS:
            raise TypeError(f"a checkpoint holds numbers; {name!r} has dtype {array.dtype}")
        buffers.append(array.tobytes())
        entries.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape)})
    # Offsets are part of the header, and the header's length moves the offsets: leave room, then place the arrays.
    room = len(json.dumps({"arrays": entries, "facts": facts})) + 64 * len(entries) + 64
    at = aligned(len(MAGIC) + 8 + room)
    for entry, buffer in zip(entries, buffers):
        entry["at"], entry["size"] = at, len(buffer)
        at = aligned(at + len(buffer))
    header = json.dumps({"arrays": entries, "facts": facts}).encode().ljust(room)
    digest = hashlib.sha256()
    position = 0

    def put(chunk: bytes) -> None:
        nonlocal position
        file.write(chunk)
        digest.update(chunk)
        position += len(chunk)

    put(MAGIC + len(header).to_bytes(8, "little") + header)
    for entry, buffer in zip(entries, buffers):
        put(bytes(entry["at"] - position))
        put(buffer)
    file.write(digest.digest())


def aligned(position: int) -> int:
    return -(-position // ALIGN) * ALIGN


def sync_folder(folder: str) -> None:
    """Make a rename itself survive a power cut; Windows has no such call, and needs none."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
