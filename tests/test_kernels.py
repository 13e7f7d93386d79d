"""The C part's kernels over rows (core/cpu/kernels.py) are what NumPy computes, on any number of threads."""

from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import npx
from minnp.core import compiled
from minnp.core.cpu import kernels, selection

pytestmark = [
    pytest.mark.either("about the C part"),
    pytest.mark.skipif(compiled.team is None, reason="minnp was installed without a C compiler"),
]
SHAPES = [(300, 7), (4, 5000, 9), (64, 48), (3, 5000), (2, 33, 130), (400, 300)]


def drawn(*shapes: tuple) -> list:
    rng = onp.random.default_rng(0)
    return [(3 * rng.standard_normal(s)).astype("f4") for s in shapes]


def adam(x: Any, g: Any) -> list:
    """Two steps from zero."""
    w, m, v = np.array(x), np.zeros_like(x), np.zeros_like(x)
    for t in (1, 2):
        assert npx.adam_update(w, t * g, m, v, 0.1) is w
    return [w, m, v]


def norm(x: Any, g: Any) -> list:
    gamma, beta = drawn(x.shape[-1:], x.shape[-1:])
    return minnp.grad(lambda x, a, b: np.sum(g * npx.layer_norm(x, a, b)), (0, 1, 2))(x, gamma, beta)


def batch_norm(x: Any, g: Any) -> list:
    """Over [4, 5, any] and [any, 2, 10]."""
    return [a for shape in ((4, 5, -1), (-1, 2, 10)) for a in normalised(*(shaped(a, 20, shape) for a in (x, g)))]


def shaped(a: onp.ndarray, step: int, shape: tuple) -> onp.ndarray:
    """Of so many elements as are a multiple of step."""
    return a.ravel()[: a.size // step * step].reshape(shape)


def normalised(x: Any, g: Any) -> list:
    gamma, beta = drawn(x.shape[1:2], x.shape[1:2])
    moving = [np.zeros(x.shape[1], "f4"), np.ones(x.shape[1], "f4")]
    f = lambda x, a, b: npx.batch_norm(x, a, b, *moving, fix_gamma=False, training=True)
    return [f(x, gamma, beta), *moving, *minnp.grad(lambda *a: np.sum(g * f(*a)), (0, 1, 2))(x, gamma, beta)]


def pooling(x: Any, g: Any) -> list:
    """Gradients of windows that overlap, that are padded, and of equal elements."""
    x = onp.round(shaped(x, 130, (-1, 2, 13, 5))[:300])
    cases = [{"kernel": 2, "stride": 2}, {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)}]
    cases.append({"kernel": 3, "stride": 2, "pooling_convention": "full"})
    gradient = lambda case: minnp.grad(lambda z: np.sum(npx.pooling(z, **case) ** 2))(x)
    return [f(case) for case in cases for f in (gradient, lambda case: npx.pooling(x, **case))]


def channels(x: Any, g: Any) -> list:
    """A number for each channel: its sum with [any, 2, 10] and [4, 5, any], both ways, and their sums."""
    out = []
    for shape in ((-1, 2, 10), (4, 5, -1)):
        a, b = shaped(x, 20, shape), shaped(g, 20, shape)
        v = drawn((a.shape[1], 1))[0]
        f = lambda z: np.sum(b * (z + a) ** 2)  # noqa: B023
        out += [minnp.grad(f)(v), minnp.grad(lambda z: np.sum((z + v) ** 2 + (v + z)))(a)]  # noqa: B023
    return out


def cell(x: Any, g: Any) -> list:
    """A step of an LSTM on a chain and on a tree: its results, and gradients through both and through either."""
    out = []
    for cells in (1, 2):
        a = shaped(x, (cells + 3) * 7, (-1, (cells + 3) * 7))
        c = [onp.resize(b, (len(a), 7)) for b in (g, x[::-1])[:cells]]
        for parts in ((0, 1), (0,), (1,)):
            f = lambda *z: sum(np.sum(c[-1] * npx.lstm_cell(*z)[k]) for k in parts)  # noqa: B023
            out += minnp.grad(f, tuple(range(cells + 1)))(a, *c)
        out += npx.lstm_cell(a, *c)
    return out


def of(f: Any) -> Any:
    """The value and gradient of f(x), with the cotangent g."""
    return lambda x, g: [f(np.array(x)), minnp.grad(lambda x: np.sum(g * f(x)))(x)]


CASES = {
    "relu": of(npx.relu),
    "gelu": of(lambda x: npx.gelu(x, approximate=True)),
    "softmax": of(npx.softmax),
    "log_softmax": of(npx.log_softmax),
    "layer_norm": lambda x, g: [*norm(x, g), npx.layer_norm(x, *drawn(x.shape[-1:], x.shape[-1:]))],
    "batch_norm": batch_norm,
    "pooling": pooling,
    "channels": channels,
    "sum_to": lambda x, g: [minnp.grad(lambda b: np.sum(np.array(g) * (x * (x + b))))(np.zeros(x.shape[-1], "f4"))],
    "rows": lambda x, g: [
        *minnp.grad(lambda x, m: np.sum(g[..., 0] * np.sum((x - m) ** 2, -1)), (0, 1))(x, x[..., :1, :])
    ],
    "lstm_cell": cell,
    "adam": adam,
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_numpy_on_any_number_of_threads(name, shape, monkeypatch):
    x, g = drawn(shape, shape)
    found, before = [], minnp.set_num_threads(1)
    try:
        for n in (1, 2, 5):
            minnp.set_num_threads(n)
            found.append([onp.asarray(a) for a in CASES[name](x, g)])
    finally:
        minnp.set_num_threads(before)
    assert all(a.tobytes() == b.tobytes() for other in found[1:] for a, b in zip(found[0], other, strict=True))
    called = []
    monkeypatch.setattr(kernels, "team", None)
    monkeypatch.setattr(kernels, "call", lambda *a: called.append(a))
    for a, b in zip(found[0], CASES[name](x, g), strict=True):
        onp.testing.assert_allclose(a, onp.asarray(b), rtol=2e-4, atol=3e-6 * float(abs(onp.asarray(b)).max()))
    assert not called


BESIDE = [
    ((100, 10), (10,)),
    ((10,), (100, 10)),
    ((1, 300, 10), (4, 1, 10)),
    ((4, 1, 10), (300, 10)),
    ((4, 90, 70), (4, 1, 70)),
]
BESIDE += [
    ((4, 300, 10), (1, 1, 10)),
    ((7, 9, 600), (1, 600)),
    ((3, 4, 50, 7), (4, 1, 7)),
    ((20, 30), (30, 30)),
    ((2, 30), (1,)),
]


@pytest.mark.parametrize("operation", [onp.add, onp.subtract, onp.multiply])
def test_rows_beside_one_row_have_numpys_bits_or_are_numpys(operation):
    done = 0
    for shapes in BESIDE:
        a, b = drawn(*shapes)
        out = kernels.beside(operation, a, b)
        done += out is not NotImplemented
        if out is not NotImplemented:
            onp.testing.assert_array_equal(out, operation(a, b), strict=True)
    assert done == len(BESIDE) - 3
    huge = onp.full((100, 10), 3e38, "f4")
    assert (
        kernels.beside(operation, huge, -huge[0] if operation is onp.subtract else huge[0]) is NotImplemented
    )  # warns


@pytest.mark.host("torch adds in an order of its own")
@pytest.mark.parametrize(
    "shape, to", [((300, 7), (7,)), ((7, 9, 33), (9, 33)), ((70, 9, 12), (1, 12)), ((512, 600), (600,))]
)
def test_sums_over_leading_axes_have_numpys_bits(shape, to):
    (x,) = drawn(shape)
    g = onp.asarray(minnp.grad(lambda b: np.sum(x * (x + b)))(np.zeros(to, "f4")))
    axes = tuple(range(len(shape) - len(to))) + tuple(i - len(to) for i, n in enumerate(to) if n == 1)
    onp.testing.assert_array_equal(g, x.sum(axis=axes, keepdims=len(axes) > 1).reshape(to))


@pytest.mark.parametrize("name", ["relu", "gelu", "softmax", "log_softmax", "pooling"])
def test_kernels_meet_nan_and_infinity_as_numpy_does(name, monkeypatch):
    (x,) = drawn((64, 40))
    x[1, 2], x[3, 4], x[5, 6], x[7] = onp.nan, onp.inf, -onp.inf, -onp.inf
    x[10:12, 4:20] = -onp.inf
    windows = {"kernel": 2, "stride": 2, "pad": 1}
    given = {"gelu": {"approximate": True}, "pooling": windows}.get(name, {})
    x = x.reshape(1, 4, 32, 20) if name == "pooling" else x
    f = lambda x: getattr(npx, name)(x, **given)
    with onp.errstate(all="ignore"):
        y = onp.asarray(f(np.array(x)))
        monkeypatch.setattr(kernels, "team", None)
        z = onp.asarray(f(np.array(x)))
    onp.testing.assert_allclose(y, z, rtol=2e-5, atol=1e-6)


def test_adam_in_place_keeps_what_a_tape_saved_and_what_is_read_only():
    x, g = drawn((40, 40), (40, 40))
    w, m, v = np.array(x), np.zeros_like(x), np.zeros_like(x)

    def loss(z):
        y = np.sum(z * w)
        npx.adam_update(w, g, m, v, 0.1)
        return y

    onp.testing.assert_array_equal(onp.asarray(minnp.grad(loss)(g)), x)
    assert not onp.array_equal(onp.asarray(w), x)
    w.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        npx.adam_update(w, g, m, v, 0.1)


def test_adam_of_overlapping_arrays_is_the_formula_line_by_line():
    x = abs(drawn((2, 2000))[0])
    w, both = np.array(x[0]), np.array(x[1])
    npx.adam_update(w, x[0], both, both, 0.1)
    m = 0.9 * x[1] + onp.float32(1.0 - 0.9) * x[0]
    v = 0.999 * m + onp.float32(1.0 - 0.999) * (x[0] * x[0])
    onp.testing.assert_allclose(onp.asarray(both), v, rtol=1e-5)


@pytest.mark.host("a backend adds by its own kernels")
def test_compiled_code_adds_a_row_with_numpys_bits_and_warnings():
    x, b = drawn((90, 40), (40,))
    f = minnp.jit(lambda x, b: (x + b, (x - b) * 2 + b, b - x, x * b[:1]))
    for _ in range(2):
        for y, z in zip(f(np.array(x), np.array(b)), (x + b, (x - b) * 2 + b, b - x, x * b[:1]), strict=True):
            onp.testing.assert_array_equal(onp.asarray(y), z, strict=True)
    double = minnp.jit(lambda x, b: x + b)
    with pytest.warns(RuntimeWarning, match="overflow"):
        for _ in range(2):
            y = double(np.full((90, 40), 3e38, "f4"), np.full(40, 3e38, "f4"))
    assert onp.isinf(onp.asarray(y)).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_rows_are_added_at_an_index_in_numpys_order(kind: str, threads: int) -> None:
    rng = onp.random.default_rng(0)
    to, added = rng.standard_normal((50, 4, 24)).astype(kind), rng.standard_normal((90, 40, 4, 24)).astype(kind)
    index = rng.integers(-50, 50, (90, 40))
    want, ours = to.copy(), np.array(to)
    onp.add.at(want, index, added)
    before = minnp.set_num_threads(threads)
    try:
        assert selection.add_at(onp.asarray(ours), index, added) is None
    finally:
        minnp.set_num_threads(before)
    assert onp.asarray(ours).tobytes() == want.tobytes()
    np.add.at(ours, np.array(index), ours[np.array(index)])
    onp.add.at(want, index, want[index])
    assert onp.asarray(ours).tobytes() == want.tobytes()
    with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 50"):
        np.add.at(ours, np.array(index) + 50, np.array(added))
    assert onp.asarray(ours).tobytes() == want.tobytes()  # nothing is half-written
    with pytest.warns(RuntimeWarning, match="overflow encountered in a"):
        np.add.at(
            np.full((500, 300), onp.finfo(kind).max), np.zeros(500, int), np.full((500, 300), onp.finfo(kind).max)
        )
