"""A Gaussian mixture with full covariances, fitted by gradient descent instead of expectation maximisation.

    python tutorials/autodiff/gaussian_mixture.py

EM needs two derivations on paper. Here the log-likelihood is written once, in parameters that cannot leave their
domain: weights are a softmax, and each precision matrix is P P^T with P lower triangular and a positive diagonal, so
that log det is a sum of logarithms. Checked against scikit-learn's GaussianMixture on the same data.
"""

import argparse
import math

from sklearn.mixture import GaussianMixture

import minnp.numpy as np
from minnp import value_and_grad
from minnp.nn import optim


def make_data(n, seed=0):
    """n points in the plane from three Gaussians, each stretched and turned."""
    rng = np.random.default_rng(seed)
    shapes = [
        ([[1.0, 0.9], [0.0, 0.4]], [-3, 0]),
        ([[0.5, 0.0], [0.0, 1.5]], [3, 1]),
        ([[1.2, -0.8], [0.0, 0.5]], [0, 5]),
    ]
    return np.concatenate([rng.standard_normal((n // 3, 2)) @ np.array(a) + np.array(b) for a, b in shapes])


def log_likelihood(params, x):
    """Mean over x [N, D] of log sum_k weight_k Normal(x | mean_k, (P_k P_k^T)^-1)."""
    logits, means, raw = params["logits"], params["means"], params["precision"]
    d = x.shape[1]
    lower = np.tril(raw, -1) + np.exp(np.einsum("kii->ki", raw))[:, :, None] * np.eye(d)
    white = np.einsum("nkd,kde->nke", x[:, None, :] - means, lower)
    log_det = np.sum(np.einsum("kii->ki", raw), axis=1)
    log_normal = log_det - 0.5 * np.sum(white * white, axis=2) - 0.5 * d * math.log(2 * math.pi)
    scores = logits - log_sum_exp(logits) + log_normal
    return np.mean(log_sum_exp(scores))


def log_sum_exp(x):
    """log sum exp over the last axis, without overflow."""
    top = np.max(x, axis=-1, keepdims=True)
    return np.squeeze(top, -1) + np.log(np.sum(np.exp(x - top), axis=-1))


def far_apart(x, k):
    """k points of x: each the farthest from those before it."""
    chosen = [x[0]]
    while len(chosen) < k:
        distances = np.sum((x[:, None] - np.stack(chosen)) ** 2, axis=2)
        chosen.append(x[np.argmax(np.min(distances, axis=1))])
    return np.stack(chosen)


def fit(x, k, steps):
    """The parameters after `steps` of Adam on all of x, from means that are far apart."""
    params = {
        "logits": np.zeros(k),
        "means": far_apart(x, k),
        "precision": np.zeros((k, x.shape[1], x.shape[1])),
    }
    ascend = value_and_grad(lambda p: -log_likelihood(p, x))
    states = {name: {"learning_rate": 0.2} for name in params}
    rate = optim.cosine(steps, floor=0.02)
    for step in range(steps):
        _, gradients = ascend(params)
        for name, config in states.items():
            config["learning_rate"] = 0.2 * rate(step)
            optim.adam(params[name], gradients[name], config)
    return params


def main(n=1500, steps=600):
    x = make_data(n)
    ours = float(log_likelihood(fit(x, 3, steps), x))
    reference = GaussianMixture(3, n_init=5, tol=1e-8, max_iter=1000, reg_covar=0, random_state=0).fit(np.array(x))
    theirs = reference.score(np.array(x))
    print(f"log-likelihood per point: by gradient {ours:.5f}, by scikit-learn's EM {theirs:.5f}")
    return {"ours": ours, "theirs": theirs}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=600)
    main(**vars(parser.parse_args()))
