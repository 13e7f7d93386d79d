# %% [markdown]
# # 1.4 A two-layer net
#
# `h = max(0, x w1 + b1)`, `s = h w2 + b2`, and the softmax loss. The backward pass walks the same steps in the other
# order: this is all that `grad` does, so we do it once by hand.

# %%
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad
from minnp.nn import io
from minnp.nn.losses import softmax_loss

data = io.digits()
x_train, x_test = data.x_train.reshape(-1, 64), data.x_test.reshape(-1, 64)
y_train, y_test = data.y_train, data.y_test


def initial(hidden, rng):
    return {
        "w1": rng.standard_normal((64, hidden)) * (2 / 64) ** 0.5,
        "b1": np.zeros(hidden),
        "w2": rng.standard_normal((hidden, 10)) * (2 / hidden) ** 0.5,
        "b2": np.zeros(10),
    }


# %% [markdown]
# ## Exercise: forward


# %% exercise: scores
def scores(params, x):
    """s [N, 10] for x [N, 64]."""
    return todo()


# %%
params = initial(20, np.random.default_rng(0))
known = {"w1": np.eye(64), "b1": -np.ones(64), "w2": np.ones((64, 10)), "b2": np.arange(10.0)}
check("scores", scores(known, np.full((1, 64), 1.5)), [np.arange(10.0) + 32], "max(0, x w1 + b1) w2 + b2")

# %% [markdown]
# ## Exercise: backward
# Return the gradient of `softmax_loss(scores(params, x), y)` as a dict like params. From the softmax notebook,
# `ds = (p - one_hot(y)) / N`. Then: w2 saw h, so `dw2 = h.T @ ds`; h fed w2, so `dh = ds @ w2.T`; and so on.


# %% exercise: backward
def backward(params, x, y):
    """{name: gradient} of the loss."""
    return todo()


# %%
expected = grad(lambda p: softmax_loss(scores(p, x_train[:40]), y_train[:40]))(params)
got = backward(params, x_train[:40], y_train[:40])
for name, hint in {
    "b2": "the bias is added to every row: its gradient is ds summed over them",
    "w2": "h.T @ ds",
    "b1": "through the ReLU only where it was open: dh * (h > 0)",
    "w1": "x.T @ the gradient that came through the ReLU",
}.items():
    check(f"backward: {name}", got[name], expected[name], hint)

# %% [markdown]
# ## Exercise: train
# Minibatches of 50, `w -= rate * gradient` in place, the rate a little lower after each epoch. Use `backward` or `grad`.


# %% exercise: train
def train(params, x, y, epochs, rng, rate=0.5, decay=0.97):
    """Train in place."""
    return todo()


# %%
params = initial(100, np.random.default_rng(0))
train(params, x_train, y_train, 10 if QUICK else 60, np.random.default_rng(1))
accuracy = float(np.mean(scores(params, x_test).argmax(axis=1) == y_test))
check_at_least(
    "test accuracy", accuracy, 0.95 if QUICK else 0.97, "does every epoch visit all examples in a new order?"
)
