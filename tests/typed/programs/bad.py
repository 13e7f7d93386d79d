"""Mistakes a type checker must find: one on every line that says so."""

import minnp.numpy as np

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
