"""Hamiltonian Monte Carlo: samples from any density whose logarithm can be written down and differentiated.

    python tutorials/autodiff/hamiltonian_monte_carlo.py

A sample is a particle; its energy is -log density. Give it a random push, follow its motion for a while with the
leapfrog method (the gradient of log density is the force), and accept where it lands (Duane et al. 1987; Neal 2011).
Many chains run side by side as rows of one array: the gradient of the sum of log densities is each chain's own force.
Checked on a strongly correlated Gaussian, whose mean and covariance are known.
"""

import argparse

import minnp.numpy as np
from minnp import grad

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.9, 0.2], [0.9, 1.2, 0.1], [0.2, 0.1, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)


def log_density(x):
    """Of each row of x [N, 3], up to a constant."""
    d = x - MEAN
    return -0.5 * np.sum((d @ PRECISION) * d, axis=1)


def leapfrog(force, x, momentum, step, steps):
    """(position, momentum) after `steps` steps: reversible, and volumes are kept, which accepting relies on."""
    momentum = momentum + 0.5 * step * force(x)
    for i in range(steps):
        x = x + step * momentum
        momentum = momentum + (step if i < steps - 1 else 0.5 * step) * force(x)
    return x, momentum


def sample(log_density, x, rng, rounds, step, steps):
    """(samples [rounds, N, D], fraction accepted) of N chains that start at x [N, D]."""
    force = grad(lambda x: np.sum(log_density(x)))
    kept, accepted = np.zeros((rounds, *x.shape)), 0.0
    for i in range(rounds):
        momentum = rng.standard_normal(x.shape)
        # Some direction may return to its start after exactly this time; a random step length breaks that (Neal, 3.2).
        new, pushed = leapfrog(force, x, momentum, step * rng.uniform(0.7, 1.3), steps)
        before = log_density(x) - 0.5 * np.sum(momentum**2, axis=1)
        after = log_density(new) - 0.5 * np.sum(pushed**2, axis=1)
        accept = np.log(rng.random(len(x))) < after - before
        x = np.where(accept[:, None], new, x)
        accepted += float(np.mean(accept))
        kept[i] = x
    return kept, accepted / rounds


def main(chains=200, rounds=150, step=0.25, steps=10):
    rng = np.random.default_rng(0)
    samples, accepted = sample(log_density, rng.standard_normal((chains, 3)), rng, rounds, step, steps)
    drawn = samples[rounds // 5 :].reshape(-1, 3)  # without the way from the start
    mean, covariance = np.mean(drawn, axis=0), np.cov(drawn.T)
    print(f"accepted {accepted:.2f} of the moves")
    print(f"mean {np.round(mean, 3)}, exactly {MEAN}")
    print(f"covariance\n{np.round(covariance, 3)}, exactly\n{COVARIANCE}")
    return {
        "accepted": accepted,
        "mean_error": float(np.max(np.abs(mean - MEAN))),
        "covariance_error": float(np.max(np.abs(covariance - COVARIANCE))),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=150)
    main(**vars(parser.parse_args()))
