"""ResNet-50 with its batch norms folded into its convolutions, beside the same network as it was written.

    python benchmarks/folding.py [--size 224] [--repeat 10] [--threads 2] [--policy auto]

Batch 1, random weights (He et al. 2016, table 1, with strides in the 3x3 convolutions), under minnp's default policy
unless another is given. Alternating in one process:
  eager     the network as it was written: the reference
  graph     what fx.capture made of it
  folded    fx.fold_convolutions of that graph: one call for a convolution and all that follows it
  torch     the same network in torch, eager, in evaluation mode; and with its batch norms folded
Medians in milliseconds, their spread (quartiles), and the ratio of medians (and the median ratio of neighbours). With
one thread, times are of the processor, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

import minnp
import minnp.numpy as np
from minnp import fx, nn


class Bottleneck(nn.Layer):
    """relu(x + conv1x1(relu(bn(conv3x3(relu(bn(conv1x1(x)))))))), with a projection of x where shapes change."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *convolved(channels, width, 1), nn.ReLU(), *convolved(width, width, 3, stride), nn.ReLU(),
            *convolved(width, out, 1),
        )  # fmt: skip
        self.side = nn.Sequential(*convolved(channels, out, 1, stride)) if stride != 1 or channels != out else None

    def forward(self, x: Any, mode: str | None = None) -> Any:
        y = self.body(x, mode=mode)
        return nn.layers.relu(y + (x if self.side is None else self.side(x, mode=mode)))


def convolved(channels: int, filters: int, size: int, stride: int = 1) -> list:
    return [nn.Conv2D(channels, filters, size, stride, size // 2, bias=False), nn.BatchNorm(filters)]


def resnet50(classes: int = 1000) -> Any:
    layers: list = [*convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2D(3, 2, 1)]
    channels = 64
    for width, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(blocks):
            layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    model = nn.Sequential(*layers, nn.GlobalAvgPool2D(), nn.Linear(channels, classes)).init(0)
    random = numpy.random.default_rng(0)
    for layer in norms(model):  # as if they had seen data
        n = layer.params["gamma"].shape
        layer.params["gamma"] = np.array(random.uniform(0.5, 1, n).astype("f4"))
        layer.params["beta"] = np.array(random.normal(0, 0.1, n).astype("f4"))
        layer.aux_params["running_mean"] = np.array(random.normal(0, 0.1, n).astype("f4"))
        layer.aux_params["running_var"] = np.array(random.uniform(0.5, 1.5, n).astype("f4"))
    return model


def norms(layer: Any) -> list:
    return [layer] if isinstance(layer, nn.BatchNorm) else [n for _, child in layer.children() for n in norms(child)]


def in_torch(model: Any, fold: bool) -> Callable:
    """The same network in torch, in evaluation mode."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    def converted(layers: list) -> Any:
        out: list = []
        for layer in layers:
            tensors = {k: torch.tensor(numpy.array(v)) for k, v in {**layer.params, **layer.aux_params}.items()}
            if isinstance(layer, nn.Conv2D):
                w = tensors["w"]
                made = torch.nn.Conv2d(w.shape[1], w.shape[0], w.shape[2], layer.stride, layer.padding, bias=False)
                made.weight.data = w
            elif isinstance(layer, nn.BatchNorm):
                made = torch.nn.BatchNorm2d(len(tensors["gamma"]), layer.eps)
                made.weight.data, made.bias.data = tensors["gamma"], tensors["beta"]
                made.running_mean, made.running_var = tensors["running_mean"], tensors["running_var"]
                if fold:
                    made = fuse_conv_bn_eval(out.pop().eval(), made.eval())
            elif isinstance(layer, nn.ReLU):
                made = torch.nn.ReLU(inplace=True)
            elif isinstance(layer, nn.MaxPool2D):
                made = torch.nn.MaxPool2d(layer.kernel_size, layer.stride, layer.padding)
            elif isinstance(layer, nn.GlobalAvgPool2D):
                made = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
            elif isinstance(layer, nn.Linear):
                made = torch.nn.Linear(*tensors["w"].shape)
                made.weight.data, made.bias.data = tensors["w"].T.contiguous(), tensors["b"]
            else:
                made = Block(converted(layer.body.steps), layer.side and converted(layer.side.steps))
            out.append(made)
        return torch.nn.Sequential(*out)

    class Block(torch.nn.Module):
        def __init__(self, body: Any, side: Any) -> None:
            super().__init__()
            self.body, self.side = body, side

        def forward(self, x: Any) -> Any:
            return torch.relu_(self.body(x) + (x if self.side is None else self.side(x)))

    net = converted(model.steps).eval()

    def run(x: Any) -> Any:
        with torch.no_grad():
            return net(torch.from_numpy(x)).numpy()

    return run


def measure(contestants: dict[str, Callable], repeat: int, clock: Callable) -> dict[str, list[float]]:
    """Seconds of each, alternating."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(repeat + 2):
        for name, run in contestants.items():
            start = clock()
            run()
            if i > 1:
                times[name].append(clock() - start)
    return times


def report(times: dict[str, list[float]], base: str) -> None:
    reference = statistics.median(times[base])
    print(f"{'':22}{'median ms':>10}{'quartiles':>18}{'of ' + base:>14}")
    for name, seconds in times.items():
        low, middle, high = (1e3 * q for q in statistics.quantiles(seconds, n=4))
        paired = statistics.median(a / b for a, b in zip(seconds, times[base], strict=True))
        spread = f"{low:.1f} - {high:.1f}"
        print(f"{name:22}{middle:10.1f}{spread:>18}{middle / 1e3 / reference:9.2f} ({paired:.2f})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, default=224)
    options.add_argument("--repeat", type=int, default=10)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--policy", default="auto")
    given = options.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    if has_torch:
        import torch

        torch.set_num_threads(given.threads)
    minnp.set_num_threads(given.threads)
    model = resnet50()
    x = numpy.random.default_rng(1).normal(size=(1, 3, given.size, given.size)).astype("f4")
    print(
        f"minnp {minnp.__version__}, numpy {numpy.__version__}, torch {torch.__version__ if has_torch else 'absent'}, "
        f"policy {given.policy}, {given.threads} threads, load {os.getloadavg()[0]:.1f}"
    )
    with minnp.policy(given.policy):
        eager = lambda: model(np.asarray(x), mode="test")
        start = time.perf_counter()
        graph = fx.capture(lambda x: model(x, mode="test"), x)
        captured = time.perf_counter()
        folded = fx.GraphModule(graph, fx.fold_convolutions(graph.graph.copy()))
        print(f"captured in {captured - start:.2f} s, folded in {time.perf_counter() - captured:.2f} s: "
              f"{len(graph.graph)} nodes, then {len(folded.graph)}")  # fmt: skip
        print(f"{fx.flops(graph.graph) / 1e9:.2f} GFLOP; {fx.memory(graph.graph)}")
        contestants = {"eager": eager, "graph": lambda: graph(x), "folded": lambda: folded(x)}
        if has_torch:
            for name, fold in {"torch": False, "torch folded": True}.items():
                contestants[name] = partial(in_torch(model, fold), x)
        want = numpy.asarray(eager())
        for name, run in contestants.items():
            off = numpy.abs(numpy.asarray(run()) - want).max() / numpy.abs(want).max()
            assert off < 1e-3, f"{name} is off by {off:.1e}"
        times = measure(contestants, given.repeat, time.thread_time if given.threads == 1 else time.perf_counter)
    report(times, "eager")
    less = 1 - statistics.median(times["folded"]) / statistics.median(times["eager"])
    print(f"folded against eager: {less:.0%} less time (torch.fx's paper: 40 %)")


if __name__ == "__main__":
    main()
