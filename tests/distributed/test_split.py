"""Arrays split over meshes of 1, 2 and 3 processes, and of 4 in two rows (cases/split.py)."""

import pytest

pytestmark = [pytest.mark.either("what ranks do with parts is Python"), pytest.mark.dealt]
CASES = [
    "functions",
    "every_row",
    "rules",
    "matrices_on_a_grid",
    "two_meshes",
    "written_where_they_lie",
    "writes",
    "layouts_in_memory",
    "chained",
    "own_kernels",
    "gradients",
    "compiled",
    "branches",
    "where_it_is",
    "told",
    "files",
    "dtensors",
    "programs",
]


@pytest.mark.parametrize(
    "size", [3, *(pytest.param(n, marks=[pytest.mark.slow, pytest.mark.dealt("newest", parts=3)]) for n in (1, 2, 4))]
)
@pytest.mark.parametrize("case", CASES)
def test_split_arrays(on_ranks, size, case):
    on_ranks(size, f"split.{case}")
