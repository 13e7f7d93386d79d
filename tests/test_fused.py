"""Fused chains give the dtypes, shapes and bits of their steps run one by one."""

import warnings

import numpy as np
import pytest

from minnp.core import cpu
from minnp.core.cpu import fused
from minnp.core.cpu.fused import Reduction, fuse


@pytest.fixture(autouse=True)
def two_threads():
    before = cpu.set_num_threads(2)
    yield
    cpu.set_num_threads(before)


def step_by_step(steps, inputs, outputs, reduction=None):
    slots = dict(enumerate(inputs))
    for kernel, read, written in steps:
        slots[written] = kernel(*[slots[i] for i in read])
    results = [slots[i] for i in outputs]
    if reduction is None:
        return results
    return [reduction.ufunc.reduce(results[0], axis=reduction.axis, keepdims=reduction.keepdims)]


def check(steps, inputs, outputs, reduction=None):
    theirs = step_by_step(steps, inputs, outputs, reduction)
    run = fuse(steps, inputs, outputs, reduction)
    arrays = [x for x in inputs if hasattr(x, "shape")]
    for _ in range(2):  # buffers are used again
        ours = run(*arrays)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


# exp(-x*x) * tanh(x) + log(p) * sqrt(p): x is slot 0, p slot 1
CHAIN = [
    (np.negative, (0,), 2),
    (np.multiply, (2, 0), 3),
    (np.exp, (3,), 4),
    (np.tanh, (0,), 5),
    (np.multiply, (4, 5), 6),
    (np.log, (1,), 7),
    (np.sqrt, (1,), 8),
    (np.multiply, (7, 8), 9),
    (np.add, (6, 9), 10),
]
SHAPES = [(7,), (300_007,), (333, 501), (2, 300_000), (50, 60, 70)]


def pair(shape, dtype, order="C"):
    rng = np.random.default_rng(0)
    x = np.asarray(rng.standard_normal(shape).astype(dtype), order=order)
    return x, abs(x) + np.asarray(1, dtype)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", "CF")
def test_chain(shape, dtype, order):
    x, p = pair(shape, dtype, order)
    check(CHAIN, [x, p], [10])
    check(CHAIN, [x, p], [6, 10, 3])


@pytest.mark.dealt
@pytest.mark.parametrize("dtype", ["f", "d", "D", "i", "?"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("axis", [None, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(shape, dtype, axis, keepdims):
    x, p = pair(shape, dtype)
    steps = CHAIN if dtype in "fdD" else [(np.add, (0, 1), 2), (np.multiply, (2, 0), 10)]
    for uf in (np.add, np.maximum, np.minimum):
        check(steps, [x, p], [10], Reduction(uf, axis, keepdims))


def test_operands_that_broadcast():
    x, p = pair((300, 500), "d")
    row, column, zero = x[0], p[:, :1], np.array(2.0)
    steps = [(np.add, (0, 1), 4), (np.multiply, (4, 2), 5), (np.divide, (5, 3), 6)]
    check(steps, [x, row, column, 1.5], [6])
    check(steps, [x, row, column, p], [6, 4])
    check(steps, [x, row, column, p], [6], Reduction(np.add, -1))
    check(steps, [x, row, column, p], [6], Reduction(np.add))
    check(steps, [x[::2, 1:], row[1:], column[::2], p[::2, 1:]], [6])
    check(steps, [x.T, column[:, 0], row[:, None], p.T], [6])
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        check(steps, [x, zero, 3, zero], [6])


def test_dtypes_change_within_a_chain():
    x, p = pair((200, 3000), "f")
    i = np.arange(x.size).reshape(x.shape)
    steps = [
        (np.greater, (0, 1), 3),
        (fused.select, (3, 0, 2), 4),
        (fused.cast("d"), (4,), 5),
        (np.add, (5, 2), 6),
        (np.floor_divide, (6, 1), 7),
        (np.logical_not, (3,), 8),
    ]
    check(steps, [x, p, i], [7, 8])
    check(steps, [x, p, 2], [4, 6, 8])


@pytest.mark.parametrize("chosen", [(2, 3, 4), (2, 4, 3), (2, 3, 3)])
def test_a_choice_may_be_written_where_what_it_chooses_from_lies(chosen):
    x, p = np.random.default_rng(0).normal(size=(2, 1 << 18)).astype("f")
    steps = [(np.greater, (0, 1), 2), (np.add, (0, 1), 3), (np.subtract, (0, 1), 4), (fused.select, chosen, 5)]
    check([*steps, (np.multiply, (5, 0), 6)], [x, p], [6])


def test_a_step_may_read_a_slot_twice_and_a_result_may_be_unused():
    x, p = pair((100_000,), "d")
    check([(np.multiply, (0, 0), 2), (np.exp, (1,), 3), (np.add, (2, 2), 4), (np.add, (4, 2), 5)], [x, p], [5])


def test_buffers_are_few():
    steps, slot = [], 1
    for _ in range(20):
        steps += [(np.sin, (slot - 1,), slot), (np.add, (slot, 0), slot + 1)]
        slot += 2
    x = pair((100_000,), "d")[0]
    check(steps, [x], [slot - 1])
    assert fuse(steps, [x], [slot - 1]).__self__.buffers == [np.dtype("d")]


def test_what_is_not_a_chain_is_declined():
    x = np.ones((3, 4))
    assert fuse([(np.add, (0, 1), 2)], [x[:, :1], x[:1]], [2]) is None  # no input of the full shape
    assert fuse([(np.add, (0, 1), 2)], [x, x.T], [2]) is None
    assert fuse([(np.add, (0, 1), 2)], [x.astype(object), x], [2]) is None
    assert fuse([], [x], [0]) is None
    with pytest.raises(ValueError, match="may end in"):
        Reduction(np.multiply)


def test_floating_point_errors_are_the_callers():
    x = np.zeros(1_000_000)
    run = fuse([(np.log, (0,), 1), (np.add, (1, 0), 2)], [x], [2])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(x)
    assert [str(w.message) for w in seen] == ["divide by zero encountered in a fused chain"]
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        run(x)
