"""What the Array API standard 2024.12 says of results: promotion, special cases, indexing, what is inspected.

https://data-apis.org/array-api/2024.12: each table below is one of its pages."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp.numpy.facts import NUMPY_2

INTEGERS = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
inf, nan = math.inf, math.nan


def promoted(a: str, b: str) -> str | None:
    """The standard's type promotion; None where it leaves the result open."""
    for kinds in (INTEGERS, UNSIGNED, FLOATS, COMPLEX):
        if a in kinds and b in kinds:
            return max(a, b, key=kinds.index)
    if {a, b} & set(INTEGERS) and {a, b} & set(UNSIGNED):
        signed, unsigned = (a, b) if a in INTEGERS else (b, a)
        at = max(INTEGERS.index(signed), UNSIGNED.index(unsigned) + 1)
        return INTEGERS[at] if at < 4 else None
    if {a, b} & set(FLOATS) and {a, b} & set(COMPLEX):
        real, other = (a, b) if a in FLOATS else (b, a)
        return "complex64" if (real, other) == ("float32", "complex64") else "complex128"
    return "bool" if a == b == "bool" else None


PAIRS = [
    (a, b, c)
    for a, b in itertools.product(["bool", *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX], repeat=2)
    if (c := promoted(a, b)) is not None
]


@pytest.mark.parametrize(("a", "b", "c"), PAIRS)
def test_promotion(a: str, b: str, c: str) -> None:
    x, y, result = np.ones(2, dtype=getattr(np, a)), np.ones(2, dtype=getattr(np, b)), getattr(np, c)
    assert np.result_type(x, y) == np.result_type(x.dtype, y.dtype) == result
    assert np.where(x == 1, x, y).dtype == np.concat([x, y]).dtype == result
    if c == "bool":
        assert np.logical_and(x, y).dtype == (x & y).dtype == np.equal(x, y).dtype == result
        return
    assert (x + y).dtype == np.multiply(x, y).dtype == np.subtract(x, y).dtype == result
    assert (x @ y).dtype == np.vecdot(x, y).dtype == np.tensordot(x, y, axes=1).dtype == result
    assert (x == y).dtype == np.not_equal(x, y).dtype == np.bool
    if c not in COMPLEX:
        assert np.maximum(x, y).dtype == np.remainder(x, y).dtype == np.floor_divide(x, y).dtype == result
        assert np.less(x, y).dtype == (x >= y).dtype == np.bool
    if c in INTEGERS + UNSIGNED:
        assert (x & y).dtype == np.bitwise_xor(x, y).dtype == np.bitwise_left_shift(x, y).dtype == result


@pytest.mark.parametrize("name", [*INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX])
def test_numbers_of_python_take_the_arrays_dtype(name: str) -> None:
    x = np.ones(3, dtype=getattr(np, name))
    scalars = [1, *([2.0] if name in FLOATS + COMPLEX else []), *([1j] if name in COMPLEX else [])]
    for s in scalars:
        for y in (x + s, s * x, x - s, s + x):
            assert y.dtype == x.dtype
        z = np.asarray(x, copy=True)
        z += s
        z[0] = s
        assert z.dtype == x.dtype and z[0] == s


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX])
def test_dtypes_of_reductions_and_creation(name: str) -> None:
    dtype = getattr(np, name)
    x = np.ones((2, 3), dtype=dtype)
    if name != "bool":
        total = dtype if name in FLOATS + COMPLEX else np.int64 if name in INTEGERS else np.uint64
        for y in (np.sum(x), np.prod(x, axis=0), np.cumulative_sum(x, axis=1), np.cumulative_prod(x, axis=1)):
            assert y.dtype == total
        assert np.sum(x, dtype=dtype).dtype == dtype and np.sum(x, axis=(0, 1), keepdims=True).shape == (1, 1)
    if name in FLOATS:
        for y in (np.mean(x), np.std(x, correction=1), np.var(x, axis=0), np.linalg.vector_norm(x)):
            assert y.dtype == dtype
    if name not in COMPLEX and name != "bool":
        assert np.max(x).dtype == np.sort(x).dtype == np.clip(x, 0, 1).dtype == dtype
        for y in (np.argmax(x), np.argsort(x), np.nonzero(x)[0], np.searchsorted(x[0], x[0])):
            assert y.dtype == np.int64
    for y in (np.any(x), np.all(x, axis=0), np.isfinite(x) if name != "bool" else x, np.logical_not(x == x)):
        assert y.dtype == np.bool
    for y in (np.zeros(2, dtype=dtype), np.full(2, 1, dtype=dtype), np.eye(2, dtype=dtype), np.empty_like(x)):
        assert y.dtype == dtype
    assert np.count_nonzero(x) == 6 and np.astype(x, np.float32 if name not in COMPLEX else np.complex64).shape == (
        2,
        3,
    )


def test_default_dtypes() -> None:
    assert (
        np.zeros(2).dtype == np.linspace(0, 1, 3).dtype == np.asarray(1.0).dtype == np.full(2, 1.0).dtype == np.float64
    )
    assert np.arange(3).dtype == np.asarray([1, 2]).dtype == np.full(2, 1).dtype == np.int64
    assert np.asarray(1j).dtype == np.complex128 and np.asarray(True).dtype == np.full(1, True).dtype == np.bool


SPECIAL = [
    ("pow", (nan, 0.0), 1.0), ("pow", (1.0, nan), 1.0), ("pow", (-0.0, -1.0), -inf), ("pow", (0.0, -2.0), inf),
    ("pow", (-inf, 3.0), -inf), ("pow", (-inf, 2.0), inf), ("pow", (-1.0, inf), 1.0), ("pow", (0.5, inf), 0.0),
    ("pow", (-2.0, 0.5), nan), ("atan2", (0.0, -0.0), math.pi), ("atan2", (-0.0, 0.0), -0.0),
    ("atan2", (inf, -inf), 3 * math.pi / 4), ("atan2", (1.0, -inf), math.pi), ("atan2", (nan, 1.0), nan),
    ("copysign", (3.0, -0.0), -3.0), ("hypot", (nan, inf), inf), ("hypot", (3.0, 4.0), 5.0),
    ("logaddexp", (-inf, -inf), -inf), ("maximum", (nan, 1.0), nan), ("minimum", (1.0, nan), nan),
    ("remainder", (-1.0, 3.0), 2.0), ("remainder", (1.0, -3.0), -2.0), ("remainder", (5.0, 0.0), nan),
    ("remainder", (inf, 3.0), nan), ("floor_divide", (0.0, 0.0), nan), ("floor_divide", (-7.0, 2.0), -4.0),
    ("divide", (1.0, -0.0), -inf), ("divide", (0.0, 0.0), nan), ("divide", (inf, inf), nan),
    ("add", (inf, -inf), nan), ("add", (-0.0, -0.0), -0.0), ("multiply", (0.0, inf), nan),
    ("multiply", (-0.0, 1.0), -0.0), ("subtract", (0.0, 0.0), 0.0), ("nextafter", (0.0, 1.0), 5e-324),
    ("nextafter", (nan, 1.0), nan), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1.0,), nan), ("sqrt", (inf,), inf),
    ("exp", (-inf,), 0.0), ("exp", (-0.0,), 1.0), ("expm1", (-0.0,), -0.0), ("expm1", (-inf,), -1.0),
    ("log", (0.0,), -inf), ("log", (-1.0,), nan), ("log1p", (-1.0,), -inf), ("log1p", (-0.0,), -0.0),
    ("log2", (8.0,), 3.0), ("log10", (1000.0,), 3.0), ("sin", (-0.0,), -0.0), ("sin", (inf,), nan),
    ("tan", (-0.0,), -0.0), ("asin", (2.0,), nan), ("asin", (-0.0,), -0.0), ("acos", (1.0,), 0.0),
    ("acosh", (0.5,), nan), ("acosh", (1.0,), 0.0), ("asinh", (-0.0,), -0.0), ("atanh", (-1.0,), -inf),
    ("atanh", (2.0,), nan), ("tanh", (-inf,), -1.0), ("tanh", (-0.0,), -0.0), ("cosh", (-inf,), inf),
    ("ceil", (-0.5,), -0.0), ("floor", (-0.0,), -0.0), ("trunc", (-0.9,), -0.0), ("round", (2.5,), 2.0),
    ("round", (-1.5,), -2.0), ("round", (-0.4,), -0.0), ("sign", (nan,), nan), ("sign", (-0.0,), 0.0),
    ("abs", (-0.0,), 0.0), ("abs", (-inf,), inf), ("reciprocal", (-0.0,), -inf), ("square", (-inf,), inf),
    ("signbit", (-0.0,), True), ("signbit", (0.0,), False), ("isnan", (nan,), True), ("isinf", (-inf,), True),
    ("isfinite", (nan,), False), ("equal", (nan, nan), False), ("not_equal", (nan, nan), True),
    ("equal", (-0.0, 0.0), True),
    ("less", (nan, 1.0), False), ("greater_equal", (inf, inf), True), ("logical_not", (nan,), False),
    ("positive", (-0.0,), -0.0), ("negative", (0.0,), -0.0), ("clip", (nan, 0.0, 1.0), nan),
    ("clip", (5.0, 0.0, 1.0), 1.0),
    ("abs", (complex(nan, inf),), inf), ("sqrt", (complex(-1.0, 0.0),), 1j), ("exp", (complex(-inf, 0.0),), 0j),
    ("log", (complex(0.0, 0.0),), complex(-inf, 0.0)), ("conj", (1 + 2j,), 1 - 2j), ("sign", (3 + 4j,), 0.6 + 0.8j),
    ("isnan", (complex(nan, 0.0),), True), ("isinf", (complex(nan, inf),), True), ("real", (1 + 2j,), 1.0),
    ("imag", (1 + 2j,), 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "wanted"), SPECIAL, ids=lambda v: str(v))
def test_special_cases(name: str, args: tuple, wanted: Any) -> None:
    with onp.errstate(all="ignore"):
        out = getattr(np, name)(*[np.asarray([a]) for a in args])
    value = out[0].item()
    if name == "sign" and isinstance(args[0], complex) and onp.lib.NumpyVersion(onp.__version__) < "2.0.0":
        wanted = 1 + 0j  # NumPy 1.26 differs from the standard, and programs for it come first
    assert type(value) is type(wanted)
    if wanted != wanted:
        assert value != value
    else:
        assert value == pytest.approx(wanted, rel=1e-15)
        if isinstance(wanted, float):
            assert math.copysign(1, value) == math.copysign(1, wanted)


def test_reductions_of_nothing_and_of_nan() -> None:
    empty, with_nan = np.zeros(0), np.asarray([1.0, nan])
    assert (np.sum(empty), np.prod(empty), bool(np.any(empty)), bool(np.all(empty))) == (0, 1, False, True)
    for f in (np.sum, np.prod, np.max, np.min, np.mean, np.std, np.var):
        assert np.isnan(f(with_nan))
    assert np.any(with_nan) and np.all(with_nan) and np.argmax(with_nan) == 1
    assert np.cumulative_sum(np.asarray([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert np.cumulative_prod(np.asarray([2, 3]), include_initial=True).tolist() == [1, 2, 6]


def test_indexing() -> None:
    x = np.reshape(np.arange(24), (2, 3, 4))
    shapes = [
        ((0,), (3, 4)), ((-1, 2), (4,)), ((..., 0), (2, 3)), ((slice(None), None, 1), (2, 1, 4)),
        ((slice(1, None, -1),), (2, 3, 4)), ((0, 0, 0), ()), ((..., slice(0, 0)), (2, 3, 0)),
    ]  # fmt: skip
    for index, shape in shapes:
        assert x[index].shape == shape
    assert x[x > 20].tolist() == [21, 22, 23] and x[np.asarray([1, 0]), np.asarray([2, 0]), 0].tolist() == [20, 0]
    assert x[np.asarray(1)].shape == (3, 4) and x[np.asarray([[0, 1]])].shape == (1, 2, 3, 4)
    for outside in ((2,), (0, 3), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            x[outside]
    y = np.zeros((2, 2))
    y[0, ...], y[:, 1], y[np.asarray([[False, False], [True, False]])] = 1.0, np.asarray([2.0, 3.0]), 4.0
    assert y.tolist() == [[1, 2], [4, 3]]


def test_sets_searching_and_manipulation() -> None:
    x = np.asarray([nan, 1.0, nan, 1.0])
    assert np.unique_values(x).shape == (3,) and sorted(np.unique_counts(x).counts.tolist()) == [1, 1, 2]
    y = np.asarray([[2, 1], [2, 3]])
    values, indices, inverse, counts = np.unique_all(y)
    assert inverse.shape == y.shape and np.all(np.take(values, inverse.ravel()) == y.ravel())
    assert np.take(y.ravel(), indices).tolist() == values.tolist() and counts.tolist() == [1, 2, 1]
    assert np.sort(y, axis=0, descending=True).tolist() == [[2, 3], [2, 1]]
    assert np.argsort(np.asarray([1, 1, 0]), descending=True, stable=True).tolist() == [0, 1, 2]
    assert np.searchsorted(np.asarray([1, 2, 2]), np.asarray([2]), side="right").tolist() == [3]
    assert np.searchsorted(np.asarray([3, 1]), np.asarray([2]), sorter=np.asarray([1, 0])).tolist() == [1]
    assert np.take(y, np.asarray([1, -1]), axis=1).tolist() == [[1, 1], [3, 3]]
    assert np.take_along_axis(y, np.asarray([[1], [0]]), axis=1).tolist() == [[1], [2]]
    assert np.repeat(y, np.asarray([1, 2]), axis=0).shape == (3, 2) and np.tile(y, (2, 1, 1)).shape == (2, 2, 2)
    assert [u.tolist() for u in np.unstack(y, axis=1)] == [[2, 2], [1, 3]]
    assert np.diff(np.asarray([1, 4]), prepend=np.asarray([0]), append=np.asarray([9])).tolist() == [1, 3, 5]
    assert np.permute_dims(y, (1, 0)).tolist() == y.T.tolist() == y.mT.tolist() == np.matrix_transpose(y).tolist()
    assert np.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape == (3, 4, 2)
    assert np.nonzero(y == 2)[0].tolist() == [0, 1] and np.roll(y, (1, 1), axis=(0, 1)).tolist() == [[3, 2], [1, 2]]
    assert [m.shape for m in np.meshgrid(np.arange(2), np.arange(3), indexing="ij")] == [(2, 3)] * 2
    assert not onp.shares_memory(np.reshape(y, (4,), copy=True), y) and np.expand_dims(y, axis=-1).shape == (2, 2, 1)
    with pytest.raises((ValueError, IndexError)):
        np.expand_dims(y, axis=4)
    with pytest.raises(ValueError):
        np.squeeze(y, 0)


def test_what_is_inspected() -> None:
    info = np.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True and info.capabilities()["data-dependent shapes"] is True
    assert "max dimensions" in info.capabilities() and info.default_device() == "cpu" and "cpu" in info.devices()
    defaults = info.default_dtypes()
    assert {k: str(np.dtype(v)) for k, v in defaults.items()} == {
        "real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64",
    }  # fmt: skip
    kinds = {
        "bool": ["bool"], "signed integer": INTEGERS, "unsigned integer": UNSIGNED, "integral": INTEGERS + UNSIGNED,
        "real floating": FLOATS, "complex floating": COMPLEX, "numeric": INTEGERS + UNSIGNED + FLOATS + COMPLEX,
        ("bool", "complex floating"): ["bool", *COMPLEX], None: ["bool", *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX],
    }  # fmt: skip
    for kind, names in kinds.items():
        assert sorted(info.dtypes(kind=kind)) == sorted(names), kind
        for name in names:
            assert kind is None or np.isdtype(getattr(np, name), kind)
    x = np.zeros(2)
    assert x.__array_namespace__() is np and x.__array_namespace__(api_version="2024.12") is np
    assert np.__array_api_version__ >= "2024.12" and x.device == "cpu" and x.to_device("cpu").device == "cpu"
    for wrong in ("2019.05", "x"):
        with pytest.raises(ValueError):
            x.__array_namespace__(api_version=wrong)
    facts = np.finfo(np.float32)
    assert (facts.bits, facts.dtype) == (32, np.float32) and float(facts.smallest_normal) == 2.0**-126
    assert np.finfo(np.complex64).bits == 32 and np.iinfo(x.astype(np.int8).dtype).max == 127
    assert x.__dlpack_device__()[0] == 1 and np.from_dlpack(x).dtype == x.dtype
    assert int(np.asarray(3)) == operator_index(np.asarray(3)) == 3 and complex(np.asarray(1.0)) == 1 + 0j
    with pytest.raises(TypeError):
        operator_index(np.asarray(1.0))


def operator_index(x: Any) -> int:
    return range(10)[x]


def test_copies_are_made_as_asked() -> None:
    x = np.arange(3)
    assert np.asarray(x, copy=False) is x and np.asarray(x, copy=True) is not x
    with pytest.raises(ValueError):
        np.asarray([1, 2], copy=False)
    assert np.reshape(np.zeros((2, 0)), (0, 3), copy=False).shape == (0, 3)
    assert np.astype(x, np.int64, copy=False) is x and np.astype(x, np.int64) is not x
    with pytest.raises(ValueError):
        np.asarray(x, dtype=np.float64, copy=False)


@pytest.mark.dealt("old")
@pytest.mark.skipif(NUMPY_2, reason="NumPy 2 promotes as the standard says, and no other way")
def test_numpys_switch_for_the_standards_promotion_is_ours_too() -> None:
    """NumPy 1.26 looks at the values of arrays without dimensions, unless NPY_PROMOTION_STATE=weak."""
    program = """
import itertools, minnp.numpy as np
dtypes = [np.dtype(c) for c in "?bhilBHILfdFD"]
for a, b in itertools.product(dtypes, dtypes):
    for x, y in ((np.ones(2, a), np.ones((), b)), (np.ones((), a), np.ones((), b)), (np.ones(2, a), b.type(1))):
        assert (x * y).dtype == (y * x).dtype == np.multiply(x, y).dtype == np.result_type(a, b), (a, b)
    if a.kind == "f":
        assert (np.ones(2, a) + 1e300).dtype == a
    if a.kind in "iu":
        assert np.ceil(np.ones(2, a)).dtype == np.floor(np.ones((), a)).dtype == np.trunc(np.ones(2, a)).dtype == a
    if a.kind in "fc":
        single = a in (np.dtype("f4"), np.dtype("c8"))
        assert np.fft.fft(np.ones(2, a)).dtype == np.fft.ifftn(np.ones((2, 2), a)).dtype == ("c8" if single else "c16")
        assert np.fft.irfft(np.ones(2, a), n=2).dtype == ("f4" if single else "f8")
    assert np.where(np.ones(2, bool), np.ones(2, a), a.type(1).item()).dtype == a
assert np.allclose(np.sign(np.array([3 + 4j, 0])), [0.6 + 0.8j, 0], rtol=1e-15)
assert np.count_nonzero(np.ones(3)).dtype == np.intp
try:
    np.nonzero(np.ones(()))
except ValueError as error:
    assert "0d" in str(error)
else:
    raise AssertionError
"""
    environment = {**os.environ, "NPY_PROMOTION_STATE": "weak"}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
