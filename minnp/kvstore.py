"""Key-value stores with MXNet's interface: where the devices of a process, and the workers of a job, add up gradients.

    kv = minnp.kvstore.create("dist_sync")
    kv.init("w", w)
    kv.set_optimizer("sgd", learning_rate=0.1)
    kv.push("w", gradient)          # every worker; the sum moves the stored w
    kv.pull("w", out=w)

`local` adds up what several devices of one process push. `dist_sync` and `dist_device_sync` add up over the processes
that torchrun started as well (minnp.distributed); each keeps a copy of the values, and all copies move alike. Under
`python -m minnp.launch -n 2 -s 1 program.py`, which needs mxnet, `dist_*` is MXNet's own parameter server.

Source of the interface: Apache MXNet 1.9, mxnet.kvstore.KVStore.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import minnp.numpy as np

from . import distributed
from .nn import checkpoint, optim

__all__ = ["KVStore", "create"]

LOCAL = ("local", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device", "device")
DIST = ("dist_sync", "dist_device_sync", "dist_sync_device", "dist")


def create(name: str = "local", mesh: Any = None) -> KVStore:
    """The store of this name, as mx.kv.create.

    name   "local" or "device", in all of MXNet's spellings; "dist_sync", "dist_device_sync" (or "dist_sync_device") for
           all processes of the job; "dist_async" and "dist_device_async" on MXNet's parameter server alone
    mesh   the processes, of minnp.distributed.init(); by default those that torchrun's variables describe

    Raises TypeError for a name that is no string, ValueError for an unknown one, and for MXNet's parameter server where
    none was started, ImportError where it needs mxnet.

    >>> store = minnp.kvstore.create("local")
    >>> store.init("w", np.ones(2))
    >>> out = np.zeros(2)
    >>> store.pull("w", out=out)
    >>> out
    array([1., 1.])
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a key-value store is a string, got {name!r}")
    server = "DMLC_PS_ROOT_URI" in os.environ and mesh is None
    if name.startswith("dist") and server:
        if importlib.util.find_spec("mxnet") is None:
            raise ImportError("MXNet's parameter server needs mxnet: pip install mxnet==1.9.1, with numpy<2")
        return ServerStore(name)
    if name in ("dist_async", "dist_device_async", "dist_async_device"):
        raise ValueError(
            f"kvstore {name!r} is MXNet's parameter server: start the program with "
            "`python -m minnp.launch -n WORKERS -s SERVERS program.py`, or use 'dist_sync'"
        )
    if name not in (*LOCAL, *DIST):
        raise ValueError(f"unknown kvstore {name!r}; known: {', '.join((*LOCAL, *DIST, 'dist_async'))}")
    if name in LOCAL:
        return KVStore(name, None)
    return KVStore(name, distributed.init() if mesh is None else mesh)


class KVStore:
    """Values by key, which pushes change and pulls read. A key is a string or an integer, or a list of some.

    mesh          the processes that share the values, or None for this one alone
    type          its name
    rank, num_workers    this process, and how many there are

    >>> kv = minnp.kvstore.create("local")
    >>> kv.init("w", np.zeros(2))
    >>> kv.push("w", [np.ones(2), np.ones(2)])
    >>> out = np.zeros(2)
    >>> kv.pull("w", out=out)
    >>> out
    array([2., 2.])
    """

    def __init__(self, name: str, mesh: Any) -> None:
        self.type, self.mesh = name, mesh
        self._values: dict[Any, Any] = {}
        self._rule: Callable | None = None
        self._by_mxnet = False
        self._settings: dict[str, Any] = {}
        self._states: dict[Any, dict] = {}
        self._updater: Callable | None = None

    @property
    def rank(self) -> int:
        return 0 if self.mesh is None else self.mesh.rank

    @property
    def num_workers(self) -> int:
        return 1 if self.mesh is None else self.mesh.size

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store updates values itself: "optimizer"."""
        if capability.lower() != "optimizer":
            raise ValueError(f"unknown capability {capability!r}; known: 'optimizer'")
        return True

    # -------------------------------------------------------------- values
    def init(self, key: Any, value: Any) -> None:
        """Store a value, once, before it is pushed or pulled; of several workers, rank 0's."""
        for k, v in pairs("init", key, value):
            if k in self._values:
                raise ValueError(f"kvstore: {k!r} is initialised already")
            first = np.array(v[0] if isinstance(v, (list, tuple)) else v)
            self._values[k] = first if self.mesh is None else self.mesh.broadcast(first)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Add up what the devices (a list of arrays) and the workers give, and move the stored value by it: by the
        optimiser where one is set, else the sum takes its place. `priority` is MXNet's; keys are done in turn."""
        for k, v in pairs("push", key, value):
            stored = self._stored("push", k)
            total = summed(v)
            if total.shape != stored.shape:
                raise ValueError(f"kvstore.push: {k!r} holds {list(stored.shape)}, and is given {list(total.shape)}")
            if self.mesh is not None:
                total = self.mesh.all_reduce(total)
            self._move(k, stored, total.astype(stored.dtype))

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Write the stored value into `out`, or into each array of a list."""
        if out is None:
            raise ValueError("kvstore.pull writes into out=, an array or a list of arrays")
        for k, o in pairs("pull", key, out):
            value = self._stored("pull", k)
            for array in o if isinstance(o, (list, tuple)) else [o]:
                array[...] = value

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """push, then pull into `out`, or into what was pushed."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """init, then pull: rank 0's value on every device of every worker."""
        self.init(key, value)
        self.pull(key, out, priority)

    def _stored(self, name: str, key: Any) -> Any:
        if key not in self._values:
            raise KeyError(f"kvstore.{name}: {key!r} was not initialised; call init({key!r}, value) first")
        return self._values[key]

    def _move(self, key: Any, stored: Any, total: Any) -> None:
        if self._updater is not None:
            self._updater(key, total, stored)
        elif self._rule is None:
            stored[...] = total
        else:
            if key not in self._states:
                self._states[key] = dict(self._settings) | ({"index": key} if self._by_mxnet else {})
            config = self._states[key]
            moved, self._states[key] = self._rule(stored, total, config)
            if moved is not stored:
                stored[...] = moved

    # -------------------------------------------------------------- optimiser
    def set_optimizer(self, optimizer: Any, **settings: Any) -> None:
        """Move values by an optimiser from now on: the name of one in minnp.nn.optim with its settings, a rule
        (w, dw, config) -> (w, config), or an optimizer of MXNet's."""
        if hasattr(optimizer, "create_state") and hasattr(optimizer, "update"):
            if settings:
                raise TypeError(f"settings of {type(optimizer).__name__} are its own arguments, got {sorted(settings)}")
            self._rule, self._settings, self._by_mxnet = mxnet_rule(optimizer), {}, True
        else:
            self._rule = optim.rule_named(optimizer)
            optim.with_defaults(optimizer, settings)
            self._settings, self._by_mxnet = settings, False
        self._states = {}

    def _set_updater(self, updater: Callable) -> None:
        """updater(key, sum of what was pushed, stored), which writes to `stored`; MXNet's name."""
        self._updater = updater

    def save_optimizer_states(self, fname: str | os.PathLike, dump_optimizer: bool = False) -> None:
        """Write what the optimiser remembers (and its settings with dump_optimizer) to a file, atomically; rank 0 does.

        The file is a checkpoint of minnp.nn's: numbers, and no pickle, which MXNet's would be."""
        if self._rule is None:
            raise ValueError("kvstore.save_optimizer_states: no optimizer is set")
        if self._by_mxnet:
            raise ValueError(
                "kvstore.save_optimizer_states: an optimizer of MXNet's keeps objects, which only a pickle would hold; "
                "use one of minnp.nn.optim"
            )
        arrays, numbers = {}, []
        for key, config in self._states.items():
            own = {name: v for name, v in config.items() if name not in self._settings or dump_optimizer}
            numbers.append([key, {name: v for name, v in own.items() if not hasattr(v, "shape")}])
            arrays |= {f"{len(numbers) - 1}:{name}": v for name, v in own.items() if hasattr(v, "shape")}
        if self.rank == 0:
            checkpoint.save(fname, arrays, numbers, keep_previous=False)
        self.barrier()

    def load_optimizer_states(self, fname: str | os.PathLike) -> None:
        """Read what save_optimizer_states wrote."""
        if self._rule is None:
            raise ValueError("kvstore.load_optimizer_states: set the optimizer first")
        arrays, numbers = checkpoint.load(fname)
        self._states = {key: self._settings | own for key, own in numbers}
        for label, value in arrays.items():
            i, _, name = label.partition(":")
            self._states[numbers[int(i)][0]][name] = value

    def barrier(self) -> None:
        """Wait for all workers."""
        if self.mesh is not None:
            self.mesh.barrier()

    _barrier = barrier  # MXNet's name


def pairs(name: str, key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """(key, value) of one key, or of a list of keys with a list of values."""
    if not isinstance(key, (list, tuple)):
        keys, values = [key], [value]
    else:
        keys, values = list(key), value
        if not isinstance(values, (list, tuple)) or len(values) % max(len(keys), 1):
            raise ValueError(f"kvstore.{name}: {len(keys)} keys take as many values, or as many lists of them")
        each = len(values) // max(len(keys), 1)
        if each > 1:  # the arrays of all devices in a row
            values = [values[i * each : (i + 1) * each] for i in range(len(keys))]
    for k in keys:
        if not isinstance(k, (str, int)) or isinstance(k, bool):
            raise TypeError(f"kvstore.{name}: a key is a string or an integer, got {k!r}")
    return zip(keys, values, strict=True)


def summed(value: Any) -> Any:
    """The sum of the arrays of several devices, on the host."""
    arrays = [numbers_of(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
    total = np.array(arrays[0])
    for other in arrays[1:]:
        total = total + other
    return total


def numbers_of(x: Any) -> Any:
    """An array of ours, of NumPy's, or of MXNet's, on the host."""
    return np.asarray(x.asnumpy() if hasattr(x, "asnumpy") else x, device="cpu")


def mxnet_rule(optimizer: Any) -> Callable:
    """An optimizer of MXNet's as a rule; its state stays MXNet's, under the name "mxnet" of the config."""
    mx = importlib.import_module("mxnet")

    def rule(w: Any, dw: Any, config: dict) -> tuple[Any, dict]:
        weight, gradient = mx.nd.array(w, dtype=w.dtype), mx.nd.array(dw, dtype=w.dtype)
        if "mxnet" not in config:
            config["mxnet"] = optimizer.create_state_multi_precision(config["index"], weight)
        optimizer.update_multi_precision(config["index"], weight, gradient, config["mxnet"])
        w[...] = weight.asnumpy()
        return w, config

    return rule


class ServerStore(KVStore):
    """A store on MXNet's parameter server, for the workers that `python -m minnp.launch` started."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None)
        self._mx = importlib.import_module("mxnet")
        self._store = self._mx.kv.create(name)

    @property
    def rank(self) -> int:
        return self._store.rank

    @property
    def num_workers(self) -> int:
        return self._store.num_workers

    def _array(self, value: Any) -> Any:
        value = numbers_of(value)
        return self._mx.nd.array(value, dtype=value.dtype)

    def init(self, key: Any, value: Any) -> None:
        for k, v in pairs("init", key, value):
            first = self._array(v[0] if isinstance(v, (list, tuple)) else v)
            self._values[k] = first.shape, first.dtype
            self._store.init(k, first)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        for k, v in pairs("push", key, value):
            self._stored("push", k)
            self._store.push(k, self._array(summed(v)), priority)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        if out is None:
            raise ValueError("kvstore.pull writes into out=, an array or a list of arrays")
        for k, o in pairs("pull", key, out):
            shape, dtype = self._stored("pull", k)
            came = self._mx.nd.zeros(shape, dtype=dtype)
            self._store.pull(k, came, priority, ignore_sparse)
            for array in o if isinstance(o, (list, tuple)) else [o]:
                array[...] = came.asnumpy()

    def set_optimizer(self, optimizer: Any, **settings: Any) -> None:
        """An optimizer of MXNet's, or the name of one with its settings: the servers run it."""
        if isinstance(optimizer, str):
            optimizer = self._mx.optimizer.create(optimizer, **settings)
        elif settings or not hasattr(optimizer, "create_state"):
            raise TypeError(
                f"MXNet's servers take optimizers of MXNet's, or their names, got {optimizer!r}: use "
                "kv._set_updater, or the store of torchrun's processes"
            )
        self._store.set_optimizer(optimizer)

    def _set_updater(self, updater: Callable) -> None:
        raise TypeError("MXNet's servers take no function of the program's: use set_optimizer")

    def save_optimizer_states(self, fname: str | os.PathLike, dump_optimizer: bool = False) -> None:
        raise ValueError("the state of an optimizer is on MXNet's servers, which do not give it (nor do they in MXNet)")

    load_optimizer_states = save_optimizer_states

    def barrier(self) -> None:
        """Waits for all workers; "dist_async" first for the answers to its pushes, which the barrier may overtake."""
        if "async" in self.type:
            self._mx.nd.waitall()
        self._store._barrier()

    _barrier = barrier
