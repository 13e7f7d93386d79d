"""A graph as Python source. Tables say how operators are written; any other row is `np.rows[NAME](...)`."""

from __future__ import annotations

import builtins
import itertools
import keyword
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..api.functions import ENTRIES
from ..arrays.array import Array
from ..arrays.devices import Context
from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.value import BINARY, COMPARISON, PYTHON, SYMBOLS, Host
from .effects import IN_PLACE, assign, guard, in_place, inside, into, is_loop, pick
from .graph import Graph, last_reads
from .node import Node, target_name

INFIX = {name: SYMBOLS[op] for op, name in {**BINARY, **COMPARISON}.items() if op != "divmod"}
INFIX |= {"equal_records": "==", "not_equal_records": "!="}
PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
# Python's operators, as functions: (function, text, how many operands).
OPERATORS = {PYTHON[op]: (symbol, 2) for op, symbol in SYMBOLS.items() if op != "divmod"} | {
    PYTHON[op]: (symbol, 1) for op, symbol in PREFIX.items()
}
# Rows that are NumPy's function with the arrays first and the same parameter names.
SAME = {
    *("sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod", "any", "all", "argmax", "argmin"),
    *("sort", "argsort", "transpose", "swapaxes", "expand_dims", "squeeze", "flip", "roll", "repeat", "diff", "trace"),
    *("where", "clip", "take_along_axis", "tril", "triu", "zeros_like", "ones_like", "nan_to_num"),
}
INLINE = 256  # elements up to which a constant is written into the code; larger ones are attributes of `self`
FEW = 4  # elements up to which it is written as a list, whatever it holds


class Written:
    """A name or expression that stands in the code as it is."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Code:
    """Python source made from a graph.

    text      imports other than `import minnp.numpy as np`, and the function
    lines     the node that each line of the text computes: line number -> node
    running   the same lines, with names forgotten after their last use: memory that is free is used again
    names     what the text uses and cannot import (functions defined inside functions): name -> object
    """

    def __init__(self, graph: Graph, name: str = "forward", attributes: bool = False) -> None:
        self.attributes, self.names, self.imports = attributes, {}, {}
        self.lines: dict[int, Node] = {}
        self._owner = graph.owning_module
        self._taken = {n.name for n in graph.nodes}
        nodes = [(n, self.statements(n)) for n in graph.nodes]
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        inputs = [self.parameter(n) for n in placeholders]
        for i, (before, n) in enumerate(itertools.pairwise(placeholders), 1):
            if before.args and not n.args and not n.target.startswith("*"):  # the function's was named too
                inputs.insert(i, "*")
                break
        if attributes or any("self" in re.findall(r"\w+", line) for _, lines in nodes for line in lines):
            inputs.insert(0, "self")
        text = [*self.imports, *([""] * 2 if self.imports else []), f"def {name}({', '.join(inputs)}):"]
        running, last, dead = list(text), last_reads(graph), []
        for node, lines in nodes:
            dead += [n.name for n in last.get(node, ())]
            if is_loop(node):  # what runs is compiled
                called = f"    {node.name} = {self.call(self.free('compiled', node.target), node.args, {})}"
                running += [*[""] * (len(lines) - 1), called]
            else:
                running += [f"    {line}" for line in lines]
            if dead and lines and re.match(r"\w+ = ", lines[-1]):
                running[-1] += f"; {' = '.join(dead)} = None"
                dead = []
            value = node.meta.get("value")
            if lines and value is not None and node.op not in ("output", "placeholder"):
                lines[0] = f"{lines[0]:<50}  # {value!r}".replace("\n", " ")
            for line in lines:
                text.append(f"    {line}")
                self.lines[len(text)] = node
        if not any(lines for _, lines in nodes):
            text.append("    pass")
            running.append("    pass")
        self.text, self.running = ("\n".join(lines) + "\n" for lines in (text, running))

    def parameter(self, node: Node) -> str:
        star = node.target[: len(node.target) - len(node.target.lstrip("*"))]
        return f"{star}{node.name}" + (f"={self.show(node.args[0])}" if node.args else "")

    # -------------------------------------------------------------- arguments
    def show(self, x: Any) -> str:
        """An argument as Python source."""
        if isinstance(x, Node):
            return x.name
        if isinstance(x, Written):
            return x.text
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return f"{self.reference(type(x))}({', '.join(map(self.show, x))})"
        if isinstance(x, (tuple, list)):
            inner = ", ".join(map(self.show, x))
            return f"[{inner}]" if isinstance(x, list) else f"({inner},)" if len(x) == 1 else f"({inner})"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{self.show(k)}: {self.show(v)}" for k, v in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({self.show(x.start)}, {self.show(x.stop)}, {self.show(x.step)})"
        if x is Ellipsis:
            return "..."
        if isinstance(x, onp.dtype):
            return f"np.dtype({x.str!r})" if x.names is None and x.kind != "V" else f"np.dtype({x.descr!r})"
        if isinstance(x, onp.generic):
            return f"np.{x.dtype.name}({self.show(x.item())})" if x.dtype.kind in "biufc" else self.free("value", x)
        if isinstance(x, (Host, Array)):
            a = onp.asarray(x)
            return self.constant(a) if _inline(a) else self.free("array", x)
        if isinstance(x, float):
            return repr(x) if x == x and abs(x) != float("inf") else f"float({str(x)!r})"
        if isinstance(x, complex):
            return f"complex({self.show(x.real)}, {self.show(x.imag)})"
        if isinstance(x, (int, str, bytes, type(None), range)):
            return repr(x)
        if isinstance(x, Context):
            self.imports["import minnp"] = None
            return f"minnp.{x!r}"
        return self.reference(x)

    def constant(self, a: onp.ndarray) -> str:
        """A small array, by the shortest function that makes it."""
        values, dtype = a.tolist(), f"dtype={a.dtype.str!r}"
        if not a.size:  # lists do not tell the shape
            return f"np.empty({a.shape}, {dtype})"
        if a.size > FEW and a.tobytes() == a.ravel()[:1].tobytes() * a.size:
            return f"np.full({a.shape}, {self.show(a.item(0))}, {dtype})"
        if a.size > FEW and a.ndim == 1 and a.dtype.kind in "iu":
            steps = range(values[0], values[-1] + (1 if values[-1] > values[0] else -1), values[1] - values[0] or 1)
            if values == list(steps):
                step = f", {steps.step}" if steps.step != 1 else ""
                return f"np.arange({steps.start}, {steps.stop}{step}, {dtype})"
        return f"np.array({self.show(values)}, {dtype})"

    def index(self, index: Any) -> str:
        """An index as it is written between brackets."""
        parts = index if type(index) is tuple else (index,)

        def one(p: Any) -> str:
            if type(p) is slice:
                start, stop = ("" if e is None else self.show(e) for e in (p.start, p.stop))
                return f"{start}:{stop}" if p.step is None else f"{start}:{stop}:{self.show(p.step)}"
            return self.show(p)

        if not parts:
            return "()"
        return ", ".join(map(one, parts)) + ("," if type(index) is tuple and len(parts) == 1 else "")

    def operand(self, x: Any) -> str:
        """An argument where a postfix follows it."""
        text = self.show(x)
        return text if isinstance(x, (Node, Written)) else f"np.asarray({text})"

    def infix(self, x: Any) -> str:
        text = self.show(x)
        return f"({text})" if text.startswith("-") else text

    def call(self, name: str, args: Any, kwargs: dict) -> str:
        return f"{name}({', '.join([*map(self.show, args), *(f'{k}={self.show(v)}' for k, v in kwargs.items())])})"

    # -------------------------------------------------------------- names
    def reference(self, target: Any) -> str:
        """How the code names a function, class or other object: by import where it can be, else a free name."""
        if isinstance(target, Primitive) and TABLE.get(target.name) is target:
            return f"np.rows[{target.name!r}]"
        name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
        module = getattr(target, "__module__", None)
        if not isinstance(name, str) or not isinstance(module, str):
            return self.free(target_name(target), target)
        if getattr(builtins, name, None) is target:
            return name
        if isinstance(target, type) and issubclass(target, onp.generic):
            return f"np.{target.__name__}"
        if module == "minnp.numpy" or module.startswith("minnp.numpy."):
            path = f"{module}.{target.__name__}".removeprefix("minnp.numpy.")
            if _found("minnp.numpy", path, target):
                return f"np.{path}"
        if _found("minnp.npx", name, target):
            self.imports["from minnp import npx"] = None
            return f"npx.{name}"
        module = module.removeprefix("_") if module == "_operator" else module
        if module != "__main__" and _found(module, name, target):
            self.imports[f"import {module}"] = None
            return f"{module}.{name}"
        return self.free(name.rpartition(".")[2], target)

    def free(self, name: str, target: Any) -> str:
        for known, held in self.names.items():
            if held is target:
                return known
        base = re.sub(r"\W", "_", name).strip("_") or "value"
        base = f"{base}_" if keyword.iskeyword(base) or base[0].isdigit() else base
        name, k = base, 0
        while name in self._taken or name in self.names or hasattr(builtins, name):
            k += 1
            name = f"{base}_{k}"
        self.names[name] = target
        return name

    def attribute(self, name: str) -> str:
        """self.name, where a part that is no identifier is asked for by getattr, and a parameter by its name."""
        text, owner = "self", self._owner
        for part in name.split("."):
            held = next((h for h in ("params", "aux_params") if part in (getattr(owner, h, None) or ())), "")
            if held and not hasattr(owner, part):
                text = f"{text}.{held}[{part!r}]"
            else:
                text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
            owner = getattr(owner, part, None)
        return text

    # -------------------------------------------------------------- nodes
    def expression(self, target: Any, args: tuple, kwargs: dict) -> str:
        """A call_function as Python."""
        if not isinstance(target, Primitive):
            return self.function(target, args, kwargs)
        name = target.name
        form = _FORMS.get(name)
        text = form(self, args, kwargs) if form is not None else None
        if text is not None:
            return text
        python = all(type(a) in (bool, int, float, complex) for a in args)  # their operators give no number of NumPy's
        if name in INFIX and len(args) == 2 and not kwargs and not python:
            return f"{self.infix(args[0])} {INFIX[name]} {self.infix(args[1])}"
        ufunc = getattr(onp, name, None)
        if name in SAME or (isinstance(ufunc, onp.ufunc) and not kwargs):
            left_out = (
                (None, False) if name not in ("sort", "argsort", "take_along_axis") else (False,)
            )  # not axis=None
            return self.call(f"np.{name}", args, {k: v for k, v in kwargs.items() if not any(v is d for d in left_out)})
        return self.call(self.reference(target), args, kwargs)

    def function(self, target: Any, args: tuple, kwargs: dict) -> str:
        symbol, count = OPERATORS.get(target, ("", 0)) if not kwargs else ("", 0)
        if count and len(args) == count:
            return (
                f"{self.infix(args[0])} {symbol} {self.infix(args[1])}"
                if count == 2
                else f"{symbol}{self.infix(args[0])}"
            )
        if target is operator.getitem and len(args) == 2:
            return f"{self.operand(args[0])}[{self.index(args[1])}]"
        if target is inside:
            return f"{args[1]} <= {self.infix(args[0])} <= {args[2]}"
        if target is getattr and len(args) == 2 and isinstance(args[0], Node) and str(args[1]).isidentifier():
            return f"{args[0].name}.{args[1]}"
        said = ENTRIES[target].name.split(".") if target in ENTRIES else ()
        if len(said) == 3 and said[1] in ("Generator", "RandomState"):  # random.Generator.normal: a stream's method
            return self.call(f"{self.show(args[0])}.{said[2]}", args[1:], kwargs)
        return self.call(self.reference(target), args, kwargs)

    def statements(self, node: Node) -> list[str]:
        """One node as lines of Python."""
        args, kwargs, target = node.args, node.kwargs, node.target
        if node.op == "output":
            return [f"return {self.show(args[0])}"]
        if node.op == "get_attr":
            constant = node.meta.get("constant")
            if not self.attributes and isinstance(constant, (Host, Array)) and _inline(constant):
                return [f"{node.name} = {self.show(constant)}"]
            return [f"{node.name} = {self.attribute(target)}"]
        if node.op == "call_method":
            return [f"{node.name} = {self.call(f'{self.operand(args[0])}.{target}', args[1:], kwargs)}"]
        if node.op == "call_module":
            return [f"{node.name} = {self.call(self.attribute(target), args, kwargs)}"]
        if node.op == "placeholder":
            return []
        if hasattr(target, "statements"):  # a function with a graph of its own
            return target.statements(self, node)
        if target is guard:
            return [_check(self, *args)]
        if target is pick:
            return [f"{node.name} = {self.show(args[0])}[{args[1]!r}]"]
        if target is assign:
            return [f"{self.show(args[0])}[...] = {self.show(args[1])}"]
        if target is in_place:
            return self.in_place(node.name, *args, **kwargs)
        if isinstance(target, Primitive) and target.name == "write_view":
            return self.write_view(node)
        return [f"{node.name} = {self.expression(target, args, kwargs)}"]

    def write_view(self, node: Node) -> list[str]:
        """An in-place write, as one on a copy."""
        old, new = node.args
        steps, index = node.kwargs.get("steps", ()), node.kwargs.get("index", ...)
        place = node.name
        for row, params in steps:
            place = self.expression(row, (Written(place),), params)
        value = node.meta.get("value")  # what has no axes may be a number, which takes no writes
        copied = f"np.array({self.show(old)})" if getattr(value, "shape", None) == () else f"{self.operand(old)}.copy()"
        if steps and (layout := node.kwargs.get("layout")) is not None:  # in which each step gives a view
            back = tuple(onp.argsort(layout).tolist())
            copied = f"np.transpose(np.transpose({self.show(old)}, {tuple(layout)}).copy(), {back})"
        return [f"{node.name} = {copied}", f"{place}[{self.index(index)}] = {self.show(new)}"]

    def in_place(self, name: str, function: Any, target: Any, *args: Any, **kwargs: Any) -> list[str]:
        copied = f"{name} = {self.operand(target)}.copy()"
        if function in IN_PLACE:
            return [copied, f"{name} {IN_PLACE[function]} {self.show(args[0])}"]
        if isinstance(function, str):
            return [copied, self.call(f"{name}.{function}", args, kwargs)]
        if function is into:
            return [copied, self.call(self.reference(args[0]), args[1:], {**kwargs, "out": Written(name)})]
        return [copied, self.call(self.reference(function), (Written(name), *args), kwargs)]


OTHER_PATH = "another path than the one captured: minnp.jit(f) captures each path that is taken"


def _check(code: Code, value: Any, kind: str, expected: Any) -> str:
    text = code.show(value)
    if kind == "shape":
        return f"assert np.shape({text}) == {code.show(expected)}, {OTHER_PATH!r}"
    if kind == "dtype":
        return f"assert {text}.dtype == {code.show(expected)}, {OTHER_PATH!r}"
    if kind == "axes":
        return f"assert any(np.ndim(i) for i in {text}), 'an index that is one number gives a view, not a copy'"
    if kind == "array":
        return f"assert isinstance({text}, np.ndarray), 'a number, which no one writes to, where an array was expected'"
    if kind == "given":
        way_out = f"symbolic_trace(f, concrete_args={{{expected!r}: None}})"
        return f'assert {text} is not None, "traced for a {expected} that is given; for none: {way_out}"'
    equal = f"np.array_equal({text}, {code.show(expected)}"
    nan = ", equal_nan=True" if getattr(expected, "dtype", onp.dtype(type(expected))).kind in "fc" else ""
    return f"assert {equal}{nan}), {OTHER_PATH!r}"


def _found(module: str, name: str, target: Any) -> bool:
    """Whether importing `module` finds the target under `name`."""
    value = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None) if part.isidentifier() else None
    return value is target or (value is not None and type(value) is type(target) and value == target)


def _inline(constant: Any) -> bool:
    return constant.size <= INLINE and constant.dtype.kind in "biufcSU"


def _product(code: Code, args: tuple, kwargs: dict) -> str | None:
    """np.dot for a large matrix: `@` looks at what stands on its left alone to find a better kernel than NumPy's."""
    metas = [a.meta.get("value") if isinstance(a, Node) else None for a in args]
    large = not kwargs and all(type(m) is Meta and m.ndim == 2 for m in metas) and metas[1].size >= 1 << 17
    return code.call("np.dot", args, {}) if large else None


_FORMS: dict[str, Callable[[Code, tuple, dict], str | None]] = {
    "getitem": lambda c, a, k: f"{c.operand(a[0])}[{c.index(k['index'])}]" if set(k) == {"index"} else None,
    "negative": lambda c, a, k: f"-{c.operand(a[0])}",
    "reshape": lambda c, a, k: f"{c.operand(a[0])}.reshape({c.show(k['shape'])})" if set(k) == {"shape"} else None,
    "astype": lambda c, a, k: f"{c.operand(a[0])}.astype({c.show(k['dtype'].str)})" if set(k) == {"dtype"} else None,
    "view": lambda c, a, k: f"{c.operand(a[0])}.view({c.show(k['dtype'])})",
    "matmul": _product,
    "copy": lambda c, a, k: f"{c.operand(a[0])}.copy()" if not k else None,
    "broadcast_to": lambda c, a, k: f"np.broadcast_to({c.show(a[0])}, {c.show(k['shape'])})",
    "concatenate": lambda c, a, k: c.call("np.concatenate", (a,), k),
    "stack": lambda c, a, k: c.call("np.stack", (a,), k),
    "einsum": lambda c, a, k: c.call("np.einsum", (k["subscripts"], *a), {}) if set(k) == {"subscripts"} else None,
    "stop_gradient": lambda c, a, k: c.call("np.stop_gradient", a, k),
}


def python_code(graph: Graph, name: str = "forward") -> str:
    """`def forward(inputs): ...` for a graph; shapes, where known, as comments. With `self` if it reads attributes."""
    return Code(graph, name).text


def show(x: Any) -> str:
    """One argument as Python source."""
    return Code(Graph()).show(x)
