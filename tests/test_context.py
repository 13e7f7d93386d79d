"""Contexts choose where new arrays live. A place on the CPU, in a backend's own memory, stands for the GPU here."""

import io
import pickle
import threading

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import Context, grad
from minnp.backends import installed
from minnp.context import current_context

DEVICES = [pytest.param(name, id=name) for name in ("mxnet", "torch") if name in installed()]
if not DEVICES:
    pytest.skip("no backend with memory of its own is installed", allow_module_level=True)


@pytest.fixture(params=DEVICES)
def place(request):
    return Context("cpu", 0, backend=request.param)


def lives_in(x, place):
    return x.context == place


def test_new_arrays_live_where_the_context_says(place):
    with place:
        assert current_context() == place
        made = [
            np.ones((2, 3), dtype=np.float32),
            np.arange(3.0),
            np.array([[1.0, 2.0], [3.0, 4.0]]),
            np.array(numpy.arange(4.0)),
            np.random.rand(3),
        ]
    assert all(lives_in(x, place) for x in made)
    assert not lives_in(np.ones(3), place)
    assert np.ones(3).context == minnp.cpu()
    assert current_context() == minnp.cpu()


def test_results_live_where_their_arguments_live(place):
    with place:
        x = np.arange(6.0).reshape(2, 3)
    y = np.exp(x) + numpy.ones(3) * x.sum(axis=0)
    assert lives_in(y, place)
    host = numpy.arange(6.0).reshape(2, 3)
    assert numpy.allclose(y.asnumpy(), numpy.exp(host) + host.sum(axis=0))
    assert type(y.asnumpy()) is numpy.ndarray


def test_writes_and_views_are_numpys(place):
    with place:
        x = np.arange(6.0).reshape(2, 3)
    h = numpy.arange(6.0).reshape(2, 3)
    for a in (x, h):
        column = a[:, 1]
        column[:] = 9
        a[0] += 1
        a.T[2, 1] = -1
        a *= 2
        column += 1
    assert numpy.array_equal(x.asnumpy(), h)
    assert lives_in(x, place)
    assert numpy.array_equal(column, x.asnumpy()[:, 1])


def test_gradients_live_with_their_arguments(place):
    def loss(w, x):
        y = np.tanh(x @ w)
        y[0] = 0
        return np.sum(y**2)

    w, x = numpy.linspace(-1, 1, 6).reshape(3, 2), numpy.linspace(0, 1, 12).reshape(4, 3)
    with place:
        gradient = grad(loss)(np.array(w), np.array(x))
    assert lives_in(gradient, place)
    assert numpy.allclose(gradient.asnumpy(), grad(loss)(w, x))


def test_what_a_place_cannot_hold_stays_on_the_host(place):
    with place:
        assert np.array(["a", "b"]).tolist() == ["a", "b"]
        assert np.shape([1, 2]) == (2,)


def test_the_report_counts_what_moved(place):
    with place:
        x = np.arange(1.0, 1001.0)
    minnp.reset_report()
    np.random.gamma(x)  # NumPy alone draws this
    assert sum(r["moved"] for r in minnp.report()) >= 8000


def test_a_fallback_on_a_place_draws_once(place):
    with place:
        x = np.arange(1.0, 9.0)
    np.random.seed(3)
    drawn = [np.random.gamma(x).asnumpy(), np.random.gamma(x).asnumpy()]
    numpy.random.seed(3)
    for a in drawn:
        assert (a == numpy.random.gamma(numpy.arange(1.0, 9.0))).all()


def test_other_threads_keep_their_own_context(place):
    seen = []
    with place:
        thread = threading.Thread(target=lambda: seen.append(current_context()))
        thread.start()
        thread.join()
    assert seen == [minnp.cpu()]


def test_an_exception_leaves_the_context(place):
    with pytest.raises(ZeroDivisionError), place:
        1 / 0
    assert current_context() == minnp.cpu()
    assert np.ones(3).context == minnp.cpu()


def test_set_context_is_for_every_thread(place):
    minnp.set_context(place)
    try:
        seen = []
        thread = threading.Thread(target=lambda: seen.append(np.ones(3).context))
        thread.start()
        thread.join()
        assert seen == [place]
    finally:
        minnp.set_context(minnp.cpu())
    assert np.ones(3).context == minnp.cpu()


def written(a, steps):
    """What a is after the steps, each written as Python code of a and np."""
    exec("\n".join(steps), {"a": a, "np": np if isinstance(a, np.ndarray) and type(a) is not numpy.ndarray else numpy})
    return numpy.asarray(a)


MEMORY = [
    ["a.setfield(7, 'i4', 4)", "a.setfield(2, 'f8')"],
    ["b = a.getfield('u1', 2)", "b[0] = 5", "b += 1"],
    ["b = a.view('i8')", "b[0] += 3", "a.view('f4')[1, 0] = 2"],
    ["b = np.frombuffer(a, 'i4', 3, 8)", "b[1:] = 9"],
    ["a.flat[3] = 9", "a.flat[[0, 5]] = [7, 8]", "a.T.flat[1::4] = -1", "a[:, ::2].flat = [3, 4]"],
    ["a.flat[::2] = a", "a[:, ::2].flat = a[::-1, ::2]"],
    ["it = a.flat", "a.flat[0] = next(it) + next(it) + it.index + it.coords[1] + next(it)"],
    ["with np.nditer(a, op_flags=['readwrite']) as it:", "  for v in it: v[...] = 2 * v"],
    ["for i, v in np.ndenumerate(a): a[i] = v + i[0]"],
    ["a.byteswap(True)", "a.byteswap(inplace=True)", "a[0] = a[1].byteswap()"],
    ["a.shape = 6, 2", "a[5] = 9", "b = a.copy()", "b.resize((2, 2), refcheck=False)", "a[:2] = b"],
    ["a.real = 5", "a.put([0, -1], [5, 6])", "a[1].fill(3)", "np.fill_diagonal(a, 9)"],
]


@pytest.mark.parametrize("steps", MEMORY, ids=lambda steps: steps[0])
def test_what_is_said_of_memory_is_written_there(place, steps):
    start = numpy.arange(12.0).reshape(3, 4)
    there = np.array(start).to_device(place)
    assert numpy.array_equal(written(there, steps), written(start, steps), equal_nan=True)
    assert lives_in(there, place)


def test_a_resized_array_stays(place):
    x = np.arange(6.0).to_device(place)
    x.resize((2, 4), refcheck=False)
    assert lives_in(x, place) and x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]


def test_a_pickle_or_file_is_loaded_where_new_arrays_live(place):
    x = np.arange(6.0).to_device(place)
    text, file, archive = pickle.dumps({"x": x[::2], "host": np.ones(2)}), io.BytesIO(), io.BytesIO()
    np.save(file, x)
    np.savez(archive, x=x)

    def loaded():
        file.seek(0), archive.seek(0)
        return pickle.loads(text)["x"], np.load(file)[::2], np.load(archive)["x"][::2]

    assert not any(lives_in(y, place) for y in loaded())
    with place:
        assert all(lives_in(y, place) and y.tolist() == [0, 2, 4] for y in loaded())
        assert not lives_in(pickle.loads(text)["host"], place)


def test_a_context_is_said_in_one_word_as_torch_does():
    assert repr(Context("cuda:0")) == repr(Context("cuda")) == "gpu(0, 'torch')"
    assert Context("cuda:1") == Context("cuda", 1) == Context("gpu", 1, "torch")
    assert (Context("gpu:2"), Context("cpu:0"), Context("cpu")) == (minnp.gpu(2), minnp.cpu(), minnp.cpu())
    with Context("cpu:0"):
        assert np.ones(2).device == "cpu"
    for name in ("cuda:", "cuda:x", "tpu:0", "cuda:-1", "CUDA:0"):
        with pytest.raises(ValueError, match=f"unknown device type {name!r}; known: cpu, gpu, cuda"):
            Context(name)
        with pytest.raises(ValueError, match="Device not understood"):
            np.ones(2).to_device(name)
    with pytest.raises(ValueError, match="two numbers"):
        Context("cuda:1", 2)
    with pytest.raises(ValueError, match="device number -1: the first is 0"):
        minnp.gpu(-1)


def test_a_hint_tells_to_install_only_what_is_not_installed(monkeypatch):
    def refusal(libraries):
        monkeypatch.setattr("minnp.backends.installed", lambda: libraries)
        with pytest.raises(minnp.errors.BackendMissingError) as caught, minnp.gpu(77):
            pass
        return str(caught.value)

    assert "pip install torch" in refusal([])
    if "torch" in installed():
        assert "install" not in refusal(["torch"])
        assert "takes a GPU, its driver and a torch built for it, or stay on minnp.cpu()" in refusal(["torch"])


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanstd", "nanmax", "median", "nanmedian"])
def test_reductions_on_a_device_over_no_axes_and_of_no_axes_have_numpys_shapes(name):
    pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")
    with minnp.Context("cpu", 0, "torch"):
        x, number = np.ones((2, 3)), np.array(5.0)
    f, theirs = getattr(np, name), getattr(numpy, name)
    assert f(x, axis=()).shape == theirs(numpy.ones((2, 3)), axis=()).shape
    kept = type(theirs(numpy.array(5.0), keepdims=True)) is numpy.ndarray
    assert (type(f(np.array(5.0), keepdims=True)) is np.ndarray) == kept
    assert f(number, keepdims=True) == theirs(numpy.array(5.0), keepdims=True)
