"""Black-Scholes prices and their Greeks: each Greek is a derivative, so each is one call of `grad`.

    python tutorials/autodiff/black_scholes.py

Delta, vega, theta and rho are first derivatives of the price; gamma, vanna and volga are second ones, `grad` of `grad`.
All are checked against the closed forms that option pricing textbooks derive by hand. Then the volatility is recovered
from a price by Newton's method, with vega as the slope.
"""

import argparse
import math

import minnp.numpy as np
from minnp import grad, npx

ROOT2 = math.sqrt(2.0)


def cdf(x):
    """Of the standard normal distribution."""
    return 0.5 * (1.0 + npx.erf(x / ROOT2))


def density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def price(spot, strike, years, rate, volatility):
    """Of a European call (Black and Scholes 1973, equation 13)."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    return spot * cdf(d1) - strike * np.exp(-rate * years) * cdf(d1 - spread)


SPOT, STRIKE, YEARS, RATE, VOLATILITY = range(5)


def greeks_by_gradient(*market):
    return {
        "delta": grad(price, SPOT)(*market),
        "vega": grad(price, VOLATILITY)(*market),
        "theta": -grad(price, YEARS)(*market),
        "rho": grad(price, RATE)(*market),
        "gamma": grad(grad(price, SPOT), SPOT)(*market),
        "vanna": grad(grad(price, SPOT), VOLATILITY)(*market),
        "volga": grad(grad(price, VOLATILITY), VOLATILITY)(*market),
    }


def greeks_by_formula(spot, strike, years, rate, volatility):
    root = np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    owed = strike * np.exp(-rate * years)
    vega = spot * density(d1) * root
    return {
        "delta": cdf(d1),
        "vega": vega,
        "theta": -spot * density(d1) * volatility / (2 * root) - rate * owed * cdf(d2),
        "rho": years * owed * cdf(d2),
        "gamma": density(d1) / (spot * volatility * root),
        "vanna": -density(d1) * d2 / volatility,
        "volga": vega * d1 * d2 / volatility,
    }


def implied_volatility(target, spot, strike, years, rate, guess=0.5, steps=20):
    """The volatility at which the price is `target`."""
    v = np.asarray(guess)
    for _ in range(steps):
        v = v - (price(spot, strike, years, rate, v) - target) / grad(price, VOLATILITY)(spot, strike, years, rate, v)
    return float(v)


def main():
    market = [np.asarray(value) for value in (100.0, 110.0, 0.75, 0.03, 0.25)]
    print(f"price {float(price(*market)):.6f}")
    worst = 0.0
    formulas = greeks_by_formula(*market)
    for name, value in greeks_by_gradient(*market).items():
        error = abs(float(value) - float(formulas[name]))
        worst = max(worst, error / abs(float(formulas[name])))
        print(f"{name:6} {float(value):12.8f} by gradient, {float(formulas[name]):12.8f} by formula")

    # A whole book at once: the gradient of the sum of prices is the vector of deltas.
    spots = np.linspace(60.0, 160.0, 101)
    deltas = grad(lambda s: np.sum(price(s, *market[1:])))(spots)
    worst = max(worst, float(np.max(np.abs(deltas - greeks_by_formula(spots, *market[1:])["delta"]))))

    found = implied_volatility(price(*market), *market[:4])
    print(f"implied volatility {found:.12f}, from {float(market[4])}")
    return {"worst": worst, "implied": found, "volatility": float(market[4])}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
