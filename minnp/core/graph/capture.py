"""Capture: a function runs once, on real values, and every row it binds becomes a node.

What Python asks of a value on the way (`if x.sum() > 0`, `float(x)`, the length of a masked selection) is a guard: the
graph holds where the answers are the same. jit.py runs such graphs.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as onp

from ... import errors
from ..api.fallback import fill
from ..api.functions import PUBLIC
from ..arrays import devices
from ..arrays.array import (
    ARRAY_TYPES,
    ARRAYS,
    Array,
    VirtualArray,
    array_of,
    as_host_arrays,
    concretize,
    of_subclass,
    read,
)
from ..arrays.saved import kept_params, same_bytes, unseen
from ..arrays.writing import WRITE_VIEW
from ..cpu import combine
from ..rows import budget, policy
from ..rows.dispatch import bind
from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.pytree import children, rebuilt, tree_flatten
from ..rows.report import user_line
from ..rows.state import capture, state
from ..rows.value import OBJECTS, STREAMS, Buffer, Host, Tracer, concrete, holds_objects, lower, overlapping
from ..transforms.trace import LEVELS, Trace
from .closures import NUMBERS as LITERALS
from .closures import Binding, seal, unwrapped
from .effects import Under, fails, guard, inside, pick
from .graph import Graph, Node
from .kept import Kept, forget
from .node import map_leaves, map_nodes
from .outputs import (
    Change,
    Outside,
    Own,
    Shown,
    View,
    changes,
    containers,
    lasting,
    objects,
    shared_roots,
    shown,
    with_own,
)
from .placement import made_at
from .printed import errors_seen, outputs_seen, unwatched
from .scalars import DRAWN, NUMBERS, VALUES_DECIDE, Live, causes, says
from .signature import Static
from .streams import drawn_at_device

DECISIONS = 64  # branches on data, after which other data would hardly ever take the same way
SEVERAL = 5  # bits (`bits`) of which more would make more ways than jit keeps
# Words of errors about stand-ins, also of elements, which are Python's floats and complex numbers in NumPy
WANTING = (VirtualArray.__name__, "__array__ method not producing an array", "has no memory to hand out")
WANTING += (f"not {Tracer.__name__!r}",)
WANTING += tuple([words for t in ("float64", "complex128") for words in (f"'numpy.{t}' object", f"type {t} is not")])
OPERANDS = (Tracer, Host, Buffer, onp.generic, int, float, complex, str, bytes, type(None))  # of arithmetic
RECORDING = 0.5  # of what a function may take at first: the rest is for its graph
SINGLES = 1_000  # operations of Python's numbers
MANY, MOST = 2_500, 10_000  # nodes of a graph, after which the rest of the program runs as it is: at the latter always
# nodes of unrolled loops, so many for a line of the program on average, that take so many times as long to record as to
# run: a graph of more takes longer to make than it saves in thousands of calls
UNROLLED, TURNS, TIMES = 1_000, 32, 4


class CaptureTrace(Trace):
    """One capture: `node` of its tracers is the graph's node, `value` the real value.

    graph      what was recorded
    fast       whether rows run as on a tape: on the kernels that compiled code calls, shared by our threads
    loops      whether loops of functions that are differentiated or batched are compiled
    constants  name -> NumPy array (or other object) that the graph reads by get_attr
    outside    NumPy's arrays that the program may read besides
    """

    differentiable = False
    symbolic = False
    __slots__ = (
        *(
            "asked",
            "computing",
            "constants",
            "counted",
            "deadline",
            "decided",
            "decisions",
            "drawn",
            "ended",
            "fast",
            "fixed",
            "graph",
            "handling",
            "known",
            "left",
            "lent_numbers",
            "lines",
            "loops",
            "may_leave",
            "outside",
            "varied",
        ),
        *("arrays", "moved", "origins", "seeded", "singles", "turns", "were"),
    )

    def __init__(
        self, fast: bool = False, may_leave: bool = True, loops: bool = False, outside: Sequence[Host] = ()
    ) -> None:
        super().__init__()
        self.loops, self.outside = loops, outside
        self.graph, self.fast, self.may_leave, self.ended = Graph(), fast, may_leave, False
        self.constants: dict[str, Any] = {}
        self.known: dict[int, tuple[Any, Node]] = {}
        self.handling = onp.geterr()
        self.deadline = budget.Deadline()
        self.computing = 0.0  # seconds of what the program computes itself
        self.lines: set[str] = set()  # of the program, from which the nodes come
        self.lent_numbers = False  # whether something stands for a number of Python's
        self.counted = False  # whether it is one of the reasons that `state.busy` counts
        self.decisions = 0.0
        self.decided = False  # whether Python was told what arrays hold, or how many elements some have for that
        self.drawn: set[Node] = set()  # what depends on random numbers, which are others in each call
        self.seeded = False  # whether the program has NumPy's own stream begin anew
        self.turns = 0  # how much that says of which way the program takes (`bits`)
        self.singles = 0  # operations of Python's numbers
        self.moved = False  # whether an array was reshaped
        self.asked: set[str] = set()  # what Python asked of how arrays lie in memory, and for their "text"
        self.arrays: list[weakref.ref] = []  # that dropped their tracers between its end and the program's
        self.left = ""  # why no graph holds what the program did
        self.fixed: set[int] = set()  # the numbers among the inputs that Python read (scalars.py)
        self.varied: set[int] = set()  # those that are indices which change from call to call
        self.were: list[tuple] = []  # (array of NumPy's own that is a constant, a copy of what it was)
        self.origins: dict[int, tuple] = {}  # id of a buffer made outside -> (the buffer, the array it was read from)

    def __repr__(self) -> str:
        return "capture"

    # -------------------------------------------------------------- recording
    def input(self, value: Any, name: str) -> Tracer:
        self.lent.append(value)
        node = self.graph.placeholder(name)
        node.meta["value"] = Meta(value.shape, value.dtype)
        return Tracer(self, value, node)

    def number(self, value: Any, name: str, i: int) -> Live:
        """A Python number that is input i and may change."""
        self.lent_numbers = True
        return Live(self, value, self.graph.placeholder(name), frozenset((i,)))

    def record(self, function: Callable, args: tuple) -> Node:
        """The node of a function of Python numbers."""
        self.singles += 1
        if self.singles > SINGLES and 2 * self.singles > len(self.graph) and self.fast and self.may_leave:
            self.ends(f"the function computes more than {SINGLES} numbers of Python's, which no graph does faster")
        node = self.graph.create_node("call_function", function, args)
        node.meta["where"] = user_line()
        self._follow(node)
        return node

    def _follow(self, node: Node, draws: bool = False) -> None:
        """Note whether a node draws random numbers that are others in each call, or depends on such."""
        if draws or (self.drawn and not self.drawn.isdisjoint(node.all_input_nodes)):
            self.drawn.add(node)

    def made(self, stream: Any, function: Callable, args: tuple, kwargs: dict) -> None:
        """function(*args, **kwargs) made a random stream: every run of the graph makes its own."""
        args, kwargs = _lift((args, kwargs), self._reference)
        args = tuple([self.known[id(a)][1] if id(a) in self.known else a for a in args])
        node = self.graph.create_node("call_function", function, args, kwargs)
        node.meta.update(where=user_line(), effect=True)
        self._follow(node, all(a is None for a in (*args, *kwargs.values())))
        self.known[id(stream)] = (stream, node)

    def check(self, node: Node, expected: Any) -> None:
        """The graph holds only where a node's value is this one."""
        self._guard(node, "value", expected)

    def writes(self) -> None:
        """The program prints, logs, warns or writes to a file: what it was told of arrays may be in it."""
        if self.decided and self.alive:
            self.left = self.left or "the function prints, logs, warns or writes after it asked what its arrays hold"

    def _numbers(self, row: Primitive, values: Any) -> list:
        """The arguments of a row, in which a Live number stays where elements alone depend on it."""
        if row.name == "loop":
            return list(values)
        stays = row.loops or row.jvp == "elementwise" or row.batch == "elementwise" or row is WRITE_VIEW
        if stays and VALUES_DECIDE:
            for v in values:
                if type(v) is Live and not v.node.meta.get("sized"):
                    v.node.meta["sized"] = True
                    least = self.record(onp.min_scalar_type, (v.node,))
                    least.meta["value"] = ()  # no array
                    self._effect(guard, least, "value", onp.min_scalar_type(v.value))
        if row.name == "take":
            values = [(v.array() if DRAWN in v.sources else v.index()) if type(v) is Live else v for v in values]
        self._fits(values)
        return [v.fixed() if type(v) is Live and not stays else v for v in values]

    def _fits(self, values: list) -> None:
        """NumPy refuses an integer of Python's that the dtype of the array beside it does not hold."""
        dtypes = {v.dtype for v in values if type(v) is not Live and getattr(v, "dtype", None) is not None}
        for dtype in (d for d in dtypes if d.kind in "iu" and d != onp.int64):
            for v in values:
                if type(v) is Live and type(v.value) is int and (bound := onp.iinfo(dtype)).min <= v.value <= bound.max:
                    self.within(v, int(bound.min), int(bound.max))

    def within(self, number: Live, least: int, most: int) -> None:
        """The graph holds only where a number lies between these."""
        node = self.record(inside, (number.node, least, most))
        node.meta["value"] = ()  # no array
        self._effect(guard, node, "value", True)

    def too_long(self, count: int) -> str:
        """Why a graph of so many nodes is not to become longer, or ""."""
        if count > MOST:
            return f"does more than {MOST} things"
        if count > MANY and self.deadline.passed(RECORDING):
            return f"takes more than {RECORDING * budget.seconds} s to record"
        recording = budget.seconds - self.deadline.left()
        small = self.fast and self.may_leave and TIMES * self.computing < recording
        if small and count > max(UNROLLED, TURNS * len(self.lines)):
            return f"does more than {UNROLLED} small things, {TURNS} in a line and more"
        return ""

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        if (count := len(self.graph)) > min(UNROLLED, MANY) and (why := self.too_long(count)):
            way = "" if importlib.util.find_spec("llvmlite") else ": pip install llvmlite, which compiles loops"
            self.ends(f"the function's Python, loops that stay Python unrolled, {why}{way}")
            return bind(row, values, params)
        if any(type(v) is Live for v in values):
            values = self._numbers(row, [v.fixed() if type(v) is Live and v.trace is not self else v for v in values])
        if row.name == "getitem" and type(i := params["index"]) is Live and DRAWN in i.sources and values[0].ndim == 1:
            params = {"index": i.array()}  # one element of a list, which is no view
        params = {k: map_leaves(v, _concrete_param) for k, v in params.items()}
        raw = [v.value if type(v) is Live or self._mine(v) else v for v in values]
        if any(map(holds_objects, raw)):
            self.ends(OBJECTS)
            return bind(row, values, params)
        if row.jvp == "elementwise" and not all(isinstance(v, OPERANDS) for v in raw):
            self.ends("an operator of an object that is no array")
            return bind(row, values, params)
        inner = {k: _lift(v, self._value) for k, v in params.items()}
        recorded = {k: _lift(v, self._reference) for k, v in params.items() if k != "donate"}
        args = tuple(v.node if type(v) is Live else _lift(v, self._reference) for v in values)
        host = getattr(row.numpy, "host", None)  # of a call that fell back
        drawn = drawn_at_device(row, values, params)
        begin = time.thread_time()
        try:
            if drawn is not None:
                y = drawn
            elif host is None or raw or devices.default_device() is None or row.name.startswith("random."):
                y = _bind_concrete(row, raw, inner, self.fast)
            else:
                y = _made_concrete(PUBLIC.get(host, host), *fill(inner["arguments"], ()))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # the program may catch it
            of_shapes = row.view and not tracers_in(params)  # and those are the same at every call
            if "arguments" not in recorded and not of_shapes:
                self._effect(fails, self._under(row), type(error), args, recorded)
            raise
        if holds_objects(y):
            self.ends(OBJECTS)
            return y
        self.computing += self.deadline.leave_out(begin)  # the program computes that in any case, recorded or not
        target = self._under(row)
        draws = False
        if host is not None:  # said as the user said it
            args, recorded = fill(recorded["arguments"], args)
            made = [isinstance(a, STREAMS) and id(a) in self.known for a in args]
            args = tuple([self.known[id(a)][1] if own else a for a, own in zip(args, made)])
            target = PUBLIC.get(host, host)
            self.seeded |= row.name == "random.seed"
            draws = row.name.startswith("random.") and not any(made) and not self.seeded
        node = self.graph.create_node("call_function", target, args, recorded, name=row.name.rpartition(".")[2])
        self.lines.add(line := user_line())
        node.meta["where"] = line
        self._follow(node, draws)
        if target is row and (now := onp.geterr()) != self.handling:
            node.meta["handling"] = now
        if row.name == "loop":
            node.meta["effect"] = True  # it may raise
        elif TABLE.get(row.name) is not row:
            node.meta.update(effect=row.name.startswith("random."), function=row.name)
        # of a function that no row tells anything of
        free = TABLE.get(row.name) is not row and bool(values) and row.name != "loop"
        dynamic = "shape dtype" if free else row.dynamic
        if type(y) in (tuple, list):
            node.meta["value"] = tuple(_meta(o) for o in y)
            outs = list(y)
            # what a loop says of its arrays comes first: where one is not bound, nobody may ask for its shape
            for i in sorted(range(len(outs)), key=lambda i: type(outs[i]) is not str):
                item = self.graph.create_node("call_function", pick, (node, i), name=f"{node.name}_{i}")
                self._follow(item)
                item.meta["number"] = row.name == "loop"  # one of Python's is none that is known when it is compiled
                outs[i] = self._result(outs[i], item, dynamic if i not in getattr(row, "roomy", ()) else "")
            return type(y)(outs)
        self.moved |= row.name == "reshape"
        view = None
        shows = row.view and values and (self._mine(values[0]) or type(values[0]) in (Host, Buffer))
        if shows and overlapping(y, values[0]):  # of an array made outside too: a write to the view ends the capture
            view = (values[0], row, kept_params(params))
        return self._result(y, node, dynamic, view)

    def _result(self, y: Any, node: Node, dynamic: str, view: Any = None) -> Any:
        if not isinstance(y, (Host, onp.generic, Buffer, Tracer)):
            if type(y) in NUMBERS and (node.meta.get("effect") or node.meta.get("number")):
                self.lent_numbers = True
                return Live(self, y, node, frozenset((DRAWN,)))
            if y is not None:
                self._guard(node, "value", y)
            return y
        node.meta["value"] = _meta(y)
        if isinstance(y, (onp.str_, onp.bytes_)):  # Python's, which no row computes with
            self._guard(node, "value", y)
            return y
        if type(y) is Buffer:
            node.meta["device"] = y.backend
        if "shape" in dynamic and (getattr(node.target, "name", None) not in TABLE or _by_mask(node)):
            self._guard(node, "shape", tuple(y.shape))
        if "dtype" in dynamic and y.dtype.kind in "fc":
            self._guard(node, "dtype", y.dtype)
        return Tracer(self, y, node, view)

    def _mine(self, v: Any) -> bool:
        return type(v) is Tracer and v.trace is self

    def _value(self, v: Any) -> Any:
        v = read(v) if type(v) in ARRAY_TYPES else v
        if type(v) is Live:  # a parameter: shapes may depend on it
            return v.fixed()
        return v.value if self._mine(v) else v

    def _reference(self, v: Any) -> Any:
        """What a node holds for a value: its node, a constant by name, or the number itself. (Arrays are among the
        parameters of some rows.)"""
        v = read(v) if type(v) in ARRAY_TYPES else v
        if self._mine(v):
            return v.node
        if type(v) is Live:
            return v.fixed()
        if isinstance(v, (Host, Buffer, Tracer)):
            return self.constant(v)
        return v

    def lifted(self, values: Any) -> list:
        """Values with tracers in the place of arrays made outside, which others may write to or bind anew."""
        return [Tracer(self, v, self.constant(v)) if isinstance(v, Host) else v for v in values]

    def constant(self, value: Any) -> Node:
        """The get_attr node of an array made outside: held by reference, so that in-place updates are seen."""
        found = self.known.get(id(value))
        if found is None:
            name = f"constant_{len(self.constants)}"
            # a write on a device may replace the buffer: its array has the present one
            self.constants[name] = self.origins.get(id(value), (value,))[-1] if type(value) is Buffer else value
            node = self.graph.get_attr(name)
            node.meta.update(value=_meta(value), constant=value)
            found = self.known[id(value)] = (value, node)
            if holds_objects(value):
                self.left = self.left or OBJECTS
            if of_subclass(value):
                self.left = self.left or f"the function makes a {type(value).__name__}, whose operators are its own"
            if unseen(value):
                self.were.append((value, value.copy()))
        elif self.were:
            self.constants_stay()
        return found[1]

    def constants_stay(self) -> None:
        """Look whether NumPy's own arrays are still what they were when the graph was first given them."""
        for value, was in self.were:
            if not same_bytes(value, was):
                self.left = "the function changes an array of plain NumPy that it reads"

    def depends_on(self, value: Any) -> None:
        """Python, or NumPy itself, looked at the elements of an array made outside: the graph holds for these alone."""
        self._guard(self.constant(value), "value", value)

    def _under(self, row: Primitive) -> Any:
        """The row, with errors handled as they are here if the program said so (np.errstate) since it began."""
        now = onp.geterr()
        return row if now == self.handling or "raise" not in now.values() else Under(row, now)

    def hands_out(self, value: Tracer, way: str) -> None:
        if not self.may_leave:
            super().hands_out(value, way)
        self.ends(f"{way} hands out an array's memory")

    def dropped(self, h: Array) -> None:
        if self.ended and type(h) is VirtualArray:
            self.arrays.append(weakref.ref(h))

    def looked(self, name: str) -> None:
        self.asked.add(name)

    def leave(self, name: str, made: Any) -> None:
        """The rest of the program runs as it is, on the values that tracers wrap."""
        self.ends(f"np.{name} makes a {type(made).__name__}, whose operators are its own")

    def ends(self, why: str) -> None:
        """No graph holds this program: the rest of it runs as it is, and another capture would end here too."""
        if not self.may_leave:
            raise errors.CaptureError(f"{why}, and no graph holds that; jit runs such a function as it is")
        # no number has a stand-in, and no transformation that may hold tracers began since: neither is for NumPy
        if self.counted and not self.lent_numbers and next(LEVELS) == self.level + 1:
            self.counted = False
            state.busy -= 1  # the rest takes the fast paths
        self.left, self.ended = why, True
        self.finish()
        capture.set(None)
        unwatched()  # nobody asks any more

    def shares(self, value: Any) -> bool:
        """Whether an input shares memory with another one, or with an array outside: a write to it changes both, which
        no graph tells; or may not be written at all."""
        if not value.flags.writeable:
            return True
        arrays = [*(v for v in self.lent if type(v) is Host), *self.outside]
        return sum(onp.may_share_memory(value, v) for v in arrays) > 1

    def depends_on_layout(self) -> bool:
        """Whether arrays that lie in memory otherwise would have led elsewhere: Python asked, or an array was written
        and another one is a view of it or a copy, as reshape finds."""
        rows = {n.target.name for n in self.graph.nodes if isinstance(n.target, Primitive)}
        return not self.asked.isdisjoint(("strides", "flags")) or ("write_view" in rows and self.moved)

    # -------------------------------------------------------------- guards
    def concretize(self, value: Tracer, kind: Any) -> Any:
        if holds_objects(value.value):
            self.ends(OBJECTS)
            return value.value
        self.decides(1)
        self._guard(value.node, "value", concrete(value))
        return value.value.copy() if type(value.value) is Host else value.value  # the program may write to it after

    def decides(self, weight: float) -> None:
        """Python asked what an array holds, or compared numbers (an eighth as much: arguments repeat, data do not)."""
        before, self.decisions = self.decisions, self.decisions + weight
        if before < DECISIONS <= self.decisions and self.fast and self.may_leave:
            self.ends(f"the function asks some {DECISIONS} times what its arrays hold, one by one")

    def _guard(self, node: Node, kind: str, expected: Any) -> None:
        if isinstance(expected, (Host, Buffer)):
            expected = (expected.host() if type(expected) is Buffer else expected).copy()
        self.decided |= kind != "dtype"
        self._effect(guard, node, kind, expected)
        # (a shape that is known only when a row has run hardly ever depends on what was drawn)
        if node in self.drawn and kind != "shape" and self.fast and self.may_leave and self.alive:
            self.turns += bits(kind, expected)
            if self.turns > SEVERAL:
                self.ends("which way the function takes depends on the random numbers that it draws")

    def _effect(self, function: Callable, *args: Any) -> None:
        self.graph.create_node("call_function", function, args, name=function.__name__).meta["effect"] = True


def bits(kind: str, expected: Any) -> int:
    """How much the answer says that a guard waits for: 1 where it is one of two, more where it may be any number, and
    of floats hardly two are alike."""
    of = "b" if isinstance(expected, bool) else getattr(getattr(expected, "dtype", None), "kind", "")
    if kind == "dtype" or getattr(expected, "shape", ()):
        return 0 if kind == "dtype" else 3
    return {"b": 1, "f": SEVERAL + 1}.get(of, 3)


def _bind_concrete(row: Primitive, raw: list, params: dict, fast: bool) -> Any:
    """Run a row on concrete values, for the capture that records it; `fast` as the capture has it."""
    token = capture.set(None)
    try:
        if fast and row.worth is None and policy.current().plain and {Buffer, Tracer}.isdisjoint(map(type, raw)):
            return combine(row.fast, *raw) if row.elementwise and not params else row.fast(*raw, **params)
        return bind(row, raw, params)
    finally:
        capture.reset(token)


def _made_concrete(function: Callable, args: tuple, kwargs: dict) -> Any:
    """What a public function makes out of no arrays, where new arrays live."""
    token = capture.set(None)
    try:
        return made_at(devices.default_device(), function, args, kwargs)
    finally:
        capture.reset(token)


def _by_mask(node: Node) -> bool:
    """Whether the shape of a row's result depends on the elements: where it has an index, on those of a mask."""
    if "index" not in node.kwargs:
        return True
    found: list = []
    map_nodes(node.kwargs.get("index"), lambda n: found.append(n) or n)
    return any(n.meta["value"].dtype == bool for n in found)


def _meta(v: Any) -> Any:
    return Meta(v.shape, v.dtype) if hasattr(v, "dtype") and hasattr(v, "shape") else v


def _concrete_param(v: Any) -> Any:
    """A parameter that is an array of ours, where Python has a number or axes: these, and the graph holds for them
    alone."""
    if type(v) not in ARRAY_TYPES or type(read(v)) is not Tracer:
        return v
    found = onp.asarray(concretize(read(v), int))
    return tuple(found.tolist()) if found.ndim == 1 and found.dtype.kind in "iu" else found[()]


def _lift(x: Any, f: Callable) -> Any:
    """x with f(value) in the place of every value, through containers and slices."""
    return map_leaves(x, lambda v: f(v) if isinstance(v, (Tracer, Host, Buffer, Live)) else v)


# ------------------------------------------------------------------ one capture
class Captured:
    """What a capture found.

    constants   name -> what the graph reads by get_attr
    rebuild     the parts of the result -> the result; with `changes`, (the result, the values of each)
    written     inputs that were written: their last values are the graph's last outputs
    fixed       leaves that are numbers, or arrays in a memory layout, for which alone the graph holds
    shown       parts that are not computed but the caller's own (outputs.py)
    scalars     parts that are scalars, as NumPy's functions return them, and not arrays without axes
    left        why the graph does not hold what the function did, or ""
    ended       whether every other capture would end as well
    function    what was captured, to run as it is; None where nobody asks for that
    keeps       whether the function kept what it computed in objects outside
    deadline    when what becomes of the graph is to be done
    """

    __slots__ = (
        "changes",
        "constants",
        "deadline",
        "ended",
        "fixed",
        "function",
        "graph",
        "keeps",
        "left",
        "rebuild",
        "said",
        "scalars",
        "shown",
        "written",
    )

    def __init__(
        self,
        graph: Graph,
        constants: dict,
        rebuild: Callable,
        written: list[int],
        fixed: set[int] = frozenset(),
        shown: dict[int, Any] | None = None,
        changes: list[Change] | None = None,
        scalars: Sequence[int] = (),
    ) -> None:
        self.graph, self.constants, self.rebuild, self.written, self.fixed = graph, constants, rebuild, written, fixed
        self.said: tuple | None = None
        self.function: Callable | None = None
        self.shown, self.changes, self.scalars = shown or {}, changes or [], scalars

    def bits(self) -> int:
        """How much the guards have to be told: of many calls, hardly two take one way."""
        return sum(bits(*n.args[1:]) for n in self.graph.nodes if n.target is guard)

    def says(self) -> tuple:
        """The graph, its rows (all loops have one name) and, with numbers in the place of computed parts, what becomes
        of its results."""
        if self.said is None:
            count = len(self.graph.output_node().args[0]) - len(self.written)
            besides = repr((self.written, self.changes, self.shown, self.scalars))
            rows = [n.target for n in self.graph.nodes if isinstance(n.target, Primitive)]
            self.said = rows, str(self.graph), repr(self.rebuild(list(range(count)))), besides
        return self.said

    def splits(self, arguments: Any) -> bool:
        """Whether it changes lists or dicts of the arguments, and has two of one that is twice among these."""
        held = [id(container) for _, container, _ in containers(arguments)] if self.changes else ()
        return len({*held}) < len(held)

    def result(self, parts: list, given: list, arguments: Any) -> Any:
        """The user's result, of its parts and the inputs as the caller holds them; `arguments` are changed as f did."""
        if self.function is not None and not self.written and self.splits(arguments):  # else arrays are written by now
            return self.function(*arguments[0], **arguments[1])
        parts = as_host_arrays(parts)
        for i in self.scalars:
            parts[i] = read(parts[i])[()] if type(parts[i]) in ARRAY_TYPES else parts[i]
        for i, what in self.shown.items():
            if type(what) is Own:
                parts[i] = what.of(arguments)
            elif type(what) is Outside:
                parts[i] = what.binding.value
            elif type(what) is Shown:
                parts[i] = what.of(given)
            elif type(what) is not View:
                parts[i] = parts[what]
        for i, what in self.shown.items():  # of parts that are all there
            if type(what) is View:
                parts[i] = what.of(parts)
        out = self.rebuild(parts)
        if self.changes:
            out, values = out
            for change, new in zip(self.changes, values, strict=True):
                change.make(arguments, new)
        return out


class Discarded(Exception):
    """The function raised what nobody sees, for it is run again."""

    def __init__(self, why: Any) -> None:
        self.why = why


def capture_call(
    f: Callable,
    leaves: list,
    rebuild: Callable,
    names: list[str],
    live: set[int] = frozenset(),
    unfinished: list | None = None,
    fast: bool = False,
    may_leave: bool = False,
    loops: bool = False,
    callers: tuple[list, Any] | None = None,
    discards: Callable[[BaseException], Any] | None = None,
    outside: Sequence[Binding] = (),
    watches: bool = False,
    catches: bool = False,
    varied: Iterable[int] = (),
) -> tuple[Captured, list, list]:
    """Run f with its array leaves replaced by tracers; returns (Captured, the parts of f's result, what it wrote).

    leaves      values of the arguments' leaves; arrays and floating point scalars of NumPy's become inputs
    rebuild     leaves -> (args, kwargs)
    live        places of the Python numbers that become inputs too
    unfinished  receives the same of what f had done to its arguments when it raised
    fast, loops  as CaptureTrace has them
    may_leave   a function that a graph cannot hold is no error: `left` of what is returned says why
    callers     (leaves, arguments) as the caller holds them: what f keeps of them in objects outside
    discards    tells of an exception why nobody sees it, if so: then Discarded is raised, and f is run again
    outside     what f may read besides
    watches     whether f may print, log, warn or write to files, which is looked at then
    catches     whether f may catch exceptions: of those that `discards` tells of, nobody would see any
    varied      those of `live` that were other numbers in other calls: where they index arrays, they are inputs
    """
    outside = [b for b in outside if not isinstance(b.value, LITERALS)]
    trace = CaptureTrace(fast, may_leave, fast or loops, [v for b in outside if type(v := unwrapped(b.value)) is Host])
    trace.varied.update(varied)
    own, arguments = callers or (leaves, None)
    boxed, inputs, held = [], [], []
    for i, (value, name) in enumerate(zip(leaves, names, strict=True)):
        if isinstance(value, (Host, Buffer, Tracer)) or (i in live and isinstance(value, onp.floating)):
            boxed.append(array_of(trace.input(value, name)))
            inputs.append(boxed[-1])
            held.append(own[i])
        elif i in live:
            boxed.append(trace.number(value, name, i))
            inputs.append(None)
            held.append(None)
        else:
            boxed.append(value.value if type(value) is Static else value)
    given = rebuild(boxed)
    before = containers(given)
    whole = objects(given, (*LITERALS, *ARRAYS)) if callers else []
    variables = [x for b in outside for x in (b.holder, b.value)]
    kept = Kept(inputs, held, before, arguments, (f, arguments, *variables))
    alive = weakref.ref(trace)
    refused: list = []
    look = lambda error: refused.append(why) if (why := discards(error)) and not alive().left else None
    try:
        with errors_seen(look) if catches and discards is not None else contextlib.nullcontext():
            captured, parts, written = _captured(
                trace, f, given, inputs, before, whole, kept, leaves, loops, unfinished, outside, watches
            )
        if refused:
            raise Discarded(refused[0])  # what it caught, nobody would have raised
    except BaseException as error:
        # beyond the capture the function ran on the caller's memory
        seen = discards is not None and not trace.left
        why = refused[0] if refused else discards(error) if seen else None
        kept.count()
        if why:
            forget(error)
        inputs.clear()
        del trace, boxed, given, before
        kept.exchange(alive, None if why else error)
        if why:
            raise Discarded(why) from None
        raise
    kept.count()
    inputs.clear()
    del trace, boxed, given, before
    captured.keeps = kept.exchange(alive)
    captured.function = f if callers else None
    return captured, parts, written


def _captured(
    trace: CaptureTrace,
    f: Callable,
    given: tuple[tuple, dict],
    inputs: list,
    before: list,
    whole: list,
    kept: Kept,
    leaves: list,
    loops: bool,
    unfinished: list | None,
    outside: Sequence[Binding],
    watches: bool,
) -> tuple[Captured, list, list]:
    may_leave = trace.may_leave
    roots = [(h, None if h is None else h._value) for h in inputs]
    state.busy += 1
    trace.counted = True
    token = capture.set(trace)
    same = lambda h, was: read(h) is was or read(h) is was.value  # the latter once the program left the capture
    error, out = None, None
    try:
        try:
            with outputs_seen(trace.writes) if watches else contextlib.nullcontext():
                out = f(*given[0], **given[1])
        except BaseException as raised:
            error = raised
        else:
            trace.constants_stay()
        changed, values = changes(before)
        changed = [Change(c.where, tuple(map(_key, c.removed)), tuple(map(_key, c.keys))) for c in changed]
        out = _plain_keys(with_own((out, values) if changed else out, [*before, *whole], outside))
        parts, rebuild_out = tree_flatten(out)
        count = len(parts)
        parts += shared_roots(parts, inputs, outside) if may_leave else []
        values = [read(p) if type(p) in ARRAY_TYPES else p for p in parts]
        written = [i for i, (h, was) in enumerate(roots) if h is not None and not same(h, was)]
        finals = [roots[i][0] for i in written]
        nodes = [
            v.node if type(v) is Live and v.trace is trace else trace._reference(v)
            for v in (*values, *map(read, finals))
        ]
        already = shown(parts, inputs, written, lambda x: not tracers_in(x))
        for k, v in enumerate(values if not trace.left else ()):
            # made without a traced array: another in every call, as in this one
            if type(v) is Host and type(parts[k]) is not Host and k not in already:
                copy = trace.graph.create_node("call_function", TABLE["copy"], (nodes[k],), {"order": "C"}, name="copy")
                copy.meta.update(where=nodes[k].meta.get("where", ""), value=Meta(v.shape, v.dtype))
                nodes[k], parts[k] = copy, array_of(v.copy())
        v = None
    finally:
        capture.reset(token)
        state.busy -= trace.counted
        trace.finish()
    # What becomes of a text cannot be followed: it may be read back as a number. Who asks for a graph gets one, unless
    # the text is among its results.
    if error is None and "text" in trace.asked and (may_leave or any(isinstance(p, str) for p in parts)):
        trace.left = trace.left or "print, str or an f-string made a text of a traced array"
    anew = next((p for p in parts if not lasting(p)), None)
    if anew is not None and may_leave:
        trace.left = trace.left or f"it returns a {type(anew).__name__}, which is another in every call"
    if trace.left and not may_leave and error is None:
        raise errors.CaptureError(f"{trace.left}, and no graph holds that; jit runs such a function as it is")
    for node in trace.graph.find_nodes(op="call_function") if loops else ():
        if node.target is not guard:
            node.meta.setdefault("value", ())  # a number of Python's, which is another in each call: no array
    trace.graph.output(tuple(nodes))
    kept.arrays += trace.arrays
    kept.watch((*parts, *inputs))
    kept.objects = [a for a in map(unwrapped, (*parts, *(b.value for b in outside))) if _of_objects(a)]
    for h in (*parts, *inputs):
        if type(h) in ARRAY_TYPES:
            read(h)
    trace.were.clear()
    scalars = [i for i, v in enumerate(values) if isinstance(lower(v), onp.generic) and i not in already]
    structure = _joined(out, rebuild_out(list(range(count))))  # without the arrays of `out`
    rebuild_out = _of_first(count, _rebuilding(structure))
    del out, values  # they hold constants
    seal(trace.graph, trace.constants)
    for node in [n for n in trace.graph.nodes if n.target is guard and n.args[0].meta.get("sealed")]:
        trace.graph.erase_node(node)
    if trace.depends_on_layout():
        trace.fixed |= {i for i, v in enumerate(leaves) if type(v) in (Host, Buffer)}
    captured = Captured(trace.graph, trace.constants, rebuild_out, written, trace.fixed, already, changed, scalars)
    captured.left, captured.ended, captured.deadline = trace.left, trace.ended, trace.deadline
    made = (
        captured,
        [p.value if type(p) is Live else _handed_out(p) for p in parts],
        list(map(_handed_out, finals)),
    )
    if error is not None:
        if unfinished is not None:
            unfinished += made
        raise error
    return made


def arrays_refused(error: BaseException | None) -> str:
    """What an exception, or one it came from, says where what is written in C wants NumPy's own array or scalar."""
    return next((str(e) for e in causes(error) if says(e, WANTING)), "")


def _handed_out(x: Any) -> Any:
    """What a captured function returned, as the caller gets it: another array than what the function may have kept."""
    out = as_host_arrays(x)
    return array_of(lower(read(out))) if out is x and type(x) is VirtualArray else out


def _of_objects(x: Any) -> bool:
    return type(x) is Host and x.dtype.char == "O"


def _rebuilding(tree: Any) -> Callable:
    """rebuild(leaves) of tree_flatten, in which a list or dict that is twice in the tree is one."""
    rebuild, left, met = tree_flatten(tree)[1], [tree], set()
    while left:
        x = left.pop()
        inside = children(x)
        if inside:
            if id(x) in met:
                return lambda leaves: _joined(tree, rebuild(leaves))
            met.add(id(x))
            left += inside
    return rebuild


def _joined(tree: Any, new: Any, met: dict[int, Any] | None = None) -> Any:
    """`new`, of the structure of `tree`, in which containers are one that are one in the tree."""
    inside, met = children(tree), {} if met is None else met
    if inside is None or tree is None:
        return new
    if id(tree) not in met:
        old = children(new)
        joined = [_joined(x, y, met) for x, y in zip(inside, old)]
        met[id(tree)] = new if all(x is y for x, y in zip(joined, old)) else rebuilt(new, joined)
    return met[id(tree)]


def _of_first(count: int, rebuild: Callable) -> Callable:
    """`rebuild`, of the first `count` parts of more."""
    return lambda parts: rebuild(parts[:count])


def _plain_keys(x: Any) -> Any:
    """The same containers, with numbers for the traced numbers that are keys of dicts: guards hold them."""
    if type(x) in (list, tuple):
        new = [_plain_keys(y) for y in x]
        return x if all(a is b for a, b in zip(x, new)) else type(x)(new)
    if not isinstance(x, dict):
        return x
    new = {_key(k): _plain_keys(y) for k, y in x.items()}
    if all(a is b and x[a] is new[b] for a, b in zip(x, new)):
        return x
    if type(x) is dict:
        return new
    made = copy.copy(x)  # a subclass's, with what else it holds
    made.clear()
    made.update(new)
    return made


def _key(k: Any) -> Any:
    if type(k) is Live:
        return k.value
    return onp.asarray(concrete(read(k)))[()] if type(k) in ARRAY_TYPES else k


def copied(x: Any) -> Any:
    """An argument's value that may be written while it is captured: arrays copied, those of a device where they are."""
    if not isinstance(x, (Array, Host)):
        return x
    value = concrete(read(x)) if type(x) in ARRAY_TYPES else x
    return value if type(value) is Buffer else onp.array(value)


def tracers_in(x: Any) -> list:
    """The values of a capture that parameters hold."""
    found: list = []
    _lift(x, lambda v: found.append(v) or v)
    return found
