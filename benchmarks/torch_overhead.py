"""What our layer adds to a small torch call: the same call on a place's arrays and on torch tensors, alternating.

    python benchmarks/torch_overhead.py [--device cpu] [--repeat 15]

Printed are the medians in microseconds of processor time, their difference, and the quartiles of the difference over
the paired runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

import minnp
import minnp.numpy as np

CASES: dict[str, tuple[Callable, Callable]] = {
    "x + y": (lambda d: d.x + d.y, lambda t: t.x + t.y),
    "x * 0.5": (lambda d: d.x * 0.5, lambda t: t.x * 0.5),
    "x / y": (lambda d: d.x / d.y, lambda t: t.x / t.y),
    "-x": (lambda d: -d.x, lambda t: -t.x),
    "exp(x)": (lambda d: np.exp(d.x), lambda t: torch.exp(t.x)),
    "maximum(x, y)": (lambda d: np.maximum(d.x, d.y), lambda t: torch.maximum(t.x, t.y)),
    "m @ m": (lambda d: d.m @ d.m, lambda t: t.m @ t.m),
    "x > y": (lambda d: d.x > d.y, lambda t: t.x > t.y),
    "sum(x)": (lambda d: np.sum(d.x), lambda t: torch.sum(t.x)),
    "m.sum(0)": (lambda d: d.m.sum(0), lambda t: t.m.sum(0)),
    "x[0]": (lambda d: d.x[0], lambda t: t.x[0]),
    "m[1:, 0]": (lambda d: d.m[1:, 0], lambda t: t.m[1:, 0]),
    "m.T": (lambda d: d.m.T, lambda t: t.m.T),
    "m.reshape(8, 2)": (lambda d: d.m.reshape(8, 2), lambda t: t.m.reshape(8, 2)),
    "where(k, x, y)": (lambda d: np.where(d.k, d.x, d.y), lambda t: torch.where(t.k, t.x, t.y)),
    "concatenate([x, y])": (lambda d: np.concatenate([d.x, d.y]), lambda t: torch.cat([t.x, t.y])),
}


class Data:
    """The arguments of the cases: 10 float32, a 4 x 4 matrix, a mask."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        rng = numpy.random.default_rng(0)
        self.x, self.y = (make(rng.standard_normal(10).astype("f4")) for _ in range(2))
        self.m, self.k = make(rng.standard_normal((4, 4)).astype("f4")), make(numpy.arange(10) > 4)


def microseconds(f: Callable[[], Any], loops: int = 1000) -> float:
    """The caller's processor time a call: all of it is spent in this thread, and a busy machine does not count."""
    start = time.thread_time()
    for _ in range(loops):
        f()
    return (time.thread_time() - start) / loops * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    context = minnp.Context("cpu" if options.device == "cpu" else "gpu", 0, "torch")
    with context:
        ours = Data(np.array)
    theirs = Data(lambda a: torch.from_numpy(a).to(options.device))
    print(f"torch {torch.__version__}, device {options.device}, one thread; microseconds a call")
    print(f"{'':22}{'minnp':>8}{'torch':>8}{'added':>8}   quartiles")
    for name, (our_call, their_call) in CASES.items():
        pairs = []
        for _ in range(options.repeat):
            pairs.append((microseconds(lambda: our_call(ours)), microseconds(lambda: their_call(theirs))))  # noqa: B023
        mine, its = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        low, middle, high = statistics.quantiles([a - b for a, b in pairs], n=4)
        print(f"{name:22}{mine:8.2f}{its:8.2f}{middle:8.2f}   {low:.2f} .. {high:.2f}")


if __name__ == "__main__":
    main()
