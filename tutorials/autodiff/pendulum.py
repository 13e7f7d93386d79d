# %% [markdown]
# # Swinging up a pendulum
#
# A motor too weak to lift a pendulum must swing it up. The torque at every moment is a parameter; a simulation of a
# hundred steps, a plain loop that fills an array, says where the pendulum ends. The gradient of the cost at the end
# flows back through all steps and all those writes, and gradient descent finds the swing.
#
# Two checks: the gradient against finite differences, and the torque in SciPy's Runge-Kutta solver, which knows nothing
# of our simulation.

# %%
import os

import matplotlib.pyplot as plt
from scipy.integrate import solve_ivp

import minnp.numpy as np
from minnp import grad, value_and_grad
from minnp.nn import optim

QUICK = bool(os.environ.get("QUICK"))  # fewer steps, for a test of this program
GRAVITY, DAMPING, SECONDS, STRONGEST = 9.81, 0.1, 5.0, 4.0
steps, iterations = (50, 150) if QUICK else (100, 300)

# %% [markdown]
# ## The simulation
#
# A pendulum of unit mass and length; angle 0 hangs down, $\pi$ stands up. The leapfrog method writes state after state
# into `path`. Nothing here knows of gradients.


# %%
def acceleration(angle, speed, torque):
    return -GRAVITY * np.sin(angle) - DAMPING * speed + torque


def simulate(torques):
    """States [T + 1, 2] (angle, speed) from rest; torque t acts during step t."""
    steps = len(torques)
    dt = SECONDS / steps
    path = np.zeros((steps + 1, 2))
    for t in range(steps):
        angle, speed = path[t]
        half = speed + 0.5 * dt * acceleration(angle, speed, torques[t])
        path[t + 1, 0] = angle + dt * half
        path[t + 1, 1] = half + 0.5 * dt * acceleration(path[t + 1, 0], half, torques[t])
    return path


def motor(controls):
    """What the motor can do: torques between -STRONGEST and STRONGEST."""
    return STRONGEST * np.tanh(controls)


def cost(controls):
    """How far from standing still upright at the end, and a little for effort."""
    torques = motor(controls)
    angle, speed = simulate(torques)[-1]
    return (1.0 + np.cos(angle)) + 0.05 * speed**2 + 1e-4 * np.mean(torques**2)


# %% [markdown]
# ## Is the gradient right?
#
# Along a random direction its slope must be that of a finite difference.

# %%
rng = np.random.default_rng(0)
controls = 0.5 * np.sin(np.linspace(0.0, SECONDS, steps) * np.sqrt(GRAVITY)) + 0.01 * rng.standard_normal(steps)

direction, h = rng.standard_normal(steps), 1e-6
slope = np.sum(grad(cost)(controls) * direction)
difference = (cost(controls + h * direction) - cost(controls - h * direction)) / (2 * h)
print(f"slope along a random direction: {slope:.8f} by gradient, {difference:.8f} by differences")
assert abs(slope - difference) < 1e-5 * abs(difference)

# %% [markdown]
# ## The optimisation

# %%
step, state, costs = value_and_grad(cost), {}, []
rate = optim.cosine(iterations, 0.05)
before = simulate(motor(controls))
for i in range(iterations):
    value, gradient = step(controls)
    costs.append(value)
    state["learning_rate"] = 0.05 * rate(i)
    optim.adam(controls, gradient, state)
torques = motor(controls)
path = simulate(torques)
print(f"cost {costs[0]:.4f} at the start, {costs[-1]:.4f} at the end")

# %%
seconds = np.linspace(0, SECONDS, steps + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(seconds, np.degrees(before[:, 0]), color="grey", label="angle at first")
left.plot(seconds, np.degrees(path[:, 0]), label="angle, degrees")
left.step(seconds[1:], 10 * torques, alpha=0.6, label="torque x 10")
left.axhline(180, linestyle=":", color="grey")
left.axhline(-180, linestyle=":", color="grey")
left.set(xlabel="seconds")
left.legend()
right.semilogy(costs)
right.set(title="cost", xlabel="iteration")
plt.show()

# %% [markdown]
# ## Does the swing work in another simulator?


# %%
def motion(time, state):
    torque = torques[min(int(time / SECONDS * steps), steps - 1)]
    return [state[1], acceleration(state[0], state[1], torque)]


checked = solve_ivp(motion, (0, SECONDS), [0.0, 0.0], max_step=SECONDS / steps / 2, rtol=1e-6).y[:, -1]
ours, theirs = (np.degrees(angle) % 360 for angle in (path[-1, 0], checked[0]))
print(f"angle at the end: {ours:.2f} degrees by our simulation, {theirs:.2f} by SciPy's; 180 is upright")
assert abs(ours - 180) < 15 and abs(theirs - 180) < 25
