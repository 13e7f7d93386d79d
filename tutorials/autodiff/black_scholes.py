# %% [markdown]
# # Option prices and their Greeks
#
# The price of an option depends on the market: the price of the share today, the interest rate, the time left, and how
# much the share moves (its *volatility*). A trader wants to know how the price reacts to each of these. Every answer is
# a derivative with a Greek name, so every answer is one call of `grad`.
#
# We write the Black-Scholes formula as plain NumPy, differentiate it once and twice, and compare with the closed forms
# that textbooks derive by hand. At the end, Newton's method recovers the volatility from a price.

# %%
import math

import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import grad, npx

# %% [markdown]
# ## The price
#
# A European call gives the right to buy a share at the strike price $K$ after $T$ years (Black and Scholes 1973,
# equation 13). NumPy has no error function; `minnp.npx` has it, with its gradient.


# %%
def cdf(x):
    """Of the standard normal distribution."""
    return 0.5 * (1.0 + npx.erf(x / math.sqrt(2.0)))


def density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def price(spot, strike, years, rate, volatility):
    """Of a European call."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    return spot * cdf(d1) - strike * np.exp(-rate * years) * cdf(d1 - spread)


market = 100.0, 110.0, 0.75, 0.03, 0.25
print(f"price {price(*market):.6f}")

# %% [markdown]
# ## The Greeks
#
# The second argument of `grad` says which argument to differentiate with respect to. Delta, vega, theta and rho are
# first derivatives; gamma, vanna and volga are derivatives of derivatives, `grad` of `grad`.

# %%
SPOT, STRIKE, YEARS, RATE, VOLATILITY = range(5)

by_gradient = {
    "delta": grad(price, SPOT)(*market),
    "vega": grad(price, VOLATILITY)(*market),
    "theta": -grad(price, YEARS)(*market),
    "rho": grad(price, RATE)(*market),
    "gamma": grad(grad(price, SPOT), SPOT)(*market),
    "vanna": grad(grad(price, SPOT), VOLATILITY)(*market),
    "volga": grad(grad(price, VOLATILITY), VOLATILITY)(*market),
}

# %% [markdown]
# Derived by hand, each of them is a formula of its own:


# %%
def greeks(spot, strike, years, rate, volatility):
    root = np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike * np.exp(-rate * years)
    vega = spot * density(d1) * root
    return {
        "delta": cdf(d1),
        "vega": vega,
        "theta": -spot * density(d1) * volatility / (2 * root) - rate * discounted * cdf(d2),
        "rho": years * discounted * cdf(d2),
        "gamma": density(d1) / (spot * volatility * root),
        "vanna": -density(d1) * d2 / volatility,
        "volga": vega * d1 * d2 / volatility,
    }


by_formula = greeks(*market)
for name, value in by_gradient.items():
    print(f"{name:6} {value:12.8f} by gradient, {by_formula[name]:12.8f} by formula")
    assert abs(value - by_formula[name]) < 1e-9 * abs(by_formula[name])

# %% [markdown]
# ## Many shares at once
#
# Each price depends on its own share only. The gradient of the *sum* of the prices is therefore the vector of all
# deltas: one walk backwards, however many there are. Applied twice, it gives every gamma.

# %%
spots = np.linspace(60.0, 160.0, 101)


def deltas(spots, years):
    return grad(lambda s: np.sum(price(s, 110.0, years, 0.03, 0.25)))(spots)


def gammas(spots, years):
    return grad(lambda s: np.sum(deltas(s, years)))(spots)


assert np.allclose(deltas(spots, 0.75), greeks(spots, *market[1:])["delta"], atol=1e-12)

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for years in (0.05, 0.25, 0.75):
    axes[0].plot(spots, price(spots, 110.0, years, 0.03, 0.25), label=f"{years} years left")
    axes[1].plot(spots, deltas(spots, years))
    axes[2].plot(spots, gammas(spots, years))
for axis, title in zip(axes, ("price", "delta", "gamma")):
    axis.set(title=title, xlabel="price of the share")
axes[0].legend()
plt.show()

# %% [markdown]
# ## Which volatility explains a price?
#
# The volatility is the only input that nobody can look up. Newton's method finds it from the price of the option; the
# slope that it needs is vega.


# %%
def implied_volatility(target, spot, strike, years, rate, guess=0.5, steps=20):
    """The volatility at which the price is `target`."""
    v = guess
    for _ in range(steps):
        v = v - (price(spot, strike, years, rate, v) - target) / grad(price, VOLATILITY)(spot, strike, years, rate, v)
    return v


found = implied_volatility(price(*market), *market[:4])
print(f"implied volatility {found:.12f}, the price was made with {market[VOLATILITY]}")
assert abs(found - market[VOLATILITY]) < 1e-9
