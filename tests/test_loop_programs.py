"""The programs of benchmarks/programs/loops compute, with NumPy, what formulas, SciPy and plain Python say."""

import copy

import numpy
import pytest

from benchmarks.programs.loops import FILES, functions
from benchmarks.programs.loops.cases import CASES

pytestmark = pytest.mark.either("runs NumPy alone")
HELPERS = {"heat_3d_half", "pressure_source", "sort_part", "find", "nbody_acceleration", "nbody_energy"}
HELPERS |= {"lotka_volterra", "sigmoid"}
PROGRAMS = functions()


def agree(got, expected, rtol):
    if isinstance(expected, tuple):
        assert isinstance(got, tuple) and len(got) == len(expected)
        for a, b in zip(got, expected):
            if b is not None:
                agree(a, b, rtol)
    else:
        numpy.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def test_every_program_has_a_case():
    assert set(PROGRAMS) == set(CASES) | HELPERS, FILES


@pytest.mark.parametrize("name", CASES)
def test_program_computes_what_it_should(name):
    case = CASES[name]
    arguments, expected = case.make(case.small)
    agree(PROGRAMS[name](*copy.deepcopy(arguments)), expected(), case.rtol)
