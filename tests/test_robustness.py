"""What a long-lived process needs: no growth over many calls, threads, fork, spawn, and a clean exit."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as onp
import pytest
from alone import run_alone

import minnp
import minnp.numpy as np

CALLS = int(os.environ.get("MINNP_SMALL_CALLS", "20000"))  # a long run takes 1000000
ROOT = Path(__file__).parent.parent
WITH_MXNET = pytest.param("mxnet", marks=pytest.mark.dealt("old", "python"))
WITH = ["minnp alone", *([WITH_MXNET] if importlib.util.find_spec("mxnet") else [])]


def small_calls(n: int) -> None:
    """n small calls of many kinds; whatever they leave behind would add up."""
    x, y, k, i = np.arange(10.0), np.ones(10), np.arange(10) > 4, np.array([1, 2])
    rng, old = np.random.default_rng(0), np.random.RandomState(0)
    grad = minnp.grad(lambda v: (np.tanh(v) * v).sum())
    calls = [
        lambda: x + y * 2.0 - x[2:4].sum(),
        lambda: np.concatenate([x, y])[::2].reshape(2, 5).T,
        lambda: np.where(k, x, y)[k],
        lambda: x.__setitem__(i, 3.0),
        lambda: rng.normal(size=3) + old.rand(3),
        lambda: rng.permutation(x),
        lambda: grad(x),
        lambda: np.frompyfunc(lambda a: a, 1, 1)(x),
        lambda: onp.frompyfunc(lambda a, b: a, 2, 1).outer(x[:2], x[:2]),
        lambda: np.vectorize(lambda a: a)(x),
        lambda: np.apply_along_axis(lambda a: a.sum(), 0, x),
        lambda: np.einsum("i,i", x, y),
        lambda: np.random.default_rng(1).choice(x),
        lambda: minnp.grad(lambda v: v.sum())(x),
        lambda: np.linalg.norm(x) + np.median(x),
        lambda: str(x[:2]) + repr(np.float32(1)),
    ]
    with onp.errstate(all="ignore"):
        for at in range(n):
            calls[at % len(calls)]()


@pytest.mark.long
def test_small_calls_leave_nothing_behind() -> None:
    small_calls(2000)
    gc.collect()
    before = len(gc.get_objects()), sys.getallocatedblocks()
    small_calls(CALLS)
    gc.collect()
    grown = len(gc.get_objects()) - before[0], sys.getallocatedblocks() - before[1]
    assert grown[0] < 200 and grown[1] < 1000, f"{CALLS} calls left {grown} objects and blocks"


# MXNet imports the two where they are installed, which takes as long as all else.
SETUP = {
    "minnp alone": "pass",
    "mxnet": "import sys; sys.modules |= {'sklearn': None, 'scipy.stats': None}; import mxnet",
}
PROGRAMS = {
    "exit while threads compute": """
        import threading
        x = np.ones(1 << 20)
        def work():
            while True:
                (np.exp(x * -1.0) + x).sum()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(5):
            np.tanh(x)
        print("done")
    """,
    "threads": """
        import threading
        import minnp
        wrong = []
        def work(seed):
            x = np.random.default_rng(seed).normal(size=300_000)
            want = x.asnumpy() * 2 + x.asnumpy()
            f = minnp.grad(lambda v: (v * v).sum())
            for _ in range(10):
                y = x * 2.0 + x
                if not (y.asnumpy() == want).all() or not (f(x[:5]).asnumpy() == 2 * x[:5].asnumpy()).all():
                    wrong.append(seed)
        team = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in team]
        [t.join() for t in team]
        print("done" if not wrong else wrong)
    """,
    "fork": """
        import os, minnp
        x = np.ones(1 << 21)
        total = (np.exp(x) * 2.0).sum()  # starts the threads
        child = os.fork()
        if child == 0:
            ok = (np.exp(x) * 2.0).sum() == total and minnp.grad(lambda v: (v**2).sum())(x[:3]).tolist() == [2, 2, 2]
            os._exit(0 if ok else 1)
        assert (np.exp(x) * 2.0).sum() == total
        print("done" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else "child failed")
    """,
    "fork while a thread computes": """
        import os, threading
        x = np.ones(1 << 21)
        stop = []
        def work():
            while not stop:
                np.exp(x) * 2.0
        t = threading.Thread(target=work)
        t.start()
        codes = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if (x * 2.0 + 1.0).sum() == 3 * x.size else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.append(1)
        t.join()
        print("done" if not any(codes) else codes)
    """,
    "spawn and fork pools": """
        import multiprocessing
        for way in ("spawn", "fork"):
            with multiprocessing.get_context(way).Pool(2) as pool:
                arrays = pool.map(np.sqrt, [np.arange(4.0), np.full(200_000, 4.0)])
            assert type(arrays[0]) is np.ndarray and arrays[0].tolist()[1] == 1.0 and (arrays[1] == 2).all()
        print("done")
    """,
    "arrays alive at exit": """
        import atexit, minnp
        class Holder:
            def __del__(self):
                self.x + 1
        holder = Holder()
        holder.x = np.ones(1 << 20) * 2.0
        leak = [np.exp(holder.x), holder]
        leak.append(leak)
        atexit.register(lambda: (holder.x * 2.0 + 1.0).sum())
        minnp.grad(lambda v: (v * v).sum())(holder.x)
        print("done")
    """,
}


TORCH_ABORTS = pytest.mark.host("a process that ends while daemon threads compute in torch aborts, without minnp too")
TORCH_HANGS = pytest.mark.host("a child forked while a thread computes in torch can hang in OpenMP, without minnp too")
MARKS = {"exit while threads compute": TORCH_ABORTS, "fork while a thread computes": TORCH_HANGS}


@pytest.mark.long
@pytest.mark.parametrize("what", [pytest.param(p, marks=MARKS.get(p, ())) for p in PROGRAMS])
@pytest.mark.parametrize("library", WITH)
def test_a_process_ends_well(what: str, library: str, tmp_path: Path) -> None:
    body = textwrap.indent(textwrap.dedent(PROGRAMS[what]), "    ")
    program = tmp_path / "program.py"
    program.write_text(f"import minnp, minnp.numpy as np\nif __name__ == '__main__':\n    {SETUP[library]}\n{body}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MINNP_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "done"), ended.stderr[-2000:]
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr, ended.stderr[-2000:]


def test_a_result_written_by_position_leaves_the_tape_what_it_saved() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        y = x * buffer
        np.dot(matrix, np.ones(2), buffer)
        np.cumsum(np.ones(2), 0, None, other)
        return (y + x * other).sum()

    buffer, other, matrix = np.array([3.0, 5.0]), np.array([7.0, 8.0]), np.ones((2, 2))
    assert minnp.grad(f)(np.ones(2)).tolist() == [4.0, 7.0]
    assert buffer.tolist() == [2.0, 2.0]


def test_a_python_without_the_interpreter_lock_is_refused_in_one_line():
    said = run_alone(
        "import sys; sys._is_gil_enabled = lambda: False\ntry: import minnp\nexcept ImportError as error: print(error)"
    )
    assert said.count("\n") == 1
    assert "free-threaded" in said and "PYTHON_GIL=1" in said
