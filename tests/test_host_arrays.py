"""Host arrays are NumPy's own arrays: a stranger's NumPy code gives with them what it gives with NumPy's; and under
transformations what was written with traced values never leaves as a wrong number."""

import contextlib
import copy
import gc
import io
import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as onp
import pytest

import minnp.numpy as mnp
from minnp import grad, jit

pytestmark = pytest.mark.host("NumPy's own functions on arrays in NumPy's memory")


def described(value):
    """What two libraries must agree on; the class of host arrays counts as numpy.ndarray."""
    if isinstance(value, onp.ndarray) and not isinstance(value, onp.ma.MaskedArray):
        name = "ndarray" if type(value) in (onp.ndarray, mnp.ndarray) else type(value).__name__
        shown = [described(e) for e in value.ravel().tolist()] if value.dtype == object else repr(value.tolist())
        plain = onp.asarray(value)
        assert (plain.shape, plain.strides, plain.dtype) == (value.shape, value.strides, value.dtype)
        assert plain.flags.writeable == value.flags.writeable
        f = value.flags
        return name, str(value.dtype), value.shape, value.strides, f.c_contiguous, f.f_contiguous, f.writeable, shown
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(described, value)]
    return type(value).__name__, repr(value)


def outcome(program, np):
    x = np.arange(6.0).reshape(2, 3).copy()
    names = {"np": np, "N": onp, "x": x, "copy": copy, "pickle": pickle, "Named": Named, "io": io}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's deprecations of setting strides and the like
        try:
            exec(program, names)
        except AssertionError:
            raise
        except Exception as error:
            return type(error).__name__
        return described([names.get("r"), names["x"]])


class Named(onp.ndarray):
    def __new__(cls, a, label=None):
        out = onp.asarray(a).view(cls)
        out.label = label
        return out

    def __array_finalize__(self, other):
        self.label = getattr(other, "label", None)


PROGRAMS = """
r = N.add(x, x, out=x)
r = N.ndarray.sum(x)
r = N.ndarray.copy(x)
r = N.ndarray.view(x)
r = N.ndarray.view(x, "i8")
r = N.ndarray.T.__get__(x)
r = N.ndarray.transpose(x)
r = N.ndarray.swapaxes(x, 0, 1)
r = N.ndarray.transpose(x)[2, 1], N.ndarray.transpose(x) * 1
r = N.ndarray.diagonal(x)
r = N.ndarray.reshape(x, 3, 2)
r = N.ndarray.__getitem__(x, (slice(None), 1))
r = N.ndarray.__iadd__(x, 1)
r = N.ndarray.sort(x)
r = N.ndarray.__array__(x)
r = N.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))
r = N.lib.stride_tricks.as_strided(x, (2, 2), (8, 8), subok=True)
r = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
r = N.frombuffer(x)
r = memoryview(x[:, ::2]).tolist(), memoryview(x).format, memoryview(x).readonly
r = x.__array_interface__["data"][0] == x.ctypes.data
r = [v.copy() for v in N.nditer(x)]
r = N.nditer(x, op_flags=["readwrite"]).operands[0]
r = N.copyto(x, 7, where=[True, False, True])
r = N.add.at(x, (0, [0, 0]), 1)
r = N.asmatrix(x) * N.asmatrix(x).T, x @ N.matrix(x).T
r = (x + N.ma.array(x, mask=x > 2)).filled(-1)
r = N.char.upper(np.array(["a", "b"]))
r = N.linalg.svd(x)
r = N.random.default_rng(0).shuffle(x)
r = N.random.default_rng(0).standard_normal(out=x)
r = [pickle.loads(pickle.dumps(x[:, ::2], p)) for p in range(6)], pickle.loads(pickle.dumps(x.T))
r = copy.copy(x.T), copy.deepcopy(x[:, ::2]), copy.deepcopy([x, x])
x.shape = 3, 2; r = N.asarray(x), N.ndarray.__add__(x, 0), memoryview(x).shape
x.shape = 4, 2
x.dtype = "i8"; r = N.asarray(x), memoryview(x).tolist(), N.sum(x)
x.dtype = "i4"
x.dtype = [("a", "f8"), ("b", "f8"), ("c", "f8")]; x["b"] = 5; r = N.asarray(x)["a"]
x.strides = 8, 8; r = N.asarray(x)
x = x.astype(complex); x.real = 5; x.imag = [1, 2, 3]; r = N.asarray(x)
x.resize((3, 4), refcheck=False); r = N.asarray(x), N.ndarray.sum(x)
x = np.arange(6.0); x.resize(8, refcheck=False); x[7] = 9; r = N.asarray(x)
x = np.arange(6.0); y = x[1:]; x.resize(8)
x = np.arange(6.0); y = memoryview(x); x.resize(8)
x = np.arange(6.0); y = N.asarray(x); x.resize(8)
x.setflags(write=False); x[0] = 1
x.setflags(write=False); r = memoryview(x).readonly
x.setflags(write=False); memoryview(x).cast("B")[0] = 1
x.setflags(write=False); N.asarray(x)[0] = 1
x.setflags(write=False); N.ndarray.__setitem__(x, 0, 1)
x.setflags(write=False); N.ndarray.view(x)[0] = 1
x.setflags(write=False); N.random.default_rng(0).random(out=x)
x.setflags(write=False); io.BytesIO(bytes(48)).readinto(x)
x.setflags(write=False); N.nditer(x, op_flags=["readwrite"])
x.setflags(write=False); N.add(x, 1, out=x)
x.setflags(write=False); r = x[0], x.T, copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))
p = N.zeros((2, 3)); p[...] = x; p += x; p[x > 2] = x[x > 2]; r = N.multiply(p, x, out=p)
s = Named(x, "a"); r = s.label, s[0].label, (s + x).label, (x + s).label, type(x + s).__name__
s = x.view(Named); s.label = "a"; s += x; x += s; r = s, s.label
a = np.empty(3, object); a[0] = x; a[1] = [x]; r = a[0] is x, a[1][0] is x, a.tolist()[0] is x
a = np.empty(2, object); a[:] = [x, x]; r = a + a, a.sum(), N.add.reduce(a), copy.deepcopy(a), a[1] is x
a = np.zeros(3, [("u", "f8"), ("v", "i4", (2,))]); v = a["u"]; v[:] = [1, 2, 3]; a["v"][1] = 5; r = a, v, a[0]
a = np.zeros(2, [("u", "f8")]); w = a[1]; w["u"] = 9; r = a, N.lib.recfunctions.structured_to_unstructured(a)
a = np.zeros(3, [("u", "f8")]).view(np.recarray); a.u = 5; a.u[1] = 7; r = a, a.u
r = N.save(b := io.BytesIO(), x.T), b.getvalue()
"""


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_numpys_code_finds_numpys_arrays(program):

    assert outcome(program, mnp) == outcome(program, onp)


@pytest.mark.parametrize("change", ["x.shape = 3, 2", "x.dtype = 'i8'", "x.resize(9, refcheck=False)"])
def test_changing_an_array_drops_what_it_held(change):
    dtype = onp.dtype("f8")
    before = sys.getrefcount(dtype)
    for _ in range(500):
        exec(change, {"x": mnp.zeros(6 if "9" in change else (2, 3), dtype)})
    gc.collect()
    assert sys.getrefcount(dtype) < before + 20


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_of_a_traced_value_drops_what_it_held(fails):
    dtype = onp.dtype("f8")  # which NumPy 2.4 loses where it is not given

    def f(p):
        out = mnp.zeros(3, dtype)
        out[0] = p
        if fails:
            raise KeyError
        return out.sum()

    before = sys.getrefcount(dtype)
    for _ in range(300):
        with contextlib.suppress(KeyError):
            grad(f)(2.0)
    gc.collect()
    assert sys.getrefcount(dtype) < before + 20


# What shows the memory of `out`, taken before the traced write and read after it; and out itself, read by NumPy's code.
BEFORE = """
N.ndarray.view(out)
N.ndarray.__getitem__(out, slice(None))
out.view(N.ndarray)
out[:]
out.flat
np.frombuffer(out)
np.ndarray((4,), "f8", out)
out.reshape(2, 2)
"""
AFTER = """
N.ndarray.sum(out)
N.ndarray.view(out).sum()
N.ndarray.T.__get__(out).sum()
N.ndarray.transpose(out.reshape(2, 2)).sum()
N.lib.stride_tricks.as_strided(out, (2,), (16,)).sum()
N.frombuffer(out.tobytes()).sum()
N.frombuffer(out).sum()
N.add.reduce(out)
N.add(out, out, out=out).sum()
N.copyto(plain, out) or plain.sum()
plain.__setitem__(Ellipsis, out) or plain.sum()
plain.__iadd__(out).sum()
sum(float(v) for v in N.nditer(out))
sum(memoryview(out))
math.fsum(out)
float(out[1])
math.sqrt(out[1]) ** 2
sorted(out)[0]
statistics.fmean(out)
pickle.loads(pickle.dumps(out)).sum()
copy.deepcopy(out).sum()
N.ndarray.copy(out).sum()
N.ndarray.sort(out) or out.sum()
N.ndarray.fill(out, 2) or out.sum()
N.ma.array(out).sum()
N.matrix(out).sum()
out.view("i8").view("f8").sum()
out.tolist()[0]
"""


def _isolated(program):
    """Runs it in a process of its own: what it finds may be a crash."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


TRANSFORMED = """
import copy, math, pickle, statistics, sys, warnings
import numpy as N, minnp, minnp.numpy as np
from minnp import grad, jvp, jit, checkpoint, value_and_grad
warnings.simplefilter("ignore")
programs = {programs!r}
ways = dict(grad=grad, jvp=lambda f: lambda p: jvp(f, (p,), (1.0,))[1], gradjit=lambda f: grad(jit(f)),
            checkpoint=lambda f: grad(checkpoint(f)), second=lambda f: grad(lambda p: grad(lambda q: q * f(p))(p)))
wrong = []
def body(p, program, before):
    plain, out = N.zeros(4), np.zeros(4)
    names = dict(globals(), out=out, plain=plain)
    if before:
        seen = eval(program, names)
        out[:] = p
        return sum(v if isinstance(seen, np.ndarray) or not hasattr(v, "item") else v.item() for v in
                   (seen.ravel() if hasattr(seen, "ravel") else seen))
    out[:] = p
    return eval(program, names)
for program in programs:
    step = 1e-6
    plainly = []
    for p in (0.7 - step, 0.7 + step):
        plainly.append(float(body(p, program, {before})))
    want = (plainly[1] - plainly[0]) / (2 * step)
    for name, way in ways.items():
        try:
            got = float(way(lambda p: body(p, program, {before}))(0.7))
        except (minnp.errors.MinnpError, TypeError, ValueError, AttributeError, NotImplementedError, SystemError):
            continue
        if abs(got - want) > 1e-4:
            wrong.append((name, program, got, want))
assert not wrong, wrong
"""


@pytest.mark.long
@pytest.mark.parametrize("program", BEFORE.strip().splitlines())
def test_a_view_taken_before_a_traced_write_loses_no_gradient(program):
    _isolated(TRANSFORMED.format(programs=[program], before=True))


def test_numpys_code_on_a_written_array_loses_no_gradient():
    _isolated(TRANSFORMED.format(programs=AFTER.strip().splitlines(), before=False))


AFTERWARDS = """
import copy, pickle
import numpy as N, minnp, minnp.numpy as np
from minnp import grad, jvp, checkpoint
class Stop(Exception): pass
kept = {{}}
outer = np.zeros((2, 2)) if {outer} else None
def f(p):
    out = np.zeros((2, 2)) if outer is None else outer
    kept.update(before=out.T, plain=N.asarray(out), memory=memoryview(out), numpys=N.ndarray.view(out))
    out[0] = p
    kept.update(between=out[:1])
    out[1] = 2 * p
    kept.update(after=out[1], out=out)
    if {fails}: raise Stop
    return (out**2).sum()
try: {way}
except Stop: pass
want = N.array([[3.0, 3.0], [6.0, 6.0]])
for name, expected in dict(out=want, before=want.T, plain=want, numpys=want, between=want[:1], after=want[1]).items():
    x = kept[name]
    for read in (N.asarray, np.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x + 0, N.array):
        got = read(x)
        assert N.array_equal(N.asarray(got, float), expected), (name, got)
assert kept["memory"].tolist() == want.tolist() and kept["memory"].format == "d"
kept["out"][0, 0] = 9.0
assert all(N.asarray(kept[k]).ravel()[0] == 9.0 for k in ("before", "plain", "numpys", "between")), kept
"""
WAYS = ["grad(f)(3.0)", "jvp(f, (3.0,), (1.0,))", "grad(grad(f))(3.0)", "grad(checkpoint(f))(3.0)"]


@pytest.mark.long
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_written_arrays_show_their_numbers_afterwards(way, outer, fails):
    _isolated(AFTERWARDS.format(way=way, outer=outer, fails=fails))


def test_jit_writes_into_the_memory_of_its_argument():
    x = mnp.zeros(3)
    plain, view, memory = onp.asarray(x), x[1:], memoryview(x)

    @jit
    def f(x, p):
        x += p
        x[0] = 9

    for _ in range(4):
        f(x, 1.0)
    assert x.tolist() == plain.tolist() == memory.tolist() == [9, 4, 4]
    assert view.tolist() == [4, 4]


LATE_VIEWS = """
import numpy as N, minnp.numpy as np
from minnp import errors, grad
kept = []
def f(p, view, read):
    out = np.zeros((2, 3))
    out[0] = p
    kept.append(view(out))
    return read(kept[-1]) + out.sum()
for view in (N.ndarray.view, N.ndarray.transpose, N.ndarray.T.__get__, N.asarray):
    for read in (lambda v: v.sum(), lambda v: v[0, 1], repr):
        try:
            grad(f)(2.0, view, read)
            raise SystemExit((view, read))
        except errors.TracedValueError:
            pass
for v in kept:  # of what the array showed then, which stays
    try:
        float(v[0, 0])
        raise SystemExit(v.shape)
    except errors.TracedValueError:
        pass
"""


def test_a_view_that_numpy_takes_of_a_written_array_never_gives_a_number():
    _isolated(LATE_VIEWS)
