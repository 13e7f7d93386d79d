"""What more ranks would cost: measured compute and link, and a model of collectives out to 1,024 ranks.

    python -m minnp.launch -n 2 -s 0 benchmarks/scaling.py          # also -n 3, -n 4

Measures, on the ranks there are: `latency` a, the time of a message of some bytes; `bandwidth` b, bytes a second that
one rank sends to the next; `rate`, additions a second of two arrays. Then it prints the model beside what an all-reduce
and a stencil really take here, and what the model says of more ranks, under the assumptions in
docs/explanation/scaling.md.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import minnp
import minnp.numpy as np


def ring(ranks: int, size: float, a: float, b: float, rate: float) -> float:
    """Seconds of an all-reduce in a ring: each rank passes on a part of the bytes, 2 (ranks - 1) times (Patarasu and
    Yuan, "Bandwidth optimal all-reduce algorithms", 2009)."""
    steps = ranks - 1
    return 2 * steps * a + 2 * steps / ranks * size / b + steps / ranks * size / 4 / rate


def tree(ranks: int, size: float, a: float, b: float, rate: float) -> float:
    """The same by halving and doubling (Rabenseifner, "Optimization of collective reduction operations", 2004)."""
    depth, part = math.ceil(math.log2(ranks)), (ranks - 1) / ranks
    return 2 * depth * a + 2 * part * size / b + part * size / 4 / rate


def best(f: Callable, mesh: Any, times: int = 15) -> float:
    """The least seconds that all ranks together take."""
    seconds = []
    for _ in range(times):
        mesh.barrier()
        start = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - start)
    return float(mesh.all_reduce(min(seconds), "max"))


def measured(mesh: Any) -> tuple[float, float, float]:
    """(latency, bandwidth, rate) of these ranks."""
    import torch

    group = mesh.group("scaling")
    one = torch.zeros(1)
    a = best(lambda: group.all_reduce(one).wait(), mesh) / (2 * (mesh.size - 1))
    rate = 1 << 22
    x, y = numpy.ones(rate, "f4"), numpy.ones(rate, "f4")
    rate = rate / best(lambda: numpy.add(x, y, out=y), mesh)
    size = 1 << 24
    flat = torch.zeros(size >> 2)
    took = best(lambda: group.all_reduce(flat).wait(), mesh)
    steps = mesh.size - 1
    left = took - 2 * steps * a - steps / mesh.size * size / 4 / rate
    return a, 2 * steps / mesh.size * size / max(left, 1e-9), rate


def all_reduces(mesh: Any, a: float, b: float, rate: float) -> None:
    import torch

    group = mesh.group("scaling")
    for size in (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26):
        flat = torch.zeros(size >> 2)
        took = best(lambda flat=flat: group.all_reduce(flat).wait(), mesh)
        show(mesh, f"all-reduce of {size >> 10} KB", took, ring(mesh.size, size, a, b, rate))


def stencil(n: int, m: int, ranks: int, b: float, point: float, fixed: float) -> float:
    """Seconds of a step on an n x m grid: what a step on next to nothing takes, messages and Python; a rank's points,
    which are copied beside four rows of each neighbour; and these rows."""
    return fixed + n / ranks * m * point + 2 * 4 * m * 4 / b


def step(u: Any) -> Any:
    return 0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:])


def stencils(mesh: Any, b: float) -> tuple[float, float]:
    """(the seconds of a point, and of a step on next to nothing), and the model beside what was measured."""
    m = 1000
    points = numpy.ones((2002, m), "f4")
    point = best(lambda: step(points.copy()), mesh) / (2000 * m)

    def timed(rows: int, columns: int) -> float:
        grids = [np.ones((rows + 2, columns), "f4", device=mesh.split(0)) for _ in range(15)]
        return best(lambda: step(grids.pop()), mesh)

    fixed = timed(16 * mesh.size, 4)
    for rows in (500, 2000, 4000):
        show(mesh, f"stencil of {rows} x {m}", timed(rows, m), stencil(rows, m, mesh.size, b, point, fixed))
    return point, fixed


def show(mesh: Any, what: str, took: float, model: float) -> None:
    if mesh.first:
        print(f"{what:26} {took * 1e3:9.3f} ms   model {model * 1e3:9.3f} ms   {took / model:5.2f}", flush=True)


def main() -> None:
    mesh = minnp.distributed.init()
    if mesh.size == 1:
        raise SystemExit("start it on several processes: python -m minnp.launch -n 2 -s 0 benchmarks/scaling.py")
    found = [measured(mesh) for _ in range(3)]
    a, b, rate = (statistics.median(values) for values in zip(*found, strict=True))
    if mesh.first:
        print(f"{mesh.size} ranks: latency {a * 1e6:.0f} us, {b / 1e9:.2f} GB/s, {rate / 1e9:.2f} G additions/s")
    all_reduces(mesh, a, b, rate)
    point, fixed = stencils(mesh, b)
    if not mesh.first:
        return
    print(f"{point * 1e9:.2f} ns a point, {fixed * 1e3:.2f} ms a step")
    print("\nranks  100 MB ring  100 MB tree  1 KB ring  1 KB tree  stencil 4000 x 1000  and of 4000 rows a rank (ms)")
    for ranks in (2, 4, 16, 64, 256, 1024):
        sums = [f(ranks, size, a, b, rate) for size in (1e8, 1e3) for f in (ring, tree)]
        steps = [stencil(n, 1000, ranks, b, point, fixed) for n in (4000, 4000 * ranks)]
        print(f"{ranks:5}" + "".join(f"{t * 1e3:12.2f}" for t in (*sums, *steps)))


if __name__ == "__main__":
    main()
