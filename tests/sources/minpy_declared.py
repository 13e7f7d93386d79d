"""MinPy's announcement (2017) and the surveys: the program as Theano declares it, compiled, then called."""

import minnp.numpy as np
from minnp import Variable, compile

A = Variable("A")
B = Variable("B")
C = B * A
D = C + 1
f = compile(D)
d = f(A=np.ones(10), B=np.ones(10) * 2)
print(d)
