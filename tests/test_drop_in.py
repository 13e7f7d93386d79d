"""Programs of NumPy's users with the import line changed: what they met, in the smallest form."""

import importlib
import inspect
import itertools
import pickle
import pydoc
import sys
import types
import warnings
from collections import UserList, deque

import numpy
import pytest

import minnp.numpy as np
from minnp import fx, grad
from minnp.core.api.namespace import lazy


# ------------------------------------------------------------------ imports
@pytest.mark.parametrize(
    "name", ["ma", "matlib", "lib.recfunctions", "exceptions", "typing", "random.mtrand", "ma.core"]
)
def test_a_submodule_of_numpys_is_imported_under_our_name(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's own about matlib
        module = importlib.import_module(f"minnp.numpy.{name}")
        theirs = importlib.import_module(f"numpy.{name}")
        assert set(getattr(theirs, "__all__", ())) <= set(dir(module))
    with pytest.raises(ImportError):
        importlib.import_module(f"minnp.numpy.{name}.missing")


def test_a_submodule_gives_our_functions_and_classes():
    from minnp.numpy import ma
    from minnp.numpy.lib.recfunctions import structured_to_unstructured
    from minnp.numpy.random.mtrand import RandomState

    assert np.ma is ma and RandomState is np.random.RandomState
    assert type(structured_to_unstructured(np.zeros(2, "i4,i4"))) is np.ndarray
    hidden = ma.masked_array(np.arange(3), mask=[0, 1, 0])
    assert isinstance(hidden, numpy.ma.MaskedArray) and ma.getmask(ma.arange(3)) is ma.nomask
    assert type(ma.getdata(hidden)) is np.ndarray and pickle.loads(pickle.dumps(hidden)).sum() == 2


def test_a_deprecated_name_warns_where_it_is_used_at_each_use(monkeypatch):
    def found(name):
        if name != "old":
            raise AttributeError(name)
        warnings.warn("old is deprecated", DeprecationWarning, stacklevel=2)
        return 3

    theirs, own = types.ModuleType("theirs"), types.ModuleType("own")
    theirs.__getattr__ = found
    monkeypatch.setitem(sys.modules, "own", own)
    own.__getattr__ = lazy("own", theirs, "", {})[0]
    uses = [lambda: own.old]
    if numpy.__version__ < "2":
        uses.append(lambda: np.core.MachAr)
    for use in uses * 2:
        with pytest.warns(DeprecationWarning, match="old is deprecated|np.core.MachAr") as told:
            use()
        assert [w.filename for w in told] == [__file__]


def test_what_numpys_pickles_of_scalars_call_is_numpys():
    core = importlib.import_module(f"minnp.numpy.{'core' if numpy.__version__ < '2' else '_core'}.multiarray")
    assert np.zeros(1, [("a", "O")])[0].__reduce__()[0] is core.scalar


def test_numpys_own_modules_under_their_own_names_take_our_arrays():
    """A program may change the line `import numpy as np` and keep another that imports from numpy."""
    from numpy.lib.recfunctions import merge_arrays
    from numpy.polynomial import chebyshev, polynomial
    from numpy.testing import assert_almost_equal, assert_equal

    for x in (np.arange(4.0), np.arange(4.0).reshape(2, 2), np.arange(4) + 1j):
        theirs = x.asnumpy()
        for check in (assert_equal, assert_almost_equal):
            check(x, x + 0)
            check([x], [theirs])
            with pytest.raises(AssertionError, match=r"not (almost )?equal"):
                check(x, x + 1)
        for f in (polynomial.polyval, polynomial.polyvalfromroots, chebyshev.chebval):
            for c in (x, [1.0, 2.0]):
                assert f(x, c).shape == f(theirs, numpy.asarray(c)).shape
                assert f(x, c).tolist() == f(theirs, numpy.asarray(c)).tolist()
    assert merge_arrays(np.ones(2)).tolist() == [(1.0,), (1.0,)]
    assert numpy.char.array(np.ones(2)).tolist() == numpy.char.array(numpy.ones(2)).tolist()


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_block_matrices():
    def made(np):
        a, b = np.ones((2, 2)), np.zeros((2, 2))
        return [np.bmat("a, b; b, a"), np.bmat([[a, b], [b, a]]), np.bmat([a, b]), np.bmat(a)]

    for ours, theirs in zip(made(np), made(numpy)):
        assert type(ours) is numpy.matrix
        numpy.testing.assert_array_equal(ours, theirs, strict=True)


# ------------------------------------------------------------------ classes of the user's own
def test_a_subclass_hands_its_ufuncs_on_to_super():
    class Logged(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            plain = [np.asarray(x) if isinstance(x, Logged) else x for x in inputs]
            if out is not None:
                options["out"] = tuple(x.view(np.ndarray) for x in out)
            result = np.asarray(super().__array_ufunc__(ufunc, method, *plain, **options)).view(Logged)
            result.log = (ufunc.__name__, method)
            return result

    class Deeper(Logged):
        pass

    x = np.arange(3.0).view(Deeper)
    y = np.add(x, np.ones(3), out=x)
    assert y.log == ("add", "__call__") and y.tolist() == x.tolist() == [1, 2, 3]
    assert np.add.reduce(x).log == ("add", "reduce") and (1 - x).log == ("subtract", "__call__")

    class Quiet(np.ndarray):
        pass

    assert Quiet.__array_ufunc__ is numpy.ndarray.__array_ufunc__ and type(np.ones(2).view(Quiet) + 1) is Quiet


def test_a_class_is_asked_with_our_function_where_it_does_not_know_numpys():
    class Diagonal:
        def __init__(self, n, value):
            self.n, self.value = n, value

        def __array_function__(self, function, types, args, kwargs):
            return HANDLED[function](*args, **kwargs) if function in HANDLED else NotImplemented

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            if ufunc not in (numpy.multiply, numpy.negative):
                return NotImplemented
            return Diagonal(self.n, ufunc(*(x.value if isinstance(x, Diagonal) else x for x in inputs)))

    HANDLED = {np.sum: lambda x: x.n * x.value, np.concatenate: len, numpy.mean: lambda x: x.value / x.n}
    d = Diagonal(5, 2)
    assert (np.sum(d), np.mean(d), np.concatenate([d, d])) == (10, 0.4, 2)
    assert np.multiply(d, 3).value == 6 and np.negative(d).value == -2
    with pytest.raises(TypeError, match=r"no implementation found for 'numpy.std'"):
        np.std(d)
    with pytest.raises(TypeError, match="NotImplemented from __array_ufunc__"):
        np.exp(d)


# ------------------------------------------------------------------ libraries that look at an array's class
def test_matplotlib_takes_the_columns_of_our_matrices():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    x = np.arange(20.0).reshape(10, 2)
    axes = Figure().add_subplot()
    assert len(axes.boxplot(x)["boxes"]) == len(axes.violinplot(x)["bodies"]) == 2
    assert numpy.shape(axes.hist(x)[0]) == (2, 10)


def test_pandas_takes_our_masks_keys_and_records():
    pandas = pytest.importorskip("pandas")
    frame, mask = pandas.DataFrame({"a": np.arange(4), "b": np.ones(4)}), np.array([True, False, True, False])
    assert frame[mask]["a"].tolist() == frame["a"][mask].tolist() == [0, 2]
    assert frame.loc[mask, "a"].tolist() == frame.iloc[mask]["a"].tolist() == [0, 2]
    assert frame.groupby(mask)["a"].sum().tolist() == [4, 2]
    frame[mask] = -1
    assert frame["a"].tolist() == [-1, 1, -1, 3]
    records = np.array([(1, 2.5)], dtype=[("x", "i4"), ("y", "f4")])
    assert list(pandas.DataFrame(records).columns) == list(pandas.DataFrame(data=records).columns) == ["x", "y"]
    assert frame.set_index(np.arange(4) * 2).index.tolist() == [0, 2, 4, 6]


def test_pandas_arrays_and_frames_are_made_of_ours():
    pandas = pytest.importorskip("pandas")
    a, ints, mask = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 2]), np.array([True, False])
    frame = pandas.DataFrame(a)
    for out in (frame + a, a + frame, frame.add(a)):
        assert out.to_numpy().tolist() == (2 * a).tolist()
    assert (frame == a).all(axis=None)
    assert pandas.arrays.IntegerArray(ints, mask)[1] == 2 and pandas.arrays.BooleanArray(mask, ~mask)[0]
    assert pandas.arrays.NumpyExtensionArray(ints)[0] == 1 and type(pandas.Categorical(np.array(["x"]))[0]) is str
    assert pandas.util.hash_array(ints).tolist() == pandas.util.hash_array(numpy.array([1, 2])).tolist()


def test_scipys_compiled_code_takes_our_right_hand_sides_and_what_our_functions_return():
    sparse, solvers = pytest.importorskip("scipy.sparse"), importlib.import_module("scipy.sparse.linalg")
    a, b = np.array([[4.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    factors = solvers.splu(sparse.csc_matrix(a))
    for solve in (factors.solve, solvers.spilu(sparse.csc_matrix(a)).solve, solvers.factorized(sparse.csc_matrix(a))):
        assert np.allclose(a @ solve(b), b)
    assert np.allclose(a.T @ factors.solve(b, "T"), b) and factors.shape == (2, 2) and "SuperLU" in repr(factors)
    with pytest.raises(ValueError, match="incompatible size"):
        factors.solve(np.ones(3))
    linalg = importlib.import_module("scipy.linalg")
    assert np.allclose(linalg.funm(a, lambda x: np.exp(x)), linalg.expm(a))


def test_sklearn_takes_a_grid_of_ours():
    selection = pytest.importorskip("sklearn.model_selection")
    assert len(selection.ParameterGrid({"alpha": np.logspace(-2, 0, 3)})) == 3


# ------------------------------------------------------------------ what a program's classes are told
PROGRAM = """
import minnp.numpy as np
from minnp.numpy.lib.mixins import NDArrayOperatorsMixin


class Tagged(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [x.view(np.ndarray) if isinstance(x, Tagged) else x for x in inputs]
        product = ufunc is np.multiply or ufunc in {np.matmul}
        return "product" if product else getattr(ufunc, method)(*plain, **options)

    def __array_function__(self, func, types, args, kwargs):
        if func is np.median:
            return types
        return super().__array_function__(func, types, args, kwargs)


class Wrapped(np.ndarray):
    def __array_wrap__(self, out, context=None, return_scalar=False):
        return context[0] is np.exp, context[0] in {np.exp: 0}


class Duck(NDArrayOperatorsMixin):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return ufunc is np.subtract, ufunc is np.matmul, method

    def __array_function__(self, func, types, args, kwargs):
        return func is np.sort, func is np.linalg.norm


class Numbers:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)
"""


def test_a_programs_classes_are_told_which_of_our_functions_was_called():
    program = {"__name__": "program"}
    exec(PROGRAM, program)
    x, duck = np.ones(3).view(program["Tagged"]), program["Duck"]()
    assert x * 2 == 3.0 * x == np.multiply(x, x) == numpy.matmul(x, x) == "product"
    assert (x + 1).tolist() == [2, 2, 2] and np.add.reduce(x) == 3 and np.sum(x) == 3
    assert np.median(x) == (program["Tagged"],) and np.mean(x) == 1
    assert np.exp(np.ones(2).view(program["Wrapped"])) == (True, True)
    assert duck - 1 == 1 - duck == np.ones(2) - duck == (True, False, "__call__")
    assert np.add.outer(duck, 1) == (False, False, "outer") and np.matmul(duck, duck)[1]
    assert np.sort(duck) == (True, False) and np.linalg.norm(duck) == (False, True)
    np.testing.assert_array_equal(program["Numbers"](), [0, 1, 2])
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 3"):
        np.testing.assert_array_equal(program["Numbers"](), [0, 1, 3])
    assert np.array_equal(np.arange(3), program["Numbers"]()) and np.array_equiv(program["Numbers"](), [0, 1, 2])


class Frames:
    """A sequence by its methods alone."""

    def __init__(self, *frames):
        self.frames = frames

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i]


class History(list):
    pass


class Pair(tuple):
    __slots__ = ()


@pytest.mark.parametrize(
    "sequence",
    [deque, UserList, History, Pair, lambda x: Frames(*x)],
    ids=["deque", "UserList", "list", "tuple", "own"],
)
def test_sequences_of_any_class_hold_our_arrays(sequence):
    a, b = np.ones((2, 2)), np.zeros((2, 2))
    for f in (
        np.concatenate,
        np.stack,
        np.vstack,
        np.hstack,
        np.dstack,
        np.column_stack,
        np.linalg.multi_dot,
        np.array,
    ):
        out, expected = f(sequence([a, b])), f([a, b])
        assert type(out) is np.ndarray and out.tolist() == expected.tolist()
    assert grad(lambda x: np.sum(np.stack(sequence([x, x * x]))))(a).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(TypeError, match="sequence"):
        np.concatenate({0: a}.values())


# ------------------------------------------------------------------ C, through ctypes
def test_a_pointer_type_takes_our_arrays_and_checks_them():
    import ctypes

    copy = ctypes.CDLL(None).memcpy
    pointer = np.ctypeslib.ndpointer(np.int32, ndim=1, flags="C_CONTIGUOUS")
    copy.argtypes, copy.restype = [pointer, pointer, ctypes.c_size_t], None
    a, b = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    copy(b, a, a.nbytes)
    assert b.tolist() == [0, 1, 2, 3] and np.ctypeslib.ndpointer(np.int32, 1, flags="C_CONTIGUOUS") is pointer
    with pytest.raises(ctypes.ArgumentError, match="array must have data type int32"):
        copy(b, a.astype(float), 4)
    assert type(np.ctypeslib.as_array((ctypes.c_double * 2)(1, 2))) is np.ndarray
    assert a.__array_struct__ is not None


# ------------------------------------------------------------------ libraries that know NumPy's module and containers
def test_a_library_takes_our_random_states_for_numpys():
    check = pytest.importorskip("sklearn.utils").check_random_state
    assert check(np.random.RandomState(3)).rand() == np.random.RandomState(3).rand()
    with pytest.raises(ValueError, match="cannot be used to seed"):  # it knows numpy.random by identity
        check(np.random)


def test_pandas_keeps_our_arrays_in_lists():
    pandas = pytest.importorskip("pandas")
    assert all(isinstance(x, numpy.ndarray) for x in pandas.Series([np.arange(2), np.ones(3)]))
    assert isinstance(pandas.DataFrame({"a": [np.arange(2)]})["a"][0], numpy.ndarray)
    records = np.array([(1, 2.5)], dtype=[("x", "i4"), ("y", "f4")])
    assert list(pandas.DataFrame.from_records(records).columns) == ["x", "y"]


def test_numba_compiles_a_program_written_for_us():
    numba = pytest.importorskip("numba")
    from minnp import grad
    from minnp.errors import TracedValueError

    root = np.sqrt

    @numba.njit
    def roots(a):
        out = np.zeros_like(a)
        for i in range(a.shape[0]):
            out[i] = root(a[i]) + np.pi
        return out

    x = np.arange(4.0)
    assert (np.asarray(roots(x)) == np.sqrt(x) + np.pi).all() and type(roots(x) + x) is np.ndarray
    with pytest.raises(TracedValueError, match="stop_gradient"):
        grad(lambda x: np.sum(roots(x)))(x)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # NumPy's own, of its matrices
def test_numpys_own_subclasses_are_viewed_as_our_arrays(tmp_path):
    records = np.rec.array([(1, 2.0), (3, 4.0)], names="a,b")
    hidden = np.ma.masked_array(np.arange(3), mask=[0, 1, 0])
    mapped = np.memmap(tmp_path / "x", dtype="f4", mode="w+", shape=(3,))
    for x in (records, hidden, mapped, np.matrix([[1, 2]])):
        y = x.view(np.ndarray)
        assert type(y) is np.ndarray and np.shares_memory(x, y) and y.dtype.fields == x.dtype.fields
        assert type(x.view(type=np.ndarray)) is np.ndarray and type(x.view(type(x))) is type(x)
    assert records.view([("c", "i8"), ("d", "f8")]).c.tolist() == [1, 3] and records.view(np.ndarray)["a"].sum() == 4


def test_networkx_takes_a_matrix_as_a_graph():
    networkx = pytest.importorskip("networkx", reason="it comes with torch")
    edges = np.array([[0, 2], [0, 0]])
    graph = networkx.DiGraph(edges)
    assert list(graph.edges(data="weight")) == [(0, 1, 2)]
    assert networkx.to_numpy_array(graph).tolist() == edges.tolist()


def test_operators_give_way_where_numpy_does():
    class Plain:
        def __array__(self, dtype=None, copy=None):
            return numpy.arange(3.0)

        def __array_wrap__(self, out, context=None, return_scalar=False):
            return "wrapped", out.tolist()

    class High(Plain):
        __array_priority__ = 1000

    class Answers(High):
        def __radd__(self, other):
            return "answered"

    class Never(Answers):
        __array_ufunc__ = None

    def add_to(a, other):
        a += other
        return a

    programs = [lambda a, b: a + b, lambda a, b: b + a, add_to, lambda a, b: b @ a, lambda a, b: a < b]
    for cls, program in itertools.product((Plain, High, Answers, Never), programs):
        found = []
        for module in (numpy, np):
            try:
                out = program(module.ones(3), cls())
            except TypeError:
                out = TypeError
            found.append(out.tolist() if hasattr(out, "tolist") else out)
        assert found[0] == found[1], (cls, program)


class Unit(np.ndarray):
    def __array_finalize__(self, obj):
        self.unit = getattr(obj, "unit", None)

    def __reduce__(self):
        rebuild, args, state = np.ndarray.__reduce__(self)
        return rebuild, args, (*state, self.unit)

    def __setstate__(self, state):
        np.ndarray.__setstate__(self, state[:-1])
        self.unit = state[-1]


def test_subclasses_call_our_methods_by_the_classs_name():
    x = np.array([[1.0, 2.0]]).view(Unit)
    x.unit = "m"
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Unit and y.unit == "m" and y.tolist() == [[1, 2]]
    for name, args in (
        ("__add__", (1,)),
        ("__getitem__", (0,)),
        ("reshape", (2,)),
        ("__deepcopy__", ({},)),
        ("T", None),
    ):
        method = getattr(np.ndarray, name)
        z, of_numpy = (method(x, *args), getattr(x, name)(*args)) if args is not None else (method.__get__(x), x.T)
        assert type(z) is Unit and z.unit == "m" and z.tolist() == of_numpy.tolist(), name
    np.ndarray.__setitem__(x, (0, 0), 5)
    assert x[0, 0] == 5 and np.ndarray.__bool__(x[0, :1]) and np.ndarray.sum(x) == 7 and 2 in x
    assert type(x.view(type=np.ndarray)) is np.ndarray
    assert np.ones(2).__reduce__()[1][0].tolist() == [1, 1]


def test_results_are_the_very_array_given_as_out():
    """Also of a view whose root is an argument: NumPy returns `out` itself."""
    for module in (numpy, np):
        x = module.ones((4, 3)) + 0j
        for out in (x, x[:2], x[1:3]):
            if int(numpy.__version__.split(".")[0]) > 1:
                assert module.fft.fft(x, n=len(out), axis=0, out=out) is out
            assert module.add(x[: len(out)], 1, out=out) is out


def test_an_array_updated_in_place_by_a_class_with_a_ufunc_hook_is_what_the_hook_gives():
    for module in (numpy, np):

        class Wrapped(module.lib.mixins.NDArrayOperatorsMixin):
            def __init__(self, value, module=module):
                self.value = module.asarray(value)

            def __array_ufunc__(self, ufunc, method, *inputs, **options):
                values = [x.value if isinstance(x, Wrapped) else x for x in inputs]
                return Wrapped(getattr(ufunc, method)(*values, **options))

        a = b = module.zeros(2)
        a += Wrapped([1.0, 2.0])
        assert type(a) is Wrapped and b.tolist() == [1.0, 2.0], module
        a.value[0] = 7
        assert b[0] == 7, module


def test_broadcast_takes_no_keywords():
    with pytest.raises(ValueError, match="keyword arguments not accepted"):
        np.broadcast(np.ones(2), x=1)


@pytest.mark.skipif(numpy.__version__ < "2", reason="its methods in C show no signature")
def test_what_an_editor_shows_of_a_stream_is_numpys():
    theirs, ours = numpy.random.default_rng(0), np.random.default_rng(0)
    for name in ("normal", "integers", "choice", "standard_normal"):
        assert inspect.signature(getattr(ours, name)) == inspect.signature(getattr(theirs, name)), name
    for name in ("PCG64", "RandomState"):
        shown = inspect.signature(getattr(np.random, name)).parameters
        assert [(p.name, p.default) for p in shown.values()] == [("seed", None)], name


def test_what_a_session_shows():
    assert "rows" not in dir(np) and "stop_gradient" in dir(np)
    assert "Receiver" not in pydoc.plain(pydoc.render_doc(np.sum))
    assert callable(np.testing.test)
    assert repr(fx.capture(lambda x: x * 2, np.ones(2)).graph).startswith("<graph of 3 nodes")
