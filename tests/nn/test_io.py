"""Iterators, prefetching and augmentations: the batches a training sees."""

import pickle
from itertools import chain

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.nn import augment, io

X = onp.arange(10, dtype=onp.float32)[:, None] * onp.ones((1, 3), onp.float32)
Y = onp.arange(10)


def seen(iterator):
    return [onp.asarray(batch.label[0]).tolist() for batch in iterator]


@pytest.mark.parametrize(
    ("last", "epochs", "pads"),
    [
        ("pad", [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]] * 2, [0, 0, 2]),
        ("discard", [[[0, 1, 2, 3], [4, 5, 6, 7]]] * 2, [0, 0]),
        ("keep", [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]] * 2, [0, 0, 0]),
        ("roll_over", [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]], [0, 0]),
    ],
)
def test_last_batch(last, epochs, pads):
    it = io.NDArrayIter(X, Y, batch_size=4, last_batch_handle=last)
    for i, batches in enumerate(epochs):
        assert len(it) == it.getnumiterations() == len(batches)
        first = list(it)
        assert [onp.asarray(b.label[0]).tolist() for b in first] == batches
        if i == 0:
            assert [b.pad for b in first] == pads
        for b in first:
            assert onp.array_equal(onp.asarray(b.data[0])[:, 0], onp.asarray(b.label[0]))
        it.reset()


def test_shuffle_is_a_new_order_every_epoch_from_the_seed():
    def two_epochs(seed):
        it = io.NDArrayIter(X, Y, batch_size=5, shuffle=True, seed=seed)
        first = seen(it)
        it.reset()
        return first, seen(it)

    first, second = two_epochs(3)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(10))
    assert first != second
    assert two_epochs(3) == (first, second) != two_epochs(4)


def test_several_arrays_and_their_names():
    it = io.NDArrayIter({"a": X, "b": X[:, :2]}, [Y, Y * 2], batch_size=5)
    assert it.provide_data == [("a", (5, 3)), ("b", (5, 2))]
    assert it.provide_label == [("_0_softmax_label", (5,)), ("_1_softmax_label", (5,))]
    batch = next(it)
    assert [a.shape for a in batch.data] == [(5, 3), (5, 2)]
    assert onp.array_equal(onp.asarray(batch.label[1]), 2 * Y[:5])


def test_sub_iterator_does_not_change_what_comes_next():
    it = io.NDArrayIter(X, Y, batch_size=2, shuffle=True, seed=1)
    before = it.state()
    sub = it.getsubiter(6)
    assert sub.num_data == 6
    assert len(set(chain(*seen(sub)))) == 6
    assert it.state() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": X, "label": Y[:3]}, "has 10 and 'softmax_label' has 3"),
        ({"data": X, "batch_size": 11}, "between 1 and the 10 examples; got 11"),
        ({"data": X, "last_batch_handle": "drop"}, "one of pad, discard, roll_over, keep; got 'drop'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        io.NDArrayIter(**arguments)


def noisy(x, rng):
    return x + rng.normal(size=x.shape)


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("last", io.LAST_BATCH)
def test_state_and_restore_go_on_with_the_same_batches(prefetch, last):
    def make():
        it = io.NDArrayIter(X, Y, 3, shuffle=True, seed=5, last_batch_handle=last, transform=noisy)
        return io.Prefetch(it, depth=3) if prefetch else it

    def draw(it, count):
        out = []
        for _ in range(count):
            try:
                out.append(onp.asarray(it.next().data[0]))
            except StopIteration:
                it.reset()
                out.append(None)
        return out

    one, other = make(), make()
    draw(one, 6)
    state = one.state()
    expected = draw(one, 9)
    other.restore(state)
    got = draw(other, 9)
    for a, b in zip(expected, got, strict=True):
        assert (a is None) == (b is None)
        assert a is None or onp.array_equal(a, b)
    if prefetch:
        one.close()
        other.close()


def test_prefetch_gives_the_batches_of_its_source():
    def make():
        return io.NDArrayIter(X, Y, 3, shuffle=True, seed=5, transform=noisy)

    plain = make()
    with io.Prefetch(make(), depth=2) as ahead:
        assert ahead.num_data == 10 and len(ahead) == 4
        for _ in range(3):
            for a, b in zip(plain, ahead, strict=True):
                assert onp.array_equal(onp.asarray(a.data[0]), onp.asarray(b.data[0]))
            plain.reset()
            ahead.reset()


def test_prefetch_raises_what_its_source_raises():
    def broken(x, rng):
        raise RuntimeError("this image cannot be read")

    with (
        io.Prefetch(io.NDArrayIter(X, Y, 3, transform=broken)) as it,
        pytest.raises(RuntimeError, match="cannot be read"),
    ):
        it.next()


def test_reset_in_the_middle_of_an_epoch_does_not_depend_on_how_far_the_thread_ran():
    plain = io.NDArrayIter(X, Y, 3, shuffle=True, seed=5, transform=noisy)
    with io.Prefetch(io.NDArrayIter(X, Y, 3, shuffle=True, seed=5, transform=noisy), depth=3) as ahead:
        plain.next()
        ahead.next()
        plain.reset()
        ahead.reset()
        assert onp.array_equal(onp.asarray(plain.next().data[0]), onp.asarray(ahead.next().data[0]))


# ------------------------------------------------------------------ augmentations
IMAGES = onp.random.default_rng(0).random((6, 3, 8, 8)).astype(onp.float32)


@pytest.mark.parametrize(
    "transform",
    [
        augment.Crop(2),
        augment.Flip(),
        augment.Rotate(30),
        augment.Cutout(3),
        augment.Scale(0.2, 0.2),
        augment.Normalise((0.5, 0.4, 0.3), (0.2, 0.2, 0.2)),
        augment.Compose(augment.Crop(1), augment.Flip()),
    ],
    ids=lambda t: type(t).__name__,
)
def test_augmentation_keeps_shape_dtype_and_its_argument(transform):
    before = IMAGES.copy()
    out = transform(IMAGES, onp.random.default_rng(1))
    again = transform(IMAGES, onp.random.default_rng(1))
    assert out.shape == IMAGES.shape and out.dtype == IMAGES.dtype
    assert onp.array_equal(onp.asarray(out), onp.asarray(again))
    assert onp.array_equal(IMAGES, before)
    assert not onp.array_equal(onp.asarray(out), before)


def test_crop_is_a_shift_with_zeros():
    out = onp.asarray(augment.Crop(2)(IMAGES, onp.random.default_rng(1)))
    padded = onp.pad(IMAGES, ((0, 0), (0, 0), (2, 2), (2, 2)))
    for n in range(6):
        windows = [padded[n, :, i : i + 8, j : j + 8] for i in range(5) for j in range(5)]
        assert any(onp.array_equal(out[n], window) for window in windows)


def test_flip_always_and_rotate_by_nothing():
    assert onp.array_equal(onp.asarray(augment.Flip(1.0)(IMAGES, onp.random.default_rng(1))), IMAGES[..., ::-1])
    assert onp.array_equal(onp.asarray(augment.Rotate(0)(IMAGES, onp.random.default_rng(1))), IMAGES)


def test_rotate_by_a_quarter_turn_is_rot90():
    class Quarter:
        def uniform(self, low, high, n):
            return onp.full(n, high)

    out = onp.asarray(augment.Rotate(90)(IMAGES, Quarter()))
    assert onp.array_equal(out, onp.rot90(IMAGES, 1, (2, 3))) or onp.array_equal(out, onp.rot90(IMAGES, -1, (2, 3)))


def test_save_and_load_data_and_labels(tmp_path):
    io.save_data_labels(IMAGES, Y[:6], tmp_path / "set.data")
    x, y = io.load_data_labels(tmp_path / "set.data")
    assert onp.array_equal(onp.asarray(x), IMAGES) and onp.array_equal(onp.asarray(y), Y[:6])


def test_a_name_of_mxnets_says_what_to_install_and_others_are_unknown(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"ImageDetRecordIter is MXNet's iterator.*pip install mxnet==1\.9\.1"):
        io.ImageDetRecordIter
    assert io.CSVIter.__module__ == "minnp.nn.readers"
    with pytest.raises(AttributeError, match="no attribute 'CSVReader'"):
        io.CSVReader


def test_facts_of_batches_are_mxnets():
    it = io.NDArrayIter(np.ones((4, 3), "f"), np.zeros(4, int), batch_size=2)
    (data,), (label,) = it.provide_data, it.provide_label
    assert data == ("data", (2, 3)) and (data.name, data.shape, data.dtype) == ("data", (2, 3), np.float32)
    assert label.dtype == np.zeros(1, int).dtype and label.layout == "NCHW"
    again = pickle.loads(pickle.dumps(label))
    assert again == label and again.dtype == label.dtype and repr(data) == "DataDesc[data,(2, 3),float32,NCHW]"


def test_mxnets_steps_of_an_iterator():
    x = np.arange(10.0).reshape(5, 2)
    it, found = io.NDArrayIter(x, np.arange(5), batch_size=2), []
    while it.iter_next():
        found.append((it.getdata()[0].tolist(), it.getlabel()[0].tolist(), it.getpad()))
    it.reset()
    assert found == [(b.data[0].tolist(), b.label[0].tolist(), b.pad) for b in it] and found[-1][2] == 1

    class Steps(io.DataIter):
        left = 3

        def iter_next(self):
            self.left -= 1
            return self.left >= 0

        def getdata(self):
            return [np.full(2, self.left)]

        def getlabel(self):
            return []

        def getpad(self):
            return 0

    assert [b.data[0].tolist() for b in Steps()] == [[2, 2], [1, 1], [0, 0]]
