"""The pictures of the documentation's first page, drawn from programs that run and times that are measured here.

    python benchmarks/pictures.py [--only speed ...] [--rounds 15]

Written to docs/pictures as SVG: mandelbrot, training, speed, graph (needs Graphviz's `dot`) and timeline. Times are the
least of all rounds in one process, the contestants in turn, which other work on the machine disturbs least. A
peer that is not installed is left out. `./run pictures` has all peers.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as onp
from small_calls import chain
from turns import take_turns

import minnp
import minnp.numpy as np
from minnp import fx, nn
from minnp.utils.minprof import minprof

matplotlib.use("svg")
from matplotlib import pyplot as plt

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
# The same picture for the same numbers: no dates, no random names; letters stay letters.
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "minnp",
        "svg.fonttype": "none",
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)
OURS, THEIRS = "#1f5fbf", "#b8c0cc"


def save(name: str, figure: Any) -> None:
    figure.savefig(PICTURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None}, transparent=False)
    plt.close(figure)


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def mandelbrot() -> None:
    y, x = np.mgrid[-1.25:1.25:240j, -2.1:0.6:260j]
    c = x + 1j * y
    z, count = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(40):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        count += inside
    figure, axes = plt.subplots(figsize=(5, 4.6), dpi=80)
    axes.imshow(count, cmap="magma", extent=(-2.1, 0.6, -1.25, 1.25))
    axes.set_xlabel("Re c")
    axes.set_ylabel("Im c")
    save("mandelbrot", figure)


def training() -> None:
    data = nn.io.digits()
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    history = net.fit(data.x_train, data.y_train, epochs=10, verbose=False, validation_data=(data.x_test, data.y_test))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    epochs = range(1, 11)
    losses = history["loss"]
    left.plot(onp.linspace(0, 10, len(losses)), losses, color=OURS)
    left.set(xlabel="epoch", ylabel="loss of training", ylim=(0, None))
    right.plot(epochs, [100 * a for a in history["val_accuracy"]], color=OURS, marker="o")
    right.set(xlabel="epoch", ylabel="right on new digits (%)")
    figure.tight_layout()
    save("training", figure)


def gradients() -> dict[str, Callable]:
    """The gradient of a chain of 11 operations on ten numbers."""
    x, y = onp.linspace(0.1, 1, 10, dtype="f4"), onp.linspace(1, 2, 10, dtype="f4")
    ours, a, b = minnp.grad(chain(np)), np.array(x), np.array(y)
    fast = minnp.jit(ours)
    runs: dict[str, Callable] = {"minnp": lambda: ours(a, b), "minnp, jit": lambda: fast(a, b)}
    if installed("torch"):
        import torch

        tx, ty = torch.tensor(x, requires_grad=True), torch.tensor(y)
        runs["PyTorch"] = lambda: torch.autograd.grad(chain(torch)(tx, ty), tx)
    if installed("autograd"):
        import autograd
        import autograd.numpy as anp

        theirs = autograd.grad(chain(anp))
        runs["autograd"] = lambda: theirs(x, y)
    if installed("jax"):
        import jax
        import jax.numpy as jnp

        quick, jx, jy = jax.jit(jax.grad(chain(jnp))), jnp.asarray(x), jnp.asarray(y)
        runs["JAX, jit"] = lambda: quick(jx, jy).block_until_ready()
    return runs


def compiled() -> dict[str, Callable]:
    """A chain of elementwise operations and a sum over a million float32, compiled."""

    def f(xp: Any, x: Any) -> Any:
        return xp.sum(xp.exp(-x * x) * xp.tanh(x) + xp.sqrt(xp.abs(x)))

    x = onp.linspace(-2, 2, 1_000_000, dtype="f4")
    ours, a = minnp.jit(lambda x: f(np, x)), np.array(x)
    runs: dict[str, Callable] = {"minnp": lambda: ours(a)}
    if installed("jax"):
        import jax
        import jax.numpy as jnp

        theirs, jx = jax.jit(lambda x: f(jnp, x)), jnp.asarray(x)
        runs["JAX"] = lambda: theirs(jx).block_until_ready()
    if installed("torch"):
        import torch

        tx, compile_torch = torch.tensor(x), torch.compile(lambda x: f(torch, x))
        runs["PyTorch"] = lambda: compile_torch(tx)
    runs["NumPy"] = lambda: f(onp, x)
    return runs


def loop() -> dict[str, Callable]:
    """Ten sweeps of Gauss-Seidel over 1,000 numbers: a loop over elements."""

    def sweeps(u: Any, f: Any) -> Any:
        for _ in range(10):
            for i in range(1, len(u) - 1):
                u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])
        return u

    u, f = onp.zeros(1000), onp.full(1000, -0.5)
    ours, a, b = minnp.jit(sweeps), np.array(u), np.array(f)
    return {"minnp": lambda: ours(a, b), "NumPy": lambda: sweeps(u, f)}


def speed(rounds: int) -> None:
    groups = [
        ("gradient, 10 numbers", "µs", 1e6, gradients(), 50),
        ("compiled chain, 1,000,000 numbers", "ms", 1e3, compiled(), 3),
        ("loop over elements, 10,000 turns", "ms", 1e3, loop(), 1),
    ]
    figure, axes = plt.subplots(3, 1, figsize=(7, 6), height_ratios=[5, 4, 2])
    for axis, (title, unit, scale, runs, inner) in zip(axes, groups):
        taken = {name: min(t) * scale for name, t in take_turns(runs, rounds, inner).items()}
        order = sorted(taken, key=taken.__getitem__, reverse=True)
        print(title, {name: f"{taken[name]:.3g} {unit}" for name in order})
        bars = axis.barh(order, [taken[n] for n in order], color=[OURS if "minnp" in n else THEIRS for n in order])
        axis.bar_label(bars, [f"{taken[n]:.3g} {unit}" for n in order], padding=3)
        axis.set_title(title, fontsize=11, loc="left")
        axis.set_xticks([])
        axis.spines["bottom"].set_visible(False)
        axis.margins(x=0.15)
    figure.tight_layout()
    save("speed", figure)


def graph() -> None:
    def swish(x: Any, w: Any) -> Any:
        y = x @ w
        y[0] = 0
        return y / (1 + np.exp(-y))

    program = fx.symbolic_trace(swish)
    fx.propagate_shapes(program.graph, np.ones((4, 3)), np.ones((3, 2)))
    for node in program.graph.nodes:  # which the picture shows
        node.meta["where"] = node.meta.get("where", "").replace(f"{PICTURES.parents[1]}/", "")
    fx.draw(program.graph, PICTURES / "graph.svg")


def timeline() -> None:
    data = nn.io.digits()
    net = nn.Sequential(
        nn.Lambda(lambda x: np.reshape(x, (-1, 1, 8, 8))),
        nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, minprof.timeline(str(Path(folder) / "trace.json")) as recorded:
        net.fit(data.x_train[:640], data.y_train[:640], epochs=1, verbose=False, batch_size=64)
    starts = [s.start for s in recorded.spans if s.name == "batch"]
    begin, end = min(itertools.pairwise(starts), key=lambda pair: pair[1] - pair[0])  # what no other work disturbed
    inside = [s for s in recorded.spans if begin <= s.start < end]
    figure, axis = plt.subplots(figsize=(7, 3))
    open_until: list[int] = []
    for span in sorted(inside, key=lambda s: (s.start, -s.duration)):
        while open_until and open_until[-1] <= span.start:
            open_until.pop()
        left, width, depth = (span.start - begin) / 1e6, span.duration / 1e6, len(open_until)
        axis.barh(-depth, width, left=left, height=0.9, color=(OURS, "#7fa6e0")[depth], edgecolor="white")
        if span.duration > (end - begin) / 6:
            axis.text(left + width / 2, -depth, span.name, ha="center", va="center", fontsize=9, color="white")
        elif span.duration > (end - begin) / 100:  # beside its row
            at = {"rotation": 60, "ha": "left"} if depth == 0 else {"rotation": -60, "ha": "left"}
            height, va = (0.5, "bottom") if depth == 0 else (-depth - 0.5, "top")
            axis.text(left + width / 2, height, span.name, va=va, fontsize=8, rotation_mode="anchor", **at)
        open_until.append(span.start + span.duration)
    axis.set(yticks=[], xlabel="milliseconds of one step", xlim=(0, None), ylim=(-2.6, 1.6))
    axis.spines["left"].set_visible(False)
    save("timeline", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["mandelbrot", "training", "speed", "graph", "timeline"]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    for name in options.only:
        globals()[name](*([options.rounds] if name == "speed" else []))


if __name__ == "__main__":
    main()
