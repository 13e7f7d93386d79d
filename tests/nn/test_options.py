"""No option is swallowed: arguments have names, unknown ones raise and say the nearest, and each one does something."""

import inspect
import types

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import nn, npx

# ------------------------------------------------------------------ what is public
MODULES = [
    nn, nn.augment, nn.callbacks, nn.checkpoint, nn.datasets, nn.init, nn.io, nn.layers, nn.losses, nn.metrics,
    nn.model, nn.modules, nn.optim, nn.recurrent, nn.solver,
]  # fmt: skip


def public():
    """{name: class or function} of minnp.nn and its modules."""
    found = {}
    for module in MODULES:
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            # errors, and Dataset, a named tuple, are given to the user and not built
            given = isinstance(value, type) and issubclass(value, Exception | tuple)
            ours = isinstance(value, type | types.FunctionType) and value.__module__.startswith("minnp.nn")
            if ours and not given and not name.startswith("_"):
                found.setdefault(value, f"{module.__name__.removeprefix('minnp.')}.{name}")
    return {name: value for value, name in found.items()}


PUBLIC = public()


def test_the_public_names_are_found():
    assert len(PUBLIC) > 100
    assert {"nn.Conv2D", "nn.Solver", "nn.optim.adam", "nn.init.he", "nn.io.NDArrayIter"} <= set(PUBLIC)
    assert {"nn.layers.softmax_loss", "nn.augment.Crop", "nn.callbacks.Curves", "nn.layers.conv2d"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_has_a_name_and_a_misspelt_one_is_refused_with_the_nearest(name):
    thing = PUBLIC[name]
    arguments = inspect.signature(thing).parameters.values()
    assert not [a for a in arguments if a.kind is a.VAR_KEYWORD], f"{name} takes options without naming them"
    named = [a.name for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    assert inspect.getdoc(thing)
    given = []
    if "config" in named:  # its settings are in the config or have names: looked at once the arrays are there
        given = [(2, 3)] if named[0] == "shape" else [np.ones(2), np.ones(2)]
        named = named[named.index("config") + 1 :]
    for argument in named:
        wrong = f"{argument}zz" if len(argument) > 2 else f"{argument}z"
        with pytest.raises(TypeError, match=f"has no (argument|setting) '{wrong}'") as error:
            thing(*given, **{wrong: 1})
        assert "do you mean" in str(error.value) or "known: " in str(error.value), error.value
        if len(argument) > 4:
            assert f"do you mean '{argument}'?" in str(error.value)
    with pytest.raises(TypeError):
        thing(*given, quite_unknown=1)


def test_no_layer_takes_options_without_naming_them():
    """The models of a user too: what add_param and fit take has names."""
    for method in (nn.Layer.add_param, nn.Layer.init, nn.ModelBase.fit, nn.ModelBase.evaluate, nn.ModelBase.predict):
        kinds = [p.kind for p in inspect.signature(method).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert {"epochs", "optimizer", "clip_norm", "jit", "resume"} <= set(inspect.signature(nn.ModelBase.fit).parameters)
    with pytest.raises(TypeError, match="has no argument 'init_rul'; do you mean 'init_rule'"):
        nn.ModelBase().add_param("w", (2,), init_rul="he")
    with pytest.raises(ValueError, match=r"parameter 'w' has an init_config \{'stdvar': 1\} of no init_rule"):
        nn.Linear(2, 3, init_config={"stdvar": 1})
    with pytest.raises(ValueError, match=r"unknown init_rule 'hee'.* do you mean 'he'"):
        nn.Linear(2, 3, init_rule="hee")
    with pytest.raises(TypeError, match="Linear's forward has no argument 'made'; do you mean 'mode'"):
        nn.Linear(2, 3).init()(onp.ones((1, 2)), made="train")
    with pytest.raises(TypeError, match="ReLU takes no arguments, got 5"):
        nn.ReLU(5)
    with pytest.raises(TypeError, match="ReLU has no argument 'slope'; it takes none"):
        nn.ReLU(slope=0.1)


MISSPELT = {
    "strides": (lambda: nn.Conv2D(3, 9, 3, strides=2), "stride"),
    "biass": (lambda: nn.Linear(3, 9, biass=False), "bias"),
    "use_bias": (lambda: nn.Linear(3, 9, use_bias=False), "bias"),
    "units": (lambda: nn.Linear(3, units=9), "out_features"),
    "dilation_rate": (lambda: nn.Conv2D(3, 9, dilation_rate=2), "dilation"),
    "lr": (lambda: nn.optim.adam(onp.ones(1), onp.ones(1), {"lr": 1}), "learning_rate"),
    "momentun": (lambda: nn.optim.sgd_momentum(onp.ones(1), onp.ones(1), momentun=0.5), "momentum"),
    "std": (lambda: nn.init.gaussian((2, 3), {"std": 1.0}), "stdvar"),
    "batchsize": (lambda: nn.io.NDArrayIter(onp.ones((2, 2)), batchsize=2), "batch_size"),
    "num_epoch": (lambda: nn.Solver(None, None, num_epoch=2), "num_epochs"),
    "patiens": (lambda: nn.callbacks.EarlyStopping(patiens=2), "patience"),
    "optimizer": (lambda: nn.Solver(None, None, optimizer="adam"), "update_rule"),
    "rate": (lambda: nn.layers.dropout([1.0], rate=0.5), "prob"),
    "return_sequences": (lambda: nn.LSTM(2, 3, return_sequences=False), "last"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_the_words_of_other_libraries_are_refused_with_ours(name):
    build, ours = MISSPELT[name]
    with pytest.raises(TypeError, match=f"has no (argument|setting) '{name}'; do you mean '{ours}'?"):
        build()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Conv2d", "Conv2D"),
        ("conv_transpose2d", "ConvTranspose2D"),
        ("BatchNorm2d", "BatchNorm"),
        ("Lstm", "LSTM"),
        ("Dense", "Linear"),
        ("Conv2DTranspose", "ConvTranspose2D"),
    ],
)
def test_the_name_of_a_layer_elsewhere_is_answered_with_ours(name, ours):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; do you mean '{ours}'"):
        getattr(nn, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'Quite'$"):
        nn.Quite


def test_an_activation_is_a_step_of_its_own():
    with pytest.raises(TypeError, match="Conv2D has no argument 'activation'; an activation is a step of its own"):
        nn.Conv2D(3, 9, 3, activation="relu")
    with pytest.raises(
        TypeError, match=r"LSTM has no argument 'batch_first'; sequences are \[examples, steps, numbers\]"
    ):
        nn.LSTM(3, 9, batch_first=True)
    with pytest.raises(
        TypeError, match=r"'lr'; it is a setting of the optimiser: optim_config=\{'learning_rate': ...\}"
    ):
        nn.Solver(None, None, lr=0.1)
    with pytest.raises(TypeError, match="ReLU has no argument 'inplace'; nothing is written in place here"):
        nn.ReLU(inplace=True)


# ------------------------------------------------------------------ each argument does something
IMAGES = onp.random.default_rng(0).standard_normal((2, 4, 9, 9)).astype("f")
SIGNALS, VOLUMES = IMAGES[:, :, 0], IMAGES[:, :, :, :, None] * onp.linspace(-1, 1, 7, dtype="f")
ROWS, STEPS, WORDS = IMAGES[:, :, 0, 0], onp.moveaxis(SIGNALS, 1, 2).copy(), onp.array([[0, 3, 1], [2, 2, 4]])

OF_WEIGHTS = {"init_rule": "gaussian", "learning_rate": 0.5, "weight_decay": 0.25}
CONVOLUTION = {
    "out_channels": 8, "kernel_size": 1, "stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": False,
    "init_config": {"rng": np.random.default_rng(9)}, **OF_WEIGHTS,
}  # fmt: skip
PADDED = {"padding_mode": ("circular", {"padding": 1})}
OF_GAUSSIAN = ({"stdvar": 1.0}, {"init_rule": "gaussian"})
TRANSPOSED = CONVOLUTION | {"output_padding": 1}
POOLING = {"kernel_size": 3, "stride": 1, "padding": 1}
STACK = {"num_layers": 2, "bias": False, "bidirectional": True, "last": True, "hidden_size": 6}
# {layer: (what it is built with, its input, {argument: another value, or (another value, what else is then given)})}
LAYERS = {
    "Linear": ({"in_features": 4, "out_features": 6}, ROWS,
               {"out_features": 5, "bias": False, "init_config": OF_GAUSSIAN, **OF_WEIGHTS}),
    "Conv1D": ({"in_channels": 4, "out_channels": 6}, SIGNALS, CONVOLUTION | PADDED),
    "Conv2D": ({"in_channels": 4, "out_channels": 6}, IMAGES, CONVOLUTION | PADDED),
    "Conv3D": ({"in_channels": 4, "out_channels": 6}, VOLUMES, CONVOLUTION | PADDED),
    "ConvTranspose1D": ({"in_channels": 4, "out_channels": 6, "stride": 3}, SIGNALS, TRANSPOSED),
    "ConvTranspose2D": ({"in_channels": 4, "out_channels": 6, "stride": 3}, IMAGES, TRANSPOSED),
    "ConvTranspose3D": ({"in_channels": 4, "out_channels": 6, "stride": 3}, VOLUMES, TRANSPOSED),
    "MaxPool1D": ({}, SIGNALS, POOLING),
    "MaxPool2D": ({}, IMAGES, POOLING),
    "MaxPool3D": ({}, VOLUMES, POOLING),
    "AvgPool1D": ({}, SIGNALS, POOLING),
    "AvgPool2D": ({}, IMAGES, POOLING),
    "AvgPool3D": ({}, VOLUMES, POOLING),
    "BatchNorm": ({"num_features": 4}, IMAGES, {"eps": 0.1, "momentum": 0.5}),
    "LayerNorm": ({"normalized_shape": 9}, IMAGES, {"eps": 0.1, "normalized_shape": (9, 9)}),
    "GroupNorm": ({"num_groups": 2, "num_channels": 4}, IMAGES, {"num_groups": 1, "eps": 0.1}),
    "InstanceNorm": ({"num_features": 4}, IMAGES, {"eps": 0.1}),
    "Dropout": ({}, ROWS, {"p": 0.1}),
    "Embedding": ({"num_embeddings": 5, "embedding_dim": 3}, WORDS,
                  OF_WEIGHTS | {"num_embeddings": 6, "embedding_dim": 4, "init_rule": "he", "init_config": {"mu": 1}}),
    "RNN": ({"input_size": 4, "hidden_size": 5}, STEPS,
            {**STACK, "nonlinearity": "relu", "dropout": (0.5, {"num_layers": 2})}),
    "LSTM": ({"input_size": 4, "hidden_size": 5}, STEPS, {**STACK, "dropout": (0.5, {"num_layers": 2})}),
    "GRU": ({"input_size": 4, "hidden_size": 5}, STEPS,
            {**STACK, "reset_after": True, "dropout": (0.5, {"num_layers": 2})}),
    "MultiHeadAttention": ({"embed_dim": 4, "num_heads": 2}, STEPS, {"num_heads": 1, "causal": True}),
    "TransformerBlock": ({"embed_dim": 4, "num_heads": 2}, STEPS,
                         {"num_heads": 1, "causal": True, "wider": 2, "dropout": 0.5}),
    "Lambda": ({"function": np.tanh}, ROWS, {"function": np.exp}),
}  # fmt: skip
# Arguments that must be what the input has: another value is an error when the layer runs.
OF_INPUT = {"in_features", "in_channels", "num_features", "num_channels", "input_size", "embed_dim"}
WITHOUT = {  # take no arguments, or only layers
    "Flatten", "GELU", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "ReLU", "Sigmoid", "Tanh", "Residual",
    "Sequential", "Symbolic",
}  # fmt: skip


def built(kind, arguments, x):
    """What a layer is and does: parameters, what is declared of them, running averages, the output in training."""
    layer = getattr(nn, kind)(**arguments).init(3)
    np.random.seed(0)
    y = layer(x, mode="train")
    declared = {
        name: {key: value for key, value in config.items() if isinstance(value, str | float | tuple)}
        for name, config in layer.configs().items()
    }
    arrays = {**layer.tree(), **layer.aux_tree(), "y": y}
    return repr(declared), {name: (a.shape, onp.asarray(a).tobytes()) for name, a in arrays.items()}


def test_every_layer_is_in_the_table():
    assert set(nn.modules.__all__ + nn.recurrent.__all__) == set(LAYERS) | WITHOUT


@pytest.mark.parametrize("kind", LAYERS)
def test_every_argument_of_a_layer_changes_what_is_built(kind):
    base, x, changes = LAYERS[kind]
    arguments = set(inspect.signature(getattr(nn, kind)).parameters)
    assert arguments == set(changes) | (arguments & OF_INPUT), "arguments that no line of the table changes"
    for argument, change in changes.items():
        value, given = change if isinstance(change, tuple) and isinstance(change[-1], dict) else (change, {})
        before = built(kind, {**base, **given}, x)
        after = built(kind, {**base, **given, argument: value}, x)
        assert before == built(kind, {**base, **given}, x)
        assert before != after, f"{kind}({argument}={value!r}) is the same layer"
    for argument in arguments & OF_INPUT:
        with pytest.raises((ValueError, IndexError)):
            built(kind, {**base, argument: 2 * base[argument]}, x)


# The spellings that were documented before torch's words became the documented ones, and MXNet's.
OTHERS = [
    ("Linear", {"in_features": 4, "out_features": 6}, {"inputs": 4, "outputs": 6}, ROWS),
    ("Conv2D", {"in_channels": 4, "out_channels": 6, "kernel_size": 5, "padding": 1, "dilation": 2},
     {"channels": 4, "filters": 6, "size": 5, "pad": 1, "dilate": 2}, IMAGES),
    ("ConvTranspose2D", {"in_channels": 4, "out_channels": 6, "kernel_size": 5, "padding": 1, "stride": 2,
                         "output_padding": 1},
     {"channels": 4, "filters": 6, "size": 5, "pad": 1, "stride": 2, "adj": 1}, IMAGES),
    ("MaxPool2D", {"kernel_size": 3, "padding": 1}, {"size": 3, "pad": 1}, IMAGES),
    ("AvgPool2D", {"kernel_size": 3, "padding": 1}, {"size": 3, "pad": 1}, IMAGES),
    ("BatchNorm", {"num_features": 4}, {"channels": 4}, IMAGES),
    ("LayerNorm", {"normalized_shape": 9}, {"size": 9}, IMAGES),
    ("Dropout", {"p": 0.25}, {"prob": 0.25}, ROWS),
    ("Embedding", {"num_embeddings": 5, "embedding_dim": 3}, {"words": 5, "size": 3}, WORDS),
    ("RNN", {"input_size": 4, "hidden_size": 5}, {"inputs": 4, "hidden": 5}, STEPS),
    ("LSTM", {"input_size": 4, "hidden_size": 5}, {"inputs": 4, "hidden": 5}, STEPS),
    ("GRU", {"input_size": 4, "hidden_size": 5}, {"inputs": 4, "hidden": 5}, STEPS),
    ("MultiHeadAttention", {"embed_dim": 4, "num_heads": 2}, {"size": 4, "heads": 2}, STEPS),
    ("TransformerBlock", {"embed_dim": 4, "num_heads": 2}, {"size": 4, "heads": 2}, STEPS),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "ours", "others", "x"), OTHERS, ids=[o[0] for o in OTHERS])
def test_older_spellings_build_the_same_layer(kind, ours, others, x):
    assert built(kind, others, x) == built(kind, ours, x)
    own, other = next((o, t) for o, t in zip(ours, others) if o != t)
    with pytest.raises(TypeError, match=f"{kind} is given '{own}' twice: '{other}' is another name for it"):
        getattr(nn, kind)(**ours, **{other: others[other]})


def test_functions_take_the_older_spellings_too():
    w = onp.random.default_rng(1).standard_normal((6, 4, 3, 3)).astype("f")
    for others, ours in (
        (nn.layers.conv2d(IMAGES, w, pad=1, dilate=2), nn.layers.conv2d(IMAGES, w, padding=1, dilation=2)),
        (nn.layers.max_pool(IMAGES, size=3, pad=1), nn.layers.max_pool(IMAGES, kernel_size=3, padding=1)),
        (nn.layers.avg_pool(IMAGES, size=3, pad=1), nn.layers.avg_pool(IMAGES, kernel_size=3, padding=1)),
        (nn.layers.dropout(IMAGES, p=0.5, seed=1), nn.layers.dropout(IMAGES, prob=0.5, seed=1)),
    ):
        assert onp.array_equal(onp.asarray(others), onp.asarray(ours))


@pytest.mark.parametrize("name", nn.optim.RULES)
def test_every_setting_of_an_optimiser_changes_its_steps_and_may_be_given_by_name(name):
    rule = nn.optim.RULES[name]

    def steps(**settings):
        w, config = np.array([1.0, -2.0]), {"learning_rate": 0.5}
        for g in ([50.0, 1.0], [-0.5, -0.5], [0.5, 5.0]):
            w, config = rule(w, np.array(g), config | settings)
        return onp.asarray(w).tolist()

    settings = [p.name for p in inspect.signature(rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert {"learning_rate", "weight_decay"} <= set(settings)
    for setting in settings:
        assert steps(**{setting: 0.3}) != steps(), f"{name} does not read {setting}"
    _, config = rule(np.ones(2), np.ones(2), learning_rate=0.25)
    assert config["learning_rate"] == 0.25 and config == rule(np.ones(2), np.ones(2), {"learning_rate": 0.25})[1] | {
        key: value for key, value in config.items() if hasattr(value, "shape")
    }
    with pytest.raises(TypeError, match=f"{name} has no setting 'quite'"):
        rule(np.ones(2), np.ones(2), {"quite": 1})


SETTINGS = {"gain": 2.0, "value": 3.0, "mu": 1.0, "stdvar": 2.0, "function": onp.ones, "dtype": np.float64}


@pytest.mark.parametrize("name", [n for n in nn.init.__all__ if n != "rule_named"])
def test_every_setting_of_an_initialiser_changes_its_values(name):
    rule = getattr(nn.init, name)

    def drawn(**settings):
        value = rule((3, 4), {"rng": np.random.default_rng(5)}, **settings)
        return value.dtype, onp.asarray(value).tolist()

    settings = [p.name for p in inspect.signature(rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert settings[-2:] == ["dtype", "rng"]
    for setting in settings[:-1]:
        assert drawn(**{setting: SETTINGS[setting]}) != drawn()
    if name not in ("constant", "custom"):
        assert drawn(rng=np.random.default_rng(6)) != drawn()
    given = {}
    rule((3, 4), given)
    assert given == {}, "the config stays the caller's"


# ------------------------------------------------------------------ iterators, augmentations, the solver
def test_every_argument_of_an_iterator_changes_its_batches():
    x, y = onp.arange(14.0).reshape(7, 2), onp.arange(7)

    def batches(**options):
        source = nn.io.NDArrayIter(**{"data": x, "label": y, "batch_size": 3, "seed": 1, **options})
        return [
            ([onp.asarray(a).tolist() for a in b.data + b.label], b.pad)
            for _ in range(2)
            for b in (*source, source.reset())
            if b is not None
        ]

    changes = {
        "data": x + 1, "label": y + 1, "batch_size": 2, "shuffle": True, "last_batch_handle": "discard",
        "transform": lambda x, rng: -x,
    }  # fmt: skip
    assert set(inspect.signature(nn.io.NDArrayIter).parameters) == {*changes, "seed"}
    for argument, value in changes.items():
        assert batches(**{argument: value}) != batches(), argument
    assert batches(shuffle=True, seed=2) != batches(shuffle=True)


X = onp.random.default_rng(0).standard_normal((40, 6)).astype("f")
Y = (X[:, 0] > 0).astype(onp.int64)


def trained(capsys, tmp_path, **options):
    """Everything that can be seen of a training: history, parameters, what is printed, which files there are."""
    for old in tmp_path.iterdir():
        old.unlink()
    options = {"seed": 0, "num_epochs": 3, "update_rule": "sgd", "progress": False, **options}
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2), loss=five_times)
    batches = nn.io.NDArrayIter(X, Y, 5, shuffle=True, seed=0)
    test = options.pop("test_dataiter", nn.io.NDArrayIter(X[::-1] * 3, Y[::-1], 5))
    solver = nn.Solver(net, batches, test, **options)
    history = solver.train()
    printed = capsys.readouterr()
    shown = [line.split(", time")[0] for line in printed.out.splitlines()], bool(printed.err)
    tree = {name: onp.asarray(value).tolist() for name, value in net.tree().items()}
    return history, solver.loss_history, tree, shown, sorted(p.name for p in tmp_path.iterdir())


@pytest.mark.long
def test_every_option_of_solver_changes_the_training(capsys, tmp_path):
    pytest.importorskip("tqdm")
    ticks = []

    class Ticking(nn.callbacks.Callback):
        def on_batch_end(self, solver):
            ticks.append(solver.step)

    saved = {"checkpoint": tmp_path / "a"}
    changes = {  # argument: another value, or (another value, what else is given)
        "init_rule": "he", "init_config": ({"stdvar": 0.5}, {"init_rule": "gaussian"}), "update_rule": "adam",
        "optim_config": {"learning_rate": 0.5}, "lr_decay": 0.5, "num_epochs": 2, "train_acc_num_samples": 0,
        "print_every": 2, "verbose": False, "seed": 1, "metrics": ["accuracy", agreement],
        "monitor": ("loss", {"optim_config": {"learning_rate": 0.9}}),
        "restore_best": (False, {"optim_config": {"learning_rate": 0.9}, "monitor": "val_loss"}),
        "lr_schedule": nn.optim.step_decay(2), "clip_norm": 0.1, "clip_value": 0.01,
        "class_weight": [1.0, 3.0], "precision": "float16", "loss_scale": (2.0**40, {"precision": "float16"}),
        "early_stopping": (1, {"optim_config": {"learning_rate": 0.9}, "num_epochs": 8}), "curves": tmp_path / "a.png",
        "checkpoint": tmp_path / "a", "progress": True, "test_dataiter": None,
    }  # fmt: skip
    with_others = {"callbacks", "tensorboard", "checkpoint_every", "resume", "jit", "mesh"}  # looked at below
    assert set(inspect.signature(nn.Solver).parameters) == {*changes, *with_others, "model", "train_dataiter"}
    for argument, change in changes.items():
        value, given = change if isinstance(change, tuple) else (change, {})
        before = trained(capsys, tmp_path, **given)
        assert trained(capsys, tmp_path, **{**given, argument: value}) != before, argument
    trained(capsys, tmp_path, callbacks=[Ticking()], checkpoint_every=3, **saved)
    assert ticks[-1] == 24


def five_times(x, y, weight=None):
    return 5 * nn.losses.softmax_loss(x, y, weight)


def agreement(predict, y):
    return float(np.mean((predict[:, 1] > 0) == (y > 0)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: npx.convolution(x, x, padding=1), "'padding'; do you mean 'pad'?"),
        (lambda x: npx.convolution(x, x, strides=1), "'strides'; do you mean 'stride'?"),
        (lambda x: npx.deconvolution(x, x, groups=1), "'groups'; do you mean 'num_group'?"),
        (lambda x: npx.pooling(x, kernel_size=2), "'kernel_size'; do you mean 'kernel'?"),
        (lambda x: npx.batch_norm(x, x, x, x, x, epsilon=1), "'epsilon'; do you mean 'eps'?"),
    ],
)
def test_an_option_that_a_function_of_npx_has_not_is_refused_with_the_nearest(call, said):
    with pytest.raises(TypeError) as error:
        call(IMAGES)
    assert said in str(error.value)
    npx.convolution(IMAGES, IMAGES[:, :, :3, :3], workspace=512, cudnn_tune="off")  # how MXNet computes: no matter here


# ------------------------------------------------------------------ functions, augmentations, callbacks, files
SCORES, LABELS, ROWS3 = ROWS, onp.array([1, 3]), {"x": SIGNALS, "gamma": onp.full(9, 2.0), "beta": onp.ones(9)}
W1, W2, W3 = (onp.random.default_rng(n).standard_normal((6, 4) + (3,) * n).astype("f") for n in (1, 2, 3))
OF_CONV = {"b": onp.arange(6.0), "stride": 2, "padding": 1, "dilation": 2, "padding_mode": ("reflect", {"padding": 1})}
OF_BACK = {"b": onp.arange(6.0), "stride": 2, "padding": 1, "output_padding": (1, {"stride": 2}), "dilation": 2}
BACK1, BACK2, BACK3 = (onp.swapaxes(w, 0, 1) for w in (W1, W2, W3))
WEIGHTED = {"weight": {1: 5.0}}
POOLED = {"kernel_size": 3, "stride": 1, "padding": 1}
PER_CHANNEL = {"gamma": onp.arange(4.0), "beta": onp.ones(4)}
KEPT = {"running_mean": (onp.arange(4.0), {"mode": "test"}), "running_var": (onp.arange(1.0, 5.0), {"mode": "test"})}
STATES = {
    "h0": onp.zeros((2, 5), "f"),
    "Wx": onp.ones((4, 20), "f"),
    "Wh": onp.ones((5, 20), "f"),
    "b": onp.ones(20, "f"),
}
# {function: (what it is called with, {argument: another value, or (another value, what else is then given)})}
CALLS = {
    "nn.layers.attention": ({"q": STEPS, "k": STEPS, "v": STEPS}, {"mask": onp.tri(9, dtype=bool)}),
    "nn.layers.avg_pool": ({"x": IMAGES}, POOLED),
    "nn.layers.max_pool": ({"x": IMAGES}, POOLED),
    "nn.layers.batchnorm": ({"x": IMAGES, **PER_CHANNEL},
                            {"mode": "test", "eps": 0.5, "momentum": 0.1, **KEPT}),
    "nn.layers.binary_cross_entropy": ({"x": SCORES, "y": SCORES > 0.5}, {"weight": [1.0, 5.0]}),
    "nn.layers.conv1d": ({"x": SIGNALS, "w": W1}, {**OF_CONV, "groups": (2, {"w": W1[:, :2]})}),
    "nn.layers.conv2d": ({"x": IMAGES, "w": W2}, {**OF_CONV, "groups": (2, {"w": W2[:, :2]})}),
    "nn.layers.conv3d": ({"x": VOLUMES, "w": W3}, {**OF_CONV, "groups": (2, {"w": W3[:, :2]})}),
    "nn.layers.conv_transpose1d": ({"x": SIGNALS, "w": BACK1}, {**OF_BACK, "groups": 2}),
    "nn.layers.conv_transpose2d": ({"x": IMAGES, "w": BACK2}, {**OF_BACK, "groups": 2}),
    "nn.layers.conv_transpose3d": ({"x": VOLUMES, "w": BACK3}, {**OF_BACK, "groups": 2}),
    "nn.layers.dropout": ({"x": IMAGES, "prob": 0.5}, {"mode": "test", "seed": 7}),
    "nn.layers.groupnorm": ({"x": IMAGES, **PER_CHANNEL, "num_groups": 2}, {"eps": 0.5}),
    "nn.layers.instancenorm": ({"x": IMAGES, **PER_CHANNEL}, {"eps": 0.5}),
    "nn.layers.layernorm": (ROWS3, {"eps": 0.5}),
    "nn.layers.huber_loss": ({"x": SCORES, "label": 3 * SCORES}, {"delta": 0.1}),
    "nn.layers.leaky_relu": ({"x": SCORES}, {"slope": 0.5}),
    "nn.layers.linear": ({"x": ROWS, "w": onp.ones((4, 2))}, {"b": onp.ones(2)}),
    "nn.layers.softmax": ({"x": SCORES}, {"axis": 0}),
    "nn.layers.log_softmax": ({"x": SCORES}, {"axis": 0}),
    "nn.layers.lstm_temporal": ({"x": STEPS, **STATES}, {"c0": onp.ones((2, 5), "f")}),
    "nn.layers.one_hot": ({"labels": LABELS, "classes": 4}, {"dtype": onp.int32}),
    "nn.layers.softmax_cross_entropy": ({"prob": onp.abs(SCORES), "label": LABELS}, WEIGHTED),
    "nn.layers.softmax_loss": ({"x": SCORES, "y": LABELS}, WEIGHTED),
    "nn.layers.svm_loss": ({"x": SCORES, "y": LABELS}, WEIGHTED),
    "nn.optim.cosine": ({"steps": 10}, {"floor": 0.5}),
    "nn.optim.linear": ({"steps": 10}, {"floor": 0.5}),
    "nn.optim.step_decay": ({"every": 2}, {"factor": 0.5}),
    "nn.optim.warmup": ({"steps": 2}, {"then": nn.optim.linear(4)}),
    "nn.datasets.digits": ({}, {"test": 0.5, "seed": 3}),
    "nn.augment.Flip": ({}, {"prob": 1.0}),
    "nn.augment.Scale": ({}, {"contrast": 0.0, "brightness": 0.9}),
    "nn.io.DataBatch": ({"data": [ROWS], "label": [LABELS]}, {"pad": 1, "index": LABELS}),
    "nn.Sequential": ({}, {"loss": "svm_loss"}),
    "nn.callbacks.EarlyStopping": ({"monitor": "loss"},
                                   {"patience": 1, "monitor": "accuracy", "min_delta": (0.4, {"patience": 2})}),
}  # fmt: skip
ELSEWHERE = {  # looked at in tests of their own
    "nn.io.NDArrayIter", "nn.Solver", "nn.io.Prefetch", "nn.callbacks.TensorBoard", "nn.callbacks.curves",
    "nn.checkpoint.save", "nn.Symbolic", "nn.LossScale", "nn.QuantizationAware", "nn.quantization_aware",
}  # fmt: skip


def seen(name, result):
    """A result as something to compare: numbers, or what an object does."""
    if name.startswith("nn.optim"):
        return [result(step) for step in range(8)]
    if name.startswith("nn.augment"):
        return onp.asarray(result(IMAGES, np.random.default_rng(0))).tolist()
    if name == "nn.io.DataBatch":
        return result.pad, None if result.index is None else result.index.tolist()
    if name == "nn.Sequential":
        return float(result.loss(SCORES, LABELS))
    if name == "nn.callbacks.EarlyStopping":
        return stopped_after(result)
    results = result if isinstance(result, tuple) else (result,)
    return [(str(a.dtype), onp.asarray(a).tolist()) for a in results if hasattr(a, "dtype")]


def stopped_after(callback):
    """How many epochs a training lasts whose loss goes down in small steps and then up, and whose accuracy stays."""
    solver = types.SimpleNamespace(stopped=False, history={"loss": [], "accuracy": []})
    for epoch, loss in enumerate([1.0, 0.9, 1.1, 0.8, 0.7, 0.9, 0.9, 0.6, 0.5, *[0.6] * 20], 1):
        solver.history["loss"].append(loss)
        solver.history["accuracy"].append(0.5)
        callback.on_epoch_end(solver)
        if solver.stopped:
            return epoch
    return None


def test_every_argument_with_a_default_is_in_a_table():
    rules = {f"nn.optim.{name}" for name in nn.optim.RULES} | {f"nn.init.{name}" for name in nn.init.__all__}
    for name, thing in PUBLIC.items():
        optional = {p.name for p in inspect.signature(thing).parameters.values() if p.default is not p.empty}
        if name in CALLS:
            assert optional == set(CALLS[name][1]), name
        elif optional and name not in rules | ELSEWHERE:
            assert name.rpartition(".")[2] in LAYERS, name


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_of_a_function_changes_what_it_does(name):
    base, changes = CALLS[name]
    if name == "nn.datasets.digits":
        pytest.importorskip("sklearn")

    def run(**options):
        np.random.seed(0)
        return seen(name, PUBLIC[name](**{**base, **options}))

    for argument, change in changes.items():
        value, given = change if isinstance(change, tuple) and isinstance(change[-1], dict) else (change, {})
        changed = run(**given, **{argument: value})
        if argument == "groups" and given:  # the weights of two groups are no weights of one
            with pytest.raises(ValueError):
                run(**given)
        else:
            assert run(**given) == run(**given) != changed, f"{name}({argument}=...)"


def test_every_option_of_fit_changes_the_training(capsys, tmp_path):
    pytest.importorskip("tqdm")

    def fitted(**options):
        model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
        options = {"epochs": 2, "progress": False, **options}
        history = model.fit(X, Y, **options)
        shown = [line.split(", time")[0] for line in capsys.readouterr().out.splitlines()]
        tree = {name: onp.asarray(value).tolist() for name, value in model.tree().items()}
        return history, tree, shown

    changes = {
        "epochs": 3, "batch_size": 8, "validation_data": (X[:9], Y[:9]), "validation_split": 0.5, "optimizer": "sgd",
        "learning_rate": 0.25, "shuffle": False, "transform": lambda x, rng: 2 * x, "seed": 4,
        "optim_config": {"beta1": 0.5}, "train_acc_num_samples": 10, "print_every": 1,
    }  # fmt: skip
    of_solver = set(inspect.signature(nn.Solver).parameters)
    assert set(inspect.signature(nn.ModelBase.fit).parameters) - of_solver <= {*changes, "self", "x", "y"}
    before = fitted()
    for argument, value in changes.items():
        assert fitted(**{argument: value}) != before, argument


def test_the_depth_of_a_prefetch_and_what_a_checkpoint_keeps(tmp_path):
    class Counting(nn.io.NDArrayIter):
        taken = 0

        def next(self):
            self.taken += 1
            return super().next()

    for depth in (1, 4):
        source = Counting(onp.arange(10.0), batch_size=1)
        with nn.io.Prefetch(source, depth=depth):
            pass  # leaving it waits for what was asked for
        assert source.taken <= depth
    with pytest.raises(ValueError, match="at least one batch ready; got depth=0"):
        nn.io.Prefetch(source, depth=0)
    path = tmp_path / "a"
    for options in ({"facts": {"x": 1}}, {}, {"keep_previous": False}):
        nn.checkpoint.save(path, {"w": onp.ones(2)}, **options)
        assert nn.checkpoint.load(path)[1] == options.get("facts")
    assert nn.checkpoint.load(f"{path}.previous")[1] == {"x": 1}, "the last save kept no other"
    figure = nn.callbacks.curves({"loss": [1.0, 0.5]}, path=tmp_path / "a.png")
    assert (tmp_path / "a.png").exists() and figure.axes


def test_callbacks_checkpoints_and_compiled_steps_of_solver(tmp_path):
    """The options of Solver whose effect is not in its numbers."""
    steps, written = [], []

    class Watching(nn.callbacks.Callback):
        def on_batch_end(self, solver):
            steps.append(solver.step)

    def solver(**options):
        batches = nn.io.NDArrayIter(X, Y, 5, seed=0)
        made = nn.Solver(nn.Sequential(nn.Linear(6, 2)), batches, verbose=False, seed=0, **options)
        save = made.save_checkpoint
        made.save_checkpoint = lambda: (written.append(made.step), save())
        return made

    saved = {"checkpoint": tmp_path / "a", "num_epochs": 1}
    solver(**saved, callbacks=[Watching()], checkpoint_every=3).train()
    assert steps == list(range(1, 9)) and written == [3, 6, 8]
    assert len(solver(**saved).train()["loss"]) == len(solver(**saved, resume=True).train()["loss"]) == 1
    assert len(steps) == 8 and written[3:] == [8], "the resumed one had nothing left to do"
    eager, compiled = solver(num_epochs=1), solver(num_epochs=1, jit=True)
    assert compiled.train()["loss"] == pytest.approx(eager.train()["loss"], rel=1e-5)
    assert eager._compute is not compiled._compute
    pytest.importorskip("tensorboard")
    solver(num_epochs=1, tensorboard=tmp_path / "logs").train()
    assert list((tmp_path / "logs").iterdir())


def test_no_option_of_npx_is_without_effect():
    x, w = onp.random.default_rng(0).standard_normal((2, 5)), onp.ones((4, 3), "f")
    for f in (npx.softmax, npx.log_softmax):
        full, first = onp.asarray(f(x)).tolist(), onp.asarray(f(x, length=[3, 2])).tolist()
        assert full != first == onp.asarray(f(x, length=[3, 2], use_length=True)).tolist()
        assert onp.asarray(f(x, length=[3, 2], use_length=False)).tolist() == full
        with pytest.raises(ValueError, match="use_length=True needs length"):
            f(x, use_length=True)
    words = npx.embedding([1, 2], w, input_dim=4, output_dim=3, dtype="float32", sparse_grad=False)
    assert onp.array_equal(onp.asarray(words), w[:2])
    for options, said in (
        ({"input_dim": 5}, r"input_dim=5, and the weight is \[4, 3\]"),
        ({"output_dim": 4}, r"output_dim=4, and the weight is \[4, 3\]"),
        ({"dtype": "float64"}, "dtype=float64, and the weight is float32"),
    ):
        with pytest.raises(ValueError, match=said):
            npx.embedding([1, 2], w, **options)
