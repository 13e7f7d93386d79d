"""Gradients of loops that read and write parts of arrays, beside autograd and torch.

    python benchmarks/parts.py [--sizes 100 400] [--rounds 5] [--peers autograd torch]

Printed are, for each program and size, the milliseconds of CPU time of the program alone and with its gradient (minima
over the rounds, the contestants in turn), their ratio, and the time with the gradient over each peer's. Torch runs the
same program on its own functions; autograd has no writes. Gradients are compared before they are timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as onp
import torch
from turns import take_turns

import minnp.numpy as np
from minnp import grad


def diagonal(a: Any, xp: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        total = total + xp.tanh(a[i, i])
    return total


def go_fast(a: Any, xp: Any) -> Any:
    return (a + diagonal(a, xp)).sum()


def rows(a: Any, xp: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        total = total + xp.tanh(a[i]).sum()
    return total


def recurrence(a: Any, xp: Any) -> Any:
    h = a[0]
    for i in range(1, len(a)):
        h = xp.tanh(0.5 * h + a[i])
    return h.sum()


def solve(a: Any, xp: Any) -> Any:
    """A triangular system by substitution, written into an array."""
    n = len(a)
    x = xp.zeros(n, dtype=a.dtype)
    for i in range(n):
        x[i] = (1.0 - a[i, :i] @ (x[:i].clone() if xp is torch else x[:i])) / (a[i, i] + n)
    return x.sum()


def written(a: Any, xp: Any) -> Any:
    out = xp.zeros_like(a)
    for i in range(len(a)):
        out[i] = xp.tanh(a[i])
    return (out * out).sum()


WRITES = (solve, written)
PROGRAMS = (diagonal, go_fast, rows, recurrence, *WRITES)


def torch_gradient(f: Callable) -> Callable:
    def gradient(x: onp.ndarray) -> onp.ndarray:
        t = torch.tensor(x, requires_grad=True)
        return torch.autograd.grad(f(t, torch), t)[0].numpy()

    return gradient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 400])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="*", default=["autograd", "torch"], choices=["autograd", "torch"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for program in PROGRAMS:
        for n in options.sizes:
            x = onp.random.default_rng(0).uniform(-1, 1, (n, n))
            gradients = {"minnp": lambda x, f=program: grad(lambda a: f(a, np))(np.array(x))}
            if "autograd" in options.peers and program not in WRITES:
                gradients["autograd"] = autograd.grad(lambda a, f=program: f(a, anp))
            if "torch" in options.peers:
                gradients["torch"] = torch_gradient(program)
            want = onp.asarray(gradients["minnp"](x))
            for name, gradient in gradients.items():
                onp.testing.assert_allclose(onp.asarray(gradient(x)), want, rtol=1e-9, atol=1e-12, err_msg=name)
            runs = {name: lambda g=gradient, x=x: g(x) for name, gradient in gradients.items()}
            runs["alone"] = lambda f=program, x=x: f(np.array(x), np)
            best = {
                name: min(times) for name, times in take_turns(runs, options.rounds, clock=time.process_time).items()
            }
            ratios = "".join(f"  {best['minnp'] / best[p]:6.3f} of {p}" for p in options.peers if p in best)
            print(
                f"{program.__name__:10} n = {n:4}  alone {1e3 * best['alone']:7.2f} ms  with gradient "
                f"{1e3 * best['minnp']:7.2f} ms  {best['minnp'] / best['alone']:6.1f} times{ratios}",
                flush=True,
            )


if __name__ == "__main__":
    main()
