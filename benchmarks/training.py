"""Training steps of the tutorials' models: minnp against torch and autograd, alternating in one process.

    python benchmarks/training.py [--models mlp convnet ...] [--peers torch ...] [--repeat 15] [--threads 1]

A step is loss, gradients and Adam's update, in float32, on one batch that stays the same. Every model is written three
times, with the same operations (autograd_models.py and torch_models.py have the others'). Printed are medians in
milliseconds (with --cpu, minima of processor time) and torch's and autograd's divided by minnp's (jit's, where it is
there): above 1 means that minnp is faster.
SPINN has a graph of its own for every batch, so minnp and torch are measured eagerly.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import torch

import minnp
import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.extend(
    str(Path(__file__).parents[1] / "tutorials" / folder) for folder in ("assignments", "autodiff", "dynamic")
)
import addition
import captions
import char_lstm
import entailment
import spinn
import vae
from turns import take_turns

from benchmarks import adversarial, torch_models

RNG = onp.random.default_rng(0)
Step = Callable[[], Any]
WINDOW = 0.01  # seconds of steps in a row that are timed together


def solver_of(model: nn.ModelBase, data: Any, labels: Any, jit: bool = False) -> nn.Solver:
    """A Solver whose one batch is all of the data."""
    batches = nn.io.NDArrayIter(data, labels, len(labels[0] if type(labels) is list else labels))
    return nn.Solver(model, batches, update_rule="adam", jit=jit, verbose=False, seed=0)


def batch_of(solver: nn.Solver) -> tuple[list, list]:
    batch = next(nn.io.each_batch(solver.train_dataiter))
    return batch.data, batch.label


def minnp_step(model: nn.ModelBase, data: Any, labels: Any, jit: bool = False) -> Step:
    """One training step of a model, by its Solver."""
    solver = solver_of(model, data, labels, jit)
    solver.init()
    batch = nn.io.DataBatch(*batch_of(solver))
    return lambda: solver._step(batch)


def autograd_step(model: nn.ModelBase, loss: Callable) -> Step:
    """The same step from autograd's gradient, with the same Adam on NumPy's arrays."""
    import autograd

    tree = {name: onp.array(value) for name, value in model.init(0).tree().items()}
    gradient, states = autograd.value_and_grad(loss), {name: {} for name in tree}

    def step() -> None:
        _, grads = gradient(tree)
        for name, w in tree.items():
            nn.optim.adam(w, grads[name], states[name])

    return step


def torch_step(module: torch.nn.Module, loss: Callable) -> Step:
    optimizer = torch.optim.Adam(module.parameters())

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return step


# ------------------------------------------------------------------ data, and models of minnp's
def digits(n: int = 50) -> tuple[Any, Any]:
    return RNG.standard_normal((n, 64)).astype("f"), RNG.integers(0, 10, n)


class Hinge(nn.Sequential):
    """The linear classifier of assignment 1.2, with layers."""

    def loss_batch(self, batch: Any, predict: Any) -> Any:
        return layers.svm_loss(predict, batch.label[0])


def batch_norm_net() -> tuple[nn.ModelBase, Any, Any]:
    steps = []
    for size in (64, 60, 60, 60, 60):
        steps += [nn.Linear(size, 60), nn.BatchNorm(60), nn.ReLU()]
    return nn.Sequential(*steps, nn.Linear(60, 10)), *digits()


def convnet_net() -> tuple[nn.ModelBase, Any, Any]:
    x, y = RNG.standard_normal((64, 1, 8, 8)).astype("f"), RNG.integers(0, 10, 64)
    steps = []
    for inputs, filters in ((1, 32), (32, 64)):
        steps += [nn.Conv2D(inputs, filters, 3, pad="same"), nn.BatchNorm(filters), nn.ReLU(), nn.MaxPool2D()]
    return nn.Sequential(*steps, nn.Flatten(), nn.Linear(256, 10)), x, y


def lstm_net() -> tuple[nn.ModelBase, Any, Any]:
    numbers = RNG.integers(0, 80, (32, 41))
    return char_lstm.CharLSTM(80), numbers[:, :-1], numbers[:, 1:]


def transformer_net() -> tuple[nn.ModelBase, Any, Any]:
    text = onp.asarray(addition.texts(np.arange(128) % 100, np.arange(128) * 7 % 100))
    return addition.Adder(), text[:, :-1], text[:, 1:]


class Captioner(nn.ModelBase):
    """Assignments 3.1 and 3.2: a plain recurrent net, step by step, or an LSTM."""

    def __init__(self, lstm: bool, hidden: int = 96, vector: int = 16) -> None:
        super().__init__()
        words = len(captions.WORDS)
        self.picture, self.embedding = nn.Linear(128, hidden), nn.Embedding(words, vector)
        self.lstm, self.score = (nn.LSTM if lstm else nn.RNN)(vector, hidden), nn.Linear(hidden, words)

    def forward_batch(self, batch: Any, mode: str) -> Any:
        pictures, words = batch.data
        h, x = self.picture(pictures), self.embedding(words)
        if isinstance(self.lstm, nn.LSTM):
            return self.score(self.lstm(x, h0=h))
        p, hs = self.lstm.params, []
        for t in range(x.shape[1]):
            h = np.tanh(x[:, t] @ p["Wx"] + h @ p["Wh"] + p["b"])
            hs.append(h)
        return self.score(np.stack(hs, axis=1))

    def loss_batch(self, batch: Any, predict: Any) -> Any:
        return layers.temporal_softmax_loss(predict, batch.label[0], batch.label[0] != 0)


def captions_net(lstm: bool) -> tuple[nn.ModelBase, Any, Any]:
    words = onp.array([captions.encode(captions.sentence(*RNG.integers(0, 10, 2))) for _ in range(50)])
    return Captioner(lstm), [RNG.random((50, 128)).astype("f"), words[:, :-1]], words[:, 1:]


class Vae(nn.Sequential):
    def forward_batch(self, batch: Any, mode: str) -> Any:
        return vae.negative_bound(self, *batch.data)

    def loss_batch(self, batch: Any, predict: Any) -> Any:
        return predict


def vae_net() -> tuple[nn.ModelBase, Any, Any]:
    images, noise = RNG.random((64, 64)).astype("f"), RNG.standard_normal((64, 8)).astype("f")
    return Vae(*vae.network(128, 8).steps), [images, noise], onp.zeros(64)


class Policy(nn.Sequential):
    """policy_gradient.py's loss."""

    def loss_batch(self, batch: Any, predict: Any) -> Any:
        actions, advantages = batch.label
        return -np.mean(layers.log_softmax(predict)[np.arange(len(actions)), actions] * advantages)


def policy_net() -> tuple[nn.ModelBase, Any, Any]:
    """Ten games of 40 steps."""
    observations, advantages = RNG.standard_normal((400, 4)).astype("f"), RNG.standard_normal(400).astype("f")
    return Policy(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2)), observations, [RNG.integers(0, 2, 400), advantages]


def bag_net() -> tuple[nn.ModelBase, Any, Any]:
    return spinn.BagOfWords(), [*sentences(32, 20), *sentences(32, 20)], RNG.integers(0, 3, 32)


def spinn_net() -> tuple[nn.ModelBase, Any, Any]:
    """Batch 32 pairs, 20 tokens, 128 hidden."""
    return spinn.Spinn(128), [*sentences(32, 20), *sentences(32, 20)], RNG.integers(0, 3, 32)


def sentences(count: int, length: int) -> tuple[Any, Any]:
    """Words and moves of `count` random binary trees of exactly `length` words."""

    def moves(words: int) -> list[int]:
        if words == 1:
            return [entailment.SHIFT]
        left = int(RNG.integers(1, words))
        return [*moves(left), *moves(words - left), entailment.REDUCE]

    return RNG.integers(1, len(entailment.WORDS), (count, length)), onp.array([moves(length) for _ in range(count)])


def for_autograd(name: str) -> tuple[nn.ModelBase, Any, Any, Callable]:
    """(minnp's model, data, labels, the loss of its tree in autograd's NumPy)."""
    from benchmarks import autograd_models  # where autograd is installed

    model, x, y = NETS[name]()
    return model, x, y, autograd_loss(autograd_models.LOSSES[name], x, y)


def autograd_loss(loss: Callable, x: Any, y: Any) -> Callable:
    if isinstance(x, list) and len(x) == 4:
        words, moves = onp.concatenate(x[::2]), onp.concatenate(x[1::2])
        return lambda tree: loss(tree, words, moves, y)
    return lambda tree: loss(tree, x, y)


NETS: dict[str, Callable[[], tuple[nn.ModelBase, Any, Any]]] = {
    "linear": lambda: (nn.Sequential(nn.Linear(64, 10)), *digits()),
    "svm": lambda: (Hinge(nn.Linear(64, 10)), *digits()),
    "mlp": lambda: (nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 10)), *digits()),
    "batch_norm": batch_norm_net,
    "dropout": lambda: (
        nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Dropout(0.5), nn.Linear(300, 10)),
        *digits(25),
    ),
    "convnet": convnet_net,
    "rnn_captions": lambda: captions_net(False),
    "lstm_captions": lambda: captions_net(True),
    "lstm": lstm_net,
    "transformer": transformer_net,
    "vae": vae_net,
    "policy": policy_net,
    "bag": bag_net,
    "spinn": spinn_net,
}


MODELS = (*NETS, "gan")
PEERS = ("torch", "autograd", "torch, lists")


def steps_of(name: str) -> dict[str, Step]:
    """The steps to compare, by the library's name."""
    if name == "gan":
        return adversarial.steps()
    model, x, y, loss = for_autograd(name)
    steps = {"minnp": minnp_step(model, x, y)}
    if name != "spinn":
        steps["jit"] = minnp_step(copy.deepcopy(model), x, y, jit=True)
    steps |= {"torch": torch_step(*torch_models.LOSSES[name](x, y)), "autograd": autograd_step(model, loss)}
    if name == "spinn":
        steps["torch, lists"] = torch_step(*torch_models.spinn_of(x, y, torch_models.TorchSpinnLists))
    return steps


def compare(steps: dict[str, Step], repeat: int, cpu: bool) -> dict[str, float]:
    """Milliseconds of each, taken in turns: the median, or the least processor time."""
    clock, summary = (time.process_time, min) if cpu else (time.perf_counter, statistics.median)
    inner = {}
    for name, step in steps.items():
        for _ in range(3):
            start = time.perf_counter()
            step()
        inner[name] = max(1, int(WINDOW / (time.perf_counter() - start)))
    return {name: 1e3 * summary(times) for name, times in take_turns(steps, repeat, inner, clock).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS, help="of SPINN torch has a second one")
    parser.add_argument("--cpu", action="store_true", help="the least processor time, for a machine that is not quiet")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    minnp.set_num_threads(options.threads)
    columns = ("minnp", "jit", *options.peers)
    ratios = "".join(f"{peer + ' / ours':>20}" for peer in options.peers)
    print(f"{'model':14}" + "".join(f"{c:>14}" for c in columns) + f"   ms{ratios}")
    for name in options.models:
        steps = {key: step for key, step in steps_of(name).items() if key in columns}
        ms = compare(steps, options.repeat, options.cpu)
        ours = ms.get("jit", ms["minnp"])
        line = "".join(f"{ms[c]:>14.2f}" if c in ms else " " * 14 for c in columns)
        ratios = "".join(f"{ms[peer] / ours:>20.2f}" for peer in options.peers if peer in ms)
        print(f"{name:14}{line}     {ratios}", flush=True)


if __name__ == "__main__":
    main()
