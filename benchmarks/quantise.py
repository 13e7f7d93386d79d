"""DeepRecommender's autoencoder in 8-bit integers, beside float32.

    python benchmarks/quantise.py [--items 17768] [--batch 256] [--repeat 20] [--steps 30] [--threads 2] [--policy auto]
                                  [--without-torch]

n-512-512-1024-512-512-n with SELU after every layer (Kuchaiev and Ginsburg 2017), n = 17,768 items. The data is made:
users and items have 16 hidden factors, each user has rated 1 % of the items from 1 to 5. The network is trained for a
few steps on it, calibrated on other users, and judged on ratings it was not shown. Under minnp's default policy, unless
another is given, alternating in one process:
  eager           the network as it was written, in float32: the reference
  graph           what fx.capture made of it
  int8            fx.quantize of the graph, a scale for each channel, and for each tensor
  torch           the same network in torch: functional.linear and selu (if installed)
--without-torch hides torch from minnp. With one thread, times are of the processor, which other programs on the machine
disturb least.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import minnp
import minnp.numpy as np
from minnp import backends, fx, nn, npx, value_and_grad

HIDDEN = (512, 512, 1024, 512, 512)


def selu(x: Any) -> Any:
    return npx.leaky_relu(x, act_type="selu")


def autoencoder(items: int) -> Any:
    sizes = (items, *HIDDEN, items)
    layers: list = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, init_rule="xavier"), selu]
    return nn.Sequential(*layers).init(0)


class Ratings:
    """Users with hidden tastes: `draw(n)` gives what they are asked with [n, items] and what they said elsewhere."""

    def __init__(self, items: int) -> None:
        self.random = numpy.random.default_rng(0)
        self.items = self.random.normal(size=(16, items)).astype("f4") / 4

    def draw(self, n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        tastes = self.random.normal(size=(n, 16)).astype("f4")
        scores = numpy.clip(numpy.rint(3 + 1.2 * (tastes @ self.items)), 1, 5).astype("f4")
        chance = self.random.random(scores.shape, numpy.float32)
        return numpy.where(chance < 0.01, scores, 0), numpy.where(chance > 0.99, scores, 0)


def train(model: Any, ratings: Ratings, steps: int) -> None:
    """Adam on the squared error of the ratings that were asked with, and of those elsewhere."""
    names = list(model.tree())
    values = [model.tree()[name] for name in names]
    first, second = ([np.zeros(v.shape, v.dtype) for v in values] for _ in range(2))

    def loss(values: list, x: Any, wanted: Any) -> Any:
        y = x
        for w, b in zip(values[::2], values[1::2], strict=True):
            y = selu(y @ w + b)
        return np.sum((y - wanted) ** 2 * (wanted > 0)) / np.sum(wanted > 0)

    for step in range(1, steps + 1):
        asked, elsewhere = ratings.draw(128)
        _, grads = value_and_grad(loss)(values, np.array(asked), np.array(asked + elsewhere))
        for v, g, m, s in zip(values, grads, first, second, strict=True):
            m += 0.1 * (g - m)
            s += 0.001 * (g * g - s)
            v -= (1e-3 / (1 - 0.9**step)) * m / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)


def in_torch(model: Any) -> Callable:
    import torch
    from torch.nn import functional

    layers = [
        (torch.tensor(numpy.array(s.params["w"]).T.copy()), torch.tensor(numpy.array(s.params["b"])))
        for s in model.steps
        if isinstance(s, nn.Linear)
    ]

    def run(x: Any) -> Any:
        with torch.no_grad():
            y = torch.from_numpy(x)
            for w, b in layers:
                y = functional.selu(functional.linear(y, w, b), inplace=True)
            return y.numpy()

    return run


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"items": 17768, "batch": 256, "repeat": 20, "steps": 30, "threads": os.cpu_count()}.items():
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--policy", default="auto")
    options.add_argument("--without-torch", action="store_true")
    given = options.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None and not given.without_torch
    if has_torch:
        import torch

        torch.set_num_threads(given.threads)
    else:
        backends.hide("torch")
    minnp.set_num_threads(given.threads)
    clock = time.thread_time if given.threads == 1 else time.perf_counter
    ratings, model = Ratings(given.items), autoencoder(given.items)
    with minnp.policy(given.policy):
        train(model, ratings, given.steps)
        x, wanted = ratings.draw(given.batch)
        gm = fx.capture(lambda x: model(x), x)
        batches = [ratings.draw(given.batch)[0] for _ in range(4)]
        contestants: dict[str, Callable] = {"eager": lambda x: model(np.asarray(x)), "graph": gm}
        for word in ("channel", "tensor"):
            graph = fx.quantize(gm.graph.copy(), batches, per_channel=word == "channel")
            contestants[f"int8 per {word}"] = fx.GraphModule(gm, graph)
        if has_torch:
            contestants["torch"] = in_torch(model)
        version = torch.__version__ if has_torch else "absent"
        print(f"minnp {minnp.__version__}, numpy {numpy.__version__}, torch {version}, policy "
              f"{given.policy}, {given.threads} threads, load {os.getloadavg()[0]:.1f}; "
              f"{fx.flops(gm.graph) / 1e9:.1f} GFLOP")  # fmt: skip
        exact = numpy.asarray(gm(x))
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for i in range(given.repeat + 2):
            for name, run in contestants.items():
                start = clock()
                run(x)
                if i > 1:
                    times[name].append(clock() - start)
        results = {name: numpy.asarray(run(x)) for name, run in contestants.items()}
    print(f"{'':18}{'median ms':>10}{'quartiles':>18}{'x eager':>9}{'rmse':>9}{'differs by':>11}")
    for name, y in results.items():
        rmse = numpy.sqrt(numpy.mean((y - wanted)[wanted > 0] ** 2))
        differs = numpy.sqrt(numpy.mean((y - exact) ** 2) / numpy.mean(exact**2))
        low, middle, high = (1e3 * q for q in statistics.quantiles(times[name], n=4))
        spread = f"{low:.1f} - {high:.1f}"
        ratio = statistics.median(times["eager"]) / statistics.median(times[name])
        print(f"{name:18}{middle:10.1f}{spread:>18}{ratio:9.2f}{rmse:9.4f}{differs:11.2%}")


if __name__ == "__main__":
    main()
