"""Simulations: bodies, fields, populations, walkers, queues, automata, integrators with and without adaptive steps."""

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(4, 2)), r.normal(size=(4, 2)), r.uniform(1, 2, 4)))
def bodies_by_leapfrog(x, v, m):
    def acceleration(x):
        d = x[None] - x[:, None]
        r2 = (d**2).sum(-1) + 0.5
        return (m[None, :, None] * d / r2[..., None] ** 1.5).sum(1)

    a = acceleration(x)
    for _ in range(8):
        v = v + 0.02 * a
        x = x + 0.04 * v
        a = acceleration(x)
        v = v + 0.02 * a
    return x, 0.5 * (m * (v**2).sum(1)).sum()


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=(3, 3))))
def bodies_in_place(x, v):
    f = np.zeros_like(x)
    for _ in range(5):
        f[...] = 0
        for i in range(3):
            for j in range(i):
                d = x[j] - x[i]
                pull = d / (d @ d + 0.3) ** 1.5
                f[i] += pull
                f[j] -= pull
        v += 0.05 * f
        x += 0.05 * v
    return x


@program(lambda r: (r.normal(size=16), 0.2))
def heat_on_a_ring(u, k):
    for _ in range(12):
        u = u + k * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


@program(lambda r: (r.normal(size=(6, 6)), 0.15))
def heat_with_two_buffers(u, k):
    a, b = u, np.zeros_like(u)
    b[...] = a
    for _ in range(7):
        b[1:-1, 1:-1] = a[1:-1, 1:-1] + k * (
            a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]
        )
        a, b = b, a
    return a, b


@program(lambda r: (r.normal(size=12), 0.5))
def wave_with_three_levels(u0, c):
    level = np.zeros((3, 12))
    level[0] = u0
    level[1] = u0
    old, now, new = level
    for _ in range(10):
        new[1:-1] = 2 * now[1:-1] - old[1:-1] + c**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        new[0] = new[-1] = 0
        old, now, new = now, new, old
    return now, level


@program(lambda r: (r.choice([-1, 1], (5, 5)), r.random((20, 3))), order=0)
def ising(spins, draws):
    n = len(spins)
    for u, v, w in draws:
        i, j = int(u * n), int(v * n)
        near = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        gain = 2 * spins[i, j] * near
        if gain <= 0 or w < np.exp(-0.4 * gain):
            spins[i, j] *= -1
    return spins, spins.sum()


@program(lambda r: (r.choice([-1.0, 1.0], (6, 6)), 0.44))
def mean_field_checkerboard(m, beta):
    m = 0.5 * m
    odd = np.indices(m.shape).sum(0) % 2 == 1
    for sweep in range(6):
        near = sum(np.roll(m, s, axis) for s in (1, -1) for axis in (0, 1))
        mask = odd if sweep % 2 else ~odd
        m[mask] = np.tanh(beta * near[mask])
    return m


@program(lambda r: (r.uniform(0.5, 1.5, 4), r.uniform(1, 2, 2)))
def predator_and_prey(rates, start):
    a, b, c, d = rates

    def f(s):
        x, y = s
        return np.array([a * x - b * x * y, d * x * y - c * y])

    s = start
    track = [s]
    for _ in range(10):
        k1 = f(s)
        k2 = f(s + 0.05 * k1)
        k3 = f(s + 0.05 * k2)
        k4 = f(s + 0.1 * k3)
        s = s + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        track.append(s)
    return np.vstack(track)


TABLEAU = np.array([[0, 0, 0], [1 / 2, 0, 0], [0, 3 / 4, 0]])


@program(lambda r: (r.normal(size=3),), order=1, rtol=1e-5)
def adaptive_runge_kutta(y):
    def f(t, y):
        return np.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0], np.cos(t) * y[2]])

    t, h, steps = 0.0, 0.1, 0
    while t < 1.0 and steps < 30:
        h = min(h, 1.0 - t)
        k = np.zeros((4, 3))
        for s in range(3):
            k[s] = f(t + TABLEAU[s].sum() * h, y + h * (TABLEAU[s] @ k[:3]))
        high = y + h * (2 * k[0] + 3 * k[1] + 4 * k[2]) / 9
        k[3] = f(t + h, high)
        low = y + h * (7 * k[0] / 24 + k[1] / 4 + k[2] / 3 + k[3] / 8)
        error = float(np.abs(high - low).max())
        if error < 1e-4:
            t, y = t + h, high
            h *= 1.5
        else:
            h *= 0.5
        steps += 1
    return y, t


@program(lambda r: (r.normal(size=(5, 20)), 0.3))
def random_walks(steps, drift):
    paths = (drift + steps).cumsum(axis=1)
    peak = np.maximum.accumulate(paths, axis=1)
    return (peak - paths).max(axis=1), paths[:, -1]


@program(lambda r: (r.integers(0, 2, 15), 30), order=0, nums=False)
def elementary_automaton(cells, rule):
    table = np.array([rule >> k & 1 for k in range(8)])
    history = np.empty((10, 15), dtype=cells.dtype)
    for row in history:
        row[:] = cells
        cells = table[4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1)]
    return history


@program(lambda r: (r.integers(0, 2, (7, 8), dtype=np.uint8),), order=0, nums=False)
def game_of_life(board):
    for _ in range(4):
        padded = np.pad(board, 1, mode="wrap")
        near = np.zeros_like(board)
        for i in range(3):
            for j in range(3):
                if (i, j) != (1, 1):
                    near += padded[i : i + board.shape[0], j : j + board.shape[1]]
        board = ((near == 3) | ((near == 2) & (board == 1))).astype(np.uint8)
    return board


@program(lambda r: (r.exponential(1.0, 10), r.exponential(0.8, 10)))
def single_server_queue(gaps, service):
    arrive = np.cumsum(gaps)
    leave = np.zeros_like(arrive)
    free = 0.0
    for i, (t, s) in enumerate(zip(arrive, service)):
        free = max(t, free) + s
        leave[i] = free
    wait = leave - arrive - service
    return wait, leave[-1]


@program(lambda r: (r.exponential(1.0, 8), r.exponential(2.0, 8)))
def two_servers_with_events(gaps, service):
    events = [(t, i, "in") for i, t in enumerate(np.cumsum(gaps))]
    heapq.heapify(events)
    waiting, busy, total = deque(), 0, 0.0
    finish = np.zeros(8)
    while events:
        t, i, kind = heapq.heappop(events)
        if kind == "in":
            waiting.append((t, i))
        else:
            busy -= 1
            finish[i] = t
        while waiting and busy < 2:
            came, who = waiting.popleft()
            busy += 1
            total = total + (t - came)
            heapq.heappush(events, (t + service[who], who, "out"))
    return finish, total


@dataclass
class Particle:
    x: np.ndarray
    v: np.ndarray
    trail: list = field(default_factory=list)

    def step(self, dt, force):
        self.v = self.v + dt * force(self.x)
        self.x = self.x + dt * self.v
        self.trail.append(self.x)
        return self


@program(lambda r: (r.normal(size=2), r.normal(size=2), 1.3))
def particle_in_a_well(x, v, k):
    p = Particle(x, v)
    for _ in range(9):
        p.step(0.1, lambda q: -k * q - 0.1 * q**3)
    return np.array(p.trail), p.x @ p.v


@program(lambda r: (r.uniform(0.2, 0.8, (5, 5)), r.uniform(0, 0.3, (5, 5))))
def gray_scott(u, v):
    def lap(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    for _ in range(6):
        uvv = u * v * v
        u += 0.16 * lap(u) - uvv + 0.035 * (1 - u)
        v += 0.08 * lap(v) + uvv - 0.1 * v
    return u, v


@program(lambda r: (r.uniform(0.5, 1, 10), 0.4))
def burgers_upwind(u, dt):
    for _ in range(8):
        flux = 0.5 * u**2
        u[1:] -= dt * (flux[1:] - flux[:-1])
        u[0] = u[-1]
    return u


@program(lambda r: (r.normal(size=3), r.uniform(9, 11)))
def lorenz(s, sigma):
    out = np.empty((15, 3))
    for k in range(15):
        out[k] = s
        dx = sigma * (s[1] - s[0])
        dy = s[0] * (28 - s[2]) - s[1]
        dz = s[0] * s[1] - 8 / 3 * s[2]
        s = s + 0.01 * np.array([dx, dy, dz])
    return out


@program(lambda r: (r.uniform(0.1, 0.9), r.uniform(2.5, 3.5)))
def logistic_map(x, r):
    orbit = [x]
    for _ in range(12):
        orbit.append(r * orbit[-1] * (1 - orbit[-1]))
    return np.array(orbit), x


@program(lambda r: (r.uniform(0, 1, 6), r.uniform(0.5, 1.5, 6)))
def springs_and_masses(x, rest):
    x = np.sort(x) + np.arange(6)
    v = np.zeros(6)
    for _ in range(10):
        tension = np.diff(x) - rest[:5]
        force = np.zeros(6)
        force[:-1] += tension
        force[1:] -= tension
        v += 0.1 * force
        v *= 0.98
        x += 0.1 * v
    return x, v


@program(lambda r: (r.normal(size=(5, 2)), r.normal(size=(5, 2))))
def bouncing_in_a_box(x, v):
    x = np.clip(x, -0.8, 0.8)
    for _ in range(10):
        x = x + 0.13 * v
        out = np.abs(x) > 1
        v = np.where(out, -0.9 * v, v)
        x = np.where(out, np.sign(x) * (2 - np.abs(x)), x)
    return x, v


@program(lambda r: (r.uniform(0.01, 0.1, 3), r.integers(0, 3, 12)))
def epidemic_by_age(beta, group):
    sizes = np.bincount(group, minlength=3) + 5.0
    s, i, rec = sizes * 0.9, sizes * 0.1, np.zeros(3)
    for _ in range(10):
        new = beta * s * i.sum() / sizes.sum() * 3
        s, i, rec = s - new, i + new - 0.1 * i, rec + 0.1 * i
    return np.array([s, i, rec])


@program(lambda r: (r.normal(size=(4, 4)), 0.05))
def kuramoto(k, dt):
    theta = np.linspace(0, 3, 4)
    for _ in range(15):
        theta += dt * (1 + (k * np.sin(theta[None, :] - theta[:, None])).mean(axis=1))
    return np.exp(1j * theta).mean()


@program(lambda r: (r.uniform(1, 2, 3),))
def implicit_euler_with_newton(y):
    h = 0.2
    for _ in range(4):
        z = y.copy()
        for _ in range(6):
            g = z - y + h * z**3
            z -= g / (1 + 3 * h * z**2)
        y = z
    return y


@program(lambda r: (r.normal(size=(6, 6)),))
def sandpile_of_reals(z):
    z = np.abs(z) * 3
    for _ in range(5):
        hot = z > 3.5
        if not hot.any():
            break
        fall = np.where(hot, z / 2, 0)
        z = z - fall
        z[1:] += fall[:-1] / 4
        z[:-1] += fall[1:] / 4
        z[:, 1:] += fall[:, :-1] / 4
        z[:, :-1] += fall[:, 1:] / 4
    return z


@program(lambda r: (r.normal(size=5), r.uniform(0.1, 0.3)))
def noise_drawn_inside(x0, sigma):
    rng = np.random.default_rng(42)
    x = x0
    for _ in range(10):
        x = x - 0.1 * x + sigma * rng.normal(size=x.shape)
    return x, x.std()


@program(lambda r: (r.uniform(0.2, 1, (3, 3)), r.uniform(0, 1, 3)))
def chemical_rates_by_exponential_euler(k, c):
    m = k - np.diag(k.sum(axis=0))
    e = np.eye(3)
    term = np.eye(3)
    for n in range(1, 12):
        term = term @ m * (0.2 / n)
        e = e + term
    for _ in range(3):
        c = e @ c
    return c, c.sum()


@program(lambda r: (r.uniform(0, 1, 12), r.integers(1, 4, 12)), order=0)
def round_robin(work, slots):
    queue = deque(enumerate(work.tolist()))
    done = np.full(len(work), -1)
    clock = 0
    while queue:
        who, left = queue.popleft()
        clock += 1
        left -= 0.2 * slots[who]
        if left <= 0:
            done[who] = clock
        else:
            queue.append((who, left))
    return done


@program(lambda r: (r.normal(size=(3, 2)),))
def verlet_rope_with_constraints(p):
    p = np.cumsum(np.abs(p) + 0.5, axis=0)
    q = p.copy()
    for _ in range(5):
        new = 2 * p - q
        new[:, 1] -= 0.02
        new[0] = p[0]
        q, p = p, new
        for k in range(2):
            a, b = p[k], p[k + 1]
            d = b - a
            n = np.sqrt(d @ d)
            push = d * (0.5 * (n - 1.0) / n)
            if k:
                a += push
            b -= push
    return p
