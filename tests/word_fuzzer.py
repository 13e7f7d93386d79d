"""Random loops over Python's integers of about 64 bits (masks, shifts, remainders), under jit and as Python runs them.

`python tests/word_fuzzer.py FIRST COUNT` runs programs by their numbers and prints those that differ.
"""

import random
import sys

import numpy
from loop_fuzzer import Choices, function, made

import minnp
import minnp.numpy
from minnp import jit

MASKS = ("M", "0xFFFFFFFFFFFFFFFF", "0xFFFFFFFF", "0x7FFFFFFFFFFFFFFF", "(1 << 48) - 1", "255")
POWERS = ("2**64", "2**32", "(1 << 60)", "16", "2**63")
BIG = ("6364136223846793005", "0x9E3779B97F4A7C15", "0xFFFFFFFFFFFFFFFF", "1099511628211", "-7", "3", "0", "2**63")
NAMES = ("x", "y", "z", "t")
A = [3, -1, 200, 7, 0]


class Words(Choices):
    """The source of one program. x, y: integers that are given; a: an array of integers."""

    def __init__(self, seed):
        super().__init__(seed)
        lines = ["z, t, s = 1, 0, 0.0", "for i in range(n):"]
        lines += [f"    {line}" for _ in range(self.random.randint(1, 5)) for line in self.statement()]
        lines.append("return x, y, z, t, s")
        self.source = function("M = 2**64 - 1\ndef program(x, y, a, n):\n", lines)

    def inner(self, depth=0):
        """What a mask may follow."""
        r = self.random.random()
        if depth > 2 or r < 0.3:
            return self.pick(*NAMES, *NAMES, "i", "int(a[i % 5])", *BIG)
        if r < 0.45:
            return f"({self.inner(depth + 1)} << {self.pick('1', '13', '17', '40', '63')})"
        if r < 0.55:
            return self.masked(depth + 1)
        return f"({self.inner(depth + 1)} {self.pick(*'+-**&|^')} {self.inner(depth + 1)})"

    def masked(self, depth=0):
        r = self.random.random()
        if r < 0.6:
            order = (self.inner(depth), self.pick(*MASKS))
            return f"({' & '.join(order if r < 0.5 else order[::-1])})"
        if r < 0.75:
            return f"({self.inner(depth)} % {self.pick(*POWERS)})"
        if r < 0.9:
            return f"({self.pick(*NAMES)} >> {self.pick('0', '1', '7', '31', '63')})"
        return f"({self.pick(*NAMES)} {self.pick('%', '//')} {self.pick('10', '97', '3', '2**33')})"

    def statement(self):
        name, r = self.pick(*NAMES), self.random.random()
        if r < 0.5:
            return [f"{name} = {self.masked()}"]
        if r < 0.62:
            return [f"{name} {self.pick('^=', '|=', '&=')} {self.pick(self.masked(), *NAMES)}"]
        if r < 0.68:
            return [f"{name} {self.pick('+=', '-=')} {self.pick('i', '1', self.masked())}"]
        if r < 0.73:
            return [f"s += ({self.pick(*NAMES)} >> {self.pick('11', '12', '40')}) * 0.5"]
        if r < 0.8:
            return [f"a[{name} % 5] = {self.pick('i', f'{name} & 255', f'({name} >> 60)')}"]
        if r < 0.85:
            return [f"x, y = {self.pick('y, x', 'y, (x ^ y) & M', 'y & M, x & 255')}"]
        test = f"{name} {self.pick('<', '>', '==', '!=', '>=')} {self.pick(*NAMES, *BIG, '2**62', '100')}"
        inner = [f"    {line}" for line in self.statement()]
        return [f"if {self.pick(test, f'{name} & 1', name)}:", *inner]


def ran(f, given):
    try:
        return list(map(repr, map(number, f(*given)))), given[2].tolist()
    except (OverflowError, IndexError, ZeroDivisionError, ValueError) as error:
        return [type(error).__name__], given[2].tolist()


def number(x):
    return x.item() if isinstance(x, numpy.generic | numpy.ndarray) else x


def differs(seed):
    """ "", or how a program differs under jit from Python's."""
    program = Words(seed)
    ours = made(program.source, minnp.numpy, f"<words {seed}>")
    compiled = jit(ours)
    for turn in range(3):
        rng = random.Random(seed + turn)
        some = [1, 42, 2**40 - 1, 2**40 + 5, 2**63 - 1, 2**63, 2**64 - 1, 0, -3, rng.randrange(2**64)]
        x, y, n = rng.choice(some), rng.choice(some), rng.choice([3, 7, 20])
        expected, found = (ran(f, (x, y, np.array(A), n)) for f, np in ((ours, numpy), (compiled, minnp.numpy)))
        failed = any("compiler failed" in row["why"] for row in minnp.report())
        if failed or expected != found:
            return f"program {seed}, call {turn}: {x}, {y}, {n}\n{program.source}\nPython: {expected}\njit:    {found}"
    return ""


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    left = 0
    for seed in range(first, first + count):
        if found := differs(seed):
            print(found, "\n", flush=True)
        left += any(row["backend"] == "python" for row in minnp.report(reset=True))
    print(f"{left} of {count} left a loop to Python")
