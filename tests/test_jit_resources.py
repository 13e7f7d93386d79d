"""What jit takes of the process: sources, memory for LLVM, and what it reads of Python's own inside."""

from __future__ import annotations

import dis
import gc
import linecache
import os
import subprocess
import sys
import traceback
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import fx, grad, jit, nn
from minnp.core.graph.scalars import types_asked
from minnp.core.llvm import engine
from minnp.core.rows import state
from minnp.fx import tracer

ROOT = Path(__file__).parent.parent
compiled = pytest.mark.skipif(not engine.available(), reason="needs llvmlite, the extra minnp[compiler]")


def generated() -> int:
    gc.collect()
    return sum(file.startswith("<minnp") for file in linecache.cache)


@pytest.mark.long
def test_sources_of_compiled_functions_go_with_them() -> None:
    """Those of a thousand lambdas are gone; machine code of the same kinds is kept for the next ones."""
    x = onp.ones(4)
    before = generated()
    for k in range(1000):
        f = jit(lambda x, k=k: np.exp(-x * k) * x.sum(), compiler="numpy" if k % 10 else "auto")
        f(x)
        if k % 100 == 0:
            jit(grad(lambda x, k=k: (x * x * k).sum()))(x)
    assert generated() - before < 300
    del f
    assert generated() - before < 300


def test_functions_may_go_while_a_traceback_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stat = os.stat

    def collects(path: Any, **options: Any) -> Any:
        if path != "a file that is gone":
            return stat(path, **options)
        gc.collect()
        raise FileNotFoundError(path)

    linecache.cache["a file that is gone"] = (1, 1.0, ["1\n"], "a file that is gone")  # before the function's
    f = jit(lambda x: np.exp(-x) * x.sum(), compiler="numpy")
    f(onp.ones(4))
    f.itself = f
    del f
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", collects)
        linecache.checkcache()


def test_a_traceback_shows_the_source_of_compiled_code() -> None:
    f = jit(lambda x, y: np.linalg.inv(x) @ y, compiler="numpy")
    f(onp.eye(2), onp.ones(2))
    run = next(iter(f.paths.values()))[0].run
    gc.collect()
    try:
        run(onp.zeros((2, 2)), onp.ones(2))
    except onp.linalg.LinAlgError as error:
        lines = [
            entry.line for entry in traceback.extract_tb(error.__traceback__) if entry.filename.startswith("<minnp")
        ]
    assert lines
    assert "inv" in lines[0]


SHORT_OF_MEMORY = """
import os, resource, sys
import numpy as onp
import minnp.numpy as np
from minnp import jit
from minnp.core.graph import capture
from minnp.core.llvm import engine

capture.UNROLLED = 10_000
x = onp.linspace(0.1, 1.0, 100)

def f(x):
    y = x
    for k in range(400):
        y = np.cos(y * 0.5 + k) * x
    return y

jit(lambda x: x * 2 + 1)(x)  # LLVM is loaded
size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (size + (100 << 20),) * 2)
g = jit(f, compiler="llvm")  # else it has no time for that
for _ in range(3):
    onp.testing.assert_allclose(g(x), f(x))
assert "compiled" not in next(iter(g.paths.values()))[0].run.source
h = jit(lambda x: np.cos(x * 0.5) * x)  # which fits
onp.testing.assert_allclose(h(x), onp.cos(x * 0.5) * x)
assert "compiled" in next(iter(h.paths.values()))[0].run.source
"""


@pytest.mark.long
@compiled
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit is Linux's")
def test_code_for_which_llvm_has_no_memory_is_numpys() -> None:
    """LLVM ends the process where it gets none."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MINNP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("MINNP_BACKEND", None)
    run = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


PROGRAM = """
def helper(v):
    return v * 2.0

def program(x, f):
    t = 0.0
    for i in range(len(x)):
        t += helper(x[i]) + f(t)
        x[i] = t + {number}
    return t
"""


@compiled
@pytest.mark.host("about loops that are compiled, on NumPy's memory")
def test_machine_code_of_loops_goes_with_the_functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where a loop calls a function of its module, which refers to the function with the loop."""
    assemble, made = engine.Machine.assemble, []

    def watched(self: Any, text: str, optimise: int = 0) -> Any:
        code = assemble(self, text, optimise)
        made.append(weakref.ref(code))
        return code

    monkeypatch.setattr(engine.Machine, "assemble", watched)
    for number in range(4):
        text = PROGRAM.format(number=number)
        path = tmp_path / f"program_{number}.py"
        path.write_text(text)
        space: dict[str, Any] = {"np": np}
        exec(compile(text, path, "exec"), space)
        plain, x = onp.linspace(0, 1, 5), np.linspace(0, 1, 5)
        expected = space["program"](plain, space["helper"])
        assert jit(space["program"])(x, space["helper"]) == expected
        onp.testing.assert_array_equal(x, plain)
    assert len(made) >= 4
    del space
    for _ in range(3):  # functions, then what was kept for their code, then what that referred to
        gc.collect()
    assert not any(code() for code in made)


class Holder:
    def __init__(self) -> None:
        self.scale, self.w = 2.0, np.arange(3.0)


ROWS = np.zeros(2)


class Kept:
    def __init__(self, scale: Any) -> None:
        self.scale = scale


def test_nothing_is_missed_where_pythons_bytecode_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a Python later than those that jit was written for, it looks at every name in a function's code."""
    monkeypatch.setattr(state, "CODE_IS_KNOWN", False)
    held, outer = Holder(), 3.0

    def of_attributes(x: Any) -> Any:
        return x * held.w * held.scale + outer

    def of_types(x: Any, k: Any) -> Any:
        return x * k if type(k) is int else x - k

    def of_constants(x: Any) -> Any:
        table = np.arange(3.0)
        held.table = table
        return x * table

    f, g, h = jit(of_attributes), jit(of_types), jit(of_constants)
    for k in range(4):
        held.scale, outer = held.scale + 1, outer * 2
        held.w = held.w + 1
        held.w[0] = k
        x = np.ones(3) + k
        onp.testing.assert_array_equal(f(x), of_attributes(x))
        for number in (2, 2.0, k):
            onp.testing.assert_array_equal(g(x, number), of_types(x, number))
        onp.testing.assert_array_equal(h(x), of_constants(x))
        held.table += 1
    assert types_asked(of_types) >= {"x", "k"}
    kept = jit(lambda s: type(Kept(s).scale) is int)
    inner = jit(lambda s: (lambda: type(s) is int)())
    for s in (2, 2.5, 3):
        assert kept(s) == inner(s) == (type(s) is int)


def test_no_instruction_is_read_where_pythons_bytecode_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "CODE_IS_KNOWN", False)
    monkeypatch.setattr(tracer, "CODE_IS_KNOWN", False)
    monkeypatch.setattr(dis, "get_instructions", lambda *_, **__: iter(()))  # as if each had another name

    def of_draws(x: Any) -> Any:
        return x + onp.random.rand()

    def of_its_own(x: Any) -> Any:
        return x + np.random.rand() + ROWS.sum()

    def of_none(x: Any, mask: Any = None) -> Any:
        return x if mask is None else x * mask

    onp.random.seed(3)
    drawn = jit(of_draws)
    found = [float(drawn(np.zeros(()))) for _ in range(5)]
    onp.random.seed(3)
    assert found == [onp.random.rand() for _ in range(5)]
    drawn = jit(of_its_own)
    assert len({float(drawn(np.zeros(()))) for _ in range(5)}) == 5
    with pytest.raises(AssertionError, match="traced for a mask that is given"):
        fx.symbolic_trace(of_none)(np.ones(2))
    assert tracer.reads_mode(nn.Dropout(0.5), "test")


@pytest.mark.host("about graphs on NumPy's memory")
def test_a_copy_of_an_argument_that_is_only_read_takes_no_memory() -> None:
    @jit
    def read(x: Any) -> Any:
        a, total = x.copy(), 0.0
        for i in range(a.shape[0]):
            total += a[i, i] * a[0, i]
        return total + a.T[1:].max()

    x = onp.random.default_rng(0).random((400, 400))
    given = np.array(x)
    for _ in range(4):
        got = read(given)
    assert float(got) == pytest.approx(sum(x[i, i] * x[0, i] for i in range(400)) + x.T[1:].max())
    tracemalloc.start()
    try:
        read(given)
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 2 or not engine.available()
    finally:
        tracemalloc.stop()
    across = np.array(x).T  # is copied: reductions of other layouts round otherwise
    assert float(read(across)) == float(read(np.array(x.T.copy())))


@pytest.mark.host("about graphs on NumPy's memory")
@pytest.mark.parametrize("compiler", ["auto", "numpy"])
def test_copies_that_are_returned_or_written_to_are_the_functions_own(compiler: str) -> None:
    def written(x: Any) -> Any:
        a = x.copy()
        total = a.sum()
        a[1:3] = 7.0
        return total + a.sum()

    def looped(x: Any) -> Any:
        a = x.copy()
        for i in range(1, len(a)):
            a[i] += a[i - 1]
        return a

    def both(x: Any) -> Any:
        a = x.copy()
        x *= 2.0
        return (a * x).sum()

    n = 50_000
    shown = {"whole": lambda x: x.copy(), "part": lambda x: x.copy()[1:], "turned": lambda x: x.copy().reshape(2, -1).T}
    for name, f in {**shown, "written": written, "looped": looped, "both": both}.items():
        compiled_f = jit(f, compiler=compiler)
        for _ in range(3):
            x, expected = np.arange(float(n)), onp.arange(float(n))
            got, want = compiled_f(x), f(expected)
            assert onp.array_equal(got, want) and onp.array_equal(x, expected), name
            if name in shown:
                got[...] = -1.0
                assert onp.array_equal(x, expected), name


@pytest.mark.host("about graphs on NumPy's memory")
@compiled
def test_products_with_rows_that_are_all_the_same_multiply_one_row() -> None:
    """As the gradient of a sum of products does; JAX and torch multiply matrices of ones."""
    rng = onp.random.default_rng(1)
    a, b, c = rng.random((90, 100)), rng.random((100, 110)), rng.random((110, 95))
    one, others = onp.ones((90, 95)), [np.array(v) for v in (a, b, c)]
    expected = [one @ c.T @ b.T, a.T @ one @ c.T, b.T @ (a.T @ one)]
    losses = [lambda a, b, c: (a @ b @ c).sum(), lambda a, b, c: (a @ (b @ c) * 2.0).mean() * (90 * 95 / 2)]
    for k, f in enumerate(losses * 3):
        g = jit(grad(f, k % 3))
        for _ in range(3):
            got = g(*others)
        onp.testing.assert_allclose(got, expected[k % 3], rtol=1e-12)
        got[0, 0] = -1.0  # it is the caller's
        onp.testing.assert_allclose(g(*others), expected[k % 3], rtol=1e-12)
        assert "repeated" in next(iter(g.paths.values()))[0].run.source
    b[:, 3] = onp.nan
    assert onp.isnan(jit(grad(lambda a, b: (a @ b).sum()))(others[0], np.array(b))).all()
    ours = np.array(onp.ones((90, 90)))  # somebody may write to it
    read = jit(lambda a: ours @ a)
    onp.testing.assert_allclose(read(others[0]), onp.ones((90, 90)) @ a)
    ours[0, 0] = 5.0
    onp.testing.assert_allclose(read(others[0]), onp.asarray(ours) @ a)


@pytest.mark.host("about graphs on NumPy's memory")
@compiled
def test_large_results_take_the_place_of_arrays_that_nobody_reads_any_more() -> None:
    def own(a: Any) -> Any:
        b = a.copy()
        for i in range(len(b)):
            b[i, i] = 1.0
        return b

    def traced(a: Any) -> Any:
        total = 0.0
        for i in range(len(a)):
            total += np.tanh(a[i, i])
        return (a + total).sum()

    functions = {
        "turned": lambda a: own(a) + own(a).T,
        "itself": lambda a: (lambda b: b + b.T)(own(a)),
        "across": lambda a: (lambda b: b - b[::-1])(own(a)),
        "returned": lambda a: (lambda b: (b, a - b))(own(a)),
        "read later": lambda a: (lambda b: (a - b, b[0] * 2.0))(own(a)),
        "of an argument": lambda a: a - a.T,
    }
    x = onp.random.default_rng(2).random((800, 800))  # of 5 MB
    for name, f in functions.items():
        g, given = jit(f), np.array(x)
        for _ in range(3):
            got, want = g(given), f(x)
            pairs = zip(got, want, strict=True) if type(got) is tuple else [(got, want)]
            assert all(onp.array_equal(a, b) for a, b in pairs), name
            assert onp.array_equal(given, x), name
    g, given = jit(grad(traced)), np.array(x)
    slope = onp.ones_like(x) + onp.diag(x.size * (1 - onp.tanh(x.diagonal()) ** 2))
    for _ in range(3):
        onp.testing.assert_allclose(g(given), slope)
    tracemalloc.start()
    try:
        got = g(given)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * x.nbytes
    finally:
        tracemalloc.stop()


COLLECTED = """
import gc
import minnp.numpy as np
from minnp import jit
from minnp.core.loops import compiled

compiled.TRIED = compiled.RUNS = 0  # the second call is of code that is compiled well

def product(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i - 1]
    return total

for f in (product, lambda x: np.sum(np.sin(x) * x + x**2)):
    for _ in range(5):
        g = jit(f)
        g.itself = g
        for _ in range(4):
            g(np.ones(50))
        del g
        gc.collect()
"""
READ_ANEW = """
import minnp.numpy as np
from minnp import checkpoint, grad

def f(a):
    a *= 1.5
    for _ in range(2):
        a = a + checkpoint(lambda a, b: np.sin(a * b))(a, a[::-1])
    return a

loss = lambda x: (checkpoint(f)(x * 1.0) ** 2).sum()
x, e = np.arange(1.0, 4), np.array([1e-6, 0, 0])
assert abs(grad(loss)(x)[0] - (loss(x + e) - loss(x - e)) / 2e-6) < 1e-2
"""


@pytest.mark.long
@pytest.mark.parametrize("text", [COLLECTED, READ_ANEW], ids=["collected", "read anew"])
def test_nothing_is_read_that_was_freed(text, tmp_path):
    """In memory that reads otherwise once it was freed (MALLOC_PERTURB_ of glibc)."""
    program = tmp_path / "program.py"
    program.write_text(text)
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
