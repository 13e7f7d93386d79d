"""MinPy's two published workloads, forward and backward in float32: a 50-layer MLP and a 50-step RNN.

    python benchmarks/gpu_workloads.py [--workloads mlp rnn] [--repeat 5] [--no-compile]

Side by side: minnp eager and jit on a torch place, torch eager, torch.compile, jax.jit (where JAX is installed). On a
GPU the sizes are MinPy's (MLP: batch 512-4096, width 512-2048; RNN: input 256, batch 64-256, width 512-4096); without
one the CPU runs smaller sizes, and says so. Printed are the medians in milliseconds of one step, ready when all
gradients are computed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy
import torch

import minnp
import minnp.numpy as np

DEPTH, STEPS, INPUTS, CLASSES = 50, 50, 256, 10
GPU = torch.cuda.is_available()
SIZES = {
    True: {
        "mlp": [(512, 512), (1024, 1024), (4096, 2048)],
        "rnn": [(64, 512), (128, 1024), (256, 4096)],
    },
    False: {"mlp": [(64, 64), (128, 256)], "rnn": [(16, 64), (32, 128)]},
}[GPU]


# ------------------------------------------------------------------ the two programs, for any NumPy-like module
def mlp(np: Any) -> Callable:
    def loss(weights: list, x: Any, target: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return ((x - target) ** 2).mean()

    return loss


def rnn(np: Any) -> Callable:
    def loss(weights: list, x: Any, target: Any) -> Any:
        w_x, w_h, w_y = weights
        h = x[:, 0] @ w_x
        for t in range(1, STEPS):
            h = np.tanh(x[:, t] @ w_x + h @ w_h)
        return ((h @ w_y - target) ** 2).mean()

    return loss


def data(workload: str, batch: int, width: int) -> tuple[list, Any, Any]:
    """(weights, x, target): random, so that nothing is zero."""
    rng = numpy.random.default_rng(0)
    draw = lambda *shape: (rng.standard_normal(shape) / shape[-1] ** 0.5).astype("f4")
    if workload == "mlp":
        return [draw(width, width) for _ in range(DEPTH)], draw(batch, width), draw(batch, width)
    return (
        [draw(INPUTS, width), draw(width, width), draw(width, CLASSES)],
        draw(batch, STEPS, INPUTS),
        draw(batch, CLASSES),
    )


# ------------------------------------------------------------------ contestants: a step, which returns when it is done
def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def ours(program: Callable, arrays: tuple, jit: bool) -> Callable[[], Any]:
    with minnp.Context("gpu" if GPU else "cpu", 0, "torch"):
        weights, x, target = [np.array(w) for w in arrays[0]], np.array(arrays[1]), np.array(arrays[2])
    gradient = minnp.grad(program(np))
    step = minnp.jit(gradient) if jit else gradient

    def run() -> Any:
        out = step(weights, x, target)
        wait()
        return out[0]

    return run


def torchs(program: Callable, arrays: tuple, compiled: bool) -> Callable[[], Any]:
    device = "cuda" if GPU else "cpu"
    weights = [torch.from_numpy(w).to(device).requires_grad_() for w in arrays[0]]
    x, target = (torch.from_numpy(a).to(device) for a in arrays[1:])
    loss = torch.compile(program(torch)) if compiled else program(torch)

    def run() -> Any:
        out = torch.autograd.grad(loss(weights, x, target), weights)
        wait()
        return out[0]

    return run


def jaxs(program: Callable, arrays: tuple) -> Callable[[], Any]:
    import jax
    import jax.numpy

    step = jax.jit(jax.grad(program(jax.numpy)))
    weights, x, target = [jax.numpy.array(w) for w in arrays[0]], *map(jax.numpy.array, arrays[1:])
    return lambda: jax.block_until_ready(step(weights, x, target))[0]


def contestants(compile_torch: bool) -> dict[str, Callable]:
    found: dict[str, Callable] = {
        "minnp": lambda p, a: ours(p, a, False),
        "minnp jit": lambda p, a: ours(p, a, True),
        "torch": lambda p, a: torchs(p, a, False),
    }
    if not hasattr(minnp, "jit"):
        del found["minnp jit"]
    if compile_torch:
        found["torch.compile"] = lambda p, a: torchs(p, a, True)
    if importlib.util.find_spec("jax"):
        found["jax.jit"] = jaxs
    return found


def as_numpy(x: Any) -> numpy.ndarray:
    return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else numpy.asarray(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="*", choices=["mlp", "rnn"], default=["mlp", "rnn"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which compiles for minutes")
    options = parser.parse_args()
    where = (
        torch.cuda.get_device_name(0)
        if GPU
        else f"no GPU here: the CPU at smaller sizes, {torch.get_num_threads()} threads"
    )
    print(f"torch {torch.__version__}; {where}; milliseconds of forward + backward, float32")
    for workload in options.workloads:
        program = {"mlp": mlp, "rnn": rnn}[workload]
        for batch, width in SIZES[workload]:
            arrays = data(workload, batch, width)
            steps = {}
            for name, make in contestants(not options.no_compile).items():
                steps[name] = make(program, arrays)
                steps[name]()  # compile, warm up
                steps[name]()
            reference = as_numpy(steps["torch"]())
            times: dict[str, list] = {name: [] for name in steps}
            for _ in range(options.repeat):
                for name, step in steps.items():
                    start = time.perf_counter()
                    result = step()
                    times[name].append(1e3 * (time.perf_counter() - start))
                    assert numpy.allclose(as_numpy(result), reference, rtol=1e-2, atol=1e-5), name
            shown = "  ".join(f"{name} {statistics.median(t):.2f}" for name, t in times.items())
            print(f"{workload} batch {batch:5} width {width:5}:  {shown}", flush=True)


if __name__ == "__main__":
    main()
