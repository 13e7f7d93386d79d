"""Principal components of correlated data by SVD, and by the power method."""

SMALL, MODERATE = 40, 5000


def run(np, size):
    rng = np.random.RandomState(3)
    x = rng.randn(size, 40).dot(rng.randn(40, 40)) + rng.randn(40)
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    explained = s**2 / np.sum(s**2)
    vt *= np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(axis=1)])[:, np.newaxis]
    cov = np.cov(x, rowvar=False)
    v = np.ones(40)
    for _ in range(50):
        v = cov @ v
        v /= np.linalg.norm(v)
    return explained, vt[:5], np.cumsum(explained), v @ cov @ v, u.shape
