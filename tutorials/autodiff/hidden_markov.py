# %% [markdown]
# # A hidden Markov model
#
# A hidden state jumps between two values; we see only symbols that depend on it. The *forward algorithm* computes the
# probability of the symbols in a loop over time. The companion that everybody derives by hand, the backward pass of
# Baum and Welch, is nothing but its gradient: we check that, read the hidden states off a gradient, and fit the model
# in two ways.

# %%
import os

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import grad, value_and_grad
from minnp.nn import optim

QUICK = bool(os.environ.get("QUICK"))  # a shorter sequence and fewer steps, for a test of this program

# %% [markdown]
# ## The data
#
# A sequence of symbols 0, 1 and 2. The hidden state tends to stay as it is; state 0 prefers symbol 0, state 1 symbol 2.

# %%
rng = np.random.default_rng(1)
length, steps = (60, 60) if QUICK else (150, 120)
truth = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])


def sample(start, transition, emission, length):
    """(states, symbols), two lists."""
    state, states, symbols = rng.choice(len(start), p=start), [], []
    for _ in range(length):
        states.append(int(state))
        symbols.append(int(rng.choice(emission.shape[1], p=emission[state])))
        state = rng.choice(len(start), p=transition[state])
    return states, symbols


states, observed = sample(*truth, length)
print(observed)

# %% [markdown]
# ## The forward algorithm
#
# All probabilities are logarithms, so that long sequences do not underflow. `terms[t, k]` is the log probability of the
# symbol seen at time t if the state is k.


# %%
def log_sum_exp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def forward(start, transition, terms):
    """log p(observed) from log probabilities: start [K], transition [K, K] (from, to), terms [T, K]."""
    alpha = start + terms[0]
    for term in terms[1:]:
        alpha = log_sum_exp(alpha[:, None] + transition, axis=0) + term
    return log_sum_exp(alpha, axis=0)


def log_likelihood(start, transition, emission, observed):
    """emission [K, M] has the log probability of each symbol in each state."""
    return forward(start, transition, emission[:, observed].T)


# %% [markdown]
# ## The gradient is the backward pass
#
# The gradient of log p(observed) with respect to the log transition probabilities is the expected number of transitions
# from each state to each other one. Here is the algorithm that computes it by hand (Rabiner 1989, equation 37), to
# compare.


# %%
def expected_transitions(start, transition, emission, observed):
    """E[number of transitions i -> j | observed], by the forward-backward algorithm."""
    alphas, betas = [start + emission[:, observed[0]]], [np.zeros(len(start))]
    for symbol in observed[1:]:
        alphas.append(log_sum_exp(alphas[-1][:, None] + transition, axis=0) + emission[:, symbol])
    for symbol in observed[:0:-1]:
        betas.append(log_sum_exp(transition + emission[:, symbol] + betas[-1], axis=1))
    betas.reverse()
    total = log_sum_exp(alphas[-1], axis=0)
    counts = np.zeros(transition.shape)
    for t, symbol in enumerate(observed[1:]):
        counts += np.exp(alphas[t][:, None] + transition + emission[:, symbol] + betas[t + 1] - total)
    return counts


logs = [np.log(part) for part in truth]
by_gradient = grad(log_likelihood, 1)(*logs, observed)
by_hand = expected_transitions(*logs, observed)
print("expected transitions, as the gradient of the log-likelihood:")
print(by_gradient.round(3))
print(f"largest difference from the forward-backward algorithm: {np.max(np.abs(by_gradient - by_hand)):.1e}")
assert np.allclose(by_gradient, by_hand, rtol=0, atol=1e-9)

# %% [markdown]
# The gradient with respect to `terms[t, k]` is the probability that the state at time t was k, given everything that
# was seen before *and after* it.

# %%
posterior = grad(forward, 2)(logs[0], logs[1], logs[2][:, observed].T)
assert np.allclose(posterior.sum(axis=1), 1)

figure, axis = plt.subplots(figsize=(9, 2.6), layout="constrained")
axis.fill_between(range(length), states, step="mid", alpha=0.25, label="the state was 1")
axis.plot(posterior[:, 1], label="probability of state 1, by gradient")
axis.plot(np.array(observed) / 2, ".", color="grey", markersize=3, label="the symbol, divided by 2")
axis.set(xlabel="time")
axis.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %% [markdown]
# ## Fitting the model, by gradient and by EM
#
# Adam moves unnormalised numbers, which a log-softmax makes log probabilities. Baum-Welch EM sets each probability to
# its expected count, and the counts are gradients again. Both may end in a local optimum.


# %%
def normalised(logits):
    """Log probabilities along the last axis."""
    return logits - np.expand_dims(log_sum_exp(logits, axis=-1), -1)


def fit_by_gradient(logits, observed, steps):
    f = value_and_grad(lambda parts: -log_likelihood(*(normalised(p) for p in parts), observed) / len(observed))
    parts, states = [part.copy() for part in logits], [{"learning_rate": 0.1} for _ in logits]
    curve = []
    for _ in range(steps):
        loss, gradients = f(parts)
        for part, g, state in zip(parts, gradients, states):
            optim.adam(part, g, state)
        curve.append(-loss * len(observed))
    return curve


def fit_by_em(logits, observed, steps):
    parts = [normalised(part) for part in logits]
    curve = []
    for _ in range(steps):
        counts = [grad(log_likelihood, i)(*parts, observed) for i in range(3)]
        parts = [np.log(c / np.sum(c, axis=-1, keepdims=True) + 1e-300) for c in counts]
        curve.append(log_likelihood(*parts, observed))
    return curve


guess = [0.3 * rng.standard_normal(part.shape) for part in truth]
ours, theirs = fit_by_gradient(guess, observed, steps), fit_by_em(guess, observed, steps)
true = log_likelihood(*logs, observed)
print(f"log-likelihood: {ours[-1]:.2f} by Adam, {theirs[-1]:.2f} by EM, {true:.2f} for the model that made the data")
assert ours[-1] > theirs[-1] - 1.0

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot(ours, label="Adam")
axis.plot(theirs, label="expectation maximisation")
axis.axhline(true, linestyle="--", color="grey", label="the model that made the data")
axis.set(xlabel="step", ylabel="log-likelihood")
axis.legend()
plt.show()
