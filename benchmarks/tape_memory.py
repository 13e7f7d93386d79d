"""Peak memory of a gradient through a deep MLP: minnp, with and without checkpoints, beside torch and autograd.

    python benchmarks/tape_memory.py [--layers 200 --width 128 --batch 2048]

Each contestant runs in a process of its own, after a tiny gradient for warmth. `resident` is the peak of the resident
memory above what it was before (VmHWM, reset through /proc/self/clear_refs: Linux only); `counted` is the peak of the
bytes handed out: for minnp and autograd by tracemalloc (recycled blocks off: each byte is an array's), for
torch by its profiler's allocation events. The weights exist before and are in neither; their gradients are in both.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as onp

import minnp
import minnp.numpy as np
from minnp import npx

RNG = onp.random.default_rng(0)


def draw(*shape: int, scale: float = 1.0) -> onp.ndarray:
    return (RNG.standard_normal(shape) * scale).astype("f4")


def deep(relu: Callable, weights: list, x: Any) -> Any:
    for w in weights:
        x = relu(x @ w)
    return x


def memory_of(name: str, layers: int, width: int, batch: int) -> tuple[Callable, Callable]:
    """(gradient of a deep MLP at this size, counted peak of it): both are calls without arguments."""
    weights, x = [draw(width, width, scale=(2 / width) ** 0.5) for _ in range(layers)], draw(batch, width)
    block = max(round(layers**0.5), 1)
    if name.startswith("torch"):
        import torch

        ws = [torch.tensor(w, requires_grad=True) for w in weights]
        tx = torch.tensor(x)

        def call() -> Any:
            from torch.utils.checkpoint import checkpoint

            h = tx
            if name == "torch":
                h = deep(torch.relu, ws, h)
            else:
                for k in range(0, layers, block):
                    part = ws[k : k + block]
                    h = checkpoint(lambda h, *part: deep(torch.relu, part, h), h, *part, use_reentrant=False)
            return torch.autograd.grad(h.sum(), ws)

        def counted() -> int:
            with torch.profiler.profile(profile_memory=True) as profile:
                call()
            at = peak = 0
            for event in profile.profiler.kineto_results.events():
                if event.name() == "[memory]":
                    at += event.nbytes()
                    peak = max(peak, at)
            return peak

        return call, counted

    def traced(call: Callable) -> Callable:
        def counted() -> int:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            call()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak - before

        return counted

    if name == "autograd":
        import autograd
        import autograd.numpy as anp

        gradient = autograd.grad(lambda ws: anp.sum(deep(lambda a: anp.maximum(a, 0), ws, x)))
        return (call := lambda: gradient(weights)), traced(call)

    def total(ws: list) -> Any:
        h = np.asarray(x)
        if name == "minnp":
            return np.sum(deep(npx.relu, ws, h))
        for k in range(0, layers, block):
            h = minnp.checkpoint(lambda h, part: deep(npx.relu, part, h))(h, ws[k : k + block])
        return np.sum(h)

    ours_weights = [np.array(w) for w in weights]
    ours_gradient = minnp.grad(total)
    call = lambda: ours_gradient(ours_weights)

    def counted() -> int:
        minnp.memory_reuse(False)
        return traced(call)()

    return call, counted


def status(field: str) -> int:
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(field))


def resident_peak(call: Callable) -> int:
    """Bytes of the peak of the resident memory in a call above what was resident before it."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


def measure(name: str, what: str, layers: int, width: int, batch: int) -> int:
    """In a process of its own: the peak of one gradient."""
    memory_of(name, 4, 8, 4)[what == "counted"]()
    call, counted = memory_of(name, layers, width, batch)
    if what == "counted":
        return counted()
    return resident_peak(call)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=200)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = (options.layers, options.width, options.batch)
    if options.measure:
        print(measure(*options.measure, *size))
        return
    result, weights = size[1] * size[2] * 4 / 2**20, size[0] * size[1] ** 2 * 4 / 2**20
    print(
        f"\npeak memory of a gradient: {size[0]} layers of {size[1]}, batch {size[2]} "
        f"(one layer's result: {result:.1f} MB; all weight gradients: {weights:.1f} MB)\n"
        "  (target: minnp within 1.2 x torch; with checkpoints every sqrt(n) layers at most 0.25 x of that)"
    )
    peaks: dict[tuple, int] = {}
    for name in ["minnp", "minnp checkpoint", "torch", "torch checkpoint", "autograd"]:
        if importlib.util.find_spec(name.split()[0]) is None:
            print(f"  {name} is not installed: left out")
            continue
        for what in ("resident", "counted"):
            sizes = [f"--{k}={getattr(options, k)}" for k in ("layers", "width", "batch")]
            arguments = [sys.executable, __file__, *sizes, "--measure", name, what]
            peaks[name, what] = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
        r, c = (peaks[name, what] / 2**20 for what in ("resident", "counted"))
        print(f"  {name:<18} resident {r:8.1f} MB   counted {c:8.1f} MB", flush=True)
    for what in ("resident", "counted"):
        plain, saved = peaks["minnp", what], peaks["minnp checkpoint", what]
        beside = f"; minnp {plain / peaks['torch', what]:.2f} x torch" if ("torch", what) in peaks else ""
        print(f"  -> {what}: with checkpoints {saved / plain:.2f} x without{beside}")


if __name__ == "__main__":
    main()
