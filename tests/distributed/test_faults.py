"""A rank that is killed, stopped, or goes another way is named within a stated time (cases/faults.py)."""

import pytest

pytestmark = pytest.mark.either("what happens between processes is Python and torch.distributed")


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_rank_is_named(faulty, size):
    assert faulty(size, "faults.killed") == {1: "rank 1 died"}


@pytest.mark.parametrize("case", ["ended", "elsewhere", pytest.param("stopped", marks=pytest.mark.slow)])
def test_a_rank_that_does_not_come_is_named(faulty, case):
    assert faulty(2, f"faults.{case}").get(0) is None
