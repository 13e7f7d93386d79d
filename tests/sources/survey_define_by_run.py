"""The surveys of frameworks, Chainer's define-by-run: the net is whatever the Python code of this step does."""

import minnp.numpy as np
from minnp import grad, value_and_grad

x = np.array([[5.0]])
y = lambda x: np.sum(x**2 - 2 * x + 1)
print(y(x), grad(y)(x).tolist(), grad(lambda x: np.sum(grad(y)(x)))(x).tolist())


class Net:
    """A recurrent net over sentences of any length; words are rows of a table."""

    def __init__(self, words, size):
        rng = np.random.default_rng(0)
        self.table, self.w = rng.normal(0, 0.5, (words, size)), rng.normal(0, 0.5, (size, size))
        self.out = rng.normal(0, 0.5, size)

    def __call__(self, p, sentence):
        h = np.zeros(len(p["out"]))
        for word in sentence:
            h = np.tanh(p["w"] @ h + p["table"][word])
        return h @ p["out"]


net = Net(words=4, size=6)
params = {"table": net.table, "w": net.w, "out": net.out}
sentences = [([0, 1], 1.0), ([2, 3, 0], -1.0), ([1], 0.5), ([3, 3, 2, 1], -0.5)]
losses = []
for _ in range(150):
    total = 0.0
    for sentence, target in sentences:
        loss = lambda p, s=sentence, t=target: (net(p, s) - t) ** 2
        value, gradients = value_and_grad(loss)(params)
        for name, g in gradients.items():
            params[name] -= 0.1 * g
        total += float(value)
    losses.append(total)
print("falls below a hundredth:", losses[-1] < losses[0] / 100)
