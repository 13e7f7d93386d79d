"""Lists that a loop makes anew, and names of lists that stand for another one after a turn."""
# ruff: noqa: B007, F821, F841, SIM113 - programs as users write them

from __future__ import annotations

import copy

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import jit
from minnp.core.llvm import engine

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


def two_rows_exchanged(n):
    prev, cur = [0] * n, [0] * n
    for i in range(n):
        for j in range(n):
            cur[j] = prev[j] + i * j
        prev, cur = cur, prev
    return prev, cur, prev is cur


def exchanged_by_a_third_name(n):
    prev, cur = [0.5] * n, [0] * n
    for i in range(n):
        for j in range(1, n):
            cur[j] = prev[j - 1] + i * j
        tmp = prev
        prev = cur
        cur = tmp
    return prev, cur, tmp is cur


def items_set_by_another_name(n):
    a = [0] * n
    s = 0
    for i in range(n):
        b = a
        b[i] = i
        s += a[i]
    return a, b, s, a is b


def the_longest(n):
    best, score = [], -1
    for i in range(n):
        row = []
        for j in range(i % 7):
            row.append(j * i)
        if len(row) > score:
            best, score = row, len(row)
    return best, row, best is row


def one_list_of_two_names(n):
    best, score = [], -1
    for i in range(n):
        row = [i]
        row.append(i + 0.5)
        best = row
    return best, row, best is row


def given_and_exchanged(n):
    a = [1, 2, 3]
    b = [4, 5, 6]
    k = [a, b]
    for i in range(n):
        a[1] += 1
        b[2] += a[1]
        a, b = b, a
    return a, b, k, a is k[0], b is k[1]


def given_and_exchanged_back(n):
    a = [1, 2, 3]
    b = [4, 5, 6]
    k0, k1 = a, b
    for i in range(n):
        a[1] += 1
        b[2] += a[1]
        a, b = b, a
    return a, b, a is k0, b is k1, a is k1, b is k0, k0, k1


def two_names_at_once(n):
    tot = 0
    for i in range(n):
        a = b = [0] * n
        a[i] = 5
        tot += b[i]
    return tot, a, b, a is b


def bound_at_the_end_of_a_turn(n):
    tot = 0
    for i in range(n):
        if i > 3:
            tot += q[0]
        q = [i] * (i + 1)
        p = q
    return tot, q, p is q


def returned_from_within(n):
    r = [3.5] * n
    for i in range(n):
        r[i] = i
        if i == 7:
            return r, i
    return [0], 0


def from_behind(n):
    r = [3.5] * n
    for i in range(n):
        r[-i - 1] = i
        r[-2] += r[-1]
    return r


def of_fixed_length(n):
    r = [False] * n
    q = [float("inf")] * n
    m = [-1] * 3
    for i in range(n):
        if not r[(i * 7) % n] and q[i] > i:
            r[i] = True
            q[i] = 0.5 * i
        m[i % 3] += i
    return r, q, m, r[1:4], q[-3:], m[:2], sum(m), max(q), min(m)


def bits_of_several_types(x):
    r = [0] * 5
    for i in range(20):
        r[i % 5] ^= i
        if i % 3 == 1:
            r[i % 4] ^= x[i]
    return r


def parts_and_copies(n):
    r = list(range(n))
    tot = 0
    for i in range(n):
        q = r[i : i + 3]
        q2 = r[:-i]
        tot += len(q) + sum(q2)
        p = list(q)
        p2 = r.copy()
        p2[0] = 7
        tot += p2[0] + r[0] + p[-1]
        r = r[1:] + [tot % 7]
    return r, q, tot


def by_branches(n):
    if n > 5:
        cur = [1]
    for i in range(n):
        if i % 3 == 0:
            nxt = [i]
        else:
            nxt = cur
        if i % 2:
            cur = nxt + [i]
    return cur, nxt


def both_set(a, k):
    a[0] = k
    b = a
    b[1] = k
    return b


def longer_by_another_name(n):
    a = [0]
    s = 0
    for i in range(n):
        b = a
        a.append(i)
        s += len(b)
    return a, b, s, a is b


def given_and_changed_and_left(n):
    a = [1, 2, 3]
    keep = a
    for i in range(n):
        a[1] += 1
        a = [i, i + 1, i + 2]
    return a, keep


def gone_over_and_bound_anew(n):
    s = [1, 2, 3]
    tot = 0
    for i in range(n):
        k = 0
        for c in s:
            tot += c
            s = [c, k]
            k += 1
        s = [i, i + 1, i + 2, tot % 5]
    return s, tot


def gone_over_and_made_longer(n):
    s = [1, 2, 3]
    tot = 0
    for i in range(n):
        t = s
        k = 0
        for c in t:
            tot += c
            if k < 3:
                s.append(k)
            k += 1
    return s, tot


def comprehensions(n):
    r = [k * k for k in range(n)]
    tot = 0
    for i in range(n):
        k = i
        q = [k * v for v in r]
        k = -5
        tot += sum(q)
        r[i] = tot = tot % 17
        r = [v + 1 for v in q if v % 3]
        if len(r) < n:
            r = r + [0] * (n - len(r))
    return r, q, tot


def never_bound(n):
    tot = 0
    for i in range(n):
        q = [i] * (i + 1)
    try:
        return tot, q
    except UnboundLocalError:
        return "unbound"


def of_a_helper(n):
    def f(a, k):
        b = a
        out = []
        for v in a:
            out.append(v + k)
        return out

    r = [1, 2.5]
    for i in range(n):
        r = f(r, i)
        r.append(i)
    return r


def changed_by_a_helper(n):
    r = [1, 2]
    tot = 0
    for i in range(n):
        r2 = both_set(r, i)
        tot += r[1] + r2[0]
    return r, r2, r is r2, tot


def behind_the_end(n):
    r = [0] * n
    s = [1]
    try:
        for i in range(n + 3):
            r[i] = i
            s.append(i)
    except IndexError:
        return "error", r, s
    return r


def behind_the_end_of_a_shorter_one(n):
    r = [0] * n
    for i in range(n):
        s = r
        r = [0] * (n - i)
        r[i] = s[i]
    return r


def none_at_first(n):
    best = None
    for i in range(n):
        row = [i, i + 1]
        row[0] = 5
        if best is None or row[1] > best[1]:
            best = row
    return best


def an_argument(a, n):
    b = a
    for i in range(n):
        c = [0] * 3
        for j in range(3):
            c[j] = b[j] + i
        b = c
    return a, b, a is b


def a_long_argument(a, n):
    for i in range(n):
        c = [0] * len(a)
        for j in range(len(a)):
            c[j] = a[j] + i
        a = c
    return a


def edit_distance(a, b):
    before = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        now = [i]
        for j in range(1, len(b) + 1):
            now.append(min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])))
        before = now
    return before[-1]


def spanning_tree(d):
    n = len(d)
    inside = [False] * n
    key = [float("inf")] * n
    parent = [-1] * n
    key[0] = 0.0
    for _ in range(n):
        u, best = -1, float("inf")
        for i in range(n):
            if not inside[i] and key[i] < best:
                u, best = i, key[i]
        inside[u] = True
        for v in range(n):
            if not inside[v] and d[u, v] < key[v]:
                key[v] = d[u, v]
                parent[v] = u
    return parent


def rewritten_word(n):
    s = [0]
    rule = [0, 1, 3, 0, 4, 2, 0]
    for _ in range(n):
        t = []
        for c in s:
            if c == 0:
                t.extend(rule)
            else:
                t.append(c)
        s = t
    return len(s), s


def products_of_bits(n, exp, log):
    gen = [1]
    for i in range(n):
        new = [0] * (len(gen) + 1)
        for j in range(len(gen)):
            new[j] ^= gen[j]
            if gen[j] != 0:
                new[j + 1] ^= exp[log[gen[j]] + i]
        gen = new
    return gen


def subsequence(x):
    t = []
    for v in x:
        lo, hi = 0, len(t)
        while lo < hi:
            mid = (lo + hi) // 2
            if t[mid] < v:
                lo = mid + 1
            else:
                hi = mid
        if lo == len(t):
            t.append(v)
        else:
            t[lo] = v
    return len(t)


def run_lengths(x):
    out = []
    k = 0
    for i in range(len(x)):
        if x[i] == 0:
            k += 1
        else:
            out.append((k, int(x[i])))
            k = 0
    return out


def as_an_array(x):
    probe, pairs = [], []
    for i in range(len(x)):
        probe.append(x[i] * 0.5)
        pairs.append((x[i], 1.5))
    return np.array(probe), np.array(pairs)


DATA = onp.random.default_rng(0)
ROWS = (DATA.integers(0, 4, 20), DATA.integers(0, 4, 15))
TREE = (DATA.random((12, 12)),)
FIELD = (10, onp.r_[onp.arange(1, 256), onp.arange(1, 258)], onp.arange(256))
COMPILED = [
    (two_rows_exchanged, (20,)),
    (exchanged_by_a_third_name, (20,)),
    (items_set_by_another_name, (20,)),
    (the_longest, (20,)),
    (one_list_of_two_names, (20,)),
    (given_and_exchanged, (20,)),
    (given_and_exchanged_back, (31,)),
    (two_names_at_once, (20,)),
    (bound_at_the_end_of_a_turn, (20,)),
    (returned_from_within, (20,)),
    (from_behind, (20,)),
    (of_fixed_length, (20,)),
    (bits_of_several_types, (onp.arange(20) % 3,)),
    (parts_and_copies, (20,)),
    (by_branches, (20,)),
]
OTHERS = [
    (longer_by_another_name, (20,)),
    (given_and_changed_and_left, (20,)),
    (gone_over_and_bound_anew, (20,)),
    (gone_over_and_made_longer, (5,)),
    (comprehensions, (20,)),
    (never_bound, (0,)),
    (of_a_helper, (20,)),
    (changed_by_a_helper, (20,)),
    (behind_the_end, (20,)),
    (behind_the_end_of_a_shorter_one, (20,)),
    (none_at_first, (20,)),
    (
        an_argument,
        (
            [1, 2, 3],
            8,
        ),
    ),
    (
        a_long_argument,
        (
            [1.5] * 30,
            8,
        ),
    ),
]
WHOLE = [(edit_distance, ROWS), (spanning_tree, TREE), (rewritten_word, (4,)), (products_of_bits, FIELD)]
WHOLE += [
    (subsequence, (DATA.random(60),)),
    (run_lengths, (DATA.integers(-1, 2, 80),)),
    (as_an_array, (DATA.random(9),)),
]


def said(x):
    """A result with the types of all that it holds."""
    if isinstance(x, (list, tuple)):
        return type(x), [said(y) for y in x]
    if isinstance(x, (onp.ndarray, np.ndarray)):
        return onp.asarray(x).dtype, onp.asarray(x).tolist()
    return type(x), x


def outcome(f, args):
    given = copy.deepcopy(args)
    try:
        found = said(f(*given))
    except Exception as error:
        found = type(error), str(error)
    return found, said(given)


name = lambda p: p[0].__name__ if isinstance(p, tuple) else None


@pytest.mark.long
@pytest.mark.parametrize("program", [*COMPILED, *OTHERS, *WHOLE], ids=name)
def test_lists_are_those_of_python(program):
    f, args = program
    g, want = jit(f), outcome(f, args)
    minnp.report(reset=True)
    for _ in range(6):
        assert outcome(g, args) == want
    left = [r["function"] for r in minnp.report(reset=True) if r["backend"] == "python"]
    assert program in OTHERS or not any(r.startswith("loop in") for r in left)
    assert program not in WHOLE or not left


def test_a_function_of_lists_is_one_program():
    """Other data, of which the lists are longer or shorter, take the same path."""
    g = jit(run_lengths)
    for seed in range(12):
        x = onp.random.default_rng(seed).integers(-(seed % 3), 2, 100)
        assert g(x) == run_lengths(x)
    assert g.captures == 1


def test_a_list_of_two_names_is_one_list_after_the_loop():
    def f(n):
        q = z = [0, 0]
        for i in range(n):
            q = [i, i + 1]
            z = q
        q[0] = 50
        return z, q, z is q

    g = jit(f)
    for _ in range(4):
        assert g(20) == f(20)


def test_comprehensions_are_run_where_they_stand():
    def f(x):
        s, k = 0.0, 2.0
        for _ in range(12):
            r = [k * v for v in x]
            k = 3.0
            s += sum(r)
            k = 2.0
        return s

    x = onp.arange(5.0)
    g = jit(f)
    for _ in range(3):
        assert g(x) == f(x)
