# %% [markdown]
# # A variational autoencoder
#
# A decoder turns eight random numbers into a handwritten digit; an encoder says which eight numbers a given digit may
# have come from (Kingma and Welling 2014). Sampling stands between the two, and the gradient goes through it because a
# sample is mean + deviation * noise: ordinary NumPy.
#
# Two checks: the KL term against an average over samples, and the bound on $\log p(x)$ against the best model without
# latent numbers, whose entropy has a closed form.

# %%
import math
import os

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import nn, value_and_grad
from minnp.nn import layers, optim

QUICK = bool(os.environ.get("QUICK"))  # a small net and few epochs, for a test of this program
LATENT = 8


def network(hidden, latent):
    encoder = nn.Sequential(nn.Linear(64, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
    decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 64))
    return nn.Sequential(encoder, decoder).init(0, "xavier")


# %% [markdown]
# ## The loss
#
# The encoder gives each image a small Gaussian q(z | x). The loss has two parts: how badly a decoded sample of it
# explains the pixels, and how far q(z | x) is from a standard normal distribution, the KL divergence. Their sum is an
# upper bound of $-\log p(x)$. Pixels are probabilities of ink.


# %%
def encode(net, x):
    """(mean, log of the variance) of q(z | x), each [N, latent]."""
    mean, log_variance = np.split(net.steps[0](x), 2, axis=1)
    return mean, log_variance


def kl(mean, log_variance):
    """KL(q || standard normal) of each example: sum of (mean^2 + variance - log variance - 1) / 2."""
    return 0.5 * np.sum(mean * mean + np.exp(log_variance) - log_variance - 1.0, axis=1)


def negative_bound(net, x, noise):
    """Mean over x of KL - log p(x | z), an upper bound of -log p(x)."""
    mean, log_variance = encode(net, x)
    z = mean + np.exp(0.5 * log_variance) * noise
    scores = net.steps[1](z)
    log_p = np.sum(x * scores - np.logaddexp(0.0, scores), axis=1)
    return np.mean(kl(mean, log_variance) - log_p)


# %% [markdown]
# ## The training
#
# A net keeps its parameters. `net.tree()` gives them as a dictionary, and inside `with net.holding(tree)` the net
# computes with those of `tree`: so the loss is a function of its parameters, and `value_and_grad` differentiates it.


# %%
def train(net, x, epochs, batch, rng):
    """The mean loss of each epoch."""

    def loss(tree, x, noise):
        with net.holding(tree):
            return negative_bound(net, x, noise)

    step = value_and_grad(loss)
    states = {name: {"learning_rate": 2e-3} for name in net.tree()}
    curve = []
    for _ in range(epochs):
        order, total = rng.permutation(len(x)), 0.0
        for start in range(0, len(x), batch):
            images = x[order[start : start + batch]]
            noise = rng.standard_normal((len(images), LATENT)).astype(np.float32)
            tree = net.tree()
            value, gradients = step(tree, images, noise)
            total += float(value) * len(images) / len(x)
            for name, w in tree.items():
                optim.adam(w, gradients[name], states[name])
        curve.append(total)
    return curve


# %% [markdown]
# ## On the digits
#
# scikit-learn brings 1,797 images of 8 x 8 pixels.

# %%
if __name__ == "__main__":  # other programs import the functions above
    epochs, hidden = (12, 64) if QUICK else (60, 128)
    data = nn.io.digits()
    x, test = (layers.flatten(images) for images in (data.x_train, data.x_test))
    rng = np.random.default_rng(0)
    net = network(hidden, LATENT)
    curve = train(net, x, epochs, 64, rng)

    noise = rng.standard_normal((20, len(test), LATENT)).astype(np.float32)
    bound = float(np.mean(np.array([negative_bound(net, test, n) for n in noise])))
    ink = np.clip(np.mean(x, axis=0), 1e-3, 1 - 1e-3)
    baseline = -float(np.mean(np.sum(test * np.log(ink) + (1 - test) * np.log(1 - ink), axis=1)))
    print(f"-log p(x) on test digits: at most {bound:.2f} nats ({bound / 64 / math.log(2):.3f} bits a pixel)")
    print(f"without latent numbers: {baseline:.2f} nats")
    assert bound < baseline

# %% [markdown]
# The formula of the KL term is the mean of $\log q(z \mid x) - \log p(z)$ over many samples:

# %%
if __name__ == "__main__":
    mean, log_variance = encode(net, test)
    noise = rng.standard_normal((2000, *mean.shape))
    z = mean + np.exp(0.5 * log_variance) * noise
    log_q = -0.5 * np.sum(log_variance + noise**2, axis=2)
    exact, estimate = float(np.mean(kl(mean, log_variance))), float(np.mean(log_q + 0.5 * np.sum(z * z, axis=2)))
    print(f"KL(q || p): {exact:.3f} by its formula, {estimate:.3f} by sampling")
    assert abs(exact - estimate) < 0.02 * exact

# %% [markdown]
# ## New digits
#
# Random numbers, decoded. The last row of pictures is made from points between a 0 and a 1 of the test digits.


# %%
def tiles(images, rows):
    """Images [N, 64] side by side in `rows` rows, as one picture."""
    images = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return images.reshape(rows, -1, 10, 10).swapaxes(1, 2).reshape(10 * rows, -1)


if __name__ == "__main__":
    new = layers.sigmoid(net.steps[1](rng.standard_normal((40, LATENT)).astype(np.float32)))
    t = np.linspace(0, 1, 10, dtype=np.float32)[:, None]
    zero, one = (mean[np.argmax(data.y_test == digit)] for digit in (0, 1))
    between = layers.sigmoid(net.steps[1]((1 - t) * zero + t * one))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.imshow(tiles(np.concatenate([new, between]), 5), cmap="gray_r")
    left.axis("off")
    right.plot(range(1, epochs + 1), curve)
    right.axhline(baseline, linestyle="--", color="grey", label="without latent numbers")
    right.set(title="Bound on -log p(x), nats", xlabel="epoch")
    right.legend()
    plt.show()
