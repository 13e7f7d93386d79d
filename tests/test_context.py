"""Contexts choose where new arrays live. A place on the CPU, in a backend's own memory, stands for the GPU here."""

import threading

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import Context, grad
from minnp.backends import installed
from minnp.context import current_context

PLACES = [pytest.param(name, id=name) for name in ("mxnet", "torch") if name in installed()]
if not PLACES:
    pytest.skip("no backend with memory of its own is installed", allow_module_level=True)


@pytest.fixture(params=PLACES)
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
