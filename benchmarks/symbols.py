"""A ResNet-50 as a symbol: inference and a training step, under MXNet and under minnp.symbol.

    python benchmarks/symbols.py [--size 224] [--batch 1] [--training-batch 4] [--rounds 10]
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/symbols.py --threads 1

Random weights (He et al. 2016, table 1), the same in both; needs mxnet 1.9.1. In turns, in one process:

mxnet           mx.sym, bound with simple_bind: forward, or forward(is_train=True) and backward, waited for
torch           minnp.symbol with the same calls, under the policy prefer_torch, where torch is installed
default         the same under minnp's default policy
torch frozen    minnp.jit(sym.Model(...).freeze(x)), for inference, under these policies: MXNet's executor, too, fuses
default frozen  layers, prepares weights once and runs the graph as one program
torch itself    a training step of the same network in torch

With one thread, times are of the processor, which other programs on the machine disturb least. Results and gradients
are compared first, in several calls, after which all is compiled and memory has stopped growing. Printed are medians in
milliseconds, their quartiles, and how fast the others are beside mxnet: the median of the ratios of the rounds, and its
quartiles. More than 1 is faster than MXNet.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp

sys.path.insert(0, str(Path(__file__).parent.parent))

import minnp
import minnp.symbol as sym
from benchmarks.turns import take_turns

if "mxnet" not in minnp.backends.installed():
    sys.exit("benchmarks/symbols.py compares with MXNet, which is not installed")

import mxnet as mx

WARM = 6  # calls of each before the first that is timed: executors compile in the second or third, and memory grows
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50(library: Any) -> Any:
    """The network in minnp.symbol or mx.sym, with a SoftmaxOutput."""

    def convolution(x: Any, name: str, filters: int, size: int, stride: int = 1, relu: bool = True) -> Any:
        x = library.Convolution(x, name=name, num_filter=filters, kernel=(size, size), stride=(stride, stride),
                                pad=(size // 2, size // 2), no_bias=True)  # fmt: skip
        x = library.BatchNorm(x, name=f"{name}_bn", fix_gamma=False, eps=1e-5)
        return library.Activation(x, act_type="relu", name=f"{name}_relu") if relu else x

    x = convolution(library.Variable("data"), "conv0", 64, 7, 2)
    x = library.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", name="pool0")
    for stage, (units, width) in enumerate(STAGES):
        for unit in range(units):
            name, stride = f"stage{stage}_unit{unit}", 2 if stage and not unit else 1
            y = convolution(x, f"{name}_conv1", width, 1)
            y = convolution(y, f"{name}_conv2", width, 3, stride)
            y = convolution(y, f"{name}_conv3", 4 * width, 1, relu=False)
            if unit == 0:
                x = convolution(x, f"{name}_shortcut", 4 * width, 1, stride, relu=False)
            x = library.Activation(y + x, act_type="relu", name=f"{name}_relu")
    x = library.Pooling(x, kernel=(7, 7), global_pool=True, pool_type="avg", name="pool1")
    x = library.FullyConnected(library.Flatten(x, name="flat"), num_hidden=1000, name="fc")
    return library.SoftmaxOutput(x, name="softmax")


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, onp.ndarray]:
    """Random ones, as if the network had been trained."""
    draw, out = onp.random.default_rng(0), {}
    for name, shape in shapes.items():
        if name.endswith("weight"):
            out[name] = draw.normal(0, (0.02 if name[:2] == "fc" else 2) ** 0.5 / onp.prod(shape[1:]) ** 0.5, shape)
        elif name.endswith(("gamma", "var")):
            out[name] = draw.uniform(0.5, 1.0, shape)
        elif name == "softmax_label":
            out[name] = draw.integers(0, 1000, shape)
        else:
            out[name] = draw.normal(0, 1.0 if name == "data" else 0.1, shape)
    return {n: a.astype(onp.float32) for n, a in out.items()}


def bound(library: Any, batch: int, size: int, training: bool) -> Any:
    """An executor with the weights in it."""
    context = mx.cpu() if library is mx.sym else None
    requests = "write" if training else "null"
    executor = resnet50(library).simple_bind(context, grad_req=requests, data=(batch, 3, size, size))
    for arrays in (executor.arg_dict, executor.aux_dict):
        for name, values in weights({n: a.shape for n, a in arrays.items()}).items():
            arrays[name][:] = values
    return executor


def contestants(batch: int, size: int, training: bool) -> dict[str, Callable[[], Any]]:
    ours, theirs = (bound(library, batch, size, training) for library in (sym, mx.sym))

    def mxnet() -> Any:
        results = theirs.forward(is_train=training)
        if training:
            theirs.backward()
        mx.nd.waitall()
        return results[0].asnumpy(), {n: g.asnumpy() for n, g in theirs.grad_dict.items() if g is not None}

    def minnps(policy: str) -> Callable[[], Any]:
        def run() -> Any:
            with minnp.policy(policy):
                results = ours.forward(is_train=training)
                if training:
                    ours.backward()
            return onp.asarray(results[0]), ours.grad_dict

        return run

    runs = {"mxnet": mxnet}
    policies = {"torch": "prefer_torch"} if "torch" in minnp.backends.installed() else {}
    policies["default"] = "auto"
    runs |= {name: minnps(policy) for name, policy in policies.items()}
    if not training:
        arguments = {n: onp.array(a) for n, a in ours.arg_dict.items()}
        x, label = arguments.pop("data"), arguments.pop("softmax_label")
        model = sym.Model(ours._symbol, arguments, ours.aux_dict).freeze(x, label)

        def predicts(policy: str) -> Callable[[], Any]:
            frozen = minnp.jit(model)

            def run() -> Any:
                with minnp.policy(policy):
                    return onp.asarray(frozen(x, label)), {}

            return run

        runs |= {f"{name} frozen": predicts(policy) for name, policy in policies.items()}
    elif "torch" in policies:
        runs["torch itself"] = torchs(ours.arg_dict["data"].shape)
    return runs


def torchs(shape: tuple[int, ...]) -> Callable[[], Any]:
    """A training step of the network in torch, which has its own weights."""
    import torch
    from torch import nn

    class Unit(nn.Module):
        def __init__(self, channels: int, width: int, stride: int, first: bool) -> None:
            super().__init__()
            steps = (channels, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)
            layers = [layer for step in steps for layer in (*convolved(*step), nn.ReLU())]
            self.body = nn.Sequential(*layers[:-1])
            self.side = nn.Sequential(*convolved(channels, 4 * width, 1, stride)) if first else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.side(x))

    def convolved(channels: int, filters: int, size: int, stride: int) -> list:
        return [nn.Conv2d(channels, filters, size, stride, size // 2, bias=False), nn.BatchNorm2d(filters)]

    layers, channels = [*convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (units, width) in enumerate(STAGES):
        for unit in range(units):
            layers.append(Unit(channels, width, 2 if stage and not unit else 1, not unit))
            channels = 4 * width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    x, label = torch.randn(shape), torch.arange(shape[0])

    def run() -> None:
        net.zero_grad()
        nn.functional.cross_entropy(net(x), label).backward()

    return run


def check(runs: dict[str, Callable[[], Any]]) -> None:
    """Raise AssertionError where results or gradients are not the same."""
    result, gradients = runs["mxnet"]()
    for name, run in runs.items():
        if name == "torch itself":
            continue
        other, others = run()
        off = abs(other - result).max() / abs(result).max()
        assert off < 1e-2, f"{name}: the results are off by {off:.1e}"
        for n, g in gradients.items():
            off = onp.linalg.norm(onp.asarray(others[n]) - g) / (onp.linalg.norm(g) + 1e-6)
            assert off < 5e-2, f"{name}: the gradient of {n} is off by {off:.1e}"


def report(what: str, taken: dict[str, list[float]]) -> None:
    for name, seconds in taken.items():
        low, middle, high = (1e3 * q for q in statistics.quantiles(seconds, n=4))
        slow, ratio, fast = statistics.quantiles([a / b for a, b in zip(taken["mxnet"], seconds)], n=4)
        print(f"{what:22}{name:15}{middle:9.1f} ms ({low:.1f}-{high:.1f}){ratio:8.2f} ({slow:.2f}-{fast:.2f})",
              flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--training-batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    minnp.set_num_threads(given.threads)
    if "torch" in minnp.backends.installed():
        import torch

        torch.set_num_threads(given.threads)
    print(f"minnp {minnp.__version__}, mxnet {mx.__version__}, {given.threads} threads, load {os.getloadavg()[0]:.1f}")
    for what, batch, training in (
        (f"inference, batch {given.batch}", given.batch, False),
        (f"training, batch {given.training_batch}", given.training_batch, True),
    ):
        runs = contestants(batch, given.size, training)
        for _ in range(WARM):
            check(runs)
        clock = time.process_time if given.threads == 1 else time.perf_counter
        report(what, take_turns(runs, given.rounds, clock=clock))


if __name__ == "__main__":
    main()
