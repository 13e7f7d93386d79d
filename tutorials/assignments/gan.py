# %% [markdown]
# # 3.4 A generative adversarial net
#
# A generator turns noise into images; a discriminator tells them from real ones; each learns from the other's mistakes
# (Goodfellow et al. 2014).

# %%
import math

from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import nn, value_and_grad
from minnp.nn import layers, optim

data = nn.io.digits()
ones = data.x_train[data.y_train == 1] if QUICK else data.x_train[data.y_train < 2]
images = ones.reshape(-1, 64) * 2 - 1
NOISE = 16

# %% [markdown]
# ## Exercise: the two losses
# From the discriminator's scores (logits) of real and generated images. The discriminator wants `log(1 + exp(-real))` and
# `log(1 + exp(fake))` small; the generator, not `log(1 - D)`, whose slope vanishes when it is losing, but
# `log(1 + exp(-fake))`. Means over the batch; `np.logaddexp(0, s)` is log(1 + exp(s)).


# %% exercise: discriminator_loss
def discriminator_loss(real, fake):
    """The discriminator's loss from scores [N]."""
    return todo()


# %% exercise: generator_loss
def generator_loss(fake):
    """The generator's loss."""
    return todo()


# %%
zeros = np.zeros(4)
check("discriminator_loss, undecided", discriminator_loss(zeros, zeros), 2 * math.log(2))
check("discriminator_loss, right", discriminator_loss(zeros + 50, zeros - 50), 0.0)
check(
    "generator_loss, losing", generator_loss(zeros - 50), 50.0, "its slope must not vanish when fake is very negative"
)

# %% [markdown]
# ## Exercise: one round
# A step of the discriminator, then one of the generator, with Adam. Each loss is a function of *one* net's tree:
# `with net.holding(tree): ...` evaluates a net with other parameters, which is what `value_and_grad` differentiates.

# %%
generator = nn.Sequential(nn.Linear(NOISE, 64), nn.BatchNorm(64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh()).init(0)
discriminator = nn.Sequential(
    nn.Linear(64, 64), layers.leaky_relu, nn.Linear(64, 32), layers.leaky_relu, nn.Linear(32, 1)
)
discriminator.init(1)


def make(noise):
    return generator(noise, mode="train")


def judge(x):
    return discriminator(x)[:, 0]


def adam(net, gradients, states):
    for name, w in net.tree().items():
        states.setdefault(name, {"learning_rate": 1e-3, "beta1": 0.5})
        optim.adam(w, gradients[name], states[name])


# %% exercise: play
def play(real, noise, states):
    """One step of each net, in place; returns (discriminator's loss, generator's loss). states = ({}, {})."""
    return todo()


# %%
rng = np.random.default_rng(0)
before = {net: {k: np.array(v) for k, v in net.tree().items()} for net in (generator, discriminator)}
noise = rng.standard_normal((32, NOISE)).astype(np.float32)
losses = play(images[:32], noise, ({}, {}))
check("both nets changed", [any(bool(np.any(net.tree()[k] != v)) for k, v in before[net].items())
                            for net in (generator, discriminator)], [True, True], "adam(net, gradients, states[i])")  # fmt: skip
check_at_least("generator's loss is about the scores of its images", float(losses[1]), 0.1)

# %% [markdown]
# ## Training, and a check of the result
# Generated images should have the mean and the spread of the real ones, pixel by pixel, and lie near real ones.

# %%
states = ({}, {})
for i in range(1000 if QUICK else 3000):
    real = images[rng.choice(len(images), 32)]
    d, g = play(real, rng.standard_normal((32, NOISE)).astype(np.float32), states)
    if i % 500 == 0:
        print(f"round {i:4}: discriminator {float(d):.3f}, generator {float(g):.3f}")

made = make(rng.standard_normal((500, NOISE)).astype(np.float32))
for row in made[0].reshape(8, 8):
    print("".join(" .:-=+*#%@"[int(9.99 * (v + 1) / 2)] * 2 for v in np.clip(row, -1, 1)))
mean_error = float(np.sqrt(np.mean((made.mean(axis=0) - images.mean(axis=0)) ** 2)))
spread = float(made.std(axis=0).mean() / images.std(axis=0).mean())
print(f"error of the mean image {mean_error:.3f}; spread {spread:.2f} of the real one's")
check_at_least("nearness of the mean image", 0.35 - mean_error, 0.0)
check_at_least(
    "spread", spread, 0.4, "a spread near 0 means that all noise gives the same image: the mode has collapsed"
)
