# %% [markdown]
# # 2.2 Batch normalisation
#
# Each feature of a batch gets mean 0 and variance 1, then a scale gamma and a shift beta that are learned (Ioffe and
# Szegedy 2015). The gradient goes through the mean and the variance too: a good exercise by hand, once.

# %%
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad, nn

rng = np.random.default_rng(0)
x = 3 * rng.standard_normal((6, 4)) + np.array([10.0, -5.0, 0.0, 1.0])
gamma, beta = rng.standard_normal(4), rng.standard_normal(4)

# %% [markdown]
# ## Exercise: forward
# `y = gamma * (x - mean) / sqrt(var + eps) + beta`; the variance divides by N, not N - 1.


# %% exercise: forward
def forward(x, gamma, beta, eps=1e-5):
    """y [N, D] of x [N, D]."""
    return todo()


# %%
y = forward(x, np.ones(4), np.zeros(4))
check("mean of y", y.mean(axis=0), np.zeros(4), "over the examples: axis=0")
check("variance of y", y.var(axis=0), np.ones(4), "divide by the standard deviation, the root of the variance", 1e-4)
check("gamma and beta", forward(x, gamma, beta), gamma * y + beta)

# %% [markdown]
# ## Exercise: backward, by hand
# With `n = (x - mean) / s`, `s = sqrt(var + eps)` and g the gradient of y:
# dbeta and dgamma are sums over the examples; with `dn = g * gamma`, `dx = (dn - mean(dn) - n * mean(dn * n)) / s`.
# Derive the last line: x reaches y directly, through the mean, and through the variance.


# %% exercise: backward
def backward(g, x, gamma, eps=1e-5):
    """(dx, dgamma, dbeta)."""
    return todo()


# %%
g = rng.standard_normal((6, 4))
dx, dgamma, dbeta = backward(g, x, gamma)
check("dbeta", dbeta, g.sum(axis=0))
check("dgamma", dgamma, grad(lambda gamma: np.sum(g * forward(x, gamma, beta)))(gamma), "the sum of g * n")
check("dx", dx, grad(lambda x: np.sum(g * forward(x, gamma, beta)))(x), "all means are over the examples, axis=0")

# %% [markdown]
# ## Exercise: running averages
# A single test image has no batch. So training keeps running averages, and testing uses those:
# `running = momentum * running + (1 - momentum) * of_the_batch`. Write to `running["mean"]` and `running["var"]` in place.


# %% exercise: layer
def layer(x, gamma, beta, running, mode, momentum=0.9, eps=1e-5):
    """forward in "train" mode, updating `running`; with the running averages in "test" mode."""
    return todo()


# %%
running = {"mean": np.zeros(4), "var": np.ones(4)}
for _ in range(100):
    y = layer(x, gamma, beta, running, "train")
check("training", y, forward(x, gamma, beta))
check("running mean", running["mean"], x.mean(axis=0), "does test mode leave it alone? is it updated in place?", 1e-3)
check("testing", layer(x[:1], gamma, beta, running, "test"), forward(x, gamma, beta)[:1],
      "one image is normalised by the running averages", 1e-2)  # fmt: skip

# %% [markdown]
# ## What it buys
# Six layers, started badly: weights much too small. Without normalisation nothing reaches the far end.

# %%
data = nn.io.digits()


def net(normalised):
    steps = []
    for _ in range(5):
        size = 64 if not steps else 60
        steps.append(nn.Linear(size, 60, init_rule="gaussian", init_config={"stdvar": 0.02}))
        steps += [nn.BatchNorm(60)] if normalised else []
        steps.append(nn.ReLU())
    return nn.Sequential(nn.Flatten(), *steps, nn.Linear(60, 10))


reached = {}
for normalised in (False, True):
    model = net(normalised)
    model.fit(data.x_train, data.y_train, epochs=3 if QUICK else 8, batch_size=50, verbose=False, learning_rate=2e-3)
    reached[normalised] = model.evaluate(data.x_test, data.y_test)["accuracy"]
    print(f"{'with' if normalised else 'without'} batch normalisation: {reached[normalised]:.3f}")
check_at_least("with batch normalisation", reached[True], 0.9)
check_at_least("gain", reached[True] - reached[False], 0.1)
