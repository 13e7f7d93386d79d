"""Loops over numbers of many dtypes, NumPy's and Python's: random programs, and what they found."""

import mixed_fuzzer
import numpy
import pytest
import word_fuzzer

import minnp
import minnp.numpy as np
from minnp import errors, fx, jit
from minnp.core.llvm import engine
from minnp.core.loops import lowering, operations, printing, runtime

pytestmark = [
    pytest.mark.host("about compiled code on NumPy's memory"),
    pytest.mark.skipif(not engine.available(), reason="without llvmlite loops stay Python"),
]


@pytest.mark.parametrize("seed", [136, 337, 366, 395, 858, 8877])
def test_random_programs(seed):
    assert not mixed_fuzzer.differs(seed)


@pytest.mark.exhaustive
def test_many_random_programs():
    minnp.report(reset=True)
    assert not [found for found in map(mixed_fuzzer.differs, range(2000, 2150)) if found]


def raised(f, *args):
    try:
        with numpy.errstate(over="ignore"):
            return repr(f(*args))
    except OverflowError as error:
        return str(error)


def in_place(x, n):
    for _ in range(1):
        x[1:] += n
    return x


def least(x, n):
    for i in range(2):
        k = np.minimum(x[i], n)
    return k


def pythons_or_numpys(x, n):
    k, c = n, 0
    for i in range(3):
        c = x[i] - k
        k = x[0]
    return c


def compared(x, n):
    best, c = n, 0
    for i in range(3):
        if x[i] > best:
            best, c = x[i], c + 1
    return best, c


@pytest.mark.skipif(operations.OLD, reason="NumPy 1 promotes by values")
@pytest.mark.parametrize("f", [in_place, least, pythons_or_numpys, compared], ids=lambda f: f.__name__)
def test_pythons_numbers_beside_numpys(f):
    g = jit(f)
    for n in (3, -3, 200, -200, 300):
        for dtype in ("int8", "uint8", "int16"):
            expected = raised(f, numpy.arange(1, 4).astype(dtype), n)
            assert raised(g, np.arange(1, 4).astype(dtype), n) == expected


@pytest.mark.skipif(operations.OLD, reason="NumPy 1 promotes by values")
def test_a_float_or_a_float32_is_compared_as_numpy_does():
    x = numpy.array([0.1, 0.2, 0.15], "f4")
    for n in (0.1, 0.2, 0.3, -1.0):
        assert repr(jit(compared)(np.array(x), n)) == repr(compared(x, n))


def test_pythons_conjugate():
    def f(x, y):
        for _ in range(2):
            x, y = x.conjugate(), y.conjugate()
        return x, y

    for x in (1.5, 2, 1 + 2j):
        assert repr(jit(f)(x, numpy.float32(0.5))) == repr(f(x, numpy.float32(0.5)))


def multiplied(n, s):
    for _ in range(n):
        s = (s * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
    return s


def hashed(n, h):
    for b in range(n):
        h = 2**32 - 1 & (h ^ b) * 0x9E3779B97F4A7C15
    return h


def java(n, s):
    t = 0.0
    for _ in range(n):
        s = (s * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        t += s >> 16
    return s, t


def negative(n, s):
    for i in range(n):
        s = (-3 * s * s * s - 12345678901234567 - s * i) % 2**40
    return s


def of_array(n, s):
    x = np.arange(n)
    for i in range(n):
        s = (s * PRIME * int(x[i]) | x[i].item() * 3) & MASK
        x[i] = (x[i] * 12345 + i) & 0xFF
    return s, x


def of_two_types(n, s):
    for i in range(n):
        s = ((s + i) * (np.int64(3) if i == 2 else 3)) & 0xFFFF
    return s


PRIME, MASK = 1099511628211 * 2**40 + 1, 2**62 - 1


@pytest.mark.parametrize("f", [multiplied, hashed, java, negative, of_array, of_two_types], ids=lambda f: f.__name__)
def test_integers_beyond_64_bits_behind_which_a_mask_follows(f):
    g = jit(f)
    for n, s in (3, 1), (30, 12345), (7, 2**39), (9, -(2**39)):
        with numpy.errstate(over="ignore"):
            assert repr(g(n, s)) == repr(f(n, s))
    minnp.report(reset=True)
    g(30, 12345)
    assert not minnp.report()


def test_such_loops_print_as_python(monkeypatch):
    programs = []
    made = runtime.LoopRow.__init__
    monkeypatch.setattr(
        runtime.LoopRow, "__init__", lambda self, code: programs.append(code.program) or made(self, code)
    )
    for f in hashed, negative:
        copy = type(f)(f.__code__.replace(co_name=f"{f.__name__}_"), f.__globals__)
        jit(copy)(30, 12345)
        program = programs[0]  # others compute the results that are read
        given = [30 if i.name == "n.in" else 12345 for i in program.given]
        assert printing.as_python(program)(*given)[-1] == f(30, 12345)
        programs.clear()


def test_bits_beyond_64_are_cut_off_and_not_undefined(monkeypatch):
    texts = []
    text = lowering.Lowering.text
    monkeypatch.setattr(lowering.Lowering, "text", lambda self: texts.append(text(self)) or texts[-1])
    copy = type(multiplied)(multiplied.__code__.replace(co_name="multiplied_"), multiplied.__globals__)
    assert jit(copy)(30, 12345) == multiplied(30, 12345)
    ((entry, others),) = texts
    assert (
        "mul i64" in entry + others and "mul nsw" not in entry + others
    )  # nsw: LLVM may take for granted that it fits


def test_a_graph_holds_for_integers_like_those_it_was_captured_with():
    def f(a, m):
        t, s = 0, 0.0
        for i in range(len(a)):
            s += a[i] * i
            t = m * 2**21
        return t, s

    g, a = jit(f), np.ones(50)
    for m in (5, 7, 2**40, 2**40 + 1, 2**50, 2**63, 2**64 - 1, 2**64, 2**70, -(2**50), -(2**63), 8):
        assert g(a, m) == f(a, m)
    (row,) = [n.target for n in fx.capture(f, a, 5).graph.nodes if getattr(n.target, "name", "") == "loop"]
    given = {"a": a, "m.in": 2**50, "s.in": 0.0, "t.in": 0}
    with pytest.raises(errors.CaptureError, match="meets 1125899906842624, a number that it was not compiled for"):
        row(*[given[i.name] for i in row.program.given])


def test_the_greatest_of_numbers_of_several_types():
    def f(k, c):
        v = 0.5
        for i in range(len(k)):
            if k[i] > 2:
                c -= k[i] + v
            c = np.maximum(k[i] * 2, c)
        return c

    for k in ([1, 1], [3, 1], [1, 3], [0, 3]):
        assert repr(jit(f)(np.array(k), 0)) == repr(f(numpy.array(k), 0))


WORDS = 0xFFFFFFFFFFFFFFFF


def fnv(data, h):
    for b in data:
        h = ((h ^ int(b)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def xorshift(data, x):
    s = 0.0
    for _ in range(len(data)):
        x ^= (x << 13) & WORDS
        x ^= x >> 7
        x ^= (x << 17) & WORDS
        s += (x >> 11) * 2.0**-53
    return x, s


def splitmix(data, x):
    t = 0
    for _ in range(len(data)):
        x = (x + 0x9E3779B97F4A7C15) & WORDS
        z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORDS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        z = z ^ (z >> 31)
        t += z % 100 + (z > 0x8000000000000000) - 3 * (z & 1)
    return x, z, t


def pcg(data, s):
    out = 0
    for _ in range(len(data)):
        s = (s * 6364136223846793005 + 1442695040888963407) & WORDS
        x, rot = (((s >> 18) ^ s) >> 27) & 0xFFFFFFFF, s >> 59
        out ^= ((x >> rot) | (x << (-rot & 31))) & 0xFFFFFFFF
    return s, out


@pytest.mark.parametrize("f", [fnv, xorshift, splitmix, pcg], ids=lambda f: f.__name__)
def test_integers_of_64_bits_without_a_sign(f):
    data = numpy.arange(60, dtype="u1")
    for x in (1, 42, 2**40 + 1, 2**63 - 1, 2**63, 0xCBF29CE484222325, 2**64 - 1):
        expected = f(data, x)
        minnp.report(reset=True)
        g = jit(type(f)(f.__code__, f.__globals__))
        assert repr(g(np.array(data), x)) == repr(g(np.array(data), x)) == repr(expected)
        assert not [row for row in minnp.report() if row["backend"] == "python"]


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_of_such_integers(seed):
    assert not word_fuzzer.differs(seed)


@pytest.mark.exhaustive
def test_many_random_programs_of_such_integers():
    minnp.report(reset=True)
    assert not [found for found in map(word_fuzzer.differs, range(5000, 5150)) if found]


def drawn(n, x):
    out = [x]
    for _ in range(n):
        x = (x * 6364136223846793005 + 1) & WORDS
        out.append(x)
    return out


def drawn_at_times(n, x):
    out = []
    for i in range(n):
        out.append(i)
        x = (x * 6364136223846793005 + 1) & WORDS
        out.append(x if i & 1 else x & 255)
        if len(out) > 5:
            x = out.pop() ^ x
    return out, out[0], out[3] % 7


def drawn_or_negative(n, x):
    out = []
    for i in range(n):
        x = (x * 6364136223846793005 + 1) & WORDS
        out.append(-i if x & 1 else x)
    return out


@pytest.mark.parametrize("f", [drawn, drawn_at_times, drawn_or_negative], ids=lambda f: f.__name__)
def test_lists_of_such_integers(f):
    for x in (5, 2**50, 2**63 + 1):
        g = jit(f)
        assert g(50, x) == f(50, x) and g(50, x) == f(50, x)
