"""Small programs as the course's notes and its students write them: spirals, whitening, a character RNN, a policy
gradient, a k-means on patches, and how arrays meet the rest of Python: pickle, files, formats, dicts, sets, plots."""

import copy
import io
import json
import math
import pickle
import random
from collections import Counter, defaultdict

import numpy as np


def spiral():
    N, D, K = 40, 2, 3
    X, y = np.zeros((N * K, D)), np.zeros(N * K, dtype="uint8")
    for j in range(K):
        ix = range(N * j, N * (j + 1))
        r = np.linspace(0.0, 1, N)
        t = np.linspace(j * 4, (j + 1) * 4, N) + np.random.randn(N) * 0.2
        X[ix] = np.c_[r * np.sin(t), r * np.cos(t)]
        y[ix] = j
    W, b = 0.01 * np.random.randn(D, 30), np.zeros((1, 30))
    W2, b2 = 0.01 * np.random.randn(30, K), np.zeros((1, K))
    printed = []
    for i in range(60):
        hidden = np.maximum(0, np.dot(X, W) + b)
        scores = np.dot(hidden, W2) + b2
        exp_scores = np.exp(scores)
        probs = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
        loss = np.sum(-np.log(probs[range(N * K), y])) / (N * K)
        loss += 0.5 * 1e-3 * np.sum(W * W) + 0.5 * 1e-3 * np.sum(W2 * W2)
        if i % 20 == 0:
            printed.append("iteration %d: loss %f" % (i, loss))
        dscores = probs
        dscores[range(N * K), y] -= 1
        dscores /= N * K
        dW2, db2 = np.dot(hidden.T, dscores), np.sum(dscores, axis=0, keepdims=True)
        dhidden = np.dot(dscores, W2.T)
        dhidden[hidden <= 0] = 0
        dW, db = np.dot(X.T, dhidden), np.sum(dhidden, axis=0, keepdims=True)
        dW2 += 1e-3 * W2
        dW += 1e-3 * W
        for p, d in ((W, dW), (b, db), (W2, dW2), (b2, db2)):
            p += -1.0 * d
    xx, yy = np.meshgrid(np.arange(-1, 1, 0.25), np.arange(-1, 1, 0.25))
    Z = np.dot(np.maximum(0, np.dot(np.c_[xx.ravel(), yy.ravel()], W) + b), W2) + b2
    Z = np.argmax(Z, axis=1).reshape(xx.shape)
    return printed, W, b2, Z, "training accuracy: %.2f" % (np.mean(np.argmax(scores, axis=1) == y))


def whitening():
    X = np.random.multivariate_normal([1, 2, 3], [[2, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]], 200)
    X -= np.mean(X, axis=0)
    cov = np.dot(X.T, X) / X.shape[0]
    U, S, V = np.linalg.svd(cov)
    Xrot = np.dot(X, U)
    white = Xrot / np.sqrt(S + 1e-5)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(3), atol=1e-4)
    return Xrot[:, :2], S, np.corrcoef(X.T), np.round(np.cov(white, rowvar=False), 3)


def character_rnn():
    data = "the cat sat on the mat and the dog sat on the cat " * 3
    chars = sorted(set(data))
    size, hidden, length = len(chars), 12, 10
    to_ix = {c: i for i, c in enumerate(chars)}
    Wxh, Whh, Why = (np.random.randn(*s) * 0.01 for s in ((hidden, size), (hidden, hidden), (size, hidden)))
    bh, by = np.zeros((hidden, 1)), np.zeros((size, 1))
    memory = [np.zeros_like(p) for p in (Wxh, Whh, Why, bh, by)]
    smooth, p, losses = -np.log(1.0 / size) * length, 0, []
    hprev = np.zeros((hidden, 1))
    for n in range(25):
        if p + length + 1 >= len(data):
            hprev, p = np.zeros((hidden, 1)), 0
        inputs, targets = ([to_ix[c] for c in data[p + k : p + k + length]] for k in (0, 1))
        xs, hs, ps, loss = {}, {-1: np.copy(hprev)}, {}, 0
        for t in range(length):
            xs[t] = np.zeros((size, 1))
            xs[t][inputs[t]] = 1
            hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
            e = np.exp(np.dot(Why, hs[t]) + by)
            ps[t] = e / np.sum(e)
            loss += -np.log(ps[t][targets[t], 0])
        grads = [np.zeros_like(w) for w in (Wxh, Whh, Why, bh, by)]
        dWxh, dWhh, dWhy, dbh, dby = grads
        dhnext = np.zeros_like(hs[0])
        for t in reversed(range(length)):
            dy = np.copy(ps[t])
            dy[targets[t]] -= 1
            dWhy += np.dot(dy, hs[t].T)
            dby += dy
            draw = (1 - hs[t] * hs[t]) * (np.dot(Why.T, dy) + dhnext)
            dbh += draw
            dWxh += np.dot(draw, xs[t].T)
            dWhh += np.dot(draw, hs[t - 1].T)
            dhnext = np.dot(Whh.T, draw)
        for dparam in grads:
            np.clip(dparam, -5, 5, out=dparam)
        hprev = hs[length - 1]
        smooth = smooth * 0.999 + loss * 0.001
        for param, dparam, mem in zip((Wxh, Whh, Why, bh, by), grads, memory):
            mem += dparam * dparam
            param += -0.1 * dparam / np.sqrt(mem + 1e-8)
        losses.append(round(float(loss), 6))
        p += length
    x, h, written = np.zeros((size, 1)), hprev, []
    for _ in range(30):
        h = np.tanh(np.dot(Wxh, x) + np.dot(Whh, h) + bh)
        e = np.exp(np.dot(Why, h) + by)
        ix = np.random.choice(range(size), p=(e / np.sum(e)).ravel())
        x = np.zeros((size, 1))
        x[ix] = 1
        written.append(chars[ix])
    return losses, smooth, "".join(written), Wxh


def policy_gradient():
    """A cart on a line, pushed by a policy of two layers; rewards discounted backwards, RMSprop on sums of gradients."""
    model = {"W1": np.random.randn(8, 4) / np.sqrt(4), "W2": np.random.randn(8) / np.sqrt(8)}
    buffer, cache = ({k: np.zeros_like(v) for k, v in model.items()} for _ in range(2))
    totals = []
    for episode in range(6):
        state, xs, hs, dlogps, drs = np.random.uniform(-0.05, 0.05, 4), [], [], [], []
        for _ in range(20):
            h = np.dot(model["W1"], state)
            h[h < 0] = 0
            aprob = 1.0 / (1.0 + np.exp(-np.dot(model["W2"], h)))
            push = 1 if np.random.uniform() < aprob else 0
            xs.append(state)
            hs.append(h)
            dlogps.append(push - aprob)
            velocity = state[1] + 0.1 * (2 * push - 1)
            state = np.array([state[0] + 0.1 * velocity, velocity, state[0], state[1]])
            drs.append(1.0 - abs(state[0]))
        epx, eph, epdlogp, epr = np.vstack(xs), np.vstack(hs), np.vstack(dlogps), np.vstack(drs)
        discounted, running = np.zeros_like(epr), 0
        for t in reversed(range(0, epr.size)):
            running = running * 0.99 + epr[t, 0]
            discounted[t] = running
        discounted -= np.mean(discounted)
        discounted /= np.std(discounted)
        epdlogp *= discounted
        dh = np.outer(epdlogp, model["W2"])
        dh[eph <= 0] = 0
        for k, g in {"W2": np.dot(eph.T, epdlogp).ravel(), "W1": np.dot(dh.T, epx)}.items():
            buffer[k] += g
        if episode % 2:
            for k, v in model.items():
                cache[k] = 0.9 * cache[k] + 0.1 * buffer[k] ** 2
                model[k] += 1e-2 * buffer[k] / (np.sqrt(cache[k]) + 1e-5)
                buffer[k] = np.zeros_like(v)
        totals.append(sum(drs))
    return totals, model


def k_means():
    X = np.concatenate([np.random.randn(30, 2) + c for c in ([0, 0], [5, 5], [0, 5])])
    np.random.shuffle(X)
    centres = X[np.random.permutation(len(X))[:3]].copy()
    for _ in range(5):
        owner = np.linalg.norm(X[:, np.newaxis] - centres, axis=2).argmin(axis=1)
        for k in range(3):
            if np.any(owner == k):
                centres[k] = X[owner == k].mean(0)
    order = np.lexsort((X[:, 1], owner))
    inertia = np.array([((X[owner == k] - centres[k]) ** 2).sum() for k in range(3)])
    return centres, np.bincount(owner, minlength=4), X[order][:5], inertia, np.argwhere(X > 5)[:4]


def with_the_rest_of_python():
    """Labels as dict keys and range's ends, arrays in pickles, files, deep copies and sorted lists."""
    y = np.array([3, 1, 3, 0, 1, 3])
    by_class, seen = defaultdict(list), Counter()
    for i, label in enumerate(y):
        by_class[int(label)].append(i)
        seen[label] += 1
    n = np.array(4)
    counted = [
        int(n),
        list(range(n)),
        "abcdef"[n],
        [10, 20, 30, 40, 50][n],
        "%d %5.2f" % (n, y.mean()),
        f"{y.max():03d}",
    ]
    params = {"W": np.random.randn(3, 2), "b": np.zeros(2, np.float32)}
    kept = copy.deepcopy(params)
    params["W"] *= 0
    again = pickle.loads(pickle.dumps(kept))
    assert isinstance(again["W"], np.ndarray) and again["b"].dtype == np.float32
    np.testing.assert_array_equal(again["W"], kept["W"])
    file = io.BytesIO()
    np.savez(file, **kept)
    file.seek(0)
    loaded = np.load(file)
    text = io.StringIO()
    np.savetxt(text, kept["W"], fmt="%.4f", delimiter=",")
    text.seek(0)
    table = np.genfromtxt(text, delimiter=",")
    W = kept["W"]
    for i in range(len(W.flat)):
        W.flat[i] = W.flat[i] + i
    W.flat[::2] *= 2
    named = [(i, float(v)) for i, v in np.ndenumerate(W)]
    cells = [W[i] for i in np.ndindex(*W.shape)]
    rates = sorted(10 ** np.random.uniform(-4, -1, 5))
    best, results = -1, {}
    for rate in rates:
        for reg in (1e-3, 1e-2):
            results[(rate, reg)] = (math.sin(rate), np.mean(y == 3) - reg)
            best = max(best, results[(rate, reg)][1])
    picked = random.choice([v for v in y])
    view = np.lib.stride_tricks.as_strided(y, (5, 2), (y.itemsize, y.itemsize))
    padded = np.pad(W, ((1, 1), (0, 0)), mode="edge")
    top = np.argpartition(-W.ravel(), 2)[:2]
    return {
        "classes": (dict(by_class), [(int(k), v) for k, v in seen.most_common()], sorted(set(y.tolist())), 3 in y),
        "python": (counted, json.dumps({"loss": float(W.sum())}), sum(y), min(y), sorted(y), picked, best),
        "arrays": (again, loaded["W"], table, named, cells, rates, view, padded, np.sort(W.ravel()[top])),
        "searched": (results, np.in1d(y, [1, 0]) if hasattr(np, "in1d") else np.isin(y, [1, 0]), np.ix_([0, 2], [1])),
        "applied": (np.apply_along_axis(np.argmax, 1, W), np.vectorize(lambda a: a + 1)(y), np.nan_to_num(W / 1.0)),
    }


def shown():
    """What matplotlib draws of arrays: the pixels of a small picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5, 1))
    canvas = FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.imshow(np.random.rand(4, 4, 3))
    left.axis("off")
    right.plot(np.arange(5), np.cumsum(np.random.rand(5)), "o-")
    right.errorbar(np.arange(3), np.ones(3), yerr=np.array([0.1, 0.2, 0.3]))
    right.hist(np.random.randn(50), bins=5)
    canvas.draw()
    return np.array(canvas.buffer_rgba())


def main():
    np.random.seed(42)
    programs = (spiral, whitening, character_rnn, policy_gradient, k_means, with_the_rest_of_python, shown)
    return {program.__name__: program() for program in programs}
