"""sym.np and sym.npx: what NumPy computes, by the operators that MXNet's functions of the same names make."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym

X = onp.random.default_rng(0).uniform(0.5, 2, (3, 4)).astype("f4")
Y = onp.random.default_rng(1).uniform(0.5, 2, (3, 4)).astype("f4")
# Programs of a library with NumPy's functions and two arrays.
PROGRAMS: dict[str, Any] = {
    "unary": lambda np, x, y: np.exp(np.sin(x)) + np.abs(np.log1p(-x / 4)) - np.degrees(np.arctan(y)),
    "operators": lambda np, x, y: (x + y) * 2 - 1.5 / x + 3 % y - x % 0.7 + x**2 - 2**y + 1 - (-x),
    "binary": lambda np, x, y: np.maximum(x, y) + np.minimum(1.2, x) + np.hypot(x, y) + np.arctan2(1.0, y),
    "numbers": lambda np, x, y: x * np.exp(0.0) + np.add(1, 2) + np.subtract(3, x) + np.power(x, 2) + np.power(2, y),
    "comparisons": lambda np, x, y: (
        np.where(x > y, x, y) + np.where(y >= 1, x, 2.0) + np.where(np.less(1.0, x), 0.5, y)
    ),
    "turned comparisons": lambda np, x, y: np.where(np.less(1, x), x, y) + np.where(np.greater_equal(1, x), x, y),
    "reductions": lambda np, x, y: np.sum(x, axis=1) + np.mean(y, axis=(1,)) + np.max(x, axis=1) - y.std(axis=1),
    "methods": lambda np, x, y: x.reshape(4, 3).T.sum(axis=0) + y.transpose(1, 0).mean(axis=1) + x.flatten()[:4],
    "indexing": lambda np, x, y: x[0] + y[-1, 1:3][0] + x[1:, ::2][1, 1] + y[2],
    "lists": lambda np, x, y: np.concatenate([x, y], axis=1)[:, 1:5] + np.stack([x, y])[1] + np.vstack([x, y])[:3],
    "parts": lambda np, x, y: np.split(x, 2, axis=1)[1] + np.hsplit(y, [2])[0],
    "shapes": lambda np, x, y: np.expand_dims(x, 1)[:, 0] + np.swapaxes(y, 0, 1).reshape(3, 4) + np.ravel(x)[0],
    "products": lambda np, x, y: np.matmul(x, y.T) + np.tensordot(x, y, axes=([1], [1])) + np.dot(x, y.T),
    "einsum": lambda np, x, y: np.einsum("ij,kj->ik", x, y) + np.tensordot(x, y.T, axes=1),
    "choosing": lambda np, x, y: np.clip(x, 0.7, None) + np.clip(y, 0.7, 1.5) + np.take(y, np.argsort(x[0]), axis=1),
    "sorting": lambda np, x, y: np.sort(x, axis=0) + np.tril(y) + np.flip(x, 1) + np.squeeze(np.expand_dims(y, 0)),
    "new": lambda np, x, y: x + np.zeros((3, 1)) + np.ones((1, 4)) + np.arange(4) + np.full((3, 1), 2.5) + np.eye(3, 4),
    "like": lambda np, x, y: np.ones_like(x) + np.zeros_like(y) + np.full_like(x, 3),
    "more lists": lambda np, x, y: np.append(x, y, axis=1)[:, 2:6] + np.append(x, y)[3] + np.array_split(x, 3)[1],
    "unequal parts": lambda np, x, y: np.array_split(x, 2)[0] + np.array_split(y, 2)[1],
    "quarter turns": lambda np, x, y: np.rot90(x) + np.rot90(y, 3) + np.rot90(x, k=-1, axes=(1, 0)),
    "quantiles": lambda np, x, y: (
        np.percentile(x, 30, axis=1) + np.quantile(y, 0.7) + np.quantile(x, 0.5, axis=(0,))[0]
    ),
    "products of all": lambda np, x, y: np.inner(x, y) + np.outer(x, y)[:3, :3] + np.vdot(x, y),
    "turned": lambda np, x, y: np.fliplr(x) + np.flipud(y) + np.round(x, 1),
    "inserted": lambda np, x, y: np.insert(x, 1, 2.0, axis=1)[:, :4] + np.insert(x, slice(0, 2), y[:2], axis=0)[:3],
    "histogram": lambda np, x, y: np.histogram(x, bins=4, range=(0, 2))[1][:4] + y,
    "averages": lambda np, x, y: (
        np.average(x) + np.average(x, 0) + np.average(x, axis=0, weights=y) + np.average(x, weights=y, returned=True)[1]
    ),
    "counts": lambda np, x, y: (
        np.bincount(np.argsort(x[0])) + np.bincount(np.argsort(x[0]), y[0]) + np.bincount(np.argsort(x[0]), minlength=4)
    ),
    "deleted": lambda np, x, y: (
        np.delete(x, 1, 0)[0] + np.delete(x, slice(0, 2), axis=0) + np.delete(x, np.argsort(y[:, 0])[:2], 0)
    ),
    "differences": lambda np, x, y: np.ediff1d(x) + np.ediff1d(y, 1.0)[1:] + np.ediff1d(x, y[0, :2], 2.5)[:11],
    "more differences": lambda np, x, y: np.ediff1d(x, to_begin=y[0])[4:] + np.ediff1d(x, y[0], y[1])[4:15],
    "flipped": lambda np, x, y: np.flip(x) + np.flip(y, (0, 1)) + np.flip(x, 1),
    "spaced": lambda np, x, y: x * np.linspace(0, 1, 4) + np.linspace(0, 1)[:4] + np.linspace(1, 2, 4, False),
    "padded": lambda np, x, y: np.pad(x, ((1, 2), (0, 1))) + np.pad(y, ((1, 2), (0, 1)), "edge"),
    "inverses": lambda np, x, y: np.linalg.pinv(x) + np.linalg.pinv(y, 1e-3),
    "absolute": lambda np, x, y: np.fabs(x - 1) + np.abs(y - 1) + np.absolute(x),
    "norms": lambda np, x, y: np.linalg.norm(x, axis=1) + np.linalg.norm(y) + np.linalg.det(np.matmul(x, y.T)),
}

VALUES_SAY = {"counts", "deleted"}  # what shape the result has


def symbols(library: Any) -> tuple[Any, Any]:
    return library.Variable("x").as_np_ndarray(), library.Variable("y").as_np_ndarray()


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_are_numpys(name: str) -> None:
    net = PROGRAMS[name](sym.np, *symbols(sym))
    given = {n: np.array({"x": X, "y": Y}[n]) for n in net.list_arguments()}
    expected = PROGRAMS[name](onp, X, Y)
    assert type(net) is type(symbols(sym)[0])
    if name not in VALUES_SAY:
        assert net.infer_shape(**{n: a.shape for n, a in given.items()})[1] == [expected.shape]
    onp.testing.assert_allclose(net.eval(**given)[0], expected, rtol=1e-4, atol=1e-5)


def said(node: Any) -> dict:
    """A node's parameters: without what changes no result, and `is_int`, which MXNet takes from the wrong operand."""
    kept = {n: v for n, v in node.parameters.items() if n != "is_int" and not node.operator.parameters[n].hint}
    if node.operator is not None and node.operator.name == "slice":
        kept["step"] = [n for n in kept["step"] or () if n not in (None, 1)]
    return kept


@pytest.mark.skipif(
    "mxnet" not in minnp.backends.installed(), reason="MXNet's symbols are what these are compared with"
)
@pytest.mark.host("MXNet makes the symbols")
@pytest.mark.parametrize("name", PROGRAMS)
def test_symbols_are_mxnets(name: str) -> None:
    import mxnet as mx

    with mx.util.np_shape(True), mx.util.np_array(True):
        theirs = sym.load_json(PROGRAMS[name](mx.sym.np, *symbols(mx.sym)).tojson())
    ours = PROGRAMS[name](sym.np, *symbols(sym))
    for a, b in zip(ours.nodes, theirs.nodes, strict=True):
        assert a.name.rstrip("0123456789") == b.name.rstrip("0123456789")
        assert a.operator is b.operator and said(a) == said(b)
        assert [(n.operator, i) for n, i in a.inputs] == [(n.operator, i) for n, i in b.inputs]


def test_layers_and_random_numbers() -> None:
    x = sym.Variable("x").as_np_ndarray()
    net = sym.npx.softmax(sym.npx.fully_connected(sym.npx.relu(x), num_hidden=3, name="fc"), axis=-1)
    assert net.list_arguments() == ["x", "fc_weight", "fc_bias"] and (net + 1).infer_shape(x=(2, 5))[1] == [(2, 3)]
    drawn = sym.np.random.normal(x, 0.5, size=(400, 3)) + sym.np.random.uniform(high=2.0, size=(400, 3))
    y = drawn.eval(x=np.array([0.0, 10.0, -10.0]))[0]
    assert abs(y.mean(0) - onp.array([1, 11, -9])).max() < 0.2
    drawn = sym.np.random
    for made, mean in (
        (drawn.randint(3, size=(500,)), 1), (drawn.randint(2, 5, size=500), 3), (drawn.rand(20, 25), 0.5),
        (drawn.lognormal(0.0, 0.5, size=(500,)), 1.133), (drawn.chisquare(3.0, size=(500,)), 3 / 4),
        (drawn.beta(2.0, 2.0, size=(500,)), 0.5),
    ):  # fmt: skip
        assert abs(made.eval()[0].mean() - mean) < 0.2
    assert "exp" in dir(sym.np) and "relu" in dir(sym.npx) and "normal" in dir(sym.np.random)


def test_functions_that_mxnet_makes_of_numpy_itself() -> None:
    x, y = symbols(sym)
    given = {"x": np.array(X), "y": np.array(Y)}
    for make in (
        lambda np, x, y: np.resize(x, (5, 2)),
        lambda np, x, y: np.resize(x, 3),
        lambda np, x, y: np.pad(x, ((1, 2), (0, 1)), constant_values=3.0),
    ):
        net = make(sym.np, x, y)
        assert onp.allclose(net.eval(**{n: given[n] for n in net.list_arguments()})[0], make(onp, X, Y))
    places = sym.np.unravel_index(x, (2, 4))
    assert places.infer_shape(x=(3,))[1] == [(2, 3)] and onp.array_equal(
        places.eval(x=np.array([0, 5, 7]))[0], onp.stack(onp.unravel_index([0, 5, 7], (2, 4)))
    )
    like = sym.np.empty_like(x, dtype="int32")
    assert like.eval(x=given["x"])[0].dtype == "int32" and like.infer_shape(x=(2, 3))[1] == [(2, 3)]
    cov = np.array([[2.0, 1.0], [1.0, 3.0]])
    drawn = sym.np.random.multivariate_normal(x, y, size=(4000,))
    assert drawn.infer_shape(x=(2,), y=(2, 2))[1] == [(4000, 2)]
    z = onp.asarray(drawn.eval(x=np.array([1.0, 5.0]), y=cov)[0])
    assert abs(z.mean(0) - [1, 5]).max() < 0.2 and abs(onp.cov(z.T) - cov).max() < 0.4
    net = sym.np.resize(x, 3).bind(None, {"x": given["x"]}, {"x": np.zeros((3, 4))})
    net.forward(is_train=True)
    with pytest.raises(NotImplementedError, match="resize has no gradient"):
        net.backward(np.ones(3))


def test_regions_that_are_none() -> None:
    for name, width, parameters in (
        ("ROIAlign", 5, {"pooled_size": (2, 2)}), ("RROIAlign", 6, {"pooled_size": (2, 2)}),
        ("PSROIPooling", 5, {"pooled_size": 2, "output_dim": 1}),
        ("DeformablePSROIPooling", 5, {"pooled_size": 2, "output_dim": 1, "group_size": 2, "no_trans": True}),
    ):  # fmt: skip
        net = getattr(sym.contrib, name)(sym.Variable("x"), sym.Variable("rois"), spatial_scale=1.0, **parameters)
        assert net.eval(x=np.ones((1, 4, 5, 5)), rois=np.zeros((0, width)))[0].shape[0] == 0


def test_random_numbers_of_npx_and_choices() -> None:
    x, _ = symbols(sym)
    drawn, more = sym.npx.random, sym.np.random
    low = np.array([0.0, 10.0])
    for made, shape, mean in (
        (drawn.bernoulli(0.3, size=(500,)), (500,), 0.3),
        (drawn.bernoulli(logit=0.0, size=500), (500,), 0.5),
        (drawn.bernoulli(x / 20, size=(500, 2)), (500, 2), onp.array([0, 0.5])),
        (drawn.uniform_n(x, x + 2, batch_shape=(500,)), (500, 2), onp.array([1, 11])),
        (drawn.normal_n(0.0, 0.5, batch_shape=(500,)), (500,), 0),
        (more.choice(3, 500), (500,), 1),
        (more.choice(x, (500,)), (500,), 5),
        (more.choice(x, 500, p=x / 10), (500,), 10),
        (more.power(1.0, 500), (500,), 0.5),
    ):
        y = made.eval(**({"x": low} if made.list_arguments() else {}))[0]
        assert y.shape == shape and abs(onp.asarray(y).mean(0) - mean).max() < 0.8
    assert sym.npx.image.resize(x, (3, 4)).infer_shape(x=(5, 6, 3))[1] == [(4, 3, 3)]
    with pytest.raises(ValueError, match="expected one of both"):
        drawn.bernoulli()


def test_errors_and_the_way_back() -> None:
    x, _ = symbols(sym)
    assert type(x.as_nd_ndarray()) is sym.Symbol and x.as_np_ndarray() is x
    assert (x.as_nd_ndarray() + 1).name.startswith("_plus")
    for wrong, error, match in (
        (lambda: x["a", 0], IndexError, "indexed by ints, slices"),
        (lambda: x[::0], ValueError, "step cannot be zero"),
        (lambda: list(x), TypeError, "no length that is known"),
        (lambda: x + "a", TypeError, "expected a symbol or a number"),
        (lambda: sym.np.exp(x, out=x), TypeError, "no out="),
        (lambda: sym.np.histogram(x, 10), TypeError, "expected a number with range="),
        (lambda: sym.np.percentile(x, 10, overwrite_input=True), TypeError, "leave out overwrite_input="),
        (lambda: sym.np.nothing, AttributeError, r"minnp.symbol.np has no 'nothing'"),
    ):
        with pytest.raises(error, match=match):
            wrong()
    halves = sym.np.split(x, 2)
    assert [h.name for h in halves] == [halves[-1].name] * 2 and halves[1].list_outputs() == [halves.list_outputs()[1]]
