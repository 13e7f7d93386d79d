# %% exercise: scores
def scores(params, x):
    """s [N, 10] for x [N, 64]."""
    h = np.maximum(0, x @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]


# %% exercise: backward
def backward(params, x, y):
    """{name: gradient} of the loss."""
    h = np.maximum(0, x @ params["w1"] + params["b1"])
    s = h @ params["w2"] + params["b2"]
    ds = np.exp(s - s.max(axis=1, keepdims=True))
    ds /= ds.sum(axis=1, keepdims=True)
    ds[np.arange(len(x)), y] -= 1
    ds /= len(x)
    dh = ds @ params["w2"].T * (h > 0)
    return {"w1": x.T @ dh, "b1": dh.sum(axis=0), "w2": h.T @ ds, "b2": ds.sum(axis=0)}


# %% exercise: train
def train(params, x, y, epochs, rng, rate=0.5, decay=0.97):
    """Train in place."""
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), 50):
            chosen = order[start : start + 50]
            for name, g in backward(params, x[chosen], y[chosen]).items():
                params[name] -= rate * g
        rate *= decay
