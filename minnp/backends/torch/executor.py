"""jit on torch: a captured graph as straight-line calls of torch's functions on tensors.

The code is written at the first call, when the operands of every node are at hand: each node's kernel is then the very
function the dispatcher would have chosen, without the choosing. What has no kernel goes through the dispatcher there,
and what a kernel refuses later (an index out of range, say) sends the whole call through it, so that results and
exceptions are those of the program run row by row.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import torch

from ...core.cpu.integers import frozen
from ...core.cpu.sources import keep_source
from ...core.graph.aliasing import is_write
from ...core.graph.closures import unwrapped
from ...core.graph.effects import guard, pause, pick
from ...core.graph.graph import Graph
from ...core.graph.node import Node, map_leaves
from ...core.graph.placement import holds, row_of, walk
from ...core.graph.streams import drawn_at
from ...core.passes.memory import shows
from ...core.rows import report
from ...core.rows.primitive import TABLE, Meta, Primitive
from ...core.rows.value import Buffer, Host
from ...errors import BackendUnsupportedError
from . import blocked
from .blocked import place
from .candidates import Choice
from .dtypes import LEGACY, borrowed, returned, scalar
from .neural import masked
from .packed import prepared_conv

Tensor = torch.Tensor
_SERIAL = itertools.count()
NUMBERS = (int, float, complex)
GREATER, MULTIPLY = TABLE["greater"], TABLE["multiply"]
PREPARED = object()  # in the place of an operand that its kernel has in another layout
# what torch raises for arguments it will not take: the dispatcher then says what NumPy says to them
REFUSALS = (BackendUnsupportedError, RuntimeError, IndexError)


class TorchExecutor:
    """A graph as a function of values, which returns the tuple of its outputs.

    backend  a device (values are its Buffers), or torch's kernels over the host's memory (NumPy arrays)
    run     the generated function of tensors, once there is one; `source` is its Python
    others  ways to run it that may be faster: see candidates.py
    stream  the generator it draws from on its device, or None
    new     for each output, whether it is memory of its own
    pure    whether it calls nothing but torch: no dispatcher, no guard
    rows    how often it calls each row's kernel, and `calls` how often it was called: for minnp.report()

    A graph with a `pause` runs in two goes: see `begin`.
    """

    __code__, nodes = None, {}

    def __init__(self, graph: Graph, constants: dict[str, Any], backend: Any, others: dict, stream: Any = None) -> None:
        self.graph = without_unread(with_masks(graph))
        self.backend, self.others, self.stream = backend, others, stream
        self.run: Callable | None = None
        self.blocked = backend.shares_host and blocked.suits(self.graph)
        self.recycled = blocked.Recycled()
        self.source, self.pure = "", True
        self.rows: dict[str, int] = {}
        self.calls = 0
        report.COMPILED.add(self)
        self.new = [is_new(n) for n in graph.output_node().args[0]]
        self._read = [n.target for n in graph.nodes if n.op == "get_attr"]
        self._skipped: set[str] = set()  # of these, what only prepared convolutions would read
        folded = {n.target: n.meta["constant"] for n in graph.nodes if n.op == "get_attr" and n.target not in constants}
        self.constants = constants | {name: self._constant(v) for name, v in folded.items()}

    def __call__(self, *values: Any) -> tuple:
        data = [v.data if type(v) is Buffer else self.tensor(v) for v in values]
        if self._read:
            data += self._constants(self._skipped)
        if self.run is None:
            out = self._compile(data)
            self.calls += 1
        else:
            try:
                out = self.run(*data)
                self.calls += 1
            except REFUSALS:
                out = walk(self.graph, data[: len(values)] + self._constants(), self.dispatched)
        if not self.backend.shares_host:
            return tuple([Buffer(v, self.backend, None, True) if type(v) is Tensor else v for v in out])
        # one look at each argument, not one for each pair of a result and an argument
        theirs = places(data)
        return tuple([self.value(v, new and theirs) for v, new in zip(out, self.new, strict=True)])

    def begin(self, *values: Any) -> tuple[tuple, Callable]:
        """(what the graph has at its pause, go) for values, of which some may be None that are read after it alone.

        go(values) -> the outputs. The values are those of all placeholders once more: between the two calls their
        memory may be written to. What is returned is no memory of theirs, nor of what is kept between the calls, and
        each output has its own.
        Both raise BackendUnsupportedError where a kernel refuses its operands.
        """
        with refused():
            if self.run is None:
                self._compile([self.tensor(v) for v in values] + self._constants())
            steps = self.run(*map(self.tensor, values), *self._constants(self._skipped))
            out = tuple([self.value(t.clone() if type(t) is Tensor else t) for t in next(steps)])
        self.calls += 1

        def go(*values: Any) -> tuple:
            data = [self.tensor(v) for v in values]
            with refused():
                tensors = steps.send(data)
            theirs, out = places(data + self._constants(self._skipped)), []
            for t in tensors:
                out.append(self.value(t, theirs))
                theirs |= places((t,))
            return tuple(out)

        return out, go

    def _constants(self, skipped: Collection[str] = ()) -> list:
        return [None if n in skipped else self.tensor(unwrapped(self.constants[n])) for n in self._read]

    # -------------------------------------------------------------- values and tensors
    def tensor(self, v: Any) -> Any:
        """A value as the generated code takes it: arrays as tensors of its device, anything else as it is."""
        if type(v) is Buffer:
            return v.data
        if type(v) is not Host or not v.ndim:
            return v
        if self.backend.shares_host:
            try:
                return borrowed(v)
            except BackendUnsupportedError:  # a dtype torch has not
                return v
        report.copied("copy to device", self.backend.name, v.nbytes)
        return self.backend.from_host(v)

    def value(self, v: Any, theirs: Any = ()) -> Any:
        """A tensor as a value; what lies in the memory of the arguments, of which `theirs` has addresses, as a copy."""
        if type(v) is not Tensor:
            return v
        if not self.backend.shares_host:
            return Buffer(v, self.backend, computed=True)
        if v.is_mkldnn:
            return returned(v.to_dense())
        return returned(v.clone() if theirs and place(v) in theirs else v)

    def _constant(self, v: Any) -> Any:
        """A constant that never changes, on the device once and for all where that can hold it."""
        v = unwrapped(v)
        data = v if self.backend.shares_host else self.tensor(v)
        return Buffer(data, self.backend) if type(data) is Tensor else v

    # -------------------------------------------------------------- node by node
    def dispatched(self, node: Node, args: tuple, kwargs: dict) -> Any:
        """A node's result, as the program itself would compute it."""
        return map_leaves(row_of(node, map_leaves(args, self.value), map_leaves(kwargs, self.value)), self.tensor)

    def holds(self, value: Any, kind: str, expected: Any) -> None:
        """Check a guard on a tensor."""
        numpys = kind == "dtype" or (kind == "value" and not self.backend.shares_host)
        holds(self.value(value) if numpys else value, kind, expected)

    # -------------------------------------------------------------- code
    def _compile(self, data: list) -> tuple:
        """Run once, node by node, choosing the function for each; then write them down."""
        chosen: dict[Node, tuple[Callable, tuple]] = {}
        results: dict[Node, Any] = {}

        def choose(node: Node, args: tuple, kwargs: dict) -> Any:
            results[node] = y = run(node, args, kwargs)
            return y

        def run(node: Node, args: tuple, kwargs: dict) -> Any:
            if node.target in (pick, pause):
                return node.target(*args)
            if (function := self._blocked(node, args, chosen)) is not None:
                try:
                    y = function(*args, **kwargs)
                    chosen[node] = function, args
                    return y
                except REFUSALS:
                    if any(type(n) is Node and n in chosen and chosen[n][0] is blocked.passed for n in node.args[:1]):
                        raise  # others would take what was passed for the gradient of the relu
            make = self._maker(node)
            if make is not None or isinstance(node.target, Primitive):
                try:
                    function, operands = (make, args) if make is not None else self._function(node, args, kwargs)
                    y = function(*operands, **kwargs)
                    chosen[node] = function, operands
                    return y
                except (*REFUSALS, TypeError, AttributeError, ValueError):
                    pass
            self.pure = False
            return self.dispatched(node, args, kwargs)

        out = walk(self.graph, data, choose)
        for node in chosen:
            name = node.meta.get("function") or node.target.name
            self.rows[name] = self.rows.get(name, 0) + 1
        self._skipped = {
            n.target
            for n in self.graph.find_nodes(op="get_attr")
            if n.users and all(u in chosen and prepared_of(u, chosen[u][1], n) for u in n.users)
        }
        donations = donated(self.graph, {n: results[n] for n in chosen}) | donated_sums(self.graph, chosen)
        for node, in_place in reused(self.graph, chosen, results, data).items():
            chosen[node] = in_place, chosen[node][1]
        self._write(chosen, donations)
        if self.others and self.pure:
            self.run = Choice(self.run, self.others, self.stream)
        return out

    @property
    def way(self) -> str:
        """Where its rows are computed, for minnp.report(): on its device, in the way that was chosen there."""
        chosen = self.run.chosen if type(self.run) is Choice else ""
        return self.backend.name if chosen in ("", "plain") else f"{self.backend.name}: {chosen}"

    def measured(self) -> dict[str, float]:
        """The seconds of the ways that were tried, the chosen one first; {} where there was no choice."""
        if type(self.run) is not Choice or not self.run.chosen:
            return {}
        seconds = self.run.seconds
        return {name: seconds[name] for name in sorted(seconds, key=lambda name: name != self.run.chosen)}

    def _function(self, node: Node, args: tuple, kwargs: dict) -> tuple[Callable, tuple]:
        """(the function of tensors that computes a node for such operands, the operands: numbers as tensors)."""
        kernel = self.backend.on_tensors(node.target)
        if kernel is None:
            raise BackendUnsupportedError("no kernel")
        if any(map(blocked.is_opaque, args)):
            function, operands = self._function(node, tuple([blocked.dense(a) for a in args]), kwargs)
            return blocked.of_dense(function), operands
        operands = tuple([self.tensor(a) for a in args])
        if (run := self._prepared(node, operands, kwargs)) is not None:
            return run, (operands[0], PREPARED, PREPARED, *operands[3:])
        tensors = [a for a in operands if type(a) is Tensor]
        by_type = len(tensors) == len(operands) and (
            all(a.ndim for a in tensors) or len({a.dtype for a in tensors}) == 1
        )
        if not tensors or (LEGACY and not by_type):
            return kernel, operands  # which dtypes it computes in depends on values
        loop = getattr(kernel, "loop", None)
        if loop is not None:
            function, ins, outs = loop(*operands)
            device = next(a.device for a in operands if type(a) is Tensor)
            cast = [scalar(a, d, device) if type(a) in NUMBERS else a for a, d in zip(operands, ins, strict=True)]
            if outs is None and all(type(a) is Tensor and a.dtype is d for a, d in zip(cast, ins, strict=True)):
                return function, tuple(cast)
        plan = getattr(kernel, "plan", None)
        if plan is not None and type(operands[0]) is Tensor:
            kernel = plan(*operands, **kwargs) or kernel
        return kernel, operands

    def _blocked(self, node: Node, args: tuple, chosen: dict) -> Callable | None:
        """A kernel on tensors in oneDNN's own layouts, where the graph has these."""
        name = getattr(node.target, "name", "")
        if not self.blocked or not blocked.takes(name, args):
            return None
        return blocked.fused(node, args, chosen, self.recycled) or blocked.KERNELS[name]

    def _prepared(self, node: Node, operands: tuple, kwargs: dict) -> Callable | None:
        """A convolution with a weight and a bias that cannot change, brought to oneDNN's layout once."""
        if node.target.name != "npx.conv_act" or not self.backend.shares_host:
            return None
        x, w, b, *other = operands
        w, b = (unwrapped(self.constants.get(n.target)) if n.op == "get_attr" else None for n in node.args[1:3])
        plain = all(type(a) is Tensor and a.dtype is torch.float32 for a in (x, *other))
        run = prepared_conv(x, w, b, other, **kwargs) if plain and frozen(w) and frozen(b) else None
        if run is None:
            return None
        if other:
            return lambda x, w, b, y, donate=False, **params: run(x, y, donate)
        return lambda x, w, b, **params: run(x)

    def _maker(self, node: Node) -> Callable | None:
        """What makes a new array here: constants wherever they were made, draws where they were drawn here."""
        if self.backend.shares_host or "function" not in node.meta:
            return None
        here = not node.meta["effect"] or drawn_at(node) is self.backend
        return self.backend.makers.get(node.meta["function"]) if here else None

    def _write(self, chosen: dict, donations: set[Node]) -> None:
        names: dict[str, Any] = {"holds": self.holds}
        inputs = [n.name for op in ("placeholder", "get_attr") for n in self.graph.nodes if n.op == op]
        lines = [f"def run({', '.join(inputs)}):"]
        last, pauses = last_readers(self.graph), self._leave == "yield"
        at = {n: i for i, n in enumerate(self.graph.nodes)}
        for node in self.graph.nodes:
            if node.op == "output":
                lines.append(f"    {self._leave} {show(node.args[0], names)}")
            elif node.target is pause:
                names["own"], names["places"] = own, places
                later = [n for n in self.graph.nodes if at[n] < at[node] < max([at[u] for u in n.users], default=0)]
                kept = [n.name for n in later if n.op == "call_function"]
                given = ", ".join([n.name for n in self.graph.nodes if n.op == "placeholder"])
                lines.append(f"    theirs = places(({given},))")
                lines += [f"    {name} = own({name}, theirs)" for name in kept]
                lines.append(f"    {given}, = yield {show(node.args, names)}")
            elif node.op == "call_function":
                lines.append("    " + self._statement(node, chosen.get(node), node in donations, names))
                dead = [n.name for n in last.get(node, ()) if not pauses or n.op == "call_function"]
                if dead:
                    lines.append(f"    del {', '.join(dead)}")
        self.source = "\n".join(lines) + "\n"
        filename = f"<minnp torch jit {next(_SERIAL)}>"
        exec(compile(self.source, filename, "exec"), names)
        self.run = names["run"]
        keep_source(filename, self.source, self.run)

    @property
    def _leave(self) -> str:
        return "yield" if any(n.target is pause for n in self.graph.nodes) else "return"

    def _statement(self, node: Node, choice: tuple | None, donate: bool, names: dict) -> str:
        if node.target is guard:
            return f"holds({', '.join(show(a, names) for a in node.args)})"
        if node.target is pick:
            return f"{node.name} = {show(node.args[0], names)}[{node.args[1]}]"
        function = f"k_{node.name}"
        if choice is None:
            names[function] = lambda *args, **kwargs: self.dispatched(node, args, kwargs)
            args = [show(a, names) for a in node.args]
        else:
            names[function], operands = choice
            args = [_operand(a, o, names) for a, o in zip(node.args, operands, strict=True)]
        args += [f"{key}={show(v, names)}" for key, v in node.kwargs.items()]
        return f"{node.name} = {function}({', '.join(args + ['donate=True'] * donate)})"


@contextlib.contextmanager
def refused() -> Iterator[None]:
    try:
        yield
    except REFUSALS as error:
        raise BackendUnsupportedError(str(error)) from error


def own(t: Any, theirs: Collection[int]) -> Any:
    """A tensor that lies in none of these memories."""
    return t.clone() if type(t) is Tensor and not t.is_mkldnn and place(t) in theirs else t


def places(data: Any) -> set[int]:
    return {place(t) for t in data if type(t) is Tensor}


def prepared_of(node: Node, operands: tuple, source: Node) -> bool:
    """Whether a node reads another one where that is prepared, and nowhere else."""
    read = [o for a, o in zip(node.args, operands, strict=True) if a is source]
    return bool(read) and all(o is PREPARED for o in read)


def _operand(a: Any, o: Any, names: dict) -> str:
    """An operand in the generated code: a number that may change is made a tensor like the one it was."""
    if o is PREPARED:
        return "None"
    if isinstance(a, Node) and a.meta.get("weak") and type(o) is Tensor:
        names["scalar"] = scalar
        like = f"l_{a.name}_{len(names)}"
        names[like] = o.dtype, o.device
        return f"scalar({a.name}, *{like})"
    return show(a if isinstance(a, Node) else o, names)


def is_new(node: Any) -> bool:
    """Whether an output is its own memory in NumPy; a kernel may return an argument (values are immutable to it)."""
    while isinstance(node, Node) and (source := shows(node)) is not None:
        node = source
    return isinstance(node, Node) and node.op == "call_function"


def last_readers(graph: Graph) -> dict[Node, list[Node]]:
    """For every node, the values that nobody reads after it."""
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not guard:
            last[node] = node
        for n in node.all_input_nodes:
            last[n] = node
    out: dict[Node, list[Node]] = {}
    for n, at in last.items():
        if at.op == "call_function":
            out.setdefault(at, []).append(n)
    return out


def donated(graph: Graph, results: dict[Node, Any]) -> set[Node]:
    """The write_view nodes that may write into the old tensor itself: it was made here, and nothing that shows its
    memory is read afterwards. Whose memory a result shows is seen from the results of a run."""
    at = {n: i for i, n in enumerate(graph.nodes)}
    memory = {n: place(y) for n, y in results.items() if type(y) is Tensor}
    last: dict[int, int] = {}
    for n, where in memory.items():
        last[where] = max(last.get(where, 0), *[at[u] for u in n.users], at[n])
    made = {memory[n] for n in memory if is_write(n)}  # copies of its own
    joined: dict[int, int] = {}  # memory that a write was given -> the older one that it becomes, views of it too
    found: set[Node] = set()

    def lies(node: Any) -> int | None:
        where = memory.get(node)
        while where in joined:
            where = joined[where]
        return where

    for n in graph.nodes:
        if n in memory and is_write(n):
            old, new = n.args[:2]
            where = lies(old)
            if where in made and last[where] == at[n] and not (isinstance(new, Node) and lies(new) in (where, None)):
                found.add(n)
                last[where], joined[memory[n]] = last[memory[n]], where
    return found


def donated_sums(graph: Graph, chosen: dict[Node, tuple]) -> set[Node]:
    """The prepared convolutions that may add to the memory of what they add: a result of another one, which nothing
    but such convolutions reads, this one last and once."""
    ready = {n for n, (_, operands) in chosen.items() if any(o is PREPARED for o in operands)}
    last = {n: node for node, dead in last_readers(graph).items() for n in dead}
    return {
        n
        for n in ready
        if len(n.args) == 4
        and n.args[0] is not n.args[3]
        and n.args[3] in ready
        and ready.issuperset(n.args[3].users)
        and last[n.args[3]] is n
    }


def with_masks(graph: Graph) -> Graph:
    """The graph with products of floats g * (y > 0), the gradients of relu, as one row; itself where it has none."""
    metas = lambda n: n.meta.get("value") if isinstance(n, Node) else None

    def mask(g: Any, sign: Any) -> Node | None:
        """y, where `sign` is y > 0 for this product alone, and y an array like g."""
        positive = isinstance(sign, Node) and sign.target is GREATER and len(sign.users) == 1
        if not positive or isinstance(sign.args[1], Node) or sign.args[1] != 0:
            return None
        meta = metas(g)
        like = isinstance(meta, Meta) and meta.dtype.kind == "f" and metas(sign.args[0]) == meta
        return sign.args[0] if like else None

    if not any(n.target is GREATER for n in graph.nodes):
        return graph
    graph = graph.copy()
    for n in graph.find_nodes(op="call_function", target=MULTIPLY):
        for g, sign in ((n.args[0], n.args[1]), (n.args[1], n.args[0])):
            if (y := mask(g, sign)) is not None:
                with graph.inserting_before(n):
                    new = graph.create_node("call_function", TABLE["npx.relu_grad"], (g, y))
                new.meta.update(n.meta)
                n.replace_all_uses_with(new)
                graph.erase_node(n)
                graph.erase_node(sign)
                break
    return graph


def without_unread(graph: Graph) -> Graph:
    """The graph with gradients of normalisations, which do not read its result, given the data in its place: what
    follows the normalisation may then take the result's memory."""
    graph = graph.copy()
    for n in graph.find_nodes(op="call_function"):
        if getattr(n.target, "name", "") == "npx.normalize_back":
            flows, results, _ = n.kwargs["layout"]
            args, at = list(n.args), sum(flows)
            args[at] = args[at + results]
            n.args = tuple(args)
    return graph


IN_PLACE: dict[str, Callable] = {
    "npx.relu": torch.relu_,
    "npx.relu_grad": lambda g, y: masked(g, y, into=g),
    "add": torch.Tensor.add_,
}


def reused(graph: Graph, chosen: dict[Node, tuple], results: dict[Node, Any], data: list) -> dict[Node, Callable]:
    """What computes a node in the memory of its first operand: one made here, that nothing reads afterwards."""
    at = {n: i for i, n in enumerate(graph.nodes)}
    theirs = {place(t) for t in data if type(t) is Tensor}
    last: dict[int, int] = {}  # memory -> where it is read last
    for n, y in results.items():
        for t in y if isinstance(y, (tuple, list)) else (y,):
            if type(t) is Tensor:
                last[place(t)] = max(last.get(place(t), 0), *[at[u] for u in n.users], at[n])
    found: dict[Node, Callable] = {}
    for n, (function, operands) in chosen.items():
        x, y, source = results.get(n.args[0]) if n.args else None, results[n], n.args[0] if n.args else None
        while isinstance(source, Node) and source.target is pick:
            source = source.args[0]
        if blocked.name_of(n) == "npx.normalize_back" and blocked.is_opaque(x) and isinstance(function, partial):
            run: Callable | None = partial(function, in_place=True)
            y, others = y[0], []
        else:
            table = blocked.IN_PLACE if blocked.is_opaque(x) else IN_PLACE
            run = table.get(getattr(n.target, "name", "")) if not n.kwargs else None
            others = n.args[1:]
        if run is None or source not in chosen or type(x) is not Tensor or type(y) is not Tensor:
            continue
        if not y.dtype.is_floating_point or last[place(x)] != at[n]:
            continue
        read = [o for o in operands[1:] if type(o) is Tensor and o.dtype is y.dtype and o.shape == y.shape]
        read = [o for o in read if o.is_mkldnn is x.is_mkldnn]
        alike = x.dtype is y.dtype and x.shape == y.shape and lie_alike(x, y)
        fits = not others or len(read) == len(others)
        if alike and fits and place(x) not in {*theirs, place(y), *map(place, read)}:
            found[n] = run
    return found


def lie_alike(x: Tensor, y: Tensor) -> bool:
    if x.is_mkldnn or y.is_mkldnn:
        return x.is_mkldnn and y.is_mkldnn
    return x.stride() == y.stride() and is_dense(x)


def is_dense(t: Tensor) -> bool:
    return t.is_contiguous() or (t.ndim == 4 and t.is_contiguous(memory_format=torch.channels_last))


def show(x: Any, names: dict) -> str:
    """An argument in the generated code: nodes by name, plain literals as they are, anything else as a named object."""
    if isinstance(x, Node):
        return x.name
    if type(x) in (bool, int, str, type(None)):
        return f"({x!r})" if type(x) is int and x < 0 else repr(x)
    if x is Ellipsis:
        return "..."
    if type(x) in (tuple, list) and x:
        inner = ", ".join(show(v, names) for v in x)
        return f"[{inner}]" if type(x) is list else f"({inner},)"
    if type(x) is slice:
        return f"slice({show(x.start, names)}, {show(x.stop, names)}, {show(x.step, names)})"
    if type(x) is dict:
        return "{" + ", ".join(f"{k!r}: {show(v, names)}" for k, v in x.items()) + "}"
    name = f"c_{len(names)}"
    names[name] = x
    return name
