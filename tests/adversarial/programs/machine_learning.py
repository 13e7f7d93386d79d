"""Machine learning by hand: classifiers, attention, recurrent cells, norms, convolutions, pooling, training loops."""

import numpy as np

from tests.adversarial.program import program


def softmax(z, axis=-1):
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@program(lambda r: (r.normal(size=(6, 4)), r.normal(size=(4, 3)), r.integers(0, 3, 6)))
def softmax_regression_step(x, w, y):
    p = softmax(x @ w)
    loss = -np.log(p[np.arange(6), y]).mean()
    p[np.arange(6), y] -= 1
    w -= 0.5 * x.T @ p / len(x)
    return loss, w


@program(lambda r: (r.normal(size=(5, 4)), r.normal(size=(4, 12)), r.integers(2, 6)))
def causal_attention(x, w, heads):
    q, k, v = np.split((x @ w).reshape(5, 3, 2, 2).transpose(1, 2, 0, 3), 3)
    scores = (q @ k.swapaxes(-1, -2) / np.sqrt(2))[0]
    scores[..., ~np.tri(5, dtype=bool)] = -np.inf
    out = softmax(scores) @ v[0]
    return out.transpose(1, 0, 2).reshape(5, 4), scores[0, -1] / heads


@program(lambda r: (r.normal(size=(4, 2)), r.normal(size=(2, 12)), r.normal(size=(3, 12)), r.normal(size=12)))
def lstm(xs, wx, wh, b):
    h, c = np.zeros(3), np.zeros(3)
    hs = np.empty((len(xs), 3))
    for t, x in enumerate(xs):
        i, f, o, g = (x @ wx + h @ wh + b).reshape(4, 3)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        hs[t] = h
    return hs, c


@program(lambda r: (r.normal(size=(5, 3)), r.normal(size=(3, 6)), r.normal(size=(3, 3))))
def gated_unit(xs, w, u):
    h = np.zeros(3)
    for x in xs:
        z, r = sigmoid(x @ w[:, :3]), sigmoid(x @ w[:, 3:])
        h = (1 - z) * h + z * np.tanh(x + (r * h) @ u)
    return h


@program(lambda r: (r.normal(size=(8, 3)), r.uniform(0.5, 2, 3), r.normal(size=3)))
def batch_norm_with_running_mean(x, gamma, beta):
    running = {"mean": np.zeros(3), "var": np.ones(3)}
    outs = []
    for batch in (x[:4], x[4:]):
        mu, var = batch.mean(0), batch.var(0)
        running["mean"] = 0.9 * running["mean"] + 0.1 * mu
        running["var"] *= 0.9
        running["var"] += 0.1 * var
        outs.append(gamma * (batch - mu) / np.sqrt(var + 1e-3) + beta)
    return np.vstack(outs), running["mean"], running["var"]


@program(lambda r: (r.normal(size=(2, 2, 5, 5)), r.normal(size=(3, 2, 3, 3))))
def convolution_by_loops(x, w):
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.zeros((2, 3, 3, 3))
    for i in range(3):
        for j in range(3):
            patch = p[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            out[:, :, i, j] = np.tensordot(patch, w, axes=([1, 2, 3], [1, 2, 3]))
    return out


@program(lambda r: (r.normal(size=(2, 5, 5)), r.normal(size=(3, 2, 2, 2)), r.normal(size=3)))
def convolution_by_index_columns(x, w, b):
    c = np.repeat(np.arange(2), 4)[:, None]
    i = np.tile(np.repeat([0, 1], 2), 2)[:, None] + np.repeat(np.arange(4), 4)
    j = np.tile([0, 1], 4)[:, None] + np.tile(np.arange(4), 4)
    cols = x[c, i, j]
    y = (w.reshape(3, -1) @ cols + b[:, None]).reshape(3, 4, 4)
    back = np.zeros_like(x)
    np.add.at(back, (c, i, j), cols)
    return np.maximum(y, 0), back


@program(lambda r: (r.normal(size=(3, 6, 4)),))
def pooling_by_reshape_and_slices(x):
    a = x.reshape(3, 3, 2, 2, 2).max(axis=(2, 4))
    b = np.maximum(np.maximum(x[:, ::2, ::2], x[:, 1::2, ::2]), np.maximum(x[:, ::2, 1::2], x[:, 1::2, 1::2]))
    m = x == np.kron(b, np.ones((2, 2)))
    return a - b, (m * x).sum(0), np.where(m, x, 0.0)[:, :2]


@program(lambda r: (r.normal(size=(4, 6)), r.random((4, 6))))
def dropout_with_a_given_and_a_drawn_mask(x, u):
    keep = 0.7
    h = x * (u < keep) / keep
    mask = np.random.default_rng(7).random(h.shape) < 0.5
    h[~mask] = 0
    return np.tanh(h) @ x.T


@program(lambda r: (r.normal(size=(8, 2)), r.normal(size=(2, 5)), r.normal(size=5)))
def two_layers_trained_by_hand(x, w1, w2):
    y = np.sin(x).sum(1)
    losses = []
    for _ in range(5):
        h = np.tanh(x @ w1)
        e = h @ w2 - y
        losses.append(0.5 * e @ e)
        g2 = h.T @ e
        g1 = x.T @ (np.outer(e, w2) * (1 - h * h))
        w2 -= 0.02 * g2
        w1 -= 0.02 * g1
    return losses, w1


@program(lambda r: (r.normal(size=(7, 2)), r.normal(size=(5, 2)), r.uniform(0.5, 1.5)))
def gaussian_process(x, z, scale):
    def k(a, b):
        d = ((a[:, None] - b[None]) ** 2).sum(-1)
        return np.exp(-0.5 * d / scale**2)

    y = x[:, 0] * np.cos(x[:, 1])
    low = np.linalg.cholesky(k(x, x) + 0.1 * np.eye(7))
    alpha = np.linalg.solve(low.T, np.linalg.solve(low, y))
    v = np.linalg.solve(low, k(x, z))
    return k(z, x) @ alpha, 1 - (v * v).sum(0), -0.5 * y @ alpha - np.log(np.diag(low)).sum()


@program(lambda r: (r.normal(size=(12, 2)),), order=2)
def k_means(x):
    centres = x[:3].copy()
    for _ in range(5):
        d = ((x[:, None] - centres) ** 2).sum(2)
        k = d.argmin(1)
        for c in range(3):
            if (k == c).any():
                centres[c] = x[k == c].mean(axis=0)
    return centres, k, d.min(1).sum()


@program(lambda r: (r.normal(size=(10, 3)), r.normal(size=3), r.choice([-1, 1], 10)))
def hinge_loss_and_its_descent(x, w, y):
    for t in range(1, 6):
        margin = y * (x @ w)
        bad = margin < 1
        w = (1 - 0.1 / t) * w + 0.1 / t * (y[bad, None] * x[bad]).sum(axis=0)
    return w, np.maximum(0, 1 - y * (x @ w)).sum()


@program(lambda r: (r.normal(size=(4, 5)), r.normal(size=5), r.normal(size=5)))
def layer_norm_and_gelu(x, g, b):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b
    return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))


@program(lambda r: (r.normal(size=(6, 4)), r.integers(0, 2, 6)))
def contrastive_pairs(z, same):
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    s = z @ z.T / 0.5
    np.fill_diagonal(s, -1e9)
    logp = s - np.log(np.exp(s).sum(1, keepdims=True))
    positive = (same[:, None] == same) & ~np.eye(6, dtype=bool)
    return -(logp * positive).sum() / max(positive.sum(), 1), s.max(0)


@program(lambda r: (r.normal(size=(9, 3)), r.normal(size=9)))
def regression_stump(x, y):
    best = (np.inf, None, None)
    for j in range(3):
        order = np.argsort(x[:, j])
        ys = y[order]
        left = np.cumsum(ys)[:-1]
        n = np.arange(1, 9)
        gain = left**2 / n + (ys.sum() - left) ** 2 / (9 - n)
        k = int(gain.argmax())
        if -gain[k] < best[0]:
            best = (-gain[k], j, (x[order[k], j] + x[order[k + 1], j]) / 2)
    score, j, cut = best
    side = x[:, j] < cut
    return score, np.where(side, y[side].mean(), y[~side].mean())


@program(lambda r: (r.normal(size=(5, 8)),))
def rotary_positions(q):
    half = q.shape[1] // 2
    angle = np.arange(5)[:, None] / 10 ** (np.arange(half) / half)
    a, b = q[:, :half], q[:, half:]
    q[:] = np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=1)
    return q @ q.T, b


@program(lambda r: (r.normal(size=(4, 6)), r.normal(size=(6, 6))))
def top_k_routing(x, w):
    logits = x @ w
    k = np.argpartition(-logits, 2, axis=1)[:, :2]
    k.sort(axis=1)
    gate = softmax(np.take_along_axis(logits, k, 1))
    out = np.zeros_like(x)
    for slot in range(2):
        out += gate[:, slot, None] * np.tanh(x * w[k[:, slot]])
    return out, gate, np.bincount(k.ravel(), minlength=6)


@program(lambda r: (r.normal(size=5), r.normal(size=(8, 5))))
def logistic_regression_by_newton(w, x):
    t = (x.sum(1) > 0).astype(float)
    for _ in range(4):
        p = sigmoid(x @ w)
        hessian = (x.T * (p * (1 - p))) @ x + 0.5 * np.eye(5)
        w = w - np.linalg.solve(hessian, x.T @ (p - t) + 0.5 * w)
    return w


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=(4, 2)), r.normal(size=(2, 4))))
def autoencoder_and_its_loss(x, enc, dec):
    z = x @ enc
    z[:, 0] = np.maximum(0.01 * z[:, 0], z[:, 0])
    kl = 0.5 * (z**2 - 1 - np.log(z**2 + 0.1)).sum()
    return ((z @ dec - x) ** 2).mean() + 0.01 * kl


@program(lambda r: (r.normal(size=(6, 3)), r.normal(size=(3, 3)), r.integers(0, 2, (6, 6))))
def graph_convolution(x, w, adjacency):
    a = np.maximum(adjacency, adjacency.T).astype(float)
    np.fill_diagonal(a, 1)
    d = a.sum(0) ** -0.5
    for _ in range(2):
        x = np.tanh(d[:, None] * (a @ (d[:, None] * x)) @ w)
    return x


@program(lambda r: (r.normal(size=(4, 3)), r.uniform(0.1, 0.9, 4), 0.9))
def discounted_returns_and_policy_loss(logits, reward, gamma):
    returns = np.zeros_like(reward)
    running = 0
    for t in reversed(range(len(reward))):
        running = reward[t] + gamma * running
        returns[t] = running
    returns -= returns.mean()
    returns /= returns.std() + 1e-3
    logp = np.log(softmax(logits))
    action = logits.argmax(1)
    return -(logp[range(4), action] * returns).sum(), returns


@program(lambda r: (r.normal(size=(2, 3, 4)), np.array([4, 2])))
def padded_batch_with_lengths(x, lengths):
    mask = np.arange(4) < lengths[:, None]
    s = np.where(mask[:, None], x, -np.inf)
    p = softmax(s)
    mean = (x * mask[:, None]).sum(-1) / lengths[:, None]
    last = x[np.arange(2), :, lengths - 1]
    return p, mean, last


@program(lambda r: (r.normal(size=(6, 5)),))
def principal_components(x):
    x = x - x.mean(0)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    low = (u[:, :2] * s[:2]) @ vt[:2]
    cov = np.cov(x, rowvar=False)
    return low, s**2 / 5 - np.linalg.eigvalsh(cov)[::-1], np.corrcoef(x.T)[0]


@program(lambda r: (r.normal(size=(3, 5)), r.normal(size=(3, 5))))
def weight_decay_by_names(w, g):
    params = {"w": w, "b": w[:, 0], "tied": w.T}
    for name, p in params.items():
        decay = 0.0 if name == "b" else 0.1
        step = g[:, 0] if name == "b" else (g.T if name == "tied" else g)
        p -= 0.1 * (step + decay * p)
    norm = np.sqrt(sum((p**2).sum() for p in params.values()))
    if norm > 1:
        w *= 1 / norm
    return w, params["b"], norm
