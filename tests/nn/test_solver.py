"""The training loop: learns, measures, stops, resumes, reports; the same numbers from the same seed."""

import math
import os

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import nn
from minnp.core import grad_and_loss
from tests.agreement import assert_same, exact

RNG = onp.random.default_rng(0)
X = RNG.standard_normal((120, 6)).astype(onp.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(onp.int64)


def net(*middle):
    return nn.Sequential(nn.Linear(6, 16), *middle, nn.ReLU(), nn.Linear(16, 2))


def iterators(batch_size=20, **options):
    return (nn.io.NDArrayIter(X[:80], Y[:80], batch_size, shuffle=True, seed=1, **options),
            nn.io.NDArrayIter(X[80:], Y[80:], 16))  # fmt: skip


def same(a, b):
    return list(a) == list(b) and all(onp.array_equal(onp.asarray(a[k]), onp.asarray(b[k])) for k in a)


class TwoLayers(nn.ModelBase):
    """As written for MinPy."""

    def __init__(self):
        super().__init__()
        self.add_param(name="w1", shape=(6, 16)).add_param(name="b1", shape=(16,))
        self.add_param(name="w2", shape=(16, 2)).add_param(name="b2", shape=(2,))
        self.add_param(name="gamma", shape=(16,), init_rule="constant", init_config={"value": 1.0})
        self.add_param(name="beta", shape=(16,), init_rule="constant")
        self.add_aux_param(name="running_mean", value=None).add_aux_param(name="running_var", value=None)

    def forward(self, X, mode):
        h = nn.layers.relu(nn.layers.affine(X, self.params["w1"], self.params["b1"]))
        h, self.aux_params["running_mean"], self.aux_params["running_var"] = nn.layers.batchnorm(
            h, self.params["gamma"], self.params["beta"], mode=mode, running_mean=self.aux_params["running_mean"],
            running_var=self.aux_params["running_var"])  # fmt: skip
        return nn.layers.affine(h, self.params["w2"], self.params["b2"])

    def loss(self, predict, y):
        return nn.layers.softmax_loss(predict, y)


def test_minpys_constructor(capsys):
    train, test = iterators()
    np.random.seed(0)
    model = TwoLayers()
    solver = nn.solver.Solver(model, train, test, num_epochs=5, init_rule="gaussian", init_config={"stdvar": 0.1},
                              update_rule="sgd_momentum", optim_config={"learning_rate": 0.1, "momentum": 0.9},
                              lr_decay=0.95, train_acc_num_samples=50, verbose=True, print_every=2)  # fmt: skip
    solver.init()
    w1 = model.params["w1"]
    solver.train()
    assert len(solver.loss_history) == 20 and len(solver.val_acc_history) == len(solver.train_acc_history) == 5
    assert solver.loss_history[-1] < 0.5 * solver.loss_history[0]
    assert solver.best_val_acc == max(solver.val_acc_history) > 0.85
    assert solver.check_accuracy(test) == pytest.approx(solver.best_val_acc)
    assert solver.check_accuracy(train, num_samples=30) > 0.8
    assert solver.optim_configs["w1"]["learning_rate"] == pytest.approx(0.1 * 0.95**4)
    assert model.params["w1"] is not w1, "the best parameters are put back as copies"
    out = capsys.readouterr().out
    assert "(Iteration 1 / 20) loss: " in out and "(Iteration 2 / 20)" not in out
    assert "(Epoch 5 / 5) loss: " in out and "val_accuracy: " in out


def test_a_training_loop_of_minpys_that_reads_the_parameters_from_the_model():
    """MinPy's own solvers differentiate with respect to arrays that the loss finds in model.params."""
    model = TwoLayers().init(0)
    keys, arrays = list(model.params), list(model.params.values())

    def loss_func(*params):
        return model.loss(model.forward(X, mode="train"), Y)

    gradients, loss = grad_and_loss(loss_func, argnum=range(len(arrays)))(*arrays)

    def by_argument(tree):
        with model.holding(tree):
            return model.loss(model.forward(X, mode="train"), Y)

    expected, value = grad_and_loss(by_argument)(model.tree())
    assert float(loss) == float(value)
    for key, g, w in zip(keys, gradients, arrays):
        assert onp.array_equal(onp.asarray(g), onp.asarray(expected[key])), key
        assert model.params[key] is w
    assert float(np.abs(gradients[0]).max()) > 0


def test_updates_are_in_place():
    model = net().init(0)
    w = model.tree()["0.w"]
    before = onp.array(onp.asarray(w))
    nn.Solver(model, *iterators(), num_epochs=1, verbose=False, restore_best=False).train()
    assert model.tree()["0.w"] is w
    assert not onp.array_equal(before, onp.asarray(w))


def run(batch_size=20, **options):
    model = net(nn.BatchNorm(16), nn.Dropout(0.2))
    options = {"seed": 5, "num_epochs": 4, "verbose": False, "update_rule": "adam", **options}
    solver = nn.Solver(model, *iterators(batch_size, last_batch_handle="keep"), **options)
    solver.train()
    return solver


def test_a_run_is_a_function_of_its_seed():
    one, two, other = run(), run(), run(seed=6)
    assert one.history == two.history and one.loss_history == two.loss_history
    assert same(one.model.tree(), two.model.tree()) and same(one.model.aux_tree(), two.model.aux_tree())
    assert one.loss_history != other.loss_history


@pytest.mark.long
@pytest.mark.parametrize("rule", nn.optim.RULES)
@pytest.mark.parametrize("every", [None, 3])
def test_resuming_is_going_on(tmp_path, rule, every):
    options = {"update_rule": rule, "lr_decay": 0.9, "lr_schedule": nn.optim.cosine(40), "clip_norm": 1.0,
               "checkpoint_every": every, "early_stopping": 3, "resume": True}  # fmt: skip
    whole = run(**options, checkpoint=tmp_path / "whole")
    path = tmp_path / "parts"
    for epochs in (1, 2, 4):
        parts = run(**options, checkpoint=path, num_epochs=epochs)
    assert parts.history == whole.history and parts.loss_history == whole.loss_history
    assert same(parts.model.tree(), whole.model.tree()) and same(parts.model.aux_tree(), whole.model.aux_tree())
    assert (tmp_path / "whole").read_bytes() == path.read_bytes()


def test_resuming_in_the_middle_of_an_epoch(tmp_path):
    class Stop(nn.callbacks.Callback):
        def on_batch_end(self, solver):
            if solver.step == 7:
                raise KeyboardInterrupt

    options = {"checkpoint_every": 2, "resume": True, "early_stopping": 3}
    whole = run(**options, checkpoint=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(**options, checkpoint=tmp_path / "parts", callbacks=[Stop()])
    parts = run(**options, checkpoint=tmp_path / "parts")
    assert parts.loss_history == whole.loss_history and parts.history == whole.history
    assert same(parts.model.tree(), whole.model.tree())


def test_resume_with_another_model_or_iterator_is_refused(tmp_path):
    run(checkpoint=tmp_path / "a", num_epochs=1)
    with pytest.raises(ValueError, match=r"holds the parameters \['0.b', .*; this model has \['b1'"):
        nn.Solver(TwoLayers(), *iterators(), checkpoint=tmp_path / "a", resume=True, verbose=False).train()

    class Pairs:
        def __iter__(self):
            return iter([(X, Y)])

        def reset(self): ...

    with pytest.raises(TypeError, match="Pairs cannot say where it is"):
        nn.Solver(net(), Pairs(), checkpoint=tmp_path / "b", verbose=False).train()
    history = nn.Solver(net(), Pairs(), num_epochs=2, verbose=False).train()
    assert len(history["loss"]) == 2


def test_a_loss_that_is_not_finite_stops_with_advice():
    with (
        pytest.raises(FloatingPointError, match=r"the loss is (inf|nan) at step \d+ .*clip_norm"),
        onp.errstate(all="ignore"),
    ):
        run(update_rule="sgd", optim_config={"learning_rate": 1e12})


def test_a_compiled_step_is_the_same_step(monkeypatch):
    """Batch normalisation, dropout and a short last batch included; on NumPy's kernels, to the bit."""
    close = run(batch_size=32, jit=True)
    monkeypatch.setattr("minnp.core.llvm.engine.machine", lambda: None)
    monkeypatch.setattr("minnp.core.cpu.kernels.team", None)
    eager, compiled = run(batch_size=32), run(batch_size=32, jit=True)
    onp.testing.assert_allclose(close.loss_history, eager.loss_history, rtol=1e-3)
    if exact():
        assert compiled.history == eager.history and compiled.loss_history == eager.loss_history
        assert same(compiled.model.tree(), eager.model.tree())
        assert same(compiled.model.aux_tree(), eager.model.aux_tree())
    else:  # float32 sums in another order, which the steps carry on
        losses = [onp.asarray(s.loss_history, "f4") for s in (compiled, eager)]
        assert_same(losses[0][:1], losses[1][:1])
        assert_same(*losses, ulps=1 << 11)
    assert compiled._compute.captures == 2


def test_early_stopping_and_best_parameters():
    solver = run(num_epochs=60, early_stopping=4, optim_config={"learning_rate": 0.02})
    values = solver.history["val_accuracy"]
    assert len(values) < 60 and values.index(max(values)) == len(values) - 5
    assert solver.model.evaluate(X[80:], Y[80:])["accuracy"] == pytest.approx(max(values))
    by_loss = run(num_epochs=3, monitor="val_loss", early_stopping=1)
    assert by_loss.best_value == -min(by_loss.history["val_loss"])
    with pytest.raises(KeyError, match="nothing called 'val_f1' is measured; this training measures loss, "):
        run(monitor="val_f1")


def test_callbacks_are_called_in_order():
    calls = []

    class Log(nn.callbacks.Callback):
        def on_train_begin(self, solver):
            calls.append("begin")

        def on_batch_end(self, solver):
            calls.append(solver.step)

        def on_epoch_end(self, solver):
            calls.append(f"epoch {solver.epoch}")
            solver.stopped = solver.epoch == 2

        def on_train_end(self, solver):
            calls.append("end")

    run(callbacks=[Log()])
    assert calls == ["begin", 1, 2, 3, 4, "epoch 1", 5, 6, 7, 8, "epoch 2", "end"]


def test_settings_of_one_parameter():
    model = net()
    model.steps[0].param_configs["w"]["learning_rate"] = 0.0
    model.init(0)
    before = {name: np.array(value) for name, value in model.tree().items()}
    nn.Solver(model, *iterators(), num_epochs=1, verbose=False, restore_best=False,
              optim_config={"learning_rate": 0.1}).train()  # fmt: skip
    changed = [
        name
        for name, value in model.tree().items()
        if not onp.array_equal(onp.asarray(value), onp.asarray(before[name]))
    ]
    assert changed == ["0.b", "2.w", "2.b"]


def test_clip_value_limits_the_step():
    model = net().init(0)
    before = {name: np.array(value) for name, value in model.tree().items()}
    train = nn.io.NDArrayIter(100 * X, Y, 120)
    nn.Solver(model, train, num_epochs=1, clip_value=0.01, optim_config={"learning_rate": 1.0}, verbose=False).train()
    for name, value in model.tree().items():
        assert onp.abs(onp.asarray(value) - onp.asarray(before[name])).max() <= 0.0101


# ------------------------------------------------------------------ fit, evaluate, predict
def test_fit_evaluate_predict():
    model = net()
    history = model.fit(X, Y, epochs=30, batch_size=16, validation_split=0.25, verbose=False, learning_rate=0.01)
    assert sorted(history) == ["loss", "val_accuracy", "val_loss"]
    assert all(len(values) == 30 for values in history.values())
    scores = model.evaluate(X, Y, batch_size=50, metrics=("accuracy", "mse_of_rows"[:0] or nn.metrics.accuracy))
    outputs = model.predict(X, batch_size=50)
    assert outputs.shape == (120, 2)
    assert scores["accuracy"] == pytest.approx((onp.asarray(outputs).argmax(1) == Y).mean())
    assert scores["accuracy"] > 0.9
    assert scores["loss"] == pytest.approx(float(nn.losses.softmax_loss(outputs, Y)), rel=1e-5)


def test_fit_prints_a_line_for_each_epoch(capsys):
    net().fit(X, Y, epochs=2, validation_split=0.25)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("(Epoch 2 / 2) loss: ") and "val_accuracy" in lines[1]


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_batches_is_an_iterable_of_batches(kind):
    batches = kind((X[i : i + 20], Y[i : i + 20]) for i in range(0, 120, 20))
    ours = net()
    history = ours.fit(batches, epochs=2, verbose=False, validation_data=batches[:2])
    iterated, measured = nn.io.Batches(batches), nn.io.Batches(batches[:2])
    assert history == net().fit(iterated, epochs=2, verbose=False, validation_data=measured)
    assert ours.evaluate(batches) == ours.evaluate(nn.io.Batches(batches))
    assert_same(ours.predict(batches), ours.predict(nn.io.Batches(batches)))


def test_fit_on_iterators_and_bad_arguments():
    train, test = iterators()
    history = net().fit(train, validation_data=test, epochs=2, verbose=False)
    assert len(history["val_loss"]) == 2
    history = net().fit(X, Y, validation_data=(X, Y), epochs=1, verbose=False, train_acc_num_samples=50)
    assert "accuracy" in history
    with pytest.raises(ValueError, match="not an iterator, and not with validation_data"):
        net().fit(train, validation_split=0.1)
    with pytest.raises(ValueError, match="unknown metric 'acuracy'; known: accuracy, mse, mae"):
        net().fit(X, Y, metrics=["acuracy"])


def test_regression():
    target = X[:, :1] - 2 * X[:, 1:2]
    model = nn.Sequential(nn.Linear(6, 1), loss="l2_loss")
    history = model.fit(X, target, epochs=60, learning_rate=0.05, metrics=["mse", "mae"], validation_data=(X, target),
                        verbose=False)  # fmt: skip
    assert history["val_mse"][-1] < 1e-3 and history["val_mae"][-1] < 0.05


def test_accuracy_understands_labels():
    scores = onp.array([[2.0, 1.0], [0.0, 1.0]])
    assert nn.metrics.accuracy(scores, onp.array([0, 0])) == 0.5
    assert nn.metrics.accuracy(scores, onp.array([[1, 0], [0, 1]])) == 1.0
    assert nn.metrics.accuracy(onp.array([[2.0], [-1.0]]), onp.array([1, 1])) == 0.5
    assert nn.metrics.accuracy(onp.array([2.0, -1.0]), onp.array([1, 0])) == 1.0
    assert nn.metrics.accuracy(onp.stack([scores, scores]), onp.array([[0, 1], [1, 1]])) == 0.75


# ------------------------------------------------------------------ what is seen
def test_progress_bar(capsys):
    net().fit(X, Y, epochs=2, validation_split=0.25, progress=True)
    shown = capsys.readouterr().err
    assert "epoch 2/2: 100%" in shown and "val_accuracy=" in shown and "loss=" in shown


@pytest.mark.long
def test_curves_and_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    history = net().fit(X, Y, epochs=3, validation_split=0.25, verbose=False, curves=tmp_path / "curves.png",
                        tensorboard=tmp_path / "logs")  # fmt: skip
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert len(os.listdir(tmp_path / "logs")) == 1
    logs = EventAccumulator(str(tmp_path / "logs"))
    logs.Reload()
    tags = logs.Tags()["tensors"]
    assert {"step/loss", "epoch/loss", "epoch/val_loss", "epoch/val_accuracy"} <= set(tags)
    written = [event.tensor_proto.float_val[0] for event in logs.Tensors("epoch/val_loss")]
    assert written == pytest.approx(history["val_loss"])
    figure = nn.callbacks.curves(history)
    assert [axes.get_title() for axes in figure.axes] == ["loss", "accuracy"]


# ------------------------------------------------------------------ class weights
@pytest.mark.long
@pytest.mark.parametrize("jit", [False, True])
def test_class_weights_make_a_seldom_class_count(jit):
    rng = onp.random.default_rng(0)
    x = rng.standard_normal((400, 2)).astype("f")
    y = (x[:, 0] + rng.standard_normal(400) > 1.8).astype(onp.int64)
    assert 0.05 < y.mean() < 0.2

    def found(**options):
        model = nn.Sequential(nn.Linear(2, 2))
        model.fit(x, y, epochs=30, learning_rate=0.05, verbose=False, jit=jit, **options)
        return float((onp.asarray(model.predict(x)).argmax(1) == 1)[y == 1].mean())

    assert found() < 0.5 < 0.75 < found(class_weight={1: 10.0})
    assert found(class_weight=[1.0, 10.0]) == found(class_weight={1: 10.0})


def test_class_weights_are_of_training_alone():
    """What is measured on other data counts all classes alike, so that figures can be compared."""
    model = net()
    options = {"epochs": 1, "learning_rate": 0.0, "validation_data": (X, Y), "verbose": False, "shuffle": False}
    history = model.fit(X, Y, class_weight=[1.0, 5.0], batch_size=len(X), **options)
    plain = nn.losses.softmax_loss(model.predict(X), Y)
    assert history["val_loss"] == pytest.approx([float(plain)])
    weighted = nn.losses.softmax_loss(model.predict(X), Y, [1.0, 5.0])
    assert history["loss"] == pytest.approx([float(weighted)]) and history["loss"] != pytest.approx(history["val_loss"])


def test_class_weights_need_a_loss_that_takes_them():
    for loss in ("l2_loss", lambda predict, y: np.sum(predict)):
        with pytest.raises(TypeError, match="class_weight is for losses that take `weight`, a number for each class"):
            nn.Sequential(nn.Linear(6, 2), loss=loss).fit(X, Y, class_weight=[1, 2], verbose=False)

    class Own(nn.Sequential):
        def loss_batch(self, batch, predict):
            return np.sum(predict)

    with pytest.raises(TypeError, match=r"Own.loss_batch has no such argument"):
        Own(nn.Linear(6, 2)).fit(X, Y, class_weight=[1, 2], verbose=False)


# ------------------------------------------------------------------ resuming as another training
def test_resuming_warns_of_another_seed_and_of_other_batches(tmp_path):
    options = {"checkpoint": tmp_path / "a", "resume": True, "verbose": False}
    net().fit(X, Y, epochs=1, seed=1, batch_size=10, **options)
    with pytest.warns(UserWarning, match="a was written with seed 1, and this training has seed 2: it goes on from"):
        net().fit(X, Y, epochs=2, seed=2, batch_size=10, **options)
    said = (
        "written with batch_size 10, number of examples 120, shuffle True, .* has batch_size 5, number of examples 100"
    )
    with pytest.warns(UserWarning, match=said):
        net().fit(X[:100], Y[:100], epochs=3, seed=1, batch_size=5, shuffle=False, **options)
    assert len(net().fit(X[:100], Y[:100], epochs=4, seed=1, batch_size=5, shuffle=False, **options)["loss"]) == 4
    # a Solver that was given no seed has none to disagree with
    batches = nn.io.NDArrayIter(X[:100], Y[:100], 5, last_batch_handle="keep")
    nn.Solver(net(), batches, num_epochs=5, update_rule="adam", **options).train()


def test_resuming_prints_no_old_measure_as_new(tmp_path, capsys):
    """Measures that are no longer taken are not printed, logged or taken for the best, and their epochs stay theirs."""
    options = {"checkpoint": tmp_path / "a", "resume": True, "progress": False}
    first = net().fit(X, Y, epochs=2, validation_data=(X, Y), verbose=False, **options)
    capsys.readouterr()
    history = net().fit(X, Y, epochs=3, **options)
    assert "val_" not in capsys.readouterr().out
    assert history["val_loss"][:2] == first["val_loss"] and math.isnan(history["val_loss"][2])
    history = net().fit(X, Y, epochs=4, validation_data=(X, Y), **options)
    assert f"val_loss: {history['val_loss'][3]:.4f}" in capsys.readouterr().out
    assert [len(values) for values in history.values()] == [4] * len(history)
    assert not math.isnan(history["val_loss"][3])


def test_resuming_with_another_monitor_looks_for_the_best_anew(tmp_path):
    options = {"checkpoint": tmp_path / "a", "resume": True, "verbose": False, "seed": 0}
    batches = lambda: nn.io.NDArrayIter(X, Y, 10, seed=0)
    nn.Solver(net(), batches(), batches(), num_epochs=2, monitor="val_accuracy", **options).train()
    again = nn.Solver(net(), batches(), batches(), num_epochs=4, monitor="val_loss", **options)
    again.train()
    assert again.best_value == -min(again.history["val_loss"][2:])
