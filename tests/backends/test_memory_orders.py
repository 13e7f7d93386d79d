"""Elementwise kernels of every installed backend on arrays as they lie in memory, and others broadcast against them."""

import itertools

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends

N = 6
CUBE = onp.random.default_rng(0).standard_normal((N, N, N)) + 2
LAYOUTS = {
    "C": lambda x: x,
    "Fortran": lambda x: x.T,
    "a matrix within a cube, transposed": lambda x: x[2].T,
    "permuted": lambda x: x.transpose(1, 2, 0),
    "every other row": lambda x: x[::2, :, 1],
    "backwards": lambda x: x[:, ::-1],
    "a repeated row": lambda x: onp.broadcast_to(x[0, 0], (N, N)),
    "a column": lambda x: x[0, :, :1],
    "a row": lambda x: x[0, 0],
    "one number": lambda x: x[0, 0, 0, ...],
}
FUNCTIONS = {
    "add": lambda np, a, b: np.add(a, b),
    "subtract": lambda np, a, b: np.subtract(a, b),
    "maximum": lambda np, a, b: np.maximum(a, b),
    "greater": lambda np, a, b: np.greater(a, b),
    "where": lambda np, a, b: np.where(a > 2, a, b),
}


@pytest.mark.parametrize("backend", backends.installed())
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_do_not_depend_on_the_order_in_memory(backend, dtype, name):
    function, cube = FUNCTIONS[name], CUBE.astype(dtype)
    with minnp.policy(f"prefer_{backend}"):
        for (first, a), (second, b) in itertools.product(LAYOUTS.items(), repeat=2):
            try:
                want = function(onp, a(cube), b(cube[::-1]))
            except ValueError:
                continue  # shapes that do not fit
            got = function(np, np.asarray(a(cube)), np.asarray(b(cube[::-1])))
            assert (got.shape, got.dtype) == (want.shape, want.dtype), (first, second)
            assert got.tolist() == want.tolist(), (first, second)
