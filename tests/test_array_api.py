"""minnp.numpy is a namespace of the Array API standard 2024.12: its names, called as it says, and its rules."""

import inspect
import pickle

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad

# The standard's functions that take arrays, by signature. https://data-apis.org/array-api/2024.12/API_specification
ELEMENTWISE_1 = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh
trunc
"""
ELEMENTWISE_2 = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
minimum multiply nextafter not_equal pow remainder subtract
"""
OTHERS = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
clip(x, /, min=None, max=None)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
concat(arrays, /, *, axis=0)
expand_dims(x, /, *, axis=0)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
argsort(x, /, *, axis=-1, descending=False, stable=True)
sort(x, /, *, axis=-1, descending=False, stable=True)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
take(x, indices, /, *, axis)
take_along_axis(x, indices, /, *, axis=-1)
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1)
linalg.det(x, /)
linalg.diagonal(x, /, *, offset=0)
linalg.eigh(x, /)
linalg.eigvalsh(x, /)
linalg.inv(x, /)
linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None)
linalg.matrix_transpose(x, /)
linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol=None)
linalg.qr(x, /, *, mode='reduced')
linalg.slogdet(x, /)
linalg.solve(x1, x2, /)
linalg.svd(x, /, *, full_matrices=True)
linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftn(x, /, *, s=None, axes=None, norm='backward')
fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftshift(x, /, *, axes=None)
fft.ifftshift(x, /, *, axes=None)
"""
SIGNATURES = [
    *(f"{name}(x, /)" for name in ELEMENTWISE_1.split()),
    *(f"{name}(x1, x2, /)" for name in ELEMENTWISE_2.split()),
    *OTHERS.strip().splitlines(),
]
CONSTANTS = (
    "e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)
METHODS = "__array_namespace__ __dlpack__ __dlpack_device__ to_device device dtype mT ndim shape size T"


def find(name: str):
    x = np
    for part in name.split("."):
        x = getattr(x, part)
    return x


@pytest.mark.parametrize("line", SIGNATURES, ids=lambda line: line.partition("(")[0])
def test_function_takes_the_standards_arguments(line: str) -> None:
    name, _, rest = line.partition("(")
    standard = {}
    exec(f"def f({rest}: pass", standard)
    call = find(name)
    try:
        signature = inspect.signature(call)
    except ValueError:
        return  # a builtin of NumPy 1.26 says nothing; the tests below call it
    positional, keywords = [], {}
    for p in inspect.signature(standard["f"]).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = p.default
        elif p.kind is not p.VAR_POSITIONAL:
            positional.append(0)
    signature.bind(*positional, **keywords)


def test_constants_dtypes_and_attributes_exist() -> None:
    for name in CONSTANTS.split():
        assert hasattr(np, name), name
    for name in METHODS.split():
        assert hasattr(np.zeros((2, 2)), name), name
    assert np.__array_api_version__ >= "2024.12" or np.__version__.startswith("2")


def test_an_array_names_its_namespace() -> None:
    x = np.arange(3)
    assert x.__array_namespace__() is np
    assert x.__array_namespace__(api_version="2024.12") is np
    with pytest.raises(ValueError, match="not supported"):
        x.__array_namespace__(api_version="1999.01")


def test_the_namespace_describes_itself() -> None:
    info = np.__array_namespace_info__()
    assert info.default_device() == "cpu" and "cpu" in info.devices()
    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert set(info.dtypes(kind="integral")) == {f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.dtypes()["float32"] == np.float32


def test_devices() -> None:
    x = np.ones(2, device="cpu")
    assert x.device == "cpu" and x.to_device("cpu") is x
    for create in (lambda d: np.zeros(3, device=d), lambda d: np.asarray([1], device=d), lambda d: x.to_device(d)):
        with pytest.raises(ValueError, match="Device not understood"):
            create("nowhere")


def test_the_device_that_an_array_names_is_one_that_functions_take() -> None:
    pytest.importorskip("torch", reason="the device in the CPU's memory is torch's")
    info, here = np.__array_namespace_info__(), np.ones(3)
    with minnp.Context("cpu", 0, "torch") as there:
        x = np.ones(3)
        assert np.ones(3, device="cpu").device == np.asarray(x, device="cpu").device == "cpu"
        assert info.default_device() == x.device and info.devices() == ["cpu", x.device]
    where = pickle.loads(pickle.dumps(x.device))
    assert where == x.device == str(there) != here.device
    for y in (np.full(3, 1.0, device=where), np.asarray(here, device=where), np.empty_like(here, device=where)):
        assert y.device == where
    for y in (
        np.full_like(x, 1, dtype=np.int32),
        np.full_like(x, 2.5),
        np.zeros_like(x, dtype="f4"),
        np.full_like(x, x[0]),
    ):
        assert y.device == where
    assert here.to_device(where).device == where and np.asarray(here, device="cpu") is here
    assert info.dtypes(device=where) == info.dtypes() and info.default_dtypes(device=where) == info.default_dtypes()
    for ask in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="Device not understood"):
            ask(device="nowhere")


@pytest.mark.parametrize(
    ("dtype", "kind", "is_kind"),
    [
        ("float32", "real floating", True),
        ("complex64", "numeric", True),
        ("int8", "signed integer", True),
        ("uint8", "signed integer", False),
        ("uint8", ("bool", "unsigned integer"), True),
        ("bool", "numeric", False),
        ("float64", onp.dtype("float64"), True),
    ],
)
def test_isdtype(dtype: str, kind: object, is_kind: bool) -> None:
    assert np.isdtype(np.dtype(dtype), kind) is is_kind


def test_sorting_is_stable_both_ways() -> None:
    x = np.asarray([2, 1, 3, 1, 2])
    assert np.sort(x, descending=True).tolist() == [3, 2, 2, 1, 1]
    assert np.argsort(x, descending=True, stable=True).tolist() == [2, 0, 4, 1, 3]
    assert np.argsort(x, stable=True).tolist() == [1, 3, 0, 4, 2]
    m = np.asarray([[3.0, 1.0], [2.0, 5.0]])
    assert np.sort(m, axis=0, descending=True).tolist() == [[3.0, 5.0], [2.0, 1.0]]
    for f in (np.sort, minnp.jit(np.sort), lambda x, **way: np.take(x, np.argsort(x, **way))):  # as NumPy 2.5
        assert repr(f(np.array([1.0, onp.nan, 3.0]), descending=True).tolist()) == "[3.0, 1.0, nan]"
    assert np.argsort(m, axis=None, descending=True).tolist() == [3, 0, 2, 1]
    assert np.argsort(m, axis=0, descending=True).tolist() == [[0, 1], [1, 0]]


def test_unique_functions() -> None:
    x = np.asarray([[2, 1], [2, 3]])
    every = np.unique_all(x)
    assert [every.values.tolist(), every.indices.tolist()] == [[1, 2, 3], [1, 0, 3]]
    assert every.inverse_indices.tolist() == [[1, 0], [1, 2]] and every.counts.tolist() == [1, 2, 1]
    assert np.unique_counts(x).counts.tolist() == [1, 2, 1]
    assert np.unique_inverse(x).inverse_indices.shape == (2, 2)
    assert len(np.unique_values(np.asarray([np.nan, np.nan]))) == 2


def test_scans_products_and_views() -> None:
    x = np.reshape(np.arange(6.0), (2, 3))
    assert np.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 0, 1, 3], [0, 3, 7, 12]]
    assert np.cumulative_prod(np.asarray([2, 3]), include_initial=True).tolist() == [1, 2, 6]
    assert [row.tolist() for row in np.unstack(x)] == x.tolist()
    assert np.vecdot(x * 1j, x * 1j).tolist() == [5, 50]
    assert np.matrix_transpose(x).shape == x.mT.shape == np.permute_dims(x, (1, 0)).shape == (3, 2)
    assert np.concat([x, x], axis=None).shape == (12,)
    assert np.astype(x, np.int8).dtype == np.int8 and np.astype(x, x.dtype, copy=False) is x
    assert np.clip(x, min=1, max=None).min() == 1 and np.clip(x, max=2).max() == 2
    assert np.std(x, correction=1) == pytest.approx(onp.std(onp.arange(6.0), ddof=1))
    assert not np.shares_memory(np.reshape(x, (3, 2), copy=True), x)
    with pytest.raises(ValueError):
        np.reshape(x.T, (6,), copy=False)
    y = np.asarray(x, copy=True)
    y[0, 0] = 7
    assert x[0, 0] == 0
    with pytest.raises(ValueError):
        np.asarray([1, 2], copy=False)


def test_linalg() -> None:
    x = np.reshape(np.arange(12.0), (3, 2, 2)) + 5 * np.eye(2)
    assert np.linalg.vector_norm(x, axis=(0, 2), keepdims=True).shape == (1, 2, 1)
    assert type(np.linalg.vector_norm(x, keepdims=True)) is np.ndarray
    assert np.allclose(np.linalg.vector_norm(x, axis=(0, 2)), onp.sqrt((onp.asarray(x) ** 2).sum(axis=(0, 2))))
    assert np.allclose(np.linalg.matrix_norm(x), onp.linalg.norm(onp.asarray(x), axis=(1, 2)))
    assert np.linalg.trace(x).shape == (3,) and np.linalg.diagonal(x).shape == (3, 2)
    assert np.linalg.svdvals(x).shape == (3, 2)
    assert np.linalg.matrix_rank(np.ones((2, 2)), rtol=1e-6) == 1
    s = np.matmul(x, x.mT)
    upper = np.linalg.cholesky(s, upper=True)
    assert np.allclose(upper.mT @ upper, s)
    assert np.allclose(np.linalg.pinv(x, rtol=1e-15) @ x, np.eye(2))
    assert np.allclose(x @ np.linalg.solve(x, np.ones(2))[..., None], np.ones((2, 1)))
    assert np.allclose(np.linalg.solve(x, x), np.broadcast_to(np.eye(2), x.shape))
    with pytest.raises(ValueError):
        np.linalg.outer(x, x)
    with pytest.raises(ValueError):
        np.linalg.cross(np.ones(2), np.ones(2))


def test_frequencies_take_a_dtype() -> None:
    for name in ("fftfreq", "rfftfreq"):
        f, g = getattr(np.fft, name), getattr(onp.fft, name)
        assert (onp.asarray(f(6, d=0.5)) == g(6, d=0.5)).all() and f(6).dtype == "float64"
        assert f(6, dtype=np.float32).dtype == "float32" and f(6, dtype=np.float32).device == "cpu"
        with pytest.raises(ValueError, match="real floating"):
            f(6, dtype=np.int64)
        assert pickle.loads(pickle.dumps(f)) == f


def test_elements_along_the_last_axis_are_taken() -> None:
    assert np.take_along_axis(np.array([[1, 2], [3, 4]]), np.array([[1], [0]])).tolist() == [[2], [3]]


def test_ufuncs_show_their_arguments() -> None:
    assert list(inspect.signature(np.add).parameters)[:3] == ["x1", "x2", "out"]
    assert list(inspect.signature(np.exp).parameters)[:3] == ["x", "out", "where"]


def test_dlpack_shares_memory() -> None:
    x = np.arange(4.0)
    y = np.from_dlpack(x)
    x[0] = 9
    assert y[0] == 9 and type(y) is np.ndarray
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x)
    assert x.__dlpack_device__() == (1, 0)
    assert x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None
    with pytest.raises((BufferError, ValueError)):
        x.__dlpack__(dl_device=(2, 0))


def test_gradients_flow_through_the_standards_names() -> None:
    x = np.asarray([[2.0, 1.0], [3.0, 4.0]])
    weights = np.asarray([1.0, 10.0])
    assert grad(lambda x: np.sum(np.sort(x, descending=True) * weights))(x).tolist() == [[1, 10], [10, 1]]
    assert grad(lambda x: np.sum(np.vecdot(x, x)))(x).tolist() == (2 * x).tolist()
    assert grad(lambda x: np.sum(np.cumulative_sum(x, axis=1)))(x).tolist() == [[2, 1], [2, 1]]
    assert grad(lambda x: np.unstack(x)[1][0])(x).tolist() == [[0, 0], [1, 0]]
    assert np.allclose(grad(lambda x: np.linalg.vector_norm(x))(x), x / np.linalg.vector_norm(x))
