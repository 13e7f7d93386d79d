"""Specialisations: one captured path through a function, compiled, and what a call of it does for its caller besides.

The graph computes arrays. What of the result is an argument, or shows the memory of one that was written, is taken from
the caller's own arguments; containers among them are changed as the function changed them (outputs.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..arrays.array import ARRAY_TYPES, array_of, on_host, read
from ..arrays.saved import same_bytes
from ..compiled import fastpath
from ..cpu.memory import Lease
from ..cpu.products import single_thread
from ..graph.capture import Captured
from ..graph.closures import ARRAYS, Binding, Checked, Environment, unwrapped
from ..graph.effects import guard, is_loop
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.outputs import Outside, Shown
from ..graph.placement import SEVERAL, by_rows, device_of, stay
from ..graph.streams import streams
from ..llvm import engine as native
from ..loops import VECTOR
from ..passes import fuse_elementwise, optimize
from ..rows import budget
from ..rows.primitive import Meta, Primitive
from ..rows.pytree import of_containers, open_tree
from ..rows.report import record
from ..rows.value import Buffer, Host
from .compilation import NoTime, compile_native
from .executor import compile_host
from .overwriting import begin_loops, donate_to_loops, read_arguments, write_arguments
from .unrolled import gather_parts

PART = 0.25  # of what compiling may take, for unrolled loops
BRANCHES = 4  # answers that a path waits for, from which on it may take longer than a function of few operations
UNROLLED = 2_500  # nodes of a graph that is still made machine code
STEPS, TURNS = 64, 4  # nodes of a graph, and how many a line of the program has, that may be those of unrolled loops
LARGE = 1 << 14  # elements of an array that threads may share
BLAS = ("linalg.", "einsum", "npx.conv")  # rows whose kernels leave the sharing to BLAS


def rivalled(node: Node) -> bool:
    """Whether a node is a loop at whose operations on arrays, as large as these, NumPy may be faster."""
    if not is_loop(node):
        return False
    size = lambda n: math.prod(getattr(n.meta.get("value"), "shape", ()))
    large = any(size(n) >= VECTOR for n in node.all_input_nodes)
    return node.target.multiplies or (node.target.doubtful and large)


class Specialisation:
    """`run` takes and gives arrays, `finish(outputs, given, arguments)` makes the user's result.

    inputs       which leaves of the arguments `run` takes
    overwrites   the arguments that `run` itself writes to
    streams      the random generators that it has drawn from when a guard may still fail
    alone        NumPy's BLAS on one thread, in which `run` wants to be called, or None
    environment  what it reads besides its arguments (closures.py), or None
    plan         of what a call does, for the C part (dispatch.hpp), or None
    unrolled     how many steps of loops it has one after the other, or 0
    doubtful     what may take longer compiled than in Python, or ""
    brief        whether it is doubtful in calls alone that hardly take any time
    late         whether NumPy runs these because machine code would have come too late
    loops        whether it has compiled loops
    divided      whether it has some, and other steps besides
    """

    __slots__ = (
        *(
            "alone",
            "brief",
            "captured",
            "constants",
            "divided",
            "doubtful",
            "environment",
            "finish",
            "inputs",
            "kept",
            "late",
        ),
        *("loops", "overwrites", "plan", "run", "streams", "unrolled"),
    )

    def __init__(
        self,
        captured: Captured,
        inputs: Sequence[int],
        compiler: str,
        backend: Any = None,
        found: Sequence[Binding] = (),
        hurries: bool = False,
    ) -> None:
        self.captured, self.inputs = captured, inputs
        self.constants = {k: c for k, c in captured.constants.items() if isinstance(c, Host)}
        self.unrolled = unrolled(captured.graph)
        self.doubtful = f"its {self.unrolled} steps, loops unrolled," if self.unrolled else ""
        if not self.unrolled and any(map(rivalled, captured.graph.nodes)):
            self.doubtful = "its loops, with operations on whole arrays,"
        steps = [n for n in captured.graph.nodes if n.op == "call_function" and isinstance(n.target, Primitive)]
        self.loops = any(map(is_loop, steps))
        self.divided = self.loops and len(steps) > 1
        decides = sum(n.target is guard and n.args[1] == "value" for n in captured.graph.nodes)
        self.brief = not self.doubtful and (self.loops or decides >= BRANCHES)
        if self.brief:
            self.doubtful = "its loops" if self.loops else f"its {decides} branches"
        graph = captured.graph.copy()
        output = graph.output_node()
        results = output.args[0][: len(output.args[0]) - len(captured.written)]
        self.kept = [i for i in range(len(results)) if i not in captured.shown]
        of_numpys = [k for k, i in enumerate(self.kept) if is_numpys(results[i])]
        output.args = (tuple([results[i] for i in self.kept] + list(output.args[0][len(results) :])),)
        backend = device_of(graph, captured.constants, backend)
        graph = optimize(graph)
        self.streams = streams(graph)
        self.overwrites: list[int] = []
        self.environment = self._environment(graph, found)
        self.alone = None if backend is not None or compiler == "numpy" else alone(graph)
        run = self._run_beside(graph, backend, compiler)
        self.late = False
        if run is None:
            read_arguments(graph)
            begin_loops(graph)
            compiler = compiler if backend is None else "numpy"
            try:
                hurry = hurries and self.unrolled and compiler == "auto"
                left = min(captured.deadline.left(), PART * budget.seconds) if hurry else None
                graph = lowered(graph, compiler, left)
            except NoTime:
                self.late = True
                graph = lowered(graph, "numpy")
            donate_to_loops(graph)
            self.overwrites = write_arguments(graph, captured.written)
            run = compile_host(graph, captured.constants, compiler == "numpy", True, self.environment)
        elif self.environment is not None:
            run = Checked(run, self.environment)
        moved = bool(of_numpys) and backend not in (None, SEVERAL) and not backend.shares_host
        self.run = Fetched(run, of_numpys) if moved else run
        self.finish = self._finishing(len(results))
        self.plan = None if fastpath is None or self.streams else self._plan(len(results))

    def _plan(self, count: int) -> Any:
        captured = self.captured
        form: Any = ... if captured.changes else captured.rebuild(list(range(count)))
        parts: list[Any] = []
        for i in range(count):
            what = captured.shown.get(i)
            if type(what) is Shown and not what.steps:
                parts.append(-1 - what.number)
            else:
                parts.append(self.kept.index(i) if what is None else None)
        if None in parts or not of_containers(open_tree(form, [])):
            form, parts = ..., []
        scalars = tuple(captured.scalars) if parts else ()
        run = self.run if self.alone is None else self.quietly
        given = tuple(self.inputs), tuple(captured.written), tuple(self.overwrites)
        return fastpath.plan(run, self.finish, captured.constants, *given, form, tuple(parts), scalars)

    def _run_beside(self, graph: Graph, backend: Any, compiler: str) -> Callable | None:
        """What runs a graph whose arrays are not all in NumPy's memory; None for one that NumPy's is to run."""
        if backend is None:
            return None
        constants = self.captured.constants
        run = None if backend is SEVERAL else backend.compile(stay(graph.copy()), constants, compiler)
        return (
            by_rows(graph, dict(constants)) if run is None and (backend is SEVERAL or not backend.shares_host) else run
        )

    def _environment(self, graph: Graph, found: Sequence[Binding]) -> Environment | None:
        """What is to be looked at before a run: the numbers, and the arrays that the graph reads."""
        names = {n.target: n.name for n in graph.find_nodes(op="get_attr")}
        of = {id(c): names[k] for k, c in self.captured.constants.items() if k in names}
        arrays = [
            (p, of.get(id(p.value)) or of.get(id(unwrapped(p.value)))) for p in found if isinstance(p.value, ARRAYS)
        ]
        returned = [what.binding for what in self.captured.shown.values() if type(what) is Outside]
        watched = [(p, name) for p, name in arrays if name is not None or p.asked or p in returned]
        for p, name in watched:
            if name is not None and not p.unseen:  # the graph reads it anew
                p.was = None
        # a tuple holds what it held; of some arguments the contents are part of the key
        looked = lambda p: p.was is not None and not isinstance(p.value, (set, bytearray))
        stays = lambda p: type(p.holder) is tuple and p.via is None and not looked(p)
        watched += [(p, None) for p in found if not isinstance(p.value, ARRAYS) and not stays(p)]
        return Environment(watched, self.constants) if watched else None

    def finds(self, other: Captured) -> bool:
        """Whether another capture found the same, but for what this path reads anew wherever it is."""
        found, anew = self.captured, self.environment.present() if self.environment else {}
        return found.says() == other.says() and all(
            anew[k] is unwrapped(b) if k in anew else a is b or (type(a) is type(b) is Host and same_bytes(a, b))
            for (k, a), b in zip(found.constants.items(), other.constants.values())
        )

    def follows(self) -> bool | None:
        """Whether something outside was bound anew; None if this path cannot run with it."""
        return self.environment.follow(numbers=True) if self.environment is not None else False

    def _finishing(self, count: int) -> Callable:
        captured, kept = self.captured, self.kept
        if len(kept) == count and not captured.changes:
            numbers = list(range(count))
            tree = captured.rebuild(numbers) if numbers else None
            if type(tree) is int:
                return _number if captured.scalars else _one
            if type(tree) is list and tree == numbers and not captured.scalars:
                return lambda out, given, arguments: _handles(out)
            if type(tree) is tuple and tree == tuple(numbers) and numbers and not captured.scalars:
                return lambda out, given, arguments: tuple(_handles(out))

        def finish(out: Sequence[Any], given: Sequence[Any], arguments: Any) -> Any:
            parts: list = [None] * count
            for i, v in zip(kept, _handles(out)):
                parts[i] = v
            return captured.result(parts, given, arguments)

        return finish

    def quietly(self, *given: Any) -> tuple:
        """`run`, with NumPy's BLAS on one thread."""
        assert self.alone is not None
        with self.alone:
            return self.run(*given)

    def may_overwrite(self, arrays: list) -> bool:
        """Whether the arguments to overwrite lie as they must."""
        for i in self.overwrites:
            flags = arrays[i].flags
            if not flags.c_contiguous or not flags.writeable:
                return False
        return True

    def apart(self, arrays: list) -> bool:
        """As `apart` below has it, for what this path writes."""
        return apart(self.captured.written, arrays, self.captured.constants)


class Fetched:
    """What a device compiled, with the results at `places` on the host: the function made them of NumPy's arrays."""

    def __init__(self, run: Any, places: list[int]) -> None:
        self.run, self.places = run, places

    def __call__(self, *given: Any) -> tuple:
        out = list(self.run(*given))
        for k in self.places:
            out[k] = out[k].host() if type(out[k]) is Buffer else out[k]
        return tuple(out)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


def is_numpys(result: Any) -> bool:
    """Whether the function itself computed a result on the host."""
    meta = result.meta if isinstance(result, Node) and result.op == "call_function" else {}
    return type(meta.get("value")) is Meta and "device" not in meta


def apart(written: Sequence[int], arrays: list, constants: dict[str, Any]) -> bool:
    """Whether the arguments that are written may be, and share no memory with what else a graph reads."""
    if not all(arrays[i].flags.writeable for i in written if type(arrays[i]) is Host):
        return False
    others = [*arrays, *map(unwrapped, constants.values())]
    if len(set(map(id, others))) == len(others):
        for a in others:
            if type(a) is Buffer or ((base := getattr(a, "base", None)) is not None and type(base) is not Lease):
                break
        else:
            return True
    others = [a for a in others if isinstance(a, (Host, Buffer))]
    return not any(
        k != j and overlap(arrays[i], a)
        for i in written
        for k in [next((k for k, a in enumerate(others) if a is arrays[i]), None)]
        for j, a in enumerate(others)
        if k is not None
    )


def overlap(a: Any, b: Any) -> bool:
    """Whether writing to one of two arrays may change the other."""
    if isinstance(a, Host) and isinstance(b, Host):
        return onp.may_share_memory(a, b)
    return type(a) is type(b) is Buffer and a.backend is b.backend and a.backend.shares(a.data, b.data)


def steps_back(x: Any, v: Buffer) -> bool:
    """Whether an argument is a view that steps back through the memory of its root: its buffer v is a copy."""
    return type(x) in ARRAY_TYPES and x._root is not None and not overlap(v, read(x._root))


def unrolled(graph: Graph) -> int:
    """How many nodes a graph has, if they are many for the lines that they come from; else 0."""
    lines = [n.meta["where"] for n in graph.nodes if "where" in n.meta]
    return len(lines) if len(lines) > max(STEPS, TURNS * len(set(lines))) else 0


def lowered(graph: Graph, compiler: str, left: float | None = None) -> Graph:
    """The graph as core's executor runs it best: groups of nodes compiled, or fused. Raises NoTime where fewer seconds
    are left than that takes."""
    if len(graph) > UNROLLED:  # of an unrolled loop: machine code would take longer to make than it ever saves
        return fuse_elementwise(graph)
    if compiler == "llvm" or (compiler != "numpy" and native.available()):
        try:
            return fuse_elementwise(compile_native(graph.copy(), left))
        except native.NoRoom:  # NumPy runs it
            pass
        except native.Refused as bug:
            record("jit", "numpy", 0.0, (), f"{native.BUG}: {bug}")
    gather_parts(graph)
    graph.eliminate_dead_code()
    return fuse_elementwise(graph)


def alone(graph: Graph) -> Any:
    """NumPy's BLAS on one thread, where our threads meet large arrays, and nothing needs those of BLAS; else None.

    They wait for more work at full speed for 30 milliseconds, on the cores on which our threads would run. A product
    with a vector is theirs, who share its matrix."""
    calls = [n for n in graph.nodes if n.op == "call_function"]
    if any(isinstance(n.target, Primitive) and n.target.name.startswith(BLAS) for n in calls):
        return None
    met = [m for n in calls if not _leaves_threads(n) for m in (n, *n.all_input_nodes)]
    return single_thread() if any(isinstance(m := n.meta.get("value"), Meta) and m.size >= LARGE for n in met) else None


def _leaves_threads(node: Node) -> bool:
    """Whether a node is a view, or NumPy's product with a vector."""
    given = [m for n in node.all_input_nodes if isinstance(m := n.meta.get("value"), Meta)]
    if not isinstance(node.target, Primitive) or node.target.name != "matmul":
        return isinstance(node.target, Primitive) and node.target.view
    return len(given) == 2 and 1 in (len(m.shape) for m in given)


def _one(out: Sequence[Any], given: Sequence[Any], arguments: Any) -> Any:
    (v,) = out
    if type(v) is Host:
        return on_host(v)
    return array_of(v) if isinstance(v, (Host, onp.generic, Buffer)) else v


def _number(out: Sequence[Any], given: Sequence[Any], arguments: Any) -> Any:
    (v,) = out
    return v[()] if isinstance(v, Host) else v if isinstance(v, onp.generic) else _one(out, given, arguments)


def _handles(out: Sequence[Any]) -> list:
    return [array_of(v) if isinstance(v, (Host, onp.generic, Buffer)) else v for v in out]
