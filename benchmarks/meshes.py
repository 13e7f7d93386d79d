"""Meshes of processes on this machine: `python -m minnp.launch -n 2 -s 0 benchmarks/meshes.py`, or torchrun.

Buckets: the sum of gradients of 100 MB in buckets of 25 MB, as distributed.value_and_grad sends them, beside raw gloo
all-reduces of as many bytes, in turns; the ratio is the median of the pairs' ratios. A message: what a collective
of one number costs, beside gloo's all-reduce of it. Programs: arrays split over the mesh beside NumPy in one process
(rank 0 alone, while the others wait).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import minnp
import minnp.numpy as np
from minnp.distributed.training import Buckets, planned


def timed(f: Callable, mesh: Any) -> float:
    mesh.barrier()
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def pairs(a: Callable, b: Callable, mesh: Any, times: int, before: Callable = lambda: None) -> tuple:
    """(median seconds of a, of b, median of the ratios); `before` is called before each a, and not timed."""
    runs = []
    for _ in range(times + 1):
        before()
        runs.append((timed(a, mesh), timed(b, mesh)))
    runs = runs[1:]
    ratio = statistics.median(x / y for x, y in runs)
    return statistics.median(x for x, _ in runs), statistics.median(y for _, y in runs), ratio


def buckets(mesh: Any) -> None:
    import torch

    group = mesh.group("gradients")
    freed: list = []
    for many, size in ((20, 5 << 18), (100, 1 << 18), (1600, 1 << 14)):  # of 5 and 1 MB, alone; of 64 KB, copied
        arrays = [numpy.random.default_rng(k).random(size, "f4") for k in range(many)]
        plan = planned(arrays, list(range(many)), 25 << 20)
        flats = [torch.zeros(sum(arrays[k].size for k in members)) for members in plan]
        fresh: list = []

        def made(arrays: list = arrays, fresh: list = fresh) -> None:
            freed.clear()
            fresh.append([a.copy() for a in arrays])  # as a walk backwards makes them: nobody else holds them

        def ours(arrays: list = arrays, plan: list = plan, fresh: list = fresh) -> None:
            sent, grads = Buckets(group, arrays, plan), fresh.pop()
            if len(plan) < len(arrays):  # they are copied; what it costs to free them is the walk's matter
                freed[:] = grads
            for b in range(len(plan)):
                sent.send(b, grads)
            sent.arrive()

        def raw(flats: list = flats) -> None:
            for work in [group.all_reduce(flat) for flat in flats]:
                work.wait()

        show(mesh, f"{many} gradients, {many * size >> 18} MB", "raw gloo", *pairs(ours, raw, mesh, 9, made))
    one = torch.zeros(1)
    many = lambda f: lambda: [f() for _ in range(100)]
    show(
        mesh, "100 sums of a number", "raw gloo",
        *pairs(many(lambda: mesh.all_reduce(1.0)), many(lambda: group.all_reduce(one).wait()), mesh, 5),
    )  # fmt: skip


def star(np: Any, u: Any) -> Any:
    """A radius-2 star stencil."""
    return (
        u[2:-2, 2:-2] * 0.5
        + 0.1 * (u[1:-3, 2:-2] + u[3:-1, 2:-2] + u[2:-2, 1:-3] + u[2:-2, 3:-1])
        + 0.025 * (u[:-4, 2:-2] + u[4:, 2:-2] + u[2:-2, :-4] + u[2:-2, 4:])
    )


def distances(np: Any, x: Any) -> Any:
    """Squared distances of all points to 64 of them."""
    c = x[:64]
    return np.sum(x * x, 1, keepdims=True) - 2 * (x @ c.T) + np.sum(c * c, 1)


PROGRAMS = {  # name: (shape, function)
    "star stencil": ((4000, 2000), star),
    "mean and variance": ((200000, 50), lambda np, x: [np.mean(x, 0), np.var(x, 0)]),
    "distances": ((200000, 32), distances),
    "matmul": ((1500, 1500), lambda np, x: x @ x),
    "fft": ((2000, 2048), lambda np, x: np.fft.fft(x, axis=1)),
    "exp": ((4000, 2000), lambda np, x: np.exp(-(x * x)) + np.sqrt(np.abs(x))),
}


def programs(mesh: Any) -> None:
    for name, (shape, f) in PROGRAMS.items():
        host = numpy.random.default_rng(0).random(shape).astype("f4")
        x = np.asarray(host, device=mesh.split(0))
        split = lambda f=f, x=x: (f(np, x), mesh.barrier())  # which computes what waits
        alone = lambda f=f, host=host: f(numpy, host) if mesh.first else None
        show(mesh, name, "NumPy, one process", *pairs(split, both(alone, mesh), mesh, 5))


def both(f: Callable, mesh: Any) -> Callable:
    """f on rank 0, and the others wait for it."""
    return lambda: (f(), mesh.barrier())


def show(mesh: Any, name: str, beside: str, ours: float, theirs: float, ratio: float) -> None:
    if mesh.first:
        print(f"{name:24} {ours * 1e3:8.1f} ms   {beside} {theirs * 1e3:8.1f} ms   ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    mesh = minnp.distributed.init()
    if mesh.size > 1:
        buckets(mesh)
    programs(mesh)
