"""What a compiled loop reads, and binds, that is no variable of its function: globals, closures, attributes, items."""

import dataclasses
import sys
import types

import name_fuzzer
import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine
from minnp.core.loops import source, staged
from minnp.core.loops.runtime import hand_over
from minnp.core.loops.source import _REWRITTEN, rewritten

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")
TABLE = np.arange(20.0) * 3
COUNTS = np.zeros(5)
RATE = 2.0
OPTIONS = {"rate": 0.5, "mode": "fast", "weights": np.linspace(1, 2, 20)}


@pytest.fixture(autouse=True)
def reported():
    minnp.report(reset=True)
    yield
    minnp.report(reset=True)


def python_loops():
    """The loops that were Python's, as the report has them."""
    return [r["why"] for r in minnp.report() if r["function"].startswith("loop in")]


def same(f, make, turns=3, compiles=True):
    """Whether jit(f) gives what f gives, call by call, and leaves its arguments as f does."""
    g = jit(f)
    for _ in range(turns):
        plain, ours = make(), make()
        want, got = f(*plain), g(*ours)
        for a, b in zip([*flat(want), *plain], [*flat(got), *ours], strict=True):
            numpy.testing.assert_allclose(b, a, rtol=1e-12)
    if engine.available() and compiles:
        assert python_loops() == []


def flat(x):
    return [z for y in x for z in flat(y)] if type(x) in (tuple, list) else [x]


def vector():
    return (np.linspace(-1, 1, 20),)


class Box:
    G = 9.81

    def __init__(self, n=20):
        self.a, self.k, self.t, self.child = np.zeros(n), 0, 0.5, None

    def add(self, by=1):
        self.k += by
        return self.k

    def force(self, v):
        return v * self.G + self.twice

    @property
    def twice(self):
        return self.t * 2

    @staticmethod
    def next(v):
        return v + 1


@dataclasses.dataclass(slots=True)
class Slots:
    a: object
    n: int = 0


def by_rate(v):
    return v * RATE


def shifted(v, table=TABLE, at=3):
    return v + table[at]


# ------------------------------------------------------------------ programs
def reads_globals(x):
    s = 0.0
    for k in range(20):
        s += TABLE[k] * x[k]
    return s


def reads_a_closure(x):
    w = x * 2

    def at(k):
        return w[k] + x[k]

    s = 0.0
    for k in range(20):
        s += at(k)
    return s


def writes_a_closure(x):
    out = np.zeros(20)

    def put(k, v):
        out[k] = v

    for k in range(1, 20):
        put(k, out[k - 1] + x[k])
    return out


def lambdas(x):
    square, third = (lambda v: v * v), (lambda v: v * 3)
    s = 0.0
    for v in x:
        s += square(v) - third(v)
    return s


def functions_in_containers(x):
    known, several = {"sq": lambda v: v * v}, [np.sin, lambda v: v + 1]
    out = np.zeros(20)
    for k in range(20):
        out[k] = known["sq"](x[k])
        for f in several:
            out[k] += f(x[k])
    return out


def defaults(x):
    for k in range(20):
        x[k] = shifted(x[k]) + shifted(x[k], at=k)
    return x


def dicts(x):
    state = {"w": np.zeros(20), "rate": 0.1}
    for _ in range(5):
        for k in range(20):
            if OPTIONS["mode"] == "fast":
                state["w"][k] += state["rate"] * (x[k] * OPTIONS["weights"][k] - state["w"][k])
    return state["w"]


def methods(x):
    box = Box()
    for k in range(20):
        box.a[k] = box.force(x[k]) + Box.next(x[k]) + box.next(x[k])
    return box.a


def binds_attributes(x):
    box, slots, names = Box(), Slots(x.copy()), types.SimpleNamespace(n=0)
    box.child = Box()
    for k in range(20):
        x[k] = box.add(2) + box.add()
        box.child.t += x[k] * 0.1
        slots.n += k
        slots.a[k] += slots.n
        names.n = k
    return box.k, float(box.child.t), slots.n, slots.a, names.n


def binds_arrays(x):
    box = Box()
    for _ in range(30):
        box.a = box.a * 0.5 + x
        box.t += box.a[3]
    return box.a, float(box.t)


def binds_items(x):
    d = {"n": 0, "w": x.copy(), "s": 0.0}
    for k in range(20):
        d["n"] += 1
        d["s"] += x[k]
        d["w"][k] = d["n"]
    return d["n"], d["w"], float(d["s"])


def one_object_twice(x):
    p = Box()
    q = p
    for k in range(20):
        p.k += 1
        q.k += 2
        p.a[k] = q.k
    for box in (p, q):
        for k in range(20):
            box.a[k] += box.k
    return p.k, p.a


def one_array_twice(x):
    box = Box()
    box.a = x
    for k in range(1, 20):
        box.a[k] = x[k - 1] * 2
    return box.a


def binds_what_a_function_reads(x):
    c, w = 1.0, x * 1.0

    def at(k):
        return w[k] * c

    s = 0.0
    for k in range(20):
        c += 0.5
        w = w * 0.9
        s += at(k)
    return s


def goes_on_after_an_error(x):
    box = Box()
    try:
        for k in range(30):
            box.k += 1
            s = x[k]
    except IndexError:
        pass
    return k, box.k, s


PROGRAMS = [reads_globals, reads_a_closure, writes_a_closure, lambdas, functions_in_containers, defaults, dicts]
PROGRAMS += [methods, binds_attributes, binds_arrays, binds_items]
LEFT = [one_object_twice, one_array_twice, binds_what_a_function_reads, goes_on_after_an_error]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_loops_read_and_bind_what_lies_outside(f):
    same(f, vector)


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_python_runs_what_compiled_code_would_see_otherwise(f):
    same(f, vector, compiles=False)


def test_arrays_outside_are_written():
    def f(x):
        for k in range(20):
            COUNTS[k % 5] += x[k]

    g, x = jit(f), np.ones(20)
    for turn in range(1, 4):
        g(x)
        assert COUNTS.tolist() == [4 * turn] * 5
    assert python_loops() == []


def test_numbers_of_functions_that_are_called_are_read_anew(monkeypatch):
    box = Box()

    def make(by):
        def scaled(v):
            return v * by * box.t

        return scaled

    def f(x):
        scaled = make(x.shape[0])
        for k in range(len(x)):
            x[k] = by_rate(x[k]) + scaled(x[k])
        return x

    g = jit(f)
    for rate, t in [(2.0, 1), (3.0, 1), (4.0, 2.5), (-0.0, 0.0), (0.0, 0.0), (1, 4)]:
        monkeypatch.setitem(globals(), "RATE", rate)
        box.t = t
        for n in (3, 5):
            want, got = f(np.ones(n)), g(np.ones(n))
            assert got.tolist() == want.tolist() and np.signbit(got).tolist() == np.signbit(want).tolist()
    assert python_loops() == []


def test_methods_and_functions_are_looked_up_anew(monkeypatch):
    box = Box()

    def f(x):
        for k in range(len(x)):
            x[k] = box.force(x[k])
        return x

    g = staged(f)
    assert g(np.ones(3)).tolist() == f(np.ones(3)).tolist()
    monkeypatch.setattr(Box, "force", lambda self, v: v - 1)
    assert g(np.ones(3)).tolist() == [0, 0, 0]
    box.force = lambda v: v + 10
    assert g(np.ones(3)).tolist() == [11, 11, 11]


def test_gradients_through_what_lies_outside():
    def loss(w):
        box, state = Box(), {"h": w * 0.5}
        box.a = w * 2

        def step(k):
            return state["h"][k] * box.a[k]

        s = 0.0
        for k in range(20):
            s += step(k) * TABLE[k]
        return s

    (w,) = vector()
    want = grad(loss)(w)
    numpy.testing.assert_allclose(grad(jit(loss))(w), want, rtol=1e-12)
    numpy.testing.assert_allclose(jit(grad(loss))(w), want, rtol=1e-12)
    assert python_loops() == []


def test_a_loop_whose_objects_are_others_each_time_is_not_compiled_without_end():
    class Mode:
        def __getattr__(self, name):
            raise AttributeError(name)

    def f(x, mode):
        for k in range(len(x)):
            x[k] += mode is None
        return x

    step = staged(f)
    for _ in range(40):
        assert step(np.zeros(3), Mode()).tolist() == [0, 0, 0]
    if engine.available():
        (said,) = python_loops()
        assert "compiled 32 times" in said


def test_an_inner_function_and_the_loop_write_to_one_array():
    def heap_sorted(a):
        def sift(start, end):
            while 2 * start + 1 <= end:
                child = 2 * start + 1
                if child < end and a[child] < a[child + 1]:
                    child += 1
                if a[start] >= a[child]:
                    return
                a[start], a[child] = a[child], a[start]
                start = child

        for start in range(len(a) // 2, -1, -1):
            sift(start, len(a) - 1)
        for end in range(len(a) - 1, 0, -1):
            a[0], a[end] = a[end], a[0]
            sift(0, end - 1)
        return a

    same(heap_sorted, lambda: (np.random.default_rng(0).random(40),))
    same(heap_sorted, lambda: (np.random.default_rng(1).random(7),))


def test_an_array_of_another_call_is_no_variable_of_this_one():
    def adding(a):
        def add(i):
            a[i] += 1

        return add

    def filled(a, b, own):
        def add(i):
            a[i] += 1

        add = add if own else adding(b)
        for i in range(len(a)):
            a[i] *= 2
            add(i)
        return a.sum() + b.sum() * 1000

    f = staged(filled)
    for own in (True, False, True, False):
        a, b, c, d = np.ones(30), np.ones(30), np.ones(30), np.ones(30)
        assert f(a, b, own) == filled(c, d, own)
        assert np.array_equal(a, c) and np.array_equal(b, d)


def test_a_loop_that_stays_python_is_looked_at_less_often():
    looked = []

    def lengths(stack):
        n = 0
        while stack:
            n += len(stack.pop())
        return n

    def watching(sites, f):
        names = lambda: dict(sys._getframe(2).f_locals)
        return lambda number: looked.append(number) or hand_over(sites[number], f, names()), lambda f: f

    f = rewritten(lengths, watching)
    for _ in range(500):
        assert f([(1, 2), (3,)]) == 3
    (site,) = _REWRITTEN[lengths.__code__][1]
    assert len(looked) == 500 and 8 < site.refused < 20
    assert len(python_loops()) == 1


def test_the_faster_of_compiled_code_and_python_runs_a_loop(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(source, "perf_counter", lambda: clock[0])

    def turn(pace, compiled, python, machine):
        """One time at the loop: who ran it."""
        if (pace.rest or pace.asked) and (told := pace.pythons()) is not True:
            clock[0] += python
            if told is False:
                pace.end()
            return "python"
        pace.machine = machine
        pace.took(compiled)
        return "compiled"

    short = source.Pace()
    ran = [turn(short, 8e-6, 1e-6, 1e-7) for _ in range(3000)]
    assert ran.count("compiled") < 100 and ran[-100:].count("python") > 90
    assert [turn(short, 8e-4, 1e-1, 7e-4) for _ in range(20)].count("python") < 6  # many turns now
    long = source.Pace()
    assert {turn(long, 8e-4, 1e-1, 7e-4) for _ in range(500)} == {"compiled"}
    slow = source.Pace()
    ran = [turn(slow, 8e-6, 1e-4, 1e-7) for _ in range(500)]
    assert ran.count("python") < 20
    doubtful = source.Pace()
    doubtful.doubtful = True
    ran = [turn(doubtful, 8e-3, 2e-3, 7e-3) for _ in range(500)]
    assert ran.count("compiled") < 50 and ran[-100:].count("python") > 90


def test_a_function_without_compiled_loops_runs_as_it_is():
    seen = []

    def count(x):
        seen.append(sys._getframe(1).f_code.co_name)
        found = {}
        for v in x:
            found[str(v)] = found.get(str(v), 0) + 1
        return found

    g, x = jit(count), np.arange(100) % 7
    for _ in range(20):
        assert g(x) == count(x)
    assert "_uncaptured" in seen[-2:]


def test_a_function_that_always_raises_is_not_captured_again_and_again():
    def last(x, n):
        for k in range(n):
            x[k] += 1
        return x

    g = jit(last)
    for _ in range(8):
        x = np.zeros(3)
        with pytest.raises(IndexError):
            g(x, 5)
        assert x.tolist() == [1, 1, 1]
    assert g(np.zeros(3), 3).tolist() == [1, 1, 1]


@pytest.mark.skipif(not engine.available(), reason="without llvmlite no loop is looked at")
def test_a_loop_that_makes_functions_is_reported():
    def f(x):
        out = []
        for k in range(30):
            out.append(lambda k=k: x[k])
        return sum(g() for g in out[:2])

    assert jit(f)(np.arange(30.0)) == 1
    assert any("the loop makes a function" in why for why in python_loops())


def test_many_questions_about_data_leave_a_function_as_it_is():
    def total(a):
        h = 2**63
        for x in a:
            h = (h ^ int(x)) * 1099511628211 % (2**64 + 13)
        return h

    def deep(n, k):
        return k if n == 0 else max(deep(n - 1, k + n), deep(n - 1, k - n), key=abs)

    why = "asks some 64 times", "more than 1000 numbers"
    for (f, args), said in zip(((total, (np.arange(200),)), (deep, (9, 1))), why):
        g = jit(f)
        assert [g(*args) for _ in range(12)] == [f(*args)] * 12
        assert any(r["function"].startswith("jit of") and said in r["why"] for r in minnp.report())
        minnp.report(reset=True)


def test_a_function_named_as_one_of_numpys_does_not_call_itself():
    made = {}
    exec("def median(a):\n    a[0] = np.median(a)\n    return a", {"np": np}, made)
    g = jit(made["median"])
    for _ in range(2):
        assert g(np.array([5.0, 1.0, 2.0, 9.0]))[0] == 3.5
    assert g.cache_info()["captures"] == 1


def test_elements_read_before_a_capture_ends_are_numpys_scalars():
    def read_one_by_one(x):
        out = [x[0], x[1] * 2]
        for k in range(len(x)):
            out.insert(0, x[k])
            if int(x[k]) < 0:
                break
        return out

    for _ in range(2):
        assert {type(v) for v in jit(read_one_by_one)(np.arange(100.0))} == {numpy.float64}


def test_variables_of_others_are_what_they_were_where_a_loop_raised():
    def counted(x, n):
        count, last = 0, -1.0

        def add():
            nonlocal count, last
            for i in range(n):
                count += 1
                last = x[i]
                x[i] += 1

        try:
            add()
        except IndexError:
            count += 100
        return count, last, x

    g = jit(counted)
    for _ in range(2):
        assert (
            str(g(np.arange(5.0), 9))
            == str(counted(np.arange(5.0), 9))
            == str((106, numpy.float64(4.0), np.arange(1.0, 6)))
        )


def test_the_gradient_of_a_name_that_is_an_array_and_then_a_number():
    steps = [np.tanh, lambda y, k=(1,): y[k]]

    def f(x):
        for step in steps:
            x = step(x)
        return x * x

    x = np.arange(4.0)
    assert float(jit(f)(x)) == float(f(x))
    numpy.testing.assert_allclose(jit(grad(f))(x), grad(f)(x))
    assert jit(lambda x: minnp.jvp(f, (x,), (x,)))(x) == minnp.jvp(f, (x,), (x,))


@pytest.mark.long
def test_the_gradient_of_arrays_that_names_are_bound_to_in_the_loop_alone():
    def sweep(x, w):
        total = 0.0
        for k in range(6):
            low, high = np.zeros(4), np.zeros(4)
            if k > 0:
                low = -w[:, k]
            if k < 5:
                high = w[:, k + 1]
            for _ in range(2):
                low = np.sin(low) * x[k]
            total = total + np.sum(low * high / (3 + low - x[k]))
        return total

    x, w = np.linspace(0, 1, 24).reshape(6, 4), np.linspace(-1, 1, 24).reshape(4, 6)
    product = lambda x, w: np.sum(grad(sweep)(x, w) * np.cos(x))
    for f in (sweep, product):
        expected = grad(f, (0, 1))(x, w)
        for found in (jit(grad(f, (0, 1)))(x, w), grad(jit(f), (0, 1))(x, w)):
            for a, b in zip(found, expected):
                numpy.testing.assert_allclose(a, b, rtol=1e-12)
    if engine.available():
        assert not [r for r in minnp.report() if r["backend"] == "python"]


def test_an_array_that_is_read_before_it_is_bound():
    def unbound(x, first):
        total = 0.0
        if first:
            later = x
        for k in range(3):
            total = total + np.sum(later * k)
            later = x * k
        return total

    x = np.arange(3.0)
    for f in (unbound, grad(unbound)):
        g = jit(f)
        for _ in range(2):
            with pytest.raises(UnboundLocalError):
                g(x, False)
            numpy.testing.assert_array_equal(g(x, True), f(x, True))


def test_gradients_of_a_name_for_arrays_of_other_shapes():
    def f(x, y, m):
        for k in range(len(y)):
            if x[0] > 0:
                v = m.T
                v[...] = 0.5
            i = 0
            while i < 2 and x[0] > 0:
                i += 1
                x[i] = y[k]
                v = x.reshape(-1, 1)
                v[:1] = y[-1]
        return x

    loss = lambda f: lambda x, y: np.sum(f(x * 1, y, np.ones((3, 3))))
    for x in (np.arange(1.0, 6.0), np.arange(-1.0, 4.0)):
        for found, wanted in zip(grad(loss(jit(f)), (0, 1))(x, np.ones(3)), grad(loss(f), (0, 1))(x, np.ones(3))):
            numpy.testing.assert_array_equal(found, wanted)


def test_an_array_that_only_some_calls_bind_anew():
    """The path that was captured first expects a new array of the first loop, and writes to `a` after it."""

    def f(a, w, x):
        w = w + 1
        for k in range(4):
            if x[k] > 0:
                w = w * 0.5 + x[:3]
        for k in range(4):
            w[k % 3] += 1
            a[:-1] += a[:-1] * 2
        return w

    g, x = jit(f), np.arange(1.0, 6.0)
    for sign in (1, 1, -1, 1, -1, -1):
        a, b = np.arange(4.0), np.arange(4.0)
        numpy.testing.assert_array_equal(g(a, np.ones(3), sign * x), f(b, np.ones(3), sign * x))
        numpy.testing.assert_array_equal(a, b)
    assert g.cache_info()["captures"] == 2


@pytest.mark.long
def test_what_is_bound_at_once_is_computed_before():
    """The right side of `x, y = ...` is computed before a name is bound."""

    def exchanged(x, y, n):
        for _ in range(n):
            x, y = y, np.abs(x)
        return x, y

    def sums(x, y, n):
        for _ in range(n):
            x, y = 0.5 * (x + y), 0.5 * (x - y)
        return x, y

    def rotated(x, y, n):
        z = x + y
        for k in range(n):
            [x, y, z] = [y, z, 0.5 * x - y]
            z[0] += k
        return x, y, z

    def written(x, y, n):
        for k in range(n):
            x, y = y, x * 1.0
            x[k % 3] += k
        return x, y

    def at_times(x, y, n):
        k = 0
        while k < n:
            if k % 3 == 1:
                x, y = y[::-1], x * 0.5
            for _ in range(2):
                y, s, x = x, y.sum(), y + 1.0
            k += 1
        return x, y, s

    def items(x, y, n):
        t = x * 2, y
        for _ in range(n):
            t = t[1], t[0] * 0.5
            x, y = t
            y[0] += 1.0
        return t, x, y

    def attributes(x, y, n):
        box, d = types.SimpleNamespace(a=x.copy(), b=y.copy()), {"a": x, "b": y}
        for _ in range(n):
            box.a, box.b = box.b, box.a * 0.5
            d["a"], d["b"] = d["b"], d["a"] * 0.5
        return box.a, box.b, d["a"], d["b"]

    def held(x, y, n):
        for k in range(n):
            t = (x * 2.0, y)
            x[k % 3] = 0.5
            y += t[0]
            y *= 0.3
        return x, y

    for f in (exchanged, sums, rotated, written, at_times, items, attributes, held):
        for n in (3, 9, 20, 50):
            same(f, lambda n=n: (np.linspace(-1, 1, 3), np.linspace(0.5, 3, 3), n), compiles=False)
            same(f, lambda n=n: (np.linspace(-1, 1, 6).reshape(3, 2), np.ones((3, 2)), n), compiles=False)
    x, y = np.linspace(-1, 1, 3), np.linspace(0.5, 3, 3)
    for f in (sums, rotated):
        loss = lambda x, y, f=f: np.sum(f(x, y, 20)[1] ** 2)
        for transform in (lambda f: jit(grad(f, (0, 1))), lambda f: grad(jit(f), (0, 1))):
            numpy.testing.assert_allclose(transform(loss)(x, y), grad(loss, (0, 1))(x, y), rtol=1e-10)


def kinds(x):
    """Values with their types."""
    if isinstance(x, (tuple, list)):
        return [type(x), *map(kinds, x)]
    return type(x), getattr(x, "dtype", None), numpy.asarray(x).tolist()


@pytest.mark.long
def test_a_name_that_is_an_array_and_then_a_number():
    """What a turn, a `continue` or a `break` leaves in a name is what is read next."""

    def halved(x, n):
        for k in range(n):
            x = x * 0.5
            if x < 0.1:
                return k
        return -1

    def grown(x, n):
        while x < n:
            x = x * 1.1 + 1
            if x > 10:
                return 1
        return 0

    def counted(x, n):
        count = 0
        for _ in range(n):
            x = x * 0.9
            if x < 1:
                continue
            count += 1
        return count, x

    def broken(x, n):
        for k in range(n):
            x = x * 0.8 + 0.001 * k
            if x < 0.1:
                break
        else:
            return "none"
        return k + 1

    def made(x, n):
        count = 0
        for k in range(n):
            y, z = np.array(k), np.zeros(())
            z += k * 0.5
            count += (y > 7) + (z > 7)
        return count

    def written(x, n):
        count = 0
        for _ in range(n):
            x[...] = x * 0.9
            y = x[...]
            y += 0.01
            count += x < 1
        return count, y

    def left(x, n):
        y, total = 1.0, 0.0
        for k in range(n):
            total += np.sum(y)
            if k == 3:
                y = x
                continue
            y = y * 2
        return total

    def chosen(x, n):
        y, at = 1.0, None
        for k in range(n):
            if k > 7:
                y = x
                at = k
                break
        return y, at

    def now_and_then(x, n):
        total = 0.0
        for k in range(n):
            if k > 0:
                total = total + np.sum(y)  # noqa: F821
            y = x + 0.0
            if k % 2:
                y = 1.0
        return total, y

    def skipped(x, n):
        for k in range(n):
            for each in (1, 2, 3):
                if each + k > 5:
                    continue
                later = each
            if k == 8:
                return later
        for k in range(n):
            if k * k > 50:
                at = 2 * k
                break
        return at

    for f in (halved, grown, counted, broken, made, written, left, chosen, now_and_then, skipped):
        for x in (np.array(2.0), np.float64(2.0), 2.0, numpy.array(2.0)):
            if f is written and type(x) is not np.ndarray:
                continue
            for n in (1, 3, 9, 20, 50):
                g = jit(f)
                for _ in range(2):
                    plain, ours = x + 0.0, x + 0.0
                    if isinstance(x, numpy.ndarray):
                        plain, ours = x.copy(), x.copy()
                    try:
                        want = kinds((f(plain, n), plain))
                    except UnboundLocalError:
                        with pytest.raises(UnboundLocalError):
                            g(ours, n)
                    else:
                        assert kinds((g(ours, n), ours)) == want, (f.__name__, n)
    assert not [why for why in python_loops() if "failed" in why]


def test_what_is_given_on_as_it_is():
    """An array without axes that is one of several numbers, an attribute, or shown, stays that array."""

    def chosen(x, a, n):
        p, q = x, x
        for k in range(n):
            p = max(x, a[k % 3])
            q = x if k % 3 == 1 else a[0]
            x[...] = x * 0.5
        return p, q, x and a[0], x

    def of_functions(x, a, n):
        for k in range(n):
            y = np.abs(x)
            x += k
        return y, x

    def attributes(x, a, n):
        box = types.SimpleNamespace(s=x, v=a)
        for k in range(n):
            box.s, a[k % 3] = box.s * 0.5, box.s
        return box.s, a

    def returned(x, a, n):
        t, p = (1.0, a), 0.5
        for _ in range(n):
            t = p, t[1]
            p = p + a[1]
            if p > 20:
                return p, t[1] * 2
        return t

    def rows(x, a, n):
        m = np.ones((4, 3)) * a
        for k in range(n):
            m[k % 4], m[1] = m[1], m[k % 4]
            m[:, 0], m[:, 2] = m[:, 2], m[:, 0]
            m[0] += k
        return m

    def viewed(x, a, n):
        for k in range(n):
            one = a[k % 3, ...]
            one += x
            a[1, ...] = 0.5
        return a, one

    for f in (chosen, of_functions, attributes, returned, rows, viewed):
        g = jit(f)
        for n, x in ((3, 1.0), (12, -2.0), (12, 3.0), (30, 0.5)):
            plain, ours = ((np.array(x), np.array([0.5, x, -1.0]), n) for _ in range(2))
            assert kinds((f(*plain), plain)) == kinds((g(*ours), ours)), (f.__name__, n)
    assert not [why for why in python_loops() if "failed" in why]
    loss = lambda x, a: np.sum(attributes(x, a * 1.0, 12)[1])
    x, a = np.array(2.0), np.arange(3.0)
    for found in (jit(grad(loss))(x, a), grad(jit(loss))(x, a)):
        numpy.testing.assert_allclose(found, grad(loss)(x, a))
    assert not [why for why in python_loops() if "failed" in why]


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(4, 12))])
def test_random_programs(seed):
    assert not name_fuzzer.differs(seed)
    assert not name_fuzzer.differs_in_gradient(seed)


@pytest.mark.exhaustive
def test_many_random_programs():
    assert not [found for found in map(name_fuzzer.differs, range(3000, 3100)) if found]
    assert not [found for found in map(name_fuzzer.differs_in_gradient, range(3100, 3150)) if found]


def exchanged(x, y, n):
    for _ in range(n):
        x, y = y, x
    return x, y


def written_by_the_caller(x, y, n):
    x, y = x * 2, y * 3
    a, b = exchanged(x, y, n)
    a[0] = 0.5
    return x, y, a, b


def written_by_another_name(x, y, n):
    x, y = x * 1.0, y * 1.0
    a, b = x, y
    for _ in range(n):
        a, b = b, a
    a[0] = 0.5
    return x, y, a, b


def written_through_a_list(x, y, n):
    x, y = x * 2, y * 3
    held = [x, y]
    for _ in range(n):
        x, y = y, x
    held[0][1] = 7.0
    return x, y, *held


def written_through_a_view(x, y, n):
    x, y = x * 2, y * 3
    part = x[1:]
    for _ in range(n):
        x, y = y, x
    part[0] = 7.0
    return x, y, part


def one_array_by_two_names(x, y, n):
    x = best = x * y
    for k in range(n):
        x = np.sin(x + y)
        if k % 4 == 1:
            best = x
    best[0] *= 0.5
    return x, best


def the_earlier_of_two(x, y, n):
    x = x * 1.0
    last = y = y * 1.0
    for k in range(n):
        made = np.tanh(x) * y
        if k % 3 == 1:
            x, last = made, x
    x[1] = last[0] * 0.5
    return x, y, last


def an_input_or_a_new_one(x, y, n):
    x, y = x * 1.0, y * 1.0
    z = x * y
    for k in range(n):
        if k % 2:
            z = y
        else:
            z = np.cos(z)
    z[1] *= 0.5
    return x, y, z


def anew_in_each_turn(x, y, n):
    x = x * y
    for _ in range(n):
        x = np.sin(x)
    x += y
    return x, y


def leapfrog(x, v, n):
    x, v = x * 1.0, v * 1.0
    pull = np.sin(x)
    for _ in range(n):
        v += pull * 0.1
        part = v[1:]
        for _ in range(2):
            part *= 0.5
            x += v * 0.1
        pull = np.sin(x)
    return x, v, pull


@pytest.mark.long
@pytest.mark.parametrize(
    "f",
    [
        leapfrog,
        written_by_the_caller,
        written_by_another_name,
        written_through_a_list,
        written_through_a_view,
        one_array_by_two_names,
        the_earlier_of_two,
        an_input_or_a_new_one,
        anew_in_each_turn,
    ],
)
def test_gradients_of_names_whose_array_is_written_after_the_loop(f):
    x, y = np.arange(3.0), np.arange(3.0) + 2
    compiled = jit(f)
    for n in (11, 12, 13):
        loss = lambda f, n=n: lambda x, y: sum(np.sum(z * z) * (k + 1) for k, z in enumerate(f(x, y, n)))
        expected = grad(loss(f), (0, 1))(x, y)
        for found in (jit(grad(loss(f), (0, 1)))(x, y), grad(loss(compiled), (0, 1))(x, y)):
            numpy.testing.assert_allclose(found, expected, rtol=1e-12)
    assert python_loops() == []


def test_gradients_of_loops_that_make_an_array_which_is_read_after_them():
    def f(x, y, n):
        s = 0.0
        for k in range(n):
            s += x[1, k % 3]
        else:
            part = x.T[1]
        return s * np.sum(part) + np.sum(y)

    x, y = np.arange(9.0).reshape(3, 3), np.arange(3.0)
    expected = grad(f)(x, y, 20)
    numpy.testing.assert_allclose(grad(jit(f))(x, y, 20), expected)
    numpy.testing.assert_allclose(jit(grad(f))(x, y, 20), expected)
    assert [why for why in python_loops() if "part of another array" not in why] == []


def made_in_each_turn(x, n):
    for k in range(n):
        y = np.sin(x) * x[k]
        at = np.where(y > 0.1, 1, 0)
    y[0] *= 2.0
    return np.sum(y * y * at)


def made_in_the_first_turn(x, n):
    for k in range(n):
        if k == 0:
            y = x * 2.0
        else:
            y = np.sin(y) + x
    return np.sum(y)


def made_in_some_turns(x, n):
    s = 0.0
    for k in range(n):
        if k > 12:
            s += np.sum(y * y)  # noqa: F821
        if x[k] > 0.5:
            y = x * x[k]
    return s + np.sum(y)


def an_input_at_first(x, n):
    x = x * 1.0
    for k in range(n):
        y = x
        if k > 2:
            y = x * x[k]
    y[0] *= 2.0
    return np.sum(x * y)


@pytest.mark.parametrize("f", [made_in_each_turn, made_in_the_first_turn, made_in_some_turns, an_input_at_first])
def test_gradients_of_names_that_a_loop_binds_to_arrays_first(f):
    x, along = np.linspace(0.1, 1, 20), np.linspace(1, 2, 20)
    loss, wanted = lambda x: f(x, 15), grad(f)
    jitted = jit(grad(f))
    for n in (15, 16, 2):
        if n > 2 or f is not made_in_some_turns:
            numpy.testing.assert_allclose(jitted(x, n), wanted(x, n), rtol=1e-12)
    curve = lambda x: np.sum(grad(loss)(x) * along)
    numpy.testing.assert_allclose(jit(grad(curve))(x), grad(curve)(x), rtol=1e-12, atol=1e-13)
    numpy.testing.assert_allclose(minnp.jvp(jit(loss), (x,), (along,))[1], np.sum(grad(loss)(x) * along), rtol=1e-12)
    batch = np.stack([x, x * 1.1])
    numpy.testing.assert_allclose(jit(minnp.vmap(grad(loss)))(batch), [grad(loss)(y) for y in batch], rtol=1e-12)
    if engine.available():
        assert python_loops() == []
    for g in (jit(f), jitted):
        with pytest.raises(UnboundLocalError):
            g(x, 0)


def test_names_that_a_loop_binds_to_arrays_of_other_lengths_are_pythons():
    def f(x, n):
        for k in range(n):
            y = x[: k + 1] * x[k]
        return np.sum(y)

    x = np.linspace(0.1, 1, 20)
    numpy.testing.assert_allclose(jit(grad(f))(x, 15), grad(f)(x, 15), rtol=1e-12)


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python")
def test_what_a_name_was_before_a_loop_that_binds_it_first():
    def threshold(image):
        hist = np.zeros(256, dtype=numpy.int64)
        for v in image.ravel():
            hist[v] += 1
        below, least, best, where = 0, 0, -1.0, 0
        for t in range(256):
            below += hist[t]
            if below == 0:
                continue
            least += t * hist[t]
            v = below * (least / below) ** 2
            if v > best:
                best, where = v, t
        return where, best, v

    def kept(x, n):
        y = "before"
        z = x[0]
        for k in range(n):
            y = x[k] * 2
            z = y + 1
        return y, z

    image = numpy.random.default_rng(0).integers(0, 256, (20, 20)).astype(numpy.uint8)
    compiled = jit(threshold)
    minnp.report(reset=True)
    for _ in range(3):
        assert compiled(np.array(image)) == threshold(np.array(image))
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith(("loop in", "jit of"))]
    x, compiled = np.array([1.5, 2.5]), jit(kept)
    for n in (2, 0, 1, 0, 2):
        assert compiled(x, n) == kept(x, n)
