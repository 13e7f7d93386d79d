# %% exercise: initial
def initial(sizes, rng):
    """[(w1, b1), (w2, b2), ...] for layers of these sizes."""
    return [(rng.standard_normal((n, m)) * (2 / n) ** 0.5, np.zeros(m)) for n, m in zip(sizes[:-1], sizes[1:])]


# %% exercise: scores
def scores(params, x):
    """[N, C] for x [N, D]."""
    for w, b in params[:-1]:
        x = np.maximum(0, x @ w + b)
    w, b = params[-1]
    return x @ w + b


# %% exercise: momentum
def momentum(w, g, v, rate, m=0.9):
    """One step, writing to w and v."""
    v *= m
    v -= rate * g
    w += v


# %% exercise: adam
def adam(w, g, m, v, t, rate, b1=0.9, b2=0.999, eps=1e-8):
    """Step number t, writing to w, m and v."""
    m *= b1
    m += (1 - b1) * g
    v *= b2
    v += (1 - b2) * g**2
    w -= rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
