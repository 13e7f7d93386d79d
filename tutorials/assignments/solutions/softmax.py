# %% exercise: softmax_loss
def softmax_loss(w, x, y, reg):
    """The loss of w [D, C] on x [N, D], y [N]."""
    s = x @ w
    s = s - s.max(axis=1, keepdims=True)
    log_p = s - np.log(np.sum(np.exp(s), axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(x)), y]) + reg * np.sum(w * w)


# %% exercise: softmax_gradient
def softmax_gradient(w, x, y, reg):
    """dL/dw [D, C]."""
    s = x @ w
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(x)), y] -= 1
    return x.T @ p / len(x) + 2 * reg * w
