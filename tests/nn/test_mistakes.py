"""What a learner gets wrong: each mistake raises before it does harm, and the message says what to do."""

import re
import traceback

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, nn, vmap
from tests.agreement import assert_same

L = nn.layers
X = onp.random.default_rng(0).standard_normal((20, 6)).astype("f")
Y = onp.arange(20) % 2
ONES = onp.ones


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def fit(x=X, y=Y, **options):
    return net().fit(x, y, **{"epochs": 1, "verbose": False, **options})


def solver(**options):
    return nn.Solver(net(), nn.io.NDArrayIter(X, Y, 5), verbose=False, **options)


class Model(nn.ModelBase):
    """Forgets super().__init__(), which is no mistake."""

    def __init__(self, forward=None, loss=None):
        self.linear = nn.Linear(6, 2)
        self.forward_, self.loss_ = forward, loss

    def forward(self, x, mode):
        return self.linear(x) if self.forward_ is None else self.forward_(x)

    def loss(self, predict, y):
        return L.softmax_loss(predict, y) if self.loss_ is None else self.loss_(predict)


MISTAKES = {
    "labels from 1": (lambda: fit(y=Y + 1), IndexError, "index 2 is out of bounds for axis 1 with size 2"),
    "labels -1 and 1": (lambda: fit(y=2 * Y - 1), IndexError, "index 2 is out of bounds for axis 1 with size 2"),
    "the same, compiled": (lambda: fit(y=2 * Y - 1, jit=True), IndexError, "index 2 is out of bounds"),
    "labels that are no classes": (lambda: fit(y=Y + 0.5), IndexError, "index 2 is out of bounds"),
    "fewer labels": (lambda: L.softmax_loss(X, Y[:10]), ValueError, r"scores \[20, 6\] have labels \[20\]; got int64"),
    "rows for the hinge": (lambda: L.svm_loss(X, onp.eye(20)[:, :6]), ValueError, r"have labels \[20\]; got float64"),
    "softmax of one score": (lambda: L.softmax_loss(X[:, :1], Y), ValueError, "always 1: .* use binary_cross_entropy"),
    "other shapes": (lambda: L.binary_cross_entropy(X, X[:, :3]), ValueError, "targets of the same shape"),
    "images without channels": (lambda: L.conv2d(X, ONES((4, 3, 3, 3))), ValueError, r"\[N, C, H, W\]; got \[20, 6\]"),
    "pooling of rows": (lambda: L.max_pool(X), ValueError, r"takes images \[N, C, H, W\]; got \[20, 6\]"),
    "stride 0": (lambda: L.max_pool(ONES((1, 1, 4, 4)), 2, 0), ValueError, "stride is at least 1, got 0"),
    "pad -1": (lambda: L.avg_pool(ONES((1, 1, 4, 4)), pad=-1), ValueError, "padding is at least 0, got -1"),
    "half a pad": (lambda: L.avg_pool(ONES((1, 1, 4, 4)), pad=0.5), TypeError, "padding is a whole number, got 0.5"),
    "a size of 2.0": (lambda: nn.Linear(6, 2.0), TypeError, "Linear's parameter 'w' is a whole number, got 2.0"),
    "a size of -1": (lambda: nn.Linear(6, -1), ValueError, "size of Linear's parameter 'w' is at least 0, got -1"),
    "a layer's class": (lambda: nn.Sequential(nn.ReLU), TypeError, r"write ReLU\(\)"),
    "a list of layers": (lambda: nn.Sequential([nn.ReLU()]), TypeError, r"write Sequential\(first, second, ...\)"),
    "a loss that is none": (lambda: nn.Sequential(loss="svm_los"), ValueError, "do you mean 'svm_loss'?"),
    "Keras's name": (lambda: fit(optimizer="Adam"), ValueError, "do you mean 'adam'?"),
    "a setting": (lambda: fit(optim_config={"lr": 1}), TypeError, "adam has no setting 'lr'; .* 'learning_rate'"),
    "a negative rate": (lambda: fit(learning_rate=-1), ValueError, "learning_rate is a finite number of at least 0"),
    "a rate in words": (lambda: fit(learning_rate="0.1"), TypeError, "learning_rate is a number, got '0.1'"),
    "no decay": (lambda: solver(lr_decay=None), TypeError, "lr_decay is a number, got None"),
    "clipped to 0": (lambda: fit(clip_norm=0), ValueError, "clip_norm is a finite number above 0, got 0"),
    "1.5 epochs": (lambda: fit(epochs=1.5), TypeError, "epochs is a whole number, got 1.5"),
    "-1 epochs": (lambda: fit(epochs=-1), ValueError, "epochs is at least 0, got -1"),
    "batches of 5.0": (lambda: fit(batch_size=5.0), TypeError, "batch_size is a whole number, got 5.0"),
    "no labels": (lambda: fit(y=None), ValueError, "needs labels y, and the data came without"),
    "no data": (lambda: nn.io.NDArrayIter(None, Y, 2), ValueError, r"needs arrays of examples \[N, ...\]"),
    "one number": (lambda: nn.io.NDArrayIter(3.0), ValueError, r"needs arrays of examples \[N, ...\]; got data=3.0"),
    "all held back": (lambda: fit(validation_split=1.0), ValueError, "leaves 0 of 20 examples for training"),
    "none held back": (lambda: fit(validation_split=0.01), ValueError, "leaves 20 of 20 examples for training"),
    "nothing to validate on": (lambda: fit(validation_data=(X[:0], Y[:0])), ValueError, "there are no examples"),
    "nothing to evaluate": (lambda: net().init().evaluate(X[:0], Y[:0]), ValueError, "there are no examples"),
    "nothing to predict": (lambda: net().init().predict(X[:0]), ValueError, "there are no examples"),
    "what is not measured": (lambda: fit(monitor="val_acc"), KeyError, "'val_acc' is measured; this training measures"),
    "no validation": (
        lambda: fit(callbacks=nn.callbacks.EarlyStopping()), KeyError, "nothing called 'val_loss' is measured",
    ),
    "a callback's class": (lambda: fit(callbacks=[nn.callbacks.Callback]), TypeError, "derived from Callback, got"),
    "a schedule's name": (lambda: fit(lr_schedule="cosine"), TypeError, "a function step -> factor, such as optim.cos"),
    "no steps": (lambda: nn.optim.cosine(0), ValueError, "steps is at least 1, got 0"),
    "a generator": (lambda: fit(iter([(X, Y)]), None), TypeError, "is over after one epoch: give an NDArrayIter"),
    "resume from where?": (lambda: fit(resume=True), ValueError, "resume and checkpoint_every need a checkpoint"),
    "no such folder": (lambda: fit(checkpoint="/no/such/a"), FileNotFoundError, "there is no folder '/no/such' for"),
    "arrays for a Solver": (lambda: nn.Solver(net(), X), TypeError, r"got a ndarray: .*NDArrayIter\(x, y, "),
    "nothing to train": (lambda: nn.Sequential(nn.ReLU()).fit(X, Y), ValueError, "has no parameters to train"),
    "nothing to save": (lambda: net().save("a"), ValueError, "has no values to save yet: call .init()"),
    "another shape": (
        lambda: net().init().set_tree({"0.w": ONES(3)}), ValueError, r"'0.w' is \(6, 8\); got a value of \(3,\)",
    ),
    "a forward without return": (
        lambda: Model(forward=lambda x: None).fit(X, Y), TypeError, "Model.forward returned None; does it end with",
    ),
    "a loss without return": (lambda: Model(loss=lambda p: None).fit(X, Y), TypeError, "one number, .* got None"),
    "a loss for each": (lambda: Model(loss=lambda p: p[:, 0]).fit(X, Y), TypeError, r"got an array of shape \(20,\)"),
    "a transform without return": (
        lambda: fit(transform=lambda x, rng: None), TypeError, "the transform .* returned None",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(mistake):
    do, kind, said = MISTAKES[mistake]
    with pytest.raises(kind) as error:
        do()
    assert re.search(said, str(error.value)), error.value


def test_an_error_about_shapes_tells_the_layer_and_its_formula():
    for wrong, place in (
        (lambda: fit(X[:, :5]), "in Linear(x float32[20, 5]) with w float32[6, 8], b float32[8]: y = x w + b over"),
        (lambda: L.affine(X, ONES((5, 3)), ONES(3)), "in affine(x float32[20, 6], w float64[5, 3], b float64[3]): y ="),
        (lambda: L.softmax_loss(X, y=Y[:3]), "in softmax_loss(x float32[20, 6], y int64[3]): loss = -1/N sum_n log"),
        (lambda: L.batchnorm(X, ONES(5), ONES(6)), "in batchnorm(x float32[20, 6], gamma float64[5], beta float64[6])"),
    ):
        with pytest.raises((ValueError, IndexError)) as error:
            wrong()
        assert place in "".join(traceback.format_exception_only(error.value))


def test_labels_in_other_forms():
    expected = L.softmax_loss(X, Y)
    for labels in (Y[:, None], Y.astype(float), Y.tolist(), Y.astype(np.uint8), np.array(Y)):
        assert float(L.softmax_loss(X, labels)) == float(expected)
        assert float(L.svm_loss(X, labels)) == float(L.svm_loss(X, Y))
    each = vmap(lambda x, y: L.softmax_loss(x[None], y[None]))(np.array(X), np.array(Y))
    assert float(np.mean(each)) == pytest.approx(float(expected), rel=1e-5)
    assert fit(y=list(Y)) == fit() == fit(y=Y[:, None])
    assert fit(validation_data=[X, Y], metrics="accuracy") == fit(validation_data=(X, Y))
    scores = X[:, :1]
    assert float(L.binary_cross_entropy(scores, Y)) == float(L.binary_cross_entropy(scores, Y[:, None]))


def test_layers_take_lists_and_integers():
    assert_same(L.affine([[1.0, 2.0]], [[1.0], [2.0]], [0.0]), [[5.0]])
    assert_same(L.leaky_relu([1, -2]), [1.0, -0.02])
    dropped = onp.asarray(L.dropout(onp.full(1000, 3), 0.4, seed=0))
    assert set(dropped.tolist()) == {0.0, 3 / 0.6}
    assert_same(L.conv2d(ONES((1, 1, 3, 3)), ONES((1, 1, 3, 3)), pad=onp.int64(1))[0, 0, 1, 1], 9.0)


def test_layers_in_lists_of_lists_are_trained():
    model = Model()
    model.blocks = {"a": [nn.Linear(2, 3), (nn.Linear(3, 1),)]}
    assert sorted(model.init().tree()) == [
        "blocks.a.0.b", "blocks.a.0.w", "blocks.a.1.0.b", "blocks.a.1.0.w", "linear.b", "linear.w",
    ]  # fmt: skip
    assert model.fit(X, Y, epochs=1, verbose=False).keys() == {"loss"}


def test_resuming_with_other_settings(tmp_path):
    """The settings are the new ones; the state is the old one, or none where the optimiser is another."""
    path = tmp_path / "a"
    options = {"checkpoint": path, "resume": True, "restore_best": False, "seed": 0}
    solver(num_epochs=1, update_rule="adam", **options).train()
    again = solver(num_epochs=2, update_rule="adam", optim_config={"beta1": 0.5, "learning_rate": 0.01}, **options)
    again.train()
    assert again.optim_configs["0.w"]["beta1"] == 0.5 and again.optim_configs["0.w"]["t"] == 8
    other = solver(num_epochs=3, update_rule="sgd_momentum", **options)
    with pytest.warns(UserWarning, match="a was written with adam: sgd_momentum goes on from its parameters"):
        other.train()
    assert set(other.optim_configs["0.w"]) == {"learning_rate", "weight_decay", "momentum", "velocity"}
    smaller = nn.Solver(
        nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 2)), nn.io.NDArrayIter(X, Y, 5), **options
    )
    with pytest.raises(ValueError, match=r"parameter '0.w' is \(6, 7\); got a value of \(6, 8\)"):
        smaller.train()


def test_measuring_twice_on_one_iterator():
    model, batches = net().init(0), nn.io.NDArrayIter(X, Y, 8)
    scores = [model.evaluate(batches), model.evaluate(X, Y)]
    assert scores[0] == pytest.approx(scores[1]) and model.evaluate(batches) == scores[0]
    assert_same(model.predict(batches), model.predict(X))


def test_fit_takes_what_gives_batches_anew():
    class Loader:
        def __iter__(self):
            return iter([(X[i : i + 5], Y[i : i + 5]) for i in range(0, 20, 5)])

    history = fit(Loader(), None, epochs=2, validation_data=Loader())
    assert history == fit(epochs=2, batch_size=5, shuffle=False, validation_data=(X, Y)) | {
        "val_loss": pytest.approx(history["val_loss"])
    }


def test_regression_is_not_measured_by_being_right():
    model = nn.Sequential(nn.Linear(6, 1), loss="l2_loss")
    assert sorted(model.fit(X, X[:, 0], epochs=1, verbose=False, validation_split=0.2)) == ["loss", "val_loss"]
    assert list(model.evaluate(X, X[:, 0])) == ["loss"]


def test_scores_of_sequences():
    numbers = onp.arange(60).reshape(10, 6) % 5
    model = nn.Sequential(nn.Embedding(5, 4), nn.GRU(4, 6), nn.Linear(6, 5))
    history = model.fit(numbers, (numbers + 1) % 5, epochs=30, learning_rate=0.05, verbose=False)
    assert history["loss"][-1] < 0.1
    scores = model.predict(numbers)
    expected = L.softmax_loss(scores.reshape(-1, 5), numbers.reshape(-1))
    assert float(L.softmax_loss(scores, numbers)) == float(expected)


def test_sequences_without_steps_and_sets_without_examples():
    for layer in (nn.RNN(4, 5), nn.LSTM(4, 5), nn.GRU(4, 5)):
        layer.init(0)
        assert layer(ONES((2, 0, 4))).shape == (2, 0, 5)
        assert layer(ONES((0, 3, 4))).shape == (0, 3, 5)

        def of_tree(tree, layer=layer):
            with layer.holding(tree):
                return np.sum(layer(ONES((0, 3, 4))))

        assert all(not onp.asarray(g).any() for g in grad(of_tree)(layer.tree()).values())


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("validation", "do you mean 'validation_data'?"),
        ("epoch", "do you mean 'epochs'?"),
        ("loss", "it is the model's: Sequential"),
        ("zzz", "known: model, x, y, epochs"),
        ("update_rule", "do you mean 'optimizer'?"),
        ("num_epochs", "do you mean 'epochs'?"),
        ("test_dataiter", "do you mean 'validation_data'?"),
    ],
)
def test_an_unknown_option_of_fit_is_named_with_the_nearest(option: str, said: str) -> None:
    with pytest.raises(TypeError, match=f"fit has no option '{option}'") as error:
        nn.Sequential(nn.Linear(3, 2)).fit(np.zeros((4, 3)), np.zeros(4), **{option: 1})
    assert said in str(error.value)


def test_a_model_prints_its_layers_and_their_parameters() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Residual(nn.Linear(10, 10), nn.Dropout(0.5)), nn.Linear(10, 2, bias=False))
    assert str(net).splitlines() == [
        "Sequential()",
        "  0: Flatten()",
        "  1: Residual()",
        "    1.inner: Sequential()",
        "      1.inner.0: Linear(w (10, 10), b (10,))",
        "      1.inner.1: Dropout()",
        "  2: Linear(w (10, 2))",
    ]
