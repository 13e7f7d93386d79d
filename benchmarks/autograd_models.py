"""The tutorials' models for autograd: the loss of minnp's parameter tree, as one writes it in autograd's NumPy.

Each takes {dotted name: NumPy array}, the tree of the model that its docstring names, and gives that model's loss;
tests/nn/test_training_peers.py compares values and gradients. There is no `x[i] = v` in autograd: sequences and stacks
are lists.
"""

from __future__ import annotations

import math
from typing import Any

import autograd.numpy as np
import numpy as onp
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
    hs = lstm_states(p, p["embedding.w"][x], np.zeros((len(x), size), p["lstm.Wh"].dtype))
    scores = linear(p, "score", np.stack(hs, axis=1).reshape(-1, size))
    return softmax_loss(scores, y.reshape(-1))


def lstm_states(p: Tree, x: Any, h: Any) -> list:
    size, c, hs = p["lstm.Wh"].shape[0], np.zeros(h.shape, x.dtype), []
    inputs = np.dot(x, p["lstm.Wx"]) + p["lstm.b"]
    for t in range(x.shape[1]):
        a = inputs[:, t] + np.dot(h, p["lstm.Wh"])
        gates = sigmoid(a[:, : 3 * size])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * np.tanh(a[:, 3 * size :])
        h = gates[:, 2 * size :] * np.tanh(c)
        hs.append(h)
    return hs


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
    guesses = linear(p, "move", np.stack(trackers, axis=1).reshape(-1, tracker.shape[1]))
    return entailment_loss(p, sentences, labels) + 0.1 * softmax_loss(guesses, moves.reshape(-1))


def linear_classifier(p: Tree, x: Any, y: Any) -> Any:
    """Sequential(Linear)"""
    return softmax_loss(linear(p, "0", x), y)


def svm(p: Tree, x: Any, y: Any) -> Any:
    """training.Hinge"""
    s = linear(p, "0", x)
    return np.sum(np.maximum(s - s[np.arange(len(y)), y][:, None] + 1, 0)) / len(y) - 1


def batch_norm(p: Tree, x: Any, y: Any) -> Any:
    """Five times Linear, BatchNorm, ReLU; Linear"""
    for first in range(0, 15, 3):
        x = np.maximum(normalised(p, f"{first + 1}", linear(p, f"{first}", x)), 0)
    return softmax_loss(linear(p, "15", x), y)


def normalised(p: Tree, name: str, x: Any) -> Any:
    mean = np.mean(x, axis=0)
    var = np.mean((x - mean) ** 2, axis=0)
    return p[f"{name}.gamma"] * (x - mean) / np.sqrt(var + 1e-5) + p[f"{name}.beta"]


def dropout(p: Tree, x: Any, y: Any) -> Any:
    """Sequential(Linear, ReLU, Dropout(0.5), Linear)"""
    h = np.maximum(linear(p, "0", x), 0)
    kept = (onp.random.random(h.shape) < 0.5) / 0.5
    return softmax_loss(linear(p, "3", h * kept.astype(h.dtype)), y)


def caption_loss(p: Tree, hs: list, y: Any) -> Any:
    scores = linear(p, "score", np.stack(hs, axis=1))
    s = scores - np.max(scores, axis=2, keepdims=True)
    log_p = s - np.log(np.sum(np.exp(s), axis=2, keepdims=True))
    n, t = y.shape
    return -np.sum(log_p[np.arange(n)[:, None], np.arange(t), y] * (y != 0)) / n


def rnn_captions(p: Tree, x: Any, y: Any) -> Any:
    """training.Captioner(lstm=False)"""
    pictures, words = x
    h, vectors, hs = linear(p, "picture", pictures), p["embedding.w"][words], []
    for t in range(words.shape[1]):
        h = np.tanh(np.dot(vectors[:, t], p["lstm.Wx"]) + np.dot(h, p["lstm.Wh"]) + p["lstm.b"])
        hs.append(h)
    return caption_loss(p, hs, y)


def lstm_captions(p: Tree, x: Any, y: Any) -> Any:
    """training.Captioner(lstm=True)"""
    pictures, words = x
    h, vectors = linear(p, "picture", pictures), p["embedding.w"][words]
    return caption_loss(p, lstm_states(p, vectors, h), y)


def vae(p: Tree, x: Any, y: Any) -> Any:
    """vae.negative_bound"""
    images, noise = x
    hidden = linear(p, "0.2", np.tanh(linear(p, "0.0", images)))
    mean, log_variance = hidden[:, :8], hidden[:, 8:]
    z = mean + np.exp(0.5 * log_variance) * noise
    scores = linear(p, "1.2", np.tanh(linear(p, "1.0", z)))
    kl = 0.5 * np.sum(mean * mean + np.exp(log_variance) - log_variance - 1, axis=1)
    return np.mean(kl - np.sum(images * scores - np.logaddexp(0, scores), axis=1))


def policy(p: Tree, x: Any, y: Any) -> Any:
    """training.Policy"""
    actions, advantages = y
    s = linear(p, "2", np.tanh(linear(p, "0", x)))
    s = s - np.max(s, axis=1, keepdims=True)
    log_p = s - np.log(np.sum(np.exp(s), axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(actions)), actions] * advantages)


def bag(p: Tree, words: Any, moves: Any, labels: Any) -> Any:
    """spinn.BagOfWords"""
    sums = np.sum(p["embedding.w"][words] * (words != 0)[:, :, None], axis=1)
    return entailment_loss(p, sums, labels)


def entailment_loss(p: Tree, sentences: Any, labels: Any) -> Any:
    a, b = sentences[: len(labels)], sentences[len(labels) :]
    features = np.concatenate([a, b, np.abs(a - b), a * b], axis=1)
    return softmax_loss(linear(p, "classify.2", np.maximum(linear(p, "classify.0", features), 0)), labels)


def generator(p: Tree, noise: Any) -> Any:
    return np.tanh(linear(p, "3", np.maximum(normalised(p, "1", linear(p, "0", noise)), 0)))


def discriminator(p: Tree, x: Any) -> Any:
    for layer in ("0", "2"):
        x = linear(p, layer, x)
        x = np.where(x > 0, x, 0.01 * x)
    return linear(p, "4", x)[:, 0]


LOSSES = {f.__name__: f for f in (svm, mlp, batch_norm, dropout, convnet, rnn_captions, lstm_captions, lstm)}
LOSSES |= {f.__name__: f for f in (transformer, vae, policy, bag, spinn)} | {"linear": linear_classifier}
