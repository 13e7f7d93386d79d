"""A hidden Markov model: scaled forward and backward passes, Viterbi path, one Baum-Welch step."""

SMALL, MODERATE = 30, 3000


def run(np, size):
    rng = np.random.RandomState(8)
    states, symbols = 6, 12
    transition, emission = rng.dirichlet(np.ones(states), states), rng.dirichlet(np.ones(symbols), states)
    start = np.full(states, 1 / states)
    seen = rng.randint(symbols, size=size)
    alpha, beta, scale = np.empty((size, states)), np.ones((size, states)), np.empty(size)
    alpha[0] = start * emission[:, seen[0]]
    for t in range(size):
        if t:
            alpha[t] = (alpha[t - 1] @ transition) * emission[:, seen[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in range(size - 2, -1, -1):
        beta[t] = transition @ (emission[:, seen[t + 1]] * beta[t + 1]) / scale[t + 1]
    gamma = alpha * beta
    gamma /= gamma.sum(axis=1, keepdims=True)
    best, back = np.log(start) + np.log(emission[:, seen[0]]), np.zeros((size, states), dtype=int)
    for t in range(1, size):
        score = best[:, None] + np.log(transition)
        back[t] = score.argmax(axis=0)
        best = score.max(axis=0) + np.log(emission[:, seen[t]])
    path = [int(best.argmax())]
    for t in range(size - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    counts = np.zeros((states, symbols))
    np.add.at(counts.T, seen, gamma)
    return np.log(scale).sum(), gamma, path[::-1], counts / counts.sum(axis=1, keepdims=True)
