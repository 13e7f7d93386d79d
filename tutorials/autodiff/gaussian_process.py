# %% [markdown]
# # Gaussian process regression
#
# A Gaussian process draws a smooth curve with error bars through noisy points. How smooth, how high and how noisy are
# three numbers, found where the probability of the data is largest. That probability needs a Cholesky factor, a solve
# and a log-determinant (Rasmussen and Williams 2006, algorithm 2.1), and its gradient goes through all three.
#
# We compare with scikit-learn's `GaussianProcessRegressor`: the same likelihood, the same optimum, the same
# predictions.

# %%
import math

import matplotlib.pyplot as plt
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import minnp.numpy as np
from minnp import value_and_grad

rng = np.random.default_rng(0)
n = 60
x = np.sort(rng.uniform(-4, 4, n))
y = np.sin(2 * x) + 0.3 * x + 0.2 * rng.standard_normal(n)

# %% [markdown]
# ## The likelihood of the settings
#
# Two points of the curve have the covariance $a^2 \exp(-(s - t)^2 / 2 l^2)$: $a$ is the amplitude, $l$ the length
# scale. The parameters are logarithms, so that amplitude, length scale and noise stay positive.


# %%
def kernel(s, t, amplitude, scale):
    """Covariances [len(s), len(t)]."""
    return amplitude**2 * np.exp(-0.5 * ((s[:, None] - t[None, :]) / scale) ** 2)


def log_likelihood(log_settings, x, y):
    """log p(y) with the logs of amplitude, length scale and noise."""
    amplitude, scale, noise = np.exp(log_settings)
    k = kernel(x, x, amplitude, scale) + noise**2 * np.eye(len(x))
    lower = np.linalg.cholesky(k)
    white = np.linalg.solve(lower, y)
    log_det = np.sum(np.log(np.diagonal(lower)))
    return -0.5 * np.sum(white * white) - log_det - 0.5 * len(x) * math.log(2 * math.pi)


loss = value_and_grad(lambda settings: -log_likelihood(settings, x, y))
start = np.array([0.0, 0.0, math.log(0.5)])
found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
settings = np.asarray(found.x)
print(f"log-likelihood {-found.fun:.6f} after {found.nit} iterations")

# %% [markdown]
# ## The prediction


# %%
def predict(log_settings, x, y, at):
    """(mean, deviation) of the curve at `at`."""
    amplitude, scale, noise = np.exp(log_settings)
    k = kernel(x, x, amplitude, scale) + noise**2 * np.eye(len(x))
    cross = kernel(x, at, amplitude, scale)
    solved = np.linalg.solve(k, np.concatenate([y[:, None], cross], axis=1))
    variance = amplitude**2 - np.sum(cross * solved[:, 1:], axis=0)
    return cross.T @ solved[:, 0], np.sqrt(np.maximum(variance, 0))


at = np.linspace(-5, 5, 200)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axis, logs, title in zip(axes, (start, settings), ("where we started", "the most likely settings")):
    mean, deviation = predict(logs, x, y, at)
    axis.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2)
    axis.plot(at, mean)
    axis.plot(x, y, ".", color="grey")
    axis.set(title=title)
plt.show()

# %% [markdown]
# ## The same from scikit-learn
#
# Its parameters are the logs of amplitude squared, length scale and noise squared, and its deviation is that of a new
# observation, noise included.

# %%
form = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.25)
reference = GaussianProcessRegressor(form, alpha=0.0).fit(x[:, None], y)
theirs = reference.kernel_.theta / np.array([2.0, 1.0, 2.0])
their_mean, their_deviation = reference.predict(at[:, None], return_std=True)
their_deviation = np.sqrt(their_deviation**2 - np.exp(2 * theirs[2]))

print(f"amplitude, length scale, noise: {np.exp(settings).round(4)}, scikit-learn's {np.exp(theirs).round(4)}")
print(f"largest difference of the predictions {np.max(np.abs(mean - their_mean)):.1e}")
assert abs(-found.fun - reference.log_marginal_likelihood_value_) < 1e-6
assert np.allclose(settings, theirs, atol=1e-3)
assert np.allclose(mean, their_mean, atol=1e-3) and np.allclose(deviation, their_deviation, atol=1e-3)
