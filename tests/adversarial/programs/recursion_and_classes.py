"""Recursion, classes, closures, generators, exceptions, context managers: Python around the arrays."""

import contextlib
import functools
import itertools
import operator
from collections import defaultdict, namedtuple
from dataclasses import dataclass, replace

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=8) + 1j * r.normal(size=8),))
def recursive_fft(x):
    def fft(x):
        n = len(x)
        if n == 1:
            return x
        even, odd = fft(x[::2]), fft(x[1::2])
        odd = odd * np.exp(-2j * np.pi * np.arange(n // 2) / n)
        return np.concatenate([even + odd, even - odd])

    y = fft(x)
    return y, np.abs(y - np.fft.fft(x)).max() < 1e-9


@program(lambda r: (r.normal(size=12),))
def quicksort_by_copies(x):
    if len(x) <= 1:
        return x
    pivot = x[len(x) // 2]
    left, right = x[x < pivot], x[x > pivot]
    return np.concatenate([quicksort_by_copies(left), [pivot], quicksort_by_copies(right)])


@program(lambda r: (r.normal(size=10),))
def quicksort_in_place(x):
    def sort(lo, hi):
        if lo >= hi:
            return
        p, k = x[hi], lo
        for j in range(lo, hi):
            if x[j] < p:
                x[[k, j]] = x[[j, k]]
                k += 1
        x[k], x[hi] = x[hi], x[k]
        sort(lo, k - 1)
        sort(k + 1, hi)

    y = x * np.arange(1, 11)
    sort(0, 9)
    return x, y


@program(lambda r: (r.normal(size=11),))
def pairwise_tree_sum(x):
    def total(v):
        return v[0] if v.size == 1 else total(v[: v.size // 2]) + total(v[v.size // 2 :])

    return total(x**2), total(np.exp(x)[::-1])


@program(lambda r: (r.normal(size=(4, 4)), r.normal(size=(4, 4))))
def strassen(a, b):
    n = len(a)
    if n == 1:
        return a * b
    h = n // 2
    (a11, a12), (a21, a22) = [np.hsplit(s, 2) for s in np.vsplit(a, 2)]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1 = strassen(a11 + a22, b11 + b22)
    m2 = strassen(a21 + a22, b11)
    m3 = strassen(a11, b12 - b22)
    m4 = strassen(a22, b21 - b11)
    m5 = strassen(a11 + a12, b22)
    m6 = strassen(a21 - a11, b11 + b12)
    m7 = strassen(a12 - a22, b21 + b22)
    return np.block([[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]])


@program(lambda r: (r.normal(size=16),))
def haar_in_place(x):
    n = len(x)
    while n > 1:
        a, d = x[:n:2] + x[1:n:2], x[:n:2] - x[1:n:2]
        n //= 2
        x[:n] = a / np.sqrt(2)
        x[n : 2 * n] = d / np.sqrt(2)
    x[np.abs(x) < 0.3] = 0
    return x


@program(lambda r: (r.normal(size=(8, 8)),))
def quadtree_of_means(image):
    leaves = []

    def split(block, depth):
        if depth == 2 or block.var() < 0.5:
            leaves.append(block.mean())
            block[...] = leaves[-1]
            return
        h = block.shape[0] // 2
        for part in (block[:h, :h], block[:h, h:], block[h:, :h], block[h:, h:]):
            split(part, depth + 1)

    split(image, 0)
    return image, sum(leaves), len(leaves) > 0


class Ball:
    __slots__ = ("mass", "position")
    count = 0

    def __init__(self, position, mass=1.0):
        self.position = position
        self.mass = mass

    @property
    def energy(self):
        return 0.5 * self.mass * self.position @ self.position

    @energy.setter
    def energy(self, e):
        self.position = self.position * np.sqrt(e / self.energy)

    def __add__(self, other):
        m = self.mass + other.mass
        return type(self)((self.mass * self.position + other.mass * other.position) / m, m)

    def __radd__(self, zero):
        return self


@program(lambda r: (r.normal(size=(4, 3)), r.uniform(1, 2, 4)))
def merged_balls(p, m):
    balls = [Ball(q, w) for q, w in zip(p, m)]
    balls[1].energy = 2.0
    whole = sum(balls)
    return whole.position, whole.energy, whole.mass, p


@dataclass(frozen=True)
class State:
    w: np.ndarray
    momentum: np.ndarray
    step: int = 0


@program(lambda r: (r.normal(size=5), r.uniform(0.05, 0.1)))
def frozen_states_replaced(w, rate):
    s = State(w, np.zeros_like(w))
    for _ in range(6):
        g = s.w**3 + s.w
        m = 0.9 * s.momentum + g
        s = replace(s, w=s.w - rate * m, momentum=m, step=s.step + 1)
    return s.w, s.momentum, s.step


@program(lambda r: (r.normal(size=6),))
def closure_with_nonlocal_state(x):
    total, calls = 0.0, 0

    def feed(v):
        nonlocal total, calls
        calls += 1
        total = 0.8 * total + v / calls
        return total

    return np.array([feed(v) for v in x]), total, calls


@program(lambda r: (r.normal(size=10),))
def generator_of_blocks(x):
    def blocks(a, size):
        for k in range(0, len(a), size):
            got = yield a[k : k + size]
            if got is not None:
                a[k : k + size] += got

    g = blocks(x, 3)
    first = next(g)
    second = g.send(first.sum())
    rest = [b.sum() for b in g]
    return x, second, np.array(rest)


@program(lambda r: (r.normal(size=7),))
def exception_leaves_two_loops(x):
    class Found(Exception):
        pass

    s = 0.0
    try:
        for i in range(7):
            for j in range(i):
                s += x[i] * x[j]
                if i + j > 7:
                    raise Found
    except Found:
        s *= 2
    finally:
        x[0] = s
    return x


@program(lambda r: (r.normal(size=6),))
def retry_until_positive_definite(x):
    a = np.outer(x, x) - 0.5 * np.eye(6)
    shift = 0.0
    for _ in range(10):
        try:
            c = np.linalg.cholesky(a + shift * np.eye(6))
            break
        except np.linalg.LinAlgError:
            shift = 2 * shift + 0.3
    return np.diag(c), shift


@program(lambda r: (r.normal(size=5),))
def context_manager_restores(x):
    @contextlib.contextmanager
    def scaled(a, k):
        a *= k
        try:
            yield a[1:]
        finally:
            a /= k

    with scaled(x, 3.0) as y, contextlib.suppress(ZeroDivisionError):
        s = y.sum()
        y[0] = s**2
        1 // 0
    return x, s


# the gradient of an x / 0 that is not chosen is NaN, as in JAX and PyTorch
@program(lambda r: (r.normal(size=(3, 4)),), order=0)
def errstate_around_a_division(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x / (x - x[0])
        y = np.where(np.isfinite(y), y, 0)
    with np.errstate(all="raise"):
        try:
            np.sqrt(-np.abs(x) - 1)
        except FloatingPointError:
            y += 1
    return y


Point = namedtuple("Point", "x y")


@program(lambda r: (r.normal(size=4), r.normal(size=4)))
def named_tuples_of_arrays(a, b):
    p = Point(a, b)
    q = p._replace(y=p.y + p.x)
    ranked = sorted((Point(*v) for v in zip(*q)), key=lambda t: t.y)
    return [t.x * t.y for t in ranked], q


@program(lambda r: (r.normal(size=(5, 2)), r.integers(0, 3, 5)))
def rows_collected_by_key(x, k):
    groups = defaultdict(list)
    for key, row in zip(k.tolist(), x):
        groups[key].append(row)
    out = np.zeros((3, 2))
    for key, rows in groups.items():
        out[key] = np.mean(rows, axis=0)
    return out


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=(3, 3))))
def folded_products(a, b):
    p = functools.reduce(np.matmul, [a, b, a.T])
    q = functools.reduce(operator.add, itertools.accumulate(a, lambda s, v: 0.5 * s + v))
    s = sum(map(operator.mul, a.ravel(), b.flat))
    return p, q, s, [u @ v for u, v in itertools.pairwise(a)]


class Module:
    def __init__(self):
        self.params = []

    def __call__(self, x):
        return self.forward(x)

    def __getitem__(self, k):
        return self.params[k]

    def __iter__(self):
        return iter(self.params)


class Dense(Module):
    def __init__(self, w, b):
        super().__init__()
        self.params += [w, b]

    def forward(self, x):
        return np.tanh(x @ self[0] + self[1])


@program(lambda r: (r.normal(size=(4, 3)), r.normal(size=(3, 3)), r.normal(size=3)))
def layers_that_share_weights(x, w, b):
    net = [Dense(w, b), Dense(w.T, b), Dense(w, b)]
    for layer in net:
        x = layer(x)
    net[0].params[1] += 1
    return x, net[2](x).sum(), sum(p.sum() for p in net[1])


class History(list):
    @property
    def last(self):
        return self[-1]

    def smooth(self, k):
        return np.mean(self[-k:], axis=0)


@program(lambda r: (r.normal(size=4),))
def subclass_of_list(x):
    h = History([x])
    while len(h) < 6:
        h.append(h.smooth(2) * 0.9 + 0.1 * np.roll(h.last, 1))
    return h.last, h.smooth(3), np.asarray(h)[:, 0]


@program(lambda r: (r.normal(size=5),))
def callbacks_that_write(x):
    hooks = []

    def on(f):
        hooks.append(f)
        return f

    @on
    def scale(a):
        a *= 1.1

    @on
    def shift(a, by=x[0]):
        a += by

    for _ in range(3):
        for f in hooks:
            f(x[1:])
    return x


@program(lambda r: (r.normal(size=6),))
def memo_by_key_of_floats(x):
    cache = {}

    def f(k):
        if k not in cache:
            cache[k] = x[k] if k < 2 else np.sin(f(k - 1)) + 0.5 * f(k - 2) * x[k]
        return cache[k]

    return f(5), np.array([cache[k] for k in sorted(cache)])


@program(lambda r: (r.normal(size=(6, 6)),))
def spiral_iteration(a):
    def spiral(m):
        while m.size:
            yield from m[0]
            m = np.rot90(m[1:])

    return np.array([v * k for k, v in enumerate(spiral(a))])


@program(lambda r: (r.normal(size=7), r.normal(size=7)))
def merge_sort_with_iterators(x, w):
    def merge(a, b):
        out = []
        while a and b:
            out.append((a if a[0][0] <= b[0][0] else b).pop(0))
        return out + a + b

    def sort(v):
        return v if len(v) < 2 else merge(sort(v[: len(v) // 2]), sort(v[len(v) // 2 :]))

    pairs = sort(list(zip(x, w)))
    return np.array(pairs)


@program(lambda r: (r.normal(size=9),))
def sorting_network(x):
    for i, j in [(0, 8), (1, 7), (2, 6), (3, 5), (0, 4), (1, 3), (2, 8), (5, 7), (4, 6), (0, 2)]:
        x[i], x[j] = min(x[i], x[j]), max(x[i], x[j])
    for k in range(9):
        a, b = x[k % 2 : -1 : 2], x[k % 2 + 1 :: 2]
        a = a[: len(b)]
        lo, hi = np.minimum(a, b), np.maximum(a, b)
        a[:], b[:] = lo, hi
    return x, np.all(x[:-1] <= x[1:])


@program(lambda r: (r.normal(size=5), 3))
def function_returned_by_a_function(x, n):
    def power(k):
        if k == 1:
            return lambda v: v
        f = power(k - 1)
        return lambda v: v * f(v)

    compose = lambda *fs: functools.reduce(lambda f, g: lambda v: f(g(v)), fs)
    return power(n)(x), compose(np.sin, power(2), np.cos)(x)


@program(lambda r: (r.normal(size=6),))
def walrus_match_and_star(x):
    out = []
    while (n := len(out)) < 6:
        match n % 3, x[n] > 0:
            case 0, True:
                out.append(x[n] ** 2)
            case 1, _:
                out.append(-x[n])
            case _:
                out.append(np.float64(n))
    head, *middle, tail = out
    return head, np.array(middle), tail


class Matrix:
    __array_priority__ = 100

    def __init__(self, a):
        self.a = a

    def __matmul__(self, other):
        return Matrix(self.a @ other.a)

    def __pow__(self, n):
        return self if n == 1 else (self @ self) ** (n // 2) if n % 2 == 0 else self @ self ** (n - 1)

    def __rmul__(self, s):
        return Matrix(s * self.a)

    def __getattr__(self, name):
        return getattr(self.a, name)


@program(lambda r: (r.normal(size=(3, 3)) / 2,))
def wrapper_with_operators(a):
    m = 2 * Matrix(a) ** 5
    return m.a, m.T, m.sum(), m.shape[0]
