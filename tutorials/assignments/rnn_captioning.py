# %% [markdown]
# # 3.1 Captions by a recurrent net
#
# A picture of two digits goes in, a sentence comes out: "a three left of a five", or "a four beside another". The
# picture, through an affine layer, is the first hidden state; then each word with the state before it gives the next
# state, and the scores of the next word.

# %%
import captions
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad, value_and_grad
from minnp.nn import init, layers, optim

(pictures, words), (test_pictures, test_words) = captions.load(1000 if QUICK else 3000)
print(captions.decode(words[0][1:]), "|", captions.decode(words[1][1:]))
rng = np.random.default_rng(0)
N, T, D, H = 2, 5, 3, 4
x, h0 = rng.standard_normal((N, T, D)), rng.standard_normal((N, H))
wx, wh, b = rng.standard_normal((D, H)), rng.standard_normal((H, H)), rng.standard_normal(H)

# %% [markdown]
# ## Exercise: one step, and its gradient by hand
# `h' = tanh(x wx + h wh + b)`. The derivative of tanh is `1 - tanh^2`.


# %% exercise: step
def step(x, h, wx, wh, b):
    """h' [N, H] from x [N, D] and h [N, H]."""
    return todo()


# %% exercise: step_backward
def step_backward(g, x, h, wx, wh, b):
    """(dx, dh, dwx, dwh, db) for the gradient g of h'."""
    return todo()


# %%
check("step", step(x[:, 0], h0, wx, wh, b), layers.rnn_step(x[:, 0], h0, wx, wh, b))
g = rng.standard_normal((N, H))
expected = grad(lambda *args: np.sum(g * step(*args)), range(5))(x[:, 0], h0, wx, wh, b)
for name, yours, theirs in zip(("dx", "dh", "dwx", "dwh", "db"), step_backward(g, x[:, 0], h0, wx, wh, b), expected):
    check(f"step_backward: {name}", yours, theirs, "first da = g * (1 - h'^2); the rest are products with da")

# %% [markdown]
# ## Exercise: a whole sequence


# %% exercise: sequence
def sequence(x, h0, wx, wh, b):
    """h [N, T, H] of x [N, T, D]: h[:, t] is step(x[:, t], h[:, t - 1]), h0 before the first."""
    return todo()


# %%
check("sequence", sequence(x, h0, wx, wh, b), layers.rnn_temporal(x, h0, wx, wh, b), "np.stack(list, axis=1)")

# %% [markdown]
# ## Exercise: the loss
# Picture -> first state, `pictures @ wp + bp`; words -> vectors, `embedding[words]`; states -> scores, `h @ ws + bs`.
# The words in are `words[:, :-1]`, the words to predict `words[:, 1:]`; padding (word 0) does not count:
# `layers.temporal_softmax_loss(scores, targets, targets != 0)`.


# %% exercise: loss
def loss(p, pictures, words):
    """The mean over pictures of -log p(caption)."""
    return todo()


# %%
def initial(hidden, vector=16, seed=0):
    v, config = len(captions.WORDS), {"rng": np.random.default_rng(seed)}
    shapes = {
        "wp": (128, hidden),
        "embedding": (v, vector),
        "wx": (vector, hidden),
        "wh": (hidden, hidden),
        "ws": (hidden, v),
    }
    p = {name: init.xavier(shape, config) for name, shape in shapes.items()}
    return p | {"bp": np.zeros(hidden, "f"), "b": np.zeros(hidden, "f"), "bs": np.zeros(v, "f")}


p = {name: np.zeros_like(value) for name, value in initial(8).items()}
lengths = np.sum(words[:50, 1:] != 0, axis=1)
check("loss of zero parameters", loss(p, pictures[:50], words[:50]), lengths.mean() * np.log(len(captions.WORDS)),
      "every word is equally likely, and padding does not count")  # fmt: skip

# %% [markdown]
# ## Exercise: describing
# Start with "<start>" and feed the best word back in, `captions.LENGTH` times.


# %% exercise: describe
def describe(p, pictures):
    """Word numbers [N, LENGTH] for pictures [N, 128]."""
    return todo()


# %%
p = initial(96)
states = {name: {"learning_rate": 5e-3} for name in p}
update = value_and_grad(loss)
epochs = 25 if QUICK else 40
for epoch in range(epochs):
    order = rng.permutation(len(pictures))
    for i in range(0, len(order), 50):
        chosen = order[i : i + 50]
        value, gradients = update(p, pictures[chosen], words[chosen])
        gradients, _ = optim.clip_norm(gradients, 5.0)
        for name in p:
            states[name]["learning_rate"] = 5e-3 * (1 - epoch / epochs)
            optim.adam(p[name], gradients[name], states[name])
said = [captions.decode(s) for s in describe(p, test_pictures)]
true = [captions.decode(s[1:]) for s in test_words]
print(f"says {said[0]!r} where it is {true[0]!r}")
right = sum(a == b for a, b in zip(said, true)) / len(true)
check_at_least("captions that are right in every word", right, 0.6 if QUICK else 0.8)
