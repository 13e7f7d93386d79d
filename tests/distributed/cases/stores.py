"""Key-value stores over the ranks of a mesh."""

import os
import tempfile

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import kvstore, nn


def pushes(mesh):
    for name in ("dist_sync", "dist_device_sync", "dist_sync_device"):
        kv = kvstore.create(name, mesh)
        assert (kv.type, kv.rank, kv.num_workers) == (name, mesh.rank, mesh.size)
        kv.init("w", np.full((2, 3), 5.0 + mesh.rank))
        out = np.zeros((2, 3))
        kv.pull("w", out)
        assert (out == 5).all()  # rank 0's
        kv.push("w", [np.ones((2, 3)), np.full((2, 3), 1.0 + mesh.rank)])  # two devices each
        kv.pull("w", [out, other := onp.zeros((2, 3))])
        total = sum(2.0 + r for r in range(mesh.size))
        assert (out == total).all() and (other == total).all()
        kv.pushpull("w", g := np.ones((2, 3)))
        assert (g == mesh.size).all()
        kv.broadcast([3, 5], [np.ones(2) * mesh.rank, np.ones(1)], [a := np.ones(2), b := np.zeros(1)])
        assert a.tolist() == [0, 0] and b.tolist() == [1]
        kv.barrier()


def training(mesh):
    """Every worker moves the same weights, by the sum of all gradients: as one with the whole batch."""
    rng = onp.random.default_rng(0)
    x, target = rng.standard_normal((12, 4)), rng.standard_normal(4)
    kv = kvstore.create("dist_sync", mesh)
    w, alone = np.zeros(4), np.zeros(4)
    kv.init(0, w)
    kv.set_optimizer("adam", learning_rate=0.1)
    config = {"learning_rate": 0.1}
    mine = x[mesh.part(12)]
    path = os.path.join(tempfile.gettempdir(), f"minnp-states-{os.getppid()}-{mesh.size}")
    for step in range(6):
        kv.push(0, 2 * mine.T @ (mine @ w - mine @ target))
        kv.pull(0, w)
        alone, config = nn.optim.adam(alone, 2 * x.T @ (x @ alone - x @ target), config)
        onp.testing.assert_allclose(w, alone, rtol=1e-6)
        if step == 2:
            kv.save_optimizer_states(path)
            kv.set_optimizer("adam", learning_rate=0.1)
            kv.load_optimizer_states(path)
    mesh.barrier()
    if mesh.first:
        os.remove(path)


def mistakes(mesh):
    kv = kvstore.create("dist_sync", mesh)
    kv.init("w", np.ones(3))
    for error, match, call in [
        (ValueError, "already", lambda: kv.init("w", np.ones(3))),
        (KeyError, "was not initialised", lambda: kv.push("v", np.ones(3))),
        (ValueError, "holds", lambda: kv.push("w", np.ones(4))),
        (ValueError, "out=", lambda: kv.pull("w")),
        (TypeError, "a string or an integer", lambda: kv.init(2.5, np.ones(3))),
        (ValueError, "2 keys", lambda: kv.push(["w", "v"], np.ones(3))),
        (ValueError, "no optimizer", lambda: kv.save_optimizer_states("x")),
        (ValueError, "minnp.launch", lambda: kvstore.create("dist_async")),
        (ValueError, "known: local", lambda: kvstore.create("remote")),
        (TypeError, "is a string", lambda: kvstore.create(3)),
    ]:
        with pytest.raises(error, match=match):
            call()
