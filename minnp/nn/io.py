"""Iterators over batches: NDArrayIter (MinPy's and MXNet's), Prefetch, and the DataBatch they give.

    for batch in NDArrayIter(x, y, batch_size=128, shuffle=True):
        batch.data[0], batch.label[0], batch.pad

An iterator can tell where it is, `state()`, and go back there, `restore(state)`: a resumed training sees the batches it
would have seen. Its randomness is its own, from `seed`, so a background thread does not change the order of anything.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import minnp.numpy as np

from . import checkpoint, checks
from .augment import Compose, Crop, Cutout, Flip, Normalise, Rotate, Scale
from .datasets import Dataset, cifar10, digits, fashion_mnist, mnist

__all__ = [
    "Batches",
    "Compose",
    "Crop",
    "Cutout",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "Dataset",
    "Flip",
    "NDArrayIter",
    "Normalise",
    "Prefetch",
    "Rotate",
    "Scale",
    "cifar10",
    "digits",
    "fashion_mnist",
    "load_data_labels",
    "mnist",
    "save_data_labels",
]

# MXNet's iterators, by the names that MinPy gave them too: its own where mxnet is installed, else those of readers.py.
FROM_MXNET = (
    "CSVIter",
    "ImageDetRecordIter",
    "ImageRecordIter",
    "ImageRecordUInt8Iter",
    "LibSVMIter",
    "MNISTIter",
    "PrefetchingIter",
    "ResizeIter",
)
LAST_BATCH = ("pad", "discard", "roll_over", "keep")


def __getattr__(name: str) -> Any:
    """mxnet.io's iterators, imported on first use; where mxnet is not installed, readers.py has all but two of them."""
    if name not in FROM_MXNET:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("mxnet") is not None:
        return getattr(importlib.import_module("mxnet.io"), name)
    readers = importlib.import_module(".readers", __package__)
    if not hasattr(readers, name):
        raise ImportError(f"minnp.nn.io.{name} is MXNet's iterator, and mxnet is missing: pip install mxnet==1.9.1")
    return getattr(readers, name)


class DataBatch:
    """One minibatch: data and label are lists of arrays; the last `pad` examples are repeats that should not count.

    index   which examples these are, or None

    >>> batch = nn.io.DataBatch([np.ones((4, 2))], [np.zeros(4)], pad=1)
    >>> batch.data[0].shape, batch.pad
    ((4, 2), 1)
    """

    @checks.named()
    def __init__(self, data: list, label: list, pad: int = 0, index: Any = None) -> None:
        self.data, self.label, self.pad, self.index = data, label, pad, index


class DataDesc(collections.namedtuple("DataDesc", ["name", "shape"])):
    """What an array of each batch is: a pair of its name and shape, with its `dtype` and `layout`, as in MXNet.

    >>> facts = nn.io.NDArrayIter(np.ones((4, 2)), batch_size=2).provide_data[0]
    >>> facts.name, facts.shape, facts.dtype.name
    ('data', (2, 2), 'float64')
    """

    dtype: Any
    layout: str

    def __new__(cls, name: str, shape: tuple, dtype: Any = "float32", layout: str = "NCHW") -> DataDesc:
        made = super().__new__(cls, name, tuple(shape))
        made.dtype, made.layout = np.dtype(dtype), layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    def __getnewargs__(self) -> tuple:
        return self.name, self.shape, self.dtype, self.layout


class DataIter:
    """Base of iterators: define `next`, raising StopIteration at the end of the epoch, and `reset`.

    A class may define MXNet's `iter_next`, `getdata`, `getlabel` and `getpad` in the place of `next`; all have them.

    >>> class One(nn.io.DataIter):
    ...     left = 1
    ...     def next(self):
    ...         if self.left == 0:
    ...             raise StopIteration
    ...         self.left -= 1
    ...         return nn.io.DataBatch([np.ones((4, 2))], [np.zeros(4)])
    ...     def reset(self):
    ...         self.left = 1
    >>> len(list(One()))
    1
    """

    batch_size = 0
    _batch = DataBatch([], [])

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        if type(self).iter_next is DataIter.iter_next:
            raise NotImplementedError(f"{type(self).__name__} must define next()")
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Whether there is another batch, which the others below are then about."""
        try:
            self._batch = self.next()
        except StopIteration:
            return False
        return True

    def getdata(self) -> list:
        """The data arrays of the batch."""
        return self._batch.data

    def getlabel(self) -> list:
        """The label arrays of the batch."""
        return self._batch.label

    def getpad(self) -> int:
        """How many examples at the end of the batch are repeats."""
        return self._batch.pad

    def getindex(self) -> Any:
        """Which examples the batch has, or None."""
        return self._batch.index

    def reset(self) -> None:
        """Back to the first batch of the next epoch."""


class Batches(DataIter):
    """The batches that `source` gives anew at every iteration, (x, y) pairs or DataBatch: torch's DataLoader, say.

    Raises TypeError for an iterator that is over after one epoch.

    >>> batches = nn.io.Batches([(np.ones((4, 2)), np.zeros(4))])
    >>> [batch.data[0].shape for batch in batches]
    [(4, 2)]
    """

    @checks.named()
    def __init__(self, source: Any) -> None:
        if iter(source) is source:
            raise TypeError(
                f"{source!r:.60} is over after one epoch: give an NDArrayIter, or what can be iterated again"
            )
        self.source = source
        self.reset()

    def reset(self) -> None:
        self.rest = each_batch(self.source)

    def next(self) -> DataBatch:
        return next(self.rest)


class NDArrayIter(DataIter):
    """Batches of arrays held in memory.

    data, label: an array, a list of arrays, or a dict of them, all of N examples
    shuffle: a new order at every epoch, from `seed`
    last_batch_handle, for N that batch_size does not divide: "pad" repeats examples from the start, "discard" leaves
        the last ones out, "roll_over" begins the next epoch with them, "keep" gives a short batch
    transform: (list of data arrays, rng) -> list, or (array, rng) -> array for one data array: see minnp.nn.augment

    Raises ValueError for arrays of different numbers of examples, and a batch_size that is not in 1 .. N.
    """

    @checks.named()
    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        seed: int | None = None,
        transform: Callable | None = None,
    ) -> None:
        if last_batch_handle not in LAST_BATCH:
            raise ValueError(f"last_batch_handle must be one of {', '.join(LAST_BATCH)}; got {last_batch_handle!r}")
        self.data, self.label = named(data, "data"), named(label, "softmax_label")
        if not self.data or any(array.ndim == 0 for _, array in self.data + self.label):
            raise ValueError(
                f"an iterator needs arrays of examples [N, ...]; got data={data!r:.60}, label={label!r:.60}"
            )
        batch_size = checks.count("batch_size", batch_size)
        self.num_data = self.data[0][1].shape[0]
        for name, array in self.data + self.label:
            if array.shape[0] != self.num_data:
                raise ValueError(
                    f"all arrays of an iterator have the same number of examples; {self.data[0][0]!r} has "
                    f"{self.num_data} and {name!r} has {array.shape[0]}"
                )
        if not 1 <= batch_size <= self.num_data and not (last_batch_handle == "keep" and batch_size >= 1):
            raise ValueError(f"batch_size must be between 1 and the {self.num_data} examples; got {batch_size}")
        self.batch_size, self.shuffle, self.last_batch_handle = batch_size, shuffle, last_batch_handle
        self.transform = transform
        self.rng = np.random.default_rng(seed if seed is not None else int(np.random.randint(2**31)))
        self.left: list[int] = []  # the examples that "roll_over" begins the epoch with
        self._begin()

    def _begin(self) -> None:
        self.epoch_rng = self.rng.bit_generator.state
        order = self.rng.permutation(self.num_data) if self.shuffle else np.arange(self.num_data)
        self.order = np.concatenate([np.array(self.left, order.dtype), order]) if self.left else order
        self.cursor = 0

    # -------------------------------------------------------------- MXNet's interface
    @property
    def provide_data(self) -> list[DataDesc]:
        """The name and the shape of a batch of each data array."""
        return [DataDesc(name, (self.batch_size, *a.shape[1:]), a.dtype) for name, a in self.data]

    @property
    def provide_label(self) -> list[DataDesc]:
        """The name and the shape of a batch of each label array."""
        return [DataDesc(name, (self.batch_size, *a.shape[1:]), a.dtype) for name, a in self.label]

    def getnumiterations(self) -> int:
        """How many batches an epoch has."""
        whole = self.last_batch_handle in ("discard", "roll_over")
        return len(self.order) // self.batch_size if whole else -(-len(self.order) // self.batch_size)

    def __len__(self) -> int:
        return self.getnumiterations()

    def reset(self) -> None:
        ended = self.last_batch_handle == "roll_over" and self.cursor + self.batch_size > len(self.order)
        self.left = self.order[self.cursor :].tolist() if ended else []
        self._begin()

    def hard_reset(self) -> None:
        """reset, forgetting what was rolled over."""
        self.left = []
        self._begin()

    def next(self) -> DataBatch:
        start, stop = self.cursor, self.cursor + self.batch_size
        whole = self.last_batch_handle in ("discard", "roll_over")
        if start >= len(self.order) or (whole and stop > len(self.order)):
            raise StopIteration
        index = self.order[start:stop]
        missing = self.batch_size - index.shape[0]
        if missing and self.last_batch_handle == "pad":
            index = np.concatenate([index, self.order[:missing]])
        self.cursor = stop
        data, label = [array[index] for _, array in self.data], [array[index] for _, array in self.label]
        if self.transform is not None:
            data = [self.transform(data[0], self.rng)] if len(data) == 1 else self.transform(data, self.rng)
            if data is None or data[0] is None:
                raise TypeError(f"the transform {self.transform!r} returned None; does it end with a return?")
        pad = missing if self.last_batch_handle == "pad" else 0
        return DataBatch(data, label, pad, index)

    def getsubiter(self, num_samples: int) -> NDArrayIter:
        """An iterator over num_samples examples picked at random, without the transform."""
        # A generator of its own: looking at the accuracy must not change what training draws next.
        chosen = np.random.default_rng(self.num_data).permutation(self.num_data)[:num_samples]
        data, label = {k: v[chosen] for k, v in self.data}, {k: v[chosen] for k, v in self.label}
        return NDArrayIter(data, label or None, min(self.batch_size, num_samples), seed=0)

    # -------------------------------------------------------------- resuming
    def state(self) -> dict:
        """Where the iterator is, as JSON facts."""
        now = self.rng.bit_generator.state
        return {"epoch_rng": self.epoch_rng, "rng": now, "cursor": int(self.cursor), "left": self.left}

    def restore(self, state: dict) -> None:
        """Go to where `state` was taken."""
        self.rng.bit_generator.state = state["epoch_rng"]
        self.left = list(state["left"])
        self._begin()
        self.rng.bit_generator.state = state["rng"]
        self.cursor = state["cursor"]


class Prefetch(DataIter):
    """The batches of `source`, prepared up to `depth` ahead by a background thread.

    What the source raises is raised here, at the batch where it happened. `close()` stops the thread; so does the end
    of a with block.

    Raises ValueError for a depth below 1.

    >>> with nn.io.Prefetch(nn.io.NDArrayIter(np.ones((4, 2)), np.zeros(4), batch_size=2)) as batches:
    ...     print(len(list(batches)))
    2
    """

    @checks.named()
    def __init__(self, source: DataIter, depth: int = 2) -> None:
        if depth < 1:
            raise ValueError(f"Prefetch keeps at least one batch ready; got depth={depth}")
        self.source, self.depth = source, depth
        self.batch_size = source.batch_size
        self._state = source.state() if hasattr(source, "state") else None
        self._start()

    def __getattr__(self, name: str) -> Any:
        # num_data, getsubiter, provide_data, ...: read-only facts of the source
        if name.startswith("_") or name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    def __len__(self) -> int:
        return len(self.source)

    def _start(self) -> None:
        self._ended: Exception | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="minnp-prefetch")
        self._ready = collections.deque(self._pool.submit(advance, self.source) for _ in range(self.depth))

    def next(self) -> DataBatch:
        if self._ended is not None:
            raise self._ended
        try:
            batch, self._state = self._ready.popleft().result()
        except Exception as error:
            self._ended = error
            raise
        self._ready.append(self._pool.submit(advance, self.source))
        return batch

    def reset(self) -> None:
        ended = isinstance(self._ended, StopIteration)
        self.close()
        if not ended and self._state is not None:
            # The thread had run ahead: the source goes back to where the consumer is before it begins the next epoch.
            self.source.restore(self._state)
        self.source.reset()
        self._state = self.source.state() if hasattr(self.source, "state") else None
        self._start()

    def state(self) -> dict:
        if self._state is None:
            raise TypeError(f"{type(self.source).__name__} has no state(): a training over it cannot be resumed")
        return self._state

    def restore(self, state: dict) -> None:
        self.close()
        self.source.restore(state)
        self._state = state
        self._start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def advance(source: DataIter) -> tuple[DataBatch, dict | None]:
    """The next batch and where the source is after it, in the background thread of Prefetch."""
    batch = source.next()
    return batch, source.state() if hasattr(source, "state") else None


def named(arrays: Any, default: str) -> list[tuple[str, Any]]:
    """[(name, array)] from None, an array, a list of arrays, or a dict of them."""
    if arrays is None:
        return []
    if isinstance(arrays, dict):
        pairs = list(arrays.items())
    elif isinstance(arrays, list | tuple) and len(arrays) and getattr(arrays[0], "shape", ()):
        pairs = [(default if len(arrays) == 1 else f"_{i}_{default}", a) for i, a in enumerate(arrays)]
    else:
        pairs = [(default, arrays)]
    return [(name, np.asarray(array)) for name, array in pairs]


def each_batch(source: Any) -> Iterator[DataBatch]:
    """The batches of an iterator of ours, of MXNet's, or of anything that yields (x, y) pairs, as DataBatch."""
    for item in source:
        if hasattr(item, "data") and hasattr(item, "label"):
            data, label = [np.asarray(a) for a in item.data], [np.asarray(a) for a in item.label or []]
            yield DataBatch(data, label, item.pad or 0, item.index)
        else:
            x, y = item
            yield DataBatch([np.asarray(x)], [np.asarray(y)])


@checks.named()
def save_data_labels(x: Any, y: Any, file_name: str | os.PathLike) -> None:
    """Write examples x and labels y to the file file_name, for load_data_labels.

    >>> nn.io.save_data_labels(np.ones((4, 2)), np.zeros(4), "data.ckpt")
    >>> x, y = nn.io.load_data_labels("data.ckpt")
    >>> x.shape, y.shape
    ((4, 2), (4,))
    """
    checkpoint.save(file_name, {"data": x, "labels": y}, keep_previous=False)


@checks.named()
def load_data_labels(file_name: str | os.PathLike) -> tuple[Any, Any]:
    """(x, y) that save_data_labels wrote to the file file_name.

    >>> nn.io.save_data_labels(np.ones((4, 2)), np.zeros(4), "data.ckpt")
    >>> x, y = nn.io.load_data_labels("data.ckpt")
    >>> x.shape, y.shape
    ((4, 2), (4,))
    """
    arrays, _ = checkpoint.load(file_name)
    missing = [name for name in ("data", "labels") if name not in arrays]
    if missing:
        raise checkpoint.CheckpointError(f"{file_name} holds {', '.join(arrays) or 'no arrays'}, not {missing[0]}")
    return arrays["data"], arrays["labels"]
