"""Programs of somebody who takes a host array for a numpy.ndarray: C through ctypes and cffi, buffers, copies, pickles,
weak references, records, maps of files, masked arrays, other libraries, threads, generators, and gradients in between.
Each gives with minnp what it gives with NumPy, where `grad` calls the function once."""

from __future__ import annotations

import array
import contextlib
import copy
import ctypes
import gc
import io
import itertools
import mmap
import operator
import pickle
import struct
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as mnp
from minnp.errors import TracedValueError

pytestmark = pytest.mark.host("NumPy's own functions on arrays in NumPy's memory")
PROGRAMS: list[Callable] = []
libc = ctypes.CDLL(None)


def program(f: Callable) -> Callable:
    """Decorator of a program, (np, grad) -> what is compared. NumPy's `grad` calls the function, and no more."""
    PROGRAMS.append(f)
    return f


def called(f: Callable) -> Callable:
    return lambda *args: (f(*args), None)[1]


def told(x: Any) -> Any:
    """What the two sides must agree on: values, dtypes, shapes, flags; a gradient counts as nothing."""
    if isinstance(x, onp.ma.MaskedArray):
        return "masked", told(onp.asarray(x.filled(0))), told(onp.ma.getmaskarray(x))
    if isinstance(x, onp.ndarray):
        f = x.flags
        return str(x.dtype), x.shape, x.strides, f.c_contiguous, f.f_contiguous, f.writeable, repr(x.tolist())
    if isinstance(x, (tuple, list)):
        return [told(e) for e in x]
    if isinstance(x, dict):
        return {k: told(v) for k, v in x.items()}
    return type(x).__name__, repr(x)


# ------------------------------------------------------------------ C: ctypes, cffi, struct
@program
def memset_through_ctypes(np, grad):
    x = np.ones(6)
    libc.memset(ctypes.c_void_p(x.ctypes.data + 16), 0, ctypes.c_size_t(8))
    return x


@program
def sorted_by_qsort(np, grad):
    x = np.array([3.0, 1.0, 2.0, -5.0])
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))
    order = kind(lambda a, b: (a[0] > b[0]) - (a[0] < b[0]))
    libc.qsort(x.ctypes.data_as(ctypes.c_void_p), len(x), x.itemsize, order)
    return x, x[::-1]


@program
def an_ndpointer_takes_what_it_is_declared_for(np, grad):
    double = onp.ctypeslib.ndpointer(onp.float64, ndim=1, flags="C")
    out = []
    for a in (np.zeros(3), np.zeros((2, 2)), np.zeros(6)[::2], np.zeros(3, "f4")):
        try:
            out.append(double.from_param(a) is not None)
        except TypeError:
            out.append("TypeError")
    return out


@program
def as_ctypes_shares(np, grad):
    x = np.arange(4.0)
    c = onp.ctypeslib.as_ctypes(x)
    c[1] = 9.0
    y = np.ctypeslib.as_array(c)
    y[2] = 8
    return x, y, list(c)


@program
def a_pointer_outlives_the_name(np, grad):
    def make():
        return np.arange(5.0).ctypes.data_as(ctypes.POINTER(ctypes.c_double))

    p = make()
    gc.collect()
    return p[:5]


@program
def a_structure_over_records(np, grad):
    class Point(ctypes.Structure):
        _fields_ = (("x", ctypes.c_double), ("n", ctypes.c_int32))

    a = np.zeros(3, np.dtype(Point))
    p = (Point * 3).from_buffer(a)
    p[1].x, p[1].n = 2.5, 7
    a["n"][2] = 4
    return a, p[2].n, a.dtype.itemsize


@program
def packed_by_struct(np, grad):
    x = np.zeros(3)
    struct.pack_into("2d", x, 8, 1.5, 2.5)
    return x, struct.unpack_from("d", x, 16), struct.unpack("3d", x.tobytes())


@program
def arrays_of_the_standard_library(np, grad):
    a = array.array("d", [1, 2, 3])
    x = np.frombuffer(a)
    x[1] = 9
    b = array.array("d", np.arange(3.0))
    b.frombytes(memoryview(np.ones(2)).cast("B"))
    return list(a), list(b), x


@program
def cffi_from_buffer(np, grad):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    x = np.arange(4.0)
    p = ffi.from_buffer("double[]", x)
    p[2] = -1
    q = ffi.cast("double *", x.ctypes.data)
    q[0] = 5
    return x, list(p), onp.frombuffer(ffi.buffer(p))


# ------------------------------------------------------------------ buffers
@program
def a_memoryview_writes(np, grad):
    x = np.arange(6.0).reshape(2, 3)
    m = memoryview(x)
    m[1, 2] = 50.0
    flat = m.cast("B").cast("d")
    flat[0] = 9.0
    return x, m.shape, m.strides, m.c_contiguous, m[0, 0], flat.nbytes, m.tolist()


@program
def a_memoryview_of_a_column(np, grad):
    x = np.arange(6.0).reshape(2, 3)
    m = memoryview(x[:, 1])
    x[1, 1] = 7
    return m.tolist(), m.contiguous, memoryview(x.T).f_contiguous, bytes(memoryview(x[0]))


@program
def a_released_memoryview(np, grad):
    x = np.arange(3.0)
    with memoryview(x) as m:
        first = m[0]
    try:
        m[0]
    except ValueError as e:
        return first, str(e), x + 1
    return None


@program
def a_held_buffer_forbids_resizing(np, grad):
    x = np.arange(3.0)
    m = memoryview(x)
    with pytest.raises(ValueError):
        x.resize(10)
    del m
    x.resize((4,))
    return x


@program
def readinto_fills(np, grad):
    x = np.zeros(2)
    n = io.BytesIO(onp.array([1.5, 2.5, 3.5])).readinto(x)
    return x, n, b"".join([x, x[:1]]), bytearray(x)


@program
def a_read_only_buffer(np, grad):
    x = np.frombuffer(b"12345678")
    with contextlib.suppress(ValueError):
        x[0] = 1
    m = memoryview(x)
    return x, m.readonly, x.flags.writeable, x.copy().flags.writeable


@program
def a_mapped_file(np, grad):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "numbers")
        np.arange(6.0).tofile(path)
        m = np.memmap(path, "f8", "r+", shape=(2, 3))
        m[1] *= 2
        m.flush()
        view = np.asarray(m)
        read = np.fromfile(path)
        again = np.memmap(path, mode="r", dtype="f8", offset=8)
        with contextlib.suppress(ValueError):
            again[0] = 1
        return read, view + 0, onp.array(again), type(m).__name__, float(m.sum())


@program
def an_anonymous_map(np, grad):
    memory = mmap.mmap(-1, 32)
    x = np.frombuffer(memory, "f8")
    x[:] = [1, 2, 3, 4]
    other = np.ndarray((2,), "f8", memory, 16)
    other += 1
    return x, onp.frombuffer(memory[:]), other


# ------------------------------------------------------------------ copies, pickles, references
@program
def pickles_of_every_protocol(np, grad):
    base = np.arange(12.0).reshape(3, 4)
    forms = (base, base.T, base[::2, ::-1], base[0, 0:0], np.array(3.0), np.asfortranarray(base))
    return [pickle.loads(pickle.dumps(f, k)) for f in forms for k in range(pickle.HIGHEST_PROTOCOL + 1)]


@program
def buffers_out_of_band(np, grad):
    x = np.arange(5.0)
    buffers: list = []
    text = pickle.dumps([x, x], 5, buffer_callback=buffers.append)
    back = pickle.loads(text, buffers=buffers)
    return back, back[0] is back[1]


@program
def deepcopies_keep_what_is_shared(np, grad):
    x = np.arange(4.0)
    d = copy.deepcopy({"a": x, "b": [x, x[1:]]})
    d["a"][1] = 50
    return d, d["a"] is d["b"][0], x


@program
def copies_of_objects_with_arrays(np, grad):
    class Model:
        def __init__(self):
            self.w = np.ones(3)
            self.view = self.w[1:]

    m, n = Model(), None
    n = copy.deepcopy(m)
    n.w += 1
    shallow = copy.copy(m)
    shallow.w[0] = 7
    return m.w, m.view, n.w, n.view, shallow.w


@program
def weak_references(np, grad):
    x = np.arange(3.0)
    gone: list = []
    ref = weakref.ref(x, lambda r: gone.append(1))
    values = weakref.WeakValueDictionary(a=x)
    v = x[1:]
    alive = ref() is x
    del x
    gc.collect()
    kept = ref() is not None  # the view's base
    del v
    gc.collect()
    return alive, kept, ref() is None, gone, len(values)


@program
def finalizers_run_once(np, grad):
    ended: list = []
    x = np.zeros(1000)
    weakref.finalize(x, ended.append, "x")

    def f(p, x):
        x[:] = p
        return (x * x).sum()

    grad(f)(np.ones(1000), x)
    del x
    gc.collect()
    return ended


@program
def no_attributes_of_ones_own(np, grad):
    x = np.zeros(2)
    try:
        x.label = 1
    except AttributeError:
        return "none", hasattr(x, "label"), hasattr(x, "__dict__")
    return "one"


@program
def sizes_and_identity(np, grad):
    x = np.arange(10.0)
    return x is x[:], x[:].base is x, x.view().base is x, x.T.base is x, sys.getsizeof(x) >= 80, x.nbytes, len(x)


@program
def not_hashable(np, grad):
    with pytest.raises(TypeError):
        {np.ones(2): 1}
    with pytest.raises(ValueError):
        np.ones(2) in [np.zeros(2)]
    return [np.ones(1)].index(np.ones(1)), np.float64(2) in np.arange(3.0)


# ------------------------------------------------------------------ records, dates, texts, objects
@program
def a_field_is_a_view(np, grad):
    a = np.zeros(3, [("x", "f8"), ("v", "f4", (2,)), ("s", "S3")])
    a["x"] = [1, 2, 3]
    a["v"][1] = 7
    a[2] = (9, (1, 2), b"abc")
    rows = a[["x", "s"]]
    r = a.view(np.recarray)
    r.x += 1
    return a, rows, a["x"].base is not None, a[1]["v"], r.s, np.sort(a, order="x")["x"]


@program
def a_record_shows_the_array(np, grad):
    a = np.zeros(2, "i4, f8")
    row = a[1]
    row["f1"] = 2.5
    a["f0"][1] = 6
    return a, row.item(), row[0], a.tolist()


@program
def bytes_as_other_numbers(np, grad):
    x = np.arange(4.0)
    bits = x.view("i8")
    bits[1] = bits[2]
    half = x.view("f4")
    return x, bits, half.shape, x.view("u1")[::8], np.array([1 + 2j]).view(float), x.byteswap().view(">f8")


@program
def objects_in_arrays(np, grad):
    a = np.empty(3, object)
    a[0], a[1], a[2] = [1], "two", np.arange(2.0)
    b = a.copy()
    a[0].append(5)
    return [b[0], a[1] * 2, b[2] + 1], a.shape, b[0] is a[0]


@program
def dates_and_durations(np, grad):
    d = np.array(["2020-01-01", "2020-03-01", "NaT"], "M8[D]")
    later = (d + np.timedelta64(1, "D")).astype(str)
    return d[1] - d[0], np.isnat(d), d.astype("M8[M]"), later, np.diff(d[:2]).astype(int)


@program
def texts(np, grad):
    s = np.array(["a", "bcd"])
    t = s.astype("U8")
    t[0] = "longer"
    return t, np.char.upper(s), np.char.add(s, "!"), s.view("U1"), s == "a", s.astype("S")


# ------------------------------------------------------------------ masked arrays and classes of one's own
@program
def masked(np, grad):
    x = np.arange(6.0).reshape(2, 3)
    m = onp.ma.masked_greater(x, 3)
    m[0, 0] = onp.ma.masked
    m += 1
    return m, m.mean(axis=0), m.filled(-1), onp.ma.compressed(m), x, m.sum(), onp.ma.median(m)


@program
def masked_shares_or_copies(np, grad):
    x = np.arange(4.0)
    shared, own = onp.ma.array(x, mask=x > 2, copy=False), onp.ma.array(x, copy=True)
    shared[0] = 40
    own[1] = 50
    return x, shared, own


@program
def a_subclass_with_a_unit(np, grad):
    class Unit(np.ndarray):
        def __new__(cls, values, unit):
            out = np.asarray(values, float).view(cls)
            out.unit = unit
            return out

        def __array_finalize__(self, other):
            self.unit = getattr(other, "unit", None)

    u = Unit([1, 2, 3], "m")
    return (u * 2).unit, u[1:].unit, type(u[1:] + 1).__name__, onp.asarray(u), u.sum() + 0, (u + np.ones(3)).unit


@program
def a_class_that_is_a_masked_array_too(np, grad):
    class Named(np.ndarray):
        pass

    class Both(Named, onp.ma.MaskedArray):
        pass

    m = onp.ma.MaskedArray(np.asarray([1.0, 2, 3]), mask=[0, 1, 0]).view(Both)
    kind = type(m + 1).__name__
    return kind, float(m.sum()), float((m + 1).sum()), m.mean(), m[1] is onp.ma.masked, repr(m), m.shape, m.mask + 0


@program
def matrices(np, grad):
    x = np.arange(4.0).reshape(2, 2)
    m = onp.asmatrix(x)
    m[0, 0] = 10
    return x, onp.asarray(m * m), onp.asarray(m.I @ x), m.shape, onp.asarray(x @ m)


@program
def an_array_interface_of_ones_own(np, grad):
    class Shown:
        def __init__(self, a):
            self.a, self.__array_interface__ = a, a.__array_interface__

    x = np.arange(3.0)
    y = np.asarray(Shown(x))
    y[0] = 5
    return x, y, onp.shares_memory(x, y)


# ------------------------------------------------------------------ other libraries
@program
def pandas_there_and_back(np, grad):
    pd = pytest.importorskip("pandas")
    x = np.arange(6.0).reshape(3, 2)
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame["c"] = np.array([1, 0, 1])
    grouped = frame.groupby("c")["a"].sum()
    series = pd.Series(np.array([1.0, np.nan, 3.0]))
    return frame.to_numpy(), grouped.to_numpy(), series.fillna(0).to_numpy(), frame["a"].rolling(2).mean().to_numpy()


@program
def torch_shares(np, grad):
    torch = pytest.importorskip("torch")
    x = np.arange(4.0)
    t = torch.from_numpy(x)
    t[1] = 9
    x[2] = 8
    y = np.asarray(t.numpy())
    y[3] = 7
    d = np.from_dlpack(t)
    return x, t.tolist(), y, d + 0, torch.as_tensor(x).sum().item(), torch.tensor(x).tolist()


@program
def scipy_there_and_back(np, grad):
    scipy = pytest.importorskip("scipy")
    from scipy import linalg, optimize, signal, sparse

    x = np.array([[4.0, 1], [1, 3]])
    factor = linalg.cho_factor(x)
    s = sparse.csr_matrix(x)
    found = optimize.minimize(lambda v: ((v - x[0]) ** 2).sum(), np.zeros(2), method="BFGS")
    assert scipy.__version__
    return (
        *(linalg.cho_solve(factor, np.ones(2)).round(12), (s @ np.ones(2)), s.toarray(), found.x.round(4)),
        *(signal.lfilter([1.0], [1.0, -0.5], np.ones(4)), linalg.expm(np.zeros((2, 2)))),
    )


@program
def overwriting_lapack(np, grad):
    linalg = pytest.importorskip("scipy.linalg")
    a = np.asfortranarray(np.array([[4.0, 1], [2, 3]]))
    lu, pivots = linalg.lu_factor(a, overwrite_a=True)
    return lu.round(12), pivots, onp.shares_memory(a, lu)


@program
def pictures(np, grad):
    pytest.importorskip("PIL")
    from PIL import Image

    x = (np.arange(48) * 5).astype("u1").reshape(4, 4, 3)
    image = Image.fromarray(x)
    return np.asarray(image.rotate(90)), np.array(image.convert("L")), image.getpixel((1, 1))


# ------------------------------------------------------------------ before, inside and after a gradient
@program
def views_before_and_after(np, grad):
    x = np.zeros(4)
    before = x[1:3]

    def f(p):
        x[:] = p * 2
        before[0] = p[0]
        return (x * p).sum()

    grad(f)(np.arange(4.0))
    after = x[::-1]
    after[0] = 100
    before += 1
    return x, before, after, memoryview(x).tolist(), onp.asarray(before)


@program
def an_exception_inside(np, grad):
    x = np.zeros(3)
    v = x[:2]

    def f(p):
        x[:] = p
        raise KeyError("inside")

    for _ in range(3):
        with contextlib.suppress(KeyError):
            grad(f)(np.arange(3.0))
    x[0] += 10
    return x, v, onp.asarray(x) + 1, memoryview(x).tolist(), pickle.loads(pickle.dumps(x)), x.flags.writeable


@program
def an_exception_in_the_middle_of_a_write(np, grad):
    x = np.zeros(3)

    def f(p):
        x[1:] = p[1:]
        x[5] = p[0]
        return p.sum()

    with contextlib.suppress(IndexError):
        grad(f)(np.arange(3.0))
    return x, bytes(x), x.strides


@program
def a_generator_that_stops_half_way(np, grad):
    x = np.zeros(4)

    def steps(p):
        for i in range(4):
            x[i] = p[i] * 2
            yield x.sum()

    grad(lambda p: next(itertools.islice(steps(p), 1, None)))(np.ones(4))
    return x, onp.asarray(x).tolist(), bytes(memoryview(x))


@program
def a_generator_resumed_after_the_gradient(np, grad):
    x, kept = np.zeros(4), []

    def steps(p):
        for i in range(4):
            x[i] = p[i] * 2
            yield p[i]

    def f(p):
        kept.append(steps(p))
        return next(kept[0]) + next(kept[0])

    grad(f)(np.ones(4))
    rest = [float(e) for e in kept[0]]
    return x, rest


@program
def a_gradient_inside_a_write(np, grad):
    x = np.zeros(3)

    def inner(q):
        x[1] = q.sum()
        return (q * x[1]).sum()

    def outer(p):
        x[0] = p[0]
        grad(inner)(np.arange(2.0))
        x[2] = p[1] * x[1]
        return x.sum()

    grad(outer)(np.array([3.0, 4.0]))
    return x, memoryview(x).tolist()


@program
def callbacks_that_come_back(np, grad):
    x, seen = np.zeros(3), []

    class Asked:
        def __array__(self, dtype=None, copy=None):
            seen.append(1)
            x[0] += 1
            return onp.ones(3)

    def f(p):
        x[1:] = p[1:]
        return (p * Asked()).sum()

    grad(f)(np.arange(3.0))
    return x, len(seen) > 0


@program
def objects_that_write_when_they_die(np, grad):
    x = np.zeros(3)

    class Last:
        def __del__(self):
            x[0] = 42

    def f(p):
        last = Last()
        x[1:] = p[1:]
        del last
        return x[1:].sum()

    grad(f)(np.arange(3.0))
    return x, onp.asarray(x) * 1


@program
def parameters_that_are_updated(np, grad):
    w, buffer = np.ones(3), np.zeros((2, 3))
    for step in range(3):

        def loss(w, step=step):
            buffer[step % 2] = w * step
            return (buffer**2).sum()

        grad(loss)(w)
        w -= 0.1
    return w, buffer, buffer.base is None, onp.asarray(buffer).sum()


@program
def arrays_of_arguments_are_left(np, grad):
    x = onp.arange(3.0)

    def f(p):
        q = p + 0
        q[0] = 5
        return q.sum()

    grad(f)(x)
    return x, x.flags.writeable


@program
def lists_of_arrays_written_in_turn(np, grad):
    rows = [np.zeros(2) for _ in range(3)]
    whole = np.zeros((3, 2))
    views = list(whole)

    def f(p):
        for i, (row, view) in enumerate(zip(rows, views)):
            row[:] = p * i
            view[:] = row
        return sum(r.sum() for r in rows) + whole.sum()

    grad(f)(np.ones(2))
    return rows, whole, views


@program
def closures_in_classes(np, grad):
    class Net:
        def __init__(self):
            self.h, self.log = np.zeros(2), []

        def __call__(self, p):
            self.h *= 0
            self.h += p
            self.log.append(self.h.shape)
            return (self.h * self.h).sum()

    net = Net()
    for _ in range(2):
        grad(net)(np.array([1.0, 2.0]))
    return net.h, net.log, copy.deepcopy(net).h


# ------------------------------------------------------------------ threads
@program
def threads_write_each_their_part(np, grad):
    x = np.zeros((8, 100))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: x[i].__iadd__(i), range(8)))
    return x.sum(axis=1), x[3, :2]


@program
def gradients_in_threads(np, grad):
    def run(k):
        x = np.zeros(3)

        def f(p):
            x[:] = p * k
            return (x * x).sum()

        for _ in range(5):
            grad(f)(np.ones(3))
        return onp.array(x)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(run, range(6)))


@program
def a_thread_reads_while_another_differentiates(np, grad):
    x, other, stop, bad = np.zeros(3), np.arange(4.0), threading.Event(), []

    def reader():
        while not stop.is_set():
            if onp.asarray(other).sum() != 6.0 or memoryview(other)[3] != 3.0:
                bad.append(1)

    t = threading.Thread(target=reader)
    t.start()
    try:
        for _ in range(20):
            grad(lambda p: (x.__setitem__(slice(None), p), x.sum())[1])(np.ones(3))
    finally:
        stop.set()
        t.join()
    return x, bad


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_with_ours_what_it_gives_with_numpys(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        theirs = told(program(onp, called))
        ours = told(program(mnp, minnp.grad))
        once_more = told(program(mnp, minnp.grad))  # what the first left behind changes nothing
    assert ours == theirs
    assert once_more == theirs


class Shown:
    """Something that is no array, and shows one which the program changes."""

    def __init__(self) -> None:
        self.a, self.asked = onp.array([1.0, 2.0, 3.0]), 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> onp.ndarray:
        self.asked += 1
        return self.a


CALLS = {
    "p * s": lambda p, s: p * s,
    "s * p": lambda p, s: s * p,
    "p / s": lambda p, s: p / s,
    "p @ s": lambda p, s: p @ s,
    "p **= s": lambda p, s: operator.ipow(p + 0, s),
    "multiply": lambda p, s: mnp.multiply(p, s),
    "dot": lambda p, s: mnp.dot(p, s),
    "where": lambda p, s: mnp.where(s, p, 2 * p),
    "einsum": lambda p, s: mnp.einsum("i,i", p, s),
    "outer": lambda p, s: mnp.outer(s, p),
}


@pytest.mark.parametrize("how", CALLS)
def test_what_an_operand_shows_later_changes_no_gradient(how):
    p = mnp.array([0.5, 0.6, 0.7])
    want = minnp.grad(lambda p: mnp.sum(CALLS[how](p, Shown().a)))(p)

    def f(p):
        y = CALLS[how](p, s)
        s.a[:] = 100
        return mnp.sum(y)

    s = Shown()
    onp.testing.assert_array_equal(minnp.grad(f)(p), want)
    assert s.asked == 1  # as NumPy asks


def _interface(a: onp.ndarray) -> Any:
    return type("Interface", (), {"__array_interface__": a.__array_interface__, "kept": a})()


def _shown(a: onp.ndarray) -> Shown:
    s = Shown()
    s.a = a
    return s


SHOWS = {"itself": lambda a: a, "__array__": _shown, "memoryview": memoryview, "__array_interface__": _interface}
TAKES = {
    **{
        name: getattr(mnp, name)
        for name in ("asarray", "asanyarray", "ascontiguousarray", "ravel", "atleast_1d", "squeeze")
    },
    "array": lambda a: mnp.array(a, copy=None if onp.__version__ >= "2" else False),
    "frombuffer": lambda a: mnp.frombuffer(memoryview(a) if isinstance(a, Shown) or not hasattr(a, "nbytes") else a),
}


@pytest.mark.parametrize("takes", TAKES)
@pytest.mark.parametrize("shows", SHOWS)
def test_memory_that_the_program_writes_to_as_numpys_changes_no_gradient(shows, takes):
    a = onp.array([1.0, 2.0, 3.0])
    try:
        x = TAKES[takes](SHOWS[shows](a))
    except TypeError:
        pytest.skip("shows no buffer")

    def f(p):
        y = p * x
        a[:] = 100
        return y.sum()

    assert onp.shares_memory(onp.asarray(x), a)
    onp.testing.assert_array_equal(minnp.grad(f)(mnp.ones(3)), [1, 2, 3])


@pytest.mark.parametrize("wrong", [lambda x: onp.ndarray.tobytes(x), lambda x: onp.asarray(x).tobytes()])
def test_bytes_that_numpy_gives_of_a_followed_array_are_no_numbers(wrong):
    """Said in the guide: who asks for no dtype is not stopped."""

    def f(p):
        x = mnp.zeros(3)
        x[:] = p
        assert onp.frombuffer(onp.array([5.0, 6, 7]))[0] not in onp.frombuffer(wrong(x))
        with pytest.raises(TracedValueError):
            x.tobytes()
        return x.sum()

    minnp.grad(f)(mnp.array([5.0, 6.0, 7.0]))
