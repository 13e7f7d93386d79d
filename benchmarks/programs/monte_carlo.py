"""Monte Carlo: pi, an Asian option with antithetic paths, and a bootstrap confidence interval."""

SMALL, MODERATE = 200, 50_000


def run(np, size):
    rng = np.random.default_rng(10)
    x, y = rng.random(10 * size), rng.random(10 * size)
    pi = 4 * np.mean(x * x + y * y < 1)
    steps, dt, sigma, rate = 32, 1 / 32, 0.2, 0.05
    z = rng.standard_normal((size, steps))
    z = np.concatenate([z, -z])
    paths = 100 * np.exp(np.cumsum((rate - sigma**2 / 2) * dt + sigma * np.sqrt(dt) * z, axis=1))
    payoff = np.exp(-rate) * np.maximum(paths.mean(axis=1) - 100, 0)
    pairs = payoff.reshape(2, -1).mean(axis=0)
    resampled = rng.choice(pairs[:500], (200, min(size, 500))).mean(axis=1)
    interval = np.quantile(resampled, [0.025, 0.975])
    return pi, pairs.mean(), pairs.std(ddof=1) / np.sqrt(size), interval, np.histogram(payoff, bins=20)[0]
