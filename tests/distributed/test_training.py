"""Data-parallel training on meshes of 1, 2 and 3 processes (cases/training.py)."""

import pytest

pytestmark = pytest.mark.once("what travels between ranks is Python and torch.distributed")
CASES = ["gradients", "facts_of_the_call", "on_the_way", "other_ways", "accumulation", "other_parameters", "compiled"]
CASES += ["curves", "statistics", "half_precision", "large", "streams", "stopping", "resuming"]


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_training(on_ranks, size, case):
    on_ranks(size, f"training.{case}")


def test_one_rank_prints_and_draws(on_ranks):
    pytest.importorskip("matplotlib", reason="draws the curves of a training")
    on_ranks(2, "training.printing")
