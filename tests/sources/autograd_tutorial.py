"""autograd's tutorial: logistic regression, a function with a rule of its own, and the functions beside grad."""

import minnp.numpy as np
from minnp import custom_vjp, grad, hessian, jacobian, value_and_grad
from minnp.testing import check_grads


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2.0) + 1)


inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
targets = np.array([True, True, False, True])


def training_loss(weights):
    preds = sigmoid(np.dot(inputs, weights))
    label_probabilities = preds * targets + (1 - preds) * (1 - targets)
    return -np.sum(np.log(label_probabilities))


training_gradient = grad(training_loss)
check_grads(training_loss, (np.array([0.1, -0.2, 0.3]),), modes=["rev"])
weights = np.array([0.0, 0.0, 0.0])
print("initial loss", round(float(training_loss(weights)), 4))
for _ in range(100):
    weights -= training_gradient(weights) * 0.01
print("trained loss", round(float(training_loss(weights)), 4))


@custom_vjp
def logsumexp(x):
    """log(sum(exp(x))), without overflow."""
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def forward(x):
    y = logsumexp(x)
    return y, (x, y)


logsumexp.defvjp(forward, lambda saved, g: (g * np.exp(saved[0] - saved[1]),))


def example(y):
    return np.sin(logsumexp(y**2))


check_grads(example, (np.array([1.5, 6.7, 1e-3]),), order=1, modes=["rev"])
print("slope", np.round(grad(example)(np.array([1.5, 6.7, 1e-3])), 4))

value, slope = value_and_grad(lambda p: np.sum(p["w"] ** 2) * p["b"])({"w": np.array([1.0, 2.0]), "b": 3.0})
print(value, slope)
print(jacobian(lambda x: x**2)(np.array([1.0, 2.0])).tolist(), hessian(lambda x: np.prod(x))(np.ones(2)).tolist())
