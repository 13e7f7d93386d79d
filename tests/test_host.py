"""The host executor: in pieces and on recycled memory, large operations give NumPy's bits, warnings and exceptions."""

import gc
import itertools
import operator
import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import minnp
import minnp.numpy as mnp
from minnp.core import cpu
from minnp.core.cpu import elementwise, memory, reductions, selection, threads

pytestmark = pytest.mark.host("the executor of NumPy's own kernels")
N = 1 << 20
D = np.dtype(float)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "alone", lambda: False)  # whatever else the machine does
    before = cpu.set_num_threads(2)
    yield
    cpu.set_num_threads(before)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def data(rng, shape, dtype):
    dtype = np.dtype(dtype)
    x = rng.standard_normal(shape) * 4
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    if dtype.kind == "u":
        x = abs(x)
    return x.astype(dtype)


def check(ours, theirs):
    """The same dtype, shape, memory order and bits."""
    assert ours is not NotImplemented
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if isinstance(theirs, np.ndarray):
        assert ours.strides == theirs.strides
    assert ours.tobytes() == theirs.tobytes()


def quiet(function, *args, **kwargs):
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


# ------------------------------------------------------------------ elementwise
@pytest.mark.parametrize("uf", elementwise.LEAST, ids=lambda uf: uf.__name__)
def test_pieces_of_a_ufunc_are_numpys_bits(uf, rng, monkeypatch):
    monkeypatch.setitem(elementwise.LEAST, uf, 1 << 10)
    n = 3 * elementwise.PIECE + 101
    for dtype in "?bhilBefdFD":
        args = [data(rng, n, dtype) for _ in range(uf.nin)]
        try:
            theirs = quiet(uf, *args)
        except (TypeError, ValueError):  # no loop for this dtype; integers to negative powers
            with pytest.raises((TypeError, ValueError)):
                quiet(cpu.call, uf, args, {})
            continue
        check(quiet(cpu.call, uf, args, {}), theirs)


LAYOUTS = {
    "scalar": lambda x: (x, 2),
    "scalar first": lambda x: (1.5, x),
    "zero-dimensional": lambda x: (x, np.float64(2)),
    "other dtype": lambda x: (x, x.astype("f")),
    "integers": lambda x: (x, x.astype(int)),
    "two axes": lambda x: (x.reshape(1024, -1), x.reshape(1024, -1)),
    "Fortran": lambda x: (x.reshape(1024, -1).T, x.reshape(1024, -1).T),
    "row": lambda x: (x.reshape(1024, -1), x[:2048]),
    "column": lambda x: (x.reshape(1024, -1), x[:1024].reshape(-1, 1)),
    "few rows": lambda x: (x.reshape(2, -1), x[:2].reshape(-1, 1)),
    "three axes": lambda x: (x.reshape(128, 128, 128), x[: 128 * 128].reshape(128, 128)),
    "inner window": lambda x: (np.pad(x.reshape(1024, -1), 1)[1:-1, 1:-1], np.pad(x.reshape(1024, -1), 1)[2:, 1:-1]),
    "every second": lambda x: (np.tile(x, 2)[::2], np.tile(x, 2)[1::2]),
}


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.lt, np.arctan2])
def test_layouts_and_operand_kinds(layout, op, rng):
    args = LAYOUTS[layout](data(rng, 2 * N, "d"))
    check(cpu.call(op, args, {}), op(*args))


@pytest.mark.parametrize(
    "args", [(np.ones((2, N)), np.ones((2, N)).T), (np.ones(N), [1.0] * N), (np.ones(N, object), 1)]
)
def test_other_operands_are_left_to_numpy(args):
    assert cpu.call(operator.add, args, {}) is NotImplemented


@pytest.mark.parametrize("exponent", [2, 0.5, -1, 1, 3, 2.5])
def test_powers_take_the_operators_short_cuts(exponent, rng):
    x = abs(data(rng, 2 * N, "d")) + 1
    check(cpu.call(operator.pow, (x, exponent), {}), x**exponent)
    check(elementwise.operation(operator.pow)(x, exponent), x**exponent)


def test_out_and_in_place(rng):
    x, y = data(rng, 2 * N, "d"), data(rng, 2 * N, "d")
    out = np.empty(2 * N)
    assert cpu.call(np.add, (x, y), {"out": out}) is out
    check(out, x + y)
    expected = x * y
    assert cpu.call(operator.imul, (x, y), {}) is x
    check(x, expected)
    z = data(rng, 2 * N + 1, "d")
    assert cpu.call(np.add, (z[1:], 1), {"out": z[:-1]}) is NotImplemented  # overlap
    with pytest.raises(TypeError, match="same_kind"):
        cpu.call(np.add, (x, y), {"out": np.empty(2 * N, int)})
    readonly = np.empty(2 * N)
    readonly.flags.writeable = False
    assert cpu.call(np.add, (x, y), {"out": readonly}) is NotImplemented


def test_astype_copy_clip(rng):
    x = data(rng, (1024, 2048), "d")
    check(cpu.call(np.ndarray.astype, (x, "f"), {}), x.astype("f"))
    check(cpu.call(np.ndarray.astype, (x.T, int), {}), x.T.astype(int))
    check(cpu.call(np.copy, (x,), {}), np.copy(x))
    check(cpu.call(np.clip, (x, -0.5, 0.5), {}), np.clip(x, -0.5, 0.5))
    check(cpu.call(np.ndarray.copy, (x,), {}), x.copy())
    assert cpu.call(np.ndarray.copy, (x.T,), {}) is NotImplemented  # C order, of a Fortran array


AXES = [(97,), (3, 97), (20, 33), (2, 3, 97), (17, 2, 33), (2, 3, 4, 33), (18, 1, 2, 33), (1, 3, 2, 97)]
MEMORY = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "gaps": lambda x: x.repeat(2, -1)[..., ::2],
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "spread": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "middle first": lambda x: x.swapaxes(0, -2).copy().swapaxes(0, -2) if x.ndim > 2 else x,
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
}


def broadcasts_to(shape):
    """Every shape that broadcasts to this one: axes missing, axes of one element."""
    for n in range(len(shape) + 1):
        for ones in itertools.product((False, True), repeat=n):
            yield tuple(1 if one else d for one, d in zip(ones, shape[len(shape) - n :]))


@pytest.fixture
def any_size(monkeypatch):
    """Operations of every size are cut up, into small pieces."""
    for uf in elementwise.LEAST:
        monkeypatch.setitem(elementwise.LEAST, uf, 0)
    monkeypatch.setattr(elementwise, "PIECE", 64)
    monkeypatch.setattr(elementwise, "CHEAP", 0)
    monkeypatch.setattr(memory, "LEAST", 0)
    pieces = []
    ranges = elementwise.ranges

    def counted(*args):
        found = list(ranges(*args))
        pieces.append(len(found))
        return found

    monkeypatch.setattr(elementwise, "ranges", counted)
    return pieces


def compared(function, args, kwargs, theirs):
    """Whether host.call does this; the same value or exception type as theirs(), and what was written, if so."""
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    try:
        expected = quiet(theirs)
    except (TypeError, ValueError) as failure:
        with pytest.raises(type(failure)):
            if quiet(cpu.call, function, args, kwargs) is NotImplemented:
                raise
        return False
    ours = quiet(cpu.call, function, args, kwargs)
    for x, before in zip(args, copies):  # theirs() was given its own out= and its own left operand
        if isinstance(x, np.ndarray) and x is not ours:
            np.testing.assert_array_equal(x, before)
    if ours is NotImplemented:
        return False
    check(ours, expected)
    return True


def takes(function, kinds):
    try:
        function(*(np.ones(1, kind) for kind in kinds))
    except TypeError:
        return False
    return True


CUT = [uf for uf in elementwise.LEAST if uf.nin == 2]


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("function", CUT, ids=lambda f: f.__name__)
def test_every_broadcast_of_two_operands_is_numpys_bits(function, rng, any_size):
    """Of up to four axes, in every memory order, with numbers, of mixed dtypes, with `out=` and in place."""
    mixed = [kinds for kinds in ("dd", "ff", "df", "fd", "di", "ii", "??", "bh", "Df", "ei") if takes(function, kinds)]
    dtypes, layouts = itertools.cycle(mixed), itertools.cycle(MEMORY)
    in_place = {uf: op for op, uf in elementwise.IN_PLACE.items()}.get(function)
    done = 0
    for shape in AXES:
        for small in broadcasts_to(shape):
            pairs = [(mixed[0], "C", "C"), (next(dtypes), "C", "C"), (next(dtypes), next(layouts), next(layouts))]
            for kinds, a_memory, b_memory in pairs:
                a, b = MEMORY[a_memory](data(rng, shape, kinds[0])), data(rng, small, kinds[1])
                b = MEMORY[b_memory](b) if b.ndim else b
                for args in ((a, b), (b, a)) + (((a, b[()]), (a, b.item())) if not b.ndim else ()):
                    done += compared(function, args, {}, lambda: function(*args))  # noqa: B023
                for out_memory in ("C", next(layouts)):
                    out = np.zeros(shape, quiet(function, abs(a), abs(b)).dtype)
                    ours, theirs = MEMORY[out_memory](out), MEMORY[out_memory](out.copy())
                    if ours.flags.writeable:
                        ours, theirs = (x.copy("K") if x.base is out else x for x in (ours, theirs))
                        compared(function, (a, b), {"out": ours}, lambda: function(a, b, out=theirs))  # noqa: B023
                if in_place is not None:
                    ours, theirs = a.copy("K"), a.copy("K")
                    done += compared(in_place, (ours, b), {}, lambda: in_place(theirs, b))  # noqa: B023
    assert done > 300 and max(any_size) > 2


@pytest.mark.long
@pytest.mark.parametrize("shape", AXES)
def test_every_layout_of_one_operand_is_numpys_bits(shape, rng, any_size):
    done = 0
    for layout, dtype in itertools.product(MEMORY.values(), "dfi?e"):
        a = layout(data(rng, shape, dtype))
        for uf in elementwise.LEAST:
            if uf.nin == 1:
                done += compared(uf, (a,), {}, lambda: uf(a))  # noqa: B023
        done += compared(np.copy, (a,), {}, lambda: np.copy(a))  # noqa: B023
        for to in "fdi?":
            done += compared(np.ndarray.astype, (a, to), {}, lambda: a.astype(to))  # noqa: B023
    assert done > 300 and max(any_size) > 1


@pytest.mark.long
@pytest.mark.parametrize("shape", AXES)
def test_clip_between_bounds_of_every_shape_is_numpys_bits(shape, rng, any_size):
    done, layouts = 0, itertools.cycle(MEMORY)
    for least in broadcasts_to(shape):
        for most in broadcasts_to(shape):
            a = MEMORY[next(layouts)](data(rng, shape, "d"))
            args = a, data(rng, least, "d"), data(rng, most, "f")
            done += compared(np.clip, args, {}, lambda: np.clip(*args))  # noqa: B023
            done += compared(np.clip, (a, -0.5, args[2]), {}, lambda: np.clip(a, -0.5, args[2]))  # noqa: B023
    assert done and max(any_size) > 1


@pytest.mark.long
def test_few_long_rows_and_one_row_for_all(rng):
    """At the sizes and with the threads users have: public functions, under a gradient and compiled."""
    x, row = data(rng, (8, 300_000), "d"), data(rng, 300_000, "d")
    ours, ours_row = mnp.array(x), mnp.array(row)
    for f in (
        lambda np, x, row: x - row,
        lambda np, x, row: x / row,
        lambda np, x, row: x < row,
        lambda np, x, row: np.maximum(x, row),
        lambda np, x, row: np.clip(x, -1.0, row),
        lambda np, x, row: np.hypot(x, row),
        lambda np, x, row: x - x.mean(0),
        lambda np, x, row: np.exp(x - x.max(0)),
    ):
        np.testing.assert_array_equal(f(mnp, ours, ours_row), quiet(f, np, x, row))
        np.testing.assert_allclose(minnp.jit(lambda x, row: f(mnp, x, row))(ours, ours_row), quiet(f, np, x, row))  # noqa: B023
    ours -= ours_row
    np.testing.assert_array_equal(ours, x - row)
    gradient = minnp.grad(lambda x: mnp.sum((x - ours_row) * (x - mnp.mean(x, 0))))(mnp.array(x))
    np.testing.assert_allclose(gradient, 2 * x - row - x.mean(0) - (x - row).mean(0), atol=1e-12)


# ------------------------------------------------------------------ reductions
@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("dtype", "fdFDil?")
@pytest.mark.parametrize("shape", [(3 * N + 77,), (1500, 2200), (60, 50, 1111), (3, N)])
def test_reductions_are_numpys_bits(dtype, shape, rng, monkeypatch):
    monkeypatch.setattr(reductions, "LEAST", 1 << 10)
    x = data(rng, shape, dtype)
    axes = [None, 0, -1, *([(0, 1), (1, 2), (0, 2)] if len(shape) == 3 else [])]
    taken = 0
    for function in (np.sum, np.max, np.min, np.mean, np.std, np.var):
        for axis in axes:
            for keepdims in (False, True):
                options = {"axis": axis, "keepdims": keepdims}
                ours = cpu.call(function, (x,), options)
                if ours is not NotImplemented:
                    taken += 1
                    check(ours, function(x, **options))
    assert taken >= 8


def test_a_transposed_array_is_summed_in_the_order_of_its_memory(rng):
    x = data(rng, (2048, 2048), "d")
    check(cpu.call(np.sum, (x.T,), {}), np.sum(x.T))


@pytest.mark.parametrize("function", [np.max, np.min])
@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0), (0.0, 0.0), (np.nan, 1.0)])
def test_extrema_keep_nan_and_the_sign_of_zero(function, values):
    x = np.full(3 * N, values[0])
    x[N::3] = values[1]
    check(cpu.call(function, (x,), {}), function(x))


def test_results_do_not_depend_on_the_number_of_threads(rng):
    x = data(rng, 4 * N + 5, "f")
    results = []
    for n in (2, 3, 5):
        cpu.set_num_threads(n)
        results.append([cpu.call(f, (x,), {}).tobytes() for f in (np.sum, np.std, np.exp, np.sort)])
    assert results[0] == results[1] == results[2]


# ------------------------------------------------------------------ selection
MASKS = {
    "irregular": lambda rng, n: rng.random(n) > 0.5,
    "sparse": lambda rng, n: rng.random(n) > 0.98,
    "runs": lambda rng, n: np.arange(n) // 100 % 2 == 0,
    "none": lambda rng, n: np.zeros(n, bool),
    "byte 2": lambda rng, n: (2 * (rng.random(n) > 0.5)).astype("u1").view(bool),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", "?bhfdD")
def test_masks_and_where(mask, dtype, rng, monkeypatch):
    monkeypatch.setattr(selection, "LONG", selection.SHARED)
    n = selection.SHARED + 12345
    m, x, y = MASKS[mask](rng, n), data(rng, n, dtype), data(rng, n, dtype)
    check(cpu.call(operator.getitem, (x, m), {}), x[m])
    check(cpu.call(operator.getitem, (x.reshape(-1, 1), m), {}), x.reshape(-1, 1)[m])
    if dtype != "D":
        check(cpu.call(np.where, (m, x, y), {}), np.where(m, x, y))
        check(cpu.call(np.where, (m, x, 1), {}), np.where(m, x, 1))
        check(cpu.call(np.where, (m, 0.0, y.astype("f")), {}), np.where(m, 0.0, y.astype("f")))
    for value in (3, y[m]):
        ours, theirs = x.copy(), x.copy()
        assert cpu.call(operator.setitem, (ours, m, value), {}) is None
        theirs[m] = value
        check(ours, theirs)


def test_indices_and_their_errors(rng):
    n = 2 * selection.SHARED
    x, index = data(rng, 1000, "d"), rng.integers(-1000, 1000, n)
    check(cpu.call(operator.getitem, (x, index), {}), x[index])
    check(cpu.call(operator.getitem, (x.reshape(-1, 2), index // 2), {}), x.reshape(-1, 2)[index // 2])
    check(cpu.call(np.take, (x, index), {"axis": 0}), np.take(x, index, axis=0))
    index[[n // 2, n - 1]] = 1234, -4321
    with pytest.raises(IndexError, match="index 1234 is out of bounds for axis 0 with size 1000"):
        cpu.call(operator.getitem, (x, index), {})


@pytest.mark.parametrize("dtype", "hilfd")
@pytest.mark.parametrize("threads_used", [2, 3])
def test_sort(dtype, threads_used, rng):
    cpu.set_num_threads(threads_used)
    x = data(rng, 300_001, dtype)
    check(cpu.call(np.sort, (x,), {}), np.sort(x))
    check(cpu.call(np.sort, (x[:300_000].reshape(100, 3000),), {}), np.sort(x[:300_000].reshape(100, 3000)))


def test_sort_in_place(rng):
    x = data(rng, 300_000, "d")
    expected = np.sort(x)
    assert cpu.call(np.ndarray.sort, (x,), {}) is None
    check(x, expected)


def test_sort_of_nan_zeros_and_equal_numbers(rng):
    x = data(rng, 300_000, "d").round()  # many equal, zeros of both signs
    check(cpu.call(np.sort, (x,), {}), np.sort(x))
    x[rng.integers(0, x.size, 99)] = np.nan
    check(cpu.call(np.sort, (x,), {}), np.sort(x))
    x[:] = 1.0
    check(cpu.call(np.sort, (x,), {}), np.sort(x))


# ------------------------------------------------------------------ floating point errors
def test_a_warning_comes_once_and_names_the_users_line(rng):
    x = np.zeros(2 * N)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        cpu.call(np.divide, (x + 1, x), {})
    assert [str(w.message) for w in seen] == ["divide by zero encountered in divide"]
    assert seen[0].filename == __file__


def test_errstate_is_the_callers():
    zero, one = np.zeros(2 * N), np.ones(2 * N)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="invalid value encountered in divide"):
        cpu.call(np.divide, (zero, zero), {})
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        cpu.call(np.divide, (one, zero), {})
    seen = []
    with np.errstate(all="call", call=lambda kind, bits: seen.append((kind, bits))):
        cpu.call(np.divide, (one, zero), {})
        cpu.call(np.add.reduce, (one,), {})
        assert np.geterr()["over"] == "call"
    assert seen == [("divide by zero", 1)]


def test_overflow_in_a_sum_is_reported_as_numpys():
    x = np.full(3 * N, 3e38, "f")
    for function in (np.sum, lambda x: cpu.call(np.sum, (x,), {})):
        host_sum = pytest.raises(FloatingPointError, match="overflow encountered in reduce")
        with np.errstate(over="raise"), host_sum:
            function(np.tile(x, 2))


def test_a_warning_made_an_error_propagates():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="encountered in log"):
            cpu.call(np.log, (np.zeros(2 * N),), {})


# ------------------------------------------------------------------ memory
@pytest.fixture
def pool():
    before, limit = cpu.memory_reuse(True), memory.pool.limit
    gc.collect()
    cpu.release()
    yield memory.pool
    cpu.memory_reuse(before, limit=limit)


def address(a):
    return a.__array_interface__["data"][0]


def test_memory_comes_back_when_nobody_sees_it(pool):
    a = cpu.empty((N,), D)
    view, alias = a[::2], np.asarray(memoryview(a))
    at = address(a)
    assert cpu.owned(a) and not cpu.owned(view) and view.base is a
    del a
    b = cpu.empty((N,), D)
    assert address(b) != at
    del view
    assert address(cpu.empty((N,), D)) != at
    del alias
    again = cpu.empty((N // 2, 2), D, "F")
    assert address(again) == at and again.flags.f_contiguous


def test_idle_memory_is_bounded_and_given_back(pool):
    cpu.memory_reuse(limit=20 << 20)
    arrays = [cpu.empty((N,), D) for _ in range(5)]
    arrays.clear()
    assert 0 < cpu.statistics()["idle_bytes"] <= 20 << 20
    assert cpu.release() > 0
    assert cpu.statistics()["idle_bytes"] == 0
    cpu.memory_reuse(False)
    a = cpu.empty((N,), D)
    assert a.base is None
    with pytest.raises(ValueError, match="negative"):
        cpu.memory_reuse(limit=-1)


def test_memory_is_given_back_when_the_system_runs_short(pool, monkeypatch):
    cpu.memory_reuse(limit=20 << 20)
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    pool.next_look = 0.0
    a = cpu.empty((N,), D)
    del a
    assert cpu.statistics()["idle_bytes"] == 0


def test_a_failed_allocation_drops_the_idle_blocks_and_tries_again(pool, monkeypatch):
    del_me = cpu.empty((N,), D)
    del del_me
    real, calls = memory.Block, []

    def empty(*args):
        calls.append(args)
        if len(calls) == 1:
            raise MemoryError
        return real(*args)

    monkeypatch.setattr(memory, "Block", empty)
    kept = cpu.empty((2 * N,), D)
    monkeypatch.undo()
    assert len(calls) == 2 and kept.size and cpu.statistics()["idle_bytes"] == 0


def test_no_array_is_kept_alive_by_the_threads(pool, rng):
    x = data(rng, 2 * N, "d")
    for _ in range(5):
        cpu.call(np.exp, (x,), {})
    assert cpu.statistics()["idle_bytes"] <= 2 * x.nbytes + (1 << 20)


# ------------------------------------------------------------------ threads and processes
def test_callers_on_several_threads(rng):
    x = data(rng, 2 * N, "d")
    expected = np.tanh(x).tobytes()
    wrong = []

    def loop():
        for _ in range(5):
            if cpu.call(np.tanh, (x,), {}).tobytes() != expected:
                wrong.append(1)

    callers = [threading.Thread(target=loop) for _ in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong


def test_a_helper_that_started_before_the_caller_is_waited_for(monkeypatch):
    finish, done = threads.finish, []

    def late(job):
        started.wait(5)
        return finish(job)

    def work(i):
        started.set()
        np.sin(np.arange(1e6))
        done.append(i)

    monkeypatch.setattr(threads, "finish", late)
    for _ in range(5):
        done.clear()
        started = threading.Event()
        threads.team.patience = threads.Patience()
        threads.run(work, 2, "test")
        assert sorted(done) == [0, 1]


def test_the_failure_of_the_first_piece_is_raised():
    def work(i):
        if i >= 3:
            raise ValueError(i)

    with pytest.raises(ValueError, match="3"):
        threads.run(work, 100, "test")


def test_set_num_threads_refuses_zero():
    with pytest.raises(ValueError, match="at least 1"):
        cpu.set_num_threads(0)


PROGRAM = """
import os, sys
import numpy as np
from minnp.core import cpu as host
host.set_num_threads(2)
x = np.linspace(0, 1, 1 << 21)
keep = host.call(np.exp, (x,), {})
view = keep[::2]
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        again = host.call(np.exp, (x,), {})
        os._exit(0 if again.tobytes() == keep.tobytes() else 1)
    assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.parametrize(
    "mode", ["exit", pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"))]
)
def test_fork_and_interpreter_exit(mode):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, mode], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("op", "dtype"),
    [*itertools.product((operator.add, operator.truediv, operator.lt), "fdi"), (operator.pow, "d")],  # powers: threads
)
def test_medium_arrays_take_recycled_memory(op, dtype, rng, pool):
    x, y = data(rng, (1480, 1480), dtype), data(rng, (1480, 1480), dtype) + 5
    for a, b in [(x, y), (x, 2), (2.5, y), (x, y[0]), (x[:, :1], y), (x[1:-1], y[2:]), (x.T, y), (x, 1e300), (x, -1.0)]:
        ours = quiet(elementwise.operation(op), a, b)
        assert ours is NotImplemented or check(ours, quiet(op, a, b)) is None
    before = pool.new + pool.reused
    ours = quiet(elementwise.operation(op), x, y)
    done = dtype == "d"  # the others are too small to be worth it, as the results of a comparison are to be recycled
    assert (ours is not NotImplemented) == done
    assert pool.new + pool.reused - before == (done and op is not operator.lt)


# ------------------------------------------------------------------ through the namespace
def test_large_arrays_of_users_go_here(pool, rng):
    x = mnp.asarray(data(rng, 2 * N, "d"))
    a = np.asarray(x)
    before = cpu.statistics()["reused"] + cpu.statistics()["new"]
    y = 2 * x + x**2
    y += 1
    y[y > 3] = 0
    expected = 2 * a + a**2
    expected += 1
    expected[expected > 3] = 0
    check(np.asarray(y), expected)
    assert cpu.statistics()["reused"] + cpu.statistics()["new"] > before
    assert y.base is None and y[::2].base is y
    report = minnp.report()
    assert report.memory["reused"] + report.memory["new"] > before and "recycled memory" in str(report)
    check(np.asarray(mnp.where(x > 0, x, 0)), np.where(a > 0, a, 0))
    assert y.sum() == expected.sum() and y.mean() == expected.mean()


def test_the_caller_waits_for_a_helper_that_was_quicker_than_itself(monkeypatch):
    class Handover:
        """Gives a helper time to begin before the caller goes on."""

        def __init__(self, queue):
            self.queue, self.get = queue, queue.get

        def put(self, job):
            self.queue.put(job)
            time.sleep(0.05)

    monkeypatch.setattr(threads.team, "queue", Handover(threads.team.queue))
    threads.team.patience = threads.Patience()
    done = []
    threads.run(lambda i: (time.sleep(0.2 if i == 0 else 0), done.append(i)), 2, "sleep")
    assert sorted(done) == [0, 1]


@pytest.mark.long
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("n", [10, 300, 2000])
def test_extrema_of_every_size_are_quiet(name, n, rng):
    # NumPy 2.4 warns of a positional `out` of these, and in tests a warning is an error.
    x, y = rng.random((n, n)), rng.random((n, n))
    ours, theirs = getattr(mnp, name), getattr(np, name)
    assert np.array_equal(ours(mnp.array(x), mnp.array(y)), theirs(x, y))
    chain = minnp.jit(lambda x: ours(mnp.exp(x), 1.5) * 2)
    for _ in range(2):
        np.testing.assert_allclose(chain(mnp.array(x)), theirs(np.exp(x), 1.5) * 2, rtol=1e-14)


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i4"])
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_of_an_array_and_a_number_are_numpys_bits(name: str, kind: str) -> None:
    uf = getattr(np, name)
    values = np.array([1.5, -0.0, 0.0, -2.0, 3.0] if kind == "i4" else [1.5, -0.0, 0.0, np.nan, -np.inf, 3.0])
    for size in (100, 2048, 9001, 900_001):
        a = np.resize(values, size).astype(kind)
        for x in (a, a[::2], a[: size // 4 * 4].reshape(-1, 4).T) if size < 10_000 else (a,):
            for number in (0, -0.0, 2.5, np.nan, 1e300) if size < 10_000 else (0,):
                with np.errstate(all="ignore"):
                    wanted = uf(x, number)
                    found = elementwise.beside_rows(uf)(x, number), elementwise.binary(uf)(x, number)
                for got in found:
                    if got is not NotImplemented:
                        assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, x.shape, wanted.tobytes())


@pytest.mark.parametrize("op", elementwise.SIDE_BY_SIDE, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "shapes", [((4000, 10), (5, 1, 10)), ((10,), (3, 4000, 10)), ((2, 1, 1, 7), (2, 3, 2000, 7)), ((1, 24), (3000, 24))]
)
def test_short_rows_are_numpys_bits_side_by_side(op, shapes, rng):
    a, b = (data(rng, s, "f4") for s in shapes)
    got = elementwise.short_rows(op, a, b)
    assert got is not NotImplemented
    assert np.array_equal(cpu.combine(op, a, b), op(a, b)) and np.array_equal(got, op(a, b))
    assert got.shape == op(a, b).shape and got.flags.c_contiguous


def test_what_is_no_row_for_all_is_left_to_numpy(rng):
    a = data(rng, (4000, 10), "f4")
    for other in (a, a[:, :1], a[0].astype("f8"), data(rng, (3989, 1), "f4"), 2.0, a[::-1]):
        assert elementwise.short_rows(np.add, a, other) is NotImplemented
    assert elementwise.short_rows(np.add, data(rng, (3989, 10), "f4"), a[0]) is NotImplemented  # a prime number of rows
    with pytest.raises(ValueError, match="broadcast"):
        cpu.combine(np.add, a, a[:7])
