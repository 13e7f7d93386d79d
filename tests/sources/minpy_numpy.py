"""MinPy's tutorial of NumPy: creation, arithmetic, slices, MXNet's slice_axis, contexts and random numbers."""

import minnp.numpy as np
import minnp.numpy.random as random
from minnp.context import cpu
from minnp.core import grad

a, b = np.ones((2, 3)), np.ones((2, 3))
c = a + b
print(-c)
print(np.round(np.sin(c**2).T, 4))
print(np.maximum(a, c))

a = np.reshape(np.arange(6), (3, 2))
a[1:2] = -1
print(a)
print(np.slice_axis(a, axis=1, begin=1, end=2))


def foo(x):
    return 5 * (x**2) + 3 * x - 2


print(foo(4), grad(foo)(4))

with cpu():
    x = random.rand(64, 64) - 0.5
    y = random.rand(64, 64) - 0.5
    z = np.dot(x, y)
print(z.asnumpy().shape, z.context)
