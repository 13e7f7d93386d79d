"""Real programs give NumPy's results, on its kernels bit for bit, after their import line is swapped."""

import numpy
import pytest

import minnp.numpy
from benchmarks.programs import compare
from tests.agreement import exact


@pytest.mark.parametrize("name", compare.NAMES)
def test_program_gives_numpys_results(name):
    program = compare.program(name)
    ours, theirs = (program.run(np, program.SMALL) for np in (minnp.numpy, numpy))
    # another backend's kernels differ in the last place, and an iteration carries that on
    assert compare.difference(ours, theirs, ulps=0 if exact() else 256) is None


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (numpy.ones(2, "f"), numpy.ones(2)),
        (numpy.ones(2), numpy.ones(3)),
        (numpy.ones(2), numpy.zeros(2)),
        (numpy.float64(1), numpy.ones(1)),
        ((1,), [1]),
        ([1], [1, 2]),
    ],
)
def test_a_difference_is_seen(ours, theirs):
    assert compare.difference(ours, theirs)
