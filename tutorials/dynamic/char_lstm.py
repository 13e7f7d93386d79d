"""A character LSTM that learns this repository's own text, and writes some.

    python tutorials/dynamic/char_lstm.py

The model reads one character at a time and predicts the next. How well is measured in bits per character: a model that
knows only how frequent characters are needs more than four.
"""

import argparse
import math
from pathlib import Path

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

ROOT = Path(__file__).parents[2]


def read_text(limit):
    """The first `limit` characters of the sources of minnp.nn."""
    return "".join(path.read_text() for path in sorted((ROOT / "minnp" / "nn").glob("*.py")))[:limit]


class CharLSTM(nn.ModelBase):
    """Scores [N, T, V] of the character after each of x [N, T]."""

    def __init__(self, characters, hidden=128, vector=24):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(characters, vector)
        self.lstm = nn.LSTM(vector, hidden)
        self.score = nn.Linear(hidden, characters)

    def forward(self, x, mode="test"):
        return self.score(self.lstm(self.embedding(x)))

    def loss(self, predict, y):
        return layers.softmax_loss(predict.reshape(-1, predict.shape[-1]), y.reshape(-1))


def windows(numbers, length):
    """(inputs, targets), each [N, length]: neighbouring pieces of the text, and the same moved by one character."""
    n = (len(numbers) - 1) // length
    return numbers[: n * length].reshape(n, length), numbers[1 : n * length + 1].reshape(n, length)


def write(model, characters, start, count, rng, temperature=0.6):
    """`count` characters after `start`, one at a time, each drawn from softmax(scores / temperature)."""
    h, c = np.zeros((1, model.hidden), np.float32), np.zeros((1, model.hidden), np.float32)
    text = start
    for i in range(len(start) + count - 1):
        x = model.embedding(np.array([characters.index(text[i])]))
        h, c = model.lstm.step(x, h, c)
        if i >= len(start) - 1:
            p = layers.softmax(model.score(h)[0].astype(np.float64) / temperature)
            text += characters[int(np.argmax(np.cumsum(p) > rng.random()))]
    return text


def main(limit=60_000, epochs=20, length=40, hidden=128):
    text = read_text(limit)
    characters = "".join(sorted(set(text)))
    numbers = np.array([characters.index(c) for c in text])
    cut = len(numbers) * 9 // 10
    x, y = windows(numbers[:cut], length)
    test_x, test_y = windows(numbers[cut:], length)
    counts = np.bincount(numbers[:cut], minlength=len(characters)) + 1
    frequencies = np.log2(counts / counts.sum())
    baseline = -float(np.mean(frequencies[numbers[cut:]]))

    model = CharLSTM(len(characters), hidden)
    steps = epochs * -(-len(x) // 32)
    history = model.fit(x, y, epochs=epochs, batch_size=32, learning_rate=5e-3, clip_norm=5.0, verbose=False,
                        validation_data=(test_x, test_y), lr_schedule=nn.optim.cosine(steps, 0.02), metrics=(),
                        restore_best=False)  # fmt: skip
    bits = history["val_loss"][-1] / math.log(2)
    print(f"bits per new character: {bits:.3f}; knowing only their frequencies {baseline:.3f}")
    sample = write(model, characters, "def ", 200, np.random.default_rng(0))
    print(sample)
    return {"bits": bits, "baseline": baseline, "text": sample}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=128)
    main(**vars(parser.parse_args()))
