"""Dynamic programming: tables filled cell by cell, row by row, in place, with and without a way back."""

from functools import cache

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=6), r.normal(size=5)))
def time_warping(a, b):
    d = np.full((len(a) + 1, len(b) + 1), np.inf)
    d[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = (a[i - 1] - b[j - 1]) ** 2
            d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[-1, -1]


@program(lambda r: (r.integers(0, 3, 7), r.integers(0, 3, 8)), order=0, nums=False)
def edit_distance(a, b):
    previous = np.arange(len(b) + 1)
    current = np.empty_like(previous)
    for i, x in enumerate(a):
        current[0] = i + 1
        for j, y in enumerate(b):
            current[j + 1] = min(previous[j] + (x != y), previous[j + 1] + 1, current[j] + 1)
        previous, current = current, previous
    return previous[-1], previous.copy()


@program(lambda r: (r.uniform(0.5, 1.5, 3), r.integers(0, 4, 6), r.integers(0, 4, 5)))
def weighted_edit_distance(costs, a, b):
    swap, drop, add = costs
    d = np.zeros((a.size + 1, b.size + 1))
    d[:, 0] = np.arange(a.size + 1) * drop
    d[0] = np.arange(b.size + 1) * add
    for (i, j), _ in np.ndenumerate(d[1:, 1:]):
        d[i + 1, j + 1] = min(d[i, j] + swap * (a[i] != b[j]), d[i, j + 1] + drop, d[i + 1, j] + add)
    return d


@program(lambda r: (r.normal(size=(4, 4)), r.normal(size=(7, 4)), r.normal(size=4)))
def viterbi(transition, emission, start):
    steps, states = emission.shape
    score = start + emission[0]
    back = np.zeros((steps, states), dtype=int)
    for t in range(1, steps):
        reach = score[:, None] + transition
        back[t] = reach.argmax(0)
        score = reach[back[t], np.arange(states)] + emission[t]
    path = [int(np.argmax(score))]
    for t in range(steps - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return score.max(), np.array(path[::-1])


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=(6, 3))))
def forward_algorithm(transition, emission):
    alpha = np.empty_like(emission)
    alpha[0] = emission[0]
    for t in range(1, len(emission)):
        s = alpha[t - 1][:, np.newaxis] + transition
        m = s.max(axis=0)
        alpha[t] = emission[t] + m + np.log(np.exp(s - m).sum(axis=0))
    return np.logaddexp.reduce(alpha[-1]), alpha


@program(lambda r: (r.dirichlet(np.ones(3), 3), r.dirichlet(np.ones(4), 3), r.integers(0, 4, 6)))
def forward_backward(a, b, seen):
    n, k = len(seen), len(a)
    f = np.zeros((n, k))
    c = np.zeros(n)
    f[0] = b[:, seen[0]] / k
    for t in range(n):
        if t:
            f[t] = f[t - 1] @ a * b[:, seen[t]]
        c[t] = f[t].sum()
        f[t] /= c[t]
    g = np.ones((n, k))
    for t in reversed(range(n - 1)):
        g[t] = a @ (b[:, seen[t + 1]] * g[t + 1]) / c[t + 1]
    return f * g, -np.log(c).sum()


@program(lambda r: (r.uniform(1, 5, 6), r.integers(1, 5, 6)))
def knapsack(values, weights):
    best = np.zeros(11)
    for v, w in zip(values, weights):
        best[w:] = np.maximum(best[w:], best[:-w] + v)
    return best


@program(lambda r: (r.uniform(1, 5, 5), r.integers(1, 4, 5)))
def knapsack_with_repeats(values, weights):
    best = np.zeros(10)
    for c in range(1, 10):
        options = [best[c - w] + v for v, w in zip(values, weights) if w <= c]
        best[c] = max(options, default=0.0)
    return best[-1], best[::3]


@program(lambda r: (r.normal(size=(7, 6)),))
def local_alignment(s):
    h = np.zeros((8, 7))
    gap = 0.3
    for i in range(7):
        for j in range(6):
            h[i + 1, j + 1] = np.max([0.0, h[i, j] + s[i, j], h[i, j + 1] - gap, h[i + 1, j] - gap])
    i, j = np.unravel_index(np.argmax(h), h.shape)
    trace = []
    while h[i, j] > 0:
        trace.append(h[i, j])
        if h[i, j] == h[i - 1, j - 1] + s[i - 1, j - 1]:
            i, j = i - 1, j - 1
        elif h[i, j] == h[i - 1, j] - gap:
            i -= 1
        else:
            j -= 1
    return h.max(), sum(trace)


@program(lambda r: (r.permutation(12), r.normal(size=12)))
def heaviest_increasing_subsequence(order, weight):
    best = weight.copy()
    for i in range(1, len(order)):
        for j in range(i):
            if order[j] < order[i] and best[j] + weight[i] > best[i]:
                best[i] = best[j] + weight[i]
    return best.max(), best


@program(lambda r: (r.permutation(20),), order=0, nums=False)
def increasing_subsequence_by_search(x):
    tails = np.full(len(x), np.iinfo(x.dtype).max)
    length = 0
    for v in x:
        k = np.searchsorted(tails[:length], v)
        tails[k] = v
        length = max(length, int(k) + 1)
    return length, int(tails[:length].sum())


@program(lambda r: (r.uniform(1, 3, 6),))
def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n))
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            m[i, j] = min(m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1] for k in range(i, j))
    return m[0, -1], m


@program(lambda r: (r.normal(size=(5, 6)),))
def cheapest_seam(energy):
    cost = energy.copy()
    for i in range(1, cost.shape[0]):
        up = np.pad(cost[i - 1], 1, constant_values=np.inf)
        cost[i] += np.minimum(np.minimum(up[:-2], up[1:-1]), up[2:])
    j = int(cost[-1].argmin())
    kept = np.ones(energy.shape, dtype=bool)
    for i in range(energy.shape[0] - 1, -1, -1):
        kept[i, j] = False
        if i:
            lo = max(j - 1, 0)
            j = lo + int(cost[i - 1, lo : j + 2].argmin())
    return energy[kept].reshape(5, 5)


@program(lambda r: (r.uniform(0, 1, (4, 5)),))
def grid_path_in_place(g):
    g[0] = np.cumsum(g[0])
    np.add.accumulate(g[:, 0], out=g[:, 0])
    for i in range(1, g.shape[0]):
        for j in range(1, g.shape[1]):
            g[i, j] += np.minimum(g[i - 1, j], g[i, j - 1])
    return g[-1, -1] + 0.1 * g.mean()


@program(lambda r: (r.integers(1, 9, 8),), order=0, nums=False)
def coin_change(coins):
    ways = np.zeros(30, dtype=np.int64)
    ways[0] = 1
    for c in np.unique(coins):
        for k in range(c, len(ways)):
            ways[k] += ways[k - c]
    return ways, ways[-1].item()


@program(lambda r: (r.normal(size=10),))
def maximum_subarray(x):
    best = here = x[0]
    where = (0, 0)
    start = 0
    for i, v in enumerate(x[1:], 1):
        if here < 0:
            here, start = v, i
        else:
            here = here + v
        if here > best:
            best, where = here, (start, i)
    return best, x[where[0] : where[1] + 1].sum() - best, x.cumsum()[where[1]]


@program(lambda r: (r.uniform(1, 2, (5, 5)),))
def travelling_salesman(d):
    n = len(d)
    full = (1 << n) - 1
    best = {(1, 0): d[0, 0] * 0}
    for mask in range(3, full + 1, 2):
        for last in range(1, n):
            if mask >> last & 1:
                rest = mask ^ (1 << last)
                reach = [best[rest, k] + d[k, last] for k in range(n) if (rest, k) in best]
                if reach:
                    best[mask, last] = min(reach)
    return min(best[full, k] + d[k, 0] for k in range(1, n))


@program(lambda r: (r.normal(size=6),))
def optimal_game(x):
    @cache
    def lead(i, j):
        if i == j:
            return x[i]
        return max(x[i] - lead(i + 1, j), x[j] - lead(i, j - 1))

    return lead(0, len(x) - 1)


@program(lambda r: (r.uniform(0, 1, 7),))
def search_tree_cost(p):
    n = len(p)
    cost = np.zeros((n + 1, n + 1))
    root = np.zeros((n, n), dtype=np.int8)
    s = np.concatenate([[0.0], np.cumsum(p)])
    for i, v in enumerate(p):
        cost[i, i + 1] = v
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            options = cost[i, i:j] + cost[i + 1 : j + 1, j]
            k = options.argmin()
            root[i, j - 1] = i + k
            cost[i, j] = options[k] + (s[j] - s[i])
    return cost[0, n], root


@program(lambda r: (r.normal(size=(5, 3)), r.integers(0, 3, 3)))
def ctc_loss(logits, labels):
    logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    blank = 0
    labels = np.minimum(labels, 1) + 1
    ext = np.full(2 * 2 + 1, blank)
    ext[1::2] = labels[:2]
    alpha = np.full(len(ext), -1e3)
    alpha[:2] = logp[0, ext[:2]]
    for t in range(1, len(logp)):
        new = alpha.copy()
        new[1:] = np.logaddexp(new[1:], alpha[:-1])
        for s in range(2, len(ext)):
            if ext[s] != blank and ext[s] != ext[s - 2]:
                new[s] = np.logaddexp(new[s], alpha[s - 2])
        alpha = new + logp[t, ext]
    return -np.logaddexp(alpha[-1], alpha[-2])


@program(lambda r: (r.uniform(0.2, 0.8, 6),))
def poisson_binomial(p):
    pmf = np.zeros(len(p) + 1)
    pmf[0] = 1
    for k, q in enumerate(p):
        pmf[1 : k + 2] = pmf[1 : k + 2] * (1 - q) + pmf[: k + 1] * q
        pmf[0] *= 1 - q
    return pmf, pmf @ np.arange(len(pmf))


@program(lambda r: (r.normal(size=(6, 6)),))
def segments_by_least_squares(x):
    y = x.ravel()[:10]
    cost = np.zeros((10, 11))
    for i in range(10):
        for j in range(i + 1, 11):
            cost[i, j] = ((y[i:j] - y[i:j].mean()) ** 2).sum()
    best = np.full(11, np.inf)
    best[0] = 0.0
    for j in range(1, 11):
        best[j] = (best[:j] + cost[:j, j] + 0.4).min()
    return best[1:]


@program(lambda r: (r.normal(size=(2, 8)), 0.7))
def assembly_line(stations, switch):
    a, b = stations[0, 0], stations[1, 0]
    for s in stations.T[1:]:
        a, b = s[0] + min(a, b + switch), s[1] + min(b, a + switch)
    return np.array([a, b])


@program(lambda r: (r.uniform(0, 1, 8), 0.9))
def value_iteration(reward, gamma):
    v = np.zeros_like(reward)
    left, right = np.roll(np.arange(8), 1), np.roll(np.arange(8), -1)
    for _ in range(20):
        q = np.stack([reward + gamma * v[left], reward + gamma * v[right]])
        v, old = q.max(0), v
        if np.abs(v - old).max() < 1e-12:
            break
    return v


@program(lambda r: (r.normal(size=(6, 4)), r.normal(size=(4, 4))))
def crf_marginals(unary, pair):
    n = len(unary)
    forward, backward = np.zeros((2, n, 4))
    for t in range(1, n):
        forward[t] = np.logaddexp.reduce((forward[t - 1] + unary[t - 1])[:, None] + pair, axis=0)
        backward[-t - 1] = np.logaddexp.reduce(pair + (backward[-t] + unary[-t])[None], axis=1)
    total = forward + unary + backward
    return np.exp(total - np.logaddexp.reduce(total, axis=1)[:, None])


@program(lambda r: (r.integers(0, 2, (6, 7)),), order=0, nums=False)
def largest_square(board):
    size = board.copy()
    for i in range(1, board.shape[0]):
        for j in range(1, board.shape[1]):
            if board[i, j]:
                size[i, j] = 1 + min(size[i - 1, j], size[i, j - 1], size[i - 1, j - 1])
    return size, size.max()


@program(lambda r: (r.normal(size=9), r.integers(0, 9, 9)))
def tree_independent_set(weight, _):
    take = weight.copy()
    leave = np.zeros_like(weight)
    for child in range(len(weight) - 1, 0, -1):
        parent = (child - 1) // 2
        take[parent] += leave[child]
        leave[parent] += max(take[child], leave[child])
    return np.maximum(take, leave)


@program(lambda r: (r.uniform(0.1, 1, 5), r.uniform(0.1, 1, 5)))
def soft_time_warping(a, b):
    gamma = 0.5
    r = np.full((6, 6), 1e3)
    r[0, 0] = 0
    for k in range(2, 11):
        for i in range(max(1, k - 5), min(6, k)):
            j = k - i
            z = -np.array([r[i - 1, j], r[i, j - 1], r[i - 1, j - 1]]) / gamma
            r[i, j] = abs(a[i - 1] - b[j - 1]) - gamma * (z.max() + np.log(np.exp(z - z.max()).sum()))
    return r[5, 5]
