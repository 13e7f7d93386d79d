"""Numbers at the ends of their dtypes, and those of dtypes that machine code has not, under jit: NumPy's results, and
its exceptions, in every call."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import jit

NUMPY2 = onp.lib.NumpyVersion(onp.__version__) >= "2.0.0"
WIDE = onp.array([302848428513515939, 5, -7])  # a float64 rounds the first
WIDE_NATURAL = onp.array([3482737341898934784, 2089170256709339539], "u8")
MASK = onp.array([False, True, True])
CASES: list[tuple[Callable, tuple]] = []


def case(*args: Any) -> Callable:
    def add(f: Callable) -> Callable:
        CASES.append((f, args))
        return f

    return add


# ------------------------------------------------------------------ written into other dtypes
@case(onp.array(-22.5 + 1j), onp.zeros((2, 3), int), onp.ones((2, 3)))
def a_complex_number_into_integers(np, a, b, c):
    total = c.mean(axis=-2)
    b[...] = a
    return total


@case(onp.array([2 + 3j]), onp.zeros((3, 4), "f4"))
def complex_numbers_added_into_floats(np, a, x):
    y = x * 1
    np.add.at(y, [0, 0, -1], a)
    return y + x


@case(onp.array([1e20, -1.0, -3.7, 300.2]), onp.zeros(4, "u1"), onp.zeros(4, "i4"))
def floats_into_integers(np, x, u, i):
    u[...] = x
    i[1:] = x[1:]
    return u + 1, i + 1, x + 1


@case(onp.array([1.5, 2.5]), onp.zeros(2, "i1"))
def a_sum_of_floats_as_integers(np, x, i):
    return np.sum(x * 1.5, dtype="i2") + 1


@case(onp.array([1000, 2.5], "f2"), onp.array([1, 2], "f4"))
def halves_into_floats(np, h, x):
    both = np.concatenate((h, x)) + 1
    x[...] = h
    h[0] = x[1]
    return both, h * 2, x * 2


@case(onp.array([1, -1, 2]), onp.array([5, 6, 7], "u1"))
def halves_into_integers(np, b, c):
    np.copyto(c, np.float16(2), where=b > 0, casting="unsafe")
    return c * 1


@case(onp.array([[1, 3], [2, -4]], "i1"), onp.array([5, 0]))
def integers_beside_a_half(np, a, b):
    larger = a >= np.float16(2)
    b[b < 1] = True
    return larger, np.where(a < np.float16(2.5), a, 0) + 1


# ------------------------------------------------------------------ what is not chosen passes no other dtype
@case(WIDE, MASK)
def a_float_copied_where_a_mask_is_true(np, c, m):
    np.copyto(c, 2.5, where=m, casting="unsafe")


@case(WIDE, MASK, onp.arange(3, dtype="u8"))
def naturals_copied_where_a_mask_is_true(np, c, m, b):
    np.copyto(c, b, where=m)


@case(WIDE, MASK, 4)
def a_number_of_pythons_copied_where_a_mask_is_true(np, c, m, n):
    np.copyto(c, n, where=m)
    np.copyto(c[:2], [7, c[2]], where=m[:2])


@case(onp.array(["x", None, 3], object), MASK)
def a_number_copied_into_objects(np, c, m):
    np.copyto(c, 5, where=m)


@case(WIDE, MASK, onp.arange(3, dtype="u8"))
def naturals_out_where_a_mask_is_true(np, c, m, b):
    np.add(b, 1, out=c, where=m)


@case(WIDE, WIDE[::-1].copy(), MASK, onp.array([0, 1, 2.5]))
def results_out_where_a_mask_is_true(np, c, d, m, b):
    np.divmod(b, 2, out=(c, d), where=m, casting="unsafe")
    np.clip(b, 0, 1.5, out=c, where=m, casting="unsafe")


@case(WIDE, MASK)
def floats_do_not_fit_out(np, c, m):
    np.true_divide(c, 2, out=c, where=m)


@case(WIDE_NATURAL, onp.array([1, 2]))
def integers_subtracted_from_naturals(np, c, b):
    np.subtract.at(c, [0, 0], b)


# ------------------------------------------------------------------ integers that a dtype has not
@case(onp.array([1, -2, 100], "i1"))
def numbers_beyond_small_integers(np, c):
    return (c < 300) & (c > -1000), (c != 300) | (c > 5), np.where(c < 300, c, 0) + c, np.clip(c, -500, 3) + c


@case(onp.array([0, 5, 200], "u1"))
def numbers_below_naturals(np, c):
    return np.where(c > -1, c, 0) + c, c.clip(-1, c + 1) + c, np.clip(c, -1, 1000) * c


@case(onp.array([1, 2, 200]))
def numbers_beyond_all_integers(np, c):
    return (c < 2**70) & (c > -(2**80))


@case(onp.array([1, 300, 2] * 3), onp.zeros(9, "i1"))
def a_loop_writes_beyond_small_integers(np, c, out):
    for i in range(len(c)):
        out[i] = c[i]


@case(onp.array([1, 300, -2] * 3), onp.zeros(9, "u1"))
def a_loop_writes_beyond_small_naturals(np, c, out):
    for i in range(len(c)):
        out[i] = c[i]


@case(onp.array([2**63, 3], "u8"), onp.zeros(2, "i8"))
def a_loop_writes_naturals_beyond_integers(np, c, out):
    for i in range(len(c)):
        out[i] = c[i]


@case(onp.array([5, 6, 120], "i1"), onp.array([1.5, 2.5, 3], "f4"))
def a_loop_calls_numpys_functions_of_pythons_numbers(np, a, x):
    t = u = v = a[0]
    for i in range(len(a)):
        t = np.multiply(i, a[i])
        u = np.add(x[i], 2)
        v = np.multiply(i, 2)
    return np.array([t, t]), np.array([u, u]), np.array([v, v])


# ------------------------------------------------------------------ records
@case(onp.array([(1, 2.0), (3, 4.0), (5, -6.0)], "i4,f8"))
def records_sorted_by_a_field(np, c):
    d = c.copy()
    d.sort(order=["f1", "f0"])
    return np.sort(c, order="f1"), d, np.argsort(c, order="f1"), np.partition(c, 1, order="f1"), np.sort(c)


@case(onp.zeros(3, "u1"), onp.zeros(3, "i2"))
def infinities_written_into_integers(np, a, b):
    for i in range(3):
        a[i], b[i] = np.exp(90000), np.float64(300.0)
    a[2:] = np.log(0.0)
    return a


@case(onp.array([1.0, onp.inf, 2.0]), 1e-3)
def tolerances_among_the_arguments(np, a, t):
    return np.isclose(a, a + 1e-4, rtol=0, atol=t, equal_nan=True), bool(np.allclose(a[:1], a[:1] + 1e-4, t, t))


def outcome(f: Callable, args: tuple, ours: bool) -> Any:
    """The results, or the exception's class, and what the arguments are afterwards."""
    given = [(np.array(a) if ours else a.copy()) if isinstance(a, onp.ndarray) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = f(*given)
        except Exception as error:
            y = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    y = y if isinstance(y, tuple) else (y,)
    return [plain(a) for a in (*y, *given)]


def plain(a: Any) -> Any:
    return (a.dtype, a.shape, onp.asarray(a).tolist()) if hasattr(a, "dtype") else a


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiler", ["auto", "numpy"])
@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_numbers_are_numpys(f, args, compiler):
    if not NUMPY2 and f.__name__ in ("numbers_below_naturals", "numbers_beyond_small_integers"):
        args = (args[0].astype("i8"),)  # NumPy 1 promotes by values
    want = outcome(lambda *a: f(onp, *a), args, ours=False)
    compiled = jit(lambda *a: f(np, *a), compiler=compiler)
    for call in range(3):
        assert outcome(compiled, args, ours=True) == want, f"call {call}"


# ------------------------------------------------------------------ numbers of Python's and NumPy's among the arguments
# Each program runs with every number below, and with another one of its type, beside an array of each of these dtypes.
NUMBERS = (True, 0, -1, 2, 300, 2**40, 2**63, 2**64, -(2**63), 2.5, -0.0, float("nan"), 1j)
NUMBERS += (onp.bool_(True), onp.int8(3), onp.uint64(2**63), onp.float32(0.1), onp.float64(2.5), onp.complex64(1 + 2j))
ANOTHER = {0: 3, 2: 300, 300: 2, 2**63: 2**63 + 5}
PROGRAMS = """
np.array([k, 3], dtype="u1"), np.asarray((k, 1), "u1")
np.array([2**63 + 1, k], dtype="u8")
np.array([x[0], k, 2**63 + 1], dtype="u8")
np.array(k, "u1"), np.full_like(x, k, dtype="i2")
np.full(3, k, dtype="u1")
np.full_like(x, k)
np.full_like(x, 2**63), np.full_like(x, 300)
np.insert(x, 1, k)
np.clip(x, -1, k)
np.clip(x, k, None)
np.clip(x, None, k)
x**k  # NumPy 2
np.stack([x[0], k])
np.stack([x, x * k])
np.concatenate([x, [k]])
np.concatenate((x, k), axis=None)  # NumPy 2
np.select([x > 0], [x], k)
np.select([x > 0, x < 0], [x, k], 0)
np.select([x > 0], [k], x)
np.result_type(x, k)
np.take(x, k)
np.add(x, k, dtype="u1")  # NumPy 2
divmod(np.int64(7), k)
divmod(k, np.float32(7))
divmod(k, x)
divmod(x, k)
int(x[0] * k)
float(x[0] + k)
np.percentile(x, k)
np.nanpercentile(x, k)
np.linspace(k, 5, 4)
np.linspace(x, k, 4)
np.histogram(x, range=(k, 400), bins=3)
np.histogram(x, range=(0, k), bins=3)
np.allclose(x, k)
np.isclose(x, k)
np.isclose(x, x, k, k)
"""
ROUNDED = {"f2": 2e-3, "f4": 1e-6}


def same(a: Any, b: Any, rtol: float) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, onp.ndarray) and isinstance(b, onp.ndarray):
        if (a.dtype, a.shape) != (b.dtype, b.shape) or a.dtype.kind not in "fc":
            return (a.dtype, a.tolist()) == (b.dtype, b.tolist())
        return onp.allclose(a, b, rtol, 0, equal_nan=True)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def answered(f: Callable, *args: Any) -> Any:
    def read(y: Any) -> Any:
        if isinstance(y, (tuple, list)):
            return tuple(map(read, y))
        return onp.asarray(y) if isinstance(y, (onp.ndarray, onp.generic, np.ndarray)) else y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read(f(*args))
        except Exception as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
@pytest.mark.either("what numbers become is decided in Python")
@pytest.mark.dealt
# NumPy 1 looks at the values of numbers of its own, which no graph knows
@pytest.mark.parametrize("text", [p for p in PROGRAMS.strip().splitlines() if NUMPY2 or not p.endswith("# NumPy 2")])
def test_numbers_beside_arrays_are_numpys(text):
    function = lambda np: eval(f"lambda x, k: ({text.partition('#')[0]})", {"np": np})
    for dtype in ("?", "u1", "f4"):
        x = onp.array([1, 0, 3, 2], dtype)
        rtol = ROUNDED.get(dtype, 1e-6 if "linspace" in text else 1e-13)
        for k in NUMBERS:
            compiled = jit(function(np), compiler="numpy" if dtype == "u1" else "auto")
            other = ANOTHER.get(k, k + 1) if type(k) in (int, float, complex) else type(k)(2)
            for n in (k, k, other, k):
                want, got = answered(function(onp), x, n), answered(compiled, np.array(x), n)
                assert same(want, got, rtol), (text, dtype, n, want, got)


def scaled(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * k
    return total


@pytest.mark.parametrize("f", [scaled, lambda x, k: x * k + 1 - (x > k)])
def test_an_integer_beyond_64_bits_is_captured_once(f):
    compiled, x = jit(f), onp.arange(20.0)
    for k in (2**63, 2**63 + 5, 2**64, 2**80, -(2**70)) * 2:
        assert same(answered(f, x, k), answered(compiled, np.array(x), k), 0)
        assert same(answered(f, x.astype("f4"), k), answered(compiled, np.array(x, "f4"), k), 1e-6)
    assert compiled.cache_info()["captures"] <= 8  # 64 bits with or without a sign, and beyond; two dtypes


def test_a_list_of_an_index_and_a_traced_number_is_an_index():
    def exchanged(a):
        m = 1 + np.argmax(a[1:])
        a[[0, m]] = a[[m, 0]]
        return a, a[[m, 0]]

    want = exchanged(onp.array([3.0, 1.0, 2.0, 5.0, 0.0]))
    for compiler in ("auto", "numpy"):
        found = jit(exchanged, compiler=compiler)(np.array([3.0, 1.0, 2.0, 5.0, 0.0]))
        onp.testing.assert_array_equal(found[0], want[0])
        onp.testing.assert_array_equal(found[1], want[1])


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "f2", "f4", "f8"])
def test_powers_by_numbers_have_numpys_dtype(dtype: str) -> None:
    x = onp.array([1, 1], dtype)
    for power in (2, 2.0, 0.5, -1.0, 1.0, 3.0):
        for number in (power, onp.float16(power), onp.float32(power), onp.float64(power), onp.int8(abs(power))):
            want = x**number
            for f in (lambda x, b: x**b, jit(lambda x, b: x**b)):
                assert f(np.array(x), number).dtype == want.dtype


def test_an_array_of_integers_refuses_nan_among_traced_numbers() -> None:
    g = jit(lambda x: np.array([x[0], 1], dtype=int))
    for first in (2.5, onp.nan, 3.5, onp.nan, onp.inf):
        if onp.isfinite(first):
            assert g(onp.array([first])).tolist() == [int(first), 1]
        else:
            with pytest.raises((ValueError, OverflowError), match="cannot convert float"):
                g(onp.array([first]))


@pytest.mark.parametrize("exponent", [0, 1, 2, 0.5, 2.0, True, onp.int8(2)], ids=repr)
@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "f2", "f4", "c8"])
def test_powers_of_an_item_and_of_an_array_are_numpys(dtype, exponent):
    """NumPy squares arrays where it takes a scalar's power: of a boolean an int8 and an int64."""
    x = onp.array([1, 2], dtype)
    # NumPy 1 gives arrays without axes for some exponents
    for base in (lambda x: x[1], lambda x: x, *[lambda x: x[:1].reshape(())] * NUMPY2):
        f, want = jit(lambda x, base=base: base(x) ** exponent), base(x) ** exponent
        for _ in range(2):
            got = f(np.array(x))
            assert got.dtype == want.dtype and type(got).__name__ == type(want).__name__
            onp.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: json.dumps({"loss": x.sum(), "first": [*x]}),
        lambda x: time.gmtime(x[1]).tm_year,
        lambda x: x[1].byteswap(),
        lambda x: x[1].data.nbytes,
    ],
)
def test_elements_are_pythons_floats_to_other_libraries(f):
    g, want = jit(f), f(onp.array([1.0, 2.0]))
    assert [g(np.array([1.0, 2.0])) for _ in range(3)] == [want] * 3


@pytest.mark.parametrize("x", [onp.array([1, 2]), onp.array([1.5, 2.5]), onp.array([True, False])])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0] + Fraction(1, 3),
        lambda x: Fraction(1, 3) - x[0],
        pytest.param(
            lambda x: divmod(x[0], Fraction(1, 3)),
            marks=pytest.mark.skipif(not NUMPY2, reason="NumPy 1.26 refuses it"),
        ),
        lambda x: (x == b"x", x[0] == b"x", x[0] != b"x"),
    ],
)
def test_elements_beside_fractions_and_bytes_are_numpys(f, x):
    g, want = jit(f), f(x)
    for _ in range(3):
        got = g(np.array(x))
        assert type(got) is type(want)
        assert repr(got) == repr(want)


@pytest.mark.host("bits are NumPy's")
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize(
    "f",
    [
        lambda np, x: np.round(x, 1, out=np.zeros((3, 4))),
        lambda np, x: np.einsum("ij,kj->ik", x, x, out=np.zeros((3, 3))),
        lambda np, x: np.trace(x, out=np.zeros(())),
        lambda np, x: x.std(out=np.zeros(())),
        lambda np, x: np.var(x, axis=0, out=np.zeros(4)),
        lambda np, x: np.nanmean(x, axis=0, out=np.zeros(4)),
        lambda np, x: np.median(x, axis=1, out=np.zeros(3)),
        lambda np, x: np.sum(x, axis=1, out=np.zeros(3)),
    ],
)
def test_what_is_written_to_a_wider_out_is_computed_as_numpy_does(f, dtype):
    x = onp.random.default_rng(0).random((3, 4)).astype(dtype) * 3
    g = jit(lambda x: f(np, x))
    for _ in range(3):
        onp.testing.assert_array_equal(g(np.array(x)), f(onp, x))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_ranges_of_elements_are_numpys_to_the_bit(dtype):
    g = jit(lambda x: np.arange(x[0], x[1], x[2]))
    for start, stop, step in [(1.07, 3.2, 1.1), (0.3, 9.9, 1.7), (5.0, 1.0, -1.3), (2.0, 2.0, 1.0)]:
        x = onp.array([start, stop, step], dtype)
        want, got = onp.arange(*x), g(np.array(x))
        assert got.dtype == want.dtype
        onp.testing.assert_array_equal(got, want)


def test_integer_coordinates_of_a_gradient_do_not_wrap():
    f = lambda x: np.gradient(np.array([1.0, 2.0, 4.0, 7.0]), x)
    for x in (onp.array([3, 1, 7, 5], "u1"), onp.array([4, 3, 2, 0], "u8"), onp.array([100, -100, 20, 0], "i1")):
        onp.testing.assert_allclose(jit(f)(np.array(x)), onp.gradient(onp.array([1.0, 2.0, 4.0, 7.0]), x), rtol=1e-14)


def test_a_condition_of_two_dimensions_is_refused():
    for f in (lambda a: np.compress(a > 0, a), lambda a: a.compress(a > 0)):
        for g in (f, jit(f)):
            with pytest.raises(ValueError, match="1-d"):
                g(np.ones((2, 2)))
