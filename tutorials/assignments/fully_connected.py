# %% [markdown]
# # 2.1 Nets of any depth, and better steps
#
# Layers as functions that are called in a loop, gradients from `grad`, and two optimisers that need fewer steps.

# %%
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import value_and_grad
from minnp.nn import io, optim
from minnp.nn.losses import softmax_loss

data = io.digits()
x_train, x_test = (x.reshape(-1, 64).astype(np.float64) for x in (data.x_train, data.x_test))
y_train, y_test = data.y_train, data.y_test

# %% [markdown]
# ## Exercise: initial weights
# `initial(sizes, rng)` for sizes like [64, 100, 50, 10]: a list of (w, b), w normal with standard deviation
# `sqrt(2 / inputs)`, which keeps the size of activations through ReLU layers (He et al. 2015), b zero.


# %% exercise: initial
def initial(sizes, rng):
    """[(w1, b1), (w2, b2), ...] for layers of these sizes."""
    return todo()


# %%
params = initial([64, 500, 400, 10], np.random.default_rng(0))
check("number of layers", len(params), 3)
check("shapes", [w.shape for w, _ in params], [(64, 500), (500, 400), (400, 10)])
check("standard deviation", params[1][0].std(), (2 / 500) ** 0.5, "sqrt(2 / inputs), not 2 / inputs", 1e-2)

# %% [markdown]
# ## Exercise: forward
# Affine and ReLU for every layer but the last, which has no ReLU.


# %% exercise: scores
def scores(params, x):
    """[N, C] for x [N, D]."""
    return todo()


# %%
known = [(np.eye(64), -np.ones(64)), (np.eye(64), np.ones(64)), (np.ones((64, 10)), np.arange(10.0))]
check("scores", scores(known, np.full((1, 64), 1.5)), [64 * 1.5 + np.arange(10.0)])
check("no ReLU at the end", scores([(np.eye(2), np.zeros(2))], np.array([[-1.0, 1.0]])), [[-1.0, 1.0]])

# %% [markdown]
# ## Exercise: momentum
# `v = m v - rate g; w += v`, both in place. It keeps going where gradients agree and averages where they do not.


# %% exercise: momentum
def momentum(w, g, v, rate, m=0.9):
    """One step, writing to w and v."""
    todo()


# %% [markdown]
# ## Exercise: Adam
# `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, then `w -= rate * mhat / (sqrt(vhat) + eps)` with
# `mhat = m / (1 - b1^t)`, `vhat = v / (1 - b2^t)`, t counting from 1 (Kingma and Ba 2015).


# %% exercise: adam
def adam(w, g, m, v, t, rate, b1=0.9, b2=0.999, eps=1e-8):
    """Step number t, writing to w, m and v."""
    todo()


# %%
rng = np.random.default_rng(0)
start, gradients = rng.standard_normal(5), rng.standard_normal((4, 5))
w, v, theirs, config = np.array(start), np.zeros(5), np.array(start), {"learning_rate": 0.1}
for g in gradients:
    momentum(w, g, v, 0.1)
    optim.sgd_momentum(theirs, g, config)
check("momentum", w, theirs, "w and v must change in place: v *= m, not v = m * v")
w, m, v, theirs, config = np.array(start), np.zeros(5), np.zeros(5), np.array(start), {"learning_rate": 0.1}
for t, g in enumerate(gradients, start=1):
    adam(w, g, m, v, t, 0.1)
    optim.adam(theirs, g, config)
check("adam", w, theirs, "in place; divide m and v by 1 - b^t before using them, but do not store that")

# %% [markdown]
# ## A deep net
# Four hidden layers, first with plain steps, then with Adam: the same number of epochs.


# %%
def train(rule, epochs, rate):
    rng = np.random.default_rng(0)
    params = initial([64, 80, 80, 80, 80, 10], rng)
    state = [[np.zeros_like(p), np.zeros_like(p)] for layer in params for p in layer]
    step, t = value_and_grad(lambda p, x, y: softmax_loss(scores(p, x), y)), 0
    for _ in range(epochs):
        order = rng.permutation(len(x_train))
        for i in range(0, len(order), 50):
            chosen, t = order[i : i + 50], t + 1
            _, grads = step(params, x_train[chosen], y_train[chosen])
            flat = [(p, g) for layer, glayer in zip(params, grads) for p, g in zip(layer, glayer)]
            for (p, g), (m, v) in zip(flat, state):
                if rule == "sgd":
                    p -= rate * g
                elif rule == "momentum":
                    momentum(p, g, v, rate)
                else:
                    adam(p, g, m, v, t, rate)
    return float(np.mean(scores(params, x_test).argmax(axis=1) == y_test))


epochs = 3 if QUICK else 15
reached = {
    "sgd": train("sgd", epochs, 0.02),
    "momentum": train("momentum", epochs, 0.02),
    "adam": train("adam", epochs, 0.002),
}
for rule, accuracy in reached.items():
    print(f"{rule:9} {accuracy:.4f}")
check_at_least("gain of Adam over plain steps", reached["adam"] - reached["sgd"], 0.02)
check_at_least("test accuracy with Adam", reached["adam"], 0.9 if QUICK else 0.96)
