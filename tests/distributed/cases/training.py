"""Training on a mesh against training in one process with the whole batch."""

import contextlib
import io
import os
import tempfile

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp import distributed, nn, npx
from minnp.distributed import training
from minnp.errors import MeshError, TracedValueError


def close(a, b, rtol=1e-6, atol=1e-7, what=""):
    a, b = minnp.core.rows.pytree.tree_leaves(a), minnp.core.rows.pytree.tree_leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        onp.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=what)
        assert x.dtype == y.dtype and x.shape == y.shape


def data(n, inputs=6, dtype="float64"):
    rng = onp.random.default_rng(n)
    return rng.standard_normal((n, inputs)).astype(dtype), rng.integers(0, 3, n)


def net(params, x, y):
    for w, b in params["layers"]:
        x = np.tanh(x @ w + b)
    x = x * params["scale"]
    return np.mean((x.sum(1) - y) ** 2)


def parameters(dtype="float64", width=6):
    rng = onp.random.default_rng(7)
    layer = lambda: (np.array(rng.standard_normal((width, width)), dtype), np.array(rng.standard_normal(width), dtype))
    return {"layers": [layer() for _ in range(3)], "scale": np.float64(1.5), "unused": np.ones(2, "f4")}


def gradients(mesh):
    """Of shares of 11 examples, in buckets of one array, of some, and of all; to the bit alike on all ranks."""
    x, y = data(11)
    part = mesh.part(11)
    for dtype in ("float64", "float32"):
        params = parameters(dtype)
        expected = minnp.value_and_grad(net)(params, x, y)
        for bucket in (1e-6, 3e-4, 25):
            step = distributed.value_and_grad(net, mesh, weight=lambda p, x, y: len(x), bucket=bucket)
            value, grads = step(params, x[part], y[part])
            close((value, grads), expected, 1e-4 if dtype == "float32" else 1e-10, what=f"{dtype} {bucket}")
            for g in minnp.core.rows.pytree.tree_leaves((value, grads)):
                assert onp.array_equal(mesh.all_reduce(g, "max"), g) and isinstance(g, np.ndarray)
    for g in minnp.core.rows.pytree.tree_leaves(grads):
        g += 1  # ours, writable


def facts_of_the_call(mesh):
    """Aux, several arguments, equal weights, complex parameters, results of several numbers."""
    f = lambda a, b, x: (np.mean(np.abs(a * x) ** 2) + np.sum(b * b), {"n": x.shape[0]})
    a, b, x = np.array([1.0 + 2j, 3.0]), np.ones(2), np.arange(2.0) + mesh.rank
    (value, aux), (ga, gb) = distributed.value_and_grad(f, mesh, (0, 1), has_aux=True)(a, b, x)
    assert aux == {"n": 2}
    whole = [minnp.value_and_grad(f, (0, 1), has_aux=True)(a, b, onp.arange(2.0) + r) for r in range(mesh.size)]
    close(value, np.mean(np.stack([v for (v, _), _ in whole])))
    close(ga, sum(g for _, (g, _) in whole) / mesh.size)
    close(gb, 2 * b)
    long = distributed.value_and_grad(lambda w: w * np.arange(100.0) * (mesh.rank + 1), mesh)(2.0)
    scale = (mesh.size + 1) / 2
    close(long[0], 2.0 * np.arange(100.0) * scale)
    close(long[1], np.asarray(4950.0 * scale))


def on_the_way(mesh):
    """A bucket is sent while the walk backwards goes on."""
    if mesh.size == 1:
        return
    events = []

    @minnp.custom_vjp
    def first(w):
        return w * 2.0

    first.defvjp(lambda w: (w * 2.0, None), lambda saved, g: (events.append("first") or 2.0 * g,))
    send = training.Buckets.send
    training.Buckets.send = lambda self, b, grads: (events.append(f"bucket {b}"), send(self, b, grads))
    try:
        f = lambda params: np.sum(first(params[0]) * params[1] * params[2])
        _, grads = distributed.value_and_grad(f, mesh, bucket=1e-6)([np.ones(9), np.ones(9), 3 * np.ones(9)])
    finally:
        training.Buckets.send = send
    assert events == ["bucket 0", "bucket 1", "first", "bucket 2"]
    close(grads, [6 * np.ones(9), 6 * np.ones(9), 2 * np.ones(9)])


def other_ways(mesh):
    """Ranks whose programs use the parameters in another order."""
    f = lambda params: np.sum(params[0] * params[1] if mesh.rank else params[1] * params[0] + 0 * np.sin(params[0]))
    if mesh.rank == 1:
        f = lambda params: np.sum(np.exp(params[1]) * 0 + params[1] * params[0])
    f.__name__ = "f"
    _, grads = distributed.value_and_grad(f, mesh, bucket=1e-6)([2 * np.ones(9), np.ones(9)])
    close(grads, [np.ones(9), 2 * np.ones(9)])


def accumulation(mesh):
    x, y = data(12)
    mine = mesh.part(12)
    x, y = x[mine], y[mine]
    params = parameters()
    step = distributed.value_and_grad(net, mesh)
    with step.no_sync():
        value, g1 = step(params, x[:2], y[:2])
        close((value, g1), minnp.value_and_grad(net)(params, x[:2], y[:2]))
        _, g2 = step(params, x[2:], y[2:])
    total = [
        [2 * a[0] + (len(x) - 2) * b[0], 2 * a[1] + (len(x) - 2) * b[1]] for a, b in zip(g1["layers"], g2["layers"])
    ]
    mean = step.average([[a / len(x) for a in pair] for pair in total], weight=len(x))
    expected = minnp.grad(net)(params, *data(12))["layers"]
    close(mean, [list(pair) for pair in expected])
    with pytest.raises(TypeError, match="float and complex"):
        step.average([np.arange(3)])


def other_parameters(mesh):
    if mesh.size == 1:
        return
    step = distributed.value_and_grad(lambda p: np.sum(p[1]) + np.sum(p[0]), mesh)
    with pytest.raises(MeshError, match=r"parameter 1 is float64\[3\] on rank 0, and float64\[4\] on rank 1"):
        step([np.ones(2), np.ones(3 + (mesh.rank == 1))])
    assert step([np.ones(2), np.ones(3)])[0] == 5.0
    with pytest.raises(ValueError, match="nothing to average"):
        distributed.value_and_grad(lambda p: np.sum(p), mesh, weight=lambda p: 0)(np.ones(2))
    with pytest.raises(TracedValueError, match="outside its arguments"):
        minnp.grad(lambda z: distributed.value_and_grad(lambda p: np.sum(p) * z, mesh)(np.ones(2))[0])(1.0)


def compiled(mesh):
    """Under jit, and differentiated again."""
    x, y = data(11)
    part = mesh.part(11)
    params = parameters()
    step = distributed.value_and_grad(net, mesh, weight=lambda p, x, y: len(x))
    expected = minnp.value_and_grad(net)(params, x, y)
    jitted = minnp.jit(step)
    for _ in range(3):
        close(jitted(params, x[part], y[part]), expected, 1e-10)
    w = params["layers"][0][0]
    inner = lambda w, x: np.mean(np.tanh(x @ w) ** 2)
    twice = lambda w, x, derive: np.sum(derive(w, x)[1] ** 2)
    g = minnp.grad(twice)(w, x[part], distributed.value_and_grad(inner, mesh, weight=lambda w, x: len(x)))
    whole = minnp.grad(twice)(w, x, minnp.value_and_grad(inner))
    close(mesh.all_reduce(g) / mesh.size, whole, 1e-9)


class Net(nn.ModelBase):
    """Batch norm over [N, C] and over images, and a loss of the batch."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(1, 4, 3), nn.BatchNorm(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm(8), nn.Tanh(),
            nn.Dropout(dropout), nn.Linear(8, 3),
        )  # fmt: skip

    def forward(self, x, mode):
        return self.body(x, mode=mode)

    def loss(self, predict, y, weight=None):
        return nn.losses.softmax_loss(predict, y, weight)


def images(n):
    rng = onp.random.default_rng(n)
    y = rng.integers(0, 3, n)
    x = rng.standard_normal((n, 1, 6, 6)) + y[:, None, None, None]
    return x.astype("f4"), y


def trained(mesh, n=37, batch=10, dropout=0.0, epochs=3, last="keep", model=None, seed=3, **options):
    x, y = images(n)
    xt, yt = images(23)
    model = model or Net(dropout)
    train = nn.io.NDArrayIter(x, y, batch, shuffle=True, last_batch_handle=last, seed=seed)
    solver = nn.Solver(
        model, train, nn.io.NDArrayIter(xt, yt, 9), num_epochs=epochs, seed=1, verbose=False, progress=False, mesh=mesh,
        **options,
    )  # fmt: skip
    solver.train()
    return solver


CURVES = [
    {"update_rule": "sgd_momentum", "optim_config": {"learning_rate": 0.1}},
    {"update_rule": "adam", "clip_norm": 0.5, "class_weight": [1.0, 3.0, 0.5], "last": "pad"},
    {"optim_config": {"learning_rate": 0.1}, "jit": True, "epochs": 2},
    {"optim_config": {"learning_rate": 0.1}, "batch": 4, "n": 13, "epochs": 2, "class_weight": [1.0, 3.0, 0.5]},
]


def curves(mesh):
    """The loss of every step, what is measured, and the parameters: those of one process with the whole batch."""
    for options in CURVES:
        one, many = trained(None, **options), trained(mesh, **options)
        tolerance = {"rtol": 2e-3, "atol": 1e-4}
        onp.testing.assert_allclose(many.loss_history, one.loss_history, **tolerance, err_msg=str(options))
        assert many.history.keys() == one.history.keys()
        for name, values in one.history.items():
            onp.testing.assert_allclose(many.history[name], values, **tolerance, err_msg=name)
        for tree in ("tree", "aux_tree"):
            for name, value in getattr(one.model, tree)().items():
                mine = getattr(many.model, tree)()[name]
                # a bias before a batch norm does nothing: its gradient is rounding, which Adam makes steps of
                if options.get("update_rule") != "adam" or name not in ("body.0.b", "body.4.b"):
                    onp.testing.assert_allclose(mine, value, rtol=1e-2, atol=2e-3, err_msg=name)
                assert mine.dtype == value.dtype
                assert onp.array_equal(mesh.all_reduce(mine, "max"), mine), name


def statistics(mesh):
    """What layers keep of a batch is of the whole of it: averages of symbols and of npx, ranges of quantised layers."""
    symbol = sym.BatchNorm(sym.FullyConnected(sym.Variable("x"), num_hidden=5, name="fc"), name="bn", fix_gamma=False)

    class OfNpx(nn.Layer):
        def __init__(self):
            super().__init__()
            self.add_aux_param("mean", np.zeros(6, "f")).add_aux_param("var", np.ones(6, "f"))

        def forward(self, x, mode=None):
            kept = self.aux_params["mean"].copy(), self.aux_params["var"].copy()
            y = npx.batch_norm(x, np.ones(6, "f"), np.zeros(6, "f"), *kept, training=mode == "train")
            self.aux_params.update(mean=kept[0], var=kept[1])
            return y

    nets = [
        lambda: nn.Sequential(nn.Symbolic(symbol, {"x": (10, 6)}), nn.Linear(5, 3)),
        lambda: nn.Sequential(OfNpx(), nn.Linear(6, 3)),
        lambda: nn.quantization_aware(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).init(0)),
    ]
    x, y = data(41, dtype="float32")
    options = {"epochs": 2, "batch_size": 10, "optimizer": "sgd", "learning_rate": 0.2, "verbose": False}
    for make in nets:
        one, many = make(), make()
        expected, found = one.fit(x, y, **options), many.fit(x, y, mesh=mesh, **options)
        onp.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
        assert many.aux_tree().keys() == one.aux_tree().keys() != set()
        for name, value in one.aux_tree().items():
            onp.testing.assert_allclose(many.aux_tree()[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        onp.testing.assert_allclose(many.predict(x), one.predict(x), rtol=1e-3, atol=1e-5)


def half_precision(mesh):
    options = {"precision": "float16", "optim_config": {"learning_rate": 0.05}}
    one, many = trained(None, **options), trained(mesh, **options)
    onp.testing.assert_allclose(many.loss_history, one.loss_history, rtol=3e-2, atol=3e-3)
    assert many.loss_scale.value == one.loss_scale.value


def streams(mesh):
    """Dropout differs from rank to rank, the parameters do not; unseeded iterators and models are brought together."""
    onp.random.seed(mesh.rank)
    np.random.seed(100 + mesh.rank)
    model = Net(0.5)
    model.init(mesh.rank)
    solver = trained(mesh, model=model, seed=None, epochs=1, optim_config={"learning_rate": 0.1})
    drawn = mesh.all_gather(np.random.random(1)).tolist()
    assert len(set(drawn)) == mesh.size
    for value in solver.model.tree().values():
        assert onp.array_equal(mesh.all_reduce(value, "max"), value)
    lengths = mesh.all_gather([solver.step]).tolist()
    assert len(set(lengths)) == 1


def printing(mesh):
    out = io.StringIO()
    x, y = images(20)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    with contextlib.redirect_stdout(out), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "curves.png")
        model.fit(x, y, epochs=2, mesh=mesh, progress=False, curves=path)
        drawn = os.path.exists(path)
    assert out.getvalue().count("(Epoch") == (2 if mesh.first else 0)
    assert drawn == mesh.first
    with pytest.raises(TypeError, match="distributed"):
        model.fit(x, y, mesh=3)


def stopping(mesh):
    """A callback that stops on one rank stops all."""

    class Stop(nn.callbacks.Callback):
        def on_epoch_end(self, solver):
            solver.stopped = mesh.rank == mesh.size - 1

    assert trained(mesh, callbacks=[Stop()], epochs=9).epoch == 1


def resuming(mesh):
    """A training that goes on from a checkpoint: to the bit on as many ranks, dropout included; and on one process."""
    folder = tempfile.mkdtemp() if mesh.first else ""
    box = np.zeros(200, np.uint8)
    box[: len(folder)] = onp.frombuffer(folder.encode(), "u1")
    folder = mesh.broadcast(box).tobytes().rstrip(b"\0").decode()
    path = os.path.join(folder, "digits")
    options = {"dropout": 0.4, "optim_config": {"learning_rate": 0.1}, "restore_best": False}
    whole = trained(mesh, epochs=4, **options)
    trained(mesh, epochs=2, checkpoint=path, **options)
    went_on = trained(mesh, epochs=4, checkpoint=path, resume=True, **options)
    assert went_on.loss_history == whole.loss_history and went_on.history == whole.history
    assert sorted(os.listdir(folder)) == ["digits", "digits.previous"]

    path = os.path.join(folder, "other")
    options["dropout"] = 0.0
    whole = trained(mesh, epochs=4, **options)
    trained(mesh, epochs=2, checkpoint=path, **options)
    mesh.barrier()
    if mesh.first:
        alone = trained(None, epochs=4, checkpoint=path, resume=True, **options)
        onp.testing.assert_allclose(alone.loss_history, whole.loss_history, rtol=2e-3, atol=1e-4)
    mesh.barrier()
    path = os.path.join(folder, "alone")
    if mesh.first:
        trained(None, epochs=2, checkpoint=path, **options)
    mesh.barrier()
    many = trained(mesh, epochs=4, checkpoint=path, resume=True, **options)
    onp.testing.assert_allclose(many.loss_history, whole.loss_history, rtol=2e-3, atol=1e-4)
    mesh.barrier()
    if mesh.first:
        os.remove(path), os.mkdir(path), os.mkdir(os.path.join(path, "x"))
    mesh.barrier()
    with pytest.raises((OSError, MeshError)) as error:  # it cannot be written: every rank is told
        went_on.checkpoint = path
        went_on.save_checkpoint()
    assert mesh.first or "rank 0 could not write" in str(error.value)


def large(mesh):
    """Gradients that travel where they lie, and those that something else refers to, which are copied."""
    n = 1 << 20
    kept = np.ones(n) * (mesh.rank + 1)

    def f(a, b, c):
        return np.sum(a * kept) + np.sum(b * 2.0 + c)  # the gradient of a is `kept` itself, of b and c one array

    a, b, c = np.ones(n), np.ones(n), np.ones(n)
    for _ in range(2):
        _, (ga, gb, gc) = distributed.value_and_grad(f, mesh, (0, 1, 2))(a, b, c)
        for g, expected in ((ga, (mesh.size + 1) / 2), (gb, 2.0), (gc, 1.0)):
            assert g.shape == (n,) and float(np.max(np.abs(g - expected))) < 1e-12
        ga += 1.0
        assert float(kept.max()) == float(kept.min()) == mesh.rank + 1 and float(a.max()) == 1
