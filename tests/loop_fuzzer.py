"""Random programs of loops, run by Python and under jit: values, types, errors, and what is written before an error.

`python tests/loop_fuzzer.py FIRST COUNT [gradient]` runs programs by their numbers and prints those that differ.
"""

import collections
import linecache
import random
import sys
import warnings

import numpy

import minnp
import minnp.numpy
from minnp import jit

HEAD = "def program(a, b, c, n, x):\n    i = j = k = 0\n    s = 0.0\n    t = 1\n"


class Program:
    """The source of one program. a: float64[7], b: float64[5, 6], c: int64[6], n: int, x: float."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.depth = self.loops = self.count = 0
        self.ints, self.floats, self.views = ["n", "t"], ["x", "s"], []
        body = [line for _ in range(self.random.randint(1, 3)) for line in self.loop()]
        self.source = HEAD + "".join(f"    {line}\n" for line in [*body, "return s, t, i, j, k"])

    def pick(self, *choices):
        return self.random.choice(choices)

    def int(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.35:
            return self.pick(*self.ints, "i", "j")
        if r < 0.5:
            return str(self.random.randint(-3, 6))
        if r < 0.6:
            return f"c[{self.index(6)}]"
        if r < 0.65:
            return f"int({self.float(depth + 1)})"
        if r < 0.7:
            return f"{self.pick('min', 'max')}({self.int(depth + 1)}, {self.int(depth + 1)})"
        if r < 0.74:
            return f"abs({self.int(depth + 1)})"
        if r < 0.78:
            return f"({self.int(depth + 1)} if {self.test(depth + 1)} else {self.int(depth + 1)})"
        op = self.pick("+", "-", "+", "-", "*", "//", "%", "&", "|", "^")
        return f"({self.int(depth + 1)} {op} {self.int(depth + 1)})"

    def float(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.3:
            return self.pick(*self.floats)
        if r < 0.4:
            return self.pick("0.5", "2.0", "1.25", "-1.0", "0.0", "3")
        if r < 0.55:
            return f"a[{self.index(7)}]"
        if r < 0.65:
            return f"b[{self.index(5)}, {self.index(6)}]"
        if r < 0.7 and self.views:
            return f"{self.pick(*self.views)}[{self.index(5)}]"
        if r < 0.73:
            return self.pick("np.sum(a[:{0}])", "a[{0}:] @ a[{0}:]", "b[:, 1].max()", "np.sum(b[1:3])").format(
                self.pick(1, 2, 3, "i")
            )
        if r < 0.78:
            return f"{self.pick('np.tanh', 'np.sin', 'abs', 'float', 'np.floor')}({self.float(depth + 1)})"
        if r < 0.82:
            function = self.pick("min", "max", "np.minimum", "np.maximum")
            return f"{function}({self.float(depth + 1)}, {self.float(depth + 1)})"
        op = self.pick("+", "-", "*", "+", "-", "*", "/", "%", "//")
        return f"({self.float(depth + 1)} {op} {self.pick(self.float, self.int)(depth + 1)})"

    def test(self, depth=0):
        r = self.random.random()
        compare = self.pick("<", "<=", ">", ">=", "==", "!=")
        if r < 0.4:
            return f"{self.int(depth + 1)} {compare} {self.int(depth + 1)}"
        if r < 0.75 or depth > 1:
            return f"{self.float(depth + 1)} {compare} {self.float(depth + 1)}"
        if r < 0.9:
            return f"({self.test(depth + 1)} {self.pick('and', 'or')} {self.test(depth + 1)})"
        return self.pick(f"not ({self.test(depth + 1)})", f"0 <= {self.int(depth + 1)} < 4", self.pick(*self.ints))

    def index(self, size):
        r = self.random.random()
        if r < 0.55:
            return self.pick("i", "j", "i - 1", "i + 1", "j % 3", "-1", "0", "k")
        if r < 0.97:
            return f"{self.pick('i', 'j', *self.ints)} % {size}"
        return self.int(2)

    def slice(self):
        return self.pick("1:", ":-1", "i:", ":j", "::2", "1:4", "i:i + 2", ":", "::-1")

    def block(self):
        self.depth += 1
        before = [list(v) for v in (self.ints, self.floats, self.views)]
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement()]
        self.ints, self.floats, self.views = before
        self.depth -= 1
        return [f"    {line}" for line in lines]

    def statement(self):
        r = self.random.random()
        if r < 0.2 and self.depth < 3:
            return self.loop()
        if r < 0.36 and self.depth < 4:
            out = [f"if {self.test()}:", *self.block()]
            if self.random.random() < 0.4:
                out += ["else:", *self.block()]
            return out
        if r < 0.42 and self.loops:
            return [f"if {self.test()}:", f"    {self.pick('break', 'continue')}"]
        if r < 0.56:
            return [f"a[{self.index(7)}] {self.pick('=', '+=', '-=', '*=')} {self.float()}"]
        if r < 0.66:
            return [f"b[{self.index(5)}, {self.index(6)}] {self.pick('=', '+=')} {self.float()}"]
        if r < 0.72:
            return [f"c[{self.index(6)}] {self.pick('=', '+=')} {self.int()}"]
        if r < 0.79:
            return [f"s {self.pick('=', '+=', '*=', '-=')} {self.float()}"]
        if r < 0.86:
            return [f"t {self.pick('=', '+=', '-=')} {self.int()}"]
        if r < 0.9:
            name = f"v{len(self.views)}"
            self.views.append(name)
            return [f"{name} = b[{self.index(5)}]"]
        if r < 0.94:
            s = self.slice()
            return [f"a[{s}] {self.pick('=', '+=', '*=')} {self.pick(self.float(2), f'a[{s}] * 2', f'a[{s}][::-1]')}"]
        if r < 0.97:
            return [f"b[{self.index(5)}, {self.slice()}] {self.pick('=', '+=', '*=')} {self.float(2)}"]
        return [f"i, t = t, {self.int(2)}"] if not self.loops else [f"s, x = x, {self.float(2)}"]

    def loop(self):
        var = self.pick("i", "j", "k")
        r = self.random.random()
        before, after = [], []
        if r < 0.6:
            over = self.pick("5", "n", "1, 5", "4, -1, -1", "i, 5", "0, 6, 2", "3", "n, 6", "5, 0, -2")
            head = f"for {var} in range({over}):"
        elif r < 0.72:
            head = self.pick(
                *("for s in a:", f"for {var}, s in enumerate(a):", "for s, t in zip(a, c):", "for v in b[1:3]:"),
                *(f"for {var} in reversed(range(4)):", f"for {var} in (0, 2, 1):"),
            )
        else:
            self.count += 1
            counter = f"w{self.count}"
            before = [f"{counter} = 0"]
            head = f"while {counter} < {self.random.randint(1, 6)} and {self.test()}:"
            after = [f"    {counter} += 1"]
        self.loops += 1
        body = self.block()
        self.loops -= 1
        end = ["else:", *self.block()] if self.random.random() < 0.15 else []
        return [*before, head, *after, *body, *end]


def arguments(seed):
    rng = numpy.random.default_rng(seed)
    a, b = rng.normal(size=7).round(2), rng.normal(size=(5, 6)).round(2)
    return a, b, rng.integers(-3, 6, 6), int(rng.integers(0, 6)), round(float(rng.normal()), 2)


def made(source, np, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"np": np, "__name__": "fuzzed"}
    exec(compile(source, name, "exec"), names)
    return names["program"]


def ran(f, given):
    """(what it returns or raises, with types, and its arrays after)."""
    try:
        out = f(*given)
        result = [(number(x), numpy.asarray(x).item()) for x in out]
    except (ArithmeticError, LookupError, ValueError, TypeError, UnboundLocalError) as error:
        result = [type(error).__name__, str(error)]
    return result, [numpy.array(x) for x in given[:3]]


def number(x):
    """Its type, where NumPy's numbers are arrays without axes, as those that come out of jit are."""
    return type(x).__name__ if type(x) in (int, float, bool) else numpy.asarray(x).dtype.name


def close(a, b):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, (float, numpy.ndarray)):
        return (
            numpy.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
            and numpy.asarray(a).dtype == numpy.asarray(b).dtype
        )
    return a == b


def differs(seed):
    """ "", or how a program differs under jit."""
    program = Program(seed)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = made(program.source, numpy, f"<fuzzed numpy {seed}>")
        ours = jit(made(program.source, minnp.numpy, f"<fuzzed {seed}>"))
        for turn in range(3):
            given = arguments(seed + 1000 * (turn // 2))
            expected = ran(plain, [numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in given])
            if any(abs(x).max() > 1e12 for x in expected[1]):
                return ""  # the last bits of sums decide what the sines of such numbers are
            found = ran(ours, [minnp.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in given])
            failed = any("compiler failed" in row["why"] for row in minnp.report())
            if failed or not close(expected, found):
                return f"program {seed}, call {turn}\n{program.source}\nPython: {expected}\njit:    {found}"
    return ""


def gradients(f, transform, given):
    """The gradients of a number made of all that a program computes, or what it raises."""
    a, b, c, n, x = given
    rng = numpy.random.default_rng(0)
    p, q = rng.normal(size=7), rng.normal(size=(5, 6))

    def loss(a, b, x):
        a, b = a.copy(), b.copy()
        s, *_ = f(a, b, c.copy(), n, x)
        return np_sum(a * p) + np_sum(b * q) + s

    np_sum = minnp.numpy.sum
    try:
        return [numpy.asarray(g) for g in transform(loss)(a, b, minnp.numpy.float64(x))]
    except (ArithmeticError, LookupError, ValueError, TypeError, UnboundLocalError) as error:
        return type(error).__name__


def differs_in_gradient(seed):
    """ "", or how the gradients of a program differ under jit from eager ones."""
    program = Program(seed)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = made(program.source, minnp.numpy, f"<fuzzed gradient {seed}>")
        given = [minnp.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in arguments(seed)]
        argnums = (0, 1, 2)
        expected = gradients(plain, lambda f: minnp.grad(f, argnums), given)
        if isinstance(expected, str) or not all(numpy.isfinite(g).all() and abs(g).max() < 1e8 for g in expected):
            return ""
        ours = jit(plain)
        for name, f, transform in (
            ("grad(jit)", ours, lambda f: minnp.grad(f, argnums)),
            ("jit(grad)", plain, lambda f: jit(minnp.grad(f, argnums))),
        ):
            found = gradients(f, transform, given)
            if isinstance(found, str) or not all(
                numpy.allclose(x, y, rtol=1e-7, atol=1e-9) for x, y in zip(expected, found)
            ):
                return f"program {seed}, {name}\n{program.source}\neager: {expected}\nfound: {found}"
    return ""


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    differs = {"gradient": differs_in_gradient}.get(sys.argv[-1], differs)
    wrong, reasons = 0, collections.Counter()
    for seed in range(first, first + count):
        try:
            said = differs(seed)
        except Exception as error:
            said = f"program {seed}: {type(error).__name__}: {error}\n{Program(seed).source}"
        for row in minnp.report(reset=True):
            if row["backend"] == "python":
                reasons[row["why"].partition(" (")[0]] += row["calls"]
        if said:
            wrong += 1
            print(said, flush=True)
    print(reasons.most_common(20))
    print(f"{wrong} of {count} differ")
