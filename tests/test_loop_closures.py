"""Functions that write to variables of others (nonlocal, global, items of lists outside), called in compiled loops."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, jvp, vmap
from minnp.core.llvm import engine
from minnp.core.loops import whole
from tests.derivatives import central

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


@pytest.fixture(autouse=True)
def reported():
    minnp.report(reset=True)
    yield
    minnp.report(reset=True)


def python_loops():
    """The loops that were Python's, as the report has them."""
    return [r["why"] for r in minnp.report() if r["function"].startswith("loop in")]


def flat(x):
    return [z for y in x for z in flat(y)] if type(x) in (tuple, list) else [x]


COUNT = 0
TABLE = [0.0, 1]


def counts(x):
    m, n = 0.0, 0

    def up(z):
        nonlocal m, n
        n += 1
        m += 0.7 * (z - m)
        return m

    def get():
        return m, n

    s = 0.0
    for v in x:
        s += up(v) ** 2 + m
        a, b = get()
        s += a * b
    return s, m, n, get()


def lists(x):
    st = [0.0, 0]

    def up(z):
        st[0] += 0.7 * (z - st[0])
        st[-1] += 1
        return st[0]

    s = 0.0
    for v in x:
        s += up(v) + st[1]
    return s, st


def order(x):
    m = 1.0

    def up(z):
        nonlocal m
        m = m * 0.5 + z
        return m

    s = 0.0
    for v in x:
        s += m + up(v)
        s += m * up(v) - m
        s += up(v) + m
        s += max(m, up(v))
        q = (m, up(v), m)
        s += q[0] * q[1] - q[2] * 3
        s = s + m if m > up(v) else s - m
    return s


def order_aug(x):
    m = 1.0

    def up(z):
        nonlocal m
        m = m * 0.5 + z
        return m

    def twice(z):
        nonlocal m
        m += up(z) + m
        m = m + up(z)

    for v in x:
        twice(v)
    return m


def global_count(x):
    global COUNT
    COUNT = 0
    s = 0.0
    for v in x:
        s += bump(v) + COUNT
    return s, COUNT


def bump(v):
    global COUNT
    COUNT += 1
    return v * COUNT


def make():
    k = 0

    def nxt():
        nonlocal k
        k += 1
        return k

    return nxt


def factory(x):
    a, b = make(), make()
    s = 0.0
    for v in x:
        s += v * a() + b()
        s += a()
    return s, a(), b()


def same_factory(x):
    a = make()
    b = a
    s = 0.0
    for v in x:
        s += v * a() + b()
        s += a()
    return s, a(), b()


def global_list(x):
    TABLE[0] = 0.0
    TABLE[1] = 0
    s = 0.0
    for v in x:
        TABLE[1] += 1
        TABLE[0] = TABLE[0] * 0.5 + v
        s += TABLE[0]
    return s, list(TABLE)


def other_name(x):
    st = [0.0, 0]
    al = st

    def up(z):
        st[0] += 0.7 * (z - st[0])
        st[-1] += 1
        return al[0]

    s = 0.0
    for v in x:
        s += up(v) + al[1]
    return s, st


def local_alias(x):
    st = [0.0, 0]

    def up(z):
        a = st
        a[0] += z
        st[1] += 1
        return a[0] + a[1]

    s = 0.0
    for v in x:
        s += up(v)
    return s, st


def raises(x):
    m, n = 0.0, 0
    st = [0]

    def up(k):
        nonlocal m, n
        n += 1
        st[0] += 1
        m += x[k]
        return m

    s = 0.0
    try:
        for k in range(100):
            s += up(k)
    except IndexError:
        pass
    return s, m, n, st


def binds_too(x):
    m = 0.0

    def up(z):
        nonlocal m
        m += z
        return m

    s = 0.0
    for v in x:
        m *= 0.5
        s += up(v)
    return s, m


class S:
    def __init__(self):
        self.state = [0.0, 0]

    def step(self, v):
        self.state[0] = self.state[0] * 0.5 + v
        self.state[1] += 1
        return self.state[0]


def attribute_list(x):
    o = S()
    s = 0.0
    for v in x:
        s += o.step(v) * o.state[1]
    return s, o.state


def arrays(x):
    m = np.zeros(3)

    def up(z):
        nonlocal m
        m = m * 0.5 + z
        return m.sum()

    s = 0.0
    for v in x:
        s += up(v)
    return s, m


def dt(x):
    st = [0, 0.0]

    def up(z):
        st[0] = st[0] + z if z > 0 else st[0]
        return st[0]

    s = 0.0
    for v in x:
        s += up(v)
    return s, st[0]


PROGRAMS = [counts, lists, order, order_aug, global_count, factory, same_factory, global_list, other_name, local_alias]
PROGRAMS += [raises, attribute_list, arrays, dt]


@pytest.mark.parametrize("f", [*PROGRAMS, binds_too], ids=lambda f: f.__name__)
def test_what_functions_write_outside(f):
    want, g = f(numpy.linspace(-1, 1, 20)), jit(f)
    for _ in range(4):
        for a, b in zip(flat(want), flat(g(np.linspace(-1, 1, 20))), strict=True):
            assert type(a) is type(b) or isinstance(a, numpy.ndarray)
            numpy.testing.assert_allclose(b, a, rtol=1e-12)
    if engine.available() and f in PROGRAMS:
        assert python_loops() == []


def squares_in_a_variable(x):
    m = 0.0

    def up(z):
        nonlocal m
        m += 0.7 * (z - m) * z
        return m

    s = 0.0
    for v in x:
        s += up(v) ** 2 + m
    return s


def squares_in_a_list(x):
    st = [0.0, 0]

    def up(z):
        st[0] += 0.7 * (z - st[0]) * z
        st[-1] += 1
        return st[0]

    s = 0.0
    for v in x:
        s += up(v) ** 2 + st[1]
    return s + st[0]


class Squares:
    def __init__(self):
        self.state = [0.0, 0]

    def step(self, v):
        self.state[0] = self.state[0] * 0.5 + v * v
        self.state[1] += 1
        return self.state[0]


def squares_in_an_attribute(x):
    o = Squares()
    s = 0.0
    for v in x:
        s += o.step(v) ** 2 * o.state[1]
    return s


def squares_in_an_array(x):
    m = np.zeros(3)

    def up(z):
        nonlocal m
        m = m * 0.5 + z * z
        return (m * m).sum()

    s = 0.0
    for v in x:
        s += up(v)
    return s + m[0]


@pytest.mark.parametrize("f", [squares_in_a_variable, squares_in_a_list, squares_in_an_attribute, squares_in_an_array])
def test_derivatives_of_what_functions_write_outside(f):
    x, t = numpy.linspace(-1, 1.3, 25), numpy.cos(numpy.arange(25.0))
    turned = lambda x: (grad(f)(x) * t).sum()
    first, second = central(f, x), central(lambda x: float(turned(np.array(x))), x)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        for _ in range(2):
            numpy.testing.assert_allclose(g(np.array(x)), first, rtol=1e-6, atol=1e-7)
    numpy.testing.assert_allclose(jit(grad(turned))(np.array(x)), second, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(jvp(jit(f), (np.array(x),), (np.array(t),))[1], first @ t, rtol=1e-6)
    batch = numpy.stack([x, x * 0.5, x - 1])
    numpy.testing.assert_allclose(vmap(jit(f))(np.array(batch)), [f(b) for b in batch], rtol=1e-12)
    if engine.available():
        assert python_loops() == []


def test_the_variable_of_another_call_is_another_one():
    """A function that an earlier call made writes to that call's variable."""
    kept = []

    def f(x):
        m = 0.0

        def up(z):
            nonlocal m
            m += z
            return m

        kept.append(up)
        s = 0.0
        for v in x:
            s += kept[0](v) + m
        return s, m

    def run(f):
        kept.clear()
        return [f(np.linspace(0, 1, 20)) for _ in range(4)]

    want, g = run(f), jit(f)
    assert numpy.allclose(want, run(g)) and numpy.allclose(want, run(g))


def test_attributes_are_bound_and_lists_filled():
    class Count:
        n = 0

        def __init__(self):
            self.n = 0

    def f(x, found):
        count = Count()
        for v in x:
            count.n += 1
            if v > 0:
                found.append(v * count.n)
        return count.n

    for _ in range(3):
        want, got = [0.5], [0.5]
        assert f(numpy.linspace(-1, 1, 20), want) == jit(f)(np.linspace(-1, 1, 20), got) == 20
        numpy.testing.assert_allclose(got, want)


def test_one_list_under_two_names():
    def f(x, a, b):
        def up(z):
            a[0] += z
            return b[0]

        s = 0.0
        for v in x:
            s += up(v)
        return s, a, b

    def run(f, one):
        a = [0.0, 1.0]
        return f(np.linspace(0, 1, 20), a, a if one else [0.0, 1.0])

    g = jit(f)
    for one in (False, True, False, True):
        assert numpy.allclose(flat(run(f, one)), flat(run(g, one)))


# ------------------------------------------------------------------ functions that are made inside
G = 2.5


def late(x):
    k = 1.0

    def f(v):
        return v * k

    s = 0.0
    for v in x:
        k = k * 0.9
        s += f(v)
    k = 10.0
    return s + f(x[0])


def loop_variable(x):
    s = 0.0
    for j in range(len(x)):
        f = lambda v: v * j  # noqa: B023 (it is the one of the turn)
        g = lambda v, j=j: v + j
        s += f(x[j]) + g(x[j])
    return s + f(1.0) + g(2.0)


def chain(x):
    n, m = 0, 1.0

    def outer(v):
        nonlocal n
        n += 1

        def inner(w):
            nonlocal n, m
            n += 2
            m = m * 0.5 + w
            return m * n

        return inner(v) + inner(v * 2) + n

    s = 0.0
    for v in x:
        s += outer(v) + n * m
    return s, n, m


def shadows(x):
    s, v = 0.0, 3.0

    def f(x, s=2.0):
        t = x * s
        for v in range(3):
            t += v * s * 0.1
        return t + G

    for k in range(len(x)):
        t = x[k]
        s += f(t) + f(x=t, s=v) + f(s=1.0, x=s) * 0.1 + t
    return s, v


def helper(f, a, b):
    return f(a) - f(b)


def passed(x):
    c = 0

    def f(v):
        nonlocal c
        c += 1
        return v * v + c

    s = 0.0
    for k in range(1, len(x)):
        s += helper(f, x[k], x[k - 1]) + helper(lambda q: q * c, x[k], 1.0)
    return s, c


def conditional(x):
    s = 0.0
    if x[0] > 0:

        def f(v):
            return v
    else:

        def f(v):
            return -v

    for v in x:
        s += f(v)
    return s


def arrays_inside(x):
    out = np.zeros(len(x))
    n = 0

    def put(k, v):
        nonlocal n
        if v > 0:
            out[k] += v * 2
            n += 1
            return n
        out[k] = -1
        return 0

    s = 0
    for k, v in enumerate(x):
        s += put(k, v)
    return out, s, n


def lists_inside(x):
    found = []
    state = [0.0, 1]

    def add(v):
        state[0] += v
        state[1] = state[1] + 1
        if v > 0:
            found.append(state[0])
        return len(found)

    s = 0
    for v in x:
        s += add(v)
    return s, found, state


def runge(x):
    def rhs(t, y):
        return -y * x[0] + np.array([t, 1.0])

    y = np.ones(2)
    t = 0.0

    def step(h):
        nonlocal t
        k1 = rhs(t, y)
        k2 = rhs(t + h / 2, y + h / 2 * k1)
        t += h
        return y + h * k2

    for _ in range(20):
        y = step(0.1)
    return y, t


def in_branches(x):
    m = 0.0

    def up(v):
        nonlocal m
        if v > 0.5:
            m += v
            return m
        elif v < -0.5:
            return -m
        m = m * 0.9
        return m + 1

    s = 0.0
    for v in x:
        if v > 0:
            s += up(v)
        else:
            while m > 0.3:
                s += up(0.1)
            s -= up(v) if v < -0.2 else m
        s += m
    return s, m


def recursive(x):
    def f(k):
        return x[k] if k == 0 else x[k] + 0.5 * f(k - 1)

    s = 0.0
    for k in range(len(x)):
        s += f(k)
    return s


def before_it_is_bound(x):
    def f(v):
        return v * late_name

    s = 0.0
    for v in x:
        s += v
    late_name = s
    for v in x:
        s += f(v)
    return s


def unbound(x):
    def f(v):
        return v * nothing

    s = 0.0
    for k in range(len(x)):
        s += x[k]
        if k == 5:
            s += f(s)
    nothing = 1.0
    return s + nothing


def same_names(x):
    def make(k):
        def g(v):
            return v * k

        return g

    s = 0.0
    for v in x:
        s += make(2.0)(v)
    return s


def integers(x):
    n = 0

    def count(k):
        nonlocal n
        n = n * 3 + k
        return n % 7

    s = 0
    for k in range(len(x)):
        s += count(k) * k
    return s, n


INSIDE = [late, chain, shadows, passed, arrays_inside, lists_inside, runge, in_branches, before_it_is_bound, integers]
OTHERS = [loop_variable, conditional, recursive, unbound, same_names]
SCALAR = [late, loop_variable, chain, shadows, passed, conditional, in_branches, recursive, before_it_is_bound]


def outcome(f, x):
    try:
        return flat(f(x))
    except UnboundLocalError as error:
        return [str(error)]
    except NameError as error:
        return [str(error)]


@pytest.mark.parametrize("f", [*INSIDE, *OTHERS], ids=lambda f: f.__name__)
def test_functions_that_are_made_inside(f):
    """As a program with what makes them, and in compiled loops."""
    one, g = whole(f) or f, jit(f)
    want = outcome(f, numpy.linspace(-1, 1.2, 24))
    for run in (one, g, g, g):
        for a, b in zip(want, outcome(run, np.linspace(-1, 1.2, 24)), strict=True):
            assert type(a) is type(b) or isinstance(a, numpy.ndarray)
            assert a == b if isinstance(a, str) else numpy.allclose(a, b, rtol=1e-12)
    if engine.available() and f in INSIDE:
        assert all(found.row is not None for variants, _ in one.site.programs.values() for found in variants)


@pytest.mark.long
@pytest.mark.parametrize("f", SCALAR, ids=lambda f: f.__name__)
def test_derivatives_of_functions_that_are_made_inside(f):
    x, t = numpy.linspace(-1.03, 1.21, 24), numpy.cos(numpy.arange(24.0))
    value = lambda x: flat(f(x))[0]
    turned = lambda x: (grad(value)(x) * t).sum()
    first, second = central(value, x), central(lambda x: float(turned(np.array(x))), x)
    for g in (grad(value), jit(grad(value)), grad(jit(value)), grad(lambda x: flat(jit(f)(x))[0])):
        for _ in range(2):
            numpy.testing.assert_allclose(g(np.array(x)), first, rtol=1e-5, atol=1e-5)
    numpy.testing.assert_allclose(jit(grad(turned))(np.array(x)), second, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(jvp(jit(value), (np.array(x),), (np.array(t),))[1], first @ t, rtol=1e-5)
    batch = numpy.stack([x, x * 0.5, x - 0.1])
    numpy.testing.assert_allclose(vmap(jit(value))(np.array(batch)), [value(b) for b in batch], rtol=1e-12)


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python unreported")
def test_the_report_names_the_users_line_for_loops():
    @jit
    def distinct(x):
        seen = set()
        for i in range(len(x)):
            seen.add(int(x[i]))
        return len(seen)

    assert [distinct(np.arange(100)) for _ in range(2)] == [100] * 2
    where = [r["where"] for r in minnp.report() if r["function"].startswith("loop in")]
    assert where and where[0].startswith(__file__)
