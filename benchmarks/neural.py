"""Neural operators on NumPy's own kernels: forward and gradient beside torch, alternating in one process.

    python benchmarks/neural.py [--rounds 10] [--threads 1] [--policy only_numpy]

Printed are medians in milliseconds (CPU time of the process with one thread, wall time with more) and torch's divided
by minnp's: above 1 means that minnp is faster. With --policy auto, large convolutions run on MXNet, if it is installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

THREADS = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is imported
    os.environ.setdefault(_variable, THREADS)

import numpy as onp  # noqa: E402
import torch  # noqa: E402

import minnp  # noqa: E402
import minnp.numpy as np  # noqa: E402
from minnp import grad, npx  # noqa: E402

RNG = onp.random.default_rng(0)
F = torch.nn.functional
Case = tuple[str, Callable, Callable, list[onp.ndarray]]


def draw(*shape: int) -> onp.ndarray:
    return (RNG.standard_normal(shape) * 0.1).astype("f4")


def convolution(n: int, channels: int, size: int, filters: int, kernel: int, stride: int = 1) -> Case:
    pad = kernel // 2
    return (
        f"conv {n}x{channels}x{size}x{size}, {filters} of {kernel}x{kernel}" + (f" by {stride}" if stride > 1 else ""),
        lambda x, w: npx.convolution(x, w, stride=stride, pad=pad),
        lambda x, w: F.conv2d(x, w, stride=stride, padding=pad),
        [draw(n, channels, size, size), draw(filters, channels, kernel, kernel)],
    )


def recurrent(kind: str, steps: int, n: int, inputs: int, hidden: int) -> Case:
    gates = {"LSTM": 4, "GRU": 3}[kind]
    layer = getattr(torch.nn, kind)(inputs, hidden)
    names = [name for name, _ in layer.named_parameters()]
    zeros = onp.zeros((n, hidden), "f4")
    states = (zeros, zeros) if kind == "LSTM" else (zeros,)
    ours = npx.lstm if kind == "LSTM" else npx.gru
    weights = [draw(gates * hidden, inputs), draw(gates * hidden, hidden), draw(gates * hidden), draw(gates * hidden)]
    x = draw(steps, n, inputs)
    tensor, handle = torch.tensor(x), np.array(x)
    return (
        f"{kind} {steps} steps, batch {n}, {inputs} to {hidden}",
        lambda *w: ours(handle, *states, *w)[0],
        lambda *w: torch.func.functional_call(layer, dict(zip(names, w, strict=True)), (tensor,))[0],
        weights,
    )


CASES: list[Callable[[], Case]] = [
    lambda: convolution(64, 3, 32, 32, 3),
    lambda: convolution(64, 32, 32, 32, 3),
    lambda: convolution(16, 128, 14, 128, 3),
    lambda: convolution(32, 64, 28, 128, 3, 2),
    lambda: ("max pool 64x32x32x32", lambda x: npx.pooling(x, 2, stride=2), lambda x: F.max_pool2d(x, 2),
             [draw(64, 32, 32, 32)]),
    lambda: ("batch norm 64x32x32x32",
             lambda *a: npx.batch_norm(*a, onp.zeros(32, "f4"), onp.ones(32, "f4"), fix_gamma=False, training=True),
             lambda x, a, b: F.batch_norm(x, None, None, a, b, training=True),
             [draw(64, 32, 32, 32), draw(32), draw(32)]),
    lambda: ("layer norm 64x128x256", npx.layer_norm, lambda x, a, b: F.layer_norm(x, (256,), a, b),
             [draw(64, 128, 256), draw(256), draw(256)]),
    lambda: ("softmax 3000x10", npx.softmax, lambda x: torch.softmax(x, -1), [draw(3000, 10)]),
    lambda: ("attention 8x8x128x64", npx.attention, F.scaled_dot_product_attention, [draw(8, 8, 128, 64)] * 3),
    lambda: ("gelu 512x1024", npx.gelu, F.gelu, [draw(512, 1024)]),
    lambda: recurrent("LSTM", 30, 64, 128, 256),
    lambda: recurrent("GRU", 30, 64, 128, 256),
]  # fmt: skip


def contestants(case: Case) -> dict[str, Callable[[], Any]]:
    """Forward, and forward with all gradients, of both."""
    _, ours, theirs, arrays = case
    handles, tensors = [np.array(a) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    gradient = grad(lambda *a: np.sum(ours(*a)), range(len(arrays)))

    def torch_forward() -> Any:
        with torch.no_grad():
            return theirs(*tensors)

    return {
        "minnp": lambda: ours(*handles),
        "torch": torch_forward,
        "minnp grad": lambda: gradient(*handles),
        "torch grad": lambda: torch.autograd.grad(theirs(*tensors).sum(), tensors),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--policy", default="only_numpy")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    print(f"{'':40}{'minnp':>9}{'torch':>9}{'ratio':>8}   {'gradient':>9}{'torch':>9}{'ratio':>8}")
    with minnp.policy(options.policy):
        for make in CASES:
            case = make()
            runs = contestants(case)
            times: dict[str, list[float]] = {name: [] for name in runs}
            for k in range(options.rounds + 2):
                for name, f in runs.items():
                    start = clock()
                    f()
                    if k > 1:
                        times[name].append((clock() - start) * 1e3)
            m = {name: statistics.median(t) for name, t in times.items()}
            print(
                f"{case[0]:40}{m['minnp']:9.2f}{m['torch']:9.2f}{m['torch'] / m['minnp']:8.2f}   "
                f"{m['minnp grad']:9.2f}{m['torch grad']:9.2f}{m['torch grad'] / m['minnp grad']:8.2f}"
            )


if __name__ == "__main__":
    main()
