"""MinPy's documentation: an operator of one's own in plain NumPy, with its derivative."""

import numpy

import minnp.numpy as np
from minnp.core import grad, grad_and_loss
from minnp.primitive import customop


@customop("numpy")
def my_softmax(x, y):
    """Probabilities; the derivative is that of the loss, as softmax outputs of MXNet have it."""
    e = numpy.exp(x - numpy.max(x, axis=1, keepdims=True))
    return e / numpy.sum(e, axis=1, keepdims=True)


def my_softmax_grad(ans, x, y):
    def gradient(g):
        d = ans.copy()
        d[numpy.arange(len(x)), y] -= 1
        return d

    return gradient


my_softmax.def_grad(my_softmax_grad)
x, y = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), np.array([1, 2])
print(np.round(my_softmax(x, y), 4))
print(np.round(grad(lambda x: np.sum(my_softmax(x * 2, y)))(x), 4))


@customop("numpy")
def log1pexp(x):
    return numpy.log1p(numpy.exp(x))


log1pexp.def_grad(lambda ans, x: lambda g: g / (1 + numpy.exp(-x)))
slope, value = grad_and_loss(lambda x: np.sum(log1pexp(x) ** 2))(np.zeros(2))
print(np.round(slope, 6), round(float(value), 6))
