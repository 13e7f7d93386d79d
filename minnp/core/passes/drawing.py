"""Drawing: a graph as a picture, through Graphviz.

The Python package `graphviz` writes the description, the program `dot` lays it out; where either is absent, the error
says how to install it.
"""

from __future__ import annotations

import os
from typing import Any

from ... import errors
from ..graph.codegen import show
from ..graph.effects import guard, pick
from ..graph.graph import Graph
from ..graph.node import Node, attribute, target_name
from ..rows.primitive import Meta
from .modules import on_modules

# opcode -> (shape, fill) of its box
LOOKS = {
    "placeholder": ("ellipse", "#cfe8ff"),
    "get_attr": ("ellipse", "#eeeeee"),
    "call_function": ("box", "#fff4d6"),
    "call_method": ("box", "#ffe3c2"),
    "call_module": ("box", "#e6dcff"),
    "output": ("ellipse", "#d4f2d2"),
}
LONGEST = 44  # characters of a line in a box
WHAT_TO_INSTALL = (
    "pip install graphviz for the Python package, and the program `dot` itself: apt-get install graphviz, "
    "brew install graphviz, or https://graphviz.org/download"
)


@on_modules
def draw(graph: Graph, path: str | os.PathLike | None = None, *, format: str | None = None) -> bytes:
    """The graph as a picture: inputs above, one box a node with its parameters, shape and dtype, arrows along the data.

    path     also write it there; its ending (.svg, .png, .pdf, .dot) is the format, unless that is given
    format   "svg" by default; "dot" is the description itself, which needs no program
    Raises DrawingError, with what to install, where the package graphviz or the program dot is absent.

        fx.draw(fx.symbolic_trace(f).graph, "graph.svg")
    """
    if format is None:
        format = os.path.splitext(path)[1][1:].lower() if path is not None else "svg"
    description = describe(graph)
    if format == "dot":
        picture = description.source.encode()
    else:
        import graphviz

        try:
            picture = description.pipe(format=format)
        except graphviz.ExecutableNotFound:
            raise errors.DrawingError(f"drawing needs Graphviz's program `dot`: {WHAT_TO_INSTALL}") from None
    if path is not None:
        with open(path, "wb") as file:
            file.write(picture)
    return picture


def describe(graph: Graph) -> Any:
    """The graph as a graphviz.Digraph, to style further."""
    try:
        import graphviz
    except ImportError:
        raise errors.DrawingError(f"drawing needs the Python package graphviz: {WHAT_TO_INSTALL}") from None
    drawing = graphviz.Digraph(
        graph_attr={"rankdir": "TB", "nodesep": "0.25", "ranksep": "0.35"},
        node_attr={"fontname": "Helvetica", "fontsize": "11", "margin": "0.12,0.06"},
        edge_attr={"color": "#777777", "arrowsize": "0.7", "fontname": "Helvetica", "fontsize": "9"},
    )
    for node in graph.nodes:
        if node.target is pick:  # one of several results: said on the arrow
            continue
        shape, fill = LOOKS[node.op]
        if node.target is guard:
            fill = "#ffd6d6"
        style = "filled" if shape == "ellipse" else "filled,rounded"
        text = escaped("\n".join(lines(node)))
        drawing.node(node.name, text, shape=shape, style=style, fillcolor=fill, tooltip=tip(node))
    for node in graph.nodes:
        if node.target is pick:
            continue
        for source in node.all_input_nodes:
            if source.target is pick:
                drawing.edge(source.args[0].name, node.name, label=str(source.args[1]))
            else:
                drawing.edge(source.name, node.name)
    return drawing


def lines(node: Node) -> list[str]:
    """What a node's box says: its name (and what it calls, if that is another word), parameters, shape and dtype."""
    if node.op == "output":
        return ["output"]
    target = target_name(node.target)
    out = [node.name]
    if node.op == "call_module":
        out = [f"{node.name} = {called(node)}"]
    elif node.op.startswith("call") and target.rpartition(".")[2] != node.name:
        out = [f"{node.name} = {target}"]
    names = getattr(node.target, "names", None)
    if names is not None:  # a fused call: what it stands for
        out += wrapped(names)
    if node.op.startswith("call"):
        given = [said(a) for a in node.args if not isinstance(a, (Node, tuple, list, dict))]
        out += wrapped([*given, *(f"{k}={said(v)}" for k, v in node.kwargs.items() if v is not None)])
    value = node.meta.get("value")
    parts = value if isinstance(value, tuple) else (value,)
    out += wrapped([repr(v) for v in parts if isinstance(v, Meta)])
    return [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in out]


def said(value: Any) -> str:
    """A parameter as Python, long numbers to six digits."""
    text = show(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > 8 else text


def called(node: Node) -> str:
    """The kind of layer a node calls, and where it is: Linear (steps.0)."""
    layer = None if node.graph.owning_module is None else attribute(node.graph.owning_module, node.target)
    return node.target if layer is None else f"{type(layer).__name__} ({node.target})"


def wrapped(parts: list[str]) -> list[str]:
    """Parts with commas between them, as many on a line as it holds."""
    out: list[str] = []
    for part in parts:
        if out and len(out[-1]) + len(part) + 2 <= LONGEST:
            out[-1] += f", {part}"
        else:
            out.append(part)
    return out


def escaped(text: str) -> str:
    """Text that Graphviz shows as it is."""
    return text.replace("\\", "\\\\")


def tip(node: Node) -> str:
    """What an SVG shows under the mouse: where in the user's program the node comes from."""
    return escaped(str(node.meta.get("where") or node.name))
