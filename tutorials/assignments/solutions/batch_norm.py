# %% exercise: forward
def forward(x, gamma, beta, eps=1e-5):
    """y [N, D] of x [N, D]."""
    return gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) + beta


# %% exercise: backward
def backward(g, x, gamma, eps=1e-5):
    """(dx, dgamma, dbeta)."""
    s = np.sqrt(x.var(axis=0) + eps)
    n = (x - x.mean(axis=0)) / s
    dn = g * gamma
    dx = (dn - dn.mean(axis=0) - n * (dn * n).mean(axis=0)) / s
    return dx, (g * n).sum(axis=0), g.sum(axis=0)


# %% exercise: layer
def layer(x, gamma, beta, running, mode, momentum=0.9, eps=1e-5):
    """forward in "train" mode, updating `running`; with the running averages in "test" mode."""
    if mode == "test":
        return gamma * (x - running["mean"]) / np.sqrt(running["var"] + eps) + beta
    for name, value in (("mean", x.mean(axis=0)), ("var", x.var(axis=0))):
        running[name] *= momentum
        running[name] += (1 - momentum) * value
    return forward(x, gamma, beta, eps)
