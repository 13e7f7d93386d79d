"""Split arrays beside HeAT, Dask and NumPy: the same eight programs, on one and two processes with a thread each.

    python benchmarks/meshes_peers.py --peers /path/of/an/environment/bin/python [--rounds 5]

The environment has heat, mpi4py, an MPI (pip install heat mpi4py mpich) and dask[array]; where it lacks one, that
column stays empty. Libraries run in turns, each in processes of its own, `rounds` times; a time is the least of its
runs, as other programs of the machine disturb some. Dask has two threads in the place of two processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "MINNP")}


def star(np: Any, u: Any) -> Any:
    """Two steps of a radius-2 star stencil."""
    for _ in range(2):
        u = (
            u[2:-2, 2:-2] * 0.5
            + 0.1 * (u[1:-3, 2:-2] + u[3:-1, 2:-2] + u[2:-2, 1:-3] + u[2:-2, 3:-1])
            + 0.025 * (u[:-4, 2:-2] + u[4:, 2:-2] + u[2:-2, :-4] + u[2:-2, 4:])
        )
    return u


def distances(np: Any, x: Any) -> Any:
    """Squared distances of all points to 64 of them."""
    c = whole(np, x[:64])
    return np.sum(x * x, axis=1).reshape((-1, 1)) - 2.0 * (x @ c.T) + np.sum(c * c, axis=1)


def k_means(np: Any, x: Any) -> Any:
    """Three rounds of k-means with 8 clusters."""
    centres = whole(np, x[:8])
    for _ in range(3):
        far = np.sum(x * x, axis=1).reshape((-1, 1)) - 2.0 * (x @ centres.T) + np.sum(centres * centres, axis=1)
        nearest = np.argmin(far, axis=1).reshape((-1, 1))
        rows = []
        for k in range(8):
            mine = (nearest == k).astype(x.dtype)  # not float64, which only NumPy and minnp would take
            rows.append(np.sum(mine * x, axis=0) / np.sum(mine))
        centres = np.stack(rows)
    return centres


def lasso(np: Any, x: Any) -> Any:
    """Ten steps of iterative soft thresholding."""
    y = np.sum(x[:, :3], axis=1).reshape((-1, 1))
    w = whole(np, x[:1] * 0.0).T
    n = x.shape[0]
    for _ in range(10):
        w = w - 0.05 * (x.T @ (x @ w - y)) / n
        w = np.where(w > 0.01, w - 0.01, np.where(w < -0.01, w + 0.01, w * 0.0))
    return w


def moments(np: Any, x: Any) -> Any:
    return [np.mean(x, axis=0), np.var(x, axis=0)]


def whole(np: Any, x: Any) -> Any:
    """A small array on every process."""
    return np.whole(x) if hasattr(np, "whole") else x


PROGRAMS: dict[str, tuple[tuple, Callable]] = {
    "star stencil": ((3000, 2000), star),
    "k-means": ((200_000, 16), k_means),
    "lasso": ((200_000, 32), lasso),
    "mean, variance": ((300_000, 50), moments),
    "distances": ((100_000, 32), distances),
    "tall SVD": ((200_000, 24), lambda np, x: np.tall_svd(x)),
    "matmul": ((1200, 1200), lambda np, x: x @ x),
    "FFT": ((1000, 2048), lambda np, x: np.fft_of_rows(x)),
}
REPEAT = 5


class Library:
    """A library's functions under NumPy's names."""

    def __init__(self, module: Any, **more: Callable) -> None:
        self.module = module
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


def library(name: str) -> tuple[Any, Callable, Callable, Callable]:
    """(the library, an array of it from NumPy's, what makes it compute, whether this process speaks)."""
    svd = lambda np: lambda x: np.linalg.svd(x, full_matrices=False)
    fft = lambda np: lambda x: np.fft.fft(x, axis=1)
    if name == "numpy":
        return Library(numpy, tall_svd=svd(numpy), fft_of_rows=fft(numpy)), lambda x: x, lambda y: None, lambda: True
    if name == "minnp":
        import minnp
        import minnp.numpy as np

        mesh = minnp.distributed.init()
        there = Library(
            np,
            tall_svd=svd(np),
            fft_of_rows=fft(np),
            whole=lambda x: x.to_device(mesh.replicate()),
            barrier=mesh.barrier,
        )
        return there, lambda x: np.asarray(x, device=mesh.split(0)), lambda y: None, lambda: mesh.first
    if name == "heat":
        import heat

        def tall_svd(x: Any) -> Any:
            q, r = heat.linalg.qr(x)
            u, s, v = numpy.linalg.svd(r.resplit(None).larray.numpy(), full_matrices=False)
            return heat.matmul(q, heat.array(u)), s, v

        comm = heat.communication.MPI_WORLD
        there = Library(
            heat, tall_svd=tall_svd, fft_of_rows=lambda x: heat.fft.fft(x, axis=1),
            whole=lambda x: heat.resplit(x, None), barrier=comm.handle.Barrier,
        )  # fmt: skip
        return there, lambda x: heat.array(x, split=0), lambda y: None, lambda: comm.rank == 0
    import dask
    import dask.array as da

    dask.config.set(scheduler="threads", num_workers=int(os.environ["WORKERS"]))
    there = Library(da, tall_svd=da.linalg.svd, fft_of_rows=lambda x: da.fft.fft(x, axis=1))
    chunked = lambda x: da.from_array(x, chunks=(-(-len(x) // max(int(os.environ["WORKERS"]), 1)), x.shape[1]))
    return there, chunked, lambda y: dask.compute(y), lambda: True


def work(name: str) -> None:
    """Run every program, and print {program: [seconds, a number that tells a wrong result]}."""
    np, array, compute, speaks = library(name)
    barrier = getattr(np, "barrier", None) if name in ("minnp", "heat") else None
    found = {}
    for program, (shape, f) in PROGRAMS.items():
        host = numpy.random.default_rng(0).random(shape, numpy.float32)
        seconds = []
        try:
            for _ in range(REPEAT):
                x = array(host)  # anew: nothing that was fetched before is there yet
                if barrier is not None:
                    barrier()
                start = time.perf_counter()
                y = f(np, x)
                compute(y)
                if barrier is not None:
                    barrier()
                seconds.append(time.perf_counter() - start)
                del y
            found[program] = min(seconds)
        except Exception as error:
            found[program] = f"{type(error).__name__}: {error}"[:80]
    if speaks():
        print("RESULT", json.dumps(found), flush=True)


def run(name: str, processes: int, python: str) -> dict:
    here, environment = str(Path(__file__).resolve()), os.environ | THREADS | {"WORKERS": str(processes)}
    command = [python, here, "--work", name]
    if name == "minnp" and processes > 1:
        command = [sys.executable, "-m", "minnp.launch", "-n", str(processes), "-s", "0", here, "--work", name]
    if name == "heat" and processes > 1:
        command = [str(Path(python).with_name("mpiexec")), "-n", str(processes), *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    return json.loads(lines[0].partition(" ")[2]) if lines else {"": done.stderr[-300:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="python of an environment with heat, mpi4py, an MPI and dask[array]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work)
        return
    columns = [("numpy", 1), ("minnp", 1), ("minnp", 2)]
    if arguments.peers:
        columns += [("heat", 1), ("heat", 2), ("dask", 1), ("dask", 2)]
    best: dict[tuple, dict] = {c: {} for c in columns}
    for _ in range(arguments.rounds):
        for c in columns:
            python = arguments.peers if c[0] in ("heat", "dask") else sys.executable
            for program, seconds in run(*c, python).items():
                old = best[c].get(program)
                best[c][program] = (
                    min(seconds, old) if isinstance(old, float) and isinstance(seconds, float) else seconds
                )
    print(f"{'ms':16}" + "".join(f"{name + ' ' + str(n):>10}" for name, n in columns) + "  minnp 2/1  2/heat 2")
    for program in PROGRAMS:
        times = [best[c].get(program) for c in columns]
        shown = [f"{t * 1e3:10.1f}" if isinstance(t, float) else f"{'-':>10}" for t in times]
        get = lambda name, n, program=program: best.get((name, n), {}).get(program)
        ratio = lambda a, b: f"{a / b:10.2f}" if isinstance(a, float) and isinstance(b, float) else f"{'-':>10}"
        print(
            f"{program:16}"
            + "".join(shown)
            + ratio(get("minnp", 2), get("minnp", 1))
            + ratio(get("minnp", 2), get("heat", 2))
        )
    for c, found in best.items():
        for program, seconds in found.items():
            if not isinstance(seconds, float):
                print(*c, program, seconds)


if __name__ == "__main__":
    main()
