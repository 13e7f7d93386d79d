"""MXNet's arrays, mx.nd's and mx.np's, among the arguments of ours: read like NumPy's, a constant to a gradient."""

import subprocess
import sys

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import Function, backends, fx, grad, jit, jvp, nn, npx, vmap
from minnp.scipy import special

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:Please import:DeprecationWarning")  # mxnet's own imports of SciPy

backends.get("mxnet")
import mxnet as mx

NAMESPACES = {"nd": mx.nd, "np": mx.np}
X = onp.array([1.0, 2.0, 3.0], "float32")
A, I = onp.array([4.0, 5.0, 6.0], "float32"), onp.array([2, 0], "int32")

CALLS = {
    "asarray": lambda np, x, a, i: np.asarray(a),
    "array": lambda np, x, a, i: np.array(a),
    "array of another dtype": lambda np, x, a, i: np.array(a, dtype="float64"),
    "array of a list": lambda np, x, a, i: np.array([a, x]),
    "add": lambda np, x, a, i: x + a,
    "subtract": lambda np, x, a, i: x - a,
    "matmul": lambda np, x, a, i: x @ a,
    "power": lambda np, x, a, i: x**a,
    "less": lambda np, x, a, i: x < a,
    "equal": lambda np, x, a, i: x == a,
    "promotion": lambda np, x, a, i: x + i[:1],
    "exp": lambda np, x, a, i: np.exp(a),
    "a ufunc of two": lambda np, x, a, i: np.add(a, x),
    "outer": lambda np, x, a, i: np.multiply.outer(x, a),
    "sum": lambda np, x, a, i: np.sum(a),
    "sum of a list": lambda np, x, a, i: np.sum([a, a], axis=0),
    "where": lambda np, x, a, i: np.where(x > 1, x, a),
    "concatenate": lambda np, x, a, i: np.concatenate([x, a]),
    "stack of its own": lambda np, x, a, i: np.stack([a, a]),
    "einsum": lambda np, x, a, i: np.einsum("i,i", x, a),
    "an index": lambda np, x, a, i: x[i],
    "an index in a tuple": lambda np, x, a, i: x[None, i],
    "an index in a list": lambda np, x, a, i: x[[i, i]] if type(i) is onp.ndarray else x[np.array([i, i])],
    "take": lambda np, x, a, i: x.take(i),
    "dot": lambda np, x, a, i: x.dot(a),
    "clip": lambda np, x, a, i: np.clip(x, a, 5),
    "linalg": lambda np, x, a, i: np.linalg.norm(a),
    "fft": lambda np, x, a, i: np.fft.fft(a),
    "NumPy's code": lambda np, x, a, i: np.pad(a, 1),
    "searching": lambda np, x, a, i: np.isin(x, a),
    "nditer": lambda np, x, a, i: np.array([e * 2 for e in np.nditer(a)]),
}


@pytest.fixture(params=NAMESPACES)
def mxnet(request):
    return NAMESPACES[request.param]


def written(np, x, a, i, how):
    y = np.zeros((2, 3), "float32")
    if how == "a row":
        y[1] = a
    elif how == "by index":
        y[:, i] = x[:2]
    elif how == "in place":
        y += a
    elif how == "copyto":
        np.copyto(y, a)
    else:
        np.add.at(y, (0, i), a[:2])
    return y


for how in ("a row", "by index", "in place", "copyto", "at"):
    CALLS[f"written {how}"] = lambda np, x, a, i, how=how: written(np, x, a, i, how)


def same(got, want):
    assert type(got) is np.ndarray or isinstance(got, onp.generic)
    assert got.dtype == want.dtype
    onp.testing.assert_array_equal(onp.asarray(got), want)


@pytest.mark.parametrize("name", CALLS)
def test_what_takes_numpys_arrays_takes_mxnets(name, mxnet):
    want = CALLS[name](onp, X, A, I)
    same(CALLS[name](np, np.array(X), mxnet.array(A), mxnet.array(I, dtype="int32")), want)


@pytest.mark.parametrize("name", CALLS)
def test_on_a_place_the_result_stays_there(name, mxnet):
    with minnp.Context("cpu", 0, "mxnet"):
        x = np.array(X)
        got = CALLS[name](np, x, mxnet.array(A), mxnet.array(I, dtype="int32"))
    want = CALLS[name](onp, X, A, I)
    assert got.dtype == want.dtype
    onp.testing.assert_allclose(onp.asarray(got), want, rtol=1e-5)


DIFFERENTIATED = [
    "add",
    "matmul",
    "power",
    "where",
    "concatenate",
    "an index",
    "an index in a tuple",
    "take",
    "dot",
    "einsum",
]


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_to_a_gradient_it_is_a_constant(name, mxnet):
    f = lambda a, i: lambda x: np.sum(CALLS[name](np, x, a, i) ** 2)
    want = grad(f(np.array(A), np.array(I)))(np.array(X))
    a, i = mxnet.array(A), mxnet.array(I, dtype="int32")
    same(grad(f(a, i))(np.array(X)), onp.asarray(want))
    value, slope = jvp(f(a, i), (np.array(X),), (np.ones(3, "float32"),))
    same(slope, onp.asarray(np.sum(want)).astype(value.dtype))  # NumPy 1 squares a float32 to a float64
    assert fx.symbolic_trace(f(a, i))(np.array(X)) == f(a, i)(np.array(X))
    with pytest.raises(TypeError, match="cannot differentiate with respect to argument 0"):
        grad(lambda a: np.sum(a))(a)


def test_a_trace_that_writes_one_keeps_the_gradient(mxnet):
    a, i = mxnet.array(A), mxnet.array(I, dtype="int32")

    def f(x):
        y = np.zeros(3, "float32")
        y[:] = a
        y[i] *= x[:2]
        return np.sum(y)

    same(grad(f)(np.array(X)), onp.array([6, 4, 0], "float32"))


def test_layers_and_scipy_take_it(mxnet):
    same(npx.relu(mxnet.array(-A)), onp.zeros(3, "float32"))
    same(special.expit(mxnet.array(A)), onp.asarray(special.expit(np.array(A))))
    same(vmap(lambda x, a: x * a)(np.array(X), mxnet.array(A)), X * A)


def test_symbols_and_parameters_of_models_take_it(mxnet):
    fc = Function(mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=2), input_shapes={"x": (1, 3)})
    w, b = onp.ones((2, 3), "float32"), onp.zeros(2, "float32")
    same(fc(mxnet.array([X]), np.array(w), mxnet.array(b)), X[None] @ w.T + b)
    net = nn.Sequential(nn.Linear(3, 2))
    net.set_tree({"0.w": mxnet.array(w.T), "0.b": mxnet.array(b)})
    assert {type(value) for value in net.tree().values()} == {np.ndarray}
    same(net(mxnet.array([X])), X[None] @ w.T + b)
    net.fit(mxnet.array([X, A]), mxnet.array([0, 1]), epochs=1, verbose=False)


def test_compiled_code_sees_its_elements_change(mxnet):
    a = mxnet.array(A)
    given, read = jit(lambda x, a: x * a), jit(lambda x: x * a)
    for elements in (A, 2 * A):
        a[:] = elements
        same(given(np.array(X), a), X * elements)
        same(given(a, np.array(X)), X * elements)
        same(read(np.array(X)), X * elements)
    assert read.cache_info()["captures"] == 0


def test_compiled_code_writes_to_its_argument(mxnet):
    a = mxnet.array(A)

    @jit
    def f(a):
        a[1:] = 0
        return a.sum()

    assert float(f(a)) == 4.0
    a[2] = 7
    assert float(f(a)) == 4.0
    assert a.asnumpy().tolist() == [4.0, 0.0, 0.0]


def test_no_result_is_written_into_a_copy_of_it(mxnet):
    a = mxnet.array(A)
    for write in (
        lambda: np.add(np.array(X), 1, out=a),
        lambda: np.add(np.array(X), 1, a),
        lambda: np.sum(np.array([X, X]), axis=0, out=a),
        lambda: np.copyto(a, X),
        lambda: np.add.at(a, [0], 1),
    ):
        with pytest.raises(TypeError, match=r"cannot write to mxnet\.\w+"):
            write()
    assert a.asnumpy().tolist() == A.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_dtypes_and_shapes_are_its_own(dtype, mxnet):
    a = mxnet.array([[0, 1], [1, 1]], dtype=dtype)
    same(np.asarray(a), a.asnumpy())
    assert np.asarray(a).dtype == dtype


def test_sparse_ones_are_read_whole():
    same(np.ones(3) + mx.nd.array([[0, 1, 0]]).tostype("csr"), onp.array([[1.0, 2.0, 1.0]]))


def test_with_mxnets_array_on_the_left_mxnet_decides(mxnet):
    a, x = mxnet.array(A), np.array(X)
    with pytest.raises(TypeError, match="not supported"):
        a + x
    same(np.asarray(a) + x, A + X)
    assert type(mxnet.array(x)) is type(a)


@pytest.mark.either("what is imported")
def test_nothing_imports_mxnet_for_it():
    program = (
        "import sys, minnp.numpy as np\nnp.asarray([1.0]) + np.exp(2.0)\nassert 'mxnet' not in sys.modules, 'imported'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
