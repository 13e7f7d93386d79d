"""An executor's work compiled: what it computes at every call, as a graph that torch's kernels run.

MXNet's executors are such programs too. Under a policy that prefers torch the calls of an executor after the first run
compiled: a third of what a small layer costs is finding its kernel, and inside a graph nobody sees how arrays lie. A
training step is one graph that stops between its two ways, so that what gradients read of the way forwards stays there
in oneDNN's own layout, or else with channels last.

For prediction MXNet's executors also fuse layers, and bring weights to oneDNN's layout once. So do these, for
parameters that stay what they are from call to call: those that somebody may have written into are compared with
copies, byte by byte. Nobody may have written into an array that the executor alone holds and has not given out since.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from itertools import chain
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

import numpy as onp

import minnp.numpy as np
from minnp import backends, jit, vjp

from ..core.arrays.array import array_of, read, unwrap, wrap
from ..core.graph.effects import guard, pause, pick
from ..core.graph.graph import Graph
from ..core.graph.node import Node, attribute, map_nodes
from ..core.passes import optimize
from ..core.rows import report
from ..core.rows.dispatch import bind
from ..core.rows.policy import current
from ..core.rows.primitive import TABLE, Joint, Meta, Primitive
from ..errors import BackendUnsupportedError, CaptureError
from ..fx import GraphModule, fold_convolutions
from ..fx.capturing import captured_for


def compilable(program: Any, values: Sequence[Any]) -> bool:
    """Whether here, and of these values, a program is one graph of torch's kernels: nothing in it draws, or runs Python
    of the user's or of control flow, and all lies in NumPy's memory."""
    plain = all(not n.operator.drawn and n.operator.bodies is None and not n.operator.always for n in program.steps)
    return current().name == "prefer_torch" and plain and all(type(v) is onp.ndarray for v in values)


def referenced(lists: Sequence[Sequence[Any]]) -> set[int]:
    """The places, in the lists one after the other, of arrays that something else than its list refers to, or whose
    memory is not their own: these may be written into, also through views, which refer to what they show."""
    alone = _alone()
    return {i for i, found in enumerate(_references(lists)) if found != alone}


def _references(lists: Sequence[Sequence[Any]]) -> list[tuple]:
    return [(getrefcount(a), getweakrefcount(a), *_of_memory(a._host)) for a in chain(*lists)]


def _of_memory(host: onp.ndarray) -> tuple:
    return getrefcount(host), getweakrefcount(host), host.base is None or getrefcount(host.base)


@cache
def _alone(lists: int = 1, make: Callable = onp.zeros) -> tuple:
    """What `_references` finds of an array that only so many lists have; counted, as interpreters differ in what they
    count. `make`: its memory, be it NumPy's or that of a tensor."""
    found = [[array_of(make(1))]]
    found += [found[0][:] for _ in range(lists - 1)]
    return _references(found)[0]


def _of_tensor(size: int) -> onp.ndarray:
    import torch

    return torch.zeros(size).numpy()


class Exchangeable:
    """A list of arrays, of which those that nothing else refers to are exchanged for others rather than written into.

    own   by place, those whose memory nobody else had when they came; None for others
    """

    def __init__(self, arrays: list) -> None:
        alone = lambda a: type(a) is np.ndarray and a._host is not None and a._host.base is None
        self.arrays, self.own = arrays, [a if alone(a) else None for a in arrays]

    def places(self) -> set[int]:
        """The places of those that nothing refers to now, nor to their memory: but the two lists here and one below."""
        alone = _alone(3), _alone(3, _of_tensor)
        same = [i for i, a in enumerate(self.arrays) if a is not None and a is self.own[i] and a._host is not None]
        found = _references([[self.own[i] for i in same]])
        return {i for i, f in zip(same, found, strict=True) if f in alone}

    def exchange(self, place: int, memory: onp.ndarray) -> bool:
        """Put memory that nobody else has in the place of an array; False where it is not of the array's kind."""
        old = self.arrays[place]
        fits = type(memory) is onp.ndarray and memory.shape == old.shape and memory.dtype == old.dtype
        if fits and memory.flags.c_contiguous and memory.flags.writeable:
            self.arrays[place] = self.own[place] = array_of(memory)
            return True
        return False


def channels_last(program: Any, arguments: Sequence[Any]) -> list:
    """The arguments, the data and weights of two-dimensional convolutions with their second axis last in memory."""
    convolved = {id(child) for n in program.steps if n.operator.name == "Convolution" for child, _ in n.inputs[:2]}
    out = list(arguments)
    for i, (node, a) in enumerate(zip(program.variables, arguments)):
        if id(node) in convolved and a.ndim == 4 and a.shape[1] > 1 and a.shape[2] * a.shape[3] > 1:
            out[i] = np.transpose(np.transpose(a, (0, 2, 3, 1)).copy(), (0, 3, 1, 2))
    return out


def forward(program: Any, is_train: bool) -> Callable:
    """(arguments, states, exposed) -> (results, states afterwards).

    exposed   outside training: the places, states last, of arrays that somebody may have written into since the call
              before
    """

    @jit
    def compute(arguments: Sequence[Any], states: Sequence[Any]) -> tuple[list, list]:
        return program(channels_last(program, arguments), states, is_train)

    convolves = any(n.operator.name == "Convolution" for n in program.steps)
    fixed = _Fixed(program) if convolves and not is_train else None

    def run(arguments: Sequence[Any], states: Sequence[Any], exposed: Collection[int] = ()) -> tuple[list, list]:
        results = fixed and fixed([*arguments, *states], exposed)
        results, after = (results, list(states)) if results is not None else compute(arguments, states)
        return [np.ascontiguousarray(r) if np.ndim(r) else r for r in results], after

    return run


LAYERS = {"Convolution", "BatchNorm", "FullyConnected"}
SERVED = 32  # calls in which a fixed program has saved what it cost to make


class _Fixed:
    """A program outside training, with the parameters of its convolutions and what follows them as constants.

    copies   by place, of the parameters as they are in `run`
    unsure   the places of arrays that may differ from them
    run      (the other values) -> the results, once the parameters were the same in two calls
    wait     calls without a look at the parameters: twice as many each time that they changed too soon
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        read = {id(child) for n in program.steps if n.operator.name in LAYERS for child, _ in n.inputs[1:]}
        self.places = [i for i, node in enumerate(program.variables) if id(node) in read]
        self.others = [i for i, node in enumerate(program.variables) if id(node) not in read]
        self.copies: dict[int, onp.ndarray] | None = None
        self.unsure: set[int] = set()
        self.run: Callable | None = None
        self.wait: float = 0
        self.next, self.served = 1, 0

    def __call__(self, values: Sequence[Any], exposed: Collection[int]) -> Sequence[Any] | None:
        """The results; None where the parameters are not known to stay."""
        self.unsure.update(exposed)
        if self.wait:
            self.wait -= 1
            return None
        if self.copies is None:
            self.copies = {i: read(values[i]).copy() for i in self.places}
            self.unsure = set(exposed)
            return None
        if not all(same_bytes(read(values[i]), self.copies[i]) for i in self.unsure.intersection(self.copies)):
            self.next = 1 if self.served > SERVED else 2 * self.next
            self.copies, self.run, self.served, self.wait = None, None, 0, self.next
            return None
        self.unsure = set()
        if self.run is None:
            self.run = self.fixed(values)
            if self.run is None:
                self.copies, self.wait = None, math.inf
                return None
        self.served += 1
        return self.run(*[values[i] for i in self.others])

    def fixed(self, values: Sequence[Any]) -> Callable | None:
        """(the other values) -> the results; None where these are another graph for other data."""
        known = {i: np.asarray(a) for i, a in (self.copies or {}).items()}
        count = len(self.program.arguments)

        def predict(*others: Any) -> tuple:
            given = known | dict(zip(self.others, others, strict=True))
            given = [given[i] for i in range(len(values))]
            return tuple(self.program(given[:count], given[count:])[0])

        try:
            module = captured_for(predict, *[values[i] for i in self.others])
        except CaptureError as error:
            report.record("executor", "torch", 0.0, (), f"parameters are not prepared for predictions: {error}")
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

    def step(turned: bool, *values: Any) -> tuple:
        given = channels_last(program, values[:n]) if turned else list(values[:n])

        def run(*moved: Any) -> tuple:
            for i, value in zip(wanted, moved, strict=True):
                given[i] = value
            results, after = program(given, values[n:m], True)
            return tuple(results), tuple(after)

        (results, after), pullback = vjp(run, *[given[i] for i in wanted])
        return results, after, pullback((tuple(values[m:]), tuple(map(np.zeros_like, after))))

    try:
        values = [*arguments, *states, *results]
        ways = _Ways(captured_for(partial(step, False), *values), len(results), len(states), wanted, values)
        if not ways.executor.blocked:  # in which convolutions take channels last, rather than oneDNN's own layout
            ways = _Ways(captured_for(partial(step, True), *values), len(results), len(states), wanted, values)
        return ways
    except (CaptureError, Unfit) as error:
        report.record("executor", "torch", 0.0, (), f"a training step is not compiled: {error}")
        return None


class Unfit(Exception):
    """A graph that is not made of a way forwards and a way back."""


class _Call:
    """How a call goes on to its gradients: the executor's `go`, once."""

    go: Callable | None = None


class _Ways:
    """A graph of (inputs, seeds) -> (results, states, gradients) as a row, which runs in two goes: what gradients read
    of the way forwards stays inside, in whatever layout.

    As a row it is recorded by a tape, which keeps its arguments as they are now, whoever writes into them before the
    way back.
    """

    def __init__(
        self, whole: GraphModule, results: int, states: int, wanted: Sequence[int], values: Sequence[Any]
    ) -> None:
        self.whole, self.results, self.wanted = whole, results, wanted
        self.count, self.heads = len(values) - results, [read(v).copy() for v in values[len(values) - results :]]
        graph = whole.graph.copy()
        heads, after, gradients = graph.output_node().args[0]
        graph.output_node().args = ((*heads, *after, *gradients),)
        graph = optimize(graph)
        in_c_order(graph)
        shown = graph.output_node().args[0]
        shown, gradients = shown[: results + states], shown[results + states :]
        for node in shown:
            if not isinstance(node, Node) or node.op == "get_attr":
                raise Unfit(f"a result is a constant, {node}")
        if not any(isinstance(g, Node) and g.op == "call_function" for g in gradients):
            raise Unfit("its gradients are constants")
        backend = backends.get("torch")
        constants = {
            n.target: unwrap(attribute(whole, n.target), [])
            for n in graph.find_nodes(op="get_attr")
            if "constant" not in n.meta
        }
        self.executor = backend.compile(_with_pause(graph, shown, gradients), constants)
        self.row = Primitive("executor", self._forward, vjp=Joint(self._rule), saves="in")

    def __call__(self, arguments: Sequence[Any], states: Sequence[Any]) -> tuple[list, list]:
        # of states, which move between the two ways, copies: each write would look through all that is kept
        values = [*[unwrap(a, []) for a in arguments], *[read(s).copy() for s in states]]
        out = wrap(bind(self.row, values, {"call": _Call()}))
        return out[: self.results], out[self.results :]

    def _forward(self, *values: onp.ndarray, call: _Call) -> tuple:
        try:
            out, call.go = self.executor.begin(*values, *self.heads)
        except BackendUnsupportedError:
            heads, after, _ = self._one_by_one(*values, *self.heads)
            out = (*heads, *after)
        return tuple([onp.asarray(v, order="C") for v in out])

    def _rule(self, wanted: Sequence[bool], g: Sequence[Any], y: Sequence[Any], *values: Any, call: _Call) -> list:
        seeds = [onp.zeros(r.shape, r.dtype) if f is None else f for f, r in zip(g[: self.results], y)]
        go, call.go = call.go, None
        try:
            if go is None:  # a second time
                go = self.executor.begin(*values, *self.heads)[1]
            gradients = go(*values, *seeds)
        except BackendUnsupportedError:
            gradients = [g.copy() for g in self._one_by_one(*values, *seeds)[2]]
        found = dict(zip(self.wanted, gradients, strict=True))
        return [found[i] if w else None for i, w in enumerate(wanted)]

    def _one_by_one(self, *values: onp.ndarray) -> list:
        """The lists of results, states and gradients, each row called as in a program that is not compiled."""
        return [[read(np.asarray(v)) for v in part] for part in self.whole(*map(array_of, values))]


def in_c_order(graph: Graph) -> None:
    """Make the transposed products of matrices among the outputs, gradients of weights, products of transposes: these
    lie in C order, and need not be copied into it."""
    for node in graph.output_node().all_input_nodes:
        product = (
            node.args[0] if node.target is TABLE["transpose"] and not node.kwargs and len(node.args) == 1 else None
        )
        if product is None or product.target is not TABLE["matmul"] or product.kwargs or len(product.users) > 1:
            continue
        if all(isinstance(a, Node) and len(a.meta["value"].shape) == 2 for a in product.args):
            with graph.inserting_before(node):
                turned = [graph.create_node("call_function", TABLE["transpose"], (a,)) for a in reversed(product.args)]
                new = graph.create_node("call_function", TABLE["matmul"], tuple(turned))
            for a, of in zip((*turned, new), (*reversed(product.args), product)):
                meta = of.meta["value"]
                a.meta.update(of.meta, value=Meta(meta.shape[::-1], meta.dtype))
            node.replace_all_uses_with(new)
            graph.erase_node(node)
            graph.erase_node(product)


def _with_pause(graph: Graph, shown: Sequence[Node], gradients: Sequence[Node]) -> Graph:
    """The graph with what `shown` depends on first, then a pause that gives it, then the gradients.

    Without its checks of shapes, which are those of the arrays that the executor is for. Raises Unfit for others.
    """
    first = _with_sources(shown)
    for node in graph.nodes:
        if node.target is pick:
            first.update([node] if node.args[0] in first else [])
        elif node.meta.get("effect") and not _holds_always(node):
            raise Unfit(
                f"it looks at its data, or writes: {node} = {getattr(node.target, '__name__', node.target)}{node.args}"
            )
    out, copies = Graph(), {}
    nodes = [n for n in graph.nodes if n.op != "output" and n.target is not guard]
    inputs = [n for n in nodes if n.op in ("placeholder", "get_attr")]
    calls = [n for n in nodes if n.op == "call_function"]
    find = lambda n: copies[n]
    for n in [*inputs, *[n for n in calls if n in first]]:
        copies[n] = out.node_copy(n, find)
    out.create_node("call_function", pause, tuple([copies[n] for n in shown])).meta["effect"] = True
    for n in [n for n in calls if n not in first]:
        copies[n] = out.node_copy(n, find)
    out.output(tuple(map_nodes(list(gradients), find)))
    return out


def _holds_always(node: Node) -> bool:
    """Whether a node checks what depends on the shapes of the inputs alone: what a row of ours without a shape rule
    gives, be it a fused row's gradient or a loss. Those with one, and NumPy's functions, are checked for their data."""
    if node.target is not guard or node.args[1] not in ("shape", "dtype"):
        return False
    source = node.args[0].args[0] if node.args[0].target is pick else node.args[0]
    name = getattr(source.target, "name", "")
    return name not in TABLE and not hasattr(onp, name)


def _with_sources(nodes: Sequence[Any]) -> set[Node]:
    """Nodes and all that they are computed from."""
    found, left = set(), [n for n in nodes if isinstance(n, Node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found
