"""An executor's work compiled: what it computes at every call, as two graphs, one for each way, that `jit` runs.

MXNet's executors are such programs too. Under a policy that prefers torch the calls of an executor after the first run
compiled: a third of what a small layer costs is finding its kernel, and inside a graph nobody sees how arrays lie, so
that convolutions have channels last, as oneDNN computes them.

For prediction MXNet's executors also fuse layers, and bring weights to oneDNN's layout once. So do these, for
parameters that stay what they are from call to call: they are compared with copies, byte by byte, as anybody may write
into them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import jit, vjp

from ..core.arrays.array import array_of, read, unwrap, wrap
from ..core.graph.effects import guard, pick
from ..core.graph.node import Node
from ..core.passes.memory import shows
from ..core.rows.dispatch import bind
from ..core.rows.policy import current
from ..core.rows.primitive import TABLE, Joint, Primitive
from ..errors import CaptureError
from ..fx import GraphModule, capture, fold_convolutions, split_module


def compilable(program: Any, arrays: Sequence[Any]) -> bool:
    """Whether here, and of these arrays, a program is one graph of torch's kernels: nothing in it draws, or runs Python
    of the user's or of control flow, and all lies in NumPy's memory."""
    plain = all(
        not n.operator.drawn and n.operator.bodies is None and n.operator.name != "Custom" for n in program.steps
    )
    return current().name == "prefer_torch" and plain and all(type(read(a)) is onp.ndarray for a in arrays)


def channels_last(program: Any, arguments: Sequence[Any]) -> list:
    """The arguments, the data and weights of two-dimensional convolutions with their second axis last in memory."""
    convolved = {id(child) for n in program.steps if n.operator.name == "Convolution" for child, _ in n.inputs[:2]}
    out = list(arguments)
    for i, (node, a) in enumerate(zip(program.variables, arguments)):
        if id(node) in convolved and a.ndim == 4 and a.shape[1] > 1 and a.shape[2] * a.shape[3] > 1:
            out[i] = np.transpose(np.transpose(a, (0, 2, 3, 1)).copy(), (0, 3, 1, 2))
    return out


def forward(program: Any, is_train: bool) -> Callable:
    """(arguments, states) -> (results, states afterwards)."""

    @jit
    def compute(arguments: Sequence[Any], states: Sequence[Any]) -> tuple[list, list]:
        return program(channels_last(program, arguments), states, is_train)

    convolves = any(n.operator.name == "Convolution" for n in program.steps)
    fixed = _Fixed(program) if convolves and not is_train else None

    def run(arguments: Sequence[Any], states: Sequence[Any]) -> tuple[list, list]:
        results = fixed and fixed([*arguments, *states])
        results, after = (results, list(states)) if results is not None else compute(arguments, states)
        return [np.ascontiguousarray(r) if np.ndim(r) else r for r in results], after

    return run


LAYERS = {"Convolution", "BatchNorm", "FullyConnected"}
SERVED = 32  # calls in which a fixed program has saved what it cost to make


class _Fixed:
    """A program outside training, with the parameters of its convolutions and what follows them as constants.

    copies   of the parameters, as they are in `run`
    run      (the other values) -> the results, once the parameters were the same in two calls
    wait     calls without a look at the parameters: twice as many each time that they changed too soon
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        read = {id(child) for n in program.steps if n.operator.name in LAYERS for child, _ in n.inputs[1:]}
        self.places = [i for i, node in enumerate(program.variables) if id(node) in read]
        self.others = [i for i, node in enumerate(program.variables) if id(node) not in read]
        self.copies: list[onp.ndarray] | None = None
        self.run: Callable | None = None
        self.wait: float = 0
        self.next, self.served = 1, 0

    def __call__(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """The results; None where the parameters are not known to stay."""
        if self.wait:
            self.wait -= 1
            return None
        parameters = [read(values[i]) for i in self.places]
        if self.copies is None:
            self.copies = [a.copy() for a in parameters]
            return None
        if not all(map(same_bytes, parameters, self.copies)):
            self.next = 1 if self.served > SERVED else 2 * self.next
            self.copies, self.run, self.served, self.wait = None, None, 0, self.next
            return None
        if self.run is None:
            self.run = self.fixed(values)
            if self.run is None:
                self.copies, self.wait = None, math.inf
                return None
        self.served += 1
        return self.run(*[values[i] for i in self.others])

    def fixed(self, values: Sequence[Any]) -> Callable | None:
        """(the other values) -> the results; None where these are another graph for other data."""
        known = dict(zip(self.places, map(np.asarray, self.copies or ())))
        count = len(self.program.arguments)

        def predict(*others: Any) -> tuple:
            given = known | dict(zip(self.others, others, strict=True))
            given = [given[i] for i in range(len(values))]
            return tuple(self.program(given[:count], given[count:])[0])

        try:
            module = capture(predict, *[values[i] for i in self.others])
        except CaptureError:
            return None
        checks = [n for n in module.graph.nodes if n.meta.get("effect") and n.target is not pick]
        return jit(fold_convolutions(module)) if all(map(_holds_always, checks)) else None


@cache
def _memcmp() -> Callable | None:
    """C's memcmp, where the process has it by that name."""
    try:
        compare = ctypes.CDLL(None).memcmp
    except (AttributeError, OSError, TypeError):
        return None
    compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return compare


def same_bytes(a: onp.ndarray, b: onp.ndarray) -> bool:
    """Whether two arrays are the same to the bit: NaN too, and 0 is not -0."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    compare = _memcmp() if a.flags.c_contiguous and b.flags.c_contiguous else None
    return a.tobytes() == b.tobytes() if compare is None else not compare(a.ctypes.data, b.ctypes.data, a.nbytes)


def training(
    program: Any, wanted: Sequence[int], arguments: Sequence[Any], states: Sequence[Any], results: Sequence[Any]
) -> Callable | None:
    """(arguments, states) -> (results, states afterwards), differentiable in the arguments at the places wanted.

    results   those of such arguments, for their shapes and dtypes
    None where that is no graph, or another one for other data.
    """
    n, m = len(arguments), len(arguments) + len(states)

    def step(*values: Any) -> tuple:
        given = channels_last(program, values[:n])

        def run(*moved: Any) -> tuple:
            for i, value in zip(wanted, moved, strict=True):
                given[i] = value
            results, after = program(given, values[n:m], True)
            return tuple(results), tuple(after)

        (results, after), pullback = vjp(run, *[given[i] for i in wanted])
        return results, after, pullback((tuple(values[m:]), tuple(map(np.zeros_like, after))))

    try:
        whole = capture(step, *arguments, *states, *results)
        return _Ways(whole, len(results), len(states), wanted)
    except (CaptureError, Unfit):
        return None


class Unfit(Exception):
    """A graph that is not made of a way forwards and a way back."""


class _Kept:
    """What the way back of one call reads of its way forwards: arrays that nobody else has."""

    values: Sequence[onp.ndarray] = ()


class _Ways:
    """A graph of (inputs, seeds) -> (results, states, gradients) as a row: one graph for its results and what its
    gradients read, and one for its gradients.

    As a row it is recorded by a tape, which keeps its arguments as they are now, whoever writes into them before the
    way back.
    """

    def __init__(self, whole: GraphModule, results: int, states: int, wanted: Sequence[int]) -> None:
        graph, output = whole.graph, whole.graph.output_node()
        heads, after, gradients = output.args[0]
        first = _with_sources([*heads, *after])
        for node in graph.nodes:
            if node.target is pick or _holds_always(node):  # these go with what they look at
                first.update([node] if node.args[0] in first else [])
            elif node.meta.get("effect"):
                raise Unfit(f"{node} {node.args}")
        top = split_module(whole, lambda node: node not in first)
        self.inputs = top.graph.find_nodes(op="placeholder")
        calls = {n.target: n for n in top.graph.find_nodes(op="call_module")}
        if set(calls) != {"part_0", "part_1"}:
            raise Unfit("one way")
        self.forwards, self.backwards = calls["part_0"], calls["part_1"]
        heads, after, gradients = top.graph.output_node().args[0]
        self.shown, self.gradients, self.wanted = [*heads, *after], gradients, wanted
        self.results, self.seeds = results, self.inputs[len(self.inputs) - results :]
        for node in self.shown:
            if not isinstance(node, Node) or node.op == "get_attr":
                raise Unfit(f"{node} {node.args}")
        self.forward, self.backward = jit(top.get_submodule("part_0")), jit(top.get_submodule("part_1"))
        inside = top.get_submodule("part_0").graph.output_node().args[0]
        self.lent = [_shows_input(n) for n in (inside if type(inside) is tuple else (inside,))]
        self.row = Primitive("executor", self._forward, vjp=Joint(self._rule), saves="in")

    def __call__(self, arguments: Sequence[Any], states: Sequence[Any]) -> tuple[list, list]:
        # of states, which move between the two ways, copies: each write would look through all that is kept
        values = [*[unwrap(a, []) for a in arguments], *[read(s).copy() for s in states]]
        out = wrap(bind(self.row, values, {"kept": _Kept()}))
        return out[: self.results], out[self.results :]

    def _forward(self, *values: onp.ndarray, kept: _Kept) -> tuple:
        known = dict(zip(self.inputs, values))
        out = _run(self.forward, self.forwards, known)
        kept.values = [v.copy("K") if lent else v for v, lent in zip(out, self.lent, strict=True)]
        lay = {True: partial(onp.array, order="C"), False: partial(onp.asarray, order="C")}  # of inputs, copies
        return tuple([lay[n in self.inputs](_value(n, known)) for n in self.shown])

    def _rule(self, wanted: Sequence[bool], g: Sequence[Any], y: Sequence[Any], *values: Any, kept: _Kept) -> list:
        known = dict(zip(self.inputs, values)) | {self.forwards: kept.values}
        for seed, flow, result in zip(self.seeds, g, y):
            known[seed] = onp.zeros(result.shape, result.dtype) if flow is None else flow
        _run(self.backward, self.backwards, known)
        found = dict(zip(self.wanted, self.gradients, strict=True))
        return [_value(found[i], known) if w else None for i, w in enumerate(wanted)]


def _holds_always(node: Node) -> bool:
    """Whether a node checks what depends on the shapes of the inputs alone: what a row of ours without a shape rule
    gives, be it a fused row's gradient or a loss. Those with one, and NumPy's functions, are checked for their data."""
    if node.target is not guard or node.args[1] not in ("shape", "dtype"):
        return False
    source = node.args[0].args[0] if node.args[0].target is pick else node.args[0]
    name = getattr(source.target, "name", "")
    return name not in TABLE and not hasattr(onp, name)


def _shows_input(node: Node | None) -> bool:
    """Whether a result may be a view of an argument, which the user can write to."""
    while node is not None and node.op == "call_function":
        node = shows(node)
    return node is not None


def _with_sources(nodes: Sequence[Any]) -> set[Node]:
    """Nodes and all that they are computed from."""
    found, left = set(), [n for n in nodes if isinstance(n, Node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found


def _run(module: Callable, call: Node, known: dict[Node, Any]) -> Sequence[Any]:
    """What a module gives for the inputs of its call, among known values; they are entered there."""
    out = module(*[array_of(_value(n, known)) for n in call.args])
    known[call] = [read(v) for v in (out if isinstance(out, (tuple, list)) else (out,))]
    return known[call]


def _value(node: Node, known: dict[Node, Any]) -> Any:
    if node in known:
        return known[node][0] if node.op == "call_module" else known[node]
    return known[node.args[0]][node.args[1]]
