"""MinPy's documentation: printing in the middle of a function, branches on data, loops."""

import minnp.numpy as np
from minnp.core import grad_and_loss

x = np.zeros((2, 3))
print(x)


def chosen(x, y):
    return x + y if x < y else x * y


print(chosen(1.0, 2.0), chosen(3.0, 2.0))


def with_loop(w, n):
    total = 0.0
    for k in range(n):
        if k % 2 == 0:
            total = total + w**k
    print("inside:", float(np.stop_gradient(total)))
    return total


gradients, loss = grad_and_loss(with_loop, argnum=0)(2.0, 5)
print(gradients, loss)
