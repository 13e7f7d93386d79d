"""npx: fused kernels against their definitions, and against torch where it is installed."""

from functools import partial

import numpy as onp
import pytest

from minnp.core.primitive import TABLE
from minnp.npx import norms, recurrent
from minnp.npx.fused import pulled

# A fused row's backward kernel sees gradients of its main results only; the generic row tests give it all of them.
FUSED = {
    "npx.normalize": (norms._definition, 3),
    "npx.lstm": (recurrent._lstm_definition, 2),
    "npx.gru": (recurrent._gru_definition, 1),
    "npx.lstm_cell": (recurrent._cell_definition, 2),
    "npx.simple_rnn": (recurrent._simple_definition, 1),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_backward_kernel_is_the_gradient_of_the_definition(name):
    definition, main = FUSED[name]
    row, draw = TABLE[name], onp.random.RandomState(0).normal
    for arrays, params in row.samples():
        y = row(*arrays, **params)
        onp.testing.assert_allclose(y[0], definition(*arrays, **params)[0], rtol=1e-12)
        for flows in {(True,) * main, (True,) + (False,) * (main - 1), (False,) * (main - 1) + (True,)}:
            g = [draw(size=r.shape) if k < main and flows[k] else None for k, r in enumerate(y)]
            for wanted in ([True] * len(arrays), [False, *[True] * (len(arrays) - 1)]):
                got = row.vjp.rule(wanted, g, y, *arrays, **params)
                expected = pulled(partial(definition, **params), arrays, wanted, g)
                for a, b, w in zip(got, expected, wanted, strict=True):
                    if w and b is not None:
                        onp.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
                    elif w:
                        assert not a.any()
