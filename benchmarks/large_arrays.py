"""Large arrays on the host: minnp against NumPy, alternating in one process.

    python benchmarks/large_arrays.py [--sizes 10000 100000 ...] [--dtypes float32 float64] [--repeat 15]

Every case runs its NumPy form and its minnp form in turn; a ratio above 1 means that minnp is faster. Printed are the
medians in milliseconds, the ratio of the medians, and the spread: the ratio's quartiles over the paired runs.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable
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


class Data:
    """The arguments of the cases, as arrays of one library."""

    def __init__(self, np: Any, n: int, dtype: str) -> None:
        rng = numpy.random.default_rng(0)
        a, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
        self.a, self.b, self.c, self.p = (np.asarray(v) for v in (a, b, a.copy(), abs(a) + 1))
        self.m = self.a.reshape(100, -1)
        self.k, self.r = np.asarray(a > 0), np.asarray(numpy.arange(n) // 1000 % 2 == 0)
        self.i = np.asarray(rng.integers(0, n, n))


def seconds(f: Callable[[], Any], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        f()
    return (time.perf_counter() - start) / loops


def compare(case: Callable, ours: Data, theirs: Data, repeat: int) -> tuple[list[float], list[float]]:
    """Paired seconds per call of minnp and of NumPy."""
    run = lambda: case(minnp.numpy, ours)
    base = lambda: case(numpy, theirs)
    run()
    base()
    once = seconds(base, 1)
    loops = max(int(2e-3 / once), 1)
    repeat = max(min(repeat, int(6 / (once * loops))), 3)
    pairs = [(seconds(run, loops), seconds(base, loops)) for _ in range(repeat)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    print(f"NumPy {numpy.__version__}, {minnp.num_threads()} threads; medians in ms, ratio = NumPy / minnp")
    for n in options.sizes:
        ratios = []
        for dtype in options.dtypes:
            ours, theirs = Data(minnp.numpy, n, dtype), Data(numpy, n, dtype)
            for name in options.cases:
                gc.collect()
                mine, base = compare(CASES[name], ours, theirs, options.repeat)
                ratio = statistics.median(base) / statistics.median(mine)
                paired = sorted(b / a for a, b in zip(mine, base))
                low, high = paired[len(paired) // 4], paired[3 * len(paired) // 4]
                ratios.append(ratio)
                print(
                    f"{n:>9} {dtype} {name:<13} NumPy {1e3 * statistics.median(base):9.3f}  "
                    f"minnp {1e3 * statistics.median(mine):9.3f}  ratio {ratio:5.2f}  ({low:.2f} - {high:.2f})",
                    flush=True,
                )
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{n:>9} geometric mean {mean:.2f}, least {min(ratios):.2f}\n", flush=True)
    print("memory:", minnp.core.host.statistics())


if __name__ == "__main__":
    main()
