"""MXNet's symbols as layers, and its iterators as data. Where mxnet is not installed these tests say so."""

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import nn
from minnp.backends import installed

pytestmark = pytest.mark.skipif("mxnet" not in installed(), reason="mxnet is not installed")
RNG = onp.random.default_rng(0)
X = RNG.standard_normal((80, 1, 6, 6)).astype(onp.float32)
Y = (X.mean(axis=(1, 2, 3)) > 0).astype(onp.int64)


@pytest.fixture
def mx():
    from minnp.backends import get

    get("mxnet")
    import mxnet

    return mxnet


def test_a_symbol_is_a_layer(mx):
    net = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Variable("data")), name="fc", num_hidden=5)
    model = nn.Sequential(nn.Symbolic(net, {"data": (16, 1, 6, 6)}), nn.ReLU(), nn.Linear(5, 2)).init(0)
    assert sorted(model.tree()) == ["0.fc_bias", "0.fc_weight", "2.b", "2.w"]
    w, b = (onp.asarray(model.tree()[name]) for name in ("0.fc_weight", "0.fc_bias"))
    ours = onp.asarray(model.steps[0](X[:16]))
    onp.testing.assert_allclose(ours, X[:16].reshape(16, 36) @ w.T + b, rtol=1e-4, atol=1e-5)
    train = nn.io.NDArrayIter(X, Y, 16, shuffle=True, seed=0)
    history = nn.Solver(model, train, num_epochs=15, update_rule="adam", optim_config={"learning_rate": 0.02},
                        verbose=False).train()  # fmt: skip
    assert history["loss"][-1] < 0.5 * history["loss"][0]


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")  # mxnet.io imports scipy.sparse.csr
def test_solver_takes_mxnets_iterator(mx):
    train = mx.io.NDArrayIter(mx.nd.array(X), mx.nd.array(Y), 16, shuffle=False)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    history = nn.Solver(model, train, mx.io.NDArrayIter(X, Y, 16), num_epochs=10, update_rule="adam", verbose=False,
                        optim_config={"learning_rate": 0.02}).train()  # fmt: skip
    assert history["val_accuracy"][-1] > 0.9 and history["loss"][-1] < history["loss"][0]
    assert type(model.tree()["1.w"]) is np.ndarray


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
def test_mxnets_iterators_are_in_nn_io(mx, tmp_path):
    assert all(hasattr(mx.io, name) for name in nn.io.FROM_MXNET)
    onp.savetxt(tmp_path / "x.csv", X.reshape(len(X), -1), delimiter=",")
    onp.savetxt(tmp_path / "y.csv", Y, delimiter=",")
    shapes = {"data_shape": X.shape[1:], "label_shape": (1,)}
    rows = nn.io.CSVIter(data_csv=str(tmp_path / "x.csv"), label_csv=str(tmp_path / "y.csv"), batch_size=8, **shapes)
    batch = next(nn.io.each_batch(rows))
    onp.testing.assert_allclose(onp.asarray(batch.data[0]), X[:8], rtol=1e-5)
    assert onp.asarray(batch.label[0]).ravel().tolist() == Y[:8].tolist()
