"""jit: capture once, run the graph after.

Compiled code is keyed on the arguments' structure, shapes, dtypes and static values. Under one key there is a path for
each way the function's Python went; a path whose guard fails gives way to the next, and a new way is captured.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import backends, errors
from . import policy
from .array import handle, ndarray, read
from .capture import Captured, capture_call
from .effects import Diverged
from .executor import compile_host
from .graph import Graph
from .interpreter import blame
from .passes import fuse_elementwise, optimize
from .placed import free
from .state import capture, state
from .tree import structure, tree_flatten
from .value import Buffer, Host, Tracer
from .writing import write

LIMIT = 32  # paths per key, and keys per function, before jit says that a function keeps making new ones


class Path:
    """One captured way through a function, compiled."""

    __slots__ = ("captured", "graph", "run")

    def __init__(self, captured: Captured, home: Any = None) -> None:
        self.captured = captured
        self.graph = optimize(captured.graph.copy())
        run = None if home is None else home.compile(self.graph.copy(), captured.constants)
        self.run = run or compile_host(fuse_elementwise(self.graph.copy()), captured.constants)


class Jitted:
    """A compiled function; made by `jit`."""

    def __init__(self, f: Callable, limit: int) -> None:
        functools.update_wrapper(self, f)
        self.function, self.limit = f, limit
        self.paths: dict[Any, list[Path]] = {}
        self.calls = self.captures = self.guard_failures = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self.function, '__qualname__', self.function)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is ndarray:
            leaves, rebuild, shape = [args[0]], _one, "*"
        else:
            leaves, rebuild = tree_flatten((args, kwargs))
            shape = structure((args, kwargs))
        values = [read(x) if type(x) is ndarray else x for x in leaves]
        home = None
        for v in values:
            if type(v) is Tracer:
                return self.function(*args, **kwargs)  # another transformation runs it row by row
            if type(v) is Buffer:
                home = v.backend
        if state.busy or home is not None:
            if capture.get() is not None or (home is not None and not free(home)):
                return self.function(*args, **kwargs)
            if home is None and policy.current().backend is not None:
                home = backends.get(policy.current().backend)
        key = (shape, *[(v.shape, v.dtype) if isinstance(v, (Host, Buffer)) else _static(v) for v in values], home)
        self.calls += 1
        arrays = [v for v in values if isinstance(v, (Host, Buffer))]
        paths = self.paths.get(key)
        if paths is not None:
            for i, path in enumerate(paths):
                try:
                    out = path.run(*arrays)
                except Diverged:
                    self.guard_failures += 1
                    continue
                except Exception as error:
                    blame(error, path.run, path.run.nodes)
                    raise
                if i:  # what held last is tried first
                    paths.insert(0, paths.pop(i))
                return self._finish(path, out, leaves)
        return self._capture(key, args, kwargs, leaves, values, rebuild)

    def _finish(self, path: Path, out: tuple, leaves: list) -> Any:
        captured = path.captured
        n = len(out) - len(captured.written)
        if captured.written:
            inputs = [x for x in leaves if type(x) is ndarray or isinstance(x, Host)]
            for i, final in zip(captured.written, out[n:], strict=True):
                target = inputs[i]
                write(target if type(target) is ndarray else handle(target), ..., handle(final))
        return captured.rebuild([handle(v) if isinstance(v, (Host, onp.generic, Buffer)) else v for v in out[:n]])

    def _capture(self, key: Any, args: tuple, kwargs: dict, leaves: list, values: list, rebuild: Callable) -> Any:
        paths = self.paths.setdefault(key, [])
        if len(paths) >= self.limit or len(self.paths) > self.limit:
            what = (
                "paths through its Python" if len(paths) >= self.limit else "combinations of shapes and static values"
            )
            raise errors.CaptureError(
                f"{self!r} has met {self.limit} different {what} and would compile another; pass numbers that keep "
                "changing as arrays, use np.where for branches on data, or raise jit(..., limit=)"
            )
        captured, (out, written) = capture_call(self.function, values, rebuild, leaf_names(self.function, args, kwargs))
        self.captures += 1
        paths.insert(0, Path(captured, key[-1]))
        for i, final in zip(captured.written, written, strict=True):
            target = [x for x in leaves if type(x) is ndarray or isinstance(x, Host)][i]
            write(target if type(target) is ndarray else handle(target), ..., final)
        return out

    # -------------------------------------------------------------- looking inside
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Capture (or find) the path of these arguments without keeping its result: .graph, .code, .flops()."""
        leaves, rebuild = tree_flatten((args, kwargs))
        values = [onp.array(x) if isinstance(x, (ndarray, Host)) else x for x in leaves]
        captured, _ = capture_call(self.function, values, rebuild, leaf_names(self.function, args, kwargs))
        return Lowered(Path(captured))

    def cache_info(self) -> dict[str, int]:
        """Counts: calls, captures, guard_failures, keys, paths."""
        return {
            "calls": self.calls,
            "captures": self.captures,
            "guard_failures": self.guard_failures,
            "keys": len(self.paths),
            "paths": sum(map(len, self.paths.values())),
        }

    def clear_cache(self) -> None:
        """Forget every compiled path."""
        self.paths.clear()


class Lowered:
    """A captured path, to look at."""

    def __init__(self, path: Path) -> None:
        self.graph: Graph = path.graph
        self.source = getattr(path.run, "source", "")

    @property
    def code(self) -> str:
        """The graph as Python in minnp.numpy."""
        return self.graph.code

    def flops(self) -> int:
        """Floating point operations of one run, by the rows' own counts."""
        from .passes import flops

        return flops(self.graph)


def _one(leaves: list) -> tuple:
    return (leaves[0],), {}


def _static(v: Any) -> Any:
    try:
        hash(v)
    except TypeError:
        return ("id", id(v))
    return type(v), v


def leaf_names(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A readable name for every leaf: the parameter's, numbered where it is a tree."""
    try:
        bound = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        bound = []
    out = []
    for i, a in enumerate(args):
        n = len(tree_flatten(a)[0])
        base = bound[i] if i < len(bound) else f"x{i}"
        out += [base] if n == 1 else [f"{base}_{j}" for j in range(n)]
    for k, a in kwargs.items():
        n = len(tree_flatten(a)[0])
        out += [k] if n == 1 else [f"{k}_{j}" for j in range(n)]
    return out


def jit(
    f: Callable | None = None,
    *,
    limit: int = LIMIT,
) -> Any:
    """f, compiled at its first call for the shapes, dtypes and static values it meets.

    Arrays among the arguments (in tuples, lists, dicts, dataclasses) are inputs; numbers, strings and other hashable
    objects are static: another value compiles again. Branches of Python on data (`if x.sum() > 0`, `while err > tol`,
    `range(int(n))`) are guards, and every path is compiled once. Arguments written in place are written back. Arrays
    read from outside are read anew at every call, as long as they are updated in place.
    limit   paths and keys before a CaptureError says that the function keeps making new ones
    """
    if f is None:
        return lambda g: Jitted(g, limit)
    return Jitted(f, limit)
