"""npx against torch and MXNet where they are installed: values, and gradients through torch's tape."""

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import npx, vjp


def draw(*shape, seed=0):
    return onp.random.RandomState(seed).standard_normal(shape).astype("f4")


def same_as_torch(ours, theirs, *arrays, tol=2e-5):
    """Value and all gradients of ours(*minnp arrays) equal those of theirs(*torch tensors)."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = theirs(*tensors)
    y, pullback = vjp(ours, *map(np.array, arrays))
    close = lambda a, b: onp.testing.assert_allclose(onp.asarray(a), b, rtol=tol, atol=tol * onp.abs(b).max())
    close(y, expected.detach().numpy())
    assert y.dtype == onp.float32
    g = draw(*y.shape, seed=9)
    expected.backward(torch.tensor(g))
    for a, t in zip(pullback(np.array(g)), tensors, strict=True):
        assert a.dtype == onp.float32
        close(a, t.grad.numpy())


CONVOLUTIONS = [
    # data, weight, stride, pad, dilate, groups
    ((3, 4, 9, 8), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((3, 4, 9, 8), (6, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 4, 9, 8), (4, 1, 3, 3), (1, 1), (2, 2), (2, 2), 4),
    ((2, 3, 20), (5, 3, 5), (3,), (2,), (1,), 1),
    ((2, 3, 6, 5, 6), (4, 3, 2, 3, 2), (1, 1, 1), (1, 1, 0), (1, 1, 1), 1),
    ((2, 3, 6, 5, 6), (4, 3, 1, 2, 3), (2, 1, 2), (0, 1, 1), (1, 2, 1), 1),
    ((40, 3, 16, 16), (8, 3, 5, 5), (1, 1), (2, 2), (1, 1), 1),
    ((2, 3, 7, 7), (5, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 8, 7, 7), (3, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution_is_torchs(case):
    torch = pytest.importorskip("torch")
    data, weight, stride, pad, dilate, groups = case
    f = getattr(torch.nn.functional, f"conv{len(stride)}d")
    same_as_torch(
        lambda x, w, b: npx.convolution(x, w, b, stride=stride, pad=pad, dilate=dilate, num_group=groups),
        lambda x, w, b: f(x, w, b, stride=stride, padding=pad, dilation=dilate, groups=groups),
        draw(*data),
        draw(*weight, seed=1),
        draw(weight[0], seed=2),
    )


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_deconvolution_is_torchs(case):
    torch = pytest.importorskip("torch")
    (n, _, *size), weight, stride, pad, dilate, groups = case
    adj = tuple(s - 1 for s in stride)
    f = getattr(torch.nn.functional, f"conv_transpose{len(stride)}d")
    same_as_torch(
        lambda x, w, b: npx.deconvolution(
            x, w, b, stride=stride, pad=pad, dilate=dilate, adj=adj, num_group=groups, no_bias=False
        ),
        lambda x, w, b: f(x, w, b, stride=stride, padding=pad, dilation=dilate, output_padding=adj, groups=groups),
        draw(n, weight[0], *size),
        draw(*weight, seed=1),
        draw(weight[1] * groups, seed=2),
    )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg", "avg without pad"])
@pytest.mark.parametrize(
    "size, kernel, stride, pad", [((7, 8), (3, 2), (2, 2), (1, 1)), ((8, 8), 2, 2, 0), ((9, 7), (3, 3), (1, 2), (1, 0))]
)
def test_pooling_is_torchs(size, kernel, stride, pad, kind, full):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    theirs = {
        "max": lambda x: functional.max_pool2d(x, kernel, stride, pad, ceil_mode=full),
        "avg": lambda x: functional.avg_pool2d(x, kernel, stride, pad, ceil_mode=full),
        "avg without pad": lambda x: functional.avg_pool2d(x, kernel, stride, pad, full, count_include_pad=False),
    }
    ours = lambda x: npx.pooling(
        x,
        kernel,
        kind[:3],
        stride=stride,
        pad=pad,
        pooling_convention="full" if full else "valid",
        count_include_pad=kind != "avg without pad",
    )
    same_as_torch(ours, theirs[kind], onp.maximum(draw(2, 3, *size), 0))  # ties, as after a relu


def test_pooling_of_the_whole_image_and_of_powers():
    torch = pytest.importorskip("torch")
    functional, x = torch.nn.functional, draw(2, 3, 6, 4)
    same_as_torch(
        lambda x: npx.pooling(x, pool_type="max", global_pool=True), lambda t: functional.adaptive_max_pool2d(t, 1), x
    )
    same_as_torch(
        lambda x: npx.pooling(x, pool_type="avg", global_pool=True), lambda t: functional.adaptive_avg_pool2d(t, 1), x
    )
    same_as_torch(
        lambda x: npx.pooling(x, 2, "lp", stride=2, p_value=3), lambda t: functional.lp_pool2d(t.abs(), 3, 2, 2), x
    )


ELEMENTWISE = {
    "relu": lambda f, x: f.relu(x),
    "sigmoid": lambda f, x: f.sigmoid(x),
    "tanh": lambda f, x: f.tanh(x),
    "softrelu": lambda f, x: f.softplus(x, threshold=100),
    "softsign": lambda f, x: f.softsign(x),
    "log_sigmoid": lambda f, x: f.logsigmoid(x),
    "mish": lambda f, x: f.mish(x),
    "silu": lambda f, x: f.silu(x),
    "gelu": lambda f, x: f.gelu(x),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activation_is_torchs(name):
    torch = pytest.importorskip("torch")
    x = onp.concatenate([draw(40) * 3, onp.array([-80, -20, 20, 80], "f4")])
    same_as_torch(lambda x: npx.activation(x, name), lambda t: ELEMENTWISE[name](torch.nn.functional, t), x, tol=1e-6)


@pytest.mark.parametrize("kind", ["leaky", "elu", "selu", "gelu", "prelu"])
def test_leaky_relu_is_torchs(kind):
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    theirs = {
        "leaky": lambda x, a: f.leaky_relu(x, 0.2) + 0 * a.sum(),
        "elu": lambda x, a: f.elu(x, 0.2) + 0 * a.sum(),
        "selu": lambda x, a: f.selu(x) + 0 * a.sum(),
        "gelu": lambda x, a: f.gelu(x) + 0 * a.sum(),
        "prelu": f.prelu,
    }
    ours = lambda x, a: npx.leaky_relu(x, a, act_type=kind, slope=0.2)
    same_as_torch(ours, theirs[kind], draw(4, 3, 5), draw(3, seed=1), tol=1e-6)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_is_torchs(axis):
    torch = pytest.importorskip("torch")
    x = draw(4, 5, 3) * 30
    same_as_torch(lambda x: npx.softmax(x, axis=axis), lambda t: torch.softmax(t, axis), x)
    same_as_torch(lambda x: npx.log_softmax(x, axis=axis), lambda t: torch.log_softmax(t, axis), x)
    same_as_torch(lambda x: npx.softmax(x, axis=axis, temperature=4.0), lambda t: torch.softmax(t / 4, axis), x)


def test_smooth_l1_is_torchs_huber():
    torch = pytest.importorskip("torch")
    theirs = lambda t: torch.nn.functional.smooth_l1_loss(t, torch.zeros_like(t), reduction="none", beta=1 / 4)
    same_as_torch(lambda x: npx.smooth_l1(x, scalar=2.0), theirs, draw(50))


def test_normalisations_are_torchs():
    torch = pytest.importorskip("torch")
    f, x = torch.nn.functional, draw(4, 6, 5, 3) * 2 + 3
    a, b = draw(6, seed=1), draw(6, seed=2)
    running = np.zeros(6, "f4"), np.ones(6, "f4")
    t_mean, t_var = torch.zeros(6), torch.ones(6)
    same_as_torch(
        lambda x, a, b: npx.batch_norm(x, a, b, *running, eps=1e-3, fix_gamma=False, training=True),
        lambda x, a, b: f.batch_norm(x, t_mean, t_var, a, b, training=True, eps=1e-3),
        x, a, b, tol=1e-4,
    )  # fmt: skip
    onp.testing.assert_allclose(onp.asarray(running[0]), t_mean.numpy(), rtol=1e-4)
    n = x.size / 6
    onp.testing.assert_allclose((onp.asarray(running[1]) - 0.9) * n / (n - 1) + 0.9, t_var.numpy(), rtol=1e-4)
    same_as_torch(
        lambda x, a, b: npx.batch_norm(x, a, b, *running, eps=1e-3, fix_gamma=False),
        lambda x, a, b: f.batch_norm(x, torch.tensor(onp.asarray(running[0])), torch.tensor(onp.asarray(running[1])),
                                     a, b, eps=1e-3),
        x, a, b, tol=1e-4,
    )  # fmt: skip
    same_as_torch(
        lambda x, a, b: npx.layer_norm(x, a, b), lambda x, a, b: f.layer_norm(x, (3,), a, b),
        x, a[:3], b[:3], tol=1e-4,
    )  # fmt: skip
    same_as_torch(
        lambda x, a, b: npx.group_norm(x, a, b, 3, eps=1e-5),
        lambda x, a, b: f.group_norm(x, 3, a, b),
        x,
        a,
        b,
        tol=1e-4,
    )
    same_as_torch(
        lambda x, a, b: npx.instance_norm(x, a, b, eps=1e-5),
        lambda x, a, b: f.instance_norm(x, weight=a, bias=b),
        x, a, b, tol=1e-4,
    )  # fmt: skip


def test_attention_is_torchs():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional.scaled_dot_product_attention
    q, k, v = draw(2, 3, 5, 4), draw(2, 3, 6, 4, seed=1), draw(2, 3, 6, 7, seed=2)
    mask = onp.random.RandomState(3).rand(5, 6) > 0.4
    mask[:, 0] = True
    same_as_torch(npx.attention, theirs, q, k, v)
    same_as_torch(lambda *a: npx.attention(*a, mask=mask), lambda *a: theirs(*a, attn_mask=torch.tensor(mask)), q, k, v)
    same_as_torch(
        lambda *a: npx.attention(*a, causal=True), lambda *a: theirs(*a, is_causal=True), q, k[:, :, :5], v[:, :, :5]
    )


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_rnn_is_torchs(mode, bidirectional):
    torch = pytest.importorskip("torch")
    steps, n, inputs, hidden, layers, ways = 4, 3, 5, 6, 2, 1 + bidirectional
    options = {"num_layers": layers, "bidirectional": bidirectional}
    if mode.startswith("rnn"):
        net = torch.nn.RNN(inputs, hidden, nonlinearity=mode[4:], **options)
    else:
        net = getattr(torch.nn, mode.upper())(inputs, hidden, **options)
    names = [name for name, _ in net.named_parameters()]
    order = [n for n in names if "weight" in n] + [n for n in names if "bias" in n]  # MXNet's: weights, then biases
    parameters = onp.concatenate([dict(net.named_parameters())[n].detach().numpy().ravel() for n in order])
    x, h, c = draw(steps, n, inputs), draw(layers * ways, n, hidden, seed=1), draw(layers * ways, n, hidden, seed=2)

    def ours(x, parameters, h, c):
        out, *states = npx.rnn(x, parameters, h, c, mode=mode, state_outputs=True, **options)
        return np.concatenate([np.ravel(out), *map(np.ravel, states)]) + 0 * np.sum(c)

    def theirs(x, parameters, h, c):
        at, given = 0, {}
        for name in order:
            p = dict(net.named_parameters())[name]
            given[name] = parameters[at : at + p.numel()].reshape(p.shape)
            at += p.numel()
        out, states = torch.func.functional_call(net, given, (x, (h, c) if mode == "lstm" else h))
        states = states if mode == "lstm" else (states,)
        return torch.cat([out.ravel(), *(s.ravel() for s in states)]) + 0 * c.sum()

    same_as_torch(ours, theirs, x, parameters, h, c)


def test_rnn_with_lengths_ends_each_sequence_at_its_own_step():
    steps, n, inputs, hidden = 5, 3, 2, 4
    x, lengths = draw(steps, n, inputs), onp.array([5, 2, 3])
    size = 2 * (4 * hidden * (inputs + hidden) + 8 * hidden)
    parameters, h, c = draw(size) * 0.3, draw(2, n, hidden, seed=1), draw(2, n, hidden, seed=2)
    options = {"mode": "lstm", "bidirectional": True, "state_outputs": True}
    out, state, cell = npx.rnn(x, parameters, h, c, sequence_length=lengths, use_sequence_length=True, **options)
    for i, length in enumerate(lengths):
        alone = npx.rnn(x[:length, i : i + 1], parameters, h[:, i : i + 1], c[:, i : i + 1], **options)
        onp.testing.assert_allclose(onp.asarray(out)[:length, i], onp.asarray(alone[0])[:, 0], rtol=1e-5, atol=1e-6)
        assert not onp.asarray(out)[length:, i].any()
        onp.testing.assert_allclose(onp.asarray(state)[:, i], onp.asarray(alone[1])[:, 0], rtol=1e-5, atol=1e-6)
        onp.testing.assert_allclose(onp.asarray(cell)[:, i], onp.asarray(alone[2])[:, 0], rtol=1e-5, atol=1e-6)
