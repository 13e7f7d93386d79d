"""Gaussian process regression: the kernel's settings from the gradient of the marginal likelihood.

    python tutorials/autodiff/gaussian_process.py --picture fit.png

log p(y) of a Gaussian process needs a Cholesky factor, a solve and a log-determinant (Rasmussen and Williams 2006,
algorithm 2.1); its gradient with respect to amplitude, length scale and noise goes through all three. Checked against
scikit-learn's GaussianProcessRegressor: the same likelihood at the same settings, the same optimum and predictions.
"""

import argparse
import math

from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import minnp.numpy as np
from minnp import value_and_grad


def make_data(n, rng):
    x = np.sort(rng.uniform(-4, 4, n))
    return x, np.sin(2 * x) + 0.3 * x + 0.2 * rng.standard_normal(n)


def kernel(a, b, amplitude, scale):
    """amplitude^2 exp(-(a_i - b_j)^2 / (2 scale^2)), [len(a), len(b)]."""
    return amplitude**2 * np.exp(-0.5 * ((a[:, None] - b[None, :]) / scale) ** 2)


def log_likelihood(log_settings, x, y):
    """log p(y) with the logs of amplitude, length scale and noise."""
    amplitude, scale, noise = np.exp(log_settings)
    k = kernel(x, x, amplitude, scale) + noise**2 * np.eye(len(x))
    lower = np.linalg.cholesky(k)
    white = np.linalg.solve(lower, y)
    log_det = np.sum(np.log(np.diagonal(lower)))
    return -0.5 * np.sum(white * white) - log_det - 0.5 * len(x) * math.log(2 * math.pi)


def predict(log_settings, x, y, at):
    """(mean, deviation) of the function at `at`."""
    amplitude, scale, noise = np.exp(log_settings)
    k = kernel(x, x, amplitude, scale) + noise**2 * np.eye(len(x))
    cross = kernel(x, at, amplitude, scale)
    solved = np.linalg.solve(k, np.concatenate([y[:, None], cross], axis=1))
    variance = amplitude**2 - np.sum(cross * solved[:, 1:], axis=0)
    return cross.T @ solved[:, 0], np.sqrt(np.maximum(variance, 0))


def main(n=60, picture=None):
    rng = np.random.default_rng(0)
    x, y = make_data(n, rng)
    f = value_and_grad(lambda p: -log_likelihood(p, x, y))

    def for_scipy(settings):
        value, gradient = f(settings)
        return float(value), gradient.asnumpy()  # SciPy's Fortran takes NumPy's own arrays only

    found = minimize(for_scipy, [0.0, 0.0, math.log(0.5)], jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    settings = np.asarray(found.x)

    form = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.25)
    reference = GaussianProcessRegressor(form, alpha=0.0).fit(np.array(x)[:, None], np.array(y))
    theirs = reference.kernel_.theta / np.array([2.0, 1.0, 2.0])  # theirs are logs of amplitude^2, scale, noise^2
    at = np.linspace(-5, 5, 50)
    mean, deviation = predict(settings, x, y, at)
    their_mean, their_deviation = reference.predict(np.array(at)[:, None], return_std=True)
    their_deviation = np.sqrt(their_deviation**2 - np.exp(2 * theirs[2]))  # theirs is of an observation, noise included
    result = {
        "likelihood": -float(found.fun),
        "their_likelihood": float(reference.log_marginal_likelihood_value_),
        "settings_error": float(np.max(np.abs(settings - theirs))),
        "mean_error": float(np.max(np.abs(mean - their_mean))),
        "deviation_error": float(np.max(np.abs(deviation - their_deviation))),
    }
    print(
        f"amplitude, length scale, noise: {np.round(np.exp(settings), 4)}, scikit-learn's {np.round(np.exp(theirs), 4)}"
    )
    print(f"log-likelihood {result['likelihood']:.6f}, scikit-learn's {result['their_likelihood']:.6f}")
    print(f"largest difference of the predictions {result['mean_error']:.1e}")
    if picture:
        draw(x, y, at, mean, deviation, picture)
    return result


def draw(x, y, at, mean, deviation, picture):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    at, mean, deviation = (np.array(a) for a in (at, mean, deviation))
    axes.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2)
    axes.plot(at, mean)
    axes.plot(np.array(x), np.array(y), ".")
    figure.savefig(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--picture")
    main(**vars(parser.parse_args()))
