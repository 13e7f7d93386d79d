"""Classes that a program derives from np.ndarray do what the same text does with NumPy's ndarray.

Each class is made twice, of NumPy's ndarray and of ours, and each expression evaluated with both: results are told by
their class, dtype, shape, text and the attribute `info` that NumPy's hooks hand on, exceptions by class and message.
"""

import copy
import gc
import io
import pickle
import sys
import types
import warnings
import weakref

import numpy as onp
import pytest

import minnp
import minnp.numpy as np

CLASSES = """
class Made(np.ndarray):
    def __new__(cls, shape, dtype=float, buffer=None, offset=0, strides=None, order=None, info=None):
        new = super().__new__(cls, shape, dtype, buffer, offset, strides, order)
        new.info = info
        return new

    def __array_finalize__(self, obj):
        if obj is not None:
            self.info = getattr(obj, "info", "unknown")

class Cast(np.ndarray):
    def __new__(cls, given, info=None):
        new = np.asarray(given).view(cls)
        new.info = info
        return new

    def __array_finalize__(self, obj):
        self.info = getattr(obj, "info", "unknown")

class Logged(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = lambda x: x.view(np.ndarray) if isinstance(x, Logged) else x
        if out is not None:
            options["out"] = tuple(map(plain, out))
        results = super().__array_ufunc__(ufunc, method, *map(plain, inputs), **options)
        if results is NotImplemented or results is None:
            return results
        made = [r if o is None else o for r, o in zip([results] if ufunc.nout == 1 else results, out or [None] * 9)]
        made = [np.asarray(m).view(Logged) if out is None else m for m in made]
        made[0].info = method, [i for i, x in enumerate(inputs) if isinstance(x, Logged)]
        return made[0] if ufunc.nout == 1 else tuple(made)

class Functions(np.ndarray):
    def __array_function__(self, function, types, args, options):
        return function.__name__, super().__array_function__(function, types, args, options)

class Wrapped(np.ndarray):
    __array_priority__ = 10

    def __array_finalize__(self, obj):
        self.info = getattr(obj, "info", "unknown")

    def __array_wrap__(self, made, context=None, *scalar):
        made = super().__array_wrap__(made, context, *scalar)
        return made if not isinstance(made, Wrapped) else made.view(Wrapped)

class Own(np.ndarray):
    def __add__(self, other):
        return np.ndarray.__add__(self, other) * 2

    def __getitem__(self, index):
        return np.ndarray.__getitem__(self, index)

    def __setitem__(self, index, value):
        np.ndarray.__setitem__(self, index, value)

    def __reduce__(self):
        make, args, state = np.ndarray.__reduce__(self)
        return make, args, (state, "more")

    def __setstate__(self, state):
        np.ndarray.__setstate__(self, state[0])
        self.info = state[1]

    def __repr__(self):
        return "mine " + super().__repr__()

    def sum(self, *args, **options):
        return super().sum(*args, **options) + 1

class Below(Own):
    __slots__ = ("info",)

class Mixed(onp.lib.mixins.NDArrayOperatorsMixin, np.ndarray):
    pass
"""
NAMES = ["Made", "Cast", "Logged", "Functions", "Wrapped", "Own", "Below", "Mixed"]


def classes(np):
    module = types.ModuleType(f"classes_of_{np.__name__.replace('.', '_')}")
    module.np, module.onp, module.__file__ = np, onp, __file__
    sys.modules[module.__name__] = module
    exec(CLASSES, vars(module))
    return module


OURS, THEIRS = classes(np), classes(onp)

EXPRESSIONS = """
x + y; y + x; x + 1; 2.0 - x; x + h; h * x; -x; x**2; 2**x; x @ y.T; x < 3; x == y; x + x; divmod(x, 2); abs(x)
x - [1, 2, 3]; x[1:]; x[0, 1]; x[0]; x[[0]]; x[x > 2]; x[np.asarray(y > 3)]; x[...]; x[None]; list(x); [*x.flat][:2]
x[h > 0].sum(); np.exp(x); onp.exp(x); np.sum(x); x.sum(); x.sum(axis=0); np.sum(x, axis=1, keepdims=True); np.mean(x)
x.std(); np.modf(x); np.add(x, 1, out=x); np.add(y, 1, out=x); np.add(x, 1, out=y); np.maximum(x, 2); x.cumsum()
np.add.reduce(x); np.multiply.outer(x[0], [1, 2]); np.add.accumulate(x); np.isfinite(x).all(); np.add.at(x, 0, 1); x
x.T; x.reshape(3, 2); np.reshape(x, -1); x.ravel(); x.view(); x.view(np.ndarray); x.view("i8"); x.copy(); np.copy(x)
np.array(x); np.array(x, subok=True); np.asarray(x); np.asanyarray(x); np.asanyarray(x) is x; x.astype("f4")
x[:1].squeeze(); copy.copy(x); copy.deepcopy(x); pickle.loads(pickle.dumps(x)); pickle.loads(pickle.dumps(x, 5))
weakref.ref(x)() is x; len(x); 2.0 in x; bool(x); float(x[0, :1].reshape(())); complex(x[0, 0]); hash(x); str(x)
f"{x[0, 0]:.2f}"; x.tolist(); x.item(3); x.shape; x.dtype; x.size; x.ndim; x.strides; x.nbytes; x.flags.writeable
x.real; x.imag; type(x[1:].base).__name__; x.data.shape; sorted(x.__array_interface__); x.ctypes.shape[:]
x.tobytes()[:8]; x.__array__(); bytes(memoryview(x.view(np.ndarray)))[:4]; np.concatenate([x, y]); np.stack([x, x])
np.where(x > 2, x, y); np.clip(x, 1, 2); np.dot(x, y.T); np.zeros_like(x); np.tile(x, 2); np.sort(x); np.argsort(x)
np.linalg.norm(x); np.linalg.svd(x); np.fft.fft(x); np.median(x); np.einsum("ij->i", x); np.expand_dims(x, 0)
np.broadcast_to(x, (2, 3, 2)); np.resize(x, (2, 2)); np.apply_along_axis(lambda r: r.sum(), 0, x); x.swapaxes(0, 1)
x.diagonal(); x.nonzero(); x.take([0, 1]); x.repeat(2); x.argmax(); x.clip(2, 3); x.round(); x.max(axis=1); x.fill(3)
x.put(0, 9); x.sort(); x.setflags(write=True); x.__setitem__(0, 5); x.__setitem__(slice(None), y[0, 0])
x.__delitem__(0); setattr(x, "shape", (3, 2)); setattr(x, "real", 1.0); setattr(x, "flat", 2.0); setattr(x, "T", 1)
setattr(x, "dtype", "i8"); setattr(x, "info", 3); setattr(x, "mine", 3); x.mine; x.nope
np.ma.masked_array(x, x > 2)._baseclass.__name__; np.ndarray.sum(x); np.ndarray.__add__(x, 1)
np.ndarray.__getitem__(x, 0); np.ndarray.reshape(x, 6); np.ndarray.__repr__(x); isinstance(x, np.ndarray)
issubclass(type(x), np.ndarray); isinstance(x, onp.ndarray); np.ndarray in type(x).__mro__
np.ndarray in type(x).__bases__; isinstance(np.zeros(2), type(x)); type(x)((2,)).shape; type(x).__name__
x.__class__ is type(x); np.asarray(x).view(type(x)); y.view(type(x)); np.array([x, x]); np.array([x[0], [1, 2, 3]])
np.linalg.inv(x[:, :2]); x.__array_priority__; np.frombuffer(x.tobytes()); np.save(io.BytesIO(), x)
""".replace("\n", ";")
EXPRESSIONS = [e.strip() for e in EXPRESSIONS.split(";") if e.strip()]
STATEMENTS = [
    "x += 1",
    "x *= y",
    "y *= x",
    "x[0] = y[1]",
    "x[0, 0] = y[0, 0]",
    "x[x > 2] = 0",
    "y[...] = x",
    "z = x[1:]; z += 1",
]
STATEMENTS += [
    "x.resize((1, 3), refcheck=False)",
    "del x.info",
    "x.T[0] = 7",
    "x = x.view(); x.shape = -1",
    "z = x.flat; z[0] = 8",
]


def told(x):
    if isinstance(x, (tuple, list)):
        return type(x).__name__, [told(e) for e in x]
    return type(x).__name__, getattr(x, "dtype", None), getattr(x, "shape", None), repr(x), getattr(x, "info", "none")


def outcome(np, module, name, run):
    x = np.empty((2, 3)).view(getattr(module, name))
    x.info = "given"
    np.ndarray.__setitem__(x, ..., np.arange(6.0).reshape(2, 3) + 1)
    env = {"np": np, "onp": onp, "x": x, "y": np.arange(6.0).reshape(2, 3) + 2, "h": onp.ones((2, 3))}
    env |= {"copy": copy, "pickle": pickle, "weakref": weakref, "io": io}
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made = run(env)
        except Exception as error:
            made = type(error).__name__, str(error)
        return told(made), told(env["x"]), told(env["y"])


@pytest.mark.dealt
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(name, expression):
    run = lambda env: eval(expression, env)
    assert str(outcome(np, OURS, name, run)) == str(outcome(onp, THEIRS, name, run))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(name, statement):
    run = lambda env: exec(statement, env)
    assert str(outcome(np, OURS, name, run)) == str(outcome(onp, THEIRS, name, run))


def test_instances_go_when_nobody_holds_them():
    class Plain(np.ndarray):
        pass

    before, watched = sys.getrefcount(Plain), []
    for i in range(200):
        x = np.arange(3.0).view(Plain)
        x.info = [x] if i % 2 else None  # a cycle
        watched.append(weakref.ref(x))
        x = x[1:] + x[:-1]
    del x
    gc.collect()
    assert not any(w() is not None for w in watched) and sys.getrefcount(Plain) == before


def test_a_class_with_its_own_new_and_init_and_arguments():
    class Signal(np.ndarray):
        def __new__(cls, values, rate):
            return np.asarray(values, dtype="f8").view(cls)

        def __init__(self, values, rate):
            self.rate = rate

    s = Signal([1, 2, 3], rate=10)
    assert type(s) is Signal and s.rate == 10 and type(s[1:]) is Signal and not hasattr(s[1:], "rate")
    assert type(s * np.ones(3)) is type(np.ones(3) * s) is type(s * onp.ones(3)) is type(onp.ones(3) * s) is Signal


def test_gradients_go_through_instances():
    class Weights(np.ndarray):
        pass

    w = np.arange(3.0).view(Weights)
    assert minnp.grad(lambda v: (w * v * v).sum())(np.ones(3)).tolist() == [0, 2, 4]
    assert minnp.grad(lambda v: (v[1:] * w[1:]).sum() + np.dot(w, v))(np.ones(3)).tolist() == [0, 2, 4]
    with pytest.raises(ValueError):  # it cannot hold a traced number
        minnp.grad(lambda v: (w.__setitem__(0, v[0]), w.sum())[1])(np.ones(3))
