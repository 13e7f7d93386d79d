"""Programs of loops under jit, beside NumPy and Numba.

    python -m benchmarks.loops [--large] [--gradients] [names]

Medians of seven calls in milliseconds, each on fresh arguments, and the first call in seconds. Numba is asked if it is
installed, and gets the program as it is, in nopython mode. Gradients: of the sum of what a program returns with respect
to its first array of floats, against the eager gradient.
"""

import importlib.util
import statistics
import sys
import time
from pathlib import Path

import numpy

import minnp
import minnp.numpy
from minnp import grad, jit

try:
    import numba
except ImportError:
    numba = None
CALLS = 7


def load(name, module):
    """The programs, with `np` for this module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "loop_programs.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    found.np = module
    return found


PLAIN, OURS = load("loop_programs_numpy", numpy), load("loop_programs_minnp", minnp.numpy)


def ours(values):
    return [minnp.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in values]


def timed(f, make, calls=CALLS):
    """(seconds of the first call, median of the others in seconds)."""
    start = time.perf_counter()
    f(*make())
    first, taken = time.perf_counter() - start, []
    for _ in range(calls):
        given = make()
        start = time.perf_counter()
        f(*given)
        taken.append(time.perf_counter() - start)
    return first, statistics.median(taken)


def numbas(name):
    """The program under Numba, with the functions that it calls; None where Numba refuses it."""
    module = load(f"loop_programs_numba_{name}", numpy)
    for helper in ("match", "find", "rate"):
        setattr(module, helper, numba.njit(getattr(module, helper)))
    return numba.njit(getattr(module, name))


def geometric_mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def speed(names, size):
    print(f"{'program':24}{'numpy':>10}{'minnp':>10}{'first':>8}{'numba':>10}{'first':>8}   numpy/minnp  numba/minnp")
    to_numpy, to_numba = [], []
    for name in names:
        n = PLAIN.SIZES[name][size]
        make = lambda name=name, n=n: getattr(PLAIN, f"make_{name}")(n)
        start = time.perf_counter()
        getattr(PLAIN, name)(*make())
        slow = time.perf_counter() - start
        _, plain = timed(getattr(PLAIN, name), make, 1 if slow > 0.5 else 5)
        first, mine = timed(jit(getattr(OURS, name)), lambda make=make: ours(make()))
        to_numpy.append(plain / mine)
        line = f"{name:24}{plain * 1e3:10.3f}{mine * 1e3:10.3f}{first:8.2f}"
        beside = ""
        if numba is not None:
            try:
                first, theirs = timed(numbas(name), make)
                to_numba.append(theirs / mine)
                line += f"{theirs * 1e3:10.3f}{first:8.2f}"
                beside = f"{theirs / mine:12.2f}"
            except Exception as error:
                line += f"{type(error).__name__[:18]:>18}"
        print(f"{line}{plain / mine:14.1f}{beside}", flush=True)
    print(f"geometric means: {geometric_mean(to_numpy):.1f} times NumPy, {geometric_mean(to_numba):.2f} times Numba")


def gradients(names, size):
    print(f"{'gradient of':24}{'eager':>10}{'minnp':>10}{'first':>8}   eager/minnp")
    ratios = []
    for name in names:
        values = ours(getattr(PLAIN, f"make_{name}")(PLAIN.SIZES[name][size]))
        places = [k for k, v in enumerate(values) if isinstance(v, numpy.ndarray) and v.dtype.kind == "f"]
        if not places:
            continue
        k = places[0]

        f = getattr(OURS, name)

        def loss(x, f=f, values=values, k=k):
            given = [v.copy() if isinstance(v, numpy.ndarray) else v for v in values]
            given[k] = x * 1.0
            out = f(*given)
            return minnp.numpy.sum(out[0] if type(out) is tuple else out)

        make = lambda values=values, k=k: (values[k],)
        try:
            _, slow = timed(grad(loss), make, 1)
            first, mine = timed(jit(grad(loss)), make)
        except (minnp.errors.NotDifferentiableError, TypeError) as error:
            print(f"{name:24}{error!s:.80}")
            continue
        ratios.append(slow / mine)
        print(f"{name:24}{slow * 1e3:10.3f}{mine * 1e3:10.3f}{first:8.2f}{slow / mine:14.1f}", flush=True)
    print(f"geometric mean: {geometric_mean(ratios):.1f} times eager")


if __name__ == "__main__":
    options = {a for a in sys.argv[1:] if a.startswith("--")}
    chosen = [a for a in sys.argv[1:] if not a.startswith("--")] or list(PLAIN.SIZES)
    run = gradients if "--gradients" in options else speed
    run(chosen, int("--large" in options))
