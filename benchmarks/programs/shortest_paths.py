"""All shortest paths of a random graph: Floyd and Warshall, with the paths themselves."""

SMALL, MODERATE = 20, 200


def run(np, size):
    rng = np.random.default_rng(11)
    weight = rng.uniform(1, 10, (size, size))
    weight[rng.random((size, size)) > 8 / size] = np.inf
    np.fill_diagonal(weight, 0)
    distance = weight.copy()
    following = np.where(np.isfinite(weight), np.arange(size), -1)
    for k in range(size):
        through = distance[:, k, None] + distance[k]
        shorter = through < distance
        distance[shorter] = through[shorter]
        following = np.where(shorter, following[:, k, None], following)
    path, at = [0], 0
    while at != size - 1 and following[at, size - 1] >= 0:
        at = int(following[at, size - 1])
        path.append(at)
    finite = distance[np.isfinite(distance)]
    return distance, following, path, finite.mean(), np.unique(np.isfinite(distance).sum(axis=1))
