"""autograd's README: tanh from exponentials, its gradient beside a difference, and derivatives up to the sixth."""

import minnp.numpy as np
from minnp import elementwise_grad as egrad
from minnp import grad


def tanh(x):
    y = np.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


grad_tanh = grad(tanh)
print(round(float(grad_tanh(1.0)), 10))
print(round(float((tanh(1.0001) - tanh(0.9999)) / 0.0002), 7))

x = np.linspace(-7, 7, 200)
derivative = tanh
for order in range(1, 7):
    derivative = egrad(derivative)
    print(order, derivative(x).shape, round(float(derivative(x)[99]), 6))
