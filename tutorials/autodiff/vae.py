"""A variational autoencoder on the handwritten digits (Kingma and Welling 2014).

    python tutorials/autodiff/vae.py --picture digits.png

An encoder gives each image a small Gaussian q(z | x); a decoder turns a z back into pixels. Sampling stands between
them, and the gradient goes through it because z = mean + deviation * noise (the reparametrisation): ordinary NumPy.
Two checks: the KL term against the average of log q - log p over samples, and the bound on log p(x) against the best
model without any latent variable, whose entropy has a closed form.
"""

import argparse
import math

import minnp.numpy as np
from minnp import nn, value_and_grad
from minnp.nn import layers, optim


def network(hidden, latent):
    encoder = nn.Sequential(nn.Linear(64, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
    decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 64))
    return nn.Sequential(encoder, decoder).init(0, "xavier")


def encode(net, x):
    """(mean, log of the variance) of q(z | x), each [N, latent]."""
    mean, log_variance = np.split(net.steps[0](x), 2, axis=1)
    return mean, log_variance


def kl(mean, log_variance):
    """KL(q || standard normal) of each example: sum of (mean^2 + variance - log variance - 1) / 2."""
    return 0.5 * np.sum(mean * mean + np.exp(log_variance) - log_variance - 1.0, axis=1)


def negative_bound(net, x, noise):
    """Mean over x of KL - log p(x | z), an upper bound of -log p(x); pixels are probabilities of ink."""
    mean, log_variance = encode(net, x)
    z = mean + np.exp(0.5 * log_variance) * noise
    scores = net.steps[1](z)
    log_p = np.sum(x * scores - np.logaddexp(0.0, scores), axis=1)
    return np.mean(kl(mean, log_variance) - log_p)


def train(net, x, epochs, batch, latent, rng):
    def loss(tree, x, noise):
        with net.holding(tree):
            return negative_bound(net, x, noise)

    step = value_and_grad(loss)
    states = {name: {"learning_rate": 2e-3} for name in net.tree()}
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            images = x[order[start : start + batch]]
            noise = rng.standard_normal((len(images), latent)).astype(np.float32)
            tree = net.tree()
            _, gradients = step(tree, images, noise)
            for name, w in tree.items():
                optim.adam(w, gradients[name], states[name])


def sampled_kl(net, x, rng, samples=2000):
    """Mean of log q(z | x) - log p(z) over samples: what kl() is in the limit."""
    mean, log_variance = encode(net, x)
    noise = rng.standard_normal((samples, *mean.shape))
    z = mean + np.exp(0.5 * log_variance) * noise
    log_q = -0.5 * np.sum(log_variance + noise**2, axis=2)
    return float(np.mean(log_q + 0.5 * np.sum(z * z, axis=2)))


def draw(net, latent, rng, path):
    from matplotlib.figure import Figure

    z = rng.standard_normal((64, latent)).astype(np.float32)
    images = layers.sigmoid(net.steps[1](z)).reshape(8, 8, 8, 8).swapaxes(1, 2).reshape(64, 64)
    figure = Figure(figsize=(4, 4))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(np.array(images), cmap="gray_r")
    axes.axis("off")
    figure.savefig(path)


def main(epochs=60, latent=8, hidden=128, batch=64, picture=None):
    data = nn.io.digits()
    x, test = (layers.flatten(images) for images in (data.x_train, data.x_test))
    rng = np.random.default_rng(0)
    net = network(hidden, latent)
    train(net, x, epochs, batch, latent, rng)

    noise = rng.standard_normal((20, len(test), latent)).astype(np.float32)
    bound = float(np.mean(np.array([negative_bound(net, test, n) for n in noise])))
    ink = np.clip(np.mean(x, axis=0), 1e-3, 1 - 1e-3)
    baseline = -float(np.mean(np.sum(test * np.log(ink) + (1 - test) * np.log(1 - ink), axis=1)))
    exact, estimate = float(np.mean(kl(*encode(net, test)))), sampled_kl(net, test, rng)
    print(f"-log p(x) on test digits: at most {bound:.2f} nats ({bound / 64 / math.log(2):.3f} bits a pixel); "
          f"without a latent variable {baseline:.2f}")  # fmt: skip
    print(f"KL(q || p): {exact:.3f} by its formula, {estimate:.3f} by sampling")
    if picture:
        draw(net, latent, rng, picture)
    return {"bound": bound, "baseline": baseline, "kl": exact, "sampled_kl": estimate}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--latent", type=int, default=8)
    parser.add_argument("--picture", help="draw 64 new digits here")
    main(**vars(parser.parse_args()))
