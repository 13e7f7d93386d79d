"""Where was it warm before? A heat equation on a grid that is split over processes, and the gradient of its start.

    torchrun --nproc-per-node 2 tutorials/processes/heat.py
    python tutorials/processes/heat.py                      # the same program alone: the same numbers

The temperature u of a plate follows du/dt = d2u/dx2 + d2u/dy2, here in explicit steps on a grid with cold edges. It was
measured after some steps: which start explains that? We guess one, run the equation, compare, and go down the gradient
of the error with respect to the guess, which comes back through all steps.

Each process has some rows of every array. A slice that is shifted by a row takes that row from the neighbour, and its
gradient gives it back. The program says nothing of it: it is NumPy's.
"""

import argparse

import minnp
import minnp.numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--size", type=int, default=61, help="points along each side")
parser.add_argument("--time", type=int, default=10, help="steps of the equation")
parser.add_argument("--steps", type=int, default=20, help="steps down the gradient")
arguments = parser.parse_args()

mesh = minnp.distributed.init()
n = arguments.size


def later(u):
    """The temperature after some time; the edges stay as they are."""
    for _ in range(arguments.time):
        v = u.copy()
        v[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u = v
    return u


with mesh.split(0):  # arrays are made in parts, the first rows by process 0
    start, guess = np.zeros((n, n)), np.zeros((n, n))
start[n // 4 : n // 3, n // 4 : n // 2] = 1.0
start[n // 2 : n // 2 + 5, 2 * n // 3 : 2 * n // 3 + 5] = 2.0
measured = later(start)

error_and_slope = minnp.value_and_grad(lambda u: 0.5 * np.sum((later(u) - measured) ** 2))

# The error is quadratic in the start, so conjugate gradients know how far to go.
first, slope = error_and_slope(guess)
direction, size = -slope, np.sum(slope**2)
for _ in range(arguments.steps):
    guess = guess + size / np.sum(later(direction) ** 2) * direction
    error, slope = error_and_slope(guess)
    before, size = size, np.sum(slope**2)
    direction = size / before * direction - slope

# What is asked of an array is asked by every process, for the answer may lie on another one.
distance = np.linalg.norm(guess - start) / np.linalg.norm(start)
warmest = divmod(int(np.argmax(guess)), n)
rows = mesh.all_gather(np.array([guess.local.shape[0]]))
if mesh.first:
    print(f"rows of each process: {rows.tolist()}")
    print(f"error {float(first):.3f} -> {float(error):.1e}; the start is found to {100 * float(distance):.0f}%")
    print(f"warmest at {warmest}")
