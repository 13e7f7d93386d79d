"""A small transformer that learns to add, from examples like "27+58=58".

    python tutorials/dynamic/addition.py

The sum is written backwards, "27+58=580" for 085, so that each digit depends on what is already written: the carry is
in sight. The model sees a text as it sees language, token after token, and is tested on sums it has never seen.
"""

import argparse

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

TOKENS = "0123456789+="
DIGITS = 2
ANSWER = 2 * DIGITS + 2  # where the answer starts: after "27+58="


def texts(a, b):
    """Token numbers [N, 3 DIGITS + 3] of a + b = (a + b) backwards."""
    columns = [a // 10**k % 10 for k in reversed(range(DIGITS))] + [np.full_like(a, 10)]
    columns += [b // 10**k % 10 for k in reversed(range(DIGITS))] + [np.full_like(a, 11)]
    columns += [(a + b) // 10**k % 10 for k in range(DIGITS + 1)]
    return np.stack(columns, axis=1)


class Adder(nn.ModelBase):
    """Scores [N, T, 12] of the token after each of x [N, T]."""

    def __init__(self, size=48, heads=4, blocks=2):
        super().__init__()
        self.embedding = nn.Embedding(len(TOKENS), size)
        self.add_param("position", (3 * DIGITS + 2, size), init_rule="gaussian", init_config={"stdvar": 0.1})
        self.blocks = [nn.TransformerBlock(size, heads, causal=True) for _ in range(blocks)]
        self.norm, self.score = nn.LayerNorm(size), nn.Linear(size, len(TOKENS))

    def forward(self, x, mode="test"):
        y = self.embedding(x) + self.params["position"][: x.shape[1]]
        for block in self.blocks:
            y = block(y)
        return self.score(self.norm(y))

    def loss(self, predict, y):
        """Of the answer's tokens only: the question is not to be guessed."""
        answer = predict[:, ANSWER - 1 :]
        return layers.softmax_loss(answer.reshape(-1, len(TOKENS)), y[:, ANSWER - 1 :].reshape(-1))


def add(model, a, b):
    """The sums as the model writes them, digit by digit."""
    text = texts(a, b)[:, :ANSWER]
    for _ in range(DIGITS + 1):
        text = np.concatenate([text, np.argmax(model(text)[:, -1:], axis=-1)], axis=1)
    written = np.minimum(text[:, ANSWER:], 9)
    return sum(written[:, k] * 10**k for k in range(DIGITS + 1))


def main(epochs=25, fraction=0.5, size=48, batch=128):
    rng = np.random.default_rng(0)
    a, b = (g.ravel() for g in np.meshgrid(np.arange(10**DIGITS), np.arange(10**DIGITS)))
    order = rng.permutation(len(a))
    cut = int(len(a) * fraction)
    x = texts(a, b)
    train, test = order[:cut], order[cut : cut + 1000]
    model = Adder(size)
    steps = epochs * -(-cut // batch)
    rate = nn.optim.warmup(50, nn.optim.cosine(steps, 0.01))
    history = model.fit(x[train, :-1], x[train, 1:], epochs=epochs, batch_size=batch, learning_rate=3e-3, clip_norm=1.0,
                        lr_schedule=rate, metrics=(), verbose=False)  # fmt: skip
    right = float(np.mean(add(model, a[test], b[test]) == a[test] + b[test]))
    i = test[0]
    print(f"loss {history['loss'][0]:.3f} -> {history['loss'][-1]:.4f}; {right:.3f} of the sums it never saw are right")
    print(f"{int(a[i])} + {int(b[i])} = {int(add(model, a[test[:1]], b[test[:1]])[0])}")
    return {"right": right, "loss": history["loss"]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--fraction", type=float, default=0.5)
    main(**vars(parser.parse_args()))
