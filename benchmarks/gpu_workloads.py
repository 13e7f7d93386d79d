"""The workloads of a GPU, in float32, on one where there is one: minnp beside torch, torch.compile and jax.jit.

    python benchmarks/gpu_workloads.py [--workloads mlp rnn ...] [--repeat 5] [--no-compile] [--tiny] [--tf32]

mlp, rnn   MinPy's two published workloads: 50 layers (batch 512-4096, width 512-2048), 50 steps of 256 inputs (batch
           64-256, width 512-4096), forward and backward
chain      eleven elementwise operations
matmul     one product of square matrices
convnet    CS231n's: 7x7 convolution to 32 channels, pooling, two dense layers; forward and backward
lstm       30 steps, forward and backward

With --tiny batch 4 and width 16 alone, where all there is to measure is what a library adds to its kernels.

Side by side: minnp eager, jit and jit for torch's compiler (with CUDA graphs) on a torch place, torch eager,
torch.compile, jax.jit (where JAX is installed). Products are in full float32 for all of them, or with --tf32 in
TensorFloat-32 for all: left alone, JAX's are rounded to it and torch's are not. One that fails, or computes something
else, is named and left out.
Without a GPU the CPU runs smaller sizes, and says so. Printed are the medians in milliseconds of one step, ready when
all results are computed; the time of minnp eager as a part of torch eager's, and of minnp's best jit as a part of the
fastest of the others; and what minnp's best reaches of the machine: the products' additions and multiplications in a
second, as a part of what a large product of torch's reaches here, or for the chain the bytes read and written, as a
part of a copy's.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.nn.functional as F

import minnp
import minnp.numpy as np
from minnp import npx

sys.path.insert(0, str(Path(__file__).parent))
from turns import take_turns

DEPTH, STEPS, INPUTS, CLASSES = 50, 50, 256, 10
GPU = torch.cuda.is_available()
RNG = numpy.random.default_rng(0)


def draw(*shape: int) -> numpy.ndarray:
    return (RNG.standard_normal(shape) / shape[-1] ** 0.5).astype("f4")


# ------------------------------------------------------------------ what the libraries call differently
@dataclass
class Library:
    """A NumPy-like module, with the neural functions of its library."""

    xp: Any
    relu: Callable
    conv: Callable  # (x, w): w [F, C, 7, 7], the size stays
    pool: Callable  # (x): 2x2
    log_softmax: Callable

    def __getattr__(self, name: str) -> Any:
        return getattr(self.xp, name)


OURS = Library(
    np,
    npx.relu,
    lambda x, w: npx.convolution(x, w, pad=3),
    lambda x: npx.pooling(x, kernel=2, stride=2),
    npx.log_softmax,
)
TORCHS = Library(
    torch,
    torch.relu,
    lambda x, w: F.conv2d(x, w, padding=3),
    lambda x: F.max_pool2d(x, 2),
    lambda a: torch.log_softmax(a, -1),
)


def jaxs_library() -> Library:
    import jax
    import jax.numpy

    window = (1, 1, 2, 2)
    return Library(
        jax.numpy,
        jax.nn.relu,
        lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        lambda x: jax.lax.reduce_window(x, -jax.numpy.inf, jax.lax.max, window, window, "VALID"),
        lambda a: jax.nn.log_softmax(a, -1),
    )


# ------------------------------------------------------------------ the programs, for any of them
def mlp(xp: Any, weights: list, x: Any, target: Any) -> Any:
    for w in weights:
        x = xp.tanh(x @ w)
    return ((x - target) ** 2).mean()


def rnn(xp: Any, weights: list, x: Any, target: Any) -> Any:
    w_x, w_h, w_y = weights
    h = x[:, 0] @ w_x
    for t in range(1, STEPS):
        h = xp.tanh(x[:, t] @ w_x + h @ w_h)
    return ((h @ w_y - target) ** 2).mean()


def chain(xp: Any, weights: list, x: Any, target: Any) -> Any:
    y = x
    for _ in range(5):
        y = xp.tanh(y * target)
    return y + x


def matmul(xp: Any, weights: list, x: Any, target: Any) -> Any:
    return x @ weights[0]


def convnet(xp: Any, weights: list, x: Any, target: Any) -> Any:
    conv, hidden, out = weights
    h = xp.pool(xp.relu(xp.conv(x, conv)))
    scores = xp.relu(h.reshape(len(x), -1) @ hidden) @ out
    return -(target * xp.log_softmax(scores)).mean()


def lstm(xp: Any, weights: list, x: Any, target: Any) -> Any:
    w_x, w_h, w_y = weights
    n = len(w_h)
    h = c = x[0, :, :1] * 0 + w_h[:1, :n] * 0
    sigmoid = lambda a: 0.5 + 0.5 * xp.tanh(0.5 * a)
    for t in range(len(x)):
        z = x[t] @ w_x + h @ w_h
        c = sigmoid(z[:, :n]) * c + sigmoid(z[:, n : 2 * n]) * xp.tanh(z[:, 2 * n : 3 * n])
        h = sigmoid(z[:, 3 * n :]) * xp.tanh(c)
    return ((h @ w_y - target) ** 2).mean()


@dataclass
class Workload:
    """A program, whether its gradient is asked, its sizes on a GPU and on a CPU, its arrays and its cost at a size."""

    program: Callable
    backward: bool
    gpu: list[tuple[int, int]]
    cpu: list[tuple[int, int]]
    arrays: Callable  # (batch, width) -> (weights, x, target): random, so that nothing is zero
    cost: Callable  # (batch, width) -> operations of its products, or bytes of a chain

    @property
    def sizes(self) -> list[tuple[int, int]]:
        return self.gpu if GPU else self.cpu


WORKLOADS = {
    "mlp": Workload(
        mlp,
        True,
        [(512, 512), (1024, 1024), (4096, 2048)],
        [(64, 64), (128, 256)],
        lambda n, w: ([draw(w, w) for _ in range(DEPTH)], draw(n, w), draw(n, w)),
        lambda n, w: 2 * n * w * w * (3 * DEPTH - 1),
    ),
    "rnn": Workload(
        rnn,
        True,
        [(64, 512), (128, 1024), (256, 4096)],
        [(16, 64), (32, 128)],
        lambda n, w: ([draw(INPUTS, w), draw(w, w), draw(w, CLASSES)], draw(n, STEPS, INPUTS), draw(n, CLASSES)),
        lambda n, w: 2 * n * STEPS * w * (2 * INPUTS + 3 * w),
    ),
    "chain": Workload(
        chain,
        False,
        [(1, 10**6), (1, 10**8)],
        [(1, 10**5), (1, 10**7)],
        lambda n, w: ([], draw(w), draw(w)),
        lambda n, w: 3 * 4 * w,
    ),
    "matmul": Workload(
        matmul,
        False,
        [(1024, 1024), (8192, 8192)],
        [(256, 256), (1024, 1024)],
        lambda n, w: ([draw(w, w)], draw(n, w), draw(1)),
        lambda n, w: 2 * n * w * w,
    ),
    "convnet": Workload(
        convnet,
        True,
        [(50, 100), (512, 100)],
        [(50, 100)],
        lambda n, w: (
            [draw(32, 3, 7, 7), draw(32 * 16 * 16, w), draw(w, CLASSES)],
            draw(n, 3, 32, 32),
            numpy.eye(CLASSES, dtype="f4")[RNG.integers(0, CLASSES, n)],
        ),
        lambda n, w: 2 * n * (2 * 32 * 32 * 32 * 3 * 49 + 3 * (32 * 16 * 16 * w + w * CLASSES)),
    ),
    "lstm": Workload(
        lstm,
        True,
        [(64, 256), (256, 1024)],
        [(64, 256)],
        lambda n, w: ([draw(128, 4 * w), draw(w, 4 * w), draw(w, CLASSES)], draw(30, n, 128), draw(n, CLASSES)),
        lambda n, w: 2 * 30 * n * 4 * w * (2 * 128 + 3 * w),
    ),
}


# ------------------------------------------------------------------ contestants: a step, which returns when it is done
def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def ours(work: Workload, arrays: tuple, jit: str) -> Callable[[], Any]:
    with minnp.Context("gpu" if GPU else "cpu", 0, "torch"):
        weights, x, target = [np.array(w) for w in arrays[0]], np.array(arrays[1]), np.array(arrays[2])
    step = lambda *args: work.program(OURS, *args)
    step = minnp.grad(step) if work.backward else step
    step = minnp.jit(step, compiler=jit) if jit else step

    def run() -> Any:
        out = step(weights, x, target)
        wait()
        return out[0] if work.backward else out

    return run


def torchs(work: Workload, arrays: tuple, compiled: bool) -> Callable[[], Any]:
    device = "cuda" if GPU else "cpu"
    weights = [torch.from_numpy(w).to(device).requires_grad_(work.backward) for w in arrays[0]]
    x, target = (torch.from_numpy(a).to(device) for a in arrays[1:])
    program = lambda *args: work.program(TORCHS, *args)
    program = torch.compile(program) if compiled else program

    def run() -> Any:
        out = program(weights, x, target)
        out = torch.autograd.grad(out, weights)[0] if work.backward else out
        wait()
        return out

    return run


def jaxs(work: Workload, arrays: tuple) -> Callable[[], Any]:
    import jax

    library = jaxs_library()
    step = lambda *args: work.program(library, *args)
    step = jax.jit(jax.grad(step) if work.backward else step)
    weights, x, target = [jax.numpy.array(w) for w in arrays[0]], *map(jax.numpy.array, arrays[1:])

    def run() -> Any:
        out = jax.block_until_ready(step(weights, x, target))
        return out[0] if work.backward else out

    return run


def contestants(compile_torch: bool) -> dict[str, Callable]:
    """By name, how each makes its step; torch eager, whose results are what the others are held to, first."""
    found: dict[str, Callable] = {
        "torch": lambda w, a: torchs(w, a, False),
        "minnp": lambda w, a: ours(w, a, ""),
        "minnp jit": lambda w, a: ours(w, a, "auto"),
    }
    if compile_torch:
        found["minnp jit torch"] = lambda w, a: ours(w, a, "torch")
        found["torch.compile"] = lambda w, a: torchs(w, a, True)
    if importlib.util.find_spec("jax"):
        found["jax.jit"] = jaxs
    return found


def as_numpy(x: Any) -> numpy.ndarray:
    return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else numpy.asarray(x)


def peaks() -> tuple[float, float]:
    """(operations a second of torch's large product, bytes a second of its copy) on this machine: its best of ten."""
    device, n = ("cuda", 8192) if GPU else ("cpu", 1024)
    a, x = torch.randn(n, n, device=device), torch.randn(n * n * 8, device=device)
    y = torch.empty_like(x)

    def best(f: Callable) -> float:
        times = []
        for _ in range(10):
            start = time.perf_counter()
            f()
            wait()
            times.append(time.perf_counter() - start)
        return min(times)

    return 2 * n**3 / best(lambda: a @ a), 2 * x.nbytes / best(lambda: y.copy_(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which compiles for minutes")
    parser.add_argument("--tiny", action="store_true", help="batch 4, width 16")
    parser.add_argument("--tf32", action="store_true", help="products in TensorFloat-32, for all of them")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "tensorfloat32" if options.tf32 else "float32"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the GPU's memory
    where = (
        torch.cuda.get_device_name(0)
        if GPU
        else f"no GPU here: the CPU at smaller sizes, {torch.get_num_threads()} threads"
    )
    operations, copied = peaks()
    print(f"torch {torch.__version__}; {where}; milliseconds, float32")
    print(f"a large product: {operations / 1e9:.0f} GFLOP/s; a copy: {copied / 1e9:.1f} GB/s")
    for name in options.workloads:
        for size in [(4, 16)] if options.tiny else WORKLOADS[name].sizes:
            steps = agreeing(name, size, not options.no_compile)
            medians = {who: 1e3 * statistics.median(t) for who, t in take_turns(steps, options.repeat).items()}
            shown = "  ".join(f"{who} {t:.2f}" for who, t in medians.items())
            print(
                f"{name} batch {size[0]:5} width {size[1]:5}:  {shown}", *told(name, size, medians, operations, copied)
            )
            sys.stdout.flush()


def agreeing(name: str, size: tuple[int, int], compile_torch: bool) -> dict[str, Callable]:
    """The steps of those who compute what the first of them computes. One that fails, out of memory or for want of a
    compiler, is told and left out: the others are still worth it."""
    work, steps, reference = WORKLOADS[name], {}, None
    arrays = work.arrays(*size)
    for who, make in contestants(compile_torch).items():
        try:
            step = make(work, arrays)
            for _ in range(4):  # capture, compile, measure, warm up
                result = as_numpy(step())
        except Exception as error:
            print(f"{name} {size}: {who} is left out, {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        reference = result if reference is None else reference
        error = float(numpy.abs(result - reference).max()) / float(numpy.abs(reference).max())
        if error < 0.03:  # where rounding picks another largest element of a window, a whole term is another
            steps[who] = step
        else:
            print(f"{name} {size}: {who} is left out, its result differs by {error:.1g}", flush=True)
    return steps


def told(name: str, size: tuple[int, int], medians: dict[str, float], operations: float, copied: float) -> list[str]:
    """What the times mean."""
    ours = [t for who, t in medians.items() if who.startswith("minnp")]
    jits = [t for who, t in medians.items() if who.startswith("minnp jit")]
    peers = [t for who, t in medians.items() if not who.startswith("minnp")]
    found = []
    if "minnp" in medians and "torch" in medians:
        found.append(f"  eager {medians['minnp'] / medians['torch']:.2f} of torch's")
    if jits and peers:
        found.append(f"  jit {min(jits) / min(peers):.2f} of the fastest")
    if ours:
        rate, unit, peak = WORKLOADS[name].cost(*size) / min(ours) * 1e3, "GFLOP", operations
        if name == "chain":
            unit, peak = "GB", copied
        found.append(f"  ({rate / 1e9:.1f} {unit}/s, {100 * rate / peak:.0f} %)")
    return found


if __name__ == "__main__":
    main()
