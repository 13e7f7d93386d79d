"""jit on torch: the executor's results are eager's, it stays on the device, and guards, writes and refusals hold."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import fx, grad, grad_and_loss, jit, nn, npx
from minnp.backends.torch.dtypes import LEGACY
from minnp.backends.torch.executor import TorchExecutor
from minnp.core.rows.value import Buffer
from tests.backends.devices import THERE as PLACE
from tests.backends.devices import copies, on_there, reset

pytestmark = on_there


def placed(*arrays):
    with PLACE:
        found = [np.array(a) for a in arrays]
    return found[0] if len(found) == 1 else found


def data(*shape, seed=0):
    return onp.random.default_rng(seed).standard_normal(shape).astype("f4")


def executor(f):
    (path,) = next(iter(f.paths.values()))
    return path.run


def counted(name: str) -> int:
    return sum(r["calls"] for r in minnp.report() if r["function"] == name)


def same(a, b) -> bool:
    return bool((onp.asarray(a) == onp.asarray(b)).all())


def test_a_compiled_function_calls_torch_and_nothing_else():
    x, w = placed(data(8, 4), data(4, 3, seed=1))
    f = jit(lambda x, w: np.mean(np.tanh(x @ w + 0.5) ** 2))
    f(x, w)
    minnp.reset_report()
    y = f(x, w)
    assert type(y._value) is Buffer and same(y, f.function(x, w))
    f(x, w)
    run = executor(f)
    assert type(run) is TorchExecutor and run.pure
    if not LEGACY:  # NumPy 1 promotes by value, so there the kernels look each time
        calls = getattr(run.run, "plain", run.run).__globals__  # a CPU has other ways, too
        assert calls["k_matmul"] is torch.matmul and calls["k_tanh"] is torch.tanh
    assert not [r for r in minnp.report() if "copy" in r["function"] and "device" in r["function"]]


def test_gradients_writes_and_views_are_eagers():
    def loss(x, w):
        y = np.exp(-x) @ w
        y[0] = 1.5
        y[1:3] *= 2
        z = y[:, ::-1].copy()
        z[y > 0.5] = 0.25
        return np.sum(np.sort(z, axis=1) * np.arange(3)) + np.sum(y[[0, 0, 2]] ** 2)

    x, w = placed(data(5, 4), data(4, 3, seed=1))
    step = jit(grad_and_loss(loss, argnum=[0, 1]))
    for _ in range(3):
        (gx, gw), value = step(x, w)
        (ex, ew), expected = grad_and_loss(loss, argnum=[0, 1])(x, w)
        assert same(gx, ex) and same(gw, ew) and same(value, expected)
    assert step.cache_info()["captures"] == 1


def test_writes_into_arrays_of_its_own_copy_nothing():
    def steps(x):
        y = x * 2.0
        for i in range(4):
            y[i] = y[i] + 1.0
        return y

    x = placed(data(6, 2))
    f = jit(steps)
    assert same(f(x), steps(x)) and same(f(x), steps(x))
    assert executor(f).source.count("donate=True") >= 3
    assert same(x, data(6, 2))


def test_what_is_still_read_is_not_written_over():
    def both(x):
        y = x * 2.0
        y[0] = 1.0
        z = y.reshape(-1)
        y[1] = 5.0
        w = y.copy()
        y[2] = 7.0
        return w, z, y

    x = placed(data(4, 3))
    f = jit(both)
    for _ in range(2):
        assert all(same(a, b) for a, b in zip(f(x), both(x), strict=True))


def test_branches_on_data_are_guards():
    f = jit(lambda x: x * 2 if x.sum() > 0 else x[x < 0])
    x = placed(onp.array([1.0, 2.0, -0.5]))
    for _ in range(2):
        assert same(f(x), x * 2) and same(f(-x), f.function(-x))
    assert f.cache_info()["paths"] == 2


def test_arrays_from_outside_are_read_anew():
    w = placed(onp.ones(3))
    f = jit(lambda x: x * w)
    x = placed(onp.arange(3.0))
    f(x), f(x)
    w += 1
    assert same(f(x), [0, 2, 4])
    w[1] = 10
    assert same(f(x), [0, 10, 4]) and f.captures == 1


def test_arguments_written_in_place_are_written_back():
    def f(x):
        x[0] = 9
        return x.sum()

    compiled, x = jit(f), placed(onp.zeros(3))
    for _ in range(2):
        x[0] = 0
        assert float(compiled(x)) == 9 and float(x[0]) == 9


def test_what_has_no_kernel_goes_through_numpy_and_says_so():
    f = jit(lambda x: np.cos(np.unwrap(x)) + x**2)
    x = placed(onp.array([0.0, 3.0, 6.5, 10.0]))
    f(x)
    minnp.reset_report()
    assert onp.allclose(onp.asarray(f(x)), f.function(onp.asarray(x)))


def test_a_refusal_at_run_time_raises_what_numpy_raises():
    f = jit(lambda x, i: x[i])
    x = placed(onp.arange(4.0))
    assert same(f(x, placed(onp.array([0, 3]))), [0, 3])
    with pytest.raises(IndexError) as raised:
        f(x, placed(onp.array([0, 7])))
    assert __file__ in "".join(getattr(raised.value, "__notes__", ()))  # the user's line


def test_prefer_torch_compiles_for_torch_on_numpys_memory():
    x, w = np.array(data(8, 4)), np.array(data(4, 3, seed=1))
    f = jit(lambda x, w: npx.softmax(x @ w) + np.zeros(3, "f4"))
    with minnp.policy("prefer_torch"):
        for _ in range(2):
            y = f(x, w)
        assert type(executor(f)) is TorchExecutor and type(y._host) is onp.ndarray
        assert same(y, f.function(x, w))
    with minnp.policy("auto"):
        assert onp.allclose(f(x, w), y, rtol=1e-5) and f.captures == 2  # NumPy's, captured for itself


def test_a_compiled_training_step_copies_nothing_to_the_host():
    x, t = placed(data(16, 8), onp.random.default_rng(0).integers(0, 3, 16))
    w1, w2 = placed(0.1 * data(8, 12), 0.1 * data(12, 3, seed=1))

    def loss(w1, w2):
        scores = npx.log_softmax(np.tanh(x @ w1) @ w2)
        return -np.mean(scores[np.arange(16), t])

    step = jit(grad_and_loss(loss, argnum=[0, 1]))
    losses = []
    for i in range(5):
        if i == 2:
            reset()
        (g1, g2), value = step(w1, w2)
        w1 -= 0.5 * g1
        w2 -= 0.5 * g2
        losses.append(value)
    assert copies() == 0, str(minnp.report())
    assert float(losses[-1]) < float(losses[0])


def test_grad_of_jit_is_row_by_row():
    x = placed(onp.array([1.0, 2.0]))
    assert same(grad(jit(lambda x: np.sum(x**3)))(x), [3, 12])


def test_what_the_compiler_folded_is_a_constant_of_the_graph():
    f = jit(lambda x: x * np.sum(np.arange(4.0) * 2))  # nothing of the sum depends on x
    for x in (placed(onp.array([1.0, 2.0])), np.array([1.0, 2.0])):
        with minnp.policy("prefer_torch" if x._host is not None else "auto"):
            for _ in range(3):
                assert same(f(x), [12, 24])


@pytest.mark.parametrize(
    ("f", "shows"),
    [
        (lambda x: x.copy(), False),
        (lambda x: x.copy()[1:], False),
        (lambda x: np.round(np.array([1.0, 2.0, 3.0])), False),
        (lambda x: np.array([1.0, 2.0, 3.0]), False),
        (lambda x: x[1:], True),
        (lambda x: x.reshape(1, 3), True),
    ],
)
def test_results_are_the_callers_own_where_numpys_are(f, shows):
    compiled, want = jit(f), f(np.arange(3.0)).tolist()
    with minnp.policy("prefer_torch"):
        for _ in range(4):
            x = np.arange(3.0)
            y = compiled(x)
            assert y.tolist() == want
            y[...] = 99
            assert (99 in x) is shows


def test_a_compiled_function_may_move_arrays_between_memories():
    place = PLACE
    data = onp.arange(12.0).reshape(3, 4) + 1
    with place:
        p, v, i = np.array(data), np.array(onp.arange(4.0)), np.array([0, 2])
    there = lambda a: a._host is None
    for f in (
        lambda x: (x.to_device(place) * 2).sum(0),
        lambda x: (x.to_device(place) * 2).to_device("cpu") @ x.T,
        lambda x: np.exp(x / 9).to_device("cpu") + 1,
        lambda x: x @ v,
        lambda x: np.concatenate([x, p])[i].sum(0) + x[0],
        lambda x: x[i[1], i[0]] * 2 + np.zeros(4),
    ):
        for x in (np.array(data), p):
            for g in (f, grad(lambda x, f=f: (f(x) ** 2).sum())):
                compiled, want = jit(g), g(x)
                for _ in range(3):
                    got = compiled(x)
                    assert there(got) == there(want)
                    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), rtol=1e-14)


def test_compiled_code_there_does_what_the_function_does_with_state_draws_and_layouts():
    place = PLACE

    class Net:
        def __init__(self):
            self.w, self.h = np.ones((3, 2)), onp.ones(2)

        def loss(self, x):
            return ((x @ self.w * self.h) ** 2).sum()

    def writes(x):
        x.reshape(-1)[0] = 5.0
        return x.sum()

    def both(x, y):
        x += y
        return x * y

    with place:
        net, x = Net(), np.arange(6.0).reshape(2, 3)
        slope, draw = jit(grad(net.loss)), lambda x: np.random.normal(x, 2.0) + np.random.permutation(x.T).T
        for k in range(40):  # arrays bound anew are read anew, by one path
            net.w = net.w * 0.9 + k
            net.h = net.h * 1.01
            assert onp.allclose(onp.asarray(slope(x)), onp.asarray(grad(net.loss)(x)), rtol=1e-12)
        assert slope.cache_info()["captures"] == 1
        runs = []
        for f in (draw, jit(draw)):
            np.random.seed(0)
            runs.append([onp.asarray(f(x)) for _ in range(3)])
        assert all((a == b).all() for a, b in zip(*runs, strict=True))
        compiled = jit(writes)
        makers = (
            lambda: np.arange(6.0).reshape(2, 3),
            lambda: np.arange(6.0).reshape(3, 2).T,
            lambda: np.arange(12.0).reshape(2, 6)[:, ::2],
            lambda: np.arange(6.0).reshape(2, 3)[::-1],
        )
        for make in makers * 2:
            a, b = make(), make()
            assert compiled(a) == writes(b) and (a == b).all()
        added = jit(both)
        for _ in range(3):
            a, b = np.arange(4.0), np.arange(4.0)
            assert (added(a, a) == both(b, b)).all() and (a == b).all()
            assert (added(a[1:], a[:-1]) == both(b[1:], b[:-1])).all() and (a == b).all()


def test_folded_and_integer_graphs_of_a_model_there_stay_there():
    images = [onp.random.RandomState(k).normal(size=(4, 3, 8, 8)).astype("f4") for k in range(3)]
    layers = [nn.Conv2D(3, 8, 3, pad="same"), nn.BatchNorm(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 10)]
    with PLACE:
        model, x = nn.Sequential(*layers).init(0), np.array(images[0])
        want = onp.asarray(model(x, mode="test"))
        module = fx.capture(lambda x: model(x, mode="test"), x)
        folded = fx.GraphModule(module, fx.fold_convolutions(module.graph.copy()))
        integers = fx.GraphModule(folded, fx.quantize(folded.graph.copy(), images))
        for run, near in ((module, 0), (folded, 1e-5), (integers, 0.03), (jit(integers), 0.03)):
            run(x)
            minnp.reset_report()
            got = run(x)
            assert not [r for r in minnp.report() if r["moved"]] and type(got._value) is Buffer
            assert onp.abs(onp.asarray(got) - want).max() <= near * onp.abs(want).max()
        model.tree()["4.weight" if "4.weight" in model.tree() else next(iter(model.tree()))][...] = 0.0
        assert (onp.asarray(module(x)) == onp.asarray(model(x, mode="test"))).all()  # read as they are now


def test_code_that_writes_arrays_made_outside_runs_as_it_is_there():
    with PLACE:
        x, seen = np.arange(3.0), np.zeros(3)

        def f(x):
            seen[0] += 1
            return x * 2

        g = jit(f)
        for k in range(1, 5):
            assert onp.asarray(g(x)).tolist() == [0, 2, 4]
            assert onp.asarray(seen).tolist() == [k, 0, 0]


def test_relus_and_sums_reuse_memory_that_nobody_reads_afterwards():
    def f(x, y):
        a = x * 2
        seen = npx.relu(a) + a[0]  # a is read after the relu
        part = (y * 3)[0]
        whole = npx.relu(y * 3) + y
        return seen, part + whole, npx.relu(x), x + y, npx.relu(x - 1)

    g, given = jit(f), (data(4, 4), data(4, 4, seed=1))
    with minnp.policy("prefer_torch"):
        for _ in range(2):
            x, y = (np.array(v) for v in given)
            assert all(same(a, b) for a, b in zip(g(x, y), f(x, y), strict=True))
            assert same(x, given[0]) and same(y, given[1])
    run = executor(g)
    plain = getattr(run.run, "plain", run.run).__globals__
    calls = [plain[f"k_{n.name}"] for n in run.graph.nodes if getattr(n.target, "name", "") == "npx.relu"]
    assert [call is torch.relu_ for call in calls] == [False, False, False, True]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_gradient_of_relu_is_one_call(dtype):
    def f(x, w):
        return np.sum(npx.relu(x * w) ** 2)

    x = np.array([-1.0, 0.0, 2.0, onp.nan, onp.inf], dtype)
    w = np.array([2.0, 1.0, 3.0, 1.0, -1.0], dtype)
    with minnp.policy("prefer_torch"):
        g = jit(grad(f))
        for _ in range(2):
            assert onp.array_equal(g(x, w), grad(f)(x, w), equal_nan=True)
    assert "k_relu_grad" in executor(g).source


outside = {}


def of_new(x):
    y = x * 2
    return {"parts": [y[1:], y[:2][::-1]], "whole": y}


def of_new_twice(x):
    y = x * 2
    return y[1:], y[:3]


SHOWN = [
    lambda x: x[1:],
    lambda x: (x, x[::-1], x.reshape(2, 2).T),
    of_new,
    of_new_twice,
    lambda x: outside["z"][1:],
    lambda x: (outside["z"][:2], outside["z"], x[2:]),
]


@pytest.mark.parametrize("f", SHOWN)
def test_views_that_a_compiled_function_returns_show_what_they_show_in_numpy(f):
    ways = ((f, onp.array, onp.arange(5.0)), (jit(f), placed, placed(onp.arange(5.0))))
    for k in range(4):
        found = []
        for call, make, z in ways:
            z[...], outside["z"], x = make(onp.arange(5.0)), z, make(onp.arange(4.0) + k)
            arrays = minnp.core.rows.pytree.tree_leaves(call(x))
            for i, a in enumerate(arrays):
                a[0] = 90 + i  # which another one may show
            x[1], z[1] = 7, 8
            found.append([onp.asarray(a).tolist() for a in (*arrays, x, z)])
        assert found[0] == found[1]


def shown_twice(x):
    y = np.broadcast_to(x, (2, 4))
    y[0] = 1
    return y


def on_the_diagonal(x):
    y = np.diagonal(np.outer(x, x))
    y[0] = 3
    return y


def set_by_a_flag(x):
    y = x.reshape(2, 2)
    y.flags.writeable = False
    y[0] = 1
    return x


def set_by_setflags(x):
    y = x * 2
    y.setflags(write=False)
    y += 1
    return y


@pytest.mark.parametrize("place", [placed, np.array], ids=["device", "host"])
@pytest.mark.parametrize("f", [shown_twice, on_the_diagonal, set_by_a_flag, set_by_setflags])
def test_what_is_read_only_is_not_written_in_compiled_functions(f, place):
    compiled = jit(f)
    for _ in range(4):
        x = place(onp.arange(4.0))
        with pytest.raises(ValueError, match="read-only"):
            compiled(x)
        assert x.tolist() == [0, 1, 2, 3]


def test_flags_that_a_compiled_function_sets_are_set():
    def f(x):
        y = x * 2
        y.flags.writeable = False
        return y

    compiled = jit(f)
    assert not any(compiled(np.arange(3.0)).flags.writeable for _ in range(4))


def test_what_a_compiled_function_computes_of_numpys_numbers_and_arrays_stays_numpys():
    there, here = placed(onp.arange(3.0)), np.arange(3.0) + 1
    f = lambda x, rate: (x * rate, rate * 0.5, here * 2, here.sum() + 1)
    compiled = jit(f)
    for rate in (onp.float64(0.5), onp.float64(0.25), onp.float64(0.125)):
        expected, got = f(there, rate), compiled(there, rate)
        assert [type(a) for a in got] == [type(a) for a in expected]
        assert all(same(a, b) for a, b in zip(got, expected))
    compiled = jit(lambda x, a: (x * a, a.sum()))
    for a in (here, here, placed(onp.ones(3)), here):
        assert type(compiled(there, a)[1]) is type(a.sum())


def test_an_array_that_owns_its_memory_has_no_base():
    x = placed(onp.arange(4.0))
    assert x.base is None and (x * 2).base is None and x[1:].base is x
