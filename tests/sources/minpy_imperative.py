"""MinPy's announcement (2017), what it calls imperative programming: each line has its value when it has run."""

import minnp.numpy as np

a = np.ones(10)
b = np.ones(10) * 2
c = b * a
print(c)
d = c + 1
print(d)
