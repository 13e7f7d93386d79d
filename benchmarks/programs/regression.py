"""Logistic regression: standardised features, one-hot labels, softmax by hand, momentum; a confusion matrix."""

SMALL, MODERATE = 80, 5000


def run(np, size):
    rng = np.random.default_rng(12)
    features, classes = 30, 5
    x = rng.normal(size=(size, features)).astype(np.float32)
    labels = (x @ rng.normal(size=(features, classes)).astype(np.float32)).argmax(1)
    x = np.hstack([(x - x.mean(0)) / x.std(0), np.ones((size, 1), np.float32)])
    target = np.eye(classes, dtype=np.float32)[labels]
    w = np.zeros((features + 1, classes), dtype=np.float32)
    v = np.zeros_like(w)
    losses = []
    for _ in range(5):
        order = rng.permutation(size)
        for at in range(0, size, 50):
            rows = order[at : at + 50]
            logits = x[rows] @ w
            logits -= logits.max(axis=1, keepdims=True)
            p = np.exp(logits)
            p /= p.sum(axis=1, keepdims=True)
            v = 0.9 * v - 0.1 * (x[rows].T @ (p - target[rows]) / len(rows) + 1e-3 * w)
            w += v
        losses.append(-np.log(p[np.arange(len(rows)), labels[rows]]).mean())
    guess = np.argmax(x @ w, axis=-1)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (labels, guess), 1)
    return w, np.array(losses), confusion, np.trace(confusion) / size
