"""Finance and optimisation: prices, trees, yields, descent, line searches, simplex steps, root finding, quadrature."""

import itertools
import math

import numpy as np

from tests.adversarial.program import program


def normal_cdf(x):
    t = 1 / (1 + 0.2316419 * np.abs(x))
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
    return np.where(x > 0, 1 - tail, tail)


@program(lambda r: (r.uniform(80, 120, 5), r.uniform(0.1, 0.4), r.uniform(0.5, 2)))
def black_scholes(spot, sigma, t):
    k, rate = 100.0, 0.03
    d1 = (np.log(spot / k) + (rate + sigma**2 / 2) * t) / (sigma * np.sqrt(t))
    d2 = d1 - sigma * np.sqrt(t)
    call = spot * normal_cdf(d1) - k * np.exp(-rate * t) * normal_cdf(d2)
    return call, call - spot + k * math.exp(-rate), normal_cdf(d1)


@program(lambda r: (r.uniform(90, 110), r.uniform(0.15, 0.3)))
def american_put_on_a_tree(spot, sigma):
    n, dt = 12, 1 / 12
    u = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(0.04 * dt) - 1 / u) / (u - 1 / u)
    s = spot * u ** np.arange(-n, n + 1, 2.0)
    v = np.maximum(101.3 - s, 0)
    for step in range(n, 0, -1):
        v[:step] = np.exp(-0.04 * dt) * (p * v[1 : step + 1] + (1 - p) * v[:step])
        s[:step] *= u
        np.maximum(v[:step], 101.3 - s[:step], out=v[:step])
    return v[0]


@program(lambda r: (r.uniform(0.9, 1.1), r.uniform(0.1, 0.3)))
def monte_carlo_with_common_numbers(spot, sigma):
    z = np.random.default_rng(3).standard_normal((6, 8))
    z = np.concatenate([z, -z], axis=1)
    logs = np.cumsum(sigma * z * 0.3 - 0.045 * sigma**2, axis=0)
    path = spot * np.exp(logs)
    asian = np.maximum(path.mean(0) - 0.97, 0)
    barrier = np.where(path.max(axis=0) > 1.5, 0, path[-1])
    return asian.mean(), barrier.mean(), asian.std() / np.sqrt(16)


@program(lambda r: (np.append(-100.0, r.uniform(20, 40, 6)),))
def internal_rate_of_return(flows):
    rate = 0.1
    t = np.arange(len(flows))
    for _ in range(12):
        d = (1 + rate) ** -t
        step = (flows * d).sum() / -(t * flows * d / (1 + rate)).sum()
        rate -= step
    return rate


@program(lambda r: (r.normal(0.01, 0.05, (12, 4)),))
def minimum_variance_portfolio(returns):
    mu = returns.mean(0)
    centred = returns - mu
    cov = centred.T @ centred / (len(returns) - 1) + 1e-3 * np.eye(4)
    w = np.linalg.solve(cov, np.ones(4))
    w /= w.sum()
    wealth = np.cumprod(1 + returns @ w)
    drawdown = 1 - wealth / np.maximum.accumulate(wealth)
    return w, drawdown.max(), mu @ w / np.sqrt(w @ cov @ w)


@program(lambda r: (r.uniform(0.01, 0.05, 6),))
def bootstrapped_discount_curve(par):
    discount = np.zeros(6)
    for n in range(6):
        discount[n] = (1 - par[n] * discount[:n].sum()) / (1 + par[n])
    forward = np.append(1, discount[:-1]) / discount - 1
    return discount, forward, -np.log(discount) / np.arange(1, 7)


@program(lambda r: (r.normal(size=8), r.uniform(0.05, 0.2, 3)))
def garch_likelihood(x, p):
    var = np.empty(8)
    var[0] = 1
    for t in range(1, 8):
        var[t] = p[0] + p[1] * x[t - 1] ** 2 + (1 - p[1] - p[2]) * var[t - 1]
    return 0.5 * (np.log(var) + x**2 / var).sum(), var


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_slope(x):
    g = np.zeros_like(x)
    inner = x[1:] - x[:-1] ** 2
    g[:-1] = -400 * x[:-1] * inner - 2 * (1 - x[:-1])
    g[1:] += 200 * inner
    return g


@program(lambda r: (1 + 0.2 * r.normal(size=3),))
def newton_with_a_damped_hessian(x):
    for _ in range(4):
        h = np.zeros((3, 3))
        for i in range(2):
            h[i, i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
            h[i, i + 1] -= 400 * x[i]
            h[i + 1, i] = h[i, i + 1]
            h[i + 1, i + 1] += 200
        x = x - 0.5 * np.linalg.solve(h + 50 * np.eye(3), rosenbrock_slope(x))
    return x, rosenbrock(x)


@program(lambda r: (r.normal(size=4), r.normal(size=(4, 4))))
def limited_memory_two_loops(x, a):
    q = a @ a.T / 4 + np.eye(4)
    f_slope = lambda x: q @ x + 0.1 * x**3
    memory = []
    g = f_slope(x)
    for _ in range(5):
        d, alphas = g.copy(), []
        for s, y in reversed(memory):
            alpha = s @ d / (s @ y)
            d -= alpha * y
            alphas.append(alpha)
        if memory:
            s, y = memory[-1]
            d *= (s @ y) / (y @ y)
        for (s, y), alpha in zip(memory, reversed(alphas)):
            d += s * (alpha - (y @ d) / (s @ y))
        new = x - 0.3 * d
        fresh = f_slope(new)
        memory.append((new - x, fresh - g))
        if len(memory) > 3:
            memory.pop(0)
        x, g = new, fresh
    return x, g @ g


@program(lambda r: (r.uniform(1, 3),), order=0)
def bisection(c):
    lo, hi = 0.0, 3.0
    while hi - lo > 1e-8:
        mid = 0.5 * (lo + hi)
        if mid**3 + mid < c:
            lo = mid
        else:
            hi = mid
    return lo


@program(lambda r: (r.uniform(1, 3, 5),), rtol=1e-5)
def safeguarded_newton_roots(c):
    x = np.ones_like(c)
    lo, hi = np.zeros(5), np.full(5, 3.0)
    for _ in range(12):
        f = x**3 + x - c
        lo = np.where(f < 0, x, lo)
        hi = np.where(f > 0, x, hi)
        step = x - f / (3 * x**2 + 1)
        x = np.where((step > lo) & (step < hi), step, step)
    return x, x**3 + x


@program(lambda r: (r.uniform(0.5, 1.5, 3),), order=0)
def golden_section(c):
    f = lambda t: (t - c[0]) ** 2 + c[1] * abs(t - 1) + c[2]
    a, b = -1.0, 3.0
    ratio = (math.sqrt(5) - 1) / 2
    x1, x2 = b - ratio * (b - a), a + ratio * (b - a)
    f1, f2 = f(x1), f(x2)
    for _ in range(25):
        if f1 < f2:
            b, x2, f2 = x2, x1, f1
            x1 = b - ratio * (b - a)
            f1 = f(x1)
        else:
            a, x1, f1 = x1, x2, f2
            x2 = a + ratio * (b - a)
            f2 = f(x2)
    return a


@program(lambda r: (r.normal(size=(4, 3)), r.normal(size=3)))
def nelder_mead_steps(simplex, c):
    f = lambda x: ((x - c) ** 2).sum() + 0.1 * (x**4).sum()
    for _ in range(6):
        values = np.array([f(x) for x in simplex])
        simplex = simplex[values.argsort()]
        values.sort()
        centre = simplex[:-1].mean(0)
        reflected = 2 * centre - simplex[-1]
        fr = f(reflected)
        if fr < values[0]:
            expanded = 3 * centre - 2 * simplex[-1]
            simplex[-1] = expanded if f(expanded) < fr else reflected
        elif fr < values[-2]:
            simplex[-1] = reflected
        else:
            inside = 0.5 * (centre + simplex[-1])
            if f(inside) < values[-1]:
                simplex[-1] = inside
            else:
                simplex[1:] = simplex[0] + 0.5 * (simplex[1:] - simplex[0])
    return simplex, f(simplex[0])


@program(lambda r: (r.normal(size=4), r.normal(size=(4, 4))))
def armijo_backtracking(x, a):
    f = lambda x: 0.5 * np.sum((a @ x) ** 2) + np.log(np.cosh(x)).sum()
    history = [f(x)]
    for _ in range(5):
        g = a.T @ (a @ x) + np.tanh(x)
        t = 1.0
        while f(x - t * g) > f(x) - 0.3 * t * (g @ g):
            t /= 2
        x = x - t * g
        history.append(f(x))
    assert all(b <= a for a, b in itertools.pairwise(history))
    return x, history


@program(lambda r: (r.normal(size=(6, 4)), r.normal(size=6)))
def lasso_by_coordinates(x, y):
    w = np.zeros(4)
    resid = y.copy()
    for _ in range(6):
        for j in range(4):
            rho = x[:, j] @ resid + w[j] * (x[:, j] @ x[:, j])
            new = np.sign(rho) * max(abs(rho) - 0.5, 0) / (x[:, j] @ x[:, j])
            resid += x[:, j] * (w[j] - new)
            w[j] = new
    return w, resid @ resid


@program(lambda r: (r.normal(size=7),))
def projection_onto_the_simplex(v):
    v = 0.3 * v
    u = np.sort(v)[::-1]
    css = np.cumsum(u) - 1
    k = np.nonzero(u * np.arange(1, 8) > css)[0][-1]
    p = np.maximum(v - css[k] / (k + 1), 0)
    assert abs(p.sum() - 1) < 1e-9
    return p


@program(lambda r: (r.uniform(1, 2, (3, 4)), r.uniform(1, 2, 3), r.uniform(1, 2, 4)))
def sinkhorn(cost, a, b):
    a, b = a / a.sum(), b / b.sum()
    k = np.exp(-cost / 0.3)
    u, v = np.ones(3), np.ones(4)
    for _ in range(15):
        u = a / (k @ v)
        v = b / (k.T @ u)
    plan = u[:, None] * k * v
    return plan, (plan * cost).sum()


@program(lambda r: (r.normal(size=3), r.normal(size=10)))
def gauss_newton_on_a_curve(p, noise):
    t = np.linspace(0, 1, 10)
    y = 2 * np.exp(-1.5 * t) + 0.3 + 0.01 * noise
    p = np.array([2.0, 1.5, 0.3]) + 0.1 * p
    for _ in range(4):
        e = np.exp(-p[1] * t)
        r = p[0] * e + p[2] - y
        j = np.stack([e, -p[0] * t * e, np.ones(10)], axis=1)
        p = p - np.linalg.solve(j.T @ j + 1e-2 * np.eye(3), j.T @ r)
    return p


@program(lambda r: (r.uniform(0.5, 2, 3),))
def adaptive_simpson(c):
    f = lambda x: np.exp(-c[0] * x) * np.sin(c[1] * x) + c[2]

    def go(a, b, fa, fm, fb, depth):
        m = (a + b) / 2
        fl, fr = f((a + m) / 2), f((m + b) / 2)
        whole = (b - a) / 6 * (fa + 4 * fm + fb)
        parts = (b - a) / 12 * (fa + 4 * fl + 2 * fm + 4 * fr + fb)
        if depth == 0 or abs(parts - whole) < 1e-3:
            return parts + (parts - whole) / 15
        return go(a, m, fa, fl, fm, depth - 1) + go(m, b, fm, fr, fb, depth - 1)

    return go(0.0, 2.0, f(0.0), f(1.0), f(2.0), 3)


@program(lambda r: (r.uniform(0.5, 1.5), r.uniform(0.5, 1.5)))
def quadrature_rules(a, b):
    x, w = np.polynomial.legendre.leggauss(6)
    gauss = (w * np.exp(-a * x**2) * np.cos(b * x)).sum()
    t = np.linspace(-1, 1, 21)
    y = np.exp(-a * t**2) * np.cos(b * t)
    romberg = [(y[::k].sum() - 0.5 * (y[0] + y[-1])) * 0.1 * k for k in (4, 2, 1)]
    return gauss, (4 * romberg[1] - romberg[0]) / 3 - gauss, romberg


@program(lambda r: (r.uniform(0.3, 0.7, 5), r.integers(0, 2, 8)))
def replicator_and_regret(p, moves):
    payoff = np.array([[0, -1, 1, 0.3, 0], [1, 0, -1, 0, 0.2]])
    p = p / p.sum()
    regret = np.zeros(5)
    for m in moves:
        gain = payoff[m]
        regret += gain - p @ gain
        positive = np.maximum(regret + 0.05 * p, 0)
        p = 0.5 * p + 0.5 * positive / (positive.sum() + 1.0)
        p /= p.sum()
    return p


@program(lambda r: (r.uniform(0, 1, (4, 3)), r.uniform(1, 2, 4)))
def penalty_for_constraints(a, b):
    x = np.full(3, 0.2)
    for mu in (1.0, 0.5, 0.25):
        for _ in range(4):
            slack = b - a @ x
            g = -np.ones(3) + mu * a.T @ (1 / slack) - mu / x
            h = mu * (a.T / slack**2) @ a + mu * np.diag(1 / x**2)
            dx = np.linalg.solve(h, -g)
            t = 1.0
            while np.any(x + t * dx <= 0) or np.any(b - a @ (x + t * dx) <= 0):
                t *= 0.5
            x = x + 0.9 * t * dx
    return x


@program(lambda r: (r.normal(size=5), r.normal(size=(10, 5))))
def evolution_with_given_noise(x, noise):
    sigma = 0.3
    for block in np.split(noise, 2):
        cand = x + sigma * block
        score = (cand**2).sum(1) + np.sin(cand).sum(1)
        rank = np.empty(5)
        rank[np.argsort(score)] = np.linspace(0.5, -0.5, 5)
        x = x + 0.1 * rank @ block
        x = 0.99 * x + 0.01 * cand[score.argmin()]
    return x
