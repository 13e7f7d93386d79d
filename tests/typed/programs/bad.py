"""Mistakes a type checker must find: one on every line that says so."""

import minnp
import minnp.numpy as np
from minnp import nn

np.zeros("three", 2.0, depth=3)  # E
np.concatenate([np.ones(3)], axes=0)  # E
np.no_such_function(3)  # E
np.ones(3).no_such_method()  # E
np.reshape(np.ones(4))  # E
text: str = np.ones(3)  # E
np.ones(3).asnumpy().wait_to_read()  # E
np.tanh(np.ones(3), outt=None)  # E
np.allclose(1.0, 2.0) + "a"  # E
np.split(np.ones(4), 2).shape  # E
np.ones(3).astype(np.float32, kopy=True)  # E


@minnp.jit
def scaled(x: np.ndarray, by: float = 2.0) -> np.ndarray:
    return x * by


scaled()  # E
scaled(np.ones(3), "two")  # E
minnp.grad(scaled)()  # E
minnp.vmap(scaled)(np.ones(3), "two")  # E
minnp.checkpoint(np.cumsum)(np.ones(3), too=1)  # E
net = nn.Sequential(nn.Linear(2, 3))
net.fitt(np.ones((1, 2)))  # E
net.lost  # E
nn.Conv2d(3, 8)  # E
minnp.gradd  # E
