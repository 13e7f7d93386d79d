"""Parts of models on other engines, and models as ONNX, run by onnxruntime or by onnx's own evaluator."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import backends, errors, fx, grad, nn, npx

R = onp.random.RandomState(0)
X = R.randn(8, 6).astype("f4")
Y = (X[:, 0] > 0).astype(int)
IMAGES = R.randn(2, 3, 16, 16).astype("f4")
TOKENS = R.randn(2, 5, 16).astype("f4")


class Net(nn.ModelBase):
    def __init__(self) -> None:
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm(8), nn.ReLU())
        self.block2 = nn.Linear(8, 2)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return self.block2(np.tanh(self.block1(x, mode=mode)))

    def loss(self, predict: Any, y: Any) -> Any:
        return nn.losses.softmax_loss(predict, y)


# ------------------------------------------------------------------ one part on another engine
def engines() -> list[str]:
    return ["numpy", *[name for name in ("torch", "mxnet") if name in backends.installed()]]


@pytest.mark.parametrize("engine", ["auto", "numpy", "torch", "mxnet"])
@pytest.mark.parametrize("target", ["block1", "block2", "block1.0"])
def test_a_submodule_runs_on_another_engine_and_gradients_flow(engine: str, target: str) -> None:
    if engine not in ("auto", *engines()):
        pytest.skip(f"{engine} is not installed")
    net = Net().init(0)
    gm = fx.lower(net, target, engine)
    assert list(gm.tree()) == list(net.tree()) and list(gm.aux_tree()) == list(net.aux_tree())
    assert gm.tree()["block1.0.w"] is net.tree()["block1.0.w"]
    onp.testing.assert_allclose(gm(np.array(X), mode="test"), net(np.array(X), mode="test"), rtol=1e-5, atol=1e-6)

    def slopes(module: Any) -> dict:
        def loss(tree: dict) -> Any:
            with module.holding(tree):
                return module.loss(module(np.array(X), mode="test"), Y)

        return grad(loss)(module.tree())

    want, got = slopes(net), slopes(gm)
    for name in want:
        onp.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-6)
    history = gm.fit(X, Y, epochs=5, learning_rate=0.05, verbose=False)["loss"]
    assert history[-1] < history[0]
    again = pickle.loads(pickle.dumps(gm))
    onp.testing.assert_allclose(again(np.array(X), mode="test"), gm(np.array(X), mode="test"), rtol=1e-5, atol=1e-6)


def test_a_part_of_a_graph_runs_on_another_engine() -> None:
    def program(x: Any) -> Any:
        return np.tanh(x) * 2 + np.sin(x)

    gm = fx.symbolic_trace(program)
    lowered = fx.lower(gm, lambda n: n.name in ("tanh", "mul"), "numpy")
    assert any("Lowered" in repr(layer) for _, layer in lowered.children())
    onp.testing.assert_allclose(lowered(np.array(X)), gm(np.array(X)), rtol=1e-6)
    onp.testing.assert_allclose(
        grad(lambda x: np.sum(lowered(x)))(np.array(X)), grad(lambda x: np.sum(program(x)))(np.array(X)), rtol=1e-5
    )


def test_a_function_is_an_engine_and_a_gradient_through_foreign_code_raises() -> None:
    net, calls = Net().init(0), []

    def engine(layer: Any) -> Callable:
        w, b = (onp.asarray(layer.params[k]) for k in ("w", "b"))

        def run(x: Any) -> onp.ndarray:
            calls.append(layer)
            return onp.asarray(x) @ w + b

        return run

    gm = fx.lower(fx.symbolic_trace(net), "block2", engine)
    onp.testing.assert_allclose(gm(np.array(X), mode="test"), net(np.array(X), mode="test"), rtol=1e-5, atol=1e-6)
    assert calls == [net.block2]
    with pytest.raises(errors.TracedValueError):
        grad(lambda x: np.sum(gm(x, mode="test")))(np.array(X))
    mine = fx.lower(net, "block2", lambda layer: lambda x: np.dot(x, layer.params["w"]) + layer.params["b"])
    onp.testing.assert_allclose(
        grad(lambda x: np.sum(mine(x, mode="test")))(np.array(X)),
        grad(lambda x: np.sum(net(x, mode="test")))(np.array(X)),
        rtol=1e-5,
    )


def test_what_cannot_be_lowered_says_so() -> None:
    net = Net().init(0)
    with pytest.raises(ValueError, match="engine='tpu': choose from auto, llvm, numpy"):
        fx.lower(net, "block1", "tpu")
    with pytest.raises(ValueError, match="'block1': the graph was traced through it: give lower the model itself"):
        fx.lower(fx.symbolic_trace(net), "block1")
    with pytest.raises(ValueError, match=r"no call of the layer 'head': it calls block1\.0, block1\.1"):
        fx.lower(net, "head")
    with pytest.raises(ValueError, match="no node for which the target holds"):
        fx.lower(net, lambda n: False)
    with pytest.raises(TypeError, match="an engine gives a callable"):
        fx.lower(net, "block2", lambda layer: 3)


# ------------------------------------------------------------------ ONNX
def evaluated(model: Any, inputs: tuple) -> list[onp.ndarray]:
    """What onnxruntime makes of a model, or without it onnx's own evaluator, which is slow."""
    names = [i.name for i in model.graph.input]
    feed = {name: onp.asarray(x) for name, x in zip(names, inputs, strict=True)}
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, feed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def exported(f: Callable, *inputs: Any) -> Any:
    """The ONNX model of f, its results compared with f's."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'minnp[onnx]'")
    model = fx.to_onnx(f, *inputs)
    options = {"mode": "test"} if isinstance(f, nn.Layer) and f.takes_mode else {}
    want = f(*map(np.array, inputs), **options)
    want = want if isinstance(want, tuple) else (want,)
    got = evaluated(model, inputs)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == onp.asarray(b).dtype and a.shape == onp.shape(b)
        onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    return model


def residual() -> Any:
    inner = [nn.Conv2D(8, 8, 3, padding=1, bias=False), nn.BatchNorm(8), nn.ReLU(), nn.Conv2D(8, 8, 1, groups=2)]
    layers = [nn.Conv2D(3, 8, 3, 2, 1), nn.BatchNorm(8), nn.ReLU(), nn.MaxPool2D(3, 2, 1), nn.Residual(*inner)]
    return nn.Sequential(*layers, nn.AvgPool2D(2), nn.GlobalAvgPool2D(), nn.Linear(8, 10))


MODELS: dict[str, Callable] = {
    "an MLP": lambda: (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)), X),
    "a residual convnet": lambda: (residual(), IMAGES),
    "a folded convnet": lambda: (residual(), IMAGES),
    "a traced net": lambda: (nn.Sequential(nn.Linear(6, 8), nn.BatchNorm(8), nn.Tanh(), nn.Linear(8, 2)), X),
    "a recommender": lambda: (
        nn.Sequential(nn.Linear(6, 4), lambda x: npx.leaky_relu(x, act_type="selu"), nn.Linear(4, 6), nn.Sigmoid()),
        X,
    ),
    "an embedding": lambda: (
        nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2)),
        R.randint(0, 10, (4, 3)),
    ),
    "layer norm": lambda: (nn.Sequential(nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3)), X),
    "attention": lambda: (nn.TransformerBlock(16, 4, causal=True), TOKENS),
    "group norm": lambda: (nn.Sequential(nn.Conv2D(3, 4, 3), nn.GroupNorm(2, 4), nn.InstanceNorm(4)), IMAGES),
    "transposed convolutions": lambda: (nn.ConvTranspose2D(3, 4, 3, 2, 1, output_padding=1), IMAGES),
}


@pytest.mark.parametrize("what", MODELS)
def test_models_export_to_onnx_with_the_same_results(what: str) -> None:
    model, x = MODELS[what]()
    model.init(0)
    if what == "a folded convnet":
        exported(fx.fold_convolutions(fx.capture(lambda x: model(x, mode="test"), x)), x)
    elif what == "a traced net":
        exported(fx.symbolic_trace(model), x)
    else:
        names = {i.name for i in exported(model, x).graph.initializer}
        assert what != "an MLP" or names >= {"0.w", "0.b", "3.w", "3.b"}


FUNCTIONS: dict[str, tuple] = {
    "arithmetic": (lambda x, y: (x * 2 + y / 3 - 1) ** 2 % 7 + x // 2, X, X),
    "dtypes": (lambda x, i: x * i + i.astype("f8").mean(), X, onp.arange(6)),
    "float64": (lambda x: np.exp(x) @ np.log1p(np.abs(x.T)), X.astype(float)),
    "comparisons": (lambda x: np.where((x > 0) & ~(x >= 1), x, -x) + (x != 0), X),
    "reductions": (
        lambda x: (
            x.sum(axis=0),
            x.mean(axis=1, keepdims=True),
            x.max(),
            x.min(axis=(0, 1)),
            np.var(x, axis=0, ddof=1),
        ),
        X,
    ),
    "places": (lambda x: (x.argmax(axis=1), x.argmin(), np.take(x, np.array([0, 2]), axis=1)), X),
    "slices": (lambda x: (x[1:5:2, ::-1], x[-1], x[..., 2], x[None, :, -3:], x[np.array([3, 1])]), X),
    "arrays of places": (lambda x: (x[[0, 2]], x[:, [1, 1, -3]], x[2:, [[1], [0]]], x[..., [2]]), X),
    "shapes": (lambda x: (x.reshape(2, 4, 6).transpose(2, 0, 1), np.concatenate([x, x], 1), np.stack([x, x]), x.T), X),
    "activations": (lambda x: (npx.gelu(x), npx.silu(x), npx.softplus(x), npx.leaky_relu(x), npx.log_softmax(x)), X),
    "inverse functions": (
        lambda x: (
            tuple(f(np.tanh(x)) for f in (np.arcsin, np.arccos, np.arctan, np.arcsinh)) + (np.arccosh(x * x + 1),)
        ),
        X,
    ),
    "functions": (lambda x: (np.tan(x), np.sinh(x), np.cosh(x), np.arctanh(x / 9), np.fabs(x), x.copy("F")), X),
    "rounding": (lambda x: (np.round(x), np.round(x, 2), np.round(x * 90, -1), np.round(x.astype("i4"), 1)), X),
    "truth": (lambda x: (np.any(x > 1, axis=1), (x > -9).all(), np.all(x < 1, 0, keepdims=True), np.isinf(x)), X),
    "moves": (
        lambda x: (np.flip(x, 1), x[::-1], np.flip(x), np.roll(x, 2), np.roll(x, -1, axis=1), np.tile(x, (2, 1))),
        X,
    ),
    "repeats": (lambda x: (np.repeat(x, 2, axis=1), np.repeat(x, 3), np.repeat(x[0], [0, 1, 2, 0, 1, 1])), X),
    "clipping": (lambda x: np.clip(x, -0.5, 1.0) + np.maximum(x, 0) + np.sqrt(np.abs(x)), X),
    "products": (
        lambda x: (np.einsum("ij,kj->ik", x, x), np.dot(x, x.T), np.outer(x[0], x[1]), np.linalg.norm(x, axis=1)),
        X,
    ),
    "scans": (lambda x: (np.cumsum(x, axis=1), np.cumsum(x), np.isnan(x) | (x > 1), np.arange(8) % 3 + x[:, 0]), X),
    "padding": (lambda x: np.pad(x, ((1, 2), (0, 3))), X),
    "results": (lambda x: (x, np.ones(3), x), X),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions_export_to_onnx_with_the_same_results(what: str) -> None:
    f, *inputs = FUNCTIONS[what]
    exported(f, *inputs)


def test_an_exported_model_is_written_to_a_file(tmp_path: Any) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'minnp[onnx]'")
    path = tmp_path / "net.onnx"
    model = fx.to_onnx(Net().init(0), X, path=path)
    assert onnx.load(str(path)) == model
    shapes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input]
    assert shapes == [[8, 6]]


def test_an_operator_that_onnx_lacks_is_named_with_its_line() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'minnp[onnx]'")

    def program(x: Any) -> Any:
        return np.linalg.inv(x.T @ x)

    with pytest.raises(
        errors.BackendUnsupportedError, match=r"node inv\w* \(linalg.inv of float32\[6, 6\]\), written at .*py:\d+ has"
    ):
        fx.to_onnx(program, X)
    with pytest.raises(errors.BackendUnsupportedError, match="no Round of integers"):
        fx.to_onnx(lambda x: np.round(x, -1), onp.arange(30))


def test_without_onnx_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(errors.BackendMissingError, match="pip install onnx"):
        fx.to_onnx(np.tanh, X)
