"""kill -9 at random moments of a training: everything ends, the checkpoint is whole, and the curve goes on."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minnp.nn import checkpoint

pytestmark = pytest.mark.slow
VICTIM = Path(__file__).with_name("victim.py")
TIMES = int(os.environ.get("MINNP_KILLS", 3))


def ranks(folder, size=2):
    """The processes of a job, started without anything that looks after them."""
    meeting = folder / f"meet-{time.monotonic_ns()}"
    common = os.environ | {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MINNP_MESH_FILE": str(meeting)}
    command = [sys.executable, str(VICTIM), str(folder)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(command, env=common | {"RANK": str(r)}, **pipes) for r in range(size)]


def finished(processes, within):
    deadline = time.monotonic() + within
    out = [p.communicate(timeout=max(deadline - time.monotonic(), 1)) for p in processes]
    return out, [p.returncode for p in processes]


def test_a_training_killed_at_random_moments(tmp_path):
    pytest.importorskip("torch", reason="a mesh of several processes")
    start = time.monotonic()
    (whole, _), codes = finished(ranks(tmp_path), 120)
    took = time.monotonic() - start
    assert codes == [0, 0]
    expected = whole[0]
    for f in tmp_path.iterdir():
        f.unlink()
    rng = random.Random(1)
    for _ in range(TIMES):
        for f in tmp_path.glob("victim*"):
            f.unlink()
        job = ranks(tmp_path)
        time.sleep(rng.uniform(0.2, took))
        victim = rng.randrange(2)
        job[victim].send_signal(signal.SIGKILL)
        out, codes = finished(job, 60)  # no hang
        if -signal.SIGKILL in codes and codes[1 - victim] != 0:
            assert "MeshError" in out[1 - victim][1], out[1 - victim][1]
        if checkpoint.exists(tmp_path / "victim"):
            checkpoint.load_latest(tmp_path / "victim")  # whole, or it raises
        (went_on, _), codes = finished(ranks(tmp_path), 120)
        assert codes == [0, 0] and went_on[0] == expected
