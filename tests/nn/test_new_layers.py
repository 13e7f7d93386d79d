"""Convolutions over 1, 2 and 3 axes and their transposes, pooling, normalisations and stacked recurrent layers: torch's
values and gradients, the slopes, and grad, jit, vmap, training, files and devices as with any other layer."""

import pickle

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import nn
from minnp.testing import check_grads

torch = pytest.importorskip("torch", reason="torch's results are what ours are compared with")
F = torch.nn.functional
from test_layers import check, normal, numbers

SPATIAL = {1: (9,), 2: (6, 7), 3: (5, 5, 6)}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
BACK = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
POOLS = {1: (F.max_pool1d, F.avg_pool1d), 2: (F.max_pool2d, F.avg_pool2d), 3: (F.max_pool3d, F.avg_pool3d)}


def layer_of(name, axes, *args, **options):
    return getattr(nn, f"{name}{axes}D")(*args, **options)


def as_function(layer, *names):
    """The layer as a function of x and of its parameters, in float64."""
    layer.init(0)

    def run(x, *values):
        with layer.holding(dict(zip(names, values))):
            return layer(x, mode="train")

    return run, [onp.asarray(layer.tree()[name], onp.float64) for name in names]


# ------------------------------------------------------------------ convolutions
OPTIONS = [
    {}, {"stride": 2}, {"padding": 1}, {"dilation": 2}, {"groups": 2}, {"bias": False}, {"padding": "same"},
    {"padding": "same", "kernel_size": 2}, {"padding": "valid"}, {"kernel_size": 1, "stride": 2},
]  # fmt: skip


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_convolution_over_one_two_and_three_axes_has_torchs_values_and_gradients(axes, options):
    options = {"kernel_size": 3, **options}
    layer = layer_of("Conv", axes, 4, 6, **options)
    run, values = as_function(layer, *(["w", "b"] if options.get("bias", True) else ["w"]))
    theirs = {k: v for k, v in options.items() if k not in ("kernel_size", "bias")}

    def reference(x, w, b=None):
        if theirs.get("padding") == "same" and options["kernel_size"] == 2:  # of which torch warns that it copies
            return CONV[axes](F.pad(x, (0, 1) * axes), w, b)
        return CONV[axes](x, w, b, **theirs)

    check(run, reference, normal(2, 4, *SPATIAL[axes]), *values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_a_padding_mode_says_what_is_outside_the_image(axes, mode):
    options = {"kernel_size": 3, "padding": 2, "padding_mode": mode}
    layer, theirs = layer_of("Conv", axes, 2, 3, **options).init(0), getattr(torch.nn, f"Conv{axes}d")(2, 3, **options)
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(numbers(layer.params["w"])))
        theirs.bias.zero_()
    x = normal(2, 2, *SPATIAL[axes]).astype("f")
    onp.testing.assert_allclose(numbers(layer(x)), numbers(theirs(torch.tensor(x))), rtol=1e-4, atol=1e-5)


def test_sizes_for_each_axis():
    options = {"kernel_size": (3, 1, 2), "stride": (1, 2, 1), "padding": (1, 0, 2), "dilation": (1, 1, 2)}
    run, values = as_function(nn.Conv3D(2, 4, **options), "w", "b")
    theirs = {k: v for k, v in options.items() if k != "kernel_size"}
    check(run, lambda *a: F.conv3d(*a, **theirs), normal(2, 2, 4, 5, 6), *values, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match=r"stride is one number or 3, one for each axis; got \(1, 2\)"):
        nn.Conv3D(2, 4, stride=(1, 2))


BACK_OPTIONS = [
    {}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2}, {"groups": 2},
    {"bias": False},
]  # fmt: skip


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options", BACK_OPTIONS, ids=str)
def test_a_transposed_convolution_has_torchs_values_and_gradients(axes, options):
    layer = layer_of("ConvTranspose", axes, 4, 6, 3, **options)
    run, values = as_function(layer, *(["w", "b"] if options.get("bias", True) else ["w"]))
    theirs = {k: v for k, v in options.items() if k != "bias"}
    x = normal(2, 4, *(n - 2 for n in SPATIAL[axes]))
    check(run, lambda *a: BACK[axes](*a, **theirs), x, *values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"kernel_size": 3, "stride": 1, "padding": 1}], ids=str)
def test_pooling_over_one_two_and_three_axes_has_torchs_values_and_gradients(axes, options):
    size = 2 * 3 * int(onp.prod(SPATIAL[axes]))
    x = onp.random.default_rng(0).permutation(size).reshape(2, 3, *SPATIAL[axes]) / 10.0
    theirs = {"kernel_size": 2, **options}
    for kind, reference in zip(("MaxPool", "AvgPool"), POOLS[axes]):
        check(layer_of(kind, axes, **options), lambda x: reference(x, **theirs), x)  # noqa: B023


def test_the_mean_over_all_places_and_data_of_other_shapes():
    for axes in (1, 2, 3):
        x, over = normal(2, 3, *SPATIAL[axes]), tuple(range(2, 2 + axes))
        check(layer_of("GlobalAvgPool", axes), lambda x: x.mean(over), x)  # noqa: B023
        for name, layer in (
            ("GlobalAvgPool", layer_of("GlobalAvgPool", axes)),
            ("conv", layer_of("Conv", axes, 3, 2).init()),
        ):
            with pytest.raises(ValueError, match=rf"{name}{axes}[Dd] takes \w+ \[N, C, .*\]; got \[2, 3\]"):
                layer(normal(2, 3))


# ------------------------------------------------------------------ normalisation
@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 5), (2, 6, 4, 3), (2, 6, 3, 2, 2)])
def test_group_and_instance_normalisation_have_torchs_values_and_gradients(shape):
    x, vectors = normal(*shape), [normal(6) + 1, normal(6)]
    for groups in (1, 2, 6):
        run, _ = as_function(nn.GroupNorm(groups, 6), "gamma", "beta")
        check(run, lambda x, g, b: F.group_norm(x, groups, g, b), x, *vectors, rtol=1e-6, atol=1e-9)  # noqa: B023
    if len(shape) > 2:
        run, _ = as_function(nn.InstanceNorm(6), "gamma", "beta")
        check(run, lambda x, g, b: F.instance_norm(x, None, None, g, b), x, *vectors, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="groups=4 does not divide 6 channels"):
        nn.GroupNorm(4, 6)


def test_layer_normalisation_over_several_axes():
    run, _ = as_function(nn.LayerNorm((3, 4)), "gamma", "beta")
    theirs = lambda x, g, b: F.layer_norm(x, (3, 4), g, b)
    check(run, theirs, normal(5, 3, 4), normal(3, 4), normal(3, 4), rtol=1e-6, atol=1e-9)


# ------------------------------------------------------------------ recurrent layers
N, T, D, H = 3, 5, 4, 6
# torch's gates are i, f, g, o; ours i, f, o, g
LSTM_ORDER = [*range(2 * H), *range(3 * H, 4 * H), *range(2 * H, 3 * H)]
KINDS = {
    "RNN": (nn.RNN, torch.nn.RNN, {}), "relu": (nn.RNN, torch.nn.RNN, {"nonlinearity": "relu"}),
    "LSTM": (nn.LSTM, torch.nn.LSTM, {}), "GRU": (nn.GRU, torch.nn.GRU, {"reset_after": True}),
}  # fmt: skip
STACKS = [
    {}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True}, {"bias": False},
]  # fmt: skip


def peers(kind, **options):
    """Our layer and torch's, in float64, with the same weights."""
    ours, theirs, own = KINDS[kind]
    layer = ours(D, H, **own, **options)
    for config in layer.configs().values():
        config.update(init_rule="gaussian", init_config={"stdvar": 0.5, "dtype": onp.float64})
    layer.init(1)
    own = {k: v for k, v in own.items() if k != "reset_after"}
    peer = theirs(D, H, batch_first=True, dtype=torch.float64, **own, **options)
    p = {name: numbers(value) for name, value in layer.tree().items()}
    with torch.no_grad():
        for k in range(options.get("num_layers", 1)):
            for way in ("", "_reverse") if options.get("bidirectional") else ("",):
                mine, its = f"_l{k}{way}" if k else way, f"_l{k}{way}"
                for name, place in (("Wx", "weight_ih"), ("Wh", "weight_hh"), ("b", "bias_ih")):
                    if name + mine in p:
                        value = p[name + mine][..., LSTM_ORDER] if kind == "LSTM" else p[name + mine]
                        getattr(peer, place + its).copy_(torch.tensor(value.T))
                if options.get("bias", True):
                    after = onp.concatenate([onp.zeros(2 * H), p["bh" + mine]]) if kind == "GRU" else 0 * p["b" + mine]
                    getattr(peer, "bias_hh" + its).copy_(torch.tensor(after))
    return layer, peer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", STACKS, ids=str)
def test_stacked_and_bidirectional_layers_have_torchs_values_gradients_and_states(kind, options):
    layer, peer = peers(kind, **options)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [normal(count, N, H) for _ in range(2 if kind == "LSTM" else 1)]
    shaped = lambda s: s if count > 1 else s[0]
    check(
        lambda x, *s: layer(x, *map(shaped, s)),
        lambda x, *s: peer(x, s if kind == "LSTM" else s[0])[0],
        normal(N, T, D),
        *states,
        rtol=1e-6,
        atol=1e-9,
    )
    x = normal(N, T, D)
    y, *lasts = layer(x, states=True)
    peer.zero_grad()
    expected, ends = peer(torch.tensor(x))
    onp.testing.assert_allclose(numbers(y), numbers(expected))
    for ours, theirs in zip(lasts, ends if kind == "LSTM" else (ends,), strict=True):
        onp.testing.assert_allclose(numbers(ours), numbers(shaped(theirs)))
    weight = torch.tensor(normal(*y.shape))
    (expected * weight).sum().backward()

    def of_tree(tree):
        with layer.holding(tree):
            return np.sum(layer(x) * weight.numpy())

    gradients = minnp.grad(of_tree)(layer.tree())
    last = [n for n in gradients if n.startswith("Wx")][-1]
    theirs = numbers(getattr(peer, "weight_ih" + (last[2:] if "_l" in last else "_l0" + last[2:])).grad).T
    back = onp.argsort(LSTM_ORDER) if kind == "LSTM" else slice(None)
    onp.testing.assert_allclose(numbers(gradients[last]), theirs[:, back], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_the_last_state_of_each_direction(kind):
    layer = kind(D, H, num_layers=2, bidirectional=True, last=True).init(0)
    x = normal(N, T, D)
    last = numbers(layer(x))
    layer.last = False
    steps = numbers(layer(x))
    onp.testing.assert_array_equal(last, onp.concatenate([steps[:, -1, :H], steps[:, 0, H:]], axis=1))


def test_a_gru_of_cs231n_runs_both_ways_and_in_layers():
    """Each layer and direction is gru_temporal, on the steps in its order."""
    layer = nn.GRU(D, H, num_layers=2, bidirectional=True).init(0)
    given, p = normal(N, T, D), layer.tree()
    x = given
    for k in ("", "_l1"):
        sides = []
        for way in ("", "_reverse"):
            own = [p[name + k + way] for name in ("Wx", "Wh", "b", "Wxh", "Whh", "bh")]
            step = -1 if way else 1
            sides.append(numbers(nn.layers.gru_temporal(x[:, ::step], onp.zeros((N, H), "f"), *own))[:, ::step])
        x = onp.concatenate(sides, axis=-1)
    onp.testing.assert_allclose(numbers(layer(given)), x)


def test_a_stack_generates_step_by_step_what_it_reads_at_once():
    layer = nn.LSTM(D, H, num_layers=2).init(0)
    x = normal(N, T, D).astype("f")
    h = c = np.zeros((2, N, H), np.float32)
    for t in range(T):
        h, c = layer.step(x[:, t], h, c)
    _, hs, cs = layer(x, states=True)
    onp.testing.assert_allclose(numbers(h), numbers(hs), rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(numbers(c), numbers(cs), rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="it has no step"):
        nn.LSTM(D, H, bidirectional=True).init(0).step(x[:, 0], h, c)


def test_dropout_between_layers_acts_in_training_alone():
    layer = nn.LSTM(D, H, num_layers=2, dropout=0.5).init(0)
    x = normal(N, T, D)
    np.random.seed(0)
    assert not onp.array_equal(numbers(layer(x, mode="train")), numbers(layer(x, mode="test")))
    with pytest.raises(ValueError, match="drops between the layers of a stack, and num_layers is 1"):
        nn.LSTM(D, H, dropout=0.5)
    with pytest.raises(ValueError, match="mode must be 'train' or 'test', got None"):
        layer(x)


def test_states_of_another_shape_and_a_layer_count_that_is_none():
    with pytest.raises(ValueError, match=r"LSTM has 4 states \[4, N, 6\]; got \[2, 3, 6\]"):
        nn.LSTM(D, H, num_layers=2, bidirectional=True).init(0)(normal(N, T, D), normal(2, N, H))
    with pytest.raises(TypeError, match="num_layers is a whole number, got True; last=True is given by name"):
        nn.LSTM(D, H, True)


# ------------------------------------------------------------------ as with any other layer
SEQUENCE, IMAGE, VOLUME = (4, 5, 3), (4, 3, 8, 8), (4, 3, 4, 4, 4)
NETS = {
    "Conv1D": (lambda: nn.Conv1D(5, 6, 2, padding="same", padding_mode="circular"), SEQUENCE),
    "Conv2D": (lambda: nn.Conv2D(3, 6, 3, padding=1, dilation=2), IMAGE),
    "Conv3D": (lambda: nn.Conv3D(3, 4, 3, padding=1, stride=2), VOLUME),
    "ConvTranspose1D": (lambda: nn.ConvTranspose1D(5, 6, 3, stride=2), SEQUENCE),
    "ConvTranspose2D": (lambda: nn.ConvTranspose2D(3, 4, 3, stride=2, output_padding=1), IMAGE),
    "ConvTranspose3D": (lambda: nn.ConvTranspose3D(3, 4, 3), VOLUME),
    "MaxPool1D": (lambda: nn.Sequential(nn.Conv1D(5, 6, 1), nn.MaxPool1D()), SEQUENCE),
    "AvgPool3D": (lambda: nn.Sequential(nn.Conv3D(3, 4, 1), nn.MaxPool3D(), nn.AvgPool3D()), VOLUME),
    "GroupNorm": (lambda: nn.Sequential(nn.Conv2D(3, 4, 3), nn.GroupNorm(2, 4)), IMAGE),
    "InstanceNorm": (lambda: nn.Sequential(nn.Conv2D(3, 4, 3), nn.InstanceNorm(4)), IMAGE),
    "RNN": (lambda: nn.RNN(3, 4, 2, bidirectional=True), SEQUENCE),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, bidirectional=True), SEQUENCE),
    "GRU": (lambda: nn.GRU(3, 4, 2, bidirectional=True), SEQUENCE),
    "GRU, reset after": (lambda: nn.GRU(3, 4, 2, bidirectional=True, reset_after=True), SEQUENCE),
}


def flat(net):
    """A net that can be trained on two classes, ending with the numbers of `net`."""
    return nn.Sequential(net, nn.Lambda(lambda y: np.mean(y.reshape(y.shape[0], 2, -1) ** 3, axis=2)))


@pytest.mark.parametrize("name", NETS)
def test_a_layer_is_differentiated_compiled_mapped_trained_and_saved(name, tmp_path):
    make, shape = NETS[name]
    layer, x = make().init(0), onp.random.default_rng(1).standard_normal(shape).astype("f")

    def loss(tree, x):
        with layer.holding(tree):
            return np.mean(np.sin(layer(x, mode="train")))

    tree = layer.tree()
    eager = minnp.grad(loss)(tree, np.array(x))
    compiled = minnp.jit(minnp.grad(loss))
    for _ in range(2):
        for key, value in compiled(tree, np.array(x)).items():
            onp.testing.assert_allclose(numbers(value), numbers(eager[key]), rtol=2e-4, atol=1e-6)
    each = minnp.vmap(lambda one: layer(one[None], mode="test")[0])(np.array(x))
    onp.testing.assert_allclose(numbers(each), numbers(layer(x, mode="test")), rtol=2e-4, atol=1e-5)
    forward, tangent = minnp.jvp(lambda x: layer(x, mode="test"), (np.array(x),), (np.array(x),))
    onp.testing.assert_allclose(numbers(forward), numbers(layer(x, mode="test")), rtol=2e-4, atol=1e-5)
    assert tangent.shape == forward.shape

    net = flat(make())
    history = net.fit(x, onp.arange(4) % 2, epochs=6, learning_rate=0.05, verbose=False, restore_best=False)
    assert history["loss"][-1] < history["loss"][0]
    net.save(tmp_path / "net")
    again = flat(make()).load(tmp_path / "net")
    onp.testing.assert_array_equal(numbers(again.predict(x)), numbers(net.predict(x)))
    same = pickle.loads(pickle.dumps(layer))
    onp.testing.assert_array_equal(numbers(same(x, mode="test")), numbers(layer(x, mode="test")))
    assert same.init(5).tree().keys() == layer.tree().keys()


@pytest.mark.parametrize("name", NETS)
def test_a_layer_runs_on_the_torch_device(name):
    make, shape = NETS[name]
    layer, x = make().init(0), onp.random.default_rng(1).standard_normal(shape).astype("f")

    def loss(tree, x):
        with layer.holding(tree):
            return np.mean(np.sin(layer(x, mode="train")))

    expected, gradients = loss(layer.tree(), np.array(x)), minnp.grad(loss)(layer.tree(), np.array(x))
    device = minnp.Context("cpu", 0, "torch")
    tree = {key: value.to_device(device) for key, value in layer.tree().items()}
    there = np.array(x).to_device(device)
    result = loss(tree, there)
    assert result.context == device
    assert float(result) == pytest.approx(float(expected), rel=1e-4, abs=1e-6)
    for key, value in minnp.grad(loss)(tree, there).items():
        assert value.context == device
        onp.testing.assert_allclose(numbers(value.asnumpy()), numbers(gradients[key]), rtol=1e-3, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["Conv1D", "Conv3D", "ConvTranspose1D", "ConvTranspose3D", "GroupNorm", "LSTM", "GRU"])
def test_second_derivatives(name):
    layers = {
        "Conv1D": (nn.Conv1D(2, 2, 2), (1, 2, 4)), "Conv3D": (nn.Conv3D(1, 2, 2, padding=1), (1, 1, 2, 2, 2)),
        "ConvTranspose1D": (nn.ConvTranspose1D(2, 1, 2, stride=2), (1, 2, 3)),
        "GroupNorm": (nn.GroupNorm(2, 4), (2, 4, 3)), "ConvTranspose3D": (nn.ConvTranspose3D(1, 2, 2), (1, 1, 2, 2, 2)),
        "LSTM": (nn.LSTM(2, 2, 2, bidirectional=True), (1, 2, 2)), "GRU": (nn.GRU(2, 2, reset_after=True), (1, 2, 2)),
    }  # fmt: skip
    layer, shape = layers[name]
    run, values = as_function(layer, *layer.configs())
    check_grads(lambda *a: np.sum(np.sin(run(*a))), (normal(*shape), *values), order=2)
