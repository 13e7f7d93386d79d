"""Key-value stores of one process, and of a mesh's (cases/stores.py); and launching."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import kvstore

pytestmark = pytest.mark.once("what stores do is Python and torch's")


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", ["pushes", "training", "mistakes"])
def test_stores_of_a_mesh(on_ranks, size, case):
    on_ranks(size, f"stores.{case}")


def test_a_local_store_adds_up_the_devices():
    for name in kvstore.LOCAL:
        kv = kvstore.create(name)
        kv.init([3, 4], [np.zeros(2), np.ones(1)])
        kv.push([3, 4], [[np.ones(2), 2 * np.ones(2)], [np.ones(1), np.ones(1)]])
        out = onp.zeros(2)
        kv.pull(3, out)
        assert out.tolist() == [3, 3]
        kv._set_updater(lambda key, pushed, stored: stored.__iadd__(pushed * 10))
        kv.push(4, np.ones(1))
        kv.pull(4, one := np.zeros(1))
        assert one.tolist() == [12] and (kv.rank, kv.num_workers, kv.type) == (0, 1, name)
        assert kv.is_capable("optimizer")


PROGRAM = """
import sys
import minnp, minnp.numpy as np
kv = minnp.kvstore.create(sys.argv[1])
w = np.zeros(3, np.float32)
kv.init("w", w + 1)
if sys.argv[2:]:
    kv.set_optimizer("sgd", learning_rate=0.5)
for step in range(2):
    kv.push("w", [np.ones(3, np.float32) * (kv.rank + 1)])
    kv.barrier()
    kv.pull("w", w)
    kv.barrier()
sys.stdout.write(f"{kv.type} {kv.num_workers} {w.tolist()}\\n")
"""


def launch(tmp_path, *command, program=PROGRAM):
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "minnp.launch", *[tmp_path / c if c == "program.py" else c for c in command]]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_without_servers_the_workers_are_a_mesh(tmp_path):
    pytest.importorskip("torch")
    done = launch(tmp_path, "-n", "2", "-s", "0", "program.py", "dist_sync")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["dist_sync 2 [3.0, 3.0, 3.0]"] * 2


def test_a_worker_that_fails_stops_the_others_and_is_named(tmp_path):
    program = "import os, sys, time; sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(60)"
    done = launch(tmp_path, "-n", "2", "-s", "0", "program.py", program=program)
    assert done.returncode == 7 and "worker 1 (process" in done.stderr and "ended with 7" in done.stderr


def test_what_launch_needs(tmp_path):
    assert "at least one worker" in launch(tmp_path, "-n", "0", "program.py").stderr
    if find_spec("mxnet") is None:
        assert "needs mxnet" in launch(tmp_path, "-n", "2", "program.py").stderr
