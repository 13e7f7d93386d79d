"""Arrays that live on a torch device: NumPy's semantics, gradients, and no copy to the host that nobody asked for."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import Context, grad, grad_and_loss, npx
from minnp.core.rows import policy
from minnp.core.rows.state import state
from minnp.core.rows.value import Buffer
from tests.backends.devices import DEVICES, EMULATED, copies, reset


@pytest.fixture(params=DEVICES)
def there(request):
    return Context(request.param, 0, "torch")


def placed(x: onp.ndarray, context: Context):
    with context:
        return np.array(x)


def on_place(x) -> bool:
    return type(x._value) is Buffer if x._host is None else False


def test_new_arrays_live_on_the_device_and_results_stay(there):
    with there:
        x = np.ones((3, 4), dtype="f4")
    assert on_place(x) and x.context == there
    y = np.exp(x) @ x.T + 1
    assert on_place(y) and y.dtype == onp.float32
    assert onp.allclose(onp.asarray(y), 4 * onp.e + 1)


def test_to_device_moves_there_and_back(there):
    x = np.arange(6.0).reshape(2, 3)
    y = x.to_device(there)
    assert on_place(y) and y.shape == (2, 3)
    back = y.to_device("cpu")
    assert back._host is not None and (back == x).all()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 7),
        lambda x: x[1].__iadd__(100),
        lambda x: x[:, ::-2].__setitem__((slice(None), 0), -1),
        lambda x: x.T.__setitem__(slice(1, 3), 5),
        lambda x: x.reshape(-1)[3:8].__imul__(2),
        lambda x: x[1:].T[::-1].__setitem__((0, 0), 9),
        lambda x: x.__setitem__(x > 4, 0),
        lambda x: x.__setitem__(([0, 2, 0], [1, 1, 1]), [1, 2, 3]),
        lambda x: x.__setitem__((slice(None), [2, 0]), [[1.5, 2.5]]),
        lambda x: x.fill(3),
        lambda x: x.sort(axis=0),
    ],
    ids=range(11),
)
def test_writes_through_views_reach_the_root(there, write):
    start = onp.arange(12.0).reshape(3, 4)
    reference, ours = start.copy(), placed(start, there)
    seen = ours[0]
    write(reference)
    write(ours)
    assert on_place(ours)
    assert (onp.asarray(ours) == reference).all()
    assert (onp.asarray(seen) == reference[0]).all()


def test_an_index_out_of_range_is_refused_where_it_is_used(there):
    x = placed(onp.arange(4.0).reshape(2, 2), there)
    if there.device_type == "cpu":  # a GPU would report it later, and take nothing more
        with pytest.raises(IndexError):
            np.take_along_axis(x, onp.array([[5, 0]]), axis=0)
        with pytest.raises(ValueError, match="invalid entry in choice array"):
            np.choose(placed(onp.array([0, 5]), there), [x[0], x[1]])
    assert onp.asarray(np.choose(placed(onp.array([0, 5]), there), [x[0], x[1]], mode="clip")).tolist() == [0, 3]


@pytest.mark.parametrize(
    "f",
    [
        lambda w: (np.percentile(w, [20, 50], axis=0) ** 2).sum(),
        lambda w: np.quantile(w, 0.3, method="weibull") ** 2,
        lambda w: (np.rot90(w) * onp.arange(12.0).reshape(4, 3)).sum(),
        lambda w: (np.kron(w, w) ** 2).sum() + (np.polymul(w[0], w[1]) ** 3).sum(),
        lambda w: (np.gradient(w)[0] ** 2).sum() + np.choose([0, 1, 0, 1], [w, w * w]).sum(),
        lambda w: (np.unique(w) ** 2).sum(),
        lambda w: (np.histogram(onp.arange(4.0), 3, (0, 4), weights=w[0])[0] ** 2).sum(),
    ],
    ids=range(7),
)
def test_gradients_of_what_is_said_anew_for_devices(there, f):
    w = onp.random.RandomState(0).normal(size=(3, 4))
    got = grad(f)(placed(w, there))
    assert on_place(got)
    assert onp.allclose(onp.asarray(got), onp.asarray(grad(f)(np.array(w))))


def test_a_result_without_axes_is_a_number_and_what_was_made_an_array(there):
    """`s += 1` makes another number where NumPy has one, and writes where NumPy has an array: as NumPy does."""
    f = lambda w, k: w if k == "made" else {"sum": w.sum, "copy": w.copy}.get(k, lambda: w.reshape(-1)[0])()
    for k in ("made", "sum", "copy", "item"):

        def total(w, np_, k=k):
            s = f(w, k)
            t = s
            s += 1
            s -= 3
            return t * s

        for of in (
            lambda w: total(w, np),
            minnp.jit(lambda w: total(w, np)),
            lambda w: minnp.value_and_grad(total)(w, np)[0],
        ):
            want = total(onp.array(2.0), onp)
            assert float(of(placed(onp.array(2.0), there))) == want, k


def test_dlpack_gives_a_tensor_there_with_memory_of_its_own(there):
    if EMULATED and there.device_type == "gpu":
        pytest.skip("torch's __dlpack_device__ knows no device that is registered with it")
    x = placed(onp.arange(6.0).reshape(2, 3), there)
    minnp.reset_report()
    t = torch.from_dlpack(x[:, 1:])
    assert t.device.type == x._value.data.device.type and not [r for r in minnp.report() if r["moved"]]
    t += 1
    assert t.tolist() == [[2, 3], [5, 6]] and onp.asarray(x).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_array_of_the_host_is_indexed_by_one_of_a_place(there):
    x, rows = np.arange(12.0).reshape(3, 4), placed(onp.array([2, 0]), there)
    assert type(x[rows]._value).__name__ == "Buffer" and onp.asarray(x[rows, 1:]).tolist() == [[9, 10, 11], [1, 2, 3]]
    assert onp.asarray(x[placed(onp.array([False, True, False]), there)]).tolist() == [[4, 5, 6, 7]]
    assert np.array(["a", "b", "c"])[rows].tolist() == ["c", "a"]
    row = x[1]
    x[1] = placed(onp.array([5.0, 6, 7, 8]), there)  # also what it shows of a root, and what others show of it
    assert x[1].tolist() == row.tolist() == [5, 6, 7, 8]
    x[1] = [placed(onp.array(float(n)), there) for n in (4, 5, 6, 7)]
    x[rows, 0] = 7
    x[rows] += 1
    assert x.tolist() == [[8, 2, 3, 4], [4, 5, 6, 7], [8, 10, 11, 12]]
    assert onp.asarray(np.setdiff1d(placed(onp.arange(5), there), [1])).tolist() == [0, 2, 3, 4]


def test_an_operator_result_is_no_view(there):
    x = placed(onp.arange(6.0), there)
    for copy in (x[[0, 1]], x[x > 2], +x, x.copy(), x.astype(x.dtype), np.concatenate([x, x])):
        copy += 1
    assert (onp.asarray(x) == onp.arange(6.0)).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda w: np.sum(np.tanh(w) ** 2),
        lambda w: np.mean(np.log1p(np.exp(w @ w.T))),
        lambda w: np.sum(w[1:, ::-1] * w[:-1]),
        lambda w: np.sum(np.sort(w, axis=1)[:, 1] * w[:, 0]),
        lambda w: np.max(w) * np.prod(w[0]) + np.std(w),
        lambda w: np.sum(np.where(w > 0, w, 0.1 * w) * np.arange(4)),
        lambda w: np.linalg.norm(np.linalg.inv(w[:, :3])),
        lambda w: np.sum(np.abs(np.fft.fft(w)) ** 2),
        lambda w: np.einsum("ij,kj->", w, w),
        lambda w: np.sum(npx.softmax(w) * npx.relu(w)),
        lambda w: np.sum(np.concatenate([w, w[[0, 0, 2]]]) ** 3),
    ],
    ids=range(11),
)
def test_gradients_are_the_hosts(there, f):
    w = onp.random.RandomState(0).normal(size=(3, 4))
    want, want_loss = grad_and_loss(f)(np.array(w))
    got, loss = grad_and_loss(f)(placed(w, there))
    assert on_place(got)
    assert onp.allclose(onp.asarray(loss), onp.asarray(want_loss))
    assert onp.allclose(onp.asarray(got), onp.asarray(want))


def test_gradient_of_a_write_and_of_a_gradient(there):
    def f(x):
        y = np.zeros_like(x)
        y[1:] = x[:-1] * x[1:]
        y[0] += 2 * x[2]
        return np.sum(y**2)

    x = onp.array([1.0, -2.0, 3.0, 0.5])
    second = grad(lambda x: np.sum(grad(f)(x) * np.arange(4.0)))
    for g in (grad(f), second):
        assert onp.allclose(onp.asarray(g(placed(x, there))), onp.asarray(g(np.array(x))))


def test_a_training_step_copies_nothing_to_the_host(there):
    r = onp.random.RandomState(0)
    with there:
        x, t = np.array(r.normal(size=(16, 8)).astype("f4")), np.array(r.randint(0, 3, 16))
        w1, w2 = (np.array((0.1 * r.normal(size=s)).astype("f4")) for s in ((8, 12), (12, 3)))

    def loss(w1, w2):
        hidden = np.tanh(x @ w1)
        scores = npx.log_softmax(hidden @ w2)
        return -np.mean(scores[np.arange(16), t])

    step = grad_and_loss(loss, argnum=[0, 1])
    losses = []
    for i in range(4):
        if i == 1:
            reset()
        (g1, g2), value = step(w1, w2)
        w1 -= 0.5 * g1
        w2 -= 0.5 * g2
        losses.append(value)
    assert copies() == 0, str(minnp.report())
    assert not [r for r in minnp.report() if r["why"]], str(minnp.report())
    assert float(losses[-1]) < float(losses[0])
    assert copies() == 2  # the two numbers just read


def test_the_device_draws_from_a_seeded_stream_of_its_own(there):
    def draw():
        np.random.seed(7)
        with there:
            return np.random.normal(size=(2, 3)), np.random.rand(4), np.random.randint(0, 9, size=5)

    minnp.reset_report()
    first, second = draw(), draw()
    assert all(map(on_place, first))
    assert not [r for r in minnp.report() if "copy" in r["function"]]
    assert all((onp.asarray(a) == onp.asarray(b)).all() for a, b in zip(first, second, strict=True))
    assert first[0].dtype == onp.float64 and first[2].dtype == onp.int64
    np.random.seed(7)
    assert (np.random.normal(size=3) == onp.random.RandomState(7).normal(size=3)).all()  # the host's is NumPy's


def test_gradients_flow_through_to_device(there):
    f = lambda x: np.sum(x.to_device(there) ** 2) * 1.0
    g = grad(f)(np.array([1.0, 2.0]))
    assert g._host is not None and (g == [2.0, 4.0]).all()


def test_what_has_no_kernel_falls_back_with_its_gradient_and_says_so(there):
    x = placed(onp.array([1.0 + 2j, 0.5 - 1j]), there)
    minnp.reset_report()
    y = x**2.5
    assert on_place(y) and onp.allclose(onp.asarray(y), onp.array([1.0 + 2j, 0.5 - 1j]) ** 2.5)
    (row,) = [r for r in minnp.report() if r["function"] == "power"]
    assert row["backend"] == "numpy" and "powers other than 2 and 3" in row["why"] and row["moved"] == 32
    assert __file__ in row["where"]


def test_numpys_exceptions_come_through(there):
    x = placed(onp.ones((2, 3)), there)
    with pytest.raises(ValueError, match="broadcast"):
        x + placed(onp.ones(4), there)
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(onp.linalg.LinAlgError):
        np.linalg.inv(placed(onp.zeros((2, 2)), there))
    with pytest.raises(ValueError, match=r"[Ii]ntegers to negative integer powers"):
        placed(onp.array([2, 3]), there) ** -1
    with pytest.raises(onp.exceptions.AxisError):
        np.sum(x, axis=7)


def test_dtypes_torch_has_not_stay_on_the_host(there):
    with there:
        s, d, q = np.array(["a", "b"]), np.array(["2020-01-01"], dtype="M8[D]"), np.ones(2, onp.longdouble)
    assert not on_place(s) and not on_place(d) and not on_place(q)
    assert (q + 1).dtype == onp.longdouble


def test_promotion_is_numpys(there):
    for a in (onp.int8, onp.uint16, onp.int64, onp.float16, onp.float32, onp.complex64, bool):
        for b in (onp.int32, onp.uint8, onp.float32, onp.float64):
            x, y = onp.ones(2, a), onp.ones(2, b)
            for f in (onp.add, onp.true_divide, onp.multiply):
                got = f(placed(x, there), placed(y, there))
                assert got.dtype == f(x, y).dtype, (f, a, b)
    assert (placed(onp.ones(2, "f4"), there) * 2.0).dtype == onp.float32


def test_places_hold_no_autograd_graph(there):
    x = placed(onp.ones(3), there)
    grad(lambda x: np.sum(np.exp(x)))(x)
    assert not (x * 2)._value.data.requires_grad


def test_the_synchronous_switch_waits_after_every_kernel(monkeypatch):
    from minnp.backends.torch import SYNCHRONOUS, TorchBackend
    from minnp.core.rows.primitive import TABLE

    monkeypatch.setenv(SYNCHRONOUS, "1")
    place, waits = TorchBackend("cpu"), []
    monkeypatch.setattr(place, "synchronize", lambda: waits.append(1))
    assert float(place.kernel(TABLE["add"])(torch.ones(()), 1.0)) == 2 and waits == [1]


def test_only_torch_raises_where_there_is_no_kernel():
    with pytest.raises(minnp.errors.FallbackError), minnp.policy("only_torch"):
        np.array([1j]) ** 2.5


def test_prefer_torch_computes_on_numpys_own_memory():
    x = np.arange(12.0).reshape(3, 4)
    with minnp.policy("prefer_torch"):
        minnp.reset_report()
        y = np.exp(x[::-1]) + x.T.reshape(3, 4)
        view = x[1]
    assert y._host is not None and onp.shares_memory(onp.asarray(view), onp.asarray(x))
    assert onp.allclose(y, onp.exp(onp.asarray(x)[::-1]) + onp.asarray(x).T.reshape(3, 4))
    assert {r["backend"] for r in minnp.report() if r["function"] in ("exp", "add")} == {"torch"}


def test_another_shape_of_what_steps_backwards_is_a_copy(there):
    """As to NumPy: torch holds a copy already, and writes to what shows that must not reach the array."""
    for view in (
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        np.flip,
        lambda x: x.T[::-1],
        lambda x: x[1],
        lambda x: x[1:],
    ):
        for other in (
            lambda v: v.ravel(),
            lambda v: v.reshape(-1),
            lambda v: v.reshape(v.shape),
            lambda v: v.T.reshape(-1),
        ):
            host = onp.arange(12.0).reshape(3, 4)
            with there:
                x = np.array(host)
            for a in (host, x):
                other(view(a))[...] = -1
            onp.testing.assert_array_equal(onp.asarray(x), host)


@pytest.mark.parametrize("turned", [False, True])
def test_views_of_what_has_gaps_in_memory_are_numpys(there, turned):
    """Also after a write that a trace sees: a copy without the gaps has other views."""

    def made(n):
        room = n.zeros((4, 6, 2))
        x = room[..., 0].T if turned else room[..., 0]
        x[...] = n.arange(24.0).reshape(x.shape)
        return x

    def seen(n, x):
        v, w = x.reshape(2, -1), n.lib.stride_tricks.sliding_window_view(x, (2, 2))
        x *= 2
        k, a = x.ravel(order="K"), x.reshape(-1, order="F")
        k[0], a[1], x[1, 1] = 5, 6, 7
        return x, v, w, k, a, x.strides, *[n.shares_memory(x, y) for y in (v, w, k, a, x[1:])]

    want = seen(onp, made(onp))
    for f in (seen, minnp.jit(seen, static=0)):
        for _ in range(2):
            with there:
                x = made(np)
            for g, w in zip(f(np, x), want):
                onp.testing.assert_array_equal(onp.asarray(g), w)


def test_a_batch_is_padded_with_any_number(there):
    """np.pad writes its borders through views of an array that a write has batched."""
    host = onp.arange(12.0).reshape(2, 2, 3)
    for fill in (2.0, -onp.inf):
        got = minnp.vmap(lambda x, fill=fill: np.pad(x, 1, constant_values=fill))(placed(host, there))
        onp.testing.assert_array_equal(onp.asarray(got), [onp.pad(x, 1, constant_values=fill) for x in host])


def test_memory_lies_in_the_order_that_is_told(there):
    """Results keep their arguments' order, copies and factors are in C order, and a write through a view is seen."""
    host = onp.arange(12.0).reshape(3, 4)
    a = placed(host, there)
    for f in (np.exp, np.sqrt, lambda x: x + 1, lambda x: x.astype("f4"), lambda x: x.copy(), lambda x: np.copy(x)):
        got, want = f(a.T), onp.asarray(f(np.array(host).T))
        assert got.flags.c_contiguous == want.flags.c_contiguous and got.strides == want.strides
        for order in "CFAK":
            assert onp.allclose(got.ravel(order), want.ravel(order)) and (got.ravel(order) == got.flatten(order)).all()
    cube = onp.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)):
        x, ours = cube.transpose(axes), placed(cube, there).transpose(axes)
        for f in (
            lambda n, x: x.sum(1),
            lambda n, x: x.sum(axis=0, keepdims=True),
            lambda n, x: n.std(x, 0),
            lambda n, x: x.max((1,)),
            lambda n, x: n.cumsum(x, 0),
            lambda n, x: n.sort(x, axis=1),
            lambda n, x: n.argsort(x, 0),
            lambda n, x: n.roll(x, 1),
            lambda n, x: n.roll(x, 1, 1),
            lambda n, x: n.take(x, [1, 0], axis=1),
            lambda n, x: n.diff(x, axis=0),
            lambda n, x: n.tril(x),
            lambda n, x: n.concatenate([x, x], 1),
            lambda n, x: n.stack([x, x], axis=2),
        ):
            got, want = f(np, ours), f(onp, x)
            assert onp.allclose(onp.asarray(got), want)
            moved = [[s for s, n in zip(y.strides, y.shape) if n > 1] for y in (got, want)]
            assert moved[0] == moved[1]
    rows, back = [2, 0, 1], onp.asfortranarray([[0, 1], [1, 0], [2, 2]])
    for x, ours in ((host, a), (host.T, a.T), (onp.stack([host] * 3), np.stack([a] * 3))):
        for index in (rows, (slice(None), rows), (slice(1, None), rows), (slice(None), back), (back, 0)):
            assert ours[index].strides == x[index].strides
            assert (onp.asarray(ours[index]) == x[index]).all()
    square = placed(onp.eye(3) * 2 + host[:, :3] / 100, there)
    for y in (a.T.copy(), np.linalg.inv(square), np.linalg.solve(square, square), *np.linalg.qr(square)):
        y.ravel()[1] = 7
        assert y.flags.c_contiguous and float(y[0, 1]) == 7
    with pytest.raises(ValueError, match="read-only"):
        a.diagonal()[0] = 1


def test_a_power_is_numpys_short_cut_where_numpy_takes_one(there):
    x = onp.array([-onp.inf, -0.0, 4.0])
    for p in (0.5, 2, -1, 1, 0, 3):
        with onp.errstate(all="ignore"):
            for got, want in ((placed(x, there) ** p, x**p), (placed(x.astype("f4"), there) ** p, x.astype("f4") ** p)):
                assert got.dtype == want.dtype and str(onp.asarray(got)) == str(want), p
    mask = onp.array([True, False])
    for p in (2, 1, 3):
        assert (placed(mask, there) ** p).dtype == (mask**p).dtype
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.eigvals(placed(onp.full((3, 3), onp.inf), there))


def test_what_numpy_writes_in_python_makes_its_arrays_where_its_arguments_live(there):
    v, m = onp.linspace(-1, 2, 6), onp.arange(12.0).reshape(4, 3) % 5
    for f in (
        lambda n, v, m: n.pad(m, 1, mode="edge"),
        lambda n, v, m: n.insert(v, 1, 5.0),
        lambda n, v, m: n.delete(v, [1, 2]),
        lambda n, v, m: n.vander(v, 3),
        lambda n, v, m: n.ediff1d(v, to_begin=0.0),
        lambda n, v, m: n.cross(m[0], m + 1),
        lambda n, v, m: n.gradient(v**2, v),
        lambda n, v, m: n.apply_along_axis(n.sort, 0, m),
        lambda n, v, m: n.histogram2d(v, v**2)[0],
        lambda n, v, m: n.ravel_multi_index((m.astype(int), m[0].astype(int)), (5, 6)),
        lambda n, v, m: n.stack(n.unravel_index(m.astype(int), (2, 3))),
        lambda n, v, m: n.stack(n.tril_indices_from(m, 1)),
    ):
        got, want = f(np, placed(v, there), placed(m, there)), f(onp, v, m)
        assert on_place(got) and got.dtype == want.dtype
        onp.testing.assert_allclose(onp.asarray(got), want, rtol=1e-12)
    with pytest.raises(ValueError, match="invalid"):
        np.ravel_multi_index((placed(onp.arange(4), there),) * 2, (3, 2))


MIXED = {
    "rows": lambda x, i, k: x[i],
    "a mask": lambda x, i, k: x[k],
    "an element": lambda x, i, k: x[i[1], i[0]] * 2,
    "of a number": lambda x, i, k: x.sum()[np.array(True)],
    "insert": lambda x, i, k: np.insert(x, i, 0, axis=0),
    "delete": lambda x, i, k: np.delete(x, i, axis=0),
    "a write": lambda x, i, k: (y := x * 1, y.__setitem__((i, slice(1, 3)), x[:2, :2]), y)[2],
    "a masked write": lambda x, i, k: (y := x.copy(), y.__setitem__(k, 0.0), y)[2],
    "a list of numbers": lambda x, i, k: x[[i[1], 1, i[0]]] * x[:, [0, i[1]]][:, :1],
    "rows exchanged": lambda x, i, k: (y := x * 1, y.__setitem__([i[0], i[1]], y[[i[1], i[0]]]), y)[2],
    "add.at": lambda x, i, k: (y := x * 1, np.add.at(y, (i, i), x[0, :2]), np.subtract.at(y, i, 1.0), y)[3],
}


@pytest.mark.parametrize("lived_in", ["host", "place"])
@pytest.mark.parametrize("name", MIXED)
def test_an_index_on_the_device_serves_arrays_of_either_memory(there, name, lived_in):
    f, data, i, k = MIXED[name], onp.arange(12.0).reshape(3, 4), onp.array([0, 2]), onp.array([True, False, True])
    with there:
        index, mask = np.array(i), np.array(k)
    x = np.array(data) if lived_in == "host" else placed(data, there)
    loss = lambda x: (f(x, index, mask) ** 2).sum()
    expected = grad(lambda x: (f(x, i, k) ** 2).sum())(np.array(data))
    assert (onp.asarray(f(x, index, mask)) == onp.asarray(f(np.array(data), i, k))).all()
    for g in (grad(loss), minnp.jit(grad(loss)), grad(minnp.jit(loss))):
        assert (onp.asarray(g(x)) == onp.asarray(expected)).all()
        assert (onp.asarray(g(x)) == onp.asarray(expected)).all()


def test_parameters_read_from_elsewhere_have_gradients_on_the_device_and_as_views(there):
    flat = placed(onp.arange(12.0), there)
    params = {"w": placed(onp.arange(3.0), there), "part": flat[2:8].reshape(2, 3)}
    g, loss = grad_and_loss(lambda w: (params["w"] ** 2).sum())(params["w"])
    assert on_place(g) and onp.asarray(g).tolist() == [0, 2, 4] and loss == 5
    g, _ = grad_and_loss(lambda w: (params["part"] ** 2).sum())(params["part"])
    assert onp.asarray(g).tolist() == [[4, 6, 8], [10, 12, 14]]
    flat[2] = 7
    assert params["part"][0, 0] == 7


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_masked_arrays_and_matrices_of_arrays_there_are_what_they_are(there):
    x = placed(onp.array([[1.0, -3.0], [2.0, 8.0]]), there)
    assert np.ma.masked_less(x, 0).sum() == 11
    assert np.ma.array(x, mask=x > 6).filled(7.0).tolist() == [[1, -3], [2, 7]]
    assert (np.asmatrix(x) * np.asmatrix(x)).tolist() == [[-5, -27], [18, 58]]


def test_tangents_and_parts_of_complex_numbers_follow_the_array_there(there):
    x, rows = placed(onp.arange(12.0).reshape(3, 4), there), placed(onp.array([0, 2]), there)
    y, t = minnp.jvp(lambda x: x[rows] * 3, (x,), (onp.ones((3, 4)),))
    assert on_place(t) and (onp.asarray(t) == 3).all() and (onp.asarray(y) == 3 * onp.asarray(x)[[0, 2]]).all()
    z = placed(onp.arange(4.0) + 1j, there)
    z.imag[...] = placed(onp.array([5.0, 6.0, 7.0, 8.0]), there)
    z.real[[0, 2]] = 9
    assert onp.asarray(z).tolist() == [9 + 5j, 1 + 6j, 9 + 7j, 3 + 8j]


def shared(row):
    room = np.zeros(5)
    room[1:4] = row
    ends = room[::4]
    ends += 7
    return room


def shown_by_an_index(row, i):
    rows = np.zeros((3, 3))
    one = rows[i]
    rows[:, 0] = 9
    one += row
    return rows


def windows(row, i):
    seen = np.lib.stride_tricks.sliding_window_view(row[::-1], 2)
    row[i] = 5
    return seen * 1


def counted(row):
    at = first = row.argmax()
    at += 1
    return at, first, np.median(row)


@pytest.mark.parametrize(
    "f, two",
    [
        (lambda row: np.pad(row, 1, constant_values=7.0), False),
        (lambda row: row[np.array(1)] * row[np.array([2, 0])], False),
        (shared, False),
        (counted, False),
        (shown_by_an_index, True),
        (windows, True),
    ],
)
def test_a_batch_on_a_device_lies_as_one_on_the_host(there, f, two):
    rows, at = onp.arange(6.0).reshape(2, 3), onp.array([2, 0])
    results = []
    for device in (Context("cpu"), there):
        with device:
            out = minnp.vmap(f)(np.array(rows), *[np.array(at)] * two)
        results.append([onp.asarray(o) for o in (out if type(out) is tuple else (out,))])
    with Context("cpu"):
        outs = [f(np.array(row), *[i] * two) for row, i in zip(rows, at)]
    results.append([onp.stack(o) for o in zip(*[o if type(o) is tuple else (o,) for o in outs])])
    for a, b, c in zip(*results):
        assert onp.array_equal(a, c) and onp.array_equal(b, c)


@pytest.mark.parametrize("compiled", [False, True])
def test_windows_that_torch_copies_are_views(there, compiled):
    def f(x):
        gaps, back = np.lib.stride_tricks.sliding_window_view(x[:, 1], 2), np.lib.stride_tricks.sliding_window_view
        back = back(x[0, ::-1], 2)
        within = np.lib.stride_tricks.as_strided(x[1:], (3, 2), (-8, 8))
        x[:, 1:] = 7
        within[2, 0] = 3
        return gaps * 1, back * 1, within * 1, x

    x = onp.arange(12.0).reshape(3, 4)
    want = f(np.array(x))
    got = (minnp.jit(f) if compiled else f)(placed(x, there))
    assert all(onp.array_equal(onp.asarray(a), onp.asarray(b)) for a, b in zip(got, want))


def test_floating_point_errors_that_a_program_asks_for_are_raised(there):
    """By NumPy, whose kernels report them; the results go back, and afterwards the device computes again."""
    x, raised = placed(-onp.ones(3), there), pytest.raises(FloatingPointError, match="invalid")
    under = np.errstate(invalid="raise")(np.sqrt)
    for f in (under, minnp.jit(under), minnp.vmap(under), grad(lambda x: under(x).sum())):
        for _ in range(2):
            with raised:
                f(x)
            f(-x)
    busy, before = state.busy, policy.current()
    with np.errstate(all="raise"):
        with raised:
            minnp.jit(np.sqrt)(x)
        with np.errstate(all="ignore"):
            assert on_place(np.sqrt(x)) and policy.current() == before
        with raised:
            x**0.5
        assert on_place(x + 1)
    old = np.seterr(all="raise")
    with raised:
        np.sqrt(x)
    with np.errstate(all="ignore"), minnp.policy("prefer_torch"), np.errstate(invalid="call", call=print):
        np.seterr(**old)
    assert onp.geterr()["invalid"] == "raise"
    np.seterr(**old)
    assert on_place(np.sqrt(x)) and policy.current() == before and state.busy == busy
    with minnp.policy("prefer_torch"), raised:
        under(-np.ones(3))


def test_compiled_writes_of_what_shows_the_array_itself_read_it_first(there):
    """Written memory that was handed on from write to write is one memory, in which views of every stage lie."""

    def f(x):
        x *= 2
        x[:] = x[::-1]
        x[1:] = x[:-1]
        x[:, 1:] += x[:, :-1]
        x[:-1] = x[1:]
        return x

    compiled = minnp.jit(f)
    for host in (onp.arange(12.0).reshape(4, 3), onp.arange(24.0).reshape(4, 6)[:, ::2]):
        for _ in range(3):
            room = placed(onp.repeat(onp.ascontiguousarray(host)[..., None], 2, -1), there)
            for x in (placed(host, there), room[..., 0]):
                onp.testing.assert_array_equal(onp.asarray(compiled(x)), f(host.copy()))


def parts_of_a_number(x, k):
    z = x[1] + 2j
    real = kept = z.real
    real += 1
    return z, real, kept


def a_row_found_by_a_number(x, k):
    table = np.outer(x, x)
    row = table[k[0]]
    row -= 1
    column = table[:, k[1]]
    column *= 2
    copied = table[k[:1]]
    copied += 100
    return table, row, copied


def arrays_without_axes(x, k):
    names = chosen, product = np.where(x[0] > 0, x[0], x[1]), np.tensordot(x, x, 1)
    chosen += 1
    product -= x[1]
    return names


@pytest.mark.parametrize("f", [parts_of_a_number, a_row_found_by_a_number, arrays_without_axes])
def test_numbers_on_a_device_are_those_of_the_host(there, f):
    x, k = onp.array([0.5, 1.5, 2.5]), onp.array([2, 0])
    want = f(np.array(x), np.array(k))
    compiled = minnp.jit(f)
    for how in (f, compiled, compiled):
        got = how(placed(x, there), placed(k, there))
        assert all(onp.array_equal(onp.asarray(a), onp.asarray(b)) for a, b in zip(got, want))
    total = lambda x, k: sum(np.sum(o.real * o.real) for o in f(x, k))
    slope = grad(total)(placed(x, there), placed(k, there))
    assert onp.allclose(onp.asarray(slope), onp.asarray(grad(total)(np.array(x), np.array(k))))
