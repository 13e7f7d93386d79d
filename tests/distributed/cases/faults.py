"""What the others are told when a rank is gone, stands still, or goes another way."""

import os
import resource
import signal
import tempfile
import time

import pytest

import minnp.numpy as np
from minnp import distributed
from minnp.errors import MeshError


def told(mesh, call, *said, within):
    start = time.monotonic()
    with pytest.raises(MeshError) as error:
        call()
    took = time.monotonic() - start
    assert all(s in str(error.value) for s in said), str(error.value)
    assert took < within, f"{took} s: {error.value}"
    with pytest.raises(MeshError, match="broke before"):  # at once
        mesh.all_reduce(1)


def killed(mesh):
    """A rank dies within a collective of the others."""
    mesh.barrier()
    if mesh.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    told(mesh, lambda: mesh.all_reduce(np.ones(1000)), "all_reduce", "rank 1 has given no sign of life", within=30)


def connecting(mesh):
    """A rank dies before it connects."""
    mesh.barrier()
    if mesh.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    mesh.transport.patience = 1.5
    told(mesh, lambda: mesh.group("others"), "connecting the ranks", "rank 1 has given no sign of life", within=20)


def another_size(mesh):
    """A rank was started with another number of processes: it waits for other ranks."""
    mesh.barrier()
    if mesh.rank == 1:
        mesh.transport.size = 3
        mesh.transport._beat()
        time.sleep(4)
        os._exit(0)
    told(mesh, lambda: mesh.group("others"), "rank 0 was started with WORLD_SIZE 2, and rank 1 with 3", within=4)


def stopped(mesh):
    """A rank is stopped: its connections stay open."""
    if mesh.rank == 1:
        if not os.fork():  # somebody must wake it
            parent = os.getppid()
            time.sleep(6)
            os.kill(parent, signal.SIGCONT)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    mesh.transport.patience = 1.5
    told(mesh, mesh.barrier, "barrier", "rank 1 has given no sign of life", within=6)


def ended(mesh):
    """A rank's program ends while others wait for it."""
    if mesh.rank == 1:
        mesh.transport.leave()
        time.sleep(4)
        os._exit(0)
    told(mesh, lambda: mesh.all_reduce(1), "rank 1 has ended", within=4)


def elsewhere(mesh):
    """A rank computes on: the others wait for `timeout` seconds, and say where it is."""
    mesh.transport.timeout = 1
    mesh.barrier()
    if mesh.rank == 1:
        time.sleep(4)
        return
    told(mesh, lambda: mesh.all_reduce(1), "which is the timeout", "rank 1: computes, after barrier", within=4)


def busy(mesh):
    """The same while the others compute with a split array, for which nothing is tried twice."""
    x = np.asarray(np.ones((4, 3)), device=mesh.split(0)) + 0
    mesh.transport.timeout = 1
    mesh.barrier()
    if mesh.rank == 1:
        time.sleep(4)
        return
    told(mesh, lambda: x.sum(), "in all_gather", "which is the timeout", "rank 1: computes, after barrier", within=4)


def different_ways(mesh):
    """Ranks that call different functions of a split array: each has both lines."""
    x = np.asarray(np.ones((4, 3)), device=mesh.split(0)) + 0
    with pytest.raises(MeshError, match=r"rank 0 calls .* at .*faults.py:.* rank 1 calls .* at .*faults.py:"):
        if mesh.first:
            np.sort(x, axis=0)
        else:
            x.sum()


def full_disk(mesh):
    """A file that is too large for the disk: an error on every rank, and the old file stays. A limit stands for it."""
    folder = tempfile.gettempdir()
    path = os.path.join(folder, f"minnp-full-{os.getppid()}.npy")
    small = np.asarray(np.arange(7.0), device=mesh.split(0))
    distributed.save(path, small)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises((OSError, MeshError)) as error:
            distributed.save(path, np.zeros((1000, 100), device=mesh.split(0)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(error.value, OSError if mesh.first else MeshError), error.value
    assert mesh.first or "rank 0 raised OSError" in str(error.value)
    mesh.barrier()  # the mesh is whole
    assert distributed.load(path, mesh.split(0)).tolist() == list(range(7))
    assert not os.path.exists(path + ".tmp")
    mesh.barrier()
    if mesh.first:
        os.remove(path)
