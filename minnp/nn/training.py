"""fit, evaluate and predict on arrays or iterators, and measuring a model over an iterator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import minnp.numpy as np

from . import checks, metrics, optim
from .io import Batches, DataBatch, NDArrayIter, each_batch

HINTS = {  # of fit, for what is a setting of the model or has another name in Solver
    "loss": "it is the model's: Sequential(..., loss='l2_loss')",
    "update_rule": "do you mean 'optimizer'?",
    "num_epochs": "do you mean 'epochs'?",
    "train_dataiter": "the iterator is its first argument",
    "test_dataiter": "do you mean 'validation_data'?",
}


def fit(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    epochs: int = 10,
    batch_size: int = 32,
    validation_data: Any = None,
    validation_split: float = 0.0,
    optimizer: str | Callable = "adam",
    learning_rate: float | None = None,
    shuffle: bool = True,
    transform: Callable | None = None,
    seed: int | None = 0,
    optim_config: dict | None = None,
    train_acc_num_samples: int | None = None,
    print_every: int = 0,
    **options: Any,
) -> dict[str, list[float]]:
    """Train `model`; see ModelBase.fit."""
    from .solver import Solver

    checks.options("fit", options, (fit, Solver), HINTS)
    if validation_split:
        if y is None or validation_data is not None:
            raise ValueError("validation_split splits arrays x, y: not an iterator, and not with validation_data")
        cut = len(y) - round(len(y) * validation_split)
        if not 0 < cut < len(y):
            raise ValueError(f"validation_split={validation_split} leaves {cut} of {len(y)} examples for training")
        x, validation_data, y = x[:cut], (x[cut:], y[cut:]), y[:cut]
    if getattr(x, "shape", None) and len(x) == 0:
        raise ValueError(f"x has no examples: its shape is {tuple(x.shape)}")
    train = iterator(x, y, batch_size, shuffle=shuffle, seed=seed, transform=transform)
    config = dict(optim_config or {})
    if learning_rate is not None:
        config["learning_rate"] = learning_rate
    solver = Solver(
        model,
        train,
        None if validation_data is None else iterator(*unpacked(validation_data), max(batch_size, 128)),
        update_rule=checks.one_of("optimizer", optimizer, optim.RULES, "(w, dw, config) -> (w, config)"),
        optim_config=config,
        num_epochs=checks.count("epochs", epochs),
        train_acc_num_samples=train_acc_num_samples,
        print_every=print_every,
        seed=seed,
        **options,
    )
    return solver.train()


def signature() -> inspect.Signature:
    """What `fit` takes, with the options of Solver that are its own too, as a method."""
    from .solver import Solver

    own = [p for p in inspect.signature(fit).parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [p for name, p in inspect.signature(Solver).parameters.items() if name not in HINTS]
    known = {p.name for p in own}
    own[0] = own[0].replace(name="self")
    return inspect.Signature([*own, *(p for p in more if p.name not in known)])


def evaluate(model: Any, x: Any, y: Any, batch_size: int, chosen: Sequence | None) -> dict[str, float]:
    """Measure `model`; see ModelBase.evaluate."""
    return measure(model, iterator(x, y, batch_size), metrics.named(model.metrics if chosen is None else chosen))


def predict(model: Any, x: Any, batch_size: int) -> Any:
    """The outputs of `model`; see ModelBase.predict."""
    outputs = []
    source = iterator(x, None, batch_size)
    source.reset()
    for batch in examples(source):
        y = model.forward_batch(batch, "test")
        outputs.append(trimmed(y, batch.data[0].shape[0] - batch.pad))
    return np.concatenate(outputs)


def iterator(x: Any, y: Any, batch_size: int, **options: Any) -> Any:
    """x itself when it is an iterator of batches, else one over its batches, or over the arrays x, y."""
    if y is None and hasattr(x, "reset"):
        return x
    of_arrays = hasattr(x, "shape") or (isinstance(x, list | tuple | dict) and not are_batches(x))
    if y is None and hasattr(x, "__iter__") and not of_arrays:
        return Batches(x)
    return NDArrayIter(x, y, batch_size, last_batch_handle="keep", **options)


def are_batches(x: Any) -> bool:
    """Whether it is a list or tuple of batches, tuples (x, y) of arrays or DataBatch; lists of arrays are inputs."""
    is_pair = lambda item: isinstance(item, tuple) and len(item) == 2 and all(hasattr(a, "shape") for a in item)
    is_batch = lambda item: hasattr(item, "label") or is_pair(item)
    return isinstance(x, list | tuple) and len(x) > 0 and all(map(is_batch, x))


def unpacked(data: Any) -> tuple[Any, Any]:
    pair = isinstance(data, list | tuple) and len(data) == 2 and not are_batches(data)
    return tuple(data) if pair else (data, None)


def measure(
    model: Any, dataiter: Any, chosen: dict[str, Callable], num_samples: int | None = None, ranks: Any = None
) -> dict[str, float]:
    """{"loss": ..., name: ...}: means over the iterator's examples (num_samples of them at most) in "test" mode.

    Of ranks, each measures on its share of every batch.
    """
    if num_samples is not None and hasattr(dataiter, "getsubiter"):
        dataiter = dataiter.getsubiter(min(num_samples, dataiter.num_data))
    elif hasattr(dataiter, "reset"):
        dataiter.reset()
    totals, seen = dict.fromkeys(("loss", *chosen), 0.0), 0
    for batch in examples(dataiter):
        whole = batch.data[0].shape[0] - batch.pad
        if ranks is not None and batch.pad:
            batch = DataBatch(trimmed(batch.data, whole), trimmed(batch.label, whole))
        part, count = (batch, whole) if ranks is None else ranks.share(batch)
        seen += whole
        if count:
            add(totals, model, part, count, chosen)
        if num_samples is not None and seen >= num_samples:
            break
    if ranks is not None:
        totals = ranks.total(totals)
    return {name: total / seen for name, total in totals.items()}


def add(totals: dict[str, float], model: Any, batch: DataBatch, count: int, chosen: dict[str, Callable]) -> None:
    """Add what is measured on the first `count` examples of a batch to the totals."""
    predict = model.forward_batch(batch, "test")
    if batch.pad:
        predict, batch = trimmed(predict, count), DataBatch(trimmed(batch.data, count), trimmed(batch.label, count))
    totals["loss"] += count * float(model.loss_batch(batch, predict))
    for name, metric in chosen.items():
        try:
            totals[name] += count * float(metric(predict, batch.label[0]))
        except checks.MISTAKES as error:
            given = checks.of_arrays({"outputs": predict, "labels": batch.label[0]})
            error.add_note(f"in the metric {name!r} of {given}")
            raise


def examples(dataiter: Any) -> Iterator[DataBatch]:
    """The batches of an iterator, of which there is at least one."""
    empty = True
    for batch in each_batch(dataiter):
        empty = False
        yield batch
    if empty:
        raise ValueError("there are no examples: the data is empty, or its iterator at the end")


def trimmed(values: Any, count: int) -> Any:
    """The first `count` examples of an array, or of each in a list, tuple or dict of them."""
    if isinstance(values, list | tuple):
        return type(values)(trimmed(v, count) for v in values)
    if isinstance(values, dict):
        return {key: trimmed(v, count) for key, v in values.items()}
    return values[:count]
