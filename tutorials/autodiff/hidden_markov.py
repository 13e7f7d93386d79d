"""A hidden Markov model fitted by the gradient of its forward algorithm.

    python tutorials/autodiff/hidden_markov.py

The forward algorithm gives log p(observations); its gradient with respect to the log transition probabilities *is* the
expected number of transitions that the Baum-Welch backward pass computes by hand. First this is checked; then the model
is fitted by Adam, and compared with Baum-Welch EM on the same data.
"""

import argparse

import minnp.numpy as np
from minnp import grad, value_and_grad
from minnp.nn import optim


def log_sum_exp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def log_likelihood(start, transition, emission, observed):
    """log p(observed) from log probabilities: start [K], transition [K, K] (from, to), emission [K, M]."""
    alpha = start + emission[:, observed[0]]
    for symbol in observed[1:]:
        alpha = log_sum_exp(alpha[:, None] + transition, axis=0) + emission[:, symbol]
    return log_sum_exp(alpha, axis=0)


def expected_transitions(start, transition, emission, observed):
    """E[number of transitions i -> j | observed], by the forward-backward algorithm (Rabiner 1989, equation 37)."""
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


def normalised(logits):
    """Log probabilities along the last axis."""
    return logits - np.expand_dims(log_sum_exp(logits, axis=-1), -1)


def sample(probabilities, length, rng):
    """A sequence of symbols from (start, transition, emission) probabilities."""
    start, transition, emission = probabilities
    state, symbols = int(rng.choice(len(start), p=np.array(start))), []
    for _ in range(length):
        symbols.append(int(rng.choice(emission.shape[1], p=np.array(emission[state]))))
        state = int(rng.choice(len(start), p=np.array(transition[state])))
    return symbols


def fit_by_gradient(logits, observed, steps):
    f = value_and_grad(lambda parts: -log_likelihood(*(normalised(p) for p in parts), observed) / len(observed))
    parts, states = [np.array(part) for part in logits], [{"learning_rate": 0.1} for _ in logits]
    for _ in range(steps):
        loss, gradients = f(parts)
        for part, g, config in zip(parts, gradients, states):
            optim.adam(part, g, config)
    return -float(loss) * len(observed)


def fit_by_em(logits, observed, steps):
    """Baum-Welch; the counts of emissions and starts are gradients too, so the M step is three normalisations."""
    parts = [normalised(part) for part in logits]
    for _ in range(steps):
        counts = [grad(log_likelihood, i)(*parts, observed) for i in range(3)]
        parts = [np.log(c / np.sum(c, axis=-1, keepdims=True) + 1e-300) for c in counts]
    return float(log_likelihood(*parts, observed))


def main(length=150, steps=120):
    rng = np.random.default_rng(1)
    truth = (np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]))
    observed = sample(truth, length, rng)
    logs = [np.log(part) for part in truth]

    by_gradient = grad(log_likelihood, 1)(*logs, observed)
    by_hand = expected_transitions(*logs, observed)
    difference = float(np.max(np.abs(by_gradient - by_hand)))
    print("expected transitions, as the gradient of the log-likelihood:")
    print(np.round(by_gradient, 3))
    print(f"largest difference from the forward-backward algorithm: {difference:.1e}")

    guess = [0.3 * rng.standard_normal(part.shape) for part in truth]
    ours, theirs = fit_by_gradient(guess, observed, steps), fit_by_em(guess, observed, steps)
    true = float(log_likelihood(*logs, observed))
    print(f"log-likelihood: {ours:.2f} by Adam, {theirs:.2f} by EM, {true:.2f} for the model that made the data")
    return {"difference": difference, "gradient": ours, "em": theirs, "truth": true}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--steps", type=int, default=120)
    main(**vars(parser.parse_args()))
