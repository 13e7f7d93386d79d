"""Alignment of two sequences: dynamic programming along anti-diagonals, and the edit distance row by row."""

SMALL, MODERATE = 20, 400


def run(np, size):
    rng = np.random.default_rng(13)
    a, b = rng.integers(0, 4, size), rng.integers(0, 4, size + size // 5)
    n, m = len(a), len(b)
    match = np.where(a[:, None] == b, 2, -1)
    score = np.zeros((n + 1, m + 1), dtype=int)
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        best = np.maximum(score[i - 1, j - 1] + match[i - 1, j - 1], np.maximum(score[i - 1, j], score[i, j - 1]) - 1)
        score[i, j] = np.maximum(best, 0)
    previous = np.arange(m + 1)
    for i in range(1, n + 1):
        row = np.minimum(previous[1:] + 1, previous[:-1] + (a[i - 1] != b))
        row = np.concatenate(([i], row)) - np.arange(m + 1)
        previous = np.minimum.accumulate(row) + np.arange(m + 1)
    return score, np.unravel_index(score.argmax(), score.shape), previous[-1]
