"""Large arrays on the host: minnp against NumPy, alternating in one process.

    python benchmarks/large_arrays.py [--sizes 10000 100000 ...] [--dtypes float32 float64] [--repeat 15]

Every case runs its NumPy form, its minnp form and its NumPy form again in a random order, on the same memory, in many
short windows; a ratio above 1 means that minnp is faster. Printed are the shortest times in milliseconds, their ratio,
with its quartiles over the rounds, and the same of NumPy against NumPy (A/A): what lies within that spread is noise,
and where it is far from 1 other programs had the cores. A window begins with a call that is not timed, for the results
of the two lie in different memory, which the other one's window took out of the cache; the first row begins when the
processor has been busy for a second.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy

import minnp
import minnp.numpy

CASES: dict[str, Callable] = {
    "a + b": lambda np, d: d.a + d.b,
    "a*x + b": lambda np, d: d.a * 1.5 + d.b,
    "exp": lambda np, d: np.exp(d.a),
    "tanh": lambda np, d: np.tanh(d.a),
    "sum": lambda np, d: np.sum(d.a),
    "mean(axis=0)": lambda np, d: np.mean(d.m, axis=0),
    "mean(axis=1)": lambda np, d: np.mean(d.m, axis=1),
    "8-op chain": lambda np, d: np.exp(-d.a * d.a) * np.tanh(d.a) + np.log(d.p) * np.sqrt(d.p),
    "where": lambda np, d: np.where(d.k, d.a, d.b),
    "where runs": lambda np, d: np.where(d.r, d.a, d.b),
    "a[mask]": lambda np, d: d.a[d.k],
    "a[mask] = 0": lambda np, d: d.c.__setitem__(d.k, 0),
    "sort": lambda np, d: np.sort(d.a),
    "a[index]": lambda np, d: d.a[d.i],
}


WINDOW = 1e-3  # seconds: short ones among many fall between what else the machine does


def data(n: int, dtype: str) -> SimpleNamespace:
    """The arguments of the cases: NumPy's arrays."""
    rng = numpy.random.default_rng(0)
    a, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    k, r, i = a > 0, numpy.arange(n) // 1000 % 2 == 0, rng.integers(0, n, n)
    return SimpleNamespace(a=a, b=b, c=a.copy(), p=abs(a) + 1, m=a.reshape(100, -1), k=k, r=r, i=i)


def seconds(f: Callable[[], Any], loops: int) -> float:
    f()
    start = time.perf_counter()
    for _ in range(loops):
        f()
    return (time.perf_counter() - start) / loops


def compare(case: Callable, theirs: SimpleNamespace, repeat: int) -> list[tuple[float, float, float]]:
    """Seconds per call of minnp, of NumPy and of NumPy again, for each round."""
    ours = SimpleNamespace(**{name: minnp.numpy.asarray(value) for name, value in vars(theirs).items()})
    base = lambda: case(numpy, theirs)
    runs = [lambda: case(minnp.numpy, ours), base, base]
    for run in runs:
        run()
    once = min(seconds(base, 1) for _ in range(3))
    loops = max(int(WINDOW / once), 1)
    rounds = max(min(max(repeat, int(0.1 / (once * loops))), int(6 / (once * loops))), 3)
    order, shuffled, taken = [0, 1, 2], random.Random(0), []
    for _ in range(rounds):
        shuffled.shuffle(order)
        times = {i: seconds(runs[i], loops) for i in order}
        taken.append((times[0], times[1], times[2]))
    return taken


def warm_up() -> None:
    """A second of work: the processor finds its clock, and what imports left to do is done."""
    a, end = numpy.ones(10**4), time.perf_counter() + 1
    while time.perf_counter() < end:
        numpy.exp(a)


def spread(ratios: list[float]) -> str:
    low, _, high = statistics.quantiles(ratios, n=4)
    return f"({low:.2f} - {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    print(f"NumPy {numpy.__version__}, {minnp.num_threads()} threads; shortest times in ms, ratio = NumPy / minnp")
    warm_up()
    for n in options.sizes:
        ratios = []
        for dtype in options.dtypes:
            arguments = data(n, dtype)
            for name in options.cases:
                gc.collect()
                rounds = compare(CASES[name], arguments, options.repeat)
                mine, base, again = (min(column) for column in zip(*rounds))
                ratios.append(min(base, again) / mine)
                paired = spread([(b + c) / 2 / a for a, b, c in rounds])
                control = spread([b / c for _, b, c in rounds])
                print(
                    f"{n:>9} {dtype} {name:<13} NumPy {1e3 * base:9.3f}  minnp {1e3 * mine:9.3f}  "
                    f"ratio {ratios[-1]:5.2f} {paired}  A/A {base / again:.2f} {control}",
                    flush=True,
                )
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{n:>9} geometric mean {mean:.2f}, least {min(ratios):.2f}\n", flush=True)
    print("memory:", minnp.core.cpu.statistics())


if __name__ == "__main__":
    main()
