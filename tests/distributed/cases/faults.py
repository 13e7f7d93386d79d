"""What the others are told when a rank is gone, stands still, or goes another way."""

import os
import signal
import time

import pytest

import minnp.numpy as np
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
