"""What a training's checkpoint holds: everything the next step depends on, as arrays and JSON facts."""

from __future__ import annotations

import math
import warnings
from typing import Any

import minnp.numpy as np

FACTS = ("epoch", "step", "epoch_start", "seed", "stopped", "history", "best_value")


def snapshot(solver: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arrays, facts) of where the training is."""
    if not hasattr(solver.train_dataiter, "state"):
        raise TypeError(
            f"{type(solver.train_dataiter).__name__} cannot say where it is, so its training cannot be resumed: "
            "use minnp.nn.io.NDArrayIter, or give it state() and restore(state)"
        )
    trees = {
        "param": solver.model.tree(),
        "aux": solver.model.aux_tree(),
        "best": solver.best_params,
        "best aux": solver.best_aux,
    }
    arrays = {f"{kind}:{name}": v for kind, tree in trees.items() for name, v in tree.items() if v is not None}
    numbers: dict[str, dict] = {}
    for name, config in solver.optim_configs.items():
        numbers[name] = {key: value for key, value in config.items() if not hasattr(value, "shape")}
        arrays |= {f"optim:{name}:{key}": value for key, value in config.items() if hasattr(value, "shape")}
    kind, keys, *rest = np.random.get_state()
    position, streams = [str(kind), *map(float, rest)], {"random": keys}
    if solver.ranks is not None:
        position, streams["random"] = solver.ranks.streams(position, keys)
    arrays |= streams | {"losses": np.asarray(solver.loss_history, np.float64)}
    facts = {fact: getattr(solver, fact) for fact in FACTS} | {
        "update_rule": name_of(solver.update_rule),
        "monitor": solver.monitor,
        "data": of_data(solver.train_dataiter),
        "optim": numbers,
        "random": position,
        "iterator": solver.train_dataiter.state(),
        "loss_scale": solver.loss_scale and [solver.loss_scale.value, solver.loss_scale.good],
        "callbacks": [[type(callback).__name__, callback.state()] for callback in solver.callbacks],
    }
    return arrays, facts


def restore(solver: Any, arrays: dict[str, Any], facts: dict[str, Any]) -> None:
    """Go to where `snapshot` was taken. Settings of the optimiser are the solver's own, its state the snapshot's."""
    parts: dict[str, dict] = {"param": {}, "aux": {}, "best": {}, "best aux": {}, "optim": {}}
    for label, value in arrays.items():
        kind, _, name = label.partition(":")
        if kind in parts:
            parts[kind][name] = value
    if set(parts["param"]) != set(solver.optim_configs):
        raise ValueError(
            f"{solver.checkpoint} holds the parameters {sorted(parts['param'])}; "
            f"this model has {sorted(solver.optim_configs)}"
        )
    solver.model.set_tree(parts["param"])
    solver.model.set_aux_tree(parts["aux"])
    solver.best_params, solver.best_aux = parts["best"], parts["best aux"]
    rule = name_of(solver.update_rule)
    if facts["update_rule"] == rule:
        for name, numbers in facts["optim"].items():
            solver.optim_configs[name] = numbers | solver.optim_configs[name]
        for label, value in parts["optim"].items():
            name, _, key = label.rpartition(":")
            solver.optim_configs[name][key] = value
    else:
        warnings.warn(
            f"{solver.checkpoint} was written with {facts['update_rule']}: {rule} goes on from its parameters, and "
            "begins anew with what an optimiser remembers",
            UserWarning,
            stacklevel=2,
        )
    warn_of_others(solver, facts)
    for fact in FACTS:
        setattr(solver, fact, facts[fact])
    if solver.loss_scale is not None and facts.get("loss_scale"):
        solver.loss_scale.value, solver.loss_scale.good = facts["loss_scale"]
    if facts.get("monitor", solver.monitor) != solver.monitor:
        # the best by another measure: the best from now on
        solver.best_value, solver.best_params, solver.best_aux = -math.inf, {}, {}
    solver.loss_history = arrays["losses"].tolist()
    restore_stream(solver, facts["random"], arrays["random"])
    solver.train_dataiter.restore(facts["iterator"])
    states = list(facts["callbacks"])
    for callback in solver.callbacks:  # each its own, also where others came or went
        found = next((s for s in states if s[0] == type(callback).__name__), None)
        if found is not None:
            states.remove(found)
            callback.restore(found[1])


def restore_stream(solver: Any, positions: list, keys: Any) -> None:
    """np.random as it was when the checkpoint was written, on this rank; a rank that there was not begins one."""
    if keys.ndim == 1:
        positions, keys = [positions], keys[None]
    rank = 0 if solver.ranks is None else solver.ranks.mesh.rank
    if rank >= len(keys):
        solver.ranks.own_stream(solver.seed, solver.step)
        return
    kind, position, has_gauss, gauss = positions[rank]
    np.random.set_state((kind, keys[rank], int(position), int(has_gauss), gauss))


def of_data(iterator: Any) -> dict[str, Any]:
    """What of an iterator the batches depend on, by its name in a call."""
    names = {"batch_size": "batch_size", "num_data": "number of examples", "shuffle": "shuffle"}
    return {said: getattr(iterator, name) for name, said in names.items() if getattr(iterator, name, None) is not None}


def warn_of_others(solver: Any, facts: dict[str, Any]) -> None:
    """A warning where the run that goes on is not the one that was interrupted: another seed, other batches."""
    before, now = dict(facts.get("data", {})), of_data(solver.train_dataiter)
    if solver.seed_given:
        before["seed"], now["seed"] = facts["seed"], solver.seed
    others = [name for name in before if name in now and before[name] != now[name]]
    if others:
        list_of = lambda facts: ", ".join(f"{name} {facts[name]}" for name in others)
        warnings.warn(
            f"{solver.checkpoint} was written with {list_of(before)}, and this training has {list_of(now)}: it goes on "
            "from the checkpoint's parameters, order of examples and random numbers, but not as the first would have",
            UserWarning,
            stacklevel=2,
        )


def name_of(rule: Any) -> str:
    return getattr(rule, "__name__", type(rule).__name__)
