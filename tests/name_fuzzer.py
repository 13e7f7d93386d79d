"""Random loops whose names are bound anew: to arrays without axes and numbers, in rotations and exchanges, on some ways
alone. Run by NumPy, by eager minnp and under jit: values, types, errors, what is written, and gradients.

`python tests/name_fuzzer.py FIRST COUNT [gradient]` runs programs by their numbers and prints those that differ.
"""

import sys
import types
import warnings

import loop_fuzzer
import numpy
from loop_fuzzer import RAISED, Choices, function, made, tally

import minnp
import minnp.numpy
from minnp import jit

STEPS = (3, 12, 30)


class Names(Choices):
    """The source of one program. x: a number, or an array without axes; z: such an array; a, b: float64[4]; m:
    float64[3, 2]; n: an int. Its variables: p, q, r (numbers, or arrays without axes), u, v, w (vectors), g, h
    (matrices), c (an int), t (a tuple), box (attributes), d (items)."""

    def __init__(self, seed):
        super().__init__(seed)
        self.depth = self.loops = 0
        pick = self.pick
        self.exact = self.random.random() < 0.7  # no sums and functions, whose last bits differ
        self.anything = self.random.random() < 0.4  # names become what they were not
        starts = (
            ("x", "x", "z", "np.array(0.5)", "np.zeros(())", "1.0", "a[1]")
            if seed % 2
            else ("1.0", "a[1]", "b[0] * 0.5")
        )
        lines = [f"{name} = {pick(*starts)}" for name in "pqr"]
        lines += ["u, v, w, g, h = a, b, a - b, m, m * 0.5", "c, t = 0, (x, a * 0.5)"]
        self.held = self.random.random() < 0.25
        if self.held:
            lines += ["box, d = Box(s=x, v=a), {'s': x, 'v': b}"]
        if self.random.random() < 0.3:
            k = self.random.randrange(3)  # a name that is not bound before
            lines[k] = f"if n < 0: {lines[k]}"
        lines += self.loop()
        if self.random.random() < 0.3:
            lines += self.loop()
        lines += ["return p, q, r, u, v, w, g, h, c, t" + ", vars(box), d" * self.held]
        self.source = function("def program(x, z, a, b, m, n):\n", lines)

    # -------------------------------------------------------------- expressions
    def number(self, depth=0):
        r = self.random.random()
        if r < 0.4 or depth > 1:
            return self.pick("p", "q", "r", "p", "q", "x", "z")
        if r < 0.5:
            return self.pick("1.0", "0.5", "2", "-0.25", "k")
        if r < 0.6:
            return self.pick("u[k % 4]", "v[1]", "a[k % 4]", "g[k % 3, 1]", "t[0]", "u[-1]", "w[2]")
        if r < 0.64:
            return self.pick("np.array(0.5)", "np.array(k)", "np.zeros(())", "np.ones(())", "z[...]", "u[k % 4, ...]")
        if r < 0.68 and not self.exact:
            return self.pick("u.sum()", "np.tanh(p)", "np.sum(g)", "v @ w", "np.exp(-abs(q))", "u.max()")
        if r < 0.7 and self.held:
            return self.pick("box.s", "d['s']")
        if r < 0.74:
            return f"{self.pick('abs', 'float', 'np.abs', 'np.negative')}({self.number(depth + 1)})"
        if r < 0.8:
            f = self.pick("np.minimum", "np.maximum", "min", "max")
            return f"{f}({self.number(depth + 1)}, {self.number(depth + 1)})"
        if r < 0.84:
            return f"({self.number(depth + 1)} if {self.test(depth + 1)} else {self.number(depth + 1)})"
        return f"({self.number(depth + 1)} {self.pick('+', '-', '*')} {self.pick('0.5', self.number(depth + 1))}) * 0.5"

    def vector(self, depth=0):
        r = self.random.random()
        if r < 0.45 or depth > 1:
            return self.pick("u", "v", "w", "u", "v", "a", "b")
        if r < 0.55:
            return self.pick("u[::-1]", "v.copy()", "np.zeros(4)", "t[1]", "np.roll(w, 1)", "b[:]", "np.ones(4)")
        if r < 0.6 and not self.exact:
            return self.pick("np.tanh(u)", "np.sin(v)", "np.cumsum(w)")
        if r < 0.63 and self.held:
            return self.pick("box.v", "d['v']")
        if r < 0.7:
            return f"{self.pick('np.abs', 'np.negative')}({self.vector(depth + 1)})"
        if r < 0.8:
            return f"np.{self.pick('minimum', 'maximum')}({self.vector(depth + 1)}, {self.number(depth + 1)})"
        more = self.pick(self.vector, self.number)(depth + 1)
        return f"({self.vector(depth + 1)} {self.pick('+', '-', '*')} {more}) * 0.5"

    def matrix(self):
        return self.pick("g", "h", "h", "g * 0.5", "g + h", "g - p", "m", "h[::-1]", "np.abs(g)", "np.ones((3, 2))")

    def test(self, depth=0):
        r = self.random.random()
        if r < 0.6 or depth > 1:
            return (
                f"{self.number(depth + 1)} {self.pick('<', '>', '<=', '!=')} {self.pick('1.0', '0.1', self.number(2))}"
            )
        if r < 0.8:
            return self.pick("k % 3 == 1", "k > 5", "k == 2", "c < 4", "k % 2", "c > 6")
        if r < 0.9:
            return self.pick("p", "q", "not r", "z")
        return f"({self.test(depth + 1)} {self.pick('and', 'or')} {self.test(depth + 1)})"

    # -------------------------------------------------------------- statements
    def block(self):
        self.depth += 1
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement()]
        self.depth -= 1
        return [f"    {line}" for line in lines]

    def statement(self):
        r, pick = self.random.random(), self.pick
        if r < 0.17:
            return [f"{pick('p', 'q', 'r')} = {self.number()}"]
        if r < 0.23:
            return [f"{pick('u', 'v', 'w')} = {self.vector()}"]
        if r < 0.42:
            return [self.at_once()]
        if r < 0.48:
            return [f"{pick('p', 'q', 'r', 'z')} {pick('+=', '*=', '-=')} {pick('0.5', self.number(1))}"]
        if r < 0.52:
            return [
                pick(f"z[...] = {self.number(1)}", f"z[()] = {self.number(1)}", f"u[k % 4, ...] = {self.number(1)}")
            ]
        if r < 0.62:
            return [self.element()]
        if r < 0.66:
            return [pick("c += 1", "c = c + 1", "c += k > 2", "u += 0.5", "g *= 0.5", "v -= u", "h += g")]
        if r < 0.7 and self.held:
            return [
                pick(
                    *("box.s, box.v = box.s * 0.5, box.v", "box.v, d['v'] = d['v'], box.v * 0.5", "box.s += 1.0"),
                    *("d['s'], p = p, d['s']", "d['v'], u = u, d['v'] * 0.5", "box.v, u = u, box.v"),
                )
            ]
        if r < 0.72 and self.anything:
            return [pick("p = u", "p = None", "u = p", "q = v[1:3]", "t = p", "r = t", "q = 1", "g = u", "w = 0.5")]
        if r < 0.78 and self.loops:
            end = pick("break", "continue", "continue", f"return {pick('k', 'p', 'u', 'c, q', 't', '(p, u * 2)')}")
            return [f"if {self.test()}:", *(self.block() if self.random.random() < 0.5 else []), f"    {end}"]
        if r < 0.9 and self.depth < 3:
            out = [f"if {self.test()}:", *self.block()]
            return [*out, "else:", *self.block()] if self.random.random() < 0.5 else out
        if self.depth < 3 and self.random.random() < 0.5:
            return self.inner()
        return [f"{pick('p', 'q', 'r')} = {self.number()}"]

    def at_once(self):
        number, vector, matrix, pick = self.number, self.vector, self.matrix, self.pick
        return pick(
            *("p, q = q, p", f"p, q = q, {number()}", f"p, q, r = q, r, {pick('p', number())}"),
            *("u, v = v, u", f"u, v = v, {vector()}", f"u, v, w = v, w, {pick('u', vector())}"),
            *(f"[u, v] = [v, {vector()}]", f"(u, v), p = (v, {vector()}), {number(1)}", f"g, h = h, {matrix()}"),
            *(f"p, u = u[k % 4], {vector()}", f"u, p = {vector()}, {number()}", "u, v = u + v, u - v"),
            *(f"t = {number()}, {vector()}", "p, u = t", f"t = t[0], {vector()}", f"t = {number()}, t[1]"),
            *(f"p = q = {number()}", f"u = v = {vector()}", "p, q = p + q, p - q", f"c, p = c + 1, {number()}"),
        )

    def element(self):
        i, j = self.pick("k % 4", "0", "c % 4", "-1"), self.pick("(k + 1) % 4", "2", "c % 3", "k % 4")
        name = self.pick("u", "v", "w", "a")
        return self.pick(
            *(f"{name}[{i}], {name}[{j}] = {name}[{j}], {name}[{i}]", f"{name}[{i}] = {self.number(1)}"),
            *(f"{name}[{i}], p = p, {name}[{i}]", f"u[{i}], v[{j}] = v[{i}], u[{j}] * 0.5"),
            *("g[k % 3], g[1] = g[1], g[k % 3]", "g[:, 0], g[:, 1] = g[:, 1], g[:, 0]", "g[k % 3, 0] += 0.5"),
            *(
                "u[:], v[:] = v, u",
                f"{name}[1:3] = {name}[0:2]",
                "h[0], p = g[k % 3], g[1, 1]",
                "u[k % 4], u = p, v * 0.5",
            ),
        )

    def inner(self):
        head = self.pick(
            *(
                "for p in (q, r * 0.5):",
                "for u in (v, w * 0.5):",
                "for p in u:",
                "for p, q in zip(u, v):",
                "for _ in range(2):",
            ),
            *("for p in (1.0, z):", "for c in range(3):", "for u in (v[::-1], b, w):"),
        )
        return self.loop_of([], head, [])

    def loop(self):
        if self.random.random() < 0.75:
            return self.loop_of([], f"for k in range({self.pick('n', 'n', '1, n', 'n, 0, -1')}):", [])
        head = self.pick("while k < n:", "while k < n:", f"while k < n and {self.test()}:", "while True:")
        after = ["    k += 1"] + ["    if k > n:", "        break"] * (head == "while True:")
        return self.loop_of(["k = 0"], head, after)

    def loop_of(self, before, head, after):
        self.loops += 1
        body = self.block() + (self.block() if self.loops == 1 else [])
        self.loops -= 1
        end = ["else:", *self.block()] if self.random.random() < 0.15 else []
        return [*before, head, *after, *body, *end]


def arguments(seed, np=numpy, n=None):
    rng = numpy.random.default_rng(seed)
    x, z = np.array(round(rng.normal(), 2)), np.array(round(rng.normal(), 2))
    a, b, m = (np.array(rng.normal(size=size).round(2)) for size in (4, 4, (3, 2)))
    x = (x[()], x, float(x), x)[seed % 4]
    return x, z, a, b, m, int(rng.choice(STEPS)) if n is None else n


def program_of(source, np, name):
    f = made(source, np, name)
    f.__globals__["Box"] = types.SimpleNamespace
    return f


def described(x, exactly):
    """A result with its types; `exactly`: also which class of arrays, and of dicts."""
    if isinstance(x, dict):
        return {name: described(y, exactly) for name, y in x.items()}
    if isinstance(x, (tuple, list)):
        return type(x)(described(y, exactly) for y in x)
    if isinstance(x, numpy.ndarray):
        return "array", str(x.dtype), numpy.array(x)
    return type(x).__name__, x


def ran(f, given):
    """(what it returns or raises, with types; its arguments after)."""
    try:
        result = described(f(*given), True)
    except (*RAISED, AttributeError) as error:
        # an item of a number, which is NumPy's or an array without axes, is a TypeError or an IndexError
        result = type(error).__name__.replace("IndexError", "TypeError")
    return result, [numpy.array(x) for x in given]


def close(a, b, rtol):
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(close(x, b[k], rtol) for k, x in a.items())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(close(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, (float, numpy.ndarray)):
        if type(a) is not type(b) or numpy.shape(a) != numpy.shape(b):
            return False
        return numpy.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
    return type(a) is type(b) and a == b


def differs(seed):
    """ "", or how a program differs, eager or under jit, from NumPy's."""
    program = Names(seed)
    rtol = 0.0 if program.exact else 1e-9
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = program_of(program.source, minnp.numpy, f"<names {seed}>")
        numpys, compiled = program_of(program.source, numpy, f"<names numpy {seed}>"), jit(ours)
        for turn in range(3):
            which = seed + 1000 * (turn // 2)
            expected = ran(numpys, arguments(which))
            eager = ran(ours, arguments(which, minnp.numpy))
            if not close(expected, eager, 0.0):
                return f"program {seed}, eager\n{program.source}\nNumPy: {expected}\neager: {eager}"
            found = ran(compiled, arguments(which, minnp.numpy))
            failed = any("compiler failed" in row["why"] for row in minnp.report())
            if failed or not close(eager, found, rtol):
                given = arguments(which)
                return f"program {seed}, call {turn}: {given}\n{program.source}\neager: {eager}\njit:   {found}"
            tally["calls that raise"] += isinstance(expected[0], str)
    return ""


def leaves(x):
    """The numbers and arrays of a result."""
    if isinstance(x, (tuple, list, dict)):
        return [z for y in (x.values() if isinstance(x, dict) else x) for z in leaves(y)]
    return [x]


def real(x):
    return type(x) is float or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def gradients(f, transform, seed):
    x, z, a, b, m, n = arguments(seed, minnp.numpy)
    np = minnp.numpy

    def loss(x, z, a, b, m):
        z, a, b, m = z.copy(), a.copy(), b.copy(), m.copy()
        found = [a, b, m, z, *leaves(f(x, z, a, b, m, n))]
        for y in found[seed % 3 :: 3]:  # what else shows it has it, too
            if real(y) and np.ndim(y):
                y[seed % 2] *= 0.5
        return sum(np.sum(y) * (0.5 + k) for k, y in enumerate(found) if real(y))

    try:
        return [numpy.asarray(g) for g in transform(loss)(x, z, a, b, m)]
    except (*RAISED, AttributeError) as error:
        return type(error).__name__


def differs_in_gradient(seed):
    """ "", or how the gradients under jit differ from eager ones."""
    program = Names(seed)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = program_of(program.source, minnp.numpy, f"<names gradient {seed}>")
        gradient = lambda f: minnp.grad(f, (0, 1, 2, 3, 4))
        expected = gradients(ours, gradient, seed)
        if isinstance(expected, str) or not all(numpy.isfinite(g).all() and abs(g).max() < 1e8 for g in expected):
            tally["no gradient" if isinstance(expected, str) else "infinite gradient"] += 1
            return ""
        compiled = jit(ours)
        ways = ("grad(jit)", compiled, gradient), ("jit(grad)", ours, lambda f: jit(gradient(f)))
        for name, f, transform in ways:
            found = gradients(f, transform, seed)
            if found == "TracedValueError":
                tally["float(x) of what is followed"] += 1
                continue
            failed = any("compiler failed" in row["why"] for row in minnp.report())
            if failed or isinstance(found, str) or not loop_fuzzer.alike(expected, found):
                return f"program {seed}, {name}\n{program.source}\neager: {expected}\nfound: {found}"
        tally["gradients"] += 1
    return ""


if __name__ == "__main__":
    loop_fuzzer.main(differs_in_gradient if sys.argv[-1] == "gradient" else differs, Names)
