"""The tutorials' models for autograd: the loss of minnp's parameter tree, as one writes it in autograd's NumPy.

Each takes {dotted name: NumPy array}, the tree of the model that its docstring names, and gives that model's loss;
tests/nn/test_training_peers.py compares values and gradients. There is no `x[i] = v` in autograd: sequences and stacks
are lists.
"""

from __future__ import annotations

import math
from typing import Any

import autograd.numpy as np
from autograd.scipy.signal import convolve

Tree = dict[str, Any]
NEGATIVE = -1e9  # a score that softmax makes 0


def softmax_loss(s: Any, y: Any) -> Any:
    s = s - np.max(s, axis=1, keepdims=True)
    return -np.mean((s - np.log(np.sum(np.exp(s), axis=1, keepdims=True)))[np.arange(len(y)), y])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def linear(p: Tree, name: str, x: Any) -> Any:
    return np.dot(x, p[f"{name}.w"]) + p[f"{name}.b"]


def mlp(p: Tree, x: Any, y: Any) -> Any:
    """Sequential(Linear, ReLU, Linear)"""
    return softmax_loss(linear(p, "2", np.maximum(linear(p, "0", x), 0)), y)


def convnet(p: Tree, x: Any, y: Any) -> Any:
    """Sequential(Conv2D(3, "same"), BatchNorm, ReLU, MaxPool2D, and again, Flatten, Linear)"""
    for first in (0, 4):
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
        w = p[f"{first}.w"][:, :, ::-1, ::-1]  # autograd's convolution flips its kernel
        x = convolve(x, w, axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid") + p[f"{first}.b"][:, None, None]
        mean = np.mean(x, axis=(0, 2, 3), keepdims=True)
        var = np.mean((x - mean) ** 2, axis=(0, 2, 3), keepdims=True)
        gamma, beta = (p[f"{first + 1}.{name}"][:, None, None] for name in ("gamma", "beta"))
        x = np.maximum(gamma * (x - mean) / np.sqrt(var + 1e-5) + beta, 0)
        n, c, h, w = x.shape
        x = np.max(np.max(x.reshape(n, c, h // 2, 2, w // 2, 2), axis=5), axis=3)
    return softmax_loss(linear(p, "9", x.reshape(len(x), -1)), y)


def lstm(p: Tree, x: Any, y: Any) -> Any:
    """char_lstm.CharLSTM"""
    size = p["lstm.Wh"].shape[0]
    inputs = np.dot(p["embedding.w"][x], p["lstm.Wx"]) + p["lstm.b"]
    h = c = np.zeros((len(x), size), inputs.dtype)
    hs = []
    for t in range(x.shape[1]):
        a = inputs[:, t] + np.dot(h, p["lstm.Wh"])
        gates = sigmoid(a[:, : 3 * size])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * np.tanh(a[:, 3 * size :])
        h = gates[:, 2 * size :] * np.tanh(c)
        hs.append(h)
    scores = linear(p, "score", np.stack(hs, axis=1).reshape(-1, size))
    return softmax_loss(scores, y.reshape(-1))


def layer_norm(p: Tree, name: str, x: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    var = np.mean(centred**2, axis=-1, keepdims=True)
    return p[f"{name}.gamma"] * centred / np.sqrt(var + 1e-5) + p[f"{name}.beta"]


def attention(p: Tree, name: str, x: Any, heads: int) -> Any:
    n, t, d = x.shape
    q, k, v = (
        np.swapaxes(linear(p, f"{name}.{part}", x).reshape(n, t, heads, d // heads), 1, 2)
        for part in ("query", "key", "value")
    )
    scores = np.matmul(q, np.swapaxes(k, 2, 3)) / math.sqrt(d // heads)
    scores = np.where(np.tri(t, dtype=bool), scores, np.array(NEGATIVE, scores.dtype))
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = weights / np.sum(weights, axis=-1, keepdims=True)
    return linear(p, f"{name}.out", np.swapaxes(np.matmul(weights, v), 1, 2).reshape(n, t, d))


def transformer(p: Tree, x: Any, y: Any, heads: int = 4, answer: int = 6) -> Any:
    """addition.Adder"""
    h = p["embedding.w"][x] + p["position"][: x.shape[1]]
    for block in ("blocks.0", "blocks.1"):
        h = h + attention(p, f"{block}.attention", layer_norm(p, f"{block}.norm1", h), heads)
        wide = linear(p, f"{block}.wide", layer_norm(p, f"{block}.norm2", h))
        gelu = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        h = h + linear(p, f"{block}.narrow", gelu)
    scores = linear(p, "score", layer_norm(p, "norm", h))[:, answer - 1 :]
    return softmax_loss(scores.reshape(-1, scores.shape[2]), y[:, answer - 1 :].reshape(-1))


def lstm_cell(a: Any, *cells: Any) -> tuple[Any, Any]:
    """npx.lstm_cell"""
    n = cells[0].shape[1]
    gates = sigmoid(a[:, :-n])
    c = gates[:, :n] * np.tanh(a[:, -n:])
    for i, cell in enumerate(cells, 1):
        c = c + gates[:, i * n : (i + 1) * n] * cell
    return gates[:, -n:] * np.tanh(c), c


def spinn(p: Tree, words: Any, moves: Any, labels: Any) -> Any:
    """spinn.Spinn on sentences of one length: premises first, then hypotheses; moves are 0 to SHIFT, 1 to REDUCE."""
    n, hidden = len(words), p["leaf.w"].shape[1]
    vectors = p["embedding.w"][words]
    leaves, cells = linear(p, "leaf", vectors), linear(p, "cell", vectors)
    buffers = [[(h[i], c[i]) for i in reversed(range(len(h)))] for h, c in zip(leaves, cells)]
    zero = np.zeros(hidden, leaves.dtype)
    stacks = [[(zero, zero), (zero, zero)] for _ in buffers]
    tracker = cell = np.zeros((n, p["move.w"].shape[0]), leaves.dtype)
    trackers, last = [], leaves[:, -1]
    for step in moves.T:
        below, top = (np.stack([stack[-i][0] for stack in stacks]) for i in (2, 1))
        # an empty buffer shows its last word
        front = np.stack([buffer[-1][0] if buffer else last[i] for i, buffer in enumerate(buffers)])
        seen = np.concatenate([below, top, tracker], axis=1)
        tracker, cell = lstm_cell(linear(p, "front", front) + np.dot(seen, p["track.w"]), cell)
        trackers.append(tracker)
        which = [i for i, move in enumerate(step) if move == 1]
        if which:
            pair = np.concatenate([seen[which][:, : 2 * hidden], tracker[which]], axis=1)
            below, top = (np.stack([stacks[i][-j][1] for i in which]) for j in (2, 1))
            made = zip(*lstm_cell(linear(p, "compose", pair), below, top))
        for move, stack, buffer in zip(step, stacks, buffers):
            stack[len(stack) if move == 0 else -2 :] = [buffer.pop() if move == 0 else next(made)]
    sentences = np.stack([stack[-1][0] for stack in stacks])
    a, b = sentences[: len(labels)], sentences[len(labels) :]
    features = np.concatenate([a, b, np.abs(a - b), a * b], axis=1)
    scores = linear(p, "classify.2", np.maximum(linear(p, "classify.0", features), 0))
    guesses = linear(p, "move", np.stack(trackers, axis=1).reshape(-1, tracker.shape[1]))
    return softmax_loss(scores, labels) + 0.1 * softmax_loss(guesses, moves.reshape(-1))
