"""jit: capture once, run the graph after.

Compiled code is keyed on the arguments' structure, shapes, dtypes and static values. Under one key there is a path for
each way the function's Python went; a path whose guard fails gives way to the next, and a new way is captured.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .. import backends, errors
from . import policy
from .array import handle, ndarray, new, read
from .capture import Captured, Static, capture_call
from .effects import Diverged
from .executor import compile_host
from .graph import Graph
from .host.memory import owned
from .host.products import single_thread
from .interpreter import blame
from .live import NUMBERS
from .native import engine as native
from .passes import fuse_elementwise, optimize
from .passes.native import compile_native
from .passes.overwriting import write_arguments
from .placed import free
from .state import capture, state
from .tree import open_tree, tree_flatten
from .value import Buffer, Host, Tracer
from .writing import write

LIMIT = 32  # paths per key, and keys per function, before jit says that a function keeps making new ones


COMPILERS = ("auto", "llvm", "numpy")
_MISS = object()


class Path:
    """One captured way through a function, compiled: `run` takes and gives arrays, `finish` makes the user's result."""

    __slots__ = ("captured", "finish", "graph", "inputs", "overwrites", "run")

    def __init__(self, captured: Captured, inputs: Sequence[int], compiler: str, home: Any = None) -> None:
        self.captured = captured
        self.inputs = inputs  # which leaves of the arguments `run` takes
        self.graph = optimize(captured.graph.copy())
        self.overwrites: list[int] = []  # the arguments that `run` itself writes to
        run = None if home is None else home.compile(self.graph.copy(), captured.constants)
        if run is None:
            graph = self.graph.copy()
            if home is None and (compiler == "llvm" or (compiler == "auto" and native.available())):
                graph = compile_native(graph)
            graph = fuse_elementwise(graph)
            self.overwrites = write_arguments(graph, captured.written)
            run = compile_host(graph, captured.constants, compiler == "numpy")
        self.run = run
        numbers = list(range(len(self.graph.output_node().args[0]) - len(captured.written)))
        tree = captured.rebuild(numbers) if numbers else None
        self.finish = _one if tree == 0 else _handles if tree == numbers else self._rebuild
        if tree == tuple(numbers) and numbers:
            self.finish = lambda out: tuple(_handles(out))

    def may_overwrite(self, arrays: list) -> bool:
        """Whether the arguments to overwrite lie as they must, and share no memory with what else the graph reads."""
        for i in self.overwrites:
            flags = arrays[i].flags
            if not flags.c_contiguous or not flags.writeable:
                return False
        constants = [c for c in self.captured.constants.values() if isinstance(c, Host)]
        others = [*(a for a in arrays if isinstance(a, Host)), *constants]
        if len({id(a) for a in others}) == len(others) and all(map(owned, others)):
            return True
        return not any(
            k != j and onp.may_share_memory(arrays[i], a)
            for i in self.overwrites
            for k in [next(k for k, a in enumerate(others) if a is arrays[i])]
            for j, a in enumerate(others)
        )

    def _rebuild(self, out: Sequence[Any]) -> Any:
        return self.captured.rebuild(_handles(out))


def _one(out: Sequence[Any]) -> Any:
    (v,) = out
    if type(v) is Host:
        h = new(ndarray)
        h._host, h._root = v, None
        return h
    return handle(v) if isinstance(v, (Host, onp.generic, Buffer)) else v


def _handles(out: Sequence[Any]) -> list:
    return [handle(v) if isinstance(v, (Host, onp.generic, Buffer)) else v for v in out]


class Jitted:
    """A compiled function; made by `jit`."""

    def __init__(self, f: Callable, limit: int, compiler: str = "auto", static: Sequence[str | int] = ()) -> None:
        functools.update_wrapper(self, f, updated=())
        self.function, self.limit, self.compiler = f, limit, compiler
        self.static = places_and_names(f, static)
        self.paths: dict[Any, list[Path]] = {}
        self.flat: dict[tuple, list[Path]] = {}  # the same, by shapes and dtypes of arrays, and types of numbers, alone
        self.fixed: dict[Any, set[int]] = {}  # by the key without them: the numbers whose values compile again
        self.calls = self.captures = self.guard_failures = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {getattr(self.function, '__qualname__', self.function)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat = None
        if not kwargs and not state.busy and not self.static:  # the short way: arrays and numbers, nothing traced
            arrays, kinds = [], []
            for a in args:
                if type(a) is ndarray:
                    a = a._host
                if type(a) is Host:
                    kinds.append((a.shape, a.dtype))
                elif type(a) in NUMBERS:
                    kinds.append(type(a))
                else:
                    break
                arrays.append(a)
            else:
                flat = tuple(kinds)
                paths = self.flat.get(flat)
                if paths is not None:
                    out = self._run(paths, arrays, args)
                    if out is not _MISS:
                        return out
        leaves: list = []
        marked = self._marked(args, kwargs) if self.static else (args, kwargs)
        shape = open_tree(marked, leaves)
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
            if home is None and self.compiler == "auto" and policy.current().backend is not None:
                home = backends.get(policy.current().backend)
        key = (shape, *[self._kind(v, home) for v in values], home)
        fixed = self.fixed.setdefault(key, set())
        exact = _exact(key, fixed, values)
        paths = self.paths.get(exact)
        if paths and (flat is None or fixed):
            out = self._run(paths, [values[i] for i in paths[0].inputs], leaves)
            if out is not _MISS:
                return out
        out = self._capture(key, exact, marked, leaves, values)
        if flat is not None and not fixed:
            self.flat[flat] = self.paths[exact]
        elif flat is not None:
            self.flat.pop(flat, None)
        return out

    def _marked(self, args: tuple, kwargs: dict) -> tuple:
        """The arguments, each static one a leaf that its value identifies."""
        args = tuple(Static(a) if i in self.static else a for i, a in enumerate(args))
        return args, {k: Static(a) if k in self.static else a for k, a in kwargs.items()}

    def _kind(self, v: Any, home: Any) -> Any:
        """What of a leaf decides which code runs."""
        if isinstance(v, (Host, Buffer)):
            return v.shape, v.dtype
        return type(v) if home is None and changes(v) else _static(v)

    def _run(self, paths: list[Path], arrays: list, leaves: Sequence[Any]) -> Any:
        """The result by the first path whose guards hold; _MISS if none does."""
        for path in paths:
            given = arrays
            if path.overwrites and (state.busy or state.tapes or not path.may_overwrite(arrays)):
                given = [a.copy() if i in path.overwrites else a for i, a in enumerate(arrays)]
            try:
                out = path.run(*given)
            except Diverged:
                self.guard_failures += 1
                continue
            except Exception as error:
                blame(error, path.run, path.run.nodes)
                raise
            self.calls += 1
            if path is not paths[0]:  # what held last is tried first
                paths.remove(path)
                paths.insert(0, path)
            written = path.captured.written
            if written:
                n, at = len(out) - len(written), path.inputs
                if given is arrays:  # what lies in its place already is not written again
                    back = [(i, v) for i, v in zip(written, out[n:]) if v is not arrays[i]]
                    self._write_back([at[i] for i, _ in back], leaves, [handle(v) for _, v in back])
                else:
                    self._write_back([at[i] for i in written], leaves, [handle(v) for v in out[n:]])
                out = out[:n]
            return path.finish(out)
        return _MISS

    def _write_back(self, written: list[int], leaves: Sequence[Any], finals: Sequence[Any]) -> None:
        for i, final in zip(written, finals, strict=True):
            target = leaves[i]
            write(target if type(target) is ndarray else handle(target), ..., final)

    def _capture(self, key: Any, exact: Any, arguments: tuple, leaves: list, values: list) -> Any:
        paths = self.paths.setdefault(exact, [])
        if len(paths) >= self.limit or len(self.paths) > self.limit:
            what = (
                "paths through its Python" if len(paths) >= self.limit else "combinations of shapes and static values"
            )
            raise errors.CaptureError(
                f"{self!r} has met {self.limit} different {what} and would compile another; pass numbers that keep "
                "changing as arrays, use np.where for branches on data, or raise jit(..., limit=)"
            )
        self.calls += 1
        _, rebuild = tree_flatten(arguments)
        names, fixed, home = leaf_names(self.function, *arguments), self.fixed[key], key[-1]
        live = {i for i, v in enumerate(values) if home is None and i not in fixed and changes(v)}
        quiet = contextlib.nullcontext() if self.compiler == "numpy" else single_thread() or contextlib.nullcontext()
        with quiet, policy.on_host(self.compiler != "auto" and home is None):
            try:
                captured, (out, written) = capture_call(self.function, values, rebuild, names, live)
            except (TypeError, ValueError, AttributeError):
                if not live:
                    raise
                # it may be that something wants a number and no stand-in: then it has the numbers themselves
                fixed |= {i for i in live if type(values[i]) in NUMBERS}
                live -= fixed
                exact = _exact(key, fixed, values)
                paths = self.paths.setdefault(exact, [])
                captured, (out, written) = capture_call(self.function, values, rebuild, names, live)
        self.captures += 1
        if captured.fixed:  # Python was told these numbers: others compile again
            fixed |= captured.fixed
            if not paths:
                del self.paths[exact]
            exact = _exact(key, fixed, values)
            paths = self.paths.setdefault(exact, [])
        inputs = [i for i, v in enumerate(values) if i in live or isinstance(v, (Host, Buffer))]
        paths.insert(0, Path(captured, inputs, self.compiler, home))
        self._write_back([inputs[i] for i in captured.written], leaves, written)
        return out

    # -------------------------------------------------------------- looking inside
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Capture (or find) the path of these arguments without keeping its result: .graph, .code, .flops()."""
        arguments = self._marked(args, kwargs)
        leaves, rebuild = tree_flatten(arguments)
        values = [onp.array(x) if isinstance(x, (ndarray, Host)) else x for x in leaves]
        live = {i for i, v in enumerate(values) if changes(v)}
        captured, _ = capture_call(self.function, values, rebuild, leaf_names(self.function, *arguments), live)
        return Lowered(captured, self.compiler)

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
        self.flat.clear()
        self.fixed.clear()


class Lowered:
    """A captured path, to look at."""

    def __init__(self, captured: Captured, compiler: str) -> None:
        self.graph: Graph = optimize(captured.graph.copy())
        self._path = lambda: Path(captured, (), compiler)

    @property
    def source(self) -> str:
        """The Python that jit runs."""
        return self._path().run.source

    @property
    def code(self) -> str:
        """The graph as Python in minnp.numpy."""
        return self.graph.code

    def flops(self) -> int:
        """Floating point operations of one run, by the rows' own counts."""
        from .passes import flops

        return flops(self.graph)


def changes(v: Any) -> bool:
    """Whether a leaf is a number that may be another one at the next call of the same code."""
    return type(v) in NUMBERS or isinstance(v, onp.floating)


def places_and_names(f: Callable, static: Sequence[str | int]) -> set:
    """The static arguments by place and by name, whichever way they were said. Raises ValueError for a name f lacks."""
    static = (static,) if isinstance(static, (str, int)) else tuple(static)
    try:
        names = [p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_KEYWORD]
    except (TypeError, ValueError):
        return set(static)
    found = set(static)
    for s in static:
        if type(s) is str:
            if s not in names and names:
                raise ValueError(f"jit(static={s!r}): the function's arguments are {', '.join(names)}")
            found.add(names.index(s))
        elif s < len(names):
            found.add(names[s])
    return found


def _exact(key: Any, fixed: set[int], values: Sequence[Any]) -> tuple:
    """The key of the paths of a call: what decides which code runs, and the values of the numbers Python was told."""
    return (key, *[(i, _static(values[i])) for i in sorted(fixed)])


def _static(v: Any) -> Any:
    if type(v) is Static:
        v = v.value
    if type(v) is float:
        return float, v.hex()  # 0.0 is not -0.0, and nan is nan
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
    compiler: str = "auto",
    static: str | int | Sequence[str | int] = (),
) -> Any:
    """f, compiled at its first call for the shapes, dtypes and static values it meets.

    Arrays among the arguments (in tuples, lists, dicts, dataclasses) are inputs, and so are numbers, with NumPy's
    promotion of Python's numbers; a number that becomes a shape, an index or a count (or leaves for math.sqrt) compiles
    again when it changes, as strings and other hashable objects do. Branches of Python on data (`if x.sum() > 0`,
    `while err > tol`, `range(int(n))`) are guards, and every path is compiled once. Arguments written in place are
    written back. Arrays read from outside are read anew at every call, as long as they are updated in place.
    static     arguments, by name or place, that compile again when they change, whatever they are used for
    limit      paths and keys before a CaptureError says that the function keeps making new ones
    compiler   "llvm": machine code, which the extra minnp[compiler] makes. Arithmetic is NumPy's to the bit; sums,
               matrix products of small arrays, and those added to an argument are in another order; elementary
               functions and powers are within 3 ulp; floating point errors are not reported. "numpy": NumPy's own
               kernels, and its results to the bit.
               "auto": what the policy prefers ("prefer_torch" compiles for torch), else the first if it is installed

    Raises ValueError for another compiler, ModuleNotFoundError for "llvm" where it cannot be had.
    """
    if compiler not in COMPILERS:
        raise ValueError(f"jit(compiler={compiler!r}): one of {', '.join(COMPILERS)}")
    if compiler == "llvm" and not native.available():
        raise ModuleNotFoundError('jit(compiler="llvm") needs llvmlite 0.45 or newer: pip install "minnp[compiler]"')
    if f is None:
        return lambda g: Jitted(g, limit, compiler, static)
    return Jitted(f, limit, compiler, static)
