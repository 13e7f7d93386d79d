# %% [markdown]
# # Hamiltonian Monte Carlo
#
# How does one draw samples from a density of which only the formula is known? Imagine a particle whose energy is minus
# the log density. Give it a random push, follow its motion for a while, and accept where it lands (Duane et al. 1987;
# Neal 2011). The force on the particle is a gradient, so the method works for any density that can be written down and
# differentiated.
#
# We sample a Gaussian with strongly correlated coordinates, because its mean and covariance are known.

# %%
import os

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import grad

QUICK = bool(os.environ.get("QUICK"))  # fewer rounds, for a test of this program

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.9, 0.2], [0.9, 1.2, 0.1], [0.2, 0.1, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)


def log_density(x):
    """Of each row of x [N, 3], up to a constant."""
    d = x - MEAN
    return -0.5 * np.sum((d @ PRECISION) * d, axis=1)


# %% [markdown]
# ## The motion
#
# The leapfrog method is reversible and keeps volumes, which the rule of acceptance relies on. Many particles, *chains*,
# run side by side as the rows of one array: the gradient of the sum of their log densities is the force on each of
# them.

# %%
force = grad(lambda x: np.sum(log_density(x)))


def leapfrog(x, momentum, step, steps):
    """(position, momentum) after `steps` steps of a length."""
    momentum = momentum + 0.5 * step * force(x)
    for i in range(steps):
        x = x + step * momentum
        momentum = momentum + (step if i < steps - 1 else 0.5 * step) * force(x)
    return x, momentum


rng = np.random.default_rng(0)
path = [(np.array([[-1.0, -4.0, 0.0]]), rng.standard_normal((1, 3)))]
for _ in range(30):
    path.append(leapfrog(*path[-1], 0.25, 1))
energies = [float(-log_density(x)[0] + 0.5 * np.sum(p * p)) for x, p in path]
print(f"energy along a path: {min(energies):.3f} to {max(energies):.3f}")

# %% [markdown]
# ## The sampler
#
# A move is accepted with a probability that makes up for the error of the finite steps. In some direction a particle
# may be back at its start after exactly this time; a random step length prevents that (Neal 2011, section 3.2).


# %%
def sample(x, rounds, step, steps):
    """(samples [rounds, N, D], fraction accepted) of N chains that start at x [N, D]."""
    kept, accepted = np.zeros((rounds, *x.shape)), 0.0
    for i in range(rounds):
        momentum = rng.standard_normal(x.shape)
        new, pushed = leapfrog(x, momentum, step * rng.uniform(0.7, 1.3), steps)
        before = log_density(x) - 0.5 * np.sum(momentum**2, axis=1)
        after = log_density(new) - 0.5 * np.sum(pushed**2, axis=1)
        accept = np.log(rng.random(len(x))) < after - before
        x = np.where(accept[:, None], new, x)
        accepted += np.mean(accept)
        kept[i] = x
    return kept, accepted / rounds


chains, rounds = 200, 60 if QUICK else 150
samples, accepted = sample(rng.standard_normal((chains, 3)), rounds, step=0.25, steps=10)
drawn = samples[rounds // 5 :].reshape(-1, 3)  # without the way from the start
mean, covariance = np.mean(drawn, axis=0), np.cov(drawn.T)
print(f"accepted {accepted:.2f} of the moves")
print(f"mean {mean.round(3)}, exactly {MEAN}")
print(f"covariance\n{covariance.round(3)}, exactly\n{COVARIANCE}")
assert accepted > 0.8
assert np.max(np.abs(mean - MEAN)) < 0.1 and np.max(np.abs(covariance - COVARIANCE)) < 0.15

# %% [markdown]
# On the left the samples and one path, in the two coordinates that are correlated, with the ellipses of one and two
# standard deviations. On the right the mean over all chains, round by round: some ten rounds suffice.

# %%
angle = np.linspace(0, 2 * np.pi, 100)
circle = np.linalg.cholesky(COVARIANCE[:2, :2]) @ np.stack([np.cos(angle), np.sin(angle)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(drawn[::10, 0], drawn[::10, 1], ".", markersize=2, color="grey")
for deviations in (1, 2):
    left.plot(MEAN[0] + deviations * circle[0], MEAN[1] + deviations * circle[1], color="C0")
left.plot([float(x[0, 0]) for x, _ in path], [float(x[0, 1]) for x, _ in path], ".-", color="C1", label="a path")
left.legend()
for i in range(3):
    right.plot(samples.mean(axis=1)[:, i], color=f"C{i}")
    right.axhline(MEAN[i], linestyle="--", color=f"C{i}")
right.set(title="Mean of the chains", xlabel="round")
plt.show()
