"""Every program with NumPy and with minnp: are the results the same, and what does each take?

    python -m benchmarks.programs.compare [name ...] [--repeat 5] [--scale 1.0]

Runs alternate in one process. Results must agree in type, dtype, shape and every value; the ratio is the median time
with minnp over the median time with NumPy (below 1: minnp is faster).
"""

from __future__ import annotations

import argparse
import importlib
import math
import pathlib
import statistics
import time
from typing import Any

import numpy

NAMES = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*.py") if p.stem not in ("__init__", "compare"))


def program(name: str) -> Any:
    return importlib.import_module(f"{__package__}.{name}")


def difference(ours: Any, theirs: Any, ulps: float = 0, where: str = "result") -> str | None:
    """The first place where minnp's result is not NumPy's, or None.

    ulps   units in the last place (of the largest number of an array, or of 1) that floating-point numbers may be off
    """
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or list(ours) != list(theirs):
            return f"{where}: {type(ours).__name__} instead of {type(theirs).__name__}, or of other names"
        found = (difference(ours[name], value, ulps, f"{where}[{name!r}]") for name, value in theirs.items())
        return next((d for d in found if d), None)
    if isinstance(theirs, (tuple, list)):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return f"{where}: {type(ours).__name__} instead of {type(theirs).__name__}, or of another length"
        found = (difference(a, b, ulps, f"{where}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs)))
        return next((d for d in found if d), None)
    if theirs is None or isinstance(theirs, str):
        return None if ours == theirs else f"{where}: {ours!r} instead of {theirs!r}"
    is_array = isinstance(theirs, numpy.ndarray)
    a, b = numpy.asarray(ours), numpy.asarray(theirs)
    if is_array is (isinstance(ours, (numpy.generic, int, float, bool, complex))):
        return f"{where}: {type(ours).__name__} instead of {type(theirs).__name__}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{where}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if not numpy.array_equal(a, b, equal_nan=b.dtype.kind in "fc"):
        limit = ulps * numpy.finfo(b.dtype).eps * max(1.0, numpy.abs(b).max()) if b.dtype.kind in "fc" else 0
        if not numpy.abs(a - b).max() <= limit:
            return f"{where}: values differ, the most by {numpy.abs(a - b).max()}"
    return None


def seconds(run: Any, np: Any, size: int) -> float:
    start = time.perf_counter()
    run(np, size)
    return time.perf_counter() - start


def main() -> None:
    import minnp.numpy

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on every program's moderate size")
    options = parser.parse_args()
    ratios = []
    print(f"NumPy {numpy.__version__}; seconds are medians of {options.repeat} alternating runs")
    for name in options.names:
        p = program(name)
        size = max(int(p.MODERATE * options.scale), p.SMALL)
        wrong = difference(p.run(minnp.numpy, size), p.run(numpy, size))
        pairs = [(seconds(p.run, minnp.numpy, size), seconds(p.run, numpy, size)) for _ in range(options.repeat)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs))
        ratios.append(ours / theirs)
        print(
            f"{name:<20} NumPy {theirs:8.4f}  minnp {ours:8.4f}  ratio {ratios[-1]:5.2f}  {wrong or 'same'}", flush=True
        )
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
