# %% exercise: step
def step(x, h, wx, wh, b):
    """h' [N, H] from x [N, D] and h [N, H]."""
    return np.tanh(x @ wx + h @ wh + b)


# %% exercise: step_backward
def step_backward(g, x, h, wx, wh, b):
    """(dx, dh, dwx, dwh, db) for the gradient g of h'."""
    da = g * (1 - step(x, h, wx, wh, b) ** 2)
    return da @ wx.T, da @ wh.T, x.T @ da, h.T @ da, da.sum(axis=0)


# %% exercise: sequence
def sequence(x, h0, wx, wh, b):
    """h [N, T, H] of x [N, T, D]: h[:, t] is step(x[:, t], h[:, t - 1]), h0 before the first."""
    h, hs = h0, []
    for t in range(x.shape[1]):
        h = step(x[:, t], h, wx, wh, b)
        hs.append(h)
    return np.stack(hs, axis=1)


# %% exercise: loss
def loss(p, pictures, words):
    """The mean over pictures of -log p(caption)."""
    targets = words[:, 1:]
    h0 = pictures @ p["wp"] + p["bp"]
    h = sequence(p["embedding"][words[:, :-1]], h0, p["wx"], p["wh"], p["b"])
    return layers.temporal_softmax_loss(h @ p["ws"] + p["bs"], targets, targets != 0)


# %% exercise: describe
def describe(p, pictures):
    """Word numbers [N, LENGTH] for pictures [N, 128]."""
    h, word, said = pictures @ p["wp"] + p["bp"], np.full(len(pictures), captions.INDEX["<start>"]), []
    for _ in range(captions.LENGTH):
        h = step(p["embedding"][word], h, p["wx"], p["wh"], p["b"])
        word = np.argmax(h @ p["ws"] + p["bs"], axis=1)
        said.append(word)
    return np.stack(said, axis=1)
