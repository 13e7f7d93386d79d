"""Heat in a plate: explicit finite differences on a square with fixed edges."""

SMALL, MODERATE = 24, 400


def run(np, size):
    u = np.zeros((size, size))
    u[0] = 100.0
    u[:, -1] = np.linspace(100.0, 0.0, size)
    history = []
    for step in range(100):
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.2 * lap
        if step % 10 == 0:
            history.append(float(np.abs(lap).max()))
    return u, history
