"""Training on a device waits for nothing: no step of the Solver copies a number to the host that nobody asked for."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import Context, nn, npx
from minnp.core.api import install
from minnp.nn.callbacks import Callback
from tests.backends.devices import DEVICES, copies, reset
from tests.test_npx_gradients import FUNCTIONS


@pytest.fixture(params=DEVICES)
def there(request):
    return Context(request.param, 0, "torch")


def net():
    return nn.Sequential(nn.Linear(8, 12), nn.BatchNorm(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 3))


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_masks_made_in_a_step_stay_on_the_device(there, jit):
    """What dropout draws, the masks of attention and softmax, lengths, the widths of zeros around."""
    rng = onp.random.default_rng(0)
    with there:
        x, seen = np.array(rng.standard_normal((4, 6, 6)).astype("f4")), np.array(rng.random((6, 6)) > 0.3)
        length = np.array(rng.integers(1, 6, (4, 6)))

        def loss(w):
            y = npx.dropout(npx.attention(x @ w, x, x, mask=seen), 0.3)
            y = np.pad(npx.softmax(y, length=length) * 9, ((0, 0), (1, 1), (0, 0)))
            return (y * npx.masked_softmax(y[:, :6], seen).sum()).mean()

        step = minnp.jit(minnp.grad(loss)) if jit else minnp.grad(loss)
        w = np.array(rng.standard_normal((6, 6)).astype("f4"))
        step(w), step(w)
        reset()
        first, second = step(w), step(w)
    assert not copies(), str(minnp.report())
    assert abs(first - second).max() > 0  # other elements are dropped


class Copies(Callback):
    """Counts the copies to the host that the steps make."""

    def on_train_begin(self, solver):
        self.steps = []
        reset()

    def on_batch_end(self, solver):
        self.steps.append(copies())

    def on_epoch_end(self, solver):
        reset()


@pytest.mark.parametrize("rule, clip", [("sgd_momentum", {"clip_norm": 0.5}), ("adam", {"clip_value": 0.1})])
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_a_step_of_the_solver_copies_nothing_to_the_host(there, jit, rule, clip):
    rng, counter = onp.random.default_rng(0), Copies()
    with there:
        x, y = np.array(rng.standard_normal((64, 8)).astype("f4")), np.array(rng.integers(0, 3, 64))
        solver = nn.Solver(
            net(),
            nn.io.NDArrayIter(x, y, 16),
            num_epochs=3,
            update_rule=rule,
            optim_config={"learning_rate": 0.01},
            verbose=False,
            callbacks=[counter],
            jit=jit,
            seed=0,
            **clip,
        )
        history = solver.train()
    assert all(type(p._value).__name__ == "Buffer" for p in solver.model.tree().values())
    assert counter.steps[4:] == [0] * 8, str(minnp.report())  # the first epoch makes the parameters, and captures
    assert len(solver.loss_history) == 12 and history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.startswith("batch_norm")])  # given arrays of the host
def test_a_layer_and_its_gradient_copy_nothing_to_the_host(there, name):
    f, shapes = FUNCTIONS[name]
    given = [onp.random.RandomState(i).standard_normal(s).astype("f4") for i, s in enumerate(shapes)]

    def loss(*arrays):
        y = f(*arrays)
        return np.sum((y[0] if isinstance(y, (tuple, list)) else y) ** 2)

    derivative = minnp.value_and_grad(loss, argnum=tuple(range(len(shapes))))
    with there:
        arrays = [np.array(a) for a in given]
    reset()
    y, grads = derivative(*arrays)
    assert copies() == 0, str(minnp.report())
    want, slopes = derivative(*map(np.array, given))
    assert float(y) == pytest.approx(float(want), rel=1e-4)
    for g, w in zip(grads, slopes, strict=True):
        assert g.dtype == onp.float32
        onp.testing.assert_allclose(onp.asarray(g), onp.asarray(w), rtol=1e-3, atol=1e-4 * float(abs(w).max()) + 1e-5)


def test_clipping_on_a_device_is_that_on_the_host_and_copies_nothing(there):
    rng = onp.random.default_rng(0)
    grads = {"a": rng.standard_normal((3, 4)).astype("f4"), "b": rng.standard_normal(5)}
    for limit in (0.5, 100.0):
        want, norm = nn.optim.clip_norm({k: np.array(g) for k, g in grads.items()}, limit)
        with there:
            given = {k: np.array(g) for k, g in grads.items()}
            reset()
            got, size = nn.optim.clip_norm(given, limit)
        assert copies() == 0, str(minnp.report())
        assert float(size) == pytest.approx(norm, rel=1e-6)
        for k, g in got.items():
            assert g.dtype == grads[k].dtype
            onp.testing.assert_allclose(onp.asarray(g), onp.asarray(want[k]), rtol=1e-6)


def test_a_loss_that_is_not_finite_says_at_which_step_it_was_so(there):
    with there:
        x, y = np.array(onp.ones((8, 8), "f4")), np.array(onp.zeros(8, int))
        x[5] = onp.inf
        solver = nn.Solver(net(), nn.io.NDArrayIter(x, y, 4), num_epochs=1, verbose=False, progress=False)
        with pytest.raises(FloatingPointError, match="at step 1 "), onp.errstate(all="ignore"):
            solver.train()


def test_labels_on_a_device_stay_there(there):
    x, w = onp.random.default_rng(0).standard_normal((2, 6, 6)).astype("f4")

    def loss(w, x):
        y, label = npx.log_softmax(x @ w), np.argmax(x, axis=1)
        picked = npx.pick(y, label) + npx.pick(y, label + 9, mode="wrap") + (y * npx.one_hot(label, 6)).sum(1)
        return (npx.embedding(label.astype("f4"), w) ** 2).sum() - picked.mean()

    with there:
        w_there, x_there = np.array(w), np.array(x)
        minnp.grad(loss)(w_there, x_there)
        reset()
        g = minnp.grad(loss)(w_there, x_there)
        assert not copies(), str(minnp.report())
    onp.testing.assert_allclose(g, minnp.grad(loss)(np.array(w), np.array(x)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("char", "fd")
def test_a_step_of_adam_is_one_call_where_nothing_else_shows_the_arrays(there, char, monkeypatch):
    rng = onp.random.default_rng(0)
    given = [rng.standard_normal((5, 3)).astype(char) for _ in range(4)]
    given[3] **= 2
    calls = []
    adam = torch._fused_adam_
    monkeypatch.setattr(torch, "_fused_adam_", lambda *args, **kwargs: calls.append(1) or adam(*args, **kwargs))
    w, g, m, v = map(np.array, given)
    for _ in range(3):
        npx.adam_update(w, g, m, v, 0.01)
    with there:
        ours, slope, mean, var = map(np.array, given)
        row = ours[1]
        assert npx.adam_update(ours, slope, mean, var, 0.01) is ours
        assert not calls  # a view shows its memory, and does not yet look for it elsewhere
        assert npx.adam_update(ours, slope, mean, var, 0.01) is ours and calls == [1]
        assert (row == ours[1]).all()
        del row
        kept, before = ours.copy(), minnp.grad(lambda w: (w**2).sum())(ours)
        reset()
        npx.adam_update(ours, slope, mean, var, 0.01)
        # without the C part a copy shows the same memory until one of them is written
        fused = [1, 1] if install.fastpath else [1]
        assert calls == fused and copies() == 0
    for got, want in ((ours, w), (mean, m), (var, v)):
        assert got.context == there and got.dtype == want.dtype
        onp.testing.assert_allclose(onp.asarray(got), want, rtol=2e-5 if char == "f" else 1e-12, atol=1e-6)
    assert abs(onp.asarray(kept) - onp.asarray(ours)).max() > 0
    onp.testing.assert_array_equal(onp.asarray(before), 2 * onp.asarray(kept))
    both = mean
    with there:
        npx.adam_update(ours, slope, both, both, 0.01)
    assert calls == fused
