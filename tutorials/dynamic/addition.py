# %% [markdown]
# # A small transformer learns to add
#
# From examples like `27+58=580` a transformer learns addition. The sum is written backwards, 580 for 085, so that each
# digit depends on what is already written: the carry is in sight. The model sees a text as a language model does, token
# after token, and is tested on sums that it has never seen.

# %%
import os

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

QUICK = bool(os.environ.get("QUICK"))  # few examples and epochs, for a test of this program

# %% [markdown]
# ## Sums as texts

# %%
TOKENS = "0123456789+="
DIGITS = 2
ANSWER = 2 * DIGITS + 2  # where the answer starts: after "27+58="


def texts(a, b):
    """Token numbers [N, 3 DIGITS + 3] of a + b = (a + b) backwards."""
    columns = [a // 10**k % 10 for k in reversed(range(DIGITS))] + [np.full_like(a, 10)]
    columns += [b // 10**k % 10 for k in reversed(range(DIGITS))] + [np.full_like(a, 11)]
    columns += [(a + b) // 10**k % 10 for k in range(DIGITS + 1)]
    return np.stack(columns, axis=1)


"".join(TOKENS[token] for token in texts(np.array([27]), np.array([58]))[0])

# %% [markdown]
# ## The model
#
# Each position sees itself and what stands before it (`causal=True`) and scores what comes next. Only the tokens of the
# answer enter the loss, because the question is not to be guessed.


# %%
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


# %% [markdown]
# To add, the model writes three digits, one at a time, and reads what it wrote.


# %%
def add(model, a, b):
    """The sums as the model writes them, digit by digit."""
    text = texts(a, b)[:, :ANSWER]
    for _ in range(DIGITS + 1):
        text = np.concatenate([text, np.argmax(model(text)[:, -1:], axis=-1)], axis=1)
    written = np.minimum(text[:, ANSWER:], 9)
    return sum(written[:, k] * 10**k for k in range(DIGITS + 1))


# %% [markdown]
# ## The training
#
# There are 10,000 sums of two numbers below 100. The model sees half of them.

# %%
if __name__ == "__main__":  # other programs import the model
    epochs, fraction, batch = (2, 0.3, 128) if QUICK else (25, 0.5, 128)
    rng = np.random.default_rng(0)
    a, b = (g.ravel() for g in np.meshgrid(np.arange(10**DIGITS), np.arange(10**DIGITS)))
    order = rng.permutation(len(a))
    cut = int(len(a) * fraction)
    x = texts(a, b)
    train, test = order[:cut], order[cut : cut + 1000]
    model = Adder()
    rate = nn.optim.warmup(50, nn.optim.cosine(epochs * -(-cut // batch), 0.01))
    loss = model.fit(x[train, :-1], x[train, 1:], epochs=epochs, batch_size=batch, learning_rate=3e-3, clip_norm=1.0,
                     lr_schedule=rate, metrics=(), verbose=False)["loss"]  # fmt: skip
    print(f"loss {loss[0]:.3f} at first, {loss[-1]:.4f} at the end")
    assert loss[-1] < 0.8 * loss[0]

# %% [markdown]
# ## Sums that it has never seen

# %%
if __name__ == "__main__":
    sums = add(model, a[test], b[test])
    right = float(np.mean(sums == a[test] + b[test]))
    print(f"{right:.3f} of them are right, for example {a[test[0]]} + {b[test[0]]} = {sums[0]}")
    assert QUICK or right > 0.97

    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    axis.semilogy(loss)
    axis.set(title="Cross-entropy of a digit of the answer", xlabel="epoch")
    plt.show()
