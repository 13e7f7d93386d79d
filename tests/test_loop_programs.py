"""The programs of benchmarks/programs/loops compute, with NumPy, what formulas, SciPy and plain Python say."""

import copy
import importlib.util

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


@pytest.mark.exhaustive
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("name", CASES)
def test_jaxs_form_computes_the_same(name):
    import jax

    from benchmarks.programs.loops import in_jax

    arguments, _ = CASES[name].make(CASES[name].small)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        got = jax.tree_util.tree_map(numpy.asarray, in_jax.compiled(name, arguments)(*arguments))
    finally:
        jax.config.update("jax_enable_x64", before)
    agree(got, PROGRAMS[name](*copy.deepcopy(arguments)), 1e-9)
