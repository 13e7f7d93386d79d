"""Callbacks: what a training does besides training. Subclass Callback and override what you need.

    class Print(Callback):
        def on_epoch_end(self, solver):
            print(solver.epoch, solver.history["loss"][-1])

A callback with something to remember across a resume gives it as JSON facts in `state()` and takes it in `restore()`.
"""

from __future__ import annotations

import math
import os
from typing import Any

from .checks import named

__all__ = ["Callback", "Curves", "EarlyStopping", "TensorBoard", "curves"]


class Callback:
    """Every method does nothing. Set `solver.stopped = True` to end the training after this epoch."""

    def on_train_begin(self, solver: Any) -> None: ...

    def on_batch_end(self, solver: Any) -> None: ...

    def on_epoch_end(self, solver: Any) -> None: ...

    def on_train_end(self, solver: Any) -> None: ...

    def state(self) -> Any:
        return None

    def restore(self, state: Any) -> None: ...


def higher_is_better(monitor: str) -> bool:
    """Losses and errors go down, everything else goes up."""
    return not monitor.removeprefix("val_").startswith(("loss", "mse", "mae"))


class EarlyStopping(Callback):
    """Stops when `monitor` has not improved by more than `min_delta` for `patience` epochs."""

    @named()
    def __init__(self, patience: int = 5, monitor: str = "val_loss", min_delta: float = 0.0) -> None:
        self.patience, self.monitor, self.min_delta = patience, monitor, min_delta
        self.best, self.waited = -math.inf, 0

    def on_epoch_end(self, solver: Any) -> None:
        value = latest(solver.history, self.monitor)
        value = value if higher_is_better(self.monitor) else -value
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            solver.stopped = True

    def state(self) -> Any:
        return [self.best, self.waited]

    def restore(self, state: Any) -> None:
        self.best, self.waited = state


class TensorBoard(Callback):
    """Scalars for TensorBoard in `folder`: the loss at every step, everything in the history at every epoch.

    Written by tensorboard's own Writer (pip install tensorboard); view with
    `tensorboard --logdir folder`.
    """

    @named()
    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder, self.writer = os.fspath(folder), None

    def on_train_begin(self, solver: Any) -> None:
        try:
            from tensorboard.summary import Writer
        except ImportError as error:
            raise ImportError("TensorBoard logs need its writer: pip install tensorboard") from error
        self.writer = Writer(self.folder)

    def on_batch_end(self, solver: Any) -> None:
        self.writer.add_scalar("step/loss", solver.loss_history[-1], solver.step)

    def on_epoch_end(self, solver: Any) -> None:
        for name in solver.measured:
            self.writer.add_scalar(f"epoch/{name}", solver.history[name][-1], solver.epoch)
        self.writer.flush()

    def on_train_end(self, solver: Any) -> None:
        self.writer.close()


class Curves(Callback):
    """A picture of the history in `path` (.png, .svg, .pdf), drawn anew after every epoch. Needs matplotlib."""

    @named()
    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path

    def on_epoch_end(self, solver: Any) -> None:
        curves(solver.history, self.path)


@named()
def curves(history: dict[str, list[float]], path: str | os.PathLike | None = None) -> Any:
    """A matplotlib figure of a history, one panel per quantity, training and validation together; saved to `path`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(name.removeprefix("val_") for name in history))
    figure = Figure(figsize=(4.5 * len(panels), 3.2), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a screen, and without pyplot's global state
    for axes, name in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for key, label in ((name, "training"), (f"val_{name}", "validation")):
            if key in history:
                axes.plot(range(1, len(history[key]) + 1), history[key], marker=".", label=label)
        axes.set(xlabel="epoch", title=name)
        axes.grid(alpha=0.3)
        axes.legend()
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def latest(history: dict[str, list[float]], name: str) -> float:
    if name not in history:
        raise KeyError(f"nothing called {name!r} is measured; this training measures {', '.join(history)}")
    return history[name][-1]
