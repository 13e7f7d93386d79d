"""A round of the adversarial nets of assignment 3.4 (tutorials/assignments/gan.py): the discriminator's step, then the
generator's, each with Adam; for minnp, plainly and jitted, torch and autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import torch
import torch.nn.functional as F

import minnp
import minnp.numpy as np
from minnp import nn
from minnp.nn import layers, optim

from . import torch_models

Step = Callable[[], Any]
Losses = tuple[Callable, Callable]
ADAM = {"learning_rate": 1e-3, "beta1": 0.5}


def nets() -> tuple[nn.ModelBase, nn.ModelBase]:
    generator = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm(64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh()).init(0)
    leaky = layers.leaky_relu
    return generator, nn.Sequential(nn.Linear(64, 64), leaky, nn.Linear(64, 32), leaky, nn.Linear(32, 1)).init(1)


def drawn() -> tuple[Any, Any]:
    """(real images, noise)"""
    rng = onp.random.default_rng(0)
    return rng.random((32, 64)).astype("f"), rng.standard_normal((32, 16)).astype("f")


def ours(jit: bool = False) -> Step:
    (generator, discriminator), (real, noise) = nets(), map(np.array, drawn())
    states: dict = {net: {name: dict(ADAM) for name in net.tree()} for net in (generator, discriminator)}

    def of_discriminator(tree: dict, real: Any, fake: Any) -> Any:
        with discriminator.holding(tree):
            return np.mean(np.logaddexp(0, -discriminator(real))) + np.mean(np.logaddexp(0, discriminator(fake)))

    def of_generator(tree: dict, aux: dict, other: dict, noise: Any) -> Any:
        with generator.holding(tree, aux), discriminator.holding(other):
            loss = np.mean(np.logaddexp(0, -discriminator(generator(noise, mode="train"))))
            return loss, generator.aux_tree()

    judge, make = minnp.value_and_grad(of_discriminator), minnp.value_and_grad(of_generator, has_aux=True)
    judge, make = (minnp.jit(judge), minnp.jit(make)) if jit else (judge, make)

    def update(net: nn.ModelBase, gradients: dict) -> None:
        for name, w in net.tree().items():
            optim.adam(w, gradients[name], states[net][name])

    def step() -> tuple[float, float]:
        d, gradients = judge(discriminator.tree(), real, generator(noise, mode="train"))
        update(discriminator, gradients)
        (g, aux), gradients = make(generator.tree(), generator.aux_tree(), discriminator.tree(), noise)
        generator.set_aux_tree(aux)
        update(generator, gradients)
        return float(d), float(g)

    return step


def in_autograd() -> Step:
    import autograd
    import autograd.numpy as anp

    from benchmarks.autograd_models import discriminator, generator

    (one, two), (real, noise) = ({k: onp.array(v) for k, v in net.tree().items()} for net in nets()), drawn()
    states: list = [{name: dict(ADAM) for name in tree} for tree in (one, two)]
    judge = autograd.value_and_grad(
        lambda p, fake: (
            anp.mean(anp.logaddexp(0, -discriminator(p, real))) + anp.mean(anp.logaddexp(0, discriminator(p, fake)))
        )
    )
    make = autograd.value_and_grad(lambda p: anp.mean(anp.logaddexp(0, -discriminator(two, generator(p, noise)))))

    def update(tree: dict, gradients: dict, states: dict) -> None:
        for name, w in tree.items():
            optim.adam(w, gradients[name], states[name])

    def step() -> tuple[float, float]:
        d, gradients = judge(two, generator(one, noise))
        update(two, gradients, states[1])
        g, gradients = make(one)
        update(one, gradients, states[0])
        return float(d), float(g)

    return step


def in_torch() -> Step:
    (generator, discriminator), (real, noise) = torch_models.gan(), map(torch.tensor, drawn())
    first, second = (torch.optim.Adam(net.parameters(), 1e-3, (0.5, 0.999)) for net in (generator, discriminator))

    def step() -> tuple[float, float]:
        fake = generator(noise)
        second.zero_grad()
        d = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
        d.backward()
        second.step()
        first.zero_grad()
        g = F.softplus(-discriminator(fake)).mean()
        g.backward()
        first.step()
        return d.item(), g.item()

    return step


def steps() -> dict[str, Step]:
    """A round of each, by the library's name."""
    return {"minnp": ours(), "jit": ours(jit=True), "torch": in_torch(), "autograd": in_autograd()}
