"""A function under jit whose capture ends midway: what it computed before goes on as NumPy's."""

import collections
import copy
import dataclasses
import math
import operator
import pickle
import sys
import types
import warnings

import numpy as onp
import pytest
import scipy.linalg.lapack
import scipy.sparse.linalg

import minnp
import minnp.numpy as np
from minnp import fx, grad, jit, value_and_grad
from minnp.core.graph import capture
from minnp.core.jit import jit as jit_module
from minnp.core.rows import budget
from minnp.primitive import customop

pytestmark = [
    pytest.mark.host("what is compared are NumPy's own scalars"),
    pytest.mark.either("what a capture that ends leaves behind is found in Python"),
]

OUTSIDE = np.zeros(2)
X = onp.array([1.0, 3.0, 2.0])
MADE = {
    "sum": lambda np, x: x.sum(),
    "element": lambda np, x: x[1],
    "argmax": lambda np, x: np.argmax(x),
    "compared": lambda np, x: x[0] < x[1],
    "float32": lambda np, x: x.astype("f4").mean(),
    "int8": lambda np, x: x.astype("i1")[1],
    "complex": lambda np, x: (x * 1j).sum(),
    "computed": lambda np, x: x[1] * 2 + 1,
}


def written_outside(np_, x):
    if np_ is np:
        OUTSIDE[0] = 1.0


def many_nodes(np_, x):
    y = x
    [y := y * 1.0 for _ in range(40)]


def kept(np, s):
    seen, by_name = [s], {"s": s}
    for _ in range(3):
        s += 1
        seen.append(s)
        s *= 2
    return seen, by_name, s


def in_place(np, s):
    out = []
    for op in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift"):
        t = s
        try:
            t = getattr(operator, op)(t, 2)
        except (TypeError, OverflowError) as error:
            t = isinstance(error, TypeError)
        out.append((op, t, s))
    return out


def enclosed(np, s):
    def add():
        nonlocal s
        s += 1
        return s

    before, first = s, add()
    return before, first, add(), s


def yielded(np, s):
    def sums(s):
        for _ in range(3):
            yield s
            s += 1

    return list(sums(s)), s


def arrays_of_it(np, s):
    made = [np.asarray(s), np.array(s), np.atleast_1d(s), np.reshape(s, 1), s.reshape(1), np.ravel(s), s[None], s[...]]
    for a in made:
        a[...] = 1
    return made, s


def numbers_of_it(np, s):
    made = [s[()], s.T, s.copy(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.squeeze(), s.conj()]
    return made, [s.astype("f4") if s.dtype.kind != "c" else s, s.sum(), s.max(), s.real, s.imag, s.item()]


def with_arrays(np, s):
    a = np.zeros(3, s.dtype)
    a[1] = s
    t = s
    t = t + a
    s += np.arange(3)
    return a, t, s, np.where(a == 0, a, 1), np.stack([t, t])


def refused(np, s):
    for use in (lambda: operator.setitem(s, ..., 3), lambda: operator.setitem(s, (), 3), lambda: len(s), lambda: [*s]):
        with pytest.raises(TypeError):
            use()
    return s


USES = {
    f.__name__: f
    for f in (kept, in_place, enclosed, yielded, arrays_of_it, numbers_of_it, with_arrays, refused)
} | {
    "classes": lambda np, s: [isinstance(s, t) for t in (float, int, complex, onp.generic, onp.floating, onp.float64)],
    "a key": lambda np, s: (hash(s), {s: 1}[s], len({s, s + 0}), s in {s: 2}),
    "texts": lambda np, s: (f"{s}", str(s), repr(s), f"{s:>12}"),
    "Python's": lambda np, s: (bool(s), abs(s), 1 - s * 2, s == s, s != 1, 2 * s, [s].index(s), sum([s, s])),
    "in order": lambda np, s: s.dtype.kind == "c" or (min(s, 3), max(s, 3), sorted([s, 2]), math.floor(s), int(s)),
    "whole": lambda np, s: not isinstance(s, float) or math.trunc(s),
    "methods": lambda np, s: s.is_integer() if s.dtype.kind in "fi" else hasattr(s, "is_integer"),
}  # fmt: skip


def typed(v):
    """A result with the types of its parts."""
    if isinstance(v, (list, tuple)):
        return type(v), [typed(e) for e in v]
    if isinstance(v, dict):
        return [(typed(k), typed(e)) for k, e in v.items()]
    scalar = not isinstance(v, onp.ndarray) or issubclass(v.__class__, onp.generic)
    v = onp.asarray(v)
    return scalar, str(v.dtype), v.shape, repr(v.tolist())


@pytest.mark.long
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("end", [written_outside, many_nodes])
def test_numbers_from_before_stay_numpys_scalars(monkeypatch, end, use):
    monkeypatch.setattr(capture, "MANY", 30)
    monkeypatch.setattr(capture, "MOST", 30)

    def program(np, make):
        def f(x):
            s = make(np, x)
            end(np, x)
            return USES[use](np, s)

        return f

    for make in MADE.values():
        f, g = program(onp, make), jit(program(np, make))
        for _ in range(2):
            assert typed(g(np.array(X))) == typed(f(X))


def test_numbers_from_before_the_budget_ran_out(monkeypatch):
    monkeypatch.setattr(capture, "MANY", 5)
    monkeypatch.setattr(budget.Deadline, "passed", lambda *_: True)

    def f(x):
        s, seen = x.sum(), []
        for k in [*range(9)]:
            seen.append(s)
            s += x[k % 3] * "12".count("1")
        return seen, s

    g = jit(f)
    assert [typed(g(np.array(X))) for _ in range(2)] == [typed(f(X))] * 2


@pytest.mark.parametrize("most", range(1, 16))
def test_views_are_read_where_the_capture_ends(monkeypatch, most):
    def f(np, x):
        y = np.stack([x, x + 1])
        rows, row = y.reshape(3, 2), y[0]
        for k in range(3):
            y *= 1.5
            rows[k, ...] = x[k]
            row += 1
        return y, rows, row

    monkeypatch.setattr(capture, "MANY", most)
    monkeypatch.setattr(capture, "MOST", most)
    g = jit(lambda x: f(np, x))
    for _ in range(2):
        assert typed(g(np.array(X))) == typed(f(onp, X))


def test_what_the_program_computes_is_not_time_to_record(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(capture, "MANY", 5)
    monkeypatch.setattr(budget.time, "thread_time", lambda: now[0])

    @customop()
    def slow(x):
        now[0] += 1.0
        return x + 1

    def f(x):
        for _ in [*range(9)]:
            x = slow(x) * 2
        return x

    module = fx.capture(f, np.array(X))  # which raises where the budget is too small
    assert now[0] > budget.seconds
    assert (module(np.array(X)) == f(np.array(X))).all()


def test_unrolled_loops_of_many_small_steps_are_pythons(monkeypatch):
    for name, value in (("UNROLLED", 30), ("TURNS", 4), ("TIMES", 0)):
        monkeypatch.setattr(capture, name, value)

    def f(x):
        for k in range(40):
            x = x * "12".count(str(k)) + 1
        return x

    minnp.report(reset=True)
    g = jit(f)
    assert [typed(g(np.array(X))) for _ in range(2)] == [typed(f(X))] * 2
    assert g.captures == 0
    assert any("does more than 30 small things" in r["why"] for r in minnp.report(reset=True))
    assert typed(fx.capture(f, np.array(X))(np.array(X))) == typed(f(X))


def test_arguments_that_are_scalars_are_not_written():
    def f(s, x):
        OUTSIDE[0] = 1.0
        t = s
        t += x.sum()
        return s, t

    s = onp.float64(2.0)
    g = jit(f)
    for _ in range(2):
        assert typed(g(s, np.array(X))) == typed((s, s + 6.0))
    assert s == 2.0


def test_numbers_go_on_into_other_functions():
    def inner(s):
        t = s
        t += 1
        return s * t

    def f(x):
        s = x.sum()
        if x is not X:
            OUTSIDE[0] = 1.0
        g = jit(inner) if x is not X else inner
        return g(s), g(s), s

    assert typed(jit(f)(np.array(X))) == typed(f(X))

    def h(x):
        s = x.sum()
        OUTSIDE[0] = 1.0
        return grad(inner)(s), value_and_grad(inner)(s), s

    slope, (value, other), s = jit(h)(np.array(X))
    assert (slope, value, other, s) == (13.0, 42.0, 13.0, 6.0)


def test_numbers_kept_from_a_gradient_are_scalars_after_it():
    seen = []

    def f(x):
        s = (x * x).sum()
        seen.append(s)
        s += 1
        return s

    grad(f)(np.array(X))
    s = t = seen[0]
    t += 5
    assert (s, t) == (14.0, 19.0) and isinstance(s, float) and repr(s) == repr(onp.float64(14.0))


def test_a_function_whose_captures_end_takes_any_number_of_shapes():
    def runs(x):
        out = []
        for v in x:
            if not out or out[-1] != str(v):
                out.append(str(v))
        return len(out)

    g = jit(runs)
    for n in range(100, 150):
        x = np.arange(float(n)) % 7
        assert g(x) == runs(x) == n
    assert g.cache_info()["keys"] < 12


def test_a_number_of_thousands_of_digits_is_a_result():
    g = jit(lambda x: (3**20000, -(3**20000), x.sum()))
    for _ in range(3):
        long, less, total = g(np.ones(3))
        assert long == 3**20000 == -less and total == 3


def test_lists_of_many_numbers_are_not_looked_at_again_and_again(monkeypatch):
    def two_sum(numbers, target):
        seen = {}
        for i in range(len(numbers)):
            if target - numbers[i] in seen:
                return seen[target - numbers[i]], i
            seen[numbers[i]] = i
        return -1, target * numbers[0]

    looked = []
    opened = jit_module.open_tree
    monkeypatch.setattr(jit_module, "open_tree", lambda *args: looked.append(args) or opened(*args))
    g, numbers = jit(two_sum), [(7 * k) % 401 for k in range(300)]
    for k in range(200):
        assert g(numbers, k - 5) == two_sum(numbers, k - 5)
    assert len(looked) < 100
    assert any("reads more than 64 of the numbers among its arguments" in row["why"] for row in minnp.report())
    assert g([3.0, 4.0], 7) == (0, 1) and g([1, 2], 9) == (-1, 9)
    values = [np.float64(x) for x in range(40)]
    for f in (g, two_sum):  # a key of a dict that is followed
        with pytest.raises(minnp.errors.TracedValueError, match="something hashed it"):
            minnp.grad(lambda x, f=f: f([*values, x], 1.5)[1])(2.5)


@pytest.mark.filterwarnings("ignore::minnp.errors.RecompilationWarning")  # where no loop is compiled, these are paths
def test_numbers_of_a_capture_that_ended_are_numbers_to_functions_that_are_compiled_next():
    """The outer function's capture ends on the way, when the inner one has decided often; what it computes of its own
    number `k` from then on is captured with that number as it is."""

    def program(compiled):
        @compiled
        def steps(n, k):
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                k = k + 1
            return k

        @compiled
        def f(x, k):
            total = sum(steps(int(v), k) for v in x)
            held, given = compiled(lambda z: z * k + (k - 1) * k), compiled(lambda z, of: z * of["k"] + of["k"])
            return total, held(x), given(x, {"k": k}), held(1), k, compiled(lambda a, b=k: a * b)(k)

        return f

    plain, fast, x = program(lambda f: f), program(jit), np.arange(1, 80)
    for k in (1, 2, 2.5, 3):
        want, got = plain(x, k), fast(x, k)
        assert str(got) == str(want) and list(map(type, got)) == list(map(type, want))


@dataclasses.dataclass
class Point:
    x: object


def counting():
    n = [0]

    def up():
        n[0] += 1
        return n[0]

    return up


@pytest.mark.parametrize(
    "make, change, look",
    [
        (lambda: {0}, lambda s: s.add(5), sorted),
        (lambda: collections.deque([0]), lambda q: q.append(7), list),
        (lambda: iter([1, 2]), lambda i: next(i), list),
        (lambda: np.random.default_rng(0), lambda g: g.random(), lambda g: g.random()),
        (lambda: types.SimpleNamespace(k=1), lambda n: setattr(n, "k", 2), lambda n: n.k),
        (lambda: bytearray(b"a"), lambda b: b.append(98), bytes),
        (counting, lambda f: f(), lambda f: f()),
        (lambda: lambda x, seen=[]: seen.append(x) or len(seen), lambda f: f(1), lambda f: f(1)),
    ],
    ids=["set", "deque", "iterator", "stream", "namespace", "bytearray", "closure", "default"],
)
def test_what_a_function_makes_and_returns_is_new_in_every_call(make, change, look):
    @jit
    def f(x):
        return make(), x * 2, [make()]

    change_and_look = lambda x: (change(x), look(x))[1]
    want = change_and_look(make())
    for _ in range(6):
        one, _, (other,) = f(np.ones(2))
        assert change_and_look(one) == want
        assert change_and_look(other) == want


def test_what_is_twice_in_a_result_is_one():
    @jit
    def f(x):
        a, empty, point = [x * 2], {}, Point(x + 1)
        return {"p": a, "q": (a, empty), "r": [empty, point, point]}

    for _ in range(4):
        out = f(np.ones(2))
        (q, empty), (r, first, second) = out["q"], out["r"]
        assert out["p"] is q and empty is r and first is second
        q.append(3)
        first.x = 5
    assert f.cache_info()["paths"] == 1


def test_texts_of_numpy_are_results():
    labels = np.array(["cold", "warm"])
    f = jit(lambda x: labels[1] if x.mean() > 20 else labels[0])
    for k in (1, 30, 2, 40):
        assert f(np.array([1.0 * k, 12.0])) == labels[int(k > 28)]
        assert type(f(np.array([1.0 * k, 12.0]))) is onp.str_


def warned(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = np.log(x)
    return -np.ones(2) if caught else y


def made_errors(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.sqrt(x)
        except RuntimeWarning:
            return np.zeros(2)


def called(x):
    log = []
    old = np.seterrcall(lambda kind, flag: log.append(kind))
    with np.errstate(all="call"):
        y = 1 / (x - 1)
    np.seterrcall(old)
    return y * 0 if log else y


@pytest.mark.parametrize("f", [warned, made_errors, called])
@pytest.mark.filterwarnings("ignore")
def test_functions_that_decide_what_becomes_of_warnings_run_as_they_are(f):
    g = jit(f)
    for x in ([2.0, 3.0], [1.0, -1.0], [2.0, 3.0], [-1.0, 1.0], [2.0, 3.0]):
        onp.testing.assert_array_equal(g(np.array(x)), f(onp.array(x)))


def test_libraries_that_take_no_traced_arrays_get_arrays_at_once():
    f = jit(lambda a, b: scipy.sparse.linalg.cg(a, b)[0])
    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.ones(2)
    for _ in range(4):
        onp.testing.assert_allclose(f(a, b), onp.linalg.solve(a, b), rtol=1e-10)
    solved = jit(lambda a, b: scipy.linalg.lapack.dgesv(a, b)[2])
    for _ in range(4):
        onp.testing.assert_allclose(solved(a, b), onp.linalg.solve(a, b), rtol=1e-10)
        onp.testing.assert_array_equal(b, 1.0)
    factor = jit(lambda a: scipy.linalg.cholesky(a) * 2)
    for _ in range(4):
        with pytest.raises(onp.linalg.LinAlgError):
            factor(-a)
        onp.testing.assert_allclose(factor(np.eye(2)), 2 * onp.eye(2))


def test_memory_that_torch_shares_is_the_arguments():
    torch = pytest.importorskip("torch")
    f = jit(lambda x: torch.as_tensor(x).neg_().sum().item())
    for _ in range(4):
        x = np.array([1.0, 2.0])
        assert f(x) == -3.0
        onp.testing.assert_array_equal(x, [-1.0, -2.0])


class Offset:
    def __init__(self, by):
        self.by = by

    def __radd__(self, other):
        return other + self.by


def test_operators_of_objects_that_are_no_arrays_are_their_own():
    f, g = (jit(f) for f in (lambda x: x[0] + Offset(2.0), lambda x: (x + Offset(1.0)) * 2))
    for k in range(4):
        x = np.array([1.0 + k, 5.0])
        assert f(x) == 3.0 + k
        onp.testing.assert_array_equal(g(x), (onp.asarray(x) + 1) * 2)


def test_the_rest_of_a_function_is_not_watched():
    seen = []

    def f(x):
        if x[0] > 9.0:
            print(x)
        seen.append(sys.getprofile() is None)
        bytes(memoryview(x))
        seen.append(sys.getprofile() is None)
        return x * 2.0

    assert jit(f)(np.ones(3)).tolist() == [2.0] * 3
    assert seen == [False, True]
