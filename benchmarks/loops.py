"""Programs of loops under jit, beside NumPy, Numba and JAX.

    python -m benchmarks.loops [--small] [--gradients | --memory] [names]

The programs of benchmarks/programs/loops. Medians in milliseconds, each call on fresh arguments, and the first and
second call in seconds. Numba, if it is installed, gets the program as it is, in nopython mode, helpers too; JAX gets
the program in its own words (in_jax.py), in 64 bits. "best" is the faster of these two; what a peer cannot run is left
out, and so is what gives other numbers. Gradients: of the sum of a program's first result of floats with respect to
the first argument that it is differentiable in, beside the eager gradient and `jax.jit(jax.grad)`; the other arguments
are arguments, too, so that nobody computes with them beforehand. Memory: the peak of the resident memory in a later
call of such a gradient above what was resident before it (VmHWM, reset through /proc/self/clear_refs: Linux only),
result included, the median of some calls. malloc is told to ask the kernel for every block of a page or more, so that
none lies in memory that an earlier call left resident: JAX then takes what XLA says of its own, temporaries and result.
The kernel's counters are off by up to 0.2 MB.
"""

import copy
import ctypes
import functools
import statistics
import sys
import time
import warnings

import numpy

import minnp
import minnp.numpy
from benchmarks.programs.loops import functions
from benchmarks.programs.loops.cases import CASES
from benchmarks.tape_memory import resident_peak
from minnp import grad, jit

try:
    import numba
except ImportError:
    numba = None
try:
    import jax

    from benchmarks.programs.loops import in_jax

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None
SECONDS, CALLS = 1.0, 3000  # of calls of one program: no longer, and no more
LEAST = 0.3  # MB of a peak: less is the counters' error
M_MMAP_THRESHOLD, PAGE = -3, 4096  # of mallopt
PLAIN, OURS = functions(numpy), functions(minnp.numpy)


def ours(values):
    """Arrays of ours with copies of these values."""
    return [minnp.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in values]


def timed(f, make, checked=None):
    """(seconds of the first call, median seconds of later ones, seconds of the second), each on fresh arguments.

    minnp compiles well at the second call, or a later one, of what the first one was over soon."""
    given = make()
    start = time.perf_counter()
    out = f(*given)
    first, taken = time.perf_counter() - start, []
    if checked is not None:
        checked(out)
    while len(taken) < 4 or (sum(taken[1:]) < SECONDS and len(taken) < CALLS):
        given = make()
        start = time.perf_counter()
        f(*given)
        taken.append(time.perf_counter() - start)
        if taken[0] > 3:
            break
    return first, statistics.median(taken[1:] or taken), taken[0]


def agree(got, expected, rtol):
    got, expected = (x if isinstance(x, tuple) else (x,) for x in (got, expected))
    for a, b in zip(got, expected, strict=True):
        if b is not None:
            numpy.testing.assert_allclose(numpy.asarray(a), b, rtol=rtol, atol=rtol)


def attempt(*given):
    """What timed(*given) returns, or the name of what it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return timed(*given)
        except Exception as error:
            return type(error).__name__


def shown(found):
    return f"{found:>23.23}" if isinstance(found, str) else f"{found[1] * 1e3:10.3f}{found[0]:7.2f}{found[2]:6.2f}"


def in_the_words_of_jax(name, arguments):
    f = in_jax.compiled(name, arguments)
    return lambda *given: jax.block_until_ready(f(*given))


def as_jax(values):
    return [jax.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in values]


def mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def speed(names, size):
    columns = "".join(f"{who:>10}{'first':>7}{'2nd':>6}" for who in ("minnp", "numba", "jax"))
    print(f"{'ms, first call in s':21}{'numpy':>10}{columns}")
    ratios = {"NumPy": [], "Numba": [], "JAX": [], "the best of Numba and JAX": []}
    for name in names:
        case = CASES[name]
        arguments, expected = case.make(getattr(case, size))
        checked = functools.partial(agree, expected=expected(), rtol=case.rtol)
        fresh = functools.partial(copy.deepcopy, arguments)
        start = time.perf_counter()
        PLAIN[name](*fresh())
        plain = time.perf_counter() - start
        if plain < 1:
            plain = timed(PLAIN[name], fresh)[1]
        compiled = jit(OURS[name])
        mine = timed(compiled, lambda arguments=arguments: ours(arguments), checked)
        of_numba = of_jax = "absent"
        if numba is not None:
            of_numba = attempt(functions(numpy, numba.njit)[name], fresh, checked)
        if jax is not None:
            make = lambda arguments=arguments: as_jax(arguments)
            of_jax = attempt(in_the_words_of_jax(name, arguments), make, checked)
        peers = [p[1] for p in (of_numba, of_jax) if not isinstance(p, str)]
        ratios["NumPy"].append(plain / mine[1])
        for peer, found in (("Numba", of_numba), ("JAX", of_jax)):
            ratios[peer] += [] if isinstance(found, str) else [found[1] / mine[1]]
        best = min(peers) / mine[1] if peers else float("nan")
        ratios["the best of Numba and JAX"] += [best] if peers else []
        line = f"{name:21}{plain * 1e3:10.3f}{shown(mine)}{shown(of_numba)}{shown(of_jax)}"
        print(f"{line}  numpy{plain / mine[1]:8.1f}  best{best:7.2f}", flush=True)
    for peer, found in ratios.items():
        print(f"{len(found)} programs, geometric mean: {mean(found):.2f} times as fast as {peer}")


def first_of_floats(out):
    return next(x for x in (out if isinstance(out, tuple) else (out,)) if x.dtype.kind == "f")


def gradient(name):
    """The gradient of a program in minnp, as it is."""

    def loss(*given):
        out = OURS[name](*[x.copy() if isinstance(x, minnp.numpy.ndarray) else x for x in given])
        return minnp.numpy.sum(first_of_floats(out))

    return grad(loss, CASES[name].wrt[0])


def gradient_in_jax(name, arguments):
    """The compiled gradient in JAX, or the reason that there is none."""
    if jax is None or name in in_jax.not_reverse:
        return "absent" if jax is None else "no reverse mode"
    loss = lambda *given: jax.numpy.sum(first_of_floats(in_jax.PROGRAMS[name](*given)))
    static = [j for j, x in enumerate(arguments) if isinstance(x, int)]
    run = jax.jit(jax.grad(loss, CASES[name].wrt[0]), static_argnums=static)
    return lambda *given: jax.block_until_ready(run(*given))


def differentiable(names, size):
    for name in names:
        if CASES[name].wrt:
            yield name, CASES[name].make(getattr(CASES[name], size))[0]


def gradients(names, size):
    print(f"{'gradient, ms':21}{'eager':>10}{'minnp':>10}{'first':>7}{'2nd':>6}{'jax':>10}{'first':>7}{'2nd':>6}")
    ratios = {"eager": [], "JAX": []}
    for name, arguments in differentiable(names, size):
        make = functools.partial(ours, arguments)
        mine, eager = attempt(jit(gradient(name)), make), attempt(gradient(name), make)
        of_jax = gradient_in_jax(name, arguments)
        of_jax = of_jax if isinstance(of_jax, str) else attempt(of_jax, functools.partial(as_jax, arguments))
        line = f"{name:21}{shown(eager)[:10]}{shown(mine)}{shown(of_jax)}"
        for peer, found in (("eager", eager), ("JAX", of_jax)):
            if not isinstance(found, str) and not isinstance(mine, str):
                ratios[peer].append(found[1] / mine[1])
                line += f"  {peer}{ratios[peer][-1]:8.2f}"
        print(line, flush=True)
    for peer, found in ratios.items():
        print(f"{len(found)} programs, geometric mean: {mean(found):.2f} times as fast as {peer}")


def peak(f, make):
    """Bytes of the peak of a call that is not among the first."""
    for _ in range(3):
        f(*make())
    found = []
    for _ in range(5):
        given = make()
        time.sleep(0.1)  # JAX's threads free what the last call took
        ctypes.CDLL(None).malloc_trim(0)
        found.append(resident_peak(lambda given=given: f(*given)))
    return statistics.median(found)


def memory(names, size):
    minnp.memory_reuse(False)
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, PAGE)
    print(f"{'gradient, peak in MB':21}{'minnp':>10}{'jax':>10}")
    ratios = []
    for name, arguments in differentiable(names, size):
        mine = peak(jit(gradient(name)), functools.partial(ours, arguments)) / 1e6
        of_jax = gradient_in_jax(name, arguments)
        if not isinstance(of_jax, str):
            try:
                of_jax = peak(of_jax, functools.partial(as_jax, arguments)) / 1e6
            except Exception as error:
                of_jax = type(error).__name__
        known = not isinstance(of_jax, str)
        print(f"{name:21}{mine:10.2f}{of_jax if known else of_jax[:20]:>{10 if known else 22}{'.2f' if known else ''}}")
        if known and min(mine, of_jax) > LEAST:
            ratios.append(mine / of_jax)
    print(f"{len(ratios)} programs of more than {LEAST} MB in both, geometric mean: {mean(ratios):.2f} of JAX's")


if __name__ == "__main__":
    options = {a for a in sys.argv[1:] if a.startswith("--")}
    chosen = [a for a in sys.argv[1:] if not a.startswith("--")] or list(CASES)
    run = gradients if "--gradients" in options else memory if "--memory" in options else speed
    run(chosen, "small" if "--small" in options else "medium")
