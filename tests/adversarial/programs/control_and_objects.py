"""Control and objects: slots, properties, descriptors, generators that receive, exceptions that steer, closures."""

import contextlib
import functools
import heapq
import itertools
import operator
from collections import deque

import numpy as np

from tests.adversarial.program import program


class Particle:
    __slots__ = ("_speed", "mass", "position")

    def __init__(self, position, speed, mass):
        self.position, self._speed, self.mass = position, speed, mass

    @property
    def speed(self):
        return self._speed

    @speed.setter
    def speed(self, value):
        self._speed[...] = np.clip(value, -2, 2)

    @property
    def energy(self):
        return 0.5 * self.mass * (self._speed @ self._speed)


@program(lambda r: (r.normal(size=(3, 2)), r.normal(size=(3, 2)), r.uniform(1, 2, 3)))
def particles_with_slots_and_setters(x, v, m):
    crowd = [Particle(*one) for one in zip(x, v, m)]
    for _ in range(3):
        centre = sum(p.mass * p.position for p in crowd) / sum(p.mass for p in crowd)
        for p in crowd:
            p.speed += 0.1 * (centre - p.position) / p.mass
            p.position += 0.2 * p.speed
    return x, v, [p.energy for p in crowd]


class Parameter:
    """A descriptor that reads and writes a part of one vector."""

    def __init__(self, part, shape):
        self.part, self.shape = part, shape

    def __get__(self, owner, kind=None):
        return owner.vector[self.part].reshape(self.shape)

    def __set__(self, owner, value):
        owner.vector[self.part] = np.ravel(value)


class Layer:
    weight = Parameter(slice(0, 6), (2, 3))
    bias = Parameter(slice(6, 8), (2,))

    def __init__(self, vector):
        self.vector = vector

    def __call__(self, x):
        return np.tanh(self.weight @ x + self.bias)


@program(lambda r: (r.normal(size=8), r.normal(size=3)))
def descriptors_over_one_vector(v, x):
    layer = Layer(v)
    before = layer(x)
    layer.weight *= 0.5
    layer.bias = layer.bias - before
    layer.weight[0] = x
    return layer(x), v, before


class Interval:
    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi

    def __add__(self, other):
        other = other if isinstance(other, Interval) else Interval(other, other)
        return Interval(self.lo + other.lo, self.hi + other.hi)

    __radd__ = __add__
    __array_ufunc__ = None

    def __mul__(self, other):
        if not isinstance(other, Interval):
            other = Interval(other, other)
        ends = np.stack([a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)])
        return Interval(ends.min(0), ends.max(0))

    __rmul__ = __mul__

    def __iter__(self):
        yield self.lo
        yield self.hi

    def __contains__(self, x):
        return bool(((self.lo <= x) & (x <= self.hi)).all())


@program(lambda r: (r.normal(size=4), r.uniform(0.1, 1, 4)))
def interval_arithmetic(mid, radius):
    x = Interval(mid - radius, mid + radius)
    y = x * x + 2 * x * mid + 1.5
    lo, hi = mid + y
    assert mid * mid + 2 * mid * mid + 1.5 + mid in Interval(lo, hi)
    return lo, hi


class Dual:
    """Numbers with a first derivative, made by hand."""

    __slots__ = "a", "b"
    __array_priority__ = 1000

    def __init__(self, a, b=0.0):
        self.a, self.b = a, b

    def __add__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.a + o.a, self.b + o.b)

    __radd__ = __add__

    def __mul__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.a * o.a, self.a * o.b + self.b * o.a)

    def __sub__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.a - o.a, self.b - o.b)

    def __truediv__(self, o):
        return Dual(self.a / o.a, (self.b * o.a - self.a * o.b) / (o.a * o.a))

    def exp(self):
        e = np.exp(self.a)
        return Dual(e, e * self.b)


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def dual_numbers_of_arrays(x, t):
    d = Dual(x, t)
    y = (d * d - 2.0).exp() / (d.exp() * d - 9.0)
    h = Dual(Dual(x, t), Dual(np.ones(5)))
    z = h * h * h
    return y.a, y.b, z.a.a, z.b.b


def running_mean():
    total, n = 0.0, 0
    value = None
    while True:
        sent = yield value
        if sent is None:
            return total
        total = total + sent
        n += 1
        value = total / n


@program(lambda r: (r.normal(size=(5, 3)),))
def coroutine_fed_with_rows(x):
    g = running_mean()
    next(g)
    means = [g.send(row) for row in x]
    x[0] = 100
    try:
        g.send(None)
    except StopIteration as stop:
        total = stop.value
    return np.array(means), total


def tree(x):
    if len(x) > 1:
        half = len(x) // 2
        yield from tree(x[:half])
        yield x[:half].sum() * x[half:].mean()
        yield from tree(x[half:])


@program(lambda r: (r.normal(size=9),))
def generator_that_delegates(x):
    values = list(itertools.islice(tree(x), 6))
    x[:] = np.fromiter((v * k for k, v in enumerate(range(9))), dtype=float) + x
    return values, sum(tree(x)), next(tree(x[3:]))


class Found(Exception):
    def __init__(self, at, value):
        super().__init__(at)
        self.at, self.value = at, value


def search(a, depth=0):
    i, j = np.unravel_index(np.abs(a).argmax(), a.shape)
    if depth == 2 or a.size < 4:
        raise Found((i, j), a[i, j])
    try:
        search(a[: a.shape[0] - 1, 1:] * 1.5, depth + 1)
    except Found as inner:
        inner.value = inner.value + a[inner.at]
        raise


@program(lambda r: (r.normal(size=(4, 4)),))
def answer_carried_by_an_exception(a):
    try:
        search(a)
    except Found as found:
        a[found.at] = found.value
        return a, found.value, *map(int, found.at)
    return None


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=3)))
def first_method_that_works(a, b):
    used = []
    for solve in (
        lambda: np.linalg.solve(np.linalg.cholesky(a - 9 * np.eye(3)), b),
        lambda: np.linalg.solve(np.zeros((3, 3)), b),
        lambda: a[:, 7] + b,
        lambda: np.concatenate([a, b]),
        lambda: np.linalg.solve(a + 5 * np.eye(3), b),
    ):
        try:
            x = solve()
        except np.linalg.LinAlgError:
            used.append(0)
        except (IndexError, ValueError) as error:
            used.append(type(error).__name__)
        else:
            break
    return x, len(used), used.count("IndexError")


@program(lambda r: (r.normal(size=8),))
def transaction_rolled_back(x):
    @contextlib.contextmanager
    def transaction(a):
        saved = a.copy()
        try:
            yield a
        except ArithmeticError:
            a[...] = saved

    for step in (0.5, 3.0, -0.2):
        with transaction(x) as t:
            t += step * np.sin(t)
            if np.abs(t).max() > 3 or step > 2:
                raise ArithmeticError
            t[0] = 1
    return x


@program(lambda r: (r.uniform(1, 2, 7),))
def events_by_priority(x):
    heap = [(float(k % 3), k) for k in range(7)]
    heapq.heapify(heap)
    clock, log = np.zeros(3), []
    while heap:
        t, k = heapq.heappop(heap)
        clock[k % 3] += x[k]
        x[(k + 1) % 7] *= 0.9
        log.append(clock.copy())
        if t < 2 and k % 2:
            heapq.heappush(heap, (t + 1.5, k))
    return np.stack(log), x


@program(lambda r: (r.normal(size=(4, 3)),))
def pipeline_of_partials_and_reduce(x):
    steps = [
        functools.partial(np.subtract, x2) if (x2 := k) > 1 else functools.partial(np.power, 1.5) for k in range(3)
    ]
    a = functools.reduce(lambda v, f: f(v), steps, x)
    b = functools.reduce(operator.matmul, [x.T, x, x.T])
    c = list(itertools.accumulate(x, operator.iadd))
    d = functools.reduce(np.maximum, x)
    return a, b, c[-1], x, d, sum(map(operator.itemgetter(1), x))


@program(lambda r: (r.normal(size=10),))
def window_in_a_deque(x):
    window, out = deque(maxlen=3), []
    for v in x:
        window.append(v)
        ordered = sorted(window, key=abs)
        out.append(ordered[-1] - min(window) if len(window) == 3 else v)
    box = deque([x[:5], x[5:]])
    box.rotate(1)
    box[0] -= box[1]
    return np.array(out), x


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def memory_shared_by_closures(x, y):
    def account(balance):
        def pay(amount):
            nonlocal balance
            if (balance < amount).all():
                return False
            balance = balance - amount
            return True

        def accrue(rate):
            balance[...] *= 1 + rate

        return pay, accrue, lambda: balance

    pay, accrue, show = account(x)
    accrue(0.5)
    paid = [pay(y), pay(np.full(5, 1e9))]
    accrue(0.1)
    return x, show(), paid


@program(lambda r: (r.normal(size=6),))
def loops_left_and_continued(x):
    out = []
    for k, v in enumerate(x):
        if v < -0.8:
            continue
        for other in x[k + 1 :]:
            if other > v:
                out.append(v * other)
                break
        else:
            out.append(v**2)
            continue
        if len(out) == 4:
            break
    while out and len(out) < 9:
        out.append(out[-1] * out[0])
    return out


@program(lambda r: (r.normal(size=7),))
def finally_writes_after_return(x):
    def f(a):
        try:
            return a.sum(), a
        finally:
            a *= 2

    def g(a):
        for k in range(3):
            try:
                if k == 1:
                    return a * k
            finally:
                a[k] = 0
        return None

    s, y = f(x[2:])
    return s, y, g(x), x


def determinant(m):
    return (
        m[0, 0]
        if m.shape == (1, 1)
        else sum((-1) ** k * v * determinant(np.delete(m[1:], k, axis=1)) for k, v in enumerate(m[0]))
    )


@program(lambda r: (r.normal(size=(4, 4)),))
def recursion_over_minors_and_sums_of_subsets(a):
    def subsets(v):
        return [np.zeros(a.shape[1])] if len(v) == 0 else (rest := subsets(v[1:])) + [v[0] + s for s in rest]

    best = max(subsets(a), key=lambda s: s[0])
    ack = functools.lru_cache(None)(lambda n: 1 if n < 2 else ack(n - 1) + ack(n - 2))
    return determinant(a) - np.linalg.det(a), best, np.array([ack(k) for k in range(4)]) @ a


class Stack:
    def __init__(self, shape):
        self.data, self.n = np.zeros(shape), 0

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        return self.data[: self.n][k]

    def __setitem__(self, k, v):
        self.data[: self.n][k] = v

    def __iadd__(self, row):
        if self.n == len(self.data):
            self.data = np.resize(self.data, (2 * self.n, self.data.shape[1]))
        self.n += 1
        self[-1] = row
        return self

    def __matmul__(self, v):
        return self[:] @ v


@program(lambda r: (r.normal(size=(5, 3)),))
def stack_that_grows_by_itself(x):
    s = Stack((2, 3))
    for row in x:
        s += row
        s[0] *= 1.1
    s[1:3] = s[::-1][:2]
    return s @ x[0], s[-1], len(s), s.data.shape[0], np.asarray(s[:])


@program(lambda r: (r.normal(size=(2, 3)),))
def match_on_shapes_and_kinds(x):
    def norm(a):
        match getattr(a, "shape", None):
            case ():
                return abs(a)
            case (n,) if n == 3:
                return np.sqrt(a @ a)
            case (_, _):
                return sum(norm(row) for row in a)
            case None:
                return float(a)
        return norm(a.reshape(-1, 3))

    return norm(x), norm(x[0]), norm(x[1, 2]), norm(2), norm(np.stack([x, x * 2]))
