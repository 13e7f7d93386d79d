"""Training steps of the tutorials' models: minnp against torch (and autograd), alternating in one process.

    python benchmarks/training.py [--models mlp convnet ...] [--repeat 15] [--threads 1]

A step is loss, gradients and Adam's update, in float32, on one batch that stays the same. Every model is written twice,
with the same operations in the same order. Printed are medians in milliseconds and torch's divided by minnp's: above 1
means that minnp is faster. The column jit appears where minnp.jit exists; SPINN has a graph of its own for every batch,
so it is measured eagerly.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import torch
import torch.nn.functional as F

import minnp
import minnp.numpy as np
from minnp import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tutorials" / "dynamic"))
import addition
import char_lstm
import entailment
import spinn

RNG = onp.random.default_rng(0)
Step = Callable[[], Any]


def minnp_step(model: nn.ModelBase, data: Any, labels: Any, jit: bool = False) -> Step:
    """One training step of a model, by its Solver."""
    rows = len(labels)
    solver = nn.Solver(model, nn.io.NDArrayIter(data, labels, rows), update_rule="adam", jit=jit, verbose=False, seed=0)
    solver.init()
    batch = next(nn.io.each_batch(solver.train_dataiter))
    return lambda: solver._step(batch)


def torch_step(module: torch.nn.Module, loss: Callable) -> Step:
    optimizer = torch.optim.Adam(module.parameters())

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return step


# ------------------------------------------------------------------ models: (minnp's, torch's, autograd's) steps
def mlp(jit: bool) -> dict[str, Step]:
    x, y = RNG.standard_normal((50, 64)).astype("f"), RNG.integers(0, 10, 50)
    ours = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 10))
    theirs = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 10))
    tx, ty = torch.tensor(x), torch.tensor(y)
    steps = {"minnp": minnp_step(ours, x, y), "torch": torch_step(theirs, lambda: F.cross_entropy(theirs(tx), ty))}
    if jit:
        steps["jit"] = minnp_step(nn.Sequential(*ours.steps), x, y, jit=True)
    return steps | {"autograd": autograd_mlp(x, y)}


def autograd_mlp(x: Any, y: Any) -> Step:
    import autograd
    import autograd.numpy as anp

    def loss(p: dict) -> Any:
        s = anp.maximum(anp.dot(x, p["w1"]) + p["b1"], 0) @ p["w2"] + p["b2"]
        s = s - anp.max(s, axis=1, keepdims=True)
        return -anp.mean((s - anp.log(anp.sum(anp.exp(s), axis=1, keepdims=True)))[anp.arange(len(y)), y])

    shapes = {"w1": (64, 200), "b1": (200,), "w2": (200, 10), "b2": (10,)}
    p = {name: 0.1 * RNG.standard_normal(shape).astype("f") for name, shape in shapes.items()}
    gradient = autograd.value_and_grad(loss)
    states: dict[str, dict] = {name: {} for name in p}

    def step() -> None:
        _, g = gradient(p)
        for name, w in p.items():
            nn.optim.adam(w, g[name], states[name])

    return step


def convnet(jit: bool) -> dict[str, Step]:
    x, y = RNG.standard_normal((64, 1, 8, 8)).astype("f"), RNG.integers(0, 10, 64)

    def build() -> nn.Sequential:
        steps = []
        for inputs, filters in ((1, 32), (32, 64)):
            steps += [nn.Conv2D(inputs, filters, 3, pad="same"), nn.BatchNorm(filters), nn.ReLU(), nn.MaxPool2D()]
        return nn.Sequential(*steps, nn.Flatten(), nn.Linear(256, 10))

    layers: list[torch.nn.Module] = []
    for inputs, filters in ((1, 32), (32, 64)):
        layers += [torch.nn.Conv2d(inputs, filters, 3, padding=1), torch.nn.BatchNorm2d(filters), torch.nn.ReLU(),
                   torch.nn.MaxPool2d(2)]  # fmt: skip
    theirs = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(256, 10))
    tx, ty = torch.tensor(x), torch.tensor(y)
    steps = {"minnp": minnp_step(build(), x, y), "torch": torch_step(theirs, lambda: F.cross_entropy(theirs(tx), ty))}
    return steps | ({"jit": minnp_step(build(), x, y, jit=True)} if jit else {})


def lstm(jit: bool) -> dict[str, Step]:
    numbers = RNG.integers(0, 80, (32, 41))
    x, y = numbers[:, :-1], numbers[:, 1:]
    embedding, cell, score = (
        torch.nn.Embedding(80, 24),
        torch.nn.LSTM(24, 128, batch_first=True),
        torch.nn.Linear(128, 80),
    )
    tx, ty = torch.tensor(x), torch.tensor(y).reshape(-1)
    theirs = torch.nn.ModuleList([embedding, cell, score])
    loss = lambda: F.cross_entropy(score(cell(embedding(tx))[0]).reshape(-1, 80), ty)
    steps = {"minnp": minnp_step(char_lstm.CharLSTM(80), x, y), "torch": torch_step(theirs, loss)}
    return steps | ({"jit": minnp_step(char_lstm.CharLSTM(80), x, y, jit=True)} if jit else {})


class TorchAdder(torch.nn.Module):
    def __init__(self, size: int = 48, heads: int = 4) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(12, size)
        self.position = torch.nn.Parameter(0.1 * torch.randn(8, size))
        layer = torch.nn.TransformerEncoderLayer
        gelu = lambda x: F.gelu(x, approximate="tanh")
        self.blocks = torch.nn.ModuleList(
            layer(size, heads, 4 * size, 0.0, gelu, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.norm, self.score = torch.nn.LayerNorm(size), torch.nn.Linear(size, 12)
        self.mask = torch.nn.Transformer.generate_square_subsequent_mask(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.embedding(x) + self.position
        for block in self.blocks:
            y = block(y, self.mask)
        return self.score(self.norm(y))


def transformer(jit: bool) -> dict[str, Step]:
    text = addition.texts(np.arange(128) % 100, np.arange(128) * 7 % 100)
    x, y = text[:, :-1], text[:, 1:]
    theirs = TorchAdder()
    tx, ty = (torch.tensor(onp.asarray(part)) for part in (x, y))
    loss = lambda: F.cross_entropy(theirs(tx)[:, 5:].reshape(-1, 12), ty[:, 5:].reshape(-1))
    steps = {"minnp": minnp_step(addition.Adder(), x, y), "torch": torch_step(theirs, loss)}
    return steps | ({"jit": minnp_step(addition.Adder(), x, y, jit=True)} if jit else {})


def torch_cell(a: torch.Tensor, *cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """npx.lstm_cell."""
    n = cells[0].shape[1]
    i, *forget, o = torch.sigmoid(a[:, :-n]).split(n, 1)
    c = i * torch.tanh(a[:, -n:])
    for f, cell in zip(forget, cells, strict=True):
        c = torch.addcmul(c, f, cell)
    return o * torch.tanh(c), c


class TorchSpinn(torch.nn.Module):
    """spinn.Spinn, line by line."""

    def __init__(self, hidden: int, tracking: int = 32, vector: int = 32) -> None:
        super().__init__()
        linear = torch.nn.Linear
        self.hidden, self.tracking = hidden, tracking
        self.embedding = torch.nn.Embedding(len(entailment.WORDS), vector)
        self.leaf, self.cell = linear(vector, hidden), linear(vector, hidden)
        self.front = linear(hidden, 4 * tracking)
        self.track = linear(2 * hidden + tracking, 4 * tracking, bias=False)
        self.compose = linear(2 * hidden + tracking, 5 * hidden)
        self.move = linear(tracking, 2)
        self.classify = torch.nn.Sequential(linear(4 * hidden, hidden), torch.nn.ReLU(), linear(hidden, 3))

    def encode(self, words: torch.Tensor, moves: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n, k = len(words), self.tracking
        fronts, belows, reducing, last = (
            [torch.from_numpy(onp.array(r)) for r in part] if type(part) is list else torch.from_numpy(onp.array(part))
            for part in spinn.plan(words.numpy(), moves.numpy())
        )
        rows = torch.arange(n)
        vectors = self.embedding(words)
        leaves = self.leaf(vectors)
        front = self.front(leaves)[rows, fronts]
        empty = torch.zeros(1, n, self.hidden)
        h = torch.cat([leaves[rows, fronts], empty])
        c = torch.cat([self.cell(vectors)[rows, fronts], empty])
        tracker, cell, trackers = torch.zeros(n, k), torch.zeros(n, k), []
        for t, (below, which) in enumerate(zip(belows, reducing)):
            seen = torch.cat([h[below, rows], h[t - 1], tracker], 1)
            tracker, cell = torch_cell(front[t] + self.track(seen), cell)
            trackers.append(tracker)
            if len(which):
                below = below[which]
                pair = torch.cat([h[below, which], h[t - 1, which], tracker[which]], 1)
                made = torch_cell(self.compose(pair), c[below, which], c[t - 1, which])
                h[t, which], c[t, which] = made
        return h[last, rows], self.move(torch.stack(trackers, 1))

    def loss(self, data: list[torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
        words, moves = torch.cat([data[0], data[2]]), torch.cat([data[1], data[3]])
        sentences, guesses = self.encode(words, moves)
        p, q = sentences[: len(labels)], sentences[len(labels) :]
        scores = self.classify(torch.cat([p, q, (p - q).abs(), p * q], 1))
        told = moves[:, : guesses.shape[1]].reshape(-1)
        return F.cross_entropy(scores, labels) + 0.1 * F.cross_entropy(guesses.reshape(-1, 2), told)


class TorchSpinnLists(TorchSpinn):
    """The same net in torch's usual way: a Python list of rows for each stack, as in PyTorch's own SNLI example."""

    def encode(self, words: torch.Tensor, moves: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, k = self.hidden, self.tracking
        vectors = self.embedding(words)
        buffers = [
            list(reversed(leaves.unbind(0))) for leaves in torch.cat([self.leaf(vectors), self.cell(vectors)], 2)
        ]
        empty = torch.zeros(2 * h)
        stacks = [[empty, empty] for _ in buffers]
        tracker, cell, trackers = torch.zeros(len(words), k), torch.zeros(len(words), k), []
        for step in moves.T:
            right, left = (torch.stack([stack[-i] for stack in stacks]) for i in (1, 2))
            word = torch.stack([buffer[-1] if buffer else empty for buffer in buffers])
            seen = torch.cat([left[:, :h], right[:, :h], tracker], 1)
            tracker, cell = torch_cell(self.front(word[:, :h]) + self.track(seen), cell)
            trackers.append(tracker)
            which = (step == entailment.REDUCE).nonzero()[:, 0].tolist()
            if which:
                pair = torch.cat([left[which, :h], right[which, :h], tracker[which]], 1)
                made = torch_cell(self.compose(pair), left[which, h:], right[which, h:])
                made = iter(torch.cat(made, 1).unbind(0))
            for move, stack, buffer in zip(step.tolist(), stacks, buffers):
                if move == entailment.SHIFT:
                    stack.append(buffer.pop())
                else:
                    stack[-2:] = [next(made)]
        return torch.stack([stack[2] for stack in stacks])[:, :h], self.move(torch.stack(trackers, 1))


def sentences(count: int, length: int) -> tuple[Any, Any]:
    """Words and moves of `count` random binary trees of exactly `length` words."""

    def moves(words: int) -> list[int]:
        if words == 1:
            return [entailment.SHIFT]
        left = int(RNG.integers(1, words))
        return [*moves(left), *moves(words - left), entailment.REDUCE]

    return RNG.integers(1, len(entailment.WORDS), (count, length)), onp.array([moves(length) for _ in range(count)])


def spinn_step(jit: bool) -> dict[str, Step]:
    """Batch 32 pairs, 20 tokens, 128 hidden; torch with our stack, and with lists."""
    data, labels = [*sentences(32, 20), *sentences(32, 20)], RNG.integers(0, 3, 32)
    tensors, answer = [torch.tensor(d) for d in data], torch.tensor(labels)
    steps = {"minnp": minnp_step(spinn.Spinn(128), data, labels)}
    for name, theirs in (("torch", TorchSpinn(128)), ("torch, lists", TorchSpinnLists(128))):
        steps[name] = torch_step(theirs, functools.partial(theirs.loss, tensors, answer))
    return steps


MODELS = {"mlp": mlp, "convnet": convnet, "lstm": lstm, "transformer": transformer, "spinn": spinn_step}


def compare(steps: dict[str, Step], repeat: int) -> dict[str, float]:
    """Median milliseconds of each, taken in turns."""
    for step in steps.values():
        for _ in range(3):
            step()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeat):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            taken[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    minnp.set_num_threads(options.threads)
    jit = hasattr(minnp, "jit")
    print(
        f"{'model':12}{'minnp':>9}{'jit':>9}{'torch':>9}{'autograd':>10}{'torch / minnp':>15}{'torch / jit':>13}   ms"
    )
    for name in options.models:
        ms = compare(MODELS[name](jit), options.repeat)
        shown = [f"{ms[k]:.2f}" if k in ms else "" for k in ("minnp", "jit", "torch", "autograd")]
        ratios = [f"{ms['torch'] / ms[k]:.2f}" if k in ms else "" for k in ("minnp", "jit")]
        print(f"{name:12}{shown[0]:>9}{shown[1]:>9}{shown[2]:>9}{shown[3]:>10}{ratios[0]:>15}{ratios[1]:>13}")
        for other in [k for k in ms if k not in ("minnp", "jit", "torch", "autograd")]:
            print(f"{'  ' + other:30}{ms[other]:>9.2f}{'':10}{ms[other] / ms['minnp']:>15.2f}")


if __name__ == "__main__":
    main()
