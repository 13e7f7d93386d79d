"""grad, vmap and their like inside a symbolic trace: one node, whose function is a graph of its own.

The function is traced into that graph. What it reads of the program around it, proxies and arrays, becomes its first
inputs, so the node says all that it needs. Printed, it is a function inside the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import minnp
from minnp.core.arrays.array import Array
from minnp.core.graph.codegen import Code
from minnp.core.graph.effects import pick
from minnp.core.graph.graph import Graph
from minnp.core.graph.node import Node, map_nodes
from minnp.core.graph.proxy import Proxy
from minnp.core.rows.pytree import tree_flatten
from minnp.core.rows.value import Host
from minnp.core.transforms.grad import argument_numbers

from .graph_module import GraphModule


class Transformed:
    """The target of such a node: (captured, args, kwargs) -> minnp.NAME(module, **options)(*args, **kwargs).

    module    the function: its inputs are what it captured, then the arrays and numbers among its arguments
    places    which leaves of the arguments those are
    direct    the transformation takes the arguments beside the function, as jvp(f, primals, tangents) does
    """

    def __init__(self, name: str, options: dict, module: GraphModule, places: list[int], direct: bool) -> None:
        self.name, self.options, self.module, self.places, self.direct = name, options, module, places, direct
        self.__name__ = name

    def __call__(self, captured: tuple, args: tuple, kwargs: dict) -> Any:
        function = functools.partial(self._run, captured)
        transform = getattr(minnp, self.name)
        if self.direct:
            return transform(function, *args, **self.options)
        return transform(function, **self.options)(*args, **kwargs)

    def _run(self, captured: tuple, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = tree_flatten((args, kwargs))
        return self.module(*captured, *[leaves[i] for i in self.places])

    def statements(self, code: Code, node: Node) -> list[str]:
        """The function, defined inside the one being written, and its call."""
        captured, args, kwargs = node.args
        name = f"{node.name}_of"
        inner = Code(self.module.graph, name)
        code.imports |= {**inner.imports, "import minnp": None}
        code.names |= inner.names
        body = inner.text.splitlines()[len(inner.imports) + 2 * bool(inner.imports) :]
        body[0] = body[0].replace(f"def {name}(self, ", f"def {name}(").replace("(self)", "()")
        given = args[0] if self.direct else args
        names = [f"a{i}" for i in range(len(given))]
        texts: list[str] = []
        _say(tuple(given), [*names], texts, True)
        for k, v in kwargs.items():
            _say(v, k, texts)
        inside = ", ".join([*(n.name for n in captured), *(texts[i] for i in self.places)])
        function = f"lambda {', '.join([*names, *kwargs])}: {name}({inside})"
        if inside == ", ".join([*names, *kwargs]):
            function = name
        options = "".join(f", {k}={code.show(v)}" for k, v in self.options.items())
        if self.direct:
            beside = "".join(f", {code.show(a)}" for a in args)
            return [*body, f"{node.name} = minnp.{self.name}({function}{beside}{options})"]
        return [*body, f"{node.name} = {code.call(f'minnp.{self.name}({function}{options})', args, kwargs)}"]


def _say(tree: Any, text: Any, found: list[str], whole: bool = False) -> None:
    """How the leaves of an argument are written, given how the argument is (`whole`: a list of such texts)."""
    if isinstance(tree, (tuple, list)):
        for i, part in enumerate(tree):
            _say(part, text[i] if whole else f"{text}[{i}]", found)
    elif isinstance(tree, dict):
        for k, part in tree.items():
            _say(part, f"{text}[{k!r}]", found)
    elif tree is not None:
        found.append(text)


def record(tracer: Any, name: str, f: Callable, options: dict, args: tuple, kwargs: dict, direct: bool) -> Any:
    """The result, in proxies, of minnp.NAME(f, **options)(*args, **kwargs) called on proxies."""
    default = {"argnum": 0, "argnums": None, "has_aux": False, "in_axes": 0, "out_axes": 0, "mode": "reverse"}
    options = {k: v for k, v in options.items() if default[k] != v}
    leaves, rebuild = tree_flatten((tuple(args[0] if direct else args), kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (Proxy, Array, Host, float, complex))]
    outer, inner = tracer.graph, Graph()
    tracer.graph = inner
    tracer.reaching.append({} if name in ("grad", "value_and_grad") else None)
    written: dict = {}
    try:
        boxed = list(leaves)
        for i in places:
            boxed[i] = tracer.proxy(inner.placeholder(f"x{i}" if len(places) > 1 else "x"))
            vars(boxed[i])["kind"] = boxed[i].node.meta["kind"] = getattr(leaves[i], "kind", "array")
        given, named = rebuild(boxed)
        out = f(*given, **named)
        written = tracer.reaching[-1] or {}
        result = tracer.create_arg(out)
        if written:  # what it wrote to outside is returned beside, as has_aux returns things
            loss, aux = result if options.get("has_aux") else (result, None)
            result = loss, (aux, [cell.node for cell in written])
        inner.output(result)
    finally:
        tracer.graph = outer
        tracer.reaching.pop()
        for cell, before in written.items():
            cell.node = before
    captured = lift(tracer, inner)
    module = GraphModule(tracer.root, inner, f"{name.title()}Of")
    said = {**options, "has_aux": True} if written else options
    target = Transformed(name, said, module, places, direct)
    effect = any(n.meta.get("effect") for n in inner.nodes)
    made = tracer.create_proxy("call_function", target, (tuple(captured), tuple(args), kwargs), {}, name, effect)
    made.node.args = (tuple(captured), *made.node.args[1:])
    return shaped(tracer, made, name, options, args, kwargs, out, written)


def lift(tracer: Any, inner: Graph) -> list[Node]:
    """The nodes outside that a graph reads, each now an input of it; arrays it holds are held outside."""
    outer, swaps = tracer.graph, {}
    for n in inner.find_nodes(op="get_attr"):
        swaps[n] = outer.node_copy(n)
        swaps[n].meta.update(n.meta)
        for key, (array, node) in list(tracer._attributes.items()):
            if node is n:
                tracer._attributes[key] = array, swaps[n]
    for n in inner.nodes:
        for i in n.all_input_nodes:
            if i.graph is not inner:
                swaps[i] = i
    inputs = {}
    for n in swaps:
        inputs[n] = inner.placeholder(n.name)
        inputs[n].meta.update({k: v for k, v in n.meta.items() if k not in ("constant", "effect")})
    for n in inner.nodes:
        n.args, n.kwargs = map_nodes((n.args, n.kwargs), lambda i: inputs.get(i, i))
    for n in swaps:
        if n.graph is inner:
            inner.erase_node(n)
    first = list(inputs.values())
    inner.reorder([*first, *(n for n in inner.nodes if n not in set(first))])
    return list(swaps.values())


def shaped(tracer: Any, made: Any, name: str, options: dict, args: tuple, kwargs: dict, out: Any, written: dict) -> Any:
    """The result in the containers that the transformation returns; memory that was written has its new values."""

    def like(tree: Any, result: Any) -> Any:
        if isinstance(tree, (tuple, list)) and not hasattr(tree, "_fields"):
            return type(tree)([like(part, item(result, i)) for i, part in enumerate(tree)])
        return {k: like(part, item(result, k)) for k, part in tree.items()} if type(tree) is dict else result

    def item(result: Any, i: Any) -> Any:
        return tracer.create_proxy("call_function", pick, (result, i), {})

    def gradients(result: Any) -> Any:
        numbers, form = argument_numbers(options.get("argnum", 0), options.get("argnums"))
        of = [kwargs[k] if isinstance(k, str) else args[k] for k in numbers]
        bare = len(of) == 1 and form is not tuple
        return like(of[0], result) if bare else form([like(a, item(result, i)) for i, a in enumerate(of)])

    if options.get("has_aux") or written:
        first, second = item(made, 0), item(made, 1)
        of, aux = (first, second) if name == "grad" else (second, item(first, 1))
        if written:
            for i, cell in enumerate(written):
                node = item(item(aux, 1), i).node
                if written[cell].graph is not node.graph and tracer.reaching and tracer.reaching[-1] is not None:
                    tracer.reaching[-1].setdefault(cell, written[cell])
                cell.node = node
            aux = item(aux, 0)
        aux = like(out[1], aux) if options.get("has_aux") else None
        of = gradients(of)
        if name == "value_and_grad":
            value = item(first, 0)
            return (value, aux) if options.get("has_aux") else value, of
        return (of, aux) if options.get("has_aux") else of
    if name == "grad":
        return gradients(made)
    if name == "value_and_grad":
        return item(made, 0), gradients(item(made, 1))
    if name == "grad_and_loss":
        return gradients(item(made, 0)), item(made, 1)
    if name == "jvp":
        return like(out, item(made, 0)), like(out, item(made, 1))
    return like(out, made)
