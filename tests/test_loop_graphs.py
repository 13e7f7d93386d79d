"""A compiled loop is one node of a captured graph, and prints as Python that gives the same."""

import math
import pickle
import warnings

import numpy
import pytest

import minnp.numpy as np
from minnp import errors, fx, grad, jit, vmap
from minnp.core.llvm import engine
from minnp.core.loops import printing
from minnp.core.loops.compiled import NOTHING, Again, Code
from minnp.core.loops.ir import Store, statements
from tests import loop_fuzzer
from tests.loop_fuzzer import Program, arguments, close, made, plain

pytestmark = [pytest.mark.host, pytest.mark.skipif(not engine.available(), reason="loops are compiled with llvmlite")]


def recurrence(a):
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1] * 2
    return a


def damped(a):
    b, s = a * 2, 0.0
    for i in range(1, a.shape[0]):
        if b[i] > 0:
            s += b[i] ** 2
        elif b[i] < -5:
            break
        b[i] = np.sin(b[i - 1]) + s
    return b, s


def executed(module, *given):
    """What the text of a module's code gives, run by itself."""
    names = {"np": np}
    exec(module.code, names)
    return names["forward"](module, *given)


def with_shapes(module, given):
    return fx.propagate_shapes(module, *[np.array(x) for x in given])


WAYS = {
    "module": lambda m, given: m,
    "code": lambda m, given: lambda *a: executed(m, *a),
    "interpreter": lambda m, given: fx.Interpreter(m).run,
    "transformer": lambda m, given: fx.Transformer(m).transform(),
    "pickle": lambda m, given: pickle.loads(pickle.dumps(m)),
    "jit": lambda m, given: jit(m),
    "captured again": lambda m, given: fx.capture(m, *given),
    "copy": lambda m, given: fx.GraphModule(m, m.graph.copy()),
    "dead_code": lambda m, given: fx.dead_code(m),
    "cse": lambda m, given: fx.common_subexpressions(m),
    "fold": lambda m, given: fx.fold_constants(m),
    "simplify": lambda m, given: fx.simplify(m),
    "optimize": lambda m, given: fx.optimize(m),
    "fuse": lambda m, given: fx.fuse_elementwise(m),
    "plan": lambda m, given: fx.plan_buffers(m),
    "shapes": with_shapes,
    "convolutions": lambda m, given: fx.fold_convolutions(m),
    "everything": lambda m, given: fx.plan_buffers(fx.fuse_elementwise(fx.optimize(m))),
}


def outcome(f, given):
    out = f(*given)
    return [plain(x) for x in out], [numpy.array(x) for x in given[:5]]


@pytest.mark.long
def test_graphs_of_random_loops():
    ran = 0
    for seed in range(8):
        if seed % 7 == 3:  # arguments that share memory, which no graph tells
            continue
        program = Program(seed)
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            f = made(program.source, np, f"<loop graph {seed}>")
            given = lambda seed=seed: arguments(seed, np)
            try:
                expected = outcome(made(program.source, numpy, f"<loop graph numpy {seed}>"), arguments(seed))
                fx.capture(f, *given())
            except (*loop_fuzzer.RAISED, errors.CaptureError):
                continue
            for way, made_of in WAYS.items():
                module = fx.capture(f, *given())
                found = outcome(made_of(module, given()[:5]), given()[:5])
                module.graph.lint()
                assert close(expected, found, 1e-5), (way, seed, program.source, module.code, expected, found)
        ran += "_of(" in module.code
    assert ran > 2


@pytest.mark.parametrize("transform", [lambda f: f, grad, lambda f: grad(lambda x: np.sum(grad(f)(x) ** 2)), vmap])
def test_loops_of_transformations(transform):
    def f(a):
        b, s = damped(a)
        return np.sum(b[:, None] * b) * 0.01 + s

    x = np.linspace(-0.4, 1, 12) * 0.1
    g = transform(f)
    given = x.reshape(2, 6) if transform is vmap else x
    module = fx.capture(g, given)
    assert "for i in range(1, a" in module.code
    for way in ("module", "code", "interpreter", "transformer", "pickle", "jit", "optimize"):
        assert numpy.allclose(WAYS[way](module, [given])(given), g(given)), way


def test_a_printed_loop():
    module = fx.capture(recurrence, np.ones(1000))
    assert [n.op for n in module.graph.nodes].count("call_function") == 3
    assert "        for i in range(1, a.shape[0]):\n            a[i] = a[i] + (a[i - 1] * 2.0)\n" in module.code
    x = np.ones(5)
    assert module(x) is x
    assert x.tolist() == [1, 3, 7, 15, 31]  # of another length than the captured one
    weights = np.arange(6.0)
    loss = lambda f: lambda x: np.sum(f(x * 1) * weights)
    assert numpy.allclose(grad(loss(module))(np.ones(6)), grad(loss(recurrence))(np.ones(6)))


def test_a_loop_of_other_types():
    module = fx.capture(recurrence, np.ones(100))
    with pytest.raises(TypeError, match=r":\d+ was captured for a of float64\[:\], not float32\[:\]"):
        module(np.ones(100, "f4"))
    with pytest.raises(TypeError, match=r"not int64\[:\]"):
        fx.Interpreter(module).run(np.arange(100))


def growing(a):
    n = 1
    for i in range(a.shape[0]):
        n = n * 3
        a[i] += 1
    return n + 1


def test_numbers_that_compiled_code_does_not_hold():
    captured = fx.capture(growing, np.ones(20))
    with pytest.raises(ValueError, match=r"for those of \(60,\) it has other numbers"):  # Python's, one by one
        captured(np.ones(60))
    module = pickle.loads(pickle.dumps(captured))
    assert module(np.ones(20)) == captured(np.ones(20)) == 3**20 + 1
    with pytest.raises(errors.CaptureError, match=r"minnp\.jit runs Python there"):
        module(np.ones(60))
    with pytest.raises(AssertionError, match="compiled for other numbers"):
        executed(module, np.ones(60))


def test_errors_of_a_loop_name_its_line():
    module = fx.capture(recurrence_from, np.ones(30), np.arange(30))
    with pytest.raises(IndexError, match="index 40 is out of bounds") as failed:
        module(np.ones(30), np.full(30, 40))
    assert "test_loop_graphs.py" in "".join(failed.value.__notes__)


def recurrence_from(a, which):
    for i in range(1, a.shape[0]):
        a[i] += a[which[i]]
    return a


def test_a_pickled_loop_runs_without_a_compiler(monkeypatch):
    saved, x = pickle.dumps(fx.capture(damped, np.linspace(-1, 1, 20))), np.linspace(-1, 1, 20)
    loss = lambda f: lambda x: np.sum(f(x)[0]) + f(x)[1]
    expected = damped(x), grad(loss(damped))(x)
    monkeypatch.setattr(engine, "available", lambda: False)
    module = pickle.loads(saved)
    assert close([plain(y) for y in expected[0]], [plain(y) for y in module(x)])
    assert numpy.allclose(expected[1], grad(loss(module))(x))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["", "gradient", "batch"])
def test_printed_programs_give_what_their_machine_code_gives(mode, monkeypatch):
    """Every program that is compiled for random loops, their gradients and batches."""
    compared = []
    made_before = Code.__init__

    def init(self, *args, **kwargs):
        made_before(self, *args, **kwargs)
        call, text = self.call, printing.as_python(self.program)

        def both(*values, donate=NOTHING):
            given = [v.copy("K") if isinstance(v, numpy.ndarray) else v for v in values]
            with warnings.catch_warnings(), numpy.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    printed = text(*given)
                except Exception as error:
                    printed = error
            try:
                out = call(*values, donate=donate)
            except Again:
                raise
            except Exception as error:
                assert (type(error), str(error)) == (type(printed), str(printed))
                raise
            if not isinstance(out, tuple):
                return out
            compared.append((self.program, out, printed))
            assert len(out) == len(printed)
            for x, y in zip(out, printed):
                assert type(x) is type(y), (x, y)
                same = x == y if isinstance(x, (str, type(None))) else numpy.allclose(x, y, 1e-6, 1e-9, equal_nan=True)
                assert same, (x, y, "\n".join(printing.text_of(self.program, "loop")))
            return out

        self.call = both

    monkeypatch.setattr(Code, "__init__", init)
    differs = {"gradient": loop_fuzzer.differs_in_gradient, "batch": loop_fuzzer.differs_in_batch}.get(
        mode, loop_fuzzer.differs
    )
    for seed in range(300, 306):
        try:
            differs(seed)
        finally:
            assert compared or seed < 304


def test_a_variable_may_be_called_tape():
    def f(tape):
        s = 1.0
        for i in range(1, tape.shape[0]):
            s = s * np.sin(tape[i]) + s * s * 0.1
            if s > 0.5:
                s = s * 0.3 * tape[i]
        return s

    x = np.linspace(0.1, 1, 300)
    module = fx.capture(grad(f), x)
    for g in (grad(jit(f)), module, lambda x: executed(module, x)):
        assert numpy.allclose(g(x), grad(f)(x))


def triangle(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(i):
            s += a[i] * a[j]
        if s > 3:
            s = s * 2 - 1
        else:
            continue
    return s


def left(a):
    s = 0.0
    for i in range(a.shape[0]):
        if a[i] > 100:
            break
        s += a[i]
    return s


def until(a):
    s = a[0]
    while s < 10:
        s = s * 2 + 1
    return s


def by_data(a):
    s = 0.0
    for i in range(int(a[0])):
        s += a[i] * 2
    return s


@pytest.mark.parametrize(
    ("f", "count"),
    [(recurrence, 14), (triangle, 28 * 2 + 8 * 2), (left, None), (until, None), (by_data, None)],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_floating_point_operations(f, count):
    graph = fx.capture(f, np.ones(8) * 3).graph
    assert fx.flops(graph) == count
    costs = [fx.cost(n) for n in graph.nodes if "loop" in n.name and n.op == "call_function"]
    assert costs[0].flops == count and costs[0].bytes > 0


def test_floating_point_operations_of_gradients():
    graph = fx.capture(grad(lambda a: triangle(a)), np.ones(8) * 3).graph
    assert fx.flops(graph) > 72


def smoothed(x, a):
    y, z = np.zeros(x.shape), np.zeros(x.shape)
    for j in range(1, len(x)):
        y[j] = a * x[j] + 0.5 * y[j - 1]
    for j in range(len(x) - 2, -1, -1):
        z[j] = y[j] + 0.5 * z[j + 1]
    return np.sum(y * 2 + z)


def counted(x, bins):
    total, count = np.zeros(bins), np.zeros(bins, dtype=np.int64)
    for v in x:
        at = int(v / 1.25 * bins)
        if at < bins:
            total[at] += v * v
            count[at] += 1
    return np.sum(total / np.maximum(count, 1))


def weighted(x, a):
    y, scale, last = np.zeros(x.shape), np.zeros(x.shape), 0.0
    for j in range(1, len(x)):
        scale[j] = a / (2 + scale[j - 1])
        y[j] = x[j] + 0.5 * y[j - 1]
    for j in range(len(x) - 1, -1, -1):
        last = y[j] - scale[j] * last
        y[j] = last
    return np.sum(y)


@pytest.mark.parametrize("program, stores", [(smoothed, 0), (counted, 1), (weighted, 1)])
def test_of_a_loop_only_what_somebody_reads_is_computed(program, stores):
    """The gradient of a linear recurrence reads no value of it, that of a mean the counts, and that of a sum with
    weights these: nobody asks for theirs."""
    x = np.array(numpy.random.default_rng(0).random(40))
    given = x, 7 if program is counted else 0.25
    compiled = jit(grad(program))
    for _ in range(3):
        numpy.testing.assert_allclose(compiled(*given), grad(program)(*given), rtol=1e-12)
    loops = [n.target.program for n in compiled.lower(*given).graph.nodes if getattr(n.target, "name", "") == "loop"]
    forward = [p for p in loops if not p.name.endswith("adjoint")]
    assert forward and sum(type(s) is Store for p in forward for s in statements(p.body)) == stores
    # places and branches are computed again, which is less than to keep them
    assert not any(i.like and i.ndim == 1 and "tape" in i.name for p in loops for i in p.inputs)
    x[3] = 1.5 if program is counted else np.nan
    numpy.testing.assert_allclose(compiled(*given), grad(program)(*given), rtol=1e-12)


def traced(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += np.tanh(a[i, i])
    return a + total


def checksum(data):
    crc = 0xFFFF
    for byte in data:
        crc ^= int(byte) << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc


@pytest.mark.parametrize(
    "program, given",
    [(traced, numpy.ones((4, 4))), (checksum, numpy.arange(9, dtype=numpy.uint8))],
    ids=["traced", "checksum"],
)
def test_a_loop_of_which_all_is_needed_is_compiled_once(program, given, monkeypatch):
    """Nobody reads the variable of the inner loop, which costs nothing to keep."""
    assemble, texts = engine.Machine.assemble, []

    def watched(self, text, optimise=0, **options):
        texts.extend([text] if optimise else [])  # else it is that of the first run
        return assemble(self, text, optimise, **options)

    monkeypatch.setattr(engine.Machine, "assemble", watched)
    compiled = jit(program)
    first, second = (compiled(np.array(given)) for _ in range(2))
    numpy.testing.assert_array_equal(first, second)
    assert sum("@body" in text for text in texts) == 1


def recurrent(w, turns):
    h = np.ones((3, w.shape[0]))
    for _ in range(turns):
        h = np.tanh(h @ w)
    return h.sum()


@pytest.mark.parametrize("transform", [lambda f: f, grad])
def test_a_few_products_of_large_matrices_are_steps_that_blas_computes(transform):
    """In a loop they took four times as long as NumPy's."""
    nodes = lambda size: fx.capture(transform(recurrent), np.eye(size), 20).graph.nodes
    inside = lambda size: [getattr(n.target, "name", "") for n in nodes(size)]
    small, large = inside(10), inside(100)
    assert "loop" in small and "matmul" not in small
    assert "loop" not in large and large.count("matmul") >= 20


def test_a_loop_that_multiplies_matrices_is_timed_beside_python():
    w = np.eye(70) * 0.5
    f, g = jit(recurrent), jit(grad(recurrent))
    for h in (f, g):
        h(w, 200)
        ((path,),) = h.paths.values()
        assert path.doubtful == "its loops, with operations on whole arrays,"
    for _ in range(20):
        assert close(f(w, 200), recurrent(w, 200), 1e-12)
        assert close(g(w, 200), grad(recurrent)(w, 200), 1e-12)


def test_the_sign_of_a_zero_that_python_reads_of_a_loop_is_looked_at_in_every_call():
    def program(x, y):
        last = 1.0
        for i in range(len(y)):
            last = float(y[i])
        return x * math.copysign(2.0, last)

    compiled, x = jit(program), np.ones(2)
    for zero in (0.0, 0.0, -0.0, 0.0, -0.0):
        y = np.array([1.0] * 19 + [zero])
        numpy.testing.assert_array_equal(compiled(x, y), program(x, y))


def traced(a, x):
    s = 0.0
    for i in range(a.shape[0]):
        s += np.tanh(a[i, i])
    return a * x + s


def scattered(a, x):
    s = 0.0
    for i in range(1, a.shape[0]):
        s += a[i, 3] * a[i - 1, 5] ** 2
    return np.sin(a) * x + s


def overwritten(a, x):
    b = a * x
    for i in range(1, a.shape[0]):
        b[i, 0] = b[i - 1, 0] * b[i, 1]
    return b + a * x


@pytest.mark.parametrize("program", [traced, scattered, overwritten])
@pytest.mark.parametrize("wrt", [0, 1, (0, 1)])
def test_a_loop_adds_to_the_cotangent_that_comes_from_elsewhere(program, wrt):
    f = lambda a, x: np.sum(program(a, x))
    compiled, before = jit(grad(f, wrt)), []
    for seed in range(3):
        given = numpy.random.default_rng(seed).random((2, 300, 300))
        found, want = compiled(*map(np.array, given)), grad(f, wrt)(*map(np.array, given))
        for g, w in zip(*((r,) if type(wrt) is int else r for r in (found, want)), strict=True):
            numpy.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
            assert not any(numpy.may_share_memory(g, other) for other in (*before, *given))
            before.append(g)
        for g in before:
            g += 1
