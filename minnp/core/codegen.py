"""A graph as Python source. Three tables say how operators are written; anything else is `np.rows.NAME(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .graph import Graph, Node, guard, pick
from .primitive import Primitive
from .value import BINARY, COMPARISON, Host

_SYMBOLS = {
    **dict(zip(BINARY, ["+", "-", "*", "/", "//", "%", "divmod", "**", "@", "&", "|", "^", "<<", ">>"], strict=True)),
    **dict(zip(COMPARISON, ["<", "<=", ">", ">=", "==", "!="], strict=True)),
}
INFIX = {name: _SYMBOLS[op] for op, name in {**BINARY, **COMPARISON}.items() if op != "divmod"}
# Rows that are NumPy's function with the arrays first and the same parameter names.
SAME = {
    *("sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod", "any", "all", "argmax", "argmin"),
    *("sort", "argsort", "transpose", "swapaxes", "expand_dims", "squeeze", "flip", "roll", "repeat", "diff", "trace"),
    *("where", "clip", "einsum", "take_along_axis", "tril", "triu", "zeros_like", "ones_like", "nan_to_num"),
}
INLINE = 256  # elements up to which a constant is written into the code; larger ones are attributes of `self`


class Written:
    """A name or expression that repr() gives as it is."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def show(x: Any) -> str:
    """An argument as Python source."""
    if isinstance(x, Node):
        return x.name
    if isinstance(x, (tuple, list)):
        inner = ", ".join(map(show, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner},)" if len(x) == 1 else f"({inner})"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in x.items()) + "}"
    if isinstance(x, slice):
        return f"slice({show(x.start)}, {show(x.stop)}, {show(x.step)})"
    if x is Ellipsis:
        return "..."
    if isinstance(x, onp.dtype):
        return f"np.dtype({x.str!r})"
    if isinstance(x, type) and issubclass(x, onp.generic):
        return f"np.{x.__name__}"
    if isinstance(x, onp.generic):
        return f"np.{x.dtype.name}({x.item()!r})" if x.dtype.kind in "biufc" else f"np.array({x!r})[()]"
    if isinstance(x, Host):
        return f"np.array({x.tolist()!r}, dtype={x.dtype.str!r})"
    if isinstance(x, float):
        return repr(x) if x == x and abs(x) != float("inf") else f"float({str(x)!r})"
    if isinstance(x, Primitive):
        return f"np.rows[{x.name!r}]"
    return repr(x)


def show_index(index: Any) -> str:
    """An index as it is written between brackets."""
    parts = index if type(index) is tuple else (index,)

    def one(p: Any) -> str:
        if type(p) is slice:
            text = f"{'' if p.start is None else show(p.start)}:{'' if p.stop is None else show(p.stop)}"
            return text if p.step is None else f"{text}:{show(p.step)}"
        return show(p)

    if not parts:
        return "()"
    return ", ".join(map(one, parts)) + ("," if type(index) is tuple and len(parts) == 1 else "")


def call(name: str, args: tuple, kwargs: dict) -> str:
    return f"{name}({', '.join([*map(show, args), *(f'{k}={show(v)}' for k, v in kwargs.items())])})"


def _write_view(node: Node) -> list[str]:
    """An in-place write, said as one on a copy."""
    old, new = node.args
    path, index = node.kwargs.get("path", ()), node.kwargs.get("index", ...)
    place = node.name
    for row, params in path:
        place = expression(row, (Written(place),), params)
    return [f"{node.name} = {show(old)}.copy()", f"{place}[{show_index(index)}] = {show(new)}"]


_FORMS: dict[str, Callable[[tuple, dict], str | None]] = {
    "getitem": lambda a, k: f"{operand(a[0])}[{show_index(k['index'])}]" if set(k) == {"index"} else None,
    "negative": lambda a, k: f"-{operand(a[0])}",
    "reshape": lambda a, k: f"{operand(a[0])}.reshape({show(k['shape'])})" if set(k) == {"shape"} else None,
    "astype": lambda a, k: f"{operand(a[0])}.astype({k['dtype'].str!r})" if set(k) == {"dtype"} else None,
    "copy": lambda a, k: f"{operand(a[0])}.copy()" if not k else None,
    "broadcast_to": lambda a, k: f"np.broadcast_to({show(a[0])}, {show(k['shape'])})",
    "concatenate": lambda a, k: call("np.concatenate", (a,), k),
    "stack": lambda a, k: call("np.stack", (a,), k),
    "stop_gradient": lambda a, k: call("np.stop_gradient", a, k),
}


def operand(x: Any) -> str:
    """An argument where a postfix follows it."""
    text = show(x)
    return text if isinstance(x, (Node, Written)) else f"np.asarray({text})"


def infix_operand(x: Any) -> str:
    text = show(x)
    return f"({text})" if text.startswith("-") else text


def expression(target: Any, args: tuple, kwargs: dict) -> str:
    """A call_function as Python."""
    if not isinstance(target, Primitive):
        name = getattr(target, "__name__", None)
        module = getattr(target, "__module__", "") or ""
        if module.startswith("minnp.numpy"):
            prefix = module.removeprefix("minnp.numpy").strip(".")
            return call(f"np.{prefix}.{name}" if prefix else f"np.{name}", args, kwargs)
        return call(f"{module}.{name}" if module not in ("", "builtins", "__main__") else str(name), args, kwargs)
    name = target.name
    written = name in INFIX and len(args) == 2 and not kwargs
    if written:
        return f"{infix_operand(args[0])} {INFIX[name]} {infix_operand(args[1])}"
    form = _FORMS.get(name)
    text = form(args, kwargs) if form is not None else None
    if text is not None:
        return text
    ufunc = getattr(onp, name, None)
    if name in SAME or (isinstance(ufunc, onp.ufunc) and not kwargs):
        return call(f"np.{name}", args, {k: v for k, v in kwargs.items() if v is not None and v is not False})
    return call(f"np.rows[{name!r}]", args, kwargs)


def statements(node: Node) -> list[str]:
    """One node as lines of Python."""
    if node.op == "output":
        return [f"return {show(node.args[0])}"]
    if node.op == "get_attr":
        constant = node.meta.get("constant")
        if isinstance(constant, Host) and constant.size <= INLINE:
            return [f"{node.name} = {show(constant)}"]
        return [f"{node.name} = self.{node.target}"]
    if node.op == "call_function":
        if node.target is guard:
            value, kind, expected = node.args
            return [f"# holds where {show(value)}{'.shape' if kind == 'shape' else ''} is {show(expected)}"]
        if node.target is pick:
            return [f"{node.name} = {show(node.args[0])}[{node.args[1]}]"]
        if isinstance(node.target, Primitive) and node.target.name == "write_view":
            return _write_view(node)
        return [f"{node.name} = {expression(node.target, node.args, node.kwargs)}"]
    if node.op == "call_method":
        return [f"{node.name} = {call(f'{show(node.args[0])}.{node.target}', node.args[1:], node.kwargs)}"]
    if node.op == "call_module":
        return [f"{node.name} = {call(f'self.{node.target}', node.args, node.kwargs)}"]
    return []


def python_code(graph: Graph, name: str = "forward") -> str:
    """`def forward(inputs): ...` for a graph; shapes, where known, as comments. With `self` if it reads attributes."""
    inputs = [n.name if not n.args else f"{n.name}={show(n.args[0])}" for n in graph.nodes if n.op == "placeholder"]
    if any("self." in line for n in graph.nodes for line in statements(n)):
        inputs.insert(0, "self")
    lines = [f"def {name}({', '.join(inputs)}):"]
    for node in graph.nodes:
        text = statements(node)
        value = node.meta.get("value")
        if text and value is not None and node.op not in ("output", "placeholder"):
            text[0] = f"{text[0]:<50}  # {value!r}"
        lines += [f"    {line}" for line in text]
    return "\n".join(lines) + "\n"
