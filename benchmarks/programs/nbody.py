"""Gravity between n bodies: all pairs by broadcasting, leapfrog steps, conserved momentum and energy."""

SMALL, MODERATE = 12, 300


def acceleration(np, position, mass):
    d = position[np.newaxis] - position[:, np.newaxis]
    r2 = (d**2).sum(axis=-1) + 1e-2
    return (d * (mass * r2**-1.5)[..., np.newaxis]).sum(axis=1)


def run(np, size):
    rng = np.random.default_rng(1)
    position, velocity = rng.standard_normal((size, 3)), rng.standard_normal((size, 3)) * 0.1
    mass = rng.uniform(0.5, 1.5, size) / size
    velocity -= (mass[:, None] * velocity).sum(0) / mass.sum()
    dt = 0.01
    a = acceleration(np, position, mass)
    for _ in range(20):
        velocity += 0.5 * dt * a
        position += dt * velocity
        a = acceleration(np, position, mass)
        velocity += 0.5 * dt * a
    kinetic = 0.5 * (mass * (velocity**2).sum(axis=1)).sum()
    return position, velocity, kinetic, np.dot(mass, velocity)
