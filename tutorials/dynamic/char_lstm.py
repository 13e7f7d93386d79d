# %% [markdown]
# # A recurrent net that writes source code
#
# An LSTM reads a text, the sources of `minnp.nn`, one character at a time and predicts the next one. Then it writes a
# text of its own. How well it reads is measured in bits per character: a model that knows only how frequent each
# character is needs more than four.

# %%
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

QUICK = bool(os.environ.get("QUICK"))  # a shorter text and a smaller net, for a test of this program


def read_text(limit):
    """The first `limit` characters of the sources of minnp.nn."""
    return "".join(path.read_text() for path in sorted(Path(nn.__file__).parent.glob("*.py")))[:limit]


# %% [markdown]
# ## The model
#
# Characters become vectors, the LSTM reads them, and a linear layer scores the character that follows each of them.


# %%
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


# %% [markdown]
# The text is cut into windows; the target of a window is the same window, moved by one character.


# %%
def windows(numbers, length):
    """(inputs, targets), each [N, length]: neighbouring pieces of the text, and the same moved by one character."""
    n = (len(numbers) - 1) // length
    return numbers[: n * length].reshape(n, length), numbers[1 : n * length + 1].reshape(n, length)


# %% [markdown]
# To write, each character is drawn from the softmax of the scores. A low temperature prefers what is likely.


# %%
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


# %% [markdown]
# ## The training

# %%
if __name__ == "__main__":  # other programs import the model
    limit, epochs, length, hidden = (20_000, 15, 40, 64) if QUICK else (60_000, 20, 40, 128)
    text = read_text(limit)
    characters = "".join(sorted(set(text)))
    numbers = np.array([characters.index(c) for c in text])
    cut = len(numbers) * 9 // 10
    x, y = windows(numbers[:cut], length)
    test_x, test_y = windows(numbers[cut:], length)
    counts = np.bincount(numbers[:cut], minlength=len(characters)) + 1
    baseline = -float(np.mean(np.log2(counts / counts.sum())[numbers[cut:]]))

    model = CharLSTM(len(characters), hidden)
    rate = nn.optim.cosine(epochs * -(-len(x) // 32), 0.02)
    history = model.fit(x, y, epochs=epochs, batch_size=32, learning_rate=5e-3, clip_norm=5.0, lr_schedule=rate,
                        validation_data=(test_x, test_y), metrics=(), restore_best=False, verbose=False)  # fmt: skip
    curve = [loss / math.log(2) for loss in history["val_loss"]]
    print(f"bits per new character: {curve[-1]:.3f}; knowing only their frequencies {baseline:.3f}")
    assert curve[-1] < baseline - 0.5

    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    axis.plot(range(1, epochs + 1), curve)
    axis.axhline(baseline, linestyle="--", color="grey", label="knowing only their frequencies")
    axis.set(title="Bits per new character", xlabel="epoch")
    axis.legend()
    plt.show()

# %% [markdown]
# ## What it writes after "def "

# %%
if __name__ == "__main__":
    sample = write(model, characters, "def ", 200, np.random.default_rng(0))
    print(sample)
    assert sample.startswith("def ") and len(sample) == 204
