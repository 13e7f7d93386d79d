# %% exercise: svm_loss
def svm_loss(w, x, y, reg):
    """The loss of w [D, C] on x [N, D], y [N]."""
    scores = x @ w
    margins = np.maximum(0.0, scores - scores[np.arange(len(x)), y][:, None] + 1.0)
    return np.sum(margins) / len(x) - 1.0 + reg * np.sum(w * w)


# %% exercise: svm_gradient
def svm_gradient(w, x, y, reg):
    """dL/dw [D, C]."""
    rows = np.arange(len(x))
    scores = x @ w
    positive = (scores - scores[rows, y][:, None] + 1.0 > 0).astype(float)
    positive[rows, y] = 0.0
    positive[rows, y] = -positive.sum(axis=1)
    return x.T @ positive / len(x) + 2 * reg * w


# %% exercise: train
def train(w, x, y, rate, reg, steps, batch, rng):
    """Take `steps` steps w -= rate * gradient, in place, each on `batch` examples drawn by rng; returns the losses."""
    losses = []
    for _ in range(steps):
        chosen = rng.choice(len(x), batch)
        losses.append(svm_loss(w, x[chosen], y[chosen], reg))
        w -= rate * svm_gradient(w, x[chosen], y[chosen], reg)
    return losses
