"""Small programs as users write them: type checkers find nothing to say, and each runs."""

from collections.abc import Callable

import numpy

import minnp
import minnp.numpy as np
from minnp import fx, nn, npx, symbol
from minnp.scipy import linalg
from minnp.scipy.spatial import distance
from minnp.testing import check_grads

Loss = Callable[[np.ndarray], np.ndarray]


def program_1() -> float:
    return float(np.mean(np.arange(6.0).reshape(2, 3)))


def program_2() -> np.ndarray:
    x = np.zeros((3, 3), dtype=np.float32)
    x[1:, 0] = 2
    return x.T


def program_3() -> np.ndarray:
    x = np.linspace(0, 1, 5)
    return np.where(x > 0.5, x, 0.0)


def program_4() -> tuple[int, ...]:
    return np.concatenate([np.ones(2), np.zeros(3)]).shape


def program_5() -> list[float]:
    numbers: list[float] = np.cumsum([1.0, 2.0]).tolist()
    return numbers


def program_6() -> np.ndarray:
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    return np.linalg.solve(a, np.ones(2))


def program_7() -> np.ndarray:
    values, vectors = np.linalg.eigh(np.eye(2))
    return values + vectors[0]


def program_8() -> np.ndarray:
    q, r = np.linalg.qr(np.ones((3, 2)))
    return q @ r


def program_9() -> np.ndarray:
    u, s, vh = np.linalg.svd(np.eye(2))
    return (u * s) @ vh


def program_10() -> np.ndarray:
    return np.fft.ifft(np.fft.fft(np.ones(4))).real


def program_11() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 2))


def program_12() -> np.ndarray:
    np.random.seed(0)
    return np.random.rand(3)


def program_13() -> np.ndarray:
    return np.sort(np.array([3, 1, 2]), descending=True)


def program_14() -> np.ndarray:
    return np.unique(np.array([1, 1, 2]))


def program_15() -> np.ndarray:
    return np.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((2, 2)))


def program_16() -> np.ndarray:
    x = np.ones(3)
    x += 1
    x *= 2.0
    return -x


def program_17() -> bool:
    return bool(np.all(np.ones(3) == 1) and np.allclose(np.ones(2), 1.0))


def program_18() -> np.ndarray:
    return np.asarray(numpy.ones(3)) + numpy.ones(3)


def program_19() -> numpy.ndarray:
    return numpy.asarray(np.ones(3))


def program_20() -> np.ndarray:
    out = np.empty(3)
    np.exp(np.zeros(3), out=out)
    return out


def program_21() -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.zeros(2))


def program_22() -> np.ndarray:
    return np.stack([np.ones(2), np.zeros(2)], axis=1)[..., None]


def program_23() -> np.ndarray:
    return np.meshgrid(np.arange(2), np.arange(3))[0]


def program_24() -> int:
    return int(np.argmax(np.array([1.0, 5.0, 2.0])))


def program_25() -> np.ndarray:
    return np.eye(2, dtype=np.float32).astype(np.int64)


def program_26() -> float:
    return float(minnp.grad(lambda x: x**2)(3.0))


def program_27() -> np.ndarray:
    def loss(w: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum((w - 1) ** 2))

    w = np.zeros(2)
    w -= 0.5 * minnp.grad(loss)(w)
    return w


def program_28() -> float:
    value, slope = minnp.value_and_grad(lambda x: np.sin(x))(0.0)
    return float(value) + float(slope)


def program_29() -> np.ndarray:
    first: np.ndarray = minnp.grad(lambda x, y: np.sum(x * y), argnum=(0, 1))(np.ones(2), np.ones(2))[0]
    return first


def program_30() -> np.ndarray:
    matrix: np.ndarray = minnp.hessian(lambda x: x[0] * x[1])(np.ones(2))
    return matrix


def program_31() -> np.ndarray:
    matrix: np.ndarray = minnp.jacobian(np.cumsum, mode="forward")(np.ones(2))
    return matrix


def program_32() -> float:
    value, tangent = minnp.jvp(np.exp, (0.0,), (1.0,))
    return float(value + tangent)


def program_33() -> float:
    value, pull = minnp.vjp(lambda x, y: x * y, 2.0, 3.0)
    dx, dy = pull(1.0)
    return float(value + dx + dy)


def program_34() -> np.ndarray:
    result: np.ndarray = minnp.vmap(np.dot, in_axes=(0, None))(np.ones((4, 3)), np.ones(3))
    return result


def program_35() -> float:
    @minnp.jit
    def f(x: np.ndarray) -> np.ndarray:
        return np.tanh(x) * 2

    return float(f(np.ones(3))[0])


def program_36() -> float:
    f = minnp.jit(lambda x, n: x * n, static="n")
    return float(f(1.0, 3))


def program_37() -> float:
    @minnp.custom_vjp
    def clipped(x: np.ndarray) -> np.ndarray:
        return x

    clipped.defvjp(forward=lambda x: (x, None), backward=lambda saved, g: (np.clip(g, -1, 1),))
    return float(minnp.grad(lambda x: 100 * clipped(x))(1.0))


def program_38() -> float:
    step = minnp.checkpoint(lambda x: np.sin(np.sin(x)))
    return float(minnp.grad(step)(0.5))


def program_39() -> str:
    with minnp.policy("only_numpy"):
        np.exp(np.ones(2))
    return str(minnp.report())


def program_40() -> str:
    return minnp.get_global_policy().name


def program_41() -> str:
    program = fx.symbolic_trace(lambda x: np.tanh(x) + 1)
    return program.code


def program_42() -> list[str]:
    program = fx.symbolic_trace(lambda x: np.exp(x) * 2)
    return [node.name for node in program.graph.nodes]


def program_43() -> int:
    captured = fx.capture(lambda x, w: x @ w, np.ones((2, 3)), np.ones((3, 4)))
    return fx.flops(captured.graph) or 0


def program_44() -> float:
    a = minnp.Variable("a")
    f = minnp.compile(a * 2 + 1)
    return float(f(a=3.0))


def program_45() -> np.ndarray:
    return npx.softmax(npx.relu(np.array([-1.0, 2.0])))


def program_46() -> float:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).init(0)
    x, y = np.ones((8, 2, 2), dtype=np.float32), np.zeros(8, dtype=np.int64)
    history = net.fit(x, y, epochs=1, batch_size=4, verbose=False)
    return float(history["loss"][-1])


def program_47() -> np.ndarray:
    net = nn.Sequential(nn.Linear(2, 1), loss="l2_loss").init(0)
    return net.predict(np.ones((3, 2), dtype=np.float32))


def program_48() -> float:
    class Regression(nn.ModelBase):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x: np.ndarray, mode: str = "test") -> np.ndarray:
            return self.layer(np.tanh(x))

        def loss(self, predict: np.ndarray, y: np.ndarray) -> np.ndarray:
            return nn.losses.l2_loss(predict, y)

    model = Regression().init(0)
    return float(model.loss(model.forward(np.ones((2, 2))), np.zeros(2)))


def program_49() -> float:
    w, config = nn.optim.adam(np.ones(2), np.ones(2), {"learning_rate": 0.1})
    return float(w[0]) + float(config["t"])


def program_50() -> float:
    mesh = minnp.distributed.init()
    total = mesh.all_reduce(np.arange(10.0)[mesh.part(10)].sum())
    return float(total)


def program_51() -> float:
    value, gradient = minnp.value_and_grad(lambda x: np.sum((x - 1) ** 2))(np.zeros(3))
    return float(value) + float(gradient.sum())


def program_52() -> np.ndarray:
    @minnp.jit
    def longest(x: np.ndarray) -> float:
        best = run = 0
        for i in range(1, len(x)):
            run = run + 1 if x[i] > x[i - 1] else 0
            best = max(best, run)
        return best

    return np.asarray(longest(np.arange(4.0)))


def program_53() -> np.ndarray:
    @minnp.jit(static="n", limit=8)
    def head(x: np.ndarray, n: int) -> np.ndarray:
        return x[:n]

    return head(np.arange(5.0), 2)


def program_54() -> np.ndarray:
    return minnp.vmap(np.dot, in_axes=(0, None), out_axes=0)(np.ones((4, 3)), np.ones(3))


def program_55() -> np.ndarray:
    @minnp.custom_vjp
    def clipped(x: np.ndarray) -> np.ndarray:
        return x

    clipped.defvjp(forward=lambda x: (x, None), backward=lambda saved, g: (np.clip(g, -1, 1),))
    return minnp.grad(lambda x: 100 * clipped(x).sum())(np.ones(2))


def program_56() -> float:
    check_grads(np.sin, (np.array([0.5]),))
    with minnp.policy("only_numpy"):
        total = np.ones(3).sum()
    for row in minnp.report():
        assert row["calls"] >= 0
    return float(total)


def program_57() -> np.ndarray:
    reader = nn.LSTM(3, 4, num_layers=2, bidirectional=True).init(0)
    scores = nn.Linear(8, 2).init(0)
    return scores(reader(np.ones((2, 5, 3), np.float32), mode="test")[:, -1])


def program_58() -> list[str]:
    gm = fx.symbolic_trace(lambda x: np.tanh(x) + 1)
    gm = fx.simplify(fx.propagate_shapes(gm, np.zeros(2)))
    assert (fx.flops(gm) or 0) > 0
    return [node.name for node in gm.graph.nodes]


def program_59() -> np.ndarray:
    data = nn.io.NDArrayIter(np.ones((8, 3)), np.zeros(8), batch_size=4)
    return npx.softmax(np.stack([np.asarray(batch.data[0]).sum(axis=1) for batch in data]))


def program_60() -> np.ndarray:
    store = minnp.kvstore.create("local")
    store.init("w", np.ones(2))
    out = np.zeros(2)
    store.pull("w", out=out)
    return minnp.jacobian(minnp.checkpoint(np.cumsum))(out)


def program_61() -> float:
    points = np.linspace(0, 3, 7)[:, None]

    def evidence(log_scale: np.ndarray) -> np.ndarray:
        kernel = np.exp(-distance.cdist(points, points, "sqeuclidean") / np.exp(log_scale)) + 0.01 * np.eye(7)
        return np.asarray(linalg.cho_factor(kernel, lower=True)[0].sum())

    return float(minnp.grad(evidence)(np.array(1.0)))


def program_62() -> object:
    a, b = symbol.Variable("a"), symbol.Variable("b")
    return minnp.compile(b * a**3 - 1 / a + abs(-b))(a=2.0, b=3.0)


def program_63() -> list[str]:
    net = symbol.FullyConnected(symbol.Variable("data"), name="fc1", num_hidden=8)
    return symbol.Activation(net.reshape((4, 2)), act_type="relu").list_arguments()


def program_64() -> np.ndarray:
    @minnp.jit
    def scaled(x: np.ndarray, by: float = 2.0) -> np.ndarray:
        return x * by

    result: np.ndarray = scaled(np.ones(3), by=3.0)
    assert scaled.captures >= 0
    return result


def program_65() -> np.ndarray:
    class Scale(nn.Layer):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.add_param("w", (n,))

        def forward(self, x: np.ndarray) -> np.ndarray:
            return x * self.params["w"]

    @minnp.checkpoint
    def twice(x: np.ndarray, k: int) -> np.ndarray:
        return x * k

    return nn.Sequential(Scale(3)).init(0)(twice(np.ones((2, 3)), 2))


def program_66() -> float:
    """Functions of NumPy's that take numbers and arrays: transformations of them do, too."""
    slopes: np.ndarray = minnp.grad(np.sin)(np.ones(3))
    values = minnp.vmap(np.exp)(np.ones(3)) + minnp.jit(np.tanh)(np.ones(3))
    return float(slopes.sum() + values.sum() + minnp.grad(np.multiply)(2.0, 3.0))


def program_67() -> int:
    data = np.arange(4.0)
    return len(bytes(data)) + memoryview(data).nbytes


PROGRAMS: list[Callable[[], object]] = [value for name, value in list(globals().items()) if name.startswith("program_")]
