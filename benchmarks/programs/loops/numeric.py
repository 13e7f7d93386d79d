"""Particles, chains, series and transforms: floating-point recurrences, many with ends that depend on data."""

import numpy as np


def nbody_acceleration(position, mass, G, softening):
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inverse = dx**2 + dy**2 + dz**2 + softening**2
    inverse[inverse > 0] = inverse[inverse > 0] ** -1.5
    return np.hstack((G * (dx * inverse) @ mass, G * (dy * inverse) @ mass, G * (dz * inverse) @ mass))


def nbody_energy(position, velocity, mass, G):
    kinetic = 0.5 * np.sum(mass * velocity**2)
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inverse = np.sqrt(dx**2 + dy**2 + dz**2)
    inverse[inverse > 0] = 1.0 / inverse[inverse > 0]
    return kinetic, G * np.sum(np.triu(-(mass * mass.T) * inverse, 1))


def nbody(mass, position, velocity, steps, dt, G, softening):
    """Leapfrog steps in the frame of the centre of mass; the energies after each."""
    velocity -= np.sum(mass * velocity, axis=0) / np.sum(mass)
    acceleration = nbody_acceleration(position, mass, G, softening)
    kinetic, potential = np.ndarray(steps + 1), np.ndarray(steps + 1)
    kinetic[0], potential[0] = nbody_energy(position, velocity, mass, G)
    for i in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = nbody_acceleration(position, mass, G, softening)
        velocity += acceleration * dt / 2.0
        kinetic[i + 1], potential[i + 1] = nbody_energy(position, velocity, mass, G)
    return kinetic, potential, position


def mandelbrot(x, y, limit):
    """For each point of a grid the last step at which it was still near, 0 where it always is."""
    C = x + y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros_like(C)
    for n in range(limit):
        near = np.abs(Z) < 2.0
        N[near] = n
        Z[near] = Z[near] ** 2 + C[near]
    N[limit - 1 == N] = 0
    return Z, N


def mandelbrot_shrinking(x, y, limit):
    """For each point the step at which it left; only those still near are kept from step to step."""
    rows, columns = len(y), len(x)
    i, j = np.arange(rows).repeat(columns), np.arange(rows * columns) % columns
    c = x[j] + 1j * y[i]
    N = np.zeros((rows, columns), dtype=np.int64)
    z = np.zeros_like(c)
    for n in range(limit):
        if len(z) == 0:
            break
        z = z * z + c
        far = np.abs(z) > 2.0
        N[i[far], j[far]] = n + 1
        near = ~far
        i, j, c, z = i[near], j[near], c[near], z[near]
    return N


def stockham_fft(x, radix, levels):
    """The discrete Fourier transform of radix**levels points, in order throughout."""
    n = radix**levels
    k = np.arange(radix)
    dft = np.exp(-2j * np.pi * np.outer(k, k) / radix)
    y = x.copy()
    done = 1
    for _ in range(levels):
        rest = n // (done * radix)
        old = y.reshape(radix, rest, done)
        turn = np.exp(-2j * np.pi * np.outer(k, np.arange(done)) / (done * radix))
        new = np.empty((rest, radix, done), dtype=x.dtype)
        for r in range(radix):
            new[:, r, :] = 0
            for q in range(radix):
                new[:, r, :] += dft[r, q] * old[q] * turn[q]
        y = new.reshape(n)
        done *= radix
    return y


def azimuthal_masks(value, radius, bins):
    """The mean of the values in each ring, by a mask per ring."""
    result = np.zeros(bins)
    furthest = radius.max()
    for i in range(bins):
        inner, outer = furthest * i / bins, furthest * (i + 1) / bins
        inside = (inner <= radius) & (radius < outer)
        if inside.any():
            result[i] = value[inside].mean()
    return result


def azimuthal_histogram(value, radius, bins):
    """The mean of the values in each ring, point by point."""
    total, count = np.zeros(bins), np.zeros(bins, dtype=np.int64)
    furthest = np.max(radius)
    for r, v in zip(radius, value):
        at = int(r / furthest * bins)
        if at < bins:
            total[at] += v
            count[at] += 1
    return total / np.maximum(count, 1)


def kmeans(points, centres, most):
    for _ in range(most):
        distance = np.zeros((len(points), len(centres)))
        for k in range(len(centres)):
            distance[:, k] = np.sum((points - centres[k]) ** 2, axis=1)
        label = np.argmin(distance, axis=1)
        new = centres.copy()
        for k in range(len(centres)):
            mine = points[label == k]
            if len(mine) > 0:
                new[k] = np.sum(mine, axis=0) / len(mine)
        moved = np.sum((new - centres) ** 2)
        centres = new
        if moved < 1e-12:
            break
    return centres, label


def gillespie(uniform, birth, death, count, end):
    """Births at a constant rate and deaths at a rate per head, exactly, from two uniform numbers an event."""
    t, events = 0.0, 0
    area = 0.0
    while events < len(uniform):
        rate = birth + death * count
        wait = -np.log(uniform[events, 0]) / rate
        if t + wait > end:
            area += count * (end - t)
            break
        area += count * wait
        t += wait
        if uniform[events, 1] * rate < birth:
            count += 1
        else:
            count -= 1
        events += 1
    return t, count, events, area / end


def metropolis(x, y, proposals, uniform, a, b):
    """Samples of a banana-shaped density, and how many proposals were taken."""
    n = len(uniform)
    chain = np.empty((n, 2))
    energy = (a - x) ** 2 + b * (y - x * x) ** 2
    taken = 0
    for i in range(n):
        nx, ny = x + proposals[i, 0], y + proposals[i, 1]
        new = (a - nx) ** 2 + b * (ny - nx * nx) ** 2
        if new <= energy or uniform[i] < np.exp(energy - new):
            x, y, energy = nx, ny, new
            taken += 1
        chain[i, 0], chain[i, 1] = x, y
    return chain, taken


def lotka_volterra(y, p):
    return np.array([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def runge_kutta(y, p, end, tolerance):
    """Bogacki and Shampine's pair of orders 3 and 2, with steps as long as the error allows."""
    t, h, steps, rejected = 0.0, 0.01, 0, 0
    k1 = lotka_volterra(y, p)
    while t < end:
        h = min(h, end - t)
        k2 = lotka_volterra(y + h / 2 * k1, p)
        k3 = lotka_volterra(y + 3 * h / 4 * k2, p)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = lotka_volterra(new, p)
        error = h * np.max(np.abs(-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8))
        if error <= tolerance:
            t, y, k1 = t + h, new, k4
            steps += 1
        else:
            rejected += 1
        h *= min(4.0, max(0.2, 0.9 * (tolerance / (error + 1e-300)) ** (1 / 3)))
    return y, steps, rejected


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def lstm(x, h, c, W, U, b):
    """Every hidden state of a long short-term memory over x of shape (steps, inputs)."""
    size = len(h)
    states = np.empty((len(x), size))
    for t in range(len(x)):
        z = W @ x[t] + U @ h + b
        i, f, o = (
            1 / (1 + np.exp(-z[:size])),
            1 / (1 + np.exp(-z[size : 2 * size])),
            1 / (1 + np.exp(-z[2 * size : -size])),
        )
        c = f * c + i * np.tanh(z[-size:])
        h = o * np.tanh(c)
        states[t] = h
    return states, c
