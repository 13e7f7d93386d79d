"""kill -9 at random moments of a training: everything ends, the checkpoint is whole, and the curve goes on."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from minnp.nn import checkpoint

pytestmark = pytest.mark.exhaustive
VICTIM = Path(__file__).with_name("victim.py")
TIMES = int(os.environ.get("MINNP_KILLS", 3))


def test_a_training_killed_at_random_moments(job, tmp_path):
    start = time.monotonic()
    whole = job(2, [VICTIM, tmp_path])
    took = time.monotonic() - start
    assert [code for code, _, _ in whole] == [0, 0], whole
    expected = whole[0][1]
    rng = random.Random(1)
    for _ in range(TIMES):
        for f in tmp_path.glob("victim*"):
            f.unlink()
        victim = rng.randrange(2)
        ended = job(2, [VICTIM, tmp_path], kill=(victim, rng.uniform(0, took)), within=60)  # no hang
        code, _, said = ended[1 - victim]
        assert "did not end" not in [code, ended[victim][0]]
        if ended[victim][0] == -signal.SIGKILL and code != 0:
            assert "MeshError" in said, said
        if checkpoint.exists(tmp_path / "victim"):
            checkpoint.load_latest(tmp_path / "victim")  # whole, or it raises
        went_on = job(2, [VICTIM, tmp_path])
        assert [code for code, _, _ in went_on] == [0, 0] and went_on[0][1] == expected, went_on
