"""Real programs give NumPy's results, bit for bit, after their import line is swapped."""

import numpy
import pytest

import minnp.numpy
from benchmarks.programs import compare


@pytest.mark.parametrize("name", compare.NAMES)
def test_program_gives_numpys_results(name):
    program = compare.program(name)
    ours, theirs = (program.run(np, program.SMALL) for np in (minnp.numpy, numpy))
    assert compare.difference(ours, theirs) is None


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
