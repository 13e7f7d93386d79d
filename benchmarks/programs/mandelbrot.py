"""The Mandelbrot set: complex iteration under a shrinking mask."""

SMALL, MODERATE = 30, 500


def run(np, size):
    re, im = np.linspace(-2, 0.6, size), np.linspace(-1.2, 1.2, size)
    c = re + 1j * im[:, None]
    z = np.zeros_like(c)
    count = np.zeros(c.shape, dtype=int)
    alive = np.ones(c.shape, dtype=bool)
    for k in range(40):
        z[alive] = z[alive] ** 2 + c[alive]
        escaped = alive & (np.abs(z) > 2)
        count[escaped] = k
        alive &= ~escaped
    return count, alive.sum(), np.bincount(count.ravel(), minlength=40)
