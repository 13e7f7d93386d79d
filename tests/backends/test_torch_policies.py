"""Where `auto` leaves NumPy for torch: by size, by dtype and by the number of channels."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import npx
from minnp.backends.torch import TorchBackend
from minnp.core.cpu import kernels
from minnp.core.cpu import products as host_products
from minnp.core.rows.primitive import TABLE
from minnp.dispatch.policy import Policy


def arrays(batch, channels, dtype):
    draw = onp.random.default_rng(0).standard_normal
    return [np.array(draw(s).astype(dtype)) for s in ((batch, channels, 16, 16), (32, channels, 3, 3))]


def gradients(x, w, argnums):
    """The gradients under auto, and the backends that each row ran on."""
    minnp.reset_report()
    with minnp.policy("auto"):
        found = minnp.grad(lambda *a: np.sum(np.sin(npx.convolution(*a, pad=(1, 1)))), argnums)(x, w)
    return found, {r["function"]: r["backend"] for r in minnp.report() if r["function"].startswith("npx.conv")}


@pytest.fixture
def without_kernels(monkeypatch):
    """The C part's kernels, which are as fast and come first, are away."""
    monkeypatch.setattr(kernels, "team", None)


@pytest.mark.parametrize(
    "batch, dtype, backend", [(32, "f4", "torch"), (1, "f4", "numpy"), (32, "f8", "numpy"), (32, "f2", "numpy")]
)
def test_weights_gradients_of_pictures_go_to_torch_in_single_precision(without_kernels, batch, dtype, backend):
    x, w = arrays(batch, 3, dtype)
    found, ran = gradients(x, w, 1)
    assert ran["npx.conv_weight_grad"] == backend
    exact, _ = gradients(x.astype("f8"), w.astype("f8"), 1)
    rounding = {"f2": 1e-2, "f4": 1e-5, "f8": 1e-12}[dtype] * float(np.max(np.abs(exact)))
    onp.testing.assert_allclose(found, exact, rtol=0, atol=rounding)


@pytest.mark.parametrize(
    "channels, dtype, backend", [(3, "f4", "numpy"), (8, "f4", "torch"), (3, "f8", "torch"), (8, "f2", "numpy")]
)
def test_gradients_of_data_go_to_torch_where_channels_are_many_or_precision_is_double(
    without_kernels, channels, dtype, backend
):
    x, w = arrays(32, channels, dtype)
    _, ran = gradients(x, w, 0)
    # MXNet, which comes first where it is installed, takes the larger of these
    assert ran["npx.conv_transpose"] in {backend, "mxnet"} - ({"mxnet"} if dtype == "f2" else set())


@pytest.mark.parametrize(
    "shape, axes, vector", [((800, 256), (1,), (1, 256)), ((64, 16, 16, 16), (0, 2, 3), (1, 16, 1, 1))]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_large_normalisations_and_their_gradients_go_to_torch_and_are_numpys(
    without_kernels, shape, axes, vector, dtype
):
    draw = onp.random.default_rng(0).standard_normal
    x, gamma, beta, g = (draw(s).astype(dtype) for s in (shape, vector, vector, shape))
    row = TABLE["npx.normalize"]

    def run():
        y, pull = minnp.vjp(lambda *a: row(*a, axes=axes, eps=1e-5)[0], x, gamma, beta)
        return [y, *pull(g), *row(x, gamma, beta, axes=axes, eps=1e-5)[1:]]

    minnp.reset_report()
    with minnp.policy("auto"):
        found = run()
    ran = {r["function"]: r["backend"] for r in minnp.report()}
    assert (ran["npx.normalize"], ran["npx.normalize_back"]) == ("torch", "torch")
    with minnp.policy("only_numpy"):
        expected = run()
    for a, b in zip(found, expected, strict=True):
        onp.testing.assert_allclose(a, b, rtol=0, atol=60 * onp.finfo(dtype).eps * abs(onp.asarray(b)).max())


def test_a_large_gelu_by_tanh_goes_to_torch_and_is_numpys(without_kernels):
    x = onp.random.default_rng(0).standard_normal((300, 200)).astype("f4") * 3

    def run():
        y, pull = minnp.vjp(lambda x: npx.gelu(x, approximate=True), x)
        return y, pull(onp.cos(x))[0]

    minnp.reset_report()
    with minnp.policy("auto"):
        found = run()
    ran = {r["function"]: r["backend"] for r in minnp.report()}
    assert (ran["npx.gelu_tanh"], ran["npx.gelu_tanh_grad"]) == ("torch", "torch")
    with minnp.policy("only_numpy"):
        expected = run()
    for a, b in zip(found, expected, strict=True):
        onp.testing.assert_allclose(a, b, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ["npx.softmax", "npx.log_softmax"])
@pytest.mark.parametrize("shape, backend", [((500, 64), "torch"), ((4000, 8), "numpy"), ((20, 64), "numpy")])
def test_softmax_along_many_long_rows_goes_to_torch_and_is_numpys(without_kernels, name, shape, backend):
    x = onp.random.default_rng(0).standard_normal(shape).astype("f4") * 5
    x[1, 3] = -onp.inf
    minnp.reset_report()
    with minnp.policy("auto"):
        y, again = TABLE[name](x), TABLE[name](x)
    ran = {r["function"]: r["backend"] for r in minnp.report()}
    assert ran.get(name, "numpy") == backend
    assert y.tobytes() == again.tobytes()
    onp.testing.assert_allclose(y, TABLE[name].numpy(x), rtol=3e-6, atol=3e-6)


def test_arrays_that_no_tensor_can_show_are_copied():
    """Fields of packed records, whose strides are no whole elements; read-only, reversed and foreign-endian arrays."""
    records = onp.array([(1, 2.5, "a"), (3, -4.5, "b")], [("k", "i1"), ("x", "f8"), ("name", "U1")])
    fixed = onp.arange(4.0)
    fixed.flags.writeable = False
    for x in (records["x"], records[::-1]["x"], fixed, onp.arange(4.0)[::-1], onp.arange(4, dtype=">f4")):
        with minnp.policy("prefer_torch"):
            got = np.exp(np.asarray(x)) + np.mean(np.asarray(x))
        onp.testing.assert_allclose(got, onp.exp(x) + onp.mean(x), rtol=1e-6)


def test_one_choice_alone_is_refused_as_numpy_refuses_it():
    for context in (minnp.policy("prefer_torch"), minnp.policy("auto")):
        with context, pytest.raises(ValueError, match="either both or neither"):
            np.where(np.ones(3) > 0, np.ones(3))
    with pytest.raises(ValueError, match="either both or neither"):
        minnp.grad(lambda x: np.sum(np.where(x > 0, x)))(np.ones(3))


@pytest.mark.parametrize("name", ["prefer_torch", "auto"])
def test_records_are_compared_as_numpy_compares_them(name):
    records = onp.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")])
    ours = np.asarray(records)
    with minnp.policy(name):
        assert (ours == ours).tolist() == (records == records).tolist()
        assert (ours != ours[::-1]).tolist() == (records != records[::-1]).tolist()


class LargeProducts(Policy):
    """The guide's example, with a note of what it was asked."""

    def __init__(self):
        super().__init__("prefer_torch")
        self.asked = []

    def candidates(self, row, values, params, device):
        self.asked.append(row.name)
        large = row.name == "matmul" and all(v.size >= 10_000 for v in values)
        return super().candidates(row, values, params, device) if large or device is not None else []


def products(n):
    """The backends that ran the rows of a product and its gradient."""
    minnp.reset_report()
    minnp.grad(lambda a: np.sum(np.exp(a @ np.ones((n, n)))))(np.zeros((n, n)))
    return {(r["function"], r["backend"]) for r in minnp.report() if r["function"] in ("exp", "matmul")}


def test_a_policy_of_ones_own_says_call_by_call_where_rows_run():
    mine = LargeProducts()
    uses = [minnp.wrap_policy(mine)(products), mine(products)]
    for run in uses:
        assert run(100) == {("exp", "numpy"), ("matmul", "torch")}
        assert run(10) == {("exp", "numpy"), ("matmul", "numpy")}
    with mine:
        assert products(100) == {("exp", "numpy"), ("matmul", "torch")}
        with minnp.policy("prefer_torch"):
            assert products(10) == {("exp", "torch"), ("matmul", "torch")}
    before = minnp.get_global_policy()
    try:
        minnp.set_global_policy(mine)
        assert minnp.get_global_policy() is mine
        assert products(100) == {("exp", "numpy"), ("matmul", "torch")}
    finally:
        minnp.set_global_policy(before)
    assert {"exp", "matmul", "sum"} <= set(mine.asked)
    assert mine != minnp.policy("prefer_torch")  # of the same name, and another


def test_kernels_over_numpys_memory_need_cores_and_those_of_a_device_do_not(monkeypatch):
    monkeypatch.setattr(host_products, "crowded", False)
    TorchBackend("cpu")
    assert not host_products.crowded
    TorchBackend()
    assert host_products.crowded


@pytest.mark.parametrize("size", [4, 12])  # with few positions the weight's gradient is another library's
def test_one_thread_convolves_by_one_element_as_several_do(size):
    draw, threads = onp.random.default_rng(0).standard_normal, torch.get_num_threads()
    x, w = (draw(s).astype("f4") for s in ((2, 256, size, size), (2048, 256, 1, 1)))

    def step():
        with minnp.policy("prefer_torch"):
            y, pullback = minnp.vjp(npx.convolution, x, w)
            return y, *pullback(y)

    expected = step()
    torch.set_num_threads(1)
    try:
        for a, b in zip(step(), expected, strict=True):
            onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(onp.asarray(b)).max())
    finally:
        torch.set_num_threads(threads)
