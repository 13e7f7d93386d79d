"""What MinPy got wrong without a word must hold: on NumPy, on every backend's kernels, in every backend's memory."""

import contextlib

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import Context, grad
from minnp.backends import installed

BACKENDS = [name for name in ("mxnet", "torch") if name in installed()]
WHERE = {
    "only_numpy": lambda: minnp.policy("only_numpy"),
    "auto": contextlib.nullcontext,
    **{f"{name} kernels": lambda name=name: minnp.policy(f"prefer_{name}") for name in BACKENDS},
    **{f"{name} memory": lambda name=name: Context("cpu", 0, backend=name) for name in BACKENDS},
}


@pytest.fixture(params=WHERE, autouse=True)
def where(request):
    with WHERE[request.param]():
        yield request.param


@pytest.fixture(params=[numpy.float32, numpy.float64])
def dtype(request):
    return request.param


def same(ours, theirs):
    """Equal values, shape and dtype; ours as real NumPy."""
    ours = ours.asnumpy() if isinstance(ours, np.ndarray) and hasattr(ours, "asnumpy") else numpy.asarray(ours)
    theirs = numpy.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    rtol = 1e-5 if theirs.dtype == numpy.float32 else 1e-12
    numpy.testing.assert_allclose(ours, theirs, rtol=rtol)


def test_numbers_and_lists_are_arguments_like_arrays(dtype):
    assert np.exp(1.0) == numpy.exp(1.0)
    same(np.exp(1.0), numpy.exp(1.0))
    assert np.sum([1, 2]) == 3
    same(np.sum([1, 2]), numpy.sum([1, 2]))
    same(np.add([1, 2], 3.5), numpy.add([1, 2], 3.5))
    same(np.concatenate([[1.0], np.ones(2), (3, 4)]), numpy.concatenate([[1.0], numpy.ones(2), (3, 4)]))
    same(np.maximum([1, 5], np.array([2, 3])), [2, 5])
    same(np.dot([[1.0, 2.0]], np.array([3.0, 4.0])), [11.0])
    same(np.concatenate([[1.0], np.array([2.0]), numpy.array([3.0])]), [1.0, 2.0, 3.0])
    same(np.sum(np.array([[1, 2], [3, 4]], dtype), 0), numpy.array([4, 6], dtype))


def test_the_truth_of_an_array_is_numpys():
    with pytest.raises(ValueError, match="truth value of an array with more than one element is ambiguous"):
        if np.array([1.0, -1.0]) > 0:
            pass
    with pytest.raises(ValueError, match="ambiguous"):
        bool(np.array([1.0, -1.0]) > 0)
    assert not np.array([0.0]) > 0
    assert not np.array([-1.0]) > 0
    assert np.array(1.0) > 0
    assert np.array(2.0) > 1


def test_gradients_flow_through_joining(dtype):
    x = np.array([1.0, 2.0], dtype)
    w = np.array([1.0, 2.0, 3.0, 4.0], dtype)
    same(grad(lambda x: np.sum(w * np.concatenate([x, x * x])))(x), numpy.array([1 + 6, 2 + 16], dtype))
    same(grad(lambda x: np.sum(w.reshape(2, 2) * np.stack([x, x * x])))(x), numpy.array([1 + 6, 2 + 16], dtype))
    same(grad(lambda x: np.sum(w * np.hstack([x, 3 * x])))(x), numpy.array([10, 14], dtype))
    same(grad(lambda x: np.sum(np.array([x[0], 2 * x[1]])))(x), numpy.array([1, 2], dtype))
    x, w = np.array([1.0, 2.0]), numpy.array([[1.0, 2.0], [3.0, 4.0]])
    same(grad(lambda x: (np.stack([x, x * 2]) * w).sum())(x), w[0] + 2 * w[1])
    same(grad(lambda x: (np.concatenate([x, x**2]) * w.ravel()).sum())(x), w[0] + w[1] * 2 * numpy.array([1.0, 2.0]))
    same(grad(lambda x: (np.vstack((x, x)) * w).sum() + (np.hstack((x, x)) * w.ravel()).sum())(x), 2 * w.sum(0))


def test_a_gradient_has_a_gradient(dtype):
    def f(x):
        return np.sum(np.sin(x) * x**3)

    x = numpy.array([0.5, 1.5], dtype)
    second = grad(lambda x: np.sum(grad(f)(x)))(np.array(x))
    expected = -numpy.sin(x) * x**3 + 6 * numpy.cos(x) * x**2 + 6 * numpy.sin(x) * x
    numpy.testing.assert_allclose(second.asnumpy(), expected, rtol=1e-4)
    assert second.dtype == dtype
    assert float(grad(grad(grad(lambda x: x**4)))(2.0)) == 48.0
    same(grad(grad(lambda x: x**3))(np.array(2.0)), numpy.array(12.0))
    same(grad(lambda x: (grad(lambda x: (x**3).sum())(x) * x).sum())(np.array([1.0, 2.0])), [9.0, 36.0])


def test_a_write_is_part_of_the_tape(dtype):
    def f(x):
        y = np.zeros(3, dtype=dtype)
        y[1] = x[0] * x[1]
        y[2:] = x[:1]
        y += y
        x[0] = 0
        return np.sum(y * y) + np.sum(x)

    x = np.array([2.0, 3.0], dtype)
    gradient = grad(f)(x)
    # y = 2 [0, ab, a]: f = 4 (ab)^2 + 4 a^2 + b
    same(gradient, numpy.array([8 * 2 * 9 + 8 * 2, 8 * 4 * 3 + 1], dtype))
    same(x, numpy.array([2.0, 3.0], dtype))


def test_a_write_reads_what_was_written_before():
    def f(x):
        y = x * 1.0
        y[0] = x[1] * 5
        y[1] += x[0]
        return (y * np.array([2.0, 3.0])).sum()

    same(grad(f)(np.array([1.0, 2.0])), [3.0, 13.0])


def test_an_update_in_place_reaches_every_alias(dtype):
    w = np.array([[1.0, 2.0], [3.0, 4.0]], dtype)
    alias, row = w, w[0]
    w -= 0.5 * grad(lambda w: np.sum(w * w))(w)
    assert alias is w
    same(w, numpy.zeros((2, 2), dtype))
    same(row, numpy.zeros(2, dtype))
    w = np.ones(3)
    alias, view = w, w[1:]
    w -= 0.5 * grad(lambda w: (w**2).sum())(w)
    same(alias, numpy.zeros(3))
    same(view, numpy.zeros(2))


def test_a_boolean_mask_selects_what_it_says(dtype):
    x = np.array([[1.0, -2.0], [-3.0, 4.0]], dtype)
    h = numpy.array([[1.0, -2.0], [-3.0, 4.0]], dtype)
    same(x[x < 0], h[h < 0])
    same(x[np.array([True, False])], h[[True, False]])
    same(grad(lambda x: np.sum(x[x < 0] ** 2))(x), numpy.where(h < 0, 2 * h, 0))
    x[x < 0] = 0
    same(x, numpy.maximum(h, 0))
    h = numpy.arange(12.0).reshape(3, 4) - 5
    same(grad(lambda a: (a[a > 2] ** 2).sum())(np.array(h)), numpy.where(h > 2, 2 * h, 0))
    a = np.array(h)
    same(a[a > 0], h[h > 0])
    a[a < 0] = 0
    h[h < 0] = 0
    same(a, h)


def test_a_write_through_a_view_is_seen_by_the_next_kernel(dtype):
    x = np.ones((3, 4), dtype=dtype)
    np.exp(x)  # whatever a backend keeps of x, it must not outlive the write
    view = x[1:].T
    view[0] = 5
    h = numpy.ones((3, 4), dtype)
    h[1:].T[0] = 5
    same(np.exp(x), numpy.exp(h))
    same(x @ np.ones(4, dtype=dtype), h @ numpy.ones(4, dtype))
    x[0] = 7
    h[0] = 7
    same(np.sum(x), h.sum())


def test_a_write_through_a_view_is_seen_everywhere():
    x = np.zeros((3, 3))
    x.sum()
    view = x[1:]
    deeper = view.T[0]
    deeper[...] = 7
    view[0, 1] += 2
    want = numpy.zeros((3, 3))
    want[1:, 0] = 7
    want[1, 1] = 2
    same(x, want)
    same(x.sum(), want.sum())
    same(np.exp(x * 0) + view[0], numpy.ones((3, 3)) + want[1])


def test_integers_are_not_truncated_and_stay_integers():
    i = np.array([1, 2, 3])
    same(i + 0.5, numpy.array([1.5, 2.5, 3.5]))
    same(i * 2, numpy.array([1, 2, 3]) * 2)
    same(i / 2, numpy.array([0.5, 1.0, 1.5]))
    same(i // 2, numpy.array([1, 2, 3]) // 2)
    same(np.sum(i), numpy.array([1, 2, 3]).sum())
    same(np.array([2**40 + 1]) + 1, numpy.array([2**40 + 2]))
    same(i * i, numpy.array([1, 4, 9]))
    same(np.sum(np.array([True, True])), numpy.sum(numpy.array([True, True])))
    same(np.ones(2, "f4") + np.ones(2, "i8"), numpy.ones(2, "f4") + numpy.ones(2, "i8"))
    same(np.mean(np.arange(4)), numpy.mean(numpy.arange(4)))
    same(np.arange(3, dtype="u2") + np.arange(3, dtype="i2"), numpy.arange(3, dtype="u2") + numpy.arange(3, dtype="i2"))


def test_reductions_have_no_shape_left(dtype):
    x = np.ones((2, 3), dtype=dtype)
    assert np.sum(np.ones((2, 2))).shape == ()
    for f in (np.sum, np.mean, np.max, np.prod):
        assert np.shape(f(x)) == ()
        same(f(x, axis=1), getattr(numpy, f.__name__)(numpy.ones((2, 3), dtype), axis=1))


def test_a_seed_seeds(where):
    def draw(random):
        random.seed(7)
        return random.randn(3), random.rand(2), random.randint(0, 9, 4)

    # in the memory of a backend that draws there, the stream is that backend's
    again = draw(np.random if where == "torch memory" else numpy.random)
    for ours, theirs in zip(draw(np.random), again):
        same(ours, theirs)
    for ours, theirs in zip(draw(np.random), draw(np.random)):
        assert numpy.array_equal(ours.asnumpy(), theirs.asnumpy())
    if where != "torch memory":
        same(np.random.default_rng(5).normal(size=4), numpy.random.default_rng(5).normal(size=4))


def test_an_unused_argument_has_zeros_of_its_own(dtype):
    dx, dy = grad(lambda x, y: np.sum(x), argnum=[0, 1])(np.ones(3, dtype=dtype), np.ones((2, 2), dtype=dtype))
    same(dx, numpy.ones(3, dtype))
    same(dy, numpy.zeros((2, 2), dtype))
    g = grad(lambda x, y: x.sum(), argnum=1)(np.ones(3), np.ones((2, 4), "f4"))
    same(g, numpy.zeros((2, 4), "f4"))


def test_ties_share_the_gradient(dtype):
    same(grad(np.max)(np.array([2.0, 1.0, 2.0], dtype)), numpy.array([0.5, 0, 0.5], dtype))
    same(grad(lambda x: np.max(x))(np.array([3.0, 1.0, 3.0])), [0.5, 0.0, 0.5])
    same(grad(lambda x: np.sum(np.maximum(x, 1)))(np.array([2.0, 1.0], dtype)), numpy.array([1, 0.5], dtype))


def test_what_has_no_gradient_raises_and_is_never_zero():
    with pytest.raises(minnp.errors.NotDifferentiableError, match="gamma"):
        grad(lambda x: np.sum(np.random.gamma(x)))(np.ones(3))


def test_a_tape_does_not_survive_an_exception():
    def fails(x):
        np.sin(x)
        raise KeyError("user's own")

    with pytest.raises(KeyError):
        grad(fails)(1.0)
    same(grad(lambda x: x * x)(3.0), 6.0)
    x = np.ones(2)
    x += 1
    same(x, numpy.full(2, 2.0))
