"""Callbacks: what a training does besides training. Subclass Callback and override what you need.

    class Print(Callback):
        def on_epoch_end(self, solver):
            print(solver.epoch, solver.history["loss"][-1])

A callback with something to remember across a resume gives it as JSON facts in `state()` and takes it in `restore()`.
"""

from __future__ import annotations

import math
import os
import time
from importlib.util import find_spec
from typing import Any

import minnp
import minnp.numpy as np

from .checks import Text, count, flag, named, takes
from .model import ModelBase

__all__ = ["Callback", "Curves", "EarlyStopping", "TensorBoard", "curves"]


class Callback:
    """Every method does nothing. Set `solver.stopped = True` to end the training after this epoch.

    On a mesh every rank calls its callbacks, but those that write files (`writes`) are rank 0's alone.

    >>> class Count(nn.callbacks.Callback):
    ...     epochs = 0
    ...     def on_epoch_end(self, solver):
    ...         self.epochs += 1
    """

    writes = False

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
    """Stops when `monitor` has not improved by more than `min_delta` for `patience` epochs.

    Raises TypeError for a patience that is no whole number.

    >>> x, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    >>> stop = nn.callbacks.EarlyStopping(patience=1, monitor="loss", min_delta=10.0)
    >>> net = nn.Sequential(nn.Linear(2, 2))
    >>> len(net.fit(x, y, epochs=9, verbose=False, callbacks=[stop])["loss"]) < 9
    True
    """

    @named()
    def __init__(self, patience: int = 5, monitor: str = "val_loss", min_delta: float = 0.0) -> None:
        if isinstance(patience, bool):
            raise TypeError(f"patience (early_stopping) is a number of epochs, got {patience}")
        self.patience, self.monitor, self.min_delta = count("patience (early_stopping)", patience), monitor, min_delta
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
    """Logs for TensorBoard in `folder`: the loss at every step, everything in the history at every epoch.

    histograms  every so many epochs, the distribution of each parameter, and of its gradient in the last step (0: none)
    graph       also the model's graph, a node for each layer, from the first batch; for a model that cannot be traced
                by itself, a node for each row that it runs

    Written by tensorboard's own writer (pip install tensorboard, or minnp[tensorboard]); view with
    `tensorboard --logdir folder`.

        net.fit(x, y, epochs=10, callbacks=[nn.callbacks.TensorBoard("runs/first")])
    """

    writes = True

    @named()
    def __init__(self, folder: str | os.PathLike, histograms: int = 0, graph: bool = False) -> None:
        self.folder, self.writer = os.fspath(folder), None
        self.histograms, self.graph = count("histograms", histograms), flag("graph", graph)

    @property
    def reads_gradients(self) -> bool:
        """Whether Solver keeps the gradients of its last step."""
        return self.histograms > 0

    def on_train_begin(self, solver: Any) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.plugins.histogram.summary_v2 import histogram_pb
            from tensorboard.plugins.scalar.summary_v2 import scalar_pb
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ImportError("TensorBoard logs need its writer: pip install tensorboard") from error
        self.writer = EventFileWriter(self.folder)
        self.event, self.kinds = Event, {"scalar": scalar_pb, "histogram": histogram_pb}
        self.drawn = not self.graph

    def add(self, kind: str, tag: str, value: Any, step: int) -> None:
        """Write one number, or the distribution of an array's numbers."""
        summary = self.kinds[kind](tag, value)
        self.writer.add_event(self.event(wall_time=time.time(), step=step, summary=summary))

    def on_batch_end(self, solver: Any) -> None:
        self.add("scalar", "step/loss", solver.loss_history[-1], solver.step)
        if not self.drawn:
            self.drawn = True
            graph = graph_def(solver.model, solver.batch)
            self.writer.add_event(self.event(wall_time=time.time(), graph_def=graph.SerializeToString()))

    def on_epoch_end(self, solver: Any) -> None:
        for name in solver.measured:
            self.add("scalar", f"epoch/{name}", solver.history[name][-1], solver.epoch)
        if self.histograms and solver.epoch % self.histograms == 0:
            for kind, tree in (("parameters", solver.model.tree()), ("gradients", solver.gradients)):
                for name, value in tree.items():
                    self.add("histogram", f"{kind}/{name}", np.asarray(value).asnumpy(), solver.epoch)
        self.writer.flush()

    def on_train_end(self, solver: Any) -> None:
        self.writer.close()


def graph_def(model: Any, batch: Any) -> Any:
    """The graph of `model` as TensorBoard draws it: a GraphDef, names cut into scopes at the dots of layers' names."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    traced = traced_model(model, batch)
    layers, drawn = dict(model.named_modules()), {}
    graph = GraphDef(versions=VersionDef(producer=22))
    for node in traced.graph.nodes:
        is_layer = node.op == "call_module"
        name = f"{node.target}/{type(layers[node.target]).__name__}".replace(".", "/") if is_layer else node.name
        while name in drawn.values():
            name += "_again"  # a layer that is called twice
        drawn[node] = name
        said = type(layers[node.target]).__name__ if is_layer else getattr(node.target, "name", node.target)
        said = getattr(said, "__name__", said) if node.op.startswith("call") else node.op
        entry = NodeDef(name=name, op=str(said), input=[drawn[n] for n in node.all_input_nodes])
        shape = getattr(node.meta.get("value"), "shape", None)
        if shape is not None:
            sizes = entry.attr["_output_shapes"].list.shape.add()
            for size in shape:
                sizes.dim.add(size=size)
        graph.node.append(entry)
    return graph


def traced_model(model: Any, batch: Any) -> Any:
    """A GraphModule of what the model does in testing: of its layers, or of rows where Python looks at the data."""
    whole = type(model).forward_batch is ModelBase.forward_batch and len(batch.data) == 1
    takes_mode = "mode" in takes(model.forward)
    try:
        if whole:
            traced = minnp.fx.symbolic_trace(model, {"mode": "test"} if takes_mode else None)
            return minnp.fx.propagate_shapes(traced, batch.data[0])
    except minnp.errors.CaptureError:
        pass
    return minnp.fx.capture(lambda *data: model.forward_batch(type(batch)(list(data), []), "test"), *batch.data)


class Curves(Callback):
    """A picture of the history in `path` (.png, .svg, .pdf), drawn anew after every epoch. Needs matplotlib.

    >>> net.fit(x, y, epochs=10, callbacks=[nn.callbacks.Curves("curves.svg")])  # doctest: +SKIP
    """

    writes = True

    @named()
    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path

    def on_train_begin(self, solver: Any) -> None:
        """What is missing is said before the training, not after its first epoch."""
        if find_spec("matplotlib") is None:
            raise ImportError("curves are drawn by matplotlib: pip install matplotlib")
        if not os.path.isdir(folder := os.path.dirname(os.fspath(self.path)) or "."):
            raise FileNotFoundError(f"there is no folder {folder!r} for the curves")

    def on_epoch_end(self, solver: Any) -> None:
        curves(solver.history, self.path)


@named()
def curves(history: dict[str, list[float]], path: str | os.PathLike | None = None) -> Any:
    """A matplotlib figure of a history, one panel per quantity, training and validation together; saved to `path`.

    >>> nn.callbacks.curves(net.fit(x, y, epochs=10), "curves.svg")  # doctest: +SKIP
    """
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
        said = f"nothing called {name!r} is measured; this training measures {', '.join(history)}"
        raise KeyError(Text(said))
    return history[name][-1]
