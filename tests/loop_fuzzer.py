"""Random programs of loops, run by NumPy, by eager minnp and under jit: values, types, errors, what is written before
an error, and gradients, beside eager ones and differences.

`python tests/loop_fuzzer.py FIRST COUNT [gradient|batch]` runs programs by their numbers and prints those that differ.
"""

import collections
import contextlib
import linecache
import math
import random
import signal
import sys
import warnings

import numpy

import minnp
import minnp.numpy
from minnp import jit, vmap
from minnp.core.loops import compiled as compiled_loops

compiled_loops.TRIED = compiled_loops.RUNS = 0  # the second run is of code that is compiled well

HEAD = """def program(a, b, c, d, m, n, x):
    i = j = k = 0
    s, r = 0.0, 1.0
    t, u = 1, n
    ok, found = True, False
    w = np.zeros(6)
"""
HELPERS = [  # what a function of p and q does
    """if p > q: return p - q
return q * 0.5""",
    """z = p * q
if z < 0: z = -z
return z / (1 + z)""",
    """for e in range(4):
    if p > q: break
    p += 0.5
return p""",
    "return max(p, 0.0) - min(q, 1.0)",
    """if p * q <= 0: return 0.0
return p if abs(p) < abs(q) else q""",
]
VECTOR_HELPERS = [  # what a function of v does
    """z = 0.0
for e in v: z += e
return z""",
    """z = 0.0
for e in range(len(v)):
    if v[e] > 0: z += v[e] * e
return z""",
    """e, z = 0, 0.0
while e < v.shape[0]:
    z -= v[e]
    e += 2
return z""",
]


LISTS = 10**9  # programs from this number on fill lists


def function(head, lines):
    return head + "".join(f"    {line}\n" for line in lines)


class Choices:
    """What a program of this number is made by."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)


class Program(Choices):
    """The source of one program. a: float64[7], b: float64[5, 6], c: int64[6], d: float32[5], m: bool[6], n: int,
    x: float. w is an array of its own, float64[6]."""

    def __init__(self, seed):
        super().__init__(seed)
        self.depth = self.loops = self.count = 0
        self.ints, self.floats, self.views, self.bools = ["n", "t", "u"], ["x", "s", "r"], [], ["ok", "found"]
        self.helpers = self.random.random() < 0.35
        self.whole = self.random.random() < 0.5  # as some programs do, it has operations on whole arrays
        self.odd = self.random.random() < 0.3  # lists, raises, returns from within
        body = [line for _ in range(self.random.randint(1, 3)) for line in self.loop()]
        if self.odd and self.random.random() < 0.5:
            body = ["out = []", *body, "s += sum(out)", "t += len(out)"]
        else:
            body = [line.replace("out.append(", "s += (") for line in body]
        if any("least" in line for line in body):
            body = [self.pick("least = None", "least = last = None"), *body, "if least is not None: r = least"]
            body += ["ok = least is None"]
        ends = "return s, t, i, j, k, r, u, ok, found, w"
        source = function(HEAD, [*body, ends])
        if self.helpers:
            helper = function("def helper(p, q):\n", self.pick(*HELPERS).splitlines())
            total = function("def total(v):\n", self.pick(*VECTOR_HELPERS).splitlines())
            source = f"{helper}\n\n{total}\n\n{source}"
        self.source = source

    # -------------------------------------------------------------- expressions
    def int(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.33:
            return self.pick(*self.ints, "i", "j")
        if r < 0.46:
            return str(self.random.randint(-3, 6))
        if r < 0.56:
            return f"c[{self.index(6)}]"
        if r < 0.6:
            return f"int({self.float(depth + 1)})"
        if r < 0.64:
            return f"{self.pick('min', 'max')}({self.int(depth + 1)}, {self.int(depth + 1)})"
        if r < 0.67:
            return f"abs({self.int(depth + 1)})"
        if r < 0.7:
            return self.pick("len(a)", "b.shape[1]", "c.size", "len(w) - 1", "b.shape[0] - i")
        if r < 0.72 and self.whole:
            return self.pick("np.argmax(a)", "int(c.sum())", "np.argmin(b[1])", "c[1:4].max()", "np.count_nonzero(m)")
        if r < 0.74:
            return self.pick("int(ok)", "m[i % 6] + 1", "(found + ok)", "-t", "~u", "(t & 7) << 1", "u >> 1")
        if r < 0.78:
            return f"({self.int(depth + 1)} if {self.test(depth + 1)} else {self.int(depth + 1)})"
        if r < 0.8:
            return f"({self.int(depth + 1)}) {self.pick('**', '//', '%')} {self.random.randint(1, 3)}"
        op = self.pick("+", "-", "+", "-", "*", "//", "%", "&", "|", "^")
        return f"({self.int(depth + 1)} {op} {self.int(depth + 1)})"

    def float(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.28:
            return self.pick(*self.floats)
        if r < 0.36:
            return self.pick("0.5", "2.0", "1.25", "-1.0", "0.0", "3", "1e-3")
        if r < 0.48:
            return f"a[{self.index(7)}]"
        if r < 0.56:
            return f"b[{self.index(5)}, {self.index(6)}]"
        if r < 0.61:
            return f"w[{self.index(6)}]"
        if r < 0.63:
            return f"d[{self.index(5)}]"
        if r < 0.67 and self.views:
            return f"{self.pick(*self.views)}[{self.index(5)}]"
        if r < 0.71:
            forms = [
                "np.sum(a[:{0}])",
                "a[{0}:] @ a[{0}:]",
                "b[:, 1].max()",
                "np.sum(b[1:3])",
                "b[i % 5, :{0}] @ a[:{0}]",
            ]
            forms += [
                "np.dot(b[j % 5], w)",
                "a[{0}:{0} + 3].mean()",
                "sum(a)",
                "min(w)",
                "max(a)",
                "np.abs(w).max()",
                "(b[{0}] * w).sum()",
            ]
            if self.whole:
                forms += ["np.max(np.abs(a - a[::-1]))", "w.min()", "np.linalg.norm(a[:3])", "a.std()", "(a > x).sum()"]
            return self.pick(*forms).format(self.pick(1, 2, 3, "i"))
        if r < 0.73 and self.helpers:
            return f"helper({self.float(depth + 1)}, {self.float(depth + 1)})"
        if r < 0.74 and self.helpers:
            return f"total({self.pick('a', 'w', 'b[1]', 'a[i:]', 'b[:, 2]')})"
        if r < 0.79:
            function = self.pick("np.tanh", "np.sin", "abs", "float", "np.floor", "np.cos", "math.floor", "np.sign")
            if self.random.random() < 0.2:
                function = self.pick("np.rint", "np.arcsinh", "np.round", "np.reciprocal", "np.radians", "np.float64")
            return f"{function}({self.float(depth + 1)})"
        if r < 0.82:
            form = self.pick(
                "np.sqrt(abs({}))", "np.exp(-abs({}))", "np.log(1 + abs({}))", "math.sqrt(abs({}))", "round({})"
            )
            if self.random.random() < 0.15:
                form = self.pick(
                    "np.round({}, 1)", "np.where({} > x, s, 0.5)", "np.where(ok, {}, 1)", "np.power({}, 2)"
                )
            return form.format(self.float(depth + 1))
        if r < 0.85:
            function = self.pick("min", "max", "np.minimum", "np.maximum", "np.hypot", "np.arctan2")
            return f"{function}({self.float(depth + 1)}, {self.float(depth + 1)})"
        if r < 0.87:
            return f"({self.float(depth + 1)} if {self.test(depth + 1)} else {self.float(depth + 1)})"
        if r < 0.885:
            return f"({self.float(depth + 1)}) ** {self.pick('2', '3', '2', '-1', '0.5')}"
        op = self.pick("+", "-", "*", "+", "-", "*", "/", "%", "//")
        return f"({self.float(depth + 1)} {op} {self.pick(self.float, self.int)(depth + 1)})"

    def test(self, depth=0):
        r = self.random.random()
        compare = self.pick("<", "<=", ">", ">=", "==", "!=")
        if r < 0.36:
            return f"{self.int(depth + 1)} {compare} {self.int(depth + 1)}"
        if r < 0.68 or depth > 1:
            return f"{self.float(depth + 1)} {compare} {self.float(depth + 1)}"
        if r < 0.76:
            return self.pick(*self.bools, "m[i % 6]", f"m[{self.index(6)}]", "not found", "ok and not found")
        if r < 0.88:
            return f"({self.test(depth + 1)} {self.pick('and', 'or')} {self.test(depth + 1)})"
        if r < 0.91:
            return self.pick(
                "i in (1, 3)", "t not in (0, 2, 4)", "abs(s - r) < 1e-3", "np.isnan(s)", "a[i % 7] is None"
            )
        return self.pick(f"not ({self.test(depth + 1)})", f"0 <= {self.int(depth + 1)} < 4", self.pick(*self.ints), "s")

    def index(self, size):
        r = self.random.random()
        if r < 0.55:
            return self.pick("i", "j", "i - 1", "i + 1", "j % 3", "-1", "0", "k", "-i - 1", "i // 2", "j - i")
        if r < 0.97:
            return f"{self.pick('i', 'j', *self.ints)} % {size}"
        return self.int(2)

    def slice(self):
        return self.pick("1:", ":-1", "i:", ":j", "::2", "1:4", "i:i + 2", ":", "::-1", "-3:", "j:i", "i - 1:i + 2")

    # -------------------------------------------------------------- statements
    def block(self):
        self.depth += 1
        before = [list(v) for v in (self.ints, self.floats, self.views)]
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement()]
        self.ints, self.floats, self.views = before
        self.depth -= 1
        return [f"    {line}" for line in lines]

    def statement(self):
        r = self.random.random()
        if r < 0.18 and self.depth < 3:
            return self.loop()
        if r < 0.32 and self.depth < 4:
            out = [f"if {self.test()}:", *self.block()]
            if self.random.random() < 0.25:
                out += [f"elif {self.test()}:", *self.block()]
            if self.random.random() < 0.4:
                out += ["else:", *self.block()]
            return out
        if r < 0.37 and self.loops:
            return [f"if {self.test()}:", f"    {self.pick('break', 'continue')}"]
        if r < 0.47:
            return [f"a[{self.index(7)}] {self.pick('=', '+=', '-=', '*=')} {self.float()}"]
        if r < 0.53:
            return [f"w[{self.index(6)}] {self.pick('=', '+=', '-=')} {self.float()}"]
        if r < 0.6:
            return [f"b[{self.index(5)}, {self.index(6)}] {self.pick('=', '+=')} {self.float()}"]
        if r < 0.64:
            return [f"c[{self.index(6)}] {self.pick('=', '+=')} {self.int()}"]
        if r < 0.66:
            return [self.pick(f"d[{self.index(5)}] = {self.float(1)}", f"m[{self.index(6)}] = {self.test(1)}")]
        if r < 0.72:
            return [f"{self.pick('s', 's', 'r')} {self.pick('=', '+=', '*=', '-=', '/=')} {self.float()}"]
        if r < 0.78:
            name, op = self.pick("t", "t", "u"), self.pick("=", "+=", "-=", "+=", "//=", "%=", "^=", "*=")
            return [f"{name} {op} {self.int()}"]
        if r < 0.81:
            return [
                self.pick(
                    *(f"ok = {self.test(1)}", f"found = found or {self.test(1)}", f"ok = ok and {self.test(1)}"),
                    *(f"found |= {self.test(1)}", f"ok &= m[{self.index(6)}]", f"found = bool({self.int(1)})"),
                )
            ]
        if r < 0.84:
            name = f"v{len(self.views)}"
            self.views.append(name)
            return [
                f"{name} = {self.pick(f'b[{self.index(5)}]', 'a[::-1]', 'b.T[i % 5]', 'b[:, j % 6]', 'w', 'a[1:]')}"
            ]
        if r < 0.875:
            s = self.slice()
            return [f"a[{s}] {self.pick('=', '+=', '*=')} {self.pick(self.float(2), f'a[{s}] * 2', f'a[{s}][::-1]')}"]
        if r < 0.9:
            return [f"b[{self.index(5)}, {self.slice()}] {self.pick('=', '+=', '*=')} {self.float(2)}"]
        if r < 0.93:
            return [self.rows()]
        if r < 0.95:
            return self.exchange()
        if r < 0.97 and self.whole:
            return [
                self.pick(
                    *(f"a[a > {self.float(2)}] = {self.float(2)}", "a[m.sum():] *= -1", "w[m] += x", "w[:] = b[i % 5]"),
                    *(
                        "w = w * 0.5 + b[j % 5]",
                        "a = a + x",
                        "b += w",
                        "b *= 0.5",
                        "w = np.where(m, w, -w)",
                        "w = w[::-1]",
                    ),
                    *("a[c % 7] = 0.5", "w = np.maximum(w, 0.0)", "w = np.cumsum(b[1])", "b[:, i % 6] = a[:5]"),
                )
            ]
        if r < 0.985 and self.odd:
            return [
                self.pick(
                    *(f"out.append({self.float(1)})", f"out.append({self.float(1)})"),
                    *(f"if {self.test(1)}: return s, t, i, j, k", "if s > 50: raise ValueError('too large')"),
                    *("least = None", f"if least is None: least = {self.int(2)}", "last = least"),
                    *(f"if least is None or {self.float(1)} < least: least = {self.float(1)}", "s += least"),
                    *("if found: return s, r", "assert s == s or ok", "s += sum(a[e] for e in range(3))"),
                )
            ]
        return [f"i, t = t, {self.int(2)}"] if not self.loops else [f"s, x = x, {self.float(2)}"]

    def rows(self):
        return self.pick(
            *("b[i % 5] -= x * b[j % 5]", "b[i % 5, :] = b[j % 5] * 0.5", "b[:, j % 6] += a[:5]", "b[0] = w"),
            *("b[i % 5] /= 2.0", "w[:] = b[i % 5] + w[::-1]", "b[1:, 1:] -= b[:-1, :-1]", "w += b[i % 5]"),
            *("a[:i] += a[i]", "w[i:] = w[i - 1]", "b[i % 5, i:] -= b[0, i:] * x", "a[1:-1] = (a[:-2] + a[2:]) / 2"),
        )

    def exchange(self):
        i, j = self.index(7), self.index(7)
        return self.pick(
            [f"a[{i}], a[{j}] = a[{j}], a[{i}]"],
            ["s, r = r, s + r"],
            [f"if a[{i}] > a[{j}]:", f"    a[{i}], a[{j}] = a[{j}], a[{i}]"],
            ["s, t = s + t, t + 1"],
            ["t, u = u, t % (u * u + 1)"],
            [f"z = a[{i}]", f"a[{i}] = w[i % 6]", "w[i % 6] = z"],
        )

    def loop(self):
        var = self.pick("i", "j", "k")
        r = self.random.random()
        before, after = [], []
        if r < 0.58:
            over = self.pick(
                *("5", "n", "1, 5", "4, -1, -1", "i, 5", "0, 6, 2", "3", "n, 6", "5, 0, -2", "len(a)", "i + 1, 6", "i"),
                *("1, len(a) - 1", "b.shape[0]", "n - 1, -1, -1", "t % 5", "c[0]", "0, n, u * u + 1", "8"),
            )
            head = f"for {var} in range({over}):"
        elif r < 0.7:
            head = self.pick(
                *("for s in a:", f"for {var}, s in enumerate(a):", "for s, t in zip(a, c):", "for v in b[1:3]:"),
                *(f"for {var} in reversed(range(4)):", f"for {var} in (0, 2, 1):", "for r in a[1:4]:", "for t in c:"),
                *(f"for {var}, v in enumerate(b):", "for s, r in zip(w, a[::-1]):", f"for {var} in [3, 1]:"),
                *("for ok in m:", "for s in b[i % 5]:", f"for {var}, (s, r) in enumerate(zip(a, w)):"),
            )
        else:
            self.count += 1
            counter = f"w{self.count}"
            before = [f"{counter} = 0"]
            most = self.random.randint(1, 6)
            if self.random.random() < 0.2:
                head, after = "while True:", [f"    {counter} += 1", f"    if {counter} > {most}:", "        break"]
            else:
                head = f"while {counter} < {most} and {self.test()}:"
                after = [f"    {counter} += 1"]
        self.loops += 1
        body = self.block()
        self.loops -= 1
        end = ["else:", *self.block()] if self.random.random() < 0.15 else []
        return [*before, head, *after, *body, *end]


class WithLists(Program):
    """One that fills two lists: out, of floats, and rows, of arrays such as w."""

    def __init__(self, seed):
        super().__init__(seed)
        head, body = self.source.rsplit(HEAD, 1)
        *body, ends = [line.removeprefix("    ") for line in body.splitlines()]
        first = self.pick(["out = []", "rows = []"], ["out, rows = [x], [w * 1.0]"], ["out = [0.0, x]", "rows = []"])
        last = self.pick(
            *("s += np.sum(np.array(out) ** 2)", "for e in out: s += e * 0.5", "s += sum(out)", "s += len(out)"),
            *("s += out[-1] * x if out else 0.0", "r += max(out) if len(out) > 1 else s"),
        )
        more = self.pick(
            *("if rows: w = w + np.array(rows).sum(axis=0)", "if rows: w = w + np.stack(rows)[-1] * x"),
            *("for e in rows: w = w + e", "if len(rows) > 1: s += np.sum(rows[0] * rows[-1])", "t += len(rows)"),
            *("s += sum([e.sum() for e in rows])", "if rows: s += np.concatenate(rows).sum()"),
        )
        self.source = head + function(HEAD, [*first, *body, last, more, ends])

    def statement(self):
        if self.random.random() > 0.3 or not self.loops:
            return super().statement()
        return self.pick(
            *([f"out.append({self.float(1)})"], [f"out.append({self.float(1)})"], ["out.append(s)"]),
            *(["rows.append(w * x)"], ["rows.append(w + b[i % 5])"], ["rows.append(w.copy())"], ["rows.append(w)"]),
            *(["w = w * 0.5 + b[j % 5]", "rows.append(w)"], ["rows.append(np.tanh(b[k % 5]))"]),
            *(
                ["if out: s += out[-1] * x"],
                ["if len(out) > 2: s += out[-2] - out[0]"],
                ["if rows: s += rows[-1][i % 6]"],
            ),
            *(["if rows: w = w + rows[0]"], ["if len(out) > 1: out[-1] += x"], [f"if out: out[0] = {self.float(2)}"]),
            *(["if len(out) > 3: out.pop()"], ["out.extend([s, r])"], ["z = [e * x for e in out]", "s += sum(z)"]),
            *(["if len(rows) > 2: rows.pop()"], ["out = [x]"], ["rows = []"], ["out = [e * 0.5 for e in out]"]),
        )


def numbered(seed):
    return (WithLists if seed >= LISTS else Program)(seed)


def arguments(seed, np=numpy):
    """A program's arguments; of one seed in seven, a shows memory of b's."""
    rng = numpy.random.default_rng(seed)
    a, b = rng.normal(size=7).round(2), rng.normal(size=(5, 6)).round(2)
    c, n, x = rng.integers(-3, 6, 6), int(rng.integers(0, 6)), round(float(rng.normal()), 2)
    d, m = rng.normal(size=5).round(2).astype("f4"), rng.integers(0, 2, 6).astype(bool)
    a, b, c, d, m = map(np.array, (a, b, c, d, m))
    if seed % 7 == 3:
        a = b.reshape(-1)[4:25:3]
    return a, b, c, d, m, n, x


def made(source, np, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"np": np, "math": math, "__name__": "fuzzed"}
    exec(compile(source, name, "exec"), names)
    return names["program"]


RAISED = (ArithmeticError, LookupError, ValueError, TypeError, UnboundLocalError, AssertionError)


def ran(f, given, exactly):
    """(what it returns or raises, with types, and its arrays after)."""
    try:
        out = f(*given)
        result = [(kind(x, exactly), plain(x)) for x in out]
    except RAISED as error:
        result = [type(error).__name__, str(error).replace("=: ", ": ")]  # `+=` of what is traced is `+`
    return result, [numpy.array(x) for x in given[:5]]


def plain(x):
    return numpy.array(x) if numpy.ndim(x) else numpy.asarray(x).item()


def kind(x, exactly):
    """Its type. NumPy's numbers are arrays without axes where they come out of jit."""
    if type(x) in (int, float, bool) or (exactly and isinstance(x, numpy.generic)):
        return type(x).__name__
    return f"{numpy.asarray(x).dtype}[{numpy.ndim(x)}]"


def close(a, b, rtol=1e-9):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(close(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, (float, numpy.ndarray)):
        if numpy.asarray(a).dtype != numpy.asarray(b).dtype or numpy.shape(a) != numpy.shape(b):
            return False
        at = max(rtol, 1e-5) if rtol and numpy.asarray(a).dtype.itemsize == 4 else rtol
        return numpy.allclose(a, b, rtol=at, atol=at and 1e-3 * at, equal_nan=True)
    return a == b


tally = collections.Counter()


def differs(seed):
    """ "", or how a program differs, eager or under jit, from NumPy's."""
    program = numbered(seed)
    rtol = 1e-5 if "d[" in program.source else 1e-9  # float32, whose functions differ in the last bits
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = made(program.source, minnp.numpy, f"<fuzzed {seed}>")
        numpys, compiled = made(program.source, numpy, f"<fuzzed numpy {seed}>"), jit(ours)
        for turn in range(3):
            which = seed + 1000 * (turn // 2)
            with of_python():
                expected = ran(numpys, arguments(which), turn != 1)
            if any(x.dtype.kind != "b" and abs(x).max() > 1e12 for x in expected[1]):
                tally["beyond 1e12"] += 1
                return ""  # the last bits of sums decide what the sines of such numbers are
            if turn != 1:
                eager = ran(ours, arguments(which, minnp.numpy), True)
                if not close(expected, eager, 0):
                    return f"program {seed}, eager\n{program.source}\nNumPy: {expected}\neager: {eager}"
                expected = ran(numpys, arguments(which), False)
            if "instances of 'float' and 'complex'" in str(expected[0]):
                tally["compares Python's complex numbers"] += 1  # docs/sharp_edges.md: compiled code has NumPy's
                return ""
            found = ran(compiled, arguments(which, minnp.numpy), False)
            failed = any("compiler failed" in row["why"] for row in minnp.report())
            if failed or not close(expected, found, rtol):
                return f"program {seed}, call {turn}\n{program.source}\nPython: {expected}\njit:    {found}"
            tally["calls that raise"] += isinstance(expected[0][0], str)
    return ""


# ------------------------------------------------------------------ batches
def differs_in_batch(seed):
    """ "", or how a program under vmap, with its loops compiled, differs from NumPy's for each example."""
    program = numbered(seed)
    rtol = 1e-5 if "d[" in program.source else 1e-9
    size = 2 + seed % 3
    batches = [arguments(5000 + 7 * (seed + k)) for k in range(size)]
    n = batches[0][5]
    given = [numpy.stack([b[k] for b in batches]) for k in (0, 1, 2, 3, 4, 6)]
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        numpys = made(program.source, numpy, f"<fuzzed numpy batch {seed}>")
        ours = made(program.source, minnp.numpy, f"<fuzzed batch {seed}>")
        try:
            alone = []
            for k in range(size):  # numbers as an array holds them
                alone.append([numpy.asarray(x) for x in whole(numpys, n)(*[x[k].copy() for x in given])])
        except RAISED as error:
            expected = type(error).__name__
        else:
            if any(x.dtype.kind == "O" or abs(x + 0).max() > 1e12 for out in alone for x in out):
                return ""
            if len({tuple(x.shape for x in out) for out in alone}) > 1:
                tally["of several shapes"] += 1  # an early return: no array has the results
                return ""
            expected = [numpy.stack(column) for column in zip(*alone)]
        for name, f in ("vmap(jit)", vmap(jit(whole(ours, n)))), ("jit(vmap)", jit(vmap(whole(ours, n)))):
            for turn in range(2):
                try:
                    found = [numpy.asarray(x) for x in f(*map(minnp.numpy.array, given))]
                except RAISED as error:
                    found = type(error).__name__
                failed = any("compiler failed" in row["why"] for row in minnp.report())
                if failed or not close(expected, found, rtol):
                    return f"program {seed}, {name}, call {turn}\n{program.source}\nNumPy: {expected}\nfound: {found}"
        tally["batches that raise" if isinstance(expected, str) else "batches"] += 1
    return ""


def whole(f, n):
    """A program as a function of its arrays and x, which returns all that it computes and writes."""

    def run(a, b, c, d, m, x):
        return *f(a, b, c, d, m, n, x), a, b, c, d, m

    return run


# ------------------------------------------------------------------ gradients
def loss_of(f, given, np):
    """A number made of all that a program computes, as a function of a, b and x."""
    _, _, c, d, m, n, _ = given
    rng = numpy.random.default_rng(0)
    p, q = rng.normal(size=7), rng.normal(size=(5, 6))

    def loss(a, b, x):
        a, b = a.copy(), b.copy()
        s, *more = f(a, b, c.copy(), d.copy(), m.copy(), n, x)
        end = more[-1].sum() if len(more) == 9 else 0.0
        return np.sum(a * p) + np.sum(b * q) + s + end

    return loss


def gradients(f, transform, given):
    """What a transformation of the loss gives, or the name of what it raises."""
    a, b, *_, x = given
    try:
        found = transform(loss_of(f, given, minnp.numpy))(a, b, minnp.numpy.float64(x))
        return [numpy.asarray(g) for g in found]
    except RAISED as error:
        return type(error).__name__


def second(f):
    """The gradients of all gradients' products with fixed numbers."""

    def product(a, b, x):
        ga, gb, gx = minnp.grad(f, (0, 1, 2))(a, b, x)
        p, q = numpy.cos(numpy.arange(7.0)), numpy.sin(numpy.arange(30.0)).reshape(5, 6)
        return minnp.numpy.sum(ga * p) + minnp.numpy.sum(gb * q) + gx

    return minnp.grad(product, (0, 1, 2))


def direction():
    rng = numpy.random.default_rng(1)
    return rng.normal(size=7), rng.normal(size=(5, 6)), rng.normal()


def tangents(f, given, e):
    """The derivatives along each argument's own part of a direction."""
    at = lambda k: tuple(d if j == k else d * 0 for j, d in enumerate(e))
    return [minnp.numpy.array([minnp.jvp(f, given, at(k))[1] for k in range(len(e))])]


def along(f, given, step):
    """Central and one-sided differences of a NumPy program's loss, the direction, and the round-off in them."""
    a, b, *_, x = given
    loss = loss_of(f, given, numpy)
    e = direction()
    at = lambda h: float(loss(a + h * e[0], b + h * e[1], numpy.float64(x + h * e[2])))
    low, mid, high = at(-step), at(0.0), at(step)
    return [(high - low) / (2 * step), (high - mid) / step, (mid - low) / step], e, abs(mid) * 1e-15 / step


def differs_in_gradient(seed):
    """ "", or how the gradients of a program differ: eager ones from differences, those under jit from eager ones."""
    program = numbered(seed)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        eager = made(program.source, minnp.numpy, f"<fuzzed gradient {seed}>")
        given = arguments(seed, minnp.numpy)
        argnums = (0, 1, 2)
        with of_python():
            expected = gradients(eager, lambda f: minnp.grad(f, argnums), given)
        if isinstance(expected, str) or not all(numpy.isfinite(g).all() and abs(g).max() < 1e8 for g in expected):
            tally["no gradient" if isinstance(expected, str) else "infinite gradient"] += 1
            return ""
        if said := differs_from_differences(seed, program, expected):
            return said
        ours = jit(eager)
        for name, f, transform in (
            ("grad(jit)", ours, lambda f: minnp.grad(f, argnums)),
            ("jit(grad)", eager, lambda f: jit(minnp.grad(f, argnums))),
        ):
            found = gradients(f, transform, given)
            if found == "TracedValueError":  # what a loop may have written is followed, also where it was not
                tally["float(x) of what is followed"] += 1
                continue
            if isinstance(found, str) or not alike(expected, found):
                return f"program {seed}, {name}\n{program.source}\neager: {expected}\nfound: {found}"
        tally["gradients"] += 1
        if seed % 3 == 0:
            e = direction()
            slope = [numpy.array([numpy.sum(g * d) for g, d in zip(expected, e)])]
            found = gradients(eager, lambda f: jit(lambda *given: tangents(f, given, e)), given)
            if (
                not isinstance(found, str) and numpy.isnan(found[0]).any()
            ):  # 0 / 0, where a cotangent of zero stays zero
                slope = gradients(eager, lambda f: lambda *given: tangents(f, given, e), given)
                if not isinstance(slope, str) and numpy.array_equal(numpy.isnan(slope[0]), numpy.isnan(found[0])):
                    slope, found = [numpy.nan_to_num(slope[0])], [numpy.nan_to_num(found[0])]
            if found != "TracedValueError" and (isinstance(found, str) or not alike(slope, found)):
                return f"program {seed}, jit(jvp)\n{program.source}\ngradient: {slope}\nfound: {found}"
            tally["tangents"] += 1
        if seed % 4 == 0:
            expected = gradients(eager, second, given)
            if not isinstance(expected, str) and all(numpy.isfinite(g).all() and abs(g).max() < 1e8 for g in expected):
                for name, f, transform in (
                    ("grad(grad(jit))", ours, second),
                    ("jit(grad(grad))", eager, lambda f: jit(second(f))),
                ):
                    found = gradients(f, transform, given)
                    if found == "TracedValueError":
                        tally["float(x) of what is followed"] += 1
                        continue
                    if isinstance(found, str) or not alike(expected, found):
                        return f"program {seed}, {name}\n{program.source}\neager: {expected}\nfound: {found}"
                tally["second gradients"] += 1
    return ""


def alike(a, b):
    size = max(1.0, *(abs(x).max() for x in a))
    return all(numpy.allclose(x, y, rtol=1e-7, atol=1e-9 * size) for x, y in zip(a, b))


def differs_from_differences(seed, program, expected):
    numpys = made(program.source, numpy, f"<fuzzed numpy gradient {seed}>")
    try:
        (central, *sides), e, _ = along(numpys, arguments(seed), 1e-5)
        (again, *_), _, lost = along(numpys, arguments(seed), 1e-6)
    except RAISED:
        return ""
    slope = float(sum(numpy.sum(g * v) for g, v in zip(expected, e)))
    size = 1e-4 * max(1.0, abs(central))
    if not all(abs(v - central) < 10 * size for v in sides) or not max(lost, abs(again - central)) < size:
        tally["not smooth"] += 1  # a jump, a kink, or round-off: differences tell nothing
        return ""
    if not abs(slope - central) < 10 * size:
        return f"program {seed}, eager gradient\n{program.source}\ndifference: {central}, gradient: {slope}"
    tally["differences"] += 1
    return ""


class TooLong(Exception):
    """Python itself takes too long: integers that are squared again and again."""


@contextlib.contextmanager
def of_python():
    try:
        yield
    except TimeoutError:
        raise TooLong from None


def stop(*_):
    raise TimeoutError("60 seconds of the processor")


def main(differs, program):
    """Run the programs whose numbers the command line names, each for at most a minute, and print those that differ."""
    first, count = map(int, sys.argv[1:3])
    wrong, reasons, sources = 0, collections.Counter(), set()
    signal.signal(signal.SIGPROF, stop)
    for seed in range(first, first + count):
        signal.setitimer(signal.ITIMER_PROF, 60)
        try:
            said = differs(seed)
        except TooLong:
            tally["too long for Python"] += 1
            said = ""
        except Exception as error:
            said = f"program {seed}: {type(error).__name__}: {error}\n{program(seed).source}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        left = [row["why"].partition(" (")[0] for row in minnp.report(reset=True) if row["backend"] == "python"]
        reasons.update(set(left))
        tally["wholly compiled"] += not left
        sources.add(program(seed).source)
        if said:
            wrong += 1
            print(said, "\n", flush=True)
    print(reasons.most_common(40))
    print(dict(tally), len(sources), "programs")
    print(f"{wrong} of {count} differ")


if __name__ == "__main__":
    main({"gradient": differs_in_gradient, "batch": differs_in_batch}.get(sys.argv[-1], differs), Program)
