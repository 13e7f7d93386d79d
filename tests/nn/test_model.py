"""Layers as objects: the parameter tree, initial values, files, and every layer against its function or torch's."""

import threading

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

torch = pytest.importorskip("torch", reason="torch's results are what ours are compared with")
RNG = onp.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(onp.float32)


class Net(nn.ModelBase):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = [nn.ReLU(), nn.Linear(4, 2)]
        self.named = {"norm": nn.BatchNorm(2)}
        self.again = self.first
        self.add_param("scale", (2,), init_rule="constant", init_config={"value": 2.0})
        self.add_aux_param("calls", 0)

    def forward(self, x, mode="test"):
        self.aux_params["calls"] += 1
        x = self.rest[1](self.rest[0](self.first(x)))
        return self.params["scale"] * self.named["norm"](x, mode)

    def loss(self, predict, y):
        return layers.softmax_loss(predict, y)


NAMES = ["scale", "first.w", "first.b", "rest.1.w", "rest.1.b", "named.norm.gamma", "named.norm.beta"]


def test_tree_has_every_parameter_once():
    net = Net()
    assert not net.initialised
    net.init(0)
    assert net.initialised
    assert list(net.tree()) == list(net.configs()) == NAMES
    assert list(net.aux_tree()) == ["calls", "named.norm.running_mean", "named.norm.running_var"]
    assert net.size == 2 + 12 + 4 + 8 + 2 + 2 + 2
    assert all(value.dtype == onp.float32 for value in net.tree().values())


def test_holding_is_undone():
    net = Net().init(0)
    before = net.tree()
    with pytest.raises(ZeroDivisionError), net.holding({name: 2 * value for name, value in before.items()}):
        assert onp.array_equal(onp.asarray(net.params["scale"]), [4, 4])
        raise ZeroDivisionError
    assert all(net.tree()[name] is value for name, value in before.items())


def test_a_thread_that_holds_other_values_waits_for_the_one_that_holds_some():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).init(0)
    own, seen, inside = net.tree(), [], threading.Event()
    other = {name: np.full_like(value, 7) for name, value in own.items()}

    def work():
        inside.set()
        with net.holding(other), net.steps[0].holding({"b": other["0.b"] + 1}):  # again in one thread: it has it
            seen.append(float(net.tree()["0.w"][0, 0]))

    thread = threading.Thread(target=work)
    with net.holding({name: np.full_like(value, 3) for name, value in own.items()}):
        thread.start()
        inside.wait()
        thread.join(0.1)
        assert not seen and net.tree()["0.w"][0, 0] == 3
    thread.join()
    assert seen == [7]
    assert all(net.tree()[name] is value for name, value in own.items())


def test_mistakes_are_explained():
    with pytest.raises(KeyError, match=r"Linear has no parameter 'w'; it has no values yet: call .init"):
        nn.Linear(2, 2)(normal(1, 2))
    with pytest.raises(KeyError, match=r"Net has no params \['nope'\]; it has \['first.b'"):
        Net().init(0).set_tree({"nope": 1})
    with pytest.raises(ValueError, match="Net already has a parameter 'scale'"):
        Net().add_param("scale", (1,))
    with pytest.raises(ValueError, match=r"batchnorm differs between training and testing: .* got None"):
        nn.BatchNorm(3).init()(normal(2, 3))
    with pytest.raises(NotImplementedError, match="Layer must define forward"):
        nn.Layer()()
    with pytest.raises(NotImplementedError, match="ModelBase must define loss"):
        nn.ModelBase().loss(1, 2)


def test_initial_values_do_not_depend_on_other_layers():
    one, two = nn.Sequential(nn.Linear(3, 4)).init(7), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4)).init(7)
    assert onp.array_equal(onp.asarray(one.tree()["0.w"]), onp.asarray(two.tree()["0.w"]))
    assert not onp.array_equal(onp.asarray(two.tree()["0.w"])[:, :3], onp.asarray(two.tree()["1.w"])[:3, :3])
    other = nn.Sequential(nn.Linear(3, 4)).init(8)
    assert not onp.array_equal(onp.asarray(one.tree()["0.w"]), onp.asarray(other.tree()["0.w"]))


def test_save_and_load(tmp_path):
    net = Net().init(0)
    net(normal(5, 3), "train")
    path = net.save(tmp_path / "net")
    assert path.endswith("net.params")
    other = Net().init(1).load(tmp_path / "net")
    x = normal(4, 3)
    assert onp.array_equal(onp.asarray(net(x)), onp.asarray(other(x)))
    with pytest.raises(KeyError, match=r"has no '0.w', which Sequential needs"):
        nn.Sequential(nn.Linear(3, 4)).load(tmp_path / "net")
    nn.Sequential(nn.Linear(3, 4)).init(0).save(tmp_path / "small")
    with pytest.raises(ValueError, match=r"holds '0.w' as \(3, 4\), the model has \(3, 5\)"):
        nn.Sequential(nn.Linear(3, 5)).load(tmp_path / "small")


def test_minpy_model_with_flat_parameters():
    class Old(nn.model.ModelBase):
        def __init__(self):
            super().__init__()
            self.add_param(name="w1", shape=(6, 5)).add_param(name="b1", shape=(5,), init_rule="constant")
            self.add_params({"w2": {"shape": (5, 2)}, "b2": {"shape": (2,), "init_rule": "constant"}})
            self.add_aux_param(name="running_mean", value=None).add_aux_param(name="running_var", value=None)

        def forward(self, X):
            h = layers.relu(layers.affine(X, self.params["w1"], self.params["b1"]))
            return layers.affine(h, self.params["w2"], self.params["b2"])

        def loss(self, predict, y):
            return layers.softmax_loss(predict, y)

    model = Old().init(0)
    assert list(model.params) == ["w1", "b1", "w2", "b2"] == list(model.tree())
    batch = nn.io.DataBatch([normal(4, 2, 3)], [onp.array([0, 1, 1, 0])])
    assert model.forward_batch(batch, "train").shape == (4, 2)


# ------------------------------------------------------------------ each layer
def gradients(net, x, **options):
    """(output, d sum(output^2) / d tree) of a layer."""

    def f(tree):
        with net.holding(tree):
            return np.sum(net(x, **options) ** 2)

    return net(x, **options), minnp.grad(f)(net.tree())


def close(ours, theirs):
    onp.testing.assert_allclose(onp.asarray(ours), theirs.detach().numpy(), rtol=2e-4, atol=2e-5)


def test_linear():
    net = nn.Linear(3, 4).init(0)
    theirs = torch.nn.Linear(3, 4)
    theirs.weight.data, theirs.bias.data = torch.tensor(onp.asarray(net.params["w"]).T.copy()), torch.zeros(4)
    for shape in ((5, 3), (2, 5, 3), (2, 2, 2, 3)):
        x = normal(*shape)
        y, g = gradients(net, x)
        z = theirs(torch.tensor(x))
        theirs.zero_grad()
        (z**2).sum().backward()
        close(y, z)
        close(g["w"], theirs.weight.grad.T)
        close(g["b"], theirs.bias.grad)
    assert list(nn.Linear(3, 4, bias=False).configs()) == ["w"]


def test_convolutional_net_is_torchs():
    net = nn.Sequential(nn.Conv2D(2, 4, 3, pad="same"), nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2D(2),
                        nn.Conv2D(4, 6, 3, stride=2, pad=1, groups=2, bias=False), nn.Tanh(), nn.AvgPool2D(2),
                        nn.GlobalAvgPool2D(), nn.Linear(6, 3)).init(0)  # fmt: skip
    theirs = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                                 torch.nn.MaxPool2d(2), torch.nn.Conv2d(4, 6, 3, 2, 1, groups=2, bias=False),
                                 torch.nn.Tanh(), torch.nn.AvgPool2d(2), torch.nn.AdaptiveAvgPool2d(1),
                                 torch.nn.Flatten(), torch.nn.Linear(6, 3))  # fmt: skip
    names = {"0.w": "0.weight", "0.b": "0.bias", "1.gamma": "1.weight", "1.beta": "1.bias", "4.w": "4.weight",
             "8.w": "9.weight", "8.b": "9.bias"}  # fmt: skip
    parameters = dict(theirs.named_parameters())
    for ours, other in names.items():
        value = onp.asarray(net.tree()[ours])
        parameters[other].data = torch.tensor(value.T.copy() if ours == "8.w" else value)
    x = normal(3, 2, 16, 16)
    y, g = gradients(net, x, mode="train")
    z = theirs(torch.tensor(x))
    (z**2).sum().backward()
    close(y, z)
    for ours, other in names.items():
        expected = parameters[other].grad
        close(g[ours], expected.T if ours == "8.w" else expected)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent(kind):
    net = kind(3, 4).init(0)
    x = normal(2, 5, 3)
    y = net(x)
    assert y.shape == (2, 5, 4)
    last = kind(3, 4, last=True).init(0)
    assert onp.array_equal(onp.asarray(last(x)), onp.asarray(y)[:, -1])
    assert onp.allclose(onp.asarray(net(x, h0=normal(2, 4)))[:, 0], onp.asarray(y)[:, 0]) is False
    wh = onp.asarray(net.params["Wh"])
    for gate in onp.split(wh, wh.shape[1] // 4, axis=1):
        onp.testing.assert_allclose(gate.T @ gate, onp.eye(4), atol=1e-5)
    if kind is nn.LSTM:
        assert onp.asarray(net.params["b"]).tolist() == [0] * 4 + [1] * 4 + [0] * 8
        h, c = onp.zeros((2, 4), "f"), onp.zeros((2, 4), "f")
        for t in range(5):
            h, c = net.step(x[:, t], h, c)
        onp.testing.assert_allclose(onp.asarray(h), onp.asarray(y)[:, -1], rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention_is_torchs(causal, masked):
    net = nn.MultiHeadAttention(6, 3, causal).init(0)
    theirs = torch.nn.MultiheadAttention(6, 3, batch_first=True)
    rows = [onp.asarray(net.tree()[f"{part}.w"]).T for part in ("query", "key", "value")]
    theirs.in_proj_weight.data = torch.tensor(onp.concatenate(rows))
    theirs.out_proj.weight.data = torch.tensor(onp.asarray(net.tree()["out.w"]).T.copy())
    x, mask = normal(2, 4, 6), onp.array([[True] * 4, [True, True, False, False]])
    y = net(x, mask=mask if masked else None)
    z, _ = theirs(*[torch.tensor(x)] * 3, key_padding_mask=torch.tensor(~mask) if masked else None,
                  attn_mask=torch.tensor(~onp.tri(4, dtype=bool)) if causal else None)  # fmt: skip
    close(y, z)
    with pytest.raises(ValueError, match="4 does not divide 6"):
        nn.MultiHeadAttention(6, 4)


def test_transformer_block_is_torchs():
    net = nn.TransformerBlock(6, 2).init(0)
    theirs = torch.nn.TransformerEncoderLayer(6, 2, 24, 0.0, lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
                                              batch_first=True, norm_first=True)  # fmt: skip
    tree = {name: torch.tensor(onp.asarray(value).T.copy()) for name, value in net.tree().items()}
    inner = theirs.self_attn
    inner.in_proj_weight.data = torch.cat([tree[f"attention.{part}.w"] for part in ("query", "key", "value")])
    inner.out_proj.weight.data = tree["attention.out.w"]
    for ours, other in (("wide", theirs.linear1), ("narrow", theirs.linear2)):
        other.weight.data, other.bias.data = tree[f"{ours}.w"], tree[f"{ours}.b"]
    x = normal(3, 5, 6)
    close(net(x), theirs(torch.tensor(x)))


def test_sequential_takes_functions_and_residuals():
    net = nn.Sequential(nn.Flatten(), nn.Residual(nn.Linear(4, 4), nn.Tanh()), lambda x: 2 * x).init(0)
    x = normal(3, 2, 2)
    flat = x.reshape(3, 4)
    w = onp.asarray(net.tree()["1.inner.0.w"])
    onp.testing.assert_allclose(onp.asarray(net(x)), 2 * (flat + onp.tanh(flat @ w)), rtol=1e-5)


def test_embedding_and_dropout():
    net = nn.Embedding(5, 3).init(0)
    words = onp.array([[1, 4]])
    assert onp.array_equal(onp.asarray(net(words)), onp.asarray(net.params["w"])[words])
    x = normal(10, 10)
    assert nn.Dropout(0.5)(x, mode="test") is x
    assert float((np.asarray(nn.Dropout(0.5)(x, mode="train")) == 0).mean()) > 0.2
