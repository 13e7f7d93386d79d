"""Solver: the training loop. MinPy's constructor and methods; models' `fit` (minnp.nn.training) runs on it too.

One step is: loss and gradients of the parameter tree, clipping, the optimiser on each parameter in place. One epoch is
the steps, the measurements, and the callbacks. Everything the next step depends on (parameters, optimiser, iterator,
random streams, history) is in a checkpoint, so a resumed training goes on bit for bit (jit: to rounding).
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import minnp
import minnp.numpy as np
from minnp.utils.minprof import span

from . import checkpoint as files
from . import checks, init, optim, resuming
from . import metrics as measures
from .callbacks import Callback, Curves, EarlyStopping, TensorBoard, higher_is_better, latest
from .io import DataBatch, each_batch
from .model import ModelBase
from .parallel import Ranks
from .precision import LossScale, cast, divided, half, overflowing
from .training import measure

__all__ = ["Solver"]
MOST_WAITING = 200  # losses computed on a device before they are read, and looked at for being finite, unasked


class Solver:
    """Trains `model` on the batches of `train_dataiter`, and measures it on those of `test_dataiter` after each epoch.

    MinPy's options:
        update_rule, optim_config   the optimiser (minnp.nn.optim) and its settings, {"learning_rate": 1e-3, ...}
        init_rule, init_config      initial values (minnp.nn.init) of parameters that did not declare their own
        lr_decay                    the learning rate is multiplied by this after each epoch
        num_epochs, train_acc_num_samples, verbose, print_every (0: only a line for each epoch)
    More:
        seed                        of the initial values and of np.random; a run is a function of it
        metrics                     names in minnp.nn.metrics, or functions (outputs, labels) -> number; the model's own
        monitor, restore_best       after training the model holds the parameters that were best by `monitor`
        lr_schedule                 step -> factor of the learning rate (minnp.nn.optim.cosine, ...)
        clip_norm, clip_value       limits on the gradients
        class_weight                what each class counts in the loss of training, [C] or {class: number}; what is
                                    measured counts all alike
        early_stopping              epochs without improvement of `monitor` before stopping
        callbacks                   minnp.nn.callbacks; tensorboard=folder and curves=picture are short for two of them
        checkpoint                  path of the checkpoint, written every epoch, and every `checkpoint_every` steps
        resume                      go on from the checkpoint if there is one
        jit                         compile the step with minnp.jit
        precision                   "float16": forward and backward in float16, weights and loss in float32, with a loss
                                    scale that is halved, and the step left out, where gradients overflow
        loss_scale                  that scale: an nn.LossScale, or what it is at first
        mesh                        of processes (minnp.distributed.init()): each computes on its share of every batch,
                                    and takes the step of one process with the whole batch; rank 0 prints and writes
        progress                    a tqdm bar; by default where tqdm is installed, in a terminal or a notebook

    Raises TypeError for what is no iterator, schedule or callback, ValueError for options that do not go together,
    KeyError for a monitor that is not measured, FileNotFoundError where the checkpoint's folder is not there.
    """

    @checks.named()
    def __init__(
        self,
        model: Any,
        train_dataiter: Any,
        test_dataiter: Any = None,
        *,
        init_rule: str | Callable = "xavier",
        init_config: dict | None = None,
        update_rule: str | Callable = "sgd",
        optim_config: dict | None = None,
        lr_decay: float = 1.0,
        num_epochs: int = 10,
        train_acc_num_samples: int | None = 1000,
        print_every: int = 10,
        verbose: bool = True,
        seed: int | None = None,
        metrics: Sequence | None = None,
        monitor: str | None = None,
        restore_best: bool = True,
        lr_schedule: Callable[[int], float] | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        class_weight: Any = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        tensorboard: Any = None,
        curves: Any = None,
        checkpoint: Any = None,
        checkpoint_every: int | None = None,
        resume: bool = False,
        jit: bool = False,
        precision: str = "float32",
        loss_scale: float | LossScale | None = None,
        progress: bool | None = None,
        mesh: Any = None,
    ) -> None:
        self.ranks = None if mesh is None else Ranks(mesh)
        shown = self.ranks is None or self.ranks.first
        self.model, self.train_dataiter, self.test_dataiter = model, train_dataiter, test_dataiter
        for name, iterator in (("train_dataiter", train_dataiter), ("test_dataiter", test_dataiter)):
            if iterator is not None and not hasattr(iterator, "reset"):
                raise TypeError(
                    f"{name} is an iterator of batches, got a {type(iterator).__name__}: make one of arrays with "
                    "minnp.nn.io.NDArrayIter(x, y, batch_size), or use model.fit(x, y)"
                )
        self.init_rule, self.init_config = init.rule_named(init_rule), dict(init_config or {})
        self.update_rule, self.optim_config = optim.rule_named(update_rule), dict(optim_config or {})
        if lr_schedule is not None and not callable(lr_schedule):
            raise TypeError(
                f"lr_schedule is a function step -> factor, such as optim.cosine(steps), got {lr_schedule!r}"
            )
        self.lr_decay, self.lr_schedule = checks.number("lr_decay", lr_decay), lr_schedule
        self.clip_norm, self.clip_value = (
            limit if limit is None else checks.number(name, limit, above=0)
            for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value))
        )
        self.class_weight = class_weight
        if class_weight is not None:
            weighs_classes(model)
            weights = class_weight.values() if isinstance(class_weight, dict) else np.ravel(class_weight)
            for weight in weights:
                checks.number("a class's weight", weight)
        self.num_epochs, self.train_acc_num_samples = checks.count("num_epochs", num_epochs), train_acc_num_samples
        self.print_every, self.verbose = print_every, verbose and shown
        self.metrics = measures.named(getattr(model, "metrics", ()) if metrics is None else metrics)
        of_training = self.metrics if train_acc_num_samples else ()
        of_test = () if test_dataiter is None else ("loss", *self.metrics)
        self.measured = ("loss", *of_training, *(f"val_{name}" for name in of_test))
        usual = [name for name in ("val_accuracy", "val_loss", "accuracy", "loss") if name in self.measured]
        self.monitor = monitor or usual[0]
        self.restore_best = restore_best and test_dataiter is not None
        self.callbacks = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
        if early_stopping is not None:
            self.callbacks.append(EarlyStopping(early_stopping, self.monitor))
        if tensorboard is not None:
            self.callbacks.append(TensorBoard(tensorboard))
        if curves is not None:
            self.callbacks.append(Curves(curves))
        for watched in {self.monitor, *(c.monitor for c in self.callbacks if isinstance(c, EarlyStopping))}:
            if watched not in self.measured:
                measured = ", ".join(self.measured)
                raise KeyError(
                    checks.Text(f"nothing called {watched!r} is measured; this training measures {measured}")
                )
        self.batch, self.gradients = None, {}  # of the last step, for callbacks
        self.keeps_gradients = any(getattr(callback, "reads_gradients", False) for callback in self.callbacks)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"a callback is an object of a class derived from Callback, got {callback!r}")
        if checkpoint is None and (resume or checkpoint_every):
            raise ValueError("resume and checkpoint_every need a checkpoint: the path of its file")
        if checkpoint is not None and not os.path.isdir(os.path.dirname(checkpoint) or "."):
            raise FileNotFoundError(f"there is no folder {os.path.dirname(checkpoint)!r} for the checkpoint")
        self.acting = [c for c in self.callbacks if shown or not c.writes]
        self.checkpoint, self.checkpoint_every, self.resume = checkpoint, checkpoint_every, resume
        self.progress = can_show_bar() if progress is None else progress
        if seed is not None:
            np.random.seed(seed)
        self.seed, self.seed_given = int(np.random.randint(2**31)) if seed is None else seed, seed is not None
        if self.ranks is not None:
            self.seed = self.ranks.agreed(self.seed)
        self.narrow, self.loss_scale = None, None
        if precision != "float32":
            self.narrow = half(precision)
            self.loss_scale = loss_scale if isinstance(loss_scale, LossScale) else LossScale(loss_scale or 2.0**15)
        elif loss_scale is not None:
            raise ValueError(f"loss_scale={loss_scale!r} is for precision='float16'; this training is in float32")
        whole = minnp.value_and_grad(self._loss, has_aux=True)
        compute = whole if self.ranks is None else self.ranks.value_and_grad(self._loss)
        self._compute = minnp.jit(compute) if checks.flag("jit", jit) else compute
        self._reset()

    def _reset(self) -> None:
        self.epoch = self.step = self.epoch_start = 0
        self.stopped = False
        self.loss_history = []
        self.history: dict[str, list[float]] = {}
        self.best_value, self.best_params, self.best_aux = -math.inf, {}, {}
        self.optim_configs = {}
        for name, declared in self.model.configs().items():
            own = {k: v for k, v in declared.items() if k not in ("shape", "init_rule", "init_config")}
            self.optim_configs[name] = {**self.optim_config, **own}
        if not self.optim_configs:
            raise ValueError(f"{type(self.model).__name__} has no parameters to train")
        # None for a rule without a rate
        self.base_rates = {
            name: optim.with_defaults(self.update_rule, config).get("learning_rate")
            for name, config in self.optim_configs.items()
        }

    @property
    def loss_history(self) -> list[float]:
        """The loss of every step."""
        self._settle()
        return self._losses

    @loss_history.setter
    def loss_history(self, losses: list[float]) -> None:
        self._losses, self._waiting = losses, []

    # MinPy's names for two lines of the history
    @property
    def train_acc_history(self) -> list[float]:
        return self.history.get("accuracy", [])

    @property
    def val_acc_history(self) -> list[float]:
        return self.history.get("val_accuracy", [])

    @property
    def best_val_acc(self) -> float:
        return max((a for a in self.val_acc_history if not math.isnan(a)), default=0.0)

    def init(self) -> None:
        """Give the parameters their initial values."""
        self.model.init(self.seed, self.init_rule, self.init_config)

    # -------------------------------------------------------------- one step
    def _loss(
        self, tree: dict, aux: dict, data: list, label: list, scale: Any = None, count: int = 0
    ) -> tuple[Any, Any]:
        """(loss, auxiliary values after it) as a function of the tree: what is differentiated and compiled.

        With a scale for mixed precision, (scale * loss, (loss, auxiliary values)). On a mesh data and label are this
        rank's, `count` examples of the batch.
        """
        if scale is not None:
            tree, data = cast(tree, self.narrow), cast(data, self.narrow)
        batch = DataBatch(data, label)
        with self.model.holding(tree, aux):
            predict = self.model.forward_batch(batch, "train")
            if scale is not None:
                predict = cast(predict, np.float32)
            weighted = {} if self.class_weight is None else {"weight": self.class_weight}
            loss = self.model.loss_batch(batch, predict, **weighted)
            if np.shape(loss) != () or loss is None:
                got = "None; does it end with a return?" if loss is None else f"an array of shape {np.shape(loss)}"
                raise TypeError(f"the loss of {type(self.model).__name__} is one number, to be made small; got {got}")
            if scale is None:
                return loss, self.model.aux_tree()
            kept = {k: cast(v, aux[k].dtype) if hasattr(v, "dtype") else v for k, v in self.model.aux_tree().items()}
            loss = cast(loss, np.float32)
            return loss * scale, (loss, kept)

    def _step(self, batch: DataBatch) -> None:
        tree = self.model.tree()
        with span("loss and gradients"):
            (loss, aux), grads, fits = self._gradients(tree, batch)
        self.batch = batch
        self._waiting.append((loss, self.step, self.epoch))
        if len(self._waiting) == MOST_WAITING or getattr(loss, "context", optim.HOST) == optim.HOST:
            self._settle()
        if self.keeps_gradients:
            self.gradients = grads
        if fits:
            self.model.set_aux_tree(aux)
            with span("update"):
                self._update(tree, grads)
        self.step += 1

    def _gradients(self, tree: dict, batch: DataBatch) -> tuple[tuple, dict, bool]:
        """((loss, auxiliary values), gradients, whether to take the step: not if they overflow in float16)."""
        aux = self.model.aux_tree()
        scale = None if self.loss_scale is None else np.float32(self.loss_scale.value)
        arguments = [tree, aux, batch.data, batch.label, scale]
        if self.ranks is not None:
            part, count = self.ranks.share(batch)
            arguments = [tree, aux, part.data, part.label, scale, count]
        if self.loss_scale is None:
            return *self._compute(*arguments), True
        with overflowing():
            (scaled, out), grads = self._compute(*arguments)
            if self.ranks is not None:  # the loss beside it is of this rank's share
                out = (scaled / scale, *out[1:])
            grads = divided(grads, self.loss_scale)
        return out, grads, not math.isfinite(float(out[0])) or self.loss_scale.update(grads)

    def _update(self, tree: dict, grads: dict) -> None:
        """Move the parameters by the optimiser."""
        if self.clip_value is not None:
            grads = optim.clip_value(grads, self.clip_value)
        if self.clip_norm is not None:
            grads, _ = optim.clip_norm(grads, self.clip_norm)
        factor = self.lr_decay**self.epoch
        if self.lr_schedule is not None:
            factor *= checks.number(f"lr_schedule({self.step})", self.lr_schedule(self.step))
        before = dict(tree)
        for name, w in before.items():
            config = self.optim_configs[name]
            if self.base_rates[name] is not None:
                config["learning_rate"] = self.base_rates[name] * factor
            tree[name], self.optim_configs[name] = self.update_rule(w, grads[name], config)
        if any(tree[name] is not w for name, w in before.items()):
            self.model.set_tree(tree)  # a rule of the user's that is not in place

    def _settle(self) -> None:
        """Read the losses not read yet. On a device that waits for it, so it is done when one is asked for."""
        waiting, self._waiting = self._waiting, []
        for value, step, epoch in waiting:
            loss = float(value)
            if not math.isfinite(loss):
                raise FloatingPointError(f"the loss is {loss} at step {step} (epoch {epoch + 1}): {self._why(step)}")
            self._losses.append(loss)

    def _why(self, step: int) -> str:
        """What makes the loss of a step infinite or NaN, and the way out."""
        for name, arrays in (("x", self.batch.data), ("y", self.batch.label or ())) if self.batch is not None else ():
            for array in arrays:
                if (odd := int(np.sum(~np.isfinite(array))) if array.dtype.kind in "fc" else 0) > 0:
                    return f"{name} holds {odd} numbers in this batch that are NaN or infinite: leave them out"
        if step == 0:
            return "nothing was learned yet: look at the model's values and at the scale of the data"
        return "lower the learning rate, or clip the gradients with clip_norm"

    # -------------------------------------------------------------- the loop
    def train(self) -> dict[str, list[float]]:
        """Train until num_epochs epochs are done (or a callback stops it); returns the history."""
        if not self.model.initialised:
            self.init()
        if self.ranks is not None:
            self.ranks.begin(self)
        if self.resume and self.checkpoint is not None and files.exists(self.checkpoint):
            self.restore_checkpoint()
        for callback in self.acting:
            callback.on_train_begin(self)
        while self.epoch < self.num_epochs and not self.stopped:
            self._epoch()
        for callback in self.acting:
            callback.on_train_end(self)
        if self.restore_best and self.best_params:
            self.model.set_tree(copied(self.best_params))
            self.model.set_aux_tree(copied(self.best_aux))
        return self.history

    def _epoch(self) -> None:
        start, bar = time.perf_counter(), self._bar()
        source = each_batch(self.train_dataiter)
        while True:
            with span("batch"):
                batch = next(source, None)
            if batch is None:
                break
            self._step(batch)
            if bar is not None:
                bar.update()
                bar.set_postfix(loss=f"{self.loss_history[-1]:.4f}", refresh=False)
            elif self.verbose and self.print_every and (self.step - 1) % self.print_every == 0:
                print(f"(Iteration {self.step}{self._of_total()}) loss: {self.loss_history[-1]:f}")
            with span("callbacks"):
                for callback in self.acting:
                    callback.on_batch_end(self)
            if self.checkpoint is not None and self.checkpoint_every and self.step % self.checkpoint_every == 0:
                self.save_checkpoint()
        if len(self.loss_history) == self.epoch_start:
            raise ValueError("the training iterator gave no batch: reset it, or give it more examples than a batch has")
        with span("measure"):
            self._measure()
        self.epoch += 1
        with span("callbacks"):
            for callback in self.acting:
                callback.on_epoch_end(self)
        if self.ranks is not None:
            self.stopped = self.ranks.any(self.stopped)
        self._report(bar, time.perf_counter() - start)
        self.epoch_start = len(self.loss_history)
        self.train_dataiter.reset()
        if self.checkpoint is not None:
            self.save_checkpoint()

    def _measure(self) -> None:
        """Add this epoch to the history, and keep the parameters if they are the best so far."""
        losses = self.loss_history[self.epoch_start :]
        measured = {"loss": math.fsum(losses) / len(losses)}
        if self.train_acc_num_samples and self.metrics:
            of_training = measure(self.model, self.train_dataiter, self.metrics, self.train_acc_num_samples, self.ranks)
            measured |= {name: value for name, value in of_training.items() if name != "loss"}
        if self.test_dataiter is not None:
            of_test = measure(self.model, self.test_dataiter, self.metrics, ranks=self.ranks)
            measured |= {f"val_{name}": value for name, value in of_test.items()}
        # A number for every epoch: what a training resumed with other measures did not measure is none.
        for name in {**self.history, **measured}:
            self.history.setdefault(name, [math.nan] * self.epoch).append(measured.get(name, math.nan))
        if self.restore_best:
            value = latest(self.history, self.monitor) * (1 if higher_is_better(self.monitor) else -1)
            if value > self.best_value:
                self.best_value = value
                self.best_params, self.best_aux = copied(self.model.tree()), copied(self.model.aux_tree())

    def check_accuracy(self, dataiter: Any, num_samples: int | None = None) -> float:
        """The fraction of (num_samples of) the iterator's examples that the model gets right."""
        return measure(self.model, dataiter, {"accuracy": measures.accuracy}, num_samples)["accuracy"]

    # -------------------------------------------------------------- what is seen
    def _bar(self) -> Any:
        if not (self.verbose and self.progress):
            return None
        from tqdm import tqdm

        done = len(self.loss_history) - self.epoch_start
        return tqdm(total=batches(self.train_dataiter), initial=done, desc=f"epoch {self.epoch + 1}/{self.num_epochs}")

    def _report(self, bar: Any, seconds: float) -> None:
        shown = {name: f"{self.history[name][-1]:.4f}" for name in self.measured}
        if bar is not None:
            bar.set_postfix(shown)
            bar.close()
        elif self.verbose:
            text = ", ".join(f"{name}: {value}" for name, value in shown.items())
            print(f"(Epoch {self.epoch} / {self.num_epochs}) {text}, time: {seconds:.2f} s")

    def _of_total(self) -> str:
        per_epoch = batches(self.train_dataiter)
        return "" if per_epoch is None else f" / {per_epoch * self.num_epochs}"

    # -------------------------------------------------------------- checkpoints
    def save_checkpoint(self) -> None:
        """Write everything the next step depends on to `self.checkpoint`."""
        with span("checkpoint"):
            save = files.save if self.ranks is None else self.ranks.save
            save(self.checkpoint, *resuming.snapshot(self))

    def restore_checkpoint(self) -> None:
        """Go to where the newest whole checkpoint was written."""
        resuming.restore(self, *files.load_latest(self.checkpoint))


def weighs_classes(model: Any) -> None:
    """TypeError unless the model's loss takes a weight for each class."""
    own = type(model).loss_batch is not ModelBase.loss_batch
    for function in (model.loss_batch,) if own else (model.loss, getattr(model, "loss_function", model.loss)):
        parameters = inspect.signature(function).parameters
        if "weight" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            name = getattr(function, "__qualname__", function)
            raise TypeError(
                f"class_weight is for losses that take `weight`, a number for each class, and {name} has no such "
                "argument; softmax_loss, softmax_cross_entropy, svm_loss and binary_cross_entropy have"
            )


def batches(dataiter: Any) -> int | None:
    """How many batches an epoch has, where the iterator knows."""
    return len(dataiter) if hasattr(dataiter, "__len__") else None


def can_show_bar() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    watched = sys.stderr.isatty() or hasattr(shell, "kernel")  # of a notebook; others may have imported IPython
    return watched and importlib.util.find_spec("tqdm") is not None


def copied(tree: dict) -> dict:
    """The tree with arrays of its own: training goes on writing to the others."""
    return {name: np.array(value) if hasattr(value, "shape") else value for name, value in tree.items()}
