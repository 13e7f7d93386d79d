# %% [markdown]
# # A Gaussian mixture without expectation maximisation
#
# Points come from several Gaussians, and nobody says which point came from which. The usual algorithm, expectation
# maximisation (EM), takes two derivations on paper. Here the log-likelihood is written once, and its gradient does the
# rest. We compare with scikit-learn's `GaussianMixture`, which is EM.

# %%
import math
import os

import matplotlib.pyplot as plt
from sklearn.mixture import GaussianMixture

import minnp.numpy as np
from minnp import value_and_grad
from minnp.nn import optim

QUICK = bool(os.environ.get("QUICK"))  # fewer points and steps, for a test of this program

# %% [markdown]
# ## The data
#
# Three clouds of points in the plane, each stretched and turned.

# %%
rng = np.random.default_rng(0)
n, steps = (300, 300) if QUICK else (1500, 600)
clouds = [
    ([[1.0, 0.9], [0.0, 0.4]], [-3, 0]),
    ([[0.5, 0.0], [0.0, 1.5]], [3, 1]),
    ([[1.2, -0.8], [0.0, 0.5]], [0, 5]),
]
x = np.concatenate([rng.standard_normal((n // 3, 2)) @ np.array(a) + np.array(b) for a, b in clouds])

# %% [markdown]
# ## Parameters that cannot leave their domain
#
# Weights must be positive and sum to 1: they are a softmax of `logits`. A covariance matrix must be positive definite:
# its inverse is $P P^T$ with $P$ lower triangular and a positive diagonal, so that its log-determinant is a sum of
# logarithms. Gradient descent may then move every parameter freely.


# %%
def log_sum_exp(x):
    """log sum exp over the last axis, without overflow."""
    top = np.max(x, axis=-1, keepdims=True)
    return np.squeeze(top, -1) + np.log(np.sum(np.exp(x - top), axis=-1))


def factors(raw):
    """The matrices P [K, D, D]: what lies below the diagonal of raw, and the exponential of its diagonal."""
    return np.tril(raw, -1) + np.exp(np.einsum("kii->ki", raw))[:, :, None] * np.eye(raw.shape[1])


def log_likelihood(params, x):
    """Mean over x [N, D] of log sum_k weight_k Normal(x | mean_k, (P_k P_k^T)^-1)."""
    logits, means, raw = params["logits"], params["means"], params["precision"]
    d = x.shape[1]
    white = np.einsum("nkd,kde->nke", x[:, None, :] - means, factors(raw))
    log_det = np.sum(np.einsum("kii->ki", raw), axis=1)
    log_normal = log_det - 0.5 * np.sum(white * white, axis=2) - 0.5 * d * math.log(2 * math.pi)
    return np.mean(log_sum_exp(logits - log_sum_exp(logits) + log_normal))


# %% [markdown]
# ## The fit
#
# The means start at points that are far apart. Parameters are a dictionary, so the gradient is a dictionary with the
# same keys. `optim.adam` updates each array where it lies.


# %%
def far_apart(x, k):
    """k points of x: each the farthest from those before it."""
    chosen = [x[0]]
    while len(chosen) < k:
        distances = np.sum((x[:, None] - np.stack(chosen)) ** 2, axis=2)
        chosen.append(x[np.argmax(np.min(distances, axis=1))])
    return np.stack(chosen)


params = {"logits": np.zeros(3), "means": far_apart(x, 3), "precision": np.zeros((3, 2, 2))}
descend = value_and_grad(lambda params: -log_likelihood(params, x))
states = {name: {} for name in params}
rate = optim.cosine(steps, floor=0.02)
curve = []
for step in range(steps):
    loss, gradients = descend(params)
    curve.append(-loss)
    for name, state in states.items():
        state["learning_rate"] = 0.2 * rate(step)
        optim.adam(params[name], gradients[name], state)
ours = log_likelihood(params, x)

# %% [markdown]
# ## The same from scikit-learn

# %%
reference = GaussianMixture(3, n_init=5, tol=1e-8, max_iter=1000, reg_covar=0, random_state=0).fit(x)
theirs = reference.score(x)
print(f"log-likelihood per point: {ours:.5f} by gradient, {theirs:.5f} by scikit-learn's EM")
assert abs(ours - theirs) < 0.01

# %% [markdown]
# The ellipses hold one and two standard deviations. The points of a unit circle, multiplied by $P^{-T}$, lie on them.

# %%
angle = np.linspace(0, 2 * np.pi, 100)
circle = np.stack([np.cos(angle), np.sin(angle)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(x[:, 0], x[:, 1], ".", markersize=2, color="grey")
for k, (mean, factor) in enumerate(zip(params["means"], factors(params["precision"]))):
    for deviations in (1, 2):
        ellipse = mean[:, None] + deviations * np.linalg.solve(factor.T, circle)
        left.plot(ellipse[0], ellipse[1], color=f"C{k}")
left.set(title="The mixture that was found", aspect="equal")
right.plot(curve, label="by gradient")
right.axhline(theirs, linestyle="--", color="grey", label="scikit-learn's EM")
right.set(title="Log-likelihood per point", xlabel="step")
right.legend()
plt.show()
