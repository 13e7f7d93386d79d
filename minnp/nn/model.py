"""Layer and ModelBase: things with parameters, over one tree.

A layer owns `params` (trained) and `aux_params` (kept, not trained: running averages); layers kept as attributes, or in
attributes that are lists, tuples or dicts, are its children. `tree()` is every parameter below a layer under one dotted
name, {"encoder.w": ..., "0.b": ...}: what gradients, optimisers and checkpoints work on.

A MinPy model is a ModelBase with parameters of its own and no children; its tree is its `params`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Self

import minnp.numpy as np

from . import checkpoint, checks, init

__all__ = ["Layer", "ModelBase"]

Tree = dict[str, Any]


class Params(dict):
    """A layer's own values by name; reading one that has no value yet says what to do."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner

    def __missing__(self, name: str) -> Any:
        known = f"it has {', '.join(self)}" if self else "it has no values yet: call .init() on the model, or train it"
        raise KeyError(checks.Text(f"{self.owner} has no parameter {name!r}; {known}"))


# The thread whose `holding` a layer's values are in, by the id of their dict; and what tells that some no longer are.
HOLDERS: dict[int, int] = {}
RELEASED = threading.Condition()
# What wants to see calls of layers: each is given (layer, forward) and gives the function to call in forward's place.
WATCHERS: list[Callable] = []
# what other libraries' models have, and what does its work
ELSEWHERE = {
    "append": "nn.Sequential(*net, layer)",
    "collect_params": "net.tree(), or net.params of one layer",
    "compile": "net.fit(x, y, optimizer=..., metrics=...), or minnp.jit(net)",
    "cuda": "minnp.gpu(0), a context: `with minnp.gpu(0): net.init()`",
    "eval": "net(x, mode='test')",
    "initialize": "net.init(seed)",
    "load_state_dict": "net.load(prefix)",
    "parameters": "net.tree(), or net.params of one layer",
    "state_dict": "net.tree(), and net.save(prefix)",
    "to": "minnp.gpu(0), a context: `with minnp.gpu(0): net.init()`",
    "train": "net(x, mode='train'), and net.fit(x, y)",
    "weight": "net.params['w']",
    "zero_grad": "minnp.grad: gradients are returned, and nothing is kept of them",
}
OWN = ("params", "aux_params", "param_configs", "aux_param_configs")  # attributes that hold no layers


class Layer:
    """Base of everything with parameters: declare with `add_param` in __init__, use `self.params[name]` in forward.

    >>> class Twice(nn.Layer):
    ...     def forward(self, x, mode=None):
    ...         return 2 * x
    >>> Twice()(np.ones(2))
    array([2., 2.])
    """

    params: Params
    aux_params: Params
    param_configs: dict[str, dict]
    aux_param_configs: dict[str, Any]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        # Here and not in __init__, so that a model that forgets super().__init__() works too.
        if cls.__init__ is object.__init__:  # which refuses nothing where there is a __new__
            for name in options:
                raise checks.unknown(cls.__name__, name, ())
            if args:
                raise TypeError(f"{cls.__name__} takes no arguments, got {args[0]!r:.60}")
        layer = super().__new__(cls)
        layer.params, layer.aux_params = Params(cls.__name__), Params(cls.__name__)
        layer.param_configs, layer.aux_param_configs = {}, {}
        return layer

    # A layer without arguments has no __init__ of its own: this is then its signature.
    __new__.__signature__ = inspect.Signature([inspect.Parameter("cls", inspect.Parameter.POSITIONAL_ONLY)])

    @checks.named()
    def add_param(
        self,
        name: str,
        shape: Sequence[int],
        *,
        init_rule: str | Callable | None = None,
        init_config: dict | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        decay_rate: float | None = None,
        beta1: float | None = None,
        beta2: float | None = None,
        epsilon: float | None = None,
    ) -> Self:
        """Declare a trained parameter; returns self.

        init_rule, init_config   its initial values (minnp.nn.init); those of the model's `init` where not given
        learning_rate, ...       settings of the optimiser for this parameter alone
        """
        self._check_new(name)
        if init_config is not None and init_rule is None:
            raise ValueError(
                f"{type(self).__name__}'s parameter {name!r} has an init_config {init_config} of no init_rule"
            )
        if init_rule is not None:
            init.rule_named(init_rule)  # raises where there is none of that name
        given = {
            "init_rule": init_rule,
            "init_config": init_config,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "decay_rate": decay_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
        }
        self.param_configs[name] = {
            "shape": checks.shape(f"{type(self).__name__}'s parameter {name!r}", shape),
            **{key: value for key, value in given.items() if value is not None},
        }
        return self

    def add_params(self, configs: dict[str, dict]) -> Self:
        """Declare several: {name: {"shape": ..., ...}}, such as Function.get_params() gives; returns self."""
        for name, config in configs.items():
            self.add_param(name, **config)
        return self

    def add_aux_param(self, name: str, value: Any) -> Self:
        """Declare a value that is kept and saved but not trained; returns self."""
        self._check_new(name)
        self.aux_param_configs[name] = value
        return self

    def _check_new(self, name: str) -> None:
        if name in self.param_configs or name in self.aux_param_configs:
            raise ValueError(f"{type(self).__name__} already has a parameter {name!r}")

    # -------------------------------------------------------------- the tree
    def children(self) -> Iterator[tuple[str, Layer]]:
        """(name, layer) for each layer directly below this one."""
        found: list[tuple[str, Layer]] = []
        for attribute, value in vars(self).items():
            if isinstance(value, MAY_HOLD_LAYERS) and attribute not in OWN:
                found += layers_in(attribute, value)
        return iter(found)

    def walk(self) -> Iterator[tuple[str, Layer]]:
        """(dotted prefix, layer) for this layer and every layer below; a layer used twice comes once: it is shared."""
        return iter(self._below("", set()))

    def _below(self, prefix: str, seen: set[int]) -> list[tuple[str, Layer]]:
        seen.add(id(self))
        found = [(prefix, self)]
        for name, child in self.children():
            if id(child) not in seen:
                found += child._below(f"{prefix}{name}.", seen)
        return found

    # torch.nn's names for the same.
    def named_children(self) -> Iterator[tuple[str, Layer]]:
        return self.children()

    def named_modules(self) -> Iterator[tuple[str, Layer]]:
        """(dotted name, layer) for this layer, whose name is empty, and every layer below."""
        return ((prefix[:-1], layer) for prefix, layer in self.walk())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """(dotted name, array) for every trained array: tree(), as pairs."""
        return iter(self.tree().items())

    def tree(self) -> Tree:
        """Every parameter, by dotted name."""
        return {prefix + name: value for prefix, layer in self.walk() for name, value in layer.params.items()}

    def aux_tree(self) -> Tree:
        """Every auxiliary value, by dotted name."""
        return {prefix + name: value for prefix, layer in self.walk() for name, value in layer.aux_params.items()}

    def configs(self) -> dict[str, dict]:
        """What add_param was told about every parameter, by dotted name."""
        return {prefix + name: config for prefix, layer in self.walk() for name, config in layer.param_configs.items()}

    def set_tree(self, tree: Tree) -> None:
        """Put these values into the layers; names that no layer has raise, and so do other shapes."""
        self._put(tree, self._places("params"), "params")

    def set_aux_tree(self, tree: Tree) -> None:
        if tree:
            self._put(tree, self._places("aux_params"), "aux_params")

    def _places(self, kind: str) -> dict[str, tuple[dict, str, tuple | None]]:
        """{dotted name: (the layer's dict, the name in it, its shape if it must have one)} of all declared or held."""
        places = {}
        for prefix, layer in self.walk():
            values, shapes = getattr(layer, kind), layer.param_configs if kind == "params" else {}
            for name in (*(shapes if kind == "params" else layer.aux_param_configs), *values):
                places[prefix + name] = (values, name, shapes[name]["shape"] if name in shapes else None)
        return places

    def _put(self, tree: Tree, places: dict[str, tuple[dict, str, tuple | None]], kind: str) -> None:
        """Put values where they belong: all, or none where the layers have no such name or another shape."""
        if not isinstance(tree, Mapping):
            raise TypeError(f"parameters are a dict of arrays by dotted name, as net.tree() gives; got {tree!r:.60}")
        unknown = [name for name in tree if name not in places]
        if unknown:
            raise KeyError(checks.Text(f"{type(self).__name__} has no {kind} {unknown}; it has {sorted(places)}"))
        if kind == "params":
            tree = {name: value if isinstance(value, np.ndarray) else np.asarray(value) for name, value in tree.items()}
        for name, value in tree.items():
            if (shape := places[name][2]) is not None and value.shape != shape:
                raise ValueError(f"parameter {name!r} is {shape}; got a value of {value.shape}")
        for name, value in tree.items():
            values, key, _ = places[name]
            values[key] = value

    @contextlib.contextmanager
    def holding(self, tree: Tree, aux: Tree | None = None) -> Iterator[None]:
        """The layers hold `tree` (and `aux`) inside the with block, and their own values again after it.

        One thread at a time: where another one is in such a block of these layers, this waits for the end of it. Calls
        outside of blocks do not wait, and see what the layers hold.

        Raises KeyError for a name that no layer has, ValueError for another shape.
        """
        changed = [(tree, self._places("params"), "params")]
        if aux:
            changed.append((aux, self._places("aux_params"), "aux_params"))
        dicts = {id(values): values for _, places, _ in changed for values, _, _ in places.values()}
        with held_by_this_thread(dicts.keys()):
            before = [(values, dict(values)) for values in dicts.values()]
            try:
                for values, places, kind in changed:
                    self._put(values, places, kind)
                yield
            finally:
                for values, old in before:
                    values.update(old)

    @checks.named()
    def init(self, seed: int = 0, rule: str | Callable = "xavier", config: dict | None = None) -> Self:
        """Give every parameter its initial value; returns self.

        Each parameter draws from a stream of its own, named by the seed and its dotted name: adding a layer does not
        change the others. `rule` and `config` serve parameters that declared no init_rule.
        """
        seed = checks.count("seed", seed)
        for prefix, layer in self.walk():
            for name, declared in layer.param_configs.items():
                chosen = init.rule_named(declared.get("init_rule", rule))
                options = dict(declared.get("init_config", {}) if "init_rule" in declared else config or {})
                options.setdefault("rng", np.random.default_rng([seed, zlib.crc32((prefix + name).encode())]))
                layer.params[name] = chosen(declared["shape"], options)
            for name, value in layer.aux_param_configs.items():
                layer.aux_params[name] = np.array(np.asarray(value).asnumpy()) if hasattr(value, "shape") else value
        return self

    @property
    def initialised(self) -> bool:
        return all(name in layer.params for _, layer in self.walk() for name in layer.param_configs)

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return sum(int(value.size) for value in self.tree().values())

    def __repr__(self) -> str:
        """This layer and those below it, a line each: its dotted name, its kind, the shapes of its parameters."""
        lines = []
        for prefix, layer in self.walk():
            shapes = ", ".join(f"{name} {config['shape']}" for name, config in layer.param_configs.items())
            name = f"{prefix[:-1]}: " if prefix else ""
            lines.append(f"{'  ' * prefix.count('.')}{name}{type(layer).__name__}({shapes})")
        return "\n".join(lines)

    @checks.named()
    def summary(self, *inputs: Any, mode: str = "test") -> Any:
        """A table of the layers: what each gives, how many parameters it has, and its floating point operations.

        inputs: arrays as for a call, or the shapes of them as tuples, the number of examples included, for zeros. It is
        a list of lines with name, kind, output (the shape), parameters and flops, and itself has parameters and flops;
        flops is None for what is no graph of rows.
        """
        from .summary import summarised

        return summarised(self, inputs, mode)

    # -------------------------------------------------------------- use
    @property
    def takes_mode(self) -> bool:
        """Whether `forward` has a place for mode=: layers that hold others hand it to those alone."""
        return names_mode(type(self).forward)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    if not TYPE_CHECKING:  # for type checkers a layer has what its class has

        def __getattr__(self, name: str) -> Any:
            """AttributeError that says what does here what other libraries have under this name."""
            if name in ELSEWHERE:
                said = f"{type(self).__name__!r} object has no attribute {name!r}; here it is {ELSEWHERE[name]}"
                raise AttributeError(said, name=name, obj=self)
            return object.__getattribute__(self, name)  # the error of a property, or Python's own

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        try:
            return (watched(self) if WATCHERS else self.forward)(*inputs, **options)
        except checks.MISTAKES as error:
            if options:
                checks.misspelt(f"{type(self).__name__}'s forward", self.forward, options)
            given = checks.of_arrays(dict(zip(("x", "z"), inputs)))
            own = checks.of_arrays(self.params)
            checks.explain(error, f"{type(self).__name__}({given})" + (f" with {own}" if own else ""), type(self))
            raise
        except AttributeError as error:
            if not any(error.obj is x for x in inputs):
                raise
            got = f"{error.obj!r:.60} ({type(error.obj).__name__})"
            raise TypeError(f"{type(self).__name__} takes an array, got {got}: write np.asarray(x)") from error


@contextlib.contextmanager
def held_by_this_thread(keys: Set[int]) -> Iterator[None]:
    """Inside the with block, other threads that ask for one of these dicts, named by their ids, wait here.

    A thread gets all that it asks for at once, so that no two wait for each other.
    """
    thread = threading.get_ident()
    with RELEASED:
        RELEASED.wait_for(lambda: all(HOLDERS.get(key, thread) == thread for key in keys))
        new = keys - HOLDERS.keys()  # the others are held by a block around this one
        HOLDERS.update(dict.fromkeys(new, thread))
    try:
        yield
    finally:
        with RELEASED:
            for key in new:
                del HOLDERS[key]
            RELEASED.notify_all()


def watched(layer: Layer) -> Callable:
    """layer.forward as all watchers have it."""
    forward = layer.forward
    for watch in WATCHERS:
        forward = watch(layer, forward)
    return forward


MAY_HOLD_LAYERS = (Layer, list, tuple, dict)


def layers_in(name: str, value: Any) -> list[tuple[str, Layer]]:
    """(dotted name, layer) for the layer called `name`, or each in the lists, tuples and dicts of that name."""
    if isinstance(value, Layer):
        return [(name, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for k, item in items if isinstance(item, MAY_HOLD_LAYERS) for found in layers_in(f"{name}.{k}", item)]


class ModelBase(Layer):
    """A layer that can be trained: define `forward(self, X, mode)` and `loss(self, predict, y)`.

    With several inputs or labels, define `forward_batch(batch, mode)` and `loss_batch(batch, predict)` instead. A loss
    that takes `weight`, a number for each class, can be trained with class_weight.
    `metrics` are what is measured besides the loss unless told: names in minnp.nn.metrics, or functions.

    >>> class Net(nn.ModelBase):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = nn.Linear(4, 2)
    ...     def forward(self, x, mode=None):
    ...         return self.fc(x)
    >>> Net().init()(np.ones((3, 4))).shape
    (3, 2)
    """

    metrics: Sequence = ("accuracy",)

    def loss(self, predict: Any, y: Any) -> Any:
        """One number, to be made small."""
        raise NotImplementedError(f"{type(self).__name__} must define loss(predict, y)")

    def forward_batch(self, batch: Any, mode: str) -> Any:
        # MinPy's early models have forward(self, X).
        return self.forward(batch.data[0], mode) if takes_mode(type(self).forward) else self.forward(batch.data[0])

    def loss_batch(self, batch: Any, predict: Any, weight: Any = None) -> Any:
        if predict is None:
            raise TypeError(f"{type(self).__name__}.forward returned None; does it end with a return?")
        if not batch.label:
            raise ValueError(f"{type(self).__name__}.loss(predict, y) needs labels y, and the data came without")
        label = batch.label[0]
        return self.loss(predict, label) if weight is None else self.loss(predict, label, weight=weight)

    # -------------------------------------------------------------- files
    def save(self, prefix: str | os.PathLike) -> str:
        """Write every parameter and auxiliary value to `<prefix>.params`, atomically; returns that path.

        The ending may be given, too: save("a.params") is save("a").
        """
        if not self.initialised:
            raise ValueError(f"{type(self).__name__} has no values to save yet: call .init(), or train it")
        arrays = {f"param:{name}": value for name, value in self.tree().items()}
        arrays |= {f"aux:{name}": value for name, value in self.aux_tree().items() if value is not None}
        path = path_of(prefix)
        checkpoint.save(path, arrays, {"model": type(self).__name__}, keep_previous=False)
        return path

    def load(self, prefix: str | os.PathLike) -> Self:
        """Read what `save` wrote; the names and shapes must be this model's. Returns self."""
        arrays, _ = checkpoint.load(path_of(prefix))
        tree = {name[6:]: np.array(value) for name, value in arrays.items() if name.startswith("param:")}
        for name, config in self.configs().items():
            if name not in tree:
                said = f"{prefix}.params has no {name!r}, which {type(self).__name__} needs; it has {sorted(tree)}"
                raise KeyError(checks.Text(said))
            if tree[name].shape != config["shape"]:
                raise ValueError(
                    f"{prefix}.params holds {name!r} as {tree[name].shape}, the model has {config['shape']}"
                )
        self.set_tree(tree)
        self.set_aux_tree({name[4:]: np.array(value) for name, value in arrays.items() if name.startswith("aux:")})
        return self

    # -------------------------------------------------------------- the Keras-like face of Solver
    def fit(self, x: Any, y: Any = None, **options: Any) -> dict[str, list[float]]:
        """Train on arrays x, y, or on an iterator x; returns the history {"loss": [...], "val_accuracy": [...], ...}.

        epochs, batch_size, shuffle, transform, validation_data (arrays or an iterator), validation_split, optimizer,
        learning_rate, and every keyword of Solver (callbacks, early_stopping, checkpoint, resume, jit, seed, ...).
        """
        from .training import fit

        return fit(self, x, y, **options)

    @checks.named()
    def evaluate(
        self, x: Any, y: Any = None, batch_size: int = 128, metrics: Sequence | None = None
    ) -> dict[str, float]:
        """{"loss": ..., "accuracy": ...} over all examples, in "test" mode."""
        from .training import evaluate

        return evaluate(self, x, y, batch_size, metrics)

    @checks.named()
    def predict(self, x: Any, batch_size: int = 128) -> np.ndarray:
        """The outputs of forward in "test" mode for all examples, [N, ...]."""
        from .training import predict

        return predict(self, x, batch_size)


def path_of(prefix: str | os.PathLike) -> str:
    """The file of parameters that is meant: `prefix` with the ending .params, which it may have."""
    if not (path := os.fspath(prefix)):
        raise ValueError("a model is saved and loaded by the path of its file, without the ending; got ''")
    return path if path.endswith(".params") else f"{path}.params"


@functools.cache
def takes_mode(forward: Callable) -> bool:
    """Does `forward(self, X, mode)` have a place for the mode?"""
    parameters = list(inspect.signature(forward).parameters.values())
    return len(parameters) > 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


@functools.cache
def names_mode(function: Callable) -> bool:
    """Is there a place for mode= in a call of the function?"""
    parameters = inspect.signature(function).parameters
    named = "mode" in parameters and parameters["mode"].kind is not inspect.Parameter.POSITIONAL_ONLY
    return named or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def run_layer(layer: Layer, x: Any, mode: str | None) -> Any:
    """layer(x, mode=mode), or layer(x) where it has no place for the mode."""
    return layer(x, mode=mode) if layer.takes_mode else layer(x)
