"""Compiled programs: minnp's jit beside NumPy, jax.jit and torch.compile on the CPU, alternating in one process.

    python benchmarks/jit.py [--cases chain9 ...] [--sizes 100000 ...] [--dtypes float32] [--peers numpy jax torch]

Medians in milliseconds; the first call (capture and compilation) is reported apart. `vs best peer` is the time of the
faster of JAX and torch.compile over ours, `vs NumPy` NumPy's over ours: above 1, minnp is faster. Results are compared
with NumPy's before anything is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import minnp
import minnp.numpy


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


def measure(case: str, n: int, dtype: str, libraries: list[Library], repeat: int) -> dict[str, tuple[float, float]]:
    """Library -> (median seconds per call, seconds of the first call)."""
    arrays = inputs(case, n, dtype)
    expected = CASES[case](numpy, *arrays)
    runs, first = {}, {}
    for lib in libraries:
        args = [lib.array(a) for a in arrays]
        f, wait = lib.compile(CASES[case]), lib.wait
        run = runs[lib.name] = lambda f=f, args=args, wait=wait: wait(f(*args))
        start = time.perf_counter()
        result = run()
        first[lib.name] = time.perf_counter() - start
        tolerance = 2e-4 if dtype == "float32" else 1e-9
        numpy.testing.assert_allclose(numpy.asarray(result), expected, rtol=tolerance, atol=tolerance)
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: (statistics.median(t), first[name]) for name, t in times.items()}


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--peers", nargs="+", default=["numpy", "jax", "torch"])
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    names = [p for p in options.peers if importlib.util.find_spec(p)]
    libraries = [Library(name) for name in ["minnp", *names]]
    print(f"{minnp.num_threads()} threads of {os.cpu_count()}; " + ", ".join(lib.name for lib in libraries))
    peer_ratios, numpy_ratios = [], []
    for n in options.sizes:
        for dtype in options.dtypes:
            for case in options.cases:
                times = measure(case, n, dtype, libraries, options.repeat)
                ours = times["minnp"][0]
                peers = [times[p][0] for p in ("jax", "torch") if p in times]
                line = f"{n:>9} {dtype} {case:<13} "
                line += "  ".join(f"{k} {1e3 * t:8.3f} (first {1e3 * f:.0f})" for k, (t, f) in times.items())
                if peers:
                    line += f"  vs best peer {min(peers) / ours:5.2f}"
                    peer_ratios += [min(peers) / ours] if CASES[case] in CHAINS else []
                if "numpy" in times:
                    line += f"  vs NumPy {times['numpy'][0] / ours:5.2f}"
                    numpy_ratios += [times["numpy"][0] / ours] if CASES[case] in CHAINS and n >= 10**7 else []
                print(line, flush=True)
    print(f"chains: geometric mean vs best peer {geometric_mean(peer_ratios):.2f}, ", end="")
    print(f"vs NumPy at 1e7 {geometric_mean(numpy_ratios):.2f}")


if __name__ == "__main__":
    main()
