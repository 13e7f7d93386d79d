"""On a place, the short ways in C give what the Python ones give: values, dtypes, views, exceptions, counts.

The Python ways are reached on the same arrays: a slot's method in the class, and what a compiled callable stands for.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import warnings

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install torch")

import minnp
import minnp.numpy as np
from minnp import npx
from minnp.core.api import install
from minnp.core.arrays.array import Array, VirtualArray, ndarray
from minnp.core.rows.primitive import TABLE
from minnp.core.rows.value import Buffer
from minnp.core.transforms.tape import GradTrace
from minnp.errors import BackendUnsupportedError
from tests.backends.devices import THERE, on_there

pytestmark = [
    pytest.mark.either("about the C part"),
    pytest.mark.skipif(install.fastpath is None, reason="minnp runs without its C part"),
    *on_there,
]
DTYPES = ["?", "i1", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
NUMBERS = [2, -1, 300, 2.5, 1e30, True, 3j, -0.0]
with THERE:
    ARRAYS = {d: np.array(onp.arange(12).reshape(3, 4).astype(d)) for d in DTYPES}
    MASK, CHOSEN = np.array([True, False, True]), np.array([[2], [-1]])
    SCALAR, ROW, EMPTY = np.array(3.5), np.array(onp.arange(4.0)), np.array(onp.zeros((0, 4)))


def told(x):
    """All there is to tell of a result: where it lies, of what it is a view, what a tape or a write would see."""
    if type(x) in (tuple, list):
        return [told(e) for e in x]
    if type(x) is not VirtualArray or x._host is not None:
        return type(x), getattr(x, "dtype", None), repr(x)
    value = x._value
    view = () if value.view is None else (id(value.view[0]), str(value.view[1]), repr(value.view[2]))
    steps = () if x._root is None else (id(x._root), repr(x._steps), x._seen is x._root._value)
    return type(value), value.dtype, value.shape, value.backend, onp.asarray(x).tobytes(), view, steps


def outcome(call):
    minnp.report(reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = told(call())
        except Exception as error:
            out = type(error), str(error)
    return out, sorted((r["function"], r["backend"], r["calls"], r["why"]) for r in minnp.report())


def python_of(f):
    """The Python function a compiled public function, method or descriptor stands for, bound as it is."""
    home, short = [f.__self__] if hasattr(f, "__self__") else [], getattr(f, "__func__", f)
    return lambda *args, **kwargs: short.__call__(*home, *args, **kwargs)


@contextlib.contextmanager
def in_python_alone():
    """Inside, rows that are called and the operators of buffers go through Python."""
    install.fastpath.fast_rows(False)
    try:
        yield
    finally:
        install.fastpath.fast_rows(True)


def agree(compiled_way, python_way, what):
    outcome(python_way)  # from here on the arguments have the host copies that a fallback makes once
    want = outcome(python_way)
    assert outcome(compiled_way) == want, what
    assert outcome(compiled_way) == want, what  # prepared by now


OPERATORS = str.split("add sub truediv mod matmul and_ lshift pow lt eq")


def in_python(name, a, b):
    """a op b by the Python methods, in the interpreter's order for an array and a number."""
    name = name.rstrip("_")
    if isinstance(a, Array):
        return vars(Array)[f"__{name}__"](a, b)
    mirrored = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(name, name if name in ("eq", "ne") else f"r{name}")
    return vars(Array)[f"__{mirrored}__"](b, a)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATORS)
def test_binary_operators(name):
    op = getattr(operator, name)
    pairs = [(x, y) for x in ARRAYS.values() for y in (ARRAYS["f4"], ARRAYS["i4"], x, SCALAR)]
    numbers = NUMBERS if name in ("add", "lt") else NUMBERS[::3]
    pairs += [p for x in (*ARRAYS.values(), SCALAR) for n in numbers for p in ((x, n), (n, x))]
    pairs += [(ARRAYS["f8"][1:], ARRAYS["f8"].T), (EMPTY, ROW), (ROW, onp.arange(4)), (ROW, np.arange(4)), (ROW, None)]
    for a, b in pairs:
        if name != "lshift" or (type(b) is ndarray and b is not ARRAYS["f4"]):
            agree(lambda: op(a, b), lambda: in_python(name, a, b), (name, a, b))  # noqa: B023


@pytest.mark.long
def test_unary_operators_and_ufuncs():
    for x in (*ARRAYS.values(), SCALAR, EMPTY, ARRAYS["f4"].T):
        for name in ("neg", "pos", "abs", "invert"):
            agree(lambda: getattr(operator, name)(x), lambda: vars(Array)[f"__{name}__"](x), (name, x))  # noqa: B023
        for f in (np.exp, np.isnan, np.floor, np.conjugate, np.modf, np.square):
            agree(lambda: f(x), lambda: python_of(f)(x), (f, x))  # noqa: B023
        for f in (np.maximum, np.add, np.arctan2):
            agree(lambda: f(x, ARRAYS["f4"]), lambda: python_of(f)(x, ARRAYS["f4"]), (f, x))  # noqa: B023
            agree(lambda: f(2, x), lambda: python_of(f)(2, x), (f, x))  # noqa: B023


CALLS = [((), {}), ((0,), {}), ((), {"axis": 1}), ((-1,), {"keepdims": True}), ((0,), {"axis": 0}), ((7,), {}),
         (((0, 1),), {}), ((), {"axis": None}), ((), {"dtype": "f8"}), ((0, None), {}), ((), {"nope": 1})]  # fmt: skip


@pytest.mark.long
def test_reductions_as_functions_and_methods():
    for name in ("sum", "argmax", "cumsum", "mean", "std", "max", "prod", "all"):
        every = name in ("sum", "argmax", "cumsum")
        for x in (ARRAYS["f4"], ARRAYS["u2"], ARRAYS["?"], SCALAR, EMPTY, ARRAYS["f8"][:, 1])[:: 1 if every else 2]:
            for args, kwargs in CALLS:
                f, m = getattr(np, name), getattr(x, name)
                agree(lambda: f(x, *args, **kwargs), lambda: python_of(f)(x, *args, **kwargs), (name, args, kwargs))  # noqa: B023
                agree(lambda: m(*args, **kwargs), lambda: python_of(m)(*args, **kwargs), (name, args, kwargs))  # noqa: B023


INDICES = [0, -1, 7, slice(1, None), slice(None, None, 2), slice(None, None, -1), None, ..., (),
           (slice(1, None), 0), (..., 1), (0, 1), (0, 1, 2), (None, 0, ..., None), [0, 1], True, onp.int64(1),
           slice(2, 0, 1), slice(None, None, 0), MASK, CHOSEN, ((0, 1), 1), "a", 1.5]  # fmt: skip


@pytest.mark.long
def test_views():
    get, transposed = vars(Array)["__getitem__"], vars(Array)["T"]
    for x in (*ARRAYS.values(), SCALAR, ROW, EMPTY, ARRAYS["f4"][1:], ARRAYS["u2"].T[1:, ::-1]):
        for i in INDICES:
            agree(lambda: x[i], lambda: get.__call__(x, i), (x, i))  # noqa: B023
        agree(lambda: x.T, lambda: transposed.fget(x), x)  # noqa: B023
        agree(lambda: x.transpose(), lambda: python_of(x.transpose)(), x)  # noqa: B023
        for shape in ((4, 3), (-1,), ((2, 6),), (12,), (5, 5), (2.0,), (), (None,)):
            agree(lambda: x.reshape(*shape), lambda: python_of(x.reshape)(*shape), (x, shape))  # noqa: B023
        for fact in ("shape", "dtype", "ndim", "size", "nbytes"):
            assert getattr(x, fact) == vars(Array)[fact].fget(x)


def test_views_by_numbers():
    cube, rows = ARRAYS["u4"].reshape(3, 2, 2), ARRAYS["f4"][:1]
    for x in (ARRAYS["f4"], ARRAYS["u2"].T, cube[:, :1], rows, SCALAR, EMPTY):
        for f in (np.expand_dims, np.squeeze):
            for args, kwargs in [
                ((), {}),
                ((0,), {}),
                ((-1,), {}),
                ((7,), {}),
                (((0,),), {}),
                ((), {"axis": 1}),
                ((1.0,), {}),
            ]:
                agree(lambda: f(x, *args, **kwargs), lambda: python_of(f)(x, *args, **kwargs), (f, x, args, kwargs))  # noqa: B023
        for args in [(0, 1), (-1, 0), (0, 5), (0,), (0, 1, 2)]:
            agree(lambda: np.swapaxes(x, *args), lambda: python_of(np.swapaxes)(x, *args), (x, args))  # noqa: B023
            agree(lambda: x.transpose(*args), lambda: python_of(x.transpose)(*args), (x, args))  # noqa: B023
            agree(lambda: np.transpose(x, args), lambda: python_of(np.transpose)(x, args), (x, args))  # noqa: B023


def test_rows():
    """A row called on handles, as npx's functions and those said in rows do: tuples and views among its results."""
    x, spoiled = ARRAYS["f4"], ARRAYS["i8"] > 100
    calls = [
        *(lambda: npx.relu(x), lambda: npx.softmax(ARRAYS["f8"], axis=0), lambda: np.linalg.qr(x), lambda: x.ravel()),
        *(lambda: x[[0, 1]], lambda: x[x > 3], lambda: x[:, [0]], lambda: x.astype("f8"), lambda: x.copy(), lambda: +x),
        *(lambda: x.T.ravel(), lambda: np.broadcast_to(x, (2, 3, 4)), lambda: x.real, lambda: np.diagonal(x)),
        *(lambda: np.clip(x, 1, None), lambda: np.take(x, [0, 9]), lambda: np.sort(x, None), lambda: x[spoiled]),
        *(lambda: np.where(x > 3, x, 0), lambda: np.dot(x, ROW), lambda: np.moveaxis(x, 0, 1), lambda: x[np.int64(1)]),
    ]
    for i, call in enumerate(calls):
        outcome(call)
        got = outcome(call)
        with in_python_alone():
            assert outcome(call) == got, i


def nodes_of(tape):
    """What a tape holds of its nodes: rows, params less those that say nothing, parents, what is kept, ...."""
    tells = lambda k, v: v is not None and v is not False and k != "ddof"
    said = lambda p: repr({k: v for k, v in p.items() if tells(k, v)}) if type(p) is dict else p
    kept = lambda v: (type(v), getattr(v, "shape", v), getattr(v, "dtype", None))
    return [
        (str(row), said(params), tuple(parents), arrays and [kept(a) for a in arrays], kept(y), shape, dtype)
        for row, params, parents, arrays, y, shape, dtype in tape
    ]


TAPED = [
    *(lambda x, y: np.tanh(x @ y.T) * 2 - x[:, :1], lambda x, y: x * x / y, lambda x, y: (2.5 - x) ** 2 + -y),
    *(lambda x, y: np.maximum(x, y) * (x > y), lambda x, y: np.where(x > 3, x, y), lambda x, y: np.exp(x - np.max(x))),
    *(lambda x, y: x.reshape(2, 6)[1:, None].T, lambda x, y: x.T[1][None] * y.mean(0)[0], lambda x, y: x.sum(1).std()),
    *(lambda x, y: np.concatenate([x, y], 1), lambda x, y: np.stack((x, y)), lambda x, y: x[[0, 0]] + y[y > 3].sum()),
    *(lambda x, y: np.modf(x)[0], lambda x, y: np.floor(x) * y, lambda x, y: x.astype("i8") * y, lambda x, y: abs(x)),
    *(lambda x, y: np.linalg.qr(x[:3, :3] + np.eye(3))[1], lambda x, y: npx.softmax(x)),
    *(lambda x, y: np.expand_dims(x, 0) * 1j, lambda x, y: x + y.astype("f8"), lambda x, y: x * onp.float64(2)),
    *(lambda x, y: written(x), lambda x, y: x.ravel()[1:] @ y.flatten()[:-1], lambda x, y: np.argmax(x) * y),
    *(
        lambda x, y: np.dot(x, y.T) * x.clip(1.5, 2)[0, 0].real if x.dtype == "f4" else x.dot(y.T),
        lambda x, y: x @ 2,
        lambda x, y: x + onp.ones(4),
    ),
    *(lambda x, y: x * minnp.grad(lambda v: (v * v * x).sum())(y), lambda x, y: minnp.stop_gradient(x) * x),
    *(lambda x, y: np.var(x, axis=0) * len(x) * x.shape[1], lambda x, y: x.swapaxes(0, 1).squeeze()),
]


def written(x):
    z = x * 2
    row = z[1:]
    z[0] = row[0] * 3
    row += 1
    return z * row.sum()


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_gradients(dtype, monkeypatch):
    """Under a tape: the nodes are those that Python writes, the gradients and the counts too."""
    tapes, start = [], GradTrace.start

    def seen(tape, value):
        if tape.nodes not in tapes:
            tapes.append(tape.nodes)
        return start(tape, value)

    monkeypatch.setattr(GradTrace, "start", seen)
    x, y = ARRAYS[dtype] / 4 + 1, ARRAYS[dtype][:, ::-1] + 1

    def run(f):
        tapes.clear()
        g = minnp.grad(lambda *xy: abs(f(*xy)).sum(), [0, 1])(x, y)
        return str([told(e)[:5] for e in g]), [str(node) for nodes in tapes for node in nodes_of(nodes)]

    for i, f in enumerate(TAPED):
        outcome(lambda: run(f))  # noqa: B023
        got = outcome(lambda: run(f))  # noqa: B023
        with in_python_alone():
            assert outcome(lambda: run(f)) == got, i  # noqa: B023
        if isinstance(got[0], list):  # it raised nothing
            here = minnp.grad(lambda *xy: abs(f(*xy)).sum(), [0, 1])(*map(onp.array, (x, y)))  # noqa: B023
            there = minnp.grad(lambda *xy: abs(f(*xy)).sum(), [0, 1])(x, y)  # noqa: B023
            for h, t in zip(here, there, strict=True):
                assert onp.allclose(h, t, rtol=1e-4, atol=1e-4), i


@pytest.mark.parametrize("name", ["iadd", "itruediv", "imatmul", "ipow"])
def test_in_place(name):
    """x op= y: what x holds, what views of it see, and what the tape of an array saved is as by the Python method."""
    op = getattr(operator, name)
    for x in (ARRAYS["f4"], ARRAYS["i4"], ARRAYS["?"], SCALAR, ARRAYS["f8"][:, 1]):
        for y in (ARRAYS["f4"], ARRAYS["i1"], ARRAYS["f4"][:1], x, SCALAR, 2, 2.5, True, None, onp.ones(4)):

            def run(how):
                z = x.copy()  # noqa: B023
                row = z.reshape(-1)
                before = z._value
                out = how(z, z if y is x else y)  # noqa: B023
                return [told(out)[:5], out is z, z._value is before, told(row + 0)[:5]]

            agree(lambda: [run(op)], lambda: [run(vars(Array)[f"__{name}__"])], (name, x, y))


def test_joining_and_choosing():
    x, y, u = ARRAYS["f4"], ARRAYS["f8"], ARRAYS["u2"]
    for f in (np.concatenate, np.stack):
        for args, kwargs in [(([x, x],), {}), (([x, y], 1), {}), (((u, u),), {"axis": -1}), (([x, ROW],), {}),
                             (([],), {}), (([x, 2.0],), {}), (([x], 0, None), {}), (([x, x],), {"dtype": "f8"}),
                             (([x, x], None), {}),
                             (([ROW, onp.ones(4)],), {}), (([SCALAR, SCALAR],), {})]:  # fmt: skip
            agree(lambda: f(*args, **kwargs), lambda: python_of(f)(*args, **kwargs), (f, args))  # noqa: B023
    for args in [(x > 3, x, x), (x > 3, x, y), (x > 3, x, 0), (x, u, u), (x > 3, u, u), (x > 3,), (SCALAR, 1, 2)]:
        agree(lambda: np.where(*args), lambda: python_of(np.where)(*args), args)  # noqa: B023


def same(compiled_way, python_way, what):
    """As `agree`, but for the counts: the definition may say in several rows what C calls one kernel for."""
    for _ in range(2):
        assert outcome(compiled_way)[0] == outcome(python_way)[0], what


@pytest.mark.long
def test_functions_of_an_array_and_perhaps_a_number():
    with THERE:
        square = np.array([[2.0, 1.0], [0.5, 3.0]])
    ones = (np.sort, np.argsort, np.roll, np.triu, np.tril, np.round, np.diff, np.repeat, np.flip)
    plain = (np.zeros_like, np.ones_like, np.ptp, np.nan_to_num, np.linalg.inv, np.linalg.norm, np.fft.fft, np.fft.ifft)
    ways = [((1,), {}), ((-1,), {}), (((0, 1),), {}), ((), {"axis": 0}), ((None,), {})]
    for x in (*(ARRAYS[d] for d in ("?", "i4", "u2", "f4", "c16")), SCALAR, ROW, EMPTY, ARRAYS["f8"][:, 1], square):
        for f in ones + plain:
            for args, kwargs in [((), {}), *(ways if f in ones else ())]:
                same(lambda: f(x, *args, **kwargs), lambda: python_of(f)(x, *args, **kwargs), (f, x, args, kwargs))  # noqa: B023
        for f in (np.take, np.isclose, np.array_equal, np.searchsorted, np.linalg.solve):
            for y in (CHOSEN, ROW, SCALAR, MASK, 1, x):
                same(lambda: f(x, y), lambda: python_of(f)(x, y), (f, x, y))  # noqa: B023
        for dtype in ("f4", onp.float64, onp.dtype("u2"), bool, int, "c8", "nonsense", None, x):
            same(lambda: x.astype(dtype), lambda: python_of(x.astype)(dtype), (x, dtype))  # noqa: B023
        same(lambda: x.astype(dtype="f8"), lambda: python_of(x.astype)(dtype="f8"), x)  # noqa: B023
        for f in (np.vstack, np.hstack):
            for given in ([x, x], [x], (x, ROW), [], [x, 2.0]):
                same(lambda: f(given), lambda: python_of(f)(given), (f, given))  # noqa: B023
        for shape in ((3, 4), (2, 3, 4), 4, ()):
            same(lambda: np.broadcast_to(x, shape), lambda: python_of(np.broadcast_to)(x, shape), (x, shape))  # noqa: B023


@pytest.mark.long
def test_flat_copies_products_and_bounds():
    """x.ravel() where x lies in C order, x.flatten(), np.dot of vectors and matrices, np.clip."""
    for x in (*ARRAYS.values(), SCALAR, ROW, EMPTY, ARRAYS["f4"].T, ARRAYS["f4"][:, 1], ARRAYS["u2"][::2]):
        for name in ("ravel", "flatten"):
            for args in ((), ("F",), (1,)):
                f = getattr(x, name)
                agree(lambda: f(*args), lambda: python_of(f)(*args), (name, x, args))  # noqa: B023
        agree(lambda: np.ravel(x), lambda: python_of(np.ravel)(x), x)  # noqa: B023
        for y in (ROW, SCALAR, 2.5, ARRAYS["f4"].T):
            agree(lambda: np.dot(x, y), lambda: python_of(np.dot)(x, y), (x, y))  # noqa: B023
            agree(lambda: x.dot(y), lambda: python_of(x.dot)(y), (x, y))  # noqa: B023
        for bounds in ((1, 5), (1.5, ROW), (None, 3), (-1, 1e30), (5, 1), (1,), (1, 300)):
            agree(lambda: np.clip(x, *bounds), lambda: python_of(np.clip)(x, *bounds), (x, bounds))  # noqa: B023
            agree(lambda: x.clip(*bounds), lambda: python_of(x.clip)(*bounds), (x, bounds))  # noqa: B023


@pytest.mark.long
def test_parts_numbers_and_iteration():
    """np.split into parts of one length, x.item(), ufuncs of two results, list(x)."""
    by = ((2,), (3, 1), (4, -1), (1,), (0,), (-2,), (5,), (2, 10**30), (2.0,), ([1, 2],), (True,), (2, None))
    for x in (ARRAYS["f4"], ARRAYS["i4"], ARRAYS["c16"], ARRAYS["f8"].T, ROW, SCALAR, EMPTY, ARRAYS["u2"][0, 1]):
        for args in by:
            agree(lambda: np.split(x, *args), lambda: python_of(np.split)(x, *args), (x, args))  # noqa: B023
        agree(lambda: np.split(x, 2, axis=-1), lambda: python_of(np.split)(x, 2, axis=-1), x)  # noqa: B023
        agree(lambda: np.split(x, 2, nope=1), lambda: python_of(np.split)(x, 2, nope=1), x)  # noqa: B023
        for args in ((0,), (1, 2), ("a",)):
            agree(lambda: x.item(*args), lambda: python_of(x.item)(*args), (x, args))  # noqa: B023
        # Python finds the host copy that was made before; the C part asks the device
        assert outcome(lambda: x.item())[0] == outcome(lambda: python_of(x.item)())[0]  # noqa: B023
        for f in (np.divmod, np.modf, np.frexp):
            given = (x, 2) if f is np.divmod else (x,)
            out = ARRAYS["f8"] * 1, ARRAYS["f8"] * 1
            agree(lambda: f(*given), lambda: python_of(f)(*given), (f, x))  # noqa: B023
            for more in ((out[0],), out):
                agree(lambda: f(*given, *more), lambda: python_of(f)(*given, *more), (f, x, more))  # noqa: B023
        agree(lambda: list(x), lambda: list(vars(Array)["__iter__"](x)), x)  # noqa: B023
        agree(lambda: x.compress([True], 0), lambda: python_of(x.compress)([True], 0), x)  # noqa: B023 (a definition alone)


def test_new_arrays():
    """What the device makes itself, what it refuses and NumPy makes, and NumPy's exceptions."""
    with THERE:
        for f, *calls in (
            (np.zeros, (3,), ((2, 3), "f4"), (-1,), ("a",), (3, "nonsense"), ([2, 1],), (2**70,)),
            (np.full, (3, 2.5), (3, "a"), (2, 3, "i4"), (2, 3j, "f4"), (2, [1, 2])),
            (np.arange, (3,), (0, 10, 3), (2.5,), (0,), (1, 2, 0)),
            (np.array, ([1.0, 2.0],), ([[1], [2, 3]],), (2.5,), ([True],), ("a",)),
            (np.linspace, (0, 1, 5), (0, 1, -1), (0, [1, 2], 3)),
            (np.eye, (3,), (2, 3, 1), (-1,)),
        ):
            for args in calls:
                agree(lambda: f(*args), lambda: python_of(f)(*args), (f, args))  # noqa: B023
        agree(lambda: np.zeros(shape=3, dtype="i2"), lambda: python_of(np.zeros)(shape=3, dtype="i2"), "keywords")
        agree(lambda: np.ones(2, order="F"), lambda: python_of(np.ones)(2, order="F"), "another order")


@pytest.mark.long
def test_writes():
    """x[i] = v: what x holds, what a view and another name for the value see, and the exceptions."""
    write = vars(Array)["__setitem__"]
    for x in (ARRAYS["f4"], ARRAYS["u2"], ARRAYS["?"], SCALAR, ARRAYS["f8"].T):
        for i in (0, -1, slice(1, 3), (0, 1), (..., 1), (), None, 9, slice(None, None, -1), [0, 1], MASK, CHOSEN):
            for v in (2, 2.5, True, 3j, None, SCALAR, ROW, ARRAYS["i4"][0], ARRAYS["f4"][:1], onp.float64(3)):

                def run(how):
                    z, kept, alone = x.copy(), x + 0, x.copy()  # noqa: B023
                    row, other = z.reshape(-1), kept._value
                    how(z, i, v), how(kept, i, v), how(alone, i, v)  # noqa: B023
                    return (
                        told(alone)[:5],
                        told(z)[:5],
                        told(row + 0)[:5],
                        told(kept)[:5],
                        onp.asarray(other.data).tobytes(),
                    )

                agree(lambda: run(operator.setitem), lambda: run(write), (x, i, v))


def test_what_is_alone_is_written_in_its_memory():
    """x += y of an array, and of a part of it, that nothing else shows; what else there is keeps what it was."""
    with THERE:
        x, y = np.zeros((3, 4)), np.ones(4)
    memory = x._value.data.data_ptr()
    for _ in range(2):  # the first finds the kernels
        x += y
        x *= 2.0
        x[1] -= y
        x[:, 1:3] += 0.5
        x[0, 1:] /= 2
    assert x._value.data.data_ptr() == memory
    want = onp.zeros((3, 4))
    for _ in range(2):
        want += 1
        want *= 2.0
        want[1] -= 1
        want[:, 1:3] += 0.5
        want[0, 1:] /= 2
    assert onp.array_equal(onp.asarray(x), want)
    for shown in (lambda x: x[1:], lambda x: x.T, lambda x: x[:, ::-1], lambda x: x.reshape(-1)):
        with THERE:
            x = np.array(want)
        part, other, before = shown(x), x[:2], x + 0
        kept = x._value
        for _ in range(2):
            x += y
            x[0] += y
            other *= 2.0
            other[1:] += other[:-1]
        again = want.copy()
        parts = again[:2]
        for _ in range(2):
            again += 1
            again[0] += 1
            parts *= 2.0
            parts[1:] += parts[:-1]
        assert onp.array_equal(onp.asarray(x), again) and onp.array_equal(onp.asarray(part), shown(again))
        assert onp.array_equal(onp.asarray(other), parts) and onp.array_equal(onp.asarray(before), want)
        assert onp.array_equal(kept.data.cpu().numpy(), want)
    with pytest.raises(ValueError):
        x += np.ones(5)
    with pytest.raises(ValueError, match="read-only"):
        wide = np.broadcast_to(x, (3, 4))
        wide += 1


def test_writes_are_seen_through_views_taken_before():
    with THERE:
        x = np.zeros((3, 4))
    row, turned = x[0], x.T
    x[0] = 7
    assert (onp.asarray(row + 0) == 7).all() and (onp.asarray(turned[:, 0]) == 7).all() and (row.T == 7).all()
    row[1:] += 1
    assert onp.asarray(x[0, 1:]).tolist() == [8, 8, 8] == onp.asarray(turned.reshape(-1)[[3, 6, 9]]).tolist()


@pytest.mark.long
def test_numbers_and_results_given():
    """bool, int, float, index, item of an array, f(x, out=o), and functions of which only the definition is known."""
    for x in (*(a[1, 1] for a in ARRAYS.values()), SCALAR, ROW[:1], ROW, EMPTY):
        for f in (bool, int, float, operator.index):
            want = outcome(lambda: vars(Array)[f"__{f.__name__}__"](x + 0))  # noqa: B023
            got = outcome(lambda: f(x + 0))  # noqa: B023
            assert got == want or (isinstance(got[0][1], str) and got[0][0] is want[0][0]), (f, x)  # whose words differ
        agree(lambda: (x + 0).item(), lambda: (x + 0).tolist() if not x.ndim else (x + 0).item(), x)  # noqa: B023
    for x in (ARRAYS["f4"], ARRAYS["i8"], ARRAYS["?"], SCALAR):
        for o in (*(ARRAYS[d] for d in ("f4", "f8", "c16")), ROW, np.ones((3, 4)), None):
            for args, f in [((x,), np.exp), ((x, x), np.add), ((x, 2.5), np.multiply), ((ROW, x), np.subtract)]:

                def run(f, *places):
                    out = None if o is None else o.copy()  # noqa: B023
                    kept, row = out if out is None else out._value, None if out is None else out.reshape(-1)
                    made = f(*args, *(out for _ in places), **({} if places else {"out": out}))  # noqa: B023
                    return [told(e)[:5] for e in (made, out, row, kept)] + [made is out]

                agree(lambda: run(f), lambda: run(python_of(f)), (f, x, o))  # noqa: B023
                agree(lambda: run(f, 0), lambda: run(python_of(f), 0), (f, x, o))  # noqa: B023
    for x in (ARRAYS["f4"], ARRAYS["u2"], SCALAR):
        for f, *args in [
            (np.outer, ROW),
            (np.zeros_like,),
            (np.vstack,),
            (np.take, [0, 1], 0),
            (np.diff,),
            (np.ediff1d,),
        ]:
            agree(lambda: f(x, *args), lambda: python_of(f)(x, *args), (f, x))  # noqa: B023
            agree(lambda: f([x, x], *args), lambda: python_of(f)([x, x], *args), (f, x))  # noqa: B023


def test_inside_a_context_under_policies_and_captures():
    x = ARRAYS["f4"]
    with THERE:
        y = x[1:].T * 2 + x.sum()
        assert type(y._value) is Buffer and minnp.core.rows.state.state.busy
        for policy in ("auto", "prefer_torch", "only_numpy", "only_torch"):
            with minnp.wrap_policy(policy):
                agree(lambda: np.exp(x) + x, lambda: in_python("add", python_of(np.exp)(x), x), policy)
                agree(lambda: x[1:], lambda: vars(Array)["__getitem__"].__call__(x, slice(1, None)), policy)
    graph = minnp.jit(lambda v: np.maximum(v[1:].T.reshape(-1), 0.5) * 2)
    for _ in range(2):
        assert onp.allclose(graph(x), onp.maximum(onp.asarray(x)[1:].T.reshape(-1), 0.5) * 2)


def test_small_calls_run_none_of_our_python():
    x, seen = ARRAYS["f4"], set()

    def calls():
        x + x, x * x, x > x, np.exp(x), np.maximum(x, x), x @ x.T, x[0], x[1:, 0], x.T, x.reshape(6, 2), x.shape

    calls()  # finds the kernels
    calls()  # and what they run for these dtypes
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_name) if event == "call" else None)
    try:
        calls()
    finally:
        sys.setprofile(None)
    assert seen <= {"calls", "transpose", "matmul"}  # the kernels that are Python themselves


def test_a_kernel_refuses_and_an_error_of_a_kernel_comes_out(monkeypatch):
    """By BackendUnsupportedError, or by what torch raises for shapes and indices; a mistake is no refusal."""
    device, row = ROW._value.backend, TABLE["exp"]
    np.exp(ROW)
    kept = [*device.slots[row]]
    monkeypatch.setitem(device.slots, row, kept)

    def broken(x, **params):
        raise error

    kept[0], kept[2] = broken, None  # the kernel itself is called
    for error in (BackendUnsupportedError("not this"), RuntimeError("shapes"), IndexError("out of range")):
        called = contextlib.nullcontext() if isinstance(error, BackendUnsupportedError) else pytest.raises(type(error))
        with called:  # the general path calls it again, and falls back to NumPy where it says no
            assert onp.array_equal(onp.asarray(np.exp(ROW)), onp.exp(onp.arange(4.0)))
    calls = []

    def mistaken(x, **params):
        calls.append(x)
        return broken(x)

    kept[0] = mistaken
    for error in (TypeError("a mistake"), AttributeError("a mistake"), KeyError("a mistake"), ZeroDivisionError()):
        calls.clear()
        with pytest.raises(type(error)):
            np.exp(ROW)
        assert len(calls) == 1  # nobody asked again
    kept[0] = lambda x, another: x  # what cannot be called so is asked again in Python, whose error it is
    with pytest.raises(TypeError, match="another"):
        np.exp(ROW)
