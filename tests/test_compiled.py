"""The short ways in C give what the Python ones give: values, types, views, identities, exceptions, counts."""

import contextlib
import copy
import gc
import importlib
import inspect
import itertools
import operator
import os
import pickle
import struct
import subprocess
import sys
import types
import warnings
import weakref
import zlib
from importlib.util import find_spec

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.core import compiled
from minnp.core.api import install
from minnp.core.api import operators as in_python
from minnp.core.rows.primitive import TABLE, Meta, Primitive
from minnp.core.rows.state import state
from minnp.core.rows.value import Tracer
from minnp.core.transforms import tape
from minnp.core.transforms.formulas import formula
from minnp.core.transforms.tape import GradTrace

PROGRAM = """
import sys, warnings
import numpy as onp
import minnp, minnp.numpy as np
from minnp.core.api import install
warnings.simplefilter("ignore")

def told(x):
    if isinstance(x, (tuple, list)):
        return type(x).__name__, [told(e) for e in x]
    return type(x).__name__, getattr(x, "dtype", None), getattr(x, "shape", None), repr(x)

x, y, m = np.arange(6.0) + 1, np.arange(6) + 2, np.arange(12.0).reshape(3, 4)
c, o, f = np.array([1 + 2j, 3.0]), np.array([1, "a", None], dtype=object), np.array([1, 2], dtype="f2")
h, s = onp.arange(6.0), onp.float32(2.5)
env = dict(np=np, onp=onp, x=x, y=y, m=m, c=c, o=o, f=f, h=h, s=s, e=np.zeros((0, 3)), z=np.array(3.0),
          t=np.array(["a", "bb"]), i=np.array([2, 0]))
operands = ["x", "y", "m", "c", "f", "h", "s", "2", "2.5", "True", "3j", "z", "e", "None", "'a'", "[1] * 6", "i"]
cases = [f"{a} {op} {b}" for op in "+ - * / // % ** @ & | ^ << >> < <= == != > >=".split()
         for a in operands for b in operands if {a, b} & {"x", "y", "m", "c", "f", "z", "e", "i"}]
cases += [f"t {op} 'bb'" for op in "< == != >=".split()]
cases += [f"{op}{a}" for op in "-+~" for a in "xymcfzei"] + [f"abs({a})" for a in "xymcfzeio"]
indices = ["0", "-1", "7", "1:4", "::-1", "None", "...", "()", "i", "(i, i)", "(0, i)", "(slice(None), 0)",
          "x > 2", "m > 3", "True",
           "[0, 1]", "[[0, 1], [1, 0]]", "[x[0], 1]", "[i, i]", "[True] * 6", "[]",
           "(1, None)", "y[0]", "z", "'a'", "1.5", "(0, 1)", "(..., 1)", "onp.int64(1)", "onp.arange(2)"]
cases += [f"{a}[{i}]" for a in "xmcoze" for i in indices]
cases += [f"np.{f}({a})" for f in ["exp", "sqrt", "sum", "max", "argsort", "sort", "ravel", "asarray", "array",
          "copy", "squeeze",
          "transpose", "cumsum", "unique", "zeros_like", "nonzero", "modf", "atleast_2d", "isnan", "mean"]
          for a in ["x", "y", "m", "c", "f", "h", "s", "2.5", "z", "e", "[1, x[0]]", "[[1, 2], [3, 4]]", "(x, x)",
          "o", "None"]]
cases += [f"{a}.{m}" for a in "xymcze" for m in ["shape", "dtype", "size", "ndim", "T", "nbytes", "sum()",
          "sum(axis=0)", "copy()", "tolist()",
          "max()", "reshape(-1)", "ravel()", "astype('f4')", "argmax(axis=0)", "nonzero()", "item(0)", "mean()",
          "flatten()", "dot(2)"]]
cases += ["np.add(x, y, out=x)", "np.add(x, y, out=(x,))", "np.sum(m, axis=0, out=x[:4])", "np.where(x > 2, x, y)",
          "np.clip(x, 2, y)",
          "np.sum(m, where=m > 2)", "np.add.reduce(m)", "np.add.at(x, i, 1)", "np.dot(m, x[:4])",
          "np.concatenate([x, [1], y])",
          "np.stack([x, y], axis=1)", "np.split(x, 2)", "np.zeros(3, dtype=object)",
          "np.array([x, y], dtype=object)", "np.full(2, x[0])",
          "bool(z)", "bool(x)", "int(z)", "float(z)", "len(x)", "len(z)", "list(m)", "complex(z)",
          "[1, 2, 3][i[0]]", "x.shape.count(6)",
          "setattr(m, 'shape', (4, 3))", "m", "setattr(m, 'shape', (5, 3))", "np.einsum('i,i', x, x)", "h * x",
          "s * x", "onp.add(h, x)",
          "[r for r in m]", "[r.base is m for r in m[1:]]", "next(iter(x[::-1]))", "list(z)", "list(m.flat)",
          "x[iter(i)]", "np.meshgrid(x[:2], y)", "np.linalg.qr(m[:2, :2])", "np.broadcast_arrays(x, m[:, :1])",
          "np.split(x, [2])[0].base is x",
          "np.tile(x, (2, 1))", "np.atleast_2d(*[x, y])[0].base is x", "np.unique(i, return_counts=True)",
          "onp.add(h, x, out=h)", "divmod(x, 2)", "pow(x, 2)", "x.sort()", "x", "x.fill(3)", "x", "x.nope",
          "np.exp()", "np.exp(1, 2, 3)"]
numbers = {t: np.arange(6).astype(t).reshape(2, 3) for t in ["b", "H", "i4", "i8", "u8", "f4", "f8", "?", ">f8", "c8"]}
locked = onp.broadcast_arrays(onp.ones(1), onp.ones(3))[0]
env |= dict(n=numbers, packed=np.zeros(3, dtype="u1, f8")["f1"], locked=locked)
cells = ["1, 2", "0, -1", "-2, onp.int64(1)", "2, 0", "0, -4", "0, 2**70", "True, 1", "0, onp.int8(1)"]
cases += [f"n[{t!r}][{i}]" for t in numbers for i in cells] + ["list(packed)", "packed[1]", "[list(r) for r in n['b']]"]
cases += [f"{left} {op} {a}" for left in ["onp.float64(2)", "onp.int64(2)", "onp.arange(6)"]
          for op in "- * // ** @ & << < ==".split() for a in "xymcfzo"]
writes = [f"{a}[{i}] = {v}" for a in "xmo" for i in indices for v in ["1.5", "x[0]", "z", "h[:1]", "[1]", "(1, 2)",
          "[x[0], x]", "x[:0]", "None", "'a'"]]
writes += [f"n[{t!r}][0, -1] = {v}" for t in numbers
           for v in ["1", "2.5", "True", "300", "2**70", "10**400", "1e300", "onp.float64(7)", "onp.int64(-3)", "s"]]
writes += ["packed[1] = 2.5; x[0] = packed[1]", "np.asarray(locked)[0] = 1.5", "x.flags.writeable = False; x[0] = 1.5"]
writes += [f"x {op}= {v}" for op in "+ - * / // % ** & << @".split() for v in ["2", "x", "y", "c", "h", "s",
          "None", "z"]]
for case in cases:
    try:
        print(case, "->", told(eval(case, env)))
    except Exception as error:
        print(case, "->", type(error).__name__, error)
for case in writes:
    here = {**env, "x": x.copy(), "m": m.copy(), "o": o.copy()}
    view, alias = here["x"][1:3], here["x"]
    try:
        exec(case, here)
    except Exception as error:
        print(case, "->", type(error).__name__, error)
    print(case, "->", told([here["x"], here["m"], here["o"], view]), alias is here["x"], view.base is alias)
    print(told(list(numbers.values())) if "n[" in case else "")
counts = {r["function"]: r["calls"] for r in minnp.report()}
print({k: counts[k] for k in ("exp", "add", "less", "negative", "ndarray.copy")})

from minnp.core.transforms.tape import GradTrace
nodes, start = [], GradTrace.start

def seen(self, value):
    if not nodes or nodes[-1] is not self.nodes:
        nodes.append(self.nodes)
    return start(self, value)

def named(params):  # whether one that is the default is named may differ, too
    return params if type(params) is not dict else {k: v for k, v in params.items() if v is not None and v is not False}

GradTrace.start = seen
big, wide = np.linspace(0.1, 1, 300), np.linspace(0.1, 1, 40).reshape(40, 1)
env |= dict(big=big, wide=wide, t=np.arange(3.0, dtype="f4"), kept=np.ones(6))
programs = [f"v {op} {w}" for op in "+ - * / // % ** @ < ==".split()
            for w in "x y m c s h 2 2.5 3j True z e v big".split()]
programs += [f"{w} {op} v" for op in "+ - * / **".split() for w in "x y c s h 2 2.5 z".split()]
programs += ["-v", "abs(v)", "+v", "np.tanh(v) * v.T", "np.sum(v)", "v.sum() * v", "v.mean() + v.max() * v[0]",
             "np.max(v) * np.prod(v)", "np.maximum(v, 2)", "np.cumsum(v)", "np.add(v, v, dtype='f8')", "np.exp(v, v)",
             "np.modf(v)[0]", "np.isnan(v) * v", "np.argmax(v) * v", "np.floor(v) * v", "kept.__imul__(v) * kept",
             "v + 'a'", "v @ 2", "minnp.grad(lambda w: (w * v * w).sum())(v) * v", "minnp.stop_gradient(v) * v",
             "minnp.vmap(lambda r: r * r[0])(np.stack([v, v])).sum(0)", "np.stack([v, v]).mean(0)",
             "v.sum(axis=0) * np.max(v, axis=-1, keepdims=True)", "v.ravel()[::-1] * v.reshape(-1, 1).T[0]",
             "np.concatenate([v, v], axis=0) * v[:1]", "np.expand_dims(v, 0).squeeze() * v.shape[0]",
             "filled(v)", "np.dot(v.ravel(), v.ravel()) * v.T", "np.dot(v, kept)"]

def filled(v):
    u, k = np.zeros(v.size + 1, v.dtype), v.ravel()[0]
    w, old = u[1:], u[:2]
    u[1:] = v.ravel()
    u[0] = 2
    x = w * u[:-1] * k
    old += x[0]
    return x[:1] * u[2:] + w[0]

env["filled"] = filled
for program in programs:
    for name in ["x", "c", "z", "t", "big", "wide", "f"]:
        nodes.clear()
        env["kept"] = np.ones(6)
        try:
            f = eval(f"lambda v: {program}", {**env, "minnp": minnp})
            g = minnp.grad(lambda v: abs(f(v)).sum())(env[name])
            print(program, name, "->", told(g))
        except Exception as error:
            print(program, name, "->", type(error).__name__, error)
        for tape in nodes:
            print([(str(n[0]), named(n[1]), list(n[2]), *n[5:]) for n in tape if n[0]])  # what is kept may differ

single = ["np.{}(v[0])".format(f) for f in
          "exp log sqrt tanh arcsin abs square reciprocal sign isnan cbrt log1p".split()]
single += ["v[1] {} {}".format(op, w) for op in "+ - * / ** // % < ==".split() for w in
           "v[0] 2 0.3 np.float64(1.5) np.float32(1.5) 0 -1.0 True 1e300 1j (1<<60) x".split()]
single += ["2.5 {} v[0]".format(op) for op in "+ - * / **".split()]
single += ["np.{}(v[0], v[1])".format(f) for f in "maximum arctan2 hypot logaddexp fmod copysign".split()]
single += ["written(v)", "v[:2][1] * v[1:][-1]", "v[(0,)] * v[np.int64(1)]", "sum(x * x for x in v)", "v[0].sum() * v"]

def written(v):
    u = np.zeros((2, 3), v.dtype)
    u[0, 1] = v[0] * 2
    u[1, -1] = 3
    u[1, 1] = np.float64(0.5)
    row = u[1]
    for i in range(2):
        row[0] += v[i] * u[i, 1]
        u[0, i] = u[0, 1] * u[1, i] + u[1][2]
    u[0, :2] += v
    u[:, 1:] *= u[:, :1]
    u[...] -= 0.5
    u[::-1, 0] /= v[1:]
    u[1] += u[0]
    u[None, 0] += x[:3].astype(v.dtype)
    row -= v[0]
    u += row[1]
    w = u * v[1]
    w *= u
    w -= u[:1]
    w += 2
    k = np.ones(3, v.dtype)
    w *= k[:1] * k
    k[0] = 5
    k[1:] = [2, 3]
    w *= k
    k += 1
    return w * row * k

env["written"] = written
warnings.simplefilter("ignore")
for program in single:
    for numbers in [(0.5, 0.7), (-1.5, 0.0), (0.0, np.inf), (np.nan, -2.0), (1e-310, 1e300)]:
        for dtype in ["f8", "f4", "c8"]:
            try:
                f = eval(f"lambda v: {program}", env)
                value = lambda v: abs(f(v) * np.array([1, 0, np.inf], "f4")).sum()
                for order in [f, value] if program != "written(v)" else [f]:
                    nodes.clear()
                    print(program, numbers, dtype, "->", told(minnp.grad(order)(np.array(numbers, dtype))))
                    for tape in nodes:
                        print([(str(n[0]), named(n[1]), list(n[2]), *n[5:]) for n in tape if n[0]])
            except Exception as error:
                print(program, numbers, dtype, "->", type(error).__name__, error)
print("compiled", install.fastpath is not None, file=sys.stderr)
"""


def told(switch):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MINNP_COMPILED": switch},
    )
    return done.stdout.splitlines(), done.stderr.split()


pytestmark = pytest.mark.host("about the short ways to NumPy's kernels")
built = pytest.mark.skipif(find_spec("minnp.core.compiled._fastpath") is None, reason="installed without a C compiler")


@pytest.mark.long
@pytest.mark.either("about the C part")
@built
def test_calls_compiled_and_in_python_give_the_same():
    (ours, yes), (python, no) = told("1"), told("0")
    assert (yes, no) == (["compiled", "True"], ["compiled", "False"])
    assert len(python) > 3000
    ours = [line.replace("'numpy.ndarray' object", "'ndarray' object") for line in ours]  # only C can name the class so
    assert [pair for pair in zip(ours, python, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.either("about the C part")
@pytest.mark.skipif(install.fastpath is None, reason="minnp was installed without a C compiler, or MINNP_COMPILED=0")
def test_the_interpreter_meets_the_compiled_slots():
    assert type(inspect.getattr_static(np.ndarray, "__getitem__")).__module__ == "minnp.core.compiled._fastpath"
    assert type(np.exp.__func__).__module__ == "minnp.core.compiled._fastpath"


def test_functions_and_methods_show_what_they_are():
    assert np.exp.__name__ == "exp" and np.exp.nin == 1 and "exponential" in np.exp.__doc__
    assert inspect.signature(np.sum) == inspect.signature(onp.sum)
    assert pickle.loads(pickle.dumps(np.sum))([1, 2]) == 3
    assert np.ndarray.sum(np.ones(3)) == 3 and np.ones(3).sum.__name__ == "sum"
    assert isinstance(inspect.getattr_static(np.ndarray, "T").__get__(None, np.ndarray), property)


@pytest.mark.either("about the C part")
@pytest.mark.skipif(install.fastpath is None, reason="minnp was installed without a C compiler, or MINNP_COMPILED=0")
def test_functions_take_attributes_and_are_shown_as_numpys():
    np.ptp.note, np.ptp.__doc__ = "kept", "mine"
    assert (np.ptp.note, np.ptp.__doc__, np.ptp.__name__) == ("kept", "mine", "ptp")
    del np.ptp.__doc__
    with pytest.raises(AttributeError, match="__doc__"):  # NumPy's, below it, is no attribute of the function
        del np.ptp.__doc__
    assert repr(np.add) == repr(onp.add) and repr(np.sum) == repr(onp.sum)
    assert isinstance(np.sum, types.MethodType) and copy.deepcopy(np.sum) is np.sum
    owner = type("Owner", (), {"f": np.sum})
    assert owner().f([1, 2]) == owner.f([1, 2]) == 3


def test_a_method_set_later_is_the_one_that_is_called(monkeypatch):
    x = np.ones(2)
    monkeypatch.setattr(np.ndarray, "__neg__", lambda self: "mine")
    assert -x == "mine"


def test_what_watches_still_sees_every_call():
    x = np.array([1.0, 2.0])
    grad = minnp.grad(lambda v: (v[1:] * onp.float64(2) + np.exp(v) + (2.0 * v) ** 2 / v).sum())
    assert onp.allclose(grad(x), onp.array([0, 4]) + onp.exp(x) + 4)
    keep = np.ones(3)

    def writes(v):
        nonlocal keep
        y = v * keep
        keep += 1  # after it was saved
        keep[0] = 5
        keep.fill(7)
        np.add(keep, 1, out=keep)
        return y.sum()

    assert minnp.grad(writes)(np.ones(3)).tolist() == [1, 1, 1] and keep.tolist() == [8, 8, 8]
    assert minnp.jit(lambda v: v + 1 + v[0])(x).tolist() == [3, 4]


def test_no_references_are_lost_or_kept():
    x, y, index = np.ones(4), onp.float64(2), np.array([0, 1])

    def round_():
        a = (x + x) * 2.0 - y
        a[index] = a[1:3]
        a += x
        for f in (operator.add, np.maximum):
            f(a, 1.5)
        list(a)
        np.sum([a, a], axis=0, out=a)
        a.reshape(2, 2).T.sum(axis=0)
        y * a
        with contextlib.suppress(IndexError):
            a[9]
        a == "text"
        minnp.grad(lambda v: (np.tanh(v * x) / y - 2.0 * v).sum())(x)
        with contextlib.suppress(TypeError):  # (NumPy 2.4 itself loses a dtype where shapes do not fit)
            minnp.grad(lambda v: v.sum() * np.bitwise_and(v, 1))(x)
        return a.shape, len(a), float(a[0])

    watched = [x, y, index, onp.asarray(x), np.exp, GradTrace, Tracer, TABLE["multiply"], onp.dtype("f8"), 1.5, None]
    round_()
    gc.collect()  # what other tests left in cycles would die meanwhile
    before = [sys.getrefcount(w) for w in watched[:-2]]
    for _ in range(200):
        round_()
    assert [sys.getrefcount(w) for w in watched[:-2]] == before


def refused(call, *args):
    try:
        call(*args)
    except Exception:
        return
    pytest.fail(f"{call} took {args}")


@pytest.mark.either("about the C part")
@pytest.mark.skipif(install.fastpath is None, reason="minnp was installed without a C compiler, or MINNP_COMPILED=0")
def test_what_the_functions_of_the_c_part_refuse_is_not_kept():
    fast, token, x, dtype = install.fastpath, object(), np.ones(3), onp.dtype("f8,i4")
    sizes = (0, 0, 0, 0, False, False, False)
    an_input, an_output = (0, True, True, 0, dtype), (3, False, False, [(1, token, token)])
    cases = [
        (fast.exchange, onp.ones(2), token),
        (fast.on_host, token),
        (fast.link, x, token),
        (fast.function, token),
        (fast.function, token, token, token, 1, 1, 1, 1),  # it does not say whether it writes
        (fast.set_row, token, token, 0, (), 0),
        (fast.attribute, token, token, True),
        (fast.index_kept, [], 0, token),
        (fast.strong, True),
        (fast.sweep, [], [], token, 0, 0),
        (fast.loop, token, [an_input, an_input[:2]], [], sizes, [], 0),
        (fast.loop, token, [an_input], [an_output, an_output[:2]], sizes, [], 0),
        (fast.loop, token, [an_input], [an_output, (*an_output[:3], [(1, token, token), (1, token)])], sizes, [], 0),
        (fast.loop, token, [], [], sizes, [(0, 1)], 0),
        (fast.loop(token, [], [], sizes, [], 0),),  # of a code that has no address
        (lambda: fast.loop(token, [], [an_output], sizes, [], 0)(donate=token),),
        (fast.plan, token, token, {}, (0, "one"), (), (), 0, ((), ())),
        (fast.plan, token, token, {}, (), (), (), 0, (("one",), ())),
        (fast.Dispatch().remember, [(0, token, (), (), False), (0, token, (1, "one"), (), False)], []),
        (fast.Dispatch().remember, [(0, token, (), (), False), (0, token)], []),
        (delattr, x, "_host"),
    ]
    before = [sys.getrefcount(w) for w in (token, dtype, x)]
    for _ in range(100):
        for case in cases:
            refused(*case)
    assert [sys.getrefcount(w) for w in (token, dtype, x)] == before


def test_what_arrays_refuse_is_not_kept():
    x, m, o, zero, wrong = np.ones(3), np.ones((2, 3)), np.array([None, "a"], dtype=object), np.array(1.0), np.ones(5)
    index, text = np.array([0, 9]), "said nowhere else"  # other holders of a constant come and go
    cases = [
        *[
            (f, a, b)
            for f in (operator.add, operator.iadd, operator.lt, operator.pow)
            for a, b in ((x, wrong), (wrong, m))
        ],
        *[(f, x, text) for f in (operator.add, operator.isub, operator.matmul, operator.lshift, np.maximum)],
        *[(f, x) for f in (float, int, bool, complex, hash, operator.index, operator.invert)],
        *[(f, zero) for f in (len, iter, list, operator.invert)],
        *[(operator.getitem, x, i) for i in (9, text, index, [9], (0, 0), slice(text), 1.5, {})],
        *[
            (operator.setitem, x, i, v)
            for i, v in ((9, 1), (text, 1), (index, 1), (slice(2), wrong), (0, text), (0, m))
        ],
        *[(operator.getitem, x.flat, i) for i in (9, text)],
        *[(operator.setitem, x.flat, i, v) for i, v in ((9, 1), (0, text))],
        *[(operator.delitem, a, 0) for a in (x, x.flat)],
        *[(getattr, x, text), (setattr, x, text, 1), (setattr, x, "shape", (2, 2)), (setattr, x, "dtype", text)],
        (setattr, x, "real", wrong),
        (np.sum, x, 7),
        (np.sum, x, text),
        (lambda: np.add(x, 1, out=wrong[:2]),),
        (lambda: np.add(x, 1, nothing=1),),
        (lambda: np.exp(x, dtype=text),),
        (np.exp,),
        (np.exp, o),
        (np.dot, x, wrong),
        (np.reshape, x, (2, 2)),
        (x.reshape, 7),
        (x.transpose, 3, 4),
        (x.astype, text),
        (np.concatenate, [x, m]),
        (np.concatenate, text),
        (minnp.grad(lambda v: np.dot(v, wrong)), x),
        (minnp.grad(lambda v: v[9]), x),
        (minnp.grad(lambda v: (v * x).sum().nope), x),
        (minnp.grad(lambda v: memoryview(v * x)), x),
        (minnp.jit(lambda v: v + wrong), x),
    ]
    watched = [x, m, o, zero, wrong, index, text]

    def round_():
        for case in cases:
            refused(*case)

    round_()
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(20):
        round_()
    gc.collect()
    assert max(sys.getrefcount(w) - n for w, n in zip(watched, before)) < 20  # once in each round, if any


@pytest.mark.parametrize("params", [{}, {"power": 1}])
def test_rules_may_write_to_what_the_tape_saved(params):
    """The tape then puts another node in the place of the one the walk is at."""
    told, saved = [], np.ones(3)

    def rule(g, y, x, nothing, **params):
        saved[...] = 7.0
        told.append((type(x), nothing, [(i, i, i, i, i, (3,) * 5, i) for i in range(100)]))
        return g * onp.full((3, 3), 2.0)  # of another shape than the node says

    row = Primitive("doubled", lambda x, nothing, **params: x * 2, vjp=[rule, None], saves="")
    for _ in range(20):
        saved[...] = 1.0
        gradient = minnp.grad(lambda x: row(x * saved, None, **params).sum())(np.ones(3))
        onp.testing.assert_array_equal(gradient, [6.0] * 3)
    # (tuples such as those in `told` would take the place of a node that was freed)
    assert {t[:2] for t in told} == {(Meta, None)}


def test_random_draws_are_arrays_of_ours_in_every_form():
    for make in (np.random.default_rng, np.random.RandomState):
        ours, theirs = make(3), getattr(onp.random, make.__name__)(3)
        for name, args, options in [
            ("normal", (), {}),
            ("normal", (0.0, np.ones(2)), {}),
            ("normal", (), {"size": (2, 2)}),
            ("uniform", (0.0, 2.0, 3), {}),
            ("permutation", (5,), {}),
            ("choice", (np.arange(4.0),), {"size": 2}),
            ("multinomial", (5, [0.5, 0.5]), {}),
        ]:
            result = getattr(ours, name)(*args, **options)
            expected = getattr(theirs, name)(*(onp.asarray(a) if type(a) is np.ndarray else a for a in args), **options)
            assert onp.array_equal(onp.asarray(result), expected)
            assert type(result) is (np.ndarray if isinstance(expected, onp.ndarray) else type(expected))
        deck, array = [np.ones(1), 2, "c"], np.arange(5)
        kept = list(deck)
        ours.shuffle(deck)
        assert {id(e) for e in deck} == {id(e) for e in kept}
        view = array[1:]
        ours.shuffle(array)
        assert sorted(array.tolist()) == [0, 1, 2, 3, 4] and view.tolist() == array.tolist()[1:]


@pytest.mark.either("about the C part")
@pytest.mark.skipif(
    install.fastpath is None and sys.version_info < (3, 12), reason="Python 3.11 tells the reason only to the C part"
)
def test_a_refused_buffer_raises_what_numpy_raises():
    for show in (
        lambda xp: memoryview(xp.array(["2020"], dtype="M8[s]")),
        lambda xp: struct.unpack_from("d", xp.arange(6.0)[::2]),
    ):
        with pytest.raises(ValueError) as theirs:
            show(onp)
        with pytest.raises(ValueError) as ours:
            show(np)
        assert str(ours.value) == str(theirs.value)


@pytest.mark.either("about the C part")
@pytest.mark.skipif(
    install.fastpath is None and sys.version_info < (3, 12), reason="Python 3.11 tells the reason only to the C part"
)
def test_the_memory_of_a_traced_array_is_refused_in_words():
    with pytest.raises(minnp.errors.TracedValueError, match="stop_gradient"):
        minnp.grad(lambda x: float(memoryview(x)[0]))(np.ones(3))


def test_handles_that_went_come_again_as_new():
    told: list = []
    for _ in range(200):  # more than are kept, each alive together
        many = [np.ones(2) for _ in range(100)]
        views = [m[1:] for m in many]
        watching = [weakref.ref(m, told.append) for m in many]
        del many
        assert all(w() is not None for w in watching)  # the views hold their roots
        del views
    assert len(told) == 200 * 100

    def deep(x):
        for _ in range(20_000):
            x = x + 1.0
        return x.sum()

    assert minnp.grad(deep)(np.ones(2)).tolist() == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize("link", [lambda last: [last, 1], lambda last: [[last], {1: last}]], ids=["arrays", "lists"])
def test_a_chain_of_object_arrays_of_any_length_goes(link):
    class End:
        pass

    # without the C part the interpreter goes along the chain: 3.13 overflows the stack from some 4,000 links, with
    # NumPy's own arrays too
    n = 50_000 if install.fastpath is not None or sys.version_info < (3, 13) else 1_000
    chain = End()
    end = weakref.ref(chain)
    for _ in range(n):
        made = np.empty(2, dtype=object)
        made[0], made[1] = link(chain)
        chain = made
    del chain, made
    assert end() is None


def test_functions_of_ours_are_pickled_by_name():
    for f in (np.asarray, np.sort, np.clip, np.linalg.pinv, np.exp):
        assert pickle.loads(pickle.dumps(f))(np.eye(2), *([0, 1] if f is np.clip else [])).shape == (2, 2)
    assert copy.copy(np.sort) is np.sort


MODULES = sys.version_info >= (3, 15)  # the last message then has the module, which is minnp's


@pytest.mark.either("about the C part")
@pytest.mark.skipif(install.fastpath is None, reason="minnp was installed without a C compiler, or MINNP_COMPILED=0")
@pytest.mark.parametrize("call", ["x.nope", "x()", "hash(x)", "setattr(x, 'y', 1)", "'%d' % x"][: 5 - MODULES])
def test_the_interpreter_names_the_class_in_messages_as_numpys(call):
    messages = []
    for x in (np.arange(3), onp.arange(3)):
        with pytest.raises((AttributeError, TypeError)) as caught:
            eval(call, {"x": x})
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]


def test_names_that_numpy_deprecates_warn():
    for name in ("alltrue", "cumproduct", "product", "round_", "sometrue"):
        if name in vars(onp):
            with pytest.warns(DeprecationWarning, match=name):
                getattr(np, name)(np.array([[1, 2], [3, 4]]))


def test_a_library_of_other_code_is_known(tmp_path):
    library = types.ModuleType("_fastpath")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not compiled.stale(library, str(empty))  # an installed package holds no source
    (tmp_path / "a.h").write_text("int x;")
    (tmp_path / "b.c").write_text("int y;")
    assert compiled.stale(library, str(tmp_path))
    library.SOURCE = zlib.crc32(b"int x;int y;")
    assert not compiled.stale(library, str(tmp_path))


LITTLE = [operator.add, operator.sub, operator.mul, operator.truediv, operator.iadd, operator.isub, operator.imul]
LITTLE += [operator.itruediv, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
LITTLE += [operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor]
LITTLE += [lambda a, b: -a, lambda a, b: abs(a), lambda a, b: ~a]
RARE = [0.0, -0.0, onp.inf, -onp.inf, onp.nan, 1e308, 5e-324, 3e38, 1e-45, 2.0**63]
NUMBERS = [0, 2, -3, 0.5, -0.0, 0.1, 1e300, 1e-300, True, 10**20, 2**40, 1j, float("nan"), onp.float64(0.3)]
NUMBERS += [onp.float32(0.3), onp.int64(5), onp.int32(7), onp.array(2.0), onp.array(3)]


@pytest.mark.filterwarnings("always")
def test_little_arrays_have_numpys_bits_dtypes_and_warnings():
    """small_arrays.hpp calls the loops of ufuncs itself."""
    rng = onp.random.default_rng(0)

    def draw(shape):
        a = rng.standard_normal(shape) * rng.choice([1, 9])
        a[rng.random(a.shape) < 0.1 * rng.integers(0, 2)] = rng.choice(RARE)
        with onp.errstate(all="ignore"):
            a = a.astype(rng.choice(["f8", "f4", "i8", "?", ">f8", "i4"], p=[0.35, 0.25, 0.2, 0.1, 0.05, 0.05]))
        strided = rng.integers(0, 4) == 0
        return a.repeat(2, axis=-1)[..., ::2] if strided else a[::-1] if rng.integers(0, 4) == 0 else a

    def outcome(np, op, a, b, mode):
        a, b = (np.asarray(x) if isinstance(x, onp.ndarray) and x.ndim else x for x in (a, b))
        with warnings.catch_warnings(record=True) as caught, onp.errstate(all=mode):
            warnings.simplefilter("always")
            try:
                out = op(a, b)
            except (TypeError, ValueError, FloatingPointError, OverflowError) as error:
                return type(error)
        bits = onp.asarray(out)
        same = repr(bits.tolist()) if bits.dtype == object else bits.tobytes()
        return bits.dtype, bits.shape, same, onp.asarray(a).tobytes(), {str(w.message) for w in caught}

    for _ in range(2000):
        shape = [(0,), (1,), (3,), (6,), (2, 3), (16, 16), (257,), (3, 1001)][rng.integers(8)]
        a, b = draw(shape), draw(shape) if rng.integers(2) else NUMBERS[rng.integers(len(NUMBERS))]
        op, mode = LITTLE[rng.integers(len(LITTLE))], ["warn", "ignore", "raise"][rng.integers(3)]
        if rng.integers(4) == 0:
            a, b = b, a
        copies = [x.copy(order="K") if isinstance(x, onp.ndarray) else x for x in (a, b)]
        theirs, ours = outcome(onp, op, *copies, mode), outcome(np, op, a, b, mode)
        assert ours == theirs, (op, a, b, mode)


@pytest.mark.parametrize("compiled", [True, False])
def test_an_element_of_objects_is_the_array_and_a_part_takes_its_elements(compiled):
    """Which the form of the index tells: the array itself, given to NumPy, was taken for a buffer of unknown items."""

    def written(np):
        one, two, h = np.empty(3, dtype=object), np.empty((2, 3), dtype=object), np.arange(3)
        write = operator.setitem if np is onp or compiled else in_python._setitem
        for x, index, value in [
            *((one, 0, h), (one, slice(1, None), h[1:]), (two, 0, h), (two, 1, np.array([1.5, 2, 3]))),
            *((two, (slice(None), 1), np.array([7, 8])), (two, (1, 2), h), (two, (..., 0), np.array(4))),
        ]:
            write(x, index, value)
        return repr(one), repr(two), [type(x).__name__ for x in [*one.tolist(), *two.ravel().tolist()]]

    assert written(np) == written(onp)


STARVED = """
import operator, os, _testcapi
import minnp.numpy as np
compiled = os.environ["MINNP_COMPILED"] == "1"
x, y = np.arange(6.0), np.ones((2, 3))  # of what NumPy itself raises MemoryError for: not reductions, nor masks
forms = (
    lambda: operator.getitem(x, 1), lambda: operator.getitem(y, (0, 1)), lambda: operator.add(x, 1),
    lambda: x[1], lambda: x[1:], lambda: y[0], lambda: y[0, 1], lambda: x + 1, lambda: x * x, lambda: -x,
    lambda: x < 2, lambda: x @ x, lambda: list(x), lambda: list(y), lambda: y.T, lambda: y.shape, lambda: x.copy(),
    lambda: np.exp(x), lambda: np.add(x, 1), lambda: np.concatenate((x, x)), lambda: np.split(x, 2),
    lambda: float(x[0]),
    lambda: np.ones(3), lambda: x.reshape(2, 3), lambda: len(x), lambda: 2.0 * x, lambda: x.__iadd__(0),
    lambda: x.__setitem__(0, 0.0), lambda: bool(x[0]), lambda: x.dtype,
    lambda: np.reshape(x, (3, 2)), lambda: np.ravel(x), lambda: np.asarray([x, x]),
    lambda: x.flat[1], lambda: x.T,
)
for f in forms:
    for _ in range(3):
        expected = repr(f())
starved = 0
for i, f in enumerate(forms):
    expected = repr(f())
    for k in range(1, 40):
        out = failure = None
        try:
            _testcapi.set_nomemory(k, k + 1)
            out = f()
        except MemoryError:
            starved += 1
            continue
        except SystemError as error:
            # NumPy's own fault, operator.matmul(*[a, a]) has it; and the interpreter's: no Python function can do that
            if not compiled and str(error).startswith(("<ufunc 'matmul'>", "<function ")):
                continue
            failure = error
        finally:
            _testcapi.remove_mem_hooks()
        assert failure is None, (i, k, failure)
        assert repr(out) == expected, (i, k, out)
assert starved > len(forms)
print("all")
"""


def test_without_memory_a_call_raises_or_gives_its_result():
    pytest.importorskip("_testcapi", reason="this interpreter cannot fail an allocation")
    if onp.lib.NumpyVersion(onp.__version__) < "2.0.0":
        pytest.skip("NumPy 1 itself ends the process where an allocation fails")
    if (3, 12) <= sys.version_info < (3, 14):
        pytest.skip(
            "CPython itself ends there (seen in 3.12.1 and 3.13.0): in code that it runs without any C part of ours"
        )
    for switch in "10":
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", STARVED],
            capture_output=True,
            text=True,
            env={**os.environ, "MINNP_COMPILED": switch},
        )
        assert done.returncode == 0 and done.stdout == "all\n", done.stderr[-2000:]


def _stepped_back(tracers, y, g, monkeypatch, sweep):
    """Cotangents (NaN of one form) and warnings, or the exception, of the walk backwards from y."""
    monkeypatch.setattr(tape, "sweep", sweep)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            gs = y.trace.backward([(y.node, g)], len(tracers))
            out = [None if a is None else (a.dtype, a.shape, onp.where(a == a, a, onp.nan).tobytes()) for a in gs]
        except Exception as error:
            out = repr(error)
    return out, sorted(str(w.message) for w in said)


@pytest.mark.either("about the C part")
@pytest.mark.skipif(not compiled.fastpath, reason="the C part was not built")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_formulas_of_rules_give_what_the_rules_give(dtype, monkeypatch):
    values = onp.array([0.0, -0.0, 1.5, -2, onp.inf, -onp.inf, onp.nan, 1e-30, 3e38, 0.25, 1, 0.7])
    g = onp.array([1.0, 0, -2, 0, 0, 3, 0, 1, 2, 0, 0.5, onp.nan]).astype(dtype)
    in_c, walked = tape.sweep, 0
    rows = [row for name, row in TABLE.items() if row.elementwise and not name.startswith("scipy")]
    for row, numbers in [(r, n) for r in rows for n in itertools.product((None, 2.5, 3), repeat=len(r.vjp))]:
        for tame in (False, True):
            draw = onp.random.default_rng(walked)
            arrays = [draw.uniform(0.3, 0.9, 12) if tame else draw.permutation(values) for _ in numbers]
            trace = GradTrace()
            given = [trace.start(a.astype(dtype)) if n is None else n for a, n in zip(arrays, numbers, strict=True)]
            tracers = [t for t in given if type(t) is Tracer]
            if not tracers:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = row(*given)
            if type(y) is Tracer:
                told = [_stepped_back(tracers, y, g.astype(y.dtype), monkeypatch, way) for way in (in_c, None)]
                assert told[0] == told[1], (row, numbers, tame)
                walked += 1
    formulas = sum(f is not None for row in rows for known in row.formulas.values() for f in known.values())
    assert walked > 300 and formulas > 80


def test_what_a_formula_cannot_say_has_none():
    scale = 2.0
    user = Primitive("scaled", lambda x: 2 * x, vjp=[lambda g, y, x: g * scale], jvp="elementwise")
    for row in (user, TABLE["power"]):
        formula(row, row.vjp[0], 0)
        assert row.formulas[row.vjp[0]][0] is None
    product = TABLE["multiply"]
    formula(product, product.vjp[0], 4)  # the second argument is a number
    assert product.formulas[product.vjp[0]][4] == ((), ((TABLE["npx.strong_multiply"].numpy, 0, 3),), 4)


def test_every_elementwise_rule_may_be_asked_for_its_formula():
    if find_spec("scipy"):
        importlib.import_module("minnp.scipy.special")
    for row in [row for row in TABLE.values() if row.elementwise]:
        for rule, key in itertools.product(row.vjp, range(2 << len(row.vjp))):
            formula(row, rule, key)


@pytest.mark.skipif(not compiled.fastpath, reason="the C part was not built")
def test_a_policy_of_numpy_alone_leaves_small_calls_to_c():
    x, called = np.ones(4), []

    def calls() -> list[str]:
        called.clear()
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
        try:
            y = x + np.exp(x)
            y += x[1]
            y[2] = 3.0
            _ = y < 2, y.T, np.zeros(3), float(y[0]), onp.sin(x)
        finally:
            sys.setprofile(None)
        return list(called)

    before = [getattr(state, name) for name in ("busy", "on_host")]
    calls()  # some things are done once
    assert calls() == []
    for name in ("only_numpy", "auto"):
        with minnp.policy(name), minnp.policy("only_numpy"):
            assert calls() == []
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
                x / 0.0
            assert calls() == []
            assert minnp.grad(lambda x: np.sum(x * x))(x).tolist() == [2.0] * 4
    assert [getattr(state, name) for name in ("busy", "on_host")] == before
