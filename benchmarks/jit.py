"""Compiled programs: minnp's jit beside NumPy, jax.jit and torch.compile on the CPU, alternating in one process.

    python benchmarks/jit.py [--cases chain9 ...] [--sizes 100000 ...] [--dtypes float32] [--peers numpy jax torch]
                             [--steps lstm ...] [--skip chains steps small] [--threads 1]

Medians in milliseconds with the spread of the middle half, then the minimum; the first call (capture and compilation)
is reported apart. `vs best peer` is the time of the faster of JAX and torch.compile over ours, `vs NumPy` NumPy's over
ours: above 1, minnp is faster; the second figure is the ratio of the minima, which a busy machine disturbs less.
Results are compared with NumPy's (steps: losses with one another) before anything is timed. A peer that is not
installed is left out. With one thread it is processor time that is measured: other work disturbs that less.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

THREADS = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else str(os.cpu_count())
if THREADS == "1":  # before NumPy is imported
    for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_variable, THREADS)
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy  # noqa: E402
from jit_steps import MAKERS, STEPS  # noqa: E402
from turns import take_turns  # noqa: E402

import minnp  # noqa: E402
import minnp.numpy  # noqa: E402
from minnp.core.llvm.engine import available  # noqa: E402

clock = time.process_time if THREADS == "1" else time.perf_counter


# ------------------------------------------------------------------ elementwise chains of 8 to 20 operations
def chain9(np: Any, x: Any, p: Any) -> Any:
    return np.exp(-x * x) * np.tanh(x) + np.log(p) * np.sqrt(p)


def chain8(np: Any, x: Any, p: Any) -> Any:
    return (x * p + 1.5) * (x - p) / (p + 2.0) - x * 0.25


def chain14(np: Any, x: Any, p: Any) -> Any:
    y = np.tanh(x * p + 1.0)
    y = np.sin(y) * np.cos(x) + y
    y = np.sqrt(np.abs(y) + 1.0) - np.exp(-p)
    return y * y / (1.0 + p)


def chain20(np: Any, x: Any, p: Any) -> Any:
    y = x
    for k in range(5):
        y = np.tanh(y * p + 0.1 * k) * 0.5 + x
    return y


def loss13(np: Any, x: Any, p: Any) -> Any:
    return np.mean((np.tanh(x * p + 1.0) - np.exp(-x * x)) ** 2 / (1.0 + np.abs(p)))


def black_scholes(np: Any, x: Any, p: Any) -> Any:
    """Call prices for spots 100 * p, strikes 100 + 10 * x; the normal distribution by a polynomial."""
    spot, strike, sigma, t, rate = 100.0 * p, 100.0 + 10.0 * x, 0.2, 0.5, 0.03
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma * sigma) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)

    def cdf(d: Any) -> Any:
        k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
        poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = np.exp(-0.5 * d * d) * 0.3989422804014327 * poly
        return np.where(d > 0, 1.0 - tail, tail)

    return spot * cdf(d1) - strike * math.exp(-rate * t) * cdf(d2)


def jacobi(np: Any, x: Any, p: Any) -> Any:
    """Ten Jacobi steps of Poisson's equation on a square, edges fixed by zero padding."""
    u = x
    for _ in range(10):
        inner = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - p[1:-1, 1:-1])
        u = np.pad(inner, 1)
    return u


CHAINS = [chain8, chain9, chain14, chain20, loss13]
CASES: dict[str, Callable] = {f.__name__: f for f in [*CHAINS, black_scholes, jacobi]}


# ------------------------------------------------------------------ the libraries
class TorchNumPy:
    """The names the cases use, on torch."""

    def __init__(self) -> None:
        import torch

        for name in ["exp", "tanh", "log", "sqrt", "sin", "cos", "abs", "where", "mean"]:
            setattr(self, name, getattr(torch, name))
        self.pad = lambda a, n: torch.nn.functional.pad(a, (n, n, n, n))


class Library:
    """How a library takes arrays, compiles a case, waits for a result, and gives it back."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "numpy":
            self.array, self.compile = numpy.asarray, lambda f: lambda *a: f(numpy, *a)
            self.wait = lambda y: y
        elif name == "minnp":
            self.array = minnp.numpy.asarray
            self.compile = lambda f: minnp.jit(lambda x, p: f(minnp.numpy, x, p))
            self.wait = lambda y: y
        elif name == "jax":
            import jax

            jax.config.update("jax_enable_x64", True)
            self.array = lambda a: jax.device_put(a)
            self.compile = lambda f: jax.jit(lambda x, p: f(jax.numpy, x, p))
            self.wait = lambda y: y.block_until_ready()
        else:
            import torch

            torch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 1000
            np = TorchNumPy()
            self.array = torch.from_numpy
            self.compile = lambda f: torch.compile(lambda x, p: f(np, x, p))
            self.wait = lambda y: y


def inputs(case: str, n: int, dtype: str) -> list[numpy.ndarray]:
    rng = numpy.random.default_rng(0)
    x = rng.standard_normal(n).astype(dtype)
    p = (0.8 + 0.4 * rng.random(n)).astype(dtype)
    if case == "jacobi":
        side = math.isqrt(n)
        return [x[: side * side].reshape(side, side), p[: side * side].reshape(side, side)]
    return [x, p]


class Times:
    """The times of one program on one library, in seconds; `first` is its first call's."""

    def __init__(self, first: float) -> None:
        self.first = first
        self.all: list[float] = []

    def __str__(self) -> str:
        low, middle, high = statistics.quantiles(self.all, n=4)
        least = min(self.all)
        spread = f"{1e3 * low:.4g}-{1e3 * high:.4g}, min {1e3 * least:.4g}"
        return f"{1e3 * middle:.4g} ({spread}; first {1e3 * self.first:.0f})"


def alternate(runs: dict[str, Callable], times: dict[str, Times], repeat: int, inner: int = 1) -> dict[str, Times]:
    """Time the runs in turns, `inner` calls at a time."""
    for name, taken in take_turns(runs, max(repeat, 2), inner, clock).items():
        times[name].all += taken
    return times


def first_call(run: Callable) -> tuple[Any, Times]:
    start = time.perf_counter()
    result = run()
    return result, Times(time.perf_counter() - start)


def measure(case: str, n: int, dtype: str, libraries: list[Library], repeat: int) -> dict[str, Times]:
    arrays = inputs(case, n, dtype)
    expected = CASES[case](numpy, *arrays)
    runs, times = {}, {}
    for lib in libraries:
        args = [lib.array(a) for a in arrays]
        f, wait = lib.compile(CASES[case]), lib.wait
        run = runs[lib.name] = lambda f=f, args=args, wait=wait: wait(f(*args))
        result, times[lib.name] = first_call(run)
        tolerance = 2e-4 if dtype == "float32" else 1e-9
        numpy.testing.assert_allclose(numpy.asarray(result), expected, rtol=tolerance, atol=tolerance)
        run()
    return alternate(runs, times, repeat)


def measure_step(name: str, makers: dict[str, Callable], repeat: int) -> dict[str, Times]:
    loss, data = STEPS[name]
    runs, times, losses = {}, {}, {}
    for lib, make in makers.items():
        runs[lib] = make(loss, *data(numpy.random.default_rng(0)))
        value, times[lib] = first_call(runs[lib])
        losses[lib] = [float(value), float(runs[lib]()), float(runs[lib]())]
    for lib, values in losses.items():
        numpy.testing.assert_allclose(values, losses["minnp"], rtol=1e-3, err_msg=lib)
    return alternate(runs, times, repeat)


def small_chain(libraries: list[str], repeat: int) -> dict[str, Times]:
    """sum(tanh(h * y)) five times over, 11 operations, with its gradient, on 10 elements."""

    def f(np: Any, h: Any, y: Any) -> Any:
        for _ in range(5):
            h = np.tanh(h * y)
        return np.sum(h)

    h, y = numpy.random.default_rng(0).random((2, 10)).astype("f")
    runs: dict[str, Callable] = {}
    ours = minnp.jit(minnp.grad(lambda h, y: f(minnp.numpy, h, y)))
    a, b = minnp.numpy.array(h), minnp.numpy.array(y)
    runs["minnp"] = lambda: ours(a, b)
    runs["numpy"] = lambda: f(numpy, h, y)
    if "jax" in libraries:
        import jax

        theirs = jax.jit(jax.grad(lambda h, y: f(jax.numpy, h, y)))
        c, d = jax.numpy.asarray(h), jax.numpy.asarray(y)
        runs["jax"] = lambda: theirs(c, d).block_until_ready()
    times = {name: first_call(run)[1] for name, run in runs.items()}
    for run in runs.values():
        run()
    return alternate(runs, times, 20 * repeat, inner=40)


def ratios(times: dict[str, Times], peers: Sequence[str]) -> tuple[float, float]:
    """The best peer's time over ours: of the medians, of the minima."""
    found = [times[p].all for p in peers if p in times]
    ours = times["minnp"].all
    return min(map(statistics.median, found)) / statistics.median(ours), min(map(min, found)) / min(ours)


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--peers", nargs="+", default=["numpy", "jax", "torch"])
    parser.add_argument("--steps", nargs="+", default=list(STEPS), help="steps whose names have one of these")
    parser.add_argument("--skip", nargs="+", default=[], choices=["chains", "steps", "small"])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    minnp.set_num_threads(options.threads)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(options.threads)
    names = [p for p in options.peers if importlib.util.find_spec(p)]
    peers = [p for p in ("jax", "torch") if p in names]
    missing = [p for p in options.peers if p not in names] + ["llvmlite"] * (not available())
    print(f"{minnp.num_threads()} threads of {os.cpu_count()}; minnp, {', '.join(names)}")
    print(
        f"not installed, so left out: {', '.join(missing)}" if missing else "all peers and the compiler are installed"
    )

    def report(label: str, times: dict[str, Times]) -> None:
        line = f"{label:<34}" + "  ".join(f"{k} {t}" for k, t in times.items())
        if any(p in times for p in peers):
            line += "  | vs best peer {:.2f}, {:.2f}".format(*ratios(times, peers))
        if "numpy" in times:
            line += "  | vs NumPy {:.2f}, {:.2f}".format(*ratios(times, ["numpy"]))
        print(line, flush=True)

    if "small" not in options.skip:
        report("small chain (NumPy: forward alone)", small_chain(names, options.repeat))
    if "steps" not in options.skip:
        makers = {name: MAKERS[name] for name in ["minnp", *peers]}
        for step in STEPS:
            if any(s in step for s in options.steps):
                report(step, measure_step(step, makers, options.repeat))
    if "chains" in options.skip:
        return
    libraries = [Library(name) for name in ["minnp", *names]]
    best, numpys = [], []
    for n in options.sizes:
        for dtype in options.dtypes:
            for case in options.cases:
                times = measure(case, n, dtype, libraries, options.repeat)
                report(f"{n:>9} {dtype} {case}", times)
                if CASES[case] in CHAINS and peers:
                    best.append(ratios(times, peers))
                if CASES[case] in CHAINS and "numpy" in times and n >= 10**7:
                    numpys.append(ratios(times, ["numpy"]))
    for what, found in (("the best peer", best), ("NumPy at 1e7", numpys)):
        if found:
            means = [geometric_mean(list(r)) for r in zip(*found)]
            print(f"chains: geometric mean vs {what} {means[0]:.2f} of medians, {means[1]:.2f} of minima")


if __name__ == "__main__":
    main()
