"""The surveys of automatic differentiation: ordinary control flow is differentiated, to any order."""

import minnp.numpy as np
from minnp import grad, jvp


def sine(x):
    """Taylor's series, as long as its terms matter."""
    total = term = x
    i = 0
    while np.abs(term) > 1e-14:
        term = -term * x * x / ((2 * i + 3) * (2 * i + 2))
        total = total + term
        i += 1
    return total


print(round(float(grad(sine)(np.pi)), 10), round(float(grad(grad(sine))(np.pi / 2)), 10))


def tanh(x):
    return (1.0 - np.exp(-2.0 * x)) / (1.0 + np.exp(-2.0 * x))


f = tanh
for order in range(1, 5):
    f = grad(f)
    print(order, round(float(f(0.5)), 8))


def f(x1, x2):
    """The example of Baydin and others' survey, at (2, 5)."""
    return np.log(x1) + x1 * x2 - np.sin(x2)


value, tangent = jvp(f, (2.0, 5.0), (1.0, 0.0))
print(round(float(value), 3), round(float(tangent), 3), [round(float(g), 3) for g in grad(f, (0, 1))(2.0, 5.0)])


def logistic_map(x, n):
    """n steps of l -> 4 l (1 - l)."""
    for _ in range(n):
        x = 4 * x * (1 - x)
    return x


print([round(float(grad(logistic_map)(0.2, n)), 6) for n in range(4)])
