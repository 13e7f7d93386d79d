"""to_onnx: what a function or model computes, as an ONNX model.

The program is captured on example inputs, so the graph is of rows with known shapes, and a row is said here in a few of
ONNX's operators. What follows from constants alone is computed now. The package onnx is imported where it is needed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as onp

from minnp import errors
from minnp.core.graph.effects import guard, is_loop, pick
from minnp.core.graph.graph import Graph
from minnp.core.graph.node import Node, target_name
from minnp.core.passes.constants import Known
from minnp.core.rows.primitive import Meta, Primitive
from minnp.core.rows.pytree import tree_flatten
from minnp.nn.model import Layer

from .capturing import capture

OPSET, IR = 17, 8
OPERATORS: dict[str, Callable] = {}  # name of a row -> (writer, node) -> the name of its result, or a list of names
# rows that are one operator of ONNX on operands of the result's dtype
SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "maximum": "Max",
    "minimum": "Min", "negative": "Neg", "absolute": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
    "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil", "rint": "Round", "sign": "Sign", "matmul": "MatMul",
    "reciprocal": "Reciprocal", "npx.relu": "Relu", "npx.sigmoid": "Sigmoid", "npx.softplus": "Softplus",
    "npx.erf": "Erf", "logical_and": "And", "logical_or": "Or", "logical_not": "Not", "positive": "Identity",
    "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan",
    "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh", "fabs": "Abs",
}  # fmt: skip
COMPARE = {
    "greater": "Greater", "less": "Less", "equal": "Equal", "greater_equal": "GreaterOrEqual",
    "less_equal": "LessOrEqual",
}  # fmt: skip
RESHAPED = ("reshape", "expand_dims", "squeeze", "ravel", "sum_to")
REDUCED = {"mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}
TRUTH = {"any": "ReduceMax", "all": "ReduceMin"}


def to_onnx(f: Any, *inputs: Any, path: str | os.PathLike | None = None) -> Any:
    """What f computes of arrays with the shapes and dtypes of `inputs`, as an onnx.ModelProto; also written to `path`.

    f        a function, a model or a GraphModule; a model is exported as it is in "test" mode
    inputs   examples: branches are taken as these take them
    Parameters become initializers, under the names of the model's tree. Raises BackendMissingError without the package
    onnx, BackendUnsupportedError, naming the node and its line, for what ONNX's operators do not say, and TypeError for
    a file's name among the inputs.

    >>> model = fx.to_onnx(lambda x: np.exp(x), np.ones(3, np.float32))
    >>> [node.op_type for node in model.graph.node]
    ['Exp', 'Identity']
    """
    if any(isinstance(x, (str, os.PathLike)) for x in inputs):
        raise TypeError(f"the inputs of to_onnx are arrays, got {inputs!r:.60}; a file's name is given as path=")
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        missing = "to_onnx needs the package onnx, which is not installed: pip install onnx"
        raise errors.BackendMissingError(missing) from None
    options = {"mode": "test"} if isinstance(f, Layer) and f.takes_mode else {}
    gm = capture(f, *inputs, **options)
    model = Writer(onnx, gm.graph, gm.class_name).model()
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        onnx.save(model, os.fspath(path))
    return model


class Writer:
    """Writes a graph's nodes as ONNX's. `names` has the name of each node's result, or a list of several."""

    def __init__(self, onnx: Any, graph: Graph, name: str) -> None:
        self.onnx, self.graph, self.title = onnx, graph, name
        self.known = Known(graph)
        self.nodes: list = []
        self.constants: dict[str, onp.ndarray] = {}
        self.names: dict[Node, Any] = {}
        self.taken = {n.name for n in graph.nodes}

    def model(self) -> Any:
        helper = self.onnx.helper
        inputs = []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self.names[node] = node.name
                inputs.append(self.described(node.name, self.meta(node)))
            elif node.op == "output":
                outputs = [self.result(x, i) for i, x in enumerate(tree_flatten(node.args[0])[0])]
            elif node.target is not guard:
                self.write(node)
        arrays = [self.onnx.numpy_helper.from_array(a, name) for name, a in self.constants.items()]
        graph = helper.make_graph(self.nodes, self.title, inputs, outputs, arrays)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="minnp"
        )

    def result(self, x: Any, i: int) -> Any:
        """An output, under a name of its own."""
        if not isinstance(x, Node):
            x = onp.asarray(x)
        meta = self.meta(x) if isinstance(x, Node) else Meta(x.shape, x.dtype)
        name = self.fresh("output" if i == 0 else f"output_{i}")
        self.nodes.append(self.onnx.helper.make_node("Identity", [self.name(x)], [name]))
        return self.described(name, meta)

    def described(self, name: str, meta: Meta) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(onp.dtype(meta.dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, list(meta.shape))

    # -------------------------------------------------------------- one node
    def write(self, node: Node) -> None:
        value = self.known(node)
        if value is not None:
            if node.op == "get_attr" or any(self.known(u) is None for u in node.users):
                self.constants[node.target if node.op == "get_attr" else node.name] = onp.ascontiguousarray(value)
                self.names[node] = node.target if node.op == "get_attr" else node.name
            return
        if node.target is pick:
            self.names[node] = self.names[node.args[0]][node.args[1]]
            return
        rule = OPERATORS.get(node.target.name) if isinstance(node.target, Primitive) else None
        if rule is None:
            unrolled = "; capture jit(f, compiler='numpy') to have loops unrolled" if is_loop(node) else ""
            raise self.refuse(node, f"has no operators of ONNX here{unrolled}")
        self.names[node] = rule(self, node)

    def refuse(self, node: Node, why: str) -> Exception:
        where = f", written at {node.meta['where']}" if node.meta.get("where") else ""
        shown = ", ".join(repr(a.meta.get("value")) for a in node.all_input_nodes)
        return errors.BackendUnsupportedError(
            f"to_onnx: the node {node.name} ({target_name(node.target)} of {shown}){where} {why}; write it in other "
            "functions, or export the parts around it, which fx.split_module makes"
        )

    # -------------------------------------------------------------- names and operators
    def meta(self, x: Any) -> Meta:
        if isinstance(x, Node):
            return x.meta["value"]
        x = onp.asarray(x)
        return Meta(x.shape, x.dtype)

    def fresh(self, name: str) -> str:
        found, k = name, 0
        while found in self.taken or found in self.constants:
            k += 1
            found = f"{name}_{k}"
        self.taken.add(found)
        return found

    def name(self, x: Any, dtype: Any = None) -> str:
        """The name of a value, cast to a dtype if one is given."""
        if not isinstance(x, Node):
            return self.constant(x, dtype)
        if x not in self.names:
            value = self.known(x)
            if value is None:
                raise self.refuse(x, "is no value of ONNX")
            return self.constant(value, dtype)
        name = self.names[x]
        return name if dtype is None or self.meta(x).dtype == dtype else self.cast(name, dtype)

    def constant(self, value: Any, dtype: Any = None) -> str:
        name = self.fresh("constant")
        self.constants[name] = onp.ascontiguousarray(onp.asarray(value, dtype))
        if onp.ndim(value) == 0:
            self.constants[name] = self.constants[name].reshape(())
        return name

    def ints(self, values: Sequence[int]) -> str:
        return self.constant(onp.asarray(list(values), onp.int64))

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """The name of the result of an operator, or a list of names."""
        names = [self.fresh(kind.lower()) for _ in range(results)]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if results == 1 else names

    def cast(self, name: str, dtype: Any) -> str:
        return self.op("Cast", name, to=self.onnx.helper.np_dtype_to_tensor_dtype(onp.dtype(dtype)))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", name, self.ints(shape), allowzero=int(0 in shape))


def operator(*names: str) -> Callable:
    def enter(rule: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, rule))
        return rule

    return enter


def parameters(w: Writer, node: Node, **known: Any) -> tuple:
    """The values of a row's parameters, with their defaults. Raises for others that are set."""
    for name, value in node.kwargs.items():
        if name not in known and value is not None:
            raise w.refuse(node, f"has no {name}= in ONNX")
    return tuple(node.kwargs.get(name, default) for name, default in known.items())


# ------------------------------------------------------------------ elementwise
@operator(*SAME)
def same(w: Writer, node: Node) -> str:
    parameters(w, node)
    dtype = w.meta(node).dtype
    return w.op(SAME[node.target.name], *[w.name(a, dtype) for a in node.args])


@operator(*COMPARE)
def compare(w: Writer, node: Node) -> str:
    dtypes = [a if isinstance(a, (int, float, bool)) else w.meta(a).dtype for a in node.args]
    dtype = onp.result_type(*dtypes)
    return w.op(COMPARE[node.target.name], *[w.name(a, dtype) for a in node.args])


@operator("copy")
def copy(w: Writer, node: Node) -> str:
    return w.name(node.args[0])  # values have no memory order


@operator("isinf")
def isinf(w: Writer, node: Node) -> str:
    if w.meta(node.args[0]).dtype.kind != "f":
        raise w.refuse(node, "has no IsInf of integers in ONNX")
    return w.op("IsInf", w.name(node.args[0]))


@operator("round")
def rounded(w: Writer, node: Node) -> str:
    (decimals,) = parameters(w, node, decimals=0)
    x, dtype = w.name(node.args[0]), w.meta(node).dtype
    if dtype.kind != "f":
        if decimals < 0:
            raise w.refuse(node, "has no Round of integers in ONNX")
        return x
    if not decimals:
        return w.op("Round", x)
    scale, steps = w.constant(10.0 ** abs(decimals), dtype), ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return w.op(steps[1], w.op("Round", w.op(steps[0], x, scale)), scale)


@operator("not_equal")
def not_equal(w: Writer, node: Node) -> str:
    dtype = onp.result_type(*[a if isinstance(a, (int, float, bool)) else w.meta(a).dtype for a in node.args])
    return w.op("Not", w.op("Equal", *[w.name(a, dtype) for a in node.args]))


@operator("where")
def where(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    return w.op("Where", w.name(node.args[0], bool), *[w.name(a, dtype) for a in node.args[1:]])


@operator("bitwise_and", "bitwise_or", "bitwise_xor", "invert")
def bits(w: Writer, node: Node) -> str:
    if w.meta(node).dtype != bool:
        raise w.refuse(node, "is of integers' bits")
    kind = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "invert": "Not"}[node.target.name]
    return w.op(kind, *[w.name(a, bool) for a in node.args])


@operator("isnan")
def isnan(w: Writer, node: Node) -> str:
    return w.op("IsNaN", w.name(node.args[0]))


@operator("remainder", "floor_divide")
def remainder(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    if dtype.kind not in "iuf" or (dtype.kind != "f" and node.target.name == "floor_divide"):
        raise w.refuse(node, f"has no operators of ONNX for {dtype}")
    x, y = (w.name(a, dtype) for a in node.args)
    if dtype.kind != "f":
        return w.op("Mod", x, y)
    whole = w.op("Floor", w.op("Div", x, y))
    return whole if node.target.name == "floor_divide" else w.op("Sub", x, w.op("Mul", whole, y))


@operator("square")
def square(w: Writer, node: Node) -> str:
    x = w.name(node.args[0])
    return w.op("Mul", x, x)


@operator("log1p")
def log1p(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    return w.op("Log", w.op("Add", w.name(node.args[0], dtype), w.constant(1, dtype)))


@operator("expm1")
def expm1(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    return w.op("Sub", w.op("Exp", w.name(node.args[0], dtype)), w.constant(1, dtype))


@operator("astype")
def astype(w: Writer, node: Node) -> str:
    return w.cast(w.name(node.args[0]), w.meta(node).dtype)


@operator("clip")
def clip(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    x, low, high = (*node.args, None, None)[:3]
    low, high = node.kwargs.get("low", low), node.kwargs.get("high", high)
    y = w.name(x, dtype)
    y = y if low is None else w.op("Max", y, w.name(low, dtype))
    return y if high is None else w.op("Min", y, w.name(high, dtype))


@operator("npx.silu")
def silu(w: Writer, node: Node) -> str:
    x = w.name(node.args[0])
    return w.op("Mul", x, w.op("Sigmoid", x))


@operator("npx.gelu")
def gelu(w: Writer, node: Node) -> str:
    x, dtype = w.name(node.args[0]), w.meta(node).dtype
    twice = w.op("Add", w.op("Erf", w.op("Mul", x, w.constant(sqrt(0.5), dtype))), w.constant(1, dtype))
    return w.op("Mul", w.op("Mul", x, w.constant(0.5, dtype)), twice)


@operator("npx.gelu_tanh")
def gelu_tanh(w: Writer, node: Node) -> str:
    x, dtype = w.name(node.args[0]), w.meta(node).dtype
    cubic = w.op("Mul", w.op("Mul", w.op("Mul", x, x), x), w.constant(0.044715, dtype))
    inner = w.op("Mul", w.op("Add", x, cubic), w.constant(sqrt(2 / onp.pi), dtype))
    twice = w.op("Add", w.op("Tanh", inner), w.constant(1, dtype))
    return w.op("Mul", w.op("Mul", x, w.constant(0.5, dtype)), twice)


@operator("npx.elu")
def elu(w: Writer, node: Node) -> str:
    (alpha,) = parameters(w, node, alpha=1.0)
    return w.op("Elu", w.name(node.args[0]), alpha=float(alpha))


@operator("npx.leaky_relu")
def leaky_relu(w: Writer, node: Node) -> str:
    (slope,) = parameters(w, node, slope=0.25)
    return w.op("LeakyRelu", w.name(node.args[0]), alpha=float(slope))


@operator("npx.softmax", "npx.log_softmax")
def softmax(w: Writer, node: Node) -> str:
    (axis,) = parameters(w, node, axis=-1)
    kind = "Softmax" if node.target.name == "npx.softmax" else "LogSoftmax"
    return w.op(kind, w.name(node.args[0], w.meta(node).dtype), axis=int(axis))


# ------------------------------------------------------------------ shapes
@operator(*RESHAPED)
def reshape(w: Writer, node: Node) -> str:
    if w.meta(node).size != w.meta(node.args[0]).size:
        raise w.refuse(node, "sums and reshapes at once")
    return w.reshaped(w.name(node.args[0]), w.meta(node).shape)


@operator("transpose", "swapaxes", "moveaxis")
def transpose(w: Writer, node: Node) -> str:
    x = w.meta(node.args[0])
    tagged = onp.empty(1, "b")  # an array of which each axis has its number as its stride
    tagged = onp.lib.stride_tricks.as_strided(tagged, (1,) * x.ndim, tuple(range(x.ndim)))
    axes = node.target.numpy(tagged, **node.kwargs).strides
    return w.op("Transpose", w.name(node.args[0]), perm=list(axes))


@operator("broadcast_to")
def broadcast_to(w: Writer, node: Node) -> str:
    return w.op("Expand", w.name(node.args[0]), w.ints(w.meta(node).shape))


@operator("concatenate")
def concatenate(w: Writer, node: Node) -> str:
    (axis,) = parameters(w, node, axis=0)
    dtype, ndim = w.meta(node).dtype, w.meta(node).ndim
    return w.op("Concat", *[w.name(a, dtype) for a in node.args], axis=int(axis) % ndim)


@operator("stack")
def stack(w: Writer, node: Node) -> str:
    (axis,) = parameters(w, node, axis=0)
    meta = w.meta(node)
    at = int(axis) % meta.ndim
    one = [1 if i == at else n for i, n in enumerate(meta.shape)]
    return w.op("Concat", *[w.reshaped(w.name(a, meta.dtype), one) for a in node.args], axis=at)


@operator("einsum")
def einsum(w: Writer, node: Node) -> str:
    subscripts, _ = parameters(w, node, subscripts="", optimize=False)
    dtype = w.meta(node).dtype
    return w.op("Einsum", *[w.name(a, dtype) for a in node.args], equation=subscripts)


@operator("write_view")
def padded(w: Writer, node: Node) -> str:
    """Zeros of which a block is written: np.pad."""
    old, new, index = w.known(node.args[0]), node.args[1], node.kwargs["index"]
    parts = index if type(index) is tuple else (index,)
    plain = isinstance(old, onp.ndarray) and not node.kwargs["steps"] and len(parts) == old.ndim and old.size
    if not plain or not all(isinstance(p, slice) and p.step in (None, 1) for p in parts) or (old != old.flat[0]).any():
        raise w.refuse(node, "is a write, and ONNX has values alone")
    ranges = [p.indices(n) for p, n in zip(parts, old.shape, strict=True)]
    if w.meta(new).shape != tuple(stop - start for start, stop, _ in ranges):
        raise w.refuse(node, "is a write of what is broadcast")
    pads = [start for start, _, _ in ranges] + [n - stop for (_, stop, _), n in zip(ranges, old.shape, strict=True)]
    return w.op("Pad", w.name(new, old.dtype), w.ints(pads), w.constant(old.flat[0], old.dtype))


@operator("getitem")
def getitem(w: Writer, node: Node) -> str:
    index = node.kwargs.get("index", node.args[1] if len(node.args) > 1 else None)
    x = w.meta(node.args[0])
    parts = index if type(index) is tuple else (index,)
    parts = tuple(onp.asarray(p) if isinstance(p, list) else p for p in parts)
    arrays = [p for p in parts if isinstance(p, (Node, onp.ndarray))]
    if any(isinstance(s, Node) for p in parts if isinstance(p, slice) for s in (p.start, p.stop, p.step)):
        raise w.refuse(node, "takes places that are computed")
    if arrays and (len(arrays) > 1 or not all(isinstance(p, slice) or p is Ellipsis or p is arrays[0] for p in parts)):
        raise w.refuse(node, "takes an array beside other arrays, numbers or None")
    if arrays and w.meta(arrays[0]).dtype.kind not in "iu":
        raise w.refuse(node, "takes a mask, whose result has no fixed shape")
    used = sum(p is not None and p is not Ellipsis for p in parts)
    parts = (*parts, *([] if any(p is Ellipsis for p in parts) else [Ellipsis]))
    at = next(i for i, p in enumerate(parts) if p is Ellipsis)
    parts = (*parts[:at], *[slice(None)] * (x.ndim - used), *parts[at + 1 :])
    starts, ends, axes, steps = [], [], [], []
    gathered = next((axis for axis, p in enumerate(parts) if isinstance(p, (Node, onp.ndarray))), None)
    for axis, p in enumerate(p for p in parts if p is not None):
        if axis == gathered:
            continue
        begin, end, step = (p, p + 1 or x.shape[axis], 1) if not isinstance(p, slice) else p.indices(x.shape[axis])
        if (begin, end, step) != (0, x.shape[axis], 1):
            starts.append(begin)
            ends.append(end if end >= 0 or not isinstance(p, slice) else -(2**62))
            axes.append(axis)
            steps.append(step)
    y = w.name(node.args[0])
    if starts:
        y = w.op("Slice", y, w.ints(starts), w.ints(ends), w.ints(axes), w.ints(steps))
    if gathered is not None:
        return w.op("Gather", y, w.name(arrays[0], onp.int64), axis=gathered)
    return w.reshaped(y, w.meta(node).shape)


def line(w: Writer, node: Node, axis: Any) -> tuple[str, int, int]:
    """(the operand, an axis of it, how long that is); of all of its elements in a row where axis is None."""
    x, shape = w.name(node.args[0]), w.meta(node.args[0]).shape
    return (w.reshaped(x, [prod(shape)]), 0, prod(shape)) if axis is None else (x, int(axis), shape[axis])


@operator("take")
def take(w: Writer, node: Node) -> str:
    axis, mode = parameters(w, node, axis=None, mode="raise")
    if mode != "raise":
        raise w.refuse(node, f"has no mode={mode!r} in ONNX")
    x, axis, _ = line(w, node, axis)
    return w.op("Gather", x, w.name(node.args[1], onp.int64), axis=axis)


@operator("flip")
def flip(w: Writer, node: Node) -> str:
    (axis,) = parameters(w, node, axis=None)
    axes = axes_of(axis, w.meta(node).ndim)
    ends, steps = [-(2**62)] * len(axes), [-1] * len(axes)
    return w.op("Slice", w.name(node.args[0]), w.ints([-1] * len(axes)), w.ints(ends), w.ints(axes), w.ints(steps))


@operator("roll")
def roll(w: Writer, node: Node) -> str:
    shift, axis = parameters(w, node, shift=0, axis=None)
    if not all(isinstance(v, (int, onp.integer, type(None))) for v in (shift, axis)):
        raise w.refuse(node, "rolls along several axes; roll along one after the other")
    x, axis, n = line(w, node, axis)
    places = w.constant(onp.roll(onp.arange(n), shift))
    return w.reshaped(w.op("Gather", x, places, axis=axis), w.meta(node).shape)


@operator("repeat")
def repeat(w: Writer, node: Node) -> str:
    repeats, axis = parameters(w, node, repeats=1, axis=None)
    x, axis, n = line(w, node, axis)
    return w.op("Gather", x, w.constant(onp.repeat(onp.arange(n), repeats)), axis=axis)


# ------------------------------------------------------------------ reductions
def axes_of(axis: Any, ndim: int) -> list[int]:
    axes = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return [int(a) % ndim for a in axes]


@operator("sum")
def total(w: Writer, node: Node) -> str:
    axis, keepdims, _ = parameters(w, node, axis=None, keepdims=False, dtype=None)
    x, ndim = w.name(node.args[0], w.meta(node).dtype), w.meta(node.args[0]).ndim
    return w.op("ReduceSum", x, w.ints(axes_of(axis, ndim)), keepdims=int(bool(keepdims))) if ndim else x


@operator(*REDUCED)
def reduced(w: Writer, node: Node) -> str:
    axis, keepdims, _ = parameters(w, node, axis=None, keepdims=False, dtype=None)
    x, ndim = w.name(node.args[0], w.meta(node).dtype), w.meta(node.args[0]).ndim
    axes = axes_of(axis, ndim)
    return w.op(REDUCED[node.target.name], x, axes=axes, keepdims=int(bool(keepdims))) if ndim else x


@operator(*TRUTH)
def truth(w: Writer, node: Node) -> str:
    axis, keepdims = parameters(w, node, axis=None, keepdims=False)
    x, ndim = w.cast(w.name(node.args[0], onp.bool_), onp.int32), w.meta(node.args[0]).ndim
    axes = axes_of(axis, ndim)
    return w.cast(w.op(TRUTH[node.target.name], x, axes=axes, keepdims=int(bool(keepdims))) if ndim else x, onp.bool_)


@operator("argmax", "argmin")
def arg(w: Writer, node: Node) -> str:
    axis, keepdims = parameters(w, node, axis=None, keepdims=False)
    x = w.name(node.args[0])
    kind = "ArgMax" if node.target.name == "argmax" else "ArgMin"
    if axis is None:
        y = w.op(kind, w.reshaped(x, [w.meta(node.args[0]).size]), axis=0, keepdims=0)
        return w.reshaped(y, w.meta(node).shape)
    return w.op(kind, x, axis=int(axis), keepdims=int(bool(keepdims)))


@operator("linalg.norm")
def norm(w: Writer, node: Node) -> str:
    axis, keepdims, order = parameters(w, node, axis=None, keepdims=False, ord=None)
    if order is not None:
        raise w.refuse(node, f"has no ord={order!r} here")
    x, ndim = w.name(node.args[0], w.meta(node).dtype), w.meta(node.args[0]).ndim
    return w.op("ReduceL2", x, axes=axes_of(axis, ndim), keepdims=int(bool(keepdims)))


@operator("cumsum")
def cumsum(w: Writer, node: Node) -> str:
    axis, _ = parameters(w, node, axis=None, dtype=None)
    x = w.name(node.args[0], w.meta(node).dtype)
    x = w.reshaped(x, w.meta(node).shape) if axis is None else x
    return w.op("CumSum", x, w.constant(onp.int64(axis or 0)))


@operator("var", "std")
def spread(w: Writer, node: Node) -> str:
    axis, keepdims, ddof, _ = parameters(w, node, axis=None, keepdims=False, ddof=0, dtype=None)
    meta, dtype = w.meta(node.args[0]), w.meta(node).dtype
    axes = axes_of(axis, meta.ndim)
    _, _, y = moments(w, w.name(node.args[0], dtype), axes, bool(keepdims))
    if ddof:
        count = prod(meta.shape[a] for a in axes)
        y = w.op("Mul", y, w.constant(count / (count - ddof), dtype))
    return w.op("Sqrt", y) if node.target.name == "std" else y


def moments(w: Writer, x: str, axes: list[int], keepdims: bool = True) -> tuple[str, str, str]:
    """(the mean of x over the axes, x less that, the mean of its square)"""
    mean = w.op("ReduceMean", x, axes=axes, keepdims=1)
    less = w.op("Sub", x, mean)
    return mean, less, w.op("ReduceMean", w.op("Mul", less, less), axes=axes, keepdims=int(keepdims))


# ------------------------------------------------------------------ layers
@operator("npx.normalize")
def normalize(w: Writer, node: Node) -> list[str]:
    axes, eps = parameters(w, node, axes=None, eps=1e-5)
    dtype = w.meta(node)[0].dtype if isinstance(w.meta(node), tuple) else w.meta(node).dtype
    x, gamma, beta = (w.name(a, dtype) for a in node.args)
    axes = axes_of(axes, w.meta(node.args[0]).ndim)
    mean, less, var = moments(w, x, axes)
    inverse = w.op("Reciprocal", w.op("Sqrt", w.op("Add", var, w.constant(eps, dtype))))
    y = w.op("Add", w.op("Mul", w.op("Mul", less, inverse), gamma), beta)
    return [y, mean, var, inverse]


def window(node: Node, kernel: Sequence[int]) -> dict[str, Any]:
    p = node.kwargs
    return {
        "kernel_shape": list(kernel),
        "strides": list(p["stride"]),
        "pads": [*p["pad"], *p["pad"]],
        **({"dilations": list(p["dilate"]), "group": int(p.get("groups", 1))} if "dilate" in p else {}),
    }


@operator("npx.conv")
def conv(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    x, weight = (w.name(a, dtype) for a in node.args)
    return w.op("Conv", x, weight, **window(node, w.meta(node.args[1]).shape[2:]))


@operator("npx.conv_act")
def conv_act(w: Writer, node: Node) -> str:
    dtype = w.meta(node).dtype
    x, weight, bias, *other = (w.name(a, dtype) for a in node.args)
    y = w.op("Conv", x, weight, bias, **window(node, w.meta(node.args[1]).shape[2:]))
    for term in other:
        y = w.op("Add", y, term)
    return w.op("Relu", y) if node.kwargs.get("activation") else y


@operator("npx.conv_transpose")
def conv_transpose(w: Writer, node: Node) -> str:
    dtype, p, kernel = w.meta(node).dtype, node.kwargs, w.meta(node.args[1]).shape[2:]
    x, weight = (w.name(a, dtype) for a in node.args[:2])
    given = w.meta(node.args[0]).shape[2:]
    steps = zip(p["size"], given, p["stride"], p["pad"], p["dilate"], kernel, strict=True)
    more = [size - ((n - 1) * s - 2 * pad + d * (k - 1) + 1) for size, n, s, pad, d, k in steps]
    return w.op("ConvTranspose", x, weight, output_padding=more, **window(node, kernel))


@operator("npx.max_pool")
def max_pool(w: Writer, node: Node) -> str:
    options = window(node, node.kwargs["kernel"])
    return w.op("MaxPool", w.name(node.args[0]), ceil_mode=int(node.kwargs.get("ceil", False)), **options)


@operator("npx.sum_pool")
def sum_pool(w: Writer, node: Node) -> str:
    if node.kwargs.get("ceil"):
        raise w.refuse(node, "pools windows that stick out, which ONNX counts otherwise")
    options = window(node, node.kwargs["kernel"])
    mean = w.op("AveragePool", w.name(node.args[0]), count_include_pad=1, **options)
    return w.op("Mul", mean, w.constant(prod(node.kwargs["kernel"]), w.meta(node).dtype))
