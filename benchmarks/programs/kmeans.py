"""k-means: distances by broadcasting, means by boolean masks."""

SMALL, MODERATE = 60, 20000


def run(np, size):
    rng = np.random.default_rng(2)
    truth = rng.uniform(-10, 10, (8, 4))
    points = truth[rng.integers(0, 8, size)] + rng.standard_normal((size, 4))
    centers = points[:8].copy()
    for _ in range(10):
        d = ((points[:, None, :] - centers[None]) ** 2).sum(-1)
        label = d.argmin(axis=1)
        for k in range(len(centers)):
            mine = points[label == k]
            if len(mine):
                centers[k] = mine.mean(axis=0)
    inertia = d[np.arange(size), label].sum()
    order = np.lexsort(centers.T)
    return centers[order], np.sort(np.bincount(label)), inertia
