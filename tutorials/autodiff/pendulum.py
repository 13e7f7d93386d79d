"""Swinging up a pendulum: a simulation of 100 steps, optimised through time.

    python tutorials/autodiff/pendulum.py --picture swing.png

A motor too weak to lift the pendulum must swing it up. The torque at every step is a parameter; the simulation is a
plain loop that fills an array with states, `path[t + 1] = ...`, and the gradient of the cost at its end flows back
through all steps and all those writes. Checked: the gradient against finite differences, and the torque by SciPy's
Runge-Kutta solver, which knows nothing of our simulation.
"""

import argparse

from scipy.integrate import solve_ivp

import minnp.numpy as np
from minnp import grad, value_and_grad
from minnp.nn import optim

GRAVITY, DAMPING, SECONDS, WEAK = 9.81, 0.1, 5.0, 4.0


def acceleration(angle, speed, torque):
    """Of a pendulum of unit mass and length; angle 0 hangs down, pi stands up."""
    return -GRAVITY * np.sin(angle) - DAMPING * speed + torque


def simulate(torques):
    """States [T + 1, 2] (angle, speed) from rest, by the leapfrog method; torque t acts during step t."""
    steps = len(torques)
    dt = SECONDS / steps
    path = np.zeros((steps + 1, 2))
    for t in range(steps):
        angle, speed = path[t, 0], path[t, 1]
        half = speed + 0.5 * dt * acceleration(angle, speed, torques[t])
        path[t + 1, 0] = angle + dt * half
        path[t + 1, 1] = half + 0.5 * dt * acceleration(path[t + 1, 0], half, torques[t])
    return path


def motor(controls):
    """What the motor can do: torques in (-WEAK, WEAK)."""
    return WEAK * np.tanh(controls)


def cost(controls):
    """How far from standing still upright at the end, and a little for effort."""
    torques = motor(controls)
    angle, speed = simulate(torques)[-1]
    return (1.0 + np.cos(angle)) + 0.05 * speed**2 + 1e-4 * np.mean(torques**2)


def main(steps=100, iterations=300, picture=None):
    rng = np.random.default_rng(0)
    controls = 0.5 * np.sin(np.linspace(0.0, SECONDS, steps) * np.sqrt(GRAVITY)) + 0.01 * rng.standard_normal(steps)

    direction, h = rng.standard_normal(steps), 1e-6
    slope = float(np.sum(grad(cost)(controls) * direction))
    difference = float(cost(controls + h * direction) - cost(controls - h * direction)) / (2 * h)
    print(f"slope along a random direction: {slope:.8f} by gradient, {difference:.8f} by differences")

    step, config = value_and_grad(cost), {"learning_rate": 0.05}
    for i in range(iterations):
        value, g = step(controls)
        config["learning_rate"] = 0.05 * optim.cosine(iterations, 0.05)(i)
        optim.adam(controls, g, config)
        if i % 100 == 0:
            print(f"iteration {i:4}: cost {float(value):.4f}")
    torques = np.array(motor(controls))
    path = simulate(torques)

    def motion(time, state):
        torque = torques[min(int(time / SECONDS * steps), steps - 1)]
        return [state[1], float(acceleration(state[0], state[1], torque))]

    checked = solve_ivp(motion, (0, SECONDS), [0.0, 0.0], max_step=SECONDS / steps / 2, rtol=1e-6).y[:, -1]
    angles = [float(np.degrees(a)) % 360 for a in (path[-1, 0], checked[0])]
    print(f"angle at the end: {angles[0]:.2f} degrees by our simulation, {angles[1]:.2f} by SciPy's; 180 is upright")
    if picture:
        draw(path, torques, picture)
    return {
        "slope": slope,
        "difference": difference,
        "angle": angles[0],
        "checked": angles[1],
        "speed": float(path[-1, 1]),
    }


def draw(path, torques, picture):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    time = np.linspace(0, SECONDS, len(path))
    axes.plot(np.array(time), np.degrees(path[:, 0]), label="angle, degrees")
    axes.step(np.array(time[1:]), 10 * torques, label="torque x 10", alpha=0.6)
    axes.set(xlabel="seconds")
    axes.legend()
    figure.savefig(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--picture")
    main(**vars(parser.parse_args()))
