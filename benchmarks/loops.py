"""Programs of loops under jit, beside NumPy, Numba and JAX.

    python -m benchmarks.loops [--small] [--gradients] [names]

The programs of benchmarks/programs/loops. Medians in milliseconds, each call on fresh arguments, and the first and
second call in seconds. Numba, if it is installed, gets the program as it is, in nopython mode, helpers too; JAX gets
the program in its own words (in_jax.py), in 64 bits. "best" is the faster of these two; what a peer cannot run is left
out, and so is what gives other numbers. Gradients: of the sum of a program's first result of floats with respect to
the first argument that it is differentiable in, beside the eager gradient and `jax.jit(jax.grad)`; the other arguments
are arguments, too, so that nobody computes with them beforehand.
"""

import copy
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
SECONDS, CALLS = 0.5, 15  # of calls of one program: no longer, and no more
PLAIN, OURS = functions(numpy), functions(minnp.numpy)


def ours(values):
    """Arrays of ours with copies of these values."""
    return [minnp.numpy.array(x) if isinstance(x, numpy.ndarray) else x for x in values]


def timed(f, make, checked=None):
    """(seconds of the first call, median seconds of later ones, seconds of the second), each on fresh arguments.

    minnp compiles well at the second call of what the first one was over soon."""
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


def gradients(names, size):
    print(f"{'gradient, ms':21}{'eager':>10}{'minnp':>10}{'first':>7}{'2nd':>6}{'jax':>10}{'first':>7}{'2nd':>6}")
    ratios = {"eager": [], "JAX": []}
    for name in names:
        case = CASES[name]
        if not case.wrt:
            continue
        arguments, _ = case.make(getattr(case, size))
        k = case.wrt[0]

        def loss(*given, f=OURS[name]):
            out = f(*[x.copy() if isinstance(x, minnp.numpy.ndarray) else x for x in given])
            return minnp.numpy.sum(first_of_floats(out))

        make = lambda arguments=arguments: ours(arguments)
        mine, eager = attempt(jit(grad(loss, k)), make), attempt(grad(loss, k), make)
        of_jax = "absent"
        if jax is not None:
            of_jax = "no reverse mode"
            if name not in in_jax.not_reverse:

                def theirs(*given, f=in_jax.PROGRAMS[name]):
                    out = f(*given)
                    return jax.numpy.sum(first_of_floats(out))

                static = [j for j, x in enumerate(arguments) if isinstance(x, int)]
                run = jax.jit(jax.grad(theirs, k), static_argnums=static)
                of_jax = attempt(
                    lambda *given, run=run: jax.block_until_ready(run(*given)),
                    lambda arguments=arguments: as_jax(arguments),
                )
        line = f"{name:21}{shown(eager)[:10]}{shown(mine)}{shown(of_jax)}"
        for peer, found in (("eager", eager), ("JAX", of_jax)):
            if not isinstance(found, str) and not isinstance(mine, str):
                ratios[peer].append(found[1] / mine[1])
                line += f"  {peer}{ratios[peer][-1]:8.2f}"
        print(line, flush=True)
    for peer, found in ratios.items():
        print(f"{len(found)} programs, geometric mean: {mean(found):.2f} times as fast as {peer}")


if __name__ == "__main__":
    options = {a for a in sys.argv[1:] if a.startswith("--")}
    chosen = [a for a in sys.argv[1:] if not a.startswith("--")] or list(CASES)
    run = gradients if "--gradients" in options else speed
    run(chosen, "small" if "--small" in options else "medium")
