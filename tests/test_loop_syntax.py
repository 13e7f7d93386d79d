"""Python in compiled loops, as a NumPy user writes it: each program gives what Python gives, types included."""

import collections
import math

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, jvp, value_and_grad
from minnp.core.llvm import engine
from minnp.core.loops import compiled
from minnp.core.loops.source import tree_of

pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def vector():
    return np.array([0.3, -1.2, 2.5, 0.5, -0.5, 1.5, 2.0, -3.25, 0.75, 1.0])


def whole():
    return np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])


def alike(want, got):
    """Whether two results are of the same types and numbers."""
    assert type(want) is type(got)
    if isinstance(want, (tuple, list)):
        assert len(want) == len(got)
        for a, b in zip(want, got):
            alike(a, b)
    elif isinstance(want, dict):
        alike([*want.items()], [*got.items()])
    elif isinstance(want, (numpy.ndarray, numpy.generic)):
        assert want.dtype == got.dtype
        numpy.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert want == got


# ------------------------------------------------------------------ programs
def generators(x, i):
    out, n = np.zeros(10), 0
    for k in range(10):
        out[k] = sum(x[j] * x[k - j] for j in range(k)) + sum(x[j] for j in range(10) if j % 3 == k % 3)
        n += any(x[j] > 2 for j in range(k)) + 10 * all(x[j] < x[k] for j in range(k))
        n += any(i[j] == i[m] for j in range(k) for m in range(j))
        out[k] += max(x[j] for j in range(k + 1)) - min(abs(x[j]) for j in range(k, 10))
    return out, n


def a_module_in_a_comprehension_alone(x, i):
    weights = np.array([math.exp(-k) for k in range(3)])
    out = np.zeros(8)
    for k in range(8):
        for j in range(3):
            out[k] += weights[j] * x[k + j]
    return out


def floats_in_arrays_of_integers(x, i):
    pixels, small = np.zeros((10, 3), np.uint8), np.zeros(10, np.int8)
    for k in range(10):
        pixels[k] = 255 * abs(x[k]) / 3.25, 200.9, 40
        small[k] = -39 * x[k]
    return pixels, small


def places_that_numpy_finds(x, i):
    total, n = 0.0, 0
    for k in np.argsort(i, kind="stable"):
        total = total * 0.5 + x[k]
    for u in np.unique(i):
        if u > 3:
            n += u
    return total, n


def medians_and_sorted_rows(x, i):
    out, n = np.zeros((8, 3)), 0.0
    for k in range(8):
        out[k] = np.median(x[k : k + 3]), np.median(i[: k + 1]), np.sort(x[: k + 1] * 2)[-1]
        y = x[k:].copy()
        y.sort()
        n += y[0]
    return out, n, np.median(x)


def rows_of_tuples(x, i):
    out, whole = np.zeros((10, 2)), np.zeros((10, 3), int)
    for k in range(10):
        out[k] = k, x[k]
        out[k] = out[k, 1], out[k, 0]
        whole[k] = i[k], 1.9, k > 2
    return out, whole


def tuples_in_order(x, i):
    best, low, n = (0, 0), (9, 1.5), 0
    for k in range(10):
        best = max(best, (i[k], k))
        low = min(low, (i[k], x[k]))
        n += (i[k], k) < (4, 3)
        n += 10 * ((k % 2, k) != (1, k)) + 100 * ((k, 1) == (3, 1))
    return best, low, n


def loops_over_evenly_spaced_numbers(x, i):
    s, n = 0.0, 0
    for y in np.linspace(-1.2, 1.2, 9):
        for n, z in enumerate(np.linspace(i[0], 7, num=5, endpoint=False)):
            s += z * y * np.linspace(x[0], x[0], n + 1)[-1]
    return s, n, y


def dicts_of_numbers(x, i):
    counts, sums = {}, {}
    for k, v in zip(i, x):
        counts[k] = counts.get(k, 0) + 1
        if k % 7 in sums:
            sums[k % 7] += v
        else:
            sums[k % 7] = v * 2
    best, n = -1, 0
    for k, c in counts.items():
        if c > n or (c == n and k < best):
            best, n = k, c
    for k in sums:
        x[0] += sums[k] * len(sums)
    return best, n, counts, sums


def dicts_made_in_loops(x, i):
    total, seen = {}, 0
    for n in range(200):
        few = {}
        for k in range(5):
            few.setdefault(n * k % 7, k)
            few[n * 3 % 11] = n
        for v in few.values():
            seen += v
        total[n * 7919 % 1009] = len(few)
    return seen, few, total


def keys_that_are_missing(x, i):
    d, n = {}, 0
    for k in range(5):
        d[int(i[k])] = k
    for k in range(12):
        if k not in d:
            n += 1
    try:
        for k in range(9, -1, -1):
            n += d[k]
    except KeyError as error:
        return n, str(error), d
    return n, d


def default_dicts(x, i):
    d, e = collections.defaultdict(int), collections.defaultdict(float)
    for k in range(10):
        d[int(i[k])] += 1
        e[k % 3] += x[k]
    for k in range(6):
        x[k] = d[k] + e.get(k, 0.5)
    return dict(d), dict(e)


def a_dict_with_two_names(x, i):
    d = {}
    e = d
    for k in range(10):
        d[k] = 2
        if len(e) > 3:
            break
    return d is e, e


def numbers_converted_first(x, i):
    s = c = 0
    for k, v in enumerate(i):
        c = 0
        v = int(v)
        while v:
            v &= v - 1
            c += 1
        s += c * k
    for a, b in zip(x, i):
        a, b = float(a), b
        s += a * b
    return s, c, v, a, b


def names_of_generators_are_their_own(x, i):
    j, s = 5, 0.0
    for k in range(10):
        s += sum(x[j] for j in range(k)) * j
        j += 0
    return s, j


def comprehensions(x, i):
    s, out = 0.0, np.zeros(10)
    for k in range(1, 10):
        few = [x[k - j] * j for j in (0, 1)]
        out[k] = few[0] + few[1] + max([v * 2 for v in few])
        s += np.array([x[j] * j for j in range(k)]).sum()
    return s, out


def walrus(x, i):
    s, k = 0.0, 0
    while (v := x[k]) < 2.0 and k < 9:
        s += v
        k += 1
    for j in range(10):
        if (d := x[j] - 1) > 0:
            s += d
    return s, k, d


def rounding(x, i):
    n = 0
    for v in x:
        n = n * 3 + round(v) + round(float(v) * 3) + round(v + 0.5) - round(-v)
    return n


def backwards(x, i):
    s = 0.0
    for k in reversed(range(1, 10, 3)):
        s = s * 0.5 + x[k]
    for k in reversed(range(0)):
        s += k
    for k, v in enumerate(reversed(x)):
        s = s * 0.5 + k * v
    for k in reversed((3, 1)):
        s = s * 0.5 + x[k]
    return s


def ranges_that_conditions_choose(x, i):
    s, last, rows, back = 0.0, range(3), range(len(x)), range(len(i))[::-1]
    for y in rows:
        r = range(len(x)) if y % 2 == 0 else range(len(x) - 1, -1, -2)
        for k in r:
            s = s * 0.5 + x[k]
        if i[y] > 4:
            r = range(y, 10, 2)
        else:
            r = range(y, -3, -1)
        for n, k in enumerate(r):
            s += n * x[k]
        else:
            s += len(i)
        for k in last:
            s -= x[k]
        last = back if y % 3 else r
    return s, last, r, k, n


def tuples_that_conditions_choose(x, i):
    a = b = 0
    for k in range(len(x)):
        da, db = (1, 0) if x[k] > 0 else (0, 1)
        a, b = a + da, b + db * i[k]
        t = (k, x[k]) if i[k] > 4 else (x[k], 2)
    return a, b, t


def indices_of_arrays(x, i):
    m, seen, s = np.reshape(x[:6], (2, 3)), np.zeros((2, 3)), 0.0
    for at in np.ndindex(m.shape):
        seen[at] += m[at] * at[1]
    for j, k in np.ndindex(2, len(x)):
        if x[k] < 0:
            continue
        s += x[k] * (j - k)
        if s < -9:
            break
    else:
        s = 0.0
    for (j, k), v in np.ndenumerate(seen):
        if v > 0.5:
            last = j, k, v
            seen[0, 0] += v
    for _ in np.ndindex(0, 3):
        s += 1.0
    return seen, s, at, j, k, v, last


def membership(x, i):
    n = 0
    for k in i:
        n += (k in {1, 9}) + 10 * (k not in [2, 5]) + 100 * (k in range(2, 8, 3)) + 1000 * (k in i[:2])
        n += 10000 * ("a" in ("a", "b")) + 20000 * ("c" not in ("a", "b"))
    return n


def pair(a, b, c=0.0):
    return a + b, a - b + c


def starred(x, i):
    s = 0.0
    for k in range(9):
        at = (k, k + 1)
        s += pair(*(x[k], x[k + 1]))[1] + max(*(x[k], 0.5)) if k % 2 else pair(*at, 2.0)[0]
    return s


def lists_as_indices(x, i):
    for k in range(9):
        if x[k] > x[k + 1]:
            x[[k, k + 1]] = x[[k + 1, k]]
    return x


def functions(x, i):
    s, grown = 0.0, np.array([])
    for k in range(2, 10):
        w = x[k - 2 : k + 1]
        s += np.diff(w)[1] + np.clip(x[k], -1, 1) + len(np.where(w > 0)[0])
        grown = np.append(grown, x[k])
        grown = np.append(grown, w[:1])
    return s, grown


def tuples_bound_anew(x, i):
    state, best = (0.0, 1.0), (0, x[0])
    for k, v in enumerate(x):
        state = (state[1], state[0] * 0.5 + v)
        if v > best[1]:
            best = k, v
    return state, best[0], best[1]


def tuples_exchanged(x, i):
    p, q = (x[0], x[1]), (x[2], i[3])
    for _ in range(20):
        p, q = q, p
        p = (p[0] + 1, p[1])
    return p, q


def tuples_among_tuples(x, i):
    n = 0
    for k in range(9):
        n += (i[k], i[k + 1]) in ((1, 3), (3, 1), (1, 2, 3), (i[0], i[1]))
        n += 100 * ((k, x[k]) not in [(0, x[0]), (4, x[4]), [4, x[4]]])
        n += 10000 * ((k % 3, k % 2) in {(1, 1), (2, 0)})
    return n


def matched(x, i):
    n, s = 0, 0.0
    for k in range(10):
        match i[k] % 4:
            case 0:
                n += 1
            case 1 | 2 if k > 3:
                s += x[k]
                if s > 100:
                    break
            case 2:
                continue
            case _:
                n -= 10
        match k:
            case 3 | 5:
                s = s * 2
        match x[k] > 0:
            case 1:
                n += 1000
    return n, s


def the_same_nan(x, i):
    n = 0
    for k in range(10):
        v = x[k] if k != 3 else np.nan
        n += v in (1.0, np.nan)
        n += v in x
    return n


def returns_a_tuple(x, i):
    for k in range(10):
        if x[k] > 1.9:
            return k, x[k], "found"
        if x[k] < -5:
            return None
    return -1, 0.0, "none"


def may_return_numbers_of_several_types(x, i):
    s = 0.0
    for k in range(10):
        if k > 3:
            s = x[k] if k % 2 else 1
        if x[k] > 100:
            return s, k
    return k


def returns_an_array(x, i):
    y = x
    for k in range(100):
        y = y * 0.5
        if np.abs(y).max() < 0.1:
            return y, k
    return x, -1


def returns_its_argument(x, i):
    for k in range(10):
        x[k] += 1
        if k == 5:
            return x
    return None


def branches_that_are_not_reached(x, i):
    s = 0.0
    for k in range(10):
        if x[k] > 100:
            print("too large", x[k])
        s += x[k]
    return s


def branches_that_are_reached(x, i):
    seen, s = [], 0.0
    for k in range(10):
        x[k] += 1
        if i[k] == 9:
            seen.insert(0, k)
        s += x[k]
    return s, seen


def divisors(x, i):
    out = np.zeros(10, dtype=np.int64)
    for k in range(10):
        out[k] = math.gcd(int(i[k]) - 4, 6 * k) + math.gcd(i[k], -i[k - 1], 12) * 100 + math.gcd(k - 5)
    return out


def functions_of_pythons_math(x, i):
    found = [0.0]
    for k in range(10):
        found += [math.erf(x[k]), math.erfc(2 * x[k]), math.gamma(x[k] - 0.1), math.lgamma(x[k])]
        found += [math.log(i[k], 2 + x[0]), math.fabs(x[k]), math.atan(x[k]), math.asinh(x[k])]
        found += [math.degrees(x[k]), math.radians(i[k]), math.pow(i[k], x[k]), math.hypot(x[k], 2)]
    factorials = sum(int(math.gamma(k)) == math.gamma(k) for k in range(1, 24)), math.gamma(20), math.gamma(23.0)
    return found, factorials


def powers_of_integers(x, i):
    found, s = [], 0.0
    for k in range(10):
        found += [3**k, 2**k, (-1) ** k, (k - 4) ** (k % 5), k**0, 7**11, int(i[k]) ** k]
        s += (-1) ** k * x[k] / (4 ** (k + 1) - 1)
    return s, found


def dtypes_that_numpy_finds(x, i):
    out = np.zeros(10)
    for k in range(10):
        row = np.zeros(3, dtype=np.result_type(i, x))
        row[0] = x[k] / 3
        out[k] = row[0] + np.ones(2, dtype=np.result_type(np.float32, np.int16))[1]
    return out


def powers_of_complex_numbers(x, i):
    out = np.zeros((10, 8), dtype=complex)
    for k in range(10):
        z, w = complex(x[k], -x[9 - k] * (k % 3)), x[k] + 1j * x[k - 1]
        out[k] = z**3, z**2, z**0, z**-2, z**7.0, w**3, w**6, w**2
    return out


PROGRAMS = [powers_of_integers, divisors, dtypes_that_numpy_finds, powers_of_complex_numbers]
PROGRAMS += [a_module_in_a_comprehension_alone, floats_in_arrays_of_integers, places_that_numpy_finds]
PROGRAMS += [generators, names_of_generators_are_their_own, comprehensions, walrus, rounding, backwards, membership]
PROGRAMS += [ranges_that_conditions_choose, tuples_that_conditions_choose, indices_of_arrays]
PROGRAMS += [starred, lists_as_indices, functions, tuples_bound_anew, tuples_exchanged, the_same_nan]
PROGRAMS += [tuples_among_tuples, matched]
PROGRAMS += [returns_a_tuple, may_return_numbers_of_several_types, returns_an_array, returns_its_argument]
PROGRAMS += [branches_that_are_not_reached, branches_that_are_reached, medians_and_sorted_rows, rows_of_tuples]
PROGRAMS += [
    functions_of_pythons_math,
    dicts_of_numbers,
    dicts_made_in_loops,
    default_dicts,
    tuples_in_order,
    loops_over_evenly_spaced_numbers,
    numbers_converted_first,
]


@pytest.mark.parametrize("f", [keys_that_are_missing, a_dict_with_two_names])
def test_dicts_that_are_pythons(f):
    g = jit(f)
    for _ in range(8):
        alike(f(vector(), whole()), g(vector(), whole()))


@pytest.mark.long
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    minnp.report(reset=True)
    g = jit(f)
    for _ in range(2):
        plain, ours = (vector(), whole()), (vector(), whole())
        alike(f(*plain), g(*ours))
        alike(plain, ours)
    said = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    if f is branches_that_are_reached and engine.available():
        assert "insert" in said[0] and f"line {f.__code__.co_firstlineno + 5}" in said[0]
    elif engine.available() and f is not the_same_nan:
        assert said == []


def test_gradients_of_programs():
    def loss(x):
        state, s = (0.0, 1.0), 0.0
        for k in range(10):
            state = (state[1], state[0] * 0.5 + x[k])
            s += sum(x[j] * x[k] for j in range(k)) + state[0]
        return s

    minnp.report(reset=True)
    want = grad(loss)(vector())
    alike(grad(jit(loss))(vector()), want)
    alike(jit(grad(loss))(vector()), want)
    assert not [r for r in minnp.report(reset=True) if r["function"].startswith("loop in")] or not engine.available()


def test_scalars_are_found_in_sets_and_dicts():
    @jit
    def f(i):
        found, names = [], {3: "three", 4: "four"}
        for k in i[:3]:
            found.append((k in {1, 9}, names.get(k)))
        return found, i

    for numbers in ([3, 1, 4], [3, 1, 4], [1, 2, 3]):
        assert f(np.array(numbers))[0] == [(k in {1, 9}, {3: "three", 4: "four"}.get(k)) for k in numbers]
    with pytest.raises(TypeError, match=r"unhashable type: 'numpy\.ndarray'"):
        jit(lambda i: hash(i))(whole())


NUMBERS = {
    "item": lambda a: a[0],
    "sum": lambda a: a.sum(),
    "array": lambda a: np.array(2.0),
    "view": lambda a: a[0, ...],
    "asarray": lambda a: np.asarray(a[0]),
    "of an array": lambda a: np.asarray(a[0]) + 1,
    "comparison": lambda a: a[0] > 1,
    "reshaped": lambda a: a[:1].reshape(()),
    "several": lambda a: (a[0], a, [a.max(), 3]),
    "product": lambda a: a @ a,
    "where": lambda a: np.where(a[0] > 1, 1.0, 2.0),
    "of python": lambda a: (int(a[0]), float(a[1]), bool(a[0] > 0)),
    "in a loop": lambda a: sum(v * v for v in a),
    "gradient": lambda a: grad(lambda s: s * s)(a[1]),
    "value and gradient": lambda a: value_and_grad(lambda s: s * s)(a[1]),
    "forward mode": lambda a: jvp(lambda s: (s * s).sum(), (a,), (a,)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_scalars_are_numpys(name):
    f = NUMBERS[name]
    g = jit(f)
    for _ in range(2):
        alike(f(vector()), g(vector()))


def test_a_function_runs_once_whose_number_goes_on_after_the_capture():
    def f(a, b, x):
        k = 0
        while k < 6 and np.tanh(x) != 0:
            k += 1
            a[0] += x
        else:
            b[0, 0] += 0.0
            b[1:] *= x
        return k

    g = jit(f)
    for _ in range(3):
        b = np.zeros((5, 6))
        assert g(b.ravel()[::3], b, 1.0) == 6
        assert b[0, 0] == 6


# ------------------------------------------------------------------ how long compiling may take
@pytest.fixture
def hurry():
    before = minnp.set_compile_budget(1e-6)
    yield
    minnp.set_compile_budget(before)


def neighbours(x):
    s = 0.0
    for k in range(9):
        s += x[k] * x[k + 1]
    return s


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python")
def test_a_loop_that_takes_too_long_to_compile_is_pythons(hurry):
    x = vector().astype("f4")  # of another dtype than below: what is refused is remembered
    minnp.report(reset=True)
    alike(neighbours(x), jit(neighbours)(x))
    said = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
    assert said and all("s of compiling" in why for why in said)


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python")
def test_a_loop_whose_machine_code_would_take_too_long_is_pythons(monkeypatch):
    def loss(x):
        s = 0.0
        for k in range(9):
            s += x[k] * x[k + 1]
        return s

    want = grad(loss)(vector())
    monkeypatch.setattr(compiled, "FASTER", 1)
    for run, why in (
        (lambda: jit(neighbours)(vector()), "more than 2.0 s"),
        (lambda: grad(jit(loss))(vector()), "its gradient"),
    ):
        minnp.report(reset=True)
        alike(run(), neighbours(vector()) if why.startswith("more") else want)
        said = [r["why"] for r in minnp.report(reset=True) if r["function"].startswith("loop in")]
        assert any(why in s and "s of compiling" in s for s in said)
    alike(jit(grad(loss))(vector()), want)


def test_a_long_capture_ends(hurry):
    def f(x):
        seen = {}
        for k in range(4000):
            seen[k % 3] = x[k % 10]
            x[k % 10] = x[(k + 1) % 10] * 0.5 + 1
        return x

    minnp.report(reset=True)
    alike(f(vector()), jit(f)(vector()))
    assert any("small things" in r["why"] for r in minnp.report(reset=True))


def test_a_budget_is_positive():
    with pytest.raises(ValueError, match="set_compile_budget: more than 0 seconds, got 0"):
        minnp.set_compile_budget(0)


def test_a_chain_of_comparisons_is_the_one_that_decides():
    def chained(x, i, n):
        u, first, second, third, hits = n, True, True, True, 0
        for k in range(6):
            first = 0 <= u < 4
            second = u < i[0] < 2 * k <= 7
            third = not third or -9 < n < i[4]
            if 1 < u < i[2] or not -9 < u < i[4] < 100:
                hits += 1
            if k == n:
                u = i[k]
        return first, second, third, hits

    g = jit(chained)
    for n in (-20, -1, 2, 3, 5, 200):
        alike(chained(vector(), whole(), n), g(vector(), whole(), n))


def test_the_text_of_a_division_by_zero_is_pythons():
    def divided(x, n):
        k = 3
        for j in range(2):
            x[j] += 1
            k /= n
        return k

    def rest(x, n):
        k = 3
        for j in range(2):
            x[j] += 1
            k = k % n if j else k * 1.5
        return k

    for f in (divided, rest):
        g = jit(f)
        for n in (2, 0, 0.0):
            got, want = [], []
            for call, out in ((f, want), (g, got)):
                x = vector()
                try:
                    out += [call(x, n), x.tolist()]
                except ZeroDivisionError as error:
                    out += [str(error), x.tolist()]
            assert got == want


def test_a_set_has_each_item_once():
    def of_sets(x, n):
        t = 0
        for i in range(len(x)):
            x[i] = sum({i, 1, n}) + len({i, 2}) + max({i, 1})
            for k in {3, 1}:
                t = t * 10 + k
            t += 100 * (i in {1, n})
        return t

    a, b = vector(), vector()
    alike((of_sets(a, 3), a), (jit(of_sets)(b, 3), b))


width = 3


def test_a_variable_may_have_the_name_of_a_global_that_is_no_module():
    def f(width):  # CPython compiles a call of a method otherwise where the module imports the name
        a = np.zeros(4)
        for i in range(4):
            a[i] = width.item() + i
        return a

    assert tree_of(f) is not None


@pytest.mark.skipif(not engine.available(), reason="a graph makes 0.0 of complex(x[0], -0.0)'s part: sharp_edges.md")
def test_powers_of_complex_numbers_are_pythons_to_the_bit():
    """Also of zeros, whose signs say on which side of a cut they lie, and where Python raises."""

    def f(x, y, out):
        for k in range(len(x)):
            z, w = complex(x[k], y[k]), x[k] + 1j * y[k]
            out[0, k], out[1, k], out[2, k], out[3, k] = z**1, z**2, z**5, w**3
            out[4, k] = w**4

    numbers = [0.0, -0.0, 1.0, -1.0, 2.5, -0.3]
    x, y = (numpy.array(column) for column in zip(*((a, b) for a in numbers for b in numbers)))
    want, got = (numpy.zeros((5, len(x)), dtype=complex) for _ in range(2))
    f(x, y, want)
    jit(f)(x, y, got)
    assert repr(want.tolist()) == repr(got.tolist())

    def negative(x):
        out = numpy.zeros(len(x), dtype=complex)
        for k in range(len(x)):
            out[k] = complex(x[k], 0) ** -2
        return out

    for x, error in ((numpy.array([1.0, 0.0]), ZeroDivisionError), (numpy.array([1.0, 1e-200]), ZeroDivisionError)):
        for g in (negative, jit(negative)):
            with pytest.raises(error):
                g(x)


@pytest.mark.parametrize("f", [math.gamma, math.lgamma, math.erf, lambda v: math.log(v, 1), lambda v: math.pow(v, v)])
@pytest.mark.parametrize("last", [0.0, -3.0, 200.0, 1e300, math.inf, -math.inf, math.nan])
def test_functions_of_pythons_math_raise_what_they_raise(f, last):
    def total(x):
        s = 0.0
        for v in x:
            s += f(v)
        return s

    def run(total, x):
        try:
            return round(total(x), 9)
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            return repr(error)

    x = numpy.array([1.5] * 11 + [last])
    assert str(run(total, x)) == str(run(jit(total), x))


@pytest.mark.skipif(not engine.available(), reason="without llvmlite there is no program")
def test_a_program_of_functions_of_pythons_math_is_python_too():
    def f(x):
        s = 0.0
        for k in range(len(x)):
            s += math.gamma(x[k]) * math.erf(x[k])
        return s

    x, names = np.linspace(1.0, 2.0, 20), {}
    text = jit(f).lower(x).code
    assert "math.gamma(" in text
    exec("import minnp.numpy as np\n" + text, names)
    assert abs(names["forward"](x) - f(x)) < 1e-12


def test_what_is_no_integer_has_no_divisors():
    def f(x):
        s = 0
        for k in range(len(x)):
            s += math.gcd(x[k], 2)
        return s

    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        jit(f)(vector())


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python")
def test_a_function_without_source_is_reported():
    space = {}
    exec("def f(x):\n    s = 0.0\n    for v in x:\n        s += v\n    return s\n", space)
    minnp.report(reset=True)
    assert jit(space["f"])(vector()) == space["f"](vector())
    assert "source is in no file" in next(r["why"] for r in minnp.report(reset=True) if r["function"] == "loop in f")


@pytest.mark.parametrize("base, first, count", [(2, -3, 9), (2, 0, 70), (10, 0, 25), (-3, 35, 9), (0, -1, 3)])
def test_powers_of_integers_that_are_pythons(base, first, count):
    """Floats of negative exponents, integers beyond 64 bits."""

    def f(base, first, count):
        found = []
        for k in range(count):
            found.append(base ** (k + first))
        return found

    for g in (f, jit(f)):
        try:
            alike(f(base, first, count), g(base, first, count))
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                g(base, first, count)


@pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python")
def test_loops_over_all_places_of_an_array_are_loops():
    def weighed(x):
        s = 0.0
        for (j, k), v in np.ndenumerate(x):
            s += v * v * (j - k)
        return s

    def counted(x):
        s = 0.0
        for j, k in np.ndindex(x.shape):
            s += x[j, k] * (j - k)
        return s

    x = np.array(numpy.random.default_rng(0).standard_normal((100, 10)))
    for f in (weighed, counted):
        compiled = jit(f)
        minnp.report(reset=True)
        for _ in range(3):
            assert compiled(x) == pytest.approx(f(x), rel=1e-12)
        assert not [r for r in minnp.report(reset=True) if r["function"].startswith(("loop in", "jit of"))]
