"""Random loops over numbers of many dtypes, NumPy's and Python's, run by NumPy, by eager minnp and under jit: values,
types, errors, and what is written before an error.

`python tests/mixed_fuzzer.py FIRST COUNT` runs programs by their numbers and prints those that differ.
"""

import sys
import warnings

import loop_fuzzer
import numpy
from loop_fuzzer import RAISED, Choices, function, made, tally

import minnp
import minnp.numpy
from minnp import jit

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
WHOLE, REAL, COMPLEX = ("bool", *SIGNED, *UNSIGNED), ("float32", "float64"), ("complex64", "complex128")
EVERY = (*WHOLE, *REAL, *COMPLEX)
PYTHONS = {"w": ("0", "1", "3", "-2", "True"), "r": ("0.0", "0.5", "-1.5", "2", "1"), "z": ("1j", "0.5", "1", "0j")}
LENGTH = 6


class Mixed(Choices):
    """The source of one program. a, b, c are arrays (integers or bools; real; any), u, v, w numbers of such dtypes or
    Python's, n an int. Its variables: k, l (integers), s, t (real), o, p (any), yes (a truth value)."""

    def __init__(self, seed):
        super().__init__(seed)
        self.depth = self.loops = 0
        pick = self.pick
        few = self.chance(0.7)  # of few dtypes more is compiled
        some = lambda of: [pick(*of)] if few else list(of)
        self.whole_of, self.real_of, self.any_of = some(WHOLE[:-1]), some(REAL), some(COMPLEX)
        if few:
            self.whole_of.append(pick("int64", "bool"))
        every = [*self.whole_of, *self.real_of, *self.any_of]
        self.dtypes = pick(*self.whole_of), pick(*self.real_of, *self.real_of, *self.whole_of), pick(*every)
        self.numbers = pick(*self.whole_of, "int", "bool"), pick(*self.real_of, "float"), pick(*every, "complex")
        lines = [f"{name} = {self.first(sort)}" for name, sort in zip("klstop", "wwrrzz")]
        lines += [f"yes = {pick('True', 'False', 'np.bool_(True)')}", "i = j = 0"]
        lines += [line for _ in range(self.random.randint(1, 2)) for line in self.loop()]
        lines.append("return k, l, s, t, o, p, yes, i, j")
        head = "def program(a, b, c, u, v, w, n):\n"
        self.source = function(head, lines).replace("np.bool(", "np.bool_(")

    def chance(self, p):
        return self.random.random() < p

    def first(self, sort):
        if self.chance(0.6):
            return self.pick(*PYTHONS[sort])
        dtypes = {"w": self.whole_of, "r": self.real_of, "z": self.any_of}[sort]
        return f"np.{self.pick(*dtypes)}({self.pick('0', '1', '2')})"

    def index(self):
        return self.pick("i", "j", "i", "i - 1", "0", "-1", "j // 2", "n", f"(i + 1) % {LENGTH}")

    def whole(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.35:
            return self.pick("k", "l", "i", "j", "u", "n", "yes", *PYTHONS["w"], "7", "200", "-100", "100000")
        if r < 0.5:
            return f"a[{self.index()}]"
        if r < 0.56:
            return f"np.{self.pick(*self.whole_of)}({self.pick('i', 'k', 'l', 'a[i]', '3')})"
        if r < 0.6:
            return f"{self.pick('abs', '-', '+', 'int', 'np.abs', 'np.negative')}({self.whole(depth + 1)})"
        if r < 0.65:
            name = self.pick("min", "max", "np.minimum", "np.maximum")
            return f"{name}({self.whole(depth + 1)}, {self.whole(depth + 1)})"
        if r < 0.69:
            return f"({self.whole(depth + 1)} if {self.test(depth + 1)} else {self.whole(depth + 1)})"
        if r < 0.75:
            return f"({self.whole(depth + 1)} {self.pick('<<', '>>', '**')} {self.pick('0', '1', '2', '3')})"
        if r < 0.79:
            mask = self.pick("255", "0xFFFFFFFF", "15", "0xFFFFFFFFFFFFFFFF")
            return f"(({self.whole(depth + 1)} {self.pick('*', '+')} {self.whole(depth + 1)}) & {mask})"
        return f"({self.whole(depth + 1)} {self.pick(*'+-*+-*%&|^', '//')} {self.whole(depth + 1)})"

    def real(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.3:
            return self.pick("s", "t", "v", *PYTHONS["r"])
        if r < 0.5:
            return f"b[{self.index()}]"
        if r < 0.56:
            return f"np.{self.pick(*self.real_of)}({self.pick('i', 's', 'b[i]', '0.5', 'u')})"
        if r < 0.62:
            name = self.pick("abs", "float", "np.floor", "np.abs", "-", "np.sign", "np.square")
            return f"{name}({self.real(depth + 1)})"
        if r < 0.66:
            return f"{self.pick('min', 'max', 'np.minimum', 'np.fmax')}({self.real(depth + 1)}, {self.real(depth + 1)})"
        if r < 0.7:
            return f"({self.real(depth + 1)} if {self.test(depth + 1)} else {self.real(depth + 1)})"
        if r < 0.74:
            return f"np.sqrt(np.abs({self.real(depth + 1)}))"
        other = self.pick(self.real, self.real, self.whole)
        return f"({self.real(depth + 1)} {self.pick(*'+-*+-*/%', '//')} {other(depth + 1)})"

    def any(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.3:
            return self.pick("o", "p", "w", *PYTHONS["z"])
        if r < 0.5:
            return f"c[{self.index()}]"
        if r < 0.55:
            return f"np.{self.pick(*self.any_of)}({self.pick('i', 's', 'b[i]', '1j')})"
        if r < 0.6:
            return f"({self.any(depth + 1)}){self.pick('.real', '.imag', '.conjugate()')}"
        if r < 0.63:
            return f"({self.any(depth + 1)} if {self.test(depth + 1)} else {self.any(depth + 1)})"
        other = self.pick(self.any, self.real, self.whole)
        return f"({self.any(depth + 1)} {self.pick(*'+-*+-*')} {other(depth + 1)})"

    def test(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.15:
            return self.pick("yes", "not yes", "k", "s", "yes and k > 0")
        if r < 0.25:
            return f"{self.any(depth + 1)} {self.pick('==', '!=')} {self.any(depth + 1)}"
        kinds = self.pick(self.whole, self.real), self.pick(self.whole, self.real)
        return f"{kinds[0](depth + 1)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {kinds[1](depth + 1)}"

    def statement(self):
        r = self.random.random()
        if r < 0.1 and self.depth < 2:
            return self.loop()
        if r < 0.25 and self.depth < 3:
            lines = [f"if {self.test()}:", *self.block()]
            return [*lines, "else:", *self.block()] if self.chance(0.4) else lines
        if r < 0.29 and self.loops:
            return [f"if {self.test()}:", f"    {self.pick('break', 'continue')}"]
        names, expression, array = self.pick(
            ("kl", self.whole, "a"), ("kl", self.whole, "a"), ("st", self.real, "b"), ("op", self.any, "c")
        )
        name = self.pick(*names)
        if r < 0.55:
            return [f"{name} {self.pick('=', '+=', '-=', '*=', '=')} {expression()}"]
        if r < 0.6:
            other = self.pick(self.whole, self.real)
            return [f"{name} {self.pick('=', '+=')} {other()}"] if name in "op" else [f"yes = {self.test()}"]
        if r < 0.65:
            return [f"yes {self.pick('&=', '|=', '^=')} {self.test(2)}"]
        if r < 0.7:
            return [f"k, l = {self.pick('l, k', 'l, k + l', 'k ^ l, k')}"]
        if r < 0.75:
            part = self.pick("i:", ":i", ":", "::2")
            return [f"{array}[{part}] {self.pick('+=', '*=', '-=')} {expression(2)}"]
        if r < 0.8:
            return [f"{array}[i], {array}[-1] = {array}[-1], {array}[i]"]
        return [f"{array}[{self.index()}] {self.pick('=', '+=', '-=', '*=', '=')} {expression()}"]

    def block(self):
        self.depth += 1
        lines = [line for _ in range(self.random.randint(1, 3 if self.depth > 1 else 5)) for line in self.statement()]
        self.depth -= 1
        return [f"    {line}" for line in lines]

    def loop(self):
        over = [f"range({LENGTH})", "range(n)", "range(5, -1, -1)", "range(1, n)"]
        head = self.pick(
            *(f"for {self.pick('i', 'j')} in {x}:" for x in over),
            *("for k in a:", "for i, s in enumerate(b):", "for o in c:", "for k, t in zip(a, b):"),
        )
        self.loops += 1
        body = self.block()
        self.loops -= 1
        return [head, *body]


def arguments(program, seed, np=numpy):
    rng = numpy.random.default_rng(seed)

    def numbers(dtype, count):
        dtype = numpy.dtype(dtype)
        x = rng.integers(-4 if dtype.kind not in "bu" else 0, 9, count) * (1 if dtype.kind in "biu" else 0.5)
        x = x.astype(dtype) + (0.5j if dtype.kind == "c" else 0)
        if dtype.kind in "iu" and rng.random() < 0.2:
            x[int(rng.integers(count))] = numpy.iinfo(dtype).max - int(rng.integers(3))
        return x.astype(dtype)

    arrays = [np.array(numbers(d, LENGTH)) for d in program.dtypes]
    single = [numbers(d, 1)[0] for d in program.numbers]
    single = [
        x.item() if d in ("int", "bool", "float", "complex") and rng.random() < 0.8 else x
        for d, x in zip(program.numbers, single)
    ]
    return *arrays, *single, int(rng.integers(2, 7))


def ran(f, given, exactly):
    """(what it returns or raises, with types; its arrays after)."""
    try:
        result = [(loop_fuzzer.kind(x, exactly), plain(x)) for x in f(*given)]
    except (*RAISED, OverflowError) as error:
        result = [type(error).__name__, str(error)]
    return result, [numpy.array(x) for x in given[:3]]


def plain(x):
    return x if type(x) in (int, float, bool) else numpy.asarray(x)


def close(a, b, rtol):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(close(x, y, rtol) for x, y in zip(a, b))
    if type(a) is float and type(b) is float:
        a, b = numpy.asarray(a), numpy.asarray(b)
    if not isinstance(a, numpy.ndarray) or not isinstance(b, numpy.ndarray):
        return type(a) is type(b) and a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc" or not rtol:
        return numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    rtol = 1e-5 if a.dtype in ("f4", "c8") else rtol
    if a.dtype.kind == "c" and not (numpy.isfinite(a).all() and numpy.isfinite(b).all()):
        return bool((numpy.isfinite(a) == numpy.isfinite(b)).all())  # which part of a complex number is NaN is libm's
    return numpy.allclose(a, b, rtol=rtol, atol=rtol * 1e-3, equal_nan=True)


def differs(seed):
    """ "", or how a program differs, eager or under jit, from NumPy's."""
    program = Mixed(seed)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = made(program.source, minnp.numpy, f"<mixed {seed}>")
        numpys, compiled = made(program.source, numpy, f"<mixed numpy {seed}>"), jit(ours)
        for turn in range(3):
            which = seed + 1000 * (turn // 2)
            given = [f"{type(x).__name__}:{getattr(x, 'dtype', '')}" for x in arguments(program, which)]
            expected = ran(numpys, arguments(program, which), turn != 1)
            if turn != 1:
                eager = ran(ours, arguments(program, which, minnp.numpy), True)
                if not close(expected, eager, 1e-12):
                    return f"program {seed}, eager\n{program.source}{given}\nNumPy: {expected}\neager: {eager}"
                expected = ran(numpys, arguments(program, which), False)
            found = ran(compiled, arguments(program, which, minnp.numpy), False)
            failed = any("compiler failed" in row["why"] for row in minnp.report())
            if failed or not close(expected, found, 1e-12):
                return f"program {seed}, call {turn}\n{program.source}{given}\nNumPy: {expected}\njit:   {found}"
            tally["calls that raise"] += isinstance(expected[0][0], str)
            tally["calls"] += 1
    return ""


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    for seed in range(first, first + count):
        found = differs(seed)
        if found:
            tally["differ"] += 1
            print(found, "\n", flush=True)
        tally["compiled"] += not any(f"<mixed {seed}>" in str(row) for row in minnp.report(reset=True))
    print(dict(tally))
