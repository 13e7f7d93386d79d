"""npx: fused kernels against their definitions, and against torch where it is installed."""

from functools import partial

import numpy as onp
import pytest

import minnp
from minnp.core.primitive import TABLE
from minnp.npx import cells, norms, recurrent, steps
from minnp.npx.fused import pulled

# A fused row's backward kernel sees gradients of its main results only; the generic row tests give it all of them.
FUSED = {
    "npx.normalize": (norms._definition, 3),
    "npx.lstm": (cells._lstm_definition, 2),
    "npx.gru": (recurrent._gru_definition, 1),
    "npx.lstm_cell": (cells._cell_definition, 2),
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


def test_a_sequence_has_the_same_bits_on_any_number_of_threads():
    r = onp.random.RandomState(0)
    draw = lambda *s: r.standard_normal(s).astype("f")
    x, h, c, w_x, w_h, b = draw(3, 64, 64), draw(64, 64), draw(64, 64), draw(256, 64), draw(256, 64), draw(256)
    assert steps.Repeated(w_h, 64).rows < 64  # so it is cut
    results = []
    before = minnp.set_num_threads(1)
    try:
        for threads in (1, 2, 3):
            minnp.set_num_threads(threads)
            y = cells._lstm(x, h, c, w_x, w_h, b)
            results.append([*y, *cells._lstm_back((True,) * 6, (x, None), y, x, h, c, w_x, w_h, b)])
    finally:
        minnp.set_num_threads(before)
    for other in results[1:]:
        assert [a.tobytes() for a in other] == [a.tobytes() for a in results[0]]
    onp.testing.assert_allclose(results[0][0], cells._lstm_definition(x, h, c, w_x, w_h, b)[0], atol=1e-4)
