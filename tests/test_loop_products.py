"""Products of matrices in compiled loops, which BLAS adds: the numbers of Python's loops, whatever the matrices are."""

import types

import numpy
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp, prange, vmap
from minnp.core.cpu import products as blas
from minnp.core.loops import compiled as compiled_loops
from minnp.core.loops import ir, lowering, products

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.host("about compiled code on NumPy's memory")
TURNS = 70  # more than a graph has one after the other


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """BLAS, however small a product is, in first runs too; the products that it was asked for."""
    asked: list[str] = []
    compiled = lowering.Lowering.do_Multiply

    def noting(self, s):
        asked.append(s.product.to.args[0])
        compiled(self, s)

    monkeypatch.setattr(lowering.Lowering, "do_Multiply", noting)
    monkeypatch.setattr(lowering, "BRIEF", 0)  # first runs end at once, and begin anew in code as all later runs have
    monkeypatch.setattr(compiled_loops, "LONG", 0)
    monkeypatch.setattr(products, "LARGE", 1)
    monkeypatch.setattr(products, "NARROW", 1)
    monkeypatch.setattr(products, "FEW", 0)
    return asked


def close(x, y, error):
    return numpy.shape(x) == numpy.shape(y) and numpy.allclose(x, y, rtol=error, atol=error, equal_nan=True)


def plain(f, *args):
    """What Python and NumPy make of copies of the arguments."""
    return types.FunctionType(f.__code__, {**f.__globals__, "np": numpy})(*(numpy.array(a) for a in args))


def repeated(a, b):
    s = np.zeros((a.shape[0], b.shape[1]))
    for _ in range(TURNS):
        s = s * 0.5 + a @ b
    return s


def in_place(a, b):
    a = a.copy()
    for _ in range(TURNS):
        a[:] = a @ b
    return a


def over_itself(a):
    a = a.copy()
    for _ in range(TURNS):
        a[1:] = 0.1 * (a[:-1] @ a.T @ a) + a[:-1]
    return a


def exchanged(a, b):
    for _ in range(TURNS + 1):
        a, b = b, 0.3 * (a @ b)
    return a + b


def of_stacks(a, b):
    c = np.zeros((3, 2, 4, 4))
    for i in range(3):
        for j in range(2):
            c[i, j] = a[i, j] @ b[j, :, i]
    return c


def of_views(a, b):
    s = 0.0
    for _ in range(TURNS):
        first, second, third = a[::2, 1:] @ b[1:, ::-1], a[:, :4].T @ a[:, 1:5], a[::-1] @ b[:, ::3]
        s = s + first[0, 1] + second[1, 2] * third[1, 1]
    return s


def draw(*shape):
    return numpy.random.default_rng(len(shape)).normal(size=shape) * 0.4


TURN = numpy.linalg.qr(draw(4, 4))[0]
PROGRAMS = {
    repeated: (draw(3, 4), draw(4, 5)),
    in_place: (draw(3, 4), TURN),
    over_itself: (draw(5, 5) * 0.2,),
    exchanged: (TURN, TURN.T * 0.9),
    of_stacks: (draw(3, 2, 4, 4), draw(2, 4, 3, 4)),
    of_views: (draw(6, 7), draw(7, 8)),
}


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f, always):
    args = PROGRAMS[f]
    assert close(jit(f)(*map(np.array, args)), plain(f, *args), 1e-12)


def test_blas_is_asked(always):
    def halves(a, b):  # which no other test compiles
        s = np.zeros((a.shape[0], b.shape[1]))
        for _ in range(TURNS):
            s = s * 0.25 + a @ b
        return s

    args = draw(3, 4), draw(4, 5)
    assert close(jit(halves)(*map(np.array, args)), plain(halves, *args), 1e-12)
    assert always


@pytest.mark.long
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives_to_second_order(f, always):
    args = PROGRAMS[f]
    every, along = tuple(range(len(args))), [draw(*a.shape) for a in args]
    loss = lambda *a: np.sum(np.sin(f(*a)))
    slope = lambda *a: sum(np.sum(g * d) for g, d in zip(grad(loss, every)(*a), along))
    step = 1e-6
    ends = [tuple(np.array(a + s * d) for a, d in zip(args, along)) for s in (step, -step)]
    given = tuple(map(np.array, args))
    values, gradients = jit(loss), jit(grad(loss, every))
    expected = (values(*ends[0]) - values(*ends[1])) / (2 * step)
    assert close(slope(*given), expected, 1e-6)
    assert close(jit(slope)(*given), expected, 1e-6)
    assert close(jit(lambda *a: jvp(loss, a, tuple(along))[1])(*given), expected, 1e-6)
    for second, up, down in zip(jit(grad(slope, every))(*given), gradients(*ends[0]), gradients(*ends[1])):
        assert close(second, (up - down) / (2 * step), 1e-5)
    assert len(always) > 3


@pytest.mark.parametrize(
    "shape", [(1, 4, 5), (5, 4, 1), (3, 1, 5), (1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0)], ids=str
)
def test_thin_and_empty_matrices(shape):
    m, k, n = shape
    a, b = draw(m, k), draw(k, n)
    assert close(jit(repeated)(np.array(a), np.array(b)), plain(repeated, a, b), 1e-12)


@pytest.mark.parametrize("types", [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("c16", "f8"), ("i8", "f8")], ids=str)
def test_types(types):
    def last(a, b):
        for _ in range(TURNS):
            c = a @ b
        return c

    a, b = (draw(4, 4).astype(t) for t in types)
    found, expected = jit(last)(np.array(a), np.array(b)), plain(last, a, b)
    assert found.dtype == expected.dtype and close(found, expected, 1e-5 if "f4" in types else 1e-12)


@pytest.mark.long
def test_strides(always):
    a, b = draw(12, 10), draw(10, 9)
    for x, y in ((a.T, a), (a[::2], b), (a[:, ::2], b[::2]), (numpy.asfortranarray(a), b), (a[::-1, ::-1], b[:, ::-1])):
        assert close(jit(repeated)(np.array(x), y), plain(repeated, x, y), 1e-12)
        f = jit(repeated)
        assert close(f(x, y), plain(repeated, x, y), 1e-12)
    assert always


def test_what_a_result_was_is_overwritten_though_it_is_no_number():
    def last(a, b):
        c = np.zeros((3, 3))
        for _ in range(TURNS):
            c[:] = np.nan
            c[:] = a @ b
        return c

    a, b = draw(3, 4), draw(4, 3)
    assert close(jit(last)(np.array(a), np.array(b)), plain(last, a, b), 1e-12)


def test_infinities_are_as_numpys():
    a, b = draw(4, 4), draw(4, 4)
    a[0, 1], a[2, 2], b[1, 2] = numpy.inf, numpy.nan, 0.0
    with numpy.errstate(invalid="ignore"):
        found, expected = jit(repeated)(np.array(a), np.array(b)), plain(repeated, a, b)
    assert close(found, expected, 1e-12)


def test_products_in_loops_on_several_threads_are_the_same_bits(always):
    def shared(a, b):
        c = np.zeros((20, 5, 6))
        for i in prange(20):
            c[i] = (a * (i + 1.0)) @ b
        return c

    def alone(a, b):
        c = np.zeros((20, 5, 6))
        for i in range(20):
            c[i] = (a * (i + 1.0)) @ b
        return c

    a, b = np.array(draw(5, 4)), np.array(draw(4, 6))
    assert numpy.array_equal(jit(shared)(a, b), jit(alone)(a, b))
    assert always


def test_a_batch_of_loops_with_products():
    a, b = draw(3, 3, 4), draw(4, 5)
    found = jit(vmap(repeated, (0, None)))(np.array(a), np.array(b))
    assert close(found, numpy.array([plain(repeated, x, b) for x in a]), 1e-12)


def test_a_product_that_threads_share_is_as_that_of_one():
    if not blas.library("d"):
        pytest.skip("no BLAS that loops call")
    a, b = draw(200, 150), draw(150, 180)

    def last(a, b):
        for _ in range(2 * TURNS):
            for _ in range(1):
                c = a @ b
        return c

    assert close(jit(last)(np.array(a), np.array(b)), a @ b, 1e-12)


def test_what_is_no_product_is_none():
    """A sum of hand, whose order is given; a square; places that do not move evenly."""
    number = lambda name: ir.E("var", (name,), ir.INT, 0, 9)
    element = lambda array, *index: ir.E("load", (array, *index), ir.F8)
    i, j, k = map(number, "ijk")

    def nest(value, exact=False, to=(i, j)):
        old = element("c", *to)
        loop = lambda name, body: ir.For(name, ir.const(0), ir.const(9), 1, body, exact)
        return loop("i", [loop("k", [loop("j", [ir.Store("c", to, ir.E("add", (old, value), ir.F8))])])])

    times = lambda x, y: ir.E("mul", (x, y), ir.F8)
    assert products.product(nest(times(element("a", i, k), element("b", k, j)))) is not None
    assert products.product(nest(times(element("a", i, k), element("b", k, j)), exact=True)) is None
    assert products.product(nest(times(element("a", i, k), element("c", k, j)))) is None
    assert products.product(nest(times(element("a", i, k), element("b", i, k)))) is None
    assert products.product(nest(times(element("a", i, ir.E("mul", (k, k), ir.INT)), element("b", k, j)))) is None
    assert products.product(nest(element("a", i, k))) is None


def triangle(a):
    """Each row with itself and those behind it."""
    s = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1]):
        s[i, i:] = a[:, i] @ a[:, i:] / 3.0
        s[i:, i] = s[i, i:]
    return s


def lower_triangle(a):
    s = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1] - 1, -1, -1):
        s[i, : i + 1] = a[:, i] @ a[:, : i + 1]
    return s


def band(a):
    s = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1]):
        s[i, i : i + 9] = a[:, i] @ a[:, i : i + 9]
    return s


def rows_in_place(a, c):
    a = a.copy()
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q, :] = a[r, q, :] @ c
    return a


@pytest.mark.long
@pytest.mark.parametrize("f", [triangle, lower_triangle, band])
def test_gradients_of_triangles_are_products(f, always):
    """And no slope counts where the cotangent is zero. (One test: what compiles f's loop first does so for all.)"""
    loss = lambda a, w: np.sum(f(a) * w)
    made = jit(grad(loss))
    for n in (150, 150, 1, 3, 70):
        a, weights = draw(4, n), draw(n, n)
        assert close(made(np.array(a), np.array(weights)), grad(loss)(np.array(a), np.array(weights)), 1e-11)
    assert always
    if f is band:
        return
    a, weights = draw(4, 150), draw(150, 150)
    weights[4], weights[:, 4] = 0.0, 0.0
    a[:, 4] = 0.0
    loss = lambda a: np.sum(np.where(weights == 0, 0.0, f(a)) * weights)
    made, expected = jit(grad(loss)), grad(loss)(np.array(a))
    a[2, 4], a[3, 4] = numpy.inf, numpy.nan
    with numpy.errstate(invalid="ignore"):
        for _ in range(2):
            assert close(made(np.array(a)), expected, 1e-11)


@pytest.mark.long
def test_the_gradient_of_rows_in_whose_place_their_products_are_is_a_product(always):
    a, c, weights = draw(3, 70, 6), draw(6, 6), draw(3, 70, 6)
    loss = lambda a, c: np.sum(rows_in_place(a, c) * weights)
    for k in range(2):
        made, expected = jit(grad(loss, k)), grad(loss, k)(np.array(a), np.array(c))
        for _ in range(2):
            assert close(made(np.array(a), np.array(c)), expected, 1e-11)
    assert always


def weighted(A, B, w):
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += w[i, k] * np.sqrt(A[i, k]) * B[k, j]
    return np.sum(C * C)


def weighted_in_place(A, B, w):
    C = np.exp(A)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] = 0.5 * C[i, j] + w[i, k] * np.sqrt(A[i, k]) * B[k, j] * C[i, j]
    return np.sum(np.sin(C))


def weighted_by_one(A, B, w):
    s = 0.0
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            s += w[i, k] * np.sqrt(A[i, k]) * B[k, i]
    return s


@pytest.mark.long
@pytest.mark.parametrize("f", [weighted, weighted_in_place, weighted_by_one])
@pytest.mark.parametrize("wrt", [0, (0, 1, 2)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_that_are_infinite_where_no_cotangent_flows_are_zero_whenever_they_come(f, wrt):
    slope = jit(grad(f, wrt))
    for infinite in (False, False, True, False, True, None, True, False):
        A, B, w = numpy.random.default_rng(3).random((3, 6, 6))
        if infinite is not False:
            A[2, 3] = A[5, :] = 0.0
            w[2, 3] = w[5, :] = 0.0
        if infinite is None:
            B[1, 1] = numpy.nan
        got, want = (g(*map(np.array, (A, B, w))) for g in (slope, grad(f, wrt)))
        for a, b in zip(*((r,) if wrt == 0 else r for r in (got, want)), strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
