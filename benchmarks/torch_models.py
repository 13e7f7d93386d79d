"""The tutorials' models for torch: (module, its loss) of minnp's data, as one writes it in PyTorch.

Each function is named as its row of benchmarks/training.py. The data are tensors made once; what a step draws (dropout)
it draws itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).parents[1] / "tutorials" / "dynamic"))
import entailment
import spinn

Linear, Sequential, ReLU = torch.nn.Linear, torch.nn.Sequential, torch.nn.ReLU
TorchLoss = tuple[torch.nn.Module, Callable[[], torch.Tensor]]


def of_scores(net: torch.nn.Module, x: Any, y: Any, loss: Callable = F.cross_entropy) -> TorchLoss:
    tx, ty = torch.tensor(x), torch.tensor(y)
    return net, lambda: loss(net(tx), ty)


def linear(x: Any, y: Any) -> TorchLoss:
    return of_scores(Linear(64, 10), x, y)


def svm(x: Any, y: Any) -> TorchLoss:
    hinge = lambda s, y: ((s - s.gather(1, y[:, None]) + 1).clamp_min(0).sum() - len(y)) / len(y)
    return of_scores(Linear(64, 10), x, y, hinge)


def mlp(x: Any, y: Any) -> TorchLoss:
    return of_scores(Sequential(Linear(64, 200), ReLU(), Linear(200, 10)), x, y)


def dropout(x: Any, y: Any) -> TorchLoss:
    return of_scores(Sequential(Linear(64, 300), ReLU(), torch.nn.Dropout(0.5), Linear(300, 10)), x, y)


def batch_norm(x: Any, y: Any) -> TorchLoss:
    steps: list[torch.nn.Module] = []
    for size in (64, 60, 60, 60, 60):
        steps += [Linear(size, 60), torch.nn.BatchNorm1d(60), ReLU()]
    return of_scores(Sequential(*steps, Linear(60, 10)), x, y)


def convnet(x: Any, y: Any) -> TorchLoss:
    layers: list[torch.nn.Module] = []
    for inputs, filters in ((1, 32), (32, 64)):
        layers += [torch.nn.Conv2d(inputs, filters, 3, padding=1), torch.nn.BatchNorm2d(filters), torch.nn.ReLU(),
                   torch.nn.MaxPool2d(2)]  # fmt: skip
    return of_scores(Sequential(*layers, torch.nn.Flatten(), Linear(256, 10)), x, y)


def lstm(x: Any, y: Any) -> TorchLoss:
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


def transformer(x: Any, y: Any) -> TorchLoss:
    net = TorchAdder()
    tx, ty = torch.tensor(x), torch.tensor(y)
    return net, lambda: F.cross_entropy(net(tx)[:, 5:].reshape(-1, 12), ty[:, 5:].reshape(-1))


def lstm_cell(a: torch.Tensor, *cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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
            tracker, cell = lstm_cell(front[t] + self.track(seen), cell)
            trackers.append(tracker)
            if len(which):
                below = below[which]
                pair = torch.cat([h[below, which], h[t - 1, which], tracker[which]], 1)
                made = lstm_cell(self.compose(pair), c[below, which], c[t - 1, which])
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
            tracker, cell = lstm_cell(self.front(word[:, :h]) + self.track(seen), cell)
            trackers.append(tracker)
            which = (step == entailment.REDUCE).nonzero()[:, 0].tolist()
            if which:
                pair = torch.cat([left[which, :h], right[which, :h], tracker[which]], 1)
                made = lstm_cell(self.compose(pair), left[which, h:], right[which, h:])
                made = iter(torch.cat(made, 1).unbind(0))
            for move, stack, buffer in zip(step.tolist(), stacks, buffers):
                if move == entailment.SHIFT:
                    stack.append(buffer.pop())
                else:
                    stack[-2:] = [next(made)]
        return torch.stack([stack[2] for stack in stacks])[:, :h], self.move(torch.stack(trackers, 1))


def spinn_of(x: Any, y: Any, kind: type = TorchSpinn) -> TorchLoss:
    net, tensors, answer = kind(128), [torch.tensor(d) for d in x], torch.tensor(y)
    return net, functools.partial(net.loss, tensors, answer)


class Captioner(torch.nn.Module):
    def __init__(self, cell: type, words: int, hidden: int = 96, vector: int = 16) -> None:
        super().__init__()
        self.picture, self.embedding = Linear(128, hidden), torch.nn.Embedding(words, vector)
        self.cell, self.score = cell(vector, hidden, batch_first=True), Linear(hidden, words)

    def forward(self, pictures: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        h = self.picture(pictures)[None]
        state = (h, torch.zeros_like(h)) if isinstance(self.cell, torch.nn.LSTM) else h
        return self.score(self.cell(self.embedding(words), state)[0])


def captions(cell: type, x: Any, y: Any) -> TorchLoss:
    (pictures, words), ty = map(torch.tensor, x), torch.tensor(y)
    net = Captioner(cell, 18)

    def loss() -> torch.Tensor:
        scores = net(pictures, words)
        return F.cross_entropy(scores.flatten(0, 1), ty.flatten(), ignore_index=0, reduction="sum") / len(ty)

    return net, loss


def vae(x: Any, y: Any) -> TorchLoss:
    images, noise = map(torch.tensor, x)
    encoder = Sequential(Linear(64, 128), torch.nn.Tanh(), Linear(128, 16))
    decoder = Sequential(Linear(8, 128), torch.nn.Tanh(), Linear(128, 64))

    def loss() -> torch.Tensor:
        mean, log_variance = encoder(images).chunk(2, 1)
        scores = decoder(mean + torch.exp(0.5 * log_variance) * noise)
        kl = 0.5 * (mean * mean + torch.exp(log_variance) - log_variance - 1).sum(1)
        ink = F.binary_cross_entropy_with_logits(scores, images, reduction="none").sum(1)
        return (kl + ink).mean()

    return Sequential(encoder, decoder), loss


def policy(x: Any, y: Any) -> TorchLoss:
    observations, actions, advantages = map(torch.tensor, (x, *y))
    net = Sequential(Linear(4, 32), torch.nn.Tanh(), Linear(32, 2))
    return net, lambda: (F.cross_entropy(net(observations), actions, reduction="none") * advantages).mean()


def bag(x: Any, y: Any) -> TorchLoss:
    words, ty = [torch.tensor(w) for w in x[::2]], torch.tensor(y)
    embedding = torch.nn.Embedding(len(entailment.WORDS), 64)
    classify = Sequential(Linear(256, 64), ReLU(), Linear(64, 3))

    def loss() -> torch.Tensor:
        p, q = ((embedding(w) * (w != 0)[:, :, None]).sum(1) for w in words)
        return F.cross_entropy(classify(torch.cat([p, q, (p - q).abs(), p * q], 1)), ty)

    return Sequential(embedding, classify), loss


def gan() -> tuple[torch.nn.Module, torch.nn.Module]:
    generator = Sequential(Linear(16, 64), torch.nn.BatchNorm1d(64), ReLU(), Linear(64, 64), torch.nn.Tanh())
    leaky = torch.nn.LeakyReLU
    return generator, Sequential(Linear(64, 64), leaky(), Linear(64, 32), leaky(), Linear(32, 1))


LOSSES = {f.__name__: f for f in (linear, svm, mlp, dropout, batch_norm, convnet, lstm, transformer, vae, policy, bag)}
LOSSES |= {"spinn": spinn_of, "rnn_captions": functools.partial(captions, torch.nn.RNN)}
LOSSES |= {"lstm_captions": functools.partial(captions, torch.nn.LSTM)}
