"""Cholesky and LU with pivoting by hand, row by row, and the systems they solve."""

SMALL, MODERATE = 12, 200


def cholesky(np, a):
    n = len(a)
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - np.dot(low[j, :j], low[j, :j]))
        low[j + 1 :, j] = (a[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j]) / low[j, j]
    return low


def lu(np, a):
    a = a.copy()
    order = np.arange(len(a))
    for k in range(len(a) - 1):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def run(np, size):
    rng = np.random.default_rng(4)
    m = rng.standard_normal((size, size))
    spd = m @ m.T + size * np.eye(size)
    b = rng.standard_normal(size)
    low = cholesky(np, spd)
    y = np.empty(size)
    for i in range(size):
        y[i] = (b[i] - low[i, :i] @ y[:i]) / low[i, i]
    x = np.empty(size)
    for i in reversed(range(size)):
        x[i] = (y[i] - low[i + 1 :, i] @ x[i + 1 :]) / low[i, i]
    packed, order = lu(np, m)
    product = (np.tril(packed, -1) + np.eye(size)) @ np.triu(packed)
    return low, x, packed, order, np.allclose(product, m[order])
