# %% exercise: dropout
def dropout(x, p, mode, rng):
    """x with dropped elements in "train" mode; x itself in "test" mode."""
    if mode == "test":
        return x
    return x * (rng.random(x.shape) >= p) / (1 - p)


# %% exercise: dropout_gradient
def dropout_gradient(g, p, rng):
    """dx for the gradient g of dropout's result in "train" mode."""
    return g * (rng.random(g.shape) >= p) / (1 - p)
