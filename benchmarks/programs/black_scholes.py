"""European options: prices and Greeks in closed form, implied volatility by Newton's method."""

import math

SMALL, MODERATE = 50, 200_000


def cdf(np, x):
    """The normal distribution function (Abramowitz and Stegun 26.2.17)."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * poly
    return np.where(x > 0, 1 - tail, tail)


def call(np, spot, strike, rate, sigma, t):
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma**2) * t) / (sigma * np.sqrt(t))
    d2 = d1 - sigma * np.sqrt(t)
    return spot * cdf(np, d1) - strike * np.exp(-rate * t) * cdf(np, d2), d1


def run(np, size):
    rng = np.random.default_rng(6)
    spot, strike = rng.uniform(80, 120, size), rng.uniform(80, 120, size)
    t, sigma, rate = rng.uniform(0.2, 2, size), rng.uniform(0.1, 0.5, size), 0.03
    price, d1 = call(np, spot, strike, rate, sigma, t)
    delta = cdf(np, d1)
    vega = spot * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi) * np.sqrt(t)
    guess = np.full(size, 0.3)
    for _ in range(6):
        value, d = call(np, spot, strike, rate, guess, t)
        slope = spot * np.exp(-0.5 * d**2) / np.sqrt(2 * np.pi) * np.sqrt(t)
        guess = np.clip(guess - (value - price) / np.maximum(slope, 1e-8), 0.01, 2.0)
    return price, delta, vega, guess, np.percentile(guess, [5, 50, 95])
