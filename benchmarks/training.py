"""Training steps of the tutorials' models: minnp against torch and autograd, alternating in one process.

    python benchmarks/training.py [--models mlp convnet ...] [--repeat 15] [--threads 1]

A step is loss, gradients and Adam's update, in float32, on one batch that stays the same. Every model is written three
times, with the same operations (benchmarks/autograd_models.py has autograd's). Printed are medians in milliseconds
(with --cpu, minima of processor time) and torch's and autograd's divided by minnp's (jit's, where it is there): above 1
means that minnp is faster.
SPINN has a graph of its own for every batch, so minnp and torch are measured eagerly.
"""

from __future__ import annotations

import argparse
import copy
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

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tutorials" / "dynamic"))
import addition
import char_lstm
import entailment
import spinn
from turns import take_turns

RNG = onp.random.default_rng(0)
Step = Callable[[], Any]


def solver_of(model: nn.ModelBase, data: Any, labels: Any, jit: bool = False) -> nn.Solver:
    """A Solver whose one batch is all of the data."""
    batches = nn.io.NDArrayIter(data, labels, len(labels))
    return nn.Solver(model, batches, update_rule="adam", jit=jit, verbose=False, seed=0)


def batch_of(solver: nn.Solver) -> tuple[list, list]:
    batch = next(nn.io.each_batch(solver.train_dataiter))
    return batch.data, batch.label


def minnp_step(model: nn.ModelBase, data: Any, labels: Any, jit: bool = False) -> Step:
    """One training step of a model, by its Solver."""
    solver = solver_of(model, data, labels, jit)
    solver.init()
    batch = nn.io.DataBatch(*batch_of(solver))
    return lambda: solver._step(batch)


def autograd_step(model: nn.ModelBase, loss: Callable) -> Step:
    """The same step from autograd's gradient, with the same Adam on NumPy's arrays."""
    import autograd

    tree = {name: onp.array(value) for name, value in model.init(0).tree().items()}
    gradient, states = autograd.value_and_grad(loss), {name: {} for name in tree}

    def step() -> None:
        _, grads = gradient(tree)
        for name, w in tree.items():
            nn.optim.adam(w, grads[name], states[name])

    return step


def torch_step(module: torch.nn.Module, loss: Callable) -> Step:
    optimizer = torch.optim.Adam(module.parameters())

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return step


# ------------------------------------------------------------------ data, and models of minnp's
def mlp_net() -> tuple[nn.ModelBase, Any, Any]:
    x, y = RNG.standard_normal((50, 64)).astype("f"), RNG.integers(0, 10, 50)
    return nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 10)), x, y


def convnet_net() -> tuple[nn.ModelBase, Any, Any]:
    x, y = RNG.standard_normal((64, 1, 8, 8)).astype("f"), RNG.integers(0, 10, 64)
    steps = []
    for inputs, filters in ((1, 32), (32, 64)):
        steps += [nn.Conv2D(inputs, filters, 3, pad="same"), nn.BatchNorm(filters), nn.ReLU(), nn.MaxPool2D()]
    return nn.Sequential(*steps, nn.Flatten(), nn.Linear(256, 10)), x, y


def lstm_net() -> tuple[nn.ModelBase, Any, Any]:
    numbers = RNG.integers(0, 80, (32, 41))
    return char_lstm.CharLSTM(80), numbers[:, :-1], numbers[:, 1:]


def transformer_net() -> tuple[nn.ModelBase, Any, Any]:
    text = onp.asarray(addition.texts(np.arange(128) % 100, np.arange(128) * 7 % 100))
    return addition.Adder(), text[:, :-1], text[:, 1:]


def spinn_net() -> tuple[nn.ModelBase, Any, Any]:
    """Batch 32 pairs, 20 tokens, 128 hidden."""
    return spinn.Spinn(128), [*sentences(32, 20), *sentences(32, 20)], RNG.integers(0, 3, 32)


def sentences(count: int, length: int) -> tuple[Any, Any]:
    """Words and moves of `count` random binary trees of exactly `length` words."""

    def moves(words: int) -> list[int]:
        if words == 1:
            return [entailment.SHIFT]
        left = int(RNG.integers(1, words))
        return [*moves(left), *moves(words - left), entailment.REDUCE]

    return RNG.integers(1, len(entailment.WORDS), (count, length)), onp.array([moves(length) for _ in range(count)])


def for_autograd(name: str) -> tuple[nn.ModelBase, Any, Any, Callable]:
    """(minnp's model, data, labels, the loss of its tree in autograd's NumPy)."""
    from benchmarks import autograd_models

    model, x, y = NETS[name]()
    return model, x, y, autograd_loss(getattr(autograd_models, name), x, y)


def autograd_loss(loss: Callable, x: Any, y: Any) -> Callable:
    if isinstance(x, list):
        words, moves = onp.concatenate(x[::2]), onp.concatenate(x[1::2])
        return lambda tree: loss(tree, words, moves, y)
    return lambda tree: loss(tree, x, y)


# ------------------------------------------------------------------ the same for torch: data -> loss
TorchLoss = tuple[torch.nn.Module, Callable[[], torch.Tensor]]


def torch_mlp(x: Any, y: Any) -> TorchLoss:
    net = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 10))
    tx, ty = torch.tensor(x), torch.tensor(y)
    return net, lambda: F.cross_entropy(net(tx), ty)


def torch_convnet(x: Any, y: Any) -> TorchLoss:
    layers: list[torch.nn.Module] = []
    for inputs, filters in ((1, 32), (32, 64)):
        layers += [torch.nn.Conv2d(inputs, filters, 3, padding=1), torch.nn.BatchNorm2d(filters), torch.nn.ReLU(),
                   torch.nn.MaxPool2d(2)]  # fmt: skip
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(256, 10))
    tx, ty = torch.tensor(x), torch.tensor(y)
    return net, lambda: F.cross_entropy(net(tx), ty)


def torch_lstm(x: Any, y: Any) -> TorchLoss:
    embedding, score = torch.nn.Embedding(80, 24), torch.nn.Linear(128, 80)
    cell = torch.nn.LSTM(24, 128, batch_first=True)
    tx, ty = torch.tensor(x), torch.tensor(y).reshape(-1)
    net = torch.nn.ModuleList([embedding, cell, score])
    return net, lambda: F.cross_entropy(score(cell(embedding(tx))[0]).reshape(-1, 80), ty)


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


def torch_transformer(x: Any, y: Any) -> TorchLoss:
    net = TorchAdder()
    tx, ty = torch.tensor(x), torch.tensor(y)
    return net, lambda: F.cross_entropy(net(tx)[:, 5:].reshape(-1, 12), ty[:, 5:].reshape(-1))


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


def torch_spinn(x: Any, y: Any, kind: type = TorchSpinn) -> TorchLoss:
    net, tensors, answer = kind(128), [torch.tensor(d) for d in x], torch.tensor(y)
    return net, functools.partial(net.loss, tensors, answer)


NETS = {"mlp": mlp_net, "convnet": convnet_net, "lstm": lstm_net, "transformer": transformer_net, "spinn": spinn_net}
IN_TORCH = {"mlp": torch_mlp, "convnet": torch_convnet, "lstm": torch_lstm, "transformer": torch_transformer,
            "spinn": torch_spinn}  # fmt: skip
MODELS = tuple(NETS)


def steps_of(name: str) -> dict[str, Step]:
    """The steps to compare, by the library's name."""
    model, x, y, loss = for_autograd(name)
    steps = {"minnp": minnp_step(model, x, y)}
    if name != "spinn":
        steps["jit"] = minnp_step(copy.deepcopy(model), x, y, jit=True)
    steps |= {"torch": torch_step(*IN_TORCH[name](x, y)), "autograd": autograd_step(model, loss)}
    return steps | ({"torch, lists": torch_step(*torch_spinn(x, y, TorchSpinnLists))} if name == "spinn" else {})


def compare(steps: dict[str, Step], repeat: int, cpu: bool) -> dict[str, float]:
    """Milliseconds of each, taken in turns: the median, or the least processor time."""
    clock, summary = (time.process_time, min) if cpu else (time.perf_counter, statistics.median)
    for step in steps.values():
        for _ in range(3):
            step()
    return {name: 1e3 * summary(times) for name, times in take_turns(steps, repeat, clock=clock).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cpu", action="store_true", help="the least processor time, for a machine that is not quiet")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    minnp.set_num_threads(options.threads)
    columns = ("minnp", "jit", "torch", "autograd", "torch, lists")
    print(f"{'model':12}" + "".join(f"{c:>14}" for c in columns) + f"{'torch / ours':>14}{'autograd / ours':>17}   ms")
    for name in options.models:
        ms = compare(steps_of(name), options.repeat, options.cpu)
        ours = ms.get("jit", ms["minnp"])
        line = "".join(f"{ms[c]:>14.2f}" if c in ms else " " * 14 for c in columns)
        print(f"{name:12}{line}{ms['torch'] / ours:>14.2f}{ms['autograd'] / ours:>17.2f}", flush=True)
        if "torch, lists" in ms:
            print(f"{'':12}{'torch, lists / ours':>{14 * (len(columns) + 1)}}{ms['torch, lists'] / ours:>17.2f}")


if __name__ == "__main__":
    main()
