"""A wave on a membrane: leapfrog in time, reflecting edges, energy of every tenth step."""

SMALL, MODERATE = 24, 400


def run(np, size):
    y, x = np.mgrid[0 : 1 : size * 1j, 0 : 1 : size * 1j]
    now = np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) * 200)
    before = now.copy()
    c2 = 0.25
    energies = []
    for step in range(100):
        lap = (
            np.roll(now, 1, axis=0) + np.roll(now, -1, axis=0) + np.roll(now, 1, axis=1) + np.roll(now, -1, axis=1)
        ) - 4 * now
        after = 2 * now - before + c2 * lap
        after[[0, -1]] = 0
        after[:, [0, -1]] = 0
        before, now = now, after
        if step % 10 == 0:
            energies.append(((now - before) ** 2).sum() + c2 * (np.diff(now, axis=0) ** 2).sum())
    return now, np.array(energies)
