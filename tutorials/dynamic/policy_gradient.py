# %% [markdown]
# # Learning to balance a pole
#
# A cart must keep a pole upright by pushing left or right. Nobody says which push was good; the game only ends when the
# pole falls. A *policy gradient* (Williams 1992) plays a few games and makes each action more likely by how much better
# than usual the rest of its game went. The loss is written after the fact, over games whose length nobody knew before.

# %%
import gymnasium
import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import nn, value_and_grad
from minnp.nn import layers, optim

GOAL = 195.0  # mean number of steps over 100 games

# %% [markdown]
# ## A game
#
# The net turns an observation (position and speed of the cart, angle and angular speed of the pole) into the
# probabilities of the two pushes.


# %%
def play(env, net, rng, seed=None):
    """One game: (observations [T, 4], actions [T]); every step until the end is worth 1."""
    observations, actions = [], []
    observation, _ = env.reset(seed=seed)
    over = False
    while not over:
        observations.append(observation)
        p = layers.softmax(net(np.asarray(observation)[None]))[0]
        actions.append(int(rng.random() > p[0]))
        observation, _, fell, late, _ = env.step(actions[-1])
        over = fell or late
    return np.array(observations), np.array(actions)


def returns(length, discount):
    """What was still to come at each step of a game of `length` steps, each worth 1: sum of discount^k."""
    return (1 - discount ** np.arange(length, 0, -1)) / (1 - discount)


# %% [markdown]
# ## The loss
#
# $-\sum \log p(\text{action}) \cdot \text{advantage}$. The advantage is the return of a step, compared with that of the
# other steps of these games.

# %%
env, rng = gymnasium.make("CartPole-v1"), np.random.default_rng(0)
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2)).init(0)


def loss(tree, observations, actions, advantages):
    with net.holding(tree):
        log_p = layers.log_softmax(net(observations))
    return -np.mean(log_p[np.arange(len(actions)), actions] * advantages)


# %% [markdown]
# ## The training
#
# Ten games, one step of Adam, and again, until the last hundred games reach the goal.

# %%
step = value_and_grad(loss)
states = {name: {"learning_rate": 0.01} for name in net.tree()}
lengths = []
for update in range(120):
    batch = [play(env, net, rng, seed=0 if update == i == 0 else None) for i in range(10)]
    lengths += [len(actions) for _, actions in batch]
    observations, actions = (np.concatenate(parts) for parts in zip(*batch))
    worth = np.concatenate([returns(len(a), discount=0.98) for _, a in batch])
    advantages = (worth - worth.mean()) / (worth.std() + 1e-8)
    _, gradients = step(net.tree(), observations, actions, advantages.astype(np.float32))
    for name, w in net.tree().items():
        optim.adam(w, gradients[name], states[name])
    recent = sum(lengths[-100:]) / len(lengths[-100:])
    if update % 10 == 0:
        print(f"update {update:3}: {recent:.1f} steps on average over the last {len(lengths[-100:])} games")
    if len(lengths) >= 100 and recent >= GOAL:
        break
env.close()
first = sum(lengths[:10]) / 10
print(f"after {len(lengths)} games: {recent:.1f} steps, at the start {first:.1f}; the goal is {GOAL}")
assert recent >= GOAL > 60 > first

# %%
mean = np.convolve(lengths, np.full(100, 0.01), mode="valid")
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot(lengths, ".", markersize=2, color="grey", label="a game")
axis.plot(range(99, len(lengths)), mean, label="mean of 100 games")
axis.axhline(GOAL, linestyle="--", color="C1", label="goal")
axis.set(xlabel="game", ylabel="steps")
axis.legend()
plt.show()
