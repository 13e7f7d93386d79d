"""MXNet as a place: arrays that live in its memory. Tested on its CPU; on a GPU it is the same code."""

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends, errors, grad, npx

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

PLACE = minnp.Context("cpu", 0, "mxnet")


@pytest.fixture(autouse=True)
def on_the_place():
    with PLACE:
        yield


def host(x):
    return x.asnumpy() if isinstance(x, np.ndarray) else onp.asarray(x)


def base(dtype="f8"):
    return onp.random.default_rng(0).normal(size=(3, 4)).astype(dtype)


CALLS = {
    "operators": lambda np, x: (x + 1) * 2.5 - x / 3,
    "reflected": lambda np, x: 1 - (2 / (x + 5)),
    "matmul": lambda np, x: x @ x.T,
    "sum": lambda np, x: x.sum(),
    "sum of an axis": lambda np, x: np.sum(x, 0),
    "sum, kept": lambda np, x: x.sum(axis=1, keepdims=True),
    "mean": lambda np, x: np.mean(x, axis=-1),
    "argmax": lambda np, x: x.argmax(1),
    "any, all": lambda np, x: np.any(x > 0) & np.all(x < 9),
    "exp, log": lambda np, x: np.log(np.exp(x) + 1),
    "where": lambda np, x: np.where(x > 0, x, 0),
    "broadcasting": lambda np, x: x[:, :1] + x[0],
    "row": lambda np, x: x[1] * 2,
    "strided": lambda np, x: x[::-1, 1::2] * 2,
    "fancy": lambda np, x: x[[0, 2, 0]] * 2,
    "mask": lambda np, x: x[x > 0] * 2,
    "moved": lambda np, x: np.swapaxes(x.T.reshape(2, 2, 3), 0, 2) * 2,
    "joined": lambda np, x: np.concatenate([x, x * 2], axis=1),
    "stacked": lambda np, x: np.stack([x, x * 2]),
    "no kernel": lambda np, x: np.logaddexp(x, 1.0),
    "linear algebra": lambda np, x: np.linalg.inv(x @ x.T + np.eye(3)),
    "shape ()": lambda np, x: np.array(3.0) * 2,
    "empty": lambda np, x: x[:0] * 2,
    "integers": lambda np, x: np.arange(6) // 4 + np.arange(6),
    "float32 and a number": lambda np, x: x.astype("f4") * 1.5,
    "promotion": lambda np, x: x.astype("f4") + np.arange(4),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_and_dtypes_are_numpys_and_stay_there(name, dtype):
    ours, theirs = CALLS[name](np, np.array(base(dtype))), CALLS[name](onp, base(dtype))
    assert ours.context == PLACE
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    onp.testing.assert_allclose(host(ours), theirs, rtol=1e-5 if "f4" in (dtype, theirs.dtype) else 1e-12)


WRITES = {
    "element": lambda x: x.__setitem__((1, 2), 5.0),
    "row": lambda x: x[1].__setitem__(slice(None), 5.0),
    "column of the transpose": lambda x: x.T[0].__setitem__(slice(None), 5.0),
    "through reshape": lambda x: x.reshape(-1).__setitem__(-1, 5.0),
    "through a reshape that copies": lambda x: x.T.reshape(-1).__setitem__(0, 5.0),
    "through two views": lambda x: x[::2][:, ::-1].__setitem__((0, 0), 5.0),
    "through a fancy copy": lambda x: x[[0, 1]].__setitem__(slice(None), 5.0),
    "mask": lambda x: x.__setitem__(x > 0, 0.0),
    "in place": lambda x: x[0].__iadd__(1.0),
    "from itself": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "fill": lambda x: x.fill(2.0),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_what_they_reach_in_numpy(name):
    ours, theirs = np.array(base()), base()
    view, plain = ours[1:], theirs[1:]
    WRITES[name](ours)
    WRITES[name](theirs)
    assert onp.array_equal(host(ours), theirs)
    assert onp.array_equal(host(view), plain)


def test_gradients_are_numpys():
    f = lambda np, w, x: np.sum(np.tanh(x @ w)[:, 0] ** 2)
    w = onp.ones((4, 2))
    ours = grad(lambda w: f(np, w, np.array(base())))(np.array(w))
    assert ours.context == PLACE
    with minnp.cpu():
        theirs = grad(lambda w: f(np, w, base()))(w)
    onp.testing.assert_allclose(host(ours), onp.asarray(theirs), rtol=1e-12)


def test_a_convolutional_net_has_the_same_gradients():
    x, w = onp.random.default_rng(0).normal(size=(2, 3, 6, 6)), onp.random.default_rng(1).normal(size=(4, 3, 3, 3))
    f = lambda w, x: np.sum(npx.log_softmax(npx.relu(npx.convolution(x, w)).reshape(2, -1)) ** 2)
    ours = grad(f)(np.array(w), np.array(x))
    with minnp.cpu():
        theirs = grad(f)(w, x)
    onp.testing.assert_allclose(host(ours), onp.asarray(theirs), rtol=1e-8, atol=1e-10)


def test_what_mxnet_cannot_hold_stays_on_the_host():
    for dtype in (complex, "i2", "u8", object):
        x = np.array([1, 2], dtype=dtype)
        assert x.context == minnp.cpu() and x.dtype == dtype
        assert (x + x).dtype == dtype


def test_a_copy_to_the_host_is_a_copy():
    x = np.array(base())
    y = x.asnumpy()
    assert onp.array_equal(y, base())
    x[0] = 0.0
    assert onp.array_equal(y, base())


def test_the_report_counts_what_is_copied_and_what_falls_back():
    x = np.array(base())
    minnp.reset_report()
    np.logaddexp(x, 1.0)
    np.exp(x)
    rows = {r["function"]: r for r in minnp.report()}
    assert rows["exp"]["backend"] == "mxnet" and rows["logaddexp"]["backend"] == "numpy"
    assert "mxnet" in rows["logaddexp"]["why"] and rows["logaddexp"]["moved"] >= x.nbytes


def test_a_gpu_that_is_not_there_is_refused_with_the_reason():
    if backends.get("mxnet").mx.context.num_gpus():
        pytest.skip("mxnet sees a GPU here")
    with pytest.raises(errors.BackendMissingError, match=r"mxnet \S+ sees 0 GPUs"), minnp.Context("gpu", 0, "mxnet"):
        pass


def test_compiled_functions_run_row_by_row_there():
    x, v = np.array(base()), np.array(base())

    def writes(x):
        x.reshape(-1)[0] = 5.0
        return x.sum()

    joined, stacked = (lambda x: np.concatenate([x, v])[1:]), (lambda x: np.stack([x, v]))
    for f in (joined, stacked, lambda x: np.where(v > 0, x, 0), writes):
        compiled = minnp.jit(f)
        for _ in range(3):
            a, b = x.copy(), x.copy()
            got, want = compiled(a), f(b)
            assert onp.allclose(onp.asarray(got), onp.asarray(want)) and (onp.asarray(a) == onp.asarray(b)).all()
            assert got._host is None
    compiled = minnp.jit(lambda x: (x.to_device("cpu") * 2, x * 3))
    for _ in range(3):
        here, there = compiled(x)
        assert here._host is not None and there._host is None and (here == 2 * base()).all()
