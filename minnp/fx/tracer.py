"""symbolic_trace and Tracer: a function or a model as a graph, traced without values."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import inspect
import math
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from minnp.core.arrays.array import ARRAYS, Array
from minnp.core.graph.effects import assign
from minnp.core.graph.graph import Graph
from minnp.core.graph.node import map_nodes
from minnp.core.graph.proxy import Proxy
from minnp.core.graph.symbolic import SymbolicTrace
from minnp.core.jit.jit import Jitted
from minnp.core.passes.rows import is_pure
from minnp.core.rows.state import CODE_IS_KNOWN, capture, recording, state
from minnp.core.rows.value import Host
from minnp.nn.model import Layer
from minnp.nn.modules import Lambda

from .graph_module import ANY, GraphModule
from .inputs import Inputs, instructions
from .transforming import record

# Modules whose functions are recorded whole: what they ask of shapes, a proxy could not answer.
WHOLE = ("minnp.npx", "minnp.numpy", "minnp.nn.layers", "minnp.nn.losses", "minnp.scipy.special")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_PATCHING = threading.RLock()
_WRAPPED: dict[tuple[int, str], dict] = {}  # names that `wrap("name")` was told, and the modules they are in


class Tracer(SymbolicTrace):
    """Traces a function or model into a graph. Subclass it to say what is kept whole.

        class Whole(Tracer):
            def is_leaf_module(self, module, name):
                return isinstance(module, Attention) or super().is_leaf_module(module, name)

        graph = Whole().trace(model)

    autowrap_modules     modules whose functions are recorded as one call (minnp.npx and math always are)
    autowrap_functions   functions that are, under whatever name the program calls them
    """

    def __init__(self, autowrap_modules: tuple = (math,), autowrap_functions: tuple = ()) -> None:
        super().__init__()
        self.autowrap_modules, self.autowrap_functions = tuple(autowrap_modules), tuple(autowrap_functions)
        self.root: Any = None
        self.modules: dict[int, str] = {}

    # -------------------------------------------------------------- what may be overridden
    def is_leaf_module(self, module: Any, name: str) -> bool:
        """Whether calls of a layer are one call_module node. By default, layers of minnp.nn that hold no others."""
        return type(module).__module__.startswith("minnp.nn") and not any(module.children())

    def path_of_module(self, module: Any) -> str:
        """The dotted name of a layer in the traced model. Raises CaptureError for a layer that is not in it."""
        name = self.modules.get(id(module))
        if name is None:
            raise self.error(
                f"a {type(module).__name__} is called that is no part of {type(self.root).__name__}",
                "keep it in an attribute of the model",
            )
        return name

    def call_module(self, module: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """Record, or trace through, a call of a layer."""
        if id(module) not in self.modules and not self.is_leaf_module(module, ""):
            return forward(*args, **kwargs)
        name = self.path_of_module(module)
        if not self.is_leaf_module(module, name):
            return forward(*args, **kwargs)
        if "mode" in kwargs and not reads_mode(module, kwargs["mode"]):
            del kwargs["mode"]  # says nothing, and a function put in the layer's place takes no mode
        return self.create_proxy("call_module", name, args, kwargs)

    def transformed(
        self, name: str, f: Callable, options: dict, args: tuple, kwargs: dict, direct: bool = False
    ) -> Any:
        """Record a call of grad(f), vmap(f), ...: one node, f being a graph of its own."""
        return record(self, name, f, options, args, kwargs, direct)

    # -------------------------------------------------------------- tracing
    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a function, bound method, callable or model.

        concrete_args   arguments that are no inputs of the graph but have these values, or hold inputs where these
                        hold `fx.PH`. Of `*args` and `**kwargs`, args[0] and kwargs["w"] are inputs; there are none if
                        the function asks how many, unless they are given here
        """
        self.graph, self.root, forward = Graph(), *owner_and_forward(root)
        self.names, self._attributes, self.modules = {}, {}, {}
        self._name_what_it_holds()
        inputs = Inputs(self, forward, concrete_args or {})
        with _PATCHING, self._patches(forward), self._state_kept():
            state.busy += 1
            token = capture.set(self)
            try:
                out = inputs.function(*inputs.args, **inputs.kwargs)
                result = self.create_arg(out)
                for proxy in inputs.made:
                    if proxy._cell.input is not None and proxy._cell.node is not proxy._cell.input:
                        written = self.create_node("call_function", assign, (proxy._cell.input, proxy._cell.node), {})
                        written.meta["effect"] = True
                        back = {proxy._cell.node: proxy._cell.input}  # what returns the array returns the caller's
                        result = map_nodes(result, lambda n: back.get(n, n))  # noqa: B023
            finally:
                capture.reset(token)
                state.busy -= 1
                self.finish()
        self.graph.output(result)
        self.graph.eliminate_dead_code(lambda n: not (is_pure(n) or n.op == "get_attr"))
        inputs.settle()
        return self.graph

    def _name_what_it_holds(self) -> None:
        root = self.root
        if isinstance(root, Layer):
            for prefix, layer in root.walk():
                self.modules[id(layer)] = prefix[:-1]
                for values in (layer.params, layer.aux_params, vars(layer)):
                    self._name(values, prefix)
        elif hasattr(root, "__dict__") and not isinstance(root, (types.FunctionType, types.ModuleType, type)):
            self._name(vars(root), "")

    def _name(self, values: dict, prefix: str) -> None:
        for name, value in values.items():
            if isinstance(value, (Array, Host)):
                self.names.setdefault(id(value), (value, prefix + name))

    @contextlib.contextmanager
    def _state_kept(self) -> Iterator[None]:
        """What layers keep (running averages) stays as it was; a layer that kept a proxy is an error."""
        layers = [layer for _, layer in self.root.walk()] if isinstance(self.root, Layer) else []
        before = [(values, dict(values)) for layer in layers for values in (layer.params, layer.aux_params)]
        try:
            yield
            for values, old in before:
                kept = [name for name, v in values.items() if isinstance(v, Proxy) and old.get(name) is not v]
                if kept:
                    raise self.error(
                        f"{values.owner} keeps {', '.join(kept)} between calls, which a graph does not",
                        'make it a leaf (Tracer.is_leaf_module), or trace it with concrete_args={"mode": "test"}',
                    )
        finally:
            for values, old in before:
                values.clear()
                values.update(old)

    # -------------------------------------------------------------- what is replaced meanwhile
    @contextlib.contextmanager
    def _patches(self, forward: Callable) -> Iterator[None]:
        """While a trace runs, functions kept whole and calls of layers come here; other threads see no change."""
        undo: list[tuple[Any, str, Any]] = []

        def put(namespace: Any, name: str, old: Any, new: Any) -> None:
            undo.append((namespace, name, old))
            namespace[name] = new

        whole = {f: kept_whole(f) for f in self.autowrap_functions}
        namespaces = {id(n): n for n in (_globals_of(forward), *_WRAPPED.values()) if n is not None}
        for module in (*self.autowrap_modules, *map(importlib.import_module, filter(_loadable, WHOLE))):
            for name in getattr(module, "_PYTHON", ()):  # names that are resolved when first used
                getattr(module, name)
            for name, f in list(vars(module).items()):
                ours = (getattr(f, "__module__", "") or "").startswith(("minnp", module.__name__))
                if ours and isinstance(f, _FUNCTIONS) and not name.startswith("_"):
                    whole.setdefault(f, kept_whole(f))
                    namespaces[id(vars(module))] = vars(module)
        for (_, name), namespace in _WRAPPED.items():
            f = namespace.get(name, getattr(builtins, name, None))
            if f is not None and not hasattr(f, "__wrapped_whole__"):
                put(namespace, name, namespace.get(name, undo), kept_whole(f))
        called = Layer.__call__

        @functools.wraps(called)
        def call(layer: Layer, *args: Any, **kwargs: Any) -> Any:
            tracer = recording()
            if not isinstance(tracer, Tracer):
                return called(layer, *args, **kwargs)
            return tracer.call_module(layer, lambda *a, **k: called(layer, *a, **k), args, kwargs)

        for namespace in namespaces.values():
            for name, f in list(namespace.items()):
                try:
                    new = whole.get(f)
                except (TypeError, NotImplementedError):  # not hashable (MXNet's arrays raise the latter): no function
                    continue
                if new is not None:
                    put(namespace, name, f, new)
        Layer.__call__ = call
        try:
            yield
        finally:
            Layer.__call__ = called
            for namespace, name, old in reversed(undo):
                if old is undo:
                    namespace.pop(name, None)
                else:
                    namespace[name] = old


def reads_mode(layer: Layer, mode: Any) -> bool:
    """Whether a layer may be another in that mode: its `forward` looks at it."""
    if isinstance(layer, GraphModule):
        return layer.takes_mode
    p = inspect.signature(layer.forward).parameters.get("mode")
    if p is None or (mode is None and p.default is None):
        return p is None
    code = getattr(inspect.unwrap(type(layer).forward), "__code__", None)
    if code is None or "mode" in code.co_cellvars or not CODE_IS_KNOWN:
        return True
    own = isinstance(layer, Lambda) and not layer.of_mode
    return not own and any(name.startswith("LOAD_FAST") and v == "mode" for name, v in instructions(code))


def owner_and_forward(root: Any) -> tuple[Any, Callable]:
    """(what holds the arrays and layers of the traced thing, what is called)."""
    if isinstance(root, functools.partial):
        owner, forward = owner_and_forward(root.func)
        return owner, functools.partial(forward, *root.args, **root.keywords)
    if isinstance(root, Jitted):
        return owner_and_forward(root.function)
    if isinstance(root, types.MethodType) and isinstance(root.__func__, Jitted):
        return owner_and_forward(functools.partial(root.__func__, root.__self__))
    if isinstance(root, GraphModule):
        return root, types.MethodType(root._run, root)
    return getattr(root, "__self__", root), root.forward if isinstance(root, Layer) else root


def _loadable(name: str) -> bool:
    """Whether a module is there to be patched: SciPy's only where it is in use."""
    return not name.startswith("minnp.scipy") or name in sys.modules


def _globals_of(f: Any) -> dict | None:
    f = f.func if isinstance(f, functools.partial) else f
    f = inspect.unwrap(getattr(f, "__func__", f))
    return getattr(f if isinstance(f, types.FunctionType) else type(f).__call__, "__globals__", None)


def kept_whole(f: Callable, itself: bool = False) -> Callable:
    """f, but one node of the graph where a symbolic trace calls it; the node's target is f, or what is returned."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = recording()
        if tracer is None and state.variables is not None and state.variables.among(args, kwargs):
            tracer = state.variables
        if tracer is None or not _traced((args, kwargs)):
            return f(*args, **kwargs)
        target = call if itself else f
        return tracer.create_proxy("call_function", target, args, kwargs, effect=f.__name__ == "dropout")

    call.__wrapped_whole__ = f
    return call


def _traced(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_traced, x))
    if isinstance(x, dict):
        return any(map(_traced, x.values()))
    return isinstance(x, (Proxy, ARRAYS))


def wrap(function: Callable | str) -> Any:
    """Keep a function whole in graphs: a decorator, or the name of a function (or builtin) that this module calls.

    A wrapped function may branch on data. wrap("len") at the top of a module makes len(x) of a proxy a node.

    >>> @fx.wrap
    ... def clipped(x):
    ...     return np.minimum(x, 1)
    >>> program = fx.symbolic_trace(lambda x: clipped(x) + 1)
    >>> [node.name for node in program.graph.nodes]
    ['x', 'clipped', 'add', 'output']
    """
    if isinstance(function, str):
        namespace = sys._getframe(1).f_globals
        _WRAPPED[id(namespace), function] = namespace
        return function
    return kept_whole(function, itself=True)


def refuse_torch(f: Any) -> None:
    """Raise TypeError for a module of torch, whose operations no graph of NumPy's functions can show."""
    if any(base.__module__ == "torch.nn.modules.module" for base in type(f).__mro__):
        raise TypeError(
            f"{type(f).__name__} is a module of torch, which computes with torch's tensors; F = minnp.Function(module) "
            "is a function of arrays, and one operator in fx.capture(lambda x: F(x), x); torch.fx shows what is in it"
        )


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A function, bound method, callable or model as a GraphModule, traced without values.

    root   what is traced

    Layers of minnp.nn, functions of npx and what `wrap` was told are one node each; all else is traced through,
    in-place writes and views included. Arrays of the model and arrays made outside are attributes of the result.

    concrete_args   values of arguments that are options (`{"mode": "test"}`): no inputs of the graph; a call may leave
                    them out, or give all of f's arguments, those with the same values. What an argument holds is an
                    input where these have `fx.PH`: `{"args": (PH, PH)}`, `{"params": {"w": PH, "b": PH}}`
    Raises CaptureError, with the user's file and line, where Python asks for a value: a branch, a loop over data,
    float(). TypeError for what is no function and no model of minnp's.

    >>> program = fx.symbolic_trace(lambda x: np.exp(x) + 1)
    >>> [node.name for node in program.graph.nodes]
    ['x', 'exp', 'add', 'output']
    """
    if not callable(root):
        raise TypeError(f"symbolic_trace takes a function or a model, got {root!r:.60} ({type(root).__name__})")
    refuse_torch(root)
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    owner, forward = owner_and_forward(root)
    name = type(owner).__name__ if not isinstance(owner, types.FunctionType) else owner.__name__
    gm = GraphModule(owner, graph, name if name.isidentifier() else "GraphModule")
    fixed = {k: v for k, v in (concrete_args or {}).items() if v is None or isinstance(v, (bool, int, float, str))}
    mode = next((n for n in graph.find_nodes(op="placeholder", target="mode") if not n.users), None)
    if mode is not None and isinstance(owner, Layer):
        fixed["mode"] = ANY
        graph.erase_node(mode)
        gm.recompile()
    if fixed:
        parameters = inspect.signature(forward).parameters.values()
        gm.specialised = ([p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD], fixed)
    return gm
