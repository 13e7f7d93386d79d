"""Gradients beside autograd, torch and JAX (eager and jit): overhead, throughput, and the memory of the tape.

    python benchmarks/gradients.py [--cases chain ...] [--peers torch ...] [--rounds 15] [--threads 2] [--policy auto]

Forward and gradient together, float32, the contestants in turn within a round of one process. Printed are medians over
rounds with their 10th and 90th percentiles, and the median and the same percentiles of the ratios taken round by round:
minnp's time over the peer's, so below 1 minnp is faster. With one thread the clock is the process's CPU time, which
other programs on the machine do not disturb; with more it is the wall's. A peer that is not installed is left out, and
the first lines say so; gradients of all contestants are compared before anything is timed.

The memory of the tape is measured by tape_memory.py, which the case `memory` runs.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

THREADS = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "2"
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is imported
    os.environ.setdefault(_variable, THREADS)
if THREADS == "1":
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as onp  # noqa: E402
from turns import take_turns  # noqa: E402

import minnp  # noqa: E402
import minnp.numpy as np  # noqa: E402
from minnp import npx  # noqa: E402
from minnp.scipy.special import logsumexp  # noqa: E402

RNG = onp.random.default_rng(0)


def draw(*shape: int, scale: float = 1.0) -> onp.ndarray:
    return (RNG.standard_normal(shape) * scale).astype("f4")


class Neural:
    """What a library calls its neural functions; the rest of its namespace is NumPy's."""

    def __init__(self, xp: Any, relu: Callable, log_softmax: Callable, logsumexp: Callable) -> None:
        self.xp, self.relu, self.log_softmax, self.logsumexp = xp, relu, log_softmax, logsumexp

    def __getattr__(self, name: str) -> Any:
        return getattr(self.xp, name)


# ------------------------------------------------------------------ the programs, written once
def chain(xp: Any, h: Any, y: Any) -> Any:
    """Eleven operations on ten elements."""
    for _ in range(5):
        h = xp.tanh(h * y)
    return xp.sum(h)


def rnn(xp: Any, w_x: Any, w_h: Any, b: Any, x: Any, h: Any) -> Any:
    for t in range(len(x)):
        h = xp.tanh(x[t] @ w_x + h @ w_h + b)
    return xp.sum(h * h)


def rnn_by_hand(w_x: Any, w_h: Any, b: Any, x: Any, h: Any) -> tuple:
    """The textbook's forward and backward in plain NumPy."""
    hs = [h]
    for t in range(len(x)):
        hs.append(onp.tanh(x[t] @ w_x + hs[-1] @ w_h + b))
    gx, gh, gb = onp.zeros_like(w_x), onp.zeros_like(w_h), onp.zeros_like(b)
    d = 2 * hs[-1]
    for t in range(len(x) - 1, -1, -1):
        d = d * (1 - hs[t + 1] * hs[t + 1])
        gx += x[t].T @ d
        gh += hs[t].T @ d
        gb += d.sum(axis=0)
        d = d @ w_h.T
    return gx, gh, gb


def mlp(xp: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, targets: Any) -> Any:
    h = xp.relu(x @ w1 + b1)
    h = xp.relu(h @ w2 + b2)
    return -xp.sum(targets * xp.log_softmax(h @ w3 + b3)) / len(x)


def lstm(xp: Any, w_x: Any, w_h: Any, b: Any, x: Any, h: Any, c: Any) -> Any:
    """Where a library has no LSTM of its own."""
    n, total = h.shape[1], 0.0
    for t in range(len(x)):
        z = x[t] @ w_x.T + h @ w_h.T + b
        i, f = 0.5 + 0.5 * xp.tanh(0.5 * z[:, :n]), 0.5 + 0.5 * xp.tanh(0.5 * z[:, n : 2 * n])
        g, o = xp.tanh(z[:, 2 * n : 3 * n]), 0.5 + 0.5 * xp.tanh(0.5 * z[:, 3 * n :])
        c = f * c + i * g
        h = o * xp.tanh(c)
        total = total + xp.sum(h)
    return total


def mixture(xp: Any, logits: Any, means: Any, factors: Any, x: Any) -> Any:
    """Log-likelihood of a Gaussian mixture; covariances are factors @ factors.T + 1/2."""
    d = means.shape[1]
    covariance = factors @ xp.swapaxes(factors, 1, 2) + 0.5 * xp.asarray(onp.eye(d, dtype="f4"))
    whiten = xp.linalg.cholesky(xp.linalg.inv(covariance))
    z = (x - means[:, None, :]) @ whiten
    log_det = xp.linalg.slogdet(covariance)[1]
    each = xp.log_softmax(logits) - 0.5 * log_det - 0.5 * xp.sum(z * z, 2).T
    return xp.sum(xp.logsumexp(each))


def ode(xp: Any, k: Any, angle: Any, speed: Any) -> Any:
    """Ten damped pendulums, a thousand Euler steps."""
    for _ in range(1000):
        angle, speed = angle + 0.01 * speed, speed - 0.01 * (k * xp.sin(angle) + 0.1 * speed)
    return xp.sum(angle * angle)


def cases() -> dict[str, tuple]:
    """name -> (function, arguments to differentiate, other arguments)."""
    eye = onp.eye(10, dtype="f4")
    sizes = [784, 512, 512, 10]
    weights = [w for a, b in itertools.pairwise(sizes) for w in (draw(a, b, scale=a**-0.5), draw(b, scale=0.1))]
    return {
        "chain": (chain, [onp.linspace(0.1, 1, 10, dtype="f4")], [onp.linspace(1, 2, 10, dtype="f4")]),
        "rnn": (rnn, [draw(3, 5), draw(5, 5, scale=0.4), draw(5)], [draw(50, 1, 3), onp.zeros((1, 5), "f4")]),
        "mlp": (mlp, weights, [draw(128, 784), eye[RNG.integers(0, 10, 128)]]),
        "lstm": (
            lstm,
            [draw(1024, 128, scale=0.1), draw(1024, 256, scale=0.1), draw(1024, scale=0.1)],
            [draw(30, 64, 128), onp.zeros((64, 256), "f4"), onp.zeros((64, 256), "f4")],
        ),
        "gmm": (mixture, [draw(20), draw(20, 10), draw(20, 10, 10, scale=0.3)], [draw(10000, 10)]),
        "ode": (ode, [draw(10) + 2], [draw(10), onp.zeros(10, "f4")]),
    }


TARGETS = {
    "chain": "at most 0.4 x torch and 0.25 x autograd",
    "rnn": "at most 4 x by hand, faster than torch and autograd",
}
TITLES = {
    "chain": "gradient of the 11-operation chain on 10 elements",
    "rnn": "RNN, 50 steps, 3 inputs, 5 hidden units",
    "mlp": "MLP 784-512-512-10, batch 128",
    "lstm": "LSTM, 30 steps, batch 64, 128 to 256",
    "gmm": "Gaussian mixture, N=10000, K=20, D=10, full covariances",
    "ode": "Euler, 1000 steps, 10 pendulums",
}


# ------------------------------------------------------------------ contestants: (function, wanted, given) -> a call
def ours(name: str, f: Callable, wanted: list, given: list) -> Callable[[], list]:
    library = Neural(np, npx.relu, npx.log_softmax, lambda a: logsumexp(a, axis=-1))
    call = lambda *a: f(library, *a)
    if name == "lstm":
        zero = np.zeros(1024, "f4")  # torch's layer has two biases, whose sum is ours
        call = lambda w_x, w_h, b, x, h, c: np.sum(npx.lstm(x, h, c, w_x, w_h, b, zero)[0])
    wanted, given = [np.array(a) for a in wanted], [np.array(a) for a in given]
    gradient = minnp.grad(call, range(len(wanted)))
    return lambda: as_list(gradient(*wanted, *given))


def ours_jit(name: str, f: Callable, wanted: list, given: list) -> Callable[[], list]:
    library = Neural(np, npx.relu, npx.log_softmax, lambda a: logsumexp(a, axis=-1))
    wanted, given = [np.array(a) for a in wanted], [np.array(a) for a in given]
    gradient = minnp.jit(minnp.grad(lambda *a: f(library, *a), range(len(wanted))))
    return lambda: as_list(gradient(*wanted, *given))


def by_torch(name: str, f: Callable, wanted: list, given: list) -> Callable[[], list]:
    import torch

    torch.set_num_threads(int(THREADS))
    library = Neural(torch, torch.relu, lambda a: torch.log_softmax(a, -1), lambda a: torch.logsumexp(a, -1))
    call = lambda *a: f(library, *a)
    if name == "lstm":
        layer = torch.nn.LSTM(128, 256)
        names = [n for n, _ in layer.named_parameters()]
        zero = torch.zeros(1024)
        call = lambda w_x, w_h, b, x, h, c: torch.func.functional_call(
            layer, dict(zip(names, (w_x, w_h, b, zero), strict=True)), (x, (h[None], c[None]))
        )[0].sum()
    wanted = [torch.tensor(a, requires_grad=True) for a in wanted]
    given = [torch.tensor(a) for a in given]
    return lambda: torch.autograd.grad(call(*wanted, *given), wanted)


def by_autograd(name: str, f: Callable, wanted: list, given: list) -> Callable[[], list]:
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp as log_sum

    library = Neural(
        anp,
        lambda a: anp.maximum(a, 0),
        lambda a: a - log_sum(a, axis=-1, keepdims=True),
        lambda a: log_sum(a, axis=-1),
    )
    gradient = autograd.grad(lambda *a: f(library, *a), tuple(range(len(wanted))))
    return lambda: gradient(*wanted, *given)


def by_jax(name: str, f: Callable, wanted: list, given: list, compiled: bool = False) -> Callable[[], list]:
    import jax
    import jax.numpy as jnp

    library = Neural(jnp, jax.nn.relu, jax.nn.log_softmax, lambda a: jax.nn.logsumexp(a, axis=-1))
    gradient = jax.grad(lambda *a: f(library, *a), tuple(range(len(wanted))))
    gradient = jax.jit(gradient) if compiled else gradient
    wanted, given = [jnp.asarray(a) for a in wanted], [jnp.asarray(a) for a in given]
    return lambda: jax.block_until_ready(gradient(*wanted, *given))


def by_jax_jit(name: str, f: Callable, wanted: list, given: list) -> Callable[[], list]:
    return by_jax(name, f, wanted, given, compiled=True)


CONTESTANTS: dict[str, Callable] = {
    "minnp": ours,
    "minnp jit": ours_jit,
    "torch": by_torch,
    "autograd": by_autograd,
    "jax eager": by_jax,
    "jax jit": by_jax_jit,
}


def as_list(x: Any) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def missing(name: str) -> str:
    """The module a contestant needs and does not find, or ''."""
    module = name.split()[0]
    return module if importlib.util.find_spec(module) is None else ""


def run(name: str, case: tuple, names: list[str], rounds: int) -> None:
    f, wanted, given = case
    calls: dict[str, Callable] = {}
    for n in names:
        if (name, n) in {("lstm", "minnp jit"), ("ode", "jax eager"), ("ode", "jax jit")}:
            continue  # an LSTM of rows is one call; JAX unrolls the thousand steps, which takes minutes
        calls[n] = CONTESTANTS[n](name, f, wanted, given)
    if name == "rnn":
        calls["by hand"] = lambda: rnn_by_hand(*wanted, *given)
    want = [onp.asarray(g) for g in calls["minnp"]()]
    clock = time.process_time if THREADS == "1" else time.perf_counter
    number: dict[str, int] = {}
    for n, call in calls.items():
        for a, b in zip(want, as_list(call()), strict=True):
            onp.testing.assert_allclose(onp.asarray(b), a, rtol=2e-3, atol=2e-3 * float(abs(a).max()), err_msg=n)
        call()
        start = time.perf_counter()
        call()
        number[n] = max(1, int(0.02 / (time.perf_counter() - start)))
    times = {n: [1e3 * t for t in taken] for n, taken in take_turns(calls, rounds, number, clock).items()}
    print(f"\n{TITLES[name]}   (target: {TARGETS.get(name, 'at most 1 x torch and autograd')})")
    for n, t in times.items():
        deciles = statistics.quantiles(t, n=10)
        line = f"  {n:<10}{statistics.median(t):10.3f} ms  ({deciles[0]:.3f} to {deciles[-1]:.3f})"
        if not n.startswith("minnp"):
            r = [a / b for a, b in zip(times["minnp"], t, strict=True)]
            deciles = statistics.quantiles(r, n=10)
            line += f"   minnp takes {statistics.median(r):6.2f} x  ({deciles[0]:.2f} to {deciles[-1]:.2f})"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=[*TITLES, "memory"], choices=[*TITLES, "memory"])
    parser.add_argument("--peers", nargs="*", default=[n for n in CONTESTANTS if n != "minnp"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--policy", default="auto")
    options = parser.parse_args()
    minnp.set_num_threads(options.threads)
    minnp.set_global_policy(options.policy)
    for module in sorted({missing(n) for n in CONTESTANTS} - {""}):
        print(f"{module} is not installed: left out")
    print(f"numpy {onp.__version__}, {options.threads} threads, policy {minnp.get_global_policy().name}")
    everything = cases()
    for name in options.cases:
        if name == "memory":
            subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "tape_memory.py")], check=True)
            continue
        run(name, everything[name], ["minnp", *(n for n in options.peers if not missing(n))], options.rounds)


if __name__ == "__main__":
    main()
