"""Overheads: one call on ten elements, a short chain with its gradient, and the import, beside NumPy and the peers.

    python benchmarks/small_calls.py [--rounds 40]

Everything runs in one process, the contestants in turn within a round; printed are medians over rounds, their spread
(10th to 90th percentile), and the median of the ratios taken round by round, which a machine that changes speed does
not disturb. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as onp

import minnp
import minnp.numpy as np

COMMON = [
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "exp", "log", "tanh", "sqrt", "abs"),
    *("sin", "cos", "square", "negative", "sign", "floor", "greater", "equal", "isnan", "logical_and", "where", "clip"),
    *("sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin", "any", "all", "cumsum", "sort", "argsort"),
    *("dot", "matmul", "reshape", "transpose", "ravel", "concatenate", "stack", "vstack", "hstack", "expand_dims"),
    *("squeeze", "repeat", "tile", "flip", "roll", "zeros", "ones", "arange", "zeros_like", "ones_like", "array"),
    *("asarray", "copy", "unique", "outer", "take"),
]


def table(
    title: str, contestants: dict[str, Callable[[], Any]], rounds: int, number: int, base: str
) -> dict[str, float]:
    """Time the contestants in turn; print a line each; return median ratios to `base`."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, f in contestants.items():
            times[name].append(timeit.timeit(f, number=number) / number * 1e6)
    print(f"\n{title}")
    ratios = {}
    for name, t in times.items():
        ratios[name] = statistics.median(a / b for a, b in zip(t, times[base], strict=True))
        deciles = statistics.quantiles(t, n=10)
        print(
            f"  {name:<22}{statistics.median(t):9.2f} us   ({deciles[0]:.2f} to {deciles[-1]:.2f})   "
            f"{ratios[name]:6.2f} x {base}"
        )
    return ratios


def chain(xp: Any) -> Callable:
    def f(h: Any, y: Any) -> Any:
        for _ in range(5):
            h = xp.tanh(h * y)
        return xp.sum(h)

    return f


def arguments(name: str, xp: Any) -> tuple:
    """Ten-element arguments for one of the common functions."""
    x, y = xp.array(onp.linspace(0.1, 1, 10)), xp.array(onp.linspace(1, 2, 10))
    special: dict[str, Any] = {
        "where": (x > 0.5, x, y),
        "clip": (x, 0.2, 0.8),
        "reshape": (x, (2, 5)),
        "concatenate": ((x, y),),
        "stack": ((x, y),),
        "vstack": ((x, y),),
        "hstack": ((x, y),),
        "expand_dims": (x, 0),
        "repeat": (x, 2),
        "tile": (x, 2),
        "roll": (x, 1),
        "zeros": (10,),
        "ones": (10,),
        "arange": (10,),
        "take": (x, xp.array([1, 2, 3])),
        "array": ([1.0] * 10,),
    }
    if name in special:
        return special[name]
    f = getattr(onp, name)
    two = ("dot", "matmul", "outer") if not isinstance(f, onp.ufunc) else ()
    return (x, y) if name in two or (isinstance(f, onp.ufunc) and f.nin == 2) else (x,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    x, y = onp.linspace(0.1, 1, 10, dtype="f4"), onp.linspace(1, 2, 10, dtype="f4")
    a, b = np.array(x), np.array(y)
    adds: dict[str, Callable] = {"numpy": lambda: x + y, "minnp": lambda: a + b}
    gradients: dict[str, Callable] = {}
    ours = minnp.grad(chain(np))
    gradients["minnp"] = lambda: ours(a, b)
    compiled = minnp.jit(ours)
    gradients["minnp jit"] = lambda: compiled(a, b)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        tx, ty = torch.tensor(x), torch.tensor(y)
        tr = torch.tensor(x, requires_grad=True)
        adds["torch"] = lambda: tx + ty
        gradients["torch"] = lambda: torch.autograd.grad(chain(torch)(tr, ty), tr)
    if importlib.util.find_spec("autograd"):
        import autograd
        import autograd.numpy as anp

        theirs = autograd.grad(chain(anp))
        adds["autograd"] = lambda: anp.add(x, y)
        gradients["autograd"] = lambda: theirs(x, y)
    if importlib.util.find_spec("jax"):
        import jax
        import jax.numpy as jnp

        eager, fast = jax.grad(chain(jnp)), jax.jit(jax.grad(chain(jnp)))
        jx, jy = jnp.asarray(x), jnp.asarray(y)
        adds["jax"] = lambda: jx + jy
        gradients["jax"] = lambda: eager(jx, jy)
        gradients["jax jit"] = lambda: fast(jx, jy)
    ratios = table(
        "a + b, 10 float32   (target: at most 2.2 x numpy, faster than torch and autograd)", adds, rounds, 5000, "numpy"
    )
    print(f"  -> {ratios['minnp']:.2f} x numpy")
    if "torch" in gradients:
        r = table("gradient of the 11-operation chain   (target: at most 0.5 x torch)", gradients, rounds, 200, "torch")
        print(f"  -> {r['minnp']:.2f} x torch")
        if "autograd" in r:
            print(f"  -> {r['minnp'] / r['autograd']:.2f} x autograd   (target: at most 0.33)")

    only = minnp.policy("only_numpy")

    def under_only_numpy() -> Any:
        return a + b

    print("\n`auto` beside `only_numpy`: the same call, the policy set outside the timing (target: within 0.2 us)")
    auto, numpy_only = [], []
    for _ in range(rounds):
        auto.append(timeit.timeit(lambda: a + b, number=5000) / 5000 * 1e6)
        with only:
            numpy_only.append(timeit.timeit(under_only_numpy, number=5000) / 5000 * 1e6)
    print(f"  auto {statistics.median(auto):.2f} us, only_numpy {statistics.median(numpy_only):.2f} us")

    print("\nthe commonest functions on 10 float64: median ratio to NumPy (target: at most 2.2)")
    found = []
    for name in COMMON:
        f, g = getattr(np, name), getattr(onp, name)
        mine, real = arguments(name, np), arguments(name, onp)
        r = []
        for _ in range(max(rounds // 2, 5)):
            theirs_us = timeit.timeit(lambda: g(*real), number=1000)  # noqa: B023
            r.append(timeit.timeit(lambda: f(*mine), number=1000) / theirs_us)  # noqa: B023
        found.append((statistics.median(r), name))
    found.sort(reverse=True)
    print("  " + ", ".join(f"{name} {r:.2f}" for r, name in found))
    print(f"  -> {sum(r <= 2.2 for r, _ in found)} of {len(found)} within 2.2 x")

    print("\nimport, in fresh processes (target: at most 100 ms above numpy)")
    cost: dict[str, list[float]] = {"numpy": [], "minnp.numpy": []}
    for _ in range(7):
        for module, seconds in cost.items():
            code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
            seconds.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout))
    above = statistics.median(b - a for a, b in zip(cost["numpy"], cost["minnp.numpy"], strict=True))
    print(f"  numpy {1e3 * statistics.median(cost['numpy']):.0f} ms, minnp.numpy {1e3 * above:.0f} ms more")


if __name__ == "__main__":
    main()
