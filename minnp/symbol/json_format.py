"""Symbols as text: the `-symbol.json` files of every MXNet since 0.8, as lists of nodes.

`parse_json` checks that the text describes a graph (every input is a result of an earlier node), and gives files of
older versions what the newest would have written: one dictionary of attributes, hidden names with underscores around
them, auxiliary states as variables. What the operators are, and how many results they have, it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

from ..errors import SymbolError

VERSION = 10901  # what files are written as: MXNet 1.9.1

# What may be said of a variable or of where a node runs. Before 0.9 these had no underscores around them.
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")

# Which input of an operator `weight_lr_mult` is about, where a node says it of its input.
_LAYER, _NORM = ("data", "weight", "bias"), ("data", "gamma", "beta")
_INPUTS = {
    "FullyConnected": _LAYER,
    "Convolution": _LAYER,
    "Deconvolution": _LAYER,
    "Embedding": ("data", "weight"),
    "BatchNorm": _NORM,
    "CuDNNBatchNorm": _NORM,
    "InstanceNorm": _NORM,
    "LeakyReLU": ("data", "gamma"),
    "RNN": ("data", "parameters", "state", "state_cell"),
}
# The auxiliary states that files before 0.9 left out: how many inputs they follow, and how each begins.
_ZERO, _ONE = '["zero", {}]', '["one", {}]'
_STATES = {
    "BatchNorm": (3, {"moving_mean": _ZERO, "moving_var": _ONE}),
    "CuDNNBatchNorm": (3, {"moving_mean": _ZERO, "moving_inv_var": _ZERO}),
    "IdentityAttachKLSparseReg": (1, {"moving_avg": _ZERO}),
}
_SLOPE = '["Constant", {"value": 0.25}]'


@dataclass
class Node:
    """A variable (op "null") or a call of an operator.

    attrs       the operator's parameters and what else is said of the node, all texts
    inputs      (number of a node before this one, which of its results)
    subgraphs   the bodies of control flow
    """

    op: str
    name: str
    attrs: dict[str, str] = field(default_factory=dict)
    inputs: list[tuple[int, int]] = field(default_factory=list)
    subgraphs: list[SymbolFile] = field(default_factory=list)


@dataclass
class SymbolFile:
    """What a symbol's JSON says: nodes, each after its inputs, and the results that are the symbol's.

    heads   (number of a node, which of its results)
    attrs   of the whole graph: {"mxnet_version": 10901, "is_np_shape": 1}; the version is that which wrote the file
    """

    nodes: list[Node]
    heads: list[tuple[int, int]]
    attrs: dict[str, int | str | list[Any]] = field(default_factory=dict)

    @property
    def arg_nodes(self) -> list[int]:
        """The numbers of the variables."""
        return [i for i, node in enumerate(self.nodes) if node.op == "null"]


def parse_json(text: str | bytes) -> SymbolFile:
    """The symbol that a JSON text describes, as MXNet 1.9.1 would write it, whichever version wrote it.

    Raises SymbolError, which is a ValueError, where the text is no JSON or describes no graph; it says where.
    """
    try:
        return _symbol(json.loads(text), "", None)
    except (ValueError, RecursionError) as error:
        if isinstance(error, SymbolError):
            raise
        raise SymbolError(f"a symbol's JSON cannot be read: {error}") from None


def to_json(file: SymbolFile, results: Callable[[Node], int] | None = None) -> str:
    """The JSON text of a symbol, as MXNet 1.9.1 writes it.

    results   how many results a node has; without it the text has no "node_row_ptr", which no reader needs
    """
    described = _described(file, results)
    described["attrs"] = described.get("attrs", {}) | {"mxnet_version": ["int", VERSION]}
    return json.dumps(described, indent=2)


# ------------------------------------------------------------------ reading
def _symbol(given: Any, where: str, version: int | None) -> SymbolFile:
    """The symbol that a JSON value describes. `version` is that of the symbol it is a subgraph of."""
    known = {"nodes", "arg_nodes", "heads", "head", "node_row_ptr", "attrs"}
    lists = {"nodes": list, "arg_nodes": list, "node_row_ptr": list}
    _fields(given, where or "the symbol", known, {**lists, "attrs": dict})
    where = where and f"{where}."
    heads = "head" if "head" in given else "heads"
    for name in ("nodes", heads):
        if not given.get(name):
            _refuse(f"{where}{name}", "a list that is not empty", given.get(name, "nothing"))
    attrs = {name: _graph_attribute(value, f"{where}attrs[{name!r}]") for name, value in given.get("attrs", {}).items()}
    if type(attrs.get("mxnet_version", 0)) is not int:
        _refuse(f"{where}attrs['mxnet_version']", "['int', number]", given["attrs"]["mxnet_version"])
    if version is None:
        version = attrs.get("mxnet_version", 800)  # 0.8 and older did not say it
    nodes = [_node(entry, i, f"{where}nodes[{i}]", version) for i, entry in enumerate(given["nodes"])]
    for at, i in enumerate(given.get("arg_nodes", ())):
        if type(i) is not int or not 0 <= i < len(nodes) or nodes[i].op != "null":
            _refuse(f"{where}arg_nodes[{at}]", f"the number of a variable among {len(nodes)} nodes", i)
    file = SymbolFile(nodes, _entries(given[heads], len(nodes), f"{where}{heads}"), attrs)
    _upgrade(file, version)
    return file


def _node(given: Any, number: int, where: str, version: int) -> Node:
    known = {"op", "name", "param", "attr", "attrs", "inputs", "control_deps", "backward_source_id", "subgraphs"}
    lists = {"inputs": list, "control_deps": list, "subgraphs": list}
    _fields(given, where, known, {"op": str, "name": str, "param": dict, "attr": dict, "attrs": dict, **lists})
    for name in ("op", "name", "inputs"):
        if name not in given:
            _refuse(f"{where}.{name}", f"{'a list' if name == 'inputs' else 'a text'}", "nothing")
    where = f"{where} ({given['name']!r:.80})"
    if given.get("backward_source_id", -1) != -1:
        raise SymbolError(
            f"{where} is the gradient of another node: MXNet 0.8 wrote it for Symbol.grad. Load the symbol that was "
            "differentiated, and bind it with gradients"
        )
    if given.get("control_deps"):
        _refuse(f"{where}.control_deps", "empty: only graphs without them can be read", given["control_deps"])
    attrs: dict[str, str] = {}
    for group in ("param", "attr", "attrs"):  # where two say the same, MXNet keeps what is no `param`
        for name, value in given.get(group, {}).items():
            if not isinstance(value, str):
                _refuse(f"{where}.{group}[{name!r}]", "a text", value)
            attrs[name] = value
    inputs = _entries(given["inputs"], number, f"{where}.inputs")
    if given["op"] == "null" and inputs:
        _refuse(f"{where}.inputs", "none, as it is a variable", given["inputs"])
    graphs = [_symbol(s, f"{where}.subgraphs[{i}]", version) for i, s in enumerate(given.get("subgraphs", ()))]
    return Node(given["op"], given["name"], attrs, inputs, graphs)


def _entries(given: Any, number: int, where: str) -> list[tuple[int, int]]:
    """[[node, result], ...] or [[node, result, version], ...] of nodes before `number`."""
    if not isinstance(given, list):
        _refuse(where, "a list", given)
    for i, entry in enumerate(given):
        if not isinstance(entry, list) or len(entry) not in (2, 3) or any(type(x) is not int or x < 0 for x in entry):
            _refuse(f"{where}[{i}]", "[node, result] or [node, result, version], each 0 or more", entry)
        if entry[0] >= number:
            _refuse(f"{where}[{i}]", f"one of the {number} nodes before it", f"node {entry[0]}")
    return [(entry[0], entry[1]) for entry in given]


def _graph_attribute(given: Any, where: str) -> Any:
    """10901 of ["int", 10901]."""
    if not isinstance(given, list) or len(given) != 2 or type(given[1]) not in (int, str, list):
        _refuse(where, "['int', number], ['str', text] or [type, list]", given)
    return given[1]


def _fields(given: Any, where: str, known: set[str], types: dict[str, type]) -> None:
    if not isinstance(given, dict):
        _refuse(where, "an object", given)
    for name, value in given.items():
        if name not in known:
            _refuse(where, f"only {', '.join(sorted(known))}", f"{name!r}")
        if name in types and not isinstance(value, types[name]):
            _refuse(f"{where}.{name}", {list: "a list", dict: "an object", str: "a text"}[types[name]], value)


def _refuse(where: str, expected: str, found: Any) -> NoReturn:
    raise SymbolError(f"a symbol's JSON cannot be read: {where} should be {expected}; found {str(found)[:80]}")


# ------------------------------------------------------------------ older versions
def _upgrade(file: SymbolFile, version: int) -> None:
    """Make `file` what MXNet 1.9.1 would have written."""
    if version < 900:
        _add_states(file)
    for node in file.nodes:
        _hide(node, file.nodes)
        if version < 904:
            _say_how_states_begin(node, file.nodes)
        if version < 905 and node.op in ("argmax", "argmin") and node.attrs.get("axis") == "-1":
            del node.attrs["axis"]  # -1 stood for all axes


def _add_states(file: SymbolFile) -> None:
    """Put the auxiliary states, which files before 0.9 leave out, before the nodes that have them."""
    nodes: list[Node] = []
    moved: list[int] = []  # where each node is now
    for node in file.nodes:
        node.inputs = [(moved[at], result) for at, result in node.inputs]
        count, states = _STATES.get(node.op, (-1, {}))
        if len(node.inputs) == count:
            for name in states:
                node.inputs.append((len(nodes), 0))
                nodes.append(Node("null", f"{node.name}_{name}" if node.name else name, dict(node.attrs)))
        moved.append(len(nodes))
        nodes.append(node)
    file.nodes, file.heads = nodes, [(moved[at], result) for at, result in file.heads]


def _hide(node: Node, nodes: Sequence[Node]) -> None:
    """lr_mult becomes __lr_mult__, weight_lr_mult of an operator __lr_mult__ of the variable that is its weight."""
    for name in [n for n in node.attrs if n.endswith(HIDDEN)]:
        key = next(k for k in HIDDEN if name.endswith(k))
        if name == key:
            node.attrs[f"__{key}__"] = node.attrs.pop(name)
            continue
        arguments = _INPUTS.get(node.op, ())
        argument = name.removesuffix(f"_{key}")
        if argument in arguments and arguments.index(argument) < len(node.inputs):
            variable = nodes[node.inputs[arguments.index(argument)][0]]
            if variable.op == "null":
                variable.attrs[f"__{key}__"] = node.attrs.pop(name)


def _say_how_states_begin(node: Node, nodes: Sequence[Node]) -> None:
    """The initializers that 0.9.4 and later write down with a variable."""
    first, states = _STATES.get(node.op, (1, {"gamma": _SLOPE} if node.op == "LeakyReLU" else {}))
    for (at, _), value in zip(node.inputs[first:], states.values(), strict=False):
        if nodes[at].op == "null":
            nodes[at].attrs.setdefault("__init__", value)


# ------------------------------------------------------------------ writing
def _described(file: SymbolFile, results: Callable[[Node], int] | None) -> dict[str, Any]:
    nodes = []
    for node in file.nodes:
        entry: dict[str, Any] = {"op": node.op, "name": node.name}
        if node.attrs:
            entry["attrs"] = dict(sorted(node.attrs.items()))
        entry["inputs"] = [[at, result, 0] for at, result in node.inputs]
        if node.subgraphs:
            entry["subgraphs"] = [_described(s, results) for s in node.subgraphs]
        nodes.append(entry)
    out: dict[str, Any] = {"nodes": nodes, "arg_nodes": file.arg_nodes}
    if results is not None:
        out["node_row_ptr"] = list(accumulate(map(results, file.nodes), initial=0))
    out["heads"] = [[at, result, 0] for at, result in file.heads]
    if file.attrs:
        types = {int: "int", str: "str", list: "list_int"}
        out["attrs"] = {name: [types[type(value)], value] for name, value in sorted(file.attrs.items())}
    return out
