"""Values that NumPy gives, where a drop-in could silently give others: objects, dtypes, memory orders, protocols."""

import contextlib
import copy
import inspect
import operator
import pickle
import sys

import numpy
import pytest

import minnp.numpy as np
from minnp import grad, jit, policy, vjp, vmap
from minnp.core.compiled import fastpath
from minnp.testing import check_grads

ComplexWarning = numpy.exceptions.ComplexWarning

RECORD = numpy.dtype(
    {"names": ["a", "b"], "formats": ["i4", "f8"], "offsets": [4, 16], "titles": ["A", "B"], "itemsize": 32}
)


# ------------------------------------------------------------------ containers
def filled(d):
    a = np.empty(2, object)
    a.fill(d)
    return a[0]


KEEPING = {
    "array": lambda d: np.array([d, d])[0],
    "array of lists": lambda d: np.array([d, None], dtype="O")[0],
    "append": lambda d: np.append(np.array([None], object), [d])[-1],
    "full": lambda d: np.full(2, d)[0],
    "full_like": lambda d: np.full_like(np.array([None]), d)[0],
    "fill": filled,
    "concatenate": lambda d: np.concatenate([[d], [None]])[0],
    "choice": lambda d: np.random.choice([d, d]),
    "Generator.choice": lambda d: np.random.default_rng(0).choice([d, d]),
    "Generator.permutation": lambda d: np.random.default_rng(0).permutation([d, d])[0],
    "where": lambda d: np.where(True, np.array([d]), None)[0],
    "insert": lambda d: np.insert(np.array([None, 1]), 1, d)[1],
    "maximum of a list with arrays": lambda d: np.array([np.float64(1), d])[1],
}


@pytest.mark.host("objects are NumPy's")
@pytest.mark.parametrize("call", KEEPING.values(), ids=KEEPING)
def test_an_array_of_objects_holds_the_very_containers_it_is_given(call):
    d = {"a": 1, "inner": [1, {"b": (2,)}]}
    assert call(d) is d


@pytest.mark.host("objects are NumPy's")
def test_elements_that_are_containers_come_back_as_themselves():
    inner = [1, (2, {"a": 3})]
    o = np.empty(2, object)
    o[0] = o[1] = inner
    assert all(x is inner for x in (o[0], o.item(0), o.take(0), np.random.default_rng(0).choice(o), *o, o.tolist()[1]))


@pytest.mark.host("objects are NumPy's")
def test_a_list_that_holds_itself_is_an_object():
    a = [1]
    a.append(a)
    made = np.array(a, dtype=object)
    assert made.shape == (2,) and made[1] is a
    b = [np.arange(2)]
    b.append(b)
    assert np.iterable(b) and repr(np.array([b, None], dtype=object)[1]) == "None"


def test_a_container_with_an_array_of_ours_reaches_numpy_with_numpys():
    a = [np.ones(2), [np.zeros(2), (np.ones(2),) * 2]]
    assert np.concatenate([a[0], a[1][0]]).tolist() == [1, 1, 0, 0]
    assert np.stack([a[1][0], *a[1][1]]).shape == (3, 2)
    deep = [1.0]
    for _ in range(500):
        deep = [deep]
    for module in (np, numpy):
        with pytest.raises(ValueError, match="sequence"):
            module.array(deep, dtype=float)


# ------------------------------------------------------------------ dtypes
@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_of_a_structured_array_keeps_offsets_and_titles(protocol):
    x = np.zeros(2, RECORD)
    x["a"], x["b"] = [1, 2], [3, 4]
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype == RECORD and y.tolist() == [(1, 3.0), (2, 4.0)]
    assert copy.deepcopy(x).dtype == copy.copy(x).dtype == RECORD


@pytest.mark.parametrize(
    "dtype", [RECORD, "V5", "i4,(2,)f8", numpy.dtype("i1,f8", align=True), numpy.dtype("f8", metadata={"unit": "m"})]
)
def test_numpy_asarray_of_an_array_of_ours_keeps_all_of_its_dtype(dtype):
    x = np.zeros(2, dtype)
    a = numpy.asarray(x)
    assert a.dtype == x.dtype and a.dtype.metadata == x.dtype.metadata
    assert a.dtype.isalignedstruct == x.dtype.isalignedstruct
    assert np.shares_memory(x, a)


def test_a_buffer_says_what_numpys_does():
    for dtype in (RECORD, "i4,f8", "f4", "S3", "U2", "?"):
        ours, theirs = memoryview(np.zeros(2, dtype)), memoryview(numpy.zeros(2, dtype))
        assert (ours.format, ours.nbytes, ours.shape) == (theirs.format, theirs.nbytes, theirs.shape)
    silent = fastpath is None and sys.version_info < (3, 12)  # no exception leaves a slot that Python fills
    with pytest.raises(SystemError if silent else ValueError, match=None if silent else "cannot include dtype"):
        memoryview(np.zeros(2, "M8[s]"))


# ------------------------------------------------------------------ memory and classes
@pytest.mark.host("memory is NumPy's")
def test_resize_to_no_axes_keeps_one_element():
    x = np.arange(4.0)
    x.resize(())
    assert x.shape == () and x == 0
    x.resize()
    x.resize(None)
    assert x.shape == ()


def test_copy_keeps_the_memory_order():
    x = np.asfortranarray(np.ones((2, 3)))
    assert copy.copy(x).flags.f_contiguous and not copy.copy(x).flags.c_contiguous
    assert copy.copy(np.ones((2, 3))).flags.c_contiguous


@pytest.mark.host("texts are NumPy's")
@pytest.mark.filterwarnings("ignore:The chararray class:DeprecationWarning")  # NumPy 2.5
def test_formatting_an_array_of_texts_gives_texts():
    made = np.array(["%d"]).view(np.char.chararray) % np.array([1])
    assert made.dtype.kind == "U" and made.tolist() == ["1"]


@pytest.mark.either("about the C part")
@pytest.mark.skipif(fastpath is None, reason="a slot that Python cannot fill")
@pytest.mark.parametrize("concat", [operator.concat, operator.iconcat])
def test_operator_concat_is_refused(concat):
    with pytest.raises(TypeError, match="Concatenation"):
        concat(np.ones(2), np.ones(2))


class Reflecting:
    """A class that NumPy's arrays give way to, by the older protocol."""

    __array_priority__ = 10

    def __radd__(self, other):
        return type(other)

    __eq__ = __rmatmul__ = __radd__
    __hash__ = None


def test_operators_give_way_to_a_class_of_higher_priority_as_numpys_do():
    a, r = np.ones(2), Reflecting()
    assert a.__add__(r) is NotImplemented and a.__eq__(r) is NotImplemented
    assert a + r is a @ r is (a == r) is np.ndarray


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_r_finds_the_names_of_its_caller():
    p, q = np.ones(2), np.zeros(1)
    assert np.r_["p, q"].tolist() == [[1, 1, 0]] == numpy.r_["p, q"].tolist()
    del p, q


@pytest.mark.either("about the C part")
@pytest.mark.skipif(fastpath is None, reason="Python's bound methods show the function's")
@pytest.mark.parametrize("name", ["sum", "concatenate", "linspace", "sin", "linalg.norm"])
def test_a_functions_signature_has_no_parameter_of_ours(name):
    f = operator.attrgetter(name)(np)
    if name == "concatenate" and not hasattr(f, "__signature__"):  # NumPy 1.26's shows none
        return
    assert "home" not in f.__signature__.parameters
    assert f.__signature__ == inspect.signature(f)


# ------------------------------------------------------------------ hooks in a module that imports NumPy as well
TABLE = {np.sum: "sum of ours", numpy.mean: "mean of NumPy's"}


class Comparing:
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        numpy.asarray(1)
        if ufunc is np.multiply:
            return "multiply of ours"
        return "tuple of ours" if ufunc in (np.add, np.subtract) else NotImplemented

    def __array_function__(self, function, types, args, kwargs):
        return TABLE.get(function, NotImplemented)


class OfNumpys:
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "multiply of NumPy's" if ufunc is numpy.multiply else NotImplemented


def test_hooks_are_told_of_the_functions_they_ask_for_where_the_module_imports_numpy_too():
    x = Comparing()
    assert np.multiply(x, 2) == np.ones(2) * x == "multiply of ours"
    assert np.add(x, 2) == "tuple of ours"
    assert np.sum(x) == "sum of ours" and np.mean(x) == "mean of NumPy's"
    assert np.multiply(OfNumpys(), 2) == "multiply of NumPy's"
    with pytest.raises(TypeError):
        np.median(x)


# ------------------------------------------------------------------ arrays of ours in arrays of objects
@pytest.mark.host("objects are NumPy's")
def test_an_array_of_objects_made_of_arrays_of_ours_holds_these():
    a, b = np.ones(2), np.zeros(3)
    o = np.empty(2, object)
    o.fill(a)
    assert o[0] is a and o[1] is a
    assert np.array([a, None], dtype="O")[0] is a is np.array([a, b], dtype=object)[0]
    assert np.fromiter([a, b], object)[1] is b
    assert all(type(x) is np.ndarray for x in [*np.fromiter(np.ones((2, 2)), object).flat, *o.flat, *o.tolist()])


@pytest.mark.host("refused before any kernel")
@pytest.mark.parametrize("name", ["roots", "poly", "ravel_multi_index", "histogramdd"])
def test_what_numpys_search_for_classes_refuses_is_refused(name):
    args = (3.0,) if name != "ravel_multi_index" else (3, (4,))
    for module in (np, numpy):
        with pytest.raises(TypeError):
            getattr(module, name)(*args)


@pytest.mark.parametrize(
    "call",
    [
        "np.vstack(1)",
        "np.hstack(None)",
        "np.dstack(1)",
        "np.stack(3)",
        "np.packbits(a, foo=1)",
        "np.where(a > 0, keepdims=1)",
        "np.vdot(a, a, k=1)",
        "np.inner(a)",
        "np.dot(a)",
        "np.concatenate(5, a)",
        "np.result_type(k=1)",
        "np.lexsort()",
        "np.shares_memory(a)",
    ],
)
def test_a_wrong_call_is_told_in_numpys_words(call):
    said = []
    for np_ in (numpy, np):
        with pytest.raises(TypeError) as raised:
            eval(call, {"np": np_, "a": np_.ones(3)})
        said.append(str(raised.value))
    assert said[0] == said[1]


@pytest.mark.host("where NumPy alone computes")
def test_what_is_refused_draws_and_calls_nothing_twice():
    np.random.seed(0)
    with pytest.raises(TypeError):
        np.random.normal(0.0, 1.0, "a")
    drawn, _ = np.random.rand(), np.random.seed(0)
    assert drawn == np.random.rand()
    calls = []
    with pytest.raises(TypeError):
        np.apply_along_axis(lambda x: calls.append(1) or len(3), 0, np.ones(2))
    assert calls == [1]


def test_pow_of_three_leaves_the_third_to_others():
    assert np.ones(2).__pow__(2, 3) is NotImplemented
    assert np.ones(2).__getstate__() is None if hasattr(object, "__getstate__") else True


@pytest.mark.host("memory is NumPy's")
def test_a_view_may_be_resized_to_another_shape_of_as_many_elements():
    x = np.arange(4)[:]
    x.resize((2, 2), refcheck=False)
    assert x.shape == (2, 2)
    with pytest.raises(TypeError):
        x.resize(1.5)


# ------------------------------------------------------------------ x.flat
@pytest.mark.parametrize("dtype", ["f8", ">i4", "c8", "?", "U2", "M8[D]", "O", "i4,f4"])
@pytest.mark.parametrize(
    "index", [0, -1, 6, slice(1, 4), slice(None, None, -2), [0, 2], ..., (0,), 99, None, 1.5, True]
)
def test_flat_reads_and_writes_what_numpys_does(dtype, index):
    made = lambda module: module.array([[0, 1, 2], [3, 4, 5]], "O" if dtype == "O" else "i8").astype(dtype)[:, ::-1]
    outcomes = []
    for module in (np, numpy):
        x = made(module)
        try:
            read = x.flat[index]
            x.flat[index] = x.flat[0]
            x.flat[1:3] = x[:, 1]
            outcomes.append((type(read) is module.ndarray, getattr(read, "dtype", None), repr(read), repr(x)))
        except (IndexError, TypeError, ValueError, DeprecationWarning) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_flat_is_of_the_array_as_it_is():
    x = np.arange(4.0)
    flat = x.flat
    x.shape = (2, 2)
    assert flat[3] == 3.0 and [*x.flat] == [0, 1, 2, 3]
    flat[[0, 1]] = np.array([7.0, 8.0])
    assert x.tolist() == [[7, 8], [2, 3]]
    assert grad(lambda y: y.flat[2] * 3 + (y * 2).flat[1:3].sum())(x).tolist() == [[0, 2], [5, 0]]
    saved = grad(lambda y: _written(y * 1.0))(np.arange(4.0))
    assert saved.tolist() == [0, 2, 4, 6]


def _written(y):
    s = (y * y).sum()
    y.flat[1] = 9.0
    return s


def test_a_draw_by_name_of_a_texts_operator_is_numpys():
    for module in (np, numpy):
        with pytest.raises(TypeError):
            module.ones(2).__rmod__("a")


@pytest.mark.host("exceptions are NumPy's")
def test_fromiter_of_arrays_of_one_element_raises_what_numpy_raises():
    for module in (np, numpy):
        with pytest.raises(ValueError, match="sequence"):
            module.fromiter(module.ones((3, 2)), "f8")


@pytest.mark.host("bits are NumPy's")
def test_pinv_of_a_masked_array_is_numpys():
    a = numpy.ma.array([[1.0, 1.0, 3.0], [4.0, 4.0, 4.0], [1.0, 3.0, 2.0]], mask=False)
    assert numpy.asarray(np.linalg.pinv(a)).tobytes() == numpy.asarray(numpy.linalg.pinv(a)).tobytes()


# ------------------------------------------------------------------ edges of numbers
def with_parts(z):
    z.real = z.imag
    z[1:].imag = -0.0
    z.imag *= 2
    z[2:].real = 5
    return z


def parts(z):
    """The parts of complex numbers, as texts: which are NaN, and which -0.0."""
    return list(map(str, numpy.ascontiguousarray(z).view("f8").tolist()))


@pytest.mark.parametrize("way", ["jit", "vmap", "vmap of columns"])
def test_a_part_that_is_assigned_leaves_the_other_as_it_is(way):
    numbers = [1.0, -0.0, 0.0, numpy.inf, numpy.nan]
    z = numpy.array([complex(a, b) for a in numbers for b in numbers])
    want = parts(with_parts(z.copy()))
    f = jit(with_parts)
    for _ in range(3):
        got = {
            "jit": lambda: [f(np.array(z))],
            "vmap": lambda: vmap(with_parts)(np.array([z, z])),
            "vmap of columns": lambda: vmap(lambda z: with_parts(z.copy()), in_axes=1)(np.array(numpy.array([z, z]).T)),
        }[way]()
        assert all(parts(numpy.asarray(y)) == want for y in got)


def ways_of_numbers(f, x):
    """The result of f, a list, where its operations are traced."""
    traced, interpreted = jit(f), jit(f, compiler="numpy")
    yield "jit", [traced(np.array(x)) for _ in range(3)][-1]
    yield "jit of NumPy's kernels", [interpreted(np.array(x)) for _ in range(3)][-1]
    yield "vmap", [y[0] for y in vmap(f)(np.array([x]))]
    yield "vjp", vjp(f, np.array(x))[0]


POWERS = {
    "of numbers": lambda x: [p for v in (x[0], x[1], x[2], x[6]) for p in (v**0.5, v**2, v**2.0, v**-1, v**1, v**3)],
    "in a loop": lambda x: [v**0.5 for v in x],
    "by NumPy's number": lambda x: [x[0] ** x.dtype.type(0.5), x[1] ** x.dtype.type(0.5)],
    "of arrays": lambda x: [x**0.5, x**2, x**-1, x**-1.0, x[1:2].reshape(()) ** 0.5],
}


@pytest.mark.host("bits are NumPy's: torch has a power of its own for infinite and negative numbers")
@pytest.mark.parametrize("f", POWERS.values(), ids=POWERS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_powers_of_numbers_and_of_arrays_are_numpys_when_traced(f, dtype):
    """NumPy's root of an array is its sqrt, the root of a scalar its pow: infinite for -inf, 0.0 for -0.0."""
    x = numpy.array([-numpy.inf, -0.0, 2, 4, numpy.nan, numpy.inf, -2], dtype)
    with numpy.errstate(all="ignore"):
        want = f(x)
        for way, got in ways_of_numbers(f, x):
            for a, b in zip(got, want):
                assert a.dtype == b.dtype, way
                assert str(numpy.asarray(a).tolist()) == str(b.tolist()), way


@pytest.mark.host("bits are NumPy's: torch has a power of its own for infinite and negative numbers")
@pytest.mark.parametrize("exponent", [0.5, -1, 2, 1, -1.0, 2.0, numpy.float64(0.5)])
def test_powers_of_complex_arrays_are_numpys_when_traced(exponent):
    inf = numpy.inf
    z = numpy.array(
        [complex(-1, -0.0), complex(0, inf), complex(1e200, 1e200), complex(-inf, 0), complex(-0.0, 0), 2 + 1j]
    )
    with numpy.errstate(all="ignore"):
        f = lambda z: [z**exponent]
        want = parts(f(z)[0])
        for way, got in ways_of_numbers(f, z):
            assert parts(got[0]) == want, way


def test_signs_of_complex_numbers_are_numpys_when_traced():
    z = numpy.array([complex(-1, -0.0), complex(0, numpy.inf), complex(-numpy.inf, 0), 0, 2 + 1j])
    for way, got in ways_of_numbers(lambda z: [np.sign(z)], z):
        assert parts(got[0]) == parts(numpy.sign(z)), way


@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_variances_of_complex_numbers_in_another_dtype_are_numpys_when_traced(dtype):
    z = numpy.array([1 + 2j, 3, 0.5j])
    for f in (lambda np, z: np.var(z, dtype=dtype), lambda np, z: np.std(z, axis=0, dtype=dtype, ddof=1)):
        want, ours = f(numpy, z), lambda z, f=f: f(np, z)
        for y in (jit(ours)(np.array(z)), vmap(ours)(np.array(z)[None])[0]):
            assert y.dtype == want.dtype
            numpy.testing.assert_allclose(y, want, rtol=1e-6)


@pytest.mark.skipif(numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0", reason="correction= is NumPy 2's")
def test_two_corrections_of_a_variance_are_refused_when_traced():
    x = np.array([0.5, 2.0])
    for f in (lambda x: np.var(x, ddof=1, correction=1), lambda x: np.std(x, ddof=1, correction=0)):
        for way in (f, jit(f), grad(f), lambda x, f=f: vmap(f)(x[None])):
            with pytest.raises(ValueError, match="ddof and correction"):
                way(x)


WITHOUT_AXES = {
    **{n: lambda x, n=n: getattr(np, n)(x, axis=0) for n in ("sum", "prod", "max", "nanprod", "cumprod", "ptp")},
    **{f"{n} where": lambda x, n=n: getattr(np, n)(x, axis=-1, where=x > 1) for n in ("mean", "std", "var", "prod")},
    "take": lambda x: np.take(x, [0, 0], axis=0),
    "repeat": lambda x: np.repeat(x, 2, axis=-1),
    "compress": lambda x: np.compress([True], x, axis=0),
    "squeeze": lambda x: np.squeeze(x, axis=0),
}


@pytest.mark.parametrize("f", WITHOUT_AXES.values(), ids=WITHOUT_AXES)
def test_an_array_without_axes_has_an_axis_0_where_it_has_one_in_numpy(f):
    x = np.asarray(2.0)
    want = f(x)
    got = jit(f)(x)
    assert type(got) is type(want) and numpy.array_equal(got, want)
    assert numpy.array_equal(vmap(f)(np.full(3, 2.0))[2], want)
    check_grads(f, (x,))


@pytest.mark.parametrize("name", ["bitwise_and", "gcd", "lcm", "subtract", "divide", "fmod", "power", "left_shift"])
def test_a_reduction_of_one_element_is_a_number_when_traced(name):
    f = lambda x: getattr(np, name).reduce(x)
    assert type(jit(f)(np.array([3]))) is type(f(np.array([3])))


@pytest.mark.parametrize("name", ["add", "maximum"])
def test_a_scan_takes_a_tuple_of_one_axis_when_traced(name):
    for f in (
        lambda x: getattr(np, name).accumulate(x, axis=(1,)),
        lambda x: getattr(np, name).reduceat(x, [0, 1], axis=(1,)),
    ):
        x = np.array([[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]])
        assert numpy.array_equal(jit(f)(x), f(x))
        check_grads(f, (x,))


def test_fromiter_takes_the_real_parts_of_numpys_complex_numbers_when_traced():
    f = lambda z: np.fromiter((v for v in z), float)
    z = np.array([1 + 2j, 3.0])
    with pytest.warns(ComplexWarning):
        want = f(z)
    with pytest.warns(ComplexWarning):
        assert jit(f)(z).tolist() == want.tolist() == [1.0, 3.0]
    with pytest.raises(TypeError, match="complex"):
        jit(lambda z: np.fromiter([z[0], 1j], float))(z)


NUMBERS_OR_ARRAYS = {
    **{f"{n} of another dtype": lambda x, n=n: getattr(np, n)(x.sum(), dtype="f4") for n in ("asarray", "array")},
    "require": lambda x: np.require(x.sum(), dtype=complex),
    "real part of a Python number": lambda x: [np.real(2.0), np.imag(3)][int(x[0])],
    **{n: lambda x, n=n: getattr(np.random.default_rng(0), n)(0.5) for n in ("exponential", "normal", "uniform")},
    "vecdot": lambda x: getattr(np, "vecdot", np.dot)(x, x),
    "isin": lambda x: np.isin(np.asarray(1.0), x),
    "nan_to_num": lambda x: np.nan_to_num(np.array(x[0]), copy=False),
}


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_a_mean_into_integers_adds_up_in_them_under_jit_as_in_numpy(dtype):
    x = np.array([[252, 3], [1, 200], [255, 2]], "u1")
    f = lambda x, out: np.mean(x, axis=0, out=out)
    assert jit(f)(x, np.zeros(2, dtype)).tolist() == f(x, np.zeros(2, dtype)).tolist()


@pytest.mark.parametrize("f", [lambda x: x.squeeze(), lambda x: np.squeeze(x), lambda x: x.real, lambda x: np.real(x)])
def test_what_is_the_array_itself_in_numpy_is_so_when_traced(f):
    def shaped(x):
        x = x * 2
        f(x).shape = (-1,)
        return x

    x = np.ones((2, 3))
    assert jit(lambda x: f(x) is x)(x)
    assert shaped(x).shape == jit(shaped)(x).shape == grad(lambda x: shaped(x).shape[0] * x.sum())(x).ravel()[:6].shape
    assert grad(lambda x: shaped(x)[4])(x)[1, 1] == 2


def test_the_gradient_of_truth_values_is_refused_when_traced():
    for f in (np.gradient, lambda x: np.gradient(x, np.arange(3.0))):
        for way in (f, jit(f)):
            with pytest.raises(TypeError, match="boolean subtract"):
                way(np.array([True, False, True]))


@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
def test_interp_takes_the_real_part_of_complex_numbers_when_traced():
    x = np.array([0.25 + 1j, 4 + 8j])
    for f in (lambda x: np.interp(x[0], [0, 1], [0.0, 2.0]), lambda x: np.interp(9, [0, 1], [0.0, 2.0], right=x[1])):
        assert str(jit(f)(x)) == str(f(x))
        assert jit(f)(x).dtype == float


@pytest.mark.parametrize("x", [2.0, numpy.float64(2.0), numpy.array(2.0), numpy.ones(3)])
def test_no_difference_is_the_array_itself_when_traced(x):
    f = lambda x: np.diff(x, 0)
    assert repr(jit(f)(x)) == repr(f(x))


@pytest.mark.parametrize("ord", ["nuc", "fro", None])
def test_the_norm_of_nothing_has_the_dtype_of_numpys_when_traced(ord):
    x = numpy.zeros((0, 4), "f4")
    assert jit(lambda x: np.linalg.norm(x, ord))(np.array(x)).dtype == numpy.linalg.norm(x, ord).dtype


def test_nan_to_num_does_not_write_to_a_number_when_traced():
    def f(x):
        s = x.sum()
        with contextlib.suppress(ValueError):  # of NumPy 2
            np.nan_to_num(s, copy=False)
        return s

    for way in (f, jit(f), vmap(f)):
        assert numpy.isnan(way(np.full((1, 2), numpy.nan))).all()


def test_dates_are_added_to_at_places_when_traced():
    def f(x):
        days = np.datetime64("2020-01-01") + np.arange(x.shape[0])
        np.add.at(days, [0, 1, 0], 1)
        return days

    assert jit(f)(np.ones(3)).tolist() == f(np.ones(3)).tolist()


def test_i0_has_derivatives_at_0():
    slopes, f = [], np.i0
    for _ in range(5):
        slopes.append(float(f(0.0)))
        f = grad(f)
    assert slopes == [1, 0, 0.5, 0, 0.375]
    check_grads(np.i0, (numpy.array([-9.0, -0.5, 0.0, 1.0, 9.0]),))
    with pytest.raises(TypeError, match="complex"):
        jit(np.i0)(np.ones(1, complex))


def test_parts_of_an_argument_that_is_a_python_number_are_pythons():
    f = jit(lambda x: (np.real(x), np.imag(x), x.real + 1))
    assert [(type(p), p) for p in f(2.0)] == [(float, 2.0), (float, 0.0), (float, 3.0)]
    assert f(3.0) == (3.0, 0.0, 4.0)
    assert [(type(p), p) for p in f(2)] == [(int, 2), (int, 0), (int, 3)]


def test_a_number_that_is_an_array_and_a_result_is_both():
    def f(y):
        v = np.sinc(y)
        return v, np.asarray(v).astype(int)

    assert [str(f(2.5)), str(jit(f)(2.5))] == [str(f(2.5))] * 2


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_full_takes_values_with_more_axes_of_one_as_an_assignment(shape):
    for value in (np.array([[[5.0]]]), np.ones((1, 1, *shape))):
        for f in (lambda v: np.full(shape, v), lambda v: np.full_like(np.ones(shape), v)):
            assert numpy.array_equal(jit(f)(value), f(value)) and jit(f)(value).shape == shape
    with pytest.raises(ValueError, match="broadcast"):
        jit(lambda v: np.full((), v))(np.ones(2))


@pytest.mark.parametrize("f", NUMBERS_OR_ARRAYS.values(), ids=NUMBERS_OR_ARRAYS)
def test_results_without_axes_are_numbers_or_arrays_as_numpys(f):
    x = np.ones(3)
    with policy("only_numpy"):
        want = f(x)
    assert type(f(x)) is type(jit(f)(x)) is type(want)
