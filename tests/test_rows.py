"""Every row of the table, by its own samples: kernel, shape, cost, dtype, and gradients to second order."""

from importlib.util import find_spec

import numpy as onp
import pytest
from derivatives import inexact, leaves, paired, random_like, slope

import minnp.npx
import minnp.numpy as np
from minnp import errors, fx, grad, vjp
from minnp.core.api import functions, public
from minnp.core.arrays.array import read
from minnp.core.rows import dispatch, on_device
from minnp.core.rows.primitive import CONSTANT, TABLE, Meta, Primitive
from minnp.core.rows.value import is_scalar

if find_spec("scipy"):
    import minnp.scipy.fft
    import minnp.scipy.linalg
    import minnp.scipy.signal
    import minnp.scipy.special

ROWS = sorted(TABLE)


def cases(name):
    row = TABLE[name]
    return row, row.samples()


def differentiable(row, arrays):
    """The positions of the arguments a gradient flows to."""
    rules = [row.rule(i) for i in range(len(arrays))]
    return [i for i, a in enumerate(arrays) if rules[i] not in (None, CONSTANT) and inexact(a)]


def replaced(arrays, places, values):
    arrays = list(arrays)
    for i, v in zip(places, values):
        arrays[i] = v
    return arrays


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_samples_and_its_kernel_is_pure(name):
    row, samples = cases(name)
    assert samples
    for arrays, params in samples:
        before = [onp.array(a) for a in arrays]
        row(*arrays, **params)
        for a, b in zip(arrays, before):
            onp.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].shape])
def test_shape_fact_is_what_the_kernel_gives(name):
    row, samples = cases(name)
    for arrays, params in samples:
        metas = [Meta(onp.shape(a), a.dtype if hasattr(a, "dtype") else type(a)) for a in arrays]
        got = leaves(row.shape(metas, params))
        for meta, y in zip(got, leaves(row.numpy(*arrays, **params)), strict=True):
            assert (meta.shape, meta.dtype) == (onp.shape(y), onp.asarray(y).dtype), params


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].flops])
def test_flops_are_counted(name):
    row, samples = cases(name)
    for arrays, params in samples:
        metas = [Meta(onp.shape(a), a.dtype if hasattr(a, "dtype") else type(a)) for a in arrays]
        y = leaves(row.numpy(*arrays, **params))[0]
        count = row.flops(metas, params, Meta(onp.shape(y), onp.asarray(y).dtype))
        assert isinstance(count, (int, onp.integer)) and count >= 0


def check_gradients(row, arrays, params):
    """The row's cotangents, and the gradient of those, against differences."""
    places = differentiable(row, arrays)
    if not places:
        return
    xs = [onp.asarray(arrays[i]) for i in places]
    f = lambda *values: row(*replaced(arrays, places, values), **params)
    kernel = lambda *values: row.numpy(*replaced(arrays, places, values), **params)
    g = [random_like(y, 1) for y in leaves(kernel(*xs))]
    ts = [random_like(x, 2 + i) for i, x in enumerate(xs)]

    def first(*values):
        """The pairing of the tangents with the cotangents of f, as a function of f's arguments."""
        out, pullback = vjp(f, *values)
        total = 0.0
        for t, c in zip(ts, pullback(type(out)(g) if isinstance(out, (tuple, list)) else g[0])):
            total = total + (c * t).sum()
        return total.real if total.dtype.kind == "c" else total

    wanted = paired(g, slope(kernel, xs, ts))
    assert float(first(*xs)) == pytest.approx(wanted, rel=1e-6, abs=1e-6), (params, [x.shape for x in xs])

    ss = [random_like(x, 20 + i) for i, x in enumerate(xs)]
    second = leaves(grad(first, range(len(xs)))(*xs))
    wanted = paired([1.0], slope(lambda *v: onp.asarray(first(*v)), xs, ss))
    assert paired(second, ss) == pytest.approx(wanted, rel=1e-5, abs=1e-5), (params, "second order")


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].vjp not in (None, CONSTANT)])
def test_gradient_is_the_derivative_to_second_order(name):
    row, samples = cases(name)
    for arrays, params in samples:
        check_gradients(row, arrays, params)


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].vjp not in (None, CONSTANT)])
def test_gradient_keeps_float32(name):
    row, samples = cases(name)
    for arrays, params in samples:
        small = [a.astype("f4") if isinstance(a, onp.ndarray) and a.dtype == float else a for a in arrays]
        y = row.numpy(*small, **params)
        if isinstance(y, (tuple, list)) or onp.asarray(y).dtype != onp.float32:
            continue
        g = random_like(y, 1)
        for i in differentiable(row, small):
            rule = row.rule(i)
            if isinstance(small[i], onp.ndarray) and small[i].ndim and g.ndim:
                # of a complex cotangent for a real argument the tape keeps the real part
                assert rule(g, y, *small, **params).dtype in (onp.float32, onp.complex64), (i, params)


def forward(row, y, arrays, tangents, params):
    """The tangent of the result by the row's forward rule; None where the row has none."""
    zero = [onp.zeros_like(onp.asarray(a)) if t is None else t for a, t in zip(arrays, tangents)]
    if row.jvp == "linear":
        return row.numpy(*zero, **params)
    if row.jvp is None:
        return None
    total = 0.0
    for i, t in enumerate(tangents):
        if t is None:
            continue
        if row.jvp == "multilinear":
            part = row.numpy(*replaced(arrays, [i], [t]), **params)
        else:
            part = (row.rule(i) if row.jvp == "elementwise" else row.jvp[i])(t, y, *arrays, **params)
        total = (
            tuple(a + b for a, b in zip(total, part))
            if isinstance(total, tuple)
            else part + total
            if not isinstance(part, tuple)
            else part
        )
    return total


@pytest.mark.parametrize("name", [n for n in ROWS if TABLE[n].jvp is not None and TABLE[n].vjp is not CONSTANT])
def test_forward_rule_is_the_derivative(name):
    row, samples = cases(name)
    for arrays, params in samples:
        places = differentiable(row, arrays)
        if not places:
            continue
        tangents = [random_like(a, i) if i in places else None for i, a in enumerate(arrays)]
        y = row.numpy(*arrays, **params)
        kernel = lambda *values, arrays=arrays, places=places, params=params: row.numpy(
            *replaced(arrays, places, values), **params
        )
        wanted = slope(kernel, [onp.asarray(arrays[i]) for i in places], [tangents[i] for i in places])
        got = leaves(forward(row, y, arrays, tangents, params))
        for a, b in zip(got, wanted, strict=True):
            if inexact(b):
                onp.testing.assert_allclose(onp.broadcast_to(a, b.shape), b, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [*range(1, 14), 16])
def test_many_short_rows_are_summed_to_numpys_bits(n, dtype):
    draw = onp.random.RandomState(n)
    x = (draw.standard_normal((70_000, n)) * 10.0 ** draw.randint(-8, 8, (70_000, n))).astype(dtype)
    x[:50], x[50:60, 0], x[60:70, -1] = -0.0, onp.inf, onp.nan
    x[70:300] = onp.where(draw.rand(230, n) < 0.5, -0.0, 0.0)
    for a in (x, x.reshape(7, -1, n), onp.asfortranarray(x)):
        got, wanted = TABLE["sum"].numpy(a, axis=-1), a.sum(axis=-1)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert onp.array_equal(got, wanted, equal_nan=True)
        assert onp.array_equal(onp.signbit(got[got == 0]), onp.signbit(wanted[wanted == 0]))


def test_what_is_known_of_an_operator_is_in_its_row():
    """No table elsewhere names it: vmap, capture, writes and what lies under vmap ask the row."""
    facts = {"vjp": [lambda g, y, x: g * 2], "saves": "", "samples": lambda: [((onp.arange(3.0),), {})]}
    seen = []

    def rule(row, raw, mine, params):
        seen.append([v.shape for v in raw])
        return raw[0] * 2

    row = Primitive("twice_of_the_rows", lambda x: x * 2, batch=rule, **facts)
    assert minnp.vmap(lambda v: row(v))(np.ones((4, 3))).tolist() == [[2.0] * 3] * 4 and seen == [[(4, 3)]]
    each = Primitive("each_of_the_rows", lambda x: (seen.append(x.shape), x * 2)[1], **facts)
    minnp.vmap(lambda v: each(v))(np.ones((4, 3)))
    assert seen[1:] == [(3,)] * 4  # no rule: example by example
    loops = Primitive("loop_of_the_rows", onp.square, **facts)
    assert minnp.vmap(lambda v: loops(v))(np.full((4, 3), 3.0)).shape == (4, 3)

    positive = Primitive("positive_of_the_rows", lambda x: x[x > 0], vjp=CONSTANT, saves="", dynamic="shape")
    f = minnp.jit(lambda v: positive(v) + 1)
    for x in ([1.0, -1.0, 2.0], [1.0, 1.0, 2.0], [-1.0, 3.0, 2.0]):
        assert f(np.array(x)).tolist() == [e + 1 for e in x if e > 0]

    kinds = {}
    for scalar in (True, False):
        facts = {
            "vjp": CONSTANT,
            "saves": "",
            "scalar": scalar,
            "batch": lambda row, raw, mine, params: raw[0].sum(axis=1),
        }
        total = Primitive("total_of_the_rows", lambda x: x.sum(), **facts)
        minnp.vmap(lambda v: kinds.setdefault(scalar, is_scalar(read(total(v)))) or v)(np.ones((2, 3)))  # noqa: B023
    assert kinds == {True: True, False: False}


@pytest.fixture
def new_function():
    """A function of NumPy's, for one test: what is known of it is said where it is defined, and nowhere else."""
    made = []

    def make(name, host, definition=None, **facts):
        made.append((name, host))
        host.__name__ = name
        setattr(onp, name, host)
        dispatch.defines(host, **facts)(definition or host)
        return public.function(name, host)

    yield make
    for name, host in made:
        delattr(onp, name)
        for table in (dispatch.DEFINITIONS, dispatch.FACTS, functions.ENTRIES, functions.PUBLIC):
            del table[host]
        del functions.report.HOST_CALLS[name]


def test_what_is_known_of_a_function_is_said_with_its_definition(new_function):
    """No table elsewhere names it: `out=`, policies, graphs without values and shapes ask `dispatch.fact`."""
    total = lambda a, dtype=None, out=None: onp.sum(a, dtype=dtype, out=out)
    rule = dispatch.Out(sums="all")
    summed = new_function("summed_of_the_rows", total, lambda a, dtype=None: np.sum(a, dtype=dtype), out=rule)
    x, out = np.full(3, 0.1, "f4"), np.zeros(())
    minnp.jvp(lambda x: summed(x, out=out) * 1, (x,), (x,))
    assert out.dtype == float and out == onp.full(3, 0.1, "f4").sum(dtype=float)

    filled = new_function("filled_of_the_rows", lambda n: onp.full(n, 2.0), creates="dense")

    def program(x):
        y = filled(6)
        y.reshape(2, 3)[0] = x  # known to be a view
        return y

    assert fx.symbolic_trace(program)(np.ones(3)).tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]

    some = new_function("some_of_the_rows", lambda x: x[x > 0], dynamic="shape")
    with pytest.raises(errors.CaptureError, match="depends on data"):
        fx.propagate_shapes(fx.symbolic_trace(lambda x: some(x)).graph, Meta((3,), onp.dtype(float)))


def test_array_gives_a_view_or_a_copy_in_graphs_without_values():
    def transposed(x):
        y = np.array(x.T)  # a copy, in the order of memory of its argument
        z = y.reshape(-1)
        z[0] = 9
        return y

    def perhaps_copied(x):
        y = np.array(x, copy=None if onp.lib.NumpyVersion(onp.__version__) >= "2.0.0" else False)
        y[0] = 9
        return x * 1

    def of_list(x):
        y = np.array([x[0], x[1]])
        y.reshape(-1)[0] = 9
        return y

    x = np.arange(6.0).reshape(2, 3)
    for program in (transposed, perhaps_copied):
        with pytest.raises(errors.CaptureError, match="may or may not be a view"):
            fx.symbolic_trace(program)
    assert fx.symbolic_trace(of_list)(x).tolist() == of_list(x).tolist() == [[9, 1, 2], [3, 4, 5]]


def test_whether_a_row_shows_memory_is_asked_without_warnings(monkeypatch):
    anything = onp.array([[onp.inf, 1.0], [-onp.inf, 1.0]])  # what memory may hold before it is written
    monkeypatch.setattr(on_device, "laid_out", lambda buffer: anything)
    assert not on_device.numpy_views(TABLE["sum_to"], None, {"shape": (2,)})
    assert on_device.numpy_views(TABLE["reshape"], None, {"shape": (4,)})
