"""A captured graph as a symbol of MXNet: every row through the lowering that runs it as an MXNet operator."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as onp

from ...core.graph.effects import guard, pick
from ...core.graph.graph import Graph, Node
from ...core.graph.node import target_name
from ...core.rows import primitive
from ...errors import BackendUnsupportedError, SymbolError
from . import algebra, elementwise, neural, shapes
from .capi import runtime
from .kernels import OWN_DTYPE
from .lowering import MOST_AXES, Meta, Shape, text

TABLE = {**elementwise.TABLE, **shapes.TABLE, **algebra.TABLE, **neural.TABLE}
COUNT = itertools.count()
# Rows written with two other rows.
SPLIT = {"npx.silu": ("npx.sigmoid", "multiply")}
# Row -> MXNet's operators of an array and a number, and of a number and an array.
WITH_NUMBER = {
    "add": ("_plus_scalar", "_plus_scalar"), "subtract": ("_minus_scalar", "_rminus_scalar"),
    "multiply": ("_mul_scalar", "_mul_scalar"), "divide": ("_div_scalar", "_rdiv_scalar"),
    "power": ("_power_scalar", "_rpower_scalar"), "maximum": ("_maximum_scalar", "_maximum_scalar"),
    "minimum": ("_minimum_scalar", "_minimum_scalar"), "remainder": ("_mod_scalar", "_rmod_scalar"),
}  # fmt: skip


class Symbol(NamedTuple):
    """A graph as a symbol: `symbol`, an mx.sym.Symbol (a Group where there are several results), and `arguments`, the
    NumPy arrays of its constants by name. Inputs are named as in the graph; results of shape () have the shape (1,)."""

    symbol: Any
    arguments: dict[str, onp.ndarray]


class Part(NamedTuple):
    """A node's symbol, and what NumPy says of its value; the symbol of a value of shape () has the shape (1,)."""

    symbol: Any
    shape: Shape
    dtype: str


def to_symbol(graph: Graph) -> Symbol:
    """The symbol that computes what a graph of rows, with known shapes and dtypes, computes.

    Raises SymbolError, naming the node and the user's line, where MXNet has no operator for a row on these arguments;
    BackendMissingError where mxnet is not installed.
    """
    mx = runtime().mx
    parts: dict[Node, Any] = {}
    arguments: dict[str, onp.ndarray] = {}
    for node in graph.nodes:
        made = is_constant(node)
        if made or node.op in ("placeholder", "get_attr"):
            meta = node.meta.get("value")
            if meta is None:
                raise SymbolError(
                    f"the shape of {node.name} is not known: capture the program on real arrays, with "
                    "minnp.fx.capture(f, *inputs) or minnp.jit(f).lower(*inputs)"
                )
            symbol = mx.sym.Variable(node.name, shape=meta.shape or (1,), dtype=meta.dtype.name)
            parts[node] = Part(symbol, meta.shape, meta.dtype.name)
            if node.op != "placeholder":
                value = node.target(*node.args, **node.kwargs) if made else node.meta["constant"]
                arguments[node.name] = onp.asarray(value).reshape(meta.shape or (1,))
        elif node.op == "output":
            result = node.args[0]
            several = [parts[n].symbol for n in (result if isinstance(result, (tuple, list)) else (result,))]
            return Symbol(several[0] if len(several) == 1 else mx.sym.Group(several), arguments)
        elif node.target is not guard:
            try:
                parts[node] = lower(node, parts)
            except BackendUnsupportedError as reason:
                where = f" ({node.meta['where']})" if node.meta.get("where") else ""
                raise SymbolError(f"{node.name}{where} has no MXNet operator: {reason}") from None
    raise SymbolError("the graph has no output")


def is_constant(node: Node) -> bool:
    """Whether a node makes an array of nothing, always the same: np.zeros(3)."""
    plain = node.op == "call_function" and not node.all_input_nodes and not node.meta.get("effect")
    return plain and not isinstance(node.target, primitive.Primitive)


def lower(node: Node, parts: dict[Node, Any]) -> Any:
    """The Part of one node, or a list of several."""
    if node.target is pick:
        return parts[node.args[0]][node.args[1]]
    if node.op != "call_function" or not isinstance(node.target, primitive.Primitive):
        raise BackendUnsupportedError(f"{target_name(node.target)} is no row; capture the program first")
    inputs = [parts[a] if isinstance(a, Node) else a for a in node.args]
    return apply(node.target.name, inputs, node.kwargs, node)


def apply(name: str, inputs: Sequence[Any], params: dict[str, Any], node: Node) -> Any:
    """A row on parts and numbers."""
    if name == "getitem":
        return item(inputs[0], params["index"], node.name)
    if name in SPLIT:
        first, second = SPLIT[name]
        return apply(second, [inputs[0], apply(first, inputs, params, node)], {}, node)
    if name == "clip":
        low, high = (float(v) if v is not None else s * float("inf") for v, s in zip(inputs[1:], (-1, 1), strict=True))
        return inputs[0]._replace(
            symbol=create("clip", [inputs[0].symbol], {"a_min": text(low), "a_max": text(high)}, node.name)
        )
    if name == "stop_gradient":
        return inputs[0]._replace(symbol=create("BlockGrad", [inputs[0].symbol], {}, node.name))
    if name == "npx.normalize":
        return normalized(*inputs, **params, node=node)
    if name not in TABLE:
        raise BackendUnsupportedError(f"no lowering of {name}")
    of_number = with_number(name, inputs, node)
    if of_number is not None:
        return of_number
    given = promoted(inputs, OWN_DTYPE.get(name, 0))
    params = {k: v for k, v in params.items() if v is not None and not (k == "keepdims" and v is False)}
    lowered = TABLE[name]([Meta(p.shape, p.dtype) for p in given], params)
    if lowered.before or lowered.after or lowered.derivative or lowered.results is not None:
        raise BackendUnsupportedError(f"{name} needs more than one operator")
    out = node.meta["value"] if name == node.target.name else inputs[0]
    shape = tuple(out.shape)
    # kernels merge axes, for speed and few axes; a symbol that people read need not
    plain = is_elementwise(name) and len(shape) <= MOST_AXES
    symbols = [
        given[a.value].symbol if plain else reshaped(given[a.value].symbol, given[a.value].shape, a.shape)
        for a in lowered.arguments
    ]
    symbol = create(lowered.operator, symbols, lowered.attributes, node.name)
    if lowered.shape is not None and not plain:
        symbol = reshaped(symbol, None, shape)
    return Part(symbol, shape, onp.dtype(out.dtype).name)


def is_elementwise(name: str) -> bool:
    return primitive.TABLE[name].jvp == "elementwise" or name in ("where", *elementwise.BINARY)


def with_number(name: str, inputs: Sequence[Any], node: Node) -> Part | None:
    """Arithmetic of a floating array and a number, which MXNet has operators for."""
    if name not in WITH_NUMBER:
        return None
    places = [i for i, p in enumerate(inputs) if isinstance(p, Part)]
    if len(places) != 1 or not isinstance(inputs[1 - places[0]], (int, float)):
        return None
    x, number = inputs[places[0]], inputs[1 - places[0]]
    if not x.dtype.startswith("float") or node.meta["value"].dtype != x.dtype:
        return None
    symbol = create(WITH_NUMBER[name][places[0]], [x.symbol], {"scalar": repr(float(number))}, node.name)
    return x._replace(symbol=symbol)


def promoted(inputs: Sequence[Any], own: int) -> list[Part]:
    """The arguments in the dtype NumPy computes in, numbers as symbols too; the first `own` keep their dtype."""
    mx = runtime().mx
    kinds = [onp.empty((0,), p.dtype) if isinstance(p, Part) else p for p in inputs[own:]]
    dtype = onp.result_type(*kinds).name
    out = []
    for i, p in enumerate(inputs):
        if not isinstance(p, Part):
            value = onp.asarray(p)
            if value.ndim:
                raise BackendUnsupportedError("an array among the arguments that is no constant of the graph")
            p = Part(mx.sym.full((1,), value.item(), dtype=dtype), (), dtype)
        elif i >= own and p.dtype != dtype:
            p = Part(create("Cast", [p.symbol], {"dtype": dtype}, None), p.shape, dtype)
        out.append(p)
    return out


def item(x: Part, index: Any, name: str) -> Part:
    """x[index], for slices, integers, None and Ellipsis."""
    parts = list(index) if type(index) is tuple else [index]
    if any(not (p is None or p is Ellipsis or isinstance(p, (slice, int, onp.integer))) for p in parts):
        raise BackendUnsupportedError("an index that is an array")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        missing = len(x.shape) - sum(p is not None and p is not Ellipsis for p in parts)
        parts[at : at + 1] = [slice(None)] * missing
    begin, end, step, shape = [], [], [], []
    sizes = iter(x.shape)
    for p in parts:
        if p is None:
            shape.append(1)
            continue
        n = next(sizes)
        first, last, stride = p.indices(n) if isinstance(p, slice) else (int(p) % n, int(p) % n + 1, 1)
        count = len(range(first, last, stride))
        if not count:
            raise BackendUnsupportedError("an empty result")
        begin.append(first)
        end.append(None if last < 0 else last)
        step.append(stride)
        if isinstance(p, slice):
            shape.append(count)
    shape += sizes
    attributes = {"begin": text(begin), "end": text(end), "step": text(step)}
    symbol = create("slice", [x.symbol], attributes, name) if begin else x.symbol
    return Part(reshaped(symbol, None, tuple(shape)), tuple(shape), x.dtype)


def normalized(x: Part, gamma: Part, beta: Part, axes: Shape, eps: float, node: Node) -> list[Part]:
    """The four results of npx.normalize: y, mean, var, 1 / sqrt(var + eps)."""
    small = node.meta["value"][1].shape

    def run(operator: str, *symbols: Any, **attributes: str) -> Any:
        return create(operator, symbols, attributes, None)

    across = {"axis": text(tuple(axes)), "keepdims": "True"}
    center = run("mean", x.symbol, **across)
    off = run("broadcast_sub", x.symbol, center)
    spread = run("mean", run("square", off), **across)
    inverse = run("rsqrt", run("_plus_scalar", spread, scalar=text(eps)))
    y = run("broadcast_mul", run("broadcast_mul", off, inverse), gamma.symbol)
    y = run("broadcast_add", y, beta.symbol)
    return [Part(y, x.shape, x.dtype), *(Part(s, small, x.dtype) for s in (center, spread, inverse))]


# ------------------------------------------------------------------ making symbols
def reshaped(symbol: Any, known: Shape | None, shape: Shape) -> Any:
    """A symbol in another shape; as it is, if that is known to be its own."""
    if known is not None and (known or (1,)) == (shape or (1,)):
        return symbol
    return create("Reshape", [symbol], {"shape": text(shape or (1,))}, None)


def create(operator: str, symbols: Sequence[Any], attributes: dict[str, str], name: str | None) -> Any:
    """A symbol of an operator by MXNet's name for it, those of its NumPy interface among them."""
    from mxnet._ctypes.symbol import _symbol_creator

    handle = runtime().operator(operator)
    unique = name or f"{operator.strip('_').lower()}_{next(COUNT)}"
    keys, values = list(attributes), list(attributes.values())
    return _symbol_creator(handle, list(symbols), {}, keys, values, unique, False)
