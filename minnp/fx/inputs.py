"""What a traced function is called with: proxies of its arguments, of what `*args` and `**kwargs` hold among them."""

from __future__ import annotations

import dis
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from minnp import errors
from minnp.core.arrays.array import Array
from minnp.core.graph.effects import guard
from minnp.core.graph.proxy import Proxy, unpack_count
from minnp.core.rows import state
from minnp.core.rows.value import Host
from minnp.nn.model import Layer

LIBRARY = ("minnp.", "numpy.")
_FUNCTIONS = (types.FunctionType, types.MethodType)
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
HOW_MANY = (
    'say what there is: symbolic_trace(f, concrete_args={"args": (fx.PH, fx.PH)}), or {"kwargs": {"name": fx.PH}}'
)


class Placeholder:
    """`fx.PH`: an input, in what concrete_args say of an argument that holds several."""

    def __repr__(self) -> str:
        return "PH"

    def __reduce__(self) -> str:
        return "PH"


PH = Placeholder()


class Several(Proxy):
    """The tuple of `*args`, or the dict of `**kwargs`: args[0] and kwargs["w"] are inputs. Whoever asks how many there
    are is told that there are none, and then there must be none."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, (int, str)):
            return super().__getitem__(key)
        parts = vars(self)["parts"]
        if key not in parts:
            parts[key] = _held(self, key, self.inputs)
        return parts[key]

    def __iter__(self) -> Iterator:
        count = unpack_count()
        vars(self)["counted"] |= count is None
        return iter([self[i] for i in range(count or 0)])

    def keys(self) -> Iterator:
        return iter(self)

    items = values = keys

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __contains__(self, key: Any) -> bool:
        return len(self) > 0

    def get(self, key: str, default: Any = None) -> Any:
        return default if len(self) == 0 else self[key]

    pop = get


def _held(whole: Proxy, key: Any, inputs: list[Proxy] | None) -> Proxy:
    """What `whole` holds under a key; the caller sees what is written to an input."""
    value = Proxy.__getitem__(whole, key)
    if inputs is not None:
        value._cell.input = value._cell.node
        vars(value)["kind"] = value._cell.node.meta["kind"] = "array"
        inputs.append(value)
    return value


def _filled(spec: Any, value: Proxy, inputs: list[Proxy]) -> Any:
    """What concrete_args say of an argument, with parts of its proxy in the place of each PH."""
    if spec is PH:
        return value
    if not _has_inputs(spec):
        return spec
    keys = spec if isinstance(spec, dict) else range(len(spec))
    parts = {k: _filled(spec[k], _held(value, k, inputs if spec[k] is PH else None), inputs) for k in keys}
    if isinstance(spec, dict):
        return type(spec)(parts)
    return type(spec)(*parts.values()) if hasattr(spec, "_fields") else type(spec)(parts.values())


def _has_inputs(spec: Any) -> bool:
    parts = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, (tuple, list)) else ()
    return spec is PH or any(map(_has_inputs, parts))


class Inputs:
    """The arguments that a function is traced with; their placeholders are made at once.

    function        what to call with them
    args, kwargs
    made            the proxy of every input
    """

    def __init__(self, tracer: Any, function: Callable, concrete: dict[str, Any]) -> None:
        self.tracer, self.made, self.args, self.kwargs = tracer, [], [], {}
        self.several: list[Several] = []
        parameters = inspect.signature(function).parameters
        unknown = [name for name in concrete if name not in parameters]
        if unknown:
            raise TypeError(f"concrete_args has {unknown}; the arguments are {list(parameters)}")
        asked, fixed = _asked_for_none(function), _already_there(function, parameters)
        plain = None if fixed else without_stars(function)
        self.function, self.whole = plain or function, plain is not None
        found = []  # placeholders come first, and then what is read of them
        for name, p in parameters.items():
            if name in concrete and p.kind in STARS and _has_inputs(concrete[name]):
                each = concrete[name].items() if isinstance(concrete[name], dict) else enumerate(concrete[name])
                named = {k: k if isinstance(k, str) else f"{name}_{k}" for k, _ in each}
                found.append((p, [(k, self._input(named[k]), concrete[name][k]) for k in named]))
            elif name in concrete:
                whole = self._input(name) if _has_inputs(concrete[name]) else None
                found.append((p, [(None, whole, concrete[name])]))
            elif name not in fixed and (p.kind not in STARS or self.whole):
                found.append((p, [(None, self._input(name, p), PH)]))
        for p, parts in found:
            filled = {k: _filled(spec, proxy, self.made) for k, proxy, spec in parts}
            value = (
                filled.get(None) if None in filled else filled if p.kind is p.VAR_KEYWORD else tuple(filled.values())
            )
            if p.name in asked and p.default is None and isinstance(value, Proxy) and value.node.args:
                check = tracer.create_node("call_function", guard, (value.node, "given", p.name), {}, "guard")
                check.meta["effect"] = True
            self._pass(p, value)

    def _input(self, name: str, p: inspect.Parameter | None = None) -> Proxy:
        """The proxy of a new placeholder."""
        tracer, default = self.tracer, ()
        if p is not None and p.kind in STARS:
            node = tracer.graph.placeholder(STARS[p.kind] + name)
            proxy: Proxy = Several(node, tracer)
            vars(proxy).update(parts={}, inputs=self.made, counted=False)
            self.several.append(proxy)
            kind = "object"
        else:
            default = () if p is None or p.default is p.empty else (p.default,)
            node = tracer.graph.placeholder(name, *default)
            proxy = tracer.proxy(node)
            kind = "object" if default and not isinstance(default[0], (Array, Host, float, complex)) else "array"
            self.made.append(proxy)
        node.meta["kind"] = vars(proxy)["kind"] = kind
        return proxy

    def _pass(self, p: inspect.Parameter, value: Any) -> None:
        several = p.kind in STARS and not self.whole
        if several and p.kind is p.VAR_KEYWORD:
            self.kwargs |= value
        elif several:
            self.args += value
        elif p.kind is p.KEYWORD_ONLY or p.kind in STARS:
            self.kwargs[p.name] = value
        else:
            self.args.append(value)

    def settle(self) -> None:
        """Forget the `*args` that nothing reads. Raises CaptureError where their number was asked for as well."""
        for s in self.several:
            if s.counted and s.parts:
                raise errors.CaptureError(
                    f"symbolic_trace: it depends on how many {s._node.target} there are; {HOW_MANY}"
                )
            if not s._node.users:
                self.tracer.graph.erase_node(s._node)
        if self.several and not self.made and any(s.counted for s in self.several):
            raise errors.CaptureError(
                "symbolic_trace: all that the function takes are *arguments, of which the number is not known; "
                + HOW_MANY
            )


def _already_there(function: Callable, parameters: Any) -> set[str]:
    """Arguments that a call leaves out: those a partial brings, and the options of a library's function."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    library = f"{getattr(inner, '__module__', '')}.".startswith(LIBRARY)
    options = {n for n, p in parameters.items() if library and p.default is not p.empty}
    if isinstance(getattr(inner, "__self__", None), Layer):
        options -= {"mode"}  # of a model that is Sequential or the like: which it is, a call says
    return options | (set(function.keywords) if isinstance(function, functools.partial) else set())


def without_stars(function: Callable) -> Callable | None:
    """A function that takes `args` and `kwargs`, by these names, where `function` takes `*args` and `**kwargs`; None
    if it is none of Python's own kind."""
    function = function if isinstance(function, _FUNCTIONS) else function.__call__
    inner = getattr(function, "__func__", function)
    if not isinstance(inner, types.FunctionType) or hasattr(inner, "__wrapped__"):
        return None
    code = inner.__code__
    stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if not stars:
        return None
    count = code.co_argcount + code.co_kwonlyargcount + stars.bit_count()
    plain = code.replace(co_flags=code.co_flags & ~stars, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0)
    made = types.FunctionType(plain, inner.__globals__, inner.__name__, None, inner.__closure__)
    return functools.partial(made, function.__self__) if inner is not function else made


def _asked_for_none(function: Callable) -> set[str]:
    """The variables of which a function's code asks `is None`."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    if code is not None and not state.CODE_IS_KNOWN:
        return set(code.co_varnames)
    steps = [] if code is None else [(n, v) for n, v in instructions(code) if n not in ("CACHE", "COPY", "NOP")]
    asked = set()
    for (name, variable), (after, value), (last, _) in zip(steps, steps[1:], steps[2:]):
        constant = after in ("LOAD_CONST", "LOAD_COMMON_CONSTANT", "RETURN_CONST") and value is None and last == "IS_OP"
        if name.startswith(("LOAD_FAST", "LOAD_DEREF")) and ("NONE" in after or constant):
            asked.add(variable)
    return asked


def instructions(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """The name and the argument of each instruction. LOAD_FAST_LOAD_FAST and its kin of CPython 3.13 are the two that
    they stand for."""
    for i in dis.get_instructions(code):
        names = re.split("_(?=LOAD_FAST|STORE_FAST)", i.opname)
        yield from zip(names, i.argval) if len(names) == 2 else [(i.opname, i.argval)]
