"""Policy gradient on CartPole: learning to act from returns alone (Williams 1992).

    python tutorials/dynamic/policy_gradient.py

A policy net gives the probabilities of pushing left and right. It plays a few games; each action is made more likely by
how much better than usual the rest of its game went. The gradient is that of sum(log p(action) * advantage): a loss
written after the fact, over a program whose length nobody knew before.
"""

import argparse

import gymnasium

import minnp.numpy as np
from minnp import nn, value_and_grad
from minnp.nn import layers, optim

GOAL = 195.0


def play(env, net, rng, seed=None):
    """One game: (observations [T, 4], actions [T]); every step until the end is worth 1."""
    observations, actions = [], []
    observation, _ = env.reset(seed=seed)
    over = False
    while not over:
        observations.append(observation)
        p = layers.softmax(net(np.asarray(observation)[None]))[0]
        actions.append(int(rng.random() > float(p[0])))
        observation, _, fell, late, _ = env.step(actions[-1])
        over = fell or late
    return np.array(observations), np.array(actions)


def returns(length, discount):
    """What was still to come at each step of a game of `length` steps, each worth 1: sum of discount^k."""
    return (1 - discount ** np.arange(length, 0, -1)) / (1 - discount)


def train(updates, games, rate=0.01, discount=0.98, seed=0):
    """(net, mean length of the games of each update), stopping when the last 100 games reach the goal."""
    env, rng = gymnasium.make("CartPole-v1"), np.random.default_rng(seed)
    net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2)).init(seed)
    states = {name: {"learning_rate": rate} for name in net.tree()}
    lengths, first = [], seed

    def loss(tree, observations, actions, advantages):
        with net.holding(tree):
            log_p = layers.log_softmax(net(observations))
        return -np.mean(log_p[np.arange(len(actions)), actions] * advantages)

    step = value_and_grad(loss)
    for update in range(updates):
        batch = [play(env, net, rng, first if update == i == 0 else None) for i in range(games)]
        lengths += [len(actions) for _, actions in batch]
        observations, actions = (np.concatenate(parts) for parts in zip(*batch))
        worth = np.concatenate([returns(len(a), discount) for _, a in batch])
        advantages = (worth - worth.mean()) / (worth.std() + 1e-8)
        _, gradients = step(net.tree(), observations, actions, advantages.astype(np.float32))
        for name, w in net.tree().items():
            optim.adam(w, gradients[name], states[name])
        recent = sum(lengths[-100:]) / len(lengths[-100:])
        if update % 10 == 0:
            print(f"update {update:3}: mean return of the last {len(lengths[-100:])} games {recent:.1f}")
        if len(lengths) >= 100 and recent >= GOAL:
            break
    env.close()
    return net, lengths, recent


def main(updates=120, games=10, seed=0):
    _, lengths, recent = train(updates, games, seed=seed)
    first = sum(lengths[:games]) / games
    print(
        f"after {len(lengths)} games: mean return {recent:.1f} over the last 100; {first:.1f} at the start; goal {GOAL}"
    )
    return {"first": first, "recent": recent, "games": len(lengths)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
