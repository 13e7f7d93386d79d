"""The surveys of frameworks: logistic regression in NumPy, its gradient by hand beside the one that is found."""

import minnp.numpy as np
from minnp import grad

rng = np.random.default_rng(1)
x = rng.standard_normal((400, 5))
truth = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
y = (x @ truth + 0.1 * rng.standard_normal(400) > 0).astype(float)


def loss(w, b):
    z = x @ w + b
    return np.mean(np.logaddexp(0, z) - y * z)


def by_hand(w, b):
    error = 1 / (1 + np.exp(-(x @ w + b))) - y
    return x.T @ error / len(y), error.mean()


w, b = np.zeros(5), 0.0
for _ in range(200):
    gw, gb = grad(loss, (0, 1))(w, b)
    hw, hb = by_hand(w, b)
    assert np.allclose(gw, hw) and np.allclose(gb, hb)
    w -= gw
    b -= gb
print("accuracy above 0.97:", bool(np.mean((x @ w + b > 0) == y) > 0.97))
