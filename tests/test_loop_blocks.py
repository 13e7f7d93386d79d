"""Nests of loops that are compiled in blocks: the same numbers as Python's, and the same errors."""

import inspect
import linecache

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit
from minnp.core.cpu import memory
from minnp.core.loops import axes, blocking, fused, interchanged, jammed, lowering, peeled, simplified, tiled
from minnp.core.loops import compiled as compiled_loops
from minnp.core.loops.ir import Alloc, statements

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.host("about compiled code on NumPy's memory")


def product(A, B, C):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
    return C


def columns(A, B, C):
    last = 0.0
    for j in range(B.shape[1]):
        total, most = 0.5, -1
        for k in range(len(B)):
            total = total + B[k, j] * A[2, k]
            if B[k, j] > 0.9:
                most = k
        C[1, j] = total * most
        last = total
    return C, last, j, most


def rows(A, B, C):
    for i in range(len(A)):
        for k in range(A.shape[1]):
            factor = A[i, k] * 2
            for j in range(B.shape[1]):
                C[i, j] -= factor * B[k, j]
    return C, factor


def triangle(A, B, C):
    for i in range(len(B)):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[0, i + 1 : len(B)], B[i + 1 :, j])
    return B


def from_the_end(A, B, C):
    for k in range(len(B)):
        for j in range(B.shape[1]):
            C[0, j] += B[k, -1 - j] * A[-1, k]
    return C


def by_rows(A, B, C):  # A is read across its rows, again and again
    for i in range(len(C)):
        for j in range(len(A)):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[j, k] * B[k, i]
            C[i, j] = total
    return C


def rank_one(A, B, C):
    for i in range(len(A)):
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[i, k] * A[: i + 1, k]
    return C


def left_behind(A, B, C):  # by an iteration that is not the last
    last, most = -1, 0.0
    for j in range(B.shape[1]):
        total = 0.0
        for k in range(len(B)):
            total += B[k, j]
        C[0, j] = total
        if j == 2 and total > 0:
            last = j
            most = total
    return C, last, most


def kept_number(A, B, C):  # the same, of an integer, and of a number that does not change in the loop
    last, most, half = -1, 0.0, 0.5 * len(B)
    for j in range(B.shape[1]):
        total = 0.0
        for k in range(len(B)):
            total += B[k, j]
        C[0, j] = total
        if j == 2:
            last = j
        if C[0, 0] > 0:
            most = half
    return C, last, most


def around(A, B, C):
    rows, columns = B.shape
    for i in range(rows):
        for j in range(columns):
            total = 0.0
            for d in (-1, 0, 1):
                if d != 0:
                    total += B[(i + d) % rows, j] + B[i, (j + d) % columns]
            if total > 2 or (total > 1 and B[i, j] > 0.5):
                C[0, j] = total
            else:
                C[0, j] = B[i, j - 1]
    return C, total


def neighbours(A, B, C):  # its turns depend on each other
    for j in range(1, B.shape[1]):
        for k in range(len(B)):
            B[k, j] += 0.5 * B[k, j - 1]
    return B


def sums(A, B, C):  # of all turns
    total = 0.0
    for j in range(B.shape[1]):
        for k in range(len(B)):
            total += B[k, j]
            C[0, j] = total
    return C, total


def downwards(A, B, C):
    for j in range(B.shape[1] - 1, 0, -1):
        total = 0.0
        for k in range(len(B) - 1, -1, -1):
            total = total + B[k, j] * A[2, k]
        C[1, j] = total
    return C, j, total


def rows_downwards(A, B, C):
    for i in range(len(A)):
        for k in range(A.shape[1] - 1, -1, -1):
            factor = A[i, k] * 2
            for j in range(B.shape[1] - 1, -1, -1):
                C[i, j] -= factor * B[k, j]
    return C


PROGRAMS = [
    product,
    columns,
    rows,
    triangle,
    from_the_end,
    rank_one,
    by_rows,
    around,
    downwards,
    rows_downwards,
    left_behind,
    kept_number,
    neighbours,
    sums,
]


@pytest.fixture(autouse=True)
def no_brief_runs(monkeypatch):
    """First runs end at once, and begin anew in code that is compiled as that of all later runs is."""
    monkeypatch.setattr(lowering, "BRIEF", 0)
    monkeypatch.setattr(compiled_loops, "LONG", 0)


@pytest.fixture
def blocks(monkeypatch):
    """The nests that are taken in blocks, as they are compiled."""
    found = []
    for way in (blocking.Vectors, blocking.Jam, blocking.Inside):

        def made(self, way=way, old=way.made):
            out = old(self)
            found.append(way.__name__)
            return out

        monkeypatch.setattr(way, "made", made)
    return found


def arguments(n, m, dtype):
    rng = numpy.random.default_rng(n)
    return [(10 * rng.random(shape)).astype(dtype) / 10 for shape in ((m, n), (n, m), (m, m))]


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_blocks_compute_what_python_computes(program, blocks):
    compiled = jit(program)
    for n, m in ((5, 61), (70, 9), (4, 3)):
        for dtype in ("f8", "f4"):
            given = arguments(n, m, dtype)
            expected = program(*[x.copy() for x in given])
            got = compiled(*[np.array(x) for x in given])
            exact = program is not triangle  # NumPy's dot adds in an order of its own
            for a, b in zip(*(x if type(x) is tuple else (x,) for x in (got, expected)), strict=True):
                numpy.testing.assert_allclose(
                    numpy.asarray(a), b, rtol=0 if exact else 2e-4 if dtype == "f4" else 1e-12
                )
    assert bool(blocks) == (program not in (neighbours, sums, left_behind, kept_number))


def twice(A, B, C):  # what the first nest leaves in its variables nobody reads
    for j in range(B.shape[1] - 1, -1, -1):
        total = 0.0
        for k in range(len(B)):
            total += B[k, j]
        C[0, j] += total
    for j in range(B.shape[1]):
        total = 1.0
        for k in range(len(B)):
            total += B[k, j] * C[0, j]
        C[1, j] -= total
    return C


@pytest.mark.long
def test_the_last_block_overlaps_the_one_before(blocks):
    compiled = {program: jit(program) for program in (product, downwards, twice)}
    slope = jit(grad(lambda A, B, C: np.sum(twice(A, B, C.copy())), 1))
    for m in (7, 8, 31, 32, 33, 39, 63, 64, 65, 95):
        given = arguments(3, m, "f8")
        for program, run in compiled.items():
            a, b = (f(*[array(x) for x in given]) for f, array in ((run, np.array), (program, numpy.array)))
            for x, y in zip(a, b, strict=True) if type(b) is tuple else ((a, b),):
                assert numpy.array_equal(x, y)
        A, B, C = map(np.array, given)
        expected = 1.0 - C[0] - 2 * np.sum(B, axis=0)
        numpy.testing.assert_allclose(slope(A, B, C), np.broadcast_to(expected, B.shape), rtol=1e-12)
    assert blocks


def test_a_loop_in_blocks_raises_where_python_does():
    def beyond(A, B, n):
        for j in range(n):
            total = 0.0
            for k in range(len(A)):
                total += A[k, j]
            B[j] = total

    A, B = np.ones((3, 40)), np.zeros(50)
    with pytest.raises(IndexError, match="40 is out of bounds for axis 1 with size 40"):
        jit(beyond)(A, B, 45)
    assert B[:40].tolist() == [3.0] * 40 and not B[40:].any()


def test_gradients_of_loops_in_blocks():
    A, B, C = map(np.array, arguments(6, 41, "f8"))
    loss = lambda f: lambda A, B: np.sum(np.sin(f(A, B, C.copy())))
    expected = grad(loss(lambda A, B, C: C + A @ B), (0, 1))(A, B)
    minnp.report(reset=True)
    for got in (grad(loss(jit(product)), (0, 1))(A, B), jit(grad(loss(product), (0, 1)))(A, B)):
        for a, b in zip(got, expected):
            numpy.testing.assert_allclose(numpy.asarray(a), numpy.asarray(b), rtol=1e-12)
    assert not [x for x in minnp.report(reset=True) if x["backend"] == "python"]


@pytest.mark.long
@pytest.mark.parametrize("program", [triangle, rank_one, by_rows, rows_downwards], ids=lambda f: f.__name__)
def test_the_way_back_of_loops_in_blocks(program, blocks):
    def loss(A, B, C):
        out = program(A.copy(), B.copy(), C.copy())
        return np.sum(np.sin(out[0] if type(out) is tuple else out) * np.cos(np.arange(len(C))))

    def product(A, B, C):
        return sum(np.sum(g * np.cos(x)) for g, x in zip(grad(loss, (0, 1))(A, B, C), (A, B)))

    for f, n, m in ((loss, 3, 41), (product, 3, 10)):
        given = [np.array(x) for x in arguments(n, m, "f8")]
        for a, b in zip(jit(grad(f, (0, 1)))(*given), grad(f, (0, 1))(*given)):
            numpy.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert blocks or program is not triangle


def test_a_slope_that_is_no_number_in_blocks():  # times a cotangent of zero is zero
    A, B, C = (np.array(x) for x in arguments(9, 43, "f8"))
    A[12, 2], B[4, 5], A[11, 1] = np.inf, np.nan, -np.inf

    def loss(A, B):
        return np.sum(rank_one(A.copy(), B, C.copy())[:9]) + np.sum(rows(A, B, C.copy())[0][:9, 6:20])

    with numpy.errstate(all="ignore"):
        for a, b in zip(jit(grad(loss, (0, 1)))(A, B), grad(loss, (0, 1))(A, B)):
            assert numpy.isfinite(a).all()
            numpy.testing.assert_allclose(a, b, rtol=1e-12)


def orthogonal(A, steps):
    Q, R = np.zeros(A.shape), np.zeros((A.shape[1], A.shape[1]))
    for k in range(A.shape[1]):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = Q[:, k] @ A[:, j]
            A[:, j] -= Q[:, k] * R[k, j]
    return np.sum(np.sin(Q)) + np.sum(R * R)


def swept(A, steps):
    half = np.ones(A.shape)
    for _ in range(steps):
        for k in range(1, A.shape[1]):
            for i in range(A.shape[0]):
                half[i, k] = np.sin(half[i, k - 1]) * A[i, k]
        for k in range(A.shape[1] - 2, -1, -1):
            for i in range(A.shape[0]):
                A[i, k] = 0.5 * A[i, k + 1] + half[i, k]
    return np.sum(A * A)


def swept_levels(A, steps):
    x = np.ones((*A.shape, 3)) * A[:, :, None]
    for _ in range(steps):
        for k in range(1, 3):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    x[i, j, k] += np.tanh(x[i, j, k - 1]) * x[i, j, k]
    return np.sum(x) + np.sum(A)


@pytest.mark.long
@pytest.mark.parametrize("program", [orthogonal, swept, swept_levels], ids=lambda f: f.__name__)
def test_the_gradient_of_loops_along_columns(program, monkeypatch):
    found = []

    def along_last(program, body, *more):
        out = axes.along_last(program, body, *more)
        found.append(out is not None)
        return out

    def transpose(self, name):  # where a copy is made by loops in blocks, which work on another copy
        raise AssertionError(name)

    monkeypatch.setattr(lowering, "along_last", along_last)
    monkeypatch.setattr(blocking.Blocking, "transpose", transpose)
    loss = lambda A: program(A.copy(), 2)
    product = lambda A: np.sum(grad(loss)(A) * np.cos(A))
    x = np.random.default_rng(0).random((9, 4)) + 0.5
    for f in (loss, product):
        for A in (x, np.asfortranarray(x), x[::2, 1:], x[:1, :1]) if f is loss else (x,):
            numpy.testing.assert_allclose(jit(grad(f))(A), grad(f)(A), rtol=1e-9, atol=1e-10)
    assert any(found)


def test_what_a_turn_adds_to_one_element_is_added_once(monkeypatch):
    made = []

    def distributed(*given):
        out = simplified.distributed(*given)
        made.append([s.name for s in statements(out) if type(s) is Alloc])
        return out

    def loss(x, c):
        out = np.zeros(len(x))
        for i in range(1, len(x)):
            out[i] = c[i] * x[i] - np.sin(x[i - 1]) * x[i] + x[i - 1] * c[i] - x[i] * x[i - 1]
        return np.sum(out * out)

    monkeypatch.setattr(lowering, "distributed", distributed)
    x, c = np.array([0.3, 0.5, 0.2, 0.7]), np.array([0.4, 0.1, 0.6, 0.9])
    compiled = jit(grad(loss, (0, 1)))
    for _ in range(2):
        for a, b in zip(compiled(x, c), grad(loss, (0, 1))(x, c)):
            numpy.testing.assert_allclose(a, b, rtol=1e-12)
    assert [len(names) for names in made] == [1]


def rows_of_a_product(A, B):
    out = np.zeros((len(A), B.shape[1]))
    for i in range(len(A)):
        out[i] = A[i] @ B
    return np.sum(np.sin(out))


def products_of_columns(A, B):
    out = np.zeros((A.shape[1], A.shape[1]))
    for i in range(A.shape[1]):
        out[i, i:] = A[:, i] @ A[:, i:] / 3
        out[i:, i] = out[i, i:]
    return np.sum(np.sin(out) * np.cos(np.arange(len(out))))


def factors(A, B):  # a number of each turn
    s, total = 1.0, 0.0
    for i in range(len(A) - 1, -1, -1):
        s = np.cos(s + i)
        for k in range(B.shape[0]):
            for j in range(B.shape[1]):
                total += np.sin(B[k, j]) * s
    return total


@pytest.mark.long
@pytest.mark.parametrize("program", [rows_of_a_product, products_of_columns, factors], ids=lambda f: f.__name__)
def test_gradients_that_go_over_a_matrix_in_every_turn(program, monkeypatch):
    found = []

    def in_tiles(self, *given, old=tiled.Tiling.in_tiles):
        out = old(self, *given)
        found.append(out)
        return out

    monkeypatch.setattr(tiled.Tiling, "in_tiles", in_tiles)
    wrt = (1,) if program is factors else (0, 1)
    product = lambda A, B: sum(np.sum(g * np.cos(x)) for g, x in zip(grad(program, wrt)(A, B), (A, B)[-len(wrt) :]))
    for f, sizes in ((program, ((70, 5), (130, 9), (3, 70))), (product, ((6, 5),))):
        compiled = jit(grad(f, wrt))
        for n, m in sizes:
            A, B, _ = arguments(m, n, "f8")
            for a, b in zip(compiled(np.array(A), np.array(B)), grad(f, wrt)(np.array(A), np.array(B))):
                numpy.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    assert found


def test_what_a_large_derivative_keeps_lies_on_recycled_memory():
    def loss(x):
        total = 0.0
        for k in range(600_000):
            total = 0.9 * total - total * total * 1e-3 + x[k % 3]
        return total

    compiled = jit(grad(loss))
    for _ in range(2):
        compiled(np.array([0.1, 0.2, 0.3]))
    before = memory.statistics()
    compiled(np.array([0.1, 0.2, 0.3]))
    after = memory.statistics()
    assert after["reused"] == before["reused"] + memory.memory_reuse() and after["new"] == before["new"]


# ------------------------------------------------------------------ over the last axis, around loops over the others
def up(x, y, n, scale):
    """A recurrence along the last axis, with arrays that a turn makes for itself."""
    out = np.zeros(x.shape)
    rows, columns, _ = x.shape
    for k in range(n):
        low = np.zeros((rows, columns))
        if k > 0:
            low += x[:, :, k] * 0.25 + y[:, :, k - 1]
        total = y[:, :, k] / scale - low
        if k == 0:
            out[:, :, k] = total
        else:
            out[:, :, k] = total - np.sin(low) * out[:, :, k - 1]
    return out, k


def down(x, y, n, scale):
    out = np.zeros(x.shape)
    ahead = y[:, :, n - 1]
    for k in range(n - 1, -1, -1):
        ahead = y[:, :, k] - scale * x[:, :, k] * ahead
        out[:, :, k] = ahead
    return out, k


def in_place(x, y, n, scale):
    for k in range(1, n):
        x[:, :, k] += x[:, :, k - 1] * y[:, :, k] / scale
        y[:, :, k - 1] = x[:, :, k]
    return x, y, k


def some_rows(x, y, n, scale):
    for k in range(1, n):
        x[1:, :, k] -= x[1:, :, k - 1] * scale
        x[1:, :, k] *= y[:-1, :, k]
    return x, k


def rows_that_share(x, y, n, scale):  # which stay as they are
    for k in range(1, n):
        x[1:, :, k] += x[:-1, :, k - 1] * y[1:, :, k] / scale
    return x, k


LEVELS = [up, down, in_place, some_rows, rows_that_share]


@pytest.fixture
def turned_inside(monkeypatch):
    """The loops that were interchanged."""
    found = []

    def made(self, old=interchanged.Nest.made):
        found.append(self.loop.var)
        return old(self)

    monkeypatch.setattr(interchanged.Nest, "made", made)
    return found


def levels(*shape):
    rng = numpy.random.default_rng(1)
    return rng.random(shape), rng.random(shape)


@pytest.mark.parametrize("program", LEVELS, ids=lambda f: f.__name__)
def test_loops_over_the_last_axis_run_inside_the_others(program, turned_inside):
    compiled = jit(program)
    for shape in ((3, 4, 12), (1, 1, 11), (5, 2, 17), (0, 3, 12), (3, 0, 12)):
        expected = program(*map(np.array, levels(*shape)), shape[2], 1.5)
        got = compiled(*map(np.array, levels(*shape)), shape[2], 1.5)
        for a, b in zip(got, expected):
            numpy.testing.assert_array_equal(numpy.asarray(a), numpy.asarray(b))
    assert bool(turned_inside) == (program not in (rows_that_share, down))  # which stands for arrays of two origins


def test_they_do_where_of_what_a_turn_makes_only_the_lengths_are_left(monkeypatch):
    found, made = [], interchanged.Nest.made
    monkeypatch.setattr(interchanged.Nest, "made", lambda nest: (found.append(nest.program.name), made(nest))[1])

    def f(x, y):
        out, more = np.zeros(x.shape), np.zeros(x.shape)
        for k in range(1, x.shape[2]):
            total = x[:, :, k] + y[:, :, k]
            more[:, :, k] = total * y[:, :, k - 1]
            out[:, :, k] = x[:, :, k] * 0.5 - out[:, :, k - 1]
        return out  # and `more` is nobody's

    compiled = jit(f)
    for _ in range(3):
        x, y = map(np.array, levels(3, 4, 12))
        numpy.testing.assert_array_equal(compiled(x, y), f(x, y))
    assert "loop_part" in found


@pytest.mark.parametrize("program", [up, in_place], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n, scale", [(12, 0.0), (14, 1.5), (-2, 1.5)])
def test_loops_over_the_last_axis_raise_where_python_does(program, n, scale):
    found = []
    for f in (program, jit(program)):
        x, y = map(np.array, levels(3, 4, 12))
        try:
            out = f(x, y, n, scale)
        except Exception as error:
            out = (type(error), str(error))
        found.append([numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in (*out, x, y)])
    for a, b in zip(*found):
        numpy.testing.assert_array_equal(a, b)


@pytest.mark.long
@pytest.mark.parametrize("program", LEVELS, ids=lambda f: f.__name__)
def test_gradients_of_loops_over_the_last_axis(program, turned_inside):
    def loss(x, y, scale):
        out = program(x.copy(), y.copy(), x.shape[2], scale)[0]
        return np.sum(np.sin(out) * np.cos(np.arange(out.shape[2])))

    def product(x, y, scale):
        return sum(np.sum(g * np.cos(g)) for g in grad(loss, (0, 1, 2))(x, y, scale))

    for f, shapes in ((loss, ((3, 4, 12), (1, 2, 11), (5, 2, 17))), (product, ((2, 3, 12),))):
        compiled = jit(grad(f, (0, 1, 2)))
        for shape in shapes:
            x, y = map(np.array, levels(*shape))
            for a, b in zip(compiled(x, y, 1.5), grad(f, (0, 1, 2))(x, y, 1.5)):
                numpy.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert bool(turned_inside) == (program is not rows_that_share)


def on_the_way(x, y, n):
    for _ in range(n):
        a = x[1:-1] * 2.0
        b = np.sin(a) + y[1:-1]
        y[1:-1] = a * b + y[1:-1] * y[1:-1]
        y[0] = y[-1] * 0.5
    return y


def beside(x, y, n):
    for _ in range(n):
        a = np.zeros(len(x))
        for k in range(len(x)):
            a[k] = x[k] * y[k]
        for k in range(len(x)):
            y[k] = a[k - 1] * x[k]
    return y


def one_place(x, y, n):
    for _ in range(n):
        a = np.zeros(1)
        for k in range(len(x)):
            a[0] += x[k] * y[k]
            y[k] = a[0] * x[k]
    return y


def left_between(x, y, n):
    for i in range(n):
        a, b = x[i:] * y[i:], x[1:] * y[1:]
        if i != 1:
            break
        y[1:] = a + b
    return a[:2] * b[:2]


@pytest.mark.long
@pytest.mark.parametrize("program", [on_the_way, beside, one_place, left_between], ids=lambda f: f.__name__)
def test_gradients_take_nests_over_the_same_turns_as_one(program, monkeypatch):
    joined = []

    def together(self, *given, old=fused.Fusion.together):
        out = old(self, *given)
        joined.append(out)
        return out

    monkeypatch.setattr(fused.Fusion, "together", together)
    loss = lambda x, y: np.sum(np.sin(program(x, y.copy(), 3)))
    product = lambda x, y: sum(np.sum(g * np.cos(g)) for g in grad(loss, (0, 1))(x, y))
    x, y = map(np.array, numpy.random.default_rng(2).random((2, 7)))
    for f in (loss, product):
        for got, expected in zip(jit(grad(f, (0, 1)))(x, y), grad(f, (0, 1))(x, y)):
            numpy.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    assert bool(joined) == (program is on_the_way)


def rings(x, y, n):
    out = np.zeros(n)
    for i in range(n):
        inside = (i / n <= y) & (y < (i + 1) / n)
        if inside.any():
            out[i] = np.sin(x[inside]).mean() + x[-1] * inside[-1]
    return out


def quadrants(x, y, n):
    out = np.zeros(n)
    for i in range(n):
        above = x[:, None] * i < y
        out[i] = x.sum() if above.all() else (np.where(above, y, x) * above).sum()
    return out


def edge_that_moves(x, y, n):
    out, edge = np.zeros(n), 0.5
    for i in range(n):
        above = y > edge
        edge = edge * 1.3
        if above.any():
            out[i] = (x * above).sum() + x[above].max() * edge
    return out


def two_masks_in_one_turn(x, y, n):
    s = 0.1
    for _ in range(n):
        above = y > 0.5
        if above.any():
            s += y[above].mean()
        s = s * 0.9 + x[0] * y[1]
        above = y > 0.4
        if above.any():
            s += y[above].mean()
        s = np.tanh(s)
    return s


def mask_of_what_is_written(x, y, n):
    for _ in range(n):
        above = y > 0.5
        y[:] = y * x * 1.5
        if above.any():
            y[1:] += y[:-1] * above[1:]
    return y


def mask_of_two_nests(x, y, n):
    out = np.zeros(n)
    for i in range(n):
        above = np.zeros(len(y), dtype=bool)
        for k in range(len(y) - 1):
            above[k] = y[k] * i > 0.5
        if above.any():
            out[i] = (x * above).sum()
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    "program",
    [rings, quadrants, edge_that_moves, two_masks_in_one_turn, mask_of_what_is_written, mask_of_two_nests],
    ids=lambda f: f.__name__,
)
def test_gradients_keep_no_mask_that_can_be_made_again(program, monkeypatch):
    left_out = []

    def unmasked(self, *given, old=fused.Fusion.unmasked):
        out = old(self, *given)
        left_out.append(out)
        return out

    monkeypatch.setattr(fused.Fusion, "unmasked", unmasked)
    loss = lambda x, y: np.sum(np.sin(program(x, y.copy(), 3)))
    product = lambda x, y: sum(np.sum(g * np.cos(g)) for g in grad(loss, (0, 1))(x, y))
    x, y = map(np.array, numpy.random.default_rng(2).random((2, 7)))
    for f in (loss, product):
        for got, expected in zip(jit(grad(f, (0, 1)))(x, y), grad(f, (0, 1))(x, y)):
            numpy.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    assert bool(left_out) == (program not in (mask_of_what_is_written, mask_of_two_nests))


def smooth(x, y, n, scale):
    for k in range(n):
        x[:, k] = y[:, k] * scale
        if k >= 1:
            x[:, k] += x[:, k - 1] * scale + y[:, k - 1]
        if k >= 2:
            x[:, k] -= x[:, k - 2] * scale * scale
    return x, k


def smooth_back(x, y, n, scale):
    for k in range(n - 2, -1, -1):
        x[:, k] = np.sin(x[:, k] * y[:, k + 1]) + scale * x[:, k + 1]
    return x, k


def smooth_some(x, y, n, scale):
    for k in range(1, n):
        for i in range(len(x)):
            if y[i, k] > 0.4:
                x[i, k] *= x[i, k - 1] * scale
            else:
                x[i, k] += y[i, k] / scale
    return x, k


def rows_in_turn(x, y, n, scale):  # share what they write
    for k in range(1, n):
        x[1:, k] += x[:-1, k - 1] * y[1:, k] / scale
    return x, k


def columns_apart(x, y, n, scale):  # wait for nothing
    for k in range(1, n):
        x[:, k] *= y[:, k - 1] * scale
    return x, k


MATRICES = [smooth, smooth_back, smooth_some, rows_in_turn, columns_apart]


@pytest.fixture
def rows_together(monkeypatch):
    """The loops some of whose turns were computed together."""
    found = []

    def made(self, old=jammed.Rows.made):
        found.append(self.loop.var)
        return old(self)

    monkeypatch.setattr(jammed.Rows, "made", made)
    return found


def anew(program):
    """A copy of a function that no other test has compiled the loops of."""
    source, name = inspect.getsource(program), f"<{program.__name__} anew>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = {"np": np, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    return scope[program.__name__]


@pytest.mark.parametrize("program", MATRICES, ids=lambda f: f.__name__)
def test_columns_that_wait_for_others_are_computed_row_by_row(program, turned_inside):
    compiled = jit(anew(program))
    for shape in ((9, 32), (1, 11), (4, 17), (0, 12)):
        expected = program(*map(np.array, levels(*shape)), shape[1], 0.5)
        got = compiled(*map(np.array, levels(*shape)), shape[1], 0.5)
        for a, b in zip(got, expected):
            numpy.testing.assert_array_equal(numpy.asarray(a), numpy.asarray(b))
    assert bool(turned_inside) == (program in (smooth, smooth_back))


@pytest.mark.long
@pytest.mark.parametrize("program", MATRICES, ids=lambda f: f.__name__)
def test_gradients_compute_some_rows_together_that_wait_for_numbers_of_their_own(program, rows_together):
    def loss(x, y, scale):
        out = program(x.copy(), y.copy(), x.shape[1], scale)[0]
        return np.sum(out * np.cos(np.arange(out.shape[1])))

    def product(x, y, scale):
        return sum(np.sum(g * np.cos(g)) for g in grad(loss, (0, 1, 2))(x, y, scale))

    def alone(x, y, scale):  # linear in x
        return grad(lambda x: loss(x, y, scale))(x)

    for f, shapes in ((loss, ((9, 32), (1, 31), (4, 57), (6, 5))), (product, ((5, 32),))):
        compiled = jit(grad(f, (0, 1, 2)))
        for shape in shapes:
            x, y = map(np.array, levels(*shape))
            for a, b in zip(compiled(x, y, 0.5), grad(f, (0, 1, 2))(x, y, 0.5)):
                numpy.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    for shape in ((9, 12), (3, 11)):
        x, y = map(np.array, levels(*shape))
        numpy.testing.assert_allclose(jit(alone)(x, y, 0.5), alone(x, y, 0.5), rtol=1e-10, atol=1e-12)
    assert bool(rows_together) == (program in (smooth, smooth_back))  # not where turns differ in what they keep


# ------------------------------------------------------------------ first and last turns
def ends_apart(x, y, n):  # a row of a tridiagonal system, as the rows around allow
    for i in range(len(x)):
        for k in range(n):
            low, high = 0.0, 0.0
            if k > 0:
                low = y[i, k - 1]
            if k < n - 1:
                high = y[i, k + 1] * y[i, k]
            if k == 0:
                x[i, k] = high / (2.0 + low)
            else:
                x[i, k] = (x[i, k] - x[i, k - 1] * low) / (2.0 + high * x[i, k - 1])
    return x


def from_the_end(x, y, n):
    last = 0.0
    for k in range(n - 1, -1, -1):
        here = y[0, k]
        if not (k == n - 1 or k <= 0):
            here *= x[0, k + 1]
        if k < n - 2:
            here += last * x[0, k + 2]
        last = here * y[1, k]
        x[0, k] = last
    return x


def some_first(x, y, n):
    for k in range(1, n):
        x[0, k] += y[0, k]
        if k >= 2:
            x[0, k] *= x[0, k - 1]
        if k != 2 and n > k:
            x[0, k] += np.sin(x[0, k - 1] * y[0, k])
    return x, k


def never_and_always(x, y, n):
    for k in range(n):
        if k >= 0:
            x[0, k] *= y[0, k - 1]
        if k >= n or k < 0:
            x[0, k] = 0.0
        if k > 4:  # turns too many
            x[1, k] *= x[0, k]
    return x


@pytest.mark.long
@pytest.mark.parametrize("program", [ends_apart, from_the_end, some_first, never_and_always], ids=lambda f: f.__name__)
def test_gradients_of_loops_whose_first_and_last_turns_take_another_way(program, monkeypatch):
    found = []

    def made(self, old=peeled.Parts.made):
        found.append(self.peel)
        return old(self)

    monkeypatch.setattr(peeled.Parts, "made", made)

    def loss(x, y, n):
        out = program(x.copy(), y.copy(), n)
        out = out[0] if isinstance(out, tuple) else out
        return np.sum(out * np.cos(np.arange(out.shape[1])))

    def product(x, y, n):
        return sum(np.sum(g * np.cos(g)) for g in grad(loss, (0, 1))(x, y, n))

    for f in (loss, product):
        compiled = jit(grad(f, (0, 1)))
        for n in (9, 4, 3, 2) if program is some_first else (9, 3, 2, 1, 0):
            x, y = map(np.array, levels(3, 9))
            for a, b in zip(compiled(x, y, n), grad(f, (0, 1))(x, y, n)):
                numpy.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert bool(found) == (program is not never_and_always)


def test_the_tape_of_loops_of_as_many_turns_and_of_others():
    def loss(x, n):
        total = 0.0
        for i in range(n):
            for k in range(n):  # as many in every turn
                total = np.sin(total + x[i] * x[k])
            for k in range(i):
                total = np.cos(total * x[k])
                for j in range(k, n):
                    total += x[j] * np.sin(total)
        for i in range(n - 1, 0, -1):
            for k in range(1, n):
                for j in range(2):
                    total = np.sin(total - x[k] * j) * x[i]
            if x[i] > 0.5:
                total = total * total
        return total

    compiled = jit(grad(loss))
    for n in (5, 1, 0, 7):
        x = np.linspace(0.2, 0.9, 7)
        numpy.testing.assert_allclose(compiled(x, n), grad(loss)(x, n), rtol=1e-10, atol=1e-13)
