"""Post-training quantisation: dense layers and convolutions of 8-bit integers, from what a few batches show.

Three steps, as in torch.fx: `observe` puts observers before the layers with fixed weights, running the graph
(`calibrate`) shows them the ranges of what goes in, and `convert` puts integer layers there. Activations become uint8
with one scale and zero point, weights int8 with a scale for all or for each output channel (Jacob et al. 2018;
Krishnamoorthi 2018, sections 2.1 and 3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as onp

from ..graph.graph import Graph
from ..graph.interpreter import Interpreter
from ..graph.node import Node
from ..rows.primitive import TABLE, Meta
from .constants import Known, add_constant, constant_of
from .folding import is_relu, name_of, only_user, per_channel
from .modules import check_rows, on_modules

SELU = (1.0507009873554805, 1.6732632423543772)  # scale and alpha of Klambauer et al. 2017
LAYERS = {"matmul": "npx.quantized_linear", "npx.conv": "npx.quantized_conv", "npx.conv_act": "npx.quantized_conv"}


class Observer:
    """Remembers the range of the arrays it is shown.

    percentile   how much of each array's range counts: 99.9 leaves out the lowest and highest 0.05 %, which are clipped

    Raises ValueError for a percentile that is not above 50 and at most 100.

    >>> observer = fx.Observer()
    >>> observer.show(np.array([-1.0, 3.0]))
    >>> observer
    <observer of 1 arrays: -1 to 3>
    """

    def __init__(self, percentile: float = 100.0) -> None:
        if not 50 < percentile <= 100:
            raise ValueError(f"percentile={percentile}: give a number above 50, up to 100")
        self.percentile = percentile
        self.low = self.high = 0.0  # zero is always in the range, so that it has an integer of its own
        self.seen = 0

    def __repr__(self) -> str:
        return f"<observer of {self.seen} arrays: {self.low:.4g} to {self.high:.4g}>"

    def show(self, x: Any) -> None:
        x = onp.asarray(x)
        if not x.size:
            return
        if self.percentile == 100:
            low, high = float(x.min()), float(x.max())
        else:
            out = (100 - self.percentile) / 2
            low, high = map(float, onp.percentile(x, (out, 100 - out)))
        self.low, self.high, self.seen = min(self.low, low), max(self.high, high), self.seen + 1

    def affine(self) -> tuple[float, int]:
        """(scale, zero point) with which 0 .. 255 cover the range."""
        scale = (self.high - self.low) / 255 or 1.0
        return scale, int(onp.clip(onp.rint(-self.low / scale), 0, 255))


def record(x: Any, observer: Observer) -> None:
    """Show the observer a value of a graph."""
    observer.show(x)


# ------------------------------------------------------------------ the three steps
@on_modules
def observe(graph: Graph, observer: Callable[[], Observer] = Observer, only: Callable | None = None) -> Graph:
    """The graph with an observer before each layer that can be quantised.

    observer   makes one: Observer, or functools.partial(Observer, percentile=99.9)
    only       node -> bool: the layers to quantise, by default all
    Raises ValueError for a graph that calls layers, or functions that are no rows: fx.capture says what they do.

    These are dense layers (matmul with a fixed matrix) and convolutions with a fixed weight, in float32.

    >>> net = fx.capture(nn.Linear(4, 3).init(), np.ones((2, 4), np.float32))
    >>> [node.name for node in fx.observe(net).graph.nodes]
    ['inputs', 'constant_0', 'record', 'matmul', 'constant_1', 'add', 'output']
    """
    check_rows(graph, "quantisation")
    known = Known(graph)
    observers: dict[Node, Observer] = {}
    for node in graph.nodes:
        x = weight_of(node, known) is not None and node.args[0]
        if not isinstance(x, Node) or (only is not None and not only(node)):
            continue
        if x not in observers:
            observers[x] = observer()
            with graph.inserting_before(node):
                seen = graph.create_node("call_function", record, (x, observers[x]), name="record")
            seen.meta["effect"] = True
        node.meta["observer"] = observers[x]
    return graph


class Calibration(Interpreter):
    """Runs an observed graph on NumPy arrays, its constants included."""

    def run_node(self, node: Node) -> Any:
        return constant_of(node) if node.op == "get_attr" else super().run_node(node)


@on_modules
def calibrate(graph: Graph, batches: Iterable[Any]) -> Graph:
    """Run an observed graph on each batch (its one input, or a tuple of its inputs), so that the observers see it.

    batches   arrays, or tuples of them, one for each run

    Calling the observed graph in any other way (as a GraphModule, say) shows them what goes through it too.

    >>> net = fx.observe(fx.capture(nn.Linear(4, 3).init(), np.ones((2, 4), np.float32)))
    >>> net = fx.calibrate(net, [np.ones((2, 4), np.float32)])
    """
    for batch in batches:
        Calibration(graph).run(*map(onp.asarray, batch if isinstance(batch, tuple) else (batch,)))
    return graph


@on_modules
def convert(graph: Graph, per_channel: bool = True) -> Graph:
    """The observed graph with integer layers in the place of the observed ones.

    per_channel   a scale for each output channel of a weight, or one for all
    Raises ValueError, naming the layer, where an observer has seen nothing: run calibrate first.

    Biases, and a relu or selu after a layer, go into it, and observers are gone. Layers of which npx.fake_quantize
    rounds input and weight, as quantisation-aware training leaves them (nn.quantization_aware), become integer layers
    too: their scales are taken.

    >>> net = fx.observe(fx.capture(nn.Linear(4, 3).init(), np.ones((2, 4), np.float32)))
    >>> net = fx.convert(fx.calibrate(net, [np.ones((2, 4), np.float32)]))
    >>> net(np.ones((2, 4), np.float32)).shape
    (2, 3)
    """
    known = Known(graph)
    take_rounded(graph, known)
    integers: dict[Node, Node] = {}  # values -> their quantised form, one for all layers that read them
    for node in graph.nodes:
        observer = node.meta.get("observer")
        if observer is None:
            continue
        if not observer.seen:
            raise ValueError(f"nothing has been observed before {node.name}: run calibrate(graph, batches) first")
        replace(graph, node, observer, per_channel, known, integers)
    for node in graph.find_nodes(op="call_function", target=record):
        graph.erase_node(node)
    graph.eliminate_dead_code()
    for node in integers.values():
        stay(graph, node)
    return graph


def stay(graph: Graph, node: Node) -> None:
    """Let an integer layer whose result, perhaps reshaped, is only quantised for the next ones give integers itself."""
    last, between = node.args[0], []
    layer = last
    while name_of(layer) == "reshape" and list(layer.users) == [between[-1] if between else node]:
        between.append(layer)
        layer = layer.args[0]
    if name_of(layer) not in LAYERS.values() or list(layer.users) != [between[-1] if between else node]:
        return
    layer.kwargs = {**layer.kwargs, "requantize": (node.kwargs["scale"], node.kwargs["zero_point"])}
    for n in (layer, *between):
        n.meta["value"] = Meta(n.meta["value"].shape, node.meta["value"].dtype)
    node.replace_all_uses_with(last)
    graph.erase_node(node)


@on_modules
def quantize(graph: Graph, batches: Iterable[Any], per_channel: bool = True, **options: Any) -> Graph:
    """The graph with integer layers: observe, calibrate and convert in one. options: those of observe.

    batches       inputs that the ranges are measured on, as in calibrate
    per_channel   as in convert

    >>> net = fx.capture(nn.Linear(4, 3).init(), np.ones((2, 4), np.float32))
    >>> fx.quantize(net, [np.ones((2, 4), np.float32)])(np.ones((2, 4), np.float32)).shape
    (2, 3)
    """
    return convert(calibrate(observe(graph, **options), batches), per_channel)


# ------------------------------------------------------------------ one layer
def weight_of(node: Node, known: Known) -> onp.ndarray | None:
    """The fixed float32 weight of a layer that has an integer form: [I, O], or [O, C/groups, *K]."""
    name, meta = name_of(node), node.meta.get("value")
    if name not in LAYERS or not isinstance(meta, Meta) or meta.dtype != onp.float32 or len(node.args) < 2:
        return None
    weight = known(node.args[1])
    fits = isinstance(weight, onp.ndarray) and weight.dtype == onp.float32 and weight.size
    if not fits or (name == "matmul" and (weight.ndim != 2 or not isinstance(node.args[0], Node) or meta.ndim < 2)):
        return None
    return weight


def replace(graph: Graph, node: Node, observer: Observer, each: bool, known: Known, integers: dict[Node, Node]) -> None:
    """Put the integer form of a layer, with its bias and what follows it, in its place."""
    dense = name_of(node) == "matmul"
    weight = known(node.args[1])
    weight = weight.T if dense else weight
    activation = node.kwargs.get("activation", "")
    other = node.args[3:] if name_of(node) == "npx.conv_act" else ()
    bias = known(node.args[2]) if len(node.args) > 2 else None
    last = node
    if bias is None:
        last, bias = with_bias(node, dense, known)
    if not other and not activation:
        last, activation = with_activation(last, dense)
    scale, zero = observer.affine()
    x = node.args[0]
    with graph.inserting_before(node):
        if x not in integers:
            params = {"scale": scale, "zero_point": zero}
            integers[x] = graph.create_node("call_function", TABLE["npx.quantize"], (x,), params, name="quantize")
            integers[x].meta["value"] = Meta(x.meta["value"].shape, onp.dtype("uint8"))
        whole, scales = integer_weight(weight, each)
        arrays = [integers[x], add_constant(graph, whole, f"{node.name}_integers")]
        arrays.append(add_constant(graph, scales, f"{node.name}_scales"))
        if bias is not None:
            arrays.append(add_constant(graph, onp.asarray(bias, "f4"), f"{node.name}_bias"))
        params = {k: v for k, v in node.kwargs.items() if k != "activation"} if not dense else {}
        params |= {"scale": scale, "zero_point": zero, "activation": "" if other else activation}
        row = TABLE[LAYERS[name_of(node)]]
        call = graph.create_node("call_function", row, tuple(arrays), params, name=f"quantized_{node.name}")
        call.meta.update(value=last.meta["value"], where=node.meta.get("where"))
        for term in other:
            call = graph.create_node("call_function", TABLE["add"], (call, term), name="add")
            call.meta["value"] = last.meta["value"]
        if other and activation:
            call = graph.create_node("call_function", TABLE["npx.relu"], (call,), name=activation)
            call.meta["value"] = last.meta["value"]
    last.replace_all_uses_with(call)


class Learned(NamedTuple):
    """The range that a layer's input was trained with, in an observer's place."""

    scale: float
    zero: int
    seen: int = 1

    def affine(self) -> tuple[float, int]:
        return self.scale, self.zero


def take_rounded(graph: Graph, known: Known) -> None:
    """Let layers read what was rounded for them to 0 .. 255 as it was before, and know how to round it."""
    learned: dict[Node, Learned] = {}
    for node in graph.nodes:
        rounding = node.args[0] if weight_of(node, known) is not None else None
        if not isinstance(rounding, Node) or name_of(rounding) != "npx.fake_quantize":
            continue
        scale, zero = known(rounding.args[1]), known(rounding.args[2])
        if scale is None or zero is None or onp.size(scale) != 1 or rounding.kwargs != {"low": 0, "high": 255}:
            continue
        source = rounding.args[0]
        facts = Learned(float(scale), int(zero))
        if learned.setdefault(source, facts) != facts:  # one form in integers for each value
            continue
        node.args = (source, *node.args[1:])
        node.meta["observer"] = facts


def integer_weight(weight: onp.ndarray, each: bool) -> tuple[onp.ndarray, onp.ndarray]:
    """A weight [O, ...] as int8 in -127 .. 127, and the scale of each of its O channels."""
    flat = abs(weight.reshape(weight.shape[0], -1))
    largest = flat.max(axis=1) if each else onp.full(weight.shape[0], flat.max())
    scales = onp.where(largest > 0, largest / 127, 1).astype("f4")
    whole = onp.rint(weight / scales.reshape((-1,) + (1,) * (weight.ndim - 1)))
    return onp.clip(whole, -127, 127).astype("i1"), scales


def with_bias(node: Node, dense: bool, known: Known) -> tuple[Node, Any]:
    """The sum with a fixed bias, if that is all that reads a layer, and the bias; else the layer itself and None."""
    user, meta = only_user(node), node.meta["value"]
    if user is None or name_of(user) != "add" or user.meta.get("value") != meta or user.args[0] is user.args[1]:
        return node, None
    value = known(user.args[1] if user.args[0] is node else user.args[0])
    if value is not None and not dense:
        value = per_channel(value, meta)
    elif value is not None:
        value = onp.asarray(value)
        single = value.ndim <= 1 or value.size == value.shape[-1]
        value = onp.broadcast_to(value.reshape(-1), meta.shape[-1]) if single else None
    return (user, value) if value is not None else (node, None)


def with_activation(node: Node, dense: bool) -> tuple[Node, str]:
    """The activation that alone reads a node, and its name in the integer rows; else the node itself and ""."""
    user = only_user(node)
    if is_relu(user):
        return user, "relu"
    if dense and name_of(user) == "npx.elu" and abs(user.kwargs.get("alpha", 1.0) - SELU[1]) < 1e-6:
        scaled = only_user(user)
        if name_of(scaled) == "multiply" and any(
            not isinstance(a, Node) and abs(float(a) - SELU[0]) < 1e-6 for a in scaled.args
        ):
            return scaled, "selu"
    return node, ""
