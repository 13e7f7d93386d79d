"""Lists that grow in compiled loops."""

from __future__ import annotations

import linecache
import math

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.llvm import engine

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def running(x):
    out, places = [], []
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out.append(s)
        if x[i] > 0.5:
            places.append((i, x[i], True, x[i] > 0.7))
    return out, places, s


def of_two_kinds(x):
    out = []
    s = 0
    for i in range(len(x)):
        s = s + x[i] if i > 3 else i
        out.append(s)
    return out, np.array(out)


def that_fails(x):
    out = [1]
    try:
        for i in range(200):
            out.append(x[i])
            x[i] = 5.0
    except IndexError:
        out.append(-1)
    return out, x


def of_two_names(x):
    a = b = []
    for i in range(len(x)):
        a.append(x[i])
        b.append(i)
    return a


def that_is_read(x):
    a = []
    held = [a, 3]
    s = 0
    for i in range(len(x)):
        a.append(i)
        s += len(held[0])
    return a, s


def of_rows(x):
    rows = []
    for i in range(20):
        row = []
        for j in range(i):
            row.append([x[j], j])
        rows.append(row)
    return rows


def subsequence(x):
    tails = []
    for v in x:
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            if tails[middle] < v:
                low = middle + 1
            else:
                high = middle
        if low == len(tails):
            tails.append(v)
        else:
            tails[low] = v
    return tails


def filled(x):
    """A stack of tuples, made anew in the loop."""
    grid = (x[:144] > 0.4).reshape(12, 12)
    label, count = np.zeros((12, 12), dtype=np.int64), 0
    for i in range(12):
        for j in range(12):
            if grid[i, j] and not label[i, j]:
                count += 1
                stack = [(i, j)]
                while stack:
                    k, m = stack.pop()
                    if 0 <= k < 12 and 0 <= m < 12 and grid[k, m] and not label[k, m]:
                        label[k, m] = count
                        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                            stack.append((k + down, m + right))
    return label, count, stack


def queue(x):
    """A list that is given, and read at both ends."""
    q, order = [3, 1.5], []
    while q and len(order) < 90:
        first = q.pop(0)
        order.append(first)
        if len(order) % 3:
            q.append(first + len(order))
            q.append(x[len(order)] if first > 20 else first * 2)
        if len(q) > 9:
            q.pop()
    return q, order


def primes(x):
    found = [2]
    for k in range(3, 300, 2):
        for p in found:
            if p * p > k:
                found.append(k)
                break
            if k % p == 0:
                break
    return found


def that_grows_under_its_loop(x):
    out, seen = [1], 0
    for i in range(3):
        for v in out:
            seen += v
            if len(out) < 20:
                out.append(v + i)
    return out, seen


def of_long_ones(x):
    weights, pairs = [float(k) for k in range(30)], tuple((k, k * 0.5) for k in range(40))
    total = 0.0
    for i in range(30):
        total += weights[i] * weights[-1 - i]
    for k, (a, b) in enumerate(pairs):
        total += a * b * k
    for w in weights:
        total -= w
    counts = [0] * 20
    for v in x:
        counts[int(v * 20)] += 1
    return total, counts


def cleared(x):
    out, last = [], 0
    for i in range(len(x)):
        out.append(i)
        if x[i] > 0.9:
            last = out[-1] + out[0]
            out.clear()
    return out, last


def past_the_end(x):
    out = [1, 2]
    for i in range(5):
        x[i] = out[-i]
    return out


def popped_empty(x):
    out = [1, 2]
    for i in range(5):
        x[i] = out.pop()
    return out


def caught(x):
    out = [1, 2]
    try:
        for i in range(5):
            out[i] = 7
            x[i] = 1
    except IndexError:
        out.append(9)
    return out, x


def known_by_another(x):
    a = [1, 2]
    b = a
    n = 0
    for i in range(9):
        a.append(i)
        n += len(b) + b[i]
    return a, n


def held_by_another(x):
    a, n = [1, 2], 0
    rows = [a]
    for i in range(9):
        a.append(i)
        n += a[-1]
    return rows, n


def two_at_once(x):
    for i in range(6):
        a = b = [i]
        a.append(1)
        b.append(a[0])
    return a, b, a is b


def bound_anew(x):
    out, every = [1, 2, 3], []
    for i in range(5):
        every.append(out[-1])
        out = [i]
        out.append(out[0] + 10)
    return out, every


def bound_at_times(x):
    n = 0
    for i in range(9):
        if x[i] > 0.5:
            own = [i]
        if i > 6:
            own.append(i)
            n += own[0]
    return n, own


def beyond_64_bits(x):
    out = [1]
    for _ in range(70):
        out.append(out[-1] * 2)
    return out


def given_to_a_function(x):
    def push(to, v):
        to.append(v)

    out = [0]
    for i in range(9):
        push(out, i)
        out[0] += 1
    return out


def truths(x):
    seen, kinds = [False] * 20, []
    for i in range(20):
        seen[i] = x[i] > 0.5
        if not seen[i]:
            seen[i] = True
            kinds.append(i)
    return seen, kinds


def flooded(x):
    g, stack, n = x[:100].reshape(10, 10), [(5, 5)], 0
    while stack:
        i, j = stack.pop()
        if not (0 <= i < 10 and 0 <= j < 10) or g[i, j] > 0.6:
            continue
        g[i, j] = 1.0
        n += 1
        stack += [(i + 1, j), (i - 1, j)]
        stack.extend(((i, j + 1), (i, j - 1)))
    return n, stack


def extended_by_itself(x):
    out = ends = [1]
    for i in range(len(x)):
        out += [i, out[-1] + x[i]]
    return out, ends


def extended_by_what_is_not_in_the_source(x):
    out, more = [1], (2, 3)
    for i in range(20):
        out += more
        out.extend(range(i))
    return out


def kinds(x):
    if isinstance(x, (list, tuple)):
        return [type(x), *map(kinds, x)]
    return (x.dtype, x.tolist()) if isinstance(x, onp.ndarray) else (type(x), x)


COMPILED = [running, of_two_kinds, subsequence, filled, queue, primes, of_long_ones, cleared, bound_at_times]
COMPILED += [flooded]
OTHERS = [that_fails, of_two_names, that_is_read, of_rows, that_grows_under_its_loop, past_the_end, popped_empty]
OTHERS += [caught, known_by_another, held_by_another, two_at_once, bound_anew, beyond_64_bits, given_to_a_function]
OTHERS += [extended_by_itself, extended_by_what_is_not_in_the_source]


def outcome(f, x):
    try:
        return kinds(f(x)), kinds(x)
    except Exception as error:
        return type(error), str(error), kinds(x)


@pytest.mark.long
@pytest.mark.parametrize("f", [*COMPILED, *OTHERS, truths])
def test_lists_in_loops(f):
    g = jit(f)
    minnp.report(reset=True)
    for seed in range(3):
        x = onp.random.default_rng(seed).random(150 + seed)
        assert outcome(g, x.copy()) == outcome(f, x.copy())
    left = [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    assert not left or f not in COMPILED


def test_a_list_that_is_given_stays_the_same():
    def f(stack, x):
        for i in range(len(x)):
            if len(stack) > 3:
                x[i] = stack.pop() + stack[0]
            stack.append(i)
        return stack

    ours, theirs, a, b = [1.5, 2], [1.5, 2], onp.zeros(9), onp.zeros(9)
    for _ in range(3):
        assert jit(f)(ours, a) is ours
        f(theirs, b)
        assert kinds(ours) == kinds(theirs)
        onp.testing.assert_array_equal(a, b)


def test_gradients_of_loops_that_read_lists():
    def f(x):
        weights = [0.5 * k for k in range(20)]
        total, out = 0.0, []
        for i in range(len(x)):
            total += weights[i] * x[i] ** 2
        for i in range(len(x)):
            out.append(x[i])
            total += out[-1] * out[0]
        return total

    x = np.arange(1.0, 6)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        onp.testing.assert_allclose(g(x), onp.arange(5) * onp.arange(1.0, 6) + [16.0, 1, 1, 1, 1])


DAYS = (31, 28, 31, 30)
TURNS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def rules(x):
    table = [(110 >> k) & 1 for k in range(8)]
    a = (x > 0.5).astype(int)
    for _ in range(3):
        b = a.copy()
        for i in range(1, len(a) - 1):
            b[i] = table[(a[i - 1] << 2) | (a[i] << 1) | a[i + 1]]
        a = b
    return a


def from_behind(x):
    weights, total, days = [0.25, 0.5, 1.0, 2.0], 0.0, 0
    for v in x:
        k = int(4 * v)
        total += weights[-k - 1] * weights[bool(v > 0.5)]
        days += DAYS[k]
    return total, days


def rows_of_numbers(x):
    i = j = d = 0
    seen = np.zeros((5, 5))
    for v in x:
        d = (d + (1 if v > 0.5 else -1)) % 4
        di, dj = TURNS[d]
        i, j = i + di, j + dj * TURNS[d][1] ** 2
        seen[i % 5, j % 5] += 1
    return seen, i, j


def gone_over_with_others(x):
    roots, names, s, n = [1 + 0j, -0.5 + 0.5j, -0.5 - 0.5j], (3, 1, 4), 0.0, 0
    for i in range(len(x)):
        z = x[i] - 0.5 + (x[0] - 0.5) * 1j
        for k, root in enumerate(roots, 1):
            if abs(z - root) < 0.6:
                n += k * i
                break
        for name, day in zip(names, DAYS):
            s += name * day * x[i]
        for v, name in zip(x, names):
            s -= v * name
        n += sum(j * name for j, name in enumerate(names))
    return n, s, k, name


def made_in_the_loop(x):
    s = 0.0
    for i in range(len(x)):
        t = [x[i], s, 2 * x[i]]
        for k in range(3):
            s = 0.1 * s + 0.1 * t[k] * t[i % 3]
    return s


def a_tuple_named_as_numbers_in_between(x):
    t = (0.0,) * 12
    for i in range(len(x)):
        a = x[i] * 2
        c = a * (x[i] * 3 + t[3]) + x[i] * t[5]
        t = (t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11] + x[i] * a, t[0] + c)
    return t


def behind_the_end_of_a_list(x):
    weights = [1.0, 2.0]
    for i in range(len(x)):
        x[i] = weights[int(9 * x[i])]


def before_a_tuple(x):
    for i in range(len(x)):
        x[i] = DAYS[int(-9 * x[i])]


def of_several_types(x):
    found, s = [], 0
    for v in x:
        found.append([1, 2.0, v][int(3 * v)])
        s += (True, 2)[int(2 * v)]
    return found, s


def of_other_things(x):
    return sum([TURNS, 2][int(v)][0][1] for v in x)


TABLES = [rules, from_behind, rows_of_numbers, gone_over_with_others, made_in_the_loop, of_several_types]
TABLES += [a_tuple_named_as_numbers_in_between]
RAISING = [behind_the_end_of_a_list, before_a_tuple, of_other_things]


@pytest.mark.parametrize("f", [*TABLES, *RAISING], ids=lambda f: f.__name__)
def test_items_whose_places_are_computed(f):
    g = jit(f)
    minnp.report(reset=True)
    for seed in range(3):
        x = onp.random.default_rng(seed).random(50 + seed)
        assert outcome(g, x.copy()) == outcome(f, x.copy())
    left = [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    assert not left or f not in TABLES


def test_items_of_a_list_outside_are_read_anew(monkeypatch):
    held = [1.0, 2.0, 3.0]

    def f(x):
        s = 0.0
        for v in x:
            s += held[int(3 * v)] * DAYS[int(4 * v)]
        return s

    g, x = jit(f), onp.random.default_rng(1).random(40)
    for k in range(4):
        assert g(x) == f(x)
        held[k % 3] += 1.0
        monkeypatch.setitem(globals(), "DAYS", (31, 29 + k, 31, 30))


LONG, PAIRS = [7 * k % 256 for k in range(256)], tuple((k % 3, 0.5 * k) for k in range(20))


def test_long_lists_outside_are_read_anew(monkeypatch):
    monkeypatch.setitem(globals(), "LONG", LONG.copy())
    held = [0.5] * 20

    def at(k):
        return held[k] + len(held)

    def f(x):
        h, s = 0, 0.0
        for i in range(len(x)):
            h = LONG[(h ^ int(256 * x[i])) & 255] + LONG[-1]
            a, b = PAIRS[i % len(PAIRS)]
            s += a * b * at(i % 20)
        for v, w in zip(x, LONG):
            s -= v * w
        for w in held:
            s += w
        return h, s

    g = jit(f)
    minnp.report(reset=True)
    for k in range(4):
        x = onp.random.default_rng(k).random(40 + k)
        assert outcome(g, x) == outcome(f, x)
        LONG[k], held[k] = 200 + k, 1.5
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    LONG[-1], held[-1] = 2.5, 3  # others are of other types, or behind the end
    assert outcome(g, x) == outcome(f, x)
    del LONG[20:]
    assert outcome(g, x) == outcome(f, x)


def test_long_lists_outside_that_the_loop_writes_are_pythons():
    held, y = [1.0] * 20, onp.ones(20)

    def f(x):
        same, s = held, 0.0
        for i in range(len(x)):
            same[i] += x[i]
            s += held[i] * held[0]
        return s

    g = jit(f)
    for _ in range(3):
        before = held[:]
        expected, after = f(y), held[:]
        held[:] = before
        assert (g(y), held) == (expected, after)


def test_gradients_of_items_whose_places_are_computed():
    def f(x, places):
        t, total = [x[0], 2 * x[1], x[2]], 0.0
        for i in range(len(places)):
            w = (x[i], 0.5, x[i] ** 2)
            total += t[places[i]] * w[places[i] - 1] * [1.0, 2.0, 3.0][places[i]]
        return total

    x, places = onp.linspace(0.5, 2, 20), onp.arange(20) % 3
    expected = [(f(x + d, places) - f(x - d, places)) / 2e-6 for d in 1e-6 * onp.eye(20)]
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        onp.testing.assert_allclose(g(np.array(x), places), expected, rtol=1e-7)


PARTS = [
    "out.append({})",
    "out.append({} * 0.5)",
    "if out: s += out.pop()",
    "if len(out) > 2: s += out.pop(0)",
    "if out: out[int({}) % len(out)] = {}",
    "if len(out) > 1: out[-1] += out[0]",
    "if out and out[-1] > {}: s -= out[0]",
    "for v in out: s += v",
    "for k, v in enumerate(out): s += k * v",
    "if len(out) > 9: out.clear()",
    "if s > 1e6: s = 0",
    "own = [{}, {}]",
    "own.append(s)",
    "s += own[len(own) // 2]",
    "if len(out) > 15: break",
]


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(4, 12))])
def test_random_programs_of_lists(seed):
    r = onp.random.default_rng(seed)
    number = lambda: ["i", "s", "x[i]", "2", "i % 3", "len(out)"][r.integers(6)]
    lines = [PARTS[k].format(number(), number()) for k in r.integers(0, len(PARTS), 8)]
    start = ["[]", "[1]", "[1.5, 2]"][r.integers(3)]
    body = "\n".join([f"    out, own, s = {start}, [3], {r.integers(2)}", "    for i in range(len(x)):"])
    text = f"def f(x):\n{body}\n" + "".join(f"        {t}\n" for t in lines) + "    return out, own, s, x\n"
    name = f"<lists {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space: dict = {}
    exec(compile(text, name, "exec"), space)
    g = jit(space["f"])
    for x in (onp.arange(12), onp.arange(12) * 0.25, onp.arange(12)):
        assert outcome(g, x.copy()) == outcome(space["f"], x.copy()), text


def test_loops_that_append_are_compiled():
    def f(into, x):
        for v in x:
            into.append(v * 2)

    minnp.report(reset=True)
    into, g = ["a"], jit(f)
    for _ in range(2):
        g(into, onp.arange(100))
    assert into == ["a", *range(0, 200, 2), *range(0, 200, 2)]
    assert type(into[-1]) is onp.int64
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_losses_in_a_list_are_those_of_a_compiled_loop():
    """Other data are no other program."""

    def f(w, n):
        losses = []
        for _ in range(n):
            w -= 0.1 * w
            losses.append(float((w**2).mean()))
            if len(losses) > 2 and losses[-2] - losses[-1] < 1e-3:
                break
        return losses

    g = jit(f)
    minnp.report(reset=True)
    for seed in range(4):
        w = onp.random.default_rng(seed).random(5)
        want, got = f(w.copy(), 40), g(w.copy(), 40)
        onp.testing.assert_allclose(got, want, rtol=1e-14)
        assert type(got) is list and {*map(type, got)} == {float}
    assert g.captures == 1
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")]


def test_short_loops_that_append_by_branches_have_one_program():
    """A graph of their turns would hold one way through them, and there are as many as data."""

    def f(x):
        out = []
        for _ in range(4):
            whole = math.floor(x)
            out.append(whole)
            if x - whole < 1e-9:
                break
            x = 1 / (x - whole)
        return out

    g = jit(f)
    for x in (3.75, 2.4142, 3.14159, 5.0, 0.577):
        assert g(x) == f(x)
    assert g.captures == 1


def rows_of_copies(x, n):
    path = [x.copy()]
    for _ in range(n):
        x = x - 0.1 * np.sin(x)
        path.append(x.copy())
    return np.array(path)


def rows_of_a_name_bound_anew(x, n):
    out, y = [], x.copy()
    for _ in range(n):
        y = y + 0.01 * np.array([y[1], -y[0], y[2]])
        out.append(y)
    out[0][0] = 5
    return out


def rows_by_a_branch(x, n):
    out = []
    for k in range(n):
        y = x * k
        if y[0] > 2:
            out.append(y)
    return out


def matrices(x, n):
    out, a = [], np.outer(x, x)
    for _ in range(n):
        b = a * x[1]
        x = b[0] / b[0, 1]
        out.append(a * x[0])
    return out


def of_several_shapes(x, n):
    out = []
    for k in range(n):
        out.append(x[: k % 2 + 1] * 2)
    return out


def written_in_place_later(x, n):
    out, y = [], x.copy()
    for _ in range(n):
        y = y * 1.5
        out.append(y)
        y[0] += 1
    return out


def written_through_a_view(x, n):
    out, y = [], x.copy()
    for _ in range(n):
        y = y * 1.5
        v = y[1:]
        out.append(y)
        v[0] = 3
    return out


def written_after_the_loop(x, n):
    out, y = [], x.copy()
    for _ in range(n):
        y = y * 0.5
        z = y
        out.append(y)
    z[0] = 100
    return out


def the_argument_itself(x, n):
    out, y = [], x
    for _ in range(n):
        out.append(y)
        y = y * 0.5
    x[0] = 77
    return out


def one_array_often(x, n):
    out = []
    for k in range(n):
        y = x * k
        for _ in range(2):
            out.append(y)
    out[0][0] = 9
    return out


def one_array_in_two_lists(x, n):
    out, more = [], []
    for k in range(n):
        y = x * k
        out.append(y)
        more.append(y)
    out[0][0] = 9
    return out, more


def views(x, n):
    out = []
    for _ in range(n):
        out.append(x[1:])
        x = x * 0.5
    out[0][0] = 7
    return out


def that_raises(x, n):
    out = []
    for k in range(n):
        out.append(np.sqrt(abs(x)) * k)
        if k == 90:
            raise ValueError(str(out[-1]))
    return out


ROWS = [rows_of_copies, rows_of_a_name_bound_anew, rows_by_a_branch, matrices]
PYTHONS_ROWS = [of_several_shapes, written_in_place_later, written_through_a_view, written_after_the_loop]
PYTHONS_ROWS += [the_argument_itself, one_array_often, one_array_in_two_lists, views, that_raises]


@pytest.mark.long
@pytest.mark.parametrize("f", [*ROWS, *PYTHONS_ROWS], ids=lambda f: f.__name__)
def test_arrays_appended_to_lists(f):
    """A list whose arrays nobody can tell from those that were appended is compiled code's; any other is Python's."""
    minnp.report(reset=True)
    g = jit(f)
    for n in (300, 300, 1, 2):
        x, y = np.array([1.0, 2.0, 0.5]), np.array([1.0, 2.0, 0.5])
        got, want = outcome(lambda x: g(x, n), x), outcome(lambda x: f(x, n), y)  # noqa: B023
        assert got == want
    said = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    assert bool(said) == (f in PYTHONS_ROWS), said


def test_gradients_of_loops_that_append():
    def f(x):
        out = []
        for i in range(len(x)):
            out.append(x[i] ** 2)
        return sum(out)

    x = np.arange(20.0)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        onp.testing.assert_allclose(g(x), 2 * x)
