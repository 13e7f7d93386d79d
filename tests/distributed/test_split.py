"""Arrays split over meshes of 1, 2 and 3 processes, and of 4 in two rows (cases/split.py)."""

import os

import pytest

pytestmark = pytest.mark.either("what ranks do with parts is Python")
CASES = [
    "functions",
    "writes",
    "gradients",
    "compiled",
    "branches",
    "where_it_is",
    "told",
    "in_parts",
    "files",
    "programs",
]
UNDER_THE_DEFAULT_POLICY = ["writes", "told", "programs"]


@pytest.mark.parametrize("size", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4))])
@pytest.mark.parametrize("case", CASES)
def test_split_arrays(on_ranks, size, case, request):
    if os.environ.get("MINNP_BACKEND") == "torch" and case in UNDER_THE_DEFAULT_POLICY:
        reason = "a fault: split arrays are right under the default policy only"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=case != "programs"))
    on_ranks(size, f"split.{case}")


@pytest.mark.slow
def test_a_thousand_random_programs(on_ranks):
    on_ranks(3, "split.many_programs")
