"""A training on a mesh that may be killed at any moment: `victim.py FOLDER` goes on from FOLDER's checkpoint.

Prints one line per epoch; the last line of rank 0 is the loss of every step.
"""

import sys

import numpy as onp

import minnp
from minnp import nn

mesh = minnp.distributed.init(timeout=20, patience=4)
rng = onp.random.default_rng(0)
x = rng.standard_normal((60, 5)).astype("f4")
y = (x[:, 0] > 0).astype(int)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
solver = nn.Solver(
    model, nn.io.NDArrayIter(x, y, 15, shuffle=True, seed=0), num_epochs=12, seed=0, verbose=False, progress=False,
    checkpoint=f"{sys.argv[1]}/victim", checkpoint_every=1, resume=True, mesh=mesh,
)  # fmt: skip
solver.train()
if mesh.first:
    print([round(loss, 6) for loss in solver.loss_history], flush=True)
