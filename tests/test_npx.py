"""npx: fused kernels against their definitions, and against torch where it is installed."""

from functools import partial

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, npx
from minnp.core.rows.primitive import TABLE
from minnp.npx import cells, normal, norms, recurrent, steps
from minnp.npx.fused import pulled

# A fused row's backward kernel sees gradients of its main results only; the generic row tests give it all of them.
FUSED = {
    "npx.normalize": (norms._definition, 3),
    "npx.batch_norm_train": (norms._train_definition, 3),
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


@pytest.mark.host("of our own kernel, torch's is 4.5 units off")
def test_gelu_in_single_precision_keeps_the_digits_of_small_results():
    special = pytest.importorskip("scipy.special")
    x = onp.linspace(-6, 9, 150_001).astype("f")
    wide = x.astype(float)
    phi, density = special.ndtr(wide), onp.exp(-wide * wide / 2) / onp.sqrt(2 * onp.pi)
    y, want = TABLE["npx.gelu"](x), wide * phi
    assert y.dtype == onp.float32
    off = abs(y - want) / onp.spacing(abs(want).astype("f"))
    assert off[x >= 0].max() < 3 and off[x >= -1].max() < 5
    onp.testing.assert_allclose(y, want, rtol=2e-5)
    slope = minnp.vjp(npx.gelu, x)[1](onp.ones_like(x))[0]
    onp.testing.assert_allclose(slope, phi + wide * density, atol=2.5e-7)
    onp.testing.assert_allclose(TABLE["npx.gelu"](onp.float32([-30, 30] * 40)), [0, 30] * 40, atol=1e-28)
    before = minnp.set_num_threads(1)
    try:
        alone = TABLE["npx.gelu"](x), normal.gelu_slope(x[::2])
        minnp.set_num_threads(3)
        shared = TABLE["npx.gelu"](x), normal.gelu_slope(x[::2])
    finally:
        minnp.set_num_threads(before)
    assert [a.tobytes() for a in shared] == [a.tobytes() for a in alone]


@pytest.mark.parametrize("wrong", range(6))
def test_layers_over_time_refuse_arrays_that_do_not_fit(wrong: int) -> None:
    """Compiled kernels read them as they should be: of others they would read beyond the end."""
    shapes = {
        npx.lstm: [(5, 2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,)],
        npx.gru: [(5, 2, 3), (2, 4), (12, 3), (12, 4), (12,), (12,)],
        npx.simple_rnn: [(5, 2, 3), (2, 4), (4, 3), (4, 4), (4,)],
    }
    for f, given in shapes.items():
        for axis in range(wrong == 0, len(given[wrong]) if wrong < len(given) else 0):
            for size in (0, 1):
                fewer = [*given[wrong][:axis], size, *given[wrong][axis + 1 :]]
                arrays = [onp.ones(fewer if i == wrong else s, "f4") for i, s in enumerate(given)]
                with pytest.raises(ValueError, match=f"npx.{f.__name__} of x"):
                    f(*arrays)


@pytest.mark.parametrize("shape", [(), (2,), (3, 100)])
@pytest.mark.parametrize("name", ["erf", "erfinv", "gelu", "sigmoid", "silu", "softplus"])
def test_half_precision_stays(name, shape):
    f, x = getattr(npx, name), onp.full(shape, 0.3, onp.float16)
    total = lambda x: np.sum(f(x))
    for run in (f, jit(f), grad(total), jit(grad(total))):
        y = run(np.array(x))
        assert y.dtype == onp.float16
        onp.testing.assert_allclose(y.astype(float), run(np.array(x, dtype=float)), rtol=2e-3)


def test_a_prelu_without_gamma_says_so():
    with pytest.raises(ValueError, match="pass gamma="):
        npx.leaky_relu(np.ones(2), act_type="prelu")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("moving", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_batch_norm_has_the_precision_of_its_parameters_in_either_mode(dtype, moving, training):
    x, ones, kept = np.ones((3, 2), dtype), np.ones(2, dtype), (np.zeros(2, moving), np.ones(2, moving))
    run = lambda x: npx.batch_norm(x, ones, ones, *kept, training=training)
    assert run(x).dtype == jit(run)(x).dtype == grad(lambda x: np.sum(run(x)))(x).dtype == dtype
    assert kept[0].dtype == moving
