"""MinPy's tutorial of autograd: any order, several arguments, a net's loss by its parameters."""

import minnp.numpy as np
from minnp.core import grad, grad_and_loss


def foo(x):
    return x**2


d_foo = grad(foo)
d_2_foo = grad(d_foo)
print(foo(4), d_foo(4), d_2_foo(4.0))


def bar(a, b, c):
    return 3 * a + b**2 - c


print(grad(bar, [0, 1, 2])(2, 3, 4))
grad_array, result = grad_and_loss(bar, [0, 1, 2])(2, 3, 4)
print(grad_array, result)


def affine(x, w, b):
    return np.dot(x, w) + b


def relu(x):
    return np.maximum(0, x)


def softmax_loss(x, y):
    probs = np.exp(x - np.max(x, axis=1, keepdims=True))
    probs = probs / np.sum(probs, axis=1, keepdims=True)
    return -np.sum(np.log(probs) * y) / x.shape[0]


class SimpleNet:
    def __init__(self, input_size=100, num_class=3):
        self.params = {"w": np.random.randn(input_size, num_class) * 0.01, "b": np.zeros((1, 1))}

    def forward(self, X):
        return relu(affine(X, self.params["w"], self.params["b"]))

    def loss(self, X, y):
        return softmax_loss(self.forward(X), y)


np.random.seed(0)
net = SimpleNet(50, 3)
x = np.random.randn(100, 50)
y = np.zeros((100, 3))
y[np.arange(100), np.random.randint(0, 3, size=100)] = 1
print(grad(net.loss)(x, y).shape)


def loss_func(w, b, X, y):
    net.params["w"] = w
    net.params["b"] = b
    return net.loss(X, y)


gradient = grad(loss_func, [0, 1])
first = float(net.loss(x, y))
w, b = net.params["w"], net.params["b"]
for _ in range(100):
    d_w, d_b = gradient(w, b, x, y)
    w -= 0.5 * d_w
    b -= 0.5 * d_b
print(d_w.shape, d_b.shape, float(net.loss(x, y)) < first / 2)
